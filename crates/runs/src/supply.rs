//! The supply of a run's workload: a source that can be opened again for every policy.
//!
//! Canonical traces are streamed; imported traces and generated workloads are in memory. A selection of jobs, and estimates of durations,
//! are supplies that wrap another supply. `shared.rs` shares a supply and its rows among runs.

use std::collections::HashMap;
use std::path::Path;

use plimsoll_base::error::{Error, Result};
use plimsoll_base::units::{Dim, Span};
use plimsoll_sim::cluster::Mix;
use plimsoll_sim::workload::formats::{self, Format, FormatOptions};
use plimsoll_sim::workload::synthetic::{Generated, Generator};
use plimsoll_sim::workload::{
    CsvTrace, Estimated, Estimates, InMemory, Input, Quality, Scaled, Selected, Source, Workload, require_canonical,
    resample,
};
use plimsoll_store::trace::ParquetTrace;
use plimsoll_trace_import::recognise;

/// A workload that can be replayed any number of times.
pub enum Supply {
    /// A canonical CSV trace, streamed, and its resources in addition to the usual resources.
    Csv(Input, Vec<String>),
    /// A canonical Parquet trace, streamed one row group at a time, and its resources in addition to the usual resources.
    Parquet(Input, Vec<String>),
    /// An imported trace in a public format.
    Imported(Workload),
    /// The workload of a generator and a seed.
    Generated(Generated),
    /// A share of another supply's jobs, selected by seed.
    Thinned(Box<Supply>, f64, u64),
    /// Another supply with estimates of durations by a model and a seed.
    Estimated(Box<Supply>, Estimates, u64),
    /// Another supply with scaled times of submission, by a factor in billionths.
    Scaled(Box<Supply>, u64),
}

impl Supply {
    /// Opens a trace in a canonical format (CSV, Parquet) or in a public format. The format is given or detected.
    pub fn trace(path: &Path, format: Option<Format>, options: &FormatOptions) -> Result<Supply> {
        Supply::input(Input::open(path)?, format, options)
    }

    /// Opens a trace from an open input.
    pub fn input(input: Input, format: Option<Format>, options: &FormatOptions) -> Result<Supply> {
        match public_format(&input, format)? {
            Some(format) => Ok(Supply::Imported(formats::read_input(&input, format, options)?)),
            None => Supply::canonical(input, options),
        }
    }

    fn canonical(input: Input, options: &FormatOptions) -> Result<Supply> {
        let parquet = is_parquet(&input)?;
        let opened = match parquet {
            true => ParquetTrace::new(&input, &options.resources).map(|_| ()),
            false => {
                require_canonical(&input).and_then(|()| CsvTrace::declaring(&input, &options.resources).map(|_| ()))
            }
        };
        if let Err(error) = opened {
            Supply::refuse_known_log(&input, &error)?;
        }
        if !parquet {
            require_canonical(&input)?;
        }
        if options.tenants.is_some() {
            let expected = "a public format; a canonical trace names its users itself";
            return Err(Error::plan("tenants", format!("a canonical trace ({})", input.path().display()), expected));
        }
        let resources = options.resources.clone();
        Ok(if parquet { Supply::Parquet(input, resources) } else { Supply::Csv(input, resources) })
    }

    /// Refuses a file that is not a canonical trace if a shipped mapping recognises it; the message has the command that imports it.
    /// Other problems with the header are reported by the reader of the trace.
    fn refuse_known_log(input: &Input, error: &Error) -> Result<()> {
        if !matches!(error, Error::Trace { line: 0 | 1, .. }) {
            return Ok(());
        }
        let Some(shipped) = recognise(input)? else { return Ok(()) };
        let (path, name) = (input.path(), shipped.name);
        let file = if path.is_file() { plimsoll_results::shell::path(path) } else { "-".to_owned() };
        let command = format!("`plimsoll trace import {file} --from {name} -o trace.csv`");
        Err(Error::trace(
            path,
            0,
            "",
            format!("is a log of the format {name}, which must be imported first: {command}"),
        ))
    }

    /// Generates the workload of a seed.
    pub fn generate(generator: &Generator, seed: u64) -> Result<Supply> {
        generator.generate(seed).map(Supply::Generated)
    }

    /// Keeps a share of the jobs, selected by seed.
    pub fn thinned(self, share: f64, seed: u64) -> Supply {
        Supply::Thinned(Box::new(self), share, seed)
    }

    /// Recombines whole periods of each user's jobs by seed; the rows are read now. Errors: those of [`resample`].
    pub fn resampled(self, period: Span, seed: u64) -> Result<Supply> {
        Ok(Supply::Imported(resample(&mut *self.source()?, period, seed)?))
    }

    /// Scales the times of submission by a factor in billionths.
    pub fn scaled(self, factor: u64) -> Supply {
        Supply::Scaled(Box::new(self), factor)
    }

    /// Adds estimates of durations by a model and a seed.
    pub fn estimated(self, model: Estimates, seed: u64) -> Supply {
        match model {
            Estimates::AsGiven => self,
            model => Supply::Estimated(Box::new(self), model, seed),
        }
    }

    /// Returns a new source that starts from the beginning.
    pub fn source(&self) -> Result<Box<dyn Source + '_>> {
        Ok(match self {
            Supply::Csv(input, resources) => Box::new(CsvTrace::declaring(input, resources)?),
            Supply::Parquet(input, resources) => Box::new(ParquetTrace::new(input, resources)?),
            Supply::Imported(workload) => Box::new(workload.source()) as Box<InMemory>,
            Supply::Generated(generated) => generated.source(),
            Supply::Thinned(supply, share, seed) => Box::new(Selected::thinned(supply.source()?, *share, *seed)?),
            Supply::Scaled(supply, factor) => Box::new(Scaled::new(supply.source()?, *factor)),
            Supply::Estimated(supply, model, seed) => Box::new(Estimated::new(supply.source()?, *model, *seed)),
        })
    }

    /// Returns the resource dimensions.
    pub fn dims(&self) -> Result<Vec<Dim>> {
        Ok(self.source()?.dims().to_vec())
    }

    /// Returns the most frequent demands, which are read from the start; for a closed loop these are the demands of the first jobs.
    pub fn mix(&self) -> Result<Mix> {
        mix(&mut *self.source()?)
    }

    /// Returns whether every new source produces the same rows again by reading, selecting or estimating. Rows in memory need no such
    /// work, and the rows of a closed loop depend on the run.
    pub(super) fn is_streamed(&self) -> bool {
        match self {
            Supply::Csv(..) | Supply::Parquet(..) => true,
            Supply::Imported(_) | Supply::Generated(_) => false,
            Supply::Thinned(supply, ..) | Supply::Estimated(supply, ..) | Supply::Scaled(supply, _) => {
                !supply.is_a_loop()
            }
        }
    }

    /// Returns whether later submissions depend on the end times of earlier jobs.
    pub(super) fn is_a_loop(&self) -> bool {
        match self {
            Supply::Generated(generated) => matches!(generated, Generated::Loop(_)),
            Supply::Thinned(supply, ..) | Supply::Estimated(supply, ..) | Supply::Scaled(supply, _) => {
                supply.is_a_loop()
            }
            Supply::Csv(..) | Supply::Parquet(..) | Supply::Imported(_) => false,
        }
    }

    /// Checks that the file of a streamed trace is unchanged. Errors: [`Error::Io`].
    pub(super) fn check(&self) -> Result<()> {
        match self {
            Supply::Csv(input, _) | Supply::Parquet(input, _) => input.check(),
            Supply::Imported(_) | Supply::Generated(_) => Ok(()),
            Supply::Thinned(supply, ..) | Supply::Estimated(supply, ..) | Supply::Scaled(supply, _) => supply.check(),
        }
    }

    /// Returns the number of tasks, if it is known without reading a trace completely.
    pub fn tasks(&self) -> Option<u64> {
        match self {
            Supply::Imported(workload) | Supply::Generated(Generated::Workload(workload)) => {
                Some(workload.sets.iter().map(|set| u64::from(set.tasks)).sum())
            }
            Supply::Estimated(supply, ..) | Supply::Scaled(supply, _) => supply.tasks(),
            _ => None,
        }
    }

    /// Returns the report of the importer or of the generator on the workload.
    pub fn quality(&self) -> Option<&Quality> {
        match self {
            Supply::Imported(workload) | Supply::Generated(Generated::Workload(workload)) => Some(&workload.quality),
            Supply::Thinned(supply, ..) | Supply::Estimated(supply, ..) | Supply::Scaled(supply, _) => supply.quality(),
            Supply::Csv(..) | Supply::Parquet(..) | Supply::Generated(Generated::Loop(_)) => None,
        }
    }
}

/// Returns the most frequent demands of the rows of a source.
pub(super) fn mix(source: &mut dyn Source) -> Result<Mix> {
    const MOST: usize = 100;
    let mut tasks = HashMap::new();
    let mut order = Vec::new();
    while let Some(set) = source.next_set()? {
        let count = tasks.entry(set.demand).or_insert_with(|| {
            order.push(set.demand);
            0u64
        });
        *count += u64::from(set.tasks);
    }
    Ok(Mix::new(order.into_iter().map(|demand| (demand, tasks[&demand])), MOST))
}

fn is_parquet(input: &Input) -> Result<bool> {
    Ok(input.head(4)? == b"PAR1")
}

/// Returns the public format of an input; the format is given or detected. Returns `None` for a canonical trace.
fn public_format(input: &Input, given: Option<Format>) -> Result<Option<Format>> {
    match given {
        Some(format) => Ok(Some(format)),
        None if is_parquet(input)? => Ok(None),
        None => formats::detect(input),
    }
}
