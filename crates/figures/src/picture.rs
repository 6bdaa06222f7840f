//! Writes a figure as a file, in the format of its extension.

use std::path::Path;

use plimsoll_base::error::{Error, Result};
use plimsoll_charts::figure::Data;
use plimsoll_charts::raster;
use plimsoll_results::provenance::Provenance;
use plimsoll_store::file::{WrittenFile, write_whole};

use crate::stamp;

/// Number of pixels of an image per point of a figure: 288 per inch.
pub const DOTS: f32 = 4.0;

/// The file extensions of every figure in a results folder.
pub const ENDINGS: [&str; 4] = ["svg", "png", "pdf", "csv"];

/// Writes a figure to `folder` in all formats, each with its provenance, and its data as plain CSV if it has data; returns the files.
pub fn write_all(
    folder: &Path,
    name: &str,
    (svg, data): (&str, &Data),
    about: &Provenance,
) -> Result<Vec<WrittenFile>> {
    let mut written = Vec::new();
    // A figure without numbers, such as a sequence diagram, has no table.
    let wanted = |ending: &&str| *ending != "csv" || !data.columns.is_empty();
    for ending in ENDINGS.into_iter().filter(wanted) {
        let bytes = match ending {
            "csv" => data.csv().into_bytes(),
            _ => rendered(ending, svg, about)?,
        };
        written.push(write_whole(&folder.join(format!("{name}.{ending}")), &bytes)?);
    }
    Ok(written)
}

fn rendered(ending: &str, svg: &str, about: &Provenance) -> Result<Vec<u8>> {
    Ok(match ending {
        "png" => raster::png(svg, DOTS, stamp::texts(about))?,
        "pdf" => stamp::pdf(raster::pdf(svg)?, about),
        _ => stamp::svg(svg, about).into_bytes(),
    })
}

/// A requested picture: its path and format.
#[derive(Clone, Copy, Debug)]
pub struct Picture<'a> {
    path: &'a Path,
    ending: &'static str,
}

impl Picture<'_> {
    /// Determines the format from a file's extension. Errors: [`Error::Plan`] for an extension other than .svg, .png and .pdf.
    pub fn from_path(path: &Path) -> Result<Picture<'_>> {
        let ending = path.extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase());
        match ["svg", "png", "pdf"].into_iter().find(|known| ending.as_deref() == Some(*known)) {
            Some(ending) => Ok(Picture { path, ending }),
            None => {
                Err(Error::plan("--figure", format!("'{}'", path.display()), "a file that ends in .svg, .png or .pdf"))
            }
        }
    }

    /// Returns the path.
    pub fn path(&self) -> &Path {
        self.path
    }

    /// Writes the picture; an error leaves no partial file.
    pub fn write(&self, svg: &str, about: &Provenance) -> Result<()> {
        write_whole(self.path, &rendered(self.ending, svg, about)?).map(drop)
    }
}
