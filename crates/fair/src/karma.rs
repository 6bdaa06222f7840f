//! Karma: credits for slices of one resource, quantum by quantum.
//!
//! Each user is guaranteed its fair share `f` of the slices that are not public. A user that demands less donates the rest. A user that
//! demands more borrows slice by slice: the borrower with the most credits takes from the donor with the fewest, and takes public slices
//! once no donor has any left. A borrowed slice costs one credit, paid to the donor or, for a public slice, to the pool.
//!
//! Source: Vuppalapati et al., "Karma: Resource Allocation for Dynamic Demands", OSDI 2023, §3. The paper's alpha is the guaranteed part;
//! the authors' library uses that name for the public part.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use plimsoll_base::checkpoint::{Checkpoint, Visitor};
use plimsoll_base::error::Result;
use plimsoll_base::named;
use plimsoll_base::visit_values;

named! {
    /// The credits that users receive without donating at the beginning of every quantum.
    FreeCredits {
        Public "public": "The number of public slices per user, rounded down, as in the paper and the authors' library",
        Pool "pool": "An equal part of the credits earned by the public slices, rounded down, as in the authors' other implementation",
    }
}

/// The credit accounts of all users. Ties, which the source leaves open, go to the earlier user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Karma {
    free: FreeCredits,
    initial: u64,
    credits: Vec<u64>,
    pool: u64,
}

impl Karma {
    /// Creates an instance without accounts. Accounts opened later begin with `initial` credits.
    pub fn new(free: FreeCredits, initial: u64) -> Karma {
        Karma { free, initial, credits: Vec::new(), pool: 0 }
    }

    /// Opens an account.
    pub fn open(&mut self) {
        self.credits.push(self.initial);
    }

    /// Returns the credits of each user.
    pub fn credits(&self) -> &[u64] {
        &self.credits
    }

    /// Returns the credits that public slices have earned and that are not distributed yet.
    pub fn pool(&self) -> u64 {
        self.pool
    }

    /// Runs `quanta` quanta without demand.
    pub fn idle(&mut self, quanta: u64, public: u64) {
        let users = self.credits.len() as u64;
        if let (1.., 1..) = (quanta, users) {
            self.quantum(0, public, &vec![0; self.credits.len()]);
            // After the first quantum the pool is too small for another equal part.
            let each = if self.free == FreeCredits::Public { public / users } else { 0 };
            let more = each.saturating_mul(quanta - 1);
            self.credits.iter_mut().for_each(|credits| *credits = credits.saturating_add(more));
        }
    }

    /// Runs a quantum: returns the slices of each user, given the demand of each user and the number of slices, `public` of them public.
    /// The other slices are divided equally and rounded down; the remainder of the division stays free.
    ///
    /// Cost: O(users + borrowed slices · log users).
    pub fn quantum(&mut self, slices: u64, public: u64, demands: &[u64]) -> Vec<u64> {
        let users = self.credits.len() as u64;
        if users == 0 {
            return Vec::new();
        }
        let each = match self.free {
            FreeCredits::Public => public / users,
            FreeCredits::Pool => self.pool / users,
        };
        if self.free == FreeCredits::Pool {
            self.pool -= each * users;
        }
        self.credits.iter_mut().for_each(|credits| *credits = credits.saturating_add(each));
        let fair = slices.saturating_sub(public) / users;
        let mut allocation: Vec<u64> = demands.iter().map(|demand| fair.min(*demand)).collect();
        // Heap entries: the credits, the user, and the number of slices still requested or offered.
        let wants = |at: usize| demands[at].saturating_sub(fair).min(self.credits[at]);
        let of = |at: usize| self.credits[at];
        let all = 0..demands.len();
        let mut borrowers: BinaryHeap<(u64, Reverse<usize>, u64)> =
            all.clone().filter(|at| wants(*at) > 0).map(|at| (of(at), Reverse(at), wants(at))).collect();
        let mut donors: BinaryHeap<(Reverse<u64>, Reverse<usize>, u64)> =
            all.filter(|at| demands[*at] < fair).map(|at| (Reverse(of(at)), Reverse(at), fair - demands[at])).collect();
        let mut public = public.min(slices);
        while let Some((credits, Reverse(at), wanted)) = borrowers.pop() {
            if let Some((Reverse(earned), Reverse(donor), offered)) = donors.pop() {
                self.credits[donor] = earned.saturating_add(1);
                if offered > 1 {
                    donors.push((Reverse(self.credits[donor]), Reverse(donor), offered - 1));
                }
            } else if public > 0 {
                (public, self.pool) = (public - 1, self.pool + 1);
            } else {
                break;
            }
            allocation[at] += 1;
            self.credits[at] = credits - 1;
            if wanted > 1 {
                borrowers.push((credits - 1, Reverse(at), wanted - 1));
            }
        }
        allocation
    }
}

impl Checkpoint for Karma {
    fn visit(&mut self, visitor: &mut Visitor) -> Result<()> {
        let Karma { free: _, initial: _, credits, pool } = self;
        visit_values!(visitor; credits, pool);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    /// The case `karma_e2e_one` of the authors' tests (resource-disaggregation/karma, jiffy-implementation): three users, 33 slices, 3 of
    /// them public, 10 credits each.
    #[test]
    fn five_quanta_of_the_authors() {
        let quanta: [([u64; 3], [u64; 3], [u64; 3], u64); 5] = [
            ([10, 10, 10], [10, 10, 10], [10, 10, 10], 0),
            ([2, 12, 16], [2, 12, 16], [18, 8, 4], 0),
            ([6, 12, 6], [6, 12, 6], [18, 6, 6], 0),
            ([18, 5, 12], [18, 5, 10], [10, 11, 6], 3),
            ([10, 10, 10], [10, 10, 10], [11, 12, 7], 0),
        ];
        let mut karma = Karma::new(FreeCredits::Pool, 10);
        (0..3).for_each(|_| karma.open());
        for (demands, allocation, credits, pool) in quanta {
            assert_eq!(karma.quantum(33, 3, &demands), allocation, "{demands:?}");
            assert_eq!((karma.credits(), karma.pool()), (&credits[..], pool), "{demands:?}");
        }
    }

    /// Runs a quantum by the definition, one slice at a time. The next borrower and donor are found by a scan of all users.
    fn slow(credits: &mut [u64], pool: &mut u64, fair: u64, public: u64, demands: &[u64]) -> Vec<u64> {
        let mut got: Vec<u64> = demands.iter().map(|demand| fair.min(*demand)).collect();
        let (mut gave, mut left) = (vec![0; demands.len()], public);
        let budget = credits.to_vec();
        loop {
            let borrows = |&at: &usize| got[at] >= fair && got[at] < demands[at] && got[at] - fair < budget[at];
            let borrower = (0..demands.len()).filter(borrows).max_by_key(|&at| (credits[at], Reverse(at)));
            let Some(borrower) = borrower else { return got };
            let donates = |&at: &usize| demands[at] + gave[at] < fair;
            let donor = (0..demands.len()).filter(donates).min_by_key(|&at| (credits[at], at));
            match donor {
                Some(donor) => (gave[donor], credits[donor]) = (gave[donor] + 1, credits[donor] + 1),
                None if left > 0 => (left, *pool) = (left - 1, *pool + 1),
                None => return got,
            }
            got[borrower] += 1;
            credits[borrower] -= 1;
        }
    }

    #[test]
    fn heaps_find_what_a_search_finds_and_credits_are_kept() {
        let mut rng = ChaCha8Rng::seed_from_u64(21);
        let mut lacking = 0;
        for case in 0..400 {
            let users = rng.random_range(1..=6);
            let free = [FreeCredits::Public, FreeCredits::Pool][case % 2];
            let mut karma = Karma::new(free, rng.random_range(0..12));
            (0..users).for_each(|_| karma.open());
            for _ in 0..6 {
                let (slices, public): (u64, u64) = (rng.random_range(0..40), rng.random_range(0..10));
                let demands: Vec<u64> = (0..users).map(|_| rng.random_range(0..15)).collect();
                let mut twin = karma.clone();
                let each = if free == FreeCredits::Public { public } else { twin.pool } / users as u64;
                twin.credits.iter_mut().for_each(|credits| *credits += each);
                twin.pool -= if free == FreeCredits::Pool { each * users as u64 } else { 0 };
                let had: u64 = twin.credits.iter().sum::<u64>() + twin.pool;
                let fair = slices.saturating_sub(public) / users as u64;
                let expected = slow(&mut twin.credits, &mut twin.pool, fair, public.min(slices), &demands);
                assert_eq!((karma.quantum(slices, public, &demands), &karma), (expected.clone(), &twin), "case {case}");
                assert_eq!(karma.credits.iter().sum::<u64>() + karma.pool, had, "credits only change hands");
                assert!(expected.iter().sum::<u64>() <= slices, "no more than there is");
                lacking += usize::from(expected != demands);
            }
        }
        assert!(lacking > 500, "only {lacking} quanta lacked anything");
    }
}
