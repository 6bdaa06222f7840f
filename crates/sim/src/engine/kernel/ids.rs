//! Handles of task sets, jobs, queues and scopes: indexes into the tables of the kernel.

/// A slot in the slab of task sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct SetSlot(pub(super) u32);

impl SetSlot {
    /// The first slot.
    pub const FIRST: SetSlot = SetSlot(0);
    /// The marker for no slot.
    pub const NONE: SetSlot = SetSlot(u32::MAX);

    /// Returns the slot's index in a list of sets.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A slot in the slab of jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct JobSlot(pub(super) u32);

impl JobSlot {
    /// Returns the slot's index in a list of jobs.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The id of a user's queue for a scope, dense in order of first use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct QueueId(pub u32);

impl QueueId {
    /// Returns the queue's index in a list of queues.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The id of a scope, dense in order of first use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct ScopeId(pub u32);

impl ScopeId {
    /// The scope of all machines.
    pub const WHOLE: ScopeId = ScopeId(0);
    /// An id after all others.
    pub const MAX: ScopeId = ScopeId(u32::MAX);

    /// Returns the scope's index in a list of scopes.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The marker for no stage.
pub const NO_STAGE: u32 = u32::MAX;
