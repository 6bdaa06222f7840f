//! An experiment with the control plane: what becomes of workers in every scenario, with all rules and without each of
//! them; how long recovery takes by heartbeat and window; what storms of faults cost. On all cores.

use std::collections::BTreeSet;

use rayon::prelude::*;

use super::rules::{Rule, Rules};
use super::scenario::Scenario;
use super::storm::{Damage, Storm};
use super::trial::Trial;
use super::world::plan::{Network, Timing};
use super::world::watch::Fate;
use crate::error::Result;
use crate::units::Span;

/// What is asked.
#[derive(Clone, Debug, PartialEq)]
pub struct Study {
    /// The scenarios whose workers are followed.
    pub scenarios: Vec<Scenario>,
    /// The rules that are removed, one at a time.
    pub rules: Vec<Rule>,
    /// The network.
    pub network: Network,
    /// The clocks.
    pub timing: Timing,
    /// How recovery depends on the clocks.
    pub recovery: Sweep,
    /// What storms cost.
    pub storms: Storms,
}

/// Clocks to try.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sweep {
    /// In these scenarios.
    pub scenarios: Vec<Scenario>,
    /// Spans between two heartbeats; time-outs grow in proportion.
    pub beats: Vec<Span>,
    /// Lengths of the window.
    pub windows: Vec<Span>,
}

/// Storms of several strengths.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Storms {
    /// All but the rate; none are run without.
    pub storm: Option<Storm>,
    /// Failures of each process in an hour.
    pub rates: Vec<f64>,
    /// Seeds.
    pub seeds: Vec<u64>,
}

/// Workers of a class of roles in one scenario, over all its timings in which services wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FateRow {
    /// Which scenario.
    pub scenario: Scenario,
    /// Without which rule, if any.
    pub without: Option<Rule>,
    /// Whether these are the online services.
    pub online: bool,
    /// Workers.
    pub fate: Fate,
    /// Invariants that were violated in any timing.
    pub violated: BTreeSet<&'static str>,
}

/// How long a scenario takes under some clocks, over all its timings in which services wait.
#[derive(Clone, Debug, PartialEq)]
pub struct RecoveryRow {
    /// Which scenario.
    pub scenario: Scenario,
    /// Between two heartbeats.
    pub beat: Span,
    /// The window.
    pub window: Span,
    /// Seconds from the first fault to the last change that it caused: the mean.
    pub mean_s: f64,
    /// The longest.
    pub longest_s: f64,
    /// Offline workers.
    pub offline: Fate,
    /// Invariants that were violated.
    pub violated: BTreeSet<&'static str>,
}

/// What one storm cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StormRow {
    /// Failures of each process in an hour.
    pub rate: f64,
    /// Without which rule, if any.
    pub without: Option<Rule>,
    /// Which faults.
    pub seed: u64,
    /// What they did.
    pub damage: Damage,
}

/// All answers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Findings {
    /// Scenario by scenario, all rules first.
    pub fates: Vec<FateRow>,
    /// Scenario by scenario, heartbeat by heartbeat.
    pub recoveries: Vec<RecoveryRow>,
    /// Rule by rule (all rules first), rate by rate.
    pub storms: Vec<StormRow>,
}

/// Says whether to go on.
pub type GoOn<'a> = dyn Fn() -> Result<()> + Sync + 'a;

/// All rules, or all but one.
pub fn rules_without(rule: Option<Rule>) -> Rules {
    rule.map_or(Rules::ALL, |rule| Rules::ALL.without(rule))
}

impl Study {
    /// No rule missing, then each of those that are removed.
    fn variants(&self) -> Vec<Option<Rule>> {
        [None].into_iter().chain(self.rules.iter().copied().map(Some)).collect()
    }

    /// Runs everything; `go_on` is asked before every part. Errors: those of `go_on`.
    pub fn run(&self, go_on: &GoOn) -> Result<Findings> {
        Ok(Findings { fates: self.fates(go_on)?, recoveries: self.recoveries(go_on)?, storms: self.storms(go_on)? })
    }

    fn fates(&self, go_on: &GoOn) -> Result<Vec<FateRow>> {
        let cells = self.scenarios.iter().flat_map(|&scenario| self.variants().into_iter().map(move |v| (scenario, v)));
        let cells: Vec<(Scenario, Option<Rule>)> = cells.collect();
        let rows = cells.par_iter().map(|&(scenario, without)| -> Result<[FateRow; 2]> {
            go_on()?;
            let trial = Trial::new(scenario, rules_without(without), self.network, self.timing);
            let violated = trial.broken();
            Ok([true, false].map(|online| FateRow {
                scenario,
                without,
                online,
                fate: trial.fate_while_waiting(online),
                violated: violated.clone(),
            }))
        });
        Ok(rows.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
    }

    fn recoveries(&self, go_on: &GoOn) -> Result<Vec<RecoveryRow>> {
        let Sweep { scenarios, beats, windows } = &self.recovery;
        let clocks = beats.iter().flat_map(|&beat| windows.iter().map(move |&window| (beat, window)));
        let clocks: Vec<(Span, Span)> = clocks.collect();
        let cells =
            scenarios.iter().flat_map(|&scenario| clocks.iter().map(move |&(beat, window)| (scenario, beat, window)));
        let cells: Vec<(Scenario, Span, Span)> = cells.collect();
        let row = |&(scenario, beat, window): &(Scenario, Span, Span)| -> Result<RecoveryRow> {
            go_on()?;
            let timing = Timing { window, ..self.timing.with_beat(beat) };
            let trial = Trial::new(scenario, Rules::ALL, self.network, timing);
            let spans: Vec<f64> = trial.while_waiting().map(|outcome| outcome.watch.recovery().seconds()).collect();
            Ok(RecoveryRow {
                scenario,
                beat,
                window,
                mean_s: spans.iter().sum::<f64>() / spans.len().max(1) as f64,
                longest_s: spans.iter().copied().fold(0.0, f64::max),
                offline: trial.fate_while_waiting(false),
                violated: trial.broken(),
            })
        };
        cells.par_iter().map(row).collect()
    }

    fn storms(&self, go_on: &GoOn) -> Result<Vec<StormRow>> {
        let Some(storm) = self.storms.storm else { return Ok(Vec::new()) };
        let mut cells = Vec::new();
        for without in self.variants() {
            for &rate in &self.storms.rates {
                cells.extend(self.storms.seeds.iter().map(|&seed| (without, rate, seed)));
            }
        }
        let row = |&(without, rate, seed): &(Option<Rule>, f64, u64)| -> Result<StormRow> {
            go_on()?;
            let damage = Storm { rate, ..storm }.run(rules_without(without), seed);
            Ok(StormRow { rate, without, seed, damage })
        };
        cells.par_iter().map(row).collect()
    }
}
