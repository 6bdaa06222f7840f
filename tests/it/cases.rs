//! Worked examples, run through the binary: those of the DRF paper, and small traces with an evident outcome.

use std::path::Path;

use crate::frame::Frame;
use crate::replay::{plimsoll, read_tasks, run, said};

/// The tasks that start, as `(job, task, start in seconds)`, ordered by start, job and task.
type Starts = Vec<(String, u64, u64)>;

/// Replays a trace and reads the starts of its tasks.
fn replay(trace: &[u8], policy: &str, args: &[&str]) -> Starts {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let (file, out) = (dir.path().join("trace.csv"), dir.path().join("out"));
    std::fs::write(&file, trace).expect("a temporary file is writable");
    let mut command = plimsoll(&["replay"]);
    let output = run(command.arg(&file).args(["--policy", policy, "--tasks", "-o"]).arg(&out).args(args));
    assert!(output.status.success(), "{policy} {args:?}: {}", said(&output));
    starts(&out, policy)
}

fn starts(out: &Path, policy: &str) -> Starts {
    let tasks = read_tasks(out, policy).unwrap_or_else(|problem| panic!("{problem}"));
    let start = |(job, o): (String, crate::slow::Outcome)| Some((job, o.task, o.start? / 1_000_000));
    let mut starts: Starts = tasks.into_iter().filter_map(start).collect();
    starts.sort_by(|a, b| (a.2, &a.0, a.1).cmp(&(b.2, &b.0, b.1)));
    starts
}

/// Returns the number of tasks of a job that start in a second.
fn count(starts: &Starts, job: &str, second: u64) -> usize {
    starts.iter().filter(|start| start.0 == job && start.2 == second).count()
}

/// User A's tasks need <1 CPU, 4 GB>, user B's <3 CPU, 1 GB>; the cluster has <9 CPU, 18 GB>.
const PAPER: &[u8] = b"job,user,submit_s,duration_s,tasks,cpu,memory_gib\na,A,0,1000,20,1,4\nb,B,0,1000,20,3,1\n";

#[test]
fn the_drf_papers_table_1_ends_with_three_and_two_tasks_under_any_tie_rule() {
    for ties in ["least-recently-served", "lowest-id", "highest-id", "fewest-running"] {
        for on_blocked in ["skip", "stop"] {
            let args = ["--machines", "1x9c18g", "--placement", "pooled", "--ties", ties, "--on-blocked", on_blocked];
            let starts = replay(PAPER, "drf", &args);
            assert_eq!((count(&starts, "a", 0), count(&starts, "b", 0)), (3, 2), "{ties}, {on_blocked}");
        }
    }
}

/// The order of Table 1 itself, from the decisions table: the paper begins with B although both shares are 0.
#[test]
fn the_decisions_are_those_of_the_drf_papers_table_1() {
    for (ties, wanted) in
        [("highest-id", "B A A B A"), ("lowest-id", "A B A B A"), ("least-recently-served", "A B A B A")]
    {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let (trace, out) = (dir.path().join("paper.csv"), dir.path().join("out"));
        std::fs::write(&trace, PAPER).expect("a temporary file is writable");
        let mut command = plimsoll(&["replay", "--machines", "1x9c18g", "--policy", "drf", "--on-blocked", "stop"]);
        command.args(["--until", "500s", "--decisions", "--ties", ties, "-o"]).arg(&out).arg(&trace);
        let output = run(&mut command);
        assert!(output.status.success(), "{}", said(&output));
        let table = Frame::open(&out.join("decisions/policy=drf/run=0/decisions.parquet"));
        let text = |name: &str| table.names(name, "");
        let turns = text("turn");
        // All nine cores are in use. The first blocked user ends the round, and the other user waits.
        assert_eq!(turns[..5], ["launched"; 5]);
        assert_eq!(turns[5..], ["blocked", "waits"]);
        assert_eq!(text("user")[..5].join(" "), wanted);
        // Table 1's dominant shares: of A before its second task, of B before its second task, and of A before its third task.
        let before: Vec<f64> = table.real("dominant_share").iter().flatten().copied().skip(2).take(3).collect();
        for (share, ninths) in before.iter().zip([2.0, 3.0, 4.0]) {
            assert!((share - ninths / 9.0).abs() < 1e-9, "{before:?}");
        }
    }
}

/// All tasks of Table 1 start at one instant; the order is visible only if there is room for one task.
#[test]
fn the_tie_rule_decides_who_goes_first() {
    let first = b"job,user,submit_s,duration_s,tasks,cpu,memory_gib\na,A,0,10,1,1,4\nb,B,0,10,1,3,1\n";
    for (ties, earlier, later) in [("lowest-id", "a", "b"), ("highest-id", "b", "a")] {
        // Three cores and four GiB have room for either task, but not for both.
        let starts = replay(first, "drf", &["--machines", "1x3c4g", "--placement", "pooled", "--ties", ties]);
        assert_eq!((count(&starts, earlier, 0), count(&starts, later, 10)), (1, 1), "{ties}");
    }
}

#[test]
fn each_policy_of_the_paper_ends_where_it_should_on_the_papers_users() {
    let args = ["--machines", "1x9c18g", "--placement", "pooled", "--ties", "lowest-id"];
    // The expected numbers are calculated manually in `slow/checks.rs`. Under `fifo` A fills the memory with 4 tasks, and one task of B fits
    // beside them.
    for (policy, a, b) in
        [("asset", 3, 2), ("maxmin:cpu", 4, 1), ("maxmin:memory", 3, 2), ("fifo", 4, 1), ("drf", 3, 2)]
    {
        let starts = replay(PAPER, policy, &args);
        assert_eq!((count(&starts, "a", 0), count(&starts, "b", 0)), (a, b), "{policy}");
    }
    let starts = replay(PAPER, "slot:6", &args);
    assert_eq!((count(&starts, "a", 0), count(&starts, "b", 0)), (3, 3), "six slots, three each");
}

#[test]
fn a_row_may_come_after_a_stage_that_is_listed_below_it() {
    let trace = b"job,user,submit_s,duration_s,cpu,stage,after\nj,u,0,1,1,reduce,map\nj,u,0,5,1,map,\n";
    assert_eq!(replay(trace, "fifo", &["--machines", "1x2c"]), [("j".into(), 1, 0), ("j".into(), 0, 5)]);
}

#[test]
fn line_ends_and_byte_order_marks_change_nothing() {
    let plain = String::from_utf8(PAPER.to_vec()).expect("text");
    let args = ["--machines", "2x6c12g", "--placement", "first-fit"];
    let expected = replay(PAPER, "drf", &args);
    let crlf = plain.replace('\n', "\r\n");
    let spellings = [crlf.clone(), format!("\u{feff}{plain}"), format!("\u{feff}{crlf}"), plain.trim_end().to_owned()];
    for text in spellings {
        assert_eq!(replay(text.as_bytes(), "drf", &args), expected, "{text:?}");
    }
}

#[test]
fn columns_may_stand_in_any_order_and_unit() {
    let args = ["--machines", "2x6c12g", "--placement", "first-fit"];
    let other =
        b"memory_mib,cpu,tasks,duration_ms,submit_us,user,job\n4096,1.000,20,1e6,0,A,a\n1024,3,20,1000000,0,B,b\n";
    assert_eq!(replay(other, "drf", &args), replay(PAPER, "drf", &args));
}

#[test]
fn names_with_commas_quotes_and_blanks_come_back_as_they_were() {
    let trace = "job,user,submit_s,duration_s,cpu\n\"a, \"\"b\"\"\",\"x, y\",0,1,1\n007,ümit,0,1,1\n7,ümit,0,1,1\n";
    let starts = replay(trace.as_bytes(), "fifo", &["--machines", "1x3c"]);
    assert_eq!(starts, [("007".into(), 0, 0), ("7".into(), 0, 0), ("a, \"b\"".into(), 0, 0)]);
}

#[test]
fn a_horizon_cuts_the_run() {
    let trace = b"job,user,submit_s,duration_s,cpu\na,u,0,10,1\nb,u,0,10,1\nc,u,50,10,1\n";
    let all = replay(trace, "drf", &["--machines", "1x1c"]);
    assert_eq!(all, [("a".into(), 0, 0), ("b".into(), 0, 10), ("c".into(), 0, 50)]);
    let cut = replay(trace, "drf", &["--machines", "1x1c", "--until", "30s"]);
    assert_eq!(cut, all[..2], "a job that arrives after the horizon does not start");
}

/// Returns the values of a column by job.
fn by_job(table: &Frame, column: &str) -> Vec<(String, Option<i64>)> {
    let values = table.integers(column).iter().copied();
    let mut rows: Vec<(String, Option<i64>)> = table.names("job", "").into_iter().zip(values).collect();
    rows.sort();
    rows
}

/// Tasks that wait at the end of a run have a release time. Tasks that are too large, or that wait for a stage, have none. An amount of
/// work that exceeds the range of its column is null, and there is a warning.
#[test]
fn tables_say_when_waiting_tasks_were_released_and_which_work_is_too_much() {
    const TRACE: &str = "job,user,submit_s,duration_s,tasks,cpu,stage,after\nendless,u,0,1e12,100,1,,\n\
                         first,u,1,100,1,4,map,\nfirst,u,1,10,1,4,,map\nlarge,u,2,10,1,9,,\nwaits,u,5,10,1,4,,\n";
    let dir = tempfile::tempdir().expect("a temporary folder");
    let (file, out) = (dir.path().join("trace.csv"), dir.path().join("out"));
    std::fs::write(&file, TRACE).expect("a temporary file is writable");
    let mut command = plimsoll(&["replay", "--policy", "fifo", "--machines", "1x4c", "--until", "50s", "--tasks"]);
    let output = run(command.arg(&file).arg("-o").arg(&out));
    assert!(said(&output).contains("1 job: 2^63 us of work or more, so that work_us is null"), "{}", said(&output));
    let read = |table: &str| {
        let path = out.join(table).join("policy=fifo/run=0").join(format!("{table}.parquet"));
        Frame::open(&path)
    };
    let work: Vec<Option<i64>> = by_job(&read("jobs"), "work_us").into_iter().map(|(_, work)| work).collect();
    assert_eq!(work, [None, Some(110_000_000), Some(10_000_000), Some(10_000_000)]);
    let mut tasks = by_job(&read("tasks"), "release_us");
    tasks.retain(|(job, _)| job != "endless");
    let seconds = |(job, at): &(String, Option<i64>)| format!("{job} {:?}", at.map(|at| at / 1_000_000));
    let tasks: Vec<String> = tasks.iter().map(seconds).collect();
    assert_eq!(tasks, ["first None", "first Some(1)", "large None", "waits Some(5)"]);
}
