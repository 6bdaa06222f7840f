//! Preemption by the order of the run: waiting tasks may stop tasks behind them, as in shortest remaining time or least attained service
//! with preemption.
//!
//! Under a policy of one line (`line/srpt`) the victims are tasks of all users. Under all other policies the order applies inside users
//! (`drf/srpt`), and the victims are tasks of the same user. The rules are in `docs/cluster.md`, "Room for what is first in the order".

use std::cmp::Reverse;
use std::ops::ControlFlow;

use super::gather::Gathered;
use crate::books::Books;
use crate::policy::{Ask, Preemption, Queue, RunningTasks, RunningView, Victims};
use plimsoll_base::error::Result;
use plimsoll_base::units::{MachineId, Resources};

/// The rule that stops the last tasks in the order first; equal keys follow the order of stopping.
#[derive(Default)]
pub struct VictimOrder {
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
                behind.push(LaterTasks { order, key, machine, count, each: Resources::from_slice(footprint) });
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
