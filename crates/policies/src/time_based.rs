//! The KAI scheduler's time-based fair share: every user's fair share of each resource, reduced by recent usage.
//!
//! The division and its source are in [`plimsoll_fair::divide`]. Each user is a queue of the scheduler. The request of the queue is the
//! user's allocation plus pending demand, its over-quota weight is the user's weight, and its past usage is the user's decayed allocation
//! over time as a part of that of the whole cluster. Shares are computed in every round; the user with the smallest part of its share is
//! next.
//!
//! Departures from the source: no deserved amounts, one priority for all users, and no reclaim from users above their share; shares are
//! divided down to the base unit of a resource.

use super::decay::{Adds, Usage};
use super::keys::{Keys, decimal};
use super::{ByUsage, Needs, Parsed, PolicyRow, Queue, Rank, RankOrder, Renewal, UsageRule};
use plimsoll_base::checkpoint::{Checkpoint, Visitor};
use plimsoll_base::error::Result;
use plimsoll_base::units::{Resources, Span, UserId};
use plimsoll_fair::{Claim, USAGE_ONE, divide};
use plimsoll_sim::books::Books;

/// `time-based:HALF_LIFE[:PERIOD][:k=K]`
pub static ROW: PolicyRow = PolicyRow {
    name: "time-based",
    spelling: "time-based:HALF_LIFE[:PERIOD][:k=K]",
    rank: RankOrder::Lowest("max_r u_r / share_r, shares of requests by weight, less K times the excess of past usage"),
    meaning: "The user with the smallest used part of its fair share first; recent usage reduces the fair share.",
    source: "the KAI scheduler's time-based fair share (NVIDIA)",
    example: "time-based:1h",
    checked: "time-based:1h",
    variants: &[],
    keys: &[],
    read: |given| {
        let mut keys = Keys::new(given, &["k"])?;
        let memory = keys.memory(PERIOD)?;
        let k = keys.read("k", "K, a number from 0 to 1000", |text| decimal(text, 1000).filter(|k| *k <= 1_000_000))?;
        keys.end()?;
        let k = k.unwrap_or(1000);
        Ok(Parsed::new(given.map(str::to_owned), move |setup| {
            let rule = TimeBased { capacity: setup.capacity, dims: setup.dims.len(), k, shares: Vec::new() };
            Ok(Box::new(ByUsage::new(rule, Adds::Integral, memory, setup)))
        }))
    },
};

/// The default period of updates of past usage.
const PERIOD: Span = Span::from_secs(60);

/// Serves the user with the smallest allocation relative to its fair share.
///
/// Cost: O(users * resources) per round, and all ranks if a share has changed.
struct TimeBased {
    capacity: Resources,
    dims: usize,
    /// The factor K of past usage, in thousandths.
    k: u64,
    /// The fair shares of each user, by resource.
    shares: Vec<u64>,
}

impl TimeBased {
    /// Computes the fair shares of all users in one resource.
    fn divide(&self, d: usize, usage: &Usage, books: &Books) -> Vec<u64> {
        let whole = u128::from(self.capacity.0[d]).saturating_mul(usage.elapsed());
        let claim = |user: usize| {
            let user = UserId(user as u32);
            let used = usage.past(user)[d].saturating_mul(USAGE_ONE.into()).checked_div(whole).unwrap_or(0);
            Claim {
                weight: books.weights().each(books.weight_class(user))[d],
                request: u64::try_from(books.wanted(user, d)).unwrap_or(u64::MAX),
                usage: u64::try_from(used).unwrap_or(u64::MAX),
                ..Claim::default()
            }
        };
        let claims: Vec<Claim> = (0..books.users()).map(claim).collect();
        divide(self.capacity.0[d], 1, self.k, &claims).0
    }
}

impl UsageRule for TimeBased {
    const RENEWAL: Renewal = Renewal::Change;

    fn needs(&self) -> Needs {
        Needs { waiting_demand: true, ..Needs::default() }
    }

    fn renew(&mut self, usage: &Usage, books: &Books) -> bool {
        let by_resource: Vec<Vec<u64>> = (0..self.dims).map(|d| self.divide(d, usage, books)).collect();
        let shares = (0..books.users()).flat_map(|user| by_resource.iter().map(move |shares| shares[user])).collect();
        std::mem::replace(&mut self.shares, shares) != self.shares
    }

    fn rank(&self, queue: &Queue, _usage: &Usage, books: &Books) -> Rank {
        let shares = &self.shares[queue.user.index() * self.dims..][..self.dims];
        let (held, head) = (books.allocated(queue.user), books.head(queue.user));
        let part = |d: usize| match (held[d], head[d], shares[d]) {
            (0, 0, _) => 0,
            (_, _, 0) => u128::MAX,
            (held, _, share) => (u128::from(held) << 64) / u128::from(share),
        };
        Rank::new((0..self.dims).map(part).max().unwrap_or(0))
    }
}

impl Checkpoint for TimeBased {
    fn visit(&mut self, visitor: &mut Visitor) -> Result<()> {
        let TimeBased { capacity: _, dims: _, k: _, shares } = self;
        visitor.value(shares)
    }
}
