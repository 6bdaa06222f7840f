//! Policies that rank pairs of a queue's next task and a machine, as docs/policies.md defines them in "Users and machines together".

use super::round::Turn;
use super::simulation::Simulation;
use super::world::times;
use super::{Policy, Ratio, Ties, Zoo};

/// Returns the rank of a pair: `tasks` tasks that start together, for a user with the allocation `held`, on a machine with this capacity and
/// these free amounts.
fn rank(
    zoo: Zoo,
    (need, tasks): (&[u64], u64),
    held: &[u64],
    weights: &[Ratio],
    spot: [&[u64]; 2],
    eligible: bool,
) -> [u128; 2] {
    let [whole, free] = spot.map(|amounts| move |r: usize| u128::from(amounts[r]));
    let demanded = (0..need.len()).filter(|&r| need[r] > 0);
    let wide = |amount: u64| u128::from(amount);
    match zoo {
        Zoo::Psdsf => {
            let part = |r: usize| {
                let with = wide(held[r]) + wide(need[r]) * wide(tasks);
                ((with * weights[r].den) << 80) / (whole(r) * weights[r].num)
            };
            [0, demanded.map(part).max().unwrap_or(0)]
        }
        _ => {
            let part = |r: usize| wide(need[r]) * free(r) * ((1 << 120) / whole(r).pow(2));
            [u128::from(!eligible), u128::MAX - demanded.map(part).sum::<u128>()]
        }
    }
}

impl Simulation<'_> {
    /// Returns the best pair of a queue's next task and a machine with room for it: the tasks that start, each with its machine. The
    /// placement rule places a gang; its rank is that on its first machine.
    pub fn best_pair(&self) -> Option<Vec<(usize, usize)>> {
        let Policy::Zoo(zoo) = self.world.policy else { return None };
        let mut pairs = Vec::new();
        for (position, head) in self.heads_without(&[]) {
            let tasks = self.together(head);
            if !self.admitted(head, tasks.len()) {
                continue;
            }
            let row = &self.rows[self.tasks[head].row];
            let user = row.user;
            let tie = match self.world.ties {
                Ties::LeastRecentlyServed => (self.latest.get(&user).copied().unwrap_or(0), self.id[user]),
                Ties::LowestId => (0, self.id[user]),
                Ties::HighestId => (0, usize::MAX - self.id[user]),
                Ties::FewestRunning => (self.running(user), self.id[user]),
            };
            let turn: Turn = self.turn(position, head);
            let fits = |machine: &usize| {
                self.will_do(head, *machine)
                    && times(&row.demand, &self.unreserved(*machine)) > 0
                    && self.has_devices(*machine, &row.demand, &[])
            };
            let places: Vec<Vec<usize>> = match tasks.len() {
                1 => (0..self.offers.len()).filter(fits).map(|machine| vec![machine]).collect(),
                count => self.seats_for(head, count).into_iter().collect(),
            };
            let (held, weights) = (self.held_by(user), self.weights(user));
            for places in places {
                let spot = [&self.offers[places[0]][..], &self.unreserved(places[0])];
                let together = (&row.demand[..], tasks.len() as u64);
                let value = rank(zoo, together, &held, &weights, spot, self.eligible.contains(&user));
                pairs.push((value, tie, turn.clone(), places, tasks.clone()));
            }
        }
        pairs.into_iter().min().map(|(.., places, tasks)| tasks.into_iter().zip(places).collect())
    }
}
