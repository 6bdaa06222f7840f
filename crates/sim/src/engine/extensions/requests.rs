//! Requests of waiting tasks for the room of running tasks, and the reservations for them.
//!
//! Preemption is interactive: a request asks running tasks for their room. Asked tasks continue until a deadline, and are stopped only if
//! they have not ended by then. The preemption rule ([`Preemption`]) proposes the victims of a task. Amounts that become free on the
//! machine are reserved for the task, unless the rule leaves the room open to all ([`Room::Open`]). A request is withdrawn if its task no
//! longer needs it, if the policy no longer admits the task, or if the machine may no longer be used. Gangs make no requests. The rules
//! are in `docs/cluster.md`, "Priorities and giving back".

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap};

use super::extension::Extension;
use super::request::{Request, pending};
use super::victim_rules::{PreemptFrom, ShareOrder, Urgent, VictimOrder, share_with, stays_behind};
use crate::engine::kernel::{Choice, Kernel, LineKey, QueueId, Requester, SetSlot, Ticket, Victim};
use crate::engine::outcome::Outcome;
use crate::engine::round::OnBlocked;
use crate::policy::{Pending, Preemption, Rank, Room};
use crate::record::{Fate, Turn};
use plimsoll_base::checkpoint::{Checkpoint, Visitor};
use plimsoll_base::error::{Error, Result};
use plimsoll_base::named;
use plimsoll_base::units::{MachineId, Resources, Span, Time, UserId};
use plimsoll_base::visit_values;

named! {
    /// The tasks that may request the room of others.
    PreemptFor {
        Urgent "urgent": "More urgent tasks",
        Order "order": "Tasks that come before them in the order behind the policy's slash",
        Share "share": "Tasks of users that are behind by the policy's shares, while they stay behind the users of the victims",
    }
}

/// The preemption rule of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preempt {
    /// The time that asked tasks may continue to run; with zero they are stopped at once.
    pub within: Span,
    /// The tasks that make requests.
    pub whom: PreemptFor,
    /// The users with tasks that may be asked by urgent tasks.
    pub from: PreemptFrom,
}

/// The rule of the run for the victims of a task.
enum VictimRule {
    Urgent(Urgent),
    Share(ShareOrder),
    Order(VictimOrder),
}

/// All open requests.
pub struct Requests {
    /// The time from a request to its deadline.
    within: Span,
    /// The rule of the run; the policy's own rule if absent.
    rule: Option<VictimRule>,
    /// Open requests by id, which is the order of their creation.
    open: BTreeMap<u64, Request>,
    made: u64,
    /// The number of rounds with requests so far. Rules use it as the version of the running tasks.
    rounds: u64,
    of_queue: HashMap<QueueId, Vec<u64>>,
    /// The number of asked tasks of each entry.
    asked: HashMap<Victim, u32>,
    due: BTreeSet<(Time, u64)>,
    /// The next time at which a running task falls back in the order, if any task waits for such a change.
    wake: Option<Time>,
    /// Whether the first request that has reached its deadline waits for the preemption limit; later requests wait behind it.
    held: bool,
    on_blocked: OnBlocked,
    /// The number of asked tasks that were stopped at the deadline.
    forced: u64,
    /// The number of withdrawn requests that were to keep reserved room.
    withdrawn: u64,
}

impl Requests {
    /// Creates the state for the run's rule, or for the policy's own rule, which stops tasks without a deadline.
    pub fn new(rule: Option<Preempt>, one_line: bool, on_blocked: OnBlocked) -> Requests {
        let (open, of_queue, asked, due) = Default::default();
        let within = rule.map_or(Span::ZERO, |rule| rule.within);
        let rule = rule.map(|rule| match rule.whom {
            PreemptFor::Urgent => VictimRule::Urgent(Urgent::new(rule.from)),
            PreemptFor::Share => VictimRule::Share(ShareOrder::default()),
            PreemptFor::Order => VictimRule::Order(VictimOrder::new(one_line)),
        });
        Requests {
            within,
            rule,
            open,
            made: 0,
            rounds: 0,
            of_queue,
            asked,
            due,
            wake: None,
            held: false,
            on_blocked,
            forced: 0,
            withdrawn: 0,
        }
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

impl Extension for Requests {
    fn next(&self) -> Option<Time> {
        let due = self.due.first().map(|(time, _)| *time).filter(|_| !self.held);
        due.into_iter().chain(self.wake).min()
    }

    fn withdrawn(&mut self, kernel: &mut Kernel, machine: MachineId) {
        let there = self.open.iter().filter(|(_, request)| request.machine == machine).map(|(id, _)| *id);
        there.collect::<Vec<u64>>().into_iter().for_each(|id| self.withdraw(kernel, id));
    }

    /// Withdraws needless requests, reserves free amounts, and stops tasks at their deadlines.
    fn stop(&mut self, kernel: &mut Kernel) -> Result<bool> {
        for id in self.ids() {
            if !self.still_wanted(kernel, id) {
                self.withdraw(kernel, id);
            }
        }
        self.reserve(kernel);
        let before = self.forced;
        self.held = false;
        while let Some((at, id)) = self.due.first().filter(|(at, _)| *at <= kernel.now() && !self.held).copied() {
            self.held = !self.force(kernel, id)?;
            if !self.held {
                self.due.remove(&(at, id));
            }
        }
        Ok(self.forced > before)
    }

    /// Starts tasks with a complete reservation, and withdraws requests that have passed their deadline without one.
    fn before_round(&mut self, kernel: &mut Kernel) -> Result<()> {
        self.reserve(kernel);
        for id in self.ids() {
            let Some(request) = self.open.get_mut(&id) else { continue };
            // An earlier request may have released amounts when it was withdrawn.
            request.top_up(kernel);
            if request.room == Room::Kept && request.missing(kernel).is_zero() {
                self.start_one(kernel, id)?;
            } else if !self.due.contains(&(request.deadline, id)) {
                self.withdraw(kernel, id);
            }
        }
        // A later request may have released amounts. They are reserved, so that the following round does not find them free.
        self.open.values_mut().for_each(|request| request.top_up(kernel));
        Ok(())
    }

    /// Creates requests for queues with a next task that fits nowhere. Returns whether another round must follow: because a task has
    /// started on another machine and its reservation may serve others, or because a new request has its deadline now.
    fn after_round(&mut self, kernel: &mut Kernel) -> Result<bool> {
        Ok(self.ids().into_iter().any(|id| !self.still_wanted(kernel, id)) || self.make(kernel)?)
    }

    fn count(&self, outcome: &mut Outcome) {
        (outcome.asks, outcome.asks_withdrawn, outcome.forced) = (self.made, self.withdrawn, self.forced);
    }
}

impl Requests {
    /// Returns the first open request of a set with asked tasks: the number of asked tasks, their machine, and the amounts that are missing.
    pub fn asked_for(&self, kernel: &Kernel, slot: SetSlot) -> Option<(u64, MachineId, Resources)> {
        let (set, since) = (kernel.set(slot), kernel.details(slot).since);
        let requests = self.of_queue.get(&set.queue)?.iter().filter_map(|id| self.open.get(id));
        let mut requests = requests.filter(|request| request.set == slot && request.waits == (set.row, since));
        let request = requests.find(|request| !request.asked.is_empty())?;
        let asked = request.asked.iter().map(|(_, count)| u64::from(*count)).sum();
        Some((asked, request.machine, request.missing(kernel)))
    }

    fn ids(&self) -> Vec<u64> {
        self.open.keys().copied().collect()
    }

    /// Returns whether a request is still needed. Its set must be the next of its queue with enough waiting tasks for all of its requests,
    /// the policy must admit that many, and the set may use the machine (labels may have changed).
    fn still_wanted(&self, kernel: &Kernel, id: u64) -> bool {
        let Some(request) = self.open.get(&id) else { return false };
        let before = self.of_queue[&request.queue].iter().take_while(|other| **other != id).count() as u64;
        let set = kernel.set(request.set);
        kernel.head(request.queue) == Some(request.set)
            && (set.row, kernel.details(request.set).since) == request.waits
            && u64::from(set.waiting) > before
            && kernel.admits(request.queue, before as u32 + 1)
            && kernel.scopes().contains(kernel.queues().scope(request.queue), request.machine)
    }

    fn withdraw(&mut self, kernel: &mut Kernel, id: u64) {
        let Some(request) = self.remove(id) else { return };
        self.withdrawn += u64::from(request.room == Room::Kept);
        if !request.reserved.is_zero() {
            kernel.release_reservation(request.machine, &request.reserved);
        }
    }

    /// Reserves free amounts for requests that lack them, and releases asked tasks that are no longer needed.
    fn reserve(&mut self, kernel: &mut Kernel) {
        let Requests { open, asked, .. } = self;
        for request in open.values_mut() {
            request.top_up(kernel);
            request.spare(kernel).into_iter().for_each(|(victim, count)| spare(asked, &victim, count));
        }
    }

    /// Stops the asked tasks of a request at its deadline if they still run, unless the rule would no longer choose them. Returns `false`
    /// if the preemption limit of the current window is reached. Errors: those of the stops.
    fn force(&mut self, kernel: &mut Kernel, id: u64) -> Result<bool> {
        let Some(request) = self.open.get(&id) else { return Ok(true) };
        let choices = request.choices(kernel);
        let count = choices.iter().map(|choice| choice.count).sum();
        let right = match self.rule {
            Some(VictimRule::Share(_)) => self.is_fair(kernel, id, request),
            Some(VictimRule::Order(_)) => are_behind(kernel, request),
            Some(VictimRule::Urgent(_)) | None => true,
        };
        if !right {
            self.withdraw(kernel, id);
            return Ok(true);
        }
        if !kernel.spend_preemptions(count) {
            return Ok(false);
        }
        self.forced += u64::from(count);
        for Choice { tickets, count, .. } in choices {
            kernel.stop(&tickets, count, Fate::Preempted)?;
        }
        Ok(true)
    }

    /// Returns whether the requesting user stays behind the users of the victims, counting all amounts that are taken for it and not used
    /// yet.
    fn is_fair(&self, kernel: &Kernel, id: u64, request: &Request) -> bool {
        let user = kernel.set(request.set).user;
        let taken =
            |(other, request): &(&u64, &Request)| !self.due.contains(&(request.deadline, **other)) || **other == id;
        let taken = self.open.iter().filter(taken).map(|(_, request)| request);
        let gains = pending(kernel, taken).get(&user).map(|pending| pending.gains).unwrap_or_default();
        let mut givers = pending(kernel, std::iter::once(request));
        givers.remove(&user);
        stays_behind(kernel, user, gains, &givers)
    }

    /// Starts the task of a request with a complete reservation, if the policy still admits it.
    fn start_one(&mut self, kernel: &mut Kernel, id: u64) -> Result<()> {
        let Some(&Request { queue, set, machine, .. }) = self.open.get(&id) else { return Ok(()) };
        if kernel.head(queue) != Some(set) || !kernel.admits(queue, 1) {
            self.withdraw(kernel, id);
            return Ok(());
        }
        let Some(request) = self.remove(id) else { return Ok(()) };
        kernel.use_reservation(machine, &request.reserved);
        let key = kernel.line_key(queue);
        kernel.record_turn(queue, key, Turn::Launched(Some(machine)))?;
        kernel.launch(set, &[(machine, 1)]);
        kernel.queue_served(queue);
        Ok(())
    }

    /// Makes requests for queues with a next task that fits nowhere, the most urgent first. Returns whether a new request has its deadline
    /// now.
    fn make(&mut self, kernel: &mut Kernel) -> Result<bool> {
        self.rounds += 1;
        let least = kernel.victims().and_then(|victims| victims.least_urgent());
        // If rounds end at the first queue that does not fit, the queues behind it have not been tried.
        let queues = match self.on_blocked {
            OnBlocked::Stop => kernel.first_blocked().map(|(_, queue)| queue).into_iter().collect(),
            OnBlocked::Skip | OnBlocked::Easy | OnBlocked::Conservative | OnBlocked::Hold | OnBlocked::HoldBackfill => {
                kernel.blocked()
            }
        };
        let falls_back = matches!(self.rule, Some(VictimRule::Order(_))) && !queues.is_empty();
        self.wake = if falls_back { kernel.next_order_change() } else { None };
        let mut changes = self.changes(kernel);
        let mut requesters: BinaryHeap<Reverse<(Rank, LineKey, QueueId)>> = BinaryHeap::new();
        for queue in queues {
            let Some(head) = kernel.head(queue) else { continue };
            let set = kernel.set(head);
            // An urgent task only asks less urgent tasks.
            let useless =
                matches!(self.rule, Some(VictimRule::Urgent(_))) && least.is_none_or(|least| set.priority >= least);
            if !set.is_gang() && !useless {
                requesters.push(Reverse((self.turn(kernel, head, &changes), kernel.line_key(queue), queue)));
            }
        }
        let mut any = false;
        while let Some(Reverse((turn, place, queue))) = requesters.pop() {
            let Some(set) = kernel.head(queue) else { continue };
            let asks = self.of_queue.get(&queue).map_or(0, Vec::len);
            if asks < kernel.set(set).waiting as usize
                && kernel.admits(queue, asks as u32 + 1)
                && let Some(request) = self.request(kernel, queue, set, &changes)?
            {
                self.open(kernel, request);
                requesters.push(Reverse((turn, place, queue)));
                any = true;
                if matches!(self.rule, Some(VictimRule::Share(_))) {
                    // The request changes the prospective allocations, and with them the order of the requesting users.
                    changes = self.changes(kernel);
                    let again = |Reverse((turn, place, queue))| {
                        let head = kernel.head(queue);
                        Reverse((head.map_or(turn, |head| self.turn(kernel, head, &changes)), place, queue))
                    };
                    requesters = std::mem::take(&mut requesters).into_iter().map(again).collect();
                }
            }
        }
        Ok(any && self.within == Span::ZERO)
    }

    /// Returns the position of a queue's next set in the order of requests: by urgency, by its user's prospective allocation, or by rank.
    fn turn(&self, kernel: &Kernel, set: SetSlot, changes: &HashMap<UserId, Pending>) -> Rank {
        let set = kernel.set(set);
        match self.rule {
            Some(VictimRule::Share(_)) => {
                let pending = changes.get(&set.user).copied().unwrap_or_default();
                share_with(kernel.policy(), set.user, pending, kernel.books())
            }
            Some(VictimRule::Order(_)) => Rank::default(),
            Some(VictimRule::Urgent(_)) | None => Rank::new(set.priority.into()),
        }
    }

    /// Returns the changes of allocations by all open requests together; empty unless the rule uses them.
    fn changes(&self, kernel: &Kernel) -> HashMap<UserId, Pending> {
        let goes_by_it = matches!(self.rule, Some(VictimRule::Share(_)));
        pending(kernel, self.open.values().filter(|_| goes_by_it))
    }

    fn open(&mut self, kernel: &mut Kernel, request: Request) {
        let id = self.made;
        self.made += 1;
        for (victim, count) in &request.asked {
            *self.asked.entry(*victim).or_default() += count;
        }
        self.due.insert((request.deadline, id));
        self.of_queue.entry(request.queue).or_default().push(id);
        kernel.reserve(request.machine, &request.reserved);
        self.open.insert(id, request);
    }

    /// Returns the request that the rule proposes for the next task of a set. Errors: the rule's, and [`Error::Mismatch`] for an invalid
    /// proposal.
    fn request(
        &mut self,
        kernel: &mut Kernel,
        queue: QueueId,
        set: SetSlot,
        pending: &HashMap<UserId, Pending>,
    ) -> Result<Option<Request>> {
        // Under the urgent rule, the more urgent task always preempts. Under other rules, tasks that have just started are exempt;
        // otherwise two tasks could preempt each other without end.
        let but_of = (!matches!(self.rule, Some(VictimRule::Urgent(_)))).then_some(kernel.now());
        let scope = kernel.queues().scope(queue);
        let keyed = matches!(self.rule, Some(VictimRule::Order(_)));
        let requester = Requester { scope, asked: &self.asked, pending, version: self.rounds, keyed, but_of };
        let rule = self.rule.as_mut().map(|rule| match rule {
            VictimRule::Urgent(rule) => rule as &mut dyn Preemption,
            VictimRule::Share(rule) => rule,
            VictimRule::Order(rule) => rule,
        });
        let proposal = kernel.propose(rule, set, requester)?;
        let Some(proposal) = proposal else { return Ok(None) };
        let mut asked = Vec::new();
        let mut machine = None;
        for (key, count) in &proposal.tasks {
            let tasks = kernel.preemptible(Ticket::from_key(*key), *count)?;
            if but_of == Some(tasks.start) {
                return Err(senseless("tasks that have only just started"));
            }
            asked.push((Victim::new(kernel.set(tasks.set), &tasks), *count));
            if *machine.get_or_insert(tasks.machine) != tasks.machine {
                return Err(senseless("tasks of more than one machine"));
            }
        }
        let Some(machine) = machine.filter(|machine| kernel.scopes().contains(scope, *machine)) else {
            return Err(senseless("no tasks, or tasks of a machine that it may not use,"));
        };
        let reserved = match proposal.room {
            Room::Open => Resources::ZERO,
            Room::Kept => kernel.footprint(set).min(kernel.machines().free(machine)),
        };
        let waits = (kernel.set(set).row, kernel.details(set).since);
        let deadline = kernel.now() + self.within;
        let mut request = Request { queue, set, waits, machine, reserved, asked, room: proposal.room, deadline };
        // Drops proposed tasks that are not needed, before any of them counts as asked.
        request.spare(kernel);
        if request.asked.is_empty() && self.rule.is_none() {
            return Err(senseless("tasks without any of the missing resources"));
        }
        let stops = request.choices(kernel).iter().map(|choice| choice.count).sum();
        Ok(kernel.budget().could(stops).then_some(request))
    }
}

fn senseless(what: &str) -> Error {
    Error::Mismatch { problem: format!("the policy wants to stop {what} for a task that fits nowhere") }
}

/// Returns whether all victims of a request are still behind its task in the order of the run.
fn are_behind(kernel: &Kernel, request: &Request) -> bool {
    let own = kernel.order_of(request.set);
    let asked = request.choices(kernel).into_iter().flat_map(|choice| choice.tickets);
    let asked = asked.filter_map(|ticket| kernel.running(ticket));
    { asked }.all(|tasks| kernel.order_of(tasks.set) > own)
}

impl Checkpoint for Requests {
    fn visit(&mut self, visitor: &mut Visitor) -> Result<()> {
        // The caches of rules are of one round only.
        let Requests {
            within: _,
            rule: _,
            open,
            made,
            rounds,
            of_queue,
            asked,
            due,
            wake,
            held,
            on_blocked: _,
            forced,
            withdrawn,
        } = self;
        visit_values!(visitor; open, made, rounds, of_queue, asked, due, wake, held, forced, withdrawn);
        Ok(())
    }
}
