//! Micro-tasks in exact arithmetic.

use plimsoll_base::units::Span;

/// Millionths of an iteration.
const MICRO: u128 = 1_000_000;
/// 10^12.
const TERA: u128 = 1_000_000_000_000;

/// The work of a job in one round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MicroTask {
    /// Iterations in millionths.
    pub iterations: u64,
    /// The length, rounded to the nearest microsecond.
    pub length: Span,
}

impl MicroTask {
    /// Returns the iterations, in millionths of whole iterations, that remain if `lost` of the length does no work.
    pub fn after_loss(self, lost: Span) -> u64 {
        let useful = u128::from(self.length.0.saturating_sub(lost.0));
        let left = u128::from(self.iterations) * useful / u128::from(self.length.0.max(1));
        (left / MICRO * MICRO) as u64
    }
}

/// Returns the micro-task of a job with `remaining` iterations (in millionths) at a rate of `pico` iterations per 10^12 s.
///
/// It runs whole iterations, as many as fit in the round, or the rest. If less than one fits, it runs the fraction that fits.
pub fn micro_task(pico: u64, round: Span, remaining: u64) -> MicroTask {
    let rate = u128::from(pico.max(1));
    let whole = rate * u128::from(round.0) / (TERA * MICRO) * MICRO;
    let most = if whole > 0 { whole } else { rate * u128::from(round.0) / TERA };
    let iterations = most.min(u128::from(remaining));
    let length = (iterations * TERA + rate / 2) / rate;
    MicroTask { iterations: iterations as u64, length: Span((length as u64).max(1)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Rate;

    fn pico(per_s: f64) -> u64 {
        Rate::new(per_s).expect("a rate").pico
    }

    /// E14 of the reference.
    #[test]
    fn rounds_have_whole_iterations() {
        let round = Span(360_000_000);
        let v100 = micro_task(pico(2.4967655780898292), round, u64::MAX);
        assert_eq!(v100, MicroTask { iterations: 898_000_000, length: Span(359_665_324) });
        let k80 = micro_task(pico(0.3472236920519382), round, u64::MAX);
        assert_eq!(k80, MicroTask { iterations: 125_000_000, length: Span(359_998_476) });
    }

    /// E19 of the reference: resnet18-16 with 20 s lost.
    #[test]
    fn a_loss_costs_whole_iterations() {
        let task = micro_task(pico(57.68343332), Span(120_000_000), u64::MAX);
        assert_eq!((task.iterations, (task.length.0 + 50) / 100), (6_922_000_000, 1_199_998));
        assert_eq!(task.after_loss(Span(20_000_000)), 5_768_000_000);
    }

    /// The iterations of all rounds of a job add up to its work, whatever the rate.
    #[test]
    fn no_iteration_is_lost_or_gained() {
        for (rate, work) in [(24.0936, 1_646_636_275_800u64), (0.001, 5_000_001), (999_999.25, 77_777_777_777)] {
            let (mut left, mut sum) = (work, 0);
            while left > 0 {
                let task = micro_task(pico(rate), Span(360_000_000), left);
                left -= task.iterations;
                sum += task.iterations;
            }
            assert_eq!(sum, work);
        }
    }
}
