//! The recorder of a run in the page: its metrics, its jobs and its values over time.

use plimsoll_base::error::Result;
use plimsoll_base::names::NameList;
use plimsoll_base::units::{Dim, Time, UserId};
use plimsoll_metrics::{GridPoint, JobRow, RunLog};
use plimsoll_sim::books::{Books, Weights};
use plimsoll_sim::record::{JobRecord, Launch, Recorder, State, StuckRecord, TaskRecord};
use plimsoll_sim::workload::TaskSet;

use crate::engine::PageProgress;
use crate::tables::CsvTable;

/// The recorder of one run.
pub(crate) struct PageRecorder<'a> {
    pub log: RunLog,
    pub jobs: CsvTable<JobRow<'static>>,
    pub fairness: CsvTable<GridPoint<'static>>,
    weights: &'a Weights,
    series: bool,
    names: NameList,
    progress: PageProgress<'a>,
    text: String,
}

impl<'a> PageRecorder<'a> {
    /// Creates a recorder for a run with these resources and weights. `log` is empty; with `series` it evaluates every grid point.
    pub fn new(
        log: RunLog,
        dims: &[Dim],
        weights: &'a Weights,
        series: bool,
        progress: PageProgress<'a>,
    ) -> PageRecorder<'a> {
        let (jobs, fairness) = (CsvTable::new(dims), CsvTable::new(dims));
        PageRecorder { log, jobs, fairness, weights, series, names: NameList::default(), progress, text: String::new() }
    }
}

impl Recorder for PageRecorder<'_> {
    fn user(&mut self, _user: UserId, name: &str) {
        self.names.push(name);
        self.log.user(self.weights.class_of(name));
    }

    fn submitted(&mut self, row: &TaskSet, _stage: Option<&str>, first_of_job: bool) {
        self.log.submitted(row, first_of_job);
    }

    fn interval(&mut self, from: Time, to: Time, state: &State) -> Result<()> {
        if let Some(at) = self.log.interval(from, to, state, self.series)?
            && self.series
        {
            self.fairness.push(&GridPoint { at, sample: self.log.sample().0, books: state.books });
        }
        Ok(())
    }

    fn launched(&mut self, launch: &Launch) {
        self.log.launched(launch);
    }

    fn wants_waiting_demand(&self) -> bool {
        true
    }

    fn tasks(&mut self, tasks: &TaskRecord) -> Result<()> {
        self.log.tasks(tasks);
        Ok(())
    }

    fn job(&mut self, job: &JobRecord) -> Result<()> {
        self.log.job(job);
        self.text.clear();
        job.name.render(&mut self.text);
        self.jobs.push(&JobRow { name: &self.text, user: self.names.listed(job.user.index()), record: job });
        Ok(())
    }

    fn stuck(&mut self, stuck: &StuckRecord) -> Result<()> {
        self.log.stuck(stuck);
        Ok(())
    }

    fn settled(&mut self, now: Time, changed: &[UserId], books: &Books) -> Result<()> {
        self.log.settled(now, changed, books);
        Ok(())
    }

    fn head(&mut self, user: UserId) {
        self.log.head(user);
    }

    fn heartbeat(&mut self, now: Time) -> Result<()> {
        (self.progress)(now, self.log.totals.launched)
    }
}
