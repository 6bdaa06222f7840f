//! Folds the events of a log to one row per key: first submission, last start, end and outcome.
//!
//! The rows of the log are read into memory and sorted by time, because publishers split the events of one key over several files. A row has
//! all columns of the log, each with its last value that is not missing, and then the columns of [`COLUMNS`].

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use csv::ByteRecord;
use plimsoll_base::error::Error;

use crate::bind::{BoundFormula, ColumnScope, RowFrame, is_missing, key_text};
use crate::clock::Clock;
use crate::expr::evaluate;
use crate::input::{LogRow, Rows};
use crate::mapping::FoldSpec;
use crate::number::Fraction;
use crate::report::RowReport;
use crate::tables::Examples;
use crate::value::short;

type Result<T, E = Error> = std::result::Result<T, E>;

/// The columns of a fold behind those of the log. Expressions may write `fold.` before each.
pub const COLUMNS: [&str; 5] = ["first_submit", "last_start", "last_end", "outcome", "starts"];

/// The kinds of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EventKind {
    Submit,
    Start,
    SubmitAndStart,
    End(usize),
    Update,
}

/// The events of one key so far.
#[derive(Default)]
struct FoldState {
    line: u64,
    file: usize,
    fields: Vec<Vec<u8>>,
    submit: Option<Fraction>,
    start: Option<Fraction>,
    end: Option<Fraction>,
    outcome: Option<usize>,
    starts: u64,
}

/// The rows of a fold.
pub struct FoldedRows {
    states: std::vec::IntoIter<FoldState>,
    outcomes: Vec<String>,
}

/// The number of kinds of events outside the mapping that are listed on their own.
const LISTED: usize = 10;

/// Reads all events. Events without a key, a time or a kind are dropped and counted, and events of a kind that the mapping does not name
/// are counted. Errors: those of reading the log.
pub fn read(
    spec: &FoldSpec,
    scope: &ColumnScope<'_>,
    rows: &mut dyn Rows,
    clock: &Clock,
    report: &mut RowReport,
) -> Result<FoldedRows> {
    let parts = [&spec.key, &spec.time, &spec.event].map(|formula| scope.bind("fold", formula));
    let [key, time, event] = parts;
    let parts = EventFormulas { key: key?, time: time?, event: event? };
    let kind = |code: &str| {
        let has = |codes: &[String]| codes.iter().any(|known| known == code);
        let end = spec.end.iter().position(|(known, _)| known == code);
        match (has(&spec.submit), has(&spec.start), end) {
            (true, true, _) => Some(EventKind::SubmitAndStart),
            (true, false, _) => Some(EventKind::Submit),
            (false, true, _) => Some(EventKind::Start),
            (_, _, Some(end)) => Some(EventKind::End(end)),
            _ => has(&spec.update).then_some(EventKind::Update),
        }
    };
    let mut events: Vec<(Fraction, u32, EventKind, LogRow)> = Vec::new();
    let mut keys: HashMap<String, u32> = HashMap::new();
    let mut unnamed: BTreeMap<String, Examples> = BTreeMap::new();
    let mut row = LogRow::default();
    loop {
        let read = match rows.next(&mut row) {
            Ok(false) => break,
            Err(Error::Trace { line, path, column, problem }) if line > 0 => {
                Err(Error::Trace { line, path, column, problem })
            }
            Err(error) => return Err(error),
            Ok(true) => parts.read(scope, &row, clock),
        };
        report.events += 1;
        clock.end_row();
        match read {
            Ok(Ok((name, at, code))) => {
                let next = u32::try_from(keys.len()).map_err(|_| too_many(scope.path()))?;
                let id = *keys.entry(name).or_insert(next);
                let kind = kind(&code).unwrap_or_else(|| {
                    let mut name = format!("the kind '{}'", short(&code));
                    if unnamed.len() >= LISTED && !unnamed.contains_key(&name) {
                        name = "other kinds".to_owned();
                    }
                    unnamed.entry(name).or_default().count(row.line, scope.path_of(row.file));
                    EventKind::Update
                });
                events.push((at, id, kind, std::mem::take(&mut row)));
            }
            Ok(Err(reason)) => {
                report.count_row(Ok(()))?;
                report.drop_row(reason, row.line, row.file);
            }
            Err(error) => report.count_row(Err(error))?,
        }
    }
    report.quality.assumptions.push(("fold".into(), format!("{} events to one row per key", report.events)));
    for (name, Examples { rows, first }) in unnamed {
        let effect = "change only the columns of their key";
        let warning = format!("{rows} events of {name}, which [fold] does not name, {effect} (first {first})");
        report.quality.warnings.push(warning);
    }
    events.sort_by_key(|(at, ..)| *at);
    let mut order: Vec<Option<usize>> = vec![None; keys.len()];
    let mut states: Vec<FoldState> = Vec::with_capacity(keys.len());
    for (at, id, kind, row) in events {
        let place = *order[id as usize].get_or_insert_with(|| {
            states.push(FoldState {
                line: row.line,
                file: row.file,
                fields: vec![Vec::new(); scope.columns.len()],
                ..FoldState::default()
            });
            states.len() - 1
        });
        states[place].apply(at, kind, &row.fields, &scope.missing);
    }
    let outcomes = spec.end.iter().map(|(_, outcome)| outcome.clone()).collect();
    Ok(FoldedRows { states: states.into_iter(), outcomes })
}

fn too_many(path: &Path) -> Error {
    Error::trace(PathBuf::from(path), 0, "", "has more than 4,294,967,295 keys")
}

/// The expressions of an event.
struct EventFormulas {
    key: BoundFormula,
    time: BoundFormula,
    event: BoundFormula,
}

impl EventFormulas {
    /// Returns the key, the time and the kind of an event, or the reason for which it has none. Errors: a value cannot be read.
    fn read(
        &self,
        scope: &ColumnScope<'_>,
        row: &LogRow,
        clock: &Clock,
    ) -> Result<Result<(String, Fraction, String), &'static str>> {
        let frame = RowFrame { scope, row, number: 0, joined: &[], lets: &[] };
        let wrong = |column: &str, problem: String| Error::trace(scope.path_of(row.file), row.line, column, problem);
        let key = key_text(&self.key, &frame, clock).map_err(|problem| wrong("fold.key", problem))?;
        let time = evaluate(&self.time, &frame, clock).and_then(|value| value.number(clock));
        let time = time.map_err(|problem| wrong("fold.time", problem))?;
        let event = evaluate(&self.event, &frame, clock).map_err(|problem| wrong("fold.event", problem))?;
        Ok(match (key, time, event.into_text()) {
            (None, ..) => Err("an event without a key"),
            (_, None, _) => Err("an event without a time"),
            (_, _, None) => Err("an event without a kind"),
            (Some(key), Some(time), Some(event)) => Ok((key, time, event.into_owned())),
        })
    }
}

impl FoldState {
    fn apply(&mut self, at: Fraction, kind: EventKind, fields: &ByteRecord, missing: &[String]) {
        for (known, field) in self.fields.iter_mut().zip(fields) {
            if !is_missing(field.trim_ascii(), missing) {
                field.clone_into(known);
            }
        }
        if matches!(kind, EventKind::Submit | EventKind::SubmitAndStart) {
            self.submit = self.submit.or(Some(at));
            // An instance that is submitted again has not started again.
            (self.start, self.end, self.outcome) = (None, None, None);
        }
        match kind {
            EventKind::Start | EventKind::SubmitAndStart => {
                (self.start, self.end, self.outcome) = (Some(at), None, None);
                self.starts += 1;
            }
            EventKind::End(outcome) => (self.end, self.outcome) = (Some(at), Some(outcome)),
            EventKind::Submit | EventKind::Update => {}
        }
    }
}

impl Rows for FoldedRows {
    fn next(&mut self, row: &mut LogRow) -> Result<bool> {
        let Some(state) = self.states.next() else { return Ok(false) };
        (row.line, row.file) = (state.line, state.file);
        row.fields.clear();
        state.fields.iter().for_each(|field| row.fields.push_field(field));
        let outcome =
            state.outcome.map_or(if state.start.is_some() { "running" } else { "waiting" }, |at| &self.outcomes[at]);
        for time in [state.submit, state.start, state.end] {
            row.fields.push_field(time.map(|time| time.to_string()).unwrap_or_default().as_bytes());
        }
        row.fields.push_field(outcome.as_bytes());
        row.fields.push_field(state.starts.to_string().as_bytes());
        Ok(true)
    }
}
