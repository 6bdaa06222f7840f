//! The published values for Facebook's cluster of October 2010, as tables for draws and comparisons.
//!
//! The digitised figures are in `traces/facebook/`, with their sources and pitfalls. Bubbles of the demand figure are drawn by weight,
//! never uniformly: their areas are logarithmic.

use std::sync::LazyLock;

use super::random::Weighted;

/// One bubble of the DRF paper's Figure 1.
#[derive(Clone, Copy, Debug)]
pub struct Demand {
    /// Cores per task.
    pub cpu: f64,
    /// GiB per task.
    pub memory: f64,
    /// Share of all tasks (maps and reduces).
    pub weight: f64,
}

/// Task demands of one kind.
#[derive(Clone, Debug)]
pub struct Demands {
    /// The bubbles.
    pub points: Vec<Demand>,
    /// The sampler of bubbles by weight.
    pub draw: Weighted,
}

/// A cumulative distribution that is given at points.
#[derive(Clone, Debug)]
pub struct Cdf {
    points: Vec<(f64, f64)>,
}

impl Cdf {
    /// Returns the points: a value, and the share of values up to it.
    pub fn points(&self) -> &[(f64, f64)] {
        &self.points
    }

    /// Returns the value below which a share `p` of the values lies, interpolated linearly in the logarithm of the value.
    pub fn quantile(&self, p: f64) -> f64 {
        let at = self.points.partition_point(|&(_, cumulative)| cumulative < p);
        if at == 0 {
            return self.points[0].0;
        }
        let Some(&(high, to)) = self.points.get(at) else {
            return self.points[self.points.len() - 1].0;
        };
        let (low, from) = self.points[at - 1];
        (low.ln() + (high.ln() - low.ln()) * (p - from) / (to - from)).exp()
    }

    /// Returns the share of values up to `value`.
    pub fn share(&self, value: f64) -> f64 {
        let at = self.points.partition_point(|&(point, _)| point <= value);
        if at == 0 {
            return 0.0;
        }
        let Some(&(high, to)) = self.points.get(at) else { return 1.0 };
        let (low, from) = self.points[at - 1];
        from + (to - from) * (value / low).ln() / (high / low).ln()
    }

    /// Returns the mean of the values, each limited to `cap`. The mean is computed from the midpoints of 10,000 equal steps of the share.
    pub fn mean_below(&self, cap: f64) -> f64 {
        let steps = 10_000;
        (0..steps).map(|i| self.quantile((f64::from(i) + 0.5) / f64::from(steps)).min(cap)).sum::<f64>()
            / f64::from(steps)
    }
}

/// Splits the rows of an embedded table into columns. Never panics: the tables are part of the program and tested.
fn table(text: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    text.lines().skip(1).filter(|line| !line.is_empty()).map(|line| line.split(',').collect())
}

fn number(text: &str) -> f64 {
    text.parse().expect("embedded tables hold numbers")
}

fn demands(kind: &str) -> Demands {
    let points: Vec<Demand> = table(include_str!("../../../../../traces/facebook/facebook-task-demands.csv"))
        .filter(|row| row[0] == kind)
        .map(|row| Demand { memory: number(row[1]), cpu: number(row[2]), weight: number(row[5]) })
        .collect();
    let draw = Weighted::new(points.iter().map(|point| point.weight)).expect("embedded weights are positive");
    Demands { points, draw }
}

fn durations(column: usize) -> Cdf {
    let points = table(include_str!("../../../../../traces/facebook/facebook-durations-cdf.csv"))
        .map(|row| (number(row[0]), number(row[column])))
        .collect();
    Cdf { points }
}

/// Demands of map tasks (DRF paper, Figure 1).
pub static MAP: LazyLock<Demands> = LazyLock::new(|| demands("map"));
/// Demands of reduce tasks (DRF paper, Figure 1).
pub static REDUCE: LazyLock<Demands> = LazyLock::new(|| demands("reduce"));
/// Durations of jobs in seconds (Mesos paper, Figure 1).
pub static JOB_DURATIONS: LazyLock<Cdf> = LazyLock::new(|| durations(1));
/// Durations of tasks in seconds (Mesos paper, Figure 1).
pub static TASK_DURATIONS: LazyLock<Cdf> = LazyLock::new(|| durations(2));

/// Jobs with a number of tasks in this range, both ends included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SizeRange {
    /// The smallest number of tasks.
    pub from: u64,
    /// The largest number of tasks.
    pub to: u64,
    /// Jobs in the range: a count or a percentage, depending on the table.
    pub jobs: f64,
}

const fn bin(from: u64, to: u64, jobs: f64) -> SizeRange {
    SizeRange { from, to, jobs }
}

/// Job sizes of one day (24,442 jobs) of the SWIM trace FB-2010 at a 64 MB block, in the bins of the DRF paper's Figure 14. The paper
/// mislabels the bin 2001-2500 as "2501-3000".
pub const DRF_BINS: [SizeRange; 7] = [
    bin(1, 500, 22_078.0),
    bin(501, 1000, 623.0),
    bin(1001, 1500, 306.0),
    bin(1501, 2000, 216.0),
    bin(2001, 2500, 106.0),
    bin(2501, 3000, 267.0),
    bin(3001, u64::MAX, 846.0),
];

/// Job sizes by number of maps, in percent of jobs (delay scheduling, EuroSys 2010; the percentages are rounded).
pub const DELAY_BINS: [SizeRange; 9] = [
    bin(1, 1, 39.0),
    bin(2, 2, 16.0),
    bin(3, 20, 14.0),
    bin(21, 60, 9.0),
    bin(61, 150, 6.0),
    bin(151, 300, 6.0),
    bin(301, 500, 4.0),
    bin(501, 1500, 4.0),
    bin(1501, u64::MAX, 3.0),
];

/// The sizes of jobs with 1 to 500 tasks, in percent of all jobs; [`DRF_BINS`] has one bin for them. 70 % of the jobs have fewer than ten
/// tasks (FB-2010 at 64 MB). Of these jobs, 39/63.9 have one map (delay scheduling). 34 of 100 jobs have no reduce (FB-2010); the others
/// have at least one. So 14.5 % of the jobs have one task, 34 % have two, and the rest of the 70 % have three to nine. From ten tasks on,
/// the shares are those of the delay-scheduling bins, scaled to the rest of the first bin.
pub const SMALL_BINS: [SizeRange; 8] = [
    bin(1, 1, 14.5),
    bin(2, 2, 34.0),
    bin(3, 9, 21.5),
    bin(10, 20, 3.44),
    bin(21, 60, 6.08),
    bin(61, 150, 4.06),
    bin(151, 300, 4.05),
    bin(301, 500, 2.70),
];

/// Jobs per day in FB-2010: a mean gap of 3.54 s.
pub const JOBS_PER_DAY: f64 = 24_442.0;
/// The share of FB-2010's jobs without a reduce.
pub const MAP_ONLY: f64 = 0.34;
/// The share of jobs with fewer than ten tasks at a 64 MB block.
pub const BELOW_TEN: f64 = 0.70;
/// The share of tasks that are maps, by the weights of Figure 1.
pub const MAP_SHARE: f64 = 0.70;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn embedded_tables_hold_what_the_papers_show() {
        assert_eq!((MAP.points.len(), REDUCE.points.len()), (162, 216));
        let share = |demands: &Demands| demands.points.iter().map(|point| point.weight).sum::<f64>();
        assert!((share(&MAP) + share(&REDUCE) - 1.0).abs() < 1e-3);
        assert!((share(&MAP) - MAP_SHARE).abs() < 0.01);
        // The Mesos paper states these medians in its text.
        assert!((TASK_DURATIONS.quantile(0.5) - 23.0).abs() < 1.0);
        assert!((JOB_DURATIONS.quantile(0.5) - 84.0).abs() < 2.0);
        assert!((TASK_DURATIONS.share(TASK_DURATIONS.quantile(0.8)) - 0.8).abs() < 1e-9);
        assert_eq!(TASK_DURATIONS.quantile(0.0), 1.0);
        assert_eq!(TASK_DURATIONS.quantile(1.0), 89125.09);
    }

    #[test]
    fn small_bins_fill_the_first_bin() {
        let total: f64 = DRF_BINS.iter().map(|bin| bin.jobs).sum();
        assert_eq!(total, JOBS_PER_DAY);
        let small: f64 = SMALL_BINS.iter().map(|bin| bin.jobs).sum();
        assert!((small / 100.0 - DRF_BINS[0].jobs / total).abs() < 1e-3);
        let below_ten: f64 = SMALL_BINS[..3].iter().map(|bin| bin.jobs).sum();
        assert!((below_ten / 100.0 - BELOW_TEN).abs() < 1e-9);
    }
}
