//! The comparison of two queues, or two applications, by dominant resource and minimum share.
//!
//! Source: Apache Hadoop, `DominantResourceFairnessPolicy.java`, with both of its comparators; issue YARN-11482 for the fault.

use std::cmp::{Ordering, Reverse};

use super::super::cycle::{ONE, Ratio, ordered};
use plimsoll_base::units::{MAX_DIMS, Resources, Time};

/// The rule for the comparison of two queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The usage of each queue determines whether it is needy.
    Right,
    /// If there are two resources, the usage of the *first* queue determines whether the second queue is needy, in the dominant resource
    /// of the second.
    Fault,
}

/// The resources in the order that breaks ties of dominance: memory first, as in YARN.
#[derive(Clone, Copy, Debug)]
pub struct Dims {
    order: [usize; MAX_DIMS],
    count: usize,
}

impl Dims {
    /// Creates the order of resources with these names.
    pub fn new<'n>(names: impl Iterator<Item = &'n str>) -> Dims {
        let mut dims = Dims { order: [0; MAX_DIMS], count: 0 };
        for (d, name) in names.enumerate().take(MAX_DIMS) {
            dims.order[dims.count] = d;
            dims.count += 1;
            if name == "memory" {
                dims.order[..dims.count].rotate_right(1);
            }
        }
        dims
    }

    /// Returns the indices of the resources in this order.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.order[..self.count].iter().copied()
    }

    /// Returns the largest part of a capacity that these amounts use.
    pub fn dominant(&self, amounts: &Resources, capacity: &Resources) -> Ratio {
        Ratio::dominant(amounts, capacity, self.iter()).0
    }

    /// Compares amounts by the largest part of a capacity, then by the next largest parts.
    pub fn compare(&self, one: &Resources, other: &Resources, capacity: &Resources) -> Ordering {
        let parts = |amounts: &Resources| {
            let mut parts: Vec<Ratio> =
                self.iter().map(|d| Ratio::from_capacity(amounts.0[d], capacity.0[d])).collect();
            parts.sort_by_key(|part| Reverse(*part));
            parts
        };
        parts(one).cmp(&parts(other))
    }
}

/// The state of a queue or of an application for comparisons.
#[derive(Clone, Copy, Debug)]
pub struct QueueState {
    rule: Rule,
    usage: Resources,
    min: Resources,
    /// The indices of the resources by decreasing part of the cluster.
    ranked: [usize; MAX_DIMS],
    /// The parts of the cluster over the weight, in that order.
    parts: [Ratio; MAX_DIMS],
    count: usize,
    /// The start, and the rank by name (queues) or among the applications with the same start.
    tie: (Time, u64),
}

impl QueueState {
    /// Creates a state with this usage, minimum share, weight and rank in ties.
    pub fn new(
        rule: Rule,
        dims: &Dims,
        capacity: &Resources,
        usage: &Resources,
        min: &Resources,
        weight: u64,
        tie: (Time, u64),
    ) -> QueueState {
        let mut ranked = dims.order;
        let part = |d: usize| Ratio::from_capacity(usage.0[d], capacity.0[d]);
        // The sort is stable, so of resources with equal parts, memory is the dominant one.
        ranked[..dims.count].sort_by_key(|d| Reverse(part(*d)));
        let mut parts = [Ratio::ZERO; MAX_DIMS];
        for (weighted, d) in parts.iter_mut().zip(&ranked[..dims.count]) {
            *weighted = if weight == 0 { Ratio::INFINITE } else { part(*d).over(weight, ONE) };
        }
        let rule = if dims.count == 2 { rule } else { Rule::Right };
        QueueState { rule, usage: *usage, min: *min, ranked, parts, count: dims.count, tie }
    }

    fn needy(&self, usage: &Resources) -> bool {
        usage.0[self.ranked[0]] < self.min.0[self.ranked[0]]
    }

    /// Compares two states as the source does. Under [`Rule::Fault`] the two directions may contradict each other.
    pub fn compare(&self, other: &QueueState) -> Ordering {
        let judged = if self.rule == Rule::Fault { &self.usage } else { &other.usage };
        let order = match (self.needy(&self.usage), other.needy(judged)) {
            (false, false) => self.parts[..self.count].cmp(&other.parts[..self.count]),
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            (true, true) => {
                let of = |stand: &QueueState, at: usize| {
                    let d = stand.ranked[at];
                    Ratio::from_capacity(stand.usage.0[d], stand.min.0[d])
                };
                let ratios = (0..self.count).map(|at| of(self, at).cmp(&of(other, at)));
                ratios.fold(Ordering::Equal, Ordering::then)
            }
        };
        order.then(self.tie.cmp(&other.tie))
    }
}

ordered!(QueueState);

#[cfg(test)]
mod tests {
    use super::*;

    fn state(rule: Rule, cluster: (u64, u64), usage: (u64, u64), min: (u64, u64), weight: u64, tie: u64) -> QueueState {
        let dims = Dims::new(["memory", "cpu"].into_iter());
        let two = |(memory, cpu): (u64, u64)| {
            let mut amounts = Resources::ZERO;
            (amounts.0[0], amounts.0[1]) = (memory, cpu);
            amounts
        };
        QueueState::new(rule, &dims, &two(cluster), &two(usage), &two(min), weight * ONE, (Time::ZERO, tie))
    }

    /// The pairs of `TestDominantResourceFairnessPolicy.java`: the first queue of each pair is served before the second. The last two
    /// pairs are from `testCompareSchedulablesWithClusterResourceChanges`.
    #[test]
    fn the_source_s_own_pairs() {
        type Of = ((u64, u64), (u64, u64), u64);
        let pairs: [((u64, u64), Of, Of); 11] = [
            ((8000, 4), ((1000, 1), (0, 0), 1), ((2000, 1), (0, 0), 1)),
            ((8000, 8), ((4000, 3), (0, 0), 1), ((2000, 5), (0, 0), 1)),
            ((8000, 8), ((2000, 5), (0, 6), 1), ((4000, 3), (0, 0), 1)),
            ((8000, 100), ((2000, 5), (0, 0), 1), ((4000, 3), (0, 0), 1)),
            ((8000, 100), ((2000, 5), (3000, 6), 1), ((4000, 3), (5000, 4), 1)),
            ((8000, 8), ((3000, 1), (0, 0), 2), ((2000, 1), (0, 0), 1)),
            ((8000, 8), ((1000, 3), (0, 0), 2), ((2000, 1), (0, 0), 1)),
            ((8000, 8), ((1000, 3), (0, 0), 2), ((1000, 2), (0, 0), 1)),
            ((8000, 8), ((3000, 1), (0, 0), 2), ((1000, 2), (0, 0), 1)),
            ((4000, 5), ((1000, 2), (0, 0), 1), ((2000, 1), (0, 0), 1)),
            ((8000, 6), ((2000, 1), (0, 0), 1), ((1000, 2), (0, 0), 1)),
        ];
        for (cluster, one, other) in pairs {
            for rule in [Rule::Right, Rule::Fault] {
                let one = state(rule, cluster, one.0, one.1, one.2, 2);
                let other = state(rule, cluster, other.0, other.1, other.2, 1);
                assert_eq!(one.compare(&other), Ordering::Less, "{one:?} {other:?}");
                if rule == Rule::Right {
                    assert_eq!(other.compare(&one), Ordering::Greater, "{one:?} {other:?}");
                }
            }
        }
    }

    /// Derived from the rules: a queue below its minimum share is first, even if it uses more.
    #[test]
    fn the_needy_go_first() {
        let needy = state(Rule::Right, (8000, 100), (2000, 5), (3000, 6), 1, 2);
        let other = state(Rule::Right, (8000, 100), (1000, 3), (0, 0), 1, 1);
        assert_eq!(needy.compare(&other), Ordering::Less);
    }

    /// Issue YARN-11482: the usage of the first queue, 2000, is below the minimum of the second queue, which uses 6000.
    #[test]
    fn the_fault_contradicts_itself() {
        let pair = |rule| {
            let one = state(rule, (8000, 8), (2000, 1), (0, 0), 1, 1);
            let other = state(rule, (8000, 8), (6000, 1), (5000, 0), 1, 2);
            (one.compare(&other), other.compare(&one))
        };
        assert_eq!(pair(Rule::Right), (Ordering::Less, Ordering::Greater));
        assert_eq!(pair(Rule::Fault), (Ordering::Greater, Ordering::Greater));
    }

    /// Over 60 states that differ in all fields, the correct comparison is antisymmetric and transitive; the comparison with the fault is
    /// not.
    #[test]
    fn the_right_comparison_is_an_order() {
        let some = |rule| -> Vec<QueueState> {
            let mut all = Vec::new();
            for at in 0..60u64 {
                let (memory, cpu, min) = (at * 7 % 5, at * 11 % 4, (at * 13 % 4, at * 5 % 3));
                all.push(state(rule, (8, 5), (memory, cpu), min, 1 + at % 3, at));
            }
            all
        };
        let wrong = |all: &[QueueState]| {
            let pairs = all.iter().flat_map(|one| all.iter().map(move |other| (one, other)));
            pairs.filter(|(one, other)| one.compare(other) != other.compare(one).reverse()).count()
        };
        let right = some(Rule::Right);
        assert_eq!(wrong(&right), 0);
        assert!(wrong(&some(Rule::Fault)) > 0);
        for (one, two, three) in right.iter().flat_map(|one| {
            right.iter().flat_map(move |two| some(Rule::Right).into_iter().map(move |three| (one, two, three)))
        }) {
            if one < two && *two < three {
                assert!(*one < three, "{one:?} {two:?} {three:?}");
            }
        }
    }
}
