//! Hierarchical dominant shares, in floats as in Volcano: ties and the fault of issue 1661 depend on float arithmetic.
//!
//! A job is saturated if its allocation covers its request of some resource, or if it requests a used-up resource. A node is saturated if
//! all its jobs and children are saturated. The vector of an inner node is the sum of its children's vectors. Vectors of unsaturated
//! children are scaled down to the least dominant share among them; vectors of saturated children are not scaled. Queues are compared from
//! the root down: saturated nodes sort last, then shares are divided by weights, which count as at least 1.
//!
//! Source: Volcano, `plugins/drf/drf.go` (state of August 2026). Departure: sums are computed in the order of the tree; the source's order
//! is unspecified.

use super::super::cycle::{ONE, QueueAt, ROOT};
use super::queues::Tree;
use plimsoll_base::units::{MAX_DIMS, Resources, UserId};
use plimsoll_sim::books::Books;

/// The share of a node, and whether the node is saturated.
#[derive(Clone, Copy, Debug, Default)]
pub struct NodeShare {
    pub share: f64,
    saturated: bool,
}

/// The input of the shares.
#[derive(Clone, Copy)]
pub struct Hierarchy<'a> {
    pub tree: &'a Tree,
    pub books: &'a Books,
    pub capacity: Resources,
    pub dims: usize,
}

impl Hierarchy<'_> {
    /// Returns the shares of all nodes, from the allocation of each user and the total allocation.
    pub fn shares(&self, held: &[Resources], all: &Resources) -> Vec<NodeShare> {
        let mut shares = vec![NodeShare { share: 0.0, saturated: true }; self.tree.nodes.len()];
        let mut vectors = vec![[0.0; MAX_DIMS]; self.tree.nodes.len()];
        let wants = |at: QueueAt| self.tree.nodes[at].users.iter().any(|user| self.wants(*user));
        let has_jobs = self.tree.totals(wants, |one, other| one || other);
        for at in self.tree.upwards() {
            let node = &self.tree.nodes[at];
            let jobs = node.users.iter().filter(|user| self.wants(**user));
            let mut parts: Vec<(NodeShare, [f64; MAX_DIMS])> = jobs.map(|user| self.job(*user, held, all)).collect();
            parts.extend(
                node.children.iter().filter(|child| has_jobs[**child]).map(|child| (shares[*child], vectors[*child])),
            );
            let open = parts.iter().filter(|(part, _)| part.share != 0.0 && !part.saturated);
            let least = open.map(|(part, _)| part.share).fold(1.0, f64::min);
            for (part, vector) in parts.iter().filter(|(part, _)| part.share != 0.0) {
                let scale = if part.saturated { 1.0 } else { least / part.share };
                (0..self.dims).for_each(|d| vectors[at][d] += vector[d] * scale);
            }
            shares[at] = NodeShare {
                share: self.dominant(&vectors[at]),
                saturated: parts.iter().all(|(part, _)| part.saturated),
            };
        }
        shares
    }

    fn wants(&self, user: UserId) -> bool {
        (0..self.dims).any(|d| self.books.wanted(user, d) > 0)
    }

    fn job(&self, user: UserId, held: &[Resources], all: &Resources) -> (NodeShare, [f64; MAX_DIMS]) {
        let (held, mut vector) = (held[user.index()].0, [0.0; MAX_DIMS]);
        let mut saturated = false;
        for d in 0..self.dims {
            vector[d] = held[d] as f64;
            let request = self.books.wanted(user, d);
            saturated |= held[d] != 0 && request != 0 && u128::from(held[d]) >= request;
            saturated |= all.0[d] >= self.capacity.0[d] && request != 0;
        }
        (NodeShare { share: self.dominant(&vector), saturated }, vector)
    }

    fn dominant(&self, vector: &[f64; MAX_DIMS]) -> f64 {
        let part = |d: usize| match self.capacity.0[d] {
            0 => f64::from(u8::from(vector[d] > 0.0)),
            all => vector[d] / all as f64,
        };
        (0..self.dims).map(part).fold(0.0, f64::max)
    }

    /// Compares two queues; the result is negative if the first is served first.
    pub fn compare(&self, shares: &[NodeShare], one: QueueAt, other: QueueAt) -> f64 {
        let down = |leaf: QueueAt| {
            let mut path: Vec<QueueAt> = self.tree.path(leaf).collect();
            path.reverse();
            path
        };
        for (one, other) in down(one).into_iter().zip(down(other)) {
            match (shares[one].saturated, shares[other].saturated) {
                (false, true) => return -1.0,
                (true, false) => return 1.0,
                _ => {}
            }
            let (left, right) = (self.weighted(shares, one), self.weighted(shares, other));
            if left != right {
                return left - right;
            }
        }
        0.0
    }

    fn weighted(&self, shares: &[NodeShare], at: QueueAt) -> f64 {
        let weight = if at == ROOT { ONE } else { self.tree[at].weight.max(ONE) };
        shares[at].share / (weight as f64 / ONE as f64)
    }
}
