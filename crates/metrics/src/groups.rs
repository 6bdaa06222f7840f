//! Measures of the guarantees of groups of users: the time below the minimum, borrowed amounts, and the durations of returns.
//!
//! The measures are computed in integers, from the log of allocations and requests alone. All values are constant between two changes, so
//! every integral is exact. A change costs O(groups above the user · resources).
//!
//! A group's *request* of a resource is the allocation and pending demand of its users, plus the requests of its child groups, each cut to
//! its maximum. Its *demand* is the request cut to its own maximum; its *due* is the demand cut to its minimum. While the usage of any
//! resource is less than the due, the group is *below its minimum*. If this state begins because the due has grown (a lender reclaims its
//! guarantee), the time until the state ends is a *return*. If the state begins because tasks of the group have ended, that time is no
//! return.
//!
//! Source: the first article on FuxiMaster (quota groups), for minimum, lending and reclaim; the definitions are ours.

use plimsoll_base::units::{MAX_DIMS, Resources, Span, Time};

/// The guarantee of a group, in base units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guarantee {
    /// The index of the parent group.
    pub parent: Option<usize>,
    /// The minimum of each resource.
    pub min: Resources,
    /// The maximum of each resource.
    pub max: Resources,
}

/// A user's allocation and request of one resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Holding {
    /// The allocation: the amount used by the running tasks.
    pub used: u64,
    /// The demand of the running and the waiting tasks together.
    pub request: u128,
}

/// Integrals of a group in one resource, in base units times microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct GroupSums {
    /// The amount used.
    pub used_us: u128,
    /// The demand.
    pub demand_us: u128,
    /// The amount used above the minimum.
    pub borrowed_us: u128,
    /// The part of the minimum that the group does not request and others may use.
    pub spare_us: u128,
    /// The deficit: the due minus the usage, if positive.
    pub short_us: u128,
    /// The time below the due, in microseconds.
    pub below_us: u64,
    /// The amount used during work that was lost.
    pub lost_us: u128,
    /// The amount above the runtime quota that should have been reclaimed but was not.
    pub unreturned_us: u128,
}

/// The times of a group below its minimum, in any resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct GroupTimes {
    /// The time below the minimum, in microseconds.
    pub below_us: u64,
    /// The number of returns of lent amounts.
    pub returns: u64,
    /// The total time of returns, in microseconds.
    pub returns_us: u128,
    /// The longest time of a return.
    pub longest: Span,
    /// The time for which the group has waited for a return that was not complete at the end of the run.
    pub open: Option<Span>,
    /// The number of running tasks of the group that were stopped and had to start again.
    pub stopped: u64,
}

impl GroupTimes {
    /// Returns the mean time of a return, in microseconds, or `None` without returns.
    pub fn mean_return(&self) -> Option<f64> {
        (self.returns > 0).then(|| self.returns_us as f64 / self.returns as f64)
    }
}

/// The state of a group in one resource.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
struct GroupAccount {
    min: u64,
    max: u64,
    held: Holding,
    /// The due at the end of the last instant with changes.
    due: u64,
    sums: GroupSums,
}

impl GroupAccount {
    fn demand(&self) -> u64 {
        u64::try_from(self.held.request).unwrap_or(u64::MAX).min(self.max)
    }

    fn due(&self) -> u64 {
        self.demand().min(self.min)
    }

    fn short(&self) -> u64 {
        self.due().saturating_sub(self.held.used)
    }
}

/// The state of a group over all resources.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
struct GroupTotals {
    parent: Option<usize>,
    /// The end of the integrated time.
    until: Time,
    /// Whether the group has changed at the current instant.
    touched: bool,
    below: bool,
    /// The time since which the group waits for the return of lent amounts.
    waits: Option<Time>,
    times: GroupTimes,
}

/// The state of all groups of a run.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct GroupLog {
    dims: usize,
    groups: Vec<GroupTotals>,
    /// `dims` entries per group.
    accounts: Vec<GroupAccount>,
    touched: Vec<usize>,
    /// The time of the last change.
    now: Time,
}

impl GroupLog {
    /// Creates a log of groups without allocations at time 0. The parents must form a forest (otherwise this is a programmer error).
    pub fn new(dims: usize, guarantees: &[Guarantee]) -> GroupLog {
        let group = |guarantee: &Guarantee| GroupTotals {
            parent: guarantee.parent,
            until: Time::ZERO,
            touched: false,
            below: false,
            waits: None,
            times: GroupTimes::default(),
        };
        let account = |guarantee: &Guarantee, d: usize| GroupAccount {
            min: guarantee.min[d].min(guarantee.max[d]),
            max: guarantee.max[d],
            ..GroupAccount::default()
        };
        GroupLog {
            dims,
            groups: guarantees.iter().map(group).collect(),
            accounts: guarantees.iter().flat_map(|guarantee| (0..dims).map(move |d| account(guarantee, d))).collect(),
            touched: Vec::new(),
            now: Time::ZERO,
        }
    }

    /// From `now` on, replaces the amounts `before` of a user of a group by `after`, resource by resource. `now` must not decrease between
    /// calls. Only the last state within an instant counts.
    pub fn change(&mut self, now: Time, group: usize, before: &[Holding], after: &[Holding]) {
        if now > self.now {
            self.settle();
            self.now = now;
        }
        let (mut before_above, mut after_above) = ([Holding::default(); MAX_DIMS], [Holding::default(); MAX_DIMS]);
        before_above[..self.dims].copy_from_slice(before);
        after_above[..self.dims].copy_from_slice(after);
        let mut next = Some(group);
        while let Some(at) = next {
            self.integrate(at, now);
            if !std::mem::replace(&mut self.groups[at].touched, true) {
                self.touched.push(at);
            }
            for d in 0..self.dims {
                let account = &mut self.accounts[at * self.dims + d];
                let (before, after) = (&mut before_above[d], &mut after_above[d]);
                let demand = account.demand();
                account.held.used = account.held.used - before.used + after.used;
                account.held.request = account.held.request - before.request + after.request;
                // The parent counts at most the amount that this group may use.
                (before.request, after.request) = (demand.into(), account.demand().into());
            }
            next = self.groups[at].parent;
        }
    }

    /// Records that `count` equal tasks of a group have each lost the work of a time span, and that `stopped` of them were stopped. The
    /// loss counts for the group and all its ancestors.
    pub fn lost(&mut self, group: usize, (count, stopped): (u32, u32), lost: Span, demand: &[u64]) {
        let mut next = Some(group);
        while let Some(at) = next {
            for (account, &demand) in self.accounts[at * self.dims..][..self.dims].iter_mut().zip(demand) {
                account.sums.lost_us += u128::from(demand) * u128::from(lost.0) * u128::from(count);
            }
            self.groups[at].times.stopped += u64::from(stopped);
            next = self.groups[at].parent;
        }
    }

    /// Records that a group used, for a span of time, an `amount` that should have been reclaimed but could not be.
    pub fn unreturned(&mut self, group: usize, amount: &[u64], span: Span) {
        for (account, &amount) in self.accounts[group * self.dims..][..self.dims].iter_mut().zip(amount) {
            account.sums.unreturned_us += u128::from(amount) * u128::from(span.0);
        }
    }

    /// Closes the last instant: finds the groups that are now below their minimum, and the groups that are no longer below it.
    fn settle(&mut self) {
        let now = self.now;
        for at in std::mem::take(&mut self.touched) {
            let group = &mut self.groups[at];
            group.touched = false;
            let (mut below, mut grown) = (false, false);
            for account in &mut self.accounts[at * self.dims..][..self.dims] {
                let short = account.short() > 0;
                below |= short;
                grown |= short && account.due() > account.due;
                account.due = account.due();
            }
            match (group.below, below) {
                (false, true) => group.waits = grown.then_some(now),
                (true, false) => {
                    if let Some(since) = group.waits.take() {
                        let took = now.since(since);
                        group.times.returns += 1;
                        group.times.returns_us += u128::from(took.0);
                        group.times.longest = group.times.longest.max(took);
                    }
                }
                _ => {}
            }
            group.below = below;
        }
    }

    /// Extends all integrals to the end of the run, and counts returns that did not complete as open.
    pub fn finish(&mut self, end: Time) {
        self.settle();
        for at in 0..self.groups.len() {
            self.integrate(at, end);
            let group = &mut self.groups[at];
            group.times.open = group.waits.map(|since| end.since(since));
        }
    }

    /// Integrates the current state of a group up to `now`.
    fn integrate(&mut self, at: usize, now: Time) {
        let group = &mut self.groups[at];
        let span = now.since(group.until).0;
        group.until = now;
        if span == 0 {
            return;
        }
        let mut below = false;
        for account in &mut self.accounts[at * self.dims..][..self.dims] {
            let (used, demand, short) = (account.held.used, account.demand(), account.short());
            let add = |sum: &mut u128, amount: u64| *sum += u128::from(amount) * u128::from(span);
            add(&mut account.sums.used_us, used);
            add(&mut account.sums.demand_us, demand);
            add(&mut account.sums.borrowed_us, used.saturating_sub(account.min));
            add(&mut account.sums.spare_us, account.min.saturating_sub(demand));
            add(&mut account.sums.short_us, short);
            account.sums.below_us += if short > 0 { span } else { 0 };
            below |= short > 0;
        }
        group.times.below_us += if below { span } else { 0 };
    }

    /// Returns the integrals of a group in resource `d`, up to the last change or the end.
    pub fn sums(&self, group: usize, d: usize) -> &GroupSums {
        &self.accounts[group * self.dims + d].sums
    }

    /// Returns the times of a group.
    pub fn times(&self, group: usize) -> &GroupTimes {
        &self.groups[group].times
    }

    /// Returns a group's current allocation and request of resource `d`.
    pub fn holding(&self, group: usize, d: usize) -> Holding {
        self.accounts[group * self.dims + d].held
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000;

    fn guarantee(parent: Option<usize>, min: u64, max: u64) -> Guarantee {
        Guarantee { parent, min: Resources::uniform(min), max: Resources::uniform(max) }
    }

    /// A log of one resource, with one user per group.
    struct LevelLog {
        log: GroupLog,
        users: Vec<Holding>,
    }

    impl LevelLog {
        fn new(guarantees: &[Guarantee]) -> LevelLog {
            LevelLog { log: GroupLog::new(1, guarantees), users: vec![Holding::default(); guarantees.len()] }
        }

        fn at(&mut self, second: u64, changes: &[(usize, u64, u128)]) {
            for &(group, used, request) in changes {
                let after = Holding { used, request };
                self.log.change(Time(second * S), group, &[self.users[group]], &[after]);
                self.users[group] = after;
            }
        }
    }

    #[test]
    fn a_lender_asks_for_its_own_again() {
        let mut log = LevelLog::new(&[guarantee(None, 6, u64::MAX), guarantee(None, 4, u64::MAX)]);
        // The second group uses all 10 units. The first group requests 8 at 5 s, receives 3 at 7 s, and has its guarantee of 6 at 9 s.
        log.at(0, &[(1, 10, 30)]);
        log.at(5, &[(0, 0, 8)]);
        log.at(7, &[(1, 7, 27), (0, 3, 8)]);
        log.at(9, &[(1, 4, 24), (0, 6, 8)]);
        log.log.finish(Time(12 * S));
        let lender = GroupSums {
            used_us: u128::from((2 * 3 + 3 * 6) * S),
            demand_us: u128::from(7 * 8 * S),
            borrowed_us: 0,
            spare_us: u128::from(5 * 6 * S),
            short_us: u128::from((2 * 6 + 2 * 3) * S),
            below_us: 4 * S,
            lost_us: 0,
            unreturned_us: 0,
        };
        assert_eq!(*log.log.sums(0, 0), lender);
        let borrower = log.log.sums(1, 0);
        assert_eq!((borrower.borrowed_us, borrower.below_us), (u128::from((7 * 6 + 2 * 3) * S), 0));
        let times = log.log.times(0);
        assert_eq!((times.below_us, times.returns, times.returns_us), (4 * S, 1, u128::from(4 * S)));
        assert_eq!((times.longest, times.open, times.mean_return()), (Span(4 * S), None, Some(4e6)));
        assert_eq!(*log.log.times(1), GroupTimes::default());
    }

    #[test]
    fn what_has_not_come_back_is_open_and_what_ends_is_no_return() {
        let mut log = LevelLog::new(&[guarantee(None, 4, u64::MAX), guarantee(None, 4, u64::MAX)]);
        log.at(0, &[(0, 4, 9), (1, 0, 9)]);
        // A task of the first group ends, and its next task cannot start. The group is below its minimum, but it has lent nothing.
        log.at(3, &[(0, 3, 8)]);
        // Only the last state within an instant counts.
        log.at(4, &[(0, 0, 8), (0, 4, 8)]);
        log.at(6, &[(0, 2, 6), (0, 2, 7)]);
        log.log.finish(Time(10 * S));
        let (first, second) = (log.log.times(0), log.log.times(1));
        assert_eq!((first.below_us, first.returns, first.open), (5 * S, 0, None));
        assert_eq!((second.below_us, second.returns, second.open), (10 * S, 0, Some(Span(10 * S))));
        assert_eq!(second.mean_return(), None);
    }

    #[test]
    fn parents_hear_of_no_more_than_their_groups_may_use() {
        // A parent with min 6 over a (min 4, max 5) and b (no min).
        let mut log =
            LevelLog::new(&[guarantee(None, 6, u64::MAX), guarantee(Some(0), 4, 5), guarantee(Some(0), 0, u64::MAX)]);
        log.at(0, &[(1, 0, 100)]);
        assert_eq!(log.log.holding(0, 0), Holding { used: 0, request: 5 });
        log.at(2, &[(1, 4, 100), (2, 0, 7)]);
        assert_eq!(log.log.holding(0, 0), Holding { used: 4, request: 12 });
        log.at(5, &[(2, 3, 3), (1, 4, 4)]);
        assert_eq!(log.log.holding(0, 0), Holding { used: 7, request: 7 });
        log.log.finish(Time(6 * S));
        // The parent is entitled to 5, then to 6; it uses 0, then 4.
        let parent = log.log.sums(0, 0);
        assert_eq!((parent.below_us, parent.short_us), (5 * S, u128::from((2 * 5 + 3 * 2) * S)));
        assert_eq!((parent.borrowed_us, parent.spare_us), (u128::from(S), u128::from(2 * S)));
        assert_eq!((log.log.times(0).returns, log.log.times(0).longest), (1, Span(5 * S)));
        assert_eq!((log.log.times(1).returns, log.log.times(1).longest), (1, Span(2 * S)));
        assert_eq!(log.log.sums(1, 0).demand_us, u128::from((5 * 5 + 4) * S));
    }

    #[test]
    fn what_stopped_tasks_had_done_is_lost_to_all_above() {
        let mut log = LevelLog::new(&[guarantee(None, 6, u64::MAX), guarantee(Some(0), 4, 5), guarantee(None, 0, 1)]);
        log.log.lost(1, (3, 3), Span(7 * S), &[2]);
        log.log.lost(0, (1, 1), Span(S), &[5]);
        let lost = |group: usize| (log.log.sums(group, 0).lost_us / u128::from(S), log.log.times(group).stopped);
        assert_eq!([lost(0), lost(1), lost(2)], [(47, 4), (42, 3), (0, 0)]);
    }

    #[test]
    fn the_largest_amounts_do_not_overflow() {
        let mut log = LevelLog::new(&[guarantee(None, u64::MAX, u64::MAX)]);
        log.at(0, &[(0, 1, u128::from(u64::MAX) * 1000)]);
        log.log.finish(Time(u64::MAX));
        assert_eq!(log.log.sums(0, 0).short_us, u128::from(u64::MAX - 1) * u128::from(u64::MAX));
    }
}
