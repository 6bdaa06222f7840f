//! The same workload under ideal fair sharing: the reference for the service of every policy.
//!
//! A fluid replay: all capacity is one pool, tasks are divisible, and at every instant weighted DRF divides the pool
//! among the users that have work left ([`fluid_shares`]). All unfinished tasks of a user progress at the same rate, at
//! most at full speed, so that each task ends when its user's *progress* has grown by its duration. Work counts from
//! its submission; the order of stages is not kept. The result depends on the workload, the capacity and the
//! weights alone, and on nothing that a policy does: submissions are heard ahead of time and events are replayed in
//! their own order.
//!
//! Work is counted in cluster-seconds: a task's own dominant share times its duration. A user's *service delay* is the
//! mean age of its work when it is served, `∫ (submitted(t) − served(t)) dt / submitted`: a task that starts at once has
//! half its duration. The *speed* of a user under a policy is its service delay here over its service delay there.
//!
//! While there is room for everything, all tasks run at full speed. Otherwise shares are solved anew after every event
//! while few users are active; with more, after an eighth as many events as there are active users, or a minute. Until then a user that was served in full stays so, and any other keeps its share. Cost: O(log rows +
//! dims) an event.
//! Source: Demers, Keshav and Shenker, SIGCOMM 1989 (delays measured against a fluid, fair server); Ghodsi et al.,
//! NSDI 2011, §4 (the shares).

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use super::run::deviation::{Wish, fluid_shares};
use plimsoll_base::error::Result;
use plimsoll_base::units::{MAX_DIMS, Resources, Span, Time, UserId};
use plimsoll_fair::Levels;

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
pub struct Service {
    /// Work submitted, in cluster-seconds.
    pub work: f64,
    /// Its age when it was served, added up: cluster-seconds times seconds.
    pub delay: f64,
}

impl Service {
    /// The mean age of the work when it was served, in seconds; `None` without work.
    pub fn mean_delay(&self) -> Option<f64> {
        (self.work > 0.0).then(|| self.delay / self.work)
    }
}

/// A row in progress: its tasks end when the user's progress reaches `end`.
#[derive(Clone, Copy, Debug)]
struct Row {
    end: f64,
    number: u64,
    tasks: u64,
    demand: Resources,
    /// Cluster-seconds a second that its tasks get at full speed, if measured.
    rate: f64,
}

impl Ord for Row {
    fn cmp(&self, other: &Row) -> std::cmp::Ordering {
        self.end.total_cmp(&other.end).then(self.number.cmp(&other.number))
    }
}

impl PartialOrd for Row {
    fn partial_cmp(&self, other: &Row) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Row {
    fn eq(&self, other: &Row) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Row {}

/// A user with work left.
#[derive(Debug)]
struct Flow {
    rows: BinaryHeap<Reverse<Row>>,
    tasks: u64,
    /// The demand of all its tasks together.
    wanted: [u128; MAX_DIMS],
    /// Seconds of every task's own time that have passed since it became active.
    progress: f64,
    /// How fast progress grows, 0 to 1.
    pace: f64,
    /// How many tasks it may run at once; boundless if it is served in full.
    allowed: f64,
    /// Until when all this was brought.
    since: f64,
    /// The measured work that is left, and how much of it is done in a second at full speed.
    left: f64,
    rate: f64,
    /// How many of its rows are measured.
    measured: u64,
    /// Which of its entries in the agenda is valid.
    stamp: u64,
    /// Place in the list of active users.
    place: usize,
}

/// With up to so many active users shares are solved anew after every event.
const FEW: usize = 8;

/// Seconds after which shares are solved anew with the next event, however few events there were.
const STEP: f64 = 60.0;

/// From this part of its tasks on a user counts as served in full.
const FULL: f64 = 1.0 - 1e-12;

/// The fluid replay of a workload under weighted DRF.
#[derive(Debug)]
pub struct Reference {
    dims: usize,
    /// 1 / capacity of each resource; 0 where there is none of it.
    inverse: [f64; MAX_DIMS],
    /// By class of weights.
    weights: Vec<[f64; MAX_DIMS]>,
    users: Vec<Account>,
    active: Vec<u32>,
    /// Submitted for a later time, by time and row.
    coming: BTreeMap<(Time, u64), Work>,
    rows: u64,
    /// When the first row of a user ends if nothing changes: time (as bits, which sort as the numbers do), user, stamp.
    agenda: BinaryHeap<Reverse<(u64, u32, u64)>>,
    stamps: u64,
    levels: Levels,
    capacity: Resources,
    /// The demand of all tasks together.
    wanted: [u128; MAX_DIMS],
    /// Whether somebody is served less than in full.
    limited: bool,
    /// Events since shares were solved, and when that was.
    events: usize,
    solved: f64,
}

/// A user, with work left or without.
#[derive(Debug)]
struct Account {
    class: u32,
    service: Service,
    flow: Option<Box<Flow>>,
}

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
            active: Vec::new(),
            coming: BTreeMap::new(),
            rows: 0,
            agenda: BinaryHeap::new(),
            stamps: 0,
            levels: Levels::new(),
            capacity: *capacity,
            wanted: [0; MAX_DIMS],
            limited: false,
            events: 0,
            solved: f64::NEG_INFINITY,
        }
    }

    /// Opens an account for the next user id, with its class of weights.
    pub fn user(&mut self, class: u32) {
        self.users.push(Account { class, service: Service::default(), flow: None });
    }

    /// Takes a row in, at its submission or before it. A row without any work changes nothing.
    pub fn submit(&mut self, work: Work) {
        self.rows += 1;
        if work.duration > Span::ZERO && self.size(work.demand.slice(self.dims)) > 0.0 {
            self.coming.insert((work.submit, self.rows), work);
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
            while let Some(entry) = self.coming.first_entry().filter(|entry| seconds(entry.key().0) <= now) {
                let ((_, number), work) = entry.remove_entry();
                self.arrive(now, number, &work);
            }
            while let Some(&Reverse((at, user, stamp))) = self.agenda.peek() {
                let valid = self.users[user as usize].flow.as_ref().is_some_and(|flow| flow.stamp == stamp);
                if valid && f64::from_bits(at) > now {
                    break;
                }
                self.agenda.pop();
                if valid {
                    self.end_rows(now, user);
                }
            }
            let room = (0..self.dims).all(|d| self.wanted[d] <= u128::from(self.capacity.0[d]));
            let due = self.events * FEW >= self.active.len() || now >= self.solved + STEP;
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
            for &user in &self.active {
                let account = &mut self.users[user as usize];
                if let Some(flow) = &mut account.flow {
                    flow.pass(seconds(cut), &mut account.service);
                }
            }
        }
        Ok(())
    }

    /// The service of a user so far.
    pub fn service(&self, user: usize) -> Service {
        self.users[user].service
    }

    /// When something happens next, in seconds.
    fn next(&mut self) -> Option<f64> {
        let arrival = self.coming.first_key_value().map(|((time, _), _)| seconds(*time));
        while let Some(&Reverse((at, user, stamp))) = self.agenda.peek() {
            if self.users[user as usize].flow.as_ref().is_some_and(|flow| flow.stamp == stamp) {
                return Some(arrival.map_or(f64::from_bits(at), |arrival| arrival.min(f64::from_bits(at))));
            }
            self.agenda.pop();
        }
        arrival
    }

    fn arrive(&mut self, now: f64, number: u64, work: &Work) {
        let size = self.size(work.demand.slice(self.dims));
        let account = &mut self.users[work.user.index()];
        let place = self.active.len();
        if account.flow.is_none() {
            self.active.push(work.user.0);
        }
        let flow = account.flow.get_or_insert_with(|| Box::new(Flow::new(now, place)));
        flow.pass(now, &mut account.service);
        let (span, rate) = (work.duration.seconds(), size * work.tasks as f64);
        let rate = if work.measured { rate } else { 0.0 };
        account.service.work += rate * span;
        flow.left += rate * span;
        flow.rate += rate;
        flow.measured += u64::from(work.measured);
        flow.tasks += work.tasks;
        for ((sum, all), demand) in flow.wanted.iter_mut().zip(&mut self.wanted).zip(work.demand.0) {
            let demand = u128::from(demand) * u128::from(work.tasks);
            (*sum, *all) = (*sum + demand, *all + demand);
        }
        let row = Row { end: flow.progress + span, number, tasks: work.tasks, demand: work.demand, rate };
        flow.rows.push(Reverse(row));
        flow.adjust();
        self.events += 1;
        self.expect(work.user.0);
    }

    /// Ends those rows of a user that are due.
    fn end_rows(&mut self, now: f64, user: u32) {
        let account = &mut self.users[user as usize];
        let Some(flow) = &mut account.flow else { return };
        flow.pass(now, &mut account.service);
        if let Some(Reverse(first)) = flow.rows.peek() {
            // Without the rounding errors of the way there.
            flow.progress = first.end;
        }
        while let Some(&Reverse(row)) = flow.rows.peek().filter(|row| row.0.end <= flow.progress) {
            flow.rows.pop();
            flow.tasks -= row.tasks;
            flow.measured -= u64::from(row.rate > 0.0);
            flow.rate -= row.rate;
            if flow.measured == 0 {
                (flow.left, flow.rate) = (0.0, 0.0);
            }
            for ((sum, all), demand) in flow.wanted.iter_mut().zip(&mut self.wanted).zip(row.demand.0) {
                let demand = u128::from(demand) * u128::from(row.tasks);
                (*sum, *all) = (*sum - demand, *all - demand);
            }
        }
        self.events += 1;
        if !flow.rows.is_empty() {
            flow.adjust();
            return self.expect(user);
        }
        let place = flow.place;
        account.flow = None;
        self.active.swap_remove(place);
        if let Some(&moved) = self.active.get(place)
            && let Some(flow) = &mut self.users[moved as usize].flow
        {
            flow.place = place;
        }
    }

    /// Notes when the first row of a user will end.
    fn expect(&mut self, user: u32) {
        let Some(flow) = &mut self.users[user as usize].flow else { return };
        self.stamps += 1;
        flow.stamp = self.stamps;
        if let Some(at) = flow.next() {
            self.agenda.push(Reverse((at.to_bits(), user, flow.stamp)));
        }
    }

    /// Divides the cluster anew.
    fn solve(&mut self, now: f64) -> Result<()> {
        (self.events, self.solved, self.limited) = (0, now, false);
        self.agenda.clear();
        let wishes: Vec<Wish> = self.active.iter().map(|&user| self.wish(user as usize)).collect();
        let shares = fluid_shares(&mut self.levels, &wishes, self.dims)?;
        for (place, (wish, share)) in wishes.iter().zip(shares).enumerate() {
            let user = self.active[place];
            let account = &mut self.users[user as usize];
            let Some(flow) = &mut account.flow else { continue };
            flow.pass(now, &mut account.service);
            let allowed = share / wish.demand[..self.dims].iter().copied().fold(0.0, f64::max);
            flow.allowed = if allowed < wish.tasks * FULL { allowed } else { f64::INFINITY };
            self.limited |= flow.allowed.is_finite();
            flow.adjust();
            self.expect(user);
        }
        Ok(())
    }

    fn wish(&self, user: usize) -> Wish {
        let account = &self.users[user];
        let (tasks, wanted) =
            account.flow.as_ref().map_or((0.0, [0; MAX_DIMS]), |flow| (flow.tasks as f64, flow.wanted));
        let mean = |d: usize| wanted[d] as f64 / tasks * self.inverse[d];
        Wish { demand: std::array::from_fn(mean), weight: self.weights[account.class as usize], tasks }
    }
}

impl Flow {
    fn new(now: f64, place: usize) -> Flow {
        Flow {
            rows: BinaryHeap::new(),
            tasks: 0,
            wanted: [0; MAX_DIMS],
            progress: 0.0,
            pace: 1.0,
            allowed: f64::INFINITY,
            since: now,
            left: 0.0,
            rate: 0.0,
            measured: 0,
            stamp: 0,
            place,
        }
    }

    /// Lets the time until `now` pass.
    fn pass(&mut self, now: f64, service: &mut Service) {
        let span = now - self.since;
        let done = self.pace * span;
        let served = (self.rate * done).min(self.left);
        service.delay += (self.left - served / 2.0) * span;
        self.left -= served;
        self.progress += done;
        self.since = now;
    }

    /// Sets the pace at which its present tasks share the number that it is allowed.
    fn adjust(&mut self) {
        self.pace = (self.allowed / self.tasks as f64).min(1.0);
    }

    /// When its first row ends.
    fn next(&self) -> Option<f64> {
        let Reverse(first) = self.rows.peek()?;
        (self.pace > 0.0).then(|| self.since + (first.end - self.progress).max(0.0) / self.pace)
    }
}

#[cfg(test)]
mod tests;
