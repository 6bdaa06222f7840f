//! Counterexamples as files, and the grid as a picture.

use std::path::{Path, PathBuf};

use super::Matrix;
use crate::error::{Error, Result};
use crate::output::figure::{GridRow, GridSection, Mark, grid};
use crate::output::raster;
use crate::properties::{Domain, Finding, Promise};

/// Pixels a point: 288 dots an inch.
const DOTS: f32 = 4.0;

/// Writes all counterexamples and notes where.
pub(super) fn files(folder: &Path, matrices: &mut [Matrix]) -> Result<()> {
    std::fs::create_dir_all(folder).map_err(|source| Error::io(folder, source))?;
    for matrix in matrices {
        for column in &mut matrix.columns {
            for (finding, files) in column.findings.iter().zip(&mut column.files) {
                let Some(found) = &finding.counterexample else { continue };
                let domain = match matrix.search.domain {
                    Domain::Positive => String::new(),
                    domain => format!("-{}", domain.name()),
                };
                let stem = format!("{}-{}{domain}", plain(&column.policy), found.promise.slug());
                for (suffix, text) in found.files() {
                    let name = if suffix.is_empty() { format!("{stem}.toml") } else { format!("{stem}-{suffix}.toml") };
                    let path = folder.join(name);
                    std::fs::write(&path, text).map_err(|source| Error::io(&path, source))?;
                    files.push(path);
                }
            }
        }
    }
    Ok(())
}

/// A policy's name as a part of a file's.
fn plain(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' }).collect()
}

/// Where the grid is drawn.
pub(super) struct Picture<'a> {
    path: &'a Path,
    png: bool,
}

impl Picture<'_> {
    /// Errors: an ending that is neither .svg nor .png.
    pub fn new(path: &Path) -> Result<Picture<'_>> {
        let ending = path.extension().map(|ending| ending.to_string_lossy().to_lowercase());
        match ending.as_deref() {
            Some("svg") => Ok(Picture { path, png: false }),
            Some("png") => Ok(Picture { path, png: true }),
            _ => Err(Error::plan("--figure", format!("'{}'", path.display()), "a file that ends in .svg or .png")),
        }
    }

    pub fn draw(&self, promises: &[Promise], matrices: &[Matrix]) -> Result<()> {
        let columns: Vec<String> = matrices
            .first()
            .map(|matrix| matrix.columns.iter().map(|column| column.policy.clone()).collect())
            .unwrap_or_default();
        let mark = |finding: &Finding| match (&finding.counterexample, finding.cases) {
            (Some(_), _) => Mark::Fails,
            (None, 0) => Mark::Unknown,
            (None, _) => Mark::Holds,
        };
        let section = |matrix: &Matrix| GridSection {
            title: if matrices.len() > 1 { matrix.search.domain.title().to_owned() } else { String::new() },
            rows: promises
                .iter()
                .enumerate()
                .map(|(nth, promise)| GridRow {
                    label: promise.title(),
                    marks: matrix.columns.iter().map(|column| mark(&column.findings[nth])).collect(),
                })
                .collect(),
        };
        let svg = grid(&columns, &matrices.iter().map(section).collect::<Vec<_>>());
        let bytes = if self.png { raster::png(&svg, DOTS)? } else { svg.into_bytes() };
        let path: PathBuf = self.path.to_owned();
        std::fs::write(&path, bytes).map_err(|source| Error::io(path, source))
    }
}
