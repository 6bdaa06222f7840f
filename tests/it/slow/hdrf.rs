//! Hierarchical DRF, from its definition in `docs/policies.md`, "Hierarchical DRF".

use super::literature::{GROUPS, OF};
use super::users::View;

/// Returns the sort key of a user: for each group above it, from the top, the rescaled share, the plain share and the number of the group;
/// then its own share.
pub fn path(view: &View, user: usize) -> Vec<u128> {
    let held = |r: usize| view.users.iter().map(|user| user.held[r]).sum::<u64>();
    let free: Vec<u64> = (0..view.capacity.len()).map(|r| view.capacity[r] - held(r)).collect();
    let heads: Vec<&Vec<u64>> = view.users.iter().filter_map(|user| Some(&user.head.as_ref()?.0)).collect();
    let used_up = |r: usize| {
        let least = heads.iter().map(|head| head[r]).filter(|need| *need > 0).min();
        free[r] == 0 || least.is_some_and(|least| least > free[r])
    };
    let counted: Vec<usize> = (0..free.len()).filter(|r| !used_up(*r)).collect();
    let group = OF[view.users[user].number];
    let mut groups: Vec<usize> =
        std::iter::successors(Some(group), |&at| Some(GROUPS[at].0)).take_while(|at| *at > 0).collect();
    groups.reverse();
    let mut path = Vec::new();
    for at in groups {
        let plain = dominant(&allocation(view, at), &counted) / GROUPS[at].1 * 1e6;
        path.extend([steps(group_of(view, at, &free, &counted).share), steps(plain), at as u128]);
    }
    path.push(steps(leaf(view, user, &free).share));
    path
}

fn steps(share: f64) -> u128 {
    (share * 68_719_476_736.0).round() as u128
}

fn dominant(vector: &[f64], counted: &[usize]) -> f64 {
    counted.iter().map(|&r| vector[r]).fold(0.0, f64::max)
}

/// Returns amounts as parts of the cluster.
fn parts(view: &View, amounts: &[u64]) -> Vec<f64> {
    let part = |r: usize| if view.capacity[r] == 0 { 0.0 } else { amounts[r] as f64 / view.capacity[r] as f64 };
    (0..amounts.len()).map(part).collect()
}

/// Returns the sum of the allocations of all users under a group.
fn allocation(view: &View, group: usize) -> Vec<f64> {
    let mut sum = vec![0.0; view.capacity.len()];
    for user in &view.users {
        let mut above = std::iter::successors(Some(OF[user.number]), |&at| (at > 0).then(|| GROUPS[at].0));
        if above.any(|at| at == group) {
            sum.iter_mut().zip(parts(view, &user.held)).for_each(|(sum, part)| *sum += part);
        }
    }
    sum
}

/// The values of a child that the share of its group depends on.
struct Seen {
    vector: Vec<f64>,
    /// The dominant share divided by the weight.
    share: f64,
    /// The largest dominant share of a next task under the child. `step` is that share divided by the weight.
    task: f64,
    step: f64,
    blocked: bool,
}

fn leaf(view: &View, user: usize, free: &[u64]) -> Seen {
    let user = &view.users[user];
    let all: Vec<usize> = (0..free.len()).collect();
    let vector = parts(view, &user.held);
    let head = user.head.as_ref().map(|(head, ..)| head);
    let fits = |head: &Vec<u64>| head.iter().zip(free).all(|(need, free)| need <= free);
    let task = head.map_or(0.0, |head| dominant(&parts(view, head), &all));
    let share = dominant(&vector, &all) / user.weight() * 1e6;
    Seen { vector, share, task, step: task / user.weight() * 1e6, blocked: !head.is_some_and(fits) }
}

fn group_of(view: &View, group: usize, free: &[u64], counted: &[usize]) -> Seen {
    let users = (0..view.users.len()).filter(|&user| OF[view.users[user].number] == group);
    let groups = (1..GROUPS.len()).filter(|&it| GROUPS[it].0 == group);
    let mut below: Vec<Seen> = groups.map(|it| group_of(view, it, free, counted)).collect();
    below.extend(users.map(|user| leaf(view, user, free)));
    let open = || below.iter().filter(|child| !child.blocked);
    let least = open().map(|child| child.share).fold(f64::INFINITY, f64::min);
    let mut vector = vec![0.0; free.len()];
    for child in &below {
        // A child counts as at most one task ahead of the child with the least share.
        let most = least + child.step;
        let ahead = !child.blocked && child.share > most * (1.0 + 1e-12);
        let factor = if ahead { most / child.share } else { 1.0 };
        vector.iter_mut().zip(&child.vector).for_each(|(sum, part)| *sum += part * factor);
    }
    let share = dominant(&vector, counted) / GROUPS[group].1 * 1e6;
    let task = open().map(|child| child.task).fold(0.0, f64::max);
    Seen { vector, share, task, step: task / GROUPS[group].1 * 1e6, blocked: open().next().is_none() }
}
