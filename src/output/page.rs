//! The report of a results folder: its tables, figures and words, made of what the Parquet tables hold.

use super::gallery::Gallery;
use super::headline::{Better, headline};
use super::html::{self, Column, Figure, Report, Table as Sheet};
use super::numbers::{count, with_half};
use super::read::{Part, Results};
use super::schema::Table;
use super::table::write_whole;
use crate::error::Result;
use crate::metrics::compare::{LEVEL, percent};
use crate::metrics::{BinRuns, Comparison, Interval, PolicyRuns, Reduction, mean_interval};

/// Users up to this many get a table of their own.
const USERS_MOST: usize = 20;

/// Writes `report.html` with these figures to the results folder.
pub fn write(results: &Results, gallery: &Gallery) -> Result<()> {
    let page = html::render(&report(results, gallery)?);
    write_whole(&results.folder.join("report.html"), page.as_bytes())
}

/// Everything the report says.
pub fn report(results: &Results, gallery: &Gallery) -> Result<Report> {
    let contents = &results.contents;
    let comparison = comparison(results)?;
    let mut notes: Vec<String> = comparison.as_ref().map(Comparison::sentences).unwrap_or_default();
    notes.extend(missing(results));
    notes.extend(never_started(results)?);
    notes.extend(gallery.notes.iter().cloned());
    let mut summary = vec![summary(results)?];
    if let Some(comparison) = &comparison {
        summary.push(reductions(comparison));
    }
    summary.extend(completion_by_bin(results)?);
    summary.extend(users(results)?);
    let figure = |drawn: &super::gallery::Drawn| Figure {
        caption: drawn.caption.clone(),
        svg: drawn.svg.clone(),
        file: format!("figures/{}.svg", drawn.name),
    };
    Ok(Report {
        title: contents.name.clone(),
        question: contents.question.clone(),
        summary,
        figures: gallery.figures.iter().map(figure).collect(),
        plan_toml: contents.plan.clone(),
        reproduce: vec![contents.command.clone()],
        notes,
        provenance: provenance(results),
    })
}

fn provenance(results: &Results) -> Vec<(String, String)> {
    let contents = &results.contents;
    let mut rows = vec![("policies".to_owned(), contents.policies.join(", "))];
    rows.push(("baseline".to_owned(), contents.baseline.clone()));
    let seeds: Vec<u64> = contents.seeds.iter().flatten().copied().collect();
    match (seeds.first(), seeds.last()) {
        (Some(first), Some(last)) if first != last => rows.push(("seeds".to_owned(), format!("{first} to {last}"))),
        (Some(only), _) => rows.push(("seed".to_owned(), only.to_string())),
        _ => {}
    }
    let metadata = results.metadata.iter().filter(|(key, _)| key != "plimsoll.plan");
    let plain = |key: &str| key.strip_prefix("plimsoll.").map(|key| key.replace('_', " "));
    rows.extend(metadata.filter_map(|(key, value)| Some((plain(key)?, value.clone()))));
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

fn text_column(name: &str) -> Column {
    Column { name: name.to_owned(), explanation: String::new(), numeric: false }
}

fn number_column(name: &str, explanation: &str) -> Column {
    Column { name: name.to_owned(), explanation: explanation.to_owned(), numeric: true }
}

fn mean(values: &[Option<f64>]) -> Option<Interval> {
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
    let scores: Vec<Option<f64>> = means.iter().map(|mean| mean.map(|mean| sign * mean.mean)).collect();
    let top = scores.iter().flatten().copied().fold(f64::NEG_INFINITY, f64::max);
    let at: Vec<usize> = (0..scores.len()).filter(|&row| scores[row] == Some(top)).collect();
    if at.len() == scores.len() { Vec::new() } else { at }
}

/// Which means a caption speaks of.
fn over_seeds(results: &Results) -> String {
    match results.contents.seeds.len() {
        1 => String::new(),
        seeds => format!(", means over {seeds} seeds with the half-widths of their 95 % intervals"),
    }
}

fn summary(results: &Results) -> Result<Sheet> {
    let columns = headline(&results.dims);
    let names: Vec<&str> = columns.iter().map(|column| column.column.as_str()).collect();
    let parts = results.table(Table::Runs, &names, None)?;
    let groups: Vec<&[Part]> = parts.chunk_by(|a, b| a.policy == b.policy).collect();
    let mut sheet = Sheet {
        caption: format!("The policies compared{}", over_seeds(results)),
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
        row.push(mean.map(|mean| with_half(Some(mean))).unwrap_or_default());
    }
    sheet.best.extend(best(means, better).into_iter().map(|row| (row, column)));
}

/// The reductions behind the figure: one row a policy, one column a bin.
fn reductions(comparison: &Comparison) -> Sheet {
    let mut columns = vec![text_column("policy"), number_column("all", &format!("{} jobs", count(comparison.jobs)))];
    let bins = comparison.bins.iter();
    columns.extend(bins.map(|(label, jobs)| number_column(label, &format!("{} jobs", count(*jobs)))));
    let cell = |reduction: &Reduction| reduction.interval.map(percent).unwrap_or_default();
    let row = |policy: &crate::metrics::Compared| {
        let cells = std::iter::once(&policy.all).chain(&policy.bins).map(cell);
        std::iter::once(policy.name.clone()).chain(cells).collect()
    };
    let caption = format!(
        "Reduction of mean completion time against {}, by job size in tasks; pairs of runs with the same seed",
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
        let means: Vec<Option<Interval>> = policies.iter().map(|policy| mean(&policy.bins[at].completion_s)).collect();
        let row = sheet.rows.len();
        sheet.best.extend(best(&means, Better::Lower).into_iter().map(|policy| (row, policy + 2)));
        let cells = means.iter().map(|mean| mean.map(|mean| with_half(Some(mean))).unwrap_or_default());
        sheet.rows.push([first.label.clone(), count(jobs)].into_iter().chain(cells).collect());
    }
    Ok((!sheet.rows.is_empty()).then_some(sheet))
}

/// What each user got, while there are few of them.
fn users(results: &Results) -> Result<Option<Sheet>> {
    let columns = [
        ("jobs", "jobs_finished"),
        ("dominant share", "dominant_share"),
        ("completion s", "completion_mean_s"),
        ("wait s", "wait_mean_s"),
        ("slowdown", "slowdown_mean"),
        ("shortfall", "shortfall"),
    ];
    let names: Vec<&str> = std::iter::once("user").chain(columns.iter().map(|(_, column)| *column)).collect();
    let described = Table::Users.columns(&results.dims);
    let about = |column: &str| described.iter().find(|one| one.field.name == column).map_or("", |one| &one.about);
    let parts = results.table(Table::Users, &names, None)?;
    let mut all: Vec<String> = Vec::new();
    for part in &parts {
        for user in part.names("user")? {
            if !all.contains(&user) {
                all.push(user);
            }
            if all.len() > USERS_MOST {
                return Ok(None);
            }
        }
    }
    let mut sheet = Sheet {
        caption: format!("What each user got{}", over_seeds(results)),
        columns: vec![text_column("user"), text_column("policy")],
        ..Sheet::default()
    };
    sheet.columns.extend(columns.iter().map(|(heading, column)| number_column(heading, about(column))));
    let groups: Vec<&[Part]> = parts.chunk_by(|a, b| a.policy == b.policy).collect();
    for user in &all {
        for group in &groups {
            let mut row = vec![user.clone(), results.contents.policies[group[0].policy].clone()];
            for (_, column) in columns {
                let mut values = Vec::new();
                for part in *group {
                    let of_user = part.names("user")?.into_iter().zip(part.numbers(column)?);
                    values.extend(of_user.filter(|(name, _)| name == user).map(|(_, value)| value));
                }
                let interval = mean(&values);
                row.push(if interval.is_some() { with_half(interval) } else { String::new() });
            }
            sheet.rows.push(row);
        }
    }
    Ok((!sheet.rows.is_empty()).then_some(sheet))
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
