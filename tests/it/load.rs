//! `load` and `resample` of plans and of `plimsoll replay`.

use crate::replay::{plimsoll, run, said};

/// Two days of a user per row: jobs of 8 cores for an hour at nine in the morning.
fn trace() -> String {
    let rows = (0..40).map(|job| format!("j{job},u{},{},3600,8\n", job % 4, (job / 4) * 86_400 + (job % 4) * 1800));
    "job,user,submit_s,duration_s,cpu\n".to_owned() + &rows.collect::<String>()
}

#[test]
fn a_trace_is_scaled_and_resampled() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(dir.path().join("t.csv"), trace()).expect("writable");
    let replay = |out: &str, args: &[&str]| {
        let base = ["replay", "t.csv", "--machines", "1x8c", "--policy", "fifo", "--quiet", "-o", out];
        let output = run(plimsoll(&base).args(args).current_dir(dir.path()));
        assert!(output.status.success(), "{args:?}: {}", said(&output));
        let columns = ["--columns", "job,submit_us", "--sort", "submit_us", "--format", "csv"];
        let shown = run(plimsoll(&["show", out, "jobs"]).args(columns).current_dir(dir.path()));
        assert!(shown.status.success(), "{}", said(&shown));
        String::from_utf8_lossy(&shown.stdout).into_owned()
    };
    let submits = |csv: &str| -> Vec<u64> {
        csv.lines()
            .skip(1)
            .map(|line| line.split(',').nth(1).expect("two columns").parse().expect("a number"))
            .collect()
    };
    let plain = submits(&replay("plain", &[]));
    // 40 hours of the whole machine within nine days and 90 minutes, scaled to a load of one half: 80 hours.
    let scaled = submits(&replay("scaled", &["--load", "0.5"]));
    assert_eq!((plain.len(), scaled.len()), (40, 40));
    assert!((scaled[39] as f64 / 3.6e9 - 80.0).abs() < 0.01, "{}", scaled[39]);
    let first = replay("first", &["--resample", "1d", "--seed", "1"]);
    let second = replay("second", &["--resample", "1d", "--seed", "2"]);
    assert_eq!(
        (submits(&first), submits(&second)),
        (plain.clone(), plain),
        "each user has a job at its time on every day"
    );
    assert_ne!(first, second, "other days of the users meet");
}

#[test]
fn loads_that_cannot_be_are_refused() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(dir.path().join("t.csv"), trace()).expect("writable");
    for (workload, says) in [
        ("trace = \"t.csv\"\nload = 0.0", "an offered load from 0.001 to 100"),
        ("trace = \"t.csv\"\nload = \"high\"", "line 7"),
        ("trace = \"t.csv\"\nresample = \"20d\"", "at least two whole periods"),
        ("trace = \"t.csv\"\nresample = \"a week\"", "a time span above 0"),
        ("trace = \"t.csv\"\nresample = \"1d\"\nthin = 0.5", "no `thin` together with `resample`"),
        (
            "generator = \"closed-loop\"\nuntil = 40\nload = 0.5\n[[workload.class]]\nname = \"a\"\nusers = 1\nduration = 9\ndemand = { cpu = 1 }",
            "load",
        ),
    ] {
        let plan =
            format!("name = \"p\"\npolicies = [\"fifo\"]\n[cluster]\nmachines = \"1x8c\"\n[workload]\n{workload}\n");
        std::fs::write(dir.path().join("p.toml"), plan).expect("writable");
        let output = run(plimsoll(&["run", "p.toml", "--quiet"]).current_dir(dir.path()));
        assert_eq!(output.status.code(), Some(2), "{workload}: {}", said(&output));
        assert!(said(&output).contains(says), "{workload}: {}", said(&output));
    }
}
