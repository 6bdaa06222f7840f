//! The inputs of the simulator of PAI (Weng et al., NSDI 2022): jobs that arrive in batches on one pool of GPUs and cores.
//!
//! Parameters: `file` below the data folder, `rate` (jobs of a batch), `gpus`, `key` (the column that orders the jobs), `sample` (a file
//! of row numbers, for a part of the jobs). The order by a key is that of the estimates: a million times the key in seconds, plus the job's
//! id, in microseconds; so that ties go to the lower id.

use std::path::Path;

use super::sheet::from_milli;
use super::{DataFolder, Parameters, TextSheet, write};
use plimsoll_base::error::{Error, Result};

/// The time between two batches in seconds.
const BATCH_S: usize = 60;

/// Cores per GPU of the cluster, in hundredths.
const CORES_PER_GPU: f64 = 23.22;

fn integer(text: &str, name: &str) -> Result<u64> {
    text.parse().map_err(|_| Error::plan(name, format!("'{text}'"), "a whole number"))
}

/// Returns an amount in thousandths, rounded to hundredths; an empty field is 0.
fn hundredths(sheet: &TextSheet, row: usize, column: &str) -> Result<u64> {
    if sheet.text(row, column)?.trim().is_empty() {
        return Ok(0);
    }
    Ok((sheet.number::<f64>(row, column)? * 100.0).round_ties_even() as u64 * 10)
}

/// Writes `trace.csv` and `machines.csv`.
pub fn prepare(data: &DataFolder, parameters: &Parameters, into: &Path) -> Result<()> {
    let sheet = data.sheet(parameters.text("file")?)?;
    let rate = integer(parameters.text("rate")?, "rate")? as usize;
    let gpus = integer(parameters.text("gpus")?, "gpus")?;
    let cores = (CORES_PER_GPU * gpus as f64).round_ties_even() as u64;
    let key = parameters.text_or("key", "duration");
    let rows: Vec<usize> = match parameters.text_or("sample", "") {
        "" => (0..sheet.rows()).collect(),
        file => {
            let sample = data.sheet(file)?;
            (0..sample.rows()).map(|row| sample.number(row, "row")).collect::<Result<_>>()?
        }
    };
    let mut jobs: Vec<(u64, u64, usize)> = Vec::new();
    for &row in &rows {
        if row >= sheet.rows() {
            let problem = format!("the sample has row {row}; the file of jobs has {} rows", sheet.rows());
            return Err(Error::Mismatch { problem });
        }
        let submit = sheet.number::<f64>(row, "submit_time")?.round_ties_even() as u64;
        jobs.push((submit, sheet.number(row, "job_id")?, row));
    }
    jobs.sort_unstable();
    let mut arrivals: Vec<(usize, u64, usize)> =
        jobs.iter().enumerate().map(|(position, (_, id, row))| (BATCH_S * (position / rate), *id, *row)).collect();
    // Jobs of one batch are in the order of their ids, so that `fifo` serves them in this order.
    arrivals.sort_unstable();
    let mut lines = vec!["job,user,submit_s,duration_s,estimate_us,cpu,gpu".to_owned()];
    for (submit, id, row) in arrivals {
        let duration = (sheet.number::<f64>(row, "duration")? as u64).max(1);
        let ordered = if key == "duration" { duration as f64 } else { sheet.number::<f64>(row, key)? };
        let estimate = (ordered * 1e6).round() as u64 + id;
        let cpu = hundredths(&sheet, row, "num_cpu")?.min(cores * 1000);
        let gpu = hundredths(&sheet, row, "num_gpu")?.min(gpus * 1000);
        lines.push(format!("{id},u{id},{submit},{duration},{estimate},{},{}", from_milli(cpu), from_milli(gpu)));
    }
    write(&into.join("trace.csv"), lines)?;
    write(&into.join("machines.csv"), ["name,cpu,gpu".to_owned(), format!("cluster,{cores},{gpus}")])
}
