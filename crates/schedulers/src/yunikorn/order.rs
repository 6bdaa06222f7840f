//! The comparisons of queues and of applications.
//!
//! Source: Apache YuniKorn core, `sorters.go` and `resources.go`; pull request 64 for the fault.

use std::cmp::Ordering;

use super::super::cycle::{QueueAt, Ratio, Waiting, ordered};
use plimsoll_base::units::{MAX_DIMS, Resources, Time};

/// The denominators of two queues in a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Each usage is divided by the queue's own guarantee.
    Separately,
    /// Both usages are divided by the guarantee of the first queue.
    OneDenominator,
}

/// The state of a queue for comparisons.
#[derive(Clone, Copy, Debug)]
pub struct ComparedQueue {
    pub rule: Rule,
    pub priority_first: bool,
    /// The urgency; the lowest is the most urgent.
    pub urgency: i64,
    pub usage: Resources,
    pub guaranteed: Resources<Option<u64>>,
    pub max: Resources,
    pub dims: usize,
    /// The pending demand.
    pub pending: Resources<u128>,
    pub at: QueueAt,
}

impl ComparedQueue {
    /// Returns the largest ratio, over the resources, of the usage to this guarantee, or to the queue's maximum for a resource without a
    /// guarantee.
    pub fn ratio(&self, guaranteed: &Resources<Option<u64>>) -> Ratio {
        let part = |d: usize| match (guaranteed[d].unwrap_or(self.max[d]), self.usage[d]) {
            (0, 0) => Ratio::ZERO,
            (0, _) => Ratio::WHOLE,
            (whole, used) => Ratio::from_capacity(used, whole),
        };
        (0..self.dims).map(part).max().unwrap_or(Ratio::ZERO)
    }

    /// Compares two queues as the source does. With one denominator the two directions may contradict each other.
    pub fn compare(&self, other: &ComparedQueue) -> Ordering {
        let theirs = if self.rule == Rule::OneDenominator { &self.guaranteed } else { &other.guaranteed };
        let ratios = self.ratio(&self.guaranteed).cmp(&other.ratio(theirs));
        let urgencies = self.urgency.cmp(&other.urgency);
        let order = if self.priority_first { urgencies.then(ratios) } else { ratios.then(urgencies) };
        order.then_with(|| self.waits_for_more(other)).then(self.at.cmp(&other.at))
    }

    /// Compares pending demand: `Less` if this queue has at least as much of every resource and more of some.
    fn waits_for_more(&self, other: &ComparedQueue) -> Ordering {
        let at_least = |one: &ComparedQueue, other: &ComparedQueue| other.pending.fits(&one.pending);
        match (at_least(self, other), at_least(other, self)) {
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            _ => Ordering::Equal,
        }
    }
}

/// The state of an application for comparisons.
#[derive(Clone, Copy, Debug)]
pub struct App {
    priority_first: bool,
    by_age: bool,
    priority: u8,
    since: (Time, u64),
    /// The used parts of the cluster, the largest first.
    parts: [Ratio; MAX_DIMS],
    dims: usize,
}

impl App {
    /// Creates a state with this next ask and allocation.
    pub fn new(
        by_age: bool,
        priority_first: bool,
        next: &Waiting,
        held: &Resources,
        capacity: &Resources,
        dims: usize,
    ) -> App {
        let mut parts = [Ratio::ZERO; MAX_DIMS];
        (0..dims).for_each(|d| parts[d] = Ratio::from_capacity(held[d], capacity[d]));
        parts[..dims].sort_by(|one, other| other.cmp(one));
        App { priority_first, by_age, priority: next.priority, since: next.since, parts, dims }
    }

    fn compare(&self, other: &App) -> Ordering {
        let second = if self.by_age {
            self.since.cmp(&other.since)
        } else {
            self.parts[..self.dims].cmp(&other.parts[..other.dims])
        };
        let priorities = self.priority.cmp(&other.priority);
        let order = if self.priority_first { priorities.then(second) } else { second.then(priorities) };
        order.then(self.since.cmp(&other.since))
    }
}

ordered!(App, ComparedQueue);

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(at: usize, used: &[u64], guaranteed: &[Option<u64>], max: u64, pending: &[u128]) -> ComparedQueue {
        let mut queue = ComparedQueue {
            rule: Rule::Separately,
            priority_first: true,
            urgency: 0,
            usage: Resources::ZERO,
            guaranteed: Resources::NONE,
            max: Resources::uniform(max),
            dims: used.len(),
            pending: Resources::default(),
            at,
        };
        queue.usage.0[..used.len()].copy_from_slice(used);
        queue.guaranteed.0[..guaranteed.len()].copy_from_slice(guaranteed);
        queue.pending.0[..pending.len()].copy_from_slice(pending);
        queue
    }

    /// The cases of `TestGetFairShare`.
    #[test]
    fn the_source_s_own_ratios() {
        let of = |queue: ComparedQueue| queue.ratio(&queue.guaranteed);
        assert_eq!(of(queue(1, &[100, 2500], &[Some(1000), Some(5000)], 0, &[])), Ratio::new(1u64, 2u64));
        let mut many = queue(1, &[1000, 1000, 1000, 1000], &[], 99_999, &[]);
        many.max[0] = 2000;
        assert_eq!(of(many), Ratio::new(1u64, 2u64));
        // With a guarantee of 0 the ratio is 1 if there is usage; otherwise the other resources determine it.
        assert_eq!(of(queue(1, &[10, 1000], &[Some(0)], 5000, &[])), Ratio::WHOLE);
        assert_eq!(of(queue(1, &[0, 1000], &[Some(0)], 5000, &[])), Ratio::new(1u64, 5u64));
    }

    #[test]
    fn pairs_are_in_one_order_but_for_the_fault() {
        let some = |rule: Rule| -> Vec<ComparedQueue> {
            let one = |at: usize| {
                let n = at as u64;
                let guaranteed = |by: u64| (!(n * by).is_multiple_of(5)).then_some(n * by % 4);
                let mut queue =
                    queue(at, &[n * 7 % 6, n * 11 % 5], &[guaranteed(3), guaranteed(7)], 8, &[n as u128 * 5 % 3]);
                (queue.rule, queue.urgency) = (rule, (n % 2) as i64);
                queue
            };
            (0..80).map(one).collect()
        };
        let wrong = |rule: Rule| {
            let all = some(rule);
            let pairs = all.iter().flat_map(|one| all.iter().map(move |other| (one, other)));
            pairs.filter(|(one, other)| one.compare(other) != other.compare(one).reverse()).count()
        };
        assert_eq!(wrong(Rule::Separately), 0);
        assert!(wrong(Rule::OneDenominator) > 0);
    }

    /// Not a test of the source: three queues of equal ratio precede one another in a cycle. Pending demand decides only if one queue has
    /// at least as much of every resource; otherwise the order of the file decides.
    #[test]
    fn equal_ratios_may_go_in_a_circle() {
        let of = |at, pending: &[u128]| queue(at, &[0, 0], &[], 8, pending);
        let [one, two, three] = [of(1, &[1, 1]), of(2, &[0, 3]), of(3, &[2, 2])];
        assert_eq!(one.compare(&two), Ordering::Less, "neither waits for more: as in the file");
        assert_eq!(two.compare(&three), Ordering::Less, "likewise");
        assert_eq!(three.compare(&one), Ordering::Less, "the third waits for more than the first");
    }
}
