//! Interned names: dense ids in place of names, and job names stored as a prefix and a number.
//!
//! [`Names`] maps names to ids and back; its memory grows with the number of distinct names. [`JobNames`] stores only the prefixes of job
//! names, so that the names of a trace with numbered jobs need no allocation.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use plimsoll_base::names::NameList;
use plimsoll_base::units::digits;

/// Interned names: dense ids in order of first appearance. Memory grows with the number of distinct names.
#[derive(Clone, Debug, Default)]
pub struct Names {
    names: NameList,
    /// Ids at the hash of their name or the first free place after it (open addressing); a power of two, at most half full.
    places: Vec<u32>,
    keys: RandomState,
}

/// The value of a free place.
const FREE: u32 = u32::MAX;

impl Names {
    /// Returns the id of `name`, a new one if the name is new.
    pub fn intern(&mut self, name: &str) -> u32 {
        if 2 * self.names.len() >= self.places.len() {
            self.grow();
        }
        let place = self.place(name);
        if self.places[place] == FREE {
            let id = u32::try_from(self.names.len()).ok().filter(|id| *id != FREE);
            self.places[place] = id.expect("fewer than 2^32 - 1 distinct names");
            self.names.push(name);
        }
        self.places[place]
    }

    /// Returns the id of a known name.
    pub fn id(&self, name: &str) -> Option<u32> {
        if self.places.is_empty() {
            return None;
        }
        Some(self.places[self.place(name)]).filter(|id| *id != FREE)
    }

    /// Returns the place of a name's id, or the free place for it.
    fn place(&self, name: &str) -> usize {
        let last = self.places.len() - 1;
        let mut place = self.keys.hash_one(name) as usize & last;
        while self.places[place] != FREE && self.names.get(self.places[place] as usize) != name {
            place = (place + 1) & last;
        }
        place
    }

    fn grow(&mut self) {
        self.places = vec![FREE; (2 * self.places.len()).max(16)];
        let last = self.places.len() - 1;
        for id in 0..self.names.len() {
            // All names differ, so that none need be compared.
            let mut place = self.keys.hash_one(self.names.get(id)) as usize & last;
            while self.places[place] != FREE {
                place = (place + 1) & last;
            }
            self.places[place] = id as u32;
        }
    }

    /// Returns the name of an id that [`Names::intern`] returned. Panics: on any other id.
    pub fn name(&self, id: u32) -> &str {
        self.names.get(id as usize)
    }

    /// Returns the number of distinct names.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Returns whether there are no names.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Returns all names in id order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.names.iter()
    }
}

/// A job's name, stored only while the job is active: most traces number their jobs, so text and number are separate and cost no
/// allocation.
#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum JobName {
    /// A known prefix followed by a number without leading zeros (`job17`, `17`).
    Numbered {
        /// The index of the prefix in [`JobNames`].
        prefix: u32,
        /// The number behind the prefix.
        number: u64,
    },
    /// Any other name.
    Text(Box<str>),
}

/// The prefixes of job names, at most [`JobNames::PREFIXES`] of them.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct JobNames {
    prefixes: Names,
    last: (Vec<u8>, u32),
}

/// Returns the number behind `prefix`, if [`split`] returns this prefix of `name`. `None` also for a prefix that ends in a digit.
#[inline]
pub(super) fn number_behind(prefix: &[u8], name: &[u8]) -> Option<u64> {
    let number = name.strip_prefix(prefix)?;
    if prefix.last().is_some_and(u8::is_ascii_digit) || matches!(number, [b'0', _, ..]) {
        return None;
    }
    digits(number)
}

/// Splits a name into text and the number behind it, if it ends in a number that is rendered identically: no leading zeros, at most 18
/// digits.
pub(super) fn split(name: &[u8]) -> Option<(&[u8], u64)> {
    // No sum or product of 18 digits overflows.
    let (mut at, mut number, mut place) = (name.len(), 0u64, 1u64);
    for byte in name.iter().rev().take(18) {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        number = number.wrapping_add(u64::from(digit).wrapping_mul(place));
        place = place.wrapping_mul(10);
        at -= 1;
    }
    // Leading zeros belong to the text, so that `07` and `7` stay two names.
    while at + 1 < name.len() && name[at] == b'0' {
        at += 1;
    }
    (at < name.len()).then(|| (&name[..at], number))
}

impl JobNames {
    /// The maximum number of distinct prefixes; names with further prefixes are stored as text.
    pub const PREFIXES: usize = 64;

    /// Parses a name into prefix and number. Returns `None` if it is not UTF-8.
    pub fn parse(&mut self, name: &[u8]) -> Option<JobName> {
        match self.numbered(name) {
            // A known prefix is UTF-8.
            Some((prefix, number)) => Some(JobName::Numbered { prefix, number }),
            None => Some(self.split(std::str::from_utf8(name).ok()?)),
        }
    }

    /// Returns the index of the prefix and the number of a name, if it has the prefix of the name before.
    #[inline]
    pub(super) fn numbered(&self, name: &[u8]) -> Option<(u32, u64)> {
        let (prefix, index) = &self.last;
        let number = number_behind(prefix, name)?;
        (!self.prefixes.is_empty()).then_some((*index, number))
    }

    /// Splits a name into prefix and number.
    pub fn split(&mut self, name: &str) -> JobName {
        let Some((prefix, number)) = split(name.as_bytes()) else { return JobName::Text(name.into()) };
        if self.prefixes.is_empty() || self.last.0 != prefix {
            let text = &name[..prefix.len()];
            if self.prefixes.id(text).is_none() && self.prefixes.len() >= Self::PREFIXES {
                return JobName::Text(name.into());
            }
            self.last.0.clear();
            self.last.0.extend_from_slice(prefix);
            self.last.1 = self.prefixes.intern(text);
        }
        JobName::Numbered { prefix: self.last.1, number }
    }

    /// Appends the name as in the trace.
    pub fn render(&self, name: &JobName, into: &mut String) {
        match name {
            JobName::Numbered { prefix, number } => {
                into.push_str(self.prefixes.name(*prefix));
                into.push_str(itoa::Buffer::new().format(*number));
            }
            JobName::Text(text) => into.push_str(text),
        }
    }

    /// Returns the name as a new string.
    pub fn text(&self, name: &JobName) -> String {
        let mut text = String::new();
        self.render(name, &mut text);
        text
    }
}

impl serde::Serialize for Names {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.names.serialize(serializer)
    }
}

impl<'de> serde::Deserialize<'de> for Names {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Names, D::Error> {
        let mut names = Names::default();
        for name in NameList::deserialize(deserializer)?.iter() {
            names.intern(name);
        }
        Ok(names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn job_names_come_back_as_they_were() {
        let mut names = JobNames::default();
        for name in ["17", "job17", "job0", "007", "a", "", "j_1.2", "é9", "123456789012345678901234", "00"] {
            let parsed = names.parse(name.as_bytes()).expect("UTF-8");
            assert_eq!(names.text(&parsed), name);
        }
        assert_ne!(names.parse(b"07"), names.parse(b"7"));
        assert_eq!(names.parse(b"\xff1"), None);
        assert_eq!(names.parse(b"\xff"), None);
    }

    #[test]
    fn a_number_behind_a_prefix_agrees_with_the_split_of_the_name() {
        let mut state = 1u64;
        let mut text = |most: usize| {
            let mut next = |below: usize| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 33) as usize % below
            };
            (0..next(most + 1)).map(|_| b"0017a-"[next(6)]).collect::<Vec<u8>>()
        };
        let mut found = 0;
        for round in 0..20_000 {
            let prefix = text(3);
            let name = [&prefix[..], &text(4), &b"12345678901234567"[..round % 18]].concat();
            if let Some(number) = number_behind(&prefix, &name) {
                assert_eq!(split(&name), Some((&prefix[..], number)));
                found += 1;
            } else if !prefix.last().is_some_and(u8::is_ascii_digit) {
                assert_ne!(split(&name).map(|(before, _)| before), Some(&prefix[..]));
            }
        }
        assert!(found > 1000);
    }

    #[test]
    fn ids_are_dense_in_order_of_appearance() {
        let mut names = Names::default();
        assert_eq!([names.intern("b"), names.intern("a"), names.intern("b")], [0, 1, 0]);
        assert_eq!(names.iter().collect::<Vec<_>>(), ["b", "a"]);
        assert_eq!((names.id("a"), names.id("c"), Names::default().id("")), (Some(1), None, None));
        for _ in 0..2 {
            for id in 2..5000 {
                assert_eq!(names.intern(&format!("{:x}", id * id)), id);
            }
        }
        assert!((2..5000).all(|id| names.name(id) == format!("{:x}", id * id)) && names.len() == 5000);
    }
}
