//! Koordinator's elastic quotas: a runtime quota for every group, admission up to it, and revocation of the excess.
//!
//! A user is a workload of equal pods. Requests are added up from the leaves to the root; the request of a group is cut to its `max`, and
//! is at least its `min` if the group does not lend. Totals are divided down the tree: every group first receives the requested part of
//! its minimum (the whole minimum with `lend = false`). The rest is divided in whole units in proportion to the shared weight
//! (`shared_weight`, else `max`, else the cluster), by the largest remainder method ([`runtime`](self::runtime)). Limits apply only to the
//! resources that `max` names (without `max`, to the resources of `shared_weight`; without both, to all). The usage of groups with `system
//! = true` is subtracted from the total first; they have no quota. With `scale_min`, minimums that exceed the total are scaled down.
//!
//! *Admission.* Pods are tried in one order, by priority, then age. A pod starts if its group stays within its runtime quota of the
//! requested resources (with `check_parent` the ancestors too), and there is room.
//!
//! *Preemption.* A pod that does not start displaces less urgent pods of its own group on one machine. Victims that the pod does not need
//! are spared, the most urgent and oldest first. Machines are compared by their most urgent victim, the least urgent first, then by the
//! number of victims.
//!
//! *Revocation.* If a group is above its runtime quota, pods are revoked, the least urgent and youngest first, until the group is within
//! the quota. Then revoked pods that still fit are restored, the last revoked first. The room of revoked pods is open to all groups in the
//! next cycle.
//!
//! Source: Koordinator (koordinator-sh/koordinator, August 2026), `pkg/scheduler/plugins/elasticquota`, the proposal of multi-hierarchy
//! quotas, and the issues that the variants name. The policy `quota` implements the similar quotas of the Fuxi article, with water levels
//! maintained in O(log groups).
//!
//! Departures: revocation is on (`revoke = false` is the source's default) and immediate; minimums are unscaled by default (the source
//! always scales them, see the variant); no pod is displaced for a pod that its quota would not admit afterwards (the source then stops
//! pods without benefit); no pods are exempt, and quotas are in one tree. Without a file every user is a group with its weight, no minimum
//! and no maximum.

mod runtime;

use std::cmp::Reverse;

use super::cycle::{
    self, Millionths, ONE, OptionalAmounts, Placements, QueueAt, QueueFile, QueueView, ROOT, Runs, Scheduler,
    SettingTable, SettingValue, Solution, Waiting, parse, place_task, settings,
};
use plimsoll_base::error::Result;
use plimsoll_base::tree::Node;
use plimsoll_base::units::{Dim, MAX_DIMS, MachineId, Resources, Time, Unit, UserId};
use plimsoll_policies::{PolicyRow, RankOrder, Reason, Setup, Status};
use plimsoll_sim::books::Books;

use runtime::{Scaling, SiblingClaim, runtimes, scaled};

/// `koordinator[@ISSUE][:FILE]`
pub static ROW: PolicyRow = PolicyRow {
    name: "koordinator",
    spelling: "koordinator[@ISSUE][:FILE]",
    rank: RankOrder::Stated("the most urgent task first, then the oldest, within the runtime quota of its group"),
    meaning: "Koordinator's elastic quotas: minimums, the rest by shared weight, and revocation.",
    source: "Koordinator, elastic quota of August 2026",
    example: "koordinator",
    checked: "koordinator",
    variants: &[
        (
            "2393",
            "minimums are scaled in floating point and cut if those of all siblings exceed the total, requested or not \
             (koordinator issue 2393)",
        ),
        (
            "2263",
            "the usage of system groups is subtracted from the total, and they also get a part of the rest (koordinator issue 2263)",
        ),
    ],
    keys: KEYS,
    read: |given| parse(given, Koordinator::new),
};

settings! {
    /// The settings of a group.
    group struct Settings {
        min: Resources = Resources::ZERO, "its amount before the rest is divided";
        max: Option<OptionalAmounts> = None, "the most that it may have";
        shared_weight: Option<OptionalAmounts> = None,
            "its weight in the rest, by resource; absent or 0: max, or else the cluster", shared_weight;
        lend: bool = true, "false: its unused minimum is reserved for it";
        scale_min: Option<bool> = None, "whether its minimum is cut if the minimums exceed the total";
        system: bool = false, "true: it has no quota, and its usage is subtracted from the total";
    }
    /// The settings of the policy.
    policy struct PolicySettings {
        scale_min: bool = false, "the scale_min of groups without this key";
        check_parent: bool = false, "true: groups above have to stay within their runtime quotas as well";
        revoke: bool = true, "false: nothing above a runtime quota is revoked";
        preempt: bool = true, "false: no preemption within a group";
    }
}

type Tree = cycle::Tree<Settings>;
type Session<'a> = cycle::Session<'a, Settings>;

/// Reads the shared weight; if it is 0 in all resources, it counts as absent.
fn shared_weight(node: &Node, key: &str, dims: &[Dim]) -> Result<Option<OptionalAmounts>> {
    Ok(Some(OptionalAmounts::read(node, key, dims)?).filter(|weights| !weights.or_zero().is_zero()))
}

impl Settings {
    /// Returns the shared weight of a resource; `None` is the cluster.
    fn weight(&self, d: usize) -> Option<u64> {
        self.shared_weight.as_ref().or(self.max.as_ref()).map(|weights| weights[d].unwrap_or(0))
    }

    /// Returns whether the quota covers a resource.
    fn covers(&self, d: usize) -> bool {
        self.max.as_ref().or(self.shared_weight.as_ref()).is_none_or(|named| named[d].is_some())
    }

    fn max(&self, d: usize) -> Option<u64> {
        self.max.as_ref().and_then(|max| max[d])
    }
}

struct Koordinator {
    settings: PolicySettings,
    /// How minimums are scaled.
    scaling: Scaling,
    dims: Vec<Dim>,
    /// The amount of each resource that counts as one unit.
    units: Resources,
    /// See `@2263`.
    twice: bool,
}

const NO_ROOM: Reason = Reason::NoRoom("there is no room");
const REVOKED: &str = "its group is above its runtime quota";
const IN_GROUP: &str = "a more urgent pod of its group starts in its room";

/// The weight of a system group, larger than any other.
const ENDLESS: u64 = u64::MAX / 5;

impl Koordinator {
    fn new(_: &Tree, file: &QueueFile, variant: Option<&str>, setup: &Setup) -> Result<Koordinator> {
        let mut settings = PolicySettings::read(&file.policy, setup.dims)?;
        settings.scale_min |= variant == Some("2393");
        let whole = |dim: &Dim| dim.unit == Unit::Milli && dim.name != "cpu";
        Ok(Koordinator {
            settings,
            scaling: if variant == Some("2393") { Scaling::Floats } else { Scaling::Exact },
            dims: setup.dims.to_vec(),
            units: Resources::from_fn(|d| if setup.dims.get(d).is_some_and(whole) { 1000 } else { 1 }),
            twice: variant == Some("2263"),
        })
    }

    fn scaling(&self, settings: &Settings) -> Scaling {
        if settings.scale_min.unwrap_or(self.settings.scale_min) { self.scaling } else { Scaling::Kept }
    }

    /// Computes the runtime quota of every group; the quota of the root is the total that all groups share.
    fn runtimes(&self, tree: &Tree, books: &Books, usage: &[Resources]) -> Vec<Resources> {
        let mut runtime = vec![Resources::ZERO; tree.nodes.len()];
        let upwards = tree.upwards();
        for (d, unit) in self.units.iter().enumerate().take(self.dims.len()) {
            let capacity = books.offered()[d];
            // The request of each group, cut to its maximum: its contribution to its parent's request.
            let mut requests = vec![0u64; tree.nodes.len()];
            for at in &upwards {
                let settings = &tree[*at];
                let own = tree.nodes[*at].users.iter().map(|user| books.wanted(*user, d)).sum::<u128>();
                let sum = requests[*at].saturating_add(u64::try_from(own).unwrap_or(u64::MAX).div_ceil(unit));
                let sum = if settings.lend { sum } else { sum.max(settings.min[d] / unit) };
                requests[*at] = sum.min(settings.max(d).map_or(u64::MAX, |max| max / unit));
                let parent = tree.nodes[*at].parent;
                if *at != ROOT {
                    requests[parent] = requests[parent].saturating_add(requests[*at]);
                }
            }
            let systems = (1..tree.nodes.len()).filter(|at| tree[*at].system);
            let taken = systems.map(|at| usage[at][d]).fold(0u64, u64::saturating_add);
            runtime[ROOT][d] = capacity.saturating_sub(taken);
            for at in upwards.iter().rev() {
                let children = &tree.nodes[*at].children;
                let taking = |child: &&QueueAt| self.twice || !tree[**child].system;
                let taking: Vec<QueueAt> = children.iter().filter(taking).copied().collect();
                let total = runtime[*at][d] / unit;
                let mins: Vec<(u64, Scaling)> =
                    taking.iter().map(|at| (tree[*at].min[d] / unit, self.scaling(&tree[*at]))).collect();
                let claim = |(at, min): (&QueueAt, u64)| {
                    let settings = &tree[*at];
                    let weight = settings.weight(d).unwrap_or(capacity);
                    let weight = if settings.system { ENDLESS } else { weight.div_ceil(unit) };
                    SiblingClaim {
                        request: requests[*at],
                        min,
                        weight,
                        lends: settings.lend,
                        named: tree.name_rank(*at),
                    }
                };
                let claims: Vec<SiblingClaim> = taking.iter().zip(scaled(total, &mins)).map(claim).collect();
                for (child, quota) in taking.iter().zip(runtimes(total, &claims)) {
                    let covered = tree[*child].covers(d);
                    // Child groups of a group without a quota of this resource share the amount of its parent.
                    runtime[*child][d] = if covered { quota.saturating_mul(unit) } else { runtime[*at][d] };
                }
            }
        }
        runtime
    }

    /// Returns the groups with quotas that limit the pods of a queue.
    fn gates(&self, tree: &Tree, queue: QueueAt) -> Vec<QueueAt> {
        if tree[queue].system {
            return Vec::new();
        }
        let above = if self.settings.check_parent { usize::MAX } else { 1 };
        tree.path(queue).filter(|at| *at != ROOT).take(above).collect()
    }

    /// Returns how many pods the quotas admit, or the first quota that admits none.
    fn admits(
        &self,
        session: &Session,
        runtime: &[Resources],
        next: &Waiting,
        gone: &Resources,
    ) -> std::result::Result<u64, Reason> {
        let need = next.need();
        let mut most = u64::MAX;
        for at in self.gates(session.tree, next.queue) {
            for d in (0..MAX_DIMS).filter(|d| need[*d] > 0 && session.tree[at].covers(*d)) {
                let used = session.usage[at][d].saturating_sub(gone[d]);
                let room = runtime[at][d].saturating_sub(used);
                if room < need[d] {
                    let short = used + need[d] - runtime[at][d];
                    return Err(Reason::Quota { group: at as u32, resource: d as u8, short });
                }
                most = most.min(room / need[d]);
            }
        }
        Ok(most)
    }

    /// Starts as many pods as quotas and room allow. Returns the reason why the others wait, if any do.
    fn start(&self, session: &mut Session, runtime: &[Resources], next: &Waiting) -> Option<Reason> {
        let admitted = match self.admits(session, runtime, next, &Resources::ZERO) {
            Ok(admitted) => admitted,
            Err(reason) => return Some(reason),
        };
        if !session.has_room(next) {
            return Some(NO_ROOM);
        }
        session.launch_up_to(next, u32::try_from(admitted).unwrap_or(u32::MAX));
        session.next(next.user).map(|left| match self.admits(session, runtime, &left, &Resources::ZERO) {
            Err(reason) => reason,
            Ok(_) => NO_ROOM,
        })
    }

    /// Starts a pod in the room of less urgent pods of its own group on one machine, or a gang pod by pod. Returns whether it starts.
    fn displace(&self, session: &mut Session, runtime: &[Resources], next: &Waiting) -> bool {
        if session.has_room(next) && self.admits(session, runtime, next, &Resources::ZERO).is_ok() {
            session.launch(next, 1);
            return true;
        }
        if session.least_urgent(next.queue).is_none_or(|least| least <= next.priority) {
            return false;
        }
        let less_urgent = session.units(next.queue).filter(|unit| unit.priority > next.priority);
        let mut machines = session.by_machine(less_urgent);
        let (mut rooms, mut gone, mut seats) = (session.trial(), Vec::<Runs>::new(), Placements::new());
        for pod in 1..=next.together() {
            // The pods that have a machine so far, plus the current one.
            let pods = Waiting { tasks: pod, ..*next };
            let sum = gone.iter().map(Runs::unit).fold(Resources::ZERO, Resources::saturating_add);
            let admitted = self.admits(session, runtime, &pods, &sum).is_ok();
            let machine = if admitted { rooms.place(&next.each) } else { None };
            let machine = match machine {
                Some(machine) => machine,
                None => {
                    let found = machines.iter().filter_map(|(machine, units)| {
                        let room = rooms.on(*machine);
                        let victims = self.victims(session, runtime, &pods, (*machine, room), (units, &sum))?;
                        Some((*machine, victims))
                    });
                    let Some((machine, victims)) = found.min_by_key(|(_, victims)| harm(victims)) else { return false };
                    for unit in victims {
                        rooms.release(session, &unit);
                        for units in machines.values_mut() {
                            let at = units.iter().position(|known| known.key == unit.key);
                            at.map(|at| units.remove(at));
                        }
                        gone.push(unit);
                    }
                    if !rooms.reserve(machine, &next.each, 1) {
                        return false;
                    }
                    machine
                }
            };
            place_task(&mut seats, machine);
        }
        session.preempt_and_launch(next, Solution { victims: gone, seats }, IN_GROUP);
        true
    }

    /// Returns the victims for a pod among these pods of one machine, in the order of preemption. If the pod fits without all of them, the
    /// victims that are not needed are spared, the most urgent and oldest first.
    fn victims(
        &self,
        session: &Session,
        runtime: &[Resources],
        pods: &Waiting,
        (machine, room): (MachineId, Resources),
        (units, before): (&[Runs], &Resources),
    ) -> Option<Vec<Runs>> {
        // A gang on several machines releases more of the quota than of this machine.
        let fits = |gone: &Resources, here: &Resources| {
            pods.each.fits(&room.saturating_add(*here)) && self.admits(session, runtime, pods, gone).is_ok()
        };
        let (mut gone, mut here) = (*before, Resources::ZERO);
        for unit in units {
            gone = gone.saturating_add(unit.unit());
            here = here.saturating_add(session.amount_on(unit, machine));
        }
        if !fits(&gone, &here) {
            return None;
        }
        let mut victims = units.to_vec();
        for at in (0..victims.len()).rev() {
            let with = gone.saturating_sub(victims[at].unit());
            let with_here = here.saturating_sub(session.amount_on(&victims[at], machine));
            if fits(&with, &with_here) {
                (gone, here) = (with, with_here);
                victims.remove(at);
            }
        }
        Some(victims)
    }

    /// Revokes pods of a group until it is within its runtime quota, and spares revoked pods that still fit.
    fn take_back(&self, session: &mut Session, runtime: &Resources, leaf: QueueAt, by: Option<UserId>) {
        let settings = &session.tree[leaf];
        let within = |used: &Resources| (0..MAX_DIMS).all(|d| !settings.covers(d) || used[d] <= runtime[d]);
        let mut used = session.usage[leaf];
        if within(&used) {
            return;
        }
        let mut taken: Vec<Runs> = Vec::new();
        for unit in session.units(leaf) {
            if within(&used) {
                break;
            }
            used = used.saturating_sub(unit.unit());
            taken.push(unit);
        }
        let enough = within(&used);
        for unit in taken.into_iter().rev() {
            let with = used.saturating_add(unit.unit());
            if enough && within(&with) {
                used = with;
            } else {
                session.evict(&unit, unit.count, by, REVOKED);
            }
        }
    }
}

/// Ranks sets of victims on one machine, the least harmful first: by the most urgent victim, the number of victims, the sum of their
/// priorities, and the start of the oldest of the most urgent victims.
fn harm(victims: &[Runs]) -> (Reverse<u8>, usize, Reverse<u64>, Reverse<Option<Time>>) {
    let first = victims.iter().map(|unit| unit.priority).min().unwrap_or(u8::MAX);
    let all = victims.iter().map(|unit| u64::from(unit.priority)).sum();
    let oldest = victims.iter().filter(|unit| unit.priority == first).map(|unit| unit.start).min();
    (Reverse(first), victims.len(), Reverse(all), Reverse(oldest))
}

impl Scheduler for Koordinator {
    type Settings = Settings;

    fn user_queue(weight: Option<Millionths>) -> Option<Settings> {
        let shared_weight = Some(Resources::uniform(Some(weight?.max(ONE / 1000))));
        Some(Settings { shared_weight, ..Settings::default() })
    }

    fn cycle(&mut self, session: &mut Session) -> Result<()> {
        let runtime = self.runtimes(session.tree, session.books, &session.usage);
        let mut line: Vec<Waiting> = session.all_waiting().collect();
        line.sort_by_key(Waiting::turn);
        let mut first = None;
        for next in line {
            let Some(mut reason) = self.start(session, &runtime, &next) else { continue };
            while let Some(left) = session.next(next.user).filter(|_| self.settings.preempt) {
                if !self.displace(session, &runtime, &left) {
                    break;
                }
                reason = NO_ROOM;
            }
            if session.next(next.user).is_some() {
                session.wait(next.user, reason);
                first = first.or((reason == NO_ROOM).then_some(next.user));
            }
        }
        session.spare(|session, unit| {
            let used = session.usage[unit.queue].saturating_add(unit.unit());
            let settings = &session.tree[unit.queue];
            (0..MAX_DIMS).all(|d| settings.system || !settings.covers(d) || used[d] <= runtime[unit.queue][d])
        });
        if self.settings.revoke {
            for leaf in session.tree.leaves().filter(|leaf| *leaf != ROOT && !session.tree[*leaf].system) {
                self.take_back(session, &runtime[leaf], leaf, first);
            }
        }
        Ok(())
    }

    fn status(&self, view: &QueueView<Settings>) -> Vec<Status> {
        let QueueView { tree, table, books } = *view;
        let runtime = self.runtimes(tree, books, &table.usage);
        view.status(|at| {
            let settings = &tree[at];
            let value = |(d, dim): (usize, &Dim)| {
                settings.covers(d).then(|| (format!("runtime of {}", dim.name), dim.amount(runtime[at][d])))
            };
            let guaranteed = settings.min.map(|min| (min > 0).then_some(min));
            (self.dims.iter().enumerate().filter_map(value).collect(), guaranteed, settings.max.unwrap_or_default())
        })
    }

    fn compare_users(&self, view: &QueueView<Settings>, one: UserId, other: UserId) -> Option<bool> {
        view.next(one, other).map(|(one, other)| one.turn() < other.turn())
    }
}
