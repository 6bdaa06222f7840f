//! The inputs of Gavel, Shockwave and POP: copies of lists of jobs and of throughput tables.

use std::path::Path;

use super::super::page::field as quoted;
use super::tables::copy;
use super::{DataFolder, Parameters, gavel_jobs, write};
use plimsoll_base::error::{Error, Result};

/// Copies the table of Gavel's simulations.
pub fn table(data: &DataFolder, _: &Parameters, into: &Path) -> Result<()> {
    copy(data, "published/gavel/throughputs_simulation.csv", &into.join("throughputs.csv"))
}

/// The number of jobs of a generated list, which is that of the stored ones.
const JOBS: usize = 10_000;

/// Copies the table of Gavel's simulations and the list of jobs `trace` of the seed. With `lists=generated` the list is drawn by the
/// generator of the authors, for any seed.
pub fn gavel(data: &DataFolder, parameters: &Parameters, into: &Path) -> Result<()> {
    table(data, parameters, into)?;
    let trace = parameters.text("trace")?;
    let seed = parameters.seeds.first().ok_or_else(|| Error::plan("with", "no seed", "seed=N"))?;
    if parameters.text_or("lists", "stored") == "generated" {
        let single = match trace {
            "single" => true,
            "multi" => false,
            other => return Err(Error::plan("trace", format!("'{other}'"), "single or multi")),
        };
        return write(&into.join("jobs.csv"), gavel_jobs::lines(*seed, JOBS, single));
    }
    copy(data, &format!("published/gavel/trace_{trace}_seed{seed}.csv"), &into.join("jobs.csv"))
}

/// Copies the static list of hierarchical policies.
pub fn entities(data: &DataFolder, _: &Parameters, into: &Path) -> Result<()> {
    copy(data, "published/gavel/hierarchical_jobs.csv", &into.join("jobs.csv"))
}

/// Copies the throughput table of Shockwave and the list of jobs `trace`. With `resample=jobs` the jobs are drawn from the list with
/// replacement, and arrive at the times of the list.
pub fn shockwave(data: &DataFolder, parameters: &Parameters, into: &Path) -> Result<()> {
    copy(data, "published/shockwave/throughputs.csv", &into.join("throughputs.csv"))?;
    let list = format!("published/shockwave/trace_{}.csv", parameters.text("trace")?);
    if parameters.text_or("resample", "") != "jobs" {
        return copy(data, &list, &into.join("jobs.csv"));
    }
    let sheet = data.sheet(&list)?;
    let seed = parameters.seeds.first().ok_or_else(|| Error::plan("with", "no seed", "seed=N"))?;
    let mut lines = vec![sheet.header().join(",")];
    for (row, drawn) in sheet.resampled(*seed).into_iter().enumerate() {
        let field = |column: &String| {
            let from = if ["job", "arrival_s"].contains(&column.as_str()) { row } else { drawn };
            sheet.text(from, column).map(quoted)
        };
        lines.push(sheet.header().iter().map(field).collect::<Result<Vec<_>>>()?.join(","));
    }
    write(&into.join("jobs.csv"), lines)
}
