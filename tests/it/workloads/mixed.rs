//! Cases that combine features which the other profiles have apart: orders inside users, policies with memory, policies of the literature
//! and machines of different speeds, with labels, places, gangs, machine events, faults, devices, preemption and reserved room.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{Case, Weighting, chance, pick};
use crate::slow::{Inside, Location, OnBlocked, Placement, Policy, Whom, Written, Zoo};

/// Profiles. The cases below add other features.
const PROFILES: [fn(u64) -> Case; 5] = [Case::placed, Case::urgent, Case::hoarding, Case::devices, Case::faulty];

impl Case {
    fn any_of(profiles: &[fn(u64) -> Case], seed: u64) -> (Case, ChaCha8Rng) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(7);
        (profiles[rng.random_range(0..profiles.len())](seed), rng)
    }

    /// Draws a case with another order inside users. Tasks are preempted for fair shares only.
    pub fn ordered_on_machines(seed: u64) -> Case {
        let (mut case, mut rng) = Case::any_of(&PROFILES, seed);
        case.policies.retain(|policy| policy.has_shares());
        case.policies.truncate(1);
        if case.policies.is_empty() {
            case.policies.push(Policy::Drf);
        }
        let shares = chance(&mut rng, 50);
        case.preempt = case.preempt.filter(|_| shares).map(|(span, _)| (span, Whom::Share));
        case = case.ordered(seed);
        if case.preempt.is_some() {
            case.policies.pop();
        }
        if chance(&mut rng, 40) {
            case.inside = Inside::Written(pick(&mut rng, &Written::ALL));
            case.policies = vec![Policy::Line, Policy::Drf];
            case.preempt = None;
        }
        case
    }

    /// Draws a case with policies with memory.
    pub fn remembered_on_machines(seed: u64) -> Case {
        let (mut case, _) = Case::any_of(&PROFILES, seed);
        case.policies = case.with_memory(seed);
        case
    }

    /// Draws a case with policies of the literature that rank users.
    pub fn literature_on_machines(seed: u64) -> Case {
        let (mut case, mut rng) = Case::any_of(&PROFILES, seed);
        if case.weighting == Weighting::Vector {
            (case.weighting, case.weights) = (Weighting::None, Vec::new());
        }
        let all = case.literature(seed);
        let first = rng.random_range(0..all.len());
        case.policies = vec![all[first], all[(first + 2) % all.len()]];
        case
    }

    /// Draws a case with policies that rank pairs of user and machine.
    pub fn pairs_on_machines(seed: u64) -> Case {
        let (mut case, mut rng) = Case::any_of(&[Case::placed, Case::devices, Case::faulty], seed);
        (case.on_blocked, case.hoard, case.preempt) = (OnBlocked::Skip, None, None);
        case.policies = [Zoo::Psdsf, Zoo::Tetris(pick(&mut rng, &[0, 250, 500, 999]))].map(Policy::Zoo).to_vec();
        case
    }

    /// Draws a case on machines of different speeds.
    pub fn speeds_on_machines(seed: u64) -> Case {
        let (mut case, mut rng) = Case::any_of(&[Case::placed, Case::urgent, Case::hoarding, Case::devices], seed);
        let speeds = [1_000_000, 500_000, 3_000_000, 1_100_000, 333_333];
        case.speeds = case.groups.iter().map(|_| pick(&mut rng, &speeds)).collect();
        case
    }

    /// Draws a case on a pool, with preemption or with faults.
    pub fn stopped_in_a_pool(seed: u64) -> Case {
        let (mut case, _) = Case::any_of(&[Case::urgent, Case::preemption_limits, Case::faulty], seed);
        case.placement = Placement::Pooled;
        (case.slowdown, case.hoard, case.fall_back) = (None, None, None);
        case.events.clear();
        case.sites.clear();
        for row in &mut case.rows {
            (row.label, row.place, row.stable) = (None, Location::Cluster, false);
        }
        case
    }
}
