//! Compares the service of users under a policy with their service under ideal fair sharing.

use std::sync::Arc;

use crate::fair_service::FairService;
use crate::horizon::{HorizonLog, JudgedService};
use crate::reference::Reference;
use crate::users::UserTotals;
use crate::window::Window;
use crate::work::{RowChecksum, TaskSizes, Work};
use plimsoll_base::checkpoint::{Checkpoint, Visitor};
use plimsoll_base::error::Result;
use plimsoll_base::units::{MAX_DIMS, Resources, Span, Time, UserId};
use plimsoll_base::visit_values;

/// The service of users in a run and in the fluid replay of its workload.
pub(crate) struct ServiceRecord {
    sizes: TaskSizes,
    /// The replay that advances with the run; `None` if the replay is shared, and after the end of the run.
    reference: Option<Reference>,
    /// The outcome of the replay; empty until it has ended.
    fair: Arc<FairService>,
    /// The checksum of the run's rows, if the replay is shared.
    rows: RowChecksum,
    window: Window,
    horizon: Option<Time>,
    /// The submitted and served work of each user; empty without a horizon.
    logs: Vec<HorizonLog>,
}

/// Work of equal tasks.
#[derive(Clone, Copy)]
pub(crate) struct TaskWork<'a> {
    /// The demand of each task.
    pub demand: &'a [u64],
    /// The number of tasks.
    pub tasks: u64,
    /// The time of their submission.
    pub submit: Time,
    /// The duration of each task at full speed.
    pub duration: Span,
    /// Whether the tasks complete; all of their work is then served.
    pub completes: bool,
}

impl ServiceRecord {
    /// Creates a record for a cluster and classes of weights. The record uses a shared replay, or replays the workload itself.
    pub fn new(
        dims: usize,
        capacity: &Resources,
        classes: Vec<[f64; MAX_DIMS]>,
        shared: Option<Arc<FairService>>,
        (window, horizon): (Window, Option<Time>),
    ) -> ServiceRecord {
        ServiceRecord {
            sizes: TaskSizes::new(dims, capacity),
            reference: shared.is_none().then(|| Reference::new(dims, capacity, classes)),
            fair: shared.unwrap_or_default(),
            rows: RowChecksum::default(),
            window,
            horizon,
            logs: Vec::new(),
        }
    }

    /// Returns whether the run has a horizon.
    pub fn has_horizon(&self) -> bool {
        self.horizon.is_some()
    }

    /// Adds the next user, with its class of weights.
    pub fn user(&mut self, class: u32) {
        if let Some(reference) = &mut self.reference {
            reference.user(class);
        }
        self.logs.extend(self.horizon.map(|_| HorizonLog::default()));
    }

    /// Prefetches the data of a user that is about to submit work.
    pub fn fetch(&self, user: UserId) {
        self.reference.iter().for_each(|reference| reference.fetch(user));
    }

    /// Submits work.
    pub fn submit(&mut self, work: Work) {
        if self.horizon.is_some_and(|horizon| work.submit >= horizon) {
            return;
        }
        match &mut self.reference {
            Some(reference) => reference.submit(work),
            None => self.rows.add(&work),
        }
        if !work.measured || self.horizon.is_none() {
            return;
        }
        let amount = self.size(&work.demand.0) * work.tasks as f64 * work.duration.seconds();
        if amount > 0.0 {
            self.logs[work.user.index()].submitted(work.submit, amount);
        }
    }

    /// Returns the dominant share of one task.
    pub fn size(&self, demand: &[u64]) -> f64 {
        self.sizes.size(demand)
    }

    /// Advances the replay to `to`. Errors: as [`Reference::advance`].
    pub fn advance(&mut self, to: Time) -> Result<()> {
        self.reference.iter_mut().try_for_each(|reference| reference.advance(to))
    }

    /// Completes the replay. Errors: as [`Reference::advance`], and [`Error::Mismatch`](plimsoll_base::error::Error::Mismatch) if a shared
    /// replay has other rows than the run.
    pub fn finish(&mut self) -> Result<()> {
        match self.reference.take() {
            Some(reference) => self.fair = Arc::new(reference.finish(self.horizon)?),
            None => self.fair.check(self.rows)?,
        }
        Ok(())
    }

    /// Returns the sum of amount times age of the work when it is served, where the work is served evenly from `start` to `end`. Unserved
    /// work has its age at `end`. Returns 0 for work that was not submitted in the window.
    pub fn served(&mut self, user: usize, work: TaskWork, (start, end): (Time, Time)) -> f64 {
        let TaskWork { demand, tasks, submit, duration, completes } = work;
        if !self.window.contains(submit) || submit >= end || duration == Span::ENDLESS {
            return 0.0;
        }
        let (age, ran, full) = (end.since(submit).seconds(), end.since(start).seconds(), duration.seconds());
        let size = self.size(demand) * tasks as f64;
        let served = if completes { full } else { ran.min(full) };
        if ran > 0.0
            && served > 0.0
            && let Some(log) = self.logs.get_mut(user)
        {
            log.served((start, end), size * served);
        }
        size * (full * age - ran.min(full) * ran / 2.0)
    }

    /// Returns the service of a user's judged work: all of its work or, under a horizon, the part that the reference serves by then.
    /// Returns `None` if the user has no judged work.
    pub fn judged(&self, user: usize, totals: &UserTotals) -> Option<JudgedService> {
        let fair = self.fair.service(user);
        if fair.work <= 0.0 {
            return None;
        }
        if let Some(horizon) = self.horizon {
            let (log, left) = (&self.logs[user], self.fair.left(user));
            if left > 0.0 || !log.has_served(fair.work) {
                return log.judge(horizon, fair, left);
            }
        }
        Some(JudgedService { fair_delay: fair.delay / fair.work, delay: totals.delay / fair.work, served: 1.0 })
    }

    /// Returns the share of the submitted work that is not served at the horizon; `None` without a horizon or work.
    pub fn unserved(&self) -> Option<f64> {
        let submitted: f64 = (0..self.logs.len()).map(|user| self.fair.service(user).work).sum();
        let served: f64 = self.logs.iter().map(HorizonLog::total_served).sum();
        let share = 1.0 - served / submitted;
        // A share below the rounding errors of the sums counts as 0.
        (submitted > 0.0).then_some(if share < 1e-9 { 0.0 } else { share })
    }
}

impl Checkpoint for ServiceRecord {
    fn visit(&mut self, visitor: &mut Visitor) -> Result<()> {
        // A shared replay is complete before the run begins.
        let ServiceRecord { sizes: _, reference, fair: _, rows, window: _, horizon: _, logs } = self;
        visit_values!(visitor; rows, logs);
        visitor.option(reference.as_mut())
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_base::units::{Dim, Unit};
    use plimsoll_sim::books::Weights;
    use plimsoll_sim::workload::{TaskSet, Workload};
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::fluid::factors;
    use crate::work::ServedWork;

    const USERS: u32 = 30;

    fn capacity() -> Resources {
        Resources(std::array::from_fn(|d| [60, 90].get(d).copied().unwrap_or(0)))
    }

    /// Returns jobs with one or two rows. Some are services, and some have no work.
    fn workload(rng: &mut ChaCha8Rng) -> Workload {
        let dims = ["cpu", "memory"].map(|name| Dim { name: name.to_owned(), unit: Unit::Milli });
        let mut workload = Workload { dims: dims.to_vec(), ..Workload::default() };
        let mut submit = Time::ZERO;
        for number in 0..rng.random_range(1..200) {
            submit = Time(submit.0 + rng.random_range(0..4) * 500_000);
            let user = UserId(workload.users.intern(&format!("user-{}", rng.random_range(0..USERS))));
            let job = workload.job(&format!("job-{number}"));
            for _ in 0..rng.random_range(1..3) {
                let seconds = Span::from_secs(rng.random_range(0..40));
                workload.sets.push(TaskSet {
                    job,
                    user,
                    submit,
                    duration: if rng.random_ratio(1, 20) { Span::ENDLESS } else { seconds },
                    tasks: rng.random_range(1..6),
                    demand: Resources(std::array::from_fn(|d| if d < 2 { rng.random_range(0..8) } else { 0 })),
                    ..TaskSet::default()
                });
                // The second row may be submitted later, and is then recorded early.
                submit = Time(submit.0 + rng.random_range(0..2) * 1_000_000);
            }
        }
        workload.finish()
    }

    /// Records all rows before the horizon as a run does, and serves each row `wait` after its submission. Returns the record at the end
    /// of the run, and the users.
    fn run(
        workload: &Workload,
        weights: &Weights,
        wait: Span,
        record: ServiceRecord,
    ) -> Result<(ServiceRecord, Vec<UserTotals>)> {
        let (mut record, mut users) = (record, Vec::<UserTotals>::new());
        let before = |row: &&TaskSet| record.horizon.is_none_or(|horizon| row.submit < horizon);
        let rows: Vec<&TaskSet> = workload.sets.iter().take_while(before).collect();
        for (at, row) in rows.iter().enumerate() {
            // The second row of a job is recorded with the first one.
            if at == 0 || rows[at - 1].job != row.job {
                record.advance(row.submit)?;
            }
            while users.len() <= row.user.index() {
                record.user(weights.class_of(workload.users.name(users.len() as u32)));
                users.push(UserTotals::default());
            }
            let Some(work) = Work::from_row(row, &record.window) else { continue };
            record.submit(work);
            let (Work { demand, tasks, submit, duration, .. }, start) = (work, work.submit + wait);
            let end = (start + duration).min(record.horizon.unwrap_or(Time::NEVER));
            let completes = end == start + duration;
            if start < end {
                let served = TaskWork { demand: &demand.0, tasks, submit, duration, completes };
                users[row.user.index()].delay += record.served(row.user.index(), served, (start, end));
            }
        }
        record.finish()?;
        Ok((record, users))
    }

    #[test]
    fn a_shared_replay_equals_that_of_each_run() {
        let mut rng = ChaCha8Rng::seed_from_u64(42);
        let (mut judged, mut waited) = (0, 0);
        for case in 0..80 {
            let workload = workload(&mut rng);
            let names: Vec<String> = (0..USERS / 2).map(|user| format!("user-{user}")).collect();
            let weights =
                Weights::from_scalars(names.iter().map(|name| (name.as_str(), rng.random_range(1..4) * 500_000)));
            let window = Window { from: Time(rng.random_range(0..3) * 20_000_000), to: Time::NEVER };
            let horizon = (case % 2 == 0).then(|| Time(rng.random_range(1..300) * 500_000));
            let fair =
                FairService::replay(&mut workload.source(), &capacity(), &weights, &window, horizon, &mut || true);
            let fair = Arc::new(fair.expect("a filling ends").expect("not stopped"));
            // Each wait represents a policy, because policies serve users at different times.
            for wait in [0, 7, 90].map(Span::from_secs) {
                let record = |shared| {
                    let measure = (window, horizon);
                    let record = ServiceRecord::new(2, &capacity(), factors(&weights), shared, measure);
                    run(&workload, &weights, wait, record).expect("a filling ends")
                };
                let ((own, users), (shared, _)) = (record(None), record(Some(Arc::clone(&fair))));
                assert_eq!(own.fair.rows, fair.rows, "case {case}");
                for (user, totals) in users.iter().enumerate() {
                    let bits = |service: ServedWork| [service.work.to_bits(), service.delay.to_bits()];
                    assert_eq!(bits(own.fair.service(user)), bits(fair.service(user)), "case {case}");
                    assert_eq!(own.fair.left(user).to_bits(), fair.left(user).to_bits(), "case {case}");
                    assert_eq!(own.judged(user, totals), shared.judged(user, totals), "case {case}");
                    judged += usize::from(own.judged(user, totals).is_some());
                    waited += usize::from(fair.service(user).mean_delay().is_some_and(|delay| delay > 40.0));
                }
                assert_eq!(own.unserved(), shared.unserved(), "case {case}");
            }
        }
        assert!(judged > 400 && waited > 40, "the cases are one-sided: {judged} judged, {waited} waited");
    }

    #[test]
    fn a_shared_replay_of_other_rows_is_an_error() {
        let mut rng = ChaCha8Rng::seed_from_u64(43);
        let (one, other, weights, window) =
            (workload(&mut rng), workload(&mut rng), Weights::default(), Window::default());
        let fair = FairService::replay(&mut one.source(), &capacity(), &weights, &window, None, &mut || true);
        let fair = Some(Arc::new(fair.expect("a filling ends").expect("not stopped")));
        let record = ServiceRecord::new(2, &capacity(), factors(&weights), fair, (window, None));
        let error = run(&other, &weights, Span::ZERO, record).err().expect("an error").to_string();
        assert!(error.contains("other rows"), "{error}");
    }
}
