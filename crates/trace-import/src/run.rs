//! Imports a log by a mapping.

use std::collections::HashMap;

use plimsoll_base::error::{Error, Result};
use plimsoll_base::units::MAX_DIMS;
use plimsoll_sim::workload::formats::Tenants;
use plimsoll_sim::workload::{Input, Quality, Workload};

use crate::account::Account;
use crate::assemble::{Assembly, assemble};
use crate::bind::{BoundFormula, ColumnScope, JoinedTable, RowFrame, key_text, reads_absent};
use crate::clock::{Clock, RepeatedHour};
use crate::draft::{BoundMissing, BoundOutput, Conversion, DraftNames, Refusal, SetDraft};
use crate::expr::evaluate;
use crate::fold;
use crate::input::{LogRow, Rows};
use crate::mapping::{AttemptRule, Mapping, MissingRule, OutputColumn};
use crate::number::Fraction;
use crate::tables::{Chain, Interrupt, assign, read_joined};
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
    let own_users = mapping.outputs.iter().any(|output| output.target == Target::User);
    let tenants = options.tenants.unwrap_or(if own_users { Tenants::Column } else { Tenants::Job });
    if tenants == Tenants::Qos || (tenants == Tenants::Column && !own_users) {
        let expected = "job, one, hash:K, round-robin:K or zipf:K:S, or column if [trace] of the mapping has a user";
        return Err(Error::plan("tenants", format!("'{tenants}'"), expected));
    }
    let mut quality = Quality { format: mapping.name.clone(), ..Quality::default() };
    let mut assigned = assign(mapping, inputs)?;
    let mut joined = Vec::new();
    for (table, inputs) in mapping.tables.iter().zip(assigned.drain(1..)).map(|(_, inputs)| inputs).enumerate() {
        joined.push(read_joined(&mapping.tables[table + 1], inputs, interrupt, &mapping.clock, &mut quality)?);
    }
    let main = &mapping.tables[0];
    let several = assigned[0].len() > 1;
    let mut chain = Chain::open(main, assigned.swap_remove(0), interrupt)?;
    if !chain.detected.is_empty() {
        quality.assumptions.push(("input".into(), chain.detected.join(", ")));
    }
    let mut scope = ColumnScope {
        name: &main.name,
        columns: chain.columns.clone(),
        missing: main.missing.clone(),
        joined,
        lets: Vec::new(),
        read: Default::default(),
        path: chain.path.clone(),
    };
    let folded = match &mapping.fold {
        None => None,
        Some(spec) => {
            let folded = fold::read(spec, &scope, &mut chain, &mapping.clock)?;
            scope.columns.extend(fold::COLUMNS.map(str::to_owned));
            quality.assumptions.push(("fold".into(), format!("{} events to one row per key", folded.events)));
            if folded.unusable.0 > 0 {
                let (events, line) = folded.unusable;
                quality.warnings.push(format!("{events} events have no key, time or kind (first line {line})"));
            }
            Some(folded)
        }
    };
    let bound = Bound::new(mapping, &mut scope, tenants)?;
    let mut run = Run {
        bound: &bound,
        scope: &scope,
        quality,
        account: Account::new(mapping, &scope)?,
        names: DraftNames::default(),
        drafts: Vec::new(),
        attempts: HashMap::new(),
        strict: options.strict,
    };
    let late = match folded {
        Some(mut folded) => {
            run.rows(&mut folded)?;
            Vec::new()
        }
        None => {
            run.chain(&mut chain, several)?;
            chain.late_columns()
        }
    };
    let Run { mut quality, account, names, drafts, .. } = run;
    account.report(&scope, &late, &mut quality);
    report_times(&mapping.clock, &mut quality);
    if !mapping.outputs.iter().any(|output| output.target == Target::Job) {
        quality.assumptions.push(("jobs".into(), "one for each row, named by the row's number".into()));
    }
    check_rows(&scope, mapping, &quality, drafts.len())?;
    let origin = mapping.origin.and_then(|origin| i64::try_from(origin.times(Fraction::from(1_000_000))?.round()).ok());
    let assembly = Assembly { dims: bound.conversion.dims.clone(), origin, merge: mapping.merge };
    let workload = assemble(assembly, drafts, names, quality);
    if workload.sets.is_empty() {
        return Err(Error::trace(&scope.path, 0, "", "has no row after the origin"));
    }
    Ok(tenants.apply(workload))
}

/// Checks that most rows could be read and that some are kept. Errors: the first problem, or the reasons.
fn check_rows(scope: &ColumnScope<'_>, mapping: &Mapping, quality: &Quality, kept: usize) -> Result<()> {
    let path = &scope.path;
    if quality.rows_in == 0 {
        return Err(Error::trace(path, 0, "", format!("has no rows; expected {}", mapping.about_or_name())));
    }
    if let (unusable, Some((column, line, problem))) = quality.unusable()
        && unusable > quality.rows_in / 2
    {
        let column = if column == "row" { "" } else { column };
        let problem = format!(
            "{problem} ({unusable} of {} rows cannot be read by the mapping {})",
            quality.rows_in, mapping.name
        );
        return Err(Error::trace(path, line, column, problem));
    }
    if kept == 0 {
        let reasons: Vec<_> = quality.dropped.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
        let problem = format!("has no usable row among {}: {}", quality.rows_in, reasons.join(", "));
        return Err(Error::trace(path, 0, "", problem));
    }
    Ok(())
}

/// Reports times without an offset, in repeated hours and in skipped hours.
fn report_times(clock: &Clock, quality: &mut Quality) {
    let (local, repeats, skipped) = (clock.local.take(), clock.repeats.take(), clock.skipped.take());
    if local > 0 {
        let zone =
            clock.zone_name.as_deref().unwrap_or("UTC (no zone is stated; time.zone = \"AREA/CITY\" changes it)");
        quality.assumptions.push(("time.zone".into(), zone.to_owned()));
    }
    if repeats > 0 {
        let rule = if clock.repeated == RepeatedHour::First { "first" } else { "second" };
        quality.assumptions.push(("time.repeated".into(), format!("{rule}; {repeats} times are in a repeated hour")));
    }
    if skipped > 0 {
        quality
            .warnings
            .push(format!("{skipped} times are in an hour that does not occur, because clocks are set forward"));
    }
}

/// The expressions of a mapping after binding.
pub struct Bound<'m> {
    mapping: &'m Mapping,
    join_keys: Vec<Option<BoundFormula>>,
    lets: Vec<(String, BoundFormula)>,
    keep: Vec<(BoundFormula, &'m str)>,
    warn: Vec<(BoundFormula, &'m str)>,
    attempts: Option<(BoundFormula, AttemptRule)>,
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
        let mut conditions = [Vec::new(), Vec::new()];
        for (list, (key, bound)) in
            [&mapping.keep, &mapping.warn].into_iter().zip(["keep", "warn"].into_iter().zip(&mut conditions))
        {
            for (formula, reason) in list {
                bound.push((scope.bind(key, formula)?, reason.as_str()));
            }
        }
        let [keep, mut warn] = conditions;
        warn.retain(|(formula, _)| !reads_absent(formula));
        let mut dims = Vec::new();
        let mut outputs = Vec::new();
        for output in &mapping.outputs {
            outputs.push(bind_output(output, scope, &mut dims)?);
        }
        let attempts =
            mapping.attempts.as_ref().map(|(key, rule)| Ok((scope.bind("attempts.key", key)?, *rule))).transpose()?;
        let users_are_jobs = !matches!(tenants, Tenants::Column);
        let (clock, demand_of_all) = (&mapping.clock, mapping.demand_of_all);
        let conversion = Conversion { outputs, dims, clock, demand_of_all, users_are_jobs };
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
    quality: Quality,
    account: Account,
    names: DraftNames,
    drafts: Vec<SetDraft>,
    /// The draft of each key of attempts.
    attempts: HashMap<String, usize>,
    strict: bool,
}

impl Run<'_> {
    /// Reads the rows of the log. With `several` files, the first example of each reason names its file.
    fn chain(&mut self, chain: &mut Chain, several: bool) -> Result<()> {
        let mut row = LogRow::default();
        let mut number = 0;
        loop {
            let read = chain.next(&mut row);
            if !self.step(read, &row, &mut number)? {
                return Ok(());
            }
            if several {
                let name = crate::bind::file_name(&chain.path);
                for (_, problem) in self.quality.first_dropped.values_mut().filter(|(line, _)| *line == row.line) {
                    if problem.is_empty() {
                        *problem = format!("of {name}");
                    }
                }
            }
        }
    }

    /// Reads the rows of a fold.
    fn rows(&mut self, rows: &mut dyn Rows) -> Result<()> {
        let mut row = LogRow::default();
        let mut number = 0;
        loop {
            let read = rows.next(&mut row);
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
        self.quality.count_row(result, self.strict)?;
        Ok(true)
    }

    fn row(&mut self, row: &LogRow, number: u64) -> Result<()> {
        let bound = self.bound;
        let clock = bound.conversion.clock;
        let path = &self.scope.path;
        let wrong = |column: &str, problem: String| Error::trace(path, row.line, column, problem);
        let mut joined = Vec::with_capacity(bound.join_keys.len());
        for (at, key) in bound.join_keys.iter().enumerate() {
            let frame = RowFrame { scope: self.scope, row, number, joined: &joined, lets: &[] };
            let Some(key) = key else {
                joined.push(None);
                continue;
            };
            let name = key_text(key, &frame, clock).map_err(|problem| wrong("join", problem))?;
            let found = name.and_then(|name| self.scope.joined[at].rows.get(&name));
            let spec = bound.mapping.tables[at + 1].join.as_ref();
            if found.is_none() && spec.is_some_and(|join| !join.keep) {
                let reason = format!("no row in table '{}'", self.scope.joined[at].name);
                self.quality.drop_row(&reason, row.line);
                return Ok(());
            }
            joined.push(found);
        }
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
                self.quality.drop_row(reason, row.line);
                return Ok(());
            }
        }
        let draft = match bound.conversion.convert(&frame, &mut self.names) {
            Ok(draft) => draft,
            Err(Refusal::Missing(reason)) => {
                self.quality.drop_row(&reason, row.line);
                return Ok(());
            }
            Err(Refusal::Wrong(column, problem)) => return Err(wrong(&column, problem)),
        };
        if let Some((key, rule)) = &bound.attempts {
            let key = key_text(key, &frame, clock).map_err(|problem| wrong("attempts", problem))?;
            if let Some(key) = key {
                let next = self.drafts.len();
                let at = *self.attempts.entry(key).or_insert(next);
                if at < next {
                    self.merge_attempt(at, draft, *rule);
                    return Ok(());
                }
            }
        }
        self.drafts.push(draft);
        self.account.count(row);
        for (at, (formula, _)) in bound.warn.iter().enumerate() {
            if evaluate(formula, &frame, clock).and_then(|value| value.truth()) == Ok(Some(true)) {
                self.account.warn(at);
            }
        }
        Ok(())
    }

    fn merge_attempt(&mut self, at: usize, draft: SetDraft, rule: AttemptRule) {
        let known = &mut self.drafts[at];
        match rule {
            AttemptRule::First => self.quality.drop_row("a later attempt of the same execution", draft.line),
            AttemptRule::Last | AttemptRule::Sum => {
                self.quality.drop_row("an earlier attempt of the same execution", known.line);
                let submit = known.submit.min(draft.submit);
                let before = known.set.duration;
                *known = SetDraft { submit, ..draft };
                if rule == AttemptRule::Sum {
                    known.set.duration.0 = known.set.duration.0.saturating_add(before.0);
                }
            }
        }
    }
}
