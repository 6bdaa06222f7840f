//! Running tasks, user by user, in the order in which they are taken back.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::Running;
use super::agenda::Ticket;
use super::jobs::ActiveSet;
use crate::units::{Time, UserId};

/// Who is stopped first: the least urgent, then who started last, then the last in the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Victim {
    priority: Reverse<u8>,
    start: Reverse<Time>,
    row: Reverse<u64>,
    first: Reverse<u32>,
}

impl Victim {
    pub fn new(set: &ActiveSet, tasks: &Running) -> Victim {
        Victim {
            priority: Reverse(set.priority),
            start: Reverse(tasks.start),
            row: Reverse(set.row),
            first: Reverse(tasks.first),
        }
    }
}

/// Running tasks by user.
#[derive(Clone, Debug, Default)]
pub struct Victims {
    users: Vec<BTreeMap<Victim, Ticket>>,
}

impl Victims {
    pub fn add(&mut self, user: UserId, victim: Victim, ticket: Ticket) {
        if self.users.len() <= user.index() {
            self.users.resize_with(user.index() + 1, BTreeMap::new);
        }
        self.users[user.index()].insert(victim, ticket);
    }

    pub fn remove(&mut self, user: UserId, victim: &Victim) {
        self.users[user.index()].remove(victim);
    }

    /// The tasks of these users, who is stopped first first.
    pub fn of(&self, users: &[UserId]) -> Vec<(Victim, Ticket)> {
        let known = users.iter().filter_map(|user| self.users.get(user.index()));
        let mut all: Vec<(Victim, Ticket)> = known.flatten().map(|(victim, ticket)| (*victim, *ticket)).collect();
        all.sort_unstable_by_key(|(victim, _)| *victim);
        all
    }
}
