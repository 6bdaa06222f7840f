//! The inputs of bottleneck max fairness, in floats: users in units of their dominant share, column by column.

use crate::{Instance, Problem};

/// The constraint of a user that runs all its tasks, in place of a resource.
pub(super) const TASKS: usize = usize::MAX;

/// More units than any user can run (1 is the whole of a resource); replaces an unlimited number of tasks.
const ABUNDANCE: f64 = 2.0;

/// Competing users, in units scaled so that the largest share that a unit needs is 1.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Shape {
    pub users: usize,
    pub dims: usize,
    /// `demand[r * users + i]`: the share of resource `r` that a unit of user `i` needs.
    pub demand: Vec<f64>,
    /// `per_level[r * users + i]`: units of user `i` at level 1 of resource `r`; infinite where it needs none.
    pub per_level: Vec<f64>,
    /// The number of units of each user.
    pub cap: Vec<f64>,
    /// The caller's index of each user, and the size of a task in units.
    outside: Vec<(usize, f64)>,
    /// The tasks of users that do not compete: those without tasks, or without demand.
    apart: Vec<(usize, f64)>,
    /// Whether each resource cannot be a bottleneck unless another one is a bottleneck of the same users.
    pub covered: Vec<bool>,
}

/// The units of the users at given levels, and the resulting usage.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Position {
    /// Units of each user.
    pub units: Vec<f64>,
    /// The resource that limits each user, the lowest index of several; [`TASKS`] if none does.
    pub source: Vec<usize>,
    /// The units of each user per level of its source; 0 for [`TASKS`].
    slope: Vec<f64>,
    /// The used share of each resource.
    pub usage: Vec<f64>,
    /// The number of users that each resource limits.
    pub held: Vec<usize>,
    /// `slopes[r * dims + s]`: the usage of `r` per level of `s`.
    pub slopes: Vec<f64>,
}

impl Shape {
    /// Sets the shape from a problem and reuses the memory of the previous one.
    pub fn set(&mut self, problem: &Problem) {
        let weight = |i: usize, _: usize| problem.weight()[i];
        self.fill(problem.users(), problem.dims(), |i, r| problem.column(r)[i], weight, |i| problem.tasks()[i]);
        self.cover();
    }

    pub fn of_instance(instance: &Instance) -> Shape {
        let (users, capacity) = (instance.users(), instance.capacity());
        let demand = |i: usize, r: usize| match capacity[r].is_positive() {
            true => (&users[i].demand[r] / &capacity[r]).to_f64(),
            false => 0.0,
        };
        let tasks = |i: usize| match (instance.lacking(&users[i]), &users[i].tasks) {
            (Some(_), _) => 0.0,
            (None, Some(tasks)) => tasks.to_f64(),
            (None, None) => f64::INFINITY,
        };
        let mut shape = Shape::default();
        shape.fill(users.len(), capacity.len(), demand, |i, r| users[i].weight[r].to_f64(), tasks);
        if users.iter().all(|user| user.one_weight().is_some()) {
            shape.cover();
        }
        shape
    }

    fn fill(
        &mut self,
        users: usize,
        dims: usize,
        demand: impl Fn(usize, usize) -> f64,
        weight: impl Fn(usize, usize) -> f64,
        tasks: impl Fn(usize) -> f64,
    ) {
        for list in [&mut self.demand, &mut self.per_level, &mut self.cap] {
            list.clear();
        }
        self.outside.clear();
        self.apart.clear();
        for i in 0..users {
            let dominant = (0..dims).map(|r| demand(i, r)).fold(0.0, f64::max);
            if dominant > 0.0 && tasks(i) > 0.0 {
                self.outside.push((i, dominant));
                self.cap.push((tasks(i) * dominant).min(ABUNDANCE));
            } else {
                self.apart.push((i, tasks(i)));
            }
        }
        (self.users, self.dims) = (self.outside.len(), dims);
        reset(&mut self.covered, dims, false);
        for r in 0..dims {
            for &(i, dominant) in &self.outside {
                let share = demand(i, r) / dominant;
                self.demand.push(share);
                self.per_level.push(weight(i, r) / share);
            }
        }
    }

    /// Marks a resource as covered if each user needs at most as much of it as of another resource, and each user has one weight. If a
    /// covered resource were used up, its shares would equal those of the other resource, so no user needs it as a bottleneck.
    fn cover(&mut self) {
        for r in 0..self.dims {
            let covers = |s: usize| {
                let mut pairs = self.column(s).iter().zip(self.column(r));
                s != r && !self.covered[s] && pairs.all(|(more, less)| more >= less)
            };
            self.covered[r] = (0..self.dims).any(covers);
        }
    }

    pub fn column(&self, r: usize) -> &[f64] {
        &self.demand[r * self.users..][..self.users]
    }

    pub fn per_level(&self, r: usize) -> &[f64] {
        &self.per_level[r * self.users..][..self.users]
    }

    /// Returns the tasks of all users, in the caller's order.
    pub fn tasks(&self, units: &[f64]) -> Vec<f64> {
        let mut tasks = vec![0.0; self.outside.len() + self.apart.len()];
        for (&(i, dominant), units) in self.outside.iter().zip(units) {
            tasks[i] = units / dominant;
        }
        for &(i, all) in &self.apart {
            tasks[i] = all;
        }
        tasks
    }

    /// Returns the caller's index of each user.
    pub fn names(&self) -> impl Iterator<Item = usize> + '_ {
        self.outside.iter().map(|(i, _)| *i)
    }

    /// Places each user at the minimum of its tasks and the levels (infinite where a resource limits no user).
    pub fn place(&self, levels: &[f64], at: &mut Position) {
        at.units.clone_from(&self.cap);
        reset(&mut at.source, self.users, TASKS);
        reset(&mut at.slope, self.users, 0.0);
        reset(&mut at.usage, self.dims, 0.0);
        reset(&mut at.slopes, self.dims * self.dims, 0.0);
        reset(&mut at.held, self.dims, 0);
        for (r, &level) in levels.iter().enumerate().filter(|(_, level)| level.is_finite()) {
            for (i, &rate) in self.per_level(r).iter().enumerate() {
                let reached = level * rate;
                if reached < at.units[i] {
                    (at.units[i], at.source[i], at.slope[i]) = (reached, r, rate);
                }
            }
        }
        for &s in at.source.iter().filter(|s| **s != TASKS) {
            at.held[s] += 1;
        }
        for r in 0..self.dims {
            let slopes = &mut at.slopes[r * self.dims..][..self.dims];
            let mut usage = 0.0;
            for (i, &demand) in self.column(r).iter().enumerate() {
                usage += demand * at.units[i];
                if let Some(slope) = slopes.get_mut(at.source[i]) {
                    *slope += demand * at.slope[i];
                }
            }
            at.usage[r] = usage;
        }
    }

    /// Returns the violation of the definition: the largest excess of a resource or deficit of a user's bottleneck, relative to capacities,
    /// levels and tasks.
    pub fn residual(&self, units: &[f64]) -> f64 {
        let mut worst = 0.0f64;
        let mut lack: Vec<f64> = units.iter().zip(&self.cap).map(|(units, cap)| (1.0 - units / cap).abs()).collect();
        for r in 0..self.dims {
            let usage: f64 = self.column(r).iter().zip(units).map(|(demand, units)| demand * units).sum();
            let levels = || units.iter().zip(self.per_level(r)).map(|(units, rate)| units / rate);
            let highest = levels().fold(0.0, f64::max);
            worst = worst.max(usage - 1.0);
            if highest > 0.0 {
                for (lack, level) in lack.iter_mut().zip(levels()).filter(|(_, level)| *level > 0.0) {
                    *lack = lack.min((1.0 - usage).max(1.0 - level / highest));
                }
            }
        }
        let worst = lack.into_iter().fold(worst, f64::max);
        // A NaN would pass every comparison above.
        if units.iter().all(|units| units.is_finite()) { worst } else { f64::INFINITY }
    }

    /// Returns the highest level of resource `r` at which it is not overfull, with the other levels given; infinite if it has enough for
    /// all users. Uses Newton's method from below on a concave function with finitely many pieces.
    pub fn best_level(&self, r: usize, levels: &[f64], others: &mut Vec<f64>) -> f64 {
        others.clone_from(&self.cap);
        for (s, &level) in levels.iter().enumerate().filter(|(s, level)| *s != r && level.is_finite()) {
            for (other, rate) in others.iter_mut().zip(self.per_level(s)) {
                *other = other.min(level * rate);
            }
        }
        let (demand, rate) = (self.column(r), self.per_level(r));
        let mut level = 0.0;
        loop {
            let (mut usage, mut slope) = (0.0, 0.0);
            for i in 0..self.users {
                if demand[i] > 0.0 {
                    let reached = level * rate[i];
                    if reached < others[i] {
                        usage += demand[i] * reached;
                        slope += demand[i] * rate[i];
                    } else {
                        usage += demand[i] * others[i];
                    }
                }
            }
            if slope == 0.0 {
                return if usage > 1.0 { level } else { f64::INFINITY };
            }
            let next = level + (1.0 - usage) / slope;
            if next <= level * (1.0 + f64::EPSILON) {
                return level;
            }
            level = next;
        }
    }
}

fn reset<T: Clone>(list: &mut Vec<T>, length: usize, value: T) {
    list.clear();
    list.resize(length, value);
}
