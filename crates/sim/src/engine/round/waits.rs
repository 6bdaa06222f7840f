//! Decisions on task sets that were not reached in a round: the log has a row for them, too.

use crate::engine::OnBlocked;
use crate::engine::kernel::Kernel;
use crate::engine::kernel::jobs::SetSlot;
use super::QueueState;
use crate::record::{Turn, Untried};
use plimsoll_base::error::Result;

/// Task sets that joined a queue since the last rounds; kept only if decisions are recorded.
#[derive(Default)]
pub(in crate::engine) struct Joined {
    slots: Vec<SetSlot>,
}

impl Kernel<'_> {
    /// Records that a set has joined its queue.
    pub(in crate::engine) fn note_joined(&mut self, slot: SetSlot) {
        if self.outside.recorder.wants_decisions() {
            self.joined.slots.push(slot);
        }
    }

    /// Records the decision "waits" for every set that joined a queue and was not tried in the rounds of an instant. Errors: the
    /// recorder's.
    pub(in crate::engine) fn record_untried(&mut self) -> Result<()> {
        let mut slots = std::mem::take(&mut self.joined.slots);
        // A slot is listed twice if its set ended and another one joined in its place.
        slots.sort_unstable_by_key(|slot| (self.work.sets[*slot].row, self.work.sets[*slot].number, *slot));
        slots.dedup();
        for slot in slots.drain(..) {
            if let Some((untried, first)) = self.untried(slot) {
                self.record_decision(slot, self.place_of(slot), Turn::Waits(untried), Some(first))?;
            }
        }
        self.joined.slots = slots;
        Ok(())
    }

    /// Returns why a set was not tried, and the set that it waits behind; `None` if it was tried, or waits no longer.
    fn untried(&self, slot: SetSlot) -> Option<(Untried, SetSlot)> {
        let set = &self.work.sets[slot];
        // Under backfilling every set that waits is tried.
        let queued = set.waiting > 0 && set.listed && !set.awaits_stage && set.release <= self.now;
        if !queued || !self.work.sets.is_of(slot, set.row) || self.options.on_blocked.backfills() {
            return None;
        }
        let head = self.work.queues.head(set.queue)?;
        if head != slot {
            return Some((Untried::BehindOwn, head));
        }
        let stopped = self.options.on_blocked == OnBlocked::Stop;
        let blocked = self.round.stand[set.queue.index()] == QueueState::Blocked;
        let (_, first) = self.site.scopes.first().filter(|_| stopped && blocked)?;
        (first != set.queue).then(|| Some((Untried::RoundEnded, self.work.queues.head(first)?))).flatten()
    }
}
