//! Models of published programs with other decision loops than the rounds of the engine: jobs of a fixed number of GPUs that share a
//! cluster in time, with all jobs placed again at each event or in rounds.
//!
//! A plan of such a model is a TOML file with the keys of [`TimeSharing`]. The numbers of these models test the description of the published
//! program; they do not test the engine.

mod draws;
mod events;
mod order;
mod rounds;
mod slots;
mod themis;

use std::path::Path;

use serde::Deserialize;

use super::outcome::{JobOutcome, RunOutcome};
use super::prepare::TextSheet;
pub use draws::PredictionDraws;
pub use order::Order;
use plimsoll_base::error::{Error, Result, either};
use plimsoll_base::rows::read_text;
pub use themis::FreeChoice;

/// The plan of a model.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TimeSharing {
    /// The name of the plan, for readers of the file.
    #[serde(rename = "name")]
    _name: String,
    /// Machines.
    pub machines: u32,
    /// GPUs of each machine.
    pub gpus: u32,
    /// The factor on the time of an iteration.
    pub pace: f64,
    /// The factor on the cost of a start.
    pub cost: f64,
    /// The length of a round in seconds; without it, decisions are taken at every event.
    pub round_s: Option<f64>,
    /// The length of a slot in seconds: events are joined and starts cost as in the simulator of ElasticFlow.
    pub slot_s: Option<f64>,
    /// The limits of attained service of the queues, in GPU-seconds.
    #[serde(default)]
    pub limits: Vec<f64>,
    /// The choice of Themis among the fractions that are equally fair.
    #[serde(default)]
    pub free_choice: FreeChoice,
    /// The draws of a prediction with intervals.
    pub draws: Option<PredictionDraws>,
}

/// A job of a model.
#[derive(Clone, Debug)]
pub struct SharedJob {
    /// The name.
    pub name: String,
    /// GPUs.
    pub gpus: u32,
    /// The instant of its submission in seconds.
    pub submit: f64,
    /// The work left in seconds on its GPUs.
    pub left: f64,
    /// The time of an iteration in seconds.
    pub iteration_s: f64,
    /// The cost of a start in seconds.
    pub cost: f64,
    /// The time that it ran so far in seconds, including costs.
    pub ran: f64,
    /// Whether it runs.
    pub running: bool,
    /// The first start.
    pub start: Option<f64>,
    /// The end.
    pub end: Option<f64>,
    /// Starts and restarts.
    pub starts: u64,
    /// The deadline.
    pub deadline: Option<f64>,
}

/// Returns the orders of the models by name.
pub fn orders() -> impl Iterator<Item = &'static str> {
    Order::ALL.iter().map(|(name, _)| *name)
}

/// Executes the plan of a model in a folder with a prepared `jobs.csv`, with changes of its keys, under an order. Errors: an invalid plan,
/// jobs that are larger than the cluster, or an unknown order.
pub fn run(plan: &Path, set: &[String], order: Option<&str>, folder: &Path) -> Result<RunOutcome> {
    let plan = read(plan, set)?;
    let name = order.unwrap_or(Order::ALL[0].0);
    let order = Order::ALL.iter().find(|(known, _)| *known == name).map(|(_, order)| *order);
    let order = order.ok_or_else(|| Error::plan("policy", format!("'{name}'"), either(orders())))?;
    let sheet = TextSheet::read(&folder.join("jobs.csv"))?;
    let has_deadlines = sheet.has("deadline_s");
    let mut jobs = Vec::new();
    for row in 0..sheet.rows() {
        // In the order of the published programs: the rounding of doubles decides ties between events.
        let iteration_s = sheet.number::<f64>(row, "iteration_ms")? * plan.pace / 1000.0;
        let job = SharedJob {
            name: sheet.text(row, "job")?.to_owned(),
            gpus: sheet.number(row, "gpus")?,
            submit: sheet.number::<f64>(row, "submit_ms")? / 1000.0,
            left: sheet.number::<f64>(row, "iterations")? * iteration_s,
            iteration_s,
            cost: sheet.number::<f64>(row, "overhead_s")? * plan.cost,
            ran: 0.0,
            running: false,
            start: None,
            end: None,
            starts: 0,
            deadline: if has_deadlines { Some(sheet.number(row, "deadline_s")?) } else { None },
        };
        if job.gpus == 0 || job.gpus > plan.machines * plan.gpus {
            let problem = format!("job {} needs {} GPUs of {}", job.name, job.gpus, plan.machines * plan.gpus);
            return Err(Error::Mismatch { problem });
        }
        jobs.push(job);
    }
    jobs.sort_by(|a, b| a.submit.total_cmp(&b.submit));
    let intervals =
        plan.draws.as_ref().map_or_else(|| Ok(Vec::new()), |draws| intervals(&plan, draws, order, &jobs))?;
    simulate(&plan, order, &mut jobs)?;
    let us = |seconds: f64| (seconds * 1e6).round() as u64;
    let outcome = |job: SharedJob| JobOutcome {
        user: job.name.clone(),
        job: job.name,
        launched: u64::from(job.start.is_some()),
        submit: us(job.submit),
        start: job.start.map(us),
        finish: job.end.map(us),
        work: None,
        deadline: job.deadline.map(us),
        starts: job.starts,
    };
    Ok(RunOutcome { jobs: jobs.into_iter().map(outcome).collect(), intervals, ..RunOutcome::default() })
}

/// Executes the plan. Errors: keys that exclude each other.
fn simulate(plan: &TimeSharing, order: Order, jobs: &mut [SharedJob]) -> Result<()> {
    match (plan.round_s, plan.slot_s) {
        (None, None) => events::simulate(plan, order, jobs),
        (Some(round), None) => rounds::simulate(plan, round, order, jobs),
        (None, Some(slot)) if order == Order::Tiresias => slots::simulate(plan, slot, jobs),
        _ => return Err(Error::plan("slot_s", "a value", "the policy tiresias, without round_s")),
    }
    Ok(())
}

/// Returns the interval of the completion time of each job in seconds, by name. Errors: as [`simulate`].
fn intervals(
    plan: &TimeSharing,
    draws: &PredictionDraws,
    order: Order,
    jobs: &[SharedJob],
) -> Result<Vec<(String, f64, f64)>> {
    let names: Vec<String> = jobs.iter().map(|job| job.name.clone()).collect();
    draws.intervals(&names, |factors| {
        let (pace, cost) = (factors.pace / plan.pace, factors.cost / plan.cost);
        let mut drawn = jobs.to_vec();
        for (job, own) in drawn.iter_mut().zip(&factors.jobs) {
            job.left *= pace * own;
            job.iteration_s *= pace * own;
            job.cost *= cost;
        }
        simulate(plan, order, &mut drawn)?;
        Ok(drawn.iter().map(|job| Some(job.end? - job.submit)).collect())
    })
}

/// Reads a plan with changes. Errors: unknown keys and wrong values.
fn read(path: &Path, set: &[String]) -> Result<TimeSharing> {
    let plan: TimeSharing = read_plan(path, set)?;
    if plan.machines == 0 || plan.gpus == 0 || plan.pace <= 0.0 || plan.round_s.is_some_and(|round| round <= 0.0) {
        return Err(Error::trace(path, 0, "", "machines, gpus, pace and round_s are above 0"));
    }
    plan.draws.as_ref().map_or(Ok(()), |draws| draws.check(path))?;
    Ok(plan)
}

/// Reads the plan of a model with changes of its keys. Errors: unknown keys and wrong values.
pub fn read_plan<T: serde::de::DeserializeOwned>(path: &Path, set: &[String]) -> Result<T> {
    let text = read_text(path)?;
    let wrong = |error: toml::de::Error| Error::trace(path, 0, "", error.message().to_owned());
    let mut table: toml::Table = toml::from_str(&text).map_err(wrong)?;
    for change in set {
        let changed: toml::Table = toml::from_str(change).map_err(wrong)?;
        table.extend(changed);
    }
    table.try_into().map_err(wrong)
}

/// Selects jobs in order, from an empty cluster; a job that does not fit is passed over. Up to one machine: the first machine with enough
/// free. Larger jobs take entirely free machines.
fn select(plan: &TimeSharing, jobs: &[SharedJob], order: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut free = vec![plan.gpus; plan.machines as usize];
    let mut left = plan.machines * plan.gpus;
    let mut selected = Vec::new();
    for at in order {
        if left == 0 {
            break;
        }
        let gpus = jobs[at].gpus;
        if gpus > left {
            continue;
        }
        if gpus <= plan.gpus {
            let Some(machine) = free.iter_mut().find(|free| **free >= gpus) else { continue };
            *machine -= gpus;
        } else {
            let machines = gpus.div_ceil(plan.gpus) as usize;
            if free.iter().filter(|free| **free == plan.gpus).count() < machines {
                continue;
            }
            free.iter_mut().filter(|free| **free == plan.gpus).take(machines).for_each(|free| *free = 0);
        }
        left -= gpus;
        selected.push(at);
    }
    selected
}

#[cfg(test)]
mod tests;
