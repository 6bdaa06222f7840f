//! Running tasks in the order of stopping, and the rule for tasks that may be stopped by choice.
//!
//! Tasks to reclaim quota from are found by user, tasks to ask for their room among all: both indexes contain only tasks that may be
//! stopped by choice. The tasks that fail with a machine are found by machine: all tasks there.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use super::agenda::Ticket;
use super::jobs::{ActiveSet, SetSlot};
use super::running::Running;
use plimsoll_base::units::{MachineId, Time, UserId};

/// Whether tasks may be stopped by choice, to reclaim quota or for the room of a more urgent task: not if they are marked stable. The
/// single rule for all stops by choice; a machine that fails stops everything on it.
///
/// Source: the third article on FuxiMaster: resources of an online service are never revoked without its consent.
pub(super) fn may_be_stopped(set: &ActiveSet) -> bool {
    !set.stable
}

/// The order of stopping: the least urgent first, then the latest start, then the last in the trace.
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

    /// Its place in the order.
    pub fn new(set: &ActiveSet, tasks: &Running) -> Victim {
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
    /// By user, the tasks that may be stopped by choice.
    users: Vec<BTreeMap<Victim, Ticket>>,
    /// By machine, all.
    machines: Vec<BTreeMap<Victim, Ticket>>,
    /// All tasks that may be stopped by choice, if urgent tasks may ask for room.
    all: Option<BTreeMap<Victim, Ticket>>,
    /// The running tasks of each gang: it is stopped as one.
    gangs: HashMap<SetSlot, BTreeMap<Victim, Ticket>>,
}

impl Victims {
    /// Keeps them all in one order too.
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

    /// All running tasks of a gang, in no order; empty if it is none.
    pub fn parts(&self, set: SetSlot) -> impl Iterator<Item = Ticket> {
        self.gangs.get(&set).into_iter().flat_map(BTreeMap::values).copied()
    }

    /// All running tasks of a gang, the first tasks first; empty if it is none.
    pub fn gang(&self, set: SetSlot) -> Vec<Ticket> {
        // Its tasks started at one instant, and of these the last in the trace is stopped first.
        self.gangs.get(&set).into_iter().flat_map(|gang| gang.values().rev()).copied().collect()
    }

    /// All tasks that may be stopped by choice, in the order of stopping; empty unless they are indexed.
    pub fn all(&self) -> impl Iterator<Item = (&Victim, &Ticket)> {
        self.all.iter().flatten()
    }

    /// The lowest priority at which anything runs that may be stopped by choice; nothing unless all are kept.
    pub fn least_urgent(&self) -> Option<u8> {
        self.all.as_ref()?.first_key_value().map(|(victim, _)| victim.priority())
    }

    /// An entry on a machine, if it still runs.
    pub fn find(&self, machine: MachineId, victim: &Victim) -> Option<Ticket> {
        self.machines.get(machine.index())?.get(victim).copied()
    }

    /// All tasks on a machine, in the order of stopping.
    pub fn on(&self, machine: MachineId) -> Vec<Ticket> {
        self.machines.get(machine.index()).into_iter().flat_map(BTreeMap::values).copied().collect()
    }

    /// The tasks of these users that may be stopped by choice, in the order of stopping.
    pub fn of_users(&self, users: &[UserId]) -> Vec<(&Victim, &Ticket)> {
        let known = users.iter().filter_map(|user| self.users.get(user.index()));
        let mut all: Vec<(&Victim, &Ticket)> = known.flatten().collect();
        all.sort_unstable_by_key(|(victim, _)| **victim);
        all
    }
}

/// The list at a place, which is made if there is none yet.
fn list(lists: &mut Vec<BTreeMap<Victim, Ticket>>, at: usize) -> &mut BTreeMap<Victim, Ticket> {
    if lists.len() <= at {
        lists.resize_with(at + 1, BTreeMap::new);
    }
    &mut lists[at]
}
