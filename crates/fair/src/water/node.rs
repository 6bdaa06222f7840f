//! The blocks of a [`PointOrder`](super::order::PointOrder) as parallel arrays, so that a search reads only keys.
//!
//! A [`KeyRow`] has sorted keys with identifiers. A [`Leaf`] is a row of break points; an [`Inner`] block also has the children and their
//! sums. Unused key slots have the value [`NO_KEY`], which is above every key, so that a search needs no length.

use super::group::Weight;

/// The capacity of a leaf in break points. Measured: 32 and 128 are no faster at any size. Unit tests use a small number to grow high
/// trees.
pub(super) const LEAF: usize = if cfg!(test) { 8 } else { 64 };
/// The capacity of an inner block in blocks.
pub(super) const INNER: usize = if cfg!(test) { 8 } else { 64 };
/// The number of keys in a cache line.
const LINE: usize = 8;
/// The key of an unused slot.
const NO_KEY: u64 = u64::MAX >> 1;
/// The index of a block that does not exist.
pub(super) const NONE: u32 = u32::MAX;

/// Sorted keys with their identifiers.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
#[repr(align(64))]
pub(super) struct KeyRow<const N: usize> {
    #[serde(with = "plimsoll_base::checkpoint::array")]
    keys: [u64; N],
    #[serde(with = "plimsoll_base::checkpoint::array")]
    ids: [u32; N],
    len: u32,
}

impl<const N: usize> KeyRow<N> {
    pub fn new() -> KeyRow<N> {
        KeyRow { keys: [NO_KEY; N], ids: [0; N], len: 0 }
    }

    pub fn len(&self) -> usize {
        self.len as usize
    }

    pub fn key(&self, at: usize) -> u64 {
        self.keys[at]
    }

    pub fn id(&self, at: usize) -> u32 {
        self.ids[at]
    }

    pub fn ids(&self) -> &[u32] {
        &self.ids[..self.len()]
    }

    /// Returns the number of keys below this one. Reads one key of every cache line and then one line. The reads do not depend on each
    /// other, so a row that is not in the cache costs one delay.
    #[inline]
    pub fn rank(&self, key: u64) -> usize {
        let mut line = 0;
        for at in (LINE - 1..N).step_by(LINE) {
            line += below(self.keys[at], key);
        }
        // Only a full row of smaller keys exceeds the last line.
        let start = (line as usize).min(N / LINE - 1) * LINE;
        let mut rank = 0;
        for at in start..start + LINE {
            rank += below(self.keys[at], key);
        }
        start + rank as usize
    }

    /// Returns the end of the run of equal keys that starts at `from`.
    pub fn ties(&self, from: usize) -> usize {
        let key = self.keys[from];
        from + self.keys[from..self.len()].partition_point(|&other| other == key)
    }

    pub fn set(&mut self, at: usize, key: u64, id: u32) {
        self.keys[at] = key;
        self.ids[at] = id;
    }

    /// Inserts an entry. Panics: the row is full (which does not occur, because full blocks are split).
    #[inline]
    pub fn insert(&mut self, at: usize, key: u64, id: u32) {
        let len = self.len();
        self.keys.copy_within(at..len, at + 1);
        self.ids.copy_within(at..len, at + 1);
        self.set(at, key, id);
        self.len += 1;
    }

    #[inline]
    pub fn remove(&mut self, at: usize) {
        let len = self.len();
        self.keys.copy_within(at + 1..len, at);
        self.ids.copy_within(at + 1..len, at);
        self.keys[len - 1] = NO_KEY;
        self.len -= 1;
    }

    /// Moves the entries from `from` on to the end of another row.
    pub fn move_to(&mut self, from: usize, other: &mut KeyRow<N>) {
        let (len, start) = (self.len(), other.len());
        let end = start + len - from;
        other.keys[start..end].copy_from_slice(&self.keys[from..len]);
        other.ids[start..end].copy_from_slice(&self.ids[from..len]);
        other.len = end as u32;
        self.keys[from..len].fill(NO_KEY);
        self.len = from as u32;
    }
}

/// Returns 1 if one key is below another, else 0. Uses the sign of the difference, which needs no comparison of 64-bit lanes.
#[inline]
fn below(one: u64, other: u64) -> u64 {
    one.wrapping_sub(other) >> 63
}

/// A block of ordered break points.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Leaf {
    pub row: KeyRow<LEAF>,
    pub previous: u32,
    pub next: u32,
}

impl Leaf {
    pub fn new() -> Leaf {
        Leaf { row: KeyRow::new(), previous: NONE, next: NONE }
    }
}

/// A block of ordered blocks: the first break point and the sums of each.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Inner {
    pub row: KeyRow<INNER>,
    #[serde(with = "plimsoll_base::checkpoint::array")]
    children: [u32; INNER],
    #[serde(with = "plimsoll_base::checkpoint::array")]
    amounts: [i64; INNER],
    #[serde(with = "plimsoll_base::checkpoint::array")]
    ratios: [i64; INNER],
}

impl Inner {
    pub fn new() -> Inner {
        Inner { row: KeyRow::new(), children: [NONE; INNER], amounts: [0; INNER], ratios: [0; INNER] }
    }

    pub fn child(&self, slot: usize) -> u32 {
        self.children[slot]
    }

    pub fn weight(&self, slot: usize) -> Weight {
        Weight { amount: self.amounts[slot], ratio: self.ratios[slot] }
    }

    pub fn total(&self) -> Weight {
        (0..self.row.len()).fold(Weight::ZERO, |sum, slot| sum + self.weight(slot))
    }

    pub fn set_weight(&mut self, slot: usize, weight: Weight) {
        self.amounts[slot] = weight.amount;
        self.ratios[slot] = weight.ratio;
    }

    pub fn add(&mut self, slot: usize, weight: Weight) {
        self.set_weight(slot, self.weight(slot) + weight);
    }

    pub fn insert(&mut self, slot: usize, first: (u64, u32), child: u32, weight: Weight) {
        let len = self.row.len();
        self.row.insert(slot, first.0, first.1);
        self.children.copy_within(slot..len, slot + 1);
        self.amounts.copy_within(slot..len, slot + 1);
        self.ratios.copy_within(slot..len, slot + 1);
        self.children[slot] = child;
        self.set_weight(slot, weight);
    }

    pub fn remove(&mut self, slot: usize) {
        let len = self.row.len();
        self.row.remove(slot);
        self.children.copy_within(slot + 1..len, slot);
        self.amounts.copy_within(slot + 1..len, slot);
        self.ratios.copy_within(slot + 1..len, slot);
    }

    pub fn move_to(&mut self, from: usize, other: &mut Inner) {
        let (len, start) = (self.row.len(), other.row.len());
        let end = start + len - from;
        self.row.move_to(from, &mut other.row);
        other.children[start..end].copy_from_slice(&self.children[from..len]);
        other.amounts[start..end].copy_from_slice(&self.amounts[from..len]);
        other.ratios[start..end].copy_from_slice(&self.ratios[from..len]);
    }
}
