//! Logs of events, attempts of one execution, and repeated hours.

mod common;

use common::{imported, refusal, rows, try_import, warns};

const MAP: &str = "mapping = 1\n[fold]\nkey = \"id\"\ntime = \"time\"\nevent = \"kind\"\nsubmit = [\"submit\"]\nstart = [\"start\"]\n\
                   end = { done = [\"end\"] }\n[keep]\n\"fold.outcome == 'done'\" = \"not done\"\n\
                   [trace]\njob = \"id\"\nsubmit = \"first_submit\"\nduration = \"last_end - last_start\"\ncpu = \"cpu\"\n";

#[test]
fn a_column_of_the_log_does_not_hide_a_column_of_the_fold() {
    let log = "id,time,kind,cpu,outcome,starts\n1,5,submit,2,bad,7\n1,6,start,2,bad,7\n1,9,end,2,bad,7\n";
    let workload = imported(MAP, &[("log.csv", log)]);
    assert_eq!(rows(&workload), [("1".to_owned(), 0.0, 3.0)]);
    // The columns of the log are accounted for.
    warns(&workload, "columns of log.csv that the mapping does not name: outcome, starts");
    let message = refusal(&MAP.replace("fold.outcome", "outcome"), &[("log.csv", log)]);
    assert!(
        message.contains(
            "'outcome' is a column of log.csv and of the fold; write fold.outcome for the fold, or $5 for the log"
        ),
        "{message}"
    );
    let workload =
        imported(&MAP.replace("fold.outcome == 'done'", "$5 == 'bad' and fold.starts == 1"), &[("log.csv", log)]);
    assert_eq!(rows(&workload).len(), 1);
    // Without such a column the name alone is clear.
    let log = log.replace("outcome", "result");
    assert_eq!(rows(&imported(&MAP.replace("fold.outcome", "outcome"), &[("log.csv", &log)])).len(), 1);
}

#[test]
fn the_last_value_of_a_fold_is_not_a_marker_of_missing_values() {
    let log = "id,time,kind,cpu\n1,5,submit,2\n1,6,start,-1\n1,9,end, n/a\n";
    let workload = imported(&format!("{MAP}[input]\nmissing = [\"-1\", \"n/a\"]\n"), &[("log.csv", log)]);
    assert_eq!(workload.sets[0].demand[0], 2000);
}

#[test]
fn every_event_is_read_or_counted() {
    let log = "id,time,kind,cpu\n1,5,submit,2\n1,6,start,2\n1,7,resize,3\n,8,end,\n1,,end,\n1,8,,\n1,x,end,\n1,7,resize,4\n1,9,end,\n";
    let workload = imported(MAP, &[("log.csv", log)]);
    assert_eq!(workload.sets[0].demand[0], 4000);
    let dropped: Vec<(&str, u64, u64)> = workload
        .quality
        .dropped
        .iter()
        .map(|(reason, rows)| (reason.as_str(), *rows, workload.quality.first_dropped[reason].0))
        .collect();
    let want = [
        ("an event without a key", 1, 5),
        ("an event without a kind", 1, 7),
        ("an event without a time", 1, 6),
        ("unusable fold.time", 1, 8),
    ];
    assert_eq!(dropped, want);
    warns(&workload, "2 events of the kind 'resize', which [fold] does not name");
    warns(&workload, "(first line 4 of log.csv)");
    let named = imported(&MAP.replace("[keep]", "update = [\"resize\"]\n[keep]"), &[("log.csv", log)]);
    assert!(!named.quality.warnings.iter().any(|warning| warning.contains("resize")), "{:?}", named.quality);
    let error = try_import(MAP, &[("log.csv", log)], true).expect_err("strict").to_string();
    assert!(error.contains("log.csv, line 8, column 'fold.time': 'x' is neither a number nor a time"), "{error}");
    // If no event has a known kind, the error names the kinds.
    let error = refusal(MAP, &[("log.csv", "id,time,kind,cpu\n1,5,SUBMIT,2\n1,6,START,2\n1,9,END,\n")]);
    assert!(error.contains("1 not done") && error.contains("the kind 'START', which [fold] does not name"), "{error}");
}

const ATTEMPTS: &str =
    "mapping = 1\n[trace]\njob = \"id\"\nsubmit = \"submit\"\nduration = \"end - start\"\ncpu = \"cpu\"\n";

#[test]
fn attempts_are_ordered_by_time() {
    // The log is sorted by the end of the attempts in reverse order.
    let log = "id,submit,start,end,cpu\n1,7,30,39,3\n2,6,6,9,1\n1,6,20,24,2\n1,5,10,11,1\n";
    let import = |rule: &str, more: &str, log: &str| {
        imported(&format!("{ATTEMPTS}[attempts]\nkey = \"id\"\nuse = \"{rule}\"\n{more}"), &[("log.csv", log)])
    };
    for (rule, duration, cpu) in [("first", 1.0, 1000), ("last", 9.0, 3000), ("sum", 14.0, 3000)] {
        let workload = import(rule, "", log);
        assert_eq!(rows(&workload)[0], ("1".to_owned(), 0.0, duration), "{rule}");
        assert_eq!(workload.sets[0].demand[0], cpu, "{rule}");
    }
    let durations = |workload: &plimsoll_sim::workload::Workload| -> Vec<f64> {
        rows(workload).into_iter().filter(|row| row.0 == "1").map(|row| row.2).collect()
    };
    assert_eq!(durations(&import("each", "", log)), [1.0, 4.0, 9.0]);
    // All attempts have the time of the first submission; the start orders them.
    let log = log.replace("1,7,", "1,5,").replace("1,6,", "1,5,");
    for (rule, duration) in [("first", 1.0), ("last", 9.0)] {
        let by_start = import(rule, "order = \"start\"\n", &log);
        assert_eq!(rows(&by_start)[0].2, duration, "{rule}");
        assert!(by_start.quality.warnings.is_empty() || rule == "first", "{:?}", by_start.quality);
    }
    assert_eq!(durations(&import("each", "order = \"start\"\n", &log)), [1.0, 4.0, 9.0]);
    warns(
        &import("last", "", &log),
        "attempts with the time of another attempt of their execution, taken in the order of the log: 2",
    );
}

/// Columns and warnings are counted for the attempts that are kept.
#[test]
fn facts_are_those_of_the_kept_attempts() {
    let log = "id,submit,start,end,cpu,tag\n1,5,10,11,1,x\n2,5,10,11,1,x\n1,7,30,39,3,\n";
    let map = |rule: &str| {
        format!(
            "{ATTEMPTS}[attempts]\nkey = \"id\"\nuse = \"{rule}\"\n[fields]\ntag = \"counted: a tag\"\n[warn]\n\"cpu > 2\" = \"large\"\n"
        )
    };
    let last = imported(&map("last"), &[("log.csv", log)]).quality.warnings;
    assert_eq!(last, ["large: 1 rows", "column tag is not read, and 1 rows have a value: a tag"]);
    let first = imported(&map("first"), &[("log.csv", log)]).quality.warnings;
    assert_eq!(first, ["column tag is not read, and 2 rows have a value: a tag"]);
    // More facts than bits.
    let many: String = (0..70).map(|at| format!("\"cpu > {at}\" = \"above {at}\"\n")).collect();
    let workload =
        imported(&format!("{ATTEMPTS}[warn]\n{many}"), &[("log.csv", "id,submit,start,end,cpu\n1,5,10,11,68\n")]);
    assert_eq!(workload.quality.warnings.len(), 68);
}

/// Dependencies may have the keys of rows instead of stages; unknown keys and cycles are repaired.
#[test]
fn rows_may_wait_for_keys_of_rows() {
    let map = format!("{ATTEMPTS}stage = \"s\"\nafter = \"a\"\nafter_key = \"key\"\n");
    let log = "id,submit,start,end,cpu,key,s,a\n1,0,0,1,1,k7,x,\n1,0,0,1,1,k8,y,k7\n1,0,0,1,1,k9,z,k7;k8;k4\n\
               2,0,0,1,1,k4,x,k5\n2,0,0,1,1,k5,y,k4\n";
    let workload = imported(&map, &[("log.csv", log)]);
    let name = |stage: &u32| workload.stages.name(*stage);
    let after: Vec<Vec<&str>> = workload.sets.iter().map(|set| set.after.iter().map(name).collect()).collect();
    assert_eq!(after, [&[][..], &["x"], &["x", "y"], &[], &[]]);
    assert_eq!(workload.quality.repaired.values().copied().collect::<Vec<u64>>(), [2, 1]);
}

#[test]
fn a_job_has_the_user_of_its_earliest_row() {
    let log = "id,submit,start,end,cpu,user\n1,7,30,39,3,bob\n1,5,10,11,1,ann\n";
    let workload = imported(&format!("{ATTEMPTS}user = \"user\"\n"), &[("log.csv", log)]);
    assert_eq!(workload.users.name(workload.sets[0].user.0), "ann");
}

#[test]
fn repeated_hours_are_counted_by_row() {
    let log = "id,submit,start,end,cpu\n1,2017-11-05 01:30:00,2017-11-05 01:31:00,2017-11-05 01:32:00,1\n\
               2,2017-11-06 01:30:00,2017-11-06 01:31:00,2017-11-06 01:32:00,1\n";
    let map = format!("{ATTEMPTS}[time]\nzone = \"America/Los_Angeles\"\n[keep]\n\"end >= start\" = \"negative\"\n");
    let workload = imported(&map, &[("log.csv", log)]);
    let repeated = workload.quality.assumptions.iter().find(|(name, _)| name == "time.repeated");
    assert_eq!(repeated.map(|(_, text)| text.as_str()), Some("first; 1 rows have times in a repeated hour"));
}
