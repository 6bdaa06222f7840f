//! `plimsoll schema`: prints the columns of every table.

use serde_json::json;

use super::printout::Printout;
use super::screen::paragraphs;
use super::whole_tables::whole_tables;
use super::{Context, Format, print};
use crate::column::{Better, Described, Kind};
use crate::error::{Error, Result, did_you_mean, either};
use crate::output::schema::{Table, VERSION, axes};
use crate::units::{Dim, Unit};

/// Print the columns of every table, with their types and meanings
#[derive(clap::Args, Debug, serde::Deserialize)]
#[command(after_help = "Examples:
  plimsoll schema
  plimsoll schema users jobs
  plimsoll schema --format json | jq '.tables[].name'")]
pub struct Args {
    /// Only these tables
    tables: Vec<String>,
    /// How to print it
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// A table with its columns.
struct Declared {
    name: &'static str,
    meaning: &'static str,
    columns: Vec<Described>,
}

/// Returns all tables. In those of runs, `<r>` represents one column per resource, and the axes of a sweep come first.
fn declared() -> Vec<Declared> {
    let any = || Dim { name: "<r>".to_owned(), unit: Unit::Milli };
    let of_runs = Table::all().map(|table| Declared {
        name: table.name(),
        meaning: table.meaning(),
        columns: axes().into_iter().chain(table.columns(&[any()])).collect(),
    });
    let whole =
        whole_tables().map(|table| Declared { name: table.name, meaning: table.meaning, columns: (table.columns)() });
    of_runs.chain(whole).collect()
}

pub fn run(args: &Args, context: &Context) -> Result<()> {
    let all = declared();
    for name in &args.tables {
        let names = || all.iter().map(|table| table.name);
        if !names().any(|known| known == name) {
            let expected = format!("{}{}", either(names()), did_you_mean(name, names()));
            return Err(Error::plan("table", format!("'{name}'"), expected));
        }
    }
    let named = |table: &Declared| args.tables.is_empty() || args.tables.iter().any(|name| name == table.name);
    let tables = all.into_iter().filter(named);
    match args.format {
        Format::Json => {
            let column = |column: Described| {
                let better = match column.better {
                    Better::Lower => Some("lower"),
                    Better::Higher => Some("higher"),
                    Better::Neither => None,
                };
                let (kind, unit) = (kind(column.value), column.unit.name());
                json!({"name": column.name, "type": kind, "unit": unit, "better": better, "about": column.about})
            };
            let table = |table: Declared| {
                let columns: Vec<serde_json::Value> = table.columns.into_iter().map(column).collect();
                json!({"name": table.name, "about": table.meaning, "columns": columns})
            };
            let all = json!({"version": VERSION, "tables": tables.map(table).collect::<Vec<_>>()});
            context.out(&format!("{all:#}\n"))
        }
        format => context.out(&tables.map(text).collect::<Printout>().render(format)),
    }
}

fn text(table: Declared) -> Printout {
    let header = ["column", "type", "meaning"].map(str::to_owned);
    let row = |column: Described| vec![column.name, kind(column.value).to_owned(), column.about];
    let rows: Vec<Vec<String>> = table.columns.into_iter().map(row).collect();
    let mut text = Printout::from(paragraphs(&format!("{}: {}", table.name, table.meaning)));
    text += print::aligned_left(&header, &rows);
    text
}

/// Returns Parquet's name of the type.
fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Int => "int64",
        Kind::Float => "double",
        Kind::Text => "string",
    }
}
