//! `plimsoll policies`: lists policies, or describes one.

use serde_json::json;

use super::printout::Printout;
use super::screen::{Alignment, Grid};
use super::{Context, Format, print};
use crate::error::{Error, Result};
use crate::output::numbers::capital;
use crate::policy::QueueKey;
use crate::policy::job_order::ORDERS;

/// List every policy with its parameters and source
#[derive(clap::Args, Debug, serde::Deserialize)]
#[command(after_help = "Examples:\n  plimsoll policies\n  plimsoll policies kueue\n  plimsoll policies --format json")]
pub struct Args {
    /// A policy: its full description, its variants and the keys that it reads from a file of queues
    name: Option<String>,
    /// How to print
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub fn run(args: &Args, context: &Context) -> Result<()> {
    if let Some(name) = &args.name {
        return one(name, args.format, context);
    }
    let own = context.registry.own().iter().map(|policy| {
        [policy.name.clone(), String::new(), String::new(), "A policy of this program.".to_owned(), String::new()]
    });
    let built_in = context.registry.catalogue().rows().map(|row| {
        let lowest = row.rank.lowest().unwrap_or_default();
        [
            row.spelling.to_owned(),
            lowest.to_owned(),
            row.rank.to_string(),
            row.meaning.to_owned(),
            row.source.to_owned(),
        ]
    });
    let rows: Vec<[String; 5]> = built_in.chain(own).collect();
    let names = ["policy", "lowest_first", "order", "meaning", "source"];
    match args.format {
        Format::Json => {
            let objects: Vec<serde_json::Map<String, serde_json::Value>> = rows
                .iter()
                .map(|row| {
                    names.iter().zip(row).map(|(name, value)| ((*name).to_owned(), value.as_str().into())).collect()
                })
                .collect();
            let text =
                serde_json::to_string_pretty(&objects).map_err(|error| Error::output("standard output", error))?;
            context.out(&(text + "\n"))
        }
        format => {
            let header = ["policy", "meaning"].map(|name| (name.to_owned(), Alignment::Left)).to_vec();
            let mut lines: Vec<Vec<String>> = Vec::new();
            for [spelling, _, order, meaning, source] in rows {
                lines.push(vec![spelling, meaning]);
                if !order.is_empty() {
                    lines.push(vec![String::new(), format!("{order}; {source}")]);
                }
            }
            for order in ORDERS.iter() {
                lines.push(vec![format!("POLICY/{}", order.name()), order.meaning().to_owned()]);
                lines.push(vec![String::new(), format!("order of a user's own task sets; {}", order.source())]);
            }
            context.out(&Printout::from(Grid::new(header, lines)).render(format))
        }
    }
}

/// Prints the description of one policy. Errors: unknown name.
fn one(name: &str, format: Format, context: &Context) -> Result<()> {
    let catalogue = context.registry.catalogue();
    let row = match catalogue.rows().find(|row| row.name == name) {
        Some(row) => row,
        // The name has parameters, or is the name of a variant.
        None => catalogue.parse(name)?.row(),
    };
    let key = |key: &QueueKey| if key.whole { format!("[policy] {}", key.name) } else { key.name.to_owned() };
    match format {
        Format::Json => {
            let variants = row.variants.iter().map(|(name, fault)| json!({"name": name, "meaning": fault}));
            let keys = row.keys.iter().map(|key| json!({"name": key.name, "whole": key.whole, "meaning": key.meaning}));
            context.json(&json!({
                "policy": row.spelling, "lowest_first": row.rank.lowest().unwrap_or_default(),
                "order": row.rank.to_string(), "meaning": row.meaning, "source": row.source,
                "variants": variants.collect::<Vec<_>>(), "keys": keys.collect::<Vec<_>>(),
            }))
        }
        format => {
            let order = capital(&row.rank.to_string());
            let mut text = Printout::from(format!("{}\n{}\n{order}; {}.\n", row.spelling, row.meaning, row.source));
            let mut list = |heading: &str, lines: Vec<Vec<String>>| {
                if !lines.is_empty() {
                    let header = [heading, "meaning"].map(str::to_owned);
                    text += "\n";
                    text += print::aligned_left(&header, &lines);
                }
            };
            let variants =
                row.variants.iter().map(|(name, fault)| vec![format!("{}@{name}", row.name), (*fault).to_owned()]);
            list("variant", variants.collect());
            list("key of groups", row.keys.iter().map(|it| vec![key(it), it.meaning.to_owned()]).collect());
            context.out(&text.render(format))
        }
    }
}
