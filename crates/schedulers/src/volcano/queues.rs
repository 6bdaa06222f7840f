//! The amounts that queues may use: deserved by weight (proportion) or as given (capacity), and the order of queues.
//!
//! [`Quotas`] has the settings of all queues, [`Levels`] the deserved amounts and limits of one cycle.
//!
//! Source: Volcano, `plugins/{proportion,capacity}` (state of August 2026).

use std::cmp::Ordering;

use super::super::cycle::{
    self, Excess, Millionths, ONE, OptionalAmounts, QueueAt, QueueFile, ROOT, SettingValue, compare_parts, settings,
    within, word, words,
};
use super::actions::Action;
use plimsoll_base::error::Result;
use plimsoll_base::units::{Dim, Resources};

/// The tree of queues.
pub type Tree = cycle::Tree<NodeQuota>;

/// A cycle of the scheduler.
pub type Session<'a> = cycle::Session<'a, NodeQuota>;

const ACTIONS: &[(&str, Action)] =
    &[("allocate", Action::Allocate), ("preempt", Action::Preempt), ("reclaim", Action::Reclaim)];

settings! {
    /// The settings of a queue.
    group struct NodeQuota {
        weight: Millionths = ONE,
            "its weight in what queues deserve; under volcano-drf the divisor of its share, at least 1 (1)";
        deserved: Resources = Resources::ZERO, "it may reclaim from others until it has these amounts";
        guarantee: Resources = Resources::ZERO, "the amounts that are reserved for it";
        capability: OptionalAmounts = Resources::NONE, "the most that it may hold; absent: no limit";
        priority: i64 = 0, "the highest goes first (0)";
        least as "min_available": i64 = 1,
            "the minimum number of running tasks of a job in the queue (1); for a gang, all",
            within(i64::read, |least| (1..=1_000_000).contains(least), "a whole number from 1 to 1000000");
        reclaimable: bool = true, "false: other queues reclaim nothing from it (true)";
        strict as "order": bool = false,
            "best-effort-fifo (usual), or strict-fifo: a job that does not start holds up its queue",
            word(&[("best-effort-fifo", false), ("strict-fifo", true)]);
    }
    /// The settings of the policy.
    policy struct PolicySettings {
        actions: Vec<Action> = vec![Action::Allocate],
            "allocate, preempt and reclaim, in the order of their execution (allocate)", words(ACTIONS);
        gang_preemptable: Option<bool> = None, "true: gang selects the victims in preempt (false)";
        drf_preemptable: Option<bool> = None,
            "true: dominant shares select them if the first tier finds none (false)";
    }
}

/// The plugin that determines the amounts of queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plugin {
    /// No amounts: the order is that of hierarchical dominant shares.
    Drf,
    Proportion,
    Capacity,
}

/// The rules that hold for all queues.
#[derive(Clone, Debug)]
pub struct Quotas {
    pub plugin: Plugin,
    /// See `volcano-proportion@1168`.
    pub met_in_any: bool,
    /// See `volcano-proportion@1083`: weights of 0 are accepted.
    pub weightless: bool,
    /// Whether the repair applies: weights count as equal if all are 0, and deserved amounts count in all resources.
    pub guarded: bool,
    capacity: Resources,
    pub dims: usize,
    /// Whether any queue has a parent.
    nested: bool,
    /// Whether there is no file, so that users are queues.
    alone: bool,
}

/// The amounts that queues may use in a cycle.
#[derive(Clone, Debug)]
pub struct Levels {
    /// By node, the deserved amounts.
    pub deserved: Vec<Resources>,
    /// By node, the upper limit.
    pub real: Vec<OptionalAmounts>,
}

impl Levels {
    /// Returns whether any queue has a deserved amount of the resource.
    fn is_deserved(&self, d: usize) -> bool {
        self.deserved.iter().any(|amounts| amounts[d] > 0)
    }
}

impl Quotas {
    /// Creates the rules for the queues of a tree. Errors: settings that the plugin does not support.
    pub fn new(
        tree: &Tree,
        file: &QueueFile,
        plugin: Plugin,
        variant: Option<&str>,
        dims: &[Dim],
        capacity: Resources,
    ) -> Result<Quotas> {
        let (weightless, guarded) = (variant == Some("1083"), variant == Some("guarded"));
        for (at, group) in file.groups.iter().enumerate() {
            let (quota, place) = (&tree[at + 1], &group.table.place);
            if plugin == Plugin::Proportion && group.parent.is_some() {
                let problem = "is not supported by volcano-proportion; expected queues without parents, or volcano-capacity or volcano-drf";
                return Err(place.wrong("parent", problem));
            }
            if plugin == Plugin::Proportion && quota.weight == 0 && !weightless && !guarded {
                return Err(place.wrong("weight", "0 is not accepted; expected a number above 0"));
            }
            let mut bounds = quota.guarantee.iter().zip(quota.capability.iter());
            if bounds.any(|(least, most)| most.is_some_and(|most| least > most)) {
                return Err(place.wrong("guarantee", "is more than 'capability'; expected at most that"));
            }
        }
        let nested = file.groups.iter().any(|group| group.parent.is_some());
        let met_in_any = variant == Some("1168");
        Ok(Quotas {
            plugin,
            met_in_any,
            weightless,
            guarded,
            capacity,
            dims: dims.len(),
            nested,
            alone: file.groups.is_empty(),
        })
    }

    /// Computes the deserved amounts and the limits of queues, from the requests of each.
    pub fn levels(&self, tree: &Tree, requests: &[Resources]) -> Levels {
        let real = self.real(tree);
        let mut deserved: Vec<Resources> = (0..tree.nodes.len()).map(|at| tree[at].deserved).collect();
        match self.plugin {
            Plugin::Drf => {}
            Plugin::Proportion => self.proportion(tree, requests, &real, &mut deserved),
            Plugin::Capacity => {
                let all: u128 = (1..tree.nodes.len()).map(|at| u128::from(tree[at].weight)).sum();
                for at in 1..tree.nodes.len() {
                    for d in 0..self.dims {
                        if self.alone {
                            let part = u128::from(self.capacity[d]) * u128::from(tree[at].weight);
                            deserved[at][d] = part.checked_div(all).unwrap_or(0) as u64;
                        }
                        let most = if self.nested { None } else { real[at][d] };
                        let amount = most.map_or(deserved[at][d], |most| deserved[at][d].min(most));
                        deserved[at][d] = amount.max(tree[at].guarantee[d]);
                    }
                }
            }
        }
        Levels { deserved, real }
    }

    /// Returns the upper limit of each queue: its capability, at most the parent's limit minus the guarantees of siblings.
    fn real(&self, tree: &Tree) -> Vec<OptionalAmounts> {
        let mut real = vec![Resources::NONE; tree.nodes.len()];
        if self.plugin == Plugin::Drf {
            return real;
        }
        // If queues are nested, the root has no limit.
        real[ROOT] = self.capacity.map(|all| (!self.nested).then_some(all));
        for at in tree.downwards() {
            for d in 0..self.dims {
                let all: u64 = tree.nodes[at].children.iter().map(|child| tree[*child].guarantee[d]).sum();
                for child in &tree.nodes[at].children {
                    let quota = &tree[*child];
                    let part = real[at][d].map(|most| most.saturating_sub(all) + quota.guarantee[d]);
                    real[*child][d] = [part, quota.capability[d]].into_iter().flatten().min();
                }
            }
        }
        real
    }

    /// Divides the cluster by weight: at most the requests and the limit of a queue, at least its guarantee.
    fn proportion(&self, tree: &Tree, requests: &[Resources], real: &[OptionalAmounts], deserved: &mut [Resources]) {
        let queues: Vec<QueueAt> =
            tree.nodes[ROOT].children.iter().copied().filter(|at| !requests[*at].is_zero()).collect();
        deserved.fill(Resources::ZERO);
        let even = self.guarded && queues.iter().all(|at| tree[*at].weight == 0);
        let weights: Vec<u64> = queues.iter().map(|at| if even { ONE } else { tree[*at].weight }).collect();
        if self.met_in_any {
            return self.met_at_once(&queues, &weights, requests, real, deserved);
        }
        for d in 0..self.dims {
            let bounds = |at: &QueueAt| {
                let most = real[*at][d].map_or(requests[*at][d], |most| most.min(requests[*at][d]));
                (tree[*at].guarantee[d], most.max(tree[*at].guarantee[d]))
            };
            let bounds: Vec<(u64, u64)> = queues.iter().map(bounds).collect();
            let parts = level(self.capacity[d], &weights, &bounds);
            queues.iter().zip(parts).for_each(|(at, part)| deserved[*at][d] = part);
        }
    }

    /// The fault of issue 1168: a queue that is satisfied in one resource counts as satisfied in all.
    fn met_at_once(
        &self,
        queues: &[QueueAt],
        weights: &[u64],
        requests: &[Resources],
        real: &[OptionalAmounts],
        deserved: &mut [Resources],
    ) {
        let mut left = self.capacity;
        let mut open: Vec<usize> = (0..queues.len()).collect();
        loop {
            let sum: u128 = open.iter().map(|at| u128::from(weights[*at])).sum();
            let before = left;
            if sum == 0 {
                return;
            }
            let mut still = Vec::new();
            for at in open {
                let queue = queues[at];
                let mut met = false;
                for d in 0..self.dims {
                    let part = (u128::from(before[d]) * u128::from(weights[at]) / sum) as u64;
                    let most = real[queue][d].map_or(requests[queue][d], |most| most.min(requests[queue][d]));
                    met |= deserved[queue][d] + part > most;
                    let grown = (deserved[queue][d] + part).min(most);
                    left[d] -= grown - deserved[queue][d];
                    deserved[queue][d] = grown;
                }
                if !met {
                    still.push(at);
                }
            }
            if left == before {
                return;
            }
            open = still;
        }
    }

    /// Returns whether a queue has at least its deserved amount.
    pub fn is_overused(&self, levels: &Levels, usage: &[Resources], at: QueueAt) -> bool {
        match self.plugin {
            Plugin::Proportion if self.weightless => !usage[at].fits(&levels.deserved[at]),
            Plugin::Proportion => levels.deserved[at].fits(&usage[at]),
            Plugin::Drf | Plugin::Capacity => false,
        }
    }

    /// Returns the first limit of the queue or an ancestor that the additional amount would exceed.
    pub fn forbids(
        &self,
        tree: &Tree,
        levels: &Levels,
        usage: &[Resources],
        leaf: QueueAt,
        need: &Resources,
    ) -> Option<Excess> {
        match self.plugin {
            Plugin::Drf => None,
            // The version with issue 1083 limits only whole queues, in `is_overused`.
            Plugin::Proportion if self.weightless => None,
            Plugin::Proportion => Excess::from_limit(leaf, &levels.deserved[leaf].map(Some), &usage[leaf], need),
            Plugin::Capacity => {
                let limit = |at: QueueAt| if at == ROOT { &Resources::NONE } else { &levels.real[at] };
                tree.exceeded(limit, usage, leaf, need)
            }
        }
    }

    /// Returns whether a queue may reclaim the additional amount from other queues.
    pub fn is_preemptive(&self, levels: &Levels, usage: &[Resources], leaf: QueueAt, need: &Resources) -> bool {
        let dims = || (0..self.dims).filter(|d| need[*d] > 0);
        let with = |d: usize| usage[leaf][d] + need[d];
        match self.plugin {
            Plugin::Drf => true,
            Plugin::Proportion => dims().all(|d| with(d) <= levels.deserved[leaf][d]),
            Plugin::Capacity if self.guarded => {
                let judged = || dims().filter(|d| levels.is_deserved(*d));
                dims().all(|d| levels.real[leaf][d].is_none_or(|most| with(d) <= most))
                    && judged().next().is_some()
                    && judged().all(|d| with(d) <= levels.deserved[leaf][d])
            }
            Plugin::Capacity => {
                let deserved = |d: usize| levels.deserved[leaf][d];
                dims().all(|d| levels.real[leaf][d].is_none_or(|most| with(d) <= most))
                    && dims().any(|d| deserved(d) > 0 && with(d) <= deserved(d))
            }
        }
    }

    /// Returns whether a queue may reclaim by the rule before the repair of issue 3729: if it is below its deserved amount, whatever the
    /// additional amount.
    pub fn is_below(&self, levels: &Levels, usage: &[Resources], leaf: QueueAt, need: &Resources) -> bool {
        levels.real[leaf].exceeded(&usage[leaf], need).is_none() && !levels.deserved[leaf].fits(&usage[leaf])
    }

    /// Returns whether a queue may lose this amount for a task with this request.
    pub fn may_lose(
        &self,
        tree: &Tree,
        levels: &Levels,
        leaf: QueueAt,
        held: &Resources,
        amount: &Resources,
        need: &Resources,
    ) -> bool {
        let (deserved, quota) = (&levels.deserved[leaf], &tree[leaf]);
        match self.plugin {
            Plugin::Drf => true,
            Plugin::Proportion => !held.fits(deserved),
            Plugin::Capacity => {
                let shared = amount.overlaps(need);
                let kept = quota.guarantee.fits(&held.saturating_sub(*amount));
                if self.guarded {
                    return shared && kept && (0..self.dims).any(|d| levels.is_deserved(d) && held[d] > deserved[d]);
                }
                let relevant: Vec<usize> = (0..self.dims).filter(|d| amount[*d] > 0 && deserved[*d] > 0).collect();
                shared && kept && (relevant.is_empty() || relevant.into_iter().any(|d| held[d] > deserved[d]))
            }
        }
    }

    /// Compares two queues by the criteria of the plugin.
    pub fn compare(&self, tree: &Tree, levels: &Levels, usage: &[Resources], one: QueueAt, other: QueueAt) -> Ordering {
        let part = |at: QueueAt| self.share(&levels.deserved[at], &usage[at]);
        let by_priority = tree[other].priority.cmp(&tree[one].priority);
        match self.plugin {
            Plugin::Drf => Ordering::Equal,
            Plugin::Proportion => by_priority.then_with(|| compare_parts(part(one), part(other))),
            Plugin::Capacity => {
                let above = tree.common(one, other);
                let (one, other) = (tree.child_towards(above, one), tree.child_towards(above, other));
                let nothing = |at: QueueAt| levels.deserved[at].is_zero();
                by_priority.then_with(|| compare_parts(part(one), part(other))).then(nothing(one).cmp(&nothing(other)))
            }
        }
    }

    /// Returns the largest ratio of a queue's usage to its deserved amount. If it deserves zero, the ratio is 1 under capacity and
    /// otherwise 0.
    pub fn share(&self, deserved: &Resources, held: &Resources) -> (u64, u64) {
        let parts = (0..self.dims).filter(|d| deserved[*d] > 0).map(|d| (held[d], deserved[d]));
        let largest = parts.max_by(|one, other| compare_parts(*one, *other));
        largest.unwrap_or((u64::from(self.plugin == Plugin::Capacity), 1))
    }
}

/// Divides a total in proportion to weights, each part between its bounds. The rounding remainder is added to the first parts with room,
/// one unit each.
///
/// Each round fixes at least one queue at a bound, so the number of rounds is at most the number of queues plus one (in issue 2549 the
/// loop does not end).
fn level(total: u64, weights: &[u64], bounds: &[(u64, u64)]) -> Vec<u64> {
    let mut parts: Vec<u64> = bounds.iter().map(|(least, _)| *least).collect();
    let mut open: Vec<usize> = (0..bounds.len()).filter(|at| weights[*at] > 0).collect();
    loop {
        let fixed: u64 = (0..bounds.len()).filter(|at| !open.contains(at)).map(|at| parts[at]).sum();
        let left = total.saturating_sub(fixed);
        let sum: u128 = open.iter().map(|at| u128::from(weights[*at])).sum();
        if sum == 0 {
            return with_rest(parts, total, weights, bounds);
        }
        let (mut over, mut under) = (0u64, 0u64);
        for at in &open {
            parts[*at] = (u128::from(left) * u128::from(weights[*at]) / sum) as u64;
            over += parts[*at].saturating_sub(bounds[*at].1);
            under += bounds[*at].0.saturating_sub(parts[*at]);
        }
        if (over, under) == (0, 0) {
            return with_rest(parts, total, weights, bounds);
        }
        let before = open.len();
        open.retain(|at| {
            let bound = if over >= under { bounds[*at].1 } else { bounds[*at].0 };
            let beyond = if over >= under { parts[*at] > bound } else { parts[*at] < bound };
            if beyond {
                parts[*at] = bound;
            }
            !beyond
        });
        debug_assert!(open.len() < before, "each round fixes at least one part");
    }
}

/// Adds the rounding remainder, which is less than the number of parts.
fn with_rest(mut parts: Vec<u64>, total: u64, weights: &[u64], bounds: &[(u64, u64)]) -> Vec<u64> {
    let mut rest = total.saturating_sub(parts.iter().sum());
    loop {
        let before = rest;
        for at in (0..parts.len()).filter(|at| weights[*at] > 0) {
            let more = u64::from(rest > 0 && parts[at] < bounds[at].1);
            (parts[at], rest) = (parts[at] + more, rest - more);
        }
        if rest == before {
            return parts;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Issue 2549: with weights of ten million and one, the loop ends after two rounds, one for each queue.
    #[test]
    fn parts_end_whatever_the_weights() {
        assert_eq!(level(1056, &[10_000_000, 1], &[(0, 96), (0, 960)]), [96, 960]);
        assert_eq!(level(1000, &[10_000_000, 1], &[(0, 34), (0, 960)]), [34, 960]);
        assert_eq!(level(100, &[1, 9], &[(50, 100), (0, 100)]), [50, 50]);
        assert_eq!(level(100, &[1, 1, 1], &[(0, 10), (60, 90), (0, 90)]), [10, 60, 30]);
        assert_eq!(level(10, &[1, 1, 1], &[(0, 10), (0, 10), (0, 10)]), [4, 3, 3]);
        assert_eq!(level(5, &[0, 0], &[(0, 9), (2, 9)]), [0, 2]);
    }

    #[test]
    fn parts_stay_within_bounds_and_use_all() {
        for seed in 0..2000u64 {
            let mut state = seed;
            let mut next = |below: u64| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 33) % below
            };
            let count = 1 + next(5) as usize;
            let weights: Vec<u64> = (0..count)
                .map(|_| {
                    let bits = next(20);
                    1 + next(1 << bits)
                })
                .collect();
            let bounds: Vec<(u64, u64)> = (0..count)
                .map(|_| {
                    let least = next(20);
                    (least, least + next(40))
                })
                .collect();
            let total = next(120);
            let parts = level(total, &weights, &bounds);
            assert!(parts.iter().zip(&bounds).all(|(part, (least, most))| least <= part && part <= most), "{parts:?}");
            let (least, most) = bounds.iter().fold((0, 0), |(l, m), (least, most)| (l + least, m + most));
            assert_eq!(parts.iter().sum::<u64>(), total.clamp(least, most), "{total} by {weights:?} within {bounds:?}");
        }
    }
}
