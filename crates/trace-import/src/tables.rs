//! The tables of a mapping with their files: assignment of files, rows of several files in order, joined tables.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use plimsoll_base::error::{Error, Result};
use plimsoll_sim::workload::Input;

use crate::bind::{ColumnScope, JoinedTable, RowFrame, file_name, fits, key_text};
use crate::clock::Clock;
use crate::input::{self, LogRow, OpenFile, Rows};
use crate::joined::{JoinedBuilder, JoinedRows};
use crate::mapping::{Mapping, TableSpec};
use crate::report::RowReport;

/// Assigns every file to a table. Errors: a file belongs to no table, or a table has no file.
pub fn assign(mapping: &Mapping, inputs: &[Input]) -> Result<Vec<Vec<Input>>> {
    let mut assigned = vec![Vec::new(); mapping.tables.len()];
    let mut others = Vec::new();
    for input in inputs {
        let name = file_name(input.path());
        let fitting =
            |table: &&TableSpec| table.files.is_empty() || table.files.iter().any(|pattern| fits(pattern, &name));
        // A table with a pattern precedes the main table without one.
        let named = mapping.tables.iter().position(|table| !table.files.is_empty() && fitting(&table));
        match named.or_else(|| mapping.tables.iter().position(|table| table.files.is_empty())) {
            Some(table) => assigned[table].push(input.clone()),
            None => others.push(input.clone()),
        }
    }
    // A single file of another name is taken as the main table.
    if assigned[0].is_empty() && others.len() == 1 {
        assigned[0].append(&mut others);
    }
    let expected = |table: &TableSpec| match &table.files[..] {
        [] => "any file".to_owned(),
        patterns => patterns.join(" or "),
    };
    if let Some(input) = others.first() {
        let known: Vec<String> =
            mapping.tables.iter().map(|table| format!("{} ({})", expected(table), table.name)).collect();
        let problem = format!("belongs to no table of the mapping; expected names such as {}", known.join(", "));
        return Err(Error::trace(input.path(), 0, "", problem));
    }
    for (at, (table, inputs)) in mapping.tables.iter().zip(&assigned).enumerate() {
        if inputs.is_empty() && !table.join.as_ref().is_some_and(|join| join.optional) {
            let problem = if table.files.is_empty() && at > 0 {
                "has no 'files', so that no file belongs to it; expected a pattern such as files = [\"*jobs*\"]"
                    .to_owned()
            } else {
                format!("has no file; expected a file with a name such as {}", expected(table))
            };
            return Err(table.place.wrong("table", format!("table '{}' {problem}", table.name)));
        }
    }
    Ok(assigned)
}

/// The rows of several files, one file after the other, with the columns of the first file in its order.
pub struct Chain<'a> {
    table: TableSpec,
    inputs: Vec<Input>,
    /// The index of the current file.
    at: usize,
    current: Option<OrderedRows>,
    /// The columns.
    pub columns: Vec<String>,
    /// Columns that only later files have, with the name of the first such file.
    pub extra: Vec<(String, String)>,
    /// Columns that were found too late.
    pub late: Vec<String>,
    /// The detected properties of the first file with rows, and those of other files that differ.
    pub detected: Vec<String>,
    watch: InterruptWatch<'a>,
}

/// The rows of a file, and the position of each column in them if they have another order.
struct OrderedRows {
    rows: Box<dyn Rows>,
    places: Option<Vec<usize>>,
}

/// Returns an error if the import must end, as after Ctrl-C.
pub type Interrupt<'a> = &'a dyn Fn() -> Result<()>;

/// The number of rows between two calls of an [`Interrupt`].
const BETWEEN: u64 = 4096;

/// Calls an [`Interrupt`] every few thousand rows.
pub struct InterruptWatch<'a> {
    interrupt: Interrupt<'a>,
    rows: u64,
}

impl<'a> InterruptWatch<'a> {
    /// Creates a watch before the first row.
    pub fn new(interrupt: Interrupt<'a>) -> InterruptWatch<'a> {
        InterruptWatch { interrupt, rows: 0 }
    }

    /// Counts a row. Errors: those of the interrupt.
    pub fn check(&mut self) -> Result<()> {
        self.rows += 1;
        if self.rows.is_multiple_of(BETWEEN) { (self.interrupt)() } else { Ok(()) }
    }
}

impl<'a> Chain<'a> {
    /// Returns the scope of the columns for the expressions of a table.
    pub fn scope<'t>(&self, table: &'t TableSpec) -> ColumnScope<'t> {
        ColumnScope {
            name: &table.name,
            columns: self.columns.clone(),
            extra: self.extra.clone(),
            missing: table.missing.clone(),
            paths: self.paths(),
            ..ColumnScope::default()
        }
    }

    /// Opens the files and compares their columns. Errors: no file has columns; a file lacks a column of the first one.
    pub fn open(table: &TableSpec, inputs: Vec<Input>, interrupt: Interrupt<'a>) -> Result<Chain<'a>> {
        if inputs.is_empty() {
            return Err(Error::Mismatch { problem: "no file is given; expected a log".to_owned() });
        }
        let mut chain = Chain {
            table: table.clone(),
            inputs,
            at: 0,
            current: None,
            columns: Vec::new(),
            extra: Vec::new(),
            late: Vec::new(),
            detected: Vec::new(),
            watch: InterruptWatch::new(interrupt),
        };
        let mut first = Vec::new();
        for input in &chain.inputs {
            let file = input::open(input, table, &[])?;
            let is_first = chain.columns.is_empty();
            if is_first {
                chain.columns = file.columns;
                chain.detected.clone_from(&file.detected);
                first = file.detected;
                continue;
            }
            places(input, &chain.columns, &file)?;
            let new = file.detected.iter().filter(|item| !first.contains(item));
            chain.detected.extend(new.map(|item| format!("{item} in {}", file_name(input.path()))));
            let known: HashSet<&String> = chain.columns.iter().collect();
            let new: Vec<String> = file.columns.into_iter().filter(|column| !known.contains(column)).collect();
            if file.is_named {
                chain.columns.extend(new);
            } else {
                let name = file_name(input.path());
                let is_new = |column: &String| !chain.extra.iter().any(|(known, _)| known == column);
                let new: Vec<String> = new.into_iter().filter(is_new).collect();
                chain.extra.extend(new.into_iter().map(|column| (column, name.clone())));
            }
        }
        if chain.columns.is_empty() {
            return Err(Error::trace(chain.inputs[0].path(), 0, "", "has no rows"));
        }
        chain.open_next()?;
        Ok(chain)
    }

    /// Returns the files.
    pub fn paths(&self) -> Vec<PathBuf> {
        self.inputs.iter().map(|input| input.path().to_owned()).collect()
    }

    /// Opens the current file or the next one that has rows; there is none at the end.
    fn open_next(&mut self) -> Result<()> {
        while let Some(input) = self.inputs.get(self.at) {
            let file = input::open(input, &self.table, &self.columns)?;
            if !file.columns.is_empty() {
                let places = places(input, &self.columns, &file)?;
                self.current = Some(OrderedRows { rows: file.rows, places });
                return Ok(());
            }
            self.at += 1;
        }
        Ok(())
    }
}

/// A position behind all fields, which has no value.
const NOWHERE: usize = usize::MAX;

/// Returns the position of each column in the rows of a file, or `None` if they are the same. Errors: the file lacks a column.
fn places(input: &Input, columns: &[String], file: &OpenFile) -> Result<Option<Vec<usize>>> {
    if file.columns.is_empty() || file.columns == columns {
        return Ok(None);
    }
    let mut known: HashMap<&String, usize> = HashMap::new();
    let repeated = (0..file.columns.len()).any(|at| known.insert(&file.columns[at], at).is_some());
    let found = |name: &String| known.get(name).copied().or(file.is_named.then_some(NOWHERE));
    let places: Option<Vec<usize>> = columns.iter().map(found).collect();
    if places.is_none() || repeated {
        let (own, first) = (file.columns.join(", "), columns.join(", "));
        let problem = format!("has the columns {own}; expected those of the first file: {first}");
        return Err(Error::trace(input.path(), 0, "", problem));
    }
    Ok(places)
}

impl Rows for Chain<'_> {
    fn next(&mut self, row: &mut LogRow) -> Result<bool> {
        self.watch.check()?;
        while let Some(OrderedRows { rows, places }) = &mut self.current {
            let read = rows.next(row);
            row.file = self.at;
            if read? {
                if let Some(places) = places {
                    row.fields = places.iter().map(|&at| row.fields.get(at).unwrap_or_default()).collect();
                }
                return Ok(true);
            }
            self.late.extend(rows.late_columns());
            self.current = None;
            self.at += 1;
            self.open_next()?;
        }
        Ok(false)
    }

    fn late_columns(&self) -> Vec<String> {
        self.late.clone()
    }
}

/// Reads a joined table. Of several rows with one key the first is used, and the others are counted in a warning. Errors: with
/// `strict`, a row that cannot be read.
pub fn read_joined(
    table: &TableSpec,
    inputs: Vec<Input>,
    interrupt: Interrupt,
    clock: &Clock,
    report: &mut RowReport,
    mut builder: JoinedBuilder,
) -> Result<JoinedTable> {
    let mut joined = JoinedTable {
        name: table.name.clone(),
        columns: table.columns.clone(),
        rows: JoinedRows::default(),
        given: !inputs.is_empty(),
        missing: table.missing.clone(),
        read: RefCell::default(),
        extra: Vec::new(),
    };
    let Some(join) = table.join.as_ref().filter(|_| joined.given) else { return Ok(joined) };
    let mut chain = Chain::open(table, inputs, interrupt)?;
    joined.columns.clone_from(&chain.columns);
    joined.extra.clone_from(&chain.extra);
    let scope = chain.scope(table);
    let key = scope.bind("join.of", &join.of)?;
    let (mut row, mut unusable) = (LogRow::default(), Examples::default());
    loop {
        clock.end_row();
        match chain.next(&mut row) {
            Ok(false) => break,
            Err(Error::Trace { line, path, .. }) if line > 0 && !report.strict => unusable.count(line, &path),
            Err(error) => return Err(error),
            Ok(true) => {
                let frame = RowFrame { scope: &scope, row: &row, number: 0, joined: &[], lets: &[] };
                match key_text(&key, &frame, clock) {
                    Ok(Some(name)) => builder.push(name, &row, &scope.paths)?,
                    Err(problem) if report.strict => {
                        return Err(Error::trace(scope.path_of(row.file), row.line, "join.of", problem));
                    }
                    _ => unusable.count(row.line, scope.path_of(row.file)),
                }
            }
        }
    }
    joined.extra.extend(chain.late_columns().into_iter().map(|column| (column, "later records".to_owned())));
    joined.read = scope.read.take().into();
    let (rows, repeated) = builder.finish(&scope.paths, &mut InterruptWatch::new(interrupt))?;
    joined.rows = rows;
    for (rows, problem) in
        [(repeated, "have the key of an earlier row and are not used"), (unusable, "cannot be read or have no key")]
    {
        if rows.rows > 0 {
            let Examples { rows, first } = rows;
            report.quality.warnings.push(format!("{rows} rows of table '{}' {problem} (first {first})", table.name));
        }
    }
    Ok(joined)
}

/// A number of rows and the place of the first one.
#[derive(Clone, Debug, Default)]
pub struct Examples {
    /// The number of rows.
    pub rows: u64,
    /// The line and the file of the first row.
    pub first: String,
}

impl Examples {
    /// Counts a row.
    pub fn count(&mut self, line: u64, path: &Path) {
        if self.rows == 0 {
            self.first = format!("line {line} of {}", file_name(path));
        }
        self.rows += 1;
    }
}
