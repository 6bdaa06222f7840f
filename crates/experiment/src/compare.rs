//! Compares the policies of an experiment, based on its runs.

use super::RunSummary;
use plimsoll_metrics::{BinRuns, Comparison, Design, PolicyRuns};

/// Compares the policies of `runs`, which are ordered by policy and then by seed, as [`super::execute()`] returns them.
///
/// Returns `None` if the baseline is missing or is the only policy.
pub fn comparison(runs: &[RunSummary], baseline: &str, design: Design) -> Option<Comparison> {
    let policies: Vec<PolicyRuns> = runs.chunk_by(|a, b| a.policy == b.policy).map(policy).collect();
    Comparison::new(&policies, baseline, design)
}

fn policy(runs: &[RunSummary]) -> PolicyRuns {
    let bin = |(at, (label, ..)): (usize, &(String, u64, Option<f64>))| BinRuns {
        label: label.clone(),
        jobs: runs.iter().map(|run| run.bins[at].1).collect(),
        completion_s: runs.iter().map(|run| run.bins[at].2).collect(),
    };
    PolicyRuns {
        name: runs[0].policy.clone(),
        completion_s: runs.iter().map(|run| run.number("completion_mean_s")).collect(),
        bins: runs[0].bins.iter().enumerate().map(bin).collect(),
    }
}
