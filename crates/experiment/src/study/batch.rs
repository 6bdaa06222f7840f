//! The table `[slurm]` of a plan: the resources of each job of a job array. The table does not affect the results.

use serde::Deserialize;

use plimsoll_base::error::{Error, Result};
use plimsoll_base::tree::Node;

/// The key of the table.
pub const BATCH: &str = "slurm";

/// The resources and options of each job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlurmOptions {
    /// The number of jobs among which the runs are divided; 8 if absent.
    pub shards: Option<u64>,
    /// The cores of each job; 1 if absent.
    pub cpus: Option<u64>,
    /// The memory of each job, in Slurm's notation (`4G`).
    pub memory: Option<String>,
    /// The time limit of each job, in Slurm's notation (`02:00:00`).
    pub time: Option<String>,
    /// The partition.
    pub partition: Option<String>,
    /// The maximum number of jobs that run at a time.
    pub at_once: Option<u64>,
    /// Further options of `sbatch`, such as `--account=mine`.
    #[serde(default)]
    pub options: Vec<String>,
}

impl SlurmOptions {
    /// Removes the table from a plan and reads it. Errors: [`Error::Placed`] with line and column.
    pub fn extract(plan: &mut Node) -> Result<SlurmOptions> {
        let batch = plan.get(BATCH).map_or(Ok(SlurmOptions::default()), |entry| entry.node.read())?;
        batch.check().map_err(|error| plan.locate(error))?;
        plan.take_entry(BATCH);
        Ok(batch)
    }

    fn check(&self) -> Result<()> {
        let wrong = |key: &str, value: String, expected: &str| Error::plan(format!("{BATCH}{key}"), value, expected);
        let numbers = [(".shards", self.shards), (".cpus", self.cpus), (".at_once", self.at_once)];
        if let Some((key, _)) = numbers.into_iter().find(|(_, number)| *number == Some(0)) {
            return Err(wrong(key, "0".to_owned(), "at least 1"));
        }
        let options = self.options.iter().map(|word| (".options", word));
        let words = [(".memory", &self.memory), (".time", &self.time), (".partition", &self.partition)];
        let words = words.iter().filter_map(|&(key, word)| Some((key, word.as_ref()?)));
        for (key, word) in words.chain(options) {
            if word.chars().any(char::is_control) {
                return Err(wrong(key, format!("{word:?}"), "words without control characters"));
            }
        }
        Ok(())
    }
}
