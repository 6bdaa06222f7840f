//! A local search that climbs the violation: it starts from a random case, and accepts changes of single numbers that do not lower it.

use super::change::Change;
use super::domain::Domain;
use super::draft::Draft;
use super::random::{self, Purpose};
use super::survey::{Attempt, attempt};
use super::{Candidate, Effort, Property, Requirement};

/// The largest number of users in a climb.
const USERS_MOST: usize = 4;

/// The largest number in a climb.
const NUMBER_MOST: u64 = 32;

/// The outcome of a climb.
#[derive(Clone, Debug, Default)]
pub(super) struct Climbed {
    /// The number of decided cases.
    pub cases: u64,
    /// The number of cases that the policy did not solve.
    pub unsolved: u64,
    /// The case that violates the requirement, if one was found.
    pub found: Option<(Draft, Option<Change>)>,
}

/// Runs the climb with this number of a seed.
pub(super) fn climb(
    candidate: &Candidate,
    requirement: Requirement,
    domain: Domain,
    effort: &Effort,
    seed: u64,
    number: u64,
) -> Climbed {
    // Each property has its own starts.
    let place = requirement.property as u64;
    let mut rng = random::stream(seed, Purpose::Climb, domain, number * Property::ALL.len() as u64 + place);
    let mut climbed = Climbed::default();
    let mut draft = random::draft(&mut rng, domain, USERS_MOST, NUMBER_MOST);
    let Some(mut change) = random::change(&mut rng, &draft, requirement.property, domain) else { return climbed };
    let mut height = f64::NEG_INFINITY;
    for _ in 0..effort.steps {
        let (mut next, mut then) = (draft.clone(), change.clone());
        if !random::mutate(&mut rng, &mut next, &mut then, domain, NUMBER_MOST) {
            continue;
        }
        match attempt(candidate, requirement, &next, then.as_ref()) {
            Attempt::Decided(judged) => {
                climbed.cases += 1;
                if judged.judgement.broken {
                    climbed.found = Some((next, then));
                    return climbed;
                }
                if judged.judgement.amount >= height {
                    (draft, change, height) = (next, then, judged.judgement.amount);
                }
            }
            Attempt::Unsolved => climbed.unsolved += 1,
            // Before the first height is known, any neighbour is accepted.
            Attempt::Silent if height == f64::NEG_INFINITY => (draft, change) = (next, then),
            Attempt::Silent => {}
        }
    }
    climbed
}
