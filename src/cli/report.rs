//! `plimsoll report`: rewrites the HTML report of a results folder from its tables.

use std::path::{Path, PathBuf};

use super::{Context, print};
use crate::error::Result;
use crate::output::folder::StudyRecord;
use crate::output::folder::lock_there;
use crate::output::manifest::Manifest;
use crate::output::page::{NARROW, Pictures};
use crate::output::paper::Paper;
use crate::output::requests::{Requests, Whole};
use crate::output::{files, gallery, overview, page};

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
    let _alone = lock_there(&args.folder)?;
    let (report, notes) = make(&args.folder)?;
    notes.iter().for_each(|note| context.print_message(note));
    print::out(&format!("{}\n", report.display()))
}

/// The folder and the file that a report consists of.
const DRAWN: &[&str] = &[files::FIGURES, files::REPORT];

/// Draws the figures and writes the report; for a sweep, the figures and the report of every cell, and an overview. Returns the file of
/// the report or the overview, and notes on missing figures.
pub fn make(folder: &Path) -> Result<(PathBuf, Vec<String>)> {
    let whole = Whole::open(folder)?;
    let requests = Requests::beside(&whole)?;
    let gallery = requests.draw(&whole, &[])?;
    let plan = format!("{}{}", whole.plan, requests.appendix());
    let provenance = whole.provenance(&plan);
    let mut written = gallery::write(folder, &gallery.figures, &provenance)?;
    let mut notes = whole.missing();
    notes.extend(gallery.notes.iter().cloned());
    let narrow = requests.clone().on(Paper::wide("width", NARROW)?).draw(&whole, &[])?;
    let pictures = Pictures { gallery: &gallery, narrow: &narrow };
    let page = match whole.alone() {
        Some(results) => page::write(results, &pictures, &plan)?,
        None => {
            let folders = cells(&whole, &requests, &mut notes)?;
            let described = StudyRecord::read(folder)?.unwrap_or_default();
            let sweep = overview::SweepReport {
                name: &described.name,
                question: described.question.as_deref(),
                plan: &plan,
                whole: &whole,
                folders: &folders,
                metrics: &requests.metrics(),
                provenance: &provenance,
            };
            overview::write(&sweep, folder, &pictures)?
        }
    };
    written.push(page.clone());
    Manifest::renew(folder, None, DRAWN, &written)?;
    Ok((page.path, notes))
}

/// Draws the figures and writes the report of every cell; returns the names of their folders.
fn cells(whole: &Whole, requests: &Requests, notes: &mut Vec<String>) -> Result<Vec<String>> {
    let mut folders = Vec::new();
    // Messages are grouped with their cells, since most messages apply to every cell.
    let mut said: Vec<(String, Vec<&str>)> = Vec::new();
    for (cell, _, results) in &whole.cells {
        let mut own = gallery::Gallery::default();
        let mut narrow = gallery::Gallery::default();
        for (kind, paper) in requests.builtin() {
            own.add(gallery::draw(results, kind, &paper)?);
            narrow.add(gallery::draw(results, kind, &Paper::wide("width", NARROW)?)?);
        }
        let plan = &results.contents.plan;
        let mut written = gallery::write(&results.folder, &own.figures, &results.provenance(plan))?;
        written.push(page::write(results, &Pictures { gallery: &own, narrow: &narrow }, plan)?);
        Manifest::renew(&results.folder, None, DRAWN, &written)?;
        for note in own.notes {
            match said.iter_mut().find(|(known, _)| *known == note) {
                Some((_, cells)) => cells.push(cell),
                None => said.push((note, vec![cell])),
            }
        }
        folders.push(results.folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default());
    }
    notes.extend(said.into_iter().map(|(note, cells)| match cells.len() {
        all if all == whole.cells.len() => format!("in all cells: {note}"),
        1..=4 => format!("in {}: {note}", cells.join(", ")),
        many => format!("in {many} cells: {note}"),
    }));
    Ok(folders)
}
