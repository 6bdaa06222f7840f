//! The inputs of the slow twin of placement besides rows and options: labels, places, and machine events.

use std::collections::BTreeSet;

use plimsoll::policy::QuotaFile;

use crate::machines_faults::Faults;
use crate::machines_preemption::Displacing;
use crate::slow::Config;

/// A label expression that a machine must satisfy. A label is a number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expression {
    Label(usize),
    Not(Box<Expression>),
    All(Vec<Expression>),
    Any(Vec<Expression>),
}

impl Expression {
    pub fn holds(&self, carried: &BTreeSet<usize>) -> bool {
        match self {
            Expression::Label(label) => carried.contains(label),
            Expression::Not(inner) => !inner.holds(carried),
            Expression::All(parts) => parts.iter().all(|part| part.holds(carried)),
            Expression::Any(parts) => parts.iter().any(|part| part.holds(carried)),
        }
    }
}

/// Where a task may start: machine < rack < room < cluster. Racks of one name in two rooms are two racks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Location {
    Machine(usize),
    Rack(Option<usize>, usize),
    Room(usize),
    Cluster,
}

/// The labels of a machine at the start, and its location.
#[derive(Clone, Debug, Default)]
pub struct Site {
    pub labels: BTreeSet<usize>,
    pub room: Option<usize>,
    pub rack: Option<usize>,
}

/// A change of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    Fail,
    Leave,
    Join,
    Relabel(BTreeSet<usize>),
}

#[derive(Clone, Debug)]
pub struct Event {
    pub at: u64,
    pub machine: usize,
    pub change: Change,
}

/// The requirements of a trace row on machines.
#[derive(Clone, Debug)]
pub struct Ask {
    pub label: Option<Expression>,
    pub place: Location,
    /// Its tasks are never preempted.
    pub stable: bool,
}

/// Restricts the victims of a preemption request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whom {
    Any,
    SameUser,
    SameGroup,
    AboveQuota,
    /// Tasks of users with a larger share under the policy than the requesting user.
    Share,
}

/// All inputs of the slow twin except the rows of the trace and their requirements.
#[derive(Clone, Debug)]
pub struct World {
    pub config: Config,
    pub sites: Vec<Site>,
    pub events: Vec<Event>,
    /// The waiting time after which a task may start one level up, such as in the rack instead of on the machine; `None`: never.
    pub fall_back: Option<u64>,
    /// Tasks on a machine that fails are lost, not requeued.
    pub lose: bool,
    /// The notice: the time for which victims continue to run after a preemption request; and the eligible victims.
    pub preempt: Option<(u64, Whom)>,
    /// Limits and costs of preemption.
    pub preemption_limits: Displacing,
    /// Groups with quotas, instead of the policy.
    pub quota: Option<QuotaFile>,
    /// The time for which a gang holds room that is not enough yet; `None`: gangs hold no room.
    pub hoard: Option<u64>,
    /// The faults of tasks: failures, stragglers and backups.
    pub faults: Option<Faults>,
    /// The resources that consist of identified devices. `nodes` has the NUMA node of each device, by machine and resource.
    pub devices: Vec<usize>,
    pub nodes: Vec<Vec<Vec<usize>>>,
}

impl World {
    /// Returns the next level up; skips levels that the machine does not have.
    pub fn up(&self, place: Location) -> Location {
        match place {
            Location::Machine(machine) => match &self.sites[machine] {
                Site { rack: Some(rack), room, .. } => Location::Rack(*room, *rack),
                Site { room: Some(room), .. } => Location::Room(*room),
                Site { .. } => Location::Cluster,
            },
            Location::Rack(Some(room), _) => Location::Room(room),
            Location::Rack(None, _) | Location::Room(_) | Location::Cluster => Location::Cluster,
        }
    }

    /// Returns whether a machine is at a place.
    pub fn is_at(&self, machine: usize, place: Location) -> bool {
        let site = &self.sites[machine];
        match place {
            Location::Machine(other) => other == machine,
            Location::Rack(room, rack) => site.room == room && site.rack == Some(rack),
            Location::Room(room) => site.room == Some(room),
            Location::Cluster => true,
        }
    }
}
