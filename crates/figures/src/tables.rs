//! The tables of a results folder, by name, each with its files.

use std::path::{Path, PathBuf};

use plimsoll_base::error::Result;
use plimsoll_results::files::{DIFFERENCES, ESTIMATES};
use plimsoll_results::manifest::Manifest;
use plimsoll_results::schema::Table;

use crate::requests::Whole;

/// Returns the existing tables, each with its files by cell of a sweep, policy and run. Results without runs have the tables that their
/// manifest lists. Errors: it is no results folder, or a table in it is damaged.
pub fn tables(folder: &Path) -> Result<Vec<(String, Vec<PathBuf>)>> {
    if let Some((_, manifest)) = Manifest::alone(folder)? {
        let names = manifest.files.keys().filter_map(|file| Some((file.strip_suffix(".parquet")?.to_owned(), file)));
        return names
            .map(|(name, file)| {
                manifest.check(folder, file)?;
                Ok((name, vec![folder.join(file)]))
            })
            .collect();
    }
    let whole = Whole::open(folder)?;
    let mut tables: Vec<(String, Vec<PathBuf>)> =
        Table::all().map(|table| (table.name().to_owned(), Vec::new())).collect();
    for (_, _, results) in &whole.cells {
        for (kind, (_, files)) in Table::all().zip(&mut tables) {
            files.extend(results.files(kind)?);
        }
    }
    for (name, path) in [("estimates", ESTIMATES), ("differences", DIFFERENCES)] {
        tables.push((name.to_owned(), Some(folder.join(path)).filter(|path| path.exists()).into_iter().collect()));
    }
    tables.retain(|(_, files)| !files.is_empty());
    Ok(tables)
}
