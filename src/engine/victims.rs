//! Running tasks, user by user, in the order in which they are taken back.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use super::Running;
use super::agenda::Ticket;
use super::jobs::{ActiveSet, SetSlot};
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
    fn new(set: &ActiveSet, tasks: &Running) -> Victim {
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
    /// What runs of each gang: it is stopped as one.
    gangs: HashMap<SetSlot, Vec<(Victim, Ticket)>>,
}

impl Victims {
    pub fn add(&mut self, set: &ActiveSet, tasks: &Running, ticket: Ticket) {
        let (user, victim) = (set.user, Victim::new(set, tasks));
        if set.gang {
            self.gangs.entry(tasks.set).or_default().push((victim, ticket));
        }
        if self.users.len() <= user.index() {
            self.users.resize_with(user.index() + 1, BTreeMap::new);
        }
        self.users[user.index()].insert(victim, ticket);
    }

    pub fn remove(&mut self, set: &ActiveSet, tasks: &Running) {
        let victim = Victim::new(set, tasks);
        self.users[set.user.index()].remove(&victim);
        if let Some(gang) = self.gangs.get_mut(&tasks.set).filter(|_| set.gang) {
            gang.retain(|(other, _)| *other != victim);
            if gang.is_empty() {
                self.gangs.remove(&tasks.set);
            }
        }
    }

    /// All that runs of a gang, the first tasks first; nothing if it is none.
    pub fn gang(&self, set: SetSlot) -> Vec<Ticket> {
        let mut gang = self.gangs.get(&set).cloned().unwrap_or_default();
        gang.sort_unstable_by_key(|(victim, _)| victim.first.0);
        gang.into_iter().map(|(_, ticket)| ticket).collect()
    }

    /// The tasks of these users, who is stopped first first.
    pub fn of(&self, users: &[UserId]) -> Vec<Ticket> {
        let known = users.iter().filter_map(|user| self.users.get(user.index()));
        let mut all: Vec<(&Victim, &Ticket)> = known.flatten().collect();
        all.sort_unstable_by_key(|(victim, _)| **victim);
        all.into_iter().map(|(_, ticket)| *ticket).collect()
    }
}
