//! The line of blocked queues in rank order, searched for the first one with a next task that fits a freed machine.
//!
//! A line is a sorted list in blocks, and blocks form groups. Demands are divided into classes: members of a class need about the same
//! amount of every resource but the leading one. Each block and group stores, per class, the smallest need of the leading resource. A
//! search thus skips blocks without a fitting demand, and its cost is charged to the queues it finds.
//!
//! Two simpler designs collapse at 10^4 users: a linear scan over users, and a search by the largest free amount of each resource over all
//! machines, since heads that fit no single machine are found again and again.

use super::ids::QueueId;
use super::offers::{CLASSES, Classes, Offers};
use crate::policy::Rank;

/// The position of a queue in the scheduling order: rank, then the run's tie rule between users, then the order of a user's own tasks. No
/// two queues have the same position.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct LineKey {
    /// The rank that the policy computes.
    pub rank: Rank,
    /// The order among equal ranks; different for every user.
    pub tie: u64,
    /// The order among the sets of one user: row by row, or the key of another order inside users.
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

#[derive(Clone, Debug)]
struct Block {
    keys: Vec<LineKey>,
    queues: Vec<QueueId>,
    classes: Vec<u8>,
    /// Demands: one run of `BLOCK` amounts per dimension.
    needs: Vec<u64>,
    /// A lower bound per class, recomputed exactly when a scan finds nothing.
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

    /// Moves the upper half into a new block.
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
#[derive(Clone, Debug)]
pub struct Line {
    classes: Classes,
    blocks: Vec<Block>,
    /// A lower bound per class for each group of blocks.
    groups: Vec<Least>,
    len: usize,
    /// The block of the last access; the next access is nearly always close to it.
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

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;
    use std::collections::BTreeMap;

    #[test]
    fn agrees_with_a_scan_of_a_sorted_map() {
        for (seed, users, dims) in [(1, 20, 2), (2, 3000, 2), (3, 400, 3), (4, 5, 1)] {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let (mut line, mut map) = (Line::new(dims), BTreeMap::new());
            let mut at: Vec<Option<LineKey>> = vec![None; users];
            for _ in 0..20_000 {
                let user = rng.random_range(0..users);
                match at[user].take() {
                    Some(place) => {
                        line.remove(&place);
                        map.remove(&place);
                    }
                    None => {
                        let place =
                            LineKey { rank: Rank::new(rng.random_range(0..8)), tie: user as u64, ..LineKey::default() };
                        let need: Vec<u64> = (0..dims).map(|_| rng.random_range(0..20)).collect();
                        line.insert(place, QueueId(user as u32), &need);
                        map.insert(place, (QueueId(user as u32), need));
                        at[user] = Some(place);
                    }
                }
                let free: Vec<Vec<u64>> =
                    (0..rng.random_range(0..4)).map(|_| (0..dims).map(|_| rng.random_range(0..6)).collect()).collect();
                let offers = Offers::for_line(&line, &free);
                let (rank, tie) = (Rank::new(rng.random_range(0..8)), rng.random_range(0..users as u64));
                let from = LineKey { rank, tie, ..LineKey::default() };
                let from = rng.random_bool(0.5).then_some(from);
                let wanted = map
                    .range(from.unwrap_or_default()..)
                    .find(|(_, (_, need))| {
                        free.iter().any(|free| need.iter().zip(free).all(|(need, free)| need <= free))
                    })
                    .map(|(place, (user, _))| (*place, *user));
                assert_eq!(line.first_fitting(from.as_ref(), &offers), wanted);
                assert_eq!(line.first(), map.first_key_value().map(|(place, (user, _))| (*place, *user)));
                assert_eq!(line.len(), map.len());
            }
        }
    }
}
