//! The reader of lists of jobs.

use std::path::Path;

use plimsoll_base::error::{Error, Result};
use plimsoll_base::rows::{InputRow, InputRows, Separator};
use plimsoll_base::units::{Span, Time};

use super::Throughputs;
use super::header::CsvHeader;

/// A job.
#[derive(Clone, Debug, PartialEq)]
pub struct TrainingJob {
    /// Its id: the number of its row, from 0.
    pub id: u32,
    /// Its type: a name of the throughput table.
    pub job_type: String,
    /// The number of accelerators that it uses together.
    pub scale: u32,
    /// Its weight.
    pub weight: u32,
    /// Its arrival.
    pub arrival: Time,
    /// Iterations in millionths.
    pub iterations: u64,
    /// The entity (group) for hierarchical policies.
    pub entity: u32,
    /// Its service-level objective, or `None`.
    pub slo: Option<Slo>,
    /// Changes of the batch size; empty for a job of one batch size.
    pub phases: Vec<BatchPhase>,
    /// Whether the batch size at most doubles at a time, one epoch ahead of `phases` (mode `gns`).
    pub gradual: bool,
    /// The running time alone with all changes of the batch size, if the file states it.
    pub exclusive: Option<Span>,
}

/// A deadline: admission plus `factor_milli` / 1000 times the running time on the reference type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slo {
    /// The factor in thousandths.
    pub factor_milli: u32,
    /// The running time on the reference type.
    pub reference: Span,
}

/// Consecutive epochs at one batch size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchPhase {
    /// The batch size.
    pub batch: u32,
    /// The number of epochs.
    pub epochs: u32,
}

/// The unit of the arrivals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrivals {
    /// Column `arrival_s`: seconds.
    Seconds,
    /// Column `unit_arrival`, for jobs that arrive at this rate (thousandths of a job per hour): seconds = `unit_arrival` * 3600 / rate.
    PerHour(u64),
    /// All jobs arrive at 0.
    AtOnce,
}

/// How a list of jobs is read.
#[derive(Clone, Copy, Debug)]
pub struct JobOptions<'a> {
    /// The arrivals.
    pub arrivals: Arrivals,
    /// The worker type of durations.
    pub reference: &'a str,
    /// Whether each job uses one accelerator, whatever the file states.
    pub single: bool,
    /// The maximum number of jobs.
    pub at_most: usize,
}

const COLUMNS: &[&str] = &[
    "job",
    "arrival_s",
    "unit_arrival",
    "job_type",
    "scale_factor",
    "iterations",
    "total_steps",
    "duration_s",
    "duration_v100_s",
    "weight",
    "entity",
    "slo_factor",
    "epochs",
    "batch_sizes",
    "exclusive_s",
    "mode",
    // A column of published lists that the authors do not use.
    "duration_listed_s",
];

/// Reads a CSV file of jobs, sorted by arrival.
///
/// Columns: `job` (0, 1, ...), `job_type`, `arrival_s` or `unit_arrival`, one of `iterations` (or `total_steps`) and `duration_s` (or
/// `duration_v100_s`), optionally `scale_factor` (1), `weight` (1), `entity` (0), `slo_factor` (none), `batch_sizes` (such as `10x11 20x10`:
/// 11 epochs at batch 10, then 10 at 20) with `epochs`, `mode` (`static`,
/// `accordion`, `gns`), and `exclusive_s`. A duration times the rate on the reference type gives iterations.
///
/// Errors, with line and column: unknown or missing columns, both or neither of iterations and duration, values out of range, a job type
/// without rows in the table, jobs that are not in order.
pub fn read_jobs(path: &Path, table: &Throughputs, options: &JobOptions<'_>) -> Result<Vec<TrainingJob>> {
    Ok(JobList::read(path, table, options)?.jobs)
}

/// A list of jobs, of which the arrivals can be computed for several rates.
#[derive(Clone, Debug, Default)]
pub struct JobList {
    jobs: Vec<TrainingJob>,
    /// The value of `unit_arrival` of each job, in 10^-9; empty for a list that was read without a rate.
    units: Vec<u64>,
}

impl JobList {
    /// Reads a CSV file of jobs, sorted by arrival. Errors: as [`read_jobs`].
    pub fn read(path: &Path, table: &Throughputs, options: &JobOptions<'_>) -> Result<JobList> {
        let mut rows = InputRows::open(path, Separator::Comma)?;
        let header = CsvHeader::read(&mut rows, path, COLUMNS, None)?;
        let is_unit = matches!(options.arrivals, Arrivals::PerHour(_));
        let arrival = if is_unit { "unit_arrival" } else { "arrival_s" };
        let needed: &[&str] = if options.arrivals == Arrivals::AtOnce { &["job_type"] } else { &["job_type", arrival] };
        header.require(path, needed)?;
        let mut list = JobList::default();
        while list.jobs.len() < options.at_most
            && let Some(row) = rows.read()?
        {
            header.check(&row)?;
            let (job, unit) = read_job(&header, &row, table, options, list.jobs.len() as u32)?;
            // The order of units is the same at every rate; arrivals are rounded.
            let is_late = list.jobs.last().is_some_and(|last| last.arrival > job.arrival);
            if is_late || list.units.last().is_some_and(|last| *last > unit) {
                return Err(row.error(arrival, "arrives before the job of the previous row; expected rows by arrival"));
            }
            list.jobs.push(job);
            list.units.extend(is_unit.then_some(unit));
        }
        Ok(list)
    }

    /// Returns the number of jobs.
    pub fn count(&self) -> usize {
        self.jobs.len()
    }

    /// Returns whether all arrivals at a rate in thousandths of a job per hour are at most half of the largest time.
    pub fn has_times(&self, rate: u64) -> bool {
        self.units
            .last()
            .is_none_or(|&unit| u128::from(unit) * 3_600 / u128::from(rate.max(1)) < u128::from(u64::MAX / 2))
    }

    /// Returns the jobs, which arrive at `rate` (thousandths of a job per hour) or, if it is `None`, as they were read.
    pub fn arriving(&self, rate: Option<u64>) -> Vec<TrainingJob> {
        let mut jobs = self.jobs.clone();
        if let Some(rate) = rate {
            jobs.iter_mut().zip(&self.units).for_each(|(job, &unit)| job.arrival = at_rate(unit, rate));
        }
        jobs
    }
}

/// Returns the arrival of a job at a rate in thousandths of a job per hour: 10^-9 units of 3600 / (milli / 1000) s each, in microseconds.
fn at_rate(unit: u64, milli: u64) -> Time {
    let milli = u128::from(milli.max(1));
    Time(((u128::from(unit) * 3_600 + milli / 2) / milli) as u64)
}

/// Reads a job. Also returns its `unit_arrival` in 10^-9, or 0 for a list without rates.
fn read_job(
    header: &CsvHeader,
    row: &InputRow<'_>,
    table: &Throughputs,
    options: &JobOptions<'_>,
    id: u32,
) -> Result<(TrainingJob, u64)> {
    let listed = header.integer(row, "job", 0, u64::from(u32::MAX), "the number of the row, from 0")?;
    if listed.is_some_and(|listed| listed != u64::from(id)) {
        return Err(header.wrong(row, "job", "is not in order", &format!("{id}: jobs are numbered from 0")));
    }
    let job_type = header.name(row, "job_type")?.to_owned();
    let scale = header.integer(row, "scale_factor", 1, 100_000, super::SCALES)?.unwrap_or(1) as u32;
    let scale = if options.single { 1 } else { scale };
    let amount = "a number of seconds from 0 on";
    let (arrival, unit) = match options.arrivals {
        Arrivals::AtOnce => (Time(0), 0),
        Arrivals::Seconds => (Time(header.scaled(row, "arrival_s", 1_000_000, amount)?.unwrap_or(0)), 0),
        Arrivals::PerHour(milli) => {
            let unit = header.scaled(row, "unit_arrival", 1_000_000_000, "a number from 0 on")?.unwrap_or(0);
            (at_rate(unit, milli), unit)
        }
    };
    let located = |column: &str, error: Error| row.error(column, error.to_string());
    let reference = || table.alone(&job_type, scale, options.reference).map_err(|error| located("job_type", error));
    let iterations = ["iterations", "total_steps"].iter().find(|name| header.has(name));
    let duration = ["duration_s", "duration_v100_s"].iter().find(|name| header.has(name));
    let positive = "more than 0 iterations";
    let (iterations, duration) = match (iterations, duration) {
        (Some(iterations), None) => (header.scaled(row, iterations, 1_000_000, positive)?.unwrap_or(0), None),
        (None, Some(column)) => {
            let duration = header.scaled(row, column, 1_000_000, amount)?.unwrap_or(0);
            let pico = reference()?.pico;
            let iterations = (u128::from(duration) * u128::from(pico) + 500_000_000_000) / 1_000_000_000_000;
            (iterations as u64, Some(Span(duration)))
        }
        (Some(column), Some(_)) => {
            return Err(row.error(column, "the file has iterations and durations; expected one of them"));
        }
        (None, None) => return Err(row.error("iterations", "the file has no work; expected iterations or duration_s")),
    };
    if iterations == 0 {
        return Err(row.error("iterations", format!("job {id} has no work; expected {positive}")));
    }
    let slo = match header.scaled(row, "slo_factor", 1_000, "a factor above 0, or empty")? {
        None | Some(0) => None,
        Some(factor) => {
            let pico = u128::from(reference()?.pico.max(1));
            let ran = Span((u128::from(iterations) * 1_000_000_000_000 / pico) as u64);
            Some(Slo { factor_milli: factor.min(u64::from(u32::MAX)) as u32, reference: duration.unwrap_or(ran) })
        }
    };
    let job = TrainingJob {
        id,
        scale,
        weight: header.integer(row, "weight", 1, 1_000_000, "a whole number from 1 to 1000000")?.unwrap_or(1) as u32,
        arrival,
        iterations,
        entity: header.integer(row, "entity", 0, 1_000_000, "a whole number up to 1000000")?.unwrap_or(0) as u32,
        slo,
        phases: phases(header, row)?,
        gradual: match header.text(row, "mode")? {
            "" | "static" | "accordion" => false,
            "gns" => true,
            _ => return Err(header.wrong(row, "mode", "is unknown", "static, accordion or gns")),
        },
        exclusive: header.scaled(row, "exclusive_s", 1_000_000, amount)?.map(Span),
        job_type,
    };
    Ok((job, unit))
}

fn phases(header: &CsvHeader, row: &InputRow<'_>) -> Result<Vec<BatchPhase>> {
    let expected = "epochs by batch size such as 10x11 20x10";
    let text = header.text(row, "batch_sizes")?;
    let phase = |word: &str| {
        let (batch, epochs) = word.split_once('x')?;
        let phase = BatchPhase { batch: batch.parse().ok()?, epochs: epochs.parse().ok()? };
        (phase.batch > 0 && phase.epochs > 0).then_some(phase)
    };
    let phases: Option<Vec<BatchPhase>> = text.split_whitespace().map(phase).collect();
    let phases = phases.ok_or_else(|| header.wrong(row, "batch_sizes", "is not accepted", expected))?;
    let total: u64 = phases.iter().map(|phase| u64::from(phase.epochs)).sum();
    let epochs = header.integer(row, "epochs", 1, u64::from(u32::MAX), "a whole number from 1 on")?;
    match epochs {
        Some(epochs) if !phases.is_empty() && epochs != total => {
            Err(header.wrong(row, "epochs", "differs from the sum of batch_sizes", &total.to_string()))
        }
        _ => Ok(phases),
    }
}
