//! Policies that serve the user with the lowest share. They differ in the norm of the share, the resources that count and the lens.

use super::{Capabilities, Lens, Needs, Policy, Prices, Queue, Rank, Setup, ShareNorm, Shares};
use plimsoll_base::checkpoint::{Checkpoint, Visitor};
use plimsoll_base::error::Result;
use plimsoll_sim::books::Books;

/// Serves the user with the lowest share.
///
/// Cost per rank: that of one share, which is O(resources) for [`Prices`].
pub struct ByShare<S> {
    shares: S,
    lens: Lens,
}

impl<S> ByShare<S> {
    /// Creates the policy that ranks by these shares.
    pub fn new(shares: S) -> ByShare<S> {
        ByShare { shares, lens: Lens::Plain }
    }

    /// Returns the policy with another lens; allocated amounts are counted through it.
    pub fn with_lens(self, lens: Lens) -> ByShare<S> {
        ByShare { lens, ..self }
    }
}

impl ByShare<Prices> {
    /// Creates the policy that ranks by a norm of the shares `u_r / (c_r w_r)` of all resources. Errors:
    /// [`CapacityTooFine`](plimsoll_base::error::Error::CapacityTooFine).
    pub fn by_norm(policy: &str, norm: ShareNorm, setup: &Setup) -> Result<ByShare<Prices>> {
        Prices::new(policy, norm, setup, |_| true).map(ByShare::new)
    }

    /// Creates the policy that ranks by the share `u_d / (c_d w_d)` of one resource, by index. Errors: as [`ByShare::by_norm`].
    pub fn by_resource(policy: &str, resource: usize, setup: &Setup) -> Result<ByShare<Prices>> {
        Prices::new(policy, ShareNorm::Largest, setup, |dim| dim == resource).map(ByShare::new)
    }
}

impl<S: Shares + Send> Policy for ByShare<S> {
    fn needs(&self) -> Needs {
        Needs { lens: self.lens, ..Needs::default() }
    }

    fn rank(&self, queue: &Queue, books: &Books) -> Rank {
        self.shares.rank_with(queue.user, books.allocated(queue.user), books)
    }
}

impl<S: Shares + Send> Capabilities for ByShare<S> {
    fn checkpoint(&mut self) -> Option<&mut dyn Checkpoint> {
        Some(self)
    }

    fn shares(&self) -> Option<&dyn Shares> {
        Some(&self.shares)
    }
}

impl<S: Shares + Send> Checkpoint for ByShare<S> {
    fn visit(&mut self, _visitor: &mut Visitor) -> Result<()> {
        let ByShare { shares: _, lens: _ } = self;
        Ok(())
    }
}
