//! The interpreter's state of a thread for the duration of a run.

use std::thread::{self, ThreadId};

use pyo3::ffi::{
    PyEval_RestoreThread, PyEval_SaveThread, PyGILState_Ensure, PyGILState_Release, PyGILState_STATE, PyThreadState,
};

/// The interpreter's state of a thread, reused for all calls: a new state for each call costs several times as much as the call. It is
/// released on its own thread and before the run ends, because an interpreter that ends does not wait for threads.
pub struct Kept {
    lock: PyGILState_STATE,
    state: *mut PyThreadState,
    thread: ThreadId,
}

// SAFETY: on other threads than its own it is neither used nor released.
unsafe impl Send for Kept {}

impl Kept {
    /// Creates the state of the current thread.
    pub fn new() -> Kept {
        // SAFETY: any thread may take the lock; it is released at once, and the state remains.
        unsafe {
            let lock = PyGILState_Ensure();
            Kept { lock, state: PyEval_SaveThread(), thread: thread::current().id() }
        }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        if thread::current().id() == self.thread {
            // SAFETY: the state is that of this thread, which does not hold the lock.
            unsafe {
                PyEval_RestoreThread(self.state);
                PyGILState_Release(self.lock);
            }
        }
    }
}
