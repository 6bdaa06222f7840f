//! Gangs that hoard: a gang holds the room that it finds until the room is enough or the gang gives up.

use super::Location;
use super::simulation::Simulation;
use super::world::times;

/// The room that a gang holds.
#[derive(Clone, Debug)]
pub struct Hoard {
    set: usize,
    place: Location,
    /// One machine for each task that has room, in the order of the search.
    seats: Vec<usize>,
    pub gives_up: u64,
}

/// A gang that gave up, and the machines that were freed since the last round, which may have new room for the gang. When the gang gives
/// up, the list is empty.
#[derive(Clone, Debug)]
pub struct Sleeper {
    set: usize,
    place: Location,
    news: Vec<usize>,
}

impl Simulation<'_> {
    /// Before a round: drops hoards that are no longer useful, and puts gangs to sleep that have hoarded for too long.
    pub fn give_up(&mut self, now: u64) {
        let freed = std::mem::take(&mut self.freed);
        self.asleep.iter_mut().for_each(|sleeper| sleeper.news.clone_from(&freed));
        let heads = self.heads();
        let of_use = |hoard: &Hoard| {
            let head = heads.iter().find(|&&head| self.is(head, hoard.set, hoard.place));
            head.is_some_and(|&head| hoard.seats.iter().all(|&machine| self.will_do(head, machine)))
        };
        let kept: Vec<Hoard> = self.hoards.iter().filter(|hoard| of_use(hoard)).cloned().collect();
        let (over, kept): (Vec<Hoard>, Vec<Hoard>) = kept.into_iter().partition(|hoard| hoard.gives_up <= now);
        self.hoards = kept;
        let sleeper = |hoard: Hoard| Sleeper { set: hoard.set, place: hoard.place, news: Vec::new() };
        self.asleep.extend(over.into_iter().map(sleeper));
    }

    /// Returns whether a task belongs to this set and waits at this place.
    fn is(&self, task: usize, set: usize, place: Location) -> bool {
        let task = &self.tasks[task];
        task.set == set && task.place == place && task.waits()
    }

    /// Returns the room on a machine that gangs hold and no task uses, one entry per seat.
    pub fn hoarded(&self, machine: usize) -> Vec<Vec<u64>> {
        let seats = |hoard: &Hoard| hoard.seats.iter().filter(|&&seat| seat == machine).count();
        let each = |hoard: &Hoard| self.need_of_set(hoard.set);
        self.hoards.iter().flat_map(|hoard| vec![each(hoard); seats(hoard)]).collect()
    }

    /// Drops every hoard with a seat on a machine that no longer accepts tasks.
    pub fn scatter_from(&mut self, machine: usize) {
        self.hoards.retain(|hoard| !hoard.seats.contains(&machine));
    }

    /// Reserves the available room for a gang of `tasks` tasks. Returns the machines once there is enough room. Until it wakes, a gang that
    /// gave up reserves no room, and starts only if there is room for all its tasks at once.
    pub fn gather(&mut self, now: u64, head: usize, tasks: usize, patience: u64) -> Option<Vec<usize>> {
        let (set, place) = (self.tasks[head].set, self.tasks[head].place);
        if let Some(at) = self.asleep.iter().position(|sleeper| sleeper.set == set && sleeper.place == place) {
            if !self.asleep[at].news.iter().any(|&machine| self.has_room(head, machine)) {
                return self.seats_for(head, tasks);
            }
            self.asleep.remove(at);
        }
        let own = |hoard: &Hoard| hoard.set == set && hoard.place == place;
        if !self.hoards.iter().any(own) {
            self.hoards.push(Hoard { set, place, seats: Vec::new(), gives_up: now + patience });
        }
        let at = self.hoards.iter().position(own).expect("it is there now");
        while self.hoards[at].seats.len() < tasks
            && let Some(machines) = self.seats_for(head, 1)
        {
            self.hoards[at].seats.extend(machines);
        }
        let found = self.hoards[at].seats.len();
        if found > 0 && found < tasks {
            return None;
        }
        let hoard = self.hoards.remove(at);
        (found > 0).then_some(hoard.seats)
    }

    fn has_room(&self, head: usize, machine: usize) -> bool {
        let need = self.world.need(&self.rows[self.tasks[head].row]);
        self.will_do(head, machine) && times(need, &self.unreserved(machine)) > 0
    }
}
