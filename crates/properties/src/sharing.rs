//! Sharing incentive: each user is at least as well off as with its part of the cluster alone.
//!
//! The part of user i is `w_ir / sum_k w_kr` of each resource r, which is 1/n of everything for equal weights. Source: Ghodsi et al., NSDI
//! 2011, section 3; with weights Parkes, Procaccia and Shah, EC 2012.

use super::view::{Gap, InstanceView, Measured, widest};

/// Returns the largest shortfall of a user compared with its part of the cluster.
pub(super) fn gap<N: Measured>(view: &InstanceView<N>) -> Option<Gap<N>> {
    let all: Vec<N> =
        (0..view.dims()).map(|r| view.weight.iter().fold(N::zero(), |sum, weight| sum.plus(&weight[r]))).collect();
    widest((0..view.users()).filter_map(|user| {
        let part = |r: usize| view.wants(user).part(r, &view.capacity[r], &all[r]);
        view.gap(user, None, view.useful(user), view.runs(user, part))
    }))
}
