//! An independent method for CEEI: the `clarabel` interior-point solver on the exponential cone.
//!
//! The benches also use this file.

use clarabel::algebra::CscMatrix;
use clarabel::solver::{
    DefaultSettings, DefaultSolver, ExponentialConeT, IPSolver, NonnegativeConeT, SolverStatus, SupportedConeT,
};
use plimsoll::fair::Problem;

/// The tolerance passed to the solver. If the optimum is wrong by this amount, the numbers of tasks are wrong by its square root.
const TOLERANCE: f64 = 1e-10;

/// Returns each user's number of tasks at the maximum of `sum_i w_i ln x_i`, to the solver's accuracy; `None` if the solver fails.
///
/// Variables: tasks `x_i`, then `t_i <= ln x_i`. Rows: one per resource, one per user with finitely many tasks, three per
/// user for the cone `exp(t_i) <= x_i`.
pub fn nash(problem: &Problem) -> Option<Vec<f64>> {
    let (users, dims) = (problem.users(), problem.dims());
    let finite: Vec<usize> = (0..users).filter(|&i| problem.tasks()[i].is_finite()).collect();
    let cones_start = dims + finite.len();
    let rows = cones_start + 3 * users;
    let (mut row, mut column, mut value, mut bound) = (Vec::new(), Vec::new(), Vec::new(), vec![0.0; rows]);
    let mut entry = |at: usize, of: usize, amount: f64| {
        row.push(at);
        column.push(of);
        value.push(amount);
    };
    for r in 0..dims {
        problem.column(r).iter().enumerate().filter(|(_, need)| **need > 0.0).for_each(|(i, need)| entry(r, i, *need));
        bound[r] = 1.0;
    }
    for (nth, &i) in finite.iter().enumerate() {
        entry(dims + nth, i, 1.0);
        bound[dims + nth] = problem.tasks()[i];
    }
    for i in 0..users {
        entry(cones_start + 3 * i, users + i, -1.0);
        bound[cones_start + 3 * i + 1] = 1.0;
        entry(cones_start + 3 * i + 2, i, -1.0);
    }
    let matrix = CscMatrix::new_from_triplets(rows, 2 * users, row, column, value);
    let mut cones: Vec<SupportedConeT<f64>> = vec![NonnegativeConeT(cones_start)];
    cones.extend((0..users).map(|_| ExponentialConeT()));
    let objective: Vec<f64> =
        (0..2 * users).map(|v| if v < users { 0.0 } else { -problem.weight()[v - users] }).collect();
    let settings = DefaultSettings {
        verbose: false,
        // The tolerances are tighter than the solver's defaults, which result in numbers of tasks that are wrong by more than 1e-3.
        tol_gap_abs: TOLERANCE,
        tol_gap_rel: TOLERANCE,
        tol_feas: TOLERANCE,
        ..DefaultSettings::default()
    };
    let quadratic = CscMatrix::zeros((2 * users, 2 * users));
    let mut solver = DefaultSolver::new(&quadratic, &objective, &matrix, &bound, &cones, settings).ok()?;
    solver.solve();
    matches!(solver.solution.status, SolverStatus::Solved | SolverStatus::AlmostSolved)
        .then(|| solver.solution.x[..users].to_vec())
}
