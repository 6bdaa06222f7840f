//! Inputs that a model reads as they are: copies of checked files of the data folder.

use std::path::Path;

use super::{DataFolder, Parameters, TextSheet, write};
use plimsoll_base::error::{Error, Result};

/// The column of the spot trace with the number of instances of a job.
pub const INSTANCES: &str = "worker_num";

/// Copies a checked file.
pub fn copy(data: &DataFolder, from: &str, to: &Path) -> Result<()> {
    let path = data.path(from)?;
    std::fs::copy(&path, to).map(drop).map_err(|error| Error::output(to, error))
}

/// Copies the list of jobs `cases` of Hydra.
pub fn hydra(data: &DataFolder, parameters: &Parameters, into: &Path) -> Result<()> {
    copy(data, &format!("published/hydra/{}.csv", parameters.text("cases")?), &into.join("cases.csv"))
}

/// Copies the tables of the spot trace of 2026 as `nodes.csv` and `jobs.csv`, and writes `trace.csv` and `machines.csv` for the engine: the jobs
/// and the GPUs of the model `gpu_model` (A10). Each organization is a user, each instance a task; spot jobs have priority 9. Rows without a
/// number of instances are excluded.
pub fn spot(data: &DataFolder, parameters: &Parameters, into: &Path) -> Result<()> {
    let (nodes, jobs) = ("published/spot-2026/node_info_df.csv", "published/spot-2026/job_info_df.csv");
    copy(data, nodes, &into.join("nodes.csv"))?;
    copy(data, jobs, &into.join("jobs.csv"))?;
    let model = parameters.text_or("gpu_model", "A10");
    let of_model = |sheet: &TextSheet, row: usize| sheet.text(row, "gpu_model").is_ok_and(|found| found == model);
    let nodes = data.sheet(nodes)?;
    let mut gpus = 0;
    for row in (0..nodes.rows()).filter(|row| of_model(&nodes, *row)) {
        gpus += nodes.number::<u64>(row, "gpu_capacity_num")?;
    }
    write(&into.join("machines.csv"), ["name,gpu".to_owned(), format!("pool,{gpus}")])?;
    let jobs = data.sheet(jobs)?;
    let mut rows = Vec::new();
    for row in (0..jobs.rows()).filter(|row| of_model(&jobs, *row)) {
        let field = |column: &str| jobs.text(row, column);
        if field(INSTANCES)?.is_empty() {
            continue;
        }
        let (submit, duration, instances) = (
            jobs.number::<f64>(row, "submit_time")?,
            jobs.number::<f64>(row, "duration")?,
            jobs.number::<f64>(row, INSTANCES)?,
        );
        let priority = if field("job_type")? == "HP" { 0 } else { 9 };
        let (user, gpus) = (field("organization")?, field("gpu_request")?);
        rows.push((submit as u64, format!("{row},{user},{submit},{duration},{instances},{gpus},{priority}")));
    }
    rows.sort_by_key(|(submit, _)| *submit);
    let header = "job,user,submit_s,duration_s,tasks,gpu,priority".to_owned();
    write(&into.join("trace.csv"), std::iter::once(header).chain(rows.into_iter().map(|(_, row)| row)))
}
