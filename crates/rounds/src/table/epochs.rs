//! Epochs of training jobs: passes over a data set. Their length in iterations depends on the batch size.

use std::collections::BTreeMap;

use super::{Rates, TrainingJob};

/// Examples in the data set of each model (Shockwave, `utils.py`).
const DATASETS: &[(&str, u64)] = &[
    ("resnet18", 50_000),
    ("resnet50", 100_000),
    ("transformer", 10_000),
    ("lm", 59_675),
    ("recommendation", 117_907),
    ("cyclegan", 6_287),
];

/// Returns the number of examples in the data set of a model, or `None` for an unknown model.
pub fn dataset(model: &str) -> Option<u64> {
    DATASETS.iter().find(|(name, _)| *name == model).map(|(_, examples)| *examples)
}

/// Returns the models with a known data set.
pub fn models() -> Vec<&'static str> {
    DATASETS.iter().map(|(name, _)| *name).collect()
}

/// Splits a job type such as `lm-10` into the model and the batch size.
pub fn split_batch(job_type: &str) -> Option<(&str, u32)> {
    let (model, batch) = job_type.rsplit_once('-')?;
    Some((model, batch.parse().ok().filter(|&batch| batch > 0)?))
}

/// The epochs of a job, with the durations that a planner expects.
#[derive(Clone, Debug, PartialEq)]
pub struct EpochProfile {
    /// The index in `sizes` of the batch size of each epoch.
    epochs: Vec<u32>,
    /// The expected seconds of an epoch at each batch size.
    sizes: Vec<f64>,
    /// The iterations of an epoch by kind, in millionths.
    per_epoch: BTreeMap<u32, u64>,
}

impl EpochProfile {
    /// Creates the profile of a job on one worker type.
    ///
    /// With a list of batch sizes and a known data set, an epoch lasts (examples / batch size) / rate, rounded to whole seconds and at least
    /// 1 s, as in Shockwave's planner. Other jobs are divided into epochs of `round_s` seconds, the last of which may be shorter.
    pub fn new(job: &TrainingJob, rates: &Rates, worker_type: usize, round_s: f64) -> EpochProfile {
        EpochProfile::of_batches(job, rates, worker_type).unwrap_or_else(|| {
            let kind = rates.kind(&job.job_type, job.scale).unwrap_or_default();
            let rate = rates.alone(kind)[worker_type].per_s;
            EpochProfile::uniform(kind, job.iterations, rate, round_s)
        })
    }

    fn of_batches(job: &TrainingJob, rates: &Rates, worker_type: usize) -> Option<EpochProfile> {
        let (model, _) = split_batch(&job.job_type)?;
        let examples = dataset(model).filter(|_| !job.phases.is_empty())?;
        let mut batches: Vec<u32> = job.phases.iter().map(|phase| phase.batch).collect();
        batches.sort_unstable();
        batches.dedup();
        let kind = |batch: u32| rates.kind(&format!("{model}-{batch}"), job.scale);
        let seconds = |&batch: &u32| {
            let rate = rates.alone(kind(batch)?)[worker_type].per_s;
            (rate > 0.0).then(|| (examples as f64 / f64::from(batch) / rate).round().max(1.0))
        };
        let sizes = batches.iter().map(seconds).collect::<Option<Vec<f64>>>()?;
        let index = |batch: u32| batches.partition_point(|&other| other < batch) as u32;
        let of_phase = |phase: &super::BatchPhase| std::iter::repeat_n(index(phase.batch), phase.epochs as usize);
        let epochs: Vec<u32> = job.phases.iter().flat_map(of_phase).collect();
        // Gradual jobs pass through the doublings between the listed sizes.
        let (least, most) = (*batches.first()?, *batches.last()?);
        let doublings = std::iter::successors(Some(least), |batch| batch.checked_mul(2)).take_while(|&b| b <= most);
        let per_epoch = doublings
            .chain(batches.iter().copied())
            .filter_map(|batch| Some((kind(batch)?, examples.div_ceil(u64::from(batch)) * 1_000_000)))
            .collect();
        Some(EpochProfile { epochs, sizes, per_epoch })
    }

    /// Creates the profile of a job of one kind with `iterations` (in millionths) at `rate` iterations per second, in epochs of `epoch_s`.
    pub fn uniform(kind: u32, iterations: u64, rate: f64, epoch_s: f64) -> EpochProfile {
        let seconds = iterations as f64 / 1e6 / rate.max(1e-12);
        let count = (seconds / epoch_s).ceil().clamp(1.0, 1e6);
        let per_epoch = iterations.div_ceil(count as u64).max(1);
        EpochProfile {
            epochs: vec![0; count as usize],
            sizes: vec![seconds / count],
            per_epoch: BTreeMap::from([(kind, per_epoch)]),
        }
    }

    /// Returns the number of epochs.
    pub fn count(&self) -> usize {
        self.epochs.len()
    }

    /// Returns the complete epochs of a job of a kind with `done` iterations (in millionths), at most all.
    pub fn completed(&self, kind: u32, done: u64) -> usize {
        self.per_epoch.get(&kind).map_or(0, |per_epoch| ((done / per_epoch) as usize).min(self.epochs.len()))
    }

    /// Returns the seconds of the first `count` epochs.
    pub fn seconds(&self, count: usize) -> f64 {
        self.epochs.iter().take(count).map(|&size| self.sizes[size as usize]).sum()
    }

    /// Returns the mean seconds of the epochs from the first to the current one, where `completed` epochs are complete.
    pub fn mean_seconds(&self, completed: usize) -> f64 {
        let count = (completed + 1).min(self.epochs.len());
        self.seconds(count) / count as f64
    }

    /// Returns the estimate of the remaining seconds after `completed` epochs (Shockwave, section 5).
    ///
    /// The planner does not know the batch sizes of future epochs. Their distribution is a Dirichlet posterior: each of the n sizes has the
    /// prior weight epochs / n, and each epoch up to the current one adds 1 to its size. The expected epochs of each size, less those
    /// observed, are scaled to the number of epochs left. The estimate is 1 s after the last epoch.
    pub fn remaining_seconds(&self, completed: usize) -> f64 {
        let all = self.epochs.len() as f64;
        if completed >= self.epochs.len() {
            return 1.0;
        }
        let mut weight = vec![all / self.sizes.len() as f64; self.sizes.len()];
        let observed = &self.epochs[..(completed + 1).min(self.epochs.len())];
        observed.iter().for_each(|&size| weight[size as usize] += 1.0);
        let sum: f64 = weight.iter().sum();
        let mut expected: Vec<f64> = weight.iter().map(|weight| all * weight / sum).collect();
        for &size in observed {
            let expected = &mut expected[size as usize];
            *expected -= if *expected >= 1.0 { 1.0 } else { 0.0 };
        }
        let left = (self.epochs.len() - completed) as f64;
        let inflated = (expected.iter().sum::<f64>() + 1.0).floor().max(left);
        expected.iter().zip(&self.sizes).map(|(epochs, seconds)| epochs * seconds).sum::<f64>() * left / inflated
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two sizes of 10 and 4 s, three epochs of each.
    #[test]
    fn the_estimate_moves_from_the_prior_to_the_observations() {
        let profile = EpochProfile {
            epochs: vec![0, 0, 0, 1, 1, 1],
            sizes: vec![10.0, 4.0],
            per_epoch: BTreeMap::from([(7, 5)]),
        };
        // Weights 4 and 3 of 7: 24/7 and 18/7 epochs, less the current one: 17/7 and 18/7, sum 5, so 6 epochs are left of 6.
        let expected = (17.0 / 7.0 * 10.0 + 18.0 / 7.0 * 4.0) * 6.0 / 6.0;
        assert!((profile.remaining_seconds(0) - expected).abs() < 1e-12);
        // After 3 epochs: weights 6 and 4 of 10: 3.6 and 2.4, less 3 and 1: 0.6 and 1.4; sum 2, 3 epochs left.
        let expected = (0.6 * 10.0 + 1.4 * 4.0) * 3.0 / 3.0;
        assert!((profile.remaining_seconds(3) - expected).abs() < 1e-9, "{}", profile.remaining_seconds(3));
        assert_eq!((profile.remaining_seconds(6), profile.mean_seconds(3)), (1.0, 34.0 / 4.0));
        assert_eq!((profile.completed(7, 12), profile.completed(8, 12), profile.completed(7, 1000)), (2, 0, 6));
        assert_eq!((profile.seconds(4), profile.count()), (34.0, 6));
    }

    #[test]
    fn a_job_without_batch_sizes_has_epochs_of_a_round() {
        let profile = EpochProfile::uniform(0, 1_000_000_000, 2.0, 120.0);
        assert_eq!((profile.count(), profile.mean_seconds(0)), (5, 100.0));
        assert_eq!(profile.completed(0, 450_000_000), 2);
    }
}
