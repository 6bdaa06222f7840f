//! Quota groups in a plan, and users in a list, give the same runs as one file with both. Every mistake is reported with its place.

use std::path::Path;

use plimsoll::experiment::Plan;
use plimsoll::policy::{BUILT_IN, QuotaFile, Registry};

use crate::replay::{plimsoll, run, said};

const REST: &str = "[cluster]\nmachines = '1x8c32g'\n[workload]\ntrace = 'trace.csv'\n";
const TRACE: &str =
    "job,user,submit_s,duration_s,tasks,cpu,memory_gib\n1,ann,0,10,9,1,1\n2,bob,1,10,9,1,1\n3,nightly-7,2,5,4,1,1\n";
const GROUPS: &str = "inside = 'fair'\n[[group]]\nname = 'ads'\nratio = 3\nusers = ['ann', 'nightly-*']\n[[group]]\nname = 'web'\nmin = { cpu = 1 }\nusers = ['bob']\n";
const BARE: &str = "inside = 'fair'\nusers = 'who.csv'\n[[group]]\nname = 'ads'\nratio = 3\nusers = ['ann']\n[[group]]\nname = 'web'\nmin = { cpu = 1 }\n";

fn write(folder: &Path, name: &str, text: &str) {
    std::fs::write(folder.join(name), text).expect("a file in a temporary folder");
}

/// Runs the plan, removes its results, and returns the standard output.
fn printed(folder: &Path, plan: &str) -> String {
    write(folder, "plan.toml", plan);
    let output = run(plimsoll(&["run", "plan.toml", "--quiet", "-o", "out"]).current_dir(folder));
    assert!(output.status.success(), "{plan}: {}", said(&output));
    std::fs::remove_dir_all(folder.join("out")).expect("the results are there");
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn groups_in_the_plan_and_users_in_a_list_are_as_in_a_file() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    write(dir.path(), "trace.csv", TRACE);
    write(dir.path(), "teams1", GROUPS);
    write(dir.path(), "teams2", BARE);
    write(dir.path(), "who.csv", "group, user\nads,nightly-*\n\nweb,bob\n");
    let inline = |groups: &str| groups.replace("[[group]]", "[[quota.teams.group]]");
    let head = |policy: &str| format!("name = 'teams'\npolicies = ['{policy}', 'drf']\n");
    let whole = printed(dir.path(), &format!("{}{REST}", head("quota:teams1")));
    let listed = printed(dir.path(), &format!("{}{REST}", head("quota:teams2")));
    assert_eq!(whole.replace("teams1", "teams2"), listed);
    for groups in [GROUPS, BARE] {
        let plan = format!("{}{REST}[quota.teams]\n{}", head("quota:@teams"), inline(groups));
        assert_eq!(whole.replace("quota:teams1", "quota:@teams"), printed(dir.path(), &plan));
    }
}

#[test]
fn a_change_to_the_plan_reaches_its_groups() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let plan = format!(
        "name = 'a'\npolicies = ['quota:@g']\n{REST}[quota.g]\n[[quota.g.group]]\nname = 'x'\ndefault = true\n"
    );
    write(dir.path(), "plan.toml", &plan);
    let path = dir.path().join("plan.toml");
    let read = |set: &[String]| Plan::read(&path, set, &Registry::new(BUILT_IN));
    assert_eq!(read(&[]).expect("a plan").policies[0].name, "quota:@g");
    assert!(read(&["quota.g.inside=fair".to_owned()]).is_ok());
    let message = read(&["quota.g.inside=lifo".to_owned()]).err().expect("no such order").to_string();
    assert!(message.starts_with("--set quota.g.inside=lifo: inside: 'lifo' is not accepted"), "{message}");
}

#[test]
fn every_mistake_in_a_plan_has_its_place() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    for (policy, quota, says) in [
        (
            "quota:@tems",
            "[quota.teams]\n[[quota.teams.group]]\nname = 'a'\n",
            "a table [quota.tems] in this plan (did you mean 'teams'?)",
        ),
        ("quota:@teams", "", "a table [quota.teams] in this plan"),
        ("quota:@teams", "[quota]\nteams = 3\n", "line 8, column 1: quota: expected tables with names"),
        ("quota:@teams", "[quota.teams]\ninside = 'fair'\n", "line 7, column 8: group: is missing"),
        ("quota:@teams", "[quota.teams]\nratio = 1\n", "line 8, column 1: 'ratio' is no key"),
        (
            "quota:@teams",
            "[[quota.teams.group]]\nname = 'a'\nmin = { cpu = 3 }\nmax = { cpu = 2 }\n",
            "line 10, column 9: max.cpu: 2",
        ),
        (
            "quota:@teams",
            "[[quota.teams.group]]\nname = 'a'\nparent = 'b'\n",
            "line 9, column 10: parent: 'b' is no group",
        ),
    ] {
        let plan = format!("name = 'a'\npolicies = ['{policy}']\n{REST}{quota}");
        write(dir.path(), "plan.toml", &plan);
        let error = Plan::read(&dir.path().join("plan.toml"), &[], &Registry::new(BUILT_IN)).err();
        let message = error.unwrap_or_else(|| panic!("{plan} is wrong")).to_string();
        assert!(message.contains(says) && message.contains("plan.toml"), "{says:?} is not in {message}");
    }
    let output = run(&mut plimsoll(&["replay", "trace.csv", "--machines", "1x1c1g", "--policy", "quota:@teams"]));
    assert_eq!(output.status.code(), Some(2));
    assert!(
        said(&output).contains("a file; only the policies of a plan can name a table [quota.NAME]"),
        "{}",
        said(&output)
    );
}

#[test]
fn every_mistake_in_a_list_of_users_has_its_place() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let groups = "users = 'who.csv'\n[[group]]\nname = 'top'\n[[group]]\nname = 'ads'\nparent = 'top'\nusers = ['ann']\n[[group]]\nname = 'web'\n";
    write(dir.path(), "groups.toml", groups);
    let read = || QuotaFile::read(&dir.path().join("groups.toml"));
    assert!(read().expect_err("no list").to_string().contains("who.csv"));
    for (list, says) in [
        ("", &["who.csv", "is empty; expected the columns user and group"][..]),
        ("user\nbob\n", &["line 1", "has 1 field; expected the columns user and group"]),
        ("who,group\nbob,ads\n", &["line 1", "has the columns 'who' and 'group'; expected"]),
        ("user,group\nbob\n", &["line 2", "has 1 field"]),
        ("user,group\n,ads\n", &["line 2", "user", "is empty; expected a name"]),
        ("user,group\nbob,adds\n", &["line 2", "group", "'adds' is no group (did you mean 'ads'?)", "groups.toml"]),
        ("user,group\n\nbob,top\n", &["line 3", "group", "'top' has groups under it; expected one of those"]),
        (
            "user,group\nbob,web\nbob,web\n",
            &["line 3", "user", "'bob' is in group 'web' already; expected each user once"],
        ),
        ("group,user\nweb,ann\n", &["line 2", "user", "'ann' is in group 'ads' already"]),
    ] {
        write(dir.path(), "who.csv", list);
        let message = read().err().unwrap_or_else(|| panic!("{list:?} is wrong")).to_string();
        assert!(says.iter().all(|part| message.contains(part)), "{says:?} are not all in {message}");
    }
    write(dir.path(), "who.csv", "\u{feff}user,group\r\nbob,web\r\n");
    let file = read().expect("a good list");
    assert_eq!(file.files, [dir.path().join("groups.toml"), dir.path().join("who.csv")]);
    assert_eq!(file.groups[2].users, ["bob"]);
}
