//! Models of Gavel and Shockwave: lists of jobs on clusters of several accelerator types, in rounds of `plimsoll_rounds`.
//!
//! A plan is a TOML file with the keys of [`RoundsPlan`]; its folder has the prepared files `throughputs.csv` and `jobs.csv`.

pub mod entities;
pub mod parts;

use std::path::Path;

use serde::Deserialize;

use super::models::{PredictionDraws, read_plan};
use super::outcome::{JobOutcome, RunOutcome};
use plimsoll_base::error::{Error, Result};
use plimsoll_base::units::Span;
use plimsoll_rounds::mechanism::{Cluster, Options};
use plimsoll_rounds::policies::{Bottlenecks, PolicyOptions, policy};
use plimsoll_rounds::simulate::{JobWindow, RoundOutcome, RoundSetup, simulate, simulate_ideal};
use plimsoll_rounds::table::{Arrivals, JobOptions, Throughputs, TrainingJob, read_jobs};

/// The plan of a simulation.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RoundsPlan {
    /// The name of the plan, for readers of the file.
    #[serde(rename = "name")]
    _name: String,
    /// The authors' simulator, which sets the options of the rounds.
    pub simulator: RoundsSimulator,
    /// The worker types. The first is the reference of durations.
    pub types: Vec<String>,
    /// The accelerators of each type, one per machine.
    pub counts: Vec<u32>,
    /// The rows of the throughput table, as `COLUMN=TEXT`; absent: all.
    pub rows: Option<String>,
    /// The rate at which jobs arrive; absent: at the seconds of the list, or together.
    pub jobs_per_hour: Option<f64>,
    /// Whether all jobs arrive at 0.
    #[serde(default)]
    pub together: bool,
    /// The maximum number of jobs.
    pub jobs: Option<usize>,
    /// The jobs over which measures are computed, from the first to the one before the second; absent: all. The run ends with the last of them.
    pub window: Option<[u32; 2]>,
    /// The round length in seconds; absent: that of the simulator.
    pub round_s: Option<u64>,
    /// Whether fractions are realised without rounds.
    #[serde(default)]
    pub ideal: bool,
    /// The shortest time in seconds between two computations of ideal fractions.
    #[serde(default)]
    pub ideal_at_least_s: u64,
    /// The shortest time in seconds between two computations of fractions; absent: that of the simulator.
    pub at_least_s: Option<u64>,
    /// The search for bottlenecks of water filling.
    #[serde(default)]
    pub bottlenecks: BottleneckSearch,
    /// The seed of the policy's own draws; absent: that of the run.
    pub policy_seed: Option<u64>,
    /// The policy of a second run: the value `ratio` divides by the completion times of that run.
    pub against: Option<String>,
    /// The draws of a prediction with intervals.
    pub draws: Option<PredictionDraws>,
}

/// The simulators of the authors.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RoundsSimulator {
    /// Rounds of 360 s, no overhead.
    Gavel,
    /// Rounds of 120 s, 20 s lost after a gap.
    Shockwave,
}

/// The search for bottlenecks of water filling.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BottleneckSearch {
    /// All jobs are final after one step, as in the published program for hierarchical policies.
    #[default]
    Published,
    /// The jobs that cannot improve are final.
    Intended,
}

/// Executes a plan under a policy with a seed. The values of the outcome are those of [`values`]; its jobs are those of the window.
/// Errors: an invalid plan, an unknown policy, and those of the files and of the run.
pub fn run(
    path: &Path,
    set: &[String],
    policy_name: Option<&str>,
    seed: Option<u64>,
    folder: &Path,
) -> Result<RunOutcome> {
    let plan: RoundsPlan = read_plan(path, set)?;
    let wrong = |problem: &str| Error::trace(path, 0, "", problem.to_owned());
    if plan.types.is_empty() || plan.types.len() != plan.counts.len() {
        return Err(wrong("types and counts have the same number of entries, at least one"));
    }
    if let Some(draws) = &plan.draws {
        draws.check(path)?;
        if plan.ideal {
            return Err(wrong("draws are of rounds, and exclude ideal"));
        }
    }
    let name = policy_name.ok_or_else(|| Error::plan("with", "no policy", "policy=NAME"))?;
    let only = match plan.rows.as_deref().map(|rows| rows.split_once('=')) {
        None => None,
        Some(Some(only)) => Some(only),
        Some(None) => return Err(wrong("rows has the form COLUMN=TEXT")),
    };
    let table = Throughputs::read(&folder.join("throughputs.csv"), only)?;
    let arrivals = match (plan.jobs_per_hour, plan.together) {
        (None, false) => Arrivals::Seconds,
        (None, true) => Arrivals::AtOnce,
        (Some(rate), false) if rate >= 0.001 => Arrivals::PerHour((rate * 1000.0).round() as u64),
        _ => return Err(wrong("jobs_per_hour is at least 0.001, and excludes together")),
    };
    let at_most = plan.jobs.unwrap_or(usize::MAX);
    let jobs = read_jobs(
        &folder.join("jobs.csv"),
        &table,
        &JobOptions { arrivals, reference: &plan.types[0], single: false, at_most },
    )?;
    let window = plan.window.map(|[from, to]| JobWindow { from, to });
    if window.is_some_and(|window| window.from >= window.to || window.to as usize > jobs.len()) {
        return Err(wrong(&format!("window is a range of the {} jobs", jobs.len())));
    }
    let types: Vec<&str> = plan.types.iter().map(String::as_str).collect();
    let cluster = Cluster::single(&types, &plan.counts);
    let seed = seed.unwrap_or_default();
    let base = match plan.simulator {
        RoundsSimulator::Gavel => Options::default(),
        RoundsSimulator::Shockwave => Options::shockwave(),
    };
    let round = plan.round_s.map_or(base.round, |seconds| Span(seconds * 1_000_000));
    let at_least = plan.at_least_s.map_or(base.at_least, |seconds| Span(seconds * 1_000_000));
    let bottlenecks = match plan.bottlenecks {
        BottleneckSearch::Published => Bottlenecks::Published,
        BottleneckSearch::Intended => Bottlenecks::Intended,
    };
    let setup = RoundSetup {
        jobs: &jobs,
        table: &table,
        cluster: &cluster,
        options: Options { seed, round, at_least, ideal_at_least: Span(plan.ideal_at_least_s * 1_000_000), ..base },
        policy: PolicyOptions { seed: plan.policy_seed.unwrap_or(seed), bottlenecks, ..PolicyOptions::default() },
        window,
        log_rounds: false,
    };
    let execute = |name: &str| {
        let row = policy(name)?;
        if plan.ideal { simulate_ideal(&setup, row) } else { simulate(&setup, row) }
    };
    let measured = window.unwrap_or(JobWindow { from: 0, to: jobs.len() as u32 });
    let outcome = execute(name)?;
    let base = plan.against.as_deref().map(execute).transpose()?;
    let mut values = values(&outcome, &jobs, &cluster, measured);
    values.extend(base.map(|base| ("ratio".to_owned(), mean_ratio(&outcome, &base, measured))));
    values.extend(alone(&jobs[measured.from as usize..measured.to as usize], &table, &types)?);
    let intervals = match &plan.draws {
        None => Vec::new(),
        Some(draws) => intervals(&setup, draws, name, measured)?,
    };
    let jobs = (measured.from..measured.to).map(|id| job_outcome(id, &outcome)).collect();
    Ok(RunOutcome { jobs, values, intervals, ..RunOutcome::default() })
}

/// Returns the interval of the completion time of each job of a window in seconds, by name. The factors are on the times that iterations and
/// preemptions take; the policy uses the rates of the table. Errors: those of the run.
fn intervals(
    setup: &RoundSetup,
    draws: &PredictionDraws,
    policy_name: &str,
    window: JobWindow,
) -> Result<Vec<(String, f64, f64)>> {
    let names: Vec<String> = setup.jobs.iter().map(|job| job.id.to_string()).collect();
    let all = draws.intervals(&names, |factors| {
        let pace = factors.jobs.iter().map(|own| (1e6 / (factors.pace * own)).round() as u32).collect();
        let mut options = Options { pace, ..setup.options.clone() };
        options.overhead.lost = Span((options.overhead.lost.0 as f64 * factors.cost).round() as u64);
        let outcome = simulate(&RoundSetup { options, ..setup.clone() }, policy(policy_name)?)?;
        Ok((0..setup.jobs.len() as u32).map(|id| completion_s(&outcome, id)).collect())
    })?;
    let inside = |(name, ..): &(String, f64, f64)| name.parse().is_ok_and(|id| window.contains(id));
    Ok(all.into_iter().filter(inside).collect())
}

/// Returns a job as readings need it.
fn job_outcome(id: u32, outcome: &RoundOutcome) -> JobOutcome {
    let job = &outcome.jobs[id as usize];
    JobOutcome {
        job: id.to_string(),
        user: id.to_string(),
        launched: u64::from(job.start.is_some()),
        submit: job.arrival.0,
        start: job.start.map(|start| start.0),
        finish: job.completion.map(|end| end.0),
        starts: u64::from(job.rounds),
        ..JobOutcome::default()
    }
}

/// The names of quantiles in hours, in the order of [`RoundSummary::quantiles_s`](plimsoll_rounds::simulate::RoundSummary).
const QUANTILE_NAMES: [&str; 7] = ["p10_h", "p25_h", "p50_h", "p75_h", "p90_h", "p95_h", "p99_h"];

/// Returns the measures of the jobs of a window by name: completion times in hours (`mean_h`, `mean_h_weight_N`, `pNN_h`) and seconds
/// (`mean_s`), the end of the run (`makespan_h`, `makespan_s`), the largest rho and the per cent of jobs above 1.05 and 1.1, the utilisation
/// without overhead, and the per cent of leases that were extended.
fn values(outcome: &RoundOutcome, jobs: &[TrainingJob], cluster: &Cluster, window: JobWindow) -> Vec<(String, f64)> {
    let summary = outcome.summary(cluster, window);
    let rho = outcome.rho(jobs, cluster.capacity().iter().sum());
    let mut values = vec![
        ("mean_h".to_owned(), summary.mean_jct_s / 3600.0),
        ("mean_s".to_owned(), summary.mean_jct_s),
        ("makespan_h".to_owned(), summary.makespan_s / 3600.0),
        ("makespan_s".to_owned(), summary.makespan_s),
        ("worst_rho".to_owned(), rho.worst),
        ("above_1_05".to_owned(), 100.0 * rho.above_1_05),
        ("above_1_1".to_owned(), 100.0 * rho.above_1_1),
        ("utilisation".to_owned(), summary.useful_utilisation),
        ("leases_extended".to_owned(), 100.0 * summary.lease_extension),
    ];
    values.extend(QUANTILE_NAMES.iter().zip(summary.quantiles_s).map(|(name, s)| ((*name).to_owned(), s / 3600.0)));
    let mut weights: Vec<u32> = jobs.iter().map(|job| job.weight).collect();
    weights.sort_unstable();
    weights.dedup();
    for weight in weights {
        let own = (window.from..window.to).filter(|&id| jobs[id as usize].weight == weight);
        let times: Vec<f64> = own.filter_map(|id| completion_s(outcome, id)).collect();
        let mean = times.iter().sum::<f64>() / times.len() as f64 / 3600.0;
        values.push((format!("mean_h_weight_{weight}"), mean));
    }
    values
}

fn completion_s(outcome: &RoundOutcome, id: u32) -> Option<f64> {
    let job = &outcome.jobs[id as usize];
    Some(job.completion?.since(job.arrival).seconds())
}

/// Returns the mean over jobs of the completion time divided by that in another run.
fn mean_ratio(outcome: &RoundOutcome, base: &RoundOutcome, window: JobWindow) -> f64 {
    let ratio = |id: u32| Some(completion_s(outcome, id)? / completion_s(base, id)?);
    let ratios: Vec<f64> = (window.from..window.to).filter_map(ratio).collect();
    ratios.iter().sum::<f64>() / ratios.len() as f64
}

/// Returns the running times of jobs alone in hours: the mean on the first type (`alone_h`), the mean and the largest one with each job on
/// its fastest type (`fastest_h`, `longest_h`).
fn alone(jobs: &[TrainingJob], table: &Throughputs, types: &[&str]) -> Result<[(String, f64); 3]> {
    let (mut sums, mut longest) = ([0.0; 2], 0.0f64);
    for job in jobs {
        let rates: Result<Vec<f64>> =
            types.iter().map(|worker| Ok(table.alone(&job.job_type, job.scale, worker)?.per_s)).collect();
        let rates = rates?;
        let hours = |rate: f64| job.iterations as f64 / 1e6 / rate / 3600.0;
        sums[0] += hours(rates[0]);
        let shortest = hours(rates.iter().copied().fold(0.0, f64::max));
        sums[1] += shortest;
        longest = longest.max(shortest);
    }
    let mean = |at: usize| sums[at] / jobs.len() as f64;
    Ok([("alone_h".to_owned(), mean(0)), ("fastest_h".to_owned(), mean(1)), ("longest_h".to_owned(), longest)])
}

#[cfg(test)]
mod tests;
