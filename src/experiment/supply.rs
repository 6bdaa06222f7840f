//! The source of a run's workload, opened again for every policy.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, Weak};

use crate::cluster::Mix;
use crate::error::{Error, Result};
use crate::output::trace::ParquetTrace;
use crate::units::Dim;
use crate::workload::formats::{self, Format, FormatOptions};
use crate::workload::synthetic::{Generated, Generator};
use crate::workload::{
    CsvTrace, Estimated, Estimates, InMemory, Input, Quality, Source, Thinned, Workload, require_canonical,
};

/// A workload that can be replayed any number of times.
pub enum Supply {
    /// A canonical CSV trace, streamed, and its resources beside the usual ones.
    Csv(Input, Vec<String>),
    /// A canonical Parquet trace, streamed a row group at a time, and its resources beside the usual ones.
    Parquet(Input, Vec<String>),
    /// A public format, imported.
    Imported(Workload),
    /// The workload that a generator made of a seed.
    Generated(Generated),
    /// Some of another supply's jobs, chosen by seed.
    Thinned(Box<Supply>, f64, u64),
    /// Another supply with estimates by a model and a seed.
    Estimated(Box<Supply>, Estimates, u64),
}

/// A supply that several runs share: made when it is first needed, and dropped when no run needs it any more unless it
/// is to stay.
#[derive(Default)]
pub(super) struct Shared {
    slot: Mutex<(Weak<Supply>, Option<Arc<Supply>>)>,
}

impl Shared {
    pub fn get(&self, stays: bool, make: impl FnOnce() -> Result<Supply>) -> Result<Arc<Supply>> {
        let mut slot = self.slot.lock().map_err(|_| Error::Interrupted)?;
        if let Some(supply) = slot.0.upgrade() {
            return Ok(supply);
        }
        let supply = Arc::new(make()?);
        *slot = (Arc::downgrade(&supply), stays.then(|| supply.clone()));
        Ok(supply)
    }
}

impl Supply {
    /// Opens a trace: canonical (CSV, Parquet) or, by name or by its looks, a public format.
    pub fn trace(path: &Path, format: Option<Format>, options: &FormatOptions) -> Result<Supply> {
        Supply::input(Input::open(path)?, format, options)
    }

    /// The same of an input that is open already.
    pub fn input(input: Input, format: Option<Format>, options: &FormatOptions) -> Result<Supply> {
        match public_format(&input, format)? {
            Some(format) => Ok(Supply::Imported(formats::read_input(&input, format, options)?)),
            None => Supply::canonical(input, options),
        }
    }

    fn canonical(input: Input, options: &FormatOptions) -> Result<Supply> {
        let parquet = is_parquet(&input)?;
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

    /// The workload that a generator makes of a seed.
    pub fn generate(generator: &Generator, seed: u64) -> Result<Supply> {
        generator.generate(seed).map(Supply::Generated)
    }

    /// This share of the jobs, chosen by seed.
    pub fn thinned(self, share: f64, seed: u64) -> Supply {
        Supply::Thinned(Box::new(self), share, seed)
    }

    /// The same with estimates by a model and a seed.
    pub fn estimated(self, model: Estimates, seed: u64) -> Supply {
        match model {
            Estimates::AsGiven => self,
            model => Supply::Estimated(Box::new(self), model, seed),
        }
    }

    /// A fresh source from the start.
    pub fn source(&self) -> Result<Box<dyn Source + '_>> {
        Ok(match self {
            Supply::Csv(input, resources) => Box::new(CsvTrace::declaring(input, resources)?),
            Supply::Parquet(input, resources) => Box::new(ParquetTrace::new(input, resources)?),
            Supply::Imported(workload) => Box::new(workload.source()) as Box<InMemory>,
            Supply::Generated(generated) => generated.source(),
            Supply::Thinned(supply, share, seed) => Box::new(Thinned::new(supply.source()?, *share, *seed)?),
            Supply::Estimated(supply, model, seed) => Box::new(Estimated::new(supply.source()?, *model, *seed)),
        })
    }

    /// The resource dimensions.
    pub fn dims(&self) -> Result<Vec<Dim>> {
        Ok(self.source()?.dims().to_vec())
    }

    /// The most frequent demands, read from the start; of a closed loop those of the first jobs.
    pub fn mix(&self) -> Result<Mix> {
        const MOST: usize = 100;
        let mut source = self.source()?;
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

    /// How many tasks there are, if that is known without reading a trace through.
    pub fn tasks(&self) -> Option<u64> {
        match self {
            Supply::Imported(workload) | Supply::Generated(Generated::Workload(workload)) => {
                Some(workload.sets.iter().map(|set| u64::from(set.tasks)).sum())
            }
            Supply::Estimated(supply, ..) => supply.tasks(),
            _ => None,
        }
    }

    /// The report of an importer or a generator on its work.
    pub fn quality(&self) -> Option<&Quality> {
        match self {
            Supply::Imported(workload) | Supply::Generated(Generated::Workload(workload)) => Some(&workload.quality),
            Supply::Thinned(supply, ..) | Supply::Estimated(supply, ..) => supply.quality(),
            Supply::Csv(..) | Supply::Parquet(..) | Supply::Generated(Generated::Loop(_)) => None,
        }
    }
}

fn is_parquet(input: &Input) -> Result<bool> {
    Ok(input.head(4)? == b"PAR1")
}

/// The public format of an input: the one given, or the one that it looks like. `None` for a canonical trace.
fn public_format(input: &Input, given: Option<Format>) -> Result<Option<Format>> {
    match given {
        Some(format) => Ok(Some(format)),
        None if is_parquet(input)? => Ok(None),
        None => formats::detect(input),
    }
}
