//! Executes the plans and instances of published results: one run or allocation each, without tables.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use plimsoll_published::{JobOutcome, RunOutcome, TargetRunner};
use plimsoll_runs::{RunEnvironment, define_fragments};

use crate::books::Books;
use crate::engine::{self, Options};
use crate::error::{Error, Result};
use crate::experiment::Plan;
use crate::experiment::SharedSupply;
use crate::fair::Tasks;
use crate::fair::read::{self, Question};
use crate::metrics::Window;
use crate::policy::Registry;
use crate::record::{Fate, JobRecord, Recorder, State, TaskRecord};
use crate::units::{Dim, JobId, Resources, Span, Time, UserId};
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
    allocation: AllocationLog,
    check: &'a (dyn Fn() -> Result<()> + Sync),
}

/// The allocation of each resource over time, in per cent of the capacity.
struct AllocationLog {
    /// The part of the run that is measured.
    window: Window,
    /// The end of the last interval, and the capacity in it.
    end: (Time, Resources),
    /// The last submission so far, and the tasks that waited after it.
    last: (Time, u64),
    /// For each resource the sums of amount times microseconds: allocated and present in the window, then up to the last submission.
    sums: Vec<[u128; 4]>,
    /// The first two sums, over the whole run so far.
    whole: Vec<[u128; 2]>,
}

impl AllocationLog {
    fn new(window: Window, dims: usize) -> AllocationLog {
        let (sums, whole) = (vec![[0; 4]; dims], vec![[0; 2]; dims]);
        AllocationLog { window, end: (Time::ZERO, Resources::ZERO), last: (Time::ZERO, 0), sums, whole }
    }

    fn submitted(&mut self, at: Time) {
        if at > self.last.0 {
            self.last = (at, 0);
            // The time until `at` is added interval by interval.
            self.sums.iter_mut().zip(&self.whole).for_each(|(sums, whole)| sums[2..].copy_from_slice(whole));
        }
    }

    fn interval(&mut self, from: Time, to: Time, books: &Books) {
        let before_last = Window { from: Time::ZERO, to: self.last.0 };
        let [whole, in_window, before] =
            [Window::default(), self.window, before_last].map(|window| u128::from(window.part(from, to).0));
        if from == self.last.0 {
            self.last.1 = books.total_waiting();
        }
        for (d, (sums, sum)) in self.sums.iter_mut().zip(&mut self.whole).enumerate() {
            let amounts = [books.total_held(), books.capacity()].map(|amounts| u128::from(amounts[d]));
            for at in 0..2 {
                sum[at] += amounts[at] * whole;
                sums[at] += amounts[at] * in_window;
                sums[2 + at] += amounts[at] * before;
            }
        }
        self.end = (to, *books.capacity());
    }

    /// Returns the values by name: `allocation_RESOURCE` in the measured window, `allocation_RESOURCE_to_last_submission`, both in per cent of
    /// the capacity, and `waiting_at_last_submission` in tasks. The allocation after the end of the run is 0.
    fn values(mut self, dims: &[Dim]) -> Vec<(String, f64)> {
        let rest = match self.window.to {
            Time::NEVER => Span::ZERO,
            to => self.window.part(self.end.0, to),
        };
        let mut values = vec![("waiting_at_last_submission".to_owned(), self.last.1 as f64)];
        for (d, sums) in self.sums.iter_mut().enumerate() {
            sums[1] += u128::from(self.end.1[d]) * u128::from(rest.0);
            let percent = |at: usize| 100.0 * sums[at] as f64 / sums[at + 1].max(1) as f64;
            values.push((format!("allocation_{}", dims[d].name), percent(0)));
            values.push((format!("allocation_{}_to_last_submission", dims[d].name), percent(2)));
        }
        values
    }
}

impl Recorder for JobLog<'_> {
    fn user(&mut self, _user: UserId, name: &str) {
        self.users.push(name.to_owned());
    }

    fn interval(&mut self, from: Time, to: Time, state: &State) -> Result<()> {
        self.allocation.interval(from, to, state.books);
        Ok(())
    }

    fn submitted(&mut self, row: &TaskSet, _stage: Option<&str>, _first_of_job: bool) {
        self.allocation.submitted(row.submit);
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
            allocation: AllocationLog::new(plan.window, source.dims().len()),
            check: self.check,
        };
        let RunEnvironment { cluster, weights } = environment;
        engine::run(&mut *source, &mut *policy, cluster, weights, &options, &mut log)?;
        let JobLog { mut jobs, launched, on, users, allocation, .. } = log;
        let values = allocation.values(source.dims());
        let launches = on.into_iter().map(|((user, machine), tasks)| (users[user].clone(), machine, tasks)).collect();
        jobs.sort_by_key(|(submit, job, _)| (*submit, *job));
        let jobs = jobs.into_iter().map(|(.., job)| {
            let launched = launched.get(&job.job).copied().unwrap_or_default();
            JobOutcome { launched, ..job }
        });
        Ok(RunOutcome { jobs: jobs.collect(), launches, values, ..RunOutcome::default() })
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

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::policy::BUILT_IN;

    /// Two spot tasks of 100 s run on two GPUs from 0 on; at 50 s a task of high priority arrives, which takes 100 s. With eviction the
    /// GPUs are full until 150 s; the evicted task runs from 100 s to 200 s, or to 150 s if it resumes. Without eviction the late task
    /// runs from 100 s to 200 s. One task waits after the last submission.
    #[test]
    fn allocation_is_a_mean_over_the_window() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let trace = "job,user,submit_s,duration_s,tasks,gpu,priority\n0,a,0,100,2,1.0,9\n1,b,50,100,1,1.0,0\n";
        std::fs::write(dir.path().join("trace.csv"), trace).expect("writable");
        std::fs::write(dir.path().join("machines.csv"), "name,gpu\npool,2\n").expect("writable");
        let registry = Registry::new(BUILT_IN);
        let runner = PlanRunner { registry: &registry, check: &|| Ok(()) };
        let values = |plan: &str, set: &[&str]| {
            let plan = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("experiments/published/spot-2026").join(plan);
            let copy = dir.path().join("plan.toml");
            std::fs::copy(plan, &copy).expect("writable");
            let set: Vec<String> = set.iter().map(|text| (*text).to_owned()).collect();
            let outcome = runner.run(&copy, &set, None, None).expect("a run");
            let value = |name: &str| outcome.values.iter().find(|(found, _)| found == name).expect(name).1;
            let names = ["allocation_gpu", "allocation_gpu_to_last_submission", "waiting_at_last_submission"];
            names.map(value)
        };
        assert_eq!(values("replay.toml", &[]), [87.5, 100.0, 1.0]);
        assert_eq!(values("replay.toml", &["measure.to=\"400s\""]), [43.75, 100.0, 1.0]);
        assert_eq!(values("replay.toml", &["measure.from=\"50s\"", "measure.to=\"150s\""]), [100.0, 100.0, 1.0]);
        assert_eq!(values("replay.toml", &["cluster.checkpoint=\"1us\""]), [100.0, 100.0, 1.0]);
        assert_eq!(values("replay-waiting.toml", &[]), [75.0, 100.0, 1.0]);
    }
}
