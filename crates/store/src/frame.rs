//! Tables in memory: columns of numbers and of names.

use std::path::{Path, PathBuf};

use crate::parquet::{Bytes, Parquet, StoredColumn};
use plimsoll_base::column::Cell;
use plimsoll_base::error::{Error, Result};
use plimsoll_base::pinned::Pinned;

/// A table, or some columns of one, in memory.
pub struct Frame {
    path: PathBuf,
    rows: usize,
    columns: Vec<StoredColumn>,
}

/// The values of a column.
pub enum Values {
    /// Integers.
    Int(Vec<Option<i64>>),
    /// Doubles.
    Float(Vec<Option<f64>>),
    /// Texts.
    Text(Vec<Option<String>>),
}

impl Values {
    /// Returns the value of a row.
    pub fn cell(&self, row: usize) -> Cell<'_> {
        match self {
            Values::Int(values) => values[row].map_or(Cell::Null, Cell::Int),
            Values::Float(values) => values[row].map_or(Cell::Null, Cell::Float),
            Values::Text(values) => values[row].as_deref().map_or(Cell::Null, Cell::Text),
        }
    }
}

impl Frame {
    /// Reads a whole file; `None` if it is missing. Errors: [`Error::Trace`] if it is damaged.
    pub fn open(path: &Path) -> Result<Option<Frame>> {
        open(path)?.map(|file| Frame::read(path.to_owned(), file, None)).transpose()
    }

    /// Reads the existing columns among these names, or all columns; other columns may be of any type.
    pub fn read(path: PathBuf, mut file: Parquet, names: Option<&[&str]>) -> Result<Frame> {
        let mut wanted: Vec<String> = Vec::new();
        for (name, unreadable) in file.columns() {
            match unreadable {
                None if names.is_none_or(|names| names.contains(&name.as_str())) => wanted.push(name.clone()),
                Some(kind) if names.is_some_and(|names| names.contains(&name.as_str())) => {
                    return Err(damaged(&path, &format!("column '{name}' is of type {kind}")));
                }
                _ => {}
            }
        }
        file.select(&wanted.iter().map(String::as_str).collect::<Vec<_>>())?;
        let rows = file.rows();
        Ok(Frame { path, rows, columns: file.read(0, rows)? })
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the names of the columns.
    pub fn columns(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(StoredColumn::name)
    }

    /// Returns the values of every column with their types, in the order of [`Frame::columns`].
    pub fn values_of_all(&self) -> Result<Vec<Values>> {
        let of = |column: &StoredColumn| {
            Ok(match column.integers()? {
                Some(values) => Values::Int(values),
                None if column.other_than_text().is_some() => Values::Float(column.numbers()?),
                None => {
                    let absent = column.nulls();
                    let value = |(text, absent): (String, bool)| (!absent).then_some(text);
                    Values::Text(column.text()?.into_iter().zip(absent).map(value).collect())
                }
            })
        };
        let damage = |column: &StoredColumn| {
            of(column).map_err(|problem: String| damaged(&self.path, &format!("column '{}': {problem}", column.name())))
        };
        self.columns.iter().map(damage).collect()
    }

    /// Returns a column of numbers.
    pub fn numbers(&self, name: &str) -> Result<Vec<Option<f64>>> {
        self.values(name, None, StoredColumn::numbers)
    }

    /// Returns a column of names; an absent name is empty.
    pub fn names(&self, name: &str) -> Result<Vec<String>> {
        self.values(name, String::new(), |column| match column.other_than_text() {
            Some(kind) => Err(format!("is of type {kind}, not text")),
            None => column.text(),
        })
    }

    /// Returns the values of a column. If there is no such column, every value is `absent`.
    fn values<T: Clone>(
        &self,
        name: &str,
        absent: T,
        of: impl FnOnce(&StoredColumn) -> std::result::Result<Vec<T>, String>,
    ) -> Result<Vec<T>> {
        let Some(column) = self.columns.iter().find(|column| column.name() == name) else {
            return Ok(vec![absent; self.rows]);
        };
        of(column).map_err(|problem| damaged(&self.path, &format!("column '{name}': {problem}")))
    }
}

/// Opens a table; `None` if it is missing. Errors: [`Error::Trace`] if it is damaged.
pub fn open(path: &Path) -> Result<Option<Parquet>> {
    match Pinned::new(path).and_then(|file| Parquet::open(path, Bytes::File(file), damaged)) {
        Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => Ok(None),
        result => result.map(Some),
    }
}

fn damaged(path: &Path, problem: &str) -> Error {
    let problem = format!("not a readable table ({problem}); delete the file and run the experiment again");
    Error::trace(path, 0, "", problem)
}
