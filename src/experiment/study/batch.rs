//! The table `[slurm]` of a plan: what each job of an array gets. It decides nothing about the results.

use serde::Deserialize;

use super::place::steps;
use super::source::{Sources, hinted};
use crate::error::Result;

/// The key of the table.
pub const BATCH: &str = "slurm";

/// The resources and options that a job gets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Batch {
    /// How many jobs the runs are dealt out to; 8 if absent.
    pub shards: Option<u64>,
    /// Cores of each; 1 if absent.
    pub cpus: Option<u64>,
    /// Memory of each, as Slurm writes it (`4G`).
    pub memory: Option<String>,
    /// The longest that each may take, as Slurm writes it (`02:00:00`).
    pub time: Option<String>,
    /// The partition.
    pub partition: Option<String>,
    /// So many at a time.
    pub at_once: Option<u64>,
    /// Further options of `sbatch`, such as `--account=mine`.
    #[serde(default)]
    pub options: Vec<String>,
}

impl Batch {
    /// Reads the table. Errors: [`crate::error::Error::PlanSyntax`] with line and column.
    pub fn read(value: Option<toml::Value>, sources: &Sources) -> Result<Batch> {
        let Some(value) = value else { return Ok(Batch::default()) };
        let wrong = |message: &str| sources.at_value(&steps(BATCH), &format!("{BATCH}: {message}"));
        let batch: Batch = value.try_into().map_err(|error: toml::de::Error| wrong(&hinted(error.message())))?;
        if [batch.shards, batch.cpus, batch.at_once].contains(&Some(0)) {
            return Err(wrong("shards, cpus and at_once are at least 1"));
        }
        let words = [&batch.memory, &batch.time, &batch.partition].into_iter().flatten().chain(&batch.options);
        if words.into_iter().any(|word| word.chars().any(char::is_control)) {
            return Err(wrong("words without control characters"));
        }
        Ok(batch)
    }
}
