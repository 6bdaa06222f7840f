//! Envy-freeness: no user could run more of its tasks with the bundle of another.
//!
//! With weights, k's bundle is multiplied by `w_ir / w_kr` before i compares. Up to one task it is EF1: one task of k is removed from k's
//! bundle first (as if tasks were the goods; DRF's Algorithm 1 satisfies that). Up to one own task, the demand of one task of i is
//! subtracted from the bundle (SequentialMinMax satisfies that; neither algorithm satisfies the condition of the other). Sources: Ghodsi et
//! al., NSDI 2011, section 3; Parkes, Procaccia and Shah, EC 2012; EF1: Budish, Journal of Political Economy 119(6), 2011.

use super::Reading;
use super::view::{Gap, InstanceView, Measured, one, widest};

/// Returns the largest gain that a user would have with the bundle of another user; `None` for one user.
pub(super) fn gap<N: Measured>(view: &InstanceView<N>) -> Option<Gap<N>> {
    let held = |other: usize| match view.reading {
        Reading::UpToOneTask if view.tasks[other] > one() => view.tasks[other].minus(&one()),
        Reading::UpToOneTask => N::zero(),
        Reading::Divisible | Reading::Whole | Reading::UpToOneOwnTask => view.tasks[other].clone(),
    };
    let pairs = (0..view.users()).flat_map(|user| (0..view.users()).map(move |other| (user, other)));
    widest(pairs.filter(|(user, other)| user != other).filter_map(|(user, other)| {
        let tasks = held(other);
        let scaled =
            |r: usize| view.wants(user).scaled(r, &tasks.times(&view.demand[other][r]), &view.weight[other][r]);
        let (worse, mut better) = (view.useful(user), view.runs(user, scaled));
        if view.reading == Reading::UpToOneOwnTask {
            better = better.minus(&one());
        }
        let margin = better.minus(&worse).over(&view.alone(user)?);
        Some(Gap { margin, loser: Some(user), other: Some(other), worse, better })
    }))
}
