//! `plimsoll plot`: the figures of a results folder, from its tables.

use std::path::PathBuf;

use super::{Context, print};
use crate::error::Result;
use crate::output::gallery;
use crate::output::read::Results;

/// Redraw the figures of a results folder from its tables, without simulating
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  plimsoll plot results/facebook
  plimsoll plot results/facebook --only reduction --only completion")]
pub struct Args {
    /// A folder that `run` or `replay -o` has written
    folder: PathBuf,
    /// Only this figure: reduction, completion, demands, utilisation, shares or fairness; may be given several times
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
}

pub fn run(args: &Args, context: &Context) -> Result<()> {
    let results = Results::open(&args.folder)?;
    let gallery = gallery::draw(&results, &args.only)?;
    gallery::write(&results, &gallery)?;
    gallery.notes.iter().for_each(|note| context.say(note));
    let file = |name: &str| format!("{}\n", args.folder.join("figures").join(name).display());
    let files = gallery.figures.iter().flat_map(|figure| ["svg", "png"].map(|kind| format!("{}.{kind}", figure.name)));
    print::out(&files.map(|name| file(&name)).collect::<String>())
}
