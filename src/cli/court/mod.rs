//! `plimsoll court`: plays scenarios (decision tests) of production schedulers to a verdict, and searches for small scenarios.
//!
//! A scenario is a file, or built into the program. Each scenario is played under one or several policies for a limited number of rounds.
//! The verdict is compared with the expected verdict, if the scenario has one.

mod find;
mod shipped;

use std::path::{Path, PathBuf};

use serde_json::Value as Json;

use super::print::aligned_left;
use super::printout::Printout;
use super::{Context, Format, document};
use crate::court::{Assessment, Bench, ROUNDS, State, Verdict, answer, assessment, judge, open, parse};
use crate::document::Document;
use crate::error::{Error, Result, did_you_mean};

/// Play scenarios of production schedulers to a verdict: settled, livelock, starvation
#[derive(clap::Args, Debug, serde::Deserialize)]
#[command(
    after_help = "Verdicts: settled (the state no longer changes), livelock (a state recurs after an eviction: the rounds of the \
cycle are shown), starvation (a workload within the guaranteed amounts of its queue never starts), not-work-conserving (a \
workload never starts although there is room for it), order-not-antisymmetric (each of two workloads precedes the other), \
depends-on-names (with other names, other workloads start), undecided (the limit of rounds is reached).

A scenario is a file, or the name of a built-in one. By default all built-in scenarios are judged under the policies for \
which they have an expected verdict; the exit code is 1 if a verdict differs from it. The format is in docs/court.md.

Examples:
  plimsoll court
  plimsoll court kueue-14543
  plimsoll court kueue-14543 --policy kueue --policy kueue@guarded
  plimsoll court my-incident.toml --policy kueue --rounds 1000 --format json
  plimsoll court --search --policy kueue --size 6
  plimsoll court --search --policy kueue --size 6 --urgent > smaller.toml"
)]
pub struct Args {
    /// A scenario: a file in TOML or JSON, - for standard input, or the name of a built-in scenario (default: every built-in scenario)
    #[arg(value_name = "SCENARIO", value_parser = document())]
    scenarios: Vec<Document>,
    /// A policy; may be given several times (default: the policies with an expected verdict in the scenario)
    #[arg(long = "policy", value_name = "POLICY")]
    policies: Vec<String>,
    /// Maximum number of rounds
    #[arg(long, value_name = "N")]
    rounds: Option<u32>,
    /// Also play each scenario with other names
    #[arg(long)]
    names: bool,
    #[command(flatten)]
    #[serde(flatten)]
    search: find::Args,
    /// How to print
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub fn run(args: &Args, context: &Context) -> Result<()> {
    if args.rounds == Some(0) {
        return Err(Error::plan("--rounds", 0, "at least 1 round"));
    }
    if args.search.search {
        return find::run(args, context);
    }
    let mut states = match args.scenarios.is_empty() {
        true => shipped::ALL.iter().map(|(name, text)| parse(&file(name), text)).collect::<Result<Vec<_>>>()?,
        false => args.scenarios.iter().map(scenario).collect::<Result<_>>()?,
    };
    states.iter_mut().for_each(|state| state.renames |= args.names);
    let mut cases: Vec<(&State, String)> = Vec::new();
    for state in &states {
        let mut policies = args.policies.clone();
        if policies.is_empty() {
            policies = state.expectations.iter().map(|expected| expected.policy.clone()).collect();
            policies.dedup();
        }
        if policies.is_empty() {
            let expected = "a policy, since the scenario has no expected verdict";
            return Err(Error::plan("--policy", format!("nothing, for '{}'", state.name), expected));
        }
        cases.extend(policies.into_iter().map(|policy| (state, policy)));
    }
    let judged = cases.iter().map(|(state, policy)| case(state, policy, args, context));
    let judged: Vec<Case> = judged.collect::<Result<_>>()?;
    match args.format {
        Format::Json => {
            let all: Vec<Json> = judged.iter().map(|case| assessment(&case.bench, &case.assessment, case.ok)).collect();
            context.json(&all.into())?;
        }
        format => context.out(&text(&judged, !args.scenarios.is_empty()).render(format))?,
    }
    let wrong: Vec<&Case> = judged.iter().filter(|case| case.ok == Some(false)).collect();
    match wrong.first() {
        None => Ok(()),
        Some(first) => {
            let (count, first) = (wrong.len(), first.problem());
            Err(Error::Unexpected {
                problem: format!("{count} of {} do not have the expected result: {first}", judged.len()),
            })
        }
    }
}

/// Returns the file of a built-in scenario in the repository.
fn file(name: &str) -> PathBuf {
    Path::new("experiments/court").join(format!("{name}.toml"))
}

/// Reads a scenario. Errors: an unreadable file, or a name that is no built-in scenario.
fn scenario(scenario: &Document) -> Result<State> {
    let path = scenario.name();
    let name = path.to_string_lossy();
    if let Some((name, text)) = shipped::ALL.iter().find(|(known, _)| *known == name) {
        return parse(&file(name), text);
    }
    open(scenario).map_err(|error| match error {
        Error::Io { .. } if path.extension().is_none() => {
            let hint = did_you_mean(&name, shipped::ALL.iter().map(|(name, _)| *name));
            let expected = format!("a file, or the name of a built-in scenario{hint}");
            Error::plan("scenario", format!("'{name}'"), expected)
        }
        error => error,
    })
}

/// A scenario under a policy.
struct Case<'a> {
    bench: Bench<'a>,
    assessment: Assessment,
    /// Whether the verdict is the expected one; `None` without an expectation.
    ok: Option<bool>,
    problems: Vec<String>,
}

impl Case<'_> {
    fn problem(&self) -> String {
        format!("'{}' under {}: {}", self.bench.state().name, self.bench.policy, self.problems.join("; "))
    }
}

fn case<'a>(state: &'a State, policy: &str, args: &Args, context: &'a Context) -> Result<Case<'a>> {
    context.stop.check()?;
    let bench = Bench::new(state, policy, context.registry)?;
    let expected: Vec<_> = state.expectations.iter().filter(|expected| expected.policy == policy).collect();
    let rounds = args.rounds.or(expected.iter().map(|expected| expected.rounds).max()).unwrap_or(ROUNDS);
    let assessment = judge(&bench, rounds)?;
    let problems: Vec<String> = expected.iter().filter_map(|expected| expected.differs(state, &assessment)).collect();
    let ok = (!expected.is_empty()).then_some(problems.is_empty());
    Ok(Case { bench, assessment, ok, problems })
}

/// Formats a table of verdicts, then the rounds of every case if `details` is true, otherwise of the cases that differ from expectations.
fn text(judged: &[Case], details: bool) -> Printout {
    let header = ["scenario", "policy", "verdict", "rounds", "as expected"].map(str::to_owned);
    let row = |case: &Case| {
        let ok = case.ok.map_or("", |ok| if ok { "yes" } else { "NO" });
        vec![
            case.bench.state().name.clone(),
            case.bench.policy.clone(),
            case.assessment.verdict.name().to_owned(),
            case.assessment.rounds.len().to_string(),
            ok.to_owned(),
        ]
    };
    let mut text = Printout::from(aligned_left(&header, &judged.iter().map(row).collect::<Vec<_>>()));
    for case in judged.iter().filter(|case| details || case.ok == Some(false)) {
        text += detail(case);
    }
    text
}

fn detail(case: &Case) -> String {
    let state = case.bench.state();
    let mut text = format!("\n{} under {}: {}", state.name, case.bench.policy, case.assessment.verdict.name());
    if !case.assessment.about.is_empty() {
        text.push_str(&format!("; {}", case.assessment.about));
    }
    text.push('\n');
    case.problems.iter().for_each(|problem| text.push_str(&format!("  {problem}\n")));
    let rounds = match case.assessment.verdict {
        Verdict::Livelock => case.assessment.cycle(),
        _ => &case.assessment.rounds,
    };
    for played in rounds.iter().take(12) {
        let round = answer(&case.bench, &played.round);
        let list = |key: &str| {
            let names = round[key].as_array().into_iter().flatten();
            let one = |item: &Json| {
                let (name, by) = (item["name"].as_str().unwrap_or_default(), item["for"].as_str());
                by.map_or_else(
                    || name.to_owned(),
                    |by| format!("{name} (for {by}: {})", item["reason"].as_str().unwrap_or_default()),
                )
            };
            names.map(one).collect::<Vec<_>>().join(", ")
        };
        text.push_str(&format!("  round {}: ", played.before.round));
        let parts = [("stops", list("evicted")), ("starts", list("launched"))];
        let parts: Vec<String> = parts
            .into_iter()
            .filter(|(_, list)| !list.is_empty())
            .map(|(word, list)| format!("{word} {list}"))
            .collect();
        text.push_str(if parts.is_empty() { "nothing happens" } else { "" });
        text.push_str(&parts.join("; "));
        text.push('\n');
    }
    text
}
