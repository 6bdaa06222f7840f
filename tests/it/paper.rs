//! The DRF paper's worked examples (Ghodsi et al., NSDI 2011) as experiments: `experiments/paper/` and their results.

use std::path::{Path, PathBuf};

use plimsoll::output::schema::partition;

use crate::frame::Frame;
use crate::replay::{plimsoll, run, said};

/// Runs a plan of this repository.
fn experiment(name: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let plan = Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments/paper").join(format!("{name}.toml"));
    let output = run(plimsoll(&["run"]).arg(plan).arg("-o").arg(dir.path()));
    assert!(output.status.success(), "{name}: {}", said(&output));
    dir
}

/// Opens a table of run 0, in the folder of a plan without a sweep or of a cell.
pub fn table(dir: &Path, name: &str, policy: &str) -> Frame {
    table_of(dir, name, policy, 0)
}

/// Opens a table of one of several runs.
pub fn table_of(dir: &Path, name: &str, policy: &str, run: u64) -> Frame {
    let path: PathBuf = dir.join(name).join(format!("policy={}/run={run}/{name}.parquet", partition(policy)));
    Frame::open(&path)
}

/// Returns the values of a column as text.
pub fn names(table: &Frame, column: &str) -> Vec<String> {
    table.names(column, "")
}

pub fn numbers(table: &Frame, column: &str) -> Vec<f64> {
    table.numbers(column).into_iter().map(|value| value.unwrap_or(f64::NAN)).collect()
}

fn near(found: &[f64], wanted: &[f64], within: f64) -> bool {
    found.len() == wanted.len() && found.iter().zip(wanted).all(|(a, b)| (a - b).abs() <= within)
}

/// A plan, the folder of a cell, the size of its cluster as a multiple of the paper's cluster, and under each policy the tasks of each user
/// on one cluster of the paper.
type Example = (&'static str, &'static str, f64, &'static [(&'static str, &'static [f64])]);

/// The numbers are exact if the paper has fractions. The numbers of theorem 5 have two more digits than in the paper.
const EXAMPLES: [Example; 7] = [
    ("drf-table1", "", 1.0, &[("drf", &[3.0, 2.0])]),
    // Sections 4.1, 5.1 and 5.2.
    (
        "drf-fig4-whole",
        "",
        100.0,
        &[("drf", &[3.0, 2.0]), ("asset", &[2.52, 2.16]), ("ceei", &[45.0 / 11.0, 18.0 / 11.0])],
    ),
    // Theorem 1.
    ("drf-fig5-whole", "", 1.0, &[("asset", &[6.0, 12.0]), ("drf", &[5.0, 15.0]), ("ceei", &[5.0, 15.0])]),
    // Theorem 4. The paper prints 48.8 for 1500/31.
    (
        "drf-fig6-whole",
        "cell=truth",
        186.0,
        &[("ceei", &[100.0 / 31.0, 1500.0 / 31.0]), ("drf", &[25.0 / 6.0, 100.0 / 3.0])],
    ),
    ("drf-fig6-whole", "cell=lie", 186.0, &[("ceei", &[25.0 / 6.0, 100.0 / 3.0]), ("drf", &[25.0 / 6.0, 100.0 / 3.0])]),
    // Theorem 5.
    (
        "drf-fig7-whole",
        "cell=three",
        100.0,
        &[("ceei", &[11.283, 5.351, 3.095]), ("drf", &[400.0 / 33.0, 100.0 / 33.0, 100.0 / 33.0])],
    ),
    ("drf-fig7-whole", "cell=two", 100.0, &[("ceei", &[500.0 / 21.0, 100.0 / 21.0]), ("drf", &[20.0, 5.0])]),
];

/// Every plan of a figure or table of the papers is valid and has the name of its file.
#[test]
fn all_plans_of_the_sources_are_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments/paper");
    let mut plans: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("a folder of plans")
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "toml"))
        .collect();
    plans.sort();
    assert!(plans.len() >= 12, "{plans:?}");
    let output = run(plimsoll(&["run", "--dry-run"]).args(&plans));
    assert!(output.status.success(), "{}", said(&output));
    for path in &plans {
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let text = std::fs::read_to_string(path).expect("a plan");
        assert!(text.contains(&format!("name = \"{name}\"")), "{name} has another name in the plan");
    }
}

/// Several plans run one after the other, each into its own folder. One folder for several plans, or two plans with one name, are refused
/// before any run.
#[test]
fn static_plans_make_figures_and_two_plans_need_two_folders() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments/paper");
    let plans = ["drf-table2", "drf-fig4-7", "fuxi-quota-tables"].map(|name| folder.join(format!("{name}.toml")));
    let dir = tempfile::tempdir().expect("a temporary folder");
    let output = run(plimsoll(&["run", "-o", "x"]).args(&plans).current_dir(dir.path()));
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(said(&output).contains("'x' with 3 plans"), "{}", said(&output));
    let output = run(plimsoll(&["run"]).args([&plans[0], &plans[0]]).current_dir(dir.path()));
    assert!(said(&output).contains("both named 'drf-table2'"), "{}", said(&output));
    assert!(!dir.path().join("results").exists() && !dir.path().join("x").exists());
    let output = run(plimsoll(&["run"]).args(&plans[1..]).current_dir(dir.path()));
    assert!(output.status.success(), "{}", said(&output));
    let quick = ["run", "--set", "check.effort=quick"];
    let output = run(plimsoll(&quick).arg(&plans[0]).current_dir(dir.path()));
    assert!(output.status.success(), "{}", said(&output));
    for file in [
        "drf-table2/figures/properties.pdf",
        "drf-table2/figures/properties.csv",
        "drf-table2/report.html",
        "drf-fig4-7/figures/theorem-4-lie.csv",
        "fuxi-quota-tables/figures/quota-variants-max-min-level.svg",
        "fuxi-quota-tables/report.html",
    ] {
        assert!(dir.path().join("results").join(file).is_file(), "{file}");
    }
    let table = std::fs::read_to_string(dir.path().join("results/drf-table2/figures/properties.csv")).expect("a table");
    // Table 2 of the paper: the number of properties that each policy violates.
    let fails = |policy: &str| table.lines().filter(|row| row.contains(&format!(",{policy},fails,"))).count();
    assert_eq!(["asset", "ceei", "drf"].map(fails), [3, 3, 1], "{table}");
    let shares =
        std::fs::read_to_string(dir.path().join("results/drf-fig4-7/figures/drf-example.csv")).expect("shares");
    assert!(shares.contains("drf,cpu,A,0.333"), "{shares}");
    let wrong = dir.path().join("wrong.toml");
    std::fs::write(&wrong, "name = \"w\"\n[check]\npolicies = [\"drff\"]\n").expect("a writable folder");
    let output = run(plimsoll(&["run"]).arg(&wrong));
    assert!(said(&output).contains("wrong.toml: line 3") && said(&output).contains("drff"), "{}", said(&output));
}

#[test]
fn every_worked_example_comes_out_in_whole_tasks() {
    for (name, cell, clusters, policies) in EXAMPLES {
        let dir = experiment(name);
        for (policy, tasks) in policies {
            let launched = numbers(&table(&dir.path().join(cell), "users", policy), "tasks_launched");
            let wanted: Vec<f64> = tasks.iter().map(|tasks| tasks * clusters).collect();
            // Integers are exact; fractions may differ within the bounds of the parity tests, here at most 3 tasks.
            let whole = wanted.iter().all(|tasks| (tasks - tasks.round()).abs() < 1e-9);
            assert!(
                near(&launched, &wanted, if whole { 0.0 } else { 3.0 }),
                "{name}, {policy}: {launched:?} {wanted:?}"
            );
        }
    }
}

/// The decisions and shares of Table 1, row by row.
#[test]
fn the_experiment_of_table_1_has_its_rows() {
    let dir = experiment("drf-table1");
    let decisions = table(dir.path(), "decisions", "drf");
    let users: Vec<&String> = decisions.texts("user").iter().flatten().collect();
    assert_eq!(users[..5], ["B", "A", "A", "B", "A"]);
    // `dominant_share` is the share before the decision. Table 1 has the share after it.
    let shares = numbers(&decisions, "dominant_share");
    assert!(near(&shares[..5], &[0.0, 0.0, 2.0 / 9.0, 3.0 / 9.0, 4.0 / 9.0], 1e-9), "{shares:?}");
    // Both users end at 2/3, as in the divisible solution.
    let shares = table(dir.path(), "shares", "drf");
    for column in ["dominant_share", "fluid_share"] {
        assert!(numbers(&shares, column).iter().all(|share| (share - 2.0 / 3.0).abs() < 1e-9), "{column}");
    }
    let runs = table(dir.path(), "runs", "drf");
    assert!(near(&numbers(&runs, "deviation_max"), &[0.0], 1e-9) && numbers(&runs, "theorem7_broken") == [0.0]);
}

/// The deviation in Figure 5: asset fairness gives the users 0.6 and 0.4 of the cluster, and DRF gives each a half. One task is at most
/// 0.1.
#[test]
fn the_deviation_of_asset_fairness_in_figure_5_is_a_tenth() {
    let dir = experiment("drf-fig5-whole");
    let value =
        |policy: &str, table_name: &str, column: &str| numbers(&table(dir.path(), table_name, policy), column)[0];
    for table in ["runs", "fairness"] {
        for column in ["deviation_mean", "deviation_max"] {
            assert!((value("asset", table, column) - 0.1).abs() < 1e-9, "{table}, {column}");
            assert!(value("drf", table, column).abs() < 1e-9, "{table}, {column}");
        }
        assert_eq!([value("asset", table, "theorem7_broken"), value("drf", table, "theorem7_broken")], [1.0, 0.0]);
    }
    assert!((value("drf", "fairness", "task_max") - 0.1).abs() < 1e-9);
}
