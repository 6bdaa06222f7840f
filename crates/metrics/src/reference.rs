//! The same workload under ideal fair sharing: the reference for the service of every policy.
//!
//! The reference is a fluid replay. All capacity is one pool, tasks are divisible, and at each instant weighted DRF divides the pool among
//! the users with unfinished work ([`Fluid`]). All unfinished tasks of a user progress at the same rate, at most at full speed. So a task
//! ends when the *progress* of its user has grown by the task's duration. Work counts from its submission; the order of stages is ignored.
//! The result depends only on the workload, the capacity and the weights, not on the policy: submissions are recorded in advance, and
//! replayed in order of their time. A run therefore advances the replay in step with its own events, or shares the [`FairService`] of an
//! earlier replay.
//!
//! Work is counted in cluster-seconds ([`work`](crate::work)). A user's *service delay* is the mean age of its work when it is served, `∫
//! (submitted(t) − served(t)) dt / submitted`. The service delay of a task that starts at once is half its duration. The *speed* of a user
//! under a policy is the service delay of the reference over that of the policy.
//!
//! While there is room for all tasks, they run at full speed. Otherwise shares are solved after each event if few users are active. With
//! more users, shares are solved after a number of events (an eighth of the number of active users), or after a minute. Until then a fully
//! served user stays fully served, and every other user keeps its share. Cost: O(log rows + dims) per event. Source: Demers, Keshav and
//! Shenker, SIGCOMM 1989 (delays measured against a fluid, fair server); Ghodsi et al., NSDI 2011, §4 (the shares).

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};

use dary_heap::QuaternaryHeap;
use prefetch_index::prefetch_index;

use crate::fair_service::FairService;
use crate::fluid::{Fluid, dominant, rate};
use crate::work::{RowChecksum, ServedWork, TaskSizes, Work};
use plimsoll_base::checkpoint::{Checkpoint, Visitor};
use plimsoll_base::error::Result;
use plimsoll_base::units::{MAX_DIMS, Resources, Span, Time, UserId};
use plimsoll_base::visit_values;

mod flow;

use flow::{Flow, FlowEnd, FlowRow, FlowRows};

/// Rows that will be submitted later, ordered by the time of submission and by their number.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
struct Arrivals {
    /// Rows in order.
    queue: VecDeque<(u64, Work)>,
    /// Rows that belong before the last row of the queue. There are few of them, because rows are recorded in order, except the later rows
    /// of unfinished jobs.
    early: BTreeMap<(Time, u64), Work>,
}

impl Arrivals {
    fn insert(&mut self, number: u64, work: Work) {
        if self.queue.back().is_none_or(|(_, last)| last.submit <= work.submit) {
            self.queue.push_back((number, work));
        } else {
            self.early.insert((work.submit, number), work);
        }
    }

    /// Returns the time and the number of the next row.
    fn next(&self) -> Option<(Time, u64)> {
        let queued = self.queue.front().map(|(number, work)| (work.submit, *number));
        let early = self.early.first_key_value().map(|(key, _)| *key);
        queued.into_iter().chain(early).min()
    }

    /// Removes and returns the next row, if it is submitted by `now` (in seconds).
    fn pop_until(&mut self, now: f64) -> Option<(u64, Work)> {
        let next = self.next().filter(|(at, _)| seconds(*at) <= now)?;
        match self.early.remove(&next) {
            Some(work) => Some((next.1, work)),
            None => self.queue.pop_front(),
        }
    }
}

/// The largest number of active users for which shares are solved after each event.
const FEW: usize = 8;

/// The time in seconds after which shares are solved at the next event, independently of the number of events.
const STEP: f64 = 60.0;

/// The smallest number of flows for which data are prefetched. If there are fewer flows, they are in the cache.
const MANY: usize = 4096;

/// A user counts as fully served if at least this part of its tasks runs.
const FULL: f64 = 1.0 - 1e-12;

/// The fluid replay of a workload under weighted DRF.
#[derive(Debug)]
pub struct Reference {
    dims: usize,
    sizes: TaskSizes,
    /// The weights by class.
    weights: Vec<[f64; MAX_DIMS]>,
    users: Vec<UserAccount>,
    /// The users with unfinished work.
    flows: Vec<Flow>,
    /// The total demand of all tasks of each flow, `dims` amounts per flow.
    wanted: Vec<u128>,
    /// The rows in progress of each flow after its first row, by [`FlowRow::pack`]. Heaps beyond the last flow are kept to reuse their
    /// memory.
    more: Vec<QuaternaryHeap<Reverse<u128>>>,
    /// The tasks and the demand of each row in progress.
    rows: FlowRows,
    coming: Arrivals,
    recorded: RowChecksum,
    /// All events before this time have been replayed. The second field is the same time in seconds.
    reached: (Time, f64),
    /// Whether rows that arrive at the time `reached` have already been replayed. The other events of this time follow.
    begun: bool,
    /// For each user, the end of its first row if nothing changes, as a [`FlowEnd`]. An entry is valid if its time equals the expected
    /// time in the flow.
    agenda: QuaternaryHeap<Reverse<u128>>,
    /// The users of the flows, in the same order. The demand of a stale flow is outdated.
    fluid: Fluid,
    capacity: Resources,
    /// The total demand of all tasks.
    all: [u128; MAX_DIMS],
    /// Whether some user is not fully served.
    limited: bool,
    /// The number of events since shares were solved; `solved` is the time of the last solution.
    events: usize,
    solved: f64,
}

/// The account of a user, with or without unfinished work.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
struct UserAccount {
    class: u32,
    /// The index among the flows, or [`NOWHERE`] if the user has no unfinished work.
    place: u32,
    /// The service so far. While the user has unfinished work, its delay is stored in its flow.
    service: ServedWork,
}

const NOWHERE: u32 = u32::MAX;

/// Converts a time to seconds.
fn seconds(time: Time) -> f64 {
    time.0 as f64 / 1e6
}

impl Reference {
    /// Creates a replay without work on a cluster of this capacity, with the weights by class.
    pub fn new(dims: usize, capacity: &Resources, weights: Vec<[f64; MAX_DIMS]>) -> Reference {
        Reference {
            dims,
            sizes: TaskSizes::new(dims, capacity),
            weights,
            users: Vec::new(),
            flows: Vec::new(),
            wanted: Vec::new(),
            more: Vec::new(),
            rows: FlowRows::new(dims),
            coming: Arrivals::default(),
            recorded: RowChecksum::default(),
            reached: (Time::ZERO, f64::NEG_INFINITY),
            begun: false,
            agenda: QuaternaryHeap::new(),
            fluid: Fluid::new(dims),
            capacity: *capacity,
            all: [0; MAX_DIMS],
            limited: false,
            events: 0,
            solved: f64::NEG_INFINITY,
        }
    }

    /// Adds an account for the next user id, with its class of weights.
    pub fn user(&mut self, class: u32) {
        self.users.push(UserAccount { class, place: NOWHERE, service: ServedWork::default() });
    }

    /// Returns the number of accounts.
    pub fn users(&self) -> usize {
        self.users.len()
    }

    /// Prefetches the account of a user that is about to submit a row.
    pub fn fetch(&self, user: UserId) {
        prefetch_index(&self.users, user.index());
    }

    /// Records a row, at its submission or earlier. A row without work changes nothing. Rows are numbered in the order of recording; rows
    /// with equal submit times are replayed in the order of their numbers. Under a horizon, only rows that are submitted before it may be
    /// recorded.
    pub fn submit(&mut self, work: Work) {
        self.recorded.add(&work);
        let size = self.sizes.size(&work.demand.0);
        if work.tasks == 0 || work.duration == Span::ZERO || size <= 0.0 {
            return;
        }
        let (reached, now) = self.reached;
        // Shortcut: most rows are recorded when all earlier events have been replayed.
        if work.submit == reached && now >= 0.0 && self.coming.next().is_none_or(|(at, _)| at > reached) {
            self.begun = true;
            self.arrive(now, self.recorded.rows(), size, &work);
        } else {
            self.coming.insert(self.recorded.rows(), work);
        }
    }

    /// Replays all events before `to`. All rows submitted before `to` must have been recorded.
    ///
    /// Errors: [`Error::NotConverged`](plimsoll_base::error::Error::NotConverged).
    pub fn advance(&mut self, to: Time) -> Result<()> {
        let end = seconds(to);
        while let Some(now) = self.next().filter(|now| *now < end) {
            self.begun = false;
            while let Some((number, work)) = self.coming.pop_until(now) {
                self.arrive(now, number, self.sizes.size(&work.demand.0), &work);
            }
            while let Some((_, place)) = self.next_end().filter(|(at, _)| *at <= now) {
                if self.flows.len() >= MANY {
                    self.fetch_ahead();
                }
                // The new end of the flow replaces its old end, which is the first entry of the agenda.
                match self.end_rows(now, place) {
                    Some(next) => {
                        self.agenda.peek_mut().into_iter().for_each(|mut first| *first = Reverse(next.pack()))
                    }
                    None => self.agenda.pop().into_iter().for_each(drop),
                }
            }
            let due = self.events * FEW >= self.flows.len() || now >= self.solved + STEP;
            if due && (self.limited || !self.has_room()) {
                self.solve(now)?;
            }
        }
        self.reached = (to, end);
        Ok(())
    }

    /// Replays to the end of the work, or to the horizon. Returns the service of all users. Errors: as [`Reference::advance`].
    pub fn finish(mut self, horizon: Option<Time>) -> Result<FairService> {
        self.advance(horizon.unwrap_or(Time::NEVER))?;
        if let Some(horizon) = horizon {
            self.flows.iter_mut().for_each(|flow| flow.pass(seconds(horizon)));
        }
        let service = |account: &UserAccount| match self.flows.get(account.place as usize) {
            Some(flow) => (ServedWork { delay: flow.delay, ..account.service }, flow.left),
            None => (account.service, 0.0),
        };
        Ok(FairService { users: self.users.iter().map(service).collect(), rows: self.recorded })
    }

    /// Returns whether all tasks can run at the same time.
    fn has_room(&self) -> bool {
        self.all[..self.dims].iter().zip(&self.capacity.0).all(|(all, capacity)| *all <= u128::from(*capacity))
    }

    /// Returns the time of the next event, in seconds.
    fn next(&mut self) -> Option<f64> {
        if self.begun {
            return Some(self.reached.1);
        }
        let arrival = self.coming.next().map(|(time, _)| seconds(time));
        let end = self.next_end().map(|(at, _)| at);
        arrival.into_iter().chain(end).reduce(f64::min)
    }

    /// Returns the time at which the next row ends, and the index of its flow.
    fn next_end(&mut self) -> Option<(f64, usize)> {
        while let Some(&Reverse(end)) = self.agenda.peek() {
            let FlowEnd { at, user } = FlowEnd::unpack(end);
            let place = self.users[user.index()].place as usize;
            if self.flows.get(place).is_some_and(|flow| flow.expected.to_bits() == at.to_bits()) {
                return Some((at, place));
            }
            self.agenda.pop();
        }
        None
    }

    /// Prefetches the data of the next ends, which are near the top of the agenda.
    fn fetch_ahead(&self) {
        let mut soon = self.agenda.as_slice().iter().map(|Reverse(end)| FlowEnd::unpack(*end).user.index());
        for user in soon.by_ref().take(3) {
            let place = self.users[user].place as usize;
            prefetch_index(&self.flows, place);
            prefetch_index(&self.flows, place.wrapping_add(1));
            prefetch_index(&self.wanted, place.wrapping_mul(self.dims));
            prefetch_index(&self.more, place);
        }
        soon.take(12).for_each(|user| prefetch_index(&self.users, user));
    }

    /// Returns the index of the flow of a user; adds a flow if the user has none.
    fn open(&mut self, now: f64, user: UserId) -> usize {
        let account = &mut self.users[user.index()];
        if account.place == NOWHERE {
            account.place = self.flows.len() as u32;
            self.flows.push(Flow::new(user, now, account.service.delay));
            self.wanted.resize(self.flows.len() * self.dims, 0);
            self.fluid.grow();
            if self.more.len() < self.flows.len() {
                self.more.push(QuaternaryHeap::new());
            }
        }
        account.place as usize
    }

    /// Removes the flow of a user without unfinished work.
    fn close(&mut self, place: usize) {
        let Flow { user, delay, .. } = self.flows.swap_remove(place);
        let account = &mut self.users[user.index()];
        (account.place, account.service.delay) = (NOWHERE, delay);
        let last = self.flows.len();
        if let Some(moved) = self.flows.get(place) {
            self.users[moved.user.index()].place = place as u32;
        }
        self.more.swap(place, last);
        let (dims, at) = (self.dims, last * self.dims);
        self.wanted.copy_within(at..at + dims, place * dims);
        self.wanted.truncate(at);
        self.fluid.swap_remove(place);
    }

    fn arrive(&mut self, now: f64, number: u64, size: f64, work: &Work) {
        let needs = &work.demand.0[..self.dims];
        let place = self.open(now, work.user);
        let flow = &mut self.flows[place];
        flow.pass(now);
        let (span, rate) = (work.duration.seconds(), size * work.tasks as f64);
        let rate = if work.measured { rate } else { 0.0 };
        self.users[work.user.index()].service.work += rate * span;
        flow.left += rate * span;
        flow.rate += rate;
        flow.measured += u64::from(work.measured);
        let wanted = &mut self.wanted[place * self.dims..][..self.dims];
        for ((sum, all), demand) in wanted.iter_mut().zip(&mut self.all).zip(needs) {
            let demand = u128::from(*demand) * u128::from(work.tasks);
            (*sum, *all) = (*sum + demand, *all + demand);
        }
        let slot = self.rows.keep(work.tasks, work.measured, needs);
        let mut row = FlowRow { end: flow.progress + span, number: number as u32, slot };
        let none = flow.tasks == 0;
        flow.tasks += work.tasks;
        if none || row.pack() < flow.first.pack() {
            std::mem::swap(&mut flow.first, &mut row);
        }
        if !none {
            self.more[place].push(Reverse(row.pack()));
        }
        let before = flow.expected;
        // While all tasks run at full speed, most arrivals do not change the end of the first row.
        let next = self.changed(place).filter(|end| end.at.to_bits() != before.to_bits());
        next.into_iter().for_each(|next| self.agenda.push(Reverse(next.pack())));
    }

    /// Ends the rows of a user that are complete at `now`. Returns the end of its next row, if there is one.
    fn end_rows(&mut self, now: f64, place: usize) -> Option<FlowEnd> {
        let flow = &mut self.flows[place];
        let wanted = &mut self.wanted[place * self.dims..][..self.dims];
        flow.pass(now);
        // This assignment removes accumulated rounding errors.
        flow.progress = flow.first.end;
        while flow.first.end <= flow.progress {
            let slot = flow.first.slot;
            let Some(Reverse(next)) = self.more[place].pop() else {
                // This row is the last one, so the remaining demand of the user is the demand of this row, and no lookup is needed.
                self.all.iter_mut().zip(wanted).for_each(|(all, wanted)| *all -= *wanted);
                self.rows.free(slot);
                self.events += 1;
                self.close(place);
                return None;
            };
            flow.first = FlowRow::unpack(next);
            let (tasks, is_measured, needs) = self.rows.get(slot);
            flow.tasks -= tasks;
            if is_measured {
                flow.measured -= 1;
                flow.rate -= self.sizes.size(needs) * tasks as f64;
            }
            if flow.measured == 0 {
                (flow.left, flow.rate) = (0.0, 0.0);
            }
            for ((sum, all), demand) in wanted.iter_mut().zip(&mut self.all).zip(needs) {
                let demand = u128::from(*demand) * u128::from(tasks);
                (*sum, *all) = (*sum - demand, *all - demand);
            }
            self.rows.free(slot);
        }
        self.changed(place)
    }

    /// Updates a flow after a change of its tasks. Returns the end of its first row, if there is one.
    fn changed(&mut self, place: usize) -> Option<FlowEnd> {
        self.events += 1;
        let flow = &mut self.flows[place];
        flow.stale = true;
        flow.adjust();
        flow.expect()
    }

    /// Updates the mean demand of the flows with changed tasks.
    fn refresh_demand(&mut self) {
        let mut mean = [0.0; MAX_DIMS];
        let mean = &mut mean[..self.dims];
        for (place, flow) in self.flows.iter_mut().enumerate().filter(|(_, flow)| flow.stale) {
            let (wanted, tasks) = (&self.wanted[place * self.dims..], flow.tasks as f64);
            for ((mean, wanted), inverse) in mean.iter_mut().zip(wanted).zip(&self.sizes.inverse) {
                *mean = float(*wanted) / tasks * inverse;
            }
            let class = self.users[flow.user.index()].class as usize;
            self.fluid.set(place, mean, tasks, rate(mean, &self.weights[class]));
            (flow.size, flow.stale) = (dominant(mean, &[1.0; MAX_DIMS]), false);
        }
    }

    /// Recomputes the shares.
    fn solve(&mut self, now: f64) -> Result<()> {
        (self.events, self.solved, self.limited) = (0, now, false);
        self.refresh_demand();
        let mut agenda = std::mem::take(&mut self.agenda).into_vec();
        agenda.clear();
        for (flow, tasks) in self.flows.iter_mut().zip(self.fluid.solve()?) {
            flow.pass(now);
            let allowed = tasks * flow.size / flow.size;
            flow.allowed = if allowed < flow.tasks as f64 * FULL { allowed } else { f64::INFINITY };
            self.limited |= flow.allowed.is_finite();
            flow.adjust();
            agenda.extend(flow.expect().map(|end| Reverse(end.pack())));
        }
        self.agenda = QuaternaryHeap::from(agenda);
        Ok(())
    }
}

/// Converts a number to the nearest float. For numbers that fit 64 bits, this is faster than a cast.
fn float(number: u128) -> f64 {
    u64::try_from(number).map_or(number as f64, |number| number as f64)
}

impl Checkpoint for Reference {
    fn visit(&mut self, visitor: &mut Visitor) -> Result<()> {
        let Reference {
            dims: _,
            sizes: _,
            weights: _,
            users,
            flows,
            wanted,
            more,
            rows,
            coming,
            recorded,
            reached,
            begun,
            agenda,
            fluid,
            capacity: _,
            all,
            limited,
            events,
            solved,
        } = self;
        visit_values!(visitor; users, flows, wanted, more, rows, coming, recorded, reached, begun, agenda);
        visit_values!(visitor; all, limited, events, solved);
        fluid.visit(visitor)
    }
}

#[cfg(test)]
mod tests;
