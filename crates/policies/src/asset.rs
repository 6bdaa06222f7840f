//! Asset fairness: the user with the least sum of shares is next.
//!
//! Source: Ghodsi et al., NSDI 2011, §5.1. It has neither sharing incentive nor bottleneck fairness (theorems 1, 2).

use super::{ByShare, Parsed, PolicyRow, RankOrder, ShareNorm, StaticEquivalent};
use plimsoll_fair::Norm;

/// `asset`
pub static ROW: PolicyRow = PolicyRow {
    name: "asset",
    spelling: "asset",
    rank: RankOrder::Lowest("sum_r u_r / (c_r w_r)"),
    meaning: "Equal sums of shares.",
    source: "Ghodsi et al., NSDI 2011, 5.1",
    example: "asset",
    checked: "asset",
    variants: &[],
    keys: &[],
    read: |given| {
        let parsed =
            Parsed::plain("asset", given, |setup| Ok(Box::new(ByShare::by_norm("asset", ShareNorm::Sum, setup)?)))?;
        Ok(parsed.like(|_| Ok(StaticEquivalent::Norm(Norm::Sum))))
    },
};
