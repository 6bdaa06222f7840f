//! What must hold of every run, whatever the policy: heard from inside, through a recorder of the tests' own.

use std::collections::BTreeMap;
use std::path::PathBuf;

use plimsoll::books::Weights;
use plimsoll::cluster::{Cluster, ClusterSpec, Placement};
use plimsoll::engine::{self, OnBlocked, Options, Outcome, Ties};
use plimsoll::policy::{Policy, PolicySpec, Setup};
use plimsoll::units::{Dim, Span, Time};
use plimsoll::workload::synthetic::Generator;
use plimsoll::workload::{CsvTrace, Input, Source};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::laws_recorder::Laws;
use crate::workloads::{Case, Weighting, job_name};

const CASES: u64 = 150;

/// Prints what a run was when it fails, so that it can be repeated.
struct Run(String);

impl Drop for Run {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("{}", self.0);
        }
    }
}

/// All policies, and slots few enough to queue for.
fn policies(dims: &[Dim]) -> Vec<PolicySpec> {
    let mut policies = PolicySpec::all();
    policies.push(PolicySpec::Slot(1));
    for spec in dims.iter().map(|dim| PolicySpec::MaxMin(dim.name.clone())) {
        if !policies.contains(&spec) {
            policies.push(spec);
        }
    }
    policies
}

/// Runs a source under a policy and a recorder that checks as it listens, and then what the run came to.
fn check(
    source: &mut dyn Source,
    spec: &PolicySpec,
    machines: &str,
    options: &Options,
    think: Option<Span>,
) -> (Laws, Outcome) {
    let machines = ClusterSpec::parse("machines", machines).expect("machines as the draw writes them");
    let cluster = Cluster::new(&machines, source.dims()).expect("a cluster for the workload");
    let weights = Weights::default();
    let setup = Setup {
        dims: &cluster.dims,
        capacity: cluster.total(),
        machines: cluster.capacities.len() as u64,
        weights: &weights,
    };
    let make = || -> Box<dyn Policy> { spec.build(&setup).expect("a policy for the cluster") };
    let mut laws = Laws::new(make(), &cluster, options, think);
    let outcome = engine::run(source, &mut *make(), &cluster, weights.clone(), options, &mut laws);
    let outcome = outcome.unwrap_or_else(|error| panic!("{spec}: {error}"));
    laws.over(&outcome);
    (laws, outcome)
}

fn trace(text: &str) -> CsvTrace {
    let input = Input::Bytes(PathBuf::from("drawn.csv"), text.as_bytes().into());
    CsvTrace::new(&input).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn pick<T: Copy>(rng: &mut ChaCha8Rng, from: &[T]) -> T {
    from[rng.random_range(0..from.len())]
}

/// Draws cases and runs them under every policy.
fn on_random_traces(first_seed: u64, placements: &[Placement], cut: bool) {
    let (mut waited, mut stuck) = (0, 0);
    for seed in first_seed..first_seed + CASES {
        let mut case = Case::draw(seed, Weighting::None, &[crate::slow::Placement::Pooled]);
        // Of a gang a single task may fit, and yet it waits.
        case.rows.iter_mut().for_each(|row| row.gang = false);
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let text = case.csv();
        let last = case.rows.iter().map(|row| row.submit + row.duration).max().expect("a case has rows");
        let options = Options {
            placement: pick(&mut rng, placements),
            on_blocked: pick(&mut rng, &[OnBlocked::Skip, OnBlocked::Skip, OnBlocked::Stop]),
            ties: pick(&mut rng, &[Ties::LowestId, Ties::HighestId, Ties::FewestRunning]),
            until: cut.then(|| Time(rng.random_range(0..=last))),
            audit: true,
            ..Options::default()
        };
        for spec in policies(trace(&text).dims()) {
            let _run = Run(format!("seed {seed}, {spec}, {options:?}, {}\n{text}", case.spec()));
            let (laws, _) = check(&mut trace(&text), &spec, &case.spec(), &options, None);
            waited += u64::from(laws.waited > 0);
            stuck += u64::from(laws.stuck > 0);
        }
    }
    assert!(waited > CASES && stuck > 10, "too easy: {waited} runs with waits, {stuck} with tasks that never start");
}

#[test]
fn hold_on_a_pool() {
    on_random_traces(10_000, &[Placement::Pooled], false);
}

#[test]
fn hold_on_machines() {
    on_random_traces(20_000, &[Placement::FirstFit, Placement::BestFit, Placement::WorstFit], false);
}

#[test]
fn hold_up_to_a_horizon() {
    on_random_traces(30_000, &[Placement::Pooled, Placement::FirstFit], true);
}

/// One line for everybody: nobody who came later starts earlier.
#[test]
fn fifo_that_stops_keeps_the_order_of_arrival() {
    let mut queued = 0;
    for seed in 40_000..40_000 + 2 * CASES {
        let mut case = Case::draw(seed, Weighting::None, &[crate::slow::Placement::Pooled]);
        for row in &mut case.rows {
            (row.stage, row.after, row.priority, row.gang) = (None, Vec::new(), 0, false);
        }
        let _run = Run(format!("seed {seed}, {}\n{}", case.spec(), case.csv()));
        let placement = if seed % 2 == 0 { Placement::Pooled } else { Placement::FirstFit };
        let options = Options { placement, on_blocked: OnBlocked::Stop, audit: true, ..Options::default() };
        let (laws, _) = check(&mut trace(&case.csv()), &PolicySpec::Fifo, &case.spec(), &options, None);
        let (mut last, mut numbers) = (Time::ZERO, BTreeMap::<usize, u64>::new());
        for row in &case.rows {
            let from = numbers.entry(row.job).or_default();
            for number in *from..*from + row.tasks {
                // A task that fits nowhere is out of line.
                let Some(&start) = laws.starts.get(&(job_name(row.job), number)) else { continue };
                assert!(start >= last, "task {number} of {} starts before one that came earlier", job_name(row.job));
                queued += u64::from(start.0 > row.submit);
                last = start;
            }
            *from += row.tasks;
        }
    }
    assert!(queued > 10 * CASES, "only {queued} tasks waited");
}

/// A closed loop drawn from a seed: its plan, the machines, the jobs of a user, and its think time.
fn draw_loop(seed: u64) -> (String, &'static str, u64, u64) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let (jobs, think) = (rng.random_range(1..=12), pick(&mut rng, &[0, 0, 3]));
    let mut plan = format!("generator = \"closed-loop\"\njobs_per_user = {jobs}\n");
    for class in 0..rng.random_range(1..=3) {
        plan.push_str(&format!("[[class]]\nname = \"class{class}\"\nusers = {}\n", rng.random_range(1..=3)));
        plan.push_str(&format!("tasks = {}\nthink = {think}\n", rng.random_range(1..=9)));
        plan.push_str("duration = { distribution = \"choice\", values = [1, 2, 5] }\n");
        if rng.random_bool(0.5) {
            plan.push_str("noise = { distribution = \"choice\", values = [0.5, 1, 2] }\nnoise_sets = 3\n");
        }
        let (cpu, memory) = (pick(&mut rng, &["0.5", "1", "2"]), pick(&mut rng, &["0.5", "1", "1.5"]));
        plan.push_str(&format!("demand = {{ cpu = {cpu}, memory_gib = {memory} }}\n"));
    }
    (plan, pick(&mut rng, &["3x2c2g", "1x9c18g,2x2c4g"]), jobs, think)
}

#[test]
fn hold_in_a_closed_loop() {
    let mut waited = 0;
    for seed in 50_000..50_000 + CASES {
        let (plan, machines, jobs, think) = draw_loop(seed);
        let generator: Generator = toml::from_str(&plan).unwrap_or_else(|error| panic!("{error}\n{plan}"));
        let generated = generator.generate(seed).unwrap_or_else(|error| panic!("{error}\n{plan}"));
        let placement = if seed % 2 == 0 { Placement::Pooled } else { Placement::FirstFit };
        let on_blocked = if seed % 3 == 0 { OnBlocked::Stop } else { OnBlocked::Skip };
        let options = Options { placement, on_blocked, audit: true, ..Options::default() };
        for spec in policies(generated.source().dims()) {
            let _run = Run(format!("seed {seed}, {spec}, {options:?}, {machines}\n{plan}"));
            let (laws, _) = check(&mut *generated.source(), &spec, machines, &options, Some(Span::from_secs(think)));
            assert_eq!(laws.stuck, 0, "every task fits");
            assert!(laws.jobs_by_user().values().all(|&done| done == jobs), "{:?}", laws.jobs_by_user());
            waited += u64::from(laws.waited > 0);
        }
    }
    assert!(waited > CASES, "too easy: {waited} runs with waits");
}
