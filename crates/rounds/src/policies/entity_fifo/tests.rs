//! Comparisons with the definition in exact fractions, and with the steps of water filling.

use num_bigint::BigInt;
use num_rational::BigRational as Exact;
use num_traits::{One, Signed, ToPrimitive, Zero};
use plimsoll_base::units::Time;

use super::*;
use crate::policies::water_filling::{Bottlenecks, Within, fill, water_fill};
use crate::policies::{ActiveJob, proportional_rates};
use crate::random::PythonRandom;
use crate::table::Rates;

fn exact(value: i64) -> Exact {
    Exact::from_integer(BigInt::from(value))
}

/// The rows `x_basic = b - sum a x_other` of the simplex method; the last row is the objective.
struct Dictionary {
    a: Vec<Vec<Exact>>,
    b: Vec<Exact>,
    basic: Vec<usize>,
    other: Vec<usize>,
}

impl Dictionary {
    fn pivot(&mut self, row: usize, column: usize) {
        let inverse = self.a[row][column].recip();
        std::mem::swap(&mut self.basic[row], &mut self.other[column]);
        self.a[row].iter_mut().for_each(|value| *value *= &inverse);
        self.b[row] *= &inverse;
        self.a[row][column] = inverse.clone();
        let (own, bound) = (self.a[row].clone(), self.b[row].clone());
        for at in (0..self.a.len()).filter(|&at| at != row) {
            let factor = std::mem::replace(&mut self.a[at][column], Exact::zero());
            if !factor.is_zero() {
                self.b[at] -= &factor * &bound;
                self.a[at].iter_mut().zip(&own).for_each(|(value, own)| *value -= &factor * own);
            }
        }
    }

    /// Maximises the last row by Bland's rule.
    fn maximise(&mut self) {
        let last = self.a.len() - 1;
        loop {
            let entering = (0..self.other.len()).filter(|&at| self.a[last][at].is_negative());
            let Some(column) = entering.min_by_key(|&at| self.other[at]) else { return };
            let rows = (0..last).filter(|&row| self.a[row][column].is_positive());
            let ratio = |row: usize| &self.b[row] / &self.a[row][column];
            let row = rows.min_by(|&p, &q| ratio(p).cmp(&ratio(q)).then(self.basic[p].cmp(&self.basic[q])));
            self.pivot(row.expect("a bounded program"), column);
        }
    }
}

/// Returns the maximum of `c x` subject to `a x <= b`, `x >= 0`, by the simplex method with an artificial variable; it is feasible and bounded.
fn maximum(a: &[Vec<Exact>], b: &[Exact], c: &[Exact]) -> Exact {
    let (rows, n) = (a.len(), c.len());
    let mut rows_a: Vec<Vec<Exact>> = a.to_vec();
    rows_a.iter_mut().for_each(|row| row.push(-Exact::one()));
    rows_a.push([vec![Exact::zero(); n], vec![Exact::one()]].concat());
    let mut bounds = b.to_vec();
    bounds.push(Exact::zero());
    let mut own = Dictionary {
        a: rows_a,
        b: bounds,
        basic: (n + 1..n + 1 + rows).chain([usize::MAX]).collect(),
        other: (0..=n).collect(),
    };
    let least = (0..rows).min_by(|&p, &q| b[p].cmp(&b[q])).expect("a row");
    if b[least].is_negative() {
        own.pivot(least, n);
        own.maximise();
        assert!(own.b[rows].is_zero(), "an infeasible program");
        if let Some(row) = (0..rows).find(|&row| own.basic[row] == n) {
            let column = (0..=n).find(|&at| !own.a[row][at].is_zero()).expect("a column");
            own.pivot(row, column);
        }
    }
    let artificial = own.other.iter().position(|&at| at == n).expect("the artificial variable");
    own.a.iter_mut().for_each(|row| {
        row.remove(artificial);
    });
    own.other.remove(artificial);
    own.a[rows] = own.other.iter().map(|&at| if at < n { -c[at].clone() } else { Exact::zero() }).collect();
    own.b[rows] = Exact::zero();
    for row in 0..rows {
        if own.basic[row] < n {
            let factor = c[own.basic[row]].clone();
            let part = &factor * &own.b[row];
            own.b[rows] += part;
            let terms: Vec<Exact> = own.a[row].iter().map(|value| &factor * value).collect();
            own.a[rows].iter_mut().zip(terms).for_each(|(value, term)| *value += term);
        }
    }
    own.maximise();
    own.b[rows].clone()
}

/// Jobs with whole rates, divided by a unit. Levels do not depend on the unit.
struct EntityCase {
    jobs: Vec<ActiveJob>,
    rows: Vec<Vec<i64>>,
    unit: f64,
    capacity: Vec<u32>,
    weights: Vec<i64>,
}

fn case(random: &mut PythonRandom, count: usize, types: usize, limit: usize) -> EntityCase {
    let entities = 1 + random.below(3);
    let capacity: Vec<u32> = (0..types).map(|_| 1 + random.below(2) as u32).collect();
    let row = |random: &mut PythonRandom| {
        let mut row: Vec<i64> = (0..types).map(|_| 1 + random.below(limit) as i64).collect();
        if types > 1 && random.below(4) == 0 {
            row[random.below(types)] = 0;
        }
        row
    };
    let rows: Vec<Vec<i64>> = (0..count).map(|_| row(random)).collect();
    let wide =
        |random: &mut PythonRandom| 1 + u32::from(capacity.iter().all(|&count| count > 1) && random.below(3) == 0);
    let job = |id: usize| ActiveJob {
        id: id as u32,
        kind: id as u32,
        scale: wide(random),
        weight: 1,
        entity: random.below(entities) as u32,
        arrival: Time(0),
        remaining: 1_000_000,
        done: 0,
        deadline: None,
    };
    let jobs = (0..count).map(job).collect();
    EntityCase { jobs, rows, unit: 1.0, capacity: capacity.clone(), weights: (1..=3).collect() }
}

impl EntityCase {
    /// Returns the program's rows of time, capacity and rates: `rates[i] + level_rates[i] * z <= rate of job i`.
    fn program(&self, rates: &[Exact], level_rates: &[Exact]) -> (Vec<Vec<Exact>>, Vec<Exact>) {
        let (m, n) = (self.jobs.len(), self.capacity.len());
        let (mut a, mut b) = (Vec::new(), Vec::new());
        let row = |entry: &dyn Fn(usize, usize) -> Exact| -> Vec<Exact> {
            (0..m * n).map(|at| entry(at / n, at % n)).chain([Exact::zero()]).collect()
        };
        for job in 0..m {
            a.push(row(&|at, _| exact(i64::from(at == job))));
            b.push(Exact::one());
            let mut own = row(&|at, j| if at == job { exact(-self.rows[at][j]) } else { Exact::zero() });
            own[m * n] = level_rates[job].clone();
            a.push(own);
            b.push(-rates[job].clone());
        }
        for (j, &count) in self.capacity.iter().enumerate() {
            let width = |at: usize| i64::from(self.jobs[at].scale);
            a.push(row(&|at, own| if own == j { exact(width(at)) } else { Exact::zero() }));
            b.push(exact(i64::from(count)));
        }
        (a, b)
    }

    /// Returns the levels by the definition: a program per step, and a program per active job for its largest rate.
    fn by_definition(&self) -> Vec<Exact> {
        let (m, n) = (self.jobs.len(), self.capacity.len());
        let all: i64 = self.capacity.iter().map(|&count| i64::from(count)).sum();
        let norm = |at: usize| {
            let sum: i64 = self.rows[at].iter().zip(&self.capacity).map(|(rate, &count)| rate * i64::from(count)).sum();
            exact(sum) / exact(all)
        };
        let (mut rates, mut last) = (vec![Exact::zero(); m], vec![false; m]);
        while last.iter().any(|last| !last) {
            let is_active = |at: usize| {
                let earlier = |other: usize| self.jobs[other].entity == self.jobs[at].entity && !last[other];
                !last[at] && !(0..at).any(earlier)
            };
            let active: Vec<usize> = (0..m).filter(|&at| is_active(at)).collect();
            let mut speed = vec![Exact::zero(); m];
            for &at in &active {
                let weight = self.weights[self.jobs[at].entity as usize];
                speed[at] = exact(weight) / exact(i64::from(self.jobs[at].scale)) * norm(at);
            }
            let (a, b) = self.program(&rates, &speed);
            let mut objective = vec![Exact::zero(); m * n + 1];
            objective[m * n] = Exact::one();
            let level = maximum(&a, &b, &objective);
            rates.iter_mut().zip(&speed).for_each(|(rate, speed)| *rate += speed * &level);
            let (a, b) = self.program(&rates, &vec![Exact::zero(); m]);
            for at in active {
                let mut objective = vec![Exact::zero(); m * n + 1];
                (0..n).for_each(|j| objective[at * n + j] = exact(self.rows[at][j]));
                // The level is not part of this program.
                let a: Vec<Vec<Exact>> = a.iter().map(|row| row[..m * n].to_vec()).collect();
                last[at] = maximum(&a, &b, &objective[..m * n]) == rates[at];
            }
        }
        rates.into_iter().enumerate().map(|(at, rate)| rate / norm(at)).collect()
    }

    /// Checks that the fractions respect time and capacity and give each job its level. Returns the levels of `fill_entities` and, with
    /// `steps`, those of the steps of water filling.
    fn levels(&self, steps: bool) -> (Vec<f64>, Option<Vec<f64>>) {
        self.with_view(|view| self.levels_in(view, steps))
    }

    fn with_view<T>(&self, used: impl FnOnce(&View<'_>) -> T) -> T {
        let row = |row: &Vec<i64>| row.iter().map(|&rate| rate as f64 / self.unit).collect();
        let rows: Vec<Vec<f64>> = self.rows.iter().map(row).collect();
        let borrowed: Vec<&[f64]> = rows.iter().map(Vec::as_slice).collect();
        let rates = Rates::from_rows(&borrowed).expect("valid rates");
        used(&View { now: Time(0), jobs: &self.jobs, rates: &rates, capacity: &self.capacity })
    }

    fn levels_in(&self, view: &View<'_>, steps: bool) -> (Vec<f64>, Option<Vec<f64>>) {
        let norm = proportional_rates(view);
        let weight = |entity: u32| self.weights[entity as usize] as f64;
        let (solved, levels) = fill_entities(view, &|job, j| view.rate(job, j), &norm, &weight).expect("a solution");
        assert_eq!(solved.formulation, Formulation::Prices);
        let n = self.capacity.len();
        let mut used = vec![0.0; n];
        for (at, x) in solved.alone.chunks(n).enumerate() {
            assert!(x.iter().all(|x| *x >= 0.0) && x.iter().sum::<f64>() <= 1.0 + 1e-12, "{x:?}");
            assert!((0..n).all(|j| view.rate(at, j) > 0.0 || x[j] == 0.0), "job {at} has time at rate 0: {x:?}");
            let own: f64 = (0..n).map(|j| x[j] * view.rate(at, j)).sum();
            assert!((own / norm[at] - levels[at]).abs() < 1e-9, "job {at}: {own}");
            used.iter_mut().zip(x).for_each(|(used, x)| *used += x * f64::from(self.jobs[at].scale));
        }
        used.iter().zip(&self.capacity).for_each(|(used, &all)| assert!(*used <= f64::from(all) * (1.0 + 1e-12)));
        let weights = vec![1.0; self.jobs.len()];
        let slow = || fill(view, true, Within::Fifo, (&weights, &weight), Bottlenecks::Intended, false);
        (levels, steps.then(|| slow().expect("levels").1))
    }
}

/// On random instances levels are those of the definition in exact fractions. Small whole rates make ties and degenerate programs frequent.
#[test]
fn levels_are_those_of_the_definition() {
    let mut random = PythonRandom::new(38);
    let (mut blocked, mut partial) = (0, 0);
    for number in 0..90 {
        let (types, limit) = (1 + number % 3, if number % 2 == 0 { 4 } else { 40 });
        let count = 1 + random.below(6);
        let case = case(&mut random, count, types, limit);
        let expected = case.by_definition();
        let (levels, _) = case.levels(false);
        for (at, (level, expected)) in levels.iter().zip(&expected).enumerate() {
            let expected = expected.to_f64().expect("a float");
            assert!((level - expected).abs() < 1e-9, "instance {number}, job {at}: {level} instead of {expected}");
            blocked += usize::from(expected == 0.0);
            let limit = case.rows[at].iter().copied().max().unwrap_or(0) as f64;
            let sum: f64 =
                case.rows[at].iter().zip(&case.capacity).map(|(&rate, &count)| rate as f64 * f64::from(count)).sum();
            let own = limit * f64::from(case.capacity.iter().sum::<u32>()) / sum;
            partial += usize::from(expected > 0.0 && expected < own * 0.999);
        }
    }
    assert!(blocked > 30 && partial > 30, "{blocked} jobs at level 0, {partial} below their limit");
}

/// Levels are those of the steps of water filling, which lower reached levels by 10^-5 to 10^-3 and give the room to later jobs.
#[test]
fn levels_are_those_of_single_steps() {
    let mut random = PythonRandom::new(39);
    for number in 0..60 {
        let count = 8 + random.below(12);
        let case = case(&mut random, count, 1 + number % 3, 400);
        let (levels, slow) = case.levels(true);
        let apart = levels.iter().zip(slow.expect("levels")).map(|(fast, slow)| (fast - slow).abs());
        let most = apart.fold(0.0, f64::max);
        assert!(most < 5e-3, "instance {number}: {most}");
    }
}

/// Jobs of scale 1 with rates in units of 10^-8, and entities of weight 1.
fn close_rates(rows: &[&[i64]], capacity: &[u32], entities: &[u32]) -> EntityCase {
    let mut own = case(&mut PythonRandom::new(1), rows.len(), capacity.len(), 1);
    for (job, &entity) in own.jobs.iter_mut().zip(entities) {
        (job.scale, job.entity) = (1, entity);
    }
    own.rows = rows.iter().map(|row| row.to_vec()).collect();
    (own.unit, own.capacity, own.weights) = (1e8, capacity.to_vec(), vec![1; rows.len()]);
    own
}

/// Job 1 leaves 5 * 10^-7 of type 0 free when jobs 0 and 2 fill type 1. Type 0 is not saturated then, so job 1 reaches its own limit.
#[test]
fn a_type_with_little_room_is_not_saturated() {
    let rows: [&[i64]; 3] = [&[0, 300_000_030], &[100_000_100, 99_999_999], &[0, 100_000_100]];
    let case = close_rates(&rows, &[1, 1], &[0, 1, 2]);
    for (level, expected) in case.levels(false).0.iter().zip(case.by_definition()) {
        let expected = expected.to_f64().expect("a float");
        assert!((level - expected).abs() < 1e-9, "{level} instead of {expected}");
    }
}

/// Nearly equal rates: the steps end at a combination of purchases with a little less than the required rates.
#[test]
fn levels_with_nearly_equal_rates() {
    let first: [&[i64]; 4] = [&[200_000_002, 100_000_000], &[0, 99_999_900], &[200_000_200, 0], &[0, 300_030_000]];
    let second: [&[i64]; 3] = [
        &[100_030_000, 100_000_030, 199_999_999],
        &[99_999_000, 199_999_999, 200_000_001],
        &[200_000_002, 200_000_030, 0],
    ];
    let third: [&[i64]; 6] = [
        &[100_001_000, 299_999_970, 300_000_002],
        &[100_001_000, 0, 300_000_001],
        &[100_000_000, 0, 199_970_000],
        &[99_999_999, 0, 99_999_900],
        &[100_000_000, 299_999_970, 299_999_970],
        &[0, 200_000_000, 100_000_000],
    ];
    let cases = [
        close_rates(&first, &[1, 2], &[1, 0, 0, 1]),
        close_rates(&second, &[1, 1, 1], &[1, 0, 0]),
        close_rates(&third, &[2, 2, 1], &[0, 1, 1, 2, 2, 2]),
    ];
    for case in cases {
        let weights = vec![1.0; case.jobs.len()];
        let solved =
            case.with_view(|view| water_fill(view, true, Within::Fifo, &weights, &|_| 1.0, Bottlenecks::Intended));
        let (fractions, levels) = solved.expect("a solution");
        assert_eq!(fractions.formulation, Formulation::Prices);
        for (level, expected) in levels.iter().zip(case.by_definition()) {
            let expected = expected.to_f64().expect("a float");
            assert!((level - expected).abs() < 1e-8, "{level} instead of {expected}");
        }
    }
}
