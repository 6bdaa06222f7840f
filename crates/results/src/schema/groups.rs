//! The tables of groups of users: their guarantees and the time below them, and their quotas over time.

use plimsoll_base::column::{Column, ColumnValue, TableRow};
use plimsoll_base::units::{Dim, Span, Time};
use plimsoll_metrics::{GroupSums, GroupTimes, Holding};
use plimsoll_sim::policy::{GroupLevel, GroupLimits, GroupNode};

/// Ratios are stored in millionths.
const RATIO_ONE: f64 = 1e6;

/// A group and a resource at the end of a run.
pub struct GroupRow<'a> {
    /// The group.
    pub about: &'a GroupNode,
    /// The group above it.
    pub parent: Option<&'a str>,
    /// The combination of minimum and ratio.
    pub variant: &'a str,
    /// The resource.
    pub dim: &'a Dim,
    /// The largest total of its tree during the run, in base units.
    pub most: u64,
    /// The limits of the group for this resource.
    pub limits: &'a GroupLimits,
    /// Integrals over time for this resource.
    pub sums: &'a GroupSums,
    /// Times and counts of the group.
    pub times: &'a GroupTimes,
}

impl GroupRow<'_> {
    /// Returns an amount times seconds.
    fn area(&self, base_us: u128) -> Option<f64> {
        Some(base_us as f64 / self.dim.unit.scale() as f64 / 1e6)
    }
}

impl TableRow for GroupRow<'static> {
    type Of<'a> = GroupRow<'a>;

    const TABLE: &'static str = "groups";

    fn columns() -> Vec<Column<ColumnValue<Self>>> {
        type C = Column<ColumnValue<GroupRow<'static>>>;
        vec![
            C::text("group", "name", |row| Some(&row.about.name)),
            C::text("parent", "the group above it; null directly below the cluster", |row| row.parent),
            C::text("label", "the label of the tree that it belongs to; null in the default tree", |row| {
                row.about.label.as_deref()
            }),
            C::text("resource", "name of the resource", |row| Some(&row.dim.name)),
            C::amount(
                "capacity",
                "the largest total of its tree during the run; without labels, the capacity of the cluster",
                |row| Some(row.dim.amount(row.most)),
            ),
            C::text("variant", "how minimum and ratio are combined: min-plus-share or max-min-level", |row| {
                Some(row.variant)
            }),
            C::float("ratio", "its ratio in sharing the amount above the minimums", |row| {
                Some(row.limits.ratio as f64 / RATIO_ONE)
            }),
            C::amount("min", "the guaranteed amount", |row| Some(row.dim.amount(row.limits.min))),
            C::amount("max", "the largest amount that it may use; null for no limit", |row| {
                Some(row.dim.amount(row.limits.max)).filter(|_| row.limits.max < u64::MAX)
            }),
            C::area("used_s", "its use, times seconds (core seconds, GiB seconds)", |row| row.area(row.sums.used_us)),
            C::area("demand_s", "its allocation and pending demand, limited to its max, times seconds", |row| {
                row.area(row.sums.demand_us)
            }),
            C::area("borrowed_s", "its use above its min, times seconds", |row| row.area(row.sums.borrowed_us)),
            C::area(
                "spare_s",
                "the part of its min that it did not request, which others can use if it lends, times seconds",
                |row| row.area(row.sums.spare_us),
            ),
            C::area(
                "short_s",
                "deficit below its guarantee, times seconds; the guarantee is its demand, at most its min",
                |row| row.area(row.sums.short_us),
            )
            .lower(),
            C::seconds("below_min_s", "time below its guarantee of this resource", |row| {
                Some(Span(row.sums.below_us).seconds())
            })
            .lower(),
            C::seconds(
                "below_min_any_s",
                "time below its guarantee of any resource; the same in all rows of a group",
                |row| Some(Span(row.times.below_us).seconds()),
            )
            .lower(),
            C::int(
                "returns",
                "number of returns of lent amounts: its guarantee grew above its allocation, and its allocation reached the \
                 guarantee later; the same in all rows of a group",
                |row| Some(row.times.returns),
            ),
            C::seconds("return_mean_s", "mean duration of these returns; null without any", |row| {
                Some(row.times.mean_return()? / 1e6)
            })
            .lower(),
            C::seconds("return_max_s", "longest of these returns; null without any", |row| {
                (row.times.returns > 0).then(|| row.times.longest.seconds())
            })
            .lower(),
            C::seconds("return_open_s", "duration of an unfinished return at the end; null if none", |row| {
                row.times.open.map(Span::seconds)
            })
            .lower(),
            C::int(
                "tasks_stopped",
                "how often its running tasks were stopped and had to start again, without their own failures; \
                 the same in all rows of a group",
                |row| Some(row.times.stopped),
            )
            .lower(),
            C::area("lost_s", "wasted usage of its tasks, times seconds: from their last checkpoint until they were stopped, and to resume", |row| row.area(row.sums.lost_us))
            .lower(),
            C::area(
                "unreturned_s",
                "the amount that was to be reclaimed, but was used by stable tasks only, times seconds",
                |row| row.area(row.sums.unreturned_us),
            )
            .lower(),
        ]
    }
}

/// A group's quota of a resource from a grid point on.
pub struct LevelOf<'a> {
    /// The grid point.
    pub at: Time,
    /// The group.
    pub about: &'a GroupNode,
    /// The resource.
    pub dim: &'a Dim,
    /// The quota of the group, and the amounts that determine it.
    pub level: &'a GroupLevel,
    /// The allocation and the pending demand of the group.
    pub held: Holding,
}

impl TableRow for LevelOf<'static> {
    type Of<'a> = LevelOf<'a>;

    const TABLE: &'static str = "levels";

    fn columns() -> Vec<Column<ColumnValue<Self>>> {
        type C = Column<ColumnValue<LevelOf<'static>>>;
        vec![
            C::micros("time_us", "grid point", |row| Some(row.at.0)),
            C::text("group", "name of the group", |row| Some(&row.about.name)),
            C::text("label", "the label of the tree that it belongs to; null in the default tree", |row| {
                row.about.label.as_deref()
            }),
            C::text("resource", "name of the resource", |row| Some(&row.dim.name)),
            C::amount(
                "total",
                "the amount that it and its siblings share: the total of its tree, or its parent's runtime quota",
                |row| Some(row.dim.amount(row.level.total)),
            ),
            C::amount("runtime", "the runtime quota that a round at this instant would compute", |row| {
                Some(row.dim.amount(row.level.runtime))
            }),
            C::amount("used", "the use of its running tasks", |row| Some(row.dim.amount(row.held.used))),
            C::amount(
                "request",
                "allocation and pending demand of its users, and requests of the groups under it, each limited to the max \
                 of that group; not limited to its own max",
                |row| Some(row.held.request as f64 / row.dim.unit.scale() as f64),
            ),
            C::float("level", "the water level of it and its siblings: an amount per unit of ratio", |row| {
                Some(row.level.level * RATIO_ONE / row.dim.unit.scale() as f64)
            }),
            C::amount("base", "its quota at level 0, which no other request can reduce", |row| {
                Some(row.dim.amount(row.level.base))
            }),
            C::amount("reach", "its quota if the total is enough for all", |row| Some(row.dim.amount(row.level.reach))),
        ]
    }
}
