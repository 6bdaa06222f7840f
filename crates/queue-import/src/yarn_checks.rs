//! The rules of YARN's capacity scheduler for the capacities of sibling queues.
//!
//! The percentages of siblings must sum to 100 (within 0.05 %), their resources must fit the resources of the parent, and all siblings must
//! use one unit. The import refuses a configuration that YARN refuses, with the location of the capacity.
//!
//! Source: Hadoop YARN, `ParentQueue.setChildQueues` (3.4), and docs of the CapacityScheduler.

use crate::group::{Queues, Setting};
use crate::quantity::Quantities;
use crate::yarn::ROOT;
use plimsoll_base::error::Result;
use plimsoll_base::tree::{Place, brief};
use plimsoll_base::units::Dim;

/// The capacity of a queue, and its location.
pub enum Capacity<'n> {
    /// No capacity, which means 0 %.
    Absent,
    /// A percentage in hundredths of a percent, rounded to the nearest.
    Percent(u64, &'n Place),
    Weight(&'n Place),
    Amounts(&'n Place),
}

/// The unit of a capacity.
#[derive(Clone, Copy, PartialEq)]
enum CapacityUnit {
    Percent,
    Weight,
    Absolute,
}

impl CapacityUnit {
    fn words(self) -> &'static str {
        match self {
            CapacityUnit::Percent => "a percentage",
            CapacityUnit::Weight => "a weight",
            CapacityUnit::Absolute => "resources",
        }
    }
}

/// 100 % in hundredths of a percent.
const WHOLE: u64 = 10_000;
/// The maximum deviation of a sum: 0.05 %, as in YARN.
const PRECISION: u64 = 5;

/// Converts a percentage from 0 to 100 to hundredths of a percent.
pub fn hundredths(setting: &Setting) -> u64 {
    let Setting::Number(digits) = setting else { return 0 };
    digits.parse::<f64>().map_or(0, |percent| (percent * 100.0).round() as u64)
}

impl<'n> Capacity<'n> {
    /// Returns the unit that the capacity requires for its siblings; `None` for 0 %, which is compatible with all units.
    fn unit(&self) -> Option<(CapacityUnit, &'n Place)> {
        match self {
            Capacity::Absent | Capacity::Percent(0, _) => None,
            Capacity::Percent(_, place) => Some((CapacityUnit::Percent, place)),
            Capacity::Weight(place) => Some((CapacityUnit::Weight, place)),
            Capacity::Amounts(place) => Some((CapacityUnit::Absolute, place)),
        }
    }

    fn place(&self) -> Option<&'n Place> {
        match self {
            Capacity::Absent => None,
            Capacity::Percent(_, place) | Capacity::Weight(place) | Capacity::Amounts(place) => Some(place),
        }
    }
}

/// Checks the queues under each parent. `zeros` and `root` are the values of `allow-zero-capacity-sum` for the queues and for the root.
///
/// Errors: percentages that do not sum to 100, resources that sum to more than the resources of the parent, and siblings with capacities
/// in different units.
pub fn check(queues: &Queues, all: &[Capacity], paths: &[String], zeros: &[bool], root: bool) -> Result<()> {
    for parent in std::iter::once(None).chain((0..all.len()).map(Some)) {
        let children: Vec<usize> = (0..all.len()).filter(|at| queues.groups[*at].parent == parent).collect();
        if children.is_empty() {
            continue;
        }
        let name = parent.map_or(ROOT, |at| &paths[at]);
        let unit = unit_of(all, &children, paths)?;
        let above = parent.and_then(|at| all[at].unit()).map(|(unit, _)| unit);
        let place = || children.iter().find_map(|at| all[*at].place()).unwrap_or(&queues.groups[children[0]].place);
        if parent.is_some() && (unit == CapacityUnit::Absolute) != (above == Some(CapacityUnit::Absolute)) {
            let which = match unit {
                CapacityUnit::Absolute => "have resources as capacities, and the queue itself does not",
                _ => "do not have resources as capacities, and the queue itself does",
            };
            let problem = format!("the queues under '{}' {which}; expected both or none", brief(name));
            return Err(place().wrong("capacity", problem));
        }
        if let (CapacityUnit::Absolute, Some(at)) = (unit, parent) {
            amounts(queues, at, &children, name, place())?;
        }
        if unit == CapacityUnit::Percent {
            let zero = parent.map_or(root, |at| zeros[at]);
            let own = if parent.is_none() { Some(CapacityUnit::Percent) } else { above };
            // With `allow-zero-capacity-sum` the sum may be 0 or 100.
            let own = own.filter(|unit| !zero || *unit != CapacityUnit::Percent);
            sum(all, &children, name, own, zero, place())?;
        }
    }
    Ok(())
}

/// Returns the unit of the capacities of some siblings. Errors: they have different units.
fn unit_of(all: &[Capacity], children: &[usize], paths: &[String]) -> Result<CapacityUnit> {
    let mut found: Option<(CapacityUnit, usize)> = None;
    for (at, (unit, place)) in children.iter().filter_map(|at| Some((*at, all[*at].unit()?))) {
        match found {
            Some((first, sibling)) if first != unit => {
                let (own, other, sibling) = (unit.words(), first.words(), brief(&paths[sibling]));
                let problem = format!(
                    "'{}' has {own}, and its sibling '{sibling}' has {other}; expected one of the two for all queues of a parent",
                    brief(&paths[at])
                );
                return Err(place.wrong("capacity", problem));
            }
            _ => found = found.or(Some((unit, at))),
        }
    }
    Ok(found.map_or(CapacityUnit::Percent, |(unit, _)| unit))
}

/// Checks the sum of the percentages under a queue. `own` is the unit of the queue's own capacity, `None` for 0 %. The sum must be 100.
/// YARN also accepts a sum of 0 under a queue with a weight or 0 %, or with `allow-zero-capacity-sum`. Errors: any other sum.
fn sum(
    all: &[Capacity],
    children: &[usize],
    name: &str,
    own: Option<CapacityUnit>,
    zero: bool,
    place: &Place,
) -> Result<()> {
    let percent = |at: &usize| if let Capacity::Percent(hundredths, _) = all[*at] { hundredths } else { 0 };
    let sum: u64 = children.iter().map(percent).sum();
    let is_zero = sum <= PRECISION && own != Some(CapacityUnit::Percent);
    let is_whole = sum.abs_diff(WHOLE) <= PRECISION && (own.is_some() || zero);
    if is_zero || is_whole {
        return Ok(());
    }
    let expected = if own.is_some() || zero { "100 %" } else { "0 %, as the queue itself has" };
    let problem = format!(
        "the capacities of the queues under '{}' sum to {} %; expected {expected}",
        brief(name),
        plimsoll_base::units::trim_float(sum as f64 / 100.0)
    );
    Err(place.wrong("capacity", problem))
}

/// Checks the sums of the resources under a queue: by memory alone, or by all resources, as YARN's resource calculator compares them while
/// the cluster has no nodes. YARN ignores capacities without memory. Errors: a resource sums to more than the queue's amount, and no
/// resource sums to less.
fn amounts(queues: &Queues, parent: usize, children: &[usize], name: &str, place: &Place) -> Result<()> {
    let has_memory =
        |amounts: &&Quantities| amounts.dims().any(|dim| dim.name == "memory" && amounts.get(dim) != Some(0));
    let of = |at: &usize| match queues.groups[*at].get("guarantee") {
        Some(Setting::Amounts(amounts)) => Some(amounts).filter(has_memory),
        _ => None,
    };
    if of(&parent).is_none() {
        return Ok(());
    }
    let memory_alone = queues.policy.contains(&("resources", Setting::Word("memory")));
    let mut dims: Vec<&Dim> =
        std::iter::once(&parent).chain(children).filter_map(of).flat_map(Quantities::dims).collect();
    dims.retain(|dim| !memory_alone || dim.name == "memory");
    let amount = |at: &usize, dim: &Dim| of(at).and_then(|amounts| amounts.get(dim)).unwrap_or(0);
    let sum = |dim: &Dim| children.iter().fold(0, |sum, at| amount(at, dim).saturating_add(sum));
    if dims.iter().any(|dim| sum(dim) < amount(&parent, dim)) {
        return Ok(());
    }
    let Some(dim) = dims.iter().find(|dim| sum(dim) > amount(&parent, dim)) else { return Ok(()) };
    let (sum, own) = (dim.display(sum(dim)), dim.display(amount(&parent, dim)));
    let problem = format!(
        "the resources of the queues under '{}' sum to {sum} of {}; expected at most {own}, which the queue itself has",
        brief(name),
        dim.name
    );
    Err(place.wrong("capacity", problem))
}
