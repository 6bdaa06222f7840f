//! SharingQueues by attained service with joined events and start costs: Tiresias in the simulator of ElasticFlow.
//!
//! After the event at t, arrivals and ends up to t + slot are joined into one event at t + slot, unless a single one is left; a later event
//! keeps its time. An end is recorded at its second, but its GPUs are free only at the event. At an event ended jobs leave, arrivals enter
//! the first queue, attained times are updated, and jobs fall to the next queue, those with more GPUs first. Then jobs are selected queue by
//! queue, by their GPUs alone. A job that starts or resumes pays a cost without progress, which counts from the next event on. In every 60th
//! event all running jobs pay a higher cost. A queue is also checked between events, by the time to its limit divided by GPUs.
//!
//! Source: Gu et al., ElasticFlow, ASPLOS 2023, its simulator. All times are whole seconds.

use super::order::SharingQueues;
use super::{Order, SharedJob, TimeSharing, select};

/// The number of events between two restarts of all jobs.
const RESTARTS: u64 = 60;

/// Returns the cost of a start in seconds.
pub(super) fn cost_of(gpus: u32, cluster: u32, restart: bool) -> f64 {
    let base = match (cluster >= 256, restart) {
        (true, false) => 7.0,
        (true, true) => 54.0,
        (false, false) => 2.0,
        (false, true) => 29.0,
    };
    base + 2.0 * (f64::from(gpus).log2() + 1.0)
}

/// Simulates until all jobs have ended. The jobs are sorted by submission.
pub fn simulate(plan: &TimeSharing, slot: f64, jobs: &mut [SharedJob]) {
    let cluster = plan.machines * plan.gpus;
    let pool = TimeSharing { machines: 1, gpus: cluster, ..plan.clone() };
    let durations: Vec<f64> = jobs.iter().map(|job| job.left).collect();
    let mut queues = SharingQueues::new(Order::Tiresias, &plan.limits);
    let mut running: Vec<usize> = Vec::new();
    // The cost that a job pays from its last start on, and its end if no further event comes.
    let (mut owed, mut ends) = (vec![0.0f64; jobs.len()], vec![f64::INFINITY; jobs.len()]);
    let (mut now, mut arrived, mut number) = (f64::NEG_INFINITY, 0usize, 0u64);
    loop {
        let arrival = jobs.get(arrived).map(|job| job.submit);
        let end = running.iter().map(|job| ends[*job]).min_by(f64::total_cmp);
        let left = jobs.len() - arrived + running.len();
        let joined = |at: f64| if left > 1 && at <= now + slot { now + slot } else { at };
        let Some(event) = arrival.into_iter().chain(end).map(joined).min_by(f64::total_cmp) else { return };
        let check = queues.next_check(jobs).map(|until| now + until.max(slot));
        let (next, handles) = match check.filter(|check| *check < event) {
            Some(check) => (check, false),
            None => (event, true),
        };
        for &at in &running {
            let job = &mut jobs[at];
            if handles && ends[at] <= next {
                job.end = Some(ends[at]);
                job.running = false;
            } else {
                job.ran += next - now - owed[at] * plan.cost;
                owed[at] = 0.0;
            }
        }
        queues.remove_ended(jobs);
        running.retain(|job| jobs[*job].end.is_none());
        now = next;
        while handles && jobs.get(arrived).is_some_and(|job| job.submit <= now) {
            queues.push(arrived);
            arrived += 1;
        }
        queues.demote_large_first(jobs);
        let selected = select(&pool, jobs, queues.iter());
        let restart = number > 0 && number.is_multiple_of(RESTARTS);
        running.iter().for_each(|job| jobs[*job].running = false);
        for &at in &selected {
            let continues = running.contains(&at);
            let job = &mut jobs[at];
            job.running = true;
            job.starts += u64::from(!continues);
            job.start.get_or_insert(now);
            if !continues {
                owed[at] = cost_of(job.gpus, cluster, restart);
            } else if restart {
                owed[at] += cost_of(job.gpus, cluster, true);
            }
            let added = if restart { owed[at] * plan.cost } else { 0.0 };
            ends[at] = now + durations[at] - job.ran + added;
        }
        running = selected;
        queues.running_first(jobs);
        number += 1;
    }
}
