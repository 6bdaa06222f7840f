//! The changes of instances that some properties consider: a lie, one user fewer, more of a resource.

use super::Property;
use super::domain::Domain;
use super::draft::{Draft, DraftUser};
use plimsoll_base::error::{Error, Result};
use plimsoll_fair::{Exact, Instance};

/// The difference between two instances.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Change {
    /// A user claims a demand or a number of tasks that is not true.
    Claim {
        /// The liar.
        user: usize,
        /// The claimed demand of a task.
        demand: Vec<u64>,
        /// The claimed number of tasks.
        tasks: Option<u64>,
    },
    /// A user leaves.
    Leave {
        /// The leaving user.
        user: usize,
    },
    /// There is more of a resource.
    Grow {
        /// The resource.
        resource: usize,
        /// The capacity after the change.
        capacity: u64,
    },
}

/// The largest number of claims about demands to try exhaustively; beyond it, a selection is tried.
const ALL_CLAIMS: u64 = 130;

impl Change {
    /// Applies the change to an instance. Errors: as [`Instance::new`].
    pub fn apply(&self, instance: &Instance) -> Result<Instance> {
        match self {
            Change::Claim { user, demand, tasks } => {
                let mut users = instance.users().to_vec();
                users[*user].demand = demand.iter().map(|&amount| Exact::from(amount)).collect();
                users[*user].tasks = tasks.map(Exact::from);
                instance.with_users(users)
            }
            Change::Leave { user } => {
                let mut users = instance.users().to_vec();
                users.remove(*user);
                instance.with_users(users)
            }
            Change::Grow { resource, capacity } => {
                let grown = Exact::from(*capacity);
                let before = &instance.capacity()[*resource];
                if grown <= *before {
                    return Err(Error::plan("capacity after growth", grown, format!("more than {before}")));
                }
                let mut all = instance.capacity().to_vec();
                all[*resource] = grown;
                Instance::new(instance.resources().to_vec(), all, instance.users().to_vec())
            }
        }
    }

    /// Returns the distance from no change.
    pub(super) fn distance(&self, draft: &Draft) -> u64 {
        match self {
            Change::Claim { user, demand, tasks } => {
                let truth = &draft.users[*user];
                let amounts: u64 = demand.iter().zip(&truth.demand).map(|(a, b)| a.abs_diff(*b)).sum();
                amounts
                    + match (*tasks, truth.tasks) {
                        (Some(a), Some(b)) => a.abs_diff(b),
                        (None, None) => 0,
                        (Some(one), None) | (None, Some(one)) => one + 1,
                    }
            }
            Change::Leave { .. } => 0,
            Change::Grow { resource, capacity } => capacity.saturating_sub(draft.capacity[*resource]),
        }
    }

    /// Returns whether the change can be applied to a draft, stays in the domain, and has an effect.
    pub(super) fn possible(&self, draft: &Draft, domain: Domain) -> bool {
        match self {
            Change::Claim { user, demand, tasks } => draft.users.get(*user).is_some_and(|truth| {
                demand.len() == draft.dims()
                    && demand.iter().all(|&amount| amount >= domain.least())
                    && demand.iter().any(|&amount| amount > 0)
                    && (domain == Domain::Finite || tasks.is_none())
                    && *tasks != Some(0)
                    && (*demand != truth.demand || *tasks != truth.tasks)
            }),
            Change::Leave { user } => draft.users.len() > 1 && *user < draft.users.len(),
            Change::Grow { resource, capacity } => draft.capacity.get(*resource).is_some_and(|now| capacity > now),
        }
    }
}

/// Returns the changes to try for a property on a draft: `None` alone for a property of a single allocation.
///
/// Lies about the demand are all vectors of numbers up to `top`, or, if these are too many, scaled entries, swapped entries, and entries
/// set to the smallest or the largest one. If numbers of tasks are finite, a few false ones are tried too. A claim to need none of a needed
/// resource is not tried: without the resource the user runs no true task, so the claim is never profitable.
pub(super) fn changes(draft: &Draft, property: Property, domain: Domain, top: u64) -> Vec<Option<Change>> {
    let found: Vec<Change> = match property {
        Property::StrategyProofness => {
            (0..draft.users.len()).flat_map(|user| claims(draft, user, domain, top)).collect()
        }
        Property::Population => (0..draft.users.len()).map(|user| Change::Leave { user }).collect(),
        Property::Resource => (0..draft.dims())
            .flat_map(|resource| {
                let now = draft.capacity[resource];
                let mut larger = vec![now + 1, 2 * now, 4 * now];
                larger.dedup();
                larger.into_iter().map(move |capacity| Change::Grow { resource, capacity })
            })
            .collect(),
        _ => return vec![None],
    };
    found.into_iter().filter(|change| change.possible(draft, domain)).map(Some).collect()
}

fn claims(draft: &Draft, user: usize, domain: Domain, top: u64) -> Vec<Change> {
    let truth = &draft.users[user];
    let all = (0..draft.dims()).try_fold(1u64, |count, _| count.checked_mul(top)).is_some_and(|all| all <= ALL_CLAIMS);
    let demands = if all { every(truth, top) } else { telling(truth) };
    let claim = |demand: Vec<u64>, tasks: Option<u64>| Change::Claim { user, demand, tasks };
    let mut claims: Vec<Change> = demands.into_iter().map(|demand| claim(demand, truth.tasks)).collect();
    if domain == Domain::Finite {
        let numbers = match truth.tasks {
            Some(tasks) => vec![None, Some(tasks - 1), Some(tasks + 1), Some(2 * tasks)],
            None => vec![Some(1), Some(2), Some(top)],
        };
        claims.extend(numbers.into_iter().map(|tasks| claim(truth.demand.clone(), tasks)));
    }
    claims
}

/// Returns every vector up to `top`, nearest to the truth first. Each vector claims some of every resource that the user needs.
fn every(truth: &DraftUser, top: u64) -> Vec<Vec<u64>> {
    let mut all: Vec<Vec<u64>> = vec![Vec::new()];
    for &needed in &truth.demand {
        let longer = |start: &Vec<u64>| {
            let start = start.clone();
            (needed.min(1)..=top).map(move |amount| start.iter().copied().chain([amount]).collect())
        };
        all = all.iter().flat_map(longer).collect();
    }
    let distance = |claim: &Vec<u64>| claim.iter().zip(&truth.demand).map(|(a, b)| a.abs_diff(*b)).sum::<u64>();
    all.sort_by_key(distance);
    all
}

/// Returns claims in all directions from the truth, few enough for many resources.
fn telling(truth: &DraftUser) -> Vec<Vec<u64>> {
    let demand = &truth.demand;
    let mut all: Vec<Vec<u64>> = Vec::new();
    let mut with = |entry: usize, amount: u64| {
        let mut claim = demand.clone();
        claim[entry] = amount;
        all.push(claim);
    };
    let (least, most) = (demand.iter().copied().min().unwrap_or(1).max(1), demand.iter().copied().max().unwrap_or(1));
    for (entry, &amount) in demand.iter().enumerate() {
        let scaled = [
            amount + 1,
            amount * 5 / 4,
            amount * 3 / 2,
            amount * 2,
            amount * 8,
            amount * 3 / 4,
            amount / 2,
            amount / 8,
        ];
        for claimed in scaled.into_iter().chain([amount.saturating_sub(1), least, most]) {
            with(entry, claimed.max(amount.min(1)));
        }
    }
    for first in 0..demand.len() {
        for second in first + 1..demand.len() {
            let mut claim = demand.clone();
            claim.swap(first, second);
            all.push(claim);
        }
    }
    all.push(vec![most; demand.len()]);
    all.push(demand.iter().map(|amount| amount * 2).collect());
    all.sort_unstable();
    all.dedup();
    all
}
