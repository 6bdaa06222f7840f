//! The free amounts of every machine, and the machines with room for a demand, 64 at a time.
//!
//! Amounts fall into classes ([`ClassAxis`]). For every resource and class there is a set, with one bit per machine, of the machines that
//! have at least this class free. The machines with room for a demand are the AND of one word per resource. Only machines in the same
//! class as the demand are tested one by one. A second level has one bit for each block with a machine in the set, so that a search skips
//! 64 blocks (4096 machines) at once. (A tree of component-wise maxima backtracks often with two resources. Maxima per block have the same
//! problem if some machines of a block lack one resource and others lack another.)

use super::axis::ClassAxis;
use super::scope::{BLOCK, Bits, BlockRows, Scope, ones};
use super::searches::{Searches, under};
use plimsoll_base::units::{MAX_DIMS, MachineId, Resources};

#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Index {
    dims: usize,
    count: usize,
    /// Free amounts, machine by machine.
    free: Vec<u64>,
    /// Machines that are present.
    present: Bits,
    axes: Vec<ClassAxis>,
    /// Sets of present machines. Resource by resource, there is one set per class: the machines with at least this class of the resource
    /// free. The last set is always empty. No sets are kept for a single machine.
    rows: BlockRows,
    /// The index of the set that is always empty.
    nobody: usize,
    /// The index of the first set of each resource.
    first_row: [usize; MAX_DIMS],
    searches: Searches,
}

/// A demand with its sets: for every resource, the set of machines that may have enough, and the set of machines that certainly have
/// enough.
pub(super) struct IndexQuery<'a> {
    pub need: &'a [u64],
    may: [usize; MAX_DIMS],
    /// The machines that certainly have enough; the empty set if no class guarantees it.
    sure: [usize; MAX_DIMS],
}

impl Index {
    pub fn new(dims: usize, capacities: &[Resources]) -> Index {
        let most = |d: usize| capacities.iter().map(|capacity| capacity.0[d]).max().unwrap_or(0);
        let axes: Vec<ClassAxis> = (0..dims).map(|d| ClassAxis::new(most(d))).collect();
        let mut first_row = [0; MAX_DIMS];
        for d in 1..dims {
            first_row[d] = first_row[d - 1] + axes[d - 1].least.len();
        }
        let nobody = axes.iter().map(|axis| axis.least.len()).sum();
        let mut index = Index {
            dims,
            count: 0,
            free: Vec::with_capacity(capacities.len() * dims),
            present: Bits::default(),
            axes,
            rows: BlockRows::new(nobody + 1),
            nobody,
            first_row,
            searches: Searches::new(dims),
        };
        capacities.iter().for_each(|capacity| index.push(capacity));
        index
    }

    /// Adds a machine with all amounts free.
    pub fn push(&mut self, capacity: &Resources) {
        self.free.extend_from_slice(capacity.slice(self.dims));
        self.count += 1;
        self.rows.grow(self.count);
        if self.count == 2 {
            self.show(0, self.is_present(0));
        }
        self.show(self.count - 1, true);
    }

    /// Returns whether there is a single machine, as in a pooled cluster. This machine is tested directly, and no sets are kept.
    fn is_alone(&self) -> bool {
        self.count == 1
    }

    pub fn len(&self) -> usize {
        self.count
    }

    pub fn dims(&self) -> usize {
        self.dims
    }

    pub fn axes(&self) -> &[ClassAxis] {
        &self.axes
    }

    /// Returns the number of groups of 64 blocks; the last group may be smaller.
    pub fn above(&self) -> usize {
        self.count.div_ceil(BLOCK * BLOCK)
    }

    /// Returns the free amounts of a machine.
    pub fn amounts(&self, machine: usize) -> &[u64] {
        &self.free[machine * self.dims..][..self.dims]
    }

    pub fn free(&self, machine: usize) -> Resources {
        let mut free = Resources::ZERO;
        free.0[..self.dims].copy_from_slice(self.amounts(machine));
        free
    }

    /// Sets the free amounts of a machine.
    pub fn set(&mut self, machine: usize, free: &Resources) {
        for d in 0..self.dims {
            self.insert_at(machine, d, free.0[d]);
        }
        self.freed(machine);
    }

    /// Updates the stored searches for a machine that has more free amounts or is present again.
    fn freed(&mut self, machine: usize) {
        if self.is_alone() {
            return;
        }
        self.searches.freed(machine / BLOCK, &self.free[machine * self.dims..][..self.dims]);
    }

    fn insert_at(&mut self, machine: usize, d: usize, amount: u64) {
        let old = std::mem::replace(&mut self.free[machine * self.dims + d], amount);
        if self.is_alone() {
            return;
        }
        let (before, now) = (self.axes[d].class(old), self.axes[d].class(amount));
        if before != now && self.is_present(machine) {
            let first = self.first_row[d] + 1;
            self.rows.set(machine, first + before.min(now)..first + before.max(now), now > before);
        }
    }

    pub fn is_present(&self, machine: usize) -> bool {
        self.present.get(machine)
    }

    /// Includes a machine in searches or excludes it.
    pub fn show(&mut self, machine: usize, there: bool) {
        self.present.set(machine, there);
        if self.is_alone() {
            return;
        }
        self.freed(machine);
        for d in 0..self.dims {
            let class = self.axes[d].class(self.amounts(machine)[d]);
            self.rows.set(machine, self.first_row[d]..self.first_row[d] + class + 1, there);
        }
    }

    fn enough(&self, machine: usize, need: &[u64]) -> bool {
        under(need, self.amounts(machine))
    }

    pub fn fits(&self, machine: usize, need: &[u64]) -> bool {
        self.is_present(machine) && self.enough(machine, need)
    }

    /// Allocates amounts of a machine. Panics: if there is not enough. The caller has just found the machine.
    pub fn allocate(&mut self, machine: usize, need: &[u64]) {
        for (d, need) in need.iter().enumerate() {
            let free = self.amounts(machine)[d];
            self.insert_at(machine, d, free.checked_sub(*need).expect("a placed task fits its machine"));
        }
    }

    pub fn give(&mut self, machine: usize, need: &[u64], count: u32) {
        for (d, need) in need.iter().enumerate() {
            let free = self.amounts(machine)[d];
            self.insert_at(machine, d, free + need * u64::from(count));
        }
        self.freed(machine);
    }

    pub fn query<'a>(&self, need: &'a [u64]) -> IndexQuery<'a> {
        let (mut may, mut sure) = ([0; MAX_DIMS], [0; MAX_DIMS]);
        for (d, need) in need.iter().enumerate() {
            let axis = &self.axes[d];
            let class = axis.class(*need);
            let sure_class = class + usize::from(axis.least[class] < *need);
            may[d] = self.first_row[d] + class;
            sure[d] = if sure_class < axis.least.len() { self.first_row[d] + sure_class } else { self.nobody };
        }
        IndexQuery { need, may, sure }
    }

    /// Returns, one bit each, which of 64 blocks may have room and have members of the scope.
    pub fn candidates(&self, above: usize, asked: &IndexQuery<'_>, scope: Scope<'_>) -> u64 {
        if self.is_alone() {
            return 1;
        }
        let rows = self.rows.above(above);
        let may = &asked.may[..asked.need.len()];
        let blocks = may.iter().fold(self.present.above(above), |blocks, row| blocks & rows[*row]);
        if blocks == 0 || scope.is_whole() { blocks } else { blocks & scope.blocks(above) }
    }

    /// Returns the machines of a block that have room, one bit each.
    pub fn room(&self, block: usize, asked: &IndexQuery<'_>) -> u64 {
        if self.is_alone() {
            return u64::from(self.fits(0, asked.need));
        }
        let (mut may, mut sure) = (self.present.word(block), u64::MAX);
        let rows = self.rows.words(block);
        for row in &asked.may[..asked.need.len()] {
            may &= rows[*row];
        }
        if may == 0 {
            return 0;
        }
        for row in &asked.sure[..asked.need.len()] {
            sure &= rows[*row];
        }
        let in_question = ones(may & !sure).filter(|bit| !self.enough(block * BLOCK + bit, asked.need));
        in_question.fold(may, |room, bit| room & !(1 << bit))
    }

    /// Returns the first machine with room that is in the scope and that `also` accepts.
    pub fn first(&mut self, need: &[u64], scope: Scope<'_>, also: impl Fn(usize) -> bool) -> Option<usize> {
        if self.is_alone() {
            return Some(0).filter(|&machine| self.fits(machine, need) && scope.contains(id(machine)) && also(machine));
        }
        let whole = scope.is_whole();
        let asked = self.query(need);
        let from = self.searches.from(need);
        // The first block with room is stored whether or not `also` accepts a machine in it.
        let mut seen = usize::MAX;
        let mut found = None;
        'above: for above in from / BLOCK..self.above() {
            let mut blocks = self.candidates(above, &asked, scope);
            if above == from / BLOCK {
                blocks &= u64::MAX << (from % BLOCK);
            }
            for block in ones(blocks).map(|bit| above * BLOCK + bit) {
                let room = self.room(block, &asked);
                if room != 0 {
                    seen = seen.min(block);
                }
                let of_scope = if whole { room } else { room & scope.machines(block) };
                found = ones(of_scope).map(|bit| block * BLOCK + bit).find(|&machine| also(machine));
                if found.is_some() {
                    break 'above;
                }
            }
        }
        if whole {
            self.searches.remember(need, seen.min(self.count.div_ceil(BLOCK)));
        }
        found
    }

    /// Returns the machines of a scope that have room, lowest first.
    pub fn each<'a>(&'a self, need: &'a [u64], scope: Scope<'a>) -> impl Iterator<Item = usize> {
        let asked = std::rc::Rc::new(self.query(need));
        (0..self.above()).flat_map(move |above| {
            let asked = asked.clone();
            ones(self.candidates(above, &asked, scope)).flat_map(move |bit| {
                let block = above * BLOCK + bit;
                ones(self.room(block, &asked) & scope.machines(block)).map(move |bit| block * BLOCK + bit)
            })
        })
    }
}

/// Returns a machine's identifier.
pub(super) fn id(machine: usize) -> MachineId {
    MachineId(machine as u32)
}
