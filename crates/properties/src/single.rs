//! Single-resource fairness: with one resource the allocation is (weighted) max-min fair, up to finite demand.
//!
//! With whole tasks, no user is more than one task ahead of a waiting user. Source: Ghodsi et al., NSDI 2011, section 3.

use super::view::{Gap, InstanceView, Measured};
use super::water;

/// Returns the distance to max-min fairness; `None` with more than one resource.
pub(super) fn gap<N: Measured>(view: &InstanceView<N>) -> Option<Gap<N>> {
    if view.dims() == 1 { water::gap(view, 0) } else { None }
}
