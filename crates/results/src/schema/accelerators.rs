//! The tables of plans with accelerators.

use plimsoll_base::column::{Column, ColumnValue, TableRow};

/// The identity of a run within its cell.
#[derive(Clone, Debug, PartialEq)]
pub struct AcceleratorRunKey {
    /// The policy.
    pub policy: String,
    /// The jobs per hour; `None` if the list states arrivals.
    pub jobs_per_hour: Option<f64>,
    /// The number of the list of jobs.
    pub run: u64,
}

/// A row that belongs to a run.
trait KeyedRow {
    fn key(&self) -> &AcceleratorRunKey;
}

/// Returns the first columns of a table: the run of each row.
fn key_columns<R: KeyedRow + for<'a> TableRow<Of<'a> = R>>() -> Vec<Column<ColumnValue<R>>> {
    vec![
        Column::text("policy", "the policy", |row: &R| Some(&row.key().policy)),
        Column::float("jobs_per_hour", "the rate of arrivals; null if the list states arrivals", |row: &R| {
            row.key().jobs_per_hour
        }),
        Column::int("run", "number of the list of jobs, from 0", |row: &R| Some(row.key().run)),
    ]
}

/// A run of a list of jobs under a policy.
#[derive(Clone, Debug, PartialEq)]
pub struct AcceleratorRun {
    /// The run.
    pub of: AcceleratorRunKey,
    /// The completed jobs of the window.
    pub jobs: u64,
    /// The mean completion time of these jobs, and its standard deviation, in seconds.
    pub completion: [f64; 2],
    /// The 0.5, 0.9 and 0.99 quantiles of the completion time, in seconds.
    pub quantiles: [f64; 3],
    /// The end of the run, in seconds.
    pub makespan_s: f64,
    /// The share of accelerator time in use.
    pub utilisation: f64,
    /// The rounds, computations of fractions and preemptions.
    pub counts: [u64; 3],
    /// The share of jobs that keep their accelerators in the next round.
    pub lease_extension: f64,
    /// The progress lost to preemptions, in seconds.
    pub lost_s: f64,
    /// The worst finish-time fairness, and the shares of jobs above 1.05 and 1.1; `None` if the list states no exclusive times.
    pub rho: Option<[f64; 3]>,
    /// Whether the number of active jobs grew until the end.
    pub unstable: bool,
    /// The time in preemption, summed over jobs, in seconds.
    pub paused_s: f64,
    /// The mean envy of active jobs over time, and the share of jobs with envy; `None` for policies without fractions of single jobs.
    pub envy: Option<[f64; 2]>,
    /// The largest relative distance of a plan to its upper bound; `None` for policies that do not plan.
    pub plan_gap: Option<f64>,
}

impl KeyedRow for AcceleratorRun {
    fn key(&self) -> &AcceleratorRunKey {
        &self.of
    }
}

impl TableRow for AcceleratorRun {
    type Of<'a> = AcceleratorRun;

    const TABLE: &'static str = "accelerator_runs";

    fn columns() -> Vec<Column<ColumnValue<Self>>> {
        type C = Column<ColumnValue<AcceleratorRun>>;
        let own = vec![
            C::int("jobs", "completed jobs of the window", |of| Some(of.jobs)),
            C::seconds("completion_mean_s", "mean completion time of these jobs", |of| Some(of.completion[0])).lower(),
            C::seconds("completion_sd_s", "its standard deviation over jobs", |of| Some(of.completion[1])),
            C::seconds("completion_p50_s", "its median", |of| Some(of.quantiles[0])).lower(),
            C::seconds("completion_p90_s", "its 90 % quantile", |of| Some(of.quantiles[1])).lower(),
            C::seconds("completion_p99_s", "its 99 % quantile", |of| Some(of.quantiles[2])).lower(),
            C::seconds("makespan_s", "end of the last round", |of| Some(of.makespan_s)).lower(),
            C::float("utilisation", "share of accelerator time in use", |of| Some(of.utilisation)).higher(),
            C::int("rounds", "rounds with a running job", |of| Some(of.counts[0])),
            C::int("resets", "computations of fractions", |of| Some(of.counts[1])),
            C::int("preemptions", "pauses of jobs that were not complete", |of| Some(of.counts[2])).lower(),
            C::float("lease_extension", "share of active jobs that keep their accelerators in the next round", |of| {
                Some(of.lease_extension)
            })
            .higher(),
            C::seconds("lost_s", "progress lost to preemptions", |of| Some(of.lost_s)).lower(),
            C::float(
                "rho_max",
                "worst finish-time fairness (Shockwave's definition); null without exclusive times",
                |of| Some(of.rho?[0]),
            )
            .lower(),
            C::float("rho_above_105", "share of jobs above 1.05", |of| Some(of.rho?[1])).lower(),
            C::float("rho_above_110", "share of jobs above 1.1", |of| Some(of.rho?[2])).lower(),
            C::int("unstable", "1 if the number of active jobs grew until the end", |of| Some(of.unstable.into())),
            C::seconds("paused_s", "time in preemption, between two rounds of a job, summed over jobs", |of| {
                Some(of.paused_s)
            })
            .lower(),
            C::float(
                "envy_mean",
                "mean relative gain of active jobs from another job's fractions, over time; null for policies without fractions of \
                 single jobs",
                |of| Some(of.envy?[0]),
            )
            .lower(),
            C::float("envy_share", "share of active jobs with a gain above 0.001, over time", |of| Some(of.envy?[1])).lower(),
            C::float(
                "plan_gap",
                "largest relative distance of a plan to its upper bound; null for policies that do not plan",
                |of| of.plan_gap,
            )
            .lower(),
        ];
        key_columns().into_iter().chain(own).collect()
    }
}

/// A job of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct AcceleratorJob {
    /// The run.
    pub of: AcceleratorRunKey,
    /// The number of the job.
    pub job: u64,
    /// The job type.
    pub job_type: String,
    /// The arrival, the start and the completion, in microseconds.
    pub times: [Option<u64>; 3],
    /// The running time, in microseconds.
    pub ran: u64,
    /// The rounds, preemptions and kept leases.
    pub counts: [u64; 3],
    /// The time between its rounds, while other jobs ran, in microseconds.
    pub paused: u64,
    /// The iterations per second from arrival to completion, or to the end of the run.
    pub effective: f64,
}

impl KeyedRow for AcceleratorJob {
    fn key(&self) -> &AcceleratorRunKey {
        &self.of
    }
}

impl TableRow for AcceleratorJob {
    type Of<'a> = AcceleratorJob;

    const TABLE: &'static str = "accelerator_jobs";

    fn columns() -> Vec<Column<ColumnValue<Self>>> {
        type C = Column<ColumnValue<AcceleratorJob>>;
        let own = vec![
            C::int("job", "number of the job in the list, from 0", |of| Some(of.job)),
            C::text("job_type", "its type", |of| Some(&of.job_type)),
            C::micros("submit_us", "arrival", |of| of.times[0]),
            C::micros("start_us", "start of its first round; null if it never ran", |of| of.times[1]),
            C::micros("finish_us", "completion; null if the run ended before", |of| of.times[2]),
            C::micros("ran_us", "running time over all types", |of| Some(of.ran)),
            C::int("rounds", "rounds with it", |of| Some(of.counts[0])),
            C::int("preemptions", "pauses before it was complete", |of| Some(of.counts[1])).lower(),
            C::int("leases", "rounds with the accelerators of the round before", |of| Some(of.counts[2])).higher(),
            C::micros("paused_us", "time in preemption, between two of its rounds", |of| Some(of.paused)),
            C::float(
                "iterations_per_s",
                "iterations per second from arrival to completion, or to the end of the run",
                |of| Some(of.effective),
            )
            .higher(),
        ];
        key_columns().into_iter().chain(own).collect()
    }
}

/// A worker type in a run.
#[derive(Clone, Debug, PartialEq)]
pub struct AcceleratorType {
    /// The run.
    pub of: AcceleratorRunKey,
    /// The worker type.
    pub worker_type: String,
    /// Its accelerators.
    pub accelerators: u64,
    /// Accelerator time in use, and the overhead within this time, in seconds.
    pub busy_s: [f64; 2],
    /// The share of its accelerator time in use.
    pub utilisation: f64,
}

impl KeyedRow for AcceleratorType {
    fn key(&self) -> &AcceleratorRunKey {
        &self.of
    }
}

impl TableRow for AcceleratorType {
    type Of<'a> = AcceleratorType;

    const TABLE: &'static str = "accelerator_types";

    fn columns() -> Vec<Column<ColumnValue<Self>>> {
        type C = Column<ColumnValue<AcceleratorType>>;
        let own = vec![
            C::text("worker_type", "the worker type", |of| Some(&of.worker_type)),
            C::int("accelerators", "accelerators of the type", |of| Some(of.accelerators)),
            C::seconds("busy_s", "accelerator time in use", |of| Some(of.busy_s[0])),
            C::seconds("overhead_s", "accelerator time that preemptions used, a part of the time in use", |of| {
                Some(of.busy_s[1])
            })
            .lower(),
            C::float("utilisation", "share of the type's accelerator time in use", |of| Some(of.utilisation)).higher(),
        ];
        key_columns().into_iter().chain(own).collect()
    }
}
