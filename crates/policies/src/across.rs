//! Static allocations on different machines, where users may be restricted to some of the machines.
//!
//! They have no ranks, so no run can use them. They serve as a comparison for the shares of policies that a run can use.

use std::sync::Arc;

use super::maxmin::{named, place};
use super::{Parsed, PolicyRow, RankOrder, StaticEquivalent};
use plimsoll_fair::{Across, Quantity};

/// `drfh`
pub static DRFH: PolicyRow = PolicyRow {
    name: "drfh",
    spelling: "drfh",
    rank: RankOrder::Lowest("max_r u_r / (c_r w_r), over all machines"),
    meaning: "DRF on machines that differ: equal dominant shares of the whole (for solve and check).",
    source: "Wang, Li and Liang, INFOCOM 2014",
    example: "drfh",
    checked: "drfh",
    variants: &[],
    keys: &[],
    read: |given| match given {
        Some(_) => Err(Parsed::no_parameter("drfh")),
        None => Ok(Parsed::only_static(None, "drf, which ranks by the same share", |_| {
            Ok(StaticEquivalent::Target(Arc::new(Across { quantity: Quantity::Dominant })))
        })),
    },
};

/// `cmmf:RESOURCE`
pub static CMMF: PolicyRow = PolicyRow {
    name: "cmmf",
    spelling: "cmmf:RESOURCE",
    rank: RankOrder::Lowest("u_R / (c_R w_R), over all machines"),
    meaning: "Constrained max-min fairness in one resource (for solve and check).",
    source: "Ghodsi et al. (Choosy), EuroSys 2013",
    example: "cmmf:cpu",
    checked: "cmmf:cpu",
    variants: &[],
    keys: &[],
    read: |given| {
        let resource = named("cmmf", given)?;
        let instead = format!("maxmin:{resource}, which ranks by the same share and respects labels");
        Ok(Parsed::only_static(Some(resource.clone()), instead, move |known| {
            let quantity = Quantity::Resource(place("cmmf", &resource, known)?);
            Ok(StaticEquivalent::Target(Arc::new(Across { quantity })))
        }))
    },
};
