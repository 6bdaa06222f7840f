//! Shrinks counterexamples: users, resources and numbers are reduced while the requirement stays violated.

use super::change::{Change, changes};
use super::domain::Domain;
use super::draft::Draft;
use super::survey::{Attempt, JudgedCase, attempt};
use super::{Candidate, Requirement};

/// Numbers up to this one are lowered to every smaller one, larger numbers in a few strides.
const EVERY: u64 = 12;

/// Returns the smallest reachable case that violates the requirement: no user and no resource can be dropped and no number lowered, with
/// any change.
pub(super) fn shrink(
    candidate: &Candidate,
    requirement: Requirement,
    domain: Domain,
    mut draft: Draft,
    mut change: Option<Change>,
) -> (Draft, Option<Change>) {
    let breaks = |draft: &Draft, carried: Option<&Change>| -> Option<Option<Change>> {
        let carried = carried.filter(|change| change.possible(draft, domain));
        let broken = |change: Option<&Change>| broken(candidate, requirement, draft, change).is_some();
        if let Some(change) = carried
            && broken(Some(change))
        {
            return Some(Some(change.clone()));
        }
        let top = draft.largest() + 1;
        changes(draft, requirement.property, domain, top).into_iter().find(|change| broken(change.as_ref()))
    };
    'smaller: loop {
        for (next, carried) in smaller(&draft, change.as_ref(), domain) {
            debug_assert!(next.size() < draft.size());
            if let Some(found) = breaks(&next, carried.as_ref()) {
                (draft, change) = (next, found);
                continue 'smaller;
            }
        }
        break;
    }
    while let Some(plainer) = change.as_ref().and_then(|change| plainer(candidate, requirement, domain, &draft, change))
    {
        change = Some(plainer);
    }
    (draft, change)
}

/// Returns the judgement of a case if it violates the requirement.
pub(super) fn broken(
    candidate: &Candidate,
    requirement: Requirement,
    draft: &Draft,
    change: Option<&Change>,
) -> Option<JudgedCase> {
    match attempt(candidate, requirement, draft, change) {
        Attempt::Decided(judged) if judged.judgement.broken => Some(*judged),
        _ => None,
    }
}

/// Returns a change that is nearer to none and still violates the requirement.
fn plainer(
    candidate: &Candidate,
    requirement: Requirement,
    domain: Domain,
    draft: &Draft,
    change: &Change,
) -> Option<Change> {
    let distance = change.distance(draft);
    let mut nearer = changes(draft, requirement.property, domain, draft.largest() + 1);
    if let Change::Grow { resource, capacity } = change {
        let between = draft.capacity[*resource] + 1..*capacity;
        nearer.extend(between.take(64).map(|capacity| Some(Change::Grow { resource: *resource, capacity })));
    }
    nearer.retain(|other| other.as_ref().is_some_and(|other| other.distance(draft) < distance));
    nearer.sort_by_key(|other| other.as_ref().map(|other| other.distance(draft)));
    nearer.into_iter().flatten().find(|other| broken(candidate, requirement, draft, Some(other)).is_some())
}

/// Returns smaller drafts with the change carried over, the largest strides first.
fn smaller(draft: &Draft, change: Option<&Change>, domain: Domain) -> Vec<(Draft, Option<Change>)> {
    let mut all: Vec<(Draft, Option<Change>)> = Vec::new();
    for user in 0..draft.users.len() {
        let mut next = draft.clone();
        next.users.remove(user);
        if !next.users.is_empty() {
            all.push((next, change.and_then(|change| without_user(change, user))));
        }
    }
    for r in 0..draft.dims() {
        let mut next = draft.clone();
        next.capacity.remove(r);
        for user in &mut next.users {
            user.demand.remove(r);
            user.weight.remove(r);
        }
        let needs = next.users.iter().all(|user| user.demand.iter().any(|&amount| amount > 0));
        if next.dims() > 0 && needs {
            all.push((next, change.and_then(|change| without_resource(change, r))));
        }
    }
    let same = |next: Draft| (next, change.cloned());
    all.extend(divided(draft).map(same));
    for user in 0..draft.users.len() {
        let fewer =
            draft.users[user].tasks.map(|tasks| [None].into_iter().chain(lower(tasks, 1).into_iter().map(Some)));
        for tasks in fewer.into_iter().flatten() {
            let mut next = draft.clone();
            next.users[user].tasks = tasks;
            all.push(same(next));
        }
    }
    all.extend(lowered(draft, domain).map(same));
    all
}

/// Returns drafts with one number lowered; a user's single weight stays the same for all resources.
fn lowered(draft: &Draft, domain: Domain) -> impl Iterator<Item = Draft> {
    let mut all = Vec::new();
    let mut with = |least: u64, number: u64, set: &dyn Fn(&mut Draft, u64)| {
        for value in lower(number, least) {
            let mut next = draft.clone();
            set(&mut next, value);
            all.push(next);
        }
    };
    for r in 0..draft.dims() {
        with(1, draft.capacity[r], &|next, value| next.capacity[r] = value);
    }
    for (at, user) in draft.users.iter().enumerate() {
        for r in 0..draft.dims() {
            with(domain.least(), user.demand[r], &|next, value| next.users[at].demand[r] = value);
        }
        match domain {
            Domain::Weighted => with(1, user.weight[0], &|next, value| next.users[at].weight.fill(value)),
            _ => {
                (0..draft.dims()).for_each(|r| with(1, user.weight[r], &|next, value| next.users[at].weight[r] = value))
            }
        }
    }
    all.into_iter().filter(|next| next.users.iter().all(|user| user.demand.iter().any(|&amount| amount > 0)))
}

/// Returns smaller values for a number, in order.
fn lower(number: u64, least: u64) -> Vec<u64> {
    if number <= EVERY {
        return (least..number).collect();
    }
    vec![least, number / 4, number / 2, number * 3 / 4, number - number / 8, number - 2, number - 1]
}

/// Returns drafts with all capacities halved, with all capacities and demands halved, and with a user's demands divided by their common
/// divisor.
fn divided(draft: &Draft) -> impl Iterator<Item = Draft> {
    let halves = |with_users: bool| {
        let mut next = draft.clone();
        next.capacity.iter_mut().for_each(|number| *number = number.div_ceil(2));
        if with_users {
            next.users.iter_mut().flat_map(|user| &mut user.demand).for_each(|number| *number = number.div_ceil(2));
        }
        next
    };
    let gcd = |numbers: &[u64]| numbers.iter().fold(0, |a, &b| greatest_common(a, b)).max(1);
    let user = |at: usize| {
        let mut next = draft.clone();
        let by = gcd(&next.users[at].demand);
        next.users[at].demand.iter_mut().for_each(|number| *number /= by);
        next
    };
    let all: Vec<Draft> = [halves(false), halves(true)].into_iter().chain((0..draft.users.len()).map(user)).collect();
    let size = draft.size();
    all.into_iter().filter(move |next| next.size() < size)
}

fn greatest_common(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_common(b, a % b) }
}

fn without_user(change: &Change, gone: usize) -> Option<Change> {
    let moved = |user: usize| (user != gone).then(|| user - usize::from(user > gone));
    Some(match change {
        Change::Claim { user, demand, tasks } => {
            Change::Claim { user: moved(*user)?, demand: demand.clone(), tasks: *tasks }
        }
        Change::Leave { user } => Change::Leave { user: moved(*user)? },
        Change::Grow { .. } => change.clone(),
    })
}

fn without_resource(change: &Change, gone: usize) -> Option<Change> {
    Some(match change {
        Change::Claim { user, demand, tasks } => {
            let mut demand = demand.clone();
            demand.remove(gone);
            Change::Claim { user: *user, demand, tasks: *tasks }
        }
        Change::Leave { .. } => change.clone(),
        Change::Grow { resource, .. } if *resource == gone => return None,
        Change::Grow { resource, capacity } => {
            Change::Grow { resource: resource - usize::from(*resource > gone), capacity: *capacity }
        }
    })
}
