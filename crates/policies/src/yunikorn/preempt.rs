//! Preemption for an ask of a queue that is below its guarantee.

use std::collections::BTreeMap;

use super::super::cycle::{QueueAt, Runs, Session, Waiting};
use super::{MAKING_ROOM, YuniKorn};
use plimsoll_base::units::{MAX_DIMS, MachineId, Resources, UserId};

const FOR_GUARANTEE: &str = "its queue is above its guarantee, and the ask's is below";

/// Allocations of one entry that may be stopped.
struct Candidate {
    runs: Runs,
    left: u32,
}

/// The victims on a machine: by place among its candidates how many.
type Victims = Vec<(usize, u32)>;

impl YuniKorn {
    /// Whether a queue has a claim to so much more against another one: a guarantee on its side that covers it, and none there that it
    /// would exceed.
    fn may_claim(
        &self,
        session: &Session,
        usage: &[Resources],
        queue: QueueAt,
        need: &Resources,
        victim: QueueAt,
    ) -> bool {
        let common = session.tree.common(queue, victim);
        let side = session.tree.path(queue).take_while(|at| self.inherits || *at != common);
        let side: Vec<QueueAt> = side.collect();
        let needed = (0..MAX_DIMS).filter(|d| need.0[*d] > 0);
        let mut claimed = false;
        for d in needed {
            for at in &side {
                let Some(guaranteed) = self.settings[*at].guaranteed[d] else { continue };
                // What is above both keeps its usage: the ask comes in where the victim goes.
                let more = if session.tree.path(victim).any(|above| above == *at) { 0 } else { need.0[d] };
                if usage[*at].0[d] + more > guaranteed {
                    return false;
                }
                claimed = true;
            }
        }
        claimed
    }

    /// Whether the queues of a victim on its side keep their guarantees without so much.
    fn may_give(
        &self,
        session: &Session,
        usage: &[Resources],
        queue: QueueAt,
        amount: &Resources,
        ask: QueueAt,
    ) -> bool {
        let common = session.tree.common(queue, ask);
        session.tree.path(queue).take_while(|at| *at != common).all(|at| {
            (0..MAX_DIMS).filter(|d| amount.0[*d] > 0).all(|d| {
                let guaranteed = self.settings[at].guaranteed[d].unwrap_or(0);
                usage[at].0[d].saturating_sub(amount.0[d]) >= guaranteed
            })
        })
    }

    /// Makes room for those that asked in vain.
    pub fn preempt(&self, session: &mut Session, vain: &[UserId]) {
        if vain.is_empty() || self.settings.iter().all(|settings| settings.guaranteed == [None; MAX_DIMS]) {
            return;
        }
        let mut by_machine: Option<BTreeMap<MachineId, Vec<Candidate>>> = None;
        let mut more: BTreeMap<MachineId, [i128; MAX_DIMS]> = BTreeMap::new();
        // Of equal asks that found nobody, the others need not look.
        let mut hopeless: Vec<(QueueAt, u8, Resources)> = Vec::new();
        for user in vain {
            while let Some(next) = session.next(*user) {
                let key = (next.queue, next.priority, next.need());
                let leaves: Vec<QueueAt> =
                    (0..session.tree.nodes.len()).filter(|at| session.tree.is_leaf(*at) && *at != next.queue).collect();
                let claims = |at: &QueueAt| self.may_claim(session, &session.usage, next.queue, &next.need(), *at);
                if hopeless.contains(&key) || !leaves.iter().any(claims) {
                    break;
                }
                let all = by_machine.get_or_insert_with(|| self.candidates(session));
                let Some((machine, victims)) = self.victims(session, all, &more, &next) else {
                    hopeless.push(key);
                    break;
                };
                let change = more.entry(machine).or_default();
                for (at, count) in victims {
                    let Some(candidate) = all.get_mut(&machine).and_then(|all| all.get_mut(at)) else { continue };
                    candidate.left -= count;
                    let tasks = if candidate.runs.gang { candidate.runs.count } else { count };
                    let freed = candidate.runs.each.times(tasks);
                    (0..MAX_DIMS).for_each(|d| change[d] += i128::from(freed.0[d]));
                    session.evict(&candidate.runs, tasks, Some(*user), FOR_GUARANTEE);
                }
                let need = next.need();
                (0..MAX_DIMS).for_each(|d| change[d] -= i128::from(need.0[d]));
                if self.keeps_room {
                    session.launch(&next, 1);
                } else {
                    session.wait(*user, MAKING_ROOM);
                    break;
                }
            }
        }
    }

    fn candidates(&self, session: &Session) -> BTreeMap<MachineId, Vec<Candidate>> {
        let mut by_machine: BTreeMap<MachineId, Vec<Candidate>> = BTreeMap::new();
        for leaf in (0..session.tree.nodes.len()).filter(|at| session.tree.is_leaf(*at)) {
            if session.tree.path(leaf).any(|at| self.settings[at].fixed) {
                continue;
            }
            for runs in session.running(leaf) {
                let left = if runs.gang { 1 } else { runs.count };
                by_machine.entry(runs.machine).or_default().push(Candidate { runs: *runs, left });
            }
        }
        by_machine.values_mut().for_each(|all| all.sort_by_key(|candidate| candidate.runs.turn()));
        by_machine
    }

    /// The machine with the fewest victims; of equal ones the first.
    fn victims(
        &self,
        session: &Session,
        by_machine: &BTreeMap<MachineId, Vec<Candidate>>,
        more: &BTreeMap<MachineId, [i128; MAX_DIMS]>,
        next: &Waiting,
    ) -> Option<(MachineId, Victims)> {
        let mut best: Option<(u32, MachineId, Victims)> = None;
        for (machine, candidates) in by_machine {
            let change = more.get(machine).copied().unwrap_or_default();
            let free = session.free_on(*machine).0;
            let room: [u64; MAX_DIMS] = std::array::from_fn(|d| {
                let there = u64::try_from(i128::from(free[d]) + change[d]).unwrap_or(0);
                // Of room that was made and not taken yet nothing is known to be free in all.
                if self.keeps_room { there.min(session.free.0[d]) } else { there }
            });
            let Some(victims) = self.on_machine(session, candidates, room, next) else { continue };
            let count = victims.iter().map(|(_, count)| *count).sum();
            if best.as_ref().is_none_or(|(fewest, ..)| count < *fewest) {
                best = Some((count, *machine, victims));
            }
        }
        best.map(|(_, machine, victims)| (machine, victims))
    }

    /// Those that shorten what is missing, until the ask fits.
    fn on_machine(
        &self,
        session: &Session,
        candidates: &[Candidate],
        mut room: [u64; MAX_DIMS],
        next: &Waiting,
    ) -> Option<Victims> {
        let need = next.need();
        let mut usage = session.usage.clone();
        let mut victims: Victims = Vec::new();
        let mut sum = Resources::ZERO;
        for (at, candidate) in candidates.iter().enumerate() {
            let (runs, unit) = (&candidate.runs, candidate.runs.unit());
            // More urgent ones have the lower number.
            if runs.queue == next.queue || runs.priority < next.priority {
                continue;
            }
            let mut count = 0;
            while count < candidate.left {
                let short = |d: usize| need.0[d].saturating_sub(room[d]);
                let helps = (0..MAX_DIMS).any(|d| short(d) > 0 && unit.0[d] > 0);
                let allowed = helps
                    && self.may_give(session, &usage, runs.queue, &unit, next.queue)
                    && self.may_claim(session, &usage, next.queue, &need, runs.queue);
                if !allowed {
                    break;
                }
                for above in session.tree.path(runs.queue) {
                    (0..MAX_DIMS).for_each(|d| usage[above].0[d] = usage[above].0[d].saturating_sub(unit.0[d]));
                }
                (0..MAX_DIMS).for_each(|d| room[d] += unit.0[d]);
                (0..MAX_DIMS).for_each(|d| sum.0[d] += unit.0[d]);
                count += 1;
            }
            if count > 0 {
                victims.push((at, count));
            }
            if need.fits(&Resources(room)) {
                break;
            }
        }
        // As the source has it, the victims alone have to be as much as the ask.
        let enough = need.fits(&Resources(room)) && (self.counts_free || need.fits(&sum));
        (enough && !victims.is_empty()).then_some(victims)
    }
}
