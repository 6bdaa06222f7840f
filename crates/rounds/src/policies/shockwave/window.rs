//! The window program: which jobs run in the next rounds (Shockwave, section 6 and `shockwave.py`).
//!
//! Job `i` runs in `n_i` of `F` rounds. Its value `g_i(n)` is concave, its remaining time `h_i(n)` is convex and decreasing, and the objective
//! is `sum_i g_i(n_i) - k max_i h_i(n_i)`. The published program is a mixed-integer program over (job, round), solved within a time limit.
//! Here it is solved in two steps:
//!
//! 1. *Counts.* The constraint of each round is relaxed to the capacity of all rounds, `sum_i s_i n_i <= M F`, with `n_i <= F`. For a bound
//!    `z` on the remaining times each job has a least count. The increments of the largest value use the rest of the capacity: inside
//!    a class of equal scale the best increments are a prefix of the sorted list, because values are concave; the classes are combined
//!    by enumeration. Bounds `z` are enumerated upwards from the least feasible one, until even the value without a bound cannot win. The
//!    result is the exact optimum of the relaxation, an upper bound of the program. Values are integers here, so sums have no order.
//! 2. *Rounds.* `packing.rs` places the counts in rounds. For jobs of one scale that always succeeds, so the result is optimal. With wide
//!    jobs some rounds may not fit; then a local search changes counts. [`WindowPlan::gap`] is the distance to the bound.

use super::packing::{arrange, pack};

/// The abscissas and the logarithms of the piecewise linear logarithm; the first is the logarithm of 10^-6.
const LOGARITHM: [(f64, f64); 6] = [
    (0.0, -13.815_510_557_964_274),
    (0.2, -1.609_437_912_434_100_4),
    (0.4, -0.916_290_731_874_155),
    (0.6, -0.510_825_623_765_990_7),
    (0.8, -0.223_143_551_314_209_76),
    (1.0, 0.0),
];

/// Returns the piecewise linear logarithm of a share of progress.
pub fn progress_logarithm(share: f64) -> f64 {
    let share = share.clamp(0.0, 1.0);
    let at = LOGARITHM.iter().skip(1).position(|(x, _)| share <= *x).unwrap_or(LOGARITHM.len() - 2);
    let ((x0, y0), (x1, y1)) = (LOGARITHM[at], LOGARITHM[at + 1]);
    y0 + (y1 - y0) * (share - x0) / (x1 - x0)
}

/// A job of the window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WindowJob {
    /// The accelerators that it uses together.
    pub scale: u32,
    /// Its number of epochs `E`.
    pub epochs: f64,
    /// Its complete epochs `e`.
    pub done: f64,
    /// The expected seconds of an epoch `d`.
    pub epoch_s: f64,
    /// The estimate of its remaining seconds `r`.
    pub remaining_s: f64,
    /// Its weight `u`.
    pub weight: f64,
}

impl WindowJob {
    /// Returns the epochs planned in `rounds` rounds of `round_s` seconds.
    fn planned(&self, rounds: u32, round_s: f64) -> f64 {
        (f64::from(rounds) * round_s / self.epoch_s).min(self.epochs - self.done)
    }

    /// Returns the value of its progress, without the weight.
    fn logarithm(&self, rounds: u32, round_s: f64) -> f64 {
        progress_logarithm((self.done + self.planned(rounds, round_s)) / self.epochs)
    }

    /// Returns the remaining seconds after `rounds` rounds.
    pub fn left_s(&self, rounds: u32, round_s: f64) -> f64 {
        (self.remaining_s - self.planned(rounds, round_s) * self.epoch_s).max(0.0)
    }

    /// Returns the number of rounds after which further rounds add no epochs.
    fn enough(&self, round_s: f64, most: u32) -> u32 {
        (1..=most).find(|&n| self.planned(n, round_s) >= self.epochs - self.done).unwrap_or(most)
    }
}

/// The window program.
#[derive(Clone, Debug)]
pub struct WindowProgram<'a> {
    /// The jobs.
    pub jobs: &'a [WindowJob],
    /// The accelerators `M`.
    pub accelerators: u32,
    /// The number of rounds `F`.
    pub rounds: u32,
    /// The length of a round in seconds.
    pub round_s: f64,
    /// The weight `k` of the largest remaining time.
    pub makespan_weight: f64,
}

/// A plan of a window.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowPlan {
    /// The jobs of each round, ascending.
    pub rounds: Vec<Vec<usize>>,
    /// The number of rounds of each job.
    pub counts: Vec<u32>,
    /// The objective.
    pub value: f64,
    /// The optimum of the relaxation: no plan has a larger objective.
    pub bound: f64,
}

impl WindowPlan {
    /// Returns the distance of the objective to its upper bound.
    pub fn gap(&self) -> f64 {
        (self.bound - self.value).max(0.0)
    }
}

/// One more round of a job: its value in units, and the job.
#[derive(Clone, Copy)]
struct Increment {
    value: i128,
    job: usize,
}

impl WindowProgram<'_> {
    /// Returns the objective of counts.
    pub fn objective(&self, counts: &[u32]) -> f64 {
        let norm = self.jobs.len() as f64 * f64::from(self.rounds);
        let value = |(job, &n): (&WindowJob, &u32)| job.weight * job.logarithm(n, self.round_s) / norm;
        let left = self.jobs.iter().zip(counts).map(|(job, &n)| job.left_s(n, self.round_s)).fold(0.0, f64::max);
        self.jobs.iter().zip(counts).map(value).sum::<f64>() - self.makespan_weight * left
    }

    /// Solves the program with at least `needed` rounds of each job. Returns `None` if no plan with these rounds is found.
    ///
    /// Preconditions: every scale is at least 1 and at most the number of accelerators.
    pub fn solve(&self, needed: &[u32]) -> Option<WindowPlan> {
        let (best, bound) = self.counts(needed)?;
        let mut counts = best.clone();
        if self.packed(&best).is_none() {
            // Two starts: the rounds of the best counts that fit, and the needed rounds alone.
            let mut placed = vec![0; self.jobs.len()];
            pack(self, &best).iter().flatten().for_each(|&job| placed[job] += 1);
            let starts = [placed, needed.to_vec()].into_iter().filter(|start| {
                start.iter().zip(needed).all(|(count, needed)| count >= needed) && self.packed(start).is_some()
            });
            let improved = starts.map(|mut start| {
                self.improve(&mut start, needed);
                start
            });
            // The first of equal starts.
            let better = |a: Vec<u32>, b: Vec<u32>| if self.objective(&b) > self.objective(&a) { b } else { a };
            counts = improved.reduce(better)?;
        }
        let mut rounds = self.packed(&counts)?;
        arrange(self, &mut rounds, &counts);
        Some(WindowPlan { value: self.objective(&counts), rounds, counts, bound })
    }

    /// Returns the most rounds of use to each job.
    fn most(&self) -> Vec<u32> {
        self.jobs.iter().map(|job| job.enough(self.round_s, self.rounds)).collect()
    }

    /// Returns the unit of values: a power of two near 2^-100 of the largest sum.
    fn unit(&self) -> f64 {
        let value = |job: &WindowJob| job.weight * -job.logarithm(0, self.round_s);
        let left = self.jobs.iter().map(|job| job.remaining_s).fold(0.0, f64::max) * self.makespan_weight;
        let norm = self.jobs.len() as f64 * f64::from(self.rounds);
        let largest = self.jobs.iter().map(value).fold(0.0, f64::max) + (left * norm) + 1e-30;
        let sum = largest * (self.jobs.len() as f64 + 1.0);
        let mut unit = 1.0f64;
        while sum / unit > 2f64.powi(100) {
            unit *= 2.0;
        }
        while sum / unit < 2f64.powi(99) {
            unit *= 0.5;
        }
        unit
    }

    /// Returns the counts of the relaxation's optimum and its objective, or `None` if the needed rounds exceed the capacity.
    fn counts(&self, needed: &[u32]) -> Option<(Vec<u32>, f64)> {
        let (m, round_s) = (self.jobs.len(), self.round_s);
        let capacity = u64::from(self.accelerators) * u64::from(self.rounds);
        let most: Vec<u32> = self.most().iter().zip(needed).map(|(&most, &needed)| most.max(needed)).collect();
        let norm = m as f64 * f64::from(self.rounds);
        let unit = self.unit();
        let integer = |value: f64| (value / unit).round() as i128;
        let penalty = |left: f64| integer(self.makespan_weight * norm * left);
        // The remaining times that a count can reach are the candidates of the bound.
        let mut bounds: Vec<f64> = Vec::new();
        let mut least_bound = 0.0f64;
        for (at, job) in self.jobs.iter().enumerate() {
            bounds.extend((needed[at]..=most[at]).map(|n| job.left_s(n, round_s)));
            least_bound = least_bound.max(job.left_s(most[at], round_s));
        }
        bounds.retain(|&bound| bound >= least_bound);
        bounds.sort_by(f64::total_cmp);
        bounds.dedup();
        let least = |bound: f64| -> Vec<u32> {
            let count = |at: usize| {
                (needed[at]..=most[at]).find(|&n| self.jobs[at].left_s(n, round_s) <= bound).unwrap_or(most[at])
            };
            (0..m).map(count).collect()
        };
        let volume = |counts: &[u32]| -> u64 {
            self.jobs.iter().zip(counts).map(|(job, &n)| u64::from(job.scale) * u64::from(n)).sum()
        };
        if volume(needed) > capacity {
            return None;
        }
        let first = bounds.partition_point(|&bound| volume(&least(bound)) > capacity);
        let increments = self.increments(&most, &integer);
        let evaluate = |least: &[u32]| self.best_counts(least, &increments, capacity);
        // No bound on the remaining times: the largest value of all.
        let (free, _) = evaluate(needed);
        let mut best: Option<(i128, Vec<u32>)> = None;
        for &bound in &bounds[first..] {
            if best.as_ref().is_some_and(|(value, _)| free - penalty(bound) <= *value) {
                break;
            }
            let (value, counts) = evaluate(&least(bound));
            let value = value - penalty(bound);
            if best.as_ref().is_none_or(|(before, _)| value > *before) {
                best = Some((value, counts));
            }
        }
        let (_, counts) = best?;
        let bound = self.objective(&counts);
        Some((counts, bound))
    }

    /// Returns the value of each further round of each job, not increasing.
    fn increments(&self, most: &[u32], integer: &dyn Fn(f64) -> i128) -> Vec<Vec<i128>> {
        let of_job = |(job, &most): (&WindowJob, &u32)| {
            let value = |n: u32| integer(job.weight * job.logarithm(n, self.round_s));
            let mut last = i128::MAX;
            // Rounding may make an increment larger than the one before by one unit.
            let increment = |n: u32| {
                last = last.min(value(n + 1) - value(n));
                last
            };
            (0..most).map(increment).collect()
        };
        self.jobs.iter().zip(most).map(of_job).collect()
    }

    /// Returns the counts of the largest value that are at least `least` and use at most `capacity`, and the value of their increments.
    fn best_counts(&self, least: &[u32], increments: &[Vec<i128>], capacity: u64) -> (i128, Vec<u32>) {
        let mut scales: Vec<u32> = self.jobs.iter().map(|job| job.scale).collect();
        scales.sort_unstable();
        scales.dedup();
        let mut counts = least.to_vec();
        let mut used = 0u64;
        let mut value = 0i128;
        let mut classes: Vec<Vec<Increment>> = vec![Vec::new(); scales.len()];
        for (at, job) in self.jobs.iter().enumerate() {
            used += u64::from(job.scale) * u64::from(least[at]);
            let (fixed, open) = increments[at].split_at((least[at] as usize).min(increments[at].len()));
            value += fixed.iter().sum::<i128>();
            let class = &mut classes[scales.partition_point(|&scale| scale < job.scale)];
            class.extend(open.iter().map(|&value| Increment { value, job: at }));
        }
        let room = (capacity - used.min(capacity)) as usize;
        // The sort is stable, so increments of one job stay in order.
        classes.iter_mut().for_each(|class| class.sort_by_key(|increment| std::cmp::Reverse(increment.value)));
        // The best value of the classes so far in each amount of room, and the number of increments of each class.
        let mut table = vec![0i128; room + 1];
        let mut chosen: Vec<Vec<u32>> = Vec::new();
        for (class, &scale) in classes.iter().zip(&scales) {
            let mut prefix = vec![0i128];
            for increment in class.iter().take_while(|increment| increment.value > 0) {
                prefix.push(prefix[prefix.len() - 1] + increment.value);
            }
            let scale = scale as usize;
            let mut next = vec![0i128; room + 1];
            let mut taken = vec![0u32; room + 1];
            let first = chosen.is_empty();
            for amount in 0..=room {
                let fits = (amount / scale).min(prefix.len() - 1);
                if first {
                    (next[amount], taken[amount]) = (prefix[fits], fits as u32);
                    continue;
                }
                let value = |q: usize| prefix[q] + table[amount - q * scale];
                let best = (0..=fits).max_by_key(|&q| (value(q), std::cmp::Reverse(q))).unwrap_or(0);
                (next[amount], taken[amount]) = (value(best), best as u32);
            }
            table = next;
            chosen.push(taken);
        }
        value += table[room];
        let mut amount = room;
        for ((class, taken), &scale) in classes.iter().zip(&chosen).zip(&scales).rev() {
            let count = taken[amount] as usize;
            class[..count].iter().for_each(|increment| counts[increment.job] += 1);
            amount -= count * scale as usize;
        }
        (value, counts)
    }

    /// Returns whether the packing places all rounds of the counts, and the rounds.
    fn packed(&self, counts: &[u32]) -> Option<Vec<Vec<usize>>> {
        let volume: u64 = self.jobs.iter().zip(counts).map(|(job, &n)| u64::from(job.scale) * u64::from(n)).sum();
        if volume > u64::from(self.accelerators) * u64::from(self.rounds) {
            return None;
        }
        let rounds = pack(self, counts);
        let placed: usize = rounds.iter().map(Vec::len).sum();
        let due: usize = counts.iter().map(|&count| count as usize).sum();
        (placed == due).then_some(rounds)
    }

    /// Improves counts that can be packed by single changes: a further round of a job, if necessary instead of a round of another one.
    ///
    /// A further round is also accepted without a gain: it may help only together with others that end as late.
    fn improve(&self, counts: &mut [u32], needed: &[u32]) {
        let most = self.most();
        let m = counts.len();
        let mut current = self.objective(counts);
        'next: loop {
            let mut changes: Vec<(f64, usize, Option<usize>)> = Vec::new();
            for job in 0..m {
                if counts[job] >= most[job] {
                    continue;
                }
                counts[job] += 1;
                let value = self.objective(counts);
                if value >= current {
                    changes.push((value, job, None));
                }
                for other in 0..m {
                    if other == job || counts[other] <= needed[other] {
                        continue;
                    }
                    counts[other] -= 1;
                    let value = self.objective(counts);
                    if value > current + 1e-12 * current.abs() {
                        changes.push((value, job, Some(other)));
                    }
                    counts[other] += 1;
                }
                counts[job] -= 1;
            }
            changes.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.2.is_some().cmp(&b.2.is_some())).then(a.1.cmp(&b.1)));
            for (value, job, other) in changes {
                let mut changed = counts.to_vec();
                changed[job] += 1;
                if let Some(other) = other {
                    changed[other] -= 1;
                }
                if self.packed(&changed).is_some() {
                    counts.copy_from_slice(&changed);
                    current = value;
                    continue 'next;
                }
            }
            return;
        }
    }
}
