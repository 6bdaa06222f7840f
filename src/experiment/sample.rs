//! Fairness at one instant, and its mean over the sampling grid.

use crate::books::WEIGHT_ONE;
use crate::cluster::Machines;
use crate::error::Result;
use crate::fair::Levels;
use crate::metrics::{
    Deviation, Incentive, Standing, UserSnapshot, Wish, envy, fluid_shares, gap, gini, jain, ratio, standings,
    stranded, theorem7_broken,
};
use crate::record::State;
use crate::units::{MAX_DIMS, MachineId, Span, Time, UserId};

/// Everything that is evaluated at a grid point.
#[derive(Clone, Debug, Default)]
pub(super) struct Sample {
    pub active: u32,
    pub backlogged: u32,
    pub jain: Option<f64>,
    pub gini: Option<f64>,
    pub gap: Option<f64>,
    pub ratio: Option<f64>,
    pub envy_max: Option<f64>,
    pub envy_count: Option<u64>,
    pub envy_unbounded: Option<u64>,
    pub incentive_min: Option<f64>,
    pub incentive_below: Option<u64>,
    /// Per resource; `None` when pooled, under slots, or when nothing waits.
    pub stranded: Option<[f64; MAX_DIMS]>,
    pub standings: Vec<Option<Standing>>,
    /// Dominant share of every active user, unweighted.
    pub shares: Vec<f64>,
    /// The same with divisible tasks.
    pub fluid: Vec<f64>,
    pub deviation: Option<Deviation>,
    /// The largest task of a backlogged user, as a weighted dominant share.
    pub task_max: Option<f64>,
    pub theorem7_broken: Option<bool>,
}

impl Sample {
    /// Evaluates the state, over the users that run or wait for something; `largest` are the weighted dominant shares of
    /// each one's largest task.
    ///
    /// Errors: [`Error::NotConverged`](crate::error::Error::NotConverged).
    pub fn take(state: &State, active: &[UserId], largest: &[f64], levels: &mut Levels) -> Result<Sample> {
        let books = state.books;
        let (dims, capacity) = (books.dims(), books.capacity());
        let fraction = |amount: f64, d: usize| if capacity.0[d] == 0 { 0.0 } else { amount / capacity.0[d] as f64 };
        let snapshots: Vec<UserSnapshot> = active
            .iter()
            .map(|&user| {
                let weights = books.weights().each(books.weight_class(user));
                let tasks = (books.running(user) + books.waiting(user)) as f64;
                let each = |of: &dyn Fn(usize) -> f64| std::array::from_fn(|d| if d < dims { of(d) } else { 0.0 });
                UserSnapshot {
                    bundle: each(&|d| fraction(books.used(user)[d] as f64, d)),
                    // The mean of all its tasks: the demand of the next one says little of the others.
                    demand: each(&|d| fraction(books.wanted(user, d) as f64 / tasks, d)),
                    weight: weights.map(|weight| weight as f64 / WEIGHT_ONE as f64),
                    tasks,
                    backlogged: books.waiting(user) > 0,
                }
            })
            .collect();
        let dominant = |user: &UserSnapshot, weighted: bool| {
            let weight = |d: usize| if weighted { user.weight[d] } else { 1.0 };
            (0..dims).map(|d| user.bundle[d] / weight(d)).fold(0.0, f64::max)
        };
        let backlogged: Vec<f64> =
            snapshots.iter().filter(|user| user.backlogged).map(|user| dominant(user, true)).collect();
        let shares: Vec<f64> = snapshots.iter().map(|user| dominant(user, false)).collect();
        let wish = |user: &UserSnapshot| Wish { demand: user.demand, weight: user.weight, tasks: user.tasks };
        let wishes: Vec<Wish> = snapshots.iter().map(wish).collect();
        let fluid = fluid_shares(levels, &wishes, dims)?;
        let tasks: Vec<f64> =
            snapshots.iter().zip(largest).filter(|(user, _)| user.backlogged).map(|(_, task)| *task).collect();
        let envy = envy(&snapshots, dims);
        let standings = standings(&snapshots, dims);
        let incentive = Incentive::of(&standings);
        Ok(Sample {
            active: active.len() as u32,
            backlogged: backlogged.len() as u32,
            jain: jain(&backlogged),
            gini: gini(&backlogged),
            gap: gap(&backlogged),
            ratio: ratio(&backlogged),
            envy_max: envy.and_then(|envy| envy.max_bounded),
            envy_count: envy.map(|envy| envy.count as u64),
            envy_unbounded: envy.map(|envy| envy.unbounded as u64),
            incentive_min: incentive.map(|incentive| incentive.min_ratio),
            incentive_below: incentive.map(|incentive| incentive.below as u64),
            stranded: state
                .machines
                .filter(|_| !backlogged.is_empty() && books.lens_is_plain())
                .map(|machines| stranded_now(machines, state, active)),
            standings,
            deviation: Deviation::of(&shares, &fluid),
            task_max: tasks.iter().copied().reduce(f64::max),
            theorem7_broken: theorem7_broken(&backlogged, &tasks),
            shares,
            fluid,
        })
    }
}

/// The stranded capacity of a state.
fn stranded_now(machines: &Machines, state: &State, active: &[UserId]) -> [f64; MAX_DIMS] {
    let mut heads: Vec<(u32, &[u64])> = Vec::new();
    for &user in active.iter().filter(|&&user| state.books.waiting(user) > 0) {
        state.waiting.heads(user, &mut |scope, need| heads.push((scope, need)));
    }
    let may_use = |scope: u32, machine: MachineId| state.waiting.may_use(scope, machine);
    stranded(machines, state.books.capacity(), state.books.dims(), &heads, may_use)
}

/// A mean over grid points at which the value exists.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct GridMean {
    sum: f64,
    points: u64,
}

impl GridMean {
    /// A value that holds at so many grid points.
    pub fn add(&mut self, value: Option<f64>, points: u64) {
        if let Some(value) = value {
            self.sum += value * points as f64;
            self.points += points;
        }
    }

    pub fn mean(&self) -> Option<f64> {
        (self.points > 0).then(|| self.sum / self.points as f64)
    }
}

/// The sampling grid and the means over it.
#[derive(Clone, Debug)]
pub(super) struct Sampler {
    pub step: Span,
    next: Time,
    pub gini: GridMean,
    pub gap: GridMean,
    pub ratio: GridMean,
    pub envy_max: GridMean,
    pub envy_count: GridMean,
    pub envy_unbounded: GridMean,
    pub incentive_min: GridMean,
    pub incentive_below: GridMean,
    pub stranded: [GridMean; MAX_DIMS],
    pub fragmentation: GridMean,
    /// Of points at which somebody waits, as all the others.
    pub deviation_mean: GridMean,
    pub deviation_max: GridMean,
    pub theorem7_broken: GridMean,
}

impl Sampler {
    pub fn new(step: Span, from: Time) -> Sampler {
        let mean = GridMean::default();
        Sampler {
            step: Span(step.0.max(1)),
            next: from,
            gini: mean,
            gap: mean,
            ratio: mean,
            envy_max: mean,
            envy_count: mean,
            envy_unbounded: mean,
            incentive_min: mean,
            incentive_below: mean,
            stranded: [mean; MAX_DIMS],
            fragmentation: mean,
            deviation_mean: mean,
            deviation_max: mean,
            theorem7_broken: mean,
        }
    }

    /// The first grid point from the last one asked for and before `to`, and how many there are.
    pub fn points(&mut self, to: Time) -> Option<(Time, u64)> {
        if self.next >= to {
            return None;
        }
        let (first, points) = (self.next, (to.0 - self.next.0).div_ceil(self.step.0));
        self.next = Time(first.0 + points * self.step.0);
        Some((first, points))
    }

    /// Adds the state of the machines, whether or not any user waits.
    pub fn watch(&mut self, machines: Option<&Machines>, points: u64) {
        let fragmentation = machines.and_then(Machines::fragmentation);
        self.fragmentation.add(fragmentation.map(|fragmentation| fragmentation.share()), points);
    }

    /// Adds a sample that holds at so many grid points.
    pub fn add(&mut self, sample: &Sample, points: u64) {
        self.gini.add(sample.gini, points);
        self.gap.add(sample.gap, points);
        self.ratio.add(sample.ratio, points);
        self.envy_max.add(sample.envy_max, points);
        self.envy_count.add(sample.envy_count.map(|count| count as f64), points);
        self.envy_unbounded.add(sample.envy_unbounded.map(|count| count as f64), points);
        self.incentive_min.add(sample.incentive_min, points);
        let below = |count: u64| count as f64 / f64::from(sample.backlogged.max(1));
        self.incentive_below.add(sample.incentive_below.map(below), points);
        let deviation = sample.deviation.filter(|_| sample.backlogged > 0);
        self.deviation_mean.add(deviation.map(|deviation| deviation.mean), points);
        self.deviation_max.add(deviation.map(|deviation| deviation.max), points);
        self.theorem7_broken.add(sample.theorem7_broken.map(|broken| f64::from(u8::from(broken))), points);
        for (mean, d) in self.stranded.iter_mut().zip(0..) {
            mean.add(sample.stranded.map(|stranded: [f64; MAX_DIMS]| stranded[d as usize]), points);
        }
    }
}
