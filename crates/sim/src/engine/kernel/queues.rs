//! The waiting task sets of every user, in the order of their launches.
//!
//! A user has a queue for each [`ScopeId`] that its task sets require. Most users have one queue. With separate queues, a set that waits
//! for a certain kind of machine does not block sets that may start on other machines.
//!
//! A queue is a list linked through the sets themselves, one list ("thread") per priority, so that 100,000 users with no or one waiting
//! set cost a few bytes each and no allocation. If the run has another job order, `job_order.rs` sorts the sets, and a queue stores only
//! its head.

use std::collections::BTreeMap;

use prefetch_index::prefetch_index;

use super::ids::{QueueId, ScopeId, SetSlot};
use super::sets::{ActiveSet, Sets};
use plimsoll_base::units::{Time, UserId};

/// Returns the sort key within a priority: the release instant, then arrivals before rows that a stage released, then the row, then the
/// number of the task. Stopped tasks keep their position.
fn order(set: &ActiveSet) -> (Time, u64, u32) {
    (set.release, place(set), set.number)
}

/// Returns the position among all sets released at one instant.
pub fn place(set: &ActiveSet) -> u64 {
    u64::from(set.is_released()) << 63 | set.row
}

/// Returns the sort key of a user's sets: priority, release and place as one number, and the number of the task. Sets of different queues
/// may share the first number, if they contain stopped tasks of one row, or tasks of one row that have fallen back.
pub fn turn(set: &ActiveSet) -> (u128, u32) {
    (u128::from(set.priority) << 124 | u128::from(set.release.0) << 64 | u128::from(place(set)), set.number)
}

/// The marker for no set.
const NONE: SetSlot = SetSlot::NONE;

/// The list of the sets of one priority, by its ends; both are [`NONE`] if it is empty.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
struct Thread {
    priority: u8,
    first: SetSlot,
    last: SetSlot,
}

const EMPTY: Thread = Thread { priority: 0, first: NONE, last: NONE };

/// A queue: the thread of its most urgent sets, and a sorted list of threads of other priorities, if there are any.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
struct QueueThreads {
    user: UserId,
    scope: ScopeId,
    front: Thread,
    #[expect(clippy::box_collection, reason = "a pointer a queue, not three words: nearly all have one priority")]
    others: Option<Box<Vec<Thread>>>,
}

/// The queues of all users.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Queues {
    all: Vec<QueueThreads>,
    /// The queue of each user for the whole cluster.
    whole: Vec<QueueId>,
    /// Queues for narrower scopes.
    scoped: BTreeMap<(UserId, ScopeId), QueueId>,
}

impl Queues {
    /// Creates a queue for the next user id.
    pub fn open(&mut self) {
        let user = UserId(self.whole.len() as u32);
        let queue = self.add(user, ScopeId::WHOLE);
        self.whole.push(queue);
    }

    fn add(&mut self, user: UserId, scope: ScopeId) -> QueueId {
        self.all.push(QueueThreads { user, scope, front: EMPTY, others: None });
        QueueId(u32::try_from(self.all.len() - 1).expect("fewer than 2^32 queues"))
    }

    /// Prefetches a user's queue for the whole cluster into the cache.
    pub fn fetch(&self, user: UserId) {
        // Few users have other queues, so a queue usually has the same number as its user.
        prefetch_index(&self.all, user.index());
    }

    /// Returns the user's queue for a scope; creates it if necessary.
    pub fn id(&mut self, user: UserId, scope: ScopeId) -> QueueId {
        if scope == ScopeId::WHOLE {
            return self.whole[user.index()];
        }
        if let Some(queue) = self.scoped.get(&(user, scope)) {
            return *queue;
        }
        let queue = self.add(user, scope);
        self.scoped.insert((user, scope), queue);
        queue
    }

    /// Returns the number of queues.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Returns all queues of a user, the queue for the whole cluster first.
    pub fn queues_of(&self, user: UserId) -> impl Iterator<Item = QueueId> {
        let all = (user, ScopeId::WHOLE)..=(user, ScopeId::MAX);
        std::iter::once(self.whole[user.index()]).chain(self.scoped.range(all).map(|(_, queue)| *queue))
    }

    /// Returns whether the queue's user has other queues.
    pub fn has_siblings(&self, queue: QueueId) -> bool {
        !self.scoped.is_empty() && self.queues_of(self.user(queue)).nth(1).is_some()
    }

    /// Returns the user that the queue belongs to.
    pub fn user(&self, queue: QueueId) -> UserId {
        self.all[queue.index()].user
    }

    /// Returns the scope that the queue's sets require.
    pub fn scope(&self, queue: QueueId) -> ScopeId {
        self.all[queue.index()].scope
    }

    /// Returns the set that the queue launches from next.
    pub fn head(&self, queue: QueueId) -> Option<SetSlot> {
        let first = self.all[queue.index()].front.first;
        (first != NONE).then_some(first)
    }

    /// Returns the sets of a queue in order, in a run with the default job order.
    pub fn in_order(&self, sets: &Sets, queue: QueueId) -> Vec<SetSlot> {
        let QueueThreads { front, others, .. } = &self.all[queue.index()];
        let threads = std::iter::once(front).chain(others.iter().flat_map(|others| others.iter()));
        let some = |slot: SetSlot| (slot != NONE).then_some(slot);
        threads.flat_map(|thread| std::iter::successors(some(thread.first), |slot| some(sets[*slot].next))).collect()
    }

    /// Sets the head of a queue, in a run with another job order.
    pub fn set_head(&mut self, queue: QueueId, head: Option<SetSlot>) {
        self.all[queue.index()].front.first = head.unwrap_or(NONE);
    }

    /// Returns a user's queue for the whole cluster.
    pub fn cluster_queue(&self, user: UserId) -> QueueId {
        self.whole[user.index()]
    }

    /// Returns whether every user has one queue.
    pub fn are_whole(&self) -> bool {
        self.scoped.is_empty()
    }

    /// Puts a set in its queue.
    pub fn push(&mut self, sets: &mut Sets, slot: SetSlot) {
        let (queue, priority) = (sets[slot].queue, sets[slot].priority);
        let QueueThreads { front, others, .. } = &mut self.all[queue.index()];
        if front.first == NONE {
            *front = Thread { priority, ..EMPTY };
        }
        if priority == front.priority {
            return insert(front, sets, slot);
        }
        let others = others.get_or_insert_default();
        if priority < front.priority {
            // The front is always the most urgent thread that is not empty.
            others.insert(0, *front);
            *front = Thread { priority, ..EMPTY };
            return insert(front, sets, slot);
        }
        let at = others.partition_point(|thread| thread.priority < priority);
        if others.get(at).is_none_or(|thread| thread.priority != priority) {
            others.insert(at, Thread { priority, ..EMPTY });
        }
        insert(&mut others[at], sets, slot);
    }

    /// Removes a set from its queue, at any position.
    pub fn remove(&mut self, sets: &mut Sets, slot: SetSlot) {
        let ActiveSet { queue, priority, previous, next, .. } = sets[slot];
        let QueueThreads { front, others, .. } = &mut self.all[queue.index()];
        let other = others.iter_mut().flat_map(|others| others.iter_mut()).find(|thread| thread.priority == priority);
        let thread =
            if front.priority == priority { &mut *front } else { other.expect("a set that waits has a thread") };
        if previous == NONE {
            thread.first = next
        } else {
            sets[previous].next = next
        }
        if next == NONE {
            thread.last = previous
        } else {
            sets[next].previous = previous
        }
        if let Some(others) = others {
            others.retain(|thread| thread.first != NONE);
        }
        if front.first == NONE {
            *front = others.as_mut().filter(|others| !others.is_empty()).map_or(EMPTY, |others| others.remove(0));
        }
    }
}

/// Inserts a set into a thread, usually as the last. Rows that are released in several passes of one instant arrive out of order, and
/// stopped tasks are usually first.
fn insert(line: &mut Thread, sets: &mut Sets, slot: SetSlot) {
    let first = line.first != NONE && order(&sets[slot]) < order(&sets[line.first]);
    let mut before = if first { NONE } else { line.last };
    while before != NONE && order(&sets[before]) > order(&sets[slot]) {
        before = sets[before].previous;
    }
    let after = if before == NONE { line.first } else { sets[before].next };
    (sets[slot].previous, sets[slot].next) = (before, after);
    if before == NONE {
        line.first = slot
    } else {
        sets[before].next = slot
    }
    if after == NONE { line.last = slot } else { sets[after].previous = slot }
}
