//! Results on standard output.

use std::io::Write;

use crate::error::{Error, Result};
use crate::experiment::{Difference, Findings, RunSummary, Study, Value};
use crate::metrics::compare::{LEVEL, is_significant};
use crate::metrics::{Comparison, mean_interval};
use crate::output::headline::{Headline, headline};
use crate::output::numbers::{in_percent, number, with_half};
use crate::output::table::Constant;
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
    columns(header, rows, |at, cell, width| if at == 0 { format!("{cell:<width$}") } else { format!("{cell:>width$}") })
}

/// Lines of aligned columns of text, all to the left.
pub fn aligned_left(header: &[String], rows: &[Vec<String>]) -> String {
    columns(header, rows, |_, cell, width| format!("{cell:<width$}"))
}

/// The side of its column that a cell stands on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// As text does.
    Left,
    /// As numbers do.
    Right,
}

/// Lines of columns, each aligned to its side; a row may be shorter than the header.
pub fn aligned_by(header: &[(String, Side)], rows: &[Vec<String>]) -> String {
    let names: Vec<String> = header.iter().map(|(name, _)| name.clone()).collect();
    columns(&names, rows, |at, cell, width| match header[at].1 {
        Side::Left => format!("{cell:<width$}"),
        Side::Right => format!("{cell:>width$}"),
    })
}

fn columns(header: &[String], rows: &[Vec<String>], pad: impl Fn(usize, &str, usize) -> String) -> String {
    let lines: Vec<&[String]> = std::iter::once(header).chain(rows.iter().map(Vec::as_slice)).collect();
    let width = |at: usize| lines.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..header.len()).map(|at| width(at).unwrap_or(0)).collect();
    let mut text = String::new();
    for line in lines {
        let cells = line.iter().zip(&widths).enumerate().map(|(at, (cell, &width))| pad(at, cell, width));
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// So many groups of a policy are shown.
const GROUPS_MOST: usize = 20;

/// The table of policies: means over seeds, with the half-width of their 95 % intervals where there are several.
pub fn summary_table(runs: &[RunSummary]) -> String {
    let Some(first) = runs.first() else { return String::new() };
    let columns = headline(&first.dims);
    let header: Vec<String> =
        std::iter::once("policy".to_owned()).chain(columns.iter().map(|column| column.heading.clone())).collect();
    let row = |group: &[RunSummary]| -> Vec<String> {
        let cell = |column: &Headline| {
            let values: Vec<f64> = group.iter().filter_map(|run| run.number(&column.column)).collect();
            with_half(mean_interval(&values, LEVEL))
        };
        std::iter::once(group[0].policy.clone()).chain(columns.iter().map(cell)).collect()
    };
    aligned(&header, &runs.chunk_by(|a, b| a.policy == b.policy).map(row).collect::<Vec<_>>())
}

/// The groups of policies that have some: means over seeds. Empty without any; of many groups those that were below
/// their minimum longest.
pub fn groups(runs: &[RunSummary]) -> String {
    let mut text = String::new();
    for group in runs.chunk_by(|a, b| a.policy == b.policy) {
        let first = &group[0].groups;
        let mean = |at: usize, column: usize| {
            let values: Vec<f64> = group.iter().filter_map(|run| run.groups.get(at)?.values[column].1).collect();
            mean_interval(&values, LEVEL)
        };
        let mut shown: Vec<usize> = (0..first.len()).collect();
        // The first column is the time below the minimum.
        let below: Vec<f64> = shown.iter().map(|&at| mean(at, 0).map_or(0.0, |mean| mean.mean)).collect();
        shown.sort_by(|&a, &b| below[b].total_cmp(&below[a]).then(a.cmp(&b)));
        shown.truncate(GROUPS_MOST);
        shown.sort_unstable();
        let Some(&any) = shown.first() else { continue };
        let headings = first[any].values.iter().map(|(heading, _)| heading.clone());
        let header: Vec<String> = std::iter::once(group[0].policy.clone()).chain(headings).collect();
        let row = |&at: &usize| -> Vec<String> {
            let name = format!("{}{}", "  ".repeat(first[at].depth), first[at].name);
            let cells = (0..first[at].values.len()).map(|column| with_half(mean(at, column)));
            std::iter::once(name).chain(cells).collect()
        };
        text += "\n";
        text += &aligned(&header, &shown.iter().map(row).collect::<Vec<_>>());
        if shown.len() < first.len() {
            text += &format!("and {} groups that were below their min for less time\n", first.len() - shown.len());
        }
    }
    text
}

/// The policies against the baseline: reductions by job size, and what they say.
pub fn comparison(comparison: &Comparison) -> String {
    let shown: Vec<usize> = (0..comparison.bins.len()).filter(|&at| comparison.bins[at].1 > 0).collect();
    let row = |name: &str, all: String, bin: &dyn Fn(usize) -> String| -> Vec<String> {
        [name.to_owned(), all].into_iter().chain(shown.iter().map(|&at| bin(at))).collect()
    };
    let header = row("by job size", "all".to_owned(), &|at| comparison.bins[at].0.clone());
    let mut rows = vec![row("jobs", comparison.jobs.to_string(), &|at| comparison.bins[at].1.to_string())];
    for policy in &comparison.policies {
        rows.push(row(&policy.name, in_percent(&policy.all), &|at| in_percent(&policy.bins[at])));
    }
    let sentences: String = comparison.sentences().iter().map(|sentence| format!("{sentence}\n")).collect();
    let title = format!("\nReduction of mean completion time against {} (%)\n", comparison.baseline);
    format!("{title}{}\n{sentences}", aligned(&header, &rows))
}

/// The policies of each cell against its baseline, in the metrics of the summary: mean differences, paired by seed. Empty
/// where there is nothing to compare or one seed; of many cells the first `most`.
pub fn differences(study: &Study, findings: &Findings, dims: &[Dim], most: usize) -> String {
    let known = |one: &&Difference| one.means.test.difference.high.is_some();
    let Some(any) = findings.differences.iter().find(known) else { return String::new() };
    let columns: Vec<Headline> = headline(dims).into_iter().filter(|column| column.column != "jobs_finished").collect();
    let family = findings.differences.iter().filter(|one| one.metric == any.metric).count();
    let mut text = "Differences, paired by seed, with the half-widths of their 95 % intervals\n".to_owned();
    for (cell, plan) in study.cells.iter().enumerate().take(most) {
        let of = |policy: &str, metric: &str| {
            let one = |one: &&Difference| one.cell == cell && one.policy == policy && one.metric == metric;
            findings.differences.iter().find(one)
        };
        let against = format!("against {}", plan.policies[plan.baseline].name);
        let title = if plan.cell.is_empty() { against } else { format!("{}, {against}", plan.cell) };
        let header: Vec<String> =
            std::iter::once(title).chain(columns.iter().map(|column| column.heading.clone())).collect();
        let row = |policy: &String| {
            let shown = |column: &Headline| {
                let Some(found) = of(policy, &column.column) else { return "-".to_owned() };
                let mark = if is_significant(found.p_holm) { "*" } else { " " };
                format!("{}{mark}", with_half(Some(found.means.test.difference)))
            };
            std::iter::once(policy.clone()).chain(columns.iter().map(shown)).collect()
        };
        let others = plan.policies.iter().map(|policy| &policy.name);
        let rows: Vec<Vec<String>> =
            others.filter(|name| **name != plan.policies[plan.baseline].name).map(row).collect();
        text += &aligned(&header, &rows);
        text.push('\n');
    }
    let note = "p < 0.05 in a paired t test over seeds, after Holm's correction for the comparisons of a metric";
    text + &format!("* {note} (here {family})\n")
}

/// All runs as JSON: the columns of the `runs` table, behind those of the axes of a sweep.
pub fn summary_json(runs: &[RunSummary], axes: &[(String, Constant)]) -> Vec<serde_json::Value> {
    let one = |run: &RunSummary| {
        let mut object = serde_json::Map::new();
        for (name, value) in axes {
            let json = match value {
                Constant::Int(value) => (*value).into(),
                Constant::Float(value) => (*value).into(),
                Constant::NoInt => serde_json::Value::Null,
                Constant::Text(text) => text.clone().into(),
            };
            object.insert(name.clone(), json);
        }
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

/// What never started and why: one message for each policy and reason, with an example from its first run.
pub fn stuck<'a>(runs: impl IntoIterator<Item = &'a RunSummary>) -> Vec<String> {
    let mut found: Vec<(&RunSummary, Stuck, Vec<u64>)> = Vec::new();
    for run in runs {
        for &(why, tasks) in &run.stuck {
            match found.iter_mut().find(|(first, known, _)| first.policy == run.policy && *known == why) {
                Some((.., all)) => all.push(tasks),
                None => found.push((run, why, vec![tasks])),
            }
        }
    }
    let message = |(run, why, all): &(&RunSummary, Stuck, Vec<u64>)| {
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
        let seed = run.seed.map(|seed| format!("seed {seed}")).unwrap_or_default();
        let (least, most) = (all.iter().min().copied().unwrap_or(0), all.iter().max().copied().unwrap_or(0));
        match all.len() {
            1 => {
                let seed = if seed.is_empty() { seed } else { format!(", {seed}") };
                let examples = examples.collect::<Vec<_>>().join("; ");
                format!("{}{seed}: {most} tasks never started: {reason}; such as {examples}", run.policy)
            }
            runs => {
                let seed = if seed.is_empty() { seed } else { format!(" under {seed}") };
                let tasks = if least == most { most.to_string() } else { format!("{least} to {most}") };
                let example = examples.take(1).collect::<String>();
                format!("{}: {tasks} tasks never started in {runs} runs: {reason}; such as {example}{seed}", run.policy)
            }
        }
    };
    found.iter().map(message).collect()
}

/// Groups that an unreturned amount is shown of, policy by policy.
const UNRETURNED_MOST: usize = 3;

/// What groups could not give back, as means over runs: one message for each policy with such groups.
pub fn unreturned<'a>(runs: impl IntoIterator<Item = &'a RunSummary>) -> Vec<String> {
    let mut policies: Vec<Vec<&RunSummary>> = Vec::new();
    for run in runs {
        match policies.iter_mut().find(|known| known[0].policy == run.policy) {
            Some(known) => known.push(run),
            None => policies.push(vec![run]),
        }
    }
    let message = |runs: &Vec<&RunSummary>| {
        let mean = |at: usize, d: usize| {
            let each = runs.iter().filter_map(|run| run.groups.get(at)?.unreturned.get(d));
            each.sum::<f64>() / runs.len() as f64
        };
        let group = |at: usize| {
            let amounts = runs[0].dims.iter().enumerate().map(|(d, dim)| (mean(at, d), &dim.name));
            let amounts = amounts.filter(|(amount, _)| *amount > 0.0);
            let amounts: Vec<String> =
                amounts.map(|(amount, name)| format!("{} {name} h", number(Some(amount)))).collect();
            (!amounts.is_empty()).then(|| format!("'{}' {}", runs[0].groups[at].name, amounts.join(" and ")))
        };
        let groups: Vec<String> = (0..runs[0].groups.len()).filter_map(group).collect();
        let more = groups.len().saturating_sub(UNRETURNED_MOST);
        let more = if more > 0 { format!(", and {more} groups more") } else { String::new() };
        let shown = groups.iter().take(UNRETURNED_MOST).cloned().collect::<Vec<_>>().join(", ");
        (!groups.is_empty()).then(|| {
            format!(
                "{}: not given back when it was due, since tasks marked stable are never stopped: {shown}{more}",
                runs[0].policy
            )
        })
    };
    policies.iter().filter_map(message).collect()
}
