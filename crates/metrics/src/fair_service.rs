//! The service of each user in the fluid replay of a whole workload.
//!
//! The service depends on the workload, the capacity, the weights, the measured window and the horizon, but not on the policy. Runs for
//! which these are equal share one [`FairService`] in an [`Arc`](std::sync::Arc). It takes 24 bytes per user.

use crate::fluid::factors;
use crate::reference::Reference;
use crate::window::Window;
use crate::work::{RowChecksum, ServedWork, Work};
use plimsoll_base::error::{Error, Result};
use plimsoll_base::units::{Resources, Time};
use plimsoll_sim::books::Weights;
use plimsoll_sim::workload::Source;

/// The number of rows between two calls that may end a replay.
const ROWS: u64 = 8192;

/// The service of each user at the end of the replay, or at the horizon.
#[derive(Clone, Debug, Default)]
pub struct FairService {
    /// The service, and the unfinished measured work.
    pub(crate) users: Vec<(ServedWork, f64)>,
    pub(crate) rows: RowChecksum,
}

impl FairService {
    /// Replays a workload from its first row to the end of its work, or to the horizon. `go_on` is called once per several thousand rows;
    /// the result is `None` if it returned `false`. Otherwise the result equals that of a run that records the same rows. Memory: as a [`Reference`], which grows with the unfinished work and with the users.
    ///
    /// The workload must not depend on the policy, as it does in a closed loop or if jobs are submitted after the ends of other jobs.
    /// Errors: those of the source, and [`Error::NotConverged`].
    pub fn replay(
        source: &mut dyn Source,
        capacity: &Resources,
        weights: &Weights,
        window: &Window,
        horizon: Option<Time>,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Option<FairService>> {
        let mut reference = Reference::new(source.dims().len(), capacity, factors(weights));
        let mut rows = 0u64;
        while let Some(row) = source.next_set()? {
            if horizon.is_some_and(|horizon| row.submit >= horizon) {
                break;
            }
            while reference.users() <= row.user.index() {
                reference.user(weights.class_of(source.users().name(reference.users() as u32)));
            }
            if let Some(work) = Work::from_row(&row, window) {
                reference.advance(work.submit)?;
                reference.submit(work);
            }
            rows += 1;
            if rows.is_multiple_of(ROWS) && !go_on() {
                return Ok(None);
            }
        }
        reference.finish(horizon).map(Some)
    }

    /// Returns the size of the result in memory, in bytes.
    pub fn bytes(&self) -> u64 {
        (self.users.capacity() * size_of::<(ServedWork, f64)>()) as u64
    }

    /// Returns the service of a user.
    pub fn service(&self, user: usize) -> ServedWork {
        self.users.get(user).map_or(ServedWork::default(), |(service, _)| *service)
    }

    /// Returns the measured work of a user that is unfinished at the horizon, in cluster-seconds.
    pub fn left(&self, user: usize) -> f64 {
        self.users.get(user).map_or(0.0, |(_, left)| *left)
    }

    /// Checks that a run had the same rows as this replay. Errors: [`Error::Mismatch`] if it had other rows.
    pub(crate) fn check(&self, rows: RowChecksum) -> Result<()> {
        let problem = "the run had other rows than the replay that is shared with it";
        if rows == self.rows { Ok(()) } else { Err(Error::Mismatch { problem: problem.to_owned() }) }
    }
}
