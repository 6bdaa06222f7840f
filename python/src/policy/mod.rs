//! Policies written in Python: an expression, a function that ranks users, or a function that returns how many tasks each user should run.
//!
//! `python/plimsoll/_policies.py` has the other half: it creates the arrays and calls the user's functions.

mod kept;
mod ranked;
mod target;

use std::sync::{Arc, Mutex, PoisonError};

use plimsoll::cli::Stop;
use plimsoll::error::Error;
use plimsoll::policy::{BUILT_IN, Code, NamedPolicy, Registry, Resolve, Setup, order_by};
use plimsoll::units::Time;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use self::ranked::Ranked;
use self::target::Targeted;
use super::metric::GivenMetric;

/// A policy or a metric of the user.
#[derive(FromPyObject)]
pub enum GivenCode {
    /// A policy.
    Policy(GivenPolicy),
    /// A metric.
    Metric(GivenMetric),
}

/// A policy as created by `plimsoll.policy`.
#[derive(FromPyObject)]
pub struct GivenPolicy {
    name: String,
    expression: Option<String>,
    rank: Option<Py<PyAny>>,
    targets: Option<Py<PyAny>>,
    resolve: String,
    order: Option<String>,
    text: String,
    version: String,
}

/// The first exception that the user's code raised in a call.
pub type Raised = Arc<Mutex<Option<PyErr>>>;

/// Creates a registry with these policies and metrics. Raises ValueError for an invalid expression.
pub fn registry(given: Vec<GivenCode>, raised: &Raised, stop: &Stop) -> PyResult<Registry> {
    let failing =
        |kind, name: &str| Failing { kind, name: name.to_owned(), raised: raised.clone(), stop: stop.clone() };
    given.into_iter().try_fold(Registry::new(BUILT_IN), |registry, one| {
        let one = match one {
            GivenCode::Policy(policy) => policy,
            GivenCode::Metric(metric) => {
                return Ok(registry.with_metric(metric.into_function(|name| failing("metric", name))));
            }
        };
        let GivenPolicy { name, expression, rank, targets, resolve, order, text, version } = one;
        let resolve = resolve.parse::<Resolve>().map_err(|error| PyValueError::new_err(error.to_string()))?;
        // The same function may be given as `rank` or `targets`, so the text includes the keyword.
        let text = match (&rank, &targets) {
            (Some(_), _) => {
                let order = order.as_ref().map(|order| format!("order = {order}, ")).unwrap_or_default();
                format!("{order}rank =\n{text}")
            }
            (None, Some(_)) => format!("resolve = {resolve}, targets =\n{text}"),
            (None, None) => text,
        };
        let failing = failing("policy", &name);
        let policy = match (expression, rank, targets) {
            (Some(expression), ..) => {
                let spec = BUILT_IN.parse(&expression).map_err(|error| PyValueError::new_err(error.to_string()))?;
                NamedPolicy::from_spec(name, spec)
            }
            (None, Some(function), _) => {
                let (function, ordered) = (Arc::new(function), order.is_some());
                let order = order.map(|order| order_by(&order)).transpose();
                let job_order =
                    order.map_err(|expected| PyValueError::new_err(format!("order: expected {expected}")))?;
                let mut policy = NamedPolicy::new(name, move |setup| {
                    Ok(Box::new(Ranked::new(&function, setup, failing.clone(), ordered)?))
                });
                policy.job_order = job_order;
                policy
            }
            (None, None, function) => {
                let function = Arc::new(function.ok_or_else(|| PyValueError::new_err("a policy without a function"))?);
                NamedPolicy::new(name, move |setup| {
                    Ok(Box::new(Targeted::new(&function, setup, failing.clone(), resolve)?))
                })
            }
        };
        Ok(registry.with(policy.with_code(Code { text, version })))
    })
}

/// Checks whether a policy is valid, as far as possible without a run. Raises ValueError.
#[pyfunction]
pub fn check_policy(policy: GivenPolicy) -> PyResult<()> {
    registry(vec![GivenCode::Policy(policy)], &Raised::default(), &Stop::default()).map(drop)
}

/// Returns whether a built-in policy has this name.
#[pyfunction]
pub fn is_policy(name: &str) -> bool {
    BUILT_IN.names().any(|known| known == name)
}

/// Converts exceptions into errors of a run.
#[derive(Clone)]
pub struct Failing {
    /// `policy` or `metric`.
    kind: &'static str,
    name: String,
    raised: Raised,
    /// The stop request. It is checked in every call: a call may take long, and the run itself checks only at intervals.
    stop: Stop,
}

impl Failing {
    /// Returns the error for an exception of the function at an instant.
    pub fn error(&self, py: Python, at: Option<Time>, function: &Py<PyAny>, raised: PyErr) -> Error {
        // The value of the exception includes its traceback.
        let value = raised.clone_ref(py).into_value(py);
        let told = || half(py)?.call_method1("told", (value, function))?.extract::<String>();
        let problem = told().unwrap_or_else(|_| raised.to_string());
        let mut first = self.raised.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert(raised);
        Error::CodeFailed { code: format!("{} {}", self.kind, self.name), at, problem }
    }
}

fn half<'py>(py: Python<'py>) -> PyResult<Bound<'py, PyModule>> {
    py.import("plimsoll._policies")
}

/// Returns the names of the resources, and the capacity of the cluster in user units such as cores and GiB.
fn cluster(setup: &Setup) -> (Vec<String>, Vec<f64>) {
    let amount = |(dim, amount): (&plimsoll::units::Dim, u64)| amount as f64 / dim.unit.scale() as f64;
    let names = setup.dims.iter().map(|dim| dim.name.clone()).collect();
    (names, setup.dims.iter().zip(setup.capacity.0).map(amount).collect())
}
