//! Kueue's admission fair sharing: the user with the lowest moving average of usage is next.
//!
//! Source: kubernetes-sigs/kueue, `pkg/util/admissionfairsharing` and KEP 4136. The average of a user is updated once per interval, `c <-
//! c / 2^(interval / half-life) + a * usage` where `a` is the part that decays. An admitted workload is charged `a` times its request at
//! once and permanently, so that one user does not receive all admissions of an interval.
//!
//! Departures from the source: amounts are shares of the cluster; the source adds raw amounts with a weight per resource. The weight of a
//! user divides the sum. Intervals have fixed bounds, so that a late update does not decay an average by more.

use super::decay::{Adds, Memory, Usage};
use super::price::UsagePrices;
use super::{ByUsage, Parsed, PolicyRow, Queue, Rank, RankOrder, Setup, ShareNorm, UsageRule};
use plimsoll_base::checkpoint::{Checkpoint, Visitor};
use plimsoll_base::error::Result;
use plimsoll_base::units::Span;
use plimsoll_sim::books::Books;

/// `afs:HALF_LIFE[:INTERVAL]`
pub static ROW: PolicyRow = PolicyRow {
    name: "afs",
    spelling: "afs:HALF_LIFE[:INTERVAL]",
    rank: RankOrder::Lowest("sum_r average_r / (c_r w_r), a moving average of usage with HALF_LIFE"),
    meaning: "The least average usage first, sampled once an interval; a start is charged at once.",
    source: "Kueue's admission fair sharing (KEP 4136)",
    example: "afs:1h",
    checked: "afs:1h",
    variants: &[],
    keys: &[],
    read: |given| {
        let memory = Memory::parse(given.unwrap_or_default(), INTERVAL)?;
        if memory.half_life == Span::ENDLESS {
            // With an endless half-life, no sample would change the average.
            return Err("a half-life that ends, such as 168h".to_owned());
        }
        Ok(Parsed::new(given.map(str::to_owned), move |setup| Ok(Box::new(afs(setup, memory)))))
    },
};

/// The source's usual sampling interval.
const INTERVAL: Span = Span::from_secs(300);

/// Serves the user with the lowest average usage.
///
/// Cost: O(resources) per rank.
struct Afs {
    prices: UsagePrices,
}

fn afs(setup: &Setup, memory: Memory) -> ByUsage<Afs> {
    ByUsage::new(Afs { prices: UsagePrices::new(ShareNorm::Sum, setup) }, Adds::Sample, memory, setup)
}

impl UsageRule for Afs {
    fn rank(&self, queue: &Queue, usage: &Usage, books: &Books) -> Rank {
        self.prices.rank(usage.past(queue.user).iter().copied(), books.weight_class(queue.user))
    }
}

impl Checkpoint for Afs {
    fn visit(&mut self, _visitor: &mut Visitor) -> Result<()> {
        let Afs { prices: _ } = self;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Policy;
    use plimsoll_base::units::{Dim, Resources, Time, Unit, UserId};
    use plimsoll_sim::books::Weights;

    /// The half-life is one interval. The average of a user that runs 8 cores is 4, 6, 7 and 7.5 after one to four intervals, and 3.75
    /// after a further interval without running tasks. A start of 8 cores is charged at once with half of its request, 4 cores.
    #[test]
    fn the_average_nears_what_is_run_and_a_start_is_charged() {
        let dims = [Dim { name: "cpu".to_owned(), unit: Unit::Milli }];
        let (mut capacity, weights) = (Resources::ZERO, Weights::default());
        capacity.0[0] = 100_000;
        let setup = Setup { dims: &dims, capacity, machines: 1, weights: &weights, labels: None };
        let memory = Memory::parse("10s:10s", INTERVAL).expect("spans");
        let mut policy = afs(&setup, memory);
        let mut books = Books::new(1, capacity, capacity, true, weights.clone());
        books.open("u");
        policy.open(UserId(0), "u").expect("a user");
        let cores = |policy: &ByUsage<Afs>| policy.usage.past(UserId(0))[0] as f64 / (1u64 << 32) as f64 / 1000.0;
        books.queue(UserId(0), 1, &[8000]);
        books.launch(UserId(0), &[8000], &[8000]);
        policy.settled(Time::ZERO, &[UserId(0)], &books);
        let after: Vec<f64> = (1..=4)
            .map(|interval| {
                policy.settled(Time(interval * 10_000_000), &[], &books);
                cores(&policy)
            })
            .collect();
        assert_eq!(after, [4.0, 6.0, 7.0, 7.5]);
        books.finish(UserId(0), &[8000], &[8000], 1);
        policy.settled(Time(40_000_001), &[UserId(0)], &books);
        policy.settled(Time(50_000_000), &[], &books);
        assert_eq!(cores(&policy), 3.75);
        policy.usage.charge(UserId(0), &[8000], 1);
        assert_eq!(cores(&policy), 7.75);
        // A half-life of a week and an interval of five minutes: a = 0.00034376390587.
        let week = Usage::new(Adds::Sample, Memory::parse("168h", INTERVAL).expect("a span"), 1);
        let forgotten = 1.0 - week.left() as f64 / (1u64 << 32) as f64;
        assert!((forgotten - 0.000_343_763_905_87).abs() < 1e-9, "{forgotten}");
    }
}
