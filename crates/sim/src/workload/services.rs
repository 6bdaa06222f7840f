//! Online services in addition to any other workload: stable tasks that run from the start of a run to its end.
//!
//! [`WithServices`] puts the services of a plan before the rows of another source, and renumbers the rows, jobs and users of that source
//! accordingly.

use plimsoll_base::error::{Error, Result};
use plimsoll_base::units::{Dim, JobId, Resources, Span, Time, UserId};

use super::names::{JobName, Names};
use super::{Source, TaskSet, Texts};

/// A service: one job of equal tasks that are exempt from preemption and end with the run.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Service {
    /// The name of its job.
    pub name: String,
    /// The user that it belongs to.
    pub user: String,
    /// Number of tasks.
    pub tasks: u32,
    /// The demand of each task, in base units.
    pub demand: Vec<(Dim, u64)>,
    /// The priority, from 0 (most urgent) to 9.
    pub priority: u8,
}

impl Service {
    /// Returns the demand of each task, in these dimensions. Errors: [`Error::Plan`] for a resource that is not among them.
    pub fn demand_in(&self, dims: &[Dim]) -> Result<Resources> {
        let mut demand = Resources::ZERO;
        for (dim, amount) in &self.demand {
            let known = dims.iter().position(|known| known == dim).ok_or_else(|| {
                let names: Vec<&str> = dims.iter().map(|dim| dim.name.as_str()).collect();
                let expected = format!("resources that the workload has: {}", names.join(", "));
                Error::plan("service.demand", format!("'{}' of '{}'", dim.name, self.name), expected)
            })?;
            demand.0[known] = *amount;
        }
        Ok(demand)
    }
}

/// A source with services before all other rows. The rows, jobs and users of the services have the first numbers.
pub struct WithServices<'a> {
    source: Box<dyn Source + 'a>,
    services: Vec<(String, TaskSet)>,
    /// Number of services taken.
    taken: usize,
    /// The next row of the source, renumbered.
    ahead: TaskSet,
    last: Option<JobName>,
    users: Names,
    /// The new ids of the source's users, by their ids in the source.
    known: Vec<UserId>,
}

impl<'a> WithServices<'a> {
    /// Puts services before a source. Errors: [`Error::Plan`] for a resource that the source does not have.
    pub fn new(source: Box<dyn Source + 'a>, services: &[Service]) -> Result<WithServices<'a>> {
        let (dims, mut users) = (source.dims().to_vec(), Names::default());
        let mut rows = Vec::new();
        for (at, service) in (0..).zip(services) {
            let demand = service.demand_in(&dims)?;
            let set = TaskSet {
                row: u64::from(at),
                job: JobId(at),
                user: UserId(users.intern(&service.user)),
                submit: Time::ZERO,
                duration: Span::ENDLESS,
                tasks: service.tasks,
                demand,
                priority: service.priority,
                stable: true,
                ..TaskSet::default()
            };
            rows.push((service.name.clone(), set));
        }
        let (ahead, known) = (TaskSet::default(), Vec::new());
        Ok(WithServices { source, services: rows, taken: 0, ahead, last: None, users, known })
    }

    fn count(&self) -> u32 {
        self.services.len() as u32
    }

    /// Returns a row of the source, renumbered.
    fn renamed(&mut self, set: &TaskSet) -> TaskSet {
        let names = self.source.users();
        while self.known.len() < names.len() {
            let id = self.users.intern(names.name(self.known.len() as u32));
            self.known.push(UserId(id));
        }
        let more = self.count();
        TaskSet {
            row: set.row + u64::from(more),
            job: JobId(set.job.0 + more),
            user: self.known[set.user.index()],
            ..set.clone()
        }
    }
}

impl Source for WithServices<'_> {
    fn dims(&self) -> &[Dim] {
        self.source.dims()
    }

    fn peek(&mut self) -> Result<Option<&TaskSet>> {
        if self.taken < self.services.len() {
            return Ok(Some(&self.services[self.taken].1));
        }
        // The source is peeked each time, because in a closed loop the next row may have changed.
        let Some(next) = self.source.peek()?.cloned() else { return Ok(None) };
        self.ahead = self.renamed(&next);
        Ok(Some(&self.ahead))
    }

    fn next_set(&mut self) -> Result<Option<TaskSet>> {
        if let Some((name, set)) = self.services.get(self.taken) {
            self.last = Some(JobName::Text(name.as_str().into()));
            self.taken += 1;
            return Ok(Some(set.clone()));
        }
        self.last = None;
        let next = self.source.next_set()?;
        Ok(next.map(|set| self.renamed(&set)))
    }

    fn job_name(&self) -> JobName {
        self.last.clone().unwrap_or_else(|| self.source.job_name())
    }

    fn users(&self) -> &Names {
        &self.users
    }

    fn texts(&self) -> Texts<'_> {
        self.source.texts()
    }

    fn job_finished(&mut self, job: JobId, user: UserId, now: Time) {
        let known = self.known.iter().position(|known| *known == user);
        if let (Some(job), Some(user)) = (job.0.checked_sub(self.count()), known) {
            self.source.job_finished(JobId(job), UserId(user as u32), now);
        }
    }

    fn held_jobs(&self) -> u64 {
        self.source.held_jobs()
    }

    fn reacts(&self) -> bool {
        self.source.reacts()
    }

    fn locate(&self, row: u64) -> String {
        match self.services.get(row as usize) {
            Some((name, _)) => format!("service '{name}'"),
            None => self.source.locate(row - u64::from(self.count())),
        }
    }
}
