//! The input of the quota computation: groups with their quotas, in a tree under one capacity.
//!
//! [`GroupInstance::new`] validates the groups and stores the children of each. Unusual values that still have a defined result are
//! reported as [`QuotaWarning`] instead of an error.

use std::collections::HashSet;
use std::fmt;

use crate::Exact;
use plimsoll_base::error::{Error, Result};

/// A group: its limits and its request, one entry per resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotaGroup {
    /// The name, unique in the instance.
    pub name: String,
    /// The parent group, as an index into the list; `None` for groups directly under the root.
    pub parent: Option<usize>,
    /// The weight in the division of the rest above the minimums (at least 0).
    pub ratio: Vec<Exact>,
    /// The minimum. Its requested part is guaranteed.
    pub min: Vec<Exact>,
    /// The maximum; `None` means unlimited.
    pub max: Vec<Option<Exact>>,
    /// The group's own request, without its child groups.
    pub request: Vec<Exact>,
    /// The group's own use that it does not give back: a floor of its runtime quota. This use counts as requested.
    pub used: Option<Vec<Exact>>,
    /// Whether others may use the part of the minimum that the group does not request.
    pub lend: bool,
}

impl QuotaGroup {
    /// Creates a group directly under the root with this request and ratio 1, without minimum or limit.
    pub fn new(name: impl Into<String>, request: Vec<Exact>) -> QuotaGroup {
        let dims = request.len();
        QuotaGroup {
            name: name.into(),
            parent: None,
            ratio: vec![Exact::ONE; dims],
            min: vec![Exact::ZERO; dims],
            max: vec![None; dims],
            request,
            used: None,
            lend: true,
        }
    }
}

/// An unusual value in an instance that still has a defined result. [`Quota`](super::Quota) describes the result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QuotaWarning {
    /// A group names a resource that is missing in the capacity: its quota is 0.
    Lacking {
        /// The resource.
        resource: String,
    },
    /// A group's max is below its min: the min is cut to the max.
    MaxBelowMin {
        /// The group.
        group: String,
        /// The resource.
        resource: String,
    },
    /// The minimums of a group's children add up to more than its own.
    MinsAboveParent {
        /// The group.
        group: String,
        /// The resource.
        resource: String,
        /// The sum of the children's minimums.
        children: Exact,
        /// The group's own minimum.
        own: Exact,
    },
}

impl fmt::Display for QuotaWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QuotaWarning::Lacking { resource } => {
                write!(f, "there is no {resource} in [capacity]: its runtime quota is 0 for every group")
            }
            QuotaWarning::MaxBelowMin { group, resource } => {
                write!(f, "group '{group}': its max of {resource} is below its min; the min is cut to the max")
            }
            QuotaWarning::MinsAboveParent { group, resource, children, own } => write!(
                f,
                "group '{group}': the mins of its children add up to {children} {resource}, its own min is {own}"
            ),
        }
    }
}

/// A validated forest of groups under a capacity, with the children of each group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupInstance {
    resources: Vec<String>,
    capacity: Vec<Option<Exact>>,
    groups: Vec<QuotaGroup>,
    children: Vec<Vec<usize>>,
    top: Vec<usize>,
    /// Parents before their children.
    order: Vec<usize>,
}

impl GroupInstance {
    /// Creates an instance. The capacity is `None` for a resource that groups name and the cluster lacks. Vectors have one entry per
    /// resource; shorter ones are a programmer error.
    ///
    /// Errors: [`Error::Plan`] that names the group, for no resources, no groups, duplicate names, the name `root`, negative amounts,
    /// unknown parents, and groups that are their own ancestors.
    pub fn new(resources: Vec<String>, capacity: Vec<Option<Exact>>, groups: Vec<QuotaGroup>) -> Result<GroupInstance> {
        let mut children = vec![Vec::new(); groups.len()];
        let mut top = Vec::new();
        for (i, group) in groups.iter().enumerate() {
            match group.parent {
                None => top.push(i),
                Some(parent) => match children.get_mut(parent) {
                    Some(list) => list.push(i),
                    None => return Err(Error::plan(under(group, "parent"), parent, "the place of another group")),
                },
            }
        }
        let mut order = top.clone();
        let mut at = 0;
        while let Some(&group) = order.get(at) {
            order.extend(&children[group]);
            at += 1;
        }
        let instance = GroupInstance { resources, capacity, groups, children, top, order };
        instance.check()?;
        Ok(instance)
    }

    fn check(&self) -> Result<()> {
        if self.resources.is_empty() || self.groups.is_empty() {
            return Err(Error::plan("instance", "nothing to share", "at least one resource and one group"));
        }
        let mut names = HashSet::new();
        for group in &self.groups {
            if group.name == "root" || !names.insert(group.name.as_str()) {
                let expected = "a unique name other than root, the top of the tree";
                return Err(Error::plan("group", format!("'{}'", group.name), expected));
            }
            let limits = group.max.iter().flatten();
            let amounts = group.ratio.iter().chain(&group.min).chain(&group.request).chain(limits);
            if let Some(amount) = amounts.chain(group.used.iter().flatten()).find(|amount| amount.is_negative()) {
                return Err(Error::plan(under(group, "amounts"), amount, "at least 0"));
            }
        }
        if let Some(amount) = self.capacity.iter().flatten().find(|amount| amount.is_negative()) {
            return Err(Error::plan("capacity", amount, "at least 0"));
        }
        // A group that cannot be reached from the root is part of a cycle, or a descendant of one.
        let reached: HashSet<usize> = self.order.iter().copied().collect();
        match (0..self.groups.len()).find(|i| !reached.contains(i)) {
            None => Ok(()),
            Some(lost) => {
                let expected = "a parent that is not under it";
                Err(Error::plan(under(&self.groups[lost], "parent"), "a cycle", expected))
            }
        }
    }

    /// Returns the names of the resources.
    pub fn resources(&self) -> &[String] {
        &self.resources
    }

    /// Returns the capacity of each resource; `None` for a resource that groups name and the cluster lacks.
    pub fn capacity(&self) -> &[Option<Exact>] {
        &self.capacity
    }

    /// Returns the groups.
    pub fn groups(&self) -> &[QuotaGroup] {
        &self.groups
    }

    /// Returns the children of a group, or of the root for `None`, in the order of the instance.
    pub fn children(&self, parent: Option<usize>) -> &[usize] {
        parent.map_or(&self.top, |group| &self.children[group])
    }

    /// Returns all groups, parents before their children.
    pub fn top_down(&self) -> &[usize] {
        &self.order
    }

    /// Returns all groups in depth-first order, each with its depth (0 directly under the root).
    pub fn depth_first(&self) -> Vec<(usize, usize)> {
        let mut found = Vec::with_capacity(self.groups.len());
        let mut open: Vec<(usize, usize)> = self.top.iter().rev().map(|&group| (group, 0)).collect();
        while let Some((group, depth)) = open.pop() {
            found.push((group, depth));
            open.extend(self.children[group].iter().rev().map(|&child| (child, depth + 1)));
        }
        found
    }

    /// Returns the warnings, in the order of the resources and groups. A run rejects an instance with warnings; the static computation
    /// accepts it.
    pub fn concerns(&self) -> Vec<QuotaWarning> {
        let lacking = |r: usize| self.capacity[r].is_none();
        let name = |r: usize| self.resources[r].clone();
        let dims = 0..self.resources.len();
        let mut concerns: Vec<QuotaWarning> =
            dims.clone().filter(|&r| lacking(r)).map(|r| QuotaWarning::Lacking { resource: name(r) }).collect();
        for (i, group) in self.groups.iter().enumerate() {
            for r in dims.clone() {
                if group.max[r].as_ref().is_some_and(|max| *max < group.min[r]) {
                    concerns.push(QuotaWarning::MaxBelowMin { group: group.name.clone(), resource: name(r) });
                }
                let children = self.children[i].iter().fold(Exact::ZERO, |sum, &c| &sum + &self.groups[c].min[r]);
                if children > group.min[r] {
                    let (group, own) = (group.name.clone(), group.min[r].clone());
                    concerns.push(QuotaWarning::MinsAboveParent { group, resource: name(r), children, own });
                }
            }
        }
        concerns
    }
}

fn under(group: &QuotaGroup, what: &str) -> String {
    format!("group '{}', {what}", group.name)
}
