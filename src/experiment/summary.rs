//! The summary of a run, in one row.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use super::collect::Collector;
use super::groups::GroupSummary;
use super::sample::GridMean;
use super::totals::StuckExample;
use crate::books::{WEIGHT_ONE, Weights};
use crate::engine::Outcome;
use crate::metrics::{LogHistogram, Summary, gap, jain};
use crate::output::table::Cell;
use crate::record::Stuck;
use crate::units::{Dim, Resources, Span};

/// The summary of a run: the row of the `runs` table, and the terminal's summary.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunSummary {
    /// The policy's name.
    pub policy: String,
    /// Number of the run among those of the policy.
    pub run: u64,
    /// The seed of the workload; `None` for a trace.
    pub seed: Option<u64>,
    /// The resource dimensions.
    pub dims: Vec<Dim>,
    /// Counts of the engine.
    pub outcome: Outcome,
    /// Columns of the `runs` table and their values, in order.
    pub values: Vec<(String, Value)>,
    /// Completion by job size: bin label, jobs, mean completion time in seconds.
    pub bins: Vec<(String, u64, Option<f64>)>,
    /// Tasks that never started, by reason, and a few of them.
    pub stuck: Vec<(Stuck, u64)>,
    /// A few task sets for each reason.
    pub examples: Vec<StuckExample>,
    /// Requests of the workload that the engine ignores, in words.
    pub ignored: Vec<String>,
    /// The groups of a policy that has some.
    pub groups: Vec<GroupSummary>,
}

/// A value of a summary.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Value {
    /// A count or a time in microseconds.
    Int(u64),
    /// A measure; `None` where it does not exist.
    Float(Option<f64>),
    /// A name.
    Text(String),
}

impl Value {
    /// As a cell of a table.
    pub fn cell(&self) -> Cell<'_> {
        match self {
            Value::Int(value) => (*value).into(),
            Value::Float(value) => (*value).into(),
            Value::Text(text) => Cell::Text(text),
        }
    }

    /// As a number, if it is one and exists.
    pub fn number(&self) -> Option<f64> {
        match self {
            Value::Int(value) => Some(*value as f64),
            Value::Float(value) => *value,
            Value::Text(_) => None,
        }
    }
}

impl RunSummary {
    /// The value of a column as a number.
    pub fn number(&self, column: &str) -> Option<f64> {
        self.values.iter().find(|(name, _)| name == column).and_then(|(_, value)| value.number())
    }
}

/// Requests of the workload that the engine ignores.
pub(super) fn ignored(collector: &Collector, weights: &Weights, pooled: bool) -> Vec<String> {
    let mut absent: HashSet<&str> = weights.names().collect();
    for name in collector.names.iter() {
        absent.remove(name);
    }
    let mut absent: Vec<&str> = absent.into_iter().collect();
    absent.sort_unstable();
    let strangers = absent.first().map(|first| {
        format!("{} users of the weights file do not appear in the workload, such as '{first}'", absent.len())
    });
    let rows = |count: u64, what: &str| (count > 0).then(|| format!("{count} rows {what}"));
    let asked = if pooled { collector.totals.labels } else { 0 };
    let labels = rows(
        asked,
        "ask for a label or a location, and placement 'pooled' knows no machines; any placement rule keeps to them",
    );
    let endless = collector.totals.endless;
    let endless = (endless > 0).then(|| format!("{endless} jobs have 2^63 us of work or more: their work_us is null"));
    [labels, strangers, endless].into_iter().flatten().collect()
}

/// The parts of a summary.
pub(super) struct Parts<'a> {
    pub workload: &'a str,
    pub machines: u64,
    pub pooled: bool,
    pub dims: &'a [Dim],
    pub capacity: Resources,
    pub offered: Resources,
    pub outcome: Outcome,
}

/// The columns of the `runs` table, in the order of its schema.
pub(super) fn values(collector: &Collector, parts: &Parts) -> Vec<(String, Value)> {
    let totals = &collector.totals;
    let slots = totals.slots;
    let first = totals.first_submit.unwrap_or_default();
    let makespan = Span(totals.last_end.0.saturating_sub(first.0));
    // To the end of the run, which is the last end of a task unless something else happens later.
    let span = collector.window.part(first, totals.now).0;
    let share = |integral: u128, of: u64| (span > 0 && of > 0).then(|| integral as f64 / (span as f64 * of as f64));
    let mut values: Vec<(String, Value)> = Vec::new();
    let mut int = |name: &str, value: u64| values.push((name.to_owned(), Value::Int(value)));
    int("machines", parts.machines);
    int("users", collector.names.len() as u64);
    int("jobs", totals.jobs);
    int("jobs_finished", totals.jobs_finished);
    int("tasks", totals.tasks);
    int("tasks_finished", totals.finished);
    int("tasks_never_started", totals.stuck.values().sum());
    int("tasks_stopped", totals.stopped);
    int("tasks_lost", totals.lost);
    int("asks", parts.outcome.asks);
    int("asks_withdrawn", parts.outcome.asks_withdrawn);
    int("tasks_forced", parts.outcome.forced);
    int("hoards_given_up", parts.outcome.hoards_given_up);
    int("tasks_located", totals.located);
    int("tasks_cross_room", totals.located_elsewhere);
    int("end_us", parts.outcome.end.0);
    int("makespan_us", makespan.0);
    let throughput = (makespan.0 > 0).then(|| totals.finished as f64 / makespan.seconds());
    values.push(("throughput_tasks_per_s".to_owned(), Value::Float(throughput)));
    let each = |prefix: &'static str, value: &dyn Fn(usize) -> Option<f64>| -> Vec<(String, Value)> {
        let name = |dim: &Dim| format!("{prefix}_{}", dim.name);
        parts.dims.iter().enumerate().map(|(d, dim)| (name(dim), Value::Float(value(d)))).collect()
    };
    values.extend(each("reserved", &|d| share(totals.held_us[d], parts.capacity.0[d]).filter(|_| !slots)));
    values.extend(each("used", &|d| share(totals.used_us[d], parts.capacity.0[d])));
    let arriving = collector.window.part(first, totals.last_submit).0;
    let while_arriving = |d: usize| {
        let capacity = parts.capacity.0[d];
        let whole = arriving as f64 * capacity as f64;
        (arriving > 0 && capacity > 0).then(|| totals.used_until_last_submit_us[d] as f64 / whole)
    };
    values.extend(each("arriving", &while_arriving));
    let stranded = &collector.sampler.stranded;
    values.extend(each("stranded", &|d| stranded[d].mean().filter(|_| !parts.pooled && !slots)));
    values.extend(each("overcommitted", &|d| share(totals.over_us[d].into(), 1)));
    let mut float = |name: &str, value: Option<f64>| values.push((name.to_owned(), Value::Float(value)));
    // The only resource that a lens that is not plain offers: slots, or the one that is reserved.
    let offered = (0..parts.dims.len()).find(|&d| parts.offered.0[d] > 0).unwrap_or(0);
    float("slots_held", share(totals.held_us[offered], parts.offered.0[offered]).filter(|_| slots));
    float("fragmentation", collector.sampler.fragmentation.mean());
    let speeds = collector.speeds();
    float("speed_jain", jain(&speeds));
    float("speed_gap", gap(&speeds));
    float("speed_min", speeds.iter().copied().reduce(f64::min));
    float("jain_backlogged", (totals.jain_time > 0).then(|| totals.jain_us / totals.jain_time as f64));
    let grid = &collector.sampler;
    let means: [(&str, GridMean); 11] = [
        ("gini_backlogged", grid.gini),
        ("share_gap_backlogged", grid.gap),
        ("share_ratio_backlogged", grid.ratio),
        ("envy_max", grid.envy_max),
        ("envy_count", grid.envy_count),
        ("envy_unbounded", grid.envy_unbounded),
        ("incentive_min", grid.incentive_min),
        ("incentive_below", grid.incentive_below),
        ("deviation_mean", grid.deviation_mean),
        ("deviation_max", grid.deviation_max),
        ("theorem7_broken", grid.theorem7_broken),
    ];
    for (name, mean) in means {
        float(name, mean.mean());
    }
    let delays = &collector.delays;
    delay(
        &mut float,
        ["completion_mean_s", "completion_p50_s", "completion_p90_s", "completion_p99_s"],
        &delays.completion,
    );
    delay(&mut float, ["wait_mean_s", "wait_p50_s", "wait_p90_s", "wait_p99_s"], &delays.wait);
    let task_wait = (totals.waited > 0).then(|| totals.task_wait_us as f64 / totals.waited as f64 / 1e6);
    float("task_wait_mean_s", task_wait);
    float("task_wait_max_s", (totals.waited > 0).then(|| totals.task_wait_max.seconds()));
    let gangs = totals.gang_tasks;
    float("gang_wait_mean_s", (gangs > 0).then(|| totals.gang_wait_us as f64 / gangs as f64 / 1e6));
    float("gang_wait_max_s", (gangs > 0).then(|| totals.gang_wait_max.seconds()));
    float("located_hits", (totals.located > 0).then(|| totals.located_there as f64 / totals.located as f64));
    float("lost_s", Some(totals.lost_us as f64 / 1e6));
    float("slowed_s", Some(totals.slowed_us as f64 / 1e6));
    delay(&mut float, ["slowdown_mean", "slowdown_p50", "slowdown_p90", "slowdown_p99"], &delays.slowdown);
    values.push(("peak_running".to_owned(), Value::Int(parts.outcome.peak_running)));
    values.push(("sample_us".to_owned(), Value::Int(grid.step.0)));
    values.insert(0, ("workload".to_owned(), Value::Text(parts.workload.to_owned())));
    values
}

/// Mean, median, 90 % and 99 % quantiles; microseconds and millionths both are scaled by a million.
fn delay(float: &mut impl FnMut(&str, Option<f64>), names: [&str; 4], histogram: &LogHistogram) {
    let summary = Summary::of(histogram, 1_000_000);
    float(names[0], summary.map(|summary| summary.mean));
    float(names[1], summary.map(|summary| summary.p50));
    float(names[2], summary.map(|summary| summary.p90));
    float(names[3], summary.map(|summary| summary.p99));
}

/// The row of the `users` table of one user.
pub(super) fn user_row<'a>(collector: &'a Collector, user: usize, weights: &Weights, parts: &Parts) -> Vec<Cell<'a>> {
    let totals = &collector.users[user];
    let first = collector.totals.first_submit.unwrap_or_default();
    let span = collector.window.part(first, collector.totals.now).0 as f64;
    let (share_us, backlogged_us) = collector.integrals(user);
    let mean = |sum: u128, count: u64| (count > 0).then(|| sum as f64 / count as f64 / 1e6);
    let class = weights.class_of(collector.names.get(user)) as usize;
    let weight = weights.whole(class).map(|weight| weight as f64 / WEIGHT_ONE as f64);
    let mut row = vec![Cell::Text(collector.names.get(user)), weight.into()];
    row.extend([totals.jobs, totals.jobs_finished, totals.tasks, totals.launched, totals.measured].map(Cell::from));
    row.push((span > 0.0).then(|| share_us / span).into());
    for (d, dim) in parts.dims.iter().enumerate() {
        let used = collector.used_us[user * parts.dims.len() + d] as f64;
        row.push(Cell::from(used / dim.unit.scale() as f64 / 1e6));
    }
    row.extend([
        mean(totals.job_wait_us, totals.measured).into(),
        mean(totals.task_wait_us, totals.waited).into(),
        mean(totals.completion_us, totals.measured).into(),
        mean(totals.slowdown_millionths, totals.slowdowns).into(),
        Cell::Float(backlogged_us as f64 / 1e6),
        (totals.shortfall_points > 0).then(|| totals.shortfall / totals.shortfall_points as f64).into(),
        collector.speed(user).into(),
        collector.service_delay(user).into(),
        collector.reference.service(user).mean_delay().into(),
        totals.stopped.into(),
        Cell::Float(totals.lost_us as f64 / 1e6),
    ]);
    row
}
