//! Water in buckets: one resource of one parent, by the level or in rounds.
//!
//! A bucket contains `min(high, max(low, h ratio))` at the level h. The sum over all buckets never falls as h rises. Therefore the lowest
//! level that hands out the total (or the full content of all buckets, if less) is unique, and so is the content of each bucket.

use std::cmp::Ordering;

use crate::Number;
use plimsoll_base::named;

/// The part of its parent's quota that one group may use. `0 <= low <= high`, `0 <= ratio`.
#[derive(Clone, Debug, PartialEq)]
pub struct Bucket<N> {
    /// The content at level 0.
    pub low: N,
    /// The content of the full bucket.
    pub high: N,
    /// The content per unit of level: the width of the floor. With ratio 0 the content stays at `low`.
    pub ratio: N,
}

impl<N: Number> Bucket<N> {
    /// Returns the content at a level.
    pub fn at(&self, level: &N) -> N {
        let share = level.times(&self.ratio);
        if share <= self.low {
            self.low.clone()
        } else if share >= self.high {
            self.high.clone()
        } else {
            share
        }
    }

    /// Returns whether the content depends on the level.
    fn moves(&self) -> bool {
        !self.ratio.is_zero() && self.low < self.high
    }
}

named! {
    /// The method that finds the level. All methods give the same numbers.
    Method {
        /// O(n log n).
        Sort "sort": "The boundary of the full buckets, in order of saturation",
        /// Hands out by ratio, takes back the excess over a request, and hands that out again: O(n rounds).
        Iterative "iterative": "In rounds, as the article's typical method does it",
        /// Uses [`by_tree`](super::by_tree), filled once; for fractions only.
        Tree "tree": "The structure that follows changes in O(log groups)",
    }
}

/// The result of pouring.
#[derive(Clone, Debug, PartialEq)]
pub struct Poured<N> {
    /// The content of each bucket.
    pub content: Vec<N>,
    /// The lowest level at which the buckets have this content.
    pub level: N,
    /// The number of rounds of the iterative method; 0 for other methods.
    pub rounds: usize,
}

/// Pours `total` into the buckets. Together they contain `min(total, sum of high)`, or their `low` amounts if those exceed the total.
/// [`Method::Tree`], which is not a loop over buckets, is treated as [`Method::Sort`] by this function.
pub fn pour<N: Number>(method: Method, total: &N, buckets: &[Bucket<N>]) -> Poured<N> {
    match method {
        Method::Sort | Method::Tree => sorted(total, buckets),
        Method::Iterative => in_rounds(total, buckets),
    }
}

/// Returns the total content of the buckets at a level.
pub fn filled<N: Number>(buckets: &[Bucket<N>], level: &N) -> N {
    buckets.iter().fold(N::zero(), |sum, bucket| sum.plus(&bucket.at(level)))
}

/// Finds the level by order of saturation. A bucket starts to fill at `low / ratio` and is full at `high / ratio`. Between two such points
/// the buckets contain `still + h moving` together.
///
/// The boundary is the first of these points at which the content reaches the total, found by bisection. Amounts with long fractions are
/// added up once, and compared O(log n) times.
fn sorted<N: Number>(total: &N, buckets: &[Bucket<N>]) -> Poured<N> {
    // The level of the point, the bucket, and whether the bucket starts to fill there.
    let mut points: Vec<(N, &Bucket<N>, bool)> = Vec::with_capacity(2 * buckets.len());
    for bucket in buckets.iter().filter(|bucket| bucket.moves()) {
        points.push((bucket.low.over(&bucket.ratio), bucket, true));
        points.push((bucket.high.over(&bucket.ratio), bucket, false));
    }
    points.sort_by(|(a, ..), (b, ..)| a.partial_cmp(b).unwrap_or(Ordering::Equal));
    let mut before = Contents { still: filled(buckets, &N::zero()), moving: N::zero() };
    let level = if before.still >= *total {
        N::zero()
    } else {
        let (mut low, mut high) = (0, points.len());
        while low < high {
            let middle = low + (high - low) / 2;
            let mut there = before.clone();
            points[low..middle].iter().for_each(|(_, bucket, starts)| there.pass(bucket, *starts));
            let (point, bucket, starts) = &points[middle];
            if there.still.with_product(&there.moving, point, total) == Some(Ordering::Less) {
                there.pass(bucket, *starts);
                (before, low) = (there, middle + 1);
            } else {
                high = middle;
            }
        }
        match points.get(low) {
            // The total is more than enough.
            None => points.last().map_or(N::zero(), |(point, ..)| point.clone()),
            Some((point, ..)) if before.still.with_product(&before.moving, point, total) == Some(Ordering::Equal) => {
                point.clone()
            }
            Some(_) => total.minus(&before.still).over(&before.moving),
        }
    };
    Poured { content: buckets.iter().map(|bucket| bucket.at(&level)).collect(), level, rounds: 0 }
}

/// The total content of all buckets between two points: a constant amount, and its increase per unit of level.
#[derive(Clone)]
struct Contents<N> {
    still: N,
    moving: N,
}

impl<N: Number> Contents<N> {
    /// Updates the content at a point at which a bucket starts to fill or becomes full.
    fn pass(&mut self, bucket: &Bucket<N>, starts: bool) {
        if starts {
            self.still = self.still.minus(&bucket.low);
            self.moving = self.moving.plus(&bucket.ratio);
        } else {
            self.still = self.still.plus(&bucket.high);
            self.moving = self.moving.minus(&bucket.ratio);
        }
    }
}

/// Pours by the article's method. In each round the rest is split by ratio among the groups that still take part. If a share exceeds the
/// group's request, the group is fixed at the request; if it is below the group's minimum, the group is fixed at the minimum. If both occur
/// in one round, only the side with the larger sum is certain, and the other side takes part again.
fn in_rounds<N: Number>(total: &N, buckets: &[Bucket<N>]) -> Poured<N> {
    let mut content: Vec<N> = buckets.iter().map(|bucket| bucket.low.clone()).collect();
    let mut taking: Vec<usize> = (0..buckets.len()).filter(|&i| buckets[i].moves()).collect();
    let lows = filled(buckets, &N::zero());
    let wants = taking.iter().fold(N::zero(), |sum, &i| sum.plus(&buckets[i].high.minus(&buckets[i].low)));
    if lows >= *total {
        taking.clear();
    } else if lows.plus(&wants) <= *total {
        // The total is enough for all requests (step 2 of the article).
        taking.drain(..).for_each(|i| content[i] = buckets[i].high.clone());
    }
    // A group that takes part shares its minimum with the others until it is certain that it keeps the minimum.
    let mut left = taking.iter().fold(total.minus(&lows), |sum, &i| sum.plus(&buckets[i].low));
    let mut rounds = 0;
    while !taking.is_empty() {
        rounds += 1;
        let ratios = taking.iter().fold(N::zero(), |sum, &i| sum.plus(&buckets[i].ratio));
        let (mut surplus, mut lack) = (N::zero(), N::zero());
        for &i in &taking {
            let (bucket, share) = (&buckets[i], left.times(&buckets[i].ratio).over(&ratios));
            content[i] = if share >= bucket.high {
                surplus = surplus.plus(&share.minus(&bucket.high));
                bucket.high.clone()
            } else if share < bucket.low {
                lack = lack.plus(&bucket.low.minus(&share));
                bucket.low.clone()
            } else {
                share
            };
        }
        let settled = |i: usize| match (surplus > lack, surplus < lack) {
            (true, _) => content[i] == buckets[i].high,
            (_, true) => content[i] == buckets[i].low,
            _ => true,
        };
        let (out, still): (Vec<usize>, Vec<usize>) = taking.iter().partition(|&&i| settled(i));
        left = out.iter().fold(left, |left, &i| left.minus(&content[i]));
        taking = still;
    }
    let level = least_level(buckets, &content);
    Poured { content, level, rounds }
}

/// Returns the lowest level at which each bucket has its content: the level of the last bucket to rise above its `low`.
fn least_level<N: Number>(buckets: &[Bucket<N>], content: &[N]) -> N {
    let risen = buckets.iter().zip(content).filter(|(bucket, content)| bucket.moves() && **content > bucket.low);
    let levels = risen.map(|(bucket, content)| content.over(&bucket.ratio));
    levels.fold(N::zero(), |most, level| if level > most { level } else { most })
}
