//! The inputs of the slow twin of placement besides rows and options: labels, places, and machine events.

use std::collections::BTreeSet;

use plimsoll::policy::QuotaFile;

use crate::machines_faults::Faults;
use crate::machines_preemption::Displacing;
use crate::slow::Config;

/// The labels that a machine must carry. Labels are numbers without further meaning.
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
    /// Tasks of users that are further ahead by the policy's shares, for a user that is behind.
    Share,
}

/// Everything but the rows.
#[derive(Clone, Debug)]
pub struct World {
    pub config: Config,
    pub sites: Vec<Site>,
    pub events: Vec<Event>,
    /// After how long a task may start a level up; `None`: never.
    pub fall_back: Option<u64>,
    /// Tasks on a machine that fails are lost, not requeued.
    pub lose: bool,
    /// The time that victims may continue to run after a preemption request, and the eligible victims.
    pub preempt: Option<(u64, Whom)>,
    /// Limits and costs of stopping tasks.
    pub preemption_limits: Displacing,
    /// Groups with quotas, instead of the policy.
    pub quota: Option<QuotaFile>,
    /// For how long gangs hold room that is not enough yet; `None`: they hold none.
    pub hoard: Option<u64>,
    /// How tasks fail, straggle and are backed up.
    pub faults: Option<Faults>,
    /// Resources that are made of identified devices; and by machine and resource, the NUMA node of each device.
    pub devices: Vec<usize>,
    pub nodes: Vec<Vec<Vec<usize>>>,
}

impl World {
    /// The next level up; levels that are not there are skipped.
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
