//! Results folders of an earlier version remain readable (tests/old_results).

use std::path::Path;

use crate::replay::{plimsoll, run, said};

fn copied(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder");
    for entry in std::fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        let (path, to) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            copied(&path, &to);
        } else {
            std::fs::copy(path, to).expect("a copy");
        }
    }
}

/// Every column of an old table has the values that the version of its commit printed, and figures and report are drawn from the results of runs.
#[test]
fn results_of_an_earlier_version_are_readable() {
    let old = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/old_results");
    let dir = tempfile::tempdir().expect("a temporary folder");
    for (name, table) in [("small", "users"), ("swept", "runs"), ("failover", "scenarios")] {
        let folder = dir.path().join(name);
        copied(&old.join(name), &folder);
        let print = |command: &[&str], rest: &[&str]| {
            let output = run(plimsoll(command).arg(&folder).args(rest));
            assert!(output.status.success(), "{command:?} {name}: {}", said(&output));
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        let printed = std::fs::read_to_string(old.join(format!("{name}.{table}.csv"))).expect("the printed table");
        let columns = printed.lines().next().expect("a heading");
        assert_eq!(print(&["show"], &[table, "--format", "csv", "--columns", columns]), printed, "{name}");
        if name != "failover" {
            print(&["report", "--quiet"], &[]);
            let page = std::fs::read_to_string(folder.join("report.html")).expect("a report");
            assert!(page.contains("Are results of earlier versions readable?"), "{name}");
            print(&["plot", "--quiet"], &[]);
            print(&["compare"], &[&folder.to_string_lossy()]);
        }
    }
}
