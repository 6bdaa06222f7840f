//! Progressive filling for a million users: a fast implementation of [`fill`](super::fill), in floats, column by column.
//!
//! The total allocation of a resource, as a function of the level, is increasing, concave and piecewise linear: `f_r(level) = sum_i d_ir
//! rate_i min(level, stop_i)`. The first level at which some resource is used up is therefore found by Newton's method: the tangents give
//! the next level, until no user stops between the tangent's point and its solution. From the left the method never oversteps; from a guess
//! on the right the first step ends on the left. The product of the remaining capacity and the slope falls at least fourfold per step
//! (Dinkelbach's method), so there are few steps for any input; without finite demands there is one. Users that need a used-up resource
//! stop, and the next round continues with the others: at most one round per resource.
//!
//! Sums are computed in blocks, always in the same order; for a million users their relative error is below 1e-13.

use super::levels_pass::{PassView, Sums, UserCopy, blocks, dot, evaluate, extremes, freeze};
use super::{Certificate, Limit, Norm, Problem, TOLERANCE};
use plimsoll_base::error::{Error, Result};

/// The deviation from its capacity at which a resource is considered used up.
const SLACK: f64 = 1e-12;

/// The limit on passes, more than any input can cause.
const MOST_PASSES: usize = 20_000;

/// The limit of a user that no resource limits.
const NO_LIMIT: u32 = u32::MAX;

/// The number of users in the sample of the first guess.
const SAMPLE: usize = 4096;

/// The smallest number of users for which a first guess, and a separate pass over few users at the end of a round, save time.
const MANY: usize = 8 * SAMPLE;

/// A solver for fast progressive filling. It owns its buffers, so one solver should be reused for many problems.
///
/// Cost: every demand is read twice, or three times with finite demands. Each round after the first visits only the users that still rise,
/// once they are fewer than half.
#[derive(Clone, Debug, Default)]
pub struct Levels {
    rates: Vec<f64>,
    /// The level at which each user stops: it runs all its tasks, or a resource that it needs is used up.
    stops: Vec<f64>,
    limits: Vec<u32>,
    tasks: Vec<f64>,
    rounds: Vec<(f64, Vec<usize>)>,
    used: Vec<f64>,
    residual: f64,
    rising: UserCopy,
    spare: UserCopy,
}

impl Levels {
    /// Creates a solver without a solution.
    pub fn new() -> Levels {
        Levels::default()
    }

    /// Solves dominant resource fairness: users rise at `w_i / max_r d_ir` tasks per unit of level. Errors: as [`Levels::fill`].
    pub fn drf(&mut self, problem: &Problem) -> Result<()> {
        let columns = problem.columns();
        self.solve(&columns, problem.tasks(), &vec![0.0; problem.dims()], |start, rates: &mut [f64]| {
            let end = start + rates.len();
            rates.fill(0.0);
            for columns in columns.chunks(4) {
                // Reads four columns per pass; if there are fewer than four, some are read repeatedly.
                let [a, b, c, d] = [0, 1, 2, 3].map(|k| &columns[k % columns.len()][start..end]);
                for ((((largest, &a), &b), &c), &d) in rates.iter_mut().zip(a).zip(b).zip(c).zip(d) {
                    *largest = larger(*largest, larger(larger(a, b), larger(c, d)));
                }
            }
            for (rate, weight) in rates.iter_mut().zip(&problem.weight()[start..end]) {
                // A user without demand gets the rate 1. An unconditional division is faster than a branch.
                *rate = weight / if *rate > 0.0 { *rate } else { *weight };
            }
        })
    }

    /// Solves max-min fairness of a norm of the users' weighted shares, as [`Filling`](super::Filling) does: users with a norm of 0 are
    /// served first. Errors: as [`Levels::fill`].
    pub fn norm(&mut self, problem: &Problem, norm: Norm) -> Result<()> {
        if norm == Norm::Largest {
            return self.drf(problem);
        }
        let (mut first, mut second) = (vec![0.0; problem.users()], vec![0.0; problem.users()]);
        for (i, weight) in problem.weight().iter().enumerate() {
            let (length, dominant) = (norm.float(problem.row(i)), Norm::Largest.float(problem.row(i)));
            match (length > 0.0, dominant > 0.0) {
                (true, _) => second[i] = weight / length,
                (false, true) => first[i] = weight / dominant,
                (false, false) => second[i] = 1.0,
            }
        }
        let (columns, tasks) = (problem.columns(), problem.tasks());
        if first.iter().all(|rate| *rate == 0.0) {
            return self.fill(&columns, tasks, &second);
        }
        self.fill(&columns, tasks, &first)?;
        let before = self.clone();
        let then = |start: usize, rates: &mut [f64]| rates.copy_from_slice(&second[start..][..rates.len()]);
        self.solve(&columns, tasks, &before.used, then)?;
        for i in (0..problem.users()).filter(|&i| first[i] > 0.0) {
            (self.tasks[i], self.limits[i]) = (before.tasks[i], before.limits[i]);
        }
        self.rounds.splice(0..0, before.rounds);
        self.residual = self.residual.max(before.residual);
        Ok(())
    }

    /// Raises every user at its rate (tasks per unit of level, at least 0), until it runs all its tasks or a resource that it needs is used
    /// up. A user of rate 0 does not rise. `columns` has, for each resource, the demand of a task of each user as a share of the capacity;
    /// `tasks` is the number of tasks of each user.
    ///
    /// Errors: [`Error::Plan`] for a user with unlimited tasks and without demand; [`Error::NotConverged`] if the deviation of the solution
    /// exceeds [`TOLERANCE`]. After an error there is no valid solution. Panics: the number of rates is not the number of users.
    pub fn fill(&mut self, columns: &[&[f64]], tasks: &[f64], rates: &[f64]) -> Result<()> {
        assert_eq!(rates.len(), tasks.len(), "one rate per user");
        let base = vec![0.0; columns.len()];
        self.solve(columns, tasks, &base, |start, out| out.copy_from_slice(&rates[start..][..out.len()]))
    }

    /// Returns the number of tasks that each user runs.
    pub fn tasks(&self) -> &[f64] {
        &self.tasks
    }

    /// Returns the constraint that stopped a user.
    pub fn limit(&self, user: usize) -> Limit {
        match self.limits[user] {
            NO_LIMIT => Limit::Demand,
            r => Limit::Resource(r as usize),
        }
    }

    /// Returns the level of each round and the resources that were used up at it.
    pub fn rounds(&self) -> &[(f64, Vec<usize>)] {
        &self.rounds
    }

    /// Returns the share of each resource that is in use.
    pub fn used(&self) -> &[f64] {
        &self.used
    }

    /// Returns the error of the solution, computed from the solution alone: the excess of a resource, or the distance of the constraint of
    /// a stopped user from binding.
    pub fn certificate(&self) -> Certificate {
        Certificate { residual: self.residual, gap: 0.0 }
    }

    /// Fills on top of the amounts already in use. `rate` writes the rates of consecutive users; its first argument is the index of the
    /// first of them.
    fn solve(&mut self, columns: &[&[f64]], all: &[f64], base: &[f64], rate: impl Fn(usize, &mut [f64])) -> Result<()> {
        let (users, dims) = (all.len(), columns.len());
        self.rounds.clear();
        for buffer in [&mut self.rates, &mut self.stops, &mut self.tasks] {
            buffer.resize(users, 0.0);
        }
        self.limits.clear();
        self.limits.resize(users, NO_LIMIT);
        let mut search = LevelSearch::new(base);
        let mut guess = Sums::new(self.guess(columns, all, &search, &rate), dims);
        for block in blocks(users) {
            let rates = &mut self.rates[block.clone()];
            rate(block.start, rates);
            let stops = &mut self.stops[block.clone()];
            for ((stop, rate), tasks) in stops.iter_mut().zip(&*rates).zip(&all[block.clone()]) {
                let full = tasks / rate;
                *stop = if *rate > 0.0 { full } else { 0.0 };
            }
            guess.add(columns, &search.open, rates, stops, block);
        }
        let (mut group, mut spare) = (std::mem::take(&mut self.rising), std::mem::take(&mut self.spare));
        let solved = self.rounds_of(columns, &mut search, guess, &mut group, &mut spare);
        (self.rising, self.spare) = (group, spare);
        solved?;
        self.finish(columns, all, base)
    }

    /// Runs the rounds: each finds the next level and stops the users that are limited there.
    fn rounds_of(
        &mut self,
        columns: &[&[f64]],
        search: &mut LevelSearch,
        guess: Sums,
        group: &mut UserCopy,
        spare: &mut UserCopy,
    ) -> Result<()> {
        let mut sums = guess;
        let mut compact = false;
        loop {
            let view =
                if compact { group.view(columns.len()) } else { PassView::new(columns, &self.rates, &self.stops) };
            let Some(used) = search.next_level(&view, sums)? else { break };
            let used_up: Vec<usize> =
                (0..columns.len()).filter(|&r| search.open[r] && used[r] >= 1.0 - SLACK).collect();
            used_up.iter().for_each(|&r| search.open[r] = false);
            let level = search.level;
            let rising = if compact {
                group.freeze(columns.len(), level, &used_up)
            } else {
                freeze(columns, &mut self.stops, &mut self.limits, level, &used_up)
            };
            self.rounds.push((level, used_up));
            if rising == 0 {
                break;
            }
            let view =
                if compact { group.view(columns.len()) } else { PassView::new(columns, &self.rates, &self.stops) };
            if 2 * rising <= view.stops.len() {
                spare.take_rising(&view, level, rising);
                if compact {
                    spare.members_of(group);
                    group.write_back(&mut self.stops, &mut self.limits);
                }
                std::mem::swap(group, spare);
                compact = true;
                sums = evaluate(&group.view(columns.len()), &search.open, level);
                // The users outside the view use the total amounts minus those of the users that continue.
                for r in 0..columns.len() {
                    search.base[r] = used[r] - sums.used[r];
                }
            } else {
                sums = evaluate(&view, &search.open, level);
            }
        }
        if compact {
            group.write_back(&mut self.stops, &mut self.limits);
        }
        Ok(())
    }

    /// Estimates the end of the first round from a sample of about `SAMPLE` users. Returns 0 for few users, or if some capacity is already
    /// in use.
    fn guess(&self, columns: &[&[f64]], tasks: &[f64], search: &LevelSearch, rate: &impl Fn(usize, &mut [f64])) -> f64 {
        let users = tasks.len();
        if users < MANY || search.base.iter().any(|used| *used > 0.0) {
            return 0.0;
        }
        // The stride is odd, so that the sample covers both kinds of alternating users.
        let stride = (users / SAMPLE) | 1;
        let mut group = UserCopy::default();
        let sampled = || (0..users).step_by(stride);
        for i in sampled() {
            let mut own = [0.0];
            rate(i, &mut own);
            group.rates.push(own[0]);
            group.stops.push(if own[0] > 0.0 { tasks[i] / own[0] } else { 0.0 });
        }
        for column in columns {
            group.demand.extend(sampled().map(|i| column[i] * stride as f64));
        }
        let mut search = LevelSearch::new(&search.base);
        let sums = evaluate(&group.view(columns.len()), &search.open, 0.0);
        match search.next_level(&group.view(columns.len()), sums) {
            Ok(Some(_)) if search.level.is_finite() => search.level,
            _ => 0.0,
        }
    }

    /// Computes the tasks and their deviation from max-min fairness, from the tasks, levels and limits alone.
    ///
    /// A user is stopped correctly in two cases. Either it runs all its tasks, or it needs its limiting resource, the resource is used up,
    /// and no user of the resource has a higher level (Bertsekas and Gallager, Data Networks, 6.5.2).
    fn finish(&mut self, columns: &[&[f64]], all: &[f64], base: &[f64]) -> Result<()> {
        let named: Vec<usize> = self.rounds.iter().flat_map(|(_, used_up)| used_up.iter().copied()).collect();
        let (mut lowest, mut highest) = (vec![f64::INFINITY; columns.len()], vec![0.0f64; columns.len()]);
        self.used.clear();
        self.used.extend_from_slice(base);
        for block in blocks(all.len()) {
            let (tasks, all) = (&mut self.tasks[block.clone()], &all[block.clone()]);
            let (rates, stops) = (&self.rates[block.clone()], &self.stops[block.clone()]);
            for (((tasks, &all), &rate), &stop) in tasks.iter_mut().zip(all).zip(rates).zip(stops) {
                let reached = rate * stop;
                // The product may be slightly below the number of tasks.
                let full = reached >= all * (1.0 - 4.0 * f64::EPSILON);
                *tasks = if full & (rate > 0.0) { all } else { reached };
            }
            for (used, column) in self.used.iter_mut().zip(columns) {
                *used += dot(&column[block.clone()], tasks);
            }
            for &r in &named {
                let (low, high) = extremes(&columns[r][block.clone()], stops, &self.limits[block.clone()], r as u32);
                (lowest[r], highest[r]) = (lowest[r].min(low), highest[r].max(high));
            }
        }
        if let Some(i) = self.tasks.iter().position(|tasks| !tasks.is_finite()) {
            let expected = "a demand above 0 for some resource, or a number of tasks";
            return Err(Error::plan(
                format!("user {i} (from 0), demand"),
                "a demand of 0 with unlimited tasks",
                expected,
            ));
        }
        let overfull = self.used.iter().map(|used| used - 1.0).fold(0.0, worse);
        self.residual = named.iter().fold(overfull, |residual, &r| {
            let (lowest, highest) = (lowest[r], highest[r]);
            let below = if lowest < highest { 1.0 - lowest / highest } else { 0.0 };
            let stops_somebody = lowest.is_finite();
            worse(residual, if stops_somebody { worse((1.0 - self.used[r]).abs(), below) } else { 0.0 })
        });
        match self.residual <= TOLERANCE {
            true => Ok(()),
            false => Err(not_converged(format!("the filling is off by {:e} of a capacity or a level", self.residual))),
        }
    }
}

/// Returns the larger of two numbers. Unlike `f64::max`, this compiles to one instruction.
fn larger(a: f64, b: f64) -> f64 {
    if a > b { a } else { b }
}

/// Returns the larger of two numbers, or NaN if `a` is NaN.
fn worse(a: f64, b: f64) -> f64 {
    if a.is_nan() || a > b { a } else { b }
}

fn not_converged(problem: String) -> Error {
    Error::NotConverged { solver: "progressive filling".to_owned(), problem }
}

/// The search for the next level at which a resource is used up.
struct LevelSearch {
    /// The level at the end of the last round.
    level: f64,
    /// The amounts in use, at that level, by users that are not in view.
    base: Vec<f64>,
    /// The growth of `base` per unit of level.
    base_speed: Vec<f64>,
    /// Whether each resource is not used up yet.
    open: Vec<bool>,
    passes: usize,
}

impl LevelSearch {
    fn new(base: &[f64]) -> LevelSearch {
        let dims = base.len();
        LevelSearch { level: 0.0, base: base.to_vec(), base_speed: vec![0.0; dims], open: vec![true; dims], passes: 0 }
    }

    /// Returns the amount of a resource in use at the level of these sums.
    fn used(&self, sums: &Sums, r: usize) -> f64 {
        self.base[r] + self.base_speed[r] * (sums.level - self.level) + sums.used[r]
    }

    fn speed(&self, sums: &Sums, r: usize) -> f64 {
        self.base_speed[r] + sums.speed[r]
    }

    /// Advances to the next level, from sums at any level. Returns the amounts in use there, or `None` if no open resource stops any user.
    fn next_level(&mut self, view: &PassView, mut sums: Sums) -> Result<Option<Vec<f64>>> {
        loop {
            let open = || (0..self.base.len()).filter(|&r| self.open[r]);
            let fullest = open().map(|r| self.used(&sums, r)).fold(0.0, worse);
            self.passes += 1;
            if self.passes > MOST_PASSES || !fullest.is_finite() {
                let passes = self.passes;
                let problem =
                    format!("{fullest} of a resource is in use at level {} after {passes} passes", sums.level);
                return Err(not_converged(problem));
            }
            let next = if (fullest - 1.0).abs() <= SLACK {
                sums.level
            } else if open().any(|r| self.used(&sums, r) > 1.0 && self.speed(&sums, r) == 0.0) {
                // These sums are beyond the solution, and no tangent leads back to it. Starts again from the last level.
                sums = evaluate(view, &self.open, self.level);
                continue;
            } else {
                let tangent = |r: usize| sums.level + (1.0 - self.used(&sums, r)) / self.speed(&sums, r);
                let next = open().filter(|&r| self.speed(&sums, r) > 0.0).map(tangent).reduce(f64::min);
                let Some(next) = next else { return Ok(None) };
                next.max(self.level)
            };
            if sums.last_stop <= next && next <= sums.next_stop {
                let step = next - sums.level;
                let used = (0..self.base.len()).map(|r| self.used(&sums, r) + step * self.speed(&sums, r)).collect();
                self.level = next;
                return Ok(Some(used));
            }
            let step = (next - sums.level).abs();
            sums = evaluate(view, &self.open, next);
            if view.stops.len() >= MANY && step < next / 8.0 && next > self.level {
                let near = self.next_level_near(view, &sums, next + step)?;
                if near.is_some() {
                    return Ok(near);
                }
            }
        }
    }

    /// Searches for the next level up to `end`, from sums at a lower level. Visits only the users that stop between that level and `end`;
    /// all others have stopped before or rise up to `end`. Returns the amounts in use at the level.
    fn next_level_near(&mut self, view: &PassView, sums: &Sums, end: f64) -> Result<Option<Vec<f64>>> {
        let mut near = UserCopy::default();
        near.take_between(view, sums.level, end);
        let near = near.view(view.columns.len());
        let start = evaluate(&near, &self.open, sums.level);
        let dims = 0..self.base.len();
        let base = dims.clone().map(|r| self.used(sums, r) - start.used[r]).collect();
        let base_speed = dims.map(|r| self.speed(sums, r) - start.speed[r]).collect();
        let mut search =
            LevelSearch { level: sums.level, base, base_speed, open: self.open.clone(), passes: self.passes };
        let found = search.next_level(&near, start)?.filter(|_| search.level <= end);
        self.passes = search.passes;
        if found.is_some() {
            self.level = search.level;
        }
        Ok(found)
    }
}
