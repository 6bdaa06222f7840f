//! The leaves that wait for quota, and the changes that could end the wait. A round visits only users for which the decision may have
//! changed.
//!
//! A leaf group with refused users waits at one group (itself or an ancestor) for one resource: no refused user may start while the group
//! lacks the amount of this resource that their smallest request needs. The leaf is tried again when that group changes, or when the water
//! level of its siblings has risen enough.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use plimsoll_fair::water::Level;

/// A waiting leaf with the stamp of the wait; entries with an outdated stamp are ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
struct GateEntry {
    leaf: u32,
    stamp: u32,
}

/// Leaves that wait for a set's water to rise in one resource, the lowest level first.
type Heap = BinaryHeap<Reverse<(Level, GateEntry)>>;

/// All waiting leaves.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Gates {
    dims: usize,
    /// By set and resource.
    heaps: Vec<Heap>,
    /// The sets that may have entries in a heap.
    watched: Vec<u32>,
    is_watched: Vec<bool>,
    /// The leaves that wait at each group.
    at: Vec<Vec<GateEntry>>,
    /// The current stamp of each leaf, odd while it waits.
    stamps: Vec<u32>,
    waiting: usize,
}

impl Gates {
    pub fn new(groups: usize, sets: usize, dims: usize) -> Gates {
        Gates {
            dims,
            heaps: vec![Heap::new(); sets * dims],
            watched: Vec::new(),
            is_watched: vec![false; sets],
            at: vec![Vec::new(); groups],
            stamps: vec![0; groups],
            waiting: 0,
        }
    }

    /// Registers a leaf that waits at a group for resource `d`: until the group changes, or its set reaches `level`.
    pub fn wait(&mut self, leaf: u32, group: u32, set: u32, d: usize, level: Option<Level>) {
        self.leave(leaf);
        self.stamps[leaf as usize] += 1;
        self.waiting += 1;
        let entry = GateEntry { leaf, stamp: self.stamps[leaf as usize] };
        let stamps = &self.stamps;
        let holds = |entry: &GateEntry| stamps[entry.leaf as usize] == entry.stamp;
        let at = &mut self.at[group as usize];
        if at.len() == at.capacity() {
            at.retain(holds);
        }
        at.push(entry);
        let Some(level) = level else { return };
        let heap = &mut self.heaps[set as usize * self.dims + d];
        if heap.len() > 2 * self.waiting + 64 {
            heap.retain(|Reverse((_, entry))| holds(entry));
        }
        heap.push(Reverse((level, entry)));
        if !std::mem::replace(&mut self.is_watched[set as usize], true) {
            self.watched.push(set);
        }
    }

    /// Returns whether any leaf waits.
    pub fn any(&self) -> bool {
        self.waiting > 0
    }

    /// Returns whether a leaf waits.
    pub fn waits(&self, leaf: u32) -> bool {
        self.stamps[leaf as usize] % 2 == 1
    }

    /// Ends the wait of a leaf.
    pub fn leave(&mut self, leaf: u32) {
        if self.waits(leaf) {
            self.stamps[leaf as usize] = self.stamps[leaf as usize].wrapping_add(1);
            self.waiting -= 1;
        }
    }

    /// Ends the wait of the leaves that wait at a changed group, and adds them to `woken`.
    pub fn changed(&mut self, group: u32, woken: &mut Vec<u32>) {
        let mut at = std::mem::take(&mut self.at[group as usize]);
        for entry in at.drain(..) {
            if self.stamps[entry.leaf as usize] == entry.stamp {
                self.leave(entry.leaf);
                woken.push(entry.leaf);
            }
        }
        self.at[group as usize] = at;
    }

    /// Ends the wait of the leaves for which the water has risen enough, and adds them to `woken`. `level` returns the current level;
    /// `None` is above all levels.
    pub fn risen(&mut self, mut level: impl FnMut(u32, usize) -> Option<Level>, woken: &mut Vec<u32>) {
        let mut watched = std::mem::take(&mut self.watched);
        watched.retain(|&set| {
            let mut anybody = false;
            for d in 0..self.dims {
                let at = set as usize * self.dims + d;
                while let Some(&Reverse((needed, entry))) = self.heaps[at].peek() {
                    if self.stamps[entry.leaf as usize] == entry.stamp {
                        if level(set, d).is_some_and(|level| needed > level) {
                            break;
                        }
                        self.leave(entry.leaf);
                        woken.push(entry.leaf);
                    }
                    self.heaps[at].pop();
                }
                anybody |= !self.heaps[at].is_empty();
            }
            self.is_watched[set as usize] = anybody;
            anybody
        });
        self.watched = watched;
    }
}
