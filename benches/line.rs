//! Measures the order of blocked users alone. One operation ends a task and serves, in rank order, every user with a next task that fits
//! the free amounts, and inserts each again at another rank with another demand. Baselines: a scan over all users, and a sorted map.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use plimsoll::engine::{Line, LineKey, Offers, QueueId};
use plimsoll::policy::Rank;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

type Need = [u64; 2];

/// Users in rank order, each with the demand of its next task.
trait Users {
    fn insert(&mut self, place: LineKey, user: QueueId, need: Need);
    fn remove(&mut self, place: &LineKey, user: QueueId);
    fn first_fitting(&mut self, limit: Need) -> Option<(LineKey, QueueId)>;
}

impl Users for Line {
    fn insert(&mut self, place: LineKey, user: QueueId, need: Need) {
        Line::insert(self, place, user, &need);
    }

    fn remove(&mut self, place: &LineKey, _user: QueueId) {
        Line::remove(self, place);
    }

    fn first_fitting(&mut self, limit: Need) -> Option<(LineKey, QueueId)> {
        Line::first_fitting(self, None, &Offers::for_line(self, &[limit]))
    }
}

/// A vector of all users, by id.
#[derive(Default)]
struct Scan(Vec<Option<(LineKey, Need)>>);

impl Users for Scan {
    fn insert(&mut self, place: LineKey, user: QueueId, need: Need) {
        self.0.resize(self.0.len().max(user.index() + 1), None);
        self.0[user.index()] = Some((place, need));
    }

    fn remove(&mut self, _place: &LineKey, user: QueueId) {
        self.0[user.index()] = None;
    }

    fn first_fitting(&mut self, limit: Need) -> Option<(LineKey, QueueId)> {
        let fitting = |(at, entry): (usize, &Option<(LineKey, Need)>)| {
            entry.filter(|(_, need)| need[0] <= limit[0] && need[1] <= limit[1]).map(|(p, _)| (p, QueueId(at as u32)))
        };
        self.0.iter().enumerate().filter_map(fitting).min_by_key(|(place, _)| *place)
    }
}

/// A sorted map of all users, by place.
#[derive(Default)]
struct Sorted(BTreeMap<LineKey, (QueueId, Need)>);

impl Users for Sorted {
    fn insert(&mut self, place: LineKey, user: QueueId, need: Need) {
        self.0.insert(place, (user, need));
    }

    fn remove(&mut self, place: &LineKey, _user: QueueId) {
        self.0.remove(place);
    }

    fn first_fitting(&mut self, limit: Need) -> Option<(LineKey, QueueId)> {
        let found = self.0.iter().find(|(_, (_, need))| need[0] <= limit[0] && need[1] <= limit[1]);
        found.map(|(place, (user, _))| (*place, *user))
    }
}

/// A fully used pool with the capacity of 100 machines. Each user always has a next task: 1, 2 or 4 cores and 2 to 20 GiB.
struct Service<U> {
    users: U,
    /// The next task of each user.
    needs: Vec<Need>,
    running: Vec<Need>,
    free: Need,
    rng: ChaCha8Rng,
}

impl<U: Users> Service<U> {
    /// Fills the pool and replaces every task once.
    fn new(users: U, count: u32) -> Service<U> {
        let (free, rng) = ([100 * 64_000, 100 * 262_144], ChaCha8Rng::seed_from_u64(1));
        let needs = vec![[0; 2]; count as usize];
        let mut service = Service { users, needs, running: Vec::new(), free, rng };
        (0..count).for_each(|user| service.enqueue(QueueId(user)));
        service.serve();
        (0..service.running.len()).for_each(|_| service.step());
        service
    }

    fn enqueue(&mut self, user: QueueId) {
        let rank = Rank::new(self.rng.random_range(0..1 << 40));
        let need = [1000 << self.rng.random_range(0..3), self.rng.random_range(2 * 1024..=20 * 1024)];
        self.needs[user.index()] = need;
        self.users.insert(LineKey { rank, tie: user.0.into(), ..LineKey::default() }, user, need);
    }

    fn serve(&mut self) {
        while let Some((place, user)) = self.users.first_fitting(self.free) {
            let need = self.needs[user.index()];
            self.users.remove(&place, user);
            self.free.iter_mut().zip(need).for_each(|(free, need)| *free -= need);
            self.running.push(need);
            self.enqueue(user);
        }
    }

    fn step(&mut self) {
        let ended = self.running.swap_remove(self.rng.random_range(0..self.running.len()));
        self.free.iter_mut().zip(ended).for_each(|(free, ended)| *free += ended);
        self.serve();
    }
}

fn line(criterion: &mut Criterion) {
    for users in [100, 10_000, 100_000] {
        let mut group = criterion.benchmark_group(format!("line/{users}"));
        group.throughput(Throughput::Elements(1));
        macro_rules! users {
            ($name:literal, $users:expr) => {
                let mut service = Service::new($users, users);
                group.bench_function(BenchmarkId::from_parameter($name), |bencher| bencher.iter(|| service.step()));
                black_box(&service.running);
            };
        }
        users!("line", Line::new(2));
        users!("scan over users", Scan::default());
        users!("sorted map", Sorted::default());
        group.finish();
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1));
    targets = line
}
criterion_main!(benches);
