//! The quotas of KAI's queues: deserved amounts and limits, the resulting fair shares, and the order of two queues.
//!
//! [`NodeQuota`] has the settings of a queue; [`Quotas::shares`] divides the cluster level by level with [`plimsoll_fair::divide`].
//! [`Shares`] adds the fair shares of one moment, and compares queues with [`Shares::compare`]. A resource is divided only if a queue names
//! it under `deserved`, or if no queue names any; queues have no quota of other resources.
//!
//! Source: the KAI scheduler, `plugins/proportion/{resource_share,queue_order}` (state of August 2026).

use std::cmp::Ordering;

use super::super::cycle::{
    self, Bound, Excess, Millionths, ONE, OptionalAmounts, QueueAt, ROOT, SettingValue, compare_parts, settings, within,
};
use plimsoll_base::error::Result;
use plimsoll_base::tree::Node;
use plimsoll_base::units::{Dim, Resources};
use plimsoll_fair::{Claim, USAGE_ONE, divide};

settings! {
    /// The settings of a queue.
    group struct NodeQuota {
        deserved: Resources<Option<Bound>> = Resources::uniform(None),
            "the amounts that it gets before the rest is divided; \"unlimited\": the total of its level (0)";
        limit: OptionalAmounts = Resources::NONE, "the most that it may hold; absent: no limit";
        weight: Millionths = ONE, "its weight in the rest (1)";
        priority: i64 = 0, "the highest priority receives the rest first (0)";
        usage: PastUsage = PastUsage::Part(0), "its past usage, as a part of the cluster or as amounts (0)";
        preemptible: bool = true,
            "false: its workloads are never stopped, and start only within its deserved amount (true)";
    }
    /// The settings of the policy.
    policy struct PolicySettings {
        k: Millionths = ONE, "how much past usage counts (1)",
            within(Millionths::read, |k| *k / (ONE / 1000) <= 1_000_000, "a number from 0 to 1000");
        saturation as "saturation_multiplier": Millionths = ONE,
            "at least 1: the factor of the reclaiming queue's used part of its fair share in comparisons (1)",
            within(Millionths::read, |factor| (ONE..=1000 * ONE).contains(factor), "a number from 1 to 1000");
        queue_priority as "queue_priority_in_quota_reclaim": bool = false,
            "true: a queue within its deserved amount reclaims from any of lower priority (false)";
    }
}

/// The tree of queues.
pub type Tree = cycle::Tree<NodeQuota>;

/// The past usage of a queue.
#[derive(Clone, Copy, Debug)]
pub enum PastUsage {
    /// A part of each resource of the cluster.
    Part(Millionths),
    Amounts(Resources),
}

impl SettingValue for PastUsage {
    fn read(node: &Node, key: &str, dims: &[Dim]) -> Result<PastUsage> {
        match node.table() {
            None => Millionths::read(node, key, dims).map(PastUsage::Part),
            Some(_) => Resources::read(node, key, dims).map(PastUsage::Amounts),
        }
    }
}

impl PastUsage {
    /// Returns the usage of a resource as a part of the cluster, in steps of 1/[`USAGE_ONE`].
    fn part(&self, d: usize, capacity: &Resources) -> u64 {
        let (amount, all) = match self {
            PastUsage::Part(part) => (*part, ONE),
            PastUsage::Amounts(amounts) => (amounts[d], capacity[d]),
        };
        let product = u128::from(amount) * u128::from(USAGE_ONE);
        u64::try_from(product.checked_div(all.into()).unwrap_or(0)).unwrap_or(u64::MAX)
    }
}

impl NodeQuota {
    /// Returns the deserved amount of a resource.
    pub fn deserved(&self, d: usize) -> Bound {
        self.deserved[d].unwrap_or(Bound::Amount(0))
    }
}

/// The rules of division that hold for all queues.
#[derive(Clone, Debug)]
pub struct Quotas {
    /// Whether each resource is divided; queues have no quota of the others.
    divided: Resources<bool>,
    /// The unit of each resource; fair shares are rounded down to multiples of it.
    unit: Resources,
    /// Whether CPU, memory and GPUs are all divided: only then can a queue be above its fair share in all of them.
    three: bool,
    /// Whether the priority of queues within their deserved amounts precedes all other criteria.
    priority_first: bool,
    /// The factor of past usage, in thousandths.
    k: u64,
    pub capacity: Resources,
    pub dims: usize,
}

/// A queue in a comparison, with the amounts to add (its next workload) and to subtract (its potential victims).
#[derive(Clone, Copy, Debug)]
pub struct Side {
    pub at: QueueAt,
    pub with: Resources,
    pub without: Resources,
}

impl Quotas {
    /// Creates the rules for the queues of a tree; for `priority_first` see [`Shares::compare`].
    pub fn new(tree: &Tree, dims: &[Dim], capacity: Resources, settings: &PolicySettings) -> Quotas {
        let named = Resources::from_fn(|d| (0..tree.nodes.len()).any(|at| tree[at].deserved[d].is_some()));
        let known = |d: usize| d < dims.len() && (named[d] || named == Resources::uniform(false));
        let unit = |d: usize| if dims.get(d).is_some_and(|dim| dim.name == "gpu") { 1000 } else { 1 };
        Quotas {
            divided: Resources::from_fn(known),
            unit: Resources::from_fn(unit),
            three: ["cpu", "memory", "gpu"]
                .iter()
                .all(|name| (0..dims.len()).any(|d| dims[d].name == *name && known(d))),
            priority_first: settings.queue_priority,
            k: settings.k / (ONE / 1000),
            capacity,
            dims: dims.len(),
        }
    }

    /// Computes the fair shares of all nodes from their requests, level by level; the share of the root is the cluster.
    pub fn shares(&self, tree: &Tree, requests: &[Resources]) -> Vec<Resources> {
        let mut shares = vec![Resources::ZERO; tree.nodes.len()];
        shares[ROOT] = self.capacity;
        for at in tree.downwards() {
            let children = &tree.nodes[at].children;
            for d in (0..self.dims).filter(|d| self.divided[*d] && !children.is_empty()) {
                let claim = |child: &QueueAt| {
                    let quota = &tree[*child];
                    Claim {
                        deserved: quota.deserved(d).amount(shares[at][d]),
                        weight: quota.weight,
                        limit: quota.limit[d],
                        request: requests[*child][d],
                        priority: quota.priority,
                        usage: quota.usage.part(d, &self.capacity),
                    }
                };
                let claims: Vec<Claim> = children.iter().map(claim).collect();
                let (parts, _) = divide(shares[at][d], self.unit[d], self.k, &claims);
                children.iter().zip(parts).for_each(|(child, part)| shares[*child][d] = part);
            }
        }
        shares
    }

    /// Returns whether a resource is divided among the queues.
    pub fn is_divided(&self, d: usize) -> bool {
        self.divided[d]
    }

    /// Returns whether amounts stay within what a queue deserves.
    pub fn is_deserved(&self, tree: &Tree, at: QueueAt, amounts: &Resources) -> bool {
        (0..self.dims).all(|d| !self.divided[d] || Bound::Amount(amounts[d]) <= tree[at].deserved(d))
    }

    /// Returns the non-preemptible allocation of a queue and its subtree, plus these amounts.
    pub fn fixed(&self, tree: &Tree, usage: &[Resources], at: QueueAt, more: &Resources) -> Resources {
        let fixed = tree.leaves().filter(|leaf| !tree[*leaf].preemptible && tree.is_within(*leaf, at));
        fixed.fold(*more, |sum, leaf| sum + usage[leaf])
    }

    /// Returns the first limit of a queue or an ancestor that these additional amounts would exceed.
    pub fn over_limit(&self, tree: &Tree, usage: &[Resources], leaf: QueueAt, need: &Resources) -> Option<Excess> {
        tree.exceeded(|at| &tree[at].limit, usage, leaf, need)
    }
}

/// The quotas and the fair shares at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Shares<'a> {
    pub quotas: &'a Quotas,
    pub tree: &'a Tree,
    pub fair: &'a [Resources],
}

impl Shares<'_> {
    /// Returns the allowance of a queue, beyond which others may reclaim: the larger of its fair share and its deserved amount, within its
    /// limit. `None` is unlimited.
    pub fn allocatable(&self, at: QueueAt, d: usize) -> Option<u64> {
        let quota = &self.tree[at];
        let most = match quota.deserved(d) {
            Bound::Amount(amount) if self.quotas.divided[d] => Some(amount.max(self.fair[at][d])),
            _ => None,
        };
        [most, quota.limit[d]].into_iter().flatten().min()
    }

    /// Returns whether amounts stay within the fair share of a queue.
    pub fn is_fair(&self, at: QueueAt, amounts: &Resources) -> bool {
        (0..self.quotas.dims).all(|d| !self.quotas.divided[d] || amounts[d] <= self.fair[at][d])
    }

    /// Compares two queues by the criteria of the policy; the lesser is served first. With `priority_first`, the priority of two queues
    /// within their deserved amounts precedes all other criteria. The last criterion is the order of the tree, the older first.
    pub fn compare(&self, usage: &[Resources], one: &Side, other: &Side) -> Ordering {
        let of = |side: &Side| {
            let held = usage[side.at];
            let with = held + side.with;
            let share = with.saturating_sub(side.without);
            let quota = &self.tree[side.at];
            let all_over = || (0..self.quotas.dims).all(|d| !self.quotas.divided[d] || self.fair[side.at][d] < held[d]);
            let over = self.quotas.three && all_over();
            let starved = self.quotas.is_deserved(self.tree, side.at, &with);
            let nothing = (0..self.quotas.dims).any(|d| self.allocatable(side.at, d) == Some(0) && with[d] > 0);
            (
                (over, !starved, std::cmp::Reverse(quota.priority), nothing),
                self.dominant(side.at, &share),
                self.dominant(side.at, &held),
            )
        };
        let (one_of, other_of) = (of(one), of(other));
        let by_share = || compare_parts(one_of.1, other_of.1).then_with(|| compare_parts(one_of.2, other_of.2));
        let starved = |of: &((bool, bool, std::cmp::Reverse<i64>, bool), _, _)| !of.0.1;
        let first = match self.quotas.priority_first && starved(&one_of) && starved(&other_of) {
            true => one_of.0.2.cmp(&other_of.0.2),
            false => Ordering::Equal,
        };
        first
            .then(one_of.0.cmp(&other_of.0))
            .then_with(by_share)
            .then_with(|| self.weaker(one.at, other.at))
            .then(one.at.cmp(&other.at))
    }

    /// Returns the largest, over all resources, of the part of a queue's allowance that these amounts use, as a fraction.
    fn dominant(&self, at: QueueAt, amounts: &Resources) -> (u64, u64) {
        let part = |d: usize| match self.allocatable(at, d).unwrap_or(self.quotas.capacity[d]) {
            // A penalty, since an allowance of 0 cannot be a divisor.
            0 => (amounts[d].saturating_mul(1000), 1),
            most => (amounts[d], most),
        };
        (0..self.quotas.dims).map(part).max_by(|one, other| compare_parts(*one, *other)).unwrap_or((0, 1))
    }

    /// Compares allowances: an allowance is less if it is lower in some resource and higher in none.
    fn weaker(&self, one: QueueAt, other: QueueAt) -> Ordering {
        let most = |at: QueueAt, d: usize| self.allocatable(at, d).unwrap_or(u64::MAX);
        let no_more = |one, other| (0..self.quotas.dims).all(|d| most(one, d) <= most(other, d));
        match (no_more(one, other), no_more(other, one)) {
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            _ => Ordering::Equal,
        }
    }
}
