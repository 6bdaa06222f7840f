//! The overview page of a sweep: the answer in words, the differences behind it, figures, and every cell under every policy.
//!
//! The sentences and tests cover the metrics that the plan's figures show. Policies are compared with the baseline of their cell; with a
//! single policy, cells are compared with the first one.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use plimsoll_base::column::{Better, Unit};
use plimsoll_base::error::Result;
use plimsoll_figures::requests::{Whole, heading};
use plimsoll_metrics::compare::{ALPHA, LEVEL, is_significant, p_number};
use plimsoll_metrics::numbers::{count, in_percent, number, with_half};
use plimsoll_metrics::verdict::{OPEN, equivalent_words};
use plimsoll_metrics::{Design, MeanDifference, TestVerdict, Tested, corrected, difference};
use plimsoll_results::files::REPORT;
use plimsoll_results::provenance::Provenance;
use plimsoll_results::read::Results;
use plimsoll_results::schema::Table;
use plimsoll_results::shell::quoted;
use plimsoll_store::file::{WrittenFile, write_whole};

use crate::explore::{self, ExploredCell, ExplorerData};
use crate::headline::{Headline, headline};
use crate::html::{self, HtmlColumn, HtmlTable as Sheet, Mark, Report};
use crate::marks::mark;
use crate::over_commit;
use crate::page::{Pictures, number_column, push_means, text_column, upright};

/// The sweep of the page.
pub struct SweepReport<'a> {
    /// The title of the page.
    pub name: &'a str,
    /// The question that the sweep answers.
    pub question: Option<&'a str>,
    /// The plan.
    pub plan: &'a str,
    /// The results of all cells.
    pub whole: &'a Whole,
    /// The folders of the cells' results, below the sweep's folder.
    pub folders: &'a [String],
    /// The columns of the `runs` table that the figures show; the page describes their differences in words.
    pub metrics: &'a [String],
    /// The provenance of all results.
    pub provenance: &'a Provenance,
}

/// Maximum number of metrics that the page describes in sentences.
const METRICS_MOST: usize = 4;

/// Maximum number of cells that a sentence names.
const NAMED_MOST: usize = 4;

/// The default metric, for plans with no metric in their figures.
const METRIC: &str = "completion_mean_s";

/// A comparison: of a policy with the baseline of its cell, or, if there is only one policy, of a cell with the first one.
struct ComparisonLine {
    cell: usize,
    policy: String,
    /// The baseline, or the first cell.
    base: String,
    /// The family of the line: the p-values of a family are corrected together. With several policies, the lines of a cell are a family, so
    /// that the verdicts equal those of a plan with this cell alone; if cells are compared, all lines are one family.
    family: usize,
    tested: Tested,
}

impl ComparisonLine {
    /// Describes the change with its interval: in percent of the base, or absolute if the base is 0.
    fn change(&self) -> String {
        let means = &self.tested.means;
        match means.relative {
            Some(relative) => format!("{} %", with_sign(in_percent(Some(relative)), relative.mean)),
            None => with_sign(with_half(Some(means.test.difference)), means.test.difference.mean),
        }
    }
}

/// Adds a plus sign to a positive number.
fn with_sign(text: String, value: f64) -> String {
    if value > 0.0 { format!("+{text}") } else { text }
}

/// Writes `report.html` in the sweep's folder, with figures over all cells. Errors: a table cannot be read, or the page cannot be written.
pub fn write(sweep: &SweepReport, folder: &Path, pictures: &Pictures) -> Result<WrittenFile> {
    let (mut answer, mut lead) = (Vec::new(), Vec::new());
    let own = [METRIC.to_owned()];
    let metrics = if sweep.metrics.is_empty() { &own } else { sweep.metrics };
    let metrics = &metrics[..metrics.len().min(METRICS_MOST)];
    let headlines = headline(&sweep.whole.scope().dims);
    let columns = metrics.iter().chain(headlines.iter().map(|one| &one.column)).map(String::as_str);
    let columns: Vec<&str> = columns.collect::<BTreeSet<_>>().into_iter().collect();
    let values = read(sweep.whole, &columns)?;
    for metric in metrics {
        let lines = lines(sweep.whole, metric, &values);
        answer.extend(sentences(sweep.whole, metric, &lines));
        lead.extend(differences(sweep, metric, &lines));
    }
    if lead.is_empty() {
        answer.push("There is nothing to compare.".to_owned());
    }
    answer.extend(over_commit::of_results(sweep.whole.cells.iter().map(|(.., results)| results))?);
    let report = Report {
        title: sweep.name.to_owned(),
        question: sweep.question.map(str::to_owned),
        answer,
        lead,
        summary: summary(sweep, &headlines, &values),
        plan_toml: sweep.plan.to_owned(),
        reproduce: vec![
            format!("# with the plan below as {}.toml", sweep.name),
            format!("plimsoll run {}", quoted(&format!("{}.toml", sweep.name))),
        ],
        figures: pictures.inline(),
        figures_first: true,
        provenance: sweep.provenance.rows(),
        explorer: explorer(sweep)?,
        ..Report::default()
    };
    write_whole(&folder.join(REPORT), html::render(&report).as_bytes())
}

/// Returns the data of the interactive part.
fn explorer(sweep: &SweepReport) -> Result<Option<ExplorerData>> {
    let cells = sweep.whole.cells.iter();
    let cells: Vec<ExploredCell> = cells.map(|(name, values, results)| (name.as_str(), &values[..], results)).collect();
    explore::data(&cells, &explore::axes(sweep.whole), &[])
}

/// Values by policy and run.
type MetricValues = Vec<Vec<Option<f64>>>;

/// Reads columns of the `runs` table; returns them by cell and column.
fn read(whole: &Whole, columns: &[&str]) -> Result<Vec<HashMap<String, MetricValues>>> {
    let one = |results: &Results| {
        let empty = vec![vec![None; results.width()]; results.contents.policies.len()];
        let mut found: HashMap<String, MetricValues> =
            columns.iter().map(|&name| (name.to_owned(), empty.clone())).collect();
        for part in results.table(Table::Runs, columns, None)? {
            for (name, values) in &mut found {
                let value = part.numbers(name)?.first().copied().flatten();
                values[part.policy][part.run] = value.filter(|value| value.is_finite());
            }
        }
        Ok(found)
    };
    whole.cells.iter().map(|(.., results)| one(results)).collect()
}

/// Returns all comparisons of a metric, corrected for multiple testing.
fn lines(whole: &Whole, metric: &str, values: &[HashMap<String, MetricValues>]) -> Vec<ComparisonLine> {
    let mut lines = Vec::new();
    let mut first: Option<(String, Design, Vec<Option<f64>>)> = None;
    for (at, ((.., results), values)) in whole.cells.iter().zip(values).enumerate() {
        let (contents, design) = (&results.contents, results.contents.design());
        let values = &values[metric];
        let several = contents.policies.len() > 1;
        let line = |policy: &str, base: &str, means: MeanDifference| ComparisonLine {
            cell: at,
            family: if several { at } else { 0 },
            policy: policy.to_owned(),
            base: base.to_owned(),
            tested: Tested::new(means),
        };
        if several {
            let Some(baseline) = contents.policies.iter().position(|policy| *policy == contents.baseline) else {
                continue;
            };
            for (policy, own) in
                contents.policies.iter().zip(values).filter(|(policy, _)| **policy != contents.baseline)
            {
                let found = difference(design, &values[baseline], own, LEVEL);
                lines.extend(found.map(|means| line(policy, &contents.baseline, means)));
            }
            continue;
        }
        let Some(mut own) = values.first().cloned() else { continue };
        match &mut first {
            None => first = Some((cell_words(whole, at), design, own)),
            Some((base, of_first, base_values)) => {
                // Cells may have different numbers of seeds; equal seeds are paired by position.
                let most = own.len().max(base_values.len());
                own.resize(most, None);
                base_values.resize(most, None);
                let design = if *of_first == Design::Unpaired { Design::Unpaired } else { design };
                let found = difference(design, base_values, &own, LEVEL);
                lines.extend(found.map(|means| line(&contents.policies[0], base, means)));
            }
        }
    }
    let families: Vec<String> = lines.iter().map(|line| line.family.to_string()).collect();
    let after = corrected(families.iter().zip(&lines).map(|(family, line)| (family.as_str(), line.tested.means.test)));
    lines.iter_mut().zip(after).for_each(|(line, holm)| line.tested.holm = holm);
    lines
}

/// Returns a sentence per policy: the cells where the metric differs from its base, and the differences.
fn sentences(whole: &Whole, metric: &str, lines: &[ComparisonLine]) -> Vec<String> {
    let mut policies: Vec<&str> = Vec::new();
    for line in lines {
        if !policies.contains(&line.policy.as_str()) {
            policies.push(&line.policy);
        }
    }
    let title = heading(metric, &whole.scope().dims);
    let sentence = |policy: &&str| {
        let own: Vec<&ComparisonLine> = lines.iter().filter(|line| line.policy == **policy).collect();
        let of = |verdict: TestVerdict| {
            own.iter().copied().filter(|line| line.tested.verdict() == verdict).collect::<Vec<_>>()
        };
        let significant = |way: &str, verdict: TestVerdict| {
            let found = of(verdict);
            (!found.is_empty()).then(|| format!("significantly {way} in {}", named(whole, &found, true)))
        };
        let quiet = |what: &str, verdict: TestVerdict| {
            let found = of(verdict);
            (!found.is_empty()).then(|| format!("{what} in {}", named(whole, &found, false)))
        };
        let parts = [
            significant("higher", TestVerdict::Higher),
            significant("lower", TestVerdict::Lower),
            quiet(&equivalent_words(), TestVerdict::Equivalent),
            quiet(OPEN, TestVerdict::Open),
            quiet("not tested, for lack of seeds,", TestVerdict::Untested),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        format!("{title} under {policy}, against {}: {}.", own[0].base, parts.join("; "))
    };
    policies.iter().map(sentence).collect()
}

/// Lists cells, with their changes if `changes` is set; for many cells, only their number and the cells with the smallest and largest
/// change.
fn named(whole: &Whole, lines: &[&ComparisonLine], changes: bool) -> String {
    let name = |line: &ComparisonLine| match changes {
        true => format!("{}: {}", cell_words(whole, line.cell), line.change()),
        false => cell_words(whole, line.cell),
    };
    if lines.len() <= NAMED_MOST {
        return lines.iter().map(|line| name(line)).collect::<Vec<_>>().join(", ");
    }
    let size = |line: &&&ComparisonLine| line.tested.means.percent().map_or(f64::INFINITY, f64::abs);
    let ends = [
        lines.iter().min_by(|a, b| size(a).total_cmp(&size(b))),
        lines.iter().max_by(|a, b| size(a).total_cmp(&size(b))),
    ];
    match (changes, ends) {
        (true, [Some(least), Some(most)]) => {
            format!("{}, from {} to {}", count(lines.len() as u64, "cell"), name(least), name(most))
        }
        _ => count(lines.len() as u64, "cell"),
    }
}

/// Describes a cell by its values on the axes; by its name if there are no axes.
fn cell_words(whole: &Whole, at: usize) -> String {
    let (name, values, _) = &whole.cells[at];
    if values.is_empty() { name.clone() } else { whole.scope().cell_words(values) }
}

/// Returns the comparisons of a metric, one per row. `None` if there are none.
fn differences(sweep: &SweepReport, metric: &str, lines: &[ComparisonLine]) -> Option<Sheet> {
    let any = lines.first()?;
    let base = any.base.as_str();
    let family = lines.iter().filter(|line| line.family == any.family && line.tested.holm.p.is_some()).count();
    let cells = lines.iter().map(|line| line.family).collect::<BTreeSet<_>>().len();
    let correction = match (family, cells) {
        (1, _) => String::new(),
        (family, 1) => format!(", corrected by Holm's method for the {family} comparisons of this table"),
        (family, _) => {
            format!(", corrected by Holm's method for the {family} comparisons of a cell, as in its own report")
        }
    };
    let by_chance = if cells > 1 {
        " Of cells without any true difference, about one in twenty shows a significant one by chance."
    } else {
        ""
    };
    let row = |line: &ComparisonLine| {
        let tested = &line.tested;
        let verdict = match tested.verdict() {
            TestVerdict::Higher => "higher".to_owned(),
            TestVerdict::Lower => "lower".to_owned(),
            TestVerdict::Equivalent => equivalent_words(),
            TestVerdict::Open => OPEN.to_owned(),
            TestVerdict::Untested => "not tested".to_owned(),
        };
        let verdict = if tested.is_small() { format!("{verdict}, {}", equivalent_words()) } else { verdict };
        let p = |p: Option<f64>| p.map(p_number).unwrap_or_default();
        let means = [tested.means.base, tested.means.new].map(|mean| number(Some(mean)));
        let [before, after] = means;
        let texts = [
            line.policy.clone(),
            line.change(),
            verdict,
            p(tested.means.test.p),
            p(tested.holm.p),
            p(tested.holm.p_equivalent),
            before,
            after,
        ];
        cell_texts(sweep.whole, line.cell).into_iter().chain(texts).collect()
    };
    let leading = cell_columns(sweep.whole);
    let marked = lines.iter().enumerate().filter(|(_, line)| is_significant(line.tested.holm.p));
    Some(Sheet {
        caption: format!(
            "{}{}: difference from {base}",
            heading(metric, &sweep.whole.scope().dims),
            in_seconds(metric)
        ),
        marks: marked.map(|(row, _)| (row, leading.len() + 1, Mark::Significant)).collect(),
        columns: leading
            .into_iter()
            .chain([
                text_column("policy"),
                number_column(
                    "change",
                    "the mean difference in percent of the mean of the base, and the half-width of its 95 % interval",
                ),
                text_column("verdict"),
                number_column("p", "p-value of no difference, for this comparison alone"),
                number_column("p (Holm)", "p-value of no difference, corrected"),
                number_column(
                    "p (TOST)",
                    "p-value of a difference of the margin or more, corrected: small means equivalent",
                ),
                number_column(base, "the mean of the base"),
                number_column("mean", "the mean of this row"),
            ])
            .collect(),
        rows: lines.iter().map(row).collect(),
        note: match family {
            0 => "One run per cell: there is no test. Each cell links to its own report.".to_owned(),
            _ => format!(
                "Bold: statistically significant, p < {ALPHA} in {}{correction}.{by_chance} “{}” is shown by two one-sided tests, \
                 corrected likewise. “{OPEN}” means that the tests show neither; more seeds may decide. Each cell links \
                 to a report of its own.",
                any.tested.means.design.test(),
                equivalent_words(),
            ),
        },
        links: lines.iter().map(|line| format!("{}/{}", sweep.folders[line.cell], REPORT)).collect(),
    })
}

/// Returns the unit of a metric for a caption.
fn in_seconds(metric: &str) -> &'static str {
    if metric.ends_with(Unit::Seconds.suffix()) { ", in seconds" } else { "" }
}

/// Returns the first columns of a table with a row per cell: its name and its values on the axes.
fn cell_columns(whole: &Whole) -> Vec<HtmlColumn> {
    let scope = whole.scope();
    let axes = (0..scope.axes.len()).map(|at| text_column(&scope.axis_heading(at)));
    [text_column("cell")].into_iter().chain(axes).collect()
}

/// Returns the texts of [`cell_columns`] for a cell.
fn cell_texts(whole: &Whole, at: usize) -> Vec<String> {
    let (name, values, _) = &whole.cells[at];
    std::iter::once(name).chain(values).cloned().collect()
}

/// Returns the tables of means. A metric without values is omitted. A metric with the same value in every run is stated below the last
/// table.
fn summary(sweep: &SweepReport, headlines: &[Headline], values: &[HashMap<String, MetricValues>]) -> Vec<Sheet> {
    let (mut sheets, mut same) = (Vec::new(), Vec::new());
    for column in headlines {
        let mut all = values.iter().flat_map(|cell| &cell[&column.column]).flatten().flatten();
        let Some(first) = all.next() else { continue };
        match all.clone().next().is_some() && all.all(|value| value == first) {
            true => same.push(format!("{}: {}", column.heading, number(Some(*first)))),
            false => sheets.push(means(sweep, column, values)),
        }
    }
    if let Some(last) = sheets.last_mut().filter(|_| !same.is_empty()) {
        let words = format!("The same in every run: {}.", same.join("; "));
        last.note = if last.note.is_empty() { words } else { format!("{} {words}", last.note) };
    }
    sheets
}

/// Returns the means of a metric: one row per cell and one column per policy.
fn means(sweep: &SweepReport, column: &Headline, values: &[HashMap<String, MetricValues>]) -> Sheet {
    let good = match column.better {
        Better::Lower => "; lower is better",
        Better::Higher => "; higher is better",
        Better::Neither => "",
    };
    let over = match sweep.whole.cells.iter().any(|(.., results)| results.contents.seeds.len() > 1) {
        true => "; means over seeds with the half-widths of their 95 % confidence intervals",
        false => "",
    };
    let policies = sweep.whole.scope().policies;
    let leading = cell_columns(sweep.whole);
    let names = leading.len();
    let mut sheet = Sheet {
        caption: format!("{}: {}{}{good}{over}", column.heading, column.about, in_seconds(&column.column)),
        columns: leading.into_iter().chain(policies.iter().map(|name| number_column(name, ""))).collect(),
        links: sweep.folders.iter().map(|folder| format!("{folder}/{}", REPORT)).collect(),
        ..Sheet::default()
    };
    let mut shown = Vec::new();
    for (at, values) in values.iter().enumerate() {
        let leading = cell_texts(sweep.whole, at);
        shown.push(push_means(&mut sheet, leading, column.better, values[&column.column].clone()));
    }
    let closed = sweep.whole.cells.iter().any(|(.., results)| results.contents.submissions_depend_on_policy);
    mark(&mut sheet, if closed { Design::Unpaired } else { Design::Paired }, shown);
    upright(sheet, names, policies.len())
}
