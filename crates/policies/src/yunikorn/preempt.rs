//! Preemption for an ask that a guarantee covers.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::super::cycle::{QueueAt, ROOT, Runs, Session, Tree, Waiting};
use super::{MAKING_ROOM, YuniKorn};
use plimsoll_base::units::{MAX_DIMS, MachineId, Resources, UserId};

const FOR_GUARANTEE: &str = "its queue is above its guarantee, and the ask's is below";

/// Allocations of one entry that may be stopped.
struct Candidate {
    runs: Runs,
    left: u32,
}

/// Candidates by place, once for each of their units, in the order in which they are stopped.
type Victims = Vec<usize>;

/// The amounts that guarantees leave by resource, negative where they are exceeded; `None` without a guarantee.
#[derive(Clone, Copy)]
struct Left([Option<i128>; MAX_DIMS]);

impl Left {
    fn is_none(&self) -> bool {
        self.0.iter().all(Option::is_none)
    }

    /// Whether there is a guarantee, and so much fits into it; a resource without one is no obstacle.
    fn covers(&self, amount: &Resources) -> bool {
        let fits = |d: usize| self.0[d].is_none_or(|left| amount.0[d] == 0 || i128::from(amount.0[d]) <= left);
        !self.is_none() && (0..MAX_DIMS).all(fits)
    }

    /// Whether a resource of these is exceeded.
    fn exceeded(&self, of: &Resources) -> bool {
        (0..MAX_DIMS).any(|d| of.0[d] > 0 && self.0[d].is_some_and(|left| left < 0))
    }
}

/// An ask, and the use of queues as it would be.
struct Trial<'a> {
    rule: &'a YuniKorn,
    tree: &'a Tree,
    ask: QueueAt,
    need: Resources,
    usage: Vec<Resources>,
}

impl Trial<'_> {
    /// The least that guarantees leave on the way up from a queue. An ask's queue with a guarantee goes by that alone; and those above it
    /// then say nothing of others below them, so that siblings within a common guarantee may be victims.
    fn left(&self, queue: QueueAt) -> Left {
        let own = self.has_own();
        let mut left = [None; MAX_DIMS];
        for at in self.tree.path(queue) {
            let above_ask = at != self.ask && self.tree.path(self.ask).any(|above| above == at);
            if above_ask && (own || self.rule.inherits && queue != self.ask) {
                break;
            }
            for (d, left) in left.iter_mut().enumerate() {
                let more =
                    self.rule.settings[at].guaranteed[d].map(|most| i128::from(most) - i128::from(self.usage[at].0[d]));
                *left = left.iter().copied().chain(more).min();
            }
        }
        Left(left)
    }

    /// Whether the ask's queue has a guarantee of its own.
    fn has_own(&self) -> bool {
        self.rule.settings[self.ask].guaranteed.iter().any(Option::is_some)
    }

    /// Whether no victim can make the guarantee of the ask's queue cover it.
    fn is_hopeless(&self) -> bool {
        let left = self.left(self.ask);
        left.is_none() || self.has_own() && !left.covers(&self.need)
    }

    /// Whether a victim may be taken of a queue: it has no guarantee, or exceeds it in a resource of the ask.
    fn gives(&self, queue: QueueAt) -> bool {
        let left = self.left(queue);
        left.is_none() || left.exceeded(&self.need)
    }

    fn add(&mut self, queue: QueueAt, amount: &Resources) {
        self.change(queue, amount, u64::saturating_add);
    }

    fn remove(&mut self, queue: QueueAt, amount: &Resources) {
        self.change(queue, amount, u64::saturating_sub);
    }

    fn change(&mut self, queue: QueueAt, amount: &Resources, by: fn(u64, u64) -> u64) {
        for at in self.tree.path(queue) {
            self.usage[at].0.iter_mut().zip(amount.0).for_each(|(used, amount)| *used = by(*used, amount));
        }
    }
}

impl YuniKorn {
    /// Makes room for those that asked in vain.
    pub fn preempt(&self, session: &mut Session, vain: &[UserId]) {
        if vain.is_empty() || self.settings.iter().all(|settings| settings.guaranteed == [None; MAX_DIMS]) {
            return;
        }
        let mut candidates: Option<Vec<Candidate>> = None;
        let mut more: BTreeMap<MachineId, [i128; MAX_DIMS]> = BTreeMap::new();
        // Of equal asks that found nobody, the others need not look.
        let mut hopeless: Vec<(QueueAt, u8, Resources)> = Vec::new();
        for user in vain {
            while let Some(next) = session.next(*user) {
                let need = next.need();
                let key = (next.queue, next.priority, need);
                if hopeless.contains(&key) || self.trial(session, &next).is_hopeless() {
                    break;
                }
                let all = candidates.get_or_insert_with(|| self.candidates(session));
                let Some((machine, victims)) = self.victims(session, all, &more, &next) else {
                    hopeless.push(key);
                    break;
                };
                let mut change = |machine: MachineId, amount: &Resources, sign: i128| {
                    let change = more.entry(machine).or_default();
                    (0..MAX_DIMS).for_each(|d| change[d] += sign * i128::from(amount.0[d]));
                };
                for at in victims {
                    let Candidate { runs, left } = &mut all[at];
                    *left -= 1;
                    change(runs.machine, &runs.unit(), 1);
                    session.evict(runs, 1, Some(*user), FOR_GUARANTEE);
                }
                if let Some(machine) = machine {
                    change(machine, &need, -1);
                }
                if self.keeps_room && self.above_max(session.tree, &session.usage, next.queue, &need).is_none() {
                    session.launch(&next, 1);
                } else {
                    session.wait(*user, MAKING_ROOM);
                    break;
                }
            }
        }
    }

    fn trial<'a>(&'a self, session: &Session<'a>, next: &Waiting) -> Trial<'a> {
        Trial { rule: self, tree: session.tree, ask: next.queue, need: next.need(), usage: session.usage.clone() }
    }

    /// All that may be stopped, the youngest first.
    fn candidates(&self, session: &Session) -> Vec<Candidate> {
        let leaves = (0..session.tree.nodes.len()).filter(|at| session.tree.is_leaf(*at));
        let open = leaves.filter(|leaf| !session.tree.path(*leaf).any(|at| self.settings[at].fixed));
        let runs = open.flat_map(|leaf| session.running(leaf));
        let mut all: Vec<Candidate> =
            runs.map(|runs| Candidate { runs: *runs, left: if runs.gang { 1 } else { runs.count } }).collect();
        all.sort_by_key(|candidate| (Reverse(candidate.runs.start), Reverse(candidate.runs.row)));
        all
    }

    /// The queue below which the victims of an ask are: the lowest on its way up that has its maximum, to the last unit.
    fn fence(&self, session: &Session, ask: QueueAt) -> QueueAt {
        let full = |at: &QueueAt| {
            let max = self.settings[*at].max;
            max.iter().any(Option::is_some) && (0..MAX_DIMS).all(|d| max[d].unwrap_or(0) == session.usage[*at].0[d])
        };
        session.tree.path(ask).find(full).unwrap_or(ROOT)
    }

    /// Whether tasks are no more urgent than an ask. What queues add counts below the lowest one above both; on the side of the ask that
    /// one counts, too.
    fn no_more_urgent(&self, tree: &Tree, runs: &Runs, next: &Waiting) -> bool {
        let common = tree.common(runs.queue, next.queue);
        let added = |queue: QueueAt| -> i64 {
            tree.path(queue).take_while(|at| *at != common).map(|at| self.settings[at].priority).sum()
        };
        i64::from(runs.priority) - added(runs.queue)
            >= i64::from(next.priority) - added(next.queue) - self.settings[common].priority
    }

    /// The candidates that an ask may have, by place.
    fn potential(&self, session: &Session, all: &[Candidate], next: &Waiting) -> Vec<usize> {
        let (trial, fence) = (self.trial(session, next), self.fence(session, next.queue));
        let open = |leaf: QueueAt| {
            let left = trial.left(leaf);
            let exceeds = left.is_none() || left.0.iter().flatten().any(|left| *left < 0);
            leaf != next.queue && exceeds && session.tree.path(leaf).any(|at| at == fence)
        };
        let mut leaves: BTreeMap<QueueAt, bool> = BTreeMap::new();
        let mut may = |Candidate { runs, left }: &Candidate| {
            let matches = (0..MAX_DIMS).any(|d| trial.need.0[d] > 0 && runs.each.0[d] > 0);
            *left > 0
                && matches
                && *leaves.entry(runs.queue).or_insert_with(|| open(runs.queue))
                && self.no_more_urgent(session.tree, runs, next)
        };
        (0..all.len()).filter(|at| may(&all[*at])).collect()
    }

    /// The victims of an ask, and the machine that it takes, if it is known.
    fn victims(
        &self,
        session: &Session,
        all: &[Candidate],
        more: &BTreeMap<MachineId, [i128; MAX_DIMS]>,
        next: &Waiting,
    ) -> Option<(Option<MachineId>, Victims)> {
        let potential = self.potential(session, all, next);
        if potential.is_empty() || !self.covered(session, all, &potential, next) {
            return None;
        }
        // A maximum stands in its way, no machine.
        if session.has_room(next) {
            return Some((None, self.enough(session, all, &potential, &[], None, next)?));
        }
        let machines: BTreeSet<MachineId> = potential.iter().map(|at| all[*at].runs.machine).collect();
        let mut best: Option<(MachineId, [u64; MAX_DIMS], Victims)> = None;
        for machine in machines {
            let (free, change) = (session.free_on(machine).0, more.get(&machine).copied().unwrap_or_default());
            let room: [u64; MAX_DIMS] = std::array::from_fn(|d| {
                let there = u64::try_from(i128::from(free[d]) + change[d]).unwrap_or(0);
                // Of room that was made and not taken yet nothing is known to be free in all.
                if self.keeps_room { there.min(session.free.0[d]) } else { there }
            });
            let here: Vec<usize> = potential.iter().copied().filter(|at| all[*at].runs.machine == machine).collect();
            let Some(victims) = self.on_machine(session, all, &here, room, next) else { continue };
            if best.as_ref().is_none_or(|(.., fewest)| victims.len() < fewest.len()) {
                best = Some((machine, room, victims));
            }
        }
        let (machine, room, victims) = best?;
        let victims = self.enough(session, all, &potential, &victims, Some((machine, room)), next)?;
        // The room of the machine helps only where no maximum is in the way besides.
        let mut after = self.trial(session, next);
        victims.iter().for_each(|at| after.remove(all[*at].runs.queue, &all[*at].runs.unit()));
        let starts = !self.counts_free || self.above_max(session.tree, &after.usage, next.queue, &after.need).is_none();
        starts.then_some((Some(machine), victims))
    }

    /// Whether the guarantee of its queue covers an ask, perhaps without all potential victims.
    fn covered(&self, session: &Session, all: &[Candidate], potential: &[usize], next: &Waiting) -> bool {
        let mut trial = self.trial(session, next);
        if trial.left(next.queue).covers(&trial.need) {
            return true;
        }
        trial.add(next.queue, &trial.need.clone());
        for Candidate { runs, left } in potential.iter().map(|at| &all[*at]) {
            trial.remove(runs.queue, &runs.unit().times(*left));
        }
        !trial.left(next.queue).exceeded(&trial.need)
    }

    /// The victims on a machine: first those that shorten what is missing, until the ask fits. Together they have to be within what the
    /// guarantee of the ask's queue leaves; the first that would not be ends the search.
    fn on_machine(
        &self,
        session: &Session,
        all: &[Candidate],
        here: &[usize],
        room: [u64; MAX_DIMS],
        next: &Waiting,
    ) -> Option<Victims> {
        let (mut trial, mut left) = (self.trial(session, next), Resources(room));
        let (mut head, mut tail) = (Victims::new(), Victims::new());
        'all: for at in here {
            let (runs, unit) = (&all[*at].runs, all[*at].runs.unit());
            for taken in 0..all[*at].left {
                if trial.need.fits(&left) {
                    break 'all;
                }
                if !trial.gives(runs.queue) {
                    break;
                }
                trial.remove(runs.queue, &unit);
                if !trial.left(trial.ask).covers(&unit) {
                    break 'all;
                }
                if (0..MAX_DIMS).all(|d| unit.0[d] == 0 || trial.need.0[d] <= left.0[d]) {
                    trial.add(runs.queue, &unit);
                    tail.extend(std::iter::repeat_n(*at, (all[*at].left - taken) as usize));
                    break;
                }
                trial.add(trial.ask, &unit);
                left.0.iter_mut().zip(unit.0).for_each(|(left, amount)| *left += amount);
                head.push(*at);
            }
        }
        let (mut trial, mut left) = (self.trial(session, next), Resources(room));
        let mut victims = Victims::new();
        for at in head.into_iter().chain(tail) {
            let (runs, unit) = (&all[at].runs, all[at].runs.unit());
            if trial.gives(runs.queue) {
                trial.remove(runs.queue, &unit);
                left.0.iter_mut().zip(unit.0).for_each(|(left, amount)| *left += amount);
                victims.push(at);
                if trial.need.fits(&left) {
                    return Some(victims);
                }
            }
        }
        None
    }

    /// Of the victims on a machine, and of all others, the first that are as much as the ask; `None` if all are less.
    fn enough(
        &self,
        session: &Session,
        all: &[Candidate],
        potential: &[usize],
        on_machine: &[usize],
        machine: Option<(MachineId, [u64; MAX_DIMS])>,
        next: &Waiting,
    ) -> Option<Victims> {
        let mut trial = self.trial(session, next);
        // As the source has it, the victims alone have to be as much as the ask.
        let free = machine.filter(|_| self.counts_free).map_or([0; MAX_DIMS], |(_, room)| room);
        let owed: [u64; MAX_DIMS] = std::array::from_fn(|d| trial.need.0[d].saturating_sub(free[d]));
        let (mut sum, mut victims) = ([0u64; MAX_DIMS], Victims::new());
        let helps = |sum: &[u64; MAX_DIMS], unit: &Resources| (0..MAX_DIMS).any(|d| sum[d] < owed[d] && unit.0[d] > 0);
        let mut take = |sum: &mut [u64; MAX_DIMS], at: usize, unit: &Resources| {
            if helps(sum, unit) {
                victims.push(at);
                sum.iter_mut().zip(unit.0).for_each(|(sum, amount)| *sum += amount);
            }
        };
        let mut seen: BTreeMap<usize, u32> = BTreeMap::new();
        for at in on_machine {
            let (runs, unit) = (&all[*at].runs, all[*at].runs.unit());
            trial.remove(runs.queue, &unit);
            *seen.entry(*at).or_default() += 1;
            take(&mut sum, *at, &unit);
        }
        'others: for at in potential {
            let (runs, unit) = (&all[*at].runs, all[*at].runs.unit());
            for _ in seen.get(at).copied().unwrap_or(0)..all[*at].left {
                if (0..MAX_DIMS).all(|d| sum[d] >= owed[d]) {
                    break 'others;
                }
                if !trial.gives(runs.queue) {
                    break;
                }
                trial.remove(runs.queue, &unit);
                if !trial.left(trial.ask).covers(&unit) {
                    break 'others;
                }
                trial.add(trial.ask, &unit);
                // Where a machine has to be freed, those on others do not help.
                if machine.is_none_or(|(machine, _)| machine == runs.machine) {
                    take(&mut sum, *at, &unit);
                }
            }
        }
        let enough = (0..MAX_DIMS).all(|d| sum[d] == 0 || sum[d] >= owed[d]);
        (enough && !victims.is_empty() && !trial.left(trial.ask).exceeded(&trial.need)).then_some(victims)
    }
}
