//! The receipt of a run: what it came to, and the digests of its tables. A run that has one is done, if they still agree.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::experiment::summary::RunSummary;
use crate::output::portable::leads_elsewhere;
use crate::output::table::write_whole;
use crate::workload::Input;

/// The folder of the receipts of a plan, below that of its results.
pub const FOLDER: &str = "done";

/// The receipt of one run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Receipt {
    /// The run's id.
    pub id: String,
    /// Its tables, below the folder of the results, and their BLAKE3 digests.
    pub tables: BTreeMap<String, String>,
    /// The results of the run.
    pub summary: RunSummary,
}

/// The part of a run that is there.
#[derive(Clone, Debug)]
pub enum Found {
    /// All of it.
    Whole(Box<Receipt>),
    /// Something, but not as it was when the run ended; why.
    Broken(String),
    /// Nothing.
    Missing,
}

impl Receipt {
    /// The file of a receipt.
    pub fn path(folder: &Path, id: &str) -> PathBuf {
        folder.join(FOLDER).join(format!("{id}.json"))
    }

    /// Writes the receipt of a run whose tables stand in `folder`. Errors: a table cannot be read, or the receipt not
    /// be written.
    pub fn write(folder: &Path, id: &str, tables: &[PathBuf], summary: RunSummary) -> Result<Receipt> {
        let digest = |path: &PathBuf| {
            let below = path.strip_prefix(folder).unwrap_or(path);
            // One way to write a path, whatever the system.
            let parts: Vec<_> = below.iter().map(|part| part.to_string_lossy().into_owned()).collect();
            Ok((parts.join("/"), Input::open(path)?.digest()?))
        };
        let tables = tables.iter().map(digest).collect::<Result<_>>()?;
        let receipt = Receipt { id: id.to_owned(), tables, summary };
        let path = Receipt::path(folder, id);
        let text = serde_json::to_string(&receipt).map_err(|error| Error::output(&path, error))?;
        write_whole(&path, (text + "\n").as_bytes())?;
        Ok(receipt)
    }

    /// Looks for the receipt of a run, and whether the tables are what it says.
    pub fn find(folder: &Path, id: &str) -> Found {
        let text = match std::fs::read_to_string(Receipt::path(folder, id)) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Found::Missing,
            Err(error) => return Found::Broken(format!("its receipt: {error}")),
        };
        let receipt: Receipt = match serde_json::from_str(&text) {
            Ok(receipt) => receipt,
            Err(error) => return Found::Broken(format!("its receipt: {error}")),
        };
        for (table, digest) in &receipt.tables {
            if leads_elsewhere(table) {
                return Found::Broken(format!("its receipt lists {table}, which is no table of these results"));
            }
            match Input::open(&folder.join(table)).and_then(|input| input.digest()) {
                Ok(found) if found == *digest => {}
                Ok(_) => return Found::Broken(format!("{table} is not as it was written")),
                Err(error) => return Found::Broken(error.to_string()),
            }
        }
        if receipt.id == id {
            Found::Whole(Box::new(receipt))
        } else {
            Found::Broken("its receipt: another run's".into())
        }
    }
}
