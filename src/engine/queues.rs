//! Every user's waiting task sets, in the order in which it launches them.
//!
//! A line is threaded through the sets themselves, so that a hundred thousand users with nothing or one set waiting
//! cost a few bytes each and no allocation.

use super::jobs::{ActiveSet, SetSlot, Sets};
use crate::policy::Queue;
use crate::units::{Time, UserId};

/// Order within a priority: release instant, arrivals before rows that a stage released, row, number of the task (tasks
/// that were stopped keep their place).
fn order(set: &ActiveSet) -> (Time, u64, u32) {
    (set.release, place(set), set.number)
}

/// Place among all that were released at one instant.
fn place(set: &ActiveSet) -> u64 {
    u64::from(set.released) << 63 | set.row
}

/// No set.
pub const NONE: SetSlot = SetSlot::MAX;

/// One line: its ends; [`NONE`] twice if it is empty.
#[derive(Clone, Copy, Debug)]
struct Line {
    priority: u8,
    first: SetSlot,
    last: SetSlot,
}

const EMPTY: Line = Line { priority: 0, first: NONE, last: NONE };

/// All users' lines: the one in use, and further ones of other priorities, sorted, for those who have any.
#[derive(Clone, Debug, Default)]
pub struct Queues {
    #[expect(clippy::box_collection, reason = "a pointer a user, not three words: nearly all have one priority")]
    users: Vec<(Line, Option<Box<Vec<Line>>>)>,
}

impl Queues {
    /// Makes a line for the next user id.
    pub fn open(&mut self) {
        self.users.push((EMPTY, None));
    }

    /// The set whose task the user launches next.
    pub fn head(&self, user: UserId) -> Option<SetSlot> {
        let first = self.users[user.index()].0.first;
        (first != NONE).then_some(first)
    }

    /// What a policy sees of a user's line with this head.
    pub fn view(user: UserId, head: &ActiveSet) -> Queue {
        Queue { user, release: head.release, place: place(head), priority: head.priority }
    }

    /// Puts a set in its user's line.
    pub fn push(&mut self, sets: &mut Sets, slot: SetSlot) {
        let (user, priority) = (sets[slot].user, sets[slot].priority);
        let (front, others) = &mut self.users[user.index()];
        if front.first == NONE {
            *front = Line { priority, ..EMPTY };
        }
        if priority == front.priority {
            return insert(front, sets, slot);
        }
        let others = others.get_or_insert_default();
        if priority < front.priority {
            // The line in use is the most urgent one that is not empty.
            others.insert(0, *front);
            *front = Line { priority, ..EMPTY };
            return insert(front, sets, slot);
        }
        let at = others.partition_point(|line| line.priority < priority);
        if others.get(at).is_none_or(|line| line.priority != priority) {
            others.insert(at, Line { priority, ..EMPTY });
        }
        insert(&mut others[at], sets, slot);
    }

    /// Takes the head, all of whose tasks have been launched, out of its line.
    pub fn pop(&mut self, sets: &mut Sets, user: UserId) {
        let (front, others) = &mut self.users[user.index()];
        let next = sets[front.first].next;
        front.first = next;
        if next != NONE {
            sets[next].previous = NONE;
            return;
        }
        *front = EMPTY;
        if let Some(others) = others
            && !others.is_empty()
        {
            *front = others.remove(0);
        }
    }
}

/// Puts a set in line: nearly always last; rows released in several passes of one instant come out of order, and tasks
/// that were stopped nearly always come first.
fn insert(line: &mut Line, sets: &mut Sets, slot: SetSlot) {
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
