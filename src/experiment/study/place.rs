//! Where a key of a plan stands: paths of keys, and their lines and columns in TOML text.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::{Error, Result};

/// One step down into a table or an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// The value of a key.
    Key(String),
    /// An item of an array, from 0.
    At(usize),
}

/// Reads a path such as `cluster.group[0].count`; keys in quotes may contain dots.
pub fn steps(path: &str) -> Vec<Step> {
    let (mut steps, mut word, mut quoted) = (Vec::new(), String::new(), false);
    let push = |word: &mut String, steps: &mut Vec<Step>| {
        let word = std::mem::take(word).trim().to_owned();
        if !word.is_empty() {
            steps.push(word.strip_prefix('[').and_then(|n| n.parse().ok()).map_or(Step::Key(word), Step::At));
        }
    };
    for c in path.chars() {
        match c {
            '"' => quoted = !quoted,
            _ if quoted => word.push(c),
            '.' | ']' => push(&mut word, &mut steps),
            '[' => {
                push(&mut word, &mut steps);
                word.push(c);
            }
            _ => word.push(c),
        }
    }
    push(&mut word, &mut steps);
    steps
}

/// Sets the value at a path, making tables on the way where there are none. Errors: the step that is none, in words.
pub fn put(table: &mut toml::Table, steps: &[Step], value: toml::Value) -> std::result::Result<(), String> {
    let [Step::Key(first), rest @ ..] = steps else { return Err("a key, such as workload.load".to_owned()) };
    if rest.is_empty() {
        table.insert(first.clone(), value);
        return Ok(());
    }
    let mut at = table.entry(first.clone()).or_insert_with(|| toml::Value::Table(toml::Table::new()));
    for step in rest {
        at = match (step, at) {
            (Step::Key(key), toml::Value::Table(table)) => {
                table.entry(key.clone()).or_insert_with(|| toml::Value::Table(toml::Table::new()))
            }
            (Step::At(index), toml::Value::Array(items)) => {
                let many = items.len();
                items.get_mut(*index).ok_or_else(|| format!("an index below {many}, the number of items there"))?
            }
            (Step::Key(key), _) => return Err(format!("a path of tables; '{key}' is below something else")),
            (Step::At(_), _) => return Err("an index only behind an array".to_owned()),
        };
    }
    *at = value;
    Ok(())
}

/// Takes a key away, written as one quoted key or as a path of tables; what is not there stays away.
pub fn take(table: &mut toml::Table, path: &[Step]) {
    let words: Vec<&str> =
        path.iter().filter_map(|step| if let Step::Key(key) = step { Some(&**key) } else { None }).collect();
    let quoted: Vec<String> = table.keys().filter(|key| steps(key) == path).cloned().collect();
    quoted.iter().for_each(|key| {
        table.remove(key);
    });
    if let [first, rest @ ..] = &words[..]
        && let Some(toml::Value::Table(below)) = table.get_mut(*first)
        && !rest.is_empty()
    {
        take(below, &path[1..]);
        if below.is_empty() {
            table.remove(*first);
        }
    }
}

/// A place in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spot {
    /// How many steps of the path were found.
    pub depth: usize,
    /// The key there, if the last step is one.
    pub key: Option<Range<usize>>,
    /// The value there.
    pub value: Range<usize>,
}

fn entry<'t, 'i>(table: &'t DeTable<'i>, key: &str) -> Option<(Range<usize>, &'t Spanned<DeValue<'i>>)> {
    table.iter().find(|(name, _)| name.get_ref() == key).map(|(name, value)| (name.span(), value))
}

/// Finds as much of a path as the text has. `None` if not even its first step is there, or the text is not TOML.
pub fn find(text: &str, path: &[Step]) -> Option<Spot> {
    let document = DeTable::parse(text).ok()?;
    found(document.get_ref(), path).map(|(spot, _)| spot)
}

/// The keys of the table at a path, and where the value of each begins; none if there is no such table.
pub fn keys(text: &str, path: &[Step]) -> Vec<(String, usize)> {
    let Ok(document) = DeTable::parse(text) else { return Vec::new() };
    match found(document.get_ref(), path) {
        Some((spot, DeValue::Table(table))) if spot.depth == path.len() => {
            table.iter().map(|(name, value)| (name.get_ref().to_string(), value.span().start)).collect()
        }
        _ => Vec::new(),
    }
}

/// As much of a path as a table has.
fn found<'t, 'i>(table: &'t DeTable<'i>, path: &[Step]) -> Option<(Spot, &'t DeValue<'i>)> {
    let Step::Key(first) = path.first()? else { return None };
    let (key, mut value) = entry(table, first)?;
    let mut spot = Spot { depth: 1, key: Some(key), value: value.span() };
    for step in &path[1..] {
        let next = match (step, value.get_ref()) {
            (Step::Key(key), DeValue::Table(table)) => entry(table, key).map(|(key, value)| (Some(key), value)),
            (Step::At(index), DeValue::Array(items)) => items.get(*index).map(|value| (None, value)),
            _ => None,
        };
        let Some((key, below)) = next else { break };
        (spot, value) = (Spot { depth: spot.depth + 1, key, value: below.span() }, below);
    }
    Some((spot, value.get_ref()))
}

/// Calls `visit` with the path, the key's place and the value's place of everything in a table.
fn walk(table: &DeTable, path: &mut Vec<Step>, visit: &mut dyn FnMut(&[Step], Option<Range<usize>>, Range<usize>)) {
    fn below(
        value: &DeValue,
        path: &mut Vec<Step>,
        visit: &mut dyn FnMut(&[Step], Option<Range<usize>>, Range<usize>),
    ) {
        match value {
            DeValue::Table(table) => walk(table, path, visit),
            DeValue::Array(items) => {
                for (at, item) in items.iter().enumerate() {
                    path.push(Step::At(at));
                    visit(path, None, item.span());
                    below(item.get_ref(), path, visit);
                    path.pop();
                }
            }
            _ => {}
        }
    }
    for (name, value) in table {
        path.push(Step::Key(name.get_ref().to_string()));
        visit(path, Some(name.span()), value.span());
        below(value.get_ref(), path, visit);
        path.pop();
    }
}

/// The longest path whose key or value covers an offset of the text, and whether it is the key that does.
pub fn path_at(text: &str, offset: usize) -> Option<(Vec<Step>, bool)> {
    let document = DeTable::parse(text).ok()?;
    let mut found: Option<(Vec<Step>, bool)> = None;
    walk(document.get_ref(), &mut Vec::new(), &mut |path, key, value| {
        let on_key = key.is_some_and(|key| key.contains(&offset));
        if (on_key || value.contains(&offset)) && found.as_ref().is_none_or(|(longest, _)| path.len() > longest.len()) {
            found = Some((path.to_vec(), on_key));
        }
    });
    found
}

/// Where a key of this name stands below a path, if there is one such place.
pub fn only_key(text: &str, below: &[Step], name: &str) -> Option<Range<usize>> {
    only(text, below, |path, key, _| key.filter(|_| path.last() == Some(&Step::Key(name.to_owned()))))
}

/// Where a value that is written like this stands below a path, if there is one such place.
pub fn only_value(text: &str, below: &[Step], written: &str) -> Option<Range<usize>> {
    only(text, below, |_, _, value| Some(value).filter(|value| text.get(value.clone()) == Some(written)))
}

/// The place that `find` finds below a path, if there is exactly one.
fn only(
    text: &str,
    below: &[Step],
    find: impl Fn(&[Step], Option<Range<usize>>, Range<usize>) -> Option<Range<usize>>,
) -> Option<Range<usize>> {
    let document = DeTable::parse(text).ok()?;
    let mut found = Vec::new();
    walk(document.get_ref(), &mut Vec::new(), &mut |path, key, value| {
        if path.starts_with(below) {
            found.extend(find(path, key, value));
        }
    });
    if found.len() == 1 { found.pop() } else { None }
}

/// The last place at which a character begins, not behind `at`.
fn boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0)
}

/// A message about a place: with its line and column (both from 1), and the line itself with marks below.
pub fn marked(path: &std::path::Path, text: &str, span: &Range<usize>, message: &str) -> Error {
    let start = boundary(text, span.start);
    let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
    let line = text[line_start..].lines().next().unwrap_or_default();
    let number = text[..start].matches('\n').count() + 1;
    let column = text[line_start..start].chars().count() + 1;
    // A place behind the line, at the carriage return that ends it, has one mark.
    let end = boundary(text, span.end.clamp(start, start.max(line_start + line.len())));
    let marks = "^".repeat(text[start..end].chars().count().clamp(1, 60));
    let shown: String = line.chars().take(160).collect();
    let gutter = number.to_string();
    let blank = " ".repeat(gutter.len());
    let pad = " ".repeat(column - 1);
    let snippet =
        if column <= 160 { format!("\n{blank} |\n{gutter} | {shown}\n{blank} | {pad}{marks}") } else { String::new() };
    Error::PlanSyntax { path: path.to_owned(), message: format!("line {number}, column {column}: {message}{snippet}") }
}

/// Puts a value into a table, for a path as text. Errors: [`Error::Plan`] at `name`.
pub fn put_at(table: &mut toml::Table, path: &str, value: toml::Value, name: &str) -> Result<()> {
    put(table, &steps(path), value).map_err(|expected| Error::plan(name, format!("'{path}'"), expected))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "a = 1\n[b]\n\"c.d\" = [10, 20]\n[[b.e]]\nf = \"ä\"\n[[b.e]]\ng = { h = 2 }\n";

    #[test]
    fn paths_read_and_stand_somewhere() {
        let key = |key: &str| Step::Key(key.to_owned());
        assert_eq!(steps("b.e[1].g.h"), [key("b"), key("e"), Step::At(1), key("g"), key("h")]);
        assert_eq!(steps("sweep.\"c.d\"[0]"), [key("sweep"), key("c.d"), Step::At(0)]);
        let at = |path: &str| find(TEXT, &steps(path)).map(|spot| (spot.depth, &TEXT[spot.value]));
        assert_eq!(at("b.\"c.d\"[1]"), Some((3, "20")));
        assert_eq!(at("b.e[1].g.h"), Some((5, "2")));
        assert_eq!(at("b.e[1].nothing").map(|(depth, _)| depth), Some(3));
        assert_eq!(at("nothing"), None);
        let offset = TEXT.find("h = 2").expect("it is there");
        assert_eq!(path_at(TEXT, offset), Some((steps("b.e[1].g.h"), true)));
        assert_eq!(path_at(TEXT, offset + 4), Some((steps("b.e[1].g.h"), false)));
        assert_eq!(only_key(TEXT, &steps("b"), "h").map(|span| span.start), Some(offset));
        assert_eq!(only_key(TEXT, &steps("a"), "h"), None);
        assert_eq!(only_value(TEXT, &steps("b"), "\"ä\"").map(|span| &TEXT[span]), Some("\"ä\""));
        assert_eq!(only_value(TEXT, &steps("b"), "1"), None);
    }

    #[test]
    fn values_are_put_where_paths_lead() {
        let mut table: toml::Table = TEXT.parse().expect("TOML");
        put(&mut table, &steps("b.e[0].f"), 3.into()).expect("a path");
        put(&mut table, &steps("new.table.x"), 4.into()).expect("a path");
        assert_eq!(table["b"]["e"][0]["f"].as_integer(), Some(3));
        assert_eq!(table["new"]["table"]["x"].as_integer(), Some(4));
        assert!(put(&mut table, &steps("b.e[7].f"), 1.into()).is_err_and(|why| why.contains("below 2")));
        assert!(put(&mut table, &steps("a.b"), 1.into()).is_err_and(|why| why.contains("tables")));
        assert!(put(&mut table, &[], 1.into()).is_err());
    }

    #[test]
    fn a_place_is_shown_with_its_line() {
        let spot = find(TEXT, &steps("b.e[0].f")).expect("it is there");
        let said = marked(std::path::Path::new("p.toml"), TEXT, &spot.value, "wrong").to_string();
        assert_eq!(said, "p.toml: line 5, column 5: wrong\n  |\n5 | f = \"ä\"\n  |     ^^^");
    }
}
