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
    // All columns are formatted for every row; optional columns without values in the shown rows are omitted afterwards.
    let all = Layout {
        dims: source.dims().to_vec(),
        tasks: true,
        stage: true,
        after: true,
        priority: true,
        gang: true,
        label: true,
        location: true,
        stable: true,
        estimate: true,
        deadline: true,
        preceding: true,
    };
    let mut needed = Layout { dims: all.dims.clone(), tasks: true, ..Layout::default() };
    let mut rows: Vec<Vec<String>> = Vec::new();
    while rows.len() < args.rows
        && let Some(set) = source.next_set()?
    {
        needed.add(&set);
        rows.push(all.row(&set, &source)?.iter().map(|item| item.text().into_owned()).collect());
    }
    let (columns, needed) = (all.columns(), needed.columns());
    let shown: Vec<usize> = (0..columns.len()).filter(|&at| needed.contains(&columns[at])).collect();
    let pick = |row: &[String]| -> Vec<String> { shown.iter().map(|&at| row[at].clone()).collect() };
    let names: Vec<String> = columns.iter().map(|(name, _)| name.clone()).collect();
    context.out(&print::aligned(&pick(&names), &rows.iter().map(|row| pick(row)).collect::<Vec<_>>()).text())
}
