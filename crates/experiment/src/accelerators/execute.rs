//! Executes the missing runs of a plan with accelerators. A run is stored when it ends: the table of its jobs, and its receipt with the rows
//! of the other tables.
//!
//! Rows of jobs are in memory only while their run is executed. The manifest `made.json` names the plan before the first receipt is written,
//! so that the folder of an interrupted command belongs to this plan.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use plimsoll_rounds::mechanism::Options;
use plimsoll_rounds::policies::PolicyOptions;
use plimsoll_rounds::simulate::{RoundSetup, simulate_ideal, simulate_interruptible};
use rayon::prelude::*;

use super::study::{AcceleratorRunIndex, AcceleratorStudy};
use super::tables::{RunRows, jobs_table};
use crate::Mode;
use crate::execute::missing_runs;
use crate::study::Shard;
use plimsoll_base::error::{Error, Result};
use plimsoll_control::study::Watcher;
use plimsoll_results::accelerators::AcceleratorSummary;
use plimsoll_results::manifest::Manifest;
use plimsoll_results::ownership;
use plimsoll_results::receipt::{self, Receipt, ReceiptState};
use plimsoll_store::lock::Lock;

/// The options of an execution.
pub struct AcceleratorRequest<'a> {
    /// The folder of the results.
    pub folder: &'a Path,
    /// The number of threads.
    pub threads: usize,
    /// The handling of existing results.
    pub mode: Mode,
    /// The shard of the runs to execute; all runs if absent.
    pub shard: Option<Shard>,
    /// Receives the numbers of runs, also of an execution that ends with an error.
    pub counts: &'a RunCounts,
}

/// The numbers of runs during an execution.
#[derive(Debug, Default)]
pub struct RunCounts {
    /// The runs that are complete and stored.
    pub complete: AtomicUsize,
    /// All runs.
    pub all: AtomicUsize,
}

/// A complete run.
#[derive(Clone, Debug)]
pub struct StoredRun {
    /// The run.
    pub index: AcceleratorRunIndex,
    /// Its rows, except those of jobs.
    pub summary: AcceleratorSummary,
    /// The table of its jobs.
    pub jobs: PathBuf,
    /// Its receipt.
    receipt: PathBuf,
}

/// The outcome of an execution.
pub struct AcceleratorDone {
    /// The runs, in the order of [`AcceleratorStudy::runs`].
    pub runs: Vec<StoredRun>,
    /// The number of runs that were executed now.
    pub made: usize,
    /// The number of existing runs that were kept.
    pub kept: usize,
    /// The existing runs that were damaged, with the reasons.
    pub broken: Vec<String>,
    /// The folder's lock. Until it is dropped, no other process writes to the folder.
    pub lock: Lock,
}

/// Executes all missing runs of a study.
///
/// Errors: [`Error::Mismatch`] if the folder has results of another plan, or if runs are missing ([`Mode::Gather`]); and the error that ended
/// a run. Completed runs are stored.
pub fn execute(
    study: &AcceleratorStudy,
    request: &AcceleratorRequest<'_>,
    watcher: &dyn Watcher,
) -> Result<AcceleratorDone> {
    let AcceleratorRequest { folder, threads, mode, shard, counts } = *request;
    let (lock, replaces) = ownership::claim(folder, &study.text, mode == Mode::Restart, shard.is_some())?;
    check_damaged(study, folder, mode)?;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let pool = pool.map_err(|error| Error::output(folder, error))?;
    let wanted = study.runs_of(shard);
    let (mut runs, mut open, mut broken) = (Vec::new(), Vec::new(), Vec::new());
    let found: Vec<ReceiptState<AcceleratorSummary>> = match mode {
        Mode::Restart => wanted.iter().map(|_| ReceiptState::Missing).collect(),
        _ => pool.install(|| wanted.par_iter().map(|&index| study.find(folder, index)).collect()),
    };
    for (&index, found) in wanted.iter().zip(found) {
        match found {
            ReceiptState::Whole(receipt) => runs.push(StoredRun::new(study, folder, index, *receipt)),
            ReceiptState::Missing => open.push(index),
            ReceiptState::Broken(why) => {
                broken.push(format!("{} is broken: {why}", study.label(index)));
                open.push(index);
            }
        }
    }
    let kept = runs.len();
    counts.all.store(wanted.len(), Ordering::Relaxed);
    counts.complete.store(kept, Ordering::Relaxed);
    if mode == Mode::Gather && !open.is_empty() {
        return Err(missing_runs(&open, |&index| study.label(index)));
    }
    watcher.planned(open.len());
    let removed = Mutex::new(None);
    let runner = AcceleratorRunner { study, request, watcher, replaces, removed };
    let made = pool.install(|| open.iter().par_bridge().map(|&index| runner.run(index)).collect::<Result<Vec<_>>>())?;
    runs.extend(made);
    runs.sort_by_key(|run| run.index);
    if shard.is_none() {
        let kept: HashSet<PathBuf> = runs.iter().flat_map(|run| [run.receipt.clone(), run.jobs.clone()]).collect();
        for place in ownership::places(folder)? {
            ownership::remove_stale_runs(&place, &kept)?;
        }
        let removed = runner.removed.into_inner().map_err(|_| Error::Interrupted)?.unwrap_or_default();
        ownership::remove_empty(folder, &removed);
    }
    Ok(AcceleratorDone { runs, made: open.len(), kept, broken, lock })
}

/// Checks that a folder with a damaged manifest, which would name its plan, has runs of this study or none.
fn check_damaged(study: &AcceleratorStudy, folder: &Path, mode: Mode) -> Result<()> {
    let Err(error) = Manifest::read(folder) else { return Ok(()) };
    let mut is_empty = true;
    for place in ownership::places(folder)? {
        is_empty &= plimsoll_results::folder::receipts(&place)?.is_empty();
    }
    let is_ours = || study.runs().iter().any(|&index| matches!(study.find(folder, index), ReceiptState::Whole(_)));
    if mode == Mode::Restart || is_empty || is_ours() {
        return Ok(());
    }
    let problem = format!("{error}\nNo run in this folder belongs to this plan. {}", ownership::ADVICE);
    Err(Error::Mismatch { problem })
}

struct AcceleratorRunner<'a> {
    study: &'a AcceleratorStudy,
    request: &'a AcceleratorRequest<'a>,
    watcher: &'a dyn Watcher,
    /// Whether results of another plan are replaced.
    replaces: bool,
    /// The removed files of such results; `None` until the first run is complete.
    removed: Mutex<Option<Vec<PathBuf>>>,
}

impl AcceleratorRunner<'_> {
    /// Executes a run and stores its results. Errors: those of the run; [`Error::Interrupted`]; a file cannot be written.
    fn run(&self, index: AcceleratorRunIndex) -> Result<StoredRun> {
        self.watcher.go_on()?;
        let (study, folder) = (self.study, self.request.folder);
        let place = study.place(folder, index.cell);
        let id = study.id(index);
        let _alone = self.request.shard.map(|_| Lock::run(&place, &id)).transpose()?;
        let rows = self.simulate(index).map_err(|error| study.located(index.cell, error))?;
        let table = jobs_table(study, &place, index, &rows.jobs)?;
        self.begin()?;
        let summary = AcceleratorSummary::new(&rows.run, &rows.types);
        let receipt = receipt::write(&place, &id, vec![table], summary)?;
        self.request.counts.complete.fetch_add(1, Ordering::Relaxed);
        self.watcher.done();
        Ok(StoredRun::new(study, folder, index, receipt))
    }

    fn simulate(&self, index: AcceleratorRunIndex) -> Result<RunRows> {
        let setup = &self.study.cells[index.cell].setup;
        let jobs = setup.jobs(index.run, index.rate);
        let seed = index.run as u64;
        let round = RoundSetup {
            jobs: &jobs,
            table: &setup.table,
            cluster: &setup.cluster,
            options: Options { seed, ..setup.options.clone() },
            policy: PolicyOptions { seed, ..setup.policy_options.clone() },
            window: setup.window,
            log_rounds: false,
        };
        let row = setup.policies[index.policy];
        let outcome = match setup.ideal {
            true => simulate_ideal(&round, row)?,
            false => simulate_interruptible(&round, row, &|| self.watcher.go_on())?,
        };
        Ok(RunRows::new(self.study, index, &jobs, &outcome))
    }

    /// Records the plan in the manifest before the first receipt is written. Results of another plan are removed here, so that a restart that
    /// fails before leaves them unchanged.
    fn begin(&self) -> Result<()> {
        let folder = self.request.folder;
        let mut removed = self.removed.lock().map_err(|_| Error::Interrupted)?;
        if removed.is_some() {
            return Ok(());
        }
        *removed = Some(if self.replaces { ownership::clear(folder)? } else { Vec::new() });
        if self.replaces {
            ownership::remove_all_saved(folder)?;
        }
        let about = self.study.about();
        match Manifest::known(folder)?.about {
            Some(there) if there == about => Ok(()),
            // Tables and figures of other versions of the input files are removed.
            _ => Manifest::renew(folder, Some(about), &[""], &[]),
        }
    }
}

impl StoredRun {
    fn new(
        study: &AcceleratorStudy,
        folder: &Path,
        index: AcceleratorRunIndex,
        receipt: Receipt<AcceleratorSummary>,
    ) -> StoredRun {
        let place = study.place(folder, index.cell);
        let jobs = plimsoll_results::accelerators::jobs_path(&place, &study.key(index));
        StoredRun { index, receipt: Receipt::path(&place, &receipt.id), summary: receipt.summary, jobs }
    }
}
