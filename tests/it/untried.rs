//! The log of decisions is complete: a set that was not tried has a row, too.

use crate::frame::Frame;
use crate::replay::{plimsoll, run, said};

fn decisions_table(trace: &str, policy: &str, options: &[&str]) -> Frame {
    let dir = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(dir.path().join("t.csv"), trace).expect("a writable file");
    let mut command = plimsoll(&["replay", "t.csv", "--machines", "1x2c4g", "--policy", policy, "--decisions"]);
    let output = run(command.args(["-o", "out"]).args(options).current_dir(dir.path()));
    assert!(output.status.success(), "{}", said(&output));
    Frame::open(&dir.path().join(format!("out/decisions/policy={policy}/run=0/decisions.parquet")))
}

/// Job, turn, reason, the job that it waits behind, and rank, of each decision.
fn decisions(trace: &str, policy: &str, options: &[&str]) -> Vec<[String; 5]> {
    let table = decisions_table(trace, policy, options);
    let columns = ["job", "turn", "reason", "behind_job", "rank"].map(|name| table.names(name, "-"));
    (0..table.height()).map(|row| std::array::from_fn(|column| columns[column][row].clone())).collect()
}

fn rows(wanted: &[[&str; 5]]) -> Vec<[String; 5]> {
    wanted.iter().map(|row| row.map(str::to_owned)).collect()
}

const HEADER: &str = "job,user,submit_s,duration_s,tasks,cpu,memory_gib\n";

#[test]
fn a_job_behind_its_own_user_s_jobs_has_a_row_and_ranks_are_decimal() {
    let trace = format!("{HEADER}a,u,0,10,1,2,0\nb,u,1,10,1,2,0\nc,u,5,10,1,1,0\n");
    assert_eq!(
        decisions(&trace, "fifo", &[]),
        rows(&[
            ["a", "launched", "-", "-", "0"],
            ["b", "blocked", "room", "-", "1000000:1"],
            ["c", "waits", "own job first", "b", "5000000:2"],
            ["b", "launched", "-", "-", "1000000:1"],
            ["c", "blocked", "room", "-", "5000000:2"],
            ["c", "launched", "-", "-", "5000000:2"],
        ])
    );
}

#[test]
fn a_job_behind_the_one_at_which_the_round_ended_has_a_row() {
    let trace = format!("{HEADER}a,u,0,10,1,1,0\nb,v,1,10,1,2,0\nc,w,2,10,1,1,0\n");
    let all = decisions(&trace, "fifo", &["--on-blocked", "stop"]);
    let waits: Vec<&[String; 5]> = all.iter().filter(|row| row[1] == "waits").collect();
    assert_eq!(waits, [&["c", "waits", "round ended", "b", "2000000:2"].map(str::to_owned)], "{all:?}");
}

/// Every task set has a row from the instant at which it is submitted, whatever the policy and the rule for blocked users.
#[test]
fn every_job_has_a_decision_at_the_instant_of_its_submission() {
    let submit = |job: usize| job / 4;
    let row = |job: usize| format!("j{job},u{},{},{},{},1,1\n", job % 3, submit(job), 3 + job % 5, 1 + job % 4);
    let trace = format!("{HEADER}{}", (0..40).map(row).collect::<String>());
    for policy in ["drf", "fifo", "asset", "tsf"] {
        for on_blocked in ["skip", "stop"] {
            let table = decisions_table(&trace, policy, &["--placement", "first-fit", "--on-blocked", on_blocked]);
            let (jobs, times) = (table.names("job", ""), table.integers("time_us"));
            for job in 0..40 {
                let first = jobs.iter().position(|name| *name == format!("j{job}")).map(|row| times[row]);
                assert_eq!(first, Some(Some(submit(job) as i64 * 1_000_000)), "{policy}, {on_blocked}: job {job}");
            }
        }
    }
}
