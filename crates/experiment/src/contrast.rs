//! Compares two results of the same experiment, or of two versions of it: metrics that changed, with confidence intervals and p-values.
//!
//! Runs are matched by cell, policy and seed. The means of every numeric column of the `runs` table are compared: paired by seed, except
//! for closed loops. The p-values are corrected for all comparisons of a metric (Holm).

use std::collections::HashMap;
use std::path::Path;

use plimsoll_base::column::Kind;
use plimsoll_base::error::{Error, Result};
use plimsoll_base::units::Dim;
use plimsoll_metrics::compare::LEVEL;
use plimsoll_metrics::{Corrected, Design, MeanDifference, bootstrap, corrected, difference as of_means};
use plimsoll_results::folder::{Contents, StudyRecord, of_cell};
use plimsoll_results::ownership::difference;
use plimsoll_results::read::Results;
use plimsoll_results::schema::Table;

/// The changes between two results.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Contrast {
    /// The differences between the plans, one line per key; empty if there are none.
    pub plans: String,
    /// Descriptions (cell, policy and seed) of the runs that only the first or only the second result has.
    pub only: [Vec<String>; 2],
    /// Descriptions of the runs that the plans specify but that are missing.
    pub missing: Vec<String>,
    /// The number of runs that both results have.
    pub runs: usize,
    /// The compared metrics, each with the number of its comparisons in all cells and policies together.
    pub metrics: Vec<(String, usize)>,
    /// The metrics with a different value in at least one run, ordered by cell, policy and column.
    pub changes: Vec<MetricChange>,
}

/// A metric that changed.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricChange {
    /// The cell; empty without a sweep.
    pub cell: String,
    /// The policy.
    pub policy: String,
    /// The column of the `runs` table.
    pub metric: String,
    /// The second result minus the first; paired by seed, except for closed loops.
    pub means: MeanDifference,
    /// The confidence interval of the difference by percentile bootstrap; `None` for one seed.
    pub bootstrap: Option<(f64, f64)>,
    /// The p-values of the difference, corrected for all comparisons of this metric: all policies in all cells (Holm).
    pub holm: Corrected,
}

/// One result: its plan, and its cells by name.
struct ContrastSide {
    plan: String,
    cells: Vec<(String, Results)>,
}

impl ContrastSide {
    fn open(folder: &Path) -> Result<ContrastSide> {
        let Some(described) = StudyRecord::read(folder)? else {
            let results = Results::open(folder)?;
            return Ok(ContrastSide { plan: results.contents.plan.clone(), cells: vec![(String::new(), results)] });
        };
        let open = |(name, _): (String, Vec<String>)| {
            let results = Results::open(&of_cell(folder, &name))?;
            Ok((name, results))
        };
        let cells = described.cells.into_iter().map(open).collect::<Result<_>>()?;
        Ok(ContrastSide { plan: described.plan, cells })
    }
}

/// The runs of one policy. Each has a seed, which identifies the run in both results even if their first seeds differ, and its indices.
type Runs = Vec<(String, (usize, usize))>;

/// Returns the existing runs by policy, in the order of the plan. Policies of the plan without existing runs are omitted.
fn runs(results: &Results) -> Vec<(&str, Runs)> {
    let Contents { policies, seeds, .. } = &results.contents;
    let name = |run: usize| seeds[run].map_or(format!("run {run}"), |seed| format!("seed {seed}"));
    let groups = results.runs.chunk_by(|one, other| one.0 == other.0);
    groups.map(|group| (policies[group[0].0].as_str(), group.iter().map(|&at| (name(at.1), at)).collect())).collect()
}

/// Pairs the runs of a cell of one result with the same runs of the other result; a run may have no partner.
fn pairs<'a>(results: &'a Results, twin: Option<&'a Results>) -> Vec<(&'a str, Vec<Pair>)> {
    let theirs: HashMap<&str, HashMap<String, (usize, usize)>> =
        twin.iter().flat_map(|twin| runs(twin)).map(|(policy, runs)| (policy, runs.into_iter().collect())).collect();
    let with = |(policy, runs): (&'a str, Runs)| {
        let there = theirs.get(policy);
        let pair = |(name, at): (String, (usize, usize))| {
            let other = there.and_then(|there| there.get(&name)).copied();
            Pair { name, at, other }
        };
        (policy, runs.into_iter().map(pair).collect())
    };
    runs(results).into_iter().map(with).collect()
}

/// A run of a result.
struct Pair {
    /// The seed of the run.
    name: String,
    /// The indices of the policy and of the run.
    at: (usize, usize),
    /// The indices of the same run in the other result.
    other: Option<(usize, usize)>,
}

/// Compares two results folders. Errors: a folder contains no results, or the two have no run in common.
pub fn contrast(before: &Path, after: &Path) -> Result<Contrast> {
    let sides = [ContrastSide::open(before)?, ContrastSide::open(after)?];
    let cells = |side: usize| sides[side].cells.iter().map(|(name, results)| (name.as_str(), results)).collect();
    let by_name: [HashMap<&str, &Results>; 2] = [cells(0), cells(1)];
    let mut found = Contrast { plans: difference(&sides[0].plan, &sides[1].plan), ..Contrast::default() };
    for (at, other) in [(0, 1), (1, 0)] {
        for (cell, results) in &sides[at].cells {
            let of = if cell.is_empty() { String::new() } else { format!("{cell}, ") };
            for (policy, pairs) in pairs(results, by_name[other].get(cell.as_str()).copied()) {
                let alone = pairs.into_iter().filter(|pair| pair.other.is_none());
                found.only[at].extend(alone.map(|pair| format!("{of}{policy}, {}", pair.name)));
            }
        }
    }
    for (side, folder) in sides.iter().zip([before, after]) {
        let missing = side.cells.iter().filter_map(|(cell, results)| Some((cell, results.missing()?)));
        found.missing.extend(missing.map(|(cell, why)| match cell.is_empty() {
            true => format!("{}: {why}", folder.display()),
            false => format!("{}, {cell}: {why}", folder.display()),
        }));
    }
    let mut compared: Vec<(MetricChange, bool)> = Vec::new();
    for (cell, first) in &sides[0].cells {
        let Some(&second) = by_name[1].get(cell.as_str()) else { continue };
        let closed = [first, second].iter().any(|side| side.contents.submissions_depend_on_policy);
        let design = if closed { Design::Unpaired } else { Design::Paired };
        let mut dims: Vec<Dim> = first.dims.clone();
        dims.retain(|dim| second.dims.contains(dim));
        for (policy, pairs) in pairs(first, Some(second)) {
            let pairs: Vec<_> = pairs.into_iter().filter_map(|pair| Some([pair.at, pair.other?])).collect();
            if pairs.is_empty() {
                continue;
            }
            found.runs += pairs.len();
            for (metric, values) in metrics(&dims, [first, second], &pairs)? {
                let purpose = format!("{cell}/{policy}/{metric}");
                let Some(means) = of_means(design, &values[0], &values[1], LEVEL) else { continue };
                let bootstrap = bootstrap(design, &values[0], &values[1], LEVEL, &purpose);
                match found.metrics.iter_mut().find(|(name, _)| *name == metric) {
                    Some((_, comparisons)) => *comparisons += 1,
                    None => found.metrics.push((metric.clone(), 1)),
                }
                let (cell, policy) = (cell.clone(), policy.to_owned());
                let change = MetricChange { cell, policy, metric, means, bootstrap, holm: Corrected::default() };
                compared.push((change, values[0] != values[1]));
            }
        }
    }
    if found.runs == 0 {
        let problem = format!("{} and {} have no run in common", before.display(), after.display());
        return Err(Error::Mismatch { problem });
    }
    let after = corrected(compared.iter().map(|(change, _)| (change.metric.as_str(), change.means.test)));
    let changed = compared.into_iter().zip(after).filter(|((_, differs), _)| *differs);
    found.changes = changed.map(|((change, _), holm)| MetricChange { holm, ..change }).collect();
    Ok(found)
}

/// A metric and its values in both results, one value per pair.
type Values = (String, [Vec<Option<f64>>; 2]);

/// Returns the numeric columns of the `runs` tables of these pairs of runs.
fn metrics(dims: &[Dim], sides: [&Results; 2], pairs: &[[(usize, usize); 2]]) -> Result<Vec<Values>> {
    let columns = Table::Runs.columns(dims).into_iter().filter(|column| column.value != Kind::Text);
    // An own metric of a plan is compared if it has the same definition in both results.
    let own = sides[0].own.iter().filter(|column| sides[1].own.contains(column)).map(|column| column.name.clone());
    let names: Vec<String> = columns.map(|column| column.name).chain(own).collect();
    let mut values: Vec<Values> = names.iter().map(|name| (name.clone(), [Vec::new(), Vec::new()])).collect();
    let wanted: Vec<&str> = names.iter().map(String::as_str).collect();
    for pair in pairs {
        for (side, &run) in pair.iter().enumerate() {
            let part = sides[side].part(Table::Runs, &wanted, run)?;
            for (name, both) in &mut values {
                let value = part.as_ref().map(|part| part.numbers(name)).transpose()?;
                both[side].push(value.and_then(|column| column.first().copied().flatten()));
            }
        }
    }
    Ok(values)
}
