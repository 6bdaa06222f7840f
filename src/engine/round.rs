//! The scheduling round: serve in rank order until nobody fits.
//!
//! Users whose next task was tried everywhere and fitted nowhere stand *blocked* in a [`Line`]; only a machine that
//! has been freed since can admit them, so a round searches the line for demands within what those machines have, and
//! nothing else. Users whose next task has not been tried are *fresh* and are tried everywhere once.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::num::NonZeroU32;

use super::jobs::SetSlot;
use super::line::{Line, Place};
use super::queues::Queues;
use super::{Engine, OnBlocked, Running, Ties};
use crate::cluster::Placement;
use crate::error::{Error, Result};
use crate::policy::{Ask, Stale, Verdict};
use crate::record::{Decision, Launch, Named, Recorder, Turn};
use crate::units::{MachineId, Resources, Time, UserId};

/// The last instant that a table can hold, in microseconds.
const END_OF_TIME: u64 = i64::MAX as u64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stand {
    /// Nothing waits.
    Out,
    /// The next task has not been tried.
    Fresh,
    /// The next task fits no machine but, perhaps, those freed since.
    Blocked,
    /// The policy told it to wait.
    Refused,
}

/// What rounds remember from one to the next.
pub struct Round {
    stand: Vec<Stand>,
    /// Where a blocked user stands in line.
    places: Vec<Place>,
    line: Line,
    fresh: Vec<UserId>,
    /// Blocked users who hold something else than when they were ranked.
    rerank: Vec<UserId>,
    /// Users the policy did not admit this round.
    gated: Vec<UserId>,
    /// Machines with more room than when the line was last searched, and the most that any of them has.
    freed: Vec<MachineId>,
    limit: Resources,
    limit_is_high: bool,
    order: BinaryHeap<Reverse<(Place, UserId)>>,
    launches: Vec<Running>,
    /// Where the tasks of the gang that was tried last would start.
    pub(super) plan: Vec<(MachineId, u32)>,
    /// The policy has told somebody to wait at some time.
    refuses: bool,
}

impl Round {
    pub fn new(dims: usize) -> Round {
        Round {
            stand: Vec::new(),
            places: Vec::new(),
            line: Line::new(dims),
            fresh: Vec::new(),
            rerank: Vec::new(),
            gated: Vec::new(),
            freed: Vec::new(),
            limit: Resources::ZERO,
            limit_is_high: false,
            order: BinaryHeap::new(),
            launches: Vec::new(),
            plan: Vec::new(),
            refuses: false,
        }
    }

    /// Makes room for the next user id.
    pub fn open(&mut self) {
        self.stand.push(Stand::Out);
        self.places.push(Place::default());
    }

    /// A machine has more room than before.
    pub fn freed(&mut self, machine: MachineId) {
        if self.freed.last() != Some(&machine) {
            self.freed.push(machine);
        }
    }

    /// A user holds something else than before.
    pub fn rerank(&mut self, user: UserId) {
        if self.stand[user.index()] == Stand::Blocked {
            self.rerank.push(user);
        }
    }

    /// A user's rank may have changed, or it was told to wait and may be asked again.
    fn recall(&mut self, user: UserId) {
        if self.stand[user.index()] == Stand::Refused {
            self.stand[user.index()] = Stand::Fresh;
            self.fresh.push(user);
        }
        self.rerank(user);
    }

    /// A user would launch another task next than before.
    pub fn head_changed(&mut self, user: UserId) {
        match std::mem::replace(&mut self.stand[user.index()], Stand::Fresh) {
            Stand::Fresh => return,
            Stand::Blocked => self.line.remove(&self.places[user.index()]),
            Stand::Out | Stand::Refused => {}
        }
        self.fresh.push(user);
    }
}

impl<R: Recorder> Engine<'_, R> {
    /// One scheduling round.
    pub(super) fn serve(&mut self) -> Result<()> {
        loop {
            let stale = self.policy.prepare(self.now, &self.books, &self.changed.since_round)?;
            self.changed.round_over();
            self.recall(stale);
            if !self.take_back()? {
                break;
            }
        }
        self.rerank_blocked();
        match self.options.on_blocked {
            OnBlocked::Skip => self.serve_skip()?,
            OnBlocked::Stop => self.serve_stop()?,
        }
        self.round.freed.clear();
        for user in self.round.gated.drain(..) {
            self.round.stand[user.index()] = Stand::Fresh;
            self.round.fresh.push(user);
        }
        let mut launches = std::mem::take(&mut self.round.launches);
        for launch in launches.drain(..) {
            let set = &mut self.sets[launch.set];
            set.launch = u32::MAX;
            let end = self.now + set.duration;
            self.within_time(launch.set, end)?;
            let set = &self.sets[launch.set];
            let (user, gang, wait) = (set.user, set.gang, self.now.since(set.since));
            let (demand, _) = self.sets.needs(launch.set);
            self.recorder.launched(&Launch { user, count: launch.count.get(), gang, wait, demand });
            let ticket = self.agenda.schedule(end, 0, launch);
            if let Some(hosts) = &mut self.hosts {
                hosts.started(&launch, ticket, self.sets.needs(launch.set).0, end);
            }
            self.remember(&launch, ticket);
        }
        self.round.launches = launches;
        self.move_ends()
    }

    /// Errors: an end that tables cannot hold.
    pub(super) fn within_time(&self, set: SetSlot, end: Time) -> Result<()> {
        if end.0 <= END_OF_TIME {
            return Ok(());
        }
        let problem = format!(
            "{}: a task of it would end {} s after the origin, and tables hold 292,000 years",
            self.source.locate(self.sets[set].row),
            end.seconds()
        );
        Err(Error::Mismatch { problem })
    }

    /// Looks again at whom the policy calls stale.
    fn recall(&mut self, stale: Stale) {
        match stale {
            Stale::None => {}
            Stale::Some(users) => users.into_iter().for_each(|user| self.round.recall(user)),
            Stale::All => {
                self.round.rerank = self.round.line.users();
                if self.round.refuses {
                    (0..self.books.users() as u32).for_each(|user| self.round.recall(UserId(user)));
                }
            }
        }
    }

    fn place(&self, user: UserId) -> Place {
        let head = self.queues.head(user).expect("a user in line has a head");
        let rank = self.policy.rank(&Queues::view(user, &self.sets[head]), &self.books);
        let id = u64::from(user.0);
        let tie = match self.options.ties {
            Ties::LowestId => id,
            Ties::HighestId => u64::from(u32::MAX) - id,
            Ties::FewestRunning => self.books.running(user).min(u64::from(u32::MAX)) << 32 | id,
        };
        Place { rank, tie }
    }

    fn block(&mut self, user: UserId, place: Place) {
        let head = self.queues.head(user).expect("a user in line has a head");
        self.round.line.insert(place, user, self.sets.needs(head).1);
        self.round.stand[user.index()] = Stand::Blocked;
        self.round.places[user.index()] = place;
    }

    fn rerank_blocked(&mut self) {
        while let Some(user) = self.round.rerank.pop() {
            if self.round.stand[user.index()] == Stand::Blocked {
                let (old, place) = (self.round.places[user.index()], self.place(user));
                if place != old {
                    self.round.line.remove(&old);
                    self.block(user, place);
                }
            }
        }
    }

    fn serve_stop(&mut self) -> Result<()> {
        while let Some(user) = self.round.fresh.pop() {
            let place = self.place(user);
            self.block(user, place);
        }
        while let Some((place, user)) = self.round.line.first() {
            if self.moved(user, place) {
                self.round.line.remove(&place);
                let place = self.place(user);
                self.block(user, place);
                continue;
            }
            if self.turned_away(user, place)? {
                self.round.line.remove(&place);
                continue;
            }
            let head = self.queues.head(user).expect("a user in line has a head");
            let Some(machine) = self.room(head) else {
                self.tell(user, place, Turn::Blocked)?;
                break;
            };
            self.round.line.remove(&place);
            self.tell(user, place, Turn::Launched(Some(machine)))?;
            self.launch(user, machine);
            if self.queues.head(user).is_some() {
                let place = self.place(user);
                self.block(user, place);
            } else {
                self.round.stand[user.index()] = Stand::Out;
            }
        }
        Ok(())
    }

    /// Tells the recorder of a decision, if it wants to know.
    fn tell(&mut self, user: UserId, place: Place, turn: Turn) -> Result<()> {
        if !self.recorder.wants_decisions() {
            return Ok(());
        }
        let set = &self.sets[self.queues.head(user).expect("a user in line has a head")];
        let name = Named { name: &self.jobs[set.job].name, names: self.source.job_names() };
        let turn = match turn {
            Turn::Launched(_) if self.options.placement == Placement::Pooled => Turn::Launched(None),
            turn => turn,
        };
        let decision = Decision { now: self.now, user, rank: place.rank, name, task: u64::from(set.number), turn };
        self.recorder.decided(&decision, &self.books)
    }

    fn serve_skip(&mut self) -> Result<()> {
        while let Some(user) = self.round.fresh.pop() {
            let place = self.place(user);
            self.round.order.push(Reverse((place, user)));
        }
        self.round.freed.sort_unstable();
        self.round.freed.dedup();
        self.set_limit();
        let mut from: Option<Place> = None;
        let mut candidate = self.search(None);
        loop {
            let fresh = self.round.order.peek().map(|Reverse(next)| *next);
            match (fresh, candidate) {
                (None, None) => break,
                (Some((place, user)), blocked) if blocked.is_none_or(|(other, _)| place < other) => {
                    self.round.order.pop();
                    if self.moved(user, place) {
                        self.round.order.push(Reverse((self.place(user), user)));
                    } else if self.try_fresh(user, place)? && candidate.is_some() {
                        self.lower_limit();
                        candidate = self.search(from.as_ref());
                    }
                }
                (_, Some((place, user))) if self.moved(user, place) => {
                    self.round.line.remove(&place);
                    let place = self.place(user);
                    self.block(user, place);
                    candidate = self.search(from.as_ref());
                }
                (_, Some((place, user))) => {
                    from = Some(self.try_blocked(user, place)?);
                    self.lower_limit();
                    candidate = self.search(from.as_ref());
                }
                (Some(_), None) => unreachable!("the guard of the second arm holds without a blocked candidate"),
            }
        }
        Ok(())
    }

    /// Notes that machines have less than the limit says. With many freed machines the limit is set anew only when it
    /// has misled a search: too high a limit costs a vain search, too low a one would cost a launch.
    fn lower_limit(&mut self) {
        self.round.limit_is_high = true;
        if self.round.freed.len() == 1 {
            self.set_limit();
        }
    }

    /// The most that any freed machine has, dimension by dimension.
    fn set_limit(&mut self) {
        if self.round.line.is_empty() {
            return;
        }
        self.round.limit_is_high = false;
        self.round.limit = Resources::ZERO;
        for &machine in &self.round.freed {
            let free = self.machines.free(machine);
            for (limit, free) in self.round.limit.0.iter_mut().zip(free.0) {
                *limit = (*limit).max(free);
            }
        }
    }

    /// The first blocked user at or behind `from` that may fit a freed machine.
    fn search(&mut self, from: Option<&Place>) -> Option<(Place, UserId)> {
        if self.round.freed.is_empty() || self.round.line.is_empty() {
            return None;
        }
        let dims = self.books.dims();
        self.round.line.first_fitting(from, self.round.limit.slice(dims))
    }

    /// Serves a fresh user or blocks it; whether it launched.
    fn try_fresh(&mut self, user: UserId, place: Place) -> Result<bool> {
        if self.turned_away(user, place)? {
            return Ok(false);
        }
        let head = self.queues.head(user).expect("a user in line has a head");
        let Some(machine) = self.room(head) else {
            self.tell(user, place, Turn::Blocked)?;
            self.block(user, place);
            return Ok(false);
        };
        self.tell(user, place, Turn::Launched(Some(machine)))?;
        self.launch(user, machine);
        self.stand_again(user, head, true);
        Ok(true)
    }

    /// Serves a blocked user if it really fits; where to search on from.
    fn try_blocked(&mut self, user: UserId, place: Place) -> Result<Place> {
        let behind = Place { tie: place.tie + 1, ..place };
        if self.turned_away(user, place)? {
            self.round.line.remove(&place);
            return Ok(behind);
        }
        let head = self.queues.head(user).expect("a user in line has a head");
        // The limit joins several machines: none of them alone may have the room.
        let Some(machine) = self.room(head) else {
            if self.round.limit_is_high {
                self.set_limit();
            }
            return Ok(behind);
        };
        self.round.line.remove(&place);
        self.tell(user, place, Turn::Launched(Some(machine)))?;
        self.launch(user, machine);
        Ok(self.stand_again(user, head, false).map_or(behind, |again| again.min(behind)))
    }

    /// Puts a user that has just launched a task of `served` back in line, if anything waits; its new place if it is
    /// blocked.
    fn stand_again(&mut self, user: UserId, served: u32, fresh: bool) -> Option<Place> {
        let Some(head) = self.queues.head(user) else {
            self.round.stand[user.index()] = Stand::Out;
            return None;
        };
        let place = self.place(user);
        if fresh || head != served {
            self.round.stand[user.index()] = Stand::Fresh;
            self.round.order.push(Reverse((place, user)));
            return None;
        }
        self.block(user, place);
        Some(place)
    }

    /// Whether launches of others have moved a user behind the place it was given in this round.
    fn moved(&self, user: UserId, place: Place) -> bool {
        self.moves_others && self.place(user) != place
    }

    /// Asks the policy; whether it said no, so that the user stands aside and, if it was in line, has to leave it.
    fn turned_away(&mut self, user: UserId, place: Place) -> Result<bool> {
        let head = self.queues.head(user).expect("a user in line has a head");
        let (demand, footprint) = self.sets.needs(head);
        let set = &self.sets[head];
        let ask = Ask { footprint, demand, tasks: if set.gang { set.waiting } else { 1 } };
        let queue = Queues::view(user, set);
        self.round.stand[user.index()] = match self.policy.admit(&queue, &ask, &self.books) {
            Verdict::Yes => return Ok(false),
            Verdict::No => {
                self.round.gated.push(user);
                Stand::Out
            }
            Verdict::Wait => {
                self.policy.refused(&queue, &ask, &self.books);
                self.round.refuses = true;
                Stand::Refused
            }
        };
        self.tell(user, place, Turn::NotAdmitted)?;
        Ok(true)
    }

    /// Launches the next task of the user's head on a machine, or all of a gang as planned.
    fn launch(&mut self, user: UserId, machine: MachineId) {
        let slot = self.queues.head(user).expect("a user in line has a head");
        let gang = self.sets[slot].gang;
        let plan = std::mem::take(&mut self.round.plan);
        let one = [(machine, 1)];
        let parts = if gang { plan.as_slice() } else { &one };
        let tasks = parts.iter().map(|(_, count)| count).sum();
        let (demand, footprint) = self.sets.needs(slot);
        for &(machine, count) in parts {
            for _ in 0..count {
                self.books.launch(user, demand, footprint);
                self.machines.take(machine, footprint);
            }
        }
        let ask = Ask { footprint, demand, tasks };
        self.policy.launched(&Queues::view(user, &self.sets[slot]), &ask, &self.books);
        self.changed.mark(user);
        self.outcome.launched += u64::from(tasks);
        let set = &mut self.sets[slot];
        set.waiting -= tasks;
        let job = &mut self.jobs[set.job];
        job.start = job.start.min(self.now);
        for &(machine, count) in parts {
            let first = set.number;
            set.number += count;
            // Tasks of one set that start together on one machine also end together: one entry for all of them.
            match self.round.launches.get_mut(set.launch as usize) {
                Some(last) if last.machine == machine => last.count = last.count.saturating_add(count),
                _ => {
                    set.launch = self.round.launches.len() as u32;
                    let count = NonZeroU32::new(count).unwrap_or(NonZeroU32::MIN);
                    self.round.launches.push(Running { set: slot, machine, first, count, start: self.now });
                }
            }
        }
        self.round.plan = plan;
        if self.sets[slot].waiting == 0 {
            self.queues.pop(&mut self.sets, user);
            if let Some(next) = self.queues.head(user) {
                self.books.set_head(user, self.sets.needs(next).0);
            }
        }
    }
}
