//! The level kept under changes of one group.

use super::group::{Break, Group, Semantics, Side, Standing, Sums, Weight};
use super::level::{DISTINCT, Level, key};
use super::order::{Gap, Order, Place, Point, Source};
use crate::error::{Error, Result};
use crate::fluid::Exact;

/// A group of a [`Water`]. A group that leaves gives its identifier to one that joins later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId(pub u32);

impl GroupId {
    /// The identifier as an index: dense, from 0.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The most groups at once.
const GROUPS: u32 = 1 << 31;

/// Points between an old level and the new one that are passed one by one; the tree finds what is farther away.
const STEPS: usize = 24;

/// Sibling groups, the total they share, and the level between them.
///
/// One change (a request, a limit, a ratio, a join, a leave, the total) and the level after it take O(log n); the
/// runtime quota of a group at the level takes O(1). The level is looked for when it is asked for, starting from where
/// it was, so changes in between cost no search.
///
/// Equal inputs in equal order give equal answers and identifiers.
#[derive(Clone, Debug)]
pub struct Water {
    members: Members,
    free: Vec<u32>,
    total: u64,
    sums: Sums,
    order: Order,
    /// Where the level last was, with what is below it now.
    gap: Gap,
    /// The shape of the order for which the gap holds.
    shape: u64,
    /// Until something changes.
    level: Option<Level>,
}

impl Water {
    /// Nobody, and nothing to share.
    pub fn new(semantics: Semantics) -> Water {
        Water {
            members: Members { semantics, records: Vec::new(), amounts: 0, ratios: 0 },
            free: Vec::new(),
            total: 0,
            sums: Sums::default(),
            order: Order::new(),
            gap: Gap { leaf: 0, at: 0, below: Weight::ZERO },
            shape: 0,
            level: Some(Level::ZERO),
        }
    }

    /// How a minimum and the level go together here.
    pub fn semantics(&self) -> Semantics {
        self.members.semantics
    }

    /// Sets what the groups share. Less than the sum of the bases leaves everybody the base.
    pub fn set_total(&mut self, total: u64) {
        if total != self.total {
            self.total = total;
            self.level = None;
        }
    }

    /// Adds a group. Errors: a sum would pass [`LIMIT`](super::LIMIT), or there are 2^31 groups; nothing has changed
    /// then.
    pub fn join(&mut self, group: &Group) -> Result<GroupId> {
        let standing = Standing::of(group);
        let sums = self.sums.replace(self.semantics(), &Standing::default(), &standing)?;
        let id = match self.free.pop() {
            Some(id) => id,
            None => {
                let id = self.members.records.len() as u32;
                if id >= GROUPS {
                    return Err(Error::plan("group", format!("one more than {GROUPS}"), "fewer groups"));
                }
                self.members.records.push(Record::NEW);
                id
            }
        };
        self.members.records[id as usize] = Record::NEW;
        self.put(id, &standing, sums);
        Ok(GroupId(id))
    }

    /// Changes a group. Errors: a sum would pass [`LIMIT`](super::LIMIT); nothing has changed then.
    ///
    /// Panics: only if the group has left (a programmer error).
    pub fn change(&mut self, id: GroupId, group: &Group) -> Result<()> {
        let new = Standing::of(group);
        let old = self.member(id).standing();
        let sums = self.sums.replace(self.semantics(), &old, &new)?;
        self.put(id.0, &new, sums);
        Ok(())
    }

    /// Removes a group. Panics: only if it has left before (a programmer error).
    pub fn leave(&mut self, id: GroupId) {
        let old = self.member(id).standing();
        let nobody = Standing::default();
        let sums = self.sums.replace(self.semantics(), &old, &nobody).expect("sums without a group are no larger");
        self.put(id.0, &nobody, sums);
        self.members.records[id.index()].key = Record::GONE;
        self.free.push(id.0);
    }

    /// How many groups there are.
    pub fn len(&self) -> usize {
        self.members.records.len() - self.free.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What of a group decides. Panics: only if it has left (a programmer error).
    pub fn standing(&self, id: GroupId) -> Standing {
        self.member(id).standing()
    }

    /// The lowest level at which the total is handed out, or all that is requested; the ground when the total does not
    /// pass the bases.
    pub fn level(&mut self) -> Level {
        match self.level {
            Some(level) => level,
            None => self.find_level(),
        }
    }

    /// The runtime quota, rounded down to a base unit. Panics: only if the group has left (a programmer error).
    pub fn runtime(&mut self, id: GroupId) -> u64 {
        let level = self.level();
        self.standing(id).runtime(self.semantics(), level)
    }

    /// The runtime quota as it is. Panics: only if the group has left (a programmer error).
    pub fn runtime_exact(&mut self, id: GroupId) -> Exact {
        let level = self.level();
        self.standing(id).runtime_exact(self.semantics(), level)
    }

    fn member(&self, id: GroupId) -> &Record {
        let record = &self.members.records[id.index()];
        assert!(record.key != Record::GONE, "the group has left");
        record
    }

    fn find_level(&mut self) -> Level {
        let target = self.sums.target(self.total);
        let level = if target.above == 0 {
            // The gap stays where it is: the next level is nearer to it than to the ground.
            Level::ZERO
        } else {
            let near = if self.shape == self.order.shape {
                self.order.walk(self.gap, &target, &self.members, STEPS)
            } else {
                None
            };
            self.gap = near.unwrap_or_else(|| self.order.search(&target, &self.members));
            self.shape = self.order.shape;
            target.level(self.gap.below)
        };
        self.level = Some(level);
        level
    }

    /// Gives a member a new standing, in the records, the sums and the order.
    fn put(&mut self, id: u32, new: &Standing, sums: Sums) {
        let semantics = self.semantics();
        let was = self.members.records[id as usize];
        let old_breaks = was.standing().breaks(semantics);
        let new_breaks = new.breaks(semantics);
        (self.sums, self.level) = (sums, None);
        let old = |side: Side| old_breaks[side as usize].filter(|&point| new_breaks[side as usize] != Some(point));
        let fresh = |side: Side| new_breaks[side as usize].filter(|&point| old_breaks[side as usize] != Some(point));
        let mut ahead = fresh(Side::Leave).map(|point| {
            let point = self.members.point(id, &point);
            // Found before the old one, whose place is only known once its record has come from memory. Beside a tie
            // with itself it says nothing.
            let shape = if point.key == was.key { u64::MAX } else { self.order.shape };
            (point, self.order.find(&point, &self.members), shape)
        });
        for side in [Side::Leave, Side::Enter] {
            let Some(point) = old(side) else { continue };
            let key = if side == Side::Leave { was.key } else { key(point.amount, point.ratio) };
            let place = self.remove(&Point { key, id: entry(id, side), fraction: point.fraction() }, point.weight());
            if let Some((_, ahead, _)) = &mut ahead
                && ahead.leaf == place.leaf
                && ahead.at > place.at
            {
                ahead.at -= 1;
            }
        }
        self.members.set(id, new, ahead.as_ref().map_or(was.key, |(point, ..)| point.key));
        if let (Some((point, place, shape)), Some(leave)) = (ahead, fresh(Side::Leave)) {
            let current = shape == self.order.shape;
            let place = if current { place } else { self.order.find(&point, &self.members) };
            self.insert(&place, &point, leave.weight());
        }
        if let Some(enter) = fresh(Side::Enter) {
            let point = self.members.point(id, &enter);
            let place = self.order.find(&point, &self.members);
            self.insert(&place, &point, enter.weight());
        }
    }

    fn insert(&mut self, place: &Place, point: &Point, weight: Weight) {
        if self.shape == self.order.shape {
            let gap = &mut self.gap;
            if place.leaf == gap.leaf {
                if place.at < gap.at {
                    gap.at += 1;
                    gap.below = gap.below + weight;
                }
            } else if self.order.before_leaf(point, gap.leaf, &self.members) {
                gap.below = gap.below + weight;
            }
        }
        self.order.insert(place, point, weight, &self.members);
    }

    fn remove(&mut self, point: &Point, weight: Weight) -> Place {
        let place = self.order.find(point, &self.members);
        if self.shape == self.order.shape {
            let gap = &mut self.gap;
            if place.leaf == gap.leaf {
                if place.at < gap.at {
                    gap.at -= 1;
                    gap.below = gap.below - weight;
                }
            } else if self.order.before_leaf(point, gap.leaf, &self.members) {
                gap.below = gap.below - weight;
            }
        }
        self.order.remove(&place, weight);
        place
    }
}

/// What is kept of a group: half a cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
struct Record {
    base: u64,
    reach: u64,
    ratio: u64,
    /// Of the point where it leaves, if it has one; [`Record::GONE`] for nobody.
    key: u64,
}

impl Record {
    const GONE: u64 = u64::MAX;
    const NEW: Record = Record { base: 0, reach: 0, ratio: 0, key: 0 };

    fn standing(&self) -> Standing {
        Standing { base: self.base, reach: self.reach, ratio: self.ratio }
    }
}

/// The groups, as the order asks for them.
#[derive(Clone, Debug)]
struct Members {
    semantics: Semantics,
    records: Vec<Record>,
    /// All bits that break points ever had.
    amounts: u64,
    ratios: u64,
}

/// A group's point in the order.
fn entry(id: u32, side: Side) -> u32 {
    id << 1 | side as u32
}

impl Members {
    /// A new point, whose bits count from now on.
    fn point(&mut self, id: u32, point: &Break) -> Point {
        self.amounts |= point.amount;
        self.ratios |= point.ratio;
        Point { key: key(point.amount, point.ratio), id: entry(id, point.side), fraction: point.fraction() }
    }

    fn set(&mut self, id: u32, standing: &Standing, key: u64) {
        let record = &mut self.records[id as usize];
        let Standing { base, reach, ratio } = *standing;
        *record = Record { base, reach, ratio, key };
    }

    fn leave(&self, record: &Record) -> (u64, u64) {
        match self.semantics {
            Semantics::MinPlusShare => (record.reach - record.base, record.ratio),
            Semantics::MaxMinLevel => (record.reach, record.ratio),
        }
    }
}

impl Source for Members {
    #[inline]
    fn fraction(&self, id: u32) -> (u64, u64) {
        let record = &self.records[(id >> 1) as usize];
        if id & 1 == Side::Leave as u32 { self.leave(record) } else { (record.base, record.ratio) }
    }

    #[inline]
    fn weight(&self, id: u32) -> Weight {
        let (amount, ratio) = self.fraction(id);
        let weight = Weight { amount: amount as i64, ratio: ratio as i64 };
        if id & 1 == Side::Leave as u32 { weight } else { Weight::ZERO - weight }
    }

    #[inline]
    fn distinct(&self) -> bool {
        let bits = |all: u64| u64::BITS - all.leading_zeros();
        bits(self.amounts) + bits(self.ratios) <= DISTINCT
    }
}
