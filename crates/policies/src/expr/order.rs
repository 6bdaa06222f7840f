//! The part of an expression that orders a user's own task sets.

use std::sync::Arc;

use super::names::Var;
use super::parse::Ast;
use super::program::View;
use super::{Formula, KEY_BITS};
use crate::Setup;
use crate::job_order::{JobOrder, SetView, SizeSource};
use plimsoll_base::error::{Error, Result};
use plimsoll_base::units::{Dim, Resources, Time};
use plimsoll_sim::books::Weights;

/// An order of task sets by the value of an expression.
#[derive(Clone)]
struct ByKey {
    name: String,
    ast: Ast,
    /// Whether the value is computed in fixed point, because a rank decodes it.
    decoded: bool,
    /// The compiled value; `None` until the resources of the cluster are known.
    formula: Option<Formula>,
    names: Vec<Var>,
}

impl ByKey {
    fn has(&self, vars: &[Var]) -> bool {
        self.names.iter().any(|name| vars.contains(name))
    }

    /// Compiles the value. Errors: the expected form.
    fn compile(&self, setup: Option<&Setup>) -> std::result::Result<Formula, String> {
        match self.decoded {
            true => Formula::rounded(&self.ast, setup),
            false => Formula::new(&self.ast, setup, KEY_BITS),
        }
    }
}

impl JobOrder for ByKey {
    fn name(&self) -> &str {
        &self.name
    }

    fn meaning(&self) -> &'static str {
        "The task set with the least value of an expression first."
    }

    fn source(&self) -> &'static str {
        "the definition is the user's"
    }

    fn key(&self, set: &SetView, now: Time) -> u128 {
        self.formula.as_ref().expect("an order of a cluster").key(&SetValues { set, now })
    }

    fn size_source(&self) -> SizeSource {
        match self.has(&[Var::Estimate, Var::JobSize, Var::JobLeft]) {
            true => SizeSource::Estimate,
            false => SizeSource::Nothing,
        }
    }

    fn by_resource(&self) -> bool {
        self.has(&[Var::JobService])
    }

    fn moves(&self) -> bool {
        self.has(&[Var::JobLeft, Var::JobAttained, Var::JobService])
    }

    fn drifts(&self) -> bool {
        self.has(&[Var::Now, Var::Age, Var::Wait])
    }

    fn in_cluster(&self, dims: &[Dim], capacity: &Resources) -> Result<Option<Arc<dyn JobOrder>>> {
        let setup = Setup { dims, capacity: *capacity, machines: 0, weights: &Weights::default(), labels: None };
        let wrong = |expected: String| Error::policy("expr", format!("'{}'", self.name), expected);
        let formula = self.compile(Some(&setup)).map_err(wrong)?;
        Ok(Some(Arc::new(ByKey { formula: Some(formula), ..self.clone() })))
    }
}

/// The values of a task set that an expression reads.
struct SetValues<'a> {
    set: &'a SetView<'a>,
    now: Time,
}

impl View for SetValues<'_> {
    fn read(&self, var: Var, d: usize) -> u128 {
        let SetValues { set, now } = *self;
        match var {
            Var::Priority => set.priority.into(),
            Var::Submit => set.submit.0.into(),
            Var::Release => set.release.0.into(),
            Var::Place => set.place.into(),
            Var::Age => now.0.saturating_sub(set.submit.0).into(),
            Var::Wait => now.0.saturating_sub(set.release.0).into(),
            Var::Now => now.0.into(),
            Var::Demand => set.demand[d].into(),
            Var::Tasks => set.tasks.into(),
            Var::Waiting => set.waiting.into(),
            Var::Deadline => set.deadline.map_or(u64::MAX, |deadline| deadline.0).into(),
            // An order that uses estimates never receives a set without one.
            Var::Estimate => set.estimate.map_or(u64::MAX, |estimate| estimate.0).into(),
            Var::JobWaiting => set.job.waiting.into(),
            Var::JobRunning => set.job.running.into(),
            Var::JobSize => set.job.size,
            Var::JobLeft => set.job.left,
            Var::JobAttained => set.job.attained,
            Var::JobService => set.job.service.map_or(0, |service| service[d]),
            _ => unreachable!("a name of users: {var:?}"),
        }
    }
}

/// Returns the order of this part of an expression; `decoded` if the rank uses its value. Errors: the expected form.
pub fn named(text: &str, order: Ast, decoded: bool) -> std::result::Result<Arc<dyn JobOrder>, String> {
    let mut names = Vec::new();
    order.names(&mut |var| names.push(var));
    let order = ByKey { name: text.to_owned(), ast: order, decoded, formula: None, names };
    if !order.has(&[Var::Demand, Var::Capacity, Var::JobService]) {
        order.compile(None)?;
    }
    Ok(Arc::new(order))
}
