//! Lanes: tasks that overlap in time get different lanes, so that the slices of a lane never overlap.

use std::cmp::Reverse;
use std::collections::BTreeSet;

/// The lanes of one machine, or of one user on a pool.
///
/// Tasks arrive in order of completion. A task gets the lane with the latest end at or before its start, and a new lane if there is none.
/// This uses the least number of lanes (for tasks of positive duration), and memory grows with the lanes only.
#[derive(Clone, Debug, Default)]
pub(super) struct Lanes {
    /// The end of the last task of each lane. Of equal ends, the lowest lane is used first.
    ends: BTreeSet<(u64, Reverse<u32>)>,
}

impl Lanes {
    /// Returns the lane of a task. Tasks must be passed in order of completion.
    pub fn place(&mut self, start: u64, finish: u64) -> u32 {
        let best = self.ends.range(..=(start, Reverse(0))).next_back().copied();
        let lane = match best {
            Some(key @ (_, Reverse(lane))) => {
                self.ends.remove(&key);
                lane
            }
            None => self.count(),
        };
        self.ends.insert((finish, Reverse(lane)));
        lane
    }

    /// Returns the number of lanes.
    pub fn count(&self) -> u32 {
        self.ends.len() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    #[test]
    fn lanes_never_overlap_and_are_as_few_as_possible() {
        for seed in 0..300 {
            let mut random = ChaCha8Rng::seed_from_u64(seed);
            let mut tasks: Vec<(u64, u64)> = (0..random.random_range(1..60))
                .map(|_| {
                    let start = random.random_range(0..80);
                    (start, start + random.random_range(1..30))
                })
                .collect();
            tasks.sort_by_key(|(start, finish)| (*finish, *start));
            let mut lanes = Lanes::default();
            let mut placed: Vec<Vec<(u64, u64)>> = Vec::new();
            for &(start, finish) in &tasks {
                let lane = lanes.place(start, finish) as usize;
                placed.resize(placed.len().max(lane + 1), Vec::new());
                assert!(placed[lane].last().is_none_or(|last| last.1 <= start), "seed {seed}: {tasks:?}");
                placed[lane].push((start, finish));
            }
            let depth = (0..120).map(|at| tasks.iter().filter(|task| task.0 <= at && at < task.1).count()).max();
            assert_eq!(Some(lanes.count() as usize), depth, "seed {seed}: {tasks:?}");
        }
    }

    #[test]
    fn tasks_of_zero_duration_fit_between_others() {
        let mut lanes = Lanes::default();
        let placed = [(0, 5), (5, 5), (5, 5), (5, 9)].map(|(start, finish)| lanes.place(start, finish));
        assert_eq!((placed, lanes.count()), ([0; 4], 1));
    }
}
