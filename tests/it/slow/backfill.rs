//! Rounds with backfilling. Usage and reservations are a list of boxes; a box has an interval and amounts. Every query scans all boxes.

use super::OnBlocked;
use super::simulation::{Simulation, Task};

/// A box: amounts that are used or reserved from one instant until just before another.
struct Held {
    from: u64,
    until: u64,
    need: Vec<u64>,
}

/// Returns the expected end of a task: later than its start, and later than `now` if its estimate is over.
fn expected_end(start: u64, estimate: u64, now: u64) -> u64 {
    (start + estimate).max(start + 1).max(now + 1)
}

/// Returns whether there is room for another box.
fn fits(capacity: &[u64], held: &[Held], wanted: &Held) -> bool {
    // The total usage grows only at the beginnings of boxes.
    let begins = held.iter().map(|other| other.from).filter(|from| (wanted.from..wanted.until).contains(from));
    begins.chain([wanted.from]).all(|instant| {
        let there = |other: &&Held| other.from <= instant && instant < other.until;
        (0..capacity.len()).all(|r| {
            let used: u64 = held.iter().filter(there).map(|other| other.need[r]).sum();
            used + wanted.need[r] <= capacity[r]
        })
    })
}

/// Returns the earliest box of a task from now on.
fn earliest(capacity: &[u64], held: &[Held], need: &[u64], estimate: u64, now: u64) -> Held {
    let mut instants: Vec<u64> = held.iter().map(|other| other.until).filter(|until| *until > now).collect();
    instants.push(now);
    instants.sort();
    let at = |from: u64| Held { from, until: expected_end(from, estimate, now), need: need.to_vec() };
    let found = instants.into_iter().map(at).find(|wanted| fits(capacity, held, wanted));
    found.expect("a task that fits an empty pool fits when all boxes have ended")
}

impl Simulation<'_> {
    /// Runs a round that visits every waiting set in the order of the policy. A task that does not start may get a reservation.
    pub fn backfill(&mut self, now: u64) {
        let estimate = |row: usize| self.rows[row].estimate.expect("backfilling needs estimates");
        let box_of = |task: &Task| {
            let from = task.run()?.start;
            let need = self.world.need(&self.rows[task.row]).to_vec();
            Some(Held { from, until: expected_end(from, estimate(task.row), now), need })
        };
        let mut held: Vec<Held> = self.tasks.iter().filter_map(box_of).collect();
        let (mut visited, mut reserved) = (Vec::new(), false);
        while let Some(head) = self.line(&visited).first().copied() {
            let Task { row, set, .. } = self.tasks[head];
            let together = self.together(head);
            let each = self.world.need(&self.rows[row]);
            let need: Vec<u64> = each.iter().map(|amount| amount * together.len() as u64).collect();
            if !self.admitted(head, together.len()) {
                visited.push(set);
                continue;
            }
            let earliest = |held: &[Held]| earliest(&self.capacity, held, &need, self.rows[row].estimate.unwrap(), now);
            let first = earliest(&held);
            if first.from == now {
                held.push(first);
                together.into_iter().for_each(|task| self.launch(now, task, 0));
                continue;
            }
            visited.push(set);
            if self.world.on_blocked == OnBlocked::Conservative {
                for _ in 0..self.waiting(set) / together.len() {
                    held.push(earliest(&held));
                }
            } else if !reserved {
                reserved = true;
                held.push(first);
            }
        }
    }
}
