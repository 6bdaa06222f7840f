//! Rounds with a final choice compared with a slow implementation that follows the published loop event by event.

use std::path::Path;

use plimsoll::policy::{BUILT_IN, Registry};
use plimsoll::published::PlanRunner;
use plimsoll_published::TargetRunner;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// A job: submission, run time, processors and estimate.
type Job = (u64, u64, u64, u64);

/// The state of the slow implementation.
struct Slow<'a> {
    jobs: &'a [Job],
    now: u64,
    free: u64,
    arrived: usize,
    queue: Vec<usize>,
    /// The end and the job, in the order of starts.
    running: Vec<(u64, usize)>,
    starts: Vec<Option<u64>>,
}

impl Slow<'_> {
    fn fits(&self, job: usize) -> bool {
        self.jobs[job].2 <= self.free
    }

    fn start(&mut self, job: usize) {
        self.free -= self.jobs[job].2;
        self.running.push((self.now + self.jobs[job].1, job));
        self.starts[job] = Some(self.now);
    }

    /// Applies the next event: the first arrival or, if it is later than the first end, this end.
    fn advance(&mut self) {
        let arrival = self.jobs.get(self.arrived).map(|job| job.0);
        let end = self.running.iter().map(|(end, _)| *end).min();
        match (arrival, end) {
            (Some(arrival), end) if end.is_none_or(|end| arrival <= end) => {
                self.now = arrival;
                self.queue.push(self.arrived);
                self.arrived += 1;
            }
            (_, Some(end)) => {
                self.now = end;
                let at = self.running.iter().position(|(other, _)| *other == end).expect("a running job");
                let (_, job) = self.running.remove(at);
                self.free += self.jobs[job].2;
            }
            (Some(_) | None, None) => panic!("no event is left"),
        }
    }

    fn shadow(&self, job: usize) -> u64 {
        let mut ends: Vec<(u64, usize)> = self
            .running
            .iter()
            .map(|&(_, other)| (self.starts[other].expect("started") + self.jobs[other].3, other))
            .collect();
        ends.sort_by_key(|(end, _)| *end);
        let mut free = self.free;
        for (end, other) in ends {
            free += self.jobs[other].2;
            if free >= self.jobs[job].2 {
                return end;
            }
        }
        u64::MAX
    }

    fn run(mut self, backfills: bool, key: impl Fn(&Job) -> u64) -> Vec<u64> {
        loop {
            while self.queue.is_empty() {
                if self.arrived == self.jobs.len() {
                    return self.starts.into_iter().map(|start| start.expect("started")).collect();
                }
                self.advance();
            }
            let jobs = self.jobs;
            self.queue.sort_by_key(|job| (key(&jobs[*job]), *job));
            let chosen = self.queue.remove(0);
            let shadow = if self.fits(chosen) { 0 } else { self.shadow(chosen) };
            while !self.fits(chosen) {
                if backfills {
                    self.queue.sort_unstable();
                    for job in self.queue.clone() {
                        if self.now + self.jobs[job].3 < shadow && self.fits(job) {
                            self.queue.retain(|other| *other != job);
                            self.start(job);
                        }
                    }
                }
                self.advance();
            }
            self.start(chosen);
        }
    }
}

/// Returns the start of each job in the engine.
fn engine(folder: &Path, jobs: &[Job], rule: &str, policy: &str) -> Vec<u64> {
    let mut trace = "job,user,submit_s,duration_s,estimate_s,tasks,gang,slots\n".to_owned();
    for (number, (submit, run, processors, estimate)) in jobs.iter().enumerate() {
        trace += &format!("{number},all,{submit},{run},{estimate},{processors},true,1\n");
    }
    std::fs::write(folder.join("trace.csv"), trace).expect("writable");
    std::fs::write(folder.join("machines.csv"), "name,slots\npool,8\n").expect("writable");
    let plan = format!(
        "name = \"hold\"\npolicies = [\"{policy}\"]\n[cluster]\nmachines = \"machines.csv\"\nplacement = \"pooled\"\n\
         on_blocked = \"{rule}\"\naudit = true\n[workload]\ntrace = \"trace.csv\"\n"
    );
    std::fs::write(folder.join("plan.toml"), plan).expect("writable");
    let registry = Registry::new(BUILT_IN);
    let runner = PlanRunner { registry: &registry, check: &|| Ok(()) };
    let outcome = runner.run(&folder.join("plan.toml"), &[], None, None).expect("a run");
    let mut starts: Vec<(usize, u64)> = outcome
        .jobs
        .iter()
        .map(|job| (job.job.parse().expect("a number"), job.start.expect("started") / 1_000_000))
        .collect();
    starts.sort_unstable();
    starts.into_iter().map(|(_, start)| start).collect()
}

#[test]
fn a_final_choice_is_that_of_the_published_loop() {
    let mut rng = ChaCha8Rng::seed_from_u64(48);
    let dir = tempfile::tempdir().expect("a temporary folder");
    let (mut differ, mut waits) = (0, 0);
    for case in 0..150 {
        let mut jobs: Vec<Job> = (0..rng.random_range(2..16))
            .map(|_| {
                let run = rng.random_range(1..12);
                (rng.random_range(0..20), run, rng.random_range(1..=8), run + rng.random_range(0..6))
            })
            .collect();
        jobs.sort_unstable_by_key(|job| job.0);
        let slow = |backfills: bool, shortest: bool| {
            let starts = vec![None; jobs.len()];
            let slow = Slow { jobs: &jobs, now: 0, free: 8, arrived: 0, queue: vec![], running: vec![], starts };
            slow.run(backfills, |job| if shortest { job.3 } else { 0 })
        };
        for (rule, backfills) in [("hold", false), ("hold-backfill", true)] {
            for (policy, shortest) in [("line/fifo", false), ("expr:(order estimate)", true)] {
                let expected = slow(backfills, shortest);
                assert_eq!(
                    engine(dir.path(), &jobs, rule, policy),
                    expected,
                    "{rule} {policy} in case {case}: {jobs:?}"
                );
                waits += usize::from(expected.iter().zip(&jobs).any(|(start, job)| *start > job.0));
            }
        }
        differ += usize::from(slow(false, true) != slow(true, true));
    }
    assert!(waits > 400 && differ > 20, "{waits} runs with waits, {differ} cases where backfilling matters");
}
