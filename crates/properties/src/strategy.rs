//! Strategy-proofness: no user runs more of its true tasks by claiming another demand or number of tasks.
//!
//! A liar receives tasks of the claimed demand. With these resources it runs as many true tasks as fit; the excess of a resource over the
//! true proportions is wasted. Source: Ghodsi et al., NSDI 2011, section 3 and theorem 12.

use super::view::{Gap, InstanceView, Measured};

/// Returns the gain of `user` from its lie; `lie` is the instance with the claimed demands.
pub(super) fn gap<N: Measured>(view: &InstanceView<N>, user: usize, lie: &InstanceView<N>) -> Option<Gap<N>> {
    let bundle = |r: usize| lie.tasks[user].times(&lie.demand[user][r]);
    view.gap(user, None, view.useful(user), view.runs(user, bundle))
}
