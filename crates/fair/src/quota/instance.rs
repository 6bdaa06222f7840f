//! Groups with their quotas, in a tree under one capacity.

use std::collections::HashSet;
use std::fmt;

use crate::Exact;
use plimsoll_base::error::{Error, Result};

/// A group: its limits and its request, one entry a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotaGroup {
    /// Its name, unique in the instance.
    pub name: String,
    /// The group that it is a part of, by its place in the list; `None` for those right under the top.
    pub parent: Option<usize>,
    /// Its weight when the rest above the minimums is shared (at least 0).
    pub ratio: Vec<Exact>,
    /// Its minimum: the requested part of it is guaranteed.
    pub min: Vec<Exact>,
    /// Its maximum; `None` is without limit.
    pub max: Vec<Option<Exact>>,
    /// Its own request, without the groups under it.
    pub request: Vec<Exact>,
    /// Its own use that it will not give back: a floor of its runtime quota. It counts as requested.
    pub used: Option<Vec<Exact>>,
    /// Whether others may use the part of its minimum that it does not ask for.
    pub lend: bool,
}

impl QuotaGroup {
    /// A group right under the root with this request and ratio 1, without minimum or limit.
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

/// An oddity of an instance that nevertheless has an answer. [`Quota`](super::Quota) says which.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QuotaWarning {
    /// A group names a resource that is missing in the capacity: its quota is 0.
    Lacking {
        /// The resource.
        resource: String,
    },
    /// A group's max is below its min: the min is cut to it.
    MaxBelowMin {
        /// The group.
        group: String,
        /// The resource.
        resource: String,
    },
    /// The minimums of a group's children are above its own.
    MinsAboveParent {
        /// The group.
        group: String,
        /// The resource.
        resource: String,
        /// The sum of its children's minimums.
        children: Exact,
        /// Its own minimum.
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

/// Groups under a capacity, checked: a forest, with the children of each group.
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
    /// Checks the parts. The capacity is `None` for a resource that groups name and the cluster lacks. Vectors have one entry per resource;
    /// shorter ones are a programmer's error.
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
                let expected = "a name of its own, and not root: that is the top";
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

    /// The names of the resources.
    pub fn resources(&self) -> &[String] {
        &self.resources
    }

    /// The capacity of each resource; `None` for a resource that groups name and the cluster lacks.
    pub fn capacity(&self) -> &[Option<Exact>] {
        &self.capacity
    }

    /// The groups.
    pub fn groups(&self) -> &[QuotaGroup] {
        &self.groups
    }

    /// The groups under one, or right under the top, in the order of the instance.
    pub fn children(&self, parent: Option<usize>) -> &[usize] {
        parent.map_or(&self.top, |group| &self.children[group])
    }

    /// All groups, parents before their children.
    pub fn top_down(&self) -> &[usize] {
        &self.order
    }

    /// All groups as a reader of the tree meets them, each with how deep it is (0 right under the top).
    pub fn depth_first(&self) -> Vec<(usize, usize)> {
        let mut found = Vec::with_capacity(self.groups.len());
        let mut open: Vec<(usize, usize)> = self.top.iter().rev().map(|&group| (group, 0)).collect();
        while let Some((group, depth)) = open.pop() {
            found.push((group, depth));
            open.extend(self.children[group].iter().rev().map(|&child| (child, depth + 1)));
        }
        found
    }

    /// Its oddities, in the order of the resources and groups. A run refuses them; the static question has an answer.
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
