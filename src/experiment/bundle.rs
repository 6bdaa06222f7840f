//! The published part of a results folder: files checked against the records that list them, the plan, and its inputs.
//!
//! The folder may come from somebody else: nothing outside of it is packed but input files below the current folder, and of
//! those only what the runs read, by digest.

mod inputs;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use super::plan::check_name;
use super::study::folder::{Described, of_cell};
use super::study::receipt::{Found, Receipt};
use crate::error::{Error, Result};
use crate::output::archive::Sum;
use crate::output::file::is_temporary;
use crate::output::folder::{Contents, FILE as CONTENTS, RECEIPTS, STUDY, receipts};
use crate::output::made::{FILE as MADE, Made, State};
use crate::output::portable;
use crate::output::requests::FILE as FIGURES;
use crate::output::schema::Table;
use crate::output::sealed;
use crate::rows;

/// A results folder, ready to be packed.
#[derive(Clone, Debug, Default)]
pub struct Parcel {
    /// The experiment's name.
    pub name: String,
    /// The question it answers.
    pub question: Option<String>,
    /// The plan, put together, and where it stands in the bundle.
    pub plan: String,
    /// The plan's text about figures, where `plan` is without it.
    pub figures: String,
    /// The folder of the bundle from which its paths lead to its inputs, with `/` at its end.
    pub base: String,
    /// The command that made the results where that was no plan: to be given in `base`.
    pub replay: Option<String>,
    /// Whether it is one of runs, which `plimsoll compare` can compare.
    pub has_runs: bool,
    /// The files of the results: names below the folder, and where they are.
    pub files: BTreeMap<String, PathBuf>,
    /// Files that the plan reads and that are packed: places in the bundle, and where they are.
    pub inputs: BTreeMap<String, PathBuf>,
    /// Files that the plan reads and that are not packed: as the plan names them, and what they were.
    pub elsewhere: BTreeMap<String, Sum>,
    /// Runs that are there whole.
    pub runs: usize,
    /// The parts that are missing or broken.
    pub missing: Vec<String>,
    /// The facts that differ between two ways to run the plan (`run.json`).
    pub made: serde_json::Value,
    /// Files of the folder that no record lists, and that are not packed.
    pub unlisted: Vec<String>,
}

/// Looks through a results folder. Input files up to `largest` bytes are packed.
///
/// Errors: no results folder, a file that cannot be read, and what no results folder has: a link, a name that some file
/// system refuses. What is missing is no error here.
pub fn collect(folder: &Path, largest: u64) -> Result<Parcel> {
    let listed = listed(folder)?;
    let described = Described::read(folder)?;
    let mut parcel = Parcel::default();
    let mut cells = vec![String::new()];
    let mut read = None;
    match (described, Made::alone(folder)?) {
        (None, Some((about, _))) if !folder.join(CONTENTS).exists() => {
            (parcel.name, parcel.question, parcel.plan) = (about.name, about.question, about.plan);
            read = Some(about.inputs.into_iter().map(|(name, digest)| (name, Some(digest))).collect());
        }
        (Some(described), _) => {
            parcel.has_runs = true;
            (parcel.name, parcel.question, parcel.plan) = (described.name, described.question, described.plan);
            cells = described.cells.into_iter().map(|(name, _)| name).collect();
        }
        (None, _) => {
            let contents = Contents::read(folder)?;
            parcel.has_runs = true;
            (parcel.name, parcel.question, parcel.plan) = (contents.name, contents.question, contents.plan);
            parcel.replay = Some(contents.command).filter(|command| !command.starts_with("plimsoll run "));
        }
    }
    check_name(&parcel.name)?;
    let mut records = Records::default();
    if parcel.has_runs {
        for cell in &cells {
            parcel.cell(folder, cell, &mut records)?;
        }
        if !folder.join(super::ESTIMATES).is_file() {
            parcel.missing.push("the statistics".to_owned());
        }
        parcel.figures = rows::read_text_if_there(&folder.join(FIGURES))?.unwrap_or_default();
    }
    let places = cells.iter().map(|cell| of_cell(folder, cell)).chain([folder.to_owned()]);
    for place in places.collect::<BTreeSet<_>>() {
        parcel.missing.extend(records.add_made(folder, &place)?);
    }
    for (name, path) in listed {
        match records.standing(&name, &path)? {
            Standing::AsRecorded => drop(parcel.files.insert(name, path)),
            // It is among what is missing already.
            Standing::Broken => {}
            Standing::Unlisted => parcel.unlisted.push(name),
        }
    }
    parcel.made = sealed::read(&folder.join("run.json"))?.unwrap_or_default();
    parcel.read_inputs(folder, read, largest)?;
    Ok(parcel)
}

/// All files below a folder, with `/` in their names, but temporary ones and the logs of jobs.
///
/// Errors: what is neither a file nor a folder, which may lead anywhere or never end; a name that is no text, or that not
/// every file system takes.
fn listed(root: &Path) -> Result<BTreeMap<String, PathBuf>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![(root.to_owned(), String::new())];
    while let Some((folder, below)) = folders.pop() {
        let fail = |source| Error::io(&folder, source);
        for entry in std::fs::read_dir(&folder).map_err(fail)? {
            let entry = entry.map_err(fail)?;
            let (path, kind) = (entry.path(), entry.file_type().map_err(fail)?);
            let refused = |problem: &str| Err(Error::trace(&path, 0, "", format!("it cannot be packed: {problem}")));
            let Ok(name) = entry.file_name().into_string() else { return refused("its name is no text") };
            if !kind.is_file() && !kind.is_dir() {
                return refused("it is a link or a device, and no file of the results folder");
            }
            if name.starts_with('.') || is_temporary(&name) || (name == "slurm" && below.is_empty()) {
                continue;
            }
            let name = format!("{below}{name}");
            if let Some(problem) = portable::problem(&name) {
                return refused(problem);
            }
            match kind.is_dir() {
                true => folders.push((path, name + "/")),
                false => drop(found.insert(name, path)),
            }
        }
    }
    Ok(found)
}

/// The standing of a file in the records of its folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// A record lists it, and it is as it says.
    AsRecorded,
    /// A record lists it, and it is another.
    Broken,
    /// No record lists it.
    Unlisted,
}

/// The files that the records of a results folder list, by name below the folder, and whether they are as listed.
#[derive(Default)]
struct Records(BTreeMap<String, bool>);

impl Records {
    /// Adds a file of a place below the folder.
    fn add(&mut self, folder: &Path, place: &Path, name: &str, as_listed: bool) {
        let below = place.strip_prefix(folder).unwrap_or(place);
        let below = below.iter().map(|part| format!("{}/", part.to_string_lossy())).collect::<String>();
        self.0.insert(format!("{below}{name}"), as_listed);
    }

    /// Adds what the list of figures and pages of a place says; returns what is missing, in words.
    fn add_made(&mut self, folder: &Path, place: &Path) -> Result<Vec<String>> {
        let mut missing = Vec::new();
        for (name, state) in Made::read(place)?.unwrap_or_default().states(place) {
            self.add(folder, place, &name, state == State::AsMade);
            match state {
                State::AsMade => {}
                State::Changed => missing.push(format!("{name} is not as it was written")),
                State::Gone => missing.push(name),
            }
        }
        Ok(missing)
    }

    /// Whether a file is as its record says: all that is packed of a results folder is asked for here.
    ///
    /// Tables are in the receipts of their runs, statistics, figures and pages in `made.json`. Descriptions carry their own
    /// digests; what is asked of figures may be changed at any time. Errors: a description is not as it was written.
    fn standing(&self, name: &str, path: &Path) -> Result<Standing> {
        if let Some(as_listed) = self.0.get(name) {
            return Ok(if *as_listed { Standing::AsRecorded } else { Standing::Broken });
        }
        let own: Vec<&str> = name.split('/').skip_while(|part| part.starts_with("cell=")).collect();
        Ok(match own[..] {
            [FIGURES] => Standing::AsRecorded,
            [MADE | CONTENTS | STUDY] => sealed::text(path).map(|_| Standing::AsRecorded)?,
            [name] if name.starts_with("run") && name.ends_with(".json") => {
                sealed::text(path).map(|_| Standing::AsRecorded)?
            }
            // Of an earlier plan, or of a run that is broken.
            [first, _, ..] if first == RECEIPTS || Table::ALL.iter().any(|table| table.name() == first) => {
                Standing::Broken
            }
            _ => Standing::Unlisted,
        })
    }
}

impl Parcel {
    /// Checks the runs of a cell; `records` get the files of those that are whole.
    fn cell(&mut self, folder: &Path, cell: &str, records: &mut Records) -> Result<()> {
        let place = of_cell(folder, cell);
        let of = if cell.is_empty() { String::new() } else { format!("{cell}, ") };
        if !place.is_dir() {
            self.missing.push(format!("{of}all runs"));
            return Ok(());
        }
        let contents = Contents::read(&place)?;
        let mut there = HashSet::new();
        for name in receipts(&place)? {
            let id = name.trim_end_matches(".json");
            match Receipt::find(&place, id) {
                Found::Whole(receipt) => {
                    records.add(folder, &place, &format!("{RECEIPTS}/{id}.json"), true);
                    receipt.tables.keys().for_each(|table| records.add(folder, &place, table, true));
                    there.insert((receipt.summary.policy, receipt.summary.run));
                }
                Found::Broken(why) => self.missing.push(format!("{of}{why}")),
                Found::Missing => {}
            }
        }
        for policy in &contents.policies {
            for run in 0..contents.seeds.len() as u64 {
                if there.contains(&(policy.clone(), run)) {
                    self.runs += 1;
                } else {
                    self.missing.push(format!("{of}{policy} run {run}"));
                }
            }
        }
        Ok(())
    }
}
