//! Inputs that a model reads as they are: copies of checked files of the data folder.

use std::path::Path;

use super::{DataFolder, Parameters};
use plimsoll_base::error::{Error, Result};

/// Copies a checked file.
pub fn copy(data: &DataFolder, from: &str, to: &Path) -> Result<()> {
    let path = data.path(from)?;
    std::fs::copy(&path, to).map(drop).map_err(|error| Error::output(to, error))
}

/// Copies the list of jobs `cases` of Hydra.
pub fn hydra(data: &DataFolder, parameters: &Parameters, into: &Path) -> Result<()> {
    copy(data, &format!("published/hydra/{}.csv", parameters.text("cases")?), &into.join("cases.csv"))
}

/// Copies the tables of the spot trace of 2026.
pub fn spot(data: &DataFolder, _: &Parameters, into: &Path) -> Result<()> {
    copy(data, "published/spot-2026/node_info_df.csv", &into.join("nodes.csv"))?;
    copy(data, "published/spot-2026/job_info_df.csv", &into.join("jobs.csv"))
}
