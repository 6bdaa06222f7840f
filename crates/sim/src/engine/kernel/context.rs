//! The run context: the objects that the engine calls during a run. They are borrowed or owned.

use std::ops::{Deref, DerefMut};

use crate::backend::Control;
use crate::policy::Policy;
use crate::record::Recorder;
use crate::workload::Source;

/// An object of the run context. An engine that owns all of them can be stored, and moved to another thread.
pub enum Party<'a, T: ?Sized> {
    Lent(&'a mut T),
    Own(Box<T>),
}

impl<T: ?Sized> Deref for Party<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        match self {
            Party::Lent(party) => party,
            Party::Own(party) => party,
        }
    }
}

impl<T: ?Sized> DerefMut for Party<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        match self {
            Party::Lent(party) => party,
            Party::Own(party) => party,
        }
    }
}

/// The source of tasks, the policy, the recorder, and optionally a control.
pub struct RunContext<'a> {
    pub(super) source: Party<'a, dyn Source + 'a>,
    pub(super) policy: Party<'a, dyn Policy + 'a>,
    pub(super) recorder: Party<'a, dyn Recorder + 'a>,
    /// The control that executes the decisions; if absent, the engine does.
    pub(super) control: Option<Party<'a, dyn Control + 'a>>,
}

impl<'a> RunContext<'a> {
    /// Creates a context that borrows its objects for the time of the run.
    pub fn lent(
        source: &'a mut (dyn Source + 'a),
        policy: &'a mut (dyn Policy + 'a),
        recorder: &'a mut (dyn Recorder + 'a),
    ) -> RunContext<'a> {
        let (source, policy, recorder) = (Party::Lent(source), Party::Lent(policy), Party::Lent(recorder));
        RunContext { source, policy, recorder, control: None }
    }

    /// Creates a context that owns its objects.
    pub fn own(
        source: Box<dyn Source + 'a>,
        policy: Box<dyn Policy + 'a>,
        recorder: Box<dyn Recorder + 'a>,
    ) -> RunContext<'a> {
        let (source, policy, recorder) = (Party::Own(source), Party::Own(policy), Party::Own(recorder));
        RunContext { source, policy, recorder, control: None }
    }

    /// Adds a control for the duration of the run.
    pub fn under(self, control: &'a mut (dyn Control + 'a)) -> RunContext<'a> {
        RunContext { control: Some(Party::Lent(control)), ..self }
    }

    /// Returns the policy.
    pub(in crate::engine) fn policy(&self) -> &(dyn Policy + 'a) {
        &*self.policy
    }

    /// Removes and returns the control.
    pub(in crate::engine) fn without_control(mut self) -> (RunContext<'a>, Option<Party<'a, dyn Control + 'a>>) {
        let control = self.control.take();
        (self, control)
    }
}
