//! `plimsoll published`: numbers of other groups beside ours, with a verdict on each.

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use plimsoll_published::{
    Judged, NumberKind, NumberVerdict, PublishedTarget, TargetProgress, counts, csv, evaluate, page, targets,
};

use super::printout::Printout;
use super::screen::{Alignment, Grid, paragraphs};
use super::{Context, Format, Stop, pool, print, screen, threads};
use crate::error::{Error, Result};
use crate::experiment::published::PlanRunner;
use crate::output::file::write_whole;
use crate::output::folder::check_output;
use crate::output::numbers::{count, number};

/// Reproduce numbers of other groups, and say which are within their tolerance
///
/// Each target is a folder with plans and a table of numbers. Inputs that are not part of the repository are read from the
/// data folder; without its input, a number is not run.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  plimsoll published small-examples
  plimsoll published --data ../shared/data
  plimsoll published fgd --data ../shared/data -o results/published
  plimsoll published --data ../shared/data --page docs/published.md
  plimsoll published --targets my-targets --data my-data")]
pub struct Args {
    /// Only these targets; without names, all
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// The folder of input files that are not part of the repository
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// The folder for the table of numbers and for the inputs of all plans
    #[arg(long, short, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Write the page about all targets to this file
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,
    /// The folder of targets
    #[arg(long, value_name = "DIR", default_value = "experiments/published")]
    targets: PathBuf,
    /// Threads [default: all cores]
    #[arg(long, short = 'j', value_name = "N")]
    jobs: Option<usize>,
    /// How to print
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// The time between two lines of progress.
const LINE: Duration = Duration::from_secs(10);

/// Prints the number of completed runs from time to time.
struct ProgressLines<'a> {
    quiet: bool,
    stop: &'a Stop,
    planned: AtomicUsize,
    finished: AtomicUsize,
    last: Mutex<Instant>,
}

impl TargetProgress for ProgressLines<'_> {
    fn planned(&self, runs: usize) {
        self.planned.store(runs, Ordering::Relaxed);
    }

    fn finished(&self) -> Result<()> {
        let done = self.finished.fetch_add(1, Ordering::Relaxed) + 1;
        self.stop.check()?;
        if let Ok(mut last) = self.last.lock()
            && !self.quiet
            && last.elapsed() >= LINE
        {
            *last = Instant::now();
            screen::eprint_line(&format!("{done} of {}", count(self.planned.load(Ordering::Relaxed) as u64, "run")));
        }
        Ok(())
    }
}

pub fn run(args: &Args, context: &Context) -> Result<()> {
    if let Some(folder) = &args.output {
        check_output("--output", folder)?;
    }
    if let Some(folder) = args.data.as_ref().filter(|folder| !folder.is_dir()) {
        return Err(Error::plan("--data", format!("'{}'", folder.display()), "a folder"));
    }
    let targets = targets(&args.targets, &args.names)?;
    let (work, _temporary) = match &args.output {
        Some(folder) => (folder.join("inputs"), None),
        None => {
            let folder = tempfile::tempdir().map_err(|error| Error::output(std::env::temp_dir(), error))?;
            (folder.path().to_owned(), Some(folder))
        }
    };
    let stop = context.stop.clone();
    let check = || stop.check();
    let runner = PlanRunner { registry: context.registry, check: &check };
    let quiet = context.quiet || context.warnings.is_some();
    let (planned, finished) = Default::default();
    let progress = ProgressLines { quiet, stop: &stop, planned, finished, last: Mutex::new(Instant::now()) };
    let judged =
        pool(threads(args.jobs)?)?.install(|| evaluate(&targets, args.data.as_deref(), &work, &runner, &progress))?;
    let table = csv(&targets, &judged);
    if let Some(folder) = &args.output {
        write_whole(&folder.join("published.csv"), table.as_bytes())?;
    }
    if let Some(file) = &args.page {
        write_whole(file, page(&targets, &judged).as_bytes())?;
    }
    match args.format {
        Format::Csv => print::out(&table),
        Format::Json => print::out(&json(&targets, &judged)?),
        format => print::out(&text(&targets, &judged, !args.names.is_empty()).render(format)),
    }
}

/// The maximum number of numbers outside of their tolerance in the text.
const MOST: usize = 20;

fn text(targets: &[PublishedTarget], judged: &[Vec<Judged>], all: bool) -> Printout {
    let header = |names: &[&str]| -> Vec<(String, Alignment)> {
        let side = |at: usize| if at == 0 { Alignment::Left } else { Alignment::Right };
        names.iter().enumerate().map(|(at, name)| ((*name).to_owned(), side(at))).collect()
    };
    let of_kind = |judged: &[Judged], published: bool| {
        counts(judged.iter().filter(|one| (one.row.kind == NumberKind::Published) == published))
    };
    let mut text = Printout::default();
    let row = |(target, judged): (&PublishedTarget, &Vec<Judged>)| {
        let numbers = of_kind(judged, true).into_iter().chain(of_kind(judged, false));
        std::iter::once(target.name.clone()).chain(numbers.map(|number| number.to_string())).collect()
    };
    let mut rows: Vec<Vec<String>> = targets.iter().zip(judged).map(row).collect();
    if targets.len() > 1 {
        let sum = |at: usize| rows.iter().filter_map(|row| row[at].parse::<usize>().ok()).sum::<usize>().to_string();
        rows.push(std::iter::once("all".to_owned()).chain((1..7).map(sum)).collect());
    }
    text += Grid::new(header(&["published", "within", "outside", "not run", "own within", "outside", "not run"]), rows);
    let line = |one: &Judged| {
        let ours = match (&one.exact, one.ours) {
            (Some(exact), _) => exact.clone(),
            (None, ours) => number(ours.map(|ours| ours.mean)),
        };
        let verdict = one.verdict.name().to_owned();
        vec![one.row.id.clone(), ours, one.row.value.clone(), one.row.tolerance_text.clone(), verdict]
    };
    let names = ["number", "ours", "published", "tolerance", "verdict"];
    let shown = |one: &&Judged| all || one.verdict == NumberVerdict::Outside;
    let lines: Vec<Vec<String>> = judged.iter().flatten().filter(shown).map(line).collect();
    let hidden = if all { 0 } else { lines.len().saturating_sub(MOST) };
    if !lines.is_empty() {
        text += "\n";
        text += Grid::new(header(&names), lines[..lines.len() - hidden].to_vec());
    }
    if hidden > 0 {
        text += paragraphs(&format!("{} more outside; --format csv prints all", hidden));
    }
    let outside = |one: &&Judged| one.verdict == NumberVerdict::Outside;
    for one in judged.iter().flatten().filter(outside).take(MOST) {
        text += paragraphs(&format!("{}: {}", one.row.id, one.reason));
    }
    let causes: std::collections::BTreeSet<&str> = judged
        .iter()
        .flatten()
        .filter(|one| matches!(one.verdict, NumberVerdict::NotRun(_)))
        .map(|one| one.reason.as_str())
        .collect();
    if !causes.is_empty() {
        causes.iter().for_each(|cause| text += paragraphs(&format!("not run: {cause}")));
    }
    text
}

fn json(targets: &[PublishedTarget], judged: &[Vec<Judged>]) -> Result<String> {
    let one = |target: &PublishedTarget, one: &Judged| {
        serde_json::json!({
            "target": target.name, "id": one.row.id, "ours": one.ours.map(|ours| ours.mean),
            "low": one.ours.and_then(|ours| ours.low), "high": one.ours.and_then(|ours| ours.high),
            "exact": one.exact, "published": one.row.value, "unit": one.row.unit, "tolerance": one.row.tolerance_text,
            "kind": one.row.kind.name(), "verdict": one.verdict.name(), "reason": one.reason, "source": one.row.source,
        })
    };
    let all: Vec<serde_json::Value> = targets
        .iter()
        .zip(judged)
        .flat_map(|(target, judged)| judged.iter().map(move |row| one(target, row)))
        .collect();
    let text = serde_json::to_string_pretty(&all).map_err(|error| Error::output("standard output", error))?;
    Ok(text + "\n")
}
