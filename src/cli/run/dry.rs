//! `plimsoll run --dry-run`: lists the runs of a plan and estimates their time.

use std::time::{Duration, Instant};

use super::RunSettings;
use crate::cli::printout::Printout;
use crate::cli::{Context, Format, Stop, print};
use crate::error::{Error, Result};
use crate::experiment::study::{ListedRun, listed};
use crate::experiment::{Destination, Mode, Plan, SharedSupply, Study, check, simulate};
use crate::output::numbers::count;
use crate::output::ownership::check_owner;
use crate::units::Time;

/// Maximum duration of the trial of a policy.
const TRIAL: Duration = Duration::from_millis(500);

/// Maximum number of trial runs.
const TRIALS: usize = 8;

/// Lists the runs, and estimates the time of the missing ones. Errors: also the errors of a run before its first event.
pub fn list(study: &Study, how: &RunSettings, context: &Context) -> Result<()> {
    if let Some(folder) = how.folder {
        check_owner(folder)?;
    }
    check(study)?;
    // With `--restart` every run is repeated, so existing runs do not count.
    let folder = how.folder.filter(|_| how.mode != Mode::Restart);
    let runs = listed(study, folder, how.shard)?;
    let missing = runs.iter().filter(|run| !run.there).count();
    match how.format {
        Format::Json => {
            let one = |run: &ListedRun| {
                let cell = &study.cells[run.cell];
                serde_json::json!({"id": run.id, "cell": cell.cell, "policy": run.policy, "run": run.run,
                                   "seed": run.seed, "there": run.there})
            };
            let all: Vec<serde_json::Value> = runs.iter().map(one).collect();
            context.out(&format!("{:#}\n", serde_json::Value::Array(all)))?;
        }
        format => {
            let header = ["run", "cell", "policy", "seed", "state"].map(str::to_owned);
            let row = |run: &ListedRun| {
                let seed = run.seed.map(|seed| seed.to_string()).unwrap_or_default();
                let state = if run.there { "complete" } else { "to run" };
                vec![run.id.clone(), study.cells[run.cell].cell.clone(), run.policy.clone(), seed, state.to_owned()]
            };
            let grid = print::aligned_left(&header, &runs.iter().map(row).collect::<Vec<_>>());
            context.out(&Printout::from(grid).render(format))?;
        }
    }
    if study.cells.iter().any(|plan| plan.precision.is_some()) {
        context.print_message("the number of seeds depends on the results; this list has the maximum");
    }
    if missing == 0 {
        context.print_message(&format!("{}, all complete", count(runs.len() as u64, "run")));
        return Ok(());
    }
    let estimate = estimate(study, &runs, &context.stop)?;
    let span = |seconds: f64| match seconds {
        s if s < 100.0 => format!("{s:.0} s"),
        s if s < 6000.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    };
    context.print_message(&format!(
        "{}, {missing} to run: about {} on {}, estimated from the first half second of some of them",
        count(runs.len() as u64, "run"),
        span(estimate / how.threads.min(missing) as f64),
        count(how.threads as u64, "thread")
    ));
    Ok(())
}

/// Estimates the seconds of one thread for the missing runs, from the first tasks of a few of them.
fn estimate(study: &Study, runs: &[ListedRun], stop: &Stop) -> Result<f64> {
    let missing: Vec<&ListedRun> = runs.iter().filter(|run| !run.there).collect();
    let mut kinds: Vec<(usize, usize)> = missing.iter().map(|run| (run.cell, run.policy_at)).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let step = kinds.len().div_ceil(TRIALS).max(1);
    let tried: Vec<f64> = kinds
        .iter()
        .step_by(step)
        .map(|&(cell, policy)| trial(&study.cells[cell], policy, stop).map_err(|error| study.located(cell, error)))
        .collect::<Result<_>>()?;
    let mean = tried.iter().sum::<f64>() / tried.len().max(1) as f64;
    Ok(mean * missing.len() as f64)
}

/// Returns the seconds of one run: measured if it ends soon; otherwise scaled by its number of tasks, or not scaled if that number is
/// unknown.
fn trial(plan: &Plan, policy: usize, stop: &Stop) -> Result<f64> {
    let started = Instant::now();
    let supply = SharedSupply::from(plan.workload.supply(plan.seeds[0])?);
    let making = started.elapsed();
    let name = plan.workload.name();
    let simulation = plan.simulation(&supply, &name);
    let to = Destination {
        folder: None,
        policy: plan.policies[policy].name.clone(),
        run: 0,
        seed: None,
        axes: Vec::new(),
        tables: plan.tables.clone(),
        metadata: Vec::new(),
        saved: None,
    };
    let (started, mut launched) = (Instant::now(), 0u64);
    let outcome = simulate(&simulation, &plan.policies[policy], &to, &mut |_: Time, so_far| {
        launched = so_far;
        stop.check()?;
        if started.elapsed() > TRIAL { Err(Error::Interrupted) } else { Ok(()) }
    });
    stop.check()?;
    let took = started.elapsed().as_secs_f64();
    let share = match (outcome, supply.tasks()) {
        (Ok(_), _) => 1.0,
        (Err(Error::Interrupted), Some(tasks)) => (launched as f64 / tasks.max(1) as f64).clamp(1e-6, 1.0),
        (Err(Error::Interrupted), None) => 1.0,
        (Err(error), _) => return Err(error),
    };
    Ok(making.as_secs_f64() / plan.policies.len() as f64 + took / share)
}
