//! The reasons why tasks wait, and their names in production systems.

use crate::policy::{Rank, Reason};
use plimsoll_base::units::{MachineId, Resources, UserId};

/// A reason, with its name in the tables and in two production systems.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReasonRow {
    /// The name in tables.
    pub name: &'static str,
    /// The condition for this reason; an earlier reason of [`REASONS`] takes precedence.
    pub meaning: &'static str,
    /// The closest reason of Slurm.
    pub slurm: &'static str,
    /// The closest reason or message of Kubernetes and its queueing systems.
    pub kubernetes: &'static str,
}

macro_rules! reasons {
    ($($constant:ident $name:literal $slurm:literal $kubernetes:literal $meaning:literal,)*) => {
        $(const $constant: ReasonRow =
            ReasonRow { name: $name, meaning: $meaning, slurm: $slurm, kubernetes: $kubernetes };)*

        /// All reasons, in the order of precedence: tasks have the first one that applies.
        pub const REASONS: &[ReasonRow] = &[$($constant),*];
    };
}

reasons! {
    TOO_LARGE "too-large" "PartitionNodeLimit" "UnschedulableAndUnresolvable"
        "A task fits no machine, even an empty one; it never starts",
    SUBMISSION "submission" "BeginTime" "SchedulingGated"
        "A later row of a submitted job is submitted later",
    STAGE "stage" "Dependency" "SchedulingGated"
        "An earlier stage of the job has not ended",
    UNKNOWN "request-on-its-way" "None" "PendingEvaluation (Kueue)"
        "The control plane has not delivered the request to the scheduler",
    VICTIMS "victims-leaving" "Resources" "WaitingForPreemptedWorkloads (Kueue)"
        "Running tasks were asked to make room and have not left",
    RULE "rule" "QOSMaxCpuPerUserLimit, AssocGrpCpuLimit, .." "WaitingForQuota (Kueue)"
        "The policy does not admit the task: a quota of a group, or another rule",
    BUSY "scheduler-busy" "None" "PendingEvaluation (Kueue)"
        "The tasks have room, and the scheduler of the control plane is down or busy",
    OWN "behind-own" "Priority" "Pending"
        "Another task set of the same user comes first",
    RANK "behind-others" "Priority" "Pending"
        "Tasks of other users come first in rank order, and may use the same machines",
    GANG "gang" "Resources" "minMember not met (Volcano)"
        "Some of the tasks that start together have room, and not all of them",
    PLACE "label-or-place" "BadConstraints, ReqNodeNotAvail" "didn't match Pod's node affinity/selector"
        "Only machines outside its label or location have room",
    RESOURCES "resources" "Resources" "Insufficient cpu, Insufficient memory, .."
        "All machines together have less free than one task needs",
    FRAGMENTED "fragmented" "Resources" "Insufficient cpu, .. on every node"
        "All machines together have enough free, and no machine (or no device) has room",
    UNTRIED "untried" "None" "PendingEvaluation (Kueue)"
        "The tasks have room and come first, and the scheduler waits for its next cycle or reserves the room",
    STARTING "starting" "Prolog" "ContainerCreating"
        "The tasks were granted, and the control plane has not started them",
}

/// The reason why waiting tasks do not start now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlockReason {
    /// A task fits no machine, even an empty one.
    TooLarge,
    /// The row is submitted later than the job's first row.
    Submission,
    /// An earlier stage of the job has not ended.
    Stage,
    /// The scheduler of the control plane does not know the request.
    Unknown,
    /// Running tasks were asked to make room and have not left.
    Victims {
        /// Number of asked tasks.
        asked: u64,
        /// The machine of the asked tasks.
        machine: MachineId,
        /// The amounts that are missing on the machine, through the policy's lens.
        missing: Resources,
    },
    /// The policy does not admit the task.
    Rule(Reason),
    /// Another set of the same user comes first.
    Own {
        /// The job of this set.
        job: String,
        /// The room that is missing for the waiting set itself; `None` if it has room.
        missing: Option<MissingRoom>,
    },
    /// Queues of other users come first.
    Rank(RankedBefore),
    /// Only machines outside the scope have room.
    Place {
        /// The label expression of the tasks, if they have one.
        label: Option<String>,
        /// Number of machines in the scope.
        inside: u32,
        /// Number of machines outside the scope that have room for a task.
        outside: u32,
        /// The room that is missing in the scope.
        missing: MissingRoom,
    },
    /// Too little is free in total.
    Resources(MissingRoom),
    /// Enough is free in total, and no machine has room.
    Fragmented(MissingRoom),
    /// Not all tasks of a gang have room.
    Gang(MissingRoom),
    /// The tasks have room, and the scheduler of the control plane is down or busy.
    Busy,
    /// The tasks have room and come first, and the scheduler does not start them.
    Untried,
    /// The tasks were granted, and the control plane has not started them.
    Starting,
}

impl BlockReason {
    /// Returns the row of the reason.
    pub fn row(&self) -> &'static ReasonRow {
        match self {
            BlockReason::TooLarge => &TOO_LARGE,
            BlockReason::Submission => &SUBMISSION,
            BlockReason::Stage => &STAGE,
            BlockReason::Unknown => &UNKNOWN,
            BlockReason::Victims { .. } => &VICTIMS,
            BlockReason::Rule(_) => &RULE,
            BlockReason::Own { .. } => &OWN,
            BlockReason::Rank(_) => &RANK,
            BlockReason::Place { .. } => &PLACE,
            BlockReason::Resources(_) => &RESOURCES,
            BlockReason::Fragmented(_) => &FRAGMENTED,
            BlockReason::Gang(_) => &GANG,
            BlockReason::Busy => &BUSY,
            BlockReason::Untried => &UNTRIED,
            BlockReason::Starting => &STARTING,
        }
    }

    /// Returns the room that is missing, if a machine or the whole cluster has too little.
    pub fn missing(&self) -> Option<MissingRoom> {
        match self {
            BlockReason::Own { missing, .. } | BlockReason::Rank(RankedBefore { missing, .. }) => *missing,
            BlockReason::Resources(missing)
            | BlockReason::Fragmented(missing)
            | BlockReason::Gang(missing)
            | BlockReason::Place { missing, .. } => Some(*missing),
            _ => None,
        }
    }
}

/// A resource with too little room for a task set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissingRoom {
    /// The index of the resource among the dimensions; `None` if room is counted in slots.
    pub resource: Option<u8>,
    /// The amount that one task needs.
    pub need: u64,
    /// The missing amount: in total for one task, on the machine with the smallest shortage if enough is free in total, or in total for all
    /// tasks of a gang if one has room.
    pub short: u64,
    /// The free amount of the machines that the tasks may use.
    pub free: u64,
    /// Number of tasks that start together: 1 unless the set is a gang.
    pub together: u32,
    /// Number of these tasks that have room, reserved room included.
    pub room: u32,
    /// Whether too little is free in total; otherwise no machine, or no device, has enough.
    pub in_total: bool,
    /// Whether the resource consists of devices.
    pub of_devices: bool,
}

/// The queues of other users that come first in rank order and may use the same machines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankedBefore {
    /// Number of the users.
    pub users: u32,
    /// Number of waiting tasks in the sets of other users that come first.
    pub tasks: u64,
    /// The user of the first queue.
    pub first: UserId,
    /// The job of the first queue's next set.
    pub job: String,
    /// The rank of the first queue.
    pub first_rank: Rank,
    /// The rank of the waiting set.
    pub rank: Rank,
    /// The room that is missing for the waiting set itself; `None` if it has room, so that only its position prevents the start.
    pub missing: Option<MissingRoom>,
    /// The room that is missing for the first set; `None` if it has room.
    pub first_missing: Option<MissingRoom>,
}
