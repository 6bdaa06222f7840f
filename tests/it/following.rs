//! Jobs that are submitted after the end of preceding jobs, compared with slow models on random graphs of jobs.

use std::path::Path;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::replay::{plimsoll, read_tasks, run, said};

/// One job. Times are in seconds.
struct Job {
    submit: u64,
    /// The index of the preceding job, and the think time after its end.
    after: Option<(usize, u64)>,
    /// Of each row: its submit time relative to that of the job, its duration and its cores.
    rows: Vec<(u64, u64, u64)>,
}

fn csv(jobs: &[Job]) -> String {
    let mut text = String::from("job,user,submit_s,duration_s,cpu,after_job,think_s\n");
    for (at, job) in jobs.iter().enumerate() {
        let after = job.after.map_or(",".to_owned(), |(before, think)| format!("job{before},{think}"));
        for (later, duration, cpu) in &job.rows {
            text += &format!("job{at},u{},{},{duration},{cpu},{after}\n", at % 3, job.submit + later);
        }
    }
    text
}

/// Replays a trace. Returns the start and the finish of each row in seconds, by job and in the order of the rows.
fn replayed(text: &str, machines: &str, dir: &Path) -> Vec<Vec<(u64, u64)>> {
    std::fs::write(dir.join("t.csv"), text).expect("a temporary file");
    let args = ["replay", "t.csv", "--machines", machines, "--placement", "pooled", "--policy", "fifo", "--on-blocked"];
    let _ = std::fs::remove_dir_all(dir.join("out"));
    let output = run(plimsoll(&[&args[..], &["stop", "--tasks", "-o", "out"]].concat()).current_dir(dir));
    assert!(output.status.success(), "{}\n{text}", said(&output));
    let mut jobs: Vec<Vec<(u64, u64, u64)>> = Vec::new();
    for (name, task) in read_tasks(&dir.join("out"), "fifo").expect("a table of tasks") {
        let job: usize = name.trim_start_matches("job").parse().expect("a number");
        jobs.resize_with(jobs.len().max(job + 1), Vec::new);
        let second = |time: Option<u64>| time.expect("every task ends") / 1_000_000;
        jobs[job].push((task.task, second(task.start), second(task.finish)));
    }
    jobs.iter_mut().for_each(|rows| rows.sort_unstable());
    jobs.into_iter().map(|rows| rows.into_iter().map(|(_, start, finish)| (start, finish)).collect()).collect()
}

/// Draws jobs in the order of submission, most of them after an earlier job.
fn draw(seed: u64, rows: impl Fn(&mut ChaCha8Rng) -> Vec<(u64, u64, u64)>) -> Vec<Job> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let (mut jobs, mut submit): (Vec<Job>, u64) = (Vec::new(), 0);
    for at in 0..rng.random_range(2..40) {
        let straddles = jobs.last().map_or(0, |job| job.rows.iter().map(|row| row.0).max().unwrap_or(0));
        submit += straddles + [0, 0, 1, 3][rng.random_range(0..4)];
        let before = at.min(1 + rng.random_range(0..4)).min(at);
        let after = (at > 0 && rng.random_range(0..3) > 0).then(|| (at - before, [0, 0, 2, 9][rng.random_range(0..4)]));
        jobs.push(Job { submit, after, rows: rows(&mut rng) });
    }
    jobs
}

#[test]
fn on_enough_machines_a_job_begins_at_its_submit_time_or_after_the_job_before_it() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    for seed in 0..60 {
        let jobs = draw(seed, |rng| {
            let mut later = 0;
            let mut row = |rng: &mut ChaCha8Rng| {
                let row = (later, rng.random_range(0..6), 1);
                later += [0, 0, 2][rng.random_range(0..3)];
                row
            };
            (0..rng.random_range(1..4)).map(|_| row(rng)).collect()
        });
        let mut wanted: Vec<Vec<(u64, u64)>> = Vec::new();
        for job in &jobs {
            let end = |before: usize| wanted[before].iter().map(|row| row.1).max().unwrap_or(0);
            let begin = job.after.map_or(job.submit, |(before, think)| job.submit.max(end(before) + think));
            wanted.push(job.rows.iter().map(|row| (begin + row.0, begin + row.0 + row.1)).collect());
        }
        let text = csv(&jobs);
        assert_eq!(replayed(&text, "1x1000c", dir.path()), wanted, "seed {seed}\n{text}");
    }
}

/// Simulates first come, first served on 4 cores, second by second. Returns the start and the end of each job.
fn slow(jobs: &[Job]) -> Vec<Vec<(u64, u64)>> {
    let mut times: Vec<Option<(u64, u64)>> = vec![None; jobs.len()];
    let mut released: Vec<bool> = vec![false; jobs.len()];
    let (mut line, mut now): (Vec<usize>, u64) = (Vec::new(), 0);
    while times.iter().any(Option::is_none) {
        for (at, job) in jobs.iter().enumerate().filter(|(at, _)| !released[*at]).collect::<Vec<_>>() {
            let from = match job.after {
                None => Some(job.submit),
                Some((before, think)) => {
                    times[before].filter(|time| time.1 <= now).map(|time| job.submit.max(time.1 + think))
                }
            };
            if from.is_some_and(|from| from <= now) {
                released[at] = true;
                line.push(at);
            }
        }
        while let Some(&at) = line.first() {
            let running = times.iter().zip(jobs).filter(|(time, _)| time.is_some_and(|time| time.1 > now));
            if running.map(|(_, job)| job.rows[0].2).sum::<u64>() + jobs[at].rows[0].2 > 4 {
                break;
            }
            times[at] = Some((now, now + jobs[at].rows[0].1));
            line.remove(0);
        }
        now += 1;
    }
    times.into_iter().map(|time| vec![time.expect("every job has ended")]).collect()
}

#[test]
fn on_a_full_machine_jobs_follow_the_ends_of_the_run_itself() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    for seed in 0..60 {
        let jobs = draw(seed, |rng| vec![(0, rng.random_range(1..8), rng.random_range(1..5))]);
        // One user, so that all rows wait in one line.
        let text = csv(&jobs).replace(",u1,", ",u0,").replace(",u2,", ",u0,");
        assert_eq!(replayed(&text, "1x4c", dir.path()), slow(&jobs), "seed {seed}\n{text}");
    }
}

#[test]
fn preceding_jobs_of_a_log_are_followed_or_ignored_and_counted() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let log = "; MaxProcs: 16\n\
               1 0 0 100 1 -1 -1 1 100 -1 1 1 1 1 1 1 -1 0\n\
               2 0 0 200 1 -1 -1 1 200 -1 1 1 1 1 1 1 1 0\n\
               3 0 0 50 1 -1 -1 1 50 -1 1 1 1 1 1 1 2 30\n";
    std::fs::write(dir.path().join("log.swf"), log).expect("a temporary file");
    let good = |args: &[&str]| {
        let output = run(plimsoll(args).current_dir(dir.path()));
        assert!(output.status.success(), "{args:?}: {}", said(&output));
        (String::from_utf8_lossy(&output.stdout).into_owned(), said(&output))
    };
    let last_end = |trace: &str| {
        let args = ["replay", trace, "--machines", "1x16c", "--placement", "first-fit", "--policy", "fifo", "--tasks"];
        let _ = std::fs::remove_dir_all(dir.path().join("out"));
        good(&[&args[..], &["-o", "out"]].concat());
        let tasks = read_tasks(&dir.path().join("out"), "fifo").expect("a table of tasks");
        tasks.iter().filter_map(|(_, task)| task.finish).max().expect("a task") / 1_000_000
    };
    assert_eq!(last_end("log.swf"), 380);
    good(&["trace", "import", "log.swf", "--set", "swf.dependencies=ignore", "-o", "ignored.csv"]);
    assert_eq!(last_end("ignored.csv"), 200);
    assert!(good(&["trace", "validate", "log.swf"]).0.contains("the last task could end at 380 s"));
    for out in ["t.csv", "t.parquet"] {
        good(&["trace", "import", "log.swf", "-o", out]);
        assert_eq!(last_end(out), 380, "{out}");
        assert!(good(&["trace", "head", out]).0.contains("after_job"));
    }
    let text = std::fs::read_to_string(dir.path().join("t.csv")).expect("a trace");
    assert!(text.ends_with("3,1,0,50000000,1,50000000,2,30000000\n"), "{text}");
    // Job 3 is too large for any machine, so that job 4 is never submitted.
    let rows = "job,user,submit_s,duration_s,cpu,after_job\n3,a,0,9,64,\n4,a,0,9,1,3\n5,a,0,9,1,\n";
    std::fs::write(dir.path().join("large.csv"), rows).expect("a temporary file");
    let args = ["replay", "large.csv", "--machines", "1x16c", "--placement", "first-fit", "--policy", "fifo"];
    assert!(good(&args).1.contains("1 job: not submitted"), "{}", good(&args).1);
}

#[test]
fn a_preceding_job_is_one_of_an_earlier_row() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    for (rows, wanted) in [
        ("a,u,0,1,1,b,0\nb,u,0,1,1,,\n", "line 2, column 'after_job': no earlier row has a job 'b'"),
        ("a,u,0,1,1,a,0\n", "line 2, column 'after_job': 'a' is the job itself"),
        ("a,u,0,1,1,,5\n", "line 2, column 'think_s': is given without a job in 'after_job'"),
        ("a,u,0,1,1,,\nb,u,0,1,1,a,-1\n", "line 3, column 'think_s'"),
        ("a,u,0,1,1,,\nb,u,0,1,1,a,0\nb,u,0,1,1,a,1\n", "line 4, column 'after_job'"),
        ("a,u,0,1,1,,\nb,u,0,1,1,,\na,u,0,1,1,b,\n", "line 4, column 'after_job'"),
    ] {
        let text = format!("job,user,submit_s,duration_s,cpu,after_job,think_s\n{rows}");
        std::fs::write(dir.path().join("t.csv"), text).expect("a temporary file");
        for verb in [
            &["trace", "validate"][..],
            &["replay", "--policy", "fifo", "--machines", "4x4c", "--placement", "first-fit"],
        ] {
            let output = run(plimsoll(&[verb, &["t.csv"]].concat()).current_dir(dir.path()));
            assert_eq!(output.status.code(), Some(2), "{verb:?} {rows}");
            assert!(said(&output).contains(wanted), "{verb:?} {wanted}: {}", said(&output));
        }
    }
}
