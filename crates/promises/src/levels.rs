//! The one-task bound: among users that wait, dominant shares differ by no more than one task.
//!
//! A user ahead of one that still waits was not ahead before its last task. Source: Ghodsi et al., NSDI 2011,
//! theorem 7 (for DRF on a pool; policies that rank by something else break it in dominant shares).

use super::view::{Gap, Measured, View, one, widest};

/// By how much somebody is more than one task ahead of a user that waits, in weighted dominant shares.
pub(super) fn gap<N: Measured>(view: &View<N>) -> Option<Gap<N>> {
    let level = |user: usize, tasks: &N| view.dominant(user).times(tasks);
    ahead(view, level)
}

/// The most that a user is ahead, less its last task, of a user that waits, as a part of the level that user would have
/// alone. Users with a task that never fits do not count; `None` where there is no such pair.
pub(super) fn ahead<N: Measured>(view: &View<N>, level: impl Fn(usize, &N) -> N) -> Option<Gap<N>> {
    let users = || 0..view.users();
    let waits =
        |&user: &usize| view.alone(user).is_some() && view.cap[user].as_ref().is_none_or(|cap| view.tasks[user] < *cap);
    widest(users().filter(waits).flat_map(|user| {
        let level = &level;
        users().filter(move |&other| other != user && view.tasks[other] >= one()).filter_map(move |other| {
            let (behind, before) = (level(user, &view.tasks[user]), level(other, &view.tasks[other].minus(&one())));
            let scale = level(user, &view.alone(user)?);
            if scale.is_zero() {
                return None;
            }
            let margin = before.minus(&behind).over(&scale);
            Some(Gap {
                margin,
                loser: Some(user),
                other: Some(other),
                worse: behind,
                better: level(other, &view.tasks[other]),
            })
        })
    }))
}
