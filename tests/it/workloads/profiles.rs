//! Profiles of cases: parts that a case may have, and cases of which some feature is frequent.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{Case, Weighting, chance, pick};
use crate::slow::{Credits, Factors, Inside, Location, Memory, OnBlocked, Placement, Policy, Row, WHOLE, Whom, Zoo};

impl Case {
    /// Returns the case with another order inside users, which uses the estimates and deadlines of their rows.
    pub fn ordered(mut self, seed: u64) -> Case {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        self.policies.push(Policy::Line);
        self.inside = pick(&mut rng, &Inside::OTHERS);
        for row in &mut self.rows {
            row.estimate = Some(row.duration * pick(&mut rng, &[1, 1, 1, 2, 3]) / pick(&mut rng, &[1, 1, 2]));
            row.deadline = chance(&mut rng, 60).then(|| row.submit + pick(&mut rng, &[0, 5, 20]));
        }
        self
    }

    /// Returns the case with backfilling, with estimates that are more often correct than in [`Case::ordered`], and with large gangs.
    pub fn backfilled(mut self, seed: u64) -> Case {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        self.on_blocked = pick(&mut rng, &[OnBlocked::Easy, OnBlocked::Conservative]);
        self.policies.push(Policy::Line);
        self.policies.dedup();
        let factors: &[u64] = pick(&mut rng, &[&[2][..], &[2, 3, 4, 6, 20], &[0, 1, 2, 2, 4]]);
        let total: Vec<u64> =
            (0..self.dims()).map(|r| self.machines().iter().map(|machine| machine[r]).sum()).collect();
        for row in &mut self.rows {
            row.estimate = Some(row.duration * pick(&mut rng, factors) / 2);
            let wanted = row.demand.iter().zip(&total).filter(|(need, _)| **need > 0);
            let room = wanted.map(|(need, total)| total / need).min().unwrap_or(9);
            // In half of the cases, every row that the cluster has room for is a gang.
            row.gang |= seed.is_multiple_of(2) && row.tasks <= room;
        }
        self
    }

    /// Returns the case on machines of different speeds.
    pub fn on_unlike_machines(mut self, seed: u64) -> Case {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let speeds = [1_000_000, 1_000_000, 500_000, 3_000_000, 1_100_000, 333_333];
        self.groups = self.machines().into_iter().map(|machine| (1, machine)).collect();
        self.speeds = self.groups.iter().map(|_| pick(&mut rng, &speeds)).collect();
        self
    }

    /// Draws a case with urgent tasks that request room that other tasks use.
    pub fn urgent(seed: u64) -> Case {
        let mut case = Case::placed(seed);
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(1);
        let span = pick(&mut rng, &case.spans());
        let span = if chance(&mut rng, 35) { 0 } else { span };
        case.preempt = Some((span, if chance(&mut rng, 20) { Whom::SameUser } else { Whom::Any }));
        let stable = pick(&mut rng, &[0, 0, 30]);
        for row in 0..case.rows.len() {
            case.rows[row].stable = chance(&mut rng, stable);
            // Removes 60 % of the gangs, because gangs do not request preemption.
            case.rows[row].gang &= chance(&mut rng, 40);
            case.rows[row].priority = pick(&mut rng, &[0, 1, 3, 5, 5, 9, 9]);
        }
        case
    }

    /// Draws a case with many gangs that hold room. In a quarter of the cases urgent tasks also request room that other tasks use.
    pub fn hoarding(seed: u64) -> Case {
        let mut case = if seed % 4 == 3 { Case::urgent(seed) } else { Case::placed(seed) };
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(2);
        case.hoard = Some(pick(&mut rng, &case.spans()).max(1));
        for row in &mut case.rows {
            row.gang |= chance(&mut rng, 60);
        }
        case.loosen_gangs(&mut rng);
        case
    }

    /// Draws a case with limits and costs of preemption. Three quarters of the cases preempt for fair shares, the others for urgent tasks.
    pub fn preemption_limits(seed: u64) -> Case {
        let mut case = Case::urgent(seed);
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(6);
        let rng = &mut rng;
        let spans: Vec<u64> = case.spans().into_iter().map(|span| span.max(1)).collect();
        case.slowdown = None;
        if chance(rng, 75) {
            case.policies.retain(|policy| *policy != Policy::Fifo);
            case.policies.truncate(1);
            case.policies.resize(1, Policy::Drf);
            case.preempt = case.preempt.map(|(span, _)| (span, Whom::Share));
            case.rows.truncate(14);
            let open = chance(rng, 60);
            for row in &mut case.rows {
                // More and longer tasks keep users waiting, so that their shares fall behind.
                (row.tasks, row.duration) = (row.tasks + pick(rng, &[0, 1, 3]), 3 * row.duration);
                row.gang &= chance(rng, 40);
                if open {
                    (row.label, row.place) = (None, Location::Cluster);
                }
            }
            case.loosen_gangs(rng);
        }
        let one = |rng: &mut ChaCha8Rng, percent| if chance(rng, percent) { pick(rng, &spans) } else { 0 };
        case.preemption_limits.min_run = one(rng, 40);
        case.preemption_limits.checkpoint = one(rng, 50) / pick(rng, &[1, 3]);
        case.preemption_limits.delay = one(rng, 40);
        case.preemption_limits.limit = chance(rng, 40).then(|| (pick(rng, &[1, 2, 5]), pick(rng, &spans)));
        if chance(rng, 30) {
            case.faults = Some("fail=0.3,retries=1".to_owned());
        }
        case
    }

    /// Draws a case on machines with GPUs as identified devices; in 30 % of the cases the cores are devices too.
    pub fn devices(seed: u64) -> Case {
        let mut case = Case::placed(seed);
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(3);
        case.add_gpus(&mut rng);
        case.devices.push(2);
        let percent = pick(&mut rng, &[0, 30, 80]);
        for row in 0..case.rows.len() {
            case.rows[row].gang &= chance(&mut rng, 60);
            case.rows[row].demand[2] = pick(&mut rng, &[0, 200, 333, 460, 500, 500, 1000, 1000, 2000, 3000]);
            if chance(&mut rng, percent) {
                let first = case.rows[0].demand.clone();
                case.rows[row].demand = first;
            }
        }
        if chance(&mut rng, 40) {
            case.fragment(&mut rng);
        }
        if chance(&mut rng, 30) {
            // Cores are devices too.
            let first = if chance(&mut rng, 50) { 0 } else { case.devices.len() };
            case.devices.insert(first, 0);
            let whole = |amount: u64| (amount / WHOLE).max(1) * WHOLE;
            case.groups.iter_mut().for_each(|(_, capacity)| capacity[0] = whole(capacity[0]));
            let rows = case.rows.iter_mut().filter(|row| row.demand[0] > WHOLE);
            rows.for_each(|row| row.demand[0] = whole(row.demand[0]));
        }
        // A policy of slots does not support devices.
        case.policies.retain(|policy| !matches!(policy, Policy::Slot(_)));
        if case.policies.is_empty() {
            case.policies.push(Policy::Drf);
        }
        let apart = chance(&mut rng, 60);
        let node = |rng: &mut ChaCha8Rng| if apart { rng.random_range(0..3) } else { 0 };
        for (_, capacity) in &case.groups {
            let of = |amount: &u64| (0..amount / WHOLE).map(|_| node(&mut rng)).collect();
            case.nodes.push(capacity.iter().map(of).collect());
        }
        case.loosen_gangs(&mut rng);
        if chance(&mut rng, 8) {
            // The gang has as many tasks as the total amount of GPUs divided by the demand, at most 30. They may not fit, because one task
            // cannot use the remainders of two devices.
            let amount: u64 = case.groups.iter().map(|(count, capacity)| count * capacity[2]).sum();
            let parts = |row: &&mut Row| (300..WHOLE).contains(&row.demand[2]);
            if let Some(row) = case.rows.iter_mut().find(parts) {
                (row.gang, row.tasks) = (true, (amount / row.demand[2]).min(30));
            }
        }
        case
    }

    /// Sets placement by fragments. In 60 % of the cases GPUs become the scarce resource; in 30 % only the first group of machines has
    /// GPUs.
    fn fragment(&mut self, rng: &mut ChaCha8Rng) {
        self.placement = Placement::Fgd;
        if chance(rng, 60) {
            for row in &mut self.rows {
                row.demand[..2].iter_mut().for_each(|amount| *amount /= 8);
                row.demand[2] = pick(rng, &[0, 100, 250, 333, 400, 500, 600, 700, 1000, 2000, 2000, 3000]);
            }
        }
        if chance(rng, 30) {
            self.groups[1..].iter_mut().for_each(|(_, capacity)| capacity[2] = 0);
        }
    }

    /// Adds GPUs to the groups of machines: 0 to 6 per machine, and at least one per machine of the first group.
    fn add_gpus(&mut self, rng: &mut ChaCha8Rng) {
        let mut gpus = || pick(rng, &[0, 1000, 2000, 3000, 4000, 6000]);
        for (_, capacity) in &mut self.groups {
            capacity.truncate(2);
            capacity.push(gpus());
        }
        let first = &mut self.groups[0].1[2];
        *first = (*first).max(WHOLE);
        self.rows.iter_mut().for_each(|row| row.demand.resize(3, 0));
        let vector = self.weighting == Weighting::Vector;
        self.weights.iter_mut().for_each(|user| user.resize(3, if vector { 1 } else { user[0] }));
    }

    /// Returns policies with memory. The half-lives and periods are in proportion to the length of the case.
    pub fn with_memory(&self, seed: u64) -> Vec<Policy> {
        let memory = |at: u64| self.memory(at);
        vec![Policy::LongTerm(memory(seed)), Policy::Afs(memory(1 + seed % 4 + seed / 16 % 100 * 5))]
    }

    /// Returns the policies of the literature that rank users.
    pub fn literature(&self, seed: u64) -> Vec<Policy> {
        let last = self.last();
        let factors = Factors {
            age: [0, 1, 1000][seed as usize % 3],
            fairshare: [0, 1, 10_000][seed as usize / 3 % 3],
            priority: [0, 1][seed as usize / 9 % 2],
            max_age: 1 + last / (1 + seed % 4),
        };
        let credits = Credits {
            quantum: 1 + last / (1 + seed % 50),
            guaranteed: [500, 0, 1000, 900, 333][seed as usize / 7 % 5],
            credits: [0, 3, 20, 1000][seed as usize / 2 % 4],
            pool: seed.is_multiple_of(2),
        };
        let zoo = [
            Zoo::FairTree(self.memory(seed), seed.is_multiple_of(2)),
            Zoo::Multifactor(self.memory(seed + 1), factors),
            Zoo::TimeBased(self.memory(seed + 2), [0, 1000, 500, 3000][seed as usize % 4]),
            Zoo::Karma(credits),
            Zoo::Hdrf,
            Zoo::Tsf,
        ];
        zoo.map(Policy::Zoo).to_vec()
    }

    /// Returns the latest instant at which a task would end if it started at once.
    fn last(&self) -> u64 {
        self.rows.iter().map(|row| row.submit + row.duration).max().unwrap_or(1)
    }

    fn memory(&self, at: u64) -> Memory {
        let last = self.last();
        let half_lives = [None, Some(0), Some(1 + last / 50), Some(1 + last / 7), Some(1 + 3 * last)];
        Memory { half_life: half_lives[at as usize % 5], period: 1 + last / (1 + at / 5 % 60) }
    }
}
