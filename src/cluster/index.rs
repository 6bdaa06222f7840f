//! What every machine has free, in blocks of 64 with bounds over blocks and over 64 blocks.
//!
//! One array a dimension in each block, so that a block is scanned without branches; each block knows the most that
//! any of its members has free, and so does each 64 blocks: what cannot help is passed over, 4096 machines at a time.
//! (A tree over component-wise maxima backtracks badly in two dimensions.) Bounds are at least the truth: giving room
//! raises them at once, taking room leaves them, and a search that they misled sets them right.

use super::scope::{BLOCK, Scope, ones};
use crate::units::{MachineId, Resources};

#[derive(Clone, Debug)]
pub(super) struct Index {
    dims: usize,
    count: usize,
    /// Free amounts: block by block, in each one run of `BLOCK` a dimension.
    free: Vec<u64>,
    /// Machines that are there, a word a block.
    present: Vec<u64>,
    /// At least the most that any machine of a block has free, `dims` a block.
    most: Vec<u64>,
    /// The same over 64 blocks.
    most_above: Vec<u64>,
    /// The need that first-fit searched for last, and the first block that may have room for as much: blocks before it
    /// have none for anything that needs at least as much everywhere.
    searched: (Resources, usize),
}

fn holds(need: &[u64], most: &[u64]) -> bool {
    need.iter().zip(most).all(|(need, most)| need <= most)
}

impl Index {
    pub fn new(dims: usize, capacities: &[Resources]) -> Index {
        let mut index = Index {
            dims,
            count: 0,
            free: Vec::with_capacity(capacities.len().div_ceil(BLOCK) * BLOCK * dims),
            present: Vec::new(),
            most: Vec::new(),
            most_above: Vec::new(),
            searched: (Resources::ZERO, 0),
        };
        capacities.iter().for_each(|capacity| index.push(capacity));
        index
    }

    /// One more machine, with everything free.
    pub fn push(&mut self, capacity: &Resources) {
        let machine = self.count;
        if machine.is_multiple_of(BLOCK) {
            self.free.resize(self.free.len() + BLOCK * self.dims, 0);
            self.most.resize(self.most.len() + self.dims, 0);
            self.present.push(0);
        }
        if machine.is_multiple_of(BLOCK * BLOCK) {
            self.most_above.resize(self.most_above.len() + self.dims, 0);
        }
        self.count += 1;
        self.set(machine, capacity);
        self.show(machine, true);
    }

    pub fn len(&self) -> usize {
        self.count
    }

    pub fn dims(&self) -> usize {
        self.dims
    }

    pub fn blocks(&self) -> usize {
        self.present.len()
    }

    /// How many times 64 blocks there are, the last ones perhaps fewer.
    pub fn above(&self) -> usize {
        self.present.len().div_ceil(BLOCK)
    }

    fn at(&self, machine: usize, dim: usize) -> usize {
        (machine / BLOCK * self.dims + dim) * BLOCK + machine % BLOCK
    }

    pub fn amount(&self, machine: usize, dim: usize) -> u64 {
        self.free[self.at(machine, dim)]
    }

    pub fn free(&self, machine: usize) -> Resources {
        let mut free = Resources::ZERO;
        for d in 0..self.dims {
            free.0[d] = self.amount(machine, d);
        }
        free
    }

    /// Puts what a machine has free.
    pub fn set(&mut self, machine: usize, free: &Resources) {
        for d in 0..self.dims {
            let at = self.at(machine, d);
            self.free[at] = free.0[d];
        }
        self.raise(machine);
    }

    pub fn is_present(&self, machine: usize) -> bool {
        self.present[machine / BLOCK] >> (machine % BLOCK) & 1 == 1
    }

    /// Lets searches see a machine, or not.
    pub fn show(&mut self, machine: usize, there: bool) {
        let bit = 1 << (machine % BLOCK);
        let word = &mut self.present[machine / BLOCK];
        *word = if there { *word | bit } else { *word & !bit };
        self.raise(machine);
    }

    pub fn fits(&self, machine: usize, need: &[u64]) -> bool {
        self.is_present(machine) && need.iter().enumerate().all(|(d, need)| *need <= self.amount(machine, d))
    }

    /// Panics: if there is not enough (the caller has just found it).
    pub fn take(&mut self, machine: usize, need: &[u64]) {
        for (d, need) in need.iter().enumerate() {
            let at = self.at(machine, d);
            self.free[at] = self.free[at].checked_sub(*need).expect("a placed task fits its machine");
        }
    }

    pub fn give(&mut self, machine: usize, need: &[u64], count: u32) {
        for (d, need) in need.iter().enumerate() {
            let at = self.at(machine, d);
            self.free[at] += need * u64::from(count);
        }
        self.raise(machine);
    }

    /// Lifts the bounds to what a machine has.
    fn raise(&mut self, machine: usize) {
        let block = machine / BLOCK;
        self.searched.1 = self.searched.1.min(block);
        for d in 0..self.dims {
            let free = self.amount(machine, d);
            for most in [&mut self.most[block * self.dims + d], &mut self.most_above[block / BLOCK * self.dims + d]] {
                *most = (*most).max(free);
            }
        }
    }

    pub fn may_hold(&self, block: usize, need: &[u64]) -> bool {
        holds(need, &self.most[block * self.dims..])
    }

    pub fn may_hold_above(&self, above: usize, need: &[u64]) -> bool {
        holds(need, &self.most_above[above * self.dims..])
    }

    /// The blocks among 64, one bit each, that may hold a need and have members of the scope.
    pub fn candidates(&mut self, above: usize, need: &[u64], scope: Scope<'_>) -> u64 {
        if !self.may_hold_above(above, need) {
            return 0;
        }
        let from = above * BLOCK;
        let all = from..(from + BLOCK).min(self.blocks());
        let bits = all.fold(0, |bits, block| bits | u64::from(self.may_hold(block, need)) << (block - from));
        if bits == 0 {
            self.tighten_above(above);
        }
        bits & scope.blocks(above)
    }

    /// Which machines of a block have room, one bit each. Sets a bound right that promised too much.
    pub fn room(&mut self, block: usize, need: &[u64]) -> u64 {
        let base = block * self.dims * BLOCK;
        let mut fits = [true; BLOCK];
        for (d, need) in need.iter().enumerate() {
            let run = &self.free[base + d * BLOCK..][..BLOCK];
            for (fits, free) in fits.iter_mut().zip(run) {
                *fits &= need <= free;
            }
        }
        let room = fits.iter().enumerate().fold(0u64, |mask, (i, fits)| mask | u64::from(*fits) << i);
        let room = room & self.present[block];
        if room == 0 {
            self.tighten(block);
        }
        room
    }

    pub fn present(&self, block: usize) -> u64 {
        self.present[block]
    }

    fn tighten(&mut self, block: usize) {
        let present = self.present[block];
        for d in 0..self.dims {
            let run = &self.free[(block * self.dims + d) * BLOCK..][..BLOCK];
            let there = run.iter().enumerate().map(|(i, free)| free * (present >> i & 1));
            self.most[block * self.dims + d] = there.max().unwrap_or(0);
        }
    }

    pub fn tighten_above(&mut self, above: usize) {
        let blocks = above * BLOCK..((above + 1) * BLOCK).min(self.blocks());
        for d in 0..self.dims {
            let most = blocks.clone().map(|block| self.most[block * self.dims + d]).max();
            self.most_above[above * self.dims + d] = most.unwrap_or(0);
        }
    }

    /// The first machine with room that a scope has and `also` accepts.
    pub fn first(&mut self, need: &[u64], scope: Scope<'_>, also: impl Fn(usize) -> bool) -> Option<usize> {
        let whole = scope.is_whole();
        let more = self.searched.0.0.iter().zip(need).all(|(before, need)| before <= need);
        let from = if more { self.searched.1 } else { 0 };
        // Nothing before the first block with room can have had any, whatever else was asked.
        let mut seen = self.blocks();
        let mut found = None;
        'above: for above in from / BLOCK..self.above() {
            if !self.may_hold_above(above, need) {
                continue;
            }
            let blocks = if whole { u64::MAX } else { scope.blocks(above) };
            let first = above * BLOCK;
            for block in from.max(first)..(first + BLOCK).min(self.blocks()) {
                if !self.may_hold(block, need) || blocks >> (block - first) & 1 == 0 {
                    continue;
                }
                let room = self.room(block, need);
                if room != 0 {
                    seen = seen.min(block);
                }
                let of_scope = if whole { room } else { room & scope.machines(block) };
                found = ones(of_scope).map(|bit| block * BLOCK + bit).find(|&machine| also(machine));
                if found.is_some() {
                    break 'above;
                }
            }
            self.tighten_above(above);
        }
        if whole {
            self.searched.0.0[..self.dims].copy_from_slice(need);
            self.searched.1 = seen;
        }
        found
    }

    /// Calls `visit` with every machine that has room and that a scope has, lowest first.
    pub fn each(&mut self, need: &[u64], scope: Scope<'_>, mut visit: impl FnMut(&Index, usize)) {
        for above in 0..self.above() {
            for block in ones(self.candidates(above, need, scope)).map(|bit| above * BLOCK + bit) {
                let room = self.room(block, need) & scope.machines(block);
                ones(room).for_each(|bit| visit(self, block * BLOCK + bit));
            }
        }
    }
}

/// A machine's identifier.
pub(super) fn id(machine: usize) -> MachineId {
    MachineId(machine as u32)
}
