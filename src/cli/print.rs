//! Results on standard output.

use std::io::Write;

use crate::error::{Error, Result};
use crate::experiment::{RunSummary, Value};
use crate::metrics::mean_interval;
use crate::record::Stuck;
use crate::units::Dim;

/// Writes to standard output. Errors: all but a closed pipe, which ends the program quietly.
pub fn out(text: &str) -> Result<()> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => std::process::exit(0),
        result => result.map_err(|error| Error::output("standard output", error)),
    }
}

/// Lines of aligned columns: the first to the left, the others to the right.
pub fn aligned(header: &[String], rows: &[Vec<String>]) -> String {
    let width = |at: usize| {
        rows.iter()
            .chain([&header.to_vec()])
            .map(|row| row.get(at).map_or(0, |cell| cell.chars().count()))
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    let mut text = String::new();
    for row in [header.to_vec()].iter().chain(rows) {
        let cells =
            row.iter().zip(&widths).enumerate().map(|(at, (cell, &width))| {
                if at == 0 { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
            });
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// A number in at most four significant digits, or `-`.
pub fn number(value: Option<f64>) -> String {
    match value {
        None => "-".to_owned(),
        Some(value) if value == 0.0 => "0".to_owned(),
        Some(value) => {
            let digits = 3 - (value.abs().log10().floor() as i32).clamp(-3, 3);
            format!("{value:.*}", digits.max(0) as usize)
        }
    }
}

/// What the terminal shows of each run: a heading and the column of the `runs` table behind it.
pub fn headline(dims: &[Dim]) -> Vec<(String, String)> {
    let mut columns = vec![
        ("jobs".to_owned(), "jobs_finished".to_owned()),
        ("completion s".to_owned(), "completion_mean_s".to_owned()),
        ("p50".to_owned(), "completion_p50_s".to_owned()),
        ("p99".to_owned(), "completion_p99_s".to_owned()),
        ("wait s".to_owned(), "wait_mean_s".to_owned()),
        ("slowdown".to_owned(), "slowdown_mean".to_owned()),
    ];
    columns.extend(dims.iter().map(|dim| (format!("used {}", dim.name), format!("used_{}", dim.name))));
    columns.push(("Jain".to_owned(), "jain".to_owned()));
    columns.push(("gap".to_owned(), "share_gap".to_owned()));
    columns.push(("envy".to_owned(), "envy_count".to_owned()));
    columns.push(("below 1/n".to_owned(), "incentive_below".to_owned()));
    columns
}

/// The table of policies: means over seeds, with the half-width of their 95 % intervals where there are several.
pub fn summary_table(runs: &[RunSummary]) -> String {
    let Some(first) = runs.first() else { return String::new() };
    let columns = headline(&first.dims);
    let mut header = vec!["policy".to_owned()];
    header.extend(columns.iter().map(|(heading, _)| heading.clone()));
    let mut rows: Vec<Vec<String>> = Vec::new();
    for group in runs.chunk_by(|a, b| a.policy == b.policy) {
        let mut row = vec![group[0].policy.clone()];
        for (_, column) in &columns {
            let values: Vec<f64> = group.iter().filter_map(|run| run.number(column)).collect();
            let interval = mean_interval(&values, 0.95);
            let mut text = number(interval.map(|interval| interval.mean));
            if let Some((mean, high)) = interval.and_then(|interval| Some((interval.mean, interval.high?)))
                && high > mean
            {
                text.push_str(&format!(" ±{}", number(Some(high - mean))));
            }
            row.push(text);
        }
        rows.push(row);
    }
    aligned(&header, &rows)
}

/// All runs as JSON: the columns of the `runs` table, and the bins.
pub fn summary_json(runs: &[RunSummary]) -> serde_json::Value {
    let one = |run: &RunSummary| {
        let mut object = serde_json::Map::new();
        object.insert("policy".to_owned(), run.policy.clone().into());
        object.insert("run".to_owned(), run.run.into());
        object.insert("seed".to_owned(), run.seed.into());
        for (name, value) in &run.values {
            let json = match value {
                Value::Int(value) => (*value).into(),
                Value::Float(value) => value.map_or(serde_json::Value::Null, Into::into),
                Value::Text(text) => text.clone().into(),
            };
            object.insert(name.clone(), json);
        }
        serde_json::Value::Object(object)
    };
    runs.iter().map(one).collect()
}

/// What never started and why, one message for each run and reason.
pub fn stuck(run: &RunSummary) -> Vec<String> {
    let mut messages = Vec::new();
    for (why, tasks) in &run.stuck {
        let reason = match why {
            Stuck::TooLarge => "too large for any machine, even an empty one",
            Stuck::Deadlocked => "deadlocked: they wait for a stage that never ends",
            Stuck::Starved => "starved: they waited in line until nothing was left to happen",
            Stuck::Cut => "still waiting at the horizon",
        };
        let examples = run.examples.iter().filter(|example| example.why == *why).map(|example| {
            let demand: Vec<String> =
                run.dims.iter().zip(&example.demand).map(|(dim, &amount)| dim.display(amount)).collect();
            format!("job '{}' of user '{}' ({} x {})", example.job, example.user, example.tasks, demand.join(", "))
        });
        let examples = examples.collect::<Vec<_>>().join("; ");
        let seed = run.seed.map(|seed| format!(", seed {seed}")).unwrap_or_default();
        messages.push(format!("{}{seed}: {tasks} tasks never started: {reason}; such as {examples}", run.policy));
    }
    messages
}
