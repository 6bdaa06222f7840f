//! YARN's fair scheduler with dominant resource fairness: a tree of queues with minimum shares, and preemption for starved
//! applications.
//!
//! A user is an application, and a task is a container. Containers start one by one: at each level from the root down, the first of the
//! siblings is served. Siblings that use less of their dominant resource than their minimum share of it (*needy*) precede others; the
//! sibling furthest below its minimum share is first. The others are ordered by the used part of the cluster in their dominant resource
//! over the weight, then in the other resources. If the parts of several resources are equal, memory is the dominant resource. Ties of
//! applications are resolved by the start of their oldest waiting task set, ties of queues by name. No container starts beyond the `max`
//! of its queue or of an ancestor.
//!
//! Fair shares are computed level by level, resource by resource ([`shares`](self::shares)), among queues and applications with allocation
//! or pending demand. An application is starved if its dominant part is below `preemption_threshold` (0.5) times its fair share (or below
//! its demand, if that is less), or if its queue is below its minimum share. The memory that it lacks determines for how many containers
//! it preempts. The least starved application is first. The search for a container takes the first machine where the victims suffice.
//! Victims are containers of applications that stay at their fair shares without them. They are preempted, the least urgent and youngest
//! first, and the container starts in their place.
//!
//! Source: Apache Hadoop 3.4 to trunk (August 2026): `FSLeafQueue`, `FSParentQueue`, `FSAppAttempt`, `FSPreemptionThread`,
//! `ComputeFairShares` and `DominantResourceFairnessPolicy`; YARN-5605, YARN-11482. One defect is unchanged in the source, and repaired
//! under `@guarded`: the last application that is assigned a part of its queue's missing minimum lacks its demand *minus* this part,
//! instead of this part.
//!
//! Departures: preemption is on (`preemption = false` is YARN's default), without time-outs. Shares are exact; the source bisects floats.
//! A minimum of 0 counts as infinitely exceeded by any usage, and a weight of 0 as an infinite used part; in the source 0/0 is equal to
//! every value. Application masters are containers like others. There are no reservations. Fair shares are whole cores and devices.
//! Without a file every user is a queue with its weight, no minimum and no maximum.

mod order;
mod preempt;
mod shares;

use std::ops::ControlFlow;

use super::cycle::{
    self, Excess, Member, Millionths, ONE, OptionalAmounts, QueueAt, QueueFile, QueueView, Scheduler, SettingTable,
    Walk, parse, settings,
};
use plimsoll_base::error::Result;
use plimsoll_base::units::{Dim, Resources, Time, Unit, UserId};
use plimsoll_policies::{PolicyRow, RankOrder, Reason, Setup, Status};

use order::{Dims, QueueState, Rule};
use preempt::Shares;

/// `yarn-fair[@ISSUE][:FILE]`
pub static ROW: PolicyRow = PolicyRow {
    name: "yarn-fair",
    spelling: "yarn-fair[@ISSUE][:FILE]",
    rank: RankOrder::Stated(
        "from the root down: queues below their minimum share first, then the lowest dominant part of the cluster \
         over the weight",
    ),
    meaning: "YARN's fair scheduler: dominant shares over queues with minimum shares, and preemption.",
    source: "Apache Hadoop, FairScheduler of August 2026",
    example: "yarn-fair",
    checked: "yarn-fair",
    variants: &[
        ("guarded", "ours: an application lacks the unmet minimum share of its queue, not its demand less that amount"),
        (
            "11482",
            "with two resources the second queue of a comparison is judged needy by the usage of the first one (YARN-11482)",
        ),
    ],
    keys: KEYS,
    read: |given| parse(given, YarnFair::new),
};

settings! {
    /// The settings of a queue.
    group struct Settings {
        min: Resources = Resources::ZERO, "its minimum share, which is served before the fair shares";
        max: OptionalAmounts = Resources::NONE, "the most that it may have";
        weight: Millionths = ONE, "the divisor of its part of the cluster";
        preemption_threshold: Option<Millionths> = None,
            "its applications are starved below this part of their fair share (that of the parent; 0.5 at the root)";
        reclaimable: bool = true, "false: no preemption of its containers, nor of those under it";
    }
    /// The settings of the policy.
    policy struct PolicySettings {
        preemption: bool = true, "false: no preemption";
    }
}

type Tree = cycle::Tree<Settings>;
type Session<'a> = cycle::Session<'a, Settings>;

struct YarnFair {
    settings: PolicySettings,
    dims: Dims,
    names: Vec<Dim>,
    units: Resources,
    rule: Rule,
    guarded: bool,
}

const NO_ROOM: Reason = Reason::NoRoom("there is no room, and no preemption would free any");

/// Returns the amount of a resource that a scheduler counts as one unit: whole cores and devices.
fn unit(dim: &Dim) -> u64 {
    if dim.unit == Unit::Milli { 1000 } else { 1 }
}

impl YarnFair {
    fn new(_: &Tree, file: &QueueFile, variant: Option<&str>, setup: &Setup) -> Result<YarnFair> {
        Ok(YarnFair {
            settings: PolicySettings::read(&file.policy, setup.dims)?,
            dims: Dims::new(setup.dims.iter().map(|dim| dim.name.as_str())),
            names: setup.dims.to_vec(),
            units: Resources::from_fn(|d| setup.dims.get(d).map_or(1, unit)),
            rule: if variant == Some("11482") { Rule::Fault } else { Rule::Right },
            guarded: variant == Some("guarded"),
        })
    }

    fn queue(&self, tree: &Tree, capacity: &Resources, at: QueueAt, usage: &Resources) -> QueueState {
        let (Settings { min, weight, .. }, tie) = (&tree[at], (Time::ZERO, tree.name_rank(at) as u64));
        QueueState::new(self.rule, &self.dims, capacity, usage, min, *weight, tie)
    }

    fn app(&self, capacity: &Resources, held: &Resources, since: (Time, u64)) -> QueueState {
        QueueState::new(self.rule, &self.dims, capacity, held, &Resources::ZERO, ONE, since)
    }

    fn member(&self, session: &Session, member: Member) -> QueueState {
        let capacity = session.books.offered();
        match member {
            Member::Queue(at) => self.queue(session.tree, capacity, at, &session.usage[at]),
            Member::User(user) => {
                let since = session.next(user).map_or((Time(u64::MAX), u64::from(user.0)), |next| next.since);
                self.app(capacity, &session.held[user.index()], since)
            }
        }
    }

    /// Returns the quota, of the queue or of an ancestor, that the additional amount would exceed.
    fn above_max(&self, session: &Session, queue: QueueAt, need: &Resources) -> Option<Reason> {
        session.tree.exceeded(|at| &session.tree[at].max, &session.usage, queue, need).map(Excess::reason)
    }

    /// Starts containers that have room, in the order of queues and applications.
    fn assign(&self, session: &mut Session) {
        let place = |session: &Session, member: Member| self.member(session, member);
        Walk::serve(session, place, |session, next| {
            let above = self.above_max(session, next.queue, &next.need());
            ControlFlow::Continue(above.or_else(|| (!session.has_room(next)).then_some(NO_ROOM)))
        });
    }
}

impl Scheduler for YarnFair {
    type Settings = Settings;

    fn user_queue(weight: Option<Millionths>) -> Option<Settings> {
        Some(Settings { weight: weight?, ..Settings::default() })
    }

    fn cycle(&mut self, session: &mut Session) -> Result<()> {
        self.assign(session);
        if self.settings.preemption && !session.waiting_queues().is_empty() {
            self.preempt(session);
        }
        Ok(())
    }

    fn status(&self, view: &QueueView<Settings>) -> Vec<Status> {
        let QueueView { tree, table, books } = *view;
        let active = |user: &UserId| {
            table.next(*user).is_some() || table.held.get(user.index()).is_some_and(|held| *held != Resources::ZERO)
        };
        let shares = Shares::new(self, tree, books, active);
        view.status(|at| {
            let part = self.dims.dominant(&table.usage[at], books.offered());
            let fair = self.dims.dominant(&shares.queues[at], books.offered());
            let amount =
                |(d, dim): (usize, &Dim)| (format!("fair share of {}", dim.name), dim.amount(shares.queues[at][d]));
            let amounts = self.names.iter().enumerate().map(amount);
            let values = [("dominant share", part), ("fair dominant share", fair)];
            let values = values.map(|(name, value)| (name.to_owned(), value.shown()));
            let guaranteed = tree[at].min.map(|min| (min > 0).then_some(min));
            (values.into_iter().chain(amounts).collect(), guaranteed, tree[at].max)
        })
    }

    fn compare_users(&self, view: &QueueView<Settings>, one: UserId, other: UserId) -> Option<bool> {
        let QueueView { tree, table, books } = *view;
        let queues = [one, other].map(|user| tree.users.get(user.index()).copied());
        let [Some(mine), Some(theirs)] = queues else { return None };
        let capacity = books.offered();
        let order = if mine == theirs {
            let app = |user: UserId| {
                let next = table.next(user);
                let since = next.map_or((Time(u64::MAX), u64::from(user.0)), |next| next.since);
                let held = table.held.get(user.index()).copied().unwrap_or(Resources::ZERO);
                self.app(capacity, &held, since)
            };
            app(one).compare(&app(other))
        } else {
            let queue =
                |at: QueueAt| self.queue(tree, capacity, at, &table.usage.get(at).copied().unwrap_or(Resources::ZERO));
            tree.compare(mine, theirs, |one, other| queue(one).compare(&queue(other)))
        };
        Some(order.is_lt())
    }
}
