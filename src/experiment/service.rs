//! The service of users under a policy beside that of ideal fair sharing.

use super::window::Window;
use crate::metrics::{HorizonLog, JudgedService, Reference, UserTotals, Work};
use crate::units::{Span, Time};

/// The reference of a run and, under a horizon, the submitted and served work of each user.
pub(super) struct ServiceRecord {
    pub reference: Reference,
    window: Window,
    horizon: Option<Time>,
    /// Empty without a horizon.
    logs: Vec<HorizonLog>,
}

/// Work of equal tasks.
#[derive(Clone, Copy)]
pub(super) struct TaskWork<'a> {
    /// The demand of each task.
    pub demand: &'a [u64],
    /// How many tasks.
    pub tasks: u64,
    /// When they were submitted.
    pub submit: Time,
    /// How long each takes at full speed.
    pub duration: Span,
    /// Whether the tasks end: then all of their work is served.
    pub completes: bool,
}

impl ServiceRecord {
    pub fn new(reference: Reference, window: Window, horizon: Option<Time>) -> ServiceRecord {
        ServiceRecord { reference, window, horizon, logs: Vec::new() }
    }

    /// Returns whether the run has a horizon.
    pub fn has_horizon(&self) -> bool {
        self.horizon.is_some()
    }

    /// Opens an account for the next user, with its class of weights.
    pub fn user(&mut self, class: u32) {
        self.reference.user(class);
        self.logs.extend(self.horizon.map(|_| HorizonLog::default()));
    }

    /// Submits work, which takes some time.
    pub fn submit(&mut self, work: Work) {
        self.reference.submit(work);
        if !work.measured || self.horizon.is_none_or(|horizon| work.submit >= horizon) {
            return;
        }
        let amount = self.reference.size(&work.demand.0) * work.tasks as f64 * work.duration.seconds();
        if amount > 0.0 {
            self.logs[work.user.index()].submitted(work.submit, amount);
        }
    }

    /// Returns the age of work when it is served, added up. It is served evenly from `start` to `end`; unserved work has its age at
    /// `end`. Work that was not submitted in the window has none.
    pub fn served(&mut self, user: usize, work: TaskWork, (start, end): (Time, Time)) -> f64 {
        let TaskWork { demand, tasks, submit, duration, completes } = work;
        if !self.window.contains(submit) || submit >= end || duration == Span::ENDLESS {
            return 0.0;
        }
        let (age, ran, full) = (end.since(submit).seconds(), end.since(start).seconds(), duration.seconds());
        let size = self.reference.size(demand) * tasks as f64;
        let served = if completes { full } else { ran.min(full) };
        if ran > 0.0
            && served > 0.0
            && let Some(log) = self.logs.get_mut(user)
        {
            log.served((start, end), size * served);
        }
        size * (full * age - ran.min(full) * ran / 2.0)
    }

    /// Returns the service of a user's judged work: of all of its work, or under a horizon of the part that the reference serves by
    /// then. `None` without any.
    pub fn judged(&self, user: usize, totals: &UserTotals) -> Option<JudgedService> {
        let fair = self.reference.service(user);
        if fair.work <= 0.0 {
            return None;
        }
        if let Some(horizon) = self.horizon {
            let (log, left) = (&self.logs[user], self.reference.left(user));
            if left > 0.0 || !log.has_served(fair.work) {
                return log.judge(horizon, fair, left);
            }
        }
        Some(JudgedService { fair_delay: fair.delay / fair.work, delay: totals.delay / fair.work, served: 1.0 })
    }

    /// Returns the share of the submitted work that is not served at the horizon; `None` without a horizon or work.
    pub fn unserved(&self) -> Option<f64> {
        let submitted: f64 = (0..self.logs.len()).map(|user| self.reference.service(user).work).sum();
        let served: f64 = self.logs.iter().map(HorizonLog::total_served).sum();
        let share = 1.0 - served / submitted;
        // Less than the rounding errors of the sums is nothing.
        (submitted > 0.0).then_some(if share < 1e-9 { 0.0 } else { share })
    }
}
