//! The overview page of a sweep: every cell under every policy, made of the table of estimates.

use std::path::{Path, PathBuf};

use super::gallery::Gallery;
use super::headline::{Better, headline};
use super::html::{self, Column as Heading, Report, Table as Sheet};
use super::numbers::with_half;
use super::page::inline;
use super::provenance::Provenance;
use super::read::Frame;
use super::table::write_whole;
use crate::error::{Error, Result};
use crate::metrics::Interval;
use crate::units::Dim;

/// What the page is about.
pub struct Sweep<'a> {
    /// Its title.
    pub name: &'a str,
    /// What it asks.
    pub question: Option<&'a str>,
    /// The plan.
    pub plan: &'a str,
    /// Names of the cells, in order.
    pub cells: &'a [String],
    /// The folders of their results, below the sweep's.
    pub folders: &'a [String],
    /// What all of it is made of.
    pub provenance: &'a Provenance,
}

/// More cells than this are not named one by one.
const NOTES: usize = 12;

/// The table of estimates, column by column.
struct Estimates {
    cell: Vec<String>,
    policy: Vec<String>,
    metric: Vec<String>,
    intervals: Vec<Interval>,
}

/// Writes `report.html` in the sweep's folder from the table of estimates at `table` and figures over all cells.
///
/// Errors: the table cannot be read, or the page not be written.
pub fn write(sweep: &Sweep, table: &Path, folder: &Path, gallery: &Gallery) -> Result<PathBuf> {
    let estimates = read(table)?;
    let mut policies: Vec<&String> = Vec::new();
    for policy in &estimates.policy {
        if !policies.contains(&policy) {
            policies.push(policy);
        }
    }
    // The resources are those whose use was measured.
    let used = estimates.metric.iter().filter_map(|metric| metric.strip_prefix("used_"));
    let mut names: Vec<&str> = Vec::new();
    used.for_each(|name| {
        if !names.contains(&name) {
            names.push(name);
        }
    });
    let dims: Vec<Dim> = names.iter().map(|name| Dim::parse(name).0).collect();
    let sheet = |column: super::headline::Headline| {
        let good = match column.better {
            Better::Lower => "; less is better",
            Better::Higher => "; more is better",
            Better::Neither => "",
        };
        let cell = |cell: &String, policy: &String| {
            let at = (0..estimates.cell.len()).find(|&at| {
                estimates.cell[at] == *cell && estimates.policy[at] == *policy && estimates.metric[at] == column.column
            });
            at.map(|at| with_half(Some(estimates.intervals[at]))).unwrap_or_default()
        };
        let heading = |name: &str, numeric| Heading { name: name.to_owned(), explanation: String::new(), numeric };
        let row = |name: &String| -> Vec<String> {
            std::iter::once(name.clone()).chain(policies.iter().map(|policy| cell(name, policy))).collect()
        };
        Sheet {
            caption: format!(
                "{}: {}{good}; means over seeds with half-widths of their 95 % intervals",
                column.heading, column.about
            ),
            columns: std::iter::once(heading("cell", false))
                .chain(policies.iter().map(|name| heading(name, true)))
                .collect(),
            rows: sweep.cells.iter().map(row).collect(),
            ..Sheet::default()
        }
    };
    let report = Report {
        title: sweep.name.to_owned(),
        question: sweep.question.map(str::to_owned),
        summary: headline(&dims).into_iter().map(sheet).collect(),
        plan_toml: sweep.plan.to_owned(),
        reproduce: vec![format!("plimsoll run {}.toml  # the plan of this page, saved under that name", sweep.name)],
        figures: gallery.figures.iter().map(inline).collect(),
        figures_first: true,
        notes: match sweep.folders {
            few if few.len() <= NOTES => {
                few.iter().map(|cell| format!("A report of its own: {cell}/report.html")).collect()
            }
            many => vec![format!("Each of the {} cells has a report of its own: cell=NAME/report.html", many.len())],
        },
        provenance: sweep.provenance.rows(),
        ..Report::default()
    };
    let path = folder.join(html::FILE);
    write_whole(&path, html::render(&report).as_bytes())?;
    Ok(path)
}

fn read(path: &Path) -> Result<Estimates> {
    let Some(table) = Frame::open(path)? else {
        return Err(Error::trace(path, 0, "", "there is no table of estimates; run the plan again"));
    };
    let (mean, low, high) = (table.numbers("mean")?, table.numbers("low")?, table.numbers("high")?);
    let interval = |at: usize| Interval { mean: mean[at].unwrap_or(f64::NAN), low: low[at], high: high[at], n: 0 };
    Ok(Estimates {
        cell: table.names("cell")?,
        policy: table.names("policy")?,
        metric: table.names("metric")?,
        intervals: (0..mean.len()).map(interval).collect(),
    })
}
