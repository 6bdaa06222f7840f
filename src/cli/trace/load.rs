//! Compares the demand of a workload with the capacity of a cluster.

use serde::Serialize;

use super::Watched;
use crate::cli::print::aligned;
use crate::cli::screen::Grid;
use crate::cluster::Cluster;
use crate::error::Result;
use crate::experiment::machines::machines_from;
use crate::output::numbers::number;
use crate::units::Resources;
use crate::workload::Source;
use crate::workload::summary::Summary;

/// The load on one resource of all machines together.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ResourceLoad {
    pub resource: String,
    pub unit: &'static str,
    /// Amount times hours of all tasks.
    pub work_hours: f64,
    /// The capacity of the machines.
    pub capacity: f64,
    /// The work relative to the capacity between the first and the last submission; absent if these are the same instant.
    pub offered_load: Option<f64>,
    /// Duration of the work at full use of the resource; absent without capacity.
    pub hours_at_capacity: Option<f64>,
}

/// Returns the machines of an option, in the dimensions of a source.
pub fn cluster(text: &str, source: &Watched) -> Result<Cluster> {
    Cluster::new(&machines_from("--machines", text, std::path::Path::new(""))?, source.dims())
}

/// Returns the distinct kinds of machines.
pub fn kinds(cluster: &Cluster) -> Vec<Resources> {
    let mut kinds: Vec<Resources> = Vec::new();
    for capacity in &cluster.capacities {
        if !kinds.contains(capacity) {
            kinds.push(*capacity);
        }
    }
    kinds
}

/// Returns one entry per resource of the workload.
pub fn loads(cluster: &Cluster, summary: &Summary) -> Vec<ResourceLoad> {
    let total = cluster.total();
    let hours = (summary.last_submit_s - summary.first_submit_s) / 3600.0;
    let of = |(at, work): (usize, &crate::workload::summary::Work)| {
        let capacity = cluster.dims[at].amount(total.0[at]);
        let work_hours = work.amount_seconds / 3600.0;
        let ratio = |over: f64| (over > 0.0).then(|| work_hours / over);
        ResourceLoad {
            resource: work.resource.clone(),
            unit: work.unit,
            work_hours,
            capacity,
            offered_load: ratio(capacity * hours),
            hours_at_capacity: ratio(capacity),
        }
    };
    summary.work.iter().enumerate().map(of).collect()
}

/// Returns a warning for each resource of which many tasks need more than a slot has, if each machine has as many slots as mean tasks fit
/// it; only for machines of one kind.
pub fn slots(cluster: &Cluster, kinds: &[Resources], summary: &Summary) -> Vec<String> {
    let ([machine], Some(all)) = (kinds, summary.marginals.first()) else { return Vec::new() };
    let capacity = |d: usize| cluster.dims[d].amount(machine.0[d]);
    let fitting = all.demand.iter().enumerate().filter(|(_, (_, demand))| demand.mean > 0.0);
    let slots = fitting.map(|(d, (_, demand))| (capacity(d) / demand.mean).floor()).fold(f64::INFINITY, f64::min);
    if !(1.0..1e9).contains(&slots) {
        return Vec::new();
    }
    let exceeds = |(d, (resource, demand)): (usize, &(String, crate::workload::summary::Quantiles))| {
        let slot = capacity(d) / slots;
        (demand.p90 > slot * 1.05).then(|| {
            format!(
                "slots: with {slots} slots per machine, as many as mean tasks fit, a tenth of the tasks need more than {} of {resource}, \
                 and a slot has {}: slot policies over-commit such machines",
                number(Some(demand.p90)),
                number(Some(slot))
            )
        })
    };
    all.demand.iter().enumerate().filter_map(exceeds).collect()
}

/// Formats the loads as a table.
pub fn table(loads: &[ResourceLoad]) -> Grid {
    let header = ["demand", "work (unit x h)", "capacity", "offered load", "hours at capacity"].map(str::to_owned);
    let rows: Vec<Vec<String>> = loads
        .iter()
        .map(|load| {
            vec![
                format!("{} ({})", load.resource, load.unit),
                number(Some(load.work_hours)),
                number(Some(load.capacity)),
                number(load.offered_load),
                number(load.hours_at_capacity),
            ]
        })
        .collect();
    aligned(&header, &rows)
}
