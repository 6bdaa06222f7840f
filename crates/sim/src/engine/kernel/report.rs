//! Reports of the kernel to the recorder: intervals, decisions, tasks that no longer run, and unfinished work at the end of the run.

use super::Kernel;
use super::ids::{QueueId, ScopeId, SetSlot};
use super::line::LineKey;
use super::line_states::QueueState;
use super::queues::Queues;
use super::running::Running;
use super::scopes::Scopes;
use super::sets::Sets;
use super::site;
use crate::record::{Decision, Fate, Salvage, State, Stuck, StuckRecord, TaskRecord, Turn, Untried, Waiting};
use plimsoll_base::error::Result;
use plimsoll_base::units::{MachineId, Span, Time, UserId};

/// The next task of each queue, and the machines that it may start on.
struct Heads<'a> {
    queues: &'a Queues,
    sets: &'a Sets,
    scopes: &'a Scopes,
}

impl Waiting for Heads<'_> {
    fn heads<'b>(&'b self, user: UserId, visit: &mut dyn FnMut(u32, &'b [u64])) {
        for queue in self.queues.queues_of(user) {
            if let Some(head) = self.queues.head(queue) {
                visit(self.queues.scope(queue).0, self.sets.needs(head).1);
            }
        }
    }

    fn may_use(&self, scope: u32, machine: MachineId) -> bool {
        self.scopes.contains(ScopeId(scope), machine)
    }
}

impl Kernel<'_> {
    /// Advances the clock to `to`, and reports the state of the interval to the recorder. Errors: the recorder's.
    pub fn advance(&mut self, to: Time) -> Result<()> {
        if to > self.now {
            let machines = (!self.site.pooled).then_some(&self.site.machines);
            let waiting = Heads { queues: &self.work.queues, sets: &self.work.sets, scopes: &self.site.scopes };
            let (books, groups) = (&self.books, self.context.policy.groups());
            let state = State { books, machines, waiting: &waiting, groups };
            self.context.recorder.interval(self.now, to, &state)?;
            self.now = to;
            self.books.pass(to);
        }
        Ok(())
    }

    /// Reports tasks that ran until `finish`, or still run, and do not start again. Errors: the recorder's.
    pub fn report(&mut self, tasks: &Running, finish: Option<Time>, fate: Fate) -> Result<()> {
        let given_up = matches!(fate, Fate::Lost | Fate::GivenUp);
        let salvage = Salvage {
            delay: Span(self.delay_of(tasks).0.min(self.now.since(tasks.start).0)),
            forfeited: if given_up { self.work.sets.details(tasks.set).kept } else { Span::ZERO },
            ..Salvage::default()
        };
        self.report_with(tasks, finish, fate, salvage)
    }

    /// Reports tasks, and which parts of their run time are kept or lost. Errors: the recorder's.
    pub(super) fn report_with(
        &mut self,
        tasks: &Running,
        finish: Option<Time>,
        fate: Fate,
        salvage: Salvage,
    ) -> Result<()> {
        let (set, details) = (&self.work.sets[tasks.set], self.work.sets.details(tasks.set));
        self.context.recorder.tasks(&TaskRecord {
            name: self.work.jobs.name(set.job, self.context.source.job_names()),
            user: set.user,
            partition: set.partition,
            first: u64::from(tasks.first),
            count: tasks.count.get(),
            attempt: details.attempt,
            backup: set.is_backup(),
            machine: (!self.site.pooled).then_some(tasks.machine),
            devices: site::devices_of(&self.site.devices, tasks),
            submit: details.submit,
            release: details.since,
            start: tasks.start,
            finish,
            fate,
            duration: set.duration,
            salvage,
            demand: self.work.sets.needs(tasks.set).0,
        })
    }

    /// Reports everything that is unfinished at the end of the run: running tasks, waiting and postponed rows, and jobs. The run ends at
    /// the horizon (`cut`), or when there are no future events. Errors: the recorder's.
    pub fn close(&mut self, cut: bool) -> Result<()> {
        while let Some(running) = self.running.pop(&self.work.sets) {
            self.report(&running, None, Fate::Running)?;
        }
        for slot in self.work.sets.by_row() {
            let (set, details) = (&self.work.sets[slot], self.work.sets.details(slot));
            // The task of a backup is reported by its other instance.
            if set.waiting == 0 || set.is_backup() {
                continue;
            }
            let why = match (cut, set.awaits_stage()) {
                (true, _) => Stuck::Cut,
                (false, true) => Stuck::Deadlocked,
                (false, false) => Stuck::Starved,
            };
            self.context.recorder.stuck(&StuckRecord {
                name: self.work.jobs.name(set.job, self.context.source.job_names()),
                user: set.user,
                row: set.row,
                tasks: u64::from(set.waiting),
                first: u64::from(set.number),
                attempt: details.attempt,
                submit: details.submit,
                release: (!set.awaits_stage() && set.release <= self.now).then_some(details.since),
                duration: set.duration,
                demand: self.work.sets.needs(slot).0,
                why,
            })?;
        }
        for slot in self.work.jobs.by_id() {
            self.context.recorder.job(&self.work.jobs.record(slot, self.context.source.job_names(), None))?;
        }
        Ok(())
    }

    /// Records a decision on the next task of a queue, if the recorder requires decisions. Errors: the recorder's.
    pub fn record_turn(&mut self, queue: QueueId, key: LineKey, turn: Turn) -> Result<()> {
        if !self.context.recorder.wants_decisions() {
            return Ok(());
        }
        self.record_decision(self.waiting_head(queue), key, turn, None)
    }

    /// Records a decision on a set, which need not be the next of its queue, and the set that it waits behind. Errors: the recorder's.
    pub fn record_decision(&mut self, head: SetSlot, key: LineKey, turn: Turn, behind: Option<SetSlot>) -> Result<()> {
        if !self.context.recorder.wants_decisions() {
            return Ok(());
        }
        let names = self.context.source.job_names();
        let set = &self.work.sets[head];
        let behind = behind.map(|first| self.work.jobs.name(self.work.sets[first].job, names));
        let name = self.work.jobs.name(set.job, names);
        let turn = match turn {
            Turn::Launched(_) if self.site.pooled => Turn::Launched(None),
            Turn::Blocked(_) => Turn::Blocked(self.shortage(head)),
            turn => turn,
        };
        let (now, user, task) = (self.now, set.user, u64::from(set.number));
        let decision = Decision { now, user, rank: key.rank, name, task, turn, behind };
        self.context.recorder.decided(&decision, &self.books)
    }

    /// Records that a set has joined its queue.
    pub fn note_joined(&mut self, slot: SetSlot) {
        if self.context.recorder.wants_decisions() {
            self.joined.push(slot);
        }
    }

    /// Forgets which sets joined a queue since the last round.
    pub fn forget_joined(&mut self) {
        self.joined.clear();
    }

    /// Records the decision "waits" for every set that joined a queue and was not tried in the rounds of an instant. Rounds end at the
    /// first queue that does not fit if `ends_at_first` is set; otherwise they try all queues. Errors: the recorder's.
    pub fn record_untried(&mut self, ends_at_first: bool) -> Result<()> {
        let mut slots = std::mem::take(&mut self.joined);
        // A slot is listed twice if its set ended and another one joined in its place.
        slots.sort_unstable_by_key(|slot| (self.work.sets[*slot].row, self.work.sets[*slot].number, *slot));
        slots.dedup();
        for slot in slots.drain(..) {
            if let Some((untried, first)) = self.untried(slot, ends_at_first) {
                self.record_decision(slot, self.line_key_of(slot), Turn::Waits(untried), Some(first))?;
            }
        }
        self.joined = slots;
        Ok(())
    }

    /// Returns why a set was not tried, and the set that it waits behind. Returns `None` if the set was tried or no longer waits.
    fn untried(&self, slot: SetSlot, ends_at_first: bool) -> Option<(Untried, SetSlot)> {
        let set = &self.work.sets[slot];
        let queued = set.waiting > 0 && set.is_listed() && !set.awaits_stage() && set.release <= self.now;
        if !queued || !self.work.sets.is_of(slot, set.row) {
            return None;
        }
        let head = self.work.queues.head(set.queue)?;
        if head != slot {
            return Some((Untried::BehindOwn, head));
        }
        let blocked = self.queue_state(set.queue) == QueueState::Blocked;
        let (_, first) = self.first_blocked().filter(|_| ends_at_first && blocked)?;
        (first != set.queue).then(|| Some((Untried::RoundEnded, self.work.queues.head(first)?))).flatten()
    }
}
