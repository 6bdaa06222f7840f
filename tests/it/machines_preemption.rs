//! Limits and costs of preemption, and preemption for fair shares, in the slow twin of placement, written from the documentation alone.

use std::cmp::Reverse;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::machines_asks::{Batch, Request, enough};
use crate::machines_cases::Draw;
use crate::machines_slow::{Simulation, State, Task, sum};
use crate::machines_world::{Location, Whom};
use crate::slow::{Policy, Ratio, need, offers, share};
use crate::workloads::{chance, pick};

/// Limits and costs of preemption.
#[derive(Clone, Copy, Debug, Default)]
pub struct Displacing {
    /// The time that a task must have run before it may be preempted.
    pub min_run: u64,
    /// The maximum number of preemptions within a span, and the span.
    pub limit: Option<(u64, u64)>,
    /// The interval between checkpoints; a preempted task resumes from its last one. 0 for no checkpoints.
    pub checkpoint: u64,
    pub delay: u64,
}

impl Simulation<'_> {
    /// Returns the restart delay of an attempt: 0 for the first attempt.
    pub fn delay(&self, attempt: u64) -> u64 {
        if attempt > 0 { self.world.preemption_limits.delay } else { 0 }
    }

    /// Saves the progress of a preempted task up to its last checkpoint.
    pub fn keep(&mut self, task: usize, now: u64) {
        let Displacing { checkpoint, .. } = self.world.preemption_limits;
        let run = self.tasks[task].run().expect("it runs");
        let resumed = run.start + self.delay(self.tasks[task].attempt);
        let mut at = checkpoint;
        while checkpoint > 0 && resumed + at <= now {
            self.tasks[task].saved += checkpoint;
            at += checkpoint;
        }
    }

    /// Returns whether a running task may be preempted: it has run for the minimum time, and its gang is not larger than the preemption
    /// limit.
    pub fn may_go(&self, task: usize) -> bool {
        let Displacing { min_run, limit, .. } = self.world.preemption_limits;
        let (now, run) = (self.clock.expect("time has begun"), self.tasks[task].run().expect("it runs"));
        let with_it = if self.gang(self.tasks[task].row) { self.running_of(self.tasks[task].set) } else { 1 };
        now >= run.start + min_run && limit.is_none_or(|(most, _)| with_it <= most)
    }

    fn running_of(&self, set: usize) -> u64 {
        self.tasks.iter().filter(|task| task.set == set && task.run().is_some()).count() as u64
    }

    /// Returns the sets that lose tasks to these requests, and the number of tasks of each. A gang loses all its running tasks.
    fn giving<'r>(&self, requests: impl Iterator<Item = &'r Request>) -> Vec<(usize, u64)> {
        let mut giving: Vec<(usize, u64)> = Vec::new();
        for (batch, count) in requests.flat_map(|request| &request.asked) {
            let gang = self.gang(self.sets[batch.set]);
            let there = (*count).min(self.members(*batch).len()) as u64;
            match giving.iter_mut().find(|(set, _)| *set == batch.set) {
                Some((_, all)) if !gang => *all += there,
                None if there > 0 => giving.push((batch.set, if gang { self.running_of(batch.set) } else { there })),
                _ => {}
            }
        }
        giving
    }

    fn stopped_with(&self, request: &Request) -> u64 {
        self.giving(std::iter::once(request)).into_iter().map(|(_, count)| count).sum()
    }

    /// Returns whether the preemption limit can ever permit the number of tasks that a request stops.
    pub fn could(&self, request: &Request) -> bool {
        self.world.preemption_limits.limit.is_none_or(|(most, _)| self.stopped_with(request) <= most)
    }

    /// Returns whether the preemption limit permits `count` more preemptions at an instant.
    fn room_to_stop(&self, count: u64, at: u64) -> bool {
        let Some((most, within)) = self.world.preemption_limits.limit else { return true };
        let late = self.stops.iter().filter(|stop| *stop + within > at).count() as u64;
        late + count <= most
    }

    /// Counts the tasks that a request preempts now, unless they exceed the preemption limit. Returns whether they were counted.
    pub fn count_stops(&mut self, at: usize, now: u64) -> bool {
        let count = self.stopped_with(&self.requests[at]);
        let may = self.room_to_stop(count, now);
        self.stops.extend((0..count).filter(|_| may).map(|_| now));
        may
    }

    /// Returns the next times at which preemption may become possible: running tasks reach the minimum run time, or the preemption limit
    /// permits the first overdue request.
    pub fn looks_again(&self) -> Vec<u64> {
        let Displacing { min_run, limit, .. } = self.world.preemption_limits;
        let Some(now) = self.clock else { return Vec::new() };
        let old = self.tasks.iter().filter_map(|task| Some(task.run()?.start + min_run)).filter(|at| *at > now);
        let held = self.requests.iter().find(|request| request.deadline <= now && !request.forced);
        let expiries = self.stops.iter().map(|stop| stop + limit.map_or(0, |(_, within)| within));
        let fits = |at: &u64| *at > now && held.is_some_and(|held| self.room_to_stop(self.stopped_with(held), *at));
        let old = old.filter(|_| min_run > 0 && self.world.preempt.is_some());
        old.chain(expiries.filter(fits).min()).collect()
    }

    fn user_of(&self, set: usize) -> usize {
        self.rows[self.sets[set]].user
    }

    fn dims(&self) -> usize {
        offers(&self.world.config)[0].len()
    }

    /// Returns the share of a user with the allocation `held`.
    fn share_with(&self, user: usize, held: &[u64]) -> Ratio {
        let offers = offers(&self.world.config);
        share(&self.world.config, user, held, &sum(offers.iter().cloned(), offers[0].len()))
    }

    /// Returns the allocation of a user after the requests `gets` are granted and the victims of `gives` are preempted.
    fn held_after(&self, user: usize, gets: &[&Request], gives: &[&Request]) -> Vec<u64> {
        let gets = gets.iter().filter(|request| self.user_of(request.set) == user);
        let gets = gets.map(|request| self.need_of_set(request.set));
        let mut held = sum(self.held_by(user).chain(gets), self.dims());
        for (set, count) in self.giving(gives.iter().copied()) {
            if self.user_of(set) == user {
                let each = self.need_of_set(set);
                held.iter_mut().zip(each).for_each(|(held, each)| *held -= each * count);
            }
        }
        held
    }

    /// Returns whether an expired preemption request is still fair. Capacity that was taken for its user counts as
    /// already allocated.
    pub fn is_fair(&self, at: usize) -> bool {
        if self.world.preempt.is_none_or(|(_, rule)| rule != Whom::Share) {
            return true;
        }
        let user = self.user_of(self.requests[at].set);
        let taken: Vec<&Request> = (0..self.requests.len())
            .filter(|&other| other == at || self.requests[other].forced)
            .map(|other| &self.requests[other])
            .collect();
        let with = self.share_with(user, &self.held_after(user, &taken, &[]));
        self.giving(std::iter::once(&self.requests[at])).iter().all(|(set, _)| {
            let giver = self.user_of(*set);
            giver == user || self.share_with(giver, &self.held_after(giver, &[], &[&self.requests[at]])) >= with
        })
    }

    /// Adds preemption requests for the waiting tasks, one task at a time, the user with the least future share first.
    /// Returns whether any request was added.
    pub fn ask_for_shares(&mut self, line: Vec<usize>, deadline: u64) -> bool {
        let mut requesters: Vec<usize> = line.into_iter().filter(|&head| !self.gang(self.tasks[head].row)).collect();
        let mut any = false;
        loop {
            let all: Vec<&Request> = self.requests.iter().collect();
            let will_have = |head: &usize| {
                let user = self.rows[self.tasks[*head].row].user;
                self.share_with(user, &self.held_after(user, &all, &all))
            };
            // Ties go to the first in the scheduling order.
            let Some(head) = requesters.iter().copied().min_by_key(will_have) else { return any };
            let (set, place) = (self.tasks[head].set, self.tasks[head].place);
            let waits = |task: &&Task| task.set == set && matches!(task.state, State::Waiting(_));
            let asks = self.requests.iter().filter(|request| request.set == set).count();
            let more = asks < self.tasks.iter().filter(waits).count();
            let found = if more { self.whom_by_share(head) } else { None };
            let request = found.map(|(machine, asked)| {
                let request = Request { set, place, machine, deadline, asked, forced: false };
                Request { asked: self.spared(&request, &self.unreserved(machine)), ..request }
            });
            match request.filter(|request| self.could(request)) {
                Some(request) => {
                    self.requests.push(request);
                    any = true;
                }
                None => requesters.retain(|other| *other != head),
            }
        }
    }

    /// Selects the machine and the victims of a preemption request. Victims are tasks of users with a larger share than the requesting
    /// user, the largest share first, as long as the share of the victim's user stays at least that of the requesting user.
    fn whom_by_share(&self, head: usize) -> Option<(usize, Vec<(Batch, usize)>)> {
        let all: Vec<&Request> = self.requests.iter().collect();
        let row = &self.rows[self.tasks[head].row];
        let wanted = need(row, &self.world.config);
        let mut will_have = self.held_after(row.user, &all, &all);
        let now = self.share_with(row.user, &will_have);
        will_have.iter_mut().zip(&wanted).for_each(|(held, more)| *held += more);
        let offers = offers(&self.world.config);
        if !enough(&sum(offers.iter().cloned(), self.dims()), &will_have) {
            return None;
        }
        let with = self.share_with(row.user, &will_have);
        let users = self.rows.iter().map(|row| row.user).max()? + 1;
        let keeps = |user: usize| self.share_with(user, &self.held_after(user, &[], &all));
        let mut ahead: Vec<usize> =
            (0..users).filter(|&user| self.held_by(user).next().is_some() && keeps(user) > now).collect();
        ahead.sort_by_cached_key(|&user| Reverse((keeps(user), self.rows.iter().position(|row| row.user == user))));
        let mut rooms: Vec<Vec<u64>> = (0..self.there.len()).map(|machine| self.unreserved(machine)).collect();
        let mut asked: Vec<Vec<(Batch, usize)>> = vec![Vec::new(); rooms.len()];
        for user in ahead {
            // Per machine: the victims of this user, counted as if the user lost tasks on this machine only.
            let mut gives: Vec<Vec<(usize, u64)>> = vec![Vec::new(); rooms.len()];
            for task in self.order_of_stopping(user, head) {
                let batch = self.batch(task).expect("it runs");
                let (room, asked, gives) =
                    (&mut rooms[batch.machine], &mut asked[batch.machine], &mut gives[batch.machine]);
                let held = self.need_of_set(batch.set);
                if !(0..wanted.len()).any(|r| room[r] < wanted[r] && held[r] > 0) {
                    continue;
                }
                let mut would = gives.clone();
                match would.iter_mut().find(|(set, _)| *set == batch.set) {
                    Some(_) if self.gang(self.sets[batch.set]) => {}
                    Some((_, count)) => *count += 1,
                    None if self.gang(self.sets[batch.set]) => would.push((batch.set, self.running_of(batch.set))),
                    None => would.push((batch.set, 1)),
                }
                let mut left = self.held_after(user, &[], &all);
                for (set, count) in &would {
                    let each = self.need_of_set(*set);
                    left.iter_mut().zip(each).for_each(|(left, each)| *left = left.saturating_sub(each * count));
                }
                if self.share_with(user, &left) < with {
                    continue;
                }
                *gives = would;
                room.iter_mut().zip(held).for_each(|(room, held)| *room += held);
                match asked.iter_mut().find(|(other, _)| *other == batch) {
                    Some((_, count)) => *count += 1,
                    None => asked.push((batch, 1)),
                }
                if enough(room, &wanted) {
                    return Some((batch.machine, std::mem::take(asked)));
                }
            }
        }
        None
    }

    /// Returns the tasks of a user that another user's task may preempt, in preemption order.
    fn order_of_stopping(&self, user: usize, head: usize) -> Vec<usize> {
        let now = self.clock.expect("time has begun");
        let may = |&task: &usize| {
            let Some(run) = self.tasks[task].run() else { return false };
            let row = self.tasks[task].row;
            self.rows[row].user == user
                && run.start < now
                && !self.asks[row].stable
                && self.will_do(head, run.machine)
                && !self.is_asked(task)
                && self.may_go(task)
        };
        let mut tasks: Vec<usize> = (0..self.tasks.len()).filter(may).collect();
        tasks.sort_by_key(|&task| {
            let (row, start) = (self.tasks[task].row, self.tasks[task].run().map(|run| run.start));
            Reverse((self.rows[row].priority, start, row, self.tasks[task].number))
        });
        tasks
    }
}

impl Draw {
    /// Draws a case with limits and costs of preemption. Three quarters of the cases preempt for fair shares, the others for urgent tasks.
    pub fn preemption_limits(seed: u64) -> Draw {
        let mut draw = Draw::urgent(seed);
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(6);
        let rng = &mut rng;
        let spans: Vec<u64> = draw.spans().into_iter().map(|span| span.max(1)).collect();
        draw.case.slowdown = None;
        if chance(rng, 75) {
            draw.case.policies.retain(|policy| *policy != Policy::Fifo);
            draw.case.policies.truncate(1);
            draw.case.policies.resize(1, Policy::Drf);
            draw.preempt = draw.preempt.map(|(span, _)| (span, Whom::Share));
            draw.case.rows.truncate(14);
            draw.asks.truncate(14);
            let open = chance(rng, 60);
            for (row, ask) in draw.case.rows.iter_mut().zip(&mut draw.asks) {
                // More and longer tasks keep users waiting, so that their shares fall behind.
                (row.tasks, row.duration) = (row.tasks + pick(rng, &[0, 1, 3]), 3 * row.duration);
                row.gang &= chance(rng, 40);
                if open {
                    (ask.label, ask.place) = (None, Location::Cluster);
                }
            }
            draw.loosen_gangs(rng);
        }
        let one = |rng: &mut ChaCha8Rng, percent| if chance(rng, percent) { pick(rng, &spans) } else { 0 };
        draw.preemption_limits.min_run = one(rng, 40);
        draw.preemption_limits.checkpoint = one(rng, 50) / pick(rng, &[1, 3]);
        draw.preemption_limits.delay = one(rng, 40);
        draw.preemption_limits.limit = chance(rng, 40).then(|| (pick(rng, &[1, 2, 5]), pick(rng, &spans)));
        if chance(rng, 30) {
            draw.faults = Some("fail=0.3,retries=1".to_owned());
        }
        draw
    }
}
