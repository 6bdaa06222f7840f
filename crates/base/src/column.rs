//! A column of a table, declared once: name, value, unit, meaning, which end is the good one, and where it is shown.
//!
//! A list of columns is at once the schema of a table and what writes its rows, so that the two cannot disagree. The type of a
//! column is that of the function that computes its value.

use crate::names::Listed;
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
    #[inline]
    fn from(value: u64) -> Self {
        i64::try_from(value).map_or(Cell::Large(value), Cell::Int)
    }
}

impl From<f64> for Cell<'_> {
    #[inline]
    fn from(value: f64) -> Self {
        if value.is_finite() { Cell::Float(value) } else { Cell::Null }
    }
}

impl<'a> From<&'a str> for Cell<'a> {
    #[inline]
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
    /// Neither end is better.
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
pub struct Headline<T = &'static str> {
    /// The part that it belongs to.
    pub topic: Topic,
    /// Its heading, short.
    pub heading: T,
    /// Its place among the few that are shown where there is little room, the most important one first.
    pub key: Option<u8>,
}

/// A kind of row of a table.
pub trait TableRow: Sized + 'static {
    /// The data of one row, possibly borrowed.
    type Of<'a>;

    /// The name of the table.
    const TABLE: &'static str;

    /// Its columns, in order.
    fn columns() -> Vec<Column<ColumnValue<Self>>>;
}

/// Gives a name.
pub type OfText<R> = for<'a> fn(&'a <R as TableRow>::Of<'a>) -> Option<&'a str>;
/// Gives a name of a list.
pub type OfName<R> = for<'a> fn(&'a <R as TableRow>::Of<'a>) -> Listed<'a>;
/// Gives a count or an instant.
pub type OfInt<R> = for<'a> fn(&'a <R as TableRow>::Of<'a>) -> Option<u64>;
/// Gives a measure.
pub type OfFloat<R> = for<'a> fn(&'a <R as TableRow>::Of<'a>) -> Option<f64>;
/// Gives an amount of a resource in base units.
pub type OfInts<R> = for<'a> fn(&'a <R as TableRow>::Of<'a>, usize) -> Option<u64>;
/// Gives a measure of a resource.
pub type OfFloats<R> = for<'a> fn(&'a <R as TableRow>::Of<'a>, usize) -> Option<f64>;

/// How the value of a column is computed from a row: one, or one a resource.
pub enum ColumnValue<R: TableRow> {
    /// A name.
    Text(OfText<R>),
    /// A name of a list, which many rows have.
    Name(OfName<R>),
    /// A count or an instant.
    Int(OfInt<R>),
    /// A measure.
    Float(OfFloat<R>),
    /// A column a resource, in base units.
    Ints(OfInts<R>),
    /// A column a resource.
    Floats(OfFloats<R>),
}

// What would be derived asks the rows to be `Copy`, too.
impl<R: TableRow> Clone for ColumnValue<R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R: TableRow> Copy for ColumnValue<R> {}

impl<R: TableRow> ColumnValue<R> {
    /// Computes it, for resource `d` if there is a column a resource.
    pub fn cell<'a>(&self, row: &'a R::Of<'a>, d: usize) -> Cell<'a> {
        match self {
            ColumnValue::Text(of) => of(row).into(),
            ColumnValue::Name(of) => of(row).name().into(),
            ColumnValue::Int(of) => of(row).into(),
            ColumnValue::Float(of) => of(row).into(),
            ColumnValue::Ints(of) => of(row, d).into(),
            ColumnValue::Floats(of) => of(row, d).into(),
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

/// The columns of a table as it was read: the type is known, the computation is not.
impl Computed for Kind {
    fn kind(&self) -> Kind {
        *self
    }

    fn each(&self) -> bool {
        false
    }
}

impl<R: TableRow> Computed for ColumnValue<R> {
    fn kind(&self) -> Kind {
        match self {
            ColumnValue::Text(_) | ColumnValue::Name(_) => Kind::Text,
            ColumnValue::Int(_) | ColumnValue::Ints(_) => Kind::Int,
            ColumnValue::Float(_) | ColumnValue::Floats(_) => Kind::Float,
        }
    }

    fn each(&self) -> bool {
        matches!(self, ColumnValue::Ints(_) | ColumnValue::Floats(_))
    }
}

/// Declares a column. In its texts, `<r>` is a placeholder for the name of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column<V, T = &'static str> {
    /// Its name, with the unit as its suffix.
    pub name: T,
    /// The meaning.
    pub about: T,
    /// How its value is computed, or the type that follows from that.
    pub value: V,
    /// The unit.
    pub unit: Unit,
    /// Which end is the good one.
    pub better: Better,
    /// Its name on the axis of a figure and in sentences; if empty, it is derived from the name of the column.
    pub words: T,
    /// Its place in the summary of runs.
    pub headline: Option<Headline<T>>,
    /// Whether the column is an input. All runs of a cell have the same value, so it is not tested.
    pub given: bool,
    /// Whether nearly all values differ, or the column is a time.
    pub distinct: bool,
}

/// A column with the names of a run's resources filled in.
pub type Described = Column<Kind, String>;

impl<V: Copy> Column<V> {
    /// A column of plain numbers or names.
    pub const fn new(name: &'static str, about: &'static str, value: V) -> Self {
        let (unit, better) = (Unit::Plain, Better::Neither);
        Column { name, about, value, unit, better, words: "", headline: None, given: false, distinct: false }
    }

    /// In this unit.
    pub const fn unit(self, unit: Unit) -> Self {
        Column { unit, ..self }
    }

    /// Small values are better.
    pub const fn lower(self) -> Self {
        Column { better: Better::Lower, ..self }
    }

    /// Large values are better.
    pub const fn higher(self) -> Self {
        Column { better: Better::Higher, ..self }
    }

    /// With a name for people.
    pub const fn words(self, words: &'static str) -> Self {
        Column { words, ..self }
    }

    /// Shown in the summary of runs.
    pub const fn headline(self, topic: Topic, heading: &'static str) -> Self {
        Column { headline: Some(Headline { topic, heading, key: None }), ..self }
    }

    /// Shown there also where there is little room, in this place; of a column a resource the first one.
    pub const fn key_headline(self, topic: Topic, heading: &'static str, place: u8) -> Self {
        Column { headline: Some(Headline { topic, heading, key: Some(place) }), ..self }
    }

    /// An input of the run.
    pub const fn given(self) -> Self {
        Column { given: true, ..self }
    }

    /// Of values that are nearly all different.
    pub const fn distinct(self) -> Self {
        Column { distinct: true, ..self }
    }
}

impl<R: TableRow> Column<ColumnValue<R>> {
    /// A column of names.
    pub const fn text(name: &'static str, about: &'static str, of: OfText<R>) -> Self {
        Column::new(name, about, ColumnValue::Text(of))
    }

    /// A column of names of a list.
    pub const fn listed(name: &'static str, about: &'static str, of: OfName<R>) -> Self {
        Column::new(name, about, ColumnValue::Name(of))
    }

    /// A column of integers.
    pub const fn int(name: &'static str, about: &'static str, of: OfInt<R>) -> Self {
        Column::new(name, about, ColumnValue::Int(of))
    }

    /// A column of instants or spans in microseconds.
    pub const fn micros(name: &'static str, about: &'static str, of: OfInt<R>) -> Self {
        Column::int(name, about, of).unit(Unit::Micros).distinct()
    }

    /// A column of numbers.
    pub const fn float(name: &'static str, about: &'static str, of: OfFloat<R>) -> Self {
        Column::new(name, about, ColumnValue::Float(of))
    }

    /// A column of amounts in the unit people write.
    pub const fn amount(name: &'static str, about: &'static str, of: OfFloat<R>) -> Self {
        Column::float(name, about, of).unit(Unit::Amount)
    }

    /// A column of such amounts times seconds.
    pub const fn area(name: &'static str, about: &'static str, of: OfFloat<R>) -> Self {
        Column::float(name, about, of).unit(Unit::AmountSeconds)
    }

    /// A column of spans in seconds.
    pub const fn seconds(name: &'static str, about: &'static str, of: OfFloat<R>) -> Self {
        Column::float(name, about, of).unit(Unit::Seconds)
    }

    /// A column of shares of a whole.
    pub const fn share(name: &'static str, about: &'static str, of: OfFloat<R>) -> Self {
        Column::float(name, about, of).unit(Unit::Share)
    }

    /// A column of numbers for each resource.
    pub const fn floats(name: &'static str, about: &'static str, of: OfFloats<R>) -> Self {
        Column::new(name, about, ColumnValue::Floats(of))
    }
}

impl<V: Computed> Column<V> {
    /// It in a run with these resources: one column, or one each.
    pub fn described(&self, dims: &[Dim]) -> Vec<Described> {
        let (kind, of) = (self.value.kind(), |text: &str, resource: &str| text.replace("<r>", resource));
        let one = |(place, dim): (usize, Option<&Dim>)| {
            let resource = dim.map_or("", |dim| &dim.name);
            let people = resource_name(resource);
            let amount = dim.filter(|_| kind == Kind::Int).map_or(resource.to_owned(), Dim::column);
            let headline = self.headline.map(|Headline { topic, heading, key }| {
                let key = key.filter(|_| place == 0);
                Headline { topic, heading: of(heading, &people), key }
            });
            Column {
                name: of(self.name, &amount),
                about: of(self.about, resource),
                value: kind,
                unit: self.unit,
                better: self.better,
                words: of(self.words, &people),
                headline,
                given: self.given,
                distinct: self.distinct,
            }
        };
        match self.value.each() {
            false => vec![one((0, None))],
            true => dims.iter().map(Some).enumerate().map(one).collect(),
        }
    }
}
