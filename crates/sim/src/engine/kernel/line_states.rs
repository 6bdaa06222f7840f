//! The state of every queue with respect to rounds: untried, blocked, postponed or idle; and the ranks that must be recomputed.
//!
//! A queue is *untried* if its next task may fit somewhere. It is *blocked* if its next task was tried on all machines and fitted nowhere;
//! it is then in the [`Line`](super::line::Line) of its scope. Only a machine of the scope that is freed later can have room for the task.
//! The verbs of the kernel keep these states up to date; rounds decide which queues are served.

use super::Kernel;
use super::ids::{QueueId, SetSlot};
use super::line::LineKey;
use crate::books::Partition;
use crate::policy::{Ask, Stale, Verdict};
use crate::record::Turn;
use plimsoll_base::error::Result;
use plimsoll_base::units::MachineId;

/// The state of a queue with respect to rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum QueueState {
    /// No task waits, or the policy did not admit the next task in this round.
    Idle,
    /// The next task has not been tried.
    Untried,
    /// The next task fits no machine, except possibly machines that were freed later.
    Blocked,
    /// The policy postponed the next task ([`Verdict::Wait`]).
    Postponed,
}

/// The states of all queues, and the changes since the last round.
#[derive(Default, serde::Serialize, serde::Deserialize)]
pub(super) struct QueueStates {
    by_queue: Vec<QueueState>,
    /// The position of each blocked queue in its line.
    keys: Vec<LineKey>,
    untried: Vec<QueueId>,
    /// Blocked queues of users with an allocation that has changed since the queues were ranked.
    rerank: Vec<QueueId>,
    /// Machines with more free room than at the last search of the lines.
    freed: Vec<MachineId>,
    /// Queues that the policy did not admit in this round.
    refused: Vec<QueueId>,
    /// Whether the policy has postponed any queue so far.
    postpones: bool,
}

impl QueueStates {
    /// Grows the tables to this number of queues.
    pub fn open(&mut self, queues: usize) {
        self.by_queue.resize(queues, QueueState::Idle);
        self.keys.resize(queues, LineKey::default());
    }

    /// Records that a machine has more free room than before.
    pub fn add_freed(&mut self, machine: MachineId) {
        if self.freed.last() != Some(&machine) {
            self.freed.push(machine);
        }
    }

    /// Sorts the freed machines.
    fn sort_freed(&mut self) {
        self.freed.sort_unstable();
        self.freed.dedup();
    }

    /// Records that the rank of a queue may have changed.
    pub fn rerank(&mut self, queue: QueueId) {
        if self.by_queue[queue.index()] == QueueState::Blocked {
            self.rerank.push(queue);
        }
    }

    /// Schedules a queue to be ranked again or, if the policy postponed it, to be tried again.
    fn recall(&mut self, queue: QueueId) {
        if self.by_queue[queue.index()] == QueueState::Postponed {
            self.by_queue[queue.index()] = QueueState::Untried;
            self.untried.push(queue);
        }
        self.rerank(queue);
    }
}

impl Kernel<'_> {
    /// Returns the state of a queue.
    pub fn queue_state(&self, queue: QueueId) -> QueueState {
        self.line_states.by_queue[queue.index()]
    }

    /// Returns the position of a blocked queue in its line.
    pub fn blocked_at(&self, queue: QueueId) -> LineKey {
        self.line_states.keys[queue.index()]
    }

    /// Removes and returns the last untried queue. The caller tries it in this round.
    pub fn take_untried(&mut self) -> Option<QueueId> {
        self.line_states.untried.pop()
    }

    /// Removes and returns all untried queues.
    pub fn take_all_untried(&mut self) -> Vec<QueueId> {
        std::mem::take(&mut self.line_states.untried)
    }

    /// Returns the machines that were freed since the last round, sorted.
    pub fn freed(&mut self) -> &[MachineId] {
        self.line_states.sort_freed();
        &self.line_states.freed
    }

    /// Offers the machines that were freed since the last round to the lines of their scopes.
    pub fn offer_freed(&mut self) {
        if self.site.scopes.has_no_blocked() {
            return;
        }
        self.line_states.sort_freed();
        self.site.scopes.offer(&self.line_states.freed, &self.site.machines);
    }

    /// Updates the offers after reservations, which are not launches.
    pub fn update_offers(&mut self) {
        self.site.scopes.all_less(&self.site.machines);
    }

    /// Returns the first blocked queue at or after a position that fits an offered machine.
    pub fn next_fitting(&mut self, from: Option<&LineKey>) -> Option<(LineKey, QueueId)> {
        self.site.scopes.search(from)
    }

    /// Returns the first blocked queue of all lines.
    pub fn first_blocked(&self) -> Option<(LineKey, QueueId)> {
        self.site.scopes.first()
    }

    /// Returns all blocked queues.
    pub fn blocked(&self) -> Vec<QueueId> {
        self.site.scopes.blocked()
    }

    /// Ends a round: machines that were freed before it are no longer offered, and refused queues are tried again in the next round. Freed
    /// machines matter to blocked queues only, since every task that waits later is tried on all machines first.
    pub fn end_round(&mut self) {
        self.line_states.freed.clear();
        self.site.scopes.round_over();
        while let Some(queue) = self.line_states.refused.pop() {
            self.set_untried(queue);
        }
    }

    /// Marks a queue as untried because its next task has changed.
    pub(super) fn head_changed(&mut self, queue: QueueId) {
        match std::mem::replace(&mut self.line_states.by_queue[queue.index()], QueueState::Untried) {
            QueueState::Untried => return,
            QueueState::Blocked => self.leave_line(queue),
            QueueState::Idle | QueueState::Postponed => {}
        }
        self.line_states.untried.push(queue);
    }

    /// Marks a queue as idle because it became empty outside a round.
    pub(super) fn emptied(&mut self, queue: QueueId) {
        match std::mem::replace(&mut self.line_states.by_queue[queue.index()], QueueState::Idle) {
            QueueState::Blocked => self.leave_line(queue),
            QueueState::Untried => self.line_states.untried.retain(|other| *other != queue),
            QueueState::Idle | QueueState::Postponed => {}
        }
    }

    /// Updates the state of a queue after a launch outside a round.
    pub fn queue_served(&mut self, queue: QueueId) {
        match self.head(queue) {
            Some(_) => self.head_changed(queue),
            None => self.emptied(queue),
        }
    }

    /// Sets the state of a queue that a round has tried: untried for the next round if tasks wait, otherwise idle.
    pub fn retry(&mut self, queue: QueueId) {
        let waits = self.head(queue).is_some();
        self.line_states.by_queue[queue.index()] = if waits { QueueState::Untried } else { QueueState::Idle };
        self.line_states.untried.extend(waits.then_some(queue));
    }

    /// Marks a queue as untried, and adds it to the untried queues.
    pub fn set_untried(&mut self, queue: QueueId) {
        self.line_states.by_queue[queue.index()] = QueueState::Untried;
        self.line_states.untried.push(queue);
    }

    /// Sets the state of a queue that is in the order of the round.
    pub fn set_queue_state(&mut self, queue: QueueId, state: QueueState) {
        self.line_states.by_queue[queue.index()] = state;
    }

    /// Puts a queue in the line of its scope at this position.
    pub fn block(&mut self, queue: QueueId, key: LineKey) {
        let head = self.waiting_head(queue);
        let need = self.work.sets.needs(head).1;
        self.site.scopes.enqueue(self.work.queues.scope(queue), key, queue, need);
        self.line_states.by_queue[queue.index()] = QueueState::Blocked;
        self.line_states.keys[queue.index()] = key;
    }

    /// Removes a queue from its line at this position; the caller sets its state.
    pub fn unblock(&mut self, queue: QueueId, key: &LineKey) {
        self.site.scopes.leave(self.work.queues.scope(queue), key);
    }

    fn leave_line(&mut self, queue: QueueId) {
        let key = self.line_states.keys[queue.index()];
        self.unblock(queue, &key);
    }

    /// Calls the policy's preparation of a round. Returns whether all ranks may have changed. Errors: the policy's.
    pub fn prepare(&mut self) -> Result<bool> {
        self.launched = false;
        let changed = &mut self.changes.users;
        let stale = self.context.policy.prepare(self.now, &self.books, &changed.since_round)?;
        changed.read_by_policy();
        let all = stale == Stale::All;
        self.recall_stale(stale);
        Ok(all)
    }

    /// Schedules the queues of users that the policy reports as stale to be ranked and tried again.
    pub(super) fn recall_stale(&mut self, stale: Stale) {
        match stale {
            Stale::None => {}
            Stale::Some(users) => {
                for user in users {
                    self.work.queues.queues_of(user).for_each(|queue| self.line_states.recall(queue));
                }
            }
            Stale::All => {
                self.line_states.rerank = self.site.scopes.blocked();
                if self.line_states.postpones {
                    (0..self.work.queues.len() as u32).for_each(|queue| self.line_states.recall(QueueId(queue)));
                }
            }
        }
    }

    /// Moves blocked queues to their positions by their present ranks.
    pub fn rerank_blocked(&mut self) {
        while let Some(queue) = self.line_states.rerank.pop() {
            if self.line_states.by_queue[queue.index()] == QueueState::Blocked {
                let (old, key) = (self.line_states.keys[queue.index()], self.line_key(queue));
                if key != old {
                    self.unblock(queue, &old);
                    self.block(queue, key);
                }
            }
        }
    }

    /// Returns the position of a queue in the scheduling order. Panics: if the queue is empty (a programmer error).
    pub fn line_key(&self, queue: QueueId) -> LineKey {
        self.line_key_of(self.waiting_head(queue))
    }

    /// Returns the position of a waiting set in the scheduling order, as if it were the next of its queue.
    pub fn line_key_of(&self, head: SetSlot) -> LineKey {
        let set = &self.work.sets[head];
        let rank = self.context.policy.rank(&self.work.view(head), &self.books);
        let tie = self.ties.key(set.user, &self.books);
        let (turn, number) = self.work.turn(head);
        LineKey { rank, tie, turn, number }
    }

    /// Returns whether the policy admits this number of further tasks of a queue's next set.
    pub fn admits(&self, queue: QueueId, tasks: u32) -> bool {
        let Some(head) = self.head(queue) else { return false };
        self.context.policy.admit(&self.work.view(head), &self.ask(head, tasks), &self.books) == Verdict::Yes
    }

    /// Requests admission of the next task of a queue from the policy. Returns `false` if the policy refused: the decision is recorded, the
    /// queue is skipped, and the caller must remove it from its line if it is in one. Errors: the recorder's.
    pub fn admit_head(&mut self, queue: QueueId, key: LineKey) -> Result<bool> {
        let head = self.waiting_head(queue);
        let (demand, footprint) = self.work.sets.needs(head);
        let set = &self.work.sets[head];
        let (view, partition) = (self.work.view(head), set.partition);
        let ask = Ask { footprint, demand, tasks: if set.is_gang() { set.waiting } else { 1 } };
        let (reason, waits) = match self.context.policy.admit(&view, &ask, &self.books) {
            Verdict::Yes => return Ok(true),
            Verdict::No(reason) => (reason, false),
            // A policy that postpones one task of a user does not know that other tasks of the user are tried in the meantime. So the
            // queue is not postponed if there are such tasks.
            Verdict::Wait(reason) => (reason, !self.has_rivals(queue, partition)),
        };
        self.line_states.by_queue[queue.index()] = if waits {
            if let Some(list) = self.context.policy.wait_list() {
                list.postpone(&view, &ask);
            }
            self.line_states.postpones = true;
            QueueState::Postponed
        } else {
            self.line_states.refused.push(queue);
            QueueState::Idle
        };
        self.record_turn(queue, key, Turn::NotAdmitted(reason))?;
        Ok(false)
    }

    /// Returns whether other tasks wait that the policy cannot distinguish: tasks of the same user in the same partition.
    fn has_rivals(&self, queue: QueueId, partition: Partition) -> bool {
        let rival = |other: QueueId| {
            other != queue && self.head(other).is_some_and(|head| self.work.sets[head].partition == partition)
        };
        self.work.queues.has_siblings(queue) && self.work.queues.queues_of(self.work.queues.user(queue)).any(rival)
    }
}
