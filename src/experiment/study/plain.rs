//! Plans without runs, those with a table `[failover]`, `[check]` or `[solve]`: read from their text, with errors at
//! their place and what they say of figures taken out.

use std::path::Path;

use serde::de::DeserializeOwned;

use super::place::{marked, put_at, steps};
use super::source::{Sources, hinted};
use crate::error::{Error, Result};
use crate::experiment::changes::parse_change;
use crate::output::paper::Paper;
use crate::output::requests::{KEYS, Requests, Scope};

/// Such a plan, as it was read.
pub struct Plain {
    /// The plan as text, put together: what every file of the results carries.
    pub text: String,
    /// The paper that figures are drawn on: `[figures]`.
    pub paper: Paper,
    /// All but that.
    table: toml::Table,
    sources: Sources,
}

impl Plain {
    /// Reads a plan; `set` are `key=value` changes made to it first, such as `example`.
    ///
    /// Errors: [`Error::PlanSyntax`] with line and column, also for `[[figure]]`: such plans draw their own.
    pub fn read(path: &Path, text: &str, set: &[String], example: &str) -> Result<Plain> {
        let mut sources = Sources::of(path, text);
        let mut table: toml::Table =
            toml::from_str(text).map_err(|error| marked(path, text, &error.span().unwrap_or(0..0), error.message()))?;
        for change in set {
            let (key, value) = parse_change(change, example)?;
            sources.changed(change, &key, &value);
            put_at(&mut table, &key, value, "--set")?;
        }
        if table.contains_key(KEYS[0]) {
            let problem = "figure: this kind of plan has its own figures; [figures] says how wide they are";
            return Err(sources.at_key(&steps(KEYS[0]), problem));
        }
        let figures = Requests::take(&mut table, &Scope::default()).map_err(|error| sources.located(error))?;
        let text = format!("{}{}", written(&table)?, figures.appendix());
        Ok(Plain { text, paper: figures.paper, table, sources })
    }

    /// Its contents. Errors: [`Error::PlanSyntax`] with line and column.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T> {
        let text = written(&self.table)?;
        toml::from_str(&text).map_err(|error| self.sources.parsed(&text, &error, hinted(error.message())))
    }

    /// Gives an error about a key its line and column.
    pub fn located(&self, error: Error) -> Error {
        self.sources.located(error)
    }
}

fn written(table: &toml::Table) -> Result<String> {
    toml::to_string(table).map_err(|error| Error::plan("plan", "its text", error.to_string()))
}
