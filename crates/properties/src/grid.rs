//! Enumerates all small instances in order of size, so that the first instance that violates a requirement is one of the smallest.

use super::domain::Domain;
use super::draft::{Draft, DraftUser};

/// The numbers of users and resources, fewest users first.
const SHAPES: [(usize, usize); 9] = [(1, 1), (1, 2), (2, 1), (2, 2), (2, 3), (3, 1), (3, 2), (3, 3), (4, 2)];

/// The largest number in an instance; larger ones add nothing for small shapes.
const NUMBER_MOST: u64 = 8;

/// The largest weight.
const WEIGHT_MOST: u64 = 2;

/// All instances of a number of users and resources, with numbers up to `most`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstanceGrid {
    /// The class of instances.
    pub domain: Domain,
    /// The number of users.
    pub users: usize,
    /// The number of resources.
    pub resources: usize,
    /// The largest capacity, demand and number of tasks.
    pub most: u64,
}

/// Returns the shapes of a domain, each with numbers as large as `limit` instances allow.
pub fn shapes(domain: Domain, limit: u64) -> Vec<InstanceGrid> {
    let largest = |(users, resources): (usize, usize)| {
        let shape = |most: u64| InstanceGrid { domain, users, resources, most };
        (1..=NUMBER_MOST).map(shape).take_while(|shape| shape.count() <= u128::from(limit)).last()
    };
    SHAPES.into_iter().filter_map(largest).collect()
}

impl InstanceGrid {
    /// Returns the number of instances; all orders of the same users count once.
    pub fn count(&self) -> u128 {
        let kinds = self.kinds_count();
        // The number of multisets of users: (kinds + users - 1 choose users).
        let choose = (0..self.users as u128).fold(1, |product, at| product * (kinds + at) / (at + 1));
        u128::from(self.most).pow(self.resources as u32) * choose
    }

    fn kinds_count(&self) -> u128 {
        let dims = self.resources as u32;
        let demands =
            u128::from(self.most + 1 - self.domain.least()).pow(dims) - u128::from(self.domain == Domain::Zeros);
        let weights = u128::from(WEIGHT_MOST.min(self.most));
        demands
            * match self.domain {
                Domain::Positive | Domain::Zeros => 1,
                Domain::Finite => u128::from(self.most) + 1,
                Domain::Weighted => weights,
                Domain::WeightedPerResource => weights.pow(dims),
            }
    }

    /// Returns the instances in order of their largest number, then of their size.
    pub(super) fn drafts(&self) -> Vec<Draft> {
        let capacities = vectors(1, self.most, self.resources);
        let kinds = self.kinds();
        let mut drafts = Vec::new();
        let mut chosen = vec![0; self.users];
        loop {
            let users: Vec<DraftUser> = chosen.iter().map(|&kind| kinds[kind].clone()).collect();
            drafts.extend(capacities.iter().map(|capacity| Draft { capacity: capacity.clone(), users: users.clone() }));
            // The next non-decreasing choice.
            let Some(at) = (0..self.users).rev().find(|&at| chosen[at] + 1 < kinds.len()) else { break };
            let next = chosen[at] + 1;
            chosen[at..].fill(next);
        }
        drafts.sort_by_key(|draft| (draft.largest(), draft.size()));
        drafts
    }

    fn kinds(&self) -> Vec<DraftUser> {
        let mut demands = vectors(self.domain.least(), self.most, self.resources);
        demands.retain(|demand| demand.iter().any(|&amount| amount > 0));
        let weight_most = WEIGHT_MOST.min(self.most);
        let weights = match self.domain {
            Domain::Weighted => (1..=weight_most).map(|weight| vec![weight; self.resources]).collect(),
            Domain::WeightedPerResource => vectors(1, weight_most, self.resources),
            _ => vec![vec![1; self.resources]],
        };
        let tasks: Vec<Option<u64>> = match self.domain {
            Domain::Finite => [None].into_iter().chain((1..=self.most).map(Some)).collect(),
            _ => vec![None],
        };
        let mut kinds = Vec::new();
        for demand in &demands {
            for weight in &weights {
                let kind = |&tasks| DraftUser { demand: demand.clone(), weight: weight.clone(), tasks };
                kinds.extend(tasks.iter().map(kind));
            }
        }
        kinds
    }
}

/// Returns all vectors of a length with numbers from `least` to `most`.
fn vectors(least: u64, most: u64, length: usize) -> Vec<Vec<u64>> {
    let mut all = vec![Vec::new()];
    for _ in 0..length {
        let longer = |start: &Vec<u64>| {
            let start = start.clone();
            (least..=most).map(move |number| start.iter().copied().chain([number]).collect())
        };
        all = all.iter().flat_map(longer).collect();
    }
    all
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn as_many_come_as_are_announced_each_once_and_small_ones_first() {
        for &(_, domain, _) in Domain::ALL {
            for shape in shapes(domain, 2_000) {
                let drafts = shape.drafts();
                assert_eq!(drafts.len() as u128, shape.count(), "{shape:?}");
                assert_eq!(drafts.iter().collect::<HashSet<_>>().len(), drafts.len(), "{shape:?}");
                assert!(drafts.windows(2).all(|two| two[0].largest() <= two[1].largest()), "{shape:?}");
            }
        }
    }

    #[test]
    fn every_domain_contains_the_first() {
        let of = |domain| {
            InstanceGrid { domain, users: 2, resources: 2, most: 2 }.drafts().into_iter().collect::<HashSet<_>>()
        };
        let positive = of(Domain::Positive);
        assert!(Domain::ALL.iter().all(|(_, domain, _)| of(*domain).is_superset(&positive)));
    }
}
