//! `plimsoll trace head`: shows the first rows of a trace.

use std::path::PathBuf;

use super::{Opened, RowOptions};
use crate::cli::{Context, print};
use crate::error::Result;
use crate::workload::Source;
use crate::workload::write::Layout;

/// Show the first rows of a trace
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  plimsoll trace head trace.csv
  plimsoll trace head trace.parquet -n 50
  plimsoll trace head FB-2009_samples_24_times_1hr_0.tsv --from swim")]
pub struct Args {
    /// A canonical trace or a file in a public format, or - for standard input
    trace: PathBuf,
    /// How many rows
    #[arg(short = 'n', long = "rows", default_value_t = 10, value_name = "N")]
    rows: usize,
    #[command(flatten)]
    reading: RowOptions,
}

pub fn run(args: &Args, context: &Context) -> Result<()> {
    let opened = Opened::new(&args.trace, &args.reading, None)?;
    let mut source = opened.source(&context.stop)?;
    // These columns are formatted for every row; columns without values in the shown rows are omitted afterwards.
    let mut layout = Layout { dims: source.dims().to_vec(), ..Layout::default() };
    (layout.tasks, layout.stage, layout.after) = (true, true, true);
    layout.preceding = true;
    (layout.priority, layout.gang, layout.label) = (true, true, true);
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut needed = Layout::default();
    while rows.len() < args.rows
        && let Some(set) = source.next_set()?
    {
        needed.stage |= set.stage.is_some();
        needed.after |= !set.after.is_empty();
        needed.priority |= set.priority != 0;
        needed.gang |= set.gang;
        needed.preceding |= set.preceding.is_some();
        needed.label |= set.label.is_some();
        rows.push(layout.row(&set, &source)?.iter().map(|item| item.text().into_owned()).collect());
    }
    let hidden = [
        ("stage", needed.stage),
        ("after", needed.after),
        ("priority", needed.priority),
        ("gang", needed.gang),
        ("label", needed.label),
        ("after_job", needed.preceding),
        ("think_us", needed.preceding),
    ];
    let names: Vec<String> = layout.columns().into_iter().map(|(name, _)| name).collect();
    let shown: Vec<usize> =
        (0..names.len()).filter(|&at| hidden.iter().all(|(name, needed)| *needed || names[at] != *name)).collect();
    let pick = |row: &[String]| -> Vec<String> { shown.iter().map(|&at| row[at].clone()).collect() };
    print::out(&print::aligned(&pick(&names), &rows.iter().map(|row| pick(row)).collect::<Vec<_>>()))
}
