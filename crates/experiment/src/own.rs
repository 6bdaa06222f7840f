//! Own metrics of a plan: `[metric.NAME]` with an expression over the columns of jobs.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::OwnMetric;
use plimsoll_base::error::{Error, Result};
use plimsoll_base::units::Dim;
use plimsoll_policies::Registry;
use plimsoll_results::schema::{DIRECTIONS, OWN_UNITS, OwnColumn, Table};

/// A metric as written in the plan.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MetricFile {
    /// The aggregate, such as `mean(wait_s > 60)`.
    pub expr: Option<String>,
    /// Instead of `expr`: the name of a metric of the program that is a function.
    pub function: Option<String>,
    /// `user` for the mean over users of the aggregate of each user's jobs; absent: the aggregate of all jobs.
    pub by: Option<String>,
    /// The unit; absent: none.
    pub unit: Option<String>,
    /// Which direction is better; absent: neither.
    pub better: Option<String>,
}

/// Checks the metrics of a plan, for a cluster with these resources and a program with this registry. Errors: [`Error::Plan`] for an
/// invalid name or value.
pub(super) fn own_metrics(
    files: &BTreeMap<String, MetricFile>,
    dims: &[Dim],
    registry: &Registry,
) -> Result<Vec<OwnMetric>> {
    files.iter().map(|(name, file)| own_metric(name, file, dims, registry)).collect()
}

fn own_metric(name: &str, file: &MetricFile, dims: &[Dim], registry: &Registry) -> Result<OwnMetric> {
    let key = |part: &str| format!("metric.{name}.{part}");
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    if !name.starts_with(|c: char| c.is_ascii_lowercase()) || !name.chars().all(plain) {
        let expected = "a name of small letters, digits and _ that begins with a letter";
        return Err(Error::plan(format!("metric.{name}"), format!("'{name}'"), expected));
    }
    if ["policy", "run", "seed"].contains(&name) || Table::Runs.columns(dims).iter().any(|column| column.name == name) {
        let expected = "a name that no column of the table 'runs' has; `plimsoll schema runs` lists them";
        return Err(Error::plan(format!("metric.{name}"), format!("'{name}'"), expected));
    }
    let by_user = match file.by.as_deref() {
        None => false,
        Some("user") => true,
        Some(other) => return Err(Error::plan(key("by"), format!("'{other}'"), "'user', or no 'by'")),
    };
    let unit = one_of(&key("unit"), file.unit.as_deref().unwrap_or("1"), OWN_UNITS.iter().map(|(name, _)| *name))?;
    let better = file.better.as_deref().unwrap_or("neither");
    let better = one_of(&key("better"), better, DIRECTIONS.iter().map(|(name, _)| *name))?;
    let column = |about: String| OwnColumn { name: name.to_owned(), about, unit, better };
    match (&file.expr, &file.function) {
        (Some(expr), None) => {
            let about = if by_user { format!("{expr}, mean over users") } else { expr.clone() };
            OwnMetric::new(&key("expr"), column(about), expr, by_user)
        }
        (None, Some(function)) if by_user => {
            let expected = "no 'by' beside a function, which receives the users of jobs as a column";
            Err(Error::plan(key("by"), format!("a mean over users of '{function}'"), expected))
        }
        (None, Some(function)) => {
            let found = registry.metric(function).ok_or_else(|| {
                let expected = "a metric of the program: in Python, plimsoll.metric(...), or one that an installed package registers";
                Error::plan(key("function"), format!("'{function}'"), expected)
            })?;
            Ok(OwnMetric::from_function(column(format!("the function {function}")), found.clone()))
        }
        (expr, _) => {
            let given = if expr.is_some() { "'expr' and 'function'" } else { "neither 'expr' nor 'function'" };
            Err(Error::plan(format!("metric.{name}"), given, "one of them"))
        }
    }
}

/// Checks that a value is one of some names.
fn one_of<'a>(key: &str, value: &str, mut names: impl Iterator<Item = &'a str> + Clone) -> Result<String> {
    let known = names.clone().collect::<Vec<_>>().join(", ");
    match names.any(|name| name == value) {
        true => Ok(value.to_owned()),
        false => Err(Error::plan(key, format!("'{value}'"), format!("one of {known}"))),
    }
}
