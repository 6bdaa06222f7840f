//! Programs with pairs of many distinct jobs of few kinds: jobs of one kind have the same rates and differ in their required rates.
//!
//! The program has one variable per kind (or pair of kinds) and worker type, its total time, instead of one per job or pair of jobs. Let the
//! columns of a kind, in descending order of rate, form a profile of total time; `F(q)` is the integral of its first `q` units of time. Jobs
//! with at most one unit of time each can have the rates `r_1 >= r_2 >= ..` if and only if `r_1 + .. + r_q <= F(q)` for each `q`: the
//! condition of Horvath, Lam and Sethi (JACM 24(1), 1977) for preemptive schedules on processors of different speeds. As `F(q)` is the least
//! `theta q + sum_c (rate_c - theta)^+ time_c`, each condition is a set of linear rows ([`Cut`]). Only violated rows are added.
//!
//! A pair of two kinds then needs the same total time on both sides, which the northwest-corner rule divides into pairs of jobs. A pair inside
//! a kind needs, in addition, that no job has more than half of the time of both sides. Columns that violate this are omitted if the level
//! stays the same. Otherwise the job becomes a kind of its own, which only refines the program: with a kind per job it is exact.
//!
//! The first rows are not those of the previous program: a start with its tight rows, after the weight of one of 1,000 (10,000) jobs
//! changed, was 0.9 (0.6) times as fast (measured at commit c1df0de7).
//!
//! The certificate: `gap.above` is a bound from the dual values of the program over kinds, of which each row holds for every allocation of jobs;
//! `gap.below` is the level of the returned allocation of jobs.

mod master;
mod split;

use std::collections::BTreeSet;

use plimsoll_base::error::{Error, Result};

use super::interior::not_converged;
use super::{DualityGap, Need};

/// The largest number of solutions of one program over kinds.
const MAX_SOLVES: u32 = 100;
/// The largest number of accurate solutions of one program over kinds.
const MAX_ACCURATE_SOLVES: u32 = 12;
/// The part of the level that may be lost without some columns of pairs inside kinds.
const MAX_LEVEL_LOSS: f64 = 2e-10;
/// The largest number of jobs that become kinds of their own.
const MAX_SEPARATED: u32 = 60;
/// A row is added if it is violated by more than this part of the required rate.
const MIN_VIOLATION: f64 = 1e-11;

/// A program over kinds of jobs.
#[derive(Clone, Debug, Default)]
pub struct KindProgram {
    /// Accelerators of each worker type, positive.
    pub capacity: Vec<f64>,
    /// The required rates of the jobs of each kind.
    pub kinds: Vec<Vec<Need>>,
    /// The columns: a job alone or a pair of jobs on a worker type.
    pub columns: Vec<KindColumn>,
    /// Whether the level is maximised; otherwise it is 0.
    pub level: bool,
}

/// The time that jobs of a kind, or pairs of jobs of two kinds, spend on a worker type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KindColumn {
    /// The worker type.
    pub worker_type: u32,
    /// The number of accelerators that a job or a pair occupies.
    pub width: f64,
    /// The kind and rate of the job, or of the first job of a pair.
    pub first: (u32, f64),
    /// The kind and rate of the second job. In a pair inside a kind both rates are equal.
    pub second: Option<(u32, f64)>,
}

impl KindColumn {
    /// Returns the kinds with their rates and the time per unit of the column: 2 for a pair inside a kind.
    fn sides(&self) -> impl Iterator<Item = (usize, f64, f64)> + use<> {
        let same = self.second.is_some_and(|second| second.0 == self.first.0);
        let first = (self.first.0 as usize, self.first.1, if same { 2.0 } else { 1.0 });
        let second = self.second.filter(|_| !same).map(|(kind, rate)| (kind as usize, rate, 1.0));
        std::iter::once(first).chain(second)
    }

    fn is_inside(&self) -> bool {
        self.second.is_some_and(|second| second.0 == self.first.0)
    }
}

/// An allocation of jobs; a job is its kind and its position in it.
#[derive(Clone, Debug, Default)]
pub struct KindSolution {
    /// The bounds of the level; both are 0 without level.
    pub gap: DualityGap,
    /// The time of each job alone: job, worker type, time.
    pub alone: Vec<(KindJob, u32, f64)>,
    /// The time of pairs of jobs: both jobs, worker type, time.
    pub pairs: Vec<(KindJob, KindJob, u32, f64)>,
    /// The rates of the jobs of each kind.
    pub rates: Vec<Vec<f64>>,
    /// The number of solutions of the program over kinds.
    pub solves: u32,
    /// The number of jobs that became kinds of their own.
    pub separated: u32,
}

/// A job: its kind and its position in it.
pub type KindJob = (u32, u32);

/// A row: the jobs of a set need `sum_c (rate_c - theta)^+ time_c >= base + slope * level - theta * jobs`.
#[derive(Clone, Copy, Debug)]
struct Cut {
    kind: usize,
    theta: f64,
    jobs: f64,
    base: f64,
    slope: f64,
}

/// Solves a program over kinds.
///
/// Errors: [`Error::NotConverged`], also if requirements without slope are not feasible; [`Error::Mismatch`] for a capacity or width that is
/// not positive, a kind without jobs or without a column of positive rate, a requirement or rate that is negative or not finite, a column of
/// an unknown kind or type, a pair inside a kind with unequal rates, and a maximised level without a positive slope.
pub fn solve_kinds(program: &KindProgram) -> Result<KindSolution> {
    check(program)?;
    // The kind and position in `program` of the jobs of each kind in `refined`.
    let mut origin: Vec<Vec<KindJob>> = program
        .kinds
        .iter()
        .zip(0..)
        .map(|(jobs, kind)| (0..jobs.len() as u32).map(|at| (kind, at)).collect())
        .collect();
    let mut refined = program.clone();
    drop_impossible_pairs(&mut refined);
    let (mut solves, mut separated) = (0, 0);
    loop {
        let mut solved = solve_relaxation(&refined, &mut solves)?;
        let (dual_bound, reached) = (solved.dual_bound, solved.level * (1.0 - MAX_LEVEL_LOSS));
        let mut reduced = refined.clone();
        let mut jobs = Vec::new();
        loop {
            let shares = split::shares(&reduced, &solved.x, solved.level);
            let violations = split::violations(&reduced, &shares);
            if violations.is_empty() {
                let mut solution = split::allocation(&reduced, &shares, &origin, program);
                solution.gap.above = dual_bound;
                (solution.solves, solution.separated) = (solves, separated);
                return Ok(solution);
            }
            // Most programs have many optima. Often an optimum without these columns exists.
            let dropped: BTreeSet<usize> = violations.iter().map(|violation| violation.column).collect();
            if jobs.is_empty() {
                jobs = violations;
            }
            let mut at = 0..reduced.columns.len();
            reduced.columns.retain(|_| at.next().is_some_and(|at| !dropped.contains(&at)));
            match solve_relaxation(&reduced, &mut solves) {
                Ok(less) if less.level >= reached => solved = less,
                Ok(_) => break,
                // Without these columns the required rates may be infeasible.
                Err(Error::NotConverged { .. }) => break,
                Err(error) => return Err(error),
            }
        }
        // One job per kind: that with the largest excess.
        jobs.sort_by(|a, b| a.kind.cmp(&b.kind).then(b.excess.total_cmp(&a.excess)).then(a.job.cmp(&b.job)));
        jobs.dedup_by_key(|violation| violation.kind);
        separated += jobs.len() as u32;
        if separated > MAX_SEPARATED {
            return Err(not_converged("the pairs inside kinds of jobs concentrate on single jobs"));
        }
        for violation in jobs {
            separate(&mut refined, &mut origin, violation.kind, violation.job);
        }
        drop_impossible_pairs(&mut refined);
    }
}

/// Checks the preconditions of [`solve_kinds`]. Errors: [`Error::Mismatch`].
fn check(program: &KindProgram) -> Result<()> {
    let refuse = |problem: String| Err(Error::Mismatch { problem });
    let is_amount = |value: f64| value.is_finite() && value >= 0.0;
    if let Some(at) = program.capacity.iter().position(|&capacity| !is_amount(capacity) || capacity == 0.0) {
        return refuse(format!(
            "worker type {at} has the capacity {}; expected a positive number",
            program.capacity[at]
        ));
    }
    let mut runs = vec![false; program.kinds.len()];
    for (at, column) in program.columns.iter().enumerate() {
        let sides = || std::iter::once(column.first).chain(column.second);
        if column.worker_type as usize >= program.capacity.len() || sides().any(|side| side.0 as usize >= runs.len()) {
            return refuse(format!("column {at} has a kind or worker type that the program does not have"));
        }
        if !is_amount(column.width) || column.width == 0.0 || !sides().all(|side| is_amount(side.1)) {
            return refuse(format!(
                "column {at} has a width or rate out of range; expected a width above 0 and rates from 0 on"
            ));
        }
        if column.is_inside() && sides().any(|side| side.1 != column.first.1) {
            return refuse(format!("column {at} is a pair inside kind {} with unequal rates", column.first.0));
        }
        sides().for_each(|side| runs[side.0 as usize] |= side.1 > 0.0);
    }
    for (kind, needs) in program.kinds.iter().enumerate() {
        if needs.is_empty() || !runs[kind] {
            return refuse(format!("kind {kind} has no job or no column with a positive rate"));
        }
        if !needs.iter().all(|need| is_amount(need.base) && is_amount(need.slope)) {
            return refuse(format!("kind {kind} has a required rate that is negative or not finite"));
        }
    }
    if program.level && !program.kinds.iter().flatten().any(|need| need.slope > 0.0) {
        return refuse("no required rate depends on the level, so that it has no maximum".to_owned());
    }
    Ok(())
}

/// A solution of the program over kinds.
struct Relaxation {
    /// The time of each column.
    x: Vec<f64>,
    level: f64,
    /// The bound on the level from the dual values.
    dual_bound: f64,
}

/// Solves the program over kinds with the rows that are needed.
fn solve_relaxation(program: &KindProgram, solves: &mut u32) -> Result<Relaxation> {
    let profiles = split::orders(program);
    let mut cuts = master::first_cuts(program);
    let mut least_gap = master::LOOSE;
    let mut accurate = 0;
    for _ in 0..MAX_SOLVES {
        *solves += 1;
        let solved = master::solve(program, &cuts, least_gap)?;
        let tolerance = MIN_VIOLATION.max(least_gap / 10.0);
        let found = split::violated(program, &profiles, &solved.x, solved.level, tolerance);
        if least_gap <= super::interior::GAP {
            accurate += 1;
            // Rounding can keep violations above the tolerance. The certificate decides about the result.
            if found.is_empty() || accurate == MAX_ACCURATE_SOLVES {
                return Ok(solved);
            }
        } else if found.is_empty() {
            least_gap = super::interior::GAP;
        }
        cuts.extend(found);
    }
    Err(not_converged(&format!("rows are violated after {MAX_SOLVES} solutions")))
}

/// Removes the columns of pairs inside kinds of one job.
fn drop_impossible_pairs(program: &mut KindProgram) {
    let kinds = &program.kinds;
    program.columns.retain(|column| !column.is_inside() || kinds[column.first.0 as usize].len() > 1);
}

/// Makes the job at a position of a kind a kind of its own, the last one.
fn separate(program: &mut KindProgram, origin: &mut Vec<Vec<KindJob>>, kind: usize, at: usize) {
    let own = program.kinds.len() as u32;
    let need = program.kinds[kind].remove(at);
    program.kinds.push(vec![need]);
    let job = origin[kind].remove(at);
    origin.push(vec![job]);
    let kind = kind as u32;
    let mut added = Vec::new();
    for column in &program.columns {
        let rename = |side: (u32, f64)| if side.0 == kind { (own, side.1) } else { side };
        if column.is_inside() && column.first.0 == kind {
            added.push(KindColumn { first: rename(column.first), ..*column });
        } else if column.first.0 == kind || column.second.is_some_and(|second| second.0 == kind) {
            added.push(KindColumn { first: rename(column.first), second: column.second.map(rename), ..*column });
        }
    }
    program.columns.extend(added);
}

#[cfg(test)]
mod tests;
