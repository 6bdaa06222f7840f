//! The report of the time between two instants to the recorder: the state during the interval, with the heads of all queues.

use super::Kernel;
use super::jobs::Sets;
use super::queues::Queues;
use super::scopes::{ScopeId, Scopes};
use crate::record::{State, Waiting};
use plimsoll_base::error::Result;
use plimsoll_base::units::{MachineId, Time, UserId};

/// The next task of each queue, and where it may start.
struct Heads<'a> {
    queues: &'a Queues,
    sets: &'a Sets,
    scopes: &'a Scopes,
}

impl Waiting for Heads<'_> {
    fn heads<'b>(&'b self, user: UserId, visit: &mut dyn FnMut(u32, &'b [u64])) {
        for queue in self.queues.queues_of(user) {
            if let Some(head) = self.queues.head(queue) {
                visit(self.queues.scope(queue).0, self.sets.needs(head).1);
            }
        }
    }

    fn may_use(&self, scope: u32, machine: MachineId) -> bool {
        self.scopes.contains(ScopeId(scope), machine)
    }
}

impl Kernel<'_> {
    /// Advances the clock to `to`, and reports the state of the interval to the recorder. Errors: the recorder's.
    pub(in crate::engine) fn advance(&mut self, to: Time) -> Result<()> {
        if to > self.now {
            let machines = (!self.site.pooled).then_some(&self.site.machines);
            let waiting = Heads { queues: &self.work.queues, sets: &self.work.sets, scopes: &self.site.scopes };
            let (books, groups) = (&self.books, self.outside.policy.groups());
            let state = State { books, machines, waiting: &waiting, groups };
            self.outside.recorder.interval(self.now, to, &state)?;
            self.now = to;
            self.books.pass(to);
        }
        Ok(())
    }
}
