//! Slurm's fair tree: groups with little usage for their share are first, and inside a group the same rule orders its users.
//!
//! At the end of every period users are ranked. Siblings are compared by their *level share*: the share of a group or user among its
//! siblings, over its part of their decayed usage. It is 0 without a share, and infinite without usage. The tree is walked from the
//! cluster down. Siblings with the larger level share are first; of a user and a group that tie, the user is first. Users that tie share a
//! rank. The children of groups that tie are merged into one list, where each keeps the level share among its own siblings; a user that
//! ties with a group has the rank of the group's best user. If n users share a rank, the next n - 1 ranks are not used.
//!
//! Source: SchedMD, "Fair Tree Fairshare Algorithm" and `fair_tree.c` of Slurm (Cox and Morrison, Brigham Young University).
//!
//! Departures from the source: a task's usage is the sum of its shares of the cluster, whereas a Slurm site sets billing weights. Users
//! are known from their first task on. Groups that tie are merged, as in the published text; the program of Slurm does not merge them.

use std::cmp::Ordering;

use ethnum::U256;

use super::branches::Branches;
use super::decay::{Adds, Memory, Usage};
use super::{ByUsage, Parsed, PolicyRow, Queue, QuotaFile, Rank, RankOrder, Renewal, Setup, UsageRule};
use plimsoll_base::checkpoint::{Checkpoint, Visitor};
use plimsoll_base::error::Result;
use plimsoll_base::units::{Resources, Span};
use plimsoll_sim::books::Books;

/// `fair-tree:HALF_LIFE[:PERIOD][:FILE]`
pub static ROW: PolicyRow = PolicyRow {
    name: "fair-tree",
    spelling: "fair-tree:HALF_LIFE[:PERIOD][:FILE]",
    rank: RankOrder::Lowest("place in the walk down the tree by share / decayed usage among siblings"),
    meaning: "Ranks of users in a tree of groups by decayed usage, recomputed every PERIOD.",
    source: "Slurm's fair tree (Cox and Morrison)",
    example: "fair-tree:1h",
    checked: "fair-tree:1h",
    variants: &[],
    keys: &[],
    read: |given| {
        let given = given.unwrap_or_default();
        let (memory, file) = Memory::parse_before(given, PERIOD)?;
        Ok(match file {
            None => Parsed::new(Some(given.to_owned()), move |setup| Ok(Box::new(fair_tree(setup, memory, None)?))),
            Some(file) => {
                Parsed::grouped(given, file, move |groups, setup| Ok(Box::new(fair_tree(setup, memory, Some(groups))?)))
            }
        })
    },
};

/// Slurm's usual `PriorityCalcPeriod`.
pub(super) const PERIOD: Span = Span::from_secs(300);

/// Serves users by rank; the run's tie rule orders users of one rank.
///
/// Cost: O(1) per rank; O(users log users) per period, and whenever users appear.
struct FairTree {
    branches: Branches,
    capacity: Resources,
    ranks: Vec<u32>,
}

fn fair_tree(setup: &Setup, memory: Memory, groups: Option<&QuotaFile>) -> Result<ByUsage<FairTree>> {
    let flat = || Ok(Branches::flat(setup.weights));
    let branches = groups.map_or_else(flat, |groups| Branches::from_file("fair-tree", groups, setup.weights))?;
    let rule = FairTree { branches, capacity: setup.capacity, ranks: Vec::new() };
    Ok(ByUsage::new(rule, Adds::Integral, memory, setup))
}

impl UsageRule for FairTree {
    const RENEWAL: Renewal = Renewal::User;

    fn open(&mut self, name: &str) -> Result<()> {
        self.branches.open(name)
    }

    fn renew(&mut self, usage: &Usage, _books: &Books) -> bool {
        self.ranks = ranks(&self.branches, &usage.cluster_times(&self.capacity));
        true
    }

    fn rank(&self, queue: &Queue, _usage: &Usage, _books: &Books) -> Rank {
        Rank::new(self.ranks[queue.user.index()].into())
    }
}

/// A child of a group; users are ordered before groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum TreeNode {
    User(u32),
    Group(u32),
}

/// A child with its level share: the class (0 without a share, 1 for a number, 2 without usage), then the number as a fraction.
#[derive(Clone, Copy, Debug)]
struct Child {
    at: TreeNode,
    class: u8,
    over: U256,
    under: U256,
}

impl Child {
    /// Compares by level share, the larger first, then users before groups.
    fn order(&self, other: &Child) -> Ordering {
        self.tie(other).then(self.at.cmp(&other.at))
    }

    fn tie(&self, other: &Child) -> Ordering {
        other.class.cmp(&self.class).then_with(|| (other.over * self.under).cmp(&(self.over * other.under)))
    }
}

/// Computes the rank of every user from its usage; the first rank is 0.
fn ranks(branches: &Branches, usage: &[u64]) -> Vec<u32> {
    let mut sums = vec![0u128; branches.groups().len()];
    for (user, (group, _)) in branches.users().iter().enumerate() {
        sums[*group as usize] += u128::from(usage[user]);
    }
    for group in branches.upwards() {
        let parent = branches.groups()[group as usize].parent;
        if group > 0 {
            sums[parent as usize] += sums[group as usize];
        }
    }
    let mut walk = Walk { branches, usage, sums, ranks: vec![0; usage.len()], next: 0 };
    let children = walk.children(0);
    walk.place(children, None);
    walk.ranks
}

struct Walk<'a> {
    branches: &'a Branches,
    usage: &'a [u64],
    /// The usage of each group.
    sums: Vec<u128>,
    ranks: Vec<u32>,
    /// The number of users that have a rank.
    next: u32,
}

impl Walk<'_> {
    /// Returns the children of a group with their level shares.
    fn children(&self, group: u32) -> Vec<Child> {
        let branch = &self.branches.groups()[group as usize];
        let users = branch.users.iter().map(|user| {
            (TreeNode::User(user.0), self.branches.users()[user.index()].1, u128::from(self.usage[user.index()]))
        });
        let of_group =
            |&at: &u32| (TreeNode::Group(at), self.branches.groups()[at as usize].share, self.sums[at as usize]);
        let all: Vec<(TreeNode, u64, u128)> = users.chain(branch.groups.iter().map(of_group)).collect();
        let shares: u128 = all.iter().map(|(_, share, _)| u128::from(*share)).sum();
        let used: u128 = all.iter().map(|(_, _, used)| used).sum();
        let child = |(at, share, usage): (TreeNode, u64, u128)| Child {
            at,
            class: if share == 0 { 0 } else { 1 + u8::from(usage == 0) },
            over: if usage == 0 || share == 0 { U256::ONE } else { U256::from(share) * U256::from(used) },
            under: if usage == 0 || share == 0 { U256::ONE } else { U256::from(shares) * U256::from(usage) },
        };
        all.into_iter().map(child).collect()
    }

    /// Ranks the users in and under a list of children. If their group tied with a user, `tied` is the rank of that user; the best users
    /// of the list receive it.
    fn place(&mut self, mut list: Vec<Child>, mut tied: Option<u32>) {
        list.sort_by(Child::order);
        for run in list.chunk_by(|one, other| one.tie(other).is_eq()) {
            let first = self.next;
            let rank = tied.unwrap_or(first);
            let mut below = Vec::new();
            for child in run {
                match child.at {
                    TreeNode::User(user) => (self.ranks[user as usize], self.next) = (rank, self.next + 1),
                    TreeNode::Group(group) => below.extend(self.children(group)),
                }
            }
            if self.next > first {
                tied = Some(rank);
            }
            self.place(below, tied);
            if self.next > first {
                tied = None;
            }
        }
    }
}

impl Checkpoint for FairTree {
    fn visit(&mut self, visitor: &mut Visitor) -> Result<()> {
        let FairTree { branches: _, capacity: _, ranks } = self;
        visitor.value(ranks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// Computes the ranks of users in the groups of a file; the users have a name and usage and are in order of appearance.
    fn test_ranks(groups: &str, users: &[(&str, u64)]) -> Vec<u32> {
        let file = QuotaFile::parse(Path::new("tree.toml"), groups).expect("a good file");
        let mut branches = Branches::from_file("fair-tree", &file, &Default::default()).expect("ratios");
        users.iter().for_each(|(name, _)| branches.open(name).expect("a user of a group"));
        ranks(&branches, &users.iter().map(|(_, usage)| *usage).collect::<Vec<_>>())
    }

    const TWO: &str = "[[group]]\nname = 'A'\nusers = ['a*']\n[[group]]\nname = 'B'\nusers = ['b*', 'c']\n";

    /// In the first case the level shares are 1.25 (A) and 0.83 (B), then 2 (a1) and 0.67 (a2). The ranks 0, 1 and 2 correspond to the
    /// factors 3/3, 2/3 and 1/3 of Slurm's text.
    #[test]
    fn the_tree_is_walked_by_level_shares() {
        assert_eq!(test_ranks(TWO, &[("a1", 10), ("a2", 30), ("b1", 60)]), [0, 1, 2]);
        assert_eq!(test_ranks(TWO, &[("a1", 50), ("a2", 30), ("b1", 60)]), [2, 1, 0]);
        // Without usage the level share is infinite.
        assert_eq!(test_ranks(TWO, &[("a1", 50), ("a2", 0), ("b1", 60)]), [1, 0, 2]);
    }

    #[test]
    fn ties_share_ranks_and_merge_groups() {
        // Users that tie share a rank, and the rank behind them is skipped.
        assert_eq!(test_ranks(TWO, &[("a1", 20), ("a2", 20), ("b1", 60)]), [0, 0, 2]);
        // The groups tie, so their users are in one list. The level shares are 2 and 2/3 in A, 4 and 4/7 in B.
        assert_eq!(test_ranks(TWO, &[("a1", 10), ("a2", 30), ("b1", 5), ("b2", 35)]), [1, 2, 0, 3]);
        // Users of both groups may tie in the merged list. The level shares are 2 and 2/3 in both groups.
        assert_eq!(test_ranks(TWO, &[("a1", 10), ("a2", 30), ("b1", 10), ("b2", 30)]), [0, 2, 0, 2]);
        // No user has any usage.
        assert_eq!(test_ranks(TWO, &[("a1", 0), ("b1", 0), ("c", 0)]), [0, 0, 0]);
        let three = "[[group]]\nname = 'A'\nratio = 0\nusers = ['a']\n[[group]]\nname = 'B'\nusers = ['b']\n\
                     [[group]]\nname = 'C'\n[[group]]\nname = 'D'\nparent = 'C'\nusers = ['d*']\n";
        // A group without a share comes last; users of a nested group are two levels down.
        assert_eq!(test_ranks(three, &[("a", 1), ("b", 30), ("d1", 10), ("d2", 9)]), [3, 2, 1, 0]);
    }

    /// A user that ties with a group has the rank of the group's best user.
    #[test]
    fn a_user_may_tie_with_a_group() {
        let mut branches = Branches::flat(&Default::default());
        let file = QuotaFile::parse(Path::new("tree.toml"), TWO).expect("a good file");
        branches.open("u").expect("no groups");
        let mut tree = Branches::from_file("fair-tree", &file, &Default::default()).expect("ratios");
        ["a1", "a2", "b1"].iter().for_each(|name| tree.open(name).expect("a user of a group"));
        let walk = |list: Vec<Child>| {
            let (usage, sums) = ([10, 30, 60], vec![100, 40, 60]);
            let mut walk = Walk { branches: &tree, usage: &usage, sums, ranks: vec![9; 4], next: 0 };
            walk.place(list, None);
            walk.ranks
        };
        let child = |at: TreeNode, over: u64| Child { at, class: 1, over: over.into(), under: U256::ONE };
        // The fourth user is a sibling of the groups, and ties with the first.
        assert_eq!(
            walk(vec![child(TreeNode::Group(2), 1), child(TreeNode::Group(1), 2), child(TreeNode::User(3), 2)]),
            [0, 2, 3, 0]
        );
    }
}
