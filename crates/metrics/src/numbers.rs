//! Formats numbers for readers: few digits, and no more than their uncertainty allows.

use crate::interval::Interval;

/// Formats a number with at most four significant digits; whole numbers in full, an absent one as `-`.
pub fn number(value: Option<f64>) -> String {
    match value {
        None => "-".to_owned(),
        Some(value) if value.fract() == 0.0 && value.abs() < 1e15 => fixed(value, 0),
        Some(value) => {
            let digits = 3 - magnitude(value).clamp(-3, 3);
            fixed(value, digits.max(0) as usize)
        }
    }
}

/// Formats a mean with the half-width of its interval, such as `255.6 ±8.5`; `-` if absent. The half-width is rounded to two significant
/// digits or to an integer, and the mean has the same number of decimals.
pub fn with_half(interval: Option<Interval>) -> String {
    let Some((interval, half)) = interval.and_then(|interval| Some((interval, interval.half()?))) else {
        return number(interval.map(|interval| interval.mean));
    };
    // The mean has at most six significant digits.
    let finest = 5 - if interval.mean == 0.0 { 0 } else { magnitude(interval.mean) };
    let decimals = if half > 0.0 { (1 - magnitude(half)).min(finest) } else { finest };
    let text = format!("{half:.*}", decimals.max(0) as usize);
    if half <= 0.0 || text.bytes().all(|byte| matches!(byte, b'0' | b'.')) {
        return number(Some(interval.mean));
    }
    format!("{} ±{text}", fixed(interval.mean, decimals.max(0) as usize))
}

/// Formats the change of a comparison in percent with the half-width of its interval, without the percent sign: `-20.1 ±5.0`; `-` if
/// absent.
pub fn in_percent(change: Option<Interval>) -> String {
    with_half(change.map(|interval| Interval {
        mean: 100.0 * interval.mean,
        low: interval.low.map(|low| 100.0 * low),
        high: interval.high.map(|high| 100.0 * high),
        n: interval.n,
    }))
}

/// Capitalises the first letter.
pub fn capital(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

/// Returns the power of ten of the first digit.
fn magnitude(value: f64) -> i32 {
    value.abs().log10().floor() as i32
}

/// Formats a count with its noun: `1 task`, `1,200 tasks`. `noun` is singular and gets an `s`.
pub fn count(value: u64, noun: &str) -> String {
    format!("{} {}", thousands(value), plural(value, noun))
}

/// Formats the beginning of a statement about a count: `1 task is`, `2 tasks are`.
pub fn are(value: u64, noun: &str) -> String {
    format!("{} {}", count(value, noun), if value == 1 { "is" } else { "are" })
}

/// Returns the singular or plural of a noun for a count: `task` or `tasks`.
pub fn plural(value: u64, noun: &str) -> String {
    format!("{noun}{}", if value == 1 { "" } else { "s" })
}

/// Formats a number with `decimals` decimals; a negative number that rounds to zero has no sign.
pub fn fixed(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    match text.strip_prefix('-') {
        Some(digits) if digits.bytes().all(|byte| matches!(byte, b'0' | b'.')) => digits.to_owned(),
        _ => text,
    }
}

/// Formats a count with thousands separators.
pub fn thousands(value: u64) -> String {
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
        assert_eq!((with(-0.000_3, 0.011), with(-0.02, 0.011)), ("0.000 ±0.011".into(), "-0.020 ±0.011".into()));
        assert_eq!([-0.0, -0.04, -0.06].map(|value| fixed(value, 1)), ["0.0", "0.0", "-0.1"]);
        assert_eq!([0, 1, 1200].map(|n| count(n, "task")), ["0 tasks", "1 task", "1,200 tasks"]);
        assert_eq!([0, 999, 1000, 1_234_567].map(thousands), ["0", "999", "1,000", "1,234,567"]);
    }
}
