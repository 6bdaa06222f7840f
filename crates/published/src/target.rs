//! Targets: a paper with its plans, inputs and numbers, in a folder with a file `target.toml`.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::claims::{self, ClaimRow};
use super::numbers::{self, NumberRow};
use plimsoll_base::error::{Error, Result};
use plimsoll_base::rows::read_text;

/// An input file that is not part of this repository.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TargetInput {
    /// The path below the data folder of the user.
    pub path: String,
    /// The place where the file comes from.
    #[serde(default)]
    pub source: String,
    /// The size in bytes.
    pub size: Option<u64>,
    /// The BLAKE3 digest in hexadecimal.
    pub blake3: Option<String>,
    /// The id as a git blob.
    pub git_blob: Option<String>,
}

/// A parameter that the paper does not give.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnstatedParameter {
    /// The parameter.
    pub name: String,
    /// The chosen value.
    pub chosen: String,
    /// The effect of its plausible range on the results.
    pub effect: String,
}

/// The reason why numbers are outside of their tolerance.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MissReason {
    /// The ids of the numbers; `*` at the end matches any text.
    pub numbers: Vec<String>,
    /// The reason in a sentence.
    pub text: String,
    /// The rows, by id, that show the effect of the reason: the same number with one key changed.
    #[serde(default)]
    pub shown_by: Vec<String>,
}

/// A plan or an instance of a target.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanEntry {
    /// Its name in the column `plan` of the numbers.
    pub name: String,
    /// The file beside `target.toml`, if the plan has one.
    pub file: Option<String>,
    /// The rule that makes the inputs of the plan from the data folder.
    #[serde(default)]
    pub prepare: String,
    /// The model that executes it: `plan` (the simulator), `solve` (static) or a model of this crate.
    #[serde(default = "simulator")]
    pub model: String,
}

fn simulator() -> String {
    "plan".to_owned()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TargetFile {
    title: String,
    source: String,
    #[serde(default)]
    note: String,
    #[serde(default)]
    plan: Vec<PlanEntry>,
    #[serde(default)]
    input: Vec<TargetInput>,
    #[serde(default)]
    parameter: Vec<UnstatedParameter>,
    #[serde(default)]
    reason: Vec<MissReason>,
}

/// A paper with reproduced numbers.
#[derive(Clone, Debug)]
pub struct PublishedTarget {
    /// The name of the folder.
    pub name: String,
    /// The folder.
    pub folder: PathBuf,
    /// The title.
    pub title: String,
    /// The publication and its repository.
    pub source: String,
    /// A remark for the page.
    pub note: String,
    /// The plans.
    pub plans: Vec<PlanEntry>,
    /// The declared input files. A plan may use further files; their digests are not checked.
    pub inputs: Vec<TargetInput>,
    /// The parameters that the paper does not give.
    pub parameters: Vec<UnstatedParameter>,
    /// The reasons for numbers outside of their tolerance.
    pub reasons: Vec<MissReason>,
    /// The numbers.
    pub numbers: Vec<NumberRow>,
    /// The claims.
    pub claims: Vec<ClaimRow>,
}

impl PublishedTarget {
    /// Reads a target. Errors: a file is missing or invalid, or a row names an unknown plan.
    pub fn read(folder: &Path) -> Result<PublishedTarget> {
        let path = folder.join("target.toml");
        let text = read_text(&path)?;
        let file: TargetFile = toml::from_str(&text).map_err(|error| {
            let line = error.span().map_or(0, |span| text[..span.start].lines().count().max(1) as u64);
            Error::trace(&path, line, "", error.message())
        })?;
        let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let table = folder.join("numbers.csv");
        let numbers = numbers::read(&table)?;
        let plans: Vec<&str> = file.plan.iter().map(|plan| plan.name.as_str()).collect();
        if let Some(row) = numbers.iter().find(|row| !row.plan.is_empty() && !plans.contains(&row.plan.as_str())) {
            let hint = plimsoll_base::error::did_you_mean(&row.plan, plans.iter().copied());
            let problem = format!("'{}': '{}' is no plan of {}{hint}", row.id, row.plan, path.display());
            return Err(Error::trace(&table, 0, "plan", problem));
        }
        let table = folder.join("claims.csv");
        let claims = claims::read(&table)?;
        if let Some(row) = claims.iter().find(|row| !row.plan.is_empty() && !plans.contains(&row.plan.as_str())) {
            let hint = plimsoll_base::error::did_you_mean(&row.plan, plans.iter().copied());
            let problem = format!("'{}': '{}' is no plan of {}{hint}", row.id, row.plan, path.display());
            return Err(Error::trace(&table, 0, "plan", problem));
        }
        let TargetFile { title, source, note, plan, input, parameter, reason } = file;
        let folder = folder.to_owned();
        Ok(PublishedTarget {
            name,
            folder,
            title,
            source,
            note,
            plans: plan,
            inputs: input,
            parameters: parameter,
            reasons: reason,
            numbers,
            claims,
        })
    }

    /// Returns the plan with this name.
    pub fn plan(&self, name: &str) -> Option<&PlanEntry> {
        self.plans.iter().find(|plan| plan.name == name)
    }

    /// Returns the reason for a number outside of its tolerance.
    pub fn reason(&self, id: &str) -> Option<&MissReason> {
        let covers = |pattern: &String| match pattern.strip_suffix('*') {
            Some(start) => id.starts_with(start),
            None => pattern == id,
        };
        self.reasons.iter().find(|reason| reason.numbers.iter().any(covers))
    }
}

/// Reads the targets of a folder, in alphabetical order; only those with these names, if there are any. Errors: those of
/// [`PublishedTarget::read`], and a name without a target.
pub fn targets(folder: &Path, names: &[String]) -> Result<Vec<PublishedTarget>> {
    let entries = std::fs::read_dir(folder).map_err(|error| Error::io(folder, error))?;
    let mut known: Vec<String> = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|error| Error::io(folder, error))?;
        if entry.path().join("target.toml").is_file() {
            known.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    known.sort();
    if let Some(unknown) = names.iter().find(|name| !known.contains(name)) {
        let hint = plimsoll_base::error::did_you_mean(unknown, known.iter().map(String::as_str));
        let expected = format!("one of {}{hint}", known.join(", "));
        return Err(Error::plan("NAME", format!("'{unknown}'"), expected));
    }
    let wanted = known.iter().filter(|name| names.is_empty() || names.contains(name));
    wanted.map(|name| PublishedTarget::read(&folder.join(name))).collect()
}
