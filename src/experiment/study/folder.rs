//! The results folder of a study: whose it is, and what in it is left over.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::receipt::Receipt;
use super::{Study, shown};
use crate::error::{Error, Result};
use crate::experiment::findings::FOLDER as STATISTICS;
use crate::experiment::plan::Plan;
use crate::output::file::is_temporary;
use crate::output::folder::{Contents, FILE as CONTENTS, RECEIPTS, STUDY, check_output, check_schema, receipts};
use crate::output::gallery::FOLDER as FIGURES;
use crate::output::html::FILE as REPORT;
use crate::output::lock::{FILE as LOCK, is_lock};
use crate::output::made::{self, FILE as MADE, Made};
use crate::output::provenance::{COMMIT, VERSION};
use crate::output::requests::FILE as REQUESTS;
use crate::output::schema::{self, Table};
use crate::output::sealed;

/// The contents of [`STUDY`]; the same for every way to run the plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Described {
    /// The version of the tables' schemas.
    pub schema: u32,
    /// The program's version.
    #[serde(default)]
    pub version: String,
    /// Its commit, if that is known.
    #[serde(default)]
    pub commit: Option<String>,
    /// The experiment's name.
    pub name: String,
    /// The question it answers.
    pub question: Option<String>,
    /// The columns of the axes.
    pub columns: Vec<String>,
    /// The cells: their names, and a value a column as text.
    pub cells: Vec<(String, Vec<String>)>,
    /// The plan.
    pub plan: String,
}

impl Described {
    /// The description of a study.
    pub fn of(study: &Study) -> Described {
        let cell = |plan: &Plan| (plan.cell.clone(), plan.axes.iter().map(|(_, value)| shown(value)).collect());
        Described {
            schema: schema::VERSION,
            version: VERSION.to_owned(),
            commit: COMMIT.map(str::to_owned),
            name: study.name.clone(),
            question: study.cells.first().and_then(|plan| plan.question.clone()),
            columns: study.columns.clone(),
            cells: study.cells.iter().map(cell).collect(),
            plan: study.text.clone(),
        }
    }

    /// Reads it; `None` where there is none, as in the folder of a plan without a sweep. Errors: it cannot be read, is not
    /// as it was written, or has a cell with more or fewer values than axes.
    pub fn read(folder: &Path) -> Result<Option<Described>> {
        let path = folder.join(STUDY);
        check_schema(&path, &sealed::unchecked(&path))?;
        let read = sealed::read::<Described>(&path)?;
        match &read {
            Some(described) if described.cells.iter().any(|(_, values)| values.len() != described.columns.len()) => {
                Err(Error::trace(&path, 0, "cells", "a value for each of the columns is expected in every cell"))
            }
            _ => Ok(read),
        }
    }

    /// Writes it, unless it is there already.
    pub fn write(&self, folder: &Path) -> Result<()> {
        if matches!(Described::read(folder), Ok(Some(there)) if there == *self) {
            return Ok(());
        }
        sealed::write(&folder.join(STUDY), self).map(drop)
    }
}

/// The folder of a cell's results: the study's own without a sweep.
pub fn of_cell(folder: &Path, cell: &str) -> PathBuf {
    if cell.is_empty() { folder.to_owned() } else { folder.join(format!("cell={}", schema::partition(cell))) }
}

/// Checks that nothing in a folder is in the way of results: no file that stands where one of theirs would, in a folder
/// that no record shows to be of results. Errors: [`Error::Mismatch`] with such a file.
pub fn check_owner(folder: &Path) -> Result<()> {
    check_output("--output", folder)?;
    if is_of_results(folder) {
        return Ok(());
    }
    let in_the_way = entries(folder).into_iter().filter(|name| is_a_name_of_ours(name));
    match in_the_way.filter_map(|name| first_file(&folder.join(name))).next() {
        None => Ok(()),
        Some(file) => {
            let problem = format!(
                "{} stands where results would stand, and no record in {} says that Plimsoll wrote it; choose another \
                 folder with -o",
                file.display(),
                folder.display()
            );
            Err(Error::Mismatch { problem })
        }
    }
}

/// How many files and folders there are in a folder that is not of results.
pub fn strangers(folder: &Path) -> usize {
    let is_strange = |name: &&String| !is_left_over(name) && !is_a_name_of_ours(name);
    if is_of_results(folder) { 0 } else { entries(folder).iter().filter(is_strange).count() }
}

/// Whether a name is one that only processes which were killed leave.
fn is_left_over(name: &str) -> bool {
    is_temporary(name) || is_lock(name)
}

/// The names in a folder, in order; none if it cannot be read, which whoever writes there will hear of.
fn entries(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort_unstable();
    names
}

/// Whether a record that is as it was written shows that results stand in a folder, or some of them.
fn is_of_results(folder: &Path) -> bool {
    let is_record = |path: PathBuf| matches!(sealed::text(&path), Ok(Some(_)));
    let has_receipt = |place: &Path| {
        let names = receipts(place).unwrap_or_default();
        names.into_iter().any(|name| is_record(place.join(RECEIPTS).join(name)))
    };
    RECORDS.iter().any(|name| is_record(folder.join(name)))
        || places(folder).iter().any(|place| is_record(place.join(CONTENTS)) || has_receipt(place))
}

/// The records that stand in the folder of results itself.
const RECORDS: [&str; 4] = [CONTENTS, STUDY, MADE, "run.json"];

/// Whether results use a name in their folder.
fn is_a_name_of_ours(name: &str) -> bool {
    let tables = || Table::ALL.iter().map(|table| table.name());
    RECORDS.into_iter().chain(tables()).chain([RECEIPTS, FIGURES, STATISTICS, REPORT, REQUESTS]).any(|own| own == name)
        || name.starts_with("cell=")
        || (name.starts_with("run-") && name.ends_with(".json"))
}

/// The first file that is no temporary one at a path or below it, by name; links count as files.
fn first_file(path: &Path) -> Option<PathBuf> {
    match path.symlink_metadata() {
        Ok(metadata) if metadata.is_dir() => entries(path).iter().find_map(|name| first_file(&path.join(name))),
        Ok(_) => (!is_left_over(&path.file_name()?.to_string_lossy())).then(|| path.to_owned()),
        Err(_) => None,
    }
}

/// The folder of results with those of the cells of a sweep.
fn places(folder: &Path) -> Vec<PathBuf> {
    let cells = entries(folder).into_iter().filter(|name| name.starts_with("cell=")).map(|name| folder.join(name));
    std::iter::once(folder.to_owned()).chain(cells.filter(|path| path.is_dir())).collect()
}

/// Checks that a folder has no results of another plan. Errors: [`Error::Mismatch`] with what differs.
pub fn check(study: &Study, folder: &Path) -> Result<()> {
    // A list that is damaged is nobody's: it will be written anew.
    let alone = || Made::alone(folder).ok().flatten().map(|(about, _)| about.plan);
    match plan_there(folder)?.or_else(alone) {
        Some(there) if there != study.text => {
            let advice = "Go on with the plan as it was, choose another folder with -o, or throw those results away with \
                          --restart.";
            Err(another(folder, &there, &study.text, advice))
        }
        _ => Ok(()),
    }
}

/// The same for a plan without runs, which is made anew whatever it was. Errors: there are runs in the folder, or what
/// is not Plimsoll's.
pub fn check_without_runs(folder: &Path, plan: &str) -> Result<()> {
    check_owner(folder)?;
    match plan_there(folder)? {
        Some(there) => Err(another(folder, &there, plan, "Choose another folder with -o.")),
        None => Ok(()),
    }
}

/// The plan whose runs a folder has; a record that is damaged is nobody's, and will be written anew. Errors: of a version
/// that this program does not read.
fn plan_there(folder: &Path) -> Result<Option<String>> {
    for record in [STUDY, CONTENTS] {
        let path = folder.join(record);
        check_schema(&path, &sealed::unchecked(&path))?;
    }
    let described = Described::read(folder).ok().flatten().map(|described| described.plan);
    Ok(described.or_else(|| Contents::read(folder).ok().map(|contents| contents.plan)))
}

fn another(folder: &Path, there: &str, plan: &str, advice: &str) -> Error {
    let differs = difference(there, plan);
    Error::Mismatch { problem: format!("{} has results of another plan:\n{differs}\n{advice}", folder.display()) }
}

/// The differences between two plans, a line a key: `-` of the old one, `+` of the new one.
pub fn difference(old: &str, new: &str) -> String {
    let flat = |text: &str| {
        let mut lines = Vec::new();
        let table: toml::Table = text.parse().unwrap_or_default();
        flatten("", &toml::Value::Table(table), &mut lines);
        lines
    };
    let (old, new) = (flat(old), flat(new));
    let mut lines: Vec<(&String, String)> = Vec::new();
    for (key, value) in &old {
        if !new.iter().any(|other| other == &(key.clone(), value.clone())) {
            lines.push((key, format!("  - {key} = {value}")));
        }
    }
    for (key, value) in &new {
        if !old.iter().any(|other| other == &(key.clone(), value.clone())) {
            lines.push((key, format!("  + {key} = {value}")));
        }
    }
    lines.sort_by_key(|(key, _)| *key);
    lines.into_iter().map(|(_, line)| line).collect::<Vec<_>>().join("\n")
}

fn flatten(path: &str, value: &toml::Value, lines: &mut Vec<(String, String)>) {
    match value {
        toml::Value::Table(table) => {
            for (key, value) in table {
                let key = if key.contains('.') { format!("\"{key}\"") } else { key.clone() };
                flatten(&if path.is_empty() { key } else { format!("{path}.{key}") }, value, lines);
            }
        }
        toml::Value::Array(items) if items.iter().any(toml::Value::is_table) => {
            items.iter().enumerate().for_each(|(at, item)| flatten(&format!("{path}[{at}]"), item, lines));
        }
        value => lines.push((path.to_owned(), value.to_string())),
    }
}

/// Writes what a cell's folder says of itself, unless it says so already.
pub fn describe(plan: &Plan, folder: &Path, seeds: usize) -> Result<()> {
    let contents = contents(plan, seeds);
    if matches!(Contents::read(folder), Ok(there) if there == contents) { Ok(()) } else { contents.write(folder) }
}

fn contents(plan: &Plan, seeds: usize) -> Contents {
    let seeded = plan.workload.is_seeded();
    let cell = if plan.cell.is_empty() { String::new() } else { format!(": {}", plan.cell) };
    Contents {
        schema: schema::VERSION,
        version: VERSION.to_owned(),
        commit: COMMIT.map(str::to_owned),
        name: format!("{}{cell}", plan.name),
        question: plan.question.clone(),
        policies: plan.policies.iter().map(|policy| policy.name.clone()).collect(),
        baseline: plan.policies[plan.baseline].name.clone(),
        seeds: plan.seeds.iter().take(seeds).map(|&seed| seeded.then_some(seed)).collect(),
        submissions_depend_on_policy: plan.workload.submissions_depend_on_policy(),
        command: plan.command.clone(),
        plan: plan.text.clone(),
    }
}

/// Removes what is no part of a study that is complete: temporary files of processes that were killed, and tables and
/// receipts of an earlier plan. `kept` are the files of all runs. Nothing else is touched than what a record lists and is as
/// that record says, and files with temporary names.
pub fn remove_stale(study: &Study, folder: &Path, kept: &HashSet<PathBuf>) -> Result<()> {
    let ours: HashSet<PathBuf> = study.cells.iter().map(|plan| of_cell(folder, &plan.cell)).collect();
    for place in places(folder) {
        for name in receipts(&place)? {
            let path = place.join(RECEIPTS).join(&name);
            // What is damaged lists nothing.
            let Ok(Some(receipt)) = sealed::read::<Receipt>(&path) else { continue };
            if !kept.contains(&path) {
                let mut tables = receipt.tables;
                tables.retain(|table, _| !kept.contains(&place.join(table)));
                made::remove(&place, &tables)?;
                remove(&path)?;
            }
        }
        let tables = Table::ALL.iter().map(|table| table.name());
        for name in tables.chain([RECEIPTS, STATISTICS, FIGURES]) {
            remove_temporary(&place, &place.join(name))?;
        }
        // It stays if something else stands in it.
        let _ = std::fs::remove_dir(place.join(RECEIPTS));
        remove_temporary(&place, &place)?;
        if !ours.contains(&place) && Contents::read(&place).is_ok() {
            // Of another plan, or beside the cells of this one.
            remove(&place.join(CONTENTS))?;
            if place != folder {
                Made::remove(&place)?;
                let _ = std::fs::remove_dir(&place);
            }
        }
    }
    if let Ok(Some(_)) = Made::alone(folder) {
        // Of a plan without runs.
        Made::remove(folder)?;
    }
    if study.is_swept() { Ok(()) } else { remove(&folder.join(STUDY)) }
}

/// Removes what processes that were killed left in a folder, and in those of policies and runs below it, which go if
/// nothing else is in them.
fn remove_temporary(place: &Path, folder: &Path) -> Result<()> {
    for name in entries(folder) {
        let path = folder.join(&name);
        // The folder's own lock is held by whoever is here.
        if is_left_over(&name) && name != LOCK && path.is_file() {
            remove(&path)?;
            let left = folder.ancestors().take_while(|above| *above != place);
            let _ = left.map_while(|above| std::fs::remove_dir(above).ok()).count();
        } else if (name.starts_with("policy=") || name.starts_with("run=")) && path.is_dir() {
            remove_temporary(place, &path)?;
        }
    }
    Ok(())
}

fn remove(path: &Path) -> Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::output(path, error)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_told_key_by_key() {
        let old = "seeds = 2\n[w]\nload = 0.5\n[[w.class]]\na = 1\n[[w.class]]\nb = 1\n";
        let new = "seeds = 2\n[w]\nload = 0.7\nhours = 1\n[[w.class]]\na = 1\n[[w.class]]\nb = 2\n";
        let expected =
            "  - w.class[1].b = 1\n  + w.class[1].b = 2\n  + w.hours = 1\n  - w.load = 0.5\n  + w.load = 0.7";
        assert_eq!(difference(old, new), expected);
        assert_eq!(difference(old, old), "");
    }
}
