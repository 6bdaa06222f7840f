//! The search for the smallest state with a given verdict.

use std::path::PathBuf;

use serde_json::json;

use super::super::printout::Printout;
use super::super::progress::Steps;
use super::super::{Context, Format};
use crate::control::study::Watcher;
use crate::court::{Class, FoundState, Verdict, search};
use crate::error::{Error, Result, either};
use crate::rows::read_text;

/// Options of the search.
#[derive(clap::Args, Debug, serde::Deserialize)]
#[group(skip)]
pub struct Args {
    /// Search all small states for one with this verdict, the smallest first
    #[arg(long, conflicts_with_all = ["scenarios", "rounds", "names"])]
    pub search: bool,
    /// The largest capacity and the largest workload (with --search)
    #[arg(long, value_name = "N", default_value_t = 6)]
    size: u32,
    /// The largest number of workloads that run at first (with --search)
    #[arg(long, value_name = "N", default_value_t = 3)]
    running: usize,
    /// Also search states with running tasks as urgent as the urgent arrival (with --search)
    #[arg(long)]
    urgent: bool,
    /// The verdict to look for; may be given several times (with --search; default: livelock)
    #[arg(long = "verdict", value_name = "VERDICT")]
    verdicts: Vec<String>,
    /// A file with the keys of both queues, as in a [[group]], optionally followed by [policy] (with --search; default: the keys with which
    /// the policy preempts)
    #[arg(long, value_name = "FILE")]
    keys: Option<PathBuf>,
}

/// Maximum capacity or workload, and maximum number of running workloads; larger searches take days.
const MOST: (u32, usize) = (24, 5);

pub fn run(args: &super::Args, context: &Context) -> Result<()> {
    let given = &args.search;
    if given.size == 0 || given.size > MOST.0 {
        return Err(Error::plan("--size", given.size, format!("1 to {}", MOST.0)));
    }
    if given.running == 0 || given.running > MOST.1 {
        return Err(Error::plan("--running", given.running, format!("1 to {}", MOST.1)));
    }
    let verdicts = given.verdicts.iter().map(|name| {
        let found = Verdict::NAMES.iter().find(|(known, _)| known == name).map(|(_, verdict)| *verdict);
        let names = || either(Verdict::NAMES.iter().map(|(name, _)| *name));
        found.ok_or_else(|| Error::plan("--verdict", format!("'{name}'"), names()))
    });
    let mut verdicts: Vec<Verdict> = verdicts.collect::<Result<_>>()?;
    if verdicts.is_empty() {
        verdicts.push(Verdict::Livelock);
    }
    let keys = given.keys.as_deref().map(read_text).transpose()?;
    let mut results = Vec::new();
    for policy in &args.policies {
        let mut class = Class::default_for(policy, given.size);
        (class.running, class.urgent) = (given.running, given.urgent);
        if let Some(keys) = &keys {
            class = class.with(keys);
        }
        let steps = Steps::new(context.quiet, "states", &context.stop);
        steps.planned(usize::try_from(class.count()).unwrap_or(usize::MAX));
        let report = || {
            steps.done();
            steps.go_on()
        };
        let (found, played) = search(policy, context.registry, &class, &verdicts, &report)?;
        steps.clear();
        results.push((policy, class, found, played));
    }
    match args.format {
        Format::Json => {
            let one = |(policy, class, found, played): &(&String, Class, Option<FoundState>, u64)| {
                json!({
                    "policy": policy, "size": class.size, "running": class.running, "urgent": class.urgent, "states": played,
                    "found": found.as_ref().map(|found| json!({
                        "verdict": found.assessment.verdict.name(), "about": found.assessment.about, "state": found.text,
                    })),
                })
            };
            let mut all: Vec<serde_json::Value> = results.iter().map(one).collect();
            context.json(&if all.len() == 1 { all.remove(0) } else { all.into() })
        }
        format => {
            let texts: Vec<String> =
                results.iter().map(|(policy, class, found, played)| text(policy, class, found, *played)).collect();
            context.out(&Printout::from(texts.join("\n")).render(format))
        }
    }
}

/// Returns the found state as a scenario file, with a description of the search in its comments; without a state, only the comments.
fn text(policy: &str, class: &Class, found: &Option<FoundState>, played: u64) -> String {
    let Class { size, running, urgent, .. } = class;
    let urgency = if *urgent { "of two priorities" } else { "of one priority" };
    let searched = format!(
        "# {policy}: two queues, up to {running} workloads {urgency} that run, one arrival that may be more urgent, sizes and\n\
         # capacities up to {size}.\n"
    );
    match found {
        None => format!("{searched}# None of {played} states has the verdict.\n"),
        Some(found) => {
            let FoundState { text, assessment } = found;
            let name = assessment.verdict.name();
            format!(
                "{searched}# {name}: {}.\n# It is number {played} in the class, by capacity, then number and sum of workloads: \
                 no smaller state has this verdict.\n{text}verdict = \"{name}\"\n",
                assessment.about
            )
        }
    }
}
