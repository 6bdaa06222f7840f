//! One case, one promise: kept or broken, and by how much.

use std::fmt;

use super::view::{Gap, InstanceView, Measured};
use super::{Change, Property, Requirement};
use super::{bottleneck, envy, feasibility, levels, pareto, population, resource, sharing, single, strategy};
use plimsoll_fair::{Exact, Instance, Tasks};

/// By how many dominant shares a converged allocation must break a promise for it to count: a thousand times the error
/// that its certificate leaves open. Exact allocations are decided exactly.
pub const TOLERANCE: f64 = 1e-6;

/// An instance, a mechanism's allocation of it, and the other world where the property compares two.
#[derive(Clone, Copy, Debug)]
pub struct Case<'a> {
    /// The truth.
    pub instance: &'a Instance,
    /// The allocation.
    pub tasks: &'a Tasks,
    /// The other world.
    pub after: Option<After<'a>>,
}

/// The world after a change.
#[derive(Clone, Copy, Debug)]
pub struct After<'a> {
    /// The change.
    pub change: &'a Change,
    /// The changed instance; after a lie, the claimed one.
    pub instance: &'a Instance,
    /// The allocation there.
    pub tasks: &'a Tasks,
}

/// A number in a judgement.
#[derive(Clone, Debug, PartialEq)]
pub enum JudgedNumber {
    /// Without rounding.
    Exact(Exact),
    /// To the solver's tolerance.
    Float(f64),
}

impl JudgedNumber {
    /// The nearest float.
    pub fn float(&self) -> f64 {
        match self {
            JudgedNumber::Exact(value) => value.to_f64(),
            JudgedNumber::Float(value) => *value,
        }
    }
}

impl fmt::Display for JudgedNumber {
    /// `45/11`, or a float with six digits after the point at most.
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
    /// Whether it is broken.
    pub broken: bool,
    /// How much the worst-off user lacks, as a part of the tasks it could run alone (its dominant share); up to 0 when
    /// kept.
    pub amount: f64,
    /// The worst off, as an index into the users of the first instance.
    pub loser: Option<usize>,
    /// The user (envy, the one-task bound) or resource (feasibility, bottlenecks) that it is about.
    pub other: Option<usize>,
    /// The amount that the worst-off user has: tasks; for feasibility the capacity.
    pub worse: JudgedNumber,
    /// The amount that it would have: tasks; for feasibility the amount given away.
    pub better: JudgedNumber,
}

/// Decides a promise in a case; `None` where the property says nothing about it (such as bottleneck fairness where
/// users need different resources most).
///
/// Exactly for exact tasks, else with [`TOLERANCE`]. Properties of two worlds need `after`. The amounts of a mechanism
/// that gives away more than there is are judged as claimed; check feasibility first.
pub fn judge(promise: Requirement, case: &Case) -> Option<Judgement> {
    let after = case.after.as_ref();
    match (case.tasks.exact(), after.map(|after| after.tasks.exact())) {
        (Some(tasks), None) => decide(promise, case, tasks.to_vec(), None),
        (Some(tasks), Some(Some(then))) => decide(promise, case, tasks.to_vec(), Some(then.to_vec())),
        _ => decide(promise, case, case.tasks.floats(), after.map(|after| after.tasks.floats())),
    }
}

fn decide<N: Measured>(promise: Requirement, case: &Case, tasks: Vec<N>, then: Option<Vec<N>>) -> Option<Judgement> {
    let view = InstanceView::new(case.instance, tasks, promise.reading);
    let other =
        case.after.zip(then).map(|(after, then)| (after, InstanceView::new(after.instance, then, promise.reading)));
    let gap: Option<Gap<N>> = match (promise.property, &other) {
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
