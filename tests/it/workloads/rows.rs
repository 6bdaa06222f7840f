//! Random machines and rows with frequent corner cases: ties, zero durations, zero demands, tight capacity, stages, priorities.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::{chance, pick};
use crate::slow::Row;

/// Draws one to six machines in one to three groups. In 30 % of the cases the capacities are arbitrary numbers.
pub fn draw_groups(rng: &mut ChaCha8Rng, dims: usize) -> Vec<(u64, Vec<u64>)> {
    let odd = chance(rng, 30);
    let count = rng.random_range(1..=3);
    let mut groups: Vec<(u64, Vec<u64>)> = Vec::new();
    for _ in 0..count {
        let cpu = if odd { rng.random_range(700..4100) } else { pick(rng, &[1000, 2000, 4000]) };
        let memory = if odd { rng.random_range(500..4100) } else { pick(rng, &[512, 1024, 4096]) };
        let gpu = pick(rng, &[0, 1000, 2000]);
        groups.push((rng.random_range(1..=2), [cpu, memory, gpu][..dims].to_vec()));
    }
    if dims == 3 && groups.iter().all(|(_, capacity)| capacity[2] == 0) {
        groups[0].1[2] = 1000;
    }
    groups
}

fn draw_demand(rng: &mut ChaCha8Rng, dims: usize, groups: &[(u64, Vec<u64>)]) -> Vec<u64> {
    let cpu = pick(rng, &[0, 250, 500, 500, 1000, 1000, 333, 1500]);
    let memory = pick(rng, &[0, 128, 256, 256, 512, 512, 777, 1]);
    let gpu = pick(rng, &[0, 0, 0, 500, 1000]);
    let mut demand = [cpu, memory, gpu][..dims].to_vec();
    // In 5 % of the cases the demand is a whole machine, sometimes with one more unit of CPU.
    if chance(rng, 5) {
        demand = pick(rng, &groups.iter().map(|(_, capacity)| capacity.as_slice()).collect::<Vec<_>>()).to_vec();
        demand[0] += u64::from(chance(rng, 30));
    }
    demand
}

/// Draws at most about 60 rows in order of submission: jobs of one row, of maps and reduces, or of a diamond.
pub fn draw_rows(rng: &mut ChaCha8Rng, users: usize, dims: usize, groups: &[(u64, Vec<u64>)]) -> Vec<Row> {
    let unit = pick(rng, &[1, 1000, 10_000_000]);
    let steps: &[u64] = pick(rng, &[&[0, 0, 0, 1, 5, 10][..], &[0, 1, 2, 3, 50], &[0], &[5, 10]]);
    let durations: &[u64] = pick(rng, &[&[0, 1, 5, 10, 10, 20][..], &[10], &[0, 0, 0, 10], &[3, 7, 11, 40]]);
    let sizes: &[u64] = pick(rng, &[&[1, 1, 1, 2, 5][..], &[1], &[4, 9, 15]]);
    let palette: Vec<Vec<u64>> = (0..rng.random_range(1..=8)).map(|_| draw_demand(rng, dims, groups)).collect();
    let priorities = chance(rng, 40);
    let wanted = rng.random_range(1..=60);
    let (mut rows, mut now) = (Vec::new(), 0);
    let mut job = 0;
    while rows.len() < wanted {
        now += pick(rng, steps) * unit;
        let user = rng.random_range(0..users);
        let shape = draw_shape(rng);
        let spread = chance(rng, 15);
        for (stage, after) in shape {
            // The rows of a job may have different submit times, but are consecutive in the trace.
            if spread {
                now += pick(rng, steps) * unit;
            }
            rows.push(Row {
                job,
                user,
                submit: now,
                duration: pick(rng, durations) * unit,
                tasks: pick(rng, sizes),
                demand: palette[rng.random_range(0..palette.len())].clone(),
                stage,
                after,
                priority: if priorities { rng.random_range(0..4) } else { 0 },
                ..Row::default()
            });
        }
        job += 1;
    }
    // Rows are gangs only if the empty cluster has room for them, since a larger gang is an error.
    if chance(rng, 40) {
        for row in &mut rows {
            let times = |capacity: &[u64]| {
                let wanted = row.demand.iter().zip(capacity).filter(|(need, _)| **need > 0);
                wanted.map(|(need, capacity)| capacity / need).min().unwrap_or(1000)
            };
            let room: u64 = groups.iter().map(|(count, capacity)| count * times(capacity)).sum();
            row.gang = chance(rng, 50) && row.tasks <= room;
        }
    }
    if chance(rng, 40) {
        interleave(rng, &mut rows);
    }
    rows
}

/// Draws the rows of a job: the stage of each row, and the stages that it depends on (of earlier rows only).
fn draw_shape(rng: &mut ChaCha8Rng) -> Vec<(Option<usize>, Vec<usize>)> {
    let (map, shuffle, reduce, collect) = (Some(0), Some(1), Some(2), Some(3));
    match rng.random_range(0..10) {
        0..5 => vec![(None, vec![])],
        5 => vec![(None, vec![]), (None, vec![]), (map, vec![])],
        6 => vec![(map, vec![]), (reduce, vec![0])],
        7 => vec![(map, vec![]), (map, vec![]), (reduce, vec![0]), (None, vec![0]), (None, vec![])],
        8 => vec![(map, vec![]), (shuffle, vec![0]), (reduce, vec![0]), (collect, vec![1, 2])],
        _ => vec![(map, vec![]), (reduce, vec![0]), (reduce, vec![0]), (None, vec![2])],
    }
}

/// Mixes the rows of different jobs that share a submit time; each job keeps the order of its own rows.
fn interleave(rng: &mut ChaCha8Rng, rows: &mut [Row]) {
    let flat =
        |rows: &[Row], at: usize| rows.iter().all(|row| row.job != rows[at].job || row.submit == rows[at].submit);
    let mut from = 0;
    while from < rows.len() {
        let mut to = from + 1;
        while to < rows.len() && rows[to].submit == rows[from].submit && flat(rows, from) && flat(rows, to) {
            to += 1;
        }
        let segment = rows[from..to].to_vec();
        let mut order: Vec<usize> = segment.iter().map(|row| row.job).collect();
        for i in (1..order.len()).rev() {
            order.swap(i, rng.random_range(0..=i));
        }
        for (at, job) in order.iter().enumerate() {
            let nth = order[..at].iter().filter(|other| *other == job).count();
            rows[from + at] = segment.iter().filter(|row| row.job == *job).nth(nth).expect("as many as before").clone();
        }
        from = to;
    }
}
