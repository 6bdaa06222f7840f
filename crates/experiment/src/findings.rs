//! The findings of a study: every metric under every policy in every cell, and the differences between the policies and the baseline.
//!
//! [`findings`] computes means with 95 % confidence intervals over seeds, and differences with p-values that are corrected per cell and
//! metric (Holm). [`Findings::write`] writes both as tables to the folder `statistics`. A policy is not compared if it and the baseline
//! have different numbers of runs.

use std::path::Path;

use rayon::prelude::*;

use super::RunSummary;
use super::plan::Plan;
use super::study::Study;
use plimsoll_base::column::{Cell, Column, ColumnValue, Computed, Kind, TableRow};
use plimsoll_base::error::{Error, Result};
use plimsoll_charts::escape::no_formula;
use plimsoll_metrics::compare::LEVEL;
use plimsoll_metrics::{Corrected, Interval, MeanDifference, bootstrap, corrected, difference, mean_interval};
use plimsoll_results::files::STATISTICS;
use plimsoll_results::folder::check_links;
use plimsoll_results::manifest::Manifest;
use plimsoll_results::provenance::program;
use plimsoll_results::schema::{self, Table};
use plimsoll_store::file::{WrittenFile, write_whole};
use plimsoll_store::table::{Constant, Field, TableWriter};

/// The mean of a metric over the seeds of a cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// The index of the cell.
    pub cell: usize,
    /// The policy.
    pub policy: String,
    /// The column of the `runs` table.
    pub metric: String,
    /// The mean and its 95 % confidence interval.
    pub interval: Interval,
}

/// The difference between a policy and the baseline of its cell, for one metric.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The index of the cell.
    pub cell: usize,
    /// The policy.
    pub policy: String,
    /// The baseline.
    pub baseline: String,
    /// The column of the `runs` table.
    pub metric: String,
    /// The policy minus the baseline; paired by seed, except for closed loops.
    pub means: MeanDifference,
    /// The confidence interval of the difference by percentile bootstrap; `None` for one seed.
    pub bootstrap: Option<(f64, f64)>,
    /// The p-values of the difference, corrected for all comparisons of this metric in the cell: all policies (Holm).
    pub holm: Corrected,
}

/// The statistics of a study.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Findings {
    /// The means by cell, policy, and column of the `runs` table.
    pub estimates: Vec<Estimate>,
    /// The differences, in the same order; the baselines have none.
    pub differences: Vec<Difference>,
}

/// Summarises the runs of every cell, which are ordered as [`super::execute()`] returns them.
pub fn findings(study: &Study, cells: &[Vec<RunSummary>]) -> Findings {
    let mut found = Findings::default();
    for (at, (plan, runs)) in study.cells.iter().zip(cells).enumerate() {
        let policies: Vec<&[RunSummary]> = runs.chunk_by(|a, b| a.policy == b.policy).collect();
        for runs in &policies {
            found.estimates.extend(metrics(runs).into_iter().filter_map(|metric| {
                let values: Vec<f64> = column(runs, &metric).into_iter().flatten().collect();
                let interval = mean_interval(&values, LEVEL)?;
                Some(Estimate { cell: at, policy: runs[0].policy.clone(), metric, interval })
            }));
        }
        found.differences.extend(differences(at, plan, &policies));
    }
    // The p-values are corrected per cell, so that a cell has the same p-values as a plan with the runs of this cell only.
    let families: Vec<String> = found.differences.iter().map(|one| format!("{}/{}", one.cell, one.metric)).collect();
    let tests = families.iter().zip(&found.differences).map(|(family, one)| (family.as_str(), one.means.test));
    let after = corrected(tests);
    found.differences.iter_mut().zip(after).for_each(|(one, holm)| one.holm = holm);
    found
}

/// Compares the policies of a cell with its baseline.
fn differences(cell: usize, plan: &Plan, policies: &[&[RunSummary]]) -> Vec<Difference> {
    let baseline = &plan.policies[plan.baseline].name;
    let Some(base) = policies.iter().find(|runs| runs[0].policy == *baseline) else { return Vec::new() };
    let others = policies.iter().filter(|runs| runs[0].policy != *baseline && runs.len() == base.len());
    let pairs: Vec<(&[RunSummary], String)> =
        others.flat_map(|runs| metrics(runs).into_iter().map(move |metric| (*runs, metric))).collect();
    let design = plan.workload.design();
    let one = |(runs, metric): &(&[RunSummary], String)| {
        let policy = &runs[0].policy;
        let purpose = format!("{}/{policy}/{metric}", plan.cell);
        let (first, second) = (column(base, metric), column(runs, metric));
        let means = difference(design, &first, &second, LEVEL)?;
        let bootstrap = bootstrap(design, &first, &second, LEVEL, &purpose);
        let (policy, baseline, metric) = (policy.clone(), baseline.clone(), metric.clone());
        Some(Difference { cell, policy, baseline, metric, means, bootstrap, holm: Corrected::default() })
    };
    pairs.par_iter().filter_map(one).collect()
}

/// Returns the measured columns of the `runs` table: numeric columns that are not inputs.
fn metrics(runs: &[RunSummary]) -> Vec<String> {
    let columns = runs.first().map(|run| Table::Runs.columns(&run.dims)).unwrap_or_default();
    let measured = columns.into_iter().filter(|column| column.value != Kind::Text && !column.given);
    // The columns after the declared ones are own metrics of the plan.
    let declared = runs.first().map_or(0, |run| Table::Runs.columns(&run.dims).len());
    let own = runs.first().into_iter().flat_map(|run| run.values.iter().skip(declared)).map(|(name, _)| name.clone());
    measured.map(|column| column.name).chain(own).collect()
}

fn column(runs: &[RunSummary], metric: &str) -> Vec<Option<f64>> {
    runs.iter().map(|run| run.number(metric).filter(|value| value.is_finite())).collect()
}

impl TableRow for Estimate {
    type Of<'a> = Estimate;

    const TABLE: &'static str = "estimates";

    fn columns() -> Vec<Column<ColumnValue<Estimate>>> {
        type C = Column<ColumnValue<Estimate>>;
        vec![
            C::text("policy", "the policy", |one| Some(&one.policy)),
            C::text("metric", "the column of the runs table", |one| Some(&one.metric)),
            C::int("seeds", "seeds with a value", |one| Some(one.interval.n as u64)),
            C::float("mean", "the mean over them", |one| Some(one.interval.mean)),
            C::float("low", "the lower end of its 95 % confidence interval", |one| one.interval.low),
            C::float("high", "the upper end", |one| one.interval.high),
        ]
    }
}

impl TableRow for Difference {
    type Of<'a> = Difference;

    const TABLE: &'static str = "differences";

    fn columns() -> Vec<Column<ColumnValue<Difference>>> {
        type C = Column<ColumnValue<Difference>>;
        vec![
            C::text("policy", "the policy", |one| Some(&one.policy)),
            C::text("baseline", "the policy that it is compared with", |one| Some(&one.baseline)),
            C::text("metric", "the column of the runs table", |one| Some(&one.metric)),
            C::text("design", "how the runs are compared: paired or unpaired", |one| Some(one.means.design.name())),
            C::int("seeds", "seeds that are compared", |one| Some(one.means.test.difference.n as u64)),
            C::float("baseline_mean", "the mean under the baseline", |one| Some(one.means.base)),
            C::float("mean", "the mean under the policy", |one| Some(one.means.new)),
            C::float("difference", "the second minus the first", |one| Some(one.means.test.difference.mean)),
            C::float("low", "the lower end of its 95 % confidence interval", |one| one.means.test.difference.low),
            C::float("high", "the upper end", |one| one.means.test.difference.high),
            C::float("bootstrap_low", "the lower end by percentile bootstrap", |one| Some(one.bootstrap?.0)),
            C::float("bootstrap_high", "the upper end by percentile bootstrap", |one| Some(one.bootstrap?.1)),
            C::float(
                "effect_size",
                "Hedges' g: the difference over a standard deviation, corrected for few seeds",
                |one| one.means.effect,
            ),
            C::float("p", "p-value of no difference", |one| one.means.test.p),
            C::float("p_holm", "the same, corrected for all comparisons of the metric in the cell", |one| one.holm.p),
            C::float("margin", "the margin of equivalence", |one| one.means.test.margin),
            C::float("p_equivalent", "p-value of a difference of the margin or more", |one| {
                one.means.test.p_equivalent
            }),
            C::float("p_equivalent_holm", "the same, corrected", |one| one.holm.p_equivalent),
        ]
    }
}

impl Findings {
    /// Writes `estimates` and `differences` to the folder `statistics`, each as Parquet and as CSV, and lists them in
    /// `made.json`. Errors: a file cannot be written.
    pub fn write(&self, study: &Study, results: &Path) -> Result<()> {
        let folder = results.join(STATISTICS);
        check_links(results, &folder)?;
        let estimates = self.estimates.iter().map(|one| (one.cell, one));
        let differences = self.differences.iter().map(|one| (one.cell, one));
        let mut written = write::<Estimate>(study, &folder, estimates)?.to_vec();
        written.extend(write::<Difference>(study, &folder, differences)?);
        Manifest::renew(results, None, &[STATISTICS], &written)
    }
}

/// Writes rows as Parquet and as CSV, with the axes of each row's cell as the first columns.
fn write<'a, R: TableRow>(
    study: &Study,
    folder: &Path,
    rows: impl Iterator<Item = (usize, &'a R::Of<'a>)>,
) -> Result<[WrittenFile; 2]> {
    let axes: Vec<Vec<(String, Constant)>> = study.cells.iter().map(Plan::axes).collect();
    let axis = |(name, constant): &(String, Constant)| Field::new(name, constant.kind());
    let columns = R::columns();
    let own = columns.iter().map(|column| Field::new(column.name, column.value.kind()));
    let fields: Vec<Field> = axes.first().into_iter().flatten().map(axis).chain(own).collect();
    let row = |(cell, one): (usize, &'a R::Of<'a>)| -> Vec<Cell> {
        let front = axes[cell].iter().map(|(_, value)| value.cell());
        front.chain(columns.iter().map(|column| column.value.cell(one, 0))).collect()
    };
    let rows: Vec<Vec<Cell>> = rows.map(row).collect();
    let mut metadata = program();
    metadata.push(("plimsoll.schema".to_owned(), schema::VERSION.to_string()));
    metadata.push(("plimsoll.plan".to_owned(), study.text.clone()));
    let path = folder.join(format!("{}.csv", R::TABLE));
    let header: Vec<String> = fields.iter().map(|field| field.name.clone()).collect();
    let mut table = TableWriter::create(&folder.join(format!("{}.parquet", R::TABLE)), &[], fields, &metadata)?;
    rows.iter().try_for_each(|row| table.push(row.iter().copied()))?;
    let table = table.finish()?;
    let fail = |error: &dyn std::fmt::Display| Error::output(&path, error);
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(&header).map_err(|error| fail(&error))?;
    let text = |cell: &Cell| match cell {
        Cell::Null => String::new(),
        Cell::Int(value) => value.to_string(),
        Cell::Large(value) => value.to_string(),
        Cell::Float(value) => value.to_string(),
        Cell::Text(text) => no_formula(text),
    };
    rows.iter().try_for_each(|row| writer.write_record(row.iter().map(text))).map_err(|error| fail(&error))?;
    let text = writer.into_inner().map_err(|error| fail(&error))?;
    Ok([table, write_whole(&path, &text)?])
}
