//! Cases with quota groups.

use std::fmt::Write;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{Case, USERS, Weighting, chance, pick};
use crate::slow::{Policy, Whom};

impl Case {
    /// Draws urgent tasks of users in groups with quotas, which restrict the eligible victims.
    pub fn grouped(seed: u64) -> Case {
        let mut case = Case::urgent(seed);
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(4);
        let rng = &mut rng;
        let whom = pick(rng, &[Whom::Any, Whom::SameGroup, Whom::SameGroup, Whom::AboveQuota, Whom::AboveQuota]);
        case.preempt = case.preempt.map(|(span, _)| (span, whom));
        case.policies = vec![Policy::Drf];
        (case.weighting, case.weights) = (Weighting::None, Vec::new());
        let variant = pick(rng, &["min-plus-share", "max-min-level"]);
        let (inside, reclaim) = (pick(rng, &["fifo", "fair"]), pick(rng, &["wait", "wait", "never"]));
        let mut toml = format!("variant = '{variant}'\ninside = '{inside}'\nreclaim = '{reclaim}'\n");
        let (leaves, parents) = (rng.random_range(2..=4), pick(rng, &[0, 1, 2]));
        let owner: Vec<usize> = USERS.iter().map(|_| rng.random_range(0..leaves)).collect();
        let mut promised = [0; 2];
        for leaf in 0..leaves {
            let min = pick(rng, &[0, 0, 500, 1000, 2000]);
            write!(toml, "[[group]]\nname = 'g{leaf}'\nratio = {}\n", rng.random_range(1..4)).unwrap();
            writeln!(toml, "min = {{ cpu = {}.{}, memory_mib = {min} }}", min / 1000, min / 100 % 10).unwrap();
            if chance(rng, 30) {
                writeln!(toml, "max = {{ cpu = {} }}", min / 1000 + rng.random_range(1..5)).unwrap();
            }
            if chance(rng, 25) {
                writeln!(toml, "lend = false").unwrap();
            }
            let parent = rng.random_range(0..=parents);
            if parent < parents {
                promised[parent] += min;
                writeln!(toml, "parent = 'p{parent}'").unwrap();
            }
            let mine: Vec<&str> =
                (0..USERS.len()).filter(|user| owner[*user] == leaf).map(|user| USERS[user]).collect();
            writeln!(toml, "users = {mine:?}\ndefault = {}", leaf == 0).unwrap();
        }
        for (parent, promised) in promised.iter().enumerate().take(parents) {
            // The min of a parent is at least the sum of the mins of the groups under it.
            let min = promised + pick(rng, &[0, 0, 1000]);
            write!(toml, "[[group]]\nname = 'p{parent}'\nratio = {}\n", rng.random_range(1..4)).unwrap();
            writeln!(toml, "min = {{ cpu = {}.{}, memory_mib = {min} }}", min / 1000, min / 100 % 10).unwrap();
        }
        case.quota = Some(toml);
        case
    }
}
