//! Decisions at the boundaries of rounds, where every selected job is launched again.
//!
//! A decision is taken at a boundary if a job arrived or ended in the round before, or has changed its queue. Every selected job then pays
//! for a start, also if it ran before. Between decisions jobs continue without cost. A job that ends inside a round has its exact end, and
//! its GPUs are idle until the boundary. Attained service counts whole rounds. Source: the testbed of Zhao et al., Muri, SIGCOMM 2022, as
//! far as its log shows.

use super::order::{Order, SharingQueues};
use super::themis::Themis;
use super::{SharedJob, TimeSharing, select};

/// Simulates until all jobs have ended. The jobs are sorted by submission.
pub fn simulate(plan: &TimeSharing, round: f64, order: Order, jobs: &mut [SharedJob]) {
    let mut queues = SharingQueues::new(order, &plan.limits);
    let mut running: Vec<usize> = Vec::new();
    // The rest of the cost of the last start of each job.
    let mut owed = vec![0.0f64; jobs.len()];
    let (mut number, mut arrived) = (0u64, 0);
    let mut themis = Themis::new(plan.machines * plan.gpus, jobs.len(), plan.free_choice);
    // Themis places the selected jobs by size, so that all of them find room.
    let pool = TimeSharing { machines: 1, gpus: plan.machines * plan.gpus, ..plan.clone() };
    let place = if order == Order::Themis { &pool } else { plan };
    loop {
        let now = number as f64 * round;
        let mut decides = false;
        let ended = running.len();
        running.retain(|job| jobs[*job].end.is_none());
        decides |= running.len() < ended;
        queues.remove_ended(jobs);
        while jobs.get(arrived).is_some_and(|job| job.submit <= now) {
            queues.push(arrived);
            arrived += 1;
            decides = true;
        }
        decides |= queues.demote(jobs);
        if decides {
            queues.sort(jobs);
            if order == Order::Themis {
                let sorted = themis.order(jobs, queues.iter(), now, true);
                queues.replace(sorted);
            }
            let selected = select(place, jobs, queues.iter());
            running.iter().for_each(|job| jobs[*job].running = false);
            for &at in &selected {
                owed[at] = jobs[at].cost;
                jobs[at].running = true;
                jobs[at].starts += 1;
                jobs[at].start.get_or_insert(now);
            }
            running = selected;
            queues.running_first(jobs);
        }
        if running.is_empty() {
            let Some(next) = jobs.get(arrived) else { return };
            // Empty rounds are skipped.
            number = number.max((next.submit / round).ceil() as u64);
            if number as f64 * round > now {
                continue;
            }
        }
        for &at in &running {
            let job = &mut jobs[at];
            let paid = owed[at].min(round);
            owed[at] -= paid;
            let works = round - paid;
            job.ran += round;
            if job.left <= works {
                job.end = Some(now + paid + job.left);
                job.running = false;
            } else {
                job.left -= works;
            }
        }
        number += 1;
    }
}
