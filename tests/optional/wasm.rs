//! The engine as a WebAssembly module: its tables equal those of the native engine, byte for byte, in Node.js and in Chromium.
//!
//! The requirement is the target `wasm32-unknown-unknown`; the tests build the module with it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use plimsoll::workload::synthetic::random::stream;
use plimsoll_page_engine::{PageChanges, PageEngine, PageTables};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use crate::devtools::Page;
use crate::docs::root;
use crate::page::{input, random_study};
use crate::replay::{plimsoll, run, said};
use crate::{Missing, Outcome};

/// The target of the module.
const TARGET: &str = "wasm32-unknown-unknown";

/// The maximum size of the module, in bytes.
const SIZE_MOST: u64 = 5_000_000;

/// The number of random plans.
const PLANS: usize = 40;

/// Builds the module and returns its file. Skips the test if the target is not installed.
fn module() -> Result<&'static Path, Missing> {
    static MODULE: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let built = MODULE.get_or_init(|| {
        let libraries = Command::new("rustc").args(["--print", "target-libdir", "--target", TARGET]).output();
        let libraries = libraries.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
        if !libraries.is_ok_and(|folder| !folder.is_empty() && Path::new(&folder).is_dir()) {
            return Err(format!("no target {TARGET}"));
        }
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "-p", "plimsoll-page", "--profile", "page", "--target", TARGET]);
        let output = run(cargo.arg("--message-format=json").current_dir(root()));
        assert!(output.status.success(), "{}", said(&output));
        let messages = String::from_utf8_lossy(&output.stdout).into_owned();
        let files = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let files = files.flat_map(|message| message["filenames"].as_array().cloned().unwrap_or_default());
        let mut files = files.filter_map(|file| file.as_str().map(PathBuf::from));
        Ok(files.find(|file| file.ends_with("plimsoll_page.wasm")).expect("the module is an artifact"))
    });
    built.as_deref().map_err(|why| Missing(why.clone()))
}

pub fn the_module_is_small() -> Outcome {
    let size = std::fs::metadata(module()?).expect("a file").len();
    assert!((100_000..=SIZE_MOST).contains(&size), "{size} bytes");
    Ok(())
}

/// Returns the tables of a run, each followed by a zero byte, or the message of its error.
fn native(engine: &PageEngine, changes: &PageChanges) -> String {
    match engine.run(changes, &mut |_, _| Ok(())) {
        Ok(PageTables { runs, jobs, fairness }) => format!("{runs}\0{jobs}\0{fairness}\0"),
        Err(error) => error.to_string(),
    }
}

/// Draws changes for a run of this policy: none, or another load, another weight of a user, and other numbers of machines.
fn draw_changes(rng: &mut ChaCha8Rng, policy: &str, engine: &PageEngine, users: &[String]) -> PageChanges {
    let mut changes = PageChanges { policy: Some(policy.to_owned()), ..PageChanges::default() };
    if rng.random_bool(0.25) {
        return changes;
    }
    changes.load = Some(["0.5", "0.9", "1.3", "2.75"][rng.random_range(0..4)].to_owned());
    if let Some(user) = users.get(rng.random_range(0..4)) {
        changes.weights.push((user.clone(), ["0.3", "2", "7.5"][rng.random_range(0..3)].to_owned()));
    }
    if engine.request().fixed_machines().is_none() {
        let machines = &engine.request().machines;
        changes.machines = machines.iter().map(|group| group.count + rng.random_range(0..3)).collect();
    }
    changes
}

/// The script for Node.js after that of the host. It executes all cases of a file.
const NODE: &str = r#"
const fs = require("node:fs");
(async () => {
  const [module, list] = [fs.readFileSync(process.argv[2]), JSON.parse(fs.readFileSync(process.argv[3], "utf8"))];
  for (const { input, changes, output } of list) {
    const run = await openEngine(module, fs.readFileSync(input), () => {});
    let text;
    try {
      const { runs, jobs, fairness } = run(changes);
      text = `${runs}\0${jobs}\0${fairness}\0`;
    } catch (error) {
      text = error.message;
    }
    fs.writeFileSync(output, text);
  }
})();
"#;

pub fn tables_of_random_plans_equal_the_native_ones() -> Outcome {
    if Command::new("node").arg("--version").output().is_err() {
        return Err(Missing("no node".to_owned()));
    }
    let module = module()?;
    let dir = tempfile::tempdir().expect("a temporary folder");
    let (mut cases, mut expected) = (Vec::new(), Vec::new());
    for number in 0..4 * PLANS as u64 {
        if expected.len() == PLANS {
            break;
        }
        let study = random_study(number, dir.path());
        let mut rng = stream(number, "changes in the page");
        let Some((policy, input)) = input(&study, rng.random_range(0..3)) else { continue };
        let file = |kind: &str| dir.path().join(format!("{number}.{kind}"));
        std::fs::write(file("input"), input.bytes()).expect("a writable folder");
        let engine = PageEngine::new(input.request, input.trace).expect("rows");
        let changes = draw_changes(&mut rng, &study.cells[0].policies[policy].name, &engine, &input.users);
        cases.push(json!({ "input": file("input"), "changes": changes, "output": file("output") }));
        expected.push((number, native(&engine, &changes), file("output")));
    }
    assert_eq!(expected.len(), PLANS, "supported plans");
    let (list, script) = (dir.path().join("cases.json"), dir.path().join("engine.js"));
    std::fs::write(&list, Value::from(cases).to_string()).expect("a writable folder");
    let host = include_str!("../../crates/report/src/explore/host.js");
    std::fs::write(&script, format!("{host}{NODE}")).expect("a writable folder");
    let output = run(Command::new("node").arg(&script).arg(module).arg(&list));
    assert!(output.status.success(), "{}", said(&output));
    let (mut runs, mut points) = (0, 0);
    for (number, native, file) in expected {
        let text = std::fs::read_to_string(file).expect("a result of every case");
        assert!(text == native, "random plan {number}: {}", difference(&native, &text));
        let tables: Vec<&str> = text.split('\0').collect();
        runs += usize::from(tables.len() == 4);
        points += usize::from(tables.len() == 4 && tables[2].lines().count() > 1);
    }
    // Few cases are errors, such as a policy that does not support the machines.
    assert!(runs >= PLANS * 3 / 4 && points > 3, "{runs} runs, {points} with values over time");
    Ok(())
}

/// Returns the first lines that differ.
fn difference(native: &str, other: &str) -> String {
    let lines = native.lines().zip(other.lines()).find(|(native, other)| native != other);
    format!("{lines:?}, of {} and {} bytes", native.len(), other.len())
}

/// Waits for the end of the run that `action` starts, and returns its tables.
fn simulated(page: &mut Page, action: &str) -> PageTables {
    let script = format!(
        "(async () => {{ const section = document.getElementById('simulate'); section.dataset.state = ''; {action};
          for (let nth = 0; nth < 3000 && !['done', 'error'].includes(section.dataset.state); nth++) await new Promise((done) => setTimeout(done, 10));
          return [section.dataset.state, section.querySelector('[role=status]').textContent, section.tables]; }})()"
    );
    let result = page.value(&script);
    assert_eq!(result[0], "done", "{result}");
    assert!(!result[1].as_str().unwrap_or_default().contains("does not repeat"), "{result}");
    let table = |name: &str| result[2][name].as_str().unwrap_or_default().to_owned();
    PageTables { runs: table("runs"), jobs: table("jobs"), fairness: table("fairness") }
}

pub fn the_page_simulates() -> Outcome {
    let module = module()?;
    let dir = tempfile::tempdir().expect("a temporary folder");
    let (plan, folder) = (dir.path().join("small.toml"), dir.path().join("small"));
    let text = r#"
name = "small"
policies = ["slot:4", "drf", "pnorm:2"]
seeds = 2
tables = ["runs", "jobs", "fairness"]
[cluster]
machines = "6x8c16g,2x16c32g"
placement = "first-fit"
[workload]
generator = "facebook"
hours = 0.1
load = 0.7
cluster_cores = 72
max_tasks = 60
users = 5
"#;
    std::fs::write(&plan, text).expect("a writable folder");
    let made = run(plimsoll(&["run", "-q", "-o"]).arg(&folder).arg(&plan));
    assert!(made.status.success(), "{}", said(&made));
    let made = run(plimsoll(&["report", "-q"]).arg(&folder).arg(format!("--simulate={}", module.display())));
    assert!(made.status.success(), "{}", said(&made));
    let study = crate::page::study(&plan, &[]);
    let (_, input) = input(&study, 0).expect("a supported plan");
    let engine = PageEngine::new(input.request, input.trace).expect("rows");
    let native = |changes: PageChanges| engine.run(&changes, &mut |_, _| Ok(())).expect("a run");
    let slots = PageChanges { policy: Some("slot:4".to_owned()), ..PageChanges::default() };

    let mut page = Page::open(&folder.join("report.html"), &dir.path().join("profile"), 1280, true)?;
    let press = "[...section.querySelectorAll('button')].find((one) => one.textContent === 'Run').click()";
    assert!(simulated(&mut page, press) == native(slots.clone()), "as in the plan");
    let rows = page.value("document.querySelectorAll('#simulate tbody tr').length").as_u64();
    assert!(rows.is_some_and(|rows| rows > 20), "{rows:?}");
    let set = |label: &str, value: &str| {
        format!(
            "{{ const field = [...section.querySelectorAll('input[type=number], input[type=text]')].find((one) => \
             (one.getAttribute('aria-label') || one.parentElement.textContent).startsWith({})); field.value = {}; \
             field.dispatchEvent(new Event('input')); }}",
            json!(label),
            json!(value)
        )
    };
    // The run starts after a pause.
    let changes = PageChanges { load: Some("1.5".to_owned()), ..slots.clone() };
    assert!(simulated(&mut page, &set("Load", "1.5")) == native(changes), "another load");
    let all = [set("Load", "1"), set("Policy", "drf"), set("Machines with 8 cores", "4"), set("Weight of u2", "3.5")]
        .concat();
    let changes = PageChanges {
        policy: Some("drf".to_owned()),
        machines: vec![4, 2],
        weights: vec![("u2".to_owned(), "3.5".to_owned())],
        ..PageChanges::default()
    };
    assert!(simulated(&mut page, &all) == native(changes), "other machines, another weight and another policy");
    // A wrong value is reported, and a policy of the report that is not supported is named with the reason.
    let status = page.value(&format!(
        "(async () => {{ const section = document.getElementById('simulate'); {}; {press};
          for (let nth = 0; nth < 1000 && section.dataset.state !== 'error'; nth++) await new Promise((done) => setTimeout(done, 10));
          return section.textContent; }})()",
        set("Policy", "drff")
    ));
    let status = status.as_str().unwrap_or_default();
    assert!(status.contains("did you mean") && status.contains("pnorm:2 cannot be simulated here"), "{status}");
    // A cancelled run leaves the page ready for the next one.
    let cancelled = page.value(&format!(
        "(async () => {{ const section = document.getElementById('simulate'); const button = (name) => \
          [...section.querySelectorAll('button')].find((one) => one.textContent === name); {}; {press}; button('Cancel').click(); \
          return section.dataset.state; }})()",
        set("Policy", "slot:4")
    ));
    assert_eq!(cancelled, "idle");
    let reset = "[...section.querySelectorAll('button')].find((one) => one.textContent === 'As in the plan').click()";
    assert!(simulated(&mut page, reset) == native(slots), "after a cancelled run");
    assert_eq!(page.problems, [""; 0]);
    Ok(())
}

pub fn other_modules_and_plans_are_refused() -> Outcome {
    let module = module()?;
    let dir = tempfile::tempdir().expect("a temporary folder");
    let (plan, folder) = (dir.path().join("loop.toml"), dir.path().join("loop"));
    let text = "name = \"loop\"\npolicies = [\"drf\"]\n[cluster]\nmachines = \"4x4c8g\"\n[workload]\ngenerator = \"closed-loop\"\nuntil = \"1m\"\n\
                [[workload.class]]\nname = \"a\"\nusers = 2\ntasks = 3\nduration = 5\ndemand = { cpu = 1, memory_gib = 1 }\n";
    std::fs::write(&plan, text).expect("a writable folder");
    let made = run(plimsoll(&["run", "-q", "-o"]).arg(&folder).arg(&plan));
    assert!(made.status.success(), "{}", said(&made));
    let refused = |engine: &Path| {
        said(&run(plimsoll(&["report", "-q"]).arg(&folder).arg(format!("--simulate={}", engine.display()))))
    };
    assert!(refused(module).contains("a closed loop, since its rows depend on the policy"), "{}", refused(module));
    let other = dir.path().join("other.wasm");
    let mut bytes = std::fs::read(module).expect("a file");
    let name = b"plimsoll-version";
    let at = bytes.windows(name.len()).rposition(|window| window == name).expect("a section") + name.len();
    bytes[at] = b'9';
    std::fs::write(&other, &bytes).expect("a writable folder");
    assert!(refused(&other).contains("is the engine of version 9."), "{}", refused(&other));
    std::fs::write(&other, "text").expect("a writable folder");
    assert!(refused(&other).contains("is not a module of Plimsoll's engine"), "{}", refused(&other));
    assert!(refused(Path::new("absent.wasm")).contains("absent.wasm"), "{}", refused(Path::new("absent.wasm")));
    Ok(())
}
