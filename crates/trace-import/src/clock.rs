//! Converts times in text to seconds since 1970: ISO 8601 or a stated format, with an offset in the text or in an IANA time zone.
//!
//! When summer time ends, an hour occurs twice, and a rule selects the first or the second. When it begins, an hour does not
//! occur; a time in it is read with the offset from before the change. Both are counted.

use std::cell::Cell;

use jiff::civil::DateTime;
use jiff::fmt::strtime;
use jiff::tz::{AmbiguousOffset, TimeZone};

use crate::number::Fraction;

/// The rule that selects one of two equal local times at the end of summer time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RepeatedHour {
    /// The earlier one.
    #[default]
    First,
    /// The later one.
    Second,
}

/// Rules for times, and counts of unusual times.
#[derive(Clone, Debug)]
pub struct Clock {
    /// A format as in `strftime`; ISO 8601 if absent.
    pub format: Option<String>,
    /// The zone of times without an offset.
    pub zone: TimeZone,
    /// The zone's name if the mapping has one.
    pub zone_name: Option<String>,
    /// The rule for the repeated hour.
    pub repeated: RepeatedHour,
    /// Rows with a time without an offset.
    pub local: RowCount,
    /// Rows with a time in a repeated hour.
    pub repeats: RowCount,
    /// Rows with a time in an hour that does not occur.
    pub skipped: RowCount,
}

/// A number of rows with a property. Several expressions of a row may read the same time, so a row is counted when it ends.
#[derive(Clone, Debug, Default)]
pub struct RowCount {
    is_in_row: Cell<bool>,
    rows: Cell<u64>,
}

impl RowCount {
    fn mark(&self) {
        self.is_in_row.set(true);
    }

    fn end_row(&self) {
        self.rows.set(self.rows.get() + u64::from(self.is_in_row.take()));
    }

    /// Returns whether the current row has the property.
    pub fn is_in_row(&self) -> bool {
        self.is_in_row.get()
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> u64 {
        self.rows.get()
    }
}

impl Default for Clock {
    fn default() -> Clock {
        Clock {
            format: None,
            zone: TimeZone::UTC,
            zone_name: None,
            repeated: RepeatedHour::First,
            local: RowCount::default(),
            repeats: RowCount::default(),
            skipped: RowCount::default(),
        }
    }
}

/// Finds a time zone by its IANA name. Errors: a description of the accepted names.
pub fn zone(name: &str) -> Result<TimeZone, String> {
    let expected =
        || format!("'{name}' is no time zone; expected an IANA name such as UTC, Europe/Berlin or America/Los_Angeles");
    if name.starts_with(':') || name.contains(char::is_whitespace) {
        return Err(expected());
    }
    TimeZone::get(name).map_err(|_| expected())
}

/// Nanoseconds of a timestamp as seconds.
fn seconds(nanoseconds: i128) -> Option<Fraction> {
    Fraction::reduced(nanoseconds, 1_000_000_000)
}

impl Clock {
    /// Ends a row for the counts of rows.
    pub fn end_row(&self) {
        [&self.local, &self.repeats, &self.skipped].into_iter().for_each(RowCount::end_row);
    }

    /// Removes all counts, before an import.
    pub fn restart(&self) {
        for count in [&self.local, &self.repeats, &self.skipped] {
            count.is_in_row.set(false);
            count.rows.set(0);
        }
    }

    /// Reads a time by the rules of the mapping: seconds since 1970, or `None` if the text has another form.
    pub fn read(&self, text: &str) -> Option<Fraction> {
        match &self.format {
            None => self.iso(text, &self.zone),
            Some(format) => self.formatted(text, format, &self.zone),
        }
    }

    /// Reads a time in a format as in `strftime`, in a zone if the format has no offset.
    pub fn formatted(&self, text: &str, format: &str, zone: &TimeZone) -> Option<Fraction> {
        let parts = strtime::parse(format, text.trim()).ok()?;
        if parts.iana_time_zone().is_some() {
            return seconds(parts.to_zoned().ok()?.timestamp().as_nanosecond());
        }
        if parts.offset().is_some() {
            return seconds(parts.to_timestamp().ok()?.as_nanosecond());
        }
        let local = parts.to_datetime().or_else(|_| parts.to_date().map(|date| date.at(0, 0, 0, 0))).ok()?;
        self.local(local, zone)
    }

    /// Reads a time in ISO 8601: `2017-10-07T01:11:39`, with a blank instead of `T`, decimals and an offset if present, or a date.
    pub fn iso(&self, text: &str, zone: &TimeZone) -> Option<Fraction> {
        let text = text.trim();
        if text.len() < 10 || !text.is_ascii() {
            return None;
        }
        let bytes = text.as_bytes();
        let number = |from: usize, to: usize| -> Option<i16> {
            let digits = bytes.get(from..to)?;
            digits
                .iter()
                .all(u8::is_ascii_digit)
                .then(|| digits.iter().fold(0, |sum, digit| 10 * sum + i16::from(digit - b'0')))
        };
        if bytes[4] != b'-' || bytes[7] != b'-' {
            return None;
        }
        let (year, month, day) = (number(0, 4)?, number(5, 7)? as i8, number(8, 10)? as i8);
        let (mut hour, mut minute, mut second, mut nanosecond) = (0, 0, 0, 0);
        let mut rest = &text[10..];
        if let Some(time) = rest.strip_prefix(['T', 't', ' ']).filter(|time| time.as_bytes().get(2) == Some(&b':')) {
            hour = number(11, 13)? as i8;
            minute = number(14, 16)? as i8;
            rest = time.get(5..)?;
            if rest.starts_with(':') {
                second = number(17, 19)? as i8;
                rest = rest.get(3..)?;
                if let Some(decimals) = rest.strip_prefix(['.', ',']) {
                    let length = decimals.bytes().take_while(u8::is_ascii_digit).count();
                    let kept: String = decimals[..length].chars().chain("000000000".chars()).take(9).collect();
                    nanosecond = kept.parse().ok().filter(|_| length > 0)?;
                    rest = &decimals[length..];
                }
            }
        }
        // A leap second is read as the second before it.
        let second = if second == 60 { 59 } else { second };
        let local = DateTime::new(year, month, day, hour, minute, second, nanosecond).ok()?;
        let rest = rest.trim_start();
        if rest.is_empty() {
            return self.local(local, zone);
        }
        let utc = seconds(TimeZone::UTC.to_timestamp(local).ok()?.as_nanosecond())?;
        utc.minus(Fraction::from(offset(rest)?))
    }

    fn local(&self, local: DateTime, zone: &TimeZone) -> Option<Fraction> {
        self.local.mark();
        let ambiguous = zone.to_ambiguous_timestamp(local);
        let chosen = match ambiguous.offset() {
            AmbiguousOffset::Unambiguous { .. } => ambiguous.compatible(),
            AmbiguousOffset::Gap { .. } => {
                self.skipped.mark();
                ambiguous.compatible()
            }
            AmbiguousOffset::Fold { .. } => {
                self.repeats.mark();
                match self.repeated {
                    RepeatedHour::First => ambiguous.earlier(),
                    RepeatedHour::Second => ambiguous.later(),
                }
            }
        };
        seconds(chosen.ok()?.as_nanosecond())
    }
}

/// Reads an offset such as `Z`, `UTC`, `+08:00`, `+0800` or `-07` in seconds.
fn offset(text: &str) -> Option<i64> {
    if matches!(text, "Z" | "z" | "UTC" | "GMT") {
        return Some(0);
    }
    let sign = match text.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let digits: String = text[1..].chars().filter(|c| *c != ':').collect();
    let (hours, minutes) = match digits.len() {
        2 => (digits.parse::<i64>().ok()?, 0),
        4 => (digits[..2].parse().ok()?, digits[2..].parse().ok()?),
        _ => return None,
    };
    (hours < 24 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(clock: &Clock, text: &str) -> Option<f64> {
        clock.read(text).map(Fraction::double)
    }

    #[test]
    fn iso_8601_has_several_forms() {
        let clock = Clock::default();
        for (text, seconds) in [
            ("1970-01-02", 86_400.0),
            ("1970-01-01T00:01:00Z", 60.0),
            ("1970-01-01 00:01:00.250 UTC", 60.25),
            ("1970-01-01 08:00:05+08:00", 5.0),
            ("1970-01-01T00:00-0100", 3600.0),
            ("1970-01-01 00:00:01", 1.0),
        ] {
            assert_eq!(read(&clock, text), Some(seconds), "{text}");
        }
        for text in [
            "",
            "1970",
            "1970-13-01",
            "1970-01-01T",
            "1970-01-01 00:00:00 CET",
            "1970-01-01x",
            "12:00:00",
            "é970-01-01",
        ] {
            assert_eq!(read(&clock, text), None, "{text}");
        }
    }

    #[test]
    fn a_rule_selects_one_of_the_repeated_hours() {
        let mut clock = Clock { zone: zone("America/Los_Angeles").expect("a zone"), ..Clock::default() };
        let first = clock.read("2017-11-05 01:30:00").expect("a time");
        clock.repeated = RepeatedHour::Second;
        let second = clock.read("2017-11-05 01:30:00").expect("a time");
        clock.end_row();
        assert_eq!(second.minus(first), Some(Fraction::from(3600)));
        assert_eq!((clock.repeats.rows(), clock.skipped.rows()), (1, 0));
        let gap = clock.read("2017-03-12 02:30:00").expect("a time");
        assert_eq!(Some(gap), clock.read("2017-03-12 03:30:00"));
        clock.end_row();
        assert_eq!((clock.repeats.rows(), clock.skipped.rows()), (1, 1));
        assert!(zone("America/Los_Angles").is_err() && zone("").is_err());
    }

    #[test]
    fn formats_are_those_of_strftime() {
        let clock = Clock { format: Some("%d.%m.%Y %H:%M".into()), ..Clock::default() };
        assert_eq!(read(&clock, "02.01.1970 00:01"), Some(86_460.0));
        assert_eq!(read(&clock, "1970-01-02"), None);
        let zoned = Clock { format: Some("%Y%m%d %H:%M:%S %z".into()), ..Clock::default() };
        assert_eq!(read(&zoned, "19700102 01:00:00 +0100"), Some(86_400.0));
    }
}
