//! The figures of a plan with accelerators: mean completion times by the rate of arrivals and by the values of each numeric axis of the
//! sweep, and the distribution of completion times.

use super::execute::StoredRun;
use super::study::AcceleratorStudy;
use super::tables::jobs_of;
use plimsoll_base::error::Result;
use plimsoll_base::units::{Span, span};
use plimsoll_charts::figure::{Axis, Chart, Data, Join, Panel, Series, cdf_panels, ecdf, small_multiples};
use plimsoll_figures::gallery::Drawn;
use plimsoll_metrics::compare::LEVEL;
use plimsoll_metrics::{Interval, mean_interval};
use plimsoll_store::table::Constant;

/// The maximum number of panels of a figure; the data of the figure has all.
const PANELS: usize = 12;

/// The runs of a policy at a rate in a cell, over all lists of jobs.
struct RunGroup<'a> {
    runs: &'a [StoredRun],
}

impl RunGroup<'_> {
    fn mean(&self, column: &str) -> Option<Interval> {
        let values: Vec<f64> = self.runs.iter().filter_map(|run| run.summary.number(column)).collect();
        mean_interval(&values, LEVEL)
    }
}

/// Splits the runs into groups of a cell, a policy and a rate.
fn groups(runs: &[StoredRun]) -> impl Iterator<Item = RunGroup<'_>> {
    let same = |a: &StoredRun, b: &StoredRun| {
        (a.index.cell, a.index.policy, a.index.rate_at) == (b.index.cell, b.index.policy, b.index.rate_at)
    };
    runs.chunk_by(same).map(|runs| RunGroup { runs })
}

/// The values of an axis as numbers.
pub struct AxisValues {
    /// The column.
    pub column: String,
    /// The label of the axis in figures.
    label: String,
    /// Whether the values are seconds.
    is_time: bool,
    /// The value of each cell.
    values: Vec<f64>,
}

impl AxisValues {
    /// Returns the numeric axes of a study: the first column of each axis that has at least two different numbers. Time spans are numbers of
    /// seconds, and clusters are their numbers of accelerators unless these are equal.
    pub fn all(study: &AcceleratorStudy) -> Vec<AxisValues> {
        let columns = |axis: &Vec<String>| axis.iter().find_map(|column| AxisValues::of_column(study, column));
        study.axes.iter().filter_map(columns).collect()
    }

    fn of_column(study: &AcceleratorStudy, column: &str) -> Option<AxisValues> {
        let texts = || study.cells.iter().filter_map(|cell| Some(&cell.axes.iter().find(|axis| axis.0 == column)?.1));
        let label = short(column).replace('_', " ");
        let mut axis = AxisValues { column: column.to_owned(), label, is_time: false, values: Vec::new() };
        let number = |value: &Constant| match value {
            Constant::Int(value) => Some(*value as f64),
            Constant::Float(value) => Some(*value),
            _ => None,
        };
        let time = |value: &Constant| match value {
            Constant::Text(text) => span(text).ok().map(Span::seconds),
            _ => None,
        };
        if let Some(values) = texts().map(number).collect() {
            axis.values = values;
        } else if let Some(values) = texts().map(time).collect() {
            (axis.values, axis.is_time) = (values, true);
        } else if column == "accelerators_machines" {
            let accelerators = |cell: &super::AcceleratorCell| cell.setup.cluster.capacity().iter().sum::<u32>();
            axis.values = study.cells.iter().map(|cell| f64::from(accelerators(cell))).collect();
            axis.label = "accelerators".to_owned();
            let mut numbers: Vec<(&f64, String)> = axis.values.iter().zip(texts().map(shown)).collect();
            numbers.sort_by(|a, b| a.0.total_cmp(b.0).then_with(|| a.1.cmp(&b.1)));
            numbers.dedup();
            if numbers.windows(2).any(|pair| pair[0].0 == pair[1].0) {
                return None;
            }
        } else {
            return None;
        }
        axis.values.iter().any(|value| *value != axis.values[0]).then_some(axis)
    }

    fn axis(&self) -> Axis {
        let mut label = self.label.clone();
        if let Some(first) = label.get_mut(..1) {
            first.make_ascii_uppercase();
        }
        if self.is_time { Axis::seconds(label) } else { Axis::number(label) }
    }
}

fn shown(value: &Constant) -> String {
    crate::study::shown(value)
}

/// Returns the name of a column without its table.
fn short(column: &str) -> &str {
    column.strip_prefix("accelerators_").unwrap_or(column)
}

/// Returns the figures of complete runs. Errors: a table of a run is damaged.
pub fn figures(study: &AcceleratorStudy, runs: &[StoredRun]) -> Result<Vec<Drawn>> {
    let mut drawn = Vec::new();
    if study.cells.iter().any(|cell| cell.setup.rates.len() > 1) {
        let rate = |group: &RunGroup<'_>| group.runs[0].summary.jobs_per_hour;
        let panel = |group: &RunGroup<'_>| title(study, group, &[], false);
        let axis = Axis::number("Jobs per hour");
        drawn.push(by_axis(
            study,
            runs,
            ("completion-by-rate", "the rate of arrivals", "jobs_per_hour", axis),
            &rate,
            &panel,
        ));
    }
    for axis in AxisValues::all(study) {
        let together = study.axes.iter().find(|columns| columns.contains(&axis.column)).cloned().unwrap_or_default();
        let value = |group: &RunGroup<'_>| Some(axis.values[group.runs[0].index.cell]);
        let panel = |group: &RunGroup<'_>| title(study, group, &together, true);
        let name = format!("completion-by-{}", short(&axis.column).replace('_', "-"));
        let by = axis.label.clone();
        drawn.push(by_axis(study, runs, (&name, &by, &axis.column, axis.axis()), &value, &panel));
    }
    drawn.push(distribution(study, runs)?);
    Ok(drawn)
}

/// Returns the title of the panel that shows a group: its axes except `without`, and its rate if the plan has several.
fn title(study: &AcceleratorStudy, group: &RunGroup<'_>, without: &[String], with_rate: bool) -> String {
    let cell = &study.cells[group.runs[0].index.cell];
    let axes = cell.axes.iter().filter(|(column, _)| !without.contains(column));
    let mut parts: Vec<String> = axes.map(|(column, value)| format!("{} {}", short(column), shown(value))).collect();
    if with_rate && cell.setup.rates.len() > 1 {
        parts.extend(group.runs[0].summary.jobs_per_hour.map(|rate| format!("{rate} jobs/h")));
    }
    parts.join(", ")
}

fn chart(study: &AcceleratorStudy, x: Axis, y: Axis, panels: usize) -> Chart {
    let columns = (panels > 1).then_some(panels.min(3));
    study.paper.fit(Chart { size_pt: (Chart::PAGE.0, 190.0), columns, ..Chart::new(x, y) }, panels)
}

/// Returns the column of the titles of panels in the data of a figure; empty if the only panel has none.
fn panel_column(panels: &[Panel]) -> &'static str {
    if panels.iter().all(|panel| panel.title.is_empty()) { "" } else { "panel" }
}

/// Returns the sentence about panels that are not drawn.
fn omitted(panels: usize) -> String {
    if panels > PANELS { format!(" The first {PANELS} of {panels} combinations are drawn.") } else { String::new() }
}

/// Draws the mean completion time by a number of each group, with a curve per policy and a panel per title.
fn by_axis(
    study: &AcceleratorStudy,
    runs: &[StoredRun],
    (name, by, column, axis): (&str, &str, &str, Axis),
    number: &dyn Fn(&RunGroup<'_>) -> Option<f64>,
    title: &dyn Fn(&RunGroup<'_>) -> String,
) -> Drawn {
    /// The points of a curve: value of the axis, and mean.
    type Points = Vec<(f64, Interval)>;
    let policies = &study.cells[0].setup.policies;
    let mut panels: Vec<(String, Vec<Points>)> = Vec::new();
    for group in groups(runs) {
        let (Some(x), Some(mean)) = (number(&group), group.mean("completion_mean_s")) else { continue };
        let title = title(&group);
        let at = panels.iter().position(|(known, _)| *known == title).unwrap_or_else(|| {
            panels.push((title, vec![Vec::new(); policies.len()]));
            panels.len() - 1
        });
        panels[at].1[group.runs[0].index.policy].push((x, mean));
    }
    let series = |(policy, mut points): (usize, Points)| {
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        let band = points.iter().map(|(x, mean)| Some((*x, mean.low?, mean.high?))).collect::<Option<Vec<_>>>();
        let line = points.iter().map(|(x, mean)| (*x, mean.mean)).collect();
        Series { band, ..Series::new(policies[policy].name, line) }
    };
    let panel = |(title, curves): (String, Vec<Points>)| Panel {
        title,
        series: curves.into_iter().enumerate().map(series).collect(),
    };
    let panels: Vec<Panel> = panels.into_iter().map(panel).collect();
    let first = &panels[..panels.len().min(PANELS)];
    Drawn {
        name: name.to_owned(),
        caption: format!(
            "Mean completion time of the measured jobs by {by}, with 95 % confidence intervals over the lists of jobs.{}",
            omitted(panels.len())
        ),
        svg: small_multiples(
            &chart(study, axis, Axis::seconds("Mean completion time"), first.len()),
            Join::Straight,
            first,
        ),
        data: Data::of_panels([panel_column(&panels), "policy", column, "completion_mean_s"], &panels),
    }
}

/// Draws the distribution of completion times at the first rate, with a panel per cell. The jobs of one run are in memory at a time, and the
/// completion times of the drawn cells. Errors: a table of a run is damaged.
fn distribution(study: &AcceleratorStudy, runs: &[StoredRun]) -> Result<Drawn> {
    let mut panels = Vec::new();
    for (at, cell) in study.cells.iter().enumerate().take(PANELS) {
        let mut series = Vec::new();
        for (policy, row) in cell.setup.policies.iter().enumerate() {
            let own =
                runs.iter().filter(|run| (run.index.cell, run.index.policy, run.index.rate_at) == (at, policy, 0));
            let mut times = Vec::new();
            for run in own {
                times.extend(completion_times(study, run)?);
            }
            series.push(Series::new(row.name, ecdf(&times)));
        }
        panels.push(Panel { title: cell.name.clone(), series });
    }
    let rates = || study.cells.iter().map(|cell| cell.setup.rates.first());
    let first = rates().next().flatten().filter(|first| rates().all(|rate| rate == Some(first)));
    let rate = first.map(|&rate| format!(" at {} jobs per hour", rate as f64 / 1000.0)).unwrap_or_default();
    let chart = chart(study, Axis::seconds("Completion time").log(), Axis::fraction("Jobs"), panels.len());
    Ok(Drawn {
        name: "completion".to_owned(),
        caption: format!(
            "Distribution of the completion times of the measured jobs{rate}.{}",
            omitted(study.cells.len())
        ),
        svg: cdf_panels(&chart, &panels),
        data: Data::of_panels([panel_column(&panels), "policy", "completion_s", "jobs"], &panels),
    })
}

/// Returns the completion times of the measured jobs of a run, in seconds.
fn completion_times(study: &AcceleratorStudy, run: &StoredRun) -> Result<Vec<f64>> {
    let window = study.cells[run.index.cell].setup.measured(run.index.run);
    let frame = jobs_of(run)?;
    let [jobs, submit, finish] = ["job", "submit_us", "finish_us"].map(|name| frame.numbers(name));
    let (jobs, submit, finish) = (jobs?, submit?, finish?);
    let time = |((job, submit), finish): ((Option<f64>, Option<f64>), Option<f64>)| {
        let micros = finish? - submit?;
        window.contains(job? as u32).then(|| Span(micros as u64).seconds())
    };
    Ok(jobs.into_iter().zip(submit).zip(finish).filter_map(time).collect())
}
