//! Fair shares of users over received accelerator time: dominant resource fairness, quotas and Karma.
//!
//! A user is an entity of the list of jobs. These policies choose the jobs of each round themselves, from the accelerator time that each user
//! received (accelerators times microseconds, all integers). A round has two phases.
//!
//! 1. *Entitled.* Users are served in the order of the rule. A user's jobs are in order of arrival, and a job takes the fastest worker type
//!    with room. Jobs that do not fit are skipped.
//! 2. *Lent* (quotas and Karma). Accelerators that are still idle go to waiting jobs in the same order of users, without a charge to the
//!    entitlement.
//!
//! | rule | order of users | entitlement |
//! |---|---|---|
//! | `drf` | least dominant share first: the largest part of a type's accelerator time that the user received. Each job in the round counts at once | none: one phase |
//! | `quota` | least received time per accelerator of the quota | the quota, per round |
//! | `karma` | most credits first | the slices of the quantum, which is a round |
//!
//! An entitlement that is not used in a round, because a job is wider than it, is kept, at most the width of the widest waiting job of the user. A user
//! that returns after a pause counts as served at the least level of the active users, so that a pause earns no priority (start-time fair
//! queueing; Goyal et al., SIGCOMM 1996). Karma's accounts are those of [`plimsoll_fair::Karma`]: half of the accelerators are guaranteed,
//! credits suffice, and public slices pay all users. Sources: DRF (Ghodsi et al., NSDI 2011), Karma (Vuppalapati et al., OSDI 2023); the
//! transfer to accelerator time is Plimsoll's.

mod accounts;

use plimsoll_base::error::Result;
use plimsoll_base::units::Span;

use super::fractions::check_rates;
use super::{ActiveJob, Policy, PolicyOptions, PolicyRow, RoundChoice, RunFacts, View};
use crate::mechanism::{Targets, WHOLE};
use accounts::{Accounts, ShareRule};

/// Dominant resource fairness.
pub(super) const DRF: PolicyRow = PolicyRow {
    name: "drf",
    title: "Dominant resource fairness of entities over received accelerator time",
    source: "DRF, NSDI 2011; Plimsoll",
    packing: false,
    listed_order: true,
    skip_zero: false,
    create: |_: &PolicyOptions| Box::new(UserShares::new(ShareRule::Drf, &[])),
};
/// Quotas with lending.
pub(super) const QUOTA: PolicyRow = PolicyRow {
    name: "quota",
    title: "Quotas of entities in accelerators, idle ones are lent",
    source: "Plimsoll",
    create: |options: &PolicyOptions| Box::new(UserShares::new(ShareRule::Quota, &options.quotas)),
    ..DRF
};
/// Karma.
pub(super) const KARMA: PolicyRow = PolicyRow {
    name: "karma",
    title: "Karma: entities lend and borrow accelerators for credits, a round is a quantum",
    source: "Karma, OSDI 2023; Plimsoll",
    create: |_: &PolicyOptions| Box::new(UserShares::new(ShareRule::Karma, &[])),
    ..DRF
};

/// The rounds over which the fractions of a fixed set of jobs are computed.
const ROUNDS: u64 = 240;

/// The policy of one rule.
struct UserShares {
    rule: ShareRule,
    quotas: Vec<(u32, u32)>,
    round: Span,
    accounts: Option<Accounts>,
    /// All entities of the list of jobs.
    entities: Vec<u32>,
}

impl UserShares {
    fn new(rule: ShareRule, quotas: &[(u32, u32)]) -> UserShares {
        UserShares { rule, quotas: quotas.to_vec(), round: Span::from_secs(360), accounts: None, entities: Vec::new() }
    }

    fn accounts(&self, view: &View<'_>) -> Accounts {
        let mut entities = self.entities.clone();
        entities.extend(view.jobs.iter().map(|job| job.entity));
        entities.sort_unstable();
        entities.dedup();
        Accounts::new(self.rule, &entities, &self.quotas, view.capacity)
    }
}

impl Policy for UserShares {
    fn prepare(&mut self, run: &RunFacts<'_>) {
        self.round = run.round;
        self.entities = run.jobs.iter().map(|job| job.entity).collect();
    }

    fn plans(&self) -> bool {
        true
    }

    /// Returns the share of each job on each type in the next 240 rounds of a new run without arrivals and completions.
    fn targets(&mut self, view: &View<'_>) -> Result<Targets> {
        check_rates(view)?;
        let n = view.capacity.len();
        let mut rounds = vec![0u64; view.jobs.len() * n];
        let mut accounts = self.accounts(view);
        for _ in 0..ROUNDS {
            for (at, j) in accounts.round(view, self.round) {
                rounds[at * n + j] += 1;
                accounts.charge(&view.jobs[at], j, self.round);
            }
        }
        let mut targets = Targets::zero(view.jobs.len(), n);
        let part = |count: u64| (u64::from(WHOLE) * count / ROUNDS) as u32;
        targets.alone.iter_mut().zip(rounds).for_each(|(x, count)| *x = part(count));
        Ok(targets)
    }

    fn choose(&mut self, view: &View<'_>, _round: u64) -> Result<RoundChoice> {
        check_rates(view)?;
        let mut accounts = match self.accounts.take() {
            Some(accounts) => accounts,
            None => self.accounts(view),
        };
        let chosen = accounts.round(view, self.round);
        self.accounts = Some(accounts);
        let mut jobs: Vec<(u32, usize)> = chosen.into_iter().map(|(at, j)| (view.jobs[at].id, j)).collect();
        jobs.sort_unstable();
        Ok(RoundChoice { jobs, planned: false, gap: None })
    }

    fn charge(&mut self, job: &ActiveJob, worker_type: usize, length: Span) {
        if let Some(accounts) = &mut self.accounts {
            accounts.charge(job, worker_type, length);
        }
    }
}

#[cfg(test)]
mod tests;
