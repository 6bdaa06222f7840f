//! The columns of a trace as the names in `[trace]` of a mapping.

use plimsoll_base::error::did_you_mean;
use plimsoll_base::units::Dim;
use plimsoll_sim::workload::Columns;

/// A column of a trace. The number of a time is its unit in microseconds, that of a resource the number of base units in its unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// The job's name.
    Job,
    /// The user's name.
    User,
    /// The submit time.
    Submit(u64),
    /// The duration of each task.
    Duration(u64),
    /// The number of tasks.
    Tasks,
    /// The stage.
    Stage,
    /// The stages that must have ended first.
    After,
    /// The priority, 0 to 9.
    Priority,
    /// Whether all tasks start together.
    Gang,
    /// A label expression for the machine.
    Label,
    /// The preferred location.
    Location,
    /// Whether the tasks are exempt from preemption.
    Stable,
    /// The user's estimate of the duration.
    Estimate(u64),
    /// The deadline.
    Deadline(u64),
    /// The job that must have ended first.
    AfterJob,
    /// The time after the end of that job.
    Think(u64),
    /// A demand.
    Resource(Dim, u64),
}

/// The names without a unit, for messages; times have seconds without a suffix.
const NAMES: [&str; 16] = [
    "job",
    "user",
    "submit",
    "duration",
    "tasks",
    "stage",
    "after",
    "priority",
    "gang",
    "label",
    "location",
    "stable",
    "estimate",
    "deadline",
    "after_job",
    "think",
];

/// The usual resources with their units.
const RESOURCES: [&str; 9] =
    ["cpu", "memory_gib", "memory_mib", "memory_norm", "gpu", "disk_gib", "network", "cpu_norm", "gpu_norm"];

impl Target {
    /// Finds a column by its name; resources other than the usual ones must be in `resources`.
    pub fn parse(name: &str, resources: &[String]) -> Option<Target> {
        let (stem, unit) = [("_s", 1_000_000), ("_ms", 1000), ("_us", 1)]
            .iter()
            .find_map(|(suffix, unit)| Some((name.strip_suffix(suffix)?, *unit)))
            .unwrap_or((name, 1_000_000));
        Some(match (name, stem) {
            ("job", _) => Target::Job,
            ("user", _) => Target::User,
            ("tasks", _) => Target::Tasks,
            ("stage", _) => Target::Stage,
            ("after", _) => Target::After,
            ("priority", _) => Target::Priority,
            ("gang", _) => Target::Gang,
            ("label", _) => Target::Label,
            ("location", _) => Target::Location,
            ("stable", _) => Target::Stable,
            ("after_job", _) => Target::AfterJob,
            (_, "submit") => Target::Submit(unit),
            (_, "duration") => Target::Duration(unit),
            (_, "estimate") => Target::Estimate(unit),
            (_, "deadline") => Target::Deadline(unit),
            (_, "think") => Target::Think(unit),
            ("memory" | "disk", _) => return None,
            _ => {
                let (dim, scale) = Dim::parse(name);
                let declared = |known: &String| Dim::parse(known).0.name == dim.name;
                if !Columns::USUAL.contains(&dim.name.as_str()) && !resources.iter().any(declared) {
                    return None;
                }
                Target::Resource(dim, scale)
            }
        })
    }

    /// Returns whether both are the same column, perhaps in different units.
    pub fn is_same(&self, other: &Target) -> bool {
        match (self, other) {
            (Target::Resource(a, _), Target::Resource(b, _)) => a.name == b.name,
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }

    /// Returns whether the column may be empty.
    pub fn is_optional(&self) -> bool {
        use Target::{Duration, Job, Resource, Submit, Tasks, User};
        !matches!(self, Job | User | Submit(_) | Duration(_) | Tasks | Resource(..))
    }
}

/// Returns the problem of a name in `[trace]` that is no column.
pub fn unknown_target(name: &str) -> String {
    if name == "memory" || name == "disk" {
        return format!(
            "'{name}' has no unit; expected {name}_gib, {name}_mib, or {name}_norm for a part of the largest machine"
        );
    }
    let known = NAMES.into_iter().chain(RESOURCES);
    let hint = did_you_mean(name, known.clone());
    let resource = "another resource must be declared: resources = [\"NAME\"] at the beginning of the mapping";
    format!(
        "'{}' is no column of a trace{hint}; expected {} (times in seconds, or with _ms or _us), the resources {}; {resource}",
        crate::value::short(name),
        NAMES.join(", "),
        RESOURCES.join(", ")
    )
}
