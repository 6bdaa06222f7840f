//! The metrics of each user of a run: the columns of the table `users`.
//!
//! [`UserTotals`] adds up the tasks and jobs of a user while the run is recorded. [`User`] has these sums and the integrals at the end of
//! the run, from which the columns are computed.

use crate::horizon::JudgedService;
use crate::run::delay::FinishedJob;
use crate::run::{SlowdownSum, mean_s};
use plimsoll_base::column::{Column, ColumnValue, TableRow, Unit};
use plimsoll_base::units::{Dim, Span};
use plimsoll_sim::record::{JobRecord, TaskRecord};

/// The sums over a user's tasks and jobs. Tasks and jobs are added when they end, so that the data of a busy user are accessed as rarely
/// as possible.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct UserTotals {
    /// The sum over grid points of the shortfall relative to the user's part of the cluster.
    pub shortfall: f64,
    /// The number of grid points in `shortfall`.
    pub shortfall_points: u64,
    /// The sum of the ages of the measured work when it was served, in cluster-seconds times seconds.
    pub delay: f64,
    /// The measured work of tasks that are too large for any machine, in cluster-seconds. The submission times of this work are already
    /// subtracted from `delay`; the end of the run is added later.
    pub unserved: f64,
    jobs: u64,
    jobs_finished: u64,
    tasks: u64,
    launched: u64,
    /// The number of launched tasks that were released in the window, and their total wait.
    waited: u64,
    task_wait_us: u128,
    /// The number of interruptions of running tasks, and the running time without effect.
    stopped: u64,
    lost_us: u128,
    /// The number of finished jobs that were submitted in the window, and their total delays.
    measured: u64,
    job_wait_us: u128,
    completion_us: u128,
    slowdown: SlowdownSum,
}

impl UserTotals {
    /// Records tasks that ran for a time and then ended, were stopped or were cut off; `measured` is whether they were released in the
    /// window.
    pub fn tasks(&mut self, tasks: &TaskRecord, ran: Span, measured: bool) {
        let count = u64::from(tasks.count);
        self.launched += count;
        if measured {
            self.waited += count;
            self.task_wait_us += u128::from(tasks.start.since(tasks.release).0) * u128::from(count);
        }
        self.stopped += if tasks.fate.is_interrupted() { count } else { 0 };
        self.lost_us += u128::from(tasks.lost(ran).0) * u128::from(count);
    }

    /// Records a job that has ended or was cut off; `measured` is present if the job ended and was submitted in the window.
    pub fn job(&mut self, job: &JobRecord, measured: Option<&FinishedJob>) {
        self.jobs += 1;
        self.jobs_finished += u64::from(job.finish.is_some());
        self.tasks += job.tasks;
        if let Some(ended) = measured {
            self.measured += 1;
            self.job_wait_us += u128::from(ended.wait().0);
            self.completion_us += u128::from(ended.completion().0);
            self.slowdown.add(ended.completion(), ended.ideal);
        }
    }
}

/// A user at the end of a run.
#[derive(Clone, Debug)]
pub struct User<'a> {
    /// The name of the user.
    pub name: &'a str,
    /// The weight, if it is the same for all resources.
    pub weight: Option<f64>,
    /// The sums over tasks and jobs.
    pub totals: &'a UserTotals,
    /// The measured time, in microseconds.
    pub measured_us: f64,
    /// The integral of the dominant share over the measured time, in microseconds.
    pub share_us: f64,
    /// The measured time while tasks of the user waited, in microseconds.
    pub backlogged_us: u64,
    /// The used amounts, in base units times microseconds, by resource.
    pub used_us: &'a [u128],
    /// The resources.
    pub dims: &'a [Dim],
    /// The service of the judged work; `None` if there is none.
    pub judged: Option<JudgedService>,
    /// Whether the run has a horizon.
    pub has_horizon: bool,
}

impl TableRow for User<'static> {
    type Of<'a> = User<'a>;

    const TABLE: &'static str = "users";

    fn columns() -> Vec<Column<ColumnValue<Self>>> {
        COLUMNS.to_vec()
    }
}

type C = Column<ColumnValue<User<'static>>>;

static COLUMNS: [C; 21] = [
    C::text("user", "name", |user| Some(user.name)),
    C::float("weight", "the one weight, null where weights differ by resource", |user| user.weight),
    C::int("jobs", "jobs submitted", |user| Some(user.totals.jobs)),
    C::int("jobs_finished", "jobs of which all tasks ended", |user| Some(user.totals.jobs_finished)),
    C::int("tasks", "tasks submitted", |user| Some(user.totals.tasks)),
    C::int(
        "tasks_launched",
        "launches of its tasks; this and the counts before it are of the whole run, as in the runs table",
        |user| Some(user.totals.launched),
    ),
    C::int(
        "jobs_measured",
        "its finished jobs submitted in the measured window: its delays are of these",
        |user| Some(user.totals.measured),
    ),
    C::share(
        "dominant_share",
        "dominant share of its true usage, time-weighted from the first submission to the end of the run, within the measured window",
        |user| (user.measured_us > 0.0).then(|| user.share_us / user.measured_us),
    ),
    C::floats(
        "used_<r>_s",
        "<r> used times seconds, in the display unit (core seconds, GiB seconds)",
        |user, d| Some(user.used_us[d] as f64 / user.dims[d].unit.scale() as f64 / 1e6),
    )
    .unit(Unit::AmountSeconds)
    .words("<r> in use"),
    C::seconds("wait_mean_s", "mean wait of its finished jobs, to the launch of their first task", |user| {
        mean_s(user.totals.job_wait_us, user.totals.measured)
    })
    .lower()
    .words("Mean wait"),
    C::seconds("task_wait_mean_s", "mean wait of its launched tasks", |user| {
        mean_s(user.totals.task_wait_us, user.totals.waited)
    })
    .lower()
    .words("Mean wait of tasks"),
    C::seconds("completion_mean_s", "mean completion time of its finished jobs", |user| {
        mean_s(user.totals.completion_us, user.totals.measured)
    })
    .lower()
    .words("Mean completion time"),
    C::float("slowdown_mean", "mean slowdown of its finished jobs", |user| {
        user.totals.slowdown.mean()
    })
    .lower()
    .words("Mean slowdown"),
    C::seconds("backlogged_s", "time with waiting tasks within the measured window", |user| {
        Some(user.backlogged_us as f64 / 1e6)
    })
    .lower(),
    C::share(
        "shortfall",
        "dominant share of the tasks that 1/n of the cluster would run in addition, mean over its backlogged grid points",
        |user| {
            let points = user.totals.shortfall_points;
            (points > 0).then(|| user.totals.shortfall / points as f64)
        },
    )
    .lower(),
    C::float(
        "speed",
        "fair_service_delay_s over service_delay_s, times fair_work_served under a horizon: 1 if served as fast as by ideal fair sharing, 0.5 if it waited twice as long; null without work",
        |user| user.judged?.speed(),
    )
    .higher(),
    C::seconds(
        "service_delay_s",
        "mean age of its work when it is served: submission to service, weighted by dominant share times duration; under a horizon of the work that fair sharing serves by then",
        |user| Some(user.judged?.delay),
    )
    .lower(),
    C::seconds(
        "fair_service_delay_s",
        "the same under weighted DRF with divisible tasks on one pool; equal for all policies",
        |user| Some(user.judged?.fair_delay),
    ),
    C::share(
        "fair_work_served",
        "of the work that ideal fair sharing serves by the horizon (until), the share that was served by then; null without a horizon",
        |user| Some(user.judged?.served).filter(|_| user.has_horizon),
    )
    .higher(),
    C::int(
        "tasks_stopped",
        "how often its running tasks were stopped and had to start again, without their own failures; a task stopped twice counts twice",
        |user| Some(user.totals.stopped),
    )
    .lower(),
    C::seconds("lost_s", "wasted run time of its tasks in seconds, summed: until they were stopped (from their last checkpoint on), and to resume", |user| Some(user.totals.lost_us as f64 / 1e6))
        .lower(),
];
