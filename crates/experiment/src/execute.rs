//! Executes a study: all its runs, on all cores.
//!
//! Each run is written when it ends. In a resumed study, complete runs are kept, and only the other runs are executed. Runs with the same
//! workload and seed are adjacent in the order of starts and share one supply, so that a workload is read or generated once for all
//! policies and cells. If the number of seeds depends on a precision, cells get more seeds in rounds until the precision is reached. The
//! results folder is locked, and files that do not belong to the complete study are removed at the end, except for shards.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use plimsoll_runs::{Key, Lease, SaveEvery, SavedStates, Supplies};
use rayon::prelude::*;

use super::plan::Plan;
use super::preflight::{check, workloads};
use super::study::folder;
use super::study::identity::{ids, is_repeatable, metadata, record};
use super::study::{Shard, Study};
use super::{Destination, RunSummary, Simulated, Supply, simulate};
use plimsoll_base::error::{Error, Result};
use plimsoll_base::units::Time;
use plimsoll_metrics::numbers::are;
use plimsoll_results::files::SAVED;
use plimsoll_results::folder::{check_output, of_cell};
use plimsoll_results::ownership;
use plimsoll_results::receipt::{Receipt, ReceiptState};
use plimsoll_store::lock::Lock;

/// Receives the progress of a study; its functions are called from several threads. Runs are numbered in the order of their starts.
pub trait Progress: Sync {
    /// Reports the number of runs to execute and of existing runs.
    fn planned(&self, runs: usize, there: usize);

    /// Reports the start of a run, with its number of tasks if known.
    fn started(&self, number: usize, tasks: Option<u64>);

    /// Reports the simulated time of a run and the tasks launched in it so far.
    ///
    /// Errors: an error ends the study, such as [`Error::Interrupted`].
    fn tick(&self, number: usize, now: Time, launched: u64) -> Result<()>;

    /// Reports that a workload was generated or opened; it is called each time.
    fn opened(&self, supply: &Supply);

    /// Reports that a run has ended.
    fn finished(&self, number: usize, run: &RunSummary);
}

/// The handling of existing results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Keeps complete runs of this plan and executes the others.
    Resume,
    /// Executes all runs.
    Restart,
    /// Executes no run; a missing run is an error.
    Gather,
}

/// The options of a study's execution.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The folder of the results; `None` writes nothing.
    pub folder: Option<&'a Path>,
    /// The number of threads.
    pub threads: usize,
    /// The handling of existing results.
    pub mode: Mode,
    /// The shard of the runs to execute; all runs if absent.
    pub shard: Option<Shard>,
    /// The largest memory for rows that runs share, in bytes. If it is 0, each run reads its trace itself. See [`super::ROW_MEMORY`].
    pub row_memory: u64,
    /// The interval between two saved states of a run; `None` saves none.
    pub save_every: Option<SaveEvery>,
}

/// The outcome of a study.
#[derive(Clone, Debug, Default)]
pub struct Done {
    /// The summaries of each cell, ordered by policy and then by seed, not by the time of their end; for a shard, the summaries of its own
    /// runs only.
    pub cells: Vec<Vec<RunSummary>>,
    /// The number of runs that were executed now.
    pub made: usize,
    /// The number of existing runs that were kept.
    pub kept: usize,
    /// The existing runs that were incomplete or damaged, with the reasons.
    pub broken: Vec<String>,
    /// The messages about saved states that were used, rejected or not written.
    pub saved_notes: Vec<String>,
    /// The policies of runs that save no state.
    pub unsaved: BTreeSet<String>,
    /// The folder's lock. Until it is dropped, no other process writes to the folder; if this process executes a shard, other shards may.
    pub lock: Option<Arc<Lock>>,
    /// The files that the plan reads, relative to its folder, with their BLAKE3 digests. The digest is `None` for an input that could be
    /// read only once.
    pub inputs: BTreeMap<String, Option<String>>,
}

/// A run, identified by the indices of its cell, its policy and its seed.
type RunIndex = (usize, usize, usize);

/// Executes all missing runs of a study.
///
/// Errors: [`Error::Mismatch`] if the folder has results of another plan, or if runs are missing ([`Mode::Gather`]); and the error that
/// ended a run. Completed runs keep their tables.
pub fn execute(study: &Study, request: &Request, progress: &dyn Progress) -> Result<Done> {
    let claimed = request.folder.map(|folder| claim(study, folder, request)).transpose()?;
    let (lock, replaces) = claimed.map_or((None, false), |(lock, replaces)| (Some(lock), replaces));
    let runner = Runner { replaced: Mutex::new((!replaces).then(Vec::new)), ..Runner::new(study, request, progress)? };
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(request.threads)
        .build()
        .map_err(|error| Error::output(request.folder.unwrap_or(Path::new(".")), error))?;
    if request.mode != Mode::Gather {
        pool.install(|| check(study))?;
    }
    let mut done: BTreeMap<RunIndex, Ended> = BTreeMap::new();
    let mut seeds: Vec<usize> = study.cells.iter().map(first_look).collect();
    runner.keep_supplies()?;
    loop {
        let wanted: Vec<RunIndex> = runner.runs(&seeds).into_iter().filter(|index| !done.contains_key(index)).collect();
        done.extend(pool.install(|| runner.round(&wanted, &seeds))?);
        let mut more = false;
        for (at, plan) in study.cells.iter().enumerate() {
            more |= runner.owned[at] && grow(plan, at, &done, &mut seeds[at]);
        }
        if !more {
            break;
        }
    }
    if let Some(folder) = request.folder {
        for (at, plan) in study.cells.iter().enumerate().filter(|(at, _)| runner.owned[*at]) {
            if done.keys().any(|(cell, ..)| *cell == at) {
                runner.describe(plan, folder, seeds[at])?;
            }
        }
        if request.shard.is_none() {
            ownership::remove_all_saved(folder)?;
            let kept: HashSet<PathBuf> = done.values().flat_map(|ended| ended.files.iter().cloned()).collect();
            let cells: Vec<&str> = study.cells.iter().map(|plan| plan.cell.as_str()).collect();
            ownership::remove_stale(folder, &cells, study.is_swept(), &kept)?;
            ownership::remove_empty(
                folder,
                &runner.replaced.lock().map_err(|_| Error::Interrupted)?.take().unwrap_or_default(),
            );
        }
    }
    let mut cells = vec![Vec::new(); study.cells.len()];
    for ((cell, ..), ended) in done {
        cells[cell].push(ended.summary);
    }
    let broken = runner.broken.into_inner().unwrap_or_default();
    let (saved_notes, unsaved) = runner.saved_notes.into_inner().unwrap_or_default();
    let (made, kept) = (runner.made.into_inner(), runner.kept.into_inner());
    Ok(Done { cells, made, kept, broken, saved_notes, unsaved, lock: lock.map(Arc::new), inputs: runner.inputs })
}

/// Locks a folder for a study. Also returns whether the folder has results of another plan, command or input, which a restart replaces.
/// Errors: the folder has foreign files or, without a restart, such results; another process writes to the folder.
fn claim(study: &Study, folder: &Path, request: &Request) -> Result<(Lock, bool)> {
    check_output("--output", folder)?;
    let lock = if request.shard.is_some() { Lock::shared(folder)? } else { Lock::alone(folder)? };
    ownership::check_owner(folder)?;
    match folder::check(study, folder) {
        Err(Error::Mismatch { .. }) if request.mode == Mode::Restart => Ok((lock, true)),
        checked => checked.map(|()| (lock, false)),
    }
}

/// Evaluates `of` for every cell, and adds the location in the plan to errors.
fn of_cells<T>(study: &Study, of: impl Fn(&Plan) -> Result<T>) -> Result<Vec<T>> {
    let cells = study.cells.iter().enumerate();
    cells.map(|(at, plan)| of(plan).map_err(|error| study.located(at, error))).collect()
}

/// Returns the cells that belong completely to a shard. Without shards, all cells do. If the number of seeds of a cell depends on results,
/// each cell is completely in one shard.
fn owned(study: &Study, ids: &[Vec<Vec<String>>], shard: Option<Shard>) -> Vec<bool> {
    let first: Vec<&str> = ids.iter().map(|ids| ids[0][0].as_str()).collect();
    match shard.filter(|_| study.cells.iter().any(|plan| plan.precision.is_some())) {
        Some(shard) => shard.own(&first),
        None => vec![true; study.cells.len()],
    }
}

/// Returns the number of seeds in the first round of a plan.
fn first_look(plan: &Plan) -> usize {
    plan.precision.as_ref().map_or(plan.seeds.len(), |precision| precision.next(0) as usize)
}

/// Gives a cell more seeds if its precision is not reached. Returns whether the cell got more seeds.
fn grow(plan: &Plan, cell: usize, done: &BTreeMap<RunIndex, Ended>, seeds: &mut usize) -> bool {
    let Some(precision) = plan.precision.as_ref().filter(|precision| (*seeds as u64) < precision.most) else {
        return false;
    };
    let reached = (0..plan.policies.len()).all(|policy| {
        let of = done.range((cell, policy, 0)..(cell, policy, *seeds));
        precision.reached(&of.map(|(_, ended)| ended.summary.number(&precision.metric)).collect::<Vec<_>>())
    });
    if !reached {
        *seeds = precision.next(*seeds as u64) as usize;
    }
    !reached
}

/// A run that has ended, in this execution or in an earlier one, with its files.
struct Ended {
    summary: RunSummary,
    files: Vec<PathBuf>,
}

struct Runner<'a> {
    study: &'a Study,
    request: &'a Request<'a>,
    progress: &'a dyn Progress,
    /// The metadata of all files, by cell.
    metadata: Vec<Vec<(String, String)>>,
    /// The ids of the runs, by cell, policy and seed.
    ids: Vec<Vec<Vec<String>>>,
    inputs: BTreeMap<String, Option<String>>,
    /// The workload index of each cell.
    workloads: Vec<usize>,
    /// The latest horizon of the cells with each workload.
    horizons: Vec<Time>,
    supplies: Supplies,
    /// Whether each cell belongs completely to this shard.
    owned: Vec<bool>,
    /// The removed files of the results that this study replaces; `None` until they are removed.
    replaced: Mutex<Option<Vec<PathBuf>>>,
    /// Whether the study's description has been written.
    described: Mutex<bool>,
    number: AtomicUsize,
    made: AtomicUsize,
    kept: AtomicUsize,
    broken: Mutex<Vec<String>>,
    /// The messages about saved states, and the policies without them, as in [`Done`].
    saved_notes: Mutex<(Vec<String>, BTreeSet<String>)>,
}

impl<'a> Runner<'a> {
    fn new(study: &'a Study, request: &'a Request, progress: &'a dyn Progress) -> Result<Runner<'a>> {
        let digests = &*study.files;
        let ids = of_cells(study, |plan| ids(plan, digests))?;
        let (workloads, firsts) = workloads(study);
        let mut horizons = vec![Time::ZERO; firsts.len()];
        for (plan, &workload) in study.cells.iter().zip(&workloads) {
            horizons[workload] = horizons[workload].max(plan.options.until.unwrap_or(Time::NEVER));
        }
        Ok(Runner {
            workloads,
            horizons,
            metadata: of_cells(study, |plan| metadata(plan, digests))?,
            inputs: record(study, digests)?,
            owned: owned(study, &ids, request.shard),
            ids,
            replaced: Mutex::new(Some(Vec::new())),
            described: Mutex::default(),
            study,
            request,
            progress,
            supplies: Supplies::new(request.row_memory),
            number: AtomicUsize::new(0),
            made: AtomicUsize::new(0),
            kept: AtomicUsize::new(0),
            broken: Mutex::default(),
            saved_notes: Mutex::default(),
        })
    }

    /// Returns the runs of this shard for these numbers of seeds, ordered by workload and seed, so that runs that share a supply are
    /// adjacent.
    fn runs(&self, seeds: &[usize]) -> Vec<RunIndex> {
        let mut runs: Vec<RunIndex> = Vec::new();
        for (cell, plan) in self.study.cells.iter().enumerate().filter(|(cell, _)| self.owned[*cell]) {
            runs.extend((0..plan.policies.len()).flat_map(|policy| (0..seeds[cell]).map(move |s| (cell, policy, s))));
        }
        let sequential = self.study.cells.iter().any(|plan| plan.precision.is_some());
        if let Some(shard) = self.request.shard.filter(|_| !sequential) {
            let ids: Vec<&str> = runs.iter().map(|&(cell, policy, s)| self.ids[cell][policy][s].as_str()).collect();
            let own = shard.own(&ids);
            let mut own = own.into_iter();
            runs.retain(|_| own.next().unwrap_or(false));
        }
        runs.sort_by_key(|&(cell, policy, seed)| (self.key(cell, seed), cell, policy, seed));
        runs
    }

    /// Keeps workloads without seeds until the end of the study if later rounds may need them: announces a run that never ends. Errors:
    /// [`Error::Interrupted`].
    fn keep_supplies(&self) -> Result<()> {
        let sequential = |plan: &Plan| plan.precision.is_some() && !plan.workload.is_seeded();
        let cells = self.study.cells.iter().enumerate().filter(|(_, plan)| sequential(plan));
        let keys: HashSet<Key> = cells.map(|(cell, _)| self.key(cell, 0)).collect();
        keys.into_iter().try_for_each(|key| self.supplies.announce(key))
    }

    /// Executes the missing runs among `wanted`. Returns the ended runs, including the existing ones.
    fn round(&self, wanted: &[RunIndex], seeds: &[usize]) -> Result<Vec<(RunIndex, Ended)>> {
        let found: Vec<Option<Ended>> = wanted.par_iter().map(|&index| self.find(index)).collect();
        let there = found.iter().flatten().count();
        self.kept.fetch_add(there, Ordering::Relaxed);
        self.progress.planned(wanted.len() - there, there);
        let mut ended = Vec::new();
        let mut open = Vec::new();
        for (index, found) in wanted.iter().zip(found) {
            match found {
                Some(found) => ended.push((*index, found)),
                None => open.push(*index),
            }
        }
        if self.request.mode == Mode::Gather && !open.is_empty() {
            return Err(self.lacking(&open));
        }
        open.iter().try_for_each(|&(cell, _, seed)| self.supplies.announce(self.key(cell, seed)))?;
        // The bridge starts runs in this order on any number of threads, so that few workloads are in memory at one time.
        let made = open.iter().par_bridge().map(|&index| Ok((index, self.run(index, seeds)?)));
        ended.extend(made.collect::<Result<Vec<_>>>()?);
        Ok(ended)
    }

    fn lacking(&self, open: &[RunIndex]) -> Error {
        let name = |&(cell, policy, seed): &RunIndex| {
            let plan = &self.study.cells[cell];
            let of = if plan.cell.is_empty() { String::new() } else { format!("{}, ", plan.cell) };
            format!("{of}{} run {seed}", plan.policies[policy].name)
        };
        missing_runs(open, name)
    }

    fn folder(&self, cell: usize) -> Option<PathBuf> {
        self.request.folder.map(|folder| of_cell(folder, &self.study.cells[cell].cell))
    }

    /// Returns an existing complete run. A damaged run is recorded in `broken`.
    fn find(&self, (cell, policy, seed): RunIndex) -> Option<Ended> {
        let folder = self.folder(cell)?;
        if self.request.mode == Mode::Restart || !is_repeatable(&self.study.cells[cell]) {
            return None;
        }
        let id = &self.ids[cell][policy][seed];
        let plan = &self.study.cells[cell];
        let name = &plan.policies[policy].name;
        let why = match Receipt::find(&folder, id) {
            ReceiptState::Whole(receipt) if receipt.is_of(name, seed as u64) => {
                return Some(Ended::from_receipt(&folder, *receipt));
            }
            ReceiptState::Whole(_) => "its receipt belongs to another run".to_owned(),
            ReceiptState::Missing => return None,
            ReceiptState::Broken(why) => why,
        };
        if let Ok(mut broken) = self.broken.lock() {
            broken.push(format!("{name} run {seed} is broken: {why}"));
        }
        None
    }

    fn run(&self, (cell, policy, seed): RunIndex, seeds: &[usize]) -> Result<Ended> {
        let plan = &self.study.cells[cell];
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        let supply = self.supply(cell, seed, number)?;
        let name = plan.workload.name();
        let simulation = plan.simulation(&supply, &name);
        let folder = self.folder(cell);
        let id = &self.ids[cell][policy][seed];
        let to = Destination {
            folder: folder.clone(),
            policy: plan.policies[policy].name.clone(),
            run: seed as u64,
            seed: plan.workload.is_seeded().then_some(plan.seeds[seed]),
            axes: plan.axes(),
            tables: plan.tables.clone(),
            metadata: self.metadata[cell].clone(),
            saved: folder.as_ref().filter(|_| is_repeatable(plan)).and_then(|folder| self.saved(folder, id)),
        };
        self.progress.started(number, supply.tasks());
        let shared = folder.as_ref().filter(|_| self.request.shard.is_some());
        let _alone = shared.map(|folder| Lock::run(folder, id)).transpose()?;
        let mut heartbeat = |now: Time, launched: u64| self.progress.tick(number, now, launched);
        if let (Mode::Restart, Some(saved)) = (self.request.mode, &to.saved) {
            saved.remove()?;
        }
        let simulated = simulate(&simulation, &plan.policies[policy], &to, &mut heartbeat)
            .map_err(|error| self.study.located(cell, error))?;
        if to.saved.is_some() {
            self.note_saved(&to, &simulated);
        }
        let Simulated { summary, tables, .. } = simulated;
        let ended = match &folder {
            None => Ended { summary, files: Vec::new() },
            Some(folder) => {
                self.study.files.unchanged(plan)?;
                self.replace()?;
                Ended::from_receipt(folder, Receipt::write(folder, id, tables, summary)?)
            }
        };
        if let Some(saved) = &to.saved {
            saved.remove()?;
        }
        // The description is written only after a run has ended, because a plan that fails before must not describe the results of an
        // earlier plan as its own.
        if let Some(folder) = self.request.folder {
            self.describe(plan, folder, seeds[cell])?;
        }
        self.made.fetch_add(1, Ordering::Relaxed);
        self.progress.finished(number, &ended.summary);
        Ok(ended)
    }

    /// Returns the place of the saved states of a run, if the run saves any.
    fn saved(&self, folder: &Path, id: &str) -> Option<SavedStates> {
        let (results, id) = (folder.to_owned(), id.to_owned());
        let folder = folder.join(SAVED).join(&id);
        self.request.save_every.map(|every| SavedStates { results, folder, id, every })
    }

    /// Records how a run used and saved its state.
    fn note_saved(&self, to: &Destination, simulated: &Simulated) {
        let Simulated { continued, rejected, unsaved, savable, .. } = simulated;
        let Ok(mut notes) = self.saved_notes.lock() else { return };
        let run = format!("{} run {}", to.policy, to.run);
        let continued = continued.map(|at| format!("{run} continued at {} s, where its state was saved", at.seconds()));
        let rejected =
            rejected.as_ref().map(|why| format!("the saved state of {run} was not used ({why}); it began again"));
        let unsaved = unsaved.as_ref().map(|why| format!("a state of {run} could not be saved: {why}"));
        notes.0.extend([continued, rejected, unsaved].into_iter().flatten());
        if !savable {
            notes.1.insert(to.policy.clone());
        }
    }

    /// Removes the results that this study replaces. It is called when the first run is complete, so that a restart that fails or is
    /// interrupted earlier leaves the old results unchanged.
    fn replace(&self) -> Result<()> {
        let mut replaced = self.replaced.lock().map_err(|_| Error::Interrupted)?;
        if let (None, Some(folder)) = (&*replaced, self.request.folder) {
            *replaced = Some(ownership::clear(folder)?);
        }
        Ok(())
    }

    fn describe(&self, plan: &Plan, folder: &Path, seeds: usize) -> Result<()> {
        // The description of the study is written once, because this takes long for a large study.
        if self.study.is_swept()
            && let Ok(mut described) = self.described.lock()
            && !*described
        {
            folder::described(self.study).write(folder)?;
            *described = true;
        }
        folder::describe(plan, &of_cell(folder, &plan.cell), seeds, &self.study.files)
    }

    /// Returns the key of a cell's workload under a seed.
    fn key(&self, cell: usize, seed: usize) -> Key {
        let plan = &self.study.cells[cell];
        (self.workloads[cell], if plan.workload.is_seeded() { plan.seeds[seed] } else { 0 })
    }

    /// Returns the workload of a seed for the run with this number, shared by all runs with the same workload.
    fn supply(&self, cell: usize, seed: usize, number: usize) -> Result<Lease<'_>> {
        let (plan, key) = (&self.study.cells[cell], self.key(cell, seed));
        let make = || supply(plan, key.1, self.study, self.progress);
        let mut heartbeat = || self.progress.tick(number, Time::ZERO, 0);
        self.supplies
            .get(key, self.horizons[key.0], make, &mut heartbeat)
            .map_err(|error| self.study.located(cell, error))
    }
}

impl Ended {
    fn from_receipt(folder: &Path, receipt: Receipt) -> Ended {
        let mut files: Vec<PathBuf> = receipt.tables.keys().map(|table| folder.join(table)).collect();
        files.push(Receipt::path(folder, &receipt.id));
        Ended { summary: receipt.summary, files }
    }
}

fn supply(plan: &Plan, seed: u64, study: &Study, progress: &dyn Progress) -> Result<Supply> {
    let supply = plan.workload.supply_from(seed, &|path| study.files.input(path))?;
    progress.opened(&supply);
    Ok(supply)
}

/// Returns the error for missing runs, with the names of the first ones.
pub(crate) fn missing_runs<R>(runs: &[R], name: impl Fn(&R) -> String) -> Error {
    let shown: Vec<String> = runs.iter().take(5).map(name).collect();
    let more = if runs.len() > shown.len() { ", .." } else { "" };
    let problem = format!(
        "{} missing or broken ({}{more}); run the plan again to complete them",
        are(runs.len() as u64, "run"),
        shown.join("; ")
    );
    Error::Mismatch { problem }
}
