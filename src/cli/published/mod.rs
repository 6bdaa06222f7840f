//! `plimsoll published`: numbers of other groups beside ours, with a verdict on each.

mod folder;

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use plimsoll_published::{
    ClaimVerdict, Evaluated, Judged, NumberKind, NumberVerdict, PublishedTarget, TargetProgress, claims_csv, counts,
    csv, evaluate, page, rounded, targets,
};

use folder::PublishedFolder;

use super::printout::Printout;
use super::screen::{Alignment, Grid, paragraphs};
use super::{Context, Format, Stop, pool, screen, threads};
use crate::error::{Error, Result};
use crate::output::file::write_whole;
use crate::output::numbers::{count, number};
use crate::published::PlanRunner;

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
    /// The folder for the results (tables of verdicts, which `plimsoll bundle` packs) and for the inputs of all plans
    #[arg(long, short, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Write the page about all targets to this file
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,
    /// The folder of targets
    #[arg(long, value_name = "DIR", default_value = "experiments/published")]
    targets: PathBuf,
    /// Print the comparisons over repetitions instead of the numbers
    #[arg(long)]
    claims: bool,
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
    let started = Instant::now();
    let results = args.output.as_deref().map(PublishedFolder::lock).transpose()?;
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
    let quiet = context.quiet || context.collected.is_some();
    let (planned, finished) = Default::default();
    let progress = ProgressLines { quiet, stop: &stop, planned, finished, last: Mutex::new(Instant::now()) };
    let threads = threads(args.jobs)?;
    let evaluated = pool(threads)?.install(|| evaluate(&targets, args.data.as_deref(), &work, &runner, &progress))?;
    if let Some(results) = &results {
        let inputs = (args.data.as_deref(), args.names.as_slice());
        results.write((&targets, &evaluated), inputs, (context, threads, started))?;
    }
    if let Some(file) = &args.page {
        write_whole(file, page(&targets, &evaluated).as_bytes())?;
    }
    match (args.format, args.claims) {
        (Format::Csv, true) => context.out(&claims_csv(&targets, &evaluated)),
        (Format::Csv, false) => context.out(&csv(&targets, &evaluated)),
        (Format::Json, true) => context.json(&claims_json(&targets, &evaluated)),
        (Format::Json, false) => context.out(&json(&targets, &evaluated)?),
        (format, true) => context.out(&claims_text(&targets, &evaluated).render(format)),
        (format, false) => {
            let mut shown = text(&targets, &evaluated, !args.names.is_empty());
            if evaluated.iter().any(|evaluated| !evaluated.claims.is_empty()) {
                shown += "\n";
                shown += claims_text(&targets, &evaluated);
            }
            context.out(&shown.render(format))
        }
    }
}

/// The maximum number of numbers outside of their tolerance in the text.
const MOST: usize = 20;

/// Returns the table of comparisons.
fn claims_text(targets: &[PublishedTarget], evaluated: &[Evaluated]) -> Printout {
    let names = ["target", "comparison", "pairs that agree", "mean difference", "95 % interval", "verdict"];
    let side = |at: usize| if at < 2 { Alignment::Left } else { Alignment::Right };
    let header = names.iter().enumerate().map(|(at, name)| ((*name).to_owned(), side(at))).collect();
    let mut rows = Vec::new();
    for (target, evaluated) in targets.iter().zip(evaluated) {
        for one in &evaluated.claims {
            let difference = one.difference;
            let pairs = difference.map_or(String::new(), |all| format!("{} of {}", one.held, all.n));
            let mean = difference.map_or(String::new(), |all| format!("{} {}", rounded(all.mean), one.row.unit));
            let ends = difference.and_then(|all| all.low.zip(all.high));
            let ends = ends.map_or(String::new(), |(low, high)| format!("{} to {}", rounded(low), rounded(high)));
            let verdict = one.verdict.name().to_owned();
            rows.push(vec![
                target.name.clone(),
                one.row.claim.clone(),
                pairs,
                mean.trim_end().to_owned(),
                ends,
                verdict,
            ]);
        }
    }
    Printout::from(Grid::new(header, rows))
}

/// Returns the comparisons as JSON.
fn claims_json(targets: &[PublishedTarget], evaluated: &[Evaluated]) -> serde_json::Value {
    let mut all = Vec::new();
    for (target, evaluated) in targets.iter().zip(evaluated) {
        for one in &evaluated.claims {
            let reason = match &one.verdict {
                ClaimVerdict::NotRun(cause) => cause.as_str(),
                _ => "",
            };
            all.push(serde_json::json!({
                "target": target.name, "id": one.row.id, "claim": one.row.claim, "published": one.row.published,
                "means": one.means, "difference": one.difference.map(|all| all.mean),
                "low": one.difference.and_then(|all| all.low), "high": one.difference.and_then(|all| all.high),
                "pairs": one.difference.map(|all| all.n), "held": one.held, "unit": one.row.unit, "over": one.row.over,
                "verdict": one.verdict.name(), "reason": reason, "source": one.row.source,
            }));
        }
    }
    serde_json::Value::Array(all)
}

fn text(targets: &[PublishedTarget], evaluated: &[Evaluated], all: bool) -> Printout {
    let header = |names: &[&str]| -> Vec<(String, Alignment)> {
        let side = |at: usize| if at == 0 { Alignment::Left } else { Alignment::Right };
        names.iter().enumerate().map(|(at, name)| ((*name).to_owned(), side(at))).collect()
    };
    let of_kind = |judged: &[Judged], published: bool| {
        counts(judged.iter().filter(|one| (one.row.kind == NumberKind::Published) == published))
    };
    let mut text = Printout::default();
    let judged: Vec<&Judged> = evaluated.iter().flat_map(|evaluated| &evaluated.numbers).collect();
    let row = |(target, evaluated): (&PublishedTarget, &Evaluated)| {
        let judged = &evaluated.numbers;
        let numbers = of_kind(judged, true).into_iter().chain(of_kind(judged, false));
        std::iter::once(target.name.clone()).chain(numbers.map(|number| number.to_string())).collect()
    };
    let mut rows: Vec<Vec<String>> = targets.iter().zip(evaluated).map(row).collect();
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
    let lines: Vec<Vec<String>> = judged.iter().copied().filter(shown).map(line).collect();
    let hidden = if all { 0 } else { lines.len().saturating_sub(MOST) };
    if !lines.is_empty() {
        text += "\n";
        text += Grid::new(header(&names), lines[..lines.len() - hidden].to_vec());
    }
    if hidden > 0 {
        text += paragraphs(&format!("{} more outside; --format csv prints all", hidden));
    }
    let outside = |one: &&Judged| one.verdict == NumberVerdict::Outside;
    for one in judged.iter().copied().filter(outside).take(MOST) {
        text += paragraphs(&format!("{}: {}", one.row.id, one.reason));
    }
    let causes: std::collections::BTreeSet<&str> = judged
        .iter()
        .filter(|one| matches!(one.verdict, NumberVerdict::NotRun(_)))
        .map(|one| one.reason.as_str())
        .collect();
    if !causes.is_empty() {
        causes.iter().for_each(|cause| text += paragraphs(&format!("not run: {cause}")));
    }
    text
}

fn json(targets: &[PublishedTarget], evaluated: &[Evaluated]) -> Result<String> {
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
        .zip(evaluated)
        .flat_map(|(target, evaluated)| evaluated.numbers.iter().map(move |row| one(target, row)))
        .collect();
    let text = serde_json::to_string_pretty(&all).map_err(|error| Error::output("standard output", error))?;
    Ok(text + "\n")
}
