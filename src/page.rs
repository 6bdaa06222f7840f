//! The inputs of the simulations in a report: the request and the rows of a cell's first run, and the module that executes them.

use std::io::Read;
use std::path::{Path, PathBuf};

use plimsoll_page_engine::{PageChanges, PageEngine, PageRequest};

use crate::books::WEIGHT_ONE;
use crate::column::Kind;
use crate::engine::settings::{SETTINGS, SettingKind};
use crate::error::{Error, Result};
use crate::experiment::machines::ClusterFile;
use crate::experiment::{Plan, RepeatedRun, Study, StudyRun};
use crate::output::html::{SimulatorControls, SimulatorData};
use crate::output::provenance::{COMMIT, VERSION};
use crate::output::read::Results;
use crate::output::schema::Table;
use crate::policy::{NamedPolicy, Registry, RunEnvironment};
use crate::workload::{Source, TargetLoad, write};

/// The command that builds the module.
const BUILD: &str = "cargo build -p plimsoll-page --profile page --target wasm32-unknown-unknown";

/// The name of the module's file.
const MODULE: &str = "plimsoll_page.wasm";

/// The maximum number of rows of a workload in a page.
const ROWS_MOST: u64 = 300_000;

/// The maximum number of users with a control for the weight of each.
const USERS_MOST: usize = 12;

/// Returns the file of the module: `given`, or the first of the usual places. Errors: [`Error::Plan`] if there is no such file.
fn module_file(given: Option<&Path>) -> Result<PathBuf> {
    if let Some(path) = given {
        return Ok(path.to_owned());
    }
    let program = std::env::current_exe().ok().and_then(|program| Some(program.parent()?.join(MODULE)));
    let built = Path::new("target/wasm32-unknown-unknown/page").join(MODULE);
    program.into_iter().chain([built]).find(|path| path.is_file()).ok_or_else(|| {
        let expected = format!(
            "the module {MODULE} beside the program, or in target/wasm32-unknown-unknown/page below the current folder, or its path as \
             `--simulate={MODULE}`; this command builds it: {BUILD}"
        );
        Error::plan("--simulate", "no file", expected)
    })
}

/// Reads the module and checks its version. Errors: [`Error::Io`]; [`Error::Trace`] for another file, or a module of other sources.
pub fn read_module(given: Option<&Path>) -> Result<Vec<u8>> {
    let path = module_file(given)?;
    let module = std::fs::read(&path).map_err(|source| Error::io(&path, source))?;
    let wrong =
        |problem: String| Err(Error::trace(&path, 0, "", format!("{problem}; this command builds it: {BUILD}")));
    let text = |name: &str| custom_section(&module, name).map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    let (Some(version), Some(commit)) = (text("plimsoll-version"), text("plimsoll-commit")) else {
        return wrong("is not a module of Plimsoll's engine".to_owned());
    };
    let own = COMMIT.unwrap_or("unknown");
    if (version.as_str(), commit.as_str()) != (VERSION, own) {
        return wrong(format!(
            "is the engine of version {version}, commit {commit}; expected version {VERSION}, commit {own}"
        ));
    }
    Ok(module)
}

/// Returns the content of a custom section of a WebAssembly module; `None` if there is none, or the bytes are no module. Source: WebAssembly
/// Core Specification 2.0, section 5.5 (binary format of modules).
fn custom_section<'a>(module: &'a [u8], wanted: &str) -> Option<&'a [u8]> {
    let mut rest = module.strip_prefix(b"\0asm\x01\0\0\0")?;
    while let Some((&id, after)) = rest.split_first() {
        let (size, after) = leb128(after)?;
        let (content, next) = after.split_at_checked(size)?;
        if id == 0 {
            let (length, named) = leb128(content)?;
            let (name, bytes) = named.split_at_checked(length)?;
            if name == wanted.as_bytes() {
                return Some(bytes);
            }
        }
        rest = next;
    }
    None
}

/// Reads a number of at most 32 bits, and returns the bytes after it.
fn leb128(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (mut value, mut shift) = (0u64, 0);
    for (at, byte) in bytes.iter().take(5).enumerate() {
        value |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            return Some((usize::try_from(value).ok()?, &bytes[at + 1..]));
        }
    }
    None
}

/// The input of the engine: the request of a run of a plan, under its first policy, and the rows of the workload.
pub struct PageInput {
    /// The request.
    pub request: PageRequest,
    /// The rows, as a canonical trace in CSV.
    pub trace: Vec<u8>,
    /// The users in order of first appearance.
    pub users: Vec<String>,
    /// The number of tasks.
    pub tasks: u64,
}

impl PageInput {
    /// Reads the input of a run. Errors: [`Error::Plan`] for a plan that the engine does not support, with the reason, or with too many
    /// rows; those of the workload.
    pub fn new(run: &RepeatedRun) -> Result<PageInput> {
        let plan = run.plan();
        if let Some(what) = unsupported(plan) {
            return Err(Error::plan("--simulate", what, "a plan that the engine in a page supports"));
        }
        let (mut rows, mut tasks) = (0, 0);
        let mut source = run.source()?;
        while let Some(set) = source.next_set()? {
            (rows, tasks) = (rows + 1, tasks + u64::from(set.tasks));
            if rows > ROWS_MOST {
                let expected = format!("at most {ROWS_MOST} rows of the workload in a page");
                return Err(Error::plan("--simulate", "more rows", expected));
            }
        }
        let users = source.users();
        let users = (0..users.len() as u32).map(|user| users.name(user).to_owned()).collect();
        let layout = write::Layout::scan(&mut *run.source()?)?;
        let mut trace = Vec::new();
        write::csv(&mut trace, Path::new("the workload"), &mut *run.source()?, &layout)?;
        Ok(PageInput { request: page_request(plan, run.seed(), &*source)?, trace, users, tasks })
    }

    /// Returns the input as bytes: the request in JSON, a zero byte, and the rows.
    pub fn bytes(&self) -> Vec<u8> {
        let request = serde_json::to_vec(&self.request).expect("a request has a form in JSON");
        [&request, &[0][..], &self.trace].concat()
    }
}

/// Returns why the engine does not support a plan; `None` if it does.
fn unsupported(plan: &Plan) -> Option<String> {
    let reasons = [
        (plan.control.is_some(), "a control plane ([control])"),
        (plan.workload.submissions_depend_on_policy(), "a closed loop, since its rows depend on the policy"),
        (!plan.cluster.devices.is_empty(), "machines with identified devices (cluster.devices)"),
    ];
    reasons.into_iter().find(|(applies, _)| *applies).map(|(_, what)| what.to_owned())
}

/// Returns why the engine does not support a policy; `None` if it does.
pub fn unsupported_policy(policy: &NamedPolicy, registry: &Registry) -> Option<String> {
    if registry.own().iter().any(|own| own.name == policy.name) {
        return Some("it is a policy of this program".to_owned());
    }
    if !policy.files.is_empty() {
        return Some("it reads files; the tables [quota.NAME] and [queues.NAME] of a plan are supported".to_owned());
    }
    PageRequest::check_policy(&policy.name).err().map(|error| error.to_string())
}

/// Returns the request of a run of a plan, under its first policy. Errors: the plan's text has no cluster.
fn page_request(plan: &Plan, seed: Option<u64>, source: &dyn Source) -> Result<PageRequest> {
    let wrong = |error: &dyn std::fmt::Display| Error::plan("--simulate", "this plan", error.to_string());
    let mut text: toml::Table = toml::from_str(&plan.text).map_err(|error| wrong(&error))?;
    let cluster = text.remove("cluster").ok_or_else(|| wrong(&"a plan with a table cluster"))?;
    let cluster: ClusterFile = cluster.try_into().map_err(|error: toml::de::Error| wrong(&error))?;
    let values = SETTINGS.iter().filter(|setting| setting.kind != SettingKind::File);
    let values = values.map(|setting| (setting.key.to_owned(), cluster.settings.all(setting.key).to_vec()));
    text.retain(|key, _| ["quota", "queues"].contains(&key));
    let weights = plan.weights.as_ref().map(|file| {
        let mut text = String::new();
        let read = file.open()?.read_to_string(&mut text);
        read.map(|_| text).map_err(|error| Error::io(file.path(), error))
    });
    let Plan { options, window, cluster: spec, .. } = plan;
    Ok(PageRequest {
        workload: plan.workload.name(),
        resources: source.dims().iter().map(|dim| dim.name.clone()).collect(),
        seed,
        policy: plan.policies[0].name.clone(),
        tables: toml::to_string(&text).map_err(|error| wrong(&error))?,
        machines: spec.groups.clone(),
        names: spec.names.clone(),
        events: spec.events.clone(),
        settings: values.filter(|(_, values)| !values.is_empty()).collect(),
        services: plan.services.clone(),
        weights: weights.transpose()?,
        until_us: options.until.map(|until| until.0),
        sample_us: plan.sample.0,
        window_us: (window.from.0, window.to.0),
        series: plan.tables.iter().any(|table| matches!(table, Table::Fairness | Table::Shares)),
    })
}

/// Returns the part of a report that simulates: the first run of the only cell of a study. Every policy of the report is executed here
/// too; its row must equal the stored one.
///
/// Errors: as [`PageInput::new`]; those of the runs; [`Error::Mismatch`] for results of another version.
pub fn simulator(
    study: &Study,
    results: &Results,
    module: &[u8],
    registry: &Registry,
    heartbeat: &mut (dyn FnMut() -> Result<()> + Send),
) -> Result<SimulatorData> {
    let plan = &study.cells[0];
    let run = RepeatedRun::new(study, StudyRun { cell: 0, policy: 0, run: results.first_run() })?;
    let input = PageInput::new(&run)?;
    let bytes = input.bytes();
    let PageInput { request, trace, users, tasks } = input;
    let machines_fixed = request.fixed_machines();
    let engine = PageEngine::new(request, trace)?;
    let (mut stored, mut refused) = (Vec::new(), Vec::new());
    for policy in &plan.policies {
        if let Some(why) = unsupported_policy(policy, registry) {
            refused.push((policy.name.clone(), format!("{why}.")));
            continue;
        }
        let changes = PageChanges { policy: Some(policy.name.clone()), ..PageChanges::default() };
        let row = engine.run(&changes, &mut |_, _| heartbeat())?.runs;
        check_row(results, &policy.name, &row)?;
        stored.push((policy.name.clone(), row));
    }
    if stored.is_empty() {
        let expected = "a plan with a policy that the engine in a page supports";
        return Err(Error::plan("--simulate", plan.policies[0].name.as_str(), expected));
    }
    let others = registry.catalogue().examples().into_iter().filter(|spec| spec.file().is_none() && !spec.is_queued());
    let others = others.map(|spec| spec.to_string());
    let is_other = |name: &String| stored.iter().all(|(known, _)| known != name);
    let others = others.filter(|name| PageRequest::check_policy(name).is_ok() && is_other(name)).collect();
    let weights = RunEnvironment::new(&plan.cluster, plan.weights.as_ref(), run.source()?.dims())?.weights;
    let weight = |name: &String| {
        let weight = weights.uniform(weights.class_of(name) as usize)?;
        Some((name.clone(), weight as f64 / WEIGHT_ONE as f64))
    };
    let shown: Option<Vec<(String, f64)>> = users.iter().take(USERS_MOST).map(weight).collect();
    let machines = plan.cluster.groups.iter().map(|group| {
        let amounts: Vec<String> = group.capacity.iter().map(|(dim, amount)| dim.display(*amount)).collect();
        (amounts.join(", "), group.count)
    });
    let whole = TargetLoad { millionths: 1_000_000, capacity: plan.cluster.capacity() };
    let controls = SimulatorControls {
        seed: engine.request().seed.map(|seed| seed.to_string()),
        stored,
        refused,
        others,
        load: whole.factor(&mut *run.source()?).ok().map(|billionths| billionths as f64 / 1e9),
        machines: machines.collect(),
        machines_fixed: machines_fixed.map(str::to_owned),
        weights_fixed: shown.is_none().then(|| "they differ by resource".to_owned()),
        users: shown.unwrap_or_default(),
        user_count: users.len() as u64,
        tasks,
    };
    Ok(SimulatorData::new(&controls, &bytes, module))
}

/// Checks that the row of a run, CSV with a header, equals the stored row of the policy's first run. Errors: [`Error::Mismatch`] with the
/// first value that differs.
fn check_row(results: &Results, policy: &str, row: &str) -> Result<()> {
    let wrong = |problem: String| Err(Error::Mismatch { problem });
    let place = results.contents.policies.iter().position(|known| known == policy);
    let columns = Table::Runs.columns(&results.dims);
    let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    let part = place.map(|place| results.part(Table::Runs, &names, (place, results.first_run()))).transpose()?;
    let Some(part) = part.flatten() else { return wrong(format!("the results have no run of {policy}")) };
    let mut lines = csv::Reader::from_reader(row.as_bytes());
    let Some(Ok(fields)) = lines.records().next() else { return wrong(format!("the run of {policy} has no row")) };
    for (column, field) in columns.iter().zip(&fields) {
        let is_equal = match column.value {
            Kind::Text => part.names(&column.name)?.first().is_some_and(|stored| stored == field),
            Kind::Int | Kind::Float => part.numbers(&column.name)?.first() == Some(&field.parse::<f64>().ok()),
        };
        if !is_equal {
            return wrong(format!(
                "the run of {policy} in the page differs from the stored one in {}, which is {field}: the results are of another \
                 version of the program, or of other inputs",
                column.name
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_of_a_module_are_found_by_name() {
        let section = |id: u8, content: &[u8]| [&[id, content.len() as u8][..], content].concat();
        let module =
            [b"\0asm\x01\0\0\0".to_vec(), section(1, b"types"), section(0, b"\x05other1"), section(0, b"\x04mine23")]
                .concat();
        assert_eq!(custom_section(&module, "mine"), Some(&b"23"[..]));
        assert_eq!(custom_section(&module, "other"), Some(&b"1"[..]));
        assert_eq!(custom_section(&module, "types"), None);
        assert_eq!(custom_section(&module[..module.len() - 1], "mine"), None, "the last section is cut");
        assert_eq!(custom_section(b"text", "mine"), None);
        assert_eq!(leb128(&[0xe5, 0x8e, 0x26, 7]), Some((624_485, &[7][..])));
    }
}
