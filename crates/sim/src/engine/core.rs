//! The core of a run: clock, books, machines, waiting and running tasks.
//!
//! Its state changes through [`Core::enqueue`], [`Core::launch`], [`Core::finish`], [`Core::stop`] and [`Core::withdraw`], in the files of
//! the respective step. The core records changes for extensions in a [`ChangeLog`]; it does not call them.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::arrive::Intake;
use super::change_log::{ChangeLog, QueueChange};
use super::faults::Draws;
use super::gang::GangPlan;
use super::job_order::Ordered;
use super::jobs::{ActiveSet, JobSlot, Jobs, SetSlot, Sets};
use super::livelock::Livelock;
use super::preemption_limits::PreemptionBudget;
use super::queues::{QueueId, Queues, place, turn};
use super::round::RoundState;
use super::run_context::RunContext;
use super::running::Execution;
use super::site::Site;
use super::ties::TieBreaker;
use super::victims::Victims;
use super::waits::Joined;
use super::{Options, Outcome};
use crate::books::{Books, Weights};
use crate::cluster::Cluster;
use crate::policy::{Ask, Needs, PreemptsFor, Queue};
use plimsoll_base::error::{Error, Result};
use plimsoll_base::units::{Resources, Time, UserId};

/// Unfinished jobs, their task sets, and the queues of waiting sets.
pub(super) struct Work {
    pub jobs: Jobs,
    pub sets: Sets,
    pub queues: Queues,
    /// The order inside users, if it is not the usual one.
    pub ordered: Option<Ordered>,
}

impl Work {
    /// Puts a set in its queue.
    pub fn push(&mut self, slot: SetSlot, now: Time) {
        let Some(ordered) = &mut self.ordered else { return self.queues.push(&mut self.sets, slot) };
        ordered.push(&self.sets, slot, now);
        let queue = self.sets[slot].queue;
        self.queues.set_head(queue, ordered.head(queue));
    }

    /// Removes a set from its queue, at any position.
    pub fn remove(&mut self, slot: SetSlot) {
        let Some(ordered) = &mut self.ordered else { return self.queues.remove(&mut self.sets, slot) };
        ordered.remove(&self.sets, slot);
        let queue = self.sets[slot].queue;
        self.queues.set_head(queue, ordered.head(queue));
    }

    /// Updates the sort key of a queued set that has launched some of its tasks.
    pub fn renumber(&mut self, slot: SetSlot) {
        if let Some(ordered) = &mut self.ordered {
            ordered.renumber(&self.sets, slot);
            let queue = self.sets[slot].queue;
            self.queues.set_head(queue, ordered.head(queue));
        }
    }

    /// Reorders sets with keys that may have changed. Returns their queues, and whether these have another head.
    fn reorder(&mut self, now: Time) -> Vec<(QueueId, bool)> {
        let Work { sets, queues, ordered: Some(ordered), .. } = self else { return Vec::new() };
        let mut headed = |ordered: &Ordered, queue: QueueId| {
            let head = ordered.head(queue);
            let other = head != queues.head(queue);
            queues.set_head(queue, head);
            (queue, other)
        };
        let moved = ordered.rekey(sets, now);
        moved.into_iter().map(|queue| headed(ordered, queue)).collect()
    }

    /// Returns the policy's view of a user's queue with this head.
    pub fn view(&self, head: SetSlot) -> Queue {
        let set = &self.sets[head];
        let ActiveSet { user, partition, release, priority, .. } = *set;
        let key = self.ordered.as_ref().map(|ordered| ordered.key_of(head));
        Queue { user, partition, release, place: place(set), priority, key }
    }

    /// Returns the position of a head among the heads of its user's queues. Equal keys are ordered by age of the queue.
    pub fn turn(&self, head: SetSlot) -> (u128, u32) {
        match &self.ordered {
            None => turn(&self.sets[head]),
            Some(ordered) => (ordered.key_of(head), self.sets[head].queue.0),
        }
    }

    /// Returns the set that a user would launch from next, regardless of room.
    pub fn first(&self, user: UserId) -> Option<SetSlot> {
        if self.queues.are_whole() {
            return self.queues.head(self.queues.cluster_queue(user));
        }
        let heads = self.queues.queues_of(user).filter_map(|queue| self.queues.head(queue));
        heads.min_by_key(|head| self.turn(*head))
    }

    /// Returns the waiting sets of a queue, in order.
    pub fn in_order(&self, queue: QueueId) -> Vec<SetSlot> {
        match &self.ordered {
            None => self.queues.in_order(&self.sets, queue),
            Some(ordered) => ordered.in_order(queue),
        }
    }

    /// Returns the set that a queue launches from next. Panics: if the queue is empty (a programmer error).
    pub fn waiting_head(&self, queue: QueueId) -> SetSlot {
        self.queues.head(queue).expect("a queue in line has a head")
    }
}

/// The state of a run.
pub(super) struct Core<'a> {
    pub outside: RunContext<'a>,
    pub options: Options,
    pub now: Time,
    pub books: Books,
    pub site: Site,
    pub work: Work,
    /// Rows that are not queued yet.
    pub intake: Intake,
    pub running: Execution,
    pub round: RoundState,
    pub ties: TieBreaker,
    pub livelock: Livelock,
    /// Task sets that joined a queue since the last rounds.
    pub joined: Joined,
    /// The limits of voluntary preemption, and recent preemptions.
    pub preemption_budget: PreemptionBudget,
    /// The placement of the gang that was tried last.
    pub plan: GangPlan,
    pub notes: ChangeLog,
    pub outcome: Outcome,
}

impl<'a> Core<'a> {
    /// Creates the state before the first event.
    pub fn new(
        outside: RunContext<'a>,
        needs: &Needs,
        cluster: Arc<Cluster>,
        weights: Weights,
        options: &Options,
    ) -> Core<'a> {
        let (dims, plain) = (cluster.dims.len(), needs.lens.is_plain());
        let site = Site::new(needs, cluster, options);
        let cluster = &site.cluster;
        let mut books = Books::new(dims, cluster.total(), site.offered(), plain, weights);
        if needs.waiting_demand || outside.recorder.wants_waiting_demand() {
            books.keep_waiting_demand();
        }
        if !needs.labels.is_empty() {
            books.keep_apart(needs.labels.len());
        }
        if needs.integrals {
            books.keep_integrals();
        }
        if needs.machines {
            let pool = [*books.offered()];
            books.keep_machines(if site.pooled { &pool } else { &site.offers });
        }
        site.update_totals(&mut books);
        let eventful = !site.pooled && !cluster.events.events.is_empty();
        let victims = match (options.preempt, needs.preempts_for) {
            (Some(_), _) | (_, PreemptsFor::ForOthers) => Some(Victims::of_all()),
            (None, PreemptsFor::Reclaims) => Some(Victims::default()),
            (None, PreemptsFor::Never) => (eventful || options.faults.is_some()).then(Victims::default),
        };
        let ordered = options.job_order.clone().map(|order| Ordered::new(order, *books.capacity()));
        let watched = cluster.memory().filter(|_| options.slowdown.is_some() && !site.pooled);
        let notes = ChangeLog {
            freed: (options.hoard.is_some() && !site.pooled).then(Vec::new),
            standing: (options.fall_back.is_some() && !site.pooled).then(Vec::new),
            load: watched.map(|dim| (dim, Vec::new())),
            instances: options.faults.and_then(|faults| faults.backup).map(|_| Vec::new()),
            remote: outside.control.is_some().then(Vec::new),
            ..ChangeLog::default()
        };
        Core {
            outside,
            options: options.clone(),
            now: Time::ZERO,
            books,
            site,
            work: Work { jobs: Jobs::default(), sets: Sets::new(dims, plain), queues: Queues::default(), ordered },
            intake: Intake::default(),
            running: Execution::new(victims, options.faults.map(|faults| Draws::new(faults, options.seed))),
            round: RoundState::new(needs),
            ties: TieBreaker::new(options.ties),
            livelock: Livelock::default(),
            joined: Joined::default(),
            preemption_budget: PreemptionBudget::new(&options.preemption_limits),
            plan: GangPlan::default(),
            notes,
            outcome: Outcome::default(),
        }
    }

    /// Reports the end of an instant to the recorder and the policy. Returns the next instant at which the policy requires a round even
    /// without an event. Errors: the recorder's.
    pub fn settle(&mut self) -> Result<Option<Time>> {
        let changed = &mut self.notes.changed;
        self.outside.recorder.settled(self.now, &changed.since_instant, &self.books)?;
        let wake = self.outside.policy.settled(self.now, &changed.since_instant, &self.books);
        changed.instant_over();
        Ok(wake)
    }

    /// Returns the request to start a number of tasks of a set.
    pub fn ask(&self, set: SetSlot, tasks: u32) -> Ask<'_> {
        let (demand, footprint) = self.work.sets.needs(set);
        Ask { footprint, demand, tasks }
    }

    /// Puts a set in its queue and its tasks in the books.
    pub fn enqueue(&mut self, slot: SetSlot) {
        let set = &self.work.sets[slot];
        let (user, tasks) = (set.user, set.waiting);
        let (partition, demand) = (set.partition, self.work.sets.needs(slot).0);
        self.books.queue(user, tasks, demand);
        if let Some(books) = self.books.apart(partition) {
            books.queue(user, tasks, demand);
        }
        self.notes.changed.mark(user);
        self.enqueue_in(slot);
        self.push_queue_change(QueueChange::Joined(slot));
        self.note_joined(slot);
    }

    /// Records that a set has joined or left a queue; needed only if some tasks may not start on every machine.
    pub fn push_queue_change(&mut self, standing: QueueChange) {
        if !self.work.queues.are_whole() {
            self.notes.standing(standing);
        }
    }

    /// Puts a set in its queue, and reports a new head.
    pub fn enqueue_in(&mut self, slot: SetSlot) {
        let (user, queue) = (self.work.sets[slot].user, self.work.sets[slot].queue);
        let before = self.work.queues.head(queue);
        self.work.push(slot, self.now);
        if self.work.queues.head(queue) != before {
            self.note_head(user);
            self.head_changed(queue);
        }
    }

    /// Removes a set from its queue, at any position, and reports a new head.
    pub fn leave_queue(&mut self, slot: SetSlot, queue: QueueId) {
        let was_first = self.work.queues.head(queue) == Some(slot);
        self.work.remove(slot);
        match self.work.queues.head(queue) {
            None => self.emptied(queue),
            Some(_) if was_first => self.head_changed(queue),
            Some(_) => {}
        }
    }

    /// Reorders sets with keys that may have changed, before a round.
    pub fn reorder(&mut self) {
        for (queue, other_head) in self.work.reorder(self.now) {
            if other_head {
                self.head_changed(queue);
            } else {
                // Its head may have another position among its user's heads.
                self.round.rerank(queue);
            }
            let user = self.work.queues.user(queue);
            self.note_head(user);
            self.outside.recorder.head(user);
            // A rank may depend on the user's total demand in the books, in all of its queues.
            self.work.queues.queues_of(user).for_each(|sibling| self.round.rerank(sibling));
        }
    }

    /// Records in the books the demand of the task that a user would launch next.
    pub fn note_head(&mut self, user: UserId) {
        if let Some(next) = self.work.first(user) {
            self.books.set_head(user, self.work.sets.needs(next).0);
        }
    }

    /// Returns the error for an invalid row, with the row's location.
    pub fn mismatch(&self, row: u64, column: &str, problem: &str) -> Error {
        Error::Mismatch { problem: format!("{}, column '{column}': {problem}", self.outside.source.locate(row)) }
    }

    /// Recomputes all sums. Panics: if a sum differs (a programmer error); for audited runs.
    pub fn audit(&self) {
        self.books.audit(self.now);
        self.audit_waiting();
        self.audit_jobs();
        self.audit_gangs();
        self.audit_devices();
        self.site.audit_partitions(self.now);
    }

    /// Recomputes for each job the number of tasks that have not ended.
    fn audit_jobs(&self) {
        let mut left: BTreeMap<JobSlot, u64> = BTreeMap::new();
        for slot in self.work.sets.by_row() {
            let set = &self.work.sets[slot];
            *left.entry(set.job).or_default() += u64::from(set.left);
        }
        for (job, sum) in left {
            // Tasks that are too large stay in the job's count, without a set.
            assert!(self.work.jobs[job].left >= sum, "the tasks left of a job add up at {:?}", self.now);
        }
    }

    /// Recomputes the demand of waiting tasks, if the books keep it.
    fn audit_waiting(&self) {
        let (dims, sets) = (self.books.dims(), &self.work.sets);
        let mut sums = vec![0u128; self.books.users() * dims];
        for slot in sets.by_row() {
            let set = &sets[slot];
            if set.awaits_stage || set.release > self.now || !set.listed {
                continue;
            }
            for (d, demand) in sets.needs(slot).0.iter().enumerate() {
                sums[set.user.index() * dims + d] += u128::from(*demand) * u128::from(set.waiting);
            }
        }
        self.books.audit_waiting_demand(&sums, self.now);
    }
}

/// Copies a list of amounts, one per dimension, into [`Resources`]; the other dimensions are zero.
pub(super) fn amounts(list: &[u64]) -> Resources {
    let mut amounts = Resources::ZERO;
    amounts.0.iter_mut().zip(list).for_each(|(amount, part)| *amount = *part);
    amounts
}
