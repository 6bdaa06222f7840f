//! Resource dimensions, demands and user names from a plan, shared by the generators with classes of users.

use std::collections::BTreeMap;

use rand_chacha::ChaCha8Rng;

use super::distributions::{Distribution, Sampler};
use crate::workload::Names;
use plimsoll_base::error::{Error, Result};
use plimsoll_base::units::{Dim, MAX_DIMS, Resources};

/// The largest number of users; a larger number is treated as a mistake.
pub(super) const MOST_USERS: u64 = 10_000_000;

/// Returns the dimensions that occur in demands, in the order of their names.
pub(super) fn dims<'a>(tables: impl Iterator<Item = &'a BTreeMap<String, Distribution>>) -> Result<Vec<Dim>> {
    let mut dims: BTreeMap<String, Dim> = BTreeMap::new();
    for column in tables.flat_map(BTreeMap::keys) {
        let (dim, _) = Dim::parse(column);
        let known = dims.entry(dim.name.clone()).or_insert_with(|| dim.clone());
        if *known != dim {
            let expected = format!("{} in one unit everywhere", dim.name);
            return Err(Error::plan(format!("workload.class.demand.{column}"), "another unit", expected));
        }
    }
    if dims.len() > MAX_DIMS {
        let expected = format!("at most {}", MAX_DIMS);
        return Err(Error::plan("workload.class.demand", format!("{} resources", dims.len()), expected));
    }
    Ok(dims.into_values().collect())
}

/// The demand of a task, ready to draw from.
#[derive(Clone, Debug)]
pub(super) struct ReadyDemand(Vec<(usize, u64, Sampler)>);

impl ReadyDemand {
    pub(super) fn new(key: &str, demand: &BTreeMap<String, Distribution>, dims: &[Dim]) -> Result<ReadyDemand> {
        let mut ready: Vec<(usize, u64, Sampler)> = Vec::new();
        for (column, amount) in demand {
            let (dim, scale) = Dim::parse(column);
            let at = dims.iter().position(|known| *known == dim).expect("dims hold every demand");
            let key = format!("{key}.{column}");
            if ready.iter().any(|(known, ..)| *known == at) {
                return Err(Error::plan(key, "a second demand", format!("{} once", dim.name)));
            }
            ready.push((at, scale, amount.sampler(&key, true)?));
        }
        if ready.is_empty() {
            return Err(Error::plan(key, "no demand", "at least one resource, such as { cpu = 1, memory_gib = 2 }"));
        }
        Ok(ReadyDemand(ready))
    }

    pub(super) fn sample(&self, rng: &mut ChaCha8Rng) -> Resources {
        let mut demand = Resources::ZERO;
        for (dim, scale, amount) in &self.0 {
            demand.0[*dim] = amount.amount(rng, *scale);
        }
        demand
    }
}

/// Returns the names of a class's users. Errors: [`Error::Plan`] for an empty name, no users or too many.
pub(super) fn user_names(key: &str, name: &str, users: u32) -> Result<Vec<String>> {
    if name.is_empty() {
        return Err(Error::plan(format!("{key}.name"), "''", "a name"));
    }
    match users {
        1 => Ok(vec![name.to_owned()]),
        _ if users > 0 && u64::from(users) <= MOST_USERS => Ok((1..=users).map(|n| format!("{name}{n}")).collect()),
        _ => Err(Error::plan(format!("{key}.users"), users, format!("a number from 1 to {MOST_USERS}"))),
    }
}

/// Adds a user with a name that must be unique, and returns its id.
pub(super) fn new_user(key: &str, name: &str, users: &mut Names) -> Result<u32> {
    if users.id(name).is_some() {
        let expected = "class names that give every user a unique name";
        return Err(Error::plan(format!("{key}.name"), format!("a second user '{name}'"), expected));
    }
    Ok(users.intern(name))
}
