//! Computes the level from scratch by selection, for callers that do not keep a level up to date while groups change.

use std::cmp::Ordering;

use super::group::{Break, ReducedGroup, Semantics, Sums, Weight};
use super::level::{self, Level};
use plimsoll_base::error::Result;

/// Returns the lowest level at which the total is used up or all requests are met. Each step tests the median break point and discards the
/// half that cannot contain the level.
///
/// Cost: O(n). Errors: a sum exceeds [`LIMIT`](super::LIMIT).
pub fn by_selection(semantics: Semantics, standings: &[ReducedGroup], total: u64) -> Result<Level> {
    let target = Sums::from_standings(semantics, standings)?.target(total);
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

/// Returns the break points with their keys, so that each key is computed once and compared often.
fn keyed(semantics: Semantics, standings: &[ReducedGroup]) -> Vec<(u64, Break)> {
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
