//! The state of a thread in the interpreter, for as long as a run goes on.

use std::thread::{self, ThreadId};

use pyo3::ffi::{
    PyEval_RestoreThread, PyEval_SaveThread, PyGILState_Ensure, PyGILState_Release, PyGILState_STATE, PyThreadState,
};

/// The state of a thread in the interpreter, kept from call to call: to make one for every call costs several times what the call does. It is
/// given back where it was taken and before the run ends, since an interpreter that ends waits for no thread.
pub struct Kept {
    lock: PyGILState_STATE,
    state: *mut PyThreadState,
    thread: ThreadId,
}

// SAFETY: on another thread than its own it is neither used nor given back.
unsafe impl Send for Kept {}

impl Kept {
    /// Of this thread.
    pub fn new() -> Kept {
        // SAFETY: any thread may take the lock; it is given back at once, and the state stays.
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
