//! `plimsoll trace import --map` and `plimsoll trace guess` on the command line.

use std::path::Path;
use std::process::Output;

use crate::replay::{plimsoll, run, said};

const LOG: &str = "id;team;queued;began;done;gpus;note\n\
                   1;a;2026-03-29 01:00:00;2026-03-29 01:30:00;2026-03-29 03:30:00;2;x\n\
                   2;b;2026-03-29 00:30:00;;;1;\n\
                   3;b;2026-03-29 00:45:00;2026-03-29 00:50:00;2026-03-29 00:50:30;1;\n";

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("log.csv"), LOG).expect("writable");
    folder
}

fn trace(arguments: &[&str], within: &Path) -> Output {
    let all: Vec<&str> = ["trace"].into_iter().chain(arguments.iter().copied()).collect();
    run(plimsoll(&all).current_dir(within))
}

/// Returns the message of a command that is refused.
fn refused(arguments: &[&str], within: &Path) -> String {
    let output = trace(arguments, within);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", said(&output));
    said(&output)
}

#[test]
fn a_short_mapping_imports_a_log_and_reports_every_row() {
    let folder = folder();
    let map = "job=id,user=team,submit=queued,duration=done-began,gpu=gpus";
    let zone = "time.zone=Europe/Berlin";
    let output = trace(&["import", "log.csv", "--map", map, "--map", zone, "-o", "out.csv"], folder.path());
    assert!(output.status.success(), "{}", said(&output));
    let written = std::fs::read_to_string(folder.path().join("out.csv")).expect("the trace");
    // Clocks are set forward at 2 o'clock, so job 1 takes an hour.
    assert_eq!(written, "job,user,submit_us,duration_us,gpu\n3,b,0,30000000,1\n1,a,900000000,3600000000,2\n");
    for want in
        ["3 rows read, 2 kept", "dropped 1: no duration (line 3)", "does not name: note", "time.zone = Europe/Berlin"]
    {
        assert!(said(&output).contains(want), "{want}: {}", said(&output));
    }
    let report = std::fs::read_to_string(folder.path().join("out.csv.json")).expect("the report");
    let report: serde_json::Value = serde_json::from_str(&report).expect("JSON");
    assert_eq!((report["rows_in"].as_u64(), report["mapping"][0].as_str()), (Some(3), Some(map)));
}

#[test]
fn a_bound_of_memory_is_checked_and_changes_nothing() {
    let folder = folder();
    let map = "job=id,user=team,submit=queued,duration=done-began,gpu=gpus";
    for memory in ["4", "4GB", "15MiB", "-1GiB", "xMiB", "1e30TiB", ""] {
        let message = refused(&["import", "log.csv", "--map", map, &format!("--memory={memory}")], folder.path());
        let want = format!("--memory: '{memory}' is not accepted; expected a size in MiB, GiB or TiB from 16MiB");
        assert!(message.contains(&want), "{message}");
    }
    std::fs::write(folder.path().join("trace.csv"), "job,user,submit_s,duration_s,cpu\na,b,0,1,1\n").expect("writable");
    let message = refused(&["import", "trace.csv", "--memory", "1GiB", "-o", "again.csv"], folder.path());
    assert!(message.contains("--memory: '1GiB' is not accepted; expected a log with a mapping"), "{message}");
    // Rows with 60 bytes, more than fit into 6 MiB of the 16 MiB.
    let rows: String =
        (0..120_000).map(|row| format!("{};{row};a team;{};5;1\n", row % 70_000, 120_000 - row)).collect();
    std::fs::write(folder.path().join("long.csv"), format!("id;row;team;queued;took;gpus\n{rows}")).expect("writable");
    let map = "job=id,user=team,submit=queued,duration=took,gpu=gpus";
    let traces = ["16MiB", "1.5GiB"].map(|memory| {
        let output =
            trace(&["import", "long.csv", "--map", map, "--memory", memory, "-o", "long-trace.csv"], folder.path());
        assert!(output.status.success(), "{}", said(&output));
        let names = std::fs::read_dir(folder.path()).expect("a folder").count();
        let read = |name: &str| std::fs::read(folder.path().join(name)).expect("written");
        (read("long-trace.csv"), read("long-trace.csv.json"), said(&output), names)
    });
    assert_eq!(traces[0].3, 5, "log, trace, long log, its trace and report");
    assert!(traces[0] == traces[1]);
}

#[test]
fn a_guessed_mapping_can_be_imported() {
    let folder = folder();
    let output = trace(&["guess", "log.csv", "-o", "map.toml"], folder.path());
    assert!(output.status.success(), "{}", said(&output));
    let text = std::fs::read_to_string(folder.path().join("map.toml")).expect("the mapping");
    assert!(text.contains("submit = \"queued\"") && text.contains("# duration = \"?\"   # needed"), "{text}");
    let message = refused(&["import", "log.csv", "--map", "map.toml", "-o", "out.csv"], folder.path());
    assert!(message.contains("map.toml: line") && message.contains("'duration' is missing"), "{message}");
    let answered = text.replace("# duration = \"?\"", "duration = \"done - began\"");
    std::fs::write(folder.path().join("map.toml"), answered).expect("writable");
    let output = trace(&["import", "log.csv", "--map", "map.toml", "-o", "out.csv"], folder.path());
    assert!(output.status.success(), "{}", said(&output));
}

#[test]
fn shipped_mappings_are_printed_and_recognised() {
    let folder = folder();
    let printed = trace(&["import", "--print-map", "philly-extract"], folder.path());
    std::fs::write(folder.path().join("mine.toml"), &printed.stdout).expect("writable");
    let log = "timestamp,duration,num_gpus,gpu_time,cluster\n2017-10-09 07:01:55,66.0,1,66.0,11cb48\n";
    std::fs::write(folder.path().join("extract.csv"), log).expect("writable");
    let outputs = [
        &["import", "extract.csv"][..],
        &["import", "extract.csv", "--from", "philly-extract"],
        &["import", "extract.csv", "--map", "mine.toml"],
    ]
    .map(|arguments| trace(arguments, folder.path()));
    for output in &outputs {
        assert!(output.status.success(), "{}", said(output));
        assert_eq!(
            String::from_utf8_lossy(&output.stdout),
            "job,user,submit_us,duration_us,gpu\nr1,11cb48,0,66000000,1\n"
        );
    }
    let message = refused(&["validate", "extract.csv"], folder.path());
    assert!(message.contains("plimsoll trace import extract.csv --from philly-extract"), "{message}");
}

#[test]
fn wrong_mappings_leave_no_output() {
    let folder = folder();
    for (map, want) in [
        ("submit=queud,duration=1,gpu=1", "(did you mean 'queued'?)"),
        ("submit=queued,duration=done-began,gpu=gpus,memry_gib=1", "'memry_gib' is no column of a trace"),
        ("submit=queued,duration=note,gpu=gpus,job=id", "'x' is neither a number nor a time"),
        ("submit=queued,gpu=gpus", "'duration' is missing"),
        ("no-such-file.toml", "no-such-file.toml"),
    ] {
        let message = refused(&["import", "log.csv", "--strict", "--map", map, "-o", "out.csv"], folder.path());
        assert!(message.contains(want), "{map}: {message}");
        assert!(!folder.path().join("out.csv").exists() && !folder.path().join("out.csv.json").exists(), "{map}");
    }
    let message = refused(&["import", "log.csv"], folder.path());
    for want in
        ["7 fields separated by semicolons", "`plimsoll trace guess log.csv`", "swim, alibaba-2017, swf or openb"]
    {
        assert!(message.contains(want) && !message.contains("--resource"), "{want}: {message}");
    }
    let message = refused(&["import", "log.csv", "--from", "slrum"], folder.path());
    assert!(message.contains("did you mean 'slurm'?"), "{message}");
}

#[test]
fn the_machines_of_a_log_are_written() {
    let folder = folder();
    let nodes = "host;cores;gpus;kind\nn1;64;8;a100\nn2;32;;t4\nn3;32;4;t4\n";
    std::fs::write(folder.path().join("nodes.csv"), nodes).expect("writable");
    let map = "mapping = 1\n[[table]]\nname = \"job\"\nfiles = \"log*\"\n[[table]]\nname = \"node\"\nfiles = \"nodes*\"\n\
               join = { key = \"note\", of = \"host\", missing = \"keep\" }\n\
               [trace]\njob = \"id\"\nsubmit = \"queued\"\nduration = \"done - began\"\ngpu = \"job.gpus\"\n\
               [machines]\ntable = \"node\"\nname = \"host\"\ncpu = \"cores\"\ngpu = \"gpus\"\nlabels = \"concat('kind=', kind)\"\n";
    std::fs::write(folder.path().join("map.toml"), map).expect("writable");
    let import = ["import", "log.csv", "nodes.csv", "--map", "map.toml", "-o", "out.csv", "--machines-out"];
    let output = trace(&[&import[..], &["machines.csv"]].concat(), folder.path());
    assert!(output.status.success(), "{}", said(&output));
    assert!(said(&output).contains("machines.csv: machines: 3 rows read, 2 kept"), "{}", said(&output));
    let written = std::fs::read_to_string(folder.path().join("machines.csv")).expect("the machines");
    assert_eq!(written, "name,cpu,gpu,labels\nn1,64,8,kind=a100\nn3,32,4,kind=t4\n");
    let stats = trace(&["stats", "out.csv", "--machines", "machines.csv"], folder.path());
    assert!(stats.status.success(), "{}", said(&stats));
    let message = refused(&[&import[..], &["nodes.csv"]].concat(), folder.path());
    assert!(message.contains("--machines-out") && message.contains("this one is read"), "{message}");
    let message = refused(
        &["import", "log.csv", "--map", "submit=queued,duration=1,gpu=gpus", "--machines-out", "m.csv"],
        folder.path(),
    );
    assert!(message.contains("a mapping that has [machines]"), "{message}");
}
