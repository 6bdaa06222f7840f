//! Karma quantum by quantum: the worked examples of Vuppalapati et al. (OSDI 2023) and of its repository.

use std::path::Path;

use serde::Deserialize;

use super::models::read_plan;
use super::outcome::RunOutcome;
use plimsoll_base::error::{Error, Result};
use plimsoll_fair::{FreeCredits, Karma};

/// The plan of an example.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlicesPlan {
    /// The name of the plan, for readers of the file.
    #[serde(rename = "name")]
    _name: String,
    /// All slices.
    pub slices: u64,
    /// The slices that are not guaranteed to a user.
    pub public: u64,
    /// The initial credits of each user.
    pub credits: u64,
    /// Whether users receive an equal part of the credits that public slices have earned, in place of one credit per public slice and user.
    #[serde(default)]
    pub pool: bool,
    /// The demand of each user in each quantum. Demand that is not served lapses.
    pub demands: Vec<Vec<u64>>,
}

/// Runs the quanta. Values: `slices_Q_U` and `credits_Q_U` of user U (from 0) after quantum Q (from 1), `pool_Q`, `sum_U` of slices, and
/// `max_min_sum_U`, the sum under max-min fairness in each quantum. Errors: an invalid plan.
pub fn run(path: &Path, set: &[String]) -> Result<RunOutcome> {
    let plan: SlicesPlan = read_plan(path, set)?;
    let users = plan.demands.first().map_or(0, Vec::len);
    if users == 0 || plan.demands.iter().any(|demands| demands.len() != users) || plan.public > plan.slices {
        let problem = "demands has the same number of users in each quantum, and public is at most slices";
        return Err(Error::trace(path, 0, "", problem.to_owned()));
    }
    let mut karma = Karma::new(if plan.pool { FreeCredits::Pool } else { FreeCredits::Public }, plan.credits);
    (0..users).for_each(|_| karma.open());
    let mut values = Vec::new();
    let (mut sums, mut max_min_sums) = (vec![0u64; users], vec![0u64; users]);
    for (quantum, demands) in (1..).zip(&plan.demands) {
        let slices = karma.quantum(plan.slices, plan.public, demands);
        for (user, (slices, credits)) in slices.iter().zip(karma.credits()).enumerate() {
            values.push((format!("slices_{quantum}_{user}"), *slices as f64));
            values.push((format!("credits_{quantum}_{user}"), *credits as f64));
            sums[user] += slices;
        }
        values.push((format!("pool_{quantum}"), karma.pool() as f64));
        let equal = max_min(plan.slices, demands);
        max_min_sums.iter_mut().zip(equal).for_each(|(sum, slices)| *sum += slices);
    }
    for user in 0..users {
        values.push((format!("sum_{user}"), sums[user] as f64));
        values.push((format!("max_min_sum_{user}"), max_min_sums[user] as f64));
    }
    Ok(RunOutcome { values, ..RunOutcome::default() })
}

/// Divides slices one by one among the users with unserved demand, to the one with the fewest; ties go to the earlier user.
fn max_min(slices: u64, demands: &[u64]) -> Vec<u64> {
    let mut given = vec![0; demands.len()];
    for _ in 0..slices {
        let unserved = (0..demands.len()).filter(|&user| given[user] < demands[user]);
        let Some(user) = unserved.min_by_key(|&user| (given[user], user)) else { break };
        given[user] += 1;
    }
    given
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_divided_equally() {
        assert_eq!(max_min(6, &[2, 3, 5]), [2, 2, 2]);
        assert_eq!(max_min(6, &[3, 0, 1]), [3, 0, 1]);
    }

    #[test]
    fn plans_with_unequal_quanta_are_refused() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let path = dir.path().join("k.toml");
        std::fs::write(&path, "name = \"k\"\nslices = 3\npublic = 1\ncredits = 1\ndemands = [[1, 2], [1]]\n")
            .expect("writable");
        assert!(run(&path, &[]).expect_err("an error").to_string().contains("the same number of users"));
    }
}
