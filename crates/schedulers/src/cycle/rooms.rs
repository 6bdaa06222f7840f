//! The room of machines within a cycle: the amounts free at its beginning, plus those of its victims, minus those of its launches. Only
//! machines that have changed are stored.

use std::cell::Cell;

use super::session::{Runs, Session};
use plimsoll_base::units::{MachineId, Resources};
use plimsoll_sim::cluster::PlannedRoom;
use plimsoll_sim::policy::RunningView;

/// The machines of tasks that start together, and the number of tasks on each.
pub type Placements = Vec<(MachineId, u32)>;

/// Victims, and the machines of the tasks that start in their room.
pub struct Solution {
    /// The victims: single tasks and gangs.
    pub victims: Vec<Runs>,
    /// The machines of the tasks that start.
    pub seats: Placements,
}

/// The free amounts of machines at some point of a cycle. A copy is a trial placement without effect.
#[derive(Clone)]
pub struct Rooms<'a> {
    running: &'a dyn RunningView,
    /// The machines with other free amounts than at the beginning of the cycle, sorted by machine.
    changed: Vec<PlannedRoom>,
    /// The machine found last, and the amounts for which it was found: under first-fit, no machine before it has room for as much.
    last: Cell<Option<(Resources, MachineId)>>,
}

impl<'a> Rooms<'a> {
    pub(super) fn new(running: &'a dyn RunningView) -> Rooms<'a> {
        Rooms { running, changed: Vec::new(), last: Cell::default() }
    }

    /// Returns the amounts that a machine has free.
    pub fn on(&self, machine: MachineId) -> Resources {
        match self.changed.binary_search_by_key(&machine, |room| room.machine) {
            Ok(at) => self.changed[at].free,
            Err(_) => self.running.free(machine),
        }
    }

    /// Returns the machine that the placement rule chooses for a task.
    pub fn find(&self, each: &Resources) -> Option<MachineId> {
        if let Some((least, machine)) = self.last.get()
            && self.running.is_first_fit()
            && least.fits(each)
            && each.fits(&self.on(machine))
        {
            return Some(machine);
        }
        let found = self.running.find(each, &self.changed);
        self.last.set(found.map(|machine| (*each, machine)));
        found
    }

    /// Reserves the room of tasks on a machine; reserves nothing and returns `false` if there is too little.
    pub fn reserve(&mut self, machine: MachineId, each: &Resources, tasks: u32) -> bool {
        let amount = each.times(tasks);
        let room = self.change(machine);
        let fits = amount.fits(&room.free);
        if fits {
            room.free -= amount;
            room.tasks += i64::from(tasks);
        }
        fits
    }

    /// Releases the room of tasks on a machine.
    pub fn give(&mut self, machine: MachineId, each: &Resources, tasks: u32) {
        let amount = each.times(tasks);
        let room = self.change(machine);
        room.free += amount;
        room.tasks -= i64::from(tasks);
        self.last.set(None);
    }

    fn change(&mut self, machine: MachineId) -> &mut PlannedRoom {
        let at = self.changed.binary_search_by_key(&machine, |room| room.machine).unwrap_or_else(|at| {
            self.changed.insert(at, PlannedRoom { machine, free: self.running.free(machine), tasks: 0 });
            at
        });
        &mut self.changed[at]
    }

    /// Releases the room of one running task, or of a gang on all its machines.
    pub fn release<S>(&mut self, session: &Session<S>, unit: &Runs) {
        for (machine, tasks) in session.seats_of(unit) {
            self.give(machine, &unit.each, tasks);
        }
    }

    /// Reserves the room of a released task, or gang, on its machines again; reserves nothing and returns `false` if the room is used.
    pub fn restore<S>(&mut self, session: &Session<S>, unit: &Runs) -> bool {
        let seats = session.seats_of(unit);
        for (at, (machine, tasks)) in seats.iter().enumerate() {
            if !self.reserve(*machine, &unit.each, *tasks) {
                seats[..at].iter().for_each(|(machine, tasks)| self.give(*machine, &unit.each, *tasks));
                return false;
            }
        }
        true
    }

    /// Places a task by the placement rule of the run; returns its machine.
    pub fn place(&mut self, each: &Resources) -> Option<MachineId> {
        let machine = self.find(each)?;
        self.reserve(machine, each, 1).then_some(machine)
    }

    /// Places tasks one by one until one has no room; returns their machines.
    pub fn place_up_to(&mut self, each: &Resources, most: u32) -> Placements {
        let mut seats = Placements::new();
        (0..most).map_while(|_| self.place(each)).for_each(|machine| place_task(&mut seats, machine));
        seats
    }

    /// Places tasks one by one. For a task without room, `make_room` releases the room of victims and returns a machine with room for the
    /// task. Returns the machines if all tasks have one.
    pub fn place_all(
        &mut self,
        each: &Resources,
        tasks: u32,
        mut make_room: impl FnMut(&mut Rooms<'a>) -> Option<MachineId>,
    ) -> Option<Placements> {
        let mut seats = Placements::new();
        for _ in 0..tasks {
            let machine = match self.place(each) {
                Some(machine) => machine,
                None => {
                    let machine = make_room(self)?;
                    self.reserve(machine, each, 1).then_some(machine)?
                }
            };
            place_task(&mut seats, machine);
        }
        Some(seats)
    }
}

/// Adds a task on a machine to the placements.
pub fn place_task(seats: &mut Placements, machine: MachineId) {
    match seats.last_mut() {
        Some((last, count)) if *last == machine => *count += 1,
        _ => seats.push((machine, 1)),
    }
}
