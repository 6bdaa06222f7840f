//! The measured part of a run, without its warm-up and its last phase.

use plimsoll_base::units::{Span, Time};

/// The measured time window of a run.
///
/// Delays are measured for the jobs that were submitted in the window, whenever they end. Shares of time (utilisation, Jain index, means
/// over the sampling grid) refer to the window itself, from the first submission to the end of the run. The makespan and the numbers of
/// jobs, tasks and users refer to the whole run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Window {
    /// The start, inclusive.
    pub from: Time,
    /// The end, exclusive.
    pub to: Time,
}

impl Default for Window {
    fn default() -> Window {
        Window { from: Time::ZERO, to: Time::NEVER }
    }
}

impl Window {
    /// Returns whether an instant is in the window.
    pub fn contains(&self, at: Time) -> bool {
        self.from <= at && at < self.to
    }

    /// Returns the part of the interval between two instants that is in the window.
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
