//! Ctrl-C: runs end at their next heartbeat and drop what they have half written.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, Result};

static ASKED: AtomicBool = AtomicBool::new(false);

/// From now on Ctrl-C and termination signals are noted instead of killing the process; a second one kills it.
pub fn listen() {
    // Without a handler (one is installed already) a signal ends the process, which leaves temporary files at worst.
    let _ = ctrlc::set_handler(|| {
        if ASKED.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    });
}

/// Errors: [`Error::Interrupted`] once a signal has come.
pub fn check() -> Result<()> {
    if ASKED.load(Ordering::Relaxed) { Err(Error::Interrupted) } else { Ok(()) }
}
