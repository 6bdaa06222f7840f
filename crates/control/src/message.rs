//! Messages between the roles, and the outputs of a step.
//!
//! Vocabulary after Alibaba's public client interface of Fuxi (aliyun/aliyun-cupid-sdk, proxy/fuxi/api) and the article on stable
//! resources: a *cap* is the number of workers of a role that may run on a Tubo's machine, a *hint* is the same number for the application
//! master, a *plan* is the application master's own order to start them.

use super::counts::Counts;
use super::setup::{AppId, RoleId};
use plimsoll_base::units::MachineId;

/// A position in a stream of increments: the epoch of the FuxiMaster, and the number of the last applied message. Epoch 0 is before the
/// first FuxiMaster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// Which FuxiMaster.
    pub epoch: u32,
    /// Which of its messages to this peer.
    pub number: u32,
}

/// A process that sends or receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Endpoint {
    /// The FuxiMaster of the moment.
    Master,
    /// An application master: its application and its epoch; epoch 0 is the newest there is.
    App(AppId, u32),
    /// The Tubo of a machine.
    Tubo(MachineId),
}

/// Units of a role on a machine: a count, or a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Units<T> {
    /// Where.
    pub machine: MachineId,
    /// Of which role.
    pub role: RoleId,
    /// How many.
    pub count: T,
}

/// The head of everything an application master sends to FuxiMaster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sender {
    /// The application.
    pub app: AppId,
    /// Which of its masters: a later one has a larger epoch.
    pub epoch: u32,
    /// The number of the last increment or report it sent, this one included.
    pub number: u32,
}

/// A machine that an application master does not want to be granted on, because workers have failed there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bar {
    /// Which machine.
    pub machine: MachineId,
    /// For which of its roles; for all if none, which blames the machine towards FuxiMaster.
    pub role: Option<RoleId>,
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Message {
    /// Tubo to FuxiMaster: heartbeat with position; after a restart it requests its full cap.
    TuboBeat {
        /// Which machine.
        machine: MachineId,
        /// The last applied message from FuxiMaster.
        at: Position,
        /// It has just been started.
        restarted: bool,
    },
    /// Tubo to FuxiMaster, on request: all of its caps. It ignores earlier FuxiMasters from now on.
    TuboReport {
        /// Which machine.
        machine: MachineId,
        /// The FuxiMaster that asked.
        epoch: u32,
        /// Its caps.
        caps: Counts,
    },
    /// Application master to FuxiMaster: heartbeat with position.
    AppBeat {
        /// The sender.
        from: Sender,
        /// The last applied message from FuxiMaster.
        at: Position,
    },
    /// Application master to FuxiMaster, asked: its full request and all its hints.
    AppReport {
        /// The sender.
        from: Sender,
        /// The FuxiMaster that asked.
        epoch: u32,
        /// Units it wants of each role, those it has included.
        request: Counts,
        /// Units it knows to have, sorted by machine and role.
        hints: Vec<Units<u32>>,
        /// Machines that it bars, sorted.
        bars: Vec<Bar>,
        /// It has just been started, and asks for its full hint.
        restarted: bool,
    },
    /// Application master to FuxiMaster: an increment of the request, and units given back.
    AppChange {
        /// The sender.
        from: Sender,
        /// The FuxiMaster it is meant for.
        epoch: u32,
        /// Changes of the request.
        request: Vec<(RoleId, i32)>,
        /// Units given back: the consent to stop them.
        returned: Vec<Units<u32>>,
    },
    /// Application master to FuxiMaster: the machines that it bars have changed.
    AppBars {
        /// The sender.
        from: Sender,
        /// The FuxiMaster it is meant for.
        epoch: u32,
        /// All of its bars, sorted.
        bars: Vec<Bar>,
    },
    /// FuxiMaster to anyone it does not know: report.
    Ask {
        /// The epoch of the FuxiMaster that asks.
        epoch: u32,
    },
    /// FuxiMaster to a Tubo: caps, as increments or in full.
    Caps {
        /// The number of this message.
        at: Position,
        /// Whether these are all caps.
        full: bool,
        /// Changes, or counts.
        list: Vec<(RoleId, i32)>,
    },
    /// FuxiMaster to an application master: hints, as increments or in full, and machines lost from sight or back.
    Hints {
        /// The number of this message.
        at: Position,
        /// The last message of the application master that this takes into account.
        heard: u32,
        /// Whether these are all hints, and `away` all machines that are away.
        full: bool,
        /// Changes, or counts.
        list: Vec<Units<i32>>,
        /// Machines with stable units of this application that FuxiMaster has lost from sight.
        away: Vec<MachineId>,
        /// Machines that came back.
        back: Vec<MachineId>,
    },
    /// FuxiMaster to a superseded application master: stop.
    Fenced,
    /// Application master to a Tubo: run this number of workers of a role, once the cap is there.
    Plan {
        /// The epoch of the application master and the number of the plan: older plans are void.
        at: Position,
        /// The role.
        role: RoleId,
        /// How many workers in all.
        count: u32,
    },
    /// Tubo to an application master: there is a cap without a plan.
    NeedPlan {
        /// Which machine.
        machine: MachineId,
        /// The role.
        role: RoleId,
    },
    /// Tubo to an application master: this number of workers of a role have completed their tasks and wait for instructions.
    Done {
        /// Which machine.
        machine: MachineId,
        /// The plan of these workers.
        at: Position,
        /// The role.
        role: RoleId,
        /// How many.
        count: u32,
    },
    /// Tubo to an application master: a worker of a role has failed, and is not started again before it is planned again.
    Failed {
        /// Which machine.
        machine: MachineId,
        /// The plan of this worker.
        at: Position,
        /// The role.
        role: RoleId,
    },
}

/// Where FuxiMaster knows a unit from when it recovers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RecoverySource {
    /// A Tubo's cap, and the application master's request covers it or learns of the surplus.
    Cap,
    /// A Tubo's cap, with a mock request for this number of units on any machine of the cluster (`LT_CLUSTER`).
    Mock,
    /// An application master's hint.
    Hint,
}

/// Why FuxiMaster takes units away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Why {
    /// Their machine has timed out.
    MachineTimeout,
    /// Their machine came back with units that FuxiMaster does not know.
    Late,
    /// Their application master did not report in time.
    AppAbsent,
    /// They are more than was asked for.
    AboveRequest,
    /// The machine has no room for them.
    NoRoom,
    /// The scheduler wants them for others.
    Displaced,
}

/// An event within a step, for reports, checks and drawings; no process acts on it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Note {
    /// FuxiMaster granted a unit.
    Granted(Units<u32>),
    /// FuxiMaster took back units that their application master had returned.
    Released(Units<u32>),
    /// FuxiMaster rebuilt units.
    Rebuilt(Units<u32>, RecoverySource),
    /// FuxiMaster took units away, or did not rebuild them.
    Dropped(Units<u32>, Why),
    /// FuxiMaster replaced an invented request by the real one.
    Converted(RoleId, u32),
    /// FuxiMaster finished its recovery.
    Recovered,
    /// FuxiMaster lost a machine from sight.
    MachineAway(MachineId),
    /// A machine is present again for FuxiMaster.
    MachineBack(MachineId),
    /// FuxiMaster lost an application master from sight.
    AppAway(AppId),
    /// FuxiMaster received the number of requested units of a role.
    Requested(RoleId, u32),
    /// FuxiMaster accepted the report of an application master.
    Accepted(AppId, u32),
    /// A Tubo started workers.
    Started(Units<u32>),
    /// A Tubo stopped workers.
    Stopped(Units<u32>),
    /// A worker stopped of itself.
    Failed(Units<u32>),
    /// An application master received the completion of workers.
    Finished(Units<u32>),
    /// FuxiMaster received the machines that an application bars.
    Barred(AppId),
    /// An application blames a machine, and did not before.
    Blamed(MachineId),
    /// Enough applications blame a machine that FuxiMaster grants nothing there.
    Shunned(MachineId),
    /// FuxiMaster has cleared the blame of a machine.
    Forgiven(MachineId),
}

/// An output of a step; they come in order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Output {
    /// A message to be sent.
    Send(Endpoint, Message),
    /// The application needs a new master of at least this epoch, on a machine that the scheduler chooses.
    StartApp(AppId, u32),
    /// An event.
    Note(Note),
}
