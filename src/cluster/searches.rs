//! What was searched for lately, so that the next search need not begin at the first machine.

/// How many searches of first-fit are remembered.
const SEARCHES: usize = 8;

/// What first-fit searched for lately, and the first block that may have room for as much: blocks before it have none, for
/// anything that needs at least as much everywhere.
#[derive(Clone, Debug)]
pub(super) struct Searches {
    /// One after the other; more than anybody needs where none is remembered yet.
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
