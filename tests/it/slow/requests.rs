//! Priorities and preemption requests.
//!
//! A request stores the requesting task set, the machine, the deadline and the victims. The amount reserved for it is
//! recomputed each time, in the order of the requests.

use std::cmp::Reverse;

use super::simulation::{Run, Simulation, Task};
use super::world::minus;
use super::{Location, Whom};

/// Tasks of one set that started together on one machine. A request preempts the last tasks of a batch first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch {
    pub set: usize,
    pub machine: usize,
    round: u64,
    /// The start time. A task that a request starts is launched before the round of the same instant, so it has the number of the previous
    /// round.
    start: u64,
    /// The task itself if tasks can fail individually, because each task is then its own batch; otherwise `None`.
    alone: Option<usize>,
}

/// A task's request for room on a machine.
#[derive(Clone, Debug)]
pub struct Request {
    pub set: usize,
    pub place: Location,
    pub machine: usize,
    pub deadline: u64,
    pub asked: Vec<(Batch, usize)>,
    /// The victims have been stopped.
    pub forced: bool,
}

impl Simulation<'_> {
    /// Runs rounds until no request takes effect at once and no request has become unnecessary.
    pub fn serve(&mut self, now: u64) {
        loop {
            self.look_at_asks(now);
            self.give_up(now);
            self.start_asked(now);
            self.round(now);
            let needless = (0..self.requests.len()).any(|at| !self.wanted(at));
            if needless || (self.make_asks(now) && self.world.preempt.is_some_and(|(span, _)| span == 0)) {
                continue;
            }
            return;
        }
    }

    /// Withdraws the requests for a machine that accepts no new tasks, even if the machine joins again at the same instant.
    pub fn withdraw_from(&mut self, machine: usize) {
        self.requests.retain(|request| request.machine != machine);
    }

    /// Returns the running tasks of a batch, ordered by number.
    pub fn members(&self, batch: Batch) -> Vec<usize> {
        let of = |task: usize| self.batch(task) == Some(batch);
        (0..self.tasks.len()).filter(|&task| of(task)).collect()
    }

    pub fn batch(&self, task: usize) -> Option<Batch> {
        let Run { machine, round, start, .. } = self.tasks[task].run()?;
        let alone = self.world.faults.as_ref().map(|_| task);
        Some(Batch { set: self.tasks[task].set, machine, round, start, alone })
    }

    /// Withdraws unnecessary requests, spares unneeded victims, and stops the victims of requests at their deadline.
    fn look_at_asks(&mut self, now: u64) {
        loop {
            self.runtime = self.quotas();
            while let Some(at) = (0..self.requests.len()).find(|&at| !self.wanted(at)) {
                self.requests.remove(at);
            }
            self.spare();
            let due = |this: &Self| {
                let due = |at: &usize| this.requests[*at].deadline <= now && !this.requests[*at].forced;
                (0..this.requests.len()).find(due)
            };
            let mut any = false;
            while let Some(at) = due(self) {
                if !self.is_fair(at) {
                    self.requests.remove(at);
                    continue;
                }
                if !self.count_stops(at, now) {
                    break;
                }
                any = true;
                self.requests[at].forced = true;
                for (batch, count) in self.requests[at].asked.clone() {
                    let members = self.members(batch);
                    let last = members[members.len().saturating_sub(count)..].to_vec();
                    self.stop(&last, now, "preempted");
                }
            }
            if !any {
                return;
            }
        }
    }

    /// Removes the victims that each request no longer needs.
    fn spare(&mut self) {
        for at in 0..self.requests.len() {
            self.requests[at].asked = self.spared(&self.requests[at], &self.reserved(at));
        }
    }

    /// Returns whether a request is still needed: more tasks of its set wait than earlier requests serve, the set is the next one of its
    /// queue, the quota admits the task, and the machine is present and suitable.
    fn wanted(&self, at: usize) -> bool {
        let Request { set, place, machine, .. } = self.requests[at];
        let same = |task: &usize| {
            let task = &self.tasks[*task];
            task.set == set && task.place == place && task.waits()
        };
        let waiting = (0..self.tasks.len()).filter(same).count();
        let before = self.requests[..at].iter().filter(|other| other.set == set && other.place == place).count();
        let next = self.heads().into_iter().find(same);
        let may = |head: usize| self.will_do(head, machine) && self.admitted(head, before + 1);
        waiting > before && next.is_some_and(may)
    }

    /// Returns the amount reserved for a request: its need, limited by the free capacity that earlier requests leave.
    fn reserved(&self, at: usize) -> Vec<u64> {
        let machine = self.requests[at].machine;
        let mut free = self.free(machine);
        for request in self.requests[..at].iter().filter(|other| other.machine == machine) {
            let taken = least(&self.need_of_set(request.set), &free);
            free = minus(&free, &taken);
        }
        least(&self.need_of_set(self.requests[at].set), &free)
    }

    pub fn need_of_set(&self, set: usize) -> Vec<u64> {
        self.world.need(&self.rows[self.sets[set]]).to_vec()
    }

    /// Returns the free capacity of a machine that no request reserves.
    pub fn unreserved(&self, machine: usize) -> Vec<u64> {
        let here = |at: &usize| self.requests[*at].machine == machine;
        let reserved = (0..self.requests.len()).filter(here).map(|at| self.reserved(at));
        reserved.fold(self.free(machine), |free, reserved| minus(&free, &reserved))
    }

    /// Returns the remaining victims of a request. Ended tasks are removed first. Then, from the last victim to the first, each task is
    /// removed if the room is still enough without it.
    pub fn spared(&self, request: &Request, reserved: &[u64]) -> Vec<(Batch, usize)> {
        let wanted = self.need_of_set(request.set);
        let mut asked = request.asked.clone();
        asked.iter_mut().for_each(|(batch, count)| *count = (*count).min(self.members(*batch).len()));
        for at in (0..asked.len()).rev() {
            while asked[at].1 > 0 {
                asked[at].1 -= 1;
                let mut room = reserved.to_vec();
                for (batch, count) in &asked {
                    let each = self.need_of_set(batch.set);
                    room.iter_mut().zip(each).for_each(|(room, each)| *room += each * *count as u64);
                }
                if !enough(&room, &wanted) {
                    asked[at].1 += 1;
                    break;
                }
            }
        }
        asked.retain(|(_, count)| *count > 0);
        asked
    }

    /// Starts the tasks with complete reservations, in request order. Drops a request that still lacks room after its victims were stopped.
    fn start_asked(&mut self, now: u64) {
        // Gangs may have released room, so that fewer victims are needed.
        self.spare();
        let mut at = 0;
        while at < self.requests.len() {
            let Request { set, machine, forced, .. } = self.requests[at];
            if self.reserved(at) == self.need_of_set(set) {
                // The requests of a set serve its tasks in order.
                let wanted = self.wanted(at);
                self.requests.remove(at);
                let waits = |task: &usize| self.tasks[*task].set == set && self.tasks[*task].waits();
                let next = (0..self.tasks.len()).find(waits).filter(|_| wanted);
                next.into_iter().for_each(|task| self.launch(now, task, machine));
            } else if forced {
                self.requests.remove(at);
            } else {
                at += 1;
            }
        }
    }

    /// Adds requests for tasks that fit on no machine, most urgent first. Returns whether any request was added.
    fn make_asks(&mut self, now: u64) -> bool {
        let Some((span, rule)) = self.world.preempt else { return false };
        let mut line = self.tried();
        if rule == Whom::Share {
            return self.ask_for_shares(line, now + span);
        }
        line.sort_by_key(|&head| self.rows[self.tasks[head].row].priority);
        let (mut any, quotas) = (false, self.quotas());
        line.retain(|&head| !self.gang(self.tasks[head].row));
        for head in line {
            while self.may_request(head)
                && self.admitted(head, self.requests_of(self.tasks[head].set) + 1)
                && let Some(found) = self.whom(head, &quotas)
                && let Some(request) = self.new_request(head, found, now + span)
            {
                self.requests.push(request);
                any = true;
            }
        }
        any
    }

    fn requests_of(&self, set: usize) -> usize {
        self.requests.iter().filter(|request| request.set == set).count()
    }

    /// Returns whether more tasks of a queue's next set wait than the set has requests.
    pub fn may_request(&self, head: usize) -> bool {
        let set = self.tasks[head].set;
        self.requests_of(set) < self.waiting(set)
    }

    /// Returns the request of a task for room on a machine, with the victims that it needs. Returns `None` if the preemption limit can
    /// never permit it.
    pub fn new_request(&self, head: usize, found: (usize, Vec<(Batch, usize)>), deadline: u64) -> Option<Request> {
        let Task { set, place, .. } = self.tasks[head];
        let (machine, asked) = found;
        let mut request = Request { set, place, machine, deadline, asked, forced: false };
        request.asked = self.spared(&request, &self.unreserved(machine));
        self.could(&request).then_some(request)
    }

    /// Returns the machine and the victims of a request: victims are added in order until a machine has enough room.
    fn whom(&self, head: usize, quotas: &[Vec<u64>]) -> Option<(usize, Vec<(Batch, usize)>)> {
        let row = &self.rows[self.tasks[head].row];
        let mut search = self.search(head);
        let victims = self.victims(head, |task| {
            let other = &self.rows[self.tasks[task].row];
            other.priority > row.priority && self.may_ask(row.user, other.user, quotas)
        });
        victims.into_iter().find_map(|task| {
            let batch = self.batch(task).expect("it runs");
            let held = self.need_of_set(batch.set);
            if search.is_helped(batch.machine, &held) { search.add(batch, &held) } else { None }
        })
    }

    /// Returns the running tasks that a task may preempt if `may` permits it, in preemption order.
    pub fn victims(&self, head: usize, may: impl Fn(usize) -> bool) -> Vec<usize> {
        let eligible = |&task: &usize| {
            let Some(run) = self.tasks[task].run() else { return false };
            !self.rows[self.tasks[task].row].stable
                && may(task)
                && self.will_do(head, run.machine)
                && !self.is_asked(task)
                && self.may_go(task)
        };
        let mut victims: Vec<usize> = (0..self.tasks.len()).filter(eligible).collect();
        victims.sort_by_key(|&task| {
            let (row, start) = (self.tasks[task].row, self.tasks[task].run().map(|run| run.start));
            Reverse((self.rows[row].priority, start, row, self.tasks[task].number))
        });
        victims
    }

    /// Begins a search for the victims of a task.
    pub fn search(&self, head: usize) -> Search {
        let rooms: Vec<Vec<u64>> = (0..self.there.len()).map(|machine| self.unreserved(machine)).collect();
        let asked = vec![Vec::new(); rooms.len()];
        Search { wanted: self.world.need(&self.rows[self.tasks[head].row]).to_vec(), rooms, asked }
    }

    /// Returns whether a running task is a victim of a request. The victims of a batch are its last tasks.
    pub fn is_asked(&self, task: usize) -> bool {
        let Some(batch) = self.batch(task) else { return false };
        let all = self.requests.iter().flat_map(|request| &request.asked);
        let count: usize = all.filter(|(other, _)| *other == batch).map(|(_, count)| count).sum();
        let members = self.members(batch);
        members.iter().rev().take(count).any(|&member| member == task)
    }
}

/// A search for victims: the room of each machine without the victims found so far, and these victims.
pub struct Search {
    wanted: Vec<u64>,
    rooms: Vec<Vec<u64>>,
    asked: Vec<Vec<(Batch, usize)>>,
}

impl Search {
    /// Returns whether a machine lacks any of these amounts.
    pub fn is_helped(&self, machine: usize, held: &[u64]) -> bool {
        (0..held.len()).any(|r| self.rooms[machine][r] < self.wanted[r] && held[r] > 0)
    }

    /// Adds a victim that holds these amounts. Returns its machine and all victims there once the room is enough.
    pub fn add(&mut self, batch: Batch, held: &[u64]) -> Option<(usize, Vec<(Batch, usize)>)> {
        let (room, asked) = (&mut self.rooms[batch.machine], &mut self.asked[batch.machine]);
        room.iter_mut().zip(held).for_each(|(room, held)| *room += held);
        match asked.iter_mut().find(|(other, _)| *other == batch) {
            Some((_, count)) => *count += 1,
            None => asked.push((batch, 1)),
        }
        enough(room, &self.wanted).then(|| (batch.machine, std::mem::take(asked)))
    }
}

fn least(a: &[u64], b: &[u64]) -> Vec<u64> {
    a.iter().zip(b).map(|(a, b)| *a.min(b)).collect()
}

pub fn enough(room: &[u64], wanted: &[u64]) -> bool {
    room.iter().zip(wanted).all(|(room, wanted)| room >= wanted)
}
