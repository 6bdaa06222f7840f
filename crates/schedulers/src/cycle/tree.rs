//! The tree of queues, and its state: allocations and next workloads of users.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_base::error::{Error, Result};
use plimsoll_base::units::{Resources, Time, UserId};
use plimsoll_policies::QueueFile;
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

/// The tree. Node 0 is the cluster; the groups of the file follow in its order. Without groups every user is a queue of its own.
#[derive(Clone, Debug)]
pub struct Tree {
    /// All nodes.
    pub nodes: Vec<QueueNode>,
    /// The queue of each user.
    pub users: Vec<QueueAt>,
    /// The name of each user.
    pub names: Vec<String>,
    owners: Option<Owners>,
    file: std::path::PathBuf,
}

impl Tree {
    /// Creates the tree of a file; without groups, it has a queue for each user that appears.
    pub fn new(file: &QueueFile) -> Tree {
        let root = QueueNode { name: "root".to_owned(), ..QueueNode::default() };
        let mut tree = Tree {
            nodes: vec![root],
            users: Vec::new(),
            names: Vec::new(),
            owners: (!file.groups.is_empty()).then(|| file.owners()),
            file: file.path.clone(),
        };
        for group in &file.groups {
            let parent = group.parent.map_or(ROOT, |at| at + 1);
            tree.nodes.push(QueueNode { name: group.name.clone(), parent, ..QueueNode::default() });
        }
        for at in 1..tree.nodes.len() {
            let parent = tree.nodes[at].parent;
            tree.nodes[parent].children.push(at);
        }
        for at in 1..tree.nodes.len() {
            tree.nodes[at].depth = tree.path(at).count() - 1;
        }
        tree
    }

    /// Adds a user; returns whether a queue was created for the user. Errors: the user belongs to no group.
    pub fn open(&mut self, user: UserId, name: &str) -> Result<bool> {
        let (at, made) = match &self.owners {
            None => {
                let at = self.nodes.len();
                self.nodes.push(QueueNode { name: name.to_owned(), depth: 1, ..QueueNode::default() });
                self.nodes[ROOT].children.push(at);
                (at, true)
            }
            Some(owners) => match owners.group_of(name) {
                Some(group) => (group + 1, false),
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
        Ok(made)
    }

    /// Returns a queue and all its ancestors, the root last.
    pub fn path(&self, at: QueueAt) -> impl Iterator<Item = QueueAt> + '_ {
        std::iter::successors(Some(at), |at| (*at != ROOT).then(|| self.nodes[*at].parent))
    }

    /// Returns the first limit of a queue or an ancestor that `usage` with `need` exceeds: the queue, the resource and the excess.
    pub fn exceeded<'l>(
        &self,
        limit: impl Fn(QueueAt) -> &'l Resources<Option<u64>>,
        usage: &[Resources],
        queue: QueueAt,
        need: &Resources,
    ) -> Option<(QueueAt, usize, u64)> {
        self.path(queue)
            .find_map(|at| limit(at).exceeded(&usage[at], need).map(|(resource, excess)| (at, resource, excess)))
    }

    /// Returns the allocation and pending demand of the users of each node and its descendants. A sum above `u64::MAX` becomes `u64::MAX`.
    pub fn requests(&self, books: &Books) -> Vec<Resources> {
        let mut requests = vec![Resources::ZERO; self.nodes.len()];
        for at in self.upwards() {
            let QueueNode { users, children, .. } = &self.nodes[at];
            let wanted = |d: usize| users.iter().map(|user| books.wanted(*user, d)).sum::<u128>();
            let own = |d: usize| if d < books.dims() { u64::try_from(wanted(d)).unwrap_or(u64::MAX) } else { 0 };
            let below = children.iter().map(|child| requests[*child]);
            requests[at] = below.fold(Resources::from_fn(own), Resources::saturating_add);
        }
        requests
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

    /// Returns the nodes from the bottom up: every node after its children.
    pub fn upwards(&self) -> Vec<QueueAt> {
        let mut all: Vec<QueueAt> = (0..self.nodes.len()).collect();
        all.sort_by_key(|at| std::cmp::Reverse(self.nodes[*at].depth));
        all
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
    pub fn follow(&mut self, tree: &Tree, running: &dyn RunningView, books: &Books) {
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
