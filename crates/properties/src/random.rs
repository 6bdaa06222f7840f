//! Random instances, each from its own stream, so that no two depend on each other.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::Property;
use super::candidate::MOST_RESOURCES;
use super::change::{Change, changes};
use super::domain::Domain;
use super::draft::{Draft, DraftUser};

/// The purposes of random streams.
#[derive(Clone, Copy, Debug)]
pub(super) enum Purpose {
    /// The drawing of instances.
    Draw,
    /// The starts and steps of climbs.
    Climb,
}

/// Returns the random stream of item `number` of a purpose in a domain.
pub(super) fn stream(seed: u64, purpose: Purpose, domain: Domain, number: u64) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    // Purposes and domains are few, numbers far below 2^48.
    rng.set_stream((((purpose as u64) << 8) | domain as u64) << 48 | number);
    rng
}

/// Draws a number from 1 to `most`, with each order of magnitude about equally likely.
fn number(rng: &mut ChaCha8Rng, most: u64) -> u64 {
    let exponent = rng.random::<f64>() * (most as f64 + 1.0).ln();
    (exponent.exp() as u64).clamp(1, most)
}

/// Draws an instance. One instance in three has tiny tasks, and one in three has small tasks. One in five has a single resource, and one in
/// five has a bottleneck. In every domain, one in three belongs to the first domain, which every domain contains, so that failures in the
/// first domain are found in each.
pub(super) fn draft(rng: &mut ChaCha8Rng, domain: Domain, users_most: usize, number_most: u64) -> Draft {
    let kind = rng.random_range(0..5);
    let domain = if rng.random_range(0..3) == 0 { Domain::Positive } else { domain };
    let dims = if kind == 0 { 1 } else { rng.random_range(2..=MOST_RESOURCES.min(users_most)) };
    let users = rng.random_range(2..=users_most);
    let mut capacity: Vec<u64> = (0..dims).map(|_| number(rng, number_most)).collect();
    if rng.random() {
        capacity.fill(number_most);
    }
    // If tasks are small compared with the cluster, several whole tasks of a user fit.
    let demand_most = [4, 16, number_most][rng.random_range(0..3)].min(number_most);
    let mut draft = Draft { capacity, users: (0..users).map(|_| user(rng, domain, dims, demand_most)).collect() };
    if kind == 1 {
        // The first resource is dominant for all users.
        draft.capacity.fill(number_most);
        draft.users.iter_mut().for_each(|user| user.demand.sort_unstable_by(|a, b| b.cmp(a)));
    }
    draft
}

fn user(rng: &mut ChaCha8Rng, domain: Domain, dims: usize, most: u64) -> DraftUser {
    let mut user = DraftUser::new((0..dims).map(|_| number(rng, most)).collect());
    match domain {
        Domain::Positive => {}
        Domain::Zeros => {
            let kept = rng.random_range(0..dims);
            for (r, amount) in user.demand.iter_mut().enumerate() {
                if r != kept && rng.random_range(0..3) == 0 {
                    *amount = 0;
                }
            }
        }
        Domain::Finite => user.tasks = rng.random::<bool>().then(|| number(rng, most)),
        Domain::Weighted => user.weight.fill(number(rng, 5)),
        Domain::WeightedPerResource => user.weight.iter_mut().for_each(|weight| *weight = number(rng, 5)),
    }
    user
}

/// Draws another number for one entry, or another change; returns `false` if that is impossible.
pub(super) fn mutate(
    rng: &mut ChaCha8Rng,
    draft: &mut Draft,
    change: &mut Option<Change>,
    domain: Domain,
    most: u64,
) -> bool {
    let parts = draft.dims() + draft.users.len() * draft.dims();
    match rng.random_range(0..=parts + usize::from(change.is_some())) {
        at if at < draft.dims() => draft.capacity[at] = altered(rng, draft.capacity[at], 1, most),
        at if at < parts => {
            let (user, r) = ((at - draft.dims()) / draft.dims(), at % draft.dims());
            let amount = &mut draft.users[user].demand[r];
            *amount = altered(rng, *amount, domain.least(), most);
            if draft.users[user].demand.iter().all(|&amount| amount == 0) {
                return false;
            }
        }
        at if at == parts => {
            let at = rng.random_range(0..draft.users.len());
            let fresh = user(rng, domain, draft.dims(), most);
            let user = &mut draft.users[at];
            (user.weight, user.tasks) = (fresh.weight, fresh.tasks);
            if domain == Domain::Zeros {
                user.demand = fresh.demand;
            }
        }
        _ => {
            if let Some(change) = change {
                alter(rng, change, draft, most);
            }
        }
    }
    change.as_ref().is_none_or(|change| change.possible(draft, domain))
}

fn altered(rng: &mut ChaCha8Rng, value: u64, least: u64, most: u64) -> u64 {
    let new = match rng.random_range(0..6) {
        0 => value + 1,
        1 => value.saturating_sub(1),
        2 => value * 2,
        3 => value / 2,
        4 => (value * 5).div_ceil(4),
        _ => number(rng, most),
    };
    new.clamp(least, most)
}

fn alter(rng: &mut ChaCha8Rng, change: &mut Change, draft: &Draft, most: u64) {
    match change {
        Change::Claim { demand, .. } => {
            let at = rng.random_range(0..demand.len());
            demand[at] = altered(rng, demand[at], 1, most);
        }
        Change::Leave { user } => *user = rng.random_range(0..draft.users.len()),
        Change::Grow { resource, capacity } => {
            *resource = rng.random_range(0..draft.dims());
            let now = draft.capacity[*resource];
            *capacity = altered(rng, *capacity, now + 1, now.max(most) * 4);
        }
    }
}

/// Draws one of the changes that a property is tried with; `None` if there is none.
pub(super) fn change(
    rng: &mut ChaCha8Rng,
    draft: &Draft,
    property: Property,
    domain: Domain,
) -> Option<Option<Change>> {
    let mut all = changes(draft, property, domain, draft.largest());
    if all.is_empty() {
        return None;
    }
    Some(all.swap_remove(rng.random_range(0..all.len())))
}

/// Draws a few of many changes, and keeps their order.
pub(super) fn sample(rng: &mut ChaCha8Rng, mut all: Vec<Option<Change>>, few: usize) -> Vec<Option<Change>> {
    while all.len() > few {
        all.remove(rng.random_range(0..all.len()));
    }
    all
}
