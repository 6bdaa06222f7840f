//! What every table holds: names, types and meanings, in one place for writers, readers and `plimsoll schema`.

use std::path::{Path, PathBuf};

use super::table::{Field, Kind};
use crate::units::Dim;

/// The version of all schemas together; it changes when a column is renamed, removed or means something else.
pub const VERSION: u32 = 1;

/// The tables of an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Table {
    /// One row a run.
    Runs,
    /// One row a user and run.
    Users,
    /// One row a job and run.
    Jobs,
    /// One row a task and run.
    Tasks,
    /// One row a change of what a user holds.
    Usage,
    /// One row a grid point: fairness over time.
    Fairness,
    /// One row an active user and grid point.
    Shares,
    /// One row a group of users and resource: promises kept and broken.
    Groups,
    /// One row a group, resource and grid point at which something of it has changed.
    Levels,
    /// One row a bin of job sizes and run.
    Bins,
    /// One row a quantile of a delay and run.
    Quantiles,
    /// One row a kind of demand and run: what was submitted.
    Demands,
    /// One row a decision: whose turn it was, and what became of it.
    Decisions,
}

impl Table {
    /// All of them.
    pub const ALL: [Table; 13] = [
        Table::Runs,
        Table::Users,
        Table::Jobs,
        Table::Tasks,
        Table::Usage,
        Table::Fairness,
        Table::Shares,
        Table::Groups,
        Table::Levels,
        Table::Bins,
        Table::Quantiles,
        Table::Demands,
        Table::Decisions,
    ];

    /// Its name: the folder and the file.
    pub fn name(self) -> &'static str {
        match self {
            Table::Runs => "runs",
            Table::Users => "users",
            Table::Jobs => "jobs",
            Table::Tasks => "tasks",
            Table::Usage => "usage",
            Table::Fairness => "fairness",
            Table::Shares => "shares",
            Table::Groups => "groups",
            Table::Levels => "levels",
            Table::Bins => "bins",
            Table::Quantiles => "quantiles",
            Table::Demands => "demands",
            Table::Decisions => "decisions",
        }
    }

    /// The file of one run: `TABLE/policy=P/run=N/TABLE.parquet` in the results' folder.
    pub fn path(self, folder: &Path, policy: &str, run: u64) -> PathBuf {
        let (name, policy) = (self.name(), format!("policy={}", partition(policy)));
        folder.join(name).join(policy).join(format!("run={run}")).join(format!("{name}.parquet"))
    }

    /// What a row is.
    pub fn about(self) -> &'static str {
        match self {
            Table::Runs => "one row a run: the summary of everything",
            Table::Users => "one row a user and run: what each got",
            Table::Jobs => "one row a job and run, in order of completion; unfinished jobs last",
            Table::Tasks => "one row a task and run, in order of completion (on request)",
            Table::Usage => {
                "the change log of what each user holds: piecewise constant, so integrals are exact (on request)"
            }
            Table::Fairness => {
                "fairness and utilisation over time, on the sampling grid; a grid point at which nothing has changed since the last is left out"
            }
            Table::Shares => "dominant share of every active user over time, on the sampling grid",
            Table::Groups => {
                "one row a group of users, resource and run: promises kept and broken (policies with groups only); amounts in the unit people write"
            }
            Table::Levels => {
                "quotas over time, on the sampling grid (policies with groups only), in the unit people write; a row holds until the next of its group and resource"
            }
            Table::Bins => "completion time by job size, one row a bin and run",
            Table::Quantiles => "quantiles of completion time, wait and slowdown of jobs, one row each",
            Table::Decisions => {
                "every turn of every round, in order: launched, blocked (told once, when it is found) or not admitted (on request)"
            }
            Table::Demands => {
                "what was submitted: tasks by demand, rounded to eighths of powers of two (first seed of each policy)"
            }
        }
    }

    /// Its columns for a run with these resources: `policy`, `run` and `seed` come before them.
    pub fn columns(self, dims: &[Dim]) -> Vec<Described> {
        let mut columns = Vec::new();
        for (name, kind, about) in self.plain() {
            match name.split_once("<r>") {
                None => columns.push(Described::new((*name).to_owned(), *kind, (*about).to_owned())),
                Some((before, after)) => columns.extend(dims.iter().map(|dim| {
                    let unit = if *kind == Kind::Int { dim.column() } else { dim.name.clone() };
                    Described::new(format!("{before}{unit}{after}"), *kind, about.replace("<r>", &dim.name))
                })),
            }
        }
        columns
    }

    /// Names, types and meanings; `<r>` stands for a column a resource.
    fn plain(self) -> &'static [(&'static str, Kind, &'static str)] {
        use Kind::{Float, Int, Text};
        match self {
            Table::Runs => &[
                ("workload", Text, "name of the trace or generator"),
                ("machines", Int, "machines of the cluster"),
                ("users", Int, "users that appeared"),
                ("jobs", Int, "jobs that appeared"),
                ("jobs_finished", Int, "jobs all of whose tasks ended"),
                ("tasks", Int, "tasks submitted"),
                ("tasks_finished", Int, "tasks that ended"),
                ("tasks_never_started", Int, "tasks that never started: too large, deadlocked, starved or cut"),
                (
                    "tasks_stopped",
                    Int,
                    "tasks stopped before their end (some perhaps more than once), which started anew",
                ),
                (
                    "tasks_lost",
                    Int,
                    "tasks lost with their machine, which never ended; their jobs went on without them",
                ),
                ("asks", Int, "how often an urgent task asked others for their room"),
                ("asks_withdrawn", Int, "asks that came to nothing"),
                ("tasks_forced", Int, "tasks that were asked and stopped, for they had not ended in time"),
                ("hoards_given_up", Int, "how often a gang gave up room that it held in vain"),
                ("tasks_located", Int, "tasks launched that asked for a location"),
                (
                    "tasks_cross_room",
                    Int,
                    "of those, tasks launched in another room than the one they asked for, or outside all",
                ),
                ("end_us", Int, "when the run ended: the last event or the horizon"),
                ("makespan_us", Int, "from the first submission to the last end of a task"),
                ("throughput_tasks_per_s", Float, "tasks finished over makespan"),
                (
                    "reserved_<r>",
                    Float,
                    "share of <r> reserved by running tasks, time-weighted over the makespan; null under slots",
                ),
                ("used_<r>", Float, "share of <r> that running tasks truly use, time-weighted; may pass 1 under slots"),
                (
                    "arriving_<r>",
                    Float,
                    "share of <r> truly used from the first to the last submission of a job: without the time when work runs out",
                ),
                (
                    "stranded_<r>",
                    Float,
                    "share of <r> free on machines that fit no waiting task's demand, while tasks wait; null when pooled",
                ),
                ("overcommitted_<r>", Float, "share of time in which more of <r> is used than there is"),
                (
                    "slots_held",
                    Float,
                    "share of slots held, time-weighted (of the only resource reserved under only:R); null under others",
                ),
                (
                    "fragmentation",
                    Float,
                    "share of the free devices that is useless to the workload's tasks, mean over the grid; null without devices",
                ),
                ("jain", Float, "Jain index of weighted dominant shares of backlogged users, exactly time-weighted"),
                ("gini", Float, "Gini coefficient of the same, mean over the grid"),
                (
                    "share_gap",
                    Float,
                    "largest minus smallest weighted dominant share of backlogged users, mean over the grid",
                ),
                ("share_ratio", Float, "smallest over largest of the same, mean over the grid"),
                ("envy_max", Float, "largest envy among backlogged users that hold something, mean over the grid"),
                ("envy_count", Float, "backlogged users that envy somebody, mean over the grid"),
                (
                    "incentive_min",
                    Float,
                    "smallest value of own bundle over value of the 1/n cluster, mean over the grid",
                ),
                (
                    "incentive_below",
                    Float,
                    "share of backlogged users worse off than on their 1/n cluster, mean over the grid",
                ),
                (
                    "deviation_mean",
                    Float,
                    "distance of an active user's dominant share from the one under weighted DRF with divisible tasks, mean over users and over the grid while tasks wait",
                ),
                ("deviation_max", Float, "the largest of these distances, mean over the grid while tasks wait"),
                (
                    "theorem7_broken",
                    Float,
                    "share of grid points with two or more backlogged users at which two of their weighted dominant shares differ by more than the largest of their tasks",
                ),
                ("completion_mean_s", Float, "mean completion time of finished jobs"),
                ("completion_p50_s", Float, "median completion time"),
                ("completion_p90_s", Float, "90 % quantile of completion time"),
                ("completion_p99_s", Float, "99 % quantile of completion time"),
                ("wait_mean_s", Float, "mean wait of finished jobs: submission to first launch"),
                ("wait_p50_s", Float, "median wait"),
                ("wait_p90_s", Float, "90 % quantile of wait"),
                ("wait_p99_s", Float, "99 % quantile of wait"),
                ("task_wait_mean_s", Float, "mean wait of launched tasks: release, or being stopped, to launch"),
                ("task_wait_max_s", Float, "the longest of these waits"),
                ("gang_wait_mean_s", Float, "mean wait of launched tasks that start with all others of their row"),
                ("gang_wait_max_s", Float, "the longest of these waits"),
                ("located_hits", Float, "share of the tasks with a location that were launched there"),
                (
                    "lost_s",
                    Float,
                    "seconds that tasks had run which were stopped before their end, added up over tasks",
                ),
                (
                    "slowed_s",
                    Float,
                    "seconds that finished tasks took longer on over-committed machines, added up over tasks",
                ),
                ("slowdown_mean", Float, "mean of completion time over ideal completion time"),
                ("slowdown_p50", Float, "median slowdown"),
                ("slowdown_p90", Float, "90 % quantile of slowdown"),
                ("slowdown_p99", Float, "99 % quantile of slowdown"),
                ("peak_running", Int, "the most tasks that ran at once"),
                ("sample_us", Int, "step of the sampling grid"),
            ],
            Table::Users => &[
                ("user", Text, "name"),
                ("weight", Float, "the one weight, null where weights differ by resource"),
                ("jobs", Int, "jobs submitted"),
                ("jobs_finished", Int, "jobs all of whose tasks ended"),
                ("tasks", Int, "tasks submitted"),
                ("tasks_launched", Int, "tasks launched"),
                ("dominant_share", Float, "dominant share of what it truly uses, time-weighted over the makespan"),
                ("used_<r>_s", Float, "<r> used times seconds, in the unit people write (core seconds, GiB seconds)"),
                ("wait_mean_s", Float, "mean wait of its finished jobs"),
                ("task_wait_mean_s", Float, "mean wait of its launched tasks"),
                ("completion_mean_s", Float, "mean completion time of its finished jobs"),
                ("slowdown_mean", Float, "mean slowdown of its finished jobs"),
                ("backlogged_s", Float, "time in which tasks of it waited"),
                ("shortfall", Float, "mean over its backlogged grid points of max(0, entitlement minus share)"),
                ("tasks_stopped", Int, "tasks of it stopped before their end"),
                ("lost_s", Float, "seconds that those had run, added up"),
            ],
            Table::Jobs => &[
                ("job", Text, "name"),
                ("user", Text, "who submitted it"),
                ("tasks", Int, "how many tasks it has"),
                ("submit_us", Int, "when its first row was submitted"),
                ("start_us", Int, "when its first task was launched"),
                ("finish_us", Int, "when its last task ended; null if one has not"),
                ("work_us", Int, "tasks times duration, added up"),
                ("ideal_us", Int, "its completion time on an empty, boundless cluster"),
            ],
            Table::Tasks => &[
                ("job", Text, "name of the job"),
                ("task", Int, "number within the job, from 0, in row order"),
                ("attempt", Int, "which try this is, from 0"),
                ("user", Text, "who submitted it"),
                ("machine", Int, "index of its machine; null when pooled or never started"),
                (
                    "devices",
                    Text,
                    "its devices, such as gpu:0;gpu:1, or gpu:2=0.46 for a part of one; null where devices have no ids",
                ),
                (
                    "release_us",
                    Int,
                    "when it could have started at the earliest, or was stopped before; null if it never could",
                ),
                ("start_us", Int, "when it was launched; null if it never was"),
                ("finish_us", Int, "when it ended or was stopped; null if it has not"),
                (
                    "outcome",
                    Text,
                    "finished, running (at the horizon), reclaimed, preempted or machine-failed (stopped, it starts anew), lost (with its machine), too large, deadlocked, starved or waiting (at the horizon)",
                ),
            ],
            Table::Usage => &[
                ("time_us", Int, "from when on"),
                ("user", Text, "who"),
                ("running", Int, "running tasks"),
                ("waiting", Int, "waiting tasks"),
                ("used_<r>", Int, "what its running tasks use, in base units"),
            ],
            Table::Fairness => &[
                ("time_us", Int, "grid point"),
                ("active_users", Int, "users that run or wait for something"),
                ("backlogged_users", Int, "users that wait for something"),
                ("running", Int, "running tasks"),
                ("waiting", Int, "waiting tasks"),
                ("reserved_<r>", Float, "share of <r> reserved; null under slots"),
                ("used_<r>", Float, "share of <r> truly used"),
                (
                    "stranded_<r>",
                    Float,
                    "share of <r> free on machines that fit no waiting task; null when pooled or nothing waits",
                ),
                ("jain", Float, "Jain index of weighted dominant shares of backlogged users"),
                ("gini", Float, "Gini coefficient"),
                ("share_gap", Float, "largest minus smallest"),
                ("share_ratio", Float, "smallest over largest"),
                ("envy_max", Float, "largest envy among those that hold something"),
                ("envy_count", Int, "users that envy somebody"),
                ("incentive_min", Float, "smallest value of own bundle over value of the 1/n cluster"),
                ("incentive_below", Int, "users worse off than on their 1/n cluster"),
                (
                    "deviation_mean",
                    Float,
                    "distance of an active user's dominant share from the one under weighted DRF with divisible tasks: the mean",
                ),
                ("deviation_max", Float, "the largest of these distances"),
                (
                    "task_max",
                    Float,
                    "largest task of a backlogged user (launched since it became active, or next), as a weighted dominant share",
                ),
                (
                    "theorem7_broken",
                    Int,
                    "1 if weighted dominant shares of two backlogged users differ by more than task_max; null for fewer than two",
                ),
            ],
            Table::Shares => &[
                ("time_us", Int, "grid point"),
                ("user", Text, "who"),
                ("dominant_share", Float, "largest share of any resource that it truly uses"),
                ("waiting", Int, "waiting tasks"),
                (
                    "fluid_share",
                    Float,
                    "its dominant share under weighted DRF with divisible tasks of its mean demand, no more than it has",
                ),
            ],
            Table::Groups => &[
                ("group", Text, "name"),
                ("parent", Text, "the group above it; null right under the cluster"),
                ("label", Text, "the label in whose tree it stands; null in the default tree"),
                ("resource", Text, "name of the resource"),
                ("capacity", Float, "the most that its tree ever shared of it: without labels what the cluster has"),
                ("variant", Text, "how minimum and ratio go together: min-plus-share or max-min-level"),
                ("ratio", Float, "by what is shared above the minimums"),
                ("min", Float, "what it is guaranteed"),
                ("max", Float, "what it may use at most; null for no limit"),
                ("used_s", Float, "what it used, times seconds (core seconds, GiB seconds)"),
                ("demand_s", Float, "what it held and waited for, cut to its max, times seconds"),
                ("borrowed_s", Float, "what it used above its min, times seconds"),
                (
                    "spare_s",
                    Float,
                    "what it did not ask for of its min, so that others could have it if it lends, times seconds",
                ),
                (
                    "short_s",
                    Float,
                    "what it was short of its due, times seconds; its due is its demand, but no more than its min",
                ),
                ("below_min_s", Float, "time in which it was short of its due of this resource"),
                (
                    "below_min_any_s",
                    Float,
                    "time in which it was short of any resource; the same in all rows of a group",
                ),
                (
                    "returns",
                    Int,
                    "how often it fell below its min because its due had grown, and was not below it any more later; the same in all rows of a group",
                ),
                ("return_mean_s", Float, "how long that took in the mean; null without any"),
                ("return_max_s", Float, "how long that took at most; null without any"),
                ("return_open_s", Float, "how long it had waited at the end for a return to come; null if none"),
                (
                    "tasks_stopped",
                    Int,
                    "tasks of it that were stopped before their end; the same in all rows of a group",
                ),
                ("lost_s", Float, "what those had used until then, times seconds"),
                ("unreturned_s", Float, "what was to be taken back, but only stable tasks held it, times seconds"),
            ],
            Table::Levels => &[
                ("time_us", Int, "grid point"),
                ("group", Text, "who"),
                ("label", Text, "the label in whose tree it stands; null in the default tree"),
                ("resource", Text, "name of the resource"),
                ("total", Float, "what it and its siblings share: all of its tree, or its parent's runtime quota"),
                ("runtime", Float, "its runtime quota, if a round were held now"),
                ("used", Float, "what its running tasks use"),
                (
                    "request",
                    Float,
                    "what its users hold and wait for, and what groups under it request, each cut to its max; not cut to its own",
                ),
                ("level", Float, "how high the water stands among it and its siblings: an amount per ratio"),
                ("base", Float, "what it has whatever the others ask for"),
                ("reach", Float, "what it has when there is enough for all"),
            ],
            Table::Bins => &[
                ("bin", Text, "job sizes in tasks"),
                ("position", Int, "order of the bins"),
                ("jobs", Int, "finished jobs"),
                ("completion_mean_s", Float, "their mean completion time"),
            ],
            Table::Quantiles => &[
                ("metric", Text, "completion_s, wait_s or slowdown, of finished jobs"),
                ("q", Float, "which quantile"),
                ("value", Float, "its value, to 1 part in 2048"),
            ],
            Table::Decisions => &[
                ("time_us", Int, "when"),
                ("user", Text, "whose turn it was: the first in line among those not decided yet"),
                ("job", Text, "job of its next task"),
                ("task", Int, "number of that task within the job, from 0"),
                ("turn", Text, "launched, blocked or not admitted"),
                ("machine", Int, "where it was launched; null when pooled or not launched"),
                ("dominant_share", Float, "the user's weighted dominant share before its turn"),
                ("rank", Text, "the policy's rank before its turn, in hexadecimal; lowest first"),
            ],
            Table::Demands => &[
                ("stage", Text, "stage of the rows; null if they have none"),
                ("demand_<r>", Float, "<r> of a task, in the unit people write"),
                ("tasks", Int, "how many tasks"),
            ],
        }
    }

    /// The fields for a writer.
    pub fn fields(self, dims: &[Dim]) -> Vec<Field> {
        self.columns(dims).into_iter().map(|column| column.field).collect()
    }
}

/// A value as the name of a partition folder: `slot:12` stands as it is, a path's slashes do not.
pub fn partition(value: &str) -> String {
    let mut text = String::new();
    for byte in value.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'-' | b':' | b',' => text.push(byte as char),
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

/// The axes of an experiment, which come first in every table.
pub fn axes() -> Vec<Described> {
    [
        ("policy", Kind::Text, "name of the policy"),
        ("run", Kind::Int, "number of the run among those of the policy, from 0"),
        ("seed", Kind::Int, "seed of the workload; null for a trace"),
    ]
    .into_iter()
    .map(|(name, kind, about)| Described::new(name.to_owned(), kind, about.to_owned()))
    .collect()
}

/// A column and what it means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described {
    /// Name and type.
    pub field: Field,
    /// The meaning.
    pub about: String,
}

impl Described {
    fn new(name: String, kind: Kind, about: String) -> Described {
        Described { field: Field { name, kind }, about }
    }
}
