//! The actions of a cycle: allocate, preempt, reclaim.
//!
//! Source: Volcano, `actions/{allocate,preempt,reclaim}` (state of August 2026).

use std::collections::HashMap;

use super::super::cycle::{QueueAt, Runs, Session, Waiting};
use super::jobs::{Asker, Held, Place, Turn};
use super::queues::Plugin;
use super::{NO_VICTIMS, NOT_DESERVED, OVERUSED, PROMISED, Volcano, add};
use plimsoll_base::units::{MachineId, Resources, UserId};
use plimsoll_sim::policy::Reason;

/// An action of the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Allocate,
    Preempt,
    Reclaim,
}

/// Tasks to stop with the room that they leave, and the machine of each task that starts in it.
type Solution = Vec<Runs>;

const BY_RECLAIM: &str = "reclaim: a job of another queue lacks tasks to run";
const BY_PREEMPT: &str = "preempt: another job of its queue lacks tasks to run";

/// The actions, and what was decided so far.
pub struct Cycle<'c, 's, 'a> {
    pub turn: Turn<'c>,
    pub session: &'s mut Session<'a>,
    pub tasks: HashMap<UserId, i64>,
    /// Those that count as started for the rest of the cycle, while the room of their victims is open to all in the next.
    pub promised: Vec<Asker>,
}

impl Cycle<'_, '_, '_> {
    fn volcano(&self) -> &Volcano {
        self.turn.volcano
    }

    fn now(&self) -> Held {
        let mut now = self.turn.held(self.session, &self.tasks);
        for asker in &self.promised {
            self.hold(&mut now, asker.next.queue, asker.next.user, &asker.need(), true);
        }
        now
    }

    /// The tasks for which a job still waits, without those that it is promised.
    fn again(&self, user: UserId) -> Option<Waiting> {
        let promised =
            self.promised.iter().filter(|asker| asker.next.user == user).map(|asker| asker.tasks).sum::<u32>();
        let next = self.session.next(user)?;
        (next.tasks > promised).then_some(Waiting { tasks: next.tasks - promised, ..next })
    }

    /// Jobs that pass a test, by queue.
    fn jobs(&self, test: impl Fn(&Self, &Waiting) -> bool) -> Vec<(QueueAt, Vec<Waiting>)> {
        let mut jobs = Vec::new();
        for leaf in self.session.waiting_queues() {
            let line: Vec<Waiting> = self.session.waiting(leaf).filter(|next| test(self, next)).collect();
            if !line.is_empty() {
                jobs.push((leaf, line));
            }
        }
        jobs
    }

    /// The first queue that has jobs leaves, with its jobs.
    fn first(&self, now: &Held, jobs: &[(QueueAt, Vec<Waiting>)]) -> Option<usize> {
        let queues = jobs.iter().filter(|(_, line)| !line.is_empty()).map(|(leaf, _)| *leaf);
        let leaf = self.turn.first_queue(now, queues)?;
        jobs.iter().position(|(known, _)| *known == leaf)
    }

    /// The first job of a line leaves it.
    fn pop(&self, now: &Held, line: &mut Vec<Waiting>) -> Option<Waiting> {
        let places: Vec<Place> = line.iter().map(|next| self.turn.place(now, next)).collect();
        let at = (0..line.len()).min_by(|one, other| places[*one].compare(&places[*other]))?;
        Some(line.remove(at))
    }

    fn launch(&mut self, asker: &Asker) {
        self.session.launch(&asker.next, asker.tasks);
        *self.tasks.entry(asker.next.user).or_default() += i64::from(asker.tasks);
    }

    fn forbids(&self, now: &Held, asker: &Asker) -> Option<(QueueAt, usize, u64)> {
        let quotas = &self.volcano().quotas;
        quotas.forbids(self.session.tree, self.turn.levels, &now.usage, asker.next.queue, &asker.need())
    }

    /// Queues in their order, of each the first job: those tasks start that it lacks to run, else one.
    pub fn allocate(&mut self) {
        self.allocate_within(false);
        // Under the guard the rest is used, too.
        if self.volcano().rules.guarded && self.volcano().quotas.plugin == Plugin::Proportion {
            self.allocate_within(true);
        }
    }

    /// Within what queues deserve, or beyond it.
    fn allocate_within(&mut self, beyond: bool) {
        let mut jobs = self.jobs(|cycle, next| cycle.is_strict(next.queue) || cycle.session.has_room(next));
        if jobs.is_empty() {
            return;
        }
        let mut now = self.now();
        while let Some(at) = self.first(&now, &jobs) {
            let leaf = jobs[at].0;
            if !beyond && self.volcano().quotas.is_overused(self.turn.levels, &now.usage, leaf) {
                jobs.remove(at);
                continue;
            }
            let Some(next) = self.pop(&now, &mut jobs[at].1) else { continue };
            let asker = self.turn.asker(&self.tasks, next);
            let forbidden = if beyond { self.beyond(&now, &asker) } else { self.forbids(&now, &asker) };
            if forbidden.is_none() && self.session.fits(&asker.need()) {
                self.launch(&asker);
                jobs[at].1.extend(self.session.next(next.user));
                now = self.now();
            } else if self.is_strict(leaf) {
                jobs.remove(at);
            }
        }
    }

    fn is_strict(&self, leaf: QueueAt) -> bool {
        self.volcano().quotas.nodes[leaf].strict
    }

    fn beyond(&self, now: &Held, asker: &Asker) -> Option<(QueueAt, usize, u64)> {
        let (leaf, need) = (asker.next.queue, asker.need().0);
        let over = |d: usize| {
            let sum = now.usage[leaf].0[d] + need[d];
            self.turn.levels.real[leaf][d].filter(|most| need[d] > 0 && sum > *most).map(|most| (leaf, d, sum - most))
        };
        (0..need.len()).find_map(over)
    }

    /// Jobs that lack tasks to run take the room of others in their queue.
    pub fn preempt(&mut self) {
        let pending = self.volcano().rules.pending_preempts;
        let mut jobs = self.jobs(|cycle, next| {
            let starves = pending || cycle.turn.is_starving(&cycle.tasks, next);
            starves && cycle.could_preempt(next)
        });
        for at in 0..jobs.len() {
            loop {
                let now = self.now();
                let Some(next) = self.pop(&now, &mut jobs[at].1) else { break };
                let asker = self.turn.asker(&self.tasks, next);
                if let Some(victims) = self.victims(&asker, false) {
                    self.displace(&asker, &victims, BY_PREEMPT);
                    let again = self.again(next.user);
                    let starves = |next: &Waiting| pending || self.turn.is_starving(&self.tasks, next);
                    jobs[at].1.extend(again.filter(starves));
                }
            }
        }
    }

    /// Whether anybody in its queue might have to go for it, without going through all.
    fn could_preempt(&self, next: &Waiting) -> bool {
        let rules = &self.volcano().rules;
        match self.session.least_urgent(next.queue) {
            Some(least) => least > next.priority || rules.gang_decides || rules.drf_preemptable,
            None => false,
        }
    }

    /// Jobs that lack tasks to run take the room of other queues.
    pub fn reclaim(&mut self) {
        let pending = self.volcano().rules.pending_reclaims;
        let mut jobs = self.jobs(|cycle, next| pending || cycle.turn.is_starving(&cycle.tasks, next));
        loop {
            let now = self.now();
            let Some(at) = self.first(&now, &jobs) else { return };
            let leaf = jobs[at].0;
            let (quotas, levels) = (&self.volcano().quotas, self.turn.levels);
            if quotas.is_overused(levels, &now.usage, leaf) {
                jobs.remove(at);
                continue;
            }
            let Some(next) = self.pop(&now, &mut jobs[at].1) else { continue };
            let asker = self.turn.asker(&self.tasks, next);
            let preemptive = match self.volcano().rules.below_reclaims {
                true => quotas.is_below(levels, &now.usage, leaf, &asker.need()),
                false => quotas.is_preemptive(levels, &now.usage, leaf, &asker.need()),
            };
            let victims = if preemptive { self.victims(&asker, true) } else { None };
            if let Some(victims) = victims {
                self.displace(&asker, &victims, BY_RECLAIM);
                let again = self.again(next.user);
                let starves = |next: &Waiting| pending || self.turn.is_starving(&self.tasks, next);
                jobs[at].1.extend(again.filter(starves));
            }
        }
    }

    fn displace(&mut self, asker: &Asker, victims: &[Runs], rule: &'static str) {
        for runs in victims {
            self.session.evict(runs, 1, Some(asker.next.user), rule);
            *self.tasks.entry(runs.user).or_default() -= i64::from(runs.count);
        }
        if self.volcano().rules.open_room {
            self.promised.push(*asker);
            *self.tasks.entry(asker.next.user).or_default() += i64::from(asker.tasks);
        } else {
            self.launch(asker);
        }
    }

    /// Running tasks that others may displace for a job, in its queue or in all others.
    fn candidates(&self, asker: &Asker, others: bool) -> Vec<Runs> {
        let (tree, quotas) = (self.session.tree, &self.volcano().quotas);
        let own = asker.next.queue;
        let leaves: Vec<QueueAt> = match others {
            true => (1..tree.nodes.len())
                .filter(|at| *at != own && tree.is_leaf(*at) && quotas.nodes[*at].reclaimable)
                .collect(),
            false => vec![own],
        };
        let mut units = Vec::new();
        for runs in leaves.into_iter().flat_map(|leaf| self.session.running(leaf)) {
            let left = runs.count - self.session.stopped(runs.key).min(runs.count);
            if left > 0 && (others || runs.user != asker.next.user) {
                units.extend(Runs { count: left, ..*runs }.units());
            }
        }
        units
    }

    /// In the order in which they go: of queues first the one that shares most of the tree with the one that asks (capacity), then the one
    /// that is served last; there the job that is served last; of a job the least urgent and youngest.
    fn sort(&self, now: &Held, asker: &Asker, units: &mut [Runs]) {
        let tree = self.session.tree;
        let mut queues: Vec<QueueAt> = units.iter().map(|runs| runs.queue).collect();
        queues.sort_unstable();
        queues.dedup();
        let mut rank: HashMap<QueueAt, usize> = HashMap::new();
        while let Some(first) = self.turn.first_queue(now, queues.iter().copied()) {
            queues.retain(|at| *at != first);
            rank.insert(first, rank.len());
        }
        let near = |runs: &Runs| match self.volcano().quotas.plugin {
            Plugin::Capacity => tree.nodes[tree.common(asker.next.queue, runs.queue)].depth,
            _ => 0,
        };
        let places: HashMap<u64, Place> = units.iter().map(|runs| (runs.key, self.turn.place_of(now, runs))).collect();
        let key = |runs: &Runs| (std::cmp::Reverse(near(runs)), std::cmp::Reverse(rank.get(&runs.queue).copied()));
        units.sort_by(|one, other| {
            let jobs = || places[&other.key].compare(&places[&one.key]);
            key(one).cmp(&key(other)).then_with(jobs).then_with(|| one.turn().cmp(&other.turn()))
        });
    }

    /// Tasks to stop so that all tasks of a job that start together have room: task by task, on the first machine where that helps.
    fn victims(&self, asker: &Asker, others: bool) -> Option<Solution> {
        let mut now = self.now();
        let mut left = self.candidates(asker, others);
        if left.is_empty() {
            return None;
        }
        self.sort(&now, asker, &mut left);
        let mut rooms: HashMap<MachineId, Resources> = HashMap::new();
        // Victims alone had to be enough where room is open to all.
        let open = others && self.volcano().rules.open_room;
        for machine in Turn::machines(&left) {
            let free = if open { Resources::ZERO } else { self.session.free_on(machine) };
            rooms.insert(machine, Resources(std::array::from_fn(|d| free.0[d].min(self.session.free.0[d]))));
        }
        let (mut solution, one) = (Solution::new(), Asker { tasks: 1, ..*asker });
        for _ in 0..asker.tasks {
            let machines = Turn::machines(&left);
            let found = machines.into_iter().find_map(|machine| {
                let here: Vec<Runs> = left.iter().filter(|runs| runs.machine == machine).copied().collect();
                let victims = match others {
                    true => self.turn.reclaimable(&now, &one, &here),
                    false => self.turn.preemptable(&now, &one, &here),
                };
                self.enough(&now, &one, &rooms[&machine], victims, others).map(|victims| (machine, victims))
            });
            let (machine, victims) = found?;
            let room = rooms.get_mut(&machine)?;
            for runs in &victims {
                add(room, &runs.unit(), true);
                self.hold(&mut now, runs.queue, runs.user, &runs.unit(), false);
                *now.tasks.entry(runs.user).or_default() -= i64::from(runs.count);
                let at = left.iter().position(|known| known.key == runs.key)?;
                left.remove(at);
            }
            add(room, &one.next.each, false);
            self.hold(&mut now, one.next.queue, one.next.user, &one.next.each, true);
            *now.tasks.entry(one.next.user).or_default() += 1;
            solution.extend(victims);
        }
        Some(solution)
    }

    /// The first victims that are enough for a task on their machine, if all of them are.
    fn enough(&self, now: &Held, one: &Asker, room: &Resources, victims: Vec<Runs>, others: bool) -> Option<Vec<Runs>> {
        let (mut room, mut now, mut taken) = (*room, now.clone(), Vec::new());
        // Who reclaims stays within what its queue deserves; those above it have limits, too.
        let limited = !others || self.volcano().quotas.plugin == Plugin::Capacity;
        let fits =
            |room: &Resources, now: &Held| one.next.each.fits(room) && !(limited && self.forbids(now, one).is_some());
        if victims.is_empty() && !fits(&room, &now) {
            return None;
        }
        for runs in victims {
            if fits(&room, &now) {
                break;
            }
            add(&mut room, &runs.unit(), true);
            self.hold(&mut now, runs.queue, runs.user, &runs.unit(), false);
            taken.push(runs);
        }
        fits(&room, &now).then_some(taken)
    }

    fn hold(&self, now: &mut Held, queue: QueueAt, user: UserId, amount: &Resources, more: bool) {
        for at in self.session.tree.path(queue) {
            add(&mut now.usage[at], amount, more);
        }
        add(&mut now.held[user.index()], amount, more);
        add(&mut now.free, amount, !more);
    }

    /// Why those wait that still do.
    pub fn explain(&mut self) {
        let now = self.now();
        let mut reasons = Vec::new();
        for leaf in self.session.waiting_queues() {
            let overused = self.volcano().quotas.is_overused(self.turn.levels, &now.usage, leaf);
            for next in self.session.waiting(leaf) {
                let asker = self.turn.asker(&self.tasks, next);
                if self.promised.iter().any(|asker| asker.next.user == next.user) {
                    reasons.push((next.user, PROMISED));
                    continue;
                }
                let reason = match self.forbids(&now, &asker) {
                    Some((group, resource, short))
                        if self.turn.levels.real[group][resource]
                            .is_some_and(|most| now.usage[group].0[resource] + asker.need().0[resource] > most) =>
                    {
                        Reason::Quota { group: group as u32, resource: resource as u8, short }
                    }
                    Some(_) => NOT_DESERVED,
                    None if overused => OVERUSED,
                    None => NO_VICTIMS,
                };
                reasons.push((next.user, reason));
            }
        }
        reasons.into_iter().for_each(|(user, reason)| self.session.wait(user, reason));
    }
}
