//! Finds the machine with the free amounts that are best aligned with the demand: dot-product.
//!
//! Machines of one kind (of equal capacity) with the same free amounts form a group of *equals*: they have the same score, and the first
//! one is the best. Groups of one kind with the same classes of free amounts form a cell, and these classes bound the score of all its
//! members. Cells are searched in order of their bounds, the highest first, as long as the bound is above the best score so far. Cost:
//! O(cells with machines · resources), plus the groups of equals in the searched cells, regardless of the number of machines.

use std::collections::{BTreeSet, HashMap};

use super::index::{Index, id};
use super::rules::alignment;
use super::scope::Scope;
use super::searches::under;
use plimsoll_base::units::{MAX_DIMS, Resources};

/// The number of resources that define cells: the first resources of the run.
const AXES: usize = 3;

/// A capacity of machines, and the weight of each resource in scores on these machines.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
struct MachineKind {
    capacity: Resources,
    weights: [u128; MAX_DIMS],
}

#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
struct IndexCell {
    kind: u32,
    classes: [u8; AXES],
    /// Indices of the equals in the cell.
    members: Vec<usize>,
    /// Its index in [`Climb::live`], while it has members.
    live: usize,
}

/// Machines of one kind that have the same amounts free.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
struct Equals {
    kind: u32,
    free: Resources,
    machines: BTreeSet<u32>,
    cell: usize,
    /// Its index in the cell's members.
    place: usize,
}

#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Climb {
    kinds: Vec<MachineKind>,
    kind_of: HashMap<Resources, u32>,
    /// The kind of each machine.
    kind: Vec<u32>,
    cells: Vec<IndexCell>,
    cell_of: HashMap<(u32, [u8; AXES]), usize>,
    /// Indices of the cells with members.
    live: Vec<usize>,
    /// All groups of equals. [`Climb::spare`] lists the groups without machines.
    equals: Vec<Equals>,
    spare: Vec<usize>,
    equals_of: HashMap<(u32, Resources), usize>,
    /// The equals of each present machine.
    places: Vec<Option<usize>>,
    /// A buffer for cells with their bounds, kept to reuse its memory.
    bounds: Vec<(u128, usize)>,
}

/// The score and the index of the best machine so far.
type Best = Option<(u128, usize)>;

/// Returns whether a score on a machine is better: higher, or equal on an earlier machine.
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

    /// Sets the kind of a machine that is new or has another capacity.
    pub fn weigh(&mut self, index: &Index, machine: usize, capacity: &Resources) {
        let kind = *self.kind_of.entry(*capacity).or_insert_with(|| {
            self.kinds.push(MachineKind { capacity: *capacity, weights: alignment(capacity) });
            self.kinds.len() as u32 - 1
        });
        self.kind.resize(self.kind.len().max(machine + 1), 0);
        self.kind[machine] = kind;
        self.changed(index, machine);
    }

    /// Moves a machine to the equals that match its current free amounts.
    pub fn changed(&mut self, index: &Index, machine: usize) {
        self.places.resize(self.places.len().max(machine + 1), None);
        let now = index.is_present(machine).then(|| (self.kind[machine], index.free(machine)));
        let old = self.places[machine];
        if old.map(|at| (self.equals[at].kind, self.equals[at].free)) == now {
            return;
        }
        if let Some(at) = old {
            self.equals[at].machines.remove(&(machine as u32));
            if self.equals[at].machines.is_empty() {
                self.close(at);
            }
        }
        self.places[machine] = now.map(|(kind, free)| {
            let at = self.equals_of.get(&(kind, free)).copied();
            let at = at.unwrap_or_else(|| self.open(index, kind, free));
            self.equals[at].machines.insert(machine as u32);
            at
        });
    }

    /// Creates the equals for the first machine with these free amounts.
    fn open(&mut self, index: &Index, kind: u32, free: Resources) -> usize {
        let mut classes = [0; AXES];
        for (class, (axis, free)) in classes.iter_mut().zip(index.axes().iter().zip(free.0)) {
            *class = axis.class(free) as u8;
        }
        let cell = *self.cell_of.entry((kind, classes)).or_insert_with(|| {
            self.cells.push(IndexCell { kind, classes, members: Vec::new(), live: 0 });
            self.cells.len() - 1
        });
        if self.cells[cell].members.is_empty() {
            self.cells[cell].live = self.live.len();
            self.live.push(cell);
        }
        let place = self.cells[cell].members.len();
        let at = match self.spare.pop() {
            Some(at) => {
                let equals = &mut self.equals[at];
                (equals.kind, equals.free, equals.cell, equals.place) = (kind, free, cell, place);
                at
            }
            None => {
                self.equals.push(Equals { kind, free, machines: BTreeSet::new(), cell, place });
                self.equals.len() - 1
            }
        };
        self.cells[cell].members.push(at);
        self.equals_of.insert((kind, free), at);
        at
    }

    /// Removes equals without machines from their cell.
    fn close(&mut self, at: usize) {
        let Equals { kind, free, cell, place, .. } = self.equals[at];
        self.equals_of.remove(&(kind, free));
        self.spare.push(at);
        self.cells[cell].members.swap_remove(place);
        if let Some(&moved) = self.cells[cell].members.get(place) {
            self.equals[moved].place = place;
        }
        if self.cells[cell].members.is_empty() {
            let live = self.cells[cell].live;
            self.live.swap_remove(live);
            if let Some(&moved) = self.live.get(live) {
                self.cells[moved].live = live;
            }
        }
    }

    /// Returns the score of machines of a kind with these free amounts.
    fn score(&self, kind: u32, free: &[u64], need: &[u64]) -> u128 {
        let parts = need.iter().zip(free).zip(&self.kinds[kind as usize].weights);
        parts.map(|((need, free), weight)| u128::from(*need) * u128::from(*free) * weight).sum()
    }

    /// Returns the score of a machine with these free amounts.
    pub fn score_on(&self, machine: usize, free: &[u64], need: &[u64]) -> u128 {
        self.score(self.kind[machine], free, need)
    }

    /// Returns an upper bound of the scores in a cell; `None` if its classes or its kind exclude that any of its machines has room.
    fn bound(&self, index: &Index, cell: &IndexCell, need: &[u64], classes: &[u8; AXES]) -> Option<u128> {
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
                let score = self.score(self.kind[machine], index.amounts(machine), need);
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
            for equals in self.cells[cell].members.iter().map(|&at| &self.equals[at]) {
                let free = equals.free.slice(need.len());
                let score = self.score(equals.kind, free, need);
                if best.is_some_and(|(highest, _)| score < highest) || !under(need, free) {
                    continue;
                }
                // The first accepted machine of the group is used if it is better than the best machine so far.
                let machines = equals.machines.iter().map(|&machine| machine as usize);
                let mut ahead = machines.take_while(|&machine| beats(score, machine, &best));
                let accepted = ahead.find(|&machine| scope.contains(id(machine)) && also(machine));
                best = accepted.map(|machine| (score, machine)).or(best);
            }
        }
        self.bounds = bounds;
        best.map(|(_, machine)| machine)
    }
}
