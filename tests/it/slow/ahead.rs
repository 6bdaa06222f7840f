//! The slow twin's rounds with backfilling.

use super::{OnBlocked, Running, Simulation, need};
use crate::slow_backfill::{Held, earliest, expected_end};

impl Simulation<'_> {
    /// Runs a round that visits every waiting row in the order of the policy. A task that does not start may get a reservation.
    pub(super) fn backfill(&mut self, now: u64) {
        let estimate = |row: usize| self.rows[row].estimate.expect("backfilling needs estimates");
        let box_of = |task: &Running| {
            let from = self.outcomes[task.outcome].start.expect("it runs");
            Held {
                from,
                until: expected_end(from, estimate(task.row), now),
                need: need(&self.rows[task.row], self.config),
            }
        };
        let mut held: Vec<Held> = self.running.iter().map(box_of).collect();
        let (mut asked, mut reserved) = (Vec::new(), false);
        loop {
            let mut line: Vec<usize> = (0..self.id.len()).filter_map(|user| self.next(user, &asked)).collect();
            line.sort_by(|&a, &b| self.compare(a, b));
            let Some(&row) = line.first() else { return };
            let need: Vec<u64> =
                need(&self.rows[row], self.config).iter().map(|amount| amount * self.together(row)).collect();
            let first = earliest(&self.capacity, &held, &need, self.rows[row].estimate.unwrap(), now);
            if first.from == now {
                held.push(first);
                (0..self.together(row)).for_each(|_| self.launch(now, row, 0));
                continue;
            }
            asked.push(row);
            if self.config.on_blocked == OnBlocked::Conservative {
                for _ in 0..(self.rows[row].tasks - self.progress[row].launched) / self.together(row) {
                    held.push(earliest(&self.capacity, &held, &need, self.rows[row].estimate.unwrap(), now));
                }
            } else if !reserved {
                reserved = true;
                held.push(first);
            }
        }
    }
}
