//! The sequence diagram of a run of the control plane, from its log.

use plimsoll_base::units::{MachineId, Time};
use plimsoll_charts::figure::{SequenceRow, SequenceStep, Tone, sequence};
use plimsoll_control::message::Endpoint;
use plimsoll_control::rules::Rule;
use plimsoll_control::scenario::Scenario;
use plimsoll_control::setup::Setup;
use plimsoll_control::trial::{self, Trial};
use plimsoll_control::world::log::{LogEntry, What};

/// Draws the plain timing of a trial or, if a property is violated, the timing with the shortest trace. Returns the drawing, at the given
/// width, and its title.
pub fn of_trial(trial: &Trial, width: Option<f64>) -> (String, String) {
    let trace = trial.shortest_trace();
    let timing = trace.as_ref().map_or(1, |trace| trace.timing);
    let removed: Vec<&str> = trial.rules.missing().map(Rule::name).collect();
    let mut title = trial.scenario.name();
    if !removed.is_empty() {
        title += &format!(" without {}", removed.join(", "));
    }
    let log = trial::log(&Scenario::stage(trial.rules, trial.outcomes[timing - 1].0.clone()));
    // Events after the violation do not explain it.
    let end = trace.map_or(Time::NEVER, |trace| trace.violation.at);
    let log: Vec<LogEntry> = log.into_iter().take_while(|entry| entry.at <= end).collect();
    (draw(trial.setup(), &title, &log, width), title)
}

/// Draws a log from its first fault on. The lanes are FuxiMaster, the application masters, and the machines with a fault, or the first
/// machine if there are none.
pub fn draw(setup: &Setup, title: &str, log: &[LogEntry], width: Option<f64>) -> String {
    let first = log.iter().position(|entry| matches!(entry.what, What::Fault(_))).unwrap_or(0);
    let log = &log[first..];
    let struck = log.iter().filter_map(|entry| match entry.what {
        What::Fault(Endpoint::Tubo(machine)) => Some(machine),
        _ => None,
    });
    let mut machines: Vec<MachineId> = struck.collect();
    machines.sort();
    machines.dedup();
    if machines.is_empty() {
        machines.push(MachineId(0));
    }
    let mut lanes = vec!["FuxiMaster".to_owned()];
    let apps = setup.app_ids();
    lanes.extend(apps.iter().map(|app| {
        let names: Vec<&str> = setup.roles_of(*app).map(|role| setup.name(role)).collect();
        format!("AM {} ({})", app.0, names.join(", "))
    }));
    lanes.extend(machines.iter().map(|machine| format!("Tubo {machine}")));
    let lane = |node: Endpoint| match node {
        Endpoint::Master => Some(0),
        Endpoint::App(app, _) => apps.iter().position(|other| *other == app).map(|at| 1 + at),
        Endpoint::Tubo(machine) => machines.iter().position(|other| *other == machine).map(|at| 1 + apps.len() + at),
    };
    let row = |entry: &LogEntry| {
        let step = match entry.what {
            What::Message { from, to, arrived, .. } => {
                SequenceStep::Arrow { from: lane(from)?, to: lane(to)?, arrives: arrived }
            }
            // Notes of FuxiMaster on omitted machines are omitted, too.
            What::Note(_) if entry.machine.is_some_and(|machine| !machines.contains(&machine)) => return None,
            What::Note(node) => SequenceStep::Mark(lane(node)?, Tone::Plain),
            // A new FuxiMaster only collects reports at first.
            What::Start(Endpoint::Master) => SequenceStep::Mark(0, Tone::Plain),
            What::Start(node) | What::Heal(node) => SequenceStep::Mark(lane(node)?, Tone::Good),
            What::Fault(node) => SequenceStep::Mark(lane(node)?, Tone::Bad),
            What::Violation => SequenceStep::Banner,
        };
        Some(SequenceRow { seconds: entry.at.seconds(), step, text: entry.text.clone() })
    };
    let others = setup.machines.len() - machines.len();
    let note = match others {
        0 => String::new(),
        1 => "1 unaffected machine and heartbeats are not shown".to_owned(),
        _ => format!("{others} unaffected machines and heartbeats are not shown"),
    };
    sequence(title, &note, &lanes, &log.iter().filter_map(row).collect::<Vec<_>>(), width)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_control::rules::Rules;
    use plimsoll_control::scenario::ProcessState;
    use plimsoll_control::world::plan::{Network, Timing};

    #[test]
    fn every_scenario_has_a_diagram_with_its_faults() {
        for scenario in Scenario::all() {
            let trial = Trial::new(scenario, Rules::ALL, Network::ORDERED, Timing::default());
            let script = scenario.scripts(Network::ORDERED, Timing::default()).remove(0);
            let log = trial::log(&Scenario::stage(Rules::ALL, script));
            let svg = draw(trial.setup(), &scenario.name(), &log, None);
            for text in ["FuxiMaster", "AM 1 (web)", "Tubo 0", scenario.name().as_str()] {
                assert!(svg.contains(text), "{}: {text} is missing", scenario.name());
            }
            assert_eq!(svg.contains("is cut from"), scenario.tubo == ProcessState::Timeout, "{}", scenario.name());
        }
    }
}
