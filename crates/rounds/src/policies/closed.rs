//! Allocations in closed form: isolated, proportional, and Shockwave's `gandiva_fair`.

use plimsoll_base::error::Result;

use super::fractions::isolated;
use super::{Policy, PolicyOptions, PolicyRow, View};
use crate::mechanism::Targets;

/// `x_ij = W_j / (m s_i)`, rows cut to 1.
pub(super) const ISOLATED: PolicyRow = PolicyRow {
    name: "isolated",
    title: "Isolated equal parts of the cluster",
    source: "Gavel, OSDI 2020, 4.2",
    packing: false,
    listed_order: false,
    skip_zero: false,
    create: |_: &PolicyOptions| Box::new(Closed::Isolated),
};
/// `x_ij = W_j / W`.
pub(super) const PROPORTIONAL: PolicyRow = PolicyRow {
    name: "proportional",
    title: "Time on each type in proportion to its accelerators",
    create: |_: &PolicyOptions| Box::new(Closed::Proportional),
    ..ISOLATED
};
/// `x_ij = W_j / m`, rows cut to 1, without division by the scale.
pub(super) const GANDIVA_FAIR: PolicyRow = PolicyRow {
    name: "gandiva_fair",
    title: "Equal parts without trading",
    source: "Shockwave, NSDI 2023 (repository); Gandiva-Fair, EuroSys 2020",
    create: |_: &PolicyOptions| Box::new(Closed::GandivaFair),
    ..ISOLATED
};

enum Closed {
    Isolated,
    Proportional,
    GandivaFair,
}

impl Policy for Closed {
    fn targets(&mut self, view: &View<'_>) -> Result<Targets> {
        let (m, n) = (view.jobs.len(), view.capacity.len());
        let mut targets = Targets::zero(m, n);
        for (job, x) in view.jobs.iter().zip(targets.alone.chunks_exact_mut(n)) {
            let row = match self {
                Closed::Isolated => isolated(view.capacity, m, job.scale),
                Closed::Proportional => isolated(view.capacity, 1, 1),
                Closed::GandivaFair => isolated(view.capacity, m, 1),
            };
            x.iter_mut().zip(row).for_each(|(x, value)| *x = Targets::rounded(value));
        }
        Ok(targets)
    }
}
