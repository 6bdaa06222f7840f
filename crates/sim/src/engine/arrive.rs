//! Arrivals at an instant.

use super::Engine;
use super::jobs::{JobSlot, SetSlot};
use super::scopes::ScopeId;
use crate::cluster::{Location, Placement};
use crate::record::{Stuck, StuckRecord};
use crate::workload::TaskSet;
use plimsoll_base::error::{Error, Result};
use plimsoll_base::units::{JobId, Resources, UserId};

/// The jobs that appear at one instant: their ids follow one another.
#[derive(Default)]
pub(super) struct Appeared {
    first: JobId,
    slots: Vec<JobSlot>,
}

impl Appeared {
    fn slot(&self, job: JobId) -> Option<JobSlot> {
        self.slots.get(job.0.checked_sub(self.first.0)? as usize).copied()
    }
}

impl Engine<'_> {
    /// Takes all rows of this instant, and those that follow of a job that goes on, then puts them in line.
    pub(super) fn arrive(&mut self) -> Result<()> {
        if self.source.peek()?.is_none_or(|next| next.submit > self.now) {
            self.enqueue_later();
            return Ok(());
        }
        let mut appeared = std::mem::take(&mut self.appeared);
        let mut arrived = std::mem::take(&mut self.arrived);
        appeared.slots.clear();
        let mut last = None;
        while let Some(next) = self.source.peek()? {
            if next.submit > self.now && last != Some(next.job) {
                break;
            }
            last = Some(next.job);
            let Some(row) = self.source.take()? else { break };
            self.outcome.rows += 1;
            self.open_accounts(row.user)?;
            let known = appeared.slots.len();
            let job = self.job_of(&mut appeared, &row)?;
            let stage = row.stage.map(|stage| self.source.stage_name(stage));
            self.recorder.submitted(&row, stage, appeared.slots.len() > known);
            if let Some(arrival) = self.keep(job, row)? {
                arrived.push(arrival);
            }
        }
        for &job in &appeared.slots {
            self.jobs.complete(job, &*self.source)?;
        }
        self.enqueue_later();
        for (set, after) in arrived.drain(..) {
            let (job, row, release) = (self.sets[set].job, self.sets[set].row, self.sets[set].release);
            if release > self.now {
                self.later.insert((release, row), set);
                if !after.is_empty() {
                    self.sets[set].held = self.jobs.hold(job, row, set, after);
                }
            } else if after.is_empty() || !self.jobs.hold(job, row, set, after) {
                self.enqueue(set);
            } else {
                self.sets[set].held = true;
            }
        }
        (self.appeared, self.arrived) = (appeared, arrived);
        Ok(())
    }

    /// Puts rows that were taken early in line now that their time has come, unless a stage still holds them.
    fn enqueue_later(&mut self) {
        while let Some(entry) = self.later.first_entry().filter(|entry| entry.key().0 <= self.now) {
            let slot = entry.remove();
            // Released at the very instant of its submission: then it is an arrival like any other.
            if let Some(at) = self.released.iter().position(|(_, released)| *released == slot) {
                self.released.swap_remove(at);
                self.sets[slot].held = false;
            }
            if !self.sets[slot].held {
                self.enqueue(slot);
            }
        }
    }

    fn open_accounts(&mut self, user: UserId) -> Result<()> {
        while self.books.users() <= user.index() {
            let id = UserId(self.books.users() as u32);
            let name = self.source.users().name(id.0);
            self.books.open(name);
            self.policy.open(id, name)?;
            self.recorder.user(id, name);
            self.queues.open();
            self.round.open(self.queues.len());
            self.changed.open();
        }
        Ok(())
    }

    fn job_of(&mut self, appeared: &mut Appeared, row: &TaskSet) -> Result<JobSlot> {
        if appeared.slots.is_empty() {
            appeared.first = row.job;
        }
        if let Some(slot) = appeared.slot(row.job) {
            if self.jobs[slot].user != row.user {
                return Err(self.mismatch(row, "user", "differs from the user of the job's earlier rows"));
            }
            return Ok(slot);
        }
        if row.job.0 as usize != appeared.first.0 as usize + appeared.slots.len() {
            return Err(self.mismatch(row, "job", "the job appeared before; its rows must share a submit time"));
        }
        let name = self.source.job_name();
        appeared.slots.push(self.jobs.open(row, name));
        Ok(appeared.slots[appeared.slots.len() - 1])
    }

    fn mismatch(&self, row: &TaskSet, column: &str, problem: &str) -> Error {
        Error::Mismatch { problem: format!("{}, column '{column}': {problem}", self.source.locate(row.row)) }
    }

    /// Keeps a row unless it can never start, which is reported.
    fn keep(&mut self, job: JobSlot, row: TaskSet) -> Result<Option<(SetSlot, Vec<u32>)>> {
        let total = self.books.capacity();
        if let Some(dim) = (0..self.books.dims()).find(|&d| row.demand.0[d] > 0 && total.0[d] == 0) {
            let dim = &self.cluster.dims[dim];
            let problem = format!("the cluster has no {}; add it to the machines", dim.name);
            return Err(self.mismatch(&row, &dim.name, &problem));
        }
        if let Some(d) = (0..self.books.dims()).find(|&d| row.demand.0[d] > self.most_a_task) {
            let problem = "the demand is too large to add up over all tasks that could run at once";
            return Err(self.mismatch(&row, &self.cluster.dims[d].name, problem));
        }
        if let Some(hardware) = self.machines.hardware()
            && let Err(problem) = hardware.check(row.demand.slice(self.books.dims()))
        {
            return Err(self.mismatch(&row, "demand", &problem));
        }
        let first = self.jobs.add_row(job, &row);
        let Ok(first) = u32::try_from(first) else {
            return Err(self.mismatch(&row, "tasks", "the job has more than 4,294,967,295 tasks"));
        };
        let footprint = self.policy.lens(Resources::ZERO, row.demand).1;
        let together = if row.gang { u64::from(row.tasks) } else { 1 };
        let scope = self.scope_of(&row)?;
        let widest =
            if self.options.fall_back.is_some() { self.scopes.widest(scope, self.books.dims()) } else { scope };
        let empty = self.scopes.empty(widest, &self.offers, &self.cluster.capacities);
        let fits = empty.seen.room(&footprint, together) >= together;
        let room = || empty.real.as_ref().unwrap_or(&empty.seen).room(&row.demand, together);
        if together > 1
            && let room = room()
            && room < together
        {
            let whole = widest == ScopeId::WHOLE;
            let place = if whole { "the empty cluster" } else { "the empty machines that it may use" };
            let problem = format!("all {together} tasks are to start at once, and {place} has room for {room}");
            return Err(self.mismatch(&row, "gang", &problem));
        }
        if !fits {
            self.recorder.stuck(&StuckRecord {
                name: self.jobs.name(job, self.source.job_names()),
                user: row.user,
                row: row.row,
                tasks: u64::from(row.tasks),
                first: u64::from(first),
                attempt: 0,
                submit: row.submit,
                release: None,
                duration: row.duration,
                demand: row.demand.slice(self.books.dims()),
                why: Stuck::TooLarge,
            })?;
            return Ok(None);
        }
        let queue = self.queues.id(row.user, scope);
        self.round.open(self.queues.len());
        let partition = self.partitions.of(self.scopes.get(scope).class, self.scopes.labels());
        let slot = self.sets.add(&row, job, first, footprint.slice(self.books.dims()), (queue, scope, partition));
        Ok(Some((slot, row.after)))
    }

    /// The machines that a row asks for. Errors: a label or a location that is not known.
    fn scope_of(&mut self, row: &TaskSet) -> Result<ScopeId> {
        if (row.label, row.location) == (None, None) || self.options.placement == Placement::Pooled {
            return Ok(ScopeId::WHOLE);
        }
        let class = match row.label {
            None => None,
            Some(label) => {
                let class = self.scopes.class(label, self.source.label_name(label));
                Some(class.map_err(|problem| self.mismatch(row, "label", &problem))?)
            }
        };
        let location = match row.location {
            None => Location::Cluster,
            Some(location) => {
                let found = self.scopes.location(self.source.location_name(location));
                found.map_err(|problem| self.mismatch(row, "location", &problem))?
            }
        };
        Ok(self.scopes.scope(class, location, self.books.dims()))
    }

    /// Puts rows that ended stages have released in line, behind what arrived, in row order.
    pub(super) fn enqueue_released(&mut self) {
        if self.released.is_empty() {
            return;
        }
        let mut released = std::mem::take(&mut self.released);
        released.sort_unstable();
        for (_, slot) in released.drain(..) {
            let now = self.now;
            let set = &mut self.sets[slot];
            set.held = false;
            // A row of a straddling job whose stage ended before it was even submitted waits for its arrival.
            if set.release > now {
                continue;
            }
            (set.release, set.since) = (now, now);
            set.released = true;
            self.enqueue(slot);
        }
        self.released = released;
    }

    /// Puts a set in its user's line.
    pub(super) fn enqueue(&mut self, slot: SetSlot) {
        let set = &self.sets[slot];
        let (user, tasks) = (set.user, set.waiting);
        let (partition, demand) = (set.partition, self.sets.needs(slot).0);
        self.books.queue(user, tasks, demand);
        if let Some(books) = self.books.apart(partition) {
            books.queue(user, tasks, demand);
        }
        self.changed.mark(user);
        self.stand_in(slot);
        self.expect_fall(slot);
    }

    /// Puts a set in its queue.
    pub(super) fn stand_in(&mut self, slot: SetSlot) {
        let (user, queue) = (self.sets[slot].user, self.sets[slot].queue);
        let before = self.queues.head(queue);
        self.queues.push(&mut self.sets, slot);
        if self.queues.head(queue) != before {
            if self.queues.first(&self.sets, user) == Some(slot) {
                self.books.set_head(user, self.sets.needs(slot).0);
            }
            self.head_changed(queue);
        }
    }
}
