//! `plimsoll run`: an experiment, with all its runs, tables, figures and report.

use std::path::{Path, PathBuf};
use std::time::Instant;

use super::progress::Bar;
use super::{Context, Format, failover, print, report, threads};
use crate::error::{Error, Result};
use crate::experiment::{Plan, RunSummary, comparison, execute};
use crate::output::table::write_whole;

/// Run an experiment: all runs, tables, figures, report
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  plimsoll run experiments/facebook.toml
  plimsoll run experiments/facebook.toml -o results/quick --set seeds=2 --set workload.load=0.6
  plimsoll run experiments/complementary.toml -j 1")]
pub struct Args {
    /// The plan
    plan: PathBuf,
    /// The folder for the results [default: results/NAME]
    #[arg(long, short, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Threads [default: all cores]
    #[arg(long, short = 'j', value_name = "N")]
    jobs: Option<usize>,
    /// Change a key of the plan, such as seeds=2 or workload.load=0.7; may be given several times
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// How to print the summary
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub fn run(args: &Args, context: &Context) -> Result<()> {
    if let Some(plan) = failover::study::plan(&args.plan, &args.set)? {
        let folder = args.output.clone().unwrap_or_else(|| Path::new("results").join(&plan.name));
        return failover::study::run(&plan, &folder, threads(args.jobs)?, args.format, context);
    }
    let plan = Plan::read(&args.plan, &args.set, context.registry)?;
    let folder = args.output.clone().unwrap_or_else(|| Path::new("results").join(&plan.name));
    perform(&plan, Some(&folder), threads(args.jobs)?, args.format, Draw::Report, context)?;
    Ok(())
}

/// Whether figures and report are drawn from the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Draw {
    /// Figures and report.
    Report,
    /// Tables only.
    Nothing,
}

/// Runs a plan, prints its summary and says what never started.
pub fn perform(
    plan: &Plan,
    folder: Option<&Path>,
    threads: usize,
    format: Format,
    draw: Draw,
    context: &Context,
) -> Result<Vec<RunSummary>> {
    let started = Instant::now();
    let bar = Bar::new(plan.runs().len(), context.quiet);
    let outcome = execute(plan, folder, threads, &bar);
    bar.clear();
    let runs = outcome?;
    if let Some(folder) = folder {
        write_whole(&folder.join("run.json"), provenance(context, threads, started).as_bytes())?;
    }
    match format {
        Format::Table => {
            print::out(&print::summary_table(&runs))?;
            print::out(&print::groups(&runs))?;
            if let Some(comparison) = comparison(&runs, &plan.policies[plan.baseline].name) {
                print::out(&print::comparison(&comparison))?;
            }
        }
        Format::Json => {
            let text = serde_json::to_string_pretty(&print::summary_json(&runs))
                .map_err(|error| Error::output("standard output", error))?;
            print::out(&(text + "\n"))?;
        }
    }
    // Every policy sees the same workload, so once is enough.
    runs.iter().take(1).flat_map(|run| &run.ignored).for_each(|message| context.warn(message));
    for run in &runs {
        print::stuck(run).iter().for_each(|message| context.warn(message));
    }
    if let Some(folder) = folder {
        context.say(&format!("tables in {} ({:.1} s)", folder.display(), started.elapsed().as_secs_f64()));
        if draw == Draw::Report {
            let (page, notes) = report::make(folder)?;
            notes.iter().for_each(|note| context.say(note));
            let figures = folder.join("figures");
            context.say(&format!("figures in {}, report in {}", figures.display(), page.display()));
        }
    }
    Ok(runs)
}

/// What differs between two ways to run the same plan; everything else is in the tables' metadata.
pub(super) fn provenance(context: &Context, threads: usize, started: Instant) -> String {
    let clock = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let json = serde_json::json!({
        "command": context.line,
        "version": env!("CARGO_PKG_VERSION"),
        "threads": threads,
        "finished_unix_s": clock,
        "elapsed_s": started.elapsed().as_secs_f64(),
        "system": std::env::consts::OS,
        "architecture": std::env::consts::ARCH,
    });
    format!("{json:#}\n")
}
