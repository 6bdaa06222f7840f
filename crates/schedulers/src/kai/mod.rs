//! The KAI scheduler: fair shares from deserved amounts and over-quota weights, level by level, and reclaim between queues by these shares.
//!
//! *Shares.* At each level of the tree and for each resource, every queue first receives the part of its deserved amount that it requests,
//! even if the sum exceeds the total; an unlimited amount is the total of the level. The rest is divided by `priority`, the highest first.
//! Queues of equal priority share it in proportion to `weight`, and receive less if their past `usage` is high
//! ([`plimsoll_fair::divide`]). GPUs are divided in whole devices. A resource that no group names under `deserved` is not divided. If no
//! group names a resource, all resources are divided, and no queue has a deserved amount.
//!
//! *Order.* Sibling queues are compared by these criteria, in this order:
//!
//! 1. A queue within its fair share is first. (A queue exceeds its fair share only if it is above the share in all of CPU, memory and
//!    GPUs. So no queue exceeds it unless all three are divided.)
//! 2. A queue that stays within its deserved amounts with its next workload is first. (With `queue_priority_in_quota_reclaim`, the priority
//!    of two such queues precedes all other criteria.)
//! 3. The higher priority.
//! 4. A queue is first if, with its next workload, it uses no resource for which its allowance is 0.
//! 5. The smaller dominant part of the allowance that the queue uses, with the next workload, then without it.
//! 6. The smaller allowance, then the first in the file.
//!
//! The allowance of a queue is the larger of its fair share and its deserved amount, within its limit. Inside a queue, workloads are
//! ordered by priority, then workloads of users without running tasks are first, then the oldest.
//!
//! *Actions* of a cycle, in this order:
//!
//! - *Allocate*: starts workloads in the order above, one task at a time (a gang all at once), while there is room and no `limit` of a
//!   queue or an ancestor is exceeded.
//! - *Reclaim*: makes room for a workload that leaves its queue within its fair share. Victims are taken from other queues, one at a time.
//!   They come from the last queue in the order; inside it the least urgent tasks are first, then tasks of users beyond their first one,
//!   then the youngest. Once there would be room, a simulation places all victims and the workload in the order; victims that find a place
//!   are spared. Each other victim must be from a queue (at the level right under the lowest common ancestor) that remains above its
//!   allowance, or above its deserved amount while the other queue deserves the workload. Each queue that gains and is above its fair
//!   share must use a smaller part of its share than its siblings that lose tasks.
//! - *Preempt*: makes room in the same way, with less urgent workloads of the same queue as victims, and without these conditions on the
//!   queues.
//!
//! The workload starts in the room of its victims in the same cycle.
//!
//! Source: KAI (kai-scheduler/KAI-Scheduler, state of August 2026): `pkg/scheduler/plugins/proportion`, `pkg/scheduler/actions`,
//! docs/fairness and the design document of its time-based fair share.
//!
//! Departures: room is counted for the whole cluster, and on the machines of victims (for a gang, on one of its machines); no task moves
//! to another machine, so there is no consolidation; preemptible is a setting of a queue, not of a workload; a search ends after 64
//! simulations; a victim that finds its place again is placed task by task; past usage is a setting, and does not decay (under
//! `time-based` it does). Without a file every user is a queue without a deserved amount, and has its weight.
//!
//! Faults: issue 1934 was closed without a cause. The published code has the rule that the issue misses; the variant lacks this rule. In
//! issue 1565 (open) victims that are placed on other machines restart unchecked; this module has no such moves, so there is no variant.

mod quotas;
mod solve;
mod walk;

use std::cmp::Ordering;
use std::collections::HashMap;

use super::cycle::{self, Millionths, QueueAt, QueueFile, QueueView, ROOT, Scheduler, SettingTable, Waiting, parse};
use plimsoll_base::error::Result;
use plimsoll_base::units::{Dim, Resources, UserId};
use plimsoll_policies::{PolicyRow, RankOrder, Reason, Setup, Status};
use plimsoll_sim::books::Books;

use quotas::{KEYS, NodeQuota, PolicySettings, Quotas, Shares, Side, Tree};
use solve::{Solution, VictimSearch};
use walk::{Item, Walk};

/// `kai[@ISSUE][:FILE]`
pub static ROW: PolicyRow = PolicyRow {
    name: "kai",
    spelling: "kai[@ISSUE][:FILE]",
    rank: RankOrder::Lowest("rank of the user's queue by fair share, quota, priority and the used part of the share"),
    meaning: "The KAI scheduler: deserved amounts, over-quota weights, and reclaim by fair shares.",
    source: "KAI scheduler (NVIDIA), proportion plugin and actions of August 2026",
    example: "kai",
    checked: "kai",
    variants: &[
        (
            "374",
            "a queue and its ancestors must stay within their fair shares when they reclaim, whatever others use (kai pull request 374)",
        ),
        ("1750", "the search for victims includes queues that must not lose tasks (kai issue 1750)"),
        ("1934", "reclaim restores what a queue deserves, not its fair share (kai issue 1934)"),
    ],
    keys: KEYS,
    read: |given| parse(given, Kai::new),
};

/// The settings of the policy and the rules of its variant.
#[derive(Clone, Debug)]
struct Rules {
    settings: PolicySettings,
    /// See `kai@374`.
    within_shares: bool,
    /// See `kai@1750`.
    unfiltered: bool,
    /// See `kai@1934`.
    deserved_alone: bool,
}

type Session<'a> = cycle::Session<'a, NodeQuota>;

struct Kai {
    quotas: Quotas,
    rules: Rules,
    dims: Vec<Dim>,
}

/// A waiting workload.
#[derive(Clone, Copy)]
struct WaitingWorkload {
    next: Waiting,
    need: Resources,
    /// Whether it is beyond the minimum of its job: its user already has running tasks, and it is no gang.
    spare: bool,
}

impl Item for WaitingWorkload {
    fn amount(&self) -> Resources {
        self.need
    }
}

impl WaitingWorkload {
    fn new(next: Waiting, has: bool) -> WaitingWorkload {
        WaitingWorkload { next, need: next.need(), spare: has && !next.gang }
    }

    fn key(&self) -> (u8, bool, (u64, u64)) {
        (self.next.priority, self.spare, (self.next.since.0.0, self.next.since.1))
    }

    fn side(&self, at: QueueAt) -> Side {
        Side { at, with: self.need, without: Resources::ZERO }
    }
}

const ABOVE_SHARE: Reason = Reason::NoRoom("there is no room, and its queue would exceed its fair share");
const NEXT_CYCLE: Reason = Reason::Rule("a victim leaves room for it, and it starts in the next cycle");
const NO_VICTIMS: Reason = Reason::NoRoom("there is no room, and no permitted preemption would help");
const NOT_DESERVED: Reason = Reason::Rule("its queue is not preemptible, and would exceed its deserved amount");

impl Kai {
    fn new(tree: &Tree, file: &QueueFile, variant: Option<&str>, setup: &Setup) -> Result<Kai> {
        let settings = PolicySettings::read(&file.policy, setup.dims)?;
        let quotas = Quotas::new(tree, setup.dims, setup.capacity, &settings);
        let rules = Rules {
            settings,
            within_shares: variant == Some("374"),
            unfiltered: variant == Some("1750"),
            deserved_alone: variant == Some("1934"),
        };
        Ok(Kai { quotas, rules, dims: setup.dims.to_vec() })
    }

    /// Returns the fair shares, from the allocation and the pending demand of each queue's users.
    fn fair(&self, tree: &Tree, books: &Books) -> Vec<Resources> {
        self.quotas.shares(tree, &tree.requests(books))
    }

    /// Returns the waiting workloads that pass a test, by queue.
    fn lines(session: &Session, test: impl Fn(&WaitingWorkload) -> bool) -> Vec<(QueueAt, Vec<WaitingWorkload>)> {
        let mut lines = Vec::new();
        for leaf in session.waiting_queues() {
            let entries = session
                .waiting(leaf)
                .map(|next| WaitingWorkload::new(next, session.held[next.user.index()] != Resources::ZERO));
            let mut line: Vec<WaitingWorkload> = entries.filter(&test).collect();
            line.sort_by_key(WaitingWorkload::key);
            if !line.is_empty() {
                lines.push((leaf, line));
            }
        }
        lines
    }

    /// Returns the rule that forbids a workload even if there is room.
    fn forbidden(&self, session: &Session, entry: &WaitingWorkload) -> Option<Reason> {
        let leaf = entry.next.queue;
        if let Some(excess) = self.quotas.over_limit(session.tree, &session.usage, leaf, &entry.need) {
            return Some(excess.reason());
        }
        let fixed = |at: QueueAt| {
            let fixed = self.quotas.fixed(session.tree, &session.usage, at, &entry.need);
            self.quotas.is_deserved(session.tree, at, &fixed)
        };
        let path = session.tree.path(leaf).filter(|at| *at != ROOT);
        let stays = session.tree[leaf].preemptible || { path }.all(fixed);
        (!stays).then_some(NOT_DESERVED)
    }

    fn allocate(&self, session: &mut Session, shares: Shares) {
        let lines = Kai::lines(session, |entry| session.has_room(&entry.next));
        if lines.is_empty() {
            return;
        }
        let mut walk = Walk::new(shares, &session.usage, lines, false);
        while let Some(leaf) = walk.leaf() {
            let Some(entry) = walk.pop(leaf) else { break };
            if session.has_room(&entry.next) && self.forbidden(session, &entry).is_none() {
                session.launch(&entry.next, 1);
                Kai::rest(session, &mut walk, entry.next.user);
            }
            walk.settle(leaf, &session.usage);
        }
    }

    /// Inserts the next waiting workload of a user into the walk.
    fn rest(session: &Session, walk: &mut Walk<WaitingWorkload>, user: UserId) {
        if let Some(next) = session.next(user) {
            let entry = WaitingWorkload::new(next, true);
            walk.insert_at(next.queue, entry, |other| other.key() <= entry.key());
        }
    }

    /// Starts workloads without room in the room of victims. The victims are tasks of other queues if `reclaim` is set, else less urgent
    /// tasks of the same queue.
    fn displace(&self, session: &mut Session, shares: Shares, reclaim: bool) {
        let lines = Kai::lines(session, |entry| {
            let search = VictimSearch { session, shares, rules: &self.rules, entry: *entry };
            match reclaim {
                true => search.may_reclaim(),
                false => session.least_urgent(entry.next.queue).is_some_and(|least| least > entry.next.priority),
            }
        });
        if lines.is_empty() {
            return;
        }
        let mut walk = Walk::new(shares, &session.usage, lines, false);
        // By queue, the workloads without a solution. Another workload that needs at least as much, and is at most as urgent (not required
        // for reclaim), has no solution either.
        let mut failed: HashMap<QueueAt, Vec<WaitingWorkload>> = HashMap::new();
        while let Some(leaf) = walk.leaf() {
            let Some(entry) = walk.pop(leaf) else { break };
            let search = VictimSearch { session, shares, rules: &self.rules, entry };
            if reclaim && !search.may_reclaim() {
                failed.entry(leaf).or_default().push(entry);
                walk.settle(leaf, &session.usage);
                continue;
            }
            // Earlier victims may have left more room than their workloads needed. Tasks beyond the minimum of a job start in the next
            // cycle: the source processes a job once per action.
            if session.has_room(&entry.next) && self.forbidden(session, &entry).is_none() {
                if !entry.spare {
                    session.launch(&entry.next, 1);
                    Kai::rest(session, &mut walk, entry.next.user);
                }
                walk.settle(leaf, &session.usage);
                continue;
            }
            let alike = |known: &WaitingWorkload| {
                (reclaim || known.next.priority <= entry.next.priority)
                    && known.next.each.fits(&entry.next.each)
                    && known.next.together() <= entry.next.together()
            };
            let hopeless = failed.get(&leaf).is_some_and(|known| known.iter().any(alike));
            let search = VictimSearch { session, shares, rules: &self.rules, entry };
            let solution = match (hopeless, reclaim) {
                (true, _) => None,
                (false, true) => search.reclaim(),
                (false, false) => search.preempt(),
            };
            match solution {
                None => failed.entry(leaf).or_default().push(entry),
                Some(Solution { victims, seats }) => {
                    victims.iter().for_each(|(runs, rule)| session.evict(runs, 1, Some(entry.next.user), rule));
                    session.launch_on(&entry.next, seats);
                    Kai::rest(session, &mut walk, entry.next.user);
                    walk.settle_all(&session.usage);
                    failed.clear();
                    continue;
                }
            }
            walk.settle(leaf, &session.usage);
        }
    }

    fn explain(&self, session: &mut Session, shares: Shares) {
        session.explain(|session, next| {
            let entry = WaitingWorkload::new(*next, false);
            let search = VictimSearch { session, shares, rules: &self.rules, entry };
            self.forbidden(session, &entry).unwrap_or_else(|| match search.may_reclaim() {
                _ if session.has_room(next) => NEXT_CYCLE,
                true => NO_VICTIMS,
                false => ABOVE_SHARE,
            })
        });
    }
}

impl Scheduler for Kai {
    type Settings = NodeQuota;

    fn user_queue(weight: Option<Millionths>) -> Option<NodeQuota> {
        Some(NodeQuota { weight: weight?, ..NodeQuota::default() })
    }

    fn cycle(&mut self, session: &mut Session) -> Result<()> {
        let fair = self.fair(session.tree, session.books);
        let shares = Shares { quotas: &self.quotas, tree: session.tree, fair: &fair };
        self.allocate(session, shares);
        self.displace(session, shares, true);
        self.displace(session, shares, false);
        session.spare(|session, unit| {
            self.quotas.over_limit(session.tree, &session.usage, unit.queue, &unit.unit()).is_none()
        });
        self.explain(session, shares);
        Ok(())
    }

    fn status(&self, view: &QueueView<NodeQuota>) -> Vec<Status> {
        let fair = self.fair(view.tree, view.books);
        view.status(|at| {
            let (quota, level) = (&view.tree[at], fair[view.tree.nodes[at].parent]);
            let divided = self.dims.iter().enumerate().filter(|(d, _)| self.quotas.is_divided(*d));
            let values = divided.map(|(d, dim)| (format!("fair {}", dim.name), dim.amount(fair[at][d]))).collect();
            let guaranteed = Resources::from_fn(|d| {
                (at != ROOT && self.quotas.is_divided(d)).then(|| quota.deserved(d).amount(level[d]))
            });
            (values, guaranteed, quota.limit)
        })
    }

    fn compare_users(&self, view: &QueueView<NodeQuota>, one: UserId, other: UserId) -> Option<bool> {
        let QueueView { tree, table, books } = *view;
        let entry = |user: UserId| {
            let next = table.next(user)?;
            Some(WaitingWorkload::new(next, table.held[user.index()] != Resources::ZERO))
        };
        let (one, other) = (entry(one)?, entry(other)?);
        let (left, right) = (one.next.queue, other.next.queue);
        if left == right {
            return Some(one.key() < other.key());
        }
        let fair = self.fair(tree, books);
        let shares = Shares { quotas: &self.quotas, tree, fair: &fair };
        let order =
            tree.compare(left, right, |left, right| shares.compare(&table.usage, &one.side(left), &other.side(right)));
        Some(order == Ordering::Less)
    }
}
