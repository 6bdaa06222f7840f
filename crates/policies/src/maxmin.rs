//! Single-resource max-min fairness: only one resource counts, but the whole demand is reserved.
//!
//! Source: Ghodsi et al., NSDI 2011, §7.2 ("CPU-fair").

use super::{ByShare, Parsed, PolicyRow, RankOrder, Setup, StaticEquivalent};
use plimsoll_base::error::{Error, Result, nearest};
use plimsoll_fair::Norm;

/// `maxmin:RESOURCE`
pub static ROW: PolicyRow = PolicyRow {
    name: "maxmin",
    spelling: "maxmin:RESOURCE",
    rank: RankOrder::Lowest("u_R / (c_R w_R)"),
    meaning: "Max-min fairness in one resource; the whole demand is reserved.",
    source: "Ghodsi et al., NSDI 2011, 7.2 (CPU-fair)",
    example: "maxmin:cpu",
    checked: "maxmin:cpu",
    variants: &[],
    keys: &[],
    read: |given| {
        let resource = named("maxmin", given)?;
        let name = resource.clone();
        let parsed = Parsed::new(Some(resource.clone()), move |setup| {
            Ok(Box::new(ByShare::by_resource("maxmin", dimension("maxmin", setup, &name)?, setup)?))
        });
        Ok(parsed.like(move |known| Ok(StaticEquivalent::Norm(Norm::Single(place("maxmin", &resource, known)?)))))
    },
};

/// Returns the resource behind the colon. Errors: it is missing.
pub(super) fn named(policy: &str, given: Option<&str>) -> std::result::Result<String, String> {
    let given = given.filter(|resource| !resource.is_empty());
    given.map(str::to_owned).ok_or_else(|| format!("a resource, such as {policy}:cpu"))
}

/// Returns the index of a resource. Errors: the resource is unknown.
pub(super) fn place(policy: &str, resource: &str, known: &[String]) -> Result<usize> {
    known.iter().position(|known| known == resource).ok_or_else(|| {
        let expected = format!("{policy}: and one of {}", known.join(", "));
        Error::plan("policy", format!("'{policy}:{resource}'"), expected)
    })
}

/// Returns the index of a resource among the dimensions. Errors: [`Error::Policy`] for an unknown resource.
pub(super) fn dimension(policy: &'static str, setup: &Setup, resource: &str) -> Result<usize> {
    setup.dims.iter().position(|dim| dim.name == resource).ok_or_else(|| {
        let known: Vec<&str> = setup.dims.iter().map(|dim| dim.name.as_str()).collect();
        let hint = nearest(resource, known.iter().copied());
        let hint = hint.map(|hint| format!(" (did you mean '{policy}:{hint}'?)")).unwrap_or_default();
        let expected = format!("a resource of the workload or the cluster: {}{hint}", known.join(", "));
        Error::policy(policy, format!("'{resource}'"), expected)
    })
}
