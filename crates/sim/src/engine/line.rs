//! The line of queues whose next task fitted nowhere, in rank order, searched for the first that fits now.
//!
//! A sorted list in blocks: each block knows the least demand of its members in every dimension, so blocks that
//! cannot help are passed over, and within a block demands stand dimension by dimension. Few users make one block and
//! a short scan; a hundred thousand make a search over block minima. A linear scan over users collapses at 10^4.

use super::queues::QueueId;
use crate::policy::Rank;

/// A place in line: rank, then the run's tie rule between users, then the order of a user's own tasks; no two queues
/// share one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct LineKey {
    /// The rank that the policy gives.
    pub rank: Rank,
    /// Order among equal ranks; different for every user.
    pub tie: u64,
    /// Order among a user's own: row by row, or the key of another order inside users.
    pub turn: u128,
    /// Order within that: the number of the task in its row, or the age of the queue.
    pub number: u32,
}

const BLOCK: usize = 128;

#[derive(Clone, Debug)]
struct Block {
    keys: Vec<LineKey>,
    queues: Vec<QueueId>,
    /// Demands, one run of `BLOCK` a dimension.
    needs: Vec<u64>,
    /// At most the least need of any member, per dimension; tightened when a scan finds nothing.
    least: Vec<u64>,
}

impl Block {
    fn new(dims: usize) -> Block {
        Block {
            keys: Vec::with_capacity(BLOCK),
            queues: Vec::with_capacity(BLOCK),
            needs: vec![0; BLOCK * dims],
            least: vec![u64::MAX; dims],
        }
    }

    fn len(&self) -> usize {
        self.keys.len()
    }

    fn insert(&mut self, at: usize, place: LineKey, queue: QueueId, need: &[u64]) {
        let len = self.len();
        self.keys.insert(at, place);
        self.queues.insert(at, queue);
        for (d, &need) in need.iter().enumerate() {
            let run = &mut self.needs[d * BLOCK..][..len + 1];
            run.copy_within(at..len, at + 1);
            run[at] = need;
            self.least[d] = self.least[d].min(need);
        }
    }

    fn remove(&mut self, at: usize) {
        let len = self.len();
        self.keys.remove(at);
        self.queues.remove(at);
        for d in 0..self.least.len() {
            self.needs[d * BLOCK..][..len].copy_within(at + 1.., at);
        }
    }

    /// Moves the upper half into a new block.
    fn split(&mut self) -> Block {
        let (half, len) = (self.len() / 2, self.len());
        let mut upper = Block::new(self.least.len());
        upper.keys.extend(self.keys.drain(half..));
        upper.queues.extend(self.queues.drain(half..));
        for d in 0..self.least.len() {
            upper.needs[d * BLOCK..][..len - half].copy_from_slice(&self.needs[d * BLOCK..][half..len]);
        }
        upper.tighten();
        self.tighten();
        upper
    }

    fn tighten(&mut self) {
        let len = self.len();
        for (d, least) in self.least.iter_mut().enumerate() {
            *least = self.needs[d * BLOCK..][..len].iter().copied().min().unwrap_or(u64::MAX);
        }
    }

    /// The first member from `from` on that fits.
    fn first_fitting(&mut self, from: usize, limit: &[u64]) -> Option<usize> {
        if self.least.iter().zip(limit).any(|(least, limit)| least > limit) {
            return None;
        }
        let len = self.len();
        let found = match limit {
            [a, b] => {
                let (first, second) = self.needs.split_at(BLOCK);
                (from..len).find(|&i| first[i] <= *a && second[i] <= *b)
            }
            _ => (from..len).find(|&i| limit.iter().enumerate().all(|(d, limit)| self.needs[d * BLOCK + i] <= *limit)),
        };
        if found.is_none() {
            self.tighten();
        }
        found
    }
}

/// Queues in rank order with the demand of their next task.
#[derive(Clone, Debug)]
pub struct Line {
    dims: usize,
    blocks: Vec<Block>,
    len: usize,
}

impl Line {
    /// An empty line for demands of so many dimensions.
    pub fn new(dims: usize) -> Line {
        Line { dims, blocks: Vec::new(), len: 0 }
    }

    /// How many queues stand in it.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether nobody does.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The block in which a place is or would be.
    fn block_of(&self, place: &LineKey) -> usize {
        let after = self.blocks.partition_point(|block| block.keys.first().is_some_and(|first| first <= place));
        after.saturating_sub(1)
    }

    /// Puts a queue in line.
    pub fn insert(&mut self, place: LineKey, queue: QueueId, need: &[u64]) {
        if self.blocks.is_empty() {
            self.blocks.push(Block::new(self.dims));
        }
        let mut at = self.block_of(&place);
        if self.blocks[at].len() == BLOCK {
            let upper = self.blocks[at].split();
            self.blocks.insert(at + 1, upper);
            at += usize::from(self.blocks[at + 1].keys[0] <= place);
        }
        let block = &mut self.blocks[at];
        let slot = block.keys.partition_point(|other| *other < place);
        debug_assert!(block.keys.get(slot) != Some(&place), "keys differ");
        block.insert(slot, place, queue, need);
        self.len += 1;
    }

    /// Takes the queue at a place out of line. Panics: if nobody stands there.
    pub fn remove(&mut self, place: &LineKey) {
        let at = self.block_of(place);
        let slot = self.blocks[at].keys.binary_search(place).expect("who stands in line is at its place");
        self.blocks[at].remove(slot);
        if self.blocks[at].len() == 0 {
            self.blocks.remove(at);
        }
        self.len -= 1;
    }

    /// The first queue of all.
    pub fn first(&self) -> Option<(LineKey, QueueId)> {
        self.blocks.first().map(|block| (block.keys[0], block.queues[0]))
    }

    /// The first queue at or behind `from` whose demand is at most `limit` in every dimension.
    pub fn first_fitting(&mut self, from: Option<&LineKey>, limit: &[u64]) -> Option<(LineKey, QueueId)> {
        let mut start = 0;
        let first = from.map_or(0, |from| {
            let at = self.block_of(from);
            start = self.blocks.get(at).map_or(0, |block| block.keys.partition_point(|place| place < from));
            at
        });
        for block in self.blocks.iter_mut().skip(first) {
            if let Some(at) = block.first_fitting(start, limit) {
                return Some((block.keys[at], block.queues[at]));
            }
            start = 0;
        }
        None
    }

    /// Everybody in line.
    pub fn queues(&self) -> Vec<QueueId> {
        self.blocks.iter().flat_map(|block| block.queues.iter().copied()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;
    use std::collections::BTreeMap;

    #[test]
    fn agrees_with_a_scan_of_a_sorted_map() {
        for (seed, users, dims) in [(1, 20, 2), (2, 900, 2), (3, 400, 3), (4, 5, 1)] {
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
                let limit: Vec<u64> = (0..dims).map(|_| rng.random_range(0..6)).collect();
                let (rank, tie) = (Rank::new(rng.random_range(0..8)), rng.random_range(0..users as u64));
                let from = LineKey { rank, tie, ..LineKey::default() };
                let from = rng.random_bool(0.5).then_some(from);
                let wanted = map
                    .range(from.unwrap_or_default()..)
                    .find(|(_, (_, need))| need.iter().zip(&limit).all(|(need, limit)| need <= limit))
                    .map(|(place, (user, _))| (*place, *user));
                assert_eq!(line.first_fitting(from.as_ref(), &limit), wanted);
                assert_eq!(line.first(), map.first_key_value().map(|(place, (user, _))| (*place, *user)));
                assert_eq!(line.len(), map.len());
            }
        }
    }
}
