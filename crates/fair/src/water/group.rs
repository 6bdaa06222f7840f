//! A group's request, minimum and maximum, and their effect on the level.
//!
//! A [`Group`] is reduced to its quota at level 0, its quota at a sufficiently high level, and its ratio ([`ReducedGroup`]). Its break
//! points are the levels at which it starts or stops rising. [`Weight`] and [`Sums`] add these numbers up, and [`LevelTarget`] decides
//! whether a level hands out the required amount. Sums are limited to [`LIMIT`], so that comparisons fit 128 bits.

use super::level::Level;
use super::seek::{Window, Zone};
use crate::Exact;
use plimsoll_base::error::{Error, Result};
use plimsoll_base::named;

/// The limit on the sum of amounts over the groups of one level, and on the sum of ratios: 2^62, so that the product of two sums and a sign
/// fit 128 bits.
pub const LIMIT: u64 = 1 << 62;

named! {
    /// The relation of a guaranteed minimum and the level. The base is the amount that must be given (the requested part of the minimum).
    /// The reach is the usable amount (the request, cut to the max).
    Semantics {
        /// `base + min(reach - base, level ratio)`, as in the article and Koordinator.
        MinPlusShare "min-plus-share": "The min first; the ratio shares the rest on top of it",
        /// `min(reach, max(base, level ratio))`, as in YARN's fair scheduler.
        MaxMinLevel "max-min-level": "The ratio shares all; no group stays below its min",
    }
}

/// The use of the part of a minimum that its group does not request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum UnusedMin {
    /// Other groups may use the unused part.
    #[default]
    Lent,
    /// The unused part is reserved for the group.
    Kept,
}

/// The configuration and current state of a group, in base units of one resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Group {
    /// The request: the sum of the allocation and the pending demand.
    pub request: u64,
    /// The guaranteed amount; the part above `max` does not count.
    pub min: u64,
    /// The maximum that the group may use; `u64::MAX` means unlimited.
    pub max: u64,
    /// The width of the bucket. With 0 the group gets exactly its base.
    pub ratio: u64,
    /// Whether the group lends the part of its minimum that it does not request.
    pub unused_min: UnusedMin,
    /// The part of the allocation that the group must not lose, which it gets at any level; 0 without such a floor.
    pub held: u64,
}

impl Group {
    /// A group without any amount.
    pub(super) const NONE: Group = Group { request: 0, min: 0, max: 0, ratio: 0, unused_min: UnusedMin::Lent, held: 0 };

    /// Creates a group that lends its unused minimum and has no floor.
    pub fn new(request: u64, min: u64, max: u64, ratio: u64) -> Group {
        Group { request, min, max, ratio, unused_min: UnusedMin::Lent, held: 0 }
    }
}

/// The numbers of a group that determine the level: its quota at level 0, its quota at a sufficiently high level, and its growth per level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ReducedGroup {
    /// The quota at level 0.
    pub(super) base: u64,
    /// The quota at any sufficiently high level; at least `base`.
    pub(super) reach: u64,
    /// The amount per unit of level; 0 exactly if `reach` is `base`.
    pub(super) ratio: u64,
}

impl ReducedGroup {
    /// Reduces a group. With a ratio of 0 its quota ends at the base; a floor above the request raises the quota to the floor.
    pub fn from_group(group: &Group) -> ReducedGroup {
        let demand = group.request.min(group.max);
        let min = group.min.min(group.max);
        let guaranteed = match group.unused_min {
            UnusedMin::Lent => demand.min(min),
            UnusedMin::Kept => min,
        };
        let base = guaranteed.max(group.held);
        if demand <= base || group.ratio == 0 {
            return ReducedGroup { base, reach: base, ratio: 0 };
        }
        ReducedGroup { base, reach: demand, ratio: group.ratio }
    }

    /// Returns the group's quota at level 0, independently of other groups' requests.
    #[inline]
    pub fn base(&self) -> u64 {
        self.base
    }

    /// Returns the group's quota if the total is enough for all groups.
    #[inline]
    pub fn reach(&self) -> u64 {
        self.reach
    }

    /// Returns the quota per unit of level while it rises; 0 if it never does.
    #[inline]
    pub fn ratio(&self) -> u64 {
        self.ratio
    }

    /// Returns the runtime quota at this level, rounded down to a base unit. O(1).
    pub fn runtime(&self, semantics: Semantics, level: Level) -> u64 {
        let (numerator, denominator) = (u128::from(level.numerator), u128::from(level.denominator));
        let poured = numerator * u128::from(self.ratio);
        if poured >= u128::from(self.room(semantics)) * denominator {
            return self.reach;
        }
        // Below the room, so it fits one word.
        let poured = (poured / denominator) as u64;
        match semantics {
            Semantics::MinPlusShare => self.base + poured,
            Semantics::MaxMinLevel => self.base.max(poured),
        }
    }

    /// Returns the runtime quota at this level as a fraction.
    pub fn runtime_exact(&self, semantics: Semantics, level: Level) -> Exact {
        let (base, reach) = (Exact::from(self.base), Exact::from(self.reach));
        let poured = &level.exact() * &Exact::from(self.ratio);
        match semantics {
            Semantics::MinPlusShare => reach.min(&base + &poured),
            Semantics::MaxMinLevel => reach.min(base.max(poured)),
        }
    }

    /// Returns the point at which the group stops rising, and the point at which it starts rising if that is above level 0.
    pub(super) fn breaks(&self, semantics: Semantics) -> [Option<Break>; 2] {
        let of = |side, amount| Break { side, amount, ratio: self.ratio };
        if self.ratio == 0 {
            return [None; 2];
        }
        let enters = semantics == Semantics::MaxMinLevel && self.base > 0;
        [Some(of(BreakSide::Leave, self.room(semantics))), enters.then(|| of(BreakSide::Enter, self.base))]
    }

    /// Returns the amount that the group receives by the level until it is full.
    #[inline]
    pub(super) fn room(&self, semantics: Semantics) -> u64 {
        match semantics {
            Semantics::MinPlusShare => self.reach - self.base,
            Semantics::MaxMinLevel => self.reach,
        }
    }

    /// Returns the part of the group's ratio that counts from level 0.
    fn open(&self, semantics: Semantics) -> u64 {
        match semantics {
            Semantics::MaxMinLevel if self.base > 0 => 0,
            _ => self.ratio,
        }
    }
}

/// Whether a group stops or starts rising at a break point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BreakSide {
    /// The group is full.
    Leave,
    /// The level passes the group's quota at level 0.
    Enter,
}

/// A level, `amount / ratio`, at which a group starts or stops rising. Neither number is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Break {
    pub side: BreakSide,
    pub amount: u64,
    pub ratio: u64,
}

impl Break {
    /// Returns the level as numerator and denominator.
    pub fn fraction(&self) -> (u64, u64) {
        (self.amount, self.ratio)
    }

    /// Returns the weight that the point adds to the sums below a level.
    pub fn weight(&self) -> Weight {
        let weight = Weight { amount: self.amount as i64, ratio: self.ratio as i64 };
        match self.side {
            BreakSide::Leave => weight,
            BreakSide::Enter => Weight::ZERO - weight,
        }
    }
}

/// The sum of the amounts and ratios of break points; points where a group enters count negatively.
///
/// If all points are in their places, a running sum from the lowest break point on is within [`LIMIT`] of 0 in both parts, and so is the
/// sum of any block. Sums of old and new points together may wrap around; the exact sums fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) struct Weight {
    pub amount: i64,
    pub ratio: i64,
}

impl Weight {
    pub const ZERO: Weight = Weight { amount: 0, ratio: 0 };

    /// Returns the weight, or zero if `yes` is false. Uses a mask, because a branch on whether a point is below the level is unpredictable.
    #[inline]
    pub fn only_if(self, yes: bool) -> Weight {
        let mask = -i64::from(yes);
        Weight { amount: self.amount & mask, ratio: self.ratio & mask }
    }
}

impl std::ops::Add for Weight {
    type Output = Weight;
    fn add(self, other: Weight) -> Weight {
        Weight { amount: self.amount.wrapping_add(other.amount), ratio: self.ratio.wrapping_add(other.ratio) }
    }
}

impl std::ops::Sub for Weight {
    type Output = Weight;
    fn sub(self, other: Weight) -> Weight {
        Weight { amount: self.amount.wrapping_sub(other.amount), ratio: self.ratio.wrapping_sub(other.ratio) }
    }
}

/// Sums over the groups.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Sums {
    base: u64,
    reach: u64,
    ratio: u64,
    open: u64,
}

impl Sums {
    /// Returns the sums with `old` replaced by `new`. Errors: a sum exceeds [`LIMIT`].
    #[inline(always)]
    pub fn replace(&self, semantics: Semantics, old: &ReducedGroup, new: &ReducedGroup) -> Result<Sums> {
        let swap = |sum: u64, old: u64, new: u64| (sum - old).checked_add(new).filter(|&sum| sum <= LIMIT);
        let reach = swap(self.reach, old.reach, new.reach).ok_or_else(|| too_much("request", new.reach))?;
        let ratio = swap(self.ratio, old.ratio, new.ratio).ok_or_else(|| too_much("ratio", new.ratio))?;
        let base = self.base - old.base + new.base;
        Ok(Sums { base, reach, ratio, open: self.open - old.open(semantics) + new.open(semantics) })
    }

    /// Returns the sums over these groups. Errors: a sum exceeds [`LIMIT`].
    pub fn from_standings(semantics: Semantics, standings: &[ReducedGroup]) -> Result<Sums> {
        let (mut base, mut reach, mut ratio, mut open) = (0u64, 0u128, 0u128, 0u64);
        for standing in standings {
            reach += u128::from(standing.reach);
            ratio += u128::from(standing.ratio);
            // These sums are at most as large as the other two, and unused if those exceed the limit.
            base = base.wrapping_add(standing.base);
            open = open.wrapping_add(standing.open(semantics));
        }
        let within = |key: &str, sum: u128| {
            let fits = u64::try_from(sum).ok().filter(|&sum| sum <= LIMIT);
            fits.ok_or_else(|| Error::plan(key, format!("a sum of {sum}"), format!("at most {LIMIT}")))
        };
        Ok(Sums { base, reach: within("request", reach)?, ratio: within("ratio", ratio)?, open })
    }

    /// Returns the amount to hand out above the bases: 0 if the total does not exceed them.
    pub fn target(&self, total: u64) -> LevelTarget {
        LevelTarget { above: total.min(self.reach).saturating_sub(self.base) as i64, open: self.open as i64 }
    }

    /// Returns whether the total is enough for all groups.
    pub fn enough(&self, total: u64) -> bool {
        total >= self.reach
    }
}

#[cold]
fn too_much(key: &str, value: u64) -> Error {
    Error::plan(key, value, format!("groups that sum to at most {LIMIT}"))
}

/// The amount that a level must reach.
#[derive(Clone, Copy, Debug)]
pub(super) struct LevelTarget {
    /// The amount to hand out above the bases.
    pub above: i64,
    /// The sum of the ratios that count from level 0.
    pub open: i64,
}

impl LevelTarget {
    /// Returns whether the level of a break point hands out enough, given the sums below it.
    ///
    /// Points at the same level may be counted as below or not: at that level their amount and ratio cancel out.
    pub fn reached(&self, at: (u64, u64), below: Weight) -> bool {
        let missing = i128::from(self.above - below.amount) * i128::from(at.1);
        missing <= i128::from(self.open - below.ratio) * i128::from(at.0)
    }

    /// Returns the level, given the weight below it.
    pub fn level(&self, below: Weight) -> Level {
        Level { numerator: (self.above - below.amount) as u64, denominator: (self.open - below.ratio) as u64 }
    }

    /// Returns the level that results from the given sums below it, if it lies within a window.
    pub fn level_within(&self, below: Weight, window: &Window) -> Option<Level> {
        let numerator = u64::try_from(self.above - below.amount).ok()?;
        let denominator = u64::try_from(self.open - below.ratio).ok().filter(|&ratio| ratio > 0)?;
        (window.zone((numerator, denominator)) == Zone::Within).then_some(Level { numerator, denominator })
    }
}
