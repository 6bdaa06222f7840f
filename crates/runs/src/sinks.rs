//! The tables of one run.
//!
//! [`Sinks`] holds a writer for each requested table that is written during the run, and ignores rows of other tables. [`Sinks::wants`]
//! reports whether the values of a table must be computed, even if there is no folder to write to.

use std::collections::HashSet;
use std::path::PathBuf;

use crate::saved::SavedStates;
use plimsoll_base::checkpoint::{Checkpoint, Visitor};
use plimsoll_base::column::{Kind, TableRow};
use plimsoll_base::error::{Error, Result};
use plimsoll_base::names::Listed;
use plimsoll_base::units::{Dim, Time, UserId, trim_float};
use plimsoll_metrics::{GridPoint, Holding, Sample};
use plimsoll_policies::{GroupLevel, GroupNode, GroupTree};
use plimsoll_results::folder::check_links;
use plimsoll_results::schema::{Decided, JobRow, LevelOf, OwnColumn, ShareRow, Table, Task, Used, Writer, axis_column};
use plimsoll_sim::books::Books;
use plimsoll_sim::cluster::DevicePart;
use plimsoll_sim::record::{Decision, Fate, JobRecord, Stuck, StuckRecord, TaskRecord};
use plimsoll_sim::workload::NameList;
use plimsoll_store::file::Pending;
use plimsoll_store::table::{Constant, Field, TableWriter};

/// The destination and the metadata of the tables of one run.
#[derive(Clone, Debug)]
pub struct Destination {
    /// The experiment's folder; if `None`, the values of the tables are computed but not written.
    pub folder: Option<PathBuf>,
    /// The policy's name.
    pub policy: String,
    /// The number of the run among those of the policy.
    pub run: u64,
    /// The seed of the workload; `None` for a trace.
    pub seed: Option<u64>,
    /// Columns and values of the axes of a sweep.
    pub axes: Vec<(String, Constant)>,
    /// The requested tables.
    pub tables: Vec<Table>,
    /// Key-value metadata of every file.
    pub metadata: Vec<(String, String)>,
    /// The saved states of the run, if it has any.
    pub saved: Option<SavedStates>,
}

impl Destination {
    /// Returns the path of a table.
    pub fn path(&self, table: Table) -> Option<PathBuf> {
        self.folder.as_ref().map(|folder| table.path(folder, &self.policy, self.run))
    }

    /// Opens a requested table that is written row by row.
    pub(super) fn open<R: TableRow>(&self, dims: &[Dim]) -> Result<Option<Writer<R>>> {
        Ok(self.table(Table::for_row::<R>(), dims, &[])?.map(|table| Writer::new(table, dims.len())))
    }

    /// Opens a table if it is requested; `own` are additional columns of the table `runs`.
    pub(super) fn table(&self, table: Table, dims: &[Dim], own: &[OwnColumn]) -> Result<Option<TableWriter>> {
        let Some(path) = self.path(table).filter(|_| self.tables.contains(&table)) else { return Ok(None) };
        self.folder.iter().try_for_each(|folder| check_links(folder, &path))?;
        let (constants, fields) = columns(table, &self.policy, (self.run, self.seed), &self.axes, dims, own)?;
        let mut metadata = self.metadata.clone();
        let resources: Vec<String> = dims.iter().map(Dim::column).collect();
        metadata.push(("plimsoll.resources".to_owned(), serde_json::json!(resources).to_string()));
        let writer = TableWriter::create(&path, &constants, fields, &metadata)?;
        let kept = self.saved.as_ref().map(|saved| saved.table(table));
        Ok(Some(writer.beside(rayon::current_num_threads() > 1).kept_at(kept)))
    }
}

/// Returns the columns of a table for the run of a policy with this number and this seed. The constant columns, which include the axes of
/// a sweep, are separate; `own` are additional columns of the table `runs`. Errors: [`Error::Mismatch`] for a duplicate name.
pub fn columns(
    table: Table,
    policy: &str,
    (run, seed): (u64, Option<u64>),
    axes: &[(String, Constant)],
    dims: &[Dim],
    own: &[OwnColumn],
) -> Result<(Vec<(String, Constant)>, Vec<Field>)> {
    let mut fields = table.fields(dims);
    if table == Table::Runs {
        fields.extend(own.iter().map(|column| Field::new(column.name.clone(), Kind::Float)));
    }
    let int = |value: u64| Constant::Int(i64::try_from(value).unwrap_or(i64::MAX));
    let mut constants = vec![("policy".to_owned(), Constant::Text(policy.to_owned()))];
    constants.extend([("run".to_owned(), int(run)), ("seed".to_owned(), seed.map_or(Constant::NoInt, int))]);
    constants.extend(axes.iter().map(|(axis, value)| (axis_column(axis, &fields), value.clone())));
    let mut seen = HashSet::new();
    let mut names = constants.iter().map(|(name, _)| name).chain(fields.iter().map(|field| &field.name));
    if let Some(twice) = names.find(|name| !seen.insert(*name)) {
        let problem = format!("two columns of the table '{}' would be named '{twice}'", table.name());
        return Err(Error::Mismatch { problem });
    }
    Ok((constants, fields))
}

/// The open tables of one run.
pub(super) struct Sinks {
    dims: Vec<Dim>,
    jobs: Option<Writer<JobRow<'static>>>,
    tasks: Option<Writer<Task<'static>>>,
    usage: Option<Writer<Used<'static>>>,
    fairness: Option<Writer<GridPoint<'static>>>,
    shares: Option<Writer<ShareRow<'static>>>,
    levels: Option<Writer<LevelOf<'static>>>,
    decisions: Option<Writer<Decided<'static>>>,
    /// A bit mask of the tables to compute: the written tables and the series.
    wanted: u32,
}

impl Sinks {
    /// Opens the requested tables that are written during the run. The table `levels` is opened only for a policy with groups.
    pub fn open(to: &Destination, dims: &[Dim], groups: bool) -> Result<Sinks> {
        // The order of users in the series affects the rounding of means, which must not depend on whether there is a folder. The table
        // of demands depends on the workload alone, so only the first run writes it.
        let wanted = to.tables.iter().filter(|&&table| match table {
            Table::Fairness | Table::Shares => true,
            Table::Demands => to.folder.is_some() && to.run == 0,
            _ => to.folder.is_some(),
        });
        Ok(Sinks {
            dims: dims.to_vec(),
            jobs: to.open(dims)?,
            tasks: to.open(dims)?,
            usage: to.open(dims)?,
            fairness: to.open(dims)?,
            shares: to.open(dims)?,
            levels: if groups { to.open(dims)? } else { None },
            decisions: to.open(dims)?,
            wanted: wanted.fold(0, |wanted, table| wanted | 1 << *table as u32),
        })
    }

    /// Returns whether the values of a table must be computed.
    pub fn wants(&self, table: Table) -> bool {
        self.wanted & 1 << table as u32 != 0
    }

    pub fn wants_series(&self) -> bool {
        self.wants(Table::Fairness) || self.wants(Table::Shares)
    }

    pub fn job(&mut self, name: &str, user: Listed, record: &JobRecord) -> Result<()> {
        self.jobs.iter_mut().try_for_each(|table| table.push(&JobRow { name, user, record }))
    }

    pub fn tasks(&mut self, job: &str, user: Listed, tasks: &TaskRecord) -> Result<()> {
        let Some(table) = &mut self.tasks else { return Ok(()) };
        let devices = devices(tasks.devices, &self.dims);
        let outcome = fate_name(tasks.fate);
        (tasks.first..tasks.first + u64::from(tasks.count)).try_for_each(|number| {
            table.push(&Task {
                job,
                number,
                attempt: tasks.attempt,
                user,
                machine: tasks.machine.map(|machine| machine.0),
                devices: devices.as_deref(),
                release: Some(tasks.release),
                start: Some(tasks.start),
                finish: tasks.finish,
                outcome,
            })
        })
    }

    pub fn stuck(&mut self, job: &str, user: Listed, stuck: &StuckRecord) -> Result<()> {
        let Some(table) = &mut self.tasks else { return Ok(()) };
        (stuck.first..stuck.first + stuck.tasks).try_for_each(|number| {
            table.push(&Task {
                job,
                number,
                attempt: stuck.attempt,
                user,
                machine: None,
                devices: None,
                release: stuck.release,
                start: None,
                finish: None,
                outcome: outcome(stuck.why),
            })
        })
    }

    /// Writes a scheduling decision about a job's next task; `groups` are those of the policy.
    pub fn decision(
        &mut self,
        (job, user): (&str, Listed),
        share: f64,
        decision: &Decision,
        groups: Option<&GroupTree>,
    ) -> Result<()> {
        let Some(table) = &mut self.decisions else { return Ok(()) };
        let behind = decision.behind.map(|first| {
            let mut name = String::new();
            first.render(&mut name);
            name
        });
        let (rank, behind) = (&decision.rank.text(), behind.as_deref());
        table.push(&Decided { decision, job, behind, user, share, rank, groups, dims: &self.dims })
    }

    pub fn usage(&mut self, at: Time, user: UserId, names: &NameList, books: &Books) -> Result<()> {
        let Some(table) = &mut self.usage else { return Ok(()) };
        table.push(&Used { at, user, name: names.listed(user.index()), books })
    }

    pub fn fairness(&mut self, at: Time, sample: &Sample, books: &Books) -> Result<()> {
        self.fairness.iter_mut().try_for_each(|table| table.push(&GridPoint { at, sample, books }))
    }

    pub fn shares(
        &mut self,
        at: Time,
        sample: &Sample,
        active: &[UserId],
        names: &NameList,
        books: &Books,
    ) -> Result<()> {
        let Some(table) = &mut self.shares else { return Ok(()) };
        active.iter().zip(&sample.shares).zip(&sample.fluid).try_for_each(|((&user, &share), &fluid)| {
            let (name, waiting) = (names.listed(user.index()), books.waiting(user));
            table.push(&ShareRow { at, name, share, waiting, fluid })
        })
    }

    /// Writes the quota of a group in resource `d`, with its usage and its request.
    pub fn level(&mut self, at: Time, about: &GroupNode, d: usize, level: &GroupLevel, held: Holding) -> Result<()> {
        let Some(table) = &mut self.levels else { return Ok(()) };
        table.push(&LevelOf { at, about, dim: &self.dims[d], level, held })
    }

    /// Completes the tables. The tables still have temporary names.
    pub fn complete(self) -> Result<Vec<Pending>> {
        let done = [
            self.jobs.map(Writer::complete),
            self.tasks.map(Writer::complete),
            self.usage.map(Writer::complete),
            self.fairness.map(Writer::complete),
            self.shares.map(Writer::complete),
            self.levels.map(Writer::complete),
            self.decisions.map(Writer::complete),
        ];
        done.into_iter().flatten().collect()
    }
}

impl Checkpoint for Sinks {
    fn visit(&mut self, visitor: &mut Visitor) -> Result<()> {
        let Sinks { dims: _, jobs, tasks, usage, fairness, shares, levels, decisions, wanted: _ } = self;
        visitor.option(jobs.as_mut())?;
        visitor.option(tasks.as_mut())?;
        visitor.option(usage.as_mut())?;
        visitor.option(fairness.as_mut())?;
        visitor.option(shares.as_mut())?;
        visitor.option(levels.as_mut())?;
        visitor.option(decisions.as_mut())
    }
}

/// Returns the outcome of tasks that never started, as in the `tasks` table.
fn outcome(why: Stuck) -> &'static str {
    match why {
        Stuck::TooLarge => "too large",
        Stuck::Deadlocked => "deadlocked",
        Stuck::Starved => "starved",
        Stuck::Cut => "waiting",
    }
}

/// Formats devices: `gpu:0;gpu:1`, and `gpu:2=0.46` for a part of one. Returns `None` if there are none.
fn devices(held: &[DevicePart], dims: &[Dim]) -> Option<String> {
    let one = |held: &DevicePart| {
        let whole = format!("{}:{}", dims[usize::from(held.dim)].name, held.device);
        let part = held.milli < 1000;
        if part { format!("{whole}={}", trim_float(f64::from(held.milli) / 1000.0)) } else { whole }
    };
    (!held.is_empty()).then(|| held.iter().map(one).collect::<Vec<_>>().join(";"))
}

/// Returns the name of a fate in tables.
pub(super) fn fate_name(fate: Fate) -> &'static str {
    match fate {
        Fate::Finished => "finished",
        Fate::Running => "running",
        Fate::Reclaimed => "reclaimed",
        Fate::Preempted => "preempted",
        Fate::MachineFailed => "machine-failed",
        Fate::Lost => "lost",
        Fate::Failed => "failed",
        Fate::GivenUp => "given-up",
        Fate::Superseded => "superseded",
        Fate::Revoked => "revoked",
        Fate::Moved => "moved",
    }
}
