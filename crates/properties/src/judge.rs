//! Judges one requirement in one case: whether it is violated, and the margin.

use std::fmt;

use super::view::{Gap, InstanceView, Measured};
use super::{Change, Property, Requirement};
use super::{bottleneck, envy, feasibility, levels, pareto, population, resource, sharing, single, strategy};
use plimsoll_fair::{Exact, Instance, Tasks};

/// The smallest violation that counts for a converged allocation, in dominant shares: a thousand times the error that its certificate
/// leaves open. Exact allocations are decided exactly.
pub const TOLERANCE: f64 = 1e-6;

/// An instance, a mechanism's allocation of it and, for properties that compare two instances, the changed instance.
#[derive(Clone, Copy, Debug)]
pub struct Case<'a> {
    /// The true instance.
    pub instance: &'a Instance,
    /// The allocation.
    pub tasks: &'a Tasks,
    /// The changed instance with its allocation.
    pub after: Option<After<'a>>,
}

/// An instance after a change, with its allocation.
#[derive(Clone, Copy, Debug)]
pub struct After<'a> {
    /// The change.
    pub change: &'a Change,
    /// The changed instance; after a lie, the instance as claimed.
    pub instance: &'a Instance,
    /// The allocation of the changed instance.
    pub tasks: &'a Tasks,
}

/// A number in a judgement.
#[derive(Clone, Debug, PartialEq)]
pub enum JudgedNumber {
    /// An exact value.
    Exact(Exact),
    /// A value within the solver's tolerance.
    Float(f64),
}

impl JudgedNumber {
    /// Returns the nearest float.
    pub fn float(&self) -> f64 {
        match self {
            JudgedNumber::Exact(value) => value.to_f64(),
            JudgedNumber::Float(value) => *value,
        }
    }
}

impl fmt::Display for JudgedNumber {
    /// Formats a fraction such as `45/11`, or a float with at most six decimals.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JudgedNumber::Exact(value) => value.fmt(f),
            JudgedNumber::Float(value) => {
                let text = format!("{value:.6}");
                f.write_str(text.trim_end_matches('0').trim_end_matches('.'))
            }
        }
    }
}

/// Whether a property holds in a case, and the margin.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// Whether the property is violated.
    pub broken: bool,
    /// The shortfall of the worst-off user, as a part of the tasks it could run alone (its dominant share); at most 0 if the property
    /// holds.
    pub amount: f64,
    /// The worst-off user, as an index into the users of the first instance.
    pub loser: Option<usize>,
    /// The other user (envy, the one-task bound, max-min fairness of whole tasks) or the resource (feasibility, max-min fairness of
    /// divisible tasks) of the comparison.
    pub other: Option<usize>,
    /// The amount that the worst-off user has: tasks, or its level if whole tasks are compared by level; for feasibility the capacity.
    pub worse: JudgedNumber,
    /// The amount that it should have: tasks, or the level of the user ahead; for feasibility the allocated amount.
    pub better: JudgedNumber,
}

/// Judges a requirement in a case; `None` if the property does not apply (such as bottleneck fairness if users need different resources
/// most).
///
/// Exact tasks are decided exactly, others with [`TOLERANCE`]. Properties that compare two instances need `after`. If an allocation exceeds
/// the capacity, its amounts are judged as claimed; check feasibility first.
pub fn judge(requirement: Requirement, case: &Case) -> Option<Judgement> {
    let after = case.after.as_ref();
    match (case.tasks.exact(), after.map(|after| after.tasks.exact())) {
        (Some(tasks), None) => decide(requirement, case, tasks.to_vec(), None),
        (Some(tasks), Some(Some(then))) => decide(requirement, case, tasks.to_vec(), Some(then.to_vec())),
        _ => decide(requirement, case, case.tasks.floats(), after.map(|after| after.tasks.floats())),
    }
}

fn decide<N: Measured>(
    requirement: Requirement,
    case: &Case,
    tasks: Vec<N>,
    then: Option<Vec<N>>,
) -> Option<Judgement> {
    let view = InstanceView::new(case.instance, tasks, requirement.reading);
    let other =
        case.after.zip(then).map(|(after, then)| (after, InstanceView::new(after.instance, then, requirement.reading)));
    let gap: Option<Gap<N>> = match (requirement.property, &other) {
        (Property::Feasibility, _) => feasibility::gap(&view),
        (Property::SharingIncentive, _) => sharing::gap(&view),
        (Property::EnvyFreeness, _) => envy::gap(&view),
        (Property::ParetoEfficiency, _) => pareto::gap(&view),
        (Property::SingleResource, _) => single::gap(&view),
        (Property::Bottleneck, _) => bottleneck::gap(&view),
        (Property::Levels, _) => levels::gap(&view),
        (Property::StrategyProofness, Some((After { change: Change::Claim { user, .. }, .. }, lie))) => {
            strategy::gap(&view, *user, lie)
        }
        (Property::Population, Some((After { change: Change::Leave { user }, .. }, rest))) => {
            population::gap(&view, *user, rest)
        }
        (Property::Resource, Some((After { change: Change::Grow { .. }, .. }, more))) => resource::gap(&view, more),
        (Property::StrategyProofness | Property::Population | Property::Resource, _) => None,
    };
    gap.map(|gap| Judgement {
        broken: gap.margin > N::tolerance(),
        amount: gap.margin.float(),
        loser: gap.loser,
        other: gap.other,
        worse: gap.worse.value(),
        better: gap.better.value(),
    })
}
