//! The tables of a plan with accelerators: the rows of a run, the table of its jobs, and the tables of all runs.
//!
//! The axes of the sweep are the first columns. The jobs of the runs are copied to one table, run by run.

use std::path::{Path, PathBuf};

use plimsoll_rounds::simulate::{JobOutcome, RoundOutcome};
use plimsoll_rounds::table::TrainingJob;

use super::execute::StoredRun;
use super::study::{AcceleratorRunIndex, AcceleratorStudy};
use plimsoll_base::column::{Cell, Column, ColumnValue, TableRow};
use plimsoll_base::error::{Error, Result};
use plimsoll_base::units::Span;
use plimsoll_results::accelerators::{StoredRow, jobs_path};
use plimsoll_results::folder::check_links;
use plimsoll_results::provenance::Provenance;
use plimsoll_results::schema::{AcceleratorJob, AcceleratorRun, AcceleratorType, axis_column, fields};
use plimsoll_store::file::{Pending, WrittenFile};
use plimsoll_store::frame::Frame;
use plimsoll_store::table::{Constant, Field, TableWriter};

/// The rows of a run.
pub(super) struct RunRows {
    /// The row of the run.
    pub run: AcceleratorRun,
    /// The rows of its worker types.
    pub types: Vec<AcceleratorType>,
    /// The rows of its jobs.
    pub jobs: Vec<AcceleratorJob>,
}

impl RunRows {
    /// Creates the rows of a run from its jobs and its outcome.
    pub fn new(
        study: &AcceleratorStudy,
        index: AcceleratorRunIndex,
        jobs: &[TrainingJob],
        outcome: &RoundOutcome,
    ) -> RunRows {
        let (setup, of) = (&study.cells[index.cell].setup, study.key(index));
        let cluster = &setup.cluster;
        let summary = outcome.summary(cluster, setup.measured(index.run));
        let [_, _, p50, _, p90, _, p99] = summary.quantiles_s;
        let accelerators = cluster.capacity().iter().sum();
        let rho = jobs.iter().all(|job| job.exclusive.is_some()).then(|| outcome.rho(jobs, accelerators));
        let seconds = |micros: u64| Span(micros).seconds();
        let type_row = |(j, accelerators): (usize, u32)| AcceleratorType {
            of: of.clone(),
            worker_type: cluster.worker_types[j].clone(),
            accelerators: accelerators.into(),
            busy_s: [seconds(outcome.busy[j]), seconds(outcome.overhead[j])],
            utilisation: summary.utilisation[j],
        };
        let effective = outcome.effective_throughput();
        let job_row = |(job, result): (&TrainingJob, &JobOutcome)| AcceleratorJob {
            of: of.clone(),
            job: job.id.into(),
            job_type: job.job_type.clone(),
            times: [Some(result.arrival.0), result.start.map(|at| at.0), result.completion.map(|at| at.0)],
            ran: result.time.iter().map(|span| span.0).sum(),
            counts: [result.rounds.into(), result.preemptions.into(), result.leases.into()],
            paused: result.paused.0,
            effective: effective[job.id as usize],
        };
        // Jobs that arrive after the end of the run are absent.
        let arrived = jobs.iter().zip(&outcome.jobs).filter(|(_, result)| result.arrival <= outcome.end);
        RunRows {
            types: cluster.capacity().into_iter().enumerate().map(type_row).collect(),
            jobs: arrived.map(job_row).collect(),
            run: AcceleratorRun {
                of: of.clone(),
                jobs: summary.completed as u64,
                completion: [summary.mean_jct_s, summary.sd_jct_s],
                quantiles: [p50, p90, p99],
                makespan_s: summary.makespan_s,
                utilisation: summary.mean_utilisation,
                counts: [outcome.rounds, outcome.resets, summary.preemptions],
                lease_extension: summary.lease_extension,
                lost_s: summary.lost_s,
                rho: rho.map(|rho| [rho.worst, rho.above_1_05, rho.above_1_1]),
                unstable: summary.unstable,
                paused_s: summary.paused_s,
                envy: outcome.envy.map(|envy| [envy.mean, envy.share]),
                plan_gap: summary.plan_gap,
            },
        }
    }
}

/// A table with the axes of the sweep as its first columns.
struct AxisTable<'a> {
    study: &'a AcceleratorStudy,
    writer: TableWriter,
}

impl<'a> AxisTable<'a> {
    /// Creates the table of rows of type `R` at a path. Errors: as [`TableWriter::create`].
    fn create<R: TableRow>(study: &'a AcceleratorStudy, path: &Path, about: &Provenance) -> Result<AxisTable<'a>> {
        let own = fields::<R>();
        let axis = |(name, value): &(String, Constant)| Field::new(axis_column(name, &own), value.kind());
        let all = study.cells[0].columns().iter().map(axis).chain(own.iter().cloned()).collect();
        let writer = TableWriter::create(path, &[], all, about.pairs())?;
        Ok(AxisTable { study, writer })
    }

    /// Adds the row of a run in a cell. Errors: as [`TableWriter::push`].
    fn push<'b>(&mut self, cell: usize, row: impl Iterator<Item = Cell<'b>>) -> Result<()> {
        let columns = self.study.cells[cell].columns();
        let mut cells: Vec<Cell<'_>> = columns.iter().map(|(_, value)| value.cell()).collect();
        row.for_each(|cell| cells.push(cell));
        self.writer.push(cells)
    }

    /// Adds a row of a receipt. Errors: as [`TableWriter::push`].
    fn push_stored(&mut self, cell: usize, row: &StoredRow) -> Result<()> {
        self.push(cell, row.iter().map(|value| value.cell()))
    }
}

/// Returns the file of a table with rows of type `R` of all runs.
fn whole_path<R: TableRow>(folder: &Path) -> PathBuf {
    folder.join(format!("{}.parquet", R::TABLE))
}

/// Writes the table of the jobs of a run in the folder of its cell; the file still has a temporary name. Errors: [`Error::Output`].
pub(super) fn jobs_table(
    study: &AcceleratorStudy,
    place: &Path,
    index: AcceleratorRunIndex,
    rows: &[AcceleratorJob],
) -> Result<Pending> {
    let path = jobs_path(place, &study.key(index));
    check_links(place, &path)?;
    let mut table = AxisTable::create::<AcceleratorJob>(study, &path, &study.provenance_of(index))?;
    let columns: Vec<Column<ColumnValue<AcceleratorJob>>> = AcceleratorJob::columns();
    for row in rows {
        table.push(index.cell, columns.iter().map(|column| column.value.cell(row, 0)))?;
    }
    table.writer.complete()
}

/// Writes the tables of all runs; returns their files. Errors: [`Error::Output`]; a table of a run is damaged.
pub fn write_tables(study: &AcceleratorStudy, folder: &Path, runs: &[StoredRun]) -> Result<Vec<WrittenFile>> {
    let about = study.provenance();
    let mut whole = AxisTable::create::<AcceleratorRun>(study, &whole_path::<AcceleratorRun>(folder), &about)?;
    let mut types = AxisTable::create::<AcceleratorType>(study, &whole_path::<AcceleratorType>(folder), &about)?;
    let mut jobs = AxisTable::create::<AcceleratorJob>(study, &whole_path::<AcceleratorJob>(folder), &about)?;
    for run in runs {
        let cell = run.index.cell;
        whole.push_stored(cell, &run.summary.row)?;
        run.summary.types.iter().try_for_each(|row| types.push_stored(cell, row))?;
        let frame = jobs_of(run)?;
        let columns = frame.values_of_all()?;
        for at in 0..frame.rows() {
            jobs.writer.push(columns.iter().map(|column| column.cell(at)).collect::<Vec<_>>())?;
        }
    }
    [whole, types, jobs].into_iter().map(|table| table.writer.finish()).collect()
}

/// Reads the jobs of a run. Errors: the table is missing or damaged.
pub(super) fn jobs_of(run: &StoredRun) -> Result<Frame> {
    let gone = || Error::trace(&run.jobs, 0, "", "the table of a complete run is missing; run the plan again");
    Frame::open(&run.jobs)?.ok_or_else(gone)
}
