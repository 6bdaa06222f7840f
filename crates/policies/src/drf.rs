//! Dominant Resource Fairness: the user with the least dominant share is next.
//!
//! Source: Ghodsi et al., NSDI 2011, §4.1 Algorithm 1 and §4.3 (weights). Departure from the source: whether a
//! blocked user stops the round is the engine's option (`on_blocked`), not the policy's.

use super::{ByShare, Parsed, PolicyRow, RankOrder, ShareNorm, StaticEquivalent};
use plimsoll_fair::Norm;

/// `drf`
pub static ROW: PolicyRow = PolicyRow {
    name: "drf",
    spelling: "drf",
    rank: RankOrder::Lowest("max_r u_r / (c_r w_r)"),
    meaning: "Equal dominant shares; weights may be set per resource.",
    source: "Ghodsi et al., NSDI 2011, 4.1 and 4.3",
    example: "drf",
    checked: "drf",
    variants: &[],
    keys: &[],
    read: |given| {
        let parsed =
            Parsed::plain("drf", given, |setup| Ok(Box::new(ByShare::by_norm("drf", ShareNorm::Largest, setup)?)))?;
        Ok(parsed.like(|_| Ok(StaticEquivalent::Norm(Norm::Largest))))
    },
};
