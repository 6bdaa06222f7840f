//! Urgent tasks that ask running ones for their room, and what is reserved for them meanwhile.
//!
//! Interactive preemption: tasks that are asked go on for a while, and are stopped only if they have not ended by then. The
//! rules are in `docs/cluster.md`, "Priorities and giving back".

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::num::NonZeroU32;

use super::jobs::SetSlot;
use super::queues::{QueueId, Queues};
use super::victims::Victim;
use super::{Engine, OnBlocked};
use crate::books::Partition;
use crate::policy::{Ask, Verdict};
use crate::record::{Fate, Turn};
use plimsoll_base::error::{Error, Result};
use plimsoll_base::units::{MAX_DIMS, MachineId, Resources, Span, Time, UserId};

/// The users that a task may ask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PreemptFrom {
    /// Anybody's.
    #[default]
    Any,
    /// The asker's own.
    SameUser,
    /// Those of the asker's quota group.
    SameGroup,
    /// Those of users whose quota group, or a group above it, holds more than its runtime quota.
    AboveQuota,
}

impl PreemptFrom {
    /// All of them with their names.
    pub const ALL: [(&'static str, PreemptFrom); 4] = [
        ("any", PreemptFrom::Any),
        ("same-user", PreemptFrom::SameUser),
        ("same-group", PreemptFrom::SameGroup),
        ("above-quota", PreemptFrom::AboveQuota),
    ];
}

/// How urgent tasks come by the room of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preempt {
    /// How long tasks that are asked may go on; zero stops them at once.
    pub within: Span,
    /// The users that may be asked.
    pub from: PreemptFrom,
}

/// A request of a waiting task for room.
#[derive(Debug)]
struct Request {
    queue: QueueId,
    set: SetSlot,
    /// The set's row: a slot may have been given to another since.
    row: u64,
    machine: MachineId,
    /// The amount reserved on the machine.
    held: Resources,
    /// The tasks that are asked, by entry, and how many of each.
    asked: Vec<(Victim, u32)>,
    deadline: Time,
}

/// All that is asked for.
#[derive(Debug)]
pub(super) struct Asks {
    rules: Preempt,
    /// In the order in which they were made.
    open: BTreeMap<u64, Request>,
    made: u64,
    of_queue: HashMap<QueueId, Vec<u64>>,
    /// How many tasks of each entry are asked.
    asked: HashMap<Victim, u32>,
    due: BTreeSet<(Time, u64)>,
}

impl Asks {
    pub fn new(rules: Preempt) -> Asks {
        let (open, of_queue, asked, due) = Default::default();
        Asks { rules, open, made: 0, of_queue, asked, due }
    }

    /// When the next deadline is.
    pub fn next(&self) -> Option<Time> {
        self.due.first().map(|(time, _)| *time)
    }

    fn of(&self, queue: QueueId) -> usize {
        self.of_queue.get(&queue).map_or(0, Vec::len)
    }

    /// Forgets a request and all that it asked.
    fn remove(&mut self, id: u64) -> Option<Request> {
        let request = self.open.remove(&id)?;
        self.due.remove(&(request.deadline, id));
        if let Some(ids) = self.of_queue.get_mut(&request.queue) {
            ids.retain(|other| *other != id);
        }
        for (victim, count) in &request.asked {
            self.spare(victim, *count);
        }
        Some(request)
    }

    fn spare(&mut self, victim: &Victim, count: u32) {
        if let Some(asked) = self.asked.get_mut(victim) {
            *asked -= count;
            if *asked == 0 {
                self.asked.remove(victim);
            }
        }
    }
}

impl Engine<'_> {
    /// Before a round: withdraws needless requests, reserves what is free, and stops tasks whose time is over; whether any
    /// were.
    pub(super) fn force_asks(&mut self) -> Result<bool> {
        let Some(mut asks) = self.asks.take() else { return Ok(false) };
        for id in asks.open.keys().copied().collect::<Vec<u64>>() {
            if !self.still_wanted(&asks, id) {
                self.withdraw(&mut asks, id);
            }
        }
        self.reserve(&mut asks);
        let before = self.outcome.forced;
        while let Some((_, id)) = asks.due.first().filter(|(at, _)| *at <= self.now).copied() {
            asks.due.pop_first();
            self.force(&mut asks, id)?;
        }
        self.asks = Some(asks);
        Ok(self.outcome.forced > before)
    }

    /// Starts what has its room.
    pub(super) fn start_asked(&mut self) -> Result<()> {
        let Some(mut asks) = self.asks.take() else { return Ok(()) };
        self.reserve(&mut asks);
        for id in asks.open.keys().copied().collect::<Vec<u64>>() {
            let Some(request) = asks.open.get_mut(&id) else { continue };
            // What an earlier one gave back when it was withdrawn.
            self.top_up(request);
            if self.missing(request) == Resources::ZERO {
                self.start_one(&mut asks, id)?;
            } else if request.deadline <= self.now {
                self.withdraw(&mut asks, id);
            }
        }
        // And what a later one gave back: the round that follows must not find it free.
        asks.open.values_mut().for_each(|request| self.top_up(request));
        self.asks = Some(asks);
        Ok(())
    }

    /// The amount that a request lacks until its task can start.
    fn missing(&self, request: &Request) -> Resources {
        let mut missing = Resources::ZERO;
        let need = self.sets.needs(request.set).1;
        for ((missing, need), held) in missing.0.iter_mut().zip(need).zip(request.held.0) {
            *missing = need - held;
        }
        missing
    }

    /// Whether the request's task still waits for it: it is the next of its queue, as many wait as ask, the policy admits as
    /// many, and it may use the machine (which may carry other labels now).
    fn still_wanted(&self, asks: &Asks, id: u64) -> bool {
        let Some(request) = asks.open.get(&id) else { return false };
        let before = asks.of_queue[&request.queue].iter().take_while(|other| **other != id).count() as u64;
        self.queues.head(request.queue) == Some(request.set)
            && self.sets[request.set].row == request.row
            && u64::from(self.sets[request.set].waiting) > before
            && self.admitted(request.queue, before as u32 + 1)
            && self.scopes.holds(self.queues.scope(request.queue), request.machine)
    }

    /// Whether a request is needless, since its task has started elsewhere.
    pub(super) fn needless_ask(&self) -> bool {
        let Some(asks) = &self.asks else { return false };
        asks.open.keys().any(|id| !self.still_wanted(asks, *id))
    }

    fn withdraw(&mut self, asks: &mut Asks, id: u64) {
        let Some(request) = asks.remove(id) else { return };
        self.outcome.asks_withdrawn += 1;
        if request.held != Resources::ZERO {
            self.machines.release_held(request.machine, &request.held);
            self.round.freed(request.machine);
        }
    }

    /// A machine takes nothing new from now on.
    pub(super) fn withdraw_from(&mut self, machine: MachineId) {
        let Some(mut asks) = self.asks.take() else { return };
        let there = asks.open.iter().filter(|(_, request)| request.machine == machine).map(|(id, _)| *id);
        for id in there.collect::<Vec<u64>>() {
            self.withdraw(&mut asks, id);
        }
        self.asks = Some(asks);
    }

    /// Reserves what is free for requests that lack it, and asks no task for more than is still missing.
    fn reserve(&mut self, asks: &mut Asks) {
        for id in asks.open.keys().copied().collect::<Vec<u64>>() {
            let Some(mut request) = asks.open.remove(&id) else { continue };
            self.top_up(&mut request);
            self.spare_asked(asks, &mut request);
            asks.open.insert(id, request);
        }
    }

    /// Reserves what is free on the machine of a request, as far as it is missing.
    fn top_up(&mut self, request: &mut Request) {
        let missing = self.missing(request);
        let free = self.machines.free(request.machine);
        let mut more = Resources::ZERO;
        for (more, (missing, free)) in more.0.iter_mut().zip(missing.0.iter().zip(free.0)) {
            *more = free.min(*missing);
        }
        if more != Resources::ZERO {
            self.machines.hold(request.machine, &more);
            request.held.0.iter_mut().zip(more.0).for_each(|(held, more)| *held += more);
        }
    }

    /// Takes out tasks that are gone, then from the last to the first those that are needed no more.
    fn spare_asked(&self, asks: &mut Asks, request: &mut Request) {
        let missing = self.missing(request);
        let mut surplus = [0u64; MAX_DIMS];
        request.asked.retain_mut(|(victim, count)| {
            let tasks = self.victims.as_ref().and_then(|victims| victims.find(request.machine, victim));
            let tasks = tasks.and_then(|ticket| self.agenda.get(ticket));
            let now = tasks.map_or(0, |tasks| tasks.count.get().min(*count));
            asks.spare(victim, *count - now);
            *count = now;
            if let Some(tasks) = tasks {
                let footprint = self.sets.needs(tasks.set).1;
                surplus.iter_mut().zip(footprint).for_each(|(sum, each)| *sum += each * u64::from(now));
            }
            now > 0
        });
        surplus.iter_mut().zip(missing.0).for_each(|(sum, missing)| *sum = sum.saturating_sub(missing));
        for (victim, count) in request.asked.iter_mut().rev() {
            let ticket = self.victims.as_ref().and_then(|victims| victims.find(request.machine, victim));
            let Some(tasks) = ticket.and_then(|ticket| self.agenda.get(ticket)) else { continue };
            let footprint = self.sets.needs(tasks.set).1;
            let held = footprint.iter().zip(surplus).filter(|(each, _)| **each > 0);
            let spared = held.map(|(each, surplus)| surplus / each).min().unwrap_or(u64::MAX).min(u64::from(*count));
            surplus.iter_mut().zip(footprint).for_each(|(surplus, each)| *surplus -= each * spared);
            *count -= spared as u32;
            asks.spare(victim, spared as u32);
        }
        request.asked.retain(|(_, count)| *count > 0);
    }

    /// The deadline of a request has come: stops what it asked and still runs.
    fn force(&mut self, asks: &mut Asks, id: u64) -> Result<()> {
        let Some(request) = asks.open.get(&id) else { return Ok(()) };
        let machine = request.machine;
        for (victim, count) in request.asked.clone() {
            let Some(victims) = &self.victims else { continue };
            let Some(ticket) = victims.find(machine, &victim) else { continue };
            let Some(tasks) = self.agenda.get(ticket).copied() else { continue };
            let all = self.all_of(victims, ticket, &tasks);
            let (tickets, count) = if all.whole { (all.tickets, all.count) } else { (vec![ticket], count) };
            self.outcome.forced += u64::from(count);
            self.stop(&tickets, count, Fate::Preempted)?;
        }
        Ok(())
    }

    /// Starts a task for which everything is reserved, if the policy still admits it.
    fn start_one(&mut self, asks: &mut Asks, id: u64) -> Result<()> {
        let Some(&Request { queue, set, machine, .. }) = asks.open.get(&id) else { return Ok(()) };
        if self.queues.head(queue) != Some(set) || !self.admitted(queue, 1) {
            self.withdraw(asks, id);
            return Ok(());
        }
        let Some(request) = asks.remove(id) else { return Ok(()) };
        self.machines.release_held(machine, &request.held);
        let place = self.place(queue);
        self.tell(queue, place, Turn::Launched(Some(machine)))?;
        self.launch(queue, machine);
        match self.queues.head(queue) {
            Some(_) => self.head_changed(queue),
            None => self.emptied(queue),
        }
        Ok(())
    }

    /// Whether the policy admits so many tasks more of a queue's next set.
    fn admitted(&self, queue: QueueId, tasks: u32) -> bool {
        let Some(head) = self.queues.head(queue) else { return false };
        let (demand, footprint) = self.sets.needs(head);
        let ask = Ask { footprint, demand, tasks };
        self.policy.admit(&Queues::view(&self.sets[head]), &ask, &self.books) == Verdict::Yes
    }

    /// After a round: queues whose next task fits nowhere ask; whether a deadline is over at once.
    pub(super) fn make_asks(&mut self) -> Result<bool> {
        let Some(mut asks) = self.asks.take() else { return Ok(false) };
        let least = self.victims.as_ref().and_then(|victims| victims.least_urgent());
        let queues = match self.options.on_blocked {
            OnBlocked::Skip => self.scopes.blocked(),
            // Who stands behind the first that does not fit has not been tried.
            OnBlocked::Stop => self.scopes.first().map(|(_, queue)| queue).into_iter().collect(),
        };
        let mut askers: Vec<(u8, super::line::Place, QueueId)> = Vec::new();
        for queue in queues {
            let Some(head) = self.queues.head(queue) else { continue };
            let set = &self.sets[head];
            if !set.gang && least.is_some_and(|least| set.priority < least) {
                askers.push((set.priority, self.place(queue), queue));
            }
        }
        askers.sort_unstable();
        let mut any = false;
        for (_, _, queue) in askers {
            let Some(set) = self.queues.head(queue) else { continue };
            let eligible = self.eligible(asks.rules.from, self.sets[set].user)?;
            while asks.of(queue) < self.sets[set].waiting as usize
                && self.admitted(queue, asks.of(queue) as u32 + 1)
                && let Some(request) = self.request(&asks, queue, set, &eligible)
            {
                let id = asks.made;
                asks.made += 1;
                self.outcome.asks += 1;
                for (victim, count) in &request.asked {
                    *asks.asked.entry(*victim).or_default() += count;
                }
                asks.due.insert((request.deadline, id));
                asks.of_queue.entry(queue).or_default().push(id);
                self.machines.hold(request.machine, &request.held);
                asks.open.insert(id, request);
                any = true;
            }
        }
        let now = any && asks.rules.within == Span::ZERO;
        self.asks = Some(asks);
        Ok(now)
    }

    /// The tasks to ask for the next task of a set: the least urgent first, until some machine has room.
    fn request(&self, asks: &Asks, queue: QueueId, set: SetSlot, eligible: &[bool]) -> Option<Request> {
        let victims = self.victims.as_ref()?;
        let (need, partitions) = (self.sets.needs(set).1, self.books.partitions());
        let (scope, priority) = (self.queues.scope(queue), self.sets[set].priority);
        let mut there: HashMap<MachineId, (Resources, Vec<(Victim, u32)>)> = HashMap::new();
        for (victim, ticket) in victims.all() {
            if victim.priority() <= priority {
                return None;
            }
            let Some(tasks) = self.agenda.get(*ticket) else { continue };
            let other = &self.sets[tasks.set];
            let left = tasks.count.get() - asks.asked.get(victim).copied().unwrap_or(0).min(tasks.count.get());
            let Some(left) = NonZeroU32::new(left) else { continue };
            if !eligible.get(other.user.index() * partitions + other.partition.index()).copied().unwrap_or(true)
                || !self.machines.is_present(tasks.machine)
                || !self.scopes.holds(scope, tasks.machine)
            {
                continue;
            }
            let (room, asked) =
                there.entry(tasks.machine).or_insert_with(|| (self.machines.free(tasks.machine), Vec::new()));
            let footprint = self.sets.needs(tasks.set).1;
            let short =
                need.iter().zip(room.0).zip(footprint).filter(|((need, room), each)| *need > room && **each > 0);
            let short = short.map(|((need, room), each)| (need - room).div_ceil(*each)).max().unwrap_or(0);
            let count = short.min(u64::from(left.get())) as u32;
            if count == 0 {
                continue;
            }
            room.0.iter_mut().zip(footprint).for_each(|(room, each)| *room += each * u64::from(count));
            asked.push((*victim, count));
            if need.iter().zip(room.0).all(|(need, room)| *need <= room) {
                let (_, asked) = there.remove(&tasks.machine)?;
                return Some(self.asked_of(queue, set, tasks.machine, asked, asks.rules.within));
            }
        }
        None
    }

    fn asked_of(
        &self,
        queue: QueueId,
        set: SetSlot,
        machine: MachineId,
        asked: Vec<(Victim, u32)>,
        within: Span,
    ) -> Request {
        let mut held = self.machines.free(machine);
        for (d, held) in held.0.iter_mut().enumerate() {
            *held = (*held).min(self.sets.needs(set).1.get(d).copied().unwrap_or(0));
        }
        let row = self.sets[set].row;
        let mut request = Request { queue, set, row, machine, held, asked, deadline: self.now + within };
        // What was gone through and is not needed is not asked; nothing of it is counted yet.
        self.spare_asked(&mut Asks::new(Preempt { within, from: PreemptFrom::Any }), &mut request);
        request
    }

    /// Which users' tasks a user may ask, by id and partition; those beyond the end may be.
    fn eligible(&self, from: PreemptFrom, asker: UserId) -> Result<Vec<bool>> {
        let partitions = self.books.partitions();
        let users = 0..self.books.users() as u32;
        let all = |may: bool| std::iter::repeat_n(may, partitions);
        if from == PreemptFrom::Any {
            return Ok(Vec::new());
        }
        if from == PreemptFrom::SameUser {
            return Ok(users.flat_map(|user| all(user == asker.0)).collect());
        }
        let Some(groups) = self.policy.groups() else {
            let name = PreemptFrom::ALL.iter().find(|(_, of)| *of == from).map_or("", |(name, _)| name);
            let problem = format!("victims are restricted to '{name}', and the policy has no quota groups");
            return Err(Error::Mismatch { problem });
        };
        let tree = groups.tree();
        let group = |user: u32| tree.group_of(self.source.users().name(user));
        if from == PreemptFrom::SameGroup {
            let own = group(asker.0);
            return Ok(users.flat_map(|user| all(own.is_some() && group(user) == own)).collect());
        }
        let levels = groups.levels()?;
        let dims = self.books.dims();
        let mut held = vec![0u64; levels.len()];
        let resources = tree.groups.first().map_or(0, |about| about.limits.len());
        let places = tree.groups.len();
        let mut above = vec![false; places];
        let who = users.flat_map(|user| (0..partitions as u8).map(move |at| (user, Partition(at))));
        for (user, partition) in who.clone() {
            let mut next = group(user).map(|group| tree.place_in(group, partition));
            while let Some(at) = next {
                for d in 0..resources.min(dims) {
                    held[at * resources + d] += self.books.partition(partition).held(UserId(user))[d];
                }
                next = tree.groups[at].parent;
            }
        }
        for (at, above) in above.iter_mut().enumerate() {
            *above = (0..resources).any(|d| held[at * resources + d] > levels[at * resources + d].runtime);
        }
        let over = |(user, partition): (u32, Partition)| {
            let leaf = group(user).map(|group| tree.place_in(group, partition));
            std::iter::successors(leaf, |at| tree.groups[*at].parent).any(|at| above[at])
        };
        Ok(who.map(over).collect())
    }
}
