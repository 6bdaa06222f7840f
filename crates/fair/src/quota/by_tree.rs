//! Computes the level with the data structure of [`water`](crate::water), in integers on a common denominator.

use super::{Bucket, Poured};
use crate::water::{Group, Semantics, Water};
use crate::{Exact, Number};
use plimsoll_base::error::{Error, Result};

/// Pours `total` into the buckets as [`pour`](super::pour) does. Errors: [`Error::Plan`] for amounts or ratios that
/// have no common denominator within 62 bits.
pub fn by_tree(total: &Exact, buckets: &[Bucket<Exact>]) -> Result<Poured<Exact>> {
    let amounts = || buckets.iter().flat_map(|bucket| [&bucket.low, &bucket.high]).chain([total]);
    let amount = denominator(amounts()).ok_or_else(too_fine)?;
    let width = denominator(buckets.iter().map(|bucket| &bucket.ratio)).ok_or_else(too_fine)?;
    let whole = |value: &Exact, denominator: i64| -> Result<u64> {
        let scaled = value * &Exact::ratio(denominator, 1);
        // The children of a quota of 0 get 0, as with the other methods.
        scaled.parts().map(|(number, _)| number.max(0).unsigned_abs()).ok_or_else(too_fine)
    };
    // The structure can use the same semantics for both variants, because the low amount of a bucket counts in the level.
    let mut water = Water::new(Semantics::MaxMinLevel);
    water.set_total(whole(total, amount)?);
    let mut ids = Vec::with_capacity(buckets.len());
    for bucket in buckets {
        let (low, high) = (whole(&bucket.low, amount)?, whole(&bucket.high, amount)?);
        ids.push(water.join(&Group::new(high, low, high, whole(&bucket.ratio, width)?)).map_err(|_| too_fine())?);
    }
    let unit = Exact::ratio(1, amount);
    let content = ids.into_iter().map(|id| &water.runtime_exact(id) * &unit).collect();
    let level = &(&water.level().exact() * &Exact::ratio(width, 1)) * &unit;
    Ok(Poured { content, level, rounds: 0 })
}

fn too_fine() -> Error {
    Error::plan(
        "method",
        "tree for these numbers",
        "sort, or amounts and ratios with a common denominator within 62 bits",
    )
}

/// Returns the least common multiple of the denominators.
fn denominator<'a>(values: impl Iterator<Item = &'a Exact>) -> Option<i64> {
    values.filter(|value| !value.is_zero()).try_fold(1i64, |common, value| {
        let (_, denominator) = value.parts()?;
        // The lowest terms of `common / denominator` have the denominator `denominator / gcd`. `common` lacks exactly this factor.
        let (_, rest) = Exact::ratio(common, denominator).parts()?;
        common.checked_mul(rest)
    })
}
