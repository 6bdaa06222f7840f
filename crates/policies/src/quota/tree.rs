//! The groups of a run, with their allocations, requests and quotas.
//!
//! Requests are added up from the leaves to the root, each cut to its group's limit. Totals are divided from the root down: the total of a
//! set of siblings is the runtime quota of their parent. A change updates the path from its leaf to the root; the levels of other sets of
//! siblings are updated on demand.
//!
//! A tree with a single set of siblings that lend everything is *plain*. While the requests in a plain tree fit into the capacity, it is
//! *easy*: every quota equals the request, and no levels are computed.

mod levels;

use super::file::{GroupEntry, QuotaFile, Reclaim};
use crate::Setup;
use plimsoll_base::checkpoint::{Checkpoint, Visitor};
use plimsoll_base::error::{Result, did_you_mean};
use plimsoll_base::units::{MAX_DIMS, Resources};
use plimsoll_base::visit_values;
use plimsoll_fair::water::{Group, GroupId, LIMIT, Level, ReducedGroup, Semantics, UnusedMin, Water};

/// The parent of groups directly under the cluster.
pub(super) const TOP: u32 = u32::MAX;

/// A group of the tree.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct QuotaNode {
    pub parent: u32,
    /// The set of siblings of the group, and the group's id in this set.
    pub set: u32,
    member: GroupId,
    /// Whether the group has a change that has not been applied to its siblings yet.
    changed: bool,
    /// Whether the group is in the list `behind` of the tree.
    behind: bool,
    /// The tree's counter `look` when its runtime quotas were read.
    read: u64,
}

/// A group in one resource: half a cache line.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
#[repr(align(32))]
struct Account {
    held: u64,
    /// The runtime quota as last read, rounded down.
    runtime: u64,
    /// The requested amount, not cut to the maximum.
    request: u128,
}

/// A set of siblings.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
struct Set {
    parent: u32,
    /// The tree's counter `look` when the totals were set.
    read: u64,
}

/// All groups of a tree.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    pub nodes: Vec<QuotaNode>,
    /// `dims` accounts per group, one after the other: a change touches all accounts of a group, and few others.
    accounts: Vec<Account>,
    /// The part of each request that was applied to the parent, in the order of `accounts`; unused for groups without a parent.
    passed: Vec<u64>,
    sets: Vec<Set>,
    /// `dims` waters per set.
    waters: Vec<Water>,
    pub dims: usize,
    capacity: Resources,
    /// The largest total of any set of siblings: the capacity of the cluster, or the largest minimum above it.
    ceiling: Resources,
    reclaim: Reclaim,
    /// The number of the current reading; [`Tree::look_again`] increments it.
    look: u64,
    /// Whether the tree has one set of siblings that lend everything. While the requests fit, the quota of each group is its request,
    /// independently of the others.
    plain: bool,
    /// Whether the tree is plain and the requests do not exceed the capacity.
    easy: bool,
    /// The amount requested in all leaves, not cut to maximums.
    requested: Resources<u128>,
    /// The leaves with a change of an earlier round that has not been applied to their siblings.
    behind: Vec<u32>,
}

impl Tree {
    /// Creates the tree of a file's groups, or of its groups for a label. Errors, with the line: the run does not have a resource of the
    /// file, or has it in another unit.
    pub fn new(file: &QuotaFile, groups: &[GroupEntry], setup: &Setup) -> Result<Tree> {
        let dims = setup.dims.len();
        let mut tree = Tree {
            nodes: Vec::with_capacity(groups.len()),
            accounts: vec![Account::default(); groups.len() * dims],
            passed: vec![0; groups.len() * dims],
            sets: Vec::new(),
            waters: Vec::new(),
            dims,
            capacity: setup.capacity,
            ceiling: setup.capacity,
            reclaim: file.reclaim,
            look: 1,
            plain: groups.iter().all(|group| group.lend && group.parent.is_none())
                && setup.capacity.fits(&Resources::uniform(LIMIT)),
            easy: false,
            requested: Resources::default(),
            behind: Vec::new(),
        };
        // The set of children by parent index; the set under the cluster is the last entry.
        let mut under: Vec<Option<u32>> = vec![None; groups.len() + 1];
        for entry in groups {
            let parent = entry.parent.map_or(TOP, |parent| parent as u32);
            let set = *under[entry.parent.unwrap_or(groups.len())].get_or_insert_with(|| {
                tree.sets.push(Set { parent, read: 0 });
                tree.waters.extend((0..dims).map(|_| Water::new(file.variant)));
                tree.sets.len() as u32 - 1
            });
            let limits = limits(entry, setup)?;
            let mut member = GroupId(0);
            for (d, group) in limits[..dims].iter().enumerate() {
                // The group has the same id in every resource.
                member = tree.waters[set as usize * dims + d].join(group)?;
                tree.ceiling[d] = tree.ceiling[d].max(group.min);
            }
            tree.nodes.push(QuotaNode { parent, set, member, changed: true, behind: false, read: 0 });
        }
        for at in 0..tree.nodes.len() as u32 {
            tree.propagate(at)?;
        }
        Ok(tree)
    }

    /// Sets the amount that all groups share from the next [`Tree::update`] on. It must not exceed the capacity of the cluster.
    pub fn set_total(&mut self, total: &Resources) {
        self.capacity = *total;
    }

    /// Returns a group and its ancestors, from the bottom up.
    pub fn path(&self, group: u32) -> impl Iterator<Item = u32> + use<'_> {
        std::iter::successors(Some(group), |&at| Some(self.nodes[at as usize].parent).filter(|&above| above != TOP))
    }

    /// Returns the allocation of a group by resource.
    pub fn allocated(&self, group: u32) -> impl Iterator<Item = u64> + use<'_> {
        self.accounts_of(group).iter().map(|account| account.held)
    }

    /// Returns the runtime quota of a group by resource, as last read.
    pub fn runtime(&self, group: u32) -> impl Iterator<Item = u64> + use<'_> {
        self.accounts_of(group).iter().map(|account| account.runtime)
    }

    #[inline]
    fn accounts_of(&self, group: u32) -> &[Account] {
        &self.accounts[group as usize * self.dims..][..self.dims]
    }

    #[inline]
    fn of_mut(&mut self, group: u32) -> &mut [Account] {
        &mut self.accounts[group as usize * self.dims..][..self.dims]
    }

    /// Updates the allocations of a leaf and its ancestors; `amounts` has the new and the old amount of each resource.
    pub fn set_allocation(&mut self, leaf: u32, amounts: impl Iterator<Item = (u64, u64)> + Clone) {
        let mut at = leaf;
        while at != TOP {
            for (account, (now, before)) in self.of_mut(at).iter_mut().zip(amounts.clone()) {
                account.held = account.held - before + now;
            }
            let node = &mut self.nodes[at as usize];
            node.changed |= self.reclaim == Reclaim::Never;
            at = node.parent;
        }
    }

    /// Sets the amount of resource `d` that one user requests in a leaf, `before` being its previous request; [`Tree::update`] applies it
    /// to the other groups.
    pub fn request(&mut self, leaf: u32, d: usize, amount: u64, before: u64) {
        if amount == before {
            return;
        }
        let (amount, before) = (u128::from(amount), u128::from(before));
        self.requested[d] = self.requested[d] - before + amount;
        let account = &mut self.of_mut(leaf)[d];
        account.request = account.request - before + amount;
        self.nodes[leaf as usize].changed = true;
    }

    /// Applies the current requests and allocations of these leaves. Errors: amounts too large to add.
    pub fn update(&mut self, leaves: &[u32]) -> Result<()> {
        for &leaf in leaves {
            let node = &mut self.nodes[leaf as usize];
            if node.changed && !std::mem::replace(&mut node.behind, true) {
                self.behind.push(leaf);
            }
        }
        self.easy = self.plain && self.requested.fits(&self.capacity.map(u128::from));
        while !self.easy
            && let Some(leaf) = self.behind.pop()
        {
            self.nodes[leaf as usize].behind = false;
            self.propagate(leaf)?;
        }
        Ok(())
    }

    /// Applies the request and allocation of a group to its siblings and ancestors. Errors: amounts too large to add.
    fn propagate(&mut self, leaf: u32) -> Result<()> {
        let mut at = leaf;
        while at != TOP && std::mem::take(&mut self.nodes[at as usize].changed) {
            let QuotaNode { parent, set, member, .. } = self.nodes[at as usize];
            for d in 0..self.dims {
                let account = self.accounts[at as usize * self.dims + d];
                let (request, floor) = self.request_and_floor(&account, d);
                let water = &mut self.waters[set as usize * self.dims + d];
                water.set_use(member, request, floor)?;
                if parent == TOP {
                    continue;
                }
                let passed = pass(account.request, water.group(member));
                let before = std::mem::replace(&mut self.passed[at as usize * self.dims + d], passed);
                if before != passed {
                    let above = &mut self.accounts[parent as usize * self.dims + d];
                    above.request = above.request - u128::from(before) + u128::from(passed);
                    self.nodes[parent as usize].changed = true;
                }
            }
            at = parent;
        }
        Ok(())
    }

    /// Returns the numbers of an account in resource `d` that siblings use: the request, and the floor of the quota (the allocation if
    /// there is no reclaim).
    #[inline]
    fn request_and_floor(&self, account: &Account, d: usize) -> (u64, u64) {
        // A request beyond the total of all siblings is equivalent to the total.
        let request = account.request.min(u128::from(self.ceiling[d])) as u64;
        (request, if self.reclaim == Reclaim::Never { account.held } else { 0 })
    }

    /// Marks all runtime quotas as outdated, so that they are read again.
    pub fn look_again(&mut self) {
        self.look += 1;
    }

    /// Reads the runtime quota of a group and of its ancestors.
    pub fn read(&mut self, group: u32) {
        let QuotaNode { set, member, read, .. } = self.nodes[group as usize];
        if read == self.look {
            return;
        }
        if !self.easy {
            self.settle(set);
        }
        for d in 0..self.dims {
            let at = group as usize * self.dims + d;
            let water = &mut self.waters[set as usize * self.dims + d];
            let runtime = if self.easy {
                let group = *water.group(member);
                let (request, held) = self.request_and_floor(&self.accounts[at], d);
                ReducedGroup::from_group(&Group { request, held, ..group }).reach()
            } else {
                water.runtime(member)
            };
            self.accounts[at].runtime = runtime;
        }
        self.nodes[group as usize].read = self.look;
    }

    /// Updates the totals of a set of siblings.
    fn settle(&mut self, set: u32) {
        let Set { parent, read } = self.sets[set as usize];
        if read == self.look {
            return;
        }
        self.sets[set as usize].read = self.look;
        if parent != TOP {
            self.read(parent);
        }
        for d in 0..self.dims {
            let total =
                if parent == TOP { self.capacity[d] } else { self.accounts[parent as usize * self.dims + d].runtime };
            self.waters[set as usize * self.dims + d].set_total(total);
        }
    }

    /// Returns the water level of a set of siblings; `None` if the total is enough for all.
    pub fn level(&mut self, set: u32, d: usize) -> Option<Level> {
        if self.easy {
            return None;
        }
        self.settle(set);
        let water = &mut self.waters[set as usize * self.dims + d];
        (!water.is_enough()).then(|| water.level())
    }

    /// Returns the level at which a group may use this additional amount of resource `d`, if its quota depends on the level.
    pub fn level_for(&self, group: u32, d: usize, more: u64) -> Option<Level> {
        if self.easy {
            return None;
        }
        let runtime = self.accounts_of(group)[d].held.saturating_add(more);
        let node = &self.nodes[group as usize];
        let water = &self.waters[node.set as usize * self.dims + d];
        let standing = water.standing(node.member);
        let rising = standing.ratio() > 0 && runtime > standing.base() && runtime <= standing.reach();
        rising.then(|| match water.semantics() {
            Semantics::MinPlusShare => Level::from_amount(runtime - standing.base(), standing.ratio()),
            Semantics::MaxMinLevel => Level::from_amount(runtime, standing.ratio()),
        })
    }

    /// Finds the quota that an increase in a leaf would exceed. Returns the group (the leaf or an ancestor), the resource, and the excess.
    /// Uses the quotas as last read.
    pub fn above_quota(&self, leaf: u32, more: &[u64]) -> Option<(u32, usize, u64)> {
        self.path(leaf).find_map(|at| {
            let over = |(account, more): (&Account, &u64)| {
                account.held.saturating_add(*more).checked_sub(account.runtime).filter(|short| *short > 0)
            };
            let mut short = self.accounts_of(at).iter().zip(more).map(over).enumerate();
            short.find_map(|(d, short)| Some((at, d, short?)))
        })
    }

    /// Returns the level at which a group's quota of resource `d` equals its allocation: `None` if the allocation is within the base of
    /// the group, and `Some(None)` if no level suffices. Must not be called while the tree is easy.
    pub fn needs_water(&self, group: u32, d: usize) -> Option<Option<Level>> {
        let node = &self.nodes[group as usize];
        let base = self.waters[node.set as usize * self.dims + d].standing(node.member).base();
        (self.accounts_of(group)[d].held > base).then(|| self.level_for(group, d, 0))
    }

    /// Returns whether every group's quota is its request.
    pub fn is_easy(&self) -> bool {
        self.easy
    }

    /// Returns the excess of a group over its quota by resource, as last read.
    pub fn excess(&self, group: u32) -> Resources {
        let excess = |account: &Account| account.held.saturating_sub(account.runtime);
        Resources::from_fn(|d| self.accounts_of(group).get(d).map_or(0, excess))
    }

    /// Returns the set of siblings of a group.
    pub fn set_of(&self, group: u32) -> u32 {
        self.nodes[group as usize].set
    }

    /// Returns the number of sets of siblings.
    pub fn sets(&self) -> usize {
        self.sets.len()
    }
}

/// Returns the limits of a group of the file by resource, without requests. Errors: the run does not have a resource of the file, or has
/// it in another unit.
fn limits(entry: &GroupEntry, setup: &Setup) -> Result<[Group; MAX_DIMS]> {
    let unused_min = if entry.lend { UnusedMin::Lent } else { UnusedMin::Kept };
    let (max, ratio) = if entry.stated { (u64::MAX, entry.ratio) } else { (0, 0) };
    let mut limits = [Group { unused_min, ..Group::new(0, 0, max, ratio) }; MAX_DIMS];
    for (key, amounts) in [("min", &entry.min), ("max", &entry.max), ("ratio", &entry.ratios)] {
        for (amount, value) in amounts {
            let place = setup.dims.iter().position(|dim| dim.name == amount.dim.name);
            let place = place.filter(|&d| key == "ratio" || setup.dims[d].unit == amount.dim.unit);
            let Some(d) = place else {
                let known: Vec<String> = setup.dims.iter().map(spelling).collect();
                let hint = did_you_mean(&amount.key, known.iter().map(String::as_str));
                let problem = format!("is no resource of this run{hint}; expected {}", known.join(", "));
                return Err(amount.place.wrong(&format!("{key}.{}", amount.key), problem));
            };
            *match key {
                "min" => &mut limits[d].min,
                "max" => &mut limits[d].max,
                _ => &mut limits[d].ratio,
            } = *value;
        }
    }
    Ok(limits)
}

/// Returns the part of a group's request that is added to the request of its parent.
fn pass(request: u128, group: &Group) -> u64 {
    let cut = request.min(u128::from(group.max)) as u64;
    match group.unused_min {
        UnusedMin::Lent => cut,
        UnusedMin::Kept => cut.max(group.min),
    }
}

/// Returns the key of a resource of the run in a quota file.
fn spelling(dim: &plimsoll_base::units::Dim) -> String {
    match dim.unit {
        plimsoll_base::units::Unit::Mebibyte => format!("{}_gib", dim.name),
        _ => dim.column(),
    }
}

impl Checkpoint for Tree {
    fn visit(&mut self, visitor: &mut Visitor) -> Result<()> {
        let Tree {
            nodes,
            accounts,
            passed,
            sets,
            waters,
            dims: _,
            capacity,
            ceiling,
            reclaim: _,
            look,
            plain,
            easy,
            requested,
            behind,
        } = self;
        visit_values!(visitor; nodes, accounts, passed, sets, capacity, ceiling, look, plain, easy, requested, behind);
        visitor.all(waters.iter_mut())
    }
}
