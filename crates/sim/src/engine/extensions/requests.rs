//! Requests of waiting tasks for the room of running tasks, and the reservations for them.
//!
//! Preemption is interactive: asked tasks continue for a while, and are stopped only if they have not ended at the deadline. The preemption
//! rule ([`Preemption`]) proposes the victims of a task. Amounts that become free on the machine are reserved for the task, unless the rule
//! leaves the room open to all ([`Room::Open`]). A request is withdrawn if its task no longer needs it, if the policy no longer admits the
//! task, or if the machine may no longer be used. Gangs make no requests. The rules are in `docs/cluster.md`, "Priorities and giving back".

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap};

use crate::engine::kernel::agenda::Ticket;
use crate::engine::kernel::{Kernel, amounts};
use super::Extension;
use crate::engine::kernel::jobs::SetSlot;
use crate::engine::kernel::line::LineKey;
use super::order::VictimOrder;
use crate::engine::kernel::queues::QueueId;
use super::request::{Request, pending};
use super::share::{self, ShareOrder};
use crate::engine::kernel::stop::Choice;
use super::urgent::Urgent;
use crate::engine::kernel::victims::Victim;
use crate::engine::kernel::view::{Requester, TaskView};
use crate::engine::{OnBlocked, Preempt, PreemptFor};
use crate::policy::{self, Pending, Preemption, Rank, Room, Verdict};
use crate::record::{Fate, Turn};
use plimsoll_base::error::{Error, Result};
use plimsoll_base::units::{MachineId, Resources, Span, Time, UserId};

/// The rule of the run for the victims of a task.
enum VictimRule {
    Urgent(Urgent),
    Share(ShareOrder),
    Order(VictimOrder),
}

/// All open requests.
pub(in crate::engine) struct Asks {
    /// The time from a request to its deadline.
    within: Span,
    /// The rule of the run; the policy's own rule if absent.
    rule: Option<VictimRule>,
    /// Open requests by id, which is the order of their creation.
    open: BTreeMap<u64, Request>,
    made: u64,
    /// The number of rounds so far; the version of the running tasks for a rule.
    rounds: u64,
    of_queue: HashMap<QueueId, Vec<u64>>,
    /// The number of asked tasks of each entry.
    asked: HashMap<Victim, u32>,
    due: BTreeSet<(Time, u64)>,
    /// The next time at which a running task falls back in the order, if any task waits for this.
    wake: Option<Time>,
    /// Whether the first request at its deadline waits for the preemption limit; later ones wait behind it.
    held: bool,
}

impl Asks {
    /// Creates the state for the run's rule, or for the policy's own rule, which stops tasks at once.
    pub fn new(rule: Option<Preempt>, one_line: bool) -> Asks {
        let (open, of_queue, asked, due) = Default::default();
        let within = rule.map_or(Span::ZERO, |rule| rule.within);
        let rule = rule.map(|rule| match rule.whom {
            PreemptFor::Urgent => VictimRule::Urgent(Urgent::new(rule.from)),
            PreemptFor::Share => VictimRule::Share(ShareOrder::default()),
            PreemptFor::Order => VictimRule::Order(VictimOrder::new(one_line)),
        });
        Asks { within, rule, open, made: 0, rounds: 0, of_queue, asked, due, wake: None, held: false }
    }

    /// Removes a request and releases its asked tasks.
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

/// Releases asked tasks of an entry.
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
        let due = self.due.first().map(|(time, _)| *time).filter(|_| !self.held);
        due.into_iter().chain(self.wake).min()
    }

    fn withdrawn(&mut self, core: &mut Kernel, machine: MachineId) {
        let there = self.open.iter().filter(|(_, request)| request.machine == machine).map(|(id, _)| *id);
        there.collect::<Vec<u64>>().into_iter().for_each(|id| self.withdraw(core, id));
    }

    /// Withdraws needless requests, reserves free amounts, and stops tasks at their deadlines.
    fn stop(&mut self, core: &mut Kernel) -> Result<bool> {
        for id in self.ids() {
            if !self.still_wanted(core, id) {
                self.withdraw(core, id);
            }
        }
        self.reserve(core);
        let before = core.outcome.forced;
        self.held = false;
        while let Some((at, id)) = self.due.first().filter(|(at, _)| *at <= core.now && !self.held).copied() {
            self.held = !self.force(core, id)?;
            if !self.held {
                self.due.remove(&(at, id));
            }
        }
        Ok(core.outcome.forced > before)
    }

    /// Starts tasks with a complete reservation, and withdraws requests that have passed their deadline without one.
    fn before_round(&mut self, core: &mut Kernel) -> Result<()> {
        self.reserve(core);
        for id in self.ids() {
            let Some(request) = self.open.get_mut(&id) else { continue };
            // Uses amounts that an earlier request released on withdrawal.
            request.top_up(core);
            if request.room == Room::Kept && request.missing(core) == Resources::ZERO {
                self.start_one(core, id)?;
            } else if !self.due.contains(&(request.deadline, id)) {
                self.withdraw(core, id);
            }
        }
        // Reserves amounts that a later request released, so that the following round does not find them free.
        self.open.values_mut().for_each(|request| request.top_up(core));
        Ok(())
    }

    /// Returns whether another round must follow: a task has started on another machine and its reservation may serve others, or a new
    /// request has its deadline now. Makes requests for queues with a next task that fits nowhere.
    fn after_round(&mut self, core: &mut Kernel) -> Result<bool> {
        Ok(self.ids().into_iter().any(|id| !self.still_wanted(core, id)) || self.make(core)?)
    }
}

impl Asks {
    fn ids(&self) -> Vec<u64> {
        self.open.keys().copied().collect()
    }

    /// Returns whether a request is still needed. Its set must be the next of its queue with enough waiting tasks for all of its requests,
    /// the policy must admit that many, and the set may use the machine (labels may have changed).
    fn still_wanted(&self, core: &Kernel, id: u64) -> bool {
        let Some(request) = self.open.get(&id) else { return false };
        let before = self.of_queue[&request.queue].iter().take_while(|other| **other != id).count() as u64;
        let work = &core.work;
        work.queues.head(request.queue) == Some(request.set)
            && (work.sets[request.set].row, work.sets[request.set].since) == request.waits
            && u64::from(work.sets[request.set].waiting) > before
            && core.admits(request.queue, before as u32 + 1)
            && core.site.scopes.contains(work.queues.scope(request.queue), request.machine)
    }

    fn withdraw(&mut self, core: &mut Kernel, id: u64) {
        let Some(request) = self.remove(id) else { return };
        core.outcome.asks_withdrawn += u64::from(request.room == Room::Kept);
        if request.reserved != Resources::ZERO {
            core.site.machines.give_reserved(request.machine, &request.reserved);
            core.round.freed(request.machine);
        }
    }

    /// Reserves free amounts for requests that lack them, and releases asked tasks that are no longer needed.
    fn reserve(&mut self, core: &mut Kernel) {
        let Asks { open, asked, .. } = self;
        for request in open.values_mut() {
            request.top_up(core);
            request.spare(core).into_iter().for_each(|(victim, count)| spare(asked, &victim, count));
        }
    }

    /// Stops the asked tasks of a request at its deadline if they still run, unless the rule would no longer choose them. Returns false if
    /// the preemption limit of the current window is reached. Errors: those of the stops.
    fn force(&mut self, core: &mut Kernel, id: u64) -> Result<bool> {
        let Some(request) = self.open.get(&id) else { return Ok(true) };
        let choices = request.choices(core);
        let count = choices.iter().map(|choice| choice.count).sum();
        let right = match self.rule {
            Some(VictimRule::Share(_)) => self.is_fair(core, id, request),
            Some(VictimRule::Order(_)) => core.asks_behind(request),
            Some(VictimRule::Urgent(_)) | None => true,
        };
        if !right {
            self.withdraw(core, id);
            return Ok(true);
        }
        if core.preemption_budget.room(count) < count {
            return Ok(false);
        }
        core.preemption_budget.stop(count);
        core.outcome.forced += u64::from(count);
        for Choice { tickets, count, .. } in choices {
            core.stop(&tickets, count, Fate::Preempted)?;
        }
        Ok(true)
    }

    /// Returns whether the requesting user stays behind the users of the victims, including all amounts taken for it and not started yet.
    fn is_fair(&self, core: &Kernel, id: u64, request: &Request) -> bool {
        let user = core.work.sets[request.set].user;
        let taken =
            |(other, request): &(&u64, &Request)| !self.due.contains(&(request.deadline, **other)) || **other == id;
        let taken = self.open.iter().filter(taken).map(|(_, request)| request);
        let gains = pending(core, taken).get(&user).map(|pending| pending.gains).unwrap_or_default();
        let mut givers = pending(core, std::iter::once(request));
        givers.remove(&user);
        core.stays_behind(user, gains, &givers)
    }

    /// Starts the task of a complete reservation, if the policy still admits it.
    fn start_one(&mut self, core: &mut Kernel, id: u64) -> Result<()> {
        let Some(&Request { queue, set, machine, .. }) = self.open.get(&id) else { return Ok(()) };
        if core.work.queues.head(queue) != Some(set) || !core.admits(queue, 1) {
            self.withdraw(core, id);
            return Ok(());
        }
        let Some(request) = self.remove(id) else { return Ok(()) };
        core.site.machines.give_reserved(machine, &request.reserved);
        let place = core.line_key(queue);
        core.record_turn(queue, place, Turn::Launched(Some(machine)))?;
        core.launch(queue, machine);
        match core.work.queues.head(queue) {
            Some(_) => core.head_changed(queue),
            None => core.emptied(queue),
        }
        Ok(())
    }

    /// Makes requests for queues with a next task that fits nowhere, the most urgent first. Returns whether a deadline is now.
    fn make(&mut self, core: &mut Kernel) -> Result<bool> {
        self.rounds += 1;
        let least = core.running.victims.as_ref().and_then(|victims| victims.least_urgent());
        let queues = match core.options.on_blocked {
            OnBlocked::Skip | OnBlocked::Easy | OnBlocked::Conservative => core.site.scopes.blocked(),
            // Queues behind the first one that does not fit have not been tried.
            OnBlocked::Stop => core.site.scopes.first().map(|(_, queue)| queue).into_iter().collect(),
        };
        let falls_back = matches!(self.rule, Some(VictimRule::Order(_))) && !queues.is_empty();
        self.wake = if falls_back { core.falls_back() } else { None };
        let mut changes = self.changes(core);
        let mut requesters: BinaryHeap<Reverse<(Rank, LineKey, QueueId)>> = BinaryHeap::new();
        for queue in queues {
            let Some(head) = core.work.queues.head(queue) else { continue };
            let set = &core.work.sets[head];
            // A task does not ask tasks of the same urgency.
            let useless =
                matches!(self.rule, Some(VictimRule::Urgent(_))) && least.is_none_or(|least| set.priority >= least);
            if !set.gang && !useless {
                requesters.push(Reverse((self.turn(core, head, &changes), core.line_key(queue), queue)));
            }
        }
        let mut any = false;
        while let Some(Reverse((turn, place, queue))) = requesters.pop() {
            let Some(set) = core.work.queues.head(queue) else { continue };
            let asks = self.of_queue.get(&queue).map_or(0, Vec::len);
            if asks < core.work.sets[set].waiting as usize
                && core.admits(queue, asks as u32 + 1)
                && let Some(request) = self.request(core, queue, set, &changes)?
            {
                self.open(core, request);
                requesters.push(Reverse((turn, place, queue)));
                any = true;
                if matches!(self.rule, Some(VictimRule::Share(_))) {
                    // The request changes the prospective allocations, and with them the order of the requesting users.
                    changes = self.changes(core);
                    let again = |Reverse((turn, place, queue))| {
                        let head = core.work.queues.head(queue);
                        Reverse((head.map_or(turn, |head| self.turn(core, head, &changes)), place, queue))
                    };
                    requesters = std::mem::take(&mut requesters).into_iter().map(again).collect();
                }
            }
        }
        Ok(any && self.within == Span::ZERO)
    }

    /// Returns the position of a queue's next set in the order of requests: by urgency, by its user's prospective allocation, or by rank.
    fn turn(&self, core: &Kernel, set: SetSlot, changes: &HashMap<UserId, Pending>) -> Rank {
        let set = &core.work.sets[set];
        match self.rule {
            Some(VictimRule::Share(_)) => {
                let pending = changes.get(&set.user).copied().unwrap_or_default();
                share::turn(&*core.outside.policy, set.user, pending, &core.books)
            }
            Some(VictimRule::Order(_)) => Rank::default(),
            Some(VictimRule::Urgent(_)) | None => Rank::new(set.priority.into()),
        }
    }

    /// Returns the changes of allocations by all open requests together; empty unless the rule uses them.
    fn changes(&self, core: &Kernel) -> HashMap<UserId, Pending> {
        let goes_by_it = matches!(self.rule, Some(VictimRule::Share(_)));
        pending(core, self.open.values().filter(|_| goes_by_it))
    }

    fn open(&mut self, core: &mut Kernel, request: Request) {
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

    /// Returns the request that the rule proposes for the next task of a set. Errors: the rule's, and [`Error::Mismatch`] for an invalid
    /// proposal.
    fn request(
        &mut self,
        core: &mut Kernel,
        queue: QueueId,
        set: SetSlot,
        pending: &HashMap<UserId, Pending>,
    ) -> Result<Option<Request>> {
        let Kernel { outside, now, books, work, running, site, preemption_budget, .. } = core;
        let (demand, footprint) = work.sets.needs(set);
        let ask = policy::Ask { footprint, demand, tasks: 1 };
        let head = work.view(set);
        // Under the urgent rule the more urgent task always wins. Under other rules, tasks that have just started are exempt: otherwise two
        // tasks could preempt each other without end.
        let but_of = (!matches!(self.rule, Some(VictimRule::Urgent(_)))).then_some(*now);
        let scope = work.queues.scope(queue);
        let keyed = matches!(self.rule, Some(VictimRule::Order(_)));
        let requester = Requester { scope, asked: &self.asked, pending, version: self.rounds, keyed, but_of };
        let view = TaskView::new(work, running, site, &*outside.source, preemption_budget, *now);
        let proposal = match &mut self.rule {
            Some(VictimRule::Urgent(rule)) => {
                rule.propose(&head, &ask, &view.for_requester(requester, Some(&*outside.policy)), books)?
            }
            Some(VictimRule::Share(rule)) => {
                rule.propose(&head, &ask, &view.for_requester(requester, Some(&*outside.policy)), books)?
            }
            Some(VictimRule::Order(rule)) => {
                rule.propose(&head, &ask, &view.for_requester(requester, Some(&*outside.policy)), books)?
            }
            None => match outside.policy.preemption() {
                Some(rule) => rule.propose(&head, &ask, &view.for_requester(requester, None), books)?,
                None => None,
            },
        };
        let Some(proposal) = proposal else { return Ok(None) };
        let mut asked = Vec::new();
        let mut machine = None;
        for (key, count) in &proposal.tasks {
            let tasks = core.preemptible(Ticket::from_key(*key), *count)?;
            if but_of == Some(tasks.start) {
                return Err(senseless("tasks that have only just started"));
            }
            asked.push((Victim::new(&core.work.sets[tasks.set], &tasks), *count));
            if *machine.get_or_insert(tasks.machine) != tasks.machine {
                return Err(senseless("tasks of more than one machine"));
            }
        }
        let scope = core.work.queues.scope(queue);
        let Some(machine) = machine.filter(|machine| core.site.scopes.contains(scope, *machine)) else {
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
        // Drops proposed tasks that are not needed, before any of the tasks is counted as asked.
        request.spare(core);
        if request.asked.is_empty() && self.rule.is_none() {
            return Err(senseless("tasks without any of the missing resources"));
        }
        let stops = request.choices(core).iter().map(|choice| choice.count).sum();
        Ok(core.preemption_budget.could(stops).then_some(request))
    }
}

fn senseless(what: &str) -> Error {
    Error::Mismatch { problem: format!("the policy wants to stop {what} for a task that fits nowhere") }
}

impl Kernel<'_> {
    /// Returns whether the policy admits this number of further tasks of a queue's next set.
    fn admits(&self, queue: QueueId, tasks: u32) -> bool {
        let Some(head) = self.work.queues.head(queue) else { return false };
        let view = self.work.view(head);
        self.outside.policy.admit(&view, &self.ask(head, tasks), &self.books) == Verdict::Yes
    }
}
