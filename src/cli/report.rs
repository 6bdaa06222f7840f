//! `plimsoll report`: rewrites the HTML report of a results folder from its tables.

use std::path::{Path, PathBuf};

use plimsoll_runs::WaitLog;

use super::progress::Bar;
use super::{Context, stored};
use crate::engine::WatchedJobs;
use crate::error::{Error, Result};
use crate::experiment::{Progress, RepeatedRun, StudyRun, check_repeated, policy_meaning};
use crate::output::folder::StudyRecord;
use crate::output::folder::lock_there;
use crate::output::html::{JobStory, SimulatorData};
use crate::output::manifest::Manifest;
use crate::output::page::{NARROW, PageExtras, Pictures};
use crate::output::paper::Paper;
use crate::output::requests::{Requests, Whole};
use crate::output::schema::Table;
use crate::output::{files, gallery, overview, page};
use crate::page::read_module;

/// Rewrite the HTML report of a results folder, with its figures, from its tables
#[derive(clap::Args, Debug, serde::Deserialize)]
#[command(after_help = "Examples:
  plimsoll report results/facebook
  plimsoll report results/facebook --stories 100   # with explanations of waits
  plimsoll report results/facebook --simulate      # with simulations in it
  plimsoll report results/mine && xdg-open results/mine/report.html")]
pub struct Args {
    /// A folder that `run` or `replay -o` has written
    folder: PathBuf,
    /// Also explain the waits of the N jobs that waited longest under each policy in its first run, by repeating the run
    #[arg(long, value_name = "N", default_value_t = 0)]
    stories: usize,
    /// Also let the reader simulate the first run with other machines, weights, load and policies: includes the engine, a
    /// WebAssembly module [default: plimsoll_page.wasm beside the program or in target/wasm32-unknown-unknown/page]
    #[arg(long, value_name = "ENGINE.wasm", num_args = 0..=1, require_equals = true)]
    simulate: Option<Option<PathBuf>>,
}

pub fn run(args: &Args, context: &Context) -> Result<()> {
    let _alone = lock_there(&args.folder)?;
    let stories = match args.stories {
        0 => Vec::new(),
        most => stories(&args.folder, most, context)?,
    };
    let simulator = args.simulate.as_ref().map(|engine| simulator(&args.folder, engine.as_deref(), context));
    let extras = PageExtras { stories, simulator: simulator.transpose()? };
    let (report, notes) = make(&args.folder, &extras)?;
    notes.iter().for_each(|note| context.print_message(note));
    context.out(&format!("{}\n", report.display()))
}

/// The folder and the file that a report consists of.
const DRAWN: &[&str] = &[files::FIGURES, files::REPORT];

/// Explains the waits of the jobs that waited longest in the first run of each policy. Errors: those of the tables and of the repeated
/// runs; the folder has a sweep.
fn stories(folder: &Path, most: usize, context: &Context) -> Result<Vec<JobStory>> {
    let whole = Whole::open(folder)?;
    let Some(results) = whole.alone() else {
        let expected = "results of a plan without a sweep: the report of a sweep has no jobs";
        return Err(Error::plan("--stories", most, expected));
    };
    let study = stored::study(folder, context)?;
    let bar = Bar::new(context.quiet, &context.stop);
    let parts = results.table(Table::Jobs, &["job", "submit_us", "start_us"], Some(results.first_run()))?;
    bar.planned(parts.len(), 0);
    let mut stories = Vec::new();
    for (number, part) in parts.iter().enumerate() {
        let policy = &results.contents.policies[part.policy];
        let run = StudyRun::find(&study, Some(""), Some(policy), part.run)?;
        let starts = part.numbers("submit_us")?.into_iter().zip(part.numbers("start_us")?);
        let mut waits: Vec<(f64, String)> = part
            .names("job")?
            .into_iter()
            .zip(starts)
            .filter_map(|(job, (submit, start))| Some((start? - submit?, job)))
            .filter(|(wait, _)| *wait > 0.0)
            .collect();
        waits.sort_by(|a, b| b.0.total_cmp(&a.0));
        waits.truncate(most);
        let mut log =
            WaitLog::new(WatchedJobs::Named(waits.into_iter().map(|(_, job)| job).collect()), policy_meaning(policy));
        bar.started(number, None);
        let repeated = RepeatedRun::new(&study, run)?;
        let heartbeat = &mut |now, launched| bar.tick(number, now, launched);
        let summary = repeated.observe(repeated.plan(), None, &mut log, heartbeat)?;
        check_repeated(folder, &study, run, &summary)?;
        bar.finished(number, &summary);
        let log = log.finish(summary.outcome.end);
        stories.extend(log.waits.iter().map(|wait| {
            JobStory {
                policy: policy.clone(),
                run: part.run,
                job: wait.job.clone(),
                sentences: log.sentences(wait),
                intervals: wait
                    .before
                    .iter()
                    .map(|one| (one.from.seconds(), one.to.seconds(), one.reason.row().name.to_owned()))
                    .collect(),
            }
        }));
    }
    bar.clear();
    Ok(stories)
}

/// Returns the part of the report that simulates. Errors: those of the module, of the plan and of the repeated runs; the folder has a
/// sweep.
fn simulator(folder: &Path, engine: Option<&Path>, context: &Context) -> Result<SimulatorData> {
    let whole = Whole::open(folder)?;
    let Some(results) = whole.alone() else {
        let expected = "results of a plan without a sweep: a page simulates one plan";
        return Err(Error::plan("--simulate", "a sweep", expected));
    };
    let module = read_module(engine)?;
    let study = stored::study(folder, context)?;
    let stop = context.stop.clone();
    let mut heartbeat = || stop.check();
    crate::page::simulator(&study, results, &module, context.registry, &mut heartbeat)
}

/// Draws the figures and writes the report; for a sweep, the figures and the report of every cell, and an overview. Returns the file of
/// the report or the overview, and notes on missing figures.
pub fn make(folder: &Path, extras: &PageExtras) -> Result<(PathBuf, Vec<String>)> {
    let whole = Whole::open(folder)?;
    let requests = Requests::beside(&whole)?;
    let gallery = requests.draw(&whole, &[])?;
    let plan = format!("{}{}", whole.plan, requests.appendix());
    let provenance = whole.provenance(&plan);
    let mut written = gallery::write(folder, &gallery.figures, &provenance)?;
    let mut notes = whole.missing();
    notes.extend(gallery.notes.iter().cloned());
    let narrow = requests.clone().on(Paper::wide("width", NARROW)?).draw(&whole, &[])?;
    let pictures = Pictures { gallery: &gallery, narrow: &narrow };
    let page = match whole.alone() {
        Some(results) => page::write(results, &pictures, &plan, extras)?,
        None => {
            let folders = cells(&whole, &requests, &mut notes)?;
            let described = StudyRecord::read(folder)?.unwrap_or_default();
            let sweep = overview::SweepReport {
                name: &described.name,
                question: described.question.as_deref(),
                plan: &plan,
                whole: &whole,
                folders: &folders,
                metrics: &requests.metrics(),
                provenance: &provenance,
            };
            overview::write(&sweep, folder, &pictures)?
        }
    };
    written.push(page.clone());
    Manifest::renew(folder, None, DRAWN, &written)?;
    Ok((page.path, notes))
}

/// Draws the figures and writes the report of every cell; returns the names of their folders.
fn cells(whole: &Whole, requests: &Requests, notes: &mut Vec<String>) -> Result<Vec<String>> {
    let mut folders = Vec::new();
    // Messages are grouped with their cells, since most messages apply to every cell.
    let mut said: Vec<(String, Vec<&str>)> = Vec::new();
    for (cell, _, results) in &whole.cells {
        let mut own = gallery::Gallery::default();
        let mut narrow = gallery::Gallery::default();
        for (kind, paper) in requests.builtin() {
            own.add(gallery::draw(results, kind, &paper)?);
            narrow.add(gallery::draw(results, kind, &Paper::wide("width", NARROW)?)?);
        }
        let plan = &results.contents.plan;
        let mut written = gallery::write(&results.folder, &own.figures, &results.provenance(plan))?;
        written.push(page::write(results, &Pictures { gallery: &own, narrow: &narrow }, plan, &PageExtras::default())?);
        Manifest::renew(&results.folder, None, DRAWN, &written)?;
        for note in own.notes {
            match said.iter_mut().find(|(known, _)| *known == note) {
                Some((_, cells)) => cells.push(cell),
                None => said.push((note, vec![cell])),
            }
        }
        folders.push(results.folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default());
    }
    notes.extend(said.into_iter().map(|(note, cells)| match cells.len() {
        all if all == whole.cells.len() => format!("in all cells: {note}"),
        1..=4 => format!("in {}: {note}", cells.join(", ")),
        many => format!("in {many} cells: {note}"),
    }));
    Ok(folders)
}
