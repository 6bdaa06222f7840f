//! The event loop: one run, one thread, bit for bit reproducible.
//!
//! At every instant: what ended ends, what arrives arrives, rows released by an ended stage join behind the arrivals,
//! and one round of launches follows. A task of zero duration ends in a further pass of the same instant, after that
//! instant's round. Arrivals are streamed and never enter the queue, so memory grows with what is active.

mod agenda;
mod arrive;
mod asks;
mod end;
mod gang;
mod held;
mod hoard;
mod interval;
mod jobs;
mod line;
mod locality;
mod machine_events;
mod partitions;
mod queues;
mod round;
mod scopes;
mod slowdown;
mod take_back;
mod victims;

pub use agenda::{Agenda, EventKey, Ticket};
pub use asks::{Preempt, PreemptFrom};
pub use line::{Line, Place};
pub use queues::QueueId;
pub use slowdown::Slowdown;

use std::collections::BTreeMap;

use crate::books::{Books, Weights};
use crate::cluster::{Cluster, Hardware, Machines, Placement};
use crate::policy::Policy;
use crate::record::{Recorder, Unreturned};
use crate::workload::{Source, synthetic::random::stream};
use plimsoll_base::error::{Error, Result};
use plimsoll_base::units::{MachineId, Resources, Span, Time, UserId};

use asks::Asks;
use gang::Kinds;
use held::Devices;
use hoard::Hoards;
use jobs::{JobSlot, Jobs, SetSlot, Sets};
use locality::Falling;
use partitions::Partitions;
use queues::Queues;
use scopes::{Empty, Scopes};
use slowdown::Hosts;
use victims::Victims;

/// The rule for when the next task in line does not fit.
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

/// The order among users of equal rank.
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
named!(OnFailure, "on-failure");
named!(PreemptFrom, "preempt-from");

/// The fate of the tasks on a machine that fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnFailure {
    /// They wait again in their place in line, and start anew.
    #[default]
    Requeue,
    /// They are lost; their job goes on without them.
    Lose,
}

impl OnFailure {
    /// All of them with their names.
    pub const ALL: [(&'static str, OnFailure); 2] = [("requeue", OnFailure::Requeue), ("lose", OnFailure::Lose)];
}

/// How a run goes about it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// How a task finds its machine.
    pub placement: Placement,
    /// The rule for when the next task in line does not fit.
    pub on_blocked: OnBlocked,
    /// The order among users of equal rank.
    pub ties: Ties,
    /// How machines slow down when more memory is used than they have; not for a pooled cluster.
    pub slowdown: Option<Slowdown>,
    /// The fate of the tasks on a machine that fails.
    pub on_failure: OnFailure,
    /// Seed of what a random placement draws.
    pub seed: u64,
    /// After how long a task that waits for its place may start a level up: rack, room, cluster; never if absent.
    pub fall_back: Option<Span>,
    /// For how long gangs hold room that is not enough yet; they hold none if absent.
    pub hoard: Option<Span>,
    /// How urgent tasks come by the room of others; not at all if absent.
    pub preempt: Option<Preempt>,
    /// When to end though work is left.
    pub until: Option<Time>,
    /// Add the books up again after every round.
    pub audit: bool,
}

/// Counts of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
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
    /// How often a task asked others for their room.
    pub asks: u64,
    /// Asks that came to nothing.
    pub asks_withdrawn: u64,
    /// How often a gang gave up what it held.
    pub hoards_given_up: u64,
    /// Tasks that were asked and stopped, for they had not ended in time.
    pub forced: u64,
}

/// Equal tasks that started together on one machine, and end together unless they are stopped.
#[derive(Clone, Copy, Debug)]
struct Running {
    set: SetSlot,
    job: JobSlot,
    machine: MachineId,
    first: u32,
    count: std::num::NonZeroU32,
    start: Time,
}

/// Replays a workload under a policy.
///
/// Errors: the source's, the recorder's, and [`Error::Mismatch`] for rows that make no sense on this cluster.
pub fn run(
    source: &mut dyn Source,
    policy: &mut dyn Policy,
    cluster: &Cluster,
    weights: Weights,
    options: &Options,
    recorder: &mut dyn Recorder,
) -> Result<Outcome> {
    check(policy, cluster, options)?;
    let partitions = Partitions::new(policy, cluster, options.placement)?;
    let mut engine = Engine::new(source, policy, cluster, weights, options, recorder, partitions);
    engine.replay()?;
    engine.close()?;
    Ok(engine.outcome)
}

/// Checks whether a policy can run on a cluster in this way, as [`run`] does first. Errors: [`Error::Mismatch`] for options
/// that do not go together, and the policy's for its labels.
pub fn check(policy: &dyn Policy, cluster: &Cluster, options: &Options) -> Result<()> {
    let wrong = |problem: &str| Err(Error::Mismatch { problem: problem.to_owned() });
    if options.slowdown.is_some() && !cluster.dims.iter().any(|dim| dim.name == "memory") {
        return wrong("machines slow down by the memory that tasks use, and there is none in the workload");
    }
    let placed = cluster.hardware.is_some() && options.placement != Placement::Pooled;
    if placed && (options.preempt.is_some() || options.hoard.is_some()) {
        return wrong("room cannot be reserved (preempt, hoard) where devices have identities");
    }
    if placed && !lens_is_plain(policy, cluster) {
        return wrong("a policy of slots knows no devices; compare it without 'devices'");
    }
    Partitions::new(policy, cluster, options.placement).map(drop)
}

/// Whether a policy sees machines and demands as they are.
fn lens_is_plain(policy: &dyn Policy, cluster: &Cluster) -> bool {
    let odd = Resources([3, 1, 4, 1, 5, 9, 2, 6]);
    cluster.capacities.iter().all(|capacity| policy.lens(*capacity, Resources::ZERO).0 == *capacity)
        && policy.lens(cluster.total(), odd).1 == odd
}

struct Engine<'a> {
    source: &'a mut dyn Source,
    policy: &'a mut dyn Policy,
    recorder: &'a mut dyn Recorder,
    options: Options,
    cluster: &'a Cluster,
    /// The most that a task may demand so that what all running tasks use can be added up: under slots more tasks may
    /// run than the cluster has room for.
    most_a_task: u64,
    now: Time,
    books: Books,
    machines: Machines,
    /// The devices that each running task holds, if devices have identities.
    devices: Option<Devices>,
    agenda: Agenda<Running>,
    /// How many of the machines' events have happened.
    events: usize,
    /// The amounts that each machine offers through the lens.
    offers: Vec<Resources>,
    /// Running tasks in the order of stopping, if any are ever stopped.
    victims: Option<Victims>,
    /// The amounts that groups could not give back in the last round.
    unreturned: Vec<Unreturned>,
    /// How far tasks are, if machines slow down.
    hosts: Option<Hosts>,
    jobs: Jobs,
    sets: Sets,
    queues: Queues,
    scopes: Scopes<'a>,
    /// Rows of jobs that straddle instants, taken early so that a job is known whole.
    later: BTreeMap<(Time, u64), SetSlot>,
    falling: Falling,
    asks: Option<Asks>,
    hoards: Option<Hoards>,
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
    partitions: Partitions,
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

impl<'a> Engine<'a> {
    fn new(
        source: &'a mut dyn Source,
        policy: &'a mut dyn Policy,
        cluster: &'a Cluster,
        weights: Weights,
        options: &Options,
        recorder: &'a mut dyn Recorder,
        partitions: Partitions,
    ) -> Engine<'a> {
        let dims = cluster.dims.len();
        let seen: Vec<Resources> =
            cluster.capacities.iter().map(|capacity| policy.lens(*capacity, Resources::ZERO).0).collect();
        let offered = sum(&seen);
        let plain = lens_is_plain(policy, cluster);
        let most_a_task = if plain { u64::MAX } else { u64::MAX / offered.0.into_iter().max().unwrap_or(1).max(1) };
        let capacities = if options.placement == Placement::Pooled { vec![offered] } else { seen };
        let mut machines = Machines::new(dims, options.placement, &capacities);
        machines.draw_from(stream(options.seed, "placement"));
        let hardware = cluster.hardware.clone().filter(|_| options.placement != Placement::Pooled);
        let devices = hardware.is_some().then(Devices::default);
        let made_of = hardware.as_ref().map(Hardware::dims).unwrap_or_default();
        if let Some(hardware) = hardware {
            machines = machines.with_hardware(hardware);
        }
        let real = (!plain).then(|| match options.placement {
            Placement::Pooled => Kinds::new(vec![cluster.total()], &[]),
            _ => Kinds::new(cluster.capacities.clone(), &made_of),
        });
        let scopes =
            Scopes::new(cluster, made_of.clone(), Empty { seen: Kinds::new(capacities.clone(), &made_of), real });
        let mut books = Books::new(dims, cluster.total(), offered, plain, weights);
        if policy.wants_waiting_demand() || recorder.wants_waiting_demand() {
            books.keep_waiting_demand();
        }
        if partitions.labels() > 0 {
            books.keep_apart(partitions.labels());
        }
        let memory = cluster.dims.iter().position(|dim| dim.name == "memory");
        let memories = |d: usize| cluster.capacities.iter().map(move |capacity| capacity.0[d]);
        let slowdown = options.slowdown.filter(|_| options.placement != Placement::Pooled);
        let hosts = slowdown.zip(memory).map(|(curve, d)| Hosts::new(curve, d, memories(d)));
        let eventful = !cluster.events.events.is_empty() && options.placement != Placement::Pooled;
        if eventful {
            cluster.events.absent.iter().for_each(|machine| machines.remove(*machine));
        }
        let moves_others = policy.moves_others();
        let victims = match options.preempt {
            Some(_) => Some(Victims::of_all()),
            None => (policy.takes_back() || eventful).then(Victims::default),
        };
        let mut engine = Engine {
            source,
            policy,
            recorder,
            options: *options,
            cluster,
            most_a_task,
            now: Time::ZERO,
            books,
            machines,
            devices,
            agenda: Agenda::default(),
            events: 0,
            offers: capacities,
            victims,
            unreturned: Vec::new(),
            hosts,
            jobs: Jobs::default(),
            sets: Sets::new(dims, plain),
            queues: Queues::default(),
            scopes,
            later: BTreeMap::new(),
            falling: Falling::default(),
            asks: options.preempt.map(Asks::new),
            hoards: options.hoard.filter(|_| options.placement != Placement::Pooled).map(Hoards::new),
            appeared: arrive::Appeared::default(),
            arrived: Vec::new(),
            released: Vec::new(),
            round: round::Round::default(),
            moves_others,
            changed: Changed::default(),
            cut: false,
            partitions,
            outcome: Outcome::default(),
        };
        engine.count_partitions();
        engine
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

    fn next_instant(&mut self) -> Result<Option<Time>> {
        let arrival = self.source.peek()?.map(|set| set.submit);
        let later = self.later.first_key_value().map(|((time, _), _)| *time);
        let wake = self.policy.wake(self.now).filter(|wake| *wake > self.now && self.books.total_waiting() > 0);
        let asks = self.asks.as_ref().and_then(Asks::next);
        let hoards = self.hoards.as_ref().and_then(Hoards::next);
        let sooner = |next: Time, other: Option<Time>| next.min(other.unwrap_or(Time::NEVER));
        let next = [later, self.agenda.next_time(), wake, self.falling.next(), asks, hoards];
        let next = next.into_iter().fold(sooner(Time::NEVER, arrival), sooner);
        // What happens to machines matters as long as anything is to come or waits.
        let event = self.next_event().filter(|_| next < Time::NEVER || self.books.total_waiting() > 0);
        let next = sooner(next, event);
        Ok((next < Time::NEVER).then(|| next.max(self.now)))
    }

    /// Everything that happens at `self.now`.
    fn instant(&mut self) -> Result<()> {
        loop {
            self.finish_due()?;
            self.fetch_ahead();
            self.machine_events()?;
            self.arrive()?;
            self.enqueue_released();
            self.fall_back();
            self.serve()?;
            if self.options.audit {
                self.books.audit(self.now);
                self.audit_waiting();
                self.audit_gangs();
                self.audit_devices();
                self.audit_partitions();
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
