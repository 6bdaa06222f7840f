//! Leontief utility: the number of its tasks that a user could run with a bundle. Envy and sharing incentive are defined by it.
//!
//! Tasks need resources in fixed proportions: with amounts b a user runs min_r b_r / d_r tasks, over the resources that it needs, up to its
//! number of tasks. Sharing benefits a user if it runs at least as many tasks as it would with its *part* of the cluster, w_ir / Σ_k w_kr
//! of each resource. A user envies another one if it would run more tasks with the other's bundle, multiplied by w_ir / w_kr. The property
//! checks apply this to allocations, the metrics to states of a run. Source: Ghodsi et al., NSDI 2011, section 3; with weights Parkes,
//! Procaccia and Shah, EC 2012.

use super::Number;

/// The demand, the weights and the number of tasks of a user; `demand` and `weight` have one entry per resource.
#[derive(Clone, Copy, Debug)]
pub struct Wants<'a, N> {
    /// The demand of one task (at least 0).
    pub demand: &'a [N],
    /// The weights of the user (above 0).
    pub weight: &'a [N],
    /// The number of tasks; `None` means unlimited.
    pub tasks: Option<&'a N>,
}

impl<N: Number> Wants<'_, N> {
    /// Returns the resources that the user needs.
    pub fn needed(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.demand.len()).filter(|&r| !self.demand[r].is_zero())
    }

    /// Returns the number of tasks that these amounts would run if the user had unlimited tasks; `None` if it needs no resource.
    pub fn fit(&self, amount: impl Fn(usize) -> N) -> Option<N> {
        self.needed().map(|r| amount(r).over(&self.demand[r])).reduce(lesser)
    }

    /// Returns the number of its tasks that these amounts run; `None` if the user needs no resource and has unlimited tasks.
    pub fn runs(&self, amount: impl Fn(usize) -> N) -> Option<N> {
        self.fit(amount).into_iter().chain(self.tasks.cloned()).reduce(lesser)
    }

    /// Returns the user's part of the capacity of a resource, among users with weights that add up to `all`.
    pub fn part(&self, r: usize, capacity: &N, all: &N) -> N {
        capacity.times(&self.weight[r]).over(all)
    }

    /// Returns the amount that is worth as much to this user as `amount` of a resource is to a user of weight `weight`.
    pub fn scaled(&self, r: usize, amount: &N, weight: &N) -> N {
        amount.times(&self.weight[r]).over(weight)
    }
}

fn lesser<N: Number>(a: N, b: N) -> N {
    if b < a { b } else { a }
}
