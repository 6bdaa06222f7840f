//! Simulations for agents that learn, which `plimsoll.gym` wraps as environments.

use std::sync::{Mutex, MutexGuard, PoisonError};

use plimsoll::error::Error;
use plimsoll::experiment::gym as settings;
use plimsoll::gym::{Fleet, JobTimes, Step};
use plimsoll::units::Time;
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyByteArray;

/// The observations (float32), masks (uint8), rewards (float64) and ends (uint8) of all simulations, as bytes in native order.
type Seen<'py> = (Bound<'py, PyByteArray>, Bound<'py, PyByteArray>, Bound<'py, PyByteArray>, Bound<'py, PyByteArray>);

/// A job: its name, its user, and the times of its submission, start and end, in seconds.
type Job = (String, String, Option<f64>, Option<f64>, Option<f64>);

/// Simulations of one setting, stepped together on threads without the lock of the interpreter.
#[pyclass(frozen, module = "plimsoll")]
pub struct Simulations {
    /// Locked, so that threads that call at the same time wait for one another.
    fleet: Mutex<Fleet>,
    count: usize,
    shape: (usize, usize),
    actions: usize,
}

#[pymethods]
impl Simulations {
    /// Creates `count` simulations of a setting in TOML. With `begins_anew`, a step after the end of an episode begins the next one.
    /// Raises ValueError for a setting that is not accepted.
    #[new]
    fn new(py: Python, setting: String, count: usize, begins_anew: bool) -> PyResult<Simulations> {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let make = || Fleet::new(settings::setting(&setting)?, count, threads, begins_anew);
        let fleet = py.detach(make).map_err(wrong)?;
        Ok(Simulations { count, shape: fleet.shape(), actions: fleet.actions(), fleet: Mutex::new(fleet) })
    }

    /// Rows and columns of an observation.
    #[getter]
    fn shape(&self) -> (usize, usize) {
        self.shape
    }

    /// The number of actions; the last one waits.
    #[getter]
    fn actions(&self) -> usize {
        self.actions
    }

    /// Begins an episode in each simulation, with a seed or with the next seed of its sequence. Raises ValueError for a workload that is
    /// not accepted.
    fn reset<'py>(&self, py: Python<'py>, seeds: Vec<Option<u64>>) -> PyResult<Seen<'py>> {
        if seeds.len() != self.count {
            let problem = format!("seeds: {} are not accepted; expected {}, one each", seeds.len(), self.count);
            return Err(PyValueError::new_err(problem));
        }
        let steps = py.detach(|| self.fleet().reset(&seeds)).map_err(wrong)?;
        self.seen(py, &steps)
    }

    /// Takes one action in each simulation. Raises ValueError for invalid actions, and for a workload with an error that only the episode
    /// shows.
    fn step<'py>(&self, py: Python<'py>, actions: Vec<i64>) -> PyResult<Seen<'py>> {
        if actions.len() != self.count {
            let problem = format!("actions: {} are not accepted; expected {}, one each", actions.len(), self.count);
            return Err(PyValueError::new_err(problem));
        }
        let all = 0..self.actions;
        let index = |action: &i64| usize::try_from(*action).ok().filter(|index| all.contains(index)).ok_or(*action);
        let indices = actions.iter().map(index).collect::<Result<Vec<usize>, i64>>().map_err(|action| {
            PyValueError::new_err(format!("action: {action} is not accepted; expected 0 to {}", all.end - 1))
        })?;
        let steps = py.detach(|| self.fleet().step(&indices)).map_err(wrong)?;
        self.seen(py, &steps)
    }

    /// Returns the metrics of the last episode that ended in a simulation, by column name of the table `runs`.
    fn metrics(&self, py: Python, number: usize) -> PyResult<Vec<(String, f64)>> {
        self.known(number)?;
        Ok(py.detach(|| self.fleet().simulation(number).metrics().to_vec()))
    }

    /// Returns the jobs of the episode of a simulation: name, user, and times of submission, start and end, in seconds.
    fn jobs(&self, py: Python, number: usize) -> PyResult<Vec<Job>> {
        self.known(number)?;
        let seconds = |time: Option<Time>| time.map(|time| time.seconds());
        let row = |(name, user, times): (String, &str, JobTimes)| {
            (name, user.to_owned(), seconds(times.submit), seconds(times.start), seconds(times.finish))
        };
        Ok(py.detach(|| self.fleet().simulation(number).jobs().map(row).collect()))
    }
}

impl Simulations {
    fn fleet(&self) -> MutexGuard<'_, Fleet> {
        self.fleet.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn known(&self, number: usize) -> PyResult<()> {
        let problem = || PyIndexError::new_err(format!("simulation {number} of {}", self.count));
        (number < self.count).then_some(()).ok_or_else(problem)
    }

    fn seen<'py>(&self, py: Python<'py>, steps: &[Step]) -> PyResult<Seen<'py>> {
        let fleet = self.fleet();
        let observations = fleet.observations();
        let seen = PyByteArray::new_with(py, size_of_val(observations), |bytes| {
            for (to, from) in bytes.chunks_exact_mut(size_of::<f32>()).zip(observations) {
                to.copy_from_slice(&from.to_ne_bytes());
            }
            Ok(())
        })?;
        let rewards: Vec<u8> = steps.iter().flat_map(|step| step.reward.to_ne_bytes()).collect();
        let ends: Vec<u8> = steps.iter().map(|step| u8::from(step.over)).collect();
        let masks = PyByteArray::new(py, fleet.masks());
        Ok((seen, masks, PyByteArray::new(py, &rewards), PyByteArray::new(py, &ends)))
    }
}

fn wrong(error: Error) -> PyErr {
    PyValueError::new_err(error.to_string())
}
