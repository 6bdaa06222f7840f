//! The tables of a mapping with their files: assignment of files, rows of several files in order, joined tables in memory.

use std::collections::HashMap;
use std::path::PathBuf;

use plimsoll_base::error::{Error, Result};
use plimsoll_sim::workload::{Input, Quality};

use crate::bind::{ColumnScope, JoinedTable, RowFrame, file_name, fits, key_text};
use crate::clock::Clock;
use crate::input::{self, LogRow, Rows};
use crate::mapping::{Mapping, TableSpec};

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
    let patterns = |table: &TableSpec| table.files.join(" or ");
    if let Some(input) = others.first() {
        let known: Vec<String> =
            mapping.tables.iter().map(|table| format!("{} ({})", patterns(table), table.name)).collect();
        let problem = format!("belongs to no table of the mapping; expected names such as {}", known.join(", "));
        return Err(Error::trace(input.path(), 0, "", problem));
    }
    for (table, inputs) in mapping.tables.iter().zip(&assigned) {
        if inputs.is_empty() && !table.join.as_ref().is_some_and(|join| join.optional) {
            let problem =
                format!("table '{}' has no file; expected a file with a name such as {}", table.name, patterns(table));
            return Err(table.place.wrong("table", problem));
        }
    }
    Ok(assigned)
}

/// The rows of several files, one file after the other.
pub struct Chain<'a> {
    table: TableSpec,
    inputs: std::vec::IntoIter<Input>,
    current: Option<Box<dyn Rows>>,
    /// The columns, which are the same in all files.
    pub columns: Vec<String>,
    /// The file of the last row.
    pub path: PathBuf,
    /// Columns that were found too late.
    pub late: Vec<String>,
    /// The detected properties of the first file.
    pub detected: Vec<String>,
    interrupt: Interrupt<'a>,
    /// Rows read so far.
    rows: u64,
}

/// Returns an error if the import must end, as after Ctrl-C.
pub type Interrupt<'a> = &'a dyn Fn() -> Result<()>;

/// The number of rows between two calls of an [`Interrupt`].
const BETWEEN: u64 = 4096;

impl<'a> Chain<'a> {
    /// Opens the first file.
    pub fn open(table: &TableSpec, inputs: Vec<Input>, interrupt: Interrupt<'a>) -> Result<Chain<'a>> {
        let mut inputs = inputs.into_iter();
        let Some(first) = inputs.next() else {
            return Err(Error::Mismatch { problem: "no file is given; expected a log".to_owned() });
        };
        let file = input::open(&first, table)?;
        Ok(Chain {
            table: table.clone(),
            inputs,
            current: Some(file.rows),
            columns: file.columns,
            path: first.path().to_owned(),
            late: Vec::new(),
            detected: file.detected,
            interrupt,
            rows: 0,
        })
    }
}

impl Rows for Chain<'_> {
    fn next(&mut self, row: &mut LogRow) -> Result<bool> {
        self.rows += 1;
        if self.rows.is_multiple_of(BETWEEN) {
            (self.interrupt)()?;
        }
        while let Some(rows) = &mut self.current {
            if rows.next(row)? {
                return Ok(true);
            }
            self.late.extend(rows.late_columns());
            self.current = None;
            if let Some(input) = self.inputs.next() {
                let mut table = self.table.clone();
                let json =
                    matches!(table.form, Some(crate::mapping::FileForm::Json | crate::mapping::FileForm::JsonLines));
                // Records of JSON have any subset of the columns.
                if table.columns.is_empty() && json {
                    table.columns.clone_from(&self.columns);
                }
                let file = input::open(&input, &table)?;
                let same =
                    file.columns.len() >= self.columns.len() && file.columns[..self.columns.len()] == self.columns;
                if !same {
                    let problem = format!(
                        "has the columns {}; expected those of the first file: {}",
                        file.columns.join(", "),
                        self.columns.join(", ")
                    );
                    return Err(Error::trace(input.path(), 0, "", problem));
                }
                self.path = input.path().to_owned();
                self.current = Some(file.rows);
            }
        }
        Ok(false)
    }

    fn late_columns(&self) -> Vec<String> {
        self.late.clone()
    }
}

/// Reads a joined table into memory. Of several rows with one key the first is used, and the others are counted in a warning.
pub fn read_joined(
    table: &TableSpec,
    inputs: Vec<Input>,
    interrupt: Interrupt,
    clock: &Clock,
    quality: &mut Quality,
) -> Result<JoinedTable> {
    let mut joined = JoinedTable {
        name: table.name.clone(),
        columns: table.columns.clone(),
        rows: HashMap::new(),
        given: !inputs.is_empty(),
        missing: table.missing.clone(),
    };
    let Some(join) = table.join.as_ref().filter(|_| joined.given) else { return Ok(joined) };
    let mut chain = Chain::open(table, inputs, interrupt)?;
    joined.columns.clone_from(&chain.columns);
    let scope = ColumnScope {
        name: &table.name,
        columns: chain.columns.clone(),
        missing: table.missing.clone(),
        joined: Vec::new(),
        lets: Vec::new(),
        read: Default::default(),
        path: chain.path.clone(),
    };
    let key = scope.bind("join.of", &join.of)?;
    let (mut row, mut repeated, mut unusable) = (LogRow::default(), 0u64, 0u64);
    loop {
        match chain.next(&mut row) {
            Ok(false) => break,
            Err(Error::Trace { line, .. }) if line > 0 => unusable += 1,
            Err(error) => return Err(error),
            Ok(true) => {
                let frame = RowFrame { scope: &scope, row: &row, number: 0, joined: &[], lets: &[] };
                match key_text(&key, &frame, clock) {
                    Ok(Some(name)) if !joined.rows.contains_key(&name) => {
                        joined.rows.insert(name, row.fields.clone());
                    }
                    Ok(Some(_)) => repeated += 1,
                    _ => unusable += 1,
                }
            }
        }
    }
    for (rows, problem) in
        [(repeated, "have the key of an earlier row and are not used"), (unusable, "cannot be read or have no key")]
    {
        if rows > 0 {
            quality.warnings.push(format!("{rows} rows of table '{}' {problem}", table.name));
        }
    }
    Ok(joined)
}
