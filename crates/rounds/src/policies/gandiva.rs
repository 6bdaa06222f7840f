//! Gandiva (OSDI 2018) as modelled by Gavel: random pairs when jobs need more accelerators than exist.
//!
//! If the jobs fit, the isolated formula over single jobs. Otherwise jobs without a partner are paired at random: two are drawn, a draw of
//! unequal scales is wasted, and there are at most as many draws as such jobs. A pair lasts until a member ends, or until the sum over types
//! and members of (rate in the pair / rate alone) is below the threshold; the sum is 0 if the pair cannot run on one of the types.

use plimsoll_base::error::Result;

use super::fractions::{check_rates, isolated};
use super::{Policy, PolicyOptions, PolicyRow, View};
use crate::mechanism::Targets;
use crate::random::PythonRandom;

/// Gandiva.
pub(super) const GANDIVA: PolicyRow = PolicyRow {
    name: "gandiva",
    title: "Gandiva: random space sharing",
    source: "Gandiva, OSDI 2018; Gavel, OSDI 2020",
    packing: true,
    listed_order: true,
    skip_zero: false,
    create: |options: &PolicyOptions| {
        let random = PythonRandom::new(options.seed);
        Box::new(Gandiva { threshold: options.gandiva_threshold, random, pairs: Vec::new() })
    },
};

struct Gandiva {
    threshold: f64,
    random: PythonRandom,
    /// The ids of the current pairs.
    pairs: Vec<[u32; 2]>,
}

impl Gandiva {
    /// Returns the sum over types and members of the rate in the pair relative to the rate alone, or 0 if the pair has no rate on a type.
    fn gain(view: &View<'_>, a: usize, b: usize) -> f64 {
        let one = |j: usize| {
            let pair = view.rates.pair(view.jobs[a].kind, view.jobs[b].kind, j)?;
            let (x, y) = (view.rate(a, j), view.rate(b, j));
            (x > 0.0 && y > 0.0).then(|| pair.first.per_s / x + pair.second.per_s / y)
        };
        (0..view.capacity.len()).map(one).sum::<Option<f64>>().unwrap_or(0.0)
    }
}

impl Policy for Gandiva {
    fn targets(&mut self, view: &View<'_>) -> Result<Targets> {
        check_rates(view)?;
        let (m, n) = (view.jobs.len(), view.capacity.len());
        let mut targets = Targets::zero(m, n);
        targets.pairs = vec![0; m * m.saturating_sub(1) / 2 * n];
        let needed: u32 = view.jobs.iter().map(|job| job.scale).sum();
        if needed <= view.capacity.iter().sum() {
            for (at, job) in view.jobs.iter().enumerate() {
                let x = isolated(view.capacity, m, job.scale);
                (0..n).for_each(|j| targets.alone[at * n + j] = Targets::rounded(x[j]));
            }
            return Ok(targets);
        }
        let index = |id: u32| view.jobs.binary_search_by_key(&id, |job| job.id).ok();
        let threshold = self.threshold;
        self.pairs.retain(|[a, b]| match (index(*a), index(*b)) {
            (Some(a), Some(b)) => Gandiva::gain(view, a, b) >= threshold,
            _ => false,
        });
        let mut single: Vec<usize> =
            (0..m).filter(|&at| !self.pairs.iter().any(|p| p.contains(&view.jobs[at].id))).collect();
        for _ in 0..single.len() {
            if single.len() < 2 {
                break;
            }
            let (first, second) = self.random.sample_two(single.len());
            let (a, b) = (single[first.min(second)], single[first.max(second)]);
            if view.jobs[a].scale == view.jobs[b].scale {
                self.pairs.push([view.jobs[a].id, view.jobs[b].id]);
                single.retain(|&at| at != a && at != b);
            }
        }
        let entries = self.pairs.len() + single.len();
        for [a, b] in &self.pairs {
            if let (Some(a), Some(b)) = (index(*a), index(*b)) {
                let x = isolated(view.capacity, entries, view.jobs[a].scale);
                let at = Targets::pair_index(a.min(b), a.max(b));
                (0..n).for_each(|j| targets.pairs[at * n + j] = Targets::rounded(x[j]));
            }
        }
        for at in single {
            let x = isolated(view.capacity, entries, view.jobs[at].scale);
            (0..n).for_each(|j| targets.alone[at * n + j] = Targets::rounded(x[j]));
        }
        Ok(targets)
    }
}
