//! The allocation of a cluster as a list of jobs states it, without any schedule: demand over capacity at every instant.
//!
//! A job of demand d (GPUs of an instance times instances) occupies d GPUs of its model over [submission, submission + duration). The
//! allocation is the sum over jobs divided by the GPUs of the model. Question: `alibaba/clusterdata`, issue 260, on the trace of 2026.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use super::models::read_plan;
use super::outcome::RunOutcome;
use super::prepare::{INSTANCES, TextSheet};
use plimsoll_base::error::{Error, Result};

/// The plan.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OccupancyPlan {
    /// The name of the plan, for readers of the file.
    #[serde(rename = "name")]
    _name: String,
    /// The GPU model.
    gpu_model: String,
    /// The end of the window of observation in seconds.
    window_s: u64,
    /// The type of the jobs (`HP` or `Spot`); absent: all.
    job_type: Option<String>,
    /// Whether a job counts as one instance.
    #[serde(default)]
    one_instance: bool,
    /// Whether the demand of a job is rounded up to whole GPUs.
    #[serde(default)]
    whole_gpus: bool,
    /// Whether to exclude jobs that are submitted at 0, or that end at the end of the window or later.
    #[serde(default)]
    without_cut: bool,
    /// Whether the allocation is at most the capacity.
    #[serde(default)]
    at_most_capacity: bool,
}

/// A row of the list of jobs.
struct OccupyingJob {
    name: String,
    organization: String,
    kind: String,
    submit: u64,
    end: u64,
    /// Thousandths of a GPU.
    demand: u64,
}

/// Executes a plan on the prepared files `nodes.csv` and `jobs.csv`. Values, in per cent of the capacity of the model: the means
/// `to_last_submission`, `to_window` and `to_last_end`, the `largest` one, and the part of the time to the last submission with more than the
/// capacity, `time_above`. Further: `gpus`, `jobs`, `repeated_names` (rows with the name of an earlier row) and `alike_overlapping` (rows of
/// spot jobs that overlap an earlier one of equal organization and demand), `incomplete` (rows without a number of instances). Errors: an invalid plan, and those of the files.
pub fn run(path: &Path, set: &[String], folder: &Path) -> Result<RunOutcome> {
    let plan: OccupancyPlan = read_plan(path, set)?;
    let nodes = TextSheet::read(&folder.join("nodes.csv"))?;
    let mut gpus = 0;
    for row in 0..nodes.rows() {
        if nodes.text(row, "gpu_model")? == plan.gpu_model {
            gpus += nodes.number::<u64>(row, "gpu_capacity_num")?;
        }
    }
    if gpus == 0 {
        return Err(Error::Mismatch { problem: format!("no node has GPUs of the model {}", plan.gpu_model) });
    }
    let (jobs, incomplete) = read_jobs(&plan, &folder.join("jobs.csv"))?;
    let last_submission = jobs.iter().map(|job| job.submit).max().unwrap_or_default();
    let last_end = jobs.iter().map(|job| job.end).max().unwrap_or_default();
    let counted: Vec<&OccupyingJob> = jobs.iter().filter(|job| is_counted(&plan, job)).collect();
    let (steps, capacity) = (steps(&counted), gpus * 1000);
    let percent = |amount: u128, time: u64| 100.0 * amount as f64 / (capacity as f64 * time.max(1) as f64);
    let mean = |end: u64| {
        let limit = |demand: u64| if plan.at_most_capacity { demand.min(capacity) } else { demand };
        let parts = steps
            .iter()
            .map(|(from, to, demand)| u128::from(limit(*demand)) * u128::from((*to).min(end).saturating_sub(*from)));
        percent(parts.sum(), end)
    };
    let above = steps.iter().filter(|(.., demand)| *demand > capacity);
    let above: u64 = above.map(|(from, to, _)| (*to).min(last_submission).saturating_sub(*from)).sum();
    let largest = steps.iter().map(|(.., demand)| *demand).max().unwrap_or_default();
    let (repeated, alike) = doubles(&jobs);
    let values = [
        ("to_last_submission", mean(last_submission)),
        ("to_window", mean(plan.window_s)),
        ("to_last_end", mean(last_end)),
        ("largest", percent(largest.into(), 1)),
        ("time_above", 100.0 * above as f64 / last_submission.max(1) as f64),
        ("gpus", gpus as f64),
        ("jobs", counted.len() as f64),
        ("repeated_names", repeated as f64),
        ("alike_overlapping", alike as f64),
        ("incomplete", incomplete as f64),
    ];
    let values = values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    Ok(RunOutcome { values, ..RunOutcome::default() })
}

/// Reads the jobs of the model; returns also the number of its rows without a number of instances, which are excluded. Errors: those of the
/// file.
fn read_jobs(plan: &OccupancyPlan, file: &Path) -> Result<(Vec<OccupyingJob>, usize)> {
    let sheet = TextSheet::read(file)?;
    let (mut jobs, mut incomplete) = (Vec::new(), 0);
    for row in (0..sheet.rows()).filter(|row| sheet.text(*row, "gpu_model").is_ok_and(|model| model == plan.gpu_model))
    {
        if sheet.text(row, INSTANCES)?.is_empty() {
            incomplete += 1;
            continue;
        }
        let amount = |column: &str, factor: f64| -> Result<u64> {
            let value: f64 = sheet.number(row, column)?;
            let wrong = || Error::trace(file, row as u64 + 2, column, format!("'{value}' is no amount from 0 on"));
            (0.0..1e12).contains(&value).then_some((value * factor).round() as u64).ok_or_else(wrong)
        };
        let (submit, duration) = (amount("submit_time", 1.0)?, amount("duration", 1.0)?);
        let instances = if plan.one_instance { 1 } else { amount(INSTANCES, 1.0)? };
        let demand = amount("gpu_request", 1000.0)? * instances;
        jobs.push(OccupyingJob {
            name: sheet.text(row, "job_name")?.to_owned(),
            organization: sheet.text(row, "organization")?.to_owned(),
            kind: sheet.text(row, "job_type")?.to_owned(),
            submit,
            end: submit + duration,
            demand: if plan.whole_gpus { demand.div_ceil(1000) * 1000 } else { demand },
        });
    }
    Ok((jobs, incomplete))
}

fn is_counted(plan: &OccupancyPlan, job: &OccupyingJob) -> bool {
    let is_cut = job.submit == 0 || job.end >= plan.window_s;
    plan.job_type.as_ref().is_none_or(|kind| *kind == job.kind) && !(plan.without_cut && is_cut)
}

/// Returns the intervals of constant demand: from, to, thousandths of a GPU.
fn steps(jobs: &[&OccupyingJob]) -> Vec<(u64, u64, u64)> {
    let mut changes: BTreeMap<u64, i128> = BTreeMap::new();
    for job in jobs.iter().filter(|job| job.submit < job.end) {
        *changes.entry(job.submit).or_default() += i128::from(job.demand);
        *changes.entry(job.end).or_default() -= i128::from(job.demand);
    }
    let times: Vec<(u64, i128)> = changes.into_iter().collect();
    let mut demand = 0;
    let step = |pair: &[(u64, i128)]| {
        demand += pair[0].1;
        (pair[0].0, pair[1].0, demand as u64)
    };
    times.windows(2).map(step).collect()
}

/// Returns the number of rows with the name of an earlier row, and of spot rows that overlap an earlier one of equal organization and demand.
fn doubles(jobs: &[OccupyingJob]) -> (usize, usize) {
    let mut names = std::collections::HashSet::new();
    let repeated = jobs.iter().filter(|job| !names.insert(job.name.as_str())).count();
    let mut spot: Vec<&OccupyingJob> = jobs.iter().filter(|job| job.kind == "Spot" && job.submit < job.end).collect();
    spot.sort_by_key(|job| (&job.organization, job.demand, job.submit, job.end));
    let mut alike = 0;
    for group in spot.chunk_by(|a, b| (&a.organization, a.demand) == (&b.organization, b.demand)) {
        let mut until = 0;
        for job in group {
            alike += usize::from(job.submit < until);
            until = until.max(job.end);
        }
    }
    (repeated, alike)
}

#[cfg(test)]
mod tests {
    use super::super::parameters::Parameters;
    use super::super::prepare::{DataFolder, prepare};
    use super::*;

    const NODES: &str = "gpu_model,gpu_capacity_num,cpu_num,node_name\nA10,1,128,0\nA10,1,128,1\nH800,8,128,2\n";
    const JOBS: &str = "job_name,organization,gpu_model,cpu_request,gpu_request,worker_num,submit_time,duration,job_type\n\
                        1,7,A10,20.0,1.0,1,0.0,100.0,HP\n2,7,A10,8.0,0.5,3,50.0,50.0,Spot\n3,7,A10,8.0,0.5,3,80.0,120.0,Spot\n\
                        4,7,H800,8.0,8.0,2,0.0,10.0,HP\n3,7,A10,8.0,1.0,1,100.0,0.0,HP\n5,7,A10,8.0,1.0,,90.0,5.0,HP\n";
    const PLAN: &str = "name = \"p\"\ngpu_model = \"A10\"\nwindow_s = 200\n";

    /// Prepares the inputs of the plan in a folder.
    fn prepared(folder: &Path) {
        let data = folder.join("published/spot-2026");
        std::fs::create_dir_all(&data).expect("a folder");
        std::fs::write(data.join("node_info_df.csv"), NODES).expect("writable");
        std::fs::write(data.join("job_info_df.csv"), JOBS).expect("writable");
        std::fs::write(folder.join("p.toml"), PLAN).expect("writable");
        let data = DataFolder { folder: Some(folder), inputs: &[] };
        prepare("spot-2026", &data, &Parameters::default(), folder).expect("prepared");
    }

    fn values(set: &[&str]) -> BTreeMap<String, f64> {
        let dir = tempfile::tempdir().expect("a temporary folder");
        prepared(dir.path());
        let set: Vec<String> = set.iter().map(|text| (*text).to_owned()).collect();
        run(&dir.path().join("p.toml"), &set, dir.path()).expect("a run").values.into_iter().collect()
    }

    /// The trace of the engine has the complete rows of the model, in the order of submissions.
    #[test]
    fn the_trace_has_the_jobs_of_the_model() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        prepared(dir.path());
        let text = |file: &str| std::fs::read_to_string(dir.path().join(file)).expect(file);
        let rows = "0,7,0,100,1,1.0,0\n1,7,50,50,3,0.5,9\n2,7,80,120,3,0.5,9\n4,7,100,0,1,1.0,0\n";
        assert_eq!(text("trace.csv"), format!("job,user,submit_s,duration_s,tasks,gpu,priority\n{rows}"));
        assert_eq!(text("machines.csv"), "name,gpu\npool,2\n");
    }

    /// Demand: 1 GPU on [0, 50), 2.5 on [50, 80), 4 on [80, 100), 1.5 on [100, 200), of 2 GPUs. The last submission is at 100.
    #[test]
    fn means_are_integrals_over_windows() {
        let all = values(&[]);
        assert_eq!((all["to_last_submission"], all["largest"], all["time_above"]), (102.5, 200.0, 50.0));
        assert_eq!((all["to_window"], all["to_last_end"], all["gpus"], all["jobs"]), (88.75, 88.75, 2.0, 4.0));
        assert_eq!((all["repeated_names"], all["alike_overlapping"], all["incomplete"]), (1.0, 1.0, 1.0));
        let mean = |set: &[&str]| values(set)["to_last_submission"];
        assert_eq!(mean(&["job_type = \"HP\""]), 50.0);
        assert_eq!(mean(&["job_type = \"Spot\""]), 52.5);
        // 1 GPU and 0.5 on [50, 100) and [80, 100).
        assert_eq!(mean(&["one_instance = true"]), 50.0 + 12.5 + 5.0);
        assert_eq!(mean(&["whole_gpus = true"]), 50.0 + 50.0 + 20.0);
        assert_eq!(mean(&["at_most_capacity = true"]), 75.0);
        // Job 1 starts at 0, and the second spot job ends with the window.
        assert_eq!(mean(&["without_cut = true"]), 37.5);
    }
}
