//! Metrics written in Python: functions of the finished jobs of a run.
//!
//! `python/plimsoll/_metrics.py` has the other half: it creates the arrays and calls the user's functions.

use std::sync::Arc;

use plimsoll::policy::{Code, JOB_COLUMNS, JobColumns, MetricFunction};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::policy::Failing;

/// A metric as created by `plimsoll.metric`.
#[derive(FromPyObject)]
pub struct GivenMetric {
    name: String,
    function: Py<PyAny>,
    text: String,
    version: String,
}

impl GivenMetric {
    /// Returns the metric for a registry; `failing` converts its exceptions.
    pub fn into_function(self, failing: impl Fn(&str) -> Failing) -> MetricFunction {
        let GivenMetric { name, function, text, version } = self;
        let (failing, function) = (failing(&name), Arc::new(function));
        MetricFunction::new(name, Code { text, version }, move |jobs| {
            Python::attach(|py| {
                compute(py, &function, jobs).map_err(|raised| failing.error(py, None, &function, raised))
            })
        })
    }
}

/// Calls the function with the columns.
fn compute(py: Python, function: &Py<PyAny>, jobs: &JobColumns) -> PyResult<Option<f64>> {
    let bytes =
        |column: &[f64]| PyBytes::new(py, &column.iter().flat_map(|value| value.to_ne_bytes()).collect::<Vec<_>>());
    let numbers: Vec<_> =
        JOB_COLUMNS[1..].iter().copied().zip(jobs.numbers.iter().map(|column| bytes(column))).collect();
    let user: Vec<u8> = jobs.user.iter().flat_map(|user| user.to_ne_bytes()).collect();
    let arguments = (function, jobs.users.clone(), PyBytes::new(py, &user), numbers);
    py.import("plimsoll._metrics")?.call_method1("compute", arguments)?.extract()
}
