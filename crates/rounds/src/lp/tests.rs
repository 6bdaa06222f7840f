//! Comparisons with an independent solver and with exact arithmetic, and the central property.

use clarabel::algebra::CscMatrix;
use clarabel::solver::{DefaultSettings, DefaultSolver, IPSolver, NonnegativeConeT, SolverStatus};
use num_rational::BigRational;
use num_traits::{FromPrimitive, Signed, Zero};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;

/// The kinds of objective.
#[derive(Clone, Copy, PartialEq)]
enum Objective {
    Level,
    Filling,
    Value,
}

/// Returns a random program of up to 24 jobs, each a class of its own, on up to 4 types.
fn random_program(random: &mut ChaCha8Rng, objective: Objective, pairs: bool) -> Program {
    let types = random.random_range(1..=4usize);
    let jobs = random.random_range(1..=24usize);
    let capacity: Vec<f64> = (0..types).map(|_| f64::from(random.random_range(1..=12u32))).collect();
    let mut program = Program { capacity, level: objective != Objective::Value, ..Program::default() };
    let mut rates: Vec<Vec<f64>> = Vec::new();
    for class in 0..jobs {
        let base = 10f64.powf(random.random_range(-1.0..2.0));
        let mut own: Vec<f64> = (0..types).map(|_| base * random.random_range(0.05..1.0)).collect();
        if types > 1 && random.random_range(0..4u32) == 0 {
            own[random.random_range(0..types)] = 0.0;
        }
        let width = f64::from([1u32, 1, 1, 2, 4][random.random_range(0..5usize)]);
        let slope = base * random.random_range(0.1..3.0);
        let need = match objective {
            Objective::Level => Some(Need { base: 0.0, slope }),
            // Constant requirements of which a small part of any type suffices.
            Objective::Filling => Some(Need { base: base * 0.001, slope: if class % 3 == 0 { 0.0 } else { slope } }),
            Objective::Value => None,
        };
        let need = if objective == Objective::Filling && class == 0 { Some(Need { base: 0.0, slope }) } else { need };
        program.classes.push(JobClass { count: 1.0, need });
        for (j, &rate) in own.iter().enumerate().filter(|(_, rate)| **rate > 0.0) {
            let first = ColumnMember { class: class as u32, times: 1.0, rate };
            let value = if objective == Objective::Value { rate } else { 0.0 };
            let column = Column { worker_type: j as u32, copies: 1.0, width, value, first, second: None };
            program.columns.push(column);
        }
        if pairs {
            for other in 0..class {
                for j in 0..types {
                    if random.random_range(0..3u32) == 0 || own[j] == 0.0 || rates[other][j] == 0.0 {
                        continue;
                    }
                    let member = |class: usize, rate: f64, part: f64| ColumnMember {
                        class: class as u32,
                        times: 1.0,
                        rate: rate * part,
                    };
                    let first = member(class, own[j], random.random_range(0.3..1.0));
                    let second = Some(member(other, rates[other][j], random.random_range(0.3..1.0)));
                    program.columns.push(Column {
                        worker_type: j as u32,
                        copies: 1.0,
                        width,
                        value: 0.0,
                        first,
                        second,
                    });
                }
            }
        }
        rates.push(own);
    }
    program
}

/// Returns the optimum by an independent general solver; `None` if that solver does not reach its tolerance.
fn independent(program: &Program) -> Option<f64> {
    let (m, k, n) = (program.columns.len(), program.classes.len(), program.capacity.len());
    let variables = m + usize::from(program.level);
    let (mut row, mut column, mut value) = (Vec::new(), Vec::new(), Vec::new());
    let mut entry = |at: usize, of: usize, amount: f64| {
        row.push(at);
        column.push(of);
        value.push(amount);
    };
    let mut bound = vec![0.0; 2 * k + n + variables];
    for (at, class) in program.classes.iter().enumerate() {
        if let Some(need) = class.need {
            bound[at] = -need.base;
            if program.level {
                entry(at, m, need.slope);
            }
        }
        bound[k + at] = 1.0;
    }
    bound[2 * k..2 * k + n].copy_from_slice(&program.capacity);
    for (at, own) in program.columns.iter().enumerate() {
        for member in std::iter::once(own.first).chain(own.second) {
            if program.classes[member.class as usize].need.is_some() {
                entry(member.class as usize, at, -member.times * member.rate);
            }
            entry(k + member.class as usize, at, member.times);
        }
        entry(2 * k + own.worker_type as usize, at, own.copies * own.width);
    }
    (0..variables).for_each(|at| entry(2 * k + n + at, at, -1.0));
    let matrix = CscMatrix::new_from_triplets(bound.len(), variables, row, column, value);
    let mut objective: Vec<f64> =
        program.columns.iter().map(|column| if program.level { 0.0 } else { -column.value }).collect();
    objective.extend(program.level.then_some(-1.0));
    let settings = DefaultSettings {
        verbose: false,
        tol_gap_abs: 1e-13,
        tol_gap_rel: 1e-12,
        tol_feas: 1e-12,
        ..DefaultSettings::default()
    };
    let quadratic = CscMatrix::zeros((variables, variables));
    let cones = [NonnegativeConeT(bound.len())];
    let mut solver = DefaultSolver::new(&quadratic, &objective, &matrix, &bound, &cones, settings).ok()?;
    solver.solve();
    (solver.solution.status == SolverStatus::Solved).then_some(-solver.solution.obj_val)
}

fn objective_of(program: &Program, solution: &Solution) -> f64 {
    if program.level {
        solution.level
    } else {
        program.columns.iter().zip(&solution.x).map(|(column, x)| column.value * x).sum()
    }
}

/// 500 random programs without pairs, 150 with, against the independent solver: the objectives differ by at most 1e-9 of their value.
#[test]
fn the_optimum_is_that_of_an_independent_solver() {
    let mut random = ChaCha8Rng::seed_from_u64(47);
    let (mut compared, mut worst) = (0, 0.0f64);
    for instance in 0..650 {
        let objective = [Objective::Level, Objective::Filling, Objective::Value][instance % 3];
        let program = random_program(&mut random, objective, instance >= 500);
        let solution = solve(&program).expect("a program with a solution");
        let Some(expected) = independent(&program) else { continue };
        let own = objective_of(&program, &solution);
        let error = (own - expected).abs() / expected.abs();
        assert!(error < 1e-9, "instance {instance}: {own} instead of {expected}, {error:.1e}");
        (compared, worst) = (compared + 1, worst.max(error));
    }
    assert!(compared > 600, "the independent solver solved only {compared} programs");
}

/// The bounds from a feasible point and from prices, in floats and in exact fractions.
#[test]
fn the_duality_gap_is_small_in_exact_arithmetic() {
    let exact = |value: f64| BigRational::from_f64(value).expect("finite");
    let mut random = ChaCha8Rng::seed_from_u64(48);
    for _ in 0..60 {
        let program = random_program(&mut random, Objective::Level, false);
        let solution = solve(&program).expect("a program with a solution");
        let gap = certify(&program, &solution.x, &solution.type_price);
        assert!(gap.relative() < 1e-9, "{gap:?}");
        // A feasible point: cut to at least 0, scaled by the largest excess.
        let one = exact(1.0);
        let x: Vec<BigRational> = solution.x.iter().map(|&x| exact(x.max(0.0))).collect();
        let mut over = one.clone();
        let sums = |of: &dyn Fn(&Column) -> bool, width: bool| -> BigRational {
            let own = program.columns.iter().zip(&x).filter(|(column, _)| of(column));
            own.fold(BigRational::zero(), |sum, (column, x)| sum + x * exact(if width { column.width } else { 1.0 }))
        };
        for (j, capacity) in program.capacity.iter().enumerate() {
            over = over.max(sums(&|column| column.worker_type as usize == j, true) / exact(*capacity));
        }
        (0..program.classes.len()).for_each(|k| over = over.clone().max(sums(&|c| c.first.class as usize == k, false)));
        let slope = |k: usize| exact(program.classes[k].need.expect("a need").slope);
        let below = (0..program.classes.len()).map(|k| {
            let own = program.columns.iter().zip(&x).filter(|(column, _)| column.first.class as usize == k);
            let rate = own.fold(BigRational::zero(), |sum, (column, x)| sum + x * exact(column.first.rate));
            rate / &over / slope(k)
        });
        let below = below.min().expect("a class");
        // Weak duality with prices p of types and y of requirements (scaled to sum_k y_k slope_k = 1): the level is at most
        // sum_j p_j W_j + sum_k u_k with the price of time u_k = max(0, max_j(y_k T_kj - s_k p_j)).
        let price: Vec<BigRational> = solution.type_price.iter().map(|&p| exact(p.max(0.0))).collect();
        let y: Vec<BigRational> = solution.need_price.iter().map(|&y| exact(y.max(0.0))).collect();
        let norm = y.iter().enumerate().fold(BigRational::zero(), |sum, (k, y)| sum + y * slope(k));
        let mut above =
            price.iter().zip(&program.capacity).fold(BigRational::zero(), |sum, (p, w)| sum + p * exact(*w));
        for k in 0..program.classes.len() {
            let own = program.columns.iter().filter(|column| column.first.class as usize == k);
            let profit = own.map(|c| &y[k] * exact(c.first.rate) - exact(c.width) * &price[c.worker_type as usize]);
            above += profit.fold(BigRational::zero(), BigRational::max);
        }
        above /= norm;
        let gap = (&above - &below) / &above;
        assert!(!gap.is_negative() && gap < exact(1e-9), "{gap}");
    }
}

/// A class with a count equals separate identical jobs, also with pairs inside the class.
#[test]
fn a_class_equals_separate_jobs() {
    let single = |class: u32, copies: f64| Column {
        worker_type: 0,
        copies,
        width: 1.0,
        value: 0.0,
        first: ColumnMember { class, times: 1.0, rate: 2.0 },
        second: None,
    };
    let need = Some(Need { base: 0.0, slope: 1.0 });
    let merged = Program {
        capacity: vec![2.0],
        classes: vec![JobClass { count: 5.0, need }],
        columns: vec![
            single(0, 5.0),
            Column { copies: 10.0, first: ColumnMember { class: 0, times: 4.0, rate: 1.5 }, ..single(0, 5.0) },
        ],
        level: true,
    };
    let mut separate =
        Program { columns: Vec::new(), classes: vec![JobClass { count: 1.0, need }; 5], ..merged.clone() };
    for a in 0..5 {
        separate.columns.push(single(a, 1.0));
        for b in 0..a {
            let member = |class: u32| ColumnMember { class, times: 1.0, rate: 1.5 };
            separate.columns.push(Column { first: member(a), second: Some(member(b)), ..single(a, 1.0) });
        }
    }
    let (merged, separate) = (solve(&merged).expect("a solution"), solve(&separate).expect("a solution"));
    assert!((merged.level - 1.2).abs() < 1e-9 && (separate.level - 1.2).abs() < 1e-9);
    assert!((merged.x[1] - separate.x[1].max(separate.x[2])).abs() < 1e-6, "{merged:?} {separate:?}");
}

/// The optimum is the center: of two types of equal use, a job takes the same time on each, however the types are numbered.
#[test]
fn a_free_split_is_even() {
    let column = |worker_type: u32| Column {
        worker_type,
        copies: 1.0,
        width: 1.0,
        value: 0.0,
        first: ColumnMember { class: 0, times: 1.0, rate: 1.0 },
        second: None,
    };
    let program = Program {
        capacity: vec![36.0; 3],
        classes: vec![JobClass { count: 1.0, need: Some(Need { base: 0.0, slope: 1.0 }) }],
        columns: (0..3).map(column).collect(),
        level: true,
    };
    let solution = solve(&program).expect("a solution");
    assert!((solution.level - 1.0).abs() < 1e-10);
    solution.x.iter().for_each(|x| assert!((x - 1.0 / 3.0).abs() < 1e-9, "{x}"));
}

#[test]
fn no_jobs_need_no_program() {
    let program = Program { capacity: vec![1.0, 2.0], level: true, ..Program::default() };
    assert_eq!(solve(&program).expect("an empty solution").x, Vec::<f64>::new());
}
