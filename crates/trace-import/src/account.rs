//! Accounts for every column of every table: read by an expression, ignored for a reason, counted, or named by no part of the mapping.

use std::collections::BTreeSet;

use csv::ByteRecord;
use plimsoll_base::error::Result;
use plimsoll_sim::workload::Quality;

use crate::bind::{ColumnScope, Slot, file_name, is_missing};
use crate::input::LogRow;
use crate::mapping::{FieldRule, Mapping};

/// A column of which values are counted.
struct CountedColumn {
    slot: Slot,
    name: String,
    reason: String,
    missing: Vec<String>,
    /// Kept rows with a value.
    rows: u64,
}

/// Counts of kept rows.
pub struct Account {
    counted: Vec<CountedColumn>,
    /// Columns that no part of the mapping names, in sentences of one file or table each.
    unread: Vec<String>,
    /// The names in `[fields]`, for columns that are found late.
    named: BTreeSet<String>,
    /// The texts of warnings and the rows that they concern.
    warnings: Vec<(String, u64)>,
}

impl Account {
    /// Creates an account after all expressions are bound. Errors: `[fields]` names a column that does not exist.
    pub fn new(mapping: &Mapping, scope: &ColumnScope<'_>) -> Result<Account> {
        let mut main: BTreeSet<usize> = scope.read.borrow().clone();
        let mut joined: Vec<BTreeSet<usize>> = scope.joined.iter().map(|table| table.read.borrow().clone()).collect();
        let mut counted = Vec::new();
        for (name, rule, place) in &mapping.fields {
            let slots = scope.places(name);
            // A log may lack columns that matter only as counts.
            if slots.is_empty() && mapping.name == crate::OWN && !scope.is_extra(name) {
                return Err(place.wrong("fields", scope.unknown(name)));
            }
            for slot in slots {
                let missing = match slot {
                    Slot::Main(at) => {
                        main.insert(at);
                        &scope.missing
                    }
                    Slot::Joined(table, at) => {
                        joined[table].insert(at);
                        &scope.joined[table].missing
                    }
                    _ => continue,
                };
                if let FieldRule::Counted(reason) = rule {
                    let (name, reason, missing) = (name.clone(), reason.clone(), missing.clone());
                    counted.push(CountedColumn { slot, name, reason, missing, rows: 0 });
                }
            }
        }
        let named: BTreeSet<String> = mapping.fields.iter().map(|(name, ..)| name.clone()).collect();
        let mut unread = Vec::new();
        let mut list = |of: String, names: Vec<String>| {
            if !names.is_empty() {
                unread.push(format!("columns of {of} that the mapping does not name: {}", names.join(", ")));
            }
        };
        let others = |columns: &[String], known: &BTreeSet<usize>| -> Vec<String> {
            (0..columns.len()).filter(|at| !known.contains(at)).map(|at| columns[at].clone()).collect()
        };
        let extra = |table: &str, extra: &[(String, String)]| -> Vec<String> {
            let unnamed = extra
                .iter()
                .filter(|(column, _)| !named.contains(column) && !named.contains(&format!("{table}.{column}")));
            unnamed.map(|(column, file)| format!("{column} ({file})")).collect()
        };
        list(file_name(scope.path()), others(&scope.columns, &main));
        list("later files".to_owned(), extra(scope.name, &scope.extra));
        for (table, known) in scope.joined.iter().zip(&joined).filter(|(table, _)| table.given) {
            list(format!("table '{}'", table.name), others(&table.columns, known));
            list(format!("later files of table '{}'", table.name), extra(&table.name, &table.extra));
        }
        let warnings = mapping.warn.iter().map(|(_, text)| (text.clone(), 0)).collect();
        Ok(Account { counted, unread, named, warnings })
    }

    /// Returns the facts about a row, with its rows of joined tables and the indices of its warnings. They are counted by
    /// [`Account::count`] if the row is kept. Facts beyond the 64th are counted here.
    pub fn facts(
        &mut self,
        row: &LogRow,
        joined: &[Option<&ByteRecord>],
        warnings: impl Iterator<Item = usize>,
    ) -> u64 {
        let columns = self.counted.iter().enumerate().filter(|(_, column)| {
            let field = match column.slot {
                Slot::Main(at) => row.fields.get(at),
                Slot::Joined(table, at) => joined.get(table).copied().flatten().and_then(|row| row.get(at)),
                _ => None,
            };
            !is_missing(field.unwrap_or_default().trim_ascii(), &column.missing)
        });
        let found: Vec<usize> = columns.map(|(at, _)| at).chain(warnings.map(|at| at + self.counted.len())).collect();
        let mut facts = 0;
        for at in found {
            match 1u64.checked_shl(at as u32) {
                Some(bit) => facts |= bit,
                None => self.add(at),
            }
        }
        facts
    }

    /// Counts the facts about a kept row.
    pub fn count(&mut self, mut facts: u64) {
        while facts != 0 {
            self.add(facts.trailing_zeros() as usize);
            facts &= facts - 1;
        }
    }

    fn add(&mut self, at: usize) {
        match at.checked_sub(self.counted.len()) {
            None => self.counted[at].rows += 1,
            Some(at) => self.warnings[at].1 += 1,
        }
    }

    /// Adds the counts above 0 and the columns that are not read to the report. `late` has columns that the first records lack.
    pub fn report(self, scope: &ColumnScope<'_>, late: &[String], quality: &mut Quality) {
        for (text, rows) in self.warnings.into_iter().filter(|(_, rows)| *rows > 0) {
            quality.warnings.push(format!("{text}: {rows} rows"));
        }
        for CountedColumn { name, reason, rows, .. } in self.counted.into_iter().filter(|column| column.rows > 0) {
            quality.warnings.push(format!("column {name} is not read, and {rows} rows have a value: {reason}"));
        }
        quality.warnings.extend(self.unread);
        let late: BTreeSet<&str> = late.iter().map(String::as_str).filter(|name| !self.named.contains(*name)).collect();
        if !late.is_empty() {
            let names: Vec<&str> = late.into_iter().collect();
            quality.warnings.push(format!(
                "columns that the first records of {} lack, which are not read; input.columns adds a column: {}",
                file_name(scope.path()),
                names.join(", ")
            ));
        }
    }
}
