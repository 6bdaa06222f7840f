//! The fields that figures can show: columns of the tables, axes of the sweep, policies, cells, seeds; and their names.
//!
//! A column is either in its table or computed from its columns, such as seconds from microseconds or a slowdown. Each field has a unit, a
//! heading and an axis.

use plimsoll_base::column::{Better, Described, Kind, Unit};
use plimsoll_base::units::{Dim, span};
use plimsoll_charts::figure::{Axis, Measure};
use plimsoll_results::schema::{OwnColumn, Table};

use plimsoll_metrics::numbers::{self, capital};

/// A field with a value in every row.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Field {
    /// The policy.
    Policy,
    /// The cell of the sweep.
    Cell,
    /// The seed of the run.
    Seed,
    /// The name of the column that a value is from.
    Metric,
    /// An axis of the sweep: its index, the last word of its key, and the measure of its numbers.
    Axis(usize, String, Measure),
    /// A column.
    Column(FigureColumn),
}

/// A column of a table, or a value computed from columns.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct FigureColumn {
    /// Its name.
    pub name: String,
    /// The derivation from the table's own columns.
    pub from: ValueSource,
    /// The unit of its numbers.
    pub unit: Unit,
    /// Its heading, without the unit.
    pub heading: String,
    /// Whether its values are names.
    pub text: bool,
    /// The direction of better values.
    pub better: Better,
}

/// The derivation of a column from the columns of the table.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ValueSource {
    /// The column itself.
    Itself,
    /// A column in microseconds, converted to seconds.
    Seconds(String),
    /// The seconds between two instants in microseconds.
    Between(&'static str, &'static str),
    /// The seconds between two instants, divided by a third column.
    Ratio(&'static str, &'static str, &'static str),
}

/// Computed columns: table, name, unit, heading, direction of better values, and derivation.
const COMPUTED: [(Table, &str, Unit, &str, Better, ValueSource); 5] = [
    (
        Table::Jobs,
        "completion_s",
        Unit::Seconds,
        "Completion time",
        Better::Lower,
        ValueSource::Between("submit_us", "finish_us"),
    ),
    (Table::Jobs, "wait_s", Unit::Seconds, "Wait", Better::Lower, ValueSource::Between("submit_us", "start_us")),
    (
        Table::Jobs,
        "slowdown",
        Unit::Plain,
        "Slowdown",
        Better::Lower,
        ValueSource::Ratio("submit_us", "finish_us", "ideal_us"),
    ),
    (Table::Tasks, "wait_s", Unit::Seconds, "Wait", Better::Lower, ValueSource::Between("release_us", "start_us")),
    (
        Table::Tasks,
        "duration_s",
        Unit::Seconds,
        "Duration",
        Better::Neither,
        ValueSource::Between("start_us", "finish_us"),
    ),
];

impl FigureColumn {
    /// Returns all columns of a table: its own columns, columns in microseconds also in seconds, and the computed columns.
    pub fn all(table: Table, dims: &[Dim]) -> Vec<FigureColumn> {
        let mut columns: Vec<FigureColumn> = Vec::new();
        for described in table.columns(dims) {
            let (heading, text) = (in_words(&described), described.value == Kind::Text);
            let Described { name, unit, better, .. } = described;
            if unit == Unit::Micros {
                let stem = name.trim_end_matches(Unit::Micros.suffix());
                let (name, from) = (format!("{stem}{}", Unit::Seconds.suffix()), ValueSource::Seconds(name.clone()));
                columns.push(FigureColumn {
                    name,
                    from,
                    unit: Unit::Seconds,
                    heading: plain_heading(stem),
                    text,
                    better,
                });
            }
            columns.push(FigureColumn { name, from: ValueSource::Itself, unit, heading, text, better });
        }
        let computed = COMPUTED.into_iter().filter(|(of, ..)| *of == table);
        columns.extend(computed.map(|(_, name, unit, heading, better, from)| FigureColumn {
            name: name.to_owned(),
            from,
            unit,
            heading: heading.to_owned(),
            text: false,
            better,
        }));
        columns
    }

    /// Returns an own metric of a plan.
    pub fn own(column: &OwnColumn) -> FigureColumn {
        let described = column.described();
        FigureColumn {
            heading: in_words(&described),
            name: described.name,
            from: ValueSource::Itself,
            unit: described.unit,
            text: false,
            better: described.better,
        }
    }

    /// Returns the source columns of the value in the table.
    pub fn needs(&self) -> Vec<&str> {
        match &self.from {
            ValueSource::Itself => vec![&self.name],
            ValueSource::Seconds(of) => vec![of],
            ValueSource::Between(from, to) => vec![from, to],
            ValueSource::Ratio(from, to, over) => vec![from, to, over],
        }
    }

    /// Returns whether the values are fractions of a whole: 0 to 1, or more if usage exceeds the whole.
    pub fn is_part(&self) -> bool {
        matches!(self.unit, Unit::Share | Unit::Index)
    }

    /// Returns the measure of its numbers.
    pub fn measure(&self) -> Measure {
        match self.unit {
            // Points in time have the unit of the time axis; durations have the unit of the tables.
            Unit::Seconds if matches!(self.from, ValueSource::Seconds(_)) => Measure::Seconds,
            Unit::Seconds => Measure::PlainSeconds,
            Unit::Share => Measure::Fraction,
            _ => Measure::Number,
        }
    }

    /// Returns the axis of a chart that shows the column.
    pub fn axis(&self) -> Axis {
        Axis { label: self.heading.clone(), measure: self.measure(), ..Axis::default() }
    }
}

/// Describes a column of the `runs` table, without its unit.
pub fn heading(name: &str, dims: &[Dim]) -> String {
    let named = FigureColumn::all(Table::Runs, dims).into_iter().find(|column| column.name == name);
    named.map_or_else(|| name.to_owned(), |column| column.heading)
}

/// Describes a column, without its unit.
fn in_words(column: &Described) -> String {
    match column.words.as_str() {
        "" if column.unit == Unit::Micros => plain_heading(&column.name),
        "" => plain_heading(column.name.strip_suffix(column.unit.suffix()).unwrap_or(&column.name)),
        words => capital(words),
    }
}

fn plain_heading(name: &str) -> String {
    capital(&name.replace('_', " "))
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
    /// Parses the value of an axis in a plan: a number, a time span in seconds, or a name.
    pub fn of_axis(text: &str) -> Datum {
        number(text).map_or_else(|| Datum::Text(text.to_owned()), Datum::Number)
    }

    /// Formats the value as a name.
    pub fn words(&self) -> String {
        match self {
            Datum::Number(value) => plain(*value),
            Datum::Text(text) => text.clone(),
        }
    }
}

/// Formats a number for an axis: with all of its digits if they are few.
pub(super) fn plain(value: f64) -> String {
    let text = value.to_string();
    if text.len() <= 6 { text } else { numbers::number(Some(value)) }
}

/// Parses a number, or a time span in seconds.
pub(super) fn number(text: &str) -> Option<f64> {
    text.parse::<f64>().ok().filter(|value| value.is_finite()).or_else(|| seconds(text))
}

/// Parses a time span in seconds.
pub(super) fn seconds(text: &str) -> Option<f64> {
    text.ends_with(|c: char| c.is_ascii_alphabetic()).then(|| span(text).ok()).flatten().map(|span| span.seconds())
}

impl Field {
    /// Returns the name of the field in the data.
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

    /// Returns the axis of a chart that shows the field.
    pub fn axis(&self) -> Axis {
        match self {
            Field::Column(column) => column.axis(),
            Field::Axis(_, word, measure) => {
                Axis { label: capital(&word.replace('_', " ")), measure: *measure, ..Axis::default() }
            }
            Field::Seed => Axis::number("Seed"),
            // The categories need no axis label.
            Field::Policy | Field::Cell | Field::Metric => Axis::number(""),
        }
    }

    /// Returns a value as a self-contained label: numbers include the name of their axis.
    pub fn label(&self, value: &Datum) -> String {
        match (self, value) {
            (Field::Axis(..) | Field::Seed, Datum::Number(_)) => {
                format!("{} = {}", self.name().replace('_', " "), value.words())
            }
            (Field::Column(column), Datum::Number(_)) => format!("{} = {}", column.name, value.words()),
            _ => value.words(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_come_with_their_seconds() {
        let dims = [Dim { name: "cpu".to_owned(), unit: plimsoll_base::units::Unit::Milli }];
        let jobs = FigureColumn::all(Table::Jobs, &dims);
        let named = |name: &str| jobs.iter().find(|column| column.name == name).expect(name);
        assert_eq!(named("completion_s").needs(), ["submit_us", "finish_us"]);
        assert_eq!(named("finish_s").needs(), ["finish_us"]);
        assert!(named("user").text && !named("tasks").text);
        let runs = FigureColumn::all(Table::Runs, &dims);
        let measure = |name: &str| runs.iter().find(|column| column.name == name).expect(name).measure();
        assert_eq!(measure("completion_mean_s"), Measure::PlainSeconds);
        assert_eq!(named("finish_s").measure(), Measure::Seconds);
        assert_eq!(measure("used_cpu"), Measure::Fraction);
        assert_eq!(measure("speed_jain"), Measure::Number);
        let heading = |name: &str| runs.iter().find(|column| column.name == name).expect(name).heading.as_str();
        assert_eq!(["wait_p50_s", "end_s", "speed_min"].map(heading), ["Wait p50", "End", "Speed of the slowest user"]);
        let users = FigureColumn::all(Table::Users, &dims);
        let used = users.iter().find(|column| column.name == "used_cpu_s").expect("core seconds");
        assert_eq!((used.measure(), used.heading.as_str()), (Measure::Number, "CPU in use"));
    }

    #[test]
    fn values_of_axes_are_numbers_spans_or_names() {
        assert_eq!(Datum::of_axis("0.7"), Datum::Number(0.7));
        assert_eq!(Datum::of_axis("2m"), Datum::Number(120.0));
        assert_eq!(Datum::of_axis("100x16c64g"), Datum::Text("100x16c64g".to_owned()));
        let load = Field::Axis(0, "load".to_owned(), Measure::Number);
        assert_eq!(load.label(&Datum::Number(0.7)), "load = 0.7");
    }
}
