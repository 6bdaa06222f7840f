//! Scenarios and the matrix for people and for programs.

use std::collections::BTreeSet;

use serde_json::{Value as Json, json};

use super::super::print::aligned_left;
use crate::control::rules::{Rule, Rules};
use crate::control::scenario::{Scenario, State};
use crate::control::trial::{Trace, Trial};
use crate::control::world::log::{Entry, What};
use crate::control::world::plan::Network;
use crate::control::world::watch::{Fate, Violation, Watch};

/// Kept / started elsewhere / lost.
fn short(fate: &Fate) -> String {
    format!("{}/{}/{}", fate.kept(), fate.replaced(), fate.lost())
}

/// Where FuxiMaster had what it rebuilt from.
fn sources(trial: &Trial) -> Vec<(&'static str, u32)> {
    let watch = trial.plain();
    let mut sources: Vec<(&'static str, u32)> =
        watch.rebuilt.iter().map(|(origin, count)| (origin.name(), *count)).collect();
    if trial.scenario.master && watch.requested > 0 {
        sources.push(("request", watch.requested));
    }
    sources
}

fn rebuilt(trial: &Trial) -> String {
    let sources: Vec<String> = sources(trial).iter().map(|(name, count)| format!("{name} {count}")).collect();
    if sources.is_empty() { "-".to_owned() } else { sources.join(", ") }
}

fn forgotten(watch: &Watch) -> String {
    watch.forgotten.map(|units| units.to_string()).join("/")
}

/// A line a scenario, then the shortest trace of each that breaks.
pub(super) fn table(trials: &[Trial], network: Network) -> String {
    let header = ["", "scenario", "", "timings", "forgot", "rebuilt from", "online", "offline", "recovery", "longest"];
    let rows: Vec<Vec<String>> = trials
        .iter()
        .map(|trial| {
            let (watch, setup) = (trial.plain(), Scenario::setup(trial.rules));
            vec![
                trial.scenario.number().to_string(),
                trial.scenario.name(),
                if trial.ok() { "ok".to_owned() } else { "broken".to_owned() },
                trial.outcomes.len().to_string(),
                forgotten(watch),
                rebuilt(trial),
                short(&watch.fate(&setup, true)),
                short(&watch.fate(&setup, false)),
                format!("{:.1} s", watch.recovery().seconds()),
                format!("{:.1} s", trial.slowest().seconds()),
            ]
        })
        .collect();
    let mut text = aligned_left(&header.map(str::to_owned), &rows);
    text += "\nforgot: units in the tables of FuxiMaster / hints of application masters / caps of Tubos\n\
             online, offline: workers that kept running / were started again or elsewhere / were lost\n\
             recovery: from the first fault until all who died are replaced and nothing changes any more, in the plainest\n\
             timing and in the longest\n";
    for trial in trials {
        if let Some(trace) = trial.shortest_trace() {
            let broken: Vec<&str> = trial.broken().into_iter().collect();
            let bad: BTreeSet<usize> = trial.violations().map(|(timing, _)| timing).collect();
            text += &format!(
                "\n{}: {} violated in {} of {} timings; the shortest trace (timing {}):\n",
                trial.scenario.name(),
                broken.join(", "),
                bad.len(),
                trial.outcomes.len(),
                trace.timing
            );
            text += &self::trace(&trace);
        }
    }
    let missing = trials.first().is_some_and(|trial| trial.rules != Rules::ALL);
    if missing && trials.iter().all(Trial::ok) && network == Network::ORDERED {
        text += "\nNothing breaks on ordered links; --links lossy or --chaos N may show what the rule is for.\n";
    }
    text
}

/// The lines of a trace.
pub(super) fn trace(trace: &Trace) -> String {
    trace.entries.iter().map(|entry| format!("  {}\n", line(entry))).collect()
}

/// A line of a log.
fn line(entry: &Entry) -> String {
    let what = match entry.what {
        What::Message { from, to, arrived: true, .. } => format!("{} -> {}: {}", from.name(), to.name(), entry.text),
        What::Message { from, to, arrived: false, .. } => {
            format!("{} -> {} (does not arrive): {}", from.name(), to.name(), entry.text)
        }
        What::Note(node) | What::Start(node) | What::Fault(node) | What::Heal(node) => {
            format!("{} {}", node.name(), entry.text)
        }
        What::Violation => entry.text.clone(),
    };
    format!("{:>9.3} s  {what}", entry.at.seconds())
}

/// A violation as an object.
pub(super) fn violation_json(violation: &Violation) -> Json {
    json!({
        "invariant": violation.invariant,
        "at_s": violation.at.seconds(),
        "what": violation.what,
        "machine": violation.machine.map(|machine| machine.0),
    })
}

pub(super) fn trace_json(trace: &Trace) -> Json {
    trace.entries.iter().map(|entry| Json::from(line(entry).trim_start())).collect()
}

fn state(state: State) -> &'static str {
    match state {
        State::Well => "ok",
        State::Failover => "failover",
        State::Timeout => "timeout",
    }
}

fn fate_json(fate: &Fate) -> Json {
    json!({ "before": fate.before, "kept": fate.kept(), "replaced": fate.replaced(), "lost": fate.lost() })
}

/// `{"scenarios": [..]}`.
pub(super) fn json(trials: &[Trial]) -> Json {
    let one = |trial: &Trial| {
        let (watch, setup) = (trial.plain(), Scenario::setup(trial.rules));
        let violations: Vec<Json> = trial
            .violations()
            .map(|(timing, violation)| {
                let mut value = violation_json(violation);
                value["timing"] = timing.into();
                value
            })
            .collect();
        let rebuilt: serde_json::Map<String, Json> =
            sources(trial).into_iter().map(|(name, count)| (name.replace(' ', "_"), count.into())).collect();
        let roles = setup.names.iter().zip(&setup.roles).zip(&watch.fates).map(|((name, role), fate)| {
            let mut value = fate_json(fate);
            value["role"] = name.as_str().into();
            value["online"] = role.stable.into();
            value
        });
        json!({
            "name": trial.scenario.name(),
            "number": trial.scenario.number(),
            "ok": trial.ok(),
            "violations": violations,
            "fuximaster": if trial.scenario.master { "failover" } else { "ok" },
            "application_master": state(trial.scenario.app),
            "tubo": state(trial.scenario.tubo),
            "without": trial.rules.missing().map(Rule::name).collect::<Vec<_>>(),
            "timings": trial.outcomes.len(),
            "forgot": {
                "fuximaster": watch.forgotten[0],
                "application_masters": watch.forgotten[1],
                "tubos": watch.forgotten[2],
            },
            "rebuilt": rebuilt,
            "requests_converted": watch.converted,
            "online": fate_json(&watch.fate(&setup, true)),
            "offline": fate_json(&watch.fate(&setup, false)),
            "roles": roles.collect::<Vec<Json>>(),
            "recovery_s": watch.recovery().seconds(),
            "longest_recovery_s": trial.slowest().seconds(),
            "trace": trial.shortest_trace().map(|trace| trace_json(&trace)),
        })
    };
    json!({ "scenarios": trials.iter().map(one).collect::<Vec<Json>>() })
}

/// A row a scenario, a column a rule.
pub(super) fn matrix(scenarios: &[Scenario], rules: &[Rule], cells: &[Vec<BTreeSet<&'static str>>]) -> String {
    let header: Vec<String> =
        ["", "scenario"].into_iter().chain(rules.iter().map(|rule| rule.name())).map(str::to_owned).collect();
    let cell = |broken: &BTreeSet<&'static str>| match broken.contains("I1") {
        true => "stops".to_owned(),
        false if broken.is_empty() => ".".to_owned(),
        false => broken.iter().copied().collect::<Vec<_>>().join("+"),
    };
    let rows = scenarios.iter().zip(cells).map(|(scenario, row)| {
        let head = [scenario.number().to_string(), scenario.name()];
        head.into_iter().chain(row.iter().map(cell)).collect::<Vec<String>>()
    });
    let table = aligned_left(&header, &rows.collect::<Vec<_>>());
    format!("{table}\nstops: without the rule a worker of an online service is stopped without consent\n")
}

/// `{"rules": [..], "matrix": [{"name", "broken_by": [..], "violated": {rule: [..]}}]}`.
pub(super) fn matrix_json(scenarios: &[Scenario], rules: &[Rule], cells: &[Vec<BTreeSet<&'static str>>]) -> Json {
    let row = |(scenario, row): (&Scenario, &Vec<BTreeSet<&'static str>>)| {
        let broken = rules.iter().zip(row).filter(|(_, broken)| broken.contains("I1")).map(|(rule, _)| rule.name());
        let all = rules.iter().zip(row).filter(|(_, broken)| !broken.is_empty());
        let violated: serde_json::Map<String, Json> =
            all.map(|(rule, broken)| (rule.name().to_owned(), broken.iter().copied().collect())).collect();
        json!({
            "name": scenario.name(),
            "number": scenario.number(),
            "broken_by": broken.collect::<Vec<_>>(),
            "violated": violated,
        })
    };
    let names: Vec<&str> = rules.iter().map(|rule| rule.name()).collect();
    json!({ "rules": names, "matrix": scenarios.iter().zip(cells).map(row).collect::<Vec<Json>>() })
}
