//! Python reads results without Plimsoll's package, with the code for polars, DuckDB and pandas in the documentation. SimPy runs the same
//! simulation as a replay.
//!
//! `PLIMSOLL_PYTHON` names a Python with the packages of `notebooks/requirements.txt`. Without the variable, `python3` is used.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::docs::{blocks, root};
use crate::frame::Frame;
use crate::replay::{files, plimsoll, run, said};
use crate::{Missing, Outcome};

/// Returns a Python that can import these packages in the folder `from`. Errors: the reason why there is none.
pub fn python(packages: &str, from: &Path) -> Result<PathBuf, Missing> {
    let python = PathBuf::from(std::env::var_os("PLIMSOLL_PYTHON").unwrap_or_else(|| "python3".into()));
    match Command::new(&python).args(["-c", &format!("import {packages}")]).current_dir(from).output() {
        Ok(output) if output.status.success() => Ok(python),
        Ok(output) => Err(Missing(said(&output).lines().last().unwrap_or_default().to_owned())),
        Err(error) => Err(Missing(format!("{}: {error}", python.display()))),
    }
}

/// Returns the standard output of a program, which must have succeeded.
pub fn printed(output: &Output) -> String {
    assert!(output.status.success(), "{}", said(output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Runs small versions of the experiments in the documentation, with results in `results/` of a folder.
fn small_results(dir: &Path, wanted: &[(&str, &[&str])]) {
    for (name, set) in wanted {
        let mut command = plimsoll(&["run", "-q"]);
        command.arg(root().join(format!("experiments/{name}.toml"))).arg("-o").arg(dir.join("results").join(name));
        set.iter().for_each(|change| {
            command.args(["--set", change]);
        });
        let output = run(&mut command);
        assert!(output.status.success(), "{}", said(&output));
    }
}

const SWEEP: (&str, &[&str]) = ("load-sweep", &["seeds=3", "workload.hours=0.3", "measure.from=2m"]);

/// Reads a table of all cells with Rust. Returns the number of rows, and the sum of a column.
fn read(dir: &Path, table: &str, column: &str) -> (usize, f64) {
    let is = |path: &PathBuf| path.file_name().is_some_and(|name| name == format!("{table}.parquet").as_str());
    let mut found = (0, 0.0);
    for path in files(&dir.join("results/load-sweep")).into_iter().filter(is) {
        let frame = Frame::open(&path);
        found.0 += frame.height();
        found.1 += frame.real(column).iter().flatten().sum::<f64>();
    }
    found
}

pub fn reads_results_as_the_docs_say() -> Outcome {
    let python = python("polars, duckdb, pandas, pyarrow", Path::new("."))?;
    let dir = tempfile::tempdir().expect("a temporary folder");
    small_results(dir.path(), &[SWEEP]);
    let page = std::fs::read_to_string(root().join("docs/experiments.md")).expect("a page");
    let of = |language: &str| -> Vec<String> {
        blocks(&page).into_iter().filter(|block| block.language == language).map(|block| block.text).collect()
    };
    let ([with_polars, with_pandas], [with_duckdb]) = (&of("python")[..], &of("sql")[..]) else {
        panic!("the page has two blocks of Python and one of SQL")
    };
    // The code of the page unchanged, and then the same code for other tables.
    let mut script = format!(
        "import json, duckdb\nfound = {{}}\n{with_polars}\nfound['polars'] = [runs.height, runs['completion_mean_s'].sum()]\n\
         {with_pandas}\nfound['pandas'] = [len(runs), runs['completion_mean_s'].sum()]\n\
         groups = duckdb.sql(\"\"\"{with_duckdb}\"\"\".strip().rstrip(';')).fetchall()\n\
         found['duckdb'] = [len(groups), sum(mean for _, _, mean in groups)]\n"
    );
    let others = [("users", "dominant_share"), ("bins", "completion_mean_s"), ("quantiles", "value")];
    for (table, column) in others {
        let other = |text: &str| text.replace("/runs/", &format!("/{table}/"));
        let sql = format!(
            "SELECT count(*), sum({column}) FROM read_parquet('results/load-sweep/cell=*/{table}/**/*.parquet')"
        );
        script += &format!(
            "{}\nfound['{table} polars'] = [runs.height, runs['{column}'].sum()]\n{}\nfound['{table} pandas'] = [len(runs), \
             runs['{column}'].sum()]\nfound['{table} duckdb'] = list(duckdb.sql(\"\"\"{sql}\"\"\").fetchall()[0])\n",
            other(with_polars),
            other(with_pandas)
        );
    }
    script += "print(json.dumps(found))\n";
    let output = run(Command::new(&python).args(["-c", &script]).current_dir(dir.path()));
    let found: BTreeMap<String, (usize, f64)> = serde_json::from_str(&printed(&output)).expect("JSON");
    let close = |a: f64, b: f64| (a - b).abs() <= 1e-9 * a.abs().max(1.0);
    let (rows, sum) = read(dir.path(), "runs", "completion_mean_s");
    assert_eq!(rows, 54, "six cells, three policies, three seeds");
    for reader in ["polars", "pandas"] {
        assert!(found[reader].0 == rows && close(found[reader].1, sum), "{reader}: {found:?}, not {rows} and {sum}");
    }
    // DuckDB returns a mean of three seeds for every cell and policy.
    assert!(found["duckdb"].0 == 18 && close(found["duckdb"].1, sum / 3.0), "{found:?}, not {}", sum / 3.0);
    for (table, column) in others {
        let (rows, sum) = read(dir.path(), table, column);
        for reader in ["polars", "pandas", "duckdb"] {
            let one = found[&format!("{table} {reader}")];
            assert!(
                one.0 == rows && close(one.1, sum) && rows > 50,
                "{table}, {reader}: {one:?}, not {rows} and {sum}"
            );
        }
    }
    Ok(())
}

/// The SimPy program of the README: under DRF every job ends at the same microsecond as in a replay.
pub fn simpy_ends_every_job_at_the_same_instant() -> Outcome {
    let python = python("simpy, polars", Path::new("."))?;
    let dir = tempfile::tempdir().expect("a temporary folder");
    let ok = |command: &mut Command| printed(&run(command.current_dir(dir.path())));
    for (seed, users) in [("1", "users=\"job\""), ("2", "users=20"), ("3", "users=3")] {
        let generate = ["trace", "generate", "facebook", "--seed", seed, "--set", users, "--set", "hours=0.2"];
        ok(plimsoll(&generate).args(["--set", "load=1.2", "-o", "trace.csv"]));
        let _ = std::fs::remove_dir_all(dir.path().join("drf"));
        ok(&mut plimsoll(&[
            "replay",
            "trace.csv",
            "--machines",
            "200x16c32g",
            "--placement",
            "pooled",
            "--policy",
            "drf",
            "-o",
            "drf",
        ]));
        let script = root().join("benches/simpy_drf.py");
        ok(Command::new(&python).arg(&script).args(["trace.csv", "200x16c32g", "-o", "simpy.csv"]));
        let said = ok(Command::new(&python).arg(&script).args(["--compare", "drf", "simpy.csv"]));
        assert!(said.ends_with(" jobs, 0 of which end at another microsecond\n"), "{users}: {said}");
    }
    Ok(())
}
