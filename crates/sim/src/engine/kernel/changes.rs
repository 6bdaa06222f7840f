//! The change log: the kernel's changes since a reader last read them, in order; and the users with changed accounts.
//!
//! A change is recorded only for the readers of this run that have subscribed to its kind, until they read it. For the policy and the
//! recorder there are lists of changed users instead, which contain each user once.

use std::collections::VecDeque;
use std::ops::BitOr;

use super::agenda::Ticket;
use super::ids::SetSlot;
use super::running::Running;
use plimsoll_base::checkpoint::{Checkpoint, Visitor};
use plimsoll_base::error::Result;
use plimsoll_base::units::{JobId, MachineId, Time, UserId};
use plimsoll_base::visit_values;

/// A change of the kernel's state.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub enum Change {
    /// A machine has more free room, other labels, or has joined; released reservations are not reported.
    Freed(MachineId),
    /// The set waits in its queue from now on.
    Joined(SetSlot),
    /// No task of the set waits any more.
    Left(SetSlot),
    /// Tasks began. At full speed they end at `end`; `size` is the demand of each task for the watched resource.
    Started { ticket: Ticket, tasks: Running, size: u64, end: Time },
    /// Tasks have released their room on a machine; together they demanded this amount of the watched resource. Under a control
    /// this follows their end.
    Ended { machine: MachineId, amount: u64 },
    /// Tasks of a set were stopped and wait again as another set.
    Again { from: SetSlot, slot: SetSlot },
    /// A set is submitted; a backend must list it before its tasks wait. Only with a control.
    Submitted(SetSlot),
    /// Tasks were launched; a backend must begin them. Only with a control.
    Launched(Running),
    /// Tasks were stopped before their end.
    Stopped(TasksOfRow),
    /// Tasks have reached their end; a backend must finish them. Only with a control.
    Completed(Running),
    /// All tasks of a job have ended.
    JobOver(JobId),
}

/// Tasks with the data of their set, which may no longer exist when the change is read.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub struct TasksOfRow {
    /// The tasks.
    pub tasks: Running,
    /// Their row in the trace.
    pub row: u64,
    /// Whether all tasks of the gang stop together.
    pub gang: bool,
    /// Whether they run until the end of the run.
    pub endless: bool,
}

/// A reader of the change log, by its number in the list of [`ChangeLog::new`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reader(pub usize);

/// A set of kinds of changes; `|` unites two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ChangeKinds(u16);

impl ChangeKinds {
    /// [`Change::Freed`].
    pub const FREED: ChangeKinds = ChangeKinds(1);
    /// [`Change::Joined`] and [`Change::Left`].
    pub const QUEUES: ChangeKinds = ChangeKinds(2);
    /// [`Change::Started`].
    pub const STARTED: ChangeKinds = ChangeKinds(4);
    /// [`Change::Ended`].
    pub const ENDED: ChangeKinds = ChangeKinds(8);
    /// [`Change::Again`].
    pub const AGAIN: ChangeKinds = ChangeKinds(16);
    /// Changes that a backend reads: [`Change::Submitted`] and all after it.
    pub const BACKEND: ChangeKinds = ChangeKinds(32);

    /// Returns whether the sets have a common kind.
    fn meets(self, other: ChangeKinds) -> bool {
        self.0 & other.0 != 0
    }
}

impl BitOr for ChangeKinds {
    type Output = ChangeKinds;
    fn bitor(self, other: ChangeKinds) -> ChangeKinds {
        ChangeKinds(self.0 | other.0)
    }
}

impl Change {
    fn kind(&self) -> ChangeKinds {
        match self {
            Change::Freed(_) => ChangeKinds::FREED,
            Change::Joined(_) | Change::Left(_) => ChangeKinds::QUEUES,
            Change::Started { .. } => ChangeKinds::STARTED,
            Change::Ended { .. } => ChangeKinds::ENDED,
            Change::Again { .. } => ChangeKinds::AGAIN,
            Change::Submitted(_)
            | Change::Launched(_)
            | Change::Stopped(_)
            | Change::Completed(_)
            | Change::JobOver(_) => ChangeKinds::BACKEND,
        }
    }
}

/// The change log of a run.
#[derive(Default)]
pub(super) struct ChangeLog {
    pub users: ChangedUsers,
    /// The kinds that any reader has subscribed to.
    wanted: ChangeKinds,
    /// The index of the resource that starts and ends report.
    watched: Option<usize>,
    /// The kinds that each reader has subscribed to, and the changes that it has not read.
    readers: Vec<(ChangeKinds, VecDeque<Change>)>,
}

impl ChangeLog {
    /// Creates an empty log; there is a [`Reader`] for each of these kinds.
    pub fn new(kinds: &[ChangeKinds], watched: Option<usize>) -> ChangeLog {
        let wanted = kinds.iter().fold(ChangeKinds::default(), |all, kinds| all | *kinds);
        ChangeLog {
            watched,
            wanted,
            readers: kinds.iter().map(|kinds| (*kinds, VecDeque::new())).collect(),
            ..ChangeLog::default()
        }
    }

    /// Returns whether changes of any of these kinds are recorded.
    #[inline]
    pub fn wants(&self, kinds: ChangeKinds) -> bool {
        self.wanted.meets(kinds)
    }

    /// Records a change for the readers that have subscribed to its kind.
    #[inline]
    pub fn push(&mut self, change: Change) {
        let kind = change.kind();
        if self.wants(kind) {
            let readers = self.readers.iter_mut().filter(|(kinds, _)| kind.meets(*kinds));
            readers.for_each(|(_, unread)| unread.push_back(change));
        }
    }

    /// Returns whether all readers have read all of their changes.
    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.readers.iter().all(|(_, unread)| unread.is_empty())
    }

    /// Returns the demand for the watched resource.
    pub fn size(&self, demand: &[u64]) -> u64 {
        self.watched.map_or(0, |dim| demand[dim])
    }

    /// Returns the next change for a reader; `None` if it has read all.
    pub fn next(&mut self, reader: Reader) -> Option<Change> {
        self.readers[reader.0].1.pop_front()
    }
}

/// Users with a changed allocation or pending demand, each once.
#[derive(Default, serde::Serialize, serde::Deserialize)]
pub(super) struct ChangedUsers {
    marks: Vec<Marks>,
    pub since_round: Vec<UserId>,
    pub since_instant: Vec<UserId>,
}

/// The lists that contain a user. The marks are in one struct because, with many users, each access is a cache miss.
#[derive(Clone, Copy, Default, serde::Serialize, serde::Deserialize)]
struct Marks {
    round: bool,
    instant: bool,
}

impl ChangedUsers {
    /// Adds a user.
    pub fn open(&mut self) {
        self.marks.push(Marks::default());
    }

    /// Records that a user's allocation or pending demand has changed.
    pub fn mark(&mut self, user: UserId) {
        let marks = &mut self.marks[user.index()];
        if !std::mem::replace(&mut marks.round, true) {
            self.since_round.push(user);
        }
        // The lists are separate because a change within a round is read by the policy in the next round, and by the recorder at the end
        // of this instant.
        if !std::mem::replace(&mut marks.instant, true) {
            self.since_instant.push(user);
        }
    }

    /// Empties the list since the last round, which the policy has read.
    pub fn read_by_policy(&mut self) {
        for user in self.since_round.drain(..) {
            self.marks[user.index()].round = false;
        }
    }

    /// Empties the list since the last instant, which the recorder has read.
    pub fn read_by_recorder(&mut self) {
        for user in self.since_instant.drain(..) {
            self.marks[user.index()].instant = false;
        }
    }
}

impl Checkpoint for ChangeLog {
    fn visit(&mut self, visitor: &mut Visitor) -> Result<()> {
        let ChangeLog { users, wanted: _, watched: _, readers } = self;
        visit_values!(visitor; users, readers);
        Ok(())
    }
}
