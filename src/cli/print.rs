//! Prints results on standard output.
//!
//! The module formats the tables of a study (means by cell and policy, comparisons with the baseline, quota groups) and sentences about
//! tasks that never started. Layout and colour are in `screen`.

use std::io::Write;

use super::printout::Printout;
use super::screen::{Alignment, Grid, GridCell, Tone, is_wide, paragraphs};
use crate::error::{Error, Result};
use crate::experiment::study::shown;
use crate::experiment::{Difference, Findings, Plan, RunSummary, Study, SummaryValue};
use crate::metrics::compare::{LEVEL, is_significant};
use crate::metrics::{Compared, Comparison, Design, mean, mean_interval};
use crate::output::headline::{Better, Headline, headline};
use crate::output::numbers::{count, in_percent, number, thousands, with_half};
use crate::output::requests::Scope;
use crate::output::table::Constant;
use crate::record::Stuck;
use crate::units::Dim;

/// Writes to standard output. Errors: a failed write; a closed pipe instead ends the program with code 0.
pub fn write(text: &str) -> Result<()> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => std::process::exit(0),
        result => result.map_err(|error| Error::output("standard output", error)),
    }
}

/// Returns a table with the first column aligned to the left and the others to the right.
pub fn aligned(header: &[String], rows: &[Vec<String>]) -> Grid {
    grid(header, |at| if at == 0 { Alignment::Left } else { Alignment::Right }, rows)
}

/// Returns a table of text, aligned to the left.
pub fn aligned_left(header: &[String], rows: &[Vec<String>]) -> Grid {
    grid(header, |_| Alignment::Left, rows)
}

fn grid(header: &[String], side: impl Fn(usize) -> Alignment, rows: &[Vec<String>]) -> Grid {
    Grid::new(header.iter().enumerate().map(|(at, name)| (name.clone(), side(at))).collect(), rows.to_vec())
}

/// Maximum number of rows per policy in the table of groups.
const GROUPS_MOST: usize = 20;

/// Maximum number of columns in the table of groups, unless `--wide` is given.
const GROUP_COLUMNS: usize = 5;

/// Maximum number of rows in a table of cells and policies, unless `--wide` is given.
const ROWS_MOST: usize = 60;

/// Describes the machines of a study and the placement of tasks, for the head of the results; also notes that a trace is thinned or resampled.
///
/// If the cells of a sweep have different machines, the machines are not printed.
pub fn setting(study: &Study) -> String {
    let machines = |plan: &Plan| {
        let groups = &plan.cluster.groups;
        let count: u64 = groups.iter().map(|group| u64::from(group.count)).sum();
        let total = plan.cluster.capacity();
        let amounts: Vec<String> = total.iter().map(|(dim, amount)| dim.display(*amount)).collect();
        format!("{count} {} ({})", if count == 1 { "machine" } else { "machines" }, amounts.join(", "))
    };
    let mut clusters: Vec<String> = study.cells.iter().map(machines).collect();
    let mut placements: Vec<&str> = study.cells.iter().map(|plan| plan.options.placement.name()).collect();
    clusters.sort_unstable();
    clusters.dedup();
    placements.sort_unstable();
    placements.dedup();
    let placement = format!("placement {}", placements.join(", "));
    let setting = match &clusters[..] {
        [one] => format!("{one}, {placement}\n"),
        _ => format!("{placement}\n"),
    };
    let thinned = study.cells.iter().any(|plan| plan.workload.is_thinned());
    let about =
        "the trace is thinned: the intervals describe workloads with less load than the trace, not the trace itself\n";
    let resampled = study.cells.iter().any(|plan| plan.workload.is_resampled());
    let of_periods = "the trace is resampled: the intervals describe which periods of its users meet, not differences to other clusters\n";
    match (thinned, resampled) {
        (true, _) => setting + &paragraphs(about),
        (false, true) => setting + &paragraphs(of_periods),
        (false, false) => setting,
    }
}

/// Returns the columns of a summary that are shown: the key columns, or all with `--wide`.
fn shown_columns(dims: &[Dim]) -> Vec<Headline> {
    headline(dims).into_iter().filter(|column| column.key.is_some() || is_wide()).collect()
}

/// Returns the headings of a table with a row per cell and policy: the axes of a sweep, the policy, and these columns.
fn headings(study: &Study, columns: &[Headline]) -> Vec<(String, Alignment)> {
    // A heading with spaces can be broken into several lines.
    let axes = study.columns.iter().map(|name| (name.replace('_', " "), Alignment::Left));
    let policy = std::iter::once(("policy".to_owned(), Alignment::Left));
    axes.chain(policy).chain(columns.iter().map(|column| (column.heading.clone(), Alignment::Right))).collect()
}

/// Returns the cells before the numbers of a row: the values of its axes, and its policy.
fn place(plan: &Plan, policy: &str) -> Vec<GridCell> {
    plan.axes.iter().map(|(_, value)| shown(value)).chain([policy.to_owned()]).map(GridCell::from).collect()
}

/// Returns a table with one row per cell and policy. A long table is shortened; if it is too wide, the least important columns are omitted.
fn by_cell(study: &Study, mut columns: Vec<Headline>, mut rows: Vec<Vec<GridCell>>, rest: &str) -> Printout {
    let all = rows.len();
    if !is_wide() {
        rows.truncate(ROWS_MOST);
    }
    let left = all - rows.len();
    let keys = study.columns.len() + 1;
    let mut grid = Grid::new(headings(study, &columns), rows.clone()).keyed(keys);
    while !grid.fits() && columns.len() > 1 {
        let least = (0..columns.len()).max_by_key(|&at| columns[at].key).unwrap_or(0);
        columns.remove(least);
        rows.iter_mut().for_each(|row| drop(row.remove(keys + least)));
        grid = Grid::new(headings(study, &columns), rows.clone()).keyed(keys);
    }
    let mut table = Printout::from(grid);
    if left > 0 {
        table += paragraphs(&format!("and {left} more rows; --wide prints all, and {rest} has them"));
    }
    table
}

/// Returns the table of cells and policies: means over seeds, with the half-widths of their 95 % confidence intervals if there are several
/// seeds. `cells` are the runs of each cell.
pub fn summary_table(study: &Study, cells: &[Vec<RunSummary>]) -> Printout {
    let Some(first) = cells.iter().flatten().next() else { return Printout::default() };
    let mut columns = shown_columns(&first.dims);
    // A column without values is omitted.
    columns.retain(|column| cells.iter().flatten().any(|run| run.number(&column.column).is_some()));
    let mut rows = Vec::new();
    for (plan, runs) in study.cells.iter().zip(cells) {
        for group in runs.chunk_by(|a, b| a.policy == b.policy) {
            let cell = |column: &Headline| {
                let values: Vec<f64> = group.iter().filter_map(|run| run.number(&column.column)).collect();
                GridCell::from(with_half(mean_interval(&values, LEVEL)))
            };
            rows.push(place(plan, &group[0].policy).into_iter().chain(columns.iter().map(cell)).collect());
        }
    }
    by_cell(study, columns, rows, "statistics/estimates.csv")
}

/// Returns a table of groups with means over seeds; empty without groups. If there are more than `GROUPS_MOST` groups, the table has the
/// groups that were below their minimum for the longest time.
pub fn groups(runs: &[RunSummary]) -> Printout {
    let mut text = Printout::default();
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
        let columns = if is_wide() { usize::MAX } else { GROUP_COLUMNS };
        let headings = first[any].values.iter().map(|(heading, _)| heading.clone());
        let header: Vec<String> = std::iter::once(group[0].policy.clone()).chain(headings.take(columns)).collect();
        let row = |&at: &usize| -> Vec<String> {
            let name = format!("{}{}", "  ".repeat(first[at].depth), first[at].name);
            let cells = (0..header.len() - 1).map(|column| with_half(mean(at, column)));
            std::iter::once(name).chain(cells).collect()
        };
        text += "\n";
        text += aligned(&header, &shown.iter().map(row).collect::<Vec<_>>());
        if shown.len() < first.len() {
            let rest = first.len() - shown.len();
            text += paragraphs(&format!("and {rest} groups that were below their min for less time"));
        }
    }
    text
}

/// Returns the comparison of the policies with the baseline: reductions by job size, and conclusions.
pub fn comparison(comparison: &Comparison) -> Printout {
    let mut header = ["tasks of a job", "jobs"].map(str::to_owned).to_vec();
    header.extend(comparison.policies.iter().map(|policy| policy.name.clone()));
    let row = |at: usize, name: &str, jobs: u64| -> Vec<String> {
        let reduction = |policy: &Compared| in_percent(policy.against_baseline[at].and_then(|one| one.reduction()));
        [name.to_owned(), thousands(jobs)].into_iter().chain(comparison.policies.iter().map(reduction)).collect()
    };
    let bins = comparison.bins.iter().enumerate().map(|(at, (label, jobs))| row(at + 1, label, *jobs));
    let rows: Vec<Vec<String>> = std::iter::once(row(0, "all", comparison.jobs)).chain(bins).collect();
    let sentences: String = comparison.sentences().iter().map(|sentence| format!("\n{sentence}\n")).collect();
    let title = format!("Reduction of mean completion time against {} (% of its mean)", comparison.baseline);
    let mut text = Printout::from(format!("\n{}", paragraphs(&title)));
    text += aligned(&header, &rows);
    text += paragraphs(&sentences);
    text
}

/// Returns the differences between the policies of each cell and its baseline, in the metrics of the summary, as means over seeds. Empty if
/// there is nothing to compare, or only one seed.
pub fn differences(study: &Study, findings: &Findings, dims: &[Dim]) -> Printout {
    let known = |one: &&Difference| one.means.test.difference.high.is_some();
    let Some(any) = findings.differences.iter().find(known) else { return Printout::default() };
    let columns: Vec<Headline> =
        shown_columns(dims).into_iter().filter(|column| column.better != Better::Neither).collect();
    // A column without values is omitted.
    let columns: Vec<Headline> = columns
        .into_iter()
        .filter(|column| findings.differences.iter().any(|one| one.metric == column.column))
        .collect();
    let family = findings.differences.iter().filter(|one| (one.cell, &one.metric) == (any.cell, &any.metric)).count();
    let mut rows = Vec::new();
    for (cell, plan) in study.cells.iter().enumerate() {
        let others = plan.policies.iter().map(|policy| policy.name.as_str());
        for policy in others.filter(|name| *name != plan.policies[plan.baseline].name) {
            let of = |metric: &str| {
                let one = |one: &&Difference| one.cell == cell && one.policy == policy && one.metric == metric;
                findings.differences.iter().find(one)
            };
            let shown =
                |column: &Headline| of(&column.column).map_or("-".to_owned().into(), |one| differs(one, column));
            rows.push(place(plan, policy).into_iter().chain(columns.iter().map(shown)).collect());
        }
    }
    let paired = if any.means.design == Design::Paired { ", paired" } else { "" };
    let title = format!(
        "\nDifference from {}: mean over seeds{paired}, with the half-width of its 95 % confidence interval\n",
        any.baseline
    );
    let of_family = match family {
        1 => "one comparison of a metric".to_owned(),
        family => format!("the {family} comparisons of a metric"),
    };
    let of_family = if study.cells.len() > 1 { format!("{of_family} in a cell") } else { of_family };
    let note = format!(
        "* statistically significant: p < 0.05 of {}, after Holm's correction for {of_family}\n",
        any.means.design.test()
    );
    let mut text = Printout::from(paragraphs(&title));
    text += by_cell(study, columns, rows, "statistics/differences.csv");
    text += paragraphs(&note);
    text
}

/// Formats a difference. A significant difference has a `*` and a colour for better or worse.
fn differs(found: &Difference, column: &Headline) -> GridCell {
    let significant = is_significant(found.holm.p);
    let difference = found.means.test.difference;
    let mark = if significant { "*" } else { " " };
    let tone = match (column.better, difference.mean > 0.0) {
        _ if !significant => Tone::Plain,
        (Better::Neither, _) => Tone::Strong,
        (Better::Higher, true) | (Better::Lower, false) => Tone::Good,
        (Better::Higher, false) | (Better::Lower, true) => Tone::Bad,
    };
    GridCell::toned(format!("{}{mark}", with_half(Some(difference))), tone)
}

/// Returns all runs as JSON, each with the axes of the sweep and then the columns of the `runs` table.
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
                SummaryValue::Int(value) => (*value).into(),
                SummaryValue::Float(value) => (*value).into(),
                SummaryValue::Text(text) => text.clone().into(),
            };
            object.insert(name.clone(), json);
        }
        serde_json::Value::Object(object)
    };
    runs.iter().map(one).collect()
}

/// Describes the tasks that never started: one message for each policy and reason, with an example from the first such run.
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
        let reason = reason(*why);
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
                format!("{}{seed}: {} never started: {reason}; such as {examples}", run.policy, count(most, "task"))
            }
            runs => {
                let seed = if seed.is_empty() { seed } else { format!(" under {seed}") };
                let tasks = if least == most { count(most, "task") } else { format!("{least} to {most} tasks") };
                let example = examples.take(1).collect::<String>();
                format!("{}: {tasks} never started in {runs} runs: {reason}; such as {example}{seed}", run.policy)
            }
        }
    };
    found.iter().map(message).collect()
}

/// Describes why tasks never started.
fn reason(why: Stuck) -> &'static str {
    match why {
        Stuck::TooLarge => "too large for any machine, even an empty one",
        Stuck::Deadlocked => "deadlocked: they wait for a stage that never ends",
        Stuck::Starved => "starved: they waited until no event was left",
        Stuck::Cut => "still waiting at the horizon",
    }
}

/// Maximum number of runs without any started task that a sentence names.
const IDLE_MOST: usize = 3;

/// Returns a sentence on the runs without any started task, and the reasons; `None` if there are none.
pub fn idle(study: &Study, cells: &[Vec<RunSummary>]) -> Option<String> {
    let all = study.cells.iter().zip(cells).flat_map(|(plan, runs)| runs.iter().map(move |run| (plan, run)));
    let idle: Vec<(&Plan, &RunSummary)> = all.filter(|(_, run)| run.outcome.launched == 0).collect();
    let name = |(plan, run): &(&Plan, &RunSummary)| {
        let axes: Vec<(String, Vec<String>)> =
            plan.axes.iter().map(|(axis, value)| (axis.clone(), vec![shown(value)])).collect();
        let values: Vec<String> = axes.iter().flat_map(|(_, values)| values.clone()).collect();
        let cell = (!values.is_empty()).then(|| Scope { axes, ..Scope::default() }.cell_words(&values));
        let seed = run.seed.map(|seed| format!("seed {seed}"));
        let words: Vec<String> = cell.into_iter().chain([run.policy.clone()]).chain(seed).collect();
        let mut whys: Vec<String> = run.stuck.iter().map(|(why, tasks)| format!("{tasks} {}", reason(*why))).collect();
        if whys.is_empty() {
            whys.push("the workload has no tasks".to_owned());
        }
        format!("{} ({})", words.join(", "), whys.join("; "))
    };
    let shown: Vec<String> = idle.iter().take(IDLE_MOST).map(name).collect();
    let more = idle.len() - shown.len();
    let more = if more > 0 { format!(" and {} more", count(more as u64, "run")) } else { String::new() };
    (!idle.is_empty()).then(|| format!("no task ever started under {}{more}", shown.join(", ")))
}

/// Maximum number of groups per policy for which an unreturned amount is shown.
const UNRETURNED_MOST: usize = 3;

/// Returns the entry of a name in an insertion-ordered list, inserted if missing.
fn entry<'a, 'b, T: Default>(list: &'b mut Vec<(&'a str, T)>, name: &'a str) -> &'b mut T {
    let at = list.iter().position(|(known, _)| *known == name).unwrap_or_else(|| {
        list.push((name, T::default()));
        list.len() - 1
    });
    &mut list[at].1
}

/// Describes the amounts that groups could not give back, as means over runs: one message for each policy with such groups.
pub fn unreturned<'a>(runs: impl IntoIterator<Item = &'a RunSummary>) -> Vec<String> {
    let mut policies: Vec<Vec<&RunSummary>> = Vec::new();
    for run in runs {
        match policies.iter_mut().find(|known| known[0].policy == run.policy) {
            Some(known) => known.push(run),
            None => policies.push(vec![run]),
        }
    }
    let message = |runs: &Vec<&RunSummary>| {
        // Keyed by name, since cells of a sweep may have different groups and resources.
        let mut amounts: Vec<(&str, Vec<(&str, Vec<f64>)>)> = Vec::new();
        for run in runs {
            for group in &run.groups {
                let of = entry(&mut amounts, &group.name);
                for (dim, amount) in run.dims.iter().zip(&group.unreturned) {
                    entry(of, &dim.name).push(*amount);
                }
            }
        }
        let group = |(group, amounts): &(&str, Vec<(&str, Vec<f64>)>)| {
            let shown = |(name, each): &(&str, Vec<f64>)| {
                let mean = mean(each);
                (mean > 0.0).then(|| format!("{} {name} h", number(Some(mean))))
            };
            let amounts: Vec<String> = amounts.iter().filter_map(shown).collect();
            (!amounts.is_empty()).then(|| format!("'{group}' {}", amounts.join(" and ")))
        };
        let groups: Vec<String> = amounts.iter().filter_map(group).collect();
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
