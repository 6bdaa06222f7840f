//! The program over kinds: rows of time, capacity and required rates, and the bound from its dual values.

use plimsoll_base::error::Result;

use super::super::dense::Dense;
use super::super::divide_by_excess;
use super::super::interior::{Form as _, follow, not_converged, start};
use super::super::sparse::Sparse;
use super::{Cut, KindProgram, Relaxation};

/// The relative gap of the first solutions. They only find rows.
pub(super) const LOOSE: f64 = 1e-3;
/// The largest accepted error of a solution. The certificate decides about the result.
const ACCEPTED: f64 = 1e-6;

/// Returns the rows of each kind for all its jobs and for its job with the largest slope.
pub(super) fn first_cuts(program: &KindProgram) -> Vec<Cut> {
    let mut cuts = Vec::new();
    for (kind, needs) in program.kinds.iter().enumerate() {
        let (base, slope) = needs.iter().fold((0.0, 0.0), |(b, s), need| (b + need.base, s + need.slope));
        cuts.push(Cut { kind, theta: 0.0, jobs: needs.len() as f64, base, slope });
        let fastest = fastest(program, kind);
        if let Some(need) = needs.iter().max_by(|a, b| a.slope.total_cmp(&b.slope)).filter(|need| need.slope > 0.0) {
            cuts.push(Cut { kind, theta: fastest, jobs: 1.0, base: need.base, slope: need.slope });
        }
    }
    cuts.retain(|cut| cut.base > 0.0 || cut.slope > 0.0);
    cuts
}

/// Returns the largest rate of a kind.
fn fastest(program: &KindProgram, kind: usize) -> f64 {
    let sides = program.columns.iter().flat_map(super::KindColumn::sides);
    sides.filter(|side| side.0 == kind).map(|side| side.1).fold(0.0, f64::max)
}

/// Solves the program with the rows `cuts`. Errors: a solution with an error above the accepted one.
pub(super) fn solve(program: &KindProgram, cuts: &[Cut], least_gap: f64) -> Result<Relaxation> {
    let (k, n, m) = (program.kinds.len(), program.capacity.len(), program.columns.len());
    let scale: Vec<f64> = (0..k).map(|kind| fastest(program, kind)).collect();
    let steepest = cuts.iter().map(|cut| cut.slope / (scale[cut.kind] * cut.jobs)).fold(0.0, f64::max);
    let unit = if steepest > 0.0 { 1.0 / steepest } else { 1.0 };
    let mut of_kind: Vec<Vec<usize>> = vec![Vec::new(); k];
    cuts.iter().enumerate().for_each(|(at, cut)| of_kind[cut.kind].push(at));

    let mut form =
        Sparse { columns: Vec::with_capacity(m + 1), sign: vec![1.0; k + n], limits: k + n, level: program.level };
    form.sign.resize(k + n + cuts.len(), -1.0);
    for column in &program.columns {
        let mut entries = Vec::new();
        for (kind, rate, times) in column.sides() {
            entries.push((kind as u32, times / program.kinds[kind].len() as f64));
            for &at in &of_kind[kind] {
                let cut = &cuts[at];
                if rate > cut.theta {
                    let value = times * (rate - cut.theta) / (scale[kind] * cut.jobs);
                    entries.push(((k + n + at) as u32, value));
                }
            }
        }
        let j = column.worker_type as usize;
        entries.push(((k + j) as u32, column.width / program.capacity[j]));
        form.columns.push(entries);
    }
    let mut bound = vec![1.0; k + n];
    bound.extend(cuts.iter().map(|cut| (cut.base - cut.theta * cut.jobs) / (scale[cut.kind] * cut.jobs)));
    if program.level {
        let slope = |(at, cut): (usize, &Cut)| {
            let value = -cut.slope / (scale[cut.kind] * cut.jobs) * unit;
            (value < 0.0).then_some(((k + n + at) as u32, value))
        };
        form.columns.push(cuts.iter().enumerate().filter_map(slope).collect());
    }
    let all = form.variables();
    let mut cost = vec![0.0; all];
    if program.level {
        cost[m] = -1.0;
    }
    let from = start(&form, &bound);
    let point = follow(&form, (&cost, &vec![1.0; all], &bound), from, least_gap, &mut Dense::default())?;
    if point.error > ACCEPTED.max(10.0 * least_gap) {
        return Err(not_converged(&format!("relative error {:.1e} of the program over kinds", point.error)));
    }
    let mut x: Vec<f64> = point.x[..m].iter().map(|x| x.max(0.0)).collect();
    make_feasible(program, &mut x);
    let level = if program.level { point.x[m] * unit } else { 0.0 };
    let dual_bound = if program.level { dual_bound(program, &form, &bound, &point.y) * unit } else { 0.0 };
    Ok(Relaxation { x, level, dual_bound })
}

/// Divides the times by the largest excess over the time of a kind or the capacity of a type.
fn make_feasible(program: &KindProgram, x: &mut [f64]) {
    let (mut time, mut used) = (vec![0.0; program.kinds.len()], vec![0.0; program.capacity.len()]);
    for (column, x) in program.columns.iter().zip(&*x) {
        column.sides().for_each(|(kind, _, times)| time[kind] += times * x);
        used[column.worker_type as usize] += column.width * x;
    }
    let of_kinds = time.iter().zip(&program.kinds).map(|(time, jobs)| time / jobs.len() as f64);
    divide_by_excess(x, &used, &program.capacity, of_kinds);
}

/// Returns the bound on the scaled level by weak duality. Dual values of the wrong sign are cut to 0, and the prices of time are increased
/// until no column has a positive profit.
fn dual_bound(program: &KindProgram, form: &Sparse, bound: &[f64], y: &[f64]) -> f64 {
    let (k, n, m) = (program.kinds.len(), program.capacity.len(), program.columns.len());
    let mut price: Vec<f64> = y.iter().zip(&form.sign).map(|(y, sign)| (-sign * y).max(0.0)).collect();
    let norm: f64 = form.columns[m].iter().map(|&(row, value)| -value * price[row as usize]).sum();
    if norm <= 0.0 {
        return f64::INFINITY;
    }
    let mut raise = vec![0.0f64; k];
    for (column, entries) in program.columns.iter().zip(&form.columns) {
        // The rows of time and capacity cost, the rows of required rates earn.
        let profit: f64 =
            entries.iter().map(|&(row, value)| -form.sign[row as usize] * value * price[row as usize]).sum();
        if profit > 0.0 {
            let sides = column.sides().count() as f64;
            for (kind, _, times) in column.sides() {
                raise[kind] = raise[kind].max(profit / sides * program.kinds[kind].len() as f64 / times);
            }
        }
    }
    price.iter_mut().zip(raise).for_each(|(price, raise)| *price += raise);
    let limits: f64 = price[..k + n].iter().sum();
    let rates: f64 = price[k + n..].iter().zip(&bound[k + n..]).map(|(price, bound)| price * bound).sum();
    (limits - rates) / norm
}
