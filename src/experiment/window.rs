//! The part of a run that is measured: without its warm-up and its end.

use crate::units::{Span, Time};

/// From when until when a run is measured.
///
/// Delays count the jobs that were submitted in the window, whenever they end; shares of time (utilisation, Jain index,
/// means over the sampling grid) are of the window itself, from the first submission to the end of the run. Counts of jobs
/// and tasks, of users too, and the makespan are of the whole run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// From then on.
    pub from: Time,
    /// Before then.
    pub to: Time,
}

impl Default for Window {
    fn default() -> Window {
        Window { from: Time::ZERO, to: Time::NEVER }
    }
}

impl Window {
    /// Whether an instant is in it.
    pub fn contains(&self, at: Time) -> bool {
        self.from <= at && at < self.to
    }

    /// How much of the time between two instants is in it.
    pub fn part(&self, from: Time, to: Time) -> Span {
        Span(to.min(self.to).0.saturating_sub(from.max(self.from).0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_intervals() {
        let window = Window { from: Time(10), to: Time(20) };
        let part = |from, to| window.part(Time(from), Time(to)).0;
        assert_eq!(
            [part(0, 5), part(0, 12), part(12, 15), part(5, 30), part(18, 40), part(20, 40)],
            [0, 2, 3, 10, 2, 0]
        );
        assert_eq!([9, 10, 19, 20].map(|at| window.contains(Time(at))), [false, true, true, false]);
        assert_eq!(Window::default().part(Time(3), Time(9)), Span(6));
    }
}
