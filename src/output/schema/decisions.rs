//! The table of decisions.

use crate::column::{Column, Row, Value};
use crate::policy::{GroupTree, Reason};
use crate::record::{Decision, Turn};
use crate::units::Dim;

/// A decision.
pub(crate) struct Decided<'a> {
    pub decision: &'a Decision<'a>,
    pub job: &'a str,
    pub user: &'a str,
    pub share: f64,
    pub rank: &'a str,
    pub groups: Option<&'a GroupTree>,
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

impl Row for Decided<'static> {
    type Of<'a> = Decided<'a>;

    const TABLE: &'static str = "decisions";

    fn columns() -> Vec<Column<Value<Self>>> {
        type C = Column<Value<Decided<'static>>>;
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
            C::amount("short_amount", "by how much, in the unit people write", |row| {
                let (_, dim, short) = row.short()?;
                Some(short as f64 / dim.unit.scale() as f64)
            }),
        ]
    }
}
