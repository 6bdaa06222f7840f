//! Backfilling: tasks start ahead of others in the queue if that delays no reservation (`on_blocked` is `easy` or `conservative`).
//!
//! A round visits all waiting task sets, not only the next of each queue: a set that does not start is skipped, and the next set of its
//! queue, in the job order, is ranked as the next of its user. Sets are visited in rank order. A set starts if it has room for its
//! estimated duration beside all reservations so far. Of the other sets, the first one (`easy`: Lifka, JSSPP 1995) or each one
//! (`conservative`: Mu'alem and Feitelson, IEEE TPDS 2001) gets a reservation: the earliest period of its estimated duration with enough
//! free amounts. A gang has one reservation, other sets one per task.
//!
//! Reservations are for one round: the next round recomputes them in its rank order. So if a task ends early, the set that is first at
//! that time uses its room immediately. A task that has run longer than its estimate is expected to end in a microsecond; an estimate of
//! zero counts as one microsecond. A set that the policy does not admit is skipped, and visited again in the next round.
//!
//! Placement is `pooled`. Cost of a round: O(w log w) for w waiting task sets. If a set with room is behind a set without room, a profile
//! is needed, which costs O(r log r + v p) more. Here r is the number of running task sets, v the number of reservations and of sets with
//! room, and p the number of instants of the profile: at most one per running set and two per reservation. Reservations of one set that
//! begin together count as one.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::{OnBlocked, Serving};
use crate::cluster::Placement;
use crate::engine::kernel::{LineKey, SetSlot, times};
use crate::engine::options::Options;
use crate::policy::{Needs, PreemptsFor, Reason, Verdict};
use crate::record::Turn;
use plimsoll_base::error::{Error, Result};
use plimsoll_base::units::{MachineId, Span, Time};

/// The pool, which is the only machine.
pub(super) const POOL: MachineId = MachineId(0);

/// The reason why a task that fits does not start.
const DELAYS: Reason = Reason::Rule("it would delay a reservation");

/// Checks whether a run with these needs and options can backfill. Errors: [`Error::Mismatch`].
pub(in crate::engine) fn check(needs: &Needs, options: &Options) -> Result<()> {
    let why = if options.placement != Placement::Pooled {
        "machines are individual (placement): expected 'pooled'"
    } else if options.preempt.is_some() {
        "urgent tasks request the room of others (preempt), which stops tasks with expected end times"
    } else if needs.preempts_for != PreemptsFor::Never {
        "the policy stops running tasks, which were expected to run on"
    } else if options.faults.is_some() {
        "tasks fail of themselves (faults)"
    } else {
        return Ok(());
    };
    let rule = options.on_blocked.name();
    Err(Error::Mismatch { problem: format!("on_blocked '{rule}' cannot be combined with a run where {why}") })
}

/// The amounts that are expected to be free, from now on.
struct Profile {
    dims: usize,
    /// The instants at which the amounts change; the first is now.
    times: Vec<Time>,
    /// The free amounts from each instant on, one instant after the other.
    free: Vec<u64>,
}

impl Profile {
    /// Creates a profile with the amounts that are free now, without any ends of tasks.
    fn new(now: Time, free: &[u64]) -> Profile {
        Profile { dims: free.len(), times: vec![now], free: free.to_vec() }
    }

    fn free(&self, at: usize) -> &[u64] {
        &self.free[at * self.dims..][..self.dims]
    }

    /// Adds the amounts of running tasks from their expected end on, which must not be before the last instant of the profile.
    fn give(&mut self, end: Time, need: &[u64], tasks: u32) {
        let last = self.times.len() - 1;
        if self.times[last] < end {
            self.times.push(end);
            self.free.extend_from_within(last * self.dims..);
        }
        let last = self.free.len() - self.dims;
        self.free[last..].iter_mut().zip(need).for_each(|(free, need)| *free += need * u64::from(tasks));
    }

    /// Returns the first instant from `at` until `end` with too little free, if there is one.
    fn lacking(&self, at: usize, end: Time, need: &[u64]) -> Option<usize> {
        (at..self.times.len())
            .take_while(|at| self.times[*at] < end)
            .find(|at| need.iter().zip(self.free(*at)).any(|(need, free)| need > free))
    }

    /// Returns the first instant, from `at` on, with enough free for the whole span.
    fn earliest(&self, mut at: usize, need: &[u64], span: Span) -> Option<usize> {
        while at < self.times.len() {
            match self.lacking(at, end_of(self.times[at], span), need) {
                None => return Some(at),
                Some(lacking) => at = lacking + 1,
            }
        }
        None
    }

    /// Returns how many tasks with this need fit from the instant `at` until `end`.
    fn room(&self, at: usize, end: Time, need: &[u64]) -> u64 {
        let during = (at..self.times.len()).take_while(|at| self.times[*at] < end);
        during.map(|at| times(self.free(at), need)).min().unwrap_or(u64::MAX)
    }

    /// Subtracts an amount from the instant `at` until `end`; the caller has checked that it is free.
    fn reserve(&mut self, at: usize, end: Time, need: &[u64]) {
        let behind = self.times.partition_point(|time| *time < end);
        if end < Time::NEVER && self.times.get(behind) != Some(&end) {
            self.times.insert(behind, end);
            let from = self.free(behind - 1).to_vec();
            self.free.splice(behind * self.dims..behind * self.dims, from);
        }
        for free in self.free[at * self.dims..behind * self.dims].chunks_exact_mut(self.dims) {
            free.iter_mut().zip(need).for_each(|(free, need)| *free -= need);
        }
    }
}

/// Returns the expected end of a task: at least a microsecond after its start.
fn end_of(start: Time, span: Span) -> Time {
    Time(start.0.saturating_add(span.0.max(1)))
}

/// The sets of a queue that have not been visited in this round, the next one first.
type QueueWalk = std::iter::Peekable<std::vec::IntoIter<SetSlot>>;

/// The state of a round so far.
#[derive(Default)]
struct Ahead {
    /// Sets that get reservations once a profile is needed, and the number of reservations of each, in rank order.
    wanted: Vec<(SetSlot, u32)>,
    /// Tasks started in this round: the expected end, the set and the number of tasks.
    started: Vec<(Time, SetSlot, u32)>,
    /// The amounts that running tasks and reservations leave free. The profile is computed for the first set that has room and might delay
    /// a reservation.
    profile: Option<Profile>,
}

impl Serving<'_, '_> {
    /// Visits all waiting sets in rank order, and starts tasks that delay no reservation. Errors: the recorder's.
    pub(in crate::engine) fn serve_backfill(&mut self) -> Result<()> {
        let queues = self.kernel.take_all_untried();
        let mut walks: Vec<QueueWalk> =
            queues.iter().map(|queue| self.kernel.in_order(*queue).into_iter().peekable()).collect();
        let mut line = BinaryHeap::with_capacity(walks.len());
        for (at, walk) in walks.iter_mut().enumerate() {
            line.extend(walk.peek().map(|slot| Reverse((self.kernel.line_key_of(*slot), at))));
        }
        let mut ahead = Ahead::default();
        while let Some(Reverse((place, at))) = line.pop() {
            let Some(&slot) = walks[at].peek() else { continue };
            // Launches may have changed the ranks of other sets.
            if self.kernel.line_key_of(slot) == place {
                let started = self.try_ahead(slot, place, &mut ahead)?;
                if !started || self.kernel.set(slot).waiting == 0 {
                    walks[at].next();
                }
            }
            line.extend(walks[at].peek().map(|slot| Reverse((self.kernel.line_key_of(*slot), at))));
        }
        queues.into_iter().for_each(|queue| self.kernel.retry(queue));
        Ok(())
    }

    /// Starts the next task of a set, or all of a gang, if this delays no reservation; otherwise the set may get a reservation. Returns
    /// whether it started. Errors: the recorder's.
    fn try_ahead(&mut self, slot: SetSlot, place: LineKey, ahead: &mut Ahead) -> Result<bool> {
        let set = self.kernel.set(slot);
        let together = if set.is_gang() { set.waiting } else { 1 };
        let ask = self.kernel.ask(slot, together);
        if let Verdict::No(reason) | Verdict::Wait(reason) =
            self.kernel.policy().admit(&self.kernel.view(slot), &ask, self.kernel.books())
        {
            self.kernel.record_decision(slot, place, Turn::NotAdmitted(reason), None)?;
            return Ok(false);
        }
        let free = self.kernel.machines().free(POOL);
        let fits = self.need_of(slot).iter().zip(free.0).all(|(need, free)| *need <= free);
        // Running tasks end, so a set that has room now also has room later, unless a reservation needs that room.
        if fits && (ahead.wanted.is_empty() || self.delays_none(slot, ahead)) {
            let end = end_of(self.kernel.now(), self.expected(slot));
            match &mut ahead.profile {
                Some(profile) => profile.reserve(0, end, &self.need_of(slot)),
                None => ahead.started.push((end, slot, together)),
            }
            self.kernel.record_decision(slot, place, Turn::Launched(Some(POOL)), None)?;
            self.kernel.launch(slot, &[(POOL, together)]);
            return Ok(true);
        }
        self.kernel.record_decision(
            slot,
            place,
            if fits { Turn::NotAdmitted(DELAYS) } else { Turn::Blocked(None) },
            None,
        )?;
        let conservative = self.round.on_blocked == OnBlocked::Conservative;
        if conservative || ahead.wanted.is_empty() {
            let set = self.kernel.set(slot);
            let count = if conservative && !set.is_gang() { set.waiting } else { 1 };
            ahead.wanted.push((slot, count));
            if let Some(profile) = &mut ahead.profile {
                self.reserve(profile, slot, count);
            }
        }
        Ok(false)
    }

    /// Returns whether a set that has room now delays no reservation.
    fn delays_none(&self, slot: SetSlot, ahead: &mut Ahead) -> bool {
        let Ahead { wanted, started, profile } = ahead;
        let profile = profile.get_or_insert_with(|| {
            let mut profile = self.profile(started);
            wanted.iter().for_each(|(slot, times)| self.reserve(&mut profile, *slot, *times));
            profile
        });
        profile.lacking(0, end_of(self.kernel.now(), self.expected(slot)), &self.need_of(slot)).is_none()
    }

    /// Reserves the earliest periods with enough free amounts, if there are any, for a number of tasks of a set or for a gang.
    fn reserve(&self, profile: &mut Profile, slot: SetSlot, times: u32) {
        let (need, span) = (self.need_of(slot), self.expected(slot));
        let (mut from, mut left) = (0, u64::from(times));
        while left > 0 {
            // Of equal tasks, the next one fits no earlier than the previous one.
            let Some(at) = profile.earliest(from, &need, span) else { return };
            let end = end_of(profile.times[at], span);
            let together = profile.room(at, end, &need).min(left);
            profile.reserve(at, end, &need.iter().map(|need| need * together).collect::<Vec<_>>());
            (from, left) = (at, left - together);
        }
    }

    /// Returns the amounts that a set needs to start: those of its next task, or of the whole gang.
    pub(super) fn need_of(&self, slot: SetSlot) -> Vec<u64> {
        let set = self.kernel.set(slot);
        let together = if set.is_gang() { u64::from(set.waiting) } else { 1 };
        self.kernel.needs(slot).1.iter().map(|need| need * together).collect()
    }

    /// Returns the expected run time of each task of a set.
    pub(super) fn expected(&self, slot: SetSlot) -> Span {
        let endless = self.kernel.is_endless(slot);
        if endless { Span::ENDLESS } else { self.kernel.details(slot).normal }
    }

    /// Returns the amounts that are expected to be free, by the estimates of running tasks and of tasks started in this round.
    fn profile(&self, started: &[(Time, SetSlot, u32)]) -> Profile {
        let next = end_of(self.kernel.now(), Span::ZERO);
        let end = |set: SetSlot, start: Time| end_of(start, self.expected(set)).max(next);
        let running =
            self.kernel.all_running().map(|tasks| (end(tasks.set, tasks.start), tasks.set, tasks.count.get()));
        let mut ends: Vec<(Time, SetSlot, u32)> = running.chain(started.iter().copied()).collect();
        ends.retain(|(end, ..)| *end < Time::NEVER);
        ends.sort_unstable();
        let mut profile =
            Profile::new(self.kernel.now(), self.kernel.machines().free(POOL).slice(self.kernel.books().dims()));
        ends.into_iter().for_each(|(end, set, tasks)| profile.give(end, self.kernel.needs(set).1, tasks));
        profile
    }
}
