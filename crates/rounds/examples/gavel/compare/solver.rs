//! Times of single allocations.

use std::io::Write;
use std::time::Instant;

use plimsoll_base::units::Time;
use plimsoll_rounds::lp::{Column, ColumnMember, JobClass, Need, Program, certify, solve};
use plimsoll_rounds::policies::{ActiveJob, POLICIES, PolicyOptions, View, max_min};
use plimsoll_rounds::random::PythonRandom;
use plimsoll_rounds::table::{PairRate, Rate, Rates};

use super::Filter;

/// Writes the time, the iterations and the duality gap of max-min programs of distinct jobs on three types, then the times of policies.
pub fn solver(filter: &Filter, out: &mut impl Write) -> Result<(), Box<dyn std::error::Error>> {
    if filter.value("policy").is_some() {
        return policies(filter, out);
    }
    for jobs in [20, 60, 150, 1_000, 10_000] {
        let mut random = PythonRandom::new(47);
        let part = f64::from((jobs / 3).max(1));
        let mut program = Program { capacity: vec![part * 0.6; 3], level: true, ..Program::default() };
        for class in 0..jobs as u32 {
            let base = 0.1 + 50.0 * random.unit();
            let rates = [1.0, 0.2 + random.unit(), 0.1 + 0.3 * random.unit()].map(|part| base * part);
            let slope = rates.iter().sum::<f64>() / 3.0;
            program.classes.push(JobClass { count: 1.0, need: Some(Need { base: 0.0, slope }) });
            for (j, &rate) in rates.iter().enumerate() {
                let first = ColumnMember { class, times: 1.0, rate };
                let column = Column { worker_type: j as u32, copies: 1.0, width: 1.0, value: 0.0, first, second: None };
                program.columns.push(column);
            }
        }
        let repeat = (20_000 / jobs).max(3);
        let begin = Instant::now();
        let mut solution = solve(&program)?;
        for _ in 1..repeat {
            solution = solve(&program)?;
        }
        let time = begin.elapsed().as_secs_f64() * 1e3 / f64::from(repeat);
        let gap = certify(&program, &solution.x, &solution.type_price).relative();
        writeln!(
            out,
            "solver: {jobs} jobs x 3 types: {time:.3} ms, {} iterations, gap {gap:.1e}",
            solution.iterations
        )?;
    }
    for count in [500usize, 2_000] {
        let kinds = 26;
        let mut random = PythonRandom::new(1);
        let rows: Vec<Vec<f64>> = (0..kinds).map(|_| (0..3).map(|_| 1.0 + random.unit()).collect()).collect();
        let rows: Vec<&[f64]> = rows.iter().map(Vec::as_slice).collect();
        let rates = Rates::from_rows(&rows)?;
        let job = |id: usize| ActiveJob {
            id: id as u32,
            kind: (id % kinds) as u32,
            scale: 1,
            weight: 1,
            entity: 0,
            arrival: Time(0),
            remaining: 1_000_000,
            done: 0,
            deadline: None,
        };
        let jobs: Vec<ActiveJob> = (0..count).map(job).collect();
        let capacity = [count as u32 / 4; 3];
        let view = View { now: Time(0), jobs: &jobs, rates: &rates, capacity: &capacity };
        let begin = Instant::now();
        let solved = max_min(&view, true, false)?;
        let time = begin.elapsed().as_secs_f64() * 1e3;
        writeln!(out, "solver: {count} jobs of 26 kinds: {time:.3} ms, level {:.6}", solved.level)?;
    }
    policies(filter, out)
}

/// Writes the time of each policy's fractions for jobs with distinct weights and work on three types. Each job has its own rates, or, under
/// policies with space sharing, those of one of 26 kinds.
fn policies(filter: &Filter, out: &mut impl Write) -> Result<(), Box<dyn std::error::Error>> {
    let size = filter.value("jobs").and_then(|jobs| jobs.parse::<usize>().ok());
    for row in POLICIES.iter().filter(|row| filter.value("policy").is_none_or(|name| name == row.name)) {
        for count in [100, 300, 1_000, 10_000] {
            if size.is_some_and(|size| size != count) {
                continue;
            }
            let kinds = if row.packing { 26 } else { count };
            // One worker type for the policy that has no other.
            let types = if row.name == "shockwave" { 1 } else { 3 };
            let mut random = PythonRandom::new(47);
            let rows: Vec<Vec<f64>> = (0..kinds)
                .map(|_| {
                    let base = 0.1 + 50.0 * random.unit();
                    let parts = [1.0, 0.2 + random.unit(), 0.1 + 0.3 * random.unit()];
                    parts[..types].iter().map(|part| base * part).collect()
                })
                .collect();
            let borrowed: Vec<&[f64]> = rows.iter().map(Vec::as_slice).collect();
            let mut rates = Rates::from_rows(&borrowed)?;
            if row.packing {
                let rate = |value: f64| Rate::new(value).unwrap_or_default();
                for a in 0..kinds {
                    for b in 0..=a {
                        for j in 0..types {
                            let part = 0.45 + 0.5 * random.unit();
                            let pair = PairRate { first: rate(rows[a][j] * part), second: rate(rows[b][j] * part) };
                            rates.set_pair(a, b, j, pair);
                        }
                    }
                }
            }
            let job = |id: usize| ActiveJob {
                id: id as u32,
                kind: (id % kinds) as u32,
                scale: 1,
                weight: 1 + (id as u32 * 7_919) % 10_007,
                entity: (id % 20) as u32,
                arrival: Time(0),
                remaining: 1_000_000 * (1_000 + (id as u64 * 7_919) % 100_000),
                done: 0,
                deadline: None,
            };
            let jobs: Vec<ActiveJob> = (0..count).map(job).collect();
            let capacity = vec![(count / 5) as u32; types];
            let view = View { now: Time(3_600_000_000), jobs: &jobs, rates: &rates, capacity: &capacity };
            let mut policy = (row.create)(&PolicyOptions::default());
            let begin = Instant::now();
            let solved = policy.targets(&view).map(|targets| targets.alone.iter().filter(|&&x| x > 0).count());
            let time = begin.elapsed().as_secs_f64() * 1e3;
            match solved {
                Ok(positive) => writeln!(out, "policy {}: {count} jobs: {time:.1} ms, {positive} fractions", row.name)?,
                Err(error) => writeln!(out, "policy {}: {count} jobs: {time:.1} ms, {error}", row.name)?,
            }
            out.flush()?;
        }
    }
    Ok(())
}
