//! Rounds of policies that rank users by machine: of all pairs of a next task and a machine with room for it, the first in rank order is
//! served.
//!
//! A user that was blocked before this round fits on no machine except those freed since. Launches of other users can only make the rank
//! of a pair worse. So the best pair of a user is recomputed only when a task starts on the machine of the pair, or when the user itself
//! has launched a task. The plans of gangs are recomputed after every launch.
//!
//! Cost of a round: O(waiting users * freed machines + launches * (users + machines)), and O(machines) for each queue with an untried task.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::Serving;
use crate::engine::kernel::{LineKey, QueueId, QueueState};
use crate::policy::{Ask, Spot};
use crate::record::Turn;
use plimsoll_base::error::Result;
use plimsoll_base::units::MachineId;

/// The best pair of each queue, in rank order.
#[derive(Default)]
struct Pairs {
    order: BTreeSet<(LineKey, MachineId, QueueId)>,
    of: HashMap<QueueId, (LineKey, MachineId)>,
}

impl Pairs {
    fn set(&mut self, queue: QueueId, best: Option<(LineKey, MachineId)>) {
        if let Some((place, machine)) = self.of.remove(&queue) {
            self.order.remove(&(place, machine, queue));
        }
        if let Some((place, machine)) = best {
            self.of.insert(queue, (place, machine));
            self.order.insert((place, machine, queue));
        }
    }

    fn on(&self, machines: &[MachineId]) -> Vec<QueueId> {
        let mut queues: Vec<QueueId> =
            self.of.iter().filter(|(_, best)| machines.contains(&best.1)).map(|(at, _)| *at).collect();
        queues.sort_unstable();
        queues
    }
}

impl Serving<'_, '_> {
    pub(in crate::engine) fn serve_by_machine(&mut self) -> Result<()> {
        let mut came = HashSet::new();
        while let Some(queue) = self.kernel.take_untried() {
            let place = self.kernel.line_key(queue);
            self.kernel.block(queue, place);
            came.insert(queue);
        }
        let all: Vec<MachineId> = (0..self.kernel.machines().len() as u32).map(MachineId).collect();
        let freed = self.kernel.freed().to_vec();
        let mut pairs = Pairs::default();
        let blocked = self.kernel.blocked();
        let mut gangs: BTreeSet<QueueId> = blocked.iter().filter(|queue| self.has_gang(**queue)).copied().collect();
        for queue in blocked {
            let best = self.best_on(queue, if came.contains(&queue) { &all } else { &freed });
            pairs.set(queue, best);
        }
        while let Some((place, machine, queue)) = pairs.order.first().copied() {
            pairs.set(queue, None);
            let stood = self.kernel.blocked_at(queue);
            if !self.kernel.admit_head(queue, place)? {
                self.kernel.unblock(queue, &stood);
                continue;
            }
            let head = self.kernel.waiting_head(queue);
            let user = self.kernel.set(head).user;
            // The plan of a gang is recomputed, since launches may have changed the machines.
            if self.kernel.set(head).is_gang() && self.room(head).is_none() {
                continue;
            }
            let gang = self.kernel.set(head).is_gang();
            let machines = if gang { self.round.plan.iter().map(|(at, _)| *at).collect() } else { vec![machine] };
            self.kernel.unblock(queue, &stood);
            self.kernel.record_turn(queue, place, Turn::Launched(Some(machine)))?;
            self.launch(queue, machine);
            gangs.remove(&queue);
            if self.kernel.head(queue).is_some() {
                let place = self.kernel.line_key(queue);
                self.kernel.block(queue, place);
                came.insert(queue);
                if self.has_gang(queue) {
                    gangs.insert(queue);
                }
                let best = self.best_on(queue, &all);
                pairs.set(queue, best);
            } else {
                self.kernel.set_queue_state(queue, QueueState::Idle);
            }
            let mut moved = pairs.on(&machines);
            // Any launch may change the plan of a gang.
            moved.extend(&gangs);
            // The user's allocation has grown, which changes the ranks of all of its queues.
            moved.extend(self.kernel.queues().queues_of(user));
            moved.retain(|other| *other != queue && pairs.of.contains_key(other));
            moved.sort_unstable();
            moved.dedup();
            for other in moved {
                let best = self.best_on(other, if came.contains(&other) { &all } else { &freed });
                pairs.set(other, best);
            }
        }
        // Queues that were untried before this round and are blocked now fit on no machine.
        came.retain(|queue| self.kernel.queue_state(*queue) == QueueState::Blocked);
        let mut left: Vec<(LineKey, QueueId)> =
            came.iter().map(|queue| (self.kernel.line_key(*queue), *queue)).collect();
        left.sort_unstable();
        left.into_iter().try_for_each(|(place, queue)| self.kernel.record_turn(queue, place, Turn::Blocked(None)))
    }

    fn has_gang(&self, queue: QueueId) -> bool {
        self.kernel.set(self.kernel.waiting_head(queue)).is_gang()
    }

    /// Returns the best rank of a queue's next task on these machines, and the machine; ties go to the lower machine number.
    fn best_on(&mut self, queue: QueueId, machines: &[MachineId]) -> Option<(LineKey, MachineId)> {
        let head = self.kernel.waiting_head(queue);
        let usual = self.kernel.line_key(queue);
        // The placement rule places a gang; its rank is that on its first machine.
        let gang = if self.kernel.set(head).is_gang() { Some(self.room(head)?) } else { None };
        let kernel = &*self.kernel;
        let (demand, footprint) = kernel.needs(head);
        let set = kernel.set(head);
        let ask = Ask { footprint, demand, tasks: if set.is_gang() { set.waiting } else { 1 } };
        let (view, scope, dims) = (kernel.view(head), kernel.scope(head), kernel.books().dims());
        let there = gang.as_slice();
        let machines = if gang.is_some() { there } else { machines };
        let fits = |machine: &&MachineId| {
            gang.is_some() || kernel.machines().fits(**machine, footprint) && kernel.scopes().contains(scope, **machine)
        };
        let place = |machine: &MachineId| {
            let (capacity, free) = (kernel.machines().capacity(*machine), kernel.machines().free(*machine));
            let spot = Spot { capacity: capacity.slice(dims), free: free.slice(dims) };
            (kernel.policy().rank_on(&view, &ask, &spot, kernel.books()), *machine)
        };
        let (rank, machine) = machines.iter().filter(fits).map(place).min()?;
        Some((LineKey { rank, ..usual }, machine))
    }
}
