//! YuniKorn's fair sorting of queues and applications, and its preemption for queues below their guarantee.
//!
//! A user is an application, and a task is an allocation. Allocations start one by one: at each level from the root down, the first of the
//! siblings is served. Queues are ordered by urgency (that of their most urgent ask, plus their `priority`), then by ratio (the lowest
//! first), then by pending demand (first the queue with more in every resource), then by the file. A queue's ratio is the largest, over
//! the resources, of its usage over its guarantee, or else over its maximum (its own, or that of the nearest ancestor with a maximum, or
//! else the cluster). If the denominator is 0, the ratio is 1 with usage and 0 without. Applications are ordered by priority and then by
//! the parts of the cluster that they use: the largest parts are compared first, then the next largest (`sort = "fifo"`: by age instead).
//! With `[policy] priority = false` ratios precede priorities.
//!
//! *Preemption.* An ask preempts if it fits nowhere, or exceeds a maximum, and a guarantee covers it: the guarantee of its queue, or else
//! the least remainder of the guarantees of the queue's ancestors. Victims are allocations of other queues that are no more urgent than the
//! ask (including the priorities of queues), the youngest first. If an ancestor of the ask's queue is exactly at its maximum, the victims
//! are below the lowest such ancestor. The queue of a victim has no guarantee, or exceeds its guarantee in a resource of the ask.
//! Guarantees of ancestors count for a queue as well. If the ask's queue has a guarantee, those of the ancestors of this queue do not
//! count. All victims together are within the remainder of the ask's guarantee (YUNIKORN-3459). On each machine the victims that reduce the
//! shortage are tried before the others; the machine with the fewest victims is selected, and the ask starts on it. If a maximum prevents
//! the start, or if the victims have less than the ask needs, further victims are added until they have as much.
//!
//! Source: Apache YuniKorn core (August 2026): `sorters.go`, `resources.go`, `queue.go`, `preemption.go`, and the issues that the variants
//! name. Two defects are unchanged in the source: a victim may be larger than its queue's excess over the guarantee (YUNIKORN-3492); the
//! search on a machine ends at the first victim that the ask's guarantee does not cover (YUNIKORN-3458). Repaired under `@guarded`:
//! victims that together have less than the ask needs are rejected, even if the machine has additional free room (YUNIKORN-3449).
//!
//! Departures: preemption is tried once all asks that fit have started, without a delay. An ask of a queue may preempt again at any time.
//! No ask is marked as an originator or as exempt, and no queue is a fence. Priorities are compared by rank, and so are the priorities of
//! queues. The comparison by pending demand is not transitive (a test shows a cycle of three queues), so the order of such queues is
//! unspecified, as in the source. Without a file every user is a queue without guarantee and maximum.

mod order;
mod preempt;

use std::ops::ControlFlow;

use super::cycle::{
    self, Excess, Member, MemberRank, Millionths, OptionalAmounts, QueueAt, QueueFile, QueueView, Scheduler,
    SettingTable, Waiting, Walk, parse, settings, word,
};
use plimsoll_base::error::Result;
use plimsoll_base::units::{Resources, UserId};
use plimsoll_policies::{PolicyRow, RankOrder, Reason, Setup, Status};
use plimsoll_sim::books::Books;

use order::{App, ComparedQueue, Rule};

/// `yunikorn-fair[@ISSUE][:FILE]`
pub static ROW: PolicyRow = PolicyRow {
    name: "yunikorn-fair",
    spelling: "yunikorn-fair[@ISSUE][:FILE]",
    rank: RankOrder::Stated(
        "from the root down: the most urgent queue first, then the lowest usage over guarantee or else maximum, then \
         the largest pending demand",
    ),
    meaning: "YuniKorn's fair sorting of queues, and preemption for those below their guarantee.",
    source: "Apache YuniKorn, core of August 2026",
    example: "yunikorn-fair",
    checked: "yunikorn-fair",
    variants: &[
        ("guarded", "ours: free room on the machine counts in addition to the victims (the repair of YUNIKORN-3449)"),
        ("64", "both queues of a comparison are divided by the first one's guarantee (yunikorn-core pull request 64)"),
        ("2270", "the room of victims is not reserved for the ask (YUNIKORN-2270)"),
        (
            "2795",
            "the guarantee of a common ancestor covers the ask of a queue without a guarantee, but does not protect the queues \
             of victims, so that siblings preempt each other (YUNIKORN-2795, 2761)",
        ),
    ],
    keys: KEYS,
    read: |given| parse(given, YuniKorn::new),
};

settings! {
    /// The settings of a queue.
    group struct Settings {
        guaranteed: OptionalAmounts = Resources::NONE, "its guarantee of each resource";
        max: OptionalAmounts = Resources::NONE, "the most that it may have";
        priority: i64 = 0, "is added to the priorities of its asks: the larger, the earlier";
        by_age as "sort": bool = false, "of a leaf's applications: fair (usual), fifo",
            word(&[("fair", false), ("fifo", true)]);
        reclaimable: bool = true, "false: no preemption in it, nor in queues under it";
    }
    /// The settings of the policy.
    policy struct PolicySettings {
        priority: bool = true, "false: ratios come before priorities";
        preemption: bool = true, "false: no preemption";
    }
}

type Tree = cycle::Tree<Settings>;
type Session<'a> = cycle::Session<'a, Settings>;

struct YuniKorn {
    settings: PolicySettings,
    rule: Rule,
    /// Whether free room on a machine counts in addition to victims: the repair of YUNIKORN-3449.
    counts_free: bool,
    /// Whether the room of victims is reserved for the ask.
    keeps_room: bool,
    /// See `@2795`.
    inherits: bool,
}

const NO_ROOM: Reason = Reason::NoRoom("there is no room, and no unmet guarantee that permits preemption");
const MAKING_ROOM: Reason = Reason::Rule("its victims have to leave first, and their room is available to all");

impl YuniKorn {
    fn new(_: &Tree, file: &QueueFile, variant: Option<&str>, setup: &Setup) -> Result<YuniKorn> {
        Ok(YuniKorn {
            settings: PolicySettings::read(&file.policy, setup.dims)?,
            rule: if variant == Some("64") { Rule::OneDenominator } else { Rule::Separately },
            counts_free: variant == Some("guarded"),
            keeps_room: variant != Some("2270"),
            inherits: variant == Some("2795"),
        })
    }

    /// Returns the maximum that a queue's usage is divided by: its own maximum, or that of the nearest ancestor with one, or else the
    /// cluster.
    fn fair_max(&self, tree: &Tree, capacity: &Resources, at: QueueAt) -> Resources {
        let nearest = |d: usize| tree.path(at).find_map(|above| tree[above].max[d]);
        Resources::from_fn(|d| nearest(d).unwrap_or(capacity[d]))
    }

    /// Returns the urgency of a queue: the minimum, over its own and its descendants' asks, of the ask's priority (0 is the most urgent)
    /// minus the `priority` of each queue on the path to the ask.
    fn urgency(&self, tree: &Tree, table: &dyn Fn(QueueAt) -> Option<u8>, at: QueueAt) -> Option<i64> {
        let own = table(at).map(i64::from);
        let below = tree.nodes[at].children.iter().filter_map(|child| self.urgency(tree, table, *child));
        own.into_iter().chain(below).min().map(|urgency| urgency - tree[at].priority)
    }

    /// Returns the state of a queue for comparisons, without its pending demand.
    fn queue(&self, tree: &Tree, books: &Books, at: QueueAt, usage: &Resources, urgency: Option<i64>) -> ComparedQueue {
        ComparedQueue {
            rule: self.rule,
            priority_first: self.settings.priority,
            urgency: urgency.unwrap_or(i64::MAX),
            usage: *usage,
            guaranteed: tree[at].guaranteed,
            max: self.fair_max(tree, books.offered(), at),
            dims: books.dims(),
            pending: Resources::default(),
            at,
        }
    }

    /// Returns the pending demand of each queue and its descendants.
    fn pending(tree: &Tree, books: &Books) -> Vec<Resources<u128>> {
        let own = |at: QueueAt| {
            let mut pending = Resources::<u128>::default();
            for user in tree.nodes[at].users.iter().filter(|user| books.waiting(**user) > 0) {
                let held = books.allocated(*user);
                (0..books.dims()).for_each(|d| pending[d] += books.wanted(*user, d).saturating_sub(held[d].into()));
            }
            pending
        };
        tree.totals(own, |one, other| one + other)
    }

    fn app(&self, tree: &Tree, books: &Books, next: &Waiting, held: &Resources) -> App {
        App::new(tree[next.queue].by_age, self.settings.priority, next, held, books.offered(), books.dims())
    }

    /// Returns the quota, of the queue or of an ancestor, that the additional amount would exceed.
    fn above_max(&self, tree: &Tree, usage: &[Resources], queue: QueueAt, need: &Resources) -> Option<Reason> {
        tree.exceeded(|at| &tree[at].max, usage, queue, need).map(Excess::reason)
    }

    /// Starts allocations that fit; returns the users of the other asks, in scheduling order.
    fn assign(&self, session: &mut Session) -> Vec<UserId> {
        // The pending demand at the beginning of the cycle is used; it only breaks ties.
        let first = |at: QueueAt| session.waiting(at).map(|next| next.priority).min();
        let urgencies: Vec<Option<i64>> =
            (0..session.tree.nodes.len()).map(|at| self.urgency(session.tree, &first, at)).collect();
        let compared = |(at, pending): (QueueAt, Resources<u128>)| {
            let queue = self.queue(session.tree, session.books, at, &session.usage[at], urgencies[at]);
            ComparedQueue { pending, ..queue }
        };
        let pending = YuniKorn::pending(session.tree, session.books);
        let queues: Vec<ComparedQueue> = pending.into_iter().enumerate().map(compared).collect();
        let place = |session: &Session, member: Member| match member {
            Member::Queue(at) => MemberRank::Queue(ComparedQueue { usage: session.usage[at], ..queues[at] }),
            Member::User(user) => match session.next(user) {
                Some(next) => {
                    let held = &session.held[user.index()];
                    MemberRank::Workload(self.app(session.tree, session.books, &next, held))
                }
                None => MemberRank::None,
            },
        };
        let mut vain = Vec::new();
        Walk::serve(session, place, |session, next| {
            let above = self.above_max(session.tree, &session.usage, next.queue, &next.need());
            let refused = above.or_else(|| (!session.has_room(next)).then_some(NO_ROOM));
            vain.extend(refused.map(|_| next.user));
            ControlFlow::Continue(refused)
        });
        vain
    }
}

impl Scheduler for YuniKorn {
    type Settings = Settings;

    fn user_queue(_weight: Option<Millionths>) -> Option<Settings> {
        Some(Settings::default())
    }

    fn cycle(&mut self, session: &mut Session) -> Result<()> {
        let vain = self.assign(session);
        if self.settings.preemption {
            self.preempt(session, &vain);
        }
        Ok(())
    }

    fn status(&self, view: &QueueView<Settings>) -> Vec<Status> {
        let QueueView { tree, table, books } = *view;
        view.status(|at| {
            let queue = self.queue(tree, books, at, &table.usage[at], None);
            let values = vec![("ratio".to_owned(), queue.ratio(&queue.guaranteed).shown())];
            (values, tree[at].guaranteed, tree[at].max)
        })
    }

    fn compare_users(&self, view: &QueueView<Settings>, one: UserId, other: UserId) -> Option<bool> {
        let QueueView { tree, table, books } = *view;
        let (one, other) = view.next(one, other)?;
        if one.queue == other.queue {
            let app = |next: &Waiting| self.app(tree, books, next, &table.held[next.user.index()]);
            return Some(app(&one) < app(&other));
        }
        let first = |at: QueueAt| table.lines.get(at)?.keys().map(|(priority, ..)| *priority).min();
        let pending = YuniKorn::pending(tree, books);
        let queue = |at: QueueAt| {
            let urgency = self.urgency(tree, &first, at);
            ComparedQueue { pending: pending[at], ..self.queue(tree, books, at, &table.usage[at], urgency) }
        };
        Some(tree.compare(one.queue, other.queue, |one, other| queue(one).compare(&queue(other))).is_lt())
    }
}
