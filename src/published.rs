//! Executes the plans and instances of published results: one run or allocation each, without tables.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use plimsoll_published::{JobOutcome, RunOutcome, TargetRunner};
use plimsoll_runs::{RunEnvironment, define_fragments};

use crate::engine::{self, Options};
use crate::error::{Error, Result};
use crate::experiment::Plan;
use crate::experiment::SharedSupply;
use crate::fair::Tasks;
use crate::fair::read::{self, Question};
use crate::policy::Registry;
use crate::record::{Fate, JobRecord, Recorder, TaskRecord};
use crate::units::{JobId, Time, UserId};
use crate::workload::TaskSet;

/// Executes plans with the policies of a registry. `check` may end a run, such as on an interrupt.
pub struct PlanRunner<'a> {
    /// The policies.
    pub registry: &'a Registry,
    /// Returns an error to end a run.
    pub check: &'a (dyn Fn() -> Result<()> + Sync),
}

/// The jobs of a run.
struct JobLog<'a> {
    users: Vec<String>,
    deadlines: HashMap<JobId, Time>,
    /// The tasks of each job that were launched and ran to their end or to that of the run.
    launched: HashMap<String, u64>,
    /// The same by user and machine.
    on: BTreeMap<(usize, u32), u64>,
    jobs: Vec<(Time, JobId, JobOutcome)>,
    check: &'a (dyn Fn() -> Result<()> + Sync),
}

impl Recorder for JobLog<'_> {
    fn user(&mut self, _user: UserId, name: &str) {
        self.users.push(name.to_owned());
    }

    fn submitted(&mut self, row: &TaskSet, _stage: Option<&str>, _first_of_job: bool) {
        if let Some(deadline) = row.deadline {
            let latest = self.deadlines.entry(row.job).or_insert(deadline);
            *latest = (*latest).max(deadline);
        }
    }

    fn tasks(&mut self, tasks: &TaskRecord) -> Result<()> {
        if matches!(tasks.fate, Fate::Finished | Fate::Running) {
            let mut name = String::new();
            tasks.name.render(&mut name);
            *self.launched.entry(name).or_default() += u64::from(tasks.count);
            let machine = tasks.machine.map_or(0, |machine| machine.0);
            *self.on.entry((tasks.user.index(), machine)).or_default() += u64::from(tasks.count);
        }
        Ok(())
    }

    fn job(&mut self, job: &JobRecord) -> Result<()> {
        let mut name = String::new();
        job.name.render(&mut name);
        let outcome = JobOutcome {
            job: name,
            user: self.users.get(job.user.index()).cloned().unwrap_or_default(),
            launched: 0,
            submit: job.submit.0,
            start: job.start.map(|start| start.0),
            finish: job.finish.map(|finish| finish.0),
            work: job.work,
            deadline: self.deadlines.get(&job.job).map(|deadline| deadline.0),
            starts: 0,
        };
        self.jobs.push((job.submit, job.job, outcome));
        Ok(())
    }

    fn heartbeat(&mut self, _now: Time) -> Result<()> {
        (self.check)()
    }
}

impl TargetRunner for PlanRunner<'_> {
    fn run(&self, plan: &Path, set: &[String], policy: Option<&str>, seed: Option<u64>) -> Result<RunOutcome> {
        let mut set = set.to_vec();
        set.extend(policy.map(|policy| format!("policies=[{}]", toml::Value::from(policy))));
        let plan = Plan::read(plan, &set, self.registry)?;
        if plan.control.is_some() || !plan.services.is_empty() {
            let problem = "a plan of published results has neither a control plane nor services".to_owned();
            return Err(Error::Mismatch { problem });
        }
        let supply = SharedSupply::from(plan.workload.supply(seed.unwrap_or(plan.seeds[0]))?);
        let workload = plan.workload.name();
        let simulation = plan.simulation(&supply, &workload);
        let mut source = supply.source()?;
        let mut environment = RunEnvironment::new(&plan.cluster, plan.weights.as_ref(), source.dims())?;
        define_fragments(&simulation, &mut environment.cluster)?;
        let named = &plan.policies[0];
        let mut policy = environment.policy(named, plan.options.placement)?;
        let options =
            Options { seed: seed.unwrap_or_default(), job_order: named.job_order.clone(), ..plan.options.clone() };
        let mut log = JobLog {
            users: Vec::new(),
            deadlines: HashMap::new(),
            launched: HashMap::new(),
            on: BTreeMap::new(),
            jobs: Vec::new(),
            check: self.check,
        };
        let RunEnvironment { cluster, weights } = environment;
        engine::run(&mut *source, &mut *policy, cluster, weights, &options, &mut log)?;
        let JobLog { mut jobs, launched, on, users, .. } = log;
        let launches = on.into_iter().map(|((user, machine), tasks)| (users[user].clone(), machine, tasks)).collect();
        jobs.sort_by_key(|(submit, job, _)| (*submit, *job));
        let jobs = jobs.into_iter().map(|(.., job)| {
            let launched = launched.get(&job.job).copied().unwrap_or_default();
            JobOutcome { launched, ..job }
        });
        Ok(RunOutcome { jobs: jobs.collect(), launches, ..RunOutcome::default() })
    }

    fn solve(&self, instance: &Path, policy: &str) -> Result<RunOutcome> {
        let Question::Users(instance) = read::open(&instance.to_owned().into())? else {
            let problem = format!("{}: an instance of [[user]]s is expected", instance.display());
            return Err(Error::Mismatch { problem });
        };
        let allocation = self.registry.mechanism(policy, instance.resources())?.allocate(&instance)?;
        let texts: Vec<String> = match &allocation.tasks {
            Tasks::Exact(tasks) => tasks.iter().map(ToString::to_string).collect(),
            Tasks::Float(tasks) => tasks.iter().map(|tasks| format!("{tasks:e}")).collect(),
        };
        let users = instance.users().iter().map(|user| user.name.clone());
        RunOutcome::from_allocation(users.zip(texts)).map_err(|problem| Error::Mismatch { problem })
    }
}
