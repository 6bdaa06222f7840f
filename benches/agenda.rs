//! Measures the event queue alone, with the hold model. One operation takes the next of N pending events and schedules another one an
//! exponentially distributed time later, in whole microseconds. Baselines: binary heaps, and the `priority-queue` crate.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use plimsoll::engine::Agenda;
use plimsoll::units::Time;
use priority_queue::PriorityQueue;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Exp1};

/// An event queue; events of one instant are returned in the order of their insertion.
trait Events: Default {
    fn schedule(&mut self, time: u64, sequence: u64);
    fn next(&mut self) -> u64;
}

impl Events for Agenda<u32> {
    fn schedule(&mut self, time: u64, sequence: u64) {
        // The agenda has its own sequence numbers.
        let _ = Agenda::schedule(self, Time(time), 0, sequence as u32);
    }

    fn next(&mut self) -> u64 {
        self.pop().map_or(0, |(key, event)| {
            black_box(event);
            key.time.0
        })
    }
}

impl Events for BinaryHeap<Reverse<(Time, u64, u64)>> {
    fn schedule(&mut self, time: u64, sequence: u64) {
        self.push(Reverse((Time(time), sequence, sequence)));
    }

    fn next(&mut self) -> u64 {
        self.pop().map_or(0, |Reverse((time, ..))| time.0)
    }
}

impl Events for BinaryHeap<Reverse<u128>> {
    fn schedule(&mut self, time: u64, sequence: u64) {
        self.push(Reverse(u128::from(time) << 64 | u128::from(sequence)));
    }

    fn next(&mut self) -> u64 {
        self.pop().map_or(0, |Reverse(entry)| (entry >> 64) as u64)
    }
}

impl Events for PriorityQueue<u64, Reverse<(u64, u64)>> {
    fn schedule(&mut self, time: u64, sequence: u64) {
        self.push(sequence, Reverse((time, sequence)));
    }

    fn next(&mut self) -> u64 {
        self.pop().map_or(0, |(_, Reverse((time, _)))| time)
    }
}

/// Returns exponentially distributed times with a mean of a second, drawn before the measurement.
fn gaps() -> Vec<u64> {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    (0..1 << 16)
        .map(|_| {
            let gap: f64 = Exp1.sample(&mut rng);
            (gap * 1e6) as u64
        })
        .collect()
}

struct Hold<'a, Q> {
    queue: Q,
    gaps: std::iter::Cycle<std::slice::Iter<'a, u64>>,
    sequence: u64,
}

impl<'a, Q: Events> Hold<'a, Q> {
    /// Creates a queue with `pending` events and performs `pending` steps, so that the measurement starts near the steady state.
    fn new(gaps: &'a [u64], pending: u64) -> Hold<'a, Q> {
        let mut hold = Hold { queue: Q::default(), gaps: gaps.iter().cycle(), sequence: 0 };
        (0..pending).for_each(|_| hold.schedule(0));
        (0..pending).for_each(|_| hold.step());
        hold
    }

    fn schedule(&mut self, now: u64) {
        let gap = self.gaps.next().copied().unwrap_or_default();
        self.queue.schedule(now + gap, self.sequence);
        self.sequence += 1;
    }

    fn step(&mut self) {
        let now = self.queue.next();
        self.schedule(now);
    }
}

fn hold(criterion: &mut Criterion) {
    let gaps = gaps();
    for pending in [1_000, 100_000, 1_000_000] {
        let mut group = criterion.benchmark_group(format!("hold/{pending}"));
        group.throughput(Throughput::Elements(1));
        macro_rules! queue {
            ($name:literal, $queue:ty) => {
                let mut hold = Hold::<$queue>::new(&gaps, pending);
                group.bench_function(BenchmarkId::from_parameter($name), |bencher| bencher.iter(|| hold.step()));
            };
        }
        queue!("agenda", Agenda<u32>);
        queue!("binary heap of structs", BinaryHeap<Reverse<(Time, u64, u64)>>);
        queue!("binary heap of u128", BinaryHeap<Reverse<u128>>);
        queue!("priority-queue", PriorityQueue<u64, Reverse<(u64, u64)>>);
        group.finish();
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1));
    targets = hold
}
criterion_main!(benches);
