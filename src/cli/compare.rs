//! `plimsoll compare`: what changed between two results.

use std::path::PathBuf;

use super::print::{Side, aligned_by};
use super::{Context, Format, print};
use crate::error::{Error, Result, nearest};
use crate::experiment::{Change, Contrast, contrast};
use crate::metrics::compare::LEVEL;
use crate::output::numbers::{count, number, with_half};

/// Show what changed between two results, metric by metric, with significance
///
/// Runs of the same cell, policy and seed are compared with one another.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  plimsoll compare results/before results/after
  plimsoll compare results/pooled results/first-fit --metric completion_mean_s --metric used_cpu
  plimsoll compare results/before results/after --format json | jq '.changes[] | select(.p_holm < 0.05)'")]
pub struct Args {
    /// A folder that `run` or `replay -o` has written
    before: PathBuf,
    /// Another one
    after: PathBuf,
    /// Only this column of the runs table; may be given several times
    #[arg(long, value_name = "NAME")]
    metric: Vec<String>,
    /// Show all changes, not only those that can be told from 0
    #[arg(long)]
    all: bool,
    /// How to print it
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub fn run(args: &Args, _context: &Context) -> Result<()> {
    let found = contrast(&args.before, &args.after)?;
    if let Some(unknown) = args.metric.iter().find(|metric| !found.metrics.contains(metric)) {
        let known = found.metrics.iter().map(String::as_str);
        let hint = nearest(unknown, known).map(|hint| format!(" (did you mean '{hint}'?)")).unwrap_or_default();
        return Err(Error::plan("--metric", format!("'{unknown}'"), format!("a column of the runs table{hint}")));
    }
    let wanted = |change: &&Change| args.metric.is_empty() || args.metric.contains(&change.metric);
    let changes: Vec<&Change> = found.changes.iter().filter(wanted).collect();
    match args.format {
        Format::Json => print::out(&json(&found, &changes)),
        Format::Table => print::out(&text(&found, &changes, args.all)),
    }
}

/// Whether a change can be told from 0: by the corrected test, or, where one seed or no spread leaves none, as it is.
fn is_clear(change: &Change) -> bool {
    change.p_holm.is_none_or(|p| p < 1.0 - LEVEL)
}

fn text(found: &Contrast, changes: &[&Change], all: bool) -> String {
    let mut text = String::new();
    if !found.plans.is_empty() {
        text += &format!("the plans differ:\n{}\n\n", found.plans);
    }
    for (side, alone) in ["first", "second"].iter().zip(&found.only) {
        if let Some(example) = alone.first() {
            text += &format!("{} runs only in the {side} ({example}, ..)\n", count(alone.len() as u64));
        }
    }
    let compared = format!("{} metrics of {} runs compared", count(found.compared as u64), count(found.runs as u64));
    if changes.is_empty() {
        return text + &format!("{compared}: nothing changed\n");
    }
    let shown: Vec<&&Change> = changes.iter().filter(|change| all || is_clear(change)).collect();
    let swept = changes.iter().any(|change| !change.cell.is_empty());
    let mut header: Vec<(String, Side)> = Vec::new();
    if swept {
        header.push(("cell".to_owned(), Side::Left));
    }
    header.extend(["policy", "metric"].map(|name| (name.to_owned(), Side::Left)));
    header.extend(["before", "after", "change", "%", "seeds", "p"].map(|name| (name.to_owned(), Side::Right)));
    let row = |change: &&&Change| {
        let pair = &change.paired;
        let percent = (pair.base != 0.0).then(|| format!("{:+.1}", 100.0 * pair.difference.mean / pair.base.abs()));
        let mut row: Vec<String> = if swept { vec![change.cell.clone()] } else { Vec::new() };
        row.extend([change.policy.clone(), change.metric.clone(), number(Some(pair.base)), number(Some(pair.new))]);
        row.extend([with_half(Some(pair.difference)), percent.unwrap_or_else(|| "-".to_owned())]);
        row.extend([pair.difference.n.to_string(), p_value(change.p_holm)]);
        row
    };
    if !shown.is_empty() {
        text += &aligned_by(&header, &shown.iter().map(row).collect::<Vec<_>>());
        text.push('\n');
    }
    let hidden = changes.len() - shown.len();
    let also =
        if hidden > 0 { format!(", {hidden} of them too little to be told from 0 (--all)") } else { String::new() };
    let about = "p of paired t tests over seeds, after Holm's correction for the comparisons of a metric";
    text + &format!("{compared}, {} changed{also}; {about}\n", changes.len())
}

fn p_value(p: Option<f64>) -> String {
    match p {
        None => "-".to_owned(),
        Some(p) if p < 0.0001 => "<0.0001".to_owned(),
        Some(p) => format!("{p:.4}"),
    }
}

fn json(found: &Contrast, changes: &[&Change]) -> String {
    let one = |change: &&Change| {
        let (pair, interval) = (&change.paired, &change.paired.difference);
        serde_json::json!({
            "cell": change.cell, "policy": change.policy, "metric": change.metric, "seeds": interval.n,
            "before": pair.base, "after": pair.new, "change": interval.mean, "low": interval.low,
            "high": interval.high, "bootstrap": pair.bootstrap.map(|(low, high)| [low, high]),
            "effect_size": pair.effect, "p": pair.p, "p_holm": change.p_holm,
        })
    };
    let plans: Vec<&str> = found.plans.lines().map(str::trim).collect();
    let json = serde_json::json!({
        "plans": plans, "only_before": found.only[0], "only_after": found.only[1], "runs": found.runs,
        "compared": found.compared, "changes": changes.iter().map(one).collect::<Vec<_>>(),
    });
    format!("{json:#}\n")
}
