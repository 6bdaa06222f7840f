//! `plimsoll timeline`: draws where and when the tasks of a run ran, as a figure or as a trace for Perfetto.

use std::path::PathBuf;

use super::{Context, print};
use crate::error::{Error, Result};
use crate::output::paper::{Paper, Preset};
use crate::output::timeline::{self, RunChoice, TimelineFormat, TimelineRequest};
use crate::units::{Time, span};

/// Draw which user's tasks ran where and when, as a figure or as a trace for Perfetto
///
/// A figure shows machines by time, or the stacked use of a pool, in the colours of users; below are marks of arrivals, failures and
/// preemptions, and the shares of users. A trace has a track for each lane of a machine, and opens in https://ui.perfetto.dev.
#[derive(clap::Args, Debug)]
#[command(after_help = "The run needs the table 'tasks': --tasks of replay, or in a plan
tables = [.., \"tasks\"]. Shares of users and counters need 'shares', 'fairness'
and 'usage' (--series of replay).

Examples:
  plimsoll replay trace.csv --machines 20x16c64g --placement first-fit \\
      --policy drf --tasks --series -o results/mine
  plimsoll timeline results/mine -o mine.svg
  plimsoll timeline results/mine -o mine.pftrace
  plimsoll timeline results/mine -o hour.pdf --from 1h --until 2h \\
      --machines 0-9 --preset acm
  plimsoll timeline results/sweep -o one.json.gz --cell load-0.9 --policy drf \\
      --seed 2 --users ann,bob")]
pub struct Args {
    /// A folder that `run` or `replay -o` has written, or the folder of one run in it (tasks/policy=P/run=K)
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
    let request = TimelineRequest {
        results: &args.results,
        choice: RunChoice { policy: args.policy.as_deref(), cell: args.cell.as_deref(), seed: args.seed },
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
    print::out(&format!("{}\n", args.output.display()))
}
