//! The figures of a results folder, drawn from its tables alone.
//!
//! A figure whose tables were not written is left out, and a note says so. One figure that shows a single run shows
//! the first seed; those that compare delays pool all seeds and show how sure that is.

mod delays;
mod demands;
mod deviation;
mod fairness;
mod groups;
mod over_time;
mod quotas;
mod water;

use std::collections::BTreeMap;

use super::picture::DOTS;
use super::raster;
use super::read::{Part, Results};
use super::schema::Table;
use super::table::write_whole;
use crate::error::{Error, Result, nearest};

/// A figure.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Drawn {
    /// Its name: the file's stem.
    pub name: String,
    /// What it shows.
    pub caption: String,
    /// The drawing.
    pub svg: String,
}

/// Figures, and what has to be said of those that are not there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gallery {
    /// The figures, in the order of a report.
    pub figures: Vec<Drawn>,
    /// Why others are missing, or what one leaves out.
    pub notes: Vec<String>,
}

impl Gallery {
    fn of(name: &str, caption: String, svg: String) -> Gallery {
        Gallery { figures: vec![Drawn { name: name.to_owned(), caption, svg }], notes: Vec::new() }
    }

    fn without(name: &str, why: &str) -> Gallery {
        Gallery { figures: Vec::new(), notes: vec![format!("no figure '{name}': {why}")] }
    }

    fn without_table(name: &str, table: Table) -> Gallery {
        Gallery::without(name, &format!("the {} table was not written", table.name()))
    }
}

/// The kinds of figures, each with who draws it.
const KINDS: [(&str, fn(&Results) -> Result<Gallery>); 9] = [
    ("reduction", delays::reduction),
    ("completion", delays::completion),
    ("demands", demands::demands),
    ("utilisation", over_time::utilisation),
    ("shares", over_time::shares),
    ("fairness", fairness::fairness),
    ("deviation", deviation::deviation),
    ("water", water::water),
    ("quotas", quotas::quotas),
];

/// Draws all figures, or those of the kinds named in `only`. Errors: an unknown kind, a damaged table.
pub fn draw(results: &Results, only: &[String]) -> Result<Gallery> {
    let names = || KINDS.iter().map(|(name, _)| *name);
    if let Some(unknown) = only.iter().find(|one| !names().any(|name| name == one.as_str())) {
        let hint = nearest(unknown, names()).map(|hint| format!(" (did you mean '{hint}'?)")).unwrap_or_default();
        return Err(Error::plan("--only", format!("'{unknown}'"), names().collect::<Vec<_>>().join(", ") + &hint));
    }
    let mut all = Gallery::default();
    for (name, draw) in KINDS {
        if only.is_empty() || only.iter().any(|one| one == name) {
            let one = draw(results)?;
            all.figures.extend(one.figures);
            all.notes.extend(one.notes);
        }
    }
    Ok(all)
}

/// The size of a figure that stands beside another in the report, in points.
const HALF: (f64, f64) = (270.0, 205.0);

/// Writes the figures to `figures/NAME.svg` and `.png` in the results folder.
pub fn write(results: &Results, gallery: &Gallery) -> Result<()> {
    let folder = results.folder.join("figures");
    for figure in &gallery.figures {
        write_whole(&folder.join(format!("{}.svg", figure.name)), figure.svg.as_bytes())?;
        write_whole(&folder.join(format!("{}.png", figure.name)), &raster::png(&figure.svg, DOTS)?)?;
    }
    Ok(())
}

/// When runs ended, in seconds, by policy and run: until then what the last row of a series says holds, for rows are
/// written at changes only.
struct Ends(BTreeMap<(usize, usize), f64>);

impl Ends {
    fn read(results: &Results, run: Option<usize>) -> Result<Ends> {
        let parts = results.table(Table::Runs, &["end_us"], run)?;
        let end = |part: &Part| Ok(((part.policy, part.run), part.numbers("end_us")?.first().copied().flatten()));
        let ends = parts.iter().map(end).collect::<Result<Vec<_>>>()?;
        Ok(Ends(ends.into_iter().filter_map(|(key, end)| Some((key, end? / 1e6))).collect()))
    }

    /// When the run of a table ended; never before `last`, its last row.
    fn after(&self, part: &Part, last: f64) -> f64 {
        self.0.get(&(part.policy, part.run)).copied().unwrap_or(last).max(last)
    }
}

/// Which run a figure of one run shows, in words: `, seed 3`, or nothing for a trace.
fn seed_of(results: &Results, run: usize) -> String {
    let seed = results.contents.seeds.get(run).copied().flatten();
    seed.map(|seed| format!(", seed {seed}")).unwrap_or_default()
}

/// All seeds together, in words.
fn seeds_of(results: &Results) -> String {
    match results.contents.seeds.len() {
        1 => String::new(),
        seeds => format!(" over {seeds} seeds"),
    }
}
