//! `plimsoll report`: the HTML report of a results folder, from its tables.

use std::path::{Path, PathBuf};

use super::{Context, print};
use crate::error::Result;
use crate::experiment::study::folder::{Described, of_cell};
use crate::output::read::Results;
use crate::output::{gallery, overview, page};

/// Rewrite the HTML report of a results folder, with its figures, from its tables
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  plimsoll report results/facebook
  plimsoll report results/mine && xdg-open results/mine/report.html")]
pub struct Args {
    /// A folder that `run` or `replay -o` has written
    folder: PathBuf,
}

pub fn run(args: &Args, context: &Context) -> Result<()> {
    let (report, notes) = make(&args.folder)?;
    notes.iter().for_each(|note| context.say(note));
    print::out(&format!("{}\n", report.display()))
}

/// Draws the figures and writes the report, of a sweep those of every cell and an overview; returns its file, and notes
/// on figures that are missing.
pub fn make(folder: &Path) -> Result<(PathBuf, Vec<String>)> {
    let Some(described) = Described::read(folder)? else { return of_one(folder) };
    let mut notes = Vec::new();
    let mut folders = Vec::new();
    let cells: Vec<String> = described.cells.iter().map(|(name, _)| name.clone()).collect();
    for cell in &cells {
        let place = of_cell(folder, cell);
        notes.extend(of_one(&place)?.1.into_iter().map(|note| format!("{cell}: {note}")));
        folders.push(place.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default());
    }
    let sweep = overview::Sweep {
        name: &described.name,
        question: described.question.as_deref(),
        plan: &described.plan,
        cells: &cells,
        folders: &folders,
    };
    let table = folder.join(crate::experiment::ESTIMATES);
    Ok((overview::write(&sweep, &table, folder)?, notes))
}

/// The figures and the report of a plan without a sweep, or of one cell.
fn of_one(folder: &Path) -> Result<(PathBuf, Vec<String>)> {
    let results = Results::open(folder)?;
    let gallery = gallery::draw(&results, &[])?;
    gallery::write(&results, &gallery)?;
    page::write(&results, &gallery)?;
    Ok((folder.join("report.html"), gallery.notes))
}
