//! The tables of users over time: their usage and shares.

use plimsoll_base::column::{Column, ColumnValue, TableRow, Unit};
use plimsoll_base::names::Listed;
use plimsoll_base::units::{Time, UserId};
use plimsoll_sim::books::Books;

/// The usage of a user from a change on.
pub struct Used<'a> {
    /// The time of the change or grid point.
    pub at: Time,
    /// The user.
    pub user: UserId,
    /// The name of the user.
    pub name: Listed<'a>,
    /// The books at that time.
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
pub struct ShareRow<'a> {
    /// The time of the change or grid point.
    pub at: Time,
    /// The name of the user.
    pub name: Listed<'a>,
    /// The dominant share by true usage.
    pub share: f64,
    /// The number of waiting tasks.
    pub waiting: u64,
    /// The dominant share under fluid fair sharing.
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
