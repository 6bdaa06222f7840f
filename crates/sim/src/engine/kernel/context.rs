//! The run context: the objects that the engine calls during a run, borrowed or owned.

use std::ops::{Deref, DerefMut};

use crate::backend::Control;
use crate::policy::Policy;
use crate::record::Recorder;
use crate::workload::Source;

/// An object of the run context. An engine that owns all of them can be stored, and moved to another thread.
pub(in crate::engine) enum Party<'a, T: ?Sized> {
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
    pub(in crate::engine) source: Party<'a, dyn Source + 'a>,
    pub(in crate::engine) policy: Party<'a, dyn Policy + 'a>,
    pub(in crate::engine) recorder: Party<'a, dyn Recorder + 'a>,
    /// The control that executes the decisions; if absent, the engine does.
    pub(in crate::engine) control: Option<Party<'a, dyn Control + 'a>>,
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
}
