//! A column of a table, declared once: name, value, unit, meaning, which end is the good one, and where it is shown.
//!
//! A list of columns is at once the schema of a table and what writes its rows, so that the two cannot disagree. The type of a
//! column is that of the function that computes its value.

use crate::units::{Dim, resource_name};

/// The type of the values of a column; every column may be null.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A 64-bit integer.
    Int,
    /// A double.
    Float,
    /// A string.
    Text,
}

/// One value of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell<'a> {
    /// Absent.
    Null,
    /// A 64-bit integer.
    Int(i64),
    /// A number from 2^63 on, which only a column of doubles holds.
    Large(u64),
    /// A double.
    Float(f64),
    /// A string.
    Text(&'a str),
}

impl From<u64> for Cell<'_> {
    fn from(value: u64) -> Self {
        i64::try_from(value).map_or(Cell::Large(value), Cell::Int)
    }
}

impl From<f64> for Cell<'_> {
    fn from(value: f64) -> Self {
        if value.is_finite() { Cell::Float(value) } else { Cell::Null }
    }
}

impl<'a> From<&'a str> for Cell<'a> {
    fn from(value: &'a str) -> Self {
        Cell::Text(value)
    }
}

impl<'a, T: Into<Cell<'a>>> From<Option<T>> for Cell<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Cell::Null, Into::into)
    }
}

/// The unit of the numbers of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// None: a count, a factor, a name.
    Plain,
    /// Seconds.
    Seconds,
    /// Microseconds: an instant of the run, or a span.
    Micros,
    /// A share of a whole, which people read in percent.
    Share,
    /// An index from 0 to 1 that is no share of anything.
    Index,
    /// An amount of a resource in base units: thousandths, MiB.
    Base,
    /// An amount of a resource in the unit people write: cores, GiB.
    Amount,
    /// Such an amount times seconds.
    AmountSeconds,
}

impl Unit {
    /// Its name in the schema.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Plain => "1",
            Unit::Seconds => "s",
            Unit::Micros => "us",
            Unit::Share => "share",
            Unit::Index => "index",
            Unit::Base => "base units",
            Unit::Amount => "amount",
            Unit::AmountSeconds => "amount s",
        }
    }

    /// The end of the names of its columns.
    pub fn suffix(self) -> &'static str {
        match self {
            Unit::Seconds | Unit::AmountSeconds => "_s",
            Unit::Micros => "_us",
            _ => "",
        }
    }
}

/// Which end of a quantity is the good one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Small values are better.
    Lower,
    /// Large values are better.
    Higher,
    /// Neither: nothing is marked.
    Neither,
}

/// The two parts of a summary of runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Topic {
    /// How long jobs took.
    Delay,
    /// How well and how fairly the cluster was used.
    Sharing,
}

/// The place of a column in the summary of runs, on the terminal and in the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headline {
    /// The part that it belongs to.
    pub topic: Topic,
    /// Its heading, short.
    pub heading: &'static str,
    /// Its place among the few that are shown where there is little room, the most important one first.
    pub key: Option<u8>,
}

/// The subject of a table: a type that stands for what its rows are made of.
pub trait Subject {
    /// One row.
    type Row<'a>;
}

/// How the value of a column is computed from a row.
pub enum Value<S: Subject> {
    /// A name.
    Text(for<'a> fn(&'a S::Row<'a>) -> Option<&'a str>),
    /// A count or an instant.
    Int(for<'a> fn(&'a S::Row<'a>) -> Option<u64>),
    /// A measure.
    Float(for<'a> fn(&'a S::Row<'a>) -> Option<f64>),
    /// A column a resource, in base units.
    Ints(for<'a> fn(&'a S::Row<'a>, usize) -> Option<u64>),
    /// A column a resource.
    Floats(for<'a> fn(&'a S::Row<'a>, usize) -> Option<f64>),
}

// What would be derived asks the rows to be `Copy`, too.
impl<S: Subject> Clone for Value<S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S: Subject> Copy for Value<S> {}

impl<S: Subject> Value<S> {
    /// Computes it, for resource `d` if there is a column a resource.
    pub fn cell<'a>(&self, row: &'a S::Row<'a>, d: usize) -> Cell<'a> {
        match self {
            Value::Text(of) => of(row).into(),
            Value::Int(of) => of(row).into(),
            Value::Float(of) => of(row).into(),
            Value::Ints(of) => of(row, d).into(),
            Value::Floats(of) => of(row, d).into(),
        }
    }
}

/// A way to compute a value: it decides the type of the column.
pub trait Computed {
    /// The type.
    fn kind(&self) -> Kind;

    /// Whether there is a column a resource.
    fn each(&self) -> bool;
}

/// A column of which nothing but the type is known here.
impl Computed for Kind {
    fn kind(&self) -> Kind {
        *self
    }

    fn each(&self) -> bool {
        false
    }
}

impl<S: Subject> Computed for Value<S> {
    fn kind(&self) -> Kind {
        match self {
            Value::Text(_) => Kind::Text,
            Value::Int(_) | Value::Ints(_) => Kind::Int,
            Value::Float(_) | Value::Floats(_) => Kind::Float,
        }
    }

    fn each(&self) -> bool {
        matches!(self, Value::Ints(_) | Value::Floats(_))
    }
}

/// A column: everything that is said of it anywhere. In texts `<r>` stands for a resource.
#[derive(Clone, Copy)]
pub struct Column<V> {
    /// Its name, with the unit as its suffix.
    pub name: &'static str,
    /// The meaning.
    pub about: &'static str,
    /// How its value is computed.
    pub value: V,
    /// The unit.
    pub unit: Unit,
    /// Which end is the good one.
    pub better: Better,
    /// Its name on the axis of a figure and in sentences; empty if that is made of the name.
    pub words: &'static str,
    /// Its place in the summary of runs.
    pub headline: Option<Headline>,
    /// Whether it is an input: the same in all runs of a cell, so that nothing is tested.
    pub given: bool,
}

impl<V: Copy> Column<V> {
    /// A column of plain numbers or names.
    pub const fn new(name: &'static str, about: &'static str, value: V) -> Column<V> {
        let (unit, better) = (Unit::Plain, Better::Neither);
        Column { name, about, value, unit, better, words: "", headline: None, given: false }
    }

    /// In this unit.
    pub const fn unit(self, unit: Unit) -> Column<V> {
        Column { unit, ..self }
    }

    /// Small values are better.
    pub const fn lower(self) -> Column<V> {
        Column { better: Better::Lower, ..self }
    }

    /// Large values are better.
    pub const fn higher(self) -> Column<V> {
        Column { better: Better::Higher, ..self }
    }

    /// With a name for people.
    pub const fn words(self, words: &'static str) -> Column<V> {
        Column { words, ..self }
    }

    /// Shown in the summary of runs.
    pub const fn headline(self, topic: Topic, heading: &'static str) -> Column<V> {
        Column { headline: Some(Headline { topic, heading, key: None }), ..self }
    }

    /// Shown there also where there is little room, in this place; of a column a resource the first one.
    pub const fn key_headline(self, topic: Topic, heading: &'static str, place: u8) -> Column<V> {
        Column { headline: Some(Headline { topic, heading, key: Some(place) }), ..self }
    }

    /// An input of the run.
    pub const fn given(self) -> Column<V> {
        Column { given: true, ..self }
    }
}

impl<S: Subject> Column<Value<S>> {
    /// A column of names.
    pub const fn text(
        name: &'static str,
        about: &'static str,
        of: for<'a> fn(&'a S::Row<'a>) -> Option<&'a str>,
    ) -> Self {
        Column::new(name, about, Value::Text(of))
    }

    /// A column of integers.
    pub const fn int(name: &'static str, about: &'static str, of: for<'a> fn(&'a S::Row<'a>) -> Option<u64>) -> Self {
        Column::new(name, about, Value::Int(of))
    }

    /// A column of instants or spans in microseconds.
    pub const fn micros(
        name: &'static str,
        about: &'static str,
        of: for<'a> fn(&'a S::Row<'a>) -> Option<u64>,
    ) -> Self {
        Column::int(name, about, of).unit(Unit::Micros)
    }

    /// A column of numbers.
    pub const fn float(name: &'static str, about: &'static str, of: for<'a> fn(&'a S::Row<'a>) -> Option<f64>) -> Self {
        Column::new(name, about, Value::Float(of))
    }

    /// A column of spans in seconds.
    pub const fn seconds(
        name: &'static str,
        about: &'static str,
        of: for<'a> fn(&'a S::Row<'a>) -> Option<f64>,
    ) -> Self {
        Column::float(name, about, of).unit(Unit::Seconds)
    }

    /// A column of shares of a whole.
    pub const fn share(name: &'static str, about: &'static str, of: for<'a> fn(&'a S::Row<'a>) -> Option<f64>) -> Self {
        Column::float(name, about, of).unit(Unit::Share)
    }

    /// A column of numbers for each resource.
    pub const fn floats(
        name: &'static str,
        about: &'static str,
        of: for<'a> fn(&'a S::Row<'a>, usize) -> Option<f64>,
    ) -> Self {
        Column::new(name, about, Value::Floats(of))
    }
}

/// A column of the schema of a run, whose resources are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described {
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: Kind,
    /// The meaning.
    pub about: String,
    /// The unit.
    pub unit: Unit,
    /// Which end is the good one.
    pub better: Better,
    /// Its name for people; empty if that is made of the name.
    pub words: String,
    /// Its place in the summary of runs: part, heading, and place where there is little room.
    pub headline: Option<(Topic, String, Option<u8>)>,
    /// Whether it is an input of the run.
    pub given: bool,
}

impl<V: Computed> Column<V> {
    /// It in a run with these resources: one column, or one each.
    pub fn described(&self, dims: &[Dim]) -> Vec<Described> {
        let one = |(place, dim): (usize, Option<&Dim>)| {
            let resource = dim.map_or("", |dim| &dim.name);
            let unit = match (dim, self.value.kind()) {
                (Some(dim), Kind::Int) => dim.column(),
                _ => resource.to_owned(),
            };
            let headline = self.headline.map(|Headline { topic, heading, key }| {
                (topic, heading.replace("<r>", &resource_name(resource)), key.filter(|_| place == 0))
            });
            Described {
                name: self.name.replace("<r>", &unit),
                kind: self.value.kind(),
                about: self.about.replace("<r>", resource),
                unit: self.unit,
                better: self.better,
                words: self.words.replace("<r>", &resource_name(resource)),
                headline,
                given: self.given,
            }
        };
        match self.value.each() {
            false => vec![one((0, None))],
            true => dims.iter().map(Some).enumerate().map(one).collect(),
        }
    }
}
