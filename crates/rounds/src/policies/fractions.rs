//! From active jobs to a linear program, and from its solution to fractions.

use std::collections::{BTreeMap, HashMap};

use plimsoll_base::error::{Error, Result};

use super::View;
use crate::lp::{
    Column, ColumnMember, JobClass, KindColumn, KindJob, KindProgram, Need, Program, Solution, solve_kinds,
    solve_within,
};
use crate::mechanism::Targets;

/// The largest number of classes of identical jobs in a program with a column per pair of classes.
///
/// The cost of that program grows with the cube of the classes. Its result is the center of the optima. Published results depend on this
/// center, so programs up to this size keep it.
pub(super) const DISTINCT: usize = 300;

/// The fractions of time of the active jobs, before rounding.
#[derive(Clone, Debug, Default)]
pub struct Fractions {
    /// The optimal level of the program, or 0.
    pub level: f64,
    /// The number of worker types.
    pub types: usize,
    /// The fraction of job `i` on type `j` at `i * types + j`.
    pub alone: Vec<f64>,
    /// Whether pairs of jobs may share accelerators.
    pub packing: bool,
    /// The positive fractions of pairs.
    pub pairs: Vec<PairFraction>,
    /// The surplus of each job over its required rate, relative to its largest rate.
    pub surplus: Vec<f64>,
}

/// The fraction of time of a pair of jobs on a worker type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PairFraction {
    /// The jobs, the lower index first.
    pub jobs: [u32; 2],
    /// The worker type.
    pub worker_type: u32,
    /// The fraction.
    pub x: f64,
}

impl Fractions {
    /// Creates fractions of 0.
    pub fn zero(jobs: usize, types: usize) -> Fractions {
        Fractions { types, alone: vec![0.0; jobs * types], surplus: vec![0.0; jobs], ..Fractions::default() }
    }

    /// Rounds to targets of the mechanism.
    pub fn targets(&self) -> Targets {
        let m = self.alone.len() / self.types.max(1);
        let mut pairs = vec![0; if self.packing { m * m.saturating_sub(1) / 2 * self.types } else { 0 }];
        for pair in &self.pairs {
            let at = Targets::pair_index(pair.jobs[0] as usize, pair.jobs[1] as usize);
            pairs[at * self.types + pair.worker_type as usize] = Targets::rounded(pair.x);
        }
        Targets { types: self.types, alone: self.alone.iter().map(|&x| Targets::rounded(x)).collect(), pairs }
    }
}

/// The program of a policy over the active jobs.
pub(super) struct Model<'a> {
    /// The required rate of each job.
    pub needs: Vec<Option<Need>>,
    /// The rate of job `i` on type `j` alone.
    pub rate: &'a dyn Fn(usize, usize) -> f64,
    /// The value of a unit of time of job `i` on type `j`; empty for programs with a level.
    pub value: Option<&'a dyn Fn(usize, usize) -> f64>,
    /// Whether the level is maximised.
    pub level: bool,
    /// Whether pairs are columns.
    pub packing: bool,
    /// Whether two jobs with equal needs, scale and this label are identical.
    pub label: &'a dyn Fn(usize) -> u64,
    /// The relative error that is accepted.
    pub accepted: f64,
}

impl Model<'_> {
    /// Solves the program. Identical jobs form one class.
    pub fn solve(&self, view: &View<'_>) -> Result<Fractions> {
        let (m, n) = (view.jobs.len(), view.capacity.len());
        let mut index: HashMap<(u64, u64, u64, u32), u32> = HashMap::with_capacity(m);
        let mut class_of = Vec::with_capacity(m);
        let mut first_of: Vec<usize> = Vec::new();
        let mut classes: Vec<JobClass> = Vec::new();
        for job in 0..m {
            let need = self.needs[job].map_or((u64::MAX, 0), |need| (need.base.to_bits(), need.slope.to_bits()));
            let key = ((self.label)(job), need.0, need.1, view.jobs[job].scale);
            let class = *index.entry(key).or_insert_with(|| {
                first_of.push(job);
                classes.push(JobClass { count: 0.0, need: self.needs[job] });
                classes.len() as u32 - 1
            });
            classes[class as usize].count += 1.0;
            class_of.push(class);
        }
        if self.packing && self.value.is_none() && classes.len() > DISTINCT {
            match self.solve_by_kind(view) {
                // Without a certificate the slow program decides.
                Err(Error::NotConverged { .. }) => {}
                solved => return solved,
            }
        }
        let mut columns = Vec::new();
        // The position of the columns of each class alone, and of each pair of classes.
        let mut at_alone = vec![u32::MAX; classes.len() * n];
        let mut at_pair: HashMap<(u32, u32), Vec<u32>> = HashMap::new();
        for (class, &job) in first_of.iter().enumerate() {
            let count = classes[class].count;
            let width = f64::from(view.jobs[job].scale);
            for j in 0..n {
                let rate = (self.rate)(job, j);
                if rate > 0.0 && view.capacity[j] > 0 {
                    at_alone[class * n + j] = columns.len() as u32;
                    let first = ColumnMember { class: class as u32, times: 1.0, rate };
                    let value = self.value.map_or(0.0, |value| value(job, j) * count);
                    columns.push(Column { worker_type: j as u32, copies: count, width, value, first, second: None });
                }
            }
            for other in 0..if self.packing { class + 1 } else { 0 } {
                let partner = first_of[other];
                let copies = if other == class { count * (count - 1.0) / 2.0 } else { count * classes[other].count };
                if view.jobs[partner].scale != view.jobs[job].scale || copies == 0.0 {
                    continue;
                }
                let mut positions = vec![u32::MAX; n];
                for j in 0..n {
                    let (a, b) = (view.jobs[job].kind, view.jobs[partner].kind);
                    let pair = view.rates.pair(a, b, j).filter(|_| view.capacity[j] > 0);
                    let Some(pair) = pair else { continue };
                    positions[j] = columns.len() as u32;
                    let same = other == class;
                    let times = if same { count - 1.0 } else { classes[other].count };
                    let first = ColumnMember { class: class as u32, times, rate: pair.first.per_s };
                    let second = ColumnMember { class: other as u32, times: count, rate: pair.second.per_s };
                    let second = (!same).then_some(second);
                    columns.push(Column { worker_type: j as u32, copies, width, value: 0.0, first, second });
                }
                at_pair.insert((class as u32, other as u32), positions);
            }
        }
        let capacity = view.capacity.iter().map(|&count| f64::from(count.max(1))).collect();
        let program = Program { capacity, classes, columns, level: self.level };
        let mut solution = solve_within(&program, self.accepted)?;
        program.make_feasible(&mut solution.x);
        Ok(self.expand(m, n, &class_of, &at_alone, &at_pair, &solution))
    }

    fn expand(
        &self,
        m: usize,
        n: usize,
        class_of: &[u32],
        at_alone: &[u32],
        at_pair: &HashMap<(u32, u32), Vec<u32>>,
        solution: &Solution,
    ) -> Fractions {
        let x = |at: u32| solution.x.get(at as usize).copied().unwrap_or(0.0);
        let (level, packing) = (solution.level, self.packing);
        let mut fractions = Fractions { level, packing, ..Fractions::zero(m, n) };
        for (job, &class) in class_of.iter().enumerate() {
            for j in 0..n {
                fractions.alone[job * n + j] = x(at_alone[class as usize * n + j]);
            }
            fractions.surplus[job] = solution.surplus[class as usize];
            for other in 0..if self.packing { job } else { 0 } {
                let key = (class.max(class_of[other]), class.min(class_of[other]));
                let Some(positions) = at_pair.get(&key) else { continue };
                for (j, &position) in positions.iter().enumerate().filter(|(_, at)| x(**at) > 0.0) {
                    let (jobs, worker_type) = ([other as u32, job as u32], j as u32);
                    fractions.pairs.push(PairFraction { jobs, worker_type, x: x(position) });
                }
            }
        }
        fractions
    }
}

impl Model<'_> {
    /// Solves a program with pairs of many distinct jobs: jobs with equal label and scale are one kind (`lp/aggregate`).
    ///
    /// Errors: [`Error::NotConverged`]; also for bounds of the level that differ by more than the accepted error, and for a job below its
    /// required rate.
    pub(super) fn solve_by_kind(&self, view: &View<'_>) -> Result<Fractions> {
        let (m, n) = (view.jobs.len(), view.capacity.len());
        let mut index: HashMap<(u64, u32), usize> = HashMap::new();
        let mut members: Vec<Vec<u32>> = Vec::new();
        for job in 0..m {
            let kind = *index.entry(((self.label)(job), view.jobs[job].scale)).or_insert_with(|| {
                members.push(Vec::new());
                members.len() - 1
            });
            members[kind].push(job as u32);
        }
        let need = |&job: &u32| self.needs[job as usize].unwrap_or(Need { base: 0.0, slope: 0.0 });
        let mut program = KindProgram {
            capacity: view.capacity.iter().map(|&count| f64::from(count.max(1))).collect(),
            kinds: members.iter().map(|jobs| jobs.iter().map(need).collect()).collect(),
            columns: Vec::new(),
            level: self.level,
        };
        for (kind, jobs) in members.iter().enumerate() {
            let job = jobs[0] as usize;
            let (scale, own) = (view.jobs[job].scale, kind as u32);
            let width = f64::from(scale);
            for j in 0..n {
                let rate = (self.rate)(job, j);
                let worker_type = j as u32;
                if rate > 0.0 && view.capacity[j] > 0 {
                    program.columns.push(KindColumn { worker_type, width, first: (own, rate), second: None });
                }
                for (other, partners) in members[..=kind].iter().enumerate() {
                    let partner = &view.jobs[partners[0] as usize];
                    if partner.scale == scale
                        && view.capacity[j] > 0
                        && let Some(pair) = view.rates.pair(view.jobs[job].kind, partner.kind, j)
                    {
                        let (first, second) = ((own, pair.first.per_s), Some((other as u32, pair.second.per_s)));
                        program.columns.push(KindColumn { worker_type, width, first, second });
                    }
                }
            }
        }
        let solved = solve_kinds(&program)?;
        let reached = |(need, rate): (&Need, &f64)| {
            let required = need.base + need.slope * solved.gap.below;
            *rate >= required * (1.0 - self.accepted)
        };
        let feasible = program.kinds.iter().flatten().zip(solved.rates.iter().flatten()).all(reached);
        let gap = solved.gap.relative();
        if gap.is_nan() || gap.abs() > self.accepted || !feasible {
            let problem = match feasible {
                true => format!("the bounds of the level are {} and {}", solved.gap.below, solved.gap.above),
                false => "a job is below its required rate".to_owned(),
            };
            return Err(Error::NotConverged { solver: "program over kinds".to_owned(), problem });
        }
        let of = |job: KindJob| members[job.0 as usize][job.1 as usize];
        let mut fractions = Fractions { level: solved.gap.below, packing: true, ..Fractions::zero(m, n) };
        for (job, j, x) in solved.alone {
            fractions.alone[of(job) as usize * n + j as usize] += x;
        }
        let mut pairs: BTreeMap<([u32; 2], u32), f64> = BTreeMap::new();
        for (a, b, j, x) in solved.pairs {
            let (a, b) = (of(a), of(b));
            *pairs.entry(([a.min(b), a.max(b)], j)).or_insert(0.0) += x;
        }
        fractions.pairs =
            pairs.into_iter().map(|((jobs, worker_type), x)| PairFraction { jobs, worker_type, x }).collect();
        for (kind, rates) in solved.rates.iter().enumerate() {
            for (&job, rate) in members[kind].iter().zip(rates) {
                let need = need(&job);
                let fastest = (0..n).map(|j| (self.rate)(job as usize, j)).fold(f64::MIN_POSITIVE, f64::max);
                fractions.surplus[job as usize] = (rate - need.base - need.slope * fractions.level) / fastest;
            }
        }
        Ok(fractions)
    }
}

/// Returns each job's rate under the proportional allocation: `sum_j T_ij W_j / W`.
pub fn proportional_rates(view: &View<'_>) -> Vec<f64> {
    let all: u32 = view.capacity.iter().sum();
    let share = |j: usize| f64::from(view.capacity[j]) / f64::from(all);
    let rate = |job: usize| (0..view.capacity.len()).map(|j| view.rate(job, j) * share(j)).sum();
    (0..view.jobs.len()).map(rate).collect()
}

/// Returns the rates of a feasible allocation of single jobs that gives each job at least its rate of `rates`, less 0.001 %, with the
/// largest sum of rates relative to each job's fastest type.
///
/// The reduction keeps an interior of the feasible points, which an interior-point method requires. Errors: a solver that does not
/// converge, such as for rates that no allocation reaches.
pub fn improvement(view: &View<'_>, rates: &[f64]) -> Result<Vec<f64>> {
    let n = view.capacity.len();
    let rate = |job: usize, j: usize| view.rate(job, j);
    let fastest = |job: usize| (0..n).map(|j| view.rate(job, j)).fold(f64::MIN_POSITIVE, f64::max);
    let value = |job: usize, j: usize| view.rate(job, j) / fastest(job);
    let need = |&rate: &f64| (rate > 0.0).then_some(Need { base: rate * (1.0 - 1e-5), slope: 0.0 });
    let needs = rates.iter().map(need).collect();
    // Jobs with equal needs may have different rates.
    let label = |job: usize| job as u64;
    let model =
        Model { needs, rate: &rate, value: Some(&value), level: false, packing: false, label: &label, accepted: 1e-6 };
    let solved = model.solve(view)?;
    let own = |job: usize| (0..n).map(|j| view.rate(job, j) * solved.alone[job * n + j]).sum();
    Ok((0..rates.len()).map(own).collect())
}

/// Returns the isolated allocation of a job of scale `scale` among `jobs`: `W_j / (m s)`, cut to a sum of 1.
pub(super) fn isolated(capacity: &[u32], jobs: usize, scale: u32) -> Vec<f64> {
    let part = |&count: &u32| f64::from(count) / (jobs as f64 * f64::from(scale));
    let sum: f64 = capacity.iter().map(part).sum();
    capacity.iter().map(|count| part(count) / sum.max(1.0)).collect()
}

/// Returns each job's rate under the isolated allocation.
pub fn isolated_rates(view: &View<'_>) -> Vec<f64> {
    let m = view.jobs.len();
    let rate = |job: usize| {
        let x = isolated(view.capacity, m, view.jobs[job].scale);
        x.iter().enumerate().map(|(j, x)| x * view.rate(job, j)).sum()
    };
    (0..m).map(rate).collect()
}

/// Checks that each job has a positive rate on a worker type of the cluster. Errors: [`Error::Mismatch`] with the job.
pub(super) fn check_rates(view: &View<'_>) -> Result<()> {
    let runs = |job: &usize| {
        (0..view.capacity.len()).any(|j| view.rate(*job, j) > 0.0 && view.capacity[j] >= view.jobs[*job].scale)
    };
    match (0..view.jobs.len()).find(|job| !runs(job)) {
        None => Ok(()),
        Some(job) => {
            let id = view.jobs[job].id;
            let problem = format!(
                "job {id} of scale {} can run on no worker type: its rate is 0 or it does not fit",
                view.jobs[job].scale
            );
            Err(Error::Mismatch { problem })
        }
    }
}
