//! Finding the machine whose free amounts point the way of the demand: dot-product.
//!
//! For every resource each block and each 64 blocks have a bound that no member's part of the score passes, for a
//! demand of one. The search begins where the bound is highest and looks elsewhere only where a bound could beat what
//! was found. Bounds rise at once and fall when a search comes by.

use std::collections::HashMap;

use super::index::{Asked, Index};
use super::rules::alignment;
use super::scope::{BLOCK, Scope, ones};
use crate::units::{MAX_DIMS, Resources};

#[derive(Clone, Debug)]
pub(super) struct Climb {
    /// What a unit of each resource is worth on machines of a kind.
    weights: Vec<[u128; MAX_DIMS]>,
    kinds: HashMap<Resources, u32>,
    /// The kind of each machine.
    kind: Vec<u32>,
    /// How many resources there are: bounds a block.
    width: usize,
    bounds: Vec<u128>,
    /// The same over 64 blocks.
    above: Vec<u128>,
    /// Blocks where something was taken since their bounds were set.
    stale: Vec<bool>,
}

/// The best machine so far.
type Best = Option<(u128, usize)>;

/// Whether a score at most `bound`, on a machine from `first` on, could be better: higher, or as high and earlier.
fn could_beat(best: &Best, bound: u128, first: usize) -> bool {
    best.is_none_or(|(score, machine)| bound > score || (bound == score && first < machine))
}

impl Climb {
    pub fn new(index: &Index, capacities: &[Resources]) -> Climb {
        let mut climb = Climb {
            weights: Vec::new(),
            kinds: HashMap::new(),
            kind: Vec::new(),
            width: index.dims(),
            bounds: Vec::new(),
            above: Vec::new(),
            stale: Vec::new(),
        };
        for (machine, capacity) in capacities.iter().enumerate() {
            climb.weigh(index, machine, capacity);
        }
        climb
    }

    /// A machine is new or has another capacity.
    pub fn weigh(&mut self, index: &Index, machine: usize, capacity: &Resources) {
        let kind = *self.kinds.entry(*capacity).or_insert_with(|| {
            self.weights.push(alignment(capacity));
            self.weights.len() as u32 - 1
        });
        self.kind.resize(self.kind.len().max(machine + 1), 0);
        self.kind[machine] = kind;
        let blocks = machine / BLOCK + 1;
        if self.stale.len() < blocks {
            self.stale.resize(blocks, false);
            self.bounds.resize(blocks * self.width, 0);
            self.above.resize(blocks.div_ceil(BLOCK) * self.width, 0);
        }
        self.given(index, machine);
    }

    pub fn taken(&mut self, machine: usize) {
        self.stale[machine / BLOCK] = true;
    }

    /// Lifts the bounds to what a machine has now.
    pub fn given(&mut self, index: &Index, machine: usize) {
        let (block, width) = (machine / BLOCK, self.width);
        for d in 0..width {
            let value = self.part(index, machine, d);
            for bound in [&mut self.bounds[block * width + d], &mut self.above[block / BLOCK * width + d]] {
                *bound = (*bound).max(value);
            }
        }
    }

    /// A resource's part of the score for a demand of one.
    fn part(&self, index: &Index, machine: usize, d: usize) -> u128 {
        u128::from(index.amounts(machine)[d]) * self.weights[self.kind[machine] as usize][d]
    }

    fn score(&self, index: &Index, machine: usize, need: &[u64]) -> u128 {
        need.iter().enumerate().map(|(d, need)| u128::from(*need) * self.part(index, machine, d)).sum()
    }

    /// Where a machine of another kind has less of a resource than is asked, its part may pass 2^128: it is cut there.
    fn bound(&self, bounds: &[u128], at: usize, need: &[u64]) -> u128 {
        let parts = need.iter().zip(&bounds[at * self.width..]);
        parts.fold(0, |sum, (need, bound)| sum.saturating_add(bound.saturating_mul(u128::from(*need))))
    }

    pub fn search(
        &mut self,
        index: &Index,
        need: &[u64],
        scope: Scope<'_>,
        also: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let (mut best, asked) = (None, index.ask(need));
        let start = (0..index.above())
            .filter(|&above| index.candidates(above, &asked, scope) != 0)
            .map(|above| (self.bound(&self.above, above, need), std::cmp::Reverse(above)))
            .max();
        let start = start.map(|(_, std::cmp::Reverse(above))| above);
        for above in start.into_iter().chain((0..index.above()).filter(|above| Some(*above) != start)) {
            if could_beat(&best, self.bound(&self.above, above, need), above * BLOCK * BLOCK) {
                self.search_above(index, above, &asked, scope, &also, &mut best);
            }
        }
        best.map(|(_, machine)| machine)
    }

    /// Searches 64 blocks.
    fn search_above(
        &mut self,
        index: &Index,
        above: usize,
        asked: &Asked<'_>,
        scope: Scope<'_>,
        also: &impl Fn(usize) -> bool,
        best: &mut Best,
    ) {
        let need = asked.need;
        let candidates = index.candidates(above, asked, scope);
        let start = ones(candidates)
            .map(|bit| (self.bound(&self.bounds, above * BLOCK + bit, need), std::cmp::Reverse(bit)))
            .max();
        let start = start.map_or(0, |(_, std::cmp::Reverse(bit))| 1 << bit);
        let mut lower = false;
        for block in ones(start).chain(ones(candidates & !start)).map(|bit| above * BLOCK + bit) {
            if std::mem::take(&mut self.stale[block]) {
                self.tighten(index, block);
                lower = true;
            }
            if !could_beat(best, self.bound(&self.bounds, block, need), block * BLOCK) {
                continue;
            }
            let room = index.room(block, asked) & scope.machines(block);
            for machine in ones(room).map(|bit| block * BLOCK + bit).filter(|&machine| also(machine)) {
                let score = self.score(index, machine, need);
                if could_beat(best, score, machine) {
                    *best = Some((score, machine));
                }
            }
        }
        if lower {
            self.tighten_above(above);
        }
    }

    fn tighten(&mut self, index: &Index, block: usize) {
        for d in 0..self.width {
            let members = ones(index.present(block)).map(|bit| self.part(index, block * BLOCK + bit, d));
            self.bounds[block * self.width + d] = members.max().unwrap_or(0);
        }
    }

    fn tighten_above(&mut self, above: usize) {
        let width = self.width;
        let blocks = above * BLOCK..((above + 1) * BLOCK).min(self.bounds.len() / width.max(1));
        for part in 0..width {
            let most = blocks.clone().map(|block| self.bounds[block * width + part]).max();
            self.above[above * width + part] = most.unwrap_or(0);
        }
    }
}
