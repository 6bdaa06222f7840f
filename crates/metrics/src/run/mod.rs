//! The metrics of a run: a file each, or one for a few that belong together, with their columns beside their computation.
//!
//! A metric is computed of the totals of the run ([`Run`]), or is the mean of a value of its states on the sampling grid
//! ([`Sample`]).

use plimsoll_base::column::{Cell, Column, Computed, Described, Kind, Subject, Unit, Value};
use plimsoll_base::units::{Dim, MAX_DIMS, Resources, Span, Time};
use plimsoll_sim::books::Books;
use plimsoll_sim::engine::Outcome;
use plimsoll_sim::record::State;

mod counts;
pub mod delay;
pub mod deviation;
pub mod envy;
pub mod fairness;
mod fragmentation;
pub mod incentive;
mod sample;
mod speed;
pub mod stranded;
mod totals;
mod utilisation;
mod waits;

pub use sample::Sample;
pub use totals::Totals;
pub(crate) use totals::mean_s;

use delay::Summary;

/// The metrics of a run, in the order of their columns.
static METRICS: [&Metrics; 14] = [
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
    &counts::BESIDES,
];

/// Columns that belong together: of the table `runs`, and of the table `fairness`.
struct Metrics {
    runs: &'static [Column<How>],
    fairness: &'static [Column<Value<Points>>],
}

/// A run that has ended.
#[derive(Clone, Debug)]
pub struct Run<'a> {
    /// The name of its workload.
    pub workload: &'a str,
    /// How many machines there are.
    pub machines: u64,
    /// How many users appeared.
    pub users: u64,
    /// The capacity of all machines.
    pub capacity: Resources,
    /// The same as the policy sees it: slots, or the one resource that it reserves.
    pub offered: Resources,
    /// Counts of the engine.
    pub outcome: Outcome,
    /// Sums and counts.
    pub totals: &'a Totals,
    /// How much of the time from the first submission to the end is measured.
    pub measured: Span,
    /// How much of that to the last submission.
    pub arriving: Span,
    /// The speeds of all users with work.
    pub speeds: Vec<f64>,
    /// Completion times of finished jobs, in seconds.
    pub completion: Option<Summary>,
    /// Waits of finished jobs, in seconds.
    pub wait: Option<Summary>,
    /// Slowdowns of finished jobs.
    pub slowdown: Option<Summary>,
    /// The step of the sampling grid.
    pub step: Span,
}

/// The subject of the table `runs`.
pub struct Runs;

impl Subject for Runs {
    type Row<'a> = Run<'a>;
}

/// A grid point.
#[derive(Clone, Copy, Debug)]
pub struct Point<'a> {
    /// When it is.
    pub at: Time,
    /// The values that were evaluated there.
    pub sample: &'a Sample,
    /// The state of the run.
    pub books: &'a Books,
}

/// The subject of the table `fairness`.
pub struct Points;

impl Subject for Points {
    type Row<'a> = Point<'a>;
}

/// How a metric of a run is computed.
#[derive(Clone, Copy)]
enum How {
    /// At the end of the run.
    End(Value<Runs>),
    /// The mean over the grid points at which somebody waits and it has a value.
    Mean(fn(&Sample) -> Option<f64>),
    /// Such a mean a resource.
    Means(fn(&Sample, usize) -> Option<f64>),
    /// The mean over all grid points at which it has a value.
    Always(fn(&State) -> Option<f64>),
}

impl Computed for How {
    fn kind(&self) -> Kind {
        if let How::End(value) = self { value.kind() } else { Kind::Float }
    }

    fn each(&self) -> bool {
        match self {
            How::End(value) => value.each(),
            How::Means(_) => true,
            How::Mean(_) | How::Always(_) => false,
        }
    }
}

const fn int(name: &'static str, about: &'static str, of: for<'a> fn(&'a Run<'a>) -> Option<u64>) -> Column<How> {
    Column::new(name, about, How::End(Value::<Runs>::Int(of)))
}

const fn micros(name: &'static str, about: &'static str, of: for<'a> fn(&'a Run<'a>) -> Option<u64>) -> Column<How> {
    int(name, about, of).unit(Unit::Micros)
}

const fn float(name: &'static str, about: &'static str, of: for<'a> fn(&'a Run<'a>) -> Option<f64>) -> Column<How> {
    Column::new(name, about, How::End(Value::<Runs>::Float(of)))
}

const fn seconds(name: &'static str, about: &'static str, of: for<'a> fn(&'a Run<'a>) -> Option<f64>) -> Column<How> {
    float(name, about, of).unit(Unit::Seconds)
}

/// A share of each resource.
const fn shares(
    name: &'static str,
    about: &'static str,
    of: for<'a> fn(&'a Run<'a>, usize) -> Option<f64>,
) -> Column<How> {
    Column::new(name, about, How::End(Value::<Runs>::Floats(of))).unit(Unit::Share)
}

/// A mean over the grid points at which somebody waits.
const fn mean(name: &'static str, about: &'static str, of: fn(&Sample) -> Option<f64>) -> Column<How> {
    Column::new(name, about, How::Mean(of))
}

/// The columns of the table `runs` with these resources.
pub fn runs_columns(dims: &[Dim]) -> Vec<Described> {
    runs().flat_map(|column| column.described(dims)).collect()
}

/// The columns of the table `fairness`.
pub fn fairness_columns() -> Vec<Column<Value<Points>>> {
    METRICS.iter().flat_map(|metrics| metrics.fairness).copied().collect()
}

fn runs() -> impl Iterator<Item = &'static Column<How>> {
    METRICS.iter().flat_map(|metrics| metrics.runs)
}

/// A mean over grid points at which the value exists.
#[derive(Clone, Copy, Debug, Default)]
struct GridMean {
    sum: f64,
    points: u64,
}

impl GridMean {
    /// A value that holds at so many grid points.
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

/// The means over the sampling grid, of the metrics that are such.
pub struct GridMeans {
    dims: usize,
    /// A metric on the grid and its means: one, or one a resource.
    means: Vec<(How, [GridMean; MAX_DIMS])>,
}

impl GridMeans {
    /// None yet, over so many resources.
    pub fn new(dims: usize) -> GridMeans {
        let on_grid = runs().map(|column| column.value).filter(|how| !matches!(how, How::End(_)));
        GridMeans { dims, means: on_grid.map(|how| (how, Default::default())).collect() }
    }

    /// Adds a state that holds at so many grid points, whether or not anybody waits.
    pub fn watch(&mut self, state: &State, points: u64) {
        for (how, means) in &mut self.means {
            if let How::Always(of) = how {
                means[0].add(of(state), points);
            }
        }
    }

    /// Adds a sample that holds at so many grid points. Nothing is unfair while nobody waits.
    pub fn add(&mut self, sample: &Sample, points: u64) {
        if sample.backlogged.is_empty() {
            return;
        }
        for (how, means) in &mut self.means {
            match how {
                How::Mean(of) => means[0].add(of(sample), points),
                How::Means(of) => {
                    means.iter_mut().take(self.dims).enumerate().for_each(|(d, mean)| mean.add(of(sample, d), points));
                }
                How::End(_) | How::Always(_) => {}
            }
        }
    }

    /// The row of a run in the table `runs`: its cells, in the order of [`runs_columns`].
    pub fn row<'a>(&'a self, run: &'a Run<'a>) -> Vec<Cell<'a>> {
        let mut on_grid = self.means.iter();
        let mut cells = Vec::new();
        for Column { value, .. } in runs() {
            let width = if value.each() { self.dims } else { 1 };
            match value {
                How::End(value) => cells.extend((0..width).map(|d| value.cell(run, d))),
                _ => cells
                    .extend(on_grid.next().iter().flat_map(|(_, means)| &means[..width]).map(|m| Cell::from(m.mean()))),
            }
        }
        cells
    }
}
