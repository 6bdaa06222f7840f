//! The rates of a workload: dense arrays over its kinds of jobs (type and scale) and the worker types of a cluster.

use std::collections::BTreeMap;

use plimsoll_base::error::{Error, Result};

use super::{Rate, Throughputs, TrainingJob};

/// The rates of two jobs that share the same accelerators.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PairRate {
    /// The rate of the first job.
    pub first: Rate,
    /// The rate of the second job.
    pub second: Rate,
}

/// The rates of a workload.
#[derive(Clone, Debug, Default)]
pub struct Rates {
    kinds: Vec<(String, u32)>,
    index: BTreeMap<(String, u32), u32>,
    types: usize,
    alone: Vec<Rate>,
    pairs: Vec<Option<PairRate>>,
}

impl Rates {
    /// Collects the rates of all kinds of `jobs`, and of the further `kinds` (types and scales that jobs may change to), on `worker_types`.
    /// With `pairs`, also the rates of pairs; a pair without rows cannot share accelerators.
    ///
    /// Errors: a worker type without rows, a missing row (with the nearest), a job with rate 0 on all worker types.
    pub fn new(
        table: &Throughputs,
        jobs: &[TrainingJob],
        kinds: &[(String, u32)],
        worker_types: &[String],
        pairs: bool,
    ) -> Result<Rates> {
        for worker in worker_types {
            if !table.worker_types().contains(worker) {
                let known = table.worker_types().join(", ");
                let problem = format!("has no rows for worker type '{worker}'; it has {known}");
                return Err(Error::trace(table.path(), 0, "worker_type", problem));
            }
        }
        let mut rates = Rates { types: worker_types.len(), ..Rates::default() };
        let of_jobs = jobs.iter().map(|job| (job.job_type.clone(), job.scale));
        for kind in of_jobs.chain(kinds.iter().cloned()) {
            if !rates.index.contains_key(&kind) {
                rates.index.insert(kind.clone(), rates.kinds.len() as u32);
                rates.kinds.push(kind);
            }
        }
        for (job, scale) in &rates.kinds {
            let from = rates.alone.len();
            for worker in worker_types {
                rates.alone.push(table.alone(job, *scale, worker)?);
            }
            if rates.alone[from..].iter().all(|rate| rate.pico == 0) {
                let problem = format!("{job} of scale {scale} has rate 0 on all of {}", worker_types.join(", "));
                return Err(Error::trace(table.path(), 0, "iterations_per_s", problem + "; expected one above 0"));
            }
        }
        if pairs {
            rates.add_pairs(table, worker_types);
        }
        Ok(rates)
    }

    /// Creates rates from rows of iterations per second, one per kind, of scale 1: for worked examples and tests.
    ///
    /// Errors: rows of unequal length, or a value that [`Rate::new`] refuses.
    pub fn from_rows(rows: &[&[f64]]) -> Result<Rates> {
        let types = rows.first().map_or(0, |row| row.len());
        let mut rates = Rates { types, ..Rates::default() };
        for (at, row) in rows.iter().enumerate() {
            let kind = (at.to_string(), 1);
            rates.index.insert(kind.clone(), at as u32);
            rates.kinds.push(kind);
            for &value in *row {
                let rate = Rate::new(value).filter(|_| row.len() == types);
                let problem = || Error::Mismatch { problem: format!("rate {value} of kind {at} is not accepted") };
                rates.alone.push(rate.ok_or_else(problem)?);
            }
        }
        Ok(rates)
    }

    /// Sets the rates of a pair of kinds on a worker type, in both directions: for worked examples and tests.
    pub fn set_pair(&mut self, first: usize, second: usize, worker_type: usize, pair: PairRate) {
        let count = self.kinds.len();
        self.pairs.resize(count * count * self.types, None);
        let back = PairRate { first: pair.second, second: pair.first };
        self.pairs[(first * count + second) * self.types + worker_type] = Some(pair);
        self.pairs[(second * count + first) * self.types + worker_type] = Some(back);
    }

    fn add_pairs(&mut self, table: &Throughputs, worker_types: &[String]) {
        let count = self.kinds.len();
        self.pairs = vec![None; count * count * self.types];
        for (a, (first, scale)) in self.kinds.iter().enumerate() {
            for (b, (second, other)) in self.kinds.iter().enumerate() {
                for (j, worker) in worker_types.iter().enumerate() {
                    let rate = |of: &str, beside: &str| table.rate(of, *scale, worker, true, beside);
                    if scale == other
                        && let (Some(x), Some(y)) = (rate(first, second), rate(second, first))
                        && x.pico > 0
                        && y.pico > 0
                    {
                        self.pairs[(a * count + b) * self.types + j] = Some(PairRate { first: x, second: y });
                    }
                }
            }
        }
    }

    /// Returns the number of worker types.
    pub fn types(&self) -> usize {
        self.types
    }

    /// Returns the number of kinds.
    pub fn kinds(&self) -> usize {
        self.kinds.len()
    }

    /// Returns the index of a job type and scale.
    pub fn kind(&self, job_type: &str, scale: u32) -> Option<u32> {
        self.index.get(&(job_type.to_owned(), scale)).copied()
    }

    /// Returns the rates of a kind alone, one per worker type.
    pub fn alone(&self, kind: u32) -> &[Rate] {
        &self.alone[kind as usize * self.types..][..self.types]
    }

    /// Returns the rates of two kinds that share accelerators of a worker type, or `None` if they cannot (also if one rate is 0).
    pub fn pair(&self, first: u32, second: u32, worker_type: usize) -> Option<PairRate> {
        let at = (first as usize * self.kinds.len() + second as usize) * self.types + worker_type;
        self.pairs.get(at).copied().flatten()
    }

    /// Returns whether pairs have rates.
    pub fn has_pairs(&self) -> bool {
        !self.pairs.is_empty()
    }
}
