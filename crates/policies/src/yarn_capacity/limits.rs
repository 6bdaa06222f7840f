//! Guarantees, maximums and user limits of queues.
//!
//! [`Settings`] has the configured values of a queue. [`Limits`] has the resulting amounts of all queues, computed from the root down for
//! the current cluster.

use super::super::Reason;
use super::super::cycle::{ONE, QueueAt, QueueFile, ROOT, Ratio, Session, Tree, Waiting};
use super::amounts::{Calculator, NONE, SignedAmounts};
use plimsoll_base::error::Result;
use plimsoll_base::units::{Dim, MAX_DIMS, Resources, UserId};

/// The settings of a queue.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The guarantee, in millionths of a percent.
    percent: Option<u64>,
    guarantee: Option<[Option<u64>; MAX_DIMS]>,
    pub weight: u64,
    max_percent: Option<u64>,
    capability: [Option<u64>; MAX_DIMS],
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
            capability: [None; MAX_DIMS],
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

/// Returns a guarantee as amounts. A resource that it does not name gets the largest part among the named ones: with a guarantee of zero
/// every queue would be above it.
fn complete_guarantee(given: &[Option<u64>; MAX_DIMS], total: &SignedAmounts) -> SignedAmounts {
    let named = (0..MAX_DIMS).filter_map(|d| Some((given[d]?, u64::try_from(total.0[d]).unwrap_or(0))));
    let part = named.map(|(amount, all)| if all == 0 { Ratio::ZERO } else { Ratio::from_capacity(amount, all) }).max();
    let (num, den) = part.unwrap_or(Ratio::ZERO).parts();
    let rest = total.part(num, den);
    let own = SignedAmounts::from_resources(&Resources(given.map(Option::unwrap_or_default)));
    SignedAmounts::each(|d| if given[d].is_some() { own.0[d] } else { rest.0[d] })
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
    /// Creates the limits for a total and a smallest container size. Guarantees in amounts that together exceed the parent's are cut down
    /// in proportion. Cost: O(queues * resources).
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
            let sum = children.iter().filter_map(given).fold(NONE, |sum, amounts| sum.plus(&amounts));
            let cut = |amounts: SignedAmounts| {
                SignedAmounts::each(|d| match (total.0[d].max(0) as u128, sum.0[d] as u128) {
                    (total, sum) if sum > total => rc.part_down(&amounts, total, sum).0[d],
                    _ => amounts.0[d],
                })
            };
            for child in children {
                let one = &settings[*child];
                let own = match (given(child), one.percent) {
                    (Some(amounts), _) => Some(cut(amounts)),
                    (None, Some(percent)) => Some(total.part(percent.into(), ALL.into())),
                    (None, None) => None,
                };
                limits.max[*child] = most.part(one.max_percent.unwrap_or(ALL).into(), ALL.into());
                for (max, given) in limits.max[*child].0.iter_mut().zip(one.capability) {
                    *max = given.map_or(*max, |given| i128::from(given).min(*max));
                }
                match own {
                    Some(own) => {
                        limits.guaranteed[*child] = own;
                        rest = rest.minus(&own);
                    }
                    None => weights += u128::from(one.weight),
                }
            }
            rest = rest.most(&NONE);
            for child in children {
                let one = &settings[*child];
                if one.guarantee.is_none() && one.percent.is_none() {
                    limits.guaranteed[*child] = if weights == 0 { NONE } else { rest.part(one.weight.into(), weights) };
                }
                // A queue cannot use more than its maximum.
                limits.guaranteed[*child] = limits.guaranteed[*child].least(&limits.max[*child]);
            }
        }
        limits
    }

    /// Returns the quota, of the queue or of an ancestor below the root, that the additional amount would exceed.
    pub fn above_max(&self, session: &Session, queue: QueueAt, need: &Resources) -> Option<Reason> {
        let mut all =
            session.tree.path(queue).filter(|at| *at != ROOT).flat_map(|at| (0..MAX_DIMS).map(move |d| (at, d)));
        all.find_map(|(at, d)| {
            let with = i128::from(session.usage[at].0[d]) + i128::from(need.0[d]);
            let short = with - self.max[at].0[d];
            let short = u64::try_from(short).ok().filter(|short| *short > 0 && need.0[d] > 0)?;
            Some(Reason::Quota { group: at as u32, resource: d as u8, short })
        })
    }

    /// Returns whether an application exceeds its user limit, if there is one. The limit is the greater of two values: an equal part, among
    /// the waiting applications, of their usage plus one container of the smallest size; and `user_limit_percent` of the guarantee, or of
    /// the usage plus one such container if that is more. It is at most `user_limit_factor` guarantees, rounded up to whole containers of
    /// the smallest size.
    pub fn above_user_limit(&self, rc: &Calculator, settings: &Settings, session: &Session, next: &Waiting) -> bool {
        if settings.user_limit_percent.is_none() && settings.user_limit_factor.is_none() {
            return false;
        }
        let held = |user: UserId| SignedAmounts::from_resources(&session.held[user.index()]);
        let guaranteed = rc.max(&self.guaranteed[next.queue], &self.least);
        let users = &session.tree.nodes[next.queue].users;
        let used = users.iter().fold(NONE, |sum, user| sum.plus(&rc.alike(&held(*user))));
        let now = if rc.is_more(&guaranteed, &used) { guaranteed } else { used.plus(&self.least) };
        let waiting = || session.waiting(next.queue).map(|next| held(next.user));
        let theirs = waiting().fold(self.least, |sum, held| sum.plus(&held));
        let percent = settings.user_limit_percent.unwrap_or(ALL);
        let part = rc.part_up(&theirs, 1, waiting().count().max(1) as u128);
        let mut limit = rc.max(&part, &rc.part_up(&now, percent.into(), ALL.into()));
        if let Some(factor) = settings.user_limit_factor {
            limit = rc.min(&limit, &rc.part_down(&guaranteed, factor.into(), ONE.into()));
        }
        let whole = |d: usize| {
            let least = self.least.0[d].max(1);
            (limit.0[d] + least - 1) / least * least
        };
        rc.is_more(&held(next.user), &SignedAmounts::each(whole))
    }
}
