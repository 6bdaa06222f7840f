//! The selection of jobs for a round: greedy per type, in order of priority.

use std::cmp::Ordering;

use super::{Mechanism, NONE};
use crate::table::Rates;

/// The rules of a selection that depend on the policy and on options.
#[derive(Clone, Copy, Debug, Default)]
pub struct SelectionRules {
    /// Whether entries of priority 0 are never selected (FIFO).
    pub skip_zero: bool,
    /// Whether all types are sorted in one list.
    pub one_list: bool,
}

/// A selected entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SelectedEntry {
    /// The entry, for [`Mechanism::charge`].
    pub entry: u32,
    /// The jobs; the second is [`NONE`] for a job alone.
    pub members: [u32; 2],
    /// The accelerators that it occupies.
    pub scale: u32,
    /// The worker type.
    pub worker_type: usize,
    /// Whether the entry has a fraction. Without one its accelerators count as used, and `new_jobs` decides whether it runs.
    pub has_target: bool,
}

/// The progress of one selection.
struct Picking<'a> {
    rates: &'a Rates,
    free: Vec<u32>,
    /// The ids of the selected jobs.
    taken: Vec<bool>,
    first: u32,
    left: usize,
    selected: Vec<SelectedEntry>,
}

impl Mechanism {
    /// Selects entries for the next round; `order` lists the worker types and `free` the accelerators of each.
    ///
    /// Within a type entries are sorted by (priority, deficit, fraction), all descending, then in order of insertion. An entry is skipped if
    /// a member is selected already, if a rate is 0, or if its scale exceeds the free accelerators.
    pub fn select(
        &mut self,
        rates: &Rates,
        order: &[usize],
        free: &[u32],
        rules: SelectionRules,
    ) -> Vec<SelectedEntry> {
        let first = self.jobs.first().map_or(0, |(id, ..)| *id);
        let last = self.jobs.last().map_or(0, |(id, ..)| *id + 1);
        let taken = vec![false; (last - first) as usize];
        let left = self.jobs.len();
        let mut picking = Picking { rates, free: free.to_vec(), taken, first, left, selected: Vec::new() };
        for &j in order {
            self.sort(j);
        }
        if rules.one_list {
            self.select_globally(order, &mut picking);
        } else {
            for &j in order {
                for &at in &self.order[j] {
                    if picking.free[j] == 0 || picking.left == 0 {
                        break;
                    }
                    self.pick(at, j, &mut picking);
                }
                if !rules.skip_zero && picking.free[j] > 0 && picking.left > 0 {
                    for at in self.without_priority(j, &picking) {
                        self.pick(at, j, &mut picking);
                    }
                }
            }
            return picking.selected;
        }
        if !rules.skip_zero {
            for &j in order {
                for at in self.without_priority(j, &picking) {
                    self.pick(at, j, &mut picking);
                }
            }
        }
        picking.selected
    }

    /// Returns the entry of an active job alone on a type, as a selection, for policies that choose jobs themselves.
    pub fn selected_alone(&self, id: u32, worker_type: usize) -> Option<SelectedEntry> {
        let own = |entry: &super::Entry| entry.alive && entry.members == [id, NONE];
        let at = self.entries.iter().position(own)?;
        let scale = self.entries[at].scale;
        Some(SelectedEntry { entry: at as u32, members: [id, NONE], scale, worker_type, has_target: true })
    }

    /// Selects in order of priority over all types.
    fn select_globally(&self, order: &[usize], picking: &mut Picking<'_>) {
        let mut all: Vec<(u32, usize)> = Vec::new();
        for &j in order {
            all.extend(self.order[j].iter().map(|&at| (at, j)));
        }
        let key = |&(at, j): &(u32, usize)| {
            let at = at as usize * self.types + j;
            let x = u128::from(self.x[at]) * u128::from(self.sum[j]);
            // The product with the other counter decides; counters are positive.
            (x, u128::from(self.received[at]), self.deficit[at], self.x[at])
        };
        all.sort_by(|a, b| {
            let (a, b) = (key(a), key(b));
            (b.0 / 1_000 * a.1).cmp(&(a.0 / 1_000 * b.1)).then(b.2.cmp(&a.2)).then(b.3.cmp(&a.3))
        });
        all.into_iter().for_each(|(at, j)| self.pick(at, j, picking));
    }

    /// Sorts the entries with a changed priority on a type into the others.
    fn sort(&mut self, j: usize) {
        if self.moved[j].is_empty() {
            return;
        }
        let mut moved = std::mem::take(&mut self.moved[j]);
        moved.sort_unstable();
        moved.dedup();
        let mut order = std::mem::take(&mut self.order[j]);
        if !order.is_empty() {
            order.retain(|at| moved.binary_search(at).is_err());
        }
        moved.sort_unstable_by(|a, b| self.compare(*a, *b, j));
        let mut merged = Vec::with_capacity(order.len() + moved.len());
        let (mut a, mut b) = (order.iter().copied().peekable(), moved.iter().copied().peekable());
        while let (Some(&x), Some(&y)) = (a.peek(), b.peek()) {
            merged.extend(if self.compare(x, y, j) == Ordering::Less { a.next() } else { b.next() });
        }
        merged.extend(a);
        merged.extend(b);
        self.order[j] = merged;
        moved.clear();
        self.moved[j] = moved;
    }

    /// Compares two entries with positive fractions on type `j`; less is earlier.
    fn compare(&self, a: u32, b: u32, j: usize) -> Ordering {
        let (p, q) = (a as usize * self.types + j, b as usize * self.types + j);
        let product = |x: usize, c: usize| u128::from(self.x[x]) * u128::from(self.received[c]);
        let priority = product(q, p).cmp(&product(p, q));
        priority
            .then_with(|| self.deficit[q].cmp(&self.deficit[p]))
            .then_with(|| self.x[q].cmp(&self.x[p]))
            .then_with(|| a.cmp(&b))
    }

    /// Returns the entries of priority 0 on type `j` without selected jobs, in their order.
    fn without_priority(&self, j: usize, picking: &Picking<'_>) -> Vec<u32> {
        let zero = |at: &u32| {
            let entry = &self.entries[*at as usize];
            let taken = |id: u32| id != NONE && picking.taken[(id - picking.first) as usize];
            entry.alive && self.x[*at as usize * self.types + j] == 0 && !entry.members.iter().any(|&id| taken(id))
        };
        let mut zero: Vec<u32> = (0..self.entries.len() as u32).filter(zero).collect();
        let deficit = |at: u32| self.deficit[at as usize * self.types + j];
        zero.sort_by_key(|&at| std::cmp::Reverse(deficit(at)));
        zero
    }

    /// Selects an entry if it is possible.
    fn pick(&self, at: u32, j: usize, picking: &mut Picking<'_>) {
        let entry = &self.entries[at as usize];
        if !entry.alive || entry.scale > picking.free[j] {
            return;
        }
        let index = |id: u32| (id - picking.first) as usize;
        let [a, b] = entry.members;
        if picking.taken[index(a)] || (b != NONE && picking.taken[index(b)]) {
            return;
        }
        let runs = match b {
            NONE => picking.rates.alone(entry.kinds[0])[j].pico > 0,
            _ => picking.rates.pair(entry.kinds[0], entry.kinds[1], j).is_some(),
        };
        if !runs {
            return;
        }
        picking.taken[(a - picking.first) as usize] = true;
        picking.left -= 1;
        if b != NONE {
            picking.taken[(b - picking.first) as usize] = true;
            picking.left -= 1;
        }
        picking.free[j] -= entry.scale;
        picking.selected.push(SelectedEntry {
            entry: at,
            members: entry.members,
            scale: entry.scale,
            worker_type: j,
            has_target: entry.has_target,
        });
    }
}
