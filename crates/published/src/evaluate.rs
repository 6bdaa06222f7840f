//! Evaluation: runs what the rows of targets require, and judges every row.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use rayon::prelude::*;

use super::accelerators::{self, entities, parts};
use super::claims::{ClaimRow, ClaimSide, JudgedClaim};
use super::models;
use super::numbers::NumberRow;
use super::occupancy;
use super::outcome::RunOutcome;
use super::parameters::Parameters;
use super::predictions::{PredictedJob, predicted};
use super::prepare::{DataFolder, prepare};
use super::readings::{self, ReadValue};
use super::servers;
use super::slices;
use super::target::{PlanEntry, PublishedTarget};
use super::unlike;
use plimsoll_base::column::Cell;
use plimsoll_base::error::{Error, Result};
use plimsoll_metrics::{Interval, mean_interval};
use plimsoll_trace_import::Condition;

/// Executes plans and instances.
pub trait TargetRunner: Sync {
    /// Executes a plan with `key=value` changes under a policy, the first one of the plan if absent, with a seed. Errors: those of the run.
    fn run(&self, plan: &Path, set: &[String], policy: Option<&str>, seed: Option<u64>) -> Result<RunOutcome>;

    /// Solves an instance under a policy. Errors: those of the instance and of the policy.
    fn solve(&self, instance: &Path, policy: &str) -> Result<RunOutcome>;
}

/// Receives the progress.
pub trait TargetProgress: Sync {
    /// Reports the number of runs.
    fn planned(&self, runs: usize);

    /// Reports that a run has ended. Errors: they end the evaluation.
    fn finished(&self) -> Result<()>;
}

/// The verdict on a number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NumberVerdict {
    /// Within the tolerance.
    Within,
    /// Outside of it.
    Outside,
    /// Not run, with the cause.
    NotRun(String),
}

impl NumberVerdict {
    /// Returns the verdict in words.
    pub fn name(&self) -> &'static str {
        match self {
            NumberVerdict::Within => "within",
            NumberVerdict::Outside => "outside",
            NumberVerdict::NotRun(_) => "not run",
        }
    }
}

/// A judged row.
#[derive(Clone, Debug)]
pub struct Judged {
    /// The row.
    pub row: NumberRow,
    /// Our value: the mean over the seeds, with its 95 % confidence interval if there are several.
    pub ours: Option<Interval>,
    /// The exact value, if it is known.
    pub exact: Option<String>,
    /// The verdict.
    pub verdict: NumberVerdict,
    /// The reason for a number outside of its tolerance, or the cause if it was not run; empty otherwise.
    pub reason: String,
}

/// The judged rows of a target.
#[derive(Clone, Debug)]
pub struct Evaluated {
    /// The numbers, in the order of the file.
    pub numbers: Vec<Judged>,
    /// The claims, in the order of the file.
    pub claims: Vec<JudgedClaim>,
    /// The predictions of the runs with intervals, by plan and policy.
    pub predictions: Vec<PredictedJob>,
}

/// The word for a number outside of its tolerance without a tested reason.
const UNEXPLAINED: &str = "unexplained";

/// A run: the plan, the parameters with at most one seed.
type RunKey = (usize, String, Parameters);

/// The result of a run. Errors that concern the input of the user are texts.
type EndedRun = std::result::Result<RunOutcome, String>;

/// Evaluates the rows of all targets. Prepared inputs are written below `work`. Errors: an invalid row or plan, and those of a run, except
/// for inputs that are missing or differ.
pub fn evaluate(
    targets: &[PublishedTarget],
    data: Option<&Path>,
    work: &Path,
    runner: &dyn TargetRunner,
    progress: &dyn TargetProgress,
) -> Result<Vec<Evaluated>> {
    let mut wanted: BTreeSet<RunKey> = BTreeSet::new();
    for (at, target) in targets.iter().enumerate() {
        for row in target.numbers.iter().filter(|row| !row.plan.is_empty()) {
            wanted.extend(keys(at, &row.plan, &row.parameters));
        }
        for row in target.claims.iter().filter(|row| !row.plan.is_empty()) {
            for side in [&row.first, &row.second] {
                if let ClaimSide::Runs(parameters) = side {
                    wanted.extend(keys(at, &row.plan, parameters));
                }
            }
        }
    }
    let folders = prepared(targets, data, work, &wanted)?;
    progress.planned(wanted.len());
    let wanted: Vec<RunKey> = wanted.into_iter().collect();
    let ended: Result<Vec<(RunKey, EndedRun)>> = wanted
        .into_par_iter()
        .map(|key| {
            let target = &targets[key.0];
            let outcome = match &folders[&folder_key(&key)] {
                Err(problem) => Err(problem.clone()),
                Ok(folder) => Ok(execute(target, &key, folder, runner)?),
            };
            progress.finished()?;
            Ok((key, outcome))
        })
        .collect();
    let ended: BTreeMap<RunKey, EndedRun> = ended?.into_iter().collect();
    let judged = |(at, target): (usize, &PublishedTarget)| {
        Ok(Evaluated {
            numbers: judge(at, target, data, &ended)?,
            claims: target
                .claims
                .iter()
                .map(|row| judge_claim(at, target, row, data, &ended))
                .collect::<Result<_>>()?,
            predictions: ended
                .iter()
                .filter(|((of, ..), _)| *of == at)
                .filter_map(|((_, plan, parameters), run)| Some(predicted(plan, parameters, run.as_ref().ok()?)))
                .flatten()
                .collect(),
        })
    };
    targets.iter().enumerate().map(judged).collect()
}

/// Returns the runs of a plan with parameters, one per seed.
fn keys(target: usize, plan: &str, parameters: &Parameters) -> Vec<RunKey> {
    let one = |seed: Option<u64>| (target, plan.to_owned(), parameters.with_seed(seed));
    match parameters.seeds.as_slice() {
        [] => vec![one(None)],
        seeds => seeds.iter().map(|seed| one(Some(*seed))).collect(),
    }
}

/// Returns what the inputs of a run depend on: the target, the plan and the parameters of the preparation.
fn folder_key((target, plan, parameters): &RunKey) -> (usize, String, String) {
    (*target, plan.clone(), parameters.prepared_by())
}

/// The folders of prepared inputs, or the causes why there are none.
type Folders = BTreeMap<(usize, String, String), std::result::Result<PathBuf, String>>;

/// Prepares the inputs of all runs.
fn prepared(
    targets: &[PublishedTarget],
    data: Option<&Path>,
    work: &Path,
    wanted: &BTreeSet<RunKey>,
) -> Result<Folders> {
    let mut firsts: BTreeMap<(usize, String, String), &RunKey> = BTreeMap::new();
    for key in wanted {
        firsts.entry(folder_key(key)).or_insert(key);
    }
    let known: Mutex<Folders> = Mutex::default();
    firsts.into_par_iter().try_for_each(|(place, key)| {
        let target = &targets[key.0];
        let Some(plan) = target.plan(&key.1) else { return Ok(()) };
        let folder = work.join(&target.name).join(&plan.name).join(&place.2);
        let made = prepared_one(target, plan, &key.2, data, &folder);
        let made = match made {
            Ok(()) => Ok(folder),
            Err(Error::Mismatch { problem }) => Err(problem),
            Err(error) => return Err(error),
        };
        known.lock().map_err(|_| Error::Interrupted)?.insert(place, made);
        Ok(())
    })?;
    known.into_inner().map_err(|_| Error::Interrupted)
}

/// Prepares the inputs of a plan in a folder, with a copy of the files of the target except the numbers.
fn prepared_one(
    target: &PublishedTarget,
    plan: &PlanEntry,
    parameters: &Parameters,
    data: Option<&Path>,
    folder: &Path,
) -> Result<()> {
    std::fs::create_dir_all(folder).map_err(|error| Error::output(folder, error))?;
    prepare(&plan.prepare, &DataFolder { folder: data, inputs: &target.inputs }, parameters, folder)?;
    let entries = std::fs::read_dir(&target.folder).map_err(|error| Error::io(&target.folder, error))?;
    for entry in entries {
        let path = entry.map_err(|error| Error::io(&target.folder, error))?.path();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if path.is_file() && !["target.toml", "numbers.csv", "claims.csv"].contains(&name.as_str()) {
            let copy = folder.join(name);
            std::fs::copy(&path, &copy).map_err(|error| Error::output(&copy, error))?;
        }
    }
    Ok(())
}

/// Executes a run.
fn execute(
    target: &PublishedTarget,
    (_, plan, parameters): &RunKey,
    folder: &Path,
    runner: &dyn TargetRunner,
) -> Result<RunOutcome> {
    let Some(plan) = target.plan(plan) else { return Ok(RunOutcome::default()) };
    let file = plan.file.as_ref().map(|file| folder.join(file));
    let missing = || Error::plan("plan.file", "nothing", format!("a file for plan '{}'", plan.name));
    let policy = parameters.policy.as_deref();
    let outcome = match plan.model.as_str() {
        "plan" => runner.run(&file.ok_or_else(missing)?, &parameters.set, policy, parameters.seeds.first().copied())?,
        "solve" => {
            let policy = policy.ok_or_else(|| Error::plan("with", "no policy", "policy=NAME"))?;
            runner.solve(&folder.join(parameters.text("instance")?), policy)?
        }
        "time-sharing" => models::run(&file.ok_or_else(missing)?, &parameters.set, policy, folder)?,
        "accelerators" => {
            let seed = parameters.seeds.first().copied();
            accelerators::run(&file.ok_or_else(missing)?, &parameters.set, policy, seed, folder)?
        }
        "servers" => servers::run(&file.ok_or_else(missing)?, &parameters.set, policy)?,
        "unlike" => unlike::run(&file.ok_or_else(missing)?, &parameters.set, policy, folder)?,
        "occupancy" => occupancy::run(&file.ok_or_else(missing)?, &parameters.set, folder)?,
        "slices" => slices::run(&file.ok_or_else(missing)?, &parameters.set)?,
        "entities" => entities::run(&file.ok_or_else(missing)?, &parameters.set, policy, folder)?,
        "parts" => parts::run(&file.ok_or_else(missing)?, &parameters.set, parameters.seeds.first().copied(), folder)?,
        other => {
            let expected =
                "plan, solve, time-sharing, accelerators, entities, parts, servers, unlike, occupancy or slices";
            return Err(Error::plan("plan.model", format!("'{other}'"), expected));
        }
    };
    Ok(RunOutcome { folder: folder.to_owned(), ..outcome })
}

/// Judges the rows of a target.
fn judge(
    at: usize,
    target: &PublishedTarget,
    data: Option<&Path>,
    ended: &BTreeMap<RunKey, EndedRun>,
) -> Result<Vec<Judged>> {
    let data = DataFolder { folder: data, inputs: &target.inputs };
    let located = |row: &NumberRow, error: Error| match error {
        error @ (Error::Plan { .. } | Error::Mismatch { .. }) => {
            Error::trace(target.folder.join("numbers.csv"), 0, "", format!("'{}': {error}", row.id))
        }
        error => error,
    };
    let mut found: BTreeMap<&str, std::result::Result<(Interval, Option<ReadValue>), String>> = BTreeMap::new();
    for row in target.numbers.iter().filter(|row| !row.plan.is_empty()) {
        let mut readings: Vec<ReadValue> = Vec::new();
        let mut problem = None;
        for key in keys(at, &row.plan, &row.parameters) {
            match &ended[&key] {
                Err(cause) => problem = Some(cause.clone()),
                Ok(outcome) => match readings::read(&row.reading, outcome, &data) {
                    Ok(Some(reading)) => readings.push(reading),
                    Ok(None) => problem = Some(format!("the run has no value of {}", row.reading)),
                    Err(Error::Mismatch { problem: missing }) => problem = Some(missing),
                    Err(error) => return Err(located(row, error)),
                },
            }
        }
        let values: Vec<f64> = readings.iter().map(|reading| reading.value).collect();
        let single = if readings.len() == 1 { readings.pop() } else { None };
        let interval = mean_interval(&values, 0.95).ok_or_else(|| "no seeds".to_owned());
        let value = problem.map_or_else(|| Ok((interval?, single)), Err);
        found.insert(&row.id, value);
    }
    // Expressions on other rows, in the order of the file: an expression may use earlier ones.
    let ids: Vec<String> = target.numbers.iter().map(|row| row.id.clone()).collect();
    for row in target.numbers.iter().filter(|row| row.plan.is_empty()) {
        let value = compared(row, &ids, &found).map_err(|error| located(row, error))?;
        found.insert(&row.id, value);
    }
    let judged = target.numbers.iter().map(|row| match &found[row.id.as_str()] {
        Err(cause) => Judged {
            row: row.clone(),
            ours: None,
            exact: None,
            verdict: NumberVerdict::NotRun(cause.clone()),
            reason: cause.clone(),
        },
        Ok((interval, single)) => {
            let exact = single.as_ref().and_then(|single| single.exact.as_ref());
            let within = row.expected.accepts(interval.mean, exact, &row.tolerance);
            let reason = target.reason(&row.id).map_or(UNEXPLAINED, |reason| reason.text.as_str());
            Judged {
                row: row.clone(),
                ours: Some(*interval),
                exact: exact.map(ToString::to_string),
                verdict: if within { NumberVerdict::Within } else { NumberVerdict::Outside },
                reason: if within { String::new() } else { reason.to_owned() },
            }
        }
    });
    Ok(judged.collect())
}

/// Judges a claim of a target.
fn judge_claim(
    at: usize,
    target: &PublishedTarget,
    row: &ClaimRow,
    data: Option<&Path>,
    ended: &BTreeMap<RunKey, EndedRun>,
) -> Result<JudgedClaim> {
    let data = DataFolder { folder: data, inputs: &target.inputs };
    let values = |side: &ClaimSide| -> Result<std::result::Result<Vec<f64>, String>> {
        let parameters = match side {
            ClaimSide::Values(values) => return Ok(Ok(values.clone())),
            ClaimSide::Runs(parameters) => parameters,
        };
        let mut values = Vec::new();
        for key in keys(at, &row.plan, parameters) {
            match &ended[&key] {
                Err(cause) => return Ok(Err(cause.clone())),
                Ok(outcome) => match readings::read(&row.reading, outcome, &data) {
                    Ok(Some(reading)) => values.push(reading.value),
                    Ok(None) => return Ok(Err(format!("a run has no value of {}", row.reading))),
                    Err(Error::Mismatch { problem }) => return Ok(Err(problem)),
                    Err(error) => {
                        let problem = format!("'{}': {error}", row.id);
                        return Err(Error::trace(target.folder.join("claims.csv"), 0, "reading", problem));
                    }
                },
            }
        }
        Ok(Ok(values))
    };
    let sides = match (values(&row.first)?, values(&row.second)?) {
        (Ok(first), Ok(second)) => Ok([first, second]),
        (Err(cause), _) | (_, Err(cause)) => Err(cause),
    };
    Ok(row.judge(sides))
}

/// Computes an expression on other rows. Errors: the expression is invalid.
fn compared(
    row: &NumberRow,
    ids: &[String],
    found: &BTreeMap<&str, std::result::Result<(Interval, Option<ReadValue>), String>>,
) -> Result<std::result::Result<(Interval, Option<ReadValue>), String>> {
    let expression = Condition::parse("reading", &row.reading, ids)?;
    for &column in expression.columns() {
        match found.get(ids[column].as_str()) {
            Some(Ok(_)) => {}
            Some(Err(cause)) => return Ok(Err(cause.clone())),
            None => {
                let expected = "rows with a plan, or expressions before this one";
                return Err(Error::plan("reading", format!("'{}'", ids[column]), expected));
            }
        }
    }
    let cell = |column: usize| match found.get(ids[column].as_str()) {
        Some(Ok((interval, _))) => Cell::Float(interval.mean),
        _ => Cell::Null,
    };
    let value = expression.number(&cell);
    let value = value.map_err(|problem| Error::plan("reading", format!("'{}'", row.reading), problem))?;
    let interval = value.and_then(|value| mean_interval(&[value], 0.95));
    Ok(interval.map(|interval| (interval, None)).ok_or_else(|| "the expression has no value".to_owned()))
}
