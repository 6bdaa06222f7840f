//! Slurm's multifactor priority with its classic fair-share factor.
//!
//! The priority of a job is a weighted sum of factors from 0 to 1: its age, up to a maximum; the fair-share factor of its user, `2^-(U /
//! S)`, with `U` the user's part of all decayed usage and `S` its part of all weights; and its priority in the trace (0 gives 1, and 9
//! gives 0). All factors are updated at the end of every period.
//!
//! Source: SchedMD, Slurm's "Multifactor Priority Plugin" (classic fair share).
//!
//! Departures from the source: a task's usage is the sum of its shares of the cluster, whereas a Slurm site sets billing weights; there
//! are no factors of size, partition, quality of service and resources; users are known from their first task on.

use ethnum::U256;

use super::decay::{Adds, Memory, ONE, Usage, power_of_half};
use super::fair_tree::PERIOD;
use super::keys::Keys;
use super::{ByUsage, Parsed, PolicyRow, Queue, Rank, RankOrder, Renewal, Setup, UsageRule};
use plimsoll_base::checkpoint::{Checkpoint, Visitor};
use plimsoll_base::error::{Error, Result};
use plimsoll_base::units::{Resources, Span, Time, span};
use plimsoll_base::visit_values;
use plimsoll_sim::books::{Books, Weights};

/// `multifactor:HALF_LIFE[:PERIOD][:age=W][:fairshare=W][:priority=W][:max-age=SPAN]`
pub static ROW: PolicyRow = PolicyRow {
    name: "multifactor",
    spelling: "multifactor:HALF_LIFE[:KEY=VALUE]",
    rank: RankOrder::Stated("the largest sum of weighted factors first: age, 2^-(usage / share), priority"),
    meaning: "Jobs by a sum of their age, the recent usage of their user, and their priority.",
    source: "Slurm's multifactor priority plugin (SchedMD)",
    example: "multifactor:1h",
    checked: "multifactor:1h",
    variants: &[],
    keys: &[],
    read: |given| {
        let (memory, factors) = Factors::read(given)?;
        Ok(Parsed::new(given.map(str::to_owned), move |setup| {
            Ok(Box::new(ByUsage::new(Multifactor::new(setup, factors)?, Adds::Integral, memory, setup)))
        }))
    },
};

/// The weights of the factors.
#[derive(Clone, Copy, Debug)]
struct Factors {
    age: u32,
    fairshare: u32,
    priority: u32,
    max_age: Span,
}

impl Factors {
    fn read(given: Option<&str>) -> std::result::Result<(Memory, Factors), String> {
        let mut keys = Keys::new(given, &["age", "fairshare", "priority", "max-age"])?;
        let memory = keys.memory(PERIOD)?;
        let weight = |key: &str, usual: u32| {
            let value = keys.read(key, "W, a whole number", |text| text.parse().ok())?;
            Ok::<u32, String>(value.unwrap_or(usual))
        };
        let long = |text: &str| span(text).ok().filter(|span| *span > Span::ZERO);
        let factors = Factors {
            age: weight("age", 1000)?,
            fairshare: weight("fairshare", 10_000)?,
            priority: weight("priority", 0)?,
            // Slurm's default `PriorityMaxAge`.
            max_age: keys.read("max-age", "SPAN, such as 7d", long)?.unwrap_or(Span::from_secs(7 * 86_400)),
        };
        keys.end().map(|()| (memory, factors))
    }
}

/// Ranks users by the priority of their next task, the highest first.
///
/// Cost: O(1) per rank; O(users) per period, for all ranks.
struct Multifactor {
    factors: Factors,
    capacity: Resources,
    weights: Weights,
    /// By user: its weight in millionths, and its fair-share factor in steps of 2^-32.
    users: Vec<(u64, u64)>,
    /// The end of the last period.
    since: Time,
}

impl Multifactor {
    /// Creates the policy. Errors: [`Error::Plan`] for weights by resource.
    fn new(setup: &Setup, factors: Factors) -> Result<Multifactor> {
        if (0..setup.weights.classes()).any(|class| setup.weights.uniform(class).is_none()) {
            return Err(Error::plan("weights", "a weight per resource", "one weight per user under this policy"));
        }
        let (capacity, weights) = (setup.capacity, setup.weights.clone());
        Ok(Multifactor { factors, capacity, weights, users: Vec::new(), since: Time::ZERO })
    }
}

/// Computes `2^-(U / S)` in steps of 2^-32, from the usage and weight of a user and of all users.
fn fair_share(used: u64, all: u128, weight: u64, weights: u128) -> u64 {
    if all == 0 || used == 0 {
        return ONE;
    }
    let ratio = ((U256::from(used) * U256::from(weights)) << 32u32) / (U256::from(all) * U256::from(weight));
    power_of_half(u64::try_from(ratio).unwrap_or(u64::MAX), ONE)
}

impl UsageRule for Multifactor {
    const RENEWAL: Renewal = Renewal::User;

    fn open(&mut self, name: &str) -> Result<()> {
        self.users.push((self.weights.each(self.weights.class_of(name) as usize)[0], ONE));
        Ok(())
    }

    fn renew(&mut self, usage: &Usage, _books: &Books) -> bool {
        self.since = usage.begin();
        let used = usage.cluster_times(&self.capacity);
        let all: u128 = used.iter().map(|used| u128::from(*used)).sum();
        let weights: u128 = self.users.iter().map(|(weight, _)| u128::from(*weight)).sum();
        for ((weight, factor), used) in self.users.iter_mut().zip(used) {
            *factor = fair_share(used, all, *weight, weights);
        }
        true
    }

    fn rank(&self, queue: &Queue, _usage: &Usage, _books: &Books) -> Rank {
        let Factors { age, fairshare, priority, max_age } = self.factors;
        let old = self.since.0.saturating_sub(queue.release.0).min(max_age.0);
        let one = u128::from(ONE);
        let old = u128::from(old) * one / u128::from(max_age.0);
        let urgent = u128::from(9 - queue.priority) * one / 9;
        let shares = u128::from(self.users[queue.user.index()].1);
        Rank::new(u128::MAX - u128::from(age) * old - u128::from(fairshare) * shares - u128::from(priority) * urgent)
    }
}

impl Checkpoint for Multifactor {
    fn visit(&mut self, visitor: &mut Visitor) -> Result<()> {
        let Multifactor { factors: _, capacity: _, weights: _, users, since } = self;
        visit_values!(visitor; users, since);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The usage of three users with equal weights is 10, 30 and 60, so U / S is 0.3, 0.9 and 1.8. The formula is that of Slurm's text.
    #[test]
    fn the_factor_halves_with_each_share_used() {
        let factors = [10, 30, 60].map(|used| fair_share(used, 100, 1_000_000, 3_000_000) as f64 / ONE as f64);
        let expected = [0.3f64, 0.9, 1.8].map(|ratio| 0.5f64.powf(ratio));
        for (found, expected) in factors.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-8, "{factors:?}");
        }
        assert_eq!((fair_share(0, 100, 1, 1), fair_share(0, 0, 1, 1)), (ONE, ONE));
        assert_eq!(fair_share(1 << 50, 1 << 50, 1, 1 << 50), 0);
    }
}
