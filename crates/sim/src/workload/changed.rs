//! Counterfactual rows: no gangs, and small perturbations of durations.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::TaskSet;
use super::altered::Alteration;
use super::synthetic::random::{numbered, stream};
use plimsoll_base::units::Span;

/// A perturbation of durations: each row's duration is multiplied by a factor drawn uniformly around 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shake {
    /// The seed of the factors. The factor of a row does not depend on other rows.
    pub seed: u64,
    /// The largest distance of a factor from 1, in millionths.
    pub millionths: u32,
}

/// One, in millionths.
const ONE: u64 = 1_000_000;

/// The counterfactual changes of single rows.
pub struct ChangedRows {
    without_gangs: bool,
    /// The draws of the factors, and the largest distance from 1 in millionths.
    shake: Option<(ChaCha8Rng, u64)>,
}

impl ChangedRows {
    /// Creates the changes: whether gangs are removed, and the perturbation of durations.
    pub fn new(without_gangs: bool, shake: Option<Shake>) -> ChangedRows {
        let shake = shake.map(|shake| (stream(shake.seed, "shake"), u64::from(shake.millionths).min(ONE)));
        ChangedRows { without_gangs, shake }
    }
}

impl Alteration for ChangedRows {
    fn alter(&mut self, set: &mut TaskSet) {
        set.gang &= !self.without_gangs;
        if let Some((draws, most)) = &self.shake
            && set.duration != Span::ENDLESS
        {
            let factor = numbered(draws, set.row).random_range(ONE - most..=ONE + most);
            set.duration = scaled(set.duration, factor);
            // Exact estimates stay exact.
            set.estimate = set.estimate.map(|estimate| scaled(estimate, factor));
        }
    }
}

/// Returns a span times a factor in millionths; the result is no endless span.
fn scaled(span: Span, factor: u64) -> Span {
    let product = u128::from(span.0) * u128::from(factor) / u128::from(ONE);
    Span(u64::try_from(product).unwrap_or(u64::MAX).min(Span::ENDLESS.0 - 1))
}
