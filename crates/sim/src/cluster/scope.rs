//! The machines that a search considers: those of a class, those of an area, or those in both.
//!
//! The index keeps machines in blocks of 64, so a set of machines is one word per block, and one AND intersects a block with a set. A
//! class ([`MachineSet`]) has a word for every block, and a word for every 64 blocks that marks the blocks with members; an area
//! ([`Area`]) is usually small and lists its blocks.

use std::ops::Range;

use plimsoll_base::units::MachineId;

/// The number of machines per block, and of blocks per word of the level above: the number of bits of a word.
pub(super) const BLOCK: usize = 64;

/// Returns the positions of the set bits of a word, lowest first.
pub(super) fn ones(mut word: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let at = (word != 0).then(|| word.trailing_zeros() as usize);
        word &= word.wrapping_sub(1);
        at
    })
}

/// A bit for every machine, and a bit for every block with a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) struct Bits {
    words: Vec<u64>,
    above: Vec<u64>,
}

impl Bits {
    /// Returns the bits of a block.
    pub fn word(&self, block: usize) -> u64 {
        self.words.get(block).copied().unwrap_or(0)
    }

    /// Returns which of the 64 blocks from `64 * above` on have a machine.
    pub fn above(&self, above: usize) -> u64 {
        self.above.get(above).copied().unwrap_or(0)
    }

    pub fn get(&self, at: usize) -> bool {
        self.word(at / BLOCK) >> (at % BLOCK) & 1 == 1
    }

    pub fn set(&mut self, at: usize, bit: bool) {
        let block = at / BLOCK;
        if block >= self.words.len() {
            self.words.resize(block + 1, 0);
            self.above.resize(block / BLOCK + 1, 0);
        }
        let word = &mut self.words[block];
        *word = *word & !(1 << (at % BLOCK)) | u64::from(bit) << (at % BLOCK);
        let some = u64::from(*word != 0) << (block % BLOCK);
        let above = &mut self.above[block / BLOCK];
        *above = *above & !(1 << (block % BLOCK)) | some;
    }
}

/// Many sets of machines side by side. The words of one block are adjacent in memory, because a machine joins or leaves neighbouring sets
/// together.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct BlockRows {
    rows: usize,
    words: Vec<u64>,
    above: Vec<u64>,
}

impl BlockRows {
    /// Creates a number of sets without machines.
    pub fn new(rows: usize) -> BlockRows {
        BlockRows { rows, words: Vec::new(), above: Vec::new() }
    }

    /// Extends the sets to this number of machines.
    pub fn grow(&mut self, machines: usize) {
        let blocks = machines.div_ceil(BLOCK);
        self.words.resize(blocks * self.rows, 0);
        self.above.resize(blocks.div_ceil(BLOCK) * self.rows, 0);
    }

    /// Returns the word of a block in each set.
    pub fn words(&self, block: usize) -> &[u64] {
        &self.words[block * self.rows..][..self.rows]
    }

    /// Returns which of the 64 blocks from `64 * above` on have a machine, for each set.
    pub fn above(&self, above: usize) -> &[u64] {
        &self.above[above * self.rows..][..self.rows]
    }

    /// Adds a machine to neighbouring sets of a resource or removes it from them. Each of these sets includes the next one, so the last
    /// ones have no other machine in the block.
    pub fn set(&mut self, machine: usize, rows: Range<usize>, member: bool) {
        let (block, bit) = (machine / BLOCK, 1 << (machine % BLOCK));
        let (above_at, above_bit) = (block / BLOCK * self.rows, 1 << (block % BLOCK));
        let words = &mut self.words[block * self.rows..][rows.clone()];
        let above = self.above[above_at..][rows].iter_mut();
        if member {
            words.iter_mut().for_each(|word| *word |= bit);
            let alone = above.zip(words).rev().take_while(|(_, word)| **word == bit);
            alone.for_each(|(above, _)| *above |= above_bit);
        } else {
            words.iter_mut().for_each(|word| *word &= !bit);
            let empty = above.zip(words).rev().take_while(|(_, word)| **word == 0);
            empty.for_each(|(above, _)| *above &= !above_bit);
        }
    }
}

/// A set of machines with a bit for every machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct MachineSet {
    bits: Bits,
    count: usize,
}

impl MachineSet {
    /// Returns the number of machines.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Returns whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns whether a machine is in the set.
    pub fn contains(&self, machine: MachineId) -> bool {
        self.bits.get(machine.index())
    }

    /// Adds or removes a machine; returns whether that changed the set.
    pub fn set(&mut self, machine: MachineId, member: bool) -> bool {
        if self.contains(machine) == member {
            return false;
        }
        self.bits.set(machine.index(), member);
        if member {
            self.count += 1
        } else {
            self.count -= 1
        }
        true
    }

    /// Returns the machines, lowest first.
    pub fn iter(&self) -> impl Iterator<Item = MachineId> {
        let of_block =
            |(block, word): (usize, &u64)| ones(*word).map(move |bit| MachineId((block * BLOCK + bit) as u32));
        self.bits.words.iter().enumerate().flat_map(of_block)
    }
}

impl FromIterator<MachineId> for MachineSet {
    fn from_iter<T: IntoIterator<Item = MachineId>>(machines: T) -> MachineSet {
        let mut members = MachineSet::default();
        for machine in machines {
            members.set(machine, true);
        }
        members
    }
}

/// The machines of an area (a rack, a room), block by block.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Area {
    /// Blocks in ascending order with the bits of the members of each, which are never 0.
    blocks: Vec<(u32, u64)>,
}

impl Area {
    /// Adds a machine.
    pub(super) fn insert(&mut self, machine: MachineId) {
        let (block, bit) = ((machine.index() / BLOCK) as u32, 1 << (machine.index() % BLOCK));
        match self.blocks.binary_search_by_key(&block, |(block, _)| *block) {
            Ok(at) => self.blocks[at].1 |= bit,
            Err(at) => self.blocks.insert(at, (block, bit)),
        }
    }

    fn word(&self, block: usize) -> u64 {
        let found = self.blocks.binary_search_by_key(&block, |(block, _)| *block as usize);
        found.map_or(0, |at| self.blocks[at].1)
    }

    /// Returns which of the 64 blocks from `64 * above` on have members.
    fn some(&self, above: usize) -> u64 {
        let from = self.blocks.partition_point(|(block, _)| (*block as usize) < above * BLOCK);
        let of = self.blocks[from..].iter().take_while(|(block, _)| *block as usize / BLOCK == above);
        of.fold(0, |word, (block, _)| word | 1 << (*block as usize % BLOCK))
    }

    /// Returns the number of machines.
    pub fn len(&self) -> usize {
        self.blocks.iter().map(|(_, word)| word.count_ones() as usize).sum()
    }

    /// Returns whether the area is empty.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Returns the machines, lowest first.
    pub fn iter(&self) -> impl Iterator<Item = MachineId> {
        self.blocks
            .iter()
            .flat_map(|&(block, word)| ones(word).map(move |bit| MachineId(block * BLOCK as u32 + bit as u32)))
    }
}

/// The limits of a search; by default, none.
#[derive(Clone, Copy, Debug, Default)]
pub struct Scope<'a> {
    /// Only machines of this class.
    pub class: Option<&'a MachineSet>,
    /// Only machines of this area.
    pub area: Option<&'a Area>,
}

impl Scope<'_> {
    /// Returns whether the scope includes all machines.
    pub fn is_whole(&self) -> bool {
        self.class.is_none() && self.area.is_none()
    }

    /// Returns whether the scope includes a machine.
    pub fn contains(&self, machine: MachineId) -> bool {
        self.class.is_none_or(|class| class.contains(machine))
            && self.area.is_none_or(|area| area.word(machine.index() / BLOCK) >> (machine.index() % BLOCK) & 1 == 1)
    }

    /// Returns the members in a block.
    pub(super) fn machines(&self, block: usize) -> u64 {
        let class = self.class.map_or(u64::MAX, |class| class.bits.word(block));
        class & self.area.map_or(u64::MAX, |area| area.word(block))
    }

    /// Returns which of the 64 blocks from `64 * above` on may have members.
    pub(super) fn blocks(&self, above: usize) -> u64 {
        let class = self.class.map_or(u64::MAX, |class| class.bits.above(above));
        class & self.area.map_or(u64::MAX, |area| area.some(above))
    }

    /// Returns an upper bound of the number of machines in the scope, given the number of `all` machines.
    pub(super) fn at_most(&self, all: usize) -> usize {
        all.min(self.class.map_or(all, MachineSet::len)).min(self.area.map_or(all, Area::len))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_hold_what_was_put_in() {
        let some = [0, 63, 64, 200, 4095, 4096, 9000].map(MachineId);
        let mut members: MachineSet = some.into_iter().collect();
        let mut area = Area::default();
        some.iter().rev().for_each(|&machine| area.insert(machine));
        assert_eq!(members.iter().collect::<Vec<_>>(), some);
        assert_eq!(area.iter().collect::<Vec<_>>(), some);
        assert_eq!((members.len(), area.len()), (7, 7));
        for scope in [Scope { class: Some(&members), area: None }, Scope { class: None, area: Some(&area) }] {
            assert_eq!(scope.blocks(0), 1 | 2 | 8 | 1 << 63);
            assert_eq!((scope.blocks(1), scope.blocks(2), scope.blocks(3)), (1, 1 << (9000 / 64 - 128), 0));
            assert_eq!((scope.machines(0), scope.machines(1), scope.machines(2)), (1 | 1 << 63, 1, 0));
            assert!(scope.contains(MachineId(64)) && !scope.contains(MachineId(65)));
        }
        assert!(members.set(MachineId(64), false) && !members.set(MachineId(64), false));
        let both = Scope { class: Some(&members), area: Some(&area) };
        assert_eq!((both.blocks(0), both.at_most(10_000)), (1 | 8 | 1 << 63, 6));
        assert!(!both.contains(MachineId(64)) && both.contains(MachineId(9000)));
    }
}
