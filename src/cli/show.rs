//! `plimsoll show`: prints a table of results, filtered and sorted.

use std::cmp::Ordering;
use std::path::{Path, PathBuf};

use plimsoll_trace_import::Condition;

use super::printout::Printout;
use super::screen::{Alignment, Grid, paragraphs};
use super::whole_tables::whole_tables;
use super::{Context, Format};
use crate::column::Cell;
use crate::error::{Error, Result, did_you_mean};
use crate::output::escape::csv_line;
use crate::output::frame::{Frame, Values, open};
use crate::output::numbers::{number, thousands};
use crate::output::schema::Table;
use crate::output::tables::tables;

/// Print a table of results, filtered and sorted; without a table, the list of tables
#[derive(clap::Args, Debug)]
#[command(after_help = "Conditions have numbers, 'text', the operators + - * / == != < <= > >=,
and, or, not, and functions such as contains(user, 'a'). A row with an absent
value in a condition is not selected. `plimsoll schema TABLE` explains columns.

Examples:
  plimsoll show results/facebook
  plimsoll show results/facebook users --columns policy,user,wait_mean_s
  plimsoll show results/facebook jobs --sort finish_us:desc --head 10 \\
      --where 'start_us - submit_us > 6e8 and tasks > 100'
  plimsoll show results/facebook users --format csv > users.csv
  plimsoll show results/facebook estimates --format latex \\
      --where 'metric == \"completion_mean_s\"'")]
pub struct Args {
    /// A folder that `run` or `replay -o` has written
    folder: PathBuf,
    /// The table, such as users; without it, all tables are listed
    table: Option<String>,
    /// Only rows for which this condition holds; may be given several times
    #[arg(long = "where", value_name = "CONDITION")]
    conditions: Vec<String>,
    /// Sort by a column, ascending; COLUMN:desc for descending; may be given several times, the most important one first
    #[arg(long, value_name = "COLUMN")]
    sort: Vec<String>,
    /// Only these columns, in this order
    #[arg(long, value_name = "COLUMN,..", value_delimiter = ',')]
    columns: Vec<String>,
    /// The number of rows to print; 0 for all [default: 20, and all as csv or json]
    #[arg(long, value_name = "N")]
    head: Option<usize>,
    /// How to print
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// The rows that are printed by default.
const HEAD: usize = 20;

pub fn run(args: &Args, context: &Context) -> Result<()> {
    let all = tables(&args.folder)?;
    let Some(name) = &args.table else { return list(&all, args, context) };
    let Some((_, files)) = all.iter().find(|(known, _)| known == name) else {
        return Err(unknown(name, &all, &args.folder));
    };
    let selection = Selection::new(args, files)?;
    let rows = selection.rows(files, context)?;
    let limit = match (args.head, args.format) {
        (Some(0), _) | (None, Format::Csv | Format::Json) => usize::MAX,
        (Some(head), _) => head,
        (None, _) => HEAD,
    };
    selection.print(&rows, limit, args.format, context)
}

/// Prints the names, sizes and meanings of the tables.
fn list(all: &[(String, Vec<PathBuf>)], args: &Args, context: &Context) -> Result<()> {
    if !(args.conditions.is_empty() && args.sort.is_empty() && args.columns.is_empty()) {
        let names = all.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
        return Err(Error::plan("TABLE", "none", format!("one of {names}: the other options select rows of a table")));
    }
    let mut rows = Vec::new();
    for (name, files) in all {
        let sizes =
            files.iter().map(|file| Ok(open(file)?.map_or(0, |file| file.rows()))).collect::<Result<Vec<_>>>()?;
        rows.push((name, sizes.iter().sum::<usize>() as u64, meaning(name)));
    }
    if args.format == Format::Json {
        let one = |(name, rows, about): &(&String, u64, &str)| serde_json::json!({"name": name, "rows": rows, "about": about});
        return context.json(&rows.iter().map(one).collect());
    }
    let header = vec![
        ("table".to_owned(), Alignment::Left),
        ("rows".to_owned(), Alignment::Right),
        ("meaning".to_owned(), Alignment::Left),
    ];
    let line =
        |(name, rows, about): &(&String, u64, &str)| vec![(*name).clone(), thousands(*rows), (*about).to_owned()];
    context.out(&Printout::from(Grid::new(header, rows.iter().map(line).collect())).render(args.format))
}

/// Returns the meaning of a table.
fn meaning(name: &str) -> &'static str {
    let of_runs = Table::all().find(|table| table.name() == name).map(Table::meaning);
    let whole = || whole_tables().iter().find(|table| table.name == name).map(|table| table.meaning);
    of_runs.or_else(whole).unwrap_or_default()
}

/// Returns the error for a table that does not exist.
fn unknown(name: &str, all: &[(String, Vec<PathBuf>)], folder: &Path) -> Error {
    let names = || all.iter().map(|(name, _)| name.as_str());
    let list = names().collect::<Vec<_>>().join(", ");
    let problem = match Table::all().any(|table| table.name() == name) {
        true => {
            format!("one of {list}; this table was not written: add it to the plan's tables = [..] and run it again")
        }
        false => format!("a table of {}: {list}{}", folder.display(), did_you_mean(name, names())),
    };
    Error::plan("TABLE", format!("'{name}'"), problem)
}

/// A value of a row.
#[derive(Clone, Debug, PartialEq)]
enum ShownValue {
    Null,
    Int(i64),
    Float(f64),
    Text(String),
}

impl From<Cell<'_>> for ShownValue {
    fn from(cell: Cell<'_>) -> ShownValue {
        match cell {
            Cell::Null => ShownValue::Null,
            Cell::Int(value) => ShownValue::Int(value),
            Cell::Large(value) => ShownValue::Float(value as f64),
            Cell::Float(value) => ShownValue::Float(value),
            Cell::Text(text) => ShownValue::Text(text.to_owned()),
        }
    }
}

impl ShownValue {
    /// Compares two values of a column; absent values are last in either direction.
    fn compare(&self, other: &ShownValue, descending: bool) -> Ordering {
        let order = match (self, other) {
            (ShownValue::Null, ShownValue::Null) => Ordering::Equal,
            (ShownValue::Null, _) => return Ordering::Greater,
            (_, ShownValue::Null) => return Ordering::Less,
            (ShownValue::Int(a), ShownValue::Int(b)) => a.cmp(b),
            (ShownValue::Text(a), ShownValue::Text(b)) => a.cmp(b),
            (a, b) => a.double().total_cmp(&b.double()),
        };
        if descending { order.reverse() } else { order }
    }

    fn double(&self) -> f64 {
        match self {
            ShownValue::Int(value) => *value as f64,
            ShownValue::Float(value) => *value,
            ShownValue::Null | ShownValue::Text(_) => f64::NAN,
        }
    }

    /// Formats the value with few digits.
    fn short(&self) -> String {
        match self {
            ShownValue::Null => "-".to_owned(),
            ShownValue::Int(value) => value.to_string(),
            ShownValue::Float(value) => number(Some(*value)),
            ShownValue::Text(text) => text.clone(),
        }
    }

    /// Formats the value exactly; an absent one is empty.
    fn exact(&self) -> String {
        match self {
            ShownValue::Null => String::new(),
            ShownValue::Int(value) => value.to_string(),
            ShownValue::Float(value) => value.to_string(),
            ShownValue::Text(text) => text.clone(),
        }
    }

    fn json(&self) -> serde_json::Value {
        match self {
            ShownValue::Null => serde_json::Value::Null,
            ShownValue::Int(value) => (*value).into(),
            ShownValue::Float(value) => (*value).into(),
            ShownValue::Text(text) => text.as_str().into(),
        }
    }
}

/// The requested rows and columns of a table.
struct Selection {
    /// The columns of the table.
    names: Vec<String>,
    conditions: Vec<Condition>,
    /// Columns to sort by, each with whether it is descending.
    sort: Vec<(usize, bool)>,
    /// The printed columns.
    shown: Vec<usize>,
}

impl Selection {
    /// Reads the options. Errors: a column that the table does not have, or a condition that cannot be parsed.
    fn new(args: &Args, files: &[PathBuf]) -> Result<Selection> {
        let first = files.first().map(|file| open(file)).transpose()?.flatten();
        let names: Vec<String> = first.iter().flat_map(|file| file.columns()).map(|(name, _)| name.clone()).collect();
        let column = |key: &str, name: &str| {
            names.iter().position(|known| known == name).ok_or_else(|| {
                let hint = did_you_mean(name, names.iter().map(String::as_str));
                Error::plan(key, format!("'{name}'"), format!("a column: {}{hint}", names.join(", ")))
            })
        };
        let sort = args.sort.iter().map(|asked| match asked.rsplit_once(':') {
            Some((name, "desc")) => Ok((column("--sort", name)?, true)),
            Some((name, "asc")) => Ok((column("--sort", name)?, false)),
            _ => Ok((column("--sort", asked)?, false)),
        });
        let sort = sort.collect::<Result<Vec<_>>>()?;
        let shown = args.columns.iter().map(|name| column("--columns", name)).collect::<Result<Vec<_>>>()?;
        let shown = if shown.is_empty() { (0..names.len()).collect() } else { shown };
        let conditions = args.conditions.iter().map(|text| Condition::parse("--where", text, &names));
        let conditions = conditions.collect::<Result<Vec<_>>>()?;
        Ok(Selection { names, conditions, sort, shown })
    }

    /// Returns the selected rows in order: the printed columns, then the sort columns. Errors: a table is damaged; a condition
    /// cannot be computed.
    fn rows(&self, files: &[PathBuf], context: &Context) -> Result<Vec<Vec<ShownValue>>> {
        let mut rows = Vec::new();
        for path in files {
            context.stop.check()?;
            let Some(frame) = Frame::open(path)? else { continue };
            let values = frame.values_of_all()?;
            let of = |name: &String| frame.columns().position(|known| known == name).map(|at| &values[at]);
            let columns: Vec<Option<&Values>> = self.names.iter().map(of).collect();
            for row in 0..frame.rows() {
                let cell = |column: usize| columns[column].map_or(Cell::Null, |values| values.cell(row));
                let mut holds = true;
                for condition in &self.conditions {
                    holds = holds
                        && condition
                            .holds(&cell)
                            .map_err(|problem| Error::trace(path, row as u64 + 1, "", format!("--where: {problem}")))?;
                }
                if holds {
                    let sorted = self.sort.iter().map(|(column, _)| *column);
                    rows.push(self.shown.iter().copied().chain(sorted).map(|column| cell(column).into()).collect());
                }
            }
        }
        let shown = self.shown.len();
        rows.sort_by(|a: &Vec<ShownValue>, b: &Vec<ShownValue>| {
            let keys = self.sort.iter().zip(a[shown..].iter().zip(&b[shown..]));
            keys.map(|((_, descending), (a, b))| a.compare(b, *descending))
                .find(|order| order.is_ne())
                .unwrap_or(Ordering::Equal)
        });
        Ok(rows)
    }

    /// Prints the first rows.
    fn print(&self, rows: &[Vec<ShownValue>], limit: usize, format: Format, context: &Context) -> Result<()> {
        let names = || self.shown.iter().map(|&column| self.names[column].as_str());
        let head = || rows.iter().take(limit).map(|row| &row[..self.shown.len()]);
        match format {
            Format::Json => {
                let one = |row: &[ShownValue]| {
                    serde_json::Value::Object(
                        names().map(str::to_owned).zip(row.iter().map(ShownValue::json)).collect(),
                    )
                };
                context.json(&head().map(one).collect())
            }
            Format::Csv => {
                let lines = head().map(|row| csv_line(row.iter().map(ShownValue::exact)));
                context.out(&std::iter::once(csv_line(names())).chain(lines).collect::<String>())
            }
            format => {
                let is_text = |at: usize| head().any(|row| matches!(row[at], ShownValue::Text(_)));
                let side = |at: usize| if is_text(at) { Alignment::Left } else { Alignment::Right };
                let header = names().enumerate().map(|(at, name)| (name.to_owned(), side(at))).collect();
                let lines = head().map(|row| row.iter().map(ShownValue::short).collect()).collect::<Vec<Vec<String>>>();
                let mut text = Printout::from(Grid::new(header, lines));
                let left = rows.len().saturating_sub(limit);
                if left > 0 {
                    text += paragraphs(&format!("and {} more rows (--head 0 prints all)", thousands(left as u64)));
                }
                context.out(&text.render(format))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_values_are_last_in_both_directions() {
        let mut items = vec![ShownValue::Null, ShownValue::Int(3), ShownValue::Float(1.5), ShownValue::Int(2)];
        items.sort_by(|a, b| a.compare(b, false));
        assert_eq!(items, [ShownValue::Float(1.5), ShownValue::Int(2), ShownValue::Int(3), ShownValue::Null]);
        items.sort_by(|a, b| a.compare(b, true));
        assert_eq!(items, [ShownValue::Int(3), ShownValue::Int(2), ShownValue::Float(1.5), ShownValue::Null]);
    }
}
