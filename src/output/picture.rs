//! One figure as a file of its own, in the format that its name asks for.

use std::path::Path;

use super::raster;
use super::table::write_whole;
use crate::error::{Error, Result};

/// Dots of an image for each point of a figure: 288 per inch.
pub const DOTS: f32 = 4.0;

/// A picture that is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Picture<'a> {
    path: &'a Path,
    png: bool,
}

impl Picture<'_> {
    /// The format by the ending. Errors: [`Error::Plan`] for one that is neither .svg nor .png.
    pub fn of(path: &Path) -> Result<Picture<'_>> {
        let ending = path.extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase());
        match ending.as_deref() {
            Some("svg") => Ok(Picture { path, png: false }),
            Some("png") => Ok(Picture { path, png: true }),
            _ => Err(Error::plan("--figure", format!("'{}'", path.display()), "a file that ends in .svg or .png")),
        }
    }

    /// Writes it whole or not at all.
    pub fn write(&self, svg: &str) -> Result<()> {
        match self.png {
            true => write_whole(self.path, &raster::png(svg, DOTS)?),
            false => write_whole(self.path, svg.as_bytes()),
        }
    }
}
