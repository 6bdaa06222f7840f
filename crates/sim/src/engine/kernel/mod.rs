//! The kernel of a run: clock, agenda, books, machines, task sets, running tasks and queues.
//!
//! All state is private to this module. Rounds and extensions read it through accessors and change it through verbs, which keep the books,
//! the machines, the queues and the indexes consistent:
//!
//! | verb | effect |
//! |---|---|
//! | [`Kernel::arrive`], [`Kernel::enqueue`] | rows become waiting task sets |
//! | [`Kernel::launch`], [`Kernel::start_launched`] | waiting tasks reserve room, and begin after the round |
//! | [`Kernel::finish_due`], [`Kernel::finish`] | running tasks end, and release their room |
//! | [`Kernel::stop`], [`Kernel::cancel`], [`Kernel::restart`] | running tasks stop; they wait again if they restart |
//! | [`Kernel::withdraw`], [`Kernel::list`], [`Kernel::move_up`], [`Kernel::exclude_machine`] | waiting sets leave or change their queue |
//! | [`Kernel::reserve`], [`Kernel::release_reservation`] | free amounts are reserved for later launches |
//! | [`Kernel::remove_machine`], [`Kernel::restore_machine`], [`Kernel::relabel`] | machines leave, join and change labels |
//! | [`Kernel::reschedule`], [`Kernel::split`] | running tasks end at another time, or apart |
//!
//! The event loop ([`Engine::step`](crate::engine::Engine::step)) runs from instant to instant:
//!
//! ```text
//!   next instant: arrival | end of tasks | extension
//!        |
//!        v
//!   advance(t)          the recorder integrates the interval that ends at t
//!        |
//!        v
//!   finish_due()        tasks end: room is freed, jobs end, stages release rows  <--+
//!   extensions          due(), machine events                                       |
//!   arrive()            rows join their queues                                      |  tasks of zero
//!   enqueue_released()  released rows join behind the arrivals                      |  duration end in
//!        |                                                                          |  a further pass
//!        v                                                                          |
//!   prepare()           the policy prepares a round                     <--+        |
//!   reclaim(), stop()   policy and extensions stop tasks  --- any stopped -+        |
//!   extensions          before_round(), if tasks wait                               |
//!   round               serves queues in rank order; start_launched()               |
//!   extensions          after_round(): another round, or none  ---------------------+
//!        |
//!        v
//!   settle()            recorder and policy receive the changed users
//! ```
//!
//! The diagram omits the control, which is called between the steps, and falling back, which precedes the round. The kernel calls no round
//! and no extension, except for [`Attempts`], which returns the duration of an attempt. Extensions read past changes from the [`ChangeLog`].

pub mod agenda;
mod arrive;
mod audit;
pub mod budget;
mod changes;
pub mod checkpoint;
mod context;
mod finish;
mod ids;
mod job_order;
mod jobs;
mod launch;
pub mod line;
mod line_states;
pub mod pace;
mod queues;
mod report;
mod room;
mod running;
mod scopes;
mod sets;
mod site;
mod stop;
mod ties;
mod view;
mod watch;
mod work;

use std::sync::Arc;

pub use agenda::Ticket;
pub use changes::{Change, ChangeKinds, Reader, TasksOfRow};
pub use context::{Party, RunContext};
use ids::JobSlot;
pub use ids::{QueueId, ScopeId, SetSlot};
pub use line::LineKey;
pub use line_states::QueueState;
pub use queues::place;
pub use room::GangPlan;
pub use running::{Attempt, Attempts, Choice, ReservedRoom, Running, Victim, Victims, may_be_stopped};
pub use scopes::times;
pub use sets::ActiveSet;
pub use site::Partitions;
pub use ties::Ties;
pub use view::Requester;
pub use watch::{StoppedTasks, WatchedJob, WatchedJobs};

use budget::{Livelock, PreemptionBudget, PreemptionLimits};
use changes::ChangeLog;
use job_order::Ordered;
use jobs::{Intake, Jobs};
use line_states::QueueStates;
use pace::Distance;
use queues::Queues;
use running::Execution;
use sets::Sets;
use site::Site;
use ties::TieBreaker;
use watch::Watch;
use work::Work;

use crate::books::{Books, Weights};
use crate::cluster::{Cluster, Machines, Placement};
use crate::engine::outcome::Outcome;
use crate::policy::{Ask, JobOrder, Needs, Policy, PreemptsFor, Queue};
use plimsoll_base::error::{Error, Result};
use plimsoll_base::units::{JobId, Resources, Span, Time, UserId};

/// The options of a run that the kernel uses.
#[derive(Default)]
pub struct Settings {
    /// The placement rule.
    pub placement: Placement,
    /// The order among users of equal rank.
    pub ties: Ties,
    /// The order of each user's own task sets; the default order if absent.
    pub order: Option<Arc<dyn JobOrder>>,
    /// The factors of the run times of tasks that are away from their preferred machines.
    pub distance: Option<Distance>,
    /// Limits and costs of preemption.
    pub limits: PreemptionLimits,
    /// The seed of random placement.
    pub seed: u64,
    /// Whether sets may move to wider scopes. Then a set is too large only if it fits no machine of its widest scope.
    pub widens: bool,
    /// The name of the rule that requires estimates of run times, if one does.
    pub estimates_for: Option<&'static str>,
    /// The indexes of running tasks in the order of stopping, if any tasks may be stopped.
    pub victims: Option<Victims>,
    /// The course of attempts, if tasks fail or straggle: every task is then an entry of its own.
    pub attempts: Option<Box<dyn Attempts>>,
    /// Whether a backend executes submissions, launches and ends: the kernel only records them in the change log.
    pub delegates: bool,
    /// Whether the events of an instant are applied one by one, arrivals before ends.
    pub one_by_one: bool,
    /// The kinds of changes that each [`Reader`] of the change log subscribes to.
    pub readers: Vec<ChangeKinds>,
    /// The index of the resource that [`Change::Started`] and [`Change::Ended`] report.
    pub watched: Option<usize>,
}

/// The state of a run.
pub struct Kernel<'a> {
    context: RunContext<'a>,
    settings: Settings,
    now: Time,
    books: Books,
    site: Site,
    work: Work,
    /// Rows that are not queued yet.
    intake: Intake,
    running: Execution,
    line_states: QueueStates,
    /// Tasks launched in this round, which begin at its end.
    launches: Vec<Running>,
    /// Whether tasks were launched since the last call of [`Kernel::prepare`].
    launched: bool,
    /// Whether, and for which purpose, the policy preempts running tasks.
    preempts_for: PreemptsFor,
    ties: TieBreaker,
    livelock: Livelock,
    /// Task sets that joined a queue since the last round; kept only if decisions are recorded.
    joined: Vec<SetSlot>,
    /// The limits of voluntary preemption, and recent preemptions.
    budget: PreemptionBudget,
    changes: ChangeLog,
    /// The jobs that a caller watches, if any.
    watch: Option<Box<Watch>>,
    /// The counts of the kernel; the engine and the extensions add theirs at the end.
    outcome: Outcome,
}

impl<'a> Kernel<'a> {
    /// Creates the state before the first event.
    pub fn new(
        context: RunContext<'a>,
        needs: &Needs,
        cluster: Arc<Cluster>,
        weights: Weights,
        mut settings: Settings,
    ) -> Kernel<'a> {
        let (dims, plain) = (cluster.dims.len(), needs.lens.is_plain());
        let site = Site::new(needs, cluster, settings.placement, settings.seed);
        let cluster = &site.cluster;
        let mut books = Books::new(dims, cluster.total(), site.offered(), plain, weights);
        if needs.waiting_demand || context.recorder.wants_waiting_demand() {
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
        let ordered = settings.order.take().map(|order| Ordered::new(order, *books.capacity()));
        Kernel {
            context,
            now: Time::ZERO,
            books,
            site,
            work: Work { jobs: Jobs::default(), sets: Sets::new(dims, plain), queues: Queues::default(), ordered },
            intake: Intake::default(),
            running: Execution::new(settings.victims.take(), settings.attempts.take()),
            line_states: QueueStates::default(),
            launches: Vec::new(),
            launched: false,
            preempts_for: needs.preempts_for,
            ties: TieBreaker::new(settings.ties),
            livelock: Livelock::default(),
            joined: Vec::new(),
            budget: PreemptionBudget::new(&settings.limits),
            changes: ChangeLog::new(&settings.readers, settings.watched),
            watch: None,
            outcome: Outcome::default(),
            settings,
        }
    }

    /// Returns the present instant.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Returns the books: allocation and pending demand of each user.
    pub fn books(&self) -> &Books {
        &self.books
    }

    /// Returns the policy.
    pub fn policy(&self) -> &(dyn Policy + 'a) {
        &*self.context.policy
    }

    /// Returns the counts of the kernel so far.
    pub fn outcome(&self) -> Outcome {
        self.outcome
    }

    /// Returns the description of the cluster.
    pub fn cluster(&self) -> &Arc<Cluster> {
        &self.site.cluster
    }

    /// Returns the machines and their free amounts.
    pub fn machines(&self) -> &Machines {
        &self.site.machines
    }

    /// Returns the amounts that each machine offers through the policy's lens.
    pub fn offers(&self) -> &[Resources] {
        &self.site.offers
    }

    /// Returns the scopes of machines, with their lines of blocked queues.
    pub fn scopes(&self) -> &scopes::Scopes {
        &self.site.scopes
    }

    /// Returns the queues of all users.
    pub fn queues(&self) -> &Queues {
        &self.work.queues
    }

    /// Returns the set that a queue launches from next.
    pub fn head(&self, queue: QueueId) -> Option<SetSlot> {
        self.work.queues.head(queue)
    }

    /// Returns the set that a queue launches from next. Panics: if the queue is empty (a programmer error).
    pub fn waiting_head(&self, queue: QueueId) -> SetSlot {
        self.head(queue).expect("a queue in line has a head")
    }

    /// Returns the waiting sets of a queue, in order.
    pub fn in_order(&self, queue: QueueId) -> Vec<SetSlot> {
        self.work.in_order(queue)
    }

    /// Returns the set that a user would launch from next, regardless of room.
    pub fn first(&self, user: UserId) -> Option<SetSlot> {
        self.work.first(user)
    }

    /// Returns the policy's view of a user's queue with this head.
    pub fn view(&self, head: SetSlot) -> Queue {
        self.work.view(head)
    }

    /// Returns the position of a head among the heads of its user's queues.
    pub fn turn(&self, head: SetSlot) -> (u128, u32) {
        self.work.turn(head)
    }

    /// Returns a task set.
    pub fn set(&self, slot: SetSlot) -> &ActiveSet {
        &self.work.sets[slot]
    }

    /// Returns whether a slot contains a live set of a row.
    pub fn is_of_row(&self, slot: SetSlot, row: u64) -> bool {
        self.work.sets.is_of(slot, row)
    }

    /// Returns demand and footprint of each task of a set.
    pub fn needs(&self, slot: SetSlot) -> (&[u64], &[u64]) {
        self.work.sets.needs(slot)
    }

    /// Returns the footprint of each task of a set.
    pub fn footprint(&self, slot: SetSlot) -> Resources {
        Resources::from_slice(self.work.sets.needs(slot).1)
    }

    /// Returns the scope of the queue of a set.
    pub fn scope(&self, slot: SetSlot) -> ScopeId {
        self.work.queues.scope(self.work.sets[slot].queue)
    }

    /// Returns the completion time of the job of a set on an empty, boundless cluster.
    pub fn ideal(&self, slot: SetSlot) -> Span {
        self.work.jobs[self.work.sets[slot].job].ideal()
    }

    /// Returns the id of the job of a set.
    pub fn job_id(&self, slot: SetSlot) -> JobId {
        self.work.jobs[self.work.sets[slot].job].id
    }

    /// Returns the name of a user.
    pub fn user_name(&self, user: UserId) -> &str {
        self.context.source.users().name(user.0)
    }

    /// Returns the name of the job of a set.
    pub fn job_name_of(&self, slot: SetSlot) -> String {
        self.job_name(self.work.sets[slot].job)
    }

    /// Returns the name of a job.
    fn job_name(&self, job: JobSlot) -> String {
        let mut name = String::new();
        self.work.jobs.name(job, self.context.source.job_names()).render(&mut name);
        name
    }

    /// Returns the running tasks of a ticket; `None` if they do not run any more.
    pub fn running(&self, ticket: Ticket) -> Option<&Running> {
        self.running.get(ticket)
    }

    /// Returns all running tasks, in no particular order.
    pub fn all_running(&self) -> impl Iterator<Item = &Running> {
        self.running.iter()
    }

    /// Returns the indexes of running tasks in the order of stopping, if they are kept.
    pub fn victims(&self) -> Option<&Victims> {
        self.running.victims.as_ref()
    }

    /// Returns the limits of voluntary preemption, and recent preemptions.
    pub fn budget(&self) -> &PreemptionBudget {
        &self.budget
    }

    /// Returns the instant at which the next tasks end.
    pub fn next_end(&mut self) -> Option<Time> {
        self.running.next_time()
    }

    /// Returns whether a backend executes the decisions.
    pub fn delegates(&self) -> bool {
        self.settings.delegates
    }

    /// Returns whether tasks were launched since the last preparation, and resets this state.
    pub fn take_launched(&mut self) -> bool {
        std::mem::take(&mut self.launched)
    }

    /// Returns the next change for a reader; `None` if it has read all.
    pub fn next_change(&mut self, reader: Reader) -> Option<Change> {
        self.changes.next(reader)
    }

    /// Begins a round: preemptions outside the window of the limit no longer count.
    pub fn begin_round(&mut self) {
        self.budget.begin(self.now);
    }

    /// Updates the maximum number of tasks that ran at once.
    pub fn count_running(&mut self) {
        self.outcome.peak_running = self.outcome.peak_running.max(self.books.total_running());
    }

    /// Reports the end of an instant to the recorder and the policy. Returns the next instant at which the policy requires a round even if
    /// there is no event. Errors: the recorder's.
    pub fn settle(&mut self) -> Result<Option<Time>> {
        let changed = &mut self.changes.users;
        self.context.recorder.settled(self.now, &changed.since_instant, &self.books)?;
        let wake = self.context.policy.settled(self.now, &changed.since_instant, &self.books);
        changed.read_by_recorder();
        Ok(wake)
    }

    /// Sends a heartbeat to the recorder. Errors: the recorder's.
    pub fn heartbeat(&mut self) -> Result<()> {
        self.context.recorder.heartbeat(self.now)
    }

    /// Returns the request to start a number of tasks of a set.
    pub fn ask(&self, set: SetSlot, tasks: u32) -> Ask<'_> {
        let (demand, footprint) = self.work.sets.needs(set);
        Ask { footprint, demand, tasks }
    }

    /// Puts a set in its queue and its tasks in the books.
    pub fn enqueue(&mut self, slot: SetSlot) {
        let &ActiveSet { user, waiting: tasks, partition, .. } = &self.work.sets[slot];
        let demand = self.work.sets.needs(slot).0;
        self.books.queue(user, tasks, demand);
        if let Some(books) = self.books.apart(partition) {
            books.queue(user, tasks, demand);
        }
        self.changes.users.mark(user);
        self.enqueue_in(slot);
        self.push_queue_change(Change::Joined(slot));
        self.note_joined(slot);
    }

    /// Records that a set has joined or left a queue; only if some tasks may not start on every machine.
    fn push_queue_change(&mut self, change: Change) {
        if !self.work.queues.are_whole() {
            self.changes.push(change);
        }
    }

    /// Puts a set in its queue, and reports a new head.
    fn enqueue_in(&mut self, slot: SetSlot) {
        let (user, queue) = (self.work.sets[slot].user, self.work.sets[slot].queue);
        let before = self.work.queues.head(queue);
        self.work.push(slot, self.now);
        if self.work.queues.head(queue) != before {
            self.note_head(user);
            self.head_changed(queue);
        }
    }

    /// Removes a set from its queue, at any position, and reports a new head.
    fn leave_queue(&mut self, slot: SetSlot, queue: QueueId) {
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
                self.line_states.rerank(queue);
            }
            let user = self.work.queues.user(queue);
            self.note_head(user);
            self.context.recorder.head(user);
            // A rank may depend on the user's total demand in the books, in all of its queues.
            self.work.queues.queues_of(user).for_each(|sibling| self.line_states.rerank(sibling));
        }
    }

    /// Records in the books the demand of the task that a user would launch next.
    fn note_head(&mut self, user: UserId) {
        if let Some(next) = self.work.first(user) {
            self.books.set_head(user, self.work.sets.needs(next).0);
        }
    }

    /// Returns the error for an invalid row, with the row's location.
    fn mismatch(&self, row: u64, column: &str, problem: &str) -> Error {
        Error::Mismatch { problem: format!("{}, column '{column}': {problem}", self.context.source.locate(row)) }
    }
}

#[cfg(test)]
mod tests;
