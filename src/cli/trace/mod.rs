//! `plimsoll trace`: makes, converts and describes workloads.

mod figures;
mod generate;
mod guess;
mod head;
mod import;
mod load;
mod report;
mod save;
pub mod stats;
mod validate;
mod watched;

use std::path::Path;

use super::{Context, Stop};
use crate::error::{Error, Result};
use crate::experiment::Supply;
use crate::experiment::changes::apply;
use crate::experiment::machines::machines_from;
use crate::tree::Node;
use crate::workload::Input;
use crate::workload::formats::{Format, FormatOptions, Tenants};
use watched::Watched;

/// Make, convert and describe workloads
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  plimsoll trace import FB-2009_samples_24_times_1hr_0.tsv -o facebook-2009.csv
  plimsoll trace guess log.csv -o log.toml
  plimsoll trace generate facebook --seed 1 -o facebook.parquet
  plimsoll trace stats facebook
  plimsoll trace head facebook.parquet
  plimsoll trace validate batch_task.csv --machines 1300x64c1norm")]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(clap::Subcommand, Debug)]
enum Verb {
    Import(import::Args),
    Guess(guess::Args),
    Generate(generate::Args),
    Stats(stats::Args),
    Head(head::Args),
    Validate(validate::Args),
}

/// The options for reading the rows of a trace.
#[derive(clap::Args, Clone, Debug, serde::Deserialize)]
pub struct RowOptions {
    #[arg(
        long,
        visible_alias = "trace-format",
        value_name = "FORMAT",
        help = format!("Format of the trace, if it is not canonical and not recognised: {}", Format::names())
    )]
    pub from: Option<String>,
    /// The users of a public format: job, one, column, qos, hash:K, round-robin:K, zipf:K:S
    #[arg(long, value_name = "RULE")]
    pub tenants: Option<String>,
    /// A resource of a canonical trace besides cpu, memory, gpu, disk, network and those of the machines; may be given several times
    #[arg(long, value_name = "NAME")]
    pub resource: Vec<String>,
    /// Refuse a public format's rows with impossible values, which are otherwise dropped and counted
    #[arg(long)]
    pub strict: bool,
    /// Change a parameter of a public format, such as swim.map_bytes=134217728 or swf.memory=job; may be given several times
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
}

impl Args {
    /// Creates the arguments of `trace stats`.
    pub fn stats(args: stats::Args) -> Args {
        Args { verb: Verb::Stats(args) }
    }
}

impl RowOptions {
    /// Returns the options of a reader. Errors: a parameter that no format has, or a wrong value.
    pub fn options(&self) -> Result<FormatOptions> {
        let mut tree = Node::default();
        self.set.iter().try_for_each(|set| apply(&mut tree, set, "swim.map_bytes=134217728"))?;
        let mut options: FormatOptions = tree.read()?;
        (options.strict, options.resources) = (self.strict, self.resource.clone());
        if let Some(rule) = &self.tenants {
            options.tenants = Some(Tenants::parse("--tenants", rule)?);
        }
        Ok(options)
    }

    /// Checks that all parameters belong to the format of the trace; `None` is a canonical trace. Errors: [`Error::Plan`] for a parameter
    /// of another format.
    pub fn check_format(&self, format: Option<&str>, path: &Path) -> Result<()> {
        let foreign = |set: &&String| format.is_none_or(|format| set.split('.').next() != Some(format));
        let Some(set) = self.set.iter().find(foreign) else { return Ok(()) };
        let expected = match format {
            Some(name) => format!("parameters of {name}, the format of {}", path.display()),
            None => format!("parameters of a public format; {} is a canonical trace", path.display()),
        };
        Err(Error::plan("--set", format!("'{set}'"), expected))
    }
}

pub fn run(args: &Args, context: &Context) -> Result<()> {
    match &args.verb {
        Verb::Import(args) => import::run(args, context),
        Verb::Guess(args) => guess::run(args, context),
        Verb::Generate(args) => generate::run(args, context),
        Verb::Stats(args) => stats::run(args, context),
        Verb::Head(args) => head::run(args, context),
        Verb::Validate(args) => validate::run(args, context),
    }
}

/// An open trace, and the options for it.
struct Opened {
    input: Input,
    supply: Supply,
}

impl Opened {
    /// Opens a trace: canonical, or in a public format that is named or recognised. A canonical trace may have the resources of
    /// `machines`.
    fn new(path: &Path, rows: &RowOptions, machines: Option<&str>) -> Result<Opened> {
        let format = rows.from.as_deref().map(|name| Format::parse("--from", name)).transpose()?;
        let mut options = rows.options()?;
        if let Some(machines) = machines {
            options.resources.extend(machines_from("--machines", machines, Path::new(""))?.resources());
        }
        let input = Input::open(path)?;
        let supply = Supply::input(input.clone(), format, &options).map_err(|error| match error {
            Error::Plan { ref key, .. } if key == "tenants" => error.under("--tenants"),
            error => error,
        })?;
        rows.check_format(supply.quality().map(|quality| quality.format.as_str()), path)?;
        Ok(Opened { input, supply })
    }

    fn source(&self, stop: &Stop) -> Result<Watched<'_>> {
        self.supply.source().map(|source| Watched::new(source, stop))
    }

    /// Returns the name of the format.
    fn format(&self) -> &str {
        self.supply.quality().map_or("canonical", |quality| &quality.format)
    }

    /// Returns the file's name without its folders.
    fn name(&self) -> String {
        self.input.path().file_name().map_or("trace".into(), |name| name.to_string_lossy()).into_owned()
    }
}
