//! The one-task bound: the dominant shares of waiting users differ by at most one task.
//!
//! A user ahead of a waiting one was not ahead before its last task. Source: Ghodsi et al., NSDI 2011, theorem 7 (for DRF on a pool;
//! policies with another rank violate it in dominant shares).

use super::view::{Gap, InstanceView, Measured, one, widest};

/// Returns the largest lead of a user over a waiting user beyond one task, in weighted dominant shares.
pub(super) fn gap<N: Measured>(view: &InstanceView<N>) -> Option<Gap<N>> {
    let level = |user: usize, tasks: &N| view.dominant(user).times(tasks);
    ahead(view, level)
}

/// Returns the largest lead of a user, less its last task, over a waiting user, as a part of the level that the waiting user would have
/// alone. Users with a task that never fits do not count; `None` if there is no such pair.
pub(super) fn ahead<N: Measured>(view: &InstanceView<N>, level: impl Fn(usize, &N) -> N) -> Option<Gap<N>> {
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
