//! The tree of queues with the settings of a scheduler, and its state: allocations and next workloads of users.

use std::cell::OnceCell;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Index;

use super::session::change_amounts;
use super::settings::SettingTable;
use plimsoll_base::error::{Error, Result};
use plimsoll_base::units::{Dim, Resources, Time, UserId};
use plimsoll_policies::{QueueFile, Reason};
use plimsoll_sim::books::Books;
use plimsoll_sim::policy::{Head, Owners, RunningView};

/// The index of a queue in its tree.
pub type QueueAt = usize;

/// The root: the whole cluster.
pub const ROOT: QueueAt = 0;

/// A queue, or a group of queues.
#[derive(Clone, Debug, Default)]
pub struct QueueNode {
    /// The name.
    pub name: String,
    /// The parent; the root is its own parent.
    pub parent: QueueAt,
    /// The children, in the order of the file.
    pub children: Vec<QueueAt>,
    /// The users of the queue, in order of appearance.
    pub users: Vec<UserId>,
    /// The number of ancestors.
    pub depth: usize,
}

/// The tree. Node 0 is the cluster; the groups of the file follow in its order. Without groups every user is a queue of its own. `tree[at]`
/// are the settings of a queue; those of the cluster are the defaults.
#[derive(Clone, Debug)]
pub struct Tree<S> {
    /// All nodes.
    pub nodes: Vec<QueueNode>,
    /// The queue of each user.
    pub users: Vec<QueueAt>,
    /// The name of each user.
    pub names: Vec<String>,
    /// The settings of each node.
    settings: Vec<S>,
    /// By node, its position in the order of names.
    name_ranks: OnceCell<Vec<usize>>,
    owners: Option<Owners>,
    file: std::path::PathBuf,
}

impl<S> Index<QueueAt> for Tree<S> {
    type Output = S;

    fn index(&self, at: QueueAt) -> &S {
        &self.settings[at]
    }
}

impl<S: SettingTable> Tree<S> {
    /// Creates the tree of a file; without groups, it has a queue for each user that appears. Errors: those of settings.
    pub fn new(file: &QueueFile, dims: &[Dim]) -> Result<Tree<S>> {
        let root = QueueNode { name: "root".to_owned(), ..QueueNode::default() };
        let mut tree = Tree {
            nodes: vec![root],
            users: Vec::new(),
            names: Vec::new(),
            settings: vec![S::default()],
            name_ranks: OnceCell::new(),
            owners: (!file.groups.is_empty()).then(|| file.owners()),
            file: file.path.clone(),
        };
        for group in &file.groups {
            let parent = group.parent.map_or(ROOT, |at| at + 1);
            tree.nodes.push(QueueNode { name: group.name.clone(), parent, ..QueueNode::default() });
            tree.settings.push(S::read(&group.table, dims)?);
        }
        for at in 1..tree.nodes.len() {
            let parent = tree.nodes[at].parent;
            tree.nodes[parent].children.push(at);
        }
        for at in 1..tree.nodes.len() {
            tree.nodes[at].depth = tree.path(at).count() - 1;
        }
        Ok(tree)
    }
}

impl<S> Tree<S> {
    /// Adds a user. `settings` returns those of the queue that is created for the user if the file has no groups. Errors: the user belongs
    /// to no group, and those of `settings`.
    pub fn open(&mut self, user: UserId, name: &str, settings: impl FnOnce() -> Result<S>) -> Result<()> {
        let at = match &self.owners {
            None => {
                let at = self.nodes.len();
                self.settings.push(settings()?);
                self.name_ranks.take();
                self.nodes.push(QueueNode { name: name.to_owned(), depth: 1, ..QueueNode::default() });
                self.nodes[ROOT].children.push(at);
                at
            }
            Some(owners) => match owners.group_of(name) {
                Some(group) => group + 1,
                None => {
                    let file = self.file.display();
                    let expected = format!("a user of a group in {file}, or a group with default = true");
                    return Err(Error::plan("user", format!("'{name}'"), expected));
                }
            },
        };
        self.nodes[at].users.push(user);
        self.users.push(at);
        self.names.push(name.to_owned());
        Ok(())
    }

    /// Returns a queue and all its ancestors, the root last.
    pub fn path(&self, at: QueueAt) -> impl Iterator<Item = QueueAt> + '_ {
        std::iter::successors(Some(at), |at| (*at != ROOT).then(|| self.nodes[*at].parent))
    }

    /// Returns the first limit of a queue or an ancestor that `usage` with `need` exceeds.
    pub fn exceeded<'l>(
        &self,
        limit: impl Fn(QueueAt) -> &'l Resources<Option<u64>>,
        usage: &[Resources],
        queue: QueueAt,
        need: &Resources,
    ) -> Option<Excess> {
        self.path(queue).find_map(|at| Excess::from_limit(at, limit(at), &usage[at], need))
    }

    /// Adds an amount to the totals of a queue and its ancestors, or subtracts it, down to 0. A sum above `u64::MAX` ends the program.
    pub fn change(&self, totals: &mut [Resources], queue: QueueAt, amount: &Resources, more: bool) {
        self.path(queue).for_each(|at| change_amounts(&mut totals[at], amount, more));
    }

    /// Returns the total of each node: its own amount, and those of all its descendants.
    pub fn totals<T: Copy>(&self, own: impl FnMut(QueueAt) -> T, add: impl Fn(T, T) -> T) -> Vec<T> {
        let mut totals: Vec<T> = (0..self.nodes.len()).map(own).collect();
        for at in self.upwards().into_iter().filter(|at| *at != ROOT) {
            let parent = self.nodes[at].parent;
            totals[parent] = add(totals[parent], totals[at]);
        }
        totals
    }

    /// Returns the allocation and pending demand of the users of each node and its descendants. A sum above `u64::MAX` becomes `u64::MAX`.
    pub fn requests(&self, books: &Books) -> Vec<Resources> {
        let own = |at: QueueAt| {
            let wanted = |d: usize| self.nodes[at].users.iter().map(|user| books.wanted(*user, d)).sum::<u128>();
            Resources::from_fn(|d| if d < books.dims() { u64::try_from(wanted(d)).unwrap_or(u64::MAX) } else { 0 })
        };
        self.totals(own, Resources::saturating_add)
    }

    /// Returns the setting of a queue, or that of its nearest ancestor that has one.
    pub fn nearest<T>(&self, at: QueueAt, setting: impl Fn(&S) -> Option<T>) -> Option<T> {
        self.path(at).find_map(|at| setting(&self[at]))
    }

    /// Returns the leaves in the order of the tree.
    pub fn leaves(&self) -> impl Iterator<Item = QueueAt> + '_ {
        (0..self.nodes.len()).filter(|at| self.is_leaf(*at))
    }

    /// Returns whether `above` is a queue or one of its ancestors.
    pub fn is_within(&self, at: QueueAt, above: QueueAt) -> bool {
        self.path(at).any(|other| other == above)
    }

    /// Returns whether a queue has no children.
    pub fn is_leaf(&self, at: QueueAt) -> bool {
        self.nodes[at].children.is_empty()
    }

    /// Returns the lowest common ancestor of two queues, which may be one of them.
    pub fn common(&self, one: QueueAt, other: QueueAt) -> QueueAt {
        let above: Vec<QueueAt> = self.path(one).collect();
        self.path(other).find(|at| above.contains(at)).unwrap_or(ROOT)
    }

    /// Returns the child of `above` on the path to `at`; `at` itself if that is `above`.
    pub fn child_towards(&self, above: QueueAt, at: QueueAt) -> QueueAt {
        self.path(at).take_while(|other| *other != above).last().unwrap_or(at)
    }

    /// Returns the ancestors of two queues, or the queues themselves, right under their lowest common ancestor.
    pub fn siblings(&self, one: QueueAt, other: QueueAt) -> (QueueAt, QueueAt) {
        let above = self.common(one, other);
        (self.child_towards(above, one), self.child_towards(above, other))
    }

    /// Compares two queues by the order `by` of their ancestors right under the lowest common one.
    pub fn compare(&self, one: QueueAt, other: QueueAt, by: impl Fn(QueueAt, QueueAt) -> Ordering) -> Ordering {
        let (one, other) = self.siblings(one, other);
        by(one, other)
    }

    /// Returns the position of a node in the order of names.
    pub fn name_rank(&self, at: QueueAt) -> usize {
        let ranks = self.name_ranks.get_or_init(|| {
            let mut order: Vec<QueueAt> = (0..self.nodes.len()).collect();
            order.sort_by(|one, other| self.nodes[*one].name.cmp(&self.nodes[*other].name));
            let mut ranks = vec![0; order.len()];
            order.into_iter().enumerate().for_each(|(rank, at)| ranks[at] = rank);
            ranks
        });
        ranks[at]
    }

    /// Returns the nodes from the root down: every node before its children.
    pub fn downwards(&self) -> Vec<QueueAt> {
        self.upwards().into_iter().rev().collect()
    }

    /// Returns the nodes from the bottom up: every node after its children.
    pub fn upwards(&self) -> Vec<QueueAt> {
        let mut all: Vec<QueueAt> = (0..self.nodes.len()).collect();
        all.sort_by_key(|at| std::cmp::Reverse(self.nodes[*at].depth));
        all
    }
}

/// The excess of an amount over the limit of a queue.
#[derive(Clone, Copy, Debug)]
pub struct Excess {
    /// The queue.
    pub queue: QueueAt,
    /// The resource.
    pub resource: usize,
    /// The excess in base units.
    pub amount: u64,
}

impl Excess {
    /// Returns the first excess of `usage` with `need`; see [`Resources::exceeded`].
    pub fn from_limit(
        queue: QueueAt,
        limit: &Resources<Option<u64>>,
        usage: &Resources,
        need: &Resources,
    ) -> Option<Excess> {
        limit.exceeded(usage, need).map(|(resource, amount)| Excess { queue, resource, amount })
    }

    /// Returns the excess as the reason why a workload waits.
    pub fn reason(self) -> Reason {
        Reason::Quota { group: self.queue as u32, resource: self.resource as u8, short: self.amount }
    }
}

/// The next workload, application or job of a user.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub struct Waiting {
    /// The user.
    pub user: UserId,
    /// The queue of the user.
    pub queue: QueueAt,
    /// Its priority, 0 (most urgent) to 9.
    pub priority: u8,
    /// The earliest instant at which it could have started, and its position among the task sets of that instant; the lower position came
    /// first.
    pub since: (Time, u64),
    /// The amounts of one task.
    pub each: Resources,
    /// The number of equal tasks that wait.
    pub tasks: u32,
    /// Whether all tasks start together.
    pub gang: bool,
}

impl Waiting {
    /// Returns the amounts required to start: those of one task, or of all tasks of a gang.
    pub fn need(&self) -> Resources {
        if self.gang { self.each.times(self.tasks) } else { self.each }
    }

    /// Returns how many of its tasks start together: one, or all of a gang.
    pub fn together(&self) -> u32 {
        if self.gang { self.tasks } else { 1 }
    }

    /// Returns its position in its queue: the most urgent first, then the oldest.
    pub fn turn(&self) -> (u8, Time, u64) {
        (self.priority, self.since.0, self.since.1)
    }
}

/// The allocations and the waiting users by queue.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct QueueTable {
    /// The allocation of the users of each node.
    pub usage: Vec<Resources>,
    /// The allocation of each user at the last update.
    pub held: Vec<Resources>,
    /// The next workload of each user.
    pub waiting: Vec<Option<Waiting>>,
    /// The waiting users of each leaf, in the order of [`Waiting::turn`].
    pub lines: Vec<BTreeMap<(u8, Time, u64), UserId>>,
    /// Leaves with waiting users.
    pub busy: BTreeSet<QueueAt>,
    /// Users with an allocation or next workload that may have changed since the last update.
    changed: Vec<UserId>,
}

impl QueueTable {
    /// Marks users as changed.
    pub fn mark_changed(&mut self, users: &[UserId]) {
        self.changed.extend(users);
    }

    /// Returns the next workload of a user, if it waits.
    pub fn next(&self, user: UserId) -> Option<Waiting> {
        self.waiting.get(user.index()).copied().flatten()
    }

    /// Updates the table for the users that have changed.
    pub fn follow<S>(&mut self, tree: &Tree<S>, running: &dyn RunningView, books: &Books) {
        self.usage.resize(tree.nodes.len(), Resources::ZERO);
        self.lines.resize(tree.nodes.len(), BTreeMap::new());
        self.held.resize(tree.users.len(), Resources::ZERO);
        self.waiting.resize(tree.users.len(), None);
        for user in std::mem::take(&mut self.changed) {
            let (queue, before) = (tree.users[user.index()], self.held[user.index()]);
            let now = Resources::from_slice(books.allocated(user));
            if now != before {
                for at in tree.path(queue) {
                    self.usage[at] = self.usage[at] + now - before;
                }
                self.held[user.index()] = now;
            }
            let head = running.next(user).filter(|_| books.waiting(user) > 0);
            let next = head.map(|Head { queue: line, footprint, tasks, gang }| Waiting {
                user,
                queue,
                priority: line.priority,
                since: (line.release, line.place),
                each: footprint,
                tasks,
                gang,
            });
            if let Some(old) = std::mem::replace(&mut self.waiting[user.index()], next) {
                self.lines[queue].remove(&old.turn());
            }
            if let Some(next) = next {
                self.lines[queue].insert(next.turn(), user);
            }
            if self.lines[queue].is_empty() {
                self.busy.remove(&queue);
            } else {
                self.busy.insert(queue);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[derive(Clone, Default)]
    struct Limit(Option<i64>);

    impl SettingTable for Limit {
        fn read(table: &plimsoll_base::tree::Node, _dims: &[Dim]) -> Result<Limit> {
            let limit = table.get("priority").map(|entry| plimsoll_policies::queues::integer(&entry.node, "priority"));
            limit.transpose().map(Limit)
        }
    }

    /// The nodes 1 to 5: d, b below d, a below b, c below d, e.
    fn tree() -> Tree<Limit> {
        let groups = [
            ("d", "root", "priority = 7"),
            ("b", "d", ""),
            ("a", "b", "priority = 2"),
            ("c", "d", ""),
            ("e", "root", ""),
        ];
        let text =
            groups.map(|(name, parent, key)| format!("[[group]]\nname = \"{name}\"\nparent = \"{parent}\"\n{key}\n"));
        let keys = [plimsoll_policies::QueueKey::group("priority", "")];
        let file = QueueFile::parse(Path::new("queues.toml"), &text.concat(), &keys).expect("queues");
        Tree::new(&file, &[]).expect("a tree")
    }

    #[test]
    fn settings_are_those_of_the_nearest_queue() {
        let tree = tree();
        assert_eq!((tree[3].0, tree[2].0), (Some(2), None));
        let nearest: Vec<Option<i64>> = (0..6).map(|at| tree.nearest(at, |limit| limit.0)).collect();
        assert_eq!(nearest, [None, Some(7), Some(7), Some(2), Some(7), None]);
    }

    #[test]
    fn totals_and_changes_reach_all_ancestors() {
        let tree = tree();
        assert_eq!(tree.totals(|at| 1 << at, |one, other| one + other), [63, 30, 12, 8, 16, 32]);
        let mut usage = vec![Resources::ZERO; 6];
        tree.change(&mut usage, 3, &Resources::uniform(2), true);
        tree.change(&mut usage, 4, &Resources::uniform(1), true);
        assert_eq!(usage.iter().map(|amounts| amounts[0]).collect::<Vec<u64>>(), [3, 3, 2, 2, 1, 0]);
        let mut fewer = usage.clone();
        tree.change(&mut fewer, 4, &Resources::uniform(2), false);
        assert_eq!(fewer.iter().map(|amounts| amounts[0]).collect::<Vec<u64>>(), [1, 1, 2, 2, 0, 0]);
        let limits: Vec<_> = [9, 4, 9, 9, 9, 9].map(|most| Resources::uniform(Some(most))).to_vec();
        let excess = tree.exceeded(|at| &limits[at], &usage, 3, &Resources::uniform(5)).expect("above the limit of d");
        assert_eq!((excess.queue, excess.resource, excess.amount), (1, 0, 4));
    }

    #[test]
    fn queues_are_compared_under_the_common_ancestor() {
        let tree = tree();
        assert_eq!((tree.siblings(3, 4), tree.siblings(3, 5), tree.siblings(2, 3)), ((2, 4), (1, 5), (2, 3)));
        assert_eq!(tree.compare(3, 4, |one, other| (one, other).cmp(&(2, 4))), Ordering::Equal);
        assert_eq!(tree.leaves().collect::<Vec<QueueAt>>(), [3, 4, 5]);
        assert!(tree.is_within(3, 1) && !tree.is_within(4, 2));
        // By name: a, b, c, d, e, root.
        assert_eq!((0..6).map(|at| tree.name_rank(at)).collect::<Vec<usize>>(), [5, 3, 1, 0, 2, 4]);
    }
}
