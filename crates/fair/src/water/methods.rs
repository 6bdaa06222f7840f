//! The level from nothing: by rounds as people do it, by sorting, by selection.

use std::cmp::Ordering;

use super::group::{Break, Semantics, Side, Standing, Sums, Weight};
use super::level::{self, Level};
use plimsoll_base::error::Result;

/// A level and how many rounds over the groups it took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rounds {
    /// The level.
    pub level: Level,
    /// Passes over the groups that still take part.
    pub rounds: usize,
}

/// The lowest level that hands out the total, or all that is requested: the break points in order, until it is reached.
///
/// O(n log n). Errors: a sum passes [`LIMIT`](super::LIMIT).
pub fn by_sort(semantics: Semantics, standings: &[Standing], total: u64) -> Result<Level> {
    let target = Sums::of(semantics, standings)?.target(total);
    if target.above == 0 {
        return Ok(Level::ZERO);
    }
    let mut points = keyed(semantics, standings);
    points.sort_unstable_by(order);
    let mut below = Weight::ZERO;
    for (_, point) in &points {
        if target.reached(point.fraction(), below) {
            break;
        }
        below = below + point.weight();
    }
    Ok(target.level(below))
}

/// The same level without order: the median break point says on which side the level lies, and half are left.
///
/// O(n). Errors: a sum passes [`LIMIT`](super::LIMIT).
pub fn by_selection(semantics: Semantics, standings: &[Standing], total: u64) -> Result<Level> {
    let target = Sums::of(semantics, standings)?.target(total);
    if target.above == 0 {
        return Ok(Level::ZERO);
    }
    let mut points = keyed(semantics, standings);
    let mut left = points.as_mut_slice();
    let mut below = Weight::ZERO;
    while !left.is_empty() {
        let middle = left.len() / 2;
        let (lower, (_, median), upper) = left.select_nth_unstable_by(middle, order);
        let through = lower.iter().fold(below, |sum, (_, point)| sum + point.weight());
        if target.reached(median.fraction(), through) {
            left = lower;
        } else {
            below = through + median.weight();
            left = upper;
        }
    }
    Ok(target.level(below))
}

fn points(semantics: Semantics, standings: &[Standing]) -> Vec<Break> {
    let mut points = Vec::with_capacity(standings.len());
    for standing in standings {
        points.extend(standing.breaks(semantics).into_iter().flatten());
    }
    points
}

/// Break points with their keys, which are divided once and compared often.
fn keyed(semantics: Semantics, standings: &[Standing]) -> Vec<(u64, Break)> {
    let mut points = Vec::with_capacity(standings.len());
    for standing in standings {
        let breaks = standing.breaks(semantics).into_iter().flatten();
        points.extend(breaks.map(|point| (level::key(point.amount, point.ratio), point)));
    }
    points
}

fn order(one: &(u64, Break), other: &(u64, Break)) -> Ordering {
    one.0.cmp(&other.0).then_with(|| level::compare(one.1.fraction(), other.1.fraction()))
}

/// The same level by rounds: share by ratio, settle the groups for which that is too much (or too little), share again.
///
/// The article's loop with its repairs: a group that is full is held at the request and shares no more; a request that
/// is met exactly is full; the test whether all can be served looks at requests cut to the maximum. All groups that
/// still share have one common level, so the loop keeps that level instead of a quota for each. O(n) a round, at most n
/// rounds. Errors: a sum passes [`LIMIT`](super::LIMIT).
pub fn by_rounds(semantics: Semantics, standings: &[Standing], total: u64) -> Result<Rounds> {
    let sums = Sums::of(semantics, standings)?;
    if sums.target(total).above == 0 {
        return Ok(Rounds { level: Level::ZERO, rounds: 0 });
    }
    if sums.enough(total) {
        // Everybody has the request; the level is where the last one got it.
        let highest = points(semantics, standings).iter().map(|point| of(point.fraction())).max();
        return Ok(Rounds { level: highest.unwrap_or(Level::ZERO), rounds: 1 });
    }
    Ok(match semantics {
        Semantics::MinPlusShare => lend(points(semantics, standings), sums.target(total).above as u64),
        Semantics::MaxMinLevel => {
            let takes_part = |standing: &&Standing| standing.ratio > 0;
            let fixed: u64 = standings.iter().filter(|s| !takes_part(s)).map(|s| s.reach).sum();
            settle(standings.iter().filter(takes_part).copied().collect(), total - fixed)
        }
    })
}

fn of((numerator, denominator): (u64, u64)) -> Level {
    Level { numerator, denominator }
}

/// Shares `rest` among the hungry; the rest of the full ones is shared again, until no further one is full.
fn lend(mut hungry: Vec<Break>, mut rest: u64) -> Rounds {
    let mut ratio: u64 = hungry.iter().map(|point| point.ratio).sum();
    let mut rounds = 0;
    loop {
        rounds += 1;
        // Every point is written and few are kept: the hungry groups are not foreseeable, so nothing branches on them.
        let (mut amount, mut width, mut kept) = (0, 0, 0);
        for at in 0..hungry.len() {
            let point = hungry[at];
            let full = level::compare(point.fraction(), (rest, ratio)).is_le();
            amount += if full { point.amount } else { 0 };
            width += if full { point.ratio } else { 0 };
            hungry[kept] = point;
            kept += usize::from(!full);
        }
        if width == 0 || kept == 0 {
            return Rounds { level: of((rest, ratio)), rounds };
        }
        hungry.truncate(kept);
        rest -= amount;
        ratio -= width;
    }
}

/// Shares `total` among groups with a least and a most amount: when holding groups up to their least costs more than
/// the full ones leave, the former are settled, else the latter, until both cancel.
fn settle(groups: Vec<Standing>, total: u64) -> Rounds {
    let mut sharing = groups.clone();
    let mut rest = i128::from(total);
    let mut rounds = 0;
    loop {
        rounds += 1;
        let ratio: i128 = sharing.iter().map(|group| i128::from(group.ratio)).sum();
        let poured = |group: &Standing| rest * i128::from(group.ratio);
        let low = |group: &Standing| poured(group) < i128::from(group.base) * ratio;
        let full = |group: &Standing| poured(group) > i128::from(group.reach) * ratio;
        // The amount that settling adds to the one handed out now, times the ratio.
        let (mut amounts, mut ratios) = (0, 0);
        for group in &sharing {
            let bound = if low(group) { group.base } else { group.reach };
            if low(group) || full(group) {
                amounts += i128::from(bound);
                ratios += i128::from(group.ratio);
            }
        }
        let added = amounts * ratio - rest * ratios;
        if added == 0 {
            return Rounds { level: lowest(&groups, of((rest as u64, ratio as u64))), rounds };
        }
        let settled = |group: &Standing| if added > 0 { low(group) } else { full(group) };
        let bound = |group: &Standing| if added > 0 { group.base } else { group.reach };
        let gone: i128 = sharing.iter().filter(|group| settled(group)).map(|group| i128::from(bound(group))).sum();
        let stays: Vec<Standing> = sharing.iter().filter(|group| !settled(group)).copied().collect();
        sharing = stays;
        rest -= gone;
    }
}

/// The lowest level that hands out as much as this one: if nobody rises there, where the last one stopped.
fn lowest(groups: &[Standing], level: Level) -> Level {
    let rises = |group: &Standing| of((group.base, group.ratio)) < level && level <= of((group.reach, group.ratio));
    if groups.iter().any(rises) {
        return level;
    }
    let stops = groups.iter().flat_map(|group| group.breaks(Semantics::MaxMinLevel)).flatten();
    let stops = stops.filter(|point| point.side == Side::Leave).map(|point| of(point.fraction()));
    stops.filter(|&stop| stop <= level).max().unwrap_or(Level::ZERO)
}
