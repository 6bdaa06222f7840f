//! The runs of an experiment as a comparison of its policies.

use super::plan::WorkloadPlan;
use super::summary::RunSummary;
use crate::metrics::{BinRuns, Comparison, Design, PolicyRuns};

/// Compares the policies of runs that stand policy by policy, seed by seed, as [`super::execute()`] returns them.
///
/// `None` if the baseline is missing or alone.
pub fn comparison(runs: &[RunSummary], baseline: &str, design: Design) -> Option<Comparison> {
    let policies: Vec<PolicyRuns> = runs.chunk_by(|a, b| a.policy == b.policy).map(policy).collect();
    Comparison::new(&policies, baseline, design)
}

impl WorkloadPlan {
    /// Returns whether seeds draw parts of a trace.
    pub fn is_thinned(&self) -> bool {
        matches!(self, WorkloadPlan::Trace { thin: Some(share), .. } if *share < 1.0)
    }

    /// How the runs of two policies belong together.
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
