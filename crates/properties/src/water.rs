//! Max-min fairness of one resource by sorting, without code in common with the mechanisms that it checks.

use super::Reading;
use super::view::{Gap, InstanceView, Measured, widest};
use plimsoll_fair::Number;

/// Returns the part of `capacity` of each user under weighted max-min fairness; a demand of `None` is unlimited.
///
/// Users with the smallest demand for their weight come first; each gets its demand, or its part of the rest.
pub(super) fn fill<N: Number>(capacity: &N, wants: &[Option<N>], weights: &[N]) -> Vec<N> {
    let mut order: Vec<usize> = (0..wants.len()).collect();
    let per_weight = |user: usize| wants[user].as_ref().map(|want| want.over(&weights[user]));
    order.sort_by(|&a, &b| match (per_weight(a), per_weight(b)) {
        (Some(a), Some(b)) => a.partial_cmp(&b).unwrap_or(std::cmp::Ordering::Equal),
        (a, b) => a.is_none().cmp(&b.is_none()),
    });
    let mut left = capacity.clone();
    let mut weight = weights.iter().fold(N::zero(), |sum, weight| sum.plus(weight));
    let mut amounts = vec![N::zero(); wants.len()];
    for user in order {
        let part = left.times(&weights[user]).over(&weight);
        amounts[user] = match &wants[user] {
            Some(want) if *want < part => want.clone(),
            _ => part,
        };
        left = left.minus(&amounts[user]);
        weight = weight.minus(&weights[user]);
    }
    amounts
}

/// Returns the distance of an allocation from max-min fairness in resource `r` alone. For divisible tasks it is the largest difference of a
/// user. For whole tasks it is the largest lead of a user over a waiting user beyond one task.
pub(super) fn gap<N: Measured>(view: &InstanceView<N>, r: usize) -> Option<Gap<N>> {
    if view.reading != Reading::Divisible {
        let level = |user: usize, tasks: &N| tasks.times(&view.demand[user][r]).over(&view.weight[user][r]);
        return super::levels::ahead(view, level);
    }
    let needs: Vec<usize> = (0..view.users()).filter(|&user| !view.demand[user][r].is_zero()).collect();
    let want = |&user: &usize| view.cap[user].as_ref().map(|cap| cap.times(&view.demand[user][r]));
    let wants: Vec<Option<N>> = needs.iter().map(want).collect();
    let weights: Vec<N> = needs.iter().map(|&user| view.weight[user][r].clone()).collect();
    let amounts = fill(&view.capacity[r], &wants, &weights);
    widest(needs.iter().zip(amounts).filter_map(|(&user, amount)| {
        let (given, fair) = (view.tasks[user].clone(), amount.over(&view.demand[user][r]));
        let away = if given < fair { fair.minus(&given) } else { given.minus(&fair) };
        let margin = away.over(&view.alone(user)?);
        Some(Gap { margin, loser: Some(user), other: Some(r), worse: given, better: fair })
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_fair::Exact;

    #[test]
    fn those_who_want_little_leave_the_rest_to_the_others() {
        let number = |value: u64| Exact::from(value);
        let wants = [None, Some(number(1)), None, Some(number(100))];
        let weights = [number(1), number(3), number(2), number(1)];
        let amounts = fill(&number(13), &wants, &weights);
        assert_eq!(amounts, [number(3), number(1), number(6), number(3)]);
        assert_eq!(fill(&number(5), &[Some(number(1))], &[number(1)]), [number(1)]);
    }
}
