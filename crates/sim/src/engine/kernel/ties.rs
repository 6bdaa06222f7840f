//! The order among users of equal rank.

use crate::books::Books;
use plimsoll_base::checkpoint::{Checkpoint, Visitor};
use plimsoll_base::error::Result;
use plimsoll_base::named;
use plimsoll_base::units::UserId;
use plimsoll_base::visit_values;

named! {
    /// The order among users of equal rank.
    Ties {
        LeastRecentlyServed "least-recently-served": "The user with the earliest latest launch, users without any first; then the lower id",
        LowestId "lowest-id": "The user that appears first in the trace",
        HighestId "highest-id": "The user that appears last: gives the order of the DRF paper's Table 1",
        FewestRunning "fewest-running": "The user with the fewest running tasks, then the lower id",
    }
}

/// Computes the key that orders users of equal rank.
#[derive(Default)]
pub struct TieBreaker {
    rule: Ties,
    launches: u64,
    /// The number of each user's latest launch, from 1; 0 for a user without any. Only kept if the rule requires it.
    latest: Vec<u64>,
}

/// Keys of at least this value belong to users with a launch. Smaller keys are the ids of users without a launch.
const SERVED: u64 = 1 << 32;

impl TieBreaker {
    /// Creates the state of a run without launches.
    pub fn new(rule: Ties) -> TieBreaker {
        TieBreaker { rule, ..TieBreaker::default() }
    }

    /// Opens an account for the next user id.
    pub fn open(&mut self) {
        if self.rule == Ties::LeastRecentlyServed {
            self.latest.push(0);
        }
    }

    /// Records that tasks of a user were launched.
    pub fn record_launch(&mut self, user: UserId) {
        if self.rule == Ties::LeastRecentlyServed {
            self.launches += 1;
            self.latest[user.index()] = self.launches;
        }
    }

    /// Forgets a user's launches, because the tasks that run at the beginning of a given state have no known order of launches.
    pub fn forget(&mut self, user: UserId) {
        if let Some(latest) = self.latest.get_mut(user.index()) {
            *latest = 0;
        }
    }

    /// Returns a user's key, which is different for every user. The lowest key is served first.
    pub fn key(&self, user: UserId, books: &Books) -> u64 {
        let id = u64::from(user.0);
        match self.rule {
            Ties::LeastRecentlyServed => match self.latest[user.index()] {
                0 => id,
                launch => SERVED + launch,
            },
            Ties::LowestId => id,
            Ties::HighestId => u64::from(u32::MAX) - id,
            Ties::FewestRunning => books.running(user).min(u64::from(u32::MAX)) << 32 | id,
        }
    }
}

impl Checkpoint for TieBreaker {
    fn visit(&mut self, visitor: &mut Visitor) -> Result<()> {
        let TieBreaker { rule: _, launches, latest } = self;
        visit_values!(visitor; launches, latest);
        Ok(())
    }
}
