//! The cost of executing decisions, and of failures, under a control plane. The values are missing in runs without a control plane.

use super::{Metrics, Run, float, int, micros, seconds};
use plimsoll_base::column::{Topic, Unit};
use plimsoll_sim::backend::{Carried, Work};

/// Returns a value of a run under a control plane.
fn control_value<T>(run: &Run, value: fn(&Carried) -> T) -> Option<T> {
    run.carried.as_ref().map(value)
}

/// Returns one of the statistics of response times, in seconds.
fn response(run: &Run, which: usize) -> Option<f64> {
    Some(run.carried.as_ref()?.response_us?[which] as f64 / 1e6)
}

/// Returns an amount of work as a part of the requested work.
fn part(run: &Run, class: fn(&Carried) -> &Work, amount: fn(&Work) -> u64) -> Option<f64> {
    let work = class(run.carried.as_ref()?);
    (work.wanted > 0).then(|| amount(work) as f64 / work.wanted as f64)
}

/// Returns a count per second of the run.
fn rate(run: &Run, count: fn(&Carried) -> u64) -> Option<f64> {
    let carried = run.carried.as_ref()?;
    let end = run.outcome.end.seconds();
    (end > 0.0).then(|| count(carried) as f64 / end)
}

pub(super) static METRICS: Metrics = Metrics {
    runs: &[
        int("control_faults", "injected faults of the control plane", |run| control_value(run, |it| it.faults)),
        int("control_workers_failed", "workers that failed individually", |run| control_value(run, |it| it.failed))
            .lower(),
        int(
            "control_machines_shunned",
            "how often a machine was blacklisted because workers had failed on it",
            |run| control_value(run, |it| it.blacklisted),
        ),
        micros("control_down_us", "time without decisions of FuxiMaster: dead, or recovering", |run| {
            control_value(run, |it| it.down.0)
        })
        .lower(),
        int("control_messages", "messages sent, heartbeats that changed nothing included", |run| {
            control_value(run, |it| it.messages)
        })
        .lower(),
        int("control_requests", "requests that FuxiMaster processed, without heartbeats", |run| {
            control_value(run, |it| it.requests)
        }),
        int("control_granted", "units that it granted", |run| control_value(run, |it| it.granted)),
        float("control_grants_per_s", "units granted over the length of the run", |run| rate(run, |it| it.granted)),
        float("control_busy", "share of the run that FuxiMaster spent on requests", |run| {
            let end = run.outcome.end.seconds();
            run.carried.as_ref().filter(|_| end > 0.0).map(|it| it.busy.seconds() / end)
        })
        .unit(Unit::Share)
        .lower()
        .words("FuxiMaster busy"),
        seconds(
            "control_response_mean_s",
            "mean time from the arrival of a request at FuxiMaster to its answer, if answers take time",
            |run| response(run, 0),
        )
        .lower(),
        seconds("control_response_p99_s", "the 99th percentile of the same", |run| response(run, 1)).lower(),
        seconds("control_response_max_s", "the longest of these times", |run| response(run, 2)).lower(),
        int(
            "control_requests_peak",
            "the most messages that waited for FuxiMaster at once; 0 if it takes no time",
            |run| control_value(run, |it| it.peak_requests),
        )
        .lower(),
        int("online_workers_stopped", "workers of online services (stable tasks) that stopped while they ran", |run| {
            control_value(run, |it| it.online.stopped)
        })
        .lower(),
        int(
            "online_workers_harmed",
            "workers of online services that were stopped without the consent of their application master",
            |run| control_value(run, |it| it.harmed),
        )
        .lower()
        .headline(Topic::Delay, "harmed"),
        float("online_unserved", "share of the work of online services that was not done", |run| {
            part(run, |it| &it.online, |work| work.unserved)
        })
        .unit(Unit::Share)
        .lower()
        .words("Online work not done"),
        int("offline_workers_stopped", "workers of other tasks that stopped while they ran", |run| {
            control_value(run, |it| it.offline.stopped)
        })
        .lower(),
        float("offline_discarded", "lost work of these workers, as a share of the requested work", |run| {
            part(run, |it| &it.offline, |work| work.discarded)
        })
        .unit(Unit::Share)
        .lower()
        .words("Offline work lost"),
        float("offline_doubled", "work done in parallel with a replacement, as a share of the requested work", |run| {
            part(run, |it| &it.offline, |work| work.doubled)
        })
        .unit(Unit::Share)
        .lower()
        .words("Offline work done twice"),
        int("control_violations", "invariants of the protocol that did not hold (100 at most)", |run| {
            control_value(run, |it| it.violations)
        })
        .lower(),
    ],
    fairness: &[],
};
