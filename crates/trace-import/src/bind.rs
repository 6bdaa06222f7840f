//! Connects the names of a mapping with the columns of the open files.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use csv::ByteRecord;
use plimsoll_base::error::{Error, did_you_mean};

use crate::clock::Clock;
use crate::expr::{ExpressionTree, NameValues, evaluate};
use crate::input::LogRow;
use crate::joined::JoinedRows;
use crate::mapping::Formula;
use crate::value::{Value, Valued};

/// The position of a named value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// A column of the main table.
    Main(usize),
    /// A column of a joined table.
    Joined(usize, usize),
    /// A value of `[let]`.
    Let(usize),
    /// The number of the row.
    Row,
    /// The line of the row.
    Line,
    /// A column of an optional table without files.
    Absent,
}

/// An expression over positions.
pub type BoundFormula = ExpressionTree<Slot>;

/// The rows of a joined table by key.
pub struct JoinedTable {
    /// The name in expressions.
    pub name: String,
    /// The columns.
    pub columns: Vec<String>,
    /// The rows by the text of their keys.
    pub rows: JoinedRows,
    /// Whether the table has files.
    pub given: bool,
    /// Missing values, as in [`ColumnScope::missing`].
    pub missing: Vec<String>,
    /// The columns that some expression reads.
    pub read: RefCell<BTreeSet<usize>>,
    /// As [`ColumnScope::extra`].
    pub extra: Vec<(String, String)>,
}

/// The names that expressions may use.
#[derive(Default)]
pub struct ColumnScope<'m> {
    /// The main table's name.
    pub name: &'m str,
    /// The columns of the main table.
    pub columns: Vec<String>,
    /// Whether rows have the columns of a fold behind those of the main table.
    pub folded: bool,
    /// Columns that only later files have, with the name of the first such file. They cannot be read.
    pub extra: Vec<(String, String)>,
    /// Texts that mean a missing value.
    pub missing: Vec<String>,
    /// The joined tables.
    pub joined: Vec<JoinedTable>,
    /// The names of values of `[let]` so far.
    pub lets: Vec<String>,
    /// The columns of the main table that some expression reads.
    pub read: RefCell<BTreeSet<usize>>,
    /// The files of the main table, for messages.
    pub paths: Vec<PathBuf>,
}

/// Returns the positions of a column: those of its name, otherwise the one of `$1`, `$2` and so on.
fn positions(columns: &[String], name: &str) -> Vec<usize> {
    let by_name: Vec<usize> = (0..columns.len()).filter(|&at| columns[at] == name).collect();
    if !by_name.is_empty() {
        return by_name;
    }
    let position = name.strip_prefix('$').and_then(|digits| digits.parse::<usize>().ok()?.checked_sub(1));
    position.filter(|&at| at < columns.len()).into_iter().collect()
}

/// Returns the only position. Errors: the name occurs several times.
fn only(places: &[usize], name: &str) -> Result<Option<usize>, String> {
    match places {
        [] => Ok(None),
        [at] => Ok(Some(*at)),
        [first, ..] => {
            let places: Vec<String> = places.iter().map(|at| format!("${}", at + 1)).collect();
            let table = name.rsplit_once('.').map_or(String::new(), |(table, _)| format!("{table}."));
            let example = if table.is_empty() { places[0].clone() } else { format!("`{table}${}`", first + 1) };
            let name = crate::value::short(name);
            Err(format!(
                "'{name}' is the name of the columns {}; write the position, such as {example}",
                places.join(" and ")
            ))
        }
    }
}

impl ColumnScope<'_> {
    /// Returns the first file.
    pub fn path(&self) -> &Path {
        self.paths.first().map_or(Path::new(""), PathBuf::as_path)
    }

    /// Returns the file of a row.
    pub fn path_of(&self, file: usize) -> &Path {
        self.paths.get(file).map_or(self.path(), PathBuf::as_path)
    }

    /// Returns the name of a column of a row.
    fn column_name(&self, at: usize) -> &str {
        match at.checked_sub(self.columns.len()) {
            None => &self.columns[at],
            Some(at) => crate::fold::COLUMNS.get(at).copied().unwrap_or_default(),
        }
    }

    /// Returns the name without that of the main table.
    fn without_table<'n>(&self, name: &'n str) -> &'n str {
        name.strip_prefix(self.name).and_then(|rest| rest.strip_prefix('.')).unwrap_or(name)
    }

    /// Finds the columns with a name: those of the main table, otherwise those of joined tables. A table without files has an absent column.
    pub fn places(&self, name: &str) -> Vec<Slot> {
        let mut main = positions(&self.columns, name);
        if main.is_empty() {
            main = positions(&self.columns, self.without_table(name));
        }
        if !main.is_empty() {
            return main.into_iter().map(Slot::Main).collect();
        }
        let mut places = Vec::new();
        for (table, joined) in self.joined.iter().enumerate() {
            let below = name.strip_prefix(&joined.name).and_then(|rest| rest.strip_prefix('.'));
            if below.is_some() && !joined.given {
                places.push(Slot::Absent);
            }
            let mut found = positions(&joined.columns, below.unwrap_or(name));
            if found.is_empty() && below.is_some() {
                found = positions(&joined.columns, name);
            }
            places.extend(found.into_iter().filter(|_| joined.given).map(|at| Slot::Joined(table, at)));
        }
        places
    }

    /// Finds a name in an expression, and records that its column is read. Errors: the name has no meaning, or several.
    fn slot(&self, name: &str) -> Result<Slot, String> {
        if let Some(at) = self.lets.iter().rposition(|known| known == name) {
            return Ok(Slot::Let(at));
        }
        let places = self.places(name);
        if let Some(at) = self.fold_column(name) {
            return match places.first() {
                Some(Slot::Main(own)) if !name.starts_with("fold.") => Err(format!(
                    "'{name}' is a column of {} and of the fold; write fold.{name} for the fold, or ${} for the log",
                    file_name(self.path()),
                    own + 1
                )),
                _ => Ok(Slot::Main(self.columns.len() + at)),
            };
        }
        let main: Vec<usize> =
            places.iter().filter_map(|slot| if let Slot::Main(at) = slot { Some(*at) } else { None }).collect();
        if let Some(at) = only(&main, name)? {
            self.read.borrow_mut().insert(at);
            return Ok(Slot::Main(at));
        }
        if let [first, .., last] = places[..]
            && let (Slot::Joined(one, _), Slot::Joined(two, _)) = (first, last)
        {
            let tables = [one, two].map(|table| self.joined[table].name.as_str());
            if one != two {
                return Err(format!(
                    "'{name}' is a column of the tables {} and {}; write {}.{name}",
                    tables[0], tables[1], tables[0]
                ));
            }
            let columns: Vec<usize> = places
                .iter()
                .filter_map(|slot| if let Slot::Joined(_, at) = slot { Some(*at) } else { None })
                .collect();
            let below = name.strip_prefix(&format!("{}.", tables[0])).unwrap_or(name);
            only(&columns, &format!("{}.{below}", tables[0]))?;
        }
        if let Some(slot) = places.first() {
            if let Slot::Joined(table, at) = slot {
                self.joined[*table].read.borrow_mut().insert(*at);
            }
            return Ok(*slot);
        }
        match name {
            "row" => Ok(Slot::Row),
            "line" => Ok(Slot::Line),
            _ => Err(self.unknown(name)),
        }
    }

    /// Finds a column of the fold by its name, which may have `fold.` before it.
    fn fold_column(&self, name: &str) -> Option<usize> {
        let name = name.strip_prefix("fold.").unwrap_or(name);
        crate::fold::COLUMNS.iter().position(|column| *column == name).filter(|_| self.folded)
    }

    /// Returns the names for messages.
    fn names(&self) -> Vec<String> {
        let joined = self
            .joined
            .iter()
            .flat_map(|table| table.columns.iter().map(move |column| format!("{}.{column}", table.name)));
        let fold = crate::fold::COLUMNS.iter().filter(|_| self.folded).map(|name| (*name).to_owned());
        self.lets.iter().cloned().chain(self.columns.iter().cloned()).chain(fold).chain(joined).collect()
    }

    /// Returns whether only later files have a column.
    pub fn is_extra(&self, name: &str) -> bool {
        let own = self.without_table(name);
        let of = |table: &JoinedTable| {
            let below = name.strip_prefix(&table.name).and_then(|rest| rest.strip_prefix('.')).unwrap_or(name);
            table.extra.iter().any(|(column, _)| column == below)
        };
        self.extra.iter().any(|(column, _)| column == own) || self.joined.iter().any(of)
    }

    /// Returns the problem of a name that is no column.
    pub fn unknown(&self, name: &str) -> String {
        let file = self.path().display();
        let own = self.without_table(name);
        let joined = self.joined.iter().flat_map(|table| {
            table.extra.iter().map(move |(column, file)| (format!("{}.{column}", table.name), column, file))
        });
        let extra = self.extra.iter().map(|(column, file)| (column.clone(), column, file)).chain(joined);
        if let Some((_, _, other)) = extra.into_iter().find(|(full, column, _)| full == name || *column == own) {
            return format!(
                "'{}' is a column of {other}, but not of the first file of its table; name a file that has all columns first",
                crate::value::short(name)
            );
        }
        let names = self.names();
        let hint = did_you_mean(name, names.iter().map(String::as_str));
        let listed = if names.len() > 40 { format!("{}, ...", names[..40].join(", ")) } else { names.join(", ") };
        format!("'{}' is no column of {file}{hint}; expected {listed}", crate::value::short(name))
    }

    /// Connects an expression. Errors: a name is no column.
    pub fn bind(&self, key: &str, formula: &Formula) -> Result<BoundFormula, Error> {
        formula.tree.bind(&mut |name| {
            self.slot(&name.name).map_err(|problem| {
                let at = format!("expression '{}', character {}: ", crate::value::short(&formula.text), name.place);
                formula.place.wrong(key, at + &problem)
            })
        })
    }
}

/// Returns whether an expression reads a table that has no files.
pub fn reads_absent(formula: &BoundFormula) -> bool {
    formula.bind::<(), ()>(&mut |slot| if *slot == Slot::Absent { Err(()) } else { Ok(()) }).is_err()
}

/// Returns whether a field without blanks around it has no value: it is empty, `nan`, `null` or one of the `markers`.
pub fn is_missing(bytes: &[u8], markers: &[String]) -> bool {
    bytes.is_empty()
        || bytes.eq_ignore_ascii_case(b"nan")
        || bytes.eq_ignore_ascii_case(b"null")
        || markers.iter().any(|marker| marker.as_bytes() == bytes)
}

/// Converts a field to a value. Errors: it is not UTF-8.
pub fn field<'a>(bytes: &'a [u8], missing: &[String]) -> Valued<Value<'a>> {
    let bytes = bytes.trim_ascii();
    if is_missing(bytes, missing) {
        return Ok(Value::Missing);
    }
    std::str::from_utf8(bytes)
        .map(Value::text)
        .map_err(|_| format!("'{}' is not UTF-8 text", plimsoll_sim::workload::shorten(bytes)))
}

/// The values of a row.
pub struct RowFrame<'a, 's> {
    /// The names.
    pub scope: &'a ColumnScope<'a>,
    /// The row of the main table.
    pub row: &'a LogRow,
    /// Its number, from 1.
    pub number: u64,
    /// The row of each joined table.
    pub joined: &'s [Option<&'a ByteRecord>],
    /// Values of `[let]` so far.
    pub lets: &'s [Value<'a>],
}

impl<'a> NameValues<'a, Slot> for RowFrame<'a, '_> {
    fn value(&self, slot: &Slot) -> Valued<Value<'a>> {
        let whole = |number: u64| Value::Number(i64::try_from(number).unwrap_or(i64::MAX).into());
        match *slot {
            Slot::Main(at) => {
                let value = field(self.row.fields.get(at).unwrap_or_default(), &self.scope.missing);
                value.map_err(|problem| format!("column '{}': {problem}", self.scope.column_name(at)))
            }
            Slot::Joined(table, at) => match self.joined.get(table) {
                Some(Some(row)) => field(row.get(at).unwrap_or_default(), &self.scope.joined[table].missing),
                _ => Ok(Value::Missing),
            },
            Slot::Let(at) => Ok(self.lets.get(at).cloned().unwrap_or(Value::Missing)),
            Slot::Row => Ok(whole(self.number)),
            Slot::Line => Ok(whole(self.row.line)),
            Slot::Absent => Ok(Value::Missing),
        }
    }
}

/// Computes the text of a key; `None` if it is missing. Errors: a value cannot be read.
pub fn key_text<'a>(formula: &'a BoundFormula, frame: &RowFrame<'a, '_>, clock: &Clock) -> Valued<Option<String>> {
    Ok(evaluate(formula, frame, clock)?.into_text().map(|text| text.into_owned()))
}

/// Returns whether a file name fits a pattern with `*` and `?`, ignoring case.
pub fn fits(pattern: &str, name: &str) -> bool {
    fn rest(pattern: &[u8], name: &[u8]) -> bool {
        match (pattern.first(), name.first()) {
            (None, None) => true,
            (Some(b'*'), _) => (0..=name.len()).any(|skipped| rest(&pattern[1..], &name[skipped..])),
            (Some(b'?'), Some(_)) => rest(&pattern[1..], &name[1..]),
            (Some(a), Some(b)) if a.eq_ignore_ascii_case(b) => rest(&pattern[1..], &name[1..]),
            _ => false,
        }
    }
    rest(pattern.as_bytes(), name.as_bytes())
}

/// Returns the file name of a path.
pub fn file_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}
