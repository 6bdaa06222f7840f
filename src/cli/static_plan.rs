//! What plans without runs have in common: those with a table `[check]` or `[solve]`, read, and reported.

use std::path::{Path, PathBuf};
use std::time::Instant;

use serde::de::DeserializeOwned;

use super::{Context, run::provenance};
use crate::error::{Error, Result};
use crate::experiment::plan::{apply, explain};
use crate::experiment::study::Sources;
use crate::output::gallery::Drawn;
use crate::output::html::{self, Report};
use crate::output::page::inline;
use crate::output::picture;
use crate::output::table::write_whole;

/// What such a plan says of itself.
#[derive(Clone, Debug)]
pub struct About {
    /// The experiment's name: the folder under `results/`.
    pub name: String,
    /// The question it answers.
    pub question: Option<String>,
    /// The plan as text.
    pub text: String,
}

/// Whether a text has this table; what is no TOML has none.
pub fn has(text: &str, table: &str) -> bool {
    text.parse::<toml::Table>().is_ok_and(|plan| plan.contains_key(table))
}

/// Reads a plan of the keys `name`, `question` and one table; `set` are `key=value` changes made to it first, such as
/// `example`. `check` looks at the rest.
///
/// Errors: [`Error::PlanSyntax`] with line and column.
pub fn read<T: DeserializeOwned, C>(
    (path, text): (&Path, &str),
    (set, example): (&[String], &str),
    check: impl FnOnce(T) -> Result<C>,
    name_of: impl FnOnce(&T) -> (String, Option<String>),
) -> Result<(About, C)> {
    let syntax = |error: toml::de::Error| Error::PlanSyntax { path: path.to_owned(), message: explain(&error) };
    // Parsed from its own text first, so that errors have their line.
    let mut file: T = toml::from_str(text).map_err(syntax)?;
    let mut table: toml::Table = toml::from_str(text).map_err(syntax)?;
    if !set.is_empty() {
        set.iter().try_for_each(|change| apply(&mut table, change, example))?;
        file = table
            .clone()
            .try_into()
            .map_err(|error: toml::de::Error| Error::plan("--set", format!("'{}'", set.join(" ")), explain(&error)))?;
    }
    let (name, question) = name_of(&file);
    let located = |error| Sources::of(path, text).located(error);
    if name.is_empty() || name.contains(['/', '\\']) || name.starts_with('.') {
        let expected = "a name for the results' folder, without slashes";
        return Err(located(Error::plan("name", format!("'{name}'"), expected)));
    }
    let checked = check(file).map_err(located)?;
    Ok((About { name, question, text: table.to_string() }, checked))
}

impl About {
    /// Writes figures, the report and `run.json` to a folder; returns the report's file.
    pub fn report(
        &self,
        folder: &Path,
        drawn: &[Drawn],
        (context, threads, started): (&Context, usize, Instant),
    ) -> Result<PathBuf> {
        for one in drawn {
            picture::write_all(&folder.join("figures"), &one.name, &one.svg, &one.data)?;
        }
        let file = format!("{}.toml", self.name);
        let page = Report {
            title: self.name.clone(),
            question: self.question.clone(),
            figures: drawn.iter().map(inline).collect(),
            plan_toml: self.text.clone(),
            reproduce: vec![format!("# with the plan below as {file}"), format!("plimsoll run {file}")],
            provenance: vec![("version".to_owned(), env!("CARGO_PKG_VERSION").to_owned())],
            ..Report::default()
        };
        let report = folder.join("report.html");
        write_whole(&report, html::render(&page).as_bytes())?;
        let text = provenance(context, threads, started, serde_json::json!({}));
        write_whole(&folder.join("run.json"), text.as_bytes())?;
        let seconds = started.elapsed().as_secs_f64();
        context.say(&format!("figures in {} ({seconds:.1} s), report in {}", folder.display(), report.display()));
        Ok(report)
    }
}
