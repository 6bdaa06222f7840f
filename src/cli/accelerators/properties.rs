//! `plimsoll check --accelerators`: searches counterexamples to the fairness properties of the policies for accelerators.

use std::path::{Path, PathBuf};

use plimsoll_rounds::mechanism::Targets;
use plimsoll_rounds::policies::{POLICIES, PolicyOptions, PolicyRow};
use plimsoll_rounds::properties::{
    ShareDomain, ShareExample, ShareFinding, ShareProperty, ShareSearch, StaticInstance, fraction, search,
};
use rayon::prelude::*;
use serde_json::{Value as Json, json};

use super::super::printout::Printout;
use super::super::progress::Steps;
use super::super::screen::{Alignment, Grid, GridCell, Tone, paragraphs};
use super::super::{Context, Format, pool, threads};
use crate::control::study::Watcher;
use crate::error::{Error, Result, alternatives, did_you_mean, each};
use crate::experiment::accelerators::policy_row;
use crate::output::file::write_whole;
use crate::output::folder::check_output;

/// The request.
pub struct ShareCheck<'a> {
    /// Names of policies; empty: all without space sharing.
    pub policies: &'a [String],
    /// Names of properties; empty: all.
    pub properties: &'a [String],
    /// Names of classes of instances, or `all`.
    pub domains: &'a [String],
    /// `quick`, `normal` or `thorough`.
    pub effort: &'a str,
    /// The seed of the random instances.
    pub seed: u64,
    /// The folder of the counterexamples.
    pub write: Option<&'a Path>,
    /// The number of threads.
    pub jobs: Option<usize>,
    /// The format of the result.
    pub format: Format,
}

/// The random instances of each level of effort.
const EFFORTS: [(&str, usize); 3] = [("quick", 200), ("normal", 2_000), ("thorough", 20_000)];

/// The findings on the policies in one class of instances.
struct ShareMatrix {
    of: ShareSearch,
    columns: Vec<(&'static PolicyRow, Vec<ShareFinding>)>,
}

fn named<T: Copy>(key: &str, name: &str, values: &[(&str, T)]) -> Result<T> {
    values.iter().find(|(known, _)| *known == name).map(|(_, value)| *value).ok_or_else(|| {
        let names = values.iter().map(|(name, _)| *name);
        let expected = alternatives(name, names.clone(), "") + &did_you_mean(name, names);
        Error::plan(key, format!("'{name}'"), expected)
    })
}

/// Searches and prints. Errors: unknown names, a policy with space sharing, and those of the output.
pub fn check(request: &ShareCheck<'_>, context: &Context) -> Result<()> {
    let rows: Vec<&'static PolicyRow> = match request.policies {
        [] => POLICIES.iter().filter(|row| !row.packing).copied().collect(),
        names => each(names, |name| policy_row("--policy", name))?,
    };
    if let Some((at, row)) = rows.iter().enumerate().find(|(_, row)| row.packing) {
        let expected = "a policy without space sharing: the properties are those of single jobs";
        return Err(Error::plan("--policy", format!("'{}'", row.name), expected).item(at));
    }
    let all = ShareProperty::ALL.map(|(name, property, _)| (name, property));
    let properties = match request.properties {
        [] => all.map(|(_, property)| property).to_vec(),
        names => each(names, |name| named("--property", name, &all))?,
    };
    let domains = ShareDomain::ALL.map(|(name, domain, _)| (name, Some(domain)));
    let with_all: Vec<(&str, Option<ShareDomain>)> = domains.into_iter().chain([("all", None)]).collect();
    let chosen = each(request.domains, |name| named("--domain", name, &with_all))?;
    let domains: Vec<ShareDomain> = match chosen.contains(&None) {
        true => ShareDomain::ALL.iter().map(|(_, domain, _)| *domain).collect(),
        false => chosen.into_iter().flatten().collect(),
    };
    let random = named("--effort", request.effort, &EFFORTS)?;
    let pool = pool(threads(request.jobs)?)?;
    let steps = Steps::new(context.quiet, "policies", &context.stop);
    steps.planned(domains.len() * rows.len());
    let mut matrices = Vec::new();
    for domain in domains {
        let of = ShareSearch { domain, random, seed: request.seed };
        let column = |row: &&'static PolicyRow| {
            let findings = search(row, &PolicyOptions::default(), &properties, of, &|| steps.go_on())?;
            steps.done();
            Ok((*row, findings))
        };
        let columns = pool.install(|| rows.par_iter().map(column).collect::<Result<Vec<_>>>())?;
        matrices.push(ShareMatrix { of, columns });
    }
    steps.clear();
    let mut folders = Vec::new();
    if let Some(folder) = request.write {
        check_output("--write", folder)?;
        for (matrix, row, example) in examples(&matrices) {
            folders.push(write(folder, matrix, row, example)?);
        }
    }
    match request.format {
        Format::Json => context.json(&in_json(&matrices)),
        format => context.out(&text(&properties, &matrices, &folders).render(format)),
    }
}

/// Returns all counterexamples.
fn examples(matrices: &[ShareMatrix]) -> impl Iterator<Item = (&ShareMatrix, &'static PolicyRow, &ShareExample)> {
    matrices.iter().flat_map(|matrix| {
        matrix.columns.iter().flat_map(move |(row, findings)| {
            findings.iter().filter_map(move |finding| Some((matrix, *row, finding.example.as_ref()?)))
        })
    })
}

fn text(properties: &[ShareProperty], matrices: &[ShareMatrix], folders: &[PathBuf]) -> Printout {
    let mut text = Printout::default();
    for matrix in matrices {
        let domain = matrix.of.domain;
        text += format!("{} ({})\n", capital(domain.meaning()), domain.name());
        let head = std::iter::once("policy").chain(properties.iter().map(|property| property.title()));
        let cell = |finding: &ShareFinding| match (&finding.example, finding.instances) {
            (Some(_), _) => GridCell::toned("fails".to_owned(), Tone::Bad),
            (None, 0) => "-".to_owned().into(),
            (None, _) => GridCell::toned("holds".to_owned(), Tone::Good),
        };
        let row = |(row, findings): &(&PolicyRow, Vec<ShareFinding>)| -> Vec<GridCell> {
            std::iter::once(row.name.to_owned().into()).chain(findings.iter().map(cell)).collect()
        };
        let rows = matrix.columns.iter().map(row).collect();
        text += Grid::new(head.map(|name| (name.to_owned(), Alignment::Left)).collect(), rows);
        text += paragraphs(&format!(
            "  tried: every instance on a grid of two and three jobs on two types, and {} random instances (seed {})",
            matrix.of.random, matrix.of.seed
        ));
        let unsolved: usize = matrix.columns.iter().flat_map(|(_, of)| of).map(|finding| finding.unsolved).sum();
        if unsolved > 0 {
            text += paragraphs(&format!("  without a result: {unsolved} instances (`-`: all)"));
        }
        text += "\n";
    }
    let mut shown: Vec<(&str, &ShareExample)> = Vec::new();
    for (at, (_, row, example)) in examples(matrices).enumerate() {
        if shown.iter().any(|(name, other)| *name == row.name && *other == example) {
            continue;
        }
        shown.push((row.name, example));
        text += format!("{}: {} fails\n", row.name, example.violation.property.name());
        text += example_grid(&example.instance, &example.targets);
        text += paragraphs(&format!("  {}", example.violation.sentence));
        if let Some(folder) = folders.get(at) {
            text += format!("  plimsoll solve {}\n", folder.join(PLAN).display());
        }
        text += "\n";
    }
    if shown.is_empty() {
        text += "No counterexample was found.\n";
    } else if folders.is_empty() {
        text += "--write DIR writes these instances as plans for `plimsoll solve`.\n";
    }
    text
}

/// Returns the rates and the fractions of an instance: one row per job.
fn example_grid(instance: &StaticInstance, targets: &Targets) -> Grid {
    let right = |name: String| (name, Alignment::Right);
    let mut head: Vec<_> = ["job", "scale", "weight", "iterations"].map(|name| right(name.to_owned())).to_vec();
    for (j, count) in instance.capacity.iter().enumerate() {
        head.push(right(format!("{} (x{count})", worker(j))));
        head.push(right(format!("time on {}", worker(j))));
    }
    let rows = instance.jobs.iter().enumerate().map(|(at, job)| {
        let mut cells = vec![at.to_string(), job.scale.to_string(), job.weight.to_string(), job.iterations.to_string()];
        for (j, rate) in job.rates.iter().enumerate() {
            cells.push(rate.to_string());
            cells.push(format!("{:.4}", fraction(targets.alone[at * instance.capacity.len() + j])));
        }
        cells
    });
    Grid::new(head, rows.collect())
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

/// Returns the name of a worker type.
fn worker(j: usize) -> String {
    ["a", "b", "c"].get(j).map_or_else(|| j.to_string(), |name| (*name).to_owned())
}

/// The file of a written plan.
const PLAN: &str = "plan.toml";

/// Writes a counterexample as a plan with its table and list; returns their folder.
fn write(folder: &Path, matrix: &ShareMatrix, row: &PolicyRow, example: &ShareExample) -> Result<PathBuf> {
    let property = example.violation.property.name();
    let name = format!("{}-{property}-{}", row.name, matrix.of.domain.name());
    let folder = folder.join(&name);
    std::fs::create_dir_all(&folder).map_err(|source| Error::io(&folder, source))?;
    let mut table = "job_type,worker_type,scale_factor,iterations_per_s\n".to_owned();
    let mut jobs = "job,arrival_s,job_type,scale_factor,iterations,weight,entity\n".to_owned();
    for (at, job) in example.instance.jobs.iter().enumerate() {
        for (j, rate) in job.rates.iter().enumerate() {
            table += &format!("job-{at},{},{},{rate}\n", worker(j), job.scale);
        }
        jobs += &format!("{at},0,job-{at},{},{},{},{at}\n", job.scale, job.iterations, job.weight);
    }
    let machines = example.instance.capacity.iter().enumerate().map(|(j, count)| format!("{count}x{}", worker(j)));
    let plan = format!(
        "# {}\nname = \"{name}\"\n[accelerators]\npolicies = [\"{}\"]\nthroughputs = \"throughputs.csv\"\n\
         jobs = [\"jobs.csv\"]\nmachines = \"{}\"\n",
        example.violation.sentence,
        row.name,
        machines.collect::<Vec<_>>().join(",")
    );
    for (file, text) in [("throughputs.csv", table), ("jobs.csv", jobs), (PLAN, plan)] {
        write_whole(&folder.join(file), text.as_bytes())?;
    }
    Ok(folder)
}

fn in_json(matrices: &[ShareMatrix]) -> Json {
    let finding = |finding: &ShareFinding| {
        let example = finding.example.as_ref().map(|example| {
            let n = example.instance.capacity.len();
            let jobs = example.instance.jobs.iter().enumerate().map(|(at, job)| {
                let own = &example.targets.alone[at * n..(at + 1) * n];
                json!({ "rates": job.rates, "scale_factor": job.scale, "weight": job.weight,
                        "iterations": job.iterations,
                        "fractions": own.iter().map(|&x| fraction(x)).collect::<Vec<_>>() })
            });
            json!({ "accelerators": example.instance.capacity, "jobs": jobs.collect::<Vec<_>>(),
                    "amount": example.violation.amount, "violation": example.violation.sentence })
        });
        json!({ "property": finding.property.name(), "instances": finding.instances,
                "without_result": finding.unsolved, "counterexample": example })
    };
    let column = |(row, findings): &(&PolicyRow, Vec<ShareFinding>)| json!({ "policy": row.name, "findings": findings.iter().map(finding).collect::<Vec<_>>() });
    let matrix = |matrix: &ShareMatrix| {
        json!({ "domain": matrix.of.domain.name(), "random_instances": matrix.of.random, "seed": matrix.of.seed,
                "policies": matrix.columns.iter().map(column).collect::<Vec<_>>() })
    };
    Json::Array(matrices.iter().map(matrix).collect())
}
