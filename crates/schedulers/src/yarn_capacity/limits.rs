//! Guarantees, maximums and user limits of queues.
//!
//! [`Settings`] has the configured values of a queue. [`Limits`] has the resulting amounts of all queues, computed from the root down for
//! the current cluster.

use super::super::cycle::{ONE, OptionalAmounts, QueueAt, QueueFile, ROOT, Ratio, Session, Tree, Waiting};
use super::amounts::{Calculator, NONE, SignedAmounts, capped_sum, part, signed};
use plimsoll_base::error::Result;
use plimsoll_base::units::{Dim, MAX_DIMS, Resources, UserId};
use plimsoll_policies::Reason;

/// The settings of a queue.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The guarantee, in millionths of a percent.
    percent: Option<u64>,
    guarantee: Option<OptionalAmounts>,
    pub weight: u64,
    max_percent: Option<u64>,
    capability: OptionalAmounts,
    pub priority: i64,
    /// The part of a user limit, in millionths of a percent.
    user_limit_percent: Option<u64>,
    user_limit_factor: Option<u64>,
    pub reclaimable: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            percent: None,
            guarantee: None,
            weight: ONE,
            max_percent: None,
            capability: Resources::NONE,
            priority: 0,
            user_limit_percent: None,
            user_limit_factor: None,
            reclaimable: true,
        }
    }
}

/// A hundred percent.
const ALL: u64 = 100 * ONE;

impl Settings {
    /// Creates the default settings with this weight.
    pub fn weighted(weight: u64) -> Settings {
        Settings { weight, ..Settings::default() }
    }

    /// Reads the settings of a group. Errors: unusable values.
    pub fn read(file: &QueueFile, at: usize, dims: &[Dim]) -> Result<Settings> {
        let mut path = std::iter::successors(Some(at), |at| file.groups[*at].parent);
        let reclaimable = path.find_map(|at| file.truth(at, "reclaimable").transpose()).transpose()?;
        Ok(Settings {
            percent: file.number(at, "percent")?,
            guarantee: file.amounts(at, "guarantee", dims)?,
            weight: file.weight(at)?,
            max_percent: file.number(at, "max_percent")?,
            capability: file.amounts(at, "capability", dims)?.unwrap_or_default(),
            priority: file.integer(at, "priority")?.unwrap_or(0),
            user_limit_percent: file.number(at, "user_limit_percent")?,
            user_limit_factor: file.number(at, "user_limit_factor")?,
            reclaimable: reclaimable.unwrap_or(true),
        })
    }
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
    pub fn new(settings: &[Settings], least: SignedAmounts, tree: &Tree, rc: &Calculator) -> Limits {
        let all = vec![rc.whole; settings.len()];
        let mut limits = Limits { guaranteed: all.clone(), max: all, least };
        let mut order = tree.upwards();
        order.reverse();
        for at in order {
            let (total, most) = (limits.guaranteed[at], limits.max[at]);
            let mut rest = total;
            let mut weights = 0u128;
            let children = &tree.nodes[at].children;
            let given = |child: &QueueAt| settings[*child].guarantee.map(|given| complete_guarantee(&given, &total));
            let sum = children.iter().filter_map(given).fold(NONE, capped_sum);
            let cut = |amounts: SignedAmounts| {
                SignedAmounts::from_fn(|d| match (total[d].max(0) as u128, sum[d] as u128) {
                    (total, sum) if sum > total => rc.part_down(&amounts, total, sum)[d],
                    _ => amounts[d],
                })
            };
            for child in children {
                let one = &settings[*child];
                let own = match (given(child), one.percent) {
                    (Some(amounts), _) => Some(cut(amounts)),
                    (None, Some(percent)) => Some(part(total, percent.into(), ALL.into())),
                    (None, None) => None,
                };
                let max = part(most, one.max_percent.unwrap_or(ALL).into(), ALL.into());
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
                let one = &settings[*child];
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
    pub fn above_user_limit(&self, rc: &Calculator, settings: &Settings, session: &Session, next: &Waiting) -> bool {
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
