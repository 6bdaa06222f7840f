//! Bottleneck fairness: where everybody needs the same resource most, the allocation is max-min fair in that resource.
//!
//! Most means the largest share of a capacity and, with weights for each resource, the largest weighted share too (else
//! max-min fairness in it need not fit the others, or does not agree with the weights). Source: Ghodsi et al., NSDI
//! 2011, section 3 and theorems 2 and 10.

use super::view::{Gap, Measured, View};
use super::water;
use plimsoll_fair::{Instance, Number, User};

/// The distance to max-min fairness in the bottleneck; `None` where there is none.
pub(super) fn gap<N: Measured>(view: &View<N>) -> Option<Gap<N>> {
    if view.dims() == 1 {
        return None;
    }
    water::gap(view, bottleneck(view.instance)?)
}

/// The first resource that every user needs most of; `None` where a capacity is 0, where there is no such resource, or
/// where somebody needs nothing.
fn bottleneck(instance: &Instance) -> Option<usize> {
    let dims = instance.resources().len();
    let capacity = instance.capacity();
    if capacity.iter().any(Number::is_zero) {
        return None;
    }
    let most = |user: &User, r: usize| {
        (0..dims).all(|s| {
            // d_r / c_r >= d_s / c_s, without and with weights.
            let (here, there) = (&user.demand[r] * &capacity[s], &user.demand[s] * &capacity[r]);
            let weighted = &here * &user.weight[s] >= &there * &user.weight[r];
            here >= there && weighted
        }) && user.demand[r].is_positive()
    };
    (0..dims).find(|&r| instance.users().iter().all(|user| most(user, r)))
}
