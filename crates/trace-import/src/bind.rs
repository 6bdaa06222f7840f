//! Connects the names of a mapping with the columns of the open files.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use csv::ByteRecord;
use plimsoll_base::error::{Result, did_you_mean};
use plimsoll_base::tree::Place;

use crate::clock::Clock;
use crate::expr::{ExpressionTree, NameValues, evaluate};
use crate::input::LogRow;
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
    pub rows: HashMap<String, ByteRecord>,
    /// Whether the table has files.
    pub given: bool,
    /// Missing values, as in [`ColumnScope::missing`].
    pub missing: Vec<String>,
}

/// The names that expressions may use.
pub struct ColumnScope<'m> {
    /// The main table's name.
    pub name: &'m str,
    /// The columns of the main table.
    pub columns: Vec<String>,
    /// Texts that mean a missing value.
    pub missing: Vec<String>,
    /// The joined tables.
    pub joined: Vec<JoinedTable>,
    /// The names of values of `[let]` so far.
    pub lets: Vec<String>,
    /// The columns of the main table that some expression reads.
    pub read: RefCell<BTreeSet<usize>>,
    /// The main file, for messages.
    pub path: PathBuf,
}

impl ColumnScope<'_> {
    /// Finds a column of the main table by its name, or by its position for `$1`, `$2` and so on.
    pub fn column(&self, name: &str) -> Option<usize> {
        let by_name = self.columns.iter().position(|column| column == name);
        by_name.or_else(|| {
            let position = name.strip_prefix('$')?.parse::<usize>().ok()?.checked_sub(1)?;
            (position < self.columns.len()).then_some(position)
        })
    }

    fn slot(&self, name: &str) -> Option<Slot> {
        if let Some(at) = self.lets.iter().rposition(|known| known == name) {
            return Some(Slot::Let(at));
        }
        let main = name.strip_prefix(self.name).and_then(|rest| rest.strip_prefix('.')).unwrap_or(name);
        if let Some(at) = self.column(name).or_else(|| self.column(main)) {
            self.read.borrow_mut().insert(at);
            return Some(Slot::Main(at));
        }
        for (table, joined) in self.joined.iter().enumerate() {
            let below = name.strip_prefix(&joined.name).and_then(|rest| rest.strip_prefix('.'));
            if below.is_some() && !joined.given {
                return Some(Slot::Absent);
            }
            let position = joined.columns.iter().position(|column| Some(column.as_str()) == below || column == name);
            if let Some(at) = position {
                return Some(Slot::Joined(table, at));
            }
        }
        match name {
            "row" => Some(Slot::Row),
            "line" => Some(Slot::Line),
            _ => None,
        }
    }

    /// Returns the names for messages.
    fn names(&self) -> Vec<String> {
        let joined = self
            .joined
            .iter()
            .flat_map(|table| table.columns.iter().map(move |column| format!("{}.{column}", table.name)));
        self.lets.iter().cloned().chain(self.columns.iter().cloned()).chain(joined).collect()
    }

    /// Returns the problem of a name that is no column.
    pub fn unknown(&self, name: &str) -> String {
        let names = self.names();
        let hint = did_you_mean(name, names.iter().map(String::as_str));
        let file = self.path.display();
        let listed = if names.len() > 40 { format!("{}, ...", names[..40].join(", ")) } else { names.join(", ") };
        format!("'{}' is no column of {file}{hint}; expected {listed}", crate::value::short(name))
    }

    /// Connects an expression. Errors: a name is no column.
    pub fn bind(&self, key: &str, formula: &Formula) -> Result<BoundFormula> {
        formula.tree.bind(&mut |name| {
            self.slot(&name.name).ok_or_else(|| {
                let at = format!("expression '{}', character {}: ", crate::value::short(&formula.text), name.place);
                formula.place.wrong(key, at + &self.unknown(&name.name))
            })
        })
    }

    /// Checks that a name is a column of the main table. Errors: it is none.
    pub fn require(&self, key: &str, name: &str, place: &Place) -> Result<usize> {
        self.column(name).ok_or_else(|| place.wrong(key, self.unknown(name)))
    }
}

/// Returns whether an expression reads a table that has no files.
pub fn reads_absent(formula: &BoundFormula) -> bool {
    formula.bind::<(), ()>(&mut |slot| if *slot == Slot::Absent { Err(()) } else { Ok(()) }).is_err()
}

/// Converts a field to a value. Errors: it is not UTF-8.
pub fn field<'a>(bytes: &'a [u8], missing: &[String]) -> Valued<Value<'a>> {
    let bytes = bytes.trim_ascii();
    let is_null = bytes.is_empty() || bytes.eq_ignore_ascii_case(b"nan") || bytes.eq_ignore_ascii_case(b"null");
    if is_null || missing.iter().any(|marker| marker.as_bytes() == bytes) {
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
                value.map_err(|problem| format!("column '{}': {problem}", self.scope.columns[at]))
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
