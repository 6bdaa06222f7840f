//! The line of blocked queues in rank order, searched for the first one with a next task that fits a freed machine.
//!
//! A line is a sorted list in blocks, and blocks form groups. Demands are divided into classes: the members of a class need about the same
//! amount of every resource except the leading one. Each block and group stores, per class, the smallest need of the leading resource. A
//! search thus skips blocks without a fitting demand, and its cost is charged to the queues it finds.
//!
//! Two simpler designs collapse at 10^4 users. One is a linear scan over users. The other compares with the largest free amount of each
//! resource over all machines, and again and again finds queues with a next task that fits no single machine.

use super::ids::QueueId;
use crate::cluster::Machines;
use crate::policy::Rank;
use plimsoll_base::units::MachineId;

/// The position of a queue in the scheduling order: rank, then the run's tie rule between users, then the order of a user's own tasks. No
/// two queues have the same position.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub struct LineKey {
    /// The rank that the policy computes.
    pub rank: Rank,
    /// The order among equal ranks; different for every user.
    pub tie: u64,
    /// The order among the task sets of one user: the row, or the key of another job order.
    pub turn: u128,
    /// The order within equal `turn`: the number of the task in its row, or the age of the queue.
    pub number: u32,
}

/// The maximum number of members of a block.
const BLOCK: usize = 64;

/// The number of blocks of a group.
const GROUP: usize = 16;

/// A lower bound of the leading resource's need among the members of each class; [`u64::MAX`] for a class without members.
type Least = [u64; CLASSES];

#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
struct Block {
    keys: Vec<LineKey>,
    queues: Vec<QueueId>,
    classes: Vec<u8>,
    /// Demands: one run of `BLOCK` amounts per dimension.
    needs: Vec<u64>,
    /// A lower bound per class. A scan that finds nothing, and a split, make it exact.
    least: Least,
}

impl Block {
    fn new(dims: usize) -> Block {
        Block {
            keys: Vec::with_capacity(BLOCK),
            queues: Vec::with_capacity(BLOCK),
            classes: Vec::with_capacity(BLOCK),
            needs: vec![0; BLOCK * dims],
            least: [u64::MAX; CLASSES],
        }
    }

    fn len(&self) -> usize {
        self.keys.len()
    }

    fn insert(&mut self, at: usize, place: LineKey, queue: QueueId, class: u8, need: &[u64]) {
        let len = self.len();
        self.keys.insert(at, place);
        self.queues.insert(at, queue);
        self.classes.insert(at, class);
        for (run, &need) in self.needs.chunks_exact_mut(BLOCK).zip(need) {
            run.copy_within(at..len, at + 1);
            run[at] = need;
        }
    }

    fn remove(&mut self, at: usize) {
        let len = self.len();
        self.keys.remove(at);
        self.queues.remove(at);
        self.classes.remove(at);
        for run in self.needs.chunks_exact_mut(BLOCK) {
            run.copy_within(at + 1..len, at);
        }
    }

    /// Moves the second half of the members into a new block.
    fn split(&mut self, lead: usize) -> Block {
        let (half, len) = (self.len() / 2, self.len());
        let mut upper = Block::new(self.needs.len() / BLOCK);
        upper.keys.extend(self.keys.drain(half..));
        upper.queues.extend(self.queues.drain(half..));
        upper.classes.extend(self.classes.drain(half..));
        for (to, from) in upper.needs.chunks_exact_mut(BLOCK).zip(self.needs.chunks_exact(BLOCK)) {
            to[..len - half].copy_from_slice(&from[half..len]);
        }
        upper.tighten(lead);
        self.tighten(lead);
        upper
    }

    fn tighten(&mut self, lead: usize) {
        self.least = [u64::MAX; CLASSES];
        for (class, need) in self.classes.iter().zip(&self.needs[lead * BLOCK..]) {
            let least = &mut self.least[usize::from(*class)];
            *least = (*least).min(*need);
        }
    }

    /// Returns the first member from `from` on that fits.
    fn first_fitting(&self, from: usize, lead: usize, offers: &Offers) -> Option<usize> {
        let leading = &self.needs[lead * BLOCK..][..self.len()];
        let fits = |at: usize| offers.fit(self.needs.iter().skip(at).step_by(BLOCK).copied());
        let near = self.classes.iter().zip(leading).enumerate().skip(from);
        near.filter(|(_, (class, need))| offers.may_fit(**class, **need)).map(|(at, _)| at).find(|at| fits(*at))
    }
}

/// Queues in rank order with the demand of their next task.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct Line {
    classes: Classes,
    blocks: Vec<Block>,
    /// A lower bound per class for each group of blocks.
    groups: Vec<Least>,
    len: usize,
    /// The block of the last access; the next access is usually close to it.
    latest: usize,
}

impl Line {
    /// Creates an empty line for demands of this number of dimensions.
    pub fn new(dims: usize) -> Line {
        Line { classes: Classes::new(dims), blocks: Vec::new(), groups: Vec::new(), len: 0, latest: 0 }
    }

    /// Returns the number of queues.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no queues.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the classes of demands.
    pub fn classes(&self) -> &Classes {
        &self.classes
    }

    /// Returns the block that contains a position, or would contain it.
    fn block_of(&mut self, place: &LineKey) -> usize {
        let begins = |block: &Block| block.keys.first().is_some_and(|first| first <= place);
        let (at, next) = (self.blocks.get(self.latest), self.blocks.get(self.latest + 1));
        if !at.is_some_and(begins) || next.is_some_and(begins) {
            self.latest = self.blocks.partition_point(begins).saturating_sub(1);
        }
        self.latest
    }

    /// Inserts a queue at a position.
    pub fn insert(&mut self, place: LineKey, queue: QueueId, need: &[u64]) {
        if self.blocks.is_empty() {
            self.blocks.push(Block::new(need.len()));
            self.groups.push([u64::MAX; CLASSES]);
        }
        let (class, lead) = (self.classes.class_of(need), self.classes.lead);
        let mut at = self.block_of(&place);
        if self.blocks[at].len() == BLOCK {
            let upper = self.blocks[at].split(lead);
            self.blocks.insert(at + 1, upper);
            self.regroup(at);
            at += usize::from(self.blocks[at + 1].keys[0] <= place);
        }
        let block = &mut self.blocks[at];
        let slot = block.keys.partition_point(|other| *other < place);
        debug_assert!(block.keys.get(slot) != Some(&place), "keys differ");
        block.insert(slot, place, queue, class, need);
        for least in [&mut block.least, &mut self.groups[at / GROUP]] {
            let least = &mut least[usize::from(class)];
            *least = (*least).min(need[lead]);
        }
        self.len += 1;
    }

    /// Removes the queue at a position. Panics: if there is none.
    pub fn remove(&mut self, place: &LineKey) {
        let at = self.block_of(place);
        let slot = self.blocks[at].keys.binary_search(place).expect("a queued user is at its position");
        self.blocks[at].remove(slot);
        if self.blocks[at].len() == 0 {
            self.blocks.remove(at);
            self.regroup(at);
        }
        self.len -= 1;
    }

    /// Recomputes the groups from this block on, after blocks have moved.
    fn regroup(&mut self, block: usize) {
        self.groups.truncate(block / GROUP);
        let rest = self.blocks.chunks(GROUP).skip(self.groups.len());
        self.groups.extend(rest.map(least_of));
    }

    /// Returns the first queue in rank order.
    pub fn first(&self) -> Option<(LineKey, QueueId)> {
        self.blocks.first().map(|block| (block.keys[0], block.queues[0]))
    }

    /// Returns the first queue at or after `from` with a demand that fits a freed machine.
    pub fn first_fitting(&mut self, from: Option<&LineKey>, offers: &Offers) -> Option<(LineKey, QueueId)> {
        let (mut at, mut start) = (0, 0);
        if let Some(from) = from {
            at = self.block_of(from);
            start = self.blocks.get(at).map_or(0, |block| block.keys.partition_point(|place| place < from));
        }
        let lead = self.classes.lead;
        while at < self.blocks.len() {
            let group = at / GROUP;
            if !offers.may_fit_any(&self.groups[group]) {
                (at, start) = ((group + 1) * GROUP, 0);
                continue;
            }
            let block = &mut self.blocks[at];
            if offers.may_fit_any(&block.least) {
                if let Some(slot) = block.first_fitting(start, lead, offers) {
                    self.latest = at;
                    return Some((block.keys[slot], block.queues[slot]));
                }
                block.tighten(lead);
                self.groups[group] = least_of(&self.blocks[group * GROUP..self.blocks.len().min((group + 1) * GROUP)]);
            }
            (at, start) = (at + 1, 0);
        }
        None
    }

    /// Returns all queues, in rank order.
    pub fn queues(&self) -> Vec<QueueId> {
        self.blocks.iter().flat_map(|block| block.queues.iter().copied()).collect()
    }
}

fn least_of(blocks: &[Block]) -> Least {
    let mut least = [u64::MAX; CLASSES];
    for block in blocks {
        least.iter_mut().zip(block.least).for_each(|(least, of_block)| *least = (*least).min(of_block));
    }
    least
}

/// The maximum number of demand classes of a line.
pub const CLASSES: usize = 16;

/// Classes of demands, each with a floor: its members need at least this amount of every resource but the leading one.
///
/// The first sixteen combinations become classes of equal demands. Any further combination joins the class with the highest floor that it
/// reaches. A combination that reaches no floor joins the lowest class and lowers its floor.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct Classes {
    /// The resource that distinguishes members of a class.
    pub lead: usize,
    /// The floors, one after the other; the leading resource's amount is 0.
    floors: Vec<u64>,
    dims: usize,
    /// The number of times that a floor was added or lowered.
    version: u64,
}

impl Classes {
    pub fn new(dims: usize) -> Classes {
        // The leading resource is memory, which has more different values than cores or devices have.
        Classes { lead: usize::from(dims > 1), floors: Vec::new(), dims, version: 0 }
    }

    fn floors(&self) -> impl Iterator<Item = &[u64]> {
        self.floors.chunks_exact(self.dims)
    }

    /// Returns the class of a demand; adds or lowers a floor if necessary.
    pub fn class_of(&mut self, need: &[u64]) -> u8 {
        let others = |d: &usize| *d != self.lead;
        let is = |floor: &[u64]| (0..need.len()).filter(others).all(|d| floor[d] == need[d]);
        let known = self.floors().position(is);
        let len = self.floors.len() / self.dims;
        let class = match known {
            Some(class) => class,
            None if len < CLASSES => {
                self.floors.extend((0..need.len()).map(|d| if d == self.lead { 0 } else { need[d] }));
                self.version += 1;
                len
            }
            None => self.highest_reached(need).unwrap_or_else(|| self.lower(need)),
        };
        class as u8
    }

    /// Returns the class with the highest floor that a demand reaches.
    fn highest_reached(&self, need: &[u64]) -> Option<usize> {
        let reached = self.floors().enumerate().filter(|(_, floor)| floor.iter().zip(need).all(|(f, n)| f <= n));
        reached.max_by_key(|(_, floor)| height(floor)).map(|(class, _)| class)
    }

    /// Lowers the lowest floor until a demand reaches it.
    fn lower(&mut self, need: &[u64]) -> usize {
        let lowest = self.floors().enumerate().min_by_key(|(_, floor)| height(floor)).map_or(0, |(class, _)| class);
        let floor = &mut self.floors[lowest * self.dims..][..self.dims];
        floor.iter_mut().zip(need).for_each(|(floor, need)| *floor = (*floor).min(*need));
        self.version += 1;
        lowest
    }
}

/// Returns the sum of the binary logarithms of the amounts. Logarithms are used because the units of resources differ.
fn height(floor: &[u64]) -> u32 {
    floor.iter().map(|amount| u64::BITS - amount.leading_zeros()).sum()
}

/// The free amounts of freed machines.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Offers {
    machines: Vec<MachineId>,
    /// The amounts, one machine after the other.
    free: Vec<u64>,
    dims: usize,
    /// For each class of the line, one more than the largest amount of the leading resource among machines that reach the floor; 0 if no
    /// machine does.
    bounds: Vec<u64>,
    /// The version of the classes for which the bounds were computed.
    version: u64,
}

impl Offers {
    /// Creates offers without machines, for demands of this number of dimensions.
    pub fn new(dims: usize) -> Offers {
        Offers { dims, ..Offers::default() }
    }

    /// Creates offers of machines with these free amounts, for one search of a line.
    pub fn for_line(line: &Line, free: &[impl AsRef<[u64]>]) -> Offers {
        let classes = line.classes();
        let free = free.iter().flat_map(|free| free.as_ref().iter().copied()).collect();
        let mut offers = Offers { free, version: u64::MAX, ..Offers::new(classes.dims) };
        offers.bound(classes);
        offers
    }

    /// Reads the free amounts of these machines, which must be sorted.
    pub fn read(&mut self, freed: impl Iterator<Item = MachineId>, machines: &Machines) {
        self.machines.clear();
        self.machines.extend(freed);
        self.read_again(machines);
    }

    /// Reads the free amounts of the same machines again.
    pub fn read_again(&mut self, machines: &Machines) {
        self.free.clear();
        for &machine in &self.machines {
            self.free.extend_from_slice(machines.free(machine).slice(self.dims));
        }
        self.version = u64::MAX;
    }

    /// Updates a machine after its free amounts have shrunk. Returns whether the machine is one of the freed ones.
    pub fn less(&mut self, machine: MachineId, machines: &Machines, classes: &Classes) -> bool {
        let Ok(at) = self.machines.binary_search(&machine) else { return false };
        let free = &mut self.free[at * self.dims..][..self.dims];
        let before = free[classes.lead];
        free.copy_from_slice(machines.free(machine).slice(self.dims));
        // The bounds of classes that were added since then are computed before the next search.
        for (known, floor) in self.bounds.iter_mut().zip(classes.floors()) {
            if *known == before + 1 {
                *known = bound(&self.free, classes.lead, floor);
            }
        }
        true
    }

    /// Computes the bounds for a line, unless its classes are unchanged since the last computation.
    pub fn bound(&mut self, classes: &Classes) {
        if self.version != classes.version {
            self.bounds.clear();
            self.bounds.extend(classes.floors().map(|floor| bound(&self.free, classes.lead, floor)));
            self.version = classes.version;
        }
    }

    /// Returns whether a machine may have room for a demand of a class with this need of the leading resource. The result is exact if all
    /// members of the class need equal amounts of the other resources.
    pub fn may_fit(&self, class: u8, lead: u64) -> bool {
        lead < self.bounds[usize::from(class)]
    }

    /// Returns whether a machine may have room for a demand with at least these needs by class.
    pub fn may_fit_any(&self, least: &[u64; CLASSES]) -> bool {
        self.bounds.iter().zip(least).any(|(bound, least)| least < bound)
    }

    /// Returns whether one machine has room for the whole demand.
    pub fn fit(&self, need: impl Iterator<Item = u64> + Clone) -> bool {
        self.free.chunks_exact(self.dims).any(|free| free.iter().zip(need.clone()).all(|(free, need)| need <= *free))
    }
}

/// Returns one more than the largest amount of the leading resource among machines that reach a floor; 0 without such machines.
fn bound(free: &[u64], lead: usize, floor: &[u64]) -> u64 {
    let reach = free.chunks_exact(floor.len()).filter(|free| free.iter().zip(floor).all(|(free, floor)| floor <= free));
    reach.map(|free| free[lead].saturating_add(1)).max().unwrap_or(0)
}

#[cfg(test)]
mod tests;
