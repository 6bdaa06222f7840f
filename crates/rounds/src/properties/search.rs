//! The search of counterexamples: every small instance on a grid, random instances, and the reduction of each counterexample.

use plimsoll_base::error::{Error, Result};
use plimsoll_base::units::Time;

use super::{ShareProperty, ShareViolation, static_targets, violation};
use crate::mechanism::Targets;
use crate::policies::{ActiveJob, PolicyOptions, PolicyRow, View};
use crate::random::PythonRandom;
use crate::table::Rates;

/// The relative tolerance of a property.
const TOLERANCE: f64 = 1e-3;
/// The same for policies that choose the jobs of each round: their fractions are counts of rounds.
const OF_ROUNDS: f64 = 0.03;

/// A class of instances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShareDomain {
    /// Positive rates, weights of 1, one accelerator per job.
    Positive,
    /// The same with some rates of 0.
    Zeros,
    /// Positive rates, weights from 1 to 3.
    Weighted,
    /// Positive rates, weights of 1, some jobs use two accelerators together.
    Wide,
}

impl ShareDomain {
    /// All classes, with their names and meanings.
    pub const ALL: [(&'static str, ShareDomain, &'static str); 4] = [
        ("positive", ShareDomain::Positive, "every job can run on every type"),
        ("zeros", ShareDomain::Zeros, "some jobs cannot run on some types"),
        ("weighted", ShareDomain::Weighted, "jobs have weights"),
        ("wide", ShareDomain::Wide, "some jobs use two accelerators together"),
    ];

    /// Returns its name.
    pub fn name(self) -> &'static str {
        ShareDomain::ALL[self as usize].0
    }

    /// Returns its meaning.
    pub fn meaning(self) -> &'static str {
        ShareDomain::ALL[self as usize].2
    }
}

/// A search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShareSearch {
    /// The class of instances.
    pub domain: ShareDomain,
    /// The number of random instances, in addition to the grid.
    pub random: usize,
    /// The seed of the random instances.
    pub seed: u64,
}

/// A job of an instance.
#[derive(Clone, Debug, PartialEq)]
pub struct StaticJob {
    /// Its rate on each type, in iterations per second.
    pub rates: Vec<f64>,
    /// The accelerators that it uses together.
    pub scale: u32,
    /// Its weight.
    pub weight: u32,
    /// Its iterations.
    pub iterations: u32,
}

/// Jobs at one instant, each its own entity, and the accelerators of each type.
#[derive(Clone, Debug, PartialEq)]
pub struct StaticInstance {
    /// The accelerators of each type.
    pub capacity: Vec<u32>,
    /// The jobs.
    pub jobs: Vec<StaticJob>,
}

impl StaticInstance {
    /// Returns the rates and the active jobs of a view.
    fn parts(&self) -> Result<(Rates, Vec<ActiveJob>)> {
        let rows: Vec<&[f64]> = self.jobs.iter().map(|job| job.rates.as_slice()).collect();
        let job = |(id, job): (usize, &StaticJob)| ActiveJob {
            id: id as u32,
            kind: id as u32,
            scale: job.scale,
            weight: job.weight,
            entity: id as u32,
            arrival: Time(0),
            remaining: u64::from(job.iterations) * 1_000_000,
            done: 0,
            deadline: None,
        };
        Ok((Rates::from_rows(&rows)?, self.jobs.iter().enumerate().map(job).collect()))
    }

    /// Returns whether every job can run.
    fn is_valid(&self) -> bool {
        let runs = |job: &StaticJob| {
            job.rates.iter().zip(&self.capacity).any(|(rate, capacity)| *rate > 0.0 && *capacity >= job.scale)
        };
        !self.jobs.is_empty() && !self.capacity.is_empty() && self.jobs.iter().all(runs)
    }

    /// Computes the fractions of a policy, and the violation of a property. Errors: those of [`violation`] and of the policy.
    pub fn judge(
        &self,
        row: &PolicyRow,
        options: &PolicyOptions,
        property: ShareProperty,
    ) -> Result<(Targets, Option<ShareViolation>)> {
        let (rates, jobs) = self.parts()?;
        let view = View { now: Time(0), jobs: &jobs, rates: &rates, capacity: &self.capacity };
        let targets = static_targets(&view, row, options, None)?;
        let tolerance = if (row.create)(options).plans() { OF_ROUNDS } else { TOLERANCE };
        let found = violation(&view, &targets, property, tolerance)?;
        Ok((targets, found))
    }

    /// Returns simpler instances: without a job or a type, with smaller or equal numbers.
    fn simpler(&self) -> Vec<StaticInstance> {
        let mut simpler = Vec::new();
        let mut push = |change: &dyn Fn(&mut StaticInstance)| {
            let mut other = self.clone();
            change(&mut other);
            if other != *self && other.is_valid() {
                simpler.push(other);
            }
        };
        for at in 0..self.jobs.len() {
            push(&|other| {
                other.jobs.remove(at);
            });
        }
        for j in 0..self.capacity.len() {
            push(&|other| {
                other.capacity.remove(j);
                for job in &mut other.jobs {
                    job.rates.remove(j);
                }
            });
            push(&|other| other.capacity[j] = 1);
        }
        for at in 0..self.jobs.len() {
            push(&|other| other.jobs[at].scale = 1);
            push(&|other| other.jobs[at].weight = 1);
            push(&|other| other.jobs[at].iterations = 1000);
            for j in 0..self.capacity.len() {
                let rate = self.jobs[at].rates[j];
                for less in [1.0, 2.0, (rate / 2.0).round(), rate.round()] {
                    // Zero rates stay, others stay positive.
                    if rate > 0.0 && less > 0.0 && (less < rate || rate.fract() != 0.0) {
                        push(&|other| other.jobs[at].rates[j] = less);
                    }
                }
            }
        }
        simpler
    }
}

/// A counterexample.
#[derive(Clone, Debug, PartialEq)]
pub struct ShareExample {
    /// The instance.
    pub instance: StaticInstance,
    /// The fractions of the policy.
    pub targets: Targets,
    /// The violation.
    pub violation: ShareViolation,
}

/// The result of a search for one property.
#[derive(Clone, Debug, PartialEq)]
pub struct ShareFinding {
    /// The property.
    pub property: ShareProperty,
    /// The instances that were judged.
    pub instances: usize,
    /// The instances without a result: the policy is not defined for them, or a solver did not converge.
    pub unsolved: usize,
    /// The reduced counterexample, or `None` if the property held.
    pub example: Option<ShareExample>,
}

/// Returns all instances on a small grid: two jobs on two types with rates of 1, 2 and 4, and three jobs with rates of 1 and 3.
fn grid(domain: ShareDomain) -> Vec<StaticInstance> {
    let mut instances = Vec::new();
    for (jobs, values) in [(2usize, &[1.0, 2.0, 4.0][..]), (3, &[1.0, 3.0])] {
        let values: Vec<f64> =
            if domain == ShareDomain::Zeros { values.iter().map(|v| v - 1.0).collect() } else { values.to_vec() };
        let cells = 2 * jobs;
        for code in 0..values.len().pow(cells as u32) {
            let cell = |at: usize| values[code / values.len().pow(at as u32) % values.len()];
            let weight = |at: usize| if domain == ShareDomain::Weighted { 1 + at as u32 } else { 1 };
            let job = |at: usize| StaticJob {
                rates: vec![cell(2 * at), cell(2 * at + 1)],
                scale: if domain == ShareDomain::Wide { 1 + at as u32 % 2 } else { 1 },
                weight: weight(at),
                iterations: 1000,
            };
            let capacity = if domain == ShareDomain::Wide { vec![2, 1] } else { vec![1, 1] };
            let instance = StaticInstance { capacity, jobs: (0..jobs).map(job).collect() };
            instances.extend(Some(instance).filter(StaticInstance::is_valid));
        }
    }
    instances
}

/// Draws an instance of one to three types and two to six jobs.
fn draw(domain: ShareDomain, random: &mut PythonRandom) -> StaticInstance {
    loop {
        let types = 1 + random.below(3);
        let capacity: Vec<u32> = (0..types).map(|_| 1 + random.below(4) as u32).collect();
        let jobs = (0..2 + random.below(5))
            .map(|_| {
                let base = 1.0 + random.below(20) as f64;
                let rate = |random: &mut PythonRandom| match domain {
                    ShareDomain::Zeros if random.below(3) == 0 => 0.0,
                    _ => base + random.below(20) as f64,
                };
                StaticJob {
                    rates: (0..types).map(|_| rate(random)).collect(),
                    scale: if domain == ShareDomain::Wide { 1 + random.below(2) as u32 } else { 1 },
                    weight: if domain == ShareDomain::Weighted { 1 + random.below(3) as u32 } else { 1 },
                    iterations: 100 * (1 + random.below(50) as u32),
                }
            })
            .collect();
        let instance = StaticInstance { capacity, jobs };
        if instance.is_valid() {
            return instance;
        }
    }
}

/// Searches a counterexample to each of `properties` for one policy. `tick` is called before each instance.
///
/// Errors: a policy with space sharing; that of `tick`.
pub fn search(
    row: &PolicyRow,
    options: &PolicyOptions,
    properties: &[ShareProperty],
    search: ShareSearch,
    tick: &dyn Fn() -> Result<()>,
) -> Result<Vec<ShareFinding>> {
    if row.packing {
        let problem =
            format!("{} shares accelerators; properties are defined for policies without space sharing", row.name);
        return Err(Error::Mismatch { problem });
    }
    let none = |&property: &ShareProperty| ShareFinding { property, instances: 0, unsolved: 0, example: None };
    let mut findings: Vec<ShareFinding> = properties.iter().map(none).collect();
    let mut random = PythonRandom::new(search.seed);
    let grid = grid(search.domain).into_iter();
    let drawn = (0..search.random).map(|_| draw(search.domain, &mut random));
    for instance in grid.chain(drawn) {
        tick()?;
        if findings.iter().all(|finding| finding.example.is_some()) {
            break;
        }
        for finding in findings.iter_mut().filter(|finding| finding.example.is_none()) {
            match instance.judge(row, options, finding.property) {
                Ok((targets, found)) => {
                    finding.instances += 1;
                    let example =
                        found.map(|violation| ShareExample { instance: instance.clone(), targets, violation });
                    finding.example = example.map(|example| reduced(example, row, options));
                }
                Err(Error::Mismatch { .. } | Error::NotConverged { .. }) => finding.unsolved += 1,
                Err(error) => return Err(error),
            }
        }
    }
    Ok(findings)
}

/// Replaces a counterexample by simpler ones as long as the property fails.
fn reduced(mut example: ShareExample, row: &PolicyRow, options: &PolicyOptions) -> ShareExample {
    loop {
        let simpler = example.instance.simpler().into_iter().find_map(|instance| {
            let (targets, found) = instance.judge(row, options, example.violation.property).ok()?;
            Some(ShareExample { instance, targets, violation: found? })
        });
        match simpler {
            Some(simpler) => example = simpler,
            None => return example,
        }
    }
}
