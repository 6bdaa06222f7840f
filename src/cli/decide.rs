//! `plimsoll decide`: shows the decisions of policies on a given state.

use serde_json::Value as Json;

use super::print::aligned_left;
use super::printout::Printout;
use super::{Context, Format, document};
use crate::court::{Bench, Round, Situation, State, answer, open, reason};
use crate::document::Document;
use crate::error::{Error, Result};

/// Show the decisions of a policy on a given state: launches, preemptions, waiting tasks, and the reasons
#[derive(clap::Args, Debug, serde::Deserialize)]
#[command(after_help = "A state (TOML or JSON; docs/court.md has all of it):
  [capacity]
  cpu = 6                           # or machines = \"2x8c16g\", or [[machine]]s
  [[group]]                         # a queue, with the keys of the policy
  name = \"a\"                        # (plimsoll policies kueue lists them)
  nominal = { cpu = 3 }
  [[running]]
  name = \"x\"
  group = \"a\"                       # its queue; user = its job or tenant
  demand = { cpu = 2 }
  priority = 1                      # optional: higher is more urgent
  age_s = 60                        # optional: how long it has run
  [[waiting]]                       # likewise

Examples:
  plimsoll decide experiments/court/kueue-14543.toml --policy kueue
  plimsoll decide state.toml --policy kueue --policy kueue@guarded --rounds 3
  plimsoll decide state.json --policy drf --format json
  printf '[capacity]\\ncpu = 2\\n[[waiting]]\\ndemand = { cpu = 1 }\\n' |
      plimsoll decide - --policy fifo")]
pub struct Args {
    /// The state: a file in TOML or JSON, or - for standard input
    #[arg(value_parser = document())]
    state: Document,
    /// A policy; may be given several times
    #[arg(long = "policy", value_name = "POLICY", required = true)]
    policies: Vec<String>,
    /// Number of consecutive rounds to decide
    #[arg(long, value_name = "N", default_value_t = 1)]
    rounds: u32,
    /// How to print
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// The rounds of a policy, each with the state before it.
type Decided<'a> = (Bench<'a>, Vec<Round>);

pub fn run(args: &Args, context: &Context) -> Result<()> {
    if args.rounds == 0 {
        return Err(Error::plan("--rounds", 0, "at least 1 round"));
    }
    let state = open(&args.state)?;
    let decided = args.policies.iter().map(|policy| decide(&state, policy, args, context));
    let decided: Vec<Decided> = decided.collect::<Result<_>>()?;
    match args.format {
        Format::Json => context.json(&json(args, &decided)),
        format => {
            let text: Printout = decided.iter().map(|decided| text(&state, decided)).collect();
            context.out(&text.render(format))
        }
    }
}

fn decide<'a>(state: &'a State, policy: &str, args: &Args, context: &'a Context) -> Result<Decided<'a>> {
    let bench = Bench::new(state, policy, context.registry)?;
    for key in bench.unread() {
        context.warn(&format!("{policy} does not read '{key}' of groups"));
    }
    let (mut situation, mut rounds) = (Situation::first(state), Vec::new());
    for _ in 0..args.rounds {
        context.stop.check()?;
        rounds.push(bench.play(&mut situation)?);
        situation.pass(state);
    }
    Ok((bench, rounds))
}

/// Formats one object for a policy, a list for several; with several rounds, each object contains a list of rounds.
fn json(args: &Args, decided: &[Decided]) -> Json {
    let one = |(bench, rounds): &Decided| {
        let mut answers: Vec<Json> = rounds.iter().map(|round| answer(bench, round)).collect();
        match args.rounds {
            1 => answers.remove(0),
            _ => serde_json::json!({"policy": bench.policy, "rounds": answers}),
        }
    };
    let mut all: Vec<Json> = decided.iter().map(one).collect();
    if args.policies.len() == 1 { all.remove(0) } else { all.into() }
}

fn text(state: &State, (bench, rounds): &Decided) -> Printout {
    let mut text = Printout::default();
    for (number, round) in rounds.iter().enumerate() {
        let of = if rounds.len() > 1 { format!(", round {}", number + 1) } else { String::new() };
        text += format!("{}{of}\n", bench.policy);
        text += table(state, round);
        text += shares(round);
    }
    text
}

/// Formats the decisions, one per line.
fn table(state: &State, round: &Round) -> Printout {
    let name = |workload: usize| state.workloads[workload].name.clone();
    let mut rows: Vec<Vec<String>> = Vec::new();
    for evicted in &round.evicted {
        let why = evicted.cause.as_ref().map(|(by, rule)| format!("for {by}: {rule}")).unwrap_or_default();
        rows.push(vec!["stopped".to_owned(), name(evicted.workload), evicted.tasks.to_string(), why]);
    }
    for (workload, tasks, machine) in &round.launched {
        let at = state.machines.as_ref().map(|machines| format!("on {}", machines[*machine as usize]));
        rows.push(vec!["started".to_owned(), name(*workload), tasks.to_string(), at.unwrap_or_default()]);
    }
    for waits in &round.waits {
        let (words, short) = reason(state, round, &waits.reason);
        let short: Vec<String> = short.iter().map(|(resource, amount)| format!("{resource} {amount}")).collect();
        let short = if short.is_empty() { String::new() } else { format!(" (short: {})", short.join(", ")) };
        rows.push(vec!["waits".to_owned(), name(waits.workload), waits.tasks.to_string(), words + &short]);
    }
    let header = ["decision", "workload", "tasks", "why"].map(str::to_owned);
    match rows.is_empty() {
        true => "nothing to decide\n".to_owned().into(),
        false => aligned_left(&header, &rows).into(),
    }
}

/// Formats the values that determine the policy's order of groups; empty if the policy reports no values.
fn shares(round: &Round) -> Printout {
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in round.standings.iter().flat_map(|standing| &standing.values) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    if names.is_empty() {
        return Printout::default();
    }
    let header: Vec<String> = std::iter::once("group").chain(names.iter().copied()).map(str::to_owned).collect();
    let rows = round.standings.iter().map(|standing| {
        let value = |name: &&str| {
            let found = standing.values.iter().find(|(known, _)| known == name);
            found.map(|(_, value)| crate::units::trim_float(*value)).unwrap_or_default()
        };
        std::iter::once(standing.name.clone()).chain(names.iter().map(value)).collect()
    });
    let mut text = Printout::from("\n".to_owned());
    text += aligned_left(&header, &rows.collect::<Vec<Vec<String>>>());
    text
}
