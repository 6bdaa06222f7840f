//! A format to begin with: a row a job of job, submit seconds and seconds, separated by semicolons.
//!
//! Source: none; copy this file to `crates/sim/src/workload/formats` and add it to the list there.

use super::detect::are_numbers;
use super::{FormatRow, dim};
use crate::workload::{Input, TaskSet, Workload};
use plimsoll_base::error::Result;
use plimsoll_base::rows::{Column, Row};
use plimsoll_base::units::{MAX_DIMS, Resources, Round, Span, Time, US_PER_S, Unit, UserId};

pub(super) static ROW: FormatRow = FormatRow {
    about: "A template: jobs of one task",
    layout: "3 fields, separated by semicolons",
    source: "",
    example: "a;0;20\nb;1;30\n",
    columns: &[],
    recognises: |head| {
        let fields = head.fields(b';');
        fields.len() == 3 && are_numbers(&fields[1..])
    },
    read: |input, options, _| read(input, &options.template, options.strict),
};

/// The values that the format lacks.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TemplateOptions {
    /// Milli-cores of a task beyond the first one.
    pub more_milli: u64,
}

const JOB: Column<'_> = Column::new(0, "job");
const SUBMIT: Column<'_> = Column::new(1, "submit");
const DURATION: Column<'_> = Column::new(2, "duration");

fn read(input: &Input, options: &TemplateOptions, strict: bool) -> Result<Workload> {
    let mut workload = Workload { dims: vec![dim("cpu", Unit::Milli)], ..Workload::default() };
    let bytes = input.head(usize::MAX >> 1)?;
    for (line, text) in (1..).zip(bytes.split(|&byte| byte == b'\n')) {
        let record: csv::ByteRecord = text.trim_ascii().split(|&byte| byte == b';').collect();
        if record.iter().all(<[u8]>::is_empty) || text == b"\xef\xbb\xbf" {
            continue;
        }
        let row = Row { path: input.path(), line, record: &record };
        let set = set(&row, options, &mut workload);
        workload.quality.count_row(set, strict)?;
    }
    Ok(workload)
}

fn set(row: &Row<'_>, options: &TemplateOptions, workload: &mut Workload) -> Result<()> {
    row.expect_fields(3..=3, "3: job, submit and duration")?;
    let (name, seconds) = (row.name(JOB)?, "seconds from 0");
    let submit = Time(row.number(SUBMIT, US_PER_S, Round::Nearest, seconds)?);
    let duration = Span(row.number(DURATION, US_PER_S, Round::Nearest, seconds)?);
    let mut demand = [0; MAX_DIMS];
    demand[0] = 1000 + options.more_milli;
    let (job, user) = (workload.job(name), UserId(workload.users.intern(name)));
    let demand = Resources(demand);
    workload.sets.push(TaskSet { job, user, submit, duration, demand, tasks: 1, ..TaskSet::default() });
    Ok(())
}
