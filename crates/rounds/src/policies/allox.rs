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
    let assigned = assign(times, free, MOST_MOVES);
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

/// A smaller relative gain of a path is rounding.
const GAIN: f64 = 1e-9;
/// A cheaper move within this relative distance is a tie: the job that was added to the slot first moves.
const TIE: f64 = 1e-12;
/// Slots of up to this number of jobs have no cache of moves.
const SMALL: u32 = 16;
/// The largest number of stored moves, 64 MB. Their number grows with the square of that of slots: 100,000 jobs on three types of 17 free
/// accelerators would have 300 million. Above it no move is stored.
const MOST_MOVES: usize = 4_000_000;
/// The job of a move that is not known.
const UNKNOWN: u32 = u32::MAX;

/// The cheapest moves between slots, by first and second slot.
struct Moves<'a> {
    times: &'a [Vec<f64>],
    slots: &'a [(usize, u32)],
    /// The change of cost and the job; [`UNKNOWN`] until it is requested.
    cheapest: Vec<(f64, u32)>,
    /// The position of each slot in `cheapest`, [`UNKNOWN`] for slots without stored moves.
    row: Vec<u32>,
}

impl Moves<'_> {
    fn cost(&self, job: usize, slot: usize) -> f64 {
        self.times[job][self.slots[slot].0] * f64::from(self.slots[slot].1)
    }

    fn row(&mut self, slot: usize) -> Option<&mut [(f64, u32)]> {
        let k = self.slots.len();
        let row = self.row[slot];
        (row != UNKNOWN).then(|| &mut self.cheapest[row as usize * k..][..k])
    }

    /// Returns the job of slot `a` that moves to slot `b` at the least cost.
    fn cheapest(&mut self, a: usize, b: usize, members: &[usize]) -> usize {
        let at = self.row[a] as usize * self.slots.len() + b;
        if self.cheapest[at].1 == UNKNOWN {
            let mut best = (f64::INFINITY, UNKNOWN);
            for &job in members {
                let change = self.cost(job, b) - self.cost(job, a);
                if is_cheaper(change, best.0) {
                    best = (change, job as u32);
                }
            }
            self.cheapest[at] = best;
        }
        self.cheapest[at].1 as usize
    }

    fn add(&mut self, slot: usize, job: usize) {
        let (time, position) = (&self.times[job], self.slots[slot]);
        let own = time[position.0] * f64::from(position.1);
        let slots = self.slots;
        let Some(row) = self.row(slot) else { return };
        for (best, to) in row.iter_mut().zip(slots).filter(|(best, _)| best.1 != UNKNOWN) {
            let change = time[to.0] * f64::from(to.1) - own;
            if is_cheaper(change, best.0) {
                *best = (change, job as u32);
            }
        }
    }

    fn remove(&mut self, slot: usize, job: usize) {
        let Some(row) = self.row(slot) else { return };
        row.iter_mut().filter(|best| best.1 == job as u32).for_each(|best| best.1 = UNKNOWN);
    }
}

fn is_cheaper(change: f64, best: f64) -> bool {
    best == f64::INFINITY || change < best - TIE * best.abs().max(1.0)
}

/// Returns the (type, position from the end) of each job with the least total cost.
///
/// Jobs are added one by one along a shortest path over slots (Bellman and Ford). The length of a step from slot `a` to `b` is that of the
/// cheapest move of a job of `a`, which is stored between jobs. Slots beyond the first empty one of a type are longer than that one and have
/// no steps, so they are not visited. More than `most_moves` moves are not stored. `tests::assign_by_jobs` is the reference implementation.
fn assign(times: &[Vec<f64>], free: &[u32], most_moves: usize) -> Vec<(usize, u32)> {
    let mut slots: Vec<(usize, u32)> = Vec::new();
    let mut first_slot = Vec::new();
    for (j, &count) in free.iter().enumerate() {
        let positions = if count == 0 { 0 } else { times.len().div_ceil(count as usize) as u32 };
        first_slot.push(slots.len());
        slots.extend((1..=positions).map(|q| (j, q)));
    }
    first_slot.push(slots.len());
    let k = slots.len();
    if k == 0 {
        return Vec::new();
    }
    let mut rows = 0;
    let number = |slot: &(usize, u32)| {
        let is_large = free[slot.0] > SMALL;
        rows += usize::from(is_large);
        if is_large { rows as u32 - 1 } else { UNKNOWN }
    };
    let mut row: Vec<u32> = slots.iter().map(number).collect();
    if rows.saturating_mul(k) > most_moves {
        rows = 0;
        row.fill(UNKNOWN);
    }
    let mut moves = Moves { times, slots: &slots, cheapest: vec![(0.0, UNKNOWN); rows * k], row };
    let mut members: Vec<Vec<usize>> = vec![Vec::new(); k];
    let (mut distance, mut from) = (vec![0.0; k], vec![None; k]);
    // Whether the distance of a slot decreased after its steps were visited.
    let mut shorter = vec![false; k];
    let mut open: Vec<usize> = Vec::new();
    for job in 0..times.len() {
        // The slots up to the first empty one of each type.
        open.clear();
        for own in first_slot.windows(2) {
            let used = members[own[0]..own[1]].partition_point(|members| !members.is_empty());
            open.extend(own[0]..(own[0] + used + 1).min(own[1]));
        }
        for &slot in &open {
            (distance[slot], from[slot]) = (moves.cost(job, slot), None);
            shorter[slot] = !members[slot].is_empty();
        }
        let mut changed = true;
        while std::mem::take(&mut changed) {
            for &a in &open {
                if !std::mem::take(&mut shorter[a]) {
                    continue;
                }
                let start = distance[a];
                let mut visit = |b: usize, through: f64, moved: usize| {
                    if b != a && through < distance[b] - GAIN * distance[b].abs().max(1.0) {
                        (distance[b], from[b], changed) = (through, Some((a, moved)), true);
                        shorter[b] = !members[b].is_empty();
                    }
                };
                if moves.row[a] == UNKNOWN {
                    for &moved in &members[a] {
                        let own = moves.cost(moved, a);
                        open.iter().for_each(|&b| visit(b, start + moves.cost(moved, b) - own, moved));
                    }
                } else {
                    for &b in open.iter().filter(|&&b| b != a) {
                        let moved = moves.cheapest(a, b, &members[a]);
                        visit(b, start + moves.cost(moved, b) - moves.cost(moved, a), moved);
                    }
                }
            }
        }
        let room = |slot: &&usize| members[**slot].len() < free[slots[**slot].0] as usize;
        let end = open.iter().filter(room).min_by(|&&a, &&b| distance[a].total_cmp(&distance[b]));
        let Some(&(mut slot)) = end else { break };
        while let Some((before, moved)) = from[slot] {
            members[slot].push(moved);
            moves.add(slot, moved);
            members[before].retain(|&member| member != moved);
            moves.remove(before, moved);
            slot = before;
        }
        members[slot].push(job);
        moves.add(slot, job);
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

    /// The reference implementation of [`assign`]: each step visits all jobs of a slot.
    fn assign_by_jobs(times: &[Vec<f64>], free: &[u32]) -> Vec<(usize, u32)> {
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

    /// E12 of the reference: a runs 1, 2, 0 and b runs 3; the least total is 380.
    #[test]
    fn the_matching_of_four_jobs() {
        let times = [vec![100.0, 230.0], vec![40.0, 70.0], vec![50.0, 300.0], vec![90.0, 60.0]];
        assert_eq!(assign(&times, &[1, 1], MOST_MOVES), [(0, 1), (0, 3), (0, 2), (1, 1)]);
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
            assert_eq!(total(&assign(&times, &free, MOST_MOVES)), best, "{times:?} {free:?}");
        }
    }

    /// The assignment is that of the reference implementation, also with ties (small whole times and jobs of one kind) and
    /// without stored moves.
    #[test]
    fn assignments_are_those_of_the_reference() {
        let mut random = crate::random::PythonRandom::new(40);
        for number in 0..400 {
            let types = 1 + random.below(3);
            let most = [3, 8, 40][number % 3];
            let mut free: Vec<u32> = (0..types).map(|_| 1 + random.below(most) as u32).collect();
            if types > 1 && number % 5 == 0 {
                free[random.below(types)] = 0;
            }
            let jobs = 1 + random.below(150);
            let kinds: Vec<Vec<f64>> = (0..4).map(|_| (0..types).map(|_| 0.5 + random.unit()).collect()).collect();
            let time = |random: &mut crate::random::PythonRandom| -> Vec<f64> {
                match number % 4 {
                    0 => (0..types).map(|_| (1 + random.below(6)) as f64).collect(),
                    1 => (0..types).map(|_| 1e4 * random.unit() + 1.0).collect(),
                    // Jobs of few kinds with distinct work, and with equal work.
                    2 => {
                        let (work, kind) = (1e5 * random.unit() + 100.0, random.below(4));
                        kinds[kind].iter().map(|part| work / part).collect()
                    }
                    _ => {
                        let (work, kind) = (1e3 * (1 + random.below(3)) as f64, random.below(4));
                        kinds[kind].iter().map(|part| work / part).collect()
                    }
                }
            };
            let times: Vec<Vec<f64>> = (0..jobs).map(|_| time(&mut random)).collect();
            let expected = assign_by_jobs(&times, &free);
            for most in [MOST_MOVES, 0] {
                let assigned = assign(&times, &free, most);
                assert_eq!(assigned, expected, "instance {number}: {jobs} jobs, {free:?}, {most} moves");
            }
        }
    }
}
