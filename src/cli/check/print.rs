//! Prints findings as tables and as JSON.

use std::path::Path;

use serde_json::{Map, Value as Json, json};

use super::super::printout::Printout;
use super::super::screen::{Alignment, Grid, GridCell, Tone, is_wide, paragraphs};
use super::{Matrix, PolicyColumn};
use crate::error::{Error, Result};
use crate::fair::{self, Instance, Mechanism, Number, OnBlocked, Tasks};
use crate::output::file::WrittenFile;
use crate::output::shell::quoted;
use crate::policy::{BUILT_IN, PolicySpec};
use crate::properties::{Change, Counterexample, Finding, Phase, Property, Reading, Requirement};

/// Formats tables of all domains, then all counterexamples.
pub(super) fn text(requirements: &[Requirement], matrices: &[Matrix], whole: Option<OnBlocked>) -> Printout {
    let mut text = Printout::default();
    for matrix in matrices {
        let domain = matrix.search.domain;
        text += format!("{} ({})\n", capital(domain.meaning()), domain.name());
        text += table(requirements, &matrix.columns);
        for line in matrix.search.describe() {
            text += paragraphs(&format!("  tried: {line}"));
        }
        text += "\n";
    }
    let mut told: Vec<(&str, &Counterexample)> = Vec::new();
    for matrix in matrices {
        for column in &matrix.columns {
            for (finding, files) in column.findings.iter().zip(&column.files) {
                let Some(found) = &finding.counterexample else { continue };
                // Several classes of instances may have the same smallest counterexample; it is shown once.
                let known = |(policy, other): &(&str, &Counterexample)| {
                    *policy == column.policy
                        && other.requirement == found.requirement
                        && (&other.draft, &other.change) == (&found.draft, &found.change)
                };
                if told.iter().any(known) {
                    continue;
                }
                told.push((&column.policy, found));
                text += counterexample(column, found, files, whole);
            }
        }
    }
    if told.is_empty() {
        text += "No counterexample was found.\n";
    } else if matrices.iter().all(|matrix| matrix.columns.iter().all(|column| column.files.iter().all(Vec::is_empty))) {
        text += "--write DIR writes these instances as files for `plimsoll solve`.\n";
    }
    text
}

fn table(requirements: &[Requirement], columns: &[PolicyColumn]) -> Grid {
    let names = std::iter::once(String::new()).chain(columns.iter().map(|column| column.policy.clone()));
    let row = |(nth, requirement): (usize, &Requirement)| -> Vec<GridCell> {
        let cells = columns.iter().map(|column| cell(&column.findings[nth]));
        std::iter::once(requirement.title().into()).chain(cells).collect()
    };
    let rows = requirements.iter().enumerate().map(row).collect();
    Grid::new(names.map(|name| (name, Alignment::Left)).collect(), rows)
}

/// Returns the outcome, with `--wide` also the number of tried instances.
fn cell(finding: &Finding) -> GridCell {
    match (&finding.counterexample, finding.cases) {
        (Some(_), _) => GridCell::toned("fails".to_owned(), Tone::Bad),
        (None, 0) => "-".to_owned().into(),
        (None, _) if is_wide() => GridCell::toned(format!("holds ({})", finding.instances), Tone::Good),
        (None, _) => GridCell::toned("holds".to_owned(), Tone::Good),
    }
}

fn counterexample(
    column: &PolicyColumn,
    found: &Counterexample,
    files: &[WrittenFile],
    whole: Option<OnBlocked>,
) -> String {
    let title = found.requirement.title();
    let title = format!("{}: {} fails ({})", column.policy, lower(&title), found.domain.meaning());
    let mut text = paragraphs(&title);
    for line in found.lines() {
        text += &paragraphs(&format!("  {line}"));
    }
    let worlds =
        [(&found.instance, &found.tasks)].into_iter().chain(found.after.iter().map(|(then, tasks)| (then, tasks)));
    for (file, world) in files.iter().map(|file| &file.path).zip(worlds) {
        // Users copy the command, so its line is not broken.
        text += &format!("  {}\n", replay(file, &column.policy, world, whole));
    }
    text.push('\n');
    text
}

/// Returns the command that solves an instance again. With whole tasks, `solve` supports only share-ordered and target policies, and may
/// break ties differently. The text has the command only if it computes the same tasks, otherwise only the file of the instance.
fn replay(file: &Path, policy: &str, world: (&Instance, &Tasks), whole: Option<OnBlocked>) -> String {
    let file = quoted(&file.display().to_string());
    let command = format!("replay: plimsoll solve {file} --policy {}", quoted(policy));
    let Some(on_blocked) = whole else { return command };
    let (instance, tasks) = world;
    let same = |spec: PolicySpec| {
        let whole = spec.whole_mechanism(instance.resources(), on_blocked, fair::Ties::default());
        whole.and_then(|whole| whole.allocate(instance)).is_ok_and(|allocation| allocation.tasks == *tasks)
    };
    match BUILT_IN.parse(policy).is_ok_and(same) {
        true => format!("{command} --whole-tasks --on-blocked {}", on_blocked.name()),
        false => format!("instance: {file}"),
    }
}

fn capital(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}

fn lower(text: &str) -> String {
    // The name of a person keeps its capital letter.
    if text.starts_with("Pareto") { text.to_owned() } else { text.to_lowercase() }
}

/// Describes the cases that policies could not solve.
pub(super) fn unsolved(matrices: &[Matrix]) -> Vec<String> {
    let mut notes = Vec::new();
    for matrix in matrices {
        for column in &matrix.columns {
            let most =
                column.findings.iter().filter(|finding| finding.unsolved > 0).max_by_key(|finding| finding.unsolved);
            if let Some(Finding { requirement, unsolved, unsolved_why, .. }) = most {
                let why = unsolved_why.as_deref().unwrap_or("no reason was given");
                notes.push(format!(
                    "{}, {}: it has no allocation in {unsolved} cases ({}), the first: {why}",
                    column.policy,
                    matrix.search.domain.meaning(),
                    lower(&requirement.title())
                ));
            }
        }
    }
    notes
}

/// Formats one object per domain, policy and property.
pub(super) fn json(matrices: &[Matrix]) -> Result<String> {
    let mut objects = Vec::new();
    for matrix in matrices {
        for column in &matrix.columns {
            for (finding, files) in column.findings.iter().zip(&column.files) {
                objects.push(one(matrix, column, finding, files));
            }
        }
    }
    let text = serde_json::to_string_pretty(&objects).map_err(|error| Error::output("standard output", error))?;
    Ok(text + "\n")
}

fn one(matrix: &Matrix, column: &PolicyColumn, finding: &Finding, files: &[WrittenFile]) -> Json {
    let reading = match finding.requirement.reading {
        Reading::Divisible => "divisible",
        Reading::Whole => "whole",
        Reading::UpToOneTask => "up-to-one-task",
        Reading::UpToOneOwnTask => "up-to-one-own-task",
    };
    let result = match (&finding.counterexample, finding.cases) {
        (Some(_), _) => "fails",
        (None, 0) => "undecided",
        (None, _) => "holds",
    };
    let mut object = Map::new();
    object.insert("policy".to_owned(), column.policy.clone().into());
    object.insert("domain".to_owned(), matrix.search.domain.name().into());
    object.insert("property".to_owned(), finding.requirement.property.name().into());
    object.insert("reading".to_owned(), reading.into());
    object.insert("result".to_owned(), result.into());
    object.insert("instances".to_owned(), finding.instances.into());
    object.insert("cases".to_owned(), finding.cases.into());
    object.insert("unsolved".to_owned(), finding.unsolved.into());
    object.insert("searched".to_owned(), matrix.search.describe().into());
    object.insert("seed".to_owned(), matrix.search.seed.into());
    if let Some(found) = &finding.counterexample {
        object.insert("counterexample".to_owned(), example(found, files));
    }
    Json::Object(object)
}

fn example(found: &Counterexample, files: &[WrittenFile]) -> Json {
    let phase = match found.phase {
        Phase::Grid => "grid",
        Phase::Random => "random",
        Phase::Climb => "climb",
    };
    let user = |user: usize| found.instance.users()[user].name.as_str();
    let change = found.change.as_ref().map(|change| match change {
        Change::Claim { user: liar, .. } => json!({ "kind": "lie", "user": user(*liar) }),
        Change::Leave { user: gone } => json!({ "kind": "leave", "user": user(*gone) }),
        Change::Grow { resource, capacity } => {
            json!({ "kind": "growth", "resource": found.instance.resources()[*resource], "capacity": capacity })
        }
    });
    let mut object = Map::new();
    object.insert("found_by".to_owned(), phase.into());
    object.insert("amount".to_owned(), found.judgement.amount.into());
    if let Some(loser) = found.judgement.loser {
        object.insert("loser".to_owned(), user(loser).into());
    }
    object.insert("sentence".to_owned(), found.verdict().into());
    if let Some(change) = change {
        object.insert("change".to_owned(), change);
    }
    object.insert("instance".to_owned(), instance(&found.instance, &found.tasks));
    if let Some((after, tasks)) = &found.after {
        let name = if matches!(found.requirement.property, Property::StrategyProofness) { "lie" } else { "after" };
        object.insert(name.to_owned(), instance(after, tasks));
    }
    if !files.is_empty() {
        let names: Vec<String> = files.iter().map(|file| file.path.display().to_string()).collect();
        object.insert("files".to_owned(), names.into());
    }
    Json::Object(object)
}

/// Returns an instance in the format of `plimsoll solve`, and the allocation of each user.
fn instance(instance: &Instance, tasks: &Tasks) -> Json {
    let number = |value: &crate::fair::Exact| match value.parts() {
        Some((whole, 1)) => Json::from(whole),
        _ => Json::from(value.float()),
    };
    let table = |values: &[crate::fair::Exact]| -> Json {
        instance.resources().iter().cloned().zip(values.iter().map(number)).collect::<Map<String, Json>>().into()
    };
    let floats = tasks.floats();
    let users = instance.users().iter().enumerate().map(|(at, user)| {
        let mut object = Map::new();
        object.insert("name".to_owned(), user.name.clone().into());
        object.insert("demand".to_owned(), table(&user.demand));
        object.insert("weight".to_owned(), user.one_weight().map_or_else(|| table(&user.weight), number));
        if let Some(tasks) = &user.tasks {
            object.insert("tasks".to_owned(), number(tasks));
        }
        object.insert("given".to_owned(), floats[at].into());
        if let Some(exact) = tasks.exact() {
            object.insert("given_exact".to_owned(), exact[at].to_string().into());
        }
        Json::Object(object)
    });
    json!({ "capacity": table(instance.capacity()), "user": users.collect::<Vec<Json>>() })
}
