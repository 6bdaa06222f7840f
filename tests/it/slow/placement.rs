//! Placement rules.

use std::cmp::Reverse;

use super::world::times;
use super::{Placement, Ratio};

/// A candidate machine for a task: its free amounts, its capacity, and the number of tasks that run there.
pub struct Candidate {
    pub place: usize,
    pub free: Vec<u64>,
    pub whole: Vec<u64>,
    pub running: usize,
}

/// Returns the machine that the placement rule chooses among those with room.
pub fn prefer(rule: Placement, need: &[u64], capacity: &[u64], candidates: &[Candidate]) -> Option<usize> {
    let free = |candidate: &Candidate| {
        let resources = (0..need.len()).filter(|&r| capacity[r] > 0);
        let part = |r: usize| Ratio::new(u128::from(candidate.free[r]), u128::from(capacity[r]));
        resources.map(part).fold(Ratio::ZERO, Ratio::plus)
    };
    let aligned = |candidate: &Candidate| -> u128 {
        let resources = (0..need.len()).filter(|&r| candidate.whole[r] > 0);
        let wide = |amount: u64| u128::from(amount);
        resources
            .map(|r| wide(need[r]) * wide(candidate.free[r]) * ((1 << 120) / wide(candidate.whole[r]).pow(2)))
            .sum()
    };
    let fitting = candidates.iter().filter(|candidate| times(need, &candidate.free) > 0);
    let chosen = match rule {
        Placement::Pooled | Placement::FirstFit | Placement::Fgd => fitting.min_by_key(|candidate| candidate.place),
        Placement::BestFit => fitting.min_by_key(|candidate| (free(candidate), candidate.place)),
        Placement::WorstFit => fitting.min_by_key(|candidate| (Reverse(free(candidate)), candidate.place)),
        Placement::Spread => fitting.min_by_key(|candidate| (candidate.running, candidate.place)),
        Placement::DotProduct => fitting.min_by_key(|candidate| (Reverse(aligned(candidate)), candidate.place)),
    };
    chosen.map(|candidate| candidate.place)
}
