//! Prints the summary of a plan with accelerators, and the list of its runs.

use serde_json::{Map, Value as Json, json};

use super::super::printout::Printout;
use super::super::screen::{Alignment, Grid};
use super::super::{Context, Format, print};
use super::AcceleratorRunSettings;
use crate::error::Result;
use crate::experiment::accelerators::{AcceleratorStudy, StoredRun};
use crate::experiment::study::shown;
use crate::experiment::{Mode, accelerators::ListedAcceleratorRun};
use crate::output::numbers::{count, with_half};
use crate::output::ownership::check_owner;
use crate::output::table::Constant;
use plimsoll_metrics::compare::LEVEL;
use plimsoll_metrics::mean_interval;

/// The headings of a table, each with whether its column has texts.
type SummaryHead = Vec<(String, bool)>;

/// The columns of the summary: headings, columns of the table of runs, and whether values are seconds that are shown in hours.
const COLUMNS: [(&str, &str, bool); 5] = [
    ("mean completion (h)", "completion_mean_s", true),
    ("p50 (h)", "completion_p50_s", true),
    ("p99 (h)", "completion_p99_s", true),
    ("makespan (h)", "makespan_s", true),
    ("utilisation", "utilisation", false),
];

/// The columns of lists with exclusive times.
const RHO: [(&str, &str, bool); 3] =
    [("worst rho", "rho_max", false), ("rho > 1.05", "rho_above_105", false), ("rho > 1.1", "rho_above_110", false)];

/// Returns the headings and the rows of the summary: a row per cell, policy and rate, with means over the lists of jobs.
pub(super) fn summary(study: &AcceleratorStudy, runs: &[StoredRun]) -> (SummaryHead, Vec<Vec<String>>) {
    let axes = &study.cells[0].axes;
    let short = |column: &str| column.strip_prefix("accelerators_").unwrap_or(column).to_owned();
    let mut head: SummaryHead =
        axes.iter().map(|(column, value)| (short(column), matches!(value, Constant::Text(_)))).collect();
    head.push(("policy".to_owned(), true));
    let has_rates = study.cells.iter().any(|cell| !cell.setup.rates.is_empty());
    if has_rates {
        head.push(("jobs/h".to_owned(), false));
    }
    let mut columns = COLUMNS.to_vec();
    if study.cells.iter().any(|cell| cell.setup.options.overhead.lost.0 > 0) {
        columns.push(("lost (h)", "lost_s", true));
    }
    if runs.iter().any(|run| run.summary.number("rho_max").is_some()) {
        columns.extend(RHO);
    }
    head.extend(columns.iter().map(|(heading, ..)| ((*heading).to_owned(), false)));
    let same = |a: &StoredRun, b: &StoredRun| {
        (a.index.cell, a.index.policy, a.index.rate_at) == (b.index.cell, b.index.policy, b.index.rate_at)
    };
    let row = |group: &[StoredRun]| {
        let first = &group[0];
        let mut cells: Vec<String> = study.cells[first.index.cell].axes.iter().map(|(_, value)| shown(value)).collect();
        cells.push(first.summary.policy.clone());
        if has_rates {
            cells.push(first.summary.jobs_per_hour.map(|rate| rate.to_string()).unwrap_or_default());
        }
        cells.extend(columns.iter().map(|(_, column, in_hours)| {
            let unit = if *in_hours { 3600.0 } else { 1.0 };
            let values: Vec<f64> = group.iter().filter_map(|run| Some(run.summary.number(column)? / unit)).collect();
            with_half(mean_interval(&values, LEVEL))
        }));
        cells
    };
    (head, runs.chunk_by(same).map(row).collect())
}

/// Prints the summary, and a message about unstable runs.
pub(super) fn print(
    study: &AcceleratorStudy,
    runs: &[StoredRun],
    (head, body): (&SummaryHead, &[Vec<String>]),
    format: Format,
    context: &Context,
) -> Result<()> {
    match format {
        Format::Json => context.json(&Json::Array(runs.iter().map(|run| in_json(study, run)).collect()))?,
        format => {
            let align = |is_text| if is_text { Alignment::Left } else { Alignment::Right };
            let header = head.iter().map(|(name, is_text)| (name.clone(), align(*is_text))).collect();
            // A table in several parts repeats the axes, the policy and the rate.
            let keys = head.iter().position(|(name, _)| name == COLUMNS[0].0).unwrap_or(1);
            context.out(&Printout::from(Grid::new(header, body.to_vec()).keyed(keys)).render(format))?;
        }
    }
    let unstable = runs.iter().filter(|run| run.summary.number("unstable") == Some(1.0)).count();
    if unstable > 0 {
        context.print_message(&format!(
            "in {unstable} of {} runs the number of active jobs grew until the end: their means depend on the window",
            runs.len()
        ));
    }
    Ok(())
}

fn in_json(study: &AcceleratorStudy, run: &StoredRun) -> Json {
    let mut value = Map::new();
    for (column, axis) in &study.cells[run.index.cell].axes {
        let axis = match axis {
            Constant::Int(axis) => json!(axis),
            Constant::Float(axis) => json!(axis),
            axis => json!(shown(axis)),
        };
        value.insert(column.clone(), axis);
    }
    let summary = &run.summary;
    value.insert("policy".to_owned(), json!(summary.policy));
    value.insert("jobs_per_hour".to_owned(), json!(summary.jobs_per_hour));
    value.insert("run".to_owned(), json!(summary.run));
    value.insert("jobs".to_owned(), json!(summary.number("jobs").map(|jobs| jobs as u64)));
    for column in ["completion_mean_s", "makespan_s", "utilisation"] {
        value.insert(column.to_owned(), json!(summary.number(column)));
    }
    value.insert("unstable".to_owned(), json!(summary.number("unstable") == Some(1.0)));
    Json::Object(value)
}

/// Lists the runs of a plan, for `--dry-run`. Errors: the folder has files that are not Plimsoll's.
pub fn list(study: &AcceleratorStudy, how: &AcceleratorRunSettings<'_>, context: &Context) -> Result<()> {
    check_owner(how.folder)?;
    // With `--restart` every run is repeated, so existing runs do not count.
    let runs = study.listed(Some(how.folder).filter(|_| how.mode != Mode::Restart), how.shard);
    let cell = |run: &ListedAcceleratorRun| study.cells[run.index.cell].name.clone();
    match how.format {
        Format::Json => {
            let one = |run: &ListedAcceleratorRun| {
                let key = study.key(run.index);
                json!({ "id": run.id, "cell": cell(run), "policy": key.policy, "jobs_per_hour": key.jobs_per_hour,
                        "run": key.run, "there": run.there })
            };
            context.json(&Json::Array(runs.iter().map(one).collect()))?;
        }
        format => {
            let header = ["id", "cell", "policy", "jobs/h", "run", "state"].map(str::to_owned);
            let row = |run: &ListedAcceleratorRun| {
                let key = study.key(run.index);
                let rate = key.jobs_per_hour.map(|rate| rate.to_string()).unwrap_or_default();
                let state = if run.there { "complete" } else { "to run" };
                vec![run.id.clone(), cell(run), key.policy, rate, key.run.to_string(), state.to_owned()]
            };
            let grid = print::aligned_left(&header, &runs.iter().map(row).collect::<Vec<_>>());
            context.out(&Printout::from(grid).render(format))?;
        }
    }
    let missing = runs.iter().filter(|run| !run.there).count();
    let all = count(runs.len() as u64, "run");
    context.print_message(&if missing == 0 {
        format!("{all}, all complete")
    } else {
        format!("{all}, {missing} to run")
    });
    Ok(())
}
