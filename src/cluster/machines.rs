//! Free amounts of every machine, and the search for one that a task fits on.
//!
//! Machines stand in blocks of 64, one array a dimension, each block with the most that any of its members has free;
//! blocks that cannot help are passed over and the rest scanned without branches. (A tree over component-wise maxima
//! backtracks badly in two dimensions.) A pooled cluster is one machine.

use crate::error::{Error, Result};
use crate::units::{MAX_DIMS, MachineId, Resources};

/// How a task finds its machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Placement {
    /// There are no machines: one pool of everything.
    #[default]
    Pooled,
    /// The machine of lowest index that it fits on.
    FirstFit,
    /// The machine that it leaves with the least: the smallest sum over resources of what stays free over what the
    /// cluster has; ties to the lower index.
    BestFit,
    /// The machine that it leaves with the most, by the same sum; ties to the lower index.
    WorstFit,
}

impl Placement {
    /// All of them with their names.
    pub const ALL: [(&'static str, Placement); 4] = [
        ("pooled", Placement::Pooled),
        ("first-fit", Placement::FirstFit),
        ("best-fit", Placement::BestFit),
        ("worst-fit", Placement::WorstFit),
    ];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        Placement::ALL.iter().find(|(_, placement)| *placement == self).map_or("", |(name, _)| name)
    }
}

impl std::str::FromStr for Placement {
    type Err = Error;

    fn from_str(text: &str) -> Result<Placement> {
        Placement::ALL
            .iter()
            .find(|(name, _)| *name == text)
            .map(|(_, placement)| *placement)
            .ok_or_else(|| Error::plan("placement", format!("'{text}'"), "pooled, first-fit, best-fit or worst-fit"))
    }
}

const BLOCK: usize = 64;

/// What every machine has free.
#[derive(Clone, Debug)]
pub struct Machines {
    dims: usize,
    count: usize,
    placement: Placement,
    /// Free amounts: block by block, in each one run of `BLOCK` a dimension.
    free: Vec<u64>,
    /// At least the most that any machine of a block has free, `dims` a block.
    most: Vec<u64>,
    /// The need that first-fit searched for last, and the first block that may have room for as much: blocks before it
    /// have none for anything that needs at least as much everywhere.
    searched: (Resources, usize),
    /// Weights of the best-fit sum: amounts times these are shares of the cluster on one scale.
    prices: [u128; MAX_DIMS],
}

impl Machines {
    /// Machines with these capacities, all of them free; the caller pools them first for [`Placement::Pooled`].
    pub fn new(dims: usize, placement: Placement, capacities: &[Resources]) -> Machines {
        let blocks = capacities.len().div_ceil(BLOCK);
        let mut machines = Machines {
            dims,
            count: capacities.len(),
            placement,
            free: vec![0; blocks * BLOCK * dims],
            most: vec![0; blocks * dims],
            searched: (Resources::ZERO, 0),
            prices: [0; MAX_DIMS],
        };
        let mut total = [0u64; MAX_DIMS];
        for (m, capacity) in capacities.iter().enumerate() {
            for d in 0..dims {
                let at = machines.at(m, d);
                machines.free[at] = capacity.0[d];
                total[d] += capacity.0[d];
                let most = &mut machines.most[m / BLOCK * dims + d];
                *most = (*most).max(capacity.0[d]);
            }
        }
        machines.prices = best_fit_prices(&total[..dims]);
        machines
    }

    fn at(&self, machine: usize, dim: usize) -> usize {
        (machine / BLOCK * self.dims + dim) * BLOCK + machine % BLOCK
    }

    /// What a machine has free, in every dimension.
    pub fn free(&self, machine: MachineId) -> Resources {
        let mut free = Resources::ZERO;
        for d in 0..self.dims {
            free.0[d] = self.free[self.at(machine.index(), d)];
        }
        free
    }

    /// How many machines there are.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether what is asked fits a machine now.
    pub fn fits(&self, machine: MachineId, need: &[u64]) -> bool {
        need.iter().enumerate().all(|(d, need)| *need <= self.free[self.at(machine.index(), d)])
    }

    /// Takes room on a machine. Panics: if there is not enough (the caller has just found it).
    pub fn take(&mut self, machine: MachineId, need: &[u64]) {
        for (d, need) in need.iter().enumerate() {
            let at = self.at(machine.index(), d);
            self.free[at] = self.free[at].checked_sub(*need).expect("a placed task fits its machine");
        }
    }

    /// Gives room back.
    pub fn give(&mut self, machine: MachineId, need: &[u64], count: u32) {
        self.searched.1 = self.searched.1.min(machine.index() / BLOCK);
        for (d, need) in need.iter().enumerate() {
            let at = self.at(machine.index(), d);
            self.free[at] += need * u64::from(count);
            let most = &mut self.most[machine.index() / BLOCK * self.dims + d];
            *most = (*most).max(self.free[at]);
        }
    }

    /// The machine for a task with this need, by the placement rule.
    pub fn find(&mut self, need: &[u64]) -> Option<MachineId> {
        match self.placement {
            Placement::Pooled => Some(MachineId(0)).filter(|&pool| self.fits(pool, need)),
            Placement::FirstFit => self.first(need),
            Placement::BestFit => self.extreme(need, |candidate, best| candidate < best),
            Placement::WorstFit => self.extreme(need, |candidate, best| candidate > best),
        }
    }

    fn first(&mut self, need: &[u64]) -> Option<MachineId> {
        let blocks = self.most.len() / self.dims.max(1);
        let more = self.searched.0.0.iter().zip(need).all(|(before, need)| before <= need);
        let from = if more { self.searched.1 } else { 0 };
        let found = (from..blocks).find_map(|block| self.first_in(block, need));
        self.searched.0.0[..self.dims].copy_from_slice(need);
        self.searched.1 = found.map_or(blocks, |machine| machine.index() / BLOCK);
        found
    }

    fn may_hold(&self, block: usize, need: &[u64]) -> bool {
        need.iter().zip(&self.most[block * self.dims..]).all(|(need, most)| need <= most)
    }

    /// Which machines of a block have room, one bit each.
    fn room(&self, block: usize, need: &[u64]) -> u64 {
        let base = block * self.dims * BLOCK;
        let mut fits = [true; BLOCK];
        for (d, need) in need.iter().enumerate() {
            let run = &self.free[base + d * BLOCK..][..BLOCK];
            for (fits, free) in fits.iter_mut().zip(run) {
                *fits &= need <= free;
            }
        }
        let mask = fits.iter().enumerate().fold(0u64, |mask, (i, fits)| mask | u64::from(*fits) << i);
        // The last block may have places without a machine.
        let members = (self.count - block * BLOCK).min(BLOCK);
        if members == BLOCK { mask } else { mask & ((1 << members) - 1) }
    }

    fn first_in(&mut self, block: usize, need: &[u64]) -> Option<MachineId> {
        if !self.may_hold(block, need) {
            return None;
        }
        let room = self.room(block, need);
        if room == 0 {
            self.tighten(block);
            return None;
        }
        Some(MachineId((block * BLOCK) as u32 + room.trailing_zeros()))
    }

    fn tighten(&mut self, block: usize) {
        for d in 0..self.dims {
            let run = &self.free[(block * self.dims + d) * BLOCK..][..BLOCK];
            self.most[block * self.dims + d] = run.iter().copied().max().unwrap_or(0);
        }
    }

    fn extreme(&mut self, need: &[u64], better: impl Fn(u128, u128) -> bool) -> Option<MachineId> {
        let mut best: Option<(u128, MachineId)> = None;
        for block in 0..self.most.len() / self.dims.max(1) {
            if !self.may_hold(block, need) {
                continue;
            }
            let mut room = self.room(block, need);
            if room == 0 {
                self.tighten(block);
            }
            while room != 0 {
                let machine = block * BLOCK + room.trailing_zeros() as usize;
                room &= room - 1;
                let score =
                    (0..self.dims).map(|d| u128::from(self.free[self.at(machine, d)]) * self.prices[d]).sum::<u128>();
                if best.is_none_or(|(least, _)| better(score, least)) {
                    best = Some((score, MachineId(machine as u32)));
                }
            }
        }
        best.map(|(_, machine)| machine)
    }
}

/// `L / c_r` with `L` the least common multiple of the cluster's amounts, so that sums of shares compare exactly.
/// Where `L` passes 2^100, `2^100 / c_r` rounded down stands for it: a documented approximation of the score, not of
/// whether a task fits.
fn best_fit_prices(total: &[u64]) -> [u128; MAX_DIMS] {
    const LIMIT: u128 = 1 << 100;
    let gcd = |mut a: u128, mut b: u128| {
        while b != 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    let multiple = total.iter().filter(|&&c| c > 0).try_fold(1u128, |multiple, &c| {
        let c = u128::from(c);
        (multiple / gcd(multiple, c)).checked_mul(c).filter(|multiple| *multiple < LIMIT)
    });
    let mut prices = [0; MAX_DIMS];
    for (price, &c) in prices.iter_mut().zip(total) {
        *price = if c == 0 { 0 } else { multiple.unwrap_or(LIMIT) / u128::from(c) };
    }
    prices
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    #[test]
    fn finds_what_a_plain_scan_finds() {
        for (placement, seed) in [(Placement::FirstFit, 1), (Placement::BestFit, 2), (Placement::WorstFit, 3)] {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let mut free: Vec<[u64; 2]> =
                (0..150).map(|_| [rng.random_range(5..20), rng.random_range(5..20)]).collect();
            let capacity: Vec<Resources> = free.iter().map(|f| Resources([f[0], f[1], 0, 0, 0, 0, 0, 0])).collect();
            let total = free.iter().fold([0, 0], |sum, f| [sum[0] + f[0], sum[1] + f[1]]);
            let mut machines = Machines::new(2, placement, &capacity);
            let mut placed: Vec<(MachineId, [u64; 2])> = Vec::new();
            for _ in 0..3000 {
                if rng.random_bool(0.45) && !placed.is_empty() {
                    let (machine, need) = placed.swap_remove(rng.random_range(0..placed.len()));
                    machines.give(machine, &need, 1);
                    free[machine.index()][0] += need[0];
                    free[machine.index()][1] += need[1];
                    continue;
                }
                let need = [rng.random_range(0..6), rng.random_range(0..6)];
                let score = |f: &[u64; 2]| f[0] * total[1] + f[1] * total[0];
                let fitting = free.iter().enumerate().filter(|(_, f)| f[0] >= need[0] && f[1] >= need[1]);
                let wanted = match placement {
                    Placement::BestFit => fitting.min_by_key(|(m, f)| (score(f), *m)),
                    Placement::WorstFit => fitting.min_by_key(|(m, f)| (u64::MAX - score(f), *m)),
                    _ => fitting.min_by_key(|(m, _)| (0, *m)),
                };
                let wanted = wanted.map(|(m, _)| MachineId(m as u32));
                assert_eq!(machines.find(&need), wanted);
                if let Some(machine) = wanted {
                    machines.take(machine, &need);
                    free[machine.index()][0] -= need[0];
                    free[machine.index()][1] -= need[1];
                    placed.push((machine, need));
                }
            }
            assert!(placed.len() > 100);
        }
    }
}
