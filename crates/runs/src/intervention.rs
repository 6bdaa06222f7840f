//! Interventions in a run: causes of waits that a repeated run removes, and small perturbations of the workload.
//!
//! A counterfactual run answers how long a job would have waited without a cause. The wait of one job may depend on accidents of order, so
//! the same comparison is repeated under small perturbations of the durations (Tsafrir, Ouaknine and Feitelson, MASCOTS 2007, "input
//! shaking").

use std::collections::HashSet;

use plimsoll_base::checkpoint::Checkpoint;
use plimsoll_base::error::Result;
use plimsoll_base::units::{Time, UserId};
use plimsoll_sim::books::Books;
use plimsoll_sim::policy::{
    Ask, Capabilities, Explain, Groups, Needs, Planner, Policy, Preemption, Queue, Rank, Shares, Spot, Stale, WaitList,
};
use plimsoll_sim::workload::{Altered, ChangedRows, Selected, Shake, Source};

/// The changes of a run. The default has no changes.
#[derive(Clone, Debug, Default)]
pub struct Intervention {
    /// The users without submissions.
    pub users: HashSet<String>,
    /// The jobs that are not submitted.
    pub jobs: HashSet<String>,
    /// Whether the tasks of gangs start one by one.
    pub without_gangs: bool,
    /// Whether the policy admits every task: quotas and other rules of admission do not apply, and ranks are unchanged.
    pub without_rules: bool,
    /// The perturbation of durations, if there is one.
    pub shake: Option<Shake>,
}

impl Intervention {
    /// Changes the rows of a source. Errors: those of the source.
    pub(crate) fn source<'a>(&self, source: Box<dyn Source + 'a>) -> Result<Box<dyn Source + 'a>> {
        let mut source = source;
        if !self.users.is_empty() || !self.jobs.is_empty() {
            source = Box::new(Selected::without(source, self.users.clone(), self.jobs.clone())?);
        }
        if self.without_gangs || self.shake.is_some() {
            source = Box::new(Altered::with(source, ChangedRows::new(self.without_gangs, self.shake)));
        }
        Ok(source)
    }

    /// Changes a policy.
    pub(crate) fn policy(&self, policy: Box<dyn Policy>) -> Box<dyn Policy> {
        if self.without_rules { Box::new(AdmitsAll(policy)) } else { policy }
    }
}

/// A policy with the ranks of another one that admits every task.
struct AdmitsAll(Box<dyn Policy>);

impl Policy for AdmitsAll {
    fn needs(&self) -> Needs {
        self.0.needs()
    }

    fn open(&mut self, user: UserId, name: &str) -> Result<()> {
        self.0.open(user, name)
    }

    fn prepare(&mut self, now: Time, books: &Books, changed: &[UserId]) -> Result<Stale> {
        self.0.prepare(now, books, changed)
    }

    fn rank(&self, queue: &Queue, books: &Books) -> Rank {
        self.0.rank(queue, books)
    }

    fn rank_on(&self, queue: &Queue, ask: &Ask, spot: &Spot, books: &Books) -> Rank {
        self.0.rank_on(queue, ask, spot, books)
    }

    fn launched(&mut self, queue: &Queue, ask: &Ask, books: &Books) {
        self.0.launched(queue, ask, books);
    }

    fn settled(&mut self, now: Time, changed: &[UserId], books: &Books) -> Option<Time> {
        self.0.settled(now, changed, books)
    }
}

impl Capabilities for AdmitsAll {
    fn preemption(&mut self) -> Option<&mut dyn Preemption> {
        self.0.preemption()
    }

    fn wait_list(&mut self) -> Option<&mut dyn WaitList> {
        self.0.wait_list()
    }

    fn planner(&self) -> Option<&dyn Planner> {
        self.0.planner()
    }

    fn shares(&self) -> Option<&dyn Shares> {
        self.0.shares()
    }

    fn groups(&self) -> Option<&dyn Groups> {
        self.0.groups()
    }

    fn explain(&self) -> Option<&dyn Explain> {
        self.0.explain()
    }

    fn checkpoint(&mut self) -> Option<&mut dyn Checkpoint> {
        self.0.checkpoint()
    }
}
