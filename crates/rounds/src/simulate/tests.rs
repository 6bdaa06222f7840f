//! Runs on a small cluster: every policy, conservation of work, switches, changes of the batch size, errors.

use std::io::Write;

use super::*;
use crate::policies::{POLICIES, policy};
use crate::table::{Arrivals, JobOptions, read_jobs};

const TABLE: &str = "job_type,scale_factor,worker_type,colocated_with,iterations_per_s
lm-10,1,v100,,10.5
lm-10,1,k80,,2.25
lm-20,1,v100,,6.5
lm-20,1,k80,,1.5
lm-10,2,v100,,18
lm-10,2,k80,,0
lm-20,2,v100,,11
lm-20,2,k80,,2
lm-10,1,v100,lm-20,7
lm-20,1,v100,lm-10,4.5
lm-10,1,v100,lm-10,6
lm-20,1,v100,lm-20,3.9
";

const JOBS: &str = "job,arrival_s,job_type,scale_factor,iterations,weight,exclusive_s
0,0,lm-10,1,20000.25,1,1905
1,10,lm-20,1,9000,2,1385
2,500,lm-10,2,30000.5,1,1667
3,800,lm-20,1,500,1,77
4,3000,lm-10,1,40000,1,3810
5,3000,lm-20,2,12345.678901,5,1123
6,90000,lm-10,1,100,1,10
";

fn read(table: &str, jobs: &str) -> (Throughputs, Vec<TrainingJob>) {
    let file = |text: &str| {
        let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
        file.write_all(text.as_bytes()).expect("writable");
        file
    };
    let table = Throughputs::read(file(table).path(), None).expect("a table");
    let options = JobOptions { arrivals: Arrivals::Seconds, reference: "v100", single: false, at_most: usize::MAX };
    let jobs = read_jobs(file(jobs).path(), &table, &options).expect("jobs");
    (table, jobs)
}

fn cluster() -> Cluster {
    Cluster::single(&["v100", "k80"], &[2, 2])
}

fn run(jobs: &str, name: &str, options: Options) -> RoundOutcome {
    let (table, jobs) = read(TABLE, jobs);
    let cluster = cluster();
    let policy_options = PolicyOptions::default();
    let setup = RoundSetup {
        jobs: &jobs,
        table: &table,
        cluster: &cluster,
        options,
        policy: policy_options,
        window: None,
        log_rounds: true,
    };
    simulate(&setup, policy(name).expect("a policy")).expect(name)
}

/// Under every policy all jobs complete, run exactly their iterations, and use no more accelerator time than exists.
#[test]
fn every_policy_completes_all_jobs() {
    let (_, jobs) = read(TABLE, JOBS);
    // Shockwave has one worker type; its runs are tested below.
    for row in POLICIES.iter().filter(|row| row.name != "shockwave") {
        let outcome = run(JOBS, row.name, Options::default());
        for (job, own) in jobs.iter().zip(&outcome.jobs) {
            let end = own.completion.expect(row.name);
            assert_eq!(own.done, job.iterations, "{} job {}", row.name, job.id);
            let ran: u64 = own.time.iter().map(|time| time.0).sum();
            assert!(own.start.expect("a start") >= job.arrival && end.since(own.start.expect("a start")).0 >= ran);
        }
        for (busy, count) in outcome.busy.iter().zip([2, 2]) {
            assert!(*busy <= count * outcome.end.0, "{}", row.name);
        }
        assert!(outcome.rounds > 0 && outcome.schedule.len() as u64 == outcome.rounds);
        assert_eq!(outcome, run(JOBS, row.name, Options::default()), "{}: two runs differ", row.name);
        let summary = outcome.summary(&cluster(), JobWindow { from: 0, to: 7 });
        assert_eq!(summary.completed, 7);
        assert!(summary.quantiles_s.is_sorted() && summary.mean_utilisation <= 1.0 && !summary.unstable);
    }
}

/// Shockwave on one worker type: all jobs complete, wide jobs and an idle period included, and plans are near their bounds.
#[test]
fn a_policy_that_plans_completes_all_jobs() {
    let (table, jobs) = read(TABLE, JOBS);
    let cluster = Cluster::single(&["v100"], &[2]);
    let options = Options::shockwave();
    let setup = RoundSetup {
        jobs: &jobs,
        table: &table,
        cluster: &cluster,
        options,
        policy: PolicyOptions::default(),
        window: None,
        log_rounds: true,
    };
    let row = policy("shockwave").expect("a policy");
    let outcome = simulate(&setup, row).expect("a run");
    assert!(jobs.iter().zip(&outcome.jobs).all(|(job, own)| own.completion.is_some() && own.done == job.iterations));
    assert!(outcome.plans.len() as u64 == outcome.resets && outcome.resets < outcome.rounds);
    assert!(outcome.plans.iter().all(|(value, bound)| value <= bound));
    // A round with a waiting job that fits leaves no accelerator idle.
    let wide = |id: &u32| jobs[*id as usize].scale;
    assert!(outcome.schedule[1..8].iter().all(|round| round.iter().map(wide).sum::<u32>() == 2), "{outcome:?}");
    assert_eq!(outcome, simulate(&setup, row).expect("a run"), "two runs differ");
}

/// Two jobs take turns on one accelerator: each is paused while the other one runs, and neither envies the other.
#[test]
fn pauses_and_envy_are_measured() {
    let (table, jobs) = read(TABLE, "arrival_s,job_type,iterations\n0,lm-10,37800\n0,lm-10,37800\n");
    let cluster = Cluster::single(&["v100"], &[1]);
    let setup = RoundSetup {
        jobs: &jobs,
        table: &table,
        cluster: &cluster,
        options: Options::default(),
        policy: PolicyOptions::default(),
        window: None,
        log_rounds: true,
    };
    let outcome = simulate(&setup, policy("max_min_fairness_perf").expect("a policy")).expect("a run");
    // 10 rounds of 360 s each, in turns: the first job pauses 9 times.
    assert_eq!(outcome.jobs[0].preemptions, 9);
    assert_eq!((outcome.jobs[0].paused, outcome.jobs[1].paused), (Span(9 * 360_000_000), Span(9 * 360_000_000)));
    assert_eq!(outcome.summary(&cluster, JobWindow { from: 0, to: 2 }).paused_s, 6480.0);
    let envy = outcome.envy.expect("fractions");
    assert!(envy.mean < 1e-6 && envy.share == 0.0, "{envy:?}");
    // First in, first out: the second job has no time while the first runs, and envies it.
    let outcome = simulate(&setup, policy("fifo").expect("a policy")).expect("a run");
    let envy = outcome.envy.expect("fractions");
    assert!((0.2..0.3).contains(&envy.mean) && envy.mean == envy.share, "{envy:?}");
    assert_eq!(outcome.jobs[1].paused, Span(0));
}

/// One job alone: its completion is the sum of the lengths of its micro-tasks, and the round after an idle period begins at its arrival.
#[test]
fn a_job_alone_runs_at_its_rate() {
    let outcome = run("arrival_s,job_type,iterations\n50,lm-10,10000\n90000,lm-10,105\n", "fifo", Options::default());
    // 10,000 / 10.5 s in rounds of 3,780 iterations (360 s), and 105 / 10.5 s.
    assert_eq!(outcome.jobs[0].completion, Some(Time(50_000_000 + 952_380_952)));
    assert_eq!(outcome.jobs[1].completion, Some(Time(90_010_000_000)));
    assert_eq!((outcome.jobs[0].rounds, outcome.rounds, outcome.end), (3, 4, Time(90_010_000_000)));
}

#[test]
fn switches_change_the_schedule() {
    let base = run(JOBS, "max_min_fairness_perf", Options::default());
    let fixed = run(JOBS, "max_min_fairness_perf", Options { round_end: RoundEnd::Fixed, ..Options::default() });
    assert_ne!(base.end, fixed.end);
    let fill = run(JOBS, "max_min_fairness_perf", Options { new_jobs: NewJobs::Fill, ..Options::default() });
    assert!(fill.jobs[3].start < base.jobs[3].start, "a new job need not wait for the next reset");
    let order = |order: TypeOrder| run(JOBS, "proportional", Options { type_order: order, ..Options::default() });
    assert_ne!(order(TypeOrder::Listed(vec![0, 1])).jobs, order(TypeOrder::Listed(vec![1, 0])).jobs);
    let lossy = run(JOBS, "max_min_fairness_perf", Options { at_least: Span(0), ..Options::shockwave() });
    assert!(lossy.overhead.iter().sum::<u64>() > 0 && lossy.jobs.iter().any(|job| job.lost.0 > 0));
    assert_eq!(base.overhead, [0, 0]);
    let ideal = |name: &str| {
        let (table, jobs) = read(TABLE, JOBS);
        let cluster = cluster();
        let (options, policy_options) = (Options::default(), PolicyOptions::default());
        let setup = RoundSetup {
            jobs: &jobs,
            table: &table,
            cluster: &cluster,
            options,
            policy: policy_options,
            window: None,
            log_rounds: false,
        };
        simulate_ideal(&setup, policy(name).expect("a policy"))
    };
    // Completions are noticed at the next arrival; nothing arrives after job 6.
    let outcome = ideal("max_min_fairness_perf").expect("a run");
    assert_eq!(outcome.jobs[0].completion, Some(Time(90_000_000_000)));
    assert_eq!(outcome.jobs[6].completion, None);
    assert!(ideal("gandiva").expect_err("pairs").to_string().contains("shares accelerators"));
}

/// A job with a batch that doubles after 2 of 4 epochs: the change is read at the end of a round and applied after the next one.
#[test]
fn the_batch_size_changes_after_one_more_round() {
    let jobs = "arrival_s,job_type,total_steps,batch_sizes,mode\n0,lm-10,23872,10x2 20x2,accordion\n";
    let outcome = run(jobs, "fifo", Options { round: Span(120_000_000), ..Options::default() });
    // 5,968 iterations per epoch. Rounds of 1,260: after round 10 (12,600) two epochs are complete; after round 11 (13,860) the
    // third counts as complete: 3 x 2,984 of 11,936 iterations. The rest, 2,984 at 6.5/s, is 3 rounds of 780 and 644 iterations.
    let job = &outcome.jobs[0];
    assert_eq!((job.done, job.rounds), (11_936_000_000, 15));
    assert_eq!(job.completion, Some(Time(11 * 120_000_000 + 3 * 120_000_000 + 99_076_923)));
}

#[test]
fn impossible_runs_have_errors() {
    let refused = |jobs: &str, name: &str, options: Options| {
        let (table, jobs) = read(TABLE, jobs);
        let small = Cluster::single(&["v100"], &[1]);
        let policy_options = PolicyOptions::default();
        let setup = RoundSetup {
            jobs: &jobs,
            table: &table,
            cluster: &small,
            options,
            policy: policy_options,
            window: None,
            log_rounds: false,
        };
        simulate(&setup, policy(name).expect("a policy")).expect_err("an impossible run").to_string()
    };
    let wide = refused(JOBS, "fifo", Options::default());
    assert_eq!(wide, "job 2 uses 2 accelerators together, more than the 1 of any worker type; it would never run");
    let mut options = Options::shockwave();
    options.round = options.overhead.lost;
    let short = refused("arrival_s,job_type,iterations\n0,lm-10,5\n", "fifo", options);
    assert_eq!(short, "the round must be longer than the overhead of 20 s");
}

/// A job at half its rate runs twice as long; the other one keeps its rate.
#[test]
fn a_job_has_its_own_pace() {
    let jobs = "job,arrival_s,job_type,iterations\n0,0,lm-10,37800\n1,0,lm-20,46800\n";
    let ends = |pace: Vec<u32>| {
        let outcome = run(jobs, "fifo", Options { pace, ..Options::default() });
        outcome.jobs.into_iter().map(|job| job.completion.expect("an end").0 / 1_000_000).collect::<Vec<u64>>()
    };
    assert_eq!(ends(Vec::new()), [3600, 7200]);
    assert_eq!(ends(vec![500_000, 1_000_000]), [7200, 7200]);
}

/// Without delay the second job runs from its arrival at 100 s and is complete at the arrival at 2,000 s. If fractions are computed at most
/// every 1,920 s, it has none until 2,000 s.
#[test]
fn ideal_fractions_may_be_computed_less_often() {
    let jobs = "job,arrival_s,job_type,iterations\n0,0,lm-10,100000\n1,100,lm-10,5000\n2,2000,lm-10,100\n3,5000,lm-10,100\n4,9000,lm-10,1\n";
    let (table, jobs) = read(TABLE, jobs);
    let run = |ideal_at_least: Span| {
        let setup = RoundSetup {
            jobs: &jobs,
            table: &table,
            cluster: &cluster(),
            options: Options { ideal_at_least, ..Options::default() },
            policy: PolicyOptions::default(),
            window: Some(JobWindow { from: 1, to: 2 }),
            log_rounds: false,
        };
        let outcome = simulate_ideal(&setup, policy("isolated").expect("a policy")).expect("a run");
        (outcome.jobs[1].completion, outcome.resets)
    };
    assert_eq!(run(Span(0)), (Some(Time(2_000_000_000)), 3));
    assert_eq!(run(Span(1_920_000_000)), (Some(Time(5_000_000_000)), 3));
}
