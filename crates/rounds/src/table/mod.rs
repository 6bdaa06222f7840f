//! Throughput tables and lists of jobs: readers with located errors, and the rates of a workload.

mod epochs;
mod header;
mod jobs;
mod rates;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use plimsoll_base::error::{Error, Result};
use plimsoll_base::rows::{InputRow, InputRows, Separator};

pub use epochs::{EpochProfile, dataset, models, split_batch};
use header::CsvHeader;
pub use jobs::{Arrivals, BatchPhase, JobList, JobOptions, Slo, TrainingJob, read_jobs};
pub use rates::{PairRate, Rates};

/// A rate: iterations per second as a float for solvers, and per 10^12 s as an integer for progress.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rate {
    /// Iterations per second.
    pub per_s: f64,
    /// Iterations per 10^12 s, rounded to the nearest.
    pub pico: u64,
}

impl Rate {
    /// Converts iterations per second. Returns `None` if the value is negative, not finite, above 10^6, or positive and below 10^-12.
    pub fn new(per_s: f64) -> Option<Rate> {
        let pico = (per_s * 1e12).round();
        let accepted = (0.0..=1e6).contains(&per_s) && (per_s == 0.0 || pico >= 1.0);
        accepted.then_some(Rate { per_s, pico: pico as u64 })
    }
}

/// The key of a row: job type, scale, worker type, whether consolidated, and the co-located job type (empty: alone).
type RowKey = (String, u32, String, bool, String);

/// A throughput table.
#[derive(Clone, Debug, Default)]
pub struct Throughputs {
    path: PathBuf,
    rows: BTreeMap<RowKey, (Rate, u64)>,
    worker_types: Vec<String>,
    /// The number of pair rows with a rate above the rate alone.
    pub faster_in_pair: usize,
}

/// The columns of a throughput table.
const COLUMNS: &[&str] =
    &["job_type", "scale_factor", "worker_type", "consolidated", "colocated_with", "iterations_per_s"];

/// The accepted scales and rates, in messages.
const SCALES: &str = "a whole number from 1 to 100000";
const RATES: &str = "iterations per second: 0 (cannot run), or from 1e-12 to 1e6";

impl Throughputs {
    /// Reads a CSV file with the columns `job_type`, `worker_type` and `iterations_per_s`, and optionally `scale_factor` (default 1),
    /// `consolidated` (1 or 0; default 1) and `colocated_with` (empty: alone). With `only = (column, value)` the file has a further column,
    /// and rows with another value in it are skipped.
    ///
    /// Errors, with line and column: unknown column; a rate that is no number, negative, not finite or out of range; duplicate key; a pair
    /// listed in one direction only; no rows.
    pub fn read(path: &Path, only: Option<(&str, &str)>) -> Result<Throughputs> {
        let mut rows = InputRows::open(path, Separator::Comma)?;
        let header = CsvHeader::read(&mut rows, path, COLUMNS, only.map(|(column, _)| column))?;
        header.require(path, &["job_type", "worker_type", "iterations_per_s"])?;
        let mut table = Throughputs { path: path.to_owned(), ..Throughputs::default() };
        while let Some(row) = rows.read()? {
            header.check(&row)?;
            if let Some((column, value)) = only
                && header.text(&row, column)? != value
            {
                continue;
            }
            table.add(&header, &row)?;
        }
        table.finish()
    }

    fn add(&mut self, header: &CsvHeader, row: &InputRow<'_>) -> Result<()> {
        let consolidated = match header.text(row, "consolidated")? {
            "" | "1" => true,
            "0" => false,
            _ => return Err(header.wrong(row, "consolidated", "is not accepted", "1 (one server) or 0 (spread)")),
        };
        let scale = header.integer(row, "scale_factor", 1, 100_000, SCALES)?.unwrap_or(1);
        let per_s = header.float(row, "iterations_per_s", RATES)?;
        let rate = Rate::new(per_s).ok_or_else(|| header.wrong(row, "iterations_per_s", "is out of range", RATES))?;
        let worker = header.name(row, "worker_type")?.to_owned();
        let partner = header.text(row, "colocated_with")?.to_owned();
        let key = (header.name(row, "job_type")?.to_owned(), scale as u32, worker.clone(), consolidated, partner);
        if let Some((_, before)) = self.rows.insert(key.clone(), (rate, row.line)) {
            let problem = format!("{} has a row already (line {before}); expected one row per key", label(&key));
            return Err(row.error("job_type", problem));
        }
        if !self.worker_types.contains(&worker) {
            self.worker_types.push(worker);
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Throughputs> {
        if self.rows.is_empty() {
            return Err(Error::trace(&self.path, 0, "", "has no rows; expected rates"));
        }
        for (key, (rate, line)) in &self.rows {
            let (job, scale, worker, consolidated, partner) = key;
            if partner.is_empty() {
                continue;
            }
            let back = (partner.clone(), *scale, worker.clone(), *consolidated, job.clone());
            if !self.rows.contains_key(&back) {
                let others: Vec<u32> = self.scales_of_pair(partner, worker, job);
                let hint = match &others[..] {
                    [] => String::new(),
                    scales => format!(" (it has scale_factor {scales:?}: members of a pair have the same scale)"),
                };
                let problem = format!("{} has no row of its partner; expected {}{hint}", label(key), label(&back));
                return Err(Error::trace(&self.path, *line, "colocated_with", problem));
            }
            let alone = (job.clone(), *scale, worker.clone(), *consolidated, String::new());
            self.faster_in_pair += usize::from(self.rows.get(&alone).is_some_and(|(alone, _)| rate.pico > alone.pico));
        }
        Ok(self)
    }

    fn scales_of_pair(&self, job: &str, worker: &str, partner: &str) -> Vec<u32> {
        let keys = self.rows.keys().filter(|key| key.0 == job && key.2 == worker && key.4 == partner);
        keys.map(|key| key.1).collect()
    }

    /// Returns the worker types in order of their first rows.
    pub fn worker_types(&self) -> &[String] {
        &self.worker_types
    }

    /// Returns the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the rate of a job type of a scale on a worker type, alone (`partner` empty) or beside a partner. `None`: no such row.
    pub fn rate(&self, job: &str, scale: u32, worker: &str, consolidated: bool, partner: &str) -> Option<Rate> {
        let key = (job.to_owned(), scale, worker.to_owned(), consolidated, partner.to_owned());
        self.rows.get(&key).map(|(rate, _)| *rate)
    }

    /// Returns the rate alone, consolidated. Errors: no such row, with the nearest rows.
    pub fn alone(&self, job: &str, scale: u32, worker: &str) -> Result<Rate> {
        self.rate(job, scale, worker, true, "").ok_or_else(|| {
            let key = (job.to_owned(), scale, worker.to_owned(), true, String::new());
            let problem = format!("has no row for {}; nearest: {}", label(&key), self.nearest(&key));
            Error::trace(&self.path, 0, "job_type", problem)
        })
    }

    /// Returns the nearest rows of a missing key: other scales and worker types of the job type, then similar job types.
    fn nearest(&self, key: &RowKey) -> String {
        let model = |name: &str| name.rsplit_once('-').map_or(name, |(model, _)| model).to_owned();
        let distance = |other: &RowKey| {
            (other.0 != key.0, model(&other.0) != model(&key.0), other.2 != key.2, other.1.abs_diff(key.1))
        };
        let mut alone: Vec<(&RowKey, u64)> =
            self.rows.iter().filter(|(other, _)| other.4.is_empty()).map(|(other, (_, line))| (other, *line)).collect();
        alone.sort_by_key(|(other, line)| (distance(other), *line));
        let shown: Vec<String> =
            alone.iter().take(3).map(|(other, line)| format!("{} (line {line})", label(other))).collect();
        shown.join("; ")
    }
}

fn label((job, scale, worker, consolidated, partner): &RowKey) -> String {
    let spread = if *consolidated { "" } else { ", spread" };
    let beside = if partner.is_empty() { String::new() } else { format!(" beside {partner}") };
    format!("{job} of scale {scale} on {worker}{spread}{beside}")
}

#[cfg(test)]
mod tests;
