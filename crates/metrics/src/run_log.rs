//! The accumulators of one run: totals, users, and the states on the sampling grid.
//!
//! A [`RunLog`] receives the facts of a run like a [`Recorder`](plimsoll_sim::record::Recorder). Integrals over time are exact: totals are
//! updated at every interval, and the integrals of a user at every change of its allocation. Measures that cost more than O(1) per change
//! (Gini, gap, envy, sharing incentive, stranded capacity) are evaluated on the sampling grid. One evaluation is used for all grid points
//! until the next change.

use std::sync::Arc;

use prefetch_index::prefetch_index;

use crate::fair_service::FairService;
use crate::fluid::{Fluid, factors};
use crate::grid::SampleGrid;
use crate::horizon::JudgedService;
use crate::run::delay::{FinishedJob, SizeBins};
use crate::run::fairness::{WHOLE, fixed_share};
use crate::run::finish_time::FinishTimes;
use crate::run::{Run, Sample, Totals};
use crate::service::{ServiceRecord, TaskWork};
use crate::snapshot::Snapshots;
use crate::users::UserTotals;
use crate::window::Window;
use crate::work::{TaskSizes, Work, largest_share, product};
use plimsoll_base::checkpoint::{Checkpoint, Visitor};
use plimsoll_base::error::Result;
use plimsoll_base::units::{MAX_DIMS, Resources, Span, Time, UserId};
use plimsoll_base::visit_values;
use plimsoll_sim::books::{Books, Weights};
use plimsoll_sim::engine::Outcome;
use plimsoll_sim::record::{Fate, JobRecord, Launch, Salvage, State, Stuck, StuckRecord, TaskRecord};
use plimsoll_sim::workload::TaskSet;

/// The smallest number of users for which data are prefetched. If there are fewer users, their data are in the cache.
const MANY: usize = 2048;

/// The parameters of the measurement of a run.
#[derive(Clone, Copy, Debug)]
pub struct Measure {
    /// The step of the sampling grid.
    pub step: Span,
    /// The measured window.
    pub window: Window,
    /// The horizon: the instant at which the run ends even if work is left.
    pub horizon: Option<Time>,
}

/// The accumulators of one run.
pub struct RunLog {
    /// The sums and counts over the run.
    pub totals: Totals,
    /// The completion times by size of job, for the jobs in the window.
    pub bins: SizeBins,
    /// The sums over the tasks and jobs of each user.
    pub users: Vec<UserTotals>,
    /// The sampling grid and the means over it.
    pub grid: SampleGrid,
    dims: usize,
    finish_times: FinishTimes,
    service: ServiceRecord,
    status: Vec<UserStatus>,
    /// The used amounts in base units times microseconds, `dims` values per user.
    used_us: Vec<u128>,
    /// 1 / (c_r w_r) by class of weights.
    inverse: Vec<[f64; MAX_DIMS]>,
    active: Vec<UserId>,
    /// Snapshots of the active users, in the order of `active`, as of the last evaluation. The snapshots of the users in `stale` are
    /// outdated.
    snapshots: Snapshots,
    stale: Vec<UserId>,
    fluid: Fluid,
    sample: Sample,
}

/// The share of a user, as of its last change.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
struct UserStatus {
    /// The weighted share, for comparisons with other users.
    share: u64,
    /// The unweighted share, for the user's own metrics.
    plain_share: u64,
    since: Time,
    share_us: u128,
    backlogged_us: u64,
    backlogged: bool,
    /// The largest task that the user has launched since it became active, as a weighted dominant share.
    largest: u64,
    /// The user's class of weights.
    class: u32,
    /// The position among the active users, from 1; 0 if the user is not active.
    active: u32,
    /// Whether the user has changed since the last evaluation on the grid.
    stale: bool,
}

impl UserStatus {
    /// Advances the integrals to `now`.
    fn settle(&mut self, now: Time, window: &Window) {
        let span = window.part(self.since, now).0;
        self.share_us += u128::from(self.plain_share) * u128::from(span);
        self.backlogged_us += if self.backlogged { span } else { 0 };
        self.since = now;
    }

    /// Returns the share of a user that is backlogged.
    fn backlogged_share(&self) -> Option<u64> {
        self.backlogged.then_some(self.share)
    }
}

impl RunLog {
    /// Creates a log before the first event of a run with this capacity and these weights. `fair` is the replay of the workload, if it is
    /// shared between runs; otherwise the log replays the workload itself.
    pub fn new(
        dims: usize,
        capacity: &Resources,
        weights: &Weights,
        measure: &Measure,
        fair: Option<Arc<FairService>>,
    ) -> RunLog {
        let (Measure { step, window, horizon }, classes) = (*measure, factors(weights));
        RunLog {
            totals: Totals::new(window),
            bins: SizeBins::default(),
            users: Vec::new(),
            grid: SampleGrid::new(step, window.from, dims),
            dims,
            finish_times: FinishTimes::new(TaskSizes::new(dims, capacity)),
            snapshots: Snapshots::new(dims, &classes),
            service: ServiceRecord::new(dims, capacity, classes, fair, (window, horizon)),
            status: Vec::new(),
            used_us: Vec::new(),
            inverse: weights.inverse(capacity),
            active: Vec::new(),
            stale: Vec::new(),
            fluid: Fluid::new(dims),
            sample: Sample::default(),
        }
    }

    /// Returns a user's weighted dominant share by its true usage, as a fraction of the cluster.
    pub fn share(&self, user: UserId, books: &Books) -> f64 {
        self.share_of(books.used(user), books.weight_class(user)) as f64 / WHOLE as f64
    }

    /// Returns the weighted dominant share of amounts; 2^32 is the whole cluster.
    fn share_of(&self, amounts: &[u64], class: usize) -> u64 {
        fixed_share(largest_share(amounts, &self.inverse[class]))
    }

    /// Adds the next user, with its class of weights.
    pub fn user(&mut self, class: u32) {
        self.status.push(UserStatus { class, ..UserStatus::default() });
        self.users.push(UserTotals::default());
        self.used_us.extend(std::iter::repeat_n(0, self.dims));
        self.service.user(class);
    }

    /// Records a submitted row.
    pub fn submitted(&mut self, row: &TaskSet, first_of_job: bool) {
        self.totals.submitted(row, first_of_job);
        self.finish_times.submitted(row, first_of_job);
        // Services never end, so they are neither early nor late. Speeds are measured only for the other work.
        if let Some(work) = Work::from_row(row, &self.totals.window) {
            self.service.submit(work);
        }
    }

    /// Integrates the state, which was constant from `from` to `to`. Returns the first grid point in this time, if there is one. With
    /// `series`, the sample at this point is always evaluated, with the users in order. Otherwise the sample is evaluated only if it
    /// changes a mean.
    ///
    /// Errors: [`Error::NotConverged`](plimsoll_base::error::Error::NotConverged).
    pub fn interval(&mut self, from: Time, to: Time, state: &State, series: bool) -> Result<Option<Time>> {
        self.totals.interval(from, to, state.books);
        self.service.advance(to)?;
        let Some((first, points)) = self.grid.points(to.min(self.totals.window.to)) else { return Ok(None) };
        self.grid.means.watch(state, points);
        if self.active.is_empty() {
            self.sample = Sample::default();
        } else if state.books.backlogged() > 0 || series {
            // Without pending demand every fairness measure is ideal, and values are only needed for the tables.
            self.evaluate(state, points, series)?;
        }
        Ok(Some(first))
    }

    /// Evaluates the state for a number of grid points.
    fn evaluate(&mut self, state: &State, points: u64, series: bool) -> Result<()> {
        if series {
            self.active.sort_unstable();
            for (place, user) in (1..).zip(&self.active) {
                self.status[user.index()].active = place;
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
        Ok(())
    }

    /// Returns the sample at the last grid point at which it was evaluated, and the users of this sample.
    pub fn sample(&self) -> (&Sample, &[UserId]) {
        (&self.sample, &self.active)
    }

    /// Records that the next task of a user may have changed, so that the next evaluation updates the user.
    pub fn head(&mut self, user: UserId) {
        if !std::mem::replace(&mut self.status[user.index()].stale, true) {
            self.stale.push(user);
        }
    }

    /// Updates the snapshots of the users that have changed since the last evaluation.
    fn revisit_users(&mut self, books: &Books) {
        let mut stale = std::mem::take(&mut self.stale);
        for &user in &stale {
            let UserStatus { active, largest, .. } = self.status[user.index()];
            self.status[user.index()].stale = false;
            let Some(place) = active.checked_sub(1) else { continue };
            // The largest of the tasks launched since the user became active and of the user's next task.
            let next =
                if books.waiting(user) > 0 { self.share_of(books.head(user), books.weight_class(user)) } else { 0 };
            let largest = next.max(largest) as f64 / WHOLE as f64;
            self.snapshots.set(place as usize, user, books, largest);
        }
        stale.clear();
        self.stale = stale;
    }

    /// Records a launch of tasks.
    pub fn launched(&mut self, launch: &Launch) {
        self.totals.launched(launch);
        let task = self.share_of(launch.demand, self.status[launch.user.index()].class as usize);
        let largest = &mut self.status[launch.user.index()].largest;
        *largest = task.max(*largest);
    }

    /// Records tasks that ended, were stopped or are running at the end of the run. Returns the time for which they ran.
    pub fn tasks(&mut self, tasks: &TaskRecord) -> Span {
        let (count, window) = (u64::from(tasks.count), self.totals.window);
        let ran = self.totals.tasks(tasks);
        let end = tasks.start + ran;
        self.users[tasks.user.index()].tasks(tasks, ran, window.contains(tasks.release));
        let at = tasks.user.index() * self.dims;
        let measured = window.part(tasks.start, end).0;
        for (sum, demand) in self.used_us[at..at + self.dims].iter_mut().zip(tasks.demand) {
            *sum += product(*demand, measured, count);
        }
        let Salvage { delay, kept, saved, .. } = tasks.salvage;
        let (resumed, whole) = (tasks.start + delay, (tasks.submit, tasks.duration));
        let served = match tasks.fate {
            // Of two running instances, only the first is counted, not the backup.
            Fate::Running if tasks.backup => None,
            Fate::Finished => Some((whole, (resumed, end), true)),
            Fate::Running => Some((whole, (resumed, end), false)),
            // The work of these tasks is never completed, and does not wait from now on.
            Fate::Lost | Fate::GivenUp => Some((whole, (end, end), false)),
            // This attempt has served the part of the work that the task does not repeat. The rest is served when the task runs again, or
            // was served by its other instance.
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
        ran
    }

    /// Adds the age of a user's work to its delay; the work is served evenly between the two instants of `span`.
    fn served(&mut self, user: UserId, work: TaskWork, span: (Time, Time)) {
        self.users[user.index()].delay += self.service.served(user.index(), work, span);
    }

    /// Records a job that has ended, or was unfinished when the run ended. Returns it if it ended and was submitted in the window.
    pub fn job(&mut self, job: &JobRecord) -> Option<FinishedJob> {
        let ended = self.totals.job(job);
        self.finish_times.job(job, &self.totals.window);
        ended.iter().for_each(|ended| self.bins.record(ended));
        self.users[job.user.index()].job(job, ended.as_ref());
        ended
    }

    /// Records a task set with tasks that wait when the run ends.
    pub fn stuck(&mut self, stuck: &StuckRecord) {
        self.totals.stuck(stuck);
        let StuckRecord { demand, tasks, submit, duration, .. } = *stuck;
        if stuck.why != Stuck::TooLarge {
            let end = self.totals.now;
            let work = TaskWork { demand, tasks, submit, duration, completes: false };
            return self.served(stuck.user, work, (end, end));
        }
        // The task set was recorded at its arrival. As for all work that is never served, its age counts until the end of the run.
        if self.totals.window.contains(submit) && duration < Span::ENDLESS {
            let work = self.service.size(demand) * tasks as f64 * duration.seconds();
            let user = &mut self.users[stuck.user.index()];
            user.unserved += work;
            user.delay -= work * submit.since(Time::ZERO).seconds();
        }
    }

    /// Records the end of the instant `now`; the users in `changed` have another allocation or pending demand than before this instant.
    pub fn settled(&mut self, now: Time, changed: &[UserId], books: &Books) {
        for &user in changed {
            let class = books.weight_class(user);
            // Class 0 has weight 1 for every resource.
            let plain_share = self.share_of(books.used(user), 0);
            let share = if class == 0 { plain_share } else { self.share_of(books.used(user), class) };
            let backlogged = books.waiting(user) > 0;
            let active = backlogged || books.running(user) > 0;
            let status = &mut self.status[user.index()];
            status.settle(now, &self.totals.window);
            let before = status.backlogged_share();
            (status.share, status.plain_share, status.backlogged) = (share, plain_share, backlogged);
            self.totals.change_backlogged(before, status.backlogged_share());
            status.largest = if active { status.largest } else { 0 };
            self.head(user);
            self.set_active(user, active);
        }
    }

    fn set_active(&mut self, user: UserId, active: bool) {
        let place = self.status[user.index()].active;
        match (active, place) {
            (true, 0) => {
                self.active.push(user);
                self.snapshots.push();
                self.status[user.index()].active = self.active.len() as u32;
            }
            (false, 1..) => {
                self.active.swap_remove(place as usize - 1);
                self.snapshots.swap_remove(place as usize - 1);
                if let Some(moved) = self.active.get(place as usize - 1) {
                    self.status[moved.index()].active = place;
                }
                self.status[user.index()].active = 0;
            }
            _ => {}
        }
    }

    /// Prefetches the data of a user about which a fact follows soon.
    pub fn fetch(&self, user: UserId) {
        if self.users.len() < MANY {
            return;
        }
        // Entries are not aligned to cache lines. The cache line with the end of this user's entry also contains the start of the next
        // entry, which is prefetched too.
        for at in [user.index(), user.index() + 1] {
            prefetch_index(&self.status, at);
            prefetch_index(&self.users, at);
            prefetch_index(&self.used_us, at * self.dims);
        }
        self.service.fetch(user);
    }

    /// Advances all integrals to the end of the run. Errors: as [`RunLog::interval`], and
    /// [`Error::Mismatch`](plimsoll_base::error::Error::Mismatch) if the shared replay has other rows than this run.
    pub fn finish(&mut self, end: Time) -> Result<()> {
        self.service.finish()?;
        for status in &mut self.status {
            status.settle(end, &self.totals.window);
        }
        for user in &mut self.users {
            user.delay += std::mem::take(&mut user.unserved) * end.since(Time::ZERO).seconds();
        }
        Ok(())
    }

    /// Returns the integral of a user's dominant share over time, in microseconds of the whole cluster, and the user's backlogged time in
    /// microseconds.
    pub fn integrals(&self, user: usize) -> (f64, u64) {
        let status = &self.status[user];
        (status.share_us as f64 / WHOLE as f64, status.backlogged_us)
    }

    /// Returns the amounts that a user has used, in base units times microseconds, by resource.
    pub fn used_us(&self, user: usize) -> &[u128] {
        &self.used_us[user * self.dims..][..self.dims]
    }

    /// Returns the service of a user's judged work at the end of the run; `None` if the user has no judged work.
    pub fn judged(&self, user: usize) -> Option<JudgedService> {
        self.service.judged(user, &self.users[user])
    }

    /// Returns whether the run has a horizon.
    pub fn has_horizon(&self) -> bool {
        self.service.has_horizon()
    }

    /// Returns the run at its end, on machines of this number and capacity, without a name and a control plane.
    pub fn run(&self, outcome: Outcome, machines: (u64, Resources)) -> Run<'_> {
        Run {
            speeds: (0..self.users.len()).filter_map(|user| self.judged(user)?.speed()).collect(),
            unserved: self.service.unserved(),
            finish_time: Some(self.finish_times.summary),
            step: self.grid.step,
            ..Run::new(&self.totals, outcome, self.users.len() as u64, machines)
        }
    }
}

impl Checkpoint for RunLog {
    fn visit(&mut self, visitor: &mut Visitor) -> Result<()> {
        let RunLog {
            totals,
            bins,
            users,
            grid,
            dims: _,
            finish_times,
            service,
            status,
            used_us,
            inverse: _,
            active,
            snapshots,
            stale,
            fluid,
            sample,
        } = self;
        visit_values!(visitor; totals, bins, users, status, used_us, active, snapshots, stale, sample);
        grid.visit(visitor)?;
        finish_times.visit(visitor)?;
        service.visit(visitor)?;
        fluid.visit(visitor)
    }
}
