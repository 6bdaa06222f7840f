//! Backfilling: tasks start ahead of others in line if that delays no reservation (`on_blocked` easy and conservative).
//!
//! A round asks all task sets that wait, not only the next of each queue: a set that does not start steps aside, and the next one of
//! its queue, in the order inside users, stands in line as if it were its user's next. Sets are asked in rank order. What fits, and
//! would end before all reservations that it would delay, starts, as expected; of the others the first (`easy`: Lifka, JSSPP 1995) or
//! every one (`conservative`: Mu'alem and Feitelson, IEEE TPDS 2001) gets a reservation: the earliest interval, as long as its
//! estimate, in which it fits. A gang is reserved for as a whole, tasks of other sets one by one.
//!
//! Reservations are for one round: the next makes them anew, in the rank order of then. So ends that come early are made use of at
//! once, by whoever is first then. A task that has outlived its estimate is expected to end a microsecond from now; an estimate of
//! zero counts as one microsecond. Whoever is told to wait by the policy is passed over, and asked again in the next round.
//!
//! There are no machines to tell apart (placement `pooled`). Cost of a round: O(r log r + w (log w + p)) for r running and w waiting
//! task sets and a profile of p instants, at most one a running set and two a reservation.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::core::Core;
use super::jobs::SetSlot;
use super::line::LineKey;
use super::{OnBlocked, Options};
use crate::cluster::Placement;
use crate::policy::{Displaces, Needs, Reason, Verdict};
use crate::record::Turn;
use plimsoll_base::error::{Error, Result};
use plimsoll_base::units::{MachineId, Span, Time};

/// The pool.
const POOL: MachineId = MachineId(0);

/// Why a task that fits does not start.
const DELAYS: Reason = Reason::Rule("it would delay a reservation");

/// Checks whether tasks can be backfilled in such a run. Errors: [`Error::Mismatch`].
pub(super) fn check(needs: &Needs, options: &Options) -> Result<()> {
    let why = if options.placement != Placement::Pooled {
        "machines are told apart (placement): expected 'pooled'"
    } else if options.preempt.is_some() {
        "urgent tasks ask for the room of others (preempt), and so stop what was expected to run"
    } else if needs.displaces != Displaces::Never {
        "the policy stops running tasks, which were expected to run on"
    } else if options.faults.is_some() {
        "tasks fail of themselves (faults)"
    } else {
        return Ok(());
    };
    let rule = options.on_blocked.name();
    Err(Error::Mismatch { problem: format!("on_blocked '{rule}' does not go with a run in which {why}") })
}

/// The amounts that are expected to be free, from now on.
struct Profile {
    dims: usize,
    /// Instants at which they change, the first being now.
    times: Vec<Time>,
    /// One instant after the other: the amounts from then on.
    free: Vec<u64>,
}

impl Profile {
    /// The amounts that are free now; nothing ends.
    fn new(now: Time, free: &[u64]) -> Profile {
        Profile { dims: free.len(), times: vec![now], free: free.to_vec() }
    }

    fn free(&self, at: usize) -> &[u64] {
        &self.free[at * self.dims..][..self.dims]
    }

    /// Tasks that run are expected to end behind all instants that are known so far, or at the last of them.
    fn give(&mut self, end: Time, need: &[u64], tasks: u32) {
        let last = self.times.len() - 1;
        if self.times[last] < end {
            self.times.push(end);
            self.free.extend_from_within(last * self.dims..);
        }
        let last = self.free.len() - self.dims;
        self.free[last..].iter_mut().zip(need).for_each(|(free, need)| *free += need * u64::from(tasks));
    }

    /// Whether so much is free from one instant to the next.
    fn fits(&self, at: usize, need: &[u64]) -> bool {
        need.iter().zip(self.free(at)).all(|(need, free)| need <= free)
    }

    /// The first instant, if there is any, in the time from `at` to `end` from which on there is too little.
    fn lacking(&self, at: usize, end: Time, need: &[u64]) -> Option<usize> {
        (at..self.times.len()).take_while(|at| self.times[*at] < end).find(|at| !self.fits(*at, need))
    }

    /// The first instant from `at` on from which so much is free for so long.
    fn earliest(&self, mut at: usize, need: &[u64], span: Span) -> Option<usize> {
        while at < self.times.len() {
            match self.lacking(at, end_of(self.times[at], span), need) {
                None => return Some(at),
                Some(lacking) => at = lacking + 1,
            }
        }
        None
    }

    /// Takes so much from the instant `at` to `end`, where it is free.
    fn take(&mut self, at: usize, end: Time, need: &[u64]) {
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

/// When a task that starts then is expected to end: later, however short it is.
fn end_of(start: Time, span: Span) -> Time {
    Time(start.0.saturating_add(span.0.max(1)))
}

/// The sets of a queue that have not been asked in this round, the next one first.
type Walk = std::iter::Peekable<std::vec::IntoIter<SetSlot>>;

impl Core<'_> {
    /// Asks all sets that wait, in rank order, and starts what delays no reservation.
    pub(super) fn serve_backfill(&mut self) -> Result<()> {
        let queues = self.round.take_fresh();
        let mut walks: Vec<Walk> =
            queues.iter().map(|queue| self.work.in_order(*queue).into_iter().peekable()).collect();
        let mut line = BinaryHeap::with_capacity(walks.len());
        for (at, walk) in walks.iter_mut().enumerate() {
            line.extend(walk.peek().map(|slot| Reverse((self.place_of(*slot), at))));
        }
        let mut profile = self.profile();
        let mut reserves = true;
        while let Some(Reverse((place, at))) = line.pop() {
            let Some(&slot) = walks[at].peek() else { continue };
            // Launches may have moved others.
            if self.place_of(slot) == place {
                let (started, reserved) = self.try_ahead(slot, place, &mut profile, reserves)?;
                reserves &= !reserved || self.options.on_blocked == OnBlocked::Conservative;
                if !started || self.work.sets[slot].waiting == 0 {
                    walks[at].next();
                }
            }
            line.extend(walks[at].peek().map(|slot| Reverse((self.place_of(*slot), at))));
        }
        queues.into_iter().for_each(|queue| self.stand_fresh(queue));
        Ok(())
    }

    /// Starts the next task of a set, or all of a gang, if that delays no reservation; else reserves for it, if it may have a
    /// reservation. Whether it started, and whether anything was reserved.
    fn try_ahead(
        &mut self,
        slot: SetSlot,
        place: LineKey,
        profile: &mut Profile,
        reserves: bool,
    ) -> Result<(bool, bool)> {
        let set = &self.work.sets[slot];
        let (together, span) = (if set.gang { set.waiting } else { 1 }, self.expected(slot));
        let ask = self.ask(slot, together);
        if let Verdict::No(reason) | Verdict::Wait(reason) =
            self.outside.policy.admit(&self.work.view(slot), &ask, &self.books)
        {
            self.tell_of(slot, place, Turn::NotAdmitted(reason))?;
            return Ok((false, false));
        }
        let need: Vec<u64> = ask.footprint.iter().map(|need| need * u64::from(together)).collect();
        let end = end_of(self.now, span);
        if profile.lacking(0, end, &need).is_none() {
            profile.take(0, end, &need);
            self.tell_of(slot, place, Turn::Launched(Some(POOL)))?;
            self.launch_set(slot, &[(POOL, together)]);
            return Ok((true, false));
        }
        let turn = if profile.fits(0, &need) { Turn::NotAdmitted(DELAYS) } else { Turn::Blocked(None) };
        self.tell_of(slot, place, turn)?;
        let set = &self.work.sets[slot];
        let times = match self.options.on_blocked {
            _ if !reserves => 0,
            OnBlocked::Conservative if !set.gang => set.waiting,
            _ => 1,
        };
        let (mut from, mut reserved) = (0, false);
        for _ in 0..times {
            // Equal tasks fit no earlier than the one before.
            let Some(at) = profile.earliest(from, &need, span) else { break };
            profile.take(at, end_of(profile.times[at], span), &need);
            (from, reserved) = (at, true);
        }
        Ok((false, reserved))
    }

    /// How long each task of a set is expected to run.
    fn expected(&self, slot: SetSlot) -> Span {
        let set = &self.work.sets[slot];
        if set.duration == Span::ENDLESS { Span::ENDLESS } else { set.normal }
    }

    /// The amounts that are expected to be free, by the estimates of what runs.
    fn profile(&self) -> Profile {
        let next = end_of(self.now, Span::ZERO);
        let end = |set: SetSlot, start: Time| end_of(start, self.expected(set)).max(next);
        let mut ends: Vec<(Time, SetSlot, u32)> =
            self.running.iter().map(|tasks| (end(tasks.set, tasks.start), tasks.set, tasks.count.get())).collect();
        ends.retain(|(end, ..)| *end < Time::NEVER);
        ends.sort_unstable();
        let mut profile = Profile::new(self.now, self.site.machines.free(POOL).slice(self.books.dims()));
        ends.into_iter().for_each(|(end, set, tasks)| profile.give(end, self.work.sets.needs(set).1, tasks));
        profile
    }
}
