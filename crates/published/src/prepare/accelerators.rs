//! The inputs of Gavel, Shockwave and POP: copies of lists of jobs and of throughput tables.

use std::path::Path;

use super::{DataFolder, Parameters};
use plimsoll_base::error::{Error, Result};

/// Copies a checked file of the data folder.
fn copy(data: &DataFolder, from: &str, to: &Path) -> Result<()> {
    let path = data.path(from)?;
    std::fs::copy(&path, to).map(drop).map_err(|error| Error::output(to, error))
}

/// Copies the table of Gavel's simulations.
pub fn table(data: &DataFolder, _: &Parameters, into: &Path) -> Result<()> {
    copy(data, "published/gavel/throughputs_simulation.csv", &into.join("throughputs.csv"))
}

/// Copies the table of Gavel's simulations and the list of jobs `trace` of the seed.
pub fn gavel(data: &DataFolder, parameters: &Parameters, into: &Path) -> Result<()> {
    table(data, parameters, into)?;
    let trace = parameters.text("trace")?;
    let seed = parameters.seeds.first().ok_or_else(|| Error::plan("with", "no seed", "seed=N"))?;
    copy(data, &format!("published/gavel/trace_{trace}_seed{seed}.csv"), &into.join("jobs.csv"))
}

/// Copies the static list of hierarchical policies.
pub fn entities(data: &DataFolder, _: &Parameters, into: &Path) -> Result<()> {
    copy(data, "published/gavel/hierarchical_jobs.csv", &into.join("jobs.csv"))
}

/// Copies the throughput table of Shockwave and the list of jobs `trace`.
pub fn shockwave(data: &DataFolder, parameters: &Parameters, into: &Path) -> Result<()> {
    copy(data, "published/shockwave/throughputs.csv", &into.join("throughputs.csv"))?;
    let trace = parameters.text("trace")?;
    copy(data, &format!("published/shockwave/trace_{trace}.csv"), &into.join("jobs.csv"))
}
