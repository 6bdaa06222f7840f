//! Bottleneck fairness: if all users need the same resource most, the allocation is max-min fair in that resource.
//!
//! "Most" means the largest share of a capacity and, with weights by resource, also the largest weighted share (otherwise max-min fairness
//! in the resource may contradict the other resources or the weights). Source: Ghodsi et al., NSDI 2011, section 3 and theorems 2 and 10.

use super::view::{Gap, InstanceView, Measured};
use super::water;
use plimsoll_fair::{Instance, Number, User};

/// Returns the distance to max-min fairness in the bottleneck; `None` if there is no bottleneck, or only one resource.
pub(super) fn gap<N: Measured>(view: &InstanceView<N>) -> Option<Gap<N>> {
    if view.dims() == 1 {
        return None;
    }
    water::gap(view, bottleneck(view.instance)?)
}

/// Returns the first resource that is the bottleneck of every user; `None` if a capacity is 0, if there is no such resource, or if a user
/// needs nothing.
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
