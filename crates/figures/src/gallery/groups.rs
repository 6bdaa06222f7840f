//! The quota groups of one seed and their levels over time, read from the `groups` and `levels` tables.

use std::collections::BTreeMap;

use plimsoll_base::error::Result;
use plimsoll_results::read::{Part, Results};
use plimsoll_results::schema::Table;

use super::RunEnds;

/// The groups of a run that share resources: those of the default tree, or of a label's tree.
pub(super) struct Family {
    /// Index of the policy in the plan.
    pub policy: usize,
    /// The label; empty for the default tree.
    pub label: String,
    /// Whether the minimums lie below the zero of the water level, as in the variant `min-plus-share`.
    pub sunk: bool,
    /// The groups, in the order of the policy.
    pub groups: Vec<GroupPanel>,
    /// The end of the run, in seconds.
    pub end: f64,
}

/// A group.
pub(super) struct GroupPanel {
    pub name: String,
    /// The index of the parent group.
    pub parent: Option<usize>,
    /// The values by resource.
    pub at: Vec<GroupValues>,
}

/// The values of a group for one resource, in display units.
#[derive(Default)]
pub(super) struct GroupValues {
    /// The capacity of the cluster, or the largest capacity that the machines of the group's tree had.
    pub capacity: f64,
    pub ratio: f64,
    pub min: f64,
    pub max: f64,
    /// The integral of the usage over time, in seconds.
    pub used_s: f64,
    /// The changes, in order of time.
    pub points: Vec<GroupPoint>,
}

/// The values of a group for one resource from a time on.
#[derive(Clone, Copy, Default)]
pub(super) struct GroupPoint {
    pub time: f64,
    pub runtime: f64,
    pub used: f64,
    pub request: f64,
    pub level: f64,
    pub base: f64,
    pub reach: f64,
}

impl GroupValues {
    /// Returns the point that applies at a time, in seconds.
    pub fn at(&self, time: f64) -> GroupPoint {
        let after = self.points.partition_point(|point| point.time <= time);
        after.checked_sub(1).map(|at| self.points[at]).unwrap_or_default()
    }

    /// Returns the requested amount at a point, limited by the group's maximum.
    pub fn demand(&self, point: &GroupPoint) -> f64 {
        point.request.min(self.max)
    }
}

impl Family {
    /// Returns the policy, and the label of the machines that the family shares.
    pub fn name(&self, results: &Results) -> String {
        let policy = &results.contents.policies[self.policy];
        if self.label.is_empty() { policy.clone() } else { format!("{policy}, label {}", self.label) }
    }

    /// Returns the direct children of a group, or of the cluster.
    pub fn children(&self, parent: Option<usize>) -> Vec<usize> {
        (0..self.groups.len()).filter(|&at| self.groups[at].parent == parent).collect()
    }

    /// Returns whether a group has no children.
    pub fn is_leaf(&self, group: usize) -> bool {
        self.groups.iter().all(|other| other.parent != Some(group))
    }
}

/// The contents of the tables about groups.
pub(super) enum GroupTables {
    /// No data: no policy has groups, or their table was not written.
    Nothing,
    /// There are groups, but no table of their levels.
    NoLevels,
    /// The runs of the policies that have groups.
    Families(Vec<Family>),
}

/// Reads the groups of one run of every policy that has groups.
pub(super) fn read(results: &Results, run: usize) -> Result<GroupTables> {
    let names = ["group", "parent", "label", "resource", "capacity", "variant", "ratio", "min", "max", "used_s"];
    let about = results.table(Table::Groups, &names, Some(run))?;
    if about.is_empty() {
        return Ok(GroupTables::Nothing);
    }
    let names = ["time_us", "group", "label", "resource", "runtime", "used", "request", "level", "base", "reach"];
    let levels = results.table(Table::Levels, &names, Some(run))?;
    if levels.is_empty() {
        return Ok(GroupTables::NoLevels);
    }
    let ends = RunEnds::read(results, Some(run))?;
    let mut families = Vec::new();
    for about in &about {
        if let Some(levels) = levels.iter().find(|levels| levels.policy == about.policy) {
            let mut labels = about.names("label")?;
            // The rows of a tree are adjacent.
            labels.dedup();
            for label in labels {
                families.push(family(results, about, levels, label, &ends)?);
            }
        }
    }
    Ok(GroupTables::Families(families))
}

fn family(results: &Results, about: &Part, levels: &Part, label: String, ends: &RunEnds) -> Result<Family> {
    let numbers = |part: &Part, column: &str, absent: f64| -> Result<Vec<f64>> {
        Ok(part.numbers(column)?.into_iter().map(|value| value.unwrap_or(absent)).collect())
    };
    let resource = |name: &String| results.dims.iter().position(|dim| dim.name == *name);
    let (names, parents, resources) = (about.names("group")?, about.names("parent")?, about.names("resource")?);
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    let mut groups: Vec<GroupPanel> = Vec::new();
    let (capacity, ratio) = (numbers(about, "capacity", 0.0)?, numbers(about, "ratio", 0.0)?);
    let (min, max) = (numbers(about, "min", 0.0)?, numbers(about, "max", f64::INFINITY)?);
    let used_s = numbers(about, "used_s", 0.0)?;
    let of = about.names("label")?;
    for (row, name) in names.iter().enumerate().filter(|(row, _)| of[*row] == label) {
        let at = *places.entry(name.clone()).or_insert_with(|| {
            let none = results.dims.iter().map(|_| GroupValues::default()).collect();
            groups.push(GroupPanel { name: name.clone(), parent: None, at: none });
            groups.len() - 1
        });
        if let Some(d) = resource(&resources[row]) {
            let (capacity, ratio, min, max) = (capacity[row], ratio[row], min[row], max[row]);
            groups[at].at[d] = GroupValues { capacity, ratio, min, max, used_s: used_s[row], points: Vec::new() };
        }
    }
    for (name, parent) in names.iter().zip(&parents) {
        if let Some(&at) = places.get(name) {
            groups[at].parent = places.get(parent).copied();
        }
    }
    let (who, what, of) = (levels.names("group")?, levels.names("resource")?, levels.names("label")?);
    let columns = ["time_us", "runtime", "used", "request", "level", "base", "reach"];
    let columns = columns.iter().map(|column| numbers(levels, column, 0.0)).collect::<Result<Vec<_>>>()?;
    let mut last = 0.0;
    for (row, (who, what)) in who.iter().zip(&what).enumerate() {
        let [time, runtime, used, request, level, base, reach] = std::array::from_fn(|column| columns[column][row]);
        last = time / 1e6;
        if let (Some(&at), Some(d), true) = (places.get(who), resource(what), of[row] == label) {
            groups[at].at[d].points.push(GroupPoint { time: last, runtime, used, request, level, base, reach });
        }
    }
    let sunk = about.names("variant")?.first().is_some_and(|variant| variant == "min-plus-share");
    Ok(Family { policy: about.policy, label, sunk, groups, end: ends.after(levels, last) })
}

/// Returns the name of a figure that is drawn once per family.
pub(super) fn name(kind: &str, nth: usize, families: usize) -> String {
    if families > 1 { format!("{kind}-{}", nth + 1) } else { kind.to_owned() }
}
