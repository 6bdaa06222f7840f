//! Imports the samples of foreign formats by the shipped mappings and compares the result with the expected tables.
//!
//! `samples/README.md` describes the samples. The rows of `philly/extract.csv` are published rows that are not part of the project; their
//! test is skipped without the shared data folder.

use std::io::Write;
use std::path::{Path, PathBuf};

use plimsoll_sim::workload::{CsvTrace, Input, Source, Workload};
use plimsoll_trace_import::{ImportOptions, Mapping, Shipped, import, import_machines};

fn samples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples")
}

/// Returns the rows of a source as texts, one item for each column.
fn rows(source: &mut dyn Source) -> Vec<String> {
    let mut rows = Vec::new();
    while let Some(set) = source.next_set().expect("readable rows") {
        let after: Vec<&str> = set.after.iter().map(|stage| source.stage_name(*stage)).collect();
        let mut demand: Vec<String> = source
            .dims()
            .iter()
            .zip(set.demand.iter())
            .map(|(dim, amount)| format!("{}={amount}", dim.column()))
            .collect();
        demand.sort();
        let preceding = set.preceding.as_ref().map(|it| (source.job_names().text(&it.job), it.think));
        rows.push(format!(
            "{} of {} at {} for {} x{} {} stage {:?} after {:?} priority {} gang {} label {:?} estimate {:?} preceding {:?}",
            source.job_names().text(&source.job_name()),
            source.users().name(set.user.0),
            set.submit.0,
            set.duration.0,
            set.tasks,
            demand.join(" "),
            set.stage.map(|stage| source.stage_name(stage)),
            after,
            set.priority,
            set.gang,
            set.label.map(|label| source.label_name(label)),
            set.estimate.map(|estimate| estimate.0),
            preceding
        ));
    }
    rows
}

fn open(files: &[&str], folder: &Path) -> Vec<Input> {
    files.iter().map(|file| Input::open(&folder.join(file)).expect(file)).collect()
}

fn mapping(name: &str) -> Mapping {
    Shipped::find(name).expect(name).mapping().unwrap_or_else(|error| panic!("{error}"))
}

fn imported(name: &str, folder: &Path, files: &[&str]) -> Workload {
    let workload = import(&mapping(name), &open(files, folder), ImportOptions::default());
    workload.unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn compare(name: &str, folder: &Path, files: &[&str], expected: &str) -> Workload {
    let workload = imported(name, folder, files);
    let expected = Input::open(&folder.join(expected)).expect("the expected table");
    let expected = rows(&mut CsvTrace::new(&expected).expect("a trace"));
    let found = rows(&mut workload.source());
    assert_eq!(found.join("\n"), expected.join("\n"), "{name}");
    assert!(!warns(&workload, "the mapping does not name"), "{name}: {:?}", workload.quality.warnings);
    let dropped: u64 = workload.quality.dropped.values().sum();
    if !mapping(name).merges_rows() {
        assert_eq!(workload.quality.rows_in, dropped + workload.sets.len() as u64, "{name}");
    }
    workload
}

fn warns(workload: &Workload, text: &str) -> bool {
    workload.quality.warnings.iter().any(|warning| warning.contains(text))
}

#[test]
fn philly_reads_attempts_and_the_repeated_hour() {
    let workload = compare("philly", &samples().join("philly"), &["cluster_job_log.json"], "expected.csv");
    let dropped: Vec<(&str, u64)> =
        workload.quality.dropped.iter().map(|(reason, rows)| (reason.as_str(), *rows)).collect();
    assert_eq!(dropped, [("no attempt", 1), ("no end", 1), ("no start", 1), ("the end is before the start", 1)]);
}

#[test]
fn the_extract_of_philly_has_one_time() {
    let shared = std::env::var_os("PLIMSOLL_SHARED_DATA")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"), PathBuf::from);
    let folder = shared.join("foreign/philly");
    if !folder.join("extract.csv").exists() {
        let _ = writeln!(std::io::stdout(), "skipped: no shared data");
        return;
    }
    compare("philly-extract", &folder, &["extract.csv"], "expected-extract.csv");
}

#[test]
fn spot_has_two_tables() {
    let folder = samples().join("spot-2026");
    let workload = compare("spot-2026", &folder, &["job_info_df.csv", "node_info_df.csv"], "expected.csv");
    assert!(warns(&workload, "GPU models that no machine has: 1 rows"), "{:?}", workload.quality);
    assert_eq!(workload.quality.dropped["no tasks"], 1);
    let alone = compare("spot-2026", &folder, &["job_info_df.csv"], "expected.csv");
    assert!(!warns(&alone, "GPU models"));
}

#[test]
fn spot_has_machines() {
    let folder = samples().join("spot-2026");
    let inputs = open(&["job_info_df.csv", "node_info_df.csv"], &folder);
    let machines =
        import_machines(&mapping("spot-2026"), &inputs, false, &|| Ok(())).expect("valid").expect("machines");
    let expected = std::fs::read_to_string(folder.join("expected-machines.csv")).expect("the expected machines");
    assert_eq!(String::from_utf8_lossy(&machines.csv), expected);
    assert_eq!(machines.quality.rows_in, 4);
    let error =
        import_machines(&mapping("spot-2026"), &inputs[..1], false, &|| Ok(())).expect_err("no nodes").to_string();
    assert!(error.contains("machines: table 'node' has no file; expected a name such as *node_info*"), "{error}");
    assert!(import_machines(&mapping("slurm"), &inputs, false, &|| Ok(())).expect("valid").is_none());
}

#[test]
fn pai_joins_tasks_with_jobs() {
    compare("pai-2020", &samples().join("pai-2020"), &["pai_task_table.csv", "pai_job_table.csv"], "expected.csv");
}

#[test]
fn alibaba_2018_has_dependencies_in_names() {
    let folder = samples().join("alibaba-2018");
    let workload = compare("alibaba-2018", &folder, &["batch_task.csv"], "expected.csv");
    assert!(warns(&workload, "their start is their registration"), "{:?}", workload.quality);
    assert_eq!(workload.quality.repaired["waits for a stage without a row in the job; the dependency is dropped"], 1);
    compare(
        "alibaba-2018-instances",
        &folder,
        &["batch_instance.csv", "batch_task.csv"],
        "expected-with-instances.csv",
    );
}

#[test]
fn google_2011_is_folded() {
    let workload = compare("google-2011", &samples().join("google-2011"), &["task_events.csv"], "expected.csv");
    assert!(workload.quality.dropped.contains_key("killed"), "{:?}", workload.quality);
    assert!(!warns(&workload, "which [fold] does not name"), "{:?}", workload.quality);
}

#[test]
fn slurm_counts_every_job_once() {
    let workload = compare("slurm", &samples().join("slurm"), &["sacct.txt"], "expected.csv");
    assert_eq!(workload.quality.dropped["an earlier attempt of the same execution"], 1);
    let zone = workload.quality.assumptions.iter().find(|(name, _)| name == "time.zone").map(|(_, zone)| zone.as_str());
    assert_eq!(zone, Some("UTC (no zone is stated; time.zone = \"AREA/CITY\" changes it)"));
}

#[test]
fn batsim_sums_profiles() {
    let workload = compare("batsim", &samples().join("batsim"), &["workload.json"], "expected.csv");
    assert!(
        warns(&workload, "jobs wider than the platform: 1 rows")
            && warns(&workload, "column extra_data is not read, and 1 rows")
    );
}

#[test]
fn kubernetes_reads_finished_pods() {
    compare("kubernetes", &samples().join("kubernetes"), &["pods.json"], "expected.csv");
}

#[test]
fn rows_of_the_standard_workload_format_may_be_dags() {
    let workload = compare("swf-dag", &samples(), &["swf/dag-with-names.swf"], "swf/expected-dag-with-names.csv");
    assert!(workload.quality.repaired.is_empty() && workload.quality.warnings.is_empty(), "{:?}", workload.quality);
}

#[test]
fn gavel_has_two_layouts() {
    let folder = samples().join("gavel");
    compare("gavel", &folder, &["seven-columns.trace", "throughputs.csv"], "expected-seven-columns.csv");
    compare("shockwave", &folder, &["twelve-columns.trace"], "expected-twelve-columns.csv");
}

#[test]
fn the_workflow_trace_archive_has_parts() {
    let files = ["tasks/schema-1.0/part.0.parquet", "tasks/schema-1.0/part.1.parquet"];
    let workload = compare("wta", &samples().join("wta"), &files, "expected.csv");
    assert_eq!(workload.quality.dropped["no duration_ms"], 1);
}
