//! `plimsoll failover`: simulates the control plane under faults.

mod chaos;
mod print;
mod results;
pub(super) mod study;

use std::path::PathBuf;

use rayon::prelude::*;

use super::{Context, Format};
use crate::control::rules::{Rule, Rules};
use crate::control::scenario::Scenario;
use crate::control::trial::{self, Trial};
use crate::control::world::plan::{Network, Timing};
use crate::error::{Error, Result};
use crate::output::picture::Picture;
use crate::output::sequence;

/// Simulate failures of FuxiMaster, application masters and Tubos
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Scenarios are 1 to 17 or names: fm-failover, am-failover, am-timeout, tubo-failover, tubo-timeout and \
their combinations with + in this order. Each is run with its faults in several orders and of several lengths (timings): \
the table describes the simplest timing, and violations are counted over all of them. Finding that a property fails \
without a rule is a result, not an error: the exit code is 0.

Rules: mock-request, cap-checkpoint, hint-checkpoint, hint-recovery, wait-window, keep-stable, surplus-to-am, \
sequence-numbers, fencing, clamp (docs/failover.md describes their purposes).

Examples:
  plimsoll failover
  plimsoll failover fm-failover+am-timeout --without mock-request
  plimsoll failover 17 --diagram 17.svg
  plimsoll failover --matrix --format json
  plimsoll failover --without sequence-numbers --links lossy
  plimsoll failover --chaos 10000 --seed 7
  plimsoll failover --chaos 5 --machines 20000"
)]
pub struct Args {
    /// A scenario, by name or number (default: all)
    #[arg(value_name = "SCENARIO")]
    scenarios: Vec<String>,
    /// Switch a rule off; may be given several times
    #[arg(long = "without", value_name = "RULE")]
    without: Vec<String>,
    /// For each scenario and each rule: the properties that fail without the rule
    #[arg(long, conflicts_with_all = ["without", "diagram", "chaos"])]
    matrix: bool,
    /// Run this many random clusters under random faults
    #[arg(long, value_name = "N", conflicts_with_all = ["scenarios", "diagram"])]
    chaos: Option<u64>,
    /// Seed of the first random cluster; the others use the seeds after it
    #[arg(long, value_name = "S", requires = "chaos", default_value_t = 1)]
    seed: u64,
    /// Machines of a random cluster
    #[arg(long, value_name = "M", requires = "chaos", default_value_t = 4)]
    machines: usize,
    /// Links that are ordered (each message arrives once, in order) or lossy (default: ordered; with --chaos, drawn)
    #[arg(long, value_name = "KIND")]
    links: Option<String>,
    /// Draw the simplest run of the scenario as a sequence diagram (.svg, .png or .pdf); with --without, the shortest run with a violation
    #[arg(long, visible_alias = "figure", value_name = "FILE")]
    diagram: Option<PathBuf>,
    /// How to print
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub fn run(args: &Args, context: &Context) -> Result<()> {
    let diagram =
        args.diagram.as_deref().map(Picture::from_path).transpose().map_err(|error| error.under("--diagram"))?;
    let mut rules = Rules::ALL;
    for name in &args.without {
        rules = rules.without(Rule::parse("--without", name)?);
    }
    let links = args.links.as_deref().map(str::parse::<Network>).transpose()?;
    if let Some(count) = args.chaos {
        return chaos::run(count, args, rules, links, context);
    }
    let scenarios = match args.scenarios.is_empty() {
        true => Scenario::all(),
        false => args.scenarios.iter().map(|name| Scenario::parse(name)).collect::<Result<_>>()?,
    };
    let network = links.unwrap_or(Network::ORDERED);
    if args.matrix {
        let rules: Vec<Rule> = Rule::of_matrix().collect();
        let cells = trial::matrix(&scenarios, &rules, network, Timing::default());
        return match args.format {
            Format::Json => context.json(&print::matrix_json(&scenarios, &rules, &cells)),
            format => context.out(&print::matrix(&scenarios, &rules, &cells).render(format)),
        };
    }
    if diagram.is_some() && scenarios.len() != 1 {
        return Err(Error::plan("--diagram", format!("with {} scenarios", scenarios.len()), "exactly one scenario"));
    }
    let trials: Vec<Trial> =
        scenarios.par_iter().map(|&scenario| Trial::new(scenario, rules, network, Timing::default())).collect();
    if let (Some(diagram), Some(trial)) = (diagram, trials.first()) {
        diagram.write(&sequence::of_trial(trial, None).0, &context.provenance(diagram.path()))?;
    }
    match args.format {
        Format::Json => context.json(&print::json(&trials)),
        format => context.out(&print::table(&trials, network).render(format)),
    }
}
