//! Metrics that a plan defines: `[metric.late] expr = "mean(wait_s > 60)"`.
//!
//! The expression is an aggregate of a value of each finished job that was submitted in the measured window. The value is an expression
//! of the language of mappings over the columns in [`JOB_COLUMNS`]. Sums are in the order of completion. A metric may also be a function
//! of the program over these columns.

use plimsoll_base::checkpoint::{Checkpoint, Visitor};
use plimsoll_base::column::Cell;
use plimsoll_base::error::{Error, Result, did_you_mean};
use plimsoll_base::units::Span;
use plimsoll_base::visit_values;
use plimsoll_metrics::FinishedJob;
use plimsoll_policies::{Code, JOB_COLUMNS, JobColumns, MetricFunction};
use plimsoll_results::schema::OwnColumn;
use plimsoll_sim::record::JobRecord;
use plimsoll_trace_import::Condition;

/// The function that combines the values of jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Aggregate {
    Mean,
    Sum,
    Min,
    Max,
}

/// The aggregates by name.
const AGGREGATES: [(&str, Aggregate); 4] =
    [("mean", Aggregate::Mean), ("sum", Aggregate::Sum), ("min", Aggregate::Min), ("max", Aggregate::Max)];

/// A metric that a plan defines.
#[derive(Clone, Debug)]
pub struct OwnMetric {
    /// Its column in the table `runs`.
    pub column: OwnColumn,
    value: OwnValue,
}

/// The computation of a metric.
#[derive(Clone, Debug)]
enum OwnValue {
    /// An aggregate of a value of each job.
    Aggregate {
        aggregate: Aggregate,
        value: Condition,
        /// Whether the metric is the mean over users of the aggregate of each user's jobs.
        by_user: bool,
    },
    /// A function of all jobs.
    Function(MetricFunction),
}

impl OwnMetric {
    /// Parses the expression of a metric, which is in the plan under `key`. Errors: [`Error::Plan`] with the position of the mistake.
    pub fn new(key: &str, column: OwnColumn, expr: &str, by_user: bool) -> Result<OwnMetric> {
        let names = || AGGREGATES.iter().map(|(name, _)| *name);
        let parts = expr.trim().strip_suffix(')').and_then(|text| text.split_once('('));
        let Some((name, inner)) = parts else {
            let expected = format!("an aggregate such as mean(wait_s > 60): one of {}", list(names()));
            return Err(Error::plan(key, format!("'{expr}'"), expected));
        };
        let name = name.trim();
        let Some((_, aggregate)) = AGGREGATES.iter().find(|(known, _)| *known == name) else {
            let hint = did_you_mean(name, names());
            let expected = format!("one of {} instead of '{name}' at character 1{hint}", list(names()));
            return Err(Error::plan(key, format!("'{expr}'"), expected));
        };
        let value = Condition::parse(key, inner, &JOB_COLUMNS.map(str::to_owned))?;
        Ok(OwnMetric { column, value: OwnValue::Aggregate { aggregate: *aggregate, value, by_user } })
    }

    /// Creates a metric from a function of the program.
    pub fn from_function(column: OwnColumn, function: MetricFunction) -> OwnMetric {
        OwnMetric { column, value: OwnValue::Function(function) }
    }

    /// Returns the source text of the function, if the metric is one.
    pub fn code(&self) -> Option<&Code> {
        match &self.value {
            OwnValue::Function(function) => Some(&function.code),
            OwnValue::Aggregate { .. } => None,
        }
    }
}

fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}

/// The values of the jobs of a user, or of all jobs.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
struct ValueSums {
    /// The number of jobs with a value.
    jobs: u64,
    sum: f64,
    least: Option<f64>,
    largest: Option<f64>,
}

impl ValueSums {
    fn add(&mut self, value: f64) {
        self.jobs += 1;
        self.sum += value;
        self.least = Some(self.least.map_or(value, |least| least.min(value)));
        self.largest = Some(self.largest.map_or(value, |largest| largest.max(value)));
    }

    /// Returns the aggregate; `None` if it has no value.
    fn result(&self, aggregate: Aggregate) -> Option<f64> {
        match aggregate {
            Aggregate::Mean => (self.jobs > 0).then(|| self.sum / self.jobs as f64),
            Aggregate::Sum => Some(self.sum),
            Aggregate::Min => self.least,
            Aggregate::Max => self.largest,
        }
    }
}

/// The metrics of a plan during a run.
pub(super) struct OwnMetrics<'a> {
    metrics: &'a [OwnMetric],
    /// For each metric, the values of each user; of all jobs if the metric is not by user.
    sums: Vec<Vec<ValueSums>>,
    /// All jobs, if a metric is a function.
    columns: Option<JobColumns>,
}

impl<'a> OwnMetrics<'a> {
    /// Creates the state before the first job.
    pub fn new(metrics: &'a [OwnMetric]) -> OwnMetrics<'a> {
        let columns = metrics.iter().any(|metric| metric.code().is_some()).then(JobColumns::default);
        OwnMetrics { metrics, sums: vec![Vec::new(); metrics.len()], columns }
    }

    /// Returns whether the plan defines a metric.
    pub fn is_used(&self) -> bool {
        !self.metrics.is_empty()
    }

    /// Records a finished job that was submitted in the window. Errors: [`Error::Plan`] for a value of another type.
    pub fn job(&mut self, job: &JobRecord, ended: &FinishedJob, user: &str) -> Result<()> {
        let seconds = |span: Span| Cell::Float(span.seconds());
        let slowdown = (ended.ideal > Span::ZERO).then(|| ended.completion().0 as f64 / ended.ideal.0 as f64);
        let cells = [
            Cell::Text(user),
            job.tasks.into(),
            Cell::Float(job.submit.seconds()),
            seconds(ended.wait()),
            seconds(ended.completion()),
            seconds(ended.ideal),
            slowdown.into(),
            job.work.map(|work| work as f64 / 1e6).into(),
        ];
        if let Some(columns) = &mut self.columns {
            add_row(columns, job.user.0, &cells);
        }
        for (metric, sums) in self.metrics.iter().zip(&mut self.sums) {
            let OwnValue::Aggregate { value, by_user, .. } = &metric.value else { continue };
            let value = value.number(&|at| cells[at]).map_err(|problem| {
                let OwnColumn { name, about, .. } = &metric.column;
                Error::plan(format!("metric.{name}"), format!("'{about}'"), format!("numbers; {problem}"))
            })?;
            let place = if *by_user { job.user.index() } else { 0 };
            if sums.len() <= place {
                sums.resize_with(place + 1, ValueSums::default);
            }
            if let Some(value) = value {
                sums[place].add(value);
            }
        }
        Ok(())
    }

    /// Returns the columns of the metrics.
    pub fn columns(&self) -> impl Iterator<Item = &OwnColumn> {
        self.metrics.iter().map(|metric| &metric.column)
    }

    /// Returns the values at the end of the run, in the order of the columns. Errors: those of functions.
    pub fn values(&self) -> Result<Vec<Option<f64>>> {
        let value = |(metric, sums): (&OwnMetric, &Vec<ValueSums>)| match &metric.value {
            OwnValue::Aggregate { aggregate, by_user: true, .. } => {
                let users: Vec<f64> =
                    sums.iter().filter(|user| user.jobs > 0).filter_map(|user| user.result(*aggregate)).collect();
                Ok((!users.is_empty()).then(|| users.iter().sum::<f64>() / users.len() as f64))
            }
            OwnValue::Aggregate { aggregate, .. } => Ok(sums.first().copied().unwrap_or_default().result(*aggregate)),
            OwnValue::Function(function) => function.compute(self.columns.as_ref().unwrap_or(&JobColumns::default())),
        };
        self.metrics.iter().zip(&self.sums).map(value).collect()
    }
}

/// Adds a job with these cells.
fn add_row(columns: &mut JobColumns, user: u32, cells: &[Cell; JOB_COLUMNS.len()]) {
    let [name, numbers @ ..] = cells;
    if columns.users.len() <= user as usize {
        columns.users.resize(user as usize + 1, String::new());
    }
    let known = &mut columns.users[user as usize];
    if let (Cell::Text(name), true) = (name, known.is_empty()) {
        known.push_str(name);
    }
    columns.user.push(user);
    for (column, cell) in columns.numbers.iter_mut().zip(numbers) {
        column.push(match cell {
            Cell::Int(value) => *value as f64,
            Cell::Float(value) => *value,
            _ => f64::NAN,
        });
    }
}

impl Checkpoint for OwnMetrics<'_> {
    fn visit(&mut self, visitor: &mut Visitor) -> Result<()> {
        let OwnMetrics { metrics: _, sums, columns } = self;
        visit_values!(visitor; sums, columns);
        Ok(())
    }
}
