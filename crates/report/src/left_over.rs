//! Notes of a report about unfinished work at the end of runs.

use plimsoll_base::error::Result;
use plimsoll_metrics::numbers::count;
use plimsoll_results::read::{Part, Results};
use plimsoll_results::schema::Table;

/// The share of unserved work above which a warning is given.
pub const UNSERVED_MOST: f64 = 0.1;

/// Returns notes, by policy, about tasks that were stopped and not started again, and about work that is unserved at the horizon. Errors: a
/// table cannot be read.
pub fn notes(results: &Results) -> Result<Vec<String>> {
    let parts = results.table(Table::Runs, &["tasks_stopped_waiting", "work_unserved"], None)?;
    let values = |parts: &[Part], column: &str| -> Result<Vec<f64>> {
        let values = parts.iter().map(|part| part.numbers(column)).collect::<Result<Vec<_>>>()?;
        Ok(values.into_iter().flatten().flatten().collect())
    };
    let mut notes = Vec::new();
    for group in parts.chunk_by(|a, b| a.policy == b.policy) {
        let policy = &results.contents.policies[group[0].policy];
        let waiting = values(group, "tasks_stopped_waiting")?.into_iter().sum::<f64>() as u64;
        if waiting > 0 {
            let were = if waiting == 1 { "was" } else { "were" };
            notes.push(format!(
                "Under {policy}, {} {were} launched and stopped, and had not started again at the end.",
                count(waiting, "task")
            ));
        }
        let most = values(group, "work_unserved")?.into_iter().fold(0.0, f64::max);
        if most > UNSERVED_MOST {
            let up_to = if group.len() > 1 { "up to " } else { "" };
            notes.push(format!(
                "Under {policy}, {up_to}{:.0} % of the submitted work is not served at the horizon. Speeds and their Jain index \
                 cover the work that ideal fair sharing serves by then.",
                100.0 * most
            ));
        }
    }
    Ok(notes)
}
