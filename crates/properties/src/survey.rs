//! The search: the grid, random instances and climbs; then the shrinking of the findings.
//!
//! Instances are processed in parallel chunks, and their results are used in order, so that the findings do not depend on the number of
//! threads. An instance is solved once for all requirements that it is tried on. Climbs follow for requirements without a finding.

use rayon::prelude::*;

use super::change::{Change, changes};
use super::climb::climb;
use super::counterexample::{Counterexample, in_a_line};
use super::domain::Domain;
use super::draft::Draft;
use super::grid::{InstanceGrid, shapes};
use super::random::{self, Purpose};
use super::shrink::{broken, shrink};
use super::{After, Candidate, Case, Effort, Judgement, Property, Reading, Requirement, judge};
use plimsoll_base::error::{Error, Result};
use plimsoll_fair::{Instance, Tasks};

/// The number of instances per parallel batch.
const CHUNK: usize = 256;

/// The largest number of users in random instances.
const USERS_MOST: usize = 6;

/// The largest number in random instances.
const NUMBER_MOST: u64 = 100;

/// The number of changes tried on a random instance, for each property.
const CHANGES: usize = 40;

/// The instances to search.
#[derive(Clone, Debug)]
pub struct SearchSpace {
    /// The class of instances.
    pub domain: Domain,
    /// The effort of the search.
    pub effort: Effort,
    /// The start of the random streams.
    pub seed: u64,
}

/// The phase that found a counterexample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// All small instances.
    Grid,
    /// Random instances.
    Random,
    /// A climb.
    Climb,
}

/// The verdict on a requirement in a domain.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The requirement.
    pub requirement: Requirement,
    /// The number of instances with a decided case, up to the first violation.
    pub instances: u64,
    /// The number of decided cases. Each lie, leave and growth counts, and so does each step of a climb.
    pub cases: u64,
    /// The number of cases that the policy could not solve.
    pub unsolved: u64,
    /// The reason why the first unsolved case could not be solved.
    pub unsolved_why: Option<String>,
    /// The minimal case that violates the requirement.
    pub counterexample: Option<Counterexample>,
}

impl Finding {
    /// Returns whether some case was decided and none violated the property.
    pub fn holds(&self) -> bool {
        self.counterexample.is_none() && self.cases > 0
    }
}

impl SearchSpace {
    /// Returns the shapes of the grid.
    pub fn shapes(&self) -> Vec<InstanceGrid> {
        shapes(self.domain, self.effort.grid)
    }

    /// Returns the number of instances of the grid and the random draws.
    pub fn instances(&self) -> u64 {
        self.shapes().iter().map(|shape| shape.count() as u64).sum::<u64>() + self.effort.random
    }

    /// Describes the searched instances in words.
    pub fn describe(&self) -> Vec<String> {
        let shape = |shape: &InstanceGrid| format!("{}x{} up to {}", shape.users, shape.resources, shape.most);
        let shapes = self.shapes();
        let count: u128 = shapes.iter().map(InstanceGrid::count).sum();
        let Effort { random, climbs, steps, .. } = self.effort;
        vec![
            format!(
                "all {count} instances on a grid, users x resources with numbers {}",
                shapes.iter().map(shape).collect::<Vec<_>>().join(", ")
            ),
            format!(
                "{random} random instances, up to {USERS_MOST} users and numbers up to {NUMBER_MOST} (seed {})",
                self.seed
            ),
            format!("{climbs} climbs of {steps} steps for each property that still holds"),
        ]
    }
}

/// A decided case.
#[derive(Clone, Debug)]
pub(super) struct JudgedCase {
    pub judgement: Judgement,
    pub instance: Instance,
    pub tasks: Tasks,
    pub after: Option<(Instance, Tasks)>,
}

/// The outcome of judging a case.
pub(super) enum Attempt {
    /// The requirement was decided.
    Decided(Box<JudgedCase>),
    /// The policy has no allocation for the case.
    Unsolved,
    /// The requirement does not apply to the case, or an allocation exceeds the capacity.
    Silent,
}

/// An instance with its allocation, and whether the allocation fits.
struct Solved {
    instance: Instance,
    tasks: Tasks,
    fits: bool,
}

/// Solves an instance; an error message contains the instance.
fn solve(candidate: &Candidate, instance: Result<Instance>) -> std::result::Result<Solved, String> {
    let instance = instance.map_err(|error| error.to_string())?;
    let told = |error: Error| format!("{error} ({})", in_a_line(&instance));
    let tasks = candidate.allocate(&instance).map_err(told)?.tasks;
    let requirement = Requirement { property: Property::Feasibility, reading: Reading::Divisible };
    let judged = judge(requirement, &Case { instance: &instance, tasks: &tasks, after: None });
    Ok(Solved { fits: judged.is_some_and(|judgement| !judgement.broken), instance, tasks })
}

/// Solves one case, and decides a requirement in it.
pub(super) fn attempt(
    candidate: &Candidate,
    requirement: Requirement,
    draft: &Draft,
    change: Option<&Change>,
) -> Attempt {
    match solve(candidate, draft.instance(candidate.resources())) {
        Err(_) => Attempt::Unsolved,
        Ok(solved) => match decide(candidate, requirement, &solved, change) {
            Err(_) => Attempt::Unsolved,
            Ok(None) => Attempt::Silent,
            Ok(Some((judgement, after))) => Attempt::Decided(Box::new(JudgedCase {
                judgement,
                instance: solved.instance,
                tasks: solved.tasks,
                after,
            })),
        },
    }
}

type AttemptResult = Option<(Judgement, Option<(Instance, Tasks)>)>;

fn decide(
    candidate: &Candidate,
    requirement: Requirement,
    truth: &Solved,
    change: Option<&Change>,
) -> std::result::Result<AttemptResult, String> {
    if requirement.property != Property::Feasibility && !truth.fits {
        return Ok(None);
    }
    let case = Case { instance: &truth.instance, tasks: &truth.tasks, after: None };
    let Some(change) = change else {
        return Ok(judge(requirement, &case).map(|judgement| (judgement, None)));
    };
    let then = solve(candidate, change.apply(&truth.instance))?;
    if !then.fits {
        return Ok(None);
    }
    let after = Some(After { change, instance: &then.instance, tasks: &then.tasks });
    Ok(judge(requirement, &Case { after, ..case }).map(|judgement| (judgement, Some((then.instance, then.tasks)))))
}

/// The evaluation of one requirement on one instance.
#[derive(Default)]
struct Evaluation {
    cases: u64,
    unsolved: u64,
    why: Option<String>,
    found: Option<Option<Change>>,
}

impl Evaluation {
    fn unsolved(&mut self, why: &str) {
        self.unsolved += 1;
        if self.why.is_none() {
            self.why = Some(why.to_owned());
        }
    }
}

fn evaluate(
    candidate: &Candidate,
    requirement: Requirement,
    solved: &std::result::Result<Solved, String>,
    changes: Vec<Option<Change>>,
) -> Evaluation {
    let mut evaluation = Evaluation::default();
    match solved {
        Err(why) => evaluation.unsolved(why),
        Ok(solved) => {
            for change in changes {
                match decide(candidate, requirement, solved, change.as_ref()) {
                    Err(why) => evaluation.unsolved(&why),
                    Ok(None) => {}
                    Ok(Some((judgement, _))) => {
                        evaluation.cases += 1;
                        if judgement.broken {
                            evaluation.found = Some(change);
                            break;
                        }
                    }
                }
            }
        }
    }
    evaluation
}

/// The state of one requirement during the search.
struct Open {
    finding: Finding,
    found: Option<(Draft, Option<Change>, Phase)>,
}

impl Open {
    fn record(&mut self, draft: &Draft, evaluation: Evaluation, phase: Phase) {
        self.finding.instances += u64::from(evaluation.cases > 0);
        self.finding.cases += evaluation.cases;
        self.finding.unsolved += evaluation.unsolved;
        if self.finding.unsolved_why.is_none() {
            self.finding.unsolved_why = evaluation.why;
        }
        if let Some(change) = evaluation.found {
            self.found = Some((draft.clone(), change, phase));
        }
    }
}

/// Searches for cases that violate properties. `tick` is called after each batch with its number of instances (0 after the climbs for a
/// requirement), and can end the search with an error. Errors: those of `tick`; instances that a policy cannot solve are counted.
pub fn survey(
    candidate: &Candidate,
    requirements: &[Requirement],
    search: &SearchSpace,
    tick: &(dyn Fn(u64) -> Result<()> + Sync),
) -> Result<Vec<Finding>> {
    let open = |&requirement| Open {
        finding: Finding { requirement, instances: 0, cases: 0, unsolved: 0, unsolved_why: None, counterexample: None },
        found: None,
    };
    let mut open: Vec<Open> = requirements.iter().map(open).collect();
    for shape in search.shapes() {
        let all = |draft: &Draft, requirement: Requirement, _: u64| {
            changes(draft, requirement.property, search.domain, shape.most + 1)
        };
        search_instances(candidate, &mut open, &shape.drafts(), Phase::Grid, &all, tick)?;
    }
    let draw = |number: u64| {
        let mut rng = random::stream(search.seed, Purpose::Draw, search.domain, number);
        random::draft(&mut rng, search.domain, USERS_MOST, NUMBER_MOST)
    };
    let drafts: Vec<Draft> = (0..search.effort.random).map(draw).collect();
    let some = |draft: &Draft, requirement: Requirement, number: u64| {
        // Bit 40 separates these streams from those of the drafts.
        let mut rng = random::stream(search.seed, Purpose::Draw, search.domain, number | 1 << 40);
        random::sample(&mut rng, changes(draft, requirement.property, search.domain, NUMBER_MOST), CHANGES)
    };
    search_instances(candidate, &mut open, &drafts, Phase::Random, &some, tick)?;
    for one in open.iter_mut().filter(|one| one.found.is_none() && one.finding.cases > 0) {
        let requirement = one.finding.requirement;
        let climbs: Vec<_> = (0..search.effort.climbs)
            .into_par_iter()
            .map(|number| climb(candidate, requirement, search.domain, &search.effort, search.seed, number))
            .collect();
        for climbed in climbs {
            one.finding.cases += climbed.cases;
            one.finding.unsolved += climbed.unsolved;
            if let (None, Some((draft, change))) = (&one.found, climbed.found) {
                one.found = Some((draft, change, Phase::Climb));
            }
        }
        tick(0)?;
    }
    Ok(open.into_par_iter().map(|one| finish(candidate, search.domain, one)).collect())
}

fn search_instances(
    candidate: &Candidate,
    open: &mut [Open],
    drafts: &[Draft],
    phase: Phase,
    changes: &(dyn Fn(&Draft, Requirement, u64) -> Vec<Option<Change>> + Sync),
    tick: &(dyn Fn(u64) -> Result<()> + Sync),
) -> Result<()> {
    for (nth, chunk) in drafts.chunks(CHUNK).enumerate() {
        let still: Vec<usize> = (0..open.len()).filter(|&at| open[at].found.is_none()).collect();
        let requirements: Vec<Requirement> = still.iter().map(|&at| open[at].finding.requirement).collect();
        let evaluations: Vec<Vec<Evaluation>> = chunk
            .par_iter()
            .enumerate()
            .map(|(at, draft)| {
                let solved = solve(candidate, draft.instance(candidate.resources()));
                let number = (nth * CHUNK + at) as u64;
                let evaluation = |&requirement: &Requirement| {
                    evaluate(candidate, requirement, &solved, changes(draft, requirement, number))
                };
                requirements.iter().map(evaluation).collect()
            })
            .collect();
        for (draft, evaluations) in chunk.iter().zip(evaluations) {
            for (&at, evaluation) in still.iter().zip(evaluations) {
                if open[at].found.is_none() {
                    open[at].record(draft, evaluation, phase);
                }
            }
        }
        tick(chunk.len() as u64)?;
    }
    Ok(())
}

/// Shrinks the findings.
fn finish(candidate: &Candidate, domain: Domain, open: Open) -> Finding {
    let Open { mut finding, found } = open;
    let requirement = finding.requirement;
    finding.counterexample = found.and_then(|(draft, change, phase)| {
        let (draft, change) = shrink(candidate, requirement, domain, draft, change);
        let judged = broken(candidate, requirement, &draft, change.as_ref())?;
        Some(Counterexample {
            requirement,
            domain,
            phase,
            draft,
            change,
            instance: judged.instance,
            tasks: judged.tasks,
            after: judged.after,
            judgement: judged.judgement,
        })
    });
    finding
}
