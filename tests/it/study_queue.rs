//! Confidence intervals for the mean completion time of an M/M/c queue, which is known. The engine simulates the queue, and the warm-up is
//! excluded.

use plimsoll::cluster::ClusterSpec;
use plimsoll::engine::Options;
use plimsoll::experiment::{Destination, SharedSupply, Simulation, Supply, Window, simulate};
use plimsoll::metrics::compare::LEVEL;
use plimsoll::metrics::mean_interval;
use plimsoll::policy::{BUILT_IN, Registry};
use plimsoll::units::{Span, Time};
use plimsoll::workload::synthetic::Generator;

/// The number of servers. `LOAD` is the arrival rate divided by the service rate of one server.
const SERVERS: u32 = 4;
const LOAD: f64 = 2.4;

/// The number of seeds of one repetition, and the number of repetitions.
const SEEDS: u64 = 8;
const REPETITIONS: u64 = 1000;

/// Returns the mean wait in a queue of `c` servers, in mean service times: C(c, a) / (c − a) with Erlang's C.
fn erlang_c(c: u32, a: f64) -> f64 {
    // Erlang's B, by its recursion over the number of servers. Erlang's C is computed from B.
    let b = (1..=c).fold(1.0, |b, k| a * b / (f64::from(k) + a * b));
    let servers = f64::from(c);
    servers * b / (servers - a * (1.0 - b)) / (servers - a)
}

#[test]
fn erlang_c_is_right() {
    // One server: ρ / (1 − ρ). Two servers and a = 1: C = 1/3.
    assert!((erlang_c(1, 0.5) - 1.0).abs() < 1e-12);
    assert!((erlang_c(2, 1.0) - 1.0 / 3.0).abs() < 1e-12);
}

/// Returns the mean completion time of one seed in seconds, for jobs that arrive in the window.
fn mean_completion(generator: &Generator, window: Window, seed: u64) -> f64 {
    let supply = SharedSupply::from(Supply::generate(generator, seed).expect("a valid generator"));
    let cluster = ClusterSpec::parse("machines", &format!("1x{SERVERS}c")).expect("a cluster");
    let simulation = Simulation {
        supply: &supply,
        workload: "queue",
        cluster: &cluster,
        weights: None,
        mix: None,
        control: None,
        services: &[],
        options: &Options::default(),
        sample: Span::from_secs(3600),
        window,
        intervention: None,
        metrics: &[],
    };
    let to = Destination {
        folder: None,
        policy: "fifo".to_owned(),
        run: 0,
        seed: Some(seed),
        axes: Vec::new(),
        tables: Vec::new(),
        metadata: Vec::new(),
        saved: None,
    };
    let policy = Registry::new(BUILT_IN).policy("fifo").expect("a policy");
    let run = simulate(&simulation, &policy, &to, &mut |_, _| Ok(())).expect("a run");
    run.summary.number("completion_mean_s").expect("jobs were measured")
}

#[test]
fn intervals_cover_the_known_completion_time_of_a_queue() {
    let text = format!(
        "generator = 'synthetic'\nhours = 0.1\narrival = {{ distribution = 'exponential', mean = {} }}\n\
         [[class]]\nname = 'u'\nduration = {{ distribution = 'exponential', mean = 1 }}\ndemand = {{ cpu = 1 }}\n",
        1.0 / LOAD
    );
    let generator: Generator = toml::from_str(&text).expect("a generator");
    // The warm-up is eight times the relaxation time of the queue, 1 / (√c − √a)² = 5 s.
    let window = Window { from: Time::ZERO + Span::from_secs(40), to: Time::NEVER };
    let exact = 1.0 + erlang_c(SERVERS, LOAD);
    let (mut covered, mut sum) = (0, 0.0);
    for repetition in 0..REPETITIONS {
        let means: Vec<f64> =
            (0..SEEDS).map(|n| mean_completion(&generator, window, 1 + repetition * SEEDS + n)).collect();
        let interval = mean_interval(&means, LEVEL).expect("eight values");
        let (low, high) = (interval.low.expect("an end"), interval.high.expect("an end"));
        covered += usize::from(low <= exact && exact <= high);
        sum += interval.mean;
    }
    let mean = sum / REPETITIONS as f64;
    assert!((930..=970).contains(&covered), "{covered} of {REPETITIONS} intervals cover {exact}; overall mean {mean}");
    assert!((mean / exact - 1.0).abs() < 0.005, "mean completion time {mean}, not {exact}");
}
