//! Validates a study before its first run: performs the setup of every cell and policy up to the first event, so that invalid plans fail
//! before any output exists.

use std::collections::HashMap;

use plimsoll_runs::{RunEnvironment, columns};
use rayon::prelude::*;

use super::Supply;
use super::plan::Plan;
use super::study::Study;
use super::workload::WorkloadPlan;
use plimsoll_base::error::{Error, Result};
use plimsoll_base::pinned::Pinned;
use plimsoll_base::units::{Dim, UserId};
use plimsoll_results::schema::{OwnColumn, Table};
use plimsoll_sim::cluster::{Cluster, ClusterSpec, Placement};
use plimsoll_sim::engine::{self, Options};
use plimsoll_sim::workload::{Input, Workload};

/// The properties of a workload that are known without reading or generating it completely. At least its resources are known.
struct KnownWorkload {
    outline: Workload,
    /// Whether the users and labels are also known.
    is_whole: bool,
}

/// Checks all cells of a study under all policies. Errors: the first error that would end a run before its first event, in the order of
/// workloads and cells.
pub fn check(study: &Study) -> Result<()> {
    let (kinds, firsts) = workloads(study);
    let known = firsts.par_iter().map(|&cell| known(&study.cells[cell]).map_err(|error| study.located(cell, error)));
    let known = known
        .collect::<Vec<Result<Option<KnownWorkload>>>>()
        .into_iter()
        .collect::<Result<Vec<Option<KnownWorkload>>>>()?;
    let chunk = study.cells.len().div_ceil(4 * rayon::current_num_threads()).max(1);
    let wrong = |(at, cells): (usize, &[Plan])| {
        let mut last = Last::default();
        cells.iter().zip(at * chunk..).find_map(|(plan, cell)| {
            let known = known[kinds[cell]].as_ref()?;
            of_cell(plan, known, &mut last).err().map(|error| study.located(cell, error))
        })
    };
    study.cells.par_chunks(chunk).enumerate().find_map_first(wrong).map_or(Ok(()), Err)
}

/// Returns the workload index of each cell, and the first cell of each distinct workload.
pub(super) fn workloads(study: &Study) -> (Vec<usize>, Vec<usize>) {
    let (mut numbers, mut firsts) = (HashMap::new(), Vec::new());
    let mut number = |(cell, plan): (usize, &Plan)| {
        *numbers.entry(format!("{:?}", plan.workload)).or_insert_with(|| {
            firsts.push(cell);
            firsts.len() - 1
        })
    };
    (study.cells.iter().enumerate().map(&mut number).collect(), firsts)
}

/// Returns the properties of a workload that are known before the run; `None` for a trace that can be read only once.
fn known(plan: &Plan) -> Result<Option<KnownWorkload>> {
    match plan.workload.base() {
        WorkloadPlan::Generator(generator, _) => {
            Ok(Some(KnownWorkload { outline: generator.outline(plan.seeds[0])?, is_whole: true }))
        }
        WorkloadPlan::Trace { path, format, options, .. } if path.is_file() => {
            Ok(Some(match Supply::input(Input::open(path)?, *format, options)? {
                // A trace in a public format must be read completely to determine its resources.
                Supply::Imported(outline) => KnownWorkload { outline, is_whole: true },
                supply => {
                    KnownWorkload { outline: Workload { dims: supply.dims()?, ..Workload::default() }, is_whole: false }
                }
            }))
        }
        WorkloadPlan::Trace { .. } | WorkloadPlan::AtLoad(..) => Ok(None),
    }
}

/// The machines and weights of the previous cell. They are kept because most neighbouring cells of a sweep have the same.
#[derive(Default)]
struct Last(Option<(ClusterSpec, Option<Pinned>, Vec<Dim>, RunEnvironment)>);

impl Last {
    fn get(&mut self, plan: &Plan, dims: &[Dim]) -> Result<&RunEnvironment> {
        let same = |(cluster, weights, of, _): &(ClusterSpec, Option<Pinned>, Vec<Dim>, RunEnvironment)| {
            *cluster == plan.cluster && *weights == plan.weights && of == dims
        };
        let last = match self.0.take().filter(same) {
            Some(last) => last,
            None => {
                let environment = RunEnvironment::new(&plan.cluster, plan.weights.as_ref(), dims)?;
                // All cells have the same axes and tables, so this check is only needed for new resources.
                let (axes, dims_all) = (plan.axes(), &environment.cluster.dims);
                let own: Vec<OwnColumn> = plan.metrics.iter().map(|metric| metric.column.clone()).collect();
                let of = |table: &Table| columns(*table, "", (0, None), &axes, dims_all, &own).map(drop);
                plan.tables.iter().try_for_each(of)?;
                (plan.cluster.clone(), plan.weights.clone(), dims.to_vec(), environment)
            }
        };
        Ok(&self.0.insert(last).3)
    }
}

fn of_cell(plan: &Plan, KnownWorkload { outline, is_whole }: &KnownWorkload, last: &mut Last) -> Result<()> {
    let environment = last.get(plan, &outline.dims)?;
    let cluster = &environment.cluster;
    if *is_whole {
        asked(outline, cluster, plan.options.placement)?;
    }
    plan.services.iter().try_for_each(|service| service.demand_in(&outline.dims).map(drop))?;
    if plan.control.is_some() {
        engine::check_control(cluster, &plan.options)?;
    }
    for policy in &plan.policies {
        let options = Options { job_order: policy.job_order.clone(), ..plan.options };
        let mut made = environment.policy(policy, options.placement)?;
        engine::check(&*made, cluster, &options)?;
        let users = plan.services.iter().map(|service| service.user.as_str()).chain(outline.users.iter());
        users.enumerate().try_for_each(|(user, name)| made.open(UserId(user as u32), name))?;
    }
    Ok(())
}

/// Checks that the machines provide the resources that the tasks of a workload demand. The tasks of a generator do not exist yet, so all
/// its resources are checked. Errors: [`Error::Mismatch`].
fn asked(outline: &Workload, cluster: &Cluster, placement: Placement) -> Result<()> {
    let is_asked = |at: usize| outline.sets.is_empty() || outline.sets.iter().any(|set| set.demand.0[at] > 0);
    let dims = outline.dims.iter().zip(cluster.total().0).enumerate();
    if let Some((_, (dim, _))) = dims.into_iter().find(|&(at, (_, amount))| amount == 0 && is_asked(at)) {
        let problem =
            format!("the workload requests {0}, and the cluster has no {0}; add it to the machines", dim.name);
        return Err(Error::Mismatch { problem });
    }
    if placement != Placement::Pooled {
        let mut labels = cluster.labels.clone();
        for label in outline.labels.iter() {
            labels.class(label).map_err(|problem| Error::Mismatch { problem })?;
        }
    }
    Ok(())
}
