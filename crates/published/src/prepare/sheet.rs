//! Small tables of text: the inputs of papers, and the prepared files.

use std::path::{Path, PathBuf};

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use plimsoll_base::error::{Error, Result, did_you_mean};
use plimsoll_base::rows::open;

/// A CSV file in memory.
pub struct TextSheet {
    path: PathBuf,
    header: Vec<String>,
    rows: Vec<csv::StringRecord>,
}

impl TextSheet {
    /// Reads a file with a header. Errors: it cannot be read, or a row has another number of fields.
    pub fn read(path: &Path) -> Result<TextSheet> {
        let mut reader = csv::Reader::from_reader(open(path)?);
        let wrong = |error: csv::Error| {
            let line = error.position().map_or(0, csv::Position::line);
            Error::trace(path, line, "", error.to_string())
        };
        let header = reader.headers().map_err(wrong)?.iter().map(str::to_owned).collect();
        let rows = reader.records().collect::<std::result::Result<_, _>>().map_err(wrong)?;
        Ok(TextSheet { path: path.to_owned(), header, rows })
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.rows.len()
    }

    /// Returns the names of the columns.
    pub fn header(&self) -> &[String] {
        &self.header
    }

    /// Returns a row for each row, drawn with replacement.
    pub fn resampled(&self, seed: u64) -> Vec<usize> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        (0..self.rows.len()).map(|_| rng.random_range(0..self.rows.len() as u32) as usize).collect()
    }

    /// Returns whether there is a column with this name.
    pub fn has(&self, column: &str) -> bool {
        self.header.iter().any(|name| name == column)
    }

    /// Returns a field. Errors: there is no such column.
    pub fn text(&self, row: usize, column: &str) -> Result<&str> {
        let at = self.header.iter().position(|name| name == column).ok_or_else(|| {
            let hint = did_you_mean(column, self.header.iter().map(String::as_str));
            Error::trace(&self.path, 1, column, format!("is missing{hint}; the file has {}", self.header.join(", ")))
        })?;
        Ok(self.rows[row].get(at).unwrap_or(""))
    }

    /// Returns a field as a number. Errors: as [`TextSheet::text`], and a field that is no number.
    pub fn number<T: std::str::FromStr>(&self, row: usize, column: &str) -> Result<T> {
        let text = self.text(row, column)?;
        text.trim().parse().map_err(|_| {
            let line = self.rows[row].position().map_or(0, csv::Position::line);
            Error::trace(&self.path, line, column, format!("'{text}' is not a number of the expected kind"))
        })
    }
}

/// Writes a file of lines.
pub fn write(path: &Path, lines: impl IntoIterator<Item = String>) -> Result<()> {
    let mut text = String::new();
    for line in lines {
        text += &line;
        text.push('\n');
    }
    std::fs::write(path, text).map_err(|error| Error::output(path, error))
}

/// Formats thousandths as a decimal.
pub fn from_milli(milli: u64) -> String {
    match milli % 1000 {
        0 => (milli / 1000).to_string(),
        rest => format!("{}.{rest:03}", milli / 1000).trim_end_matches('0').to_owned(),
    }
}
