//! A cheap subset of the published results of Gavel and Shockwave, and worked examples that need their data.
//!
//! The data are in `PLIMSOLL_SHARED_DATA` or `../shared/data` beside the repository. Without them the tests are skipped with a message. The
//! example `gavel` compares all rows. Sources: Gavel, OSDI 2020, figures 8 and 10; Shockwave, NSDI 2023, its repository.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use plimsoll_rounds::mechanism::{Cluster, NewJobs, Options, OverheadWhen, RoundEnd};
use plimsoll_rounds::policies::{PolicyOptions, max_min, policy};
use plimsoll_rounds::simulate::{JobWindow, RoundOutcome, RoundSetup, simulate, simulate_ideal};
use plimsoll_rounds::table::{Arrivals, JobOptions, Rates, Throughputs, TrainingJob, read_jobs};

const WINDOW: JobWindow = JobWindow { from: 4000, to: 5000 };

/// Returns a folder of published data, or `None` with a message.
fn published(folder: &str) -> Option<PathBuf> {
    let data = std::env::var_os("PLIMSOLL_SHARED_DATA")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"), PathBuf::from);
    let path = data.join("published").join(folder);
    if path.exists() {
        return Some(path);
    }
    let _ = writeln!(std::io::stderr(), "skipped: no shared data ({})", path.display());
    None
}

/// Reads the table of Gavel's simulations and a trace of seed 0; a rate of 0 means that all jobs arrive at 0.
fn gavel(folder: &Path, trace: &str, milli: u64, at_most: usize) -> (Throughputs, Vec<TrainingJob>) {
    let table = Throughputs::read(&folder.join("throughputs_simulation.csv"), None).expect("a table");
    let arrivals = if milli == 0 { Arrivals::AtOnce } else { Arrivals::PerHour(milli) };
    let options = JobOptions { arrivals, reference: "v100", single: false, at_most };
    let jobs = read_jobs(&folder.join(format!("trace_{trace}_seed0.csv")), &table, &options).expect("jobs");
    (table, jobs)
}

fn setup<'a>(
    table: &'a Throughputs,
    jobs: &'a [TrainingJob],
    cluster: &'a Cluster,
    options: Options,
) -> RoundSetup<'a> {
    RoundSetup { jobs, table, cluster, options, policy: PolicyOptions::default(), window: None, log_rounds: false }
}

fn large() -> Cluster {
    Cluster::single(&["v100", "p100", "k80"], &[36, 36, 36])
}

/// Mean completion times of jobs 4000 to 4999 in hours, seed 0, beside the values that the notebooks print. Tolerance 3 % (AlloX 5 %).
#[test]
fn means_of_gavel() {
    let Some(folder) = published("gavel") else { return };
    for (name, milli, expected, share) in [
        ("fifo", 800, 17.64, 0.03),
        ("fifo_perf", 800, 15.38, 0.03),
        ("fifo_perf", 2800, 15.68, 0.03),
        ("fifo_perf", 4400, 18.19, 0.03),
        ("max_min_fairness_perf", 800, 17.64, 0.03),
        ("max_min_fairness_perf", 2800, 16.04, 0.03),
        ("max_min_fairness_perf", 4400, 17.48, 0.03),
        ("max_min_fairness", 2800, 23.59, 0.03),
        ("allox", 2800, 16.37, 0.05),
        ("gandiva", 2400, 17.62, 0.03),
    ] {
        let (table, jobs) = gavel(&folder, "single", milli, 10_000);
        let cluster = large();
        let setup = RoundSetup { window: Some(WINDOW), ..setup(&table, &jobs, &cluster, Options::default()) };
        let outcome = simulate(&setup, policy(name).expect("a policy")).expect("a run");
        let summary = outcome.summary(&cluster, WINDOW);
        let mean = summary.mean_jct_s / 3600.0;
        assert_eq!(summary.completed, 1000);
        assert!((mean / expected - 1.0).abs() <= share, "{name} at {milli}: {mean} instead of {expected}");
    }
}

/// An unstable system is reported: max-min without awareness at 5.6 jobs/h (published mean 91 h over seeds).
#[test]
fn an_unstable_system_is_reported() {
    let Some(folder) = published("gavel") else { return };
    let cluster = large();
    for (milli, expected) in [(5600, true), (2800, false)] {
        let (table, jobs) = gavel(&folder, "single", milli, 10_000);
        let setup = RoundSetup { window: Some(WINDOW), ..setup(&table, &jobs, &cluster, Options::default()) };
        let outcome = simulate(&setup, policy("max_min_fairness").expect("a policy")).expect("a run");
        let summary = outcome.summary(&cluster, WINDOW);
        // At 5.6 jobs/h the list of 10,000 jobs ends before the window is complete.
        assert_eq!((summary.unstable, summary.ran_out), (expected, expected), "{milli}");
    }
}

/// E14: job 0 alone on a V100 runs 190 rounds, and its completion is exact.
#[test]
fn e14_one_job_alone() {
    let Some(folder) = published("gavel") else { return };
    let (table, jobs) = gavel(&folder, "single", 0, 1);
    assert_eq!(jobs[0].iterations / 100_000, 16_466_362, "1,646,636.2758 iterations");
    let cluster = Cluster::single(&["v100"], &[1]);
    let outcome = simulate(&setup(&table, &jobs, &cluster, Options::default()), policy("fifo").expect("a policy"));
    let outcome = outcome.expect("a run");
    let job = &outcome.jobs[0];
    assert_eq!(job.rounds, 190);
    // 189 rounds of 359.976612 s and 308.770358 s; the rounding of each round is at most half a microsecond.
    let expected = 189.0 * 359.976_612 + 308.770_358;
    assert!((job.time[0].seconds() - expected).abs() < 2e-4, "{}", job.time[0].seconds());
    assert_eq!(job.done, jobs[0].iterations);
}

/// Figure 13, ideal fractions: 17.45 h at 2.8 jobs/h over seeds 0 to 2 with a standard deviation below 1 h; seed 0 alone within 10 %.
#[test]
fn ideal_fractions() {
    let Some(folder) = published("gavel") else { return };
    let (table, jobs) = gavel(&folder, "single", 2800, 10_000);
    let cluster = large();
    let setup = RoundSetup { window: Some(WINDOW), ..setup(&table, &jobs, &cluster, Options::default()) };
    let outcome = simulate_ideal(&setup, policy("max_min_fairness_perf").expect("a policy")).expect("a run");
    let mean = outcome.summary(&cluster, WINDOW).mean_jct_s / 3600.0;
    assert!((mean / 17.45 - 1.0).abs() < 0.1, "{mean}");
}

/// Runs Shockwave's 120 jobs on 32 GPUs.
fn shockwave(folder: &Path, name: &str) -> (RoundOutcome, Vec<TrainingJob>) {
    let table = Throughputs::read(&folder.join("throughputs.csv"), Some(("cluster", "tacc"))).expect("a table");
    let options = JobOptions { arrivals: Arrivals::Seconds, reference: "v100", single: false, at_most: usize::MAX };
    let jobs = read_jobs(&folder.join("trace_120.csv"), &table, &options).expect("jobs");
    let cluster = Cluster::single(&["v100"], &[32]);
    let outcome = simulate(&setup(&table, &jobs, &cluster, Options::shockwave()), policy(name).expect("a policy"));
    (outcome.expect("a run"), jobs)
}

/// The simulated rows of max-min, of the least makespan and of Shockwave: makespan, mean completion time, worst rho, unfair shares.
#[test]
fn summaries_of_shockwave() {
    let Some(folder) = published("shockwave") else { return };
    for (name, makespan, jct, worst, unfair, shares) in [
        ("max_min_fairness", 33067.8, 11091.51, 2.92249, [25.0, 20.83], [0.02, 0.03, 0.15, 3.0]),
        ("min_total_duration", 24108.9, 19385.18, 7.36559, [73.33, 70.83], [0.05, 0.1, 0.2, 8.0]),
        ("shockwave", 23399.4, 9943.75, 1.49627, [4.17, 1.67], [0.05, 0.05, 0.2, 5.0]),
    ] {
        let (outcome, jobs) = shockwave(&folder, name);
        let summary = outcome.summary(&Cluster::single(&["v100"], &[32]), JobWindow { from: 0, to: 120 });
        let rho = outcome.rho(&jobs, 32);
        let near = |ours: f64, published: f64, share: f64| (ours / published - 1.0).abs() <= share;
        assert!(near(summary.makespan_s, makespan, shares[0]), "{name}: {}", summary.makespan_s);
        assert!(near(summary.mean_jct_s, jct, shares[1]), "{name}: {}", summary.mean_jct_s);
        assert!(near(rho.worst, worst, shares[2]), "{name}: {}", rho.worst);
        let own = [100.0 * rho.above_1_05, 100.0 * rho.above_1_1];
        assert!(own.iter().zip(unfair).all(|(own, published)| (own - published).abs() <= shares[3]), "{name}: {own:?}");
        assert!(summary.lost_s > 0.0 && summary.useful_utilisation < summary.mean_utilisation);
        // The gap that the authors accept is 10^-3 of the objective.
        let near = outcome.plans.iter().filter(|(value, bound)| bound - value <= 1e-3 * bound.abs()).count();
        assert!(near * 100 >= outcome.plans.len() * 95, "{near} of {} plans", outcome.plans.len());
    }
}

/// E18: rho of job 0 under finish-time fairness with the published completion time.
#[test]
fn e18_rho() {
    let Some(folder) = published("shockwave") else { return };
    let (mut outcome, jobs) = shockwave(&folder, "max_min_fairness");
    let end = |seconds: f64, arrival: u64| Some(plimsoll_base::units::Time((seconds * 1e6) as u64 + arrival));
    outcome.jobs[0].completion = end(1182.612, jobs[0].arrival.0);
    outcome.jobs[1].completion = end(6836.033, jobs[1].arrival.0);
    let rho = outcome.rho(&jobs, 32).rho;
    assert!((rho[0].expect("a value") - 0.25748).abs() < 1e-5);
    assert!((rho[1].expect("a value") - 0.60845).abs() < 1e-5);
}

/// POP, figure 2: one allocation of 2,048 jobs with pairs, in 1, 2, 4 and 8 parts.
#[test]
fn allocations_of_pop() {
    let Some(folder) = published("gavel") else { return };
    let table = Throughputs::read(&folder.join("throughputs_simulation.csv"), None).expect("a table");
    let sizes: [(&str, &[u32]); 5] = [
        ("resnet18", &[16, 32, 64, 128, 256]),
        ("resnet50", &[16, 32, 64, 128]),
        ("transformer", &[16, 32, 64, 128, 256]),
        ("lm", &[5, 10, 20, 40, 80]),
        ("recommendation", &[512, 1024, 2048, 4096, 8192]),
    ];
    let mut types: Vec<(String, u32)> =
        sizes.iter().flat_map(|(model, sizes)| sizes.iter().map(move |size| (format!("{model}-{size}"), 1))).collect();
    types.extend([("a3c".to_owned(), 1), ("cyclegan".to_owned(), 1)]);
    let workers = ["v100", "p100", "k80"].map(str::to_owned);
    let rates = Rates::new(&table, &[], &types, &workers, true).expect("rates");
    let mut random = plimsoll_rounds::random::PythonRandom::new(0);
    let mut draw = || {
        for _ in 0..3 {
            random.unit();
        }
        random.below(types.len()) as u32
    };
    let kinds: Vec<u32> = (0..2048).map(|_| draw()).collect();
    let first: Vec<&str> = kinds[..4].iter().map(|&kind| types[kind as usize].0.as_str()).collect();
    assert_eq!(first, ["resnet50-128", "transformer-16", "resnet50-32", "recommendation-512"]);
    let published: [&[f64]; 4] = [
        &[1.48122],
        &[1.47333, 1.48809],
        &[1.48491, 1.48618, 1.45976, 1.48978],
        &[1.49536, 1.49461, 1.47541, 1.46829, 1.47380, 1.47423, 1.44143, 1.50689],
    ];
    for expected in published {
        let parts = expected.len();
        for (part, expected) in expected.iter().enumerate() {
            let job = |(id, &kind): (usize, &u32)| plimsoll_rounds::policies::ActiveJob {
                id: id as u32,
                kind,
                scale: 1,
                weight: 1,
                entity: 0,
                arrival: plimsoll_base::units::Time(0),
                remaining: 1_000_000,
                done: 0,
                deadline: None,
            };
            let own = kinds.iter().enumerate().filter(|(id, _)| id % parts == part);
            let jobs: Vec<_> = own.map(job).collect();
            let capacity = [512 / parts as u32; 3];
            let view = plimsoll_rounds::policies::View {
                now: plimsoll_base::units::Time(0),
                jobs: &jobs,
                rates: &rates,
                capacity: &capacity,
            };
            let solved = max_min(&view, true, true).expect("a solution");
            // The norm of the authors has weights 1/4 instead of 1/3, so their level is 4/3 of ours.
            let level = solved.level * 4.0 / 3.0;
            assert!((level - expected).abs() < 1e-5, "part {part} of {parts}: {level} instead of {expected}");
        }
    }
}

/// The switches change a run: fixed rounds, new jobs that fill, overhead on moves.
#[test]
fn switches_change_a_run() {
    let Some(folder) = published("gavel") else { return };
    let (table, jobs) = gavel(&folder, "multi", 2000, 60);
    let cluster = Cluster::single(&["v100", "p100", "k80"], &[8, 8, 8]);
    let run = |options: Options| {
        let row = policy("max_min_fairness_perf").expect("a policy");
        simulate(&setup(&table, &jobs, &cluster, options), row).expect("a run")
    };
    let base = run(Options::default());
    assert_eq!(base, run(Options::default()), "two runs of one setup");
    let fixed = run(Options { round_end: RoundEnd::Fixed, ..Options::default() });
    assert!(fixed != base);
    let wait = |outcome: &RoundOutcome| -> f64 {
        outcome.jobs.iter().map(|job| job.start.expect("a start").since(job.arrival).seconds()).sum()
    };
    let fill = run(Options { new_jobs: NewJobs::Fill, ..Options::default() });
    assert!(wait(&fill) < wait(&base));
    let mut options = Options::shockwave();
    options.overhead.when = OverheadWhen::OnMove;
    let (after_gap, on_move) = (run(Options::shockwave()), run(options));
    assert!(after_gap.overhead.iter().sum::<u64>() > 0 && on_move.overhead.iter().sum::<u64>() > 0);
    assert!(on_move != after_gap);
}

/// A job that fits on no type, and a round that is not above the overhead, are errors before the run (E22 iii).
#[test]
fn impossible_runs_are_refused() {
    let Some(folder) = published("gavel") else { return };
    let (table, jobs) = gavel(&folder, "multi", 2000, 60);
    let row = policy("fifo").expect("a policy");
    let small = Cluster::single(&["v100"], &[2]);
    let error = simulate(&setup(&table, &jobs, &small, Options::default()), row).expect_err("a wide job");
    assert!(error.to_string().contains("uses 8 accelerators together, more than the 2 of any worker type"), "{error}");
    let mut options = Options::shockwave();
    options.round = options.overhead.lost;
    let error = simulate(&setup(&table, &jobs, &large(), options), row).expect_err("a short round");
    assert!(error.to_string().contains("the round must be longer than the overhead of 20 s"), "{error}");
}

/// E17: levels of water filling on the list of figure 11, with random throughputs, by the intended and by the published rule.
#[test]
fn e17_water_filling() {
    use plimsoll_rounds::policies::{ActiveJob, Bottlenecks, View, Within, water_fill};
    let Some(folder) = published("gavel") else { return };
    let text = std::fs::read_to_string(folder.join("hierarchical_jobs.csv")).expect("a list");
    let listed: Vec<Vec<f64>> = text
        .lines()
        .filter(|line| line.starts_with("random,"))
        .map(|line| line.split(',').map(|field| field.parse().unwrap_or(0.0)).collect())
        .collect();
    // Columns: throughputs, job, entity, entity_weight, job_weight, job_type, k80, p100, v100.
    let levels = |count: usize, within: Within, bottlenecks: Bottlenecks| {
        let rows: Vec<[f64; 3]> = listed[..count].iter().map(|row| [row[8], row[7], row[6]]).collect();
        let rows: Vec<&[f64]> = rows.iter().map(|row| &row[..]).collect();
        let rates = Rates::from_rows(&rows).expect("rates");
        let job = |id: usize| ActiveJob {
            id: id as u32,
            kind: id as u32,
            scale: 1,
            weight: 1,
            entity: listed[id][2] as u32,
            arrival: plimsoll_base::units::Time(0),
            remaining: 1_000_000,
            done: 0,
            deadline: None,
        };
        let jobs: Vec<ActiveJob> = (0..count).map(job).collect();
        let weight = |row: &Vec<f64>| if within == Within::Fifo { 1.0 } else { row[4] };
        let weights: Vec<f64> = listed[..count].iter().map(weight).collect();
        let entity_weight =
            |entity: u32| listed.iter().find(|row| row[2] == f64::from(entity)).map_or(1.0, |row| row[3]);
        let view = View { now: plimsoll_base::units::Time(0), jobs: &jobs, rates: &rates, capacity: &[3, 3, 3] };
        water_fill(&view, true, within, &weights, &entity_weight, bottlenecks).expect("a solution").1
    };
    let near = |levels: Vec<f64>, expected: &[f64]| {
        assert_eq!(levels.len(), expected.len());
        let close = levels.iter().zip(expected).all(|(level, expected)| (level - expected).abs() < 2e-4);
        assert!(close, "{levels:?} instead of {expected:?}");
    };
    near(levels(3, Within::Fair, Bottlenecks::Intended), &[1.2523, 1.3052, 1.5037]);
    near(levels(3, Within::Fair, Bottlenecks::Published), &[0.6526, 1.3052, 0.6526]);
    let all = levels(18, Within::Fair, Bottlenecks::Intended);
    assert!((all[0] - 0.2012).abs() < 2e-4 && (all[1] - 0.4024).abs() < 2e-4, "{all:?}");
    let first = [0.4244, 0.5746, 0.2554, 0.2857, 0.0, 0.0];
    let expected: Vec<f64> = (1..=3).flat_map(|times| first.map(|level| level * f64::from(times))).collect();
    near(levels(18, Within::Fifo, Bottlenecks::Published), &expected);
    let expected = [
        1.124, 0.2607, 0.0, 0.0, 0.0, 0.0, 1.3382, 0.9467, 0.3, 0.1846, 0.0, 0.0, 1.2733, 1.7237, 0.6791, 0.3519,
        0.1264, 0.0,
    ];
    near(levels(18, Within::Fifo, Bottlenecks::Intended), &expected);
}
