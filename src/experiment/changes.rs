//! Changes to a plan from the command line: `key=value`.

use super::study::{hinted, put_at};
use crate::error::{Error, Result};

/// Makes one `key=value` change, such as `example`; the value is read as TOML, or else as text.
pub fn apply(table: &mut toml::Table, change: &str, example: &str) -> Result<()> {
    let (key, value) = parse_change(change, example)?;
    put_at(table, &key, value, "--set")
}

/// The key and the value of a change, such as `example`.
pub fn parse_change(change: &str, example: &str) -> Result<(String, toml::Value)> {
    let wrong = |expected: &str| Error::plan("--set", format!("'{change}'"), expected.to_owned());
    let (path, value) = change.split_once('=').ok_or_else(|| wrong(&format!("key=value, such as {example}")))?;
    let value = match format!("value = {value}").parse::<toml::Table>() {
        Ok(mut parsed) => parsed.remove("value").ok_or_else(|| wrong("one value"))?,
        Err(_) => toml::Value::String(value.to_owned()),
    };
    Ok((path.trim().to_owned(), value))
}

/// The parser's message, with a suggestion where a key is misspelt.
pub fn explain(error: &toml::de::Error) -> String {
    hinted(&error.to_string())
}
