//! The guard of `kueue@guarded`: each displacement must increase a bounded order that no other step decreases, which guarantees
//! termination.
//!
//! Some workloads are *claims*. They are selected for each queue, and for the highest cohort above the queue that has siblings: the
//! largest workloads first, then by priority and age, while they fit together into the quota of the queue or cohort. A claim is never
//! displaced, and may displace any other workload. Other displacements must increase, in this order: the number of running claims; the
//! shares of siblings from the root down, the lowest first (leximin); the order of running workloads by priority and age. A start in free
//! room increases or keeps each of the three, and there are finitely many states. So no state recurs on a pool as long as no workload
//! arrives, ends or has a grace period, and all waiting workloads are visible. Only the first waiting workload of a user is visible, so a
//! user must have at most one.

use std::cell::RefCell;
use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

use super::super::cycle::{QueueAt, ROOT, Runs, Waiting};
use super::preempt::JustifiedVictim;
use super::quotas::{Arithmetic, BorrowingShare, Quotas, Session, Snapshot, Tree};
use plimsoll_base::units::{MAX_DIMS, Resources, UserId};

/// The claims of a queue or cohort.
#[derive(Clone, Debug, Default)]
pub struct Claims {
    /// The number of claimed units, by the engine's key of running tasks.
    running: HashMap<u64, u32>,
    /// The users with a claimed waiting workload.
    waiting: HashSet<UserId>,
}

/// The claims of all queues, computed on demand.
pub struct Guard<'a> {
    quotas: &'a Quotas,
    /// Whether any queue has a nominal quota of each resource.
    promised: Resources<bool>,
    of: RefCell<HashMap<QueueAt, Claims>>,
}

impl<'a> Guard<'a> {
    pub fn new(quotas: &'a Quotas, tree: &Tree) -> Guard<'a> {
        let promised = Resources::from_fn(|d| (0..tree.nodes.len()).any(|at| tree[at].nominal[d] > 0));
        Guard { quotas, promised, of: RefCell::default() }
    }

    /// Returns the larger result of `read` for two sets of claims: those of the queue, and those of the highest cohort above it with
    /// siblings.
    fn claims<T: Ord>(&self, session: &Session, queue: QueueAt, read: impl Fn(&Claims) -> T) -> T {
        let mut of = self.of.borrow_mut();
        let tree = session.tree;
        let contends = |at: &QueueAt| *at != ROOT && tree.nodes[tree.nodes[*at].parent].children.len() > 1;
        let top = tree.path(queue).filter(contends).last().unwrap_or(queue);
        let own = read(of.entry(queue).or_insert_with(|| self.work_out(session, queue)));
        own.max(read(of.entry(top).or_insert_with(|| self.work_out(session, top))))
    }

    fn work_out(&self, session: &Session, at: QueueAt) -> Claims {
        let tree = session.tree;
        let nominal = self.quotas.subtree(at);
        let leaves = || tree.leaves().filter(|leaf| tree.is_within(*leaf, at));
        let mut claims = Claims::default();
        if nominal.is_zero() {
            return claims;
        }
        let fits = |used: &Resources, need: &Resources| {
            (0..MAX_DIMS).all(|d| !self.promised[d] || need[d] == 0 || used[d] + need[d] <= nominal[d])
        };
        let size = |need: &Resources| {
            // The part of the nominal quota that the workload uses, in millionths.
            let part = |d: usize| u128::from(need[d]) * 1_000_000 / u128::from(nominal[d].max(1));
            (0..MAX_DIMS).filter(|d| self.promised[*d]).map(part).max().unwrap_or(0)
        };
        let running = leaves().flat_map(|leaf| session.running(leaf)).flat_map(|runs| {
            let unit = runs.unit();
            runs.units().map(move |one| (one.priority, unit, one.since, Ok(one.key)))
        });
        let waiting = leaves().flat_map(|leaf| session.waiting(leaf));
        let waiting = waiting.filter(|next| self.quotas.could(next.queue, &next.need()));
        let waiting = waiting.map(|next| (next.priority, next.need(), next.since, Err(next.user)));
        let mut all: Vec<_> = running.chain(waiting).collect();
        all.sort_by_key(|(priority, need, since, _)| (std::cmp::Reverse(size(need)), *priority, *since));
        let mut used = Resources::ZERO;
        for (_, need, _, which) in all {
            if !fits(&used, &need) {
                break;
            }
            used += need;
            match which {
                Ok(key) => *claims.running.entry(key).or_default() += 1,
                Err(user) => drop(claims.waiting.insert(user)),
            }
        }
        claims
    }

    /// Returns the number of units of running tasks that may not be displaced.
    pub fn protected_tasks(&self, session: &Session, runs: &Runs) -> u32 {
        self.claims(session, runs.queue, |claims| claims.running.get(&runs.key).copied().unwrap_or(0))
    }

    /// Returns whether a waiting workload is a claim.
    pub fn is_claim(&self, session: &Session, next: &Waiting) -> bool {
        self.claims(session, next.queue, |claims| claims.waiting.contains(&next.user))
    }

    /// Returns whether displacing these targets for a workload increases the order. No target may be a claim. The snapshot is unchanged
    /// afterwards.
    pub fn is_worth_it(
        &self,
        session: &Session,
        snapshot: &mut Snapshot,
        next: &Waiting,
        targets: &[JustifiedVictim],
    ) -> bool {
        if self.is_claim(session, next) {
            return true;
        }
        let before = snapshot.clone();
        targets.iter().for_each(|target| snapshot.remove(target.runs.queue, &target.runs.unit()));
        snapshot.add(next.queue, &next.need());
        let change = compare(&before, snapshot, ROOT);
        *snapshot = before;
        let first = |target: &JustifiedVictim| (next.priority, next.since) < (target.runs.priority, target.runs.since);
        change.is_gt() || (change.is_eq() && targets.iter().all(first))
    }
}

/// Compares the shares after a change with those before it: siblings from the lowest share up, then the children of each.
fn compare(before: &Snapshot, after: &Snapshot, at: QueueAt) -> Ordering {
    let children = &after.tree.nodes[at].children;
    let shares = |snapshot: &Snapshot| {
        let mut shares: Vec<BorrowingShare> = children.iter().map(|child| snapshot.share(*child)).collect();
        shares.sort_by(|one, other| one.cmp(other, Arithmetic::Exact));
        shares
    };
    let pairs = shares(after).into_iter().zip(shares(before));
    let here = pairs.map(|(after, before)| after.cmp(&before, Arithmetic::Exact)).find(|order| order.is_ne());
    let below = || children.iter().map(|child| compare(before, after, *child)).find(|order| order.is_ne());
    here.or_else(below).unwrap_or(Ordering::Equal)
}
