//! Handles Ctrl-C: runs end at their next heartbeat and remove their partial files. Also reports progress to a caller without a terminal.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::{Error, Result};

/// A shared stop request, and the progress for a caller that reads it.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<StopState>);

#[derive(Debug, Default)]
struct StopState {
    asked: AtomicBool,
    far: Option<Mutex<String>>,
}

impl Stop {
    /// Creates an instance for a caller that reads the progress.
    pub fn with_progress() -> Stop {
        Stop(Arc::new(StopState { far: Some(Mutex::default()), ..StopState::default() }))
    }

    /// Requests a stop; returns whether one had already been requested.
    pub fn request(&self) -> bool {
        self.0.asked.swap(true, Ordering::Relaxed)
    }

    /// Returns whether the other is a clone of this one.
    pub fn is(&self, other: &Stop) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Checks for a stop request. Errors: [`Error::Interrupted`] after one.
    pub fn check(&self) -> Result<()> {
        if self.0.asked.load(Ordering::Relaxed) { Err(Error::Interrupted) } else { Ok(()) }
    }

    /// Returns the progress as one line of text; empty if it is unknown.
    pub fn far(&self) -> String {
        self.0.far.as_ref().map(|far| far.lock().unwrap_or_else(PoisonError::into_inner).clone()).unwrap_or_default()
    }

    /// Reports the progress; returns whether a caller reads it.
    pub(super) fn report(&self, line: impl FnOnce() -> String) -> bool {
        let Some(far) = &self.0.far else { return false };
        *far.lock().unwrap_or_else(PoisonError::into_inner) = line();
        true
    }

    /// Installs a handler: Ctrl-C and termination signals then request a stop instead of killing the process; a second signal kills it.
    pub(super) fn listen(&self) {
        let stop = self.clone();
        // If a handler is already installed, a signal ends the process, which at worst leaves temporary files.
        let _ = ctrlc::set_handler(move || {
            if stop.request() {
                std::process::exit(130);
            }
        });
    }
}
