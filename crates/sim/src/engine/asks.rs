//! Waiting tasks that ask running ones for their room, and what is reserved for them meanwhile.
//!
//! Interactive preemption: tasks that are asked go on for a while, and are stopped only if they have not ended by then. Whom a
//! task asks is the rule's to propose ([`Preemption`]); gangs do not ask. The rules are in `docs/cluster.md`, "Priorities and
//! giving back".

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::agenda::Ticket;
use super::core::{Core, amounts};
use super::extension::Extension;
use super::jobs::SetSlot;
use super::line::LineKey;
use super::queues::QueueId;
use super::running::Running;
use super::urgent::Urgent;
use super::victims::Victim;
use super::view::{Asker, View};
use super::{OnBlocked, Preempt};
use crate::policy::{self, Preemption, Room, Verdict};
use crate::record::{Fate, Turn};
use plimsoll_base::error::{Error, Result};
use plimsoll_base::units::{MAX_DIMS, MachineId, Resources, Span, Time};

/// A request of a waiting task for room.
#[derive(Debug)]
struct Request {
    queue: QueueId,
    set: SetSlot,
    /// The set's row, and since when it waits: its slot may have been given to another set.
    waits: (u64, Time),
    machine: MachineId,
    /// The amount reserved on the machine.
    reserved: Resources,
    /// The tasks that are asked, by entry, and how many of each.
    asked: Vec<(Victim, u32)>,
    /// The use of their room.
    room: Room,
    deadline: Time,
}

/// All that is asked for.
pub(super) struct Asks {
    /// How long tasks that are asked may go on.
    within: Span,
    /// The run's rule; the policy's own if there is none.
    rule: Option<Urgent>,
    /// In the order in which they were made.
    open: BTreeMap<u64, Request>,
    made: u64,
    /// How many rounds it has seen.
    rounds: u64,
    of_queue: HashMap<QueueId, Vec<u64>>,
    /// How many tasks of each entry are asked.
    asked: HashMap<Victim, u32>,
    due: BTreeSet<(Time, u64)>,
}

impl Asks {
    /// By the run's rule, or else by the policy's own, which stops tasks at once.
    pub fn new(rule: Option<Preempt>) -> Asks {
        let (open, of_queue, asked, due) = Default::default();
        let within = rule.map_or(Span::ZERO, |rule| rule.within);
        Asks { within, rule: rule.map(|rule| Urgent::new(rule.from)), open, made: 0, rounds: 0, of_queue, asked, due }
    }

    /// Forgets a request and all that it asked.
    fn remove(&mut self, id: u64) -> Option<Request> {
        let request = self.open.remove(&id)?;
        self.due.remove(&(request.deadline, id));
        if let Some(ids) = self.of_queue.get_mut(&request.queue) {
            ids.retain(|other| *other != id);
        }
        for (victim, count) in &request.asked {
            spare(&mut self.asked, victim, *count);
        }
        Some(request)
    }
}

/// So many tasks of an entry are asked no longer.
fn spare(all: &mut HashMap<Victim, u32>, victim: &Victim, count: u32) {
    if let Some(asked) = all.get_mut(victim) {
        *asked -= count;
        if *asked == 0 {
            all.remove(victim);
        }
    }
}

impl Extension for Asks {
    fn next(&self) -> Option<Time> {
        self.due.first().map(|(time, _)| *time)
    }

    fn withdrawn(&mut self, core: &mut Core, machine: MachineId) {
        let there = self.open.iter().filter(|(_, request)| request.machine == machine).map(|(id, _)| *id);
        there.collect::<Vec<u64>>().into_iter().for_each(|id| self.withdraw(core, id));
    }

    /// Withdraws needless requests, reserves what is free, and stops tasks whose time is over.
    fn stop(&mut self, core: &mut Core) -> Result<bool> {
        for id in self.ids() {
            if !self.still_wanted(core, id) {
                self.withdraw(core, id);
            }
        }
        self.reserve(core);
        let before = core.outcome.forced;
        while let Some((_, id)) = self.due.first().filter(|(at, _)| *at <= core.now).copied() {
            self.due.pop_first();
            self.force(core, id)?;
        }
        Ok(core.outcome.forced > before)
    }

    /// Starts what has its room.
    fn before_round(&mut self, core: &mut Core) -> Result<()> {
        self.reserve(core);
        for id in self.ids() {
            let Some(request) = self.open.get_mut(&id) else { continue };
            // What an earlier one gave back when it was withdrawn.
            request.top_up(core);
            if request.room == Room::Kept && request.missing(core) == Resources::ZERO {
                self.start_one(core, id)?;
            } else if request.deadline <= core.now {
                self.withdraw(core, id);
            }
        }
        // And what a later one gave back: the round that follows must not find it free.
        self.open.values_mut().for_each(|request| request.top_up(core));
        Ok(())
    }

    /// The room of a task that has started elsewhere may serve others at once; queues whose next task fits nowhere
    /// ask, and what is to stop at once stops in the next round.
    fn after_round(&mut self, core: &mut Core) -> Result<bool> {
        Ok(self.ids().into_iter().any(|id| !self.still_wanted(core, id)) || self.make(core)?)
    }
}

impl Request {
    /// The amount that it lacks until its task can start.
    fn missing(&self, core: &Core) -> Resources {
        let mut missing = amounts(core.work.sets.needs(self.set).1);
        missing.0.iter_mut().zip(self.reserved.0).for_each(|(missing, reserved)| *missing -= reserved);
        if self.room == Room::Open {
            // Nothing is held for it, but what is free need not be asked for.
            let free = core.site.machines.free(self.machine);
            missing.0.iter_mut().zip(free.0).for_each(|(missing, free)| *missing = missing.saturating_sub(free));
        }
        missing
    }

    /// Reserves what is free on its machine, as far as it is missing.
    fn top_up(&mut self, core: &mut Core) {
        if self.room == Room::Open {
            return;
        }
        let mut more = self.missing(core);
        let free = core.site.machines.free(self.machine);
        more.0.iter_mut().zip(free.0).for_each(|(more, free)| *more = (*more).min(free));
        if more != Resources::ZERO {
            core.site.machines.reserve(self.machine, &more);
            self.reserved.0.iter_mut().zip(more.0).for_each(|(reserved, more)| *reserved += more);
        }
    }

    /// The running tasks of an entry that it asks, and their ticket.
    fn tasks<'c>(&self, core: &'c Core, victim: &Victim) -> Option<(Ticket, &'c Running)> {
        let ticket = core.running.victims.as_ref()?.find(self.machine, victim)?;
        Some((ticket, core.running.get(ticket)?))
    }

    /// Takes out tasks that are gone, then from the last to the first those that are needed no more. Returns the tasks that
    /// it asks no longer.
    fn spare(&mut self, core: &Core) -> Vec<(Victim, u32)> {
        let before = self.asked.clone();
        let missing = self.missing(core);
        let mut surplus = [0u64; MAX_DIMS];
        let mut asked = std::mem::take(&mut self.asked);
        for (victim, count) in &mut asked {
            let tasks = self.tasks(core, victim);
            *count = tasks.map_or(0, |(_, tasks)| tasks.count.get().min(*count));
            if let Some((_, tasks)) = tasks {
                let footprint = core.work.sets.needs(tasks.set).1;
                surplus.iter_mut().zip(footprint).for_each(|(sum, each)| *sum += each * u64::from(*count));
            }
        }
        surplus.iter_mut().zip(missing.0).for_each(|(sum, missing)| *sum = sum.saturating_sub(missing));
        for (victim, count) in asked.iter_mut().rev().filter(|(_, count)| *count > 0) {
            let Some((_, tasks)) = self.tasks(core, victim) else { continue };
            let footprint = core.work.sets.needs(tasks.set).1;
            let held = footprint.iter().zip(surplus).filter(|(each, _)| **each > 0);
            let spared = held.map(|(each, surplus)| surplus / each).min().unwrap_or(u64::MAX).min(u64::from(*count));
            surplus.iter_mut().zip(footprint).for_each(|(surplus, each)| *surplus -= each * spared);
            *count -= spared as u32;
        }
        let spared = before.iter().zip(&asked).map(|((victim, before), (_, now))| (*victim, before - now));
        let spared = spared.filter(|(_, count)| *count > 0).collect();
        asked.retain(|(_, count)| *count > 0);
        self.asked = asked;
        spared
    }
}

impl Asks {
    fn ids(&self) -> Vec<u64> {
        self.open.keys().copied().collect()
    }

    /// Whether a request's task still waits for it: it is the next of its queue, as many wait as ask, the policy admits as
    /// many, and it may use the machine (which may carry other labels now).
    fn still_wanted(&self, core: &Core, id: u64) -> bool {
        let Some(request) = self.open.get(&id) else { return false };
        let before = self.of_queue[&request.queue].iter().take_while(|other| **other != id).count() as u64;
        let work = &core.work;
        work.queues.head(request.queue) == Some(request.set)
            && (work.sets[request.set].row, work.sets[request.set].since) == request.waits
            && u64::from(work.sets[request.set].waiting) > before
            && core.admits(request.queue, before as u32 + 1)
            && core.site.scopes.holds(work.queues.scope(request.queue), request.machine)
    }

    fn withdraw(&mut self, core: &mut Core, id: u64) {
        let Some(request) = self.remove(id) else { return };
        core.outcome.asks_withdrawn += u64::from(request.room == Room::Kept);
        if request.reserved != Resources::ZERO {
            core.site.machines.give_reserved(request.machine, &request.reserved);
            core.round.freed(request.machine);
        }
    }

    /// Reserves what is free for requests that lack it, and asks no task for more than is still missing.
    fn reserve(&mut self, core: &mut Core) {
        let Asks { open, asked, .. } = self;
        for request in open.values_mut() {
            request.top_up(core);
            request.spare(core).into_iter().for_each(|(victim, count)| spare(asked, &victim, count));
        }
    }

    /// The deadline of a request has come: stops what it asked and still runs.
    fn force(&mut self, core: &mut Core, id: u64) -> Result<()> {
        let Some(request) = self.open.get(&id) else { return Ok(()) };
        for (victim, count) in &request.asked {
            let Some((ticket, tasks)) = request.tasks(core, victim).map(|(ticket, tasks)| (ticket, *tasks)) else {
                continue;
            };
            let all = core.all_of(ticket, &tasks);
            let (tickets, count) = if all.whole { (all.tickets, all.count) } else { (vec![ticket], *count) };
            core.outcome.forced += u64::from(count);
            core.stop(&tickets, count, Fate::Preempted)?;
        }
        Ok(())
    }

    /// Starts a task for which everything is reserved, if the policy still admits it.
    fn start_one(&mut self, core: &mut Core, id: u64) -> Result<()> {
        let Some(&Request { queue, set, machine, .. }) = self.open.get(&id) else { return Ok(()) };
        if core.work.queues.head(queue) != Some(set) || !core.admits(queue, 1) {
            self.withdraw(core, id);
            return Ok(());
        }
        let Some(request) = self.remove(id) else { return Ok(()) };
        core.site.machines.give_reserved(machine, &request.reserved);
        let place = core.line_key(queue);
        core.tell(queue, place, Turn::Launched(Some(machine)))?;
        core.launch(queue, machine);
        match core.work.queues.head(queue) {
            Some(_) => core.head_changed(queue),
            None => core.emptied(queue),
        }
        Ok(())
    }

    /// Queues whose next task fits nowhere ask, the most urgent first; whether a deadline is over at once.
    fn make(&mut self, core: &mut Core) -> Result<bool> {
        self.rounds += 1;
        let least = core.running.victims.as_ref().and_then(|victims| victims.least_urgent());
        let queues = match core.options.on_blocked {
            OnBlocked::Skip | OnBlocked::Easy | OnBlocked::Conservative => core.site.scopes.blocked(),
            // Who stands behind the first that does not fit has not been tried.
            OnBlocked::Stop => core.site.scopes.first().map(|(_, queue)| queue).into_iter().collect(),
        };
        let mut askers: Vec<(u8, LineKey, QueueId)> = Vec::new();
        for queue in queues {
            let Some(head) = core.work.queues.head(queue) else { continue };
            let set = &core.work.sets[head];
            // By the run's rule nobody asks a task that is as urgent.
            let useless = self.rule.is_some() && least.is_none_or(|least| set.priority >= least);
            if !set.gang && !useless {
                askers.push((set.priority, core.line_key(queue), queue));
            }
        }
        askers.sort_unstable();
        let mut any = false;
        for (_, _, queue) in askers {
            let Some(set) = core.work.queues.head(queue) else { continue };
            let count = |asks: &Asks| asks.of_queue.get(&queue).map_or(0, Vec::len);
            while count(self) < core.work.sets[set].waiting as usize
                && core.admits(queue, count(self) as u32 + 1)
                && let Some(request) = self.request(core, queue, set)?
            {
                self.open(core, request);
                any = true;
            }
        }
        Ok(any && self.within == Span::ZERO)
    }

    fn open(&mut self, core: &mut Core, request: Request) {
        let id = self.made;
        self.made += 1;
        core.outcome.asks += 1;
        for (victim, count) in &request.asked {
            *self.asked.entry(*victim).or_default() += count;
        }
        self.due.insert((request.deadline, id));
        self.of_queue.entry(request.queue).or_default().push(id);
        core.site.machines.reserve(request.machine, &request.reserved);
        self.open.insert(id, request);
    }

    /// The request that the rule proposes for the next task of a set. Errors: the rule's, and [`Error::Mismatch`] for a
    /// proposal that makes no sense.
    fn request(&mut self, core: &mut Core, queue: QueueId, set: SetSlot) -> Result<Option<Request>> {
        let Core { outside, now, books, work, running, site, .. } = core;
        let (demand, footprint) = work.sets.needs(set);
        let ask = policy::Ask { footprint, demand, tasks: 1 };
        let head = work.view(set);
        // By the run's rule the more urgent task wins for good; two tasks of a policy's could stop each other for ever.
        let but_of = self.rule.is_none().then_some(*now);
        let scope = work.queues.scope(queue);
        let asker = Asker { scope, asked: &self.asked, version: self.rounds, but_of };
        let view = View::new(work, running, site, &*outside.source);
        let proposal = match &mut self.rule {
            Some(rule) => rule.propose(&head, &ask, &view.for_asker(asker, outside.policy.groups()), books)?,
            None => match outside.policy.preemption() {
                Some(rule) => rule.propose(&head, &ask, &view.for_asker(asker, None), books)?,
                None => None,
            },
        };
        let Some(proposal) = proposal else { return Ok(None) };
        let mut asked = Vec::new();
        let mut machine = None;
        for (key, count) in &proposal.tasks {
            let tasks = core.displaceable(Ticket::of(*key), *count)?;
            if but_of == Some(tasks.start) {
                return Err(senseless("tasks that have only just started"));
            }
            asked.push((Victim::new(&core.work.sets[tasks.set], &tasks), *count));
            if *machine.get_or_insert(tasks.machine) != tasks.machine {
                return Err(senseless("tasks of more than one machine"));
            }
        }
        let scope = core.work.queues.scope(queue);
        let Some(machine) = machine.filter(|machine| core.site.scopes.holds(scope, *machine)) else {
            return Err(senseless("no tasks, or tasks of a machine that it may not use,"));
        };
        let mut reserved = amounts(core.work.sets.needs(set).1);
        reserved
            .0
            .iter_mut()
            .zip(core.site.machines.free(machine).0)
            .for_each(|(reserved, free)| *reserved = (*reserved).min(free));
        if proposal.room == Room::Open {
            reserved = Resources::ZERO;
        }
        let waits = (core.work.sets[set].row, core.work.sets[set].since);
        let deadline = core.now + self.within;
        let mut request = Request { queue, set, waits, machine, reserved, asked, room: proposal.room, deadline };
        // What was gone through and is not needed is not asked; nothing of it is counted yet.
        request.spare(core);
        if request.asked.is_empty() && self.rule.is_none() {
            return Err(senseless("tasks that hold nothing that is short"));
        }
        Ok(Some(request))
    }
}

fn senseless(what: &str) -> Error {
    Error::Mismatch { problem: format!("the policy wants to stop {what} for a task that fits nowhere") }
}

impl Core<'_> {
    /// Whether the policy admits so many tasks more of a queue's next set.
    fn admits(&self, queue: QueueId, tasks: u32) -> bool {
        let Some(head) = self.work.queues.head(queue) else { return false };
        let view = self.work.view(head);
        self.outside.policy.admit(&view, &self.ask(head, tasks), &self.books) == Verdict::Yes
    }
}
