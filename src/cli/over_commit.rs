//! The footer of printed results about policies that over-commit the cluster.

use super::screen::paragraphs;
use crate::experiment::{RunSummary, Study};
use crate::output::over_commit::{Used, sentences};

/// Returns the footer; empty if no policy over-commits. `cells` are the runs of each cell.
pub fn footer(study: &Study, cells: &[Vec<RunSummary>]) -> String {
    let mut uses = Vec::new();
    for (plan, runs) in study.cells.iter().zip(cells) {
        let slowed = plan.slowdown_resources();
        uses.extend(runs.iter().map(|run| {
            let resources = run.dims.iter().map(|dim| dim.name.as_str());
            Used::new(run.policy.as_str(), resources, Some(&slowed), |name| run.number(name))
        }));
    }
    sentences(&uses).iter().map(|sentence| format!("\n{}", paragraphs(sentence))).collect()
}
