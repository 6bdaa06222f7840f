//! The command line: one file per verb.
//!
//! Data goes to standard output, progress and messages to standard error. The exit code is 0 on success, 1 if the run failed, 2 if the
//! input was invalid, 130 after Ctrl-C. Text is formatted for 80 columns (`screen`).

mod accelerators;
mod bundle;
mod call;
mod check;
mod cluster;
mod cluster_options;
mod compare;
mod court;
mod decide;
mod failover;
mod interrupt;
mod left_over;
mod over_commit;
mod plot;
mod policies;
mod print;
mod printout;
mod progress;
mod published;
mod queues;
mod replay;
mod report;
mod run;
mod schema;
mod screen;
mod show;
mod solve;
mod static_plan;
mod stored;
mod timeline;
mod trace;
mod whole_tables;
mod why;

use std::cell::RefCell;
use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;

use clap::builder::{PathBufValueParser, PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::document::Document;
use crate::engine::settings::ClusterSetting;
use crate::error::Error;
pub use crate::experiment::accelerators::{AcceleratorKey, KEYS as ACCELERATOR_KEYS};
use crate::output::provenance::Provenance;
use crate::output::shell::{self, quoted};
use crate::policy::Registry;
pub use call::{Argument, Arguments, Call, Called, WrongCall};
pub use interrupt::Stop;
use printout::Format;
pub use run::moved;

/// A result with the project's error by default.
type Result<T, E = Error> = std::result::Result<T, E>;

/// Returns a parser of named choices; its help lists all names with their meanings.
fn named<T: Copy + Send + Sync>(all: &'static [(&'static str, T, &'static str)]) -> impl TypedValueParser<Value = T> {
    let names = PossibleValuesParser::new(all.iter().map(|(name, _, meaning)| PossibleValue::new(name).help(meaning)));
    let value = move |given: String| all.iter().find(|(name, ..)| *name == given).map(|(_, value, _)| *value);
    names.map(move |given| value(given).expect("the parser lets only these names through"))
}

/// Returns a parser of paths of documents.
fn document() -> impl TypedValueParser<Value = Document> {
    PathBufValueParser::new().map(Document::File)
}

/// A discrete-event simulator for the fair sharing of clusters.
#[derive(Parser, Debug)]
#[command(name = "plimsoll", version, max_term_width = 80, propagate_version = true, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
    /// Print only results and errors
    #[arg(long, short, global = true)]
    quiet: bool,
    /// Print all columns of a table, without wrapping; otherwise the main ones, in
    /// lines of 80 characters or as many as COLUMNS specifies
    #[arg(long, global = true)]
    wide: bool,
}

const EXAMPLES: &str = "Examples:
  plimsoll run experiments/facebook.toml
  plimsoll replay trace.csv --machines 400x16c32g --policy drf --policy fifo
  plimsoll solve traces/instances/drf-example.toml
  plimsoll check --policy drf --policy asset
  plimsoll decide experiments/court/kueue-14543.toml --policy kueue
  plimsoll court kueue-14543
  plimsoll failover fm-failover+am-timeout
  plimsoll published fgd --data ../shared/data
  plimsoll trace stats trace.csv
  plimsoll report results/facebook
  plimsoll why results/facebook job-17 --policy drf
  plimsoll timeline results/facebook -o facebook.svg --policy drf
  plimsoll policies

Every verb has examples in its own --help.";

#[derive(Subcommand, Debug)]
enum Verb {
    Run(run::Args),
    Replay(replay::Args),
    Solve(solve::Args),
    Check(check::Args),
    Decide(decide::Args),
    Court(court::Args),
    Failover(failover::Args),
    Compare(compare::Args),
    Cluster(cluster::Args),
    Bundle(bundle::Args),
    Plot(plot::Args),
    Published(published::Args),
    Queues(queues::Args),
    Report(report::Args),
    Schema(schema::Args),
    Show(show::Args),
    Timeline(timeline::Args),
    Trace(trace::Args),
    Why(why::Args),
    Policies(policies::Args),
    Completions(Completions),
}

/// Print a completion script for a shell
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  plimsoll completions bash \\
      > ~/.local/share/bash-completion/completions/plimsoll
  plimsoll completions zsh > ~/.zfunc/_plimsoll")]
struct Completions {
    /// Which shell
    shell: clap_complete::Shell,
}

/// The context of every verb.
struct Context<'a> {
    registry: &'a Registry,
    quiet: bool,
    /// The command line, for reproduction.
    line: String,
    stop: Stop,
    /// The output and the warnings so far, if another program called.
    collected: Option<RefCell<Collected>>,
}

/// The output of a call by another program.
#[derive(Default)]
struct Collected {
    printed: String,
    warnings: Vec<String>,
}

impl<'a> Context<'a> {
    fn new(registry: &'a Registry, quiet: bool, args: &[OsString], stop: Stop) -> Context<'a> {
        let line = shell::line(args.iter().map(|arg| arg.to_string_lossy()));
        Context { registry, quiet, line, stop, collected: None }
    }

    /// Prints a message, unless `--quiet` was given or another program called.
    fn print_message(&self, message: &str) {
        if !self.quiet && self.collected.is_none() {
            screen::eprint_line(&screen::message("", message));
        }
    }

    /// Returns the provenance of a picture requested on the command line.
    fn provenance(&self, picture: &Path) -> Provenance {
        // The recorded command omits the path of the program, and the option with the path of the picture.
        let mut rest = self.line.split_once(' ').map(|(_, rest)| format!(" {rest}")).unwrap_or_default();
        let path = quoted(&picture.to_string_lossy());
        for given in ["--figure ", "--figure=", "--diagram ", "--diagram="] {
            rest = rest.replace(&format!(" {given}{path}"), "");
        }
        Provenance::of_program().with("command", format!("plimsoll{rest}"))
    }

    /// Writes a result to standard output, or collects it if another program called. Errors: a failed write.
    fn out(&self, text: &str) -> Result<()> {
        match &self.collected {
            None => print::write(text),
            Some(collected) => {
                collected.borrow_mut().printed.push_str(text);
                Ok(())
            }
        }
    }

    /// Formats a result as JSON and writes it through [`Context::out`].
    fn json(&self, value: &serde_json::Value) -> Result<()> {
        let text = serde_json::to_string_pretty(value).map_err(|error| Error::output("standard output", error))?;
        self.out(&(text + "\n"))
    }

    /// Prints a warning, or collects it if another program called.
    fn warn(&self, message: &str) {
        if let Some(collected) = &self.collected {
            collected.borrow_mut().warnings.push(message.to_owned());
        } else if !self.quiet {
            screen::eprint_line(&screen::message("warning:", message));
        }
    }
}

/// Runs the command line with the built-in policies and the policies of `registry`.
///
/// This is the entry point of programs with their own policies; see `examples/custom_policy.rs`.
pub fn main(registry: &Registry) -> ExitCode {
    ExitCode::from(execute(registry, std::env::args_os()))
}

/// Returns the definition of the command line, for tests and for generated pages.
pub fn command() -> clap::Command {
    Cli::command().mut_subcommands(requirements)
}

/// Options that are accepted only with another option or group, by command.
const REQUIREMENTS: &[(&str, &str, &str)] = &[
    ("check", "on_blocked", "whole_tasks"),
    ("court", "search", "policies"),
    ("replay", "report", "output"),
    ("replay", "restart", "output"),
    ("replay", "seed", "drawn"),
    ("solve", "on_blocked", "whole_tasks"),
    ("solve", "ties", "whole_tasks"),
    ("solve", "post", "whole_tasks"),
    ("solve", "each_machine", "whole_tasks"),
    ("why", "seed", "drawn"),
    ("why", "shakes", "without"),
    ("why", "shake", "without"),
];

/// Returns the option or group that an option of a command requires.
fn requirement(verb: &str, id: &str) -> Option<&'static str> {
    let row = REQUIREMENTS.iter().find(|(command, option, _)| (*command, *option) == (verb, id));
    let setting = || ClusterSetting::find(id).filter(|_| ["replay", "why"].contains(&verb))?.requires;
    row.map(|(.., other)| *other).or_else(setting)
}

/// Adds the requirements to a command.
fn requirements(command: clap::Command) -> clap::Command {
    let verb = command.get_name().to_owned();
    command.mut_args(|arg| match requirement(&verb, arg.get_id().as_str()) {
        Some(other) => arg.requires(other),
        None => arg,
    })
}

/// Runs a command line, the program's name first, and returns the exit code.
pub fn execute(registry: &Registry, args: impl IntoIterator<Item = OsString>) -> u8 {
    let args: Vec<OsString> = args.into_iter().collect();
    let cli = match parse(&args) {
        Ok(cli) => cli,
        Err(error) => {
            print_parsed(&error, &examples());
            return if error.use_stderr() { 2 } else { 0 };
        }
    };
    screen::widen(cli.wide);
    let context = Context::new(registry, cli.quiet, &args, Stop::default());
    // `solve` has no checkpoint and leaves no files: a signal ends it at once.
    if !matches!(cli.verb, Verb::Solve(_)) {
        context.stop.listen();
    }
    match dispatch(&cli.verb, &context) {
        Ok(()) => 0,
        Err(error) => {
            screen::eprint_line(&screen::message("error:", &error.to_string()));
            error.exit_code()
        }
    }
}

fn dispatch(verb: &Verb, context: &Context) -> Result<()> {
    match verb {
        Verb::Run(args) => run::run(args, context),
        Verb::Replay(args) => replay::run(args, context),
        Verb::Why(args) => why::run(args, context),
        Verb::Solve(args) => solve::run(args, context),
        Verb::Check(args) => check::run(args, context),
        Verb::Decide(args) => decide::run(args, context),
        Verb::Court(args) => court::run(args, context),
        Verb::Failover(args) => failover::run(args, context),
        Verb::Cluster(args) => cluster::run(args, context),
        Verb::Bundle(args) => bundle::run(args, context),
        Verb::Compare(args) => compare::run(args, context),
        Verb::Plot(args) => plot::run(args, context),
        Verb::Published(args) => published::run(args, context),
        Verb::Queues(args) => queues::run(args, context),
        Verb::Report(args) => report::run(args, context),
        Verb::Schema(args) => schema::run(args, context),
        Verb::Show(args) => show::run(args, context),
        Verb::Timeline(args) => timeline::run(args, context),
        Verb::Trace(args) => trace::run(args, context),
        Verb::Policies(args) => policies::run(args, context),
        Verb::Completions(args) => {
            let mut script = Vec::new();
            clap_complete::generate(args.shell, &mut command(), "plimsoll", &mut script);
            context.out(&String::from_utf8_lossy(&script))
        }
    }
}

/// Splits a comma-separated list of policies: `drf,fifo` are two policies. Parameters may contain commas, so a text is only split if it is
/// not a policy and all its parts are policies. `is_policy` returns whether a text is the name of a policy.
fn separate_policies(given: &[String], is_policy: impl Fn(&str) -> bool) -> Vec<String> {
    let one = |text: &String| match parts_at_commas(text) {
        parts if parts.len() > 1 && !is_policy(text) && parts.iter().all(|part| is_policy(part)) => parts,
        _ => vec![text.clone()],
    };
    given.iter().flat_map(one).collect()
}

/// Splits a text at commas outside of parentheses.
fn parts_at_commas(text: &str) -> Vec<String> {
    let (mut parts, mut depth) = (vec![String::new()], 0usize);
    for c in text.chars() {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(last) = parts.last_mut() {
            last.push(c);
        }
    }
    parts.iter().map(|part| part.trim().to_owned()).collect()
}

/// Adds advice to an error of the parser about a command or an option that does not exist.
fn advised(mut error: clap::Error) -> clap::Error {
    let invalid = |error: &clap::Error, kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        _ => String::new(),
    };
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let name = invalid(&error, ContextKind::InvalidSubcommand);
            if ["sim", "start", "exec", "experiment", "play"].iter().any(|begin| name.starts_with(begin)) {
                let verbs = ["run", "replay"].map(str::to_owned).to_vec();
                error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(verbs));
            }
        }
        ErrorKind::UnknownArgument if invalid(&error, ContextKind::InvalidArg).trim_start_matches('-') == "seeds" => {
            let tip = "the number of seeds is set by 'plimsoll run PLAN.toml --set seeds=10'";
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
            error.remove(ContextKind::SuggestedArg);
        }
        _ => {}
    }
    error
}

/// Prints the message of a parser: help and version to standard output, errors to standard error. Examples keep their lines at any width.
/// A closed pipe is no failure.
fn print_parsed(error: &clap::Error, examples: &[String]) {
    let (text, to_error) = (error.render(), error.use_stderr());
    let is_terminal = if to_error { std::io::stderr().is_terminal() } else { std::io::stdout().is_terminal() };
    let mut text = if is_terminal { text.ansi().to_string() } else { text.to_string() };
    for (at, example) in examples.iter().enumerate() {
        text = text.replace(&placeholder(at), example);
    }
    let _ = if to_error { write!(std::io::stderr(), "{text}") } else { write!(std::io::stdout(), "{text}") };
}

fn placeholder(at: usize) -> String {
    format!("<examples-{at}>")
}

/// Removes the examples from the help of a command and its subcommands, since the parser would break their lines.
fn without_examples(command: clap::Command, examples: &mut Vec<String>) -> clap::Command {
    let mut command = command;
    let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    if let Some(at) = text.find("Examples:") {
        command = command.after_help(format!("{}{}", &text[..at], placeholder(examples.len())));
        examples.push(text[at..].to_owned());
    }
    let names: Vec<String> = command.get_subcommands().map(|verb| verb.get_name().to_owned()).collect();
    for name in names {
        command = command.mut_subcommand(name, |verb| without_examples(verb, examples));
    }
    command
}

/// Returns the examples of every help page, one text per page.
pub fn examples() -> Vec<String> {
    let mut examples = Vec::new();
    without_examples(command(), &mut examples);
    examples
}

/// Parses a command line. The caller prints an error with [`print_parsed`].
fn parse(args: &[OsString]) -> Result<Cli, clap::Error> {
    let mut command = without_examples(command(), &mut Vec::new());
    let matches = command.try_get_matches_from_mut(args).map_err(advised)?;
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

/// Starts threads for parallel work. Errors: [`Error::Plan`] if the system cannot start them.
fn pool(threads: usize) -> Result<rayon::ThreadPool> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    pool.map_err(|error| Error::plan("--jobs", error, "a number of threads that the system can start"))
}

/// Returns the requested number of threads, by default the number of threads that the machine can run at once.
fn threads(asked: Option<usize>) -> Result<usize> {
    match asked {
        Some(0) => Err(Error::plan("--jobs", 0, "at least 1 thread")),
        Some(threads) => Ok(threads),
        None => Ok(std::thread::available_parallelism().map_or(1, usize::from)),
    }
}
