//! Arrivals: rows of the source become task sets and jobs.
//!
//! At each instant all rows of this instant are taken from the source. If the rows of a job are submitted at several instants, its later
//! rows are taken too, so that all stages are known when the job is checked. [`Intake`] stores rows that were taken early until their
//! instant of submission; rows that wait for a stage are stored with their job. Rows that can never start are only reported to the
//! recorder.

use super::Kernel;
use super::changes::Change;
use super::ids::{JobSlot, ScopeId, SetSlot};
use super::jobs::Appeared;
use super::sets::SetFlag;
use super::site::Site;
use crate::cluster::Location;
use crate::record::{Stuck, StuckRecord};
use crate::workload::TaskSet;
use plimsoll_base::error::{Error, Result};
use plimsoll_base::units::{MachineId, Resources, Span, Time, UserId};

impl Kernel<'_> {
    /// Returns the instant at which the next row arrives. Errors: the source's.
    pub fn next_arrival(&mut self) -> Result<Option<Time>> {
        let arrival = self.context.source.peek()?.map(|set| set.submit);
        let later = self.intake.later.first_key_value().map(|((time, _), _)| *time);
        Ok(arrival.into_iter().chain(later).min())
    }

    /// Takes all rows of this instant, and the following rows of an unfinished job, then enqueues them. If events are applied one by one,
    /// takes the rows of one job. Errors: the source's, and those of the rows.
    pub fn arrive(&mut self) -> Result<()> {
        if self.context.source.peek()?.is_none_or(|next| next.submit > self.now) {
            self.enqueue_later();
            return Ok(());
        }
        let mut appeared = std::mem::take(&mut self.intake.appeared);
        let mut arrived = std::mem::take(&mut self.intake.arrived);
        appeared.slots.clear();
        let mut last = None;
        while let Some(next) = self.context.source.peek()? {
            let other = last != Some(next.job);
            if other && (next.submit > self.now || last.is_some() && self.settings.one_by_one) {
                break;
            }
            last = Some(next.job);
            arrived.extend(self.take_row(&mut appeared)?);
        }
        for &job in &appeared.slots {
            self.work.jobs.complete(job, &*self.context.source)?;
        }
        self.enqueue_later();
        for (set, after) in arrived.drain(..) {
            let (job, row, release) = (self.work.sets[set].job, self.work.sets[set].row, self.work.sets[set].release);
            if release > self.now {
                self.intake.later.insert((release, row), set);
                if !after.is_empty() {
                    let awaits = self.work.jobs.await_stage(job, row, set, after);
                    self.work.sets[set].mark(SetFlag::AwaitsStage, awaits);
                }
            } else if after.is_empty() || !self.work.jobs.await_stage(job, row, set, after) {
                self.submit(set);
            } else {
                self.work.sets[set].mark(SetFlag::AwaitsStage, true);
            }
        }
        (self.intake.appeared, self.intake.arrived) = (appeared, arrived);
        Ok(())
    }

    /// Takes the next row of the source. Returns `None` if there is none or it can never start.
    fn take_row(&mut self, appeared: &mut Appeared) -> Result<Option<(SetSlot, Vec<u32>)>> {
        let Some(row) = self.context.source.next_set()? else { return Ok(None) };
        self.outcome.rows += 1;
        self.livelock.progress();
        if let Some(next) = self.context.source.peek()? {
            let user = next.user;
            self.fetch_user(user);
        }
        self.open_accounts(row.user)?;
        let known = appeared.slots.len();
        let job = self.job_of(appeared, &row)?;
        let stage = row.stage.map(|stage| self.context.source.stage_name(stage));
        self.context.recorder.submitted(&row, stage, appeared.slots.len() > known);
        self.add_set(job, row)
    }

    /// Takes the next row of the source before the first step, and enqueues it. The row must be the only one of its job. `since` is the
    /// earliest instant at which it could have started. Errors: those of the row, and [`Error::Mismatch`] if there is no row, or if it is
    /// not the only one of its job.
    pub fn enter(&mut self, since: Time) -> Result<Option<SetSlot>> {
        let wrong = |problem: &str| Err(Error::Mismatch { problem: problem.to_owned() });
        let Some((row, job, submit)) = self.context.source.peek()?.map(|set| (set.row, set.job, set.submit)) else {
            return wrong("a task is to be there from the beginning, and the workload has no row for it");
        };
        if submit > self.now {
            return Err(self.mismatch(row, "submit_s", "is not 0, and its tasks are to be there from the beginning"));
        }
        let mut appeared = Appeared::default();
        let taken = self.take_row(&mut appeared)?;
        if self.context.source.peek()?.is_some_and(|next| next.job == job) {
            return Err(self.mismatch(
                row,
                "job",
                "has further rows, and its tasks are to be there from the beginning",
            ));
        }
        appeared.slots.iter().try_for_each(|job| self.work.jobs.complete(*job, &*self.context.source))?;
        let Some((slot, _)) = taken else { return Ok(None) };
        let submit = self.work.sets[slot].release;
        self.work.sets.set_release(slot, since, submit);
        self.enqueue(slot);
        Ok(Some(slot))
    }

    /// Enters the next row like [`Kernel::enter`], and starts its tasks on these machines with these counts, whatever the policy decides.
    /// Errors: as [`Kernel::enter`], and [`Error::Mismatch`] if the tasks cannot run on these machines or the counts do not add up to all
    /// tasks. The caller puts the name of the tasks before the message.
    pub fn begin(&mut self, parts: &[(MachineId, u32)], since: Time) -> Result<()> {
        let wrong = |problem: String| Err(Error::Mismatch { problem });
        let Some(slot) = self.enter(since)? else { return wrong("larger than any machine".to_owned()) };
        let set = &self.work.sets[slot];
        let (queue, user) = (set.queue, set.user);
        let tasks = parts.iter().map(|(_, tasks)| tasks).sum::<u32>();
        if set.waiting != tasks {
            return wrong(format!("{tasks} of {} tasks", set.waiting));
        }
        for (machine, tasks) in parts {
            let there = self.site.offers.len() > machine.index() && self.site.machines.is_present(*machine);
            if !there || !self.site.scopes.contains(self.work.queues.scope(queue), *machine) {
                return wrong("its machine may not be used".to_owned());
            }
            let need = Resources::from_slice(self.work.sets.needs(slot).1).times(*tasks);
            if !self.site.machines.fits(*machine, need.slice(self.books.dims())) {
                return wrong(format!("no room is left for {tasks} of its tasks beside those before it"));
            }
        }
        self.launch(slot, parts);
        self.ties.forget(user);
        self.queue_served(queue);
        self.start_launched()
    }

    /// Submits rows that were taken early and are released by now, unless they wait for a stage.
    fn enqueue_later(&mut self) {
        while let Some(entry) = self.intake.later.first_entry().filter(|entry| entry.key().0 <= self.now) {
            let slot = entry.remove();
            // If a stage released the row at the instant of its submission, the row counts as an arrival.
            if let Some(at) = self.intake.released.iter().position(|(_, released)| *released == slot) {
                self.intake.released.swap_remove(at);
                self.work.sets[slot].mark(SetFlag::AwaitsStage, false);
            }
            if !self.work.sets[slot].awaits_stage() {
                self.submit(slot);
            }
        }
    }

    /// Submits a set: its tasks are queued now or, under a control, when the request is known.
    fn submit(&mut self, slot: SetSlot) {
        if self.settings.delegates {
            self.changes.push(Change::Submitted(slot));
        } else {
            self.enqueue(slot);
        }
    }

    fn open_accounts(&mut self, user: UserId) -> Result<()> {
        while self.books.users() <= user.index() {
            let id = UserId(self.books.users() as u32);
            let name = self.context.source.users().name(id.0);
            self.books.open(name);
            self.context.policy.open(id, name)?;
            self.context.recorder.user(id, name);
            self.work.queues.open();
            self.ties.open();
            self.line_states.open(self.work.queues.len());
            self.changes.users.open();
        }
        Ok(())
    }

    fn job_of(&mut self, appeared: &mut Appeared, row: &TaskSet) -> Result<JobSlot> {
        if appeared.slots.is_empty() {
            appeared.first = row.job;
        }
        if let Some(slot) = appeared.slot(row.job) {
            if self.work.jobs[slot].user != row.user {
                return Err(self.mismatch(row.row, "user", "differs from the user of the job's earlier rows"));
            }
            return Ok(slot);
        }
        if row.job.0 as usize != appeared.first.0 as usize + appeared.slots.len() {
            return Err(self.mismatch(row.row, "job", "the job appeared before; its rows must share a submit time"));
        }
        let name = self.context.source.job_name();
        let slot = self.work.jobs.open(row, name);
        if let Some(ordered) = &mut self.work.ordered {
            ordered.open_job(slot, row.job);
        }
        if self.watches() {
            self.watch_job(slot);
        }
        appeared.slots.push(slot);
        Ok(slot)
    }

    /// Adds a row to its job as a task set. Reports a row that can never start, and returns `None` for it. Errors: an invalid row.
    fn add_set(&mut self, job: JobSlot, row: TaskSet) -> Result<Option<(SetSlot, Vec<u32>)>> {
        let total = self.books.capacity();
        if let Some(dim) = (0..self.books.dims()).find(|&d| row.demand.0[d] > 0 && total.0[d] == 0) {
            let dim = &self.site.cluster.dims[dim];
            let problem = format!("the cluster has no {}; add it to the machines", dim.name);
            return Err(self.mismatch(row.row, &dim.name, &problem));
        }
        if let Some(d) = (0..self.books.dims()).find(|&d| row.demand.0[d] > self.site.most_a_task) {
            let problem = "the demand is too large to add up over all tasks that could run at once";
            return Err(self.mismatch(row.row, &self.site.cluster.dims[d].name, problem));
        }
        if let Some(hardware) = self.site.machines.hardware()
            && let Err(problem) = hardware.check(row.demand.slice(self.books.dims()))
        {
            return Err(self.mismatch(row.row, "demand", &problem));
        }
        if let Some(ordered) = self.work.ordered.as_ref().filter(|ordered| ordered.lacks_estimate(&row)) {
            let problem =
                format!("is missing or empty, and the order '{0}' uses it; '{0}:true' does not", ordered.name());
            return Err(self.mismatch(row.row, "estimate_s", &problem));
        }
        if let Some(rule) = self.settings.estimates_for
            && row.estimate.is_none()
            && row.duration != Span::ENDLESS
        {
            let problem =
                format!("is missing or empty, and on_blocked '{rule}' uses it; give one, or a model (estimates)");
            return Err(self.mismatch(row.row, "estimate_s", &problem));
        }
        let Some(first) = self.work.jobs.add_row(job, &row) else {
            return Err(self.mismatch(row.row, "tasks", "the job has more than 2,147,483,647 tasks"));
        };
        let footprint = self.site.lens.demand(row.demand);
        let together = if row.gang { u64::from(row.tasks) } else { 1 };
        let scope = self.scope_of(&row)?;
        let widest = if self.settings.widens { self.site.scopes.widest(scope, self.books.dims()) } else { scope };
        let Site { scopes, offers, cluster, .. } = &mut self.site;
        let empty = scopes.empty(widest, offers, &cluster.capacities);
        let fits = empty.seen.room(&footprint, together) >= together;
        let room = || empty.real.as_ref().unwrap_or(&empty.seen).room(&row.demand, together);
        if together > 1
            && let room = room()
            && room < together
        {
            let whole = widest == ScopeId::WHOLE;
            let place = if whole { "the empty cluster" } else { "the empty machines that it may use" };
            let problem = format!("all {together} tasks are to start at once, and {place} has room for {room}");
            return Err(self.mismatch(row.row, "gang", &problem));
        }
        if !fits {
            self.context.recorder.stuck(&StuckRecord {
                name: self.work.jobs.name(job, self.context.source.job_names()),
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
            if self.watches() {
                self.watch_too_large(job, row.row, row.tasks);
            }
            return Ok(None);
        }
        let queue = self.work.queues.id(row.user, scope);
        self.line_states.open(self.work.queues.len());
        let Site { scopes, partitions, .. } = &mut self.site;
        let partition = partitions.partition(scopes.get(scope).class, scopes.labels());
        let slot = self.work.sets.add(&row, job, first, footprint.slice(self.books.dims()), (queue, partition));
        if let Some(ordered) = &mut self.work.ordered {
            ordered.add(slot, job, &row);
        }
        if self.watches() {
            self.watch_set(slot);
        }
        Ok(Some((slot, row.after)))
    }

    /// Returns the scope that a row requires. Errors: an unknown label or location.
    fn scope_of(&mut self, row: &TaskSet) -> Result<ScopeId> {
        if (row.label, row.location) == (None, None) || self.site.pooled {
            return Ok(ScopeId::WHOLE);
        }
        let class = match row.label {
            None => None,
            Some(label) => {
                let class = self.site.scopes.class(label, self.context.source.label_name(label));
                Some(class.map_err(|problem| self.mismatch(row.row, "label", &problem))?)
            }
        };
        let location = match row.location {
            None => Location::Cluster,
            Some(location) => {
                let found = self.site.scopes.location(self.context.source.location_name(location));
                found.map_err(|problem| self.mismatch(row.row, "location", &problem))?
            }
        };
        Ok(self.site.scopes.scope(class, location, self.books.dims()))
    }

    /// Submits rows that ended stages have released, behind the arrivals of this instant, in row order.
    pub fn enqueue_released(&mut self) {
        if self.intake.released.is_empty() {
            return;
        }
        let mut released = std::mem::take(&mut self.intake.released);
        released.sort_unstable();
        for (_, slot) in released.drain(..) {
            let now = self.now;
            let set = &mut self.work.sets[slot];
            set.mark(SetFlag::AwaitsStage, false);
            // The stage ended before the row was submitted, so the row waits for its submission.
            if set.release > now {
                continue;
            }
            set.mark(SetFlag::Released, true);
            self.work.sets.set_release(slot, now, now);
            self.submit(slot);
        }
        self.intake.released = released;
    }

    /// Adds a set to its queue when its request becomes known, or removes it until then. Returns `false` if the set already has this state,
    /// or has no waiting tasks.
    pub fn list(&mut self, slot: SetSlot, listed: bool) -> bool {
        let set = &mut self.work.sets[slot];
        let before = set.is_listed();
        set.mark(SetFlag::Listed, listed);
        if before == listed || set.waiting == 0 {
            return false;
        }
        if listed {
            self.enqueue(slot);
        } else {
            self.dequeue(slot);
        }
        true
    }

    /// Marks a submitted set as unknown until [`Kernel::list`] is called.
    pub fn withhold(&mut self, slot: SetSlot) {
        self.work.sets[slot].mark(SetFlag::Listed, false);
    }

    /// Lets the waiting tasks of a gang start one by one.
    pub fn dissolve_gang(&mut self, slot: SetSlot) {
        self.work.sets[slot].mark(SetFlag::Gang, false);
    }
}
