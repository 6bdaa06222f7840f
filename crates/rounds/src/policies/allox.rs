//! AlloX (EuroSys 2020) as modelled by Gavel: the assignment of jobs to positions on accelerators with the least total completion time.
//!
//! A job keeps a complete allocation. The other jobs, in order of arrival, are matched to positions `q` (from the end) of free accelerators
//! at cost `q p_ij`, `p_ij = N_i / T_ij`. Free accelerators of a type are alike, so the matching is a transportation problem over (type,
//! position) with the number of free accelerators as capacity; successive shortest paths solve it. Position `q` of a type is used only if
//! all positions below are full, so at most `jobs / free + 1` positions per type are needed. The first job of each accelerator runs: all jobs
//! of the highest position, and of each lower position as many as accelerators end there, lowest ids first.

use plimsoll_base::error::Result;

use super::fractions::check_rates;
use super::{Policy, PolicyOptions, PolicyRow, View};
use crate::mechanism::{Targets, WHOLE};

/// AlloX.
pub(super) const ALLOX: PolicyRow = PolicyRow {
    name: "allox",
    title: "AlloX: least mean completion time by matching",
    source: "AlloX, EuroSys 2020; Gavel, OSDI 2020",
    packing: false,
    listed_order: true,
    skip_zero: false,
    create: |options: &PolicyOptions| {
        Box::new(AlloX { share_milli: options.allox_share_milli, running: std::collections::BTreeMap::new() })
    },
};

struct AlloX {
    share_milli: u32,
    /// The types of jobs with a complete allocation, by id.
    running: std::collections::BTreeMap<u32, usize>,
}

impl Policy for AlloX {
    fn targets(&mut self, view: &View<'_>) -> Result<Targets> {
        check_rates(view)?;
        let n = view.capacity.len();
        self.running.retain(|id, _| view.jobs.binary_search_by_key(id, |job| job.id).is_ok());
        let mut free = view.capacity.to_vec();
        self.running.values().for_each(|&j| free[j] = free[j].saturating_sub(1));
        let waiting: Vec<usize> =
            (0..view.jobs.len()).filter(|&at| !self.running.contains_key(&view.jobs[at].id)).collect();
        let all_free: u32 = free.iter().sum();
        let part = (waiting.len() * self.share_milli as usize / 1000).max(all_free as usize).min(waiting.len());
        let times: Vec<Vec<f64>> = waiting[..part]
            .iter()
            .map(|&at| (0..n).map(|j| view.jobs[at].iterations() / view.rate(at, j).max(1e-10)).collect())
            .collect();
        let mut targets = Targets::zero(view.jobs.len(), n);
        for (position, j) in first_jobs(&times, &free) {
            let job = &view.jobs[waiting[position]];
            // A wide job receives 1 / scale, so its allocation is never complete and it is matched again (Shockwave).
            targets.alone[waiting[position] * n + j] = WHOLE / job.scale;
            if job.scale == 1 {
                self.running.insert(job.id, j);
            }
        }
        for (at, job) in view.jobs.iter().enumerate() {
            if let Some(&j) = self.running.get(&job.id) {
                targets.alone[at * n + j] = WHOLE;
            }
        }
        Ok(targets)
    }
}

/// Returns the jobs that run first, with their types: `times[i][j]` is the time of job `i` on type `j`, `free` the accelerators.
fn first_jobs(times: &[Vec<f64>], free: &[u32]) -> Vec<(usize, usize)> {
    let assigned = assign(times, free);
    let mut first = Vec::new();
    for j in 0..free.len() {
        let highest = assigned.iter().filter(|(of, _)| *of == j).map(|(_, q)| *q).max().unwrap_or(0);
        let assigned = &assigned;
        let at = |q: u32| (0..assigned.len()).filter(move |&i| assigned[i] == (j, q));
        let mut used = 0;
        for q in (1..=highest).rev() {
            let count = at(q).count();
            first.extend(at(q).take(count - used).map(|i| (i, j)));
            used = used.max(count);
        }
    }
    first
}

/// Returns the (type, position from the end) of each job with the least total cost.
fn assign(times: &[Vec<f64>], free: &[u32]) -> Vec<(usize, u32)> {
    let mut slots: Vec<(usize, u32)> = Vec::new();
    for (j, &count) in free.iter().enumerate() {
        let positions = if count == 0 { 0 } else { times.len().div_ceil(count as usize) as u32 };
        slots.extend((1..=positions).map(|q| (j, q)));
    }
    let cost = |i: usize, slot: usize| times[i][slots[slot].0] * f64::from(slots[slot].1);
    let mut members: Vec<Vec<usize>> = vec![Vec::new(); slots.len()];
    if slots.is_empty() {
        return Vec::new();
    }
    for job in 0..times.len() {
        // Bellman-Ford over the slots: the cost of moving one job from slot a to slot b is the least over the members of a.
        let mut distance: Vec<f64> = (0..slots.len()).map(|slot| cost(job, slot)).collect();
        let mut from: Vec<Option<(usize, usize)>> = vec![None; slots.len()];
        let mut changed = true;
        while changed {
            changed = false;
            for a in 0..slots.len() {
                for at in 0..members[a].len() {
                    let moved = members[a][at];
                    for b in 0..slots.len() {
                        let through = distance[a] + cost(moved, b) - cost(moved, a);
                        if b != a && through < distance[b] - 1e-9 * distance[b].abs().max(1.0) {
                            (distance[b], from[b], changed) = (through, Some((a, moved)), true);
                        }
                    }
                }
            }
        }
        let room = |slot: &usize| members[*slot].len() < free[slots[*slot].0] as usize;
        let end = (0..slots.len()).filter(room).min_by(|&a, &b| distance[a].total_cmp(&distance[b]));
        let Some(mut slot) = end else { break };
        while let Some((before, moved)) = from[slot] {
            members[slot].push(moved);
            members[before].retain(|&member| member != moved);
            slot = before;
        }
        members[slot].push(job);
    }
    let mut assigned = vec![(usize::MAX, 0); times.len()];
    for (slot, members) in members.iter().enumerate() {
        members.iter().for_each(|&job| assigned[job] = slots[slot]);
    }
    assigned
}

#[cfg(test)]
mod tests {
    use super::*;

    /// E12 of the reference: a runs 1, 2, 0 and b runs 3; the least total is 380.
    #[test]
    fn the_matching_of_four_jobs() {
        let times = [vec![100.0, 230.0], vec![40.0, 70.0], vec![50.0, 300.0], vec![90.0, 60.0]];
        assert_eq!(assign(&times, &[1, 1]), [(0, 1), (0, 3), (0, 2), (1, 1)]);
        assert_eq!(first_jobs(&times, &[1, 1]), [(1, 0), (3, 1)]);
    }

    /// The matching has the least cost of all matchings, for random times on up to three types.
    #[test]
    fn the_matching_is_the_best_of_all() {
        let mut random = crate::random::PythonRandom::new(3);
        for _ in 0..300 {
            let (jobs, types) = (1 + random.below(5), 1 + random.below(3));
            let free: Vec<u32> = (0..types).map(|_| 1 + random.below(2) as u32).collect();
            let times: Vec<Vec<f64>> =
                (0..jobs).map(|_| (0..types).map(|_| (1 + random.below(20)) as f64).collect()).collect();
            let total = |assigned: &[(usize, u32)]| -> f64 {
                assigned.iter().enumerate().map(|(i, (j, q))| times[i][*j] * f64::from(*q)).sum()
            };
            let mut best = f64::INFINITY;
            let choices = types.pow(jobs as u32);
            for code in 0..choices {
                // For a choice of types the best positions are by shortest time, spread over the accelerators.
                let mut cost = 0.0;
                for j in 0..types {
                    let of = |i: &usize| (code / types.pow(*i as u32)) % types == j;
                    let mut own: Vec<f64> = (0..jobs).filter(of).map(|i| times[i][j]).collect();
                    own.sort_by(|a, b| b.total_cmp(a));
                    cost += own.iter().enumerate().map(|(at, t)| t * (at / free[j] as usize + 1) as f64).sum::<f64>();
                }
                best = best.min(cost);
            }
            assert_eq!(total(&assign(&times, &free)), best, "{times:?} {free:?}");
        }
    }
}
