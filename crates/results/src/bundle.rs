//! The published part of a results folder: files checked against the records that list them, the plan, and its inputs.
//!
//! The folder may come from another person. A file outside of this folder is packed only if it is an input of the runs, is below the
//! current folder, and still has the recorded digest. Missing or damaged parts are reported ([`Missing`]), and the bundle contains the
//! other parts.

mod inputs;
mod records;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};

use crate::accelerators::AcceleratorSummary;
use crate::files::{ESTIMATES, EXPERIMENT, RECEIPTS, REQUESTS, RUN};
use crate::folder::{Contents, StudyRecord, check_name, of_cell, receipts};
use crate::manifest::Manifest;
use crate::ownership::places;
use crate::receipt::{Receipt, ReceiptState, find};
use plimsoll_base::error::{Error, Result};
use plimsoll_base::rows;
use plimsoll_store::archive::{self, Content, Sum};
use plimsoll_store::file::{digest_of, is_temporary};
use plimsoll_store::sealed;
use records::{RecordedState, Records};

/// The contents of a bundle: a results folder that is ready to be packed.
#[derive(Clone, Debug, Default)]
pub struct BundleContents {
    /// The name of the experiment.
    pub name: String,
    /// The question that the experiment answers.
    pub question: Option<String>,
    /// The resolved plan and its location in the bundle.
    pub plan: String,
    /// The plan's tables for figures as text, if `plan` does not contain them.
    pub figures: String,
    /// The base of the plan's input paths: a folder in the bundle, with a trailing `/`.
    pub base: String,
    /// The command that made the results, if they were not made from a plan. A replay is run in `base`.
    pub replay: Option<String>,
    /// Whether the folder contains runs, which `plimsoll compare` can compare.
    pub has_runs: bool,
    /// The files of the results, by name relative to the folder.
    pub files: BTreeMap<String, Content>,
    /// The packed input files of the plan, by location in the bundle.
    pub inputs: BTreeMap<String, Content>,
    /// The input files of the plan that are not packed, by name as in the plan, with their checksums.
    pub elsewhere: BTreeMap<String, Sum>,
    /// The number of complete runs.
    pub runs: usize,
    /// The missing and damaged parts.
    pub missing: Missing,
    /// The contents of `run.json`: the facts that may differ between two executions of the same plan.
    pub made: serde_json::Value,
    /// Files of the folder that no record lists; they are not packed.
    pub unlisted: Vec<String>,
}

/// The missing and damaged parts: their number, and messages for the first of them only, because a short plan can request very many runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Missing {
    /// The number of missing and damaged parts.
    pub parts: usize,
    /// Messages for the first missing parts, each with its reason if known.
    pub examples: Vec<String>,
}

/// The maximum number of missing parts in messages.
const EXAMPLES: usize = 100;

impl Missing {
    fn add(&mut self, part: String) {
        self.parts = self.parts.saturating_add(1);
        self.add_missing(part);
    }

    fn add_missing(&mut self, part: String) {
        if self.examples.len() < EXAMPLES {
            self.examples.push(part);
        }
    }
}

/// Collects the content of a bundle from a results folder. Input files of up to `largest` bytes are packed.
///
/// Errors: `folder` is not a results folder, a file is unreadable, or an entry cannot be in a results folder, because it is a link or has
/// a name that some file system refuses. Missing parts are reported in the result and are not errors.
pub fn collect(folder: &Path, largest: u64) -> Result<BundleContents> {
    if !folder.is_dir() {
        Contents::read(folder)?;
    }
    let listed = listed(folder)?;
    // The digests of the records are computed before the files are packed, so that a record that changes afterwards is not packed.
    let mut records = Records::read(&listed);
    let described = StudyRecord::read(folder)?;
    let mut packed = BundleContents::default();
    let mut cells = vec![String::new()];
    let mut read = None;
    match (described, Manifest::alone(folder)?) {
        (None, Some((about, manifest))) if !folder.join(EXPERIMENT).exists() => {
            (packed.name, packed.question, packed.plan) = (about.name, about.question, about.plan);
            packed.replay = about.command;
            packed.stored_runs(folder, &mut records)?;
            if manifest.files.is_empty() {
                packed.missing.add("the tables, figures and report: the command was interrupted".to_owned());
            }
            read = Some(about.inputs.into_iter().map(|(name, digest)| (name, Some(digest))).collect());
        }
        (Some(described), _) => {
            packed.has_runs = true;
            (packed.name, packed.question, packed.plan) = (described.name, described.question, described.plan);
            cells = described.cells.into_iter().map(|(name, _)| name).collect();
        }
        (None, _) => {
            let contents = Contents::read(folder)?;
            packed.has_runs = true;
            (packed.name, packed.question, packed.plan) = (contents.name, contents.question, contents.plan);
            packed.replay = Some(contents.command).filter(|command| !command.starts_with("plimsoll run "));
        }
    }
    check_name(&packed.name)?;
    let figures = rows::read_text_if_there(&folder.join(REQUESTS))?.unwrap_or_default();
    records.add(folder, folder, REQUESTS, Some(digest_of(figures.as_bytes())));
    if packed.has_runs {
        for cell in &cells {
            packed.cell(folder, cell, &mut records)?;
        }
        packed.figures = figures;
    }
    let places = cells.iter().map(|cell| of_cell(folder, cell)).chain([folder.to_owned()]);
    for place in places.collect::<BTreeSet<_>>() {
        let (missing, outdated) = records.add_made(folder, &place)?;
        missing.into_iter().for_each(|part| packed.missing.add(part));
        match outdated {
            // If runs are missing, figures that are outdated for this reason do not count as a further missing part.
            Some(outdated) if packed.missing.parts > 0 => packed.missing.add_missing(outdated),
            outdated => outdated.into_iter().for_each(|part| packed.missing.add(part)),
        }
    }
    if packed.has_runs && !records.list(ESTIMATES) {
        packed.missing.add("the statistics".to_owned());
    }
    for (name, path) in listed {
        match records.standing(&name, &path)? {
            RecordedState::AsRecorded(digest) => drop(packed.files.insert(name, Content::File(path, digest))),
            // The file has already been listed as missing.
            RecordedState::Broken => {}
            RecordedState::Unlisted => packed.unlisted.push(name),
        }
    }
    packed.made = sealed::read(&folder.join(RUN))?.unwrap_or_default();
    packed.read_inputs(folder, read, largest)?;
    Ok(packed)
}

/// Returns all files below a folder, by their relative name with `/`, except temporary files and the logs of jobs.
///
/// Errors: an entry is neither a file nor a folder (it may lead anywhere or never end); a name is not UTF-8, or not every file system
/// accepts it.
fn listed(root: &Path) -> Result<BTreeMap<String, PathBuf>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![(root.to_owned(), String::new())];
    while let Some((folder, below)) = folders.pop() {
        let fail = |source| Error::io(&folder, source);
        for entry in std::fs::read_dir(&folder).map_err(fail)? {
            let entry = entry.map_err(fail)?;
            let (path, kind) = (entry.path(), entry.file_type().map_err(fail)?);
            let refused = |problem: &str| Err(Error::trace(&path, 0, "", format!("it cannot be packed: {problem}")));
            let Ok(name) = entry.file_name().into_string() else { return refused("its name is not valid UTF-8") };
            if !kind.is_file() && !kind.is_dir() {
                return refused("it is a link or a device, not a regular file");
            }
            if name.starts_with('.') || is_temporary(&name) || (name == "slurm" && below.is_empty()) {
                continue;
            }
            let name = format!("{below}{name}");
            if let Some(problem) = archive::problem(&name) {
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

impl BundleContents {
    /// Adds the complete runs of a plan with accelerators, which its manifest does not list: receipts and tables.
    fn stored_runs(&mut self, folder: &Path, records: &mut Records) -> Result<()> {
        for place in places(folder)? {
            for name in receipts(&place)? {
                let id = name.trim_end_matches(".json");
                let ReceiptState::Whole(receipt) = find::<AcceleratorSummary>(&place, id) else { continue };
                let text = sealed::text(&Receipt::path(&place, id)).ok().flatten();
                records.add(folder, &place, &format!("{RECEIPTS}/{name}"), text.map(|text| digest_of(text.as_bytes())));
                receipt
                    .tables
                    .into_iter()
                    .for_each(|(table, digest)| records.add(folder, &place, &table, Some(digest)));
                self.runs += 1;
            }
        }
        Ok(())
    }

    /// Checks the runs of a cell and adds the files of complete runs to `records`. A damaged run is reported only if it may be one of the
    /// missing runs; otherwise it may be from an earlier plan.
    fn cell(&mut self, folder: &Path, cell: &str, records: &mut Records) -> Result<()> {
        let place = of_cell(folder, cell);
        let of = if cell.is_empty() { String::new() } else { format!("{cell}, ") };
        if !place.is_dir() {
            self.missing.add(format!("{of}all runs"));
            return Ok(());
        }
        let contents = Contents::read(&place)?;
        let seeds = contents.seeds.len() as u64;
        let policies: HashSet<&str> = contents.policies.iter().map(String::as_str).collect();
        let (mut there, mut broken) = (HashMap::<String, HashSet<u64>>::new(), Vec::new());
        for name in receipts(&place)? {
            let id = name.trim_end_matches(".json");
            let text = sealed::text(&Receipt::path(&place, id)).ok().flatten();
            let planned = |of: &Receipt| policies.contains(of.summary.policy.as_str()) && of.summary.run < seeds;
            match Receipt::find(&place, id) {
                ReceiptState::Whole(receipt) if planned(&receipt) => {
                    records.add_run(folder, (&place, &contents), (&name, text.as_deref().unwrap_or_default()));
                    let digest = text.map(|text| digest_of(text.as_bytes()));
                    records.add(folder, &place, &format!("{RECEIPTS}/{name}"), digest);
                    for (table, digest) in receipt.tables {
                        records.add(folder, &place, &table, Some(digest));
                    }
                    there.entry(receipt.summary.policy).or_default().insert(receipt.summary.run);
                }
                ReceiptState::Broken(why) => broken.push((text, why)),
                ReceiptState::Whole(_) | ReceiptState::Missing => {}
            }
        }
        let runs: usize = there.values().map(HashSet::len).sum();
        self.runs += runs;
        let missing = policies.len().saturating_mul(contents.seeds.len()) - runs;
        if missing == 0 {
            return Ok(());
        }
        self.missing.parts = self.missing.parts.saturating_add(missing);
        let is_there = |policy: &str, run: u64| there.get(policy).is_some_and(|runs| runs.contains(&run));
        for (text, why) in broken {
            let receipt: Option<Receipt> = text.and_then(|text| serde_json::from_str(&text).ok());
            let of_another = |of: &Receipt| {
                !policies.contains(of.summary.policy.as_str()) || is_there(&of.summary.policy, of.summary.run)
            };
            if !receipt.is_some_and(|receipt| of_another(&receipt)) {
                self.missing.add_missing(format!("{of}{why}"));
            }
        }
        let mut named = HashSet::new();
        let each = contents.policies.iter().filter(|policy| named.insert(policy.as_str()));
        let each = each.flat_map(|policy| (0..seeds).map(move |run| (policy, run)));
        let each = each.filter(|(policy, run)| !is_there(policy, *run));
        each.take(EXAMPLES).for_each(|(policy, run)| self.missing.add_missing(format!("{of}{policy} run {run}")));
        Ok(())
    }
}
