//! Readings that compare the jobs of a run with a table: times of each job, errors and predicted intervals.

use std::collections::HashMap;

use super::outcome::{JobOutcome, RunOutcome};
use super::prepare::{DataFolder, TextSheet};
use super::readings::{ReadRun, completion, number, seconds, wrong_form};
use plimsoll_base::error::{Error, Result};

/// Returns the value of a job by name. Errors: an unknown name.
fn value_of(job: &JobOutcome, name: &str) -> Result<Option<f64>> {
    Ok(match name {
        "completion_s" => completion(job),
        "start_s" => job.start.map(seconds),
        "finish_s" => job.finish.map(seconds),
        "starts" => Some(job.starts as f64),
        _ => {
            let expected = "completion_s, start_s, finish_s or starts";
            return Err(Error::plan("reading", format!("'{name}'"), expected));
        }
    })
}

/// Returns the expected values of jobs in a table of the data folder: the rows with the texts of `filters`, by name of the job. `a-b` is the
/// difference of two columns.
fn expected(data: &DataFolder, file: &str, job: &str, column: &str, filters: &[&str]) -> Result<HashMap<String, f64>> {
    let sheet = data.sheet(file)?;
    let mut values = HashMap::new();
    'rows: for row in 0..sheet.rows() {
        for filter in filters {
            let wrong = || Error::plan("reading", format!("'{filter}'"), "COLUMN=TEXT");
            let (column, text) = filter.split_once('=').ok_or_else(wrong)?;
            if sheet.text(row, column)? != text {
                continue 'rows;
            }
        }
        let value = match column.split_once('-') {
            None => sheet.number::<f64>(row, column)?,
            Some((column, less)) => sheet.number::<f64>(row, column)? - sheet.number::<f64>(row, less)?,
        };
        values.insert(sheet.text(row, job)?.to_owned(), value);
    }
    Ok(values)
}

/// Returns the number of jobs with the value of a table, up to a tolerance.
pub(super) fn jobs_equal(run: &ReadRun) -> Result<Option<f64>> {
    let parts: Vec<&str> = run.argument.split('|').collect();
    let [value, tolerance, file, name, column, filters @ ..] = parts.as_slice() else { return Err(wrong_form(run)) };
    let (tolerance, expected) = (number(tolerance)?, expected(run.data, file, name, column, filters)?);
    let mut equal = 0.0;
    for job in &run.outcome.jobs {
        if let (Some(ours), Some(theirs)) = (value_of(job, value)?, expected.get(&job.job)) {
            equal += f64::from((ours - theirs).abs() <= tolerance * (1.0 + 1e-9) + 1e-9 * theirs.abs());
        }
    }
    Ok(Some(equal))
}

/// Returns the number of jobs with a completion time in a table that is within the predicted interval.
pub(super) fn jobs_covered(run: &ReadRun) -> Result<Option<f64>> {
    let parts: Vec<&str> = run.argument.split('|').collect();
    let [file, name, column, filters @ ..] = parts.as_slice() else { return Err(wrong_form(run)) };
    let expected = expected(run.data, file, name, column, filters)?;
    let is_covered = |(job, low, high): &&(String, f64, f64)| {
        expected.get(job).is_some_and(|actual| (*low..=*high).contains(actual))
    };
    let intervals = &run.outcome.intervals;
    let is_stated = intervals.iter().any(|(job, ..)| expected.contains_key(job));
    Ok(is_stated.then(|| intervals.iter().filter(is_covered).count() as f64))
}

/// Returns the median width of the predicted intervals, in per cent of the completion time without random factors.
pub(super) fn median_width(outcome: &RunOutcome) -> Option<f64> {
    let times: HashMap<&str, f64> =
        outcome.jobs.iter().filter_map(|job| Some((job.job.as_str(), completion(job)?))).collect();
    let width = |(job, low, high): &(String, f64, f64)| Some(100.0 * (high - low) / times.get(job.as_str())?);
    let mut widths: Vec<f64> = outcome.intervals.iter().filter_map(width).collect();
    widths.sort_by(f64::total_cmp);
    widths.get(widths.len() / 2).copied()
}

/// Returns the absolute differences of jobs from the values of a table, in per cent of the latter, in ascending order.
fn job_errors(run: &ReadRun, argument: &str) -> Result<Vec<f64>> {
    let parts: Vec<&str> = argument.split('|').collect();
    let [value, file, name, column, filters @ ..] = parts.as_slice() else { return Err(wrong_form(run)) };
    let expected = expected(run.data, file, name, column, filters)?;
    let mut errors = Vec::new();
    for job in &run.outcome.jobs {
        if let (Some(ours), Some(theirs)) = (value_of(job, value)?, expected.get(&job.job)) {
            errors.push(100.0 * (ours - theirs).abs() / theirs.abs());
        }
    }
    errors.sort_by(f64::total_cmp);
    Ok(errors)
}

/// Returns the difference at position floor(part n) of the sorted ones, counted from 0.
pub(super) fn job_error_at(run: &ReadRun) -> Result<Option<f64>> {
    let (part, argument) = run.argument.split_once('|').ok_or_else(|| wrong_form(run))?;
    let errors = job_errors(run, argument)?;
    Ok(errors.get((number(part)? * errors.len() as f64).floor() as usize).copied())
}

/// Returns the median of the differences; of an even number, the mean of the middle two.
pub(super) fn median_job_error(run: &ReadRun) -> Result<Option<f64>> {
    let errors = job_errors(run, run.argument)?;
    let middle = errors.len() / 2;
    Ok(match errors.len() % 2 {
        _ if errors.is_empty() => None,
        1 => Some(errors[middle]),
        _ => Some((errors[middle - 1] + errors[middle]) / 2.0),
    })
}

/// Returns the value of a table divided by ours at position round(part (n - 1)) of the sorted ratios, counted from 0.
pub(super) fn job_ratio_at(run: &ReadRun) -> Result<Option<f64>> {
    let parts: Vec<&str> = run.argument.split('|').collect();
    let [part, value, file, name, column, filters @ ..] = parts.as_slice() else { return Err(wrong_form(run)) };
    let expected = expected(run.data, file, name, column, filters)?;
    let mut ratios = Vec::new();
    for job in &run.outcome.jobs {
        if let (Some(ours), Some(theirs)) = (value_of(job, value)?, expected.get(&job.job)) {
            ratios.push(theirs / ours);
        }
    }
    ratios.sort_by(f64::total_cmp);
    let at = number(part)? * ratios.len().saturating_sub(1) as f64;
    Ok(ratios.get(at.round() as usize).copied())
}

/// Returns the absolute difference of two rows of a table for the same job, in per cent of the second, at position floor(part n) of the
/// sorted ones, counted from 0. One of the filters has two texts: that of the first and that of the second rows.
pub(super) fn stored_error_at(run: &ReadRun) -> Result<Option<f64>> {
    let parts: Vec<&str> = run.argument.split('|').collect();
    let [part, file, name, column, filters @ ..] = parts.as_slice() else { return Err(wrong_form(run)) };
    let side = |second: bool| -> Result<HashMap<String, f64>> {
        let filter = |filter: &&str| {
            let pair = filter.split_once('=').and_then(|(key, texts)| Some((key, texts.split_once('/')?)));
            match pair {
                Some((key, (first, other))) => format!("{key}={}", if second { other } else { first }),
                None => (*filter).to_owned(),
            }
        };
        let filters: Vec<String> = filters.iter().map(filter).collect();
        let filters: Vec<&str> = filters.iter().map(String::as_str).collect();
        expected(run.data, file, name, column, &filters)
    };
    let (first, second) = (side(false)?, side(true)?);
    let error = |(job, theirs): (&String, &f64)| Some(100.0 * (first.get(job)? - theirs).abs() / theirs.abs());
    let mut errors: Vec<f64> = second.iter().filter_map(error).collect();
    errors.sort_by(f64::total_cmp);
    Ok(errors.get((number(part)? * errors.len() as f64).floor() as usize).copied())
}

/// Returns the number of jobs with the predicted time and interval of the file `predictions.csv` of the target, to a thousandth of a
/// second. The file states the predictions from before the comparison.
pub(super) fn predictions_kept(run: &ReadRun) -> Result<Option<f64>> {
    let (plan, policy) = run.argument.split_once('|').ok_or_else(|| wrong_form(run))?;
    let sheet = TextSheet::read(&run.outcome.folder.join("predictions.csv"))?;
    let mut kept: HashMap<&str, [f64; 3]> = HashMap::new();
    for row in 0..sheet.rows() {
        if sheet.text(row, "plan")? == plan && sheet.text(row, "policy")? == policy {
            let field = |column: &str| sheet.number::<f64>(row, column);
            let values = [field("completion_s")?, field("low_s")?, field("high_s")?];
            kept.insert(sheet.text(row, "job")?, values);
        }
    }
    let times: HashMap<&str, &JobOutcome> = run.outcome.jobs.iter().map(|job| (job.job.as_str(), job)).collect();
    let same = |(job, low, high): &&(String, f64, f64)| {
        let point = times.get(job.as_str()).and_then(|job| completion(job));
        let pair = kept.get(job.as_str()).zip(point);
        pair.is_some_and(|(kept, point)| {
            kept.iter().zip([point, *low, *high]).all(|(kept, ours)| (kept - ours).abs() < 0.001)
        })
    };
    let intervals = &run.outcome.intervals;
    Ok((!intervals.is_empty()).then(|| intervals.iter().filter(same).count() as f64))
}
