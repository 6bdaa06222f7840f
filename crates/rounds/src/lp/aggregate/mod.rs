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
//! The certificate: `above` is a bound from the dual values of the program over kinds, of which each row holds for every allocation of jobs;
//! `below` is the level of the returned allocation of jobs.

mod master;
mod split;

use std::collections::BTreeSet;

use plimsoll_base::error::Result;

use super::interior::not_converged;
use super::{DualityGap, Need};

/// The largest number of solutions of one program over kinds.
const ROUNDS: u32 = 100;
/// The largest number of accurate solutions of one program over kinds.
const ACCURATE: u32 = 12;
/// The part of the level that may be lost without some columns of pairs inside kinds.
const LOSS: f64 = 2e-10;
/// The largest number of jobs that become kinds of their own.
const SEPARATED: u32 = 60;
/// A row is added if it is violated by more than this part of the required rate.
const VIOLATION: f64 = 1e-11;

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
    pub rounds: u32,
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

/// Solves a program over kinds. Each kind has a job, and each job a column with a positive rate.
///
/// Errors: [`plimsoll_base::error::Error::NotConverged`]; also if requirements without slope are not feasible.
pub fn solve_kinds(program: &KindProgram) -> Result<KindSolution> {
    // The kind and position in `program` of the jobs of each kind in `refined`.
    let mut origin: Vec<Vec<KindJob>> = program
        .kinds
        .iter()
        .zip(0..)
        .map(|(jobs, kind)| (0..jobs.len() as u32).map(|at| (kind, at)).collect())
        .collect();
    let mut refined = program.clone();
    drop_impossible_pairs(&mut refined);
    let (mut rounds, mut separated) = (0, 0);
    loop {
        let mut solved = relax(&refined, &mut rounds)?;
        let (above, reached) = (solved.above, solved.level * (1.0 - LOSS));
        let mut reduced = refined.clone();
        let mut jobs = Vec::new();
        loop {
            let shares = split::shares(&reduced, &solved.x, solved.level);
            let violations = split::violations(&reduced, &shares);
            if violations.is_empty() {
                let mut solution = split::allocation(&reduced, &shares, &origin, program);
                solution.gap.above = above;
                (solution.rounds, solution.separated) = (rounds, separated);
                return Ok(solution);
            }
            // Most programs have many optima. Often an optimum without these columns exists.
            let dropped: BTreeSet<usize> = violations.iter().map(|violation| violation.column).collect();
            if jobs.is_empty() {
                jobs = violations;
            }
            let mut at = 0..reduced.columns.len();
            reduced.columns.retain(|_| at.next().is_some_and(|at| !dropped.contains(&at)));
            match relax(&reduced, &mut rounds) {
                Ok(less) if less.level >= reached => solved = less,
                _ => break,
            }
        }
        jobs.dedup_by_key(|violation| violation.kind);
        separated += jobs.len() as u32;
        if separated > SEPARATED {
            return Err(not_converged("the pairs inside kinds of jobs concentrate on single jobs"));
        }
        for violation in jobs {
            separate(&mut refined, &mut origin, violation.kind, violation.job);
        }
        drop_impossible_pairs(&mut refined);
    }
}

/// A solution of the program over kinds.
struct Relaxed {
    /// The time of each column.
    x: Vec<f64>,
    level: f64,
    above: f64,
}

/// Solves the program over kinds with the rows that are needed.
fn relax(program: &KindProgram, rounds: &mut u32) -> Result<Relaxed> {
    let profiles = split::orders(program);
    let mut cuts = master::first_cuts(program);
    let mut least_gap = master::LOOSE;
    let mut accurate = 0;
    for _ in 0..ROUNDS {
        *rounds += 1;
        let solved = master::solve(program, &cuts, least_gap)?;
        let tolerance = VIOLATION.max(least_gap / 10.0);
        let found = split::violated(program, &profiles, &solved.x, solved.level, tolerance);
        if least_gap <= super::interior::GAP {
            accurate += 1;
            // Rounding can keep violations above the tolerance. The certificate decides about the result.
            if found.is_empty() || accurate == ACCURATE {
                return Ok(solved);
            }
        } else if found.is_empty() {
            least_gap = super::interior::GAP;
        }
        cuts.extend(found);
    }
    Err(not_converged(&format!("rows are violated after {ROUNDS} rounds")))
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
