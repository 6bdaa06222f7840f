//! The inputs of the reference implementation: the rows of a trace, the cluster and the settings of a run.

use std::collections::BTreeSet;

use plimsoll::policy::QuotaFile;

use super::{Curve, Displacing, Faults, Inside, Memory, Ratio, Zoo};

/// One row of a trace. Jobs, users and stages are arbitrary numeric identifiers.
#[derive(Clone, Debug, Default)]
pub struct Row {
    pub job: usize,
    pub user: usize,
    pub submit: u64,
    pub duration: u64,
    pub tasks: u64,
    pub demand: Vec<u64>,
    pub stage: Option<usize>,
    pub after: Vec<usize>,
    pub priority: u8,
    /// All tasks start together or none does.
    pub gang: bool,
    /// The duration of each task as estimated by the user.
    pub estimate: Option<u64>,
    pub deadline: Option<u64>,
    pub label: Option<Expression>,
    pub place: Location,
    /// Its tasks are never preempted.
    pub stable: bool,
}

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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Location {
    Machine(usize),
    Rack(Option<usize>, usize),
    Room(usize),
    #[default]
    Cluster,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    Fifo,
    Line,
    Slot(u64),
    MaxMin(usize),
    Asset,
    Drf,
    LongTerm(Memory),
    Afs(Memory),
    Zoo(Zoo),
}

impl Policy {
    /// Returns the interval after which the order of users may change without any event.
    pub fn period(self) -> Option<u64> {
        match self {
            Policy::LongTerm(memory) | Policy::Afs(memory) => Some(memory.period),
            Policy::Zoo(zoo) => zoo.period(),
            _ => None,
        }
    }

    /// Returns whether the policy ranks pairs of user and machine.
    pub fn by_machine(self) -> bool {
        matches!(self, Policy::Zoo(Zoo::Psdsf | Zoo::Tetris(_)))
    }

    /// Returns whether a user's rank is a share of the cluster that depends on its allocation only.
    pub fn has_shares(self) -> bool {
        matches!(self, Policy::Slot(_) | Policy::MaxMin(_) | Policy::Asset | Policy::Drf)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    Pooled,
    FirstFit,
    BestFit,
    WorstFit,
    Spread,
    DotProduct,
    /// By fragments of devices; the same as first-fit without devices.
    Fgd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnBlocked {
    Skip,
    Stop,
    Easy,
    Conservative,
}

impl OnBlocked {
    pub fn backfills(self) -> bool {
        matches!(self, OnBlocked::Easy | OnBlocked::Conservative)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ties {
    LeastRecentlyServed,
    LowestId,
    HighestId,
    FewestRunning,
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

/// All inputs of a run except the rows of the trace.
#[derive(Clone, Debug)]
pub struct World {
    /// The capacity of each machine.
    pub machines: Vec<Vec<u64>>,
    pub policy: Policy,
    /// Weights by user (as numbered in the rows) and resource. Users beyond the end of the list have weight 1.
    pub weights: Vec<Vec<Ratio>>,
    pub placement: Placement,
    pub on_blocked: OnBlocked,
    pub ties: Ties,
    pub slowdown: Option<Curve>,
    pub inside: Inside,
    /// The speed of each machine, in millionths of full speed. If empty, all machines have full speed.
    pub speeds: Vec<u64>,
    /// The labels and location of each machine. If empty, no machine has any.
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

impl Default for World {
    fn default() -> World {
        World {
            machines: Vec::new(),
            policy: Policy::Drf,
            weights: Vec::new(),
            placement: Placement::FirstFit,
            on_blocked: OnBlocked::Skip,
            ties: Ties::LowestId,
            slowdown: None,
            inside: Inside::Usual,
            speeds: Vec::new(),
            sites: Vec::new(),
            events: Vec::new(),
            fall_back: None,
            lose: false,
            preempt: None,
            preemption_limits: Displacing::default(),
            quota: None,
            hoard: None,
            faults: None,
            devices: Vec::new(),
            nodes: Vec::new(),
        }
    }
}

impl World {
    /// Returns the capacity of each place where tasks start: of every machine, or of the pool.
    pub fn places(&self) -> Vec<Vec<u64>> {
        if self.placement != Placement::Pooled {
            return self.machines.clone();
        }
        vec![sum(self.machines.iter().cloned(), self.machines[0].len())]
    }

    /// Returns the amounts that each place offers to tasks as the policy counts them: its capacity, or its slots.
    pub fn offers(&self) -> Vec<Vec<u64>> {
        match self.policy {
            Policy::Slot(slots) if self.placement == Placement::Pooled => {
                vec![vec![slots * self.machines.len() as u64]]
            }
            Policy::Slot(slots) => vec![vec![slots]; self.machines.len()],
            _ => self.places(),
        }
    }

    /// Returns the amount that a task takes: its demand, or one slot.
    pub fn need<'r>(&self, row: &'r Row) -> &'r [u64] {
        if let Policy::Slot(_) = self.policy { &[1] } else { &row.demand }
    }

    /// Returns the room and the rack of a machine.
    fn location(&self, machine: usize) -> (Option<usize>, Option<usize>) {
        self.sites.get(machine).map_or((None, None), |site| (site.room, site.rack))
    }

    /// Returns the next level up; skips levels that the machine does not have.
    pub fn up(&self, place: Location) -> Location {
        match place {
            Location::Machine(machine) => match self.location(machine) {
                (room, Some(rack)) => Location::Rack(room, rack),
                (Some(room), None) => Location::Room(room),
                (None, None) => Location::Cluster,
            },
            Location::Rack(Some(room), _) => Location::Room(room),
            Location::Rack(None, _) | Location::Room(_) | Location::Cluster => Location::Cluster,
        }
    }

    /// Returns whether a machine is at a place.
    pub fn is_at(&self, machine: usize, place: Location) -> bool {
        match place {
            Location::Machine(other) => other == machine,
            Location::Rack(room, rack) => self.location(machine) == (room, Some(rack)),
            Location::Room(room) => self.location(machine).0 == Some(room),
            Location::Cluster => true,
        }
    }
}

/// Returns the sum of amounts by resource.
pub fn sum(parts: impl Iterator<Item = Vec<u64>>, dims: usize) -> Vec<u64> {
    let mut sum = vec![0; dims];
    parts.for_each(|part| sum.iter_mut().zip(part).for_each(|(sum, part)| *sum += part));
    sum
}

pub fn minus(whole: &[u64], part: &[u64]) -> Vec<u64> {
    whole.iter().zip(part).map(|(whole, part)| whole - part).collect()
}

/// Returns how many times a need fits in the free amounts.
pub fn times(need: &[u64], free: &[u64]) -> u64 {
    let wanted = need.iter().zip(free).filter(|(need, _)| **need > 0);
    wanted.map(|(need, free)| free / need).min().unwrap_or(1 << 40)
}
