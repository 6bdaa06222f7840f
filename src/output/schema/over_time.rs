//! The tables of users over time: what they use, and their shares.

use super::{Table, Written};
use crate::books::Books;
use crate::column::{Column, Subject, Unit, Value};
use crate::units::{Time, UserId};

/// The subject of the table `usage`.
pub struct Usage;

/// A user from a change on.
#[derive(Clone, Debug)]
pub struct Used<'a> {
    /// When.
    pub at: Time,
    /// The user.
    pub user: UserId,
    /// Its name.
    pub name: &'a str,
    /// The state.
    pub books: &'a Books,
}

impl Subject for Usage {
    type Row<'a> = Used<'a>;
}

impl Written for Usage {
    const TABLE: Table = Table::Usage;

    fn columns() -> Vec<Column<Value<Usage>>> {
        type C = Column<Value<Usage>>;
        vec![
            C::micros("time_us", "from when on", |row| Some(row.at.0)),
            C::text("user", "name of the user", |row| Some(row.name)),
            C::int("running", "running tasks", |row| Some(row.books.running(row.user))),
            C::int("waiting", "waiting tasks", |row| Some(row.books.waiting(row.user))),
            C::new(
                "used_<r>",
                "the use of its running tasks, in base units",
                Value::Ints(|row, d| Some(row.books.used(row.user)[d])),
            )
            .unit(Unit::Base)
            .words("<r> in use"),
        ]
    }
}

/// The subject of the table `shares`.
pub struct Shares;

/// An active user at a grid point.
#[derive(Clone, Debug)]
pub struct Share<'a> {
    /// When.
    pub at: Time,
    /// Its name.
    pub name: &'a str,
    /// Its dominant share.
    pub share: f64,
    /// Its waiting tasks.
    pub waiting: u64,
    /// Its dominant share with divisible tasks.
    pub fluid: f64,
}

impl Subject for Shares {
    type Row<'a> = Share<'a>;
}

impl Written for Shares {
    const TABLE: Table = Table::Shares;

    fn columns() -> Vec<Column<Value<Shares>>> {
        type C = Column<Value<Shares>>;
        vec![
            C::micros("time_us", "grid point", |row| Some(row.at.0)),
            C::text("user", "name of the user", |row| Some(row.name)),
            C::share("dominant_share", "largest share of any resource that it truly uses", |row| Some(row.share)),
            C::int("waiting", "waiting tasks", |row| Some(row.waiting)),
            C::share(
                "fluid_share",
                "its dominant share under weighted DRF with divisible tasks of its mean demand, no more than it has",
                |row| Some(row.fluid),
            ),
        ]
    }
}
