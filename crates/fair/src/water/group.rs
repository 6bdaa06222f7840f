//! A group's request, minimum and maximum, and their effect on the level.

use super::level::Level;
use super::seek::{Window, Zone};
use crate::Exact;
use plimsoll_base::error::{Error, Result};
use plimsoll_base::named;

/// The most that amounts may sum to over the groups of one level, and the most that ratios may: 2^62, so that the
/// product of two sums and a sign fit 128 bits.
pub const LIMIT: u64 = 1 << 62;

named! {
    /// How a guaranteed minimum and the level go together. The base is the amount that must be given (the minimum, as far
    /// as it is requested), the reach the amount that can be used (the request, cut to the max).
    Semantics {
        /// `base + min(reach - base, level ratio)`. The article, Koordinator.
        MinPlusShare "min-plus-share": "The min first; the ratio shares the rest on top of it",
        /// `min(reach, max(base, level ratio))`. YARN's fair scheduler.
        MaxMinLevel "max-min-level": "The ratio shares all; no group stays below its min",
    }
}

/// The use of the part of a minimum that its group does not request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum UnusedMin {
    /// Others may use it.
    #[default]
    Lent,
    /// It is kept for the group.
    Kept,
}

/// One group as it is configured and as it stands, in base units of one resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// Its request: the amounts it holds and waits for.
    pub request: u64,
    /// Its guaranteed amount; the part above `max` does not count.
    pub min: u64,
    /// The largest amount it may use; `u64::MAX` for no limit.
    pub max: u64,
    /// How wide its bucket is. With 0 it gets its base and never more.
    pub ratio: u64,
    /// Whether it lends the part of its minimum that it does not request.
    pub unused_min: UnusedMin,
    /// The amount held that it must not lose, and so has at any level; 0 without such a floor.
    pub held: u64,
}

impl Group {
    /// No group.
    pub(super) const NONE: Group = Group { request: 0, min: 0, max: 0, ratio: 0, unused_min: UnusedMin::Lent, held: 0 };

    /// A group that lends and has no floor.
    pub fn new(request: u64, min: u64, max: u64, ratio: u64) -> Group {
        Group { request, min, max, ratio, unused_min: UnusedMin::Lent, held: 0 }
    }
}

/// A group reduced to the deciding numbers: its quota at level 0, its quota at the end, and how fast it gets there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReducedGroup {
    /// At level 0.
    pub(super) base: u64,
    /// At any level that is high enough; no less than `base`.
    pub(super) reach: u64,
    /// Amount per level; 0 exactly if `reach` is `base`.
    pub(super) ratio: u64,
}

impl ReducedGroup {
    /// Reduces a group: a ratio of 0 ends at the base, and a floor above the request is reached.
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

    /// The group's quota whatever the others request.
    #[inline]
    pub fn base(&self) -> u64 {
        self.base
    }

    /// The group's quota when there is enough for all.
    #[inline]
    pub fn reach(&self) -> u64 {
        self.reach
    }

    /// Its quota per level while it rises; 0 if it never does.
    #[inline]
    pub fn ratio(&self) -> u64 {
        self.ratio
    }

    /// The runtime quota at this level, rounded down to a base unit. O(1).
    pub fn runtime(&self, semantics: Semantics, level: Level) -> u64 {
        let (numerator, denominator) = (u128::from(level.numerator), u128::from(level.denominator));
        let poured = numerator * u128::from(self.ratio);
        if poured >= u128::from(self.room(semantics)) * denominator {
            return self.reach;
        }
        // Below the room, so in one word again.
        let poured = (poured / denominator) as u64;
        match semantics {
            Semantics::MinPlusShare => self.base + poured,
            Semantics::MaxMinLevel => self.base.max(poured),
        }
    }

    /// The runtime quota at this level, as it is.
    pub fn runtime_exact(&self, semantics: Semantics, level: Level) -> Exact {
        let (base, reach) = (Exact::from(self.base), Exact::from(self.reach));
        let poured = &level.exact() * &Exact::from(self.ratio);
        match semantics {
            Semantics::MinPlusShare => reach.min(&base + &poured),
            Semantics::MaxMinLevel => reach.min(base.max(poured)),
        }
    }

    /// Where the group stops to rise, and where it starts if not from the ground.
    pub(super) fn breaks(&self, semantics: Semantics) -> [Option<Break>; 2] {
        let of = |side, amount| Break { side, amount, ratio: self.ratio };
        if self.ratio == 0 {
            return [None; 2];
        }
        let enters = semantics == Semantics::MaxMinLevel && self.base > 0;
        [Some(of(BreakSide::Leave, self.room(semantics))), enters.then(|| of(BreakSide::Enter, self.base))]
    }

    /// The amount poured into it until it is full.
    #[inline]
    pub(super) fn room(&self, semantics: Semantics) -> u64 {
        match semantics {
            Semantics::MinPlusShare => self.reach - self.base,
            Semantics::MaxMinLevel => self.reach,
        }
    }

    /// The part of its ratio that counts from level 0.
    fn open(&self, semantics: Semantics) -> u64 {
        match semantics {
            Semantics::MaxMinLevel if self.base > 0 => 0,
            _ => self.ratio,
        }
    }
}

/// Whether a group stops or starts to rise at a break point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BreakSide {
    /// The group is full.
    Leave,
    /// The level passes the group's quota at level 0.
    Enter,
}

/// A level, `amount / ratio`, at which a group starts or stops to rise. Neither number is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Break {
    pub side: BreakSide,
    pub amount: u64,
    pub ratio: u64,
}

impl Break {
    /// The level as numerator and denominator.
    pub fn fraction(&self) -> (u64, u64) {
        (self.amount, self.ratio)
    }

    /// The weight it adds to the sums below a level.
    pub fn weight(&self) -> Weight {
        let weight = Weight { amount: self.amount as i64, ratio: self.ratio as i64 };
        match self.side {
            BreakSide::Leave => weight,
            BreakSide::Enter => Weight::ZERO - weight,
        }
    }
}

/// Amounts and ratios of break points, summed; points where a group enters count negatively.
///
/// A running sum from the lowest break point on is within [`LIMIT`] of 0 in both parts, and so is the sum of any block, if all points are
/// in their places. Sums of old and new points together may wrap around; the exact sums fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Weight {
    pub amount: i64,
    pub ratio: i64,
}

impl Weight {
    pub const ZERO: Weight = Weight { amount: 0, ratio: 0 };

    /// The weight or nothing, by a mask: whether a point is below the level is a coin's toss to a branch.
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
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sums {
    base: u64,
    reach: u64,
    ratio: u64,
    open: u64,
}

impl Sums {
    /// With `old` replaced by `new`. Errors: a sum passes [`LIMIT`].
    #[inline(always)]
    pub fn replace(&self, semantics: Semantics, old: &ReducedGroup, new: &ReducedGroup) -> Result<Sums> {
        let swap = |sum: u64, old: u64, new: u64| (sum - old).checked_add(new).filter(|&sum| sum <= LIMIT);
        let reach = swap(self.reach, old.reach, new.reach).ok_or_else(|| too_much("request", new.reach))?;
        let ratio = swap(self.ratio, old.ratio, new.ratio).ok_or_else(|| too_much("ratio", new.ratio))?;
        let base = self.base - old.base + new.base;
        Ok(Sums { base, reach, ratio, open: self.open - old.open(semantics) + new.open(semantics) })
    }

    /// Of all these groups. Errors: a sum passes [`LIMIT`].
    pub fn from_standings(semantics: Semantics, standings: &[ReducedGroup]) -> Result<Sums> {
        let (mut base, mut reach, mut ratio, mut open) = (0u64, 0u128, 0u128, 0u64);
        for standing in standings {
            reach += u128::from(standing.reach);
            ratio += u128::from(standing.ratio);
            // No larger than the other two, and worth nothing if those pass the limit.
            base = base.wrapping_add(standing.base);
            open = open.wrapping_add(standing.open(semantics));
        }
        let within = |key: &str, sum: u128| {
            let fits = u64::try_from(sum).ok().filter(|&sum| sum <= LIMIT);
            fits.ok_or_else(|| Error::plan(key, format!("a sum of {sum}"), format!("at most {LIMIT}")))
        };
        Ok(Sums { base, reach: within("request", reach)?, ratio: within("ratio", ratio)?, open })
    }

    /// The amount to be handed out above the bases: 0 if the total does not even reach those.
    pub fn target(&self, total: u64) -> LevelTarget {
        LevelTarget { above: total.min(self.reach).saturating_sub(self.base) as i64, open: self.open as i64 }
    }

    /// Whether the total is enough for all.
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
    /// Handed out above the bases.
    pub above: i64,
    /// Ratios that take part from the ground.
    pub open: i64,
}

impl LevelTarget {
    /// Whether the level of a break point hands out enough, given the sums below it.
    ///
    /// Points at the same level may count as below or not: they add as much as they take there.
    pub fn reached(&self, at: (u64, u64), below: Weight) -> bool {
        let missing = i128::from(self.above - below.amount) * i128::from(at.1);
        missing <= i128::from(self.open - below.ratio) * i128::from(at.0)
    }

    /// The level, given the weight below it.
    pub fn level(&self, below: Weight) -> Level {
        Level { numerator: (self.above - below.amount) as u64, denominator: (self.open - below.ratio) as u64 }
    }

    /// The level that would be, given the sums that would be below it, if it lies within a window.
    pub fn level_within(&self, below: Weight, window: &Window) -> Option<Level> {
        let numerator = u64::try_from(self.above - below.amount).ok()?;
        let denominator = u64::try_from(self.open - below.ratio).ok().filter(|&ratio| ratio > 0)?;
        (window.zone((numerator, denominator)) == Zone::Within).then_some(Level { numerator, denominator })
    }
}
