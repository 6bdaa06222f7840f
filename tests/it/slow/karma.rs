//! The accounts of Karma, from their definition in `docs/memory.md`, "Karma".

use std::cmp::Reverse;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Credits {
    pub quantum: u64,
    /// The guaranteed part of the cluster, in thousandths.
    pub guaranteed: u64,
    pub credits: u64,
    /// Users share the credits that were paid for public slices, instead of receiving free credits for the public share.
    pub pool: bool,
}

/// The accounts of Karma.
#[derive(Clone, Debug, Default)]
pub struct Accounts {
    next: u64,
    pub credits: Vec<u64>,
    earned: u64,
    demands: Vec<u64>,
    pub allocation: Vec<u64>,
}

impl Accounts {
    /// Advances to `now`. `demands` are the allocated and pending amounts of each user, in cores rounded up.
    pub fn round(&mut self, rule: Credits, slices: u64, now: u64, demands: &[u64]) {
        while self.next < now {
            self.quantum(rule, slices);
        }
        self.credits.resize(demands.len(), rule.credits);
        self.allocation.resize(demands.len(), 0);
        self.demands = demands.to_vec();
        if self.next == now {
            self.quantum(rule, slices);
        }
    }

    fn quantum(&mut self, rule: Credits, slices: u64) {
        self.next += rule.quantum;
        let users = self.credits.len() as u64;
        if users == 0 {
            return;
        }
        let mut public = slices - slices * rule.guaranteed / 1000;
        let fair = (slices - public) / users;
        let gift = if rule.pool { self.earned / users } else { public / users };
        self.earned -= if rule.pool { gift * users } else { 0 };
        self.credits.iter_mut().for_each(|credits| *credits += gift);
        let demands = self.demands.clone();
        let mut offered: Vec<u64> = demands.iter().map(|demand| fair.saturating_sub(*demand)).collect();
        let mut wanted: Vec<u64> =
            (0..demands.len()).map(|user| demands[user].saturating_sub(fair).min(self.credits[user])).collect();
        self.allocation = demands.iter().map(|demand| fair.min(*demand)).collect();
        loop {
            let borrows = (0..demands.len()).filter(|&user| wanted[user] > 0);
            let Some(borrower) = borrows.min_by_key(|&user| (Reverse(self.credits[user]), user)) else { return };
            let donates = (0..demands.len()).filter(|&user| offered[user] > 0);
            match donates.min_by_key(|&user| (self.credits[user], user)) {
                Some(donor) => {
                    offered[donor] -= 1;
                    self.credits[donor] += 1;
                }
                None if public > 0 => (public, self.earned) = (public - 1, self.earned + 1),
                None => return,
            }
            wanted[borrower] -= 1;
            self.credits[borrower] -= 1;
            self.allocation[borrower] += 1;
        }
    }

    /// Returns whether a user with this allocation may receive the additional amount.
    pub fn admits(&self, user: usize, held: u64, more: u64) -> bool {
        more == 0 || held + more <= self.allocation[user] * 1000
    }
}
