//! Fairness over machines that differ, by an independent method: the exact solver is compared with linear programs in floats, which
//! share neither its tableau nor its transition from one program to the next.

use plimsoll::fair::{Across, Exact, Instance, Machines, Mechanism, Quantity, User};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::leximin::{maximise, unit_row};
use crate::property::{Broken, search};

/// A random case: the capacities of the machines, and for each user its demand, its weight, its number of tasks, and a bit for each
/// machine that it can use.
#[derive(Clone, Debug)]
struct Case {
    machines: Vec<Vec<i64>>,
    users: Vec<(Vec<i64>, i64, Option<i64>, u64)>,
}

fn draw(seed: u64) -> Case {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let (dims, machines) = (rng.random_range(1..=3), rng.random_range(1..=4));
    let user = |rng: &mut ChaCha8Rng| {
        let mut demand: Vec<i64> = (0..dims).map(|_| rng.random_range(0..=4)).collect();
        demand[0] += i64::from(demand.iter().all(|demand| *demand == 0));
        let tasks = rng.random_bool(0.3).then(|| rng.random_range(0..=8));
        let on = if rng.random_bool(0.5) { u64::MAX } else { rng.random_range(1..1 << machines) };
        (demand, rng.random_range(1..=3), tasks, on)
    };
    Case {
        machines: (0..machines).map(|_| (0..dims).map(|_| rng.random_range(0..=12)).collect()).collect(),
        users: (0..rng.random_range(1..=6)).map(|_| user(&mut rng)).collect(),
    }
}

/// Returns the cases with one user less, and the cases with one machine of zero capacity.
fn smaller(case: &Case) -> Vec<Case> {
    let without = |at: usize| {
        let mut less = case.clone();
        less.users.remove(at);
        less
    };
    let empty = |at: usize| {
        let mut less = case.clone();
        less.machines[at].fill(0);
        less
    };
    let users = (0..case.users.len()).filter(|_| case.users.len() > 1).map(without);
    let full = (0..case.machines.len()).filter(|&at| case.machines[at].iter().any(|&amount| amount > 0));
    users.chain(full.map(empty)).collect()
}

impl Case {
    fn instance(&self) -> Instance {
        let exact = |values: &[i64]| values.iter().map(|&value| Exact::ratio(value, 1)).collect::<Vec<_>>();
        let machine = |(at, capacity): (usize, &Vec<i64>)| Machines {
            name: format!("m{at}"),
            count: 1,
            capacity: exact(capacity),
        };
        let user = |(at, (demand, weight, tasks, on)): (usize, &(Vec<i64>, i64, Option<i64>, u64))| User {
            weight: vec![Exact::ratio(*weight, 1); demand.len()],
            tasks: tasks.map(|tasks| Exact::ratio(tasks, 1)),
            on: (*on != u64::MAX).then(|| (0..self.machines.len()).filter(|m| on >> m & 1 == 1).collect()),
            ..User::new(format!("u{at}"), exact(demand))
        };
        let names = (0..self.machines[0].len()).map(|r| format!("r{r}")).collect();
        let machines = self.machines.iter().enumerate().map(machine).collect();
        Instance::on_machines(names, machines, self.users.iter().enumerate().map(user).collect()).expect("good")
    }

    /// Returns the number of tasks that a user could run alone on a machine.
    fn alone(&self, user: usize, machine: usize) -> f64 {
        let parts = self.users[user].0.iter().zip(&self.machines[machine]).filter(|(demand, _)| **demand > 0);
        parts.map(|(demand, room)| *room as f64 / *demand as f64).fold(f64::INFINITY, f64::min)
    }

    /// Returns the level of one task of a user, or 0 if it has no level, such as without demand for the measured resource.
    fn level(&self, user: usize, quantity: Quantity) -> f64 {
        let (demand, weight, ..) = &self.users[user];
        let share = |r: usize| {
            let whole: i64 = self.machines.iter().map(|room| room[r]).sum();
            if whole == 0 { 0.0 } else { demand[r] as f64 / whole as f64 }
        };
        let level = match quantity {
            Quantity::Dominant => (0..demand.len()).map(share).fold(0.0, f64::max),
            Quantity::Resource(r) => share(r),
            Quantity::Tasks => {
                let alone: f64 = (0..self.machines.len()).map(|m| self.alone(user, m)).sum();
                if alone == 0.0 { 0.0 } else { 1.0 / alone }
            }
        };
        level / *weight as f64
    }

    /// Computes the levels from scratch with linear programs: each program raises the lowest level; then users with a positive multiplier
    /// of their floor keep their level.
    fn levels(&self, quantity: Quantity) -> Vec<f64> {
        let can_run = |i: usize, m: usize| self.users[i].3 >> m & 1 == 1 && self.alone(i, m) > 0.0;
        let of_user = |i: usize| (0..self.machines.len()).filter(move |&m| can_run(i, m)).map(move |m| (i, m));
        let pairs: Vec<(usize, usize)> = (0..self.users.len()).flat_map(of_user).collect();
        let size = pairs.len() + 1;
        let sum = |i: usize, factor: f64| {
            let part = |pair: &(usize, usize)| if pair.0 == i { factor * self.level(i, quantity) } else { 0.0 };
            pairs.iter().map(part).chain([0.0]).collect::<Vec<f64>>()
        };
        let mut rows = Vec::new();
        for (m, room) in self.machines.iter().enumerate() {
            for (r, room) in room.iter().enumerate() {
                let takes = |pair: &(usize, usize)| if pair.1 == m { self.users[pair.0].0[r] as f64 } else { 0.0 };
                let row: Vec<f64> = pairs.iter().map(takes).chain([0.0]).collect();
                if row.iter().any(|takes| *takes > 0.0) {
                    rows.push((row, *room as f64));
                }
            }
        }
        rows.extend((0..size).map(|at| (unit_row(size, at, -1.0), 0.0)));
        let counts = |i: &usize| pairs.iter().any(|pair| pair.0 == *i) && self.users[*i].2 != Some(0);
        for (i, tasks) in (0..self.users.len()).filter_map(|i| Some((i, self.users[i].2?))) {
            rows.push((sum(i, 1.0), self.level(i, quantity) * tasks as f64));
        }
        let mut open: Vec<usize> = (0..self.users.len()).filter(counts).collect();
        let mut levels = vec![0.0; self.users.len()];
        while !open.is_empty() {
            let floor = |&i: &usize| {
                let mut row = sum(i, -1.0);
                row[size - 1] = 1.0;
                (row, 0.0)
            };
            let all: Vec<(Vec<f64>, f64)> = open.iter().map(floor).chain(rows.iter().cloned()).collect();
            let (solution, multipliers) = maximise(&unit_row(size, size - 1, 1.0), &all);
            let level = solution[size - 1];
            let stuck: Vec<usize> = (0..open.len()).filter(|&k| multipliers[k] > 1e-4).map(|k| open[k]).collect();
            assert!(!stuck.is_empty(), "at least one user limits the level");
            for i in stuck {
                levels[i] = level;
                rows.push((sum(i, -1.0), -level * (1.0 - 1e-9)));
                open.retain(|&other| other != i);
            }
        }
        levels
    }
}

#[test]
fn drfh_tsf_and_cmmf_are_leximins_of_linear_programs() {
    for quantity in [Quantity::Dominant, Quantity::Tasks, Quantity::Resource(0)] {
        let law = |case: &Case| {
            // Users without demand for the single measured resource have no level.
            if (0..case.users.len()).any(|i| case.level(i, quantity) == 0.0) {
                return Ok(());
            }
            let found = Across { quantity }.allocate(&case.instance()).map_err(|error| error.to_string())?;
            let expected = case.levels(quantity);
            for (i, tasks) in found.tasks.floats().into_iter().enumerate() {
                let level = tasks * case.level(i, quantity);
                if (level - expected[i]).abs() > 1e-6 * expected[i].max(1e-2) {
                    return Err(format!("{quantity:?}: user {i} has a level of {level}, not of {}", expected[i]));
                }
            }
            Ok(())
        };
        if let Err(Broken { case, problem }) = search(file!(), 300, draw, smaller, law) {
            panic!("{problem}: {case:?}");
        }
    }
}
