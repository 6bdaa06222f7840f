//! Required rates at prices of worker types: the cheapest purchases of jobs, and their combination within the capacities.

use plimsoll_base::error::Result;

use super::certificate::{Offer, lower_hull};
use super::dense::Dense;
use super::interior::{GAP, follow, not_converged, start};
use super::sparse::Sparse;

/// The largest accepted error of the program of purchases. It costs accuracy of the dual values only: the factors are made feasible, and their
/// sum shows the missing part.
const ACCEPTED: f64 = 1e-6;

/// The price of a type is 0 if the value of its accelerators is a smaller part of that of all. The solver has this accuracy.
const MIN_VALUE: f64 = 1e-9;

/// The cheapest purchase of each rate for each job, at prices of worker types.
pub struct PricedRates {
    price: Vec<f64>,
    /// The hulls of all jobs; that of job `i` starts at `start[i]` and ends at `start[i + 1]`.
    offers: Vec<Offer>,
    start: Vec<usize>,
}

impl PricedRates {
    /// Computes the purchases of `jobs` jobs on the types `usable`. A unit of time of job `i` on type `j` costs `width(i) * price[j]`.
    pub fn new(
        price: Vec<f64>,
        jobs: usize,
        usable: &[usize],
        rate: &dyn Fn(usize, usize) -> f64,
        width: &dyn Fn(usize) -> f64,
    ) -> PricedRates {
        let (mut offers, mut start) = (Vec::with_capacity(jobs * (usable.len() + 1)), vec![0]);
        for job in 0..jobs {
            let offer = |&j: &usize| Offer { rate: rate(job, j), cost: width(job) * price[j], worker_type: Some(j) };
            // Time at rate 0 is not purchased, also where it costs nothing.
            let useful = usable.iter().filter(|&&j| rate(job, j) > 0.0);
            offers.extend(lower_hull(useful.map(offer).collect()));
            start.push(offers.len());
        }
        PricedRates { price, offers, start }
    }

    /// Returns the prices of the types.
    pub fn price(&self) -> &[f64] {
        &self.price
    }

    /// Returns the two offers around a positive rate of a job, and the part of the second.
    fn around(&self, job: usize, rate: f64) -> (Offer, Offer, f64) {
        let offers = &self.offers[self.start[job]..self.start[job + 1]];
        let next = offers.partition_point(|offer| offer.rate < rate).clamp(1, offers.len() - 1);
        let (below, above) = (offers[next - 1], offers[next]);
        (below, above, ((rate - below.rate) / (above.rate - below.rate)).min(1.0))
    }

    /// Returns the least cost of a rate of a job. The job has a positive rate on a type.
    pub fn cost(&self, job: usize, rate: f64) -> f64 {
        let (below, above, part) = self.around(job, rate);
        below.cost + (above.cost - below.cost) * part
    }

    /// Calls `visit(type, time)` for the cheapest purchase of a rate of a job.
    pub fn shares(&self, job: usize, rate: f64, mut visit: impl FnMut(usize, f64)) {
        let (below, above, part) = self.around(job, rate);
        for (offer, time) in [(below, 1.0 - part), (above, part)] {
            if let Some(j) = offer.worker_type.filter(|_| time > 0.0) {
                visit(j, time);
            }
        }
    }

    /// Returns the accelerators of each type that the cheapest purchases of `rates` occupy.
    pub fn usage(&self, rates: &[f64], types: usize, width: &dyn Fn(usize) -> f64) -> Vec<f64> {
        let mut usage = vec![0.0; types];
        for (job, &rate) in rates.iter().enumerate().filter(|(_, rate)| **rate > 0.0) {
            self.shares(job, rate, |j, time| usage[j] += width(job) * time);
        }
        usage
    }
}

/// Returns factors of `usages` with the largest sum, so that the total usage is within the capacities, and the dual values of the capacities.
///
/// Types without capacity have no usage. Errors: [`plimsoll_base::error::Error::NotConverged`].
pub fn largest_packing(usages: &[Vec<f64>], capacity: &[f64]) -> Result<(Vec<f64>, Vec<f64>)> {
    let (k, n) = (usages.len(), capacity.len());
    let entries = |usage: &Vec<f64>| {
        let used = usage.iter().zip(capacity).zip(0..).filter(|((_, capacity), _)| **capacity > 0.0);
        used.map(|((used, capacity), row)| (row, used / capacity)).collect()
    };
    let columns = usages.iter().map(entries).collect();
    let form = Sparse { columns, sign: vec![1.0; n], limits: n, level: false };
    let mut cost = vec![-1.0; k];
    cost.resize(k + n, 0.0);
    let (weight, bound) = (vec![1.0; k + n], vec![1.0; n]);
    let from = start(&form, &bound);
    let point = follow(&form, (&cost, &weight, &bound), from, GAP, &mut Dense::default())?;
    if point.error > ACCEPTED {
        return Err(not_converged(&format!("relative error {:.1e} of the program of purchases", point.error)));
    }
    let mut parts: Vec<f64> = point.x[..k].iter().map(|x| x.max(0.0)).collect();
    let total = |row: usize| parts.iter().zip(usages).map(|(part, usage)| part * usage[row]).sum::<f64>();
    let over = (0..n).filter(|&row| capacity[row] > 0.0).map(|row| total(row) / capacity[row]).fold(1.0, f64::max);
    parts.iter_mut().for_each(|part| *part /= over);
    let value: Vec<f64> = point.y.iter().map(|y| (-y).max(0.0)).collect();
    let all: f64 = value.iter().sum();
    let price = |(value, capacity): (&f64, &f64)| {
        if *capacity > 0.0 && *value > MIN_VALUE * all { value / capacity } else { 0.0 }
    };
    let price = value.iter().zip(capacity).map(price).collect();
    Ok((parts, price))
}
