//! `plimsoll trace import`: converts a public format or a foreign log to a canonical trace, or CSV to Parquet and back.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::save::{SaveTarget, check_output, save};
use super::watched::Watched;
use super::{Opened, RowOptions, report};
use crate::cli::Context;
use crate::error::{Error, Result, did_you_mean};
use crate::output::file::write_whole;
use crate::rows::read_text;
use crate::trace_import::{
    ImportOptions, Imported, Mapping, SHIPPED, Shipped, Spill, import_machines, import_sorted, read_mapping, recognise,
};
use crate::units::{Rounding, decimal};
use crate::workload::Input;
use crate::workload::formats::{Format, detect};

/// Convert a file in a public format, or a log by a mapping, to a canonical trace
#[derive(clap::Args, Debug)]
#[command(after_help = format!("Formats (recognised by content if --from and --map are absent):
{}
A canonical trace may be given too: CSV becomes Parquet, or the reverse.

--map is a file of a mapping (docs/mapping.md), or a short mapping: a comma list
of COLUMN=EXPRESSION. With --from it changes the shipped mapping of that name.
`plimsoll trace guess FILE` writes a first mapping.

A log with a mapping may be larger than the memory: what exceeds --memory is
sorted in temporary files in the folder of OUT.

The numbers of rows read, dropped and repaired, and the assumptions, are printed
on standard error and written to OUT.json.

Examples:
  plimsoll trace import FB-2009_samples_24_times_1hr_0.tsv -o facebook-2009.csv
  plimsoll trace import cluster_job_log.json --from philly -o philly.parquet
  plimsoll trace import log.csv --map log.toml -o trace.csv
  plimsoll trace import log.csv -o trace.csv \\
      --map job=id,user=team,submit=queued,duration=end-start,cpu=cores
  plimsoll trace import --print-map slurm > my-slurm.toml
  plimsoll trace import FB-2009_samples_24_times_1hr_0.tsv --from swim \\
      --set swim.map_bytes=134217728 --tenants zipf:20:1.1 -o zipf.csv
  zcat NASA-iPSC-1993-3.1-cln.swf.gz |
      plimsoll trace import - --from swf > nasa.csv", listed()), mut_arg("from", |from| {
    from.visible_alias("format").help("Format of the files, if it is not recognised: a name of the list below")
}))]
pub struct Args {
    /// The files of one log, or - for standard input
    #[arg(required_unless_present = "print_map", value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    rows: RowOptions,
    /// A file of a mapping, or COLUMN=EXPRESSION,...; may be given several times
    #[arg(long, value_name = "MAP")]
    map: Vec<String>,
    /// Print the shipped mapping of a format
    #[arg(long, value_name = "NAME", conflicts_with_all = ["files", "map", "from"])]
    print_map: Option<String>,
    /// The trace: a .csv or .parquet file, or - for CSV on standard output [default: -]
    #[arg(long, short, value_name = "OUT")]
    output: Option<PathBuf>,
    /// The memory for sorting the rows of a log with a mapping: 16MiB or more, such as 512MiB or 8GiB [default: 2GiB]
    #[arg(long, value_name = "SIZE")]
    memory: Option<String>,
    /// Also write the machines of the log, if the mapping has [machines]: a .csv for --machines
    #[arg(long, value_name = "CSV")]
    machines_out: Option<PathBuf>,
}

/// Lists the formats, one per line.
fn listed() -> String {
    let formats = Format::ALL.iter().map(|format| (format.name(), format.row().about));
    let shipped = SHIPPED.iter().map(|shipped| (shipped.name, shipped.about()));
    let line = |(name, about): (&str, &str)| format!("  {name:<22} {}", about.split(':').next().unwrap_or_default());
    formats.chain(shipped).map(line).collect::<Vec<_>>().join("\n")
}

pub fn run(args: &Args, context: &Context) -> Result<()> {
    if let Some(name) = &args.print_map {
        return context.out(find_shipped("--print-map", name, &[])?.text);
    }
    let target = SaveTarget::parse(args.output.as_deref())?;
    check_output(
        args.output.as_deref(),
        args.files.iter().chain(&args.map.iter().map(PathBuf::from).collect::<Vec<_>>()),
    )?;
    check_output(args.machines_out.as_deref(), &args.files).map_err(|error| error.under("--machines-out"))?;
    let memory = args.memory.as_deref().map(parse_memory).transpose()?.unwrap_or(MEMORY);
    let mapping = args.mapping()?;
    if let (Some(memory), None) = (&args.memory, &mapping) {
        let expected = "a log with a mapping; files of the other formats are read into memory";
        return Err(Error::plan("--memory", format!("'{memory}'"), expected));
    }
    if let Some(path) = &args.machines_out
        && mapping.as_ref().is_none_or(|mapping| mapping.machines.is_none())
    {
        let expected = "a log with a mapping that has [machines] (docs/mapping.md)";
        return Err(Error::plan("--machines-out", format!("'{}'", path.display()), expected));
    }
    if let Some(mapping) = mapping {
        return args.import(&mapping, &target, memory, context);
    }
    let [file] = &args.files[..] else {
        let expected = "one file, or --map or --from with a format of several files";
        return Err(Error::plan("FILE", format!("{} files", args.files.len()), expected));
    };
    let opened = Opened::new(file, &args.rows, None)?;
    let mut facts = Map::new();
    facts.insert("source".into(), opened.name().into());
    facts.insert("source_blake3".into(), opened.input.digest()?.into());
    match opened.supply.quality() {
        Some(quality) => {
            report::lines(quality).iter().for_each(|line| context.print_message(line));
            facts.extend(report::json(quality));
        }
        None => {
            facts.insert("format".into(), Value::from(opened.format()));
        }
    }
    save(&|| opened.source(&context.stop), &target, facts, context)
}

/// The default of `--memory`, and its smallest value.
const MEMORY: u64 = 2 << 30;
const MEMORY_LEAST: u64 = 16 << 20;

/// Parses the value of `--memory`. Errors: [`Error::Plan`].
fn parse_memory(text: &str) -> Result<u64> {
    let units = [("MiB", 1 << 20), ("GiB", 1 << 30), ("TiB", 1u64 << 40)];
    let number = units.iter().find_map(|(unit, scale)| Some((text.strip_suffix(unit)?, *scale)));
    let bytes = number.and_then(|(number, scale)| decimal(number.as_bytes(), scale, Rounding::Down).ok());
    bytes.filter(|bytes| *bytes >= MEMORY_LEAST).ok_or_else(|| {
        let expected = "a size in MiB, GiB or TiB from 16MiB, such as 512MiB or 8GiB";
        Error::plan("--memory", format!("'{text}'"), expected)
    })
}

/// Finds a shipped mapping. Errors: [`Error::Plan`] at `option`, also with the names `others`.
fn find_shipped(option: &str, name: &str, others: &[&str]) -> Result<&'static Shipped> {
    Shipped::find(name).ok_or_else(|| {
        let known = || others.iter().copied().chain(SHIPPED.iter().map(|shipped| shipped.name));
        let names = known().collect::<Vec<_>>().join(", ");
        Error::plan(option, format!("'{name}'"), format!("{names}{}", did_you_mean(name, known())))
    })
}

impl Args {
    /// Returns the mapping of the command line, or the shipped mapping that recognises the first file. Returns `None` for a canonical trace
    /// and for a format without a mapping.
    fn mapping(&self) -> Result<Option<Mapping>> {
        let formats: Vec<&str> = Format::ALL.iter().map(|format| format.name()).collect();
        let from = self.rows.from.as_deref();
        if let Some(name) = from.filter(|name| !formats.contains(name)) {
            let shipped = find_shipped("--from", name, &formats)?;
            return read_mapping(Some(shipped), &self.map).map(Some);
        }
        if !self.map.is_empty() {
            if let Some(name) = from {
                let expected = "a format with a mapping; --print-map lists them";
                return Err(Error::plan("--from", format!("'{name}' with --map"), expected));
            }
            return read_mapping(None, &self.map).map(Some);
        }
        // Standard input can be read only once; it is recognised if the whole input is in memory.
        if from.is_some() || self.files.iter().any(|file| file == Path::new("-")) {
            return Ok(None);
        }
        for file in &self.files {
            let input = Input::open(file)?;
            if detect(&input)?.is_none()
                && let Some(shipped) = recognise(&input)?
            {
                return shipped.mapping().map(Some);
            }
        }
        Ok(None)
    }

    /// Imports the files by a mapping.
    fn import(&self, mapping: &Mapping, target: &SaveTarget, memory: u64, context: &Context) -> Result<()> {
        if let Some(set) = self.rows.set.first() {
            let expected = "parameters only of swim, alibaba-2017, swf and openb; --map changes a mapping";
            return Err(Error::plan("--set", format!("'{set}'"), expected));
        }
        if let Some(resource) = self.rows.resource.first() {
            let expected = "resources = [\"NAME\"] in the mapping";
            return Err(Error::plan("--resource", format!("'{resource}'"), expected));
        }
        let inputs = self.files.iter().map(|file| Input::open(file)).collect::<Result<Vec<_>>>()?;
        let options = ImportOptions { strict: self.rows.strict, tenants: self.rows.options()?.tenants };
        let interrupt = || context.stop.check();
        let machines = match self.machines_out {
            Some(_) => import_machines(mapping, &inputs, options.strict, &interrupt)?,
            None => None,
        };
        let spill = Spill { memory, folder: target.folder() };
        let imported = import_sorted(mapping, &inputs, options, &spill, &interrupt).map_err(|error| match error {
            Error::Plan { ref key, .. } if key == "tenants" => error.under("--tenants"),
            error => error,
        })?;
        inputs.iter().try_for_each(Input::check)?;
        report::lines(&imported.quality).iter().for_each(|line| context.print_message(line));
        let open = || Ok(Watched::new(Box::new(imported.source()?), &context.stop));
        save(&open, target, self.facts(&imported, &inputs)?, context)?;
        if let (Some(path), Some(machines)) = (&self.machines_out, machines) {
            write_whole(path, &machines.csv)?;
            let mut lines = report::lines(&machines.quality);
            lines[0] = format!("{}: {}", path.display(), lines[0]);
            lines.iter().for_each(|line| context.print_message(line));
        }
        Ok(())
    }

    /// Returns the facts for `OUT.json`: the files with their digests, and the mapping unless it is shipped.
    fn facts(&self, imported: &Imported, inputs: &[Input]) -> Result<Map<String, Value>> {
        let name =
            |input: &Input| input.path().file_name().map_or("log".into(), |name| name.to_string_lossy()).into_owned();
        let (mut names, mut digests) = (Vec::new(), Vec::new());
        for input in inputs {
            names.push(Value::from(name(input)));
            digests.push(Value::from(input.digest()?));
        }
        let one = |mut values: Vec<Value>| if values.len() == 1 { values.swap_remove(0) } else { Value::Array(values) };
        let mut facts = Map::new();
        facts.insert("source".into(), one(names));
        facts.insert("source_blake3".into(), one(digests));
        facts.extend(report::json(&imported.quality));
        let texts = self.map.iter().map(|map| read_text(Path::new(map)).unwrap_or_else(|_| map.clone()));
        let texts: Vec<Value> = texts.map(Value::from).collect();
        if !texts.is_empty() {
            facts.insert("mapping".into(), texts.into());
        }
        Ok(facts)
    }
}
