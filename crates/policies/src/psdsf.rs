//! Per-server dominant share fairness: each machine serves the user with the least virtual dominant share on it.
//!
//! The virtual dominant share of a user on a machine is the number of all its running tasks over the number of tasks that it could run
//! alone on that machine. This is the dominant share of its whole allocation if the allocation were on that machine. Among all pairs of a
//! user and a machine with room, the pair with the least share, including one more task, is served. So a user's tasks run on the machines
//! where it could run most of them.
//!
//! Source: Khamse-Ashari et al., "Per-Server Dominant-Share Fairness (PS-DSF)", arXiv 1611.00404.
//!
//! Departure from the source: tasks are whole and start one by one; only resources that the next task demands count.
//!
//! `psdsf:current` takes the share without the next task, and `psdsf:residual` also with the free amounts of the machine in place of its
//! capacity (rPS-DSF of Shan, Jain, Kesidis et al., arXiv 1803.00922).

use std::sync::Arc;

use super::price::binary_fraction;
use super::{Ask, Capabilities, Needs, Parsed, Policy, PolicyRow, Queue, Rank, RankOrder, Spot, StaticEquivalent};
use plimsoll_base::checkpoint::{Checkpoint, Visitor};
use plimsoll_base::error::Result;
use plimsoll_fair::PsDsf;
use plimsoll_sim::books::Books;

/// `psdsf`
pub static ROW: PolicyRow = PolicyRow {
    name: "psdsf",
    spelling: "psdsf[:current|:residual]",
    rank: RankOrder::Lowest("max_r (u_r + d_r) / (c_ir w_r) on each machine i"),
    meaning: "Equal dominant shares on each machine separately, of the user's whole allocation.",
    source: "Khamse-Ashari et al. (arXiv 1611.00404)",
    example: "psdsf",
    checked: "psdsf",
    variants: &[],
    keys: &[],
    read: |given| {
        let parsed = match given {
            None => Parsed::new(None, |_| Ok(Box::new(Psdsf(VirtualShare::Next)))),
            Some("current") => Parsed::new(Some("current".to_owned()), |_| Ok(Box::new(Psdsf(VirtualShare::Current)))),
            Some("residual") => {
                Parsed::new(Some("residual".to_owned()), |_| Ok(Box::new(Psdsf(VirtualShare::Residual))))
            }
            Some(_) => return Err("psdsf, psdsf:current or psdsf:residual".to_owned()),
        };
        Ok(parsed.like(|_| Ok(StaticEquivalent::Target(Arc::new(PsDsf)))))
    },
};

/// The virtual dominant share that is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum VirtualShare {
    /// With the next task, of the capacity of the machine.
    Next,
    /// Without the next task, of the capacity of the machine.
    Current,
    /// Without the next task, of the free amounts of the machine.
    Residual,
}

/// Serves the user and machine with the least virtual dominant share, in steps of 2^-100.
///
/// Cost: O(resources) per rank; see [`Needs::by_machine`].
struct Psdsf(VirtualShare);

impl Policy for Psdsf {
    fn needs(&self) -> Needs {
        Needs { by_machine: true, ..Needs::default() }
    }

    fn rank(&self, _queue: &Queue, _books: &Books) -> Rank {
        Rank::default()
    }

    fn rank_on(&self, queue: &Queue, ask: &Ask, spot: &Spot, books: &Books) -> Rank {
        let (held, weights) = (books.allocated(queue.user), books.weights().each(books.weight_class(queue.user)));
        let part = |d: usize| {
            let next = u128::from(ask.footprint[d]) * u128::from(ask.tasks);
            let (next, whole) = match self.0 {
                VirtualShare::Next => (next, spot.capacity[d]),
                VirtualShare::Current => (0, spot.capacity[d]),
                VirtualShare::Residual => (0, spot.free[d]),
            };
            binary_fraction(u128::from(held[d]) + next, u128::from(whole) * u128::from(weights[d]), 100)
        };
        let demanded = (0..held.len()).filter(|d| ask.footprint[*d] > 0);
        let value = demanded.map(part).max().unwrap_or_default();
        Rank::wide(*value.high(), *value.low())
    }
}

impl Capabilities for Psdsf {
    fn checkpoint(&mut self) -> Option<&mut dyn Checkpoint> {
        Some(self)
    }
}

impl Checkpoint for Psdsf {
    fn visit(&mut self, _visitor: &mut Visitor) -> Result<()> {
        let Psdsf(_) = self;
        Ok(())
    }
}
