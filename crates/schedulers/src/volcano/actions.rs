//! The actions of a cycle: allocate, preempt, reclaim.
//!
//! Every action takes jobs in the order of queues and jobs; preempt treats each queue separately. The tasks that a job lacks to reach its
//! minimum start together, once victims make room for all of them, or all keep waiting. Decisions change the session immediately. Unneeded
//! preemptions are cancelled at the end of the cycle.
//!
//! Source: Volcano, `actions/{allocate,preempt,reclaim}` (state of August 2026).

use std::collections::{BTreeMap, HashMap};

use super::super::cycle::{Excess, Placements, QueueAt, Rooms, Runs, Solution, Waiting, change_amounts, place_task};
use super::jobs::{CycleAllocations, JobRank, Requester, VolcanoCycle};
use super::queues::{Plugin, Session};
use super::{NO_VICTIMS, NOT_DESERVED, OVERUSED, PROMISED, Rules, Volcano};
use plimsoll_base::units::{MachineId, Resources, UserId};

/// An action of the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Allocate,
    Preempt,
    Reclaim,
}

const BY_RECLAIM: &str = "reclaim: a job of another queue lacks tasks to run";
const BY_PREEMPT: &str = "preempt: another job of its queue lacks tasks to run";

/// The actions of a cycle and their decisions so far.
pub struct Cycle<'c, 's, 'a> {
    pub turn: VolcanoCycle<'c>,
    pub session: &'s mut Session<'a>,
    /// By user, the number of tasks started minus the number stopped in this cycle.
    pub tasks: HashMap<UserId, i64>,
    /// Requesters that count as started for the rest of the cycle; the room of their victims is available to all in the next cycle.
    pub promised: Vec<Requester>,
}

impl Cycle<'_, '_, '_> {
    fn volcano(&self) -> &Volcano {
        self.turn.volcano
    }

    fn now(&self) -> CycleAllocations {
        let mut now = self.turn.allocations(self.session, &self.tasks);
        for requester in &self.promised {
            self.change_allocation(&mut now, requester.next.queue, requester.next.user, &requester.need(), true);
        }
        now
    }

    /// Returns the remaining waiting tasks of a job, without those that already count as started.
    fn again(&self, user: UserId) -> Option<Waiting> {
        let promised = self
            .promised
            .iter()
            .filter(|requester| requester.next.user == user)
            .map(|requester| requester.tasks)
            .sum::<u32>();
        let next = self.session.next(user)?;
        (next.tasks > promised).then_some(Waiting { tasks: next.tasks - promised, ..next })
    }

    /// Returns the jobs that pass a test, by queue.
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

    /// Returns the index of the first queue that has jobs.
    fn first(&self, now: &CycleAllocations, jobs: &[(QueueAt, Vec<Waiting>)]) -> Option<usize> {
        let queues = jobs.iter().filter(|(_, line)| !line.is_empty()).map(|(leaf, _)| *leaf);
        let leaf = self.turn.first_queue(now, queues)?;
        jobs.iter().position(|(known, _)| *known == leaf)
    }

    /// Removes and returns the first job of a queue.
    fn pop(&self, now: &CycleAllocations, line: &mut Vec<Waiting>) -> Option<Waiting> {
        let places: Vec<JobRank> = line.iter().map(|next| self.turn.place(now, next)).collect();
        let at = (0..line.len()).min_by(|one, other| places[*one].compare(&places[*other]))?;
        Some(line.remove(at))
    }

    fn launch(&mut self, requester: &Requester, seats: Option<Placements>) {
        match seats {
            Some(seats) => self.session.launch_on(&requester.next, seats),
            None => self.session.launch(&requester.next, requester.tasks),
        }
        *self.tasks.entry(requester.next.user).or_default() += i64::from(requester.tasks);
    }

    fn forbids(&self, now: &CycleAllocations, requester: &Requester) -> Option<Excess> {
        let quotas = &self.volcano().quotas;
        quotas.forbids(self.session.tree, self.turn.levels, &now.usage, requester.next.queue, &requester.need())
    }

    /// Starts the first job of the first queue, repeatedly, until none can start. A job below its minimum starts all missing tasks
    /// together, other jobs start one task.
    pub fn allocate(&mut self) {
        self.allocate_within(false);
        // Under the guard, the capacity beyond the deserved amounts is used, too.
        if self.volcano().rules.guarded && self.volcano().quotas.plugin == Plugin::Proportion {
            self.allocate_within(true);
        }
    }

    /// Starts jobs within the deserved amounts of queues, or beyond them.
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
            let requester = self.turn.requester(&self.tasks, next);
            let forbidden = if beyond { self.beyond(&now, &requester) } else { self.forbids(&now, &requester) };
            if forbidden.is_none() && self.has_room(&requester) {
                self.launch(&requester, None);
                jobs[at].1.extend(self.session.next(next.user));
                now = self.now();
            } else if self.is_strict(leaf) {
                jobs.remove(at);
            }
        }
    }

    /// Returns whether all tasks that start together have room.
    fn has_room(&self, requester: &Requester) -> bool {
        match requester.tasks {
            1 => self.session.has_room(&Waiting { tasks: 1, ..requester.next }),
            tasks => {
                !self.session.has_lost(requester.next.user)
                    && self.session.fits(&requester.need())
                    && self.session.trial().place_all(&requester.next.each, tasks, |_| None).is_some()
            }
        }
    }

    fn is_strict(&self, leaf: QueueAt) -> bool {
        self.session.tree[leaf].strict
    }

    fn beyond(&self, now: &CycleAllocations, requester: &Requester) -> Option<Excess> {
        let leaf = requester.next.queue;
        Excess::from_limit(leaf, &self.turn.levels.real[leaf], &now.usage[leaf], &requester.need())
    }

    /// Starts jobs that lack tasks to run in the room of other jobs of their queue.
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
                let requester = self.turn.requester(&self.tasks, next);
                if let Some(solution) = self.victims(&requester, false) {
                    self.displace(&requester, solution, BY_PREEMPT);
                    let again = self.again(next.user);
                    let starves = |next: &Waiting| pending || self.turn.is_starving(&self.tasks, next);
                    jobs[at].1.extend(again.filter(starves));
                }
            }
        }
    }

    /// Returns whether the queue of the job may contain victims, without a complete search.
    fn could_preempt(&self, next: &Waiting) -> bool {
        let rules = &self.volcano().rules;
        match self.session.least_urgent(next.queue) {
            Some(least) => least > next.priority || rules.gang_decides || rules.drf_preemptable,
            None => false,
        }
    }

    /// Starts jobs that lack tasks to run in the room of other queues.
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
            let requester = self.turn.requester(&self.tasks, next);
            let preemptive = match self.volcano().rules.below_reclaims {
                true => quotas.is_below(levels, &now.usage, leaf, &requester.need()),
                false => quotas.is_preemptive(levels, &now.usage, leaf, &requester.need()),
            };
            let solution = if preemptive { self.victims(&requester, true) } else { None };
            if let Some(solution) = solution {
                self.displace(&requester, solution, BY_RECLAIM);
                let again = self.again(next.user);
                let starves = |next: &Waiting| pending || self.turn.is_starving(&self.tasks, next);
                jobs[at].1.extend(again.filter(starves));
            }
        }
    }

    fn displace(&mut self, requester: &Requester, Solution { victims, seats }: Solution, rule: &'static str) {
        for runs in victims {
            self.session.evict(&runs, 1, Some(requester.next.user), rule);
            *self.tasks.entry(runs.user).or_default() -= i64::from(runs.count);
        }
        if self.volcano().rules.open_room {
            self.session.reserve(&requester.next.each, &seats);
            self.promised.push(*requester);
            *self.tasks.entry(requester.next.user).or_default() += i64::from(requester.tasks);
        } else {
            self.launch(requester, Some(seats));
        }
    }

    /// Cancels unneeded preemptions, within the limits of queues. In the variants of issues 390, 3729 and 3869, jobs preempt each other
    /// within a cycle. This is the reproduced fault, so launches that will not be carried out keep their victims.
    pub fn spare(&mut self) {
        if !self.promised.is_empty() {
            return;
        }
        let VolcanoCycle { levels, .. } = self.turn;
        let may_stay = |session: &Session, unit: &Runs| {
            session.tree.exceeded(|at| &levels.real[at], &session.usage, unit.queue, &unit.unit()).is_none()
        };
        let Rules { pending_preempts, below_reclaims, .. } = self.volcano().rules;
        match pending_preempts || below_reclaims {
            true => self.session.spare_victims(may_stay),
            false => self.session.spare(may_stay),
        }
    }

    /// Returns the running tasks that may be displaced for a job: those of other jobs of its queue, or those of all other queues if
    /// `others` is set.
    fn candidates(&self, requester: &Requester, others: bool) -> Vec<Runs> {
        let (tree, own) = (self.session.tree, requester.next.queue);
        let leaves: Vec<QueueAt> = match others {
            true => tree.leaves().filter(|at| *at != own && tree[*at].reclaimable).collect(),
            false => vec![own],
        };
        let units = leaves.into_iter().flat_map(|leaf| self.session.units(leaf));
        units.filter(|unit| others || unit.user != requester.next.user).collect()
    }

    /// Sorts victims into the order of preemption. Under capacity, queues that share the longest path in the tree with the requester are
    /// first. Then queues that are served last are first; within a queue, jobs that are served last; within a job, the least urgent and
    /// youngest tasks.
    fn sort(&self, now: &CycleAllocations, requester: &Requester, units: &mut [Runs]) {
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
            Plugin::Capacity => tree.nodes[tree.common(requester.next.queue, runs.queue)].depth,
            _ => 0,
        };
        let places: HashMap<u64, JobRank> =
            units.iter().map(|runs| (runs.key, self.turn.place_of(now, runs))).collect();
        let key = |runs: &Runs| (std::cmp::Reverse(near(runs)), std::cmp::Reverse(rank.get(&runs.queue).copied()));
        units.sort_by(|one, other| {
            let jobs = || places[&other.key].compare(&places[&one.key]);
            key(one).cmp(&key(other)).then_with(jobs).then_with(|| one.turn().cmp(&other.turn()))
        });
    }

    /// Returns victims that give room to all tasks of a job that start together. Each task takes a machine with room and without
    /// additional victims, or else the first machine with sufficient victims.
    fn victims(&self, requester: &Requester, others: bool) -> Option<Solution> {
        let mut now = self.now();
        let mut left = self.candidates(requester, others);
        if left.is_empty() {
            return None;
        }
        self.sort(&now, requester, &mut left);
        // If the room of victims is open to all, the victims alone must suffice (issue 1661).
        let open = others && self.volcano().rules.open_room;
        let (mut rooms, one) = (self.session.trial(), Requester { tasks: 1, ..*requester });
        let (mut victims, mut seats) = (Vec::new(), Placements::new());
        for _ in 0..requester.tasks {
            let free = !open && self.forbids(&now, &one).is_none();
            let machine = if free { rooms.place(&one.next.each) } else { None };
            let machine = match machine {
                Some(machine) => machine,
                None => {
                    let (machine, taken) = self.on_first(&now, &one, &rooms, &left, others)?;
                    for runs in taken {
                        rooms.release(self.session, &runs);
                        self.change_allocation(&mut now, runs.queue, runs.user, &runs.unit(), false);
                        *now.tasks.entry(runs.user).or_default() -= i64::from(runs.count);
                        let at = left.iter().position(|known| known.key == runs.key)?;
                        left.remove(at);
                        victims.push(runs);
                    }
                    rooms.reserve(machine, &one.next.each, 1).then_some(machine)?
                }
            };
            place_task(&mut seats, machine);
            self.change_allocation(&mut now, one.next.queue, one.next.user, &one.next.each, true);
            *now.tasks.entry(one.next.user).or_default() += 1;
        }
        Some(Solution { victims, seats })
    }

    /// Returns the first machine with sufficient victims for a task, and the victims.
    fn on_first(
        &self,
        now: &CycleAllocations,
        one: &Requester,
        rooms: &Rooms,
        left: &[Runs],
        others: bool,
    ) -> Option<(MachineId, Vec<Runs>)> {
        let open = others && self.volcano().rules.open_room;
        let mut machines: BTreeMap<MachineId, Vec<Runs>> = BTreeMap::new();
        for runs in left {
            for (machine, _) in self.session.seats_of(runs) {
                let here = machines.entry(machine).or_default();
                if !runs.gang || here.last().is_none_or(|last| last.key != runs.key) {
                    here.push(*runs);
                }
            }
        }
        machines.into_iter().find_map(|(machine, here)| {
            let mut room = rooms.on(machine);
            if open {
                room = room.saturating_sub(self.session.room_on(machine));
            }
            let victims = match others {
                true => self.turn.reclaimable(now, one, &here),
                false => self.turn.preemptable(now, one, &here),
            };
            self.enough(now, one, (machine, room), victims, others).map(|victims| (machine, victims))
        })
    }

    /// Returns the shortest prefix of the victims that suffices for a task on a machine with this room, if any does.
    fn enough(
        &self,
        now: &CycleAllocations,
        one: &Requester,
        (machine, mut room): (MachineId, Resources),
        victims: Vec<Runs>,
        others: bool,
    ) -> Option<Vec<Runs>> {
        let (mut now, mut taken) = (now.clone(), Vec::new());
        // Reclaim keeps a queue within its deserved amount; under capacity the limits of its ancestors apply, too.
        let limited = !others || self.volcano().quotas.plugin == Plugin::Capacity;
        let fits = |room: &Resources, now: &CycleAllocations| {
            one.next.each.fits(room) && !(limited && self.forbids(now, one).is_some())
        };
        for runs in victims {
            if fits(&room, &now) {
                break;
            }
            room += self.session.amount_on(&runs, machine);
            self.change_allocation(&mut now, runs.queue, runs.user, &runs.unit(), false);
            taken.push(runs);
        }
        fits(&room, &now).then_some(taken)
    }

    fn change_allocation(
        &self,
        now: &mut CycleAllocations,
        queue: QueueAt,
        user: UserId,
        amount: &Resources,
        more: bool,
    ) {
        self.session.tree.change(&mut now.usage, queue, amount, more);
        change_amounts(&mut now.held[user.index()], amount, more);
        change_amounts(&mut now.free, amount, !more);
    }

    /// Records the reasons of the jobs that still wait.
    pub fn explain(&mut self) {
        let now = self.now();
        let Cycle { turn, session, tasks, promised } = self;
        session.explain(|session, next| {
            if promised.iter().any(|requester| requester.next.user == next.user) {
                return PROMISED;
            }
            let (quotas, levels, need) = (&turn.volcano.quotas, turn.levels, turn.requester(tasks, *next).need());
            match quotas.forbids(session.tree, levels, &now.usage, next.queue, &need) {
                Some(excess @ Excess { queue, resource, .. })
                    if levels.real[queue][resource]
                        .is_some_and(|most| now.usage[queue].0[resource] + need.0[resource] > most) =>
                {
                    excess.reason()
                }
                Some(_) => NOT_DESERVED,
                None if quotas.is_overused(levels, &now.usage, next.queue) => OVERUSED,
                None => NO_VICTIMS,
            }
        });
    }
}
