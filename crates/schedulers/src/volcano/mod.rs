//! Volcano: gangs and dominant shares within a queue, deserved amounts between queues, and preemption and reclaim within and between
//! queues.
//!
//! There are three rows, one for each plugin that orders queues:
//!
//! - *Proportion*: the cluster is divided by `weight`. A queue deserves at most its requests and its `capability`, and at least its
//!   `guarantee`.
//! - *Capacity*: the file defines `deserved`, `guarantee` and `capability`.
//! - *Drf*: hierarchical dominant shares over nested groups with weights; there are no deserved amounts.
//!
//! The other plugins are those of the default configuration of August 2026: priority and gang in the first tier, drf in the second. Neither
//! gang nor drf selects victims of preemption (`gang_preemptable`, `drf_preemptable`, both off since v1.7).
//!
//! *Order.* Queues are ordered by `priority` (the higher first), then by the used part of the deserved amount (the smaller first), then by
//! the file. (Capacity: a queue that deserves zero counts as full, and follows a full queue that deserves more.) Jobs of a queue are
//! ordered by urgency. Then jobs below their minimum number of tasks are first (`min_available` of their queue; for a gang, all tasks),
//! then the smaller dominant share, then the oldest. A `strict-fifo` queue starts no job behind one that does not start.
//!
//! *Actions*, in the order of `actions`. The default configuration has only allocate (besides enqueue and backfill), so no task is ever
//! preempted.
//!
//! - *Allocate*: takes the first job of the first queue. The tasks that it lacks to its minimum start together, further tasks one at a
//!   time. Proportion keeps a queue within its deserved amount even if capacity stays idle; capacity keeps a queue within its capability
//!   minus the guarantees of siblings.
//! - *Preempt*: a job below its minimum displaces tasks of less urgent jobs of its queue.
//! - *Reclaim*: such a job displaces tasks of other queues if its queue then stays within its deserved amount (capacity: in one resource
//!   is sufficient). The first tier (gang) decides if it finds victims: tasks of jobs beyond their minimum. Otherwise the plugin of the
//!   row decides: victims are in queues above their deserved amount (capacity: queues must also keep their guarantee). The job that is
//!   served last loses tasks first.
//!
//! The job starts in the room of its victims in the same cycle.
//!
//! *Guarded* is a repair of ours. Only the rules for queues select the victims of reclaim (a gang as a whole), regardless of the minimums
//! of jobs. Every waiting job reclaims while its queue stays within its deserved amount. Under capacity this must be true in every
//! resource of which any queue has a deserved amount. Proportion lets queues exceed the deserved amount if room is left, and treats
//! weights that are all 0 as equal. Drf judges each victim after the preceding victims have left. Capacity without the repair with reclaim
//! oscillates if two queues are within their deserved amounts in one resource and above them in another.
//!
//! Source: Volcano (volcano-sh/volcano, state of August 2026): `pkg/scheduler/{actions,framework,plugins}`,
//! docs/design/{capacity-scheduling,hdrf}.md.
//!
//! Departures:
//!
//! - Enqueue and backfill are not implemented.
//! - Tasks of a job that start together find victims together or find none. Tasks of one job do not preempt each other.
//! - The level of proportion is the limit of its loop, in integers.
//! - Capacity ignores resources without a given deserved amount.
//! - A reclaiming job stops at its minimum, and stays within the capability of all queues above its own.
//! - Room is counted for the whole cluster, and on the machines of victims.
//! - `volcano-drf` has no gang tier in reclaim.
//! - Proportion refuses nested queues and weights of 0, as upstream's admission does.
//!
//! Without a file every user is a queue with its weight, and deserves the part of the cluster that its weight gives.

mod actions;
mod hierarchy;
mod jobs;
mod queues;

use std::cmp::Ordering;
use std::collections::HashMap;

use super::cycle::{Millionths, QueueFile, QueueView, ROOT, Scheduler, SettingTable, parse, without};
use plimsoll_base::error::Result;
use plimsoll_base::units::{Dim, Resources, UserId};
use plimsoll_policies::{Parsed, PolicyRow, RankOrder, Reason, Setup, Status};
use plimsoll_sim::books::Books;

use actions::{Action, Cycle};
use jobs::{CycleAllocations, VolcanoCycle};
use queues::{KEYS, Levels, NodeQuota, Plugin, PolicySettings, Quotas, Session, Tree};

/// `volcano-drf[@ISSUE][:FILE]`
pub static DRF_ROW: PolicyRow = PolicyRow {
    name: "volcano-drf",
    spelling: "volcano-drf[@ISSUE][:FILE]",
    rank: RankOrder::Stated(
        "the queue with the lowest hierarchical dominant share over its weight first, then jobs by urgency, gang and \
         dominant share",
    ),
    meaning: "Volcano with drf: queues by hierarchical dominant shares, jobs by dominant shares.",
    source: "Volcano, drf plugin with hierarchy and actions of August 2026",
    example: "volcano-drf",
    checked: "volcano-drf",
    variants: &[
        (
            "guarded",
            "ours, without livelock: every job that waits reclaims, and victims are judged one after the other",
        ),
        ("390", "gang alone selects the victims if it finds any, and every waiting job preempts (volcano issue 390)"),
        (
            "1661",
            "the room of victims must suffice without idle room, and is available to all once they have left (volcano issue 1661)",
        ),
    ],
    keys: &without::<7>(KEYS, &["deserved", "guarantee", "capability", "priority"]),
    read: |given| read(Plugin::Drf, given),
};

/// `volcano-proportion[@ISSUE][:FILE]`
pub static PROPORTION_ROW: PolicyRow = PolicyRow {
    name: "volcano-proportion",
    spelling: "volcano-proportion[@ISSUE][:FILE]",
    rank: RankOrder::Stated(
        "the queue of the highest priority first, then the lowest usage over the deserved amount by weight, then \
         jobs by urgency, gang and dominant share",
    ),
    meaning: "Volcano with proportion: queues deserve parts of the cluster by weight.",
    source: "Volcano, default configuration of August 2026",
    example: "volcano-proportion",
    checked: "volcano-proportion",
    variants: &[
        (
            "guarded",
            "ours, without livelock or idle rest: every waiting job reclaims, queues alone select the victims, and the rest is used beyond deserved amounts",
        ),
        ("390", "gang alone selects the victims if it finds any, and every waiting job preempts (volcano issue 390)"),
        (
            "1083",
            "queues of weight 0 deserve nothing, and count as overused from their first task on (volcano issue 1083)",
        ),
        ("1168", "a queue that has enough of one resource deserves no more of any (volcano issue 1168)"),
        ("1619", "a first tier without victims ends the search (volcano issue 1619)"),
        ("3869", "every waiting job reclaims while its queue is below its deserved amount (volcano issue 3869)"),
    ],
    keys: &without::<10>(KEYS, &["deserved"]),
    read: |given| read(Plugin::Proportion, given),
};

/// `volcano-capacity[@ISSUE][:FILE]`
pub static CAPACITY_ROW: PolicyRow = PolicyRow {
    name: "volcano-capacity",
    spelling: "volcano-capacity[@ISSUE][:FILE]",
    rank: RankOrder::Stated(
        "the queue of the highest priority first, then the lowest usage over the deserved amount, then jobs by \
         urgency, gang and dominant share",
    ),
    meaning: "Volcano with capacity: queues have deserved, guaranteed and largest amounts.",
    source: "Volcano, capacity plugin and actions of August 2026",
    example: "volcano-capacity",
    checked: "volcano-capacity",
    variants: &[
        (
            "guarded",
            "ours, without livelock: deserved amounts count in all resources, every waiting job reclaims, and queues alone select the victims",
        ),
        ("390", "gang alone selects the victims if it finds any, and every waiting job preempts (volcano issue 390)"),
        ("3729", "every waiting job reclaims while its queue is below its deserved amount (volcano issue 3729)"),
    ],
    keys: &without::<10>(KEYS, &["weight"]),
    read: |given| read(Plugin::Capacity, given),
};

fn read(plugin: Plugin, given: Option<&str>) -> std::result::Result<Parsed, String> {
    parse(given, move |tree, file, variant, setup| Volcano::new(plugin, tree, file, variant, setup))
}

/// The settings of the policy and the rules of its variant.
#[derive(Clone, Debug)]
struct Rules {
    actions: Vec<Action>,
    gang_preemptable: bool,
    drf_preemptable: bool,
    guarded: bool,
    /// See `volcano-drf@390`.
    gang_decides: bool,
    pending_preempts: bool,
    /// See `volcano-drf@1661`.
    open_room: bool,
    /// See `volcano-proportion@1619`.
    first_tier_alone: bool,
    /// See `volcano-proportion@3869`.
    pending_reclaims: bool,
    below_reclaims: bool,
}

struct Volcano {
    quotas: Quotas,
    rules: Rules,
    dims: Vec<Dim>,
    capacity: Resources,
}

const OVERUSED: Reason = Reason::Rule("its queue is at its deserved amount");
const NOT_DESERVED: Reason = Reason::Rule("its queue would exceed its deserved amount");
const PROMISED: Reason = Reason::Rule("it waits for its victims to leave; then their room is available to all");
const NO_VICTIMS: Reason = Reason::NoRoom("there is no room, and no task is stopped for it");

impl Volcano {
    fn new(plugin: Plugin, tree: &Tree, file: &QueueFile, variant: Option<&str>, setup: &Setup) -> Result<Volcano> {
        let settings = PolicySettings::read(&file.policy, setup.dims)?;
        let old = matches!(variant, Some("3729" | "3869"));
        let rules = Rules {
            actions: settings.actions,
            gang_preemptable: settings.gang_preemptable.unwrap_or(variant == Some("390")),
            drf_preemptable: settings.drf_preemptable.unwrap_or(variant == Some("390")),
            guarded: variant == Some("guarded"),
            gang_decides: variant == Some("390"),
            pending_preempts: variant == Some("390"),
            open_room: variant == Some("1661"),
            first_tier_alone: variant == Some("1619"),
            pending_reclaims: old || variant == Some("guarded"),
            below_reclaims: old,
        };
        let quotas = Quotas::new(tree, file, plugin, variant, setup.dims, setup.capacity)?;
        Ok(Volcano { quotas, rules, dims: setup.dims.to_vec(), capacity: setup.capacity })
    }

    /// Computes the amounts that queues may use, from the allocation and the pending demand of their users.
    fn levels(&self, tree: &Tree, books: &Books) -> Levels {
        self.quotas.levels(tree, &tree.requests(books))
    }

    /// Returns the state between cycles.
    fn at<'t>(&'t self, levels: &'t Levels, view: &QueueView<'t, NodeQuota>) -> (VolcanoCycle<'t>, CycleAllocations) {
        let QueueView { tree, table, books } = *view;
        let free = books.offered().saturating_sub(*books.total_held());
        let now =
            CycleAllocations { usage: table.usage.clone(), held: table.held.clone(), free, tasks: HashMap::new() };
        (VolcanoCycle { volcano: self, levels, tree, books }, now)
    }
}

impl Scheduler for Volcano {
    type Settings = NodeQuota;

    fn user_queue(weight: Option<Millionths>) -> Option<NodeQuota> {
        Some(NodeQuota { weight: weight?, ..NodeQuota::default() })
    }

    fn cycle(&mut self, session: &mut Session) -> Result<()> {
        let levels = self.levels(session.tree, session.books);
        let turn = VolcanoCycle { volcano: self, levels: &levels, tree: session.tree, books: session.books };
        let mut cycle = Cycle { turn, session, tasks: HashMap::new(), promised: Vec::new() };
        for action in &self.rules.actions {
            match action {
                Action::Allocate => cycle.allocate(),
                Action::Preempt => cycle.preempt(),
                Action::Reclaim => cycle.reclaim(),
            }
        }
        cycle.spare();
        cycle.explain();
        Ok(())
    }

    fn status(&self, view: &QueueView<NodeQuota>) -> Vec<Status> {
        let QueueView { tree, table, books } = *view;
        let levels = self.levels(tree, books);
        let (turn, now) = self.at(&levels, view);
        let shares = turn.hierarchy().map(|hierarchy| hierarchy.shares(&now.held, &turn.all(&now)));
        view.status(|at| {
            let (amount, most) = self.quotas.share(&levels.deserved[at], &table.usage[at]);
            let share = shares.as_ref().map_or(amount as f64 / most.max(1) as f64, |shares| shares[at].share);
            let promised = at > ROOT && self.quotas.plugin != Plugin::Drf;
            let mut values = Vec::new();
            if promised || shares.is_some() {
                values.push(("share".to_owned(), share));
            }
            let deserved = self.dims.iter().enumerate().filter(|_| promised);
            values.extend(
                deserved.map(|(d, dim)| (format!("deserved {}", dim.name), dim.amount(levels.deserved[at][d]))),
            );
            let guaranteed =
                Resources::from_fn(|d| (promised && d < self.dims.len()).then_some(levels.deserved[at][d]));
            (values, guaranteed, levels.real[at])
        })
    }

    /// Compares users of one queue by the order of jobs, others by the order of queues.
    fn compare_users(&self, view: &QueueView<NodeQuota>, one: UserId, other: UserId) -> Option<bool> {
        let (one, other) = view.next(one, other)?;
        let levels = self.levels(view.tree, view.books);
        let (turn, now) = self.at(&levels, view);
        let order = match one.queue == other.queue {
            true => turn.place(&now, &one).compare(&turn.place(&now, &other)),
            false => turn.queues(&now)(one.queue, other.queue),
        };
        Some(order == Ordering::Less)
    }
}
