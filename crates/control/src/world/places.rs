//! Granted units on each machine, with their tasks and the progress of these tasks.
//!
//! FuxiMaster's tables contain the number of units of a role on each machine, and the Tubo has the number of running workers; neither
//! identifies tasks. This module assigns the tasks of a job to its units in order. [`ControlOrder`]s keep the books of the engine
//! consistent: for each role and machine, the books contain the number of units that FuxiMaster has allocated.

use std::collections::HashMap;

use super::RoleState;
use crate::setup::RoleId;
use plimsoll_base::units::{MachineId, Span, Time};
use plimsoll_sim::backend::{Batch, ControlOrder};
use plimsoll_sim::record::Fate;

/// The progress of the tasks of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnitProgress {
    /// No worker runs yet.
    Granted,
    /// A worker runs the tasks.
    Running,
    /// A worker has completed the tasks, and the application master has not received the completion yet.
    Done,
    /// The tasks are complete, and the unit has not been released yet.
    Over,
}

/// Equal tasks in units of one role on one machine.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unit {
    batch: Batch,
    count: u32,
    stage: UnitProgress,
    /// For running and completed tasks, when their workers began.
    since: Time,
}

/// The units of a role on a machine.
#[derive(Clone, Debug, Default)]
pub(super) struct UnitPlace {
    /// The units with tasks, in the order of their grants.
    units: Vec<Unit>,
    /// Workers with completed tasks.
    idle: u32,
    /// Workers without a task, each with the instant at which its work began. FuxiMaster has released their units, or has no record of
    /// them.
    stray: Vec<(u32, Option<Time>)>,
    /// Units without a task.
    spare: u32,
}

impl UnitPlace {
    fn total(&self) -> u32 {
        self.units.iter().map(|unit| unit.count).sum::<u32>() + self.spare
    }

    fn is_empty(&self) -> bool {
        self.units.is_empty() && self.stray.is_empty() && self.idle + self.spare == 0
    }

    fn strays(&self) -> u32 {
        self.stray.iter().map(|(count, _)| count).sum()
    }

    /// Removes up to `count` workers without a task. Returns how many of them had begun to work, and their total working time in
    /// microseconds.
    fn take_strays(&mut self, mut count: u32, now: Time) -> (u32, u64) {
        let (mut at_work, mut lost) = (0, 0);
        while count > 0
            && let Some((there, since)) = self.stray.pop()
        {
            let taken = there.min(count);
            count -= taken;
            if let Some(since) = since {
                at_work += taken;
                lost += now.since(since).0 * u64::from(taken);
            }
            if there > taken {
                self.stray.push((there - taken, since));
            }
        }
        (at_work, lost)
    }
}

/// All places, and the orders that keep the engine's books consistent with them.
#[derive(Debug, Default)]
pub(super) struct Places {
    all: HashMap<(MachineId, RoleId), UnitPlace>,
    /// Units for which the engine has to find tasks.
    adopting: Vec<(MachineId, RoleId, u32)>,
    /// Places with spare units, by role.
    spares: HashMap<RoleId, Vec<MachineId>>,
    orders: Vec<ControlOrder>,
    now: Time,
}

impl Places {
    /// Moves up to `count` tasks from one stage to the next, or removes them. The order is that of their units, or the reverse for
    /// `last_first`. Returns the number of tasks moved.
    fn advance(
        &mut self,
        at: (MachineId, RoleId),
        from: UnitProgress,
        to: Option<UnitProgress>,
        count: u32,
        last_first: bool,
        order: impl Fn(Batch, u32) -> ControlOrder,
    ) -> u32 {
        let Some(place) = self.all.get_mut(&at) else { return 0 };
        let mut left = count;
        while left > 0 {
            let found = match last_first {
                true => place.units.iter().rposition(|unit| unit.stage == from),
                false => place.units.iter().position(|unit| unit.stage == from),
            };
            let Some(found) = found else { break };
            let unit = place.units[found];
            if unit.count > left {
                // Only a part of the batch moves: the batch is split.
                let keep = if last_first { unit.count - left } else { left };
                self.orders.push(ControlOrder::Split { batch: unit.batch, count: keep });
                let rest = Batch { first: unit.batch.first + keep, ..unit.batch };
                place.units[found].count = keep;
                place.units.insert(found + 1, Unit { batch: rest, count: unit.count - keep, ..unit });
                continue;
            }
            left -= unit.count;
            self.orders.push(order(unit.batch, unit.count));
            match to {
                Some(stage) => (place.units[found].stage, place.units[found].since) = (stage, self.now),
                None => drop(place.units.remove(found)),
            }
        }
        if place.is_empty() {
            self.all.remove(&at);
        }
        count - left
    }

    /// Records that the engine has assigned tasks to units. Returns `false` for a decision of the scheduler, `true` for the answer to an
    /// order.
    pub fn granted(&mut self, at: (MachineId, RoleId), batch: Batch, count: u32) -> bool {
        let place = self.all.entry(at).or_default();
        place.units.push(Unit { batch, count, stage: UnitProgress::Granted, since: self.now });
        let expected = self.adopting.iter_mut().find(|(machine, role, left)| (*machine, *role) == at && *left >= count);
        let Some((.., left)) = expected else { return false };
        *left -= count;
        // Workers that run on the machine without a task continue with these tasks.
        let busy = place.strays().min(count);
        let _ = place.take_strays(busy, self.now);
        self.advance(at, UnitProgress::Granted, Some(UnitProgress::Running), busy, true, |batch, _| {
            ControlOrder::Start(batch)
        });
        true
    }

    /// Returns whether the engine has to find tasks before the next event.
    pub fn wait_for_answer(&self) -> bool {
        !self.adopting.is_empty()
    }

    /// Records that the engine has assigned all available tasks: the remaining units are spare.
    pub fn adopted(&mut self, now: Time) {
        self.now = now;
        for (machine, role, left) in self.adopting.drain(..) {
            if left > 0 {
                self.all.entry((machine, role)).or_default().spare += left;
                let places = self.spares.entry(role).or_default();
                if !places.contains(&machine) {
                    places.push(machine);
                }
            }
        }
    }

    /// Records that workers have started.
    pub fn started(&mut self, at: (MachineId, RoleId), line: Option<RoleState>, count: u32) {
        let begun = self.advance(at, UnitProgress::Granted, Some(UnitProgress::Running), count, false, |batch, _| {
            ControlOrder::Start(batch)
        });
        let place = self.all.entry(at).or_default();
        if count > begun {
            place.stray.push((count - begun, None));
        }
        // A unit of completed tasks is reused.
        let free = self.free_over(at, count - begun);
        if let Some(line) = line {
            self.adopt(at, line, free);
        }
    }

    /// Returns the number of tasks that wait for a worker on a machine.
    pub fn waiting(&self, at: (MachineId, RoleId)) -> u32 {
        let units = self.all.get(&at).into_iter().flat_map(|place| &place.units);
        { units }.filter(|unit| unit.stage == UnitProgress::Granted).map(|unit| unit.count).sum()
    }

    /// Releases up to `most` units of completed tasks without workers, for reuse. Returns the number of units released.
    pub fn free_over(&mut self, at: (MachineId, RoleId), most: u32) -> u32 {
        let Some(place) = self.all.get(&at) else { return 0 };
        let over =
            place.units.iter().filter(|unit| unit.stage == UnitProgress::Over).map(|unit| unit.count).sum::<u32>();
        let again = most.min(over.saturating_sub(place.idle));
        self.advance(at, UnitProgress::Over, None, again, false, |batch, _| ControlOrder::Free(batch))
    }

    /// Records that workers have stopped: first idle workers, then those without a task, then the youngest. Returns the number of workers
    /// that stopped during a task, and their total working time.
    pub fn stopped(&mut self, at: (MachineId, RoleId), count: u32) -> (u32, Span) {
        let Some(place) = self.all.get_mut(&at) else { return (0, Span::ZERO) };
        let mut left = count;
        let idle = place.idle.min(left);
        place.idle -= idle;
        left -= idle;
        let stray = place.strays().min(left);
        let (strays_at_work, lost_by_strays) = place.take_strays(stray, self.now);
        left -= stray;
        left -= self.advance(at, UnitProgress::Done, Some(UnitProgress::Granted), left, true, |batch, _| {
            ControlOrder::Halt(batch)
        });
        let work = |place: Option<&UnitPlace>, now: Time| -> u64 {
            let units = place.into_iter().flat_map(|place| &place.units);
            let at_work = { units }.filter(|unit| unit.stage == UnitProgress::Running);
            at_work.map(|unit| now.since(unit.since).0 * u64::from(unit.count)).sum()
        };
        let before = work(self.all.get(&at), self.now);
        let halted = self.advance(at, UnitProgress::Running, Some(UnitProgress::Granted), left, true, |batch, _| {
            ControlOrder::Halt(batch)
        });
        let lost = before - work(self.all.get(&at), self.now);
        if self.all.get(&at).is_some_and(UnitPlace::is_empty) {
            self.all.remove(&at);
        }
        (halted + strays_at_work, Span(lost + lost_by_strays))
    }

    /// Records that the workers of a batch have completed its tasks. Returns the number of tasks.
    pub fn done(&mut self, at: (MachineId, RoleId), batch: Batch) -> u32 {
        let units = self.all.get_mut(&at).into_iter().flat_map(|place| &mut place.units);
        let unit = { units }.find(|unit| unit.batch == batch && unit.stage == UnitProgress::Running);
        let unit = unit.expect("a completed unit was running");
        unit.stage = UnitProgress::Done;
        unit.count
    }

    /// Records that the application master has received the completion of up to `count` tasks. Returns the number of tasks that are
    /// complete.
    pub fn finished(&mut self, at: (MachineId, RoleId), count: u32) -> u32 {
        let over = self.advance(at, UnitProgress::Done, Some(UnitProgress::Over), count, false, |batch, _| {
            ControlOrder::Over(batch)
        });
        if over > 0 {
            self.all.entry(at).or_default().idle += over;
        }
        over
    }

    /// Records that the scheduler has preempted `count` tasks, the last ones of their batch.
    pub fn taken(&mut self, at: (MachineId, RoleId), batch: Batch, count: u32) {
        let Some(place) = self.all.get_mut(&at) else { return };
        let holds = |unit: &&mut Unit| {
            unit.batch.row == batch.row && (unit.batch.first..unit.batch.first + unit.count).contains(&batch.first)
        };
        let Some(unit) = place.units.iter_mut().find(holds) else { return };
        unit.count -= count;
        let worked = matches!(unit.stage, UnitProgress::Running | UnitProgress::Done).then_some(unit.since);
        place.units.retain(|unit| unit.count > 0);
        place.stray.extend(worked.map(|since| (count, Some(since))));
        if place.is_empty() {
            self.all.remove(&at);
        }
    }

    /// Releases the units of a role on a machine beyond the `target` that FuxiMaster has allocated. Returns whether any task waits again.
    pub fn give_up(&mut self, at: (MachineId, RoleId), line: RoleState, target: u32, fate: Fate) -> bool {
        let mut excess = self.total(at).saturating_sub(target);
        if excess > 0 {
            excess -= self.advance(at, UnitProgress::Over, None, excess, false, |batch, _| ControlOrder::Free(batch));
            excess -= self.vacate(at, line, excess);
            let stop = move |batch, count| ControlOrder::Stop { batch, count, fate };
            let mut stopped = self.advance(at, UnitProgress::Granted, None, excess, true, stop);
            for stage in [UnitProgress::Running, UnitProgress::Done] {
                let units = self.all.get(&at).map(|place| place.units.clone()).unwrap_or_default();
                let lost = self.advance(at, stage, None, excess - stopped, true, stop);
                let mut left = lost;
                for unit in units.iter().rev().filter(|unit| unit.stage == stage) {
                    let count = unit.count.min(left);
                    left -= count;
                    if count > 0 {
                        self.all.entry(at).or_default().stray.push((count, Some(unit.since)));
                    }
                }
                stopped += lost;
            }
            return stopped > 0;
        }
        false
    }

    /// Requests tasks for units of a role on a machine up to the `target` that FuxiMaster has allocated. Must be called after all releases,
    /// since released tasks wait again.
    pub fn fill(&mut self, at: (MachineId, RoleId), line: RoleState, target: u32) {
        let missing = target.saturating_sub(self.total(at));
        self.adopt(at, line, missing);
    }

    /// Returns the number of units of a role on a machine, including those for which tasks are being found.
    pub fn total(&self, at: (MachineId, RoleId)) -> u32 {
        let adopting = self.adopting.iter().filter(|(machine, role, _)| (*machine, *role) == at);
        self.all.get(&at).map_or(0, UnitPlace::total) + adopting.map(|(.., count)| count).sum::<u32>()
    }

    /// Releases the units of completed tasks after FuxiMaster has rebuilt its tables: they are no longer reserved for these tasks.
    pub fn forget_over(&mut self, at: (MachineId, RoleId)) {
        self.advance(at, UnitProgress::Over, None, u32::MAX, false, |batch, _| ControlOrder::Free(batch));
    }

    /// Returns the number of units of a role without a task.
    pub fn spare(&self, role: RoleId) -> u32 {
        let places = self.spares.get(&role).into_iter().flatten();
        places.filter_map(|machine| self.all.get(&(*machine, role))).map(|place| place.spare).sum()
    }

    /// Releases up to `count` spare units. Returns the number of units released.
    fn vacate(&mut self, (machine, role): (MachineId, RoleId), line: RoleState, count: u32) -> u32 {
        let Some(place) = self.all.get_mut(&(machine, role)) else { return 0 };
        let count = place.spare.min(count);
        if count > 0 {
            place.spare -= count;
            self.orders.push(ControlOrder::Vacate { row: line.row, machine, count });
            if place.spare == 0 {
                self.spares.entry(role).or_default().retain(|other| *other != machine);
            }
        }
        count
    }

    /// Requests tasks for all spare units of a role, after tasks of the role wait again.
    pub fn reuse(&mut self, role: RoleId, line: RoleState) {
        for machine in self.spares.remove(&role).unwrap_or_default() {
            let at = (machine, role);
            let count = self.vacate(at, line, u32::MAX);
            self.adopt(at, line, count);
        }
    }

    fn adopt(&mut self, (machine, role): (MachineId, RoleId), line: RoleState, count: u32) {
        if count > 0 {
            self.adopting.push((machine, role, count));
            let RoleState { row, unit, .. } = line;
            self.orders.push(ControlOrder::Adopt { row, machine, count, unit });
        }
    }

    /// Moves the pending orders to `into`.
    pub fn orders(&mut self, into: &mut Vec<ControlOrder>) {
        into.append(&mut self.orders);
    }

    /// Appends an order.
    pub fn order(&mut self, order: ControlOrder) {
        self.orders.push(order);
    }

    /// Returns the number of units, and the number of workers, whether they have a task, are idle or have no task. For checks.
    pub fn counts(&self, at: (MachineId, RoleId)) -> (u32, u32) {
        let Some(place) = self.all.get(&at) else { return (0, 0) };
        let with = place.units.iter().filter(|unit| matches!(unit.stage, UnitProgress::Running | UnitProgress::Done));
        (place.total(), with.map(|unit| unit.count).sum::<u32>() + place.idle + place.strays())
    }

    /// Returns all places that are not empty, in order.
    pub fn all(&self) -> Vec<(MachineId, RoleId)> {
        let mut all: Vec<(MachineId, RoleId)> = self.all.keys().copied().collect();
        all.sort_unstable();
        all
    }
}
