//! `plimsoll trace import`: converts a public format to a canonical trace, or CSV to Parquet and back.

use std::path::PathBuf;

use serde_json::{Map, Value};

use super::save::{SaveTarget, save};
use super::{Opened, RowOptions, report};
use crate::cli::Context;
use crate::error::Result;
use crate::workload::formats::Format;

/// Convert a file in a public format to a canonical trace
#[derive(clap::Args, Debug)]
#[command(after_help = format!("Formats (recognised by content if --from is absent):
{}
A canonical trace may be given too: CSV becomes Parquet, or the reverse.

The numbers of rows read, dropped and repaired, and the assumptions, are printed
on standard error and written to OUT.json.

Examples:
  plimsoll trace import FB-2009_samples_24_times_1hr_0.tsv -o facebook-2009.csv
  plimsoll trace import FB-2009_samples_24_times_1hr_0.tsv --from swim \\
      --set swim.map_bytes=134217728 --tenants zipf:20:1.1 -o zipf.csv
  plimsoll trace import batch_task.csv --from alibaba-2017 \\
      --set alibaba-2017.jobs=job -o alibaba.parquet
  zcat NASA-iPSC-1993-3.1-cln.swf.gz |
      plimsoll trace import - --from swf > nasa.csv", listed()), mut_arg("from", |from| from.visible_alias("format")))]
pub struct Args {
    /// The file, or - for standard input
    file: PathBuf,
    #[command(flatten)]
    rows: RowOptions,
    /// The trace: a .csv or .parquet file, or - for CSV on standard output [default: -]
    #[arg(long, short, value_name = "OUT")]
    output: Option<PathBuf>,
}

/// Lists the formats, one per line.
fn listed() -> String {
    let line = |format: &Format| format!("  {:<13} {}", format.name(), format.row().about);
    Format::ALL.iter().map(line).collect::<Vec<_>>().join("\n")
}

pub fn run(args: &Args, context: &Context) -> Result<()> {
    let target = SaveTarget::parse(args.output.as_deref())?;
    let opened = Opened::new(&args.file, &args.rows, None)?;
    let mut facts = Map::new();
    facts.insert("source".into(), opened.name().into());
    facts.insert("source_blake3".into(), opened.input.digest()?.into());
    match opened.supply.quality() {
        Some(quality) => {
            report::lines(quality).iter().for_each(|line| context.print_message(line));
            facts.extend(report::json(quality));
        }
        None => {
            facts.insert("format".into(), Value::from(opened.format()));
        }
    }
    save(&|| opened.source(&context.stop), &target, facts, context)
}
