//! The walk from the root to the first member of each level: queues, and a user at the end.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::ops::ControlFlow;

use super::ordered;
use super::session::Session;
use super::tree::{QueueAt, ROOT, Tree, Waiting};
use plimsoll_base::units::UserId;
use plimsoll_policies::Reason;

/// A queue, or a user of a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Member {
    /// A queue.
    Queue(QueueAt),
    /// A user.
    User(UserId),
}

/// The sort key of a member: that of a queue or that of a user's next workload. Queues and users are never siblings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MemberRank<Q, A> {
    /// The key of a queue.
    Queue(Q),
    /// The key of a workload.
    Workload(A),
    /// A user without a waiting workload sorts last.
    None,
}

/// A member with its sort key; members with equal keys compare as equal.
#[derive(Clone, Debug)]
struct Placed<K> {
    place: K,
    member: Member,
}

impl<K: Ord> Placed<K> {
    fn compare(&self, other: &Placed<K>) -> Ordering {
        self.place.cmp(&other.place)
    }
}

ordered!(@ [<K: Ord>] Placed<K>);

/// The members of a cycle in a heap per node. When a member is served, only the sort keys on the path to it may change.
///
/// Cost: O(depth * log members) per step.
pub struct Walk<'a, S, K> {
    tree: &'a Tree<S>,
    heaps: Vec<BinaryHeap<Reverse<Placed<K>>>>,
}

impl<'a, S, K: Ord> Walk<'a, S, K> {
    /// Serves the waiting users one by one; `place` returns the sort key of a member. One task of the first user's next workload starts,
    /// or all of a gang, unless `refuse` returns the reason why the user waits. Returns whether no refusal has ended the walk.
    pub fn serve(
        session: &mut Session<'a, S>,
        place: impl Fn(&Session<S>, Member) -> K,
        mut refuse: impl FnMut(&mut Session<'a, S>, &Waiting) -> ControlFlow<(), Option<Reason>>,
    ) -> bool {
        let mut walk = Walk::new(session, |member| place(session, member));
        while let Some(user) = walk.first() {
            let mut starts = false;
            if let Some(next) = session.next(user) {
                match refuse(session, &next) {
                    ControlFlow::Break(()) => return false,
                    ControlFlow::Continue(Some(reason)) => session.wait(user, reason),
                    ControlFlow::Continue(None) => {
                        session.launch(&next, 1);
                        starts = true;
                    }
                }
            }
            walk.served(starts && session.next(user).is_some(), |member| place(session, member));
        }
        true
    }

    /// Creates a walk over the waiting users.
    pub fn new(session: &Session<'a, S>, mut place: impl FnMut(Member) -> K) -> Walk<'a, S, K> {
        let tree = session.tree;
        let mut walk = Walk { tree, heaps: tree.nodes.iter().map(|_| BinaryHeap::new()).collect() };
        for next in session.all_waiting() {
            let member = Member::User(next.user);
            walk.heaps[next.queue].push(Reverse(Placed { place: place(member), member }));
        }
        for at in tree.upwards() {
            if at != ROOT && !walk.heaps[at].is_empty() {
                let member = Member::Queue(at);
                walk.heaps[tree.nodes[at].parent].push(Reverse(Placed { place: place(member), member }));
            }
        }
        walk
    }

    /// Returns the first user.
    pub fn first(&self) -> Option<UserId> {
        self.first_of_leaf().map(|(_, user)| user)
    }

    fn first_of_leaf(&self) -> Option<(QueueAt, UserId)> {
        let mut at = ROOT;
        loop {
            match self.heaps[at].peek()?.0.member {
                Member::Queue(child) => at = child,
                Member::User(user) => return Some((at, user)),
            }
        }
    }

    /// Records that the first user was served. Removes the user unless it `stays`, and updates the sort keys on its path; queues that
    /// become empty are removed.
    fn served(&mut self, stays: bool, mut place: impl FnMut(Member) -> K) {
        let Some((leaf, user)) = self.first_of_leaf() else { return };
        let (mut at, mut member, mut stays) = (leaf, Member::User(user), stays);
        loop {
            self.heaps[at].pop();
            if stays {
                self.heaps[at].push(Reverse(Placed { place: place(member), member }));
            }
            if at == ROOT {
                return;
            }
            stays = !self.heaps[at].is_empty();
            (member, at) = (Member::Queue(at), self.tree.nodes[at].parent);
        }
    }
}
