//! Maintains the level under changes of one group.
//!
//! [`Water`] stores the groups, the order of their break points, and the position of the last level. A change updates the sums at once, and
//! the order lazily (see [`Water`]). The window is the range of levels in which the order is correct; `drift` is the error of the sums
//! below the window.

use super::group::{Break, BreakSide, Group, LevelTarget, ReducedGroup, Semantics, Sums, Weight};
use super::level::{DISTINCT, Level, key};
use super::order::{BreakPoint, Cursor, NumberSource, PointOrder};
use super::seek::{Gap, Window, Zone};
use crate::Exact;
use plimsoll_base::checkpoint::{Checkpoint, Visitor};
use plimsoll_base::error::{Error, Result};
use plimsoll_base::visit_values;

/// The identifier of a group of a [`Water`]. The identifier of a group that leaves is reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct GroupId(pub u32);

impl GroupId {
    /// Returns the identifier as an index; indices are dense from 0.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The maximum number of groups at any time.
const GROUPS: u32 = 1 << 31;

/// The number of points between the old level and the new one that are visited one by one; the tree finds levels farther away.
const STEPS: usize = 24;

/// Sibling groups, the total that they share, and the level.
///
/// One change (a request, a limit, a ratio, a join, a leave, the total) and the level after it take O(log n), amortised. The runtime quota
/// of a group at the level takes O(1). The level is searched on request, starting from its previous value, so several changes in a row cost
/// one search.
///
/// The order is updated lazily. If the total is enough for all, the order is not needed. Near the previous level, only points close to it
/// must be in their places; points farther away count as below or above wherever they are stored. Moved points are collected in a list, and
/// all of them are reordered when the level leaves the neighbourhood.
///
/// Equal inputs in equal order give equal results and identifiers.
#[derive(Clone, Debug)]
pub struct Water {
    pub(super) members: PoolMembers,
    free: Vec<u32>,
    total: u64,
    sums: Sums,
    pub(super) order: PointOrder,
    /// The position of the last level, with the sums below it in the current order.
    gap: Gap,
    /// The shape of the order for which the gap is valid.
    shape: u64,
    /// The neighbourhood of the level. Each point that is within it now, or was within it when it was last stored, is in its place.
    pub(super) window: Option<Window>,
    /// The true sums below the window minus the sums below it in the order.
    drift: Weight,
    /// The level; `None` after an input has changed.
    level: Option<Level>,
}

impl Water {
    /// Creates an instance without groups and with a total of 0.
    pub fn new(semantics: Semantics) -> Water {
        Water {
            members: PoolMembers { semantics, records: Vec::new(), late: Vec::new(), amounts: 0, ratios: 0 },
            free: Vec::new(),
            total: 0,
            sums: Sums::default(),
            order: PointOrder::new(),
            gap: Gap { leaf: 0, at: 0, below: Weight::ZERO },
            shape: 0,
            window: None,
            drift: Weight::ZERO,
            level: Some(Level::ZERO),
        }
    }

    /// Returns the relation of a minimum and the level.
    pub fn semantics(&self) -> Semantics {
        self.members.semantics
    }

    /// Sets the amount that the groups share. If it is less than the sum of the bases, each group gets its base.
    pub fn set_total(&mut self, total: u64) {
        if total != self.total {
            self.total = total;
            self.level = None;
        }
    }

    /// Adds a group. Errors: a sum would exceed [`LIMIT`](super::LIMIT), or there are 2^31 groups; the state is then unchanged.
    pub fn join(&mut self, group: &Group) -> Result<GroupId> {
        let standing = ReducedGroup::from_group(group);
        let sums = self.sums.replace(self.semantics(), &ReducedGroup::default(), &standing)?;
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
        self.replace(id, group, &ReducedGroup::default(), &standing, sums);
        Ok(GroupId(id))
    }

    /// Changes a group. Errors: a sum would exceed [`LIMIT`](super::LIMIT); the state is then unchanged.
    ///
    /// Panics: only if the group has left (a programmer error).
    #[inline]
    pub fn change(&mut self, id: GroupId, group: &Group) -> Result<()> {
        let old = self.member(id).standing();
        let new = ReducedGroup::from_group(group);
        let sums = self.sums.replace(self.semantics(), &old, &new)?;
        self.replace(id.0, group, &old, &new, sums);
        Ok(())
    }

    /// Changes a group's request. Errors and panics: as [`Water::change`].
    pub fn set_request(&mut self, id: GroupId, request: u64) -> Result<()> {
        self.set_use(id, request, self.member(id).group.held)
    }

    /// Changes a group's request, and the part of the request that is its floor. Errors and panics: as [`Water::change`].
    #[inline]
    pub fn set_use(&mut self, id: GroupId, request: u64, held: u64) -> Result<()> {
        let group = Group { request, held, ..self.member(id).group };
        self.change(id, &group)
    }

    /// Removes a group. Panics: only if it has left before (a programmer error).
    pub fn leave(&mut self, id: GroupId) {
        let old = self.member(id).standing();
        let nobody = ReducedGroup::default();
        let sums = self.sums.replace(self.semantics(), &old, &nobody).expect("sums without a group are no larger");
        self.replace(id.0, &Group::NONE, &old, &nobody, sums);
        self.settle();
        self.members.records[id.index()].key = Record::GONE;
        self.free.push(id.0);
    }

    /// Returns the number of groups.
    pub fn len(&self) -> usize {
        self.members.records.len() - self.free.len()
    }

    /// Returns whether there are no groups.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns a group. Panics: only if it has left (a programmer error).
    pub fn group(&self, id: GroupId) -> &Group {
        &self.member(id).group
    }

    /// Returns the reduced group, which determines its quota. Panics: only if it has left (a programmer error).
    pub fn standing(&self, id: GroupId) -> ReducedGroup {
        self.member(id).standing()
    }

    /// Returns the lowest level that hands out the total, or all requests; level 0 if the total does not exceed the bases.
    pub fn level(&mut self) -> Level {
        match self.level {
            Some(level) => level,
            None => self.find_level(),
        }
    }

    /// Returns whether the total is enough for all groups. Then each group gets its reach, at the level and at any higher level.
    pub fn is_enough(&self) -> bool {
        self.sums.enough(self.total)
    }

    /// Returns the runtime quota, rounded down to a base unit. Panics: only if the group has left (a programmer error).
    pub fn runtime(&mut self, id: GroupId) -> u64 {
        if self.is_enough() {
            return self.standing(id).reach;
        }
        let level = self.level();
        self.standing(id).runtime(self.semantics(), level)
    }

    /// Returns the runtime quota as a fraction. Panics: only if the group has left (a programmer error).
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
            // The gap stays in place, because the next level is closer to it than to 0.
            Level::ZERO
        } else {
            self.near_level(&target).unwrap_or_else(|| {
                self.settle();
                self.seek(&target);
                let level = target.level(self.gap.below);
                self.window = Some(Window::around(level));
                level
            })
        };
        self.level = Some(level);
        level
    }

    /// Returns the level, if it is within the window.
    fn near_level(&mut self, target: &LevelTarget) -> Option<Level> {
        let window = self.window?;
        self.seek(target);
        target.level_within(self.gap.below + self.drift, &window)
    }

    /// Moves the gap to the level. If there is a window and the level is outside it, the gap ends at that side of the window.
    fn seek(&mut self, target: &LevelTarget) {
        let (drift, window) = (self.drift, self.window);
        let reached = |at, below: Weight| match window.map_or(Zone::Within, |window| window.zone(at)) {
            Zone::Below => false,
            Zone::Within => target.reached(at, below + drift),
            Zone::Above => true,
        };
        let near = if self.shape == self.order.shape {
            self.order.walk(self.gap, reached, &self.members, STEPS)
        } else {
            None
        };
        self.gap = near.unwrap_or_else(|| self.order.search(reached, &self.members));
        self.shape = self.order.shape;
    }

    /// Replaces the reduced group of a member in the records and the sums, and in the order if required now.
    #[inline(always)]
    fn replace(&mut self, id: u32, group: &Group, old: &ReducedGroup, new: &ReducedGroup, sums: Sums) {
        let record = &mut self.members.records[id as usize];
        record.group = *group;
        if old == new {
            return;
        }
        (self.sums, self.level) = (sums, None);
        let late = record.late;
        if late == 0 {
            self.members.late.push((id, *old));
            record.late = self.members.late.len() as u32;
        }
        let Some(window) = self.window else { return };
        if sums.enough(self.total) {
            self.window = None;
            return;
        }
        let semantics = self.semantics();
        let was = window.below(old.breaks(semantics));
        if let (Some(was), Some(is)) = (was, window.below(new.breaks(semantics))) {
            self.drift = self.drift + is - was;
            return;
        }
        if let (Some(was), true) = (was, late > 0) {
            let stands = self.members.late[late as usize - 1].1;
            self.drift = self.drift - was + window.below(stands.breaks(semantics)).unwrap_or_default();
        }
        self.catch_up(id);
    }

    /// Moves all points to their places.
    pub(super) fn settle(&mut self) {
        (self.window, self.drift) = (None, Weight::ZERO);
        while let Some(&(id, _)) = self.members.late.last() {
            self.catch_up(id);
        }
    }

    /// Moves the points of a late group to their places.
    fn catch_up(&mut self, id: u32) {
        let record = &mut self.members.records[id as usize];
        let at = std::mem::take(&mut record.late) as usize - 1;
        let new = record.standing();
        let (_, old) = self.members.late.swap_remove(at);
        if let Some(&(moved, _)) = self.members.late.get(at) {
            self.members.records[moved as usize].late = at as u32 + 1;
        }
        self.place(id, old.breaks(self.semantics()), new.breaks(self.semantics()));
    }

    /// Moves the points of a member in the order.
    fn place(&mut self, id: u32, was: [Option<Break>; 2], is: [Option<Break>; 2]) {
        let moves = |side: BreakSide| was[side as usize] != is[side as usize];
        let (Some(gone), Some(new), false) =
            (was[BreakSide::Leave as usize], is[BreakSide::Leave as usize], moves(BreakSide::Enter))
        else {
            return self.place_apart(id, was, is);
        };
        if gone == new {
            return;
        }
        let key = self.members.records[id as usize].key;
        let point = self.members.point(id, &new);
        let old = BreakPoint { key, id: point.id, fraction: gone.fraction() };
        let (mut ahead, mut cursor) = (Cursor::NONE, Cursor::NONE);
        self.order.descend(&mut ahead, &point, &self.members);
        self.order.descend(&mut cursor, &old, &self.members);
        ahead.at = self.order.locate(ahead.leaf, &point, &self.members);
        cursor.at = self.order.locate(cursor.leaf, &old, &self.members);
        let shape = self.order.shape;
        self.remove(&cursor, &old, gone.weight());
        self.members.records[id as usize].key = point.key;
        // The search result is no longer valid if blocks have changed, or if the old and the new point have equal keys.
        if shape != self.order.shape || key == point.key {
            ahead = self.order.find(&point, &self.members);
        } else if ahead.leaf == cursor.leaf && ahead.at > cursor.at {
            ahead.at -= 1;
        }
        self.insert(&ahead, &point, new.weight());
    }

    /// Removes all old points of a member and then inserts all new ones. Required if the leave point only appears or disappears, or if the
    /// enter point changes.
    #[inline(never)]
    fn place_apart(&mut self, id: u32, was: [Option<Break>; 2], is: [Option<Break>; 2]) {
        for gone in was.into_iter().flatten() {
            let key = match gone.side {
                BreakSide::Leave => self.members.records[id as usize].key,
                BreakSide::Enter => key(gone.amount, gone.ratio),
            };
            let point = BreakPoint { key, id: entry(id, gone.side), fraction: gone.fraction() };
            let cursor = self.order.find(&point, &self.members);
            self.remove(&cursor, &point, gone.weight());
        }
        self.members.records[id as usize].key = 0;
        for new in is.into_iter().flatten() {
            let point = self.members.point(id, &new);
            if new.side == BreakSide::Leave {
                self.members.records[id as usize].key = point.key;
            }
            let cursor = self.order.find(&point, &self.members);
            self.insert(&cursor, &point, new.weight());
        }
    }

    fn insert(&mut self, cursor: &Cursor, point: &BreakPoint, weight: Weight) {
        let before = self.before_gap(cursor, point);
        self.gap.at += u32::from(before && cursor.leaf == self.gap.leaf);
        self.gap.below = self.gap.below + weight.only_if(before);
        self.order.insert(cursor, point, weight, &self.members);
    }

    fn remove(&mut self, cursor: &Cursor, point: &BreakPoint, weight: Weight) {
        let before = self.before_gap(cursor, point);
        self.gap.at -= u32::from(before && cursor.leaf == self.gap.leaf);
        self.gap.below = self.gap.below - weight.only_if(before);
        self.order.remove(cursor, weight);
    }

    /// Returns whether a position is before the gap, if the gap is still valid.
    #[inline]
    fn before_gap(&self, cursor: &Cursor, point: &BreakPoint) -> bool {
        if self.shape != self.order.shape {
            return false;
        }
        if cursor.leaf == self.gap.leaf {
            return cursor.at < self.gap.at;
        }
        self.order.before_leaf(point, self.gap.leaf, &self.members)
    }
}

/// The record of a group in one cache line, so that a change waits for memory once.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
#[repr(align(64))]
struct Record {
    group: Group,
    /// The key of the point at which the group stops rising, if there is one; [`Record::GONE`] for a removed group.
    key: u64,
    /// The position in `PoolMembers::late`, from 1; 0 if the points of the group are in their places.
    late: u32,
}

impl Record {
    const GONE: u64 = u64::MAX;
    const NEW: Record = Record { group: Group::NONE, key: 0, late: 0 };

    fn standing(&self) -> ReducedGroup {
        ReducedGroup::from_group(&self.group)
    }
}

/// The groups as the number source of the order.
#[derive(Clone, Debug)]
pub(super) struct PoolMembers {
    semantics: Semantics,
    records: Vec<Record>,
    /// Late groups: their points are not in their places. Each has the reduced group for which its points are stored.
    pub(super) late: Vec<(u32, ReducedGroup)>,
    /// The union of the bits of the amounts, and of the ratios, of all break points so far.
    amounts: u64,
    ratios: u64,
}

/// Returns the identifier of a group's point in the order.
fn entry(id: u32, side: BreakSide) -> u32 {
    id << 1 | side as u32
}

impl PoolMembers {
    /// Returns the reduced group for which the points are stored in the order.
    #[inline]
    fn placed(&self, id: u32) -> ReducedGroup {
        let record = &self.records[id as usize];
        match record.late {
            0 => record.standing(),
            late => self.late[late as usize - 1].1,
        }
    }

    /// Creates a point and adds its bits to the unions.
    fn point(&mut self, id: u32, point: &Break) -> BreakPoint {
        self.amounts |= point.amount;
        self.ratios |= point.ratio;
        BreakPoint { key: key(point.amount, point.ratio), id: entry(id, point.side), fraction: point.fraction() }
    }
}

impl NumberSource for PoolMembers {
    #[inline]
    fn fraction(&self, id: u32) -> (u64, u64) {
        let standing = self.placed(id >> 1);
        let amount = if id & 1 == BreakSide::Leave as u32 { standing.room(self.semantics) } else { standing.base };
        (amount, standing.ratio)
    }

    #[inline]
    fn weight(&self, id: u32) -> Weight {
        let (amount, ratio) = self.fraction(id);
        let weight = Weight { amount: amount as i64, ratio: ratio as i64 };
        if id & 1 == BreakSide::Leave as u32 { weight } else { Weight::ZERO - weight }
    }

    #[inline]
    fn distinct(&self) -> bool {
        let bits = |all: u64| u64::BITS - all.leading_zeros();
        bits(self.amounts) + bits(self.ratios) <= DISTINCT
    }
}

impl Checkpoint for PoolMembers {
    fn visit(&mut self, visitor: &mut Visitor) -> Result<()> {
        let PoolMembers { semantics: _, records, late, amounts, ratios } = self;
        visit_values!(visitor; records, late, amounts, ratios);
        Ok(())
    }
}

impl Checkpoint for Water {
    fn visit(&mut self, visitor: &mut Visitor) -> Result<()> {
        let Water { members, free, total, sums, order, gap, shape, window, drift, level } = self;
        visit_values!(visitor; free, total, sums, order, gap, shape, window, drift, level);
        members.visit(visitor)
    }
}
