//! Tetris: tasks are placed where they match the free amounts best, among the users furthest below their fair share.
//!
//! The alignment of a task with a machine is the sum over resources of its demand times the free amount, both as parts of the machine's
//! capacity. Among all eligible users and machines with room, the pair with the largest alignment is served. At the beginning of a round,
//! the eligible users are the part 1 - F of the waiting users with the least dominant shares, at least one; the others follow, so that no
//! usable amount stays free. With F = 0 all users are eligible and only packing counts; with F near 1 users are served in the order of
//! DRF.
//!
//! Source: Grandl et al., "Multi-Resource Packing for Cluster Schedulers", SIGCOMM 2014.
//!
//! Departures from the source: jobs with little remaining work are preferred only inside users, by a job order (`tetris:0.25/srpt`); there
//! is no penalty for remote input and no barrier hint.

use super::keys::decimal;
use super::{
    Ask, Capabilities, Needs, Parsed, Policy, PolicyRow, Prices, Queue, Rank, RankOrder, Setup, ShareNorm, Spot, Stale,
};
use plimsoll_base::checkpoint::{Checkpoint, Visitor};
use plimsoll_base::error::Result;
use plimsoll_base::units::{Time, UserId};
use plimsoll_sim::books::Books;

/// `tetris:F`
pub static ROW: PolicyRow = PolicyRow {
    name: "tetris",
    spelling: "tetris:F",
    rank: RankOrder::Stated(
        "on each machine: the largest sum_r of demand * free / capacity^2 first, among the part 1 - F with the least \
         dominant shares",
    ),
    meaning: "Packing first, among the users that are furthest below their fair share.",
    source: "Grandl et al., SIGCOMM 2014",
    example: "tetris:0.25",
    checked: "tetris:0.25",
    variants: &[],
    keys: &[],
    read: |given| {
        let knob = given.and_then(|text| decimal(text, ONE)).filter(|knob| *knob < ONE);
        let knob = knob.ok_or("a fairness knob from 0 to below 1, such as tetris:0.25")?;
        Ok(Parsed::new(given.map(str::to_owned), move |setup| Ok(Box::new(Tetris::new(setup, knob)?))))
    },
};

const ONE: u64 = 1_000_000;

/// Serves the eligible user and machine with the best alignment, in steps of 2^-120 of the machine's capacity.
///
/// Cost: O(resources) per rank, O(users log users) a round; see [`Needs::by_machine`].
struct Tetris {
    prices: Prices,
    /// The fairness knob F, in millionths.
    knob: u64,
    /// Whether each user is eligible in this round.
    eligible: Vec<bool>,
}

impl Tetris {
    fn new(setup: &Setup, knob: u64) -> Result<Tetris> {
        let prices = Prices::new("tetris", ShareNorm::Largest, setup, |_| true)?;
        Ok(Tetris { prices, knob, eligible: Vec::new() })
    }
}

impl Policy for Tetris {
    fn needs(&self) -> Needs {
        Needs { by_machine: true, ..Needs::default() }
    }

    fn prepare(&mut self, _now: Time, books: &Books, changed: &[UserId]) -> Result<Stale> {
        if changed.is_empty() {
            return Ok(Stale::None);
        }
        let waits = (0..books.users() as u32).map(UserId).filter(|user| books.waiting(*user) > 0);
        let mut waiting: Vec<(Rank, UserId)> =
            waits.map(|user| (self.prices.rank(books.allocated(user), books.weight_class(user)), user)).collect();
        waiting.sort_unstable();
        let part = (waiting.len() as u64 * (ONE - self.knob)).div_ceil(ONE).max(1) as usize;
        self.eligible.clear();
        self.eligible.resize(books.users(), false);
        waiting.iter().take(part).for_each(|(_, user)| self.eligible[user.index()] = true);
        Ok(Stale::None)
    }

    fn rank(&self, queue: &Queue, books: &Books) -> Rank {
        self.prices.rank(books.allocated(queue.user), books.weight_class(queue.user))
    }

    fn rank_on(&self, queue: &Queue, ask: &Ask, spot: &Spot, _books: &Books) -> Rank {
        let part = |((need, free), whole): ((&u64, &u64), &u64)| match u128::from(*whole) {
            0 => 0,
            whole => u128::from(*need) * u128::from(*free) * ((1 << 120) / (whole * whole)),
        };
        let aligned: u128 = ask.footprint.iter().zip(spot.free).zip(spot.capacity).map(part).sum();
        Rank::wide(u128::from(!self.eligible[queue.user.index()]), u128::MAX - aligned)
    }
}

impl Capabilities for Tetris {
    fn checkpoint(&mut self) -> Option<&mut dyn Checkpoint> {
        Some(self)
    }
}

impl Checkpoint for Tetris {
    fn visit(&mut self, visitor: &mut Visitor) -> Result<()> {
        let Tetris { prices: _, knob: _, eligible } = self;
        visitor.value(eligible)
    }
}
