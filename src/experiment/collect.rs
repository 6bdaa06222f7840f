//! Observes a run and computes its metrics and tables.
//!
//! Integrals over time are exact: totals are updated at every interval, a user's at every change of its allocation. Measures that cost more
//! than O(1) per change (Gini, gap, envy, sharing incentive, stranded capacity) are evaluated on the sampling grid; one evaluation covers
//! all grid points until the next change.

use prefetch_index::prefetch_index;

use super::demands::Demands;
use super::grid::Grid;
use super::groups::GroupWatch;
use super::memory::MemoryGuard;
use super::service::{ServiceRecord, TaskWork};
use super::sinks::Sinks;
use super::user_status::{Remarks, StuckExample, UserStatus};
use super::window::Window;
use crate::books::{Books, WEIGHT_ONE, Weights};
use crate::error::Result;
use crate::metrics::{
    Delays, FinishedJob, Fluid, JainSum, JudgedService, Reference, Sample, SizeBins, Snapshots, Totals, UserTotals,
    WHOLE, Work, fixed_share,
};
use crate::output::schema::Table;
use crate::record::{Decision, Fate, JobRecord, Launch, Recorder, Salvage, State, Stuck, StuckRecord, TaskRecord};
use crate::units::{MAX_DIMS, Resources, Span, Time, UserId};
use crate::workload::{NameList, TaskSet};

/// The number of examples that are kept for each reason.
const EXAMPLES: usize = 3;

/// The recorder of one run.
pub(super) struct Collector<'a> {
    pub(super) sinks: Sinks,
    pub(super) window: Window,
    pub(super) grid: Grid,
    fluid: Fluid,
    sample: Sample,
    pub(super) service: ServiceRecord,
    /// The horizon: the instant at which the run ends even if work is left.
    cut: Option<Time>,
    weights: &'a Weights,
    /// 1 / (c_r w_r) by class of weights.
    inverse: Vec<[f64; MAX_DIMS]>,
    dims: usize,
    pub(super) names: NameList,
    standing: Vec<UserStatus>,
    pub(super) users: Vec<UserTotals>,
    /// Resource-microseconds used, `dims` values per user.
    pub(super) used_us: Vec<u128>,
    active: Vec<UserId>,
    /// Snapshots of the active users, in the order of `active`, as of the last evaluation; those of the users in `stale` are outdated.
    snapshots: Snapshots,
    stale: Vec<UserId>,
    jain: JainSum,
    pub(super) delays: Delays,
    pub(super) bins: SizeBins,
    pub(super) totals: Totals,
    pub(super) remarks: Remarks,
    /// The kinds of machines if they are pooled; otherwise empty.
    pub(super) pooled_machines: Vec<Resources>,
    pub(super) demands: Demands,
    pub(super) groups: Option<GroupWatch>,
    heartbeat: &'a mut (dyn FnMut(Time, u64) -> Result<()> + Send),
    room: MemoryGuard,
    text: String,
}

impl<'a> Collector<'a> {
    /// Creates a recorder for a run with this capacity, these classes of weights and the policy's groups, with a grid of step `sample` and
    /// cut off at `cut`. `heartbeat` receives the time and the number of launched tasks, and may end the run.
    pub fn new(
        dims: usize,
        capacity: &Resources,
        weights: &'a Weights,
        (sample, window, cut): (Span, Window, Option<Time>),
        sinks: Sinks,
        groups: Option<GroupWatch>,
        heartbeat: &'a mut (dyn FnMut(Time, u64) -> Result<()> + Send),
    ) -> Collector<'a> {
        let inverse = (0..weights.classes())
            .map(|class| {
                std::array::from_fn(|d| match capacity.0[d] {
                    0 => 0.0,
                    c => WEIGHT_ONE as f64 / (c as f64 * weights.each(class)[d] as f64),
                })
            })
            .collect();
        let each = |class| weights.each(class).map(|weight| weight as f64 / WEIGHT_ONE as f64);
        let classes: Vec<[f64; MAX_DIMS]> = (0..weights.classes()).map(each).collect();
        let snapshots = Snapshots::new(dims, &classes);
        let service = ServiceRecord::new(Reference::new(dims, capacity, classes), window, cut);
        Collector {
            sinks,
            window,
            service,
            cut,
            grid: Grid::new(sample, window.from, dims),
            fluid: Fluid::new(dims),
            sample: Sample::default(),
            weights,
            inverse,
            dims,
            names: NameList::default(),
            standing: Vec::new(),
            users: Vec::new(),
            used_us: Vec::new(),
            active: Vec::new(),
            snapshots,
            stale: Vec::new(),
            jain: JainSum::default(),
            delays: Delays::default(),
            bins: SizeBins::default(),
            totals: Totals::default(),
            remarks: Remarks::default(),
            pooled_machines: Vec::new(),
            demands: Demands::default(),
            groups,
            heartbeat,
            room: MemoryGuard::default(),
            text: String::new(),
        }
    }

    /// Returns the user's weighted dominant share by its true usage; 2^32 is the whole cluster.
    fn share(&self, user: UserId, books: &Books, class: usize) -> u64 {
        self.share_of(books.used(user), class)
    }

    fn share_of(&self, amounts: &[u64], class: usize) -> u64 {
        let inverse = &self.inverse[class];
        fixed_share(amounts.iter().zip(inverse).map(|(&amount, inverse)| amount as f64 * inverse).fold(0.0, f64::max))
    }

    /// Marks a user for the next evaluation.
    fn visit_user(&mut self, user: UserId) {
        if !std::mem::replace(&mut self.standing[user.index()].stale, true) {
            self.stale.push(user);
        }
    }

    /// Updates the snapshots of the users that have changed since the last evaluation.
    fn revisit_users(&mut self, books: &Books) {
        let mut stale = std::mem::take(&mut self.stale);
        for &user in &stale {
            let UserStatus { active, largest, .. } = self.standing[user.index()];
            self.standing[user.index()].stale = false;
            let Some(place) = active.checked_sub(1) else { continue };
            // The largest task that was launched since the user became active, or the user's next task.
            let next =
                if books.waiting(user) > 0 { self.share_of(books.head(user), books.weight_class(user)) } else { 0 };
            let largest = next.max(largest) as f64 / WHOLE as f64;
            self.snapshots.set(place as usize, user, books, largest);
        }
        stale.clear();
        self.stale = stale;
    }

    /// Advances a user's integrals to `now`.
    fn settle_user(standing: &mut UserStatus, now: Time, window: &Window) {
        let span = window.part(standing.since, now).0;
        standing.share_us += u128::from(standing.plain_share) * u128::from(span);
        standing.backlogged_us += if standing.backlogged { span } else { 0 };
        standing.since = now;
    }

    /// Advances all integrals to the end of the run. Errors: as [`Reference::advance`].
    pub(super) fn finish(&mut self, end: Time) -> Result<()> {
        self.service.reference.finish(self.cut)?;
        for standing in &mut self.standing {
            Self::settle_user(standing, end, &self.window);
        }
        self.groups.iter_mut().for_each(|groups| groups.finish(end));
        for user in &mut self.users {
            user.delay += std::mem::take(&mut user.unserved) * end.since(Time::ZERO).seconds();
        }
        Ok(())
    }

    /// Adds the age of a user's work to its delay; the work is served evenly between the two instants of `span`.
    fn served(&mut self, user: UserId, work: TaskWork, span: (Time, Time)) {
        self.users[user.index()].delay += self.service.served(user.index(), work, span);
    }

    /// Returns the integral of a user's dominant share over time, in microseconds of the whole cluster, and the user's backlogged time in
    /// microseconds.
    pub(super) fn integrals(&self, user: usize) -> (f64, u64) {
        let standing = &self.standing[user];
        (standing.share_us as f64 / WHOLE as f64, standing.backlogged_us)
    }

    /// Returns the service of a user's judged work; `None` if it has none.
    pub(super) fn judged(&self, user: usize) -> Option<JudgedService> {
        self.service.judged(user, &self.users[user])
    }

    /// Returns the speeds of all users with judged work.
    pub(super) fn speeds(&self) -> Vec<f64> {
        (0..self.names.len()).filter_map(|user| self.judged(user)?.speed()).collect()
    }

    fn set_active(&mut self, user: UserId, active: bool) {
        let place = self.standing[user.index()].active;
        match (active, place) {
            (true, 0) => {
                self.active.push(user);
                self.snapshots.push();
                self.standing[user.index()].active = self.active.len() as u32;
            }
            (false, 1..) => {
                self.active.swap_remove(place as usize - 1);
                self.snapshots.swap_remove(place as usize - 1);
                if let Some(moved) = self.active.get(place as usize - 1) {
                    self.standing[moved.index()].active = place;
                }
                self.standing[user.index()].active = 0;
            }
            _ => {}
        }
    }

    fn sample(&mut self, to: Time, state: &State) -> Result<()> {
        let Some((first, points)) = self.grid.points(to) else { return Ok(()) };
        if let (Some(watch), Some(groups)) = (&mut self.groups, state.groups) {
            watch.sample(first, groups, &mut self.sinks)?;
        }
        self.grid.means.watch(state, points);
        if self.active.is_empty() {
            return self.sinks.fairness(first, &Sample::default(), state.books);
        }
        // Without pending demand every fairness measure is ideal; only the tables need values.
        if state.books.backlogged() == 0 && !self.sinks.wants_series() {
            return Ok(());
        }
        if self.sinks.wants_series() {
            self.active.sort_unstable();
            for (place, user) in (1..).zip(&self.active) {
                self.standing[user.index()].active = place;
            }
            // Recomputes all users, since the order of users has changed.
            self.stale.clone_from(&self.active);
        }
        self.revisit_users(state.books);
        self.sample.evaluate(state, &self.active, &self.snapshots, &mut self.fluid)?;
        self.grid.means.add(&self.sample, points);
        for (user, standing) in self.active.iter().zip(&self.sample.standings) {
            if let Some(standing) = standing {
                let totals = &mut self.users[user.index()];
                totals.shortfall += standing.shortfall * points as f64;
                totals.shortfall_points += points;
            }
        }
        self.sinks.fairness(first, &self.sample, state.books)?;
        self.sinks.shares(first, &self.sample, &self.active, &self.names, state.books)
    }
}

impl Recorder for Collector<'_> {
    fn user(&mut self, _user: UserId, name: &str) {
        self.names.push(name);
        self.standing.push(UserStatus { class: self.weights.class_of(name), ..UserStatus::default() });
        self.users.push(UserTotals::default());
        self.used_us.extend(std::iter::repeat_n(0, self.dims));
        self.service.user(self.weights.class_of(name));
        if let Some(groups) = &mut self.groups {
            groups.user(name);
        }
    }

    fn submitted(&mut self, row: &TaskSet, stage: Option<&str>, first_of_job: bool) {
        let tasks = u64::from(row.tasks);
        self.totals.submitted(row, first_of_job);
        self.remarks.labels += u64::from(row.label.is_some() || row.location.is_some());
        if !self.pooled_machines.is_empty() && !self.pooled_machines.iter().any(|machine| row.demand.fits(machine)) {
            if self.remarks.oversized == 0 {
                self.remarks.first_oversized = row.demand;
            }
            self.remarks.oversized += tasks;
        }
        // Services never end, so they are neither early nor late; slowdowns are measured for the other work.
        if row.duration < Span::ENDLESS {
            self.service.submit(Work {
                user: row.user,
                submit: row.submit,
                duration: row.duration,
                tasks,
                demand: row.demand,
                measured: self.window.contains(row.submit),
            });
        }
        if self.sinks.wants(Table::Demands) {
            self.demands.add(stage, row.demand.slice(self.dims), tasks);
        }
    }

    fn interval(&mut self, from: Time, to: Time, state: &State) -> Result<()> {
        self.totals.interval(to, self.window.part(from, to), state.books, self.jain.jain());
        if let (Some(groups), Some(policy)) = (&mut self.groups, state.groups) {
            groups.unreturned(policy.unreturned(), to.since(from));
        }
        self.service.reference.advance(to)?;
        self.sample(to.min(self.window.to), state)
    }

    fn launched(&mut self, launch: &Launch) {
        let released = Time(self.totals.now.0.saturating_sub(launch.wait.0));
        self.totals.launched(launch, self.window.contains(released));
        let task = self.share_of(launch.demand, self.standing[launch.user.index()].class as usize);
        let largest = &mut self.standing[launch.user.index()].largest;
        *largest = task.max(*largest);
    }

    fn wants_waiting_demand(&self) -> bool {
        true
    }

    fn wants_decisions(&self) -> bool {
        self.sinks.wants(Table::Decisions)
    }

    fn decided(&mut self, decision: &Decision, books: &Books) -> Result<()> {
        self.text.clear();
        decision.name.render(&mut self.text);
        let share = self.share(decision.user, books, books.weight_class(decision.user)) as f64 / WHOLE as f64;
        let groups = self.groups.as_ref().map(GroupWatch::tree);
        self.sinks.decision((&self.text, self.names.listed(decision.user.index())), share, decision, groups)
    }

    fn tasks(&mut self, tasks: &TaskRecord) -> Result<()> {
        let count = u64::from(tasks.count);
        let end = tasks.finish.unwrap_or(self.totals.now);
        let ran = end.since(tasks.start);
        self.totals.tasks(tasks, ran);
        self.users[tasks.user.index()].tasks(tasks, ran, self.window.contains(tasks.release));
        if let Some(groups) = &mut self.groups {
            groups.tasks(tasks, ran);
        }
        let at = tasks.user.index() * self.dims;
        let measured = u128::from(self.window.part(tasks.start, end).0) * u128::from(count);
        for (sum, demand) in self.used_us[at..at + self.dims].iter_mut().zip(tasks.demand) {
            *sum += u128::from(*demand) * measured;
        }
        let Salvage { delay, kept, saved, .. } = tasks.salvage;
        let (resumed, whole) = (tasks.start + delay, (tasks.submit, tasks.duration));
        let served = match tasks.fate {
            // Of two running instances only the first one is counted, not its backup.
            Fate::Running if tasks.backup => None,
            Fate::Finished => Some((whole, (resumed, end), true)),
            Fate::Running => Some((whole, (resumed, end), false)),
            // The work of these tasks is never completed, and it no longer waits from now on.
            Fate::Lost | Fate::GivenUp => Some((whole, (end, end), false)),
            // This attempt has served the part that the task need not repeat. The rest is served when the task runs again, or was served by
            // its other instance.
            Fate::Reclaimed
            | Fate::Preempted
            | Fate::MachineFailed
            | Fate::Failed
            | Fate::Superseded
            | Fate::Revoked
            | Fate::Moved => (saved > Span::ZERO).then_some(((tasks.submit, saved), (resumed, resumed + kept), true)),
        };
        if let Some(((submit, duration), span, completes)) = served {
            let work = TaskWork { demand: tasks.demand, tasks: count, submit, duration, completes };
            self.served(tasks.user, work, span);
        }
        if !self.sinks.wants(Table::Tasks) {
            return Ok(());
        }
        self.text.clear();
        tasks.name.render(&mut self.text);
        self.sinks.tasks(&self.text, self.names.listed(tasks.user.index()), tasks)
    }

    fn job(&mut self, job: &JobRecord) -> Result<()> {
        let (submit, tasks, ideal) = (job.submit, job.tasks, job.ideal);
        let times = job.start.zip(job.finish).filter(|_| self.window.contains(submit));
        let ended = times.map(|(start, finish)| FinishedJob { submit, start, finish, tasks, ideal });
        if let Some(ended) = &ended {
            self.delays.record(ended);
            self.bins.record(ended);
        }
        self.totals.job(job);
        self.users[job.user.index()].job(job, ended.as_ref());
        self.remarks.endless += u64::from(job.work.is_none() && job.ideal < Span::ENDLESS);
        if !self.sinks.wants(Table::Jobs) {
            return Ok(());
        }
        self.text.clear();
        job.name.render(&mut self.text);
        self.sinks.job(&self.text, self.names.listed(job.user.index()), job)
    }

    fn stuck(&mut self, stuck: &StuckRecord) -> Result<()> {
        self.totals.stuck(stuck);
        if stuck.why == Stuck::TooLarge {
            // The task set was recorded at its arrival. Its age counts to the end of the run, as for all work that is never served.
            if self.window.contains(stuck.submit) && stuck.duration < Span::ENDLESS {
                let work = self.service.reference.size(stuck.demand) * stuck.tasks as f64 * stuck.duration.seconds();
                let user = &mut self.users[stuck.user.index()];
                user.unserved += work;
                user.delay -= work * stuck.submit.since(Time::ZERO).seconds();
            }
        } else {
            let end = self.totals.now;
            let StuckRecord { demand, tasks, submit, duration, .. } = *stuck;
            self.served(stuck.user, TaskWork { demand, tasks, submit, duration, completes: false }, (end, end));
        }
        self.text.clear();
        stuck.name.render(&mut self.text);
        let user = self.names.listed(stuck.user.index());
        let known = if stuck.was_launched() { &mut self.remarks.stopped } else { &mut self.remarks.stuck };
        if known.iter().filter(|example| example.why == stuck.why).count() < EXAMPLES {
            known.push(StuckExample {
                why: stuck.why,
                job: self.text.clone(),
                user: user.name().to_owned(),
                tasks: stuck.tasks,
                demand: stuck.demand.to_vec(),
            });
        }
        self.sinks.stuck(&self.text, user, stuck)
    }

    fn settled(&mut self, now: Time, changed: &[UserId], books: &Books) -> Result<()> {
        for &user in changed {
            let class = books.weight_class(user);
            // Class 0 has weight 1 for every resource.
            let plain_share = self.share(user, books, 0);
            let share = if class == 0 { plain_share } else { self.share(user, books, class) };
            let backlogged = books.waiting(user) > 0;
            let standing = &mut self.standing[user.index()];
            Self::settle_user(standing, now, &self.window);
            match (standing.backlogged, backlogged) {
                (true, true) => self.jain.change(standing.share, share),
                (true, false) => self.jain.remove(standing.share),
                (false, true) => self.jain.add(share),
                (false, false) => {}
            }
            (standing.share, standing.plain_share, standing.backlogged) = (share, plain_share, backlogged);
            let active = backlogged || books.running(user) > 0;
            standing.largest = if active { standing.largest } else { 0 };
            self.visit_user(user);
            self.set_active(user, active);
            self.sinks.usage(now, user, &self.names, books)?;
        }
        if let Some(groups) = &mut self.groups {
            groups.settled(now, changed, books);
        }
        Ok(())
    }

    fn head(&mut self, user: UserId) {
        self.visit_user(user);
    }

    fn fetch(&self, user: UserId) {
        // Entries are not aligned to cache lines: the start of the next user's entry is in the cache line that contains the end of this
        // one.
        for at in [user.index(), user.index() + 1] {
            prefetch_index(&self.standing, at);
            prefetch_index(&self.users, at);
            prefetch_index(&self.used_us, at * self.dims);
        }
    }

    fn heartbeat(&mut self, now: Time) -> Result<()> {
        self.room.check(self.users.len())?;
        (self.heartbeat)(now, self.totals.launched)
    }
}
