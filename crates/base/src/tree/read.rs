//! Deserialises typed values from a tree; errors have the place of the wrong key or value.
//!
//! A text, or a table with one key, can be read as an enum; a list is never read as a struct. Rust types in serde's messages are replaced
//! by words. If an error has no place, the place is found by the key or value in the error, provided that the key or value occurs only
//! once.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{self, DeserializeOwned, DeserializeSeed, Deserializer, IntoDeserializer, Unexpected, Visitor};
use serde::forward_to_deserialize_any;

use super::{Entry, Node, Place, Value, float, too_large, too_large_for_a_double};
use crate::error::{Error, either, nearest};

impl Node {
    /// Returns the tree as a typed value. Errors: [`Error::Placed`] at an unknown key, or at a value of another type or out of range.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, Error> {
        At { node: self, key: None }
            .read(PhantomData::<T>)
            .map_err(|wrong| wrong.place.unwrap_or_else(|| self.place.clone()).wrong("", wrong.message))
    }
}

/// An error, with its place once the place is known.
#[derive(Debug)]
struct Wrong {
    place: Option<Place>,
    culprit: Option<Culprit>,
    message: String,
}

/// The key or value that an error is about. Serde buffers an internally tagged enum and deserialises it from the buffer, so errors in its
/// fields have no place.
#[derive(Debug)]
enum Culprit {
    /// An unknown key.
    Key(String),
    /// A value of another type or out of range, as written.
    Value(String),
}

impl Culprit {
    fn from_unexpected(value: Unexpected) -> Option<Culprit> {
        Some(Culprit::Value(match value {
            Unexpected::Bool(truth) => truth.to_string(),
            Unexpected::Signed(number) => number.to_string(),
            Unexpected::Unsigned(number) => number.to_string(),
            Unexpected::Float(number) => number.to_string(),
            Unexpected::Str(text) => text.to_owned(),
            _ => return None,
        }))
    }

    /// Adds the places where the key or value occurs in a node and below.
    fn find<'n>(&self, node: &'n Node, found: &mut Vec<&'n Place>) {
        match (&node.value, self) {
            (Value::Table(entries), _) => {
                for Entry { key, place, node } in entries {
                    found.extend(matches!(self, Culprit::Key(name) if name == key).then_some(place));
                    self.find(node, found);
                }
            }
            (Value::List(items), _) => items.iter().for_each(|item| self.find(item, found)),
            (Value::Integer(text) | Value::Float(text) | Value::Text(text), Culprit::Value(value)) if text == value => {
                found.push(&node.place);
            }
            (Value::Truth(truth), Culprit::Value(value)) if truth.to_string() == *value => found.push(&node.place),
            _ => {}
        }
    }
}

impl Wrong {
    /// Creates an error about an unknown name.
    fn unknown(what: &str, name: &str, expected: &[&str]) -> Wrong {
        let quoted: Vec<String> = expected.iter().map(|name| format!("`{name}`")).collect();
        let hint = nearest(name, expected.iter().copied()).map(|hint| format!("\nDid you mean '{hint}'?"));
        let names = either(quoted.iter().map(String::as_str));
        de::Error::custom(format_args!("unknown {what} `{name}`, expected {names}{}", hint.unwrap_or_default()))
    }

    /// Creates an error about an unexpected value. The expected values are described in words instead of Rust types.
    fn invalid(what: &str, value: Unexpected, expected: &dyn de::Expected) -> Wrong {
        let expected = expected.to_string();
        let words = match expected.as_str() {
            "u8" => "a whole number from 0 to 255",
            "u16" => "a whole number from 0 to 65535",
            "u32" => "a whole number from 0 to 4294967295",
            "u64" => "a whole number from 0 on",
            "f64" => "a number",
            name if name.starts_with("struct ") => "a table",
            words => words,
        };
        let wrong: Wrong = de::Error::custom(format_args!("invalid {what}: {value}, expected {words}"));
        Wrong { culprit: Culprit::from_unexpected(value), ..wrong }
    }

    /// Sets the place to a node, or to the only matching place below it, unless a place is known already.
    fn at(mut self, at: At) -> Wrong {
        if self.place.is_none() {
            let mut found = Vec::new();
            self.culprit.iter().for_each(|culprit| culprit.find(at.node, &mut found));
            // A missing key is reported at the table that lacks it.
            let place = at.key.filter(|_| at.node.table().is_some()).unwrap_or(&at.node.place);
            self.place = Some(if let [only] = found[..] { only } else { place }.clone());
        }
        self
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Wrong {}

impl de::Error for Wrong {
    fn custom<T: fmt::Display>(message: T) -> Wrong {
        Wrong { place: None, culprit: None, message: message.to_string() }
    }

    fn invalid_type(value: Unexpected, expected: &dyn de::Expected) -> Wrong {
        Wrong::invalid("type", value, expected)
    }

    fn invalid_value(value: Unexpected, expected: &dyn de::Expected) -> Wrong {
        Wrong::invalid("value", value, expected)
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Wrong {
        Wrong { culprit: Some(Culprit::Key(field.to_owned())), ..Wrong::unknown("field", field, expected) }
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Wrong {
        Wrong { culprit: Some(Culprit::Value(variant.to_owned())), ..Wrong::unknown("variant", variant, expected) }
    }
}

/// A node to be read, and the place of its key, if it has one.
#[derive(Clone, Copy)]
struct At<'n> {
    node: &'n Node,
    key: Option<&'n Place>,
}

impl At<'_> {
    fn read<'de, S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, Wrong> {
        seed.deserialize(self).map_err(|wrong| wrong.at(self))
    }
}

impl<'de> Deserializer<'de> for At<'_> {
    type Error = Wrong;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        match &self.node.value {
            Value::Integer(digits) => match digits.parse() {
                Ok(number) => visitor.visit_i64(number),
                Err(_) => Err(de::Error::custom(too_large(digits))),
            },
            Value::Float(digits) => match float(digits) {
                Some(number) => visitor.visit_f64(number),
                None => Err(de::Error::custom(too_large_for_a_double(digits))),
            },
            Value::Text(text) => visitor.visit_str(text),
            Value::Truth(truth) => visitor.visit_bool(*truth),
            Value::Other(name) => Err(de::Error::invalid_type(Unexpected::Other(name), &visitor)),
            Value::List(items) => {
                let mut items = Items(items.iter());
                let list = visitor.visit_seq(&mut items)?;
                match items.0.next() {
                    None => Ok(list),
                    Some(more) => {
                        let message = "one value too many".to_owned();
                        Err(Wrong { place: Some(more.place.clone()), culprit: None, message })
                    }
                }
            }
            Value::Table(entries) => visitor.visit_map(Entries { left: entries.iter(), entry: None }),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Wrong> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        match &self.node.value {
            Value::Text(name) => visitor.visit_enum(StrDeserializer::new(name)),
            Value::Table(entries) if entries.len() == 1 => {
                visitor.visit_enum(MapAccessDeserializer::new(Entries { left: entries.iter(), entry: None }))
            }
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        match &self.node.value {
            // A list would otherwise be read as the fields without their names.
            Value::List(_) => Err(de::Error::invalid_type(Unexpected::Seq, &visitor)),
            _ => self.deserialize_any(visitor),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map identifier ignored_any
    }
}

struct Items<'n>(std::slice::Iter<'n, Node>);

impl<'de> de::SeqAccess<'de> for Items<'_> {
    type Error = Wrong;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Wrong> {
        self.0.next().map(|node| At { node, key: None }.read(seed)).transpose()
    }
}

struct Entries<'n> {
    left: std::slice::Iter<'n, Entry>,
    entry: Option<&'n Entry>,
}

impl<'de> de::MapAccess<'de> for Entries<'_> {
    type Error = Wrong;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Wrong> {
        self.entry = self.left.next();
        let Some(entry) = self.entry else { return Ok(None) };
        let read = seed.deserialize(IntoDeserializer::<Wrong>::into_deserializer(entry.key.as_str()));
        read.map(Some).map_err(|wrong| Wrong { place: wrong.place.or_else(|| Some(entry.place.clone())), ..wrong })
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, Wrong> {
        let entry = self.entry.ok_or_else(|| de::Error::custom("a value without a key"))?;
        At { node: &entry.node, key: Some(&entry.place) }.read(seed)
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct Plan {
        name: String,
        seeds: Option<u64>,
        shape: Shape,
        #[serde(default)]
        inner: Vec<Inner>,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
    enum Shape {
        Flat { mean: f64, max: f64 },
    }

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct Inner {
        count: u8,
        on: bool,
        range: Option<[f64; 2]>,
    }

    const TEXT: &str =
        "name = \"p\"\nseeds = 3\nshape = { kind = \"flat\", mean = 1, max = 2.5 }\n[[inner]]\ncount = 7\non = true\n";

    fn read(text: &str) -> Result<Plan, Error> {
        Node::toml(&Place::whole_text("t", text)).and_then(|node| node.read())
    }

    #[test]
    fn typed_values_come_out() {
        let (shape, inner) = (Shape::Flat { mean: 1.0, max: 2.5 }, vec![Inner { count: 7, on: true, range: None }]);
        assert_eq!(read(TEXT).expect("right"), Plan { name: "p".into(), seeds: Some(3), shape, inner });
    }

    #[test]
    fn every_error_has_its_place() {
        for (from, to, says) in [
            ("seeds", "sedes", "line 2, column 1: unknown field `sedes`, expected `name`, `seeds`, `shape` or `inner`"),
            ("seeds", "sedes", "Did you mean 'seeds'?"),
            ("3", "-3", "line 2, column 9: invalid value: integer `-3`, expected a whole number from 0 on"),
            ("3", "1e3", "line 2, column 9: invalid type: floating point `1000.0`, expected a whole number from 0 on"),
            ("3", "99999999999999999999", "line 2, column 9: 99999999999999999999 is too large"),
            ("\"p\"", "1979-05-27", "line 1, column 8: invalid type: a date, expected a string"),
            ("name = \"p\"\n", "", "line 1, column 1: missing field `name`"),
            ("max", "mox", "line 3, column 36: unknown field `mox`"),
            ("2.5", "\"x\"", "line 3, column 42: invalid type: string \"x\", expected a number"),
            ("\"flat\"", "\"flt\"", "line 3, column 18: unknown variant `flt`, expected `flat`"),
            ("7", "700", "line 5, column 9: invalid value: integer `700`, expected a whole number from 0 to 255"),
            (
                "[[inner]]\ncount = 7\non = true",
                "inner = [3]",
                "line 4, column 10: invalid type: integer `3`, expected a table",
            ),
            (
                "[[inner]]\ncount = 7\non = true",
                "inner = [[7, true]]",
                "line 4, column 10: invalid type: sequence, expected a table",
            ),
            ("on = true\n", "", "line 4, column 1: missing field `on`"),
            ("on = true", "on = true\nrange = [0, 1, 2]", "line 7, column 16: one value too many"),
            ("2.5", "1e999", "line 3, column 42: 1e999 is too large"),
            ("3", "0x8000000000000000", "line 2, column 9: 0x8000000000000000 is too large"),
        ] {
            let message = read(&TEXT.replacen(from, to, 1)).expect_err(to).to_string();
            assert!(message.contains(says), "{message}\nlacks: {says}");
        }
    }
}
