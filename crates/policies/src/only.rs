//! Fairness in one resource by a scheduler that reserves only this resource. The rest of a demand is not reserved, so machines may be
//! over-committed in other resources.
//!
//! Source: CPU-fair in Ghodsi et al., NSDI 2011, §7.2, which "leads to memory thrashing". The run's `slowdown` defines how an
//! over-committed machine slows down.

use super::maxmin::{dimension, named};
use super::{ByShare, Lens, Parsed, PolicyRow, RankOrder};

/// `only:RESOURCE`
pub static ROW: PolicyRow = PolicyRow {
    name: "only",
    spelling: "only:RESOURCE",
    rank: RankOrder::Lowest("u_R / (c_R w_R)"),
    meaning: "Max-min fairness in one resource, which is the only reserved one: others may be over-committed.",
    source: "Ghodsi et al., NSDI 2011, 7.2 (CPU-fair, with thrashing)",
    example: "only:cpu",
    checked: "only:cpu",
    variants: &[],
    keys: &[],
    read: |given| {
        let resource = named("only", given)?;
        Ok(Parsed::new(Some(resource.clone()), move |setup| {
            let resource = dimension("only", setup, &resource)?;
            Ok(Box::new(ByShare::by_resource("only", resource, setup)?.with_lens(Lens::Only(resource))))
        }))
    },
};
