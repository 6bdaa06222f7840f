//! Finding the machine of the highest score by bounds: worst-fit, spread and dot-product.
//!
//! Every block and every 64 blocks have a bound that no member's score passes. The search begins where the bound is
//! highest and looks elsewhere only where a bound could beat what was found. As in the index, bounds rise at once and
//! fall when a search finds them too high.

use super::index::Index;
use super::rules::Prices;
use super::scope::{BLOCK, Scope, ones};
use crate::units::{MAX_DIMS, Resources};

/// What is added up to a score.
#[derive(Clone, Debug)]
pub(super) enum Measure {
    /// Shares of the cluster that are free.
    Room(Prices),
    /// Tasks that do not run: the most there can be, less those that do.
    Idle(Vec<u32>),
    /// Free amounts along the demand, by machines' weights: kinds of them, and the kind of each machine.
    Along(Vec<[u128; MAX_DIMS]>, Vec<u32>),
}

#[derive(Clone, Debug)]
pub(super) struct Climb {
    measure: Measure,
    /// Bounds a block: one, or for `Along` one a dimension.
    width: usize,
    bounds: Vec<u128>,
    /// The same over 64 blocks.
    above: Vec<u128>,
}

/// The best machine so far.
type Best = Option<(u128, usize)>;

/// Whether a score at most `bound`, on a machine from `first` on, could be better: higher, or as high and earlier.
fn could_beat(best: &Best, bound: u128, first: usize) -> bool {
    best.is_none_or(|(score, machine)| bound > score || (bound == score && first < machine))
}

impl Climb {
    pub fn new(measure: Measure, index: &Index) -> Climb {
        let width = if matches!(measure, Measure::Along(..)) { index.dims() } else { 1 };
        let mut climb = Climb { measure, width, bounds: Vec::new(), above: Vec::new() };
        (0..index.len()).for_each(|machine| climb.changed(index, machine));
        climb
    }

    /// One more machine, of a capacity.
    pub fn push(&mut self, index: &Index, machine: usize, weights: impl FnOnce() -> [u128; MAX_DIMS]) {
        match &mut self.measure {
            Measure::Room(_) => {}
            Measure::Idle(running) => running.push(0),
            Measure::Along(kinds, kind) => kind.push(kind_of(kinds, weights())),
        }
        self.changed(index, machine);
    }

    /// A machine has another capacity.
    pub fn weigh(&mut self, machine: usize, weights: impl FnOnce() -> [u128; MAX_DIMS]) {
        if let Measure::Along(kinds, kind) = &mut self.measure {
            kind[machine] = kind_of(kinds, weights());
        }
    }

    pub fn taken(&mut self, machine: usize) {
        if let Measure::Idle(running) = &mut self.measure {
            running[machine] += 1;
        }
    }

    pub fn given(&mut self, index: &Index, machine: usize, count: u32) {
        if let Measure::Idle(running) = &mut self.measure {
            running[machine] -= count;
        }
        self.changed(index, machine);
    }

    /// Lifts the bounds to what a machine has now.
    pub fn changed(&mut self, index: &Index, machine: usize) {
        let (block, width) = (machine / BLOCK, self.width);
        if self.bounds.len() < (block + 1) * width {
            self.bounds.resize((block + 1) * width, 0);
            self.above.resize((block / BLOCK + 1) * width, 0);
        }
        for part in 0..width {
            let value = self.part(index, machine, part);
            for bound in [&mut self.bounds[block * width + part], &mut self.above[block / BLOCK * width + part]] {
                *bound = (*bound).max(value);
            }
        }
    }

    /// What a bound is over: a score, or for `Along` a dimension's part of it for a demand of one.
    fn part(&self, index: &Index, machine: usize, part: usize) -> u128 {
        match &self.measure {
            Measure::Room(prices) => prices.score(index, machine),
            Measure::Idle(running) => u128::from(u32::MAX - running[machine]),
            Measure::Along(kinds, kind) => {
                u128::from(index.amount(machine, part)) * kinds[kind[machine] as usize][part]
            }
        }
    }

    fn score(&self, index: &Index, machine: usize, need: &[u64]) -> u128 {
        match &self.measure {
            Measure::Along(kinds, kind) => {
                let weights = &kinds[kind[machine] as usize];
                let part =
                    |(d, need): (usize, &u64)| u128::from(*need) * u128::from(index.amount(machine, d)) * weights[d];
                need.iter().enumerate().map(part).sum()
            }
            _ => self.part(index, machine, 0),
        }
    }

    fn bound(&self, bounds: &[u128], at: usize, need: &[u64]) -> u128 {
        match &self.measure {
            Measure::Along(..) => {
                let parts = need.iter().zip(&bounds[at * self.width..]);
                parts.fold(0, |sum, (need, bound)| sum.saturating_add(bound.saturating_mul(u128::from(*need))))
            }
            _ => bounds[at],
        }
    }

    pub fn search(
        &mut self,
        index: &mut Index,
        need: &[u64],
        scope: Scope<'_>,
        also: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let mut best = None;
        let start = (0..index.above())
            .filter(|&above| index.may_hold_above(above, need))
            .map(|above| (self.bound(&self.above, above, need), std::cmp::Reverse(above)))
            .max();
        let start = start.map(|(_, std::cmp::Reverse(above))| above);
        for above in start.into_iter().chain((0..index.above()).filter(|above| Some(*above) != start)) {
            if could_beat(&best, self.bound(&self.above, above, need), above * BLOCK * BLOCK) {
                self.search_above(index, above, need, scope, &also, &mut best);
            }
        }
        best.map(|(_, machine)| machine)
    }

    /// Searches 64 blocks.
    fn search_above(
        &mut self,
        index: &mut Index,
        above: usize,
        need: &[u64],
        scope: Scope<'_>,
        also: &impl Fn(usize) -> bool,
        best: &mut Best,
    ) {
        let candidates = index.candidates(above, need, scope);
        let start = ones(candidates)
            .map(|bit| (self.bound(&self.bounds, above * BLOCK + bit, need), std::cmp::Reverse(bit)))
            .max();
        let start = start.map_or(0, |(_, std::cmp::Reverse(bit))| 1 << bit);
        let mut lower = false;
        for block in ones(start).chain(ones(candidates & !start)).map(|bit| above * BLOCK + bit) {
            let bound = self.bound(&self.bounds, block, need);
            if !could_beat(best, bound, block * BLOCK) {
                continue;
            }
            let room = index.room(block, need) & scope.machines(block);
            let mut highest = 0;
            for machine in ones(room).map(|bit| block * BLOCK + bit).filter(|&machine| also(machine)) {
                let score = self.score(index, machine, need);
                highest = highest.max(score);
                if could_beat(best, score, machine) {
                    *best = Some((score, machine));
                }
            }
            if highest < bound {
                self.tighten(index, block);
                lower = true;
            }
        }
        if lower {
            self.tighten_above(above);
        }
    }

    fn tighten(&mut self, index: &Index, block: usize) {
        for part in 0..self.width {
            let members = ones(index.present(block)).map(|bit| self.part(index, block * BLOCK + bit, part));
            self.bounds[block * self.width + part] = members.max().unwrap_or(0);
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

fn kind_of(kinds: &mut Vec<[u128; MAX_DIMS]>, weights: [u128; MAX_DIMS]) -> u32 {
    let at = kinds.iter().position(|known| *known == weights).unwrap_or_else(|| {
        kinds.push(weights);
        kinds.len() - 1
    });
    at as u32
}

/// Kinds of machines by their weights, and the kind of each.
pub(super) fn along(capacities: &[Resources], weights: impl Fn(&Resources) -> [u128; MAX_DIMS]) -> Measure {
    let mut numbers = std::collections::HashMap::new();
    let mut kinds = Vec::new();
    let kind = capacities.iter().map(|capacity| {
        *numbers.entry(*capacity).or_insert_with(|| {
            kinds.push(weights(capacity));
            kinds.len() as u32 - 1
        })
    });
    let kind = kind.collect();
    Measure::Along(kinds, kind)
}
