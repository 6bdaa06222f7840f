//! Measures the fluid replay alone: jobs of one task at a load of 0.9, from 100 users without bursts and from 100,000 users with bursts.
//!
//! It prints the time per row and a digest of the services, which a change of the implementation must not alter. Instructions per row:
//! `valgrind --tool=callgrind --toggle-collect='*replay_rows*' BINARY --bench`, divided by the number of rows.

use std::hint::black_box;
use std::io::Write;
use std::time::Instant;

use plimsoll_base::units::{MAX_DIMS, Resources, Span, Time, UserId};
use plimsoll_metrics::{FairService, Reference, Work};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Exp1, LogNormal};

const ROWS: usize = 60_000;
const MACHINES: u64 = 400;
const CORES: u64 = 64;
const GIB: u64 = 256;

fn resources(cores: u64, gib: u64) -> Resources {
    let mut amounts = Resources::ZERO;
    (amounts.0[0], amounts.0[1]) = (cores * 1000, gib << 30);
    amounts
}

/// Returns the rows and the instants at which the engine would advance the replay: every submission, and every end of a task that starts at
/// once. The rate of arrivals oscillates by the part `burst` with a period of 1,800 s.
fn workload(users: u32, burst: f64) -> (Vec<Work>, Vec<Time>) {
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let lengths = LogNormal::new(180f64.ln(), 1.0).expect("a valid deviation");
    // The mean duration is 180 e^0.5 = 297 s and the mean request 2.7 cores and 9 GiB: cores are the scarcer resource.
    let rate = 0.9 * (CORES * MACHINES) as f64 / (2.7 * 297.0);
    let (mut at, mut works) = (0.0f64, Vec::new());
    for _ in 0..ROWS {
        let gap: f64 = Exp1.sample(&mut rng);
        at += gap / rate / (1.0 + burst * (at * std::f64::consts::TAU / 1800.0).sin());
        // Few users submit most rows.
        let user = (f64::from(users) * rng.random::<f64>().powf(2.5)) as u32;
        let demand = match user % 2 {
            0 => resources([2, 2, 4, 8][rng.random_range(0..4)], [2, 4, 8][rng.random_range(0..3)]),
            _ => resources([1, 2][rng.random_range(0..2)], [8, 16, 32][rng.random_range(0..3)]),
        };
        let duration = Span::from_secs((lengths.sample(&mut rng) as u64).max(1));
        let submit = Time::ZERO + Span::from_secs(at as u64);
        works.push(Work { user: UserId(user), submit, duration, tasks: 1, demand, measured: true });
    }
    let mut instants: Vec<Time> = works.iter().flat_map(|work| [work.submit, work.submit + work.duration]).collect();
    instants.sort_unstable();
    instants.dedup();
    (works, instants)
}

#[inline(never)]
fn replay_rows(mut reference: Reference, works: &[Work], instants: &[Time]) -> FairService {
    let mut rest = works;
    for &now in instants {
        reference.advance(now).expect("a filling ends");
        while let Some((work, later)) = rest.split_first().filter(|(work, _)| work.submit <= now) {
            reference.submit(*work);
            rest = later;
        }
    }
    reference.finish(None).expect("a filling ends")
}

fn main() {
    for (label, users, burst) in [("100 users, flat", 100, 0.0), ("100,000 users, bursts", 100_000, 0.6)] {
        if std::env::args().skip(1).any(|arg| !arg.starts_with('-') && !label.starts_with(&arg)) {
            continue;
        }
        let (works, instants) = workload(users, burst);
        let mut reference = Reference::new(2, &resources(CORES * MACHINES, GIB * MACHINES), vec![[1.0; MAX_DIMS]]);
        (0..users).for_each(|_| reference.user(0));
        let start = Instant::now();
        let fair = replay_rows(reference, black_box(&works), black_box(&instants));
        let spent = start.elapsed();
        let service = |user| fair.service(user as usize);
        let bits = (0..users).map(service).flat_map(|service| [service.work.to_bits(), service.delay.to_bits()]);
        let digest = bits.fold(0u64, |digest, bits| (digest.rotate_left(5) ^ bits).wrapping_mul(0x517c_c1b7_2722_0a95));
        let line = format!("{label}: {} ns per row, services {digest:016x}", spent.as_nanos() as usize / ROWS);
        writeln!(std::io::stdout(), "{line}").expect("an open output");
    }
}
