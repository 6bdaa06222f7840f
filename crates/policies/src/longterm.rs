//! Dominant Resource Fairness with memory: shares of decayed past allocations instead of current ones.
//!
//! Source: the definition is ours; "Stateful DRF" (Sadok, Campista and Costa, IEEE Transactions on Computers 2021) also uses past
//! allocations, with exponential decay.

use super::decay::{Adds, Memory, Usage};
use super::drf::Drf;
use super::price::UsagePrices;
use super::{Parsed, Policy, PolicyRow, Queue, Rank, Setup, ShareNorm, Stale};
use plimsoll_base::error::Result;
use plimsoll_base::units::{Span, Time, UserId};
use plimsoll_sim::books::Books;

/// `longterm:HALF_LIFE[:PERIOD]`
pub static ROW: PolicyRow = PolicyRow {
    name: "longterm",
    spelling: "longterm:HALF_LIFE[:PERIOD]",
    rank: "max_r (past_r + u_r PERIOD) / (c_r w_r), past_r being held amounts times time, halved every HALF_LIFE",
    meaning: "Equal dominant shares over time: a user with a large recent usage waits.",
    source: "dominant shares (Ghodsi et al., NSDI 2011) with exponentially decayed usage; the definition is ours",
    example: "longterm:1h",
    checked: "longterm:1h",
    variants: &[],
    keys: &[],
    read: |given| {
        let memory = Memory::parse(given.unwrap_or_default(), PERIOD)?;
        Ok(Parsed::new(given.map(str::to_owned), move |setup| match memory.half_life {
            Span::ZERO => Ok(Box::new(Drf::new(setup)?)),
            _ => Ok(Box::new(LongTerm::new(setup, memory))),
        }))
    },
};

/// The default period of the decay.
const PERIOD: Span = Span::from_secs(60);

/// Serves the user with the lowest dominant share of its usage at the end of the current period, if its allocation stays the same. Without
/// memory that is the share of its allocation, and with an endless half-life that of its whole past usage.
///
/// Cost: O(resources) per rank; O(users with remaining usage) and all ranks at the end of a period.
struct LongTerm {
    prices: UsagePrices,
    usage: Usage,
    period: u128,
    /// Whether a period has ended since ranks were last computed.
    stale: bool,
}

impl LongTerm {
    fn new(setup: &Setup, memory: Memory) -> LongTerm {
        let period = memory.period.0.into();
        LongTerm {
            prices: UsagePrices::new(ShareNorm::Largest, setup),
            usage: Usage::new(Adds::Integral, memory, setup.dims.len()),
            period,
            stale: false,
        }
    }
}

impl Policy for LongTerm {
    fn open(&mut self, _user: UserId, _name: &str) -> Result<()> {
        self.usage.open();
        Ok(())
    }

    fn prepare(&mut self, now: Time, _books: &Books, _changed: &[UserId]) -> Result<Stale> {
        let stale = self.usage.pass(now) | std::mem::take(&mut self.stale);
        Ok(if stale { Stale::All } else { Stale::None })
    }

    fn rank(&self, queue: &Queue, books: &Books) -> Rank {
        let held = books.allocated(queue.user).iter().map(|held| u128::from(*held) * self.period);
        let used = self.usage.remaining_usage(queue.user).zip(held).map(|(past, held)| past + held);
        self.prices.rank(used, books.weight_class(queue.user))
    }

    fn settled(&mut self, now: Time, changed: &[UserId], books: &Books) -> Option<Time> {
        self.stale |= self.usage.pass(now);
        self.usage.set_allocations(now, changed, books);
        Some(self.usage.end())
    }
}
