//! Parses YAML into trees with locations. A text may have several documents; aliases are expanded.
//!
//! A plain scalar is null, a truth value, a number (which keeps the digits of the text) or text, according to the core schema of YAML 1.2;
//! only decimal numbers are numbers. A quoted scalar is text. Tags are ignored, and merge keys (`<<`) are refused.

use std::collections::{HashMap, HashSet};

use saphyr_parser::{Event, Marker, Parser, ScalarStyle};

use plimsoll_base::error::Result;
use plimsoll_base::tree::{Entry, Node, Place, Value, brief};

/// The maximum nesting of tables and lists.
const MOST_DEEP: usize = 80;

/// The maximum number of values of a text after the expansion of all aliases.
const MOST_VALUES: usize = 2_000_000;

/// Parses all documents of a text; `whole` is the location of the whole text. Errors: the parser's message with its location; too many
/// values after the expansion of aliases; merge keys; too deep nesting.
pub fn read(whole: &Place) -> Result<Vec<Node>> {
    let text = whole.text();
    let bytes = Bytes::new(text);
    let mut builder = Builder { whole, documents: Vec::new(), open: Vec::new(), anchors: HashMap::new(), values: 0 };
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| {
            let at = bytes.at(error.marker());
            whole.at(at..at).wrong("", error.info())
        })?;
        let start = bytes.at(&span.start);
        let place = whole.at(start..bytes.at(&span.end).max(start));
        builder.handle(event, place)?;
    }
    Ok(builder.documents)
}

/// The byte offsets of the characters of a text.
struct Bytes {
    len: usize,
    /// `None` if every character is one byte.
    starts: Option<Vec<usize>>,
}

impl Bytes {
    fn new(text: &str) -> Bytes {
        let starts = (!text.is_ascii()).then(|| text.char_indices().map(|(at, _)| at).collect());
        Bytes { len: text.len(), starts }
    }

    fn at(&self, marker: &Marker) -> usize {
        let at = marker.index();
        self.starts.as_ref().map_or(at, |starts| starts.get(at).copied().unwrap_or(self.len)).min(self.len)
    }
}

/// A table or a list that is not complete yet.
struct Open {
    place: Place,
    anchor: usize,
    /// The number of values in it.
    values: usize,
    content: Content,
}

enum Content {
    List(Vec<Node>),
    Table { entries: Vec<Entry>, keys: HashSet<String>, key: Option<(String, Place)> },
}

struct Builder<'p> {
    whole: &'p Place,
    documents: Vec<Node>,
    open: Vec<Open>,
    /// The node of each anchor, with the number of values in the node.
    anchors: HashMap<usize, (Node, usize)>,
    values: usize,
}

impl Builder<'_> {
    fn handle(&mut self, event: Event, place: Place) -> Result<()> {
        match event {
            Event::Scalar(text, style, anchor, _) => {
                let value = match style {
                    ScalarStyle::Plain => plain(&text),
                    _ => Value::Text(text.into_owned()),
                };
                self.push(Node { place, value }, anchor, 1)
            }
            Event::Alias(anchor) => match self.anchors.get(&anchor) {
                Some((node, values)) => {
                    let (node, values) = (node.clone(), *values);
                    self.push(Node { place, ..node }, 0, values)
                }
                None => Err(place.wrong("", "an alias within its own value is not read")),
            },
            Event::SequenceStart(anchor, _) => self.begin(place, anchor, Content::List(Vec::new())),
            Event::MappingStart(anchor, _) => {
                self.begin(place, anchor, Content::Table { entries: Vec::new(), keys: HashSet::new(), key: None })
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let Some(Open { place, anchor, values, content }) = self.open.pop() else { return Ok(()) };
                let value = match content {
                    Content::List(items) => Value::List(items),
                    Content::Table { entries, .. } => Value::Table(entries),
                };
                self.push(Node { place, value }, anchor, values + 1)
            }
            Event::DocumentStart(_) => {
                self.anchors.clear();
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn begin(&mut self, place: Place, anchor: usize, content: Content) -> Result<()> {
        if self.open.len() == MOST_DEEP {
            let problem = format!("nested too deep; expected at most {MOST_DEEP} nested tables");
            return Err(place.wrong("", problem));
        }
        self.open.push(Open { place, anchor, values: 0, content });
        Ok(())
    }

    /// Adds a complete value with its number of nested values.
    fn push(&mut self, node: Node, anchor: usize, values: usize) -> Result<()> {
        self.values += values;
        if self.values > MOST_VALUES {
            let problem = format!("more than {MOST_VALUES} values, with aliases written out, are not read");
            return Err(self.whole.wrong("", problem));
        }
        if anchor > 0 {
            self.anchors.insert(anchor, (node.clone(), values));
        }
        let Some(Open { values: inside, content, .. }) = self.open.last_mut() else {
            self.documents.push(node);
            return Ok(());
        };
        *inside += values;
        match content {
            Content::List(items) => items.push(node),
            Content::Table { entries, keys, key } => match key.take() {
                Some((key, place)) => entries.push(Entry { key, place, node }),
                None => *key = Some(key_of(&node, keys)?),
            },
        }
        Ok(())
    }
}

/// Converts a value to a table key and adds it to `keys`, the previous keys of the table. Errors: the key is invalid or not new.
fn key_of(node: &Node, keys: &mut HashSet<String>) -> Result<(String, Place)> {
    let text = match &node.value {
        Value::Text(text) | Value::Integer(text) | Value::Float(text) => text.clone(),
        Value::Truth(truth) => truth.to_string(),
        _ => return Err(node.place.wrong("", format!("{} is not a key; expected text", node.shown()))),
    };
    if text == "<<" {
        return Err(node.place.wrong("", "merge keys are not read; expected the keys themselves"));
    }
    if !keys.insert(text.clone()) {
        return Err(node.place.wrong("", format!("the key '{}' appears twice", brief(&text))));
    }
    Ok((text, node.place.clone()))
}

/// Parses an unquoted scalar.
fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Other("null"),
        "true" | "True" | "TRUE" => Value::Truth(true),
        "false" | "False" | "FALSE" => Value::Truth(false),
        _ => {
            let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
            if digits(unsigned) {
                return Value::Integer(text.to_owned());
            }
            let (mantissa, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
            let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
            let is_float = (digits(whole) || digits(fraction))
                && (whole.is_empty() || digits(whole))
                && (fraction.is_empty() || digits(fraction))
                && digits(exponent.strip_prefix(['+', '-']).unwrap_or(exponent));
            if is_float { Value::Float(text.to_owned()) } else { Value::Text(text.to_owned()) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<Node>> {
        super::read(&Place::whole_text("t.yaml", text))
    }

    fn wrong(text: &str) -> String {
        read(text).expect_err(text).to_string().lines().next().expect("a line").to_owned()
    }

    #[test]
    fn scalars_keep_their_digits() {
        let text = "a: 0.10\nb: 1e3\nc: \"3\"\nd: true\ne:\nf: 500m\ng: [1, -2, .5, +7, 1., '']\nh: 0x10\n";
        let node = read(text).expect("YAML").remove(0);
        let shown: Vec<String> = node.entries().iter().map(|entry| entry.node.shown()).collect();
        assert_eq!(shown, ["0.10", "1e3", "'3'", "true", "null", "'500m'", "a list", "'0x10'"]);
        let list = node.entries()[6].node.list().expect("a list");
        let shown: Vec<String> = list.iter().map(Node::shown).collect();
        assert_eq!(shown, ["1", "-2", ".5", "+7", "1.", "''"]);
    }

    #[test]
    fn places_are_those_of_the_text() {
        for text in ["# ü\nx:\n  - é: ä\n    b: wrong\n", "# ü\r\nx:\r\n  - é: ä\r\n    b: wrong\r\n"] {
            let node = read(text).expect("YAML").remove(0);
            let item = &node.entries()[0].node.list().expect("a list")[0];
            let said = item.entries()[1].node.place.wrong("b", "no").to_string();
            assert!(said.starts_with("t.yaml: line 4, column 8: b: no\n"), "{said}");
            assert!(said.ends_with("^^^^^") && !said.ends_with("^^^^^^"), "{said}");
        }
    }

    #[test]
    fn documents_and_aliases_are_read() {
        let all = read("a: &x {b: 1}\nc: *x\n---\n# nothing\n---\n- *y\n".trim_end_matches("- *y\n")).expect("YAML");
        assert_eq!(all[0].entries()[1].node.entries()[0].node.shown(), "1");
        assert_eq!(all.len(), 3);
        assert!(read("").expect("nothing").is_empty());
    }

    #[test]
    fn wrong_texts_have_their_places() {
        for (text, said) in [
            ("a: 1\nb: [1\n", "t.yaml: line 3"),
            ("a: 1\na: 2\n", "t.yaml: line 2, column 1: the key 'a' appears twice"),
            ("a: 1\n<<: {b: 1}\n", "t.yaml: line 2, column 1: merge keys are not read"),
            ("? [1]\n: 2\n", "t.yaml: line 1"),
            ("a: *x\n", "t.yaml: line 1"),
        ] {
            assert!(wrong(text).starts_with(said), "{text}: {}", wrong(text));
        }
        for deep in ["[".repeat(100_000), "- ".repeat(100_000), "{a: ".repeat(100_000)] {
            let said = wrong(&deep);
            assert!(said.contains("nested too deep") || said.contains("recursion limit exceeded"), "{said}");
        }
        let mut bomb = "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n".to_owned();
        for at in 1..12 {
            let before = format!("*a{}, ", at - 1).repeat(9);
            bomb += &format!("a{at}: &a{at} [{before}1]\n");
        }
        assert!(wrong(&bomb).contains("with aliases written out"), "{}", wrong(&bomb));
    }
}
