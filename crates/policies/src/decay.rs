//! Decayed usage: the usage of each user, with exponential decay by a half-life.
//!
//! Time is divided into *periods*. Within a period the integral of a user's allocation is exact. At the end of the period, the remaining
//! usage of earlier periods is multiplied by `0.5^(period / half-life)`, and the integral is added. The factor is computed in integers, in
//! steps of 2^-32, so that every platform rounds alike. There is no decay within a period.

use plimsoll_base::checkpoint::{Checkpoint, Visitor};
use plimsoll_base::units::{Resources, Span, Time, UserId};
use plimsoll_base::visit_values;
use plimsoll_sim::books::Books;

/// The half-life and the period of the decay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// The half-life: 0 keeps no usage, [`Span::ENDLESS`] keeps all.
    pub half_life: Span,
    /// The period, above 0.
    pub period: Span,
}

impl Memory {
    /// Reads `HALF_LIFE[:PERIOD]`, spans or `0` and `inf`. Errors: the expected form.
    pub fn parse(text: &str, usual_period: Span) -> Result<Memory, String> {
        let (half_life, period) = text.split_once(':').map_or((text, None), |(one, other)| (one, Some(other)));
        let span = |text: &str| plimsoll_base::units::span(text).map_err(|_| expected());
        let half_life = match half_life {
            "0" => Span::ZERO,
            "inf" => Span::ENDLESS,
            text => span(text)?,
        };
        let period = period.map_or(Ok(usual_period), span)?;
        if period == Span::ZERO { Err(expected()) } else { Ok(Memory { half_life, period }) }
    }

    /// Reads `HALF_LIFE[:PERIOD]` and returns the text behind the next colon. Errors: the expected form.
    pub fn parse_before(text: &str, usual_period: Span) -> Result<(Memory, Option<&str>), String> {
        let (half_life, rest) = text.split_once(':').map_or((text, None), |(one, other)| (one, Some(other)));
        let Some(rest) = rest else { return Memory::parse(half_life, usual_period).map(|memory| (memory, None)) };
        let (period, behind) = rest.split_once(':').map_or((rest, None), |(one, other)| (one, Some(other)));
        match Memory::parse(&format!("{half_life}:{period}"), usual_period) {
            Ok(memory) => Ok((memory, behind)),
            Err(_) => Memory::parse(half_life, usual_period).map(|memory| (memory, Some(rest))),
        }
    }

    /// Returns the part of an amount that remains after a period, in steps of 2^-32.
    fn left(self) -> u64 {
        match self.half_life {
            Span::ENDLESS => ONE,
            Span::ZERO => 0,
            Span(half_life) => power_of_half(self.period.0, half_life),
        }
    }
}

fn expected() -> String {
    "a half-life and optionally a period above 0, such as 1h, 7d:5m, 0 or inf".to_owned()
}

/// 1 in the fixed-point representation of factors.
pub const ONE: u64 = 1 << 32;

/// Computes `0.5^(over / under)` in steps of 2^-32, as a product of roots of one half. The binary digits of the fraction select the roots.
pub fn power_of_half(over: u64, under: u64) -> u64 {
    let whole = over / under;
    if whole >= 64 {
        return 0;
    }
    let mut rest = u128::from(over % under);
    // In steps of 2^-62.
    let (mut product, mut root) = (1u128 << 62, 1u128 << 61);
    for _ in 0..62 {
        root = (root << 62).isqrt();
        rest *= 2;
        if rest >= u128::from(under) {
            rest -= u128::from(under);
            product = (product * root) >> 62;
        }
    }
    (product >> 30 >> whole) as u64
}

/// The amounts that a period adds to the usage of a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Adds {
    /// The integral of its allocation, in base units times microseconds.
    Integral,
    /// Its allocation at the end of the period, in steps of 2^-32 of a base unit, times the part that decays in a period: an exponential
    /// moving average. A launch is charged at once ([`Usage::charge`]).
    Sample,
}

/// The decayed usage of all users.
///
/// Cost: O(changed users) per instant, O(users with remaining usage) per period.
#[derive(Clone, Debug)]
pub struct Usage {
    adds: Adds,
    period: Span,
    left: u64,
    dims: usize,
    /// The end of the current period.
    end: Time,
    /// The duration of earlier periods, with the same decay as usage.
    elapsed: u128,
    /// By user, three vectors with `dims` numbers per user: the remaining usage of earlier periods, the usage in the current period, and
    /// the current allocation.
    past: Vec<u128>,
    present: Vec<u128>,
    held: Vec<u64>,
    /// The instant of the last addition to the usage in the current period, by user.
    since: Vec<Time>,
    /// The users with an allocation or remaining usage, and, by user, whether the user is in this list.
    live: Vec<UserId>,
    is_live: Vec<bool>,
}

impl Usage {
    /// Creates the account of a run without users.
    pub fn new(adds: Adds, memory: Memory, dims: usize) -> Usage {
        Usage {
            adds,
            period: memory.period,
            left: memory.left(),
            dims,
            end: Time::ZERO + memory.period,
            elapsed: 0,
            past: Vec::new(),
            present: Vec::new(),
            held: Vec::new(),
            since: Vec::new(),
            live: Vec::new(),
            is_live: Vec::new(),
        }
    }

    /// Returns the part of usage that remains after a period, in steps of 2^-32.
    #[cfg(test)]
    pub fn left(&self) -> u64 {
        self.left
    }

    /// Adds a user without usage.
    pub fn open(&mut self) {
        self.past.resize(self.past.len() + self.dims, 0);
        self.present.resize(self.present.len() + self.dims, 0);
        self.held.resize(self.held.len() + self.dims, 0);
        self.since.push(Time::ZERO);
        self.is_live.push(false);
    }

    /// Returns the remaining usage of the periods that are over.
    pub fn past(&self, user: UserId) -> &[u128] {
        &self.past[user.index() * self.dims..][..self.dims]
    }

    /// Returns the remaining usage of each user as a time: per resource, the time for which the usage equals the whole cluster, summed
    /// over resources. The unit is 2^-10 microseconds; the time of each resource is rounded down.
    pub fn cluster_times(&self, capacity: &Resources) -> Vec<u64> {
        let part = |(amount, capacity): (&u128, u64)| amount.saturating_mul(1 << 10).checked_div(capacity.into());
        let time = |user: usize| {
            let amounts = self.past[user * self.dims..][..self.dims].iter();
            let sum: u128 = amounts.zip(capacity.0).filter_map(part).sum();
            u64::try_from(sum).unwrap_or(u64::MAX)
        };
        (0..self.since.len()).map(time).collect()
    }

    /// Returns the part of [`past`](Usage::past) that remains at the end of the current period.
    pub fn remaining_usage(&self, user: UserId) -> impl Iterator<Item = u128> + '_ {
        self.past(user).iter().map(|past| forget(*past, self.left))
    }

    /// Returns the end of the current period.
    pub fn end(&self) -> Time {
        self.end
    }

    /// Returns the beginning of the current period.
    pub fn begin(&self) -> Time {
        Time(self.end.0 - self.period.0)
    }

    /// Returns the duration of the periods that are over, in microseconds, with the same decay as usage: a user's usage is at most its
    /// largest allocation times this duration.
    pub fn elapsed(&self) -> u128 {
        self.elapsed
    }

    /// Applies the decay of a number of periods to the elapsed time.
    fn age(&mut self, periods: u64) {
        let period = u128::from(self.period.0);
        if self.left == ONE {
            self.elapsed += period * u128::from(periods);
            return;
        }
        for _ in 0..periods {
            let elapsed = forget(self.elapsed, self.left) + period;
            if std::mem::replace(&mut self.elapsed, elapsed) == elapsed {
                break;
            }
        }
    }

    fn add_up(&mut self, user: UserId, now: Time) {
        let span = now.since(std::mem::replace(&mut self.since[user.index()], now));
        let at = user.index() * self.dims;
        for (sum, held) in self.present[at..at + self.dims].iter_mut().zip(&self.held[at..at + self.dims]) {
            *sum += u128::from(*held) * u128::from(span.0);
        }
    }

    /// Closes all periods that are over at `now`; returns whether there were any.
    pub fn pass(&mut self, now: Time) -> bool {
        let any = self.end <= now;
        while self.end <= now {
            if self.live.is_empty() {
                // Nothing changes before the first allocation.
                let periods = now.since(self.end).0 / self.period.0 + 1;
                self.end = Time(self.end.0 + periods * self.period.0);
                self.age(periods);
                break;
            }
            let (end, live) = (self.end, std::mem::take(&mut self.live));
            self.live = live.into_iter().filter(|user| self.close(*user, end)).collect();
            self.end = end + self.period;
            self.age(1);
        }
        any
    }

    /// Closes a period of a user; returns whether the user has an allocation or remaining usage.
    fn close(&mut self, user: UserId, end: Time) -> bool {
        self.add_up(user, end);
        let at = user.index() * self.dims;
        let mut any = false;
        for d in at..at + self.dims {
            let held = std::mem::take(&mut self.present[d]);
            self.past[d] = forget(self.past[d], self.left)
                + match self.adds {
                    Adds::Integral => held,
                    Adds::Sample => u128::from(self.held[d]) * u128::from(ONE - self.left),
                };
            any |= self.past[d] > 0 || self.held[d] > 0;
        }
        self.is_live[user.index()] = any;
        any
    }

    /// Charges a user for launched tasks as if they had been running at the end of a period, if usage is sampled ([`Adds::Sample`]).
    pub fn charge(&mut self, user: UserId, amounts: &[u64], tasks: u32) {
        if self.adds == Adds::Integral {
            return;
        }
        for (past, amount) in self.past[user.index() * self.dims..].iter_mut().zip(amounts) {
            *past += u128::from(*amount) * u128::from(tasks) * u128::from(ONE - self.left);
        }
        if !std::mem::replace(&mut self.is_live[user.index()], true) {
            self.live.push(user);
        }
    }

    /// Sets the allocations of these users from `now` on.
    pub fn set_allocations(&mut self, now: Time, changed: &[UserId], books: &Books) {
        for &user in changed {
            self.add_up(user, now);
            let at = user.index() * self.dims;
            self.held[at..at + self.dims].copy_from_slice(books.allocated(user));
            let holds = self.held[at..at + self.dims].iter().any(|held| *held > 0);
            if holds && !std::mem::replace(&mut self.is_live[user.index()], true) {
                self.live.push(user);
            }
        }
    }
}

/// Returns the part `left` of an amount, in steps of 2^-32, rounded down.
fn forget(all: u128, left: u64) -> u128 {
    let (high, low) = (all >> 64, all & u128::from(u64::MAX));
    ((high * u128::from(left)) << 32) + ((low * u128::from(left)) >> 32)
}

impl Checkpoint for Usage {
    fn visit(&mut self, visitor: &mut Visitor) -> plimsoll_base::error::Result<()> {
        let Usage { adds: _, period: _, left: _, dims: _, end, elapsed, past, present, held, since, live, is_live } =
            self;
        visit_values!(visitor; end, elapsed, past, present, held, since, live, is_live);
        Ok(())
    }
}
