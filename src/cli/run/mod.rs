//! `plimsoll run`: executes an experiment, with all its runs, tables, figures and report.
//!
//! Complete runs in the results folder are kept if they belong to the plan. Plans without runs (`[check]`, `[solve]`, `[failover]`) are
//! executed by their own modules. All plans are read and checked before the first one runs.

mod dry;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use plimsoll_runs::SaveEvery;
use serde::Deserialize;

use super::accelerators;
use super::printout::Printout;
use super::progress::Bar;
use super::static_plan::StaticPlan;
use super::{
    Context, Format, check, document, failover, left_over, over_commit, print, report, screen, solve, threads,
};
use crate::document::Document;
use crate::error::{Error, Result};
use crate::experiment::accelerators::AcceleratorStudy;
use crate::experiment::failover::FailoverPlan;
use crate::experiment::study::Shard;
use crate::experiment::study::identity::slashed;
use crate::experiment::{
    Done, Findings, Mode, Plan, ROW_MEMORY, Request, RunSummary, Study, comparison, execute, findings,
};
use crate::output::files;
use crate::output::folder::check_output;
use crate::output::numbers::count;
use crate::output::ownership::foreign_files;
use crate::output::page::PageExtras;
use crate::output::provenance::{COMMIT, VERSION};
use crate::output::sealed;
use crate::tree::Node;
use crate::units::{Span, span};

/// Run an experiment: all runs, tables, figures, report
///
/// Runs that are already in the results folder are kept if they belong to this plan and are complete; only the others are
/// run.
#[derive(clap::Args, Debug, serde::Deserialize)]
#[command(after_help = "Examples:
  plimsoll run experiments/facebook.toml
  plimsoll run experiments/facebook.toml -o results/quick --set seeds=2
  plimsoll run experiments/paper/*.toml
  plimsoll run experiments/load-sweep.toml --dry-run
  plimsoll run experiments/load-sweep.toml --shard 0/4   # on one of 4 machines
  plimsoll run experiments/load-sweep.toml --gather      # when all have ended")]
pub struct Args {
    /// The plan; several plans run one after the other
    #[arg(required = true, value_name = "PLAN", value_parser = document())]
    plans: Vec<Document>,
    /// The folder for the results, only with one plan [default: results/NAME]
    #[arg(long, short, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Threads [default: all cores]
    #[arg(long, short = 'j', value_name = "N")]
    jobs: Option<usize>,
    /// Change a key of the plan, such as seeds=2 or workload.load=0.7; may be given several times
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Keep complete runs, and run the others: the default
    #[arg(long, conflicts_with = "restart")]
    resume: bool,
    /// Run everything again, and remove existing results, even those of another plan
    #[arg(long)]
    restart: bool,
    /// Run only this part of the runs: I/N with I from 0, auto (the index of a job array) or auto/N
    #[arg(long, value_name = "I/N", conflicts_with = "restart")]
    shard: Option<String>,
    /// Run nothing; make tables, figures and the report from the runs of the shards
    #[arg(long, conflicts_with_all = ["restart", "shard"])]
    gather: bool,
    /// Run nothing; list the runs and estimate how long they would take
    #[arg(long, conflicts_with = "gather")]
    dry_run: bool,
    #[command(flatten)]
    #[serde(flatten)]
    save: SaveOptions,
    /// How to print the summary
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

impl Args {
    fn mode(&self) -> Mode {
        match (self.restart, self.gather) {
            (true, _) => Mode::Restart,
            (_, true) => Mode::Gather,
            _ => Mode::Resume,
        }
    }

    fn shard(&self) -> Result<Option<Shard>> {
        self.shard.as_deref().map(|text| Shard::parse(text, |name| std::env::var(name).ok())).transpose()
    }
}

/// The option for saved states.
#[derive(clap::Args, Clone, Debug, serde::Deserialize)]
pub struct SaveOptions {
    /// Save the state of each run after every such real time (1s, 10m), so that a killed run continues when the command
    /// is repeated; or none
    #[arg(long = "save-every", default_value = "10m", value_name = "SPAN", value_parser = save_interval)]
    #[serde(deserialize_with = "deserialize_interval")]
    pub every: SaveInterval,
}

/// The interval between two saved states of a run; `None` saves no state.
pub type SaveInterval = Option<SaveEvery>;

/// Parses an interval between saved states. Errors: the accepted values.
fn save_interval(text: &str) -> std::result::Result<SaveInterval, String> {
    let expected = || "expected a span above 0, such as 1s or 10m, or none".to_owned();
    match span(text) {
        _ if text == "none" => Ok(None),
        Ok(time) if time > Span::ZERO => Ok(Some(SaveEvery::Time(Duration::from_micros(time.0)))),
        _ => Err(expected()),
    }
}

fn deserialize_interval<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> std::result::Result<SaveInterval, D::Error> {
    save_interval(&String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
}

/// A plan of any kind.
enum Any {
    Runs(Box<Study>),
    Failover(Box<(StaticPlan, FailoverPlan)>),
    Check(Box<check::CheckPlan>),
    Solve(Box<solve::SolvePlan>),
    Accelerators(Box<AcceleratorStudy>),
}

impl Any {
    fn read(plan: &Document, set: &[String], context: &Context) -> Result<Any> {
        let text = &plan.read()?;
        // Syntax errors are reported by the parser.
        let tree = Node::toml(text).unwrap_or_default();
        let has = |key| tree.get(key).is_some();
        Ok(if has("failover") {
            let plan = FailoverPlan::read(text, set)?;
            Any::Failover(Box::new((StaticPlan::of_failover(&plan, text.file(), set), plan)))
        } else if has("check") {
            Any::Check(Box::new(check::CheckPlan::read(text, set, context)?))
        } else if has("solve") {
            Any::Solve(Box::new(solve::SolvePlan::read(text, set, context)?))
        } else if AcceleratorStudy::is_plan(text) {
            Any::Accelerators(Box::new(AcceleratorStudy::read(text, set)?))
        } else {
            Any::Runs(Box::new(Study::from_text(text.clone(), set, context.registry)?))
        })
    }

    fn name(&self) -> &str {
        match self {
            Any::Runs(study) => &study.name,
            Any::Failover(plan) => &plan.1.name,
            Any::Check(plan) => plan.name(),
            Any::Solve(plan) => plan.name(),
            Any::Accelerators(study) => &study.name,
        }
    }

    /// Returns whether the plan consists of runs, which can be distributed over machines.
    fn has_runs(&self) -> bool {
        matches!(self, Any::Runs(_) | Any::Accelerators(_))
    }
}

pub fn run(args: &Args, context: &Context) -> Result<()> {
    // All plans are read before the first one runs, so that an error in the last one is reported at once.
    let read = |plan: &Document| Any::read(plan, &args.set, context);
    let plans = args.plans.iter().map(read).collect::<Result<Vec<Any>>>()?;
    if let (Some(folder), true) = (&args.output, plans.len() > 1) {
        let given = format!("'{}' with {} plans", folder.display(), plans.len());
        return Err(Error::plan("--output", given, "one plan; without it each plan has its folder results/NAME"));
    }
    for plan in plans.iter().filter(|plan| !plan.has_runs()) {
        let option = if args.gather { "--gather" } else { "--shard" };
        if args.gather || args.shard.is_some() {
            let given = format!("the plan '{}'", plan.name());
            return Err(Error::plan(
                option,
                given,
                "plans with runs; a plan of [check], [solve] or [failover] has none",
            ));
        }
    }
    for (at, plan) in plans.iter().enumerate() {
        if let Some(other) = plans[..at].iter().position(|other| other.name() == plan.name()) {
            let both = format!("{} and {}", args.plans[other].name().display(), args.plans[at].name().display());
            let problem = format!("{both} are both named '{}'; each plan needs a folder of its own", plan.name());
            return Err(Error::Mismatch { problem });
        }
    }
    for (at, plan) in plans.iter().enumerate() {
        if plans.len() > 1 {
            context.print_message(&format!("plan {} of {}: {}", at + 1, plans.len(), plan.name()));
        }
        let folder = args.output.clone().unwrap_or_else(|| Path::new("results").join(plan.name()));
        check_output("--output", &folder)?;
        let place = (folder.as_path(), args.restart);
        match plan {
            Any::Runs(study) => one(study, &folder, args, context)?,
            Any::Accelerators(study) => {
                let (mode, shard, format) = (args.mode(), args.shard()?, args.format);
                let how = accelerators::AcceleratorRunSettings {
                    folder: &folder,
                    threads: threads(args.jobs)?,
                    mode,
                    shard,
                    format,
                };
                if args.dry_run {
                    accelerators::list(study, &how, context)?;
                } else {
                    accelerators::run(study, &how, context)?;
                }
            }
            _ if args.dry_run => {
                context.print_message(&format!("{}: this kind of plan has no runs to list", plan.name()))
            }
            Any::Failover(plan) => {
                failover::study::run((&plan.0, &plan.1), place, threads(args.jobs)?, args.format, context)?;
            }
            Any::Check(plan) => plan.run(place, threads(args.jobs)?, args.format, context)?,
            Any::Solve(plan) => plan.run(place, args.format, context)?,
        }
    }
    Ok(())
}

/// Executes one study as requested.
fn one(study: &Study, folder: &Path, args: &Args, context: &Context) -> Result<()> {
    let (mode, shard) = (args.mode(), args.shard()?);
    let save_every = args.save.every;
    let how = RunSettings {
        folder: Some(folder),
        threads: threads(args.jobs)?,
        mode,
        shard,
        format: args.format,
        save_every,
    };
    if args.dry_run {
        return dry::list(study, &how, context);
    }
    perform(study, &how, Draw::Report, context)
}

/// Whether figures and report are drawn from the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Draw {
    /// Figures and report.
    Report,
    /// Tables only.
    Nothing,
}

/// The settings for the execution of a study and for its summary.
#[derive(Clone, Copy)]
pub struct RunSettings<'a> {
    /// The folder for the tables; `None` writes nothing.
    pub folder: Option<&'a Path>,
    /// Number of threads.
    pub threads: usize,
    /// The handling of existing results.
    pub mode: Mode,
    /// The part of the runs to execute; all if absent.
    pub shard: Option<Shard>,
    /// The format of the summary.
    pub format: Format,
    /// The interval between two saved states of a run; `None` saves none.
    pub save_every: Option<SaveEvery>,
}

/// Executes a study, prints its summary and reports tasks that never started. Errors: also [`Error::Idle`] for runs without any started
/// task; it is returned after all files are written.
pub fn perform(study: &Study, how: &RunSettings, draw: Draw, context: &Context) -> Result<()> {
    let done = performed(study, how, draw, context)?;
    print::idle(study, &done.cells).map_or(Ok(()), |problem| Err(Error::Idle { problem }))
}

fn performed(study: &Study, how: &RunSettings, draw: Draw, context: &Context) -> Result<Done> {
    let started = Instant::now();
    if let Some(folder) = how.folder {
        match foreign_files(folder)? {
            0 => {}
            others => context.print_message(&format!(
                "{} has {others} files or folders that are not results; they are kept",
                folder.display()
            )),
        }
    }
    let bar = Bar::new(context.quiet, &context.stop);
    let &RunSettings { folder, threads, mode, shard, save_every, .. } = how;
    let request = Request { folder, threads, mode, shard, row_memory: ROW_MEMORY, save_every };
    let outcome = execute(study, &request, &bar);
    bar.clear();
    let done = outcome?;
    done.broken.iter().for_each(|why| context.warn(&format!("{why}; it was run again")));
    if done.kept > 0 {
        context.print_message(&match done.kept {
            1 => format!("1 run was complete already, {} were made", done.made),
            kept => format!("{kept} runs were complete already, {} were made", done.made),
        });
    }
    done.saved_notes.iter().for_each(|note| context.print_message(note));
    if let (Some(SaveEvery::Time(every)), false) = (how.save_every, done.unsaved.is_empty())
        && started.elapsed() >= every
    {
        let policies: Vec<&str> = done.unsaved.iter().map(String::as_str).collect();
        context.print_message(&format!("runs under {} save no state; a killed one begins again", policies.join(", ")));
    }
    if let Some(folder) = how.folder {
        let shard = how.shard.map(|shard| format!("-{}-of-{}", shard.index, shard.of)).unwrap_or_default();
        let part = how.shard.map(|shard| shard.to_string());
        let more = serde_json::json!({
            "plan": study.file(), "set": study.set, "shard": part, "runs_made": done.made, "runs_kept": done.kept,
            "folder": relative_path(folder, study.file().and_then(Path::parent).unwrap_or(Path::new(""))), "inputs": done.inputs,
        });
        let facts = provenance(context, how.threads, started, more);
        sealed::write(&folder.join(format!("run{shard}.json")), &facts)?;
        if let Some(shard) = how.shard {
            let runs: usize = done.cells.iter().map(Vec::len).sum();
            context.print_message(&format!(
                "shard {shard}: {} in {} ({:.1} s); when all shards are complete, run again with --gather",
                count(runs as u64, "run"),
                folder.display(),
                started.elapsed().as_secs_f64()
            ));
            return Ok(done);
        }
    }
    let findings = findings(study, &done.cells);
    if let Some(folder) = how.folder {
        findings.write(study, folder)?;
    }
    summary(study, &done, &findings, how.format, context)?;
    if how.format == Format::Table && !screen::is_wide() {
        context.print_message("--wide prints all columns");
    }
    // Every policy sees the same workload, so the messages of one run per cell suffice.
    let mut ignored: Vec<&String> =
        done.cells.iter().flat_map(|runs| runs.iter().take(1)).flat_map(|run| &run.ignored).collect();
    ignored.dedup();
    ignored.iter().for_each(|message| context.warn(message));
    print::stuck(done.cells.iter().flatten()).iter().for_each(|message| context.warn(message));
    left_over::stopped_waiting(done.cells.iter().flatten()).iter().for_each(|message| context.warn(message));
    left_over::unserved(done.cells.iter().flatten()).iter().for_each(|message| context.warn(message));
    print::unreturned(done.cells.iter().flatten()).iter().for_each(|message| context.warn(message));
    let Some(folder) = how.folder else { return Ok(done) };
    context.print_message(&format!("tables in {} ({:.1} s)", folder.display(), started.elapsed().as_secs_f64()));
    if draw == Draw::Report {
        drawn(study, folder, context)?;
    }
    Ok(done)
}

/// Draws figures and reports, and prints their paths.
fn drawn(study: &Study, folder: &Path, context: &Context) -> Result<()> {
    if let Some(note) = study.figures.write(folder)? {
        context.warn(&note);
    }
    let (page, notes) = report::make(folder, &PageExtras::default())?;
    notes.iter().for_each(|note| context.print_message(note));
    let figures = match study.is_swept() {
        true => format!(
            "figures in {}, figures and reports of {} in {}/cell=*",
            folder.join("figures").display(),
            count(study.cells.len() as u64, "cell"),
            folder.display()
        ),
        false => format!("figures in {}", folder.join("figures").display()),
    };
    context.print_message(&format!("{figures}, report in {}", page.display()));
    Ok(())
}

/// Maximum number of cells for which the tables of groups are printed.
const CELLS_MOST: usize = 12;

/// Prints the results.
fn summary(study: &Study, done: &Done, findings: &Findings, format: Format, context: &Context) -> Result<()> {
    if format == Format::Json {
        let one = |(plan, runs): (&Plan, &Vec<RunSummary>)| print::summary_json(runs, &plan.axes());
        let all: Vec<serde_json::Value> = study.cells.iter().zip(&done.cells).flat_map(one).collect();
        let text = serde_json::to_string_pretty(&all).map_err(|error| Error::output("standard output", error))?;
        return context.out(&(text + "\n"));
    }
    let mut text = Printout::from(screen::paragraphs(&print::setting(study)));
    text += print::summary_table(study, &done.cells);
    for (plan, runs) in study.cells.iter().zip(&done.cells).take(CELLS_MOST) {
        let groups = print::groups(runs);
        if study.is_swept() && !groups.is_empty() {
            text += format!("\n{}\n", plan.cell);
        }
        text += groups;
        let baseline = &plan.policies[plan.baseline].name;
        if let Some(comparison) = comparison(runs, baseline, plan.workload.design()).filter(|_| !study.is_swept()) {
            text += print::comparison(&comparison);
        }
    }
    let dims = done.cells.iter().flatten().next().map(|run| run.dims.clone()).unwrap_or_default();
    text += print::differences(study, findings, &dims);
    text += over_commit::footer(study, &done.cells);
    context.out(&text.render(format))
}

/// Returns the path from a results folder to the folder of the plan. The path is relative, so that it remains valid if both folders are
/// moved together; it is absolute if they are on different drives.
pub(super) fn relative_path(results: &Path, plan: &Path) -> Option<String> {
    let whole = |path: &Path| if path.as_os_str().is_empty() { Path::new(".") } else { path }.canonicalize();
    let (results, plan) = (whole(results).ok()?, whole(plan).ok()?);
    let common = results.components().zip(plan.components()).take_while(|(one, other)| one == other).count();
    if common == 0 {
        return Some(slashed(&plan));
    }
    let up = results.components().skip(common).map(|_| "..".as_ref());
    let way: PathBuf = up.chain(plan.components().skip(common).map(|part| part.as_os_str())).collect();
    Some(slashed(&way))
}

/// Updates the record `run.json` after results were copied to the folder `to`: writes the path from that folder to the plan. Errors: the
/// record cannot be read or written.
pub fn moved(from: &Path, to: &Path) -> Result<()> {
    let record = to.join(files::RUN);
    let Some(mut facts) = sealed::read::<serde_json::Map<String, serde_json::Value>>(&record)? else { return Ok(()) };
    let Some(plan) = facts.get("folder").and_then(|folder| folder.as_str()).map(|folder| from.join(folder)) else {
        return Ok(());
    };
    // The digest of the record is recomputed.
    facts.shift_remove("blake3");
    facts.insert("folder".to_owned(), relative_path(to, &plan).into());
    sealed::write(&record, &facts).map(drop)
}

/// Returns the facts that differ between two executions of the same plan, and the facts `more`. All other facts are in the metadata of the
/// tables.
pub(super) fn provenance(
    context: &Context,
    threads: usize,
    started: Instant,
    more: serde_json::Value,
) -> serde_json::Value {
    let clock = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let mut json = serde_json::json!({
        "command": context.line,
        "version": VERSION,
        "commit": COMMIT,
        "threads": threads,
        "finished_unix_s": clock,
        "elapsed_s": started.elapsed().as_secs_f64(),
        "system": std::env::consts::OS,
        "architecture": std::env::consts::ARCH,
    });
    if let (Some(json), serde_json::Value::Object(more)) = (json.as_object_mut(), more) {
        json.extend(more);
    }
    json
}
