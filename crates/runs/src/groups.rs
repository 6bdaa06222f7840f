//! Observes a run under a policy with groups of users: how their guarantees were kept, and quota levels over time.
//!
//! [`GroupWatch`] is notified of changed users and of ended tasks, and maintains a log per group and partition. At the points of the
//! sampling grid it writes the changed levels to the table `levels`. At the end it writes the table `groups` and makes the terminal's
//! summary.

use crate::sinks::Sinks;
use plimsoll_base::checkpoint::{Checkpoint, Visitor};
use plimsoll_base::error::Result;
use plimsoll_base::units::{Dim, MAX_DIMS, Resources, Span, Time, UserId};
use plimsoll_base::visit_values;
use plimsoll_metrics::{GroupLog, Guarantee, Holding};
use plimsoll_policies::{GroupLevel, GroupNode, GroupTree, Groups, Unreturned};
use plimsoll_results::schema::{GroupRow, Table, Writer};
use plimsoll_results::summary::GroupSummary;
use plimsoll_sim::books::{Books, Partition};
use plimsoll_sim::record::TaskRecord;

/// The log of the groups during a run.
#[derive(Clone, Debug)]
pub(super) struct GroupWatch {
    tree: GroupTree,
    log: GroupLog,
    dims: usize,
    /// The group of each user, if it has one.
    owner: Vec<Option<usize>>,
    /// The last recorded usage and request: `dims` values per user and partition.
    holdings: Vec<Holding>,
    /// The maximum capacity so far, by partition.
    most: Vec<Resources>,
    /// The last row that was written to the `levels` table, for each group and resource.
    written: Vec<Option<(GroupLevel, Holding)>>,
}

impl GroupWatch {
    pub fn new(tree: &GroupTree, dims: usize) -> GroupWatch {
        let promises: Vec<Guarantee> = tree
            .groups
            .iter()
            .map(|group| {
                let each = |of: fn(&plimsoll_policies::GroupLimits) -> u64| {
                    Resources::from_fn(|d| group.limits.get(d).map_or(0, of))
                };
                Guarantee { parent: group.parent, min: each(|limits| limits.min), max: each(|limits| limits.max) }
            })
            .collect();
        GroupWatch {
            log: GroupLog::new(dims, &promises),
            written: vec![None; promises.len() * dims],
            most: vec![Resources::ZERO; tree.partitions],
            tree: tree.clone(),
            dims,
            owner: Vec::new(),
            holdings: Vec::new(),
        }
    }

    /// Returns the groups.
    pub fn tree(&self) -> &GroupTree {
        &self.tree
    }

    /// Registers a user.
    pub fn user(&mut self, name: &str) {
        self.owner.push(self.tree.group_of(name));
        self.holdings.extend(std::iter::repeat_n(Holding::default(), self.dims * self.tree.partitions));
    }

    /// Records the changed usage and requests of these users.
    pub fn settled(&mut self, now: Time, changed: &[UserId], books: &Books) {
        let mut after = [Holding::default(); MAX_DIMS];
        let partitions = self.tree.partitions;
        for at in 0..partitions {
            let partition = Partition(at as u8);
            let books = books.partition(partition);
            self.most[at] = self.most[at].max(*books.capacity());
            for &user in changed {
                let Some(group) = self.owner[user.index()] else { continue };
                for (d, &used) in books.used(user).iter().enumerate() {
                    after[d] = Holding { used, request: books.wanted(user, d) };
                }
                let after = &after[..self.dims];
                let before = &mut self.holdings[(user.index() * partitions + at) * self.dims..][..self.dims];
                if before != after {
                    self.log.change(now, self.tree.place_in(group, partition), before, after);
                    before.copy_from_slice(after);
                }
            }
        }
    }

    /// Records that tasks of a user ended or were stopped after running for `ran`.
    pub fn tasks(&mut self, tasks: &TaskRecord, ran: Span) {
        let (stopped, lost) = (if tasks.fate.is_interrupted() { tasks.count } else { 0 }, tasks.lost(ran));
        if stopped == 0 && lost == Span::ZERO {
            return;
        }
        if let Some(group) = self.owner[tasks.user.index()] {
            let at = self.tree.place_in(group, tasks.partition);
            self.log.lost(at, (tasks.count, stopped), lost, tasks.demand);
        }
    }

    /// Records usage, over a span of time, that should have been reclaimed but could not be.
    pub fn unreturned(&mut self, unreturned: &[Unreturned], span: Span) {
        for Unreturned { group, amount } in unreturned {
            self.log.unreturned(*group, amount.slice(self.dims), span);
        }
    }

    /// Writes the levels that have changed since the last grid point.
    pub fn sample(&mut self, at: Time, groups: &dyn Groups, sinks: &mut Sinks) -> Result<()> {
        if !sinks.wants(Table::Levels) {
            return Ok(());
        }
        for (place, level) in groups.levels()?.into_iter().enumerate() {
            let (group, d) = (place / self.dims, place % self.dims);
            let about = &self.tree.groups[group];
            if !about.stated {
                continue;
            }
            let now = Some((level, self.log.holding(group, d)));
            if std::mem::replace(&mut self.written[place], now) != now {
                sinks.level(at, about, d, &level, self.log.holding(group, d))?;
            }
        }
        Ok(())
    }

    pub fn finish(&mut self, end: Time) {
        self.log.finish(end);
    }

    /// Writes the `groups` table.
    pub fn write(&self, table: &mut Writer<GroupRow<'static>>, dims: &[Dim]) -> Result<()> {
        let partitions = self.tree.groups.chunks(self.tree.groups.len() / self.tree.partitions).zip(&self.most);
        let all = partitions.flat_map(|(groups, most)| groups.iter().map(move |about| (about, most)));
        for (at, (about, most)) in all.enumerate().filter(|(_, (about, _))| about.stated) {
            let times = self.log.times(at);
            for (d, (dim, limits)) in dims.iter().zip(&about.limits).enumerate() {
                table.push(&GroupRow {
                    about,
                    parent: about.parent.map(|parent| self.tree.groups[parent].name.as_str()),
                    variant: self.tree.variant,
                    dim,
                    most: most.0[d],
                    limits,
                    sums: self.log.sums(at, d),
                    times,
                })?;
            }
        }
        Ok(())
    }

    /// Returns the terminal's summary of each group; parents precede their children.
    pub fn summaries(&self, dims: &[Dim]) -> Vec<GroupSummary> {
        let children = |parent: Option<usize>| {
            let of = move |at: &usize| self.tree.groups[*at].parent == parent && self.tree.groups[*at].stated;
            (0..self.tree.groups.len()).rev().filter(of)
        };
        let mut summaries = Vec::new();
        let mut left: Vec<(usize, usize)> = children(None).map(|at| (at, 0)).collect();
        while let Some((at, depth)) = left.pop() {
            let times = self.log.times(at);
            let mut values = vec![
                ("below min s".to_owned(), Some(Span(times.below_us).seconds())),
                ("returns".to_owned(), Some(times.returns as f64)),
                ("mean s".to_owned(), times.mean_return().map(|us| us / 1e6)),
                ("longest s".to_owned(), (times.returns > 0).then(|| times.longest.seconds())),
                ("open".to_owned(), Some(f64::from(u8::from(times.open.is_some())))),
                ("stopped".to_owned(), Some(times.stopped as f64)),
            ];
            let hours = |sum: u128, dim: &Dim| sum as f64 / dim.unit.scale() as f64 / 3.6e9;
            for (what, of) in [("used", used as fn(&GroupLog, usize, usize) -> u128), ("borrowed", borrowed)] {
                for (d, dim) in dims.iter().enumerate() {
                    values.push((format!("{what} {} h", dim.name), Some(hours(of(&self.log, at, d), dim))));
                }
            }
            let unreturned = |(d, dim): (usize, &Dim)| hours(self.log.sums(at, d).unreturned_us, dim);
            let unreturned = dims.iter().enumerate().map(unreturned).collect();
            let GroupNode { name, label, .. } = &self.tree.groups[at];
            let name = label.as_ref().map_or_else(|| name.clone(), |label| format!("{name} ({label})"));
            summaries.push(GroupSummary { name, depth, values, unreturned });
            left.extend(children(Some(at)).map(|at| (at, depth + 1)));
        }
        summaries
    }
}

fn used(log: &GroupLog, group: usize, d: usize) -> u128 {
    log.sums(group, d).used_us
}

fn borrowed(log: &GroupLog, group: usize, d: usize) -> u128 {
    log.sums(group, d).borrowed_us
}

impl Checkpoint for GroupWatch {
    fn visit(&mut self, visitor: &mut Visitor) -> Result<()> {
        let GroupWatch { tree: _, log, dims: _, owner, holdings, most, written } = self;
        visit_values!(visitor; log, owner, holdings, most, written);
        Ok(())
    }
}
