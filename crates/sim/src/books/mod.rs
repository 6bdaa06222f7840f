//! The account of the state of a run: the allocation, the use and the pending demand of each user.
//!
//! The engine writes the books, policies and metrics read them, and no other module keeps a copy. A user has an *allocation* and a *use*.
//! The allocation (footprint) is the amount that the policy's lens reserves for its running tasks. The use is the true demand of these
//! tasks. The two differ under slots. Sums that not every policy reads (pending demand, integrals over time, kinds of machines, books per
//! partition) are kept only on request.

mod weights;

pub use weights::{WEIGHT_ONE, Weights};

use prefetch_index::prefetch_index;

use plimsoll_base::checkpoint::{Checkpoint, Visitor};
use plimsoll_base::units::{Resources, Time, UserId};
use plimsoll_base::visit_values;

/// The key of separate books, if a policy keeps them: a task set is booked under the label that it requires, or under the default
/// partition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct Partition(pub u8);

impl Partition {
    /// Task sets that require no label with separate books.
    pub const DEFAULT: Partition = Partition(0);
    /// The largest number of labels with separate books.
    pub const LABELS: usize = u8::MAX as usize - 1;

    /// Returns its index in a list of partitions.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// The state of one run. Amounts are in base units, one per dimension of the run.
///
/// All numbers of a user are stored together, because a launch or an end changes all of them. With many users, each separate table would
/// cost one more cache miss.
#[derive(Clone, Debug)]
pub struct Books {
    dims: usize,
    capacity: Resources,
    offered: Resources,
    same: bool,
    /// `stride` numbers per user: the counts from [`RUNNING`] on, the allocation, the demand of the next task and, unless the lens is
    /// plain, the used amounts.
    accounts: Vec<u64>,
    stride: usize,
    /// The total demand of a user's waiting tasks, `dims` numbers per user, if requested by a policy. It costs one more cache miss per
    /// launch, and may exceed a `u64`.
    waiting_demand: Option<Vec<u128>>,
    /// The integrals of the allocations, if requested by a policy.
    integrals: Option<Integrals>,
    /// The kinds of machines and the number of each, if requested by a policy.
    machines: Vec<(Resources, u64)>,
    weights: Weights,
    total_held: Resources,
    total_used: Resources,
    total_running: u64,
    total_waiting: u64,
    backlogged: u32,
    active: u32,
    /// The books of each [`Partition`], if a policy keeps them apart.
    apart: Vec<Books>,
}

/// The integrals of the allocations over time, in base units times microseconds.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
struct Integrals {
    now: Time,
    /// The integral up to the last change of the user's allocation, `dims` numbers per user.
    sums: Vec<u128>,
    /// The time of the last change of the allocation, by user.
    since: Vec<Time>,
}

const RUNNING: usize = 0;
const WAITING: usize = 1;
const CLASS: usize = 2;
const HELD: usize = 3;

impl Books {
    /// Creates empty books for a cluster of `capacity`, of which the policy's lens offers `offered`. `same` means that the lens is plain:
    /// it changes neither machines nor demands.
    pub fn new(dims: usize, capacity: Resources, offered: Resources, same: bool, weights: Weights) -> Books {
        Books {
            dims,
            capacity,
            offered,
            same,
            accounts: Vec::new(),
            stride: HELD + dims * if same { 2 } else { 3 },
            waiting_demand: None,
            integrals: None,
            machines: Vec::new(),
            weights,
            total_held: Resources::ZERO,
            total_used: Resources::ZERO,
            total_running: 0,
            total_waiting: 0,
            backlogged: 0,
            active: 0,
            apart: Vec::new(),
        }
    }

    /// Creates separate books for this number of labels, and for task sets that do not require these labels; [`Books::set_capacity`] sets
    /// the capacity of each. Panics: if accounts are open already (a programmer error).
    pub fn keep_apart(&mut self, labels: usize) {
        assert!(self.accounts.is_empty(), "must be called before the first account is opened");
        let nothing = Books { capacity: Resources::ZERO, offered: Resources::ZERO, ..self.clone() };
        self.apart = vec![nothing; labels + 1];
    }

    /// Returns the books of a partition, with its present capacity, or these books if there are no partitions. They do not contain the
    /// demands of heads.
    pub fn partition(&self, partition: Partition) -> &Books {
        if self.apart.is_empty() { self } else { &self.apart[partition.index()] }
    }

    /// Returns the number of partitions.
    pub fn partitions(&self) -> usize {
        self.apart.len().max(1)
    }

    /// Returns the books of a partition, if they are kept. Amounts that are booked in these books must also be booked in those of the
    /// partition.
    pub fn apart(&mut self, partition: Partition) -> Option<&mut Books> {
        self.apart.get_mut(partition.index())
    }

    /// Sets the capacity. Only for the books of a partition. The capacity of the whole cluster remains that of its description, because
    /// shares refer to it.
    pub fn set_capacity(&mut self, capacity: Resources) {
        (self.capacity, self.offered) = (capacity, capacity);
    }

    /// Stores the kinds of machines of the cluster for [`Books::machines`].
    pub fn keep_machines(&mut self, machines: &[Resources]) {
        for capacity in machines {
            match self.machines.iter_mut().find(|(kind, _)| kind == capacity) {
                Some((_, count)) => *count += 1,
                None => self.machines.push((*capacity, 1)),
            }
        }
    }

    /// Enables the sums for [`Books::wanted`]. Panics: if accounts are open already (a programmer error).
    pub fn keep_waiting_demand(&mut self) {
        assert!(self.accounts.is_empty(), "must be called before the first account is opened");
        self.waiting_demand = Some(Vec::new());
    }

    /// Enables the sums for [`Books::service`]. Panics: if accounts are open already (a programmer error).
    pub fn keep_integrals(&mut self) {
        assert!(self.accounts.is_empty(), "must be called before the first account is opened");
        self.integrals = Some(Integrals::default());
    }

    /// Advances the time of the integrals.
    pub fn pass(&mut self, now: Time) {
        if let Some(integrals) = &mut self.integrals {
            integrals.now = now;
        }
    }

    /// Opens an account for the next user id.
    pub fn open(&mut self, name: &str) {
        if let Some(integrals) = &mut self.integrals {
            integrals.sums.resize(integrals.sums.len() + self.dims, 0);
            integrals.since.push(integrals.now);
        }
        let at = self.accounts.len();
        self.accounts.resize(at + self.stride, 0);
        self.accounts[at + CLASS] = u64::from(self.weights.class_of(name));
        if let Some(sums) = &mut self.waiting_demand {
            sums.resize(sums.len() + self.dims, 0);
        }
        self.apart.iter_mut().for_each(|apart| apart.open(name));
    }

    /// Prefetches the account of a user that is about to change; has no effect for a user without an account.
    pub fn fetch(&self, user: UserId) {
        let at = user.index() * self.stride;
        prefetch_index(&self.accounts, at);
        prefetch_index(&self.accounts, at + self.stride - 1);
    }

    fn account(&self, user: UserId) -> &[u64] {
        let at = user.index() * self.stride;
        &self.accounts[at..at + self.stride]
    }

    /// Returns the number of users with an account.
    pub fn users(&self) -> usize {
        self.accounts.len() / self.stride
    }

    /// Returns the number of resource dimensions.
    pub fn dims(&self) -> usize {
        self.dims
    }

    /// Returns the capacity of the whole cluster.
    pub fn capacity(&self) -> &Resources {
        &self.capacity
    }

    /// Returns the capacity of the whole cluster as the policy's lens offers it.
    pub fn offered(&self) -> &Resources {
        &self.offered
    }

    /// Returns the kinds of machines of the whole cluster, as the policy's lens offers them, with the number of each; empty unless a policy
    /// requested them.
    pub fn machines(&self) -> &[(Resources, u64)] {
        &self.machines
    }

    /// Returns the allocation of a user: the footprint of its running tasks.
    pub fn allocated(&self, user: UserId) -> &[u64] {
        &self.account(user)[HELD..HELD + self.dims]
    }

    /// Returns whether reserved and used amounts are the same.
    pub fn lens_is_plain(&self) -> bool {
        self.same
    }

    /// Returns the true demand of a user's running tasks.
    pub fn used(&self, user: UserId) -> &[u64] {
        if self.same { self.allocated(user) } else { &self.account(user)[HELD + 2 * self.dims..] }
    }

    /// Returns the demand of the task that a user would launch next; meaningful while [`Books::waiting`] is not 0.
    pub fn head(&self, user: UserId) -> &[u64] {
        &self.account(user)[HELD + self.dims..HELD + 2 * self.dims]
    }

    /// Returns the total demand of a user's running and waiting tasks for resource `d`; divided by the number of these tasks, it is the
    /// mean demand, which launches do not change.
    ///
    /// Panics: unless a policy or a recorder requested it ([`Needs::waiting_demand`](crate::policy::Needs::waiting_demand)).
    pub fn wanted(&self, user: UserId, d: usize) -> u128 {
        let waiting = self.waiting_demand.as_ref().expect("a policy or a recorder requires the waiting demand");
        u128::from(self.used(user)[d]) + waiting[user.index() * self.dims + d]
    }

    /// Returns the attained service of a user in resource `d`: its allocation integrated over time, in base units times microseconds;
    /// exact. Not in the books of a partition.
    ///
    /// Panics: unless a policy requested it ([`Needs::integrals`](crate::policy::Needs::integrals)).
    pub fn service(&self, user: UserId, d: usize) -> u128 {
        let Integrals { now, sums, since } = self.integrals.as_ref().expect("a policy requires the integrals");
        let span = now.since(since[user.index()]);
        sums[user.index() * self.dims + d] + u128::from(self.allocated(user)[d]) * u128::from(span.0)
    }

    /// Updates the integrals of a user whose allocation is about to change.
    fn integrate(&mut self, user: UserId) {
        let Some(Integrals { now, sums, since }) = &mut self.integrals else { return };
        let span = now.since(std::mem::replace(&mut since[user.index()], *now));
        let at = user.index() * self.stride + HELD;
        let held = &self.accounts[at..at + self.dims];
        for (sum, held) in sums[user.index() * self.dims..].iter_mut().zip(held) {
            *sum += u128::from(*held) * u128::from(span.0);
        }
    }

    /// Returns the total demand of a user's waiting tasks; empty if it is not kept.
    fn waits(&mut self, user: UserId) -> &mut [u128] {
        let at = user.index() * self.dims;
        self.waiting_demand.as_mut().map_or(&mut [], |sums| &mut sums[at..at + self.dims])
    }

    /// Returns the number of a user's running tasks.
    pub fn running(&self, user: UserId) -> u64 {
        self.account(user)[RUNNING]
    }

    /// Returns the number of a user's waiting tasks.
    pub fn waiting(&self, user: UserId) -> u64 {
        self.account(user)[WAITING]
    }

    /// Returns the weights of all classes; [`Books::weight_class`] returns the class of a user.
    pub fn weights(&self) -> &Weights {
        &self.weights
    }

    /// Returns the class of [`Books::weights`] that a user belongs to.
    pub fn weight_class(&self, user: UserId) -> usize {
        self.account(user)[CLASS] as usize
    }

    /// Returns the footprint of all running tasks.
    pub fn total_held(&self) -> &Resources {
        &self.total_held
    }

    /// Returns the true demand of all running tasks.
    pub fn total_used(&self) -> &Resources {
        if self.same { &self.total_held } else { &self.total_used }
    }

    /// Returns the number of running tasks.
    pub fn total_running(&self) -> u64 {
        self.total_running
    }

    /// Returns the number of waiting tasks.
    pub fn total_waiting(&self) -> u64 {
        self.total_waiting
    }

    /// Returns the number of users with waiting tasks.
    pub fn backlogged(&self) -> u32 {
        self.backlogged
    }

    /// Returns the number of users with running or waiting tasks.
    pub fn active(&self) -> u32 {
        self.active
    }

    /// Adds `tasks` of this demand to a user's waiting tasks.
    pub fn queue(&mut self, user: UserId, tasks: u32, demand: &[u64]) {
        let at = user.index() * self.stride;
        let account = &mut self.accounts[at..at + self.stride];
        self.active += u32::from(account[WAITING] == 0 && account[RUNNING] == 0);
        self.backlogged += u32::from(account[WAITING] == 0);
        account[WAITING] += u64::from(tasks);
        self.total_waiting += u64::from(tasks);
        for (sum, demand) in self.waits(user).iter_mut().zip(demand) {
            *sum += u128::from(*demand) * u128::from(tasks);
        }
    }

    /// Removes `tasks` of this demand from a user's waiting tasks.
    pub fn withdraw(&mut self, user: UserId, tasks: u32, demand: &[u64]) {
        let at = user.index() * self.stride;
        let account = &mut self.accounts[at..at + self.stride];
        account[WAITING] -= u64::from(tasks);
        self.active -= u32::from(account[WAITING] == 0 && account[RUNNING] == 0);
        self.backlogged -= u32::from(account[WAITING] == 0);
        self.total_waiting -= u64::from(tasks);
        for (sum, demand) in self.waits(user).iter_mut().zip(demand) {
            *sum -= u128::from(*demand) * u128::from(tasks);
        }
    }

    /// Sets the demand of the task that a user would launch next.
    pub fn set_head(&mut self, user: UserId, demand: &[u64]) {
        let at = user.index() * self.stride + HELD + self.dims;
        self.accounts[at..at + self.dims].copy_from_slice(demand);
    }

    /// Books the launch of one waiting task.
    pub fn launch(&mut self, user: UserId, demand: &[u64], footprint: &[u64]) {
        self.integrate(user);
        for (sum, demand) in self.waits(user).iter_mut().zip(demand) {
            *sum -= u128::from(*demand);
        }
        let at = user.index() * self.stride;
        let account = &mut self.accounts[at..at + self.stride];
        account[WAITING] -= 1;
        self.backlogged -= u32::from(account[WAITING] == 0);
        account[RUNNING] += 1;
        self.total_waiting -= 1;
        self.total_running += 1;
        for (d, footprint) in footprint.iter().enumerate() {
            account[HELD + d] += footprint;
            self.total_held.0[d] += footprint;
        }
        if !self.same {
            for (d, demand) in demand.iter().enumerate() {
                account[HELD + 2 * self.dims + d] += demand;
                self.total_used.0[d] += demand;
            }
        }
    }

    /// Books the end of `count` running tasks.
    pub fn finish(&mut self, user: UserId, demand: &[u64], footprint: &[u64], count: u32) {
        self.integrate(user);
        let at = user.index() * self.stride;
        let account = &mut self.accounts[at..at + self.stride];
        let count = u64::from(count);
        account[RUNNING] -= count;
        self.total_running -= count;
        self.active -= u32::from(account[WAITING] == 0 && account[RUNNING] == 0);
        for (d, footprint) in footprint.iter().enumerate() {
            account[HELD + d] -= footprint * count;
            self.total_held.0[d] -= footprint * count;
        }
        if !self.same {
            for (d, demand) in demand.iter().enumerate() {
                account[HELD + 2 * self.dims + d] -= demand * count;
                self.total_used.0[d] -= demand * count;
            }
        }
    }

    /// Compares the demand of waiting tasks, `dims` numbers per user, with the sums in the books, if they are kept. Panics: if the books
    /// are wrong (a programmer error); for tests and audited runs.
    pub fn audit_waiting_demand(&self, sums: &[u128], now: Time) {
        let kept = self.waiting_demand.as_deref().unwrap_or(sums);
        assert_eq!(kept, sums, "the demand of waiting tasks adds up at {now:?}");
    }

    /// Recomputes all sums and compares them: the allocations of all users must add up to the total, and must not exceed the offered
    /// amounts. Panics: if the books are wrong (a programmer error); for tests and audited runs.
    pub fn audit(&self, now: Time) {
        let (mut held, mut running, mut waiting) = (Resources::ZERO, 0, 0);
        for user in (0..self.users() as u32).map(UserId) {
            held += self.allocated(user);
            running += self.running(user);
            waiting += self.waiting(user);
        }
        assert_eq!(held, self.total_held, "what users hold adds up to the total at {now:?}");
        assert!(self.total_held.fits(&self.offered), "no more is held than offered at {now:?}");
        assert_eq!(running, self.total_running, "running tasks add up at {now:?}");
        assert_eq!(waiting, self.total_waiting, "waiting tasks add up at {now:?}");
        if !self.apart.is_empty() {
            self.audit_apart(now);
        }
    }

    /// Checks that the partitions add up to the whole. Panics: as [`Books::audit`].
    fn audit_apart(&self, now: Time) {
        for user in (0..self.users() as u32).map(UserId) {
            let standing = |of: &Books| {
                let waits = |d| of.waiting_demand.as_ref().map_or(0, |_| of.wanted(user, d));
                let amounts = (0..self.dims).map(|d| (of.allocated(user)[d], of.used(user)[d], waits(d)));
                (of.running(user), of.waiting(user), amounts.collect::<Vec<_>>())
            };
            let mut sum = (0, 0, vec![(0, 0, 0); self.dims]);
            for (running, waiting, amounts) in self.apart.iter().map(standing) {
                (sum.0, sum.1) = (sum.0 + running, sum.1 + waiting);
                for (sum, part) in sum.2.iter_mut().zip(amounts) {
                    *sum = (sum.0 + part.0, sum.1 + part.1, sum.2 + part.2);
                }
            }
            assert_eq!(sum, standing(self), "the partitions of {user} add up at {now:?}");
        }
    }
}

impl Checkpoint for Books {
    fn visit(&mut self, visitor: &mut Visitor) -> plimsoll_base::error::Result<()> {
        let Books {
            dims: _,
            capacity,
            offered,
            same: _,
            accounts,
            stride: _,
            waiting_demand,
            integrals,
            machines: _,
            weights: _,
            total_held,
            total_used,
            total_running,
            total_waiting,
            backlogged,
            active,
            apart,
        } = self;
        visit_values!(visitor; capacity, offered, accounts, waiting_demand, integrals, total_held, total_used);
        visit_values!(visitor; total_running, total_waiting, backlogged, active);
        visitor.all(apart.iter_mut())
    }
}
