//! Numbers as people read them: few digits, and no more than their uncertainty allows.

use crate::metrics::{Interval, Reduction};

/// A number in at most four significant digits, whole numbers as they are, or `-`.
pub fn number(value: Option<f64>) -> String {
    match value {
        None => "-".to_owned(),
        Some(value) if value.fract() == 0.0 && value.abs() < 1e15 => format!("{value:.0}"),
        Some(value) => {
            let digits = 3 - magnitude(value).clamp(-3, 3);
            format!("{value:.*}", digits.max(0) as usize)
        }
    }
}

/// A mean with the half-width of its interval in two digits, and no digits below those: `255.6 ±8.5`; or `-`.
pub fn with_half(interval: Option<Interval>) -> String {
    let Some((interval, half)) = interval.and_then(|interval| Some((interval, interval.high? - interval.mean))) else {
        return number(interval.map(|interval| interval.mean));
    };
    // Nothing is known better than to six digits of the mean.
    let finest = 5 - if interval.mean == 0.0 { 0 } else { magnitude(interval.mean) };
    let decimals = if half > 0.0 { (1 - magnitude(half)).min(finest) } else { finest };
    let text = format!("{half:.*}", decimals.max(0) as usize);
    if half <= 0.0 || text.bytes().all(|byte| matches!(byte, b'0' | b'.')) {
        return number(Some(interval.mean));
    }
    format!("{:.*} ±{text}", decimals.max(0) as usize, interval.mean)
}

/// A reduction in percent, without the sign: `74.9 ±1.2`; or `-`.
pub fn in_percent(reduction: &Reduction) -> String {
    with_half(reduction.interval.map(|interval| Interval {
        mean: 100.0 * interval.mean,
        low: interval.low.map(|low| 100.0 * low),
        high: interval.high.map(|high| 100.0 * high),
        n: interval.n,
    }))
}

/// With a large first letter.
pub fn capital(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

/// The power of ten of the first digit.
fn magnitude(value: f64) -> i32 {
    value.abs().log10().floor() as i32
}

/// A count with its thousands apart.
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    let group = |(at, digit): (usize, char)| {
        let comma = at > 0 && (digits.len() - at).is_multiple_of(3);
        comma.then_some(',').into_iter().chain([digit])
    };
    digits.chars().enumerate().flat_map(group).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_digits_that_they_deserve() {
        let shown: Vec<String> = [0.0, 12_345.6, 255.59, 1.0, 0.4, 0.000_123_4, -3.0].map(|v| number(Some(v))).into();
        assert_eq!(shown, ["0", "12346", "255.6", "1", "0.4000", "0.000123", "-3"]);
        let with = |mean: f64, half: f64| {
            with_half(Some(Interval { mean, low: Some(mean - half), high: Some(mean + half), n: 9 }))
        };
        assert_eq!(with(1069.2, 156.13), "1069 ±156");
        assert_eq!(with(255.61, 38.54), "256 ±39");
        assert_eq!(with(0.398_12, 0.0117), "0.398 ±0.012");
        assert_eq!((with(4.0, 0.0), with(4.0, 1e-9)), ("4".to_owned(), "4".to_owned()));
        let single = Interval { mean: 2.0, low: None, high: None, n: 1 };
        assert_eq!((with_half(Some(single)), with_half(None)), ("2".to_owned(), "-".to_owned()));
        assert_eq!([0, 999, 1000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
    }
}
