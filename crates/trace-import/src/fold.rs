//! Folds the events of a log to one row per key: first submission, last start, end and outcome.
//!
//! The events are sorted by key and time, because publishers split the events of one key over several files. The rows are in the order of
//! their first events. A row has all columns of the log, each with its last value that is not missing, and then the columns of [`COLUMNS`].

use std::collections::BTreeMap;

use plimsoll_base::error::Error;

use crate::bind::{BoundFormula, ColumnScope, RowFrame, is_missing, key_text};
use crate::clock::Clock;
use crate::expr::evaluate;
use crate::input::{LogRow, Rows};
use crate::mapping::FoldSpec;
use crate::number::Fraction;
use crate::report::RowReport;
use crate::spill::{Cursor, Decoder, Encoder, Sorter, Spill, damaged};
use crate::tables::{Examples, InterruptWatch};
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
    /// The time and the number of the first event, as a key.
    first: Vec<u8>,
    line: u64,
    file: usize,
    fields: Vec<Vec<u8>>,
    submit: Option<Fraction>,
    start: Option<Fraction>,
    end: Option<Fraction>,
    outcome: Option<u64>,
    starts: u64,
}

/// The rows of a fold.
pub struct FoldedRows {
    states: Cursor,
    columns: usize,
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
    (spill, watch): (&Spill, &mut InterruptWatch<'_>),
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
    let mut events = spill.sorter();
    let (mut key, mut value) = (Encoder::default(), Encoder::default());
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
                let kind = kind(&code).unwrap_or_else(|| {
                    let mut name = format!("the kind '{}'", short(&code));
                    if unnamed.len() >= LISTED && !unnamed.contains_key(&name) {
                        name = "other kinds".to_owned();
                    }
                    unnamed.entry(name).or_default().count(row.line, scope.path_of(row.file));
                    EventKind::Update
                });
                key.clear().key_text(name.as_bytes()).key_fraction(at).key_sequence(report.events);
                encode_event(at, kind, &row, &scope.missing, value.clear());
                events.push(&key.bytes, &value.bytes)?;
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
    let states = fold(events, scope.columns.len(), spill, watch)?;
    let outcomes = spec.end.iter().map(|(_, outcome)| outcome.clone()).collect();
    Ok(FoldedRows { states, columns: scope.columns.len(), outcomes })
}

/// Encodes an event. Missing values do not change a row.
fn encode_event(at: Fraction, kind: EventKind, row: &LogRow, missing: &[String], into: &mut Encoder) {
    let kind = match kind {
        EventKind::Submit => 0,
        EventKind::Start => 1,
        EventKind::SubmitAndStart => 2,
        EventKind::Update => 3,
        EventKind::End(outcome) => 4 + outcome as u64,
    };
    into.integer(kind).fraction(at).integer(row.line).integer(row.file as u64);
    for field in &row.fields {
        into.slice(if is_missing(field.trim_ascii(), missing) { b"" } else { field });
    }
}

/// Folds the events of each key in the order of time. Returns the rows in the order of their first events.
fn fold(events: Sorter, columns: usize, spill: &Spill, watch: &mut InterruptWatch<'_>) -> Result<Cursor> {
    let events = events.finish()?;
    let mut cursor = events.cursor()?;
    let mut states = spill.sorter();
    let mut group: Vec<u8> = Vec::new();
    let mut state: Option<FoldState> = None;
    let mut value = Encoder::default();
    let mut finish = |state: Option<FoldState>| match state {
        None => Ok(()),
        Some(state) => {
            state.encode(value.clear());
            states.push(&state.first, &value.bytes)
        }
    };
    while cursor.advance()? {
        watch.check()?;
        let key = cursor.key();
        let name = key.windows(2).position(|pair| pair == [0, 0]).ok_or_else(damaged)? + 2;
        let mut event = Decoder::new(cursor.value());
        let (kind, at) = (event.integer()?, event.fraction()?);
        let (line, file) = (event.integer()?, event.integer()? as usize);
        if state.is_none() || key[..name] != group {
            finish(state.take())?;
            group = key[..name].to_owned();
        }
        let fields = vec![Vec::new(); columns];
        let first = || FoldState { first: key[name..].to_owned(), line, file, fields, ..FoldState::default() };
        state.get_or_insert_with(first).apply(at, kind, &mut event)?;
    }
    finish(state)?;
    states.finish()?.cursor()
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
    /// Applies an event of a kind as in [`encode_event`].
    fn apply(&mut self, at: Fraction, kind: u64, fields: &mut Decoder<'_>) -> Result<()> {
        for known in &mut self.fields {
            let field = fields.slice_or_empty()?;
            if !field.is_empty() {
                field.clone_into(known);
            }
        }
        if matches!(kind, 0 | 2) {
            self.submit = self.submit.or(Some(at));
            // An instance that is submitted again has not started again.
            (self.start, self.end, self.outcome) = (None, None, None);
        }
        match kind {
            1 | 2 => {
                (self.start, self.end, self.outcome) = (Some(at), None, None);
                self.starts += 1;
            }
            0 | 3 => {}
            outcome => (self.end, self.outcome) = (Some(at), Some(outcome - 4)),
        }
        Ok(())
    }

    fn encode(&self, into: &mut Encoder) {
        into.integer(self.line).integer(self.file as u64).integer(self.starts).optional(self.outcome);
        for time in [self.submit, self.start, self.end] {
            match time {
                None => into.integer(0),
                Some(time) => into.integer(1).fraction(time),
            };
        }
        self.fields.iter().for_each(|field| _ = into.slice(field));
    }
}

impl Rows for FoldedRows {
    fn next(&mut self, row: &mut LogRow) -> Result<bool> {
        if !self.states.advance()? {
            return Ok(false);
        }
        let mut state = Decoder::new(self.states.value());
        (row.line, row.file) = (state.integer()?, state.integer()? as usize);
        let (starts, outcome) = (state.integer()?, state.optional()?);
        let mut times = [None; 3];
        for time in &mut times {
            if state.integer()? == 1 {
                *time = Some(state.fraction()?);
            }
        }
        row.fields.clear();
        for _ in 0..self.columns {
            row.fields.push_field(state.slice()?);
        }
        let outcome = match outcome {
            Some(at) => self.outcomes.get(at as usize).ok_or_else(damaged)?,
            None if times[1].is_some() => "running",
            None => "waiting",
        };
        for time in times {
            row.fields.push_field(time.map(|time| time.to_string()).unwrap_or_default().as_bytes());
        }
        row.fields.push_field(outcome.as_bytes());
        row.fields.push_field(starts.to_string().as_bytes());
        Ok(true)
    }
}
