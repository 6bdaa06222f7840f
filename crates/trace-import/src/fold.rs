//! Folds the events of a log to one row per key: first submission, last start, end and outcome.
//!
//! The rows of the log are read into memory and sorted by time, because publishers split the events of one key over several files. A row has
//! all columns of the log, each with its last value that is not missing, and the columns of [`COLUMNS`].

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use csv::ByteRecord;
use plimsoll_base::error::{Error, Result};

use crate::bind::{BoundFormula, ColumnScope, RowFrame, key_text};
use crate::clock::Clock;
use crate::expr::evaluate;
use crate::input::{LogRow, Rows};
use crate::mapping::FoldSpec;
use crate::number::Fraction;

/// The columns of a fold besides those of the log.
pub const COLUMNS: [&str; 5] = ["first_submit", "last_start", "last_end", "outcome", "starts"];

/// The kinds of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EventKind {
    Submit,
    Start,
    SubmitAndStart,
    End(usize),
    Other,
}

/// The events of one key so far.
#[derive(Default)]
struct FoldState {
    line: u64,
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
    /// Events without a key, time or kind, and the line of the first.
    pub unusable: (u64, u64),
    /// The number of events.
    pub events: u64,
}

/// Reads all events. Errors: those of reading the log.
pub fn read(spec: &FoldSpec, scope: &ColumnScope<'_>, rows: &mut dyn Rows, clock: &Clock) -> Result<FoldedRows> {
    let parts = [&spec.key, &spec.time, &spec.event].map(|formula| scope.bind("fold", formula));
    let [key, time, event] = parts;
    let (key, time, event) = (key?, time?, event?);
    let kind = |code: &str| {
        let has = |codes: &[String]| codes.iter().any(|known| known == code);
        match (has(&spec.submit), has(&spec.start)) {
            (true, true) => EventKind::SubmitAndStart,
            (true, false) => EventKind::Submit,
            (false, true) => EventKind::Start,
            _ => spec.end.iter().position(|(known, _)| known == code).map_or(EventKind::Other, EventKind::End),
        }
    };
    let mut events: Vec<(Fraction, u32, EventKind, LogRow)> = Vec::new();
    let mut keys: HashMap<String, u32> = HashMap::new();
    let mut folded = FoldedRows { states: Vec::new().into_iter(), outcomes: Vec::new(), unusable: (0, 0), events: 0 };
    let mut row = LogRow::default();
    loop {
        match rows.next(&mut row) {
            Ok(false) => break,
            Err(Error::Trace { line, .. }) if line > 0 => folded.count_unusable(line),
            Err(error) => return Err(error),
            Ok(true) => {
                folded.events += 1;
                match event_parts(&key, &time, &event, scope, &row, clock) {
                    Some((name, at, code)) => {
                        let next = u32::try_from(keys.len()).map_err(|_| too_many(&scope.path))?;
                        let id = *keys.entry(name).or_insert(next);
                        events.push((at, id, kind(&code), std::mem::take(&mut row)));
                    }
                    None => folded.count_unusable(row.line),
                }
            }
        }
    }
    events.sort_by_key(|(at, ..)| *at);
    let mut order: Vec<Option<usize>> = vec![None; keys.len()];
    let mut states: Vec<FoldState> = Vec::with_capacity(keys.len());
    for (at, id, kind, row) in events {
        let place = *order[id as usize].get_or_insert_with(|| {
            states.push(FoldState {
                line: row.line,
                fields: vec![Vec::new(); row.fields.len()],
                ..FoldState::default()
            });
            states.len() - 1
        });
        states[place].apply(at, kind, &row.fields);
    }
    folded.states = states.into_iter();
    folded.outcomes = spec.end.iter().map(|(_, outcome)| outcome.clone()).collect();
    Ok(folded)
}

fn too_many(path: &Path) -> Error {
    Error::trace(PathBuf::from(path), 0, "", "has more than 4,294,967,295 keys")
}

fn event_parts(
    key: &BoundFormula,
    time: &BoundFormula,
    event: &BoundFormula,
    scope: &ColumnScope<'_>,
    row: &LogRow,
    clock: &Clock,
) -> Option<(String, Fraction, String)> {
    let frame = RowFrame { scope, row, number: 0, joined: &[], lets: &[] };
    let name = key_text(key, &frame, clock).ok()??;
    let at = evaluate(time, &frame, clock).ok()?.number(clock).ok()??;
    let code = evaluate(event, &frame, clock).ok()?.into_text()?.into_owned();
    Some((name, at, code))
}

impl FoldedRows {
    fn count_unusable(&mut self, line: u64) {
        if self.unusable.0 == 0 {
            self.unusable.1 = line;
        }
        self.unusable.0 += 1;
    }
}

impl FoldState {
    fn apply(&mut self, at: Fraction, kind: EventKind, fields: &ByteRecord) {
        for (known, field) in self.fields.iter_mut().zip(fields) {
            if !field.is_empty() {
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
            EventKind::Submit | EventKind::Other => {}
        }
    }
}

impl Rows for FoldedRows {
    fn next(&mut self, row: &mut LogRow) -> Result<bool> {
        let Some(state) = self.states.next() else { return Ok(false) };
        row.line = state.line;
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
