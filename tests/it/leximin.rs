//! Dominant resource fairness by independent methods: the fast filling is compared with the exact filling, and the exact filling with
//! linear programs that do not use filling.

use clarabel::algebra::CscMatrix;
use clarabel::solver::{DefaultSettingsBuilder, DefaultSolver, IPSolver, NonnegativeConeT, SolverStatus};
use plimsoll::error::Error;
use plimsoll::fair::{Exact, Filling, Instance, Levels, Limit, Mechanism, Norm, Problem, User};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// How users are weighted.
#[derive(Clone, Copy, PartialEq)]
enum Weighting {
    Scalar,
    ByResource,
}

/// Draws an instance of up to `most` users and 6 resources. Some demands are 0, some users have finitely many tasks, and in a few
/// instances one capacity is 0.
fn draw(rng: &mut ChaCha8Rng, most: usize, weighting: Weighting) -> Instance {
    let dims = rng.random_range(1..=6);
    let users = rng.random_range(1..=most);
    let zeros = [0.0, 0.3, 0.7][rng.random_range(0..3)];
    let finite = [0.0, 0.2, 0.8][rng.random_range(0..3)];
    let lacking = rng.random_bool(0.05);
    let capacity =
        |rng: &mut ChaCha8Rng, r: usize| Exact::from(if lacking && r == 0 { 0 } else { rng.random_range(5..200) });
    let capacity = (0..dims).map(|r| capacity(rng, r)).collect();
    let user = |i: usize, rng: &mut ChaCha8Rng| {
        let mut amount = |_| match rng.random_bool(zeros) {
            true => Exact::ZERO,
            false => Exact::ratio(rng.random_range(1..=20), [1, 1, 4][rng.random_range(0..3)]),
        };
        let mut demand: Vec<Exact> = (0..dims).map(&mut amount).collect();
        if demand.iter().all(|amount| *amount == Exact::ZERO) {
            demand[rng.random_range(0..dims)] = Exact::ONE;
        }
        let mut weight = || Exact::ratio(rng.random_range(1..=4), rng.random_range(1..=2));
        let weight = match weighting {
            Weighting::Scalar => vec![weight(); dims],
            Weighting::ByResource => (0..dims).map(|_| weight()).collect(),
        };
        // A number of tasks of the magnitude that users typically get.
        let tasks = rng.random_bool(finite).then(|| Exact::ratio(rng.random_range(0..=200), users as i64));
        User { weight, tasks, ..User::new(format!("user {i}"), demand) }
    };
    let users = (0..users).map(|i| user(i, rng)).collect();
    let names = (0..dims).map(|r| format!("resource {r}")).collect();
    Instance::new(names, capacity, users).expect("a good instance")
}

fn assert_near(found: &[f64], expected: &[f64], tolerance: f64, what: &str) {
    for (i, (found, expected)) in found.iter().zip(expected).enumerate() {
        let off = (found - expected).abs();
        assert!(off <= tolerance * expected.abs().max(1e-3), "{what}, user {i}: {found} is not {expected}");
    }
}

#[test]
fn the_fast_filling_equals_the_exact_one() {
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let mut levels = Levels::new();
    let (mut rounds, mut stopped) = ([0; 8], [0; 2]);
    for case in 0..4000 {
        let instance = draw(&mut rng, 50, Weighting::Scalar);
        let problem = Problem::from_instance(&instance).expect("one weight a user");
        let single = Norm::Single(rng.random_range(0..instance.resources().len()));
        let norm = [Norm::Largest, Norm::Largest, Norm::Sum, single, Norm::Power(2.5)][case % 5];
        let exact = Filling { norm }.allocate(&instance).expect("a filling ends");
        levels.norm(&problem, norm).unwrap_or_else(|error| panic!("case {case}: {error}"));
        let tolerance = if norm == Norm::Power(2.5) { 1e-8 } else { 1e-9 };
        assert_near(levels.tasks(), &exact.tasks.floats(), tolerance, &format!("case {case}, {norm:?}"));
        rounds[levels.rounds().len()] += 1;
        for (i, user) in instance.users().iter().enumerate() {
            match levels.limit(i) {
                Limit::Demand => assert_eq!(levels.tasks()[i], problem.tasks()[i], "case {case}, user {i}"),
                Limit::Resource(r) => {
                    assert!(user.demand[r].is_positive(), "case {case}, user {i} does not need {r}");
                    assert!((levels.used()[r] - 1.0).abs() < 1e-9, "case {case}: {r} is not used up");
                }
                other => panic!("case {case}, user {i}: {other:?}"),
            }
            stopped[usize::from(levels.limit(i) == Limit::Demand)] += 1;
        }
    }
    assert!(rounds[..6].iter().all(|&count| count > 50), "{rounds:?}: a number of rounds is too rare");
    assert!(stopped.iter().all(|&count| count > 5000), "{stopped:?}: a kind of limit is too rare");
}

/// There are enough users for a first guess from a sample, for many blocks, and for copies of the users that continue.
#[test]
fn many_users_fill_as_in_the_plain_loop() {
    let mut rng = ChaCha8Rng::seed_from_u64(8);
    let users = 50_000;
    let mut levels = Levels::new();
    for (zeros, finite) in [(0.0, 0.0), (0.0, 0.5), (0.5, 0.0), (0.8, 0.3)] {
        let mut demand: Vec<f64> =
            (0..4 * users).map(|_| if rng.random_bool(zeros) { 0.0 } else { rng.random_range(1e-6..1e-4) }).collect();
        demand[3 * users..].iter_mut().for_each(|share| *share = share.max(1e-7));
        let weight: Vec<f64> = (0..users).map(|_| rng.random_range(0.5..4.0)).collect();
        let tasks =
            |rng: &mut ChaCha8Rng| if rng.random_bool(finite) { rng.random_range(0.0..2.0) } else { f64::INFINITY };
        let tasks: Vec<f64> = (0..users).map(|_| tasks(&mut rng)).collect();
        let problem = Problem::new(4, demand, weight, tasks);
        levels.drf(&problem).expect("a filling ends");
        let expected = filled_by_sorting(&problem);
        assert_near(levels.tasks(), &expected, 1e-9, &format!("zeros {zeros}, finite {finite}"));
        assert!(levels.certificate().residual < 1e-11, "{:?}", levels.certificate());
    }
}

/// The first guess samples every 13th of 50,000 users. In this test exactly the sampled users differ from the others.
#[test]
fn a_misleading_sample_misleads_for_a_moment_only() {
    let (users, mut levels) = (50_000, Levels::new());
    let odd = |i: usize| i.is_multiple_of(13);
    // The shares of both resources and the number of tasks, for a sampled user and for the others.
    let kinds: [[(f64, f64, f64); 2]; 3] = [
        // The guess is far too high: at this level all other users have stopped, and the usage of their resource no longer rises.
        [(0.0, 1e-6, f64::INFINITY), (1e-4, 0.0, 3.0)],
        // The guess is far too low.
        [(1e-2, 1e-2, f64::INFINITY), (1e-6, 1e-7, 30.0)],
        // No sampled user is limited by a resource.
        [(1e-6, 1e-6, 1e-3), (1e-5, 1e-4, f64::INFINITY)],
    ];
    for (case, [seen, others]) in kinds.into_iter().enumerate() {
        let of = |i: usize| if odd(i) { seen } else { others };
        let vary = |i: usize| 1.0 + (i * 7919 % 1000) as f64 / 1000.0;
        let column = |part: fn((f64, f64, f64)) -> f64| (0..users).map(move |i| part(of(i)) * vary(i));
        let demand = column(|kind| kind.0).chain(column(|kind| kind.1)).collect();
        let problem = Problem::new(2, demand, vec![1.0; users], (0..users).map(|i| of(i).2 * vary(i + 5)).collect());
        levels.drf(&problem).expect("a filling ends");
        assert_near(levels.tasks(), &filled_by_sorting(&problem), 1e-9, &format!("case {case}"));
    }
}

/// Returns the tasks of progressive filling, computed from one user's stop to the next. Users are sorted by the level at which they have
/// all their tasks.
fn filled_by_sorting(problem: &Problem) -> Vec<f64> {
    let users = problem.users();
    let rate: Vec<f64> = (0..users).map(|i| problem.weight()[i] / problem.row(i).fold(0.0, f64::max)).collect();
    let full = |i: usize| problem.tasks()[i] / rate[i];
    let mut order: Vec<usize> = (0..users).collect();
    order.sort_by(|&a, &b| full(a).total_cmp(&full(b)));
    let mut stopped: Vec<Option<f64>> = vec![None; users];
    let (mut left, mut speed) = (vec![1.0; problem.dims()], vec![0.0; problem.dims()]);
    let change = |speed: &mut [f64], i: usize, sign: f64| {
        problem.row(i).zip(speed).for_each(|(demand, speed)| *speed += sign * demand * rate[i]);
    };
    (0..users).for_each(|i| change(&mut speed, i, 1.0));
    let (mut level, mut next) = (0.0, 0);
    loop {
        while next < users && stopped[order[next]].is_some() {
            next += 1;
        }
        let Some(&first) = order.get(next) else { break };
        let until = |r: usize| if speed[r] > 1e-9 { left[r] / speed[r] } else { f64::INFINITY };
        let used_up = (0..problem.dims()).min_by(|&a, &b| until(a).total_cmp(&until(b))).expect("some resource");
        let step = until(used_up).min(full(first) - level);
        left.iter_mut().zip(&speed).for_each(|(left, speed)| *left -= step * speed);
        level += step;
        if full(first) <= level + 1e-15 {
            stopped[first] = Some(full(first));
            change(&mut speed, first, -1.0);
            continue;
        }
        for i in (0..users).filter(|&i| problem.column(used_up)[i] > 0.0) {
            if stopped[i].is_none() {
                stopped[i] = Some(level);
                change(&mut speed, i, -1.0);
            }
        }
        speed[used_up] = 0.0;
    }
    (0..users).map(|i| rate[i] * stopped[i].expect("every user stops")).collect()
}

#[test]
fn unusable_numbers_are_errors() {
    let mut levels = Levels::new();
    let endless = Problem::new(1, vec![0.0, 0.5], vec![1.0; 2], vec![f64::INFINITY; 2]);
    let message = levels.drf(&endless).expect_err("endless tasks that need nothing").to_string();
    assert!(message.contains("user 0") && message.contains("expected a demand above 0"), "{message}");
    let unknown = Problem::new(1, vec![f64::NAN, 0.5], vec![1.0; 2], vec![f64::INFINITY; 2]);
    assert!(matches!(levels.fill(&unknown.columns(), unknown.tasks(), &[1.0; 2]), Err(Error::NotConverged { .. })));
    let nothing = Problem::new(1, vec![0.0, 0.5], vec![1.0; 2], vec![3.0, 0.0]);
    levels.drf(&nothing).expect("every user has all its tasks");
    assert_eq!((levels.tasks(), levels.rounds().len()), (&[3.0, 0.0][..], 0));
}

/// Maximises `objective . x` under rows `(a, b)`, which require `a . x <= b`. Returns the solution and the multiplier of each row.
pub fn maximise(objective: &[f64], rows: &[(Vec<f64>, f64)]) -> (Vec<f64>, Vec<f64>) {
    let size = objective.len();
    let costs: Vec<f64> = objective.iter().map(|value| -value).collect();
    let matrix = CscMatrix::from(rows.iter().map(|(row, _)| row));
    let bounds: Vec<f64> = rows.iter().map(|(_, bound)| *bound).collect();
    let settings = DefaultSettingsBuilder::default()
        .verbose(false)
        .tol_gap_abs(1e-10)
        .tol_gap_rel(1e-10)
        .tol_feas(1e-10)
        .build()
        .expect("good settings");
    let nothing = CscMatrix::zeros((size, size));
    let cones = [NonnegativeConeT(rows.len())];
    let mut solver = DefaultSolver::new(&nothing, &costs, &matrix, &bounds, &cones, settings).expect("a good program");
    solver.solve();
    let status = solver.solution.status;
    assert!(matches!(status, SolverStatus::Solved | SolverStatus::AlmostSolved), "{status:?}");
    (solver.solution.x, solver.solution.z)
}

/// Computes the leximin of weighted dominant shares by linear programs over the shares.
struct Leximin {
    /// The amount of each resource that one unit of each user's weighted dominant share uses: `users x resources`.
    takes: Vec<Vec<f64>>,
    /// The share at which each user has all its tasks.
    full: Vec<Option<f64>>,
    /// The weighted dominant share of one task. It is 1 for users that demand a resource of zero capacity; their allocation is zero.
    unit: Vec<f64>,
}

impl Leximin {
    fn new(instance: &Instance) -> Leximin {
        let (capacity, mut leximin) = (instance.capacity(), Leximin { takes: vec![], full: vec![], unit: vec![] });
        for user in instance.users() {
            let share =
                |r: usize| if capacity[r] == Exact::ZERO { 0.0 } else { (&user.demand[r] / &capacity[r]).to_f64() };
            let shares: Vec<f64> = (0..capacity.len()).map(share).collect();
            let weighted = shares.iter().zip(&user.weight).map(|(share, weight)| share / weight.to_f64());
            let dominant = weighted.fold(0.0, f64::max);
            let unit = if dominant > 0.0 { dominant } else { 1.0 };
            let lacks = instance.lacking(user).is_some();
            let all = if lacks { Some(0.0) } else { user.tasks.as_ref().map(Exact::to_f64) };
            leximin.takes.push(shares.into_iter().map(|share| share / unit).collect());
            leximin.full.push(all.map(|all| all * unit));
            leximin.unit.push(unit);
        }
        leximin
    }

    /// Returns the rows for the users in `open` (and one more variable): the resources less the allocations of the other users, and the
    /// shares at which users have all their tasks.
    fn limits(&self, fixed: &[Option<f64>], open: &[usize]) -> Vec<(Vec<f64>, f64)> {
        let mut rows = Vec::new();
        for r in 0..self.takes[0].len() {
            let held: f64 = fixed.iter().zip(&self.takes).map(|(share, takes)| share.unwrap_or(0.0) * takes[r]).sum();
            let row: Vec<f64> = open.iter().map(|&i| self.takes[i][r]).chain([0.0]).collect();
            if row.iter().any(|takes| *takes > 0.0) {
                rows.push((row, 1.0 - held));
            }
        }
        for (k, &i) in open.iter().enumerate() {
            rows.extend(self.full[i].map(|full| (unit_row(open.len() + 1, k, 1.0), full)));
        }
        rows
    }

    /// Returns the shares. Each round maximises the least share. Users with a positive multiplier of their floor are then saturated. If a
    /// multiplier is too small to be certain, a separate program decides.
    fn solve(&self) -> Vec<f64> {
        let mut fixed: Vec<Option<f64>> = self.full.iter().map(|full| full.filter(|full| *full == 0.0)).collect();
        loop {
            let open: Vec<usize> = (0..fixed.len()).filter(|&i| fixed[i].is_none()).collect();
            if open.is_empty() {
                return fixed.into_iter().flatten().collect();
            }
            let least = open.len();
            let mut rows: Vec<(Vec<f64>, f64)> = (0..least).map(|k| (unit_row(least + 1, k, -1.0), 0.0)).collect();
            rows.iter_mut().for_each(|(row, _)| row[least] = 1.0);
            rows.extend(self.limits(&fixed, &open));
            let (solution, multipliers) = maximise(&unit_row(least + 1, least, 1.0), &rows);
            let level = solution[least];
            // The multipliers add up to 1. The solver returns a multiplier of zero as about 1e-10.
            let clear = |k: usize| multipliers[k] > 1e-6;
            let unclear = |k: usize| multipliers[k] > 1e-8;
            let stuck =
                |k: &usize| clear(*k) || unclear(*k) && self.highest(&fixed, &open, level, *k) < level * (1.0 + 1e-7);
            let stuck: Vec<usize> = (0..least).filter(stuck).collect();
            assert!(!stuck.is_empty(), "at least one user limits the level");
            stuck.into_iter().for_each(|k| fixed[open[k]] = Some(level));
        }
    }

    /// Returns the highest share that one open user can reach while the others keep the level.
    fn highest(&self, fixed: &[Option<f64>], open: &[usize], level: f64, k: usize) -> f64 {
        let mut rows: Vec<(Vec<f64>, f64)> =
            (0..open.len()).map(|k| (unit_row(open.len() + 1, k, -1.0), -level * (1.0 - 1e-9))).collect();
        rows.extend(self.limits(fixed, open));
        rows.push((unit_row(open.len() + 1, open.len(), 1.0), 1.0));
        rows.push((unit_row(open.len() + 1, open.len(), -1.0), 0.0));
        maximise(&unit_row(open.len() + 1, k, 1.0), &rows).0[k]
    }
}

pub fn unit_row(size: usize, at: usize, value: f64) -> Vec<f64> {
    let mut row = vec![0.0; size];
    row[at] = value;
    row
}

#[test]
fn drf_is_the_leximin_of_linear_programs() {
    let mut rng = ChaCha8Rng::seed_from_u64(9);
    for case in 0..1000 {
        // Only half of the instances are large, because a round of programs may fix only one user.
        let most = [10, 50][case % 2];
        let weighting = if case % 3 == 0 { Weighting::ByResource } else { Weighting::Scalar };
        let instance = draw(&mut rng, most, weighting);
        let exact = Filling { norm: Norm::Largest }.allocate(&instance).expect("a filling ends").tasks.floats();
        let program = Leximin::new(&instance);
        let shares: Vec<f64> = exact.iter().zip(&program.unit).map(|(tasks, unit)| tasks * unit).collect();
        // Shares are compared rather than tasks, because all shares have a similar magnitude.
        for (i, (found, expected)) in program.solve().iter().zip(&shares).enumerate() {
            let off = (found - expected).abs();
            assert!(off <= 1e-6 * expected.max(1e-3), "case {case}, user {i}: {found} is not {expected}");
        }
    }
}
