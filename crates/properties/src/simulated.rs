//! A policy of the simulation as a mechanism: its allocation after one round of a backlog of very long tasks.
//!
//! All users submit their tasks at once; a user with unlimited tasks submits more than fit. The tasks outlast the round, so that the
//! engine's launches are the allocation of whole tasks. The cluster is one pool (one machine for policies that count machines).

use super::domain::Domain;
use plimsoll_base::error::{Error, Result};
use plimsoll_base::units::{Dim, Resources, Span, Time, UserId};
use plimsoll_fair::{Allocation, Exact, Instance, Limit, Mechanism, OnBlocked, Tasks};
use plimsoll_policies::{NamedPolicy, Setup};
use plimsoll_sim::books::{WEIGHT_ONE, Weights};
use plimsoll_sim::cluster::{Cluster, Placement};
use plimsoll_sim::engine::{self, Options};
use plimsoll_sim::record::{Launch, Recorder};
use plimsoll_sim::workload::{TaskSet, Workload};

/// The number of tasks that a user with unlimited tasks submits: more than fit in any instance of the search.
const ENDLESS: u32 = 1 << 20;

/// The duration of a task: longer than the simulated instant.
const DURATION: Span = Span(1_000_000);

/// A policy of the simulation on a fixed backlog.
pub struct Simulated {
    policy: NamedPolicy,
    on_blocked: OnBlocked,
}

/// A recorder that counts launches.
#[derive(Default)]
struct Launches {
    names: Vec<String>,
    tasks: Vec<u64>,
}

impl Recorder for Launches {
    fn user(&mut self, _user: UserId, name: &str) {
        self.names.push(name.to_owned());
        self.tasks.push(0);
    }

    fn launched(&mut self, launch: &Launch) {
        self.tasks[launch.user.index()] += u64::from(launch.count);
    }
}

impl Simulated {
    /// Creates the mechanism of a policy, with the rule for a next task that does not fit.
    pub fn new(policy: NamedPolicy, on_blocked: OnBlocked) -> Simulated {
        Simulated { policy, on_blocked }
    }
}

impl Mechanism for Simulated {
    fn allocate(&self, instance: &Instance) -> Result<Allocation> {
        let dims: Vec<Dim> = instance.resources().iter().map(|resource| Dim::parse(resource).0).collect();
        let capacity = amounts(instance.capacity(), &dims, "capacity")?;
        let cluster = Cluster { dims: dims.clone(), capacities: vec![capacity], ..Cluster::default() };
        let weights = weights(instance)?;
        let workload = backlog(instance, dims)?;
        let setup = Setup { dims: &cluster.dims, capacity, machines: 1, weights: &weights, labels: None };
        let mut policy = self.policy.build(&setup)?;
        let options = Options {
            placement: Placement::Pooled,
            on_blocked: self.on_blocked.into(),
            until: Some(Time::ZERO),
            job_order: self.policy.job_order.clone(),
            ..Options::default()
        };
        let mut launches = Launches::default();
        engine::run(&mut workload.source(), &mut *policy, cluster, weights.clone(), &options, &mut launches)?;
        let given = |name: &str| {
            let at = launches.names.iter().position(|known| known == name);
            at.map_or(0, |at| launches.tasks[at])
        };
        let tasks: Vec<Exact> = instance.users().iter().map(|user| Exact::from(given(&user.name))).collect();
        let limit = |(user, tasks): (&plimsoll_fair::User, &Exact)| match &user.tasks {
            Some(all) if tasks >= all => Limit::Demand,
            _ => Limit::WholeTask,
        };
        let limits = instance.users().iter().zip(&tasks).map(limit).collect();
        Ok(Allocation::new(Tasks::Exact(tasks), limits))
    }
}

fn integer(value: &Exact, what: &str) -> Result<u64> {
    let number = value.parts().filter(|(_, denominator)| *denominator == 1);
    let number = number.and_then(|(numerator, _)| u64::try_from(numerator).ok());
    number.ok_or_else(|| Error::plan(what, value, "a whole number, for whole tasks"))
}

/// Converts amounts to base units. Errors: too many resources; fractions, since a policy may round to whole units; overflows.
fn amounts(values: &[Exact], dims: &[Dim], what: &str) -> Result<Resources> {
    let mut amounts = Resources::ZERO;
    if values.len() > amounts.0.len() {
        return Err(Error::plan(what, format!("{} resources", values.len()), format!("at most {}", amounts.0.len())));
    }
    for ((amount, value), dim) in amounts.0.iter_mut().zip(values).zip(dims) {
        let whole = integer(value, what)?.checked_mul(dim.unit.scale());
        *amount = whole.ok_or_else(|| Error::plan(what, value, format!("less of {}", dim.name)))?;
    }
    Ok(amounts)
}

fn weights(instance: &Instance) -> Result<Weights> {
    let mut scalars = Vec::new();
    for user in instance.users() {
        let weight = user.one_weight().ok_or_else(|| {
            let problem = format!("user '{}' has one per resource", user.name);
            Error::plan(
                "weight",
                problem,
                format!("one number per user, as in all domains but {}", Domain::WeightedPerResource.name()),
            )
        })?;
        scalars.push((user.name.as_str(), integer(weight, "weight")? * WEIGHT_ONE));
    }
    Ok(Weights::from_scalars(scalars))
}

fn backlog(instance: &Instance, dims: Vec<Dim>) -> Result<Workload> {
    let mut workload = Workload { dims, ..Workload::default() };
    for user in instance.users() {
        let tasks = match &user.tasks {
            Some(tasks) => u32::try_from(integer(&tasks.floor(), "tasks")?).unwrap_or(ENDLESS).min(ENDLESS),
            None => ENDLESS,
        };
        if tasks == 0 {
            continue;
        }
        let job = workload.job(user.name.as_str());
        let demand = amounts(&user.demand, &workload.dims, "demand")?;
        let id = UserId(workload.users.intern(&user.name));
        workload.sets.push(TaskSet { job, user: id, duration: DURATION, tasks, demand, ..TaskSet::default() });
    }
    Ok(workload.finish())
}
