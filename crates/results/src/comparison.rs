//! Reads the completion times of all runs, and compares the policies of a results folder with its baseline.

use plimsoll_base::error::Result;
use plimsoll_metrics::{BinRuns, Comparison, PolicyRuns};

use crate::read::Results;
use crate::schema::Table;

/// Compares the policies with the baseline. `None` if there is only the baseline.
pub fn comparison(results: &Results) -> Result<Option<Comparison>> {
    let design = results.contents.design();
    Ok(Comparison::new(&policy_runs(results)?, &results.contents.baseline, design))
}

/// Returns mean completion times, seed by seed; missing runs have absent values.
pub fn policy_runs(results: &Results) -> Result<Vec<PolicyRuns>> {
    let seeds = results.width();
    let empty = |name: &String| PolicyRuns { name: name.clone(), completion_s: vec![None; seeds], bins: Vec::new() };
    let mut policies: Vec<PolicyRuns> = results.contents.policies.iter().map(empty).collect();
    for part in results.table(Table::Runs, &["completion_mean_s"], None)? {
        let mean = part.numbers("completion_mean_s")?.first().copied().flatten();
        policies[part.policy].completion_s[part.run] = mean;
    }
    let parts = results.table(Table::Bins, &["bin", "jobs", "completion_mean_s"], None)?;
    let Some(first) = parts.first() else { return Ok(policies) };
    for label in first.names("bin")? {
        let bin = BinRuns { label, jobs: vec![0; seeds], completion_s: vec![None; seeds] };
        policies.iter_mut().for_each(|policy| policy.bins.push(bin.clone()));
    }
    for part in &parts {
        let rows = part.names("bin")?.into_iter().zip(part.numbers("jobs")?).zip(part.numbers("completion_mean_s")?);
        for ((label, jobs), mean) in rows {
            let bins = &mut policies[part.policy].bins;
            if let Some(bin) = bins.iter_mut().find(|bin| bin.label == label) {
                bin.jobs[part.run] = jobs.unwrap_or(0.0) as u64;
                bin.completion_s[part.run] = mean;
            }
        }
    }
    Ok(policies)
}
