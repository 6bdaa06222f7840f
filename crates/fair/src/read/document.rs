//! A text in TOML or JSON as one kind of tree: exact numbers, keys in the order of the text, and places where the
//! parser knows them (it does for TOML).
//!
//! Source: TOML 1.0; JSON as in RFC 8259, with a key at most once in an object.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::Exact;

/// Line and column, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    line: usize,
    column: usize,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// A value and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    pub place: Option<Position>,
    pub value: Value,
}

/// The value itself.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    /// An integer as it is; another number as its shortest decimal.
    Number(Exact),
    /// A number that is not finite, or an integer that does not fit, as it is written.
    Beyond(String),
    Text(String),
    Truth(bool),
    List(Vec<Node>),
    /// In the order of the text, each key once.
    Table(Vec<Entry>),
    /// A kind of value that no instance has; its name.
    Other(&'static str),
}

/// A key with its value.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    pub key: String,
    pub place: Option<Position>,
    pub node: Node,
}

impl Node {
    /// Its kind, for a message.
    pub fn kind(&self) -> String {
        match &self.value {
            Value::Number(number) => short(&number.to_string()),
            Value::Beyond(text) => short(text),
            Value::Text(text) => format!("'{}'", short(text)),
            Value::Truth(_) => "a truth value".to_owned(),
            Value::List(_) => "a list".to_owned(),
            Value::Table(_) => "a table".to_owned(),
            Value::Other(name) => (*name).to_owned(),
        }
    }
}

/// Text for a message: no longer than a message should be, and without control characters.
pub(super) fn short(text: &str) -> String {
    const KEPT: usize = 60;
    let kept: String = text.chars().take(KEPT).collect();
    let rest = if text.chars().nth(KEPT).is_some() { "…" } else { "" };
    format!("{}{rest}", kept.escape_debug())
}

/// Reads TOML. Errors: the parser's message with line and column.
pub(super) fn toml(text: &str) -> Result<Node, String> {
    let starts: Vec<usize> = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
    let places = Places { text, starts };
    let document = DeTable::parse(text).map_err(|error| {
        let place = error.span().and_then(|span| places.at(span.start));
        place.map(|place| format!("{place}: ")).unwrap_or_default() + error.message()
    })?;
    Ok(Node { place: None, value: places.table(document.get_ref()) })
}

/// Reads JSON. Errors: the parser's message, which has line and column in it.
pub(super) fn json(text: &str) -> Result<Node, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

struct Places<'a> {
    text: &'a str,
    /// Where each line starts.
    starts: Vec<usize>,
}

impl Places<'_> {
    fn at(&self, byte: usize) -> Option<Position> {
        let line = self.starts.partition_point(|&start| start <= byte);
        let before = self.text.get(*self.starts.get(line.checked_sub(1)?)?..byte)?;
        Some(Position { line, column: before.chars().count() + 1 })
    }

    fn table(&self, table: &DeTable) -> Value {
        // The parser sorts by key; the text's own order decides which resource comes first.
        let mut entries: Vec<_> = table.iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        let entry = |(key, value): (&Spanned<_>, &Spanned<DeValue>)| Entry {
            key: AsRef::<str>::as_ref(key.get_ref()).to_owned(),
            place: self.at(key.span().start),
            node: self.node(value),
        };
        Value::Table(entries.into_iter().map(entry).collect())
    }

    fn node(&self, value: &Spanned<DeValue>) -> Node {
        let tree = match value.get_ref() {
            DeValue::String(text) => Value::Text(text.to_string()),
            DeValue::Integer(digits) => match i64::from_str_radix(digits.as_str(), digits.radix()) {
                Ok(number) => Value::Number(Exact::ratio(number, 1)),
                Err(_) => Value::Beyond(digits.as_str().to_owned()),
            },
            DeValue::Float(digits) => float(digits.as_str().parse().unwrap_or(f64::NAN), digits.as_str()),
            DeValue::Boolean(truth) => Value::Truth(*truth),
            DeValue::Datetime(_) => Value::Other("a date"),
            DeValue::Array(items) => Value::List(items.iter().map(|item| self.node(item)).collect()),
            DeValue::Table(table) => self.table(table),
        };
        Node { place: self.at(value.span().start), value: tree }
    }
}

fn float(value: f64, text: &str) -> Value {
    match Exact::decimal(value) {
        Some(number) => Value::Number(number),
        None => Value::Beyond(text.to_owned()),
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Node, D::Error> {
        let value = deserializer.deserialize_any(Builder)?;
        Ok(Node { place: None, value })
    }
}

struct Builder;

impl<'de> Visitor<'de> for Builder {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(Exact::ratio(value, 1)))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(float(value, &value.to_string()))
    }

    fn visit_bool<E>(self, truth: bool) -> Result<Value, E> {
        Ok(Value::Truth(truth))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Other("null"))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            items.push(item);
        }
        Ok(Value::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut keys = std::collections::HashSet::new();
        let mut entries = Vec::new();
        while let Some(key) = map.next_key::<String>()? {
            if !keys.insert(key.clone()) {
                return Err(A::Error::custom(format!("the key '{}' appears twice", short(&key))));
            }
            let node = map.next_value()?;
            entries.push(Entry { key, place: None, node });
        }
        Ok(Value::Table(entries))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(node: &Node) -> &[Entry] {
        match &node.value {
            Value::Table(entries) => entries,
            other => panic!("{other:?} is no table"),
        }
    }

    #[test]
    fn both_syntaxes_keep_order_and_exact_numbers() {
        let written = toml("z = 0.1\na = 0x10\n[m]\nd = 1_000\nb = -1.5e-3\n").expect("TOML");
        let same = json(r#"{"z": 0.1, "a": 16, "m": {"d": 1000, "b": -0.0015}}"#).expect("JSON");
        let flat = |node: &Node| -> Vec<(String, String)> {
            let top = entries(node).iter().map(|entry| (entry.key.clone(), entry.node.kind()));
            let inner = entries(&entries(node)[2].node).iter().map(|entry| (entry.key.clone(), entry.node.kind()));
            top.chain(inner).collect()
        };
        assert_eq!(flat(&written), flat(&same));
        let kinds: Vec<String> = flat(&written).into_iter().map(|(_, kind)| kind).collect();
        assert_eq!(kinds, ["1/10", "16", "a table", "1000", "-3/2000"]);
    }

    #[test]
    fn places_count_characters_from_one() {
        let node = toml("\"ä\" = { \"ö\" = 1, b = 2 }\n\n  c = 3\n").expect("TOML");
        let inner = &entries(&entries(&node)[0].node)[1];
        assert_eq!(inner.place, Some(Position { line: 1, column: 18 }));
        assert_eq!(entries(&node)[1].node.place.expect("a place").to_string(), "line 3, column 7");
    }

    #[test]
    fn what_is_no_number_is_kept_as_written() {
        let node = toml("a = nan\nb = -inf\nc = 99999999999999999999\nd = 1e999\n").expect("TOML");
        let kinds: Vec<String> = entries(&node).iter().map(|entry| entry.node.kind()).collect();
        assert_eq!(kinds, ["nan", "-inf", "99999999999999999999", "1e999"]);
        assert!(json(r#"{"a": 1e999}"#).is_err());
        assert!(json(r#"{"a": 1, "a": 2}"#).unwrap_err().contains("'a' appears twice at line 1"));
        assert!(json(&"[".repeat(100_000)).is_err() && toml(&format!("a = {}", "[".repeat(100_000))).is_err());
    }
}
