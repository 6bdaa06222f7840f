//! Measures the metrics of a run: jobs of one task on one pool at a load of 0.9, without a log, with a log, and with a log that shares the
//! fluid replay.
//!
//! It prints the time per row and a digest of the metrics, which a change of the implementation must not alter. Instructions per row:
//! `valgrind --tool=callgrind --toggle-collect='*engine::run' BINARY --bench CASE`, divided by the number of rows; the difference of the
//! cases is the cost of the metrics.

use std::io::Write;
use std::sync::Arc;
use std::time::Instant;

use plimsoll_base::error::Result;
use plimsoll_base::units::{Dim, Resources, Span, Time, Unit, UserId};
use plimsoll_metrics::{FairService, Measure, RunLog, Window};
use plimsoll_sim::books::{Books, Weights};
use plimsoll_sim::cluster::{Cluster, Placement};
use plimsoll_sim::engine::{self, Options};
use plimsoll_sim::policy::{Capabilities, Policy, Queue, Rank};
use plimsoll_sim::record::{JobRecord, Launch, Recorder, State, StuckRecord, TaskRecord};
use plimsoll_sim::workload::{TaskSet, Workload};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Exp1, LogNormal};

const ROWS: usize = 60_000;
const USERS: u32 = 100;
const MACHINES: u64 = 400;

fn resources(cores: u64, gib: u64) -> Resources {
    let mut amounts = Resources::ZERO;
    (amounts.0[0], amounts.0[1]) = (cores * 1000, gib << 30);
    amounts
}

fn workload() -> Workload {
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let dims = ["cpu", "memory"].map(|name| Dim { name: name.to_owned(), unit: Unit::Milli });
    let mut workload = Workload { dims: dims.to_vec(), ..Workload::default() };
    let lengths = LogNormal::new(180f64.ln(), 1.0).expect("a valid deviation");
    // The mean duration is 180 e^0.5 = 297 s, the mean request 2.75 cores and 11.7 GiB.
    let rate = 0.9 * (64 * MACHINES) as f64 / (2.75 * 297.0);
    let mut at = 0.0f64;
    for number in 0..ROWS {
        let gap: f64 = Exp1.sample(&mut rng);
        at += gap / rate;
        let user = UserId(workload.users.intern(&format!("u{}", rng.random_range(0..USERS))));
        let demand = match user.0 % 2 {
            0 => resources([2, 2, 4, 8][rng.random_range(0..4)], [2, 4, 8][rng.random_range(0..3)]),
            _ => resources([1, 2][rng.random_range(0..2)], [8, 16, 32][rng.random_range(0..3)]),
        };
        let duration = Span::from_secs((lengths.sample(&mut rng) as u64).max(1));
        let (job, submit) = (workload.job(&format!("j{number}")), Time::ZERO + Span::from_secs(at as u64));
        workload.sets.push(TaskSet { job, user, submit, duration, tasks: 1, demand, ..TaskSet::default() });
    }
    workload.finish()
}

/// Serves all users in the order of their ids.
struct ById;

impl Capabilities for ById {}

impl Policy for ById {
    fn rank(&self, _queue: &Queue, _books: &Books) -> Rank {
        Rank::default()
    }
}

/// A recorder that only feeds the log.
struct Feed(RunLog);

impl Recorder for Feed {
    fn user(&mut self, _user: UserId, _name: &str) {
        self.0.user(0);
    }

    fn submitted(&mut self, row: &TaskSet, _stage: Option<&str>, first_of_job: bool) {
        self.0.submitted(row, first_of_job);
    }

    fn interval(&mut self, from: Time, to: Time, state: &State) -> Result<()> {
        self.0.interval(from, to, state, false).map(drop)
    }

    fn launched(&mut self, launch: &Launch) {
        self.0.launched(launch);
    }

    fn wants_waiting_demand(&self) -> bool {
        true
    }

    fn tasks(&mut self, tasks: &TaskRecord) -> Result<()> {
        self.0.tasks(tasks);
        Ok(())
    }

    fn job(&mut self, job: &JobRecord) -> Result<()> {
        self.0.job(job);
        Ok(())
    }

    fn stuck(&mut self, stuck: &StuckRecord) -> Result<()> {
        self.0.stuck(stuck);
        Ok(())
    }

    fn settled(&mut self, now: Time, changed: &[UserId], books: &Books) -> Result<()> {
        self.0.settled(now, changed, books);
        Ok(())
    }

    fn head(&mut self, user: UserId) {
        self.0.head(user);
    }

    fn fetch(&self, user: UserId) {
        self.0.fetch(user);
    }
}

/// A recorder that does nothing.
struct Silent;

impl Recorder for Silent {}

fn main() {
    let workload = workload();
    let machines = vec![resources(64, 256); MACHINES as usize];
    let cluster = Cluster { dims: workload.dims.clone(), capacities: machines, ..Cluster::default() };
    let (capacity, weights) = (cluster.total(), Weights::default());
    let measure = Measure { step: Span::from_secs(60), window: Window::default(), horizon: None };
    for case in ["silent", "log", "shared"] {
        if std::env::args().skip(1).any(|arg| !arg.starts_with('-') && arg != case) {
            continue;
        }
        let replay =
            || FairService::replay(&mut workload.source(), &capacity, &weights, &measure.window, None, &mut || true);
        let fair = (case == "shared").then(|| Arc::new(replay().expect("a filling ends").expect("not stopped")));
        let mut feed = Feed(RunLog::new(2, &capacity, &weights, &measure, fair));
        let recorder: &mut dyn Recorder = if case == "silent" { &mut Silent } else { &mut feed };
        let options = Options { placement: Placement::Pooled, ..Options::default() };
        let start = Instant::now();
        let outcome =
            engine::run(&mut workload.source(), &mut ById, cluster.clone(), weights.clone(), &options, recorder);
        let spent = start.elapsed();
        let outcome = outcome.expect("a run");
        let mut metrics = String::new();
        if case != "silent" {
            feed.0.finish(outcome.end).expect("a filling ends");
            let run = feed.0.run(outcome, (MACHINES, capacity));
            metrics = format!("{:?}", feed.0.grid.means.row(&run));
        }
        let digest = metrics.bytes().fold(0u64, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
        let line = format!("{case}: {} ns per row, metrics {digest:016x}", spent.as_nanos() as usize / ROWS);
        writeln!(std::io::stdout(), "{line}").expect("an open output");
    }
}
