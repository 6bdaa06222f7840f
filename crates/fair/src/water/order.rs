//! Break points in the order of their levels, with sums over blocks: a B+ tree whose blocks fit the memory hierarchy.
//!
//! Points are ordered by key, then by the exact fraction, then by identifier. Equal saturations therefore have distinct positions, and a
//! removal finds its point in O(log n) for any number of equal points. Inner blocks store each child's first point and its [`Weight`];
//! leaves are chained. The weight of a point is requested from its [`NumberSource`]: a leaf stores only keys and identifiers, half of the
//! data that a search would otherwise load into the caches.

use std::cmp::Ordering;

use super::group::Weight;
use super::level::compare;
use super::node::{INNER, Inner, KeyRow, LEAF, Leaf, NONE};

/// The owner of the numbers of an identifier.
pub(super) trait NumberSource {
    /// Returns the point's level as numerator and denominator.
    fn fraction(&self, id: u32) -> (u64, u64);
    /// Returns the weight that the point adds to the sums below a level.
    fn weight(&self, id: u32) -> Weight;
    /// Returns whether points with equal keys have equal levels.
    fn distinct(&self) -> bool;
}

/// A break point with its key and its fraction.
#[derive(Clone, Copy, Debug)]
pub(super) struct BreakPoint {
    pub key: u64,
    pub id: u32,
    pub fraction: (u64, u64),
}

/// The maximum height of a tree. Two neighbouring blocks together use more than a quarter of the capacity of one, so blocks below the root
/// have eight children on average or more, and identifiers have 32 bits.
const HEIGHT: usize = 10;

/// The position of a point, or the position where it belongs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor {
    /// The inner blocks from the root on, and the slot of the child on the path in each.
    path: [(u32, u32); HEIGHT],
    pub leaf: u32,
    pub at: u32,
}

impl Cursor {
    /// The cursor before a search.
    pub const NONE: Cursor = Cursor { path: [(0, 0); HEIGHT], leaf: 0, at: 0 };
}

/// The tree of break points.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct PointOrder {
    pub(super) leaves: Vec<Leaf>,
    pub(super) inners: Vec<Inner>,
    spare_leaves: Vec<u32>,
    spare_inners: Vec<u32>,
    pub(super) root: u32,
    /// The number of inner blocks on a path.
    pub(super) height: usize,
    /// The number of changes of the block structure; cursors and gaps from before a change are invalid.
    pub shape: u64,
}

impl PointOrder {
    pub fn new() -> PointOrder {
        PointOrder {
            leaves: vec![Leaf::new()],
            inners: Vec::new(),
            spare_leaves: Vec::new(),
            spare_inners: Vec::new(),
            root: 0,
            height: 0,
            shape: 0,
        }
    }

    pub fn row(&self, leaf: u32) -> &KeyRow<LEAF> {
        &self.leaves[leaf as usize].row
    }

    /// Returns the position of the point, or the position where it belongs. O(log n).
    pub fn find(&self, point: &BreakPoint, source: &impl NumberSource) -> Cursor {
        let mut cursor = Cursor::NONE;
        self.descend(&mut cursor, point, source);
        cursor.at = self.locate(cursor.leaf, point, source);
        cursor
    }

    /// Finds the leaf that contains the point, or into which it belongs; the position within the leaf is not determined.
    ///
    /// Separate from [`PointOrder::locate`], since inner blocks are in the cache and leaves are not: two searches that both descend first
    /// load both leaves at the same time. The cursor is updated in place, since a copy of a recently written block stalls.
    #[inline]
    pub fn descend(&self, cursor: &mut Cursor, point: &BreakPoint, source: &impl NumberSource) {
        let mut at = self.root;
        for step in &mut cursor.path[..self.height] {
            let inner = &self.inners[at as usize];
            let (rank, there) = rank(&inner.row, point, source);
            let slot = if there { rank } else { rank.saturating_sub(1) };
            *step = (at, slot as u32);
            at = inner.child(slot);
        }
        cursor.leaf = at;
    }

    /// Returns the position of the point in its leaf, or the position where it belongs.
    #[inline]
    pub fn locate(&self, leaf: u32, point: &BreakPoint, source: &impl NumberSource) -> u32 {
        rank(self.row(leaf), point, source).0 as u32
    }

    /// Returns whether the point is before the leaf's first point.
    pub fn before_leaf(&self, point: &BreakPoint, leaf: u32, source: &impl NumberSource) -> bool {
        let row = self.row(leaf);
        match point.key.cmp(&row.key(0)) {
            Ordering::Equal => order(row.id(0), point, source).is_gt(),
            other => other.is_lt(),
        }
    }

    /// Inserts a point at the cursor.
    pub fn insert(&mut self, cursor: &Cursor, point: &BreakPoint, weight: Weight, source: &impl NumberSource) {
        self.add(cursor, weight);
        let row = &mut self.leaves[cursor.leaf as usize].row;
        row.insert(cursor.at as usize, point.key, point.id);
        let full = row.len() == LEAF;
        if cursor.at == 0 {
            self.rename(cursor, self.height, (point.key, point.id));
        }
        if full {
            self.split_leaf(cursor, source);
        }
    }

    /// Removes the point at the cursor.
    pub fn remove(&mut self, cursor: &Cursor, weight: Weight) {
        self.add(cursor, Weight::ZERO - weight);
        let row = &mut self.leaves[cursor.leaf as usize].row;
        row.remove(cursor.at as usize);
        let len = row.len();
        if cursor.at == 0 && len > 0 {
            let first = (row.key(0), row.id(0));
            self.rename(cursor, self.height, first);
        }
        if len < LEAF / 4 && self.height > 0 {
            self.thin_leaf(cursor, len);
        }
    }

    #[inline]
    fn add(&mut self, cursor: &Cursor, weight: Weight) {
        for &(inner, slot) in &cursor.path[..self.height] {
            self.inners[inner as usize].add(slot as usize, weight);
        }
    }

    /// Writes the new first point of the block at a depth into all blocks above that start with it.
    fn rename(&mut self, cursor: &Cursor, depth: usize, first: (u64, u32)) {
        for &(inner, slot) in cursor.path[..depth].iter().rev() {
            self.inners[inner as usize].row.set(slot as usize, first.0, first.1);
            if slot > 0 {
                break;
            }
        }
    }

    fn split_leaf(&mut self, cursor: &Cursor, source: &impl NumberSource) {
        self.shape += 1;
        let right = reuse(&mut self.leaves, &mut self.spare_leaves, Leaf::new());
        let mut fresh = Leaf::new();
        let left = &mut self.leaves[cursor.leaf as usize];
        left.row.move_to(LEAF / 2, &mut fresh.row);
        (fresh.previous, fresh.next) = (cursor.leaf, left.next);
        left.next = right;
        if fresh.next != NONE {
            self.leaves[fresh.next as usize].previous = right;
        }
        let weight = weigh(&fresh.row, source);
        let first = (fresh.row.key(0), fresh.row.id(0));
        self.leaves[right as usize] = fresh;
        if self.height == 0 {
            let left = &self.leaves[cursor.leaf as usize].row;
            self.grow((left.key(0), left.id(0)), cursor.leaf, weigh(left, source), first, right, weight);
        } else {
            self.add_child(cursor, self.height - 1, first, right, weight);
        }
    }

    /// Adds a root above two blocks.
    fn grow(&mut self, first: (u64, u32), left: u32, weight: Weight, second: (u64, u32), right: u32, other: Weight) {
        let mut root = Inner::new();
        root.insert(0, first, left, weight);
        root.insert(1, second, right, other);
        self.root = reuse(&mut self.inners, &mut self.spare_inners, root);
        self.height += 1;
    }

    /// Inserts a block after the child at the cursor's depth, and moves a part of that child's weight to it.
    fn add_child(&mut self, cursor: &Cursor, depth: usize, first: (u64, u32), child: u32, weight: Weight) {
        let (at, slot) = cursor.path[depth];
        let inner = &mut self.inners[at as usize];
        inner.add(slot as usize, Weight::ZERO - weight);
        inner.insert(slot as usize + 1, first, child, weight);
        if inner.row.len() < INNER {
            return;
        }
        let mut fresh = Inner::new();
        inner.move_to(INNER / 2, &mut fresh);
        let (left, left_weight) = ((inner.row.key(0), inner.row.id(0)), inner.total());
        let (first, weight) = ((fresh.row.key(0), fresh.row.id(0)), fresh.total());
        let right = reuse(&mut self.inners, &mut self.spare_inners, fresh);
        if depth == 0 {
            self.grow(left, at, left_weight, first, right, weight);
        } else {
            self.add_child(cursor, depth - 1, first, right, weight);
        }
    }

    /// Merges a leaf with few points and a neighbour under the same block, if both fit into one leaf with reserve. Removes an empty leaf
    /// without such a neighbour.
    fn thin_leaf(&mut self, cursor: &Cursor, len: usize) {
        let (at, slot) = cursor.path[self.height - 1];
        let inner = &self.inners[at as usize];
        let size = |slot: u32| self.leaves[inner.child(slot as usize) as usize].row.len();
        let Some(left) = neighbours(slot, inner.row.len(), len, size, LEAF) else {
            if len == 0 {
                self.shape += 1;
                self.unchain(cursor.leaf);
                self.drop_child(cursor, self.height - 1, slot);
            }
            return;
        };
        self.shape += 1;
        let (into, gone) = (inner.child(left as usize), inner.child(left as usize + 1));
        let weight = inner.weight(left as usize + 1);
        let mut row = std::mem::replace(&mut self.leaves[gone as usize].row, KeyRow::new());
        row.move_to(0, &mut self.leaves[into as usize].row);
        let first = (self.row(into).key(0), self.row(into).id(0));
        self.unchain(gone);
        self.fold_child(cursor, self.height - 1, left, first, weight);
    }

    /// Adds the weight of the child to the right of `left` to `left`, and removes that child.
    fn fold_child(&mut self, cursor: &Cursor, depth: usize, left: u32, first: (u64, u32), weight: Weight) {
        let inner = &mut self.inners[cursor.path[depth].0 as usize];
        inner.add(left as usize, weight);
        // The first point of an empty block was removed.
        inner.row.set(left as usize, first.0, first.1);
        if left == 0 {
            self.rename(cursor, depth, first);
        }
        self.drop_child(cursor, depth, left + 1);
    }

    fn unchain(&mut self, leaf: u32) {
        let Leaf { previous, next, .. } = self.leaves[leaf as usize];
        if previous != NONE {
            self.leaves[previous as usize].next = next;
        }
        if next != NONE {
            self.leaves[next as usize].previous = previous;
        }
        self.spare_leaves.push(leaf);
    }

    /// Removes a child of the block at the cursor's depth; merges or removes that block if few children are left.
    fn drop_child(&mut self, cursor: &Cursor, depth: usize, child: u32) {
        let (at, _) = cursor.path[depth];
        let inner = &mut self.inners[at as usize];
        inner.remove(child as usize);
        let len = inner.row.len();
        if len > 0 && child == 0 {
            let first = (inner.row.key(0), inner.row.id(0));
            self.rename(cursor, depth, first);
        }
        if depth == 0 {
            return self.lower();
        }
        if len >= INNER / 4 {
            return;
        }
        let (above, slot) = cursor.path[depth - 1];
        let parent = &self.inners[above as usize];
        let size = |slot: u32| self.inners[parent.child(slot as usize) as usize].row.len();
        let Some(left) = neighbours(slot, parent.row.len(), len, size, INNER) else {
            if len == 0 {
                self.spare_inners.push(at);
                self.drop_child(cursor, depth - 1, slot);
            }
            return;
        };
        let (into, gone) = (parent.child(left as usize), parent.child(left as usize + 1));
        let weight = parent.weight(left as usize + 1);
        let mut block = std::mem::replace(&mut self.inners[gone as usize], Inner::new());
        block.move_to(0, &mut self.inners[into as usize]);
        let row = &self.inners[into as usize].row;
        let first = (row.key(0), row.id(0));
        self.spare_inners.push(gone);
        self.fold_child(cursor, depth - 1, left, first, weight);
    }

    /// Removes roots with one child or none.
    fn lower(&mut self) {
        while self.height > 0 && self.inners[self.root as usize].row.len() <= 1 {
            let inner = &self.inners[self.root as usize];
            let child = (inner.row.len() == 1).then(|| inner.child(0));
            self.spare_inners.push(self.root);
            self.height -= 1;
            match child {
                Some(child) => self.root = child,
                None => {
                    self.height = 0;
                    self.root = reuse(&mut self.leaves, &mut self.spare_leaves, Leaf::new());
                }
            }
        }
    }
}

/// Returns the number of points of a row before this one, and whether the row contains it.
#[inline]
fn rank<const N: usize>(row: &KeyRow<N>, point: &BreakPoint, source: &impl NumberSource) -> (usize, bool) {
    let rank = row.rank(point.key);
    if rank == row.len() || row.key(rank) != point.key {
        return (rank, false);
    }
    if row.id(rank) == point.id {
        return (rank, true);
    }
    rank_among_ties(row, rank, point, source)
}

fn rank_among_ties<const N: usize>(
    row: &KeyRow<N>,
    rank: usize,
    point: &BreakPoint,
    source: &impl NumberSource,
) -> (usize, bool) {
    let ties = &row.ids()[rank..row.ties(rank)];
    let before = ties.partition_point(|&id| order(id, point, source).is_lt());
    (rank + before, ties.get(before) == Some(&point.id))
}

/// Compares a point in the tree with another one that has the same key.
fn order(id: u32, point: &BreakPoint, source: &impl NumberSource) -> Ordering {
    if id == point.id || source.distinct() {
        return id.cmp(&point.id);
    }
    compare(source.fraction(id), point.fraction).then(id.cmp(&point.id))
}

fn weigh(row: &KeyRow<LEAF>, source: &impl NumberSource) -> Weight {
    row.ids().iter().fold(Weight::ZERO, |sum, &id| sum + source.weight(id))
}

/// Returns the left one of two neighbouring blocks to merge: the block at `slot` and a neighbour such that both fit.
fn neighbours(slot: u32, len: usize, size: usize, of: impl Fn(u32) -> usize, room: usize) -> Option<u32> {
    let fits = |other: u32| size == 0 || size + of(other) <= room / 4 * 3;
    if (slot as usize) + 1 < len && fits(slot + 1) {
        return Some(slot);
    }
    slot.checked_sub(1).filter(|&left| fits(left))
}

/// Stores a block at a spare index, or at a new one. Returns the index.
fn reuse<T>(blocks: &mut Vec<T>, spare: &mut Vec<u32>, block: T) -> u32 {
    if let Some(at) = spare.pop() {
        blocks[at as usize] = block;
        return at;
    }
    blocks.push(block);
    (blocks.len() - 1) as u32
}
