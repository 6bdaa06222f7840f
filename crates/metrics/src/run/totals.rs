//! The sums and counts over a run.
//!
//! [`Totals`] receives the facts of a run like a recorder, and needs no data per user. The `pub(super)` fields are the sources of the
//! columns in this folder. Some sums cover the whole run, others only its measured window.

use std::collections::BTreeMap;

use super::Run;
use super::classes::WaitClasses;
use super::deadlines::Deadlines;
use super::delay::{Delays, FinishedJob, Summary};
use super::fairness::JainSum;
use crate::window::Window;
use plimsoll_base::units::{MAX_DIMS, Resources, Span, Time};
use plimsoll_sim::books::Books;
use plimsoll_sim::engine::Outcome;
use plimsoll_sim::record::{Fate, JobRecord, Launch, Locality, Stuck, StuckRecord, TaskRecord};
use plimsoll_sim::workload::TaskSet;

/// The sums and counts over the whole run or, if stated, over its measured window.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Totals {
    /// The measured window.
    pub window: Window,
    /// The delays of the finished jobs that were submitted in the window.
    pub delays: Delays,
    /// The deadlines of jobs.
    pub(super) deadlines: Deadlines,
    /// The waits of finished jobs by class.
    pub(super) classes: WaitClasses,
    /// The shares of the backlogged users.
    jain: JainSum,
    /// The number of launched tasks.
    pub launched: u64,
    /// The number of tasks that were never launched, by reason.
    pub stuck: BTreeMap<Stuck, u64>,
    /// The number of tasks that were launched, were stopped or failed, and waited again at the end.
    pub(super) stopped_waiting: u64,
    /// The time of the first submission.
    pub first_submit: Option<Time>,
    /// The time of the last submission of a job so far.
    pub last_submit: Time,
    /// The time of the last integration of the state.
    pub now: Time,
    pub(super) jobs: u64,
    pub(super) jobs_finished: u64,
    pub(super) tasks: u64,
    pub(super) finished: u64,
    /// The number of launched tasks that were released in the window, and their waits. The `gang` fields have the same values for tasks
    /// that start with all others of their row.
    pub(super) waited: u64,
    pub(super) task_wait_us: u128,
    pub(super) task_wait_max: Span,
    pub(super) gang_tasks: u64,
    pub(super) gang_wait_us: u128,
    pub(super) gang_wait_max: Span,
    /// The interruptions of running tasks, the tasks lost with their machine, and the running time without effect.
    pub(super) stopped: u64,
    pub(super) lost: u64,
    pub(super) lost_us: u128,
    /// The additional time of tasks compared with full speed.
    pub(super) slowed_us: u128,
    /// The numbers of tasks with a preferred location, of tasks that started at this location, and of tasks that started in another room.
    pub(super) located: u64,
    pub(super) located_there: u64,
    pub(super) located_elsewhere: u64,
    pub(super) last_end: Time,
    /// The integrals over the window: reserved amounts, used amounts, used amounts until the last submission, and the time with usage above
    /// capacity.
    pub(super) held_us: [u128; MAX_DIMS],
    pub(super) used_us: [u128; MAX_DIMS],
    pub(super) used_until_last_submit_us: [u128; MAX_DIMS],
    pub(super) over_us: [u64; MAX_DIMS],
    /// The integral of the usage above capacity.
    pub(super) excess_us: [u128; MAX_DIMS],
    /// The largest amount of each resource that was in use at any time in the window.
    pub(super) peak_used: [u64; MAX_DIMS],
    /// The integral of the Jain index of the backlogged users, and the time with such an index.
    pub(super) jain_us: f64,
    pub(super) jain_time: u64,
    /// Whether the policy reserves slots, or other amounts than tasks use.
    pub(super) slots: bool,
}

impl Totals {
    /// Creates the totals of a run before its first event.
    pub fn new(window: Window) -> Totals {
        Totals { window, ..Totals::default() }
    }

    /// Records the submission of a row.
    pub fn submitted(&mut self, row: &TaskSet, first_of_job: bool) {
        self.first_submit.get_or_insert(row.submit);
        if first_of_job {
            self.last_submit = row.submit;
            self.used_until_last_submit_us = self.used_us;
        }
        self.deadlines.submitted(row);
        self.tasks += u64::from(row.tasks);
        self.jobs += u64::from(first_of_job);
    }

    /// Integrates the state, which was constant from `from` to `to`.
    pub fn interval(&mut self, from: Time, to: Time, books: &Books) {
        let span = self.window.part(from, to).0;
        self.now = to;
        self.slots = !books.lens_is_plain();
        let (held, used, capacity) = (books.total_held(), books.total_used(), books.capacity());
        for d in 0..books.dims() {
            self.held_us[d] += u128::from(held.0[d]) * u128::from(span);
            self.used_us[d] += u128::from(used.0[d]) * u128::from(span);
            if used.0[d] > capacity.0[d] {
                self.over_us[d] += span;
                self.excess_us[d] += u128::from(used.0[d] - capacity.0[d]) * u128::from(span);
            }
            self.peak_used[d] = self.peak_used[d].max(if span > 0 { used.0[d] } else { 0 });
        }
        if let Some(jain) = self.jain.jain() {
            self.jain_us += jain * span as f64;
            self.jain_time += span;
        }
    }

    /// Changes the integer share of a user ([`fixed_share`](super::fairness::fixed_share)); `None` while it is not backlogged.
    pub fn change_backlogged(&mut self, before: Option<u64>, after: Option<u64>) {
        before.into_iter().for_each(|share| self.jain.remove(share));
        after.into_iter().for_each(|share| self.jain.add(share));
    }

    /// Records a launch of tasks.
    pub fn launched(&mut self, launch: &Launch) {
        let measured = self.window.contains(self.now - launch.wait);
        let count = u64::from(launch.count);
        let waited = u128::from(launch.wait.0) * u128::from(count);
        self.launched += count;
        if measured {
            self.waited += count;
            self.task_wait_us += waited;
            self.task_wait_max = self.task_wait_max.max(launch.wait);
        }
        if launch.gang && measured {
            self.gang_wait_max = self.gang_wait_max.max(launch.wait);
            self.gang_tasks += count;
            self.gang_wait_us += waited;
        }
        if let Some(reach) = launch.reach {
            self.located += count;
            self.located_there += if reach == Locality::There { count } else { 0 };
            self.located_elsewhere += if reach == Locality::Elsewhere { count } else { 0 };
        }
    }

    /// Records tasks that ended, were stopped or are running at the end of the run. Returns the time for which they ran.
    pub fn tasks(&mut self, tasks: &TaskRecord) -> Span {
        let ran = tasks.finish.unwrap_or(self.now).since(tasks.start);
        let count = u64::from(tasks.count);
        if let Some(finish) = tasks.finish {
            self.last_end = self.last_end.max(finish);
            self.finished += if tasks.fate.is_stopped() { 0 } else { count };
        }
        match tasks.fate {
            // On a fast machine, a task may take less time than its duration.
            Fate::Finished => {
                let full = tasks.duration.0.saturating_add(tasks.salvage.delay.0);
                self.slowed_us += u128::from(ran.0.saturating_sub(full)) * u128::from(count);
            }
            Fate::Lost | Fate::GivenUp => self.lost += count,
            fate => self.stopped += if fate.is_interrupted() { count } else { 0 },
        }
        self.lost_us += u128::from(tasks.lost(ran).0) * u128::from(count);
        ran
    }

    /// Records a job that has ended or was cut off. Returns it if it ended and was submitted in the window.
    pub fn job(&mut self, job: &JobRecord) -> Option<FinishedJob> {
        self.jobs_finished += u64::from(job.finish.is_some());
        let (submit, tasks, ideal) = (job.submit, job.tasks, job.ideal);
        let times = job.start.zip(job.finish).filter(|_| self.window.contains(submit));
        let ended = times.map(|(start, finish)| FinishedJob { submit, start, finish, tasks, ideal });
        if let Some(ended) = &ended {
            self.delays.record(ended);
            self.classes.record(ended);
        }
        self.deadlines.job(job, &self.window, self.now);
        ended
    }

    /// Records tasks that were waiting when the run ended.
    pub fn stuck(&mut self, stuck: &StuckRecord) {
        if stuck.was_launched() {
            self.stopped_waiting += stuck.tasks;
        } else {
            *self.stuck.entry(stuck.why).or_default() += stuck.tasks;
        }
    }
}

impl<'a> Run<'a> {
    /// Creates the run of these totals on machines with this number and capacity, without a name, speeds, a grid and a control plane.
    pub fn new(totals: &'a Totals, outcome: Outcome, users: u64, (machines, capacity): (u64, Resources)) -> Run<'a> {
        let first = totals.first_submit.unwrap_or_default();
        let delay = |histogram| Summary::from_histogram(histogram, 1_000_000);
        Run {
            workload: "",
            machines,
            users,
            capacity,
            offered: capacity,
            outcome,
            totals,
            // The measured time lasts until the end of the run, which is the last end of a task unless another event is later.
            measured: totals.window.part(first, totals.now),
            arriving: totals.window.part(first, totals.last_submit),
            speeds: Vec::new(),
            unserved: None,
            finish_time: None,
            completion: delay(&totals.delays.completion),
            wait: delay(&totals.delays.wait),
            slowdown: totals.delays.slowdown.summary(),
            step: Span::ZERO,
            carried: None,
        }
    }

    /// Returns the time from the first submission to the last end of a task.
    pub(super) fn makespan(&self) -> Span {
        Span(self.totals.last_end.0.saturating_sub(self.totals.first_submit.unwrap_or_default().0))
    }

    /// Returns an integral over the measured time as a share of `of`.
    pub(super) fn share(&self, integral: u128, of: u64) -> Option<f64> {
        part(integral, self.measured, of)
    }
}

/// Returns an integral over a span of time as a share of `of`.
pub(super) fn part(integral: u128, span: Span, of: u64) -> Option<f64> {
    (span.0 > 0 && of > 0).then(|| integral as f64 / (span.0 as f64 * of as f64))
}

/// Returns the mean of `count` values in millionths; for spans in microseconds the result is in seconds.
pub(crate) fn mean_s(sum_us: u128, count: u64) -> Option<f64> {
    (count > 0).then(|| sum_us as f64 / count as f64 / 1e6)
}
