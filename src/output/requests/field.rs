//! The fields that figures can show: columns of the tables, axes of the sweep, policies, cells, seeds; and their names.

use crate::output::figure::{Axis, Measure};
use crate::output::numbers::{self, capital, resource_name};
use crate::output::schema::Table;
use crate::output::table::Kind;
use crate::units::{Dim, span};

/// Something that has a value in every row.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Field {
    /// The policy.
    Policy,
    /// The cell of the sweep.
    Cell,
    /// The seed of the run.
    Seed,
    /// Which of several columns a value comes from.
    Metric,
    /// An axis of the sweep, by place, with the last word of its key and what its numbers are.
    Axis(usize, String, Measure),
    /// A column.
    Column(Column),
}

/// A column of a table, or what is computed of some.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Column {
    /// Its name.
    pub name: String,
    /// How it comes from the table's own columns.
    pub from: From,
    /// The kind of its numbers.
    pub measure: Measure,
    /// Whether it holds names.
    pub text: bool,
}

/// How a column comes from those of the table.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum From {
    /// As it stands there.
    Itself,
    /// Microseconds there, seconds here.
    Seconds(String),
    /// The seconds between two instants in microseconds.
    Between(&'static str, &'static str),
    /// The same over a third column.
    Ratio(&'static str, &'static str, &'static str),
}

/// Columns that are computed: table, name, and how.
const COMPUTED: [(Table, &str, From); 5] = [
    (Table::Jobs, "completion_s", From::Between("submit_us", "finish_us")),
    (Table::Jobs, "wait_s", From::Between("submit_us", "start_us")),
    (Table::Jobs, "slowdown", From::Ratio("submit_us", "finish_us", "ideal_us")),
    (Table::Tasks, "wait_s", From::Between("release_us", "start_us")),
    (Table::Tasks, "duration_s", From::Between("start_us", "finish_us")),
];

impl Column {
    /// All columns of a table: its own, those in microseconds also in seconds, and the computed ones.
    pub fn all(table: Table, dims: &[Dim]) -> Vec<Column> {
        let mut columns: Vec<Column> = Vec::new();
        for described in table.columns(dims) {
            let (name, text) = (described.field.name, described.field.kind == Kind::Text);
            if let Some(stem) = name.strip_suffix("_us") {
                let from = From::Seconds(name.clone());
                columns.push(Column { name: format!("{stem}_s"), from, measure: Measure::Seconds, text: false });
            }
            let measure = if text { Measure::Number } else { measure(table, &name) };
            columns.push(Column { name, from: From::Itself, measure, text });
        }
        let computed = COMPUTED.into_iter().filter(|(of, ..)| *of == table);
        columns.extend(computed.map(|(_, name, from)| {
            let measure = if name.ends_with("_s") { Measure::Seconds } else { Measure::Number };
            Column { name: name.to_owned(), from, measure, text: false }
        }));
        columns
    }

    /// The columns of the table that it needs.
    pub fn needs(&self) -> Vec<&str> {
        match &self.from {
            From::Itself => vec![&self.name],
            From::Seconds(of) => vec![of],
            From::Between(from, to) => vec![from, to],
            From::Ratio(from, to, over) => vec![from, to, over],
        }
    }

    /// Whether it is a part of a whole: 0 to 1, unless more is used than there is.
    pub fn is_part(&self) -> bool {
        self.measure == Measure::Fraction || ["jain", "gini"].iter().any(|index| self.name.contains(index))
    }

    /// The axis of a chart that shows it.
    pub fn axis(&self) -> Axis {
        Axis { label: heading(&self.name), measure: self.measure, ..Axis::default() }
    }
}

/// The kind of the numbers of a table's own column.
fn measure(table: Table, name: &str) -> Measure {
    let amounts = ["used_s", "demand_s", "borrowed_s", "spare_s", "short_s", "lost_s"];
    let resource_seconds = match table {
        Table::Groups => amounts.contains(&name),
        Table::Users => name.starts_with("used_"),
        _ => false,
    };
    let of_cluster = matches!(table, Table::Runs | Table::Fairness);
    let share = ["used_", "reserved_", "stranded_"].iter().any(|start| name.starts_with(start));
    if name.ends_with("_s") && !name.ends_with("_per_s") && !resource_seconds {
        Measure::Seconds
    } else if (of_cluster && share)
        || ["dominant_share", "fluid_share", "share_gap_backlogged", "shortfall", "located_hits"].contains(&name)
        || name.starts_with("deviation_")
    {
        Measure::Fraction
    } else {
        Measure::Number
    }
}

/// Names that read better in other words.
const WORDS: [(&str, &str); 23] = [
    ("completion_mean_s", "Mean completion time"),
    ("completion_p50_s", "Median completion time"),
    ("completion_p90_s", "90 % quantile of completion time"),
    ("completion_p99_s", "99 % quantile of completion time"),
    ("completion_s", "Completion time"),
    ("wait_mean_s", "Mean wait"),
    ("wait_s", "Wait"),
    ("task_wait_mean_s", "Mean wait of tasks"),
    ("task_wait_max_s", "Longest wait of a task"),
    ("gang_wait_mean_s", "Mean wait of gangs"),
    ("gang_wait_max_s", "Longest wait of a gang"),
    ("slowdown_mean", "Mean slowdown"),
    ("speed", "Speed"),
    ("speed_jain", "Jain index of speeds"),
    ("speed_gap", "Gap of speeds"),
    ("speed_min", "Speed of the slowest user"),
    ("jain_backlogged", "Jain index (backlogged users)"),
    ("dominant_share", "Dominant share"),
    ("share_gap_backlogged", "Share gap (backlogged users)"),
    ("envy_count", "Users that envy"),
    ("incentive_below", "Users below 1/n"),
    ("jobs_finished", "Jobs finished"),
    ("bin", "Job size (tasks)"),
];

/// A column in words, without its unit.
pub fn heading(name: &str) -> String {
    if let Some((_, words)) = WORDS.iter().find(|(known, _)| *known == name) {
        return (*words).to_owned();
    }
    for (before, after) in [("used_", " in use"), ("demand_", ""), ("reserved_", " reserved")] {
        if let Some(resource) = name.strip_prefix(before).filter(|rest| *rest != "s") {
            let units = ["_s", "_milli", "_mib"];
            let plain = units.iter().find_map(|unit| resource.strip_suffix(unit)).unwrap_or(resource);
            return capital(&format!("{}{after}", resource_name(plain)));
        }
    }
    capital(&name.strip_suffix("_s").unwrap_or(name).replace('_', " "))
}

/// A value in a row.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Datum {
    /// A number.
    Number(f64),
    /// A name.
    Text(String),
}

impl Datum {
    /// A value of an axis as it is written in a plan: a number, a time span in seconds, or a name.
    pub fn of_axis(text: &str) -> Datum {
        number(text).map_or_else(|| Datum::Text(text.to_owned()), Datum::Number)
    }

    /// As a name.
    pub fn words(&self) -> String {
        match self {
            Datum::Number(value) => plain(*value),
            Datum::Text(text) => text.clone(),
        }
    }
}

/// A number as an axis writes it: its own digits where they are few.
pub(super) fn plain(value: f64) -> String {
    let text = value.to_string();
    if text.len() <= 6 { text } else { numbers::number(Some(value)) }
}

/// A number, or a time span in seconds.
pub(super) fn number(text: &str) -> Option<f64> {
    text.parse::<f64>().ok().filter(|value| value.is_finite()).or_else(|| seconds(text))
}

/// A time span in seconds.
pub(super) fn seconds(text: &str) -> Option<f64> {
    text.ends_with(|c: char| c.is_ascii_alphabetic()).then(|| span(text).ok()).flatten().map(|span| span.seconds())
}

impl Field {
    /// Its name in the data.
    pub fn name(&self) -> &str {
        match self {
            Field::Policy => "policy",
            Field::Cell => "cell",
            Field::Seed => "seed",
            Field::Metric => "metric",
            Field::Axis(_, word, _) => word,
            Field::Column(column) => &column.name,
        }
    }

    /// The axis of a chart that shows it.
    pub fn axis(&self) -> Axis {
        match self {
            Field::Column(column) => column.axis(),
            Field::Axis(_, word, measure) => {
                Axis { label: capital(&word.replace('_', " ")), measure: *measure, ..Axis::default() }
            }
            Field::Seed => Axis::number("Seed"),
            // Categories that say what they are.
            Field::Policy | Field::Cell | Field::Metric => Axis::number(""),
        }
    }

    /// A value of it as a name that stands alone: numbers come with the name of their axis.
    pub fn label(&self, value: &Datum) -> String {
        match (self, value) {
            (Field::Axis(..) | Field::Seed, Datum::Number(_)) => {
                format!("{} = {}", self.name().replace('_', " "), value.words())
            }
            (Field::Column(column), Datum::Number(_)) => format!("{} = {}", column.name, value.words()),
            (Field::Metric, _) => heading(&value.words()),
            _ => value.words(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Unit;

    #[test]
    fn columns_come_with_their_seconds() {
        let dims = [Dim { name: "cpu".to_owned(), unit: Unit::Milli }];
        let jobs = Column::all(Table::Jobs, &dims);
        let named = |name: &str| jobs.iter().find(|column| column.name == name).expect(name);
        assert_eq!(named("completion_s").needs(), ["submit_us", "finish_us"]);
        assert_eq!(named("finish_s").needs(), ["finish_us"]);
        assert!(named("user").text && !named("tasks").text);
        let runs = Column::all(Table::Runs, &dims);
        let measure = |name: &str| runs.iter().find(|column| column.name == name).expect(name).measure;
        assert_eq!(measure("completion_mean_s"), Measure::Seconds);
        assert_eq!(measure("used_cpu"), Measure::Fraction);
        assert_eq!(measure("speed_jain"), Measure::Number);
        let users = Column::all(Table::Users, &dims);
        let used = users.iter().find(|column| column.name == "used_cpu_s").expect("core seconds");
        assert_eq!(used.measure, Measure::Number);
    }

    #[test]
    fn values_of_axes_are_numbers_spans_or_names() {
        assert_eq!(Datum::of_axis("0.7"), Datum::Number(0.7));
        assert_eq!(Datum::of_axis("2m"), Datum::Number(120.0));
        assert_eq!(Datum::of_axis("100x16c64g"), Datum::Text("100x16c64g".to_owned()));
        let load = Field::Axis(0, "load".to_owned(), Measure::Number);
        assert_eq!(load.label(&Datum::Number(0.7)), "load = 0.7");
        assert_eq!(heading("tasks_launched"), "Tasks launched");
        assert_eq!(
            ["used_cpu", "used_memory", "reserved_gpu"].map(heading),
            ["CPU in use", "Memory in use", "GPU reserved"]
        );
    }
}
