//! Leontief utility: how many of its tasks a user could run with a bundle. Envy and sharing incentive are defined by it.
//!
//! Tasks need resources in fixed proportions: with amounts b a user runs min_r b_r / d_r of them over the resources it needs, up to its
//! number of tasks. Sharing benefits a user if it runs at least as many tasks as its *part* of the cluster would, w_ir / Σ_k w_kr of each
//! resource. A user envies another one if it would run more with the other's bundle, multiplied by w_ir / w_kr. The property checks apply
//! this to allocations, the metrics to states of a run. Source: Ghodsi et al., NSDI 2011, section 3; with weights Parkes, Procaccia and
//! Shah, EC 2012.

use super::Number;

/// The wants of a user: entries of `demand` and `weight` are resources.
#[derive(Clone, Copy, Debug)]
pub struct Wants<'a, N> {
    /// The demand of one task (at least 0).
    pub demand: &'a [N],
    /// Its weights (above 0).
    pub weight: &'a [N],
    /// How many tasks it has; `None` without end.
    pub tasks: Option<&'a N>,
}

impl<N: Number> Wants<'_, N> {
    /// The resources that it needs.
    pub fn needed(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.demand.len()).filter(|&r| !self.demand[r].is_zero())
    }

    /// Returns how many tasks these amounts would run if the user had endless tasks; `None` if it needs nothing.
    pub fn fit(&self, amount: impl Fn(usize) -> N) -> Option<N> {
        self.needed().map(|r| amount(r).over(&self.demand[r])).reduce(lesser)
    }

    /// Returns how many of its tasks these amounts run; `None` if it needs nothing and has endless tasks.
    pub fn runs(&self, amount: impl Fn(usize) -> N) -> Option<N> {
        self.fit(amount).into_iter().chain(self.tasks.cloned()).reduce(lesser)
    }

    /// Its part of `capacity` of a resource, among users with weights that add up to `all`.
    pub fn part(&self, r: usize, capacity: &N, all: &N) -> N {
        capacity.times(&self.weight[r]).over(all)
    }

    /// The amount that counts as much for it as `amount` of a resource does for a user of weight `weight`.
    pub fn scaled(&self, r: usize, amount: &N, weight: &N) -> N {
        amount.times(&self.weight[r]).over(weight)
    }
}

/// The lesser of two numbers.
fn lesser<N: Number>(a: N, b: N) -> N {
    if b < a { b } else { a }
}
