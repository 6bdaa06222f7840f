//! Pareto efficiency: no user could run more without another running less.
//!
//! Decided exactly, not sampled. Tasks need resources in fixed proportions, so an allocation can be improved if and only if one user alone
//! can be given more from the rest. (Let allocation y be at least x for all users and above x for user i. Then x with user i raised to y_i
//! fits, since it uses at most as much as y.) The same holds for whole tasks: an allocation is dominated exactly if some user's next task
//! fits. Amounts beyond a user's number of tasks count as unused. Source: Ghodsi et al., NSDI 2011, section 3 and theorem 9.

use super::Reading;
use super::view::{Gap, InstanceView, Measured, least, widest};

/// Returns the largest gain that is possible for a single user.
pub(super) fn gap<N: Measured>(view: &InstanceView<N>) -> Option<Gap<N>> {
    let useful: Vec<N> = (0..view.users()).map(|user| view.useful(user)).collect();
    let left: Vec<N> = (0..view.dims())
        .map(|r| {
            let used = |left: N, user: usize| left.minus(&useful[user].times(&view.demand[user][r]));
            (0..view.users()).fold(view.capacity[r].clone(), used)
        })
        .collect();
    widest((0..view.users()).filter_map(|user| {
        let fits = least(view.needed(user).map(|r| left[r].over(&view.demand[user][r])));
        let wants = view.cap[user].as_ref().map(|cap| cap.minus(&useful[user]));
        let more = least(fits.into_iter().chain(wants))?;
        let more = if view.reading == Reading::Divisible { more } else { more.floor() };
        let margin = more.over(&view.alone(user)?);
        Some(Gap {
            margin,
            loser: Some(user),
            other: None,
            worse: useful[user].clone(),
            better: useful[user].plus(&more),
        })
    }))
}
