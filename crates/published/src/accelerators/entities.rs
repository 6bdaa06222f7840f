//! Hierarchical policies on a static list of jobs: figure 11 of Gavel (Narayanan et al., OSDI 2020).

use std::path::Path;

use serde::Deserialize;

use super::super::models::read_plan;
use super::super::outcome::RunOutcome;
use super::super::prepare::TextSheet;
use plimsoll_base::error::{Error, Result};
use plimsoll_base::units::Time;
use plimsoll_rounds::policies::{ActiveJob, Bottlenecks, View, Within, water_fill};
use plimsoll_rounds::table::Rates;

/// The plan of a static list.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EntitiesPlan {
    /// The name of the plan, for readers of the file.
    #[serde(rename = "name")]
    _name: String,
    /// The worker types, which are columns of `jobs.csv`.
    pub types: Vec<String>,
    /// The accelerators of each type.
    pub counts: Vec<u32>,
    /// The value of the column `throughputs` of the jobs.
    pub throughputs: String,
    /// The number of jobs: the first ones of the list.
    pub jobs: usize,
}

/// Returns a job of scale and weight 1 that uses the rates of `kind` and has work left.
pub(super) fn active_job(id: u32, kind: u32, entity: u32) -> ActiveJob {
    ActiveJob { id, kind, scale: 1, weight: 1, entity, arrival: Time(0), remaining: 1_000_000, done: 0, deadline: None }
}

/// Fills levels under the policy `fair` or `fifo` inside entities, with the rule of the published program for the end of a step.
///
/// Values: `level_N` of job N (normalised throughput), and `least`, the smallest level divided by the weight of the job: under `fair` the
/// weight of the entity times that of the job over the sum in the entity. Errors: an invalid plan, and those of the list and of the solver.
pub fn run(path: &Path, set: &[String], policy: Option<&str>, folder: &Path) -> Result<RunOutcome> {
    let plan: EntitiesPlan = read_plan(path, set)?;
    let within = match policy {
        Some("fair") => Within::Fair,
        Some("fifo") => Within::Fifo,
        other => return Err(Error::plan("policy", format!("'{}'", other.unwrap_or_default()), "fair or fifo")),
    };
    let sheet = TextSheet::read(&folder.join("jobs.csv"))?;
    let mut rows: Vec<Vec<f64>> = Vec::new();
    let (mut jobs, mut weights, mut entities) = (Vec::new(), Vec::new(), Vec::new());
    for row in 0..sheet.rows() {
        if rows.len() == plan.jobs || sheet.text(row, "throughputs")? != plan.throughputs {
            continue;
        }
        let entity: u32 = sheet.number(row, "entity")?;
        jobs.push(active_job(rows.len() as u32, rows.len() as u32, entity));
        let weight: f64 = sheet.number(row, "job_weight")?;
        weights.push(if within == Within::Fifo { 1.0 } else { weight });
        entities.push((entity, sheet.number::<f64>(row, "entity_weight")?));
        rows.push(plan.types.iter().map(|worker| sheet.number(row, worker)).collect::<Result<_>>()?);
    }
    if jobs.is_empty() || jobs.len() < plan.jobs || plan.counts.len() != plan.types.len() {
        let problem = format!("types and counts have one entry per type, and jobs is from 1 to {}", jobs.len());
        return Err(Error::trace(path, 0, "", problem));
    }
    let rows: Vec<&[f64]> = rows.iter().map(Vec::as_slice).collect();
    let rates = Rates::from_rows(&rows)?;
    let view = View { now: Time(0), jobs: &jobs, rates: &rates, capacity: &plan.counts };
    let entity_weight =
        |entity: u32| entities.iter().find(|(known, _)| *known == entity).map_or(1.0, |(_, weight)| *weight);
    let (_, levels) = water_fill(&view, true, within, &weights, &entity_weight, Bottlenecks::Published)?;
    let share = |at: usize| {
        let entity = jobs[at].entity;
        let own = (0..jobs.len()).filter(|&other| jobs[other].entity == entity);
        entity_weight(entity) * weights[at] / own.map(|other| weights[other]).sum::<f64>()
    };
    let least = (0..jobs.len()).map(|at| levels[at] / share(at)).fold(f64::INFINITY, f64::min);
    let mut values: Vec<(String, f64)> =
        levels.iter().enumerate().map(|(at, level)| (format!("level_{at}"), *level)).collect();
    values.push(("least".to_owned(), least));
    Ok(RunOutcome { values, ..RunOutcome::default() })
}
