//! Invalid input about machines, passed to the binary: labels, places, gangs, machine events and slowdown.

use std::path::Path;

use crate::errors::{all, refused};
use crate::replay::{plimsoll, run, said};

const MACHINES: &str = "name,count,cpu,memory_gib,labels,room,rack\nweb,2,4,8,ssd,hz,r1\ndb,1,4,8,gpu,sh,r1\n";
const HEADER: &str = "job,user,submit_s,duration_s,tasks,cpu,memory_gib";
const EVENTS: &str = "at_s,machine,event,labels\n";

/// An invalid case: a trace, machine events and arguments, and the texts that the message must contain.
struct Wrong {
    what: &'static str,
    /// Further columns of the trace, and the fields of its second row, which is line 3 of the file.
    columns: &'static str,
    row: &'static str,
    events: Option<&'static str>,
    args: &'static [&'static str],
    says: &'static [&'static str],
}

/// Returns a case with an invalid second row of the trace.
fn row(what: &'static str, columns: &'static str, row: &'static str, says: &'static [&'static str]) -> Wrong {
    Wrong { what, columns, row, events: None, args: &[], says }
}

/// Returns a case with a valid trace and invalid machine events.
fn events(what: &'static str, text: &'static str, says: &'static [&'static str]) -> Wrong {
    Wrong { events: Some(text), ..row(what, "", "b,u,1,10,1,1,1", says) }
}

/// Returns a case with a valid trace and invalid arguments.
fn args(what: &'static str, args: &'static [&'static str], says: &'static [&'static str]) -> Wrong {
    Wrong { args, ..row(what, "", "b,u,1,10,1,1,1", says) }
}

fn traces() -> Vec<Wrong> {
    let label: [(&str, &str, &[&str]); 7] = [
        ("an unknown label", "sssd", &["'sssd' is no label of any machine", "known: gpu, ssd"]),
        ("an unknown label in an expression", "ssd & (gpu | !fast)", &["'fast' is no label", "known: gpu, ssd"]),
        ("an incomplete expression", "ssd &", &["'ssd &' is no label expression", "the end", "character 6"]),
        ("two labels without an operator", "ssd gpu", &["no label expression", "character 5", "'&', '|'"]),
        ("a missing parenthesis", "(ssd | gpu", &["no label expression", "')'"]),
        ("an unknown operator", "ssd && gpu", &["no label expression", "character 6"]),
        ("nothing to negate", "!", &["no label expression", "the end"]),
    ];
    let place: [(&str, &str, &[&str]); 6] = [
        ("an unknown rack", "hz/r2", &["'hz/r2' is no room, no rack and no machine", "did you mean 'hz/r1'"]),
        ("an unknown room", "bj", &["'bj' is no room, no rack and no machine", "ROOM/RACK"]),
        ("a rack of a room, named without the room", "/r1", &["'/r1' is no room"]),
        ("a machine number above the last", "3", &["'3' is no room, no rack and no machine"]),
        ("a machine number above the last of its group", "web-2", &["'web-2' is no room"]),
        ("a group instead of a machine", "web", &["'web' is no room"]),
    ];
    let text = |line: &str, field: &str| -> &'static str { format!("{line},{field}").leak() };
    let mut all = Vec::new();
    for (what, field, says) in label {
        all.push(row(what, ",label", text("b,u,1,10,1,1,1", field), says));
    }
    for (what, field, says) in place {
        all.push(row(what, ",location", text("b,u,1,10,1,1,1", field), says));
    }
    all.iter_mut().for_each(|wrong| wrong.args = &["--fall-back", "never"]);
    all.extend([
        row("a gang larger than the cluster", ",gang", "b,u,1,10,13,1,1,true", &["'gang'", "13 tasks", "room for 12"]),
        row(
            "a gang larger than the machines with its label",
            ",gang,label",
            "b,u,1,10,9,1,1,true,ssd",
            &["'gang'", "9 tasks", "room for 8"],
        ),
        row(
            "a gang larger than the machines without a label",
            ",gang,label",
            "b,u,1,10,5,1,1,true,!ssd",
            &["'gang'", "5 tasks", "room for 4"],
        ),
        Wrong {
            args: &["--fall-back", "never"],
            ..row(
                "a gang larger than its place",
                ",gang,location",
                "b,u,1,10,5,1,1,true,sh",
                &["'gang'", "5 tasks", "room for 4"],
            )
        },
        // Each task takes 0.6 of one core, and no second task can use the remaining 0.4, so that 12 cores have room for 12 tasks.
        Wrong {
            args: &["--devices", "cpu"],
            ..row(
                "a gang of more tasks than devices",
                ",gang",
                "b,u,1,10,13,0.6,0.5,true",
                &["'gang'", "13 tasks", "room for 12"],
            )
        },
        row("a gang without a task that fits", ",gang", "b,u,1,10,2,5,1,true", &["'gang'", "2 tasks", "room for 0"]),
        row(
            "a gang flag that is neither true nor false",
            ",gang",
            "b,u,1,10,2,1,1,maybe",
            &["'gang'", "maybe", "true or false"],
        ),
    ]);
    all
}

fn others() -> Vec<Wrong> {
    vec![
        events(
            "an unknown machine",
            "1,web-1,fail,\n2,web-7,fail,\n",
            &["line 3", "'machine'", "'web-7' is no machine"],
        ),
        events("a machine number above the last", "1,3,fail,\n", &["line 2", "'machine'", "from 0 to 2"]),
        events(
            "an unknown event",
            "1,db,explode,\n",
            &["line 2", "'event'", "explode", "fail, leave, join or relabel"],
        ),
        events("events out of order", "5,db,fail,\n4,db,join,\n", &["line 3", "'at_s'", "before the row above"]),
        events(
            "a machine that joins twice",
            "1,db,fail,\n2,2,join,\n3,db,join,\n",
            &["line 4", "'event'", "there already"],
        ),
        events("a machine that fails twice", "1,db,fail,\n2,db,fail,\n", &["line 3", "'event'", "'db' is not there"]),
        events("a machine that leaves, then fails", "1,db,leave,\n2,db,fail,\n", &["line 3", "'event'", "not there"]),
        events("labels in a fail event", "1,db,fail,ssd\n", &["line 2", "'labels'", "only with relabel"]),
        events("an invalid label", "1,db,relabel,a b\n", &["line 2", "'labels'", "'a b' is no label"]),
        events("an unreadable time", "soon,db,fail,\n", &["line 2", "'at_s'", "soon"]),
        events("a row too short", "1,db\n", &["line 2", "2 fields"]),
        Wrong {
            args: &["--placement", "pooled"],
            ..events(
                "machine events of a pooled cluster",
                "1,db,fail,\n",
                &["--machine-events", "'pooled'", "first-fit"],
            )
        },
        args("an events file that is missing", &["--machine-events", "none.csv"], &["none.csv"]),
        args("a curve with decreasing slowdowns", &["--slowdown", "1:2,2:1"], &["--slowdown", "2:1", "monotone"]),
        args("a curve with decreasing loads", &["--slowdown", "2:1,1:2"], &["--slowdown", "1:2", "monotone"]),
        args("a curve with a load twice", &["--slowdown", "1:1,1:2"], &["--slowdown", "1:2", "monotone"]),
        args("a curve that speeds up", &["--slowdown", "1:0.5,2:1"], &["--slowdown", "1:0.5"]),
        args("a curve by an unknown quantity", &["--slowdown", "1:1,2:2 by age"], &["--slowdown", "by size"]),
        args("a text that is no curve", &["--slowdown", "fast"], &["--slowdown", "fast"]),
        args(
            "slowdown on a pooled cluster",
            &["--slowdown", "1:1,2:2", "--placement", "pooled"],
            &["--slowdown", "'pooled'"],
        ),
        args("falling back after 0 s", &["--fall-back", "0s"], &["--fall-back", "0s", "above 0"]),
        args("falling back after an unreadable span", &["--fall-back", "soon"], &["--fall-back", "soon", "span"]),
        args("an unknown action on failure", &["--on-failure", "cry"], &["--on-failure", "cry", "requeue", "lose"]),
    ]
}

#[test]
fn every_wrong_input_about_machines_is_refused_with_its_place_and_value() {
    let attempt = |wrong: Wrong, located: &[&str]| {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let trace = files(dir.path(), wrong.columns, wrong.row, wrong.events);
        let args = arguments(dir.path(), wrong.args, wrong.events.is_some());
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        refused(wrong.what, dir.path(), &trace, &args, &[located, wrong.says].concat())
    };
    let traces = traces().into_iter().map(|wrong| attempt(wrong, &["t.csv", "line 3"]));
    let others = others().into_iter().map(|wrong| {
        let pooled = wrong.args.contains(&"pooled");
        let located: &[&str] = if wrong.events.is_some() && !pooled { &["events.csv"] } else { &[] };
        attempt(wrong, located)
    });
    all(traces.chain(others).collect());
}

/// Valid input that resembles the invalid input above is accepted.
#[test]
fn what_machines_may_be_asked_for_is_accepted() {
    let good: [(&str, &str, Option<&str>, &[&str]); 8] = [
        (",label", "b,u,1,10,1,1,1,ssd & !gpu | (gpu)", None, &[]),
        (",label", "b,u,1,10,1,1,1,new", Some("1,db,relabel,new\n"), &[]),
        (",location", "b,u,1,10,1,1,1,web-1", None, &[]),
        (",gang", "b,u,1,10,12,1,1,true", None, &[]),
        (",gang,location", "b,u,1,10,12,1,1,true,db", None, &[]),
        ("", "b,u,1,10,1,1,1", Some("1,db,fail,\n1,db,join,\n1,db,leave,\n"), &[]),
        ("", "b,u,1,10,1,1,1", None, &["--slowdown", "1:1,2:1,3:4"]),
        (",label", "b,u,1,10,1,1,1,ssd", None, &["--placement", "pooled"]),
    ];
    for (columns, row, events, args) in good {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let trace = files(dir.path(), columns, row, events);
        let output = run(plimsoll(&["replay"]).arg(&trace).args(arguments(dir.path(), args, events.is_some())));
        assert_eq!(output.status.code(), Some(0), "{row}: {}", said(&output));
    }
}

/// Writes the files of a case, and returns the path of the trace. The first row of the trace is valid.
fn files(dir: &Path, columns: &str, row: &str, events: Option<&str>) -> std::path::PathBuf {
    let write = |name: &str, text: String| std::fs::write(dir.join(name), text).expect("a temporary file is writable");
    let blank = ",".repeat(columns.matches(',').count());
    write("t.csv", format!("{HEADER}{columns}\na,u,0,10,1,1,1{blank}\n{row}\n"));
    write("machines.csv", MACHINES.to_owned());
    if let Some(text) = events {
        write("events.csv", format!("{EVENTS}{text}"));
    }
    dir.join("t.csv")
}

/// Returns the arguments of a case: `--placement first-fit` unless the case sets the placement, and the case's own arguments.
fn arguments(dir: &Path, own: &[&str], events: bool) -> Vec<String> {
    let path = |name: &str| dir.join(name).display().to_string();
    let mut args = vec!["--policy".to_owned(), "drf".to_owned(), "--machines".to_owned(), path("machines.csv")];
    args.extend(own.iter().map(|arg| (*arg).to_owned()));
    if !own.contains(&"--placement") {
        args.extend(["--placement".to_owned(), "first-fit".to_owned()]);
    }
    if events {
        args.extend(["--machine-events".to_owned(), path("events.csv")]);
    }
    args
}
