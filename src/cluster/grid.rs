//! Finding the machine of the lowest score: best-fit.
//!
//! Bounds over neighbours in a file do not help here: nearly every block has a machine that is almost full. So machines
//! stand in cells by what they have free, in classes a quarter of an octave wide (half an octave from three resources
//! on; only the first three count). A search begins in the corner of the demand, where a machine that fits has the
//! least to spare, and goes outwards until no cell can hold a lower score.

use super::index::Index;
use super::rules::Prices;
use super::scope::{Scope, ones};

/// The most resources that cells are laid out in.
const AXES: usize = 3;

/// How many octaves below the largest machine have classes of their own; less than that is one class.
const OCTAVES: u32 = 12;

/// The classes of one resource.
#[derive(Clone, Debug)]
struct Axis {
    /// Classes in an octave, as a power of two.
    parts: u32,
    /// What is taken from an amount's raw class.
    offset: u32,
    /// The least amount of each class.
    least: Vec<u64>,
}

impl Axis {
    fn new(most: u64, parts: u32) -> Axis {
        let top = raw(most.max(1), parts);
        let offset = top.saturating_sub(OCTAVES << parts);
        let mut axis = Axis { parts, offset, least: vec![0] };
        for class in 1..=top - offset {
            let number = class + offset;
            let (octave, part) = (number >> parts, u64::from(number & ((1 << parts) - 1)));
            axis.least.push((1u64 << octave) + ((part << octave) >> parts));
        }
        axis
    }

    fn class(&self, amount: u64) -> usize {
        if amount == 0 {
            return 0;
        }
        (raw(amount, self.parts).saturating_sub(self.offset) as usize).min(self.least.len() - 1)
    }
}

/// The octave of an amount and the part of it.
fn raw(amount: u64, parts: u32) -> u32 {
    let octave = amount.ilog2();
    let part = ((u128::from(amount) << parts) >> octave) as u32 & ((1 << parts) - 1);
    (octave << parts) + part
}

#[derive(Clone, Debug)]
pub(super) struct Grid {
    prices: Prices,
    axes: Vec<Axis>,
    /// Machines by cell; the last axis runs fastest.
    cells: Vec<Vec<u32>>,
    /// Which cells of a row along the last axis have machines, one bit each.
    rows: Vec<u64>,
    /// Where each machine stands: its cell and its place there; `ABSENT` if nowhere.
    places: Vec<(u32, u32)>,
}

const ABSENT: u32 = u32::MAX;

impl Grid {
    pub fn new(prices: Prices, index: &Index) -> Grid {
        let count = index.dims().min(AXES);
        let parts = if count < AXES { 2 } else { 1 };
        let most = |d: usize| (0..index.len()).map(|machine| index.amount(machine, d)).max().unwrap_or(0);
        let axes: Vec<Axis> = (0..count).map(|d| Axis::new(most(d), parts)).collect();
        let cells = axes.iter().map(|axis| axis.least.len()).product::<usize>();
        let rows = cells / axes.last().map_or(1, |axis| axis.least.len());
        let mut grid = Grid { prices, axes, cells: vec![Vec::new(); cells], rows: vec![0; rows], places: Vec::new() };
        (0..index.len()).for_each(|machine| grid.changed(index, machine));
        grid
    }

    fn last(&self) -> usize {
        self.axes.last().map_or(1, |axis| axis.least.len())
    }

    fn cell(&self, index: &Index, machine: usize) -> usize {
        let classes = self.axes.iter().enumerate();
        classes.fold(0, |cell, (d, axis)| cell * axis.least.len() + axis.class(index.amount(machine, d)))
    }

    /// Puts a machine where it belongs now.
    pub fn changed(&mut self, index: &Index, machine: usize) {
        if machine >= self.places.len() {
            self.places.resize(machine + 1, (ABSENT, 0));
        }
        let cell = if index.is_present(machine) { self.cell(index, machine) as u32 } else { ABSENT };
        let (old, place) = self.places[machine];
        if old == cell {
            return;
        }
        let last = self.last();
        if old != ABSENT {
            let members = &mut self.cells[old as usize];
            members.swap_remove(place as usize);
            if let Some(&moved) = members.get(place as usize) {
                self.places[moved as usize].1 = place;
            }
            if members.is_empty() {
                self.rows[old as usize / last] &= !(1 << (old as usize % last));
            }
        }
        if cell != ABSENT {
            let members = &mut self.cells[cell as usize];
            self.places[machine] = (cell, members.len() as u32);
            members.push(machine as u32);
            self.rows[cell as usize / last] |= 1 << (cell as usize % last);
        } else {
            self.places[machine] = (ABSENT, 0);
        }
    }

    pub fn search(
        &self,
        index: &mut Index,
        need: &[u64],
        scope: Scope<'_>,
        also: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let mut best: Option<(u128, usize)> = None;
        let mut consider = |index: &Index, machine: usize| {
            let found = (self.prices.score(index, machine), machine);
            if best.is_none_or(|best| found < best) && also(machine) {
                best = Some(found);
            }
            best
        };
        if self.axes.is_empty() || scope.at_most(index.len()) <= index.len() / 16 {
            index.each(need, scope, |index, machine| {
                consider(index, machine);
            });
            return best.map(|(_, machine)| machine);
        }
        let last = self.axes.len() - 1;
        // What every machine that fits scores at least, by class of each axis; all other resources count as needed.
        let part = |d: usize, class: usize| self.prices.part(d, need[d].max(self.axes[d].least[class]));
        let others: u128 = (self.axes.len()..need.len()).map(|d| self.prices.part(d, need[d])).sum();
        let from: Vec<usize> = self.axes.iter().zip(need).map(|(axis, need)| axis.class(*need)).collect();
        let mut best_score = u128::MAX;
        let mut at = from.clone();
        'rows: loop {
            let base = at[..last].iter().enumerate().fold(others, |sum, (d, class)| sum + part(d, *class));
            let row = at[..last].iter().zip(&self.axes).fold(0, |row, (class, axis)| row * axis.least.len() + class);
            if base + part(last, from[last]) <= best_score {
                for class in ones(self.rows[row] & (u64::MAX << from[last])) {
                    if base + part(last, class) > best_score {
                        break;
                    }
                    for &machine in &self.cells[row * self.last() + class] {
                        let machine = machine as usize;
                        if index.fits(machine, need) && scope.contains(super::index::id(machine)) {
                            best_score = consider(index, machine).map_or(u128::MAX, |(score, _)| score);
                        }
                    }
                }
            }
            // The next row: the last of the outer axes runs fastest; where a bound is too high, so is all behind it.
            let mut axis = last;
            loop {
                if axis == 0 {
                    break 'rows;
                }
                axis -= 1;
                at[axis] += 1;
                let classes = at[..=axis].iter().chain(&from[axis + 1..]).enumerate();
                let reachable = at[axis] < self.axes[axis].least.len()
                    && others + classes.map(|(d, class)| part(d, *class)).sum::<u128>() <= best_score;
                if reachable {
                    break;
                }
                at[axis] = from[axis];
            }
        }
        best.map(|(_, machine)| machine)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_hold_what_is_theirs() {
        for (most, parts) in [(1, 2), (7, 2), (64_000, 2), (262_144, 1), (u64::MAX >> 4, 2), (5, 1)] {
            let axis = Axis::new(most, parts);
            assert!(axis.least.len() <= 64 && axis.least.is_sorted(), "{:?}", axis.least);
            for amount in (0..2000).chain([most / 3, most - 1, most]).filter(|amount| *amount <= most) {
                let class = axis.class(amount);
                assert!(axis.least[class] <= amount, "{amount} of {most}");
                // Amounts below four fill only some of the classes of their octave.
                let above = axis.least.get(class + 1).is_none_or(|least| *least > amount);
                assert!(above || amount < 4, "{amount} of {most}");
            }
            assert_eq!(axis.class(u64::MAX), axis.least.len() - 1);
        }
    }
}
