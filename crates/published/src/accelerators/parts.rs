//! One allocation of many jobs with pairs, split into parts: figure 2 of POP (Narayanan et al., SOSP 2021).

use std::path::Path;

use serde::Deserialize;

use super::super::models::read_plan;
use super::super::outcome::RunOutcome;
use super::entities::active_job;
use plimsoll_base::error::{Error, Result};
use plimsoll_base::units::Time;
use plimsoll_rounds::policies::{ActiveJob, View, max_min};
use plimsoll_rounds::random::PythonRandom;
use plimsoll_rounds::table::{Rates, Throughputs};

/// The plan of an allocation.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartsPlan {
    /// The name of the plan, for readers of the file.
    #[serde(rename = "name")]
    _name: String,
    /// The worker types.
    pub types: Vec<String>,
    /// The accelerators of each type, of all parts together.
    pub counts: Vec<u32>,
    /// The types of jobs, in the order of the authors' program.
    pub job_types: Vec<String>,
    /// The number of jobs.
    pub jobs: u32,
    /// The weight of each worker type in the norm of a job's throughput.
    pub norm: f64,
    /// The number of parts: job i is in part i modulo `parts`.
    pub parts: u32,
}

/// Solves max-min fairness with pairs in each part, for jobs of random types. The authors' generator draws three numbers per job before its
/// type. Values: `level_N`, the optimum of part N. Errors: an invalid plan, and those of the table and of the solver.
pub fn run(path: &Path, set: &[String], seed: Option<u64>, folder: &Path) -> Result<RunOutcome> {
    let plan: PartsPlan = read_plan(path, set)?;
    let is_even = plan.counts.iter().all(|count| plan.parts > 0 && count % plan.parts == 0);
    if !is_even || plan.parts > plan.jobs || plan.job_types.is_empty() || plan.counts.len() != plan.types.len() {
        let problem = "parts divides each of counts and is at most jobs, types and counts have one entry per type";
        return Err(Error::trace(path, 0, "", problem));
    }
    let table = Throughputs::read(&folder.join("throughputs.csv"), None)?;
    let kinds: Vec<(String, u32)> = plan.job_types.iter().map(|name| (name.clone(), 1)).collect();
    let rates = Rates::new(&table, &[], &kinds, &plan.types, true)?;
    let mut random = PythonRandom::new(seed.unwrap_or_default());
    let mut draw = |id: u32| {
        for _ in 0..3 {
            random.unit();
        }
        active_job(id, random.below(kinds.len()) as u32, 0)
    };
    let jobs: Vec<ActiveJob> = (0..plan.jobs).map(&mut draw).collect();
    let capacity: Vec<u32> = plan.counts.iter().map(|count| count / plan.parts).collect();
    // The solver's norm has the weights of the counts.
    let total: u32 = plan.counts.iter().sum();
    if plan.counts.iter().any(|count| count * plan.types.len() as u32 != total) {
        return Err(Error::trace(path, 0, "counts", "all counts are equal"));
    }
    let factor = 1.0 / plan.types.len() as f64 / plan.norm;
    let mut values = Vec::new();
    for part in 0..plan.parts {
        let own: Vec<ActiveJob> = jobs.iter().filter(|job| job.id % plan.parts == part).copied().collect();
        let view = View { now: Time(0), jobs: &own, rates: &rates, capacity: &capacity };
        values.push((format!("level_{part}"), max_min(&view, true, true)?.level * factor));
    }
    Ok(RunOutcome { values, ..RunOutcome::default() })
}
