//! The figures of a results folder, drawn from its tables alone.
//!
//! A figure without its tables is omitted, and a note reports this. A figure of a single run shows the first seed; figures that compare
//! delays pool all seeds and show confidence intervals.

mod delays;
mod demands;
mod deviation;
mod fairness;
mod groups;
mod over_time;
mod quotas;
mod speeds;
mod water;

use std::collections::BTreeMap;
use std::path::Path;

use plimsoll_base::error::Result;
use plimsoll_charts::figure::{Axis, Chart, Data, MANY};
use plimsoll_charts::paper::Paper;
use plimsoll_results::files::FIGURES;
use plimsoll_results::folder::check_links;
use plimsoll_results::provenance::Provenance;
use plimsoll_results::read::{Part, Results};
use plimsoll_results::schema::Table;
use plimsoll_store::file::WrittenFile;

use crate::picture;

/// A figure.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Drawn {
    /// The name, which is the stem of its files.
    pub name: String,
    /// A description of its content.
    pub caption: String,
    /// The drawing.
    pub svg: String,
    /// The drawn data.
    pub data: Data,
}

/// Figures, and notes on the missing ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gallery {
    /// The figures, in the order of a report.
    pub figures: Vec<Drawn>,
    /// Notes on the reasons for missing figures, and on the omissions of figures.
    pub notes: Vec<String>,
}

impl Gallery {
    /// Appends the figures and notes of another gallery.
    pub fn add(&mut self, other: Gallery) {
        self.figures.extend(other.figures);
        self.notes.extend(other.notes);
    }

    /// Creates a gallery with no figure, and a note with the reason.
    pub fn without(name: &str, why: &str) -> Gallery {
        Gallery { figures: Vec::new(), notes: vec![format!("no figure '{name}': {why}")] }
    }

    /// Creates a gallery with no figure and a note that its table was not written.
    pub fn without_table(name: &str, table: Table) -> Gallery {
        Gallery::without(name, &format!("the {} table was not written", table.name()))
    }

    fn with_figure(name: &str, caption: String, svg: String, data: Data) -> Gallery {
        Gallery { figures: vec![Drawn { name: name.to_owned(), caption, svg, data }], notes: Vec::new() }
    }
}

/// The kinds of figures and their drawing functions.
const KINDS: [(&str, fn(&Results, &Paper) -> Result<Gallery>); 10] = [
    ("reduction", delays::reduction),
    ("completion", delays::completion),
    ("demands", demands::demands),
    ("utilisation", over_time::utilisation),
    ("shares", over_time::shares),
    ("speeds", speeds::speeds),
    ("fairness", fairness::fairness),
    ("deviation", deviation::deviation),
    ("water", water::water),
    ("quotas", quotas::quotas),
];

/// The names of the kinds, in the order of a report.
pub const NAMES: [&str; KINDS.len()] = {
    let (mut names, mut at) = ([""; KINDS.len()], 0);
    while at < KINDS.len() {
        names[at] = KINDS[at].0;
        at += 1;
    }
    names
};

/// Draws the figures of one kind; an unknown name gives none. Errors: a damaged table.
pub fn draw(results: &Results, kind: &str, paper: &Paper) -> Result<Gallery> {
    let Some((_, draw)) = KINDS.iter().find(|(name, _)| *name == kind) else { return Ok(Gallery::default()) };
    let mut gallery = draw(results, paper)?;
    for figure in &mut gallery.figures {
        figure.svg = paper.zoomed(std::mem::take(&mut figure.svg));
    }
    Ok(gallery)
}

/// The size of a figure that is beside another one in the report, in points.
const HALF: (f64, f64) = (270.0, 205.0);

/// Returns the chart with one curve per policy; it is half as wide as the page unless there are many policies.
fn by_policy(results: &Results, x: Axis, y: Axis) -> Chart {
    let many = results.contents.policies.len() > MANY;
    let reference = Some(results.contents.baseline.clone());
    Chart { size_pt: if many { Chart::PAGE } else { HALF }, reference, ..Chart::new(x, y) }
}

/// Writes figures to `figures/NAME.svg`, `.png`, `.pdf` and `.csv` in a results folder; returns the files.
pub fn write(folder: &Path, figures: &[Drawn], about: &Provenance) -> Result<Vec<WrittenFile>> {
    check_links(folder, &folder.join(FIGURES))?;
    let folder = folder.join(FIGURES);
    let one = |figure: &Drawn| picture::write_all(&folder, &figure.name, (&figure.svg, &figure.data), about);
    Ok(figures.iter().map(one).collect::<Result<Vec<_>>>()?.concat())
}

/// The ends of runs in seconds, by policy and run. The last row of a series applies until the end of its run, since rows are written only
/// at changes.
struct RunEnds(BTreeMap<(usize, usize), f64>);

impl RunEnds {
    fn read(results: &Results, run: Option<usize>) -> Result<RunEnds> {
        let parts = results.table(Table::Runs, &["end_us"], run)?;
        let end = |part: &Part| Ok(((part.policy, part.run), part.numbers("end_us")?.first().copied().flatten()));
        let ends = parts.iter().map(end).collect::<Result<Vec<_>>>()?;
        Ok(RunEnds(ends.into_iter().filter_map(|(key, end)| Some((key, end? / 1e6))).collect()))
    }

    /// Returns the end of the run that a table belongs to, but at least `last`, the time of the last row.
    fn after(&self, part: &Part, last: f64) -> f64 {
        self.0.get(&(part.policy, part.run)).copied().unwrap_or(last).max(last)
    }
}

/// Describes the run of a figure of one run: `, seed 3`, or empty for a trace.
fn seed_of(results: &Results, run: usize) -> String {
    let seed = results.contents.seeds.get(run).copied().flatten();
    seed.map(|seed| format!(", seed {seed}")).unwrap_or_default()
}

/// Describes the number of seeds; empty for one.
fn seeds_of(results: &Results) -> String {
    match results.contents.seeds.len() {
        1 => String::new(),
        seeds => format!(" over {seeds} seeds"),
    }
}
