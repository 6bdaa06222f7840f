//! Allocations of users, and their shares as a policy measures them.

use super::simulation::Simulation;
use super::world::sum;
use super::{Policy, Ratio};

/// Returns an allocation divided by the user's weight, as a policy measures it.
pub fn share(policy: Policy, weights: &[Ratio], held: &[u64], capacity: &[u64]) -> Ratio {
    let part = |r: usize| {
        let Ratio { num, den } = weights[r];
        Ratio::new(u128::from(held[r]) * den, u128::from(capacity[r]) * num)
    };
    let mut parts = (0..capacity.len()).filter(|&r| capacity[r] > 0).map(part);
    match policy {
        Policy::MaxMin(r) => part(r),
        Policy::Slot(_) | Policy::Asset | Policy::Afs(_) => parts.fold(Ratio::ZERO, Ratio::plus),
        Policy::Drf | Policy::LongTerm(_) => parts.by_ref().max().unwrap_or(Ratio::ZERO),
        Policy::Fifo | Policy::Line | Policy::Zoo(_) => unreachable!("these policies have no shares"),
    }
}

impl Simulation<'_> {
    /// Returns a user's weights by resource.
    pub fn weights(&self, user: usize) -> Vec<Ratio> {
        self.world.weights.get(user).cloned().unwrap_or(vec![Ratio::ONE; self.capacity.len()])
    }

    /// Returns the number of running tasks of a user.
    pub fn running(&self, user: usize) -> usize {
        self.tasks.iter().filter(|task| task.run().is_some() && self.rows[task.row].user == user).count()
    }

    /// Returns the sum of the allocations of a user's running tasks.
    pub fn held_by(&self, user: usize) -> Vec<u64> {
        let mine = self.tasks.iter().filter(|task| task.run().is_some() && self.rows[task.row].user == user);
        sum(mine.map(|task| self.world.need(&self.rows[task.row]).to_vec()), self.capacity.len())
    }

    /// Returns the share of a user with the allocation `held`.
    pub fn share_with(&self, user: usize, held: &[u64]) -> Ratio {
        share(self.world.policy, &self.weights(user), held, &self.capacity)
    }

    /// Returns the share of a user by its allocation or, under a policy with memory, by its usage so far.
    pub fn share(&self, user: usize) -> Ratio {
        let held = self.held_by(user);
        let used = |r: usize| match self.world.policy {
            Policy::Afs(memory) => memory.average(&self.holdings(user, r), self.now()) as u64,
            Policy::LongTerm(memory) => {
                let forecast = u128::from(held[r]) * u128::from(memory.period);
                (memory.left(memory.past(&self.holdings(user, r), self.now())) + forecast) as u64
            }
            _ => held[r],
        };
        self.share_with(user, &(0..held.len()).map(used).collect::<Vec<u64>>())
    }

    /// Returns the past and current allocations of a user: amount, start and end.
    pub fn holdings(&self, user: usize, r: usize) -> Vec<(u64, u64, u64)> {
        let past = self.past.iter().map(|past| (past.row, past.start, past.end));
        let current = self.tasks.iter().filter_map(|task| Some((task.row, task.run()?.start, self.now())));
        let mine = past.chain(current).filter(|(row, ..)| self.rows[*row].user == user);
        mine.map(|(row, start, end)| (self.world.need(&self.rows[row])[r], start, end)).collect()
    }
}
