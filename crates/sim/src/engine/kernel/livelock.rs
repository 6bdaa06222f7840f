//! Detection of runs with tasks that preempt one another without any progress.

use std::collections::BTreeSet;

use super::Kernel;
use super::jobs::JobSlot;
use super::running::Running;
use crate::record::{Fate, Salvage};
use plimsoll_base::error::{Error, Result};
use plimsoll_base::units::{Span, Time};

/// The number of preemptions without progress after which a run is examined.
const MOST: u64 = 10_000;

/// The number of preemptions per running task that applies instead if it is larger in total.
const MOST_PER_TASK: u64 = 10;

/// The maximum number of jobs that an error names.
const NAMED: usize = 5;

/// Preemptions since the last progress: a task that finished, a row that arrived, or work that a stopped task keeps.
#[derive(Default)]
pub(in crate::engine) struct Livelock {
    preemptions: u64,
    since: Time,
    /// The jobs with stopped tasks.
    jobs: BTreeSet<JobSlot>,
}

impl Livelock {
    /// Records progress.
    pub fn progress(&mut self) {
        if self.preemptions > 0 {
            self.preemptions = 0;
            self.jobs.clear();
        }
    }

    fn preempted(&mut self, job: JobSlot, tasks: u32, now: Time) {
        if self.preemptions == 0 {
            self.since = now;
        }
        self.preemptions += u64::from(tasks);
        self.jobs.insert(job);
    }
}

impl Kernel<'_> {
    /// Records that tasks were stopped. Errors: [`Error::Livelock`] if too many were preempted since the last progress.
    pub(in crate::engine) fn watch_stop(&mut self, tasks: &Running, fate: Fate, keep: &Salvage) -> Result<()> {
        if keep.saved > Span::ZERO {
            self.livelock.progress();
        }
        // An endless task cannot come nearer to its end.
        if !matches!(fate, Fate::Reclaimed | Fate::Preempted) || self.is_endless(tasks.set) {
            return Ok(());
        }
        self.livelock.preempted(tasks.job, tasks.count.get(), self.now);
        let peak = self.outcome.peak_running.max(self.books.total_running());
        if self.livelock.preemptions <= MOST.max(peak.saturating_mul(MOST_PER_TASK)) {
            return Ok(());
        }
        // An arrival may change the state, and so may the end of a task that was never stopped meanwhile.
        let since = self.livelock.since;
        let lasts = |running: &Running| running.start < since && !self.is_endless(running.set);
        if self.running.iter().any(lasts) || self.next_arrival()?.is_some() {
            self.livelock.progress();
            return Ok(());
        }
        let Livelock { preemptions, since, jobs } = &self.livelock;
        let mut names: Vec<String> = jobs.iter().take(NAMED).map(|job| self.job_name(*job)).collect();
        names.extend(jobs.len().checked_sub(NAMED + 1).map(|rest| format!("{} more", rest + 1)));
        let problem = format!(
            "livelock: between {} s and {} s {preemptions} tasks were preempted, and none has finished or kept any work; \
             the jobs that preempt one another: {}. Accepted: a 'checkpoint', by which stopped tasks keep work; a 'min_run'; \
             another policy or order (docs/cluster.md, \"Livelocks\")",
            since.seconds(),
            self.now.seconds(),
            names.join(", "),
        );
        Err(Error::Livelock { problem })
    }

    fn job_name(&self, job: JobSlot) -> String {
        let mut name = String::new();
        self.work.jobs.name(job, self.outside.source.job_names()).render(&mut name);
        format!("'{name}'")
    }
}
