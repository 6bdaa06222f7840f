//! `plimsoll schema`: prints the columns of every table.

use serde_json::json;

use super::printout::Printout;
use super::screen::paragraphs;
use super::{Context, Format, print};
use crate::column::{Better, Described, Kind};
use crate::error::Result;
use crate::output::schema::{Table, VERSION, axes};
use crate::units::{Dim, Unit};

/// Print the columns of every table, with their types and meanings
#[derive(clap::Args, Debug)]
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

pub fn run(args: &Args, _context: &Context) -> Result<()> {
    let named = args.tables.iter().map(|name| Table::parse("table", name)).collect::<Result<Vec<_>>>()?;
    let tables: Vec<Table> = Table::all().filter(|table| named.is_empty() || named.contains(table)).collect();
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
            let table = |table: Table| {
                let columns: Vec<serde_json::Value> = columns(table).into_iter().map(column).collect();
                json!({"name": table.name(), "about": table.meaning(), "columns": columns})
            };
            let all = json!({"version": VERSION, "tables": tables.into_iter().map(table).collect::<Vec<_>>()});
            print::out(&format!("{all:#}\n"))
        }
        format => print::out(&tables.into_iter().map(text).collect::<Printout>().render(format)),
    }
}

/// Returns the axes and the columns of a table; `<r>` represents one column per resource.
fn columns(table: Table) -> Vec<Described> {
    let any = Dim { name: "<r>".to_owned(), unit: Unit::Milli };
    axes().into_iter().chain(table.columns(&[any])).collect()
}

fn text(table: Table) -> Printout {
    let header = ["column", "type", "meaning"].map(str::to_owned);
    let rows: Vec<Vec<String>> = columns(table)
        .into_iter()
        .map(|column| vec![column.name, kind(column.value).to_owned(), column.about])
        .collect();
    let mut text = Printout::from(paragraphs(&format!("{}: {}", table.name(), table.meaning())));
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
