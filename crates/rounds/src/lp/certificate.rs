//! Bounds on the optimum from a solution: a feasible point from below, prices from above.

use super::{Column, Program};

/// The two bounds of an optimum.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DualityGap {
    /// The objective of a feasible point.
    pub below: f64,
    /// A bound from the prices of types (weak duality).
    pub above: f64,
}

impl DualityGap {
    /// Returns the difference of the bounds, relative to the upper one.
    pub fn relative(self) -> f64 {
        if self.above == 0.0 { 0.0 } else { (self.above - self.below) / self.above.abs() }
    }
}

/// Returns bounds on the level of a program without pairs and without constant parts of requirements.
///
/// Below: `x` is cut to at least 0 and scaled until time and capacity suffice; the level is the smallest rate / slope. Above: for prices `p`
/// of the types (from `type_price`, cut to at least 0) each job's cheapest purchase of its requirement costs `cost_i(z)`. The purchases of a
/// feasible level cost at most the value of all accelerators, `sum_j p_j W_j`. `cost_i` is convex and piecewise linear in `z`; the largest
/// `z` is found by Newton's method from above.
pub fn certify(program: &Program, x: &[f64], type_price: &[f64]) -> DualityGap {
    let mut feasible = x.to_vec();
    program.make_feasible(&mut feasible);
    let rates = program.rates(&feasible);
    let slope = |at: usize| program.classes[at].need.map_or(0.0, |need| need.slope);
    let sloped: Vec<usize> = (0..rates.len()).filter(|&at| slope(at) > 0.0).collect();
    let below = sloped.iter().map(|&at| rates[at] / slope(at)).fold(f64::INFINITY, f64::min);

    let price: Vec<f64> = type_price.iter().map(|price| price.max(0.0)).collect();
    let worth: f64 = price.iter().zip(&program.capacity).map(|(price, capacity)| price * capacity).sum();
    let columns_of = |class: usize| program.columns.iter().filter(move |column| column.first.class as usize == class);
    let fastest = |class: usize| columns_of(class).map(|column| column.first.rate).fold(0.0, f64::max);
    let mut level = sloped.iter().map(|&at| fastest(at) / slope(at)).fold(f64::INFINITY, f64::min);
    let offer = |column: &Column| {
        let worker_type = column.worker_type as usize;
        Offer { rate: column.first.rate, cost: column.width * price[worker_type], worker_type: Some(worker_type) }
    };
    let offers: Vec<Vec<Offer>> = sloped.iter().map(|&at| lower_hull(columns_of(at).map(offer).collect())).collect();
    for _ in 0..100 {
        let (mut cost, mut steep) = (0.0, 0.0);
        for (&at, offers) in sloped.iter().zip(&offers) {
            let need = slope(at) * level;
            let next = offers.partition_point(|offer| offer.rate < need).clamp(1, offers.len() - 1);
            let (below, above) = (offers[next - 1], offers[next]);
            let steepness = (above.cost - below.cost) / (above.rate - below.rate);
            cost += program.classes[at].count * (below.cost + steepness * (need - below.rate));
            steep += program.classes[at].count * steepness * slope(at);
        }
        if cost <= worth * (1.0 + 1e-15) || steep <= 0.0 {
            break;
        }
        let next = level - (cost - worth) / steep;
        if next >= level {
            break;
        }
        level = next;
    }
    DualityGap { below, above: level }
}

/// A unit of time of a job on a worker type, or unused.
#[derive(Clone, Copy, Debug)]
pub struct Offer {
    /// The rate.
    pub rate: f64,
    /// The cost at the prices of types.
    pub cost: f64,
    /// The worker type; `None`: unused.
    pub worker_type: Option<usize>,
}

/// Returns the lower convex hull of cost over rate, from rate 0 at cost 0 to the largest rate.
pub fn lower_hull(mut offers: Vec<Offer>) -> Vec<Offer> {
    offers.push(Offer { rate: 0.0, cost: 0.0, worker_type: None });
    offers.sort_by(|a, b| a.rate.total_cmp(&b.rate).then(a.cost.total_cmp(&b.cost)));
    offers.dedup_by(|b, a| a.rate == b.rate);
    let mut hull: Vec<Offer> = Vec::with_capacity(offers.len());
    for offer in offers {
        while let [.., first, second] = hull[..] {
            if (second.cost - first.cost) * (offer.rate - first.rate)
                < (offer.cost - first.cost) * (second.rate - first.rate)
            {
                break;
            }
            hull.pop();
        }
        hull.push(offer);
    }
    hull
}
