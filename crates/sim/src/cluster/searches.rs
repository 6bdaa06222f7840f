//! The latest searches of first-fit. With their results, the next search need not begin at the first machine.

/// The number of stored searches.
const SEARCHES: usize = 8;

/// The latest demands of first-fit, each with the first block that may have room for it: blocks before it have no room for any demand that
/// is at least as large in every resource.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Searches {
    /// The demands one after the other; an unused entry has the largest number for every resource.
    needs: Vec<u64>,
    blocks: [usize; SEARCHES],
    /// The index of the latest search; the entry after it is replaced next.
    latest: usize,
}

impl Searches {
    pub fn new(dims: usize) -> Searches {
        Searches { needs: vec![u64::MAX; SEARCHES * dims], blocks: [0; SEARCHES], latest: 0 }
    }

    /// Returns the first block that has to be searched for a demand.
    pub fn from(&self, need: &[u64]) -> usize {
        if self.is_latest(need) {
            return self.blocks[self.latest];
        }
        let known = self.needs.chunks_exact(need.len().max(1)).zip(self.blocks);
        known.filter(|(known, _)| under(known, need)).map(|(_, block)| block).max().unwrap_or(0)
    }

    /// Returns whether a demand equals that of the latest search. Consecutive tasks of a job have equal demands and share one entry.
    fn is_latest(&self, need: &[u64]) -> bool {
        self.needs[self.latest * need.len()..][..need.len()] == *need
    }

    /// Stores the first block with room for a demand.
    pub fn remember(&mut self, need: &[u64], block: usize) {
        if !self.is_latest(need) {
            self.latest = (self.latest + 1) % SEARCHES;
            self.needs[self.latest * need.len()..][..need.len()].copy_from_slice(need);
        }
        self.blocks[self.latest] = block;
    }

    /// Updates the searches after the free amounts of a machine of this block have grown to `free`.
    pub fn freed(&mut self, block: usize, free: &[u64]) {
        for (known, first) in self.needs.chunks_exact(free.len().max(1)).zip(&mut self.blocks) {
            if block < *first && under(known, free) {
                *first = block;
            }
        }
    }
}

/// Returns whether `need` exceeds `free` in no resource.
pub(super) fn under(need: &[u64], free: &[u64]) -> bool {
    need.iter().zip(free).all(|(need, free)| need <= free)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    /// In this test each block is one machine, and a scan checks that no block before the start of a search has room.
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
        assert!(again > 1000 && later > again + 1000, "{later} searches began later, {again} repeated the last demand");
    }
}
