//! Ctrl-C: runs end at their next heartbeat and drop what they have half written.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, Result};

/// Whether somebody has asked what goes on to end; clones are one and the same.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Asks for the end; whether that was asked before.
    pub fn ask(&self) -> bool {
        self.0.swap(true, Ordering::Relaxed)
    }

    /// Errors: [`Error::Interrupted`] once somebody has asked.
    pub fn check(&self) -> Result<()> {
        if self.0.load(Ordering::Relaxed) { Err(Error::Interrupted) } else { Ok(()) }
    }

    /// From now on Ctrl-C and termination signals ask for the end instead of killing the process; a second one kills it.
    pub(super) fn listen(&self) {
        let stop = self.clone();
        // Without a handler (one is installed already) a signal ends the process, which leaves temporary files at worst.
        let _ = ctrlc::set_handler(move || {
            if stop.ask() {
                std::process::exit(130);
            }
        });
    }
}
