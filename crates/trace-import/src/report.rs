//! The report of an import in progress: every row that is read or dropped, with the file of the first example of each reason.

use std::collections::BTreeMap;
use std::path::PathBuf;

use plimsoll_base::error::{Error, Result};
use plimsoll_sim::workload::Quality;

use crate::bind::file_name;

/// Counts of rows, which become the report of a workload.
#[derive(Debug, Default)]
pub struct RowReport {
    /// The counts.
    pub quality: Quality,
    /// Whether a row with an impossible value is an error.
    pub strict: bool,
    /// The files of the main table.
    pub paths: Vec<PathBuf>,
    /// The number of the row that is read.
    pub row: u64,
    /// The number of the row at which the first row was dropped for each reason.
    first_row: BTreeMap<String, u64>,
    /// Events of a fold; the rows of other logs are in `quality`.
    pub events: u64,
    /// The first row with an impossible value.
    first_unusable: Option<Error>,
}

impl RowReport {
    /// Creates the report of an import by the mapping of this name.
    pub fn new(format: &str, strict: bool) -> RowReport {
        let quality = Quality { format: format.to_owned(), ..Quality::default() };
        RowReport { quality, strict, ..RowReport::default() }
    }

    /// Counts a dropped row. If the log has several files, the first example of each reason has the name of its file.
    pub fn drop_row(&mut self, reason: &str, line: u64, file: usize) {
        self.drop_row_at(self.row, reason, line, file);
    }

    /// Counts a row that is dropped because of the row with the number `row`. Rows of attempts are dropped by key and not in the order of
    /// the log, and the example of a reason is the first one in the log.
    pub fn drop_row_at(&mut self, row: u64, reason: &str, line: u64, file: usize) {
        let is_known = self.quality.first_dropped.contains_key(reason);
        self.quality.drop_row(reason, line);
        if is_known && self.first_row.get(reason).is_none_or(|known| *known <= row) {
            return;
        }
        self.first_row.insert(reason.to_owned(), row);
        let path = self.paths.get(file).filter(|_| self.paths.len() > 1);
        let problem = path.map(|path| format!("of {}", file_name(path))).unwrap_or_default();
        self.quality.first_dropped.insert(reason.to_owned(), (line, problem));
    }

    /// Counts a row that was read, and drops it if it has an impossible value. Errors: with `strict`, such a row.
    pub fn count_row(&mut self, read: Result<()>) -> Result<()> {
        let read = match read {
            Err(Error::Trace { path, line, column, mut problem }) if !self.strict => {
                if self.first_unusable.is_none() {
                    self.first_unusable = Some(Error::trace(&path, line, &column, &problem));
                }
                if self.paths.len() > 1 {
                    problem = format!("{problem}; in {}", file_name(&path));
                }
                Err(Error::Trace { path, line, column, problem })
            }
            read => read,
        };
        self.quality.count_row(read, self.strict)
    }

    /// Checks that most rows could be read and that some are kept. `about` describes the expected log. Errors: the first problem, or the
    /// reasons.
    pub fn check(&mut self, about: &str, kept: usize) -> Result<()> {
        let quality = &self.quality;
        let path = self.paths.first().cloned().unwrap_or_default();
        if quality.rows_in == 0 {
            return Err(Error::trace(path, 0, "", format!("has no rows; expected {about}")));
        }
        let (unusable, rows) = (quality.unusable().0, quality.rows_in.max(self.events));
        if unusable > rows / 2
            && let Some(Error::Trace { path, line, column, problem }) = self.first_unusable.take()
        {
            let problem =
                format!("{problem} ({unusable} of {rows} rows cannot be read by the mapping {})", quality.format);
            return Err(Error::Trace { path, line, column, problem });
        }
        if kept == 0 {
            let reasons: Vec<_> = quality.dropped.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
            let mut problem = format!("has no usable row among {}: {}", quality.rows_in, reasons.join(", "));
            if self.events > 0 {
                quality.warnings.iter().for_each(|warning| problem += &format!("; {warning}"));
            }
            return Err(Error::trace(path, 0, "", problem));
        }
        Ok(())
    }
}
