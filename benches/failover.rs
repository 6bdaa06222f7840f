//! The control plane under random faults: simulated messages per second, on small clusters and on 20,000 machines.
//!
//! The throughput does not count the heartbeats that change nothing; `plimsoll failover --chaos` reports their number.

use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use plimsoll::control::chaos::Chaos;
use plimsoll::control::rules::Rules;
use plimsoll::control::scenario::Scenario;
use plimsoll::control::trial::Trial;
use plimsoll::control::world::plan::{Network, Timing};

fn chaos(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("chaos");
    for machines in [4, 400, 20_000] {
        let chaos = Chaos::new(1, machines, Rules::ALL, Some(Network::ORDERED));
        let play = || chaos.run(&|| Ok(())).expect("the run is not stopped").messages();
        let (sent, idle) = play();
        group.throughput(Throughput::Elements(sent - idle));
        group.bench_function(BenchmarkId::from_parameter(machines), |bencher| bencher.iter(play));
    }
    group.finish();
}

fn scenarios(criterion: &mut Criterion) {
    let run = |scenario| Trial::new(scenario, Rules::ALL, Network::ORDERED, Timing::default());
    let sent = |trial: &Trial| trial.outcomes.iter().map(|(_, outcome)| outcome.messages - outcome.idle).sum::<u64>();
    let mut group = criterion.benchmark_group("scenarios");
    group.throughput(Throughput::Elements(Scenario::all().into_iter().map(|scenario| sent(&run(scenario))).sum()));
    group.bench_function("all seventeen", |bencher| {
        bencher.iter(|| Scenario::all().into_iter().map(run).filter(Trial::ok).count());
    });
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1));
    targets = chaos, scenarios
}
criterion_main!(benches);
