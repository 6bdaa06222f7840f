//! Guarantees, maximums and user limits of queues.
//!
//! [`Settings`] has the configured values of a queue. [`Limits`] has the resulting amounts of all queues, computed from the root down for
//! the current cluster.

use super::super::cycle::{self, Millionths, ONE, OptionalAmounts, QueueAt, ROOT, Ratio, Waiting, settings, word};
use super::amounts::{Calculator, NONE, SignedAmounts, capped_sum, part, signed};
use plimsoll_base::units::{MAX_DIMS, Resources, UserId};
use plimsoll_policies::Reason;

settings! {
    /// The settings of a queue; percentages are in millionths of a percent.
    group struct Settings {
        percent: Option<Millionths> = None, "its guarantee in percent of that of the queue above";
        weight: Millionths = ONE, "its weight in the rest that percentages and amounts leave (1)";
        guarantee: Option<OptionalAmounts> = None,
            "its guarantee as amounts; the part of an unnamed resource is the largest part of the named ones";
        max_percent: Millionths = ALL, "its maximum in percent of that of the queue above (100)";
        capability: OptionalAmounts = Resources::NONE, "its maximum as amounts";
        priority: i64 = 0, "the larger, the earlier, under priority-utilization";
        user_limit_percent: Option<Millionths> = None,
            "the minimum limit of an application, in percent of the guarantee or of the usage";
        user_limit_factor: Option<Millionths> = None, "the maximum of an application, as a multiple of the guarantee";
        reclaimable: Option<bool> = None, "false: no preemption in it, nor in queues under it without true";
    }
    /// The settings of the policy.
    policy struct PolicySettings {
        only_memory as "resources": bool = false,
            "how amounts are compared: dominant (usual), memory", word(&[("dominant", false), ("memory", true)]);
        by_priority as "ordering": bool = false,
            "utilization (usual), priority-utilization",
            word(&[("utilization", false), ("priority-utilization", true)]);
        minimum_allocation: OptionalAmounts = Resources::NONE,
            "the smallest container; user limits are multiples of it (one unit of each resource)";
        preemption: bool = true, "false: no preemption";
        max_ignored: Millionths = ONE / 10, "the part of its guarantee that a queue may be above it (0.1)";
        natural_termination: Millionths = ONE / 5, "the part of an excess that a cycle preempts (0.2)";
        per_round: Millionths = ONE / 10, "the largest part of the cluster that a cycle preempts (0.1)";
        cluster: Option<Resources> = None,
            "the whole cluster, of which this is a partition: read by yarn-capacity@11082 alone";
    }
}

/// The tree of queues.
pub type Tree = cycle::Tree<Settings>;

/// A cycle of the scheduler.
pub type Session<'a> = cycle::Session<'a, Settings>;

/// A hundred percent.
const ALL: Millionths = 100 * ONE;

/// Returns whether containers of a queue may be preempted.
pub fn reclaimable(tree: &Tree, at: QueueAt) -> bool {
    tree.nearest(at, |settings| settings.reclaimable).unwrap_or(true)
}

/// Returns a guarantee as amounts. A resource that the guarantee does not name receives the largest part among the named resources. With
/// zero instead, every queue would be above its guarantee.
fn complete_guarantee(given: &OptionalAmounts, total: &SignedAmounts) -> SignedAmounts {
    let named = (0..MAX_DIMS).filter_map(|d| Some((given[d]?, u64::try_from(total[d]).unwrap_or(0))));
    let largest =
        named.map(|(amount, all)| if all == 0 { Ratio::ZERO } else { Ratio::from_capacity(amount, all) }).max();
    let (num, den) = largest.unwrap_or(Ratio::ZERO).parts();
    let (own, rest) = (signed(&given.or_zero()), part(*total, num, den));
    SignedAmounts::from_fn(|d| if given[d].is_some() { own[d] } else { rest[d] })
}

/// The guarantee and the maximum of every queue as amounts.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    pub guaranteed: Vec<SignedAmounts>,
    pub max: Vec<SignedAmounts>,
    /// The size of the smallest container.
    least: SignedAmounts,
}

impl Limits {
    /// Creates the limits for a total and a smallest container size. Guarantees in amounts are reduced in proportion if together they
    /// exceed the guarantee of the parent. Cost: O(queues * resources).
    pub fn new(least: SignedAmounts, tree: &Tree, rc: &Calculator) -> Limits {
        let all = vec![rc.whole; tree.nodes.len()];
        let mut limits = Limits { guaranteed: all.clone(), max: all, least };
        for at in tree.downwards() {
            let (total, most) = (limits.guaranteed[at], limits.max[at]);
            let mut rest = total;
            let mut weights = 0u128;
            let children = &tree.nodes[at].children;
            let given = |child: &QueueAt| tree[*child].guarantee.map(|given| complete_guarantee(&given, &total));
            let sum = children.iter().filter_map(given).fold(NONE, capped_sum);
            let cut = |amounts: SignedAmounts| {
                SignedAmounts::from_fn(|d| match (total[d].max(0) as u128, sum[d] as u128) {
                    (total, sum) if sum > total => rc.part_down(&amounts, total, sum)[d],
                    _ => amounts[d],
                })
            };
            for child in children {
                let one = &tree[*child];
                let own = match (given(child), one.percent) {
                    (Some(amounts), _) => Some(cut(amounts)),
                    (None, Some(percent)) => Some(part(total, percent.into(), ALL.into())),
                    (None, None) => None,
                };
                let max = part(most, one.max_percent.into(), ALL.into());
                limits.max[*child] =
                    max.zip_with(one.capability, |max, given| given.map_or(max, |given| max.min(given.into())));
                match own {
                    Some(own) => {
                        limits.guaranteed[*child] = own;
                        rest -= own;
                    }
                    None => weights += u128::from(one.weight),
                }
            }
            rest = rest.max(NONE);
            for child in children {
                let one = &tree[*child];
                if one.guarantee.is_none() && one.percent.is_none() {
                    limits.guaranteed[*child] =
                        if weights == 0 { NONE } else { part(rest, one.weight.into(), weights) };
                }
                // A queue cannot use more than its maximum.
                limits.guaranteed[*child] = limits.guaranteed[*child].min(limits.max[*child]);
            }
        }
        limits
    }

    /// Returns the maximum, of the queue or of an ancestor below the root, that the additional amount would exceed.
    pub fn above_max(&self, session: &Session, queue: QueueAt, need: &Resources) -> Option<Reason> {
        session.tree.path(queue).filter(|at| *at != ROOT).find_map(|at| {
            let excess = session.usage[at].map(i128::from) + need.map(i128::from) - self.max[at];
            let short = |d: usize| u64::try_from(excess[d]).ok().filter(|short| *short > 0 && need[d] > 0);
            let (resource, short) = (0..MAX_DIMS).find_map(|d| Some((d as u8, short(d)?)))?;
            Some(Reason::Quota { group: at as u32, resource, short })
        })
    }

    /// Returns whether an application exceeds its user limit, if there is one. The limit is the greater of two values. The first is the
    /// usage of the waiting applications plus one smallest container, divided by the number of these applications. The second is
    /// `user_limit_percent` of the guarantee; if the usage of the queue reaches the guarantee, it is that percentage of the usage plus one
    /// smallest container. The limit is at most `user_limit_factor` times the guarantee, and is rounded up to whole smallest containers.
    pub fn above_user_limit(&self, rc: &Calculator, session: &Session, next: &Waiting) -> bool {
        let settings = &session.tree[next.queue];
        if settings.user_limit_percent.is_none() && settings.user_limit_factor.is_none() {
            return false;
        }
        let held = |user: UserId| signed(&session.held[user.index()]);
        let guaranteed = rc.max(&self.guaranteed[next.queue], &self.least);
        let users = &session.tree.nodes[next.queue].users;
        let used = users.iter().map(|user| rc.alike(&held(*user))).fold(NONE, capped_sum);
        let now = if rc.is_more(&guaranteed, &used) { guaranteed } else { capped_sum(used, self.least) };
        let waiting = || session.waiting(next.queue).map(|next| held(next.user));
        let theirs = waiting().fold(self.least, capped_sum);
        let percent = settings.user_limit_percent.unwrap_or(ALL);
        let equal = rc.part_up(&theirs, 1, waiting().count().max(1) as u128);
        let mut limit = rc.max(&equal, &rc.part_up(&now, percent.into(), ALL.into()));
        if let Some(factor) = settings.user_limit_factor {
            limit = rc.min(&limit, &rc.part_down(&guaranteed, factor.into(), ONE.into()));
        }
        let whole = limit
            .zip_with(self.least.max(SignedAmounts::uniform(1)), |limit, least| (limit + least - 1) / least * least);
        rc.is_more(&held(next.user), &whole)
    }
}
