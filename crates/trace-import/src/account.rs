//! Accounts for every column of the main table: read by an expression, ignored for a reason, counted, or named by no part of the mapping.

use std::collections::BTreeSet;

use plimsoll_base::error::Result;
use plimsoll_sim::workload::Quality;

use crate::bind::{ColumnScope, field};
use crate::input::LogRow;
use crate::mapping::{FieldRule, Mapping};
use crate::value::Value;

/// Counts of kept rows.
pub struct Account {
    /// Counted columns: position, name, reason, rows with a value.
    counted: Vec<(usize, String, String, u64)>,
    /// Columns that no part of the mapping names.
    unread: Vec<String>,
    /// The texts of warnings and the rows that they concern.
    warnings: Vec<(String, u64)>,
    missing: Vec<String>,
}

impl Account {
    /// Creates an account after all expressions are bound. Errors: `[fields]` names a column that does not exist.
    pub fn new(mapping: &Mapping, scope: &ColumnScope<'_>) -> Result<Account> {
        let mut known: BTreeSet<usize> = scope.read.borrow().clone();
        let mut counted = Vec::new();
        for (name, rule, place) in &mapping.fields {
            // A log may lack columns that matter only as counts.
            let Some(at) = scope.column(name) else {
                if mapping.name == crate::OWN {
                    scope.require("fields", name, place)?;
                }
                continue;
            };
            known.insert(at);
            if let FieldRule::Counted(reason) = rule {
                counted.push((at, name.clone(), reason.clone(), 0));
            }
        }
        let fold = |name: &str| mapping.fold.is_some() && crate::fold::COLUMNS.contains(&name);
        let unread = scope.columns.iter().enumerate().filter(|(at, name)| !known.contains(at) && !fold(name));
        Ok(Account {
            counted,
            unread: unread.map(|(_, name)| name.clone()).collect(),
            warnings: mapping.warn.iter().map(|(_, text)| (text.clone(), 0)).collect(),
            missing: scope.missing.clone(),
        })
    }

    /// Counts a kept row.
    pub fn count(&mut self, row: &LogRow) {
        for (at, _, _, rows) in &mut self.counted {
            let value = field(row.fields.get(*at).unwrap_or_default(), &self.missing);
            *rows += u64::from(!matches!(value, Ok(Value::Missing)));
        }
    }

    /// Counts a kept row for a warning.
    pub fn warn(&mut self, at: usize) {
        if let Some((_, rows)) = self.warnings.get_mut(at) {
            *rows += 1;
        }
    }

    /// Adds the counts above 0 and the columns that are not read to the report.
    pub fn report(self, scope: &ColumnScope<'_>, late: &[String], quality: &mut Quality) {
        for (text, rows) in self.warnings.into_iter().filter(|(_, rows)| *rows > 0) {
            quality.warnings.push(format!("{text}: {rows} rows"));
        }
        for (_, name, reason, rows) in self.counted.into_iter().filter(|(.., rows)| *rows > 0) {
            quality.warnings.push(format!("column {name} is not read, and {rows} rows have a value: {reason}"));
        }
        let unread: Vec<&str> = self.unread.iter().chain(late).map(String::as_str).collect();
        if !unread.is_empty() {
            let file = crate::bind::file_name(&scope.path);
            quality.warnings.push(format!("columns of {file} that the mapping does not name: {}", unread.join(", ")));
        }
    }
}
