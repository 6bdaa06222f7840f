//! Imports a log by a mapping.

use std::borrow::Cow;

use csv::ByteRecord;
use plimsoll_base::error::{Error, Result};
use plimsoll_base::units::MAX_DIMS;
use plimsoll_sim::workload::formats::Tenants;
use plimsoll_sim::workload::{Input, Quality, Workload};

use crate::account::Account;
use crate::assemble::{Assembler, Assembly};
use crate::attempts::{Attempts, BoundAttempts};
use crate::bind::{BoundFormula, ColumnScope, JoinedTable, RowFrame, key_text, reads_absent};
use crate::clock::{Clock, RepeatedHour};
use crate::draft::{BoundMissing, BoundOutput, Conversion, Refusal, SetDraft};
use crate::expr::evaluate;
use crate::fold;
use crate::imported::Imported;
use crate::input::{LogRow, Rows};
use crate::joined::JoinedBuilder;
use crate::mapping::{AttemptSpec, Formula, Mapping, MissingRule, OutputColumn};
use crate::number::Fraction;
use crate::report::RowReport;
use crate::spill::{Decoder, Spill};
use crate::tables::{Chain, Interrupt, InterruptWatch, assign, read_joined};
use crate::target::Target;

/// Options of an import.
#[derive(Clone, Copy, Debug, Default)]
pub struct ImportOptions {
    /// Whether a row with an impossible value is an error instead of dropped and counted.
    pub strict: bool,
    /// The rule that assigns users; by default the user of the mapping, else one user per job.
    pub tenants: Option<Tenants>,
}

/// Imports the files of a log. The whole workload is in memory.
///
/// Errors: [`Error::Placed`] in the mapping; [`Error::Trace`] if most rows cannot be read (with `strict`, any row), or if no row is usable;
/// [`Error::Io`].
pub fn import(mapping: &Mapping, inputs: &[Input], options: ImportOptions) -> Result<Workload> {
    import_interruptible(mapping, inputs, options, &|| Ok(()))
}

/// Imports the files of a log as [`import`], and calls `interrupt` every few thousand rows. Errors: also those of `interrupt`.
pub fn import_interruptible(
    mapping: &Mapping,
    inputs: &[Input],
    options: ImportOptions,
    interrupt: Interrupt,
) -> Result<Workload> {
    import_sorted(mapping, inputs, options, &Spill::default(), interrupt)?.into_workload()
}

/// Imports the files of a log as [`import_interruptible`], and sorts in temporary files what exceeds the memory of `spill`. The result does
/// not depend on `spill`.
///
/// Besides that memory, the distinct users, stages, labels and locations and the rows of one job or one attempt key are in memory.
pub fn import_sorted(
    mapping: &Mapping,
    inputs: &[Input],
    options: ImportOptions,
    spill: &Spill,
    interrupt: Interrupt,
) -> Result<Imported> {
    let own_users = mapping.outputs.iter().any(|output| output.target == Target::User);
    let tenants = options.tenants.unwrap_or(if own_users { Tenants::Column } else { Tenants::Job });
    if tenants == Tenants::Qos || (tenants == Tenants::Column && !own_users) {
        let expected = "job, one, hash:K, round-robin:K or zipf:K:S, or column if [trace] of the mapping has a user";
        return Err(Error::plan("tenants", format!("'{tenants}'"), expected));
    }
    mapping.clock.restart();
    let mut report = RowReport::new(&mapping.name, options.strict);
    let mut assigned = assign(mapping, inputs)?;
    let mut watch = InterruptWatch::new(interrupt);
    let mut joined = Vec::new();
    let most = spill.joined(mapping.tables.len() - 1);
    for (table, inputs) in mapping.tables.iter().zip(assigned.drain(1..)).map(|(_, inputs)| inputs).enumerate() {
        let (table, builder) = (&mapping.tables[table + 1], JoinedBuilder::new(most, spill));
        joined.push(read_joined(table, inputs, interrupt, &mapping.clock, &mut report, builder)?);
    }
    let main = &mapping.tables[0];
    let mut chain = Chain::open(main, assigned.swap_remove(0), interrupt)?;
    if !chain.detected.is_empty() {
        report.quality.assumptions.push(("input".into(), chain.detected.join(", ")));
    }
    report.paths = chain.paths();
    let mut scope = ColumnScope { joined, ..chain.scope(main) };
    let folded = match &mapping.fold {
        None => None,
        Some(spec) => Some(fold::read(spec, &scope, &mut chain, &mapping.clock, &mut report, (spill, &mut watch))?),
    };
    scope.folded = folded.is_some();
    let bound = Bound::new(mapping, &mut scope, tenants)?;
    let dims = bound.conversion.dims.clone();
    let origin = mapping.origin.and_then(|origin| i64::try_from(origin.times(Fraction::from(1_000_000))?.round()).ok());
    let has_keys = mapping.after_key.is_some();
    let assembly = Assembly { dims: dims.clone(), origin, has_keys, merge: mapping.merge };
    let mut run = Run {
        bound: &bound,
        scope: &scope,
        report,
        account: Account::new(mapping, &scope)?,
        kept: 0,
        drafts: Assembler::new(assembly, spill),
        attempts: bound.attempts.as_ref().map(|attempts| Attempts::new(attempts.rule, dims.len(), spill)),
    };
    match folded {
        Some(mut folded) => run.rows(&mut folded)?,
        None => run.rows(&mut chain)?,
    }
    if let Some(attempts) = run.attempts.take() {
        let sorted = attempts.finish(&mut run.report, spill, &mut watch)?;
        let mut cursor = sorted.cursor()?;
        while cursor.advance()? {
            watch.check()?;
            let (_, row) = Decoder::split_sequence(cursor.key())?;
            run.keep(row, &SetDraft::decode(dims.len(), cursor.value())?)?;
        }
    }
    let Run { mut report, account, kept, drafts, .. } = run;
    account.report(&scope, &chain.late_columns(), &mut report.quality);
    report_times(&mapping.clock, &mut report.quality);
    if !mapping.outputs.iter().any(|output| output.target == Target::Job) {
        report.quality.assumptions.push(("jobs".into(), "one for each row, named by the row's number".into()));
    }
    report.check(mapping.about_or_name(), kept)?;
    let sets = drafts.finish(&mut report.quality, spill, &mut watch)?;
    if sets.rows == 0 {
        return Err(Error::trace(scope.path(), 0, "", "has no row after the origin"));
    }
    Ok(Imported::new(dims, tenants, sets, report.quality))
}

/// Reports times without an offset, in repeated hours and in skipped hours.
fn report_times(clock: &Clock, quality: &mut Quality) {
    let (local, repeats, skipped) = (clock.local.rows(), clock.repeats.rows(), clock.skipped.rows());
    if local > 0 {
        let zone =
            clock.zone_name.as_deref().unwrap_or("UTC (no zone is stated; time.zone = \"AREA/CITY\" changes it)");
        quality.assumptions.push(("time.zone".into(), zone.to_owned()));
    }
    if repeats > 0 {
        let rule = if clock.repeated == RepeatedHour::First { "first" } else { "second" };
        quality
            .assumptions
            .push(("time.repeated".into(), format!("{rule}; {repeats} rows have times in a repeated hour")));
    }
    if skipped > 0 {
        quality
            .warnings
            .push(format!("{skipped} rows have times in an hour that does not occur, because clocks are set forward"));
    }
}

/// The expressions of a mapping after binding.
pub struct Bound<'m> {
    mapping: &'m Mapping,
    join_keys: Vec<Option<BoundFormula>>,
    lets: Vec<(String, BoundFormula)>,
    keep: Vec<(BoundFormula, &'m str)>,
    /// Conditions of warnings with their index in the mapping.
    warn: Vec<(BoundFormula, usize)>,
    attempts: Option<BoundAttempts>,
    conversion: Conversion<'m>,
}

impl<'m> Bound<'m> {
    /// Binds all expressions. Errors: a name is no column; there are too many resources.
    pub fn new(mapping: &'m Mapping, scope: &mut ColumnScope<'m>, tenants: Tenants) -> Result<Bound<'m>> {
        let mut join_keys = Vec::new();
        // A join's key may use the tables that are joined before it.
        let tables: Vec<JoinedTable> = std::mem::take(&mut scope.joined);
        for (table, spec) in tables.into_iter().zip(&mapping.tables[1..]) {
            let join = spec.join.as_ref().filter(|_| table.given);
            join_keys.push(join.map(|join| scope.bind("join.key", &join.key)).transpose()?);
            scope.joined.push(table);
        }
        let mut lets = Vec::new();
        for (name, formula) in &mapping.lets {
            lets.push((name.clone(), scope.bind(name, formula)?));
            scope.lets.push(name.clone());
        }
        let bind = |key: &str, formula: &Formula| scope.bind(key, formula);
        let keep: Result<Vec<_>> =
            mapping.keep.iter().map(|(formula, reason)| Ok((bind("keep", formula)?, reason.as_str()))).collect();
        let warn: Result<Vec<_>> =
            mapping.warn.iter().enumerate().map(|(at, (formula, _))| Ok((bind("warn", formula)?, at))).collect();
        let (keep, mut warn) = (keep?, warn?);
        warn.retain(|(formula, _)| !reads_absent(formula));
        let mut dims = Vec::new();
        let mut outputs = Vec::new();
        for output in &mapping.outputs {
            outputs.push(bind_output(output, scope, &mut dims)?);
        }
        let attempts = match &mapping.attempts {
            None => None,
            Some(AttemptSpec { key, order, rule }) => Some(BoundAttempts {
                key: scope.bind("attempts.key", key)?,
                order: order.as_ref().map(|order| scope.bind("attempts.order", order)).transpose()?,
                rule: *rule,
            }),
        };
        let users_are_jobs = !matches!(tenants, Tenants::Column);
        let (clock, demand_of_all) = (&mapping.clock, mapping.demand_of_all);
        let after_key = mapping.after_key.as_ref().map(|key| scope.bind("trace.after_key", key)).transpose()?;
        let conversion = Conversion { outputs, dims, clock, after_key, demand_of_all, users_are_jobs };
        Ok(Bound { mapping, join_keys, lets, keep, warn, attempts, conversion })
    }
}

fn bind_output(
    output: &OutputColumn,
    scope: &ColumnScope<'_>,
    dims: &mut Vec<plimsoll_base::units::Dim>,
) -> Result<BoundOutput> {
    let formula = scope.bind(&output.name, &output.formula)?;
    let missing = match &output.missing {
        MissingRule::Drop => BoundMissing::Drop,
        MissingRule::Unknown => BoundMissing::Unknown,
        MissingRule::Constant(formula) => BoundMissing::Constant(scope.bind(&output.name, formula)?),
    };
    if let Target::Resource(dim, _) = &output.target {
        if dims.len() == MAX_DIMS {
            return Err(output.formula.place.wrong("trace", format!("is one resource more than {MAX_DIMS}")));
        }
        dims.push(dim.clone());
    }
    let dim = dims.len().saturating_sub(1);
    Ok(BoundOutput { target: output.target.clone(), name: output.name.clone(), formula, missing, dim })
}

/// An import in progress.
struct Run<'a> {
    bound: &'a Bound<'a>,
    scope: &'a ColumnScope<'a>,
    report: RowReport,
    account: Account,
    /// The number of drafts that are kept.
    kept: usize,
    drafts: Assembler,
    attempts: Option<Attempts>,
}

impl Run<'_> {
    /// Reads the rows of the log or of a fold.
    fn rows(&mut self, rows: &mut dyn Rows) -> Result<()> {
        let mut row = LogRow::default();
        let mut number = 0;
        loop {
            let read = rows.next(&mut row);
            self.report.row = number + 1;
            if !self.step(read, &row, &mut number)? {
                return Ok(());
            }
        }
    }

    /// Processes the result of reading a row; returns whether to continue.
    fn step(&mut self, read: Result<bool>, row: &LogRow, number: &mut u64) -> Result<bool> {
        let result = match read {
            Ok(false) => return Ok(false),
            // The whole file cannot be read.
            Err(Error::Trace { line: 0, path, column, problem }) => {
                return Err(Error::Trace { line: 0, path, column, problem });
            }
            Err(error) => {
                *number += 1;
                Err(error)
            }
            Ok(true) => {
                *number += 1;
                self.row(row, *number)
            }
        };
        self.bound.conversion.clock.end_row();
        self.report.count_row(result)?;
        Ok(true)
    }

    fn row(&mut self, row: &LogRow, number: u64) -> Result<()> {
        let bound = self.bound;
        let clock = bound.conversion.clock;
        let path = self.scope.path_of(row.file);
        let wrong = |column: &str, problem: String| Error::trace(path, row.line, column, problem);
        let mut found_rows: Vec<Option<Cow<'_, ByteRecord>>> = Vec::with_capacity(bound.join_keys.len());
        for (at, key) in bound.join_keys.iter().enumerate() {
            let joined: Vec<Option<&ByteRecord>> = found_rows.iter().map(Option::as_deref).collect();
            let frame = RowFrame { scope: self.scope, row, number, joined: &joined, lets: &[] };
            let Some(key) = key else {
                found_rows.push(None);
                continue;
            };
            let name = key_text(key, &frame, clock).map_err(|problem| wrong("join", problem))?;
            let found = match name {
                Some(name) => self.scope.joined[at].rows.get(&name)?,
                None => None,
            };
            let spec = bound.mapping.tables[at + 1].join.as_ref();
            if found.is_none() && spec.is_some_and(|join| !join.keep) {
                let reason = format!("no row in table '{}'", self.scope.joined[at].name);
                self.report.drop_row(&reason, row.line, row.file);
                return Ok(());
            }
            found_rows.push(found);
        }
        let joined: Vec<Option<&ByteRecord>> = found_rows.iter().map(Option::as_deref).collect();
        let mut lets = Vec::with_capacity(bound.lets.len());
        for (name, formula) in &bound.lets {
            let frame = RowFrame { scope: self.scope, row, number, joined: &joined, lets: &lets };
            let value = evaluate(formula, &frame, clock).map_err(|problem| wrong(name, problem))?;
            lets.push(value);
        }
        let frame = RowFrame { scope: self.scope, row, number, joined: &joined, lets: &lets };
        for (formula, reason) in &bound.keep {
            let value = evaluate(formula, &frame, clock).and_then(|value| value.truth());
            if value.map_err(|problem| wrong("keep", problem))? != Some(true) {
                self.report.drop_row(reason, row.line, row.file);
                return Ok(());
            }
        }
        let mut draft = match bound.conversion.convert(&frame) {
            Ok(draft) => draft,
            Err(Refusal::Missing(reason)) => {
                self.report.drop_row(&reason, row.line, row.file);
                return Ok(());
            }
            Err(Refusal::Wrong(column, problem)) => return Err(wrong(&column, problem)),
        };
        let is_met = |formula| evaluate(formula, &frame, clock).and_then(|value| value.truth()) == Ok(Some(true));
        let warnings = bound.warn.iter().filter(|(formula, _)| is_met(formula)).map(|(_, at)| *at);
        draft.facts = self.account.facts(row, &joined, warnings);
        draft.order = draft.submit;
        if let Some(BoundAttempts { key, order, .. }) = &bound.attempts {
            if let Some(order) = order {
                let time = evaluate(order, &frame, clock).and_then(|value| value.number(clock));
                let time = time.map_err(|problem| wrong("attempts.order", problem))?;
                let time = time.and_then(|time| time.times(Fraction::from(1_000_000)));
                draft.order = time.and_then(|time| i64::try_from(time.round()).ok()).unwrap_or(draft.submit);
            }
            let key = key_text(key, &frame, clock).map_err(|problem| wrong("attempts.key", problem))?;
            if let Some(attempts) = &mut self.attempts {
                return attempts.add(key.as_deref(), number, &draft);
            }
        }
        self.keep(number, &draft)
    }

    /// Counts a draft that is kept and adds it.
    fn keep(&mut self, row: u64, draft: &SetDraft) -> Result<()> {
        self.account.count(draft.facts);
        self.kept += 1;
        self.report.row = row;
        self.drafts.push(row, draft, &mut self.report)
    }
}
