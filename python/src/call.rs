//! The command line, called.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use plimsoll::cli::{self, Called, Stop};
use plimsoll::policy::Registry;
use plimsoll::rows::with_text;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use super::policy::{GivenPolicy, Raised, registry};

/// Between two looks at whether Ctrl-C was pressed.
const LOOK: Duration = Duration::from_millis(50);

/// Looks between two words on how far the work is.
const TELL: u32 = 10;

/// Threads for a call in a process that was forked (a worker of `multiprocessing`) from one that had made calls: of the threads which calls
/// share there it has none, and would wait for them forever. `None` in any other process. Errors: the system gives no threads.
fn own_threads() -> PyResult<Option<ThreadPool>> {
    static FIRST: OnceLock<u32> = OnceLock::new();
    if *FIRST.get_or_init(std::process::id) == std::process::id() {
        return Ok(None);
    }
    ThreadPoolBuilder::new().build().map(Some).map_err(|error| PyRuntimeError::new_err(error.to_string()))
}

/// The calls that go on, each as what ends it.
static OPEN: Mutex<Vec<Stop>> = Mutex::new(Vec::new());

fn open() -> MutexGuard<'static, Vec<Stop>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends all calls that go on in other threads, and waits until they have: an interpreter that ends would end their threads in the middle
/// of whatever they do when they call a function next.
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

/// Runs the program with these arguments on a thread of its own, without the lock of the interpreter. A text, if there is one, is
/// found under its name as if it were a file's.
///
/// `tell`, if there is one, hears twice a second how far a run is, in a line.
///
/// Returns the exit code, what was printed, what is wrong if the code is not 0, the warnings, and what a policy of the user's own raised. Raises
/// KeyboardInterrupt, once what goes on has ended and dropped what it had half written; `solve` asks nobody and is left to end by itself.
#[pyfunction]
#[pyo3(signature = (args, text=None, policies=Vec::new(), tell=None))]
pub fn call(
    py: Python,
    args: Vec<OsString>,
    text: Option<(PathBuf, String)>,
    policies: Vec<GivenPolicy>,
    tell: Option<Bound<PyAny>>,
) -> PyResult<(u8, String, String, Vec<String>, Option<PyErr>)> {
    let raised = Raised::default();
    let stop = if tell.is_some() { Stop::with_progress() } else { Stop::default() };
    let registry = registry(policies, &raised, &stop)?;
    let mut looks = 0;
    let (sender, mut receiver) = channel();
    let waits = args.first().is_none_or(|verb| verb != "solve");
    let own_threads = own_threads()?;
    let work = {
        let stop = stop.clone();
        move || {
            let args = std::iter::once("plimsoll".into()).chain(args);
            let work = || cli::call(&registry, args, &stop);
            let work = || match text {
                Some((name, text)) => with_text(name, text, work),
                None => work(),
            };
            let result = match own_threads {
                Some(threads) => threads.install(work),
                None => work(),
            };
            drop(registry);
            open().retain(|other| !other.is(&stop));
            // Nobody may wait for it any more.
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
                        // What it came to is of no interest.
                        let _ = py.detach(move || receiver.recv());
                    }
                    return Err(raised);
                }
            }
        }
    }
}

/// Runs the program with these arguments, its name first, as the program itself does; returns the exit code.
#[pyfunction]
pub fn main(py: Python, args: Vec<OsString>) -> u8 {
    py.detach(|| cli::execute(&Registry::default(), args))
}

/// A plan or an instance that is given as JSON, as TOML. Raises ValueError for what TOML has no word for.
#[pyfunction]
pub fn toml(json: &str) -> PyResult<String> {
    let table: ::toml::Table = serde_json::from_str(json).map_err(|error| PyValueError::new_err(error.to_string()))?;
    ::toml::to_string(&table).map_err(|error| PyValueError::new_err(error.to_string()))
}
