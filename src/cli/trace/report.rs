//! Reports the quality of an import or a generated workload, as text and as JSON.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::cli::print::aligned;
use crate::cli::printout::Printout;
use crate::output::numbers::count;
pub use crate::output::numbers::thousands as grouped;
use crate::workload::summary::Summary;
use crate::workload::{Quality, TaskSet};

/// Returns lines of text on the rows that were read, left out, repaired and assumed.
pub fn lines(quality: &Quality) -> Vec<String> {
    let dropped: u64 = quality.dropped.values().sum();
    let mut lines =
        vec![format!("{}: {} rows read, {} kept", quality.format, quality.rows_in, quality.rows_in - dropped)];
    lines.extend(
        quality.dropped.iter().map(|(reason, rows)| format!("  dropped {rows}: {reason}{}", at(quality, reason))),
    );
    lines.extend(quality.repaired.iter().map(|(reason, rows)| format!("  repaired {rows}: {reason}")));
    lines.extend(quality.assumptions.iter().map(|(name, value)| format!("  assumed {name} = {value}")));
    lines.extend(quality.warnings.iter().map(|warning| format!("  warning: {warning}")));
    lines
}

/// Returns the location of the first row that was left out for this reason, and its problem.
fn at(quality: &Quality, reason: &str) -> String {
    let Some((line, problem)) = quality.first_dropped.get(reason) else { return String::new() };
    let first = if quality.dropped.get(reason) == Some(&1) { "" } else { "first " };
    let problem = if problem.is_empty() { String::new() } else { format!(": {problem}") };
    format!(" ({first}line {line}{problem})")
}

/// Returns the quality as JSON.
pub fn json(quality: &Quality) -> Map<String, Value> {
    let counts = |counts: &BTreeMap<String, u64>| -> Value {
        counts.iter().map(|(reason, rows)| (reason.clone(), json!(rows))).collect::<Map<_, _>>().into()
    };
    let dropped: u64 = quality.dropped.values().sum();
    let assumptions: Map<_, _> =
        quality.assumptions.iter().map(|(name, value)| (name.clone(), value.clone().into())).collect();
    let mut object = Map::new();
    object.insert("format".into(), quality.format.clone().into());
    object.insert("rows_in".into(), quality.rows_in.into());
    object.insert("rows_kept".into(), (quality.rows_in - dropped).into());
    object.insert("dropped".into(), counts(&quality.dropped));
    let first = |(reason, (line, problem)): (&String, &(u64, String))| {
        let problem = Some(problem).filter(|problem| !problem.is_empty());
        (reason.clone(), json!({ "line": line, "problem": problem }))
    };
    object.insert("first_dropped".into(), quality.first_dropped.iter().map(first).collect::<Map<_, _>>().into());
    object.insert("repaired".into(), counts(&quality.repaired));
    object.insert("assumptions".into(), assumptions.into());
    object.insert("warnings".into(), quality.warnings.clone().into());
    object
}

/// The size of a workload.
#[derive(Clone, Debug, Default)]
pub struct Amounts {
    pub rows: u64,
    pub jobs: u64,
    pub users: u64,
    pub tasks: u64,
    /// Whether each user has a row.
    has_row: Vec<bool>,
}

impl Amounts {
    /// Adds a row. Jobs have dense ids in the order of their first rows.
    pub fn add(&mut self, set: &TaskSet) {
        self.rows += 1;
        self.jobs = self.jobs.max(set.job.index() as u64 + 1);
        if self.has_row.len() <= set.user.index() {
            self.has_row.resize(set.user.index() + 1, false);
        }
        self.users += u64::from(!std::mem::replace(&mut self.has_row[set.user.index()], true));
        self.tasks += u64::from(set.tasks);
    }
}

impl From<&Summary> for Amounts {
    fn from(summary: &Summary) -> Amounts {
        let Summary { rows, jobs, users, tasks, .. } = *summary;
        Amounts { rows, jobs, users, tasks, has_row: Vec::new() }
    }
}

/// Formats the size of a workload: `6,500 rows, 5,894 jobs of 20 users, 300,000 tasks`.
pub fn amount(amounts: &Amounts) -> String {
    format!(
        "{}, {} of {}, {}",
        count(amounts.rows, "row"),
        count(amounts.jobs, "job"),
        count(amounts.users, "user"),
        count(amounts.tasks, "task")
    )
}

/// Returns a table of the users with the most task time.
pub fn users(summary: &Summary) -> Printout {
    let mut header = ["user", "jobs", "tasks", "task time"].map(str::to_owned).to_vec();
    header.extend(summary.work.iter().map(|work| format!("{} work", work.resource)));
    let rows: Vec<Vec<String>> = summary
        .top_users
        .iter()
        .map(|user| {
            let mut row = vec![user.user.clone(), grouped(user.jobs), grouped(user.tasks), percent(user.time_share)];
            row.extend(user.work_share.iter().map(|share| percent(*share)));
            row
        })
        .collect();
    let mut text = Printout::from(aligned(&header, &rows));
    let others = summary.users.saturating_sub(rows.len() as u64);
    if others > 0 {
        text += format!("and {} more\n", grouped(others));
    }
    text
}

/// Formats the beginning of a sentence about tasks that fit: `1 task fits`, `2 tasks fit`.
pub fn fit(tasks: u64) -> String {
    format!("{} {}", count(tasks, "task"), if tasks == 1 { "fits" } else { "fit" })
}

/// Formats a share in percent.
pub fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}
