//! A small cluster with its work and its faults, for scenarios and random schedules.
//!
//! A [`Testbed`] is plain data. [`Testbed::play`] builds the workload, the cluster and the policy, runs the engine under a [`World`] to the
//! horizon or until all processes must agree, and returns the world with its ledger.

use std::path::Path;

use super::rules::Rules;
use super::world::World;
use super::world::plan::Script;
use plimsoll_base::error::Result;
use plimsoll_base::units::{Dim, Resources, Span, Time, UserId};
use plimsoll_policies::{NamedPolicy, QuotaFile, Registry, Setup as PolicySetup, WITHOUT_SCHEDULERS};
use plimsoll_sim::books::Weights;
use plimsoll_sim::cluster::{Cluster, ClusterSpec, MachineGroup, Placement};
use plimsoll_sim::engine::{Engine, Options, RunContext};
use plimsoll_sim::record::Recorder;
use plimsoll_sim::workload::{TaskSet, Workload};

/// A function that is called periodically; an error ends the run.
pub type GoOn<'a> = dyn Fn() -> Result<()> + Sync + 'a;

/// A row of work: equal tasks of a job.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WorkRow {
    /// Its name in reports.
    pub name: String,
    /// Its job, from 0; the rows of a job are consecutive.
    pub job: u32,
    /// The instant of submission.
    pub submit: Time,
    /// The number of tasks.
    pub tasks: u32,
    /// The duration of each task; [`Span::ENDLESS`] for a service.
    pub duration: Span,
    /// CPU and memory of each task.
    pub demand: [u64; 2],
    /// Whether the tasks are never preempted.
    pub stable: bool,
    /// Whether all tasks start together.
    pub gang: bool,
    /// The priority, from 0 (most urgent) to 9.
    pub priority: u8,
}

/// The policy of a testbed.
#[derive(Clone, Debug, PartialEq)]
pub enum StagePolicy {
    /// A built-in policy.
    Named(&'static str),
    /// Quota groups, as the text of a quota file.
    Quota(String),
}

/// A cluster, its work, and its faults.
#[derive(Clone, Debug, PartialEq)]
pub struct Testbed {
    /// CPU and memory of each machine.
    pub machines: Vec<[u64; 2]>,
    /// The work; rows of a job are consecutive.
    pub rows: Vec<WorkRow>,
    /// The policy.
    pub policy: StagePolicy,
    /// Engine options.
    pub options: Options,
    /// The faults.
    pub script: Script,
    /// The rules in force.
    pub rules: Rules,
}

/// Options of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct PlayOptions {
    /// Whether every message is logged.
    pub recorded: bool,
    /// Whether the first violation ends the run.
    pub strict: bool,
}

/// The end of a run. All processes agree long before this instant.
const HORIZON: Time = Time(86_400_000_000);

/// A recorder that only observes the passage of time.
struct HeartbeatRecorder<'a>(&'a GoOn<'a>);

impl Recorder for HeartbeatRecorder<'_> {
    fn heartbeat(&mut self, _now: Time) -> Result<()> {
        (self.0)()
    }
}

impl Testbed {
    fn dims() -> Vec<Dim> {
        ["cpu", "memory_mib"].map(|name| Dim::parse(name).0).to_vec()
    }

    fn workload(&self) -> Workload {
        let mut workload = Workload { dims: Testbed::dims(), ..Workload::default() };
        let jobs = self.rows.iter().map(|row| row.job + 1).max().unwrap_or(0);
        let ids: Vec<_> = (0..jobs).map(|job| workload.job(&format!("job{job}"))).collect();
        for row in &self.rows {
            let user = UserId(workload.users.intern(&format!("user{}", row.job)));
            let demand = Resources::from_slice(&row.demand);
            workload.sets.push(TaskSet {
                job: ids[row.job as usize],
                user,
                submit: row.submit,
                duration: row.duration,
                tasks: row.tasks,
                demand,
                stable: row.stable,
                gang: row.gang,
                priority: row.priority,
                ..TaskSet::default()
            });
        }
        workload.sets.iter_mut().zip(0..).for_each(|(set, row)| set.row = row);
        workload
    }

    fn cluster(&self, workload: &Workload) -> Result<Cluster> {
        let capacity = |machine: &[u64; 2]| workload.dims.iter().cloned().zip(*machine).collect();
        let group = |machine| MachineGroup { count: 1, capacity: capacity(machine), ..MachineGroup::default() };
        let groups = self.machines.iter().map(group).collect();
        Cluster::new(&ClusterSpec { groups, ..ClusterSpec::default() }, &workload.dims)
    }

    fn policy(&self) -> Result<NamedPolicy> {
        match &self.policy {
            StagePolicy::Named(name) => Registry::new(WITHOUT_SCHEDULERS).policy(name),
            StagePolicy::Quota(text) => {
                let groups = QuotaFile::parse(Path::new("quota.toml"), text)?;
                Ok(NamedPolicy::grouped(WITHOUT_SCHEDULERS.parse("quota:quota.toml")?, groups))
            }
        }
    }

    /// Runs the testbed to its end, and checks that all processes agree at the end. Errors: those of `go_on`, which is called periodically,
    /// and of invalid rows.
    pub fn play(&self, how: PlayOptions, go_on: &GoOn) -> Result<World> {
        let names = self.rows.iter().map(|row| row.name.clone()).collect();
        let mut world = World::new(self.rules, self.script.clone(), names).to_the_end();
        if how.recorded {
            world = world.recorded();
        }
        if how.strict {
            world = world.strict();
        }
        let workload = self.workload();
        let cluster = self.cluster(&workload)?;
        let weights = Weights::default();
        let machines = self.machines.len() as u64;
        let setup =
            PolicySetup { dims: &cluster.dims, capacity: cluster.total(), machines, weights: &weights, labels: None };
        let mut policy = self.policy()?.build(&setup)?;
        let options = Options { until: Some(HORIZON), ..self.options.clone() };
        let (mut source, mut recorder) = (workload.source(), HeartbeatRecorder(go_on));
        let context = RunContext::lent(&mut source, &mut *policy, &mut recorder).under(&mut world);
        let mut engine = Engine::new(context, cluster, weights, &options)?;
        while engine.step()?.is_some() {}
        let outcome = engine.finish()?;
        world.finish(outcome.end);
        Ok(world)
    }

    /// Returns options with the placement rule that spreads units, as in the article's examples.
    pub fn spreading() -> Options {
        Options { placement: Placement::WorstFit, audit: true, ..Options::default() }
    }
}
