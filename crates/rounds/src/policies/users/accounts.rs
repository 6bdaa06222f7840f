//! The accounts of users, and the rule of one round.

use std::cmp::{Ordering, Reverse};

use plimsoll_base::units::Span;
use plimsoll_fair::{FreeCredits, Karma};

use super::super::{ActiveJob, View};

/// The initial credits of an account: enough that no user runs out.
const CREDITS: u64 = 1_000_000_000_000;

/// The rule of an order of users.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ShareRule {
    /// Least dominant share.
    Drf,
    /// Least received time per quota.
    Quota,
    /// Most credits.
    Karma,
}

/// The account of a user.
#[derive(Clone, Debug)]
struct UserAccount {
    entity: u32,
    /// Received accelerator time per type, in accelerator-microseconds.
    received: Vec<u64>,
    /// The accelerators of its quota.
    quota: u32,
    /// The entitlement that is left, in accelerators for a round.
    balance: u64,
    active: bool,
}

/// The accounts of all users.
#[derive(Clone, Debug)]
pub(super) struct Accounts {
    rule: ShareRule,
    capacity: Vec<u32>,
    accounts: Vec<UserAccount>,
    karma: Karma,
}

/// A fraction of two integers that is compared by products.
#[derive(Clone, Copy, Debug)]
struct Level(u64, u64);

impl PartialEq for Level {
    fn eq(&self, other: &Level) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Level {}

impl Ord for Level {
    fn cmp(&self, other: &Level) -> Ordering {
        let product = |a: u64, b: u64| u128::from(a) * u128::from(b);
        // A level over 0 is infinite.
        match (self.1, other.1) {
            (0, 0) => Ordering::Equal,
            (0, _) => Ordering::Greater,
            (_, 0) => Ordering::Less,
            _ => product(self.0, other.1).cmp(&product(other.0, self.1)),
        }
    }
}

impl PartialOrd for Level {
    fn partial_cmp(&self, other: &Level) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Accounts {
    /// Opens accounts for `entities`, ascending. Without `quotas` all accelerators are divided equally, the first entities get the remainder;
    /// with them, entities that are not listed have a quota of 0.
    pub fn new(rule: ShareRule, entities: &[u32], quotas: &[(u32, u32)], capacity: &[u32]) -> Accounts {
        let all: u32 = capacity.iter().sum();
        let count = entities.len().max(1) as u32;
        let equal = |at: usize| all / count + u32::from((at as u32) < all % count);
        let quota = |at: usize, entity: u32| match quotas {
            [] => equal(at),
            quotas => quotas.iter().find(|(of, _)| *of == entity).map_or(0, |(_, quota)| *quota),
        };
        let account = |(at, &entity): (usize, &u32)| UserAccount {
            entity,
            received: vec![0; capacity.len()],
            quota: quota(at, entity),
            balance: 0,
            active: false,
        };
        let mut karma = Karma::new(FreeCredits::Public, CREDITS);
        entities.iter().for_each(|_| karma.open());
        let accounts = entities.iter().enumerate().map(account).collect();
        Accounts { rule, capacity: capacity.to_vec(), accounts, karma }
    }

    /// Returns the level of a user in its order, with `more` accelerator time per type added.
    fn level(&self, at: usize, more: &[u64]) -> Level {
        let account = &self.accounts[at];
        let received = |j: usize| account.received[j] + more[j];
        match self.rule {
            ShareRule::Quota => Level((0..more.len()).map(received).sum(), account.quota.into()),
            _ => (0..more.len()).map(|j| Level(received(j), self.capacity[j].into())).max().unwrap_or(Level(0, 1)),
        }
    }

    /// Charges a micro-task of a job to its user.
    pub fn charge(&mut self, job: &ActiveJob, worker_type: usize, length: Span) {
        if let Ok(at) = self.accounts.binary_search_by_key(&job.entity, |account| account.entity) {
            let time = length.0 * u64::from(job.scale);
            self.accounts[at].received[worker_type] += time;
        }
    }

    /// Chooses the jobs of a round of length `round`: indices of the view with worker types.
    pub fn round(&mut self, view: &View<'_>, round: Span) -> Vec<(usize, usize)> {
        let mut waiting: Vec<Vec<usize>> = vec![Vec::new(); self.accounts.len()];
        for (at, job) in view.jobs.iter().enumerate() {
            if let Ok(user) = self.accounts.binary_search_by_key(&job.entity, |account| account.entity) {
                waiting[user].push(at);
            }
        }
        self.admit(&waiting);
        let mut free = view.capacity.to_vec();
        let mut chosen = Vec::new();
        if self.rule == ShareRule::Drf {
            self.by_dominant_share(view, round, waiting, &mut free, &mut chosen);
            return chosen;
        }
        self.entitle(view, &waiting);
        let mut order: Vec<usize> = (0..waiting.len()).filter(|&user| !waiting[user].is_empty()).collect();
        let none = vec![0; view.capacity.len()];
        match self.rule {
            ShareRule::Karma => order.sort_by_key(|&user| (Reverse(self.karma.credits()[user]), user)),
            _ => order.sort_by(|&a, &b| self.level(a, &none).cmp(&self.level(b, &none)).then(a.cmp(&b))),
        }
        for entitled in [true, false] {
            for &user in &order {
                let mut left = Vec::new();
                for &at in &waiting[user] {
                    let cost = u64::from(view.jobs[at].scale);
                    let covered = !entitled || self.accounts[user].balance >= cost;
                    match fastest(view, at, &free).filter(|_| covered) {
                        Some(j) => {
                            free[j] -= view.jobs[at].scale;
                            chosen.push((at, j));
                            self.accounts[user].balance -= if entitled { cost } else { 0 };
                        }
                        None => left.push(at),
                    }
                }
                waiting[user] = left;
            }
        }
        chosen
    }

    /// Updates which users have jobs. A user that returns counts as served at the least level of the active users.
    fn admit(&mut self, waiting: &[Vec<usize>]) {
        let none = vec![0; self.capacity.len()];
        let active = (0..waiting.len()).filter(|&user| self.accounts[user].active && !waiting[user].is_empty());
        let least = active.map(|user| self.level(user, &none)).min();
        for user in 0..waiting.len() {
            let returns = !self.accounts[user].active && !waiting[user].is_empty();
            self.accounts[user].active = !waiting[user].is_empty();
            let Some(least) = least.filter(|least| returns && least.1 > 0) else { continue };
            let part = |count: u64| (u128::from(least.0) * u128::from(count) / u128::from(least.1)) as u64;
            if self.rule == ShareRule::Quota {
                let account = &mut self.accounts[user];
                let missing = part(account.quota.into()).saturating_sub(account.received.iter().sum());
                account.received[0] += missing;
            } else {
                for (received, &count) in self.accounts[user].received.iter_mut().zip(&self.capacity) {
                    *received = (*received).max(part(count.into()));
                }
            }
        }
    }

    /// Adds the entitlement of a round to the balances.
    fn entitle(&mut self, view: &View<'_>, waiting: &[Vec<usize>]) {
        let width = |jobs: &Vec<usize>| jobs.iter().map(|&at| u64::from(view.jobs[at].scale)).sum::<u64>();
        let all: u64 = self.capacity.iter().map(|&count| u64::from(count)).sum();
        let entitled = match self.rule {
            ShareRule::Karma => {
                let demands: Vec<u64> = waiting.iter().map(|jobs| width(jobs).min(all)).collect();
                self.karma.quantum(all, all - all / 2, &demands)
            }
            _ => self.accounts.iter().map(|account| account.quota.into()).collect(),
        };
        for ((account, entitled), jobs) in self.accounts.iter_mut().zip(entitled).zip(waiting) {
            // At most the width of the widest job is kept, so that it runs once its width is saved.
            let widest = jobs.iter().map(|&at| view.jobs[at].scale).max().unwrap_or(0);
            account.balance = account.balance.min(widest.into()) + entitled;
        }
    }

    /// Serves the user with the least dominant share until no job fits. Each served job counts with a full round.
    fn by_dominant_share(
        &self,
        view: &View<'_>,
        round: Span,
        waiting: Vec<Vec<usize>>,
        free: &mut [u32],
        chosen: &mut Vec<(usize, usize)>,
    ) {
        let mut given = vec![vec![0u64; view.capacity.len()]; waiting.len()];
        let mut queues: Vec<std::vec::IntoIter<usize>> = waiting.into_iter().map(Vec::into_iter).collect();
        let mut heap: std::collections::BinaryHeap<Reverse<(Level, usize)>> =
            (0..queues.len()).map(|user| Reverse((self.level(user, &given[user]), user))).collect();
        while let Some(Reverse((_, user))) = heap.pop() {
            // Room only shrinks, so a job that does not fit now does not fit later in this round.
            let next = queues[user].find_map(|at| fastest(view, at, free).map(|j| (at, j)));
            let Some((at, j)) = next else { continue };
            free[j] -= view.jobs[at].scale;
            given[user][j] += round.0 * u64::from(view.jobs[at].scale);
            chosen.push((at, j));
            heap.push(Reverse((self.level(user, &given[user]), user)));
        }
    }
}

/// Returns the fastest worker type with room for a job; of equal ones the first listed.
fn fastest(view: &View<'_>, at: usize, free: &[u32]) -> Option<usize> {
    let job = &view.jobs[at];
    let rates = view.rates.alone(job.kind);
    let possible = (0..free.len()).filter(|&j| free[j] >= job.scale && rates[j].pico > 0);
    possible.max_by_key(|&j| (rates[j].pico, Reverse(j)))
}
