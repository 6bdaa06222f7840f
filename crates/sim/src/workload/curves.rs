//! Distributions and demands of a workload as points of figures, and the published curves for comparison.
//!
//! One pass over a source; memory grows with distinct demands and buckets, not with rows. Floats are used for reports only.

use std::collections::BTreeMap;

use super::Source;
use super::quantiles::Histogram;
use super::synthetic::published::{self, Demand};
use plimsoll_base::error::Result;
use plimsoll_base::units::MAX_DIMS;

/// Points of a distribution: a value, and the fraction of tasks at or below it.
pub type Curve = Vec<(f64, f64)>;

/// The tasks of one kind: all tasks, or those of one stage.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Curves {
    /// `all`, a stage's name, or `no stage`.
    pub kind: String,
    /// The duration of tasks, in seconds; empty if it is not known.
    pub duration_s: Curve,
    /// Demands of tasks, one curve per resource, in the unit for display.
    pub demand: Vec<Curve>,
    /// Demands of tasks for the first two resources, and the number of tasks with each demand (for published curves, the share of all
    /// tasks).
    pub pairs: Vec<(f64, f64, f64)>,
}

/// Distributions of one kind of tasks while they are counted.
#[derive(Default)]
struct Counting {
    duration: Histogram,
    demand: [Histogram; MAX_DIMS],
    pairs: BTreeMap<(u64, u64), u64>,
}

/// Reads a source to its end and returns the curves of all tasks, then, if there are stages, those of each stage and of tasks without a
/// stage.
///
/// Errors: those of the source.
pub fn curves(source: &mut dyn Source) -> Result<Vec<Curves>> {
    let dims = source.dims().to_vec();
    let (mut all, mut stages) = (Counting::default(), BTreeMap::<Option<u32>, Counting>::new());
    while let Some(set) = source.next_set()? {
        for counting in [&mut all, stages.entry(set.stage).or_default()] {
            let tasks = u64::from(set.tasks);
            counting.duration.add(set.duration.0, tasks);
            for (histogram, &amount) in counting.demand.iter_mut().zip(set.demand.slice(dims.len())) {
                histogram.add(amount, tasks);
            }
            *counting.pairs.entry((set.demand.0[0], set.demand.0[1])).or_default() += tasks;
        }
    }
    let scale = |dim: usize| dims.get(dim).map_or(1.0, |dim| dim.unit.scale() as f64);
    let finish = |kind: &str, counting: &Counting| Curves {
        kind: kind.to_owned(),
        duration_s: counting.duration.cdf(1e6),
        demand: (0..dims.len()).map(|dim| counting.demand[dim].cdf(scale(dim))).collect(),
        pairs: counting
            .pairs
            .iter()
            .map(|(&(x, y), &tasks)| (x as f64 / scale(0), y as f64 / scale(1), tasks as f64))
            .collect(),
    };
    let mut curves = vec![finish("all", &all)];
    if stages.keys().any(Option::is_some) {
        let name = |stage: &Option<u32>| stage.map_or("no stage", |stage| source.stage_name(stage));
        let without = stages.get_key_value(&None);
        let named = stages.iter().filter(|(stage, _)| stage.is_some());
        curves.extend(named.chain(without).map(|(stage, counting)| finish(name(stage), counting)));
    }
    Ok(curves)
}

/// Returns the published curves of Facebook's cluster of October 2010: all tasks, maps, reduces; durations of all tasks only.
pub fn published_curves() -> Vec<Curves> {
    let (map, reduce) = (&published::MAP.points, &published::REDUCE.points);
    let both: Vec<Demand> = map.iter().chain(reduce).copied().collect();
    let one = |kind: &str, points: &[Demand]| Curves {
        kind: kind.to_owned(),
        duration_s: Vec::new(),
        demand: vec![weighted(points, |point| point.cpu), weighted(points, |point| point.memory)],
        pairs: points.iter().map(|point| (point.cpu, point.memory, point.weight)).collect(),
    };
    let durations = published::TASK_DURATIONS.points().to_vec();
    vec![Curves { duration_s: durations, ..one("all", &both) }, one("map", map), one("reduce", reduce)]
}

fn weighted(points: &[Demand], value: impl Fn(&Demand) -> f64) -> Curve {
    let mut sorted: Vec<(f64, f64)> = points.iter().map(|point| (value(point), point.weight)).collect();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let total: f64 = sorted.iter().map(|(_, weight)| weight).sum();
    let mut below = 0.0;
    sorted
        .into_iter()
        .map(|(value, weight)| {
            below += weight;
            (value, below / total)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{TaskSet, Workload};
    use plimsoll_base::units::{Dim, Resources, Span, Unit, UserId};

    #[test]
    fn curves_count_tasks_by_kind() {
        let dim = |name: &str, unit| Dim { name: name.into(), unit };
        let dims = vec![dim("cpu", Unit::Milli), dim("memory", Unit::Mebibyte)];
        let mut workload = Workload { dims, ..Workload::default() };
        let (job, user, map) = (workload.job("j"), UserId(workload.users.intern("u")), workload.stages.intern("map"));
        for (tasks, cpu, memory, seconds, stage) in
            [(3, 500, 1024, 1, Some(map)), (1, 500, 1024, 10, None), (4, 2000, 512, 10, Some(map))]
        {
            let demand = Resources::from_slice(&[cpu, memory]);
            let duration = Span::from_secs(seconds);
            workload.sets.push(TaskSet { job, user, tasks, demand, duration, stage, ..TaskSet::default() });
        }
        let found = curves(&mut workload.finish().source()).expect("no errors");
        assert_eq!(found.iter().map(|one| one.kind.as_str()).collect::<Vec<_>>(), ["all", "map", "no stage"]);
        assert_eq!(found[0].duration_s, [(1.0, 0.375), (10.0, 1.0)]);
        assert_eq!(found[0].demand, [[(0.5, 0.5), (2.0, 1.0)], [(0.5, 0.5), (1.0, 1.0)]]);
        assert_eq!(found[0].pairs, [(0.5, 1.0, 4.0), (2.0, 0.5, 4.0)]);
        assert_eq!(found[1].pairs, [(0.5, 1.0, 3.0), (2.0, 0.5, 4.0)]);
    }

    #[test]
    fn published_curves_rise_to_one() {
        for one in published_curves() {
            for curve in one.demand.iter().chain(Some(&one.duration_s).filter(|curve| !curve.is_empty())) {
                assert!(curve.is_sorted_by(|a, b| a.0 <= b.0 && a.1 <= b.1), "{}", one.kind);
                assert!(curve.last().is_some_and(|(_, share)| (share - 1.0).abs() < 1e-3), "{}", one.kind);
            }
        }
    }
}
