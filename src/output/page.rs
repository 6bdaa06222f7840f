//! The report of a results folder: its tables, figures and words, made of what the Parquet tables hold.

use std::path::PathBuf;

use super::folder::Contents;
use super::gallery::{Drawn, Gallery};
use super::group_sheet;
use super::headline::{Better, Headline, headline};
use super::html::{self, Column, Figure, Report, Table as Sheet};
use super::numbers::{count, in_percent, with_half};
use super::picture::ENDINGS;
use super::read::{Part, Results};
use super::schema::Table;
use super::table::write_whole;
use crate::error::Result;
use crate::metrics::compare::LEVEL;
use crate::metrics::{BinRuns, Compared, Comparison, Interval, PolicyRuns, mean_interval};

/// Users up to this many get a table of their own.
const USERS_MOST: usize = 20;

/// Writes `report.html` with these figures and this plan to the results folder; returns the file.
pub fn write(results: &Results, gallery: &Gallery, plan: &str) -> Result<PathBuf> {
    let page = html::render(&Report { plan_toml: plan.to_owned(), ..report(results, gallery)? });
    let path = results.folder.join(html::FILE);
    write_whole(&path, page.as_bytes())?;
    Ok(path)
}

/// Everything the report says.
pub fn report(results: &Results, gallery: &Gallery) -> Result<Report> {
    let contents = &results.contents;
    let comparison = comparison(results)?;
    let mut notes: Vec<String> = missing(results).into_iter().collect();
    notes.extend(never_started(results)?);
    notes.extend(gallery.notes.iter().cloned());
    let columns = headline(&results.dims);
    // Two tables that fit a screen each: how long jobs took, and how well and fairly the cluster was used.
    let (delays, sharing) = columns.split_at(columns.iter().take_while(|column| !column.is_of_sharing()).count());
    let mut summary = vec![sheet(results, "How long jobs took", delays)?];
    summary.push(sheet(results, "How well and how fairly the cluster was used", sharing)?);
    if let Some(comparison) = &comparison {
        summary.push(reductions(comparison));
    }
    summary.extend(completion_by_bin(results)?);
    summary.extend(users(results)?);
    summary.extend(group_sheet::groups(results)?);
    Ok(Report {
        title: contents.name.clone(),
        question: contents.question.clone(),
        answer: comparison.as_ref().map(Comparison::sentences).unwrap_or_default(),
        summary,
        figures: gallery.figures.iter().map(inline).collect(),
        figures_first: false,
        plan_toml: contents.plan.clone(),
        reproduce: reproduce(contents),
        notes,
        provenance: provenance(results),
    })
}

/// A figure in the page, with links to its files.
pub fn inline(drawn: &Drawn) -> Figure {
    let has_data = !drawn.data.columns.is_empty();
    let endings = ENDINGS.into_iter().filter(|ending| *ending != "png" && (*ending != "csv" || has_data));
    let files = endings.map(|ending| format!("figures/{}.{ending}", drawn.name)).collect();
    Figure { caption: drawn.caption.clone(), svg: drawn.svg.clone(), files }
}

/// The command; an experiment needs its plan as a file.
fn reproduce(contents: &Contents) -> Vec<String> {
    let plan = contents.command.strip_prefix("plimsoll run ");
    let first = plan.map(|file| format!("# with the plan below as {file}"));
    first.into_iter().chain([contents.command.clone()]).collect()
}

/// What a result is made of, and whom it compares.
fn provenance(results: &Results) -> Vec<(String, String)> {
    let contents = &results.contents;
    let mut rows = vec![("policies".to_owned(), contents.policies.join(", "))];
    rows.push(("baseline".to_owned(), contents.baseline.clone()));
    rows.extend(results.provenance(&contents.plan).rows());
    rows
}

fn missing(results: &Results) -> Option<String> {
    let planned = results.contents.policies.len() * results.contents.seeds.len();
    let there = results.runs.len();
    (there < planned).then(|| format!("{there} of {planned} runs are here; the others have not ended."))
}

/// What never started, policy by policy.
fn never_started(results: &Results) -> Result<Vec<String>> {
    let parts = results.table(Table::Runs, &["tasks_never_started", "tasks"], None)?;
    let sum = |parts: &[Part], column: &str| -> Result<u64> {
        let values = parts.iter().map(|part| part.numbers(column)).collect::<Result<Vec<_>>>()?;
        Ok(values.into_iter().flatten().flatten().map(|value| value as u64).sum())
    };
    let mut notes = Vec::new();
    for group in parts.chunk_by(|a, b| a.policy == b.policy) {
        let (never, tasks) = (sum(group, "tasks_never_started")?, sum(group, "tasks")?);
        if never > 0 {
            let policy = &results.contents.policies[group[0].policy];
            notes.push(format!(
                "Under {policy}, {} of {} tasks never started: too large for any machine, starved, or cut off by the \
                 horizon; delays count finished jobs only.",
                count(never),
                count(tasks)
            ));
        }
    }
    Ok(notes)
}

pub(super) fn text_column(name: &str) -> Column {
    Column { name: name.to_owned(), explanation: String::new(), numeric: false }
}

pub(super) fn number_column(name: &str, explanation: &str) -> Column {
    Column { name: name.to_owned(), explanation: explanation.to_owned(), numeric: true }
}

pub(super) fn mean(values: &[Option<f64>]) -> Option<Interval> {
    let there: Vec<f64> = values.iter().copied().flatten().filter(|value| value.is_finite()).collect();
    mean_interval(&there, LEVEL)
}

/// The rows whose means are the best of a column; none where all are equal.
fn best(means: &[Option<Interval>], better: Better) -> Vec<usize> {
    let sign = match better {
        Better::Lower => -1.0,
        Better::Higher => 1.0,
        Better::Neither => return Vec::new(),
    };
    let score = |mean: &&Interval| sign * mean.mean;
    let Some(top) = means.iter().flatten().max_by(|a, b| score(a).total_cmp(&score(b))) else { return Vec::new() };
    // What reads the same is as good.
    let shown = |mean: &Interval| with_half(Some(*mean)).split(' ').next().unwrap_or_default().to_owned();
    let good = |mean: &Option<Interval>| mean.is_some_and(|mean| shown(&mean) == shown(top));
    let at: Vec<usize> = (0..means.len()).filter(|&row| good(&means[row])).collect();
    if at.len() == means.iter().flatten().count() { Vec::new() } else { at }
}

/// Which means a caption speaks of.
pub(super) fn over_seeds(results: &Results) -> String {
    match results.contents.seeds.len() {
        1 => String::new(),
        seeds => format!(", means over {seeds} seeds with the half-widths of their 95 % intervals"),
    }
}

/// Some columns of the `runs` table, one row a policy.
fn sheet(results: &Results, caption: &str, columns: &[Headline]) -> Result<Sheet> {
    let names: Vec<&str> = columns.iter().map(|column| column.column.as_str()).collect();
    let parts = results.table(Table::Runs, &names, None)?;
    let groups: Vec<&[Part]> = parts.chunk_by(|a, b| a.policy == b.policy).collect();
    let mut sheet = Sheet {
        caption: format!("{caption}{}", over_seeds(results)),
        columns: vec![text_column("policy")],
        rows: groups.iter().map(|group| vec![results.contents.policies[group[0].policy].clone()]).collect(),
        best: Vec::new(),
    };
    for (at, column) in columns.iter().enumerate() {
        sheet.columns.push(number_column(&column.heading, &column.about));
        let mut means = Vec::new();
        for group in &groups {
            let values = group.iter().map(|part| part.numbers(&column.column)).collect::<Result<Vec<_>>>()?;
            means.push(mean(&values.concat()));
        }
        fill(&mut sheet, at + 1, &means, column.better);
    }
    Ok(sheet)
}

/// Adds a column of means to a sheet and marks the best.
fn fill(sheet: &mut Sheet, column: usize, means: &[Option<Interval>], better: Better) {
    for (row, mean) in sheet.rows.iter_mut().zip(means) {
        row.push(cell(*mean));
    }
    sheet.best.extend(best(means, better).into_iter().map(|row| (row, column)));
}

/// The reductions behind the figure: one row a policy, one column a bin.
fn reductions(comparison: &Comparison) -> Sheet {
    let filled: Vec<usize> = (0..comparison.bins.len()).filter(|&at| comparison.bins[at].1 > 0).collect();
    let jobs = |label: &str, jobs: u64| number_column(label, &format!("{} jobs", count(jobs)));
    let bins = filled.iter().map(|&at| jobs(&comparison.bins[at].0, comparison.bins[at].1));
    let columns = [text_column("policy"), jobs("all", comparison.jobs)].into_iter().chain(bins).collect();
    let row = |policy: &Compared| {
        let cells = std::iter::once(&policy.all).chain(filled.iter().map(|&at| &policy.bins[at]));
        let cells = cells.map(|one| if one.interval.is_some() { in_percent(one) } else { String::new() });
        std::iter::once(policy.name.clone()).chain(cells).collect()
    };
    let caption = format!(
        "Reduction of mean completion time against {} in percent, by job size in tasks; paired by seed",
        comparison.baseline
    );
    Sheet { caption, columns, rows: comparison.policies.iter().map(row).collect(), best: Vec::new() }
}

fn completion_by_bin(results: &Results) -> Result<Option<Sheet>> {
    let policies = policy_runs(results)?;
    let bins = policies.first().map_or(0, |policy| policy.bins.len());
    let mut columns =
        vec![text_column("job size"), number_column("jobs", "finished under the first policy, all seeds")];
    columns.extend(policies.iter().map(|policy| number_column(&policy.name, "mean completion time in seconds")));
    let mut sheet = Sheet {
        caption: format!("Mean completion time in seconds by job size in tasks{}", over_seeds(results)),
        columns,
        ..Sheet::default()
    };
    for at in 0..bins {
        let first = &policies[0].bins[at];
        let jobs: u64 = first.jobs.iter().sum();
        if jobs == 0 {
            continue;
        }
        let means = policies.iter().map(|policy| mean(&policy.bins[at].completion_s)).collect();
        push_means(&mut sheet, [first.label.clone(), count(jobs)], means);
    }
    Ok((!sheet.rows.is_empty()).then_some(sheet))
}

/// Mean completion time of each user under each policy, while there are few users.
fn users(results: &Results) -> Result<Option<Sheet>> {
    let parts = results.table(Table::Users, &["user", "jobs_finished", "completion_mean_s"], None)?;
    let policies = results.contents.policies.len();
    // By user: jobs under the first policy, and completion times by policy.
    let mut users: Vec<(String, u64, Vec<Vec<Option<f64>>>)> = Vec::new();
    for part in &parts {
        let jobs = part.numbers("jobs_finished")?;
        let rows = part.names("user")?.into_iter().zip(jobs).zip(part.numbers("completion_mean_s")?);
        for ((user, jobs), completion) in rows {
            let at = users.iter().position(|(name, ..)| *name == user).unwrap_or_else(|| {
                users.push((user, 0, vec![Vec::new(); policies]));
                users.len() - 1
            });
            if users.len() > USERS_MOST {
                return Ok(None);
            }
            users[at].1 += if part.policy == parts[0].policy { jobs.unwrap_or(0.0) as u64 } else { 0 };
            users[at].2[part.policy].push(completion);
        }
    }
    users.sort_by_key(|(_, jobs, _)| std::cmp::Reverse(*jobs));
    let mut columns = vec![text_column("user"), number_column("jobs", "finished under the first policy, all seeds")];
    let names = results.contents.policies.iter();
    columns.extend(names.map(|policy| number_column(policy, "mean completion time of its jobs in seconds")));
    let caption = format!("Mean completion time in seconds by user{}", over_seeds(results));
    let mut sheet = Sheet { caption, columns, ..Sheet::default() };
    for (user, jobs, completion) in &users {
        push_means(&mut sheet, [user.clone(), count(*jobs)], completion.iter().map(|values| mean(values)).collect());
    }
    Ok((!sheet.rows.is_empty()).then_some(sheet))
}

/// Adds a row of completion times, one a policy behind two leading cells, and marks the shortest.
fn push_means(sheet: &mut Sheet, leading: [String; 2], means: Vec<Option<Interval>>) {
    let row = sheet.rows.len();
    sheet.best.extend(best(&means, Better::Lower).into_iter().map(|policy| (row, policy + leading.len())));
    sheet.rows.push(leading.into_iter().chain(means.into_iter().map(cell)).collect());
}

pub(super) fn cell(mean: Option<Interval>) -> String {
    mean.map(|mean| with_half(Some(mean))).unwrap_or_default()
}

/// The policies against the baseline. `None` if the baseline is alone.
pub fn comparison(results: &Results) -> Result<Option<Comparison>> {
    Ok(Comparison::of(&policy_runs(results)?, &results.contents.baseline))
}

/// Mean completion times, seed by seed; runs that are not there are absent values.
fn policy_runs(results: &Results) -> Result<Vec<PolicyRuns>> {
    let seeds = results.contents.seeds.len();
    let empty = |name: &String| PolicyRuns { name: name.clone(), completion_s: vec![None; seeds], bins: Vec::new() };
    let mut policies: Vec<PolicyRuns> = results.contents.policies.iter().map(empty).collect();
    for part in results.table(Table::Runs, &["completion_mean_s"], None)? {
        let mean = part.numbers("completion_mean_s")?.first().copied().flatten();
        policies[part.policy].completion_s[part.run] = mean;
    }
    let parts = results.table(Table::Bins, &["bin", "jobs", "completion_mean_s"], None)?;
    let Some(first) = parts.first() else { return Ok(policies) };
    for label in first.names("bin")? {
        let bin = BinRuns { label, jobs: vec![0; seeds], completion_s: vec![None; seeds] };
        policies.iter_mut().for_each(|policy| policy.bins.push(bin.clone()));
    }
    for part in &parts {
        let rows = part.names("bin")?.into_iter().zip(part.numbers("jobs")?).zip(part.numbers("completion_mean_s")?);
        for ((label, jobs), mean) in rows {
            let bins = &mut policies[part.policy].bins;
            if let Some(bin) = bins.iter_mut().find(|bin| bin.label == label) {
                bin.jobs[part.run] = jobs.unwrap_or(0.0) as u64;
                bin.completion_s[part.run] = mean;
            }
        }
    }
    Ok(policies)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_are_those_that_read_best_among_others() {
        let mean = |mean: f64| Some(Interval { mean, low: None, high: None, n: 1 });
        assert_eq!(best(&[mean(3.0), mean(1.0), None, mean(1.0)], Better::Lower), [1, 3]);
        assert_eq!(best(&[mean(3.0), mean(1.0), None], Better::Higher), [0]);
        assert!(best(&[mean(3.0), mean(1.0)], Better::Neither).is_empty());
        assert!(best(&[mean(3.0), None], Better::Lower).is_empty(), "one value is no contest");
        assert!(best(&[mean(3.0), mean(3.0)], Better::Lower).is_empty());
        assert!(best(&[None], Better::Lower).is_empty());
    }
}
