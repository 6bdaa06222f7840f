//! A run in the page: from a request, rows and changes to tables.

use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use plimsoll_base::error::{Error, Result, did_you_mean};
use plimsoll_base::units::{Dim, Span, Time};
use plimsoll_metrics::{Measure, Run, RunLog, Window, runs_columns};
use plimsoll_policies::RunEnvironment;
use plimsoll_sim::books::Weights;
use plimsoll_sim::cluster::Cluster;
use plimsoll_sim::engine::{Engine, Options, RunContext};
use plimsoll_sim::workload::{CsvTrace, Following, Input, Names, Scaled, SharedRows, Source, WithServices};

use crate::recorder::PageRecorder;
use crate::request::{PageChanges, PageRequest};
use crate::tables::{CsvText, PageTables};

/// A function that receives the simulated time and the number of launched tasks. It may end the run with an error.
pub type PageProgress<'a> = &'a mut (dyn FnMut(Time, u64) -> Result<()> + Send);

/// The inputs of all runs of a page.
pub struct PageEngine {
    request: PageRequest,
    input: Input,
    rows: Option<SharedRows>,
    /// The users of the rows; `None` if not all rows were read.
    users: Option<Names>,
}

impl PageEngine {
    /// Reads the rows of the workload, a canonical trace in CSV. Errors: the first row is invalid. Later errors occur again in the runs.
    pub fn new(request: PageRequest, trace: Vec<u8>) -> Result<PageEngine> {
        let input = Input::Bytes(PathBuf::from("the workload"), trace.into());
        let mut source = CsvTrace::declaring(&input, &request.resources)?;
        let rows = SharedRows::read(&mut source, Time::NEVER, &mut |_| Ok(true))?;
        let users = rows.is_some().then(|| source.users().clone());
        Ok(PageEngine { request, input, rows, users })
    }

    /// Returns the request.
    pub fn request(&self) -> &PageRequest {
        &self.request
    }

    fn source(&self) -> Result<Box<dyn Source + '_>> {
        let open = || -> Result<Box<dyn Source + '_>> {
            Ok(Box::new(CsvTrace::declaring(&self.input, &self.request.resources)?))
        };
        match &self.rows {
            Some(rows) => Ok(Box::new(rows.source(open))),
            None => open(),
        }
    }

    /// Executes the run with the changes of a reader. Errors: those of the changes, of the run, and of `progress`.
    pub fn run(&self, changes: &PageChanges, progress: PageProgress) -> Result<PageTables> {
        let request = &self.request;
        let named = request.named_policy(changes.policy.as_deref().unwrap_or(&request.policy))?;
        let mut source = self.source()?;
        if let Some(factor) = changes.time_factor()? {
            source = Box::new(Scaled::new(source, factor));
        }
        if source.has_preceding() {
            source = Box::new(Following::new(source));
        }
        if !request.services.is_empty() {
            source = Box::new(WithServices::new(source, &request.services)?);
        }
        let environment = self.environment(changes, source.dims())?;
        let (seed, until) = (request.seed.unwrap_or_default(), request.until_us.map(Time));
        let options = Options { seed, until, job_order: named.job_order.clone(), ..request.options()? };
        let mut policy = environment.policy(&named, options.placement)?;
        let RunEnvironment { cluster, weights } = environment;
        let cluster = Arc::new(cluster);
        let (dims, capacity) = (&cluster.dims, cluster.total());
        let window = Window { from: Time(request.window_us.0), to: Time(request.window_us.1) };
        let measure = Measure { step: Span(request.sample_us), window, horizon: until };
        let log = RunLog::new(dims.len(), &capacity, &weights, &measure, None);
        let mut recorder = PageRecorder::new(log, dims, &weights, request.series, progress);
        let context = RunContext::lent(&mut *source, &mut *policy, &mut recorder);
        let mut engine = Engine::new(context, Arc::clone(&cluster), weights.clone(), &options)?;
        while engine.step()?.is_some() {}
        let outcome = engine.finish()?;
        recorder.log.finish(outcome.end)?;
        let lens = policy.needs().lens;
        let run = Run {
            workload: &request.workload,
            offered: cluster.capacities.iter().map(|machine| lens.machine(*machine)).sum(),
            ..recorder.log.run(outcome, (cluster.capacities.len() as u64, capacity))
        };
        let columns = runs_columns(dims);
        let mut runs = CsvText::new(columns.iter().map(|column| column.name.as_str()));
        runs.row(recorder.log.grid.means.row(&run));
        let runs = runs.finish();
        Ok(PageTables { runs, jobs: recorder.jobs.finish(), fairness: recorder.fairness.finish() })
    }

    /// Returns the machines and weights with the changes of a reader.
    fn environment(&self, changes: &PageChanges, dims: &[Dim]) -> Result<RunEnvironment> {
        let cluster = Cluster::new(&self.request.cluster(&changes.machines)?, dims)?;
        let weights = match &self.request.weights {
            Some(text) => {
                let content = Box::new(Cursor::new(text.clone().into_bytes()));
                Weights::read_from(content, Path::new("the weights"), &cluster.dims)?
            }
            None => Weights::default(),
        };
        let scalars = changes.scalars()?;
        let of_services = |name: &str| self.request.services.iter().any(|service| service.user == name);
        let unknown = |(name, _): &&(&str, u64)| {
            self.users.as_ref().is_some_and(|users| users.id(name).is_none()) && !of_services(name)
        };
        if let (Some((name, _)), Some(users)) = (scalars.iter().find(unknown), &self.users) {
            let hint = did_you_mean(name, users.iter());
            return Err(Error::plan("weights", format!("'{name}'"), format!("a user of the workload{hint}")));
        }
        let weights = weights.with_scalars(scalars);
        Ok(RunEnvironment { cluster, weights })
    }
}
