//! Gangs that hoard in the slow twin of placement: they hold what room they find until it is enough or they give up.

use crate::machines_slow::{Simulation, State};
use crate::machines_world::Place;
use crate::slow::need;

/// What a gang holds.
#[derive(Clone, Debug)]
pub struct Hoard {
    set: usize,
    place: Place,
    /// A machine for each task that has room, in the order in which it was found.
    seats: Vec<usize>,
    pub gives_up: u64,
}

impl Simulation<'_> {
    /// One scheduling round, and another one if gangs gave up: in the first they stand aside.
    pub fn round(&mut self, now: u64) {
        let resting = self.give_up(now);
        self.launch_all(now, &resting);
        if !resting.is_empty() {
            self.launch_all(now, &[]);
        }
    }

    /// Gives back what is held in vain, and what is held for too long; of the latter, whose it is.
    fn give_up(&mut self, now: u64) -> Vec<(usize, Place)> {
        let heads = self.heads();
        let of_use = |hoard: &Hoard| {
            let head = heads.iter().find(|&&head| self.is(head, hoard.set, hoard.place));
            head.is_some_and(|&head| hoard.seats.iter().all(|&machine| self.will_do(head, machine)))
        };
        let kept: Vec<Hoard> = self.hoards.iter().filter(|hoard| of_use(hoard)).cloned().collect();
        let (over, kept): (Vec<Hoard>, Vec<Hoard>) = kept.into_iter().partition(|hoard| hoard.gives_up <= now);
        self.hoards = kept;
        over.into_iter().map(|hoard| (hoard.set, hoard.place)).collect()
    }

    /// Whether a task is of this set and waits for this place.
    fn is(&self, task: usize, set: usize, place: Place) -> bool {
        let task = &self.tasks[task];
        task.set == set && task.place == place && matches!(task.state, State::Waiting(_))
    }

    /// Whether a queue's next task stands aside.
    pub fn rests(&self, head: usize, resting: &[(usize, Place)]) -> bool {
        resting.iter().any(|&(set, place)| self.is(head, set, place))
    }

    /// Room on a machine that no task has but gangs hold.
    pub fn hoarded(&self, machine: usize) -> Vec<Vec<u64>> {
        let seats = |hoard: &Hoard| hoard.seats.iter().filter(|&&seat| seat == machine).count();
        let each = |hoard: &Hoard| need(&self.rows[self.sets[hoard.set]], &self.world.config);
        self.hoards.iter().flat_map(|hoard| vec![each(hoard); seats(hoard)]).collect()
    }

    /// What is held on a machine that takes nothing new any more is given back, with all that its gang holds.
    pub fn scatter_from(&mut self, machine: usize) {
        self.hoards.retain(|hoard| !hoard.seats.contains(&machine));
    }

    /// Holds what room there is for a gang; where its tasks start once it is enough.
    pub fn gather(&mut self, now: u64, head: usize, patience: u64) -> Option<Vec<(usize, usize)>> {
        let (set, place) = (self.tasks[head].set, self.tasks[head].place);
        let tasks = self.together(head);
        let own = |hoard: &Hoard| hoard.set == set && hoard.place == place;
        if !self.hoards.iter().any(own) {
            self.hoards.push(Hoard { set, place, seats: Vec::new(), gives_up: now + patience });
        }
        let at = self.hoards.iter().position(own).expect("it is there now");
        while self.hoards[at].seats.len() < tasks.len()
            && let Some(machines) = self.seats_for(head, 1)
        {
            self.hoards[at].seats.extend(machines);
        }
        let found = self.hoards[at].seats.len();
        if found > 0 && found < tasks.len() {
            return None;
        }
        let hoard = self.hoards.remove(at);
        (found > 0).then(|| tasks.into_iter().zip(hoard.seats).collect())
    }
}
