//! Rounds with a final choice (`on_blocked` is `hold` or `hold-backfill`): a set that was chosen but does not fit is kept until it fits, also
//! if a set that arrives later would be first.
//!
//! Without backfilling no other set starts meanwhile. With `hold-backfill` the shadow time of the chosen set is computed once, when it is
//! found blocked: the instant at which enough of the tasks that run then have ended by their estimates. It stays, even if tasks end earlier.
//! In every round until the chosen set fits, each other waiting set with room starts if it ends by its estimate before the shadow time, in
//! the order of submission. There is no rule for spare amounts: a set that is too long never passes, even beside the reservation.
//!
//! Source: the simulator of Zhang et al., RLScheduler, SC 2020. As there, the events of an instant are applied one by one, arrivals before
//! ends, with a round after each. Placement is `pooled`. Cost of a round: O(w log w) per decision for w waiting sets, and O(r log r) for r running
//! sets when a set is found blocked.

use super::backfill::POOL;
use super::{OnBlocked, Serving};
use crate::engine::kernel::{LineKey, QueueId, SetSlot, place};
use crate::policy::{Reason, Verdict};
use crate::record::Turn;
use plimsoll_base::error::Result;
use plimsoll_base::units::{Span, Time};

/// The reason why a set with room does not start while another one is held.
const HELD: Reason = Reason::Rule("another task was chosen before and does not fit yet");

/// The chosen set that does not fit yet, and its shadow time.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct HeldSet {
    slot: SetSlot,
    shadow: Time,
}

impl Serving<'_, '_> {
    /// Starts the first sets in rank order until one does not fit, which is then held. Errors: the recorder's.
    pub(in crate::engine) fn serve_hold(&mut self) -> Result<()> {
        let queues = self.kernel.take_all_untried();
        loop {
            let sets = self.waiting_in_order(&queues);
            let held = self.round.held.filter(|held| sets.iter().any(|(_, slot)| *slot == held.slot));
            let chosen = match held {
                Some(held) => Some((self.kernel.line_key_of(held.slot), held.slot)),
                None => self.first_admitted(&sets)?,
            };
            let Some((place, slot)) = chosen else { break };
            if self.has_room(slot) {
                self.round.held = None;
                self.start_all(slot, place)?;
                continue;
            }
            self.kernel.record_decision(slot, place, Turn::Blocked(None), None)?;
            let held = held.unwrap_or_else(|| HeldSet { slot, shadow: self.shadow(slot) });
            self.round.held = Some(held);
            if self.round.on_blocked == OnBlocked::HoldBackfill {
                self.start_before(held, &queues)?;
            }
            break;
        }
        queues.into_iter().for_each(|queue| self.kernel.retry(queue));
        Ok(())
    }

    /// Returns all waiting sets with their positions, the first one first.
    fn waiting_in_order(&self, queues: &[QueueId]) -> Vec<(LineKey, SetSlot)> {
        let sets = queues.iter().flat_map(|queue| self.kernel.in_order(*queue));
        let sets = sets.filter(|slot| self.kernel.set(*slot).waiting > 0);
        let mut sets: Vec<(LineKey, SetSlot)> = sets.map(|slot| (self.kernel.line_key_of(slot), slot)).collect();
        sets.sort_unstable();
        sets
    }

    /// Returns the first set that the policy admits. Errors: the recorder's.
    fn first_admitted(&mut self, sets: &[(LineKey, SetSlot)]) -> Result<Option<(LineKey, SetSlot)>> {
        for &(place, slot) in sets {
            if self.is_admitted(slot, place)? {
                return Ok(Some((place, slot)));
            }
        }
        Ok(None)
    }

    fn together(&self, slot: SetSlot) -> u32 {
        let set = self.kernel.set(slot);
        if set.is_gang() { set.waiting } else { 1 }
    }

    fn is_admitted(&mut self, slot: SetSlot, place: LineKey) -> Result<bool> {
        let ask = self.kernel.ask(slot, self.together(slot));
        match self.kernel.policy().admit(&self.kernel.view(slot), &ask, self.kernel.books()) {
            Verdict::No(reason) | Verdict::Wait(reason) => {
                self.kernel.record_decision(slot, place, Turn::NotAdmitted(reason), None)?;
                Ok(false)
            }
            _ => Ok(true),
        }
    }

    fn has_room(&self, slot: SetSlot) -> bool {
        let free = self.kernel.machines().free(POOL);
        self.need_of(slot).iter().zip(free.0).all(|(need, free)| *need <= free)
    }

    fn start_all(&mut self, slot: SetSlot, place: LineKey) -> Result<()> {
        let together = self.together(slot);
        self.kernel.record_decision(slot, place, Turn::Launched(Some(POOL)), None)?;
        self.kernel.launch(slot, &[(POOL, together)]);
        Ok(())
    }

    /// Returns the instant at which a set will fit by the estimates of the running tasks; the end of time if it never will.
    fn shadow(&self, slot: SetSlot) -> Time {
        let end = |start: Time, span: Span| Time(start.0.saturating_add(span.0));
        let ends = self.kernel.all_running().map(|tasks| (end(tasks.start, self.expected(tasks.set)), tasks));
        let mut ends: Vec<_> = ends.map(|(end, tasks)| (end, tasks.set, tasks.count.get())).collect();
        // Tasks that were launched in this round run, too, but are not in the list yet.
        ends.extend(
            self.kernel.launched_now().map(|(set, count)| (end(self.kernel.now(), self.expected(set)), set, count)),
        );
        ends.sort_unstable();
        let need = self.need_of(slot);
        let mut free = self.kernel.machines().free(POOL);
        for (end, set, count) in ends {
            let back = self.kernel.needs(set).1;
            free.0.iter_mut().zip(back).for_each(|(free, back)| *free += back * u64::from(count));
            if need.iter().zip(free.0).all(|(need, free)| *need <= free) {
                return end;
            }
        }
        Time::NEVER
    }

    /// Starts the sets that end by their estimates before the shadow time, in the order of submission. Errors: the recorder's.
    fn start_before(&mut self, held: HeldSet, queues: &[QueueId]) -> Result<()> {
        let mut sets: Vec<(Time, u64, SetSlot)> = self
            .waiting_in_order(queues)
            .into_iter()
            .filter(|(_, slot)| *slot != held.slot)
            .map(|(_, slot)| (self.kernel.set(slot).release, place(self.kernel.set(slot)), slot))
            .collect();
        sets.sort_unstable();
        for (_, _, slot) in sets {
            let place = self.kernel.line_key_of(slot);
            while self.kernel.set(slot).waiting > 0 && self.has_room(slot) {
                let end = self.kernel.now().0.saturating_add(self.expected(slot).0);
                if end >= held.shadow.0 {
                    self.kernel.record_decision(slot, place, Turn::NotAdmitted(HELD), None)?;
                    break;
                }
                if !self.is_admitted(slot, place)? {
                    break;
                }
                self.start_all(slot, place)?;
            }
        }
        Ok(())
    }
}
