//! YARN's fair scheduler: the nested queues of an allocation file.
//!
//! A queue without a preemption threshold inherits the threshold of its parent. A queue without a maximum share has the default for all
//! queues, if the file defines one. The written file repeats inherited and default values for every queue.
//!
//! Source: Hadoop YARN, FairScheduler (the allocation file).

use std::collections::HashSet;

use crate::diagnostics::Diagnostics;
use crate::group::{QueueGroup, Queues, Setting};
use crate::quantity::Quantities;
use crate::xml::Element;
use crate::yarn::{self, ROOT, names, pairs, truth, words};
use crate::{FormatRow, ParsedSource, property};
use plimsoll_base::error::Result;
use plimsoll_base::tree::brief;

pub static ROW: FormatRow = FormatRow {
    name: "yarn-fair",
    about: "the queues of YARN's fair scheduler",
    layout: "the allocation file (fair-scheduler.xml): <allocations> with <queue>s",
    properties: &[
        property("weight", "weight", "", ""),
        property("minResources", "min", "", "`1024 mb, 4 vcores` or `memory-mb=1024, vcores=4`"),
        property("maxResources", "max", "", "in the notations of `minResources`"),
        property("queueMaxResourcesDefault", "max", "", "applies to every queue without `maxResources`"),
        property(
            "allowPreemptionFrom",
            "reclaimable",
            "",
            "also applies to the queues under the queue; for the root see the next row",
        ),
        property("allowPreemptionFrom", "[policy] preemption", "", "of the root"),
        property(
            "fairSharePreemptionThreshold",
            "preemption_threshold",
            "",
            "also applies to the queues under the queue, unless they have their own",
        ),
        property(
            "defaultFairSharePreemptionThreshold",
            "preemption_threshold",
            "",
            "applies to every queue without a threshold of its own or of a queue above",
        ),
    ],
    ours: &[],
    policies: &["yarn-fair"],
    source: "Hadoop YARN, FairScheduler",
    recognises: |source| source.root("allocations").is_ok(),
    read,
};

/// A queue, its path, and the index of its parent.
struct QueueElement<'n> {
    element: &'n Element,
    path: String,
    parent: Option<usize>,
}

/// The preemption threshold of a queue.
const THRESHOLD: &str = "fairSharePreemptionThreshold";
/// The default preemption threshold.
const DEFAULT_THRESHOLD: &str = "defaultFairSharePreemptionThreshold";
/// Whether containers of a queue and of its descendants may be preempted.
const PREEMPTIBLE: &str = "allowPreemptionFrom";
/// The default maximum share.
const DEFAULT_MAX: &str = "queueMaxResourcesDefault";

fn read(sources: &[ParsedSource], notes: &mut Diagnostics) -> Result<Queues> {
    let mut all: Vec<QueueElement> = Vec::new();
    let (mut threshold, mut max) = (None, None);
    let mut queues = Queues::default();
    // The file may omit the element of the root. Its child elements are read after all others.
    let mut roots: Vec<&Element> = Vec::new();
    for source in sources {
        for element in &source.root("allocations")?.children {
            match element.name.as_str() {
                "queue" | "pool" if name_of(element)? == ROOT => roots.push(element),
                "queue" | "pool" => collect(element, ROOT, None, &mut all)?,
                DEFAULT_THRESHOLD => threshold = Some(number(element)?),
                DEFAULT_MAX => max = amounts(element, notes)?,
                name => notes.add(&element.place, format!("<{}> is not carried over", brief(name))),
            }
        }
    }
    for root in roots {
        for element in &root.children {
            match element.name.as_str() {
                "queue" | "pool" => collect(element, ROOT, None, &mut all)?,
                THRESHOLD => threshold = Some(number(element)?),
                PREEMPTIBLE => match truth(&element.text, PREEMPTIBLE, &element.place)? {
                    // For the root this covers all queues.
                    Setting::Truth(false) => queues.policy = vec![("preemption", Setting::Truth(false))],
                    _ => queues.policy.clear(),
                },
                name => notes.add(&element.place, format!("<{}> of the root is not carried over", brief(name))),
            }
        }
    }
    let mut known: HashSet<&str> = HashSet::new();
    for QueueElement { element, path, .. } in &all {
        if !known.insert(path) {
            return Err(element.place.wrong("name", format!("the queue '{}' is given twice", brief(path))));
        }
    }
    let paths: Vec<String> = all.iter().map(|queue| queue.path.clone()).collect();
    for (QueueElement { element, parent, .. }, name) in all.iter().zip(names(&paths)) {
        let mut group = QueueGroup::new(&name, &element.place);
        group.parent = *parent;
        let mut own_max = None;
        let mut own_threshold = None;
        for child in &element.children {
            match child.name.as_str() {
                "queue" | "pool" => {}
                "weight" => group.set("weight", number(child)?),
                "minResources" => group.set_amounts("min", amounts(child, notes)?.unwrap_or_default()),
                "maxResources" => own_max = Some(amounts(child, notes)?),
                THRESHOLD => own_threshold = Some(number(child)?),
                PREEMPTIBLE => group.set("reclaimable", truth(&child.text, PREEMPTIBLE, &child.place)?),
                name => notes.add(&child.place, format!("<{}> is not carried over", brief(name))),
            }
        }
        let above = parent.map(|at| queues.groups[at].get("preemption_threshold").cloned());
        let inherited = above.unwrap_or_else(|| threshold.clone());
        own_threshold.or(inherited).into_iter().for_each(|setting| group.set("preemption_threshold", setting));
        own_max.unwrap_or_else(|| max.clone()).into_iter().for_each(|amounts| group.set_amounts("max", amounts));
        queues.add(group)?;
    }
    Ok(queues)
}

/// Returns the name of a queue. Errors: no name, or a name with a dot.
fn name_of(element: &Element) -> Result<&str> {
    let name = element.attribute("name").map(str::trim).unwrap_or_default();
    match name.is_empty() || name.contains('.') {
        false => Ok(name),
        true => Err(yarn::wrong_name(&element.place, "name", name)),
    }
}

/// Adds a queue, followed by its descendants, to `all`.
fn collect<'n>(
    element: &'n Element,
    above: &str,
    parent: Option<usize>,
    all: &mut Vec<QueueElement<'n>>,
) -> Result<()> {
    let path = format!("{above}.{}", name_of(element)?);
    let at = all.len();
    all.push(QueueElement { element, path: path.clone(), parent });
    let below = element.children.iter().filter(|child| matches!(child.name.as_str(), "queue" | "pool"));
    below.into_iter().try_for_each(|child| collect(child, &path, Some(at), all))
}

fn number(element: &Element) -> Result<Setting> {
    yarn::number(&element.text, element.name.clone(), &element.place)
}

/// Parses amounts in one of the two notations; returns `None`, with a note, for percentages of the cluster.
fn amounts(element: &Element, notes: &mut Diagnostics) -> Result<Option<Quantities>> {
    let Element { name, place, text, .. } = element;
    if text.contains('%') && !text.contains('=') {
        let message =
            format!("<{name}> '{}' is not carried over: it is a part of a cluster of unknown size", brief(text));
        notes.add(place, message);
        return Ok(None);
    }
    let read = if text.contains('=') { pairs } else { words };
    read(text, name, place, notes).map(Some)
}
