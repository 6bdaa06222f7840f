//! `plimsoll timeline`: draws where and when the tasks of a run ran, as a figure or as a trace for Perfetto.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::progress::Bar;
use super::{Context, stored};
use crate::error::{Error, Result};
use crate::experiment::{Mode, ROW_MEMORY, Request, Study, StudyRun, check_repeated, execute};
use crate::output::paper::{Paper, Preset};
use crate::output::schema::Table;
use crate::output::timeline::{self, RunChoice, TimelineFormat, TimelineRequest};
use crate::units::{Time, span};

/// Draw which user's tasks ran where and when, as a figure or as a trace for Perfetto
///
/// A figure shows machines by time, or the stacked use of a pool, in the colours of users; below are marks of arrivals, failures and
/// preemptions, and the shares of users. A trace has a track for each lane of a machine, and opens in https://ui.perfetto.dev.
#[derive(clap::Args, Debug)]
#[command(after_help = "The timeline is drawn from the table 'tasks' of the run: --tasks of replay, or in a
plan tables = [.., \"tasks\"]; shares of users and counters are drawn from 'shares',
'fairness' and 'usage' (--series of replay). A run without 'tasks', or of a plan, is
repeated in a temporary folder.

Examples:
  plimsoll timeline results/facebook -o drf.svg --policy drf
  plimsoll replay trace.csv --machines 20x16c64g --placement first-fit \\
      --policy drf --tasks --series -o results/mine
  plimsoll timeline results/mine -o mine.svg
  plimsoll timeline results/mine -o mine.pftrace
  plimsoll timeline results/mine -o hour.pdf --from 1h --until 2h \\
      --machines 0-9 --preset acm
  plimsoll timeline results/sweep -o one.json.gz --cell load-0.9 --policy drf \\
      --seed 2 --users ann,bob")]
pub struct Args {
    /// A folder that `run` or `replay -o` has written, the folder of one run in it (tasks/policy=P/run=K), or a plan
    /// (.toml)
    results: PathBuf,
    #[arg(long, short, value_name = "FILE", help = output_help())]
    output: PathBuf,
    /// The policy, if there are several
    #[arg(long, value_name = "NAME")]
    policy: Option<String>,
    /// The cell of a sweep, if there are several
    #[arg(long, value_name = "NAME")]
    cell: Option<String>,
    /// The seed [default: the first]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Only the tasks of these users
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    users: Vec<String>,
    /// Only the tasks on these machines, by index, such as 0-9,12
    #[arg(long, value_name = "RANGES")]
    machines: Option<String>,
    /// The start of the window, such as 90, 15m, 2h or 7d
    #[arg(long, value_name = "TIME")]
    from: Option<String>,
    /// The end of the window
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// The resource of stacks and counters, and of the curves below machines instead of dominant shares [default: the
    /// one that is used most]
    #[arg(long, value_name = "NAME")]
    resource: Option<String>,
    /// Figures: the number of users with a colour of their own; the others are grey
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..=24))]
    legend: u64,
    /// Figures: draw for this width: acm, acm-wide, ieee, ieee-wide, usenix or slides
    #[arg(long, value_name = "NAME")]
    preset: Option<String>,
    /// Figures: the width in points
    #[arg(long, value_name = "POINTS", conflicts_with = "preset")]
    width: Option<f64>,
}

/// Returns the help of the option for the file, with all formats.
fn output_help() -> String {
    let formats =
        TimelineFormat::ALL.iter().map(|(ending, _, meaning)| format!(".{ending}: {}", decapitalised(meaning)));
    format!("The file to write; its ending selects the format ({})", formats.collect::<Vec<_>>().join("; "))
}

fn decapitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_lowercase().chain(letters).collect()).unwrap_or_default()
}

pub fn run(args: &Args, context: &Context) -> Result<()> {
    let time = |key: &str, text: &Option<String>| {
        let parse = |text: &String| {
            let wrong =
                |_| Error::plan(key, format!("'{text}'"), "a time since the start of the run: 90, 90s, 15m, 2h or 7d");
            span(text).map(|span| Time(span.0)).map_err(wrong)
        };
        text.as_ref().map(parse).transpose()
    };
    let paper = match (&args.preset, args.width) {
        (Some(name), _) => Paper::from_preset(Some(Preset::parse("--preset", name)?)),
        (None, Some(width)) => Paper::wide("--width", width)?,
        (None, None) => Paper::default(),
    };
    // Wrong endings are reported before a run is repeated.
    TimelineFormat::from_path("--output", &args.output)?;
    let choice = RunChoice { policy: args.policy.as_deref(), cell: args.cell.as_deref(), seed: args.seed };
    let repeated = args.repeated(&choice, context)?;
    let (results, choice) = match &repeated {
        Some(folder) => (folder.path(), RunChoice::default()),
        None => (args.results.as_path(), choice),
    };
    let request = TimelineRequest {
        results,
        choice,
        users: &args.users,
        machines: args.machines.as_deref(),
        from: time("--from", &args.from)?,
        until: time("--until", &args.until)?,
        resource: args.resource.as_deref(),
        legend: args.legend as usize,
        paper,
        output: &args.output,
        stop: &|| context.stop.check(),
    };
    timeline::write(&request)?.iter().for_each(|note| context.print_message(note));
    context.out(&format!("{}\n", args.output.display()))
}

/// The tables of a run that is repeated for its timeline.
const TABLES: [Table; 7] =
    [Table::Runs, Table::Users, Table::Jobs, Table::Tasks, Table::Usage, Table::Fairness, Table::Shares];

impl Args {
    /// Repeats the chosen run with the tables of a timeline, if the source is a plan or if the run has no table of tasks. Returns the
    /// folder of its results. Errors: those of the study and its run, and [`Error::Mismatch`] if the run differs from the stored one.
    fn repeated(&self, choice: &RunChoice, context: &Context) -> Result<Option<TempDir>> {
        let source = self.results.as_path();
        if source.extension().is_some_and(|ending| ending == "toml") && !source.is_dir() {
            let study = Study::read(source, &[], context.registry)?;
            let chosen = StudyRun::find(&study, choice.cell, choice.policy, 0)?;
            let seeds = &study.cells[chosen.cell].seeds;
            let run = choice.seed.map_or(Some(0), |seed| seeds.iter().position(|one| *one == seed));
            let run = run.ok_or_else(|| {
                let seeds: Vec<String> = seeds.iter().map(u64::to_string).collect();
                Error::plan(
                    "--seed",
                    choice.seed.unwrap_or_default(),
                    format!("a seed of the plan: {}", seeds.join(", ")),
                )
            })?;
            return self.repeat(&study, StudyRun { run, ..chosen }, None, context).map(Some);
        }
        let Some(found) = choice.without_tasks(source)? else { return Ok(None) };
        let study = stored::study(source, context)?;
        let run = StudyRun::find(&study, Some(&found.cell), Some(&found.policy), found.run)?;
        context.print_message("the run has no table 'tasks'; it is repeated");
        self.repeat(&study, run, Some(source), context).map(Some)
    }

    /// Executes a run into a temporary folder beside the output. With `stored`, the run must have the values of the stored one.
    fn repeat(&self, study: &Study, run: StudyRun, stored: Option<&Path>, context: &Context) -> Result<TempDir> {
        let beside = self.output.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let folder = tempfile::Builder::new().prefix(".plimsoll-timeline-").tempdir_in(beside);
        let folder = folder.map_err(|error| Error::output(beside, error))?;
        let request = Request {
            folder: Some(folder.path()),
            threads: 1,
            mode: Mode::Resume,
            shard: None,
            row_memory: ROW_MEMORY,
            save_every: None,
        };
        let bar = Bar::new(context.quiet, &context.stop);
        let done = execute(&study.single(run, &TABLES), &request, &bar);
        bar.clear();
        let mut again = done?.cells.into_iter().flatten();
        if let (Some(stored), Some(mut again)) = (stored, again.next()) {
            again.run = run.run as u64;
            check_repeated(stored, study, run, &again)?;
        }
        Ok(folder)
    }
}
