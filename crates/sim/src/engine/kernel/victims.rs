//! Running tasks in the order of stopping, and the rule for tasks that may be preempted.
//!
//! Victims of a reclaim are found by user, victims of a request for room among all tasks: both indexes contain only tasks that may be
//! preempted. The index by machine contains all tasks, since all fail with their machine.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use super::agenda::Ticket;
use super::jobs::{ActiveSet, SetSlot};
use super::running::Running;
use plimsoll_base::units::{MachineId, Time, UserId};

/// Returns whether tasks may be preempted, to reclaim quota or for the room of a more urgent task: not if they are marked stable. This is
/// the single rule for all preemptions; a machine that fails stops all of its tasks.
///
/// Source: the third article on FuxiMaster: resources of an online service are never revoked without its consent.
pub(in crate::engine) fn may_be_stopped(set: &ActiveSet) -> bool {
    !set.stable
}

/// The position of running tasks in the order of stopping: the least urgent first, then the latest start, then the last in the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Victim {
    priority: Reverse<u8>,
    start: Reverse<Time>,
    row: Reverse<u64>,
    first: Reverse<u32>,
}

impl Victim {
    /// Returns the priority: 0 (most urgent) to 9.
    pub fn priority(&self) -> u8 {
        self.priority.0
    }

    /// Returns the position of running tasks.
    pub fn new(set: &ActiveSet, tasks: &Running) -> Victim {
        Victim {
            priority: Reverse(set.priority),
            start: Reverse(tasks.start),
            row: Reverse(set.row),
            first: Reverse(tasks.first),
        }
    }
}

/// Indexes of running tasks, by user, by machine and by gang.
#[derive(Clone, Debug, Default)]
pub struct Victims {
    /// By user, the tasks that may be preempted.
    users: Vec<BTreeMap<Victim, Ticket>>,
    /// By machine, all tasks.
    machines: Vec<BTreeMap<Victim, Ticket>>,
    /// All tasks that may be preempted; absent unless waiting tasks may request room.
    all: Option<BTreeMap<Victim, Ticket>>,
    /// By gang, its running tasks: a gang is stopped as a whole.
    gangs: HashMap<SetSlot, BTreeMap<Victim, Ticket>>,
}

impl Victims {
    /// Creates indexes that include one of all tasks that may be preempted.
    pub fn of_all() -> Victims {
        Victims { all: Some(BTreeMap::new()), ..Victims::default() }
    }

    pub fn add(&mut self, set: &ActiveSet, tasks: &Running, ticket: Ticket) {
        let (user, victim) = (set.user, Victim::new(set, tasks));
        if set.gang {
            self.gangs.entry(tasks.set).or_default().insert(victim, ticket);
        }
        list(&mut self.machines, tasks.machine.index()).insert(victim, ticket);
        if !may_be_stopped(set) {
            return;
        }
        list(&mut self.users, user.index()).insert(victim, ticket);
        if let Some(all) = &mut self.all {
            all.insert(victim, ticket);
        }
    }

    pub fn remove(&mut self, set: &ActiveSet, tasks: &Running) {
        let victim = Victim::new(set, tasks);
        self.machines[tasks.machine.index()].remove(&victim);
        if may_be_stopped(set) {
            self.users[set.user.index()].remove(&victim);
            if let Some(all) = &mut self.all {
                all.remove(&victim);
            }
        }
        if let Some(gang) = self.gangs.get_mut(&tasks.set).filter(|_| set.gang) {
            gang.remove(&victim);
            if gang.is_empty() {
                self.gangs.remove(&tasks.set);
            }
        }
    }

    /// Returns all running tasks of a gang, in the order of stopping; empty for other sets.
    pub fn parts(&self, set: SetSlot) -> impl Iterator<Item = Ticket> {
        self.gangs.get(&set).into_iter().flat_map(BTreeMap::values).copied()
    }

    /// Returns all running tasks of a gang, the first tasks first; empty for other sets.
    pub fn gang(&self, set: SetSlot) -> Vec<Ticket> {
        // The tasks started at one instant, so the last in the trace is the first in the order of stopping.
        self.gangs.get(&set).into_iter().flat_map(|gang| gang.values().rev()).copied().collect()
    }

    /// Returns all tasks that may be preempted, in the order of stopping; empty without this index.
    pub fn all(&self) -> impl Iterator<Item = (&Victim, &Ticket)> {
        self.all.iter().flatten()
    }

    /// Returns the lowest priority among running tasks that may be preempted; `None` without the index of all.
    pub fn least_urgent(&self) -> Option<u8> {
        self.all.as_ref()?.first_key_value().map(|(victim, _)| victim.priority())
    }

    /// Returns the ticket of an entry on a machine, if it still runs.
    pub fn find(&self, machine: MachineId, victim: &Victim) -> Option<Ticket> {
        self.machines.get(machine.index())?.get(victim).copied()
    }

    /// Returns all tasks on a machine, in the order of stopping.
    pub fn on(&self, machine: MachineId) -> Vec<Ticket> {
        self.machines.get(machine.index()).into_iter().flat_map(BTreeMap::values).copied().collect()
    }

    /// Returns the tasks of these users that may be preempted, in the order of stopping.
    pub fn of_users(&self, users: &[UserId]) -> Vec<(&Victim, &Ticket)> {
        let known = users.iter().filter_map(|user| self.users.get(user.index()));
        let mut all: Vec<(&Victim, &Ticket)> = known.flatten().collect();
        all.sort_unstable_by_key(|(victim, _)| **victim);
        all
    }
}

/// Returns the list at an index; extends the lists if necessary.
fn list(lists: &mut Vec<BTreeMap<Victim, Ticket>>, at: usize) -> &mut BTreeMap<Victim, Ticket> {
    if lists.len() <= at {
        lists.resize_with(at + 1, BTreeMap::new);
    }
    &mut lists[at]
}
