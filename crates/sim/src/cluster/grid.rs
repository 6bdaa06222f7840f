//! Finds the machine with the lowest score: best-fit, worst-fit and spread.
//!
//! The classes of its free amounts determine the cell of a machine. Inside a cell, machines are in order of their score. Cells without
//! enough of a resource are skipped. If all machines of a cell have room, the first one is the best of the cell. If a cell has the demand's
//! class of some resource, machines are tested one after the other until one fits. Bounds over blocks of adjacent machines would not help:
//! nearly every block has a machine that is almost full, or one that has much of a resource that the demand does not need.

use std::collections::BTreeSet;

use super::axis::ClassAxis;
use super::index::{Index, id};
use super::rules::Prices;
use super::scope::{Scope, ones};

/// The maximum number of resources that define cells: the first resources of the run.
const AXES: usize = 3;

/// The quantity to minimise.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(super) enum Objective {
    /// The sum of the free shares of the cluster.
    Room(Prices),
    /// The sum of the free shares, subtracted from the highest number.
    Fullness(Prices),
    /// The number of running tasks.
    Tasks(Vec<u32>),
}

impl Objective {
    fn measure(&self, index: &Index, machine: usize) -> u128 {
        match self {
            Objective::Room(prices) => prices.score(index, machine),
            Objective::Fullness(prices) => u128::MAX - prices.score(index, machine),
            Objective::Tasks(running) => u128::from(running[machine]),
        }
    }

    /// Returns the score of a machine with these free amounts and this number of further tasks.
    fn planned(&self, machine: usize, free: &[u64], tasks: i64) -> u128 {
        match self {
            Objective::Room(prices) => prices.sum(free),
            Objective::Fullness(prices) => u128::MAX - prices.sum(free),
            Objective::Tasks(running) => u128::from(i64::from(running[machine]).saturating_add(tasks).max(0) as u64),
        }
    }
}

#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Grid {
    measure: Objective,
    axes: Vec<ClassAxis>,
    /// 1 if there are three axes; then two classes of the index form one class of the grid. Otherwise 0.
    shift: usize,
    /// Scores and machines by cell; the last axis varies fastest.
    cells: Vec<BTreeSet<(u128, u32)>>,
    /// The cells with machines in each row along the last axis, one bit each.
    rows: Vec<u64>,
    /// The cell and score of each present machine.
    places: Vec<Option<(usize, u128)>>,
}

impl Grid {
    pub fn new(measure: Objective, index: &Index) -> Grid {
        let axes = index.axes()[..index.dims().min(AXES)].to_vec();
        let shift = usize::from(axes.len() == AXES);
        let mut grid = Grid { measure, axes, shift, cells: Vec::new(), rows: Vec::new(), places: Vec::new() };
        let cells: usize = (0..grid.axes.len()).map(|d| grid.classes(d)).product();
        grid.cells = vec![BTreeSet::new(); cells];
        grid.rows = vec![0; cells / grid.last()];
        (0..index.len()).for_each(|machine| grid.changed(index, machine));
        grid
    }

    fn classes(&self, axis: usize) -> usize {
        ((self.axes[axis].least.len() - 1) >> self.shift) + 1
    }

    fn class(&self, axis: usize, amount: u64) -> usize {
        self.axes[axis].class(amount) >> self.shift
    }

    /// Returns the number of cells per row.
    fn last(&self) -> usize {
        self.axes.len().checked_sub(1).map_or(1, |axis| self.classes(axis))
    }

    /// Adds a machine that runs no tasks.
    pub fn push(&mut self, index: &Index, machine: usize) {
        if let Objective::Tasks(running) = &mut self.measure {
            running.push(0);
        }
        self.changed(index, machine);
    }

    /// Counts tasks that have started on a machine or, if `ended`, have ended on it.
    pub fn counted(&mut self, index: &Index, machine: usize, count: u32, ended: bool) {
        if let Objective::Tasks(running) = &mut self.measure {
            running[machine] = if ended { running[machine] - count } else { running[machine] + count };
        }
        self.changed(index, machine);
    }

    /// Moves a machine to the cell and score that match its current state.
    pub fn changed(&mut self, index: &Index, machine: usize) {
        if machine >= self.places.len() {
            self.places.resize(machine + 1, None);
        }
        let place = index.is_present(machine).then(|| {
            let free = index.amounts(machine);
            let cell = (0..self.axes.len()).fold(0, |cell, d| cell * self.classes(d) + self.class(d, free[d]));
            (cell, self.measure.measure(index, machine))
        });
        let old = std::mem::replace(&mut self.places[machine], place);
        if old == place {
            return;
        }
        let last = self.last();
        if let Some((cell, score)) = old {
            self.cells[cell].remove(&(score, machine as u32));
            if self.cells[cell].is_empty() {
                self.rows[cell / last] &= !(1 << (cell % last));
            }
        }
        if let Some((cell, score)) = place {
            self.cells[cell].insert((score, machine as u32));
            self.rows[cell / last] |= 1 << (cell % last);
        }
    }

    /// Returns the current score of a machine.
    pub fn score(&self, index: &Index, machine: usize) -> u128 {
        self.measure.measure(index, machine)
    }

    /// Returns the score of a machine with these free amounts and this number of further tasks.
    pub fn planned_score(&self, machine: usize, free: &[u64], tasks: i64) -> u128 {
        self.measure.planned(machine, free, tasks)
    }

    /// Returns the machine with the lowest score, among the machines in the scope with room that `also` accepts; ties go to the lower
    /// index.
    pub fn search(&self, index: &Index, need: &[u64], scope: Scope<'_>, also: impl Fn(usize) -> bool) -> Option<usize> {
        if self.axes.is_empty() || scope.at_most(index.len()) <= index.len() / 16 {
            let scored = index.each(need, scope).map(|machine| (self.measure.measure(index, machine), machine));
            return scored.filter(|(_, machine)| also(*machine)).min().map(|(_, machine)| machine);
        }
        let from: Vec<usize> = (0..self.axes.len()).map(|d| self.class(d, need[d])).collect();
        let (outer, last) = (&from[..from.len() - 1], self.last());
        let mut best: Option<(u128, u32)> = None;
        let mut at = outer.to_vec();
        loop {
            let row = at.iter().enumerate().fold(0, |row, (d, class)| row * self.classes(d) + class);
            for class in ones(self.rows[row] & (u64::MAX << from[outer.len()])) {
                let ahead =
                    self.cells[row * last + class].iter().take_while(|found| best.is_none_or(|best| **found < best));
                let accepts =
                    |machine: usize| index.fits(machine, need) && scope.contains(id(machine)) && also(machine);
                best = ahead.copied().find(|(_, machine)| accepts(*machine as usize)).or(best);
            }
            // The next row; the last of the outer axes varies fastest.
            let Some(axis) = (0..at.len()).rev().find(|&axis| at[axis] + 1 < self.classes(axis)) else { break };
            at[axis] += 1;
            at[axis + 1..].copy_from_slice(&outer[axis + 1..]);
        }
        best.map(|(_, machine)| machine as usize)
    }
}
