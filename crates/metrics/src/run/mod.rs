//! The metrics of a run. Each file has one metric or a few related ones, with their columns next to their computation.
//!
//! A metric is computed from the totals of the run ([`Run`]), or it is the mean of a value of the states on the sampling grid ([`Sample`]).
//! Each column is declared once, with its name, its meaning and its computation; the columns of the tables `runs` and `fairness` are
//! collected from these declarations. A mean over the grid covers only points with waiting tasks, unless the column is declared otherwise.

use plimsoll_base::checkpoint::{Checkpoint, Visitor};
use plimsoll_base::column::{Cell, Column, ColumnValue, Computed, Described, Kind, TableRow, Unit};
use plimsoll_base::error::Result;
use plimsoll_base::units::{Dim, MAX_DIMS, Resources, Span, Time};
use plimsoll_sim::backend::Carried;
use plimsoll_sim::books::Books;
use plimsoll_sim::engine::Outcome;
use plimsoll_sim::record::State;

mod classes;
mod control;
mod counts;
pub(crate) mod deadlines;
pub mod delay;
pub mod deviation;
pub mod envy;
pub mod fairness;
pub mod finish_time;
mod fragmentation;
pub mod incentive;
mod sample;
pub mod slowdown;
mod speed;
pub mod stranded;
mod totals;
mod utilisation;
mod waits;

pub use sample::Sample;
pub(crate) use slowdown::SlowdownSum;
pub use totals::Totals;
pub(crate) use totals::mean_s;

use delay::Summary;
use finish_time::FinishTimeSummary;

/// All metrics, in the order of their columns.
static METRICS: &[&Metrics] = &[
    &counts::METRICS,
    &utilisation::METRICS,
    &stranded::METRICS,
    &utilisation::BESIDES,
    &fragmentation::METRICS,
    &speed::METRICS,
    &fairness::METRICS,
    &envy::METRICS,
    &incentive::METRICS,
    &deviation::METRICS,
    &delay::METRICS,
    &waits::METRICS,
    &delay::SLOWDOWN,
    &slowdown::METRICS,
    &finish_time::METRICS,
    &deadlines::METRICS,
    &classes::METRICS,
    &counts::BESIDES,
    &control::METRICS,
];

/// Related columns of the tables `runs` and `fairness`.
struct Metrics {
    runs: &'static [Column<MetricValue>],
    fairness: &'static [At],
}

/// A column of the table `fairness`.
type At = Column<ColumnValue<GridPoint<'static>>>;

/// A run that has ended, as the input of its metrics.
#[derive(Clone, Debug)]
pub struct Run<'a> {
    /// The name of the workload.
    pub workload: &'a str,
    /// The number of machines.
    pub machines: u64,
    /// The number of users that appeared.
    pub users: u64,
    /// The capacity of all machines.
    pub capacity: Resources,
    /// The capacity as offered to the policy: slots, or the one resource that it reserves.
    pub offered: Resources,
    /// The counts of the engine.
    pub outcome: Outcome,
    /// The sums and counts over the run.
    pub totals: &'a Totals,
    /// The measured part of the time from the first submission to the end.
    pub measured: Span,
    /// The part of the measured time that is before the last submission.
    pub arriving: Span,
    /// The speeds of all users with work.
    pub speeds: Vec<f64>,
    /// The share of the submitted work that is not served at the horizon; `None` without a horizon or work.
    pub unserved: Option<f64>,
    /// The finish-time fairness of finished jobs; `None` if it was not recorded.
    pub finish_time: Option<FinishTimeSummary>,
    /// Completion times of finished jobs, in seconds.
    pub completion: Option<Summary>,
    /// Waits of finished jobs, in seconds.
    pub wait: Option<Summary>,
    /// Slowdowns of finished jobs.
    pub slowdown: Option<Summary>,
    /// The step of the sampling grid.
    pub step: Span,
    /// The cost of executing decisions, under a control plane.
    pub carried: Option<Carried>,
}

/// A point of the sampling grid.
#[derive(Clone, Copy, Debug)]
pub struct GridPoint<'a> {
    /// The time of the point.
    pub at: Time,
    /// The values that were evaluated at this point.
    pub sample: &'a Sample,
    /// The state of the run.
    pub books: &'a Books,
}

impl TableRow for GridPoint<'static> {
    type Of<'a> = GridPoint<'a>;

    const TABLE: &'static str = "fairness";

    fn columns() -> Vec<Column<ColumnValue<Self>>> {
        METRICS.iter().flat_map(|metrics| metrics.fairness).copied().collect()
    }
}

/// The computation of a metric of a run.
#[derive(Clone, Copy)]
enum MetricValue {
    /// A name, at the end of the run.
    Text(for<'a> fn(&'a Run) -> &'a str),
    /// A count or an instant, at the end of the run.
    Int(fn(&Run) -> Option<u64>),
    /// A measure, at the end of the run.
    Float(fn(&Run) -> Option<f64>),
    /// A measure per resource, at the end of the run.
    Floats(fn(&Run, usize) -> Option<f64>),
    /// The mean over the grid points with waiting tasks and a value.
    Mean(fn(&Sample) -> Option<f64>),
    /// The mean over the grid points with waiting tasks and a value, per resource.
    Means(fn(&Sample, usize) -> Option<f64>),
    /// The mean over all grid points with a value.
    Always(fn(&State) -> Option<f64>),
}

impl MetricValue {
    fn is_on_grid(&self) -> bool {
        matches!(self, MetricValue::Mean(_) | MetricValue::Means(_) | MetricValue::Always(_))
    }
}

impl Computed for MetricValue {
    fn kind(&self) -> Kind {
        match self {
            MetricValue::Text(_) => Kind::Text,
            MetricValue::Int(_) => Kind::Int,
            _ => Kind::Float,
        }
    }

    fn each(&self) -> bool {
        matches!(self, MetricValue::Floats(_) | MetricValue::Means(_))
    }
}

const fn int(name: &'static str, about: &'static str, of: fn(&Run) -> Option<u64>) -> Column<MetricValue> {
    Column::new(name, about, MetricValue::Int(of))
}

const fn micros(name: &'static str, about: &'static str, of: fn(&Run) -> Option<u64>) -> Column<MetricValue> {
    int(name, about, of).unit(Unit::Micros)
}

const fn float(name: &'static str, about: &'static str, of: fn(&Run) -> Option<f64>) -> Column<MetricValue> {
    Column::new(name, about, MetricValue::Float(of))
}

const fn seconds(name: &'static str, about: &'static str, of: fn(&Run) -> Option<f64>) -> Column<MetricValue> {
    float(name, about, of).unit(Unit::Seconds)
}

/// Declares a share per resource.
const fn shares(name: &'static str, about: &'static str, of: fn(&Run, usize) -> Option<f64>) -> Column<MetricValue> {
    Column::new(name, about, MetricValue::Floats(of)).unit(Unit::Share)
}

/// Declares a mean over the grid points with waiting tasks.
const fn mean(name: &'static str, about: &'static str, of: fn(&Sample) -> Option<f64>) -> Column<MetricValue> {
    Column::new(name, about, MetricValue::Mean(of))
}

/// Returns the columns of the table `runs` for these resources.
pub fn runs_columns(dims: &[Dim]) -> Vec<Described> {
    runs().flat_map(|column| column.described(dims)).collect()
}

fn runs() -> impl Iterator<Item = &'static Column<MetricValue>> {
    METRICS.iter().flat_map(|metrics| metrics.runs)
}

/// A mean over grid points at which the value exists.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
struct GridMean {
    sum: f64,
    points: u64,
}

impl GridMean {
    /// Adds a value for a number of grid points.
    fn add(&mut self, value: Option<f64>, points: u64) {
        if let Some(value) = value {
            self.sum += value * points as f64;
            self.points += points;
        }
    }

    fn mean(&self) -> Option<f64> {
        (self.points > 0).then(|| self.sum / self.points as f64)
    }
}

/// The means over the sampling grid, for the metrics that are defined on it.
pub struct GridMeans {
    dims: usize,
    /// The metrics on the grid, each with one mean or one per resource.
    means: Vec<(MetricValue, [GridMean; MAX_DIMS])>,
}

impl GridMeans {
    /// Creates means without values, for a number of resources.
    pub fn new(dims: usize) -> GridMeans {
        let on_grid = runs().map(|column| column.value).filter(MetricValue::is_on_grid);
        GridMeans { dims, means: on_grid.map(|how| (how, Default::default())).collect() }
    }

    /// Adds a state for a number of grid points, with or without waiting tasks.
    pub fn watch(&mut self, state: &State, points: u64) {
        for (how, means) in &mut self.means {
            if let MetricValue::Always(of) = how {
                means[0].add(of(state), points);
            }
        }
    }

    /// Adds a sample for a number of grid points. Ignored if no tasks wait.
    pub fn add(&mut self, sample: &Sample, points: u64) {
        if sample.backlogged.is_empty() {
            return;
        }
        for (how, means) in &mut self.means {
            match how {
                MetricValue::Mean(of) => means[0].add(of(sample), points),
                MetricValue::Means(of) => {
                    means.iter_mut().take(self.dims).enumerate().for_each(|(d, mean)| mean.add(of(sample, d), points));
                }
                _ => {}
            }
        }
    }

    /// Returns the cells of a run in the table `runs`, in the order of [`runs_columns`].
    pub fn row<'a>(&'a self, run: &'a Run<'a>) -> Vec<Cell<'a>> {
        let mut on_grid = self.means.iter();
        let mut cells = Vec::new();
        for column in runs() {
            match column.value {
                MetricValue::Text(of) => cells.push(of(run).into()),
                MetricValue::Int(of) => cells.push(of(run).into()),
                MetricValue::Float(of) => cells.push(of(run).into()),
                MetricValue::Floats(of) => cells.extend((0..self.dims).map(|d| Cell::from(of(run, d)))),
                MetricValue::Mean(_) | MetricValue::Means(_) | MetricValue::Always(_) => {
                    let width = if column.value.each() { self.dims } else { 1 };
                    let means = on_grid.next().into_iter().flat_map(|(_, means)| &means[..width]);
                    cells.extend(means.map(|mean| Cell::from(mean.mean())));
                }
            }
        }
        cells
    }
}

impl Checkpoint for GridMeans {
    fn visit(&mut self, visitor: &mut Visitor) -> Result<()> {
        let GridMeans { dims: _, means } = self;
        means.iter_mut().try_for_each(|(_, means)| visitor.value(means))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_base::units::Unit as Base;

    #[test]
    fn a_run_in_which_nothing_happened_has_a_cell_of_the_right_type_in_every_column() {
        let dims = ["cpu", "memory"].map(|name| Dim { name: name.to_owned(), unit: Base::Milli });
        let totals = Totals::default();
        let run = Run {
            workload: "nothing",
            step: Span::from_secs(60),
            ..Run::new(&totals, Outcome::default(), 0, (1, Resources::ZERO))
        };
        let mut means = GridMeans::new(dims.len());
        let sample = Sample {
            backlogged: vec![0.5, 0.25],
            gap: Some(0.25),
            stranded: Some([0.5; MAX_DIMS]),
            ..Sample::default()
        };
        means.add(&sample, 3);
        let cells = means.row(&run);
        let columns = runs_columns(&dims);
        assert_eq!(cells.len(), columns.len());
        for (column, cell) in columns.iter().zip(&cells) {
            let fits = match cell {
                Cell::Null => true,
                Cell::Int(_) | Cell::Large(_) => column.value == Kind::Int,
                Cell::Float(_) => column.value == Kind::Float,
                Cell::Text(_) => column.value == Kind::Text,
            };
            assert!(fits, "{}: {cell:?}", column.name);
        }
        let cell = |name: &str| cells[columns.iter().position(|column| column.name == name).expect(name)];
        assert_eq!(cell("share_gap_backlogged"), Cell::Float(0.25));
        assert_eq!([cell("stranded_cpu"), cell("stranded_memory")], [Cell::Float(0.5); 2]);
        assert_eq!([cell("used_memory"), cell("jain_backlogged")], [Cell::Null; 2]);
    }
}
