//! `plimsoll queues`: converts configurations of production schedulers to files of queues.

use std::path::{Path, PathBuf};

use clap::builder::{PossibleValue, PossibleValuesParser};

use super::Context;
use crate::error::{Error, Result};
use crate::output::file::write_whole;
use crate::queues::{FORMATS, Format, format, import};
use crate::rows::read_input;

/// Make files of queues
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(clap::Subcommand, Debug)]
enum Verb {
    Import(Import),
}

/// Turn the queues of a production scheduler into a file of queues
#[derive(clap::Args, Debug)]
#[command(after_help = format!("Formats (recognised by content if --format is absent):
{}
Settings without a key in a file of queues are reported as warnings, and in the
comment at the beginning of the file.

Examples:
  plimsoll queues import cohorts.yaml cluster-queues.yaml -o queues.toml
  plimsoll queues import capacity-scheduler.xml
  plimsoll queues import fair-scheduler.xml --format yarn-fair -o queues.toml
  kubectl get clusterqueues,cohorts,localqueues -A -o yaml |
      plimsoll queues import - > queues.toml", listed()))]
struct Import {
    /// The files, which are read as one configuration; - for standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The format of the files
    #[arg(long, value_parser = names())]
    format: Option<String>,
    /// The file of queues [default: standard output]
    #[arg(long, short, value_name = "OUT")]
    output: Option<PathBuf>,
}

/// Lists the formats, one per line.
fn listed() -> String {
    let line = |format: &Format| format!("  {:<13} {}", format.name, format.about);
    FORMATS.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn names() -> PossibleValuesParser {
    PossibleValuesParser::new(FORMATS.iter().map(|format| PossibleValue::new(format.name).help(format.about)))
}

pub fn run(args: &Args, context: &Context) -> Result<()> {
    let Verb::Import(args) = &args.verb;
    let format = args.format.as_deref().map(|name| format("--format", name)).transpose()?;
    let stdin = Path::new("-");
    if args.files.iter().filter(|file| *file == stdin).count() > 1 {
        return Err(Error::plan("FILE", "'-'", "standard input once"));
    }
    let texts = args.files.iter().map(|file| read_input(file)).collect::<Result<_>>()?;
    let imported = import(texts, format)?;
    imported.notes.iter().for_each(|note| context.warn(note));
    match args.output.as_deref().filter(|path| *path != stdin) {
        None => context.out(&imported.text),
        Some(path) => {
            write_whole(path, imported.text.as_bytes())?;
            let groups =
                if imported.groups == 1 { "1 group".to_owned() } else { format!("{} groups", imported.groups) };
            context.print_message(&format!("{}: {groups} of {}", path.display(), imported.format.name));
            Ok(())
        }
    }
}
