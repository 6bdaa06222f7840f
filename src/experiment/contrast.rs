//! Two results of the same experiment, or of two versions of it: what changed, and how sure that is.

use std::path::Path;

use super::study::folder::{Described, difference, of_cell};
use crate::error::{Error, Result};
use crate::metrics::compare::LEVEL;
use crate::metrics::{Corrected, Design, MeanDifference, bootstrap, corrected, difference as of_means};
use crate::output::read::Results;
use crate::output::schema::Table;
use crate::output::table::Kind;
use crate::units::Dim;

/// The changes between two results.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Contrast {
    /// The differences between the plans, a line a key; empty if there are none.
    pub plans: String,
    /// Runs that only the first result has, and only the second one: cell, policy and seed, in words.
    pub only: [Vec<String>; 2],
    /// The runs of their plans that are not there, in words.
    pub missing: Vec<String>,
    /// Runs that both have.
    pub runs: usize,
    /// Metrics that were compared, all cells and policies together.
    pub compared: usize,
    /// Their names.
    pub metrics: Vec<String>,
    /// Those with a different value in some run, in the order of cells, policies and columns.
    pub changes: Vec<Change>,
}

/// A metric that changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The cell; empty without a sweep.
    pub cell: String,
    /// The policy.
    pub policy: String,
    /// The column of the `runs` table.
    pub metric: String,
    /// The second result minus the first; paired by seed, but for closed loops.
    pub means: MeanDifference,
    /// The difference by percentile bootstrap; `None` for one seed.
    pub bootstrap: Option<(f64, f64)>,
    /// The p-value, corrected for all comparisons of this metric: all policies in all cells (Holm).
    pub p_holm: Option<f64>,
    /// The p-value of equivalence within the margin, corrected likewise for all tests of equivalence of this metric.
    pub p_equivalent_holm: Option<f64>,
}

/// One result: cells by name.
struct Side {
    plan: String,
    cells: Vec<(String, Results)>,
}

impl Side {
    fn open(folder: &Path) -> Result<Side> {
        let Some(described) = Described::read(folder)? else {
            let results = Results::open(folder)?;
            return Ok(Side { plan: results.contents.plan.clone(), cells: vec![(String::new(), results)] });
        };
        let open = |(name, _): (String, Vec<String>)| {
            let results = Results::open(&of_cell(folder, &name))?;
            Ok((name, results))
        };
        let cells = described.cells.into_iter().map(open).collect::<Result<_>>()?;
        Ok(Side { plan: described.plan, cells })
    }
}

/// One run of a result: its number, and what tells it from others of its policy.
type Run = (usize, String);

/// The runs of a policy: seeds where there are some, so that results with other first seeds pair as they should.
fn runs(results: &Results, policy: &str) -> Vec<Run> {
    let Some(at) = results.contents.policies.iter().position(|name| name == policy) else { return Vec::new() };
    let of = results.runs.iter().filter(|(policy, _)| *policy == at);
    of.map(|&(_, run)| {
        let seed = results.contents.seeds[run];
        (run, seed.map_or(format!("run {run}"), |seed| format!("seed {seed}")))
    })
    .collect()
}

/// Compares two results folders. Errors: one of them is none, or they have no run in common.
pub fn contrast(before: &Path, after: &Path) -> Result<Contrast> {
    let sides = [Side::open(before)?, Side::open(after)?];
    let mut found = Contrast { plans: difference(&sides[0].plan, &sides[1].plan), ..Contrast::default() };
    for (at, other) in [(0, 1), (1, 0)] {
        for (cell, results) in &sides[at].cells {
            let twin = sides[other].cells.iter().find(|(name, _)| name == cell);
            for policy in &results.contents.policies {
                let there = twin.map(|(_, twin)| runs(twin, policy)).unwrap_or_default();
                let alone = runs(results, policy).into_iter().filter(|(_, name)| !there.iter().any(|(_, n)| n == name));
                let of = if cell.is_empty() { String::new() } else { format!("{cell}, ") };
                found.only[at].extend(alone.map(|(_, name)| format!("{of}{policy}, {name}")));
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
    let mut compared: Vec<(Change, bool)> = Vec::new();
    for (cell, first) in &sides[0].cells {
        let Some((_, second)) = sides[1].cells.iter().find(|(name, _)| name == cell) else { continue };
        let closed = [first, second].iter().any(|side| side.contents.submissions_depend_on_policy);
        let design = if closed { Design::Unpaired } else { Design::Paired };
        let mut dims: Vec<Dim> = first.dims.clone();
        dims.retain(|dim| second.dims.contains(dim));
        for policy in &first.contents.policies {
            let theirs = runs(second, policy);
            let pairs: Vec<(usize, usize)> = runs(first, policy)
                .into_iter()
                .filter_map(|(run, name)| Some((run, theirs.iter().find(|(_, other)| *other == name)?.0)))
                .collect();
            if pairs.is_empty() {
                continue;
            }
            found.runs += pairs.len();
            for (metric, values) in metrics(&dims, [first, second], policy, &pairs)? {
                let purpose = format!("{cell}/{policy}/{metric}");
                let Some(means) = of_means(design, &values[0], &values[1], LEVEL) else { continue };
                let bootstrap = bootstrap(design, &values[0], &values[1], LEVEL, &purpose);
                if !found.metrics.contains(&metric) {
                    found.metrics.push(metric.clone());
                }
                let (cell, policy) = (cell.clone(), policy.clone());
                let (p_holm, p_equivalent_holm) = (None, None);
                let change = Change { cell, policy, metric, means, bootstrap, p_holm, p_equivalent_holm };
                compared.push((change, values[0] != values[1]));
            }
        }
    }
    if found.runs == 0 {
        let problem = format!("{} and {} have no run in common", before.display(), after.display());
        return Err(Error::Mismatch { problem });
    }
    let after = corrected(compared.iter().map(|(change, _)| (change.metric.as_str(), change.means.test)));
    found.compared = compared.len();
    let changed = compared.into_iter().zip(after).filter(|((_, differs), _)| *differs);
    let change = |((change, _), after): (_, Corrected)| Change {
        p_holm: after.p,
        p_equivalent_holm: after.p_equivalent,
        ..change
    };
    found.changes = changed.map(change).collect();
    Ok(found)
}

/// A metric and its values in both results, pair by pair.
type Values = (String, [Vec<Option<f64>>; 2]);

/// The numbers of the `runs` tables of these pairs of runs.
fn metrics(dims: &[Dim], sides: [&Results; 2], policy: &str, pairs: &[(usize, usize)]) -> Result<Vec<Values>> {
    let columns = Table::Runs.columns(dims).into_iter().map(|column| column.field);
    let names: Vec<String> = columns.filter(|field| field.kind != Kind::Text).map(|field| field.name).collect();
    let mut values: Vec<Values> = names.iter().map(|name| (name.clone(), [Vec::new(), Vec::new()])).collect();
    let wanted: Vec<&str> = names.iter().map(String::as_str).collect();
    for &(first, second) in pairs {
        for (side, run) in [(0, first), (1, second)] {
            let parts = sides[side].table(Table::Runs, &wanted, Some(run))?;
            let of = |part: &&crate::output::read::Part| sides[side].contents.policies[part.policy] == policy;
            let part = parts.iter().find(of);
            for (name, both) in &mut values {
                let value = part.map(|part| part.numbers(name)).transpose()?;
                both[side].push(value.and_then(|column| column.first().copied().flatten()));
            }
        }
    }
    Ok(values)
}
