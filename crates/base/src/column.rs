//! Columns of tables. Each is declared once: name, value, unit, meaning, better direction, and place in summaries.
//!
//! A list of columns is the schema of a table and also computes the values of its rows, so the two cannot disagree. The type of a column is
//! the result type of the function that computes its value.

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
    /// A number from 2^63 on; only columns of doubles can contain it.
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
    /// No unit: a count, a factor, a name.
    Plain,
    /// Seconds.
    Seconds,
    /// Microseconds: an instant of the run, or a span.
    Micros,
    /// A share of a whole, shown in percent.
    Share,
    /// An index from 0 to 1 that is not a share of a whole.
    Index,
    /// An amount of a resource in base units: thousandths, MiB.
    Base,
    /// An amount of a resource in the unit for users: cores, GiB.
    Amount,
    /// An amount of a resource in the unit for users, times seconds.
    AmountSeconds,
}

impl Unit {
    /// Returns the name of the unit in the schema.
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

    /// Returns the suffix of the names of columns with this unit.
    pub fn suffix(self) -> &'static str {
        match self {
            Unit::Seconds | Unit::AmountSeconds => "_s",
            Unit::Micros => "_us",
            _ => "",
        }
    }
}

/// Which direction of a quantity is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Small values are better.
    Lower,
    /// Large values are better.
    Higher,
    /// Neither direction is better.
    Neither,
}

/// The two parts of a summary of runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Topic {
    /// Delays: the time that jobs took.
    Delay,
    /// Sharing: how well and how fairly the cluster was used.
    Sharing,
}

/// The place of a column in the summary of runs, on the terminal and in the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headline<T = &'static str> {
    /// The part of the summary.
    pub topic: Topic,
    /// The short heading.
    pub heading: T,
    /// The rank among the few columns that are shown where space is limited, the most important one first.
    pub key: Option<u8>,
}

/// A kind of row of a table.
pub trait TableRow: Sized + 'static {
    /// The data of one row, possibly borrowed.
    type Of<'a>;

    /// The name of the table.
    const TABLE: &'static str;

    /// Returns the columns of the table, in order.
    fn columns() -> Vec<Column<ColumnValue<Self>>>;
}

/// A function that returns a text.
pub type OfText<R> = for<'a> fn(&'a <R as TableRow>::Of<'a>) -> Option<&'a str>;
/// A function that returns a name of a list.
pub type OfName<R> = for<'a> fn(&'a <R as TableRow>::Of<'a>) -> Listed<'a>;
/// A function that returns a count or an instant.
pub type OfInt<R> = for<'a> fn(&'a <R as TableRow>::Of<'a>) -> Option<u64>;
/// A function that returns a measure.
pub type OfFloat<R> = for<'a> fn(&'a <R as TableRow>::Of<'a>) -> Option<f64>;
/// A function that returns an amount of a resource in base units.
pub type OfInts<R> = for<'a> fn(&'a <R as TableRow>::Of<'a>, usize) -> Option<u64>;
/// A function that returns a measure of a resource.
pub type OfFloats<R> = for<'a> fn(&'a <R as TableRow>::Of<'a>, usize) -> Option<f64>;

/// The function that computes a column's value from a row: one value, or one for each resource.
pub enum ColumnValue<R: TableRow> {
    /// A text.
    Text(OfText<R>),
    /// A name of a list; many rows have the same name.
    Name(OfName<R>),
    /// A count or an instant.
    Int(OfInt<R>),
    /// A measure.
    Float(OfFloat<R>),
    /// An amount for each resource, in base units.
    Ints(OfInts<R>),
    /// A measure for each resource.
    Floats(OfFloats<R>),
}

// A derived implementation would require the rows to be `Copy`, too.
impl<R: TableRow> Clone for ColumnValue<R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R: TableRow> Copy for ColumnValue<R> {}

impl<R: TableRow> ColumnValue<R> {
    /// Computes the value; `d` is the index of the resource, if there is a column for each resource.
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

/// The source of a column's values, which determines the type of the column.
pub trait Computed {
    /// Returns the type.
    fn kind(&self) -> Kind;

    /// Returns whether there is a column for each resource.
    fn each(&self) -> bool;
}

/// The type of a column of a table that was read from a file. The function that computed the values is not known.
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

/// The declaration of a column. In its texts, `<r>` is a placeholder for the name of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column<V, T = &'static str> {
    /// The name, with the unit as its suffix.
    pub name: T,
    /// The meaning.
    pub about: T,
    /// The function that computes the value, or only its type.
    pub value: V,
    /// The unit.
    pub unit: Unit,
    /// Which direction is better.
    pub better: Better,
    /// The name on the axis of a figure and in sentences; if empty, it is derived from the name of the column.
    pub words: T,
    /// The place in the summary of runs.
    pub headline: Option<Headline<T>>,
    /// Whether the column is an input. All runs of a cell have the same value, so no statistical test applies.
    pub given: bool,
    /// Whether nearly all values differ.
    pub distinct: bool,
}

/// A column with the names of a run's resources filled in.
pub type Described = Column<Kind, String>;

impl<V: Copy> Column<V> {
    /// Creates a column of plain numbers or names.
    pub const fn new(name: &'static str, about: &'static str, value: V) -> Self {
        let (unit, better) = (Unit::Plain, Better::Neither);
        Column { name, about, value, unit, better, words: "", headline: None, given: false, distinct: false }
    }

    /// Sets the unit.
    pub const fn unit(self, unit: Unit) -> Self {
        Column { unit, ..self }
    }

    /// Declares small values as better.
    pub const fn lower(self) -> Self {
        Column { better: Better::Lower, ..self }
    }

    /// Declares large values as better.
    pub const fn higher(self) -> Self {
        Column { better: Better::Higher, ..self }
    }

    /// Sets the name for figures and sentences.
    pub const fn words(self, words: &'static str) -> Self {
        Column { words, ..self }
    }

    /// Shows the column in the summary of runs.
    pub const fn headline(self, topic: Topic, heading: &'static str) -> Self {
        Column { headline: Some(Headline { topic, heading, key: None }), ..self }
    }

    /// Shows the column in the summary of runs, with this rank where space is limited. If there is a column for each resource, the
    /// first one has the rank.
    pub const fn key_headline(self, topic: Topic, heading: &'static str, place: u8) -> Self {
        Column { headline: Some(Headline { topic, heading, key: Some(place) }), ..self }
    }

    /// Declares the column as an input of the run.
    pub const fn given(self) -> Self {
        Column { given: true, ..self }
    }

    /// Declares that nearly all values differ.
    pub const fn distinct(self) -> Self {
        Column { distinct: true, ..self }
    }
}

impl<R: TableRow> Column<ColumnValue<R>> {
    /// Creates a column of texts.
    pub const fn text(name: &'static str, about: &'static str, of: OfText<R>) -> Self {
        Column::new(name, about, ColumnValue::Text(of))
    }

    /// Creates a column of names of a list.
    pub const fn listed(name: &'static str, about: &'static str, of: OfName<R>) -> Self {
        Column::new(name, about, ColumnValue::Name(of))
    }

    /// Creates a column of integers.
    pub const fn int(name: &'static str, about: &'static str, of: OfInt<R>) -> Self {
        Column::new(name, about, ColumnValue::Int(of))
    }

    /// Creates a column of instants or spans in microseconds.
    pub const fn micros(name: &'static str, about: &'static str, of: OfInt<R>) -> Self {
        Column::int(name, about, of).unit(Unit::Micros).distinct()
    }

    /// Creates a column of numbers.
    pub const fn float(name: &'static str, about: &'static str, of: OfFloat<R>) -> Self {
        Column::new(name, about, ColumnValue::Float(of))
    }

    /// Creates a column of amounts in the unit for users.
    pub const fn amount(name: &'static str, about: &'static str, of: OfFloat<R>) -> Self {
        Column::float(name, about, of).unit(Unit::Amount)
    }

    /// Creates a column of amounts in the unit for users, times seconds.
    pub const fn area(name: &'static str, about: &'static str, of: OfFloat<R>) -> Self {
        Column::float(name, about, of).unit(Unit::AmountSeconds)
    }

    /// Creates a column of spans in seconds.
    pub const fn seconds(name: &'static str, about: &'static str, of: OfFloat<R>) -> Self {
        Column::float(name, about, of).unit(Unit::Seconds)
    }

    /// Creates a column of shares of a whole.
    pub const fn share(name: &'static str, about: &'static str, of: OfFloat<R>) -> Self {
        Column::float(name, about, of).unit(Unit::Share)
    }

    /// Creates a column of numbers for each resource.
    pub const fn floats(name: &'static str, about: &'static str, of: OfFloats<R>) -> Self {
        Column::new(name, about, ColumnValue::Floats(of))
    }
}

impl<V: Computed> Column<V> {
    /// Returns the column for a run with these resources: one column, or one for each resource.
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
