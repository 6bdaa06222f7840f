//! The search for the victims of a workload, for reclaim and preempt.
//!
//! Victims are added one at a time. Once the freed amounts suffice, a simulation places the victims and the workload in the order of the
//! policy; victims that find a place are spared. The other victims are the solution if the workload is placed. For reclaim, a rule must
//! also justify each of them, and the queues that gain must stay behind the queues that lose. The search ends after [`SIMULATIONS`]
//! simulations.
//!
//! Source: the KAI scheduler, `actions/common/solvers`, `actions/{reclaim,preempt}`,
//! `plugins/proportion/reclaimable` (state of August 2026).

use std::collections::{HashMap, HashSet};

use ethnum::U256;

use super::super::cycle::{Bound, ONE, Placements, QueueAt, ROOT, Runs};
use super::quotas::Shares;
use super::walk::{Item, Walk};
use super::{Rules, Session, WaitingWorkload};
use plimsoll_base::units::{Resources, UserId};

/// A running task, or gang, that may be preempted.
#[derive(Clone, Copy)]
pub struct Victim {
    pub runs: Runs,
    /// Whether it is beyond the minimum of its job. Such victims are preempted before the others, and placed after them in a simulation.
    spare: bool,
}

impl Item for Victim {
    fn amount(&self) -> Resources {
        self.runs.unit()
    }
}

/// A candidate for placement in a simulation.
#[derive(Clone, Copy)]
enum PlacementCandidate {
    Preemptor(WaitingWorkload),
    Victim(usize, Victim),
}

impl Item for PlacementCandidate {
    fn amount(&self) -> Resources {
        match self {
            PlacementCandidate::Preemptor(entry) => entry.need,
            PlacementCandidate::Victim(_, victim) => victim.amount(),
        }
    }
}

impl PlacementCandidate {
    fn key(&self) -> (u8, bool, (u64, u64)) {
        match self {
            PlacementCandidate::Preemptor(entry) => {
                (entry.next.priority, entry.spare, (entry.next.since.0.0, entry.next.since.1))
            }
            PlacementCandidate::Victim(_, victim) => {
                (victim.runs.priority, victim.spare, (victim.runs.since.0.0, victim.runs.since.1))
            }
        }
    }
}

/// The maximum number of simulations for one workload; the source has no limit.
const SIMULATIONS: usize = 64;

const ABOVE_FAIR: &str = "reclaim: its queue holds more than its fair share";
const ABOVE_DESERVED: &str = "reclaim: its queue holds more than it deserves, and the other one less";
const LOWER_QUEUE: &str = "reclaim: its queue has a lower priority, and the other one holds less than it deserves";
const LOWER_PRIORITY: &str = "preempt: it is less urgent than another workload of its queue";

/// The search for victims of one workload.
pub struct VictimSearch<'s, 'a> {
    pub session: &'s Session<'a>,
    pub shares: Shares<'s>,
    pub rules: &'s Rules,
    pub entry: WaitingWorkload,
}

/// Victims, each with the rule that justifies it.
pub type Taken = Vec<(Runs, &'static str)>;

/// Victims, and the placement of the workload after they have left.
pub struct Solution {
    pub victims: Taken,
    pub seats: Placements,
}

impl VictimSearch<'_, '_> {
    /// Returns whether the workload's queue may reclaim for it. The queue must stay within its fair share, and its non-preemptible
    /// workloads within its deserved amount.
    pub fn may_reclaim(&self) -> bool {
        let leaf = self.entry.next.queue;
        let with = self.session.usage[leaf] + self.entry.need;
        self.shares.is_fair(leaf, &with)
            && (self.preemptible() || self.shares.quotas.is_deserved(self.shares.tree, leaf, &self.fixed(leaf)))
    }

    fn preemptible(&self) -> bool {
        self.shares.tree[self.entry.next.queue].preemptible
    }

    /// Returns the non-preemptible allocation of a queue, with the workload.
    fn fixed(&self, at: QueueAt) -> Resources {
        self.shares.quotas.fixed(self.session.tree, &self.session.usage, at, &self.entry.need)
    }

    /// Searches for victims in other queues.
    pub fn reclaim(&self) -> Option<Solution> {
        let tree = self.session.tree;
        let own = self.entry.next.queue;
        let others = tree.leaves().filter(|leaf| *leaf != own);
        let lines = others.filter(|leaf| self.is_candidate(*leaf)).map(|leaf| (leaf, self.line(leaf, None))).collect();
        self.search(lines, true)
    }

    /// Searches for less urgent victims in the workload's own queue.
    pub fn preempt(&self) -> Option<Solution> {
        let leaf = self.entry.next.queue;
        if !self.preemptible_leaf(leaf) {
            return None;
        }
        self.search(vec![(leaf, self.line(leaf, Some(self.entry.next.priority)))], false)
    }

    fn preemptible_leaf(&self, leaf: QueueAt) -> bool {
        self.shares.tree[leaf].preemptible && !self.session.tree.nodes[leaf].users.is_empty()
    }

    /// Returns whether a queue may have victims, before any are examined (`filter_victims.go`, the fix of issue 1750).
    fn is_candidate(&self, leaf: QueueAt) -> bool {
        if !self.preemptible_leaf(leaf) || self.session.usage[leaf].is_zero() {
            return false;
        }
        if self.rules.unfiltered {
            return true;
        }
        let (own, other) = self.level(leaf);
        let held = self.session.usage[other];
        let Shares { quotas, tree, .. } = self.shares;
        if !quotas.is_deserved(tree, own, &(self.session.usage[own] + self.entry.need)) {
            return self.is_above_fair(other, &held);
        }
        if self.rules.settings.queue_priority && tree[own].priority > tree[other].priority {
            return true;
        }
        let asked = |d: &usize| quotas.is_divided(*d) && self.entry.need[*d] > 0;
        let over = (0..quotas.dims).filter(asked).any(|d| Bound::Amount(held[d]) > tree[other].deserved(d));
        over || !(0..quotas.dims).filter(asked).any(|d| Bound::Amount(held[d]) < tree[other].deserved(d))
    }

    /// Returns the two queues to compare: the ancestors of the workload's queue and of the victims' queue right under their lowest common
    /// ancestor.
    fn level(&self, leaf: QueueAt) -> (QueueAt, QueueAt) {
        self.session.tree.siblings(self.entry.next.queue, leaf)
    }

    fn is_above_fair(&self, at: QueueAt, held: &Resources) -> bool {
        !self.rules.deserved_alone
            && (0..self.shares.quotas.dims).any(|d| self.shares.allocatable(at, d).is_some_and(|most| held[d] > most))
    }

    /// Returns the victims of a queue in the order of preemption: by priority, the least urgent first, then tasks beyond the minimum of
    /// their jobs, then the youngest. With `than`, returns only victims that are less urgent than this priority.
    fn line(&self, leaf: QueueAt, than: Option<u8>) -> Vec<Victim> {
        let (mut line, mut left): (Vec<Victim>, HashMap<UserId, u64>) = Default::default();
        for runs in self.session.running(leaf) {
            let count = runs.count - self.session.stopped(runs.key).min(runs.count);
            if count == 0 || than.is_some_and(|priority| runs.priority <= priority) {
                continue;
            }
            if runs.gang {
                line.push(Victim { runs: *runs, spare: false });
                continue;
            }
            let left = left.entry(runs.user).or_insert_with(|| self.session.left(runs.user));
            for _ in 0..count {
                line.push(Victim { runs: Runs { count: 1, ..*runs }, spare: *left > 1 });
                *left = left.saturating_sub(1);
            }
        }
        line.sort_by_key(|victim| (std::cmp::Reverse(victim.runs.priority), !victim.spare));
        line
    }

    fn search(&self, lines: Vec<(QueueAt, Vec<Victim>)>, validated: bool) -> Option<Solution> {
        let usage = &self.session.usage;
        let mut walk = Walk::new(self.shares, usage, lines, true);
        let (mut taken, mut freed, mut simulations) = (Vec::new(), self.session.free, 0);
        while simulations < SIMULATIONS {
            let leaf = walk.leaf()?;
            let victim = walk.pop(leaf)?;
            walk.settle(leaf, usage);
            freed += victim.amount();
            taken.push(victim);
            if !self.entry.need.fits(&freed) {
                continue;
            }
            simulations += 1;
            if let Some((gone, seats)) = self.simulate(&taken)
                && let Some(victims) = if validated { self.validate(&gone) } else { Some(of_priority(&gone)) }
            {
                return Some(Solution { victims, seats });
            }
        }
        None
    }

    /// Simulates the placement of the workload and the victims. Returns the victims that find no place and the machines of the workload, or
    /// `None` if the workload finds no place. Victims are placed on their own machines, the workload on any machine with room.
    fn simulate(&self, taken: &[Victim]) -> Option<(Vec<Victim>, Placements)> {
        let mut usage = self.session.usage.clone();
        let mut trial = self.session.trial();
        for victim in taken {
            trial.release(self.session, &victim.runs);
            self.shares.tree.change(&mut usage, victim.runs.queue, &victim.amount(), false);
        }
        let mut lines: HashMap<QueueAt, Vec<PlacementCandidate>> = HashMap::new();
        lines.entry(self.entry.next.queue).or_default().push(PlacementCandidate::Preemptor(self.entry));
        for (at, victim) in taken.iter().enumerate() {
            lines.entry(victim.runs.queue).or_default().push(PlacementCandidate::Victim(at, *victim));
        }
        let mut lines: Vec<(QueueAt, Vec<PlacementCandidate>)> = lines.into_iter().collect();
        lines.sort_by_key(|(leaf, _)| *leaf);
        lines.iter_mut().for_each(|(_, line)| line.sort_by_key(PlacementCandidate::key));
        let mut walk = Walk::new(self.shares, &usage, lines, false);
        let (mut seats, mut stays) = (None, HashSet::new());
        while let Some(leaf) = walk.leaf() {
            let Some(candidate) = walk.pop(leaf) else { break };
            let amount = candidate.amount();
            let allowed = self.shares.quotas.over_limit(self.shares.tree, &usage, leaf, &amount).is_none();
            let fits = allowed
                && match &candidate {
                    PlacementCandidate::Preemptor(WaitingWorkload { next, .. }) => {
                        seats = trial.place_all(&next.each, next.together(), |_| None);
                        seats.is_some()
                    }
                    PlacementCandidate::Victim(_, victim) => trial.restore(self.session, &victim.runs),
                };
            match candidate {
                PlacementCandidate::Preemptor(_) if !fits => return None,
                PlacementCandidate::Preemptor(_) => {}
                PlacementCandidate::Victim(at, _) if fits => drop(stays.insert(at)),
                PlacementCandidate::Victim(..) => {}
            }
            if fits {
                self.shares.tree.change(&mut usage, leaf, &amount, true);
            }
            walk.settle(leaf, &usage);
        }
        let gone = taken.iter().enumerate().filter(|(at, _)| !stays.contains(at)).map(|(_, victim)| *victim);
        Some((gone.collect(), seats?))
    }

    /// Returns the victims if the queues that gain stay behind the queues that lose. Each victim has the rule that justifies it after the
    /// previous victims of its queue have left.
    fn validate(&self, gone: &[Victim]) -> Option<Taken> {
        let (tree, quotas) = (self.session.tree, self.shares.quotas);
        let mut left = self.session.usage.clone();
        let mut touched = vec![Resources::uniform(false); tree.nodes.len()];
        let mut leaves: Vec<QueueAt> = gone.iter().map(|victim| victim.runs.queue).collect();
        leaves.sort_unstable();
        leaves.dedup();
        let mut solution = Taken::new();
        for leaf in leaves {
            let (own, other) = self.level(leaf);
            let starved = quotas.is_deserved(tree, own, &(self.session.usage[own] + self.entry.need));
            for victim in gone.iter().filter(|victim| victim.runs.queue == leaf) {
                let held = left[other];
                let rule = if self.is_above_fair(other, &held) {
                    ABOVE_FAIR
                } else if starved && !quotas.is_deserved(tree, other, &held) {
                    ABOVE_DESERVED
                } else if starved && self.rules.settings.queue_priority && tree[own].priority > tree[other].priority {
                    LOWER_QUEUE
                } else {
                    return None;
                };
                solution.push((victim.runs, rule));
                tree.change(&mut left, leaf, &victim.amount(), false);
                for at in tree.path(leaf) {
                    touched[at] = touched[at].zip_with(victim.amount(), |touched, amount| touched || amount > 0);
                }
            }
        }
        let path = tree.path(self.entry.next.queue).filter(|at| *at != ROOT);
        { path }.all(|at| self.stays_behind(at, &left, &touched)).then_some(solution)
    }

    /// Returns whether a queue that gains stays behind its siblings that lose, measured by the used parts of their fair shares.
    fn stays_behind(&self, at: QueueAt, left: &[Resources], touched: &[Resources<bool>]) -> bool {
        let (tree, quotas) = (self.session.tree, self.shares.quotas);
        let parent = tree.nodes[at].parent;
        let with = left[at] + self.entry.need;
        let fixed = || self.preemptible() || quotas.is_deserved(tree, at, &self.fixed(at));
        if self.rules.within_shares {
            let alone = parent == ROOT && tree.nodes[ROOT].children.len() == 1;
            return (alone || self.shares.is_fair(at, &with)) && fixed();
        }
        let losers = tree.nodes[parent]
            .children
            .iter()
            .filter(|sibling| **sibling != at && touched[**sibling] != Resources::uniform(false));
        let behind = |sibling: &QueueAt, d: usize| {
            let (own, other) = (self.shares.fair[at][d], self.shares.fair[*sibling][d]);
            if with[d] <= own || other == 0 {
                return true;
            }
            let part = |amount: u64, by: u64, times: u64| U256::from(amount) * U256::from(by) * U256::from(times);
            own > 0 && part(with[d], other, self.rules.settings.saturation) < part(left[*sibling][d], own, ONE)
        };
        { losers }.all(|sibling| {
            let counts = |d: &usize| quotas.is_divided(*d) && (touched[*sibling][*d] || self.entry.need[*d] > 0);
            (0..quotas.dims).filter(counts).all(|d| behind(sibling, d))
        }) && fixed()
    }
}

fn of_priority(gone: &[Victim]) -> Taken {
    gone.iter().map(|victim| (victim.runs, LOWER_PRIORITY)).collect()
}
