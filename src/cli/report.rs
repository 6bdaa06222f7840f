//! `plimsoll report`: the HTML report of a results folder, from its tables.

use std::path::{Path, PathBuf};

use super::{Context, print};
use crate::error::Result;
use crate::experiment::study::folder::Described;
use crate::output::requests::{Requests, Whole};
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
    let whole = Whole::open(folder)?;
    let requests = Requests::beside(&whole)?;
    let gallery = requests.draw(&whole, &[])?;
    gallery::write(folder, &gallery)?;
    let plan = |text: &str| format!("{text}{}", requests.appendix());
    if let Some(results) = whole.alone() {
        page::write(results, &gallery, &plan(&results.contents.plan))?;
        return Ok((folder.join("report.html"), gallery.notes));
    }
    let mut notes = gallery.notes.clone();
    let mut folders = Vec::new();
    for (cell, _, results) in &whole.cells {
        let mut own = gallery::Gallery::default();
        for (kind, paper) in requests.builtin() {
            own.add(gallery::draw(results, kind, &paper)?);
        }
        gallery::write(&results.folder, &own)?;
        page::write(results, &own, &results.contents.plan)?;
        notes.extend(own.notes.into_iter().map(|note| format!("{cell}: {note}")));
        folders.push(results.folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default());
    }
    let cells: Vec<String> = whole.cells.iter().map(|(name, ..)| name.clone()).collect();
    let Some(described) = Described::read(folder)? else { return Ok((folder.join("report.html"), notes)) };
    let sweep = overview::Sweep {
        name: &described.name,
        question: described.question.as_deref(),
        plan: &plan(&described.plan),
        cells: &cells,
        folders: &folders,
    };
    let table = folder.join(crate::experiment::ESTIMATES);
    Ok((overview::write(&sweep, &table, folder, &gallery)?, notes))
}
