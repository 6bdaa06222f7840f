//! The tables of one run, each written if it is wanted.

use std::collections::HashSet;
use std::path::PathBuf;

use super::groups::RATIO_ONE;
use super::sample::Sample;
use crate::books::Books;
use crate::cluster::Held;
use crate::error::{Error, Result};
use crate::metrics::Holding;
use crate::output::file::Pending;
use crate::output::folder::check_links;
use crate::output::schema::{Table, axis_column};
use crate::output::table::{Cell, Constant, Field, TableWriter};
use crate::policy::{GroupAbout, GroupLevel, GroupTree, Reason};
use crate::record::{Decision, Fate, JobRecord, Stuck, StuckRecord, TaskRecord, Turn};
use crate::units::{Dim, Time, UserId, trim_float};
use crate::workload::NameList;

/// Where and how the tables of one run are written.
#[derive(Clone, Debug)]
pub struct Destination {
    /// The experiment's folder; with `None` the tables' values are computed, and written nowhere.
    pub folder: Option<PathBuf>,
    /// The policy's name.
    pub policy: String,
    /// The run's number among those of the policy.
    pub run: u64,
    /// The seed of its workload; `None` for a trace.
    pub seed: Option<u64>,
    /// Columns and values of the axes of a sweep.
    pub axes: Vec<(String, Constant)>,
    /// Which tables are wanted.
    pub tables: Vec<Table>,
    /// Key-value metadata of every file.
    pub metadata: Vec<(String, String)>,
}

impl Destination {
    /// The file of a table.
    pub fn path(&self, table: Table) -> Option<PathBuf> {
        self.folder.as_ref().map(|folder| table.path(folder, &self.policy, self.run))
    }

    /// Opens a table if it is wanted.
    pub fn open(&self, table: Table, dims: &[Dim]) -> Result<Option<TableWriter>> {
        let Some(path) = self.path(table).filter(|_| self.tables.contains(&table)) else { return Ok(None) };
        self.folder.iter().try_for_each(|folder| check_links(folder, &path))?;
        let (constants, fields) = columns(table, &self.policy, (self.run, self.seed), &self.axes, dims)?;
        let mut metadata = self.metadata.clone();
        let resources: Vec<String> = dims.iter().map(Dim::column).collect();
        metadata.push(("plimsoll.resources".to_owned(), serde_json::json!(resources).to_string()));
        TableWriter::create(&path, &constants, fields, &metadata).map(Some)
    }
}

/// The columns of a table in a run of a policy with this number and seed: those that are the same in all rows, axes of a
/// sweep among them, and the others. Errors: [`Error::Mismatch`] for two of one name.
pub(super) fn columns(
    table: Table,
    policy: &str,
    (run, seed): (u64, Option<u64>),
    axes: &[(String, Constant)],
    dims: &[Dim],
) -> Result<(Vec<(String, Constant)>, Vec<Field>)> {
    let fields = table.fields(dims);
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
    jobs: Option<TableWriter>,
    tasks: Option<TableWriter>,
    usage: Option<TableWriter>,
    fairness: Option<TableWriter>,
    shares: Option<TableWriter>,
    levels: Option<TableWriter>,
    decisions: Option<TableWriter>,
    /// The tables with values that are computed, written or not: a bit a table.
    wanted: u32,
}

impl Sinks {
    /// Opens the tables that are written while the run goes on; that of levels for a policy with groups.
    pub fn open(to: &Destination, dims: &[Dim], groups: bool) -> Result<Sinks> {
        // The demands are the workload's, the same in every run.
        let wanted = to.tables.iter().filter(|&&table| table != Table::Demands || to.run == 0);
        Ok(Sinks {
            dims: dims.to_vec(),
            jobs: to.open(Table::Jobs, dims)?,
            tasks: to.open(Table::Tasks, dims)?,
            usage: to.open(Table::Usage, dims)?,
            fairness: to.open(Table::Fairness, dims)?,
            shares: to.open(Table::Shares, dims)?,
            levels: if groups { to.open(Table::Levels, dims)? } else { None },
            decisions: to.open(Table::Decisions, dims)?,
            wanted: wanted.fold(0, |wanted, table| wanted | 1 << *table as u32),
        })
    }

    /// Whether a table's values are to be computed.
    pub fn wants(&self, table: Table) -> bool {
        self.wanted & 1 << table as u32 != 0
    }

    pub fn wants_series(&self) -> bool {
        self.wants(Table::Fairness) || self.wants(Table::Shares)
    }

    pub fn job(&mut self, name: &str, user: &str, job: &JobRecord) -> Result<()> {
        let Some(table) = &mut self.jobs else { return Ok(()) };
        table.push(&[
            Cell::Text(name),
            Cell::Text(user),
            job.tasks.into(),
            job.submit.0.into(),
            job.start.map(|time| time.0).into(),
            job.finish.map(|time| time.0).into(),
            job.work.into(),
            job.ideal.0.into(),
        ])
    }

    pub fn tasks(&mut self, name: &str, user: &str, tasks: &TaskRecord) -> Result<()> {
        let Some(table) = &mut self.tasks else { return Ok(()) };
        let devices = devices(tasks.devices, &self.dims);
        for number in tasks.first..tasks.first + u64::from(tasks.count) {
            table.push(&[
                Cell::Text(name),
                number.into(),
                u64::from(tasks.attempt).into(),
                Cell::Text(user),
                tasks.machine.map(|machine| u64::from(machine.0)).into(),
                devices.as_deref().map_or(Cell::Null, Cell::Text),
                tasks.release.0.into(),
                tasks.start.0.into(),
                tasks.finish.map(|time| time.0).into(),
                Cell::Text(match tasks.fate {
                    Fate::Finished => "finished",
                    Fate::Running => "running",
                    Fate::Reclaimed => "reclaimed",
                    Fate::Preempted => "preempted",
                    Fate::MachineFailed => "machine-failed",
                    Fate::Lost => "lost",
                }),
            ])?;
        }
        Ok(())
    }

    pub fn stuck(&mut self, name: &str, user: &str, stuck: &StuckRecord) -> Result<()> {
        let Some(table) = &mut self.tasks else { return Ok(()) };
        for number in stuck.first..stuck.first + stuck.tasks {
            table.push(&[
                Cell::Text(name),
                number.into(),
                u64::from(stuck.attempt).into(),
                Cell::Text(user),
                Cell::Null,
                Cell::Null,
                stuck.release.map(|time| time.0).into(),
                Cell::Null,
                Cell::Null,
                Cell::Text(outcome(stuck.why)),
            ])?;
        }
        Ok(())
    }

    /// A turn of a job's next task; `groups` are the policy's.
    pub fn decision(
        &mut self,
        names: [&str; 2],
        share: f64,
        decision: &Decision,
        groups: Option<&GroupTree>,
    ) -> Result<()> {
        let Some(table) = &mut self.decisions else { return Ok(()) };
        let [name, user] = names;
        let (turn, machine, reason) = match decision.turn {
            Turn::Launched(machine) => ("launched", machine, None),
            Turn::Blocked => ("blocked", None, None),
            Turn::NotAdmitted(reason) => ("not admitted", None, Some(reason)),
        };
        let because: [Cell; 4] = match reason {
            None => [Cell::Null; 4],
            Some(Reason::Rule(words)) => [Cell::Text(words), Cell::Null, Cell::Null, Cell::Null],
            Some(Reason::Quota { group, resource, short }) => {
                let group = groups.and_then(|groups| groups.groups.get(group as usize));
                let dim = &self.dims[usize::from(resource)];
                let group = group.map_or(Cell::Null, |group| Cell::Text(&group.name));
                [Cell::Text("quota"), group, Cell::Text(&dim.name), (short as f64 / dim.unit.scale() as f64).into()]
            }
        };
        let rank = decision.rank.text();
        table.push(&[
            decision.now.0.into(),
            Cell::Text(user),
            Cell::Text(name),
            decision.task.into(),
            Cell::Text(turn),
            machine.map(|machine| u64::from(machine.0)).into(),
            share.into(),
            Cell::Text(&rank),
            because[0],
            because[1],
            because[2],
            because[3],
        ])
    }

    pub fn usage(&mut self, now: Time, user: UserId, names: &NameList, books: &Books) -> Result<()> {
        let Some(table) = &mut self.usage else { return Ok(()) };
        let mut row: Vec<Cell> = vec![now.0.into(), Cell::Text(names.get(user.index()))];
        row.extend([books.running(user), books.waiting(user)].map(Cell::from));
        row.extend(books.used(user).iter().map(|&used| Cell::from(used)));
        table.push(&row)
    }

    pub fn fairness(&mut self, at: Time, sample: &Sample, books: &Books) -> Result<()> {
        let Some(table) = &mut self.fairness else { return Ok(()) };
        let (capacity, dims) = (books.capacity(), 0..self.dims.len());
        let plain = books.lens_is_plain();
        let share = |amount: u64, d: usize| (capacity.0[d] > 0).then(|| amount as f64 / capacity.0[d] as f64);
        let mut row: Vec<Cell> =
            vec![at.0.into(), u64::from(sample.active).into(), u64::from(sample.backlogged).into()];
        row.extend([books.total_running(), books.total_waiting()].map(Cell::from));
        row.extend(dims.clone().map(|d| Cell::from(share(books.total_held().0[d], d).filter(|_| plain))));
        row.extend(dims.clone().map(|d| Cell::from(share(books.total_used().0[d], d))));
        row.extend(dims.map(|d| Cell::from(sample.stranded.map(|stranded| stranded[d]))));
        row.extend([sample.jain, sample.gini, sample.gap, sample.ratio, sample.envy_max].map(Cell::from));
        row.extend([sample.envy_count, sample.envy_unbounded].map(Cell::from));
        row.extend::<[Cell; 2]>([sample.incentive_min.into(), sample.incentive_below.into()]);
        let (mean, max) = (sample.deviation.map(|d| d.mean), sample.deviation.map(|d| d.max));
        row.extend([mean, max, sample.task_max].map(Cell::from));
        row.push(sample.theorem7_broken.map(u64::from).into());
        table.push(&row)
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
        for ((&user, &share), &fluid) in active.iter().zip(&sample.shares).zip(&sample.fluid) {
            let name = Cell::Text(names.get(user.index()));
            table.push(&[at.0.into(), name, share.into(), books.waiting(user).into(), fluid.into()])?;
        }
        Ok(())
    }

    /// The quota of a group in resource `d`, its use and its request, in the unit people write.
    pub fn level(&mut self, at: Time, group: &GroupAbout, d: usize, level: &GroupLevel, held: Holding) -> Result<()> {
        let Some(table) = &mut self.levels else { return Ok(()) };
        let dim = &self.dims[d];
        let scale = dim.unit.scale() as f64;
        let amount = |base: u64| Cell::Float(base as f64 / scale);
        table.push(&[
            at.0.into(),
            Cell::Text(&group.name),
            group.label.as_deref().into(),
            Cell::Text(&dim.name),
            amount(level.total),
            amount(level.runtime),
            amount(held.used),
            (held.request as f64 / scale).into(),
            (level.level.to_f64() * RATIO_ONE / scale).into(),
            amount(level.base),
            amount(level.reach),
        ])
    }

    /// Completes the tables.
    pub fn complete(self) -> Result<Vec<Pending>> {
        [self.jobs, self.tasks, self.usage, self.fairness, self.shares, self.levels, self.decisions]
            .into_iter()
            .flatten()
            .map(TableWriter::complete)
            .collect()
    }
}

/// The outcome of tasks that never started, as in the tasks table.
fn outcome(why: Stuck) -> &'static str {
    match why {
        Stuck::TooLarge => "too large",
        Stuck::Deadlocked => "deadlocked",
        Stuck::Starved => "starved",
        Stuck::Cut => "waiting",
    }
}

/// Devices as text: `gpu:0;gpu:1`, and `gpu:2=0.46` for a part of one. Nothing if there are none.
fn devices(held: &[Held], dims: &[Dim]) -> Option<String> {
    let one = |held: &Held| {
        let whole = format!("{}:{}", dims[usize::from(held.dim)].name, held.device);
        let part = held.milli < 1000;
        if part { format!("{whole}={}", trim_float(f64::from(held.milli) / 1000.0)) } else { whole }
    };
    (!held.is_empty()).then(|| held.iter().map(one).collect::<Vec<_>>().join(";"))
}
