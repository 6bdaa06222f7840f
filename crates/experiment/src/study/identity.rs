//! The identity of a run: a digest of everything that its results depend on.
//!
//! The digest covers the version, commit and schema of the program, the resolved plan, the contents of all input files, the policy and the
//! seed. It does not depend on names and on settings of the study as a whole. Each input file is hashed once ([`Digests`]), and every
//! later use of the file checks that it is unchanged.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use super::Study;
use crate::plan::Plan;
use crate::workload::WorkloadPlan;
use plimsoll_base::error::{Error, Result};
use plimsoll_base::pinned::Pinned;
use plimsoll_policies::Code;
use plimsoll_results::provenance::{COMMIT, VERSION, program};
use plimsoll_results::schema::{self, OWN_COLUMNS, OwnColumn};
use plimsoll_sim::workload::Input;

/// Keys of a plan that do not affect a single run: names, and settings of the whole study.
const MANY: [&str; 6] = ["name", "question", "policies", "baseline", "seeds", "seed"];

/// Computes the digest of all parts of a plan that its runs depend on. Errors: the plan cannot be written as text.
pub fn digest(mut plan: toml::Table) -> Result<String> {
    MANY.iter().for_each(|key| {
        plan.remove(*key);
    });
    let resolved = toml::to_string(&plan).map_err(|error| Error::plan("plan", "its text", error.to_string()))?;
    Ok(blake3::hash(resolved.as_bytes()).to_hex().to_string())
}

/// The files that a study reads, in the version that was opened first, with their digests.
#[derive(Debug, Default)]
pub struct Digests(Mutex<HashMap<PathBuf, (Input, Option<String>)>>);

impl Digests {
    /// Opens the inputs of these plans; digests are computed when they are needed. A missing file is reported by the code that needs it.
    pub fn of_plans<'a>(plans: impl IntoIterator<Item = &'a Plan>) -> Digests {
        let mut known = HashMap::new();
        for plan in plans {
            for (_, path) in inputs(plan) {
                if !known.contains_key(path)
                    && let Ok(input) = Input::open(path)
                {
                    known.insert(path.to_owned(), (input, None));
                }
            }
            for file in plan.weights.iter().chain(&plan.mix) {
                known.insert(file.path().to_owned(), (Input::File(file.clone()), None));
            }
        }
        Digests(Mutex::new(known))
    }

    /// Opens a file; later calls return the same input. Errors: the file cannot be read.
    pub fn input(&self, path: &Path) -> Result<Input> {
        let mut known = self.0.lock().map_err(|_| Error::Interrupted)?;
        if let Some((input, _)) = known.get(path) {
            return Ok(input.clone());
        }
        let input = Input::open(path)?;
        known.insert(path.to_owned(), (input.clone(), None));
        Ok(input)
    }

    /// Returns the BLAKE3 digest of a file. Errors: the file cannot be read, or has changed.
    pub fn digest(&self, path: &Path) -> Result<String> {
        let input = self.input(path)?;
        let known = |known: &HashMap<PathBuf, (Input, Option<String>)>| known.get(path)?.1.clone();
        if let Some(digest) = self.0.lock().ok().as_deref().and_then(known) {
            return Ok(digest);
        }
        let digest = input.digest()?;
        if let Ok(mut known) = self.0.lock() {
            known.insert(path.to_owned(), (input, Some(digest.clone())));
        }
        Ok(digest)
    }

    /// Checks that every input of a plan is unchanged. Errors: a file was replaced or removed.
    pub fn unchanged(&self, plan: &Plan) -> Result<()> {
        let known = self.0.lock().map_err(|_| Error::Interrupted)?;
        // All inputs are checked that were opened as files, even if their paths now refer to folders or to nothing.
        all_inputs(plan).filter_map(|(_, path)| known.get(path)).try_for_each(|(input, _)| input.check())
    }
}

/// The role of a file that affects the results of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role<'a> {
    /// The trace.
    Trace,
    /// The weights of users.
    Weights,
    /// The machines.
    Machines,
    /// The events of machines.
    MachineEvents,
    /// The tasks that define fragments.
    Mix,
    /// A file of the policy with this name: quota groups, or the users of groups.
    Policy(&'a str),
}

impl Role<'_> {
    /// Returns the key of a plan that names such a file.
    pub fn key(self) -> &'static str {
        match self {
            Role::Trace => "workload.trace",
            Role::Weights => "weights",
            Role::Machines => "cluster.machines",
            Role::MachineEvents => "cluster.events",
            Role::Mix => "cluster.mix",
            Role::Policy(_) => "policies",
        }
    }

    /// Returns the key of the file's digest in the metadata of tables.
    fn metadata(self) -> &'static str {
        match self {
            Role::Trace => "plimsoll.trace_blake3",
            Role::Weights => "plimsoll.weights_blake3",
            Role::Machines => "plimsoll.machines_blake3",
            Role::MachineEvents => "plimsoll.machine_events_blake3",
            Role::Mix => "plimsoll.mix_blake3",
            Role::Policy(_) => "plimsoll.policies_blake3",
        }
    }
}

/// Returns the files that determine the results of a plan, each with its role. They are part of the identities of runs, of the metadata of
/// tables, and of a bundle. A trace that can be read only once (standard input, a pipe) is excluded.
pub fn inputs(plan: &Plan) -> Vec<(Role<'_>, &Path)> {
    all_inputs(plan).filter(|(role, path)| *role != Role::Trace || path.is_file()).collect()
}

/// Returns all input files, including a trace that can be read only once.
fn all_inputs(plan: &Plan) -> impl Iterator<Item = (Role<'_>, &Path)> {
    let own = [
        (Role::Trace, trace(plan)),
        (Role::Weights, plan.weights.as_ref().map(Pinned::path)),
        (Role::Machines, plan.machines.as_deref()),
        (Role::MachineEvents, plan.machine_events.as_deref()),
        (Role::Mix, plan.mix.as_ref().map(Pinned::path)),
    ];
    let own = own.into_iter().filter_map(|(role, path)| Some((role, path?)));
    let of_policies = plan
        .policies
        .iter()
        .flat_map(|policy| policy.files.iter().map(|path| (Role::Policy(&policy.name), path.as_path())));
    own.chain(of_policies)
}

fn trace(plan: &Plan) -> Option<&Path> {
    match plan.workload.base() {
        WorkloadPlan::Trace { path, .. } => Some(path),
        WorkloadPlan::Generator(..) | WorkloadPlan::AtLoad(..) => None,
    }
}

/// Returns the inputs of all cells of a study: their names relative to the folder of the plan, and their digests. The digest is `None` for
/// a trace that could be read only once. Errors: a file cannot be read.
pub fn record(study: &Study, digests: &Digests) -> Result<BTreeMap<String, Option<String>>> {
    let folder = study.file().and_then(Path::parent).unwrap_or(Path::new(""));
    let name = |path: &Path| slashed(path.strip_prefix(folder).unwrap_or(path));
    let mut record = BTreeMap::new();
    for plan in &study.cells {
        for (_, path) in inputs(plan) {
            record.insert(name(path), Some(digests.digest(path)?));
        }
        if let Some(path) = trace(plan).filter(|path| !path.is_file()) {
            record.insert(name(path), None);
        }
    }
    Ok(record)
}

/// Returns the digests of the input files of a plan, by the key that names the file; `None` for standard input or a pipe. The plan and
/// these digests determine whether results belong to the same study. Errors: a file cannot be read.
pub fn digests_by_key(plan: &Plan, digests: &Digests) -> Result<BTreeMap<String, Option<String>>> {
    let mut by_key = BTreeMap::new();
    for (number, (role, path)) in all_inputs(plan).enumerate() {
        let key = match role {
            Role::Policy(name) => format!("policies: {name} ({number})"),
            role => role.key().to_owned(),
        };
        let is_repeatable = role != Role::Trace || path.is_file();
        by_key.insert(key, if is_repeatable { Some(digests.digest(path)?) } else { None });
    }
    Ok(by_key)
}

/// Formats a path in the same way on every system.
pub fn slashed(path: &Path) -> String {
    match path.has_root() {
        true => path.to_string_lossy().into_owned(),
        false => path.iter().map(|part| part.to_string_lossy()).collect::<Vec<_>>().join("/"),
    }
}

/// Returns the metadata of every file of a plan's results. The metadata are the same for every way to run the same plan.
pub fn metadata(plan: &Plan, digests: &Digests) -> Result<Vec<(String, String)>> {
    let mut metadata = program();
    metadata.extend([
        ("plimsoll.schema".to_owned(), schema::VERSION.to_string()),
        ("plimsoll.plan".to_owned(), plan.text.clone()),
        ("plimsoll.rng".to_owned(), "rand_chacha ChaCha8, one stream a purpose".to_owned()),
    ]);
    for (role, path) in inputs(plan) {
        let (key, digest) = (role.metadata(), digests.digest(path)?);
        let value = if let Role::Policy(name) = role { format!("{name} {digest}") } else { digest };
        match metadata.iter_mut().find(|(known, _)| known == key) {
            Some((_, values)) => *values += &format!("; {value}"),
            None => metadata.push((key.to_owned(), value)),
        }
    }
    let of_policies = plan.policies.iter().filter_map(|policy| Some((policy.name.as_str(), policy.code.as_ref()?)));
    metadata.extend(code("plimsoll.policy_code", of_policies));
    metadata.extend(code("plimsoll.metric_code", metric_code(plan)));
    if !plan.metrics.is_empty() {
        let columns: Vec<&OwnColumn> = plan.metrics.iter().map(|metric| &metric.column).collect();
        metadata.push((OWN_COLUMNS.to_owned(), serde_json::json!(columns).to_string()));
    }
    Ok(metadata)
}

/// Returns the own metrics that are functions, with their source texts.
fn metric_code(plan: &Plan) -> impl Iterator<Item = (&str, &Code)> {
    plan.metrics.iter().filter_map(|metric| Some((metric.column.name.as_str(), metric.code()?)))
}

/// Returns source texts as one entry of the metadata; `None` if there are none.
fn code<'a>(key: &str, codes: impl Iterator<Item = (&'a str, &'a Code)>) -> Option<(String, String)> {
    let texts = codes.map(|(name, Code { text, version })| {
        let version = if version.is_empty() { String::new() } else { format!(", version {version}") };
        format!("{name}{version}:\n{text}")
    });
    let text = texts.collect::<Vec<_>>().join("\n\n");
    (!text.is_empty()).then(|| (key.to_owned(), text))
}

/// Returns whether the results can be reproduced. This is not possible if the trace can be read only once (standard input, a pipe).
pub fn is_repeatable(plan: &Plan) -> bool {
    trace(plan).is_none_or(Path::is_file)
}

/// Returns the id of a run: 16 hexadecimal digits of the digest of these parts.
pub fn run_id<'a>(parts: impl IntoIterator<Item = &'a String>) -> String {
    // Each part is preceded by its length, so that the parts are separated unambiguously.
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    hasher.finalize().to_hex()[..16].to_owned()
}

/// Returns the ids of the runs of a plan, `[policy][seed]`: 16 hexadecimal digits of the digest of version, commit, schema, resolved
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
    let (of_policies, of_all): (Vec<_>, Vec<_>) =
        inputs(plan).into_iter().partition(|(role, _)| matches!(role, Role::Policy(_)));
    for (_, path) in of_all {
        common.push(digests.digest(path)?);
    }
    common.extend(metric_code(plan).flat_map(|(_, code)| [code.text.clone(), code.version.clone()]));
    plan.policies
        .iter()
        .map(|policy| {
            let mut parts = common.clone();
            parts.push(policy.name.clone());
            parts.extend(policy.code.iter().flat_map(|code| [code.text.clone(), code.version.clone()]));
            for (_, path) in of_policies.iter().filter(|(role, _)| *role == Role::Policy(&policy.name)) {
                parts.push(digests.digest(path)?);
            }
            let id = |(run, seed): (usize, &u64)| {
                let seed = if plan.workload.is_seeded() { seed.to_string() } else { String::new() };
                run_id(parts.iter().chain([&run.to_string(), &seed]))
            };
            Ok(plan.seeds.iter().enumerate().map(id).collect())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_policies::Registry;
    use plimsoll_schedulers::BUILT_IN;

    /// A trace that was opened as a file is checked, even if its path later refers to a folder or to nothing.
    #[test]
    fn an_input_that_is_gone_or_another_one_is_noticed() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let (plan, trace) = (dir.path().join("plan.toml"), dir.path().join("t.csv"));
        let text =
            "name = \"x\"\npolicies = [\"drf\"]\n[cluster]\nmachines = \"1x4c\"\n[workload]\ntrace = \"t.csv\"\n";
        std::fs::write(&plan, text).expect("writable");
        std::fs::write(&trace, "job,user,submit_s,duration_s,cpu\na,ann,0,1,1\n").expect("writable");
        let study = Study::read(&plan, &[], &Registry::new(BUILT_IN)).expect("a plan");
        let unchanged = || study.files.unchanged(&study.cells[0]);
        assert!(unchanged().is_ok());
        let aside = dir.path().join("aside");
        std::fs::rename(&trace, &aside).expect("writable");
        assert!(unchanged().is_err(), "gone");
        std::fs::create_dir(&trace).expect("writable");
        assert!(unchanged().is_err(), "a folder");
        std::fs::remove_dir(&trace).expect("writable");
        std::fs::copy(&aside, &trace).expect("writable");
        assert!(unchanged().is_err(), "another file with the same content");
    }
}
