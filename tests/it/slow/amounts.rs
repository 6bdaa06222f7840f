//! The slow twin's amounts: task needs, machine offers, and user shares as a policy measures them.

use super::{Config, Policy, Ratio, Row};

/// Returns a user's allocation, as the policy measures it, divided by the user's weight.
pub fn share(config: &Config, user: usize, held: &[u64], capacity: &[u64]) -> Ratio {
    let weight = |r: usize| config.weights.get(user).map_or(Ratio::ONE, |weights| weights[r]);
    let part = |r: usize| {
        let Ratio { num, den } = weight(r);
        Ratio::new(u128::from(held[r]) * den, u128::from(capacity[r]) * num)
    };
    let mut parts = (0..capacity.len()).filter(|&r| capacity[r] > 0).map(part);
    match config.policy {
        Policy::Fifo | Policy::Line | Policy::LongTerm(_) | Policy::Afs(_) | Policy::Zoo(_) => {
            unreachable!("these policies have no shares")
        }
        Policy::MaxMin(r) => part(r),
        Policy::Slot(_) | Policy::Asset => parts.fold(Ratio::ZERO, Ratio::plus),
        Policy::Drf => parts.by_ref().max().unwrap_or(Ratio::ZERO),
    }
}

/// Returns the amounts that each machine offers: its capacity, or its slots.
pub fn offers(config: &Config) -> Vec<Vec<u64>> {
    match config.policy {
        Policy::Slot(slots) => config.machines.iter().map(|_| vec![slots]).collect(),
        _ => config.machines.clone(),
    }
}

/// Returns the amount that a task takes: its demand, or one slot.
pub fn need(row: &Row, config: &Config) -> Vec<u64> {
    if let Policy::Slot(_) = config.policy { vec![1] } else { row.demand.clone() }
}

/// Returns how many times a need fits in the free amounts.
pub fn times(need: &[u64], free: &[u64]) -> u64 {
    let wanted = need.iter().zip(free).filter(|(need, _)| **need > 0);
    wanted.map(|(need, free)| free / need).min().unwrap_or(1 << 40)
}
