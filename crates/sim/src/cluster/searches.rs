//! The latest searches, so that the next one need not begin at the first machine.

/// How many searches of first-fit are remembered.
const SEARCHES: usize = 8;

/// The latest demands of first-fit, and the first block that may have room for as much: blocks before it have none, for
/// anything that needs at least as much everywhere.
#[derive(Clone, Debug)]
pub(super) struct Searches {
    /// The needs one after the other; more than any task needs if none is remembered yet.
    needs: Vec<u64>,
    blocks: [usize; SEARCHES],
    /// The last one; the one behind it is forgotten next.
    latest: usize,
}

impl Searches {
    pub fn new(dims: usize) -> Searches {
        Searches { needs: vec![u64::MAX; SEARCHES * dims], blocks: [0; SEARCHES], latest: 0 }
    }

    /// From where on this is to be searched for.
    pub fn from(&self, need: &[u64]) -> usize {
        if self.is_latest(need) {
            return self.blocks[self.latest];
        }
        let known = self.needs.chunks_exact(need.len().max(1)).zip(self.blocks);
        known.filter(|(known, _)| under(known, need)).map(|(_, block)| block).max().unwrap_or(0)
    }

    /// Tasks of a job need the same, one after the other; together they are one search.
    fn is_latest(&self, need: &[u64]) -> bool {
        self.needs[self.latest * need.len()..][..need.len()] == *need
    }

    /// This was searched for, and a block is the first with room.
    pub fn remember(&mut self, need: &[u64], block: usize) {
        if !self.is_latest(need) {
            self.latest = (self.latest + 1) % SEARCHES;
            self.needs[self.latest * need.len()..][..need.len()].copy_from_slice(need);
        }
        self.blocks[self.latest] = block;
    }

    /// A machine of a block has this free now, and had less before.
    pub fn freed(&mut self, block: usize, free: &[u64]) {
        for (known, first) in self.needs.chunks_exact(free.len().max(1)).zip(&mut self.blocks) {
            if block < *first && under(known, free) {
                *first = block;
            }
        }
    }
}

/// Whether it is no more anywhere.
pub(super) fn under(need: &[u64], free: &[u64]) -> bool {
    need.iter().zip(free).all(|(need, free)| need <= free)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    /// Blocks of one machine each, looked through one by one: where a search begins nothing before has room.
    #[test]
    fn no_search_begins_behind_what_it_would_find() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut free = [[8u64, 8]; 40];
        let mut searches = Searches::new(2);
        let (mut later, mut again) = (0, 0);
        let mut need = [1, 1];
        for _ in 0..50_000 {
            if rng.random_ratio(1, 2) {
                let block = rng.random_range(0..free.len());
                free[block] = [0, 1].map(|d| rng.random_range(free[block][d]..=8));
                searches.freed(block, &free[block]);
                continue;
            }
            if rng.random_ratio(1, 3) {
                need = [1, 2].map(|_| rng.random_range(1..=5));
            }
            let from = searches.from(&need);
            let found = free.iter().position(|free| under(&need, free));
            assert!(found.is_none_or(|found| from <= found), "{need:?} from {from}: {found:?}");
            later += usize::from(from > 0);
            again += usize::from(from > 0 && searches.is_latest(&need));
            searches.remember(&need, found.unwrap_or(free.len()));
            if let Some(found) = found {
                (0..2).for_each(|d| free[found][d] -= need[d]);
            }
        }
        assert!(again > 1000 && later > again + 1000, "{later} searches began later, {again} of them like the last");
    }
}
