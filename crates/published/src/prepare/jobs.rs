//! Jobs of a fixed number of GPUs: the clusters of ElasticFlow (Gu et al., ASPLOS 2023) and the traces of Muri (Zhao et al., SIGCOMM 2022).

use std::path::Path;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{DataFolder, Parameters, write};
use plimsoll_base::error::Result;

/// Writes `trace.csv` and `machines.csv`, and `jobs.csv` for the models. Every job is a user of its own, so that a job that does not fit blocks
/// no other. Parameters: `trace` and `gpus`; with `deadlines=drawn` each deadline is drawn again as the authors did: the submission plus whole
/// seconds of U(0.5, 1.5) times the duration.
pub fn elasticflow(data: &DataFolder, parameters: &Parameters, into: &Path) -> Result<()> {
    let sheet = data.sheet(&format!("published/elasticflow/{}.csv", parameters.text("trace")?))?;
    let mut lines = vec!["job,user,submit_s,duration_s,estimate_s,deadline_s,gpu".to_owned()];
    let mut jobs = vec!["job,gpus,submit_ms,iterations,iteration_ms,overhead_s,deadline_s".to_owned()];
    let drawn = parameters.text_or("deadlines", "stored") == "drawn";
    let mut rng = ChaCha8Rng::seed_from_u64(parameters.seeds.first().copied().unwrap_or_default());
    for row in 0..sheet.rows() {
        let field = |column: &str| sheet.number::<u64>(row, column);
        let (submit, duration) = (field("submit_s")?, field("duration_s")?);
        let (mut deadline, gpus) = (field("deadline_s")?, field("gpus")?);
        if drawn {
            deadline = submit + (rng.random_range(0.5..1.5) * duration as f64) as u64;
        }
        lines.push(format!("{row},u{row},{submit},{duration},{duration},{deadline},{gpus}"));
        jobs.push(format!("{row},{gpus},{},{duration},1000,0,{deadline}", submit * 1000));
    }
    write(&into.join("jobs.csv"), jobs)?;
    write(&into.join("trace.csv"), lines)?;
    write(&into.join("machines.csv"), ["name,gpu".to_owned(), format!("pool,{}", parameters.text("gpus")?)])
}

/// Writes `jobs.csv` for the models, and `trace.csv` with `machines.csv` for the engine. Parameters: `trace`, a file of the paper or with
/// `_pr` at the end the same jobs with all submissions at 0. With `resample=jobs` the jobs are drawn from the list with replacement, and
/// are submitted at the times of the list. The duration is iterations times 1.015 times the time of an iteration.
pub fn muri(data: &DataFolder, parameters: &Parameters, into: &Path) -> Result<()> {
    let trace = parameters.text("trace")?;
    let (file, at_zero) = trace.strip_suffix("_pr").map_or((trace, false), |file| (file, true));
    let sheet = data.sheet(&format!("published/muri/{file}.csv"))?;
    let mut jobs = vec!["job,gpus,submit_ms,iterations,iteration_ms,overhead_s".to_owned()];
    let mut rows: Vec<(u64, String)> = Vec::new();
    let resample = parameters.text_or("resample", "") == "jobs";
    let seed = parameters.seeds.first().copied().unwrap_or_default();
    let drawn: Vec<usize> = if resample { sheet.resampled(seed) } else { (0..sheet.rows()).collect() };
    for (of_time, row) in drawn.into_iter().enumerate() {
        let submit_ms = if at_zero { 0 } else { sheet.number::<u64>(of_time, "submit_ms")? };
        let (name, gpus) = (sheet.text(of_time, "job")?, sheet.number::<u32>(row, "gpus")?);
        let (iterations, each) = (sheet.number::<u64>(row, "iterations")?, sheet.number::<f64>(row, "iteration_ms")?);
        jobs.push(format!("{name},{gpus},{submit_ms},{iterations},{each},{}", sheet.text(row, "overhead_s")?));
        let duration_us = (iterations as f64 * each * 1015.0).round() as u64;
        rows.push((submit_ms, format!("{name},u{name},{submit_ms},{duration_us},{duration_us},{gpus}")));
    }
    write(&into.join("jobs.csv"), jobs)?;
    rows.sort_by_key(|(submit, _)| *submit);
    let header = "job,user,submit_ms,duration_us,estimate_us,gpu".to_owned();
    write(&into.join("trace.csv"), std::iter::once(header).chain(rows.into_iter().map(|(_, row)| row)))?;
    write(&into.join("machines.csv"), ["name,gpu".to_owned(), "pool,64".to_owned()])
}
