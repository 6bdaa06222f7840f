//! The scheduling round: serves queues in rank order until no task fits.
//!
//! In rank order, each queue with an untried next task is tried once on all machines. Blocked queues are searched only for tasks that fit
//! machines which were freed since the queues were tried; see [`QueueState`]. The round reads the kernel and changes it through its verbs.
//!
//! Rounds with backfilling, with a final choice, and of policies that rank users by machine are in `backfill`, `hold` and `by_machine`;
//! launches that a caller decides are in `manual`.

pub mod backfill;
mod by_machine;
mod hold;
mod manual;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use hold::HeldSet;
pub use manual::NextSet;

use super::kernel::{GangPlan, Kernel, LineKey, QueueId, QueueState, SetSlot};
use crate::policy::Needs;
use crate::record::Turn;
use plimsoll_base::checkpoint::{Checkpoint, Visitor};
use plimsoll_base::error::Result;
use plimsoll_base::named;
use plimsoll_base::units::MachineId;
use plimsoll_base::visit_values;

named! {
    /// The rule of a round for a next task in rank order that does not fit.
    OnBlocked {
        Skip "skip": "The next user in rank order is tried",
        Stop "stop": "The round ends, as in the DRF paper's Algorithm 1",
        /// See `backfill`.
        Easy "easy": "The first in line gets a reservation, and others may start if they do not delay it",
        /// See `backfill`.
        Conservative "conservative": "All in line get reservations, and others may start if they delay none before them",
        /// See `hold`.
        Hold "hold": "It is kept until it fits, even if a later arrival would be first, and no other set starts",
        /// See `hold`.
        HoldBackfill "hold-backfill": "As hold, and others may start if they end before it fits, by the estimates at the choice",
    }
}

impl OnBlocked {
    /// Returns whether tasks may start ahead of others, based on the expected ends of running tasks.
    pub fn backfills(self) -> bool {
        !matches!(self, OnBlocked::Skip | OnBlocked::Stop)
    }
}

impl OnBlocked {
    /// Returns whether a choice is final, so that the events of an instant are applied one by one.
    pub fn is_final(self) -> bool {
        matches!(self, OnBlocked::Hold | OnBlocked::HoldBackfill)
    }
}

impl From<named::OnBlocked> for OnBlocked {
    fn from(rule: named::OnBlocked) -> OnBlocked {
        match rule {
            named::OnBlocked::Skip => OnBlocked::Skip,
            named::OnBlocked::Stop => OnBlocked::Stop,
        }
    }
}

/// Places gangs that may reserve room before there is enough room for all of their tasks.
pub trait GangPlacement {
    /// Returns whether gangs reserve room.
    fn reserves(&self) -> bool;

    /// Returns the machine of a gang's first task if there is room for all of its tasks, and replaces `plan`. Without enough room,
    /// reserves the room that is free.
    fn place_gang(&mut self, kernel: &mut Kernel, slot: SetSlot, plan: &mut GangPlan) -> Option<MachineId>;
}

/// Untried queues with their position.
#[derive(Default, serde::Serialize, serde::Deserialize)]
struct UntriedQueues {
    /// Queues that were untried at the beginning of the round, in reverse order. Sorting them costs less than a heap, because most of them
    /// are popped once.
    sorted: Vec<(LineKey, QueueId)>,
    /// Queues that joined or moved during the round.
    moved: BinaryHeap<Reverse<(LineKey, QueueId)>>,
}

impl UntriedQueues {
    /// Returns the first queue in rank order.
    fn peek(&self) -> Option<(LineKey, QueueId)> {
        let moved = self.moved.peek().map(|Reverse(next)| next);
        self.sorted.last().into_iter().chain(moved).min().copied()
    }

    /// Removes the queue that [`UntriedQueues::peek`] has returned.
    fn pop(&mut self, next: &(LineKey, QueueId)) {
        if self.sorted.last() == Some(next) {
            self.sorted.pop();
        } else {
            self.moved.pop();
        }
    }

    /// Adds a queue during the round. The queue may have been added before.
    fn push(&mut self, key: LineKey, queue: QueueId) {
        self.moved.push(Reverse((key, queue)));
    }
}

/// The rules of rounds, and state that persists from one round to the next.
pub struct Rounds {
    on_blocked: OnBlocked,
    /// Whether a launch may change the ranks of other users.
    moves_others: bool,
    /// Whether the policy prepares again after each launch.
    after_launches: bool,
    /// Whether the policy ranks users by machine.
    by_machine: bool,
    /// Whether the policy plans the machines of launches.
    nominates: bool,
    order: UntriedQueues,
    /// The placement of the gang that was tried last.
    plan: GangPlan,
    /// The set that is held until it fits, under `hold`.
    held: Option<HeldSet>,
}

impl Rounds {
    /// Creates the rounds of a policy with these needs.
    pub fn new(needs: &Needs, on_blocked: OnBlocked) -> Rounds {
        Rounds {
            on_blocked,
            moves_others: needs.moves_others,
            after_launches: needs.after_launches,
            by_machine: needs.by_machine,
            nominates: needs.nominates,
            order: UntriedQueues::default(),
            plan: GangPlan::new(),
            held: None,
        }
    }

    /// Returns the round with the kernel that it serves.
    pub fn with<'s, 'a>(&'s mut self, kernel: &'s mut Kernel<'a>, gangs: &'s mut dyn GangPlacement) -> Serving<'s, 'a> {
        Serving { round: self, kernel, gangs }
    }
}

/// A round in progress.
pub struct Serving<'s, 'a> {
    round: &'s mut Rounds,
    kernel: &'s mut Kernel<'a>,
    gangs: &'s mut dyn GangPlacement,
}

impl Serving<'_, '_> {
    /// Serves queues in rank order until no task fits, then starts the launched tasks. Errors: the policy's and the recorder's.
    pub fn serve(mut self) -> Result<()> {
        self.kernel.rerank_blocked();
        match self.round.on_blocked {
            OnBlocked::Skip if self.round.by_machine => self.serve_by_machine()?,
            OnBlocked::Skip => self.serve_skip()?,
            OnBlocked::Stop => self.serve_stop()?,
            OnBlocked::Easy | OnBlocked::Conservative => self.serve_backfill()?,
            OnBlocked::Hold | OnBlocked::HoldBackfill => self.serve_hold()?,
        }
        self.kernel.end_round();
        self.kernel.start_launched()
    }

    /// Returns the machine of the next task of a set, or of a gang's first task, if there is room. The plan of a gang is stored for its
    /// launch.
    fn room(&mut self, slot: SetSlot) -> Option<MachineId> {
        let Serving { round, kernel, gangs } = self;
        if round.nominates
            && let Some(machine) = kernel.nominated(slot, !gangs.reserves(), &mut round.plan)
        {
            return Some(machine);
        }
        if !kernel.set(slot).is_gang() {
            kernel.find_machine(slot)
        } else if gangs.reserves() {
            gangs.place_gang(kernel, slot, &mut round.plan)
        } else {
            kernel.room_for_all(slot, &mut round.plan)
        }
    }

    /// Launches the next task of the queue's head on a machine, or all of a gang as planned.
    fn launch(&mut self, queue: QueueId, machine: MachineId) {
        let slot = self.kernel.waiting_head(queue);
        if self.kernel.set(slot).is_gang() {
            self.kernel.launch(slot, &self.round.plan);
        } else {
            self.kernel.launch(slot, &[(machine, 1)]);
        }
    }

    /// Calls the preparation of the policy again after a launch, if the policy requires this. Returns whether it did. Errors: the
    /// policy's.
    fn prepared_again(&mut self) -> Result<bool> {
        if !self.round.after_launches || !self.kernel.take_launched() {
            return Ok(false);
        }
        if self.kernel.prepare()? {
            while let Some((key, queue)) = self.round.order.peek() {
                self.round.order.pop(&(key, queue));
                self.kernel.set_untried(queue);
            }
        }
        self.kernel.rerank_blocked();
        Ok(true)
    }

    /// Moves untried queues into the order of the round.
    fn join_untried(&mut self) {
        let Rounds { order, .. } = &mut *self.round;
        while let Some(queue) = self.kernel.take_untried() {
            order.sorted.push((self.kernel.line_key(queue), queue));
        }
        order.sorted.sort_unstable_by(|a, b| b.cmp(a));
    }

    /// Returns whether launches of this round have changed the position of a queue.
    fn moved(&self, queue: QueueId, key: LineKey) -> bool {
        (self.round.moves_others || self.kernel.queues().has_siblings(queue)) && self.kernel.line_key(queue) != key
    }

    /// Blocks a queue again at its present position.
    fn reblock(&mut self, queue: QueueId, old: &LineKey) {
        self.kernel.unblock(queue, old);
        let key = self.kernel.line_key(queue);
        self.kernel.block(queue, key);
    }

    fn serve_stop(&mut self) -> Result<()> {
        loop {
            self.prepared_again()?;
            while let Some(queue) = self.kernel.take_untried() {
                let key = self.kernel.line_key(queue);
                self.kernel.block(queue, key);
            }
            let Some((key, queue)) = self.kernel.first_blocked() else { break };
            if self.moved(queue, key) {
                self.reblock(queue, &key);
                continue;
            }
            if !self.kernel.admit_head(queue, key)? {
                self.kernel.unblock(queue, &key);
                continue;
            }
            let head = self.kernel.waiting_head(queue);
            let Some(machine) = self.room(head) else {
                self.kernel.record_turn(queue, key, Turn::Blocked(None))?;
                break;
            };
            self.kernel.unblock(queue, &key);
            self.kernel.record_turn(queue, key, Turn::Launched(Some(machine)))?;
            self.launch(queue, machine);
            if self.kernel.head(queue).is_some() {
                let key = self.kernel.line_key(queue);
                self.kernel.block(queue, key);
            } else {
                self.kernel.set_queue_state(queue, QueueState::Idle);
            }
        }
        Ok(())
    }

    fn serve_skip(&mut self) -> Result<()> {
        self.join_untried();
        self.kernel.offer_freed();
        let mut from: Option<LineKey> = None;
        let mut candidate = self.kernel.next_fitting(None);
        loop {
            if self.prepared_again()? {
                self.join_untried();
                from = None;
                candidate = self.kernel.next_fitting(None);
            }
            let untried = self.round.order.peek();
            match (untried, candidate) {
                (None, None) => break,
                (Some((key, queue)), blocked) if blocked.is_none_or(|(other, _)| key < other) => {
                    self.round.order.pop(&(key, queue));
                    if self.moved(queue, key) {
                        self.round.order.push(self.kernel.line_key(queue), queue);
                    } else if self.try_untried(queue, key)? && candidate.is_some() {
                        candidate = self.kernel.next_fitting(from.as_ref());
                    }
                }
                (_, Some((key, queue))) if self.moved(queue, key) => {
                    self.reblock(queue, &key);
                    candidate = self.kernel.next_fitting(from.as_ref());
                }
                (_, Some((key, queue))) => {
                    from = Some(self.try_blocked(queue, key)?);
                    candidate = self.kernel.next_fitting(from.as_ref());
                }
                (Some(_), None) => unreachable!("the guard of the second arm holds without a blocked candidate"),
            }
        }
        Ok(())
    }

    /// Launches the next task of an untried queue, or blocks the queue. Returns whether it launched a task.
    fn try_untried(&mut self, queue: QueueId, key: LineKey) -> Result<bool> {
        if !self.kernel.admit_head(queue, key)? {
            return Ok(false);
        }
        let head = self.kernel.waiting_head(queue);
        let Some(machine) = self.room(head) else {
            self.kernel.record_turn(queue, key, Turn::Blocked(None))?;
            self.kernel.block(queue, key);
            return Ok(false);
        };
        self.kernel.record_turn(queue, key, Turn::Launched(Some(machine)))?;
        self.launch(queue, machine);
        self.requeue(queue, head, true);
        Ok(true)
    }

    /// Launches the next task of a blocked queue if it really fits. Returns the position where the search continues.
    fn try_blocked(&mut self, queue: QueueId, key: LineKey) -> Result<LineKey> {
        let behind = LineKey { number: key.number + 1, ..key };
        if !self.kernel.admit_head(queue, key)? {
            self.kernel.unblock(queue, &key);
            return Ok(behind);
        }
        let head = self.kernel.waiting_head(queue);
        // The free amounts suffice for one task. But a gang may lack room, or no device may fit.
        let Some(machine) = self.room(head) else {
            if self.gangs.reserves() {
                self.kernel.update_offers();
            }
            return Ok(behind);
        };
        self.kernel.unblock(queue, &key);
        self.kernel.record_turn(queue, key, Turn::Launched(Some(machine)))?;
        self.launch(queue, machine);
        Ok(self.requeue(queue, head, false).map_or(behind, |again| again.min(behind)))
    }

    /// Updates the state of a queue that has just launched a task of `served`. Returns its new position if it is blocked.
    fn requeue(&mut self, queue: QueueId, served: SetSlot, untried: bool) -> Option<LineKey> {
        let Some(head) = self.kernel.head(queue) else {
            self.kernel.set_queue_state(queue, QueueState::Idle);
            return None;
        };
        let key = self.kernel.line_key(queue);
        if untried || head != served {
            self.kernel.set_queue_state(queue, QueueState::Untried);
            self.round.order.push(key, queue);
            return None;
        }
        self.kernel.block(queue, key);
        Some(key)
    }
}

impl Checkpoint for Rounds {
    fn visit(&mut self, visitor: &mut Visitor) -> Result<()> {
        let Rounds {
            on_blocked: _,
            moves_others: _,
            after_launches: _,
            by_machine: _,
            nominates: _,
            order,
            // Only used within a round.
            plan: _,
            held,
        } = self;
        visit_values!(visitor; order, held);
        Ok(())
    }
}
