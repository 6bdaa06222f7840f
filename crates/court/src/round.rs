//! One round of a policy in a situation.
//!
//! The situation is the initial state of an engine, which is stepped through one instant. Each running and waiting entry is a row of a
//! workload; ages become submission times, so that the arrival of the last waiting workload triggers the round. The launches, evictions and
//! reasons of the round, and the next situation, are derived from the recorded events.

use std::collections::HashMap;
use std::sync::Arc;

use plimsoll_base::error::{Error, Result};
use plimsoll_base::units::{MachineId, Span, Time, UserId};
use plimsoll_policies::{NamedPolicy, Policy, Registry, Setup, Status};
use plimsoll_sim::books::{Books, Weights};
use plimsoll_sim::cluster::{Cluster, Placement, Shortage};
use plimsoll_sim::engine::{Engine, Options, RunContext};
use plimsoll_sim::policy::Reason;
use plimsoll_sim::record::{Decision, Recorder, Stuck, StuckRecord, TaskRecord, Turn};
use plimsoll_sim::workload::{TaskSet, Workload as Rows};

use crate::situation::{RunningWorkload, Situation, free};
use crate::state::{State, Workload};

/// A policy that decides in situations of a state.
pub struct Bench<'a> {
    state: &'a State,
    /// The policy's name.
    pub policy: String,
    make: Box<dyn Fn(&Setup) -> Result<Box<dyn Policy>> + 'a>,
    /// Whether workloads without a user are users of their own.
    apart: bool,
    cluster: Arc<Cluster>,
    weights: Weights,
    registry: &'a Registry,
    /// The keys of groups that the policy reads.
    read: Vec<&'static str>,
}

/// The time of the round; running workloads have started before.
const NOW: Time = Time(3_600_000_000);

/// The decisions of a round.
#[derive(Clone, Debug, Default)]
pub struct Round {
    /// Tasks that start, in this order: workload, number of tasks, machine.
    pub launched: Vec<(usize, u32, u32)>,
    /// Tasks that are preempted.
    pub evicted: Vec<Evicted>,
    /// The waiting workloads, with the reasons.
    pub waits: Vec<Waits>,
    /// The status of the policy's users or groups, read after the decisions of the round.
    pub standings: Vec<Status>,
    /// Two users that the policy does not order: each precedes the other in its own comparison, or neither does.
    pub unordered: Option<(String, String)>,
}

/// Preempted tasks of a workload.
#[derive(Clone, Debug)]
pub struct Evicted {
    /// The workload.
    pub workload: usize,
    /// The number of tasks.
    pub tasks: u32,
    /// The name of the user that they make room for, and the rule.
    pub cause: Option<(String, &'static str)>,
}

/// Tasks of a workload that wait, and the reason.
#[derive(Clone, Debug)]
pub struct Waits {
    /// The workload.
    pub workload: usize,
    /// The number of tasks.
    pub tasks: u32,
    /// The reason.
    pub reason: Why,
}

/// A reason to wait.
#[derive(Clone, Debug, PartialEq)]
pub enum Why {
    /// No room: the missing resource, by index, and the missing amount.
    Room(Option<(usize, u64)>),
    /// A quota: the index of the group in the policy's tree, the resource, and the missing amount.
    Quota(u32, usize, u64),
    /// A rule of the policy.
    Rule(&'static str),
    /// It waits behind another workload of its user.
    Behind,
}

impl<'a> Bench<'a> {
    /// Creates a bench for a policy by name. Errors: those of its name and of its files.
    pub fn new(state: &'a State, policy: &str, registry: &'a Registry) -> Result<Bench<'a>> {
        let own = registry.own().iter().any(|own| own.name == policy);
        let spec = if own { None } else { registry.catalogue().parse(policy).ok() };
        let cluster = Arc::new(state.cluster.clone());
        let keys = spec.iter().flat_map(|spec| spec.row().keys).filter(|key| !key.whole).map(|key| key.name);
        let read = ["name", "parent", "users", "default", "weight"].into_iter().chain(keys).collect();
        let bench = |make: Box<dyn Fn(&Setup) -> Result<Box<dyn Policy>> + 'a>, apart| Bench {
            state,
            policy: policy.to_owned(),
            make,
            apart,
            cluster,
            weights: Weights::from_scalars(state.weights.iter().map(|(name, weight)| (name.as_str(), *weight))),
            registry,
            read,
        };
        let bench = match spec {
            Some(spec) if spec.is_queued() && spec.file().is_none() => {
                bench(Box::new(move |setup| spec.build_queued(&state.queues, setup)), true)
            }
            spec => {
                let queued = spec.is_some_and(|spec| spec.is_queued());
                let named: NamedPolicy = registry.policy(policy)?;
                bench(Box::new(move |setup| named.build(setup)), queued)
            }
        };
        bench.policy()?;
        Ok(bench)
    }

    /// Returns the state.
    pub fn state(&self) -> &'a State {
        self.state
    }

    /// Returns the keys of groups that the state has and the policy does not read, each once.
    pub fn unread(&self) -> Vec<&str> {
        let keys = self.state.queues.groups.iter().flat_map(|group| group.table.entries());
        let mut unread: Vec<&str> = Vec::new();
        for key in keys.map(|entry| entry.key.as_str()) {
            if !self.read.contains(&key) && !unread.contains(&key) {
                unread.push(key);
            }
        }
        unread
    }

    /// Creates a bench for the same policy on another state. Errors: as [`Bench::new`].
    pub fn on<'s>(&self, state: &'s State) -> Result<Bench<'s>>
    where
        'a: 's,
    {
        Bench::new(state, &self.policy, self.registry)
    }

    fn policy(&self) -> Result<Box<dyn Policy>> {
        let State { cluster, .. } = self.state;
        (self.make)(&Setup {
            dims: &cluster.dims,
            capacity: cluster.total(),
            machines: cluster.capacities.len() as u64,
            weights: &self.weights,
            labels: None,
        })
    }

    /// Returns the engine's user of a workload.
    pub fn user_of(&self, workload: &'a Workload) -> &'a str {
        let party = workload.user.as_ref().or(if self.apart { None } else { workload.group.as_ref() });
        party.map_or(&workload.name, |party| party)
    }

    /// Decides a round, and advances the situation by it. Errors: those of the policy, and running workloads that do not fit on their
    /// machines.
    pub fn play(&self, situation: &mut Situation) -> Result<Round> {
        let mut rows = Rows { dims: self.cluster.dims.clone(), ..Rows::default() };
        for run in &situation.running {
            self.row(&mut rows, run.workload, run.tasks(), Time::ZERO);
        }
        // The arrival of the last waiting workload triggers the round.
        for (at, wait) in situation.waiting.iter().enumerate() {
            let last = at + 1 == situation.waiting.len();
            self.row(&mut rows, wait.workload, wait.tasks, if last { NOW } else { Time::ZERO });
        }
        let ages = Ages::new(self.state, situation);
        let rows = rows.finish();
        let mut events = EventLog::default();
        let (mut source, mut policy) = (rows.source(), self.policy()?);
        let placement = if self.state.machines.is_some() { Placement::FirstFit } else { Placement::Pooled };
        let options = Options { placement, ..Options::default() };
        let context = RunContext::lent(&mut source, &mut *policy, &mut events);
        let mut engine = Engine::new(context, self.cluster.clone(), self.weights.clone(), &options)?;
        for run in &situation.running {
            let workload = &self.state.workloads[run.workload];
            let parts: Vec<_> = run.parts.iter().map(|(machine, tasks)| (MachineId(*machine), *tasks)).collect();
            engine.begin(&parts, ages.of_running(workload)).map_err(|error| Error::Mismatch {
                problem: format!("'{}' cannot run as the state specifies: {error}", workload.name),
            })?;
        }
        for at in 1..situation.waiting.len() {
            engine.enter(ages.of_waiting(at - 1))?;
        }
        let mut round = Round::default();
        if situation.waiting.is_empty() {
            engine.run_idle_round()?;
        } else {
            engine.step()?;
        }
        round.standings = engine.explain().map(|explain| explain.status(engine.books())).unwrap_or_default();
        round.unordered = unordered(&engine, rows.users.len() as u32, |user| rows.users.name(user.0).to_owned());
        engine.finish()?;
        self.follow(situation, events, &rows, &mut round);
        Ok(round)
    }

    fn row(&self, rows: &mut Rows, workload: usize, tasks: u32, submit: Time) {
        let about = &self.state.workloads[workload];
        let (job, user) = (rows.job(&rows.sets.len().to_string()), UserId(rows.users.intern(self.user_of(about))));
        rows.sets.push(TaskSet {
            job,
            user,
            submit,
            duration: Span::ENDLESS,
            tasks,
            demand: about.demand,
            priority: about.priority,
            gang: about.gang,
            estimate: about.estimate,
            ..TaskSet::default()
        });
    }

    /// Derives the new situation from all recorded events.
    fn follow(&self, situation: &mut Situation, events: EventLog, rows: &Rows, round: &mut Round) {
        let before = situation.running.len();
        let name = |user: UserId| rows.users.name(user.0).to_owned();
        let mut stopped: Vec<(usize, u32)> = events.stopped.iter().map(|(row, tasks)| (*row, *tasks)).collect();
        stopped.sort_by_key(|(row, _)| {
            let told = events.causes.iter().position(|(known, ..)| known == row);
            (told.unwrap_or(usize::MAX), *row)
        });
        for (row, tasks) in &stopped {
            let cause = events.causes.iter().find(|(known, ..)| known == row);
            // A leaving workload is preempted only once.
            if situation.running[*row].leaves.is_none() {
                let cause = cause.map(|(_, user, rule)| (name(*user), *rule));
                round.evicted.push(Evicted { workload: situation.running[*row].workload, tasks: *tasks, cause });
            }
        }
        self.launch(situation, &events, &stopped, round);
        // A workload starts first those tasks that have waited longest.
        let mut started: HashMap<usize, u32> = HashMap::new();
        for launch in &round.launched {
            *started.entry(launch.0).or_default() += launch.1;
        }
        for (at, wait) in situation.waiting.iter_mut().enumerate() {
            let row = before + at;
            let left = started.entry(wait.workload).or_default();
            let now = wait.tasks.min(*left);
            (wait.tasks, *left) = (wait.tasks - now, *left - now);
            if wait.tasks > 0 {
                let planned = now == 0 && events.order.contains(&row);
                let known = events.waits.get(&row).cloned().unwrap_or(Why::Behind);
                let reason = if planned { Why::Rule("the tasks that it replaces have not left yet") } else { known };
                round.waits.push(Waits { workload: wait.workload, tasks: wait.tasks, reason });
            }
        }
        situation.waiting.retain(|wait| wait.tasks > 0);
        self.carry_out(situation, &stopped, round, &started);
    }

    /// Determines the launches of a round that have room, in the order of the decisions, after the room of victims without a grace period
    /// is free. A gang starts all its tasks or none.
    fn launch(&self, situation: &Situation, events: &EventLog, stopped: &[(usize, u32)], round: &mut Round) {
        let of = |row: usize| self.about(situation, row);
        let stays = |(row, run): (usize, &RunningWorkload)| match gone(stopped, row) {
            tasks if run.leaves.is_none() && of(row).1.grace == 0 => run.without(tasks),
            _ => Some(run.clone()),
        };
        let stay: Vec<RunningWorkload> = situation.running.iter().enumerate().filter_map(stays).collect();
        let mut free = free(self.state, &stay);
        let mut launched = events.launched.clone();
        launched.sort_by_key(|(row, ..)| events.order.iter().position(|known| known == row));
        for parts in launched.chunk_by(|one, other| one.0 == other.0) {
            let (row, (workload, about)) = (parts[0].0, of(parts[0].0));
            // Tasks that were stopped in this round and have not left, or are not submitted again, cannot start.
            if gone(stopped, row) > 0 && (about.grace > 0 || !about.resubmit) {
                continue;
            }
            let fits = |part: &(usize, u32, u32)| about.demand.times(part.1).fits(&free[part.2 as usize]);
            if about.gang && !parts.iter().all(fits) {
                continue;
            }
            for (_, tasks, machine) in parts {
                let (need, room) = (about.demand.times(*tasks), &mut free[*machine as usize]);
                if need.fits(room) {
                    *room -= need;
                    round.launched.push((workload, *tasks, *machine));
                }
            }
        }
    }

    /// Returns the workload of a row; the rows of waiting workloads follow those of running ones.
    fn about(&self, situation: &Situation, row: usize) -> (usize, &'a Workload) {
        let workload = match row.checked_sub(situation.running.len()) {
            None => situation.running[row].workload,
            Some(at) => situation.waiting[at].workload,
        };
        (workload, &self.state.workloads[workload])
    }

    /// Applies the round: victims that did not start again leave or wait, and launched tasks run.
    fn carry_out(
        &self,
        situation: &mut Situation,
        stopped: &[(usize, u32)],
        round: &Round,
        again: &HashMap<usize, u32>,
    ) {
        let mut again = again.clone();
        for (row, run) in std::mem::take(&mut situation.running).into_iter().enumerate() {
            let workload = &self.state.workloads[run.workload];
            let gone = if run.leaves.is_some() { 0 } else { gone(stopped, row) };
            situation.running.extend(run.without(gone));
            if gone > 0 && workload.grace > 0 {
                let parts = run.parts.clone();
                let leaving = RunningWorkload { parts, leaves: Some(workload.grace), ..run.clone() };
                situation.running.extend(leaving.without(run.tasks() - gone));
            } else if gone > 0 && workload.resubmit {
                let left = again.entry(run.workload).or_default();
                let now = gone.min(*left);
                *left -= now;
                if gone > now {
                    situation.wait(self.state, run.workload, gone - now, false);
                }
            }
        }
        for parts in round.launched.chunk_by(|one, other| one.0 == other.0) {
            let (workload, about) = (parts[0].0, &self.state.workloads[parts[0].0]);
            let all: Vec<(u32, u32)> = parts.iter().map(|(_, tasks, machine)| (*machine, *tasks)).collect();
            let run = |parts| RunningWorkload { workload, parts, ends: about.ends_after, leaves: None };
            match about.gang {
                true => situation.running.push(run(all)),
                false => situation.running.extend(all.into_iter().map(|part| run(vec![part]))),
            }
        }
    }
}

/// Returns the number of tasks of a row that are stopped.
fn gone(stopped: &[(usize, u32)], row: usize) -> u32 {
    stopped.iter().find(|(known, _)| *known == row).map_or(0, |(_, tasks)| *tasks)
}

/// The submission times of workloads, which define their order by age.
struct Ages {
    /// Ages of the waiting workloads that have not ended before, in their order.
    waiting: Vec<usize>,
    /// The number of waiting workloads.
    all: usize,
    /// The time between the submissions of two waiting workloads.
    step: u64,
}

impl Ages {
    fn new(state: &State, situation: &Situation) -> Ages {
        let waiting = situation.waiting.iter().filter(|wait| !wait.anew);
        let waiting = waiting.map(|wait| state.workloads[wait.workload].born).collect();
        Ages { waiting, all: situation.waiting.len(), step: state.workloads.len() as u64 + 1 }
    }

    /// Returns the submission time of the waiting workload at this position. The last one arrives at [`NOW`].
    fn of_waiting(&self, at: usize) -> Time {
        Time((at as u64 + 1) * self.step)
    }

    /// Returns the submission time of a running workload: between the older waiting ones and the others.
    fn of_running(&self, workload: &Workload) -> Time {
        let older = self.waiting.partition_point(|born| *born < workload.born);
        let after = if older > 0 && older == self.all { NOW.0 } else { older as u64 * self.step };
        Time(after + 1 + workload.born as u64)
    }
}

/// Returns the first two users that the policy does not order.
fn unordered(engine: &Engine, users: u32, name: impl Fn(UserId) -> String) -> Option<(String, String)> {
    let (explain, books) = (engine.explain()?, engine.books());
    let is_before = |one, other| explain.compare_users(one, other, books);
    for one in 0..users {
        for other in one + 1..users {
            let (one, other) = (UserId(one), UserId(other));
            if let (Some(before), Some(after)) = (is_before(one, other), is_before(other, one))
                && before == after
            {
                return Some((name(one), name(other)));
            }
        }
    }
    None
}

/// The events of a round, by row.
#[derive(Default)]
struct EventLog {
    launched: Vec<(usize, u32, u32)>,
    /// The rows that start, in the order of the decisions.
    order: Vec<usize>,
    stopped: HashMap<usize, u32>,
    causes: Vec<(usize, UserId, &'static str)>,
    waits: HashMap<usize, Why>,
}

fn row_of(name: plimsoll_sim::record::Named) -> usize {
    let mut text = String::new();
    name.render(&mut text);
    text.parse().expect("jobs are named by their rows")
}

impl Recorder for EventLog {
    fn wants_decisions(&self) -> bool {
        true
    }

    fn decided(&mut self, decision: &Decision, _books: &Books) -> Result<()> {
        let row = row_of(decision.name);
        match decision.turn {
            Turn::Launched(_) => {
                self.waits.remove(&row);
                self.order.push(row);
            }
            Turn::Blocked(shortage) => {
                let short = |short: Shortage| short.resource.map(|resource| (usize::from(resource), short.amount));
                self.waits.insert(row, Why::Room(shortage.and_then(short)));
            }
            Turn::NotAdmitted(Reason::Quota { group, resource, short }) => {
                self.waits.insert(row, Why::Quota(group, resource.into(), short));
            }
            Turn::NotAdmitted(Reason::Rule(words) | Reason::NoRoom(words)) => {
                self.waits.insert(row, Why::Rule(words));
            }
            Turn::Displaced(cause) => self.causes.push((row, cause.user, cause.rule)),
            Turn::Waits(_) => {}
        }
        Ok(())
    }

    fn stuck(&mut self, stuck: &StuckRecord) -> Result<()> {
        if stuck.why == Stuck::TooLarge {
            self.waits.insert(row_of(stuck.name), Why::Rule("it is larger than any machine"));
        }
        Ok(())
    }

    fn tasks(&mut self, tasks: &TaskRecord) -> Result<()> {
        let (row, machine) = (row_of(tasks.name), tasks.machine.map_or(0, |machine| machine.0));
        if tasks.fate.is_stopped() {
            *self.stopped.entry(row).or_default() += tasks.count;
        } else if tasks.start == NOW {
            self.launched.push((row, tasks.count, machine));
        }
        Ok(())
    }
}
