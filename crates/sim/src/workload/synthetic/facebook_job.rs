//! One job of the generator `facebook`: its size, demands, durations and user, derived from its number.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, LogNormal};

use super::distributions::{to_amount, to_span};
use super::facebook::{DemandRule, Facebook, Users};
use super::published::{self, Demands, SizeRange};
use super::random::{Weighted, numbered, parts, stream};
use crate::workload::TaskSet;
use plimsoll_base::units::{Resources, Span, Time, UserId};

/// The random streams and tables for drawing jobs.
pub(super) struct Draws {
    sizes: ChaCha8Rng,
    users: ChaCha8Rng,
    demands: ChaCha8Rng,
    durations: ChaCha8Rng,
    bins: Vec<SizeRange>,
    bin: Weighted,
    user: Weighted,
    /// The probability that a job of several tasks has no reduce.
    map_only: f64,
    noise: LogNormal<f64>,
}

impl Draws {
    pub(super) fn new(spec: &Facebook, seed: u64) -> Draws {
        let bins = size_bins(spec.max_tasks);
        let total: f64 = bins.iter().map(|bin| bin.jobs).sum();
        let single = bins[0].jobs / total;
        let users = if let Users::Count(count) = spec.users { count } else { 1 };
        Draws {
            sizes: stream(seed, "facebook/sizes"),
            users: stream(seed, "facebook/users"),
            demands: stream(seed, "facebook/demands"),
            durations: stream(seed, "facebook/durations"),
            bin: Weighted::new(bins.iter().map(|bin| bin.jobs)).expect("the first bin has jobs"),
            bins,
            user: Weighted::zipf(users, spec.zipf).expect("there is a user"),
            // Jobs of one task have no reduces anyway.
            map_only: if single < 1.0 { ((spec.map_only - single) / (1.0 - single)).max(0.0) } else { 1.0 },
            noise: LogNormal::new(0.0, spec.noise).expect("the noise was checked"),
        }
    }

    pub(super) fn user(&self, number: u64) -> UserId {
        UserId(self.user.sample(&mut numbered(&self.users, number)) as u32)
    }

    /// Returns the rows of a job, without its id and its user.
    pub(super) fn task_sets(&self, spec: &Facebook, number: u64, submit: Time) -> Vec<TaskSet> {
        let (maps, reduces) = self.size(spec, &mut numbered(&self.sizes, number));
        let mut demands = numbered(&self.demands, number);
        let mut durations = numbered(&self.durations, number);
        let median = published::TASK_DURATIONS.quantile(durations.random()).min(spec.duration_cap.0.seconds());
        let mut sets = Vec::new();
        let stages: [(u32, u32, &Demands); 2] = [(0, maps, &published::MAP), (1, reduces, &published::REDUCE)];
        for (stage, tasks, table) in stages {
            let mut demand = draw_demand(table, spec.jitter, &mut demands);
            for (part, tasks) in parts(tasks, spec.noise_sets).enumerate() {
                if part > 0 && spec.demand == DemandRule::PerTaskSet {
                    demand = draw_demand(table, spec.jitter, &mut demands);
                }
                // Every task takes at least a microsecond.
                let duration = to_span(median * self.noise.sample(&mut durations)).max(Span(1));
                let after = if stage == 1 { vec![0] } else { Vec::new() };
                sets.push(TaskSet { submit, duration, tasks, demand, stage: Some(stage), after, ..TaskSet::default() });
            }
        }
        sets
    }

    /// Returns the numbers of maps and reduces of a job.
    fn size(&self, spec: &Facebook, rng: &mut ChaCha8Rng) -> (u32, u32) {
        let bin = self.bins[self.bin.sample(rng)];
        let tasks = log_uniform(bin.from, bin.to, rng.random()) as u32;
        let map_only = rng.random::<f64>() < self.map_only;
        let share = 2.0 * spec.reduce_share * rng.random::<f64>();
        if tasks == 1 || map_only {
            return (tasks, 0);
        }
        let reduces = ((f64::from(tasks) * share).round() as u32).clamp(1, tasks - 1);
        (tasks - reduces, reduces)
    }
}

/// Returns the bins of sizes, in percent of jobs, limited to `max_tasks`.
fn size_bins(max_tasks: u32) -> Vec<SizeRange> {
    let most = u64::from(max_tasks);
    let large = published::DRF_BINS[1..].iter();
    let large = large.map(|bin| SizeRange { jobs: bin.jobs * 100.0 / published::JOBS_PER_DAY, ..*bin });
    let all = published::SMALL_BINS.into_iter().chain(large);
    all.filter(|bin| bin.from <= most).map(|bin| SizeRange { to: bin.to.min(most), ..bin }).collect()
}

/// Returns a whole number from `from` to `to` . The number is log-uniformly distributed if `uniform` is uniformly distributed from 0 to 1.
fn log_uniform(from: u64, to: u64, uniform: f64) -> u64 {
    let (low, high) = ((from as f64 - 0.5).ln(), (to as f64 + 0.5).ln());
    ((low + (high - low) * uniform).exp().round() as u64).clamp(from, to)
}

fn draw_demand(table: &Demands, jitter: f64, rng: &mut ChaCha8Rng) -> Resources {
    let point = table.points[table.draw.sample(rng)];
    let mut jittered = |value: f64| value * (1.0 + jitter * (2.0 * rng.random::<f64>() - 1.0));
    let mut demand = Resources::ZERO;
    demand.0[0] = to_amount(jittered(point.cpu), 1000).max(1);
    demand.0[1] = to_amount(jittered(point.memory), 1024).max(1);
    demand
}
