//! The receipt of a run: the outcome and the digests of its tables. A run is complete if its receipt exists and the digests match.
//!
//! It is written before the tables get their names, so that no table ever stands under its name that no receipt lists: what
//! a folder holds of an earlier plan, or of a process that was killed, is known by its digest.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::experiment::summary::RunSummary;
use crate::output::file::Pending;
use crate::output::folder::{RECEIPTS, check_links};
use crate::output::manifest::{FileState, below, state};
use crate::output::portable::leads_elsewhere;
use crate::output::schema::Table;
use crate::output::sealed;

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
pub enum ReceiptState {
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
        folder.join(RECEIPTS).join(format!("{id}.json"))
    }

    /// Writes the receipt of a run, and then gives its tables their names in `folder`. Errors: [`crate::Error::Output`].
    pub fn write(folder: &Path, id: &str, tables: Vec<Pending>, summary: RunSummary) -> Result<Receipt> {
        let digest = |table: &Pending| (below(folder, &table.written().path), table.written().digest.clone());
        let receipt = Receipt { id: id.to_owned(), tables: tables.iter().map(digest).collect(), summary };
        let path = Receipt::path(folder, id);
        check_links(folder, &path)?;
        sealed::write(&path, &receipt)?;
        tables.into_iter().try_for_each(|table| table.place().map(drop))?;
        Ok(receipt)
    }

    /// Whether it is of a run of this policy with this number, and of tables of that run alone.
    pub fn is_of(&self, policy: &str, run: u64) -> bool {
        let own: Vec<String> =
            Table::all().map(|table| below(Path::new(""), &table.path(Path::new(""), policy, run))).collect();
        self.summary.policy == policy && self.summary.run == run && self.tables.keys().all(|table| own.contains(table))
    }

    /// Finds the receipt of a run and checks the digests of its tables.
    pub fn find(folder: &Path, id: &str) -> ReceiptState {
        let receipt = match sealed::read::<Receipt>(&Receipt::path(folder, id)) {
            Ok(Some(receipt)) if receipt.id == id => receipt,
            Ok(Some(_)) => return ReceiptState::Broken("its receipt is another run's".into()),
            Ok(None) => return ReceiptState::Missing,
            Err(error) => return ReceiptState::Broken(error.to_string()),
        };
        for (table, digest) in &receipt.tables {
            if leads_elsewhere(table) {
                return ReceiptState::Broken(format!("its receipt lists {table}, which is no table of these results"));
            }
            match state(folder, table, digest) {
                FileState::AsMade => {}
                FileState::Changed => return ReceiptState::Broken(format!("{table} is not as it was written")),
                FileState::Gone => return ReceiptState::Broken(format!("{table} is not there")),
            }
        }
        ReceiptState::Whole(Box::new(receipt))
    }
}
