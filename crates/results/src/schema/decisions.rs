//! The table of decisions.

use plimsoll_base::column::{Column, ColumnValue, TableRow};
use plimsoll_base::names::Listed;
use plimsoll_base::units::Dim;
use plimsoll_sim::policy::{GroupTree, Reason};
use plimsoll_sim::record::{Decision, Turn, Untried};

/// A decision.
pub struct Decided<'a> {
    /// The decision as the engine recorded it.
    pub decision: &'a Decision<'a>,
    /// The job of the user's next task.
    pub job: &'a str,
    /// The job behind which it waits.
    pub behind: Option<&'a str>,
    /// The user of the attempt.
    pub user: Listed<'a>,
    /// The user's weighted dominant share before the attempt.
    pub share: f64,
    /// The policy's rank before the attempt.
    pub rank: &'a str,
    /// The tree of groups, if the policy has one.
    pub groups: Option<&'a GroupTree>,
    /// The resource dimensions.
    pub dims: &'a [Dim],
}

impl<'a> Decided<'a> {
    fn reason(&self) -> Option<&'a str> {
        match self.decision.turn {
            Turn::NotAdmitted(Reason::Rule(words) | Reason::NoRoom(words)) => Some(words),
            Turn::Displaced(cause) => Some(cause.rule),
            Turn::NotAdmitted(Reason::Quota { .. }) => Some("quota"),
            Turn::Blocked(_) => Some("room"),
            Turn::Waits(Untried::BehindOwn) => Some("own job first"),
            Turn::Waits(Untried::RoundEnded) => Some("round ended"),
            Turn::Launched(_) => None,
        }
    }

    /// Returns the group with the exhausted quota.
    fn group(&self) -> Option<u32> {
        match self.decision.turn {
            Turn::NotAdmitted(Reason::Quota { group, .. }) => Some(group),
            _ => None,
        }
    }

    /// Returns the resource that lacks quota or room (`None` for slots), and the amount in base units.
    fn short(&self) -> Option<(Option<&'a Dim>, u64)> {
        let (resource, amount) = match self.decision.turn {
            Turn::NotAdmitted(Reason::Quota { resource, short, .. }) => (Some(resource), short),
            Turn::Blocked(short) => short.map(|short| (short.resource, short.amount))?,
            Turn::NotAdmitted(Reason::Rule(_) | Reason::NoRoom(_))
            | Turn::Waits(_)
            | Turn::Launched(_)
            | Turn::Displaced(_) => {
                return None;
            }
        };
        Some((resource.map(|resource| &self.dims[usize::from(resource)]), amount))
    }
}

impl TableRow for Decided<'static> {
    type Of<'a> = Decided<'a>;

    const TABLE: &'static str = "decisions";

    fn columns() -> Vec<Column<ColumnValue<Self>>> {
        type C = Column<ColumnValue<Decided<'static>>>;
        vec![
            C::micros("time_us", "instant of the round", |row| Some(row.decision.now.0)),
            C::listed(
                "user",
                "the user of the attempt: the first in the order among the users not decided yet",
                |row| row.user,
            ),
            C::text("job", "job of its next task", |row| Some(row.job)),
            C::int("task", "number of that task within the job, from 0", |row| Some(row.decision.task)),
            C::text(
                "turn",
                "launched, blocked, not admitted, waits (not attempted) or displaced (running tasks of the job were stopped)",
                |row| {
                    Some(match row.decision.turn {
                        Turn::Launched(_) => "launched",
                        Turn::Blocked(_) => "blocked",
                        Turn::NotAdmitted(_) => "not admitted",
                        Turn::Waits(_) => "waits",
                        Turn::Displaced(_) => "displaced",
                    })
                },
            ),
            C::text(
                "behind_job",
                "the job behind which it waits: a job of the same user, or the job at which the round ended",
                |row| row.behind,
            ),
            C::int("machine", "where it was launched; null when pooled or not launched", |row| {
                match row.decision.turn {
                    Turn::Launched(machine) => Some(machine?.0.into()),
                    Turn::Blocked(_) | Turn::NotAdmitted(_) | Turn::Waits(_) | Turn::Displaced(_) => None,
                }
            }),
            C::share("dominant_share", "the user's weighted dominant share before its turn", |row| Some(row.share)),
            C::text(
                "rank",
                "the policy's rank before its turn: words of 64 bits in decimal, fewer words and lower ones first",
                |row| Some(row.rank),
            ),
            C::text(
                "reason",
                "why it was not launched, or was stopped: room, quota, own job first, round ended, or a text of the policy",
                |row| row.reason(),
            ),
            C::text(
                "short_group",
                "the group with too little remaining quota: the user's group or a group above it",
                |row| Some(&row.groups?.groups.get(row.group()? as usize)?.name),
            ),
            C::text(
                "short_resource",
                "the resource that is short: in the group's quota, or on the machine where the largest missing part of the request \
                 is smallest; slots under slots; null if one task of a gang fits but not the whole gang",
                |row| Some(row.short()?.0.map_or("slots", |dim| &dim.name)),
            ),
            C::amount("short_amount", "the missing amount, in the display unit", |row| {
                let (dim, short) = row.short()?;
                Some(dim.map_or(short as f64, |dim| dim.amount(short)))
            }),
        ]
    }
}
