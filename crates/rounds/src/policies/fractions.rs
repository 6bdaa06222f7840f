//! From active jobs to a linear program, and from its solution to fractions.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

use plimsoll_base::error::{Error, Result};

use super::View;
use crate::lp::{
    Column, ColumnMember, JobClass, KindColumn, KindJob, KindProgram, Need, Program, solve_kinds, solve_within,
};
use crate::mechanism::Targets;

/// The largest number of classes of identical jobs in a program with a column per pair of classes.
///
/// The cost of that program grows with the cube of the classes. Its result is the center of the optima. Published results depend on this
/// center, so programs up to this size keep it.
pub(super) const MAX_CLASSES_WITH_PAIRS: usize = 300;

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
    /// The surplus of each job over its required rate at the center of the optima, relative to its largest rate. Empty unless the
    /// formulation is [`Formulation::Classes`].
    pub surplus: Vec<f64>,
    /// The program that was solved.
    pub formulation: Formulation,
}

/// The formulation of a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Formulation {
    /// A column per class of identical jobs, or pair of classes, and worker type. The solution is the center of the optima.
    #[default]
    Classes,
    /// A column per kind of jobs, or pair of kinds, and worker type. The solution is one of the optima.
    Kinds,
    /// A combination of the cheapest allocations at several prices of types. The solution is one of the optima.
    Prices,
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

/// Jobs that are alike in a program, in order of their first jobs.
struct JobGroups {
    /// The group of each job.
    of_job: Vec<u32>,
    /// The jobs of each group, ascending.
    members: Vec<Vec<u32>>,
}

impl JobGroups {
    /// Groups jobs with equal keys.
    fn new<K: Eq + Hash>(jobs: usize, key: impl Fn(usize) -> K) -> JobGroups {
        let mut index: HashMap<K, u32> = HashMap::with_capacity(jobs);
        let mut groups = JobGroups { of_job: Vec::with_capacity(jobs), members: Vec::new() };
        for job in 0..jobs {
            let group = *index.entry(key(job)).or_insert_with(|| {
                groups.members.push(Vec::new());
                groups.members.len() as u32 - 1
            });
            groups.members[group as usize].push(job as u32);
            groups.of_job.push(group);
        }
        groups
    }
}

/// The time that jobs of a group, or pairs of jobs of two groups, spend on a worker type.
struct GroupColumn {
    worker_type: usize,
    /// The group with its rate.
    first: (usize, f64),
    /// The partner's group, at most the first one, with its rate.
    second: Option<(usize, f64)>,
}

impl Model<'_> {
    /// Solves the program. Identical jobs form one class. Programs with pairs of more than [`MAX_CLASSES_WITH_PAIRS`] classes are solved by
    /// kinds.
    ///
    /// Errors: [`Error::NotConverged`]; [`Error::Mismatch`] for a pair of jobs of one kind with unequal rates.
    pub fn solve(&self, view: &View<'_>) -> Result<Fractions> {
        let bits = |need: Need| (need.base.to_bits(), need.slope.to_bits());
        let key = |job: usize| {
            let need = self.needs[job].map_or((u64::MAX, 0), bits);
            ((self.label)(job), need, view.jobs[job].scale)
        };
        let groups = JobGroups::new(view.jobs.len(), key);
        if self.packing && self.value.is_none() && groups.members.len() > MAX_CLASSES_WITH_PAIRS {
            match self.solve_by_kind(view) {
                // Without a certificate the slow program decides.
                Err(Error::NotConverged { .. }) => {}
                solved => return solved,
            }
        }
        self.solve_classes(view, &groups)
    }

    /// Returns the columns of groups: for each group those alone, then those with each earlier group and with itself.
    ///
    /// Errors: [`Error::Mismatch`] for a pair of jobs of one kind with unequal rates. Jobs of one kind have the same rates, also beside each other.
    fn group_columns(&self, view: &View<'_>, groups: &JobGroups) -> Result<Vec<GroupColumn>> {
        let types: Vec<usize> = (0..view.capacity.len()).filter(|&j| view.capacity[j] > 0).collect();
        let mut columns = Vec::new();
        for (group, members) in groups.members.iter().enumerate() {
            let job = members[0] as usize;
            for &worker_type in &types {
                let rate = (self.rate)(job, worker_type);
                if rate > 0.0 {
                    columns.push(GroupColumn { worker_type, first: (group, rate), second: None });
                }
            }
            for other in 0..if self.packing { group + 1 } else { 0 } {
                let partner = &view.jobs[groups.members[other][0] as usize];
                if partner.scale != view.jobs[job].scale || (other == group && members.len() == 1) {
                    continue;
                }
                for &worker_type in &types {
                    let Some(pair) = view.rates.pair(view.jobs[job].kind, partner.kind, worker_type) else { continue };
                    let (own, beside) = (pair.first.per_s, pair.second.per_s);
                    if view.jobs[job].kind == partner.kind && own != beside {
                        let id = view.jobs[job].id;
                        let problem = format!(
                            "a pair of jobs of the kind of job {id} has the rates {own} and {beside} on worker type {worker_type}; expected \
                             equal rates"
                        );
                        return Err(Error::Mismatch { problem });
                    }
                    columns.push(GroupColumn { worker_type, first: (group, own), second: Some((other, beside)) });
                }
            }
        }
        Ok(columns)
    }

    /// Solves the program with a column per pair of classes.
    fn solve_classes(&self, view: &View<'_>, groups: &JobGroups) -> Result<Fractions> {
        let (m, n) = (view.jobs.len(), view.capacity.len());
        let count = |class: usize| groups.members[class].len() as f64;
        let class =
            |members: &Vec<u32>| JobClass { count: members.len() as f64, need: self.needs[members[0] as usize] };
        let mut columns = Vec::new();
        // The position of the columns of each class alone, and of each pair of classes.
        let mut at_alone = vec![u32::MAX; groups.members.len() * n];
        let mut at_pair: HashMap<(u32, u32), Vec<u32>> = HashMap::new();
        for column in self.group_columns(view, groups)? {
            let (class, rate) = column.first;
            let job = groups.members[class][0] as usize;
            let (j, own) = (column.worker_type, count(class));
            let (worker_type, width) = (j as u32, f64::from(view.jobs[job].scale));
            let member = |class: usize, times: f64, rate: f64| ColumnMember { class: class as u32, times, rate };
            let at = columns.len() as u32;
            let Some((other, beside)) = column.second else {
                at_alone[class * n + j] = at;
                let value = self.value.map_or(0.0, |value| value(job, j) * own);
                columns.push(Column {
                    worker_type,
                    copies: own,
                    width,
                    value,
                    first: member(class, 1.0, rate),
                    second: None,
                });
                continue;
            };
            at_pair.entry((class as u32, other as u32)).or_insert_with(|| vec![u32::MAX; n])[j] = at;
            let same = other == class;
            let (copies, times) =
                if same { (own * (own - 1.0) / 2.0, own - 1.0) } else { (own * count(other), count(other)) };
            let first = member(class, times, rate);
            let second = (!same).then_some(member(other, own, beside));
            columns.push(Column { worker_type, copies, width, value: 0.0, first, second });
        }
        let classes = groups.members.iter().map(class).collect();
        let program = Program { capacity: capacity(view), classes, columns, level: self.level };
        let mut solution = solve_within(&program, self.accepted)?;
        program.make_feasible(&mut solution.x);

        let x = |at: u32| solution.x.get(at as usize).copied().unwrap_or(0.0);
        let (level, packing) = (solution.level, self.packing);
        let mut fractions = Fractions { level, packing, ..Fractions::zero(m, n) };
        for (job, &class) in groups.of_job.iter().enumerate() {
            for j in 0..n {
                fractions.alone[job * n + j] = x(at_alone[class as usize * n + j]);
            }
            fractions.surplus[job] = solution.surplus[class as usize];
            for other in 0..if self.packing { job } else { 0 } {
                let key = (class.max(groups.of_job[other]), class.min(groups.of_job[other]));
                let Some(positions) = at_pair.get(&key) else { continue };
                for (j, &position) in positions.iter().enumerate().filter(|(_, at)| x(**at) > 0.0) {
                    let (jobs, worker_type) = ([other as u32, job as u32], j as u32);
                    fractions.pairs.push(PairFraction { jobs, worker_type, x: x(position) });
                }
            }
        }
        Ok(fractions)
    }

    /// Solves a program with pairs of many distinct jobs: jobs with equal label and scale are one kind (`lp/aggregate`).
    ///
    /// Errors: [`Error::NotConverged`], also for bounds of the level that differ by more than the accepted error and for a job below its
    /// required rate; [`Error::Mismatch`] for a pair of jobs of one kind with unequal rates.
    pub(super) fn solve_by_kind(&self, view: &View<'_>) -> Result<Fractions> {
        let (m, n) = (view.jobs.len(), view.capacity.len());
        let groups = JobGroups::new(m, |job| ((self.label)(job), view.jobs[job].scale));
        let members = &groups.members;
        let need = |&job: &u32| self.needs[job as usize].unwrap_or(Need { base: 0.0, slope: 0.0 });
        let side = |(kind, rate): (usize, f64)| (kind as u32, rate);
        let column = |column: GroupColumn| KindColumn {
            worker_type: column.worker_type as u32,
            width: f64::from(view.jobs[members[column.first.0][0] as usize].scale),
            first: side(column.first),
            second: column.second.map(side),
        };
        let program = KindProgram {
            capacity: capacity(view),
            kinds: members.iter().map(|jobs| jobs.iter().map(need).collect()).collect(),
            columns: self.group_columns(view, &groups)?.into_iter().map(column).collect(),
            level: self.level,
        };
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
        let mut fractions = Fractions {
            level: solved.gap.below,
            packing: true,
            formulation: Formulation::Kinds,
            surplus: Vec::new(),
            ..Fractions::zero(m, n)
        };
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
        Ok(fractions)
    }
}

/// Returns the capacities of a program. A type without accelerators has no columns.
fn capacity(view: &View<'_>) -> Vec<f64> {
    view.capacity.iter().map(|&count| f64::from(count.max(1))).collect()
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

#[cfg(test)]
mod tests;
