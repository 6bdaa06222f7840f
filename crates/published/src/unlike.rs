//! Jobs of one accelerator each with a duration per type of accelerator, without preemption: the greedy baselines of Hydra.
//!
//! All jobs are submitted at 0, and a job keeps its accelerator until it ends. When accelerators are free and jobs wait, the rule selects
//! pairs of a job and a type one after the other. Source: the simulator of Hydra, repository iscas-system/Hydra.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::Path;

use serde::Deserialize;

use super::models::read_plan;
use super::outcome::{JobOutcome, RunOutcome};
use super::prepare::TextSheet;
use plimsoll_base::error::{Error, Result, either};

/// The plan.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct UnlikePlan {
    /// The name of the plan, for readers of the file.
    #[serde(rename = "name")]
    _name: String,
    /// The types: columns of the prepared file `cases.csv` with durations in seconds.
    types: Vec<String>,
    /// The accelerators of each type.
    counts: Vec<u32>,
    /// The number of jobs, the first ones of the file.
    jobs: usize,
}

/// A rule of selection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UnlikeRule {
    /// The pair with the shortest duration; ties by the name of the type, then by the row of the job.
    Gavel,
    /// Jobs with a deadline first, by deadline, on their fastest free type; then the others, by duration on the first type, on the first
    /// free type.
    Chronus,
}

const RULES: [(&str, UnlikeRule); 2] = [("gavel", UnlikeRule::Gavel), ("chronus", UnlikeRule::Chronus)];

/// A job.
#[derive(Clone, Debug)]
struct UnlikeJob {
    name: String,
    /// The deadline in microseconds.
    deadline: Option<u64>,
    /// The duration on each type in microseconds.
    durations: Vec<u64>,
}

/// Executes a plan under a rule. `work` of a job is its shortest duration over the types. Errors: an invalid plan, an unknown rule, a
/// submission after 0, and those of the file.
pub fn run(path: &Path, set: &[String], policy: Option<&str>, folder: &Path) -> Result<RunOutcome> {
    let plan: UnlikePlan = read_plan(path, set)?;
    if plan.types.is_empty() || plan.types.len() != plan.counts.len() || plan.counts.iter().all(|count| *count == 0) {
        let problem = "types and counts have the same number of entries, and there is an accelerator";
        return Err(Error::trace(path, 0, "", problem));
    }
    let name = policy.unwrap_or(RULES[0].0);
    let rule = RULES.iter().find(|(known, _)| *known == name).map(|(_, rule)| *rule);
    let rule = rule.ok_or_else(|| Error::plan("policy", format!("'{name}'"), either(RULES.map(|(name, _)| name))))?;
    let file = folder.join("cases.csv");
    let sheet = TextSheet::read(&file)?;
    if plan.jobs == 0 || plan.jobs > sheet.rows() {
        return Err(Error::trace(path, 0, "jobs", format!("expected 1 to {}, the rows of cases.csv", sheet.rows())));
    }
    let us = |row: usize, column: &str| -> Result<Option<u64>> {
        let seconds: f64 = sheet.number(row, column)?;
        let wrong =
            || Error::trace(&file, row as u64 + 2, column, format!("{seconds} is no number of seconds from 0 on"));
        match seconds {
            _ if seconds == f64::INFINITY => Ok(None),
            _ if (0.0..1e12).contains(&seconds) => Ok(Some((seconds * 1e6).round() as u64)),
            _ => Err(wrong()),
        }
    };
    let mut jobs = Vec::new();
    for row in 0..plan.jobs {
        if us(row, "norm_job_submit_time")? != Some(0) {
            return Err(Error::trace(&file, row as u64 + 2, "norm_job_submit_time", "expected 0: all jobs together"));
        }
        let duration = |column: &String| {
            let finite = || Error::trace(&file, row as u64 + 2, column.as_str(), "expected a finite duration");
            us(row, column)?.ok_or_else(finite)
        };
        let durations = plan.types.iter().map(duration).collect::<Result<_>>()?;
        jobs.push(UnlikeJob { name: sheet.text(row, "job_name")?.to_owned(), deadline: us(row, "ddl")?, durations });
    }
    let times = schedule(&plan, rule, &jobs);
    let outcome = |(job, (start, finish)): (UnlikeJob, (u64, u64))| JobOutcome {
        user: job.name.clone(),
        job: job.name,
        launched: 1,
        submit: 0,
        start: Some(start),
        finish: Some(finish),
        work: job.durations.iter().min().copied(),
        deadline: job.deadline,
        starts: 1,
    };
    Ok(RunOutcome { jobs: jobs.into_iter().zip(times).map(outcome).collect(), ..RunOutcome::default() })
}

/// Returns start and end of each job in microseconds.
fn schedule(plan: &UnlikePlan, rule: UnlikeRule, jobs: &[UnlikeJob]) -> Vec<(u64, u64)> {
    let mut free = plan.counts.clone();
    let mut times = vec![(0, 0); jobs.len()];
    let mut waiting: Vec<usize> = (0..jobs.len()).collect();
    if rule == UnlikeRule::Chronus {
        waiting.sort_by_key(|job| (jobs[*job].deadline.is_none(), jobs[*job].deadline, jobs[*job].durations[0]));
    }
    let mut running: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
    let mut now = 0;
    loop {
        while let Some((position, j)) = selected(plan, rule, jobs, &waiting, &free) {
            let job = waiting.remove(position);
            free[j] -= 1;
            times[job] = (now, now + jobs[job].durations[j]);
            running.push(Reverse((times[job].1, j)));
        }
        let Some(Reverse((end, _))) = running.peek().copied() else { return times };
        now = end;
        while let Some(Reverse((end, j))) = running.peek().copied().filter(|Reverse((end, _))| *end == now) {
            debug_assert_eq!(end, now);
            running.pop();
            free[j] += 1;
        }
    }
}

/// Returns the position of the next job in the queue and its type, if an accelerator is free.
fn selected(
    plan: &UnlikePlan,
    rule: UnlikeRule,
    jobs: &[UnlikeJob],
    waiting: &[usize],
    free: &[u32],
) -> Option<(usize, usize)> {
    let types = || (0..free.len()).filter(|j| free[*j] > 0);
    match rule {
        UnlikeRule::Gavel => {
            let of_type = |j: usize| {
                let first = (0..waiting.len()).min_by_key(|position| jobs[waiting[*position]].durations[j])?;
                Some((jobs[waiting[first]].durations[j], &plan.types[j], first, j))
            };
            types().filter_map(of_type).min().map(|(_, _, position, j)| (position, j))
        }
        UnlikeRule::Chronus => {
            let job = &jobs[*waiting.first()?];
            let j = if job.deadline.is_some() { types().min_by_key(|j| job.durations[*j]) } else { types().next() };
            j.map(|j| (0, j))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::parameters::Parameters;
    use super::super::prepare::{DataFolder, prepare};
    use super::super::readings::read;
    use super::*;

    const CASES: &str = ",job_name,norm_job_submit_time,ddl,A100,V100,GTX2080Ti\n\
                         0,a,0,inf,100.0,150.0,300.0\n1,b,0,120.0,60.0,90.0,100.0\n2,c,0,50.0,100.0,200.0,260.0\n";
    const PLAN: &str = "name = \"p\"\ntypes = [\"A100\", \"V100\", \"GTX2080Ti\"]\ncounts = [1, 1, 0]\njobs = 3\n";

    fn folders() -> (tempfile::TempDir, std::path::PathBuf) {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let data = dir.path().join("published/hydra");
        std::fs::create_dir_all(&data).expect("a folder");
        std::fs::write(data.join("20_ddl.csv"), CASES).expect("writable");
        std::fs::write(dir.path().join("p.toml"), PLAN).expect("writable");
        let root = dir.path().to_owned();
        let parameters = Parameters::parse("cases=20_ddl").expect("parameters");
        prepare("hydra", &DataFolder { folder: Some(&root), inputs: &[] }, &parameters, &root).expect("prepared");
        (dir, root)
    }

    fn ends(rule: &str) -> (RunOutcome, Vec<f64>) {
        let (_dir, root) = folders();
        let outcome = run(&root.join("p.toml"), &[], Some(rule), &root).expect("a run");
        let ends = outcome.jobs.iter().map(|job| job.finish.expect("an end") as f64 / 1e6).collect();
        (outcome, ends)
    }

    /// Gavel: b on the A100 (60 s), then the least on the V100 is a (150 s), then c at 60 on the A100 (100 s). Chronus: c has the first
    /// deadline and takes the A100, b the V100; a waits for the V100 at 90.
    #[test]
    fn greedy_rules_on_three_jobs() {
        let (outcome, times) = ends("gavel");
        assert_eq!(times, [150.0, 60.0, 160.0]);
        let data = DataFolder { folder: None, inputs: &[] };
        let value = |reading: &str| read(reading, &outcome, &data).expect("readable").map(|value| value.value);
        assert_eq!((value("jobs_late"), value("excess_s")), (Some(1.0), Some(110.0)));
        assert_eq!(value("mean_wait_s"), Some((50.0 + 0.0 + 60.0) / 3.0));
        assert_eq!(ends("chronus").1, [240.0, 90.0, 100.0]);
    }

    #[test]
    fn wrong_files_are_errors() {
        let (_dir, root) = folders();
        let plan = root.join("p.toml");
        let said = |set: &str, rule| run(&plan, &[set.to_owned()], Some(rule), &root).expect_err("wrong").to_string();
        assert!(said("jobs = 4", "gavel").contains("1 to 3"));
        assert!(said("types = [\"A100\", \"V100\", \"P100\"]", "gavel").contains("P100"));
        assert!(said("jobs = 2", "hydra").contains("chronus"));
        std::fs::write(root.join("cases.csv"), CASES.replace("2,c,0,", "2,c,7,")).expect("writable");
        assert!(said("jobs = 3", "gavel").contains("together"));
    }

    /// The greedy choice of pairs is that of a search over all pairs, for random durations with ties.
    #[test]
    fn the_shortest_pair_is_the_least_of_all_pairs() {
        use rand::{RngExt, SeedableRng};
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(3);
        let types = vec!["A100".to_owned(), "V100".to_owned(), "GTX2080Ti".to_owned()];
        let plan = UnlikePlan { _name: String::new(), types, counts: vec![1, 2, 1], jobs: 0 };
        for _ in 0..200 {
            let draw = |rng: &mut rand_chacha::ChaCha8Rng| (0..3).map(|_| rng.random_range(1..6)).collect();
            let job = |rng: &mut _| UnlikeJob { name: String::new(), deadline: None, durations: draw(rng) };
            let jobs: Vec<UnlikeJob> = (0..7).map(|_| job(&mut rng)).collect();
            let waiting: Vec<usize> = (0..7).collect();
            let free: Vec<u32> = (0..3).map(|_| rng.random_range(0..2)).collect();
            let mut all = Vec::new();
            for job in 0..7 {
                for j in (0..3).filter(|j| free[*j] > 0) {
                    all.push((jobs[job].durations[j], plan.types[j].clone(), job, j));
                }
            }
            let slow = all.into_iter().min().map(|(_, _, job, j)| (job, j));
            assert_eq!(selected(&plan, UnlikeRule::Gavel, &jobs, &waiting, &free), slow);
        }
    }
}
