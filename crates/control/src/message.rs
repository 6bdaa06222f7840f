//! Messages between the roles, and the outputs of a step.
//!
//! Vocabulary after Alibaba's public client interface of Fuxi (aliyun/aliyun-cupid-sdk, proxy/fuxi/api) and the article on stable
//! resources: a *cap* is the number of workers of a role that may run on a Tubo's machine. A *hint* is the same number, sent to the
//! application master. A *plan* is the application master's order to start the workers.

use super::counts::Counts;
use super::setup::{AppId, RoleId};
use plimsoll_base::units::MachineId;

/// A position in FuxiMaster's stream of increments to one peer: the epoch of the FuxiMaster, and the number of the last applied message.
/// Epoch 0 is before the first FuxiMaster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The epoch of the FuxiMaster.
    pub epoch: u32,
    /// The number of its message to this peer.
    pub number: u32,
}

/// A process that sends or receives messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Endpoint {
    /// The current FuxiMaster.
    Master,
    /// An application master: its application and its epoch; epoch 0 is the newest one.
    App(AppId, u32),
    /// The Tubo of a machine.
    Tubo(MachineId),
}

/// A number of units of a role on a machine, or a change of that number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Units<T> {
    /// The machine.
    pub machine: MachineId,
    /// The role.
    pub role: RoleId,
    /// The number of units, or the change.
    pub count: T,
}

/// The header of each message from an application master to FuxiMaster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sender {
    /// The application.
    pub app: AppId,
    /// The epoch of the application master: a later master of the application has a larger epoch.
    pub epoch: u32,
    /// The number of its last increment or report, including this message.
    pub number: u32,
}

/// A machine for which an application master refuses further grants, because workers have failed on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bar {
    /// The machine.
    pub machine: MachineId,
    /// The role that is barred on the machine. `None` bars all roles and reports the machine to FuxiMaster.
    pub role: Option<RoleId>,
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Message {
    /// Tubo to FuxiMaster: a heartbeat with its position. After a restart it requests its full cap.
    TuboBeat {
        /// The machine.
        machine: MachineId,
        /// The last applied message from FuxiMaster.
        at: Position,
        /// Whether the Tubo has just been started.
        restarted: bool,
    },
    /// Tubo to FuxiMaster, on request: all of its caps. From now on it ignores earlier FuxiMasters.
    TuboReport {
        /// The machine.
        machine: MachineId,
        /// The epoch of the FuxiMaster that requested the report.
        epoch: u32,
        /// Its caps.
        caps: Counts,
    },
    /// Application master to FuxiMaster: a heartbeat with its position.
    AppBeat {
        /// The sender.
        from: Sender,
        /// The last applied message from FuxiMaster.
        at: Position,
    },
    /// Application master to FuxiMaster, on request: its full request and all its hints.
    AppReport {
        /// The sender.
        from: Sender,
        /// The epoch of the FuxiMaster that requested the report.
        epoch: u32,
        /// Requested units of each role, granted ones included.
        request: Counts,
        /// Units that it has been granted according to its hints, sorted by machine and role.
        hints: Vec<Units<u32>>,
        /// Machines that it bars, sorted.
        bars: Vec<Bar>,
        /// Whether it has just been started, and requests its full hint.
        restarted: bool,
    },
    /// Application master to FuxiMaster: an increment of the request, and returned units.
    AppChange {
        /// The sender.
        from: Sender,
        /// The epoch of the FuxiMaster that the message is for.
        epoch: u32,
        /// Changes of the request.
        request: Vec<(RoleId, i32)>,
        /// Returned units: the consent to stop their workers.
        returned: Vec<Units<u32>>,
    },
    /// Application master to FuxiMaster: the machines that it bars have changed.
    AppBars {
        /// The sender.
        from: Sender,
        /// The epoch of the FuxiMaster that the message is for.
        epoch: u32,
        /// All of its bars, sorted.
        bars: Vec<Bar>,
    },
    /// FuxiMaster to a peer: a request for a full report.
    Ask {
        /// The epoch of the FuxiMaster that requests the report.
        epoch: u32,
    },
    /// FuxiMaster to a Tubo: caps, as increments or in full.
    Caps {
        /// The number of this message.
        at: Position,
        /// Whether the list contains all caps.
        full: bool,
        /// Changes, or counts if the list is full.
        list: Vec<(RoleId, i32)>,
    },
    /// FuxiMaster to an application master: hints, as increments or in full, and machines that are away or back.
    Hints {
        /// The number of this message.
        at: Position,
        /// The number of the last message of the application master that is taken into account.
        heard: u32,
        /// Whether the list contains all hints, and `away` all machines that are away.
        full: bool,
        /// Changes, or counts if the list is full.
        list: Vec<Units<i32>>,
        /// Machines with stable units of this application that are away: FuxiMaster receives no messages from them.
        away: Vec<MachineId>,
        /// Machines that are back.
        back: Vec<MachineId>,
    },
    /// FuxiMaster to a superseded application master: an order to stop.
    Fenced,
    /// Application master to a Tubo: an order to run this number of workers of a role, as far as the cap allows.
    Plan {
        /// The epoch of the application master and the number of the plan; older plans are void.
        at: Position,
        /// The role.
        role: RoleId,
        /// The total number of workers.
        count: u32,
    },
    /// Tubo to an application master: there is a cap without a plan.
    NeedPlan {
        /// The machine.
        machine: MachineId,
        /// The role.
        role: RoleId,
    },
    /// Tubo to an application master: this number of workers of a role have completed their tasks and wait for instructions.
    Done {
        /// The machine.
        machine: MachineId,
        /// The plan of these workers.
        at: Position,
        /// The role.
        role: RoleId,
        /// The number of workers.
        count: u32,
    },
    /// Tubo to an application master: a worker of a role has failed. It is not restarted before it is planned again.
    Failed {
        /// The machine.
        machine: MachineId,
        /// The plan of this worker.
        at: Position,
        /// The role.
        role: RoleId,
    },
}

/// The source of a unit that a recovering FuxiMaster rebuilds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RecoverySource {
    /// A Tubo's cap. The application master's request covers the unit, or the application master is notified of the surplus.
    Cap,
    /// A Tubo's cap, with a mock request for this number of units on any machine of the cluster (`LT_CLUSTER`).
    Mock,
    /// An application master's hint.
    Hint,
}

/// The reason why FuxiMaster revokes units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Why {
    /// The machine of the units has timed out.
    MachineTimeout,
    /// The machine of the units came back late, and FuxiMaster had no record of them.
    Late,
    /// The application master of the units did not report in time.
    AppAbsent,
    /// The units exceed the request.
    AboveRequest,
    /// The machine has no room for the units.
    NoRoom,
    /// The scheduler has preempted the units.
    Displaced,
}

/// An event within a step, for reports, checks and drawings; no process acts on it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Note {
    /// FuxiMaster granted a unit.
    Granted(Units<u32>),
    /// FuxiMaster released units that their application master had returned.
    Released(Units<u32>),
    /// FuxiMaster rebuilt units.
    Rebuilt(Units<u32>, RecoverySource),
    /// FuxiMaster revoked units, or did not rebuild them.
    Dropped(Units<u32>, Why),
    /// FuxiMaster replaced a mock request by the real one.
    Converted(RoleId, u32),
    /// FuxiMaster finished its recovery.
    Recovered,
    /// FuxiMaster considers a machine away.
    MachineAway(MachineId),
    /// A machine is present again.
    MachineBack(MachineId),
    /// FuxiMaster considers an application master away.
    AppAway(AppId),
    /// FuxiMaster received the number of requested units of a role.
    Requested(RoleId, u32),
    /// FuxiMaster accepted the report of an application master.
    Accepted(AppId, u32),
    /// A Tubo started workers.
    Started(Units<u32>),
    /// A Tubo stopped workers.
    Stopped(Units<u32>),
    /// A worker failed.
    Failed(Units<u32>),
    /// An application master received the completion of workers.
    Finished(Units<u32>),
    /// FuxiMaster received the machines that an application bars.
    Barred(AppId),
    /// An application has reported a machine for the first time since its reports were cleared.
    Blamed(MachineId),
    /// Enough applications have reported a machine: FuxiMaster blacklists it and grants nothing there.
    Blacklisted(MachineId),
    /// FuxiMaster has cleared the reports against a machine, and its blacklisting.
    Forgiven(MachineId),
}

/// An output of a step; outputs are in order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Output {
    /// A message to be sent.
    Send(Endpoint, Message),
    /// The application needs a new master of at least this epoch, on a machine that the scheduler chooses.
    StartApp(AppId, u32),
    /// An event.
    Note(Note),
}
