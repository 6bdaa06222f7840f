//! The state of the kernel in a checkpoint.

use super::{Kernel, RunContext};
use crate::workload::read_again;
use plimsoll_base::checkpoint::{Checkpoint, Visitor};
use plimsoll_base::error::{Error, Result};
use plimsoll_base::units::UserId;
use plimsoll_base::visit_values;

impl Kernel<'_> {
    /// Returns whether source, policy and recorder have checkpoints, and no job is watched.
    pub fn has_checkpoints(&mut self) -> bool {
        let RunContext { source, policy, recorder, control: _ } = &mut self.context;
        let has_source = !source.reacts() || source.checkpoint().is_some();
        has_source && policy.checkpoint().is_some() && recorder.checkpoint().is_some() && self.watch.is_none()
    }
}

impl Checkpoint for Kernel<'_> {
    /// Visits the kernel, and the source, the policy and the recorder of its context. Before the policy is restored, the source has the names
    /// of all users again, and the policy has opened them. Errors: [`Error::Mismatch`] for a source, policy or recorder
    /// without checkpoints, and the errors of the source.
    fn visit(&mut self, visitor: &mut Visitor) -> Result<()> {
        let Kernel {
            context,
            settings: _,
            now,
            books,
            site,
            work,
            intake,
            running,
            line_states,
            launches,
            launched,
            preempts_for: _,
            ties,
            livelock,
            joined,
            budget,
            changes,
            watch,
            outcome,
        } = self;
        if watch.is_some() {
            return Err(no_checkpoints("a run that watches jobs"));
        }
        visitor.value(outcome)?;
        books.visit(visitor)?;
        let RunContext { source, policy, recorder, control: _ } = context;
        if source.reacts() {
            source.checkpoint().ok_or_else(|| no_checkpoints("this workload"))?.visit(visitor)?;
        } else if visitor.is_restoring() {
            read_again(&mut **source, outcome.rows, &mut |submit| recorder.heartbeat(submit))?;
        }
        if visitor.is_restoring() {
            (0..books.users() as u32).try_for_each(|user| policy.open(UserId(user), source.users().name(user)))?;
        }
        policy.checkpoint().ok_or_else(|| no_checkpoints("this policy"))?.visit(visitor)?;
        recorder.checkpoint().ok_or_else(|| no_checkpoints("this recorder"))?.visit(visitor)?;
        visit_values!(visitor; now, intake, line_states, launches, launched, livelock, joined);
        site.visit(visitor)?;
        work.visit(visitor)?;
        running.visit(visitor)?;
        ties.visit(visitor)?;
        budget.visit(visitor)?;
        changes.visit(visitor)
    }
}

/// Returns the error for an object without checkpoints.
pub(in crate::engine) fn no_checkpoints(what: &str) -> Error {
    Error::Mismatch { problem: format!("{what} has no checkpoints") }
}
