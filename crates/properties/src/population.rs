//! Population monotonicity: when a user leaves, no remaining user loses.
//!
//! Source: Ghodsi et al., NSDI 2011, section 3 and theorem 14 (for strictly positive demands; with zero demands it
//! fails).

use super::view::{Gap, InstanceView, Measured, widest};

/// Returns the largest loss of a remaining user when `gone` leaves.
pub(super) fn gap<N: Measured>(view: &InstanceView<N>, gone: usize, rest: &InstanceView<N>) -> Option<Gap<N>> {
    let stays = (0..view.users()).filter(|&user| user != gone).enumerate();
    widest(stays.filter_map(|(then, user)| view.gap(user, Some(gone), rest.useful(then), view.useful(user))))
}
