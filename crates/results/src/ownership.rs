//! The ownership of a results folder: the plan that it belongs to, and the files that may be removed.
//!
//! A folder belongs to the plan that its undamaged records name. Results of another plan are an error unless `--restart` replaces them.
//! Only files that match a record and files with the names of temporary files are ever removed. The user's own files are neither replaced
//! nor removed.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use plimsoll_base::error::{Error, Result};
use plimsoll_store::file::is_temporary;
use plimsoll_store::lock::{FILE as LOCK, Lock, is_lock};
use plimsoll_store::sealed::{self, Found};
use serde::de::IgnoredAny;

use crate::files::{
    ACCELERATOR_JOBS, CELL, EXPERIMENT, FIGURES, RECEIPTS, SAVED, STATE, STATISTICS, STUDY, is_of_results, is_record,
};
use crate::folder::{Contents, StudyRecord, check_links, check_output, of_cell, receipts};
use crate::manifest::{self, Manifest};
use crate::receipt::Receipt;
use crate::schema::Table;

/// Checks that a folder has no content that conflicts with results: no link that would redirect results, and, unless a record identifies
/// the folder as results, no file with the name of a results file. Errors: [`Error::Mismatch`] with the first such file; [`Error::Io`].
pub fn check_owner(folder: &Path) -> Result<()> {
    check_output("--output", folder)?;
    let mut in_the_way = None;
    for name in entries(folder)?.iter().filter(|name| is_of_results(name)) {
        let path = folder.join(name);
        check_links(folder, &path)?;
        // Saved states are written before any record. Only saved states are used or removed there.
        if in_the_way.is_none() && name != SAVED {
            in_the_way = first_file(&path)?;
        }
    }
    // Records are searched last. Other shards may write at the same time, and they write records before any other file.
    match in_the_way {
        Some(file) if !has_records(folder)? => {
            let problem = format!(
                "{} has the path of a file of results, and no record in {} shows that Plimsoll wrote it; choose \
                 another folder with -o",
                file.display(),
                folder.display()
            );
            Err(Error::Mismatch { problem })
        }
        _ => Ok(()),
    }
}

/// Returns the number of foreign files and folders in a folder that contains no results. Errors: [`Error::Io`].
pub fn foreign_files(folder: &Path) -> Result<usize> {
    let is_strange = |name: &&String| !is_left_over(name) && !is_of_results(name);
    Ok(if has_records(folder)? { 0 } else { entries(folder)?.iter().filter(is_strange).count() })
}

/// Returns whether a file of this name is left by a killed process only.
fn is_left_over(name: &str) -> bool {
    is_temporary(name) || is_lock(name)
}

/// Returns the sorted names in a folder; none if the folder does not exist. Errors: [`Error::Io`].
fn entries(folder: &Path) -> Result<Vec<String>> {
    let fail = |source| Error::io(folder, source);
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(fail)?,
    };
    let name = |entry: std::io::Result<std::fs::DirEntry>| Ok(entry?.file_name().to_string_lossy().into_owned());
    let mut names = entries.map(name).collect::<std::io::Result<Vec<String>>>().map_err(fail)?;
    names.sort_unstable();
    Ok(names)
}

/// Returns whether an undamaged record shows that a folder contains results, or some of them. Errors: [`Error::Io`].
fn has_records(folder: &Path) -> Result<bool> {
    let own = entries(folder)?.into_iter().filter(|name| is_record(name)).map(|name| folder.join(name));
    let mut records: Vec<PathBuf> = own.collect();
    for place in places(folder)? {
        records.push(place.join(EXPERIMENT));
        records.extend(receipts(&place)?.into_iter().map(|name| place.join(RECEIPTS).join(name)));
    }
    for record in records {
        match sealed::text(&record) {
            Ok(Some(_)) => return Ok(true),
            Err(error @ Error::Io { .. }) => return Err(error),
            _ => {}
        }
    }
    Ok(false)
}

/// Returns the first file, by name, at or below a path. Temporary files are ignored, and links count as files. Errors: [`Error::Io`].
fn first_file(path: &Path) -> Result<Option<PathBuf>> {
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    match path.symlink_metadata() {
        Ok(metadata) if metadata.is_dir() => {
            for name in entries(path)? {
                if let Some(file) = first_file(&path.join(name))? {
                    return Ok(Some(file));
                }
            }
            Ok(None)
        }
        Ok(_) => Ok((!is_left_over(&name)).then(|| path.to_owned())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io(path, error)),
    }
}

/// Returns the results folder and the folders of its cells. Errors: [`Error::Io`].
pub fn places(folder: &Path) -> Result<Vec<PathBuf>> {
    let cells = entries(folder)?.into_iter().filter(|name| name.starts_with(CELL)).map(|name| folder.join(name));
    Ok(std::iter::once(folder.to_owned()).chain(cells.filter(|path| path.is_dir())).collect())
}

/// The advice for a folder with other results.
pub const ADVICE: &str = "Repeat that command or plan unchanged, choose another folder with -o, or replace those results with \
                      --restart.";

/// Checks that a folder has no results of another plan, for a plan of which the manifest is the only description. Tables about figures may
/// differ. Errors: [`Error::Mismatch`] with the differences, or if the record that would identify the plan is damaged; [`Error::Io`].
pub fn check_without_runs(folder: &Path, plan: &str) -> Result<()> {
    match plan_there(folder)? {
        Found::Whole(there) if !is_same_plan(&there, plan) => Err(of_another_plan(folder, &there, plan)),
        Found::Damaged(error) => Err(Error::Mismatch { problem: format!("{error}\n{ADVICE}") }),
        _ => Ok(()),
    }
}

/// Locks a folder for a plan of which the manifest is the only description; `shared` with other shards of its runs. Also returns whether
/// results of another plan are replaced. Errors: another process writes to the folder; it contains files that are not Plimsoll's, or, without `restart`, results of another plan.
pub fn claim(folder: &Path, plan: &str, restart: bool, shared: bool) -> Result<(Lock, bool)> {
    check_output("--output", folder)?;
    let lock = if shared { Lock::shared(folder)? } else { Lock::alone(folder)? };
    check_owner(folder)?;
    match check_without_runs(folder, plan) {
        Err(Error::Mismatch { .. }) if restart => Ok((lock, true)),
        checked => checked.map(|()| (lock, false)),
    }
}

/// Removes the saved state and then the incomplete tables of a run in its folder, if there are any, and the folder unless it has other
/// files. Errors: [`Error::Output`].
pub fn remove_saved(folder: &Path) -> Result<()> {
    let tables = Table::all().map(|table| format!("{}.parquet", table.name()));
    for path in std::iter::once(STATE.to_owned()).chain(tables).map(|name| folder.join(name)) {
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(Error::output(path, error)),
            _ => {}
        }
    }
    remove_temporary(folder, folder)?;
    let _ = std::fs::remove_dir(folder);
    Ok(())
}

/// Removes the saved states of all runs in a results folder; other files are kept. Errors: [`Error::Output`], [`Error::Io`].
pub fn remove_all_saved(folder: &Path) -> Result<()> {
    let is_of_run = |name: &String| name.len() == 16 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    for place in places(folder)? {
        let saved = place.join(SAVED);
        check_links(folder, &saved)?;
        for run in entries(&saved)?.iter().filter(|name| is_of_run(name)).map(|name| saved.join(name)) {
            check_links(folder, &run)?;
            remove_saved(&run)?;
        }
        let _ = std::fs::remove_dir(saved);
    }
    Ok(())
}

/// Removes all results in a folder, for `--restart`: tables and receipts of runs, statistics, figures, reports and descriptions. Removes
/// only the records themselves and the files that a record lists and that are unchanged since then. Returns the removed files. Their
/// folders are kept, because other runs may be writing to them. Errors: a file cannot be removed.
pub fn clear(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut removed = Vec::new();
    for place in places(folder)? {
        for name in receipts(&place)? {
            let path = place.join(RECEIPTS).join(&name);
            match sealed::read::<Receipt<IgnoredAny>>(&path) {
                Ok(Some(receipt)) => removed.extend(manifest::remove_files(&place, &receipt.tables)?),
                Err(error @ Error::Io { .. }) => return Err(error),
                _ => continue,
            }
            remove(&path)?;
            removed.push(path);
        }
        removed.extend(manifest::remove_files(&place, &Manifest::known(&place)?.files)?);
        for name in entries(&place)?.iter().filter(|name| is_record(name)) {
            let path = place.join(name);
            match sealed::text(&path) {
                Ok(Some(_)) => remove(&path)?,
                Err(error @ Error::Io { .. }) => return Err(error),
                _ => continue,
            }
            removed.push(path);
        }
    }
    Ok(removed)
}

/// Removes the folders below `folder` that are empty after the removal of these files.
pub fn remove_empty(folder: &Path, removed: &[PathBuf]) {
    for path in removed {
        let above = path.ancestors().skip(1).take_while(|above| *above != folder && above.starts_with(folder));
        let _ = above.map_while(|above| std::fs::remove_dir(above).ok()).count();
    }
}

/// Returns the plan of the results in a folder. Errors: [`Error::Io`], or a record of a version that this program does not read.
pub fn plan_there(folder: &Path) -> Result<Found<String>> {
    match runs_there(folder)? {
        // A damaged manifest identifies no plan, and is written again later.
        Found::Missing => Ok(Manifest::known(folder)?.about.map_or(Found::Missing, |about| Found::Whole(about.plan))),
        found => Ok(found),
    }
}

/// Returns the plan of the runs in a folder. Errors: as [`plan_there`].
fn runs_there(folder: &Path) -> Result<Found<String>> {
    let study = match StudyRecord::find(folder)? {
        Found::Whole(described) => return Ok(Found::Whole(described.plan)),
        Found::Damaged(error) => Found::Damaged(error),
        Found::Missing => Found::Missing,
    };
    Ok(match sealed::find::<Contents>(&folder.join(EXPERIMENT))? {
        Found::Whole(contents) => Found::Whole(contents.plan),
        Found::Damaged(error) => Found::Damaged(error),
        Found::Missing => study,
    })
}

/// Returns whether two plans are equal except for their tables about figures, which do not affect the other results.
fn is_same_plan(there: &str, plan: &str) -> bool {
    let without_figures = |text: &str| {
        let mut table: toml::Table = text.parse().ok()?;
        ["figure", "figures"].iter().for_each(|key| drop(table.remove(*key)));
        Some(table)
    };
    there == plan || without_figures(there).is_some_and(|there| without_figures(plan) == Some(there))
}

/// Returns the error for results of another plan, with the differences between the plan `there` and the new one.
pub fn of_another_plan(folder: &Path, there: &str, plan: &str) -> Error {
    let differs = difference(there, plan);
    Error::Mismatch { problem: format!("{} has results of another plan:\n{differs}\n{ADVICE}", folder.display()) }
}

/// Returns the differences between two plans, one line per key and plan: `-` for the old plan, `+` for the new one.
pub fn difference(old: &str, new: &str) -> String {
    let flat = |text: &str| {
        let mut lines = Vec::new();
        let table: toml::Table = text.parse().unwrap_or_default();
        flatten("", &toml::Value::Table(table), &mut lines);
        lines
    };
    let (old, new) = (flat(old), flat(new));
    let mut lines: Vec<(&String, String)> = Vec::new();
    for (sign, own, others) in [('-', &old, &new), ('+', &new, &old)] {
        let others: HashSet<&(String, String)> = others.iter().collect();
        let alone = own.iter().filter(|line| !others.contains(line));
        lines.extend(alone.map(|(key, value)| (key, format!("  {sign} {key} = {value}"))));
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

/// Removes files that do not belong to a complete study with these cells: temporary files of killed processes, and tables and receipts of
/// an earlier plan. `kept` has the files of all runs of the study. Only files that match a record, and files with temporary names, are
/// removed. Errors: a file cannot be removed; [`Error::Io`].
pub fn remove_stale(folder: &Path, cells: &[&str], is_swept: bool, kept: &HashSet<PathBuf>) -> Result<()> {
    let ours: HashSet<PathBuf> = cells.iter().map(|cell| of_cell(folder, cell)).collect();
    for place in places(folder)? {
        remove_stale_runs(&place, kept)?;
        if !ours.contains(&place) && Contents::read(&place).is_ok() {
            // The description is of another plan, or of a cell that this plan does not have.
            remove(&place.join(EXPERIMENT))?;
            if place != folder {
                Manifest::remove(&place)?;
                let _ = std::fs::remove_dir(&place);
            }
        }
    }
    if Manifest::known(folder)?.about.is_some() {
        // The manifest belongs to an earlier plan without runs.
        Manifest::remove(folder)?;
    }
    match StudyRecord::find(folder)? {
        Found::Whole(_) if !is_swept => remove(&folder.join(STUDY)),
        _ => Ok(()),
    }
}

/// Removes the receipts in the folder of a cell that are not in `kept`, with their tables, and temporary files of killed processes. Errors:
/// as [`remove_stale`].
pub fn remove_stale_runs(place: &Path, kept: &HashSet<PathBuf>) -> Result<()> {
    for name in receipts(place)? {
        let path = place.join(RECEIPTS).join(&name);
        let receipt = match sealed::read::<Receipt<IgnoredAny>>(&path) {
            Ok(Some(receipt)) => receipt,
            Err(error @ Error::Io { .. }) => return Err(error),
            // A damaged record lists no files.
            _ => continue,
        };
        if !kept.contains(&path) {
            let mut tables = receipt.tables;
            tables.retain(|table, _| !kept.contains(&place.join(table)));
            manifest::remove(place, &tables)?;
            remove(&path)?;
        }
    }
    let tables = Table::all().map(|table| table.name());
    for name in tables.chain([RECEIPTS, STATISTICS, FIGURES, ACCELERATOR_JOBS]) {
        remove_temporary(place, &place.join(name))?;
    }
    // Removing the folder fails if it contains other files, as intended.
    let _ = std::fs::remove_dir(place.join(RECEIPTS));
    remove_temporary(place, place)
}

/// Removes temporary files of killed processes from a folder and from the folders of policies and runs below it. Folders of policies and
/// runs that are empty afterwards are also removed.
fn remove_temporary(place: &Path, folder: &Path) -> Result<()> {
    for name in entries(folder)? {
        let path = folder.join(&name);
        // The folder's own lock is not removed, because this process holds it.
        if is_left_over(&name) && name != LOCK && path.is_file() {
            remove(&path)?;
            let left = folder.ancestors().take_while(|above| *above != place);
            let _ = left.map_while(|above| std::fs::remove_dir(above).ok()).count();
        } else if ["policy=", "jobs_per_hour=", "run="].iter().any(|prefix| name.starts_with(prefix)) && path.is_dir() {
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
