//! Water filling of entities with FIFO inside, with few linear programs.
//!
//! The rule is that of `water_filling.rs`: the first job of each entity that is not final rises, and a job is final when no feasible
//! allocation gives it more while all others keep their levels. Between two capacity limits this needs no program: a job rises to the
//! rate of its fastest type, then the next job of its entity starts. So the required rates are known functions of the common `time` of the
//! filling ([`Course`]), and only the largest feasible time is unknown.
//!
//! For prices `p >= 0` of the types let `c_i(p, r)` be the least cost of the rate `r` for job `i` with one unit of time. Rates `r` are feasible
//! if and only if `sum_i c_i(p, r_i) <= sum_j p_j W_j` for all `p` (linear programming duality). For each `p` the time at which both sides are
//! equal is an upper bound. The cheapest purchases at the prices of earlier steps form a small program, with one variable for each of
//! them and one row per type: either a convex combination of them fits into the cluster, which is an allocation with the required rates, or its
//! dual values are the prices of the next step (cutting planes of Kelley 1960, column generation of Dantzig and Wolfe 1960).
//!
//! The types with a positive price at the largest feasible time are then *saturated*: a job is final if its rate is at least that of its
//! fastest type that is not saturated. Prices that block a job have a positive price of a type that was not saturated before, so there are at
//! most as many phases as types.

use std::collections::BTreeMap;

use plimsoll_base::error::{Error, Result};

use super::View;
use super::fractions::{Formulation, Fractions};
use crate::lp::{PricedRates, largest_packing};

/// Required rates are feasible if a combination of purchases has at least this part of them.
const FEASIBLE: f64 = 1.0 - 1e-11;
/// A smaller part at the last step is an error. With nearly equal rates the duals are not exact enough for more.
const ACCEPTED: f64 = 1.0 - 1e-6;
/// A smaller violation, relative to the value of all accelerators, is rounding.
const ROUNDING: f64 = 1e-12;
/// The largest number of steps per phase.
const MAX_STEPS: usize = 400;
/// A type is saturated if its share of the value of all accelerators is above this value and it is full. Smaller dual values can be those of
/// types with room, because the solver is not exact.
const MIN_PRICE: f64 = 1e-3;
/// A type is full if jobs use at least this part.
const FULL: f64 = 1.0 - 1e-8;
/// A job is final if its rate is within this relative distance of its limit.
const AT_LIMIT: f64 = 1e-9;

/// The rise of one job while it is the first job of its entity that is not final.
#[derive(Clone, Copy)]
struct Rise {
    job: usize,
    /// The time at which it begins and ends.
    begin: f64,
    end: f64,
    /// The rate at the begin and at the end.
    from: f64,
    to: f64,
}

impl Rise {
    fn rate(&self, time: f64) -> f64 {
        match time {
            time if time >= self.end => self.to,
            time => (self.from + (self.to - self.from) * (time - self.begin) / (self.end - self.begin)).max(self.from),
        }
    }
}

/// The rises of each entity up to the next capacity limit.
struct Course(Vec<Vec<Rise>>);

impl Course {
    fn end(&self) -> f64 {
        self.0.iter().filter_map(|rises| rises.last()).map(|rise| rise.end).fold(0.0, f64::max)
    }

    /// Raises `rates` to those at a time.
    fn advance(&self, rates: &mut [f64], time: f64) {
        for rise in self.0.iter().flatten().filter(|rise| rise.begin < time) {
            rates[rise.job] = rise.rate(time);
        }
    }
}

/// Fills levels of entities with FIFO inside. Returns the fractions and the level (normalised throughput) of each job.
///
/// `rate(job, type)` are the rates, `norm` those of level 1. Levels are exact to about 1e-9, unless the rates of a job on two types are nearly
/// equal. The fractions can then miss the levels by up to 1e-6, and an error of a rate lets other jobs have much more or less time: in the
/// worst instance found, with differences of 1e-8, a level is wrong by 2. Errors: [`Error::NotConverged`].
pub(super) fn fill_entities(
    view: &View<'_>,
    rate: &dyn Fn(usize, usize) -> f64,
    norm: &[f64],
    entity_weight: &dyn Fn(u32) -> f64,
) -> Result<(Fractions, Vec<f64>)> {
    let (m, n) = (view.jobs.len(), view.capacity.len());
    let mut entities: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    (0..m).for_each(|at| entities.entry(view.jobs[at].entity).or_default().push(at));
    let mut rates = vec![0.0; m];
    let capacity: Vec<f64> = view.capacity.iter().map(|&count| f64::from(count)).collect();
    let usable: Vec<usize> = (0..n).filter(|&j| view.capacity[j] > 0).collect();
    let mut saturated: Vec<bool> = view.capacity.iter().map(|&count| count == 0).collect();
    let width = |at: usize| f64::from(view.jobs[at].scale);
    let priced = |price: Vec<f64>| PricedRates::new(price, m, &usable, rate, &width);
    let all = capacity.iter().sum::<f64>();
    let mut purchases = vec![priced(vec![1.0 / all; n])];
    let mut parts = vec![0.0];
    let mut full = vec![false; n];
    loop {
        let limit = |at: usize| (0..n).filter(|&j| !saturated[j]).map(|j| rate(at, j)).fold(0.0, f64::max);
        let course = |(&entity, jobs): (&u32, &Vec<usize>)| {
            let (weight, mut begin) = (entity_weight(entity), 0.0);
            let mut rises = Vec::new();
            for &job in jobs.iter().filter(|_| weight > 0.0) {
                let (from, to) = (rates[job], limit(job));
                if from < to * (1.0 - AT_LIMIT) {
                    let speed = weight / width(job) * norm[job];
                    let end = begin + (to - from) / speed;
                    rises.push(Rise { job, begin, end, from, to });
                    begin = end;
                }
            }
            rises
        };
        let course = Course(entities.iter().map(course).collect());
        let mut time = course.end();
        if time <= 0.0 {
            break;
        }
        let before = rates.clone();
        // The prices of the least bound.
        let mut least: Option<usize> = None;
        for (at, own) in purchases.iter().enumerate() {
            if let Some(earlier) = latest(&course, &before, own, &capacity, time) {
                (time, least) = (earlier, Some(at));
            }
        }
        for step in 0.. {
            rates.clone_from(&before);
            course.advance(&mut rates, time);
            let usages: Vec<Vec<f64>> = purchases.iter().map(|own| own.usage(&rates, n, &width)).collect();
            let (packed, price) = largest_packing(&usages, &capacity)?;
            let sum: f64 = packed.iter().sum();
            parts = packed;
            for j in 0..n {
                let used: f64 = usages.iter().zip(&parts).map(|(usage, part)| usage[j] * part).sum();
                full[j] = used >= capacity[j] * FULL * sum.max(1.0);
            }
            if sum >= FEASIBLE {
                break;
            }
            let own = priced(price);
            let earlier = latest(&course, &before, &own, &capacity, time).filter(|&earlier| earlier < time);
            // Purchases that are not cheaper than the known ones do not change the program.
            let worth = |usage: &[f64]| usage.iter().zip(own.price()).map(|(used, price)| used * price).sum::<f64>();
            let known = usages.iter().map(|usage| worth(usage)).fold(f64::INFINITY, f64::min);
            let stalled = earlier.is_none() && worth(&own.usage(&rates, n, &width)) >= known * FEASIBLE;
            let ends = stalled || step == MAX_STEPS;
            if ends && sum < ACCEPTED {
                let problem = format!("the required rates are feasible up to a factor of {sum}");
                return Err(Error::NotConverged { solver: "filling of entities".to_owned(), problem });
            }
            if ends {
                break;
            }
            if let Some(earlier) = earlier {
                (time, least) = (earlier, Some(purchases.len()));
            }
            purchases.push(own);
        }
        let Some(least) = least else { break };
        let value = |j: usize| purchases[least].price()[j] * capacity[j];
        let open: Vec<usize> = (0..n).filter(|&j| !saturated[j]).collect();
        // At least one more type, whatever the rounding of prices. Full types come first.
        let by_value = |a: &&usize, b: &&usize| full[**a].cmp(&full[**b]).then(value(**a).total_cmp(&value(**b)));
        let Some(&dearest) = open.iter().max_by(by_value) else { break };
        let all: f64 = (0..n).map(value).sum();
        open.iter().filter(|&&j| full[j] && value(j) > MIN_PRICE * all).for_each(|&j| saturated[j] = true);
        saturated[dearest] = true;
    }
    let mut fractions = Fractions { formulation: Formulation::Prices, surplus: Vec::new(), ..Fractions::zero(m, n) };
    let factor = 1.0 / parts.iter().sum::<f64>().max(1.0);
    for (own, part) in purchases.iter().zip(&parts).filter(|(_, part)| **part > 0.0) {
        for (at, &rate) in rates.iter().enumerate().filter(|(_, rate)| **rate > 0.0) {
            own.shares(at, rate, |j, x| fractions.alone[at * n + j] += x * part * factor);
        }
    }
    Ok((fractions, rates.iter().zip(norm).map(|(rate, norm)| rate / norm).collect()))
}

/// Returns the latest time at which the rates of the course cost at most the value of all accelerators; `None` if `time` is not later.
fn latest(course: &Course, before: &[f64], prices: &PricedRates, capacity: &[f64], time: f64) -> Option<f64> {
    let worth: f64 = prices.price().iter().zip(capacity).map(|(price, capacity)| price * capacity).sum();
    let kept: f64 = (0..before.len()).filter(|&at| before[at] > 0.0).map(|at| prices.cost(at, before[at])).sum();
    // Rounding can raise the cost of the rates of earlier phases above the value of all accelerators.
    let worth = if kept <= worth / ACCEPTED { worth.max(kept) } else { worth };
    // The cost of each entity before each rise, less that of the rise's first rate.
    let spent = |rises: &Vec<Rise>| {
        let mut sum = 0.0;
        let entry = |rise: &Rise| {
            let from = prices.cost(rise.job, rise.from);
            let earlier = sum - from;
            sum += prices.cost(rise.job, rise.to) - from;
            earlier
        };
        rises.iter().map(entry).collect::<Vec<f64>>()
    };
    let spent: Vec<Vec<f64>> = course.0.iter().map(spent).collect();
    let excess = |time: f64| {
        let of_entity = |(rises, spent): (&Vec<Rise>, &Vec<f64>)| {
            let at = rises.partition_point(|rise| rise.begin < time).checked_sub(1)?;
            Some(spent[at] + prices.cost(rises[at].job, rises[at].rate(time)))
        };
        kept + course.0.iter().zip(&spent).filter_map(of_entity).sum::<f64>() - worth
    };
    if excess(time) <= worth * ROUNDING {
        return None;
    }
    let (mut low, mut high) = (0.0, time);
    loop {
        let middle = low + (high - low) / 2.0;
        if middle <= low || middle >= high {
            return Some(low);
        }
        if excess(middle) <= 0.0 { low = middle } else { high = middle }
    }
}

#[cfg(test)]
mod tests;
