//! The work of workers in worker-microseconds: requested, unserved, doubled and discarded.
//!
//! Requested work is the work of the incomplete tasks of a role from their submission on, as requested by the application. A worker that is
//! stopped during a task loses the work on that task.

use std::collections::HashMap;

use crate::message::{Note, Units};
use crate::setup::{AppId, RoleId, Setup};
use plimsoll_base::units::{Span, Time};
use plimsoll_sim::backend::Work;

/// A role: whether it is stable, its requested units, its running workers, and the instant of the last count.
#[derive(Clone, Copy, Debug, Default)]
struct RoleWork {
    stable: bool,
    wanted: u64,
    running: u64,
    counted: Time,
}

/// The work of all roles, by class.
#[derive(Clone, Debug, Default)]
pub struct Accounts {
    /// The work of online services.
    pub online: Work,
    /// The work of offline roles.
    pub offline: Work,
    roles: HashMap<RoleId, RoleWork>,
}

impl Accounts {
    /// Changes the number of requested workers of a role.
    pub(super) fn wants(&mut self, now: Time, role: RoleId, stable: bool, change: i64) {
        self.roles.entry(role).or_insert_with(|| RoleWork { stable, counted: now, ..RoleWork::default() });
        self.count(now, role);
        if let Some(account) = self.roles.get_mut(&role) {
            account.wanted = account.wanted.saturating_add_signed(change);
        }
    }

    /// Counts workers that start or stop.
    pub(super) fn noted(&mut self, now: Time, note: &Note) {
        let (Note::Started(units) | Note::Stopped(units) | Note::Failed(units)) = *note else { return };
        let Units { role, count, .. } = units;
        self.count(now, role);
        if let Some(account) = self.roles.get_mut(&role) {
            let count = u64::from(count);
            let starts = matches!(note, Note::Started(_));
            account.running = if starts { account.running + count } else { account.running.saturating_sub(count) };
        }
    }

    /// Adds workers that have stopped during a task, and the total work that they lose.
    pub(super) fn lost(&mut self, role: RoleId, workers: u32, work: Span) {
        if let Some(account) = self.roles.get(&role) {
            let class = if account.stable { &mut self.online } else { &mut self.offline };
            class.stopped += u64::from(workers);
            class.discarded += work.0;
        }
    }

    /// Adds the time since the last count to the work of a role.
    fn count(&mut self, now: Time, role: RoleId) {
        let Some(account) = self.roles.get_mut(&role) else { return };
        let span = now.since(account.counted).0;
        let class = if account.stable { &mut self.online } else { &mut self.offline };
        class.wanted += span * account.wanted;
        class.unserved += span * account.wanted.saturating_sub(account.running);
        class.doubled += span * account.running.saturating_sub(account.wanted);
        account.counted = now;
    }

    /// Counts and removes the roles of a completed application.
    pub(super) fn forget(&mut self, now: Time, setup: &Setup, app: AppId) {
        for role in setup.roles_of(app) {
            self.count(now, role);
            self.roles.remove(&role);
        }
    }

    /// Counts the work of all roles up to the end of the run.
    pub(super) fn close(&mut self, now: Time) {
        let roles: Vec<RoleId> = self.roles.keys().copied().collect();
        roles.into_iter().for_each(|role| self.count(now, role));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_base::units::MachineId;

    #[test]
    fn what_is_wanted_and_not_done_is_unserved_and_what_is_done_beyond_is_doubled() {
        let (role, mut work) = (RoleId(0), Accounts::default());
        let units = |count| Units { machine: MachineId(0), role, count };
        work.wants(Time(100), role, false, 2);
        work.noted(Time(120), &Note::Started(units(3)));
        // Two workers stop after 25 microseconds of work.
        work.noted(Time(145), &Note::Stopped(units(2)));
        work.lost(role, 2, Span(50));
        work.close(Time(200));
        let unserved = 2 * 20 + 55;
        assert_eq!(work.offline, Work { wanted: 200, unserved, doubled: 25, discarded: 50, stopped: 2 });
        assert_eq!(work.online, Work::default());
    }
}
