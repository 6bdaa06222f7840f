//! TOML and JSON documents as trees of one type. Keys keep the order of the text, numbers keep their digits, and each key and value has its
//! place, so that errors have a line and a column.
//!
//! All files with settings are read by this module: plans, quota groups, instances, figures. [`Node::read`] converts a part of a tree into
//! a typed value; [`Node::locate`] adds the place of a key to an error. Trees can be changed and merged without losing places. The JSON
//! parser gives no places, but duplicate keys are refused.
//!
//! Source: TOML 1.0; JSON as in RFC 8259.

mod path;
mod place;
mod read;

pub use path::{PathStep, path_of, steps};
pub use place::Place;
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::{Error, did_you_mean};

/// A value and its place.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Node {
    /// The place of the value.
    pub place: Place,
    /// The value.
    pub value: Value,
}

/// The value itself.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A whole number in decimal digits, however large.
    Integer(String),
    /// Another number as written.
    Float(String),
    /// Text.
    Text(String),
    /// `true` or `false`.
    Truth(bool),
    /// The name of a kind of value that no setting accepts, such as a date.
    Other(&'static str),
    /// Values in order.
    List(Vec<Node>),
    /// Keys in the order of the text, each once.
    Table(Vec<Entry>),
}

impl Default for Value {
    fn default() -> Value {
        Value::Table(Vec::new())
    }
}

/// A key with its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// The place of the key.
    pub place: Place,
    /// The value.
    pub node: Node,
}

impl Node {
    /// Reads TOML or JSON; `place` is the whole text. The format follows from the extension of its file, or from the text if the extension
    /// is neither `toml` nor `json`. Errors: as [`Node::toml`] and [`Node::json`].
    pub fn document(place: &Place) -> Result<Node, Error> {
        let ending = place.file().extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase());
        let json = match ending.as_deref() {
            Some("json") => true,
            Some("toml") => false,
            // No TOML document starts with a brace, and every JSON table does.
            _ => place.text().trim_start().starts_with('{'),
        };
        if json { Node::json(place) } else { Node::toml(place) }
    }

    /// Reads TOML; `place` is the whole text. Errors: the parser's message, at its place.
    pub fn toml(place: &Place) -> Result<Node, Error> {
        let document = DeTable::parse(place.text())
            .map_err(|error| place.at(error.span().unwrap_or(0..0)).wrong("", error.message().trim_end()))?;
        let value = table(document.get_ref(), place);
        if let Some(deep) = deeper(&value, MOST_DEEP) {
            return Err(deep.wrong("", format!("nested too deep; expected at most {MOST_DEEP} nested tables")));
        }
        // Errors about missing keys are placed at the first key, or at no key of a generated text.
        let first = if let Value::Table(entries) = &value { entries.first() } else { None };
        let first = first.filter(|_| !place.is_generated());
        Ok(Node { place: first.map_or_else(|| place.at(0..0), |entry| entry.place.clone()), value })
    }

    /// Reads JSON; `place` is the whole text. Errors: the parser's message, which contains line and column.
    pub fn json(place: &Place) -> Result<Node, Error> {
        let mut parser = serde_json::Deserializer::from_str(place.text());
        let read = Builder(&place.unknown()).deserialize(&mut parser).and_then(|node| parser.end().map(|()| node));
        read.map_err(|error| place.unknown().wrong("", error))
    }

    /// Sets the place of this node and all nodes below it, for a value without a text of its own.
    pub fn at(mut self, place: &Place) -> Node {
        self.place = place.clone();
        match &mut self.value {
            Value::List(items) => items.iter_mut().for_each(|item| *item = std::mem::take(item).at(place)),
            Value::Table(entries) => entries.iter_mut().for_each(|entry| {
                entry.place = place.clone();
                entry.node = std::mem::take(&mut entry.node).at(place);
            }),
            _ => {}
        }
        self
    }

    /// Returns the value without places. Errors: a number out of TOML's range, a date, `null`.
    pub fn plain(&self) -> Result<toml::Value, Error> {
        Ok(match &self.value {
            Value::Integer(digits) => {
                toml::Value::Integer(digits.parse().map_err(|_| self.place.wrong("", too_large(digits)))?)
            }
            Value::Float(digits) => {
                toml::Value::Float(float(digits).ok_or_else(|| self.place.wrong("", too_large_for_a_double(digits)))?)
            }
            Value::Text(text) => toml::Value::String(text.clone()),
            Value::Truth(truth) => toml::Value::Boolean(*truth),
            Value::Other(name) => {
                return Err(self.place.wrong("", format!("{name} is not accepted; expected text or a number")));
            }
            Value::List(items) => toml::Value::Array(items.iter().map(Node::plain).collect::<Result<_, Error>>()?),
            Value::Table(_) => toml::Value::Table(self.plain_table()?),
        })
    }

    /// Returns the entries as a table without places; it is empty for other values. Errors: as [`Node::plain`].
    pub fn plain_table(&self) -> Result<toml::Table, Error> {
        self.entries().iter().map(|entry| Ok((entry.key.clone(), entry.node.plain()?))).collect()
    }

    /// Returns the value for a message: shortened, and without control characters.
    pub fn shown(&self) -> String {
        match &self.value {
            Value::Integer(digits) | Value::Float(digits) => brief(digits),
            Value::Text(text) => format!("'{}'", brief(text)),
            Value::Truth(truth) => truth.to_string(),
            Value::Other(name) => (*name).to_owned(),
            Value::List(_) => "a list".to_owned(),
            Value::Table(_) => "a table".to_owned(),
        }
    }

    /// Returns the text, if the value is one.
    pub fn text(&self) -> Option<&str> {
        if let Value::Text(text) = &self.value { Some(text) } else { None }
    }

    /// Returns the items, if the value is a list.
    pub fn list(&self) -> Option<&[Node]> {
        if let Value::List(items) = &self.value { Some(items) } else { None }
    }

    /// Returns the entries, if the value is a table.
    pub fn table(&self) -> Option<&[Entry]> {
        if let Value::Table(entries) = &self.value { Some(entries) } else { None }
    }

    /// Returns the entries; empty for other values.
    pub fn entries(&self) -> &[Entry] {
        self.table().unwrap_or_default()
    }

    /// Refuses keys that are not in `keys`. Errors: [`Error::Placed`] at the unknown key; the message begins with `key` and
    /// contains `within` after the unknown key.
    pub fn known(&self, keys: &[&str], key: &str, within: &str) -> Result<(), Error> {
        match self.entries().iter().find(|entry| !keys.contains(&entry.key.as_str())) {
            None => Ok(()),
            Some(entry) => {
                let (name, hint) = (brief(&entry.key), did_you_mean(&entry.key, keys.iter().copied()));
                let problem = format!("'{name}' is no key{within}{hint}; expected {}", keys.join(", "));
                Err(entry.place.wrong(key, problem))
            }
        }
    }

    /// Returns the entry of a key.
    pub fn get(&self, key: &str) -> Option<&Entry> {
        self.entries().iter().find(|entry| entry.key == key)
    }
}

/// Returns a number as a double; `None` if it exceeds the range of doubles.
fn float(digits: &str) -> Option<f64> {
    let number: f64 = digits.parse().unwrap_or(f64::NAN);
    Some(number).filter(|number| number.is_finite() || digits.contains(['i', 'n']))
}

fn too_large_for_a_double(digits: &str) -> String {
    format!("{} is too large; expected a number below 1.8e308", brief(digits))
}

fn too_large(digits: &str) -> String {
    format!("{} is too large; expected a whole number below 2^63", brief(digits))
}

/// Maximum nesting of tables and lists; trees are traversed by recursion.
const MOST_DEEP: usize = 80;

/// Returns the first place at a depth of more than `left` tables and lists.
fn deeper(value: &Value, left: usize) -> Option<&Place> {
    let nodes: Vec<&Node> = match value {
        Value::List(items) => items.iter().collect(),
        Value::Table(entries) => entries.iter().map(|entry| &entry.node).collect(),
        _ => return None,
    };
    if left == 0 {
        return nodes.first().map(|node| &node.place);
    }
    nodes.into_iter().find_map(|node| deeper(&node.value, left - 1))
}

/// Shortens a text for a message and escapes control characters.
pub fn brief(text: &str) -> String {
    const KEPT: usize = 60;
    let kept: String = text.chars().take(KEPT).collect();
    let rest = if text.chars().nth(KEPT).is_some() { "…" } else { "" };
    format!("{}{rest}", kept.escape_debug())
}

fn table(table: &DeTable, whole: &Place) -> Value {
    // The parser sorts by key, but the order of the text decides which resource comes first.
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    let entry = |(key, value): (&Spanned<_>, &Spanned<DeValue>)| Entry {
        key: AsRef::<str>::as_ref(key.get_ref()).to_owned(),
        place: whole.at(key.span()),
        node: node(value, whole),
    };
    Value::Table(entries.into_iter().map(entry).collect())
}

fn node(value: &Spanned<DeValue>, whole: &Place) -> Node {
    let tree = match value.get_ref() {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(digits) => Value::Integer(match i64::from_str_radix(digits.as_str(), digits.radix()) {
            Ok(number) => number.to_string(),
            // Keeps the prefix, so that digits of another radix are not read as decimal.
            Err(_) => digits.to_string(),
        }),
        DeValue::Float(digits) => Value::Float(digits.as_str().to_owned()),
        DeValue::Boolean(truth) => Value::Truth(*truth),
        DeValue::Datetime(_) => Value::Other("a date"),
        DeValue::Array(items) => Value::List(items.iter().map(|item| node(item, whole)).collect()),
        DeValue::Table(below) => table(below, whole),
    };
    Node { place: whole.at(value.span()), value: tree }
}

/// Builds a tree from the values of a parser without places.
#[derive(Clone, Copy)]
struct Builder<'a>(&'a Place);

impl<'de> DeserializeSeed<'de> for Builder<'_> {
    type Value = Node;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        Ok(Node { place: self.0.clone(), value: deserializer.deserialize_any(self)? })
    }
}

impl<'de> Visitor<'de> for Builder<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Integer(value.to_string()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Integer(value.to_string()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Float(value.to_string()))
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
        while let Some(item) = list.next_element_seed(self)? {
            items.push(item);
        }
        Ok(Value::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut keys = std::collections::HashSet::new();
        let mut entries = Vec::new();
        while let Some(key) = map.next_key::<String>()? {
            if !keys.insert(key.clone()) {
                return Err(A::Error::custom(format!("the key '{}' appears twice", brief(&key))));
            }
            let node = map.next_value_seed(self)?;
            entries.push(Entry { key, place: self.0.clone(), node });
        }
        Ok(Value::Table(entries))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn toml(text: &str) -> Result<Node, Error> {
        Node::toml(&Place::whole_text("t", text))
    }

    fn json(text: &str) -> Result<Node, Error> {
        Node::json(&Place::whole_text("t", text))
    }

    #[test]
    fn both_syntaxes_keep_order_and_numbers() {
        let written = toml("z = 0.1\na = 0x10\n[m]\nd = 1_000\nb = -1.5e-3\n").expect("TOML");
        let same = json(r#"{"z": 0.1, "a": 16, "m": {"d": 1000, "b": -1.5e-3}}"#).expect("JSON");
        let flat = |node: &Node| -> Vec<(String, String)> {
            let all = node.entries().iter().chain(node.entries()[2].node.entries());
            all.map(|entry| (entry.key.clone(), entry.node.shown())).collect()
        };
        assert_eq!(flat(&written)[..4], flat(&same)[..4]);
        let shown: Vec<String> = flat(&written).into_iter().map(|(_, shown)| shown).collect();
        assert_eq!(shown, ["0.1", "16", "a table", "1000", "-1.5e-3"]);
        assert_eq!(written.plain().expect("TOML"), same.plain().expect("the same"));
    }

    #[test]
    fn numbers_without_bounds_are_kept_as_written() {
        let node = toml("a = nan\nb = -inf\nc = 99999999999999999999\nd = 1e999\n").expect("TOML");
        let shown: Vec<String> = node.entries().iter().map(|entry| entry.node.shown()).collect();
        assert_eq!(shown, ["nan", "-inf", "99999999999999999999", "1e999"]);
        let wrong = node.plain().expect_err("too large").to_string();
        assert!(wrong.starts_with("t: line 3, column 5: 99999999999999999999 is too large"), "{wrong}");
        assert!(json(r#"{"a": 1e999}"#).is_err());
        assert!(json(r#"{"a": 1, "a": 2}"#).unwrap_err().to_string().contains("'a' appears twice at line 1"));
        assert!(json(&"[".repeat(100_000)).is_err() && toml(&format!("a = {}", "[".repeat(100_000))).is_err());
    }
}
