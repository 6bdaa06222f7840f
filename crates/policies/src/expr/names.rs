//! The values that an expression may name.

use plimsoll_base::units::{Dim, US_PER_S};
use plimsoll_sim::books::WEIGHT_ONE;

/// A value by name, without the resource that may follow it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Var {
    Held,
    Demand,
    Wanted,
    Service,
    Capacity,
    Weight,
    TotalHeld,
    Running,
    Waiting,
    Priority,
    Release,
    Place,
    Tasks,
    Machines,
    TotalRunning,
    TotalWaiting,
    Backlogged,
    Active,
    Now,
    Submit,
    Deadline,
    Estimate,
    JobWaiting,
    JobRunning,
    JobSize,
    JobLeft,
    JobAttained,
    JobService,
    Age,
    Wait,
    Key,
}

/// A part of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clause {
    /// The rank of a user.
    Rank,
    /// The condition of admission of a task.
    Admit,
    /// The key that orders a task set among those of its user.
    Order,
}

impl Clause {
    /// Returns the word that begins the part.
    pub fn word(self) -> &'static str {
        match self {
            Clause::Rank => "rank",
            Clause::Admit => "admit",
            Clause::Order => "order",
        }
    }
}

/// The arity of a value: one number, or one per resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// One number.
    One,
    /// One number per resource.
    Resource,
    /// One number, or one per resource.
    Either,
}

/// The unit of a value in an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueUnit {
    /// A count.
    Count,
    /// The unit of the resource: cores, GiB, units.
    Amount,
    /// Seconds.
    Seconds,
    /// The unit of the resource, times seconds.
    AmountSeconds,
    /// A weight; the default is 1.
    Weight,
    /// The unit of the value after `order`.
    Key,
}

/// The scale of a value that is an encoded key and not a multiple of a unit.
pub(super) const ENCODED: u64 = 0;

impl ValueUnit {
    /// Returns the number of units of the books in one unit of the expression.
    pub fn scale(self, dim: Option<&Dim>) -> u64 {
        let amount = dim.map_or(1, |dim| dim.unit.scale());
        match self {
            ValueUnit::Count => 1,
            ValueUnit::Key => ENCODED,
            ValueUnit::Amount => amount,
            ValueUnit::Seconds => US_PER_S,
            ValueUnit::AmountSeconds => amount * US_PER_S,
            ValueUnit::Weight => WEIGHT_ONE,
        }
    }

    /// Returns the unit in words.
    pub fn label(self) -> &'static str {
        match self {
            ValueUnit::Count => "number",
            ValueUnit::Amount => "unit of the resource",
            ValueUnit::Seconds => "s",
            ValueUnit::AmountSeconds => "unit of the resource times s",
            ValueUnit::Weight => "weight",
            ValueUnit::Key => "that of the value",
        }
    }
}

/// The declaration of a value.
#[derive(Debug)]
pub struct Name {
    /// The name in an expression.
    pub name: &'static str,
    pub(super) var: Var,
    /// Whether a resource follows the name.
    pub of: Of,
    /// The unit.
    pub measure: ValueUnit,
    /// The parts of an expression that may name it.
    pub clauses: &'static [Clause],
    /// The number of bits of the value, in units of the books.
    pub(super) bits: u32,
    /// The description.
    pub meaning: &'static str,
}

const USERS: &[Clause] = &[Clause::Rank, Clause::Admit];
const RANK: &[Clause] = &[Clause::Rank];
const TIMED: &[Clause] = &[Clause::Rank, Clause::Order];
const ALL: &[Clause] = &[Clause::Rank, Clause::Admit, Clause::Order];
const ADMIT: &[Clause] = &[Clause::Admit];
const ORDER: &[Clause] = &[Clause::Order];

macro_rules! names {
    ($($name:literal $var:ident $of:ident $measure:ident $clauses:expr, $bits:literal, $meaning:literal;)*) => {
        /// All values, in the order of the documentation.
        pub static NAMES: &[Name] = &[$(Name {
            name: $name,
            var: Var::$var,
            of: Of::$of,
            measure: ValueUnit::$measure,
            clauses: $clauses,
            bits: $bits,
            meaning: $meaning,
        },)*];
    };
}

names! {
    "held" Held Resource Amount USERS, 60, "held by the user's running tasks";
    "demand" Demand Resource Amount USERS, 60, "demanded by each task that the user would start next";
    "wanted" Wanted Resource Amount USERS, 127, "demanded by all running and waiting tasks of the user";
    "service" Service Resource AmountSeconds USERS, 127, "held by the user so far, added up over time";
    "capacity" Capacity Resource Amount ALL, 60, "of the whole cluster; a constant";
    "weight" Weight Either Weight USERS, 60, "the user's weight, of a resource if one is named; a constant";
    "machines" Machines One Count USERS, 60, "machines of the cluster; a constant";
    "running" Running One Count USERS, 60, "running tasks of the user";
    "waiting" Waiting One Count USERS, 60, "waiting tasks of the user";
    "priority" Priority One Count USERS, 8, "of the next task, 0 (most urgent) to 9";
    "release" Release One Seconds USERS, 64, "when the next task could have started at the earliest";
    "place" Place One Count USERS, 64, "row of the next task in the trace, from 0; rows that a stage released count from 2^63";
    "tasks" Tasks One Count ADMIT, 32, "tasks that would start together: all of a gang, else 1";
    "total_held" TotalHeld Resource Amount USERS, 60, "held by all users";
    "total_running" TotalRunning One Count USERS, 60, "running tasks of all users";
    "total_waiting" TotalWaiting One Count USERS, 60, "waiting tasks of all users";
    "backlogged" Backlogged One Count USERS, 32, "users with waiting tasks";
    "active" Active One Count USERS, 32, "users with waiting or running tasks";
    "key" Key One Key RANK, 128, "the value after 'order' of the task set that the user would start next";
    "now" Now One Seconds TIMED, 64, "the current time";
    "priority" Priority One Count ORDER, 8, "of the task set, 0 (most urgent) to 9";
    "submit" Submit One Seconds ORDER, 64, "when the task set was submitted";
    "release" Release One Seconds ORDER, 64, "when its tasks could have started at the earliest";
    "place" Place One Count ORDER, 64, "its row in the trace, from 0; rows that a stage released count from 2^63";
    "age" Age One Seconds ORDER, 64, "time since its submission";
    "wait" Wait One Seconds ORDER, 64, "time since its tasks could have started at the earliest";
    "demand" Demand Resource Amount ORDER, 60, "demanded by each of its tasks";
    "tasks" Tasks One Count ORDER, 32, "tasks of its row in the trace";
    "waiting" Waiting One Count ORDER, 32, "waiting tasks of the set";
    "deadline" Deadline One Seconds ORDER, 64, "by when its tasks should have ended; without one, later than all others";
    "estimate" Estimate One Seconds ORDER, 64, "how long each of its tasks lasts, as its user estimates";
    "job_waiting" JobWaiting One Count ORDER, 60, "waiting tasks of the job";
    "job_running" JobRunning One Count ORDER, 60, "running tasks of the job";
    "job_size" JobSize One Seconds ORDER, 127, "tasks times duration of the job, as its user estimates";
    "job_left" JobLeft One Seconds ORDER, 127, "the part of that which is left";
    "job_attained" JobAttained One Seconds ORDER, 127, "time that tasks of the job have run, added up";
    "job_service" JobService Resource AmountSeconds ORDER, 127, "held by the job so far, added up over time";
}

/// Returns the value with this name that is valid in a part of an expression.
pub fn find(name: &str, clause: Clause) -> Option<&'static Name> {
    NAMES.iter().find(|known| known.name == name && known.clauses.contains(&clause))
}

/// Returns all names that are valid in a part of an expression.
pub fn known(clause: Clause) -> impl Iterator<Item = &'static str> {
    NAMES.iter().filter(move |known| known.clauses.contains(&clause)).map(|known| known.name)
}
