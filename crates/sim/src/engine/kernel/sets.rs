//! Active task sets, in a slab.
//!
//! A row of the workload becomes one set; stopped tasks become a new set with the same row. Demands and footprints are stored apart from
//! the sets, with exactly as many amounts as the cluster has dimensions. Data that few sets have are in a side table ([`SetDetails`]),
//! which is empty in most runs. A slot is reused after its set has ended, so code that stores a [`SetSlot`] must compare the row.

use std::ops::{Index, IndexMut};

use prefetch_index::prefetch_index;

use super::ids::{JobSlot, NO_STAGE, QueueId, ScopeId, SetSlot};
use crate::books::Partition;
use crate::record::Salvage;
use crate::workload::TaskSet;
use plimsoll_base::units::{Span, Time, UserId};

/// A task set with tasks that have not ended.
///
/// It fits one cache line. With many concurrent tasks this line is not in the cache when tasks end, so it is prefetched.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
#[repr(align(64))]
pub struct ActiveSet {
    pub duration: Span,
    pub row: u64,
    /// The release: the submission, or the end of the stages that it waits for.
    pub release: Time,
    pub job: JobSlot,
    pub user: UserId,
    /// The number of tasks that have not ended.
    pub left: u32,
    /// The number of tasks that have not been launched.
    pub waiting: u32,
    /// The number within the job of the next task to launch.
    pub number: u32,
    /// The queue of its waiting tasks.
    pub queue: QueueId,
    /// The index of this set's last launch in the current round; see `Kernel::launches`.
    pub launch: u32,
    /// The neighbours in its queue; see `Queues`.
    pub previous: SetSlot,
    pub next: SetSlot,
    /// The partition that the set is booked under besides its user.
    pub partition: Partition,
    pub priority: u8,
    /// The properties that apply, a bit of [`SetFlag`] each.
    flags: u8,
}

const _: () = assert!(size_of::<ActiveSet>() == 64, "an active set is one line of the cache");

/// A property of a task set, as a bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetFlag {
    /// The slot is in use.
    Live = 1,
    /// The set has an entry in the table of [`SetDetails`].
    Detailed = 2,
    /// The set waits for a stage, and is not in its queue.
    AwaitsStage = 4,
    /// A stage released the set, rather than its own arrival.
    Released = 8,
    /// The waiting tasks start all together or none does.
    Gang = 16,
    /// The tasks are exempt from voluntary preemption; see `running`.
    Stable = 32,
    /// The set is the second instance of a task; see `backups`.
    Backup = 64,
    /// The scheduler knows the request; see `remote`.
    Listed = 128,
}

impl ActiveSet {
    fn has(&self, flag: SetFlag) -> bool {
        self.flags & flag as u8 != 0
    }

    /// Sets or clears a property.
    pub fn mark(&mut self, flag: SetFlag, applies: bool) {
        self.flags = if applies { self.flags | flag as u8 } else { self.flags & !(flag as u8) };
    }

    /// Returns whether the set waits for a stage, and is not in its queue.
    pub fn awaits_stage(&self) -> bool {
        self.has(SetFlag::AwaitsStage)
    }

    /// Returns whether a stage released the set, rather than its own arrival.
    pub fn is_released(&self) -> bool {
        self.has(SetFlag::Released)
    }

    /// Returns whether the waiting tasks start all together or none does.
    pub fn is_gang(&self) -> bool {
        self.has(SetFlag::Gang)
    }

    /// Returns whether the tasks are exempt from voluntary preemption.
    pub fn is_stable(&self) -> bool {
        self.has(SetFlag::Stable)
    }

    /// Returns whether the set is the second instance of a task.
    pub fn is_backup(&self) -> bool {
        self.has(SetFlag::Backup)
    }

    /// Returns whether the scheduler knows the request.
    pub fn is_listed(&self) -> bool {
        self.has(SetFlag::Listed)
    }
}

/// The data of a set that most sets do not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct SetDetails {
    pub submit: Time,
    /// Start of the current wait: the release, or the instant at which the tasks were stopped.
    pub since: Time,
    /// The run time of its tasks that the user declares normal; zero if unknown.
    pub normal: Span,
    /// The run time of earlier attempts up to their last checkpoint; `duration` excludes the work that was done in it.
    pub kept: Span,
    /// The stage, or [`NO_STAGE`].
    pub stage: u32,
    /// The number of times that the tasks were stopped before.
    pub attempt: u32,
    /// The scope that its row requires: tasks run best there. Absent if this is the scope of its queue.
    pub home: Option<ScopeId>,
}

impl SetDetails {
    /// Returns the details of a set without an entry in the table.
    fn plain(release: Time) -> SetDetails {
        SetDetails {
            submit: release,
            since: release,
            normal: Span::ZERO,
            kept: Span::ZERO,
            stage: NO_STAGE,
            attempt: 0,
            home: None,
        }
    }
}

/// Task sets with their demands and footprints, which are stored separately, one amount per dimension.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct Sets {
    dims: usize,
    /// Whether footprints equal demands.
    same: bool,
    slab: Vec<ActiveSet>,
    demands: Vec<u64>,
    footprints: Vec<u64>,
    /// By slot, the details of the sets with [`SetFlag::Detailed`]; other entries have no meaning. Empty until a set has details.
    details: Vec<SetDetails>,
    free: Vec<SetSlot>,
}

impl Sets {
    pub fn new(dims: usize, same: bool) -> Sets {
        let (slab, demands, footprints, details, free) = Default::default();
        Sets { dims, same, slab, demands, footprints, details, free }
    }

    /// Adds a row; its tasks are numbered from `first` within its job.
    pub fn add(
        &mut self,
        row: &TaskSet,
        job: JobSlot,
        first: u32,
        footprint: &[u64],
        (queue, partition): (QueueId, Partition),
    ) -> SetSlot {
        let mut set = ActiveSet {
            duration: row.duration,
            row: row.row,
            release: row.submit,
            job,
            user: row.user,
            left: row.tasks,
            waiting: row.tasks,
            number: first,
            queue,
            launch: u32::MAX,
            previous: SetSlot::NONE,
            next: SetSlot::NONE,
            partition,
            priority: row.priority,
            flags: SetFlag::Live as u8 | SetFlag::Listed as u8,
        };
        set.mark(SetFlag::Gang, row.gang && row.tasks > 1);
        set.mark(SetFlag::Stable, row.stable);
        let slot = self.insert(set);
        let at = slot.index() * self.dims;
        self.demands[at..at + self.dims].copy_from_slice(row.demand.slice(self.dims));
        if !self.same {
            self.footprints[at..at + self.dims].copy_from_slice(footprint);
        }
        if row.stage.is_some() || row.estimate.is_some() {
            let details = self.details_mut(slot);
            (details.stage, details.normal) = (row.stage.unwrap_or(NO_STAGE), row.estimate.unwrap_or_default());
        }
        slot
    }

    fn insert(&mut self, set: ActiveSet) -> SetSlot {
        if let Some(slot) = self.free.pop() {
            self.slab[slot.index()] = set;
            return slot;
        }
        self.slab.push(set);
        self.demands.resize(self.slab.len() * self.dims, 0);
        if !self.same {
            self.footprints.resize(self.slab.len() * self.dims, 0);
        }
        SetSlot(u32::try_from(self.slab.len() - 1).expect("fewer than 2^32 active rows"))
    }

    /// Creates a set of tasks of `from` that were stopped at `now` and will start again, without the work that they keep.
    pub fn again(&mut self, from: SetSlot, first: u32, tasks: u32, now: Time, keep: &Salvage) -> SetSlot {
        let (old, details) = (&self[from], self.details(from));
        let mut set = ActiveSet {
            // A task without an end has no saved work.
            duration: Span(old.duration.0 - keep.saved.0),
            waiting: tasks,
            left: tasks,
            number: first,
            launch: u32::MAX,
            ..old.clone()
        };
        set.mark(SetFlag::Backup, false);
        let slot = self.insert(set);
        for needs in [&mut self.demands, &mut self.footprints] {
            let (from, to) = (from.index() * self.dims, slot.index() * self.dims);
            if !needs.is_empty() {
                needs.copy_within(from..from + self.dims, to);
            }
        }
        *self.details_mut(slot) = SetDetails {
            kept: Span(details.kept.0.saturating_add(keep.kept.0)),
            since: now,
            attempt: details.attempt.saturating_add(1),
            ..details
        };
        slot
    }

    /// Returns the details of a set.
    pub fn details(&self, slot: SetSlot) -> SetDetails {
        let set = &self[slot];
        if set.has(SetFlag::Detailed) { self.details[slot.index()] } else { SetDetails::plain(set.release) }
    }

    /// Returns the details of a set for modification. The set gets an entry in the table.
    pub fn details_mut(&mut self, slot: SetSlot) -> &mut SetDetails {
        let set = &mut self.slab[slot.index()];
        let plain = SetDetails::plain(set.release);
        if self.details.len() <= slot.index() {
            self.details.resize(slot.index() + 1, plain);
        }
        let details = &mut self.details[slot.index()];
        if !set.has(SetFlag::Detailed) {
            *details = plain;
            set.mark(SetFlag::Detailed, true);
        }
        details
    }

    /// Sets the release of a set to another instant than its submission; the current wait starts at `since`.
    pub fn set_release(&mut self, slot: SetSlot, release: Time, since: Time) {
        self.details_mut(slot).since = since;
        self[slot].release = release;
    }

    pub fn free(&mut self, slot: SetSlot) {
        self[slot].mark(SetFlag::Live, false);
        self.free.push(slot);
    }

    /// Returns whether a slot contains a live set of a row.
    pub fn is_of(&self, slot: SetSlot, row: u64) -> bool {
        let set = &self.slab[slot.index()];
        set.has(SetFlag::Live) && set.row == row
    }

    /// Prefetches a set that is about to end into the cache.
    pub fn fetch(&self, slot: SetSlot) {
        prefetch_index(&self.slab, slot.index());
        prefetch_index(&self.demands, slot.index() * self.dims);
        if !self.same {
            prefetch_index(&self.footprints, slot.index() * self.dims);
        }
        if !self.details.is_empty() {
            prefetch_index(&self.details, slot.index());
        }
    }

    /// Returns demand and footprint of each task.
    pub fn needs(&self, slot: SetSlot) -> (&[u64], &[u64]) {
        let at = slot.index() * self.dims;
        let demand = &self.demands[at..at + self.dims];
        (demand, if self.same { demand } else { &self.footprints[at..at + self.dims] })
    }

    /// Returns all live sets, by row and number of the next task.
    pub fn by_row(&self) -> Vec<SetSlot> {
        let mut slots: Vec<SetSlot> =
            (0..self.slab.len() as u32).map(SetSlot).filter(|&slot| self[slot].has(SetFlag::Live)).collect();
        slots.sort_unstable_by_key(|&slot| (self[slot].row, self[slot].number));
        slots
    }
}

impl Index<SetSlot> for Sets {
    type Output = ActiveSet;
    fn index(&self, slot: SetSlot) -> &ActiveSet {
        &self.slab[slot.index()]
    }
}

impl IndexMut<SetSlot> for Sets {
    fn index_mut(&mut self, slot: SetSlot) -> &mut ActiveSet {
        &mut self.slab[slot.index()]
    }
}
