//! Limits and costs of preemption: the tasks that are exempt, the maximum number of preemptions in a span, and the settings for
//! the work that a preempted task keeps. [`Livelock`] ends a run if tasks preempt one another without progress.
//!
//! Limits apply to every voluntary preemption, costs to every task that starts again. The rules are in `docs/cluster.md`, "The price of
//! preemption".

use std::cell::Cell;
use std::collections::{BTreeSet, VecDeque};

use super::ids::JobSlot;
use plimsoll_base::checkpoint::{Checkpoint, Visitor};
use plimsoll_base::error::{Error, Result};
use plimsoll_base::units::{Span, Time, span};
use plimsoll_base::visit_values;

/// Limits and costs of preemption; none by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PreemptionLimits {
    /// Minimum run time before a task may be preempted.
    pub min_run: Span,
    /// Maximum number of preemptions within a span; unlimited if absent.
    pub limit: Option<StopLimit>,
    /// Interval of checkpoints. A preempted task resumes from its last checkpoint; without checkpoints (zero) it restarts from its
    /// beginning.
    pub checkpoint: Span,
    /// Time that a preempted task takes to resume.
    pub restart_delay: Span,
}

impl PreemptionLimits {
    /// Returns whether checkpoints or a restart delay are set.
    pub fn costs(&self) -> bool {
        self.checkpoint > Span::ZERO || self.restart_delay > Span::ZERO
    }
}

/// A maximum number of preemptions within a span; as text `10/60s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StopLimit {
    most: u32,
    within: Span,
}

impl std::fmt::Display for StopLimit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}us", self.most, self.within.0)
    }
}

impl std::str::FromStr for StopLimit {
    type Err = Error;

    fn from_str(text: &str) -> Result<StopLimit> {
        let read = |(most, within): (&str, &str)| {
            let (most, within) = (most.trim().parse().ok()?, span(within.trim()).ok()?);
            (most > 0 && within > Span::ZERO).then_some(StopLimit { most, within })
        };
        text.split_once('/').and_then(read).ok_or_else(|| {
            let expected = "a number of tasks from 1 and a span above 0, such as 10/60s";
            Error::plan("stop_limit", format!("'{text}'"), expected)
        })
    }
}

/// Recent voluntary preemptions and the earliest time of the next one.
pub struct PreemptionBudget {
    now: Time,
    min_run: Span,
    limit: Option<StopLimit>,
    /// Instants within the limit's span, and the number of preemptions at each.
    stopped: VecDeque<(Time, u32)>,
    /// The earliest time at which a preemption that was refused in this round becomes possible.
    again: Cell<Option<Time>>,
}

impl PreemptionBudget {
    pub fn new(rules: &PreemptionLimits) -> PreemptionBudget {
        let PreemptionLimits { min_run, limit, .. } = *rules;
        PreemptionBudget { now: Time::ZERO, min_run, limit, stopped: VecDeque::new(), again: Cell::new(None) }
    }

    /// Begins a round.
    pub fn begin(&mut self, now: Time) {
        self.now = now;
        self.again.set(None);
        if let Some(limit) = self.limit {
            while self.stopped.front().is_some_and(|(at, _)| now.since(*at) >= limit.within) {
                self.stopped.pop_front();
            }
        }
    }

    /// Returns the time of the next round if no other event happens before.
    pub fn next(&self) -> Option<Time> {
        self.again.get()
    }

    fn schedule_check(&self, at: Time) {
        self.again.set(Some(self.again.get().map_or(at, |again| again.min(at))));
    }

    /// Returns whether the limit ever allows this number of preemptions at once.
    pub fn could(&self, tasks: u32) -> bool {
        self.limit.is_none_or(|limit| tasks <= limit.most)
    }

    /// Returns whether tasks that started at `start` are exempt for now, because their run time is too short.
    pub fn spares(&self, start: Time) -> bool {
        let old = start + self.min_run;
        if self.min_run == Span::ZERO || old <= self.now {
            return false;
        }
        self.schedule_check(old);
        true
    }

    /// Returns the number of tasks, at most `tasks`, that may be preempted now.
    pub fn room(&self, tasks: u32) -> u32 {
        let Some(limit) = self.limit else { return tasks };
        let mut left = limit.most.saturating_sub(self.stopped.iter().map(|(_, count)| count).sum());
        let now = left.min(tasks);
        for (at, count) in &self.stopped {
            if left < tasks {
                left = left.saturating_add(*count);
                if left >= tasks {
                    self.schedule_check(*at + limit.within);
                }
            }
        }
        now
    }

    /// Records preemptions.
    pub fn stop(&mut self, tasks: u32) {
        if self.limit.is_some() {
            self.stopped.push_back((self.now, tasks));
        }
    }
}

/// The number of preemptions without progress after which a run is examined.
pub(super) const MOST: u64 = 10_000;

/// The number of preemptions per running task; its product with the running tasks applies instead if it is larger.
pub(super) const MOST_PER_TASK: u64 = 10;

/// The maximum number of jobs that an error names.
pub(super) const NAMED: usize = 5;

/// Preemptions since the last progress: a task that finished, a row that arrived, or work that a stopped task keeps.
#[derive(Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Livelock {
    pub preemptions: u64,
    pub since: Time,
    /// The jobs with stopped tasks.
    pub jobs: BTreeSet<JobSlot>,
}

impl Livelock {
    /// Records progress.
    pub fn progress(&mut self) {
        if self.preemptions > 0 {
            self.preemptions = 0;
            self.jobs.clear();
        }
    }

    pub fn preempted(&mut self, job: JobSlot, tasks: u32, now: Time) {
        if self.preemptions == 0 {
            self.since = now;
        }
        self.preemptions += u64::from(tasks);
        self.jobs.insert(job);
    }
}

impl Checkpoint for PreemptionBudget {
    fn visit(&mut self, visitor: &mut Visitor) -> Result<()> {
        let PreemptionBudget { now, min_run: _, limit: _, stopped, again } = self;
        visit_values!(visitor; now, stopped, again);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_read_and_written() {
        let limit = |text: &str| text.parse::<StopLimit>();
        assert_eq!(limit(" 10 / 1m").expect("a limit").to_string(), "10/60000000us");
        for wrong in ["", "10", "0/60s", "10/0s", "-1/60s", "10/x", "5000000000/1s"] {
            assert!(limit(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_window_slides() {
        let rules = PreemptionLimits { limit: Some("3/10s".parse().expect("a limit")), ..PreemptionLimits::default() };
        let mut preemption_budget = PreemptionBudget::new(&rules);
        let at = |seconds: u64| Time::ZERO + Span::from_secs(seconds);
        for (now, stops) in [(0, 1), (4, 2)] {
            preemption_budget.begin(at(now));
            assert_eq!((preemption_budget.room(stops), preemption_budget.next()), (stops, None));
            preemption_budget.stop(stops);
        }
        preemption_budget.begin(at(9));
        assert_eq!((preemption_budget.room(1), preemption_budget.next()), (0, Some(at(10))));
        assert_eq!(
            (preemption_budget.room(3), preemption_budget.next()),
            (0, Some(at(10))),
            "the earliest requested time"
        );
        preemption_budget.begin(at(10));
        assert_eq!((preemption_budget.room(3), preemption_budget.next()), (1, Some(at(14))));
        assert!(preemption_budget.could(3) && !preemption_budget.could(4));
    }
}
