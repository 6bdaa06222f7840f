//! Converts the values of a row to a draft of a task set: units, rounding, missing values.

use std::borrow::Cow;

use plimsoll_base::units::{Dim, MAX_DIMS, Resources, Rounding, Span, TIME_MAX_US};
use plimsoll_sim::workload::TaskSet;

use crate::bind::{BoundFormula, RowFrame};
use crate::clock::Clock;
use crate::expr::evaluate;
use crate::number::Fraction;
use crate::spill::{Decoder, Encoder};
use crate::target::Target;
use crate::value::{Value, short};

/// A task set before its origin, its job and its stages are final.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SetDraft {
    /// The set without its row, its submit time, its deadline and its names.
    pub set: TaskSet,
    /// The job.
    pub job: String,
    /// The user; `None` if every job is a user of its own.
    pub user: Option<String>,
    /// The stage.
    pub stage: Option<String>,
    /// The stages that the set waits for, or the keys of their rows.
    pub after: Vec<String>,
    /// The key that other rows have in their dependencies.
    pub key: Option<String>,
    /// The label.
    pub label: Option<String>,
    /// The location.
    pub location: Option<String>,
    /// The preceding job and the think time.
    pub preceding: Option<(String, u64)>,
    /// The submit time in microseconds since 1970 or since the log's origin.
    pub submit: i64,
    /// The deadline, likewise.
    pub deadline: Option<i64>,
    /// The line.
    pub line: u64,
    /// The index of the file among those of the main table.
    pub file: u32,
    /// The facts that are counted if the row is kept.
    pub facts: u64,
    /// The time that orders attempts of one execution, in microseconds.
    pub order: i64,
}

impl SetDraft {
    /// Encodes the draft. `dims` is the number of resources.
    pub fn encode(&self, dims: usize, into: &mut Encoder) {
        let SetDraft { set, job, user, stage, after, key, label, location, preceding, .. } = self;
        let names = [user, stage, key, label, location];
        let bit = |is_set: bool, at: u64| u64::from(is_set) << at;
        let flags = bit(set.gang, 0) | bit(set.stable, 1) | bit(self.deadline.is_some(), 2);
        let flags = flags | bit(preceding.is_some(), 3) | bit(!after.is_empty(), 4);
        let flags = names.iter().zip(5..).fold(flags, |flags, (name, at)| flags | bit(name.is_some(), at));
        into.integer(flags)
            .text(Some(job))
            .integer(set.duration.0)
            .integer(set.tasks.into())
            .integer(set.priority.into());
        set.demand.0[..dims].iter().for_each(|amount| _ = into.integer(*amount));
        into.optional(set.estimate.map(|estimate| estimate.0));
        into.signed(self.submit).signed(self.order.wrapping_sub(self.submit));
        into.integer(self.line).integer(self.file.into()).integer(self.facts);
        names.iter().filter_map(|name| name.as_deref()).for_each(|name| _ = into.text(Some(name)));
        self.deadline.iter().for_each(|time| _ = into.signed(*time));
        preceding.iter().for_each(|(job, think)| _ = into.text(Some(job)).integer(*think));
        if !after.is_empty() {
            into.integer(after.len() as u64);
            after.iter().for_each(|name| _ = into.text(Some(name)));
        }
    }

    /// Decodes a draft. Errors: the bytes are damaged.
    pub fn decode(dims: usize, bytes: &[u8]) -> plimsoll_base::error::Result<SetDraft> {
        let mut from = Decoder::new(bytes);
        let mut draft = SetDraft::default();
        let text = |from: &mut Decoder<'_>| Ok(from.text()?.unwrap_or_default().to_owned());
        let flags = from.integer()?;
        let has = |at: u64| flags >> at & 1 == 1;
        draft.job = text(&mut from)?;
        (draft.set.gang, draft.set.stable) = (has(0), has(1));
        draft.set.duration = Span(from.integer()?);
        (draft.set.tasks, draft.set.priority) = (from.integer()? as u32, from.integer()? as u8);
        for amount in &mut draft.set.demand.0[..dims] {
            *amount = from.integer()?;
        }
        draft.set.estimate = from.optional()?.map(Span);
        draft.submit = from.signed()?;
        draft.order = draft.submit.wrapping_add(from.signed()?);
        (draft.line, draft.file, draft.facts) = (from.integer()?, from.integer()? as u32, from.integer()?);
        let SetDraft { user, stage, key, label, location, .. } = &mut draft;
        for (name, at) in [user, stage, key, label, location].into_iter().zip(5..) {
            if has(at) {
                *name = Some(text(&mut from)?);
            }
        }
        if has(2) {
            draft.deadline = Some(from.signed()?);
        }
        if has(3) {
            draft.preceding = Some((text(&mut from)?, from.integer()?));
        }
        for _ in 0..if has(4) { from.integer()? } else { 0 } {
            draft.after.push(text(&mut from)?);
        }
        Ok(draft)
    }
}

/// The rule of a bound column for rows without a value.
#[derive(Clone, Debug)]
pub enum BoundMissing {
    /// The row is dropped.
    Drop,
    /// The column is empty.
    Unknown,
    /// The column has this value.
    Constant(BoundFormula),
}

/// A bound column of the trace.
#[derive(Clone, Debug)]
pub struct BoundOutput {
    /// The column.
    pub target: Target,
    /// The name in the mapping.
    pub name: String,
    /// The value.
    pub formula: BoundFormula,
    /// The rule for rows without a value.
    pub missing: BoundMissing,
    /// The index of a resource among the dimensions.
    pub dim: usize,
}

/// The reason why a row is not a task set.
pub enum Refusal {
    /// A missing value: the reason for which the row is dropped.
    Missing(String),
    /// An impossible value: the column and the problem.
    Wrong(String, String),
}

/// The settings of a conversion.
pub struct Conversion<'m> {
    /// The columns.
    pub outputs: Vec<BoundOutput>,
    /// The resources.
    pub dims: Vec<Dim>,
    /// The rules for times.
    pub clock: &'m Clock,
    /// The key of a row for dependencies; by default its stage.
    pub after_key: Option<BoundFormula>,
    /// Whether demands are those of all tasks of a row.
    pub demand_of_all: bool,
    /// Whether every job is a user of its own.
    pub users_are_jobs: bool,
}

const SECONDS: &str = "a time from 0 to 10^12 s (31,700 years)";

impl Conversion<'_> {
    /// Converts a row. `number` is its number, from 1.
    pub fn convert<'a>(&'a self, frame: &RowFrame<'a, '_>) -> Result<SetDraft, Refusal> {
        let mut draft = SetDraft { line: frame.row.line, file: frame.row.file as u32, ..SetDraft::default() };
        draft.set.tasks = 1;
        let mut amounts: [Option<Fraction>; MAX_DIMS] = [None; MAX_DIMS];
        let (mut job, mut user, mut after_job, mut think) = (None, None, None, None);
        for output in &self.outputs {
            let wrong = |problem: String| Refusal::Wrong(output.name.clone(), problem);
            let mut value = evaluate(&output.formula, frame, self.clock).map_err(wrong)?;
            if value.is_missing() {
                value = match &output.missing {
                    BoundMissing::Drop => return Err(Refusal::Missing(format!("no {}", output.name))),
                    BoundMissing::Unknown => continue,
                    BoundMissing::Constant(formula) => evaluate(formula, frame, self.clock).map_err(wrong)?,
                };
                if value.is_missing() {
                    continue;
                }
            }
            let number = |expected: &str| match value.number(self.clock) {
                Ok(Some(number)) => Ok(number),
                Ok(None) => Err(wrong(format!("is empty; expected {expected}"))),
                Err(problem) => Err(wrong(format!("{problem}; expected {expected}"))),
            };
            let scaled = |number: Fraction, scale: u64, rounding: Rounding, expected: &str| {
                number
                    .scaled(scale, rounding)
                    .map_err(|problem| wrong(format!("{number} {problem}; expected {expected}")))
            };
            let whole = |expected: &str, least: i128, most: i128| {
                let number = number(expected)?;
                let whole = number.integer().filter(|whole| (least..=most).contains(whole));
                whole.ok_or_else(|| wrong(format!("{number} is not accepted; expected {expected}")))
            };
            let instant = |scale: u64| -> Result<i64, Refusal> {
                let number = number("a time")?;
                let product = number.times(Fraction::from(scale as i64)).map(Fraction::round);
                let instant = product.and_then(|product| i64::try_from(product).ok());
                let within = instant.filter(|instant| instant.unsigned_abs() <= TIME_MAX_US);
                within.ok_or_else(|| wrong(format!("{number} is too large; expected {SECONDS}")))
            };
            let span = |scale: u64| scaled(number(SECONDS)?, scale, Rounding::Nearest, SECONDS);
            let truth = || value.truth().map(|truth| truth.unwrap_or(false)).map_err(wrong);
            match &output.target {
                Target::Job => job = Some(name(value, "a job").map_err(wrong)?),
                Target::User => user = Some(name(value, "a user").map_err(wrong)?),
                Target::Submit(scale) => draft.submit = instant(*scale)?,
                Target::Duration(scale) => draft.set.duration = Span(span(*scale)?),
                Target::Tasks => {
                    draft.set.tasks = whole("a whole number of tasks from 1 to 4294967295", 1, u32::MAX.into())? as u32;
                }
                Target::Stage => draft.stage = Some(plain(value, "a stage").map_err(wrong)?.into_owned()),
                Target::After => {
                    let text = value.into_text().unwrap_or_default();
                    let stages = text.split(';').map(str::trim).filter(|stage| !stage.is_empty());
                    draft.after = stages.map(str::to_owned).collect();
                }
                Target::Priority => draft.set.priority = whole("a priority from 0 (most urgent) to 9", 0, 9)? as u8,
                Target::Gang => draft.set.gang = truth()?,
                Target::Stable => draft.set.stable = truth()?,
                Target::Label => draft.label = Some(plain(value, "a label").map_err(wrong)?.into_owned()),
                Target::Location => {
                    draft.location = Some(plain(value, "a location").map_err(wrong)?.into_owned());
                }
                Target::Estimate(scale) => draft.set.estimate = Some(Span(span(*scale)?)),
                Target::Deadline(scale) => draft.deadline = Some(instant(*scale)?),
                Target::AfterJob => after_job = Some(name(value, "a job").map_err(wrong)?),
                Target::Think(scale) => think = Some(span(*scale)?),
                Target::Resource(..) => amounts[output.dim] = Some(number("an amount such as 1.5")?),
            }
        }
        if let Some(key) = &self.after_key {
            let key =
                evaluate(key, frame, self.clock).map_err(|problem| Refusal::Wrong("after_key".into(), problem))?;
            draft.key = key.into_text().map(|key| key.trim().to_owned());
        }
        draft.set.demand = self.demand(amounts, draft.set.tasks)?;
        let job = job.unwrap_or_else(|| format!("r{}", frame.number).into());
        draft.job = job.into_owned();
        draft.user = (!self.users_are_jobs).then(|| user.map_or_else(|| draft.job.clone(), Cow::into_owned));
        draft.preceding = after_job.map(|job| (job.into_owned(), think.unwrap_or(0)));
        Ok(draft)
    }

    fn demand(&self, amounts: [Option<Fraction>; MAX_DIMS], tasks: u32) -> Result<Resources, Refusal> {
        let mut demand = Resources::ZERO;
        for output in &self.outputs {
            let Target::Resource(_, scale) = output.target else { continue };
            let Some(amount) = amounts[output.dim] else { continue };
            let wrong = |problem: String| Refusal::Wrong(output.name.clone(), problem);
            let each = match self.demand_of_all {
                false => Some(amount),
                true => amount.over(Fraction::from(i64::from(tasks))),
            };
            let base = each.map(|each| each.scaled(scale, Rounding::Up));
            demand[output.dim] = match base {
                Some(Ok(base)) => base,
                Some(Err(problem)) => return Err(wrong(format!("{amount} {problem}; expected an amount from 0"))),
                None => return Err(wrong("is too large".to_owned())),
            };
        }
        Ok(demand)
    }
}

/// Returns a name. Errors: it is empty or has control characters.
fn name<'v>(value: Value<'v>, expected: &str) -> Result<Cow<'v, str>, String> {
    let text = value.into_text().unwrap_or_default();
    if text.trim().is_empty() || text.contains(|c: char| c.is_control()) {
        return Err(format!("'{}' is not accepted; expected the name of {expected}", short(&text).escape_debug()));
    }
    Ok(text)
}

/// Returns a name without `;`, which separates the names of a list.
fn plain<'v>(value: Value<'v>, expected: &str) -> Result<Cow<'v, str>, String> {
    let text = name(value, expected)?;
    if text.contains(';') {
        return Err(format!("'{}' has ';', which separates names; expected the name of {expected}", short(&text)));
    }
    Ok(match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.trim()),
        Cow::Owned(text) => Cow::Owned(text.trim().to_owned()),
    })
}
