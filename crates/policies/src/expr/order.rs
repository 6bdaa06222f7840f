//! The part of an expression that orders a user's own task sets.

use std::sync::Arc;

use super::names::Var;
use super::parse::Ast;
use super::program::View;
use super::{Formula, KEY_BITS};
use crate::job_order::{JobOrder, SetView, SizeSource};
use plimsoll_base::units::Time;

/// An order of task sets by the value of an expression.
struct ByKey {
    name: String,
    formula: Formula,
    size_source: SizeSource,
    moves: bool,
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

    fn key(&self, set: &SetView, _now: Time) -> u128 {
        self.formula.key(&SetValues { set })
    }

    fn size_source(&self) -> SizeSource {
        self.size_source
    }

    fn moves(&self) -> bool {
        self.moves
    }
}

/// The values of a task set that an expression reads.
struct SetValues<'a> {
    set: &'a SetView,
}

impl View for SetValues<'_> {
    fn read(&self, var: Var, _d: usize) -> u128 {
        let set = self.set;
        match var {
            Var::Priority => set.priority.into(),
            Var::Submit => set.submit.0.into(),
            Var::Release => set.release.0.into(),
            Var::Place => set.place.into(),
            Var::Waiting => set.waiting.into(),
            Var::Deadline => set.deadline.map_or(u64::MAX, |deadline| deadline.0).into(),
            // An order that uses estimates never receives a set without one.
            Var::Estimate => set.estimate.map_or(u64::MAX, |estimate| estimate.0).into(),
            Var::JobWaiting => set.job.waiting.into(),
            Var::JobRunning => set.job.running.into(),
            Var::JobSize => set.job.size,
            Var::JobLeft => set.job.left,
            Var::JobAttained => set.job.attained,
            _ => unreachable!("a name of users: {var:?}"),
        }
    }
}

/// Returns the order of this part of an expression. Errors: the expected form.
pub fn named(text: &str, order: &Ast) -> Result<Arc<dyn JobOrder>, String> {
    let mut names = Vec::new();
    order.names(&mut |var| names.push(var));
    let estimates = [Var::Estimate, Var::JobSize, Var::JobLeft];
    let size_source =
        if names.iter().any(|var| estimates.contains(var)) { SizeSource::Estimate } else { SizeSource::Nothing };
    let moves = names.iter().any(|var| [Var::JobLeft, Var::JobAttained].contains(var));
    let formula = Formula::new(order, None, KEY_BITS)?;
    Ok(Arc::new(ByKey { name: text.to_owned(), formula, size_source, moves }))
}
