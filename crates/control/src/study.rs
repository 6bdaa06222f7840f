//! An experiment with the control plane, run on all cores. It has two parts: the fates of workers in every scenario, with all rules and
//! without each of them, and the time to recover by heartbeat and window.

use std::collections::BTreeSet;

use rayon::prelude::*;

use super::rules::{Rule, Rules};
use super::scenario::Scenario;
use super::trial::Trial;
use super::world::plan::{Network, Timing};
use super::world::watch::Fate;
use plimsoll_base::error::Result;
use plimsoll_base::units::Span;

/// The parameters of the study.
#[derive(Clone, Debug, PartialEq)]
pub struct Study {
    /// The scenarios for the fates of workers.
    pub scenarios: Vec<Scenario>,
    /// The rules that are removed, one at a time.
    pub rules: Vec<Rule>,
    /// The network.
    pub network: Network,
    /// The clocks.
    pub timing: Timing,
    /// The sweep of the clocks for the time to recover.
    pub recovery: Sweep,
}

/// The clocks of the recovery part: each heartbeat with each window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sweep {
    /// The scenarios.
    pub scenarios: Vec<Scenario>,
    /// Times between two heartbeats; time-outs grow in proportion.
    pub beats: Vec<Span>,
    /// Durations of the window.
    pub windows: Vec<Span>,
}

/// The fates of the workers of a class of roles in one scenario, over the timings of `Trial::while_waiting`: services wait for unreachable
/// machines instead of moving.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FateRow {
    /// The scenario.
    pub scenario: Scenario,
    /// The rule that is removed, if any.
    pub without: Option<Rule>,
    /// Whether the row is about online services; otherwise it is about offline roles.
    pub online: bool,
    /// The fates of the workers.
    pub fate: Fate,
    /// Invariants that were violated in any timing.
    pub violated: BTreeSet<&'static str>,
}

/// The time to recover in a scenario under some clocks, over the timings of `Trial::while_waiting`.
#[derive(Clone, Debug, PartialEq)]
pub struct RecoveryRow {
    /// The scenario.
    pub scenario: Scenario,
    /// The time between two heartbeats.
    pub beat: Span,
    /// The duration of the window.
    pub window: Span,
    /// The mean time from the first fault to the last change that it caused, in seconds.
    pub mean_s: f64,
    /// The longest such time, in seconds.
    pub longest_s: f64,
    /// The fates of offline workers.
    pub offline: Fate,
    /// Invariants that were violated in any timing.
    pub violated: BTreeSet<&'static str>,
}

/// The results of the study.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FailoverFindings {
    /// The fates of workers: scenario by scenario, all rules first.
    pub fates: Vec<FateRow>,
    /// Times to recover: scenario by scenario, heartbeat by heartbeat.
    pub recoveries: Vec<RecoveryRow>,
}

/// Receives the progress of a study, and may end it.
pub trait Watcher: Sync {
    /// Called before each part. Errors: the study is to end; the error is returned by [`Study::run`].
    fn go_on(&self) -> Result<()>;

    /// Adds `parts` to the number of parts to run.
    fn planned(&self, parts: usize);

    /// Records that a part has been run.
    fn done(&self);
}

/// Returns all rules, or all but one.
pub fn rules_without(rule: Option<Rule>) -> Rules {
    rule.map_or(Rules::ALL, |rule| Rules::ALL.without(rule))
}

impl Study {
    /// Returns the variants of a scenario: `None`, which keeps all rules, then `Some` of each rule to remove.
    fn variants(&self) -> Vec<Option<Rule>> {
        [None].into_iter().chain(self.rules.iter().copied().map(Some)).collect()
    }

    /// Runs all parts. Errors: those of the watcher.
    pub fn run(&self, watcher: &dyn Watcher) -> Result<FailoverFindings> {
        let (fates, recoveries) = (self.fates(), self.recoveries());
        watcher.planned(fates.len() + recoveries.len());
        Ok(FailoverFindings {
            fates: fates.par_iter().map(|cell| self.fate(cell, watcher)).collect::<Result<Vec<_>>>()?.concat(),
            recoveries: recoveries.par_iter().map(|cell| self.recovery(cell, watcher)).collect::<Result<_>>()?,
        })
    }

    fn fates(&self) -> Vec<(Scenario, Option<Rule>)> {
        let of = |scenario| self.variants().into_iter().map(move |without| (scenario, without));
        self.scenarios.iter().copied().flat_map(of).collect()
    }

    fn fate(&self, &(scenario, without): &(Scenario, Option<Rule>), watcher: &dyn Watcher) -> Result<[FateRow; 2]> {
        watcher.go_on()?;
        let trial = Trial::new(scenario, rules_without(without), self.network, self.timing);
        let violated = trial.broken();
        watcher.done();
        Ok([true, false].map(|online| FateRow {
            scenario,
            without,
            online,
            fate: trial.fate_while_waiting(online),
            violated: violated.clone(),
        }))
    }

    fn recoveries(&self) -> Vec<(Scenario, Span, Span)> {
        let Sweep { scenarios, beats, windows } = &self.recovery;
        let clocks = || beats.iter().flat_map(|&beat| windows.iter().map(move |&window| (beat, window)));
        scenarios.iter().flat_map(|&scenario| clocks().map(move |(beat, window)| (scenario, beat, window))).collect()
    }

    fn recovery(
        &self,
        &(scenario, beat, window): &(Scenario, Span, Span),
        watcher: &dyn Watcher,
    ) -> Result<RecoveryRow> {
        watcher.go_on()?;
        let timing = Timing { window, ..self.timing.with_beat(beat) };
        let trial = Trial::new(scenario, Rules::ALL, self.network, timing);
        let spans: Vec<f64> = trial.while_waiting().map(|outcome| outcome.watch.recovery().seconds()).collect();
        watcher.done();
        Ok(RecoveryRow {
            scenario,
            beat,
            window,
            mean_s: spans.iter().sum::<f64>() / spans.len().max(1) as f64,
            longest_s: spans.iter().copied().fold(0.0, f64::max),
            offline: trial.fate_while_waiting(false),
            violated: trial.broken(),
        })
    }
}
