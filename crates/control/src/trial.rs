//! Runs all timings of one scenario under some rules, and collects the outcomes.
//!
//! A [`Trial`] has the outcomes of all timings of a scenario. A [`Trace`] is the part of the log that explains one violation. [`matrix`]
//! runs scenarios without each rule and lists the violated invariants.

use std::collections::BTreeSet;

use rayon::prelude::*;

use super::message::Endpoint;
use super::rules::{Rule, Rules};
use super::scenario::Scenario;
use super::setup::Setup;
use super::stage::{PlayOptions, Testbed};
use super::world::log::{LogEntry, What};
use super::world::plan::{Network, Script, Timing};
use super::world::watch::{Fate, Violation, Watch};
use plimsoll_base::units::{MachineId, Span, Time};

/// The outcome of one timing.
#[derive(Clone, Debug)]
pub struct TimingOutcome {
    /// The cluster with the applications that are not complete.
    pub setup: Setup,
    /// The ledger of the run.
    pub watch: Watch,
    /// The number of messages sent.
    pub messages: u64,
    /// The number of these messages that were heartbeats without effect and therefore not delivered.
    pub idle: u64,
}

impl TimingOutcome {
    /// Runs a testbed to its end. Panics: when its rows are invalid (a programmer error).
    pub fn play(stage: &Testbed) -> TimingOutcome {
        let world = stage.play(PlayOptions::default(), &|| Ok(())).expect("a stage that can be played");
        let (messages, idle) = world.messages();
        TimingOutcome { setup: world.setup().clone(), watch: world.watch, messages, idle }
    }
}

/// The outcome of a scenario.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The scenario.
    pub scenario: Scenario,
    /// The rules in force.
    pub rules: Rules,
    /// Each timing with its outcome; reports describe the first, which is the plainest.
    pub outcomes: Vec<(Script, TimingOutcome)>,
}

impl Trial {
    /// Runs all timings of a scenario.
    pub fn new(scenario: Scenario, rules: Rules, network: Network, timing: Timing) -> Trial {
        let outcomes = scenario.scripts(network, timing).into_iter().map(|script| {
            let outcome = TimingOutcome::play(&Scenario::stage(rules, script.clone()));
            (script, outcome)
        });
        Trial { scenario, rules, outcomes: outcomes.collect() }
    }

    /// Returns whether no invariant was violated.
    pub fn ok(&self) -> bool {
        self.violations().next().is_none()
    }

    /// Returns the violations, each with the number of the timing (from 1).
    pub fn violations(&self) -> impl Iterator<Item = (usize, &Violation)> {
        let numbered = self.outcomes.iter().enumerate();
        numbered.flat_map(|(at, (_, outcome))| outcome.watch.violations.iter().map(move |found| (at + 1, found)))
    }

    /// Returns the names of the violated invariants.
    pub fn broken(&self) -> BTreeSet<&'static str> {
        self.violations().map(|(_, violation)| violation.invariant).collect()
    }

    /// Returns the ledger of the plainest timing.
    pub fn plain(&self) -> &Watch {
        &self.outcomes[0].1.watch
    }

    /// Returns the cluster of the plainest timing.
    pub fn setup(&self) -> &Setup {
        &self.outcomes[0].1.setup
    }

    /// Returns the outcomes of the timings with services that wait for unreachable machines instead of moving.
    pub fn while_waiting(&self) -> impl Iterator<Item = &TimingOutcome> {
        self.outcomes.iter().filter(|(script, _)| script.patience.is_none()).map(|(_, outcome)| outcome)
    }

    /// Returns the total fate of the workers of a class of roles in these timings.
    pub fn fate_while_waiting(&self, online: bool) -> Fate {
        let fates = self.while_waiting().map(|outcome| outcome.watch.fate(&outcome.setup, online));
        fates.fold(Fate::default(), Fate::plus)
    }

    /// Returns the longest time to recover in any timing.
    pub fn slowest(&self) -> Span {
        self.outcomes.iter().map(|(_, outcome)| outcome.watch.recovery()).max().unwrap_or_default()
    }

    /// Returns the shortest trace that leads to a violation; harm to online services (I1) comes first.
    pub fn shortest_trace(&self) -> Option<Trace> {
        let worst = |watch: &Watch| {
            let harm = watch.violations.iter().find(|found| found.invariant == "I1");
            harm.or(watch.violations.first()).cloned()
        };
        let bad = self
            .outcomes
            .iter()
            .enumerate()
            .filter_map(|(at, (script, outcome))| worst(&outcome.watch).map(|violation| (at, script, violation)));
        let trace = |script: &Script, violation| Trace::record(&Scenario::stage(self.rules, script.clone()), violation);
        let traces = bad.map(|(at, script, violation)| Trace { timing: at + 1, ..trace(script, violation) });
        traces.min_by_key(|trace| (trace.violation.invariant != "I1", trace.entries.len()))
    }
}

/// The lines of the log that lead to a violation and concern its machine and its role.
#[derive(Clone, Debug)]
pub struct Trace {
    /// The number of the timing in its scenario, from 1.
    pub timing: usize,
    /// The violation.
    pub violation: Violation,
    /// The lines, up to the violation.
    pub entries: Vec<LogEntry>,
}

impl Trace {
    /// Runs a testbed again and keeps the relevant lines of its log. Panics: as [`TimingOutcome::play`].
    pub fn record(stage: &Testbed, violation: Violation) -> Trace {
        let mut world =
            stage.play(PlayOptions { recorded: true, strict: false }, &|| Ok(())).expect("it was played before");
        let (script, setup) = (&stage.script, world.setup().clone());
        let struck = script.strikes.first().map_or(Time::ZERO, |strike| strike.at);
        let machines: BTreeSet<MachineId> = script.strikes.iter().filter_map(|strike| strike.fault.machine()).collect();
        let concerns = |entry: &LogEntry| {
            let same = violation.machine.is_none() || entry.machine.is_none() || entry.machine == violation.machine;
            // Of other machines, only those with a fault are kept, with their messages to FuxiMaster and the events of FuxiMaster.
            let says = match entry.what {
                What::Message { to, .. } => to == Endpoint::Master,
                What::Note(node) => node == Endpoint::Master,
                _ => true,
            };
            let machine = same || says && entry.machine.is_some_and(|machine| machines.contains(&machine));
            let role = violation.role.is_none_or(|role| entry.roles.is_empty() || entry.roles.contains(&role));
            // Of the application masters, only that of the application concerned. Before the first fault, only notes and starts that
            // concern roles.
            let app = violation.role.and_then(|role| setup.find(role)).map(|role| role.app);
            let other = |node: Endpoint| matches!((node, app), (Endpoint::App(id, _), Some(app)) if id != app);
            let party = match entry.what {
                What::Message { from, to, .. } => !other(from) && !other(to) && entry.at >= struck,
                What::Note(node) | What::Start(node) => !other(node) && (entry.at >= struck || !entry.roles.is_empty()),
                What::Fault(node) | What::Heal(node) => !other(node) && entry.at >= struck,
                What::Violation => true,
            };
            entry.at <= violation.at && machine && role && party
        };
        let mut entries = std::mem::take(&mut world.log.entries);
        let found = entries.iter().position(|entry| {
            entry.what == What::Violation && entry.at == violation.at && entry.text.ends_with(&violation.what)
        });
        entries.truncate(found.map_or(entries.len(), |at| at + 1));
        // Other violations may have occurred earlier.
        let last = entries.len().saturating_sub(1);
        let kept = entries.into_iter().enumerate();
        let kept = kept.filter(|(at, entry)| *at == last || concerns(entry) && entry.what != What::Violation);
        // Repeated messages are skipped.
        let mut said = BTreeSet::new();
        let kept = kept.filter(|(_, entry)| match entry.what {
            What::Message { from, to, .. } => said.insert((from, to, entry.text.clone())),
            _ => true,
        });
        Trace { timing: 1, violation: violation.clone(), entries: kept.map(|(_, entry)| entry).collect() }
    }
}

/// Returns all lines of the log of a testbed. Panics: as [`TimingOutcome::play`].
pub fn log(stage: &Testbed) -> Vec<LogEntry> {
    let mut world =
        stage.play(PlayOptions { recorded: true, strict: false }, &|| Ok(())).expect("a stage that can be played");
    std::mem::take(&mut world.log.entries)
}

/// Returns the invariants that are violated without each rule, by scenario and rule. Runs on all cores.
pub fn matrix(
    scenarios: &[Scenario],
    rules: &[Rule],
    network: Network,
    timing: Timing,
) -> Vec<Vec<BTreeSet<&'static str>>> {
    let cells: Vec<(Scenario, Rule)> =
        scenarios.iter().flat_map(|&scenario| rules.iter().map(move |&rule| (scenario, rule))).collect();
    let broken = cells
        .par_iter()
        .map(|&(scenario, rule)| Trial::new(scenario, Rules::ALL.without(rule), network, timing).broken());
    let broken: Vec<BTreeSet<&'static str>> = broken.collect();
    broken.chunks(rules.len().max(1)).map(<[BTreeSet<&'static str>]>::to_vec).collect()
}
