//! The work of workers: how much is wanted of each role, how much of it is done, and how much is thrown away.
//!
//! A worker of an offline role does one instance after the other; when it stops, what it has done of the present one
//! is lost. Of equal workers on a machine the youngest stops first. Time counts between the opening and the close of
//! the account, in worker-microseconds.

use std::collections::HashMap;

use crate::message::{Note, Units};
use crate::setup::{RoleId, Setup};
use plimsoll_base::units::{MachineId, Span, Time};

/// The account of a role.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Achieved {
    /// The work that was wanted.
    pub wanted: u64,
    /// Of that, what nobody did.
    pub unserved: u64,
    /// The work beyond that: of a worker out of sight beside its replacement.
    pub doubled: u64,
    /// The work on instances that were not finished, because their worker stopped.
    pub discarded: u64,
    /// Workers that stopped.
    pub stopped: u64,
}

impl Achieved {
    /// Both together.
    pub fn plus(self, other: Achieved) -> Achieved {
        Achieved {
            wanted: self.wanted + other.wanted,
            unserved: self.unserved + other.unserved,
            doubled: self.doubled + other.doubled,
            discarded: self.discarded + other.discarded,
            stopped: self.stopped + other.stopped,
        }
    }
}

/// The accounts of all roles.
#[derive(Clone, Debug)]
pub struct Work {
    /// By role.
    pub roles: Vec<Achieved>,
    instance: Span,
    opens: Time,
    closes: Time,
    wanted: Vec<u32>,
    running: Vec<u32>,
    counted: Vec<Time>,
    /// When the workers of a role on a machine started, oldest first.
    since: HashMap<(MachineId, RoleId), Vec<Time>>,
}

impl Work {
    /// An account from one instant to another, of instances of some length.
    pub fn new(setup: &Setup, instance: Span, opens: Time, closes: Time) -> Work {
        let roles = setup.roles.len();
        Work {
            roles: vec![Achieved::default(); roles],
            instance,
            opens,
            closes,
            wanted: vec![0; roles],
            running: vec![0; roles],
            counted: vec![opens; roles],
            since: HashMap::new(),
        }
    }

    /// The application wants so many workers of a role from now on.
    pub fn wants(&mut self, now: Time, role: RoleId, count: u32) {
        self.count(now, role);
        self.wanted[role.index()] = count;
    }

    /// Workers start or stop.
    pub fn noted(&mut self, now: Time, note: &Note) {
        match *note {
            Note::Started(Units { machine, role, count }) => {
                self.count(now, role);
                self.running[role.index()] += count;
                self.since.entry((machine, role)).or_default().extend((0..count).map(|_| now));
            }
            Note::Stopped(Units { machine, role, count }) => {
                self.count(now, role);
                self.running[role.index()] -= count;
                let starts = self.since.entry((machine, role)).or_default();
                let left = starts.len().saturating_sub(count as usize);
                let account = &mut self.roles[role.index()];
                for start in starts.drain(left..) {
                    if now >= self.opens && now <= self.closes {
                        account.stopped += 1;
                        account.discarded += now.since(start).0 % self.instance.0.max(1);
                    }
                }
            }
            _ => {}
        }
    }

    /// Adds what has passed up to now.
    fn count(&mut self, now: Time, role: RoleId) {
        let at = role.index();
        let until = now.min(self.closes);
        if until > self.counted[at] {
            let span = until.since(self.counted[at]).0;
            let (wanted, running) = (u64::from(self.wanted[at]), u64::from(self.running[at]));
            let account = &mut self.roles[at];
            account.wanted += span * wanted;
            account.unserved += span * wanted.saturating_sub(running);
            account.doubled += span * running.saturating_sub(wanted);
            self.counted[at] = until;
        }
    }

    /// Closes the accounts.
    pub fn close(&mut self) {
        for role in 0..self.roles.len() {
            self.count(self.closes, RoleId(role as u16));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_counted_between_opening_and_close() {
        let mut setup = Setup::new(vec![4]);
        setup.app(&[("sql", false, 1)]);
        let units = |count| Units { machine: MachineId(0), role: RoleId(0), count };
        let mut work = Work::new(&setup, Span(10), Time(100), Time(200));
        work.wants(Time(0), RoleId(0), 2);
        work.noted(Time(50), &Note::Started(units(1)));
        work.noted(Time(120), &Note::Started(units(2)));
        // The two youngest stop, 25 after their start: 5 of the third instance each.
        work.noted(Time(145), &Note::Stopped(units(2)));
        work.noted(Time(300), &Note::Stopped(units(1)));
        work.close();
        let expected = Achieved { wanted: 200, unserved: 20 + 55, doubled: 25, discarded: 10, stopped: 2 };
        assert_eq!(work.roles, [expected]);
    }
}
