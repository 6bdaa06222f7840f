//! The kinds of figures that a plan can describe, one file each, and their common parts.
//!
//! Each kind is declared by a `KindRow`: its name, defaults, accepted keys and drawing function. A new kind needs only a file and a line in
//! `KINDS`.

mod bars;
mod boxes;
mod cdf;
mod difference;
mod heatmap;
mod lines;
mod ranks;
mod scatter;
mod time;

use std::fmt;

use plimsoll_base::error::Result;
use plimsoll_charts::figure::{Axis, Category, Chart, Data, Panel};
use plimsoll_results::schema::Table;

use super::check::FigureRequest;
use super::draw::Picture;
use super::field::Field;
use super::rows::{FigureRows, Series, Whole};
use plimsoll_metrics::numbers::thousands;

/// All kinds.
pub(super) static KINDS: &[&KindRow] = &[
    // One line per kind, in the order of messages.
    &lines::ROW,
    &bars::ROW,
    &cdf::ROW,
    &boxes::ROW,
    &difference::ROW,
    &ranks::ROW,
    &heatmap::ROW,
    &scatter::ROW,
    &time::ROW,
];

/// The declaration of a kind of figure. The rest of the program uses a kind only through its row.
pub(super) struct KindRow {
    /// Its name in plans.
    pub name: &'static str,
    /// The content of a figure, in a few words.
    pub about: &'static str,
    /// The default table.
    pub table: Table,
    /// The field along the x axis.
    pub x: X,
    /// Whether it has a second axis, `y`, and shows a `value`.
    pub pairs: bool,
    /// The default column.
    pub shows: Option<&'static str>,
    /// The keys that it accepts, in addition to the keys of every kind.
    pub takes: &'static [&'static str],
    /// The drawing function.
    pub draw: Draw,
    /// Whether a figure shows all rows of a curve as one distribution. Every setting with several values then needs a key.
    pub mixes: fn(&FigureRequest) -> bool,
}

/// The horizontal axis of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum X {
    /// Not a field that a plan can select.
    None,
    /// Numbers or names.
    Names,
    /// Numbers.
    Numbers,
    /// The time of the table.
    Time,
}

/// The drawing function of a kind, by its input.
pub(super) enum Draw {
    /// From the rows of its table.
    Rows(fn(&FigureRequest, &FigureRows) -> Picture),
    /// From the differences of policies; `None` if there are none.
    Differences(fn(&FigureRequest, &Whole) -> Result<Option<Picture>>),
}

impl KindRow {
    /// The defaults of most kinds.
    const PLAIN: KindRow = KindRow {
        name: "",
        about: "",
        table: Table::Runs,
        x: X::None,
        pairs: false,
        shows: None,
        takes: &[],
        draw: Draw::Differences(|_, _| Ok(None)),
        mixes: |_| false,
    };
}

impl PartialEq for KindRow {
    fn eq(&self, other: &KindRow) -> bool {
        self.name == other.name
    }
}

impl fmt::Debug for KindRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

fn x_name(request: &FigureRequest) -> &str {
    request.x.as_ref().map_or("x", Field::name)
}

fn y_name(request: &FigureRequest) -> &str {
    if request.y.len() == 1 { &request.y[0].name } else { "value" }
}

/// Returns the horizontal axis of numbers.
fn x_axis(request: &FigureRequest) -> Axis {
    request.x.as_ref().map(Field::axis).unwrap_or_default()
}

/// Returns the horizontal axis of names.
fn names_axis(request: &FigureRequest) -> Axis {
    // Names in seconds have their unit in the label, since no axis adds it.
    let axis = x_axis(request);
    let unit = if axis.measure.is_time() { " (s)" } else { "" };
    Axis::number(format!("{}{unit}", axis.label))
}

fn data(request: &FigureRequest, panels: &[Panel]) -> Data {
    Data::of_panels(["panel", "series", x_name(request), y_name(request)], panels)
}

/// Number of places along an axis at which curves of several runs are compared.
const STEPS: usize = 240;

/// Returns a category labelled with its number of jobs or tasks.
fn category(label: String, weight: u64, what: Option<&str>) -> Category {
    let note = what.map(|what| match weight {
        1 => format!("1 {}", what.trim_end_matches('s')),
        _ => format!("{} {what}", thousands(weight)),
    });
    Category { label, notes: note.into_iter().collect() }
}

/// Returns the colour key of a series. Without series, all bars have one key, unless each bar is a policy and is coloured by its name.
fn key(request: &FigureRequest, name: &Series) -> String {
    match name.key.is_empty() && request.x != Some(Field::Policy) {
        true => "all".to_owned(),
        false => name.key.clone(),
    }
}

/// Returns a chart. If each curve has its own panel, every panel also shows the baseline's curve.
fn beside(rows: &FigureRows, chart: Chart) -> Chart {
    Chart { reference: Some(rows.baseline.clone()), ..chart }
}

/// Returns a chart that is as high as its rows need, unless the plan states the height.
fn tall(request: &FigureRequest, chart: Chart, height: f64) -> Chart {
    let height = request.paper.height.unwrap_or(height);
    Chart { size_pt: (chart.size_pt.0, height), ..chart }
}
