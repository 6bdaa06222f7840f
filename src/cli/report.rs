//! `plimsoll report`: the HTML report of a results folder, from its tables.

use std::path::{Path, PathBuf};

use super::{Context, print};
use crate::error::Result;
use crate::output::read::Results;
use crate::output::{gallery, page};

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

/// Draws the figures and writes the report; returns its file, and notes on figures that are missing.
pub fn make(folder: &Path) -> Result<(PathBuf, Vec<String>)> {
    let results = Results::open(folder)?;
    let gallery = gallery::draw(&results, &[])?;
    gallery::write(&results, &gallery)?;
    page::write(&results, &gallery)?;
    Ok((folder.join("report.html"), gallery.notes))
}
