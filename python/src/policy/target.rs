//! Targets from a Python function.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use plimsoll::books::Books;
use plimsoll::error::Result;
use plimsoll::fair::Problem;
use plimsoll::policy::{Capabilities, Needs, Policy, Queue, Rank, Resolve, Setup, Stale, Target, TargetSolver};
use plimsoll::units::{Time, UserId};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::{Failing, cluster, half};

/// A target solver in Python.
struct Solver {
    failing: Failing,
    function: Arc<Py<PyAny>>,
    solver: Py<PyAny>,
    at: Arc<AtomicU64>,
}

impl Solver {
    fn new(function: &Arc<Py<PyAny>>, setup: &Setup, failing: Failing, at: Arc<AtomicU64>) -> Result<Solver> {
        let (names, amounts) = cluster(setup);
        let solver = Python::attach(|py| {
            let made = half(py).and_then(|half| half.call_method1("Solver", (&**function, names, amounts)));
            made.map(Bound::unbind).map_err(|raised| failing.error(py, None, function, raised))
        })?;
        Ok(Solver { failing, function: function.clone(), solver, at })
    }
}

impl TargetSolver for Solver {
    fn solve(&mut self, problem: &Problem, targets: &mut Vec<f64>) -> Result<()> {
        self.failing.stop.check()?;
        Python::attach(|py| {
            let bytes = |values: &[f64]| {
                let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
                PyBytes::new(py, &bytes)
            };
            let demand = bytes(&problem.columns().concat());
            let args = (demand, bytes(problem.weight()), bytes(problem.tasks()));
            let found = self.solver.call_method1(py, "ask", args).and_then(|found| found.extract::<Vec<f64>>(py));
            let at = Time(self.at.load(Ordering::Relaxed));
            targets.extend(found.map_err(|raised| self.failing.error(py, Some(at), &self.function, raised))?);
            Ok(())
        })
    }
}

/// A target policy that passes the current time to its solver.
pub struct Targeted {
    policy: Target<Solver>,
    at: Arc<AtomicU64>,
}

impl Targeted {
    /// Errors: weights by resource, or arrays that cannot be created.
    pub fn new(function: &Arc<Py<PyAny>>, setup: &Setup, failing: Failing, resolve: Resolve) -> Result<Targeted> {
        let (at, name) = (Arc::new(AtomicU64::new(0)), failing.name.clone());
        let solver = Solver::new(function, setup, failing, at.clone())?;
        Ok(Targeted { policy: Target::new(&name, setup, solver, resolve)?, at })
    }
}

impl Policy for Targeted {
    fn needs(&self) -> Needs {
        self.policy.needs()
    }

    fn prepare(&mut self, now: Time, books: &Books, changed: &[UserId]) -> Result<Stale> {
        self.at.store(now.0, Ordering::Relaxed);
        self.policy.prepare(now, books, changed)
    }

    fn rank(&self, queue: &Queue, books: &Books) -> Rank {
        self.policy.rank(queue, books)
    }

    fn settled(&mut self, now: Time, changed: &[UserId], books: &Books) -> Option<Time> {
        self.policy.settled(now, changed, books)
    }
}

impl Capabilities for Targeted {}
