//! Calls of commands with typed arguments.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use plimsoll::cli::{self, Argument, Arguments, Call, Called, Stop, WrongCall};
use plimsoll::document::Document;
use plimsoll::policy::{BUILT_IN, Registry};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use rayon::{ThreadPool, ThreadPoolBuilder};

use super::policy::{GivenCode, Raised, registry};

/// The time between two checks for Ctrl-C.
const LOOK: Duration = Duration::from_millis(50);

/// The number of checks between two progress reports.
const TELL: u32 = 10;

/// Creates threads for a call in a process that was forked (a worker of `multiprocessing`) from a process that had made calls. The threads
/// that calls share do not exist in the fork, so a call would wait for them without end. Returns `None` in any other process. Errors: the
/// system provides no threads.
fn own_threads() -> PyResult<Option<ThreadPool>> {
    static FIRST: OnceLock<u32> = OnceLock::new();
    if *FIRST.get_or_init(std::process::id) == std::process::id() {
        return Ok(None);
    }
    ThreadPoolBuilder::new().build().map(Some).map_err(|error| PyRuntimeError::new_err(error.to_string()))
}

/// The stop requests of the calls in progress.
static OPEN: Mutex<Vec<Stop>> = Mutex::new(Vec::new());

fn open() -> MutexGuard<'static, Vec<Stop>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends all calls in progress in other threads, and waits for their end. Otherwise an interpreter that ends would stop their threads at
/// their next call of a function, in the middle of their work.
#[pyfunction]
pub fn end_calls(py: Python) {
    for stop in open().iter() {
        stop.request();
    }
    py.detach(|| {
        let asked = Instant::now();
        while asked.elapsed() < PATIENCE && !open().is_empty() {
            thread::sleep(Duration::from_millis(5));
        }
    });
}

/// The longest wait for calls to end.
const PATIENCE: Duration = Duration::from_secs(10);

/// A plan, an instance or a state that is not a file.
#[derive(FromPyObject)]
struct GivenDocument {
    name: PathBuf,
    text: String,
}

/// Converts the value of an argument. A value of a type that no argument accepts becomes the name of its type, for a message.
fn argument(value: &Bound<PyAny>) -> PyResult<Argument> {
    if let Ok(truth) = value.extract() {
        return Ok(Argument::Truth(truth));
    }
    if let Ok(number) = value.extract() {
        return Ok(Argument::Whole(number));
    }
    if let Ok(number) = value.extract() {
        return Ok(Argument::Number(number));
    }
    if let Ok(path) = value.extract::<PathBuf>() {
        let text = path.to_str().ok_or_else(|| PyValueError::new_err(format!("{}: is not UTF-8", path.display())))?;
        return Ok(Argument::Text(text.to_owned()));
    }
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        if let Ok(GivenDocument { name, text }) = value.extract() {
            return Ok(Argument::Document(Document::Generated { name, text }));
        }
        return value.try_iter()?.map(|item| argument(&item?)).collect::<PyResult<_>>().map(Argument::List);
    }
    Ok(Argument::Other(value.get_type().name()?.to_string()))
}

/// Converts arguments by name.
fn arguments(given: &Bound<PyDict>) -> PyResult<Arguments> {
    given.iter().map(|(name, value)| Ok((name.extract()?, argument(&value)?))).collect()
}

/// Runs a command such as `replay` or `trace_stats` on a separate thread, without the lock of the interpreter. `given` are the arguments
/// that the calling function sets, and `options` those of its caller.
///
/// Calls `tell` twice a second with a line on the progress of a run.
///
/// Returns the exit code, the output, the problem if the code is not 0, the warnings, and the exception of a user's own policy or metric. Raises
/// TypeError before anything runs for an unknown argument or a value of another type, and KeyboardInterrupt after the work has stopped and
/// its partial files are removed. `solve` cannot be stopped: it continues until its end, and the exception does not wait for it.
#[pyfunction]
#[pyo3(signature = (name, given, options, own=Vec::new(), tell=None))]
pub fn call(
    py: Python,
    name: &str,
    given: &Bound<PyDict>,
    options: &Bound<PyDict>,
    own: Vec<GivenCode>,
    tell: Option<Bound<PyAny>>,
) -> PyResult<(u8, String, String, Vec<String>, Option<PyErr>)> {
    let call = match Call::new(name, arguments(given)?, arguments(options)?) {
        Ok(call) => call,
        Err(WrongCall::Type(problem)) => return Err(PyTypeError::new_err(problem)),
        Err(WrongCall::Input(problem)) => return Ok((2, String::new(), problem, Vec::new(), None)),
    };
    let raised = Raised::default();
    let stop = if tell.is_some() { Stop::with_progress() } else { Stop::default() };
    let registry = registry(own, &raised, &stop)?;
    let mut looks = 0;
    let (sender, mut receiver) = channel();
    let waits = name != "solve";
    let own_threads = own_threads()?;
    let work = {
        let stop = stop.clone();
        move || {
            let work = || call.execute(&registry, &stop);
            let result = match own_threads {
                Some(threads) => threads.install(work),
                None => work(),
            };
            drop(registry);
            open().retain(|other| !other.is(&stop));
            // The error means that the caller no longer waits.
            let _ = sender.send(result);
        }
    };
    open().extend(waits.then(|| stop.clone()));
    thread::Builder::new().name("plimsoll".to_owned()).spawn(work)?;
    loop {
        let result = py.detach(|| {
            let result = receiver.recv_timeout(LOOK);
            (receiver, result)
        });
        receiver = result.0;
        match result.1 {
            Ok(Called { code, printed, problem, warnings }) => {
                let raised = raised.lock().unwrap_or_else(PoisonError::into_inner).take();
                return Ok((code, printed, problem, warnings, raised));
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Err(PyRuntimeError::new_err("the simulator panicked; please report this as a bug"));
            }
            Err(RecvTimeoutError::Timeout) => {
                looks += 1;
                let far = if looks % TELL == 0 { stop.far() } else { String::new() };
                let told = tell.as_ref().filter(|_| !far.is_empty()).map(|tell| tell.call1((far,)));
                if let Err(raised) = py.check_signals().and(told.transpose()) {
                    stop.request();
                    if waits {
                        // The result is not used.
                        let _ = py.detach(move || receiver.recv());
                    }
                    return Err(raised);
                }
            }
        }
    }
}

/// Runs the program as the executable does, with these arguments after its name; returns the exit code.
#[pyfunction]
pub fn main(py: Python, args: Vec<OsString>) -> u8 {
    py.detach(|| cli::execute(&Registry::new(BUILT_IN), args))
}

/// Converts a plan or an instance from JSON to TOML. Raises ValueError for a value that TOML cannot represent.
#[pyfunction]
pub fn toml(json: &str) -> PyResult<String> {
    let table: ::toml::Table = serde_json::from_str(json).map_err(|error| PyValueError::new_err(error.to_string()))?;
    ::toml::to_string(&table).map_err(|error| PyValueError::new_err(error.to_string()))
}
