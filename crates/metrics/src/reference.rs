//! The same workload under ideal fair sharing: the reference for the service of every policy.
//!
//! A fluid replay: all capacity is one pool, tasks are divisible, and at each instant weighted DRF divides the pool among the users with
//! unfinished work ([`Fluid`]). All unfinished tasks of a user progress at the same rate, at most at full speed, so that a task ends when
//! its user's *progress* has grown by its duration. Work counts from its submission; the order of stages is ignored. The result depends on
//! the workload, the capacity and the weights only, not on the policy: submissions are read ahead and events are replayed in their own
//! order.
//!
//! Work is counted in cluster-seconds: a task's own dominant share times its duration. A user's *service delay* is the mean age of its work
//! when it is served, `∫ (submitted(t) − served(t)) dt / submitted`: a task that starts at once has half its duration. The *speed* of a
//! user under a policy is the service delay of the reference over that of the policy.
//!
//! While there is room for all tasks, they run at full speed. Otherwise shares are solved after each event if few users are active. With
//! more users, they are solved after one event per eight active users, or after a minute. Until then a fully served user stays so, and any
//! other keeps its share. Cost: O(log rows + dims) per event.
//! Source: Demers, Keshav and Shenker, SIGCOMM 1989 (delays measured against a fluid, fair server); Ghodsi et al., NSDI 2011, §4 (the
//! shares).

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};

use dary_heap::QuaternaryHeap;
use prefetch_index::prefetch_index;

use crate::fluid::{Fluid, dominant, rate};
use plimsoll_base::error::Result;
use plimsoll_base::units::{MAX_DIMS, Resources, Span, Time, UserId};

mod flow;

use flow::{Flow, FlowRow, FlowRows};

/// One row of a workload: equal tasks of a user.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    /// The user that submits it.
    pub user: UserId,
    /// When it is submitted.
    pub submit: Time,
    /// How long each task takes at full speed.
    pub duration: Span,
    /// How many tasks.
    pub tasks: u64,
    /// The demand of each, in base units.
    pub demand: Resources,
    /// Whether its delay counts: submitted in the window that is measured.
    pub measured: bool,
}

/// Work and its delay, of one user.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ServedWork {
    /// Work submitted, in cluster-seconds.
    pub work: f64,
    /// Its age when it was served, added up: cluster-seconds times seconds.
    pub delay: f64,
}

impl ServedWork {
    /// The mean age of the work when it was served, in seconds; `None` without work.
    pub fn mean_delay(&self) -> Option<f64> {
        (self.work > 0.0).then(|| self.delay / self.work)
    }
}

/// Rows submitted for a later time, in order of that and of their number.
#[derive(Debug, Default)]
struct Arrivals {
    /// Each behind the one before.
    queue: VecDeque<(u64, Work)>,
    /// Rows that belong before the last one of the queue: few, since rows are reported in order except those of unfinished jobs.
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

    /// The time and the number of the next one.
    fn next(&self) -> Option<(Time, u64)> {
        let queued = self.queue.front().map(|(number, work)| (work.submit, *number));
        let early = self.early.first_key_value().map(|(key, _)| *key);
        queued.into_iter().chain(early).min()
    }

    /// Takes the next one, if it comes by `now`, in seconds.
    fn pop_until(&mut self, now: f64) -> Option<(u64, Work)> {
        let next = self.next().filter(|(at, _)| seconds(*at) <= now)?;
        match self.early.remove(&next) {
            Some(work) => Some((next.1, work)),
            None => self.queue.pop_front(),
        }
    }
}

/// With up to this number of active users, shares are solved after each event.
const FEW: usize = 8;

/// Seconds after which shares are solved with the next event, however few events there were.
const STEP: f64 = 60.0;

/// From this part of its tasks on a user counts as served in full.
const FULL: f64 = 1.0 - 1e-12;

/// The fluid replay of a workload under weighted DRF.
#[derive(Debug)]
pub struct Reference {
    dims: usize,
    /// 1 / capacity of each resource; 0 for a capacity of 0.
    inverse: [f64; MAX_DIMS],
    /// By class of weights.
    weights: Vec<[f64; MAX_DIMS]>,
    users: Vec<UserAccount>,
    /// Users with work left.
    flows: Vec<Flow>,
    /// Of each of them the demand of all its tasks together, and the mean demand as fractions of the capacity.
    wanted: Vec<u128>,
    demand: Vec<f64>,
    /// Of each of them the rows in progress behind the first, by [`Row::pack`]; those behind the last are kept for their memory.
    more: Vec<QuaternaryHeap<Reverse<u128>>>,
    /// Tasks, rate and demand of each row in progress.
    rows: FlowRows,
    coming: Arrivals,
    told: u64,
    /// When the first row of a user ends if nothing changes: time (as bits, which sort as the numbers do) and user. It counts
    /// if the user still expects that.
    agenda: QuaternaryHeap<Reverse<(u64, u32)>>,
    fluid: Fluid,
    capacity: Resources,
    /// The demand of all tasks together.
    all: [u128; MAX_DIMS],
    /// Whether some user is not fully served.
    limited: bool,
    /// Events since shares were solved, and when that was.
    events: usize,
    solved: f64,
}

/// A user, with work left or without.
#[derive(Debug)]
struct UserAccount {
    class: u32,
    /// Its place among the users with work left, or [`NOWHERE`].
    place: u32,
    /// While it has unfinished work, its delay is stored in its flow.
    service: ServedWork,
}

const NOWHERE: u32 = u32::MAX;

/// A time in seconds.
fn seconds(time: Time) -> f64 {
    time.0 as f64 / 1e6
}

impl Reference {
    /// Nothing submitted yet, on a cluster of this capacity; `weights` by class.
    pub fn new(dims: usize, capacity: &Resources, weights: Vec<[f64; MAX_DIMS]>) -> Reference {
        let inverse = |d: usize| if d < dims && capacity.0[d] > 0 { 1.0 / capacity.0[d] as f64 } else { 0.0 };
        Reference {
            dims,
            inverse: std::array::from_fn(inverse),
            weights,
            users: Vec::new(),
            flows: Vec::new(),
            wanted: Vec::new(),
            demand: Vec::new(),
            more: Vec::new(),
            rows: FlowRows::new(dims),
            coming: Arrivals::default(),
            told: 0,
            agenda: QuaternaryHeap::new(),
            fluid: Fluid::new(dims),
            capacity: *capacity,
            all: [0; MAX_DIMS],
            limited: false,
            events: 0,
            solved: f64::NEG_INFINITY,
        }
    }

    /// Opens an account for the next user id, with its class of weights.
    pub fn user(&mut self, class: u32) {
        self.users.push(UserAccount { class, place: NOWHERE, service: ServedWork::default() });
    }

    /// Takes a row in, at its submission or before it. A row without any work changes nothing.
    pub fn submit(&mut self, work: Work) {
        self.told += 1;
        let size = self.size(work.demand.slice(self.dims));
        if work.tasks > 0 && work.duration > Span::ZERO && size > 0.0 {
            // With a hundred thousand users the account has left the cache since it was last needed.
            prefetch_index(&self.users, work.user.index());
            self.coming.insert(self.told, work);
        }
    }

    /// The dominant share of one task.
    pub fn size(&self, demand: &[u64]) -> f64 {
        demand.iter().zip(&self.inverse).map(|(&amount, inverse)| amount as f64 * inverse).fold(0.0, f64::max)
    }

    /// Replays everything before `to`; all rows submitted before it are known by then.
    ///
    /// Errors: [`Error::NotConverged`](plimsoll_base::error::Error::NotConverged).
    pub fn advance(&mut self, to: Time) -> Result<()> {
        let to = seconds(to);
        while let Some(now) = self.next().filter(|now| *now < to) {
            while let Some((number, work)) = self.coming.pop_until(now) {
                self.arrive(now, number, &work);
            }
            while let Some((_, place)) = self.next_end().filter(|(at, _)| *at <= now) {
                self.agenda.pop();
                self.flows[place].expected = f64::INFINITY;
                self.fetch_ahead();
                self.end_rows(now, place);
            }
            let room = (0..self.dims).all(|d| self.all[d] <= u128::from(self.capacity.0[d]));
            let due = self.events * FEW >= self.flows.len() || now >= self.solved + STEP;
            if due && (self.limited || !room) {
                self.solve(now)?;
            }
        }
        Ok(())
    }

    /// Replays to the end of the work, or to where the run is cut off. Errors: as [`Reference::advance`].
    pub fn finish(&mut self, cut: Option<Time>) -> Result<()> {
        self.advance(cut.unwrap_or(Time::NEVER))?;
        if let Some(cut) = cut {
            self.flows.iter_mut().for_each(|flow| flow.pass(seconds(cut)));
        }
        Ok(())
    }

    /// The service of a user so far.
    pub fn service(&self, user: usize) -> ServedWork {
        let UserAccount { place, service, .. } = self.users[user];
        match self.flows.get(place as usize) {
            Some(flow) => ServedWork { delay: flow.delay, ..service },
            None => service,
        }
    }

    /// The measured work of a user that is left now, in cluster-seconds.
    pub fn left(&self, user: usize) -> f64 {
        self.flows.get(self.users[user].place as usize).map_or(0.0, |flow| flow.left)
    }

    /// When something happens next, in seconds.
    fn next(&mut self) -> Option<f64> {
        let arrival = self.coming.next().map(|(time, _)| seconds(time));
        let end = self.next_end().map(|(at, _)| at);
        arrival.into_iter().chain(end).reduce(f64::min)
    }

    /// When the next row ends, and the place of its user.
    fn next_end(&mut self) -> Option<(f64, usize)> {
        while let Some(&Reverse((at, user))) = self.agenda.peek() {
            let place = self.users[user as usize].place as usize;
            if self.flows.get(place).is_some_and(|flow| flow.expected.to_bits() == at) {
                return Some((f64::from_bits(at), place));
            }
            self.agenda.pop();
        }
        None
    }

    /// Has what the next ends need fetched into the cache: those near the top of the agenda come soon.
    fn fetch_ahead(&self) {
        let mut soon = self.agenda.as_slice().iter().map(|Reverse((_, user))| *user as usize);
        for user in soon.by_ref().take(3) {
            let place = self.users[user].place as usize;
            prefetch_index(&self.flows, place);
            prefetch_index(&self.flows, place.wrapping_add(1));
            prefetch_index(&self.wanted, place.wrapping_mul(self.dims));
            prefetch_index(&self.more, place);
        }
        soon.take(12).for_each(|user| prefetch_index(&self.users, user));
    }

    /// The place of a user with work left from now on.
    fn open(&mut self, now: f64, user: UserId) -> usize {
        let account = &mut self.users[user.index()];
        if account.place == NOWHERE {
            account.place = self.flows.len() as u32;
            self.flows.push(Flow::new(user, now, account.service.delay));
            self.wanted.resize(self.flows.len() * self.dims, 0);
            self.demand.resize(self.flows.len() * self.dims, 0.0);
            if self.more.len() < self.flows.len() {
                self.more.push(QuaternaryHeap::new());
            }
        }
        account.place as usize
    }

    /// Forgets a user that has no work left.
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
        self.demand.copy_within(at..at + dims, place * dims);
        self.demand.truncate(at);
    }

    fn arrive(&mut self, now: f64, number: u64, work: &Work) {
        let needs = work.demand.slice(self.dims);
        let size = self.size(needs);
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
        let slot = self.rows.keep(work.tasks, rate, needs);
        let mut row = FlowRow { end: flow.progress + span, number: number as u32, slot };
        let none = flow.tasks == 0;
        flow.tasks += work.tasks;
        if none || row.pack() < flow.first.pack() {
            std::mem::swap(&mut flow.first, &mut row);
        }
        if !none {
            self.more[place].push(Reverse(row.pack()));
        }
        self.changed(place);
    }

    /// Ends those rows of a user that are due.
    fn end_rows(&mut self, now: f64, place: usize) {
        let flow = &mut self.flows[place];
        let wanted = &mut self.wanted[place * self.dims..][..self.dims];
        flow.pass(now);
        // Without the rounding errors of the way there.
        flow.progress = flow.first.end;
        while flow.first.end <= flow.progress {
            let slot = flow.first.slot;
            let Some(Reverse(next)) = self.more[place].pop() else {
                // The rest of the user's demand is that of this row, so no lookup is needed.
                self.all.iter_mut().zip(wanted).for_each(|(all, wanted)| *all -= *wanted);
                self.rows.free(slot);
                self.events += 1;
                return self.close(place);
            };
            flow.first = FlowRow::unpack(next);
            let (tasks, rate, needs) = self.rows.get(slot);
            flow.tasks -= tasks;
            flow.measured -= u64::from(rate > 0.0);
            flow.rate -= rate;
            if flow.measured == 0 {
                (flow.left, flow.rate) = (0.0, 0.0);
            }
            for ((sum, all), demand) in wanted.iter_mut().zip(&mut self.all).zip(needs) {
                let demand = u128::from(*demand) * u128::from(tasks);
                (*sum, *all) = (*sum - demand, *all - demand);
            }
            self.rows.free(slot);
        }
        self.changed(place);
    }

    /// The tasks of a user are others than before.
    fn changed(&mut self, place: usize) {
        self.events += 1;
        let flow = &mut self.flows[place];
        let (wanted, demand) = (&self.wanted[place * self.dims..], &mut self.demand[place * self.dims..][..self.dims]);
        for ((mean, wanted), inverse) in demand.iter_mut().zip(wanted).zip(&self.inverse) {
            *mean = *wanted as f64 / flow.tasks as f64 * inverse;
        }
        let class = self.users[flow.user.index()].class as usize;
        flow.level_rate = rate(demand, &self.weights[class]);
        flow.size = dominant(demand, &[1.0; MAX_DIMS]);
        flow.adjust();
        let before = flow.expected;
        // While everything runs at full speed most arrivals leave the first end where it was.
        self.agenda.extend(flow.expect().filter(|(at, _)| *at != before.to_bits()).map(Reverse));
    }

    /// Recomputes the shares.
    fn solve(&mut self, now: f64) -> Result<()> {
        (self.events, self.solved, self.limited) = (0, now, false);
        self.fluid.clear();
        for (flow, demand) in self.flows.iter().zip(self.demand.chunks_exact(self.dims)) {
            self.fluid.push(demand, flow.tasks as f64, flow.level_rate);
        }
        let mut agenda = std::mem::take(&mut self.agenda).into_vec();
        agenda.clear();
        for (flow, tasks) in self.flows.iter_mut().zip(self.fluid.solve()?) {
            flow.pass(now);
            let allowed = tasks * flow.size / flow.size;
            flow.allowed = if allowed < flow.tasks as f64 * FULL { allowed } else { f64::INFINITY };
            self.limited |= flow.allowed.is_finite();
            flow.adjust();
            agenda.extend(flow.expect().map(Reverse));
        }
        self.agenda = QuaternaryHeap::from(agenda);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
