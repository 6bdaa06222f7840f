//! The preemption of containers in queues above their guarantees.
//!
//! The plain rule preempts a part of each queue's excess over its ideal assignment, wherever the containers run. The guarded rule preempts
//! only if a waiting container then fits on one machine, and starts it there.

use std::collections::HashSet;

use super::super::cycle::{ONE, QueueAt, Runs, Solution};
use super::YarnCapacity;
use super::amounts::{NONE, capped_sum, part, signed};
use super::ideal::{Rules, Temp};
use super::limits::{Limits, Session, reclaimable};
use plimsoll_base::units::{Resources, UserId};

const TOWARDS_IDEAL: &str = "its queue is above its guarantee and above its ideal assignment";

impl YarnCapacity {
    /// Returns whether preemption from a leaf is permitted, and the leaf is above its guarantee by more than the ignored part.
    fn is_over(&self, session: &Session, limits: &Limits, at: QueueAt) -> bool {
        let calculator = self.calculator(session.books);
        let ignored = part(limits.guaranteed[at], (ONE + self.settings.max_ignored).into(), ONE.into());
        reclaimable(session.tree, at) && calculator.is_more(&signed(&session.usage[at]), &ignored)
    }

    /// Preempts containers towards the ideal assignment, for this user. Returns whether any was preempted.
    pub fn preempt(&self, session: &mut Session, limits: &Limits, by: Option<UserId>) -> bool {
        let over: Vec<QueueAt> = session.tree.leaves().filter(|at| self.is_over(session, limits, *at)).collect();
        if over.is_empty() {
            return false;
        }
        let temps = self.temps(session, limits);
        if self.guarded {
            return by.is_some_and(|by| self.preempt_for(session, (limits, &temps), &over, by));
        }
        let calculator = self.calculator(session.books);
        let mut allowed = part(calculator.whole, self.settings.per_round.into(), ONE.into());
        let mut stopped = false;
        for leaf in over {
            let mut obtain = calculator.part(&temps[leaf].excess, self.settings.natural_termination.into(), ONE.into());
            let units: Vec<Runs> = session.units(leaf).collect();
            for unit in units {
                if !calculator.is_more(&obtain, &NONE) {
                    break;
                }
                let amount = signed(&unit.unit());
                if !calculator.fits(&amount, &allowed) {
                    continue;
                }
                obtain -= amount;
                allowed -= amount;
                session.evict(&unit, unit.count, by, TOWARDS_IDEAL);
                stopped = true;
            }
        }
        stopped
    }

    /// Preempts by the guarded rule. If its queue stays within its ideal amount, a container starts on one machine, in the room of
    /// containers beyond the ideal amounts of other queues. A gang is placed task by task. If the room does not suffice, no container is
    /// preempted.
    fn preempt_for(
        &self,
        session: &mut Session,
        (limits, temps): (&Limits, &[Temp]),
        over: &[QueueAt],
        by: UserId,
    ) -> bool {
        let Some(next) = session.next(by) else { return false };
        let calculator = self.calculator(session.books);
        let need = next.need();
        let of = &temps[next.queue];
        if calculator.is_more(&capped_sum(of.used, signed(&need)), &of.ideal) {
            return false;
        }
        let beyond_ideal = |leaf: &QueueAt| {
            let mut obtain = temps[*leaf].excess;
            session.units(*leaf).take_while(move |unit| {
                obtain -= signed(&unit.unit());
                !calculator.is_more(&NONE, &obtain)
            })
        };
        let others = over.iter().filter(|leaf| **leaf != next.queue);
        let mut machines = session.by_machine(others.flat_map(beyond_ideal));
        let (mut victims, mut gangs): (Vec<Runs>, HashSet<u64>) = Default::default();
        let seats = session.trial().place_all(&next.each, next.together(), |rooms| {
            let (machine, taken) = machines.iter_mut().find_map(|(machine, units)| {
                units.retain(|unit| !gangs.contains(&unit.key));
                let mut room = rooms.on(*machine);
                let enough = units.iter().position(|unit| {
                    room += session.amount_on(unit, *machine);
                    next.each.fits(&room)
                })?;
                Some((*machine, units.drain(..=enough).collect::<Vec<Runs>>()))
            })?;
            for unit in taken {
                rooms.release(session, &unit);
                if unit.gang {
                    gangs.insert(unit.key);
                }
                victims.push(unit);
            }
            Some(machine)
        });
        let Some(seats) = seats.filter(|_| !victims.is_empty()) else { return false };
        session.preempt_and_launch(&next, Solution { victims, seats }, TOWARDS_IDEAL);
        session.spare(|session, unit| limits.above_max(session, unit.queue, &unit.unit()).is_none());
        true
    }

    fn temps(&self, session: &Session, limits: &Limits) -> Vec<Temp> {
        let calculator = self.calculator(session.books);
        let own = |at: QueueAt| {
            let mut pending = Resources::<u128>::default();
            for next in session.waiting(at) {
                let held = session.held[next.user.index()];
                let wanted = |d: usize| session.books.wanted(next.user, d).saturating_sub(held[d].into());
                (0..session.books.dims()).for_each(|d| pending[d] = pending[d].saturating_add(wanted(d)));
            }
            pending.map(|amount| amount.min(1 << 62) as i128)
        };
        let temp = |(at, pending)| Temp {
            used: signed(&session.usage[at]),
            pending,
            guaranteed: limits.guaranteed[at],
            max: limits.max[at],
            fixed: !reclaimable(session.tree, at),
            priority: self.priority(session.tree, at),
            ..Temp::default()
        };
        let pending = session.tree.totals(own, capped_sum);
        let mut temps: Vec<Temp> = pending.into_iter().enumerate().map(temp).collect();
        let most = part(calculator.whole, self.settings.per_round.into(), ONE.into());
        Rules { calculator, takes_more: self.takes_more, most }.work_out(session.tree, &mut temps);
        temps
    }
}
