//! Profiles of columns: which kinds of values the first rows have.

use std::collections::BTreeMap;

use crate::clock::Clock;
use crate::expr::bytes;
use crate::number::Fraction;

use super::comma::CommaCounts;

/// Formats of times besides ISO 8601.
const FORMATS: [&str; 14] = [
    "%Y/%m/%d %H:%M:%S",
    "%Y/%m/%d %H:%M",
    "%d/%m/%Y %H:%M:%S",
    "%m/%d/%Y %H:%M:%S",
    "%d/%m/%Y %H:%M",
    "%m/%d/%Y %H:%M",
    "%d.%m.%Y %H:%M:%S",
    "%d.%m.%Y %H:%M",
    "%d-%m-%Y %H:%M:%S",
    "%m-%d-%Y %H:%M:%S",
    "%d/%b/%Y:%H:%M:%S %z",
    "%a %b %d %H:%M:%S %Y",
    "%b %d %Y %H:%M:%S",
    "%Y%m%dT%H%M%S",
];

/// The most distinct values that are stored.
const DISTINCT: usize = 1000;

/// The values of a column in the first rows.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    /// The name.
    pub name: String,
    /// The position in a row, from 1.
    pub place: usize,
    /// Whether another column has the same name.
    pub is_repeated: bool,
    /// Values that are not empty.
    pub values: u64,
    /// Values that are numbers.
    pub numbers: u64,
    /// Values that are numbers with commas.
    pub commas: CommaCounts,
    /// Values that are -1.
    pub minus_ones: u64,
    /// Values below 0 other than -1.
    pub negative: u64,
    /// Values that are times in ISO 8601, and those without an offset.
    pub times: u64,
    /// See `times`.
    pub local_times: u64,
    /// Values that are sizes such as `16G`.
    pub sizes: u64,
    /// The smallest and the largest number, without -1.
    pub range: Option<(f64, f64)>,
    /// Distinct values with their number of rows.
    pub distinct: BTreeMap<String, u64>,
    /// Formats that all values fit.
    pub formats: Vec<&'static str>,
}

impl Profile {
    /// Creates the profile of a column.
    pub fn new(name: &str, place: usize, is_repeated: bool) -> Profile {
        Profile { name: name.to_owned(), place, is_repeated, formats: FORMATS.to_vec(), ..Profile::default() }
    }

    /// Adds the value of a row.
    pub fn add(&mut self, value: &str) {
        let value = value.trim();
        if value.is_empty() || value.eq_ignore_ascii_case("nan") || value.eq_ignore_ascii_case("null") {
            return;
        }
        self.values += 1;
        if self.distinct.len() < DISTINCT || self.distinct.contains_key(value) {
            *self.distinct.entry(value.to_owned()).or_default() += 1;
        }
        if let Some(number) = Fraction::parse(value) {
            self.numbers += 1;
            self.commas.points += u64::from(value.contains('.'));
            let number = number.double();
            if number == -1.0 {
                self.minus_ones += 1;
            } else {
                self.negative += u64::from(number < 0.0);
                let (least, most) = self.range.unwrap_or((number, number));
                self.range = Some((least.min(number), most.max(number)));
            }
            self.formats.clear();
            return;
        }
        if self.commas.add(value) {
            self.formats.clear();
            return;
        }
        let clock = Clock::default();
        if clock.read(value).is_some() {
            self.times += 1;
            self.local_times += u64::from(clock.local.is_in_row());
        } else if bytes(value).is_some() {
            self.sizes += 1;
        }
        self.formats.retain(|format| clock.formatted(value, format, &clock.zone).is_some());
    }

    /// Returns whether nearly all values are of a kind.
    fn mostly(&self, many: u64) -> bool {
        self.values > 0 && many * 20 >= self.values * 19
    }

    /// Returns whether the column has numbers.
    pub fn is_number(&self) -> bool {
        self.mostly(self.numbers + self.commas.values)
    }

    /// Returns whether the column has times in ISO 8601.
    pub fn is_iso_time(&self) -> bool {
        self.mostly(self.times)
    }

    /// Returns whether the column has times in one of the other formats.
    pub fn is_formatted_time(&self) -> bool {
        self.values > 0 && !self.formats.is_empty() && !self.is_iso_time()
    }

    /// Returns whether the column can be a time or a number of seconds.
    pub fn is_time(&self) -> bool {
        self.is_number() || self.is_iso_time() || self.is_formatted_time()
    }

    /// Returns whether -1 seems to mean a missing value.
    pub fn has_minus_one(&self) -> bool {
        self.minus_ones > 0 && self.negative == 0
    }

    /// Returns the largest number.
    pub fn most(&self) -> f64 {
        self.range.map_or(0.0, |(_, most)| most)
    }

    /// Describes the values, for a comment.
    pub fn describe(&self) -> String {
        let of = |many: u64, kind: &str| format!("{many} of {} values are {kind}", self.values);
        match self.range {
            _ if self.values == 0 => "no value in the first rows".to_owned(),
            _ if self.is_number() && self.commas.values > 0 => {
                of(self.numbers + self.commas.values, &format!("numbers with commas such as {}", self.commas.example))
            }
            Some((least, most)) if self.is_number() => {
                let plain =
                    |number: f64| Fraction::from_double(number).map_or(number.to_string(), |number| number.to_string());
                format!("{} from {} to {}", of(self.numbers, "numbers"), plain(least), plain(most))
            }
            _ if self.is_iso_time() => of(self.times, "times in ISO 8601"),
            _ if self.is_formatted_time() => of(self.values, &format!("times in the form {}", self.formats[0])),
            _ if self.mostly(self.sizes) => of(self.sizes, "sizes such as 16G"),
            _ => format!("{} different texts", self.distinct.len()),
        }
    }
}
