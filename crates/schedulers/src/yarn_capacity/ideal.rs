//! The ideal assignment of resources to queues, and the amounts to preempt in each queue.
//!
//! The assignment is computed level by level. Every queue keeps its usage up to its guarantee. The rest is offered to the least served
//! queues with pending demand, in proportion to their guarantees, until no queue accepts an offer. A leaf accepts at most the greater of
//! its usage and its guarantee. Parts are rounded up to whole units; with memory alone they are rounded to the nearest, so that an offer
//! may be zero, which excludes the queue from further offers.
//!
//! Source: Apache Hadoop, `AbstractPreemptableResourceCalculator`, `PreemptableResourceCalculator`, `TempQueuePerPartition`;
//! issue YARN-6538.

use std::cmp::Ordering;

use super::super::cycle::{QueueAt, ROOT, Ratio};
use super::amounts::{Calculator, NONE, SignedAmounts, capped_sum};
use super::{Tree, utilisation};

/// The state of a queue in the calculation.
#[derive(Clone, Debug, Default)]
pub struct Temp {
    pub used: SignedAmounts,
    pub pending: SignedAmounts,
    pub guaranteed: SignedAmounts,
    pub max: SignedAmounts,
    /// Whether the queue is exempt from preemption.
    pub fixed: bool,
    pub priority: i64,
    /// The amounts of the ideal assignment.
    pub ideal: SignedAmounts,
    /// The amounts to preempt.
    pub excess: SignedAmounts,
    /// The usage above the guarantee that is exempt from preemption.
    pub untouchable: SignedAmounts,
    /// The usage above the guarantee that may be preempted.
    pub preemptable: SignedAmounts,
}

/// The settings of the calculation.
pub struct Rules {
    pub calculator: Calculator,
    /// See `@6538`: of a single resource, a queue may accept more than it is offered.
    pub takes_more: bool,
    /// The largest amounts that one round preempts.
    pub most: SignedAmounts,
}

/// An upper bound of the rounds, larger than any level needs, so that the loop always ends.
const ROUNDS: usize = 100_000;

impl Rules {
    /// Computes the ideal amounts and the excess of all queues.
    pub fn work_out(&self, tree: &Tree, temps: &mut [Temp]) {
        for at in tree.upwards() {
            self.extras(tree, temps, at);
        }
        temps[ROOT].ideal = temps[ROOT].guaranteed;
        for at in tree.downwards() {
            let children = &tree.nodes[at].children;
            if !children.is_empty() {
                let total = temps[at].ideal;
                self.level(tree, temps, children, total);
            }
        }
    }

    fn extras(&self, tree: &Tree, temps: &mut [Temp], at: QueueAt) {
        let rc = &self.calculator;
        let extra = temps[at].used - temps[at].guaranteed;
        let extra = if rc.is_more(&NONE, &extra) { NONE } else { extra };
        let (untouchable, preemptable) = if tree.is_leaf(at) {
            if temps[at].fixed { (extra, NONE) } else { (NONE, extra) }
        } else {
            let children = tree.nodes[at].children.iter();
            let below = children.map(|child| temps[*child].preemptable).fold(NONE, capped_sum);
            let untouchable = if rc.compare(&below, &extra).is_ge() { NONE } else { extra - below };
            (untouchable, rc.min(&below, &extra))
        };
        (temps[at].untouchable, temps[at].preemptable) = (untouchable, preemptable);
    }

    /// Divides the total of a level among its queues. Amounts are compared as parts of this total.
    fn level(&self, tree: &Tree, temps: &mut [Temp], queues: &[QueueAt], total: SignedAmounts) {
        let rc = &Calculator { whole: total, ..self.calculator };
        let mut left = total;
        let (some, none): (Vec<QueueAt>, Vec<QueueAt>) =
            queues.iter().partition(|at| rc.is_more(&temps[**at].guaranteed, &NONE));
        self.fill(rc, tree, temps, &some, &mut left, false);
        if !none.is_empty() && rc.is_more(&left, &NONE) {
            self.fill(rc, tree, temps, &none, &mut left, true);
        }
        let needed = queues.iter().fold(NONE, |sum, at| {
            let temp = &temps[*at];
            if rc.is_more(&temp.used, &temp.ideal) { capped_sum(sum, temp.used - temp.ideal) } else { sum }
        });
        let (num, den) = if rc.is_more(&needed, &self.most) { rc.fraction(&self.most, &needed) } else { (1, 1) };
        for at in queues {
            let temp = &mut temps[*at];
            let least = rc.max(&rc.min(&capped_sum(temp.used, temp.pending), &temp.guaranteed), &temp.ideal);
            let is_over = rc.is_more(&temp.used, &least);
            temp.excess = if is_over { rc.part_down(&(temp.used - least), num, den) } else { NONE };
        }
    }

    /// Compares two queues in the order of offers; the lesser queue is served less, and receives offers first.
    fn compare(rc: &Calculator, one: &Temp, other: &Temp) -> Ordering {
        let served = |temp: &Temp| match rc.is_more(&temp.guaranteed, &NONE) {
            true => rc.ratio(&temp.ideal, &temp.guaranteed),
            false => Ratio::INFINITE,
        };
        utilisation((served(one), one.priority), (served(other), other.priority))
    }

    fn fill(
        &self,
        rc: &Calculator,
        tree: &Tree,
        temps: &mut [Temp],
        queues: &[QueueAt],
        left: &mut SignedAmounts,
        alike: bool,
    ) {
        let mut wanting: Vec<QueueAt> = Vec::new();
        for at in queues {
            let temp = &mut temps[*at];
            temp.ideal = if rc.is_more(&temp.used, &temp.guaranteed) {
                capped_sum(temp.guaranteed.min(temp.used), temp.untouchable)
            } else {
                temp.used
            };
            *left -= temp.ideal;
            if rc.is_more(&capped_sum(temp.used, temp.pending), &temp.ideal) {
                wanting.push(*at);
            }
        }
        for _ in 0..ROUNDS {
            if wanting.is_empty() || !rc.is_more(left, &NONE) {
                return;
            }
            let sum = wanting.iter().map(|at| temps[*at].guaranteed).fold(NONE, capped_sum);
            let count = wanting.len() as u128;
            wanting.sort_by(|one, other| Rules::compare(rc, &temps[*one], &temps[*other]));
            let (first, rest): (Vec<QueueAt>, Vec<QueueAt>) =
                wanting.iter().partition(|at| Rules::compare(rc, &temps[wanting[0]], &temps[**at]).is_eq());
            wanting = rest;
            let round = *left;
            for at in first {
                if left.fits(&NONE) {
                    break;
                }
                let guaranteed = temps[at].guaranteed;
                let part = SignedAmounts::from_fn(|d| {
                    let (num, den) = if alike { (1, count as i128) } else { (guaranteed[d], sum[d]) };
                    if den == 0 { 0 } else { rc.part(&round, num as u128, den as u128)[d] }
                });
                let done = self.offer(rc, &mut temps[at], &part.min(*left), tree.is_leaf(at));
                if rc.is_more(&done, &NONE) {
                    wanting.push(at);
                }
                *left = (*left - done).max(NONE);
            }
        }
    }

    /// Returns the part of an offer that a queue accepts.
    fn offer(&self, rc: &Calculator, temp: &mut Temp, offer: &SignedAmounts, leaf: bool) -> SignedAmounts {
        let room = (temp.max - temp.ideal).max(NONE);
        let wanted = capped_sum(temp.used, temp.pending) - temp.ideal;
        let mut taken = room.min(rc.min(offer, &wanted));
        if leaf {
            let due = rc.max(&temp.used, &temp.guaranteed) - temp.ideal;
            taken = rc.min(&taken, &rc.max(&due, &NONE));
        }
        taken = taken.max(NONE);
        if !self.takes_more {
            taken = taken.min(*offer);
        }
        temp.ideal = capped_sum(temp.ideal, taken);
        taken
    }
}
