//! Random clusters under random faults, and the commands that reproduce violations.
//!
//! Clusters are generated from consecutive seeds and simulated in parallel. The script of the first violation is reduced to a small one.

use std::time::Instant;

use rayon::prelude::*;
use serde_json::{Value as Json, json};

use super::super::printout::Printout;
use super::super::{Context, Format, progress::Steps, screen::paragraphs};
use super::{Args, print};
use crate::control::chaos::Chaos;
use crate::control::rules::Rules;
use crate::control::study::Watcher;
use crate::control::world::plan::Network;
use crate::control::world::watch::Violation;
use crate::error::{Error, Result};
use crate::output::shell::quoted;
use crate::units::Span;

/// Maximum number of machines of a random cluster.
const MACHINES: usize = 1_000_000;

/// Maximum number of clusters with outcomes in memory at the same time.
const BATCH: u64 = 256;

/// Maximum cost of reducing a script: machines times runs.
const SHRINKING: usize = 400_000;

/// A cluster with a violation.
struct FailingCluster {
    seed: u64,
    violation: Violation,
}

pub(super) fn run(count: u64, args: &Args, rules: Rules, links: Option<Network>, context: &Context) -> Result<()> {
    if count == 0 {
        return Err(Error::plan("--chaos", count, "at least 1 schedule"));
    }
    if args.machines == 0 || args.machines > MACHINES {
        return Err(Error::plan("--machines", args.machines, format!("1 to {MACHINES}")));
    }
    let Some(end) = args.seed.checked_add(count) else {
        return Err(Error::plan("--seed", args.seed, "a smaller seed: every schedule uses the next one"));
    };
    let (start, mut messages, mut idle, mut found) = (Instant::now(), 0, 0, Vec::new());
    let batch = if args.machines > 1_000 { 1 + rayon::current_num_threads() as u64 } else { BATCH };
    let steps = Steps::new(context.quiet, "schedules", &context.stop);
    steps.planned(usize::try_from(count).unwrap_or(usize::MAX));
    let mut next = args.seed;
    while next < end {
        let seeds = next..end.min(next.saturating_add(batch));
        next = seeds.end;
        let runs = seeds.into_par_iter().map(|seed| -> Result<_> {
            steps.go_on()?;
            let world = Chaos::new(seed, args.machines, rules, links).run(&|| steps.go_on())?;
            let (sent, spared) = world.messages();
            let violation = world.watch.violations.into_iter().next();
            steps.done();
            Ok((sent, spared, violation.map(|violation| FailingCluster { seed, violation })))
        });
        for (sent, spared, bad) in runs.collect::<Result<Vec<_>>>()? {
            messages += sent;
            idle += spared;
            found.extend(bad);
        }
    }
    steps.clear();
    let seconds = start.elapsed().as_secs_f64();
    context.print_message(&format!(
        "{messages} messages in {seconds:.1} s: {:.0} per second ({:.0} without heartbeats that change nothing, which are \
         only counted)",
        messages as f64 / seconds,
        (messages - idle) as f64 / seconds
    ));
    let small = found.first().map(|found| {
        let chaos = Chaos::new(found.seed, args.machines, rules, links);
        chaos.shrink(&found.violation, (SHRINKING / args.machines).clamp(20, 1_000))
    });
    match args.format {
        Format::Json => context.json(&json(count, args, messages, &found, small.as_ref())),
        format => context.out(&Printout::from(text(count, args, messages, &found, small.as_ref())).render(format)),
    }
}

/// Returns the command that runs one seed alone.
fn command(args: &Args, seed: u64) -> String {
    let mut words = vec!["plimsoll failover --chaos 1".to_owned(), format!("--seed {seed}")];
    words.push(format!("--machines {}", args.machines));
    words.extend(args.without.iter().map(|rule| format!("--without {}", quoted(rule))));
    words.extend(args.links.iter().map(|links| format!("--links {}", quoted(links))));
    words.join(" ")
}

/// Formats the reduced script, one fault per line.
fn script(chaos: &Chaos) -> Vec<String> {
    let strikes = chaos.stage.script.strikes.iter().map(|strike| {
        let (node, text) = strike.fault.describe();
        (strike.at, format!("{} {text}", node.name()))
    });
    let rows = chaos.stage.rows.iter().map(|row| {
        let ends = match row.duration {
            Span::ENDLESS => "without end".to_owned(),
            span => format!("for {:.1} s each", span.seconds()),
        };
        let class = if row.stable { "stable" } else { "offline" };
        (row.submit, format!("{} {class} units of {} are requested {ends}", row.tasks, row.name))
    });
    let mut lines: Vec<_> = strikes.chain(rows).collect();
    lines.sort();
    lines.into_iter().map(|(at, text)| format!("{:>9.3} s  {text}", at.seconds())).collect()
}

fn text(count: u64, args: &Args, messages: u64, found: &[FailingCluster], small: Option<&(Chaos, usize)>) -> String {
    let mut text = paragraphs(&format!(
        "{count} random schedules from seed {}, {} machines each: {} with a violation\n{messages} messages",
        args.seed,
        args.machines,
        found.len()
    ));
    for found in found.iter().take(20) {
        let Violation { invariant, at, what, .. } = &found.violation;
        text += "\n";
        text += &paragraphs(&format!("seed {}: {invariant} at {:.3} s: {what}", found.seed, at.seconds()));
        text += &format!("  {}\n", command(args, found.seed));
    }
    if let (Some(first), Some((chaos, runs))) = (found.first(), small) {
        text += &format!("\nThe smallest script of seed {} that still has the violation ({runs} runs):\n", first.seed);
        text += &paragraphs(&format!("  machines of capacity {}", capacities(chaos)));
        text += &script(chaos).iter().map(|line| paragraphs(&format!("  {line}"))).collect::<String>();
        if let Some(violation) = chaos.violation() {
            text += "\nEvents that lead to the violation:\n";
            text += &print::trace(&chaos.trace(violation));
        }
    }
    text
}

fn capacities(chaos: &Chaos) -> String {
    let size = |[cpu, memory]: &[u64; 2]| format!("{}c{}g", cpu / 1000, memory / 1024);
    let shown: Vec<String> = chaos.stage.machines.iter().take(20).map(size).collect();
    let more = chaos.stage.machines.len() - shown.len();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    shown.join(", ") + &more
}

fn json(count: u64, args: &Args, messages: u64, found: &[FailingCluster], small: Option<&(Chaos, usize)>) -> Json {
    let one = |found: &FailingCluster| {
        let mut value = print::violation_json(&found.violation);
        value["seed"] = found.seed.into();
        value["command"] = command(args, found.seed).into();
        value
    };
    let smallest = small.map(|(chaos, runs)| {
        let violation = chaos.violation();
        json!({
            "seed": chaos.seed,
            "runs": runs,
            "script": script(chaos).iter().map(|line| line.trim_start()).collect::<Vec<_>>(),
            "trace": violation.map(|violation| print::trace_json(&chaos.trace(violation))),
        })
    });
    json!({
        "schedules": count,
        "seed": args.seed,
        "machines": args.machines,
        "messages": messages,
        "ok": found.is_empty(),
        "violations": found.iter().map(one).collect::<Vec<Json>>(),
        "smallest": smallest,
    })
}
