//! `plimsoll replay`: replays one trace under some policies, without a plan file.
//!
//! The options that decide the results form a canonical table, which determines the digest of the plan and the command that repeats it.
//! Options for threads and output are not included, so that a replay can be resumed with other values of these options.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::ArgGroup;

use super::cluster_options::ClusterOptions;
use super::trace::RowOptions;
use super::{Context, Format, run, separate_policies, threads};
use crate::engine::settings::{SETTINGS, SettingKind};
use crate::error::{Error, Result};
use crate::experiment::machines::ClusterFile;
use crate::experiment::plan::{MeasureFile, PlanFile};
use crate::experiment::study::digest;
use crate::experiment::workload::{TraceFile, WorkloadFile};
use crate::experiment::{Mode, Plan, Seeds, Study};
use crate::output::folder::check_output;
use crate::output::portable::file_name;
use crate::output::schema::Table;
use crate::output::shell;
use crate::settings::SettingOrigin;
use crate::workload::Input;
use crate::workload::formats::{Format as TraceFormat, FormatOptions, detect};

/// The options of a replay that decide its results, besides the trace.
#[derive(clap::Args, Clone, Debug, serde::Deserialize)]
#[command(group(ArgGroup::new("drawn").args(["thin", "resample", "estimates"]).multiple(true)))]
pub struct ReplayOptions {
    /// The machines: groups such as 400x16c32g,100x64c256g4gpu (c cores, g GiB, m MiB, gpu, norm), or a .csv
    #[arg(long, value_name = "SPEC")]
    pub machines: Option<String>,
    /// A policy, or several as drf,fifo; may be given several times (see `plimsoll policies`)
    #[arg(long = "policy", value_name = "POLICY")]
    pub policies: Vec<String>,
    #[command(flatten)]
    #[serde(flatten)]
    cluster: ClusterOptions,
    /// A CSV of weights: user,weight or user and one column per resource
    #[arg(long, value_name = "FILE")]
    weights: Option<PathBuf>,
    /// Stop at this time even if work is left (90s, 15m, 2h)
    #[arg(long, value_name = "SPAN")]
    until: Option<String>,
    /// Scale the times between submissions so that the offered load is this share of the capacity, such as 0.7
    #[arg(long, value_name = "SHARE")]
    load: Option<f64>,
    /// Keep this share of the jobs, chosen by --seed; this lowers the load
    #[arg(long, value_name = "SHARE", conflicts_with = "resample")]
    thin: Option<f64>,
    /// Recombine whole periods of each user's jobs, such as 1d or 7d, drawn by --seed; this keeps the load
    #[arg(long, value_name = "SPAN")]
    resample: Option<String>,
    /// How users estimate durations: as-given (in the trace; the default), exact, uniform:F (up to F times too long) or
    /// lognormal:S, drawn by --seed (docs/traces.md)
    #[arg(long, value_name = "MODEL")]
    estimates: Option<String>,
    /// Seed of --thin, --resample and --estimates
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    #[serde(flatten)]
    pub rows: RowOptions,
    /// Step of the sampling grid for fairness over time
    #[arg(long, default_value = "60s", value_name = "SPAN")]
    sample: String,
}

/// Replay one trace under some policies
#[derive(clap::Args, Clone, Debug, serde::Deserialize)]
#[command(group(ArgGroup::new("given_machines").args(["machines"]).required(true)))]
#[command(group(ArgGroup::new("given_policies").args(["policies"]).required(true)))]
#[command(after_help = "Examples:
  plimsoll replay trace.csv --machines 400x16c32g --policy drf
  plimsoll replay trace.parquet --machines 200x16c32g,100x64c256g4gpu \\
      --placement first-fit --policy drf --policy slot:12 \\
      --tasks -o results/mine
  plimsoll replay batch_task.csv --from alibaba-2017 \\
      --machines 1300x64c1norm --policy drf
  zcat trace.csv.gz | plimsoll replay - --machines machines.csv \\
      --policy drf --weights weights.csv")]
pub struct Args {
    /// A canonical trace (CSV or Parquet, - for standard input) or a file in a public format
    trace: PathBuf,
    #[command(flatten)]
    #[serde(flatten)]
    options: ReplayOptions,
    /// Also write the tasks table
    #[arg(long)]
    tasks: bool,
    /// Also write the decisions table: every turn of every round, with the rank and the reason
    #[arg(long)]
    decisions: bool,
    /// Also write the usage, fairness and shares tables (over time), and demands
    #[arg(long)]
    series: bool,
    /// Draw figures and the report as well, from the tables (also `plimsoll report DIR` later)
    #[arg(long)]
    report: bool,
    /// Write tables to this folder; results of the same command in it are kept, others are refused (see --restart)
    #[arg(long, short, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Run everything again, and replace the results that are in the folder, even those of another plan or command
    #[arg(long)]
    restart: bool,
    /// Threads; policies run in parallel
    #[arg(long, short = 'j', value_name = "N")]
    jobs: Option<usize>,
    #[command(flatten)]
    #[serde(flatten)]
    save: run::SaveOptions,
    /// How to print the summary
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub fn run(args: &Args, context: &Context) -> Result<()> {
    let plan = plan(&args.trace, &args.options, &args.extra_tables()?, context)?;
    let draw = if args.report { run::Draw::Report } else { run::Draw::Nothing };
    args.output.as_ref().map_or(Ok(()), |folder| check_output("--output", folder))?;
    let how = run::RunSettings {
        folder: args.output.as_deref(),
        threads: threads(args.jobs)?,
        mode: if args.restart { Mode::Restart } else { Mode::Resume },
        shard: None,
        format: args.format,
        save_every: args.save.every,
    };
    run::perform(&Study::from_plan(plan), &how, draw, context)
}

impl Args {
    /// Returns the active switches for additional tables. Errors: there is no folder for the tables.
    fn extra_tables(&self) -> Result<Vec<&'static str>> {
        let all = [("tasks", self.tasks), ("decisions", self.decisions), ("series", self.series)];
        let switches: Vec<&str> = all.into_iter().filter(|(_, on)| *on).map(|(name, _)| name).collect();
        if !switches.is_empty() && self.output.is_none() {
            let expected = "a folder for the tables that --tasks, --series and --decisions write";
            return Err(Error::plan("--output", "nothing", expected));
        }
        Ok(switches)
    }
}

/// Parses a command line of `plimsoll replay`, as a results folder records it. Returns the trace and the options; `None` if it is no such
/// command.
pub fn parse_command(line: &str) -> Option<(PathBuf, ReplayOptions, Vec<&'static str>)> {
    let words = shell::words(line)?;
    let command = <Args as clap::Args>::augment_args(clap::Command::new("replay"));
    let matches = command.try_get_matches_from(words.strip_prefix(&["plimsoll".to_owned()][..])?).ok()?;
    let args = <Args as clap::FromArgMatches>::from_arg_matches(&matches).ok()?;
    let output = Some(PathBuf::new());
    let switches = Args { output, ..args.clone() }.extra_tables().ok()?;
    Some((args.trace, args.options, switches))
}

/// Returns the plan of a replay with the additional tables of some switches. Errors: [`Error::Plan`] with the option and the accepted
/// values.
pub fn plan(trace: &Path, options: &ReplayOptions, extra: &[&'static str], context: &Context) -> Result<Plan> {
    let policies = separate_policies(&options.policies, |name| context.registry.policy(name).is_ok());
    let args = &ReplayOptions { policies, ..options.clone() };
    let mut tables = vec![Table::Runs, Table::Users, Table::Jobs, Table::Groups, Table::Bins, Table::Quantiles];
    if extra.contains(&"tasks") {
        tables.push(Table::Tasks);
    }
    if extra.contains(&"decisions") {
        tables.push(Table::Decisions);
    }
    if extra.contains(&"series") {
        tables.extend([Table::Usage, Table::Fairness, Table::Shares, Table::Levels, Table::Demands]);
    }
    let text = |text: &String| Some(text.clone());
    let cluster = ClusterFile { machines: args.machines.clone(), group: Vec::new(), settings: args.cluster.0.clone() };
    let trace_file = TraceFile {
        trace: trace.to_owned(),
        format: args.rows.from.clone(),
        tenants: args.rows.tenants.clone(),
        thin: args.thin,
        resample: args.resample.clone(),
        estimates: args.estimates.clone(),
        options: Some(FormatOptions { tenants: None, resources: Vec::new(), ..args.rows.options()? }),
        resources: args.rows.resource.clone(),
    };
    check_parameters(trace, args)?;
    let file = PlanFile {
        name: trace.file_stem().map_or("replay".into(), |stem| file_name(&stem.to_string_lossy())),
        question: None,
        policies: args.policies.clone(),
        baseline: None,
        seeds: Seeds::default(),
        seed: args.seed,
        until: args.until.clone(),
        sample: text(&args.sample),
        measure: MeasureFile::default(),
        tables: Some(tables.iter().map(|table| table.name().to_owned()).collect()),
        weights: args.weights.clone(),
        quota: Vec::new(),
        queues: Vec::new(),
        metric: BTreeMap::new(),
        cluster,
        control: None,
        service: Vec::new(),
        workload: Some(match args.load {
            Some(load) => WorkloadFile::AtLoad(Box::new(WorkloadFile::Trace(trace_file)), load),
            None => WorkloadFile::Trace(trace_file),
        }),
    };
    let canonical = canonical(args, extra);
    Ok(Plan {
        text: toml::to_string(&canonical).unwrap_or_default(),
        digest: digest(canonical)?,
        command: command(trace, args, extra),
        ..Plan::check(file, Path::new(""), context.registry, SettingOrigin::OnCommandLine)?
    })
}

/// Checks that the parameters (`--set`) belong to the format of the trace. Errors: a parameter of another format, or the trace cannot be
/// read.
fn check_parameters(trace: &Path, args: &ReplayOptions) -> Result<()> {
    let standard_input = trace.as_os_str() == "-";
    let format = match &args.rows.from {
        Some(name) => Some(TraceFormat::parse("--from", name)?),
        // Standard input can be read only once.
        None if args.rows.set.is_empty() || standard_input => return Ok(()),
        None => detect(&Input::open(trace)?)?,
    };
    args.rows.check_format(format.map(TraceFormat::name), trace)
}

/// Returns the options that decide the results, each with its values and its default. The list excludes switches, and options for execution
/// and output.
fn deciding(args: &ReplayOptions) -> Vec<(&'static str, Vec<String>, Option<&'static str>)> {
    let one = |text: &Option<String>| text.iter().cloned().collect::<Vec<_>>();
    let file = |file: &Option<PathBuf>| file.iter().map(shell::path).collect::<Vec<_>>();
    let number = |number: Option<String>| number.into_iter().collect::<Vec<_>>();
    let drawn = args.thin.is_some() || args.resample.is_some() || args.estimates.is_some();
    let cluster = SETTINGS.iter().filter(|setting| setting.decides).map(|setting| {
        let values = args.cluster.0.all(setting.key).iter();
        let word = |value: &String| if setting.kind == SettingKind::File { shell::path(value) } else { value.clone() };
        let values = values.map(word).collect();
        (setting.option(), values, (setting.default)().filter(|_| !setting.explicit))
    });
    let mut options = vec![
        ("machines", args.machines.iter().map(shell::path).collect(), None),
        ("policy", args.policies.clone(), None),
    ];
    options.extend(cluster);
    options.extend([
        ("weights", file(&args.weights), None),
        ("until", one(&args.until), None),
        ("load", number(args.load.map(|load| load.to_string())), None),
        ("thin", number(args.thin.map(|thin| thin.to_string())), None),
        ("resample", one(&args.resample), None),
        ("estimates", one(&args.estimates), None),
        ("seed", drawn.then(|| args.seed.to_string()).into_iter().collect(), None),
        ("from", one(&args.rows.from), None),
        ("tenants", one(&args.rows.tenants), None),
        ("set", args.rows.set.clone(), None),
        ("resource", args.rows.resource.clone(), None),
        ("sample", vec![args.sample.clone()], Some("60s")),
    ]);
    options
}

/// Returns the options that were given with other values than their defaults, with their values.
pub fn given(args: &ReplayOptions) -> Vec<(&'static str, String)> {
    let strict = args.rows.strict.then(|| ("strict", "true".to_owned()));
    let given = deciding(args).into_iter().map(|(option, values, default)| {
        // Settings that the recorded command always states have a default, too.
        let setting = SETTINGS.iter().find(|setting| setting.option() == option);
        let default = default.or(setting.and_then(|setting| (setting.default)()));
        let values: Vec<String> = values.into_iter().filter(|value| Some(value.as_str()) != default).collect();
        (option, values.join(","))
    });
    given.filter(|(_, values)| !values.is_empty()).chain(strict).collect()
}

/// Returns the active switches: for reading the trace, and for the optional tables.
fn switches<'s>(args: &ReplayOptions, extra: &'s [&'static str]) -> impl Iterator<Item = &'static str> + 's {
    let strict = args.rows.strict.then_some("strict");
    strict.into_iter().chain(extra.iter().copied())
}

/// Returns the options that decide the results, as a plan would contain them.
fn canonical(args: &ReplayOptions, extra: &[&'static str]) -> toml::Table {
    let mut table = toml::Table::new();
    for (option, values, _) in deciding(args) {
        let (key, value) = match option {
            "policy" => ("policies", values.into()),
            // Seeds are in the tables.
            "seed" => continue,
            _ if values.is_empty() => continue,
            option => (option, values.join(",").into()),
        };
        table.insert(key.replace('-', "_"), value);
    }
    for name in switches(args, extra) {
        table.insert(name.to_owned(), true.into());
    }
    table
}

/// Returns the options that decide the results, as a command.
fn command(trace: &Path, args: &ReplayOptions, extra: &[&'static str]) -> String {
    let mut words = vec!["plimsoll".to_owned(), "replay".to_owned(), shell::path(trace)];
    for (option, values, default) in deciding(args) {
        for value in values.into_iter().filter(|value| Some(value.as_str()) != default) {
            words.extend([format!("--{option}"), value]);
        }
    }
    words.extend(switches(args, extra).map(|name| format!("--{name}")));
    shell::line(words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::settings::ClusterSetting;
    use clap::{CommandFactory, FromArgMatches};

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        _args: Args,
    }

    /// The options of the settings have the values of their keys.
    #[test]
    fn every_setting_is_an_option() {
        for setting in SETTINGS {
            let value = |setting: &ClusterSetting| match setting.kind {
                SettingKind::Switch => format!("--{}", setting.option()),
                _ => format!("--{}={}", setting.option(), setting.example),
            };
            let other = setting.requires.and_then(ClusterSetting::find).map(value);
            let line = ["replay", "t.csv", "--machines=1x1c1g", "--policy=drf"].map(str::to_owned);
            let matches = Line::command().get_matches_from(line.into_iter().chain([value(setting)]).chain(other));
            let args = Args::from_arg_matches(&matches).expect("a command line");
            assert_eq!(args.options.cluster.0.all(setting.key), [setting.example], "{}", setting.key);
            let decides =
                deciding(&args.options).iter().any(|(name, values, _)| *name == setting.option() && values.len() == 1);
            assert_eq!(decides, setting.decides, "{}", setting.key);
        }
    }

    /// A path that begins with a hyphen is no option in the command that repeats a replay.
    #[test]
    fn the_command_has_paths_that_read_back() {
        let line = ["replay", "t.csv", "--machines=1x1c1g", "--policy=drf", "--machine-events=-x.csv"];
        let args = Args::from_arg_matches(&Line::command().get_matches_from(line)).expect("a command line");
        assert!(
            command(&args.trace, &args.options, &[]).ends_with("--machine-events ./-x.csv"),
            "{}",
            command(&args.trace, &args.options, &[])
        );
    }

    /// A forgotten option would be missing from the digest of a run and from the command that repeats it.
    #[test]
    fn every_option_decides_or_is_known_not_to() {
        let matches = Line::command().get_matches_from(["replay", "t.csv", "--machines", "1x1c1g", "--policy", "drf"]);
        let args = Args::from_arg_matches(&matches).expect("a command line");
        let shown = [
            "report",
            "output",
            "restart",
            "save-every",
            "jobs",
            "format",
            "audit",
            "strict",
            "tasks",
            "decisions",
            "series",
        ];
        let mut known: Vec<&str> = deciding(&args.options).iter().map(|(name, ..)| *name).chain(shown).collect();
        let command = Line::command();
        let mut options: Vec<&str> = command.get_arguments().filter_map(|option| option.get_long()).collect();
        known.sort_unstable();
        options.sort_unstable();
        assert_eq!(options, known);
    }
}
