//! Warnings about unfinished work at the end of a run.

use crate::experiment::RunSummary;
use crate::output::left_over::UNSERVED_MOST;
use crate::output::numbers::count;

/// Groups the runs by policy, in the order of first appearance.
fn by_policy<'a>(runs: impl IntoIterator<Item = &'a RunSummary>) -> Vec<Vec<&'a RunSummary>> {
    let mut policies: Vec<Vec<&RunSummary>> = Vec::new();
    for run in runs {
        match policies.iter_mut().find(|known| known[0].policy == run.policy) {
            Some(known) => known.push(run),
            None => policies.push(vec![run]),
        }
    }
    policies
}

/// Returns a message for each policy with tasks that had run, were stopped, and still waited at the end.
pub fn stopped_waiting<'a>(runs: impl IntoIterator<Item = &'a RunSummary>) -> Vec<String> {
    let message = |runs: &Vec<&RunSummary>| {
        let tasks = |run: &RunSummary| run.number("tasks_stopped_waiting").unwrap_or(0.0) as u64;
        let sum: u64 = runs.iter().map(|run| tasks(run)).sum();
        let example = runs.iter().find_map(|run| run.stopped.first())?;
        let were = if sum == 1 { "was" } else { "were" };
        let within = if runs.len() > 1 { format!(" in {}", count(runs.len() as u64, "run")) } else { String::new() };
        Some(format!(
            "{}: {} that {were} launched and stopped had not started again at the end{within}; such as job '{}' of user '{}'",
            runs[0].policy,
            count(sum, "task"),
            example.job,
            example.user
        ))
    };
    by_policy(runs).iter().filter_map(message).collect()
}

/// Returns a message for each policy that leaves more than a tenth of the submitted work unserved at the horizon.
pub fn unserved<'a>(runs: impl IntoIterator<Item = &'a RunSummary>) -> Vec<String> {
    let message = |runs: &Vec<&RunSummary>| {
        let shares = runs.iter().filter_map(|run| run.number("work_unserved"));
        let most = shares.fold(0.0, f64::max);
        let up_to = if runs.len() > 1 { "up to " } else { "" };
        (most > UNSERVED_MOST).then(|| {
            format!(
                "{}: {up_to}{:.0} % of the submitted work is not served at the horizon (until). Speeds and their Jain index cover the \
                 work that ideal fair sharing serves by then; delays cover finished jobs only",
                runs[0].policy,
                100.0 * most
            )
        })
    };
    by_policy(runs).iter().filter_map(message).collect()
}
