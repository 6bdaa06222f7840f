//! Preemption for asks that a guarantee covers.
//!
//! Asks that did not start are processed in scheduling order. Candidates are allocations of other queues that have no guarantee or exceed
//! it. A trial of the usage determines which victims the guarantees permit. The search tries each machine, and takes the one with the
//! fewest victims. If the victims do not cover the ask, more victims are added; if these do not suffice either, the ask preempts none. The
//! tasks of a gang are separate asks; either all find room, or none preempts.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::super::cycle::{Placements, QueueAt, ROOT, Rooms, Runs, Waiting, place_task};
use super::{MAKING_ROOM, Session, Tree, YuniKorn};
use plimsoll_base::units::{MAX_DIMS, MachineId, Resources, UserId};

const FOR_GUARANTEE: &str = "its queue is above its guarantee, and the ask's is below";

/// Allocations of one entry that may be preempted, and the number that has not been selected yet; a gang counts as one.
#[derive(Clone)]
struct VictimCandidate {
    runs: Runs,
    left: u32,
}

/// The state for the decision on an ask: the state of the session after the preceding asks of the same gang.
struct AskState<'s, 'a> {
    session: &'s Session<'a>,
    usage: Vec<Resources>,
    rooms: Rooms<'a>,
    candidates: Vec<VictimCandidate>,
}

/// Victims of an ask, or of all asks of a gang, and the machines of the asks if they are known.
struct Solution {
    victims: Vec<Runs>,
    seats: Option<Placements>,
}

/// Indices of candidates, once for each of their units, in the order of preemption.
type Victims = Vec<usize>;

/// The remaining guarantees by resource, negative if they are exceeded; `None` without a guarantee.
#[derive(Clone, Copy)]
struct RemainingGuarantee(Resources<Option<i128>>);

impl RemainingGuarantee {
    fn is_none(&self) -> bool {
        self.0 == Resources::default()
    }

    /// Returns whether there is a guarantee that covers the amount; a resource without a guarantee is no obstacle.
    fn covers(&self, amount: &Resources) -> bool {
        let fits = |d: usize| self.0[d].is_none_or(|left| amount[d] == 0 || i128::from(amount[d]) <= left);
        !self.is_none() && (0..MAX_DIMS).all(fits)
    }

    /// Returns whether one of these resources is exceeded.
    fn exceeded(&self, of: &Resources) -> bool {
        (0..MAX_DIMS).any(|d| of[d] > 0 && self.0[d].is_some_and(|left| left < 0))
    }
}

/// An ask, and the usage of queues in a trial.
struct Trial<'a> {
    rule: &'a YuniKorn,
    tree: &'a Tree,
    ask: QueueAt,
    need: Resources,
    usage: Vec<Resources>,
}

impl Trial<'_> {
    /// Returns the least remainder of the guarantees on the path from a queue to the root. If the ask's queue has a guarantee, only this
    /// guarantee counts for the ask. The guarantees of the ancestors of the ask's queue then do not protect other queues either, so
    /// siblings under a common guarantee may be victims.
    fn left(&self, queue: QueueAt) -> RemainingGuarantee {
        let own = self.has_own();
        let mut left = Resources::<Option<i128>>::default();
        for at in self.tree.path(queue) {
            let above_ask = at != self.ask && self.tree.is_within(self.ask, at);
            if above_ask && (own || self.rule.inherits && queue != self.ask) {
                break;
            }
            let here = self.tree[at]
                .guaranteed
                .zip_with(self.usage[at], |most, used| most.map(|most| i128::from(most) - i128::from(used)));
            left = left.zip_with(here, |left, here| left.into_iter().chain(here).min());
        }
        RemainingGuarantee(left)
    }

    /// Returns whether the ask's queue has a guarantee of its own.
    fn has_own(&self) -> bool {
        self.tree[self.ask].guaranteed != Resources::NONE
    }

    /// Returns whether the guarantee cannot cover the ask, whatever the victims.
    fn is_hopeless(&self) -> bool {
        let left = self.left(self.ask);
        left.is_none() || self.has_own() && !left.covers(&self.need)
    }

    /// Returns whether a queue may lose a victim: it has no guarantee, or exceeds its guarantee in a resource of the ask.
    fn gives(&self, queue: QueueAt) -> bool {
        let left = self.left(queue);
        left.is_none() || left.exceeded(&self.need)
    }

    fn add(&mut self, queue: QueueAt, amount: &Resources) {
        self.tree.change(&mut self.usage, queue, amount, true);
    }

    fn remove(&mut self, queue: QueueAt, amount: &Resources) {
        self.tree.change(&mut self.usage, queue, amount, false);
    }
}

impl YuniKorn {
    /// Preempts for asks that did not start, and starts them.
    pub fn preempt(&self, session: &mut Session, vain: &[UserId]) {
        let tree = session.tree;
        if vain.is_empty() || (0..tree.nodes.len()).all(|at| tree[at].guaranteed == Resources::NONE) {
            return;
        }
        let mut candidates: Option<Vec<VictimCandidate>> = None;
        // If an ask finds no victims, equal asks need not search.
        let mut hopeless: Vec<(QueueAt, u8, Resources, u32)> = Vec::new();
        for user in vain {
            while let Some(next) = session.next(*user) {
                // Earlier victims may have left room that their asks do not use.
                let above = self.above_max(session.tree, &session.usage, next.queue, &next.need());
                if above.is_none() && session.has_room(&next) {
                    session.launch(&next, 1);
                    continue;
                }
                let key = (next.queue, next.priority, next.each, next.together());
                if hopeless.contains(&key) || self.trial(session.tree, &session.usage, &next).is_hopeless() {
                    break;
                }
                let all = candidates.get_or_insert_with(|| self.candidates(session));
                all.iter_mut().for_each(|candidate| candidate.left = session.units_left(&candidate.runs));
                let (usage, rooms) = (session.usage.clone(), session.trial());
                let mut ask_state = AskState { session, usage, rooms, candidates: all.clone() };
                let Some(Solution { victims, seats }) = self.solve(&mut ask_state, &next) else {
                    hopeless.push(key);
                    break;
                };
                for unit in victims {
                    session.evict(&unit, unit.count, Some(*user), FOR_GUARANTEE);
                }
                let above = self.above_max(session.tree, &session.usage, next.queue, &next.need());
                match seats {
                    Some(seats) if self.keeps_room && above.is_none() => session.launch_on(&next, seats),
                    None if self.keeps_room && above.is_none() => session.launch(&next, 1),
                    seats => {
                        session.reserve(&next.each, &seats.unwrap_or_default());
                        session.wait(*user, MAKING_ROOM);
                        break;
                    }
                }
            }
        }
        // The source does not count free room of a machine: the victims alone must cover the ask (YUNIKORN-3449).
        session.spare(|session, unit| {
            self.keeps_room
                && self.counts_free
                && self.above_max(session.tree, &session.usage, unit.queue, &unit.unit()).is_none()
        });
    }

    fn trial<'a>(&'a self, tree: &'a Tree, usage: &[Resources], next: &Waiting) -> Trial<'a> {
        Trial { rule: self, tree, ask: next.queue, need: next.need(), usage: usage.to_vec() }
    }

    /// Returns the victims of an ask. A gang is one ask for each of its tasks; asks without room have victims, each on one machine.
    fn solve(&self, ask_state: &mut AskState, next: &Waiting) -> Option<Solution> {
        let ask = Waiting { tasks: 1, gang: false, ..*next };
        let (mut victims, mut seats) = (Vec::new(), Some(Placements::new()));
        for _ in 0..next.together() {
            let above = self.above_max(ask_state.session.tree, &ask_state.usage, ask.queue, &ask.each);
            let idle = if above.is_none() { ask_state.rooms.place(&ask.each) } else { None };
            let machine = match idle {
                Some(machine) => Some(machine),
                None => {
                    let (machine, taken) = self.victims(ask_state, &ask)?;
                    for at in taken {
                        let unit = ask_state.candidates[at].runs.one();
                        ask_state.candidates[at].left -= 1;
                        ask_state.rooms.release(ask_state.session, &unit);
                        ask_state.session.tree.change(&mut ask_state.usage, unit.queue, &unit.unit(), false);
                        victims.push(unit);
                    }
                    match machine {
                        Some(machine) => ask_state.rooms.reserve(machine, &ask.each, 1).then_some(machine),
                        None => ask_state.rooms.place(&ask.each),
                    }
                }
            };
            ask_state.session.tree.change(&mut ask_state.usage, ask.queue, &ask.each, true);
            match (&mut seats, machine) {
                (Some(seats), Some(machine)) => place_task(seats, machine),
                _ => seats = None,
            }
        }
        Some(Solution { victims, seats })
    }

    /// Returns all candidates for preemption, the youngest first.
    fn candidates(&self, session: &Session) -> Vec<VictimCandidate> {
        let tree = session.tree;
        let open = tree.leaves().filter(|leaf| tree.path(*leaf).all(|at| tree[at].reclaimable));
        let runs = open.flat_map(|leaf| session.running(leaf));
        let mut all: Vec<VictimCandidate> =
            runs.map(|runs| VictimCandidate { runs: *runs, left: session.units_left(runs) }).collect();
        all.sort_by_key(|candidate| (Reverse(candidate.runs.start), Reverse(candidate.runs.row)));
        all
    }

    /// Returns the queue below which the victims of an ask are: the lowest queue on the path from its queue to the root that is exactly at
    /// its maximum, or else the root.
    fn fence(&self, tree: &Tree, usage: &[Resources], ask: QueueAt) -> QueueAt {
        let full = |at: &QueueAt| {
            let max = tree[*at].max;
            max != Resources::NONE && max.or_zero() == usage[*at]
        };
        tree.path(ask).find(full).unwrap_or(ROOT)
    }

    /// Returns whether tasks are no more urgent than an ask. The priorities of the queues below the lowest common ancestor are added; for
    /// the ask, the priority of the common ancestor is added, too.
    fn no_more_urgent(&self, tree: &Tree, runs: &Runs, next: &Waiting) -> bool {
        let common = tree.common(runs.queue, next.queue);
        let added = |queue: QueueAt| -> i64 {
            tree.path(queue).take_while(|at| *at != common).map(|at| tree[at].priority).sum()
        };
        i64::from(runs.priority) - added(runs.queue)
            >= i64::from(next.priority) - added(next.queue) - tree[common].priority
    }

    /// Returns the indices of the candidates that an ask may preempt.
    fn potential(&self, ask_state: &AskState, next: &Waiting) -> Vec<usize> {
        let (tree, all) = (ask_state.session.tree, &ask_state.candidates);
        let (trial, fence) = (self.trial(tree, &ask_state.usage, next), self.fence(tree, &ask_state.usage, next.queue));
        let open = |leaf: QueueAt| {
            let left = trial.left(leaf);
            let exceeds = left.is_none() || left.0.iter().flatten().any(|left| left < 0);
            leaf != next.queue && exceeds && tree.is_within(leaf, fence)
        };
        let mut leaves: BTreeMap<QueueAt, bool> = BTreeMap::new();
        let mut may = |VictimCandidate { runs, left }: &VictimCandidate| {
            let matches = trial.need.overlaps(&runs.each);
            *left > 0
                && matches
                && *leaves.entry(runs.queue).or_insert_with(|| open(runs.queue))
                && self.no_more_urgent(tree, runs, next)
        };
        (0..all.len()).filter(|at| may(&all[*at])).collect()
    }

    /// Returns the victims of an ask, and its machine, if that is known.
    fn victims(&self, ask_state: &AskState, next: &Waiting) -> Option<(Option<MachineId>, Victims)> {
        let potential = self.potential(ask_state, next);
        if potential.is_empty() || !self.covered(ask_state, &potential, next) {
            return None;
        }
        // There is room, so a maximum prevents the start.
        if ask_state.rooms.find(&next.each).is_some() {
            return Some((None, self.enough(ask_state, &potential, &[], None, next)?));
        }
        let all = &ask_state.candidates;
        let mut machines: BTreeMap<MachineId, Vec<usize>> = BTreeMap::new();
        for at in &potential {
            for (machine, _) in ask_state.session.seats_of(&all[*at].runs) {
                machines.entry(machine).or_default().push(*at);
            }
        }
        let mut best: Option<(MachineId, Resources, Victims)> = None;
        for (machine, mut here) in machines {
            here.dedup();
            let room = ask_state.rooms.on(machine);
            let Some(victims) = self.on_machine(ask_state, &here, (machine, room), next) else { continue };
            if best.as_ref().is_none_or(|(.., fewest)| victims.len() < fewest.len()) {
                best = Some((machine, room, victims));
            }
        }
        let (machine, room, victims) = best?;
        let victims = self.enough(ask_state, &potential, &victims, Some((machine, room)), next)?;
        // The room of the machine suffices only if no maximum prevents the start.
        let mut after = self.trial(ask_state.session.tree, &ask_state.usage, next);
        victims.iter().for_each(|at| after.remove(all[*at].runs.queue, &all[*at].runs.unit()));
        let tree = ask_state.session.tree;
        let starts = !self.counts_free || self.above_max(tree, &after.usage, next.queue, &after.need).is_none();
        starts.then_some((Some(machine), victims))
    }

    /// Returns whether the guarantee covers an ask, now or once all potential victims have left.
    fn covered(&self, ask_state: &AskState, potential: &[usize], next: &Waiting) -> bool {
        let mut trial = self.trial(ask_state.session.tree, &ask_state.usage, next);
        if trial.left(next.queue).covers(&trial.need) {
            return true;
        }
        trial.add(next.queue, &trial.need.clone());
        for VictimCandidate { runs, left } in potential.iter().map(|at| &ask_state.candidates[*at]) {
            trial.remove(runs.queue, &runs.unit().times(*left));
        }
        !trial.left(next.queue).exceeded(&trial.need)
    }

    /// Returns the victims on a machine: first the victims that reduce the shortage, until the ask fits. Together they must be within the
    /// remainder of the guarantee of the ask's queue; the first victim that would exceed it ends the search.
    fn on_machine(
        &self,
        ask_state: &AskState,
        here: &[usize],
        (machine, room): (MachineId, Resources),
        next: &Waiting,
    ) -> Option<Victims> {
        let (all, start) = (&ask_state.candidates, || self.trial(ask_state.session.tree, &ask_state.usage, next));
        let part = |at: usize| ask_state.session.amount_on(&all[at].runs.one(), machine);
        let (mut trial, mut left) = (start(), room);
        let (mut head, mut tail) = (Victims::new(), Victims::new());
        'all: for at in here {
            let (runs, unit, part) = (&all[*at].runs, all[*at].runs.unit(), part(*at));
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
                if (0..MAX_DIMS).all(|d| part[d] == 0 || trial.need[d] <= left[d]) {
                    trial.add(runs.queue, &unit);
                    tail.extend(std::iter::repeat_n(*at, (all[*at].left - taken) as usize));
                    break;
                }
                trial.add(trial.ask, &unit);
                left += part;
                head.push(*at);
            }
        }
        let (mut trial, mut left) = (start(), room);
        let mut victims = Victims::new();
        for at in head.into_iter().chain(tail) {
            let (runs, unit) = (&all[at].runs, all[at].runs.unit());
            if trial.gives(runs.queue) {
                trial.remove(runs.queue, &unit);
                left += part(at);
                victims.push(at);
                if trial.need.fits(&left) {
                    return Some(victims);
                }
            }
        }
        None
    }

    /// Returns the first victims that together cover the ask, in this order: the victims on the machine, then all others. Returns `None`
    /// if all of them have less than the ask needs.
    fn enough(
        &self,
        ask_state: &AskState,
        potential: &[usize],
        on_machine: &[usize],
        machine: Option<(MachineId, Resources)>,
        next: &Waiting,
    ) -> Option<Victims> {
        let all = &ask_state.candidates;
        let mut trial = self.trial(ask_state.session.tree, &ask_state.usage, next);
        // As in the source, the victims alone must cover the ask.
        let free = machine.filter(|_| self.counts_free).map_or(Resources::ZERO, |(_, room)| room);
        let owed = trial.need.saturating_sub(free);
        let (mut sum, mut victims) = (Resources::ZERO, Victims::new());
        let mut take = |sum: &mut Resources, at: usize, unit: &Resources| {
            if owed.saturating_sub(*sum).overlaps(unit) {
                victims.push(at);
                *sum += *unit;
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
                if owed.fits(&sum) {
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
                // If the ask needs room on a machine, victims on other machines do not help.
                if machine.is_none_or(|(machine, _)| machine == runs.machine) {
                    take(&mut sum, *at, &unit);
                }
            }
        }
        let enough = (0..MAX_DIMS).all(|d| sum[d] == 0 || sum[d] >= owed[d]);
        (enough && !victims.is_empty() && !trial.left(trial.ask).exceeded(&trial.need)).then_some(victims)
    }
}
