//! `plimsoll trace guess`: writes a first mapping for a log.

use std::path::{Path, PathBuf};

use super::save::check_output;
use crate::cli::Context;
use crate::error::Result;
use crate::output::file::write_whole;
use crate::trace_import::guess;
use crate::workload::Input;

/// Write a first mapping for a log
#[derive(clap::Args, Debug)]
#[command(after_help = "The mapping has the columns that were recognised and the reasons. Lines with ?
are questions. Nothing is imported. For a file in a known format, the command
prints the mapping of that format.

Examples:
  plimsoll trace guess log.csv -o log.toml
  plimsoll trace import log.csv --map log.toml -o trace.csv")]
pub struct Args {
    /// The files of one log, or - for standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The mapping [default: standard output]
    #[arg(long, short, value_name = "MAP")]
    output: Option<PathBuf>,
}

pub fn run(args: &Args, context: &Context) -> Result<()> {
    check_output(args.output.as_deref(), &args.files)?;
    let inputs = args.files.iter().map(|file| Input::open(file)).collect::<Result<Vec<_>>>()?;
    let text = guess(&inputs)?;
    match args.output.as_deref().filter(|path| *path != Path::new("-")) {
        None => context.out(&text),
        Some(path) => {
            write_whole(path, text.as_bytes())?;
            let questions = text
                .lines()
                .filter(|line| line.starts_with("# ") && line.contains(" = \"") && line.contains("?\""))
                .count();
            context.print_message(&format!("{}: a mapping with {questions} questions", path.display()));
            Ok(())
        }
    }
}
