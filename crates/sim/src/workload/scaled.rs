//! A workload at another load: the times between submissions are stretched or shortened; jobs keep their tasks and durations.
//!
//! The offered load is the work of all tasks over the capacity between the first and the last submission, of the resource with the highest
//! load. Scaling the times keeps the order of submissions and the burstiness, but also stretches daily cycles (Lo, Mache and Windisch,
//! JSSPP 1998, compare such methods).

use super::altered::{Alteration, Altered};
use super::{Source, TaskSet};
use plimsoll_base::error::{Error, Result};
use plimsoll_base::units::{Dim, Time};

/// The factor of times, in billionths.
const BILLION: u128 = 1_000_000_000;

/// The offered load that a workload is scaled to, and the capacity that it refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetLoad {
    /// The load in millionths of the capacity.
    pub millionths: u64,
    /// The capacity of the cluster, by resource.
    pub capacity: Vec<(Dim, u64)>,
}

impl TargetLoad {
    /// Returns the factor for the times of a source, in billionths. Reads the source to its end.
    ///
    /// Errors: those of the source; [`Error::Mismatch`] if all rows are submitted at one instant, or the work on the resources of
    /// the cluster is zero.
    pub fn factor(&self, source: &mut dyn Source) -> Result<u64> {
        let capacity: Vec<u64> = source
            .dims()
            .iter()
            .map(|dim| self.capacity.iter().find(|(known, _)| known.name == dim.name).map_or(0, |(_, amount)| *amount))
            .collect();
        let mut work = vec![0u128; capacity.len()];
        let (mut first, mut last) = (None, Time::ZERO);
        while let Some(set) = source.next_set()? {
            first.get_or_insert(set.submit);
            last = set.submit;
            let time = u128::from(set.duration.0) * u128::from(set.tasks);
            for (sum, demand) in work.iter_mut().zip(&set.demand.0) {
                *sum = sum.saturating_add(time.saturating_mul(u128::from(*demand)));
            }
        }
        let span = last.0 - first.unwrap_or(last).0;
        // Work over capacity: the time for which the whole cluster is busy.
        let busy = work.iter().zip(&capacity).filter(|(_, capacity)| **capacity > 0);
        let busy = busy.map(|(work, capacity)| work / u128::from(*capacity)).max().unwrap_or(0);
        let wrong =
            |problem: &str| Err(Error::Mismatch { problem: format!("load: the workload cannot be scaled: {problem}") });
        if span == 0 {
            return wrong("all rows are submitted at one instant");
        }
        if busy == 0 {
            return wrong("the work of its tasks on the resources of the cluster is zero");
        }
        let factor = busy.saturating_mul(BILLION * 1_000_000) / (u128::from(span) * u128::from(self.millionths));
        match u64::try_from(factor) {
            Ok(factor) if factor > 0 && factor < u64::MAX / 1000 => Ok(factor),
            _ => wrong("its load differs from the requested one by a factor of more than 10^9"),
        }
    }
}

/// The change of submission times by a factor.
pub struct TimeFactor {
    factor: u64,
    first: Option<Time>,
}

/// A source with scaled times of submission.
pub type Scaled<'a> = Altered<'a, TimeFactor>;

impl<'a> Scaled<'a> {
    /// Scales the times since the first submission by `factor` billionths; times are rounded down to the microsecond.
    pub fn new(source: Box<dyn Source + 'a>, factor: u64) -> Scaled<'a> {
        Altered::with(source, TimeFactor { factor, first: None })
    }
}

impl Alteration for TimeFactor {
    fn alter(&mut self, set: &mut TaskSet) {
        let first = *self.first.get_or_insert(set.submit);
        let later = u128::from(set.submit.0 - first.0) * u128::from(self.factor) / BILLION;
        let submit = Time(first.0.saturating_add(u64::try_from(later).unwrap_or(u64::MAX)));
        set.deadline = set.deadline.map(|at| Time((at.0.saturating_sub(set.submit.0)).saturating_add(submit.0)));
        set.submit = submit;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{CsvTrace, Input};
    use plimsoll_base::units::Unit;

    fn trace(rows: &str) -> CsvTrace {
        let text = format!("job,user,submit_s,duration_s,tasks,cpu\n{rows}");
        CsvTrace::new(&Input::Bytes("t.csv".into(), text.into_bytes().into())).expect("a trace")
    }

    fn to(millionths: u64, cores: u64) -> TargetLoad {
        TargetLoad { millionths, capacity: vec![(Dim { name: "cpu".into(), unit: Unit::Milli }, cores * 1000)] }
    }

    #[test]
    fn times_are_scaled_to_the_load_and_durations_are_not() {
        // 10 tasks of 100 core seconds in 90 s on 20 cores: a load of 1000 / 1800.
        let rows: String = (0..10).map(|job| format!("j{job},u,{},100,1,1\n", 5 + 10 * job)).collect();
        let half = to(500_000, 20);
        let factor = half.factor(&mut trace(&rows)).expect("a factor");
        // 1000 core seconds are half of 20 cores in 100 s.
        assert!((factor as f64 / 1e9 - 100.0 / 90.0).abs() < 1e-6, "{factor}");
        let mut scaled = Scaled::new(Box::new(trace(&rows)), factor);
        assert_eq!(scaled.peek().expect("readable").map(|set| set.submit), Some(Time(5_000_000)));
        let mut sets = Vec::new();
        while let Some(set) = scaled.next_set().expect("readable") {
            sets.push(set);
        }
        assert_eq!(sets.len(), 10);
        assert!(sets.iter().all(|set| set.duration.0 == 100_000_000));
        let last = sets[9].submit.seconds();
        assert!((last - 105.0).abs() < 1e-4, "{last}");
        let again = half.factor(&mut Scaled::new(Box::new(trace(&rows)), factor)).expect("a factor");
        assert!((again as f64 / 1e9 - 1.0).abs() < 1e-6, "the scaled workload has the load: {again}");
    }

    #[test]
    fn workloads_without_a_load_are_refused() {
        let message = |rows: &str, target: TargetLoad| target.factor(&mut trace(rows)).expect_err(rows).to_string();
        assert!(message("a,u,0,1,1,1\nb,u,0,1,1,1\n", to(700_000, 1)).contains("at one instant"));
        assert!(message("a,u,0,0,1,1\nb,u,9,0,1,1\n", to(700_000, 1)).contains("is zero"));
    }
}
