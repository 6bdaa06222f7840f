//! The article's performance tables: time per update by method, number of groups and number of resources, as a table
//! (Parquet and CSV) and two figures. A file describes the measurements.

use std::path::Path;
use std::time::Duration;

use plimsoll::column::{Cell, Kind};
use plimsoll::error::Result;
use plimsoll::fair::water::Semantics;
use plimsoll::output::figure::{Axis, Chart, Join, Panel, Series, lines, small_multiples};

use super::{Spot, Time, results};

/// The measurements, as described in the file.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Plan {
    /// The folder under `results/`.
    name: String,
    /// The methods, one line each in the figure.
    methods: Vec<Method>,
    /// Numbers of groups.
    groups: Vec<usize>,
    /// Numbers of resources.
    resources: Vec<usize>,
    /// Seed of groups and changes.
    seed: u64,
    /// The time for one method at one size.
    milliseconds: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
enum Method {
    Tree,
    Selection,
    Sort,
    Iterative,
}

impl Method {
    fn name(self) -> &'static str {
        match self {
            Method::Tree => "tree",
            Method::Selection => "selection",
            Method::Sort => "sort",
            Method::Iterative => "iterative",
        }
    }

    /// Returns the time, and the mean and the maximum number of rounds if the method has rounds.
    fn measure(self, spot: Spot) -> (Time, Option<(f64, usize)>) {
        match self {
            Method::Tree => (spot.tree(), None),
            Method::Selection => (spot.selection(), None),
            Method::Sort => (spot.sort(), None),
            Method::Iterative => {
                let (time, mean, most) = spot.rounds();
                (time, Some((mean, most)))
            }
        }
    }
}

/// One row of the table.
struct Row {
    groups: usize,
    resources: usize,
    method: Method,
    time: Time,
    /// The ratios to the first method's time: of the medians, and of the lowest times, which other programs affect least.
    factors: [f64; 2],
    rounds: Option<(f64, usize)>,
}

const COLUMNS: [(&str, Kind); 10] = [
    ("groups", Kind::Int),
    ("resources", Kind::Int),
    ("method", Kind::Text),
    ("median_ns", Kind::Float),
    ("lowest_ns", Kind::Float),
    ("highest_ns", Kind::Float),
    ("times_first_median", Kind::Float),
    ("times_first_lowest", Kind::Float),
    ("rounds_mean", Kind::Float),
    ("rounds_most", Kind::Int),
];

impl Row {
    fn cells(&self) -> [Cell<'_>; 10] {
        let rounds = self.rounds;
        [
            Cell::from(self.groups as u64),
            Cell::from(self.resources as u64),
            Cell::from(self.method.name()),
            Cell::from(self.time.median),
            Cell::from(self.time.lowest),
            Cell::from(self.time.highest),
            Cell::from(self.factors[0]),
            Cell::from(self.factors[1]),
            Cell::from(rounds.map(|(mean, _)| mean)),
            Cell::from(rounds.map(|(_, most)| most as u64)),
        ]
    }
}

/// Performs the measurements of the file and writes `results/NAME`. Errors: those of reading the file and of writing the results.
pub fn write(path: &Path) -> Result<()> {
    let (plan, text) = results::plan(path, |plan: &Plan| {
        let some = !plan.methods.is_empty() && !plan.groups.contains(&0) && !plan.resources.contains(&0);
        if some { Ok(()) } else { Err("expected at least one method, and numbers of at least 1") }
    })?;
    let folder = results::folder(path, &plan.name)?;
    let mut rows = Vec::new();
    for &groups in &plan.groups {
        for &resources in &plan.resources {
            let budget = Duration::from_millis(plan.milliseconds);
            let spot = Spot { semantics: Semantics::MinPlusShare, groups, resources, seed: plan.seed, budget };
            let mut first = None;
            for &method in &plan.methods {
                let (time, rounds) = method.measure(spot);
                let base: Time = *first.get_or_insert(time);
                let factors = [time.median / base.median, time.lowest / base.lowest];
                println!("{groups} groups x {resources}: {} {time} = {:.2}", method.name(), factors[0]);
                rows.push(Row { groups, resources, method, time, factors, rounds });
            }
        }
    }
    let cells: Vec<_> = rows.iter().map(Row::cells).collect();
    let figures = [("groups", by_groups(&plan, &rows)), ("resources", by_resources(&plan, &rows))];
    results::write(&folder, "levels", &COLUMNS, &cells, &figures, &text)?;
    println!("results/{} has levels.parquet, levels.csv, and the figures groups and resources", plan.name);
    Ok(())
}

/// Returns the time per update in seconds against `x`, for the rows that `of` selects.
fn series(key: String, rows: &[Row], x: impl Fn(&Row) -> usize, of: impl Fn(&Row) -> bool) -> Series {
    Series::new(key, rows.iter().filter(|row| of(row)).map(|row| (x(row) as f64, row.time.median * 1e-9)).collect())
}

/// Formats a count: `1 group`, `20 groups`, `3k groups`.
fn plural(count: usize, what: &str) -> String {
    let number = [(1_000_000, "M"), (1000, "k")].into_iter().find(|(unit, _)| count.is_multiple_of(*unit));
    let number = number.map_or_else(|| count.to_string(), |(unit, sign)| format!("{}{sign}", count / unit));
    if count == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

/// Draws one line per method, at the smallest and the largest number of resources.
fn by_groups(plan: &Plan, rows: &[Row]) -> String {
    let mut ends: Vec<usize> =
        [plan.resources.iter().min(), plan.resources.iter().max()].into_iter().flatten().copied().collect();
    ends.dedup();
    let panel = |&resources: &usize| Panel {
        title: plural(resources, "resource"),
        series: plan
            .methods
            .iter()
            .map(|&method| {
                let of = |row: &Row| row.method == method && row.resources == resources;
                series(method.name().to_owned(), rows, |row| row.groups, of)
            })
            .collect(),
    };
    let chart = Chart {
        size_pt: (Chart::PAGE.0, 210.0),
        columns: Some(ends.len()),
        ..Chart::new(Axis::number("groups").log(), Axis::seconds("time per update").log())
    };
    small_multiples(&chart, Join::Straight, &ends.iter().map(panel).collect::<Vec<_>>())
}

/// Draws one line per number of groups, for the first method.
fn by_resources(plan: &Plan, rows: &[Row]) -> String {
    let line = |&groups: &usize| {
        let of = |row: &Row| row.method == plan.methods[0] && row.groups == groups;
        series(plural(groups, "group"), rows, |row| row.resources, of)
    };
    let label = format!("time per update, {}", plan.methods[0].name());
    let ends = |of: fn(f64, f64) -> f64| plan.resources.iter().map(|&dims| dims as f64).reduce(of).unwrap_or(1.0);
    let x = Axis::number("resources").log().range(ends(f64::min), ends(f64::max));
    let chart = Chart { size_pt: (Chart::COLUMN.0, 210.0), ..Chart::new(x, Axis::seconds(label).log()) };
    lines(&chart, Join::Straight, &plan.groups.iter().map(line).collect::<Vec<_>>())
}
