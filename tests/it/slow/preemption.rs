//! Limits and costs of preemption, and preemption for fair shares.

use std::cmp::Reverse;

use super::Whom;
use super::rate::ONE;
use super::requests::{Batch, Request, enough};
use super::simulation::Simulation;

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
        let mut ran = 0;
        while checkpoint > 0 && resumed + ran + checkpoint <= now {
            ran += checkpoint;
        }
        self.tasks[task].saved += (u128::from(ran) * self.speed(run.machine) / ONE) as u64;
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

    /// Returns the allocation of a user after the requests `gets` are granted and the victims of `gives` are preempted.
    fn held_after(&self, user: usize, gets: &[&Request], gives: &[&Request]) -> Vec<u64> {
        let gets = gets.iter().filter(|request| self.user_of(request.set) == user);
        let mut held = self.held_by(user);
        for request in gets {
            held.iter_mut().zip(self.need_of_set(request.set)).for_each(|(held, more)| *held += more);
        }
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
            let found = if self.may_request(head) { self.whom_by_share(head) } else { None };
            match found.and_then(|found| self.new_request(head, found, deadline)) {
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
        let wanted = self.world.need(row);
        let mut will_have = self.held_after(row.user, &all, &all);
        let now = self.share_with(row.user, &will_have);
        will_have.iter_mut().zip(wanted).for_each(|(held, more)| *held += more);
        if !enough(&self.capacity, &will_have) {
            return None;
        }
        let with = self.share_with(row.user, &will_have);
        let users = self.rows.iter().map(|row| row.user).max()? + 1;
        let keeps = |user: usize| self.share_with(user, &self.held_after(user, &[], &all));
        let mut ahead: Vec<usize> = (0..users).filter(|&user| self.running(user) > 0 && keeps(user) > now).collect();
        ahead.sort_by_cached_key(|&user| Reverse((keeps(user), self.rows.iter().position(|row| row.user == user))));
        let mut search = self.search(head);
        let instant = self.now();
        for user in ahead {
            // Per machine: the victims of this user, counted as if the user lost tasks on this machine only.
            let mut gives: Vec<Vec<(usize, u64)>> = vec![Vec::new(); self.there.len()];
            let started = |task: usize| self.tasks[task].run().is_some_and(|run| run.start < instant);
            for task in self.victims(head, |task| self.rows[self.tasks[task].row].user == user && started(task)) {
                let batch = self.batch(task).expect("it runs");
                let held = self.need_of_set(batch.set);
                if !search.is_helped(batch.machine, &held) {
                    continue;
                }
                let mut would = gives[batch.machine].clone();
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
                gives[batch.machine] = would;
                let found = search.add(batch, &held);
                if found.is_some() {
                    return found;
                }
            }
        }
        None
    }
}
