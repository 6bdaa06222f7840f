//! The receipt of a run. It has the summary of the run and the digests of its tables. A run is complete if its receipt exists and the
//! digests match.
//!
//! A receipt is written before the tables are renamed to their final names, so that every table with a final name is listed in a receipt.
//! Tables of an earlier plan or of a killed process are recognised by their digests.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use plimsoll_base::error::Result;
use plimsoll_store::file::Pending;
use plimsoll_store::portable::leads_elsewhere;
use plimsoll_store::sealed;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::files::RECEIPTS;
use crate::folder::check_links;
use crate::manifest::{FileState, below, state};
use crate::schema::Table;
use crate::summary::RunSummary;

/// The receipt of one run. `S` is the part of the summary that a reader needs. Readers of a small part also read receipts
/// of versions with other fields in the rest.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Receipt<S = RunSummary> {
    /// The id of the run.
    pub id: String,
    /// The tables, relative to the results folder, and their BLAKE3 digests.
    pub tables: BTreeMap<String, String>,
    /// The results of the run.
    pub summary: S,
}

/// The part of a summary that identifies a run.
#[derive(Clone, Debug, Deserialize)]
pub struct RunKey {
    /// The name of the policy.
    pub policy: String,
    /// The number of the run among those of the policy.
    pub run: u64,
}

/// The state of a run in a results folder.
#[derive(Clone, Debug)]
pub enum ReceiptState<S = RunSummary> {
    /// The run is complete.
    Whole(Box<Receipt<S>>),
    /// The run is damaged, with the reason.
    Broken(String),
    /// The run has no receipt.
    Missing,
}

impl Receipt {
    /// Returns the path of a receipt.
    pub fn path(folder: &Path, id: &str) -> PathBuf {
        folder.join(RECEIPTS).join(format!("{id}.json"))
    }

    /// Writes the receipt of a run of the engine. Errors: as [`write()`].
    pub fn write(folder: &Path, id: &str, tables: Vec<Pending>, summary: RunSummary) -> Result<Receipt> {
        write(folder, id, tables, summary)
    }

    /// Returns whether the receipt belongs to a run of this policy with this number and lists only tables of this run.
    pub fn is_of(&self, policy: &str, run: u64) -> bool {
        let own: Vec<String> =
            Table::all().map(|table| below(Path::new(""), &table.path(Path::new(""), policy, run))).collect();
        self.summary.policy == policy && self.summary.run == run && self.tables.keys().all(|table| own.contains(table))
    }

    /// Finds the receipt of a run of the engine, as [`find`] does.
    pub fn find(folder: &Path, id: &str) -> ReceiptState {
        find(folder, id)
    }
}

/// Writes the receipt of a run, and then renames its tables to their final names in `folder`. Errors:
/// [`plimsoll_base::error::Error::Output`].
pub fn write<S: Serialize>(folder: &Path, id: &str, tables: Vec<Pending>, summary: S) -> Result<Receipt<S>> {
    let digest = |table: &Pending| (below(folder, &table.written().path), table.written().digest.clone());
    let receipt = Receipt { id: id.to_owned(), tables: tables.iter().map(digest).collect(), summary };
    let path = Receipt::path(folder, id);
    check_links(folder, &path)?;
    sealed::write(&path, &receipt)?;
    tables.into_iter().try_for_each(|table| table.place().map(drop))?;
    Ok(receipt)
}

/// Finds the receipt of a run and checks the digests of its tables.
pub fn find<S: DeserializeOwned>(folder: &Path, id: &str) -> ReceiptState<S> {
    let receipt = match sealed::read::<Receipt<S>>(&Receipt::path(folder, id)) {
        Ok(Some(receipt)) if receipt.id == id => receipt,
        Ok(Some(_)) => return ReceiptState::Broken("its receipt belongs to another run".into()),
        Ok(None) => return ReceiptState::Missing,
        Err(error) => return ReceiptState::Broken(error.to_string()),
    };
    for (table, digest) in &receipt.tables {
        if leads_elsewhere(table) {
            return ReceiptState::Broken(format!("its receipt lists {table}, which is not a table of these results"));
        }
        match state(folder, table, digest) {
            FileState::AsMade => {}
            FileState::Changed => return ReceiptState::Broken(format!("{table} is not as it was written")),
            FileState::Gone => return ReceiptState::Broken(format!("{table} is missing")),
        }
    }
    ReceiptState::Whole(Box::new(receipt))
}
