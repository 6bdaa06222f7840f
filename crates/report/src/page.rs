//! The report of a results folder: its tables, figures and text, generated from the Parquet tables.
//!
//! The report answers the question of the plan first, with the comparison of the policies, then shows means, figures, the plan and the
//! provenance. It reads only tables of complete runs.

use plimsoll_base::column::Better;
use plimsoll_base::error::Result;
use plimsoll_charts::figure::MANY;
use plimsoll_figures::gallery::{Drawn, Gallery};
use plimsoll_figures::picture::ENDINGS;
use plimsoll_metrics::compare::{ALPHA, LEVEL, is_significant};
use plimsoll_metrics::numbers::{count, in_percent, thousands, with_half};
use plimsoll_metrics::{Compared, Comparison, Contest, Design, Interval, PolicyRuns, Tested, mean_interval};
use plimsoll_results::comparison::{comparison, policy_runs};
use plimsoll_results::files::REPORT;
use plimsoll_results::folder::Contents;
use plimsoll_results::read::{Part, Results};
use plimsoll_results::schema::Table;
use plimsoll_store::file::{WrittenFile, write_whole};

use crate::explore::{self, JobStory, SimulatorData};
use crate::group_sheet;
use crate::headline::{Headline, Topic, headline};
use crate::html::{self, Figure, HtmlColumn, HtmlTable as Sheet, Mark, Report};
use crate::left_over;
use crate::marks::{ShownMetric, mark};
use crate::over_commit;

/// Maximum number of users; with more users the report has no table of users.
const USERS_MOST: usize = 20;

/// The parts of a page that need repetitions of runs.
#[derive(Clone, Debug, Default)]
pub struct PageExtras {
    /// Explanations of the waits of some jobs.
    pub stories: Vec<JobStory>,
    /// The part that simulates.
    pub simulator: Option<SimulatorData>,
}

/// Writes `report.html` with these figures, this plan and these extras to the results folder; returns the file.
pub fn write(results: &Results, pictures: &Pictures, plan: &str, extras: &PageExtras) -> Result<WrittenFile> {
    let page = html::render(&Report { plan_toml: plan.to_owned(), ..report(results, pictures, extras)? });
    write_whole(&results.folder.join(REPORT), page.as_bytes())
}

/// Returns the content of the report.
fn report(results: &Results, pictures: &Pictures, extras: &PageExtras) -> Result<Report> {
    let contents = &results.contents;
    let comparison = comparison(results)?;
    let mut notes: Vec<String> = results.missing().into_iter().collect();
    notes.extend(never_started(results)?);
    notes.extend(left_over::notes(results)?);
    notes.extend(pictures.gallery.notes.iter().cloned());
    let columns = headline(&results.dims);
    // Two tables that each fit a screen: delays of jobs, and usage and fairness of the cluster.
    let (delays, sharing) = columns.split_at(columns.partition_point(|column| column.topic == Topic::Delay));
    let mut summary = vec![sheet(results, "How long jobs took", delays)?];
    summary.push(sheet(results, "How well and how fairly the cluster was used", sharing)?);
    summary.extend(completion_by_bin(results)?);
    summary.extend(users(results)?);
    summary.extend(group_sheet::groups(results)?);
    let mut answer = match &comparison {
        Some(comparison) => comparison.claims(),
        None => alone(results)?,
    };
    answer.extend(over_commit::of_results([results])?);
    Ok(Report {
        title: contents.name.clone(),
        question: contents.question.clone(),
        answer,
        lead: comparison.iter().map(reductions).collect(),
        summary,
        figures: pictures.inline(),
        figures_first: true,
        plan_toml: contents.plan.clone(),
        reproduce: reproduce(contents),
        notes,
        provenance: provenance(results),
        explorer: explore::data(&[("", &[], results)], &[], &extras.stories)?,
        simulator: extras.simulator.clone(),
    })
}

/// The figures of a page, in two widths.
pub struct Pictures<'a> {
    /// The figures in their normal width.
    pub gallery: &'a Gallery,
    /// The same figures, drawn for a narrow screen.
    pub narrow: &'a Gallery,
}

impl Pictures<'_> {
    /// Returns the figures with links to their files; figures that do not fit a narrow screen are included in two widths.
    pub(crate) fn inline(&self) -> Vec<Figure> {
        let one = |drawn: &Drawn| {
            let narrow = self.narrow.figures.iter().find(|narrow| narrow.name == drawn.name);
            let narrow = narrow.filter(|_| html::width(&drawn.svg) > html::ROOMY).map(|narrow| narrow.svg.clone());
            Figure { narrow: narrow.unwrap_or_default(), ..inline(drawn) }
        };
        self.gallery.figures.iter().map(one).collect()
    }
}

/// The width of figures for a narrow screen, in points.
pub const NARROW: f64 = 270.0;

/// Returns a figure in the page, with links to its files.
pub fn inline(drawn: &Drawn) -> Figure {
    let has_data = !drawn.data.columns.is_empty();
    let endings = ENDINGS.into_iter().filter(|ending| *ending != "png" && (*ending != "csv" || has_data));
    let files = endings.map(|ending| format!("figures/{}.{ending}", drawn.name)).collect();
    Figure { caption: drawn.caption.clone(), svg: drawn.svg.clone(), files, ..Figure::default() }
}

/// Returns the commands that reproduce the results; an experiment also needs its plan as a file.
fn reproduce(contents: &Contents) -> Vec<String> {
    // Older results have a comment after the command.
    let command = contents.command.split("  # ").next().unwrap_or_default();
    let first = command.strip_prefix("plimsoll run ").map(|file| format!("# with the plan below as {file}"));
    first.into_iter().chain([command.to_owned()]).collect()
}

/// Returns the provenance of a result, and the policies that it compares.
fn provenance(results: &Results) -> Vec<(String, String)> {
    let contents = &results.contents;
    let mut rows = vec![("policies".to_owned(), contents.policies.join(", "))];
    rows.push(("baseline".to_owned(), contents.baseline.clone()));
    rows.extend(results.provenance(&contents.plan).rows());
    rows
}

/// Returns the sentences for results without a comparison: completion times of jobs.
fn alone(results: &Results) -> Result<Vec<String>> {
    let policies = policy_runs(results)?;
    let taken = policies.iter().filter_map(|policy| Some((policy, mean(&policy.completion_s)?)));
    let said = taken.map(|(policy, mean)| {
        format!(
            "Mean completion time under {}: {} s; no other policy is compared with it.",
            policy.name,
            with_half(Some(mean))
        )
    });
    Ok(said.collect())
}

/// Describes the tasks that never started, by policy.
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
                thousands(never),
                thousands(tasks)
            ));
        }
    }
    Ok(notes)
}

pub(crate) fn text_column(name: &str) -> HtmlColumn {
    HtmlColumn { name: name.to_owned(), explanation: String::new(), numeric: false }
}

pub(crate) fn number_column(name: &str, explanation: &str) -> HtmlColumn {
    HtmlColumn { name: name.to_owned(), explanation: explanation.to_owned(), numeric: true }
}

pub(crate) fn mean(values: &[Option<f64>]) -> Option<Interval> {
    let there: Vec<f64> = values.iter().copied().flatten().filter(|value| value.is_finite()).collect();
    mean_interval(&there, LEVEL)
}

/// Describes the kind of means for a caption.
pub(crate) fn over_seeds(results: &Results) -> String {
    match results.contents.seeds.len() {
        1 => String::new(),
        seeds => format!(", means over {seeds} seeds with the half-widths of their 95 % confidence intervals"),
    }
}

/// Returns some columns of the `runs` table, one row per policy.
fn sheet(results: &Results, caption: &str, columns: &[Headline]) -> Result<Sheet> {
    let names: Vec<&str> = columns.iter().map(|column| column.column.as_str()).collect();
    let parts = results.table(Table::Runs, &names, None)?;
    let groups: Vec<&[Part]> = parts.chunk_by(|a, b| a.policy == b.policy).collect();
    let mut sheet = Sheet {
        caption: format!("{caption}{}", over_seeds(results)),
        columns: vec![text_column("policy")],
        rows: groups.iter().map(|group| vec![results.contents.policies[group[0].policy].clone()]).collect(),
        ..Sheet::default()
    };
    let mut shown = Vec::new();
    for column in columns {
        let mut values = Vec::new();
        for group in &groups {
            let mut of_policy = vec![None; results.width()];
            for part in *group {
                of_policy[part.run] = part.numbers(&column.column)?.first().copied().flatten();
            }
            values.push(of_policy);
        }
        // A column without values is omitted.
        if values.iter().flatten().all(Option::is_none) {
            continue;
        }
        let at = sheet.columns.len();
        sheet.columns.push(number_column(&column.heading, &column.about));
        sheet.rows.iter_mut().zip(&values).for_each(|(row, values)| row.push(cell(mean(values))));
        let cells = (0..groups.len()).map(|row| (row, at)).collect();
        shown.push(ShownMetric { contest: Contest { better: column.better, values }, cells });
    }
    mark(&mut sheet, results.contents.design(), shown);
    Ok(sheet)
}

/// Returns the reductions that the figure `reduction` shows: one row per policy, one column per bin.
fn reductions(comparison: &Comparison) -> Sheet {
    let jobs = |label: &str, jobs: u64| number_column(label, &count(jobs, "job"));
    let bins = comparison.bins.iter().map(|(label, in_bin)| jobs(label, *in_bin));
    let columns = [text_column("policy"), jobs("all", comparison.jobs)].into_iter().chain(bins).collect();
    let row = |policy: &Compared| {
        let cell = |one: &Option<Tested>| one.map(|one| in_percent(one.reduction())).unwrap_or_default();
        std::iter::once(policy.name.clone()).chain(policy.against_baseline.iter().map(cell)).collect()
    };
    let significant = |(row, policy): (usize, &Compared)| -> Vec<(usize, usize, Mark)> {
        let tests = policy.against_baseline.iter().enumerate();
        let found = tests.filter(|(_, one)| one.is_some_and(|one| is_significant(one.holm.p)));
        found.map(|(column, _)| (row, column + 1, Mark::Significant)).collect()
    };
    let design = match comparison.design {
        Design::Paired => "paired by seed",
        Design::Unpaired => "of means, since each policy served another mix of jobs",
    };
    let note = match comparison.family {
        0 => comparison.method(),
        _ => format!(
            "{} Bold: the reduction is statistically significant, p < {ALPHA} after that correction.",
            comparison.method()
        ),
    };
    Sheet {
        caption: format!(
            "Reduction of mean completion time against {} in percent of its mean, by job size in tasks; {design}",
            comparison.baseline
        ),
        columns,
        rows: comparison.policies.iter().map(row).collect(),
        marks: comparison.policies.iter().enumerate().flat_map(significant).collect(),
        note,
        links: Vec::new(),
    }
}

fn completion_by_bin(results: &Results) -> Result<Option<Sheet>> {
    let policies = policy_runs(results)?;
    let completion = Table::Bins.column("completion_mean_s");
    let bins = policies.first().map_or(0, |policy| policy.bins.len());
    let filled = |policy: &PolicyRuns| policy.bins.iter().filter(|bin| bin.jobs.iter().sum::<u64>() > 0).count();
    // A single bin would repeat the means of all jobs.
    if policies.first().is_none_or(|policy| filled(policy) < 2) {
        return Ok(None);
    }
    let mut columns =
        vec![text_column("job size"), number_column("jobs", "finished under the first policy, all seeds")];
    columns.extend(policies.iter().map(|policy| number_column(&policy.name, "mean completion time in seconds")));
    let mut sheet = Sheet {
        caption: format!("Mean completion time in seconds by job size in tasks{}", over_seeds(results)),
        columns,
        ..Sheet::default()
    };
    let mut shown = Vec::new();
    for at in 0..bins {
        let first = &policies[0].bins[at];
        let jobs: u64 = first.jobs.iter().sum();
        if jobs == 0 {
            continue;
        }
        let values = policies.iter().map(|policy| policy.bins[at].completion_s.clone()).collect();
        shown.push(push_means(&mut sheet, vec![first.label.clone(), thousands(jobs)], completion.better, values));
    }
    mark(&mut sheet, results.contents.design(), shown);
    Ok((!sheet.rows.is_empty()).then(|| upright(sheet, 2, policies.len())))
}

/// Returns the mean completion time of each user under each policy, if there are few users.
fn users(results: &Results) -> Result<Option<Sheet>> {
    let parts = results.table(Table::Users, &["user", "jobs_finished", "completion_mean_s"], None)?;
    let policies = results.contents.policies.len();
    // By user: its number of jobs under the first policy, and completion times by policy.
    let mut users: Vec<(String, u64, Vec<Vec<Option<f64>>>)> = Vec::new();
    for part in &parts {
        let jobs = part.numbers("jobs_finished")?;
        let rows = part.names("user")?.into_iter().zip(jobs).zip(part.numbers("completion_mean_s")?);
        for ((user, jobs), completion) in rows {
            let at = users.iter().position(|(name, ..)| *name == user).unwrap_or_else(|| {
                users.push((user, 0, vec![vec![None; results.width()]; policies]));
                users.len() - 1
            });
            if users.len() > USERS_MOST {
                return Ok(None);
            }
            users[at].1 += if part.policy == parts[0].policy { jobs.unwrap_or(0.0) as u64 } else { 0 };
            users[at].2[part.policy][part.run] = completion;
        }
    }
    users.sort_by_key(|(_, jobs, _)| std::cmp::Reverse(*jobs));
    let mut columns = vec![text_column("user"), number_column("jobs", "finished under the first policy, all seeds")];
    let names = results.contents.policies.iter();
    columns.extend(names.map(|policy| number_column(policy, "mean completion time of its jobs in seconds")));
    let completion = Table::Users.column("completion_mean_s");
    let caption = format!("Mean completion time in seconds by user{}", over_seeds(results));
    let mut sheet = Sheet { caption, columns, ..Sheet::default() };
    let row = |(user, jobs, values)| push_means(&mut sheet, vec![user, thousands(jobs)], completion.better, values);
    let shown = users.into_iter().map(row).collect();
    mark(&mut sheet, results.contents.design(), shown);
    Ok((!sheet.rows.is_empty()).then(|| upright(sheet, 2, policies)))
}

/// Returns a sheet with one column per policy after the leading columns; if there are many policies, it is transposed to one row per
/// policy, since the page is not wide enough.
pub(crate) fn upright(sheet: Sheet, leading: usize, policies: usize) -> Sheet {
    if policies > MANY { sheet.turned(leading, "policy") } else { sheet }
}

/// Adds a row with means, one per policy after the leading cells.
pub(crate) fn push_means(
    sheet: &mut Sheet,
    leading: Vec<String>,
    better: Better,
    values: Vec<Vec<Option<f64>>>,
) -> ShownMetric {
    let (row, first) = (sheet.rows.len(), leading.len());
    sheet.rows.push(leading.into_iter().chain(values.iter().map(|values| cell(mean(values)))).collect());
    let cells = (0..values.len()).map(|policy| (row, policy + first)).collect();
    ShownMetric { contest: Contest { better, values }, cells }
}

pub(crate) fn cell(mean: Option<Interval>) -> String {
    mean.map(|mean| with_half(Some(mean))).unwrap_or_default()
}
