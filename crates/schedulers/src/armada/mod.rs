//! Armada: each cycle reclaims, in the model, the jobs of queues above their share, and schedules them again together with the waiting
//! jobs.
//!
//! The *cost* of a queue is the largest, over all resources, of the part of the cluster that the queue uses times the multiplier of the
//! resource. The next job is that of the queue with the lowest cost over weight, where the cost includes the job; ties are broken by the
//! queue's name. More urgent jobs precede all less urgent ones. Among equally urgent jobs of a queue, running jobs precede waiting ones,
//! and older jobs precede younger ones. Each task of a user is a job; a gang is one job.
//!
//! The share of a queue is the greater of its share by weight and of its share capped by demand ([`shares`](self::shares)). If the cost of
//! a queue is above `protected_fraction` (default 1.0) times its share, all of its running jobs are reclaimed in the model. A reclaimed
//! job may run again on its own machine only. A waiting job starts where room is free, or else in the room of reclaimed jobs. These are
//! removed from the end of their order until the waiting job fits on one machine; the removed jobs are evicted. If the waiting job still
//! does not fit, it displaces less urgent jobs on one machine, the least urgent and youngest first. A job that is reclaimed and runs again
//! in the same cycle is not evicted.
//!
//! Source: Armada (armadaproject/armada, August 2026): `preempting_queue_scheduler.go`, `queue_scheduler.go`, `nodedb.go`, `scheduling.go`
//! and the pull requests that the variants name; the source has fixed both defects.
//!
//! Departures: shares are parts of 2^60 instead of floats. This module serves more urgent jobs first. The source lets them oversubscribe
//! machines with less urgent jobs, which it evicts in a second pass. There are no rate limits, there is no penalty for short jobs, and
//! there is one pool. No job is reclaimed if no waiting job would precede a reclaimed one; the outcome is the same. Groups with child
//! groups only combine queues. Without a file every user is a queue with its weight.

mod round;
mod shares;

use std::collections::BTreeMap;

use super::cycle::{
    self, Millionths, ONE, QueueAt, QueueFile, QueueView, Ratio, Scheduler, SettingTable, parse, settings,
};
use plimsoll_base::error::Result;
use plimsoll_base::tree::Node;
use plimsoll_base::units::{Dim, MAX_DIMS, Resources, UserId};
use plimsoll_policies::queues::number;
use plimsoll_policies::{PolicyRow, RankOrder, Setup, Status};
use plimsoll_sim::books::Books;

use round::Round;
use shares::{QueueClaim, QueueShares, SLACK, WHOLE, shares};

/// `armada[@ISSUE][:FILE]`
pub static ROW: PolicyRow = PolicyRow {
    name: "armada",
    spelling: "armada[@ISSUE][:FILE]",
    rank: RankOrder::Stated(
        "the most urgent job first, then the lowest cost with the job over the queue's weight, after the eviction of \
         tasks above shares",
    ),
    meaning: "Armada: dominant cost by queue; tasks above a share are evicted and scheduled again.",
    source: "Armada, scheduler of August 2026",
    example: "armada",
    checked: "armada",
    variants: &[
        (
            "5053",
            "evicted jobs are ordered by cost without the preceding ones: queue by queue (armada pull request 5053)",
        ),
        (
            "5071",
            "an evicted job whose room another one takes may still run if it is early in the order (armada pull request 5071)",
        ),
    ],
    keys: KEYS,
    read: |given| parse(given, Armada::new),
};

settings! {
    /// The settings of a queue.
    group struct Settings {
        weight: Millionths = ONE, "the divisor of its cost: one over Armada's priority factor";
    }
    /// The settings of the policy.
    policy struct PolicySettings {
        protected_fraction: Millionths = ONE, "a queue below this part of its share keeps its running tasks (1)";
        multipliers: Resources = Resources::uniform(ONE),
            "a number for each resource that counts more or less (1): { cpu = 1, gpu = 2 }", multipliers;
    }
}

type Tree = cycle::Tree<Settings>;
type Session<'a> = cycle::Session<'a, Settings>;

/// The fault that a variant reproduces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// See `@5053`.
    StaticCosts,
    /// See `@5071`.
    RunsAgain,
}

struct Armada {
    settings: PolicySettings,
    fault: Fault,
}

/// Reads a number for each resource, in millionths.
fn multipliers(node: &Node, key: &str, dims: &[Dim]) -> Result<Resources> {
    let mut multipliers = Resources::uniform(ONE);
    let wrong = || node.place.wrong(key, "expected numbers by resource, such as { gpu = 2 }");
    for one in node.table().ok_or_else(wrong)? {
        let at = dims.iter().position(|dim| dim.name == one.key).ok_or_else(|| {
            let names: Vec<&str> = dims.iter().map(|dim| dim.name.as_str()).collect();
            let problem = format!("'{}' is no resource here; expected {}", one.key, names.join(" or "));
            one.place.wrong(key, problem)
        })?;
        multipliers[at] = number(&one.node, key)?;
    }
    Ok(multipliers)
}

impl Armada {
    fn new(_: &Tree, file: &QueueFile, variant: Option<&str>, setup: &Setup) -> Result<Armada> {
        let fault = match variant {
            Some("5053") => Fault::StaticCosts,
            Some("5071") => Fault::RunsAgain,
            _ => Fault::None,
        };
        Ok(Armada { settings: PolicySettings::read(&file.policy, setup.dims)?, fault })
    }

    /// Returns the cost of these amounts: the largest of their parts of the cluster, each times the multiplier of its resource.
    fn cost(&self, amounts: &Resources, capacity: &Resources) -> Ratio {
        let part = |d: usize| match (amounts[d], self.settings.multipliers[d]) {
            (0, _) | (_, 0) => Ratio::ZERO,
            (amount, by) => Ratio::new(u128::from(amount) * u128::from(by), u128::from(capacity[d]) * u128::from(ONE)),
        };
        (0..MAX_DIMS).map(part).max().unwrap_or(Ratio::ZERO)
    }

    /// Returns the rank of a queue with these amounts: by cost over weight, then by name.
    fn place(&self, tree: &Tree, queue: QueueAt, amounts: &Resources, capacity: &Resources) -> (Ratio, usize) {
        (self.cost(amounts, capacity).over(tree[queue].weight, ONE), tree.name_rank(queue))
    }

    /// Returns the cost of these amounts as a part of [`WHOLE`].
    fn part(&self, amounts: &Resources, capacity: &Resources) -> u128 {
        let part = |d: usize| match (u128::from(amounts[d]), capacity[d]) {
            (0, _) => 0,
            (_, 0) => WHOLE,
            (amount, whole) => {
                // Parts are capped at a thousand times the cluster.
                let part = amount.min(u128::from(whole) * 1000) * (WHOLE >> 20) / u128::from(whole);
                let by = part.saturating_mul(u128::from(self.settings.multipliers[d])) / u128::from(ONE);
                by << 20
            }
        };
        (0..MAX_DIMS).map(part).max().unwrap_or(0)
    }

    /// Returns the active leaves, each with its claim and the part of [`WHOLE`] that it uses.
    fn active(&self, tree: &Tree, books: &Books, usage: &[Resources]) -> Vec<(QueueAt, QueueClaim, u128)> {
        let (capacity, requests) = (books.offered(), tree.requests(books));
        let claim = |leaf: QueueAt| {
            let claim = QueueClaim { weight: tree[leaf].weight, demand: self.part(&requests[leaf], capacity) };
            (leaf, claim, self.part(&usage[leaf], capacity))
        };
        tree.leaves().filter(|leaf| !requests[*leaf].is_zero()).map(claim).collect()
    }

    /// Returns the queues above their shares. Their jobs are reclaimed.
    fn above_share(&self, session: &Session) -> Vec<QueueAt> {
        let above = |(leaf, share, used): (QueueAt, QueueShares, u128)| {
            let share = share.fair.max(share.capped) + SLACK;
            let above = used * u128::from(ONE) > share * u128::from(self.settings.protected_fraction);
            above.then_some(leaf)
        };
        shared(&self.active(session.tree, session.books, &session.usage)).into_iter().filter_map(above).collect()
    }
}

/// Returns the shares of the active queues, each with the part of the cluster that the queue uses.
fn shared(active: &[(QueueAt, QueueClaim, u128)]) -> Vec<(QueueAt, QueueShares, u128)> {
    let claims: Vec<QueueClaim> = active.iter().map(|(_, claim, _)| *claim).collect();
    active.iter().zip(shares(&claims)).map(|((leaf, _, used), share)| (*leaf, share, *used)).collect()
}

impl Scheduler for Armada {
    type Settings = Settings;

    fn user_queue(weight: Option<Millionths>) -> Option<Settings> {
        Some(Settings { weight: weight? })
    }

    fn cycle(&mut self, session: &mut Session) -> Result<()> {
        let capacity = *session.books.offered();
        let above = self.above_share(session);
        // The last reclaimed job of a queue is its least urgent one; its rank has the current cost of the queue. A waiting job that ranks
        // behind the last reclaimed job of every queue displaces no job.
        let last = above.iter().filter_map(|at| {
            Some(((session.least_urgent(*at)?, self.place(session.tree, *at, &session.usage[*at], &capacity)), *at))
        });
        let last: Vec<((u8, (Ratio, usize)), QueueAt)> = last.collect();
        let comes_before = |queue: QueueAt| {
            let Some(next) = session.waiting(queue).next() else { return false };
            let with = session.usage[queue] + next.need();
            let place = (next.priority, self.place(session.tree, queue, &with, &capacity));
            // A more urgent job of the same queue precedes its reclaimed jobs too.
            last.iter().any(|(last, at)| if *at == queue { place.0 < last.0 } else { place < *last })
        };
        let preempts_for = session.waiting_queues().into_iter().any(comes_before);
        Round::new(self, session, if preempts_for { &above } else { &[] }).run();
        Ok(())
    }

    fn status(&self, view: &QueueView<Settings>) -> Vec<Status> {
        let QueueView { tree, table, books } = *view;
        let shown = |part: u128| part as f64 / WHOLE as f64;
        let one = |(leaf, share, used): (QueueAt, QueueShares, u128)| Status {
            name: tree.nodes[leaf].name.clone(),
            values: [
                ("cost", used),
                ("fair share", share.fair),
                ("demand-capped share", share.capped),
                ("uncapped share", share.uncapped),
            ]
            .map(|(name, part)| (name.to_owned(), shown(part)))
            .into(),
            guaranteed: Resources::NONE,
            limit: Resources::NONE,
        };
        let active = self.active(tree, books, &table.usage);
        let known: BTreeMap<QueueAt, _> = shared(&active).into_iter().map(|known| (known.0, known)).collect();
        // A queue without jobs reports the shares that it would have if it became active in addition to the active queues.
        let idle = |leaf: QueueAt| {
            let claim = (leaf, QueueClaim { weight: tree[leaf].weight, demand: 0 }, 0);
            shared(&[active.as_slice(), &[claim]].concat()).pop()
        };
        tree.leaves().filter_map(|leaf| known.get(&leaf).copied().or_else(|| idle(leaf))).map(one).collect()
    }

    fn compare_users(&self, view: &QueueView<Settings>, one: UserId, other: UserId) -> Option<bool> {
        let QueueView { tree, table, books } = *view;
        let (one, other) = view.next(one, other)?;
        if one.queue == other.queue {
            return Some(one.turn() < other.turn());
        }
        let place = |next: &cycle::Waiting| {
            let with = *table.usage.get(next.queue)? + next.need();
            let cost = self.cost(&with, books.offered()).over(tree[next.queue].weight, ONE);
            Some((next.priority, cost, &tree.nodes[next.queue].name))
        };
        Some(place(&one)? < place(&other)?)
    }
}
