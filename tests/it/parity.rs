//! Parity: with a fixed backlog the engine's allocation is as close to a policy's own divisible solution as whole tasks permit.
//!
//! The level of a user is its number of tasks k times its step s. Under share-ordered policies the step is the share of one task, weighted
//! and in the policy's norm. Under target policies the step is 1 / target. The engine launches for the lowest level. Therefore, whenever
//! user i is served, `(k_i - 1) s_i <= k_j s_j` for every waiting user j: two levels differ by at most one task of the user with the higher
//! level. The argument does not require a pool, so with `stop` it also holds on machines.
//!
//! Let L be the lowest level of the users with tasks left when `stop` ends the round. It is the level of the first user in line, b, which
//! is blocked. The inequality above gives `min(T_i, L / s_i) <= k_i <= min(T_i, L / s_i + 1)`, where T_i is the number of tasks of user i.
//! Divisible tasks at level x use `F_r(x) = sum_i d_ir min(T_i, x / s_i)` of resource r. Let L* be the highest level at which no F_r
//! exceeds its capacity c_r. With positive demands the filling has one stage and ends at L*; the bounds are for this case. With zero
//! demands L* is the end of the first stage only.
//!
//! 1. The k_i tasks fit, so F(L) fits, so L <= L*, and `k_i <= L* / s_i + 1`: at most one task more than in the divisible solution.
//! 2. Pooled: the next task of b does not fit in some resource r. Even with this task no user runs more than `min(T_i, (L + S) / s_i)`
//!    tasks, where S is the largest step. Therefore `c_r < F_r(L + S)`. With `F_r(L*) <= c_r` this gives `L > L* - S`.
//!
//! For target policies L* is 1: their solution is feasible and Pareto efficient, so that no higher level fits.
//!
//! Pooled with `stop`, every level is within one maximal task of the divisible level (which is T_i s_i for a user without further tasks).
//! With `skip`, the state at the first blocked user is the final state of `stop`, and more launches follow. Bound (2) still holds. After
//! this state less than b's demand of resource r is left, so that user i gets less than `d_br / d_ir` tasks more than by (1). On machines
//! capacity is lost to fragmentation, so that no bound like (2) holds, and the test measures the distance.
//!
//! `cargo test --release --test it parity -- --nocapture` prints the distances of docs/policies.md.

use plimsoll::books::{WEIGHT_ONE, Weights};
use plimsoll::cluster::{Cluster, ClusterSpec, MachineGroup, Placement};
use plimsoll::engine::{self, OnBlocked, Options};
use plimsoll::fair::{Exact, Instance, Machines, User};
use plimsoll::policy::{BUILT_IN, PolicySpec, Setup};
use plimsoll::record::{Launch, Recorder};
use plimsoll::units::{Dim, Time};
use plimsoll::workload::{CsvTrace, Input};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const CASES: u64 = 300;
const RESOURCES: [&str; 4] = ["r0", "r1", "r2", "r3"];
const WEIGHTS: [u64; 4] = [WEIGHT_ONE, WEIGHT_ONE, 2 * WEIGHT_ONE, WEIGHT_ONE / 2];

/// Users with a fixed backlog of equal tasks, all demands above 0, on equal machines.
#[derive(Clone, Debug)]
struct Backlog {
    machines: u64,
    /// Of one machine.
    capacity: Vec<u64>,
    demand: Vec<Vec<u64>>,
    weight: Vec<u64>,
    tasks: Vec<u64>,
}

impl Backlog {
    /// Draws a backlog. Each machine has room for the largest demand of each resource, as theorem 7 requires.
    fn draw(seed: u64) -> Backlog {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let (users, dims) = (rng.random_range(2..=8), rng.random_range(1..=4));
        let most = if rng.random_bool(0.5) { 4 } else { 20 };
        let demand: Vec<Vec<u64>> =
            (0..users).map(|_| (0..dims).map(|_| rng.random_range(1..=most)).collect()).collect();
        let capacity = (0..dims)
            .map(|r| demand.iter().map(|row: &Vec<u64>| row[r]).max().unwrap_or(1) * rng.random_range(1..=6))
            .collect();
        let weighted = rng.random_bool(0.5);
        let finite = rng.random_bool(0.4);
        Backlog {
            machines: rng.random_range(1..=12),
            capacity,
            demand,
            weight: (0..users).map(|_| WEIGHTS[if weighted { rng.random_range(0..4) } else { 0 }]).collect(),
            tasks: (0..users).map(|_| if finite { rng.random_range(1..=30) } else { 2000 }).collect(),
        }
    }

    fn users(&self) -> usize {
        self.demand.len()
    }

    fn dims(&self) -> usize {
        self.capacity.len()
    }

    fn total(&self, r: usize) -> u64 {
        self.capacity[r] * self.machines
    }

    fn weights(&self) -> Vec<f64> {
        self.weight.iter().map(|&weight| weight as f64 / WEIGHT_ONE as f64).collect()
    }

    /// Returns how many tasks of each user the engine launches at the first instant.
    fn launched(&self, spec: &PolicySpec, placement: Placement, on_blocked: OnBlocked) -> Vec<u64> {
        let mut text = format!("job,user,submit_s,duration_s,tasks,{}\n", RESOURCES[..self.dims()].join(","));
        for (i, demand) in self.demand.iter().enumerate() {
            let amounts: Vec<String> = demand.iter().map(u64::to_string).collect();
            text.push_str(&format!("j{i},u{i},0,1000,{},{}\n", self.tasks[i], amounts.join(",")));
        }
        let input = Input::Bytes("drawn.csv".into(), text.into_bytes().into());
        let mut source = CsvTrace::declaring(&input, &RESOURCES.map(str::to_owned)).expect("a trace");
        let group = |(name, &amount): (&&str, &u64)| {
            let (dim, scale) = Dim::parse(name);
            (dim, amount * scale)
        };
        let capacity = RESOURCES.iter().zip(&self.capacity).map(group).collect();
        let machines = ClusterSpec {
            groups: vec![MachineGroup { count: self.machines as u32, capacity, ..MachineGroup::default() }],
            ..ClusterSpec::default()
        };
        let cluster = Cluster::new(&machines, plimsoll::workload::Source::dims(&source)).expect("a cluster");
        let names: Vec<String> = (0..self.users()).map(|i| format!("u{i}")).collect();
        let weights = Weights::from_scalars(names.iter().map(String::as_str).zip(self.weight.iter().copied()));
        let (dims, capacity) = (&cluster.dims[..], cluster.total());
        let setup = Setup { dims, capacity, machines: self.machines, weights: &weights, labels: None };
        let mut policy = spec.build(&setup).expect("a policy");
        let options = Options { placement, on_blocked, until: Some(Time(1)), audit: true, ..Options::default() };
        let mut count = Count(vec![0; self.users()]);
        engine::run(&mut source, &mut *policy, cluster, weights.clone(), &options, &mut count).expect("a run");
        count.0
    }

    /// Returns the backlog as a static instance.
    fn instance(&self) -> Instance {
        let exact = |values: &[u64]| values.iter().map(|&value| Exact::from(value)).collect::<Vec<_>>();
        let user = |i: usize| User {
            weight: vec![&Exact::from(self.weight[i]) / &Exact::from(WEIGHT_ONE); self.dims()],
            tasks: Some(Exact::from(self.tasks[i])),
            ..User::new(format!("u{i}"), exact(&self.demand[i]))
        };
        let names = RESOURCES[..self.dims()].iter().map(|name| (*name).to_owned()).collect();
        let capacity: Vec<u64> = (0..self.dims()).map(|r| self.total(r)).collect();
        Instance::new(names, exact(&capacity), (0..self.users()).map(user).collect()).expect("a good instance")
    }

    /// Returns how many divisible tasks the policy's own mechanism gives each user.
    fn divisible(&self, spec: &PolicySpec) -> Vec<f64> {
        let capacity = self.capacity.iter().map(|&amount| Exact::from(amount)).collect();
        let machines = vec![Machines { name: "m".to_owned(), count: self.machines, capacity }];
        let (resources, users) = (self.instance().resources().to_vec(), self.instance().users().to_vec());
        let instance = Instance::on_machines(resources, machines, users).expect("good machines");
        let mechanism = spec.mechanism(instance.resources()).expect("a static counterpart");
        mechanism.allocate(&instance).expect("a solution").tasks.floats()
    }

    /// Returns the step of each user, computed from the definition above.
    fn steps(&self, spec: &PolicySpec, divisible: &[f64]) -> Vec<f64> {
        let shares = |i: usize| {
            let share = move |r: usize| self.demand[i][r] as f64 / self.total(r) as f64;
            (0..self.dims()).map(share).collect::<Vec<f64>>()
        };
        let weights = self.weights();
        let text = spec.to_string();
        let (name, parameter) = text.split_once(':').unwrap_or((&text, ""));
        let step = |i: usize| match name {
            "drf" => shares(i).into_iter().fold(0.0, f64::max) / weights[i],
            "asset" => shares(i).iter().sum::<f64>() / weights[i],
            "maxmin" => {
                shares(i)[RESOURCES.iter().position(|known| *known == parameter).expect("a resource")] / weights[i]
            }
            "pnorm" => {
                let p: f64 = parameter.parse().expect("a number");
                shares(i).iter().map(|s| s.powf(p)).sum::<f64>().powf(1.0 / p) / weights[i]
            }
            "slot" => 1.0 / weights[i],
            "fifo" => panic!("no level"),
            _ => 1.0 / divisible[i],
        };
        (0..self.users()).map(step).collect()
    }
}

/// Returns the highest level at which divisible tasks fit (the end of the filling's first stage), by bisection.
fn first_level(backlog: &Backlog, steps: &[f64]) -> f64 {
    let fits = |level: f64| {
        let held = |r: usize| -> f64 {
            let tasks = |i: usize| (backlog.tasks[i] as f64).min(level / steps[i]);
            (0..backlog.users()).map(|i| backlog.demand[i][r] as f64 * tasks(i)).sum()
        };
        (0..backlog.dims()).all(|r| held(r) <= backlog.total(r) as f64)
    };
    let (mut low, mut high) = (0.0, 1e6);
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        if fits(middle) { low = middle } else { high = middle }
    }
    low
}

struct Count(Vec<u64>);

impl Recorder for Count {
    fn launched(&mut self, launch: &Launch) {
        self.0[launch.user.index()] += u64::from(launch.count);
    }
}

/// A fixed backlog, its divisible solution and steps under a policy.
struct Bounds<'a> {
    backlog: &'a Backlog,
    divisible: Vec<f64>,
    steps: Vec<f64>,
    largest: f64,
}

/// A tolerance, because the ranks of target policies and of p-norms are rounded.
const SLACK: f64 = 1e-6;

impl<'a> Bounds<'a> {
    fn new(backlog: &'a Backlog, spec: &PolicySpec) -> Bounds<'a> {
        let divisible = backlog.divisible(spec);
        let steps = backlog.steps(spec, &divisible);
        let largest = steps.iter().copied().fold(0.0, f64::max);
        Bounds { backlog, divisible, steps, largest }
    }

    /// Returns whether levels differ by at most one task of the user with the higher level, if the other user has tasks left.
    fn between_users(&self, launched: &[u64]) -> bool {
        let backlogged = |j: &usize| launched[*j] < self.backlog.tasks[*j];
        let lowest = (0..launched.len()).filter(backlogged).map(|j| launched[j] as f64 * self.steps[j]);
        let lowest = lowest.fold(f64::INFINITY, f64::min);
        launched.iter().zip(&self.steps).all(|(&k, step)| k == 0 || (k as f64 - 1.0) * step <= lowest * (1.0 + SLACK))
    }

    /// Bound (1): returns whether no user has more than one task more than in the divisible solution.
    fn bounded_above(&self, launched: &[u64]) -> bool {
        launched.iter().zip(&self.divisible).all(|(&k, x)| k as f64 <= x + 1.0 + SLACK)
    }

    /// Bound (2): returns whether every level is less than one maximal task below the divisible level.
    fn bounded_below(&self, launched: &[u64]) -> bool {
        let lower = |i: usize| self.divisible[i] - self.largest / self.steps[i] - SLACK;
        (0..launched.len()).all(|i| launched[i] as f64 > lower(i))
    }

    /// Bound (1) with the additional tasks that `skip` may launch.
    fn bounded_above_skipping(&self, launched: &[u64]) -> bool {
        let demand = &self.backlog.demand;
        let ratio = |i: usize, r: usize| demand.iter().map(|b| b[r]).max().unwrap_or(0) as f64 / demand[i][r] as f64;
        let more = |i: usize| (0..self.backlog.dims()).map(|r| ratio(i, r)).fold(0.0, f64::max);
        (0..launched.len()).all(|i| (launched[i] as f64) < self.divisible[i] + 1.0 + more(i) + SLACK)
    }

    /// Returns the largest distance of a user's level from its divisible level, in maximal tasks.
    fn distance(&self, launched: &[u64]) -> f64 {
        let off = |i: usize| (launched[i] as f64 - self.divisible[i]).abs() * self.steps[i] / self.largest;
        (0..launched.len()).map(off).fold(0.0, f64::max)
    }

    /// Returns the largest difference of the levels of two users with tasks left, in maximal tasks.
    fn gap(&self, launched: &[u64]) -> f64 {
        let left = (0..launched.len()).filter(|&i| launched[i] < self.backlog.tasks[i]);
        let levels: Vec<f64> = left.map(|i| launched[i] as f64 * self.steps[i] / self.largest).collect();
        plimsoll::metrics::gap(&levels).unwrap_or(0.0)
    }
}

/// The distances of all cases, and the gaps of theorem 7.
#[derive(Default)]
struct Measured {
    distances: Vec<f64>,
    gaps: Vec<f64>,
}

impl Measured {
    fn add(&mut self, bounds: &Bounds, launched: &[u64]) {
        self.distances.push(bounds.distance(launched));
        self.gaps.push(bounds.gap(launched));
    }

    fn text(&self) -> String {
        let largest = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        format!("{:.2} / {:.2} / {:.2}", mean(&self.distances), largest(&self.distances), largest(&self.gaps))
    }
}

/// Runs a policy on all drawn backlogs, pooled and on machines, with `stop` and `skip`. Checks the proved bounds and prints the distances.
fn parity(spec: &str) {
    let spec = BUILT_IN.parse(spec).expect("a policy");
    let mut measured: [Measured; 4] = Default::default();
    let mut blocked = 0;
    for seed in 0..CASES {
        let backlog = Backlog::draw(seed);
        let bounds = Bounds::new(&backlog, &spec);
        let told = |launched: &[u64]| {
            format!("seed {seed}, {spec}: {launched:?}, divisible {:?}\n{backlog:?}", bounds.divisible)
        };
        let ways = [Placement::Pooled, Placement::FirstFit]
            .into_iter()
            .flat_map(|placement| [OnBlocked::Stop, OnBlocked::Skip].map(|on_blocked| (placement, on_blocked)));
        for (measured, (placement, on_blocked)) in measured.iter_mut().zip(ways) {
            let launched = backlog.launched(&spec, placement, on_blocked);
            let (pooled, stop) = (placement == Placement::Pooled, on_blocked == OnBlocked::Stop);
            if stop {
                assert!(bounds.between_users(&launched), "between users, {}", told(&launched));
                assert!(bounds.bounded_above(&launched), "from above, {}", told(&launched));
            }
            if pooled {
                assert!(bounds.bounded_below(&launched), "from below, {}", told(&launched));
                assert!(bounds.bounded_above_skipping(&launched), "from above, {}", told(&launched));
            }
            measured.add(&bounds, &launched);
            blocked += u64::from(launched.iter().zip(&backlog.tasks).any(|(k, tasks)| k < tasks));
        }
    }
    assert!(blocked > 3 * CASES, "too easy: only {blocked} runs end with tasks left");
    let columns: Vec<String> = measured.iter().map(Measured::text).collect();
    println!("| `{spec}` | {} |", columns.join(" | "));
    let mean = |measured: &Measured| measured.distances.iter().sum::<f64>();
    assert!(mean(&measured[0]) <= mean(&measured[1]), "skip is further away than stop, pooled");
}

#[test]
fn drf() {
    parity("drf");
}

#[test]
fn asset_fairness() {
    parity("asset");
}

#[test]
fn one_resource() {
    parity("maxmin:r0");
}

/// Under slots each task has a demand of one slot, and the level of a user is its number of slots divided by its weight.
#[test]
fn slots() {
    parity("slot:3");
}

#[test]
fn norms_between() {
    parity("pnorm:1.5");
    parity("pnorm:4");
}

/// With zero demands `stop` ends when the first user is blocked, near the first stage of the filling. The divisible solution and `skip`
/// continue for users that need other resources.
#[test]
fn zero_demands_end_near_the_first_stage() {
    let mut further = 0;
    for seed in 0..CASES {
        let mut backlog = Backlog::draw(seed);
        let mut rng = ChaCha8Rng::seed_from_u64(seed + 1_000_000);
        let dims = backlog.dims();
        for demand in &mut backlog.demand {
            let kept = rng.random_range(0..dims);
            (0..dims)
                .filter(|&r| r != kept && rng.random_bool(0.4))
                .collect::<Vec<_>>()
                .into_iter()
                .for_each(|r| demand[r] = 0);
        }
        for spec in ["drf", "asset"].map(|name| BUILT_IN.parse(name).expect("a policy")) {
            let divisible = backlog.divisible(&spec);
            let steps = backlog.steps(&spec, &divisible);
            let level = first_level(&backlog, &steps);
            let first = (0..backlog.users()).map(|i| (backlog.tasks[i] as f64).min(level / steps[i])).collect();
            let largest = steps.iter().copied().fold(0.0, f64::max);
            let bounds = Bounds { backlog: &backlog, divisible: first, steps, largest };
            let stopped = backlog.launched(&spec, Placement::Pooled, OnBlocked::Stop);
            let right =
                bounds.between_users(&stopped) && bounds.bounded_above(&stopped) && bounds.bounded_below(&stopped);
            assert!(right, "seed {seed}, {spec}: {stopped:?}, first stage {:?}\n{backlog:?}", bounds.divisible);
            let skipped = backlog.launched(&spec, Placement::Pooled, OnBlocked::Skip);
            assert!(bounds.bounded_below(&skipped), "seed {seed}, {spec}: {skipped:?}\n{backlog:?}");
            further += u64::from(
                (0..stopped.len()).any(|i| divisible[i] > stopped[i] as f64 + 2.0 + largest / bounds.steps[i]),
            );
        }
    }
    assert!(further > CASES / 10, "the first stage was nearly always the last: {further}");
}

/// With positive demands the solutions of the mechanisms equal the level L* of the bounds.
#[test]
fn positive_demands_have_one_stage() {
    for seed in 0..CASES {
        let backlog = Backlog::draw(seed);
        for spec in ["drf", "asset", "maxmin:r0", "pnorm:3"].map(|text| BUILT_IN.parse(text).expect("a policy")) {
            let divisible = backlog.divisible(&spec);
            let steps = backlog.steps(&spec, &divisible);
            let level = first_level(&backlog, &steps);
            for (i, tasks) in divisible.iter().enumerate() {
                let wanted = (backlog.tasks[i] as f64).min(level / steps[i]);
                assert!((tasks - wanted).abs() <= 1e-9 * wanted, "seed {seed}, {spec}: {tasks} {wanted}");
            }
        }
    }
}

#[test]
fn ceei() {
    parity("ceei");
}

#[test]
fn bmf() {
    parity("bmf");
}
