//! Published examples of the policies of the literature, replayed by the program.

use std::collections::BTreeMap;
use std::path::Path;

use crate::replay::{plimsoll, read_tasks, run, said};

/// Returns the number of started tasks, by job and second of the start.
fn starts(trace: &str, machines: &str, policy: &str, groups: Option<&str>) -> BTreeMap<(String, u64), u64> {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let path = |name: &str| dir.path().join(name);
    std::fs::write(path("trace.csv"), trace).expect("a temporary file is writable");
    let mut policy = policy.to_owned();
    if let Some(groups) = groups {
        std::fs::write(path("groups.toml"), groups).expect("a temporary file is writable");
        policy += &format!(":{}", path("groups.toml").display());
    }
    let mut command = plimsoll(&["replay"]);
    command.arg(path("trace.csv")).args(["--machines", machines, "--policy", &policy, "--tasks", "-o"]);
    let output = run(command.arg(path("out")));
    assert!(output.status.success(), "{}", said(&output));
    let mut counts = BTreeMap::new();
    for (job, task) in read_tasks(&path("out"), &policy).expect("a table of tasks") {
        let start = task.start.expect("every task starts") / 1_000_000;
        *counts.entry((job, start)).or_default() += 1;
    }
    counts
}

/// Returns the number of tasks of each job that start at 0 s.
fn first(trace: &str, machines: &str, policy: &str, groups: &str) -> Vec<(String, u64)> {
    let all = starts(trace, machines, policy, Some(groups));
    all.into_iter().filter(|((_, start), _)| *start == 0).map(|((job, _), count)| (job, count)).collect()
}

/// The five quanta of the test `karma_e2e_one` in the source (resource-disaggregation/karma). In this test 33 cores, of which 3 are public,
/// serve three users with ten credits each, and every task uses one core for one quantum. Two tasks of c are not served in the fourth
/// quantum and are part of its demand in the fifth.
#[test]
fn karma_s_five_quanta() {
    let demands = [[10, 10, 10], [2, 12, 16], [6, 12, 6], [18, 5, 12], [10, 10, 8]];
    let mut trace = "job,user,submit_s,duration_s,tasks,cpu,memory_gib\n".to_owned();
    for (quantum, demands) in demands.iter().enumerate() {
        for (user, tasks) in ["a", "b", "c"].iter().zip(demands) {
            trace += &format!("{user}{quantum},{user},{},60,{tasks},1,1\n", 60 * quantum);
        }
    }
    let policy = "karma:cpu:60s:guaranteed=0.92:credits=10:free=pool";
    let all = starts(&trace, "1x33c100g", policy, None);
    let of = |user: &str, quantum: u64| -> u64 {
        all.iter().filter(|((job, start), _)| job.starts_with(user) && *start == 60 * quantum).map(|(_, n)| n).sum()
    };
    let allocated = [[10, 10, 10], [2, 12, 16], [6, 12, 6], [18, 5, 10], [10, 10, 10]];
    for (quantum, expected) in allocated.iter().enumerate() {
        assert_eq!(["a", "b", "c"].map(|user| of(user, quantum as u64)), *expected, "quantum {quantum}");
    }
}

const GROUPS: &str =
    "[[group]]\nname = 'n1'\nratio = 50\nusers = ['n1']\n[[group]]\nname = 'n2'\nratio = 50\nusers = ['n2*']\n";

/// The example of rescaling, with 10 CPU and 10 GB. Group n1 demands (1, 1); beside it, group n2 has the children n21 with (1, 0) and n22
/// with (0, 1). Each of n1, n21 and n22 runs five tasks (Bhattacharya et al., SoCC 2013, by the rule; volcano-sh/volcano,
/// `docs/design/hdrf.md`).
#[test]
fn hdrf_rescales() {
    let trace = "job,user,submit_s,duration_s,tasks,cpu,memory_gib\n\
                 a,n1,0,60,10,1,1\nb,n21,0,60,10,1,0\nc,n22,0,60,10,0,1\n";
    let five = |job: &str| (job.to_owned(), 5);
    assert_eq!(first(trace, "1x10c10g", "hdrf", GROUPS), ["a", "b", "c"].map(five));
}

/// The example of blocked nodes: when the CPUs are used up, a group continues if its other child demands only GPUs. Three groups share the
/// CPUs in equal parts, and two of them share the GPUs. The sources are those of the previous example; in this test there are 30 CPUs and
/// 30 GPUs, so that thirds are integers.
#[test]
fn hdrf_does_not_charge_for_blocked_children() {
    let trace = "job,user,submit_s,duration_s,tasks,cpu,gpu\n\
                 a,n1,0,60,40,1,0\nb,n21,0,60,40,1,0\nc,n22,0,60,40,0,1\nd,n31,0,60,40,1,0\ne,n32,0,60,40,0,1\n";
    let groups = format!("{GROUPS}[[group]]\nname = 'n3'\nratio = 50\nusers = ['n3*']\n");
    let expected = [("a", 10), ("b", 10), ("c", 15), ("d", 10), ("e", 15)];
    assert_eq!(first(trace, "1x30c30gpu", "hdrf", &groups), expected.map(|(job, tasks)| (job.to_owned(), tasks)));
}

/// Two groups of equal weight share ten cores in equal parts, although one group has ten users and the other has one. The trace is long
/// enough for twenty rounds of tasks.
#[test]
fn hdrf_does_not_favour_groups_with_many_users() {
    let mut trace = "job,user,submit_s,duration_s,tasks,cpu\n".to_owned();
    (0..10).for_each(|user| trace += &format!("ja{user},a{user},0,100,10,1\n"));
    trace += "jb,b,0,100,100,1\n";
    let groups = "[[group]]\nname = 'B'\nusers = ['b']\n[[group]]\nname = 'A'\nusers = ['a*']\n";
    let of_b = |groups: &str| {
        let all = starts(&trace, "1x10c", "hdrf", Some(groups));
        let at = |second: u64| all.get(&("jb".to_owned(), second)).copied().unwrap_or(0);
        (0..20).map(|round| at(100 * round)).collect::<Vec<_>>()
    };
    assert_eq!(of_b(groups), [5; 20]);
    // The order of the file does not matter.
    let swapped = "[[group]]\nname = 'A'\nusers = ['a*']\n[[group]]\nname = 'B'\nusers = ['b']\n";
    assert_eq!(of_b(swapped), [5; 20]);
}

/// A group's share does not depend on its number of users. The test compares random trees with one user per group and with several users
/// per group. The tasks of a group are equal.
#[test]
fn hdrf_shares_do_not_depend_on_numbers_of_users() {
    for case in 0..40u64 {
        let draw = |at: u64, below: u64| (case * 2_654_435_761 + at * 40_503 + (case >> 2) * at * 97) / 7 % below;
        let mut groups = String::new();
        let mut leaves = Vec::new();
        for top in 0..2 + draw(1, 2) {
            groups += &format!("[[group]]\nname = 't{top}'\nratio = {}\n", 1 + draw(10 + top, 3));
            let inner = draw(20 + top, 3);
            if inner == 0 {
                groups += &format!("users = ['t{top}-*']\n");
                leaves.push(format!("t{top}-"));
            }
            for leaf in 0..inner {
                let ratio = 1 + draw(30 + 4 * top + leaf, 3);
                groups += &format!(
                    "[[group]]\nname = 't{top}{leaf}'\nparent = 't{top}'\nratio = {ratio}\nusers = ['t{top}{leaf}-*']\n"
                );
                leaves.push(format!("t{top}{leaf}-"));
            }
        }
        let tasks = |users: &dyn Fn(u64) -> u64| {
            let mut trace = "job,user,submit_s,duration_s,tasks,cpu,memory_gib\n".to_owned();
            for (at, leaf) in leaves.iter().enumerate() {
                let at = at as u64;
                let (cpu, memory) = (1 + draw(60 + at, 3), 1 + draw(70 + at, 3));
                for user in 0..users(at) {
                    trace += &format!("{leaf}{user},{leaf}{user},0,60,60,{cpu},{memory}\n");
                }
            }
            let mut sums = vec![0; leaves.len()];
            for (job, count) in first(&trace, "1x60c60g", "hdrf", &groups) {
                let at = leaves.iter().position(|leaf| job.starts_with(leaf.as_str())).expect("a leaf");
                sums[at] += count;
            }
            sums
        };
        assert_eq!(tasks(&|at| 1 + draw(80 + at, 9)), tasks(&|_| 1), "case {case}\n{groups}");
    }
}

/// User b of group a has 4 of 10 cores, user e of group d has 2, and users c and f have none. The next task is that of f, in group d
/// (Apache Mesos, `sorter_tests.cpp`, `NestedRoleDRF`).
#[test]
fn hdrf_counts_what_a_sibling_without_an_allocation_leaves() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let groups = dir.path().join("groups.toml");
    let text = "[[group]]\nname = 'a'\nusers = ['b', 'c']\n[[group]]\nname = 'd'\nusers = ['e', 'f']\n";
    std::fs::write(&groups, text).expect("writable");
    // Tasks wait for all four users, or only for the two users without an allocation.
    for waiting in [&["b", "c", "e", "f"][..], &["c", "f"]] {
        let mut state = "[capacity]\ncpu = 10\n".to_owned();
        for (user, tasks) in [("b", 4), ("e", 2)] {
            state +=
                &format!("[[running]]\nname = 'r{user}'\nuser = '{user}'\ntasks = {tasks}\ndemand = {{ cpu = 1 }}\n");
        }
        for user in waiting {
            state += &format!("[[waiting]]\nname = 'w{user}'\nuser = '{user}'\ntasks = 9\ndemand = {{ cpu = 1 }}\n");
        }
        let path = dir.path().join("state.toml");
        std::fs::write(&path, state).expect("writable");
        let mut command = plimsoll(&["decide", "--format", "json", "--policy", &format!("hdrf:{}", groups.display())]);
        let output = run(command.arg(&path));
        assert!(output.status.success(), "{}", said(&output));
        let decided: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(decided["launched"][0]["name"], "wf", "{decided}");
    }
}

/// Users of a trace that belong to no group end a run under a policy with groups.
#[test]
fn users_without_a_group_are_refused() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).expect("a writable file");
    write("trace.csv", "job,user,submit_s,duration_s,tasks,cpu,memory_gib\na,stranger,0,60,1,1,1\n");
    write("groups.toml", GROUPS);
    let path = |name: &str| Path::new(dir.path()).join(name).display().to_string();
    for policy in ["hdrf", "fair-tree:1h"] {
        let mut command = plimsoll(&["replay", &path("trace.csv"), "--machines", "1x10c10g"]);
        let output = run(command.args(["--policy", &format!("{policy}:{}", path("groups.toml"))]));
        let said = said(&output);
        assert!(output.status.code() == Some(2) && said.contains("stranger") && said.contains("groups.toml"), "{said}");
    }
}

/// Two groups with equal ratios get equal halves even if the ratios are small: the comparison does not saturate.
#[test]
fn hdrf_compares_small_ratios() {
    let trace = "job,user,submit_s,duration_s,tasks,cpu,memory_gib\na,n1,0,60,100,1,1\nb,n2,0,60,100,1,1\n";
    for ratio in ["0.001", "0.000001", "1"] {
        let groups = GROUPS.replace("50", ratio);
        let half = |job: &str| (job.to_owned(), 50);
        assert_eq!(first(trace, "1x100c100g", "hdrf", &groups), ["a", "b"].map(half), "{ratio}");
    }
}

/// The running tasks of a user count for all of its queues, on any machines. The tasks of `a` on the first machine count for the second
/// machine, for which `b` waits, so `b` is served first on it.
#[test]
fn psdsf_counts_what_a_user_has_on_other_machines() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).expect("a writable file");
    write("m.csv", "name,count,cpu,labels\nm1,1,10,x\nm2,1,2,y\n");
    write("t.csv", "job,user,submit_s,duration_s,tasks,cpu,label\nay,a,0,10,1,1,y\nax,a,0,10,10,1,x\nb,b,0,10,1,2,y\n");
    let mut command = plimsoll(&["replay", "t.csv", "--machines", "m.csv", "--placement", "first-fit"]);
    command.args(["--policy", "psdsf", "--tasks", "--decisions", "--audit", "-o", "out"]).current_dir(dir.path());
    let output = run(&mut command);
    assert!(output.status.success(), "{}", said(&output));
    let tasks = read_tasks(&dir.path().join("out"), "psdsf").expect("a table of tasks");
    let start = |name: &str| tasks.iter().find(|(job, _)| job == name).and_then(|(_, task)| task.start);
    assert_eq!((start("b"), start("ay")), (Some(0), Some(10_000_000)));
}

/// Settings and files that have no meaning under a policy are refused.
#[test]
fn what_a_policy_does_not_know_is_refused() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).expect("a writable file");
    write("t.csv", "job,user,submit_s,duration_s,tasks,cpu\na,a,0,10,1,0.2\n");
    write("g.toml", "[[group]]\nname = 'A'\nratio = { cpu = 3, memory_gib = 1 }\nusers = ['a']\n");
    let refused = |args: &[&str]| {
        let mut command = plimsoll(&["replay", "t.csv"]);
        let output = run(command.args(args).current_dir(dir.path()));
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
        said(&output).replace('\n', " ")
    };
    let machines = ["--machines", "1x4c", "--placement", "first-fit"];
    let with = |more: &[&'static str]| refused(&[&machines, more].concat());
    for policy in ["psdsf", "tetris:0.25"] {
        let message = with(&["--policy", policy, "--hoard", "5s"]);
        assert!(message.contains("leave 'hoard' out"), "{message}");
    }
    for policy in ["hdrf:g.toml", "fair-tree:1h:g.toml"] {
        let message = with(&["--policy", policy]);
        assert!(message.contains("group 'A' with a ratio per resource"), "{message}");
    }
    let message = refused(&["--machines", "1x0.9c", "--policy", "karma:cpu:5s"]);
    assert!(message.contains("at least one whole cpu"), "{message}");
}

/// `plimsoll check` draws demands in whole cores for a policy that assigns whole cores, so that the policy assigns some.
#[test]
fn karma_is_asked_about_whole_cores() {
    let output = run(&mut plimsoll(&["check", "--whole-tasks", "--effort", "quick", "--policy", "karma:cpu:60s"]));
    assert!(output.status.success(), "{}", said(&output));
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("A: cpu 1; gets 1 task"), "{text}");
}

/// `b` cannot run on the second machine, which has no memory. Alone `b` could run 10 tasks, and `a` 20. Under `tsf` `b` has half as many
/// tasks as `a` until the first machine is full. Under `drf` both have equally many tasks until then, since a task of either user is a
/// twentieth of the cluster.
#[test]
fn tsf_counts_what_users_could_run_alone() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let trace = "job,user,submit_s,duration_s,tasks,cpu,memory_gib\na,a,0,60,100,1,0\nb,b,0,60,100,1,1\n";
    std::fs::write(dir.path().join("t.csv"), trace).expect("a writable file");
    let mut command = plimsoll(&["replay", "t.csv", "--machines", "1x10c30g,1x10c", "--placement", "first-fit"]);
    command.args(["--policy", "tsf", "--policy", "drf", "--ties", "lowest-id", "--tasks", "-o", "out"]);
    command.current_dir(dir.path());
    let output = run(&mut command);
    assert!(output.status.success(), "{}", said(&output));
    let of = |policy: &str| {
        let tasks = read_tasks(&dir.path().join("out"), policy).expect("a table of tasks");
        ["a", "b"].map(|name| tasks.iter().filter(|(job, task)| job == name && task.start == Some(0)).count())
    };
    assert_eq!((of("tsf"), of("drf")), ([17, 3], [15, 5]));
}
