//! Active task sets, in a slab.
//!
//! A row of the workload becomes one set; stopped tasks become a new set with the same row. Demands and footprints are stored apart from
//! the sets, with exactly as many amounts as the cluster has dimensions. A slot is reused after its set has ended, so code that stores a
//! [`SetSlot`] must compare the row.

use std::ops::{Index, IndexMut};

use prefetch_index::prefetch_index;

use super::ids::{JobSlot, NO_STAGE, QueueId, ScopeId, SetSlot};
use crate::books::Partition;
use crate::record::Salvage;
use crate::workload::TaskSet;
use plimsoll_base::units::{Span, Time, UserId};

/// A task set with tasks that have not ended.
///
/// The fields that are used when tasks end come first, in one cache line. With many concurrent tasks this line is not in the cache, so it
/// is prefetched.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
#[repr(C, align(64))]
pub struct ActiveSet {
    /// Start of the current wait: the release, or the instant at which the tasks were stopped.
    pub since: Time,
    pub submit: Time,
    pub duration: Span,
    pub job: JobSlot,
    pub user: UserId,
    /// The number of tasks that have not ended.
    pub left: u32,
    /// The stage, or [`NO_STAGE`].
    pub stage: u32,
    /// The number of times that the tasks were stopped before.
    pub attempt: u32,
    /// The partition that the set is booked under besides its user.
    pub partition: Partition,
    live: bool,
    /// Whether the set waits for a stage, and is not in its queue.
    pub awaits_stage: bool,
    /// Whether a stage released it, rather than its own arrival.
    pub released: bool,
    pub row: u64,
    pub release: Time,
    /// The queue of its waiting tasks.
    pub queue: QueueId,
    /// The scope that its row requires; tasks run best in it.
    pub home: ScopeId,
    /// The number of tasks that have not been launched.
    pub waiting: u32,
    /// The number within the job of the next task to launch.
    pub number: u32,
    /// The index of this set's last launch in the current round; see `Kernel::launches`.
    pub launch: u32,
    /// The neighbours in its queue; see `Queues`.
    pub previous: SetSlot,
    pub next: SetSlot,
    pub priority: u8,
    /// Whether the waiting tasks start all together or none does.
    pub gang: bool,
    /// Whether its tasks are exempt from voluntary preemption; see `running`.
    pub stable: bool,
    /// Whether the set is the second instance of a task; see `backups`.
    pub backup: bool,
    /// Whether the scheduler knows the request; see `remote`.
    pub listed: bool,
    /// The run time of its tasks that the user declares normal; zero if unknown.
    pub normal: Span,
    /// The run time of earlier attempts up to their last checkpoint; `duration` excludes the work that was done in it.
    pub kept: Span,
}

const _: () = assert!(std::mem::offset_of!(ActiveSet, row) <= 64, "what an end needs is in one line of the cache");

/// Task sets with their demands and footprints, which are stored separately, one amount per dimension.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct Sets {
    dims: usize,
    /// Whether footprints equal demands.
    same: bool,
    slab: Vec<ActiveSet>,
    demands: Vec<u64>,
    footprints: Vec<u64>,
    free: Vec<SetSlot>,
}

impl Sets {
    pub fn new(dims: usize, same: bool) -> Sets {
        Sets { dims, same, slab: Vec::new(), demands: Vec::new(), footprints: Vec::new(), free: Vec::new() }
    }

    /// Adds a row; its tasks are numbered from `first` within its job.
    pub fn add(
        &mut self,
        row: &TaskSet,
        job: JobSlot,
        first: u32,
        footprint: &[u64],
        at: (QueueId, ScopeId, Partition),
    ) -> SetSlot {
        let set = ActiveSet {
            row: row.row,
            release: row.submit,
            since: row.submit,
            submit: row.submit,
            duration: row.duration,
            job,
            user: row.user,
            queue: at.0,
            home: at.1,
            partition: at.2,
            waiting: row.tasks,
            left: row.tasks,
            number: first,
            stage: row.stage.unwrap_or(NO_STAGE),
            launch: u32::MAX,
            previous: SetSlot::NONE,
            next: SetSlot::NONE,
            priority: row.priority,
            attempt: 0,
            gang: row.gang && row.tasks > 1,
            stable: row.stable,
            backup: false,
            listed: true,
            normal: row.estimate.unwrap_or_default(),
            kept: Span::ZERO,
            released: false,
            awaits_stage: false,
            live: true,
        };
        let slot = self.insert(set);
        let at = slot.index() * self.dims;
        self.demands[at..at + self.dims].copy_from_slice(row.demand.slice(self.dims));
        if !self.same {
            self.footprints[at..at + self.dims].copy_from_slice(footprint);
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
        let old = &self[from];
        let set = ActiveSet {
            // A task without an end has no saved work.
            duration: Span(old.duration.0 - keep.saved.0),
            kept: Span(old.kept.0.saturating_add(keep.kept.0)),
            since: now,
            waiting: tasks,
            left: tasks,
            number: first,
            launch: u32::MAX,
            backup: false,
            attempt: old.attempt.saturating_add(1),
            ..old.clone()
        };
        let slot = self.insert(set);
        for needs in [&mut self.demands, &mut self.footprints] {
            let (from, to) = (from.index() * self.dims, slot.index() * self.dims);
            if !needs.is_empty() {
                needs.copy_within(from..from + self.dims, to);
            }
        }
        slot
    }

    pub fn free(&mut self, slot: SetSlot) {
        self.slab[slot.index()].live = false;
        self.free.push(slot);
    }

    /// Returns whether a slot contains a live set of a row.
    pub fn is_of(&self, slot: SetSlot, row: u64) -> bool {
        let set = &self.slab[slot.index()];
        set.live && set.row == row
    }

    /// Prefetches a set that is about to end into the cache.
    pub fn fetch(&self, slot: SetSlot) {
        prefetch_index(&self.slab, slot.index());
        prefetch_index(&self.demands, slot.index() * self.dims);
        if !self.same {
            prefetch_index(&self.footprints, slot.index() * self.dims);
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
            (0..self.slab.len() as u32).map(SetSlot).filter(|&slot| self[slot].live).collect();
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
