//! Programs above and below the limit of classes: which formulation is solved, and its result.

use super::*;
use crate::policies::ActiveJob;
use crate::random::PythonRandom;
use crate::table::{PairRate, Rate, Rates};
use plimsoll_base::units::Time;

const TYPES: usize = 3;

/// Jobs with rates, requirements and accelerators.
struct Instance {
    jobs: Vec<ActiveJob>,
    rates: Rates,
    needs: Vec<Option<Need>>,
    capacity: [u32; TYPES],
}

fn rate(value: f64) -> Rate {
    Rate::new(value).expect("a valid rate")
}

/// Returns `count` jobs of 5 kinds with distinct requirements, of which each has a base and a slope. Some jobs have no requirement, some are
/// wide, some kinds cannot run on a type, and in some pairs only one job progresses.
fn instance(random: &mut PythonRandom, count: usize) -> Instance {
    let kinds = 5;
    let mut own: Vec<Vec<f64>> =
        (0..kinds).map(|_| (0..TYPES).map(|_| 1.0 + random.below(40) as f64).collect()).collect();
    own[1][2] = 0.0;
    let rows: Vec<&[f64]> = own.iter().map(Vec::as_slice).collect();
    let mut rates = Rates::from_rows(&rows).expect("valid rates");
    for a in 0..kinds {
        for b in 0..=a {
            for j in (0..TYPES).filter(|&j| own[a][j] > 0.0 && own[b][j] > 0.0) {
                let part = 0.4 + 0.05 * random.below(11) as f64;
                let second = if a != b && random.below(4) == 0 { 0.0 } else { own[b][j] * part };
                rates.set_pair(a, b, j, PairRate { first: rate(own[a][j] * part), second: rate(second) });
            }
        }
    }
    let job = |id: usize, random: &mut PythonRandom| ActiveJob {
        id: id as u32,
        kind: random.below(kinds) as u32,
        scale: 1 + u32::from(random.below(4) == 0),
        weight: 1,
        entity: 0,
        arrival: Time(0),
        remaining: 1_000_000,
        done: 0,
        deadline: None,
    };
    let jobs: Vec<ActiveJob> = (0..count).map(|id| job(id, random)).collect();
    let capacity = [2, 3, 1].map(|part| part * (count as u32).div_ceil(10));
    let need = |job: &ActiveJob, random: &mut PythonRandom| {
        let fastest = own[job.kind as usize].iter().copied().fold(0.0, f64::max);
        let need = Need { base: fastest * 0.1 * random.unit(), slope: fastest * (0.1 + random.unit()) };
        (random.below(12) > 0).then_some(need)
    };
    let needs = jobs.iter().map(|job| need(job, random)).collect();
    Instance { jobs, rates, needs, capacity }
}

impl Instance {
    fn view(&self) -> View<'_> {
        View { now: Time(0), jobs: &self.jobs, rates: &self.rates, capacity: &self.capacity }
    }

    /// Solves the program with a level.
    fn solve(&self, packing: bool, solve: fn(&Model<'_>, &View<'_>) -> Result<Fractions>) -> Result<Fractions> {
        let view = self.view();
        let rate = |job: usize, j: usize| view.rate(job, j);
        let label = |job: usize| u64::from(self.jobs[job].kind);
        let needs = self.needs.clone();
        solve(&Model { needs, rate: &rate, value: None, level: true, packing, label: &label, accepted: 1e-8 }, &view)
    }

    /// Checks time, capacity and required rates.
    fn check(&self, solved: &Fractions) {
        let view = self.view();
        let m = self.jobs.len();
        let (mut time, mut rates, mut used) = (vec![0.0; m], vec![0.0; m], [0.0; TYPES]);
        for at in 0..m {
            for (j, used) in used.iter_mut().enumerate() {
                let x = solved.alone[at * TYPES + j];
                (time[at], rates[at]) = (time[at] + x, rates[at] + x * view.rate(at, j));
                *used += x * f64::from(self.jobs[at].scale);
            }
        }
        for pair in &solved.pairs {
            let ([a, b], j) = (pair.jobs.map(|at| at as usize), pair.worker_type as usize);
            assert_eq!(self.jobs[a].scale, self.jobs[b].scale);
            let of = self.rates.pair(self.jobs[a].kind, self.jobs[b].kind, j).expect("a pair");
            for (at, rate) in [(a, of.first), (b, of.second)] {
                (time[at], rates[at]) = (time[at] + pair.x, rates[at] + pair.x * rate.per_s);
            }
            used[j] += pair.x * f64::from(self.jobs[a].scale);
        }
        assert!(time.iter().all(|&time| time <= 1.0 + 1e-9));
        used.iter().zip(self.capacity).for_each(|(used, all)| assert!(*used <= f64::from(all) * (1.0 + 1e-9)));
        for (at, need) in self.needs.iter().enumerate() {
            let required = need.map_or(0.0, |need| need.base + need.slope * solved.level);
            assert!(rates[at] >= required * (1.0 - 1e-7), "job {at}: {} instead of {required}", rates[at]);
        }
    }
}

fn as_policies(model: &Model<'_>, view: &View<'_>) -> Result<Fractions> {
    model.solve(view)
}

fn by_kind(model: &Model<'_>, view: &View<'_>) -> Result<Fractions> {
    model.solve_by_kind(view)
}

/// Solves a program with a class per job.
fn by_job(model: &Model<'_>, view: &View<'_>) -> Result<Fractions> {
    model.solve_classes(view, &JobGroups::new(view.jobs.len(), |job| job))
}

/// Returns the number of classes of identical jobs.
fn distinct(instance: &Instance) -> usize {
    let key = |at: usize| {
        let need = instance.needs[at].map(|need| (need.base.to_bits(), need.slope.to_bits()));
        (instance.jobs[at].kind, instance.jobs[at].scale, need)
    };
    (0..instance.jobs.len()).map(key).collect::<std::collections::HashSet<_>>().len()
}

/// Above the limit a program with pairs is solved by kinds, with the level of the program over classes; without pairs, or up to the
/// limit, it is solved by classes.
#[test]
fn the_number_of_classes_selects_the_formulation() {
    let mut random = PythonRandom::new(35);
    let many = instance(&mut random, 340);
    assert!(distinct(&many) > MAX_CLASSES_WITH_PAIRS);
    let by_kind = many.solve(true, as_policies).expect("a certified solution");
    assert_eq!(by_kind.formulation, Formulation::Kinds);
    assert!(by_kind.surplus.is_empty());
    many.check(&by_kind);
    let slow = many.solve(true, by_job).expect("a solution");
    assert_eq!(slow.formulation, Formulation::Classes);
    assert!((by_kind.level / slow.level - 1.0).abs() < 1e-8, "{} instead of {}", by_kind.level, slow.level);

    let alone = many.solve(false, as_policies).expect("a solution");
    assert_eq!((alone.formulation, alone.pairs.len()), (Formulation::Classes, 0));
    many.check(&alone);
    assert!(alone.level < by_kind.level);

    let few = instance(&mut random, 60);
    let by_class = few.solve(true, as_policies).expect("a solution");
    assert_eq!((by_class.formulation, by_class.surplus.len()), (Formulation::Classes, 60));
    few.check(&by_class);
}

/// On small random instances both formulations have the same level.
#[test]
fn both_formulations_have_the_same_level() {
    let mut random = PythonRandom::new(36);
    let (mut wide, mut free) = (0, 0);
    for number in 0..60 {
        let few = instance(&mut random, 3 + number % 25);
        // The bases alone may be infeasible: then neither has a level.
        let Ok(by_class) = few.solve(true, as_policies) else { continue };
        if by_class.level < 1e-3 {
            continue;
        }
        let kinds = few.solve(true, by_kind).expect("a certified solution");
        few.check(&kinds);
        let error = (kinds.level / by_class.level - 1.0).abs();
        assert!(error < 1e-8, "instance {number}: {} instead of {}", kinds.level, by_class.level);
        wide += few.jobs.iter().filter(|job| job.scale > 1).count();
        free += few.needs.iter().filter(|need| need.is_none()).count();
    }
    assert!(wide > 100 && free > 30, "{wide} wide jobs, {free} without requirement");
}

/// Jobs of one kind with unequal rates beside each other are refused, on both paths.
#[test]
fn unequal_rates_inside_a_kind_are_refused() {
    let mut random = PythonRandom::new(37);
    for count in [40, 340] {
        let mut instance = instance(&mut random, count);
        instance.rates.set_pair(2, 2, 1, PairRate { first: rate(6.0), second: rate(4.0) });
        let error = instance.solve(true, as_policies).map(|solved| solved.level).expect_err("unequal rates");
        assert!(error.to_string().contains("expected equal rates"), "{error}");
        instance.solve(false, as_policies).expect("a program without pairs");
    }
}
