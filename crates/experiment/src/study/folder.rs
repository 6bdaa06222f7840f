//! The description of a study in its results folder, and the check that the folder has no other results.

use std::collections::BTreeSet;
use std::path::Path;

use super::identity::{Digests, digests_by_key, ids};
use super::{Study, shown};
use crate::plan::Plan;
use plimsoll_base::error::{Error, Result};
use plimsoll_results::folder::{Contents, StudyRecord, of_cell, receipts};
use plimsoll_results::ownership::{ADVICE, of_another_plan, places, plan_there};
use plimsoll_results::provenance::{COMMIT, VERSION};
use plimsoll_results::schema;
use plimsoll_store::sealed::Found;

/// Returns the description of a study.
pub fn described(study: &Study) -> StudyRecord {
    let cell = |plan: &Plan| (plan.cell.clone(), plan.axes.iter().map(|(_, value)| shown(value)).collect());
    StudyRecord {
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

/// Checks that a folder has no results of another command or plan, or of a replay of another file. The commands `run` and `replay` require
/// this. A plan with an edited input file is the same plan, and its runs are repeated. Errors: [`Error::Mismatch`] with the difference, or
/// if the record that would identify the plan is damaged and no run belongs to this plan; [`Error::Io`].
pub fn check(study: &Study, folder: &Path) -> Result<()> {
    match plan_there(folder)? {
        Found::Whole(there) if there != study.text => return Err(other_results(study, folder, &there)?),
        Found::Damaged(error) if !has_runs_of(study, folder)? => {
            let problem = format!("{error}\nNo run in this folder belongs to this plan. {ADVICE}");
            return Err(Error::Mismatch { problem });
        }
        _ => {}
    }
    let mut replays = study.cells.iter().enumerate().filter(|(_, plan)| is_replay(&plan.command));
    replays.try_for_each(|(at, plan)| {
        let place = of_cell(folder, &plan.cell);
        check_inputs(plan, &study.files, &place).map_err(|error| study.located_input(at, error))
    })
}

/// Returns the error for results of another plan, or of another command if the old or the new command is a replay.
fn other_results(study: &Study, folder: &Path, there: &str) -> Result<Error> {
    let command = Contents::read(folder).map(|contents| contents.command).unwrap_or_default();
    if is_replay(&command) != study.cells.iter().any(|plan| is_replay(&plan.command)) {
        let of = if command.is_empty() {
            "of a plan with a sweep or without runs".to_owned()
        } else {
            format!("of `{command}`")
        };
        let problem = format!("{} has results {of}. {ADVICE}", folder.display());
        return Ok(Error::Mismatch { problem });
    }
    Ok(of_another_plan(folder, there, &study.text))
}

/// Returns whether a command is a replay.
fn is_replay(command: &str) -> bool {
    command.starts_with("plimsoll replay ")
}

/// Checks that results in the folder of a cell were made from the input files of a plan.
fn check_inputs(plan: &Plan, digests: &Digests, place: &Path) -> Result<()> {
    let Ok(there) = Contents::read(place) else { return Ok(()) };
    let refuse = |what: String| Err(Error::Mismatch { problem: format!("{} {what}. {ADVICE}", place.display()) });
    let Some(inputs) = &there.inputs else {
        // An earlier version of the program, which recorded no digests, wrote these results.
        let is_other = there.command != plan.command;
        return if is_other { refuse(format!("has results of `{}`", there.command)) } else { Ok(()) };
    };
    let own = digests_by_key(plan, digests)?;
    let keys: BTreeSet<&String> = own.keys().chain(inputs.keys()).collect();
    for key in keys {
        match (own.get(key), inputs.get(key)) {
            (Some(Some(own)), Some(Some(there))) if own == there => {}
            (Some(None), _) | (_, Some(None)) => {
                return refuse(format!(
                    "has results already, and whether {key} is the same cannot be checked: standard input and pipes \
                     can be read only once"
                ));
            }
            _ => return refuse(format!("has results of another file for {key}, with other content")),
        }
    }
    Ok(())
}

/// Returns whether the folder has runs of this study or no runs. Errors: [`Error::Io`].
fn has_runs_of(study: &Study, folder: &Path) -> Result<bool> {
    let mut none = true;
    for place in places(folder)? {
        none &= receipts(&place)?.is_empty();
    }
    for plan in &study.cells {
        let there = receipts(&of_cell(folder, &plan.cell))?;
        if !there.is_empty()
            && ids(plan, &study.files)?.iter().flatten().any(|id| there.contains(&format!("{id}.json")))
        {
            return Ok(true);
        }
    }
    Ok(none)
}

/// Writes the description of a cell's folder if it is missing or different.
pub fn describe(plan: &Plan, folder: &Path, seeds: usize, digests: &Digests) -> Result<()> {
    let contents = Contents { inputs: Some(digests_by_key(plan, digests)?), ..contents(plan, seeds) };
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
        slowdown_resources: Some(plan.slowdown_resources()),
        command: plan.command.clone(),
        plan: plan.text.clone(),
        inputs: None,
    }
}
