//! YARN's capacity scheduler: queues with guaranteed capacities, ordered by the used part of the guarantee, and preemption towards an
//! ideal assignment.
//!
//! A user is an application, and a task is a container.
//!
//! - *Guarantee*: `guarantee` (reduced in proportion if the guarantees of siblings together exceed that of the parent), or `percent` of
//!   the parent's guarantee, or the queue's part, by `weight`, of the rest.
//! - *Order of queues*: from the root down the queue that uses the least of its guarantee is served first, container by container. The
//!   measure is the largest part of the cluster that the queue uses, over the largest part of the cluster that it is guaranteed
//!   (`resources = "memory"`: memory alone counts). With `ordering = "priority-utilization"` queues below their guarantee come first, and
//!   the more urgent queues come first both among these and among the others. Ties are resolved by the larger guarantee, then by the
//!   position in the file. Queues without a guarantee follow, ordered by the part of the cluster that they use.
//! - *Order of applications*: by priority, then age.
//! - *Limits*: no container starts beyond the maximum of its queue (`capability`, `max_percent`) or of an ancestor, or if its application
//!   exceeds its user limit. Limits are whole containers of the size of `minimum_allocation`.
//!
//! *Preemption.* If demand is pending, the ideal assignment is computed ([`ideal`](self::ideal)). A leaf above its guarantee by more than
//! `max_ignored` (0.1) loses a part (`natural_termination`, 0.2, rounded up to whole units; with memory alone to the nearest) of its
//! excess, at most `per_round` (0.1) of the cluster in a cycle. The least urgent and youngest containers are preempted first. Their room
//! is available to all applications, in the order of queues. Containers may therefore be preempted repeatedly without success, if the
//! pending containers fit on no machine afterwards (the source states this in `TempQueuePerPartition`; `@guarded` is a repair of ours).
//!
//! Source: Apache Hadoop 3.4 to trunk (August 2026): `PriorityUtilizationQueueOrderingPolicy`, `AbstractCSQueue`, `UsersManager`,
//! `PreemptableResourceCalculator`, `FifoCandidatesSelector`, both resource calculators, and the issues that the variants name.
//!
//! Departures: dominant resources are the default (in the source, memory), and preemption is on. Victims stop at once, without time to
//! stop on their own. Fractions are exact. Users are applications, so there is no user limit unless the file sets one. Limits are checked
//! for the container that starts, as in the source when a proposal is accepted. There are no reservations, no labels, and no preemption
//! inside a queue. Without a file every user is a queue with its part by weight.

mod amounts;
mod ideal;
mod limits;
mod preempt;

use std::cmp::Ordering;
use std::ops::ControlFlow;

use super::cycle::{
    Member, MemberRank, Millionths, QueueAt, QueueFile, QueueView, ROOT, Ratio, Scheduler, SettingTable, Walk, ordered,
    parse,
};
use plimsoll_base::error::Result;
use plimsoll_base::units::{Dim, Resources, Time, Unit, UserId};
use plimsoll_policies::{PolicyRow, RankOrder, Reason, Setup, Status};
use plimsoll_sim::books::Books;

use amounts::{Calculator, NONE, SignedAmounts, signed};
use limits::{KEYS, Limits, PolicySettings, Session, Settings, Tree};

/// `yarn-capacity[@ISSUE][:FILE]`
pub static ROW: PolicyRow = PolicyRow {
    name: "yarn-capacity",
    spelling: "yarn-capacity[@ISSUE][:FILE]",
    rank: RankOrder::Stated(
        "from the root down: the lowest dominant used part of the guarantee first; in a queue the most urgent \
         application first, then the oldest",
    ),
    meaning: "YARN's capacity scheduler: the queue that uses the least of its guarantee, and preemption.",
    source: "Apache Hadoop, CapacityScheduler of August 2026",
    example: "yarn-capacity",
    checked: "yarn-capacity",
    variants: &[
        (
            "guarded",
            "ours: containers are stopped only where another one, within its queue's ideal, then fits on a machine, and starts there",
        ),
        ("6538", "a queue's ideal may exceed the offer in a resource, which prevents preemption (YARN-6538)"),
        (
            "11082",
            "a maximum is checked by the dominant resource of the whole cluster, not of its partition (YARN-11082)",
        ),
    ],
    keys: KEYS,
    read: |given| parse(given, YarnCapacity::new),
};

/// Compares queues by the used part of their guarantees and by priority: queues below their guarantee are first, then the more urgent
/// queues, then the queues with a smaller used part.
fn utilisation((one, mine): (Ratio, i64), (other, theirs): (Ratio, i64)) -> Ordering {
    let below = |ratio: Ratio| ratio < Ratio::WHOLE;
    below(other).cmp(&below(one)).then(theirs.cmp(&mine)).then(one.cmp(&other))
}

struct YarnCapacity {
    settings: PolicySettings,
    memory: Option<usize>,
    units: Resources,
    /// The size of the smallest container.
    least: SignedAmounts,
    /// Whether the repair applies, which avoids preemption without success.
    guarded: bool,
    /// See `@6538`.
    takes_more: bool,
    /// See `@11082`: the whole cluster.
    cluster: Option<SignedAmounts>,
    /// The limits of the last cycle.
    limits: Limits,
}

const NO_ROOM: Reason = Reason::NoRoom("there is no room");
const USER_LIMIT: Reason = Reason::Rule("it uses more than its user limit");
const REFUSED: Reason =
    Reason::Rule("the order of queues proposes it in every cycle, and the maximum of its queue rejects it");
const HELD_UP: Reason = Reason::Rule("a proposal that is rejected in every cycle precedes it");

/// The rank of a queue among its siblings.
#[derive(Clone, Copy, Debug)]
struct QueueRank {
    /// Whether the queue has no guarantee.
    none: bool,
    /// The used part of its guarantee, or else of the cluster.
    used: Ratio,
    priority: i64,
    guaranteed: Ratio,
    /// The position in the file.
    at: QueueAt,
}

impl QueueRank {
    fn compare(&self, other: &QueueRank) -> Ordering {
        let by_use = utilisation((self.used, self.priority), (other.used, other.priority));
        let sizes = other.guaranteed.cmp(&self.guaranteed);
        self.none.cmp(&other.none).then(by_use).then(sizes).then(self.at.cmp(&other.at))
    }
}

ordered!(QueueRank);

/// The rank of a queue, or of an application by priority and age.
type SiblingRank = MemberRank<QueueRank, (u8, (Time, u64))>;

impl YarnCapacity {
    fn new(_: &Tree, file: &QueueFile, variant: Option<&str>, setup: &Setup) -> Result<YarnCapacity> {
        let settings = PolicySettings::read(&file.policy, setup.dims)?;
        let is_milli = |dim: &Dim| dim.unit == Unit::Milli;
        let units = Resources::from_fn(|d| if setup.dims.get(d).is_some_and(is_milli) { 1000 } else { 1 });
        Ok(YarnCapacity {
            memory: setup.dims.iter().position(|dim| dim.name == "memory"),
            units,
            least: units.zip_with(settings.minimum_allocation, |unit, least| least.unwrap_or(unit).into()),
            guarded: variant == Some("guarded"),
            takes_more: variant == Some("6538"),
            cluster: (variant == Some("11082")).then(|| signed(&settings.cluster.unwrap_or(setup.capacity))),
            settings,
            limits: Limits::default(),
        })
    }

    fn calculator(&self, books: &Books) -> Calculator {
        let only = if self.settings.only_memory { self.memory.or(Some(0)) } else { None };
        Calculator { only, whole: signed(books.offered()), dims: books.dims(), units: self.units }
    }

    fn priority(&self, tree: &Tree, at: QueueAt) -> i64 {
        if self.settings.by_priority { tree[at].priority } else { 0 }
    }

    fn queue(&self, tree: &Tree, books: &Books, limits: &Limits, at: QueueAt, usage: &Resources) -> QueueRank {
        let calculator = self.calculator(books);
        let guaranteed = &limits.guaranteed[at];
        let priority = self.priority(tree, at);
        let none = !calculator.is_more(guaranteed, &NONE);
        let used = calculator.ratio(&signed(usage), if none { &calculator.whole } else { guaranteed });
        QueueRank { none, used, priority, guaranteed: calculator.ratio(guaranteed, &calculator.whole), at }
    }

    fn place(&self, session: &Session, limits: &Limits, member: Member) -> SiblingRank {
        match member {
            Member::Queue(at) => {
                SiblingRank::Queue(self.queue(session.tree, session.books, limits, at, &session.usage[at]))
            }
            Member::User(user) => {
                session.next(user).map_or(SiblingRank::None, |next| SiblingRank::Workload((next.priority, next.since)))
            }
        }
    }

    /// Starts containers that fit; returns whether the cycle continues.
    fn assign(&self, session: &mut Session, limits: &Limits) -> bool {
        let calculator = self.calculator(session.books);
        let members: Vec<UserId> = session.all_waiting().map(|next| next.user).collect();
        let place = |session: &Session, member: Member| self.place(session, limits, member);
        Walk::serve(session, place, |session, next| {
            let above = limits.above_max(session, next.queue, &next.need());
            if let (Some(cluster), Some(_)) = (&self.cluster, above) {
                // The first check, by the dominant resource of the whole cluster, accepts a container that the second check refuses. The
                // next proposal would be the same container, so the cycle ends.
                let wide = Calculator { whole: *cluster, ..calculator };
                let path = { session.tree }.path(next.queue);
                if { path }.all(|at| wide.is_more(&limits.max[at], &signed(&session.usage[at]))) {
                    members.iter().for_each(|other| session.wait(*other, HELD_UP));
                    session.wait(next.user, REFUSED);
                    return ControlFlow::Break(());
                }
            }
            let limited = limits.above_user_limit(&calculator, session, next).then_some(USER_LIMIT);
            let refused = above.or(limited).or_else(|| (!session.has_room(next)).then_some(NO_ROOM));
            ControlFlow::Continue(refused)
        })
    }
}

impl Scheduler for YarnCapacity {
    type Settings = Settings;

    fn user_queue(weight: Option<Millionths>) -> Option<Settings> {
        Some(Settings { weight: weight?, ..Settings::default() })
    }

    fn cycle(&mut self, session: &mut Session) -> Result<()> {
        let calculator = self.calculator(session.books);
        self.limits = Limits::new(self.least, session.tree, &calculator);
        let limits = &self.limits;
        let goes_on = self.assign(session, limits);
        if goes_on && self.settings.preemption {
            // The first user in the order of queues receives the room, if it is enough.
            let first = Walk::new(session, |member| self.place(session, limits, member)).first();
            if first.is_some() && self.preempt(session, limits, first) {
                self.assign(session, limits);
            }
        }
        Ok(())
    }

    fn status(&self, view: &QueueView<Settings>) -> Vec<Status> {
        let QueueView { tree, table, books } = *view;
        let limits = &self.limits;
        if limits.max.len() < tree.nodes.len() {
            return Vec::new();
        }
        let calculator = self.calculator(books);
        view.status(|at| {
            let used = calculator.ratio(&signed(&table.usage[at]), &limits.guaranteed[at]);
            let amounts = |amounts: &SignedAmounts| amounts.map(|amount| u64::try_from(amount).ok());
            let mut limit = amounts(&limits.max[at]);
            for d in 0..limit.0.len() {
                limit[d] = limit[d].filter(|_| at != ROOT && d < books.dims());
            }
            (vec![("used of guarantee".to_owned(), used.shown())], amounts(&limits.guaranteed[at]), limit)
        })
    }

    fn compare_users(&self, view: &QueueView<Settings>, one: UserId, other: UserId) -> Option<bool> {
        let QueueView { tree, table, books } = *view;
        let (one, other) = view.next(one, other)?;
        if one.queue == other.queue {
            return Some(one.turn() < other.turn());
        }
        if self.limits.max.len() < tree.nodes.len() {
            return None;
        }
        let queue = |at: QueueAt| self.queue(tree, books, &self.limits, at, &table.usage[at]);
        Some(tree.compare(one.queue, other.queue, |one, other| queue(one).cmp(&queue(other))).is_lt())
    }
}
