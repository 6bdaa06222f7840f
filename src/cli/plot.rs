//! `plimsoll plot`: redraws the figures of a results folder from its tables.

use std::path::PathBuf;

use super::Context;
use crate::error::{Result, either};
use crate::output::files;
use crate::output::folder::lock_there;
use crate::output::gallery;
use crate::output::manifest::Manifest;
use crate::output::paper::{Paper, Preset};
use crate::output::requests::{Requests, Whole};

/// Redraw the figures of a results folder from its tables, without simulating
///
/// The file figures.toml in the folder defines the figures, as the plan did; without it the standard figures are drawn.
#[derive(clap::Args, Debug, serde::Deserialize)]
#[command(after_help = "Examples:
  plimsoll plot results/facebook
  plimsoll plot results/facebook --only reduction --only completion
  plimsoll plot results/facebook --preset ieee")]
pub struct Args {
    /// A folder that `run` or `replay -o` has written
    folder: PathBuf,
    #[arg(long, value_name = "NAME", help = format!("Only this figure: a name from the plan, or {}; may be given several \
        times", either(gallery::NAMES)))]
    only: Vec<String>,
    /// Draw for this width: acm, acm-wide, ieee, ieee-wide, usenix or slides
    #[arg(long, value_name = "NAME")]
    preset: Option<String>,
    /// Width in points
    #[arg(long, value_name = "POINTS", conflicts_with = "preset")]
    width: Option<f64>,
}

pub fn run(args: &Args, context: &Context) -> Result<()> {
    let _alone = lock_there(&args.folder)?;
    let whole = Whole::open(&args.folder)?;
    whole.missing().iter().for_each(|missing| context.warn(missing));
    let mut requests = Requests::beside(&whole)?;
    if let Some(name) = &args.preset {
        requests = requests.on(Paper::from_preset(Some(Preset::parse("--preset", name)?)));
    } else if let Some(width) = args.width {
        requests = requests.on(Paper::wide("--width", width)?);
    }
    let gallery = requests.draw(&whole, &args.only)?;
    let plan = format!("{}{}", whole.plan, requests.appendix());
    let written = gallery::write(&args.folder, &gallery.figures, &whole.provenance(&plan))?;
    match args.only.is_empty() {
        true => Manifest::renew(&args.folder, None, &[files::FIGURES], &written)?,
        false => Manifest::add(&args.folder, &written)?,
    }
    gallery.notes.iter().for_each(|note| context.print_message(note));
    context.out(&written.iter().map(|file| format!("{}\n", file.path.display())).collect::<String>())
}
