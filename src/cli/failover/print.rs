//! Prints scenarios and the matrix of rules as tables and as JSON.

use std::collections::BTreeSet;

use serde_json::{Value as Json, json};

use super::super::printout::Printout;
use super::super::screen::{Alignment, Grid, GridCell, Tone, is_wide, paragraphs};
use crate::control::rules::{Rule, Rules};
use crate::control::scenario::{ProcessState, Scenario};
use crate::control::trial::{Trace, Trial};
use crate::control::world::log::{LogEntry, What};
use crate::control::world::plan::Network;
use crate::control::world::watch::{Fate, Violation, Watch};

/// Formats the numbers of workers that were kept / started on another machine / lost.
fn short(fate: &Fate) -> String {
    format!("{}/{}/{}", fate.kept(), fate.replaced(), fate.lost())
}

/// Returns the sources of FuxiMaster's rebuilt state, each with the number of units from it.
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

/// Maximum number of columns, unless `--wide` is given.
const KEY_COLUMNS: usize = 6;

/// Formats one line per scenario, then the shortest trace of each violation.
pub(super) fn table(trials: &[Trial], network: Network) -> Printout {
    let shown: Vec<(&str, Alignment, &dyn Fn(&Trial) -> GridCell)> = vec![
        ("", Alignment::Right, &|trial| trial.scenario.number().to_string().into()),
        ("scenario", Alignment::Left, &|trial| trial.scenario.name().into()),
        ("", Alignment::Left, &|trial| match trial.ok() {
            true => GridCell::toned("ok".to_owned(), Tone::Good),
            false => GridCell::toned("broken".to_owned(), Tone::Bad),
        }),
        ("online", Alignment::Left, &|trial| short(&trial.plain().fate(trial.setup(), true)).into()),
        ("offline", Alignment::Left, &|trial| short(&trial.plain().fate(trial.setup(), false)).into()),
        ("recovery", Alignment::Right, &|trial| format!("{:.1} s", trial.plain().recovery().seconds()).into()),
        ("longest", Alignment::Right, &|trial| format!("{:.1} s", trial.slowest().seconds()).into()),
        ("timings", Alignment::Right, &|trial| trial.outcomes.len().to_string().into()),
        ("forgot", Alignment::Left, &|trial| forgotten(trial.plain()).into()),
        ("rebuilt from", Alignment::Left, &|trial| rebuilt(trial).into()),
    ];
    let columns = if is_wide() { &shown[..] } else { &shown[..KEY_COLUMNS] };
    let rows = trials.iter().map(|trial| columns.iter().map(|(.., cell)| cell(trial)).collect()).collect();
    let header = columns.iter().map(|(name, side, _)| ((*name).to_owned(), *side)).collect();
    let mut text = Printout::from(Grid::new(header, rows).keyed(2));
    text += "\n";
    text += paragraphs(
        "online, offline: workers that kept running / were started again or elsewhere / were lost\n\
         recovery: from the first fault until every process that died is replaced and nothing changes any more, in the \
         simplest timing",
    );
    if is_wide() {
        text += "longest: the longest recovery of all timings\n\
                 forgot: units in the tables of FuxiMaster / hints of application masters / caps of Tubos\n";
    }
    for trial in trials {
        if let Some(trace) = trial.shortest_trace() {
            let broken: Vec<&str> = trial.broken().into_iter().collect();
            let bad: BTreeSet<usize> = trial.violations().map(|(timing, _)| timing).collect();
            text += "\n";
            text += paragraphs(&format!(
                "{}: {} violated in {} of {} timings; the shortest trace (timing {}):",
                trial.scenario.name(),
                broken.join(", "),
                bad.len(),
                trial.outcomes.len(),
                trace.timing
            ));
            text += self::trace(&trace);
        }
    }
    let missing = trials.first().is_some_and(|trial| trial.rules != Rules::ALL);
    if missing && trials.iter().all(Trial::ok) && network == Network::ORDERED {
        text += "\n";
        text += paragraphs(
            "No property fails on ordered links; --links lossy or --chaos N may show the purpose of the rule.",
        );
    }
    text
}

/// Formats the lines of a trace.
pub(super) fn trace(trace: &Trace) -> String {
    trace.entries.iter().map(|entry| paragraphs(&format!("  {}", line(entry)))).collect()
}

/// Formats a line of a log.
fn line(entry: &LogEntry) -> String {
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

/// Formats a violation as an object.
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

fn state(state: ProcessState) -> &'static str {
    match state {
        ProcessState::Well => "ok",
        ProcessState::Failover => "failover",
        ProcessState::Timeout => "timeout",
    }
}

fn fate_json(fate: &Fate) -> Json {
    json!({ "before": fate.before, "kept": fate.kept(), "replaced": fate.replaced(), "lost": fate.lost() })
}

/// Formats the scenarios as `{"scenarios": [..]}`.
pub(super) fn json(trials: &[Trial]) -> Json {
    let one = |trial: &Trial| {
        let (watch, setup) = (trial.plain(), trial.setup());
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
        let roles = setup.role_ids().into_iter().filter(|role| watch.fates[role.index()].before > 0).map(|role| {
            let mut value = fate_json(&watch.fates[role.index()]);
            value["role"] = setup.name(role).into();
            value["online"] = setup.role(role).stable.into();
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
            "online": fate_json(&watch.fate(setup, true)),
            "offline": fate_json(&watch.fate(setup, false)),
            "roles": roles.collect::<Vec<Json>>(),
            "recovery_s": watch.recovery().seconds(),
            "longest_recovery_s": trial.slowest().seconds(),
            "trace": trial.shortest_trace().map(|trace| trace_json(&trace)),
        })
    };
    json!({ "scenarios": trials.iter().map(one).collect::<Vec<Json>>() })
}

/// Formats one row per scenario with the rules that protect a property: their removal violates it. With `--wide`, each rule has a column.
pub(super) fn matrix(scenarios: &[Scenario], rules: &[Rule], cells: &[Vec<BTreeSet<&'static str>>]) -> Printout {
    let scenario = |scenario: &Scenario| vec![scenario.number().to_string(), scenario.name()];
    let stops = |broken: &BTreeSet<&'static str>| broken.contains("I1");
    let words = |broken: &BTreeSet<&'static str>| broken.iter().copied().collect::<Vec<_>>().join("+");
    let (headings, rows): (Vec<&str>, Vec<Vec<String>>) = if is_wide() {
        let cell = |broken: &BTreeSet<&'static str>| match stops(broken) {
            true => "stops".to_owned(),
            false if broken.is_empty() => ".".to_owned(),
            false => words(broken),
        };
        let row = |(one, row): (&Scenario, &Vec<BTreeSet<&'static str>>)| {
            scenario(one).into_iter().chain(row.iter().map(cell)).collect()
        };
        (rules.iter().map(|rule| rule.name()).collect(), scenarios.iter().zip(cells).map(row).collect())
    } else {
        let row = |(one, row): (&Scenario, &Vec<BTreeSet<&'static str>>)| {
            let rules = || rules.iter().zip(row);
            let stopped = rules().filter(|(_, broken)| stops(broken)).map(|(rule, _)| rule.name().to_owned());
            let others = rules().filter(|(_, broken)| !broken.is_empty() && !stops(broken));
            let others = others.map(|(rule, broken)| format!("{} ({})", rule.name(), words(broken)));
            let lists = [stopped.collect::<Vec<_>>(), others.collect()].map(|list| list.join(", "));
            scenario(one).into_iter().chain(lists).collect()
        };
        let mut rows: Vec<Vec<String>> = scenarios.iter().zip(cells).map(row).collect();
        let mut headings = vec!["stops without", "else broken without"];
        if rows.iter().all(|row| row.last().is_some_and(String::is_empty)) {
            headings.pop();
            rows.iter_mut().for_each(|row| drop(row.pop()));
        }
        (headings, rows)
    };
    let header = ["", "scenario"].into_iter().chain(headings).map(|name| (name.to_owned(), Alignment::Left)).collect();
    let mut text = Printout::from(Grid::new(header, rows).keyed(2));
    let stops = "stops: without the rule a worker of an online service is stopped without consent";
    text += format!("\n{}", paragraphs(stops));
    text
}

/// Formats the matrix as `{"rules": [..], "matrix": [{"name", "broken_by": [..], "violated": {rule: [..]}}]}`.
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
