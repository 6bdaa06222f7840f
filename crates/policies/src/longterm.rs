//! Dominant Resource Fairness with memory: shares of decayed past allocations instead of current ones.
//!
//! Source: the definition is ours; "Stateful DRF" (Sadok, Campista and Costa, IEEE Transactions on Computers 2021) also uses past
//! allocations, with exponential decay.

use super::decay::{Adds, Memory, Usage};
use super::price::UsagePrices;
use super::{ByShare, ByUsage, Parsed, PolicyRow, Queue, Rank, RankOrder, ShareNorm, UsageRule};
use plimsoll_base::checkpoint::{Checkpoint, Visitor};
use plimsoll_base::error::Result;
use plimsoll_base::units::Span;
use plimsoll_sim::books::Books;

/// `longterm:HALF_LIFE[:PERIOD]`
pub static ROW: PolicyRow = PolicyRow {
    name: "longterm",
    spelling: "longterm:HALF_LIFE[:PERIOD]",
    rank: RankOrder::Lowest(
        "max_r (past_r + u_r PERIOD) / (c_r w_r), past_r being held amounts times time, halved every HALF_LIFE",
    ),
    meaning: "Equal dominant shares over time: a user with a large recent usage waits.",
    source: "dominant shares (Ghodsi et al., NSDI 2011) with exponentially decayed usage; the definition is ours",
    example: "longterm:1h",
    checked: "longterm:1h",
    variants: &[],
    keys: &[],
    read: |given| {
        let memory = Memory::parse(given.unwrap_or_default(), PERIOD)?;
        Ok(Parsed::new(given.map(str::to_owned), move |setup| match memory.half_life {
            Span::ZERO => Ok(Box::new(ByShare::by_norm("drf", ShareNorm::Largest, setup)?)),
            _ => {
                let rule =
                    LongTerm { prices: UsagePrices::new(ShareNorm::Largest, setup), period: memory.period.0.into() };
                Ok(Box::new(ByUsage::new(rule, Adds::Integral, memory, setup)))
            }
        }))
    },
};

/// The default period of the decay.
const PERIOD: Span = Span::from_secs(60);

/// Serves the user with the lowest dominant share of the usage that it will have at the end of the current period if its allocation stays
/// the same. Without memory this is the share of the allocation; with an endless half-life it is the share of all usage so far.
///
/// Cost: O(resources) per rank.
struct LongTerm {
    prices: UsagePrices,
    period: u128,
}

impl UsageRule for LongTerm {
    fn rank(&self, queue: &Queue, usage: &Usage, books: &Books) -> Rank {
        let held = books.allocated(queue.user).iter().map(|held| u128::from(*held) * self.period);
        let used = usage.remaining_usage(queue.user).zip(held).map(|(past, held)| past + held);
        self.prices.rank(used, books.weight_class(queue.user))
    }
}

impl Checkpoint for LongTerm {
    fn visit(&mut self, _visitor: &mut Visitor) -> Result<()> {
        let LongTerm { prices: _, period: _ } = self;
        Ok(())
    }
}
