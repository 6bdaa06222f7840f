//! Fits the slowdown of Figures 9 to 12 of the DRF paper (Ghodsi et al., NSDI 2011, section 7.2): `cargo run --release --example
//! fit_slowdown`.
//!
//! The paper does not specify the slowdown of tasks on a machine with over-committed memory, nor the placement of tasks. This program fits
//! both. The slowdown is a curve of three points: a load at which it starts, and two loads with factors (five numbers). Tasks are slowed
//! down equally or in proportion to their memory. The placement is one of four rules.
//!
//! The best curve has the smallest root mean square of ln(ours / paper) over the figures' 24 numbers, so that a factor of two up or down
//! has the same weight, and large deviations have the largest weight. The first half of the draws is random, the second half is near the
//! best curve so far. At the end the best curve is compared with the plan's curve, on seeds that were used for neither fit.

use std::path::Path;

use plimsoll::books::Weights;
use plimsoll::cluster::Cluster;
use plimsoll::engine;
use plimsoll::error::Result;
use plimsoll::experiment::{Plan, Supply, WorkloadPlan};
use plimsoll::policy::{BUILT_IN, Registry, Setup};
use plimsoll::record::{JobRecord, Recorder};
use plimsoll::units::UserId;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// The numbers of the paper's figures for each scheme: large jobs (9) and small jobs (10) completed in ten minutes, and the mean completion
/// times of large (11) and small jobs (12) in seconds.
pub const PAPER: [(&str, [f64; 4]); 6] = [
    ("drf", [35.0, 91.0, 65.0, 25.0]),
    ("slot:3", [33.0, 37.0, 69.0, 61.0]),
    ("slot:4", [30.0, 61.0, 72.0, 39.0]),
    ("slot:5", [17.0, 66.0, 123.0, 35.0]),
    ("slot:6", [8.0, 35.0, 196.0, 56.0]),
    ("only:cpu", [13.0, 94.0, 173.0, 25.0]),
];

/// The seeds for fitting curves; those of the plan are 1 to 10.
const SEEDS: [u64; 2] = [1001, 1002];

/// Seeds that were not used for fitting: the best of many curves on two seeds is overfitted to them.
pub const HELD_OUT: [u64; 10] = [2001, 2002, 2003, 2004, 2005, 2006, 2007, 2008, 2009, 2010];

/// The fitted parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// Loads and factors of the three points; the first factor is 1.
    pub points: [(f64, f64); 3],
    /// Whether tasks are slowed down in proportion to their memory.
    pub by_size: bool,
    /// The placement rule.
    pub placement: &'static str,
}

/// The candidate placement rules.
const PLACEMENTS: [&str; 4] = ["best-fit", "first-fit", "worst-fit", "spread"];

impl Curve {
    /// Draws a random curve: it begins at a load of 0.9 to 1.2, rises by up to 20-fold within 0.03 to 0.4 of load, and by up to 7-fold
    /// within another 0.03 to 0.4.
    fn blind(rng: &mut ChaCha8Rng) -> Curve {
        let mut between = |low: f64, high: f64| low + (high - low) * rng.random::<f64>();
        let (first, second, third) = (between(0.9, 1.2), between(0.03, 0.4), between(0.03, 0.4));
        let (rise, more) = (between(0.0, 3.0).exp(), between(0.0, 2.0).exp());
        let points = [(first, 1.0), (first + second, rise), (first + second + third, rise * more)];
        let placement = PLACEMENTS[rng.random_range(0..PLACEMENTS.len())];
        Curve { points, by_size: rng.random(), placement }.rounded()
    }

    /// Draws a curve near this one, with the same `by_size` and placement rule.
    fn near(&self, rng: &mut ChaCha8Rng) -> Curve {
        let mut between = |low: f64, high: f64| low + (high - low) * rng.random::<f64>();
        let [(a, _), (b, f), (c, g)] = self.points;
        let first = a + between(-0.05, 0.05);
        let second = first + (b - a) * between(-0.5, 0.5).exp();
        let third = second + (c - b) * between(-0.5, 0.5).exp();
        let rise = 1.0 + (f - 1.0) * between(-0.4, 0.4).exp();
        let more = rise + (g - f) * between(-0.4, 0.4).exp();
        Curve { points: [(first, 1.0), (second, rise), (third, more)], ..self.clone() }.rounded()
    }

    /// Rounds loads to hundredths and factors to tenths; the loads are ascending.
    fn rounded(mut self) -> Curve {
        let mut least = 0.0;
        for (load, factor) in &mut self.points {
            *load = ((*load * 100.0).round() / 100.0).max(least);
            *factor = (*factor * 10.0).round() / 10.0;
            least = ((*load + 0.01) * 100.0).round() / 100.0;
        }
        self
    }

    /// Formats the curve in the notation of a plan.
    pub fn slowdown(&self) -> String {
        let points: Vec<String> = self.points.iter().map(|(load, factor)| format!("{load}:{factor}")).collect();
        points.join(",") + if self.by_size { " by size" } else { "" }
    }
}

/// Completed jobs, by the kind of their user.
#[derive(Default)]
struct Bars {
    large: Vec<bool>,
    done: [f64; 2],
    seconds: [f64; 2],
}

impl Recorder for Bars {
    fn user(&mut self, _user: UserId, name: &str) {
        self.large.push(name.starts_with("large"));
    }

    fn job(&mut self, job: &JobRecord) -> Result<()> {
        if let Some(finish) = job.finish {
            let kind = usize::from(!self.large[job.user.index()]);
            self.done[kind] += 1.0;
            self.seconds[kind] += (finish.0 - job.submit.0) as f64 / 1e6;
        }
        Ok(())
    }
}

/// Returns the four numbers of [`PAPER`] for each scheme with this slowdown and placement.
pub fn ours(slowdown: &str, placement: &str, seeds: &[u64]) -> Result<[[f64; 4]; 6]> {
    measured(&[format!("cluster.slowdown=\"{slowdown}\""), format!("cluster.placement=\"{placement}\"")], seeds)
}

/// Returns the four numbers of [`PAPER`] for each scheme with the plan's slowdown and placement.
pub fn of_plan(seeds: &[u64]) -> Result<[[f64; 4]; 6]> {
    measured(&[], seeds)
}

/// Runs the plan with these changes. Numbers of jobs are means over seeds, times are means over jobs.
fn measured(set: &[String], seeds: &[u64]) -> Result<[[f64; 4]; 6]> {
    let plan = Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments/paper/drf-fig9-12.toml");
    let plan = Plan::read(&plan, set, &Registry::new(BUILT_IN))?;
    let WorkloadPlan::Generator(generator, _) = &plan.workload else { unreachable!("the plan has a generator") };
    let mut schemes = [[0.0; 4]; 6];
    for (policy, scheme) in plan.policies.iter().zip(&mut schemes) {
        let (mut done, mut seconds) = ([0.0; 2], [0.0; 2]);
        for &seed in seeds {
            let supply = Supply::generate(generator, seed)?;
            let mut source = supply.source()?;
            let cluster = Cluster::new(&plan.cluster, source.dims())?;
            let weights = Weights::default();
            let machines = cluster.capacities.len() as u64;
            let setup =
                Setup { dims: &cluster.dims, capacity: cluster.total(), machines, weights: &weights, labels: None };
            let mut built = policy.build(&setup)?;
            let mut bars = Bars::default();
            let options = engine::Options { seed, ..plan.options.clone() };
            engine::run(&mut *source, &mut *built, cluster, weights.clone(), &options, &mut bars)?;
            for kind in 0..2 {
                done[kind] += bars.done[kind];
                seconds[kind] += bars.seconds[kind];
            }
        }
        let runs = seeds.len() as f64;
        *scheme = [done[0] / runs, done[1] / runs, seconds[0] / done[0], seconds[1] / done[1]];
    }
    Ok(schemes)
}

/// Returns the root mean square of ln(ours / paper).
fn distance(ours: &[[f64; 4]; 6]) -> f64 {
    let pairs = PAPER.iter().zip(ours).flat_map(|((_, paper), ours)| paper.iter().zip(ours));
    let squares: Vec<f64> = pairs.map(|(paper, ours)| (ours / paper).ln().powi(2)).collect();
    (squares.iter().sum::<f64>() / squares.len() as f64).sqrt()
}

/// Returns the mean and the maximum of |ours / paper - 1|.
pub fn error(ours: &[[f64; 4]; 6]) -> (f64, f64) {
    let pairs = PAPER.iter().zip(ours).flat_map(|((_, paper), ours)| paper.iter().zip(ours));
    let errors: Vec<f64> = pairs.map(|(paper, ours)| (ours / paper - 1.0).abs()).collect();
    (errors.iter().sum::<f64>() / errors.len() as f64, errors.iter().copied().fold(0.0, f64::max))
}

/// Returns the pairs of schemes, with the figure, for which the bars differ by more than a tenth in the paper and are in another order in
/// ours.
pub fn misordered(ours: &[[f64; 4]; 6]) -> Vec<(&'static str, &'static str, usize)> {
    let mut pairs = Vec::new();
    for (a, (one, paper)) in PAPER.iter().enumerate() {
        for (b, (other, others)) in PAPER.iter().enumerate().take(a) {
            for bar in 0..4 {
                let (x, y) = (paper[bar], others[bar]);
                if (x - y).abs() > 0.1 * x.max(y) && (x > y) != (ours[a][bar] > ours[b][bar]) {
                    pairs.push((*one, *other, 9 + bar));
                }
            }
        }
    }
    pairs
}

/// Returns the best of `curves` curves, or the first one of several equal ones.
pub fn search(curves: usize) -> Result<Curve> {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut best: Option<(Curve, f64)> = None;
    for at in 0..curves {
        let curve = match &best {
            Some((best, _)) if at >= curves / 2 => best.near(&mut rng),
            _ => Curve::blind(&mut rng),
        };
        let distance = distance(&ours(&curve.slowdown(), curve.placement, &SEEDS)?);
        if best.as_ref().is_none_or(|(_, least)| distance < *least) {
            println!("{at:5}  {distance:.4}  {}, {}", curve.slowdown(), curve.placement);
            best = Some((curve, distance));
        }
    }
    Ok(best.expect("at least one curve is tried").0)
}

fn main() -> Result<()> {
    let curves = std::env::args().nth(1).map_or(1000, |text| text.parse().expect("a number of curves"));
    let best = search(curves)?;
    println!("best: slowdown = \"{}\", placement = \"{}\"", best.slowdown(), best.placement);
    let shown = [
        ("best, the seeds it was fitted with", ours(&best.slowdown(), best.placement, &SEEDS)?),
        ("best, seeds held out", ours(&best.slowdown(), best.placement, &HELD_OUT)?),
        ("the plan, seeds held out", of_plan(&HELD_OUT)?),
        ("the plan, its own seeds", of_plan(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10])?),
        ("without slowdown, seeds held out", ours("1:1", "best-fit", &HELD_OUT)?),
    ];
    for (name, ours) in shown {
        let (mean, worst) = error(&ours);
        println!("\n{name}: distance {:.4}, mean error {mean:.3}, worst {worst:.3}", distance(&ours));
        println!("in another order than the paper's: {:?}; paper / ours:", misordered(&ours));
        for ((scheme, paper), ours) in PAPER.iter().zip(&ours) {
            let row: Vec<String> = paper.iter().zip(ours).map(|(paper, ours)| format!("{paper} / {ours:.1}")).collect();
            println!("{scheme:9} {}", row.join("   "));
        }
    }
    Ok(())
}
