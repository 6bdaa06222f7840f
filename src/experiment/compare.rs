//! Compares the policies of an experiment, based on its runs.

use super::RunSummary;
use super::plan::WorkloadPlan;
use crate::metrics::{BinRuns, Comparison, Design, PolicyRuns};

/// Compares the policies of `runs`, which are ordered by policy and then by seed, as [`super::execute()`] returns them.
///
/// Returns `None` if the baseline is missing or is the only policy.
pub fn comparison(runs: &[RunSummary], baseline: &str, design: Design) -> Option<Comparison> {
    let policies: Vec<PolicyRuns> = runs.chunk_by(|a, b| a.policy == b.policy).map(policy).collect();
    Comparison::new(&policies, baseline, design)
}

impl WorkloadPlan {
    /// Returns whether periods of a trace's users are recombined.
    pub fn is_resampled(&self) -> bool {
        matches!(self.base(), WorkloadPlan::Trace { resample: Some(_), .. })
    }

    /// Returns whether only a share of the jobs of a trace is kept.
    pub fn is_thinned(&self) -> bool {
        matches!(self.base(), WorkloadPlan::Trace { thin: Some(share), .. } if *share < 1.0)
    }

    /// Returns how the runs of two policies are compared: paired by seed, or unpaired if submissions depend on the policy.
    pub fn design(&self) -> Design {
        if self.submissions_depend_on_policy() { Design::Unpaired } else { Design::Paired }
    }
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
