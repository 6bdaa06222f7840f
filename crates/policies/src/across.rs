//! Static allocations of users on machines that differ, some of whom may run on some machines only.
//!
//! No run has them: DRFH and CMMF compare the shares that policies for runs compare, and TSF counts what all machines have room
//! for, which a policy for a run is not told.

use std::sync::Arc;

use super::maxmin::{named, place};
use super::{Counterpart, Parsed, PolicyRow};
use plimsoll_fair::{Across, Mechanism, Quantity};

/// `drfh`
pub static DRFH: PolicyRow = PolicyRow {
    name: "drfh",
    spelling: "drfh",
    rank: "max_r u_r / (c_r w_r), over all machines",
    meaning: "DRF on machines that differ: equal dominant shares of the whole (for solve and check).",
    source: "Wang, Li and Liang, INFOCOM 2014",
    example: "drfh",
    checked: "drfh",
    read: |given| plain("drfh", given, "drf, which ranks by the same share", Across { quantity: Quantity::Dominant }),
};

/// `tsf`
pub static TSF: PolicyRow = PolicyRow {
    name: "tsf",
    spelling: "tsf",
    rank: "tasks / (tasks alone on all machines, also those where it may not run) / w",
    meaning: "Task share fairness: equal parts of the tasks that users could run alone (for solve and check).",
    source: "Wang, Li, Liang and Li, SC 2016",
    example: "tsf",
    checked: "tsf",
    read: |given| plain("tsf", given, "drf or another one", Across { quantity: Quantity::Tasks }),
};

/// `cmmf:RESOURCE`
pub static CMMF: PolicyRow = PolicyRow {
    name: "cmmf",
    spelling: "cmmf:RESOURCE",
    rank: "u_R / (c_R w_R), over all machines",
    meaning: "Constrained max-min fairness in one resource (for solve and check).",
    source: "Ghodsi et al. (Choosy), EuroSys 2013",
    example: "cmmf:cpu",
    checked: "cmmf:cpu",
    read: |given| {
        let resource = named("cmmf", given)?;
        let instead = format!("maxmin:{resource}, which ranks by the same share and respects labels");
        Ok(Parsed::only_static(Some(resource.clone()), instead, move |known| {
            let quantity = Quantity::Resource(place("cmmf", &resource, known)?);
            Ok(Counterpart::Target(Arc::new(Across { quantity })))
        }))
    },
};

/// A static allocation without parameters. Errors: there is one.
fn plain(
    name: &str,
    given: Option<&str>,
    instead: &str,
    mechanism: impl Mechanism + Copy + 'static,
) -> Result<Parsed, String> {
    match given {
        None => Ok(Parsed::only_static(None, instead, move |_| Ok(Counterpart::Target(Arc::new(mechanism))))),
        Some(_) => Err(Parsed::no_parameter(name)),
    }
}
