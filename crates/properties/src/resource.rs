//! Resource monotonicity: no user loses if there is more of a resource.
//!
//! Source: Ghodsi et al., NSDI 2011, section 3, and theorem 6: no policy with sharing incentive and Pareto efficiency has it.

use super::view::{Gap, InstanceView, Measured, widest};

/// Returns the largest loss of a user when a capacity grows.
pub(super) fn gap<N: Measured>(view: &InstanceView<N>, more: &InstanceView<N>) -> Option<Gap<N>> {
    widest((0..view.users()).filter_map(|user| view.gap(user, None, more.useful(user), view.useful(user))))
}
