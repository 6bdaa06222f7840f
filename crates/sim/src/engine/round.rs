//! The scheduling round: serves queues in rank order until no task fits.
//!
//! A queue is *blocked* if its next task was tried on all machines and fitted nowhere. It is then stored in the line of its scope. Only a
//! machine of the scope that has been freed since then can admit the task, so a round searches the lines for demands within the free
//! amounts of those machines, and of no others. A queue is *fresh* if its next task is untried; it is tried on all machines once.
//!
//! Rounds with backfilling and rounds of policies that rank users by machine are in `backfill` and `by_machine`.

use super::OnBlocked;
use super::core::Core;
use super::hoard::Hoards;
use super::jobs::SetSlot;
use super::line::LineKey;
use super::queues::QueueId;
use super::running::Running;
use super::untried::UntriedQueues;
use crate::books::Partition;
use crate::policy::{Ask, Needs, PreemptsFor, Stale, Verdict};
use crate::record::{Decision, Turn};
use plimsoll_base::error::Result;
use plimsoll_base::units::MachineId;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QueueState {
    /// No task waits, or the policy did not admit the next task in this round.
    Out,
    /// The next task has not been tried.
    Fresh,
    /// The next task fits no machine, except possibly those freed since.
    Blocked,
    /// The policy postponed the next task ([`Verdict::Wait`]).
    Refused,
}

/// The state that persists from one round to the next.
#[derive(Default)]
pub struct RoundState {
    pub(super) stand: Vec<QueueState>,
    /// The position of each blocked queue in its line.
    pub(super) keys: Vec<LineKey>,
    pub(super) fresh: Vec<QueueId>,
    /// Blocked queues of users with a changed allocation since they were ranked.
    rerank: Vec<QueueId>,
    /// Queues that the policy did not admit in this round.
    gated: Vec<QueueId>,
    /// Machines with more free room than at the last search of the lines.
    pub(super) freed: Vec<MachineId>,
    order: UntriedQueues,
    pub launches: Vec<Running>,
    /// Whether the policy has postponed any queue so far.
    refuses: bool,
    /// Whether a launch may change the ranks of other users.
    moves_others: bool,
    /// Whether the policy prepares again after each launch.
    after_launches: bool,
    /// Whether the policy ranks users by machine.
    by_machine: bool,
    /// Whether tasks were launched since the last call of [`Core::prepare`].
    pub(super) launched: bool,
    /// Whether the policy stops running tasks.
    pub(super) preempts_for: PreemptsFor,
    /// Whether the policy plans the machines of launches.
    pub(super) nominates: bool,
}

impl RoundState {
    /// Creates the state for a policy with these needs.
    pub fn new(needs: &Needs) -> RoundState {
        RoundState {
            moves_others: needs.moves_others,
            after_launches: needs.after_launches,
            by_machine: needs.by_machine,
            preempts_for: needs.preempts_for,
            nominates: needs.nominates,
            ..RoundState::default()
        }
    }

    /// Discards the freed machines after a round without waiting tasks, which uses no room.
    pub fn forget_freed(&mut self) {
        self.freed.clear();
    }

    /// Grows the tables to this number of queues.
    pub fn open(&mut self, queues: usize) {
        self.stand.resize(queues, QueueState::Out);
        self.keys.resize(queues, LineKey::default());
    }

    /// Records that a machine has more free room than before.
    pub fn freed(&mut self, machine: MachineId) {
        if self.freed.last() != Some(&machine) {
            self.freed.push(machine);
        }
    }

    /// Records that the user of a queue has another allocation than before.
    pub fn rerank(&mut self, queue: QueueId) {
        if self.stand[queue.index()] == QueueState::Blocked {
            self.rerank.push(queue);
        }
    }

    /// Removes and returns all fresh queues.
    pub(super) fn take_fresh(&mut self) -> Vec<QueueId> {
        std::mem::take(&mut self.fresh)
    }

    /// Has a queue ranked again, and tried again if the policy postponed it.
    fn recall(&mut self, queue: QueueId) {
        if self.stand[queue.index()] == QueueState::Refused {
            self.stand[queue.index()] = QueueState::Fresh;
            self.fresh.push(queue);
        }
        self.rerank(queue);
    }
}

impl Core<'_> {
    /// Marks a queue as fresh because its next task has changed.
    pub(super) fn head_changed(&mut self, queue: QueueId) {
        match std::mem::replace(&mut self.round.stand[queue.index()], QueueState::Fresh) {
            QueueState::Fresh => return,
            QueueState::Blocked => {
                let place = self.round.keys[queue.index()];
                self.unblock(queue, &place);
            }
            QueueState::Out | QueueState::Refused => {}
        }
        self.round.fresh.push(queue);
    }

    /// Marks a queue as empty although no task was launched from it.
    pub(super) fn emptied(&mut self, queue: QueueId) {
        match std::mem::replace(&mut self.round.stand[queue.index()], QueueState::Out) {
            QueueState::Blocked => {
                let place = self.round.keys[queue.index()];
                self.unblock(queue, &place);
            }
            QueueState::Fresh => self.round.fresh.retain(|other| *other != queue),
            QueueState::Out | QueueState::Refused => {}
        }
    }

    /// Has the policy prepare a round. Returns whether all ranks may have changed. Errors: the policy's.
    pub(super) fn prepare(&mut self) -> Result<bool> {
        self.round.launched = false;
        let changed = &mut self.notes.changed;
        let stale = self.outside.policy.prepare(self.now, &self.books, &changed.since_round)?;
        changed.round_over();
        let all = stale == Stale::All;
        self.recall(stale);
        Ok(all)
    }

    /// Lets a policy that requires it prepare again after a launch. Returns whether it did. Errors: the policy's.
    fn prepared_again(&mut self) -> Result<bool> {
        if !std::mem::take(&mut self.round.launched) || !self.round.after_launches {
            return Ok(false);
        }
        if self.prepare()? {
            while let Some((place, queue)) = self.round.order.peek() {
                self.round.order.pop(&(place, queue));
                self.round.fresh.push(queue);
            }
        }
        self.rerank_blocked();
        Ok(true)
    }

    /// Moves fresh queues into the order of the round.
    fn join_fresh(&mut self) {
        while let Some(queue) = self.round.fresh.pop() {
            let place = self.line_key(queue);
            self.round.order.join((place, queue));
        }
        self.round.order.sort();
    }

    /// Serves queues in rank order until no task fits, then starts the launched tasks. Errors: the policy's and the recorder's.
    pub(super) fn serve(&mut self, hoards: &mut Option<Hoards>) -> Result<()> {
        self.rerank_blocked();
        match self.options.on_blocked {
            OnBlocked::Skip if self.round.by_machine => self.serve_by_machine()?,
            OnBlocked::Skip => self.serve_skip(hoards)?,
            OnBlocked::Stop => self.serve_stop(hoards)?,
            OnBlocked::Easy | OnBlocked::Conservative => self.serve_backfill()?,
        }
        self.round.freed.clear();
        self.site.scopes.round_over();
        for queue in self.round.gated.drain(..) {
            self.round.stand[queue.index()] = QueueState::Fresh;
            self.round.fresh.push(queue);
        }
        self.start_launched()
    }

    /// Reevaluates the queues of users that the policy reports as stale.
    pub(super) fn recall(&mut self, stale: Stale) {
        match stale {
            Stale::None => {}
            Stale::Some(users) => {
                for user in users {
                    self.work.queues.queues_of(user).for_each(|queue| self.round.recall(queue));
                }
            }
            Stale::All => {
                self.round.rerank = self.site.scopes.blocked();
                if self.round.refuses {
                    (0..self.work.queues.len() as u32).for_each(|queue| self.round.recall(QueueId(queue)));
                }
            }
        }
    }

    pub(super) fn line_key(&self, queue: QueueId) -> LineKey {
        self.place_of(self.work.waiting_head(queue))
    }

    /// Returns the position of a waiting set in the scheduling order, as if it were the next of its queue.
    pub(super) fn place_of(&self, head: SetSlot) -> LineKey {
        let set = &self.work.sets[head];
        let rank = self.outside.policy.rank(&self.work.view(head), &self.books);
        let tie = self.ties.key(set.user, &self.books);
        let (turn, number) = self.work.turn(head);
        LineKey { rank, tie, turn, number }
    }

    /// Marks a queue as fresh, or as empty, after a round that tried all of its sets.
    pub(super) fn enqueue_untried(&mut self, queue: QueueId) {
        let waits = self.work.queues.head(queue).is_some();
        self.round.stand[queue.index()] = if waits { QueueState::Fresh } else { QueueState::Out };
        self.round.fresh.extend(waits.then_some(queue));
    }

    pub(super) fn block(&mut self, queue: QueueId, place: LineKey) {
        let head = self.work.waiting_head(queue);
        let need = self.work.sets.needs(head).1;
        self.site.scopes.enqueue(self.work.queues.scope(queue), place, queue, need);
        self.round.stand[queue.index()] = QueueState::Blocked;
        self.round.keys[queue.index()] = place;
    }

    /// Removes a queue from its line at this position.
    pub(super) fn unblock(&mut self, queue: QueueId, place: &LineKey) {
        self.site.scopes.leave(self.work.queues.scope(queue), place);
    }

    fn rerank_blocked(&mut self) {
        while let Some(queue) = self.round.rerank.pop() {
            if self.round.stand[queue.index()] == QueueState::Blocked {
                let (old, place) = (self.round.keys[queue.index()], self.line_key(queue));
                if place != old {
                    self.unblock(queue, &old);
                    self.block(queue, place);
                }
            }
        }
    }

    fn serve_stop(&mut self, hoards: &mut Option<Hoards>) -> Result<()> {
        loop {
            self.prepared_again()?;
            while let Some(queue) = self.round.fresh.pop() {
                let place = self.line_key(queue);
                self.block(queue, place);
            }
            let Some((place, queue)) = self.site.scopes.first() else { break };
            if self.moved(queue, place) {
                self.unblock(queue, &place);
                let place = self.line_key(queue);
                self.block(queue, place);
                continue;
            }
            if self.turned_away(queue, place)? {
                self.unblock(queue, &place);
                continue;
            }
            let head = self.work.waiting_head(queue);
            let Some(machine) = self.room(head, hoards) else {
                self.record_turn(queue, place, Turn::Blocked(None))?;
                break;
            };
            self.unblock(queue, &place);
            self.record_turn(queue, place, Turn::Launched(Some(machine)))?;
            self.launch(queue, machine);
            if self.work.queues.head(queue).is_some() {
                let place = self.line_key(queue);
                self.block(queue, place);
            } else {
                self.round.stand[queue.index()] = QueueState::Out;
            }
        }
        Ok(())
    }

    /// Records a decision on the next task of a queue, if the recorder requires decisions. Errors: the recorder's.
    pub(super) fn record_turn(&mut self, queue: QueueId, place: LineKey, turn: Turn) -> Result<()> {
        if !self.outside.recorder.wants_decisions() {
            return Ok(());
        }
        self.record_decision(self.work.waiting_head(queue), place, turn, None)
    }

    /// Records a decision on a set, which need not be the next of its queue, and the set that it waits behind. Errors: the recorder's.
    pub(super) fn record_decision(
        &mut self,
        head: SetSlot,
        place: LineKey,
        turn: Turn,
        behind: Option<SetSlot>,
    ) -> Result<()> {
        if !self.outside.recorder.wants_decisions() {
            return Ok(());
        }
        let set = &self.work.sets[head];
        let behind =
            behind.map(|first| self.work.jobs.name(self.work.sets[first].job, self.outside.source.job_names()));
        let name = self.work.jobs.name(set.job, self.outside.source.job_names());
        let turn = match turn {
            Turn::Launched(_) if self.site.pooled => Turn::Launched(None),
            Turn::Blocked(_) => Turn::Blocked(self.shortage(head)),
            turn => turn,
        };
        let (now, user, task) = (self.now, set.user, u64::from(set.number));
        let decision = Decision { now, user, rank: place.rank, name, task, turn, behind };
        self.outside.recorder.decided(&decision, &self.books)
    }

    fn serve_skip(&mut self, hoards: &mut Option<Hoards>) -> Result<()> {
        self.join_fresh();
        self.round.freed.sort_unstable();
        self.round.freed.dedup();
        self.site.scopes.freed(&self.round.freed, &self.site.machines);
        let mut from: Option<LineKey> = None;
        let mut candidate = self.site.scopes.search(None);
        loop {
            if self.prepared_again()? {
                self.join_fresh();
                from = None;
                candidate = self.site.scopes.search(None);
            }
            let fresh = self.round.order.peek();
            match (fresh, candidate) {
                (None, None) => break,
                (Some((place, queue)), blocked) if blocked.is_none_or(|(other, _)| place < other) => {
                    self.round.order.pop(&(place, queue));
                    if self.moved(queue, place) {
                        self.round.order.push(self.line_key(queue), queue);
                    } else if self.try_fresh(queue, place, hoards)? && candidate.is_some() {
                        candidate = self.site.scopes.search(from.as_ref());
                    }
                }
                (_, Some((place, queue))) if self.moved(queue, place) => {
                    self.unblock(queue, &place);
                    let place = self.line_key(queue);
                    self.block(queue, place);
                    candidate = self.site.scopes.search(from.as_ref());
                }
                (_, Some((place, queue))) => {
                    from = Some(self.try_blocked(queue, place, hoards)?);
                    candidate = self.site.scopes.search(from.as_ref());
                }
                (Some(_), None) => unreachable!("the guard of the second arm holds without a blocked candidate"),
            }
        }
        Ok(())
    }

    /// Launches the next task of a fresh queue, or blocks the queue. Returns whether it launched a task.
    fn try_fresh(&mut self, queue: QueueId, place: LineKey, hoards: &mut Option<Hoards>) -> Result<bool> {
        if self.turned_away(queue, place)? {
            return Ok(false);
        }
        let head = self.work.waiting_head(queue);
        let Some(machine) = self.room(head, hoards) else {
            self.record_turn(queue, place, Turn::Blocked(None))?;
            self.block(queue, place);
            return Ok(false);
        };
        self.record_turn(queue, place, Turn::Launched(Some(machine)))?;
        self.launch(queue, machine);
        self.requeue(queue, head, true);
        Ok(true)
    }

    /// Launches the next task of a blocked queue if it really fits. Returns the position where the search continues.
    fn try_blocked(&mut self, queue: QueueId, place: LineKey, hoards: &mut Option<Hoards>) -> Result<LineKey> {
        let behind = LineKey { number: place.number + 1, ..place };
        if self.turned_away(queue, place)? {
            self.unblock(queue, &place);
            return Ok(behind);
        }
        let head = self.work.waiting_head(queue);
        // One task has room, but possibly not a whole gang, or no device fits.
        let Some(machine) = self.room(head, hoards) else {
            if hoards.is_some() {
                self.site.scopes.all_less(&self.site.machines);
            }
            return Ok(behind);
        };
        self.unblock(queue, &place);
        self.record_turn(queue, place, Turn::Launched(Some(machine)))?;
        self.launch(queue, machine);
        Ok(self.requeue(queue, head, false).map_or(behind, |again| again.min(behind)))
    }

    /// Updates the state of a queue that has just launched a task of `served`. Returns its new position if it is blocked.
    fn requeue(&mut self, queue: QueueId, served: SetSlot, fresh: bool) -> Option<LineKey> {
        let Some(head) = self.work.queues.head(queue) else {
            self.round.stand[queue.index()] = QueueState::Out;
            return None;
        };
        let place = self.line_key(queue);
        if fresh || head != served {
            self.round.stand[queue.index()] = QueueState::Fresh;
            self.round.order.push(place, queue);
            return None;
        }
        self.block(queue, place);
        Some(place)
    }

    /// Returns whether launches have moved a queue away from its position in this round.
    fn moved(&self, queue: QueueId, place: LineKey) -> bool {
        (self.round.moves_others || self.work.queues.has_siblings(queue)) && self.line_key(queue) != place
    }

    /// Asks the policy to admit the next task of a queue. Returns true if it refused: the queue is skipped, and the caller must remove it
    /// from its line if it is in one. Errors: the recorder's.
    pub(super) fn turned_away(&mut self, queue: QueueId, place: LineKey) -> Result<bool> {
        let head = self.work.waiting_head(queue);
        let (demand, footprint) = self.work.sets.needs(head);
        let set = &self.work.sets[head];
        let (view, partition) = (self.work.view(head), set.partition);
        let ask = Ask { footprint, demand, tasks: if set.gang { set.waiting } else { 1 } };
        let (reason, waits) = match self.outside.policy.admit(&view, &ask, &self.books) {
            Verdict::Yes => return Ok(false),
            Verdict::No(reason) => (reason, false),
            // A policy that postpones one of a user's tasks does not know of other tasks of the user that are tried meanwhile.
            Verdict::Wait(reason) => (reason, !self.has_rivals(queue, partition)),
        };
        self.round.stand[queue.index()] = if waits {
            if let Some(list) = self.outside.policy.wait_list() {
                list.postpone(&view, &ask);
            }
            self.round.refuses = true;
            QueueState::Refused
        } else {
            self.round.gated.push(queue);
            QueueState::Out
        };
        self.record_turn(queue, place, Turn::NotAdmitted(reason))?;
        Ok(true)
    }

    /// Returns whether other tasks wait that the policy cannot distinguish: of the queue's user, in the same partition.
    fn has_rivals(&self, queue: QueueId, partition: Partition) -> bool {
        let rival = |other: QueueId| {
            other != queue
                && self.work.queues.head(other).is_some_and(|head| self.work.sets[head].partition == partition)
        };
        self.work.queues.has_siblings(queue) && self.work.queues.queues_of(self.work.queues.user(queue)).any(rival)
    }
}
