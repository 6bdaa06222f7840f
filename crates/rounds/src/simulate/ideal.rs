//! Ideal fractions without rounds (Gavel, figure 13).

use plimsoll_base::error::{Error, Result};
use plimsoll_base::units::{Span, Time};

use super::{JobOutcome, RoundOutcome, RoundSetup, check};
use crate::policies::{ActiveJob, PolicyRow, View};
use crate::table::Rates;

/// Replays the jobs with ideal fractions: between two arrivals a job advances `floor(x_ij T_ij * time)` iterations on each type.
///
/// Completions are noticed at the next arrival and have its time, as in the published simulator; jobs that are active after the last arrival
/// stay incomplete. Errors: as [`simulate`](super::simulate()); a policy with pairs.
pub fn simulate_ideal(setup: &RoundSetup<'_>, row: &PolicyRow) -> Result<RoundOutcome> {
    let capacity = setup.cluster.capacity();
    check(setup, &capacity)?;
    if row.packing {
        let problem = format!("{} shares accelerators; ideal fractions are defined for single jobs only", row.name);
        return Err(Error::Mismatch { problem });
    }
    let n = capacity.len();
    let rates = Rates::new(setup.table, setup.jobs, &[], &setup.cluster.worker_types, false)?;
    let mut policy = (row.create)(&setup.policy);
    let one = |job: &crate::table::TrainingJob| JobOutcome {
        arrival: job.arrival,
        time: vec![Span(0); n],
        ..JobOutcome::default()
    };
    let mut outcome = RoundOutcome {
        jobs: setup.jobs.iter().map(one).collect(),
        busy: vec![0; n],
        overhead: vec![0; n],
        ..RoundOutcome::default()
    };
    let mut active: Vec<ActiveJob> = Vec::new();
    let mut unfinished = setup.window.map_or(setup.jobs.len(), |window| window.length());
    let mut fractions: Vec<u32> = Vec::new();
    let mut last = Time(0);
    let mut computed: Option<Time> = None;
    for job in setup.jobs {
        if unfinished == 0 {
            break;
        }
        let elapsed = job.arrival.since(last).0;
        for (at, view) in active.iter_mut().enumerate() {
            for j in 0..n {
                let x = u128::from(fractions[at * n + j]);
                let pico = x * u128::from(rates.alone(view.kind)[j].pico) / 1_000_000_000;
                let whole = pico * u128::from(elapsed) / 1_000_000_000_000_000_000 * 1_000_000;
                let ran = (whole as u64).min(view.remaining);
                (view.remaining, view.done) = (view.remaining - ran, view.done + ran);
                let time = (x * u128::from(elapsed) / 1_000_000_000) as u64;
                let record = &mut outcome.jobs[view.id as usize];
                record.time[j] = Span(record.time[j].0 + time);
                outcome.busy[j] += time * u64::from(view.scale);
            }
            let record = &mut outcome.jobs[view.id as usize];
            record.start.get_or_insert(last);
            record.done = view.done;
            if view.remaining == 0 {
                record.completion = Some(job.arrival);
                unfinished -= usize::from(setup.window.is_none_or(|window| window.contains(view.id)));
            }
        }
        let mut ids = active.iter().map(|view| view.remaining > 0).collect::<Vec<_>>().into_iter();
        let mut entries = ids.clone().flat_map(|stays| std::iter::repeat_n(stays, n));
        fractions.retain(|_| entries.next().unwrap_or_default());
        active.retain(|_| ids.next().unwrap_or_default());
        last = job.arrival;
        active.push(ActiveJob {
            id: job.id,
            kind: rates.kind(&job.job_type, job.scale).unwrap_or_default(),
            scale: job.scale,
            weight: job.weight,
            entity: job.entity,
            arrival: job.arrival,
            remaining: job.iterations,
            done: 0,
            deadline: None,
        });
        if computed.is_some_and(|before: Time| last.since(before) < setup.options.ideal_at_least) {
            fractions.extend(std::iter::repeat_n(0, n));
            continue;
        }
        computed = Some(last);
        let view = View { now: last, jobs: &active, rates: &rates, capacity: &capacity };
        fractions = policy.targets(&view)?.alone;
        outcome.queue.push((last, active.len() as u32));
        outcome.resets += 1;
    }
    outcome.end = last;
    Ok(outcome)
}
