//! The records of a results folder: foreign files remain, one process writes at a time, and a change of a written file is either reported
//! by the commands that read it or repaired.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use plimsoll::workload::synthetic::random::stream;
use rand::RngExt;

use crate::determinism::differences;
use crate::replay::{files, plimsoll, run, said};
use crate::study_kill::five_hundred;
use crate::study_run::{SWEEP, Scratch, contents};

/// A plan without a sweep: 2 policies, 3 seeds.
pub fn small() -> String {
    SWEEP[..SWEEP.find("[sweep]").expect("a sweep")].to_owned()
}

fn verb(name: &str, folders: &[PathBuf]) -> Output {
    run(plimsoll(&[name]).args(folders))
}

fn write_all(folder: &Path, names: &[&str]) -> BTreeMap<String, Vec<u8>> {
    for name in names {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a writable folder");
        std::fs::write(path, format!("my {name}")).expect("a writable folder");
    }
    contents(folder)
}

#[test]
fn files_of_others_are_in_the_way_and_stay() {
    for mine in
        ["users/alice.json", "jobs/mydata.parquet", "done/list.json", "report.html", "figures/a/b.svg", "cell=x/y"]
    {
        let place = Scratch::new(&small());
        let before = write_all(&place.path("out"), &[mine]);
        for args in [&[][..], &["--restart"], &["--shard", "0/2"], &["--gather"]] {
            let message = place.refused("out", args);
            assert!(message.contains(mine) && message.contains("-o"), "{mine} {args:?}: {message}");
            assert_eq!(differences(&before, &contents(&place.path("out"))), [""; 0], "{mine} {args:?}");
        }
        let output = run(plimsoll(&["run"])
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/experiments/paper/drf-fig3.toml"))
            .arg("-o")
            .arg(place.path("out")));
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    }
}

#[test]
fn files_of_others_beside_results_stay() {
    let place = Scratch::new(&small());
    write_all(&place.path("out"), &["notes.txt", "data/jobs.parquet"]);
    assert!(place.run("out", &[]).contains("2 files or folders that are not results; they are kept"));
    // In a folder of results, a file name does not prove that Plimsoll wrote the file.
    let mine = [
        "users/alice.json",
        "jobs/mydata.parquet",
        "jobs/policy=drf/mine.parquet",
        "tasks/todo.json",
        "done/list.json",
        "figures/mine.svg",
        "jobs/policy=old/run=0/jobs.parquet",
    ];
    write_all(&place.path("out"), &mine);
    let before = contents(&place.path("out"));
    place.run("out", &[]);
    assert_eq!(differences(&before, &contents(&place.path("out"))), [""; 0], "run again");
    place.run("out", &["--restart", "--set", "policies=[\"fifo\"]", "--set", "tables=[\"runs\"]"]);
    let after = contents(&place.path("out"));
    for name in mine.iter().chain(&["notes.txt", "data/jobs.parquet"]) {
        assert_eq!(after.get(*name), Some(&format!("my {name}").into_bytes()), "{name}");
    }
    let tables = |kind: &str| after.keys().filter(|name| name.starts_with(kind) && name.contains("run=")).count();
    assert_eq!(
        (tables("runs/"), tables("users/"), tables("jobs/policy=drf/")),
        (3, 0, 0),
        "the tables of the earlier plan are removed"
    );
}

/// Two processes run at once. Each of them succeeds, or reports the other process. The folder is complete at the end.
#[test]
fn of_two_processes_one_waits_its_turn() {
    let place = Scratch::new(&five_hundred(20).replace("seeds = 50", "seeds = 10"));
    place.run("whole", &[]);
    let expected = contents(&place.path("whole"));
    let mut random = stream(1, "pairs");
    let (mut refused, mut pairs) = (0, 0);
    while pairs < 6 || refused == 0 {
        pairs += 1;
        assert!(pairs < 60, "no pair of processes ever met");
        let out = format!("out{pairs}");
        let start = |args: &[&str]| {
            let mut command = place.command(&out, args);
            command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the program starts")
        };
        let overlapping = [&["--shard", "0/2"][..], &["--shard", "1/3"]];
        let (first, second) = match pairs % 2 {
            0 => (overlapping[0], overlapping[1]),
            _ => (&["-j", "1"][..], &["-j", "1"][..]),
        };
        let one = start(first);
        std::thread::sleep(std::time::Duration::from_millis(random.random_range(0..30)));
        let two = start(second);
        for child in [one, two] {
            let output = child.wait_with_output().expect("a child can be waited for");
            let message = String::from_utf8_lossy(&output.stderr).into_owned();
            if output.status.code() != Some(0) {
                assert_eq!(output.status.code(), Some(1), "{message}");
                assert!(message.contains("another process is"), "{message}");
                refused += 1;
            }
        }
        place.run(&out, &[]);
        assert_eq!(differences(&expected, &contents(&place.path(&out))), [""; 0], "pair {pairs}");
    }
}

/// Flips one bit of any file of a study. Commands that read the file report the change or are unaffected by it, and another run of the plan
/// produces the same bytes again. `PLIMSOLL_FLIPS=10000` sets the number of flips.
#[test]
fn a_flipped_bit_anywhere_is_noticed_and_mended() {
    let place = Scratch::new(&SWEEP.replace("seeds = 3", "seeds = 2").replace("[2.0, 3.0, 5.0]", "[2.0, 3.0]"));
    place.run("out", &[]);
    let folder = place.path("out");
    let whole = contents(&folder);
    let names: Vec<&String> = whole.keys().collect();
    let is_drawn = |name: &str| name.contains("figures/") || name.ends_with("report.html");
    let drawn = |all: BTreeMap<String, Vec<u8>>| -> BTreeMap<String, Vec<u8>> {
        all.into_iter().filter(|(name, _)| is_drawn(name)).collect()
    };
    let mut random = stream(1, "flips");
    let mut noticed = 0;
    let flips = std::env::var("PLIMSOLL_FLIPS").ok().and_then(|many| many.parse().ok()).unwrap_or(20);
    for _ in 0..flips {
        let name = names[random.random_range(0..names.len())];
        let mut flipped = whole[name].clone();
        let at = random.random_range(0..flipped.len());
        flipped[at] ^= 1 << random.random_range(0..8);
        std::fs::write(folder.join(name), flipped).expect("writable");
        let output = verb("report", std::slice::from_ref(&folder));
        if said(&output).contains("not as it was written") {
            noticed += 1;
        } else {
            assert!(output.status.success(), "{name}, byte {at}: {}", said(&output));
            let found = drawn(contents(&folder));
            assert_eq!(
                differences(&drawn(whole.clone()), &found),
                [""; 0],
                "{name}, byte {at}: drawn from changed data"
            );
        }
        place.run("out", &[]);
        assert_eq!(differences(&whole, &contents(&folder)), [""; 0], "{name}, byte {at}");
    }
    assert!(noticed >= 3, "{noticed} of {flips}");
}

#[test]
fn what_is_missing_is_said_by_all_who_draw_or_compare() {
    let place = Scratch::new(&small());
    place.run("out", &[]);
    place.run("other", &[]);
    let receipts = files(&place.path("out").join("done"));
    std::fs::remove_file(&receipts[0]).expect("it is there");
    let mut bytes = std::fs::read(&receipts[1]).expect("readable");
    bytes[30] ^= 4;
    std::fs::write(&receipts[1], bytes).expect("writable");
    for (name, folders) in [
        ("plot", vec!["out"]),
        ("report", vec!["out"]),
        ("compare", vec!["out", "other"]),
        ("compare", vec!["other", "out"]),
    ] {
        let output = verb(name, &folders.iter().map(|folder| place.path(folder)).collect::<Vec<_>>());
        assert!(output.status.success(), "{name}: {}", said(&output));
        assert!(said(&output).contains("4 of 6 runs are complete"), "{name}: {}", said(&output));
        assert!(said(&output).contains("not as it was written"), "{name}: {}", said(&output));
    }
    let table = files(&place.path("other").join("runs")).remove(0);
    let mut bytes = std::fs::read(&table).expect("readable");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&table, bytes).expect("writable");
    for (name, folders) in [("plot", vec!["other"]), ("report", vec!["other"]), ("compare", vec!["out", "other"])] {
        let output = verb(name, &folders.iter().map(|folder| place.path(folder)).collect::<Vec<_>>());
        assert_eq!(output.status.code(), Some(2), "{name}: {}", said(&output));
        assert!(said(&output).contains("this table is not as it was written"), "{name}: {}", said(&output));
    }
}

/// Swaps the trace and the weights with other files and back during a study. The results of a successful study are those of one pair of
/// files.
#[test]
fn inputs_that_are_swapped_while_runs_read_them_are_noticed() {
    let plan = "name = \"swapped\"\npolicies = [\"drf\", \"fifo\"]\nseeds = 12\nweights = \"in/weights.csv\"\n\
                tables = [\"runs\", \"users\"]\n[cluster]\nmachines = \"2x4c8g\"\n\
                [workload]\ntrace = \"in/trace.csv\"\nthin = 0.5\n";
    let place = Scratch::new(plan);
    for (folder, duration) in [("in", 10), ("other", 30)] {
        std::fs::create_dir(place.path(folder)).expect("a folder");
        let mut trace = "job,user,submit_s,duration_s,tasks,cpu,memory_gib\n".to_owned();
        (0..400).for_each(|at| trace += &format!("j{at},u{},{at},{duration},3,1,1\n", at % 3));
        place.write(&format!("{folder}/trace.csv"), &trace);
        place.write(&format!("{folder}/weights.csv"), &format!("user,weight\nu0,{duration}\nu1,1\n"));
    }
    let swap = || {
        for (from, to) in [("in", "aside"), ("other", "in"), ("aside", "other")] {
            std::fs::rename(place.path(from), place.path(to)).expect("a folder");
        }
    };
    place.run("first", &["-j", "1"]);
    swap();
    place.run("second", &["-j", "1"]);
    swap();
    let expected = ["first", "second"].map(|out| contents(&place.path(out)));
    assert!(!differences(&expected[0], &expected[1]).is_empty());
    let mut random = stream(1, "swaps");
    let mut noticed = 0;
    for round in 0..30 {
        let mut command = place.command("out", &["-j", "1", "--restart"]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the program starts");
        let mut swaps = 0;
        while child.try_wait().expect("a child can be waited for").is_none() {
            std::thread::sleep(std::time::Duration::from_micros(random.random_range(0..20_000)));
            if swaps < 6 {
                swap();
                swaps += 1;
            }
        }
        if swaps % 2 == 1 {
            swap();
        }
        let output = child.wait_with_output().expect("a child can be waited for");
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        let found = contents(&place.path("out"));
        if output.status.success() {
            let is = |all: &BTreeMap<String, Vec<u8>>| differences(all, &found).is_empty();
            assert!(expected.iter().any(is), "round {round}: neither the one nor the other: {message}");
        } else {
            assert!(message.contains("was changed or replaced") || message.contains("No such file"), "{message}");
            noticed += 1;
        }
        // The remaining results of a study that ended early are correct, too.
        place.run("out", &["-j", "1", "--restart"][..if round % 2 == 0 { 2 } else { 3 }]);
        assert_eq!(differences(&expected[0], &contents(&place.path("out"))), [""; 0], "round {round}");
        if noticed >= 5 && round >= 9 {
            return;
        }
    }
    assert!(noticed > 0, "no swap was ever noticed");
}
