//! The water level, computed without stored state by two methods that the product does not use: by rounds, and by sorting. They are
//! reference implementations of [`Water`](plimsoll::fair::water::Water) in tests, and baselines in its benchmark.

use plimsoll::error::{Error, Result};
use plimsoll::fair::water::{LIMIT, Level, ReducedGroup, Semantics};

/// A level, and the number of rounds over the groups that its computation took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rounds {
    /// The level.
    pub level: Level,
    /// The number of passes over the groups that still take part.
    pub rounds: usize,
}

/// A level at which a group stops rising (or starts to rise, if `enters`), and the group's contribution to the sums below that level.
#[derive(Clone, Copy, Debug)]
struct Point {
    amount: u64,
    ratio: u64,
    enters: bool,
}

impl Point {
    fn level(&self) -> Level {
        Level::from_amount(self.amount, self.ratio)
    }
}

/// Sums over the groups.
struct Sums {
    base: u64,
    reach: u64,
}

impl Sums {
    /// Errors: requests, ratios or minimums sum to more than [`LIMIT`].
    fn from_standings(standings: &[ReducedGroup]) -> Result<Sums> {
        let within = |key: &str, of: fn(&ReducedGroup) -> u64| {
            let sum: u128 = standings.iter().map(|standing| u128::from(of(standing))).sum();
            let fits = u64::try_from(sum).ok().filter(|&sum| sum <= LIMIT);
            fits.ok_or_else(|| Error::plan(key, format!("a sum of {sum}"), format!("at most {LIMIT}")))
        };
        let (reach, _) = (within("request", ReducedGroup::reach)?, within("ratio", ReducedGroup::ratio)?);
        Ok(Sums { base: within("min", ReducedGroup::base)?, reach })
    }

    /// Returns the amount to be assigned above the bases.
    fn above(&self, total: u64) -> u64 {
        total.min(self.reach).saturating_sub(self.base)
    }
}

fn points(semantics: Semantics, standings: &[ReducedGroup]) -> Vec<Point> {
    let mut points = Vec::with_capacity(standings.len());
    for standing in standings.iter().filter(|standing| standing.ratio() > 0) {
        let (base, ratio) = (standing.base(), standing.ratio());
        let amount = match semantics {
            Semantics::MinPlusShare => standing.reach() - base,
            Semantics::MaxMinLevel => standing.reach(),
        };
        points.push(Point { amount, ratio, enters: false });
        if semantics == Semantics::MaxMinLevel && base > 0 {
            points.push(Point { amount: base, ratio, enters: true });
        }
    }
    points
}

/// Returns the lowest level that assigns the total, or all requests. Visits the break points in order until the level is reached.
///
/// O(n log n). Errors: a sum exceeds [`LIMIT`].
pub fn by_sort(semantics: Semantics, standings: &[ReducedGroup], total: u64) -> Result<Level> {
    let above = Sums::from_standings(standings)?.above(total);
    if above == 0 {
        return Ok(Level::ZERO);
    }
    let mut points = points(semantics, standings);
    points.sort_unstable_by_key(Point::level);
    let starts = |standing: &&ReducedGroup| semantics == Semantics::MinPlusShare || standing.base() == 0;
    let open: u64 = standings.iter().filter(starts).map(ReducedGroup::ratio).sum();
    // The amount still to be assigned, and the sum of the ratios of the rising groups, after the visited points.
    let (mut amount, mut ratio) = (i128::from(above), i128::from(open));
    for point in &points {
        if amount * i128::from(point.ratio) <= ratio * i128::from(point.amount) {
            break;
        }
        let sign = if point.enters { -1 } else { 1 };
        amount -= sign * i128::from(point.amount);
        ratio -= sign * i128::from(point.ratio);
    }
    Ok(Level::from_amount(amount as u64, ratio as u64))
}

/// Returns the same level by rounds. Each round shares the amount by ratio, and settles the groups for which their part is too large (or
/// too small).
///
/// This is the loop of the article with corrections. A full group stays at its request and takes no further part. A request that is met
/// exactly counts as full. The test of whether all groups can be served uses the requests limited to the maximums. All groups that still
/// take part have one common level, so the loop stores this level instead of a quota for each group. O(n) per round, at most n rounds.
/// Errors: a sum exceeds [`LIMIT`].
pub fn by_rounds(semantics: Semantics, standings: &[ReducedGroup], total: u64) -> Result<Rounds> {
    let sums = Sums::from_standings(standings)?;
    if sums.above(total) == 0 {
        return Ok(Rounds { level: Level::ZERO, rounds: 0 });
    }
    if total >= sums.reach {
        // Every group gets its request. The level is the highest one at which a group reaches its request.
        let highest = points(semantics, standings).iter().map(Point::level).max();
        return Ok(Rounds { level: highest.unwrap_or(Level::ZERO), rounds: 1 });
    }
    Ok(match semantics {
        Semantics::MinPlusShare => lend(points(semantics, standings), sums.above(total)),
        Semantics::MaxMinLevel => {
            let takes_part = |standing: &&ReducedGroup| standing.ratio() > 0;
            let fixed: u64 = standings.iter().filter(|s| !takes_part(s)).map(ReducedGroup::reach).sum();
            settle(standings.iter().filter(takes_part).copied().collect(), total - fixed)
        }
    })
}

/// Shares `rest` among the hungry groups. The amount that full groups leave is shared again, until no further group is full.
fn lend(mut hungry: Vec<Point>, mut rest: u64) -> Rounds {
    let mut ratio: u64 = hungry.iter().map(|point| point.ratio).sum();
    let mut rounds = 0;
    loop {
        rounds += 1;
        // Every point is written and few are kept. Whether a group is hungry is unpredictable, so the loop has no branch on it.
        let (mut amount, mut width, mut kept) = (0, 0, 0);
        for at in 0..hungry.len() {
            let point = hungry[at];
            let full = point.level() <= Level::from_amount(rest, ratio);
            amount += if full { point.amount } else { 0 };
            width += if full { point.ratio } else { 0 };
            hungry[kept] = point;
            kept += usize::from(!full);
        }
        if width == 0 || kept == 0 {
            return Rounds { level: Level::from_amount(rest, ratio), rounds };
        }
        hungry.truncate(kept);
        rest -= amount;
        ratio -= width;
    }
}

/// Shares `total` among groups with a least and a most amount. Each round compares the cost of raising groups to their least amount with
/// the amount that the full groups leave. If the cost is larger, the groups below their least amount are settled, otherwise the full
/// groups. The loop ends when both are equal.
fn settle(groups: Vec<ReducedGroup>, total: u64) -> Rounds {
    let mut sharing = groups.clone();
    let mut rest = i128::from(total);
    let mut rounds = 0;
    loop {
        rounds += 1;
        let ratio: i128 = sharing.iter().map(|group| i128::from(group.ratio())).sum();
        let poured = |group: &ReducedGroup| rest * i128::from(group.ratio());
        let low = |group: &ReducedGroup| poured(group) < i128::from(group.base()) * ratio;
        let full = |group: &ReducedGroup| poured(group) > i128::from(group.reach()) * ratio;
        // The difference between the assigned amounts with and without settling, times the ratio.
        let (mut amounts, mut ratios) = (0, 0);
        for group in &sharing {
            let bound = if low(group) { group.base() } else { group.reach() };
            if low(group) || full(group) {
                amounts += i128::from(bound);
                ratios += i128::from(group.ratio());
            }
        }
        let added = amounts * ratio - rest * ratios;
        if added == 0 {
            return Rounds { level: lowest(&groups, Level::from_amount(rest as u64, ratio as u64)), rounds };
        }
        let settled = |group: &ReducedGroup| if added > 0 { low(group) } else { full(group) };
        let bound = |group: &ReducedGroup| if added > 0 { group.base() } else { group.reach() };
        let gone: i128 = sharing.iter().filter(|group| settled(group)).map(|group| i128::from(bound(group))).sum();
        let stays: Vec<ReducedGroup> = sharing.iter().filter(|group| !settled(group)).copied().collect();
        sharing = stays;
        rest -= gone;
    }
}

/// Returns the lowest level that assigns as much as this level. If no group rises at this level, that is the level at which the last group
/// stopped.
fn lowest(groups: &[ReducedGroup], level: Level) -> Level {
    let reach = |group: &ReducedGroup| Level::from_amount(group.reach(), group.ratio());
    let rises = |group: &ReducedGroup| Level::from_amount(group.base(), group.ratio()) < level && level <= reach(group);
    if groups.iter().any(rises) {
        return level;
    }
    groups.iter().map(reach).filter(|&stop| stop <= level).max().unwrap_or(Level::ZERO)
}
