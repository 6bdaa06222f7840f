//! Observes a run: computes its metrics, and writes its tables row by row.
//!
//! The metrics are those of a [`RunLog`]. The [`Collector`] adds the names of users and jobs, the tables that are written during the run,
//! the groups of the policy, and facts about the workload for messages.

use crate::demands::Demands;
use crate::groups::GroupWatch;
use crate::memory::MemoryGuard;
use crate::own::OwnMetrics;
use crate::remarks::Remarks;
use crate::sinks::Sinks;
use plimsoll_base::checkpoint::{Checkpoint, Visitor};
use plimsoll_base::error::Result;
use plimsoll_base::units::{Resources, Span, Time, UserId};
use plimsoll_base::visit_values;
use plimsoll_metrics::RunLog;
use plimsoll_results::schema::Table;
use plimsoll_results::summary::StuckExample;
use plimsoll_sim::books::{Books, Weights};
use plimsoll_sim::record::{Decision, JobRecord, Launch, Named, Recorder, State, StuckRecord, TaskRecord};
use plimsoll_sim::workload::{JobName, NameList, TaskSet};

/// The number of examples that are kept for each reason.
const EXAMPLES: usize = 3;

/// The recorder of one run.
pub(super) struct Collector<'a> {
    pub(super) log: RunLog,
    pub(super) sinks: Sinks,
    weights: &'a Weights,
    dims: usize,
    pub(super) names: NameList,
    pub(super) remarks: Remarks,
    /// The kinds of machines if they are pooled; otherwise empty.
    pub(super) pooled_machines: Vec<Resources>,
    pub(super) demands: Demands,
    pub(super) groups: Option<GroupWatch>,
    pub(super) own: OwnMetrics<'a>,
    heartbeat: &'a mut (dyn FnMut(Time, u64) -> Result<()> + Send),
    room: MemoryGuard,
    /// The name of the job of the last record, and its prefix and number if it has them.
    text: String,
    numbered: Option<(u32, u64)>,
}

impl<'a> Collector<'a> {
    /// Creates a recorder for a run with this number of resources, these weights and the policy's groups. It records the run in `log`,
    /// which is empty at first. `heartbeat` receives the time and the number of launched tasks, and may end the run.
    pub fn new(
        log: RunLog,
        dims: usize,
        weights: &'a Weights,
        sinks: Sinks,
        groups: Option<GroupWatch>,
        heartbeat: &'a mut (dyn FnMut(Time, u64) -> Result<()> + Send),
    ) -> Collector<'a> {
        Collector {
            log,
            sinks,
            weights,
            dims,
            names: NameList::default(),
            remarks: Remarks::default(),
            pooled_machines: Vec::new(),
            demands: Demands::default(),
            groups,
            own: OwnMetrics::new(&[]),
            heartbeat,
            room: MemoryGuard::default(),
            text: String::new(),
            numbered: None,
        }
    }

    /// Advances all integrals to the end of the run. Errors: as [`RunLog::finish`].
    pub(super) fn finish(&mut self, end: Time) -> Result<()> {
        self.groups.iter_mut().for_each(|groups| groups.finish(end));
        self.log.finish(end)
    }

    /// Stores the name of a job in `text`. Consecutive records are often about one job: a task, then its job.
    fn render(&mut self, name: Named) {
        let numbered = match name.name {
            JobName::Numbered { prefix, number } => Some((*prefix, *number)),
            JobName::Text(_) => None,
        };
        if numbered.is_none() || numbered != self.numbered {
            self.text.clear();
            name.render(&mut self.text);
            self.numbered = numbered;
        }
    }
}

impl Recorder for Collector<'_> {
    fn user(&mut self, _user: UserId, name: &str) {
        self.names.push(name);
        self.log.user(self.weights.class_of(name));
        if let Some(groups) = &mut self.groups {
            groups.user(name);
        }
    }

    fn submitted(&mut self, row: &TaskSet, stage: Option<&str>, first_of_job: bool) {
        let tasks = u64::from(row.tasks);
        self.log.submitted(row, first_of_job);
        self.remarks.labels += u64::from(row.label.is_some() || row.location.is_some());
        if !self.pooled_machines.is_empty() && !self.pooled_machines.iter().any(|machine| row.demand.fits(machine)) {
            if self.remarks.oversized == 0 {
                self.remarks.first_oversized = row.demand;
            }
            self.remarks.oversized += tasks;
        }
        if self.sinks.wants(Table::Demands) {
            self.demands.add(stage, row.demand.slice(self.dims), tasks);
        }
    }

    fn interval(&mut self, from: Time, to: Time, state: &State) -> Result<()> {
        if let (Some(groups), Some(policy)) = (&mut self.groups, state.groups) {
            groups.unreturned(policy.unreturned(), to.since(from));
        }
        let Some(at) = self.log.interval(from, to, state, self.sinks.wants_series())? else { return Ok(()) };
        if let (Some(watch), Some(groups)) = (&mut self.groups, state.groups) {
            watch.sample(at, groups, &mut self.sinks)?;
        }
        let (sample, users) = self.log.sample();
        self.sinks.fairness(at, sample, state.books)?;
        self.sinks.shares(at, sample, users, &self.names, state.books)
    }

    fn launched(&mut self, launch: &Launch) {
        self.log.launched(launch);
    }

    fn wants_waiting_demand(&self) -> bool {
        true
    }

    fn wants_decisions(&self) -> bool {
        self.sinks.wants(Table::Decisions)
    }

    fn decided(&mut self, decision: &Decision, books: &Books) -> Result<()> {
        self.render(decision.name);
        let share = self.log.share(decision.user, books);
        let groups = self.groups.as_ref().map(GroupWatch::tree);
        self.sinks.decision((&self.text, self.names.listed(decision.user.index())), share, decision, groups)
    }

    fn tasks(&mut self, tasks: &TaskRecord) -> Result<()> {
        let ran = self.log.tasks(tasks);
        if let Some(groups) = &mut self.groups {
            groups.tasks(tasks, ran);
        }
        if !self.sinks.wants(Table::Tasks) {
            return Ok(());
        }
        self.render(tasks.name);
        self.sinks.tasks(&self.text, self.names.listed(tasks.user.index()), tasks)
    }

    fn job(&mut self, job: &JobRecord) -> Result<()> {
        let ended = self.log.job(job);
        if let (Some(ended), true) = (&ended, self.own.is_used()) {
            self.own.job(job, ended, self.names.listed(job.user.index()).name())?;
        }
        self.remarks.endless += u64::from(job.work.is_none() && job.ideal < Span::ENDLESS);
        if !self.sinks.wants(Table::Jobs) {
            return Ok(());
        }
        self.render(job.name);
        self.sinks.job(&self.text, self.names.listed(job.user.index()), job)
    }

    fn stuck(&mut self, stuck: &StuckRecord) -> Result<()> {
        self.log.stuck(stuck);
        self.render(stuck.name);
        let user = self.names.listed(stuck.user.index());
        let known = if stuck.was_launched() { &mut self.remarks.stopped } else { &mut self.remarks.stuck };
        if known.iter().filter(|example| example.why == stuck.why).count() < EXAMPLES {
            known.push(StuckExample {
                why: stuck.why,
                job: self.text.clone(),
                user: user.name().to_owned(),
                tasks: stuck.tasks,
                demand: stuck.demand.to_vec(),
            });
        }
        self.sinks.stuck(&self.text, user, stuck)
    }

    fn settled(&mut self, now: Time, changed: &[UserId], books: &Books) -> Result<()> {
        self.log.settled(now, changed, books);
        if self.sinks.wants(Table::Usage) {
            changed.iter().try_for_each(|&user| self.sinks.usage(now, user, &self.names, books))?;
        }
        if let Some(groups) = &mut self.groups {
            groups.settled(now, changed, books);
        }
        Ok(())
    }

    fn head(&mut self, user: UserId) {
        self.log.head(user);
    }

    fn fetch(&self, user: UserId) {
        self.log.fetch(user);
    }

    fn checkpoint(&mut self) -> Option<&mut dyn Checkpoint> {
        Some(self)
    }

    fn heartbeat(&mut self, now: Time) -> Result<()> {
        self.room.check(self.log.users.len())?;
        (self.heartbeat)(now, self.log.totals.launched)
    }
}

impl Checkpoint for Collector<'_> {
    fn visit(&mut self, visitor: &mut Visitor) -> Result<()> {
        let Collector {
            log,
            sinks,
            weights: _,
            dims: _,
            names,
            remarks,
            pooled_machines: _,
            demands,
            groups,
            own,
            heartbeat: _,
            room: _,
            // The name of the last record is rendered again.
            text: _,
            numbered: _,
        } = self;
        visit_values!(visitor; names, remarks, demands);
        log.visit(visitor)?;
        sinks.visit(visitor)?;
        own.visit(visitor)?;
        visitor.option(groups.as_mut())
    }
}
