//! Compares the service of users under a policy with that of ideal fair sharing.

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
    /// The number of tasks.
    pub tasks: u64,
    /// The time of their submission.
    pub submit: Time,
    /// The duration of each task at full speed.
    pub duration: Span,
    /// Whether the tasks complete; all of their work is then served.
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

    /// Adds the next user, with its class of weights.
    pub fn user(&mut self, class: u32) {
        self.reference.user(class);
        self.logs.extend(self.horizon.map(|_| HorizonLog::default()));
    }

    /// Submits work with a duration above 0.
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

    /// Returns the sum of the ages that parts of the work have when they are served, evenly from `start` to `end`; unserved parts have
    /// their age at `end`. Returns 0 for work that was not submitted in the window.
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

    /// Returns the service of a user's judged work: all of its work, or under a horizon the part that the reference serves until then.
    /// `None` if the user has no judged work.
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
        // A share below the rounding errors of the sums is 0.
        (submitted > 0.0).then_some(if share < 1e-9 { 0.0 } else { share })
    }
}
