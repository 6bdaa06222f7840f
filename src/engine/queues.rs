//! Every user's waiting task sets, in the order in which it launches them.

use std::collections::VecDeque;

use super::jobs::{ActiveSet, SetSlot, Sets};
use crate::policy::Queue;
use crate::units::{Time, UserId};

/// Order within a priority: release instant, arrivals before rows that a stage released, row.
fn order(set: &ActiveSet) -> (Time, u64) {
    (set.release, place(set))
}

/// Place among all that were released at one instant.
fn place(set: &ActiveSet) -> u64 {
    u64::from(set.released) << 63 | set.row
}

/// One user's lines, one a priority in use.
#[derive(Clone, Debug, Default)]
struct Lines {
    levels: Vec<(u8, VecDeque<SetSlot>)>,
}

/// All users' lines.
#[derive(Clone, Debug, Default)]
pub struct Queues {
    users: Vec<Lines>,
}

impl Queues {
    /// Makes a line for the next user id.
    pub fn open(&mut self) {
        self.users.push(Lines::default());
    }

    /// The set whose task the user launches next.
    pub fn head(&self, user: UserId) -> Option<SetSlot> {
        self.users[user.index()].levels.iter().find_map(|(_, line)| line.front().copied())
    }

    /// What a policy sees of a user's line with this head.
    pub fn view(user: UserId, head: &ActiveSet) -> Queue {
        Queue { user, release: head.release, place: place(head), priority: head.priority }
    }

    /// Puts a set in its user's line.
    pub fn push(&mut self, sets: &Sets, slot: SetSlot) {
        let set = &sets[slot];
        let levels = &mut self.users[set.user.index()].levels;
        let at = levels.partition_point(|(priority, _)| *priority < set.priority);
        if levels.get(at).is_none_or(|(priority, _)| *priority != set.priority) {
            levels.insert(at, (set.priority, VecDeque::new()));
        }
        let line = &mut levels[at].1;
        // Nearly always the last: only rows released in several passes of one instant come out of order.
        let behind = line.iter().rev().take_while(|&&other| order(&sets[other]) > order(set)).count();
        line.insert(line.len() - behind, slot);
    }

    /// Takes the head, all of whose tasks have been launched, out of its line.
    pub fn pop(&mut self, user: UserId) {
        let levels = &mut self.users[user.index()].levels;
        if let Some((_, line)) = levels.iter_mut().find(|(_, line)| !line.is_empty()) {
            line.pop_front();
        }
    }
}
