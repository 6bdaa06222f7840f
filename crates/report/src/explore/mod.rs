//! The data of the interactive part of the report: metrics of all runs, and the jobs and series of some runs.
//!
//! The page is complete without it. Metrics have the means and intervals of the tables; times of jobs are rounded to milliseconds.

mod jobs;
mod pack;
mod simulate;

use maud::Markup;
use plimsoll_base::column::{Better, Unit};
use plimsoll_base::error::Result;
use plimsoll_base::escape::script_json;
use plimsoll_base::units::resource_name;
use plimsoll_charts::figure::{line_styles, time_unit};
use plimsoll_figures::requests::{Whole, heading};
use plimsoll_metrics::compare::LEVEL;
use plimsoll_metrics::numbers::capital;
use plimsoll_metrics::run::delay::{FIG_14_BOUNDS, FIG_14_LABELS};
use plimsoll_metrics::student::t_quantile;
use plimsoll_results::read::Results;
use plimsoll_results::schema::Table;
use serde::Serialize;
use serde_json::{Value, json};

use crate::html::data_section;
use crate::page::mean;
use pack::Pack;

/// The scripts of the interactive part, after uPlot.
pub(crate) const EXPLORE: &str = concat!(
    include_str!("elements.js"),
    include_str!("timeline.js"),
    include_str!("bins.js"),
    include_str!("explore.js")
);
pub(crate) use simulate::SIMULATE;
pub use simulate::{SimulatorControls, SimulatorData};

/// The axes of a sweep: labels and values as text.
pub(crate) type Axes = [(String, Vec<String>)];

/// Returns the axes of a sweep.
pub(crate) fn axes(whole: &Whole) -> Vec<(String, Vec<String>)> {
    let scope = whole.scope();
    let named = |(at, (_, values)): (usize, &(String, Vec<String>))| (capital(&scope.axis_heading(at)), values.clone());
    scope.axes.iter().enumerate().map(named).collect()
}

/// A cell: its name, its values on the axes, and its results.
pub(crate) type ExploredCell<'a> = (&'a str, &'a [String], &'a Results);

/// The largest number of values of single runs, by metric, cell, policy and seed.
const VALUES_MOST: usize = 60_000;

/// The largest number of means, by metric, cell and policy. Above it only the metrics of the summary are included.
const MEANS_MOST: usize = 100_000;

/// The data of the interactive part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExplorerData {
    /// Names, units and columns as JSON.
    pub header: String,
    /// The columns, compressed, in base64.
    pub block: String,
}

impl ExplorerData {
    /// Formats the section of the page; a script shows it.
    pub(crate) fn section(&self) -> Markup {
        let header = script_json(&self.header);
        let blocks = [("application/json", "header", header.as_str()), ("text/plain", "block", &self.block)];
        data_section("explore", "Explore", &blocks)
    }
}

/// The explanation of a job's wait.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JobStory {
    /// The policy.
    pub policy: String,
    /// The number of the run among those of the policy.
    pub run: usize,
    /// The name of the job.
    pub job: String,
    /// The explanation in sentences.
    pub sentences: Vec<String>,
    /// The intervals of the wait: start and end in seconds, and the reason.
    pub intervals: Vec<(f64, f64, String)>,
}

/// A metric of the table of runs.
struct ExploredMetric {
    column: String,
    about: String,
    unit: Unit,
    better: Better,
    is_headline: bool,
}

/// Returns the data of results, of one cell or of a sweep. `stories` explain some jobs. Errors: those of the tables.
pub(crate) fn data(cells: &[ExploredCell], axes: &Axes, stories: &[JobStory]) -> Result<Option<ExplorerData>> {
    let Some((.., first)) = cells.first() else { return Ok(None) };
    let contents = &first.contents;
    let names: Vec<&str> = contents.policies.iter().map(String::as_str).collect();
    let mut pack = Pack::default();
    let metrics = add_metrics(&mut pack, cells)?;
    let alone = cells.len() == 1 && axes.is_empty();
    let (jobs, (with_series, series)) = match alone {
        true => (jobs::add(&mut pack, first)?, jobs::add_series(&mut pack, first)?),
        false => Default::default(),
    };
    let (columns, block) = pack.finish();
    let policies = names.iter().zip(line_styles(&names));
    let policies: Vec<Value> =
        policies.map(|(name, style)| json!({ "name": name, "color": style.color, "dash": style.dash })).collect();
    let metrics: Vec<Value> = metrics
        .iter()
        .map(|metric| {
            json!({
                "column": metric.column, "title": heading(&metric.column, &first.dims), "about": metric.about,
                "unit": metric.unit.name(), "key": metric.is_headline,
                "better": match metric.better {
                    Better::Lower => "lower",
                    Better::Higher => "higher",
                    Better::Neither => "",
                },
            })
        })
        .collect();
    let axes: Vec<Value> = axes.iter().map(|(name, values)| json!({ "title": name, "values": values })).collect();
    let cells = cells.iter().map(|(_, values, _)| json!({ "values": values }));
    let titles = |column: &String| match column.strip_prefix("used_") {
        Some(resource) => {
            let dim = first.dims.iter().find(|dim| dim.column() == resource).map_or(resource, |dim| &dim.name);
            json!({ "column": column, "title": format!("{} in use", capital(&resource_name(dim))), "unit": "share" })
        }
        None => {
            let title = match column.as_str() {
                "waiting" => "Waiting tasks",
                "running" => "Running tasks",
                "backlogged_users" => "Users with waiting tasks",
                _ => "Jain index of users with waiting tasks",
            };
            json!({ "column": column, "title": title, "unit": if column.starts_with("jain") { "index" } else { "1" } })
        }
    };
    let header = json!({
        "policies": policies, "baseline": contents.baseline, "level": LEVEL,
        "metrics": metrics, "axes": axes, "cells": cells.collect::<Vec<_>>(), "width": first.width(),
        "seeds": contents.seeds, "runs": jobs.runs, "withTasks": jobs.with_tasks, "firstRun": first.first_run(),
        "series": series.iter().map(titles).collect::<Vec<_>>(), "withSeries": with_series, "columns": columns,
        "stories": stories, "bins": bins(), "students": students(first.width()), "clock": clock(first, alone)?,
    });
    Ok(Some(ExplorerData { header: header.to_string(), block }))
}

/// Returns the ranges of job sizes: the label, and the largest number of tasks; the last range has no limit.
fn bins() -> Vec<(&'static str, Option<u64>)> {
    let most = FIG_14_BOUNDS.into_iter().map(Some).chain([None]);
    FIG_14_LABELS.into_iter().zip(most).collect()
}

/// Returns the factors of standard errors for intervals over 2, 3, .. `most` values.
fn students(most: usize) -> Vec<Option<f64>> {
    (2..=most).map(|values| t_quantile(LEVEL, values as f64 - 1.0)).collect()
}

/// Returns the unit of points in time: that of the figures over time of the first run.
fn clock(results: &Results, alone: bool) -> Result<Value> {
    let mut last = 0.0f64;
    if alone {
        for (table, column) in [(Table::Fairness, "time_us"), (Table::Jobs, "finish_us")] {
            for part in results.table(table, &[column], Some(results.first_run()))? {
                last = part.numbers(column)?.into_iter().flatten().fold(last, f64::max);
            }
            if last > 0.0 {
                break;
            }
        }
    }
    let (unit, seconds) = time_unit(last / 1e6);
    Ok(json!({ "unit": unit, "seconds": seconds }))
}

/// Adds the means and intervals of the metrics, by metric, cell and policy, and the values of single runs if there are few. A metric
/// without values is omitted.
fn add_metrics(pack: &mut Pack, cells: &[ExploredCell]) -> Result<Vec<ExploredMetric>> {
    let (.., first) = cells[0];
    let own = first.own.iter().map(|column| column.described());
    let described = Table::Runs.columns(&first.dims).into_iter().chain(own);
    let mut metrics: Vec<ExploredMetric> = described
        .filter(|column| column.headline.is_some() || !column.words.is_empty())
        .map(|column| ExploredMetric {
            is_headline: column.headline.is_some(),
            column: column.name,
            about: column.about,
            unit: column.unit,
            better: column.better,
        })
        .collect();
    let policies = first.contents.policies.len();
    if metrics.len() * cells.len() * policies > MEANS_MOST {
        metrics.retain(|metric| metric.is_headline);
    }
    let names: Vec<&str> = metrics.iter().map(|metric| metric.column.as_str()).collect();
    // By metric, cell, policy and run.
    let width = cells.iter().map(|(.., results)| results.width()).max().unwrap_or(0);
    let size = policies * width;
    let mut values: Vec<Option<f64>> = vec![None; names.len() * cells.len() * size];
    for (cell, (.., results)) in cells.iter().enumerate() {
        for part in results.table(Table::Runs, &names, None)? {
            for (metric, name) in names.iter().enumerate() {
                let value = part.numbers(name)?.first().copied().flatten().filter(|value| value.is_finite());
                values[(metric * cells.len() + cell) * size + part.policy * width + part.run] = value;
            }
        }
    }
    let per_metric = cells.len() * size;
    let has_values: Vec<bool> = values.chunks(per_metric.max(1)).map(|all| all.iter().any(Option::is_some)).collect();
    let mut keep = has_values.iter();
    metrics.retain(|_| keep.next().copied().unwrap_or(false));
    let values: Vec<Option<f64>> = values
        .chunks(per_metric.max(1))
        .zip(&has_values)
        .filter(|(_, has)| **has)
        .flat_map(|(all, _)| all.iter().copied())
        .collect();
    let intervals: Vec<_> = values.chunks(width.max(1)).map(mean).collect();
    pack.numbers("mean", &intervals.iter().map(|one| one.map(|one| one.mean)).collect::<Vec<_>>(), false);
    pack.numbers("low", &intervals.iter().map(|one| one.and_then(|one| one.low)).collect::<Vec<_>>(), false);
    pack.numbers("high", &intervals.iter().map(|one| one.and_then(|one| one.high)).collect::<Vec<_>>(), false);
    if values.len() <= VALUES_MOST {
        pack.numbers("values", &values, false);
    }
    Ok(metrics)
}
