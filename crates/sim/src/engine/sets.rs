//! Active task sets, in a slab.

use std::ops::{Index, IndexMut};

use prefetch_index::prefetch_index;

use super::jobs::JobSlot;
use super::queues::QueueId;
use super::scopes::ScopeId;
use crate::books::Partition;
use crate::record::Salvage;
use crate::workload::TaskSet;
use plimsoll_base::units::{Span, Time, UserId};

/// A place in the slab of task sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SetSlot(u32);

impl SetSlot {
    /// The first place.
    pub const FIRST: SetSlot = SetSlot(0);
    /// No place.
    pub const NONE: SetSlot = SetSlot(u32::MAX);

    /// Its place in a list of sets.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A task set with something still to start or to end.
///
/// The fields that an end needs come first, in one line of the cache: with many tasks at once it is far away, and is fetched ahead.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct ActiveSet {
    /// From when on its tasks wait: its release, or when they were stopped.
    pub since: Time,
    pub submit: Time,
    pub duration: Span,
    pub job: JobSlot,
    pub user: UserId,
    /// Tasks not ended yet.
    pub left: u32,
    /// Its stage, or [`NO_STAGE`].
    pub stage: u32,
    /// How often its tasks were stopped before.
    pub attempt: u32,
    /// The partition that it is booked under besides its user.
    pub partition: Partition,
    live: bool,
    /// Waits for a stage, not in line.
    pub awaits_stage: bool,
    /// Released by a stage, not by its own arrival.
    pub released: bool,
    pub row: u64,
    pub release: Time,
    /// Where its tasks wait.
    pub queue: QueueId,
    /// Where they would run best.
    pub home: ScopeId,
    /// Tasks not launched yet.
    pub waiting: u32,
    /// Number within the job of the task that it launches next.
    pub number: u32,
    /// Where this set's launches of the current round are kept; see `Round`.
    pub launch: u32,
    /// Neighbours in its user's line; see `Queues`.
    pub previous: SetSlot,
    pub next: SetSlot,
    pub priority: u8,
    /// All tasks that wait start together or none does.
    pub gang: bool,
    /// Its tasks are never stopped by choice; see `victims`.
    pub stable: bool,
    /// It is the second instance of a task; see `backups`.
    pub backup: bool,
    /// The scheduler knows that its tasks are wanted; see `remote`.
    pub listed: bool,
    /// How long its tasks take as their user sees it; zero if that is not known.
    pub normal: Span,
    /// For how long its tasks ran in attempts before this one up to their last checkpoint: `duration` is without that.
    pub kept: Span,
}

const _: () = assert!(std::mem::offset_of!(ActiveSet, row) <= 64, "what an end needs is in one line of the cache");

/// No stage.
pub(super) const NO_STAGE: u32 = u32::MAX;

/// Task sets with their demands and footprints, which lie apart, as many as there are dimensions.
#[derive(Clone, Debug)]
pub struct Sets {
    dims: usize,
    /// Footprints equal demands.
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

    /// Keeps a row that starts at task number `first` of its job.
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

    /// Creates a set of tasks of `from` that were stopped at `now` and will start again, with their saved work.
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

    /// Whether a place holds a live set of a row.
    pub fn is_of(&self, slot: SetSlot, row: u64) -> bool {
        let set = &self.slab[slot.index()];
        set.live && set.row == row
    }

    /// Has a set that is about to end fetched into the cache.
    pub fn fetch(&self, slot: SetSlot) {
        prefetch_index(&self.slab, slot.index());
        prefetch_index(&self.demands, slot.index() * self.dims);
        if !self.same {
            prefetch_index(&self.footprints, slot.index() * self.dims);
        }
    }

    /// Demand and footprint of each task.
    pub fn needs(&self, slot: SetSlot) -> (&[u64], &[u64]) {
        let at = slot.index() * self.dims;
        let demand = &self.demands[at..at + self.dims];
        (demand, if self.same { demand } else { &self.footprints[at..at + self.dims] })
    }

    /// All live sets, by row.
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
