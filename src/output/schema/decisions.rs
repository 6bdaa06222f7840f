//! The table of decisions.

use super::{Table, Written};
use crate::column::{Column, Subject, Unit, Value};
use crate::policy::{GroupTree, Reason};
use crate::record::{Decision, Turn};
use crate::units::Dim;

/// The subject of the table `decisions`.
pub struct Decisions;

/// A decision.
#[derive(Clone, Debug)]
pub struct Decided<'a> {
    /// The engine's word.
    pub decision: &'a Decision<'a>,
    /// The name of the job.
    pub job: &'a str,
    /// The name of the user.
    pub user: &'a str,
    /// The user's weighted dominant share before.
    pub share: f64,
    /// Its rank, as it is written.
    pub rank: &'a str,
    /// The groups of the policy.
    pub groups: Option<&'a GroupTree>,
    /// The resources.
    pub dims: &'a [Dim],
}

impl<'a> Decided<'a> {
    fn reason(&self) -> Option<&'a str> {
        match self.decision.turn {
            Turn::NotAdmitted(Reason::Rule(words)) => Some(words),
            Turn::NotAdmitted(Reason::Quota { .. }) => Some("quota"),
            Turn::Launched(_) | Turn::Blocked => None,
        }
    }

    /// The quota that was too small: its group, the resource, and by how much.
    fn short(&self) -> Option<(u32, &'a Dim, u64)> {
        match self.decision.turn {
            Turn::NotAdmitted(Reason::Quota { group, resource, short }) => {
                Some((group, &self.dims[usize::from(resource)], short))
            }
            _ => None,
        }
    }
}

impl Subject for Decisions {
    type Row<'a> = Decided<'a>;
}

impl Written for Decisions {
    const TABLE: Table = Table::Decisions;

    fn columns() -> Vec<Column<Value<Decisions>>> {
        type C = Column<Value<Decisions>>;
        vec![
            C::micros("time_us", "when", |row| Some(row.decision.now.0)),
            C::text("user", "the user in turn: the first in line among those not decided yet", |row| Some(row.user)),
            C::text("job", "job of its next task", |row| Some(row.job)),
            C::int("task", "number of that task within the job, from 0", |row| Some(row.decision.task)),
            C::text("turn", "launched, blocked or not admitted", |row| {
                Some(match row.decision.turn {
                    Turn::Launched(_) => "launched",
                    Turn::Blocked => "blocked",
                    Turn::NotAdmitted(_) => "not admitted",
                })
            }),
            C::int("machine", "where it was launched; null when pooled or not launched", |row| {
                match row.decision.turn {
                    Turn::Launched(machine) => Some(machine?.0.into()),
                    Turn::Blocked | Turn::NotAdmitted(_) => None,
                }
            }),
            C::share("dominant_share", "the user's weighted dominant share before its turn", |row| Some(row.share)),
            C::text("rank", "the policy's rank before its turn, in hexadecimal; lowest first", |row| Some(row.rank)),
            C::text("reason", "why it was not admitted: quota, or the policy's own words", |row| row.reason()),
            C::text(
                "short_group",
                "the group that has too little quota left for it: the user's own or one above it",
                |row| Some(&row.groups?.groups.get(row.short()?.0 as usize)?.name),
            ),
            C::text("short_resource", "the resource of which it has too little", |row| Some(&row.short()?.1.name)),
            C::float("short_amount", "by how much, in the unit people write", |row| {
                let (_, dim, short) = row.short()?;
                Some(short as f64 / dim.unit.scale() as f64)
            })
            .unit(Unit::Amount),
        ]
    }
}
