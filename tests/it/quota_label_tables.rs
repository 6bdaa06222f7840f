//! Quota per label: the tables and figures of a plan, compared with manually computed values, and errors in the labels of a plan.

use std::path::Path;

use crate::frame::Frame;
use crate::replay::{plimsoll, run, said};

/// Two machines of four cores: one has the label `gpu` until 10 s, and both have it from 10 s on. `a` is guaranteed two cores of the label.
const PLAN: &str = "name = 'by-hand'\npolicies = ['quota:@teams']\nsample = '5s'\n\
                    [cluster]\nmachines = 'machines.csv'\nevents = 'events.csv'\nplacement = 'first-fit'\n\
                    [workload]\ntrace = 'trace.csv'\n\
                    [[quota.teams.group]]\nname = 'p'\n\
                    [[quota.teams.group]]\nname = 'a'\nparent = 'p'\nusers = ['a']\n\
                    [[quota.teams.group]]\nname = 'b'\nusers = ['b']\n\
                    [[quota.teams.label]]\nname = 'gpu'\n\
                    [[quota.teams.label.group]]\nname = 'p'\nmin = { cpu = 2 }\n\
                    [[quota.teams.label.group]]\nname = 'a'\nmin = { cpu = 2 }\n";

/// `b` has no quota of the label. Its four tasks use the whole machine `plain` until 20 s, although that machine gets the label at 10 s.
const TRACE: &str =
    "job,user,submit_s,duration_s,tasks,cpu,label\n1,a,0,20,6,1,gpu\n2,b,0,20,4,1,\n3,b,0,5,1,1,gpu & gpu\n";

fn write(dir: &Path, plan: &str) {
    let files = [
        ("plan.toml", plan),
        ("trace.csv", TRACE),
        ("machines.csv", "name,count,cpu,labels\nplain,1,4,\nfast,1,4,gpu\n"),
        ("events.csv", "at_s,machine,event,labels\n10,plain,relabel,gpu\n"),
    ];
    for (name, text) in files {
        std::fs::write(dir.join(name), text).expect("a temporary file is writable");
    }
}

fn table(dir: &Path, table: &str) -> Frame {
    let path = dir.join("out").join(table).join("policy=quota%3A%40teams/run=0").join(format!("{table}.parquet"));
    Frame::open(&path)
}

fn numbers(table: &Frame, column: &str) -> Vec<f64> {
    table.numbers(column).into_iter().map(|value| value.unwrap_or(-1.0)).collect()
}

fn names(table: &Frame, column: &str) -> Vec<String> {
    table.names(column, "-")
}

#[test]
fn tables_have_a_row_for_each_group_that_a_tree_names() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    write(dir.path(), PLAN);
    let output = run(plimsoll(&["run"]).arg(dir.path().join("plan.toml")).arg("-o").arg(dir.path().join("out")));
    let shown = String::from_utf8(output.stdout.clone()).expect("text") + &said(&output);
    assert!(output.status.success() && shown.contains("a (gpu)") && !shown.contains("b (gpu)"), "{shown}");
    let groups = table(dir.path(), "groups");
    assert_eq!(names(&groups, "group"), ["p", "a", "b", "p", "a"]);
    assert_eq!(names(&groups, "parent"), ["-", "p", "-", "-", "p"]);
    assert_eq!(names(&groups, "label"), ["-", "-", "-", "gpu", "gpu"]);
    // Four tasks of `a` end at 20 s. Its other two tasks wait until 20 s, because `b` uses the other machine, and end at 40 s.
    for (column, values) in [
        ("capacity", [4.0, 4.0, 4.0, 8.0, 8.0]),
        ("min", [0.0, 0.0, 0.0, 2.0, 2.0]),
        ("used_s", [0.0, 0.0, 80.0, 120.0, 120.0]),
        ("demand_s", [0.0, 0.0, 80.0, 160.0, 160.0]),
        ("borrowed_s", [0.0, 0.0, 80.0, 40.0, 40.0]),
    ] {
        assert_eq!(numbers(&groups, column), values, "{column}");
    }
    let levels = table(dir.path(), "levels");
    let [times, totals, quotas] = ["time_us", "total", "runtime"].map(|column| numbers(&levels, column));
    let (who, labels) = (names(&levels, "group"), names(&levels, "label"));
    let of = |group: &str| -> Vec<[f64; 3]> {
        let mine = (0..who.len()).filter(|&row| who[row] == group && labels[row] == "gpu");
        mine.map(|row| [times[row] / 1e6, totals[row], quotas[row]]).collect()
    };
    assert_eq!(of("p"), [[0.0, 4.0, 4.0], [10.0, 8.0, 6.0], [20.0, 8.0, 2.0]]);
    assert_eq!(of("a"), [[0.0, 4.0, 4.0], [10.0, 6.0, 6.0], [20.0, 2.0, 2.0]]);
    for figure in ["water-2", "quotas-2"] {
        let drawn = std::fs::read_to_string(dir.path().join("out").join("figures").join(format!("{figure}.svg")));
        assert!(drawn.is_ok_and(|svg| svg.starts_with("<svg")), "{figure}");
    }
}

#[test]
fn what_is_wrong_with_a_label_has_its_line_in_the_plan() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    for (from, to, expected) in [
        ("name = 'gpu'", "name = 'gpu & ssd'", "line 20, column 8: label.name: 'gpu & ssd' is no label"),
        (
            "name = 'gpu'",
            "name = 'gpus'",
            "line 20, column 8: label.name: 'gpus' is no label of any machine (did you mean 'gpu'?)",
        ),
        ("'first-fit'", "'pooled'", "expected machines that tasks are placed on"),
        ("'first-fit'\n", "'pooled'\n#", "line 20, column 8: label.name: 'gpu': a pooled cluster has no machines"),
        ("[[quota.teams.label.group]]\nname = 'p'\nmin = { cpu = 2 }\n", "", "which has no group here"),
        ("name = 'p'\nmin = { cpu = 2 }", "name = 'p'\nmin = { cpu = 2, disk = 2 }", "is no resource of this run"),
    ] {
        assert!(PLAN.contains(from), "{from}");
        let mut plan = PLAN.replacen(from, to, 1);
        if to.ends_with('#') {
            plan = plan.replacen("events = 'events.csv'\n", "", 1).replacen('#', "\n", 1);
        }
        write(dir.path(), &plan);
        let output = run(plimsoll(&["run"]).arg(dir.path().join("plan.toml")).arg("-o").arg(dir.path().join("none")));
        let said = said(&output);
        assert!(output.status.code() == Some(2) && said.contains(expected), "{said}\nnot: {expected}");
    }
}
