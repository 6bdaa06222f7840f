//! Trees of a quota file for labels: the minimums and maximums of groups on the machines with a label.
//!
//! Groups, their parents and their users are those of the default tree; a tree for a label contains only the limits on the machines with
//! the label. There is a tree per label, and a group has access to a label only if the file grants it, as with the node labels of YARN's
//! capacity scheduler (`accessible-node-labels`). The rule for a machine with several labels is ours.

use std::collections::HashMap;

use super::super::values::string;
use super::checks;
use super::file::{GroupEntry, LabelTree, QuotaFile, shares};
use plimsoll_base::error::{Result, did_you_mean};
use plimsoll_base::tree::{Entry, Node};
use plimsoll_sim::books::Partition;
use plimsoll_sim::cluster::is_label;

const OF_LABEL: [&str; 2] = ["name", "group"];
const OF_GROUP: [&str; 5] = ["name", "ratio", "min", "max", "lend"];

/// Reads the trees for labels, with these groups.
pub(super) fn read(top: &Node, groups: &[GroupEntry]) -> Result<Vec<LabelTree>> {
    const EXPECTED: &str = "expected tables [[label]] with a name and groups";
    let Some(Entry { node, .. }) = top.get("label") else { return Ok(Vec::new()) };
    let mut trees: Vec<LabelTree> = Vec::new();
    for node in node.list().ok_or_else(|| node.place.wrong("label", EXPECTED))? {
        node.table().ok_or_else(|| node.place.wrong("label", EXPECTED))?;
        let tree = label(node, groups)?;
        if let Some(first) = trees.iter().find(|other| other.name == tree.name) {
            let problem = format!("'{}' has a tree on line {} already; expected one", tree.name, first.place.line());
            return Err(tree.place.wrong("label.name", problem));
        }
        if trees.len() == Partition::LABELS {
            let problem = format!("'{}' is one too many; expected at most {} labels", tree.name, Partition::LABELS);
            return Err(tree.place.wrong("label.name", problem));
        }
        trees.push(tree);
    }
    Ok(trees)
}

fn label(table: &Node, groups: &[GroupEntry]) -> Result<LabelTree> {
    table.known(&OF_LABEL, "", " of a label")?;
    let missing = || table.place.wrong("label.name", "is missing; expected a label");
    let node = &table.get("name").ok_or_else(missing)?.node;
    let (name, place) = (string("label.name", node)?, node.place.clone());
    if !is_label(&name) {
        let problem = format!(
            "'{name}' is no label; expected the name of a label (letters, digits and _-.:/=), not an expression: task sets \
             whose expression requires the label are charged to it"
        );
        return Err(place.wrong("label.name", problem));
    }
    let under = |group: &GroupEntry| GroupEntry {
        name: group.name.clone(),
        parent: group.parent,
        lend: true,
        ..GroupEntry::default()
    };
    let mut tree = LabelTree { name, place, groups: groups.iter().map(under).collect() };
    let places: HashMap<&str, usize> = groups.iter().enumerate().map(|(at, group)| (&*group.name, at)).collect();
    let expected = format!("expected a [[label.group]] for each group that may use machines of {}", tree.name);
    let entries = table.get("group").and_then(|entry| entry.node.list()).filter(|list| !list.is_empty());
    let missing = || tree.place.wrong("label.group", format!("is missing; {expected}"));
    for node in entries.ok_or_else(missing)? {
        entry(node, &mut tree, &places, &expected)?;
    }
    for entry in tree.groups.iter().filter(|entry| entry.stated) {
        let above = entry.parent.map(|parent| &tree.groups[parent]);
        if let Some(above) = above.filter(|above| !above.stated) {
            let problem = format!(
                "'{}' is under '{}', which has no group here and thus no part of {}; expected one for it too",
                entry.name, above.name, tree.name
            );
            return Err(entry.place.wrong("label.group", problem));
        }
    }
    checks::amounts(&tree.groups)?;
    Ok(tree)
}

/// Reads the entry of one group in a tree.
fn entry(table: &Node, tree: &mut LabelTree, places: &HashMap<&str, usize>, expected: &str) -> Result<()> {
    table.table().ok_or_else(|| table.place.wrong("label.group", expected))?;
    table.known(&OF_GROUP, "", " of a label's group, which has the parent and users of the default tree")?;
    let missing = || table.place.wrong("label.group.name", "is missing; expected a group's name");
    let node = &table.get("name").ok_or_else(missing)?.node;
    let name = string("label.group.name", node)?;
    let Some(&at) = places.get(name.as_str()) else {
        let hint = did_you_mean(&name, places.keys().copied());
        let problem = format!("'{name}' is no group{hint}; expected the name of a [[group]]");
        return Err(node.place.wrong("label.group.name", problem));
    };
    let entry = &mut tree.groups[at];
    if entry.stated {
        let problem = format!("'{name}' is already on line {}; expected each group once per label", entry.place.line());
        return Err(node.place.wrong("label.group.name", problem));
    }
    entry.place = node.place.clone();
    shares(table, entry)
}

impl QuotaFile {
    /// Checks that machines carry the labels of the trees. Errors, with the line: no machine has the label, or the cluster is a pool
    /// without machines.
    pub(super) fn check_labels(&self, known: Option<&[&str]>) -> Result<()> {
        let wrong = |tree: &LabelTree, problem: String| Err(tree.place.wrong("label.name", problem));
        for tree in &self.labels {
            match known {
                None => {
                    let problem = format!("'{}': a pooled cluster has no machines that carry labels", tree.name);
                    return wrong(tree, format!("{problem}; expected another placement"));
                }
                Some(known) if !known.contains(&&*tree.name) => {
                    let hint = did_you_mean(&tree.name, known.iter().copied());
                    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                    let expected = format!("a label that machines carry or machine events bring: {known}");
                    return wrong(
                        tree,
                        format!("'{}' is no label of any machine{hint}; expected {expected}", tree.name),
                    );
                }
                Some(_) => {}
            }
        }
        Ok(())
    }
}
