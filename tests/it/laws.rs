//! Laws that hold in every run under any policy. A recorder (`laws_recorder.rs`) checks them.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::PathBuf;

use plimsoll::books::Weights;
use plimsoll::cluster::{Cluster, ClusterSpec, Placement};
use plimsoll::engine::{self, OnBlocked, Options, Outcome, Ties};
use plimsoll::policy::{BUILT_IN, Policy, PolicySpec, Setup};
use plimsoll::units::{Dim, Span, Time};
use plimsoll::workload::synthetic::Generator;
use plimsoll::workload::{CsvTrace, Input, Source};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::laws_recorder::Laws;
use crate::property::{Broken, search};
use crate::workloads::{Case, Weighting, job_name, pick};

const CASES: u32 = 150;

/// Returns all policies that conserve work, and `slot:1`, which makes tasks queue. Karma is excluded, since it may leave unallocated
/// capacity idle.
fn policies(dims: &[Dim]) -> Vec<PolicySpec> {
    // Policies that decide in cycles are excluded, too: they leave room that the next cycle uses.
    let conserves = |policy: &PolicySpec| policy.runs().is_ok() && policy.row().name != "karma" && !policy.is_queued();
    let mut policies: Vec<PolicySpec> = BUILT_IN.examples().into_iter().filter(conserves).collect();
    policies.push(BUILT_IN.parse("slot:1").expect("a policy"));
    for dim in dims {
        let spec = BUILT_IN.parse(&format!("maxmin:{}", dim.name)).expect("a policy");
        if !policies.contains(&spec) {
            policies.push(spec);
        }
    }
    policies
}

/// Runs a source under a policy and a checking recorder, and then checks the outcome.
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
        labels: None,
    };
    let make = || -> Box<dyn Policy> { spec.build(&setup).expect("a policy for the cluster") };
    let mut options = options.clone();
    if make().needs().by_machine {
        // Such a policy ranks pairs of user and machine, so that no single user is first and could end the round.
        options.on_blocked = OnBlocked::Skip;
    }
    let options = &options;
    let mut laws = Laws::new(make(), &cluster, options, think);
    let outcome = engine::run(source, &mut *make(), cluster, weights.clone(), options, &mut laws);
    let outcome = outcome.unwrap_or_else(|error| panic!("{spec}: {error}"));
    laws.over(&outcome);
    (laws, outcome)
}

fn trace(text: &str) -> CsvTrace {
    let input = Input::Bytes(PathBuf::from("drawn.csv"), text.as_bytes().into());
    CsvTrace::new(&input).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// A workload, and how it is run.
#[derive(Clone)]
struct Trial {
    case: Case,
    options: Options,
    policies: Vec<PolicySpec>,
}

impl std::fmt::Debug for Trial {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let policies: Vec<String> = self.policies.iter().map(|policy| policy.to_string()).collect();
        writeln!(f, "{}, {:?}, {}", policies.join(", "), self.options, self.case.spec())?;
        f.write_str(&self.case.csv())
    }
}

impl Trial {
    fn draw(seed: u64, placements: &[Placement], cut: bool) -> Trial {
        let mut case = Case::draw(seed, Weighting::None, &[crate::slow::Placement::Pooled]);
        // A gang may wait although one of its tasks fits.
        case.rows.iter_mut().for_each(|row| row.gang = false);
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let last = case.rows.iter().map(|row| row.submit + row.duration).max().expect("a case has rows");
        let options = Options {
            placement: pick(&mut rng, placements),
            on_blocked: pick(&mut rng, &[OnBlocked::Skip, OnBlocked::Skip, OnBlocked::Stop]),
            ties: pick(&mut rng, &[Ties::LeastRecentlyServed, Ties::LowestId, Ties::HighestId, Ties::FewestRunning]),
            until: cut.then(|| Time(rng.random_range(0..=last))),
            audit: true,
            ..Options::default()
        };
        let policies = policies(trace(&case.csv()).dims());
        Trial { case, options, policies }
    }

    fn smaller(&self) -> Vec<Trial> {
        let one = self.policies.iter().filter(|_| self.policies.len() > 1);
        let one = one.map(|policy| Trial { policies: vec![policy.clone()], ..self.clone() });
        one.chain(self.case.smaller().into_iter().map(|case| Trial { case, ..self.clone() })).collect()
    }
}

/// Panics with the problem and the case if the search has found one.
fn no_more<T: std::fmt::Debug>(found: Result<(), Broken<T>>) {
    if let Err(broken) = found {
        panic!("{}\n{:?}", broken.problem, broken.case);
    }
}

/// Draws cases and runs them under every policy.
fn on_random_traces(draw: fn(u64) -> Trial) {
    let (waited, stuck) = (Cell::new(0), Cell::new(0));
    no_more(search(file!(), CASES, draw, Trial::smaller, |trial| {
        for spec in &trial.policies {
            let (laws, _) = check(&mut trace(&trial.case.csv()), spec, &trial.case.spec(), &trial.options, None);
            waited.update(|runs| runs + u32::from(laws.waited > 0));
            stuck.update(|runs| runs + u32::from(laws.stuck > 0));
        }
        Ok(())
    }));
    let (waited, stuck) = (waited.get(), stuck.get());
    assert!(waited > CASES && stuck > 10, "too easy: {waited} runs with waits, {stuck} with tasks that never start");
}

#[test]
fn hold_on_a_pool() {
    on_random_traces(|seed| Trial::draw(seed, &[Placement::Pooled], false));
}

#[test]
fn hold_on_machines() {
    const RULES: &[Placement] = &[Placement::FirstFit, Placement::BestFit, Placement::WorstFit];
    on_random_traces(|seed| Trial::draw(seed, RULES, false));
}

#[test]
fn hold_up_to_a_horizon() {
    on_random_traces(|seed| Trial::draw(seed, &[Placement::Pooled, Placement::FirstFit], true));
}

/// All users share one queue: no task starts before an earlier one.
#[test]
fn fifo_that_stops_keeps_the_order_of_arrival() {
    let queued = Cell::new(0);
    let draw = |seed| {
        let mut trial = Trial::draw(seed, &[Placement::Pooled, Placement::FirstFit], false);
        for row in &mut trial.case.rows {
            (row.stage, row.after, row.priority) = (None, Vec::new(), 0);
        }
        trial.options.on_blocked = OnBlocked::Stop;
        Trial { policies: vec![BUILT_IN.parse("fifo").expect("a policy")], ..trial }
    };
    no_more(search(file!(), 2 * CASES, draw, Trial::smaller, |Trial { case, options, policies }| {
        let (laws, _) = check(&mut trace(&case.csv()), &policies[0], &case.spec(), options, None);
        let (mut last, mut numbers) = (Time::ZERO, BTreeMap::<usize, u64>::new());
        for row in &case.rows {
            let from = numbers.entry(row.job).or_default();
            for number in *from..*from + row.tasks {
                // A task that fits on no machine is not in the queue.
                let Some(&start) = laws.starts.get(&(job_name(row.job), number)) else { continue };
                assert!(start >= last, "task {number} of {} starts before one that came earlier", job_name(row.job));
                queued.update(|tasks| tasks + u32::from(start.0 > row.submit));
                last = start;
            }
            *from += row.tasks;
        }
        Ok(())
    }));
    assert!(queued.get() > 10 * CASES, "only {} tasks waited", queued.get());
}

/// A closed loop and how it is run.
#[derive(Clone, Debug)]
struct Loop {
    seed: u64,
    machines: &'static str,
    jobs: u64,
    think: u64,
    /// The part of the plan that declares the classes.
    classes: Vec<String>,
    options: Options,
}

impl Loop {
    fn draw(seed: u64) -> Loop {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let (jobs, think) = (rng.random_range(1..=12), pick(&mut rng, &[0, 0, 3]));
        let class = |class: u64| {
            let mut plan = format!("[[class]]\nname = \"class{class}\"\nusers = {}\n", rng.random_range(1..=3));
            plan.push_str(&format!("tasks = {}\nthink = {think}\n", rng.random_range(1..=9)));
            plan.push_str("duration = { distribution = \"choice\", values = [1, 2, 5] }\n");
            if rng.random_bool(0.5) {
                plan.push_str("noise = { distribution = \"choice\", values = [0.5, 1, 2] }\nnoise_sets = 3\n");
            }
            let (cpu, memory) = (pick(&mut rng, &["0.5", "1", "2"]), pick(&mut rng, &["0.5", "1", "1.5"]));
            plan.push_str(&format!("demand = {{ cpu = {cpu}, memory_gib = {memory} }}\n"));
            plan
        };
        let classes = (0..seed % 3 + 1).map(class).collect();
        let options = Options {
            placement: pick(&mut rng, &[Placement::Pooled, Placement::FirstFit]),
            on_blocked: pick(&mut rng, &[OnBlocked::Stop, OnBlocked::Skip, OnBlocked::Skip]),
            audit: true,
            ..Options::default()
        };
        Loop { seed, machines: pick(&mut rng, &["3x2c2g", "1x9c18g,2x2c4g"]), jobs, think, classes, options }
    }

    fn smaller(&self) -> Vec<Loop> {
        let fewer = (0..self.classes.len()).filter(|_| self.classes.len() > 1).map(|at| {
            let mut fewer = self.clone();
            fewer.classes.remove(at);
            fewer
        });
        let shorter = (self.jobs > 1).then(|| Loop { jobs: self.jobs - 1, ..self.clone() });
        fewer.chain(shorter).collect()
    }

    fn plan(&self) -> String {
        format!("generator = \"closed-loop\"\njobs_per_user = {}\n{}", self.jobs, self.classes.concat())
    }
}

#[test]
fn hold_in_a_closed_loop() {
    let waited = Cell::new(0);
    no_more(search(file!(), CASES, Loop::draw, Loop::smaller, |trial| {
        let generator: Generator = toml::from_str(&trial.plan()).unwrap_or_else(|error| panic!("{error}"));
        let generated = generator.generate(trial.seed).unwrap_or_else(|error| panic!("{error}"));
        let think = Some(Span::from_secs(trial.think));
        for spec in policies(generated.source().dims()) {
            let (laws, _) = check(&mut *generated.source(), &spec, trial.machines, &trial.options, think);
            assert_eq!(laws.stuck, 0, "in a closed loop every task fits and starts");
            assert!(laws.jobs_by_user().values().all(|&done| done == trial.jobs), "{:?}", laws.jobs_by_user());
            waited.update(|runs| runs + u32::from(laws.waited > 0));
        }
        Ok(())
    }));
    let waited = waited.get();
    assert!(waited > CASES, "too easy: {waited} runs with waits");
}
