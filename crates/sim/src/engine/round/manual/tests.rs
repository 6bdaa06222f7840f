//! Compares runs by a caller that starts all tasks with runs by a policy.

use crate::books::{Books, Weights};
use crate::cluster::{Cluster, Placement};
use crate::engine::{Engine, OnBlocked, Options, RunContext, run};
use crate::policy::{Ask, Capabilities, Policy, Queue, Rank, Reason, Verdict};
use crate::record::{Recorder, TaskRecord};
use crate::workload::{TaskSet, Workload};
use plimsoll_base::error::Result;
use plimsoll_base::units::{Dim, JobId, Resources, Span, Time, Unit, UserId};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// A policy that serves by arrival, or admits no task.
struct ServingOrder {
    admits: bool,
}

impl Policy for ServingOrder {
    fn rank(&self, queue: &Queue, _: &Books) -> Rank {
        Rank::new(u128::from(queue.release.0) << 64 | u128::from(queue.place))
    }

    fn admit(&self, _: &Queue, _: &Ask, _: &Books) -> Verdict {
        if self.admits { Verdict::Yes } else { Verdict::Wait(Reason::Rule("somebody outside decides")) }
    }
}

impl Capabilities for ServingOrder {}

/// The entries of tasks that have ended: user, number of the first task, machine, start and count.
#[derive(Default)]
struct Ends(Vec<(UserId, u64, Option<u32>, Time, u32)>);

impl Recorder for Ends {
    fn tasks(&mut self, tasks: &TaskRecord) -> Result<()> {
        let machine = tasks.machine.map(|machine| machine.0);
        self.0.push((tasks.user, tasks.first, machine, tasks.start, tasks.count));
        Ok(())
    }
}

/// Returns jobs with one row, or with a second row that depends on the first. Each job has its own user.
fn workload(seed: u64) -> Workload {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut workload = Workload { dims: vec![Dim { name: "cpu".into(), unit: Unit::Milli }], ..Workload::default() };
    let stage = workload.stages.intern("first");
    let mut submit = 0;
    for number in 0..30u32 {
        submit += rng.random_range(0..4u64);
        let name = format!("job-{number}");
        let (job, user) = (workload.job(&name), UserId(workload.users.intern(&name)));
        let mut row = |stage, after: Vec<u32>| {
            workload.sets.push(TaskSet {
                job,
                user,
                submit: Time(submit),
                duration: Span(rng.random_range(0..9)),
                tasks: rng.random_range(1..7),
                demand: Resources([rng.random_range(1..6), 0, 0, 0, 0, 0, 0, 0]),
                gang: rng.random_range(0..4) == 0,
                stage,
                after,
                ..TaskSet::default()
            });
        };
        row(Some(stage), Vec::new());
        if number % 3 == 0 {
            row(None, vec![stage]);
        }
    }
    workload.finish()
}

fn cluster() -> Cluster {
    let capacity = Resources([5, 0, 0, 0, 0, 0, 0, 0]);
    let dims = vec![Dim { name: "cpu".into(), unit: Unit::Milli }];
    Cluster { dims, capacities: vec![capacity; 6], ..Cluster::default() }
}

/// Starts the tasks of users in order of arrival from outside the engine, as a round would.
fn from_outside(engine: &mut Engine, on_blocked: OnBlocked) -> Result<()> {
    loop {
        let users = (0..engine.books().users() as u32).map(UserId);
        let mut line: Vec<_> = users.filter_map(|user| Some((engine.next(user)?, user))).collect();
        line.sort_by_key(|(next, _)| (next.release, next.place));
        let candidate = match on_blocked {
            OnBlocked::Stop => line.first().filter(|(next, _)| next.fits),
            _ => line.iter().find(|(next, _)| next.fits),
        };
        let Some((next, user)) = candidate else { return Ok(()) };
        let started = engine.start(*user)?;
        assert!(started > 0 && started <= next.tasks);
    }
}

#[test]
fn starting_by_arrival_from_outside_is_a_run_by_arrival() {
    for seed in 0..40 {
        let workload = workload(seed);
        for placement in [Placement::Pooled, Placement::FirstFit] {
            for on_blocked in [OnBlocked::Skip, OnBlocked::Stop] {
                let options = Options { placement, on_blocked, audit: true, ..Options::default() };
                let mut whole = Ends::default();
                let outcome = run(
                    &mut workload.source(),
                    &mut ServingOrder { admits: true },
                    cluster(),
                    Weights::default(),
                    &options,
                    &mut whole,
                );
                let (mut source, mut policy, mut ends) =
                    (workload.source(), ServingOrder { admits: false }, Ends::default());
                let context = RunContext::lent(&mut source, &mut policy, &mut ends);
                let mut engine = Engine::new(context, cluster(), Weights::default(), &options).expect("an engine");
                while engine.step().expect("a step").is_some() {
                    from_outside(&mut engine, on_blocked).expect("starts");
                }
                let stepped = engine.finish().expect("an outcome");
                let outcome = outcome.expect("an outcome");
                assert_eq!((outcome.end, outcome.launched), (stepped.end, stepped.launched), "seed {seed}");
                whole.0.sort_unstable();
                ends.0.sort_unstable();
                assert_eq!(whole.0, ends.0, "seed {seed}, {placement:?}, {on_blocked:?}");
            }
        }
    }
}

#[test]
fn what_does_not_wait_or_fit_is_not_started() {
    let mut workload = workload(1);
    workload.sets.truncate(1);
    workload.sets[0] = TaskSet {
        job: JobId(0),
        tasks: 8,
        demand: Resources([4, 0, 0, 0, 0, 0, 0, 0]),
        duration: Span(3),
        ..TaskSet::default()
    };
    let (mut source, mut policy, mut ends) = (workload.source(), ServingOrder { admits: false }, Ends::default());
    let context = RunContext::lent(&mut source, &mut policy, &mut ends);
    let options = Options { placement: Placement::FirstFit, audit: true, ..Options::default() };
    let mut engine = Engine::new(context, cluster(), Weights::default(), &options).expect("an engine");
    assert_eq!(engine.step().ok(), Some(Some(Time::ZERO)));
    let next = engine.next(UserId(0)).expect("it waits");
    assert_eq!((next.row, next.number, next.tasks, next.fits), (0, 0, 8, true));
    assert_eq!(engine.start(UserId(0)).ok(), Some(6));
    let next = engine.next(UserId(0)).expect("it waits");
    assert_eq!((next.number, next.tasks, next.fits), (6, 2, false));
    assert_eq!(engine.start(UserId(0)).ok(), Some(0));
    assert_eq!(engine.step().ok(), Some(Some(Time(3))));
    assert_eq!(engine.start(UserId(0)).ok(), Some(2));
    assert_eq!((engine.next(UserId(0)), engine.start(UserId(0)).ok()), (None, Some(0)));
    assert_eq!(engine.now(), Time(3));
}
