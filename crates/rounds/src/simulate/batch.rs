//! Changes of the batch size during a job (Shockwave, modes Accordion and GNS).
//!
//! The batch size is a part of the job type (`lm-10` becomes `lm-20`), so the rate changes. The number of epochs is constant. The list of a
//! job states its batch size in each epoch. It is read at the end of each round and applied at the end of the next round that the job
//! runs, as in the published simulator. A gradual job (GNS) looks one epoch ahead, and its batch size doubles at most once at a time and never
//! decreases.

use std::collections::HashMap;

use plimsoll_base::error::{Error, Result};

use crate::policies::ActiveJob;
use crate::table::{Rates, TrainingJob, dataset, models, split_batch};

const MICRO: u64 = 1_000_000;

/// The state of one job.
struct BatchState {
    /// The batch size of each epoch, as (batch, epochs).
    phases: Vec<(u32, u32)>,
    gradual: bool,
    dataset: u64,
    /// The kind of each batch size.
    kinds: Vec<(u32, u32)>,
    current: u32,
    pending: Option<u32>,
}

impl BatchState {
    fn per_epoch(&self, batch: u32) -> u64 {
        self.dataset.div_ceil(u64::from(batch))
    }

    /// Returns the listed batch size of an epoch; after the last epoch, of the last one.
    fn listed(&self, epoch: u64) -> u32 {
        let mut end = 0;
        for &(batch, epochs) in &self.phases {
            end += u64::from(epochs);
            if epoch < end {
                return batch;
            }
        }
        self.phases.last().map_or(self.current, |(batch, _)| *batch)
    }

    /// Returns the batch size that the job should have, given its iterations done.
    fn due(&self, done: u64) -> u32 {
        let epoch = done / MICRO / self.per_epoch(self.current);
        if !self.gradual {
            return self.listed(epoch);
        }
        let ahead = self.listed(epoch).max(self.listed(epoch + 1));
        if ahead > self.current { self.current * 2 } else { self.current }
    }
}

/// The jobs with changes of the batch size.
#[derive(Default)]
pub(super) struct Batches {
    states: HashMap<u32, BatchState>,
}

impl Batches {
    /// Returns the kinds (type and scale) that jobs may change to.
    pub fn kinds(jobs: &[TrainingJob]) -> Vec<(String, u32)> {
        let of_job = |job: &TrainingJob| {
            let model = split_batch(&job.job_type).map_or("", |(model, _)| model).to_owned();
            batches(job).into_iter().map(move |batch| (format!("{model}-{batch}"), job.scale)).collect::<Vec<_>>()
        };
        jobs.iter().filter(|job| job.phases.len() > 1).flat_map(of_job).collect()
    }

    /// Creates the states of the jobs with more than one phase. Errors: a job type without batch size or with an unknown data set.
    pub fn new(jobs: &[TrainingJob], rates: &Rates) -> Result<Batches> {
        let mut states = HashMap::new();
        for job in jobs.iter().filter(|job| job.phases.len() > 1) {
            let parts = split_batch(&job.job_type);
            let examples = parts.and_then(|(model, _)| dataset(model));
            let (Some((model, batch)), Some(dataset)) = (parts, examples) else {
                let problem = format!(
                    "job {}: '{}' has no batch size or data set; with batch_sizes expected MODEL-BATCH of {}",
                    job.id,
                    job.job_type,
                    models().join(", ")
                );
                return Err(Error::Mismatch { problem });
            };
            let kinds = batches(job)
                .into_iter()
                .filter_map(|batch| Some((batch, rates.kind(&format!("{model}-{batch}"), job.scale)?)))
                .collect();
            let state = BatchState {
                phases: job.phases.iter().map(|phase| (phase.batch, phase.epochs)).collect(),
                gradual: job.gradual,
                dataset,
                kinds,
                current: batch,
                pending: None,
            };
            states.insert(job.id, state);
        }
        Ok(Batches { states })
    }

    /// Returns whether no job changes its batch size.
    pub fn is_empty(&self) -> bool {
        self.states.is_empty()
    }

    /// Ends a round of a job: applies a pending change if it ran, and reads the list. Returns its new kind after a change.
    pub fn step(&mut self, job: &mut ActiveJob, ran: bool) -> Option<u32> {
        let state = self.states.get_mut(&job.id)?;
        let mut changed = None;
        if ran
            && let Some(batch) = state.pending.take()
            && let Some(&(_, kind)) = state.kinds.iter().find(|(other, _)| *other == batch)
        {
            let total = job.done + job.remaining;
            let (old, new) = (state.per_epoch(state.current), state.per_epoch(batch));
            let (total, done) = rescaled(total, job.done, (state.current, old), (batch, new));
            (job.done, job.remaining) = (done.min(total), total - done.min(total));
            job.kind = kind;
            state.current = batch;
            changed = Some(kind);
        }
        let due = state.due(job.done);
        state.pending = (due != state.current).then_some(due);
        changed
    }
}

/// Returns the batch sizes that a job may have: those of its list, and for gradual jobs the doublings between them.
fn batches(job: &TrainingJob) -> Vec<u32> {
    let mut batches: Vec<u32> = job.phases.iter().map(|phase| phase.batch).collect();
    if job.gradual {
        let (least, most) = (batches.iter().min().copied().unwrap_or(1), batches.iter().max().copied().unwrap_or(1));
        batches.extend(std::iter::successors(Some(least), |batch| batch.checked_mul(2)).take_while(|&b| b <= most));
    }
    batches.sort_unstable();
    batches.dedup();
    batches
}

/// Returns the total and the completed iterations (in millionths) after a change of the batch size from `old` to `new`: (batch size,
/// iterations per epoch).
///
/// The total is divided by the factor and rounded up; if that changes the number of epochs, it is epochs times iterations per epoch. A
/// started epoch counts as complete. Source: Shockwave, `scheduler.py`.
pub fn rescaled(total: u64, done: u64, old: (u32, u64), new: (u32, u64)) -> (u64, u64) {
    let whole = |value: u64| value.div_ceil(MICRO);
    let epochs = whole(total).div_ceil(old.1);
    let scaled = (u128::from(whole(total)) * u128::from(old.0)).div_ceil(u128::from(new.0)) as u64;
    let total = if scaled.div_ceil(new.1) == epochs { scaled } else { epochs * new.1 };
    (total * MICRO, whole(done).div_ceil(old.1) * new.1 * MICRO)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// E20 of the reference: lm-10 becomes lm-20.
    #[test]
    fn a_started_epoch_counts_as_complete() {
        let change = |done: u64| rescaled(134_583 * MICRO, done * MICRO, (10, 5_968), (20, 2_984));
        assert_eq!(change(65_648), (67_292 * MICRO, 32_824 * MICRO));
        assert_eq!(change(65_700), (67_292 * MICRO, 35_808 * MICRO));
    }
}
