//! Changes to a plan from the command line: `key=value`.

use plimsoll_base::error::{Error, Result};
use plimsoll_base::tree::{Node, Place, Value, steps};

/// Applies one `key=value` change, such as `example`. The value is parsed as TOML, or used as text if it is not valid TOML. Errors about
/// the changed value name the option.
pub fn apply(tree: &mut Node, change: &str, example: &str) -> Result<()> {
    let (key, value) = parse_change(change, example)?;
    put_at(tree, &key, value)
}

/// Inserts the value of a change at its key. Errors: [`Error::Plan`] if the key does not fit the tree.
pub fn put_at(tree: &mut Node, key: &str, value: Node) -> Result<()> {
    tree.insert_at(&steps(key), value).map_err(|expected| Error::plan("--set", format!("'{key}'"), expected))
}

/// Splits a change, such as `example`, into its key and its value.
pub fn parse_change(change: &str, example: &str) -> Result<(String, Node)> {
    let wrong = |expected: &str| Error::plan("--set", format!("'{change}'"), expected.to_owned());
    let (path, value) = change.split_once('=').ok_or_else(|| wrong(&format!("key=value, such as {example}")))?;
    let value = match Node::toml(&Place::whole_text("--set", format!("value = {value}"))) {
        Ok(mut parsed) => parsed.take_entry("value").ok_or_else(|| wrong("one value"))?.node,
        Err(_) => Node { value: Value::Text(value.to_owned()), ..Node::default() },
    };
    Ok((path.trim().to_owned(), value.at(&Place::whole_text(format!("--set {change}"), ""))))
}
