//! The walk from the root to the first member of each level: queues, and a user at the end.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use super::tree::{QueueAt, ROOT, Tree};
use plimsoll_base::units::UserId;

/// A queue, or a user of a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Member {
    /// A queue.
    Queue(QueueAt),
    /// A user.
    User(UserId),
}

/// A member with its sort key; members with equal keys compare as equal.
#[derive(Clone, Debug)]
struct Placed<K> {
    place: K,
    member: Member,
}

impl<K: Ord> Ord for Placed<K> {
    fn cmp(&self, other: &Placed<K>) -> Ordering {
        self.place.cmp(&other.place)
    }
}

impl<K: Ord> PartialOrd for Placed<K> {
    fn partial_cmp(&self, other: &Placed<K>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<K: Ord> PartialEq for Placed<K> {
    fn eq(&self, other: &Placed<K>) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<K: Ord> Eq for Placed<K> {}

/// The members of a cycle in a heap per node. When a member is served, only the sort keys on the path to it may change.
///
/// Cost: O(depth * log members) per step.
pub struct Walk<'a, K> {
    tree: &'a Tree,
    heaps: Vec<BinaryHeap<Reverse<Placed<K>>>>,
}

impl<'a, K: Ord> Walk<'a, K> {
    /// Creates a walk over these users, each with its leaf; `place` returns the sort key of a member.
    pub fn new(tree: &'a Tree, users: &[(QueueAt, UserId)], mut place: impl FnMut(Member) -> K) -> Walk<'a, K> {
        let mut walk = Walk { tree, heaps: tree.nodes.iter().map(|_| BinaryHeap::new()).collect() };
        for (leaf, user) in users {
            let member = Member::User(*user);
            walk.heaps[*leaf].push(Reverse(Placed { place: place(member), member }));
        }
        for at in tree.upwards() {
            if at != ROOT && !walk.heaps[at].is_empty() {
                let member = Member::Queue(at);
                walk.heaps[tree.nodes[at].parent].push(Reverse(Placed { place: place(member), member }));
            }
        }
        walk
    }

    /// Returns the first user and its leaf.
    pub fn first(&self) -> Option<(QueueAt, UserId)> {
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
    pub fn served(&mut self, stays: bool, mut place: impl FnMut(Member) -> K) {
        let Some((leaf, user)) = self.first() else { return };
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
