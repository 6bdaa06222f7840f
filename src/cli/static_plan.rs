//! The common part of plans without runs, with a table `[check]`, `[solve]`, `[failover]` or `[accelerators]`.
//!
//! The module reads the common keys, locks the results folder, records the provenance and the manifest, and writes figures and the report.
//! The caller interprets the table and computes the results.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde::de::DeserializeOwned;

use super::Context;
use super::run::{provenance, relative_path};
use crate::error::Result;
use crate::experiment::accelerators::AcceleratorStudy;
use crate::experiment::failover::FailoverPlan;
use crate::experiment::study::Plain;
use crate::output::file::{WrittenFile, write_whole};
use crate::output::files;
use crate::output::folder::check_name;
use crate::output::gallery::{self, Drawn};
use crate::output::html::{self, HtmlTable, Report};
use crate::output::lock::Lock;
use crate::output::manifest::{self, Manifest};
use crate::output::ownership::{claim, clear, remove_empty};
use crate::output::page::inline;
use crate::output::paper::Paper;
use crate::output::provenance::Provenance;
use crate::output::sealed;
use crate::output::shell::quoted;
use crate::tree::Place;

/// The description of a plan without runs.
#[derive(Clone, Debug)]
pub struct StaticPlan {
    /// The experiment's name: the folder under `results/`.
    pub name: String,
    /// The question that the plan answers.
    pub question: Option<String>,
    /// The plan as text.
    pub text: String,
    /// The size of the figures.
    pub paper: Paper,
    /// The plan's file.
    pub file: PathBuf,
    /// The changes that were applied to the plan (`--set`).
    pub set: Vec<String>,
    /// The files that the plan reads, by their names in the plan, with their digests.
    pub inputs: BTreeMap<String, String>,
    /// The seeds of its random parts.
    pub seeds: Vec<u64>,
}

/// A results folder that is locked for a plan.
pub struct FolderClaim {
    _lock: Lock,
    /// Whether results of another plan are replaced.
    replaces: bool,
}

/// Reads a plan with the keys `name`, `question` and one table. The changes `set` (`key=value`) are applied first; messages show `example`
/// as an example of a change. `check` checks the table.
///
/// Errors: [`Error::Placed`] with line and column.
pub fn read<T: DeserializeOwned, C>(
    text: &Place,
    (set, example): (&[String], &str),
    check: impl FnOnce(T) -> Result<C>,
    name_of: impl FnOnce(&T) -> (String, Option<String>),
) -> Result<(StaticPlan, C)> {
    let plain = Plain::read(text, set, example)?;
    let file: T = plain.parse()?;
    let (name, question) = name_of(&file);
    check_name(&name).map_err(|error| plain.located(error))?;
    let checked = check(file).map_err(|error| plain.located(error))?;
    let (file, set, inputs, seeds) = (text.file().to_owned(), set.to_vec(), BTreeMap::new(), Vec::new());
    Ok((StaticPlan { name, question, text: plain.text, paper: plain.paper, file, set, inputs, seeds }, checked))
}

impl StaticPlan {
    /// Creates the description of a plan with a table `[failover]`.
    pub fn of_failover(plan: &FailoverPlan, path: &Path, set: &[String]) -> StaticPlan {
        StaticPlan {
            name: plan.name.clone(),
            question: plan.question.clone(),
            text: plan.text.clone(),
            paper: plan.paper,
            file: path.to_owned(),
            set: set.to_vec(),
            inputs: BTreeMap::new(),
            seeds: Vec::new(),
        }
    }

    /// Creates the description of a plan with a table `[accelerators]`.
    pub fn of_accelerators(study: &AcceleratorStudy) -> StaticPlan {
        StaticPlan {
            name: study.name.clone(),
            question: study.question.clone(),
            text: study.text.clone(),
            paper: study.paper,
            file: study.file.clone(),
            set: study.set.clone(),
            inputs: study.inputs.clone(),
            seeds: Vec::new(),
        }
    }

    /// Returns the provenance of the files of the results.
    pub fn provenance(&self) -> Provenance {
        let about = Provenance::of_plan(&self.text).with_seeds(&self.seeds);
        let inputs: Vec<String> = self.inputs.iter().map(|(name, digest)| format!("{name} {digest}")).collect();
        if inputs.is_empty() { about } else { about.with("inputs_blake3", inputs.join("; ")) }
    }

    /// Writes figures and the report with these tables to a folder, in addition to the existing files `made`, and records all of them.
    pub fn report(
        &self,
        folder: &Path,
        (mut drawn, mut made): (Vec<Drawn>, Vec<WrittenFile>),
        tables: Vec<HtmlTable>,
        (context, started): (&Context, Instant),
    ) -> Result<()> {
        drawn.iter_mut().for_each(|one| one.svg = self.paper.zoomed(std::mem::take(&mut one.svg)));
        let about = self.provenance();
        made.extend(gallery::write(folder, &drawn, &about)?);
        let file = format!("{}.toml", self.name);
        let page = Report {
            title: self.name.clone(),
            question: self.question.clone(),
            summary: tables,
            figures: drawn.iter().map(inline).collect(),
            plan_toml: self.text.clone(),
            reproduce: vec![format!("# with the plan below as {file}"), format!("plimsoll run {}", quoted(&file))],
            provenance: about.rows(),
            ..Report::default()
        };
        let report = write_whole(&folder.join(files::REPORT), html::render(&page).as_bytes())?;
        made.push(report.clone());
        self.record_files(folder, &made)?;
        let seconds = started.elapsed().as_secs_f64();
        context.print_message(&format!(
            "figures in {} ({seconds:.1} s), report in {}",
            folder.display(),
            report.path.display()
        ));
        Ok(())
    }

    /// Records how the files are generated, before the first file gets its final name, so that the folder is recognised as results.
    pub fn begin(
        &self,
        (folder, claim): (&Path, &FolderClaim),
        (context, threads, started): (&Context, usize, Instant),
    ) -> Result<()> {
        if claim.replaces {
            let removed = clear(folder)?;
            remove_empty(folder, &removed);
        }
        self.record_command((folder, files::RUN), (context, threads, started), serde_json::Map::new())
    }

    /// Writes the record `name` (`run.json`) of the facts that differ between executions, with the facts `more`.
    pub fn record_command(
        &self,
        (folder, name): (&Path, &str),
        (context, threads, started): (&Context, usize, Instant),
        more: serde_json::Map<String, serde_json::Value>,
    ) -> Result<()> {
        let place = relative_path(folder, self.file.parent().unwrap_or(Path::new("")));
        let mut facts = serde_json::json!({ "plan": self.file, "set": self.set, "folder": place });
        if let Some(facts) = facts.as_object_mut() {
            facts.extend(more);
        }
        sealed::write(&folder.join(name), &provenance(context, threads, started, facts)).map(drop)
    }

    /// Records the generated files.
    pub fn record_files(&self, folder: &Path, made: &[WrittenFile]) -> Result<()> {
        let (name, question, plan) = (self.name.clone(), self.question.clone(), self.text.clone());
        let about = manifest::Experiment { name, question, plan, inputs: self.inputs.clone(), command: None };
        Manifest::renew(folder, Some(about), &[""], made)
    }

    /// Locks a folder for the results. Errors: another process writes to it; it contains files that are not Plimsoll's, or, without
    /// `restart`, results of another plan.
    pub fn claim(&self, folder: &Path, restart: bool) -> Result<FolderClaim> {
        let (lock, replaces) = claim(folder, &self.text, restart, false)?;
        Ok(FolderClaim { _lock: lock, replaces })
    }
}
