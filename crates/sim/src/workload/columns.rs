//! The columns of a canonical trace, CSV or Parquet, found by their names.
//!
//! A header must have a job, a user, a submit time, a duration and at least one resource, each once; the order is free. Resources other
//! than the usual ones must be declared, so that a misspelt column is an error with a suggestion and not a new resource.

use std::path::Path;

use super::assemble::shorten;
use super::unknown::{error, guess_command, listed, renames, synonym};
use plimsoll_base::error::{Error, Result, did_you_mean};
use plimsoll_base::units::{Dim, MAX_DIMS};

/// The content of a trace's column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceColumn {
    /// The job's name.
    Job,
    /// The user's name.
    User,
    /// The submit time, in units of this many microseconds.
    Submit(u64),
    /// The duration of each task, in units of this many microseconds.
    Duration(u64),
    /// The number of tasks.
    Tasks,
    /// The stage of this row.
    Stage,
    /// The stages that must have ended first.
    After,
    /// The priority, 0 to 9.
    Priority,
    /// Whether all tasks start together or none.
    Gang,
    /// The location where the tasks would run best.
    Location,
    /// Whether the tasks are exempt from preemption.
    Stable,
    /// A label expression for the machine.
    Label,
    /// The user's estimate of each task's duration, in units of this many microseconds.
    Estimate(u64),
    /// The deadline of the tasks, in units of this many microseconds.
    Deadline(u64),
    /// The job that must have ended before this one is submitted.
    AfterJob,
    /// The time from the end of that job to the submission; the number is the unit in microseconds.
    Think(u64),
    /// The amount of the resource with this index among the dimensions, in units of this many base units.
    Resource(usize, u64),
}

/// The columns of a trace, found by their names.
#[derive(Clone, Debug)]
pub struct Columns {
    /// The content of each column.
    pub kinds: Vec<TraceColumn>,
    /// The header.
    pub names: Vec<String>,
    /// The resource dimensions, in column order.
    pub dims: Vec<Dim>,
}

impl Columns {
    /// The resources that a trace may have without a declaration.
    pub const USUAL: [&'static str; 5] = ["cpu", "memory", "gpu", "disk", "network"];

    /// The columns other than those of resources, with their content.
    const OTHERS: [(&'static str, TraceColumn); 26] = [
        ("job", TraceColumn::Job),
        ("user", TraceColumn::User),
        ("submit_s", TraceColumn::Submit(1_000_000)),
        ("submit_ms", TraceColumn::Submit(1000)),
        ("submit_us", TraceColumn::Submit(1)),
        ("duration_s", TraceColumn::Duration(1_000_000)),
        ("duration_ms", TraceColumn::Duration(1000)),
        ("duration_us", TraceColumn::Duration(1)),
        ("tasks", TraceColumn::Tasks),
        ("stage", TraceColumn::Stage),
        ("after", TraceColumn::After),
        ("priority", TraceColumn::Priority),
        ("gang", TraceColumn::Gang),
        ("label", TraceColumn::Label),
        ("location", TraceColumn::Location),
        ("stable", TraceColumn::Stable),
        ("estimate_s", TraceColumn::Estimate(1_000_000)),
        ("estimate_ms", TraceColumn::Estimate(1000)),
        ("estimate_us", TraceColumn::Estimate(1)),
        ("after_job", TraceColumn::AfterJob),
        ("think_s", TraceColumn::Think(1_000_000)),
        ("think_ms", TraceColumn::Think(1000)),
        ("think_us", TraceColumn::Think(1)),
        ("deadline_s", TraceColumn::Deadline(1_000_000)),
        ("deadline_ms", TraceColumn::Deadline(1000)),
        ("deadline_us", TraceColumn::Deadline(1)),
    ];

    /// Returns the content of the column with this name, if it is known and not a resource.
    fn other(name: &str) -> Option<TraceColumn> {
        Columns::OTHERS.iter().find(|(known, _)| *known == name).map(|(_, column)| *column)
    }

    /// Returns whether a column is the unnamed index of a pandas frame (`__index_level_0__`), which is no part of a trace.
    pub fn is_index(name: &str) -> bool {
        let level = name.strip_prefix("__index_level_").and_then(|rest| rest.strip_suffix("__"));
        level.is_some_and(|level| !level.is_empty() && level.bytes().all(|byte| byte.is_ascii_digit()))
    }

    /// Returns whether a column is valid in a trace that may have these resources in addition to the usual ones.
    pub fn knows(name: &str, resources: &[String]) -> bool {
        let resource = || Dim::parse(name).0.name;
        let declared = |resource: String| resources.iter().any(|known| Dim::parse(known).0.name == resource);
        Columns::other(name).is_some() || Columns::USUAL.contains(&&*resource()) || declared(resource())
    }

    /// Parses the header of a trace that may have these `resources` in addition to the usual ones. Errors: [`Error::Trace`] on line 1.
    pub fn find<'a>(path: &Path, header: impl IntoIterator<Item = &'a str>, resources: &[String]) -> Result<Columns> {
        let mut columns = Columns { kinds: Vec::new(), names: Vec::new(), dims: Vec::new() };
        let header: Vec<&str> = header.into_iter().map(str::trim).collect();
        if !header.iter().any(|name| Columns::is_required(name)) {
            let names = header.iter().copied();
            let looks = format!("its columns are {}{}", listed(names.clone()), renames(names, &[]));
            return Err(error(path, &looks));
        }
        columns.require_main(path, &header)?;
        for name in header {
            if !name.is_empty() && !Columns::knows(name, resources) {
                return Err(Columns::unknown(path, name, resources));
            }
            let kind = columns.kind(path, name)?;
            if columns.kinds.iter().any(|known| std::mem::discriminant(known) == std::mem::discriminant(&kind))
                && !matches!(kind, TraceColumn::Resource(..))
            {
                return Err(Error::trace(path, 1, name, "is given twice"));
            }
            columns.kinds.push(kind);
            columns.names.push(name.to_owned());
        }
        columns.require_resource(path)?;
        Ok(columns)
    }

    /// Returns the error of a row with this number of fields: a wrong number precedes a problem in a column.
    #[cold]
    pub(super) fn row_error(&self, path: &Path, line: u64, fields: usize, problem: Option<(usize, String)>) -> Error {
        match problem {
            Some((column, problem)) if fields == self.kinds.len() => {
                Error::trace(path, line, &self.names[column], problem)
            }
            _ => {
                let problem = format!("has {fields} fields; the header has {}", self.kinds.len());
                Error::trace(path, line, "", problem)
            }
        }
    }

    /// Returns whether a trace must have this column (or the same in another unit).
    pub(super) fn is_required(name: &str) -> bool {
        use TraceColumn::{Duration, Job, Submit, User};
        matches!(Columns::other(name), Some(Job | User | Submit(_) | Duration(_)))
    }

    fn unknown(path: &Path, name: &str, resources: &[String]) -> Error {
        if let Some(canonical) = synonym(name) {
            let problem = format!("is not a trace column (did you mean '{canonical}'?)");
            return Error::trace(path, 1, &shorten(name.as_bytes()), problem);
        }
        let spelt = ["cpu", "memory_gib", "memory_mib", "memory_norm", "gpu", "disk_gib", "network"];
        let known =
            Columns::OTHERS.into_iter().map(|(name, _)| name).chain(spelt).chain(resources.iter().map(String::as_str));
        let hint = did_you_mean(name, known);
        let usual = Columns::USUAL.join(", ");
        let name = shorten(name.as_bytes());
        let problem = format!(
            "is not a trace column{hint}; expected the resources {usual}, those of the machines, or one that is \
             declared: --resource {name}, in a plan [workload] resources = [\"{name}\"]"
        );
        Error::trace(path, 1, &name, problem)
    }

    fn kind(&mut self, path: &Path, name: &str) -> Result<TraceColumn> {
        if name.is_empty() {
            return Err(Error::trace(path, 1, "", "a column has no name"));
        }
        if let Some(column) = Columns::other(name) {
            return Ok(column);
        }
        let (dim, scale) = Dim::parse(name);
        if name == "memory" || name == "disk" {
            let part = "for a part of the largest machine";
            let problem = format!("has no unit; expected {name}_gib, {name}_mib, or {name}_norm {part}");
            return Err(Error::trace(path, 1, name, problem));
        }
        if self.dims.iter().any(|known| known.name == dim.name) {
            return Err(Error::trace(path, 1, name, format!("the resource '{}' is given twice", dim.name)));
        }
        if self.dims.len() == MAX_DIMS {
            return Err(Error::trace(path, 1, name, format!("is one resource more than {MAX_DIMS}")));
        }
        self.dims.push(dim);
        Ok(TraceColumn::Resource(self.dims.len() - 1, scale))
    }

    /// Checks that the header has the job, the user, the submit time and the duration. Errors: a column is missing.
    fn require_main(&self, path: &Path, header: &[&str]) -> Result<()> {
        let has = |wanted: fn(TraceColumn) -> bool| header.iter().any(|name| Columns::other(name).is_some_and(wanted));
        let missing = if !has(|kind| matches!(kind, TraceColumn::Job)) {
            "job"
        } else if !has(|kind| matches!(kind, TraceColumn::User)) {
            "user"
        } else if !has(|kind| matches!(kind, TraceColumn::Submit(_))) {
            "submit_s"
        } else if !has(|kind| matches!(kind, TraceColumn::Duration(_))) {
            "duration_s"
        } else {
            return Ok(());
        };
        Err(Columns::missing(path, missing, header.iter().copied()))
    }

    /// Checks that a column is a resource. Errors: there is none.
    fn require_resource(&self, path: &Path) -> Result<()> {
        if self.dims.is_empty() {
            return Err(Columns::missing(path, "cpu", self.names.iter().map(String::as_str)));
        }
        Ok(())
    }

    fn missing<'a>(path: &Path, missing: &str, header: impl Iterator<Item = &'a str> + Clone) -> Error {
        let mut taken: Vec<&str> = Vec::new();
        for name in header.clone() {
            taken.push(match Columns::other(name) {
                Some(TraceColumn::Submit(_)) => "submit_s",
                Some(TraceColumn::Duration(_)) => "duration_s",
                _ => name,
            });
        }
        let renames = renames(header.clone(), &taken);
        let problem = format!(
            "is missing; expected job, user, submit_s, duration_s (or _ms, _us), resources such as cpu and memory_gib, \
             and optional columns (docs/traces.md); found {}{renames}; {}",
            listed(header),
            guess_command(path)
        );
        Error::trace(path, 1, missing, problem)
    }
}
