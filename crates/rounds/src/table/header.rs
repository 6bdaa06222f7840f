//! The header of a CSV file: columns by name, and fields with located errors.

use std::path::Path;

use plimsoll_base::error::{Error, Result};
use plimsoll_base::rows::{InputColumn, InputRow, InputRows};

/// The columns of a file.
pub(super) struct CsvHeader {
    names: Vec<String>,
}

impl CsvHeader {
    /// Reads the first row. Errors: [`Error::Trace`] for an empty file, and for a column that is unknown or occurs twice.
    pub fn read(rows: &mut InputRows, path: &Path, known: &[&str], also: Option<&str>) -> Result<CsvHeader> {
        let Some(row) = rows.read()? else { return Err(Error::trace(path, 1, "", "is empty; expected a header")) };
        let mut names: Vec<String> = Vec::new();
        for at in 0..row.fields() {
            let name = row.text(InputColumn::new(at, "header"))?.to_owned();
            if !known.contains(&name.as_str()) && also != Some(name.as_str()) {
                let problem = format!("unknown column '{name}'; expected {}", known.join(", "));
                return Err(row.error(&name, problem));
            }
            if names.contains(&name) {
                return Err(row.error(&name, format!("column '{name}' occurs twice; expected it once")));
            }
            names.push(name);
        }
        Ok(CsvHeader { names })
    }

    /// Checks that the file has the columns. Errors: [`Error::Trace`] with the missing one.
    pub fn require(&self, path: &Path, columns: &[&str]) -> Result<()> {
        let missing = columns.iter().find(|column| !self.has(column));
        missing.map_or(Ok(()), |column| {
            let problem = format!("has no column '{column}'; it has {}", self.names.join(", "));
            Err(Error::trace(path, 1, column, problem))
        })
    }

    /// Returns whether the file has a column.
    pub fn has(&self, column: &str) -> bool {
        self.names.iter().any(|name| name == column)
    }

    /// Checks the number of fields of a row.
    pub fn check(&self, row: &InputRow<'_>) -> Result<()> {
        row.expect_fields(self.names.len()..=self.names.len(), &format!("{} as in the header", self.names.len()))
    }

    fn column<'a>(&self, name: &'a str) -> InputColumn<'a> {
        InputColumn::new(self.names.iter().position(|other| other == name).unwrap_or(usize::MAX), name)
    }

    /// Returns a field, empty for an absent column.
    pub fn text<'a>(&self, row: &InputRow<'a>, column: &str) -> Result<&'a str> {
        row.text(self.column(column))
    }

    /// Returns a field that must not be empty.
    pub fn name<'a>(&self, row: &InputRow<'a>, column: &str) -> Result<&'a str> {
        row.name(self.column(column))
    }

    /// Returns a whole number between `least` and `most`, or `None` for an absent column or an empty field.
    pub fn integer(
        &self,
        row: &InputRow<'_>,
        column: &str,
        least: u64,
        most: u64,
        expected: &str,
    ) -> Result<Option<u64>> {
        if self.text(row, column)?.is_empty() {
            return Ok(None);
        }
        let value = row.integer(self.column(column), expected)?;
        if (least..=most).contains(&value) {
            return Ok(Some(value));
        }
        Err(self.wrong(row, column, "is out of range", expected))
    }

    /// Returns a number from 0 on, times `scale`, rounded to the nearest; `None` for an absent column or an empty field.
    pub fn scaled(&self, row: &InputRow<'_>, column: &str, scale: u64, expected: &str) -> Result<Option<u64>> {
        if self.text(row, column)?.is_empty() {
            return Ok(None);
        }
        row.number(self.column(column), scale, plimsoll_base::units::Rounding::Nearest, expected).map(Some)
    }

    /// Returns a finite number. Errors: empty, no number, not finite.
    pub fn float(&self, row: &InputRow<'_>, column: &str, expected: &str) -> Result<f64> {
        let value = self.text(row, column)?.parse::<f64>();
        match value {
            Ok(value) if value.is_finite() => Ok(value),
            Ok(_) => Err(self.wrong(row, column, "is not finite", expected)),
            Err(_) => Err(self.wrong(row, column, "is not a number", expected)),
        }
    }

    /// Returns an error about a field.
    pub fn wrong(&self, row: &InputRow<'_>, column: &str, problem: &str, expected: &str) -> Error {
        row.wrong(self.column(column), problem, expected)
    }
}
