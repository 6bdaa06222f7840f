//! A template for a format. Each row is a job with three fields, separated by commas: its name, its submission time and its duration in
//! seconds.
//!
//! Not modelled: all else. Source: none. Copy this file to `crates/sim/src/workload/formats` and add it to the list in `mod.rs`. See
//! `swf.rs` for a format with fields between blanks, with comments, and with users in a column. A format is recognised by its first line
//! that is not blank.

use super::detect::are_numbers;
use super::{FormatRow, FirstNames, dim};
use crate::workload::{Input, TaskSet, Workload};
use plimsoll_base::error::Result;
use plimsoll_base::rows::{InputColumn, InputRow, InputRows, Separator};
use plimsoll_base::units::{MAX_DIMS, Resources, Rounding, Span, Time, US_PER_S, Unit, UserId};

pub(super) static ROW: FormatRow = FormatRow {
    about: "A template: jobs of one task",
    layout: "3 fields, no header",
    source: "",
    example: "a,0,20\nb,1,30\n",
    columns: &[],
    recognises: |head| {
        let fields = head.fields(b',');
        fields.len() == 3 && are_numbers(&fields[1..])
    },
    read: |input, options, _| read(input, &options.template, options.strict),
};

/// The values that the format lacks.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TemplateOptions {
    /// Milli-cores of a task beyond the first 1000.
    pub more_milli: u64,
}

const JOB: InputColumn<'_> = InputColumn::new(0, "job");
const SUBMIT: InputColumn<'_> = InputColumn::new(1, "submit");
const DURATION: InputColumn<'_> = InputColumn::new(2, "duration");

fn read(input: &Input, options: &TemplateOptions, strict: bool) -> Result<Workload> {
    let mut workload = Workload { dims: vec![dim("cpu", Unit::Milli)], ..Workload::default() };
    let (mut rows, mut seen) = (InputRows::new(input.reader()?, input.path(), Separator::Comma), FirstNames::default());
    while let Some(row) = rows.read()? {
        let read = add(&row, options, &mut seen, &mut workload);
        workload.quality.count_row(read, strict)?;
    }
    Ok(workload)
}

fn add(row: &InputRow<'_>, options: &TemplateOptions, seen: &mut FirstNames, workload: &mut Workload) -> Result<()> {
    row.expect_fields(3..=3, "3: job, submit and duration")?;
    let (name, seconds) = (row.name(JOB)?, |column| row.number(column, US_PER_S, Rounding::Nearest, "seconds from 0"));
    let (submit, duration) = (Time(seconds(SUBMIT)?), Span(seconds(DURATION)?));
    seen.check(row, JOB, name)?;
    let mut demand = [0; MAX_DIMS];
    demand[0] = 1000 + options.more_milli;
    let (job, user) = (workload.job(name), UserId(workload.users.intern(name)));
    let demand = Resources(demand);
    workload.sets.push(TaskSet { job, user, submit, duration, demand, tasks: 1, ..TaskSet::default() });
    Ok(())
}
