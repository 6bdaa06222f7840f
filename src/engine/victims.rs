//! Running tasks, by user and by machine, in the order in which they are taken back.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use super::Running;
use super::agenda::Ticket;
use super::jobs::{ActiveSet, SetSlot};
use crate::units::{MachineId, Time, UserId};

/// Who is stopped first: the least urgent, then who started last, then the last in the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Victim {
    priority: Reverse<u8>,
    start: Reverse<Time>,
    row: Reverse<u64>,
    first: Reverse<u32>,
}

impl Victim {
    /// Its priority: 0 (most urgent) to 9.
    pub fn priority(&self) -> u8 {
        self.priority.0
    }

    fn new(set: &ActiveSet, tasks: &Running) -> Victim {
        Victim {
            priority: Reverse(set.priority),
            start: Reverse(tasks.start),
            row: Reverse(set.row),
            first: Reverse(tasks.first),
        }
    }
}

/// Running tasks by user and by machine.
#[derive(Clone, Debug, Default)]
pub struct Victims {
    users: Vec<BTreeMap<Victim, Ticket>>,
    machines: Vec<BTreeMap<Victim, Ticket>>,
    /// Everybody, if urgent tasks may ask for room.
    all: Option<BTreeMap<Victim, Ticket>>,
    /// What runs of each gang: it is stopped as one.
    gangs: HashMap<SetSlot, Vec<(Victim, Ticket)>>,
}

impl Victims {
    /// Keeps them all in one order too.
    pub fn of_all() -> Victims {
        Victims { all: Some(BTreeMap::new()), ..Victims::default() }
    }

    pub fn add(&mut self, set: &ActiveSet, tasks: &Running, ticket: Ticket) {
        let (user, victim) = (set.user, Victim::new(set, tasks));
        if set.gang {
            self.gangs.entry(tasks.set).or_default().push((victim, ticket));
        }
        for (lists, at) in [(&mut self.users, user.index()), (&mut self.machines, tasks.machine.index())] {
            if lists.len() <= at {
                lists.resize_with(at + 1, BTreeMap::new);
            }
            lists[at].insert(victim, ticket);
        }
        if let Some(all) = &mut self.all {
            all.insert(victim, ticket);
        }
    }

    pub fn remove(&mut self, set: &ActiveSet, tasks: &Running) {
        let victim = Victim::new(set, tasks);
        self.users[set.user.index()].remove(&victim);
        self.machines[tasks.machine.index()].remove(&victim);
        if let Some(all) = &mut self.all {
            all.remove(&victim);
        }
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

    /// Everybody, who is stopped first first; nobody unless they are kept.
    pub fn all(&self) -> impl Iterator<Item = (&Victim, &Ticket)> {
        self.all.iter().flatten()
    }

    /// The lowest priority at which anything runs; nothing unless all are kept.
    pub fn least_urgent(&self) -> Option<u8> {
        self.all.as_ref()?.first_key_value().map(|(victim, _)| victim.priority())
    }

    /// An entry on a machine, if it still runs.
    pub fn find(&self, machine: MachineId, victim: &Victim) -> Option<Ticket> {
        self.machines.get(machine.index())?.get(victim).copied()
    }

    /// The tasks on a machine, who is stopped first first.
    pub fn on(&self, machine: MachineId) -> Vec<Ticket> {
        self.machines.get(machine.index()).into_iter().flat_map(BTreeMap::values).copied().collect()
    }

    /// The tasks of these users, who is stopped first first.
    pub fn of(&self, users: &[UserId]) -> Vec<Ticket> {
        let known = users.iter().filter_map(|user| self.users.get(user.index()));
        let mut all: Vec<(&Victim, &Ticket)> = known.flatten().collect();
        all.sort_unstable_by_key(|(victim, _)| **victim);
        all.into_iter().map(|(_, ticket)| *ticket).collect()
    }
}
