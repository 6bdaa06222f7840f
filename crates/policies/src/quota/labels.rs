//! Trees of a quota file for labels: the minimums and maximums of groups on the machines that carry one.
//!
//! Groups, their parents and their users are those of the default tree; a tree for a label says only how much each may
//! have there. That trees go by label, and that a group has nothing of a label unless the file says so, is as in the
//! node labels of YARN's capacity scheduler (`accessible-node-labels`); the rule for a machine with several labels is
//! ours.

use std::collections::HashMap;

use super::file::{GroupEntry, Item, LabelTree, QuotaFile, Reader, Table, wrong};
use plimsoll_base::error::{Result, nearest};
use plimsoll_sim::books::Partition;
use plimsoll_sim::cluster::is_label;

const OF_LABEL: [&str; 2] = ["name", "group"];
const OF_GROUP: [&str; 5] = ["name", "ratio", "min", "max", "lend"];

impl Reader<'_> {
    /// The trees for labels, of these groups.
    pub(super) fn labels(&self, top: &Table, groups: &[GroupEntry]) -> Result<Vec<LabelTree>> {
        const EXPECTED: &str = "expected tables [[label]] with a name and groups";
        let Some(item) = top.get("label") else { return Ok(Vec::new()) };
        let list = item.get_ref().as_array();
        let list = list.ok_or_else(|| self.wrong(self.line(item.span().start), "label", EXPECTED))?;
        let mut trees: Vec<LabelTree> = Vec::new();
        for item in list.iter() {
            let line = self.line(item.span().start);
            let table = item.get_ref().as_table().ok_or_else(|| self.wrong(line, "label", EXPECTED))?;
            let tree = self.label(line, table, groups)?;
            if let Some(first) = trees.iter().find(|other| other.name == tree.name) {
                let problem = format!("'{}' has a tree on line {} already; expected one", tree.name, first.line);
                return Err(self.wrong(tree.line, "label.name", problem));
            }
            if trees.len() == Partition::LABELS {
                let problem = format!("'{}' is one too many; expected at most {} labels", tree.name, Partition::LABELS);
                return Err(self.wrong(tree.line, "label.name", problem));
            }
            trees.push(tree);
        }
        Ok(trees)
    }

    fn label(&self, line: usize, table: &Table, groups: &[GroupEntry]) -> Result<LabelTree> {
        self.known(table, &OF_LABEL, " of a label")?;
        let item = table.get("name").ok_or_else(|| self.wrong(line, "label.name", "is missing; expected a label"))?;
        let (name, line) = (self.string("label.name", item)?, self.line(item.span().start));
        if !is_label(&name) {
            let problem = format!(
                "'{name}' is no label; expected the name of one, of letters, digits and _-.:/=, and no expression: task sets \
                 whose expression requires it are charged to it"
            );
            return Err(self.wrong(line, "label.name", problem));
        }
        let under = |group: &GroupEntry| GroupEntry {
            name: group.name.clone(),
            parent: group.parent,
            lend: true,
            ..GroupEntry::default()
        };
        let mut tree = LabelTree { name, line, groups: groups.iter().map(under).collect() };
        let places: HashMap<&str, usize> = groups.iter().enumerate().map(|(at, group)| (&*group.name, at)).collect();
        let expected = format!("expected a [[label.group]] for each group that may use machines of {}", tree.name);
        let entries = table.get("group").and_then(|item| item.get_ref().as_array()).filter(|list| !list.is_empty());
        for item in entries.ok_or_else(|| self.wrong(line, "label.group", format!("is missing; {expected}")))?.iter() {
            self.entry(item, &mut tree, &places, &expected)?;
        }
        for entry in tree.groups.iter().filter(|entry| entry.stated) {
            let above = entry.parent.map(|parent| &tree.groups[parent]);
            if let Some(above) = above.filter(|above| !above.stated) {
                let problem = format!(
                    "'{}' is under '{}', which has no group here and so nothing of {}; expected one for it too",
                    entry.name, above.name, tree.name
                );
                return Err(self.wrong(entry.line, "label.group", problem));
            }
        }
        self.amounts(&tree.groups)?;
        Ok(tree)
    }

    /// A tree's description of one group.
    fn entry(&self, item: &Item, tree: &mut LabelTree, places: &HashMap<&str, usize>, expected: &str) -> Result<()> {
        let line = self.line(item.span().start);
        let table = item.get_ref().as_table().ok_or_else(|| self.wrong(line, "label.group", expected))?;
        self.known(table, &OF_GROUP, " of a label's group, whose parent and users are those of the default tree")?;
        let missing = || self.wrong(line, "label.group.name", "is missing; expected a group's name");
        let item = table.get("name").ok_or_else(missing)?;
        let (name, line) = (self.string("label.group.name", item)?, self.line(item.span().start));
        let Some(&at) = places.get(name.as_str()) else {
            let hint = nearest(&name, places.keys().copied());
            let hint = hint.map(|hint| format!(" (did you mean '{hint}'?)")).unwrap_or_default();
            let problem = format!("'{name}' is no group{hint}; expected the name of a [[group]]");
            return Err(self.wrong(line, "label.group.name", problem));
        };
        let entry = &mut tree.groups[at];
        if entry.stated {
            let problem = format!("'{name}' stands on line {} too; expected each group once a label", entry.line);
            return Err(self.wrong(line, "label.group.name", problem));
        }
        entry.line = line;
        self.shares(table, entry)
    }
}

impl QuotaFile {
    /// Errors: a label with a tree that is not among those of the machines, or that there are no machines, with its line.
    pub(super) fn check_labels(&self, known: Option<&[&str]>) -> Result<()> {
        let wrong = |tree: &LabelTree, problem: String| Err(wrong(&self.path, tree.line, "label.name", problem));
        for tree in &self.labels {
            match known {
                None => {
                    let problem = format!("'{}': a pooled cluster has no machines that carry labels", tree.name);
                    return wrong(tree, format!("{problem}; expected another placement"));
                }
                Some(known) if !known.contains(&&*tree.name) => {
                    let hint = nearest(&tree.name, known.iter().copied());
                    let hint = hint.map(|hint| format!(" (did you mean '{hint}'?)")).unwrap_or_default();
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
