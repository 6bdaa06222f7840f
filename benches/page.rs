//! Time from an input to the paint in the interactive part of a report with 100,000 jobs under three policies, in Chromium: median, 95th
//! percentile and maximum of each action of `page_actions.js`, in milliseconds. The goal is a 95th percentile of at most 100 ms.
//!
//! `PLIMSOLL_PAGE=FILE` measures an existing report; `PLIMSOLL_PAGE_TIMES` is the number of repetitions (40). Views that are not on the
//! screen are drawn after the paint. The figures depend on the load of the machine, which the first line has.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

#[path = "../tests/optional/devtools.rs"]
#[allow(unused)]
mod devtools;

/// The missing program, in words.
pub struct Missing(pub String);

const ACTIONS: &str = include_str!("page_actions.js");
const JOBS: u64 = 100_000;
const USERS: u64 = 200;

/// Writes a trace, replays it under three policies and returns the report.
fn report(dir: &Path) -> PathBuf {
    let (trace, folder) = (dir.join("trace.csv"), dir.join("results"));
    let mut text = "job,user,submit_s,duration_s,tasks,cpu,memory_gib\n".to_owned();
    // A linear congruential generator; its upper bits are used.
    let mut state = 1u64;
    let mut draw = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    for job in 0..JOBS {
        let (user, duration, tasks) = (draw(USERS), 20 + draw(600), 1 + draw(8) * draw(4));
        let (cpu, memory) = (1 + draw(3), 1 + draw(8));
        writeln!(text, "job{job},user{user},{},{duration},{tasks},{cpu},{memory}", job / 4).expect("a string");
    }
    std::fs::write(&trace, text).expect("a writable folder");
    let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
    command.args(["replay", "--machines", "400x64c256g", "--policy", "drf,fifo,maxmin:cpu", "--series", "-q", "-o"]);
    assert!(command.arg(&folder).arg(&trace).status().expect("a program").success());
    let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
    assert!(command.args(["report", "-q"]).arg(&folder).status().expect("a program").success());
    folder.join("report.html")
}

fn main() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let given = std::env::var_os("PLIMSOLL_PAGE").map(PathBuf::from);
    let times = std::env::var("PLIMSOLL_PAGE_TIMES").map_or(Ok(40), |text| text.parse::<u32>()).expect("a number");
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or("unknown").to_owned();
    let file = given.unwrap_or_else(|| report(dir.path()));
    let Ok(mut page) = devtools::Page::open(&file, &dir.path().join("profile"), 1280, true) else {
        println!("no chromium: nothing was measured");
        return;
    };
    let from = ACTIONS.find("(async").expect("a function");
    let found = page.value(&format!("({})({times})", ACTIONS[from..].trim_end()));
    println!("load of the machine at the start: {load}; {times} times each; milliseconds");
    println!("{:<26} {:>7} {:>7} {:>7}", "action", "median", "95 %", "largest");
    let mut all = Vec::new();
    let row = |name: &str, values: &mut Vec<f64>| {
        values.sort_by(f64::total_cmp);
        let quantile = |q: f64| values[((q * values.len() as f64).ceil() as usize).clamp(1, values.len()) - 1];
        println!("{name:<26} {:>7.0} {:>7.0} {:>7.0}", quantile(0.5), quantile(0.95), quantile(1.0));
    };
    for (name, values) in found.as_object().expect("an object") {
        let mut values: Vec<f64> =
            values.as_array().into_iter().flatten().filter_map(serde_json::Value::as_f64).collect();
        assert!(!values.is_empty(), "{name} was not measured");
        row(name, &mut values);
        all.extend(values);
    }
    row("all", &mut all);
    assert!(page.problems.is_empty(), "{:?}", page.problems);
}
