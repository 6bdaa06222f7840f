//! Readings: the numbers that rows of `numbers.csv` take from the outcome of a run.

use std::collections::HashMap;

use num_rational::BigRational;
use num_traits::ToPrimitive;

use super::job_readings::{
    job_error_at, job_ratio_at, jobs_covered, jobs_equal, median_job_error, median_width, predictions_kept,
    stored_error_at,
};
use super::outcome::{JobOutcome, RunOutcome};
use super::prepare::{DataFolder, TextSheet};
use plimsoll_base::error::{Error, Result, either};

/// A value of a reading.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadValue {
    /// The value.
    pub value: f64,
    /// The exact value, if it is known.
    pub exact: Option<BigRational>,
}

impl From<f64> for ReadValue {
    fn from(value: f64) -> ReadValue {
        ReadValue { value, exact: None }
    }
}

/// The input of a reading.
pub(super) struct ReadRun<'a> {
    pub outcome: &'a RunOutcome,
    pub data: &'a DataFolder<'a>,
    pub argument: &'a str,
}

/// A reading of an outcome with an argument; `None` if it has no value.
type Compute = fn(&ReadRun) -> Result<Option<f64>>;

/// All readings of runs: the name with its argument, and the function.
const READINGS: [(&str, &str, Compute); 33] = [
    ("mean_completion_s", "", |run| Ok(mean(run.outcome, completion))),
    ("mean_wait_s", "", |run| Ok(mean(run.outcome, wait_by_work))),
    ("mean_first_wait_s", "", |run| Ok(mean(run.outcome, first_wait))),
    ("median_completion_s", "", |run| Ok(quantile(run.outcome, 0.5))),
    ("makespan_s", "", |run| Ok(last(run.outcome, |job| job.finish))),
    ("last_start_s", "", |run| Ok(last(run.outcome, |job| job.start))),
    ("completion_at", "PART", |run| Ok(quantile(run.outcome, number(run.argument)?))),
    ("bounded_slowdown", "", |run| Ok(mean(run.outcome, bounded_slowdown))),
    ("utilisation_to_last_start", "", |run| utilisation(run.outcome)),
    ("jobs_finished", "", |run| Ok(Some(count(run.outcome, |job| job.finish.is_some())))),
    ("jobs_in_time", "", |run| Ok(Some(count(run.outcome, in_time)))),
    ("share_in_time", "", |run| {
        Ok(Some(count(run.outcome, in_time) / count(run.outcome, |job| job.deadline.is_some())))
    }),
    ("jobs_late", "", |run| Ok(Some(count(run.outcome, |job| excess(job) > 0)))),
    ("excess_s", "", |run| Ok(Some(run.outcome.jobs.iter().map(|job| seconds(excess(job))).sum()))),
    ("jobs_feasible", "", |run| Ok(Some(count(run.outcome, is_feasible)))),
    ("share_feasible", "", |run| {
        Ok(Some(count(run.outcome, is_feasible) / count(run.outcome, |job| job.deadline.is_some())))
    }),
    ("mean_wait_plus", "USER|SECONDS", mean_wait_plus),
    ("started_on", "USER|MACHINE", started_on),
    ("completion_s", "JOB", |run| Ok(job(run.outcome, run.argument).and_then(completion))),
    ("start_s", "JOB", |run| Ok(job(run.outcome, run.argument).and_then(|job| Some(seconds(job.start?))))),
    ("finish_s", "JOB", |run| Ok(job(run.outcome, run.argument).and_then(|job| Some(seconds(job.finish?))))),
    ("started", "USER", |run| Ok(Some(started(run.outcome, run.argument)))),
    ("starts", "", |run| Ok(Some(run.outcome.jobs.iter().map(|job| job.starts as f64).sum()))),
    ("allocated_at", "PERCENT", |run| allocated_at(run.outcome, run.argument)),
    ("jobs_equal", "VALUE|TOLERANCE|FILE|JOB|COLUMN|COLUMN=TEXT|..", jobs_equal),
    ("jobs_covered", "FILE|JOB|COLUMN|COLUMN=TEXT|..", jobs_covered),
    ("median_width", "", |run| Ok(median_width(run.outcome))),
    ("median_job_error", "VALUE|FILE|JOB|COLUMN|COLUMN=TEXT|..", median_job_error),
    ("job_error_at", "PART|VALUE|FILE|JOB|COLUMN|COLUMN=TEXT|..", job_error_at),
    ("job_ratio_at", "PART|VALUE|FILE|JOB|COLUMN|COLUMN=TEXT|..", job_ratio_at),
    ("stored_error_at", "PART|FILE|JOB|COLUMN|COLUMN=TEXT/TEXT|COLUMN=TEXT|..", stored_error_at),
    ("predictions_kept", "PLAN|POLICY", predictions_kept),
    ("value", "NAME", named_value),
];

/// Returns the value of a reading. Errors: an unknown reading, or a wrong argument.
pub fn read(reading: &str, outcome: &RunOutcome, data: &DataFolder) -> Result<Option<ReadValue>> {
    let (name, argument) = match reading.split_once('(') {
        Some((name, rest)) => (name, rest.strip_suffix(')').unwrap_or(rest)),
        None => (reading, ""),
    };
    if name == "tasks" {
        let exact = outcome.allocation.iter().find(|(user, _)| user == argument).map(|(_, tasks)| tasks.clone());
        return Ok(exact.map(|exact| ReadValue { value: exact.to_f64().unwrap_or(f64::NAN), exact: Some(exact) }));
    }
    let Some((_, expected, compute)) = READINGS.iter().find(|(known, ..)| *known == name) else {
        let known = either(READINGS.iter().map(|(name, ..)| *name).chain(["tasks"]));
        return Err(Error::plan("reading", format!("'{reading}'"), known));
    };
    if expected.is_empty() != argument.is_empty() {
        let form = if expected.is_empty() { name.to_owned() } else { format!("{name}({expected})") };
        return Err(Error::plan("reading", format!("'{reading}'"), form));
    }
    Ok(compute(&ReadRun { outcome, data, argument })?.filter(|value| value.is_finite()).map(ReadValue::from))
}

pub(super) fn number(text: &str) -> Result<f64> {
    text.parse().map_err(|_| Error::plan("reading", format!("'{text}'"), "a number"))
}

pub(super) fn seconds(us: u64) -> f64 {
    us as f64 / 1e6
}

/// Returns the mean of a value over the jobs that have it.
fn mean(outcome: &RunOutcome, value: impl Fn(&JobOutcome) -> Option<f64>) -> Option<f64> {
    let values: Vec<f64> = outcome.jobs.iter().filter_map(value).collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

pub(super) fn completion(job: &JobOutcome) -> Option<f64> {
    Some(seconds(job.finish? - job.submit))
}

/// Returns the completion time less the duration, for jobs of one task.
fn wait_by_work(job: &JobOutcome) -> Option<f64> {
    Some(seconds(job.finish? - job.submit) - seconds(job.work?))
}

fn first_wait(job: &JobOutcome) -> Option<f64> {
    Some(seconds(job.start? - job.submit))
}

/// Returns the bounded slowdown of a job of equal tasks that start together, with the bound of 10 s.
fn bounded_slowdown(job: &JobOutcome) -> Option<f64> {
    let (wait, run) = (seconds(job.start? - job.submit), seconds(job.finish? - job.start?));
    Some(((wait + run) / run.max(10.0)).max(1.0))
}

fn in_time(job: &JobOutcome) -> bool {
    matches!((job.finish, job.deadline), (Some(finish), Some(deadline)) if finish <= deadline)
}

/// Returns the time from the deadline to the end in microseconds; 0 for a job in time or without a deadline.
fn excess(job: &JobOutcome) -> u64 {
    job.finish.zip(job.deadline).map_or(0, |(finish, deadline)| finish.saturating_sub(deadline))
}

/// Returns whether a job that starts at its submission and keeps its tasks ends by its deadline.
fn is_feasible(job: &JobOutcome) -> bool {
    matches!((job.work, job.deadline), (Some(work), Some(deadline)) if job.submit + work <= deadline)
}

/// Returns the mean time from submission to start of a user's jobs, plus a number of seconds.
fn mean_wait_plus(run: &ReadRun) -> Result<Option<f64>> {
    let (user, more) = run.argument.split_once('|').ok_or_else(|| wrong_form(run))?;
    let more = number(more)?;
    Ok(mean(run.outcome, |job| first_wait(job).filter(|_| job.user == user)).map(|wait| wait + more))
}

/// Returns the number of tasks of a user that were launched on a machine.
fn started_on(run: &ReadRun) -> Result<Option<f64>> {
    let (user, machine) = run.argument.split_once('|').ok_or_else(|| wrong_form(run))?;
    let machine: u32 = machine.parse().map_err(|_| wrong_form(run))?;
    let on = run.outcome.launches.iter().filter(|(name, at, _)| name == user && *at == machine);
    Ok(Some(on.map(|(.., tasks)| *tasks as f64).sum()))
}

fn count(outcome: &RunOutcome, is_counted: impl Fn(&JobOutcome) -> bool) -> f64 {
    outcome.jobs.iter().filter(|job| is_counted(job)).count() as f64
}

fn last(outcome: &RunOutcome, at: impl Fn(&JobOutcome) -> Option<u64>) -> Option<f64> {
    outcome.jobs.iter().filter_map(at).max().map(seconds)
}

fn job<'a>(outcome: &'a RunOutcome, name: &str) -> Option<&'a JobOutcome> {
    outcome.jobs.iter().find(|job| job.job == name)
}

fn started(outcome: &RunOutcome, user: &str) -> f64 {
    outcome.jobs.iter().filter(|job| job.user == user).map(|job| job.launched as f64).sum()
}

/// Returns the completion time at position floor(part n) of the sorted times, counted from 0.
fn quantile(outcome: &RunOutcome, part: f64) -> Option<f64> {
    let mut times: Vec<f64> = outcome.jobs.iter().filter_map(completion).collect();
    times.sort_by(f64::total_cmp);
    times.get((part * times.len() as f64).floor() as usize).copied()
}

/// Returns the work of all jobs over the processors times the time from the first submission to the last start. Work and processors are
/// those of the prepared file `work.csv`.
fn utilisation(outcome: &RunOutcome) -> Result<Option<f64>> {
    let sheet = TextSheet::read(&outcome.folder.join("work.csv"))?;
    let mut works: HashMap<&str, f64> = HashMap::new();
    for row in 0..sheet.rows() {
        works.insert(sheet.text(row, "job")?, sheet.number(row, "processor_s")?);
    }
    let work: Option<f64> = outcome.jobs.iter().map(|job| works.get(job.job.as_str()).copied()).sum();
    let first = outcome.jobs.iter().map(|job| job.submit).min().map(seconds);
    let last = last(outcome, |job| job.start);
    let parts = work.zip(works.get("all")).zip(first.zip(last));
    Ok(parts.map(|((work, processors), (first, last))| work / (processors * (last - first))))
}

/// Returns the mean per cent of GPUs allocated when the submitted jobs have asked for this per cent of all GPUs, rounded to two decimals.
///
/// After every submission x is the sum of the demands so far, in per cent of the capacity and rounded to a whole number (halves to even),
/// and y the allocated part in per cent, rounded to two decimals. The value is the mean y over the submissions with this x; if there are
/// none, over those with x at most 1 away. Jobs never end. Source: `analysis_allo_discrete.csv` of Weng et al., USENIX ATC 2023.
fn allocated_at(outcome: &RunOutcome, percent: &str) -> Result<Option<f64>> {
    let percent = number(percent)?;
    let rows = TextSheet::read(&outcome.folder.join("trace.csv"))?;
    let machines = TextSheet::read(&outcome.folder.join("machines.csv"))?;
    let milli = |text: &str| -> Result<f64> { Ok((number(text)? * 1000.0).round()) };
    let mut capacity = 0.0;
    for row in 0..machines.rows() {
        capacity += milli(machines.text(row, "gpu")?)?;
    }
    let mut demand: HashMap<&str, f64> = HashMap::new();
    for row in 0..rows.rows() {
        demand.insert(rows.text(row, "job")?, milli(rows.text(row, "gpu")?)?);
    }
    let (mut arrived, mut allocated) = (0.0, 0.0);
    let (mut here, mut near) = (Vec::new(), Vec::new());
    for job in &outcome.jobs {
        let asked = demand.get(job.job.as_str()).copied().unwrap_or(0.0);
        arrived += asked;
        allocated += if job.start.is_some() { asked } else { 0.0 };
        let x = (100.0 * arrived / capacity).round_ties_even();
        let y = (10_000.0 * allocated / capacity).round_ties_even() / 100.0;
        if x == percent {
            here.push(y);
        }
        if (x - percent).abs() <= 1.0 {
            near.push(y);
        }
    }
    let chosen = if here.is_empty() { near } else { here };
    let mean = (!chosen.is_empty()).then(|| chosen.iter().sum::<f64>() / chosen.len() as f64);
    Ok(mean.map(|mean| (mean * 100.0).round() / 100.0))
}

pub(super) fn wrong_form(run: &ReadRun) -> Error {
    Error::plan("reading", format!("'{}'", run.argument), "parts separated by |: see the other rows")
}

/// Returns a value of a model by name. Errors: the model has no such value.
fn named_value(run: &ReadRun) -> Result<Option<f64>> {
    let values = &run.outcome.values;
    let found = values.iter().find(|(name, _)| name == run.argument).map(|(_, value)| *value);
    let known = || either(values.iter().map(|(name, _)| name.as_str()));
    found.map(Some).ok_or_else(|| Error::plan("reading", format!("'{}'", run.argument), known()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: DataFolder = DataFolder { folder: None, inputs: &[] };

    fn job_of(name: &str, submit: u64, start: Option<u64>, finish: Option<u64>) -> JobOutcome {
        let us = |s: u64| s * 1_000_000;
        JobOutcome {
            job: name.to_owned(),
            user: name.to_owned(),
            launched: u64::from(start.is_some()),
            submit: us(submit),
            start: start.map(us),
            finish: finish.map(us),
            work: start.zip(finish).map(|(start, finish)| us(finish - start)),
            ..JobOutcome::default()
        }
    }

    #[test]
    fn slowdowns_are_bounded() {
        // The examples 7.2 and 7.3 of the protocol of RLScheduler: job 6 waits 250 s and runs 8 s; job 1 does not wait.
        assert_eq!(bounded_slowdown(&job_of("6", 130, Some(380), Some(388))), Some(25.8));
        assert_eq!(bounded_slowdown(&job_of("1", 100, Some(100), Some(160))), Some(1.0));
    }

    #[test]
    fn the_curve_of_allocations_is_that_of_the_definition() {
        // Two GPUs, free. Arrivals: half a GPU (placed), none (placed), two GPUs (dropped), one GPU (placed).
        let dir = tempfile::tempdir().expect("a temporary folder");
        let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).expect("writable");
        write("machines.csv", "name,cpu,gpu\nm,8,2\n");
        write("trace.csv", "job,gpu\na,0.5\nb,0\nc,2\nd,1\n");
        let start = [Some(0), Some(1), None, Some(3)];
        let jobs = ["a", "b", "c", "d"].iter().zip(start).map(|(name, start)| job_of(name, 0, start, None)).collect();
        let outcome = RunOutcome { jobs, folder: dir.path().to_owned(), ..RunOutcome::default() };
        let at = |percent: &str| allocated_at(&outcome, percent).expect("readable");
        assert_eq!([at("25"), at("125"), at("175")], [Some(25.0), Some(25.0), Some(75.0)]);
        assert_eq!((at("26"), at("90")), (Some(25.0), None));
    }

    #[test]
    fn unknown_readings_are_errors_with_the_known_ones() {
        let error = read("mean_jct", &RunOutcome::default(), &NONE).expect_err("unknown").to_string();
        assert!(error.contains("mean_completion_s"), "{error}");
        let error = read("start_s", &RunOutcome::default(), &NONE).expect_err("no argument").to_string();
        assert!(error.contains("start_s(JOB)"), "{error}");
    }
}
