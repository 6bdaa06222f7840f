//! The verdict on a comparison of two means, which is the same in every table and report that shows the comparison.
//!
//! The estimand is the mean over seeds of the difference new − base, in percent of the mean of the base. Its interval and its tests are
//! those of [`difference()`](super::difference::difference).

use super::compare::{is_significant, p_words};
use super::difference::{MARGIN, MeanDifference};
use super::holm::Corrected;
use super::interval::Interval;

/// The outcome of the tests of one comparison, after the correction for multiple tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestVerdict {
    /// The new mean is significantly higher.
    Higher,
    /// The new mean is significantly lower.
    Lower,
    /// The means do not differ significantly, and their difference is significantly within the margin.
    Equivalent,
    /// Neither a difference nor equivalence is shown.
    Open,
    /// There is only one seed, so there is no test.
    Untested,
}

/// A comparison of two means with its corrected p-values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tested {
    /// The difference, its interval and its tests.
    pub means: MeanDifference,
    /// The p-values, corrected for all comparisons of the family (Holm).
    pub holm: Corrected,
}

/// The words for [`TestVerdict::Open`].
pub const OPEN: &str = "no clear difference";

/// Returns the words for equivalence: `equivalent within 5 %`.
pub fn equivalent_words() -> String {
    format!("equivalent within {:.0} %", 100.0 * MARGIN)
}

impl Tested {
    /// Returns a comparison with uncorrected p-values.
    pub fn new(means: MeanDifference) -> Tested {
        Tested { means, holm: Corrected { p: means.test.p, p_equivalent: means.test.p_equivalent } }
    }

    /// Returns the reduction of the mean as a part of the mean of the base. 0.3 means a decrease by 30 %; a negative value means an
    /// increase.
    pub fn reduction(&self) -> Option<Interval> {
        let Interval { mean, low, high, n } = self.means.relative?;
        Some(Interval { mean: -mean, low: high.map(|high| -high), high: low.map(|low| -low), n })
    }

    /// Returns the verdict.
    pub fn verdict(&self) -> TestVerdict {
        match self.holm.p {
            None => TestVerdict::Untested,
            p if is_significant(p) && self.means.test.difference.mean > 0.0 => TestVerdict::Higher,
            p if is_significant(p) => TestVerdict::Lower,
            _ if is_significant(self.holm.p_equivalent) => TestVerdict::Equivalent,
            _ => TestVerdict::Open,
        }
    }

    /// Returns whether there is a significant difference that is nevertheless significantly within the margin.
    pub fn is_small(&self) -> bool {
        matches!(self.verdict(), TestVerdict::Higher | TestVerdict::Lower) && is_significant(self.holm.p_equivalent)
    }

    /// Returns the difference in words: `20.5 ± 5.0 % lower`, `equivalent within 5 %`, `no clear difference`. The second part is the
    /// evidence, which callers append in brackets; it is empty for one seed.
    pub fn words(&self) -> (String, String) {
        let change = self.means.relative;
        let amount = |unsigned: bool| match change {
            Some(change) => half(if unsigned { absolute(change) } else { change }, !unsigned),
            None => "unknown change".to_owned(),
        };
        let way = if self.means.test.difference.mean > 0.0 { "higher" } else { "lower" };
        let p = self.holm.p.map(p_words).unwrap_or_default();
        match self.verdict() {
            TestVerdict::Untested if self.means.test.difference.mean == 0.0 => ("the same".to_owned(), p),
            TestVerdict::Untested => (format!("{} {way}", amount(true)), p),
            TestVerdict::Higher | TestVerdict::Lower if self.is_small() => {
                (format!("{} {way}", amount(true)), format!("{p}; {}", equivalent_words()))
            }
            TestVerdict::Higher | TestVerdict::Lower => (format!("{} {way}", amount(true)), p),
            TestVerdict::Equivalent => (equivalent_words(), amount(false)),
            TestVerdict::Open => (OPEN.to_owned(), self.open_words(&p)),
        }
    }

    /// Returns the evidence for a difference that is not clear: `+3.5 %, 95 % interval -0.3 to +7.2 %, p = 0.0686`.
    fn open_words(&self, p: &str) -> String {
        let Some(Interval { mean, low: Some(low), high: Some(high), .. }) = self.means.relative else {
            return p.to_owned();
        };
        let percent = |part: f64| signed(100.0 * part, 1);
        // The interval is not corrected for multiple tests.
        let alone = match self.means.test.p {
            Some(alone) if is_significant(Some(alone)) => {
                format!(" after the correction, {} without it", p_words(alone))
            }
            _ => String::new(),
        };
        format!("{} %, 95 % interval {} to {} %, {p}{alone}", percent(mean), percent(low), percent(high))
    }
}

/// Returns the interval without the sign of its mean.
fn absolute(interval: Interval) -> Interval {
    match interval.mean < 0.0 {
        true => {
            let (low, high) = (interval.high.map(|high| -high), interval.low.map(|low| -low));
            Interval { mean: -interval.mean, low, high, n: interval.n }
        }
        false => interval,
    }
}

/// Formats a number with its sign, and 0 without a sign.
fn signed(value: f64, decimals: usize) -> String {
    let text = format!("{value:+.decimals$}");
    if text.chars().all(|c| matches!(c, '0' | '.' | '+' | '-')) { "0".to_owned() } else { text }
}

/// Formats a part in percent with the half-width of its interval (the larger one): `74.9 ± 1.2 %`, optionally with its sign.
fn half(interval: Interval, with_sign: bool) -> String {
    let half = interval.half().map(|half| 100.0 * half);
    // Two significant digits of the uncertainty are shown; without uncertainty, one decimal is shown.
    let decimals = match half {
        Some(half) if half > 0.0 && half < 1.0 => (1 - half.log10().floor() as i32).clamp(1, 4) as usize,
        _ => 1,
    };
    let mean = signed(100.0 * interval.mean, decimals);
    let mean = if with_sign { mean.as_str() } else { mean.trim_start_matches('+') };
    match half {
        Some(half) => format!("{mean} ± {half:.decimals$} %"),
        None => format!("{mean} %"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::difference::{Design, difference};

    fn tested(base: &[f64], new: &[f64]) -> Tested {
        let some = |values: &[f64]| values.iter().map(|&value| Some(value)).collect::<Vec<_>>();
        Tested::new(difference(Design::Paired, &some(base), &some(new), 0.95).expect("pairs"))
    }

    #[test]
    fn words_of_each_verdict() {
        let base = [100.0, 200.0, 150.0, 120.0];
        let words = |new: &[f64]| {
            let found = tested(&base, new);
            let (what, how) = found.words();
            (found.verdict(), what, how)
        };
        let (verdict, what, how) = words(&[70.0, 141.0, 105.0, 84.0]);
        assert_eq!((verdict, what.as_str()), (TestVerdict::Lower, "29.82 ± 0.87 % lower"));
        assert!(how.starts_with("p = 0.00"), "{how}");
        let (verdict, what, how) = words(&[100.3, 199.6, 150.2, 119.9]);
        assert_eq!((verdict, what.as_str()), (TestVerdict::Equivalent, "equivalent within 5 %"));
        assert_eq!(how, "0 ± 0.61 %");
        let (verdict, what, how) = words(&[98.0, 230.0, 140.0, 130.0]);
        assert_eq!((verdict, what.as_str()), (TestVerdict::Open, OPEN));
        assert!(how.starts_with("+4.9 %, 95 % interval -") && how.contains(" to +") && how.contains("p = 0."), "{how}");
        let (verdict, what, how) = words(&[101.0, 202.1, 151.5, 121.2]);
        assert_eq!((verdict, what.as_str()), (TestVerdict::Higher, "1.018 ± 0.087 % higher"));
        assert!(how.ends_with("; equivalent within 5 %"), "{how}");
        assert_eq!(tested(&[4.0], &[5.0]).words(), ("25.0 % higher".to_owned(), String::new()));
        assert_eq!(tested(&[4.0], &[4.0]).words().0, "the same");
    }

    /// If the verdict is "no clear difference" although the interval does not contain 0, the words state the correction.
    #[test]
    fn a_correction_that_hides_a_difference_is_named() {
        let found = tested(&[100.0, 110.0, 90.0, 105.0, 95.0], &[90.0, 108.0, 80.0, 100.0, 92.0]);
        assert_eq!(found.verdict(), TestVerdict::Lower);
        let hidden = Tested { holm: Corrected { p: Some(0.2), p_equivalent: None }, ..found };
        let (what, how) = hidden.words();
        assert_eq!(what, OPEN);
        assert!(how.contains("p = 0.20 after the correction, p = 0.0"), "{how}");
    }
}
