//! Runs a plan: all its runs, on all cores, each written when it ends.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use rayon::prelude::*;

use super::plan::{Plan, WorkloadPlan};
use super::single::{Simulation, simulate};
use super::sinks::Destination;
use super::summary::RunSummary;
use super::supply::Supply;
use crate::error::{Error, Result};
use crate::output::folder::Contents;
use crate::output::schema;
use crate::output::schema::Table;
use crate::units::Time;
use crate::workload::Input;

/// Hears how an experiment goes on; called from several threads.
pub trait Progress: Sync {
    /// A run goes on: simulated time, and tasks launched in all runs together since the last call.
    ///
    /// Errors: what it returns ends the experiment, such as [`Error::Interrupted`].
    fn tick(&self, now: Time, launched: u64) -> Result<()>;

    /// The workload was made or opened; called once for each time that this happens.
    fn opened(&self, supply: &Supply);

    /// A run has ended.
    fn finished(&self, run: &RunSummary);
}

/// The supply of one seed, made when it is first needed and dropped when no run needs it any more.
#[derive(Default)]
struct Shared {
    slot: Mutex<Weak<Supply>>,
}

impl Shared {
    fn get(&self, make: impl FnOnce() -> Result<Supply>) -> Result<Arc<Supply>> {
        let mut slot = self.slot.lock().map_err(|_| Error::Interrupted)?;
        if let Some(supply) = slot.upgrade() {
            return Ok(supply);
        }
        let supply = Arc::new(make()?);
        *slot = Arc::downgrade(&supply);
        Ok(supply)
    }
}

/// Runs all runs of a plan and returns their summaries, policy by policy, seed by seed, whatever the order they ended in.
///
/// Tables go to `folder` if there is one. Errors: one of those that ended a run; runs that had ended keep their tables.
pub fn execute(plan: &Plan, folder: Option<&Path>, threads: usize, progress: &dyn Progress) -> Result<Vec<RunSummary>> {
    let metadata = metadata(plan)?;
    let described = Mutex::new(false);
    let shared: Vec<Shared> = plan.seeds.iter().map(|_| Shared::default()).collect();
    // A trace is opened once: an imported one stays in memory for all policies.
    let whole = match &plan.workload {
        WorkloadPlan::Trace { thin: None, .. } => Some(Arc::new(supply(plan, 0, progress)?)),
        _ => None,
    };
    let name = plan.workload.name();
    let pool = rayon::ThreadPoolBuilder::new()
        // A thread more than there are runs would have nothing to do.
        .num_threads(threads.min(plan.runs().len()))
        .build()
        .map_err(|error| Error::output(folder.unwrap_or(Path::new(".")), error))?;
    // Seed by seed, so that the workload of a seed is made once and shared by its policies.
    let mut runs = plan.runs();
    runs.sort_by_key(|(policy, seed)| (*seed, *policy));
    let one = |&(policy, seed): &(usize, usize)| -> Result<((usize, usize), RunSummary)> {
        let supply = match &whole {
            Some(supply) => supply.clone(),
            None => shared[seed].get(|| supply(plan, plan.seeds[seed], progress))?,
        };
        let simulation = Simulation {
            supply: &supply,
            workload: &name,
            cluster: &plan.cluster,
            weights: plan.weights.as_deref(),
            options: plan.options,
            sample: plan.sample,
            window: plan.window,
        };
        let to = Destination {
            folder: folder.map(Path::to_owned),
            policy: plan.policies[policy].name.clone(),
            run: seed as u64,
            seed: plan.workload.is_seeded().then_some(plan.seeds[seed]),
            tables: plan.tables.clone(),
            metadata: metadata.clone(),
        };
        let before = AtomicU64::new(0);
        let mut heartbeat =
            |now: Time, launched: u64| progress.tick(now, launched - before.swap(launched, Ordering::Relaxed));
        let summary = simulate(&simulation, &plan.policies[policy], &to, &mut heartbeat)?;
        // Not before a run has ended: a plan that fails must not describe what an earlier one left.
        if let (Some(folder), Ok(mut described)) = (folder, described.lock())
            && !std::mem::replace(&mut *described, true)
        {
            contents(plan).write(folder)?;
        }
        progress.finished(&summary);
        Ok(((policy, seed), summary))
    };
    let mut done: Vec<((usize, usize), RunSummary)> =
        pool.install(|| runs.par_iter().with_max_len(1).map(one).collect::<Result<Vec<_>>>())?;
    done.sort_by_key(|(run, _)| *run);
    if let Some(folder) = folder {
        remove_stale(plan, folder)?;
    }
    Ok(done.into_iter().map(|(_, summary)| summary).collect())
}

/// Removes tables of these policies that an earlier experiment has left in the folder: more seeds, other tables. Read
/// as one table they would be taken for this experiment's.
fn remove_stale(plan: &Plan, folder: &Path) -> Result<()> {
    for policy in &plan.policies {
        for table in Table::ALL {
            let ours = table.path(folder, &policy.name, 0);
            let Some(runs) = ours.ancestors().nth(2).and_then(|folder| std::fs::read_dir(folder).ok()) else {
                continue;
            };
            for run in runs.flatten() {
                let name = run.file_name();
                let number =
                    name.to_str().and_then(|name| name.strip_prefix("run=")).and_then(|n| n.parse::<u64>().ok());
                let Some(number) = number else { continue };
                let seeded = number < plan.seeds.len() as u64 && (number == 0 || table != Table::Demands);
                if seeded && plan.tables.contains(&table) {
                    continue;
                }
                let path = table.path(folder, &policy.name, number);
                match std::fs::remove_file(&path) {
                    Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                        return Err(Error::output(path, error));
                    }
                    _ => {}
                }
                // The folder goes too, unless something else stands in it.
                let _ = std::fs::remove_dir(run.path());
            }
        }
    }
    Ok(())
}

fn supply(plan: &Plan, seed: u64, progress: &dyn Progress) -> Result<Supply> {
    let supply = match &plan.workload {
        WorkloadPlan::Generator(generator) => Supply::generate(generator, seed)?,
        WorkloadPlan::Trace { path, format, options, thin } => {
            let supply = Supply::trace(path, *format, options)?;
            match thin {
                Some(share) => supply.thinned(*share, seed),
                None => supply,
            }
        }
    };
    progress.opened(&supply);
    Ok(supply)
}

impl WorkloadPlan {
    /// The generator's name, or the trace's file name.
    pub fn name(&self) -> String {
        match self {
            WorkloadPlan::Generator(generator) => generator.name().to_owned(),
            WorkloadPlan::Trace { path, .. } => {
                path.file_name().map_or("trace".into(), |name| name.to_string_lossy()).into_owned()
            }
        }
    }

    /// Whether seeds make a difference.
    pub fn is_seeded(&self) -> bool {
        !matches!(self, WorkloadPlan::Trace { thin: None, .. })
    }
}

/// What the results' folder says of itself.
fn contents(plan: &Plan) -> Contents {
    let seeded = plan.workload.is_seeded();
    Contents {
        schema: schema::VERSION,
        name: plan.name.clone(),
        question: plan.question.clone(),
        policies: plan.policies.iter().map(|policy| policy.name.clone()).collect(),
        baseline: plan.policies[plan.baseline].name.clone(),
        seeds: plan.seeds.iter().map(|&seed| seeded.then_some(seed)).collect(),
        command: plan.command.clone(),
        plan: plan.text.clone(),
    }
}

/// What every file of the results carries: nothing that differs between two ways to run the same plan.
pub fn metadata(plan: &Plan) -> Result<Vec<(String, String)>> {
    let mut metadata = vec![
        ("plimsoll.version".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
        ("plimsoll.schema".to_owned(), schema::VERSION.to_string()),
        ("plimsoll.plan".to_owned(), plan.text.clone()),
        ("plimsoll.rng".to_owned(), "rand_chacha ChaCha8, one stream a purpose".to_owned()),
    ];
    if let WorkloadPlan::Trace { path, .. } = &plan.workload
        // Standard input and pipes are read once, by the run.
        && path.is_file()
    {
        metadata.push(("plimsoll.trace_blake3".to_owned(), Input::open(path)?.digest()?));
    }
    let mut digests = Vec::new();
    for policy in &plan.policies {
        for path in &policy.files {
            digests.push(format!("{} {}", policy.name, Input::open(path)?.digest()?));
        }
    }
    if !digests.is_empty() {
        metadata.push(("plimsoll.policies_blake3".to_owned(), digests.join("; ")));
    }
    Ok(metadata)
}
