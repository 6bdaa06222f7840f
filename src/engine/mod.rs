//! The event loop: one run, one thread, bit for bit reproducible.
//!
//! At every instant: what ended ends, what arrives arrives, rows released by an ended stage join behind the arrivals,
//! and one round of launches follows. A task of zero duration ends in a further pass of the same instant, after that
//! instant's round. Arrivals are streamed and never enter the queue, so memory grows with what is active.

mod agenda;
mod arrive;
mod jobs;
mod line;
mod queues;
mod round;

pub use agenda::{Agenda, EventKey, Ticket};
pub use line::{Line, Place};

use std::collections::BTreeMap;

use crate::books::{Books, Weights};
use crate::cluster::{Cluster, Machines, Placement};
use crate::error::{Error, Result};
use crate::policy::Policy;
use crate::record::{Named, Recorder, State, Stuck, StuckRecord, TaskRecord};
use crate::units::{MachineId, Resources, Time, UserId};
use crate::workload::Source;

use jobs::{Jobs, SetSlot, Sets};
use queues::Queues;

/// What happens when the next task in line does not fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnBlocked {
    /// The next user in rank order is tried.
    #[default]
    Skip,
    /// The round ends, as in the DRF paper's Algorithm 1.
    Stop,
}

impl OnBlocked {
    /// All of them with their names.
    pub const ALL: [(&'static str, OnBlocked); 2] = [("skip", OnBlocked::Skip), ("stop", OnBlocked::Stop)];
}

/// Who goes first among users of equal rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Ties {
    /// The user that appears first in the trace.
    #[default]
    LowestId,
    /// The user that appears last: gives the order of the DRF paper's Table 1.
    HighestId,
    /// The user with the fewest running tasks, then the lower id.
    FewestRunning,
}

impl Ties {
    /// All of them with their names.
    pub const ALL: [(&'static str, Ties); 3] =
        [("lowest-id", Ties::LowestId), ("highest-id", Ties::HighestId), ("fewest-running", Ties::FewestRunning)];
}

macro_rules! named {
    ($type:ty, $key:literal) => {
        impl $type {
            /// The name on the command line and in a plan.
            pub fn name(self) -> &'static str {
                Self::ALL.iter().find(|(_, value)| *value == self).map_or("", |(name, _)| name)
            }
        }

        impl std::str::FromStr for $type {
            type Err = Error;

            fn from_str(text: &str) -> Result<Self> {
                let known = Self::ALL.map(|(name, _)| name);
                Self::ALL
                    .iter()
                    .find(|(name, _)| *name == text)
                    .map(|(_, value)| *value)
                    .ok_or_else(|| Error::plan($key, format!("'{text}'"), known.join(" or ")))
            }
        }
    };
}

named!(OnBlocked, "on-blocked");
named!(Ties, "ties");

/// How a run goes about it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// How a task finds its machine.
    pub placement: Placement,
    /// What happens when the next task in line does not fit.
    pub on_blocked: OnBlocked,
    /// Who goes first among users of equal rank.
    pub ties: Ties,
    /// When to end though work is left.
    pub until: Option<Time>,
    /// Add the books up again after every round.
    pub audit: bool,
}

/// What a run did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// When it ended: the last event, or the horizon.
    pub end: Time,
    /// Rows taken from the source.
    pub rows: u64,
    /// Tasks launched.
    pub launched: u64,
    /// Instants at which something happened.
    pub instants: u64,
    /// The most tasks that ran at once.
    pub peak_running: u64,
}

/// Equal tasks that end together on one machine.
#[derive(Clone, Copy, Debug)]
struct Finish {
    set: SetSlot,
    machine: MachineId,
    first: u32,
    count: std::num::NonZeroU32,
}

/// Replays a workload under a policy.
///
/// Errors: the source's, the recorder's, and [`Error::Mismatch`] for rows that make no sense on this cluster.
pub fn run<R: Recorder>(
    source: &mut dyn Source,
    policy: &mut dyn Policy,
    cluster: &Cluster,
    weights: Weights,
    options: &Options,
    recorder: &mut R,
) -> Result<Outcome> {
    let mut engine = Engine::new(source, policy, cluster, weights, options, recorder);
    engine.replay()?;
    engine.close()?;
    Ok(engine.outcome)
}

struct Engine<'a, R> {
    source: &'a mut dyn Source,
    policy: &'a mut dyn Policy,
    recorder: &'a mut R,
    options: Options,
    cluster: &'a Cluster,
    /// The most that a task may demand so that what all running tasks use can be added up: under slots more tasks may
    /// run than the cluster has room for.
    most_a_task: u64,
    /// Distinct machines, through the lens: what fits none of them never starts.
    kinds: Vec<Resources>,
    now: Time,
    books: Books,
    machines: Machines,
    agenda: Agenda<Finish>,
    jobs: Jobs,
    sets: Sets,
    queues: Queues,
    /// Rows of jobs that straddle instants, taken early so that a job is known whole.
    later: BTreeMap<(Time, u64), SetSlot>,
    /// Kept from one instant to the next for their memory only.
    appeared: arrive::Appeared,
    arrived: Vec<(SetSlot, Vec<u32>)>,
    /// Rows that an ended stage released in this pass.
    released: Vec<(u64, SetSlot)>,
    round: round::Round,
    /// Whether the policy lets launches move others.
    moves_others: bool,
    changed: Changed,
    /// The horizon ended the run while something was still to come.
    cut: bool,
    outcome: Outcome,
}

/// Users that hold or wait for something else than before, each once.
#[derive(Default)]
struct Changed {
    marked: Vec<bool>,
    since_round: Vec<UserId>,
    since_instant: Vec<UserId>,
    marked_instant: Vec<bool>,
}

impl Changed {
    fn open(&mut self) {
        self.marked.push(false);
        self.marked_instant.push(false);
    }

    fn mark(&mut self, user: UserId) {
        if !std::mem::replace(&mut self.marked[user.index()], true) {
            self.since_round.push(user);
        }
        // Apart from the above: what a round changes is news to the next round, but old by the next instant.
        if !std::mem::replace(&mut self.marked_instant[user.index()], true) {
            self.since_instant.push(user);
        }
    }

    fn round_over(&mut self) {
        for user in self.since_round.drain(..) {
            self.marked[user.index()] = false;
        }
    }

    fn instant_over(&mut self) {
        for user in self.since_instant.drain(..) {
            self.marked_instant[user.index()] = false;
        }
    }
}

/// How many instants pass between two heartbeats.
const HEARTBEAT: u64 = 4096;

impl<'a, R: Recorder> Engine<'a, R> {
    fn new(
        source: &'a mut dyn Source,
        policy: &'a mut dyn Policy,
        cluster: &'a Cluster,
        weights: Weights,
        options: &Options,
        recorder: &'a mut R,
    ) -> Engine<'a, R> {
        let dims = cluster.dims.len();
        let seen: Vec<Resources> =
            cluster.capacities.iter().map(|capacity| policy.lens(*capacity, Resources::ZERO).0).collect();
        let offered = sum(&seen);
        let odd = Resources([3, 1, 4, 1, 5, 9, 2, 6]);
        let plain = seen == cluster.capacities && policy.lens(cluster.total(), odd).1 == odd;
        let most_a_task = if plain { u64::MAX } else { u64::MAX / offered.0.into_iter().max().unwrap_or(1).max(1) };
        let capacities = if options.placement == Placement::Pooled { vec![offered] } else { seen };
        let mut kinds = capacities.clone();
        kinds.sort_unstable_by_key(|kind| kind.0);
        kinds.dedup();
        let mut books = Books::new(dims, cluster.total(), offered, plain, weights);
        if policy.wants_waiting_demand() || recorder.wants_waiting_demand() {
            books.keep_waiting_demand();
        }
        let moves_others = policy.moves_others();
        Engine {
            source,
            policy,
            recorder,
            options: *options,
            cluster,
            most_a_task,
            kinds,
            now: Time::ZERO,
            books,
            machines: Machines::new(dims, options.placement, &capacities),
            agenda: Agenda::default(),
            jobs: Jobs::default(),
            sets: Sets::new(dims, plain),
            queues: Queues::default(),
            later: BTreeMap::new(),
            appeared: arrive::Appeared::default(),
            arrived: Vec::new(),
            released: Vec::new(),
            round: round::Round::new(dims),
            moves_others,
            changed: Changed::default(),
            cut: false,
            outcome: Outcome::default(),
        }
    }

    fn replay(&mut self) -> Result<()> {
        while let Some(next) = self.next_instant()? {
            if let Some(until) = self.options.until.filter(|until| next > *until) {
                self.cut = true;
                self.advance(until)?;
                break;
            }
            self.advance(next)?;
            self.instant()?;
            self.recorder.settled(self.now, &self.changed.since_instant, &self.books)?;
            self.changed.instant_over();
            self.outcome.instants += 1;
            if self.outcome.instants.is_multiple_of(HEARTBEAT) {
                self.recorder.heartbeat(self.now)?;
            }
        }
        self.outcome.end = self.now;
        Ok(())
    }

    fn advance(&mut self, to: Time) -> Result<()> {
        if to > self.now {
            let machines = (self.options.placement != Placement::Pooled).then_some(&self.machines);
            let state = State { books: &self.books, machines, groups: self.policy.groups() };
            self.recorder.interval(self.now, to, &state)?;
            self.now = to;
        }
        Ok(())
    }

    fn next_instant(&mut self) -> Result<Option<Time>> {
        let arrival = self.source.peek()?.map(|set| set.submit);
        let later = self.later.first_key_value().map(|((time, _), _)| *time);
        let wake = self.policy.wake().filter(|wake| *wake > self.now && self.books.total_waiting() > 0);
        let next = [arrival, later, self.agenda.next_time(), wake].into_iter().flatten().min();
        Ok(next.map(|next| next.max(self.now)))
    }

    /// Everything that happens at `self.now`.
    fn instant(&mut self) -> Result<()> {
        loop {
            self.finish_due()?;
            self.arrive()?;
            self.enqueue_released();
            self.serve()?;
            if self.options.audit {
                self.books.audit(self.now);
                self.audit_waiting();
            }
            self.outcome.peak_running = self.outcome.peak_running.max(self.books.total_running());
            if self.agenda.next_time() != Some(self.now) {
                return Ok(());
            }
        }
    }

    /// Adds up again what waiting tasks need, if it is kept. Panics: when the books are wrong.
    fn audit_waiting(&self) {
        let dims = self.books.dims();
        let mut sums = vec![0u128; self.books.users() * dims];
        for slot in self.sets.by_row() {
            let set = &self.sets[slot];
            if set.held || set.release > self.now {
                continue;
            }
            for (d, demand) in self.sets.needs(slot).0.iter().enumerate() {
                sums[set.user.index() * dims + d] += u128::from(*demand) * u128::from(set.waiting);
            }
        }
        self.books.audit_waiting_demand(&sums, self.now);
    }

    fn finish_due(&mut self) -> Result<()> {
        while self.agenda.next_time() == Some(self.now) {
            let Some((_, finish)) = self.agenda.pop() else { break };
            self.finish(finish)?;
        }
        Ok(())
    }

    fn finish(&mut self, finish: Finish) -> Result<()> {
        let count = finish.count.get();
        let set = &mut self.sets[finish.set];
        set.left -= count;
        let (user, ended) = (set.user, set.left == 0);
        let (demand, footprint) = self.sets.needs(finish.set);
        self.books.finish(user, demand, footprint, count);
        self.machines.give(finish.machine, footprint, count);
        self.round.freed(finish.machine);
        self.round.rerank(user);
        self.changed.mark(user);
        self.report(&finish, self.now, Some(self.now))?;
        let job = self.sets[finish.set].job;
        self.jobs[job].left -= u64::from(count);
        if ended {
            self.jobs.row_ended(job, self.sets[finish.set].stage, &mut self.released);
            self.sets.free(finish.set);
            if self.jobs[job].ended() {
                let (id, user) = (self.jobs[job].id, self.jobs[job].user);
                self.recorder.job(&self.jobs[job].record(self.source.job_names(), Some(self.now)))?;
                self.jobs.free(job);
                self.source.job_finished(id, user, self.now);
            }
        }
        Ok(())
    }

    /// Tells of tasks that end at `end`, or would have ended then had the run not been cut.
    fn report(&mut self, tasks: &Finish, end: Time, finish: Option<Time>) -> Result<()> {
        let set = &self.sets[tasks.set];
        self.recorder.tasks(&TaskRecord {
            name: Named { name: &self.jobs[set.job].name, names: self.source.job_names() },
            user: set.user,
            first: u64::from(tasks.first),
            count: tasks.count.get(),
            machine: (self.options.placement != Placement::Pooled).then_some(tasks.machine),
            release: set.release,
            start: Time(end.0 - set.duration.0),
            finish,
            duration: set.duration,
            demand: self.sets.needs(tasks.set).0,
        })
    }

    /// Reports what is left: running tasks, waiting and held rows, unfinished jobs.
    fn close(&mut self) -> Result<()> {
        while let Some((key, running)) = self.agenda.pop() {
            self.report(&running, key.time, None)?;
        }
        for slot in self.sets.by_row() {
            let set = &self.sets[slot];
            if set.waiting == 0 {
                continue;
            }
            let why = match (self.cut, set.held) {
                (true, _) => Stuck::Cut,
                (false, true) => Stuck::Deadlocked,
                (false, false) => Stuck::Starved,
            };
            self.recorder.stuck(&StuckRecord {
                name: Named { name: &self.jobs[set.job].name, names: self.source.job_names() },
                user: set.user,
                row: set.row,
                tasks: u64::from(set.waiting),
                first: u64::from(set.number),
                demand: self.sets.needs(slot).0,
                why,
            })?;
        }
        for slot in self.jobs.by_id() {
            self.recorder.job(&self.jobs[slot].record(self.source.job_names(), None))?;
        }
        Ok(())
    }
}

/// All amounts together.
fn sum(parts: &[Resources]) -> Resources {
    parts.iter().fold(Resources::ZERO, |mut sum, part| {
        for (sum, part) in sum.0.iter_mut().zip(part.0) {
            *sum += part;
        }
        sum
    })
}
