//! Finding the machine whose free amounts point the way of the demand: dot-product.
//!
//! Machines of one kind (of equal capacity) and of the same classes of free amounts stand in a cell, whose
//! classes bound the score of all its members. The cell of the highest bound is looked through first, and then those
//! whose bound could beat what was found. Cost: O(cells with machines · resources), and the members of the best cells.

use std::collections::HashMap;

use super::index::{Index, id};
use super::rules::alignment;
use super::scope::Scope;
use crate::units::{MAX_DIMS, Resources};

/// The most resources that cells are told apart by: the first ones.
const AXES: usize = 3;

/// Machines of equal capacity, and the value of a unit of each resource on them.
#[derive(Clone, Debug)]
struct Kind {
    capacity: Resources,
    weights: [u128; MAX_DIMS],
}

#[derive(Clone, Debug)]
struct Cell {
    kind: u32,
    classes: [u8; AXES],
    members: Vec<u32>,
    /// Its place among those with members.
    live: usize,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Climb {
    kinds: Vec<Kind>,
    kind_of: HashMap<Resources, u32>,
    /// The kind of each machine.
    kind: Vec<u32>,
    cells: Vec<Cell>,
    cell_of: HashMap<(u32, [u8; AXES]), usize>,
    /// Cells with members.
    live: Vec<usize>,
    /// The cell of each machine that is there and its place in it.
    places: Vec<Option<(usize, usize)>>,
    /// Kept for its memory: cells with their bounds.
    bounds: Vec<(u128, usize)>,
}

/// The best machine so far.
type Best = Option<(u128, usize)>;

/// Whether a score on a machine is better: higher, or as high and earlier.
fn beats(score: u128, machine: usize, best: &Best) -> bool {
    best.is_none_or(|(highest, first)| score > highest || (score == highest && machine < first))
}

impl Climb {
    pub fn new(index: &Index, capacities: &[Resources]) -> Climb {
        let mut climb = Climb::default();
        for (machine, capacity) in capacities.iter().enumerate() {
            climb.weigh(index, machine, capacity);
        }
        climb
    }

    /// A machine is new, or comes with another capacity.
    pub fn weigh(&mut self, index: &Index, machine: usize, capacity: &Resources) {
        let kind = *self.kind_of.entry(*capacity).or_insert_with(|| {
            self.kinds.push(Kind { capacity: *capacity, weights: alignment(capacity) });
            self.kinds.len() as u32 - 1
        });
        self.kind.resize(self.kind.len().max(machine + 1), 0);
        self.kind[machine] = kind;
        self.changed(index, machine);
    }

    /// Puts a machine where it belongs now.
    pub fn changed(&mut self, index: &Index, machine: usize) {
        self.places.resize(self.places.len().max(machine + 1), None);
        let now = index.is_present(machine).then(|| {
            let mut classes = [0; AXES];
            for (class, (axis, free)) in classes.iter_mut().zip(index.axes().iter().zip(index.amounts(machine))) {
                *class = axis.class(*free) as u8;
            }
            (self.kind[machine], classes)
        });
        let old = self.places[machine];
        if old.map(|(cell, _)| (self.cells[cell].kind, self.cells[cell].classes)) == now {
            return;
        }
        if let Some((cell, place)) = old {
            self.cells[cell].members.swap_remove(place);
            if let Some(&moved) = self.cells[cell].members.get(place) {
                self.places[moved as usize] = Some((cell, place));
            }
            if self.cells[cell].members.is_empty() {
                let live = self.cells[cell].live;
                self.live.swap_remove(live);
                if let Some(&moved) = self.live.get(live) {
                    self.cells[moved].live = live;
                }
            }
        }
        self.places[machine] = now.map(|(kind, classes)| {
            let cell = *self.cell_of.entry((kind, classes)).or_insert_with(|| {
                self.cells.push(Cell { kind, classes, members: Vec::new(), live: 0 });
                self.cells.len() - 1
            });
            if self.cells[cell].members.is_empty() {
                self.cells[cell].live = self.live.len();
                self.live.push(cell);
            }
            self.cells[cell].members.push(machine as u32);
            (cell, self.cells[cell].members.len() - 1)
        });
    }

    fn score(&self, index: &Index, machine: usize, need: &[u64]) -> u128 {
        let weights = &self.kinds[self.kind[machine] as usize].weights;
        let parts = need.iter().zip(index.amounts(machine)).zip(weights);
        parts.map(|((need, free), weight)| u128::from(*need) * u128::from(*free) * weight).sum()
    }

    /// An upper bound of the scores in a cell; `None` if none has room, by its classes or by its kind.
    fn bound(&self, index: &Index, cell: &Cell, need: &[u64], classes: &[u8; AXES]) -> Option<u128> {
        if cell.classes.iter().zip(classes).any(|(class, need)| class < need) {
            return None;
        }
        let kind = &self.kinds[cell.kind as usize];
        let mut bound = 0;
        for (d, need) in need.iter().enumerate() {
            let capacity = kind.capacity.0[d];
            if *need > capacity {
                return None;
            }
            let above = cell.classes.get(d).and_then(|class| index.axes()[d].least.get(usize::from(*class) + 1));
            let most = above.map_or(capacity, |above| capacity.min(above.saturating_sub(1)));
            bound += u128::from(*need) * u128::from(most) * kind.weights[d];
        }
        Some(bound)
    }

    pub fn search(
        &mut self,
        index: &Index,
        need: &[u64],
        scope: Scope<'_>,
        also: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let mut best: Best = None;
        if scope.at_most(index.len()) <= index.len() / 16 {
            for machine in index.each(need, scope).filter(|machine| also(*machine)) {
                let score = self.score(index, machine, need);
                if beats(score, machine, &best) {
                    best = Some((score, machine));
                }
            }
            return best.map(|(_, machine)| machine);
        }
        let mut classes = [0; AXES];
        for (class, (axis, need)) in classes.iter_mut().zip(index.axes().iter().zip(need)) {
            *class = axis.class(*need) as u8;
        }
        let mut bounds = std::mem::take(&mut self.bounds);
        bounds.clear();
        let bound = |&cell: &usize| Some((self.bound(index, &self.cells[cell], need, &classes)?, cell));
        bounds.extend(self.live.iter().filter_map(bound));
        let highest = (0..bounds.len()).max_by_key(|&at| bounds[at].0);
        if let Some(highest) = highest {
            bounds.swap(0, highest);
        }
        for &(bound, cell) in &bounds {
            if best.is_some_and(|(score, _)| bound < score) {
                continue;
            }
            for &machine in &self.cells[cell].members {
                let machine = machine as usize;
                let score = self.score(index, machine, need);
                let better = beats(score, machine, &best) && index.fits(machine, need);
                if better && scope.contains(id(machine)) && also(machine) {
                    best = Some((score, machine));
                }
            }
        }
        self.bounds = bounds;
        best.map(|(_, machine)| machine)
    }
}
