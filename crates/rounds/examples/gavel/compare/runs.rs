//! The simulations that published rows need; each is run once.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::sync::{Mutex, OnceLock};
use std::time::Instant;

use plimsoll_base::error::Result;
use plimsoll_base::units::Span;
use plimsoll_rounds::mechanism::{Cluster, Options};
use plimsoll_rounds::policies::{Bottlenecks, PolicyOptions, policy};
use plimsoll_rounds::simulate::{JobWindow, RoundOutcome, RoundSetup, RoundSummary, simulate, simulate_ideal};
use plimsoll_rounds::table::{Arrivals, JobOptions, Throughputs, TrainingJob, read_jobs};

use super::Row;

/// The jobs over which means are computed.
const WINDOW: JobWindow = JobWindow { from: 4000, to: 5000 };

/// One simulation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Simulation {
    /// `single`, `multi` or `multi_priorities`.
    pub trace: String,
    /// The policy.
    pub policy: String,
    /// Thousandths of a job per hour; 0: all jobs at time 0.
    pub milli: u64,
    /// The number of jobs of a static trace.
    pub jobs: usize,
    /// The seed.
    pub seed: u64,
    /// The round length in seconds.
    pub round: u64,
    /// Ideal fractions.
    pub ideal: bool,
    /// The accelerators.
    pub cluster: [u32; 3],
}

impl Simulation {
    /// Returns the simulations of a published row, one per seed.
    pub fn of_row(group: &str, row: &Row) -> Vec<Simulation> {
        let figure = row.text("figure");
        let trace = match (group, figure) {
            ("priorities", _) => "multi_priorities",
            ("makespan", _) => row.text("jobs_kind"),
            (_, "10" | "fifo-multi" | "9") => "multi",
            _ => "single",
        };
        let seeds: &[u64] = if row.text("seed") == "0" { &[0] } else { &[0, 1, 2] };
        let mut cluster = [36; 3];
        if let Some(text) = row.get("cluster_v100_p100_k80") {
            let counts = text.split(':').map(|count| count.parse().unwrap_or(0));
            cluster.iter_mut().zip(counts).for_each(|(own, count)| *own = count);
        }
        let ideal = row.text("ideal") == "1";
        let key = |&seed: &u64| Simulation {
            trace: trace.to_owned(),
            policy: row.text("policy").to_owned(),
            milli: row
                .get("jobs_per_hour")
                .map_or(0, |rate| (rate.parse::<f64>().unwrap_or(0.0) * 1000.0).round() as u64),
            jobs: row.get("jobs").and_then(|text| text.parse().ok()).unwrap_or(10_000),
            seed,
            round: row.get("round_s").and_then(|text| text.parse().ok()).unwrap_or(360),
            ideal,
            cluster,
        };
        seeds.iter().map(key).collect()
    }

    /// Returns a label without the seed.
    pub fn label(&self) -> String {
        let size = if self.milli == 0 {
            format!("{} {} jobs on {:?}", self.trace, self.jobs, self.cluster)
        } else {
            format!("{} at {} jobs/h", self.trace, self.milli as f64 / 1000.0)
        };
        let round = if self.ideal { " ideal".to_owned() } else { format!(" round {}", self.round) };
        format!("{} {size}{}", self.policy, if self.round == 360 && !self.ideal { "" } else { &round })
    }

    fn run(&self, table: &Throughputs, jobs: &[TrainingJob]) -> Result<RoundOutcome> {
        let row = policy(&self.policy)?;
        let types: Vec<usize> = (0..3).filter(|&j| self.cluster[j] > 0).collect();
        let names: Vec<&str> = types.iter().map(|&j| ["v100", "p100", "k80"][j]).collect();
        let counts: Vec<u32> = types.iter().map(|&j| self.cluster[j]).collect();
        let cluster = Cluster::single(&names, &counts);
        let setup = RoundSetup {
            jobs,
            table,
            cluster: &cluster,
            options: Options { seed: self.seed, round: Span(self.round * 1_000_000), ..Options::default() },
            // The published search for bottlenecks stops after one step.
            policy: PolicyOptions { seed: self.seed, bottlenecks: Bottlenecks::Published, ..PolicyOptions::default() },
            window: (self.milli > 0).then_some(WINDOW),
            log_rounds: false,
        };
        if self.ideal { simulate_ideal(&setup, row) } else { simulate(&setup, row) }
    }
}

/// Returns the CPU seconds of this thread (Linux), or the seconds since the first call.
fn thread_seconds() -> f64 {
    static BEGIN: OnceLock<Instant> = OnceLock::new();
    let stated = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanos = stated.and_then(|text| text.split_whitespace().next()?.parse::<f64>().ok());
    nanos.map_or_else(|| BEGIN.get_or_init(Instant::now).elapsed().as_secs_f64(), |nanos| nanos / 1e9)
}

/// The part of an outcome that comparisons use.
struct Result_ {
    seconds: f64,
    times: Vec<f64>,
    weights: Vec<u32>,
    summary: RoundSummary,
}

/// All simulations.
pub struct Runs(BTreeMap<Simulation, std::result::Result<Result_, String>>);

impl Runs {
    /// Runs all simulations.
    pub fn compute(folder: &Path, mut keys: Vec<Simulation>, threads: usize) -> Result<Runs> {
        keys.sort();
        keys.dedup();
        // The slowest runs begin first.
        keys.sort_by_key(|key| (!key.policy.ends_with("_packed"), std::cmp::Reverse(key.milli)));
        let table = Throughputs::read(&folder.join("throughputs_simulation.csv"), None)?;
        let (queue, done) = (Mutex::new(keys.into_iter()), Mutex::new(BTreeMap::new()));
        let work = || {
            let next = || queue.lock().ok().and_then(|mut queue| queue.next());
            while let Some(key) = next() {
                let begin = thread_seconds();
                let arrivals = if key.milli == 0 { Arrivals::AtOnce } else { Arrivals::PerHour(key.milli) };
                let options = JobOptions { arrivals, reference: "v100", single: false, at_most: key.jobs };
                let path = folder.join(format!("trace_{}_seed{}.csv", key.trace, key.seed));
                let result = read_jobs(&path, &table, &options).and_then(|jobs| {
                    let outcome = key.run(&table, &jobs)?;
                    let window = if key.milli == 0 { JobWindow { from: 0, to: jobs.len() as u32 } } else { WINDOW };
                    let names = ["v100", "p100", "k80"];
                    let cluster = Cluster::single(&names[..outcome.busy.len()], &key.cluster[..outcome.busy.len()]);
                    let within = &jobs[window.from as usize..window.to as usize];
                    Ok(Result_ {
                        times: outcome.completion_times(window),
                        weights: within.iter().map(|job| job.weight).collect(),
                        summary: outcome.summary(&cluster, window),
                        seconds: thread_seconds() - begin,
                    })
                });
                if let Ok(mut done) = done.lock() {
                    done.insert(key, result.map_err(|error| error.to_string()));
                }
            }
        };
        std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
        Ok(Runs(done.into_inner().unwrap_or_default()))
    }

    fn get(&self, key: &Simulation) -> Option<&Result_> {
        self.0.get(key)?.as_ref().ok()
    }

    fn mean_over(&self, keys: &[Simulation], value: impl Fn(&Result_) -> f64) -> Option<f64> {
        let values: Option<Vec<f64>> = keys.iter().map(|key| self.get(key).map(&value)).collect();
        values.map(|values| values.iter().sum::<f64>() / values.len() as f64)
    }

    /// Returns the mean completion time over seeds in hours, of all jobs or those of a weight.
    pub fn mean_h(&self, keys: &[Simulation], weight: Option<u32>) -> Option<f64> {
        self.mean_over(keys, |run| {
            let own = run.times.iter().zip(&run.weights).filter(|(_, own)| weight.is_none_or(|weight| weight == **own));
            let times: Vec<f64> = own.map(|(time, _)| *time).collect();
            times.iter().sum::<f64>() / times.len() as f64 / 3600.0
        })
    }

    /// Returns the mean makespan over seeds in hours.
    pub fn makespan_h(&self, keys: &[Simulation]) -> Option<f64> {
        self.mean_over(keys, |run| run.summary.makespan_s / 3600.0)
    }

    /// Returns quantiles in hours.
    pub fn quantiles_h(&self, key: &Simulation) -> Option<[f64; 7]> {
        self.get(key).map(|run| run.summary.quantiles_s.map(|value| value / 3600.0))
    }

    /// Returns the mean over jobs of the ratio of completion times.
    pub fn mean_ratio(&self, key: &Simulation, isolated: &Simulation) -> Option<f64> {
        let (own, base) = (self.get(key)?, self.get(isolated)?);
        let ratios: f64 = own.times.iter().zip(&base.times).map(|(own, base)| own / base).sum();
        Some(ratios / own.times.len() as f64)
    }

    /// Returns whether a run is at most 1.25 times as slow as 17.4 h (single) or 17.3 h (multi), or 24 h for agnostic policies.
    pub fn is_steady(&self, key: &Simulation) -> bool {
        let base = if matches!(key.policy.as_str(), "isolated" | "max_min_fairness" | "finish_time_fairness") {
            23.5
        } else {
            17.4
        };
        self.get(key).is_some_and(|run| run.summary.mean_jct_s / 3600.0 <= 1.25 * base && !run.summary.unstable)
    }

    /// Returns the time of the runs.
    pub fn seconds(&self, keys: &[Simulation]) -> f64 {
        keys.iter().filter_map(|key| self.get(key)).map(|run| run.seconds).sum()
    }

    /// Writes the total time per policy, and the errors.
    pub fn write_times(&self, out: &mut impl Write) -> std::io::Result<()> {
        let mut totals: BTreeMap<&str, (usize, f64, f64)> = BTreeMap::new();
        for (key, run) in &self.0 {
            match run {
                Ok(run) => {
                    let total = totals.entry(&key.policy).or_default();
                    *total = (total.0 + 1, total.1 + run.seconds, total.2.max(run.seconds));
                }
                Err(error) => writeln!(out, "{} seed {}: {error}", key.label(), key.seed)?,
            }
        }
        for (policy, (runs, seconds, most)) in totals {
            writeln!(out, "time of {policy}: {runs} runs, {seconds:.1} s, longest {most:.1} s")?;
        }
        Ok(())
    }
}
