//! One run: a workload under a policy, from its source to its tables.
//!
//! [`simulate`] opens the source, builds the cluster, the weights and the policy, runs the engine with a recorder, and writes the tables.
//! The tables are complete but have temporary names; the caller decides whether they get their final names.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::mix;
use crate::collect::Collector;
use crate::groups::GroupWatch;
use crate::intervention::Intervention;
use crate::own::{OwnMetric, OwnMetrics};
use crate::saved::{SaveClock, SavedState, SavedStates};
use crate::shared::{ReplayInputs, SharedSupply};
use crate::sinks::{Destination, Sinks};
use crate::summary;
use crate::wait_log::{NoObserver, Observer};
use plimsoll_base::checkpoint::Visitor;
use plimsoll_base::error::{Error, Result};
use plimsoll_base::pinned::Pinned;
use plimsoll_base::units::{MAX_DIMS, Resources, Span, Time};
use plimsoll_control::settings::ControlPlan;
use plimsoll_metrics::{FIG_14_LABELS, LogHistogram, Measure, Run, RunLog, User, Window};
use plimsoll_policies::{NamedPolicy, RunEnvironment};
use plimsoll_results::schema::{BinRow, DemandKind, OwnColumn, Quantile, Table};
use plimsoll_results::summary::{RunSummary, SummaryValue};
use plimsoll_sim::books::Weights;
use plimsoll_sim::cluster::{ClusterSpec, Placement};
use plimsoll_sim::engine::{Engine, Options, RunContext};
use plimsoll_sim::workload::{Following, Service, WithServices};
use plimsoll_store::file::Pending;

/// All inputs of a run except the policy.
#[derive(Clone, Copy)]
pub struct Simulation<'a> {
    /// The workload.
    pub supply: &'a SharedSupply,
    /// The name of the workload.
    pub workload: &'a str,
    /// The machines.
    pub cluster: &'a ClusterSpec,
    /// The file of weights, if there is one.
    pub weights: Option<&'a Pinned>,
    /// The trace with the tasks that define fragments; absent: the workload.
    pub mix: Option<&'a Pinned>,
    /// Engine options.
    pub options: &'a Options,
    /// The control plane between scheduler and machines, if there is one.
    pub control: Option<&'a ControlPlan>,
    /// Online services in addition to the workload.
    pub services: &'a [Service],
    /// The step of the sampling grid.
    pub sample: Span,
    /// The part of the run that is measured.
    pub window: Window,
    /// The changes of a counterfactual run.
    pub intervention: Option<&'a Intervention>,
    /// The metrics that the plan defines.
    pub metrics: &'a [OwnMetric],
}

/// A completed run.
#[derive(Debug)]
pub struct Simulated {
    /// The results of the run.
    pub summary: RunSummary,
    /// The complete tables, which still have temporary names. They are removed unless the caller gives them their final names.
    pub tables: Vec<Pending>,
    /// The instant of the saved state, if the run continued.
    pub continued: Option<Time>,
    /// The reason why the saved state was not used.
    pub rejected: Option<String>,
    /// The reason why a state could not be written.
    pub unsaved: Option<String>,
    /// Whether the run could save its state.
    pub savable: bool,
}

/// The number of intervals between the quantiles in the `quantiles` table.
const QUANTILES: u32 = 200;

/// Runs the simulation under a policy and writes the requested tables.
///
/// `heartbeat` receives the simulated time and the number of launched tasks. Errors: bad input, a full disk, or an error of `heartbeat`;
/// after an error the run has no tables.
pub fn simulate(
    simulation: &Simulation,
    policy: &NamedPolicy,
    to: &Destination,
    heartbeat: &mut (dyn FnMut(Time, u64) -> Result<()> + Send),
) -> Result<Simulated> {
    simulate_observed(simulation, policy, to, heartbeat, &mut NoObserver)
}

/// As [`simulate`], with an observer of the engine. Errors: as [`simulate`], and the observer's.
pub fn simulate_observed(
    simulation: &Simulation,
    policy: &NamedPolicy,
    to: &Destination,
    heartbeat: &mut (dyn FnMut(Time, u64) -> Result<()> + Send),
    observer: &mut dyn Observer,
) -> Result<Simulated> {
    let loaded = to.saved.as_ref().map_or(Ok(None), SavedStates::load);
    let mut rejected = loaded.as_ref().err().cloned();
    if let Ok(Some(state)) = loaded {
        match attempt(simulation, policy, to, heartbeat, observer, Some(state))? {
            RunAttempt::Complete(simulated) => return Ok(*simulated),
            RunAttempt::Rejected(reason) => rejected = Some(reason),
        }
    }
    match attempt(simulation, policy, to, heartbeat, observer, None)? {
        RunAttempt::Complete(simulated) => Ok(Simulated { rejected, ..*simulated }),
        RunAttempt::Rejected(reason) => Err(Error::Unexpected { problem: reason }),
    }
}

/// The result of an attempt to run.
enum RunAttempt {
    Complete(Box<Simulated>),
    /// The saved state does not fit, for example because an incomplete table was removed.
    Rejected(String),
}

/// Runs the simulation from its beginning or from a saved state.
fn attempt(
    simulation: &Simulation,
    policy: &NamedPolicy,
    to: &Destination,
    heartbeat: &mut (dyn FnMut(Time, u64) -> Result<()> + Send),
    observer: &mut dyn Observer,
    state: Option<SavedState>,
) -> Result<RunAttempt> {
    let mut source = simulation.supply.source()?;
    if let Some(intervention) = simulation.intervention {
        source = intervention.source(source)?;
    }
    if source.has_preceding() {
        source = Box::new(Following::new(source));
    }
    if !simulation.services.is_empty() {
        source = Box::new(WithServices::new(source, simulation.services)?);
    }
    let mut environment = RunEnvironment::new(simulation.cluster, simulation.weights, source.dims())?;
    mix::define_fragments(simulation, &mut environment.cluster)?;
    let mut policy_object = environment.policy(policy, simulation.options.placement)?;
    if let Some(intervention) = simulation.intervention {
        policy_object = intervention.policy(policy_object);
    }
    let RunEnvironment { cluster, weights } = environment;
    let cluster = Arc::new(cluster);
    let capacity = cluster.total();
    let groups = policy_object.groups().map(|groups| GroupWatch::new(groups.tree(), cluster.dims.len()));
    let sinks = Sinks::open(to, &cluster.dims, groups.is_some())?;
    let Simulation { sample: step, window, .. } = *simulation;
    let measure = Measure { step, window, horizon: simulation.options.until };
    // Under a control plane, a run may end before all rows are submitted, so that it has other rows than the replay.
    let inputs = || ReplayInputs {
        capacity,
        weights: weights.clone(),
        services: simulation.services.to_vec(),
        window,
        horizon: simulation.options.until,
    };
    let mut beat = || heartbeat(Time::ZERO, 0);
    let fair = match (simulation.control, &state) {
        (Some(_), _) | (None, Some(SavedState { is_shared: false, .. })) => None,
        (None, None) => simulation.supply.fair_service(inputs, &mut beat)?,
        (None, Some(_)) => match simulation.supply.fair_service(inputs, &mut beat)? {
            None => simulation.supply.fair_service_alone(inputs(), &mut beat)?,
            shared => shared,
        },
    };
    let is_shared = fair.is_some();
    let log = RunLog::new(cluster.dims.len(), &capacity, &weights, &measure, fair);
    let mut collector = Collector::new(log, cluster.dims.len(), &weights, sinks, groups, heartbeat);
    collector.own = OwnMetrics::new(simulation.metrics);
    if simulation.options.placement == Placement::Pooled {
        let kinds: BTreeSet<[u64; MAX_DIMS]> = cluster.capacities.iter().map(|capacity| capacity.0).collect();
        collector.pooled_machines = kinds.into_iter().map(Resources).collect();
    }
    let options =
        Options { seed: to.seed.unwrap_or_default(), job_order: policy.job_order.clone(), ..*simulation.options };
    let mut world = simulation.control.map(|control| control.world(options.seed));
    let mut run_context = RunContext::lent(&mut *source, &mut *policy_object, &mut collector);
    if let Some(world) = &mut world {
        run_context = run_context.under(world);
    }
    let mut engine = Engine::new(run_context, Arc::clone(&cluster), weights.clone(), &options)?;
    let mut continued = None;
    if let Some(state) = state {
        match Visitor::restore(&mut engine, &state.bytes) {
            Err(Error::Interrupted) => return Err(Error::Interrupted),
            Err(error) => return Ok(RunAttempt::Rejected(error.to_string())),
            Ok(()) => continued = Some(engine.now()),
        }
    }
    let mut unsaved = None;
    let savable = engine.has_checkpoints();
    let mut saving = to.saved.as_ref().filter(|_| savable).map(|saved| (saved, SaveClock::new(saved.every)));
    observer.begin(&mut engine);
    loop {
        let stepped = engine.step();
        if let (Err(Error::Interrupted), Some((saved, clock))) = (&stepped, &saving)
            && clock.is_worth_saving()
        {
            // The run ends by the interruption, whether or not its state is saved.
            let _ = saved.save(&mut engine, is_shared)?;
        }
        let Some(now) = stepped? else { break };
        if observer.instant(&mut engine, now)?.is_break() {
            break;
        }
        if let Some((saved, clock)) = &mut saving
            && clock.is_due()
        {
            unsaved = saved.save(&mut engine, is_shared)?.err().or(unsaved);
            clock.saved();
        }
    }
    let outcome = engine.finish()?;
    let held = source.held_jobs();
    collector.finish(outcome.end)?;
    let carried = world.map(|mut world| world.carried(outcome.end));
    let lens = policy_object.needs().lens;
    let run = Run {
        workload: simulation.workload,
        offered: cluster.capacities.iter().map(|machine| lens.machine(*machine)).sum(),
        carried,
        ..collector.log.run(outcome, (cluster.capacities.len() as u64, capacity))
    };
    let dims = &cluster.dims;
    let pooled = simulation.options.placement == Placement::Pooled;
    let measured = run.measured;
    let mut values = summary::values(&collector.log.grid.means.row(&run), dims);
    let own = collector.own.columns().zip(collector.own.values()?);
    values.extend(own.map(|(column, value)| (column.name.clone(), SummaryValue::Float(value))));
    let summary = RunSummary {
        policy: to.policy.clone(),
        run: to.run,
        seed: to.seed,
        dims: dims.clone(),
        outcome,
        values,
        bins: bins(&collector),
        stuck: run.totals.stuck.iter().map(|(why, tasks)| (*why, *tasks)).collect(),
        examples: collector.remarks.stuck.clone(),
        stopped: collector.remarks.stopped.clone(),
        ignored: summary::ignored(&collector, &weights, (pooled, held), dims),
        groups: collector.groups.as_ref().map(|groups| groups.summaries(dims)).unwrap_or_default(),
    };
    let tables = finish(collector, &summary, measured, &weights, to)?;
    Ok(RunAttempt::Complete(Box::new(Simulated { summary, tables, continued, rejected: None, unsaved, savable })))
}

/// Writes the tables that are computed at the end, and completes all tables.
fn finish(
    collector: Collector,
    summary: &RunSummary,
    measured: Span,
    weights: &Weights,
    to: &Destination,
) -> Result<Vec<Pending>> {
    let dims = &summary.dims;
    let mut tables = Vec::new();
    if let Some(mut table) = to.open::<User<'static>>(dims)? {
        for user in 0..collector.names.len() {
            table.push(&summary::user(&collector, user, weights, dims, measured))?;
        }
        tables.push(table.complete()?);
    }
    if let Some(groups) = &collector.groups
        && let Some(mut table) = to.open(dims)?
    {
        groups.write(&mut table, dims)?;
        tables.push(table.complete()?);
    }
    if let Some(mut table) = to.open::<BinRow<'static>>(dims)? {
        for (position, (label, jobs, completion_s)) in (0..).zip(&summary.bins) {
            table.push(&BinRow { label, position, jobs: *jobs, completion_s: *completion_s })?;
        }
        tables.push(table.complete()?);
    }
    if let Some(mut table) = to.open::<Quantile>(dims)? {
        let delays = &collector.log.totals.delays;
        let places = || (0..=QUANTILES).map(|step| f64::from(step) / f64::from(QUANTILES));
        let seconds = |histogram: &LogHistogram| -> Vec<Option<f64>> {
            let quantiles = histogram.quantiles();
            places().map(|q| quantiles.at(q).map(|us| us as f64 / 1e6)).collect()
        };
        let all = [
            ("completion_s", seconds(&delays.completion)),
            ("wait_s", seconds(&delays.wait)),
            ("slowdown", delays.slowdown.quantiles(places())),
        ];
        for (metric, values) in all {
            for (q, value) in places().zip(values) {
                if let Some(value) = value {
                    table.push(&Quantile { metric, q, value })?;
                }
            }
        }
        tables.push(table.complete()?);
    }
    if collector.sinks.wants(Table::Demands)
        && let Some(mut table) = to.open::<DemandKind<'static>>(dims)?
    {
        for (stage, mean, tasks) in collector.demands.iter() {
            table.push(&DemandKind { stage, mean: mean.collect(), dims, tasks })?;
        }
        tables.push(table.complete()?);
    }
    let own: Vec<OwnColumn> = collector.own.columns().cloned().collect();
    tables.extend(collector.sinks.complete()?);
    // This table is renamed last, so that a reader that ignores receipts never sees an incomplete run.
    if let Some(mut table) = to.table(Table::Runs, dims, &own)? {
        table.push(summary.values.iter().map(|(_, value)| value.cell()))?;
        tables.push(table.complete()?);
    }
    Ok(tables)
}

fn bins(collector: &Collector) -> Vec<(String, u64, Option<f64>)> {
    let bins = &collector.log.bins;
    let means = bins.bins().iter().map(|bin| (bin.count, bin.mean().map(|us| us / 1e6)));
    FIG_14_LABELS.iter().zip(means).map(|(label, (count, mean))| ((*label).to_owned(), count, mean)).collect()
}
