//! Preemption by the order of the run: waiting tasks may stop tasks behind them, as in shortest remaining time or least attained service
//! with preemption.
//!
//! Under a policy of one line (`line/srpt`) the victims are tasks of all users. Under all other policies the order applies inside users
//! (`drf/srpt`), and the victims are tasks of the same user. The rules are in `docs/cluster.md`, "Room for what is first in the order".

use std::cmp::Reverse;
use std::ops::ControlFlow;

use crate::engine::kernel::{Kernel, Work, amounts};
use super::gather::Gathered;
use crate::engine::kernel::jobs::SetSlot;
use super::request::Request;
use crate::books::Books;
use crate::policy::{Ask, Preemption, Queue, RunningTasks, RunningView, Victims};
use plimsoll_base::error::Result;
use plimsoll_base::units::{MachineId, Resources, Time};

/// The rule that stops the last tasks in the order first; equal keys follow the order of stopping.
#[derive(Default)]
pub(in crate::engine) struct VictimOrder {
    /// Whether the sets of all users are in one order.
    one_line: bool,
    /// The largest key of running tasks, for a version of them.
    last: Option<(u64, u128)>,
}

/// Running tasks that are behind the requesting task in the order.
struct LaterTasks {
    order: u128,
    key: u64,
    machine: MachineId,
    count: u32,
    each: Resources,
}

impl VictimOrder {
    pub fn new(one_line: bool) -> VictimOrder {
        VictimOrder { one_line, last: None }
    }

    /// Returns whether any running task is behind a key.
    fn any_behind(&mut self, key: u128, running: &dyn RunningView) -> bool {
        let version = running.version();
        if self.last.is_none_or(|(of, _)| of != version) {
            let mut last = 0;
            running.all(&mut |tasks| {
                last = last.max(tasks.order);
                ControlFlow::Continue(())
            });
            self.last = Some((version, last));
        }
        self.last.is_some_and(|(_, last)| last > key)
    }
}

impl Preemption for VictimOrder {
    fn propose(
        &mut self,
        queue: &Queue,
        ask: &Ask,
        running: &dyn RunningView,
        books: &Books,
    ) -> Result<Option<Victims>> {
        let Some(own) = queue.key.filter(|key| self.any_behind(*key, running)) else { return Ok(None) };
        let mut behind: Vec<LaterTasks> = Vec::new();
        let mut visit = |tasks: &RunningTasks| {
            if tasks.order > own {
                let RunningTasks { order, key, machine, count, footprint, .. } = *tasks;
                behind.push(LaterTasks { order, key, machine, count, each: amounts(footprint) });
            }
            ControlFlow::Continue(())
        };
        if self.one_line {
            running.all(&mut visit)
        } else {
            running.of_users(&[queue.user], &mut visit)
        }
        behind.sort_by_key(|tasks| Reverse(tasks.order));
        let mut gathered = Gathered::default();
        Ok(behind.into_iter().find_map(|LaterTasks { key, machine, count, each, .. }| {
            gathered.add(ask, running, (key, machine, count), each.slice(books.dims()))
        }))
    }
}

impl Work {
    /// Returns the key of a set in the order of the run at this instant, waiting or running; 0 in the usual order.
    pub(in crate::engine) fn order_of(&self, slot: SetSlot, now: Time) -> u128 {
        self.ordered.as_ref().map_or(0, |ordered| ordered.key(slot, &self.sets[slot], now))
    }
}

impl Kernel<'_> {
    /// Returns whether all victims of a request are still behind its task.
    pub(in crate::engine) fn asks_behind(&self, request: &Request) -> bool {
        let own = self.work.order_of(request.set, self.now);
        let asked = request.choices(self).into_iter().flat_map(|choice| choice.tickets);
        let asked = asked.filter_map(|ticket| self.running.get(ticket));
        { asked }.all(|tasks| self.work.order_of(tasks.set, self.now) > own)
    }

    /// Returns when a running task next falls back in the order without any other event.
    pub(in crate::engine) fn falls_back(&self) -> Option<Time> {
        let ordered = self.work.ordered.as_ref()?;
        let victims = self.running.victims.as_ref()?;
        let tasks = victims.all().filter_map(|(_, ticket)| self.running.get(*ticket));
        tasks.filter_map(|tasks| ordered.changes(tasks.job, self.now)).min()
    }
}
