//! `plimsoll compare`: shows the changes between two results.

use std::path::PathBuf;

use super::printout::Printout;
use super::screen::{Alignment, Grid, is_wide, paragraphs};
use super::{Context, Format};
use crate::error::{Error, Result, did_you_mean};
use crate::experiment::{Contrast, MetricChange, contrast};
use crate::metrics::compare::{is_significant, p_number};
use crate::metrics::{Design, MARGIN};
use crate::output::numbers::{count, number, with_half};

/// Show what changed between two results, metric by metric, with significance
///
/// Runs of the same cell, policy and seed are compared with one another.
#[derive(clap::Args, Debug, serde::Deserialize)]
#[command(after_help = "Examples:
  plimsoll compare results/before results/after
  plimsoll compare results/pooled results/first-fit --metric completion_mean_s
  plimsoll compare results/before results/after --format json |
      jq '.changes[] | select(.p_holm < 0.05)'")]
pub struct Args {
    /// A folder that `run` or `replay -o` has written
    before: PathBuf,
    /// Another folder of results
    after: PathBuf,
    /// Only this column of the runs table; may be given several times
    #[arg(long, value_name = "NAME")]
    metric: Vec<String>,
    /// Show all changes, not only statistically significant ones
    #[arg(long)]
    all: bool,
    /// How to print it
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// The metrics that `--metric` selects, or all.
struct Selection<'a> {
    /// The number of their comparisons, in all cells and policies together.
    compared: usize,
    /// The metrics that changed.
    changes: Vec<&'a MetricChange>,
}

pub fn run(args: &Args, context: &Context) -> Result<()> {
    let found = contrast(&args.before, &args.after)?;
    found.missing.iter().for_each(|missing| context.warn(missing));
    let known = || found.metrics.iter().map(|(name, _)| name.as_str());
    if let Some(unknown) = args.metric.iter().find(|metric| !known().any(|name| name == **metric)) {
        let hint = did_you_mean(unknown, known());
        return Err(Error::plan("--metric", format!("'{unknown}'"), format!("a column of the runs table{hint}")));
    }
    let is_wanted = |metric: &String| args.metric.is_empty() || args.metric.contains(metric);
    let wanted = Selection {
        compared: found.metrics.iter().filter(|(name, _)| is_wanted(name)).map(|(_, comparisons)| comparisons).sum(),
        changes: found.changes.iter().filter(|change| is_wanted(&change.metric)).collect(),
    };
    match args.format {
        Format::Json => context.out(&json(&found, &wanted)),
        format => context.out(&text(&found, &wanted, args.all).render(format)),
    }
}

/// Returns whether a change is shown: it is significant after the correction, or a single seed allows no test.
fn is_clear(change: &MetricChange) -> bool {
    change.holm.p.is_none() || is_significant(change.holm.p)
}

/// Maximum number of columns with numbers, unless `--wide` is given.
const NUMBERS: usize = 4;

fn text(found: &Contrast, Selection { compared, changes }: &Selection, all: bool) -> Printout {
    let mut text = Printout::default();
    if !found.plans.is_empty() {
        text += paragraphs(&format!("the plans differ:\n{}", found.plans)) + "\n";
    }
    for (side, alone) in ["first", "second"].iter().zip(&found.only) {
        if let Some(example) = alone.first() {
            text += paragraphs(&format!("{} only in the {side} ({example}, ..)", count(alone.len() as u64, "run")));
        }
    }
    let compared = format!("{} of {} compared", count(*compared as u64, "metric"), count(found.runs as u64, "run"));
    if changes.is_empty() {
        text += paragraphs(&format!("{compared}: nothing changed"));
        return text;
    }
    let shown: Vec<&&MetricChange> = changes.iter().filter(|change| all || is_clear(change)).collect();
    let numbers = ["before", "after", "change", "p", "%", "seeds"];
    let numbers = &numbers[..if is_wide() { numbers.len() } else { NUMBERS }];
    let row = |change: &&&MetricChange| {
        let (means, difference) = (&change.means, change.means.test.difference);
        let percent = means.percent().map(|percent| format!("{percent:+.1}"));
        let mut row = vec![change.metric.clone(), number(Some(means.base)), number(Some(means.new))];
        row.extend([with_half(Some(difference)), change.holm.p.map_or("-".to_owned(), p_number)]);
        row.extend([percent.unwrap_or_else(|| "-".to_owned()), difference.n.to_string()]);
        row.truncate(1 + numbers.len());
        row
    };
    for group in shown.chunk_by(|a, b| (&a.cell, &a.policy) == (&b.cell, &b.policy)) {
        let cell = if group[0].cell.is_empty() { String::new() } else { format!("{}, ", group[0].cell) };
        let mut header = vec![(format!("{cell}{}", group[0].policy), Alignment::Left)];
        header.extend(numbers.iter().map(|name| ((*name).to_owned(), Alignment::Right)));
        text += Grid::new(header, group.iter().map(row).collect());
        text += "\n";
    }
    let hidden = changes.len() - shown.len();
    let also = match hidden {
        0 => String::new(),
        hidden => {
            let same =
                changes.iter().filter(|change| !is_clear(change) && is_significant(change.holm.p_equivalent)).count();
            let within = 100.0 * MARGIN;
            format!(", {hidden} of them not significantly (--all), of which {same} are equivalent within {within:.0} %")
        }
    };
    let closed = changes.iter().any(|change| change.means.design == Design::Unpaired);
    let design = if closed { Design::Unpaired } else { Design::Paired };
    let about = format!("p of {}, after Holm's correction for the comparisons of a metric", design.test());
    text += paragraphs(&format!("{compared}, {} changed{also}; {about}", changes.len()));
    text
}

fn json(found: &Contrast, Selection { compared, changes }: &Selection) -> String {
    let one = |change: &&MetricChange| {
        let (means, test, interval) = (&change.means, &change.means.test, &change.means.test.difference);
        serde_json::json!({
            "cell": change.cell, "policy": change.policy, "metric": change.metric, "seeds": interval.n,
            "before": means.base, "after": means.new, "change": interval.mean, "low": interval.low,
            "high": interval.high, "bootstrap": change.bootstrap.map(|(low, high)| [low, high]),
            "effect_size": means.effect, "p": test.p, "p_holm": change.holm.p, "design": means.design.name(),
            "margin": test.margin, "p_equivalent": test.p_equivalent, "p_equivalent_holm": change.holm.p_equivalent,
        })
    };
    let plans: Vec<&str> = found.plans.lines().map(str::trim).collect();
    let json = serde_json::json!({
        "plans": plans, "only_before": found.only[0], "only_after": found.only[1], "runs": found.runs,
        "compared": compared, "changes": changes.iter().map(one).collect::<Vec<_>>(),
    });
    format!("{json:#}\n")
}
