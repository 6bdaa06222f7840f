//! `plimsoll policies`.

use super::screen::{Grid, Side};
use super::{Context, Format, print};
use crate::error::{Error, Result};
use crate::policy::PolicySpec;
use crate::policy::inside::ORDERS;

/// List every policy with its parameters and source
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  plimsoll policies\n  plimsoll policies --format json")]
pub struct Args {
    /// How to print
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub fn run(args: &Args, context: &Context) -> Result<()> {
    let own = context.registry.own().iter().map(|policy| [policy.name.as_str(), "", "This program's own.", ""]);
    let known = PolicySpec::all();
    let built_in = known.iter().map(|policy| {
        let row = policy.row();
        [row.spelling, row.rank, row.meaning, row.source]
    });
    let rows: Vec<[&str; 4]> = built_in.chain(own).collect();
    let names = ["policy", "lowest_first", "meaning", "source"];
    match args.format {
        Format::Json => {
            let objects: Vec<serde_json::Map<String, serde_json::Value>> = rows
                .iter()
                .map(|row| names.iter().zip(row).map(|(name, value)| ((*name).to_owned(), (*value).into())).collect())
                .collect();
            let text =
                serde_json::to_string_pretty(&objects).map_err(|error| Error::output("standard output", error))?;
            print::out(&(text + "\n"))
        }
        Format::Table => {
            let header = ["policy", "meaning"].map(|name| (name.to_owned(), Side::Left)).to_vec();
            let mut lines: Vec<Vec<String>> = Vec::new();
            for [spelling, rank, meaning, source] in rows {
                lines.push(vec![spelling.to_owned(), meaning.to_owned()]);
                if !rank.is_empty() {
                    lines.push(vec![String::new(), format!("lowest {rank} first; {source}")]);
                }
            }
            for order in ORDERS.iter() {
                lines.push(vec![format!("POLICY/{}", order.name()), order.meaning().to_owned()]);
                lines.push(vec![String::new(), format!("order of a user's own task sets; {}", order.source())]);
            }
            print::out(&Grid::new(header, lines).text())
        }
    }
}
