//! Kueue's fair sharing: queues borrow from their cohort, and the shares of borrowed amounts decide on admission and preemption.
//!
//! Groups with child groups are cohorts, the others cluster queues. Groups right under the root form one cohort, which also owns the
//! amounts of the cluster beyond their quotas. A user's next task set is a workload; a gang is one workload. The *share* of a node is
//! computed from its usage beyond its quota, as a part of its parent's lendable amount: the largest part over all resources, divided by
//! the weight of the node.
//!
//! *Heads.* In a cycle each queue has one head: the first of its workloads, by priority and age, that fits or has preemption candidates
//! (with `order = "strict-fifo"`, the first workload). Heads are selected one by one by a tournament from the leaves to the root. Among
//! siblings, nodes that would stay within their quotas of the needed resources are first, then the node with the lowest share including
//! the workload; ties are broken by priority, then age. A head that fits is admitted. A head that does not fit preempts if the victims
//! make room for it.
//!
//! *Victims.* Candidates are workloads of the head's own queue (`within`) and of queues that borrow a contested resource (`reclaim`). They
//! are taken one by one from the child with the highest share that has candidates, from the root down. A candidate of its own queue is
//! taken at once. A candidate of another queue is taken if the preemptor stays within its nominal quota, or by rule S2-a: the preemptor's
//! share with the workload is at most the other queue's share without the victim. Then skipped candidates are taken by rule S2-b, once per
//! queue: the preemptor's share with the workload is below the other queue's current share. At the end unneeded victims are restored, from
//! the last to the first, except the victim taken last. The room of victims is open to all workloads in the next cycle. If an earlier head
//! of the cycle has taken victims of this head, the search is repeated without these victims: the head preempts other victims in addition,
//! or waits and reserves the room of these victims.
//!
//! Source: Kueue (kubernetes-sigs/kueue, state of August 2026): `pkg/cache/scheduler/fair_sharing.go`,
//! `pkg/scheduler/{scheduler,fair_sharing_iterator}.go`, `pkg/scheduler/preemption`, KEP 1714.
//!
//! Departures: one flavour of each resource; heads without a solution, which the source sets aside one per cycle, are skipped in one cycle;
//! cohorts of equal shares are in the order of the file; a queue with `within` preempts its own workloads beyond its nominal quota whatever
//! its `reclaim`, as in the source's tests (the scheduler of August 2026 does so only unless `reclaim` is `never`). Without a file every
//! user is a queue without guarantees, with `within = "lower-priority"` and `reclaim = "any"`.

mod guard;
mod preempt;
mod quotas;

use std::cmp::Ordering;

use super::cycle::{Millionths, QueueAt, QueueFile, QueueView, ROOT, Runs, Scheduler, SettingTable, Waiting, parse};
use plimsoll_base::error::Result;
use plimsoll_base::units::{MAX_DIMS, Resources};
use plimsoll_policies::{PolicyRow, RankOrder, Reason, Setup, Status};

use guard::Guard;
use preempt::{JustifiedVictim, Search};
use quotas::{
    Arithmetic, BorrowingShare, KEYS, NodeQuota, PolicySettings, Quotas, Reclaim, Session, Snapshot, Tree, WithinQueue,
};

/// `kueue[@ISSUE][:FILE]`
pub static ROW: PolicyRow = PolicyRow {
    name: "kueue",
    spelling: "kueue[@ISSUE][:FILE]",
    rank: RankOrder::Lowest("position in the tournament of heads by shares of borrowed amounts"),
    meaning: "Kueue's fair sharing: queues borrow from cohorts, and preempt by shares.",
    source: "Kueue, KEP 1714 and the scheduler of August 2026",
    example: "kueue",
    checked: "kueue",
    variants: &[
        (
            "guarded",
            "ours, without the livelocks: the room of victims is reserved for the preemptor, claims within nominal quotas go first \
                     and are not preempted, and other workloads preempt only if that raises the lowest shares",
        ),
        ("3779", "a queue with borrow_within preempts lower priorities regardless of the shares (kueue issue 3779)"),
        ("6577", "shares are whole thousandths, and one below that counts as nothing (kueue issue 6577)"),
        ("6774", "all queues of weight 0 that borrow have equal shares (kueue issue 6774)"),
        (
            "6947",
            "after an eviction the first workload of a queue is its head again, though it cannot start (kueue issue 6947)",
        ),
        ("7101", "the same (kueue issue 7101)"),
        ("10126", "whether a workload borrows is decided by its queue, not by its cohort (kueue issue 10126)"),
    ],
    keys: KEYS,
    read: |given| parse(given, Kueue::new),
};

/// The settings of the policy and the rules of its variant.
#[derive(Clone, Debug)]
struct Rules {
    settings: PolicySettings,
    arithmetic: Arithmetic,
    guarded: bool,
    /// See `kueue@3779`. That version compares the shares of queues, regardless of their cohorts.
    borrows_within: bool,
    /// See `kueue@7101`.
    blocked_heads: bool,
    /// See `kueue@10126`; earlier versions do the same.
    queue_borrows: bool,
}

struct Kueue {
    quotas: Quotas,
    rules: Rules,
}

/// A queue's head in a cycle.
struct QueueHead {
    next: Waiting,
    need: Resources,
    mode: Mode,
}

enum Mode {
    Fits,
    /// It preempts these targets; empty if no victims help.
    Displaces(Vec<JustifiedVictim>),
    /// It cannot start.
    Nothing,
}

const NO_CANDIDATES: Reason = Reason::Rule("it does not fit, and no permitted preemption would help");
const NO_ROOM: Reason = Reason::Rule("its quota allows it, and no machine has room for it");
const TOO_LATE: Reason = Reason::Rule("it no longer fits after the earlier workloads of this cycle");
const DISPLACING: Reason = Reason::Rule("it waits for its victims to leave");

impl Kueue {
    fn new(_: &Tree, file: &QueueFile, variant: Option<&str>, setup: &Setup) -> Result<Kueue> {
        let rules = Rules {
            settings: PolicySettings::read(&file.policy, setup.dims)?,
            arithmetic: match variant {
                Some("6577") => Arithmetic::Truncated,
                Some("6774") => Arithmetic::Capped,
                _ => Arithmetic::Exact,
            },
            guarded: variant == Some("guarded"),
            borrows_within: variant == Some("3779"),
            blocked_heads: matches!(variant, Some("6947" | "7101")),
            queue_borrows: matches!(variant, Some("3779" | "10126")),
        };
        Ok(Kueue { quotas: Quotas::new(setup.capacity), rules })
    }

    /// Returns the heads of all queues, and the workloads that cannot start now, with reasons. With blocked heads (the fault of
    /// `kueue@7101`), the head of each queue is its first workload, as long as any of these first workloads fits.
    fn heads<'a>(
        &'a self,
        session: &Session,
        snapshot: &mut Snapshot<'a>,
        guard: Option<&Guard<'a>>,
    ) -> (Vec<QueueHead>, Vec<(Waiting, Reason)>) {
        let (mut heads, mut aside) = (Vec::new(), Vec::new());
        let queues = session.waiting_queues();
        if self.rules.blocked_heads {
            let firsts = queues.iter().filter_map(|queue| session.waiting(*queue).next());
            let firsts: Vec<QueueHead> = firsts.map(|next| self.nominate(session, snapshot, guard, next)).collect();
            if firsts.iter().any(|entry| matches!(entry.mode, Mode::Fits)) {
                return (firsts, aside);
            }
        }
        for queue in queues {
            let strict = session.tree[queue].strict;
            // Workloads that cannot start. Workloads with equal priority and need cannot start either.
            let mut known: Vec<(u8, Resources, Reason)> = Vec::new();
            for next in session.waiting(queue) {
                let alike = known.iter().find(|(priority, need, _)| (*priority, *need) == (next.priority, next.need()));
                if let Some((.., reason)) = alike.filter(|_| !Kueue::goes_by_age(session.tree, queue)) {
                    aside.push((next, *reason));
                    continue;
                }
                let entry = self.nominate(session, snapshot, guard, next);
                let acts = match &entry.mode {
                    Mode::Fits => true,
                    Mode::Displaces(targets) => !targets.is_empty(),
                    Mode::Nothing => false,
                };
                if acts || strict {
                    heads.push(entry);
                    break;
                }
                // It is set aside, but a queue that may not always reclaim reserves room for it.
                let reserves = matches!(entry.mode, Mode::Displaces(_)) && session.tree[queue].reclaim != Reclaim::Any;
                let reason = self.short(snapshot, &entry);
                known.push((next.priority, entry.need, reason));
                aside.push((next, reason));
                if reserves {
                    heads.push(entry);
                    break;
                }
            }
        }
        (heads, aside)
    }

    /// Returns whether the victims of a workload depend on its age.
    fn goes_by_age(tree: &Tree, queue: QueueAt) -> bool {
        tree[queue].within == WithinQueue::LowerOrNewerEqual
    }

    fn short(&self, snapshot: &Snapshot, entry: &QueueHead) -> Reason {
        match snapshot.short(entry.next.queue, &entry.need) {
            Some((d, short)) => Reason::Quota { group: entry.next.queue as u32, resource: d as u8, short },
            None if matches!(entry.mode, Mode::Displaces(_)) => NO_CANDIDATES,
            None => NO_ROOM,
        }
    }

    /// Returns whether a workload may preempt: its queue may preempt its own workloads or reclaim, or for each scarce resource the workload
    /// is within the quota of its queue or of a cohort below the root.
    fn may_displace(&self, snapshot: &Snapshot, at: QueueAt, need: &Resources) -> bool {
        let quota = &snapshot.tree[at];
        let entitled = |d: usize| {
            need[d] == 0
                || need[d] as i64 <= snapshot.available(at, d)
                || need[d] <= quota.nominal[d]
                || snapshot.is_within_cohort(at, d, need[d])
        };
        quota.within != WithinQueue::Never || quota.reclaim != Reclaim::Never || (0..MAX_DIMS).all(entitled)
    }

    /// Determines whether a workload fits, preempts or cannot start in this cycle.
    fn nominate<'a>(
        &'a self,
        session: &Session,
        snapshot: &mut Snapshot<'a>,
        guard: Option<&Guard<'a>>,
        next: Waiting,
    ) -> QueueHead {
        let need = next.need();
        let mode = if snapshot.fits(next.queue, &need) {
            // Quotas ignore machines, and may exceed the capacity: a workload without room blocks no other.
            if session.has_room(&next) { Mode::Fits } else { Mode::Nothing }
        } else if !self.quotas.could(next.queue, &need) || !self.may_displace(snapshot, next.queue, &need) {
            Mode::Nothing
        } else {
            let mut targets = Search::targets(session, snapshot, &self.rules, guard, &next);
            // Quotas ignore machines and may exceed the capacity. A workload without room on a machine does not block others.
            let gone: Vec<Runs> = targets.iter().map(|target| target.runs).collect();
            let mut worth = |guard: &Guard<'a>| {
                session.would_fit(&next, &gone) && guard.is_worth_it(session, snapshot, &next, &targets)
            };
            if guard.is_some_and(|guard| !worth(guard)) {
                targets.clear();
            }
            Mode::Displaces(targets)
        };
        QueueHead { next, need, mode }
    }

    /// Returns the winner of the next tournament: at each node, children that would not borrow are first, then the child with the lowest
    /// share including the head.
    fn winner(
        &self,
        tree: &Tree,
        snapshot: &mut Snapshot,
        entries: &[Option<QueueHead>],
        at: QueueAt,
    ) -> Option<QueueAt> {
        if tree.is_leaf(at) {
            return entries[at].as_ref().map(|_| at);
        }
        let mut best: Option<(QueueAt, (bool, BorrowingShare))> = None;
        for child in tree.nodes[at].children.iter().copied() {
            let Some(found) = self.winner(tree, snapshot, entries, child) else { continue };
            let Some(entry) = &entries[found] else { continue };
            let of = if self.rules.queue_borrows { entry.next.queue } else { child };
            let needed = entry.need.map(|need| need > 0);
            snapshot.add(entry.next.queue, &entry.need);
            let sharing = if self.rules.borrows_within { entry.next.queue } else { child };
            let key = (snapshot.borrows(of, &needed), snapshot.share(sharing));
            snapshot.remove(entry.next.queue, &entry.need);
            let first = best.as_ref().and_then(|(other, known)| Some((entries[*other].as_ref()?, known)));
            let before = first.is_none_or(|(other, known)| {
                let shares = key.1.cmp(&known.1, self.rules.arithmetic);
                let turns = entry.next.turn().cmp(&other.next.turn());
                key.0.cmp(&known.0).then(shares).then(turns) == Ordering::Less
            });
            if before {
                best = Some((found, key));
            }
        }
        best.map(|(found, _)| found)
    }

    /// Returns the amounts that a head without candidates reserves: up to its quota, or its limit if it borrows.
    fn reserved(&self, snapshot: &Snapshot, entry: &QueueHead) -> Resources {
        let (at, quota) = (entry.next.queue, &snapshot.tree[entry.next.queue]);
        let usage = snapshot.usage(at);
        let borrows =
            (0..MAX_DIMS).any(|d| entry.need[d] > 0 && usage[d] + entry.need[d] as i64 > quota.nominal[d] as i64);
        let mut reserved = entry.need;
        for d in 0..MAX_DIMS {
            let most = match (borrows, quota.limit[d]) {
                (true, None) => continue,
                (true, Some(limit)) => quota.nominal[d] + limit,
                (false, _) => quota.nominal[d],
            };
            reserved[d] = reserved[d].min(u64::try_from(most as i64 - usage[d]).unwrap_or(0));
        }
        reserved
    }
}

impl Scheduler for Kueue {
    type Settings = NodeQuota;

    /// Returns a queue without a nominal quota that may reclaim.
    fn user_queue(weight: Option<Millionths>) -> Option<NodeQuota> {
        let (within, reclaim) = (WithinQueue::LowerPriority, Reclaim::Any);
        Some(NodeQuota { weight: weight?, within, reclaim, ..NodeQuota::default() })
    }

    fn cycle(&mut self, session: &mut Session) -> Result<()> {
        if !self.quotas.is_current(session.tree) {
            self.quotas.work_out(session.tree);
        }
        let tree = session.tree;
        let mut snapshot = Snapshot::new(&self.quotas, tree, &session.usage);
        let guard = self.rules.guarded.then(|| Guard::new(&self.quotas, tree));
        let (heads, aside) = self.heads(session, &mut snapshot, guard.as_ref());
        aside.into_iter().for_each(|(next, reason)| session.wait(next.user, reason));
        let mut entries: Vec<Option<QueueHead>> = tree.nodes.iter().map(|_| None).collect();
        for head in heads {
            let at = head.next.queue;
            entries[at] = Some(head);
        }
        // Under the guard, heads within their nominal quotas of contested resources are first.
        let free = |d: usize| snapshot.available(ROOT, d).max(0) as u64;
        let wanted = |d: usize| entries.iter().flatten().map(|entry| entry.need[d]).sum::<u64>();
        let contested = Resources::from_fn(|d| wanted(d) > free(d));
        let mut claims = self.rules.guarded;
        let mut taken: Vec<Runs> = Vec::new();
        loop {
            let own = |entry: &QueueHead| {
                let (usage, nominal) = (snapshot.usage(entry.next.queue), &tree[entry.next.queue].nominal);
                let needs = |d: usize| contested[d] && entry.need[d] > 0;
                (0..MAX_DIMS).any(needs)
                    && (0..MAX_DIMS).all(|d| !needs(d) || usage[d] + entry.need[d] as i64 <= nominal[d] as i64)
            };
            let own = entries.iter().flatten().filter(|entry| claims && own(entry));
            let claim = own.min_by_key(|entry| entry.next.turn()).map(|entry| entry.next.queue);
            claims &= claim.is_some();
            let Some(at) = claim.or_else(|| self.winner(tree, &mut snapshot, &entries, ROOT)) else { break };
            let Some(entry) = entries[at].take() else { break };
            self.process(session, &mut snapshot, guard.as_ref(), entry, &mut taken);
        }
        if self.rules.guarded {
            session.spare(|session, unit| {
                Snapshot::new(&self.quotas, tree, &session.usage).fits(unit.queue, &unit.unit())
            });
        }
        Ok(())
    }

    fn status(&self, view: &QueueView<NodeQuota>) -> Vec<Status> {
        if !self.quotas.is_current(view.tree) {
            return Vec::new();
        }
        let snapshot = Snapshot::new(&self.quotas, view.tree, &view.table.usage);
        view.status(|at| {
            let values = vec![("share".to_owned(), snapshot.share(at).shown())];
            (values, self.quotas.subtree(at).map(Some), self.quotas.limit(view.tree, at))
        })
    }
}

impl Kueue {
    /// Nominates a head again after earlier heads of this cycle have displaced some of its victims. The displaced victims count as gone.
    /// Returns `None` if the head fits then: it waits until the victims have left.
    fn again<'a>(
        &'a self,
        session: &Session,
        snapshot: &mut Snapshot<'a>,
        guard: Option<&Guard<'a>>,
        entry: QueueHead,
        taken: &[Runs],
    ) -> Option<QueueHead> {
        taken.iter().for_each(|runs| snapshot.remove(runs.queue, &runs.unit()));
        let fits = snapshot.fits(entry.next.queue, &entry.need);
        let entry = (!fits).then(|| self.nominate(session, snapshot, guard, entry.next));
        taken.iter().for_each(|runs| snapshot.add(runs.queue, &runs.unit()));
        entry
    }

    /// Processes a head: it is admitted, preempts its targets, or waits.
    fn process<'a>(
        &'a self,
        session: &mut Session,
        snapshot: &mut Snapshot<'a>,
        guard: Option<&Guard<'a>>,
        mut entry: QueueHead,
        taken: &mut Vec<Runs>,
    ) {
        // A unit is one task of its entry; all units of an entry are equivalent.
        let of = |known: &[Runs], key: u64| known.iter().any(|runs| runs.key == key);
        if matches!(&entry.mode, Mode::Displaces(targets) if targets.iter().any(|target| of(taken, target.runs.key))) {
            let (next, need) = (entry.next, entry.need);
            match self.again(session, snapshot, guard, entry, taken) {
                Some(anew) => entry = anew,
                None => {
                    snapshot.add(next.queue, &need);
                    return session.wait(next.user, DISPLACING);
                }
            }
        }
        let QueueHead { next, need, mode } = &entry;
        let targets: &[JustifiedVictim] = match mode {
            Mode::Nothing => return session.wait(next.user, self.short(snapshot, &entry)),
            Mode::Displaces(targets) if targets.is_empty() => {
                if session.tree[next.queue].reclaim != Reclaim::Any {
                    snapshot.add(next.queue, &self.reserved(snapshot, &entry));
                }
                return session.wait(next.user, self.short(snapshot, &entry));
            }
            Mode::Displaces(targets) => targets,
            Mode::Fits => &[],
        };
        let gone: Vec<Runs> = taken.iter().copied().chain(targets.iter().map(|target| target.runs)).collect();
        gone.iter().for_each(|runs| snapshot.remove(runs.queue, &runs.unit()));
        let fits = snapshot.fits(next.queue, need);
        gone.iter().for_each(|runs| snapshot.add(runs.queue, &runs.unit()));
        if !fits || (targets.is_empty() && !session.has_room(next)) {
            return session.wait(next.user, TOO_LATE);
        }
        if let Some(guard) = guard.filter(|_| !targets.is_empty()) {
            // Other workloads may have been displaced and launched in the meantime.
            taken.iter().for_each(|runs| snapshot.remove(runs.queue, &runs.unit()));
            let gone: Vec<Runs> = targets.iter().map(|target| target.runs).collect();
            let worth = session.would_fit(next, &gone) && guard.is_worth_it(session, snapshot, next, targets);
            taken.iter().for_each(|runs| snapshot.add(runs.queue, &runs.unit()));
            if !worth {
                return session.wait(next.user, TOO_LATE);
            }
        }
        snapshot.add(next.queue, need);
        for JustifiedVictim { runs, rule } in targets {
            taken.push(*runs);
            session.evict(runs, 1, Some(next.user), rule);
        }
        if targets.is_empty() || self.rules.guarded {
            session.launch(next, 1);
        } else {
            session.wait(next.user, DISPLACING);
        }
    }
}
