//! The view of running tasks for a preemption rule.
//!
//! A rule visits the tasks that may be preempted, in the order of stopping, each with the number of tasks that it may propose. Tasks are
//! omitted if their run time is too short, if they belong to a gang larger than the preemption limit, or if another request has already
//! asked them.

use std::collections::HashMap;
use std::ops::ControlFlow;

use super::agenda::Ticket;
use super::budget::PreemptionBudget;
use super::ids::{ScopeId, SetSlot};
use super::queues::place;
use super::running::{Execution, Victim};
use super::site::Site;
use super::work::Work;
use crate::cluster::PlannedRoom;
use crate::policy::{Gang, Groups, Head, Pending, Policy, RunningTasks, RunningView, Shares};
use crate::workload::Source;
use plimsoll_base::units::{MachineId, Resources, Time, UserId};

/// The running tasks that a preemption rule may visit.
pub struct TaskView<'a> {
    work: &'a Work,
    running: &'a Execution,
    site: &'a Site,
    source: &'a dyn Source,
    preemption_budget: &'a PreemptionBudget,
    now: Time,
    policy: Option<&'a dyn Policy>,
    requester: Option<Requester<'a>>,
}

/// The task that victims would be stopped for.
pub struct Requester<'a> {
    /// The machines that the task may use.
    pub scope: ScopeId,
    /// The number of tasks of each entry that other requests have asked.
    pub asked: &'a HashMap<Victim, u32>,
    /// Per user, the amounts that open requests will add or remove.
    pub pending: &'a HashMap<UserId, Pending>,
    /// See [`RunningView::version`].
    pub version: u64,
    /// Whether tasks are visited with their key in the job order of the run.
    pub keyed: bool,
    /// If present, tasks that started at this instant are omitted.
    pub but_of: Option<Time>,
}

impl<'a> TaskView<'a> {
    /// Creates a view of all tasks that may be preempted.
    pub fn new(
        work: &'a Work,
        running: &'a Execution,
        site: &'a Site,
        source: &'a dyn Source,
        preemption_budget: &'a PreemptionBudget,
        now: Time,
    ) -> TaskView<'a> {
        TaskView { work, running, site, source, preemption_budget, now, policy: None, requester: None }
    }

    /// Restricts the view to tasks that no other request has asked, on machines that the requesting task may use. A rule that is not the
    /// policy's own also gets the policy's groups and shares.
    pub fn for_requester(self, requester: Requester<'a>, policy: Option<&'a dyn Policy>) -> TaskView<'a> {
        TaskView { policy, requester: Some(requester), ..self }
    }

    fn visit(
        &self,
        entry: (&Victim, &Ticket),
        visit: &mut dyn FnMut(&RunningTasks) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let (victim, ticket) = entry;
        let Some(tasks) = self.running.get(*ticket) else { return ControlFlow::Continue(()) };
        let mut count = tasks.count.get();
        if let Some(Requester { scope, asked, .. }) = &self.requester {
            count -= asked.get(victim).copied().unwrap_or(0).min(count);
            let machine = tasks.machine;
            if count == 0 || !self.site.machines.is_present(machine) || !self.site.scopes.contains(*scope, machine) {
                return ControlFlow::Continue(());
            }
        }
        let keyed = self.requester.as_ref().is_some_and(|requester| requester.keyed);
        let set = &self.work.sets[tasks.set];
        let gang = set.is_gang().then(|| self.gang(tasks.set));
        let start = gang.map_or(tasks.start, |(_, start)| start);
        if self.preemption_budget.spares(start)
            || gang.is_some_and(|(gang, _)| !self.preemption_budget.could(gang.tasks))
        {
            return ControlFlow::Continue(());
        }
        if self.requester.as_ref().and_then(|requester| requester.but_of) == Some(tasks.start) {
            return ControlFlow::Continue(());
        }
        visit(&RunningTasks {
            key: ticket.key(),
            user: set.user,
            partition: set.partition,
            priority: set.priority,
            order: if keyed { self.work.order_of(tasks.set, self.now) } else { 0 },
            machine: tasks.machine,
            row: set.row,
            since: (set.release, place(set)),
            start: tasks.start,
            count,
            footprint: self.work.sets.needs(tasks.set).1,
            gang: gang.map(|(gang, _)| gang),
        })
    }

    /// Returns the running tasks of a gang, and the start of the last of them.
    fn gang(&self, set: SetSlot) -> (Gang, Time) {
        let parts = self.running.victims.iter().flat_map(|victims| victims.parts(set));
        let parts = parts.filter_map(|ticket| self.running.get(ticket));
        let (tasks, start) =
            parts.fold((0, Time::ZERO), |(tasks, start), part| (tasks + part.count.get(), start.max(part.start)));
        (Gang { number: set.index() as u32, tasks }, start)
    }
}

impl RunningView for TaskView<'_> {
    fn all(&self, visit: &mut dyn FnMut(&RunningTasks) -> ControlFlow<()>) {
        let all = self.running.victims.iter().flat_map(|victims| victims.all());
        let _ = { all }.try_for_each(|entry| self.visit(entry, visit));
    }

    fn of_users(&self, users: &[UserId], visit: &mut dyn FnMut(&RunningTasks) -> ControlFlow<()>) {
        let of = self.running.victims.iter().flat_map(|victims| victims.of_users(users));
        let _ = { of }.try_for_each(|entry| self.visit(entry, visit));
    }

    fn next(&self, user: UserId) -> Option<Head> {
        let first = self.work.first(user)?;
        let set = &self.work.sets[first];
        let footprint = Resources::from_slice(self.work.sets.needs(first).1);
        Some(Head { queue: self.work.view(first), footprint, tasks: set.waiting, gang: set.is_gang() })
    }

    fn free(&self, machine: MachineId) -> Resources {
        self.site.machines.free(machine)
    }

    fn find(&self, need: &Resources, planned: &[PlannedRoom]) -> Option<MachineId> {
        self.site.machines.find_planned(need, planned)
    }

    fn is_first_fit(&self) -> bool {
        self.site.machines.is_first_fit()
    }

    fn name(&self, user: UserId) -> &str {
        self.source.users().name(user.0)
    }

    fn groups(&self) -> Option<&dyn Groups> {
        self.policy?.groups()
    }

    fn shares(&self) -> Option<&dyn Shares> {
        self.policy?.shares()
    }

    fn pending(&self, user: UserId) -> Pending {
        self.requester.as_ref().and_then(|requester| requester.pending.get(&user)).copied().unwrap_or_default()
    }

    fn version(&self) -> u64 {
        self.requester.as_ref().map_or(0, |requester| requester.version)
    }
}
