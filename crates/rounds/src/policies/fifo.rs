//! FIFO and shortest job first: fractions of 0 and 1.
//!
//! - `fifo`: a started job keeps its type. A freed type is given to the head of the queue if it fits. Then the head gets a type with room,
//!   until a job fits nowhere.
//! - `fifo_perf`: the same, computed from nothing each time; a job takes its fastest type with room (equal rates: the
//!   alphabetically first).
//! - `fifo_packed`: then the waiting jobs join running ones: the partner of equal scale with the largest sum of relative rates, if above 1.5.
//! - `sjf`: `fifo_perf` in order of the shortest remaining running time on the fastest type.
//!
//! The published `fifo` draws a type but uses the alphabetically last listed one; when that becomes full, the drawn one leaves the list. If
//! another type left, all later jobs of the call are assigned to the full type and share it by priority ([`FifoType::Published`]). A job
//! with a rate of 0 on the type is passed over, after the draw.
//!
//! Source: Gavel's `fifo.py`. SJF is in no repository; it is defined here.

use std::collections::BTreeMap;

use plimsoll_base::error::Result;

use super::fractions::check_rates;
use super::{FifoType, Policy, PolicyOptions, PolicyRow, View};
use crate::mechanism::{Targets, WHOLE};
use crate::random::PythonRandom;

/// The smallest sum of relative rates of a pair.
const PAIR_ABOVE: f64 = 1.5;

/// FIFO without awareness.
pub(super) const AGNOSTIC: PolicyRow = PolicyRow {
    name: "fifo",
    title: "First in, first out",
    source: "Gavel, OSDI 2020, 4.2",
    packing: false,
    listed_order: false,
    skip_zero: true,
    create: |options: &PolicyOptions| {
        let random = PythonRandom::new(options.seed);
        Box::new(Fifo { choice: options.fifo_type, random, running: BTreeMap::new() })
    },
};
/// FIFO on the fastest type with room.
pub(super) const AWARE: PolicyRow = PolicyRow {
    name: "fifo_perf",
    title: "First in, first out, aware of types",
    listed_order: true,
    create: |_: &PolicyOptions| Box::new(Greedy { shortest_first: false, packing: false }),
    ..AGNOSTIC
};
/// FIFO with pairs.
pub(super) const PACKED: PolicyRow = PolicyRow {
    name: "fifo_packed",
    title: "First in, first out, aware of types, with space sharing",
    packing: true,
    listed_order: true,
    create: |_: &PolicyOptions| Box::new(Greedy { shortest_first: false, packing: true }),
    ..AGNOSTIC
};
/// Shortest job first.
pub(super) const SJF: PolicyRow = PolicyRow {
    name: "sjf",
    title: "Shortest job first, aware of types",
    source: "Plimsoll; named in Gavel, OSDI 2020, 4.2",
    listed_order: true,
    create: |_: &PolicyOptions| Box::new(Greedy { shortest_first: true, packing: false }),
    ..AGNOSTIC
};

struct Fifo {
    choice: FifoType,
    random: PythonRandom,
    /// The types of running jobs by id.
    running: BTreeMap<u32, usize>,
}

impl Policy for Fifo {
    fn targets(&mut self, view: &View<'_>) -> Result<Targets> {
        check_rates(view)?;
        let n = view.capacity.len();
        // Counts may become negative under the published rule.
        let mut free: Vec<i64> = view.capacity.iter().map(|&count| i64::from(count)).collect();
        let scale = |at: usize| i64::from(view.jobs[at].scale);
        let waiting: Vec<usize> =
            (0..view.jobs.len()).filter(|&at| !self.running.contains_key(&view.jobs[at].id)).collect();
        let mut waiting = waiting.into_iter().peekable();
        // In order of the ids: a running job occupies its type, the type of a completed one is given to the head of the queue.
        for (id, j) in std::mem::take(&mut self.running) {
            if let Ok(at) = view.jobs.binary_search_by_key(&id, |job| job.id) {
                free[j] -= scale(at);
                self.running.insert(id, j);
            } else if let Some(at) = waiting.next_if(|&at| scale(at) <= free[j] && view.rate(at, j) > 0.0) {
                free[j] -= scale(at);
                self.running.insert(view.jobs[at].id, j);
            }
        }
        // Worker types are listed in descending alphabetical order (v100, p100, k80).
        let mut listed: Vec<usize> = (0..n).rev().filter(|&j| free[j] > 0).collect();
        for at in waiting {
            // The published program draws among all types with room, including types where the job has a rate of 0.
            let published = self.choice == FifoType::Published;
            let fits = |j: usize| free[j] >= scale(at) && (published || view.rate(at, j) > 0.0);
            let room: Vec<usize> = (0..listed.len()).filter(|&position| fits(listed[position])).collect();
            let (Some(&last), Some(&most)) = (listed.last(), room.last()) else { break };
            let j = match self.choice {
                FifoType::Published => {
                    let drawn = room[self.random.below(room.len())];
                    if view.rate(at, last) == 0.0 {
                        continue;
                    }
                    if free[last] == scale(at) {
                        listed.remove(drawn);
                    }
                    last
                }
                FifoType::Last => listed[most],
                FifoType::Random => listed[room[self.random.below(room.len())]],
            };
            free[j] -= scale(at);
            self.running.insert(view.jobs[at].id, j);
        }
        let mut targets = Targets::zero(view.jobs.len(), n);
        for (at, job) in view.jobs.iter().enumerate() {
            if let Some(&j) = self.running.get(&job.id) {
                targets.alone[at * n + j] = WHOLE;
            }
        }
        Ok(targets)
    }
}

struct Greedy {
    shortest_first: bool,
    packing: bool,
}

impl Policy for Greedy {
    fn targets(&mut self, view: &View<'_>) -> Result<Targets> {
        check_rates(view)?;
        let (m, n) = (view.jobs.len(), view.capacity.len());
        let mut free = view.capacity.to_vec();
        let mut queue: Vec<usize> = (0..m).collect();
        if self.shortest_first {
            let fastest = |at: usize| (0..n).map(|j| view.rate(at, j)).fold(0.0, f64::max);
            queue.sort_by(|&a, &b| {
                let time = |at: usize| view.jobs[at].iterations() / fastest(at);
                time(a).total_cmp(&time(b)).then(a.cmp(&b))
            });
        }
        let mut targets = Targets::zero(m, n);
        let mut running: Vec<(usize, usize)> = Vec::new();
        let mut waiting = queue.into_iter().peekable();
        while let Some(&at) = waiting.peek() {
            let fits = |j: &usize| free[*j] >= view.jobs[at].scale;
            // Worker types are listed in descending alphabetical order: of equal rates the last listed is the alphabetically first.
            let best = (0..n).filter(fits).max_by(|&a, &b| view.rate(at, a).total_cmp(&view.rate(at, b)));
            let Some(j) = best else {
                // The published program takes the head off the queue before it looks for room, so that the head is not paired.
                if free.iter().any(|&free| free > 0) {
                    waiting.next();
                }
                break;
            };
            if view.rate(at, j) == 0.0 {
                // Room only on types where the job cannot run: it waits, and the next one is tried.
                waiting.next();
                continue;
            }
            free[j] -= view.jobs[at].scale;
            targets.alone[at * n + j] = WHOLE;
            running.push((at, j));
            waiting.next();
        }
        if self.packing {
            targets.pairs = vec![0; m * m.saturating_sub(1) / 2 * n];
            for at in waiting {
                let mut best: Option<(f64, usize)> = None;
                for (position, &(partner, j)) in running.iter().enumerate() {
                    let (a, b) = (&view.jobs[partner], &view.jobs[at]);
                    if a.scale != b.scale {
                        continue;
                    }
                    let Some(pair) = view.rates.pair(a.kind, b.kind, j) else { continue };
                    let alone = (view.rate(partner, j), view.rate(at, j));
                    let sum = pair.first.per_s / alone.0 + pair.second.per_s / alone.1;
                    if alone.1 > 0.0 && sum > best.map_or(PAIR_ABOVE, |(most, _)| most) {
                        best = Some((sum, position));
                    }
                }
                let Some((_, position)) = best else { break };
                let (partner, j) = running.remove(position);
                targets.alone[partner * n + j] = 0;
                let (a, b) = (partner.min(at), partner.max(at));
                targets.pairs[Targets::pair_index(a, b) * n + j] = WHOLE;
            }
        }
        Ok(targets)
    }
}
