//! The quotas of a tree of cohorts, their usage, and the resulting shares.
//!
//! [`NodeQuota`] has the configured quotas, [`Quotas`] the amounts derived from them by [`Quotas::work_out`]. [`Snapshot`] adds the usage
//! of all nodes; workloads can be added and removed for a trial. Shares are compared exactly, or as in earlier versions of the source
//! ([`Arithmetic`]).
//!
//! Source: Kueue, `pkg/cache/scheduler/resource_node.go` and `fair_sharing.go` (state of August 2026).

use std::cmp::Ordering;

use super::super::cycle::{
    self, Millionths, ONE, OptionalAmounts, QueueAt, ROOT, Ratio, settings, within, word, words,
};
use super::preempt::Strategy;
use plimsoll_base::units::{MAX_DIMS, Resources};

/// The tree of cohorts and queues.
pub type Tree = cycle::Tree<NodeQuota>;

/// A cycle of the scheduler.
pub type Session<'a> = cycle::Session<'a, NodeQuota>;

/// The workloads of its own queue that a workload may preempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WithinQueue {
    Never,
    LowerPriority,
    LowerOrNewerEqual,
}

/// The workloads of other queues that a queue may preempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reclaim {
    Never,
    LowerPriority,
    Any,
}

const WITHIN: &[(&str, WithinQueue)] = &[
    ("never", WithinQueue::Never),
    ("lower-priority", WithinQueue::LowerPriority),
    ("lower-or-newer-equal-priority", WithinQueue::LowerOrNewerEqual),
];
const RECLAIM: &[(&str, Reclaim)] =
    &[("never", Reclaim::Never), ("lower-priority", Reclaim::LowerPriority), ("any", Reclaim::Any)];
const STRATEGIES: &[(&str, Strategy)] =
    &[("less-than-or-equal-to-final-share", Strategy::FinalShare), ("less-than-initial-share", Strategy::InitialShare)];

settings! {
    /// The configured quotas of a node.
    group struct NodeQuota {
        nominal: Resources = Resources::ZERO, "the quota of each resource, which the queue may always claim";
        limit: OptionalAmounts = Resources::NONE, "the most that it may borrow beyond its quota; absent: no limit";
        lend as "lend_limit": OptionalAmounts = Resources::NONE,
            "the most of its quota that others may borrow; absent: all";
        weight: Millionths = ONE, "the divisor of its share; 0: any borrowing counts as infinite";
        within: WithinQueue = WithinQueue::Never,
            "preemption within the queue: never (usual), lower-priority, lower-or-newer-equal-priority", word(WITHIN);
        reclaim: Reclaim = Reclaim::Never,
            "preemption in other queues: never (usual), lower-priority, any", word(RECLAIM);
        borrows_within as "borrow_within": bool = false,
            "lower-priority: read by kueue@3779 alone, as fair sharing ignores it",
            word(&[("never", false), ("lower-priority", true)]);
        strict as "order": bool = false,
            "best-effort-fifo (usual), or strict-fifo: the first workload holds up the others",
            word(&[("best-effort-fifo", false), ("strict-fifo", true)]);
    }
    /// The settings of the policy.
    policy struct PolicySettings {
        strategies as "preemption_strategies": Vec<Strategy> = vec![Strategy::FinalShare, Strategy::InitialShare],
            "less-than-or-equal-to-final-share (S2-a) and less-than-initial-share (S2-b), in this order; usual: both",
            within(
                words(STRATEGIES),
                |all| !all.is_empty() && *all != [Strategy::InitialShare, Strategy::FinalShare],
                "a list of 'less-than-or-equal-to-final-share', 'less-than-initial-share', or both in this order",
            );
    }
}

/// The amounts derived from the quotas of all nodes.
#[derive(Clone, Debug)]
pub struct Quotas {
    capacity: Resources,
    /// By node, its own nominal quota and the amounts that its children lend.
    subtree: Vec<Resources>,
    /// By node, the part of its quota that it does not lend.
    guaranteed: Vec<Resources>,
    /// By node, the largest amount that could ever be available in it.
    potential: Vec<Resources>,
}

impl Quotas {
    /// Creates the quotas of a cluster; [`Quotas::work_out`] computes them.
    pub fn new(capacity: Resources) -> Quotas {
        let (subtree, guaranteed, potential) = Default::default();
        Quotas { capacity, subtree, guaranteed, potential }
    }

    /// Returns whether the amounts of all nodes of a tree are computed.
    pub fn is_current(&self, tree: &Tree) -> bool {
        self.subtree.len() == tree.nodes.len()
    }

    /// Computes the derived amounts of all nodes.
    pub fn work_out(&mut self, tree: &Tree) {
        let nothing = vec![Resources::ZERO; tree.nodes.len()];
        (self.subtree, self.guaranteed, self.potential) = (nothing.clone(), nothing.clone(), nothing);
        for at in tree.upwards() {
            let children = || tree.nodes[at].children.iter();
            let below: Resources = children().map(|child| self.subtree[*child] - self.guaranteed[*child]).sum();
            let own = match at {
                // The root cohort has the amounts of the cluster beyond the quotas under it.
                ROOT => self.capacity.saturating_sub(children().map(|child| self.subtree[*child]).sum()),
                _ => tree[at].nominal,
            };
            self.subtree[at] = own + below;
            let keep = |subtree: u64, lend: Option<u64>| lend.map_or(0, |lend| subtree.saturating_sub(lend));
            self.guaranteed[at] = self.subtree[at].zip_with(tree[at].lend, keep);
        }
        for at in tree.downwards() {
            self.potential[at] = match at {
                ROOT => self.subtree[at],
                _ => {
                    let most = self.guaranteed[at] + self.potential[tree.nodes[at].parent];
                    most.zip_with(self.limit(tree, at), |most, limit| limit.map_or(most, |limit| most.min(limit)))
                }
            };
        }
    }

    /// Returns the quota of a node including its subtree.
    pub fn subtree(&self, at: QueueAt) -> &Resources {
        &self.subtree[at]
    }

    /// Returns the most that a node may use: its quota plus the most that it may borrow.
    pub fn limit(&self, tree: &Tree, at: QueueAt) -> OptionalAmounts {
        self.subtree[at].zip_with(tree[at].limit, |quota, borrowed| borrowed.map(|borrowed| quota + borrowed))
    }

    /// Returns whether these amounts could ever be available in a queue.
    pub fn could(&self, at: QueueAt, need: &Resources) -> bool {
        need.fits(&self.potential[at])
    }
}

/// How shares are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arithmetic {
    /// Exactly; queues of weight 0 that borrow are compared by the borrowed amounts (since issue 6774).
    Exact,
    /// In whole thousandths, rounded down: a share below one thousandth counts as nothing borrowed (issue 6577).
    Truncated,
    /// In whole thousandths, rounded down; all queues of weight 0 that borrow have equal shares (issue 6774).
    Capped,
}

/// The share of a node: the amount that it borrows as a part of its parent's lendable amount, divided by its weight.
#[derive(Clone, Copy, Debug)]
pub struct BorrowingShare {
    borrowed: u64,
    lendable: u64,
    weight: u64,
}

impl BorrowingShare {
    /// Returns whether the share counts as positive.
    pub fn is_positive(&self, arithmetic: Arithmetic) -> bool {
        match arithmetic {
            Arithmetic::Truncated => self.thousandths() > 0,
            _ => self.borrowed > 0,
        }
    }

    /// Compares two shares.
    pub fn cmp(&self, other: &BorrowingShare, arithmetic: Arithmetic) -> Ordering {
        if arithmetic != Arithmetic::Exact {
            return self.thousandths().cmp(&other.thousandths());
        }
        self.exact().cmp(&other.exact())
    }

    /// Returns whether the share is infinite, and its fraction. The fraction of a queue of weight 0 is not divided by the weight.
    fn exact(&self) -> (bool, Ratio) {
        let infinite = self.borrowed > 0 && self.weight == 0;
        let by = if infinite { 1 } else { self.weight.max(1) };
        (infinite, self.part().over(by, 1))
    }

    fn part(&self) -> Ratio {
        Ratio::from_capacity(self.borrowed, self.lendable)
    }

    fn thousandths(&self) -> u128 {
        match (self.borrowed, self.weight) {
            (0, _) => 0,
            (_, 0) => u128::MAX,
            (borrowed, weight) => {
                // The ratio is rounded down before the weight divides it, as in the versions with the issue.
                let ratio = u128::from(borrowed) * 1000 / u128::from(self.lendable);
                ratio * u128::from(ONE) / u128::from(weight)
            }
        }
    }

    /// Returns the share in thousandths, for display; infinite if a node of weight 0 borrows.
    pub fn shown(&self) -> f64 {
        match (self.borrowed, self.weight) {
            (0, _) => 0.0,
            (_, 0) => f64::INFINITY,
            (borrowed, weight) => borrowed as f64 * 1000.0 / self.lendable as f64 / (weight as f64 / ONE as f64),
        }
    }
}

/// The quotas with their usage; changes are cheap, and can be undone.
#[derive(Clone)]
pub struct Snapshot<'a> {
    pub quotas: &'a Quotas,
    pub tree: &'a Tree,
    /// By node: for a queue the allocation of its users, for a cohort the usage of its children beyond the parts of their quotas that the
    /// children do not lend.
    usage: Vec<Resources<i64>>,
}

impl<'a> Snapshot<'a> {
    /// Creates a snapshot from the allocations of the leaves.
    pub fn new(quotas: &'a Quotas, tree: &'a Tree, held: &[Resources]) -> Snapshot<'a> {
        let mut snapshot = Snapshot { quotas, tree, usage: vec![Resources::default(); tree.nodes.len()] };
        tree.leaves().for_each(|leaf| snapshot.add(leaf, &held[leaf]));
        snapshot
    }

    /// Adds to the allocation of a leaf.
    pub fn add(&mut self, leaf: QueueAt, amount: &Resources) {
        self.change(leaf, amount, 1);
    }

    /// Subtracts from the allocation of a leaf.
    pub fn remove(&mut self, leaf: QueueAt, amount: &Resources) {
        self.change(leaf, amount, -1);
    }

    fn change(&mut self, leaf: QueueAt, amount: &Resources, sign: i64) {
        for d in (0..MAX_DIMS).filter(|d| amount[*d] > 0) {
            let mut change = sign * amount[d] as i64;
            for at in self.tree.path(leaf) {
                let kept = self.quotas.guaranteed[at][d] as i64;
                let before = (self.usage[at][d] - kept).max(0);
                self.usage[at][d] += change;
                change = (self.usage[at][d] - kept).max(0) - before;
                if change == 0 {
                    break;
                }
            }
        }
    }

    /// Returns the usage of a node, as a part of its quota and of the amounts that it borrows.
    pub fn usage(&self, at: QueueAt) -> &Resources<i64> {
        &self.usage[at]
    }

    /// Returns the amount still available in a queue; negative if it is above its limit.
    pub fn available(&self, at: QueueAt, d: usize) -> i64 {
        let (subtree, kept) = (self.quotas.subtree[at][d] as i64, self.quotas.guaranteed[at][d] as i64);
        let used = self.usage[at][d];
        if at == ROOT {
            return subtree - used;
        }
        let mut above = self.available(self.tree.nodes[at].parent, d);
        if let Some(limit) = self.tree[at].limit[d] {
            above = above.min(subtree - kept - (used - kept).max(0) + limit as i64);
        }
        (kept - used).max(0) + above
    }

    /// Returns whether a cohort above a queue, but below the root, would stay within its quota with these additional amounts in the queue.
    pub fn is_within_cohort(&self, queue: QueueAt, d: usize, amount: u64) -> bool {
        let mut left = amount as i64;
        for at in self.tree.path(queue).take_while(|at| *at != ROOT) {
            if at != queue && self.usage[at][d] + left <= self.quotas.subtree[at][d] as i64 {
                return true;
            }
            left -= (self.quotas.guaranteed[at][d] as i64 - self.usage[at][d]).max(0);
        }
        false
    }

    /// Returns whether these amounts are available.
    pub fn fits(&self, at: QueueAt, need: &Resources) -> bool {
        (0..MAX_DIMS).all(|d| need[d] == 0 || need[d] as i64 <= self.available(at, d))
    }

    /// Returns the first resource that is short, and the missing amount.
    pub fn short(&self, at: QueueAt, need: &Resources) -> Option<(usize, u64)> {
        let missing = |d: usize| need[d] as i64 - self.available(at, d).max(0);
        (0..MAX_DIMS).find(|d| need[*d] > 0 && missing(*d) > 0).map(|d| (d, missing(d) as u64))
    }

    /// Returns whether a node uses more than its quota of one of these resources.
    pub fn borrows(&self, at: QueueAt, of: &Resources<bool>) -> bool {
        (0..MAX_DIMS).any(|d| of[d] && self.usage[at][d] > self.quotas.subtree[at][d] as i64)
    }

    /// Returns the current share of a node; that of the root is 0.
    pub fn share(&self, at: QueueAt) -> BorrowingShare {
        let weight = self.tree[at].weight;
        let mut most = BorrowingShare { borrowed: 0, lendable: 1, weight };
        if at == ROOT {
            return most;
        }
        let lendable = &self.quotas.potential[self.tree.nodes[at].parent];
        for d in (0..MAX_DIMS).filter(|d| lendable[*d] > 0) {
            let borrowed = self.usage[at][d] - self.quotas.subtree[at][d] as i64;
            let share =
                BorrowingShare { borrowed: u64::try_from(borrowed).unwrap_or(0), lendable: lendable[d], weight };
            if share.part() > most.part() {
                most = share;
            }
        }
        most
    }
}
