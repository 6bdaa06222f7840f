//! Rows of result files, and the filter of the command line.

use std::path::Path;

use plimsoll_base::error::Result;
use plimsoll_base::rows::{InputColumn, InputRows, Separator};

/// A row: values by column.
pub struct Row(Vec<(String, String)>);

impl Row {
    /// Returns a value that is not empty.
    pub fn get(&self, column: &str) -> Option<&str> {
        self.0.iter().find(|(name, value)| name == column && !value.is_empty()).map(|(_, value)| value.as_str())
    }

    /// Returns a value, or an empty text.
    pub fn text(&self, column: &str) -> &str {
        self.get(column).unwrap_or_default()
    }

    /// Returns a number, or NaN.
    pub fn number(&self, column: &str) -> f64 {
        self.text(column).parse().unwrap_or(f64::NAN)
    }
}

/// The rows to compare.
#[derive(Default)]
pub struct Filter {
    /// The groups; empty for all.
    pub groups: Vec<String>,
    /// Columns and their values.
    pub only: Vec<(String, String)>,
    /// The number of threads.
    pub threads: usize,
}

impl Filter {
    /// Returns the value of a key.
    pub fn value(&self, key: &str) -> Option<&str> {
        self.only.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// Reads the arguments: groups, and `key=value`.
    pub fn from_arguments(arguments: impl Iterator<Item = String>) -> Filter {
        let mut filter = Filter { threads: 2, ..Filter::default() };
        for argument in arguments {
            match argument.split_once('=') {
                None => filter.groups.push(argument),
                Some(("threads", count)) => filter.threads = count.parse().unwrap_or(2),
                Some(("rate", rate)) => filter.only.push(("jobs_per_hour".to_owned(), rate.to_owned())),
                Some((key, value)) => filter.only.push((key.to_owned(), value.to_owned())),
            }
        }
        filter
    }

    /// Returns whether a row has one of the listed values in each restricted column that it has.
    pub fn accepts(&self, row: &Row) -> bool {
        self.only.iter().all(|(key, value)| {
            row.0.iter().find(|(name, _)| name == key).is_none_or(|(_, own)| value.split(',').any(|one| one == own))
        })
    }
}

/// Reads the rows of a file that the filter accepts.
pub fn read_rows(path: &Path, filter: &Filter) -> Result<Vec<Row>> {
    let mut rows = InputRows::open(path, Separator::Comma)?;
    let mut header: Vec<String> = Vec::new();
    let mut found = Vec::new();
    while let Some(row) = rows.read()? {
        let fields = (0..row.fields()).map(|at| row.text(InputColumn::new(at, "")).map(str::to_owned));
        let fields: Vec<String> = fields.collect::<Result<_>>()?;
        if header.is_empty() {
            header = fields;
        } else {
            let row = Row(header.iter().cloned().zip(fields).collect());
            found.extend(filter.accepts(&row).then_some(row));
        }
    }
    Ok(found)
}
