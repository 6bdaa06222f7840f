//! The tables of users over time: their usage and shares.

use crate::books::Books;
use crate::column::{Column, ColumnValue, TableRow, Unit};
use crate::names::Listed;
use crate::units::{Time, UserId};

/// The usage of a user from a change on.
pub(crate) struct Used<'a> {
    pub at: Time,
    pub user: UserId,
    pub name: Listed<'a>,
    pub books: &'a Books,
}

impl TableRow for Used<'static> {
    type Of<'a> = Used<'a>;

    const TABLE: &'static str = "usage";

    fn columns() -> Vec<Column<ColumnValue<Self>>> {
        type C = Column<ColumnValue<Used<'static>>>;
        vec![
            C::micros("time_us", "start of the interval", |row| Some(row.at.0)),
            C::listed("user", "name of the user", |row| row.name),
            C::int("running", "running tasks", |row| Some(row.books.running(row.user))),
            C::int("waiting", "waiting tasks", |row| Some(row.books.waiting(row.user))),
            C::new(
                "used_<r>",
                "the use of its running tasks, in base units",
                ColumnValue::Ints(|row, d| Some(row.books.used(row.user)[d])),
            )
            .unit(Unit::Base)
            .words("<r> in use"),
        ]
    }
}

/// An active user at a grid point.
pub(crate) struct ShareRow<'a> {
    pub at: Time,
    pub name: Listed<'a>,
    pub share: f64,
    pub waiting: u64,
    pub fluid: f64,
}

impl TableRow for ShareRow<'static> {
    type Of<'a> = ShareRow<'a>;

    const TABLE: &'static str = "shares";

    fn columns() -> Vec<Column<ColumnValue<Self>>> {
        type C = Column<ColumnValue<ShareRow<'static>>>;
        vec![
            C::micros("time_us", "grid point", |row| Some(row.at.0)),
            C::listed("user", "name of the user", |row| row.name),
            C::share("dominant_share", "largest share of a resource by its true usage", |row| Some(row.share)),
            C::int("waiting", "waiting tasks", |row| Some(row.waiting)),
            C::share(
                "fluid_share",
                "its dominant share under weighted DRF with divisible tasks of its mean demand, at most its number of tasks",
                |row| Some(row.fluid),
            ),
        ]
    }
}
