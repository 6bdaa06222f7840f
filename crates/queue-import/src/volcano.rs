//! Volcano: queues with a weight, or with deserved, guaranteed and maximum amounts.
//!
//! The queue `root` is the cluster itself.
//!
//! Source: Volcano, apis, scheduling.volcano.sh/v1beta1 (Queue).

use std::collections::HashMap;

use crate::diagnostics::Diagnostics;
use crate::group::{QueueGroup, Queues, Setting};
use crate::objects::{Fields, Written, objects};
use crate::quantity::{Quantities, Resource};
use crate::{FormatRow, ParsedSource, property};
use plimsoll_base::error::Result;
use plimsoll_base::tree::brief;

pub static ROW: FormatRow = FormatRow {
    name: "volcano",
    about: "Volcano's Queues",
    layout: "Queue (scheduling.volcano.sh), in YAML or JSON",
    properties: &[
        property("parent", "parent", "", "the queue `root` is the cluster: its own settings give warnings"),
        property("weight", "weight", "", ""),
        property("dequeueStrategy", "order", "", "`fifo` is `strict-fifo`, `traverse` is `best-effort-fifo`"),
        property("priority", "priority", "", ""),
        property("deserved", "deserved", "", ""),
        property("guarantee", "guarantee", "", "the key `resource` of `guarantee`"),
        property("capability", "capability", "", ""),
        property("reclaimable", "reclaimable", "", ""),
    ],
    ours: &[
        ("min_available", "Volcano defines it per job (PodGroup)"),
        ("[policy] actions", "in the scheduler's configuration"),
        ("[policy] gang_preemptable", "in the scheduler's configuration"),
        ("[policy] drf_preemptable", "in the scheduler's configuration"),
    ],
    policies: &["volcano-capacity", "volcano-proportion", "volcano-drf"],
    source: "Volcano, scheduling.volcano.sh/v1beta1",
    recognises: |source| source.has_api(&[API]),
    read,
};

const API: &str = "scheduling.volcano.sh";

const ORDER: [(&str, &str); 2] = [("fifo", "strict-fifo"), ("traverse", "best-effort-fifo")];

fn read(sources: &[ParsedSource], notes: &mut Diagnostics) -> Result<Queues> {
    let mut queues = Queues::default();
    let mut places: HashMap<&str, usize> = HashMap::new();
    let mut above = Vec::new();
    let all = objects(sources)?;
    for object in &all {
        if (object.api, object.kind) != (API, "Queue") {
            object.leave(notes);
            continue;
        }
        let head = object.head(notes)?;
        let mut spec = object.spec()?;
        if head.name == "root" {
            for key in ["weight", "capability", "deserved", "guarantee", "priority", "reclaimable"] {
                spec.leave(key, "root is the cluster itself", notes);
            }
            spec.rest(notes);
            continue;
        }
        let mut group = QueueGroup::new(head.name, head.place);
        spec.integer("weight")?.into_iter().for_each(|digits| group.set("weight", Setting::Number(digits)));
        spec.integer("priority")?.into_iter().for_each(|digits| group.set("priority", Setting::Number(digits)));
        spec.truth("reclaimable")?.into_iter().for_each(|truth| group.set("reclaimable", Setting::Truth(truth)));
        spec.choice("dequeueStrategy", &ORDER)?.into_iter().for_each(|word| group.set("order", Setting::Word(word)));
        for key in ["deserved", "capability"] {
            group.set_amounts(key, amounts(&spec.below(key)?, notes)?);
        }
        let mut guarantee = spec.below("guarantee")?;
        group.set_amounts("guarantee", amounts(&guarantee.below("resource")?, notes)?);
        guarantee.rest(notes);
        let parent = spec.text("parent")?.filter(|(parent, _)| *parent != "root");
        spec.rest(notes);
        let at = queues.add(group)?;
        places.entry(head.name).or_insert(at);
        above.extend(parent.map(|(parent, place)| (at, parent, place)));
    }
    queues.set_parents(&places, above, "spec.parent", "the name of one, or root")?;
    Ok(queues)
}

/// Reads a list of resources. Errors: an invalid amount, or two resources with one name.
fn amounts(fields: &Fields, notes: &mut Diagnostics) -> Result<Quantities> {
    let mut amounts = Quantities::default();
    for entry in fields.entries() {
        let resource = Resource::kubernetes(&entry.key);
        let path = fields.path_of(&brief(&entry.key));
        let written = Written::scalar(&entry.node, path.clone())?;
        if amounts.get(&resource.dim).is_some() {
            let problem = format!(
                "is the second resource with the key '{}' in the file of queues; expected one",
                resource.dim.name
            );
            return Err(entry.place.wrong(&path, problem));
        }
        amounts.set(&resource.dim, written.amount(&resource, &written.kubernetes()?, notes)?);
    }
    Ok(amounts)
}
