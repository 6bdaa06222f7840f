//! `plimsoll trace generate`: writes a generator's workload as a canonical trace.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Map;

use super::save::{SaveTarget, save};
use super::watched::Watched;
use super::{Context, report};
use crate::error::{Error, Result, did_you_mean};
use crate::experiment::Supply;
use crate::experiment::changes::{apply, put_at};
use crate::experiment::workload::{WorkloadFile, estimates};
use crate::rows::read_text;
use crate::settings::SettingOrigin;
use crate::tree::{Node, Place, Value};
use crate::workload::synthetic::classes::bench_workload;
use crate::workload::synthetic::{Generated, Generator};

/// Generate a workload from a seed, and write it as a trace
#[derive(clap::Args, Debug)]
#[command(after_help = "Generators:
  facebook   jobs like those of Facebook's cluster in October 2010
  synthetic  classes of users with a distribution per quantity; needs --plan
  bench      jobs of one task on 400x64c256g, to measure speed; parameters are
             tasks, users, load, burst

Parameters are those of a plan's [workload] table: see docs/traces.md.

Examples:
  plimsoll trace generate facebook --seed 7 -o facebook.parquet
  plimsoll trace generate facebook --set hours=0.1 --set users=4 | head
  plimsoll trace generate --plan experiments/facebook.toml -o facebook.csv
  plimsoll trace generate bench --set tasks=100000 -o bench.parquet")]
pub struct Args {
    /// facebook, synthetic or bench [default: the generator of --plan]
    generator: Option<String>,
    /// Take the parameters from the [workload] table of this plan
    #[arg(long, value_name = "PLAN.toml")]
    plan: Option<PathBuf>,
    /// The seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Change a parameter, such as load=0.6; may be given several times
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// The trace: a .csv or .parquet file, or - for CSV on standard output [default: -]
    #[arg(long, short, value_name = "OUT")]
    output: Option<PathBuf>,
}

/// The names of generators. `closed-loop` cannot write a trace; it is listed so that its error message explains the reason.
pub const NAMES: [&str; 4] = ["facebook", "synthetic", "bench", "closed-loop"];

pub fn run(args: &Args, context: &Context) -> Result<()> {
    let target = SaveTarget::parse(args.output.as_deref())?;
    let generated = GeneratedWorkload::new(args.generator.as_deref(), args.plan.as_deref(), args.seed, &args.set)?;
    let mut facts = Map::new();
    facts.insert("generator".into(), generated.name.into());
    facts.insert("seed".into(), args.seed.into());
    facts.insert("parameters".into(), serde_json::to_value(&generated.parameters).unwrap_or_default());
    facts.insert("rng".into(), "rand_chacha ChaCha8, one stream a purpose".into());
    if let Some(quality) = generated.supply.quality() {
        facts.extend(report::json(quality));
    }
    save(&|| generated.supply.source().map(|source| Watched::new(source, &context.stop)), &target, facts, context)
}

/// A workload from a generator.
pub struct GeneratedWorkload {
    /// The generator.
    pub name: &'static str,
    /// The parameters that differ from the defaults.
    pub parameters: toml::Table,
    /// The workload.
    pub supply: Supply,
}

/// Parameters of the bench workload.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Bench {
    generator: String,
    tasks: u64,
    users: u32,
    load: f64,
    burst: bool,
}

impl Default for Bench {
    fn default() -> Bench {
        Bench { generator: String::new(), tasks: 100_000, users: 100, load: 0.9, burst: false }
    }
}

impl GeneratedWorkload {
    /// Runs a generator. Errors: [`Error::Plan`] at a wrong parameter, or for a closed loop, which has no trace.
    pub fn new(name: Option<&str>, plan: Option<&Path>, seed: u64, set: &[String]) -> Result<GeneratedWorkload> {
        let mut table = plan.map(parameters_of).transpose()?.unwrap_or_default();
        let planned = table.get("generator").and_then(|entry| entry.node.text()).map(str::to_owned);
        let name = match (name, planned) {
            (Some(name), Some(planned)) if name != planned => {
                return Err(Error::plan("generator", format!("'{name}'"), format!("'{planned}', as in the plan")));
            }
            (Some(name), _) => name.to_owned(),
            (None, Some(planned)) => planned,
            (None, None) => return Err(Error::plan("generator", "nothing", "facebook, synthetic, bench, or --plan")),
        };
        let Some(known) = NAMES.into_iter().find(|known| *known == name) else {
            let hint = did_you_mean(&name, NAMES);
            return Err(Error::plan("generator", format!("'{name}'"), format!("facebook, synthetic or bench{hint}")));
        };
        if known == "synthetic" && plan.is_none() {
            let expected = "--plan PLAN.toml: its [workload] describes the classes of users";
            return Err(Error::plan("generator", "'synthetic' alone", expected));
        }
        if known == "closed-loop" {
            let expected = "a generator of jobs that are known before the run: users of a closed loop submit when their last \
                            job has ended, which depends on the run; use `plimsoll run`";
            return Err(Error::plan("generator", "'closed-loop'", expected));
        }
        put_at(&mut table, "generator", Node { place: Place::default(), value: Value::Text(known.to_owned()) })?;
        for change in set {
            // The key is written as in a plan, or without the name of the table.
            apply(&mut table, change.strip_prefix("workload.").unwrap_or(change), "load=0.6")?;
        }
        let mut parameters = table.plain_table()?;
        parameters.remove("generator");
        let supply = if known == "bench" { bench(&table, seed)? } else { planned_supply(&table, seed)? };
        Ok(GeneratedWorkload { name: known, parameters, supply })
    }
}

fn bench(table: &Node, seed: u64) -> Result<Supply> {
    let bench: Bench = table.read()?;
    if !(bench.load > 0.0 && bench.load.is_finite()) {
        return Err(Error::plan("workload.load", bench.load, "a number above 0"));
    }
    let workload = bench_workload(bench.tasks, bench.users, bench.load, bench.burst, seed)?;
    Ok(Supply::Generated(Generated::Workload(workload)))
}

fn planned_supply(table: &Node, seed: u64) -> Result<Supply> {
    match WorkloadFile::read(table)? {
        WorkloadFile::Generator(generator @ (Generator::Facebook(_) | Generator::Synthetic(_)), text) => {
            let estimates = estimates(text.as_deref(), SettingOrigin::InPlan)?;
            Ok(Supply::generate(&generator, seed)?.estimated(estimates, seed))
        }
        _ => Err(Error::plan("workload", "this table", "a generator of jobs that are known before the run")),
    }
}

/// Returns the `[workload]` table of a plan with a generator.
fn parameters_of(plan: &Path) -> Result<Node> {
    let workload =
        Node::toml(&Place::whole_text(plan, read_text(plan)?))?.take_entry("workload").map(|entry| entry.node);
    match workload {
        Some(workload) if workload.get("generator").is_some() => Ok(workload),
        Some(_) => Err(Error::plan("--plan", plan.display(), "a plan with a generator in its [workload], not a trace")),
        None => Err(Error::plan("--plan", plan.display(), "a plan with a [workload]")),
    }
}
