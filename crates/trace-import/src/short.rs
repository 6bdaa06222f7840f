//! Mappings on the command line: `--map FILE.toml` and `--map job=job_id,submit=submit_time`.

use std::path::Path;

use plimsoll_base::error::{Error, Result};
use plimsoll_base::rows::read_text;
use plimsoll_base::tree::{Node, Place, Value, steps};

use crate::mapping::Mapping;
use crate::shipped::Shipped;

/// Splits `a=1,b=max(c, d)` at the commas before a key: outside brackets and quotes, and followed by a name and `=`.
fn split_changes(text: &str) -> Vec<&str> {
    let (mut depth, mut quote, mut start, mut parts) = (0i32, None, 0, Vec::new());
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"' | '`') => quote = Some(c),
            (None, '(' | '[') => depth += 1,
            (None, ')' | ']') => depth -= 1,
            (None, ',') if depth <= 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

/// Returns whether a value of `--map` is a short mapping and not the name of a file.
fn is_short(given: &str) -> bool {
    let key = given.split('=').next().unwrap_or_default().trim();
    given.contains('=') && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.".contains(&byte))
}

/// Reads the mapping of the command line: a shipped mapping or the file of a mapping, with changes such as `user=vc`.
///
/// Errors: [`Error::Io`], [`Error::Placed`], [`Error::Plan`] for a change of another form.
pub fn read_mapping(shipped: Option<&Shipped>, given: &[String]) -> Result<Mapping> {
    let (changes, files): (Vec<&String>, Vec<&String>) = given.iter().partition(|given| is_short(given));
    let (name, mut tree) = match (shipped, files[..].first()) {
        (Some(shipped), None) => (shipped.name, Node::toml(&shipped.place())?),
        (None, Some(file)) => {
            let place = Place::whole_text(file.as_str(), read_text(Path::new(file))?);
            // Reports a missing version and other errors of the file on its own.
            let tree = Node::toml(&place)?;
            if tree.get("mapping").is_none() {
                return Mapping::parse(crate::OWN, &place);
            }
            (crate::OWN, tree)
        }
        (None, None) => (crate::OWN, Node::default()),
        (Some(_), Some(file)) => {
            let expected = "changes such as user=vc beside --from; a file of a mapping replaces --from";
            return Err(Error::plan("--map", format!("'{file}'"), expected));
        }
    };
    if files.len() > 1 {
        return Err(Error::plan("--map", format!("'{}'", files[1]), "one file of a mapping"));
    }
    for change in changes.into_iter().flat_map(|change| split_changes(change)) {
        apply(&mut tree, change)?;
    }
    Mapping::from_tree(name, &tree)
}

/// Returns a shipped mapping with changes. Errors: as [`read_mapping`].
pub fn with_changes(shipped: &Shipped, changes: &[String]) -> Result<Mapping> {
    read_mapping(Some(shipped), changes)
}

/// The keys of a mapping that a change may name with a point, such as `time.zone`.
const TABLES: [&str; 5] = ["time", "input", "missing", "let", "attempts"];

/// Returns an item of a list without blanks and quotes around it.
fn unquoted(item: &str) -> &str {
    let item = item.trim();
    let inner = |quote: char| item.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
    inner('"').or_else(|| inner('\'')).unwrap_or(item)
}

fn apply(tree: &mut Node, change: &str) -> Result<()> {
    let wrong = |expected: &str| Error::plan("--map", format!("'{}'", change.trim()), expected);
    let (key, value) = change.split_once('=').ok_or_else(|| wrong("COLUMN=EXPRESSION, such as submit=submit_time"))?;
    let (key, value) = (key.trim(), value.trim());
    if key.is_empty() || value.is_empty() {
        return Err(wrong("COLUMN=EXPRESSION, such as submit=submit_time"));
    }
    let place = Place::whole_text(format!("--map {}", change.trim()), "");
    let (table, path) = match key.split_once('.') {
        Some((table, rest)) if TABLES.contains(&table) => (table, vec![table, rest]),
        Some(_) => return Err(wrong(&format!("a column of a trace, or a key such as {}.KEY", TABLES.join(".KEY, ")))),
        None if key == "resources" => ("resources", vec!["resources"]),
        None if key == "keep" => ("keep", vec!["keep", value]),
        None => ("trace", vec!["trace", key]),
    };
    let value = match (table, value) {
        ("keep", _) => Value::Text(format!("not {value}")),
        ("input", "true" | "false") => Value::Truth(value == "true"),
        ("input" | "resources", _) if value.starts_with('[') => {
            let items = value.strip_prefix('[').and_then(|items| items.strip_suffix(']'));
            let items = items.ok_or_else(|| wrong("a list such as [a,b]"))?;
            let place = place.clone();
            let node = |item: &str| Node { place: place.clone(), value: Value::Text(unquoted(item).to_owned()) };
            Value::List(split_changes(items).into_iter().filter(|item| !item.trim().is_empty()).map(node).collect())
        }
        _ => Value::Text(value.to_owned()),
    };
    // A key in quotes may contain points.
    let mut path: Vec<_> = path.into_iter().map(|key| plimsoll_base::tree::PathStep::Key(key.to_owned())).collect();
    if path.is_empty() {
        path = steps(key);
    }
    let node = Node { place: place.clone(), value };
    tree.insert_at(&path, node.at(&place)).map_err(|expected| wrong(&expected))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_split_at_commas_between_keys() {
        assert_eq!(split_changes("a=1,b=max(c, d),c='x,y'"), ["a=1", "b=max(c, d)", "c='x,y'"]);
        assert!(is_short("job=job_id") && !is_short("a/b.toml") && !is_short("dir/x=1.toml"));
    }

    #[test]
    fn a_short_mapping_has_the_columns_of_a_trace() {
        let given = [
            "job=id,user=vc,submit=t,duration=end - start,cpu=max(1, 2)".to_owned(),
            "time.zone=Europe/Berlin".to_owned(),
        ];
        let mapping = read_mapping(None, &given).expect("a mapping");
        let names: Vec<&str> = mapping.outputs.iter().map(|output| output.name.as_str()).collect();
        assert_eq!(names, ["job", "user", "submit", "duration", "cpu"]);
        assert_eq!(mapping.clock.zone_name.as_deref(), Some("Europe/Berlin"));
        let given = [
            "input.columns=[id, 'a,b', \"t\"],input.missing=[-1,n/a],input.header=false,resources=[npu]".to_owned(),
            "job=id,submit=t,duration=1,npu=1".to_owned(),
        ];
        let mapping = read_mapping(None, &given).expect("a mapping");
        assert_eq!(mapping.tables[0].columns, ["id", "a,b", "t"]);
        assert_eq!(mapping.tables[0].missing, ["-1", "n/a"]);
        for (given, want) in [
            ("submit=t,duration=1,cpu=1,input.columns=[a", "a list such as [a,b]"),
            ("submit=t", "'duration' is missing"),
            ("submti=t,duration=1,cpu=1", "did you mean 'submit'?"),
            ("submit=,duration=1", "COLUMN=EXPRESSION"),
            ("submit=t +,duration=1,cpu=1", "character 4: expected a column"),
            ("trace.x=1", "a column of a trace, or a key such as time.KEY"),
            ("submit=t,duration=1,memory=1", "'memory' has no unit"),
            ("submit=t,duration=1,cpu=1,time.zone=Mars", "'Mars' is no time zone"),
            ("submit=t,submit_ms=t,duration=1,cpu=1", "'submit_ms' is already given by 'submit'"),
        ] {
            let error = read_mapping(None, &[given.to_owned()]).expect_err(given).to_string();
            assert!(error.contains(want), "{given}: {error}");
        }
    }
}
