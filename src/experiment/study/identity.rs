//! The identity of a run, in a name: a digest of everything that its results depend on.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::error::{Error, Result};
use crate::experiment::plan::{Plan, WorkloadPlan};
use crate::output::provenance::{COMMIT, VERSION, program};
use crate::output::schema;
use crate::workload::Input;

/// Keys of a plan that no single run depends on: names, and what stands for many runs.
const MANY: [&str; 6] = ["name", "question", "policies", "baseline", "seeds", "seed"];

/// The digest of everything in a plan that its runs depend on. Errors: it cannot be written as text.
pub fn digest(plan: &toml::Table) -> Result<String> {
    let mut table = plan.clone();
    MANY.iter().for_each(|key| {
        table.remove(*key);
    });
    let resolved = toml::to_string(&table).map_err(|error| Error::plan("plan", "its text", error.to_string()))?;
    Ok(blake3::hash(resolved.as_bytes()).to_hex().to_string())
}

/// The digests of files, each computed once.
#[derive(Default)]
pub struct Digests(Mutex<HashMap<PathBuf, String>>);

impl Digests {
    /// The file's BLAKE3 digest. Errors: it cannot be read.
    pub fn of(&self, path: &Path) -> Result<String> {
        let known = self.0.lock().ok().and_then(|known| known.get(path).cloned());
        if let Some(digest) = known {
            return Ok(digest);
        }
        let digest = Input::open(path)?.digest()?;
        if let Ok(mut known) = self.0.lock() {
            known.insert(path.to_owned(), digest.clone());
        }
        Ok(digest)
    }
}

/// The metadata of every file of a plan's results: nothing that differs between two ways to run the same plan.
pub fn metadata(plan: &Plan, digests: &Digests) -> Result<Vec<(String, String)>> {
    let mut metadata = program();
    metadata.extend([
        ("plimsoll.schema".to_owned(), schema::VERSION.to_string()),
        ("plimsoll.plan".to_owned(), plan.text.clone()),
        ("plimsoll.rng".to_owned(), "rand_chacha ChaCha8, one stream a purpose".to_owned()),
    ]);
    if let Some(trace) = trace(plan) {
        metadata.push(("plimsoll.trace_blake3".to_owned(), digests.of(trace)?));
    }
    let mut of_policies = Vec::new();
    for policy in &plan.policies {
        for path in &policy.files {
            of_policies.push(format!("{} {}", policy.name, digests.of(path)?));
        }
    }
    if !of_policies.is_empty() {
        metadata.push(("plimsoll.policies_blake3".to_owned(), of_policies.join("; ")));
    }
    Ok(metadata)
}

/// The trace that a plan reads, unless it can be read only once (standard input, a pipe).
fn trace(plan: &Plan) -> Option<&Path> {
    match &plan.workload {
        WorkloadPlan::Trace { path, .. } if path.is_file() => Some(path),
        _ => None,
    }
}

/// The files that decide the results of a plan: its trace, what its policies read, weights, machines and their events.
pub fn inputs(plan: &Plan) -> Vec<&Path> {
    let of_policies = plan.policies.iter().flat_map(|policy| policy.files.iter());
    trace(plan).into_iter().chain(of_policies.chain(&plan.inputs).map(PathBuf::as_path)).collect()
}

/// Whether the same results can be made again: not of standard input.
pub fn is_repeatable(plan: &Plan) -> bool {
    matches!(plan.workload, WorkloadPlan::Generator(_)) || trace(plan).is_some()
}

/// The ids of the runs of a plan, `[policy][seed]`: 16 hexadecimal digits of the digest of version, commit, schema, resolved
/// configuration, inputs, policy and seed.
///
/// Errors: a file that the plan names cannot be read.
pub fn ids(plan: &Plan, digests: &Digests) -> Result<Vec<Vec<String>>> {
    let tables: Vec<&str> = plan.tables.iter().map(|table| table.name()).collect();
    let mut common = vec![
        "plimsoll run 3".to_owned(),
        VERSION.to_owned(),
        COMMIT.unwrap_or_default().to_owned(),
        schema::VERSION.to_string(),
        plan.digest.clone(),
        tables.join(" "),
    ];
    for path in trace(plan).into_iter().chain(plan.inputs.iter().map(PathBuf::as_path)) {
        common.push(digests.of(path)?);
    }
    plan.policies
        .iter()
        .map(|policy| {
            let mut parts = common.clone();
            parts.push(policy.name.clone());
            for path in &policy.files {
                parts.push(digests.of(path)?);
            }
            let id = |(run, seed): (usize, &u64)| {
                let seed = if plan.workload.is_seeded() { seed.to_string() } else { String::new() };
                // Lengths keep parts apart.
                let mut hasher = blake3::Hasher::new();
                for part in parts.iter().chain([&run.to_string(), &seed]) {
                    hasher.update(&(part.len() as u64).to_le_bytes());
                    hasher.update(part.as_bytes());
                }
                hasher.finalize().to_hex()[..16].to_owned()
            };
            Ok(plan.seeds.iter().enumerate().map(id).collect())
        })
        .collect()
}
