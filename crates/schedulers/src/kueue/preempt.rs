//! The search for the victims of a workload: the rules S2-a and S2-b of fair sharing, and the restoration of unneeded victims.
//!
//! Candidates are taken from the child with the highest share that has candidates, from the root down, until the workload fits. A second
//! pass applies rule S2-b to the candidates that the first pass skipped. Then unneeded victims are restored, except the victim taken last.
//! The search changes the snapshot, and restores it before it returns.
//!
//! Source: Kueue, `pkg/scheduler/preemption/preemption.go` and `pkg/scheduler/preemption/fairsharing` (state of August 2026).

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::super::cycle::{QueueAt, ROOT, Runs, Waiting};
use super::Rules;
use super::guard::Guard;
use super::quotas::{BorrowingShare, Reclaim, Session, Snapshot, WithinQueue};
use plimsoll_base::units::{MAX_DIMS, Resources};

/// A rule for the preemption of workloads of other queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// S2-a: the preemptor's share with the workload is at most the target's without the victim.
    FinalShare,
    /// S2-b: the preemptor's share with the workload is below the target's current share.
    InitialShare,
}

/// A victim, and the rule that justifies it.
#[derive(Clone, Copy, Debug)]
pub struct JustifiedVictim {
    pub runs: Runs,
    pub rule: &'static str,
}

const OWN: &str = "a more urgent workload of its own queue";
const RECLAIMED: &str = "a workload within the nominal quota of its queue";
const FINAL: &str = "fair sharing: the share of its queue stays above (S2-a)";
const INITIAL: &str = "fair sharing: the share of its queue was above (S2-b)";
const BORROWS: &str = "a more urgent workload that borrows (issue 3779)";

/// The search for the victims of one workload.
pub struct Search<'a, 'b, 's> {
    session: &'a Session<'s>,
    snapshot: &'a mut Snapshot<'b>,
    rules: &'a Rules,
    guard: Option<&'a Guard<'b>>,
    next: &'a Waiting,
    need: Resources,
    /// Whether less of each resource is available than the workload needs.
    contested: Resources<bool>,
    /// Whether the preemptor, before any victim is taken, is within its nominal quota of the contested resources including the workload.
    /// If so, it reclaims regardless of shares.
    within_nominal: bool,
    /// By queue, the candidates that were not examined yet, in reverse order.
    left: BTreeMap<QueueAt, Vec<Runs>>,
    targets: Vec<JustifiedVictim>,
}

impl<'a, 'b, 's> Search<'a, 'b, 's> {
    /// Returns the victims of a workload that does not fit; empty if no victims help. The snapshot is unchanged afterwards.
    pub fn targets(
        session: &'a Session<'s>,
        snapshot: &'a mut Snapshot<'b>,
        rules: &'a Rules,
        guard: Option<&'a Guard<'b>>,
        next: &'a Waiting,
    ) -> Vec<JustifiedVictim> {
        let need = next.need();
        let contested = Resources::from_fn(|d| need[d] > 0 && need[d] as i64 > snapshot.available(next.queue, d));
        let within_nominal = (0..MAX_DIMS).all(|d| {
            let (usage, nominal) = (snapshot.usage(next.queue)[d], session.tree[next.queue].nominal[d]);
            !contested[d] || usage + need[d] as i64 <= nominal as i64
        });
        let (left, targets) = Default::default();
        let mut search =
            Search { session, snapshot, rules, guard, next, need, contested, within_nominal, left, targets };
        let own = search.may_displace_own();
        if !own && session.tree[next.queue].reclaim == Reclaim::Never {
            return Vec::new();
        }
        // From here on, shares include the workload.
        search.snapshot.add(next.queue, &need);
        search.candidates(own);
        let found = search.run();
        search.snapshot.remove(next.queue, &need);
        if !found {
            search.targets.iter().for_each(|target| search.snapshot.add(target.runs.queue, &target.runs.unit()));
            return Vec::new();
        }
        search.fill_back();
        search.targets.iter().for_each(|target| search.snapshot.add(target.runs.queue, &target.runs.unit()));
        search.targets
    }

    /// Returns whether the workload may preempt others of its own queue.
    fn may_displace_own(&self) -> bool {
        let quota = &self.session.tree[self.next.queue];
        quota.within != WithinQueue::Never
            && self.session.least_urgent(self.next.queue).is_some_and(|least| match quota.within {
                WithinQueue::LowerOrNewerEqual => least >= self.next.priority,
                _ => least > self.next.priority,
            })
    }

    /// Returns whether workloads of another queue can qualify; if not, they are not searched. During the search, the preemptor's share
    /// falls only if victims are from its own queue or from the compared cohort, and the shares of other nodes only fall.
    fn may_give(&self, at: QueueAt, own: bool) -> bool {
        if own || self.within_nominal || self.rules.borrows_within {
            return true;
        }
        let (mine, theirs) = self.pair(at);
        mine != self.next.queue
            || self.cmp(&self.snapshot.share(mine), &self.snapshot.share(theirs)) != Ordering::Greater
    }

    fn candidates(&mut self, of_own: bool) {
        let tree = self.session.tree;
        let quota = &tree[self.next.queue];
        for at in tree.leaves().filter(|at| *at != ROOT && self.session.usage[*at] != Resources::ZERO) {
            let own = at == self.next.queue;
            if if own {
                !of_own
            } else {
                quota.reclaim == Reclaim::Never || !self.borrows(at) || !self.may_give(at, of_own)
            } {
                continue;
            }
            let may = |runs: &Runs| {
                let lower = runs.priority > self.next.priority;
                let chosen = match (own, quota.within, quota.reclaim) {
                    (true, WithinQueue::Never, _) => false,
                    (true, WithinQueue::LowerPriority, _) => lower,
                    (true, WithinQueue::LowerOrNewerEqual, _) => {
                        lower || (runs.priority == self.next.priority && runs.since > self.next.since)
                    }
                    (false, _, Reclaim::Any) => true,
                    (false, _, Reclaim::LowerPriority) => lower,
                    (false, _, Reclaim::Never) => false,
                };
                chosen && (0..MAX_DIMS).any(|d| self.contested[d] && runs.each[d] > 0)
            };
            let all = self.session.running(at).iter().filter(|runs| may(runs)).flat_map(|runs| {
                let kept = self.guard.map_or(0, |guard| guard.protected_tasks(self.session, runs)) as usize;
                let (units, stopped) = (runs.units().count(), self.session.stopped(runs.key) as usize);
                runs.units().take(units.saturating_sub(kept + stopped))
            });
            let mut all: Vec<Runs> = all.collect();
            all.reverse();
            if !all.is_empty() {
                self.left.insert(at, all);
            }
        }
    }

    /// Returns whether a queue uses more than its own nominal quota of a contested resource.
    fn borrows(&self, at: QueueAt) -> bool {
        let (usage, nominal) = (self.snapshot.usage(at), &self.session.tree[at].nominal);
        let over = (0..MAX_DIMS).any(|d| self.contested[d] && usage[d] > nominal[d] as i64);
        over && (self.rules.arithmetic != super::Arithmetic::Truncated || self.positive(at))
    }

    fn positive(&self, at: QueueAt) -> bool {
        self.snapshot.share(at).is_positive(self.rules.arithmetic)
    }

    fn cmp(&self, one: &BorrowingShare, other: &BorrowingShare) -> Ordering {
        one.cmp(other, self.rules.arithmetic)
    }

    /// Returns whether the workload fits without the victims chosen so far. The snapshot already includes the workload.
    fn fits(&mut self) -> bool {
        self.snapshot.remove(self.next.queue, &self.need);
        let fits = self.snapshot.fits(self.next.queue, &self.need);
        self.snapshot.add(self.next.queue, &self.need);
        fits
    }

    fn preempt(&mut self, runs: Runs, rule: &'static str) -> bool {
        self.snapshot.remove(runs.queue, &runs.unit());
        self.targets.push(JustifiedVictim { runs, rule });
        self.fits()
    }

    fn run(&mut self) -> bool {
        let first = self.rules.settings.strategies[0];
        let mut again: BTreeMap<QueueAt, Vec<Runs>> = BTreeMap::new();
        while let Some(queue) = self.next_queue() {
            if queue == self.next.queue {
                let Some(runs) = self.pop(queue) else { continue };
                if self.preempt(runs, OWN) {
                    return true;
                }
                continue;
            }
            let (mine, theirs) = self.pair(queue);
            let (share, old) = (self.snapshot.share(mine), self.snapshot.share(theirs));
            while let Some(runs) = self.pop(queue) {
                let rule = if self.within_nominal {
                    Some(RECLAIMED)
                } else if self.session.tree[self.next.queue].borrows_within
                    && self.rules.borrows_within
                    && runs.priority > self.next.priority
                {
                    Some(BORROWS)
                } else {
                    self.legal(first, &runs, theirs, &share, &old)
                };
                match rule {
                    Some(rule) => {
                        if self.preempt(runs, rule) {
                            return true;
                        }
                        break;
                    }
                    None => again.entry(queue).or_default().push(runs),
                }
            }
        }
        if self.rules.settings.strategies.len() < 2 {
            return false;
        }
        again.values_mut().for_each(|runs| runs.reverse());
        self.left = again;
        while let Some(queue) = self.next_queue() {
            let (mine, theirs) = self.pair(queue);
            let (share, old) = (self.snapshot.share(mine), self.snapshot.share(theirs));
            if self.cmp(&share, &old) == Ordering::Less
                && let Some(runs) = self.pop(queue)
                && self.preempt(runs, INITIAL)
            {
                return true;
            }
            self.left.remove(&queue);
        }
        false
    }

    /// Returns the rule that justifies a workload of another queue as victim, if any.
    fn legal(
        &mut self,
        strategy: Strategy,
        runs: &Runs,
        theirs: QueueAt,
        share: &BorrowingShare,
        old: &BorrowingShare,
    ) -> Option<&'static str> {
        match strategy {
            Strategy::InitialShare => (self.cmp(share, old) == Ordering::Less).then_some(INITIAL),
            Strategy::FinalShare => {
                self.snapshot.remove(runs.queue, &runs.unit());
                let new = self.snapshot.share(theirs);
                self.snapshot.add(runs.queue, &runs.unit());
                (self.cmp(share, &new) != Ordering::Greater).then_some(FINAL)
            }
        }
    }

    /// Returns the nodes of preemptor and target right under their lowest common cohort.
    fn pair(&self, queue: QueueAt) -> (QueueAt, QueueAt) {
        self.session.tree.siblings(self.next.queue, queue)
    }

    fn pop(&mut self, queue: QueueAt) -> Option<Runs> {
        let left = self.left.get_mut(&queue)?;
        let runs = left.pop();
        if left.is_empty() {
            self.left.remove(&queue);
        }
        runs
    }

    /// Returns the queue that provides the next victim, from the root down: the child with the highest share that has candidates. Nodes
    /// that do not borrow are skipped, except the preemptor's queue and its ancestors.
    fn next_queue(&mut self) -> Option<QueueAt> {
        loop {
            if self.left.is_empty() {
                return None;
            }
            match self.descend(ROOT) {
                Some(queue) => return Some(queue),
                // The remaining queues cannot provide victims.
                None => self.left.clear(),
            }
        }
    }

    fn descend(&self, at: QueueAt) -> Option<QueueAt> {
        let tree = self.session.tree;
        let mut best: Option<(BorrowingShare, bool, QueueAt)> = None;
        for child in tree.nodes[at].children.iter().copied() {
            let leaf = tree.is_leaf(child);
            let kin = tree.is_within(self.next.queue, child);
            if !kin && !self.positive(child) {
                continue;
            }
            let has = if leaf { self.left.contains_key(&child) } else { self.descend(child).is_some() };
            if !has {
                continue;
            }
            let share = self.snapshot.share(child);
            let first = match &best {
                None => true,
                Some((other, other_leaf, known)) => match self.cmp(&share, other) {
                    Ordering::Greater => true,
                    Ordering::Less => false,
                    // A cohort precedes a queue. Of two queues, the one with the earlier first candidate is first.
                    Ordering::Equal if leaf != *other_leaf => !leaf,
                    Ordering::Equal => leaf && self.first_of(child) < self.first_of(*known),
                },
            };
            if first {
                best = Some((share, leaf, child));
            }
        }
        let (_, leaf, child) = best?;
        if leaf { Some(child) } else { self.descend(child) }
    }

    /// Returns the rank of a queue by its first candidate: other queues precede the preemptor's own, then the least urgent candidate is
    /// first, then the youngest.
    fn first_of(&self, queue: QueueAt) -> impl Ord + use<'a, 'b, 's> {
        let turn = self.left.get(&queue).and_then(|left| left.last()).map(Runs::turn);
        (queue == self.next.queue, turn)
    }

    /// Restores unneeded victims, from the last to the first, except the one taken last.
    fn fill_back(&mut self) {
        let mut at = self.targets.len().saturating_sub(1);
        while at > 0 {
            at -= 1;
            let runs = self.targets[at].runs;
            self.snapshot.add(runs.queue, &runs.unit());
            if self.snapshot.fits(self.next.queue, &self.need) {
                self.targets.swap_remove(at);
            } else {
                self.snapshot.remove(runs.queue, &runs.unit());
            }
        }
    }
}
