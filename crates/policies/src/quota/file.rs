//! Reads a quota file. Unknown keys are errors, numbers are read exactly, and every error has its place in the file. See docs/policies.md
//! for the format.
//!
//! Checks that compare several groups are in `checks`, the trees for labels in `labels`, and the separate list of users in `roster`. The
//! resources and labels of the file are compared with those of a run when the policy is built.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::super::values::{connect, number, refused, string, truth};
use super::{checks, labels, roster};
use plimsoll_base::error::Result;
use plimsoll_base::named;
use plimsoll_base::rows::read_text;
use plimsoll_base::tree::{Entry, Node, Place};
use plimsoll_base::units::{Dim, Rounding, Span, span};
pub use plimsoll_fair::water::Semantics as Variant;

/// The number 1 in millionths, the unit of ratios.
pub(super) const RATIO_ONE: u64 = 1_000_000;

/// The largest ratio, in millionths.
const RATIO_MAX: u64 = 1_000_000 * RATIO_ONE;

named! {
    /// The order of users inside a group, after priority.
    GroupOrder {
        Fifo "fifo": "The earliest task",
        Fair "fair": "The user with the least dominant share",
    }
}

/// The rule for a group that is above its quota because another group requests the amount that it lent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reclaim {
    /// No reclaim: the quota of the group is at least its allocation.
    Never,
    /// The group launches nothing until some of its tasks have ended and it is below its quota.
    #[default]
    Wait,
    /// As `Wait`. In addition, if the group has been above its quota for this span without a break, its tasks are stopped: the least
    /// urgent first, then the latest start. Stopped tasks wait again, and their work is lost.
    KillAfter(Span),
}

/// The content of a quota file, checked except for the parts that depend on the run's resources and users.
#[derive(Clone, Debug)]
pub struct QuotaFile {
    /// The source: the quota file, or the plan that contains the groups.
    pub path: PathBuf,
    /// The files that were read for it; empty for groups in a plan without a list of users.
    pub files: Vec<PathBuf>,
    /// The rule that combines minimum and ratio.
    pub variant: Variant,
    /// The order of users inside a group.
    pub inside: GroupOrder,
    /// The rule for groups above their quota.
    pub reclaim: Reclaim,
    /// The groups in the order of the file.
    pub groups: Vec<GroupEntry>,
    /// Labels with a tree of their own, in the order of the file.
    pub labels: Vec<LabelTree>,
}

/// The minimums and maximums of groups on the machines that carry a label.
#[derive(Clone, Debug, Default)]
pub struct LabelTree {
    /// The label.
    pub name: String,
    /// The place of its name.
    pub place: Place,
    /// The groups of the tree, as many as in the default tree and in the same order.
    pub groups: Vec<GroupEntry>,
}

/// A group in a quota file.
#[derive(Clone, Debug, Default)]
pub struct GroupEntry {
    /// The name.
    pub name: String,
    /// The place of the name, if the tree has an entry for the group.
    pub place: Place,
    /// Whether the tree has an entry for the group; otherwise its quota in the tree is zero.
    pub stated: bool,
    /// The index of the parent group in the file; `None` directly under the cluster.
    pub parent: Option<usize>,
    /// The ratio, in millionths, of resources that are not in `ratios`.
    pub ratio: u64,
    /// The ratios by resource, in millionths.
    pub ratios: Vec<(Amount, u64)>,
    /// The guaranteed amounts, in base units.
    pub min: Vec<(Amount, u64)>,
    /// The largest amounts that the group may use, in base units.
    pub max: Vec<(Amount, u64)>,
    /// Whether other groups may use the part of the minimum that is not requested.
    pub lend: bool,
    /// The users: names, or beginnings of names followed by `*`.
    pub users: Vec<String>,
    /// Whether users that no group names belong to this group.
    pub default: bool,
}

/// A resource as a key spells it, and the place of the key.
#[derive(Clone, Debug, PartialEq)]
pub struct Amount {
    /// The resource.
    pub dim: Dim,
    /// The key.
    pub key: String,
    /// The place of the key.
    pub place: Place,
}

const TOP: [&str; 6] = ["variant", "inside", "reclaim", "users", "group", "label"];
const OF_GROUP: [&str; 8] = ["name", "parent", "ratio", "min", "max", "lend", "users", "default"];

/// Reads the file. Errors: `Error::Io`, and `Error::Placed` with the place, the problem and the values that would be accepted.
pub fn read(path: &Path) -> Result<QuotaFile> {
    let mut file = parse(path, &read_text(path)?)?;
    file.files.insert(0, path.to_owned());
    Ok(file)
}

/// Reads the text of a file; the list of users is in the same folder. Errors: as [`read`].
pub fn parse(path: &Path, text: &str) -> Result<QuotaFile> {
    let tree = Node::toml(&Place::whole_text(path, text))?;
    file(&tree, &tree.place, path.parent().unwrap_or(Path::new("")))
}

impl QuotaFile {
    /// Reads the quota groups in a plan, by name: the tables `[quota.NAME]`, with the keys of a quota file. Files that the tables name are
    /// in `folder`. Errors: as [`QuotaFile::read`].
    pub fn in_plan(quotas: &Entry, folder: &Path) -> Result<Vec<(String, QuotaFile)>> {
        let wrong = |place: &Place| place.wrong("quota", "expected tables with names, such as [quota.teams]");
        let tables = quotas.node.table().ok_or_else(|| wrong(&quotas.place))?;
        let one = |entry: &Entry| match entry.node.table() {
            Some(_) => Ok((entry.key.clone(), file(&entry.node, &entry.place, folder)?)),
            None => Err(wrong(&entry.place)),
        };
        tables.iter().map(one).collect()
    }
}

/// Reads the content of a table; `place` is the place of its name. The list of users is in `folder`.
fn file(top: &Node, place: &Place, folder: &Path) -> Result<QuotaFile> {
    top.known(&TOP, "", "")?;
    let variant = choice(top, "variant", Variant::ALL)?;
    let inside = choice(top, "inside", GroupOrder::ALL)?;
    let reclaim = reclaim(top)?;
    let (groups, parents) = groups(top, place)?;
    let (path, files, labels) = (place.file().to_owned(), Vec::new(), Vec::new());
    let mut file = QuotaFile { path, files, variant, inside, reclaim, groups, labels };
    let named: Vec<(&str, &Place)> = file.groups.iter().map(|group| (group.name.as_str(), &group.place)).collect();
    let parents = connect(&named, &parents)?;
    file.groups.iter_mut().zip(parents).for_each(|(group, parent)| group.parent = parent);
    checks::users(&file)?;
    checks::amounts(&file.groups)?;
    file.labels = labels::read(top, &file.groups)?;
    if let Some(entry) = top.get("users") {
        let list = folder.join(string("users", &entry.node)?);
        roster::read(&list, &mut file)?;
        file.files.push(list);
    }
    Ok(file)
}

fn choice<T: Copy + Default>(top: &Node, key: &str, all: &[(&str, T, &str)]) -> Result<T> {
    let Some(Entry { node, .. }) = top.get(key) else { return Ok(T::default()) };
    all.iter().find(|(name, ..)| Some(*name) == node.text()).map(|(_, value, _)| *value).ok_or_else(|| {
        let names: Vec<String> = all.iter().map(|(name, ..)| format!("\"{name}\"")).collect();
        refused(key, node, &names.join(" or "))
    })
}

/// Reads the rule for groups above their quota.
fn reclaim(top: &Node) -> Result<Reclaim> {
    let Some(Entry { node, .. }) = top.get("reclaim") else { return Ok(Reclaim::default()) };
    let after = |text: &str| text.strip_prefix("kill-after:").and_then(|text| span(text).ok()).map(Reclaim::KillAfter);
    match node.text() {
        Some("never") => Ok(Reclaim::Never),
        Some("wait") => Ok(Reclaim::Wait),
        text => text.and_then(after).ok_or_else(|| {
            refused("reclaim", node, "\"never\", \"wait\" or \"kill-after:SPAN\", such as \"kill-after:60s\"")
        }),
    }
}

/// Reads the groups; returns them, and the name of each group's parent with its place.
#[expect(clippy::type_complexity, reason = "read and consumed by one caller")]
fn groups<'n>(top: &'n Node, place: &Place) -> Result<(Vec<GroupEntry>, Vec<Option<(String, &'n Place)>>)> {
    const EXPECTED: &str = "expected at least one [[group]] with a name";
    let Some(entry) = top.get("group") else {
        return Err(place.wrong("group", format!("is missing; {EXPECTED}")));
    };
    let list = entry.node.list().filter(|list| !list.is_empty());
    let list = list.ok_or_else(|| entry.node.place.wrong("group", EXPECTED))?;
    let (mut groups, mut parents) = (Vec::new(), Vec::new());
    let mut known: HashMap<String, usize> = HashMap::new();
    for node in list {
        node.table().ok_or_else(|| node.place.wrong("group", EXPECTED))?;
        let (group, parent) = group(node)?;
        if let Some(first) = known.insert(group.name.clone(), groups.len()) {
            let first = groups.get(first).map_or(0, |group: &GroupEntry| group.place.line());
            let problem = format!("'{}' is already on line {first}; expected unique names", group.name);
            return Err(group.place.wrong("name", problem));
        }
        groups.push(group);
        parents.push(parent);
    }
    Ok((groups, parents))
}

fn group(table: &Node) -> Result<(GroupEntry, Option<(String, &Place)>)> {
    table.known(&OF_GROUP, "", " of a group")?;
    let name = table.get("name").ok_or_else(|| table.place.wrong("name", "is missing; expected a group's name"))?;
    let (name, place) = (string("name", &name.node)?, name.node.place.clone());
    if name.is_empty() || name == "root" {
        let problem = format!("'{name}' is not accepted; expected a name, and not root: that is the cluster");
        return Err(place.wrong("name", problem));
    }
    let parent = match table.get("parent") {
        Some(Entry { node, .. }) => Some((string("parent", node)?, &node.place)),
        None => None,
    };
    let mut group = GroupEntry { name, place, ..GroupEntry::default() };
    shares(table, &mut group)?;
    if let Some(entry) = table.get("default") {
        group.default = truth("default", &entry.node)?;
    }
    if let Some(Entry { node, .. }) = table.get("users") {
        let expected = "expected a list of users, such as [\"a\", \"b\", \"batch-*\"]";
        let list = node.list().ok_or_else(|| node.place.wrong("users", expected))?;
        let name = |item| string("users", item).map(|name| name.trim().to_owned());
        group.users = list.iter().map(name).collect::<Result<_>>()?;
    }
    Ok((group, parent.filter(|(name, _)| name != "root")))
}

/// Reads the ratio, minimum and maximum of a group: for the cluster, or for the machines of a label.
pub(super) fn shares(table: &Node, group: &mut GroupEntry) -> Result<()> {
    (group.stated, group.ratio, group.lend) = (true, RATIO_ONE, true);
    match table.get("ratio") {
        Some(entry) if entry.node.table().is_some() => group.ratios = amounts("ratio", &entry.node, true)?,
        Some(entry) => group.ratio = ratio("ratio", &entry.node)?,
        None => {}
    }
    for (key, of) in [("min", &mut group.min), ("max", &mut group.max)] {
        if let Some(entry) = table.get(key) {
            *of = amounts(key, &entry.node, false)?;
        }
    }
    if let Some(entry) = table.get("lend") {
        group.lend = truth("lend", &entry.node)?;
    }
    Ok(())
}

fn ratio(key: &str, node: &Node) -> Result<u64> {
    // Rounded up, so that a ratio above 0 remains above 0.
    let ratio = number(key, node, (RATIO_ONE, Rounding::Up), "a number of at least 0")?;
    if ratio > RATIO_MAX {
        let problem = format!("{} is too large; expected a number of at least 0, and at most 1000000", node.shown());
        return Err(node.place.wrong(key, problem));
    }
    Ok(ratio)
}

/// Reads a table of resources: amounts in base units, or ratios.
fn amounts(key: &str, node: &Node, ratios: bool) -> Result<Vec<(Amount, u64)>> {
    let expected = "expected resources, such as { cpu = 100, memory_gib = 200 }";
    let mut amounts: Vec<(Amount, u64)> = Vec::new();
    for entry in node.table().ok_or_else(|| node.place.wrong(key, expected))? {
        let (dim, scale) = Dim::parse(&entry.key);
        let whole = format!("{key}.{}", entry.key);
        let value = match ratios {
            true => ratio(&whole, &entry.node)?,
            false => number(&whole, &entry.node, (scale, Rounding::Down), "an amount of at least 0")?,
        };
        if amounts.iter().any(|(known, _)| known.dim.name == dim.name) {
            return Err(entry.place.wrong(&whole, format!("is given twice; expected {} once", dim.name)));
        }
        amounts.push((Amount { dim, key: entry.key.clone(), place: entry.place.clone() }, value));
    }
    Ok(amounts)
}
