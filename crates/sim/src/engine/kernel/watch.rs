//! Watched jobs: their waiting sets are found without a search, so that a caller can ask at every instant why they wait.
//!
//! A run without watched jobs has no watch, and pays one test for each job, row and stop.

use std::collections::{BTreeSet, HashMap};

use super::Kernel;
use super::ids::{JobSlot, SetSlot};
use super::jobs::ActiveJob;
use crate::record::Fate;
use plimsoll_base::units::{JobId, Time, UserId};

/// The jobs that a caller watches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchedJobs {
    /// All jobs.
    All,
    /// The jobs with these names.
    Named(BTreeSet<String>),
}

/// A watched job that has been submitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchedJob {
    /// Its id.
    pub id: JobId,
    /// Its name in the trace.
    pub name: String,
    /// The user that submitted it.
    pub user: UserId,
    /// The instant at which its first row was submitted.
    pub submit: Time,
    /// The instant at which its first task started; `None` before.
    pub start: Option<Time>,
}

/// Running tasks of a watched job that were stopped and wait again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoppedTasks {
    /// The job.
    pub job: JobId,
    /// The row of the tasks.
    pub row: u64,
    /// Number of tasks.
    pub tasks: u32,
    /// The cause of the stop.
    pub fate: Fate,
    /// The instant of the stop.
    pub at: Time,
}

/// A row of a watched job.
#[derive(Clone, Copy, Debug)]
pub struct WatchedSet {
    pub slot: SetSlot,
    pub row: u64,
}

/// The state of the watch.
pub(super) struct Watch {
    jobs: WatchedJobs,
    /// Watched jobs that have not ended.
    open: HashMap<JobSlot, (JobId, String)>,
    sets: Vec<WatchedSet>,
    /// Rows of watched jobs that fit no machine: job, row and number of tasks.
    too_large: Vec<(JobId, u64, u32)>,
    stops: Vec<StoppedTasks>,
    /// Jobs that have ended since the last call of [`Kernel::take_watched_ends`].
    ended: Vec<WatchedJob>,
}

impl Watch {
    fn new(jobs: WatchedJobs) -> Watch {
        Watch {
            jobs,
            open: HashMap::new(),
            sets: Vec::new(),
            too_large: Vec::new(),
            stops: Vec::new(),
            ended: Vec::new(),
        }
    }
}

/// Returns a job as the watch reports it.
fn watched(job: &ActiveJob, id: JobId, name: String) -> WatchedJob {
    let start = (job.start != Time::NEVER).then_some(job.start);
    WatchedJob { id, name, user: job.user, submit: job.submit, start }
}

impl Kernel<'_> {
    /// Watches jobs that are submitted from now on.
    pub fn watch(&mut self, jobs: WatchedJobs) {
        self.watch = Some(Box::new(Watch::new(jobs)));
    }

    /// Returns whether jobs are watched. The other methods are called only then, so that they do not grow the callers.
    pub(super) fn watches(&self) -> bool {
        self.watch.is_some()
    }

    /// Records that a job was opened.
    #[cold]
    #[inline(never)]
    pub(super) fn watch_job(&mut self, slot: JobSlot) {
        let name = self.job_name(slot);
        let Some(watch) = &mut self.watch else { return };
        if match &watch.jobs {
            WatchedJobs::All => true,
            WatchedJobs::Named(names) => names.contains(&name),
        } {
            watch.open.insert(slot, (self.work.jobs[slot].id, name));
        }
    }

    /// Records that a set was added to a job.
    #[cold]
    #[inline(never)]
    pub(super) fn watch_set(&mut self, slot: SetSlot) {
        let Some(watch) = &mut self.watch else { return };
        let set = &self.work.sets[slot];
        if watch.open.contains_key(&set.job) {
            watch.sets.push(WatchedSet { slot, row: set.row });
        }
    }

    /// Records that a row fits no machine.
    #[cold]
    #[inline(never)]
    pub(super) fn watch_too_large(&mut self, job: JobSlot, row: u64, tasks: u32) {
        let Some(watch) = &mut self.watch else { return };
        if let Some((id, _)) = watch.open.get(&job) {
            watch.too_large.push((*id, row, tasks));
        }
    }

    /// Records that tasks were stopped and wait again as a new set.
    #[cold]
    #[inline(never)]
    pub(super) fn watch_stopped(&mut self, again: SetSlot, fate: Fate) {
        let now = self.now;
        let Some(watch) = &mut self.watch else { return };
        let set = &self.work.sets[again];
        if let Some((job, _)) = watch.open.get(&set.job) {
            watch.stops.push(StoppedTasks { job: *job, row: set.row, tasks: set.waiting, fate, at: now });
            watch.sets.push(WatchedSet { slot: again, row: set.row });
        }
    }

    /// Records that a job ends; its slot is about to be freed for another job.
    #[cold]
    #[inline(never)]
    pub(super) fn watch_end(&mut self, slot: JobSlot) {
        let Some((id, name)) = self.watch.as_mut().and_then(|watch| watch.open.remove(&slot)) else { return };
        let job = watched(&self.work.jobs[slot], id, name);
        if let Some(watch) = &mut self.watch {
            watch.too_large.retain(|(of, ..)| *of != id);
            watch.ended.push(job);
        }
    }

    /// Removes and returns the watched jobs that have ended since the last call, in order.
    pub fn take_watched_ends(&mut self) -> Vec<WatchedJob> {
        self.watch.as_mut().map(|watch| std::mem::take(&mut watch.ended)).unwrap_or_default()
    }

    /// Returns the watched jobs that have not ended, by id.
    pub fn watched_jobs(&self) -> Vec<WatchedJob> {
        let open = self.watch.iter().flat_map(|watch| &watch.open);
        let job = |(slot, (id, name)): (&JobSlot, &(JobId, String))| watched(&self.work.jobs[*slot], *id, name.clone());
        let mut jobs: Vec<WatchedJob> = open.map(job).collect();
        jobs.sort_unstable_by_key(|job| job.id);
        jobs
    }

    /// Returns the waiting sets of watched jobs, by row and number.
    pub fn watched_sets(&mut self) -> Vec<SetSlot> {
        let Kernel { watch: Some(watch), work, .. } = self else { return Vec::new() };
        let waits = |set: &WatchedSet| work.sets.is_of(set.slot, set.row) && work.sets[set.slot].waiting > 0;
        watch.sets.retain(waits);
        watch.sets.sort_unstable_by_key(|set| (set.row, work.sets[set.slot].number, set.slot));
        watch.sets.dedup_by_key(|set| set.slot);
        watch.sets.iter().map(|set| set.slot).filter(|slot| !work.sets[*slot].is_backup()).collect()
    }

    /// Returns the rows of watched jobs that fit no machine: job, row and number of tasks.
    pub fn watched_too_large(&self) -> &[(JobId, u64, u32)] {
        self.watch.as_ref().map_or(&[], |watch| &watch.too_large)
    }

    /// Removes and returns the stops of watched jobs since the last call, in order.
    pub fn take_watched_stops(&mut self) -> Vec<StoppedTasks> {
        self.watch.as_mut().map(|watch| std::mem::take(&mut watch.stops)).unwrap_or_default()
    }
}
