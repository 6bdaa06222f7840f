//! KAI Scheduler: a tree of Queues, each with a quota, a limit and a weight for each of cores, memory and GPUs.
//!
//! KAI counts cores in thousandths and memory in 10^6 bytes; -1 means no bound. An absent amount is 0; this includes an absent limit. A
//! quota of -1 is written as the word `"unlimited"`, which the policy replaces by the total of the queue's level.
//!
//! Source: KAI Scheduler, pkg/apis/scheduling/v2 (Queue, QueueResource), docs/queues.

use std::collections::HashMap;

use crate::diagnostics::Diagnostics;
use crate::group::{QueueGroup, Queues, Setting};
use crate::objects::{Fields, Written, objects};
use crate::quantity::{Quantities, Quantity, Resource};
use crate::{FormatRow, ParsedSource, property};
use plimsoll_base::error::Result;
use plimsoll_base::tree::Place;

pub static ROW: FormatRow = FormatRow {
    name: "kai",
    about: "KAI Scheduler's Queues",
    layout: "Queue (scheduling.run.ai), in YAML or JSON",
    properties: &[
        property("parentQueue", "parent", "", ""),
        property("quota", "deserved", "0", "-1 (no bound) is `\"unlimited\"`"),
        property("limit", "limit", "0, with a warning", "-1: no limit"),
        property("lendingLimit", "lend_limit", "", "no policy reads it"),
        property(
            "overQuotaWeight",
            "weight",
            "0",
            "if the weights of the resources differ, the weight of `gpu`, otherwise of `memory`, with a warning",
        ),
        property("priority", "priority", "100, if any queue has one", ""),
    ],
    ours: &[
        ("usage", "past usage is measured by the scheduler"),
        ("preemptible", "KAI defines it per workload"),
        ("[policy] k", "an argument of the scheduler's plugin"),
        ("[policy] saturation_multiplier", "an argument of the scheduler's plugin"),
        ("[policy] queue_priority_in_quota_reclaim", "an argument of the scheduler's plugin"),
    ],
    policies: &["kai"],
    source: "KAI Scheduler, pkg/apis/scheduling/v2",
    recognises: |source| source.has_api(&APIS),
    read,
};

const APIS: [&str; 2] = ["scheduling.run.ai", "kai.scheduler"];

/// The default priority of a queue.
const PRIORITY: &str = "100";

/// Returns the resources by their keys.
fn resources() -> [(&'static str, Resource); 3] {
    [
        ("cpu", Resource::units("cpu").in_thousandths()),
        ("memory", Resource::mebibytes("memory", 1_000_000, 1 << 20)),
        ("gpu", Resource::units("gpu")),
    ]
}

/// A group, and the values that can be resolved only when all groups are known.
struct Read<'n> {
    group: QueueGroup,
    parent: Option<(&'n str, &'n Place)>,
    has_priority: bool,
    /// Whether the queue specifies a limit, by resource.
    limited: [bool; 3],
}

fn read(sources: &[ParsedSource], notes: &mut Diagnostics) -> Result<Queues> {
    let mut all: Vec<Read> = Vec::new();
    // Whether any queue specifies the resource; other resources are omitted.
    let mut used = [false; 3];
    let all_objects = objects(sources)?;
    for object in &all_objects {
        if object.kind != "Queue" || !APIS.contains(&object.api) {
            object.leave(notes);
            continue;
        }
        let head = object.head(notes)?;
        let mut spec = object.spec()?;
        let mut group = QueueGroup::new(head.name, head.place);
        let parent = spec.text("parentQueue")?;
        let priority = spec.integer("priority")?;
        let has_priority = priority.is_some();
        priority.into_iter().for_each(|digits| group.set("priority", Setting::Number(digits)));
        spec.leave("displayName", "groups are identified by their names", notes);
        spec.leave("preemptMinRuntime", "queues have no minimum run time", notes);
        spec.leave("reclaimMinRuntime", "queues have no minimum run time", notes);
        let limited = amounts(&mut group, spec.below("resources")?, &mut used, notes)?;
        spec.rest(notes);
        all.push(Read { group, parent, has_priority, limited });
    }
    let mut queues = Queues::default();
    let mut places: HashMap<String, usize> = HashMap::new();
    let some_priority = all.iter().any(|read| read.has_priority);
    let mut above = Vec::new();
    for Read { mut group, parent, has_priority, limited } in all {
        if some_priority && !has_priority {
            group.set("priority", Setting::Number(PRIORITY.to_owned()));
        }
        close(&mut group, limited, used, notes);
        let name = group.name.clone();
        if name == "root" {
            notes.add(&group.place, "the queue 'root' is called 'root-queue' here: root is the cluster itself");
            group.name = "root-queue".to_owned();
        }
        let at = queues.add(group)?;
        places.entry(name).or_insert(at);
        above.extend(parent.map(|(parent, place)| (at, parent, place)));
    }
    queues.set_parents(&places, above, "spec.parentQueue", "the name of one")?;
    Ok(queues)
}

/// Reads the amounts and the weight of a group. Returns the resources with a limit, and marks the specified resources in `used`.
fn amounts(
    group: &mut QueueGroup,
    mut fields: Fields,
    used: &mut [bool; 3],
    notes: &mut Diagnostics,
) -> Result<[bool; 3]> {
    let mut limited = [false; 3];
    let (mut deserved, mut limit, mut lend) = (Quantities::default(), Quantities::default(), Quantities::default());
    let mut weights: Vec<(&str, String)> = Vec::new();
    let place = fields.place();
    for (at, (key, resource)) in resources().into_iter().enumerate() {
        if fields.get(key).is_none() {
            continue;
        }
        used[at] = true;
        let mut of = fields.below(key)?;
        if let Some(written) = of.quantity("quota")? {
            match bounded(&written)? {
                Some(quantity) => deserved.set(&resource.dim, written.amount(&resource, &quantity, notes)?),
                None => deserved.set_unlimited(&resource.dim),
            }
        }
        if let Some(written) = of.quantity("limit")? {
            limited[at] = true;
            if let Some(quantity) = bounded(&written)? {
                limit.set(&resource.dim, written.amount(&resource, &quantity, notes)?);
            }
        }
        if let Some(written) = of.quantity("lendingLimit")? {
            lend.set(&resource.dim, written.amount(&resource, &written.number()?, notes)?);
        }
        let weight = match of.quantity("overQuotaWeight")? {
            Some(written) => written.digits(&written.number()?)?,
            None => "0".to_owned(),
        };
        weights.push((key, weight));
        of.rest(notes);
    }
    fields.rest(notes);
    // The weight of the last resource is used. GPUs are last, because KAI schedules GPU clusters.
    if let Some((key, weight)) = weights.last() {
        if weights.iter().any(|(_, other)| other != weight) {
            let listed: Vec<String> = weights.iter().map(|(key, weight)| format!("{key} {weight}")).collect();
            let message =
                format!("overQuotaWeight differs ({}): a group has one weight, that of {key}", listed.join(", "));
            notes.add(place, message);
        }
        group.set("weight", Setting::Number(weight.clone()));
    }
    group.set_amounts("deserved", deserved);
    group.set_amounts("limit", limit);
    group.set_amounts("lend_limit", lend);
    Ok(limited)
}

/// Parses a number; `None` for -1, which means no bound. Errors: the text is not a number.
fn bounded(written: &Written) -> Result<Option<Quantity>> {
    let is_endless = written.text.strip_prefix('-').is_some_and(|one| Quantity::number(one) == Quantity::number("1"));
    if is_endless { Ok(None) } else { written.number().map(Some) }
}

/// Sets missing limits to 0, for every resource that any queue specifies.
fn close(group: &mut QueueGroup, limited: [bool; 3], used: [bool; 3], notes: &mut Diagnostics) {
    let mut limit = match group.get("limit") {
        Some(Setting::Amounts(limit)) => limit.clone(),
        _ => Quantities::default(),
    };
    for (at, (key, resource)) in resources().into_iter().enumerate() {
        if used[at] && !limited[at] {
            notes.add(&group.place, format!("without a limit of {key} the queue's limit is 0; -1 would be no limit"));
            limit.set(&resource.dim, 0);
        }
    }
    group.set_amounts("limit", limit);
}
