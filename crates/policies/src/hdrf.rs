//! Hierarchical Dominant Resource Fairness, with rescaled vectors and blocked nodes.
//!
//! The policy starts at the cluster and descends to the child with the least dominant share over its weight, until it reaches a user. The
//! next task of that user starts. A user is blocked if it has no waiting task or if its next task demands more than is free. A group is
//! blocked if all its children are blocked. The vector of a group is the sum of its children's vectors. Blocked children count in full.
//! Let L be the least weighted dominant share of the unblocked children. Each unblocked child counts with at most L plus one of its tasks,
//! so that a group is not charged for imbalance that its children could not avoid. A resource is used up if its free amount is 0, or less
//! than any waiting task demands of it. Used-up resources do not count for the dominant share of a group.
//!
//! Source: Bhattacharya et al., "Hierarchical Scheduling for Diverse Datacenter Workloads", SoCC 2013.
//!
//! Departures from the source, which divides resources continuously:
//!
//! - Tasks are whole, so "blocked" and "used up" depend on what fits.
//! - The source scales children to L itself. With whole tasks a child can be one task ahead of its siblings. If it were scaled to L, that
//!   task would be free of charge: a group with ten users could run ten tasks before its share exceeds 0. Volcano omits children without
//!   an allocation, which removes the case L = 0 only.
//! - Groups of equal share are ordered by their share without rescaling, then by their order in the file. Shares are rounded to 2^-36 of
//!   the cluster where two are compared.

use super::branches::Branches;
use super::{Capabilities, Needs, Parsed, Policy, PolicyRow, Queue, QuotaFile, Rank, RankOrder, Setup, Stale};
use plimsoll_base::checkpoint::{Checkpoint, Visitor};
use plimsoll_base::error::{Error, Result};
use plimsoll_base::units::{Resources, Time, UserId};
use plimsoll_sim::books::{Books, WEIGHT_ONE};

/// `hdrf:FILE`
pub static ROW: PolicyRow = PolicyRow {
    name: "hdrf",
    spelling: "hdrf:FILE",
    rank: RankOrder::Stated("down the tree: the lowest dominant share / ratio of rescaled vectors first"),
    meaning: "Dominant Resource Fairness in a tree of groups; no group is charged for blocked children.",
    source: "Bhattacharya et al., SoCC 2013",
    example: "hdrf:experiments/quota/two-groups.toml",
    // Without groups this policy equals `drf`.
    checked: "drf",
    variants: &[],
    keys: &[],
    read: |given| match given.filter(|path| !path.is_empty()) {
        Some(path) => Ok(Parsed::grouped(path, path, |groups, setup| Ok(Box::new(Hdrf::new(groups, setup)?)))),
        None => Err("a file of groups, such as hdrf:groups.toml".to_owned()),
    },
};

/// Shares of the cluster, by resource, in steps of 2^-60.
type Vector = Resources<u128>;

/// The number of group levels under the cluster for which a rank has places, besides one place for the user.
const LEVELS: usize = 3;
/// The number of group levels under the cluster in a rank. A rank has one place for each level, and one for the user.
const NUMBER_BITS: u32 = 20;
const SHARE_BITS: u32 = 64 - NUMBER_BITS;
/// The largest weighted share that is compared: 2^44 steps of 2^-36.
const LARGEST: u64 = 256;

/// Serves the user at the end of the walk.
///
/// Cost: O(users * resources) per launch, for all ranks.
struct Hdrf {
    branches: Branches,
    upwards: Vec<u32>,
    dims: usize,
    /// The unit of weighted shares in comparisons, in millionths: less than one if a weight is less than 1/256.
    unit: u64,
    /// By group, its place in a rank: the rounded share and the position among groups.
    shares: Vec<u64>,
}

/// A child of a group.
struct Child {
    /// The rescaled vector, and the vector without rescaling (the sum of the allocations).
    vector: Vector,
    plain: Vector,
    /// The dominant share over the weight.
    share: u128,
    /// The largest dominant share of the next task among unblocked users: without weights, and over the weight.
    task: u128,
    step: u128,
    blocked: bool,
}

impl Hdrf {
    fn new(file: &QuotaFile, setup: &Setup) -> Result<Hdrf> {
        let branches = Branches::from_file("hdrf", file, setup.weights)?;
        let above = |group: &u32| Some(branches.groups()[*group as usize].parent).filter(|_| *group > 0);
        let depth = |group: u32| std::iter::successors(Some(group), above).count() - 1;
        let (groups, deepest) = (branches.groups().len(), (0..branches.groups().len() as u32).map(depth).max());
        if deepest > Some(LEVELS) || groups >= 1 << NUMBER_BITS {
            let expected = format!("at most {LEVELS} levels of groups and {} groups", (1 << NUMBER_BITS) - 2);
            return Err(Error::policy("hdrf", format!("{}", file.path.display()), expected));
        }
        let upwards = branches.upwards();
        let least = branches.groups().iter().map(|group| group.share).filter(|share| *share > 0).min();
        let unit = least.unwrap_or(WEIGHT_ONE).saturating_mul(LARGEST).min(WEIGHT_ONE);
        Ok(Hdrf { upwards, dims: setup.dims.len(), unit, shares: vec![0; groups], branches })
    }

    /// Returns a user as a child of its group.
    fn user(&self, user: UserId, free: &Resources, books: &Books) -> Child {
        let vector = shares(books.allocated(user), books.offered());
        let weight = self.branches.users()[user.index()].1;
        let waits = books.waiting(user) > 0;
        let fits = || books.head(user).iter().zip(free.0).all(|(need, free)| *need <= free);
        let task = if waits { dominant(&shares(books.head(user), books.offered())) } else { 0 };
        Child {
            vector,
            plain: vector,
            share: over(dominant(&vector), weight),
            task,
            step: over(task, weight),
            blocked: !waits || !fits(),
        }
    }

    /// Returns the resources that count for the dominant shares of groups.
    fn counted(&self, free: &Resources, books: &Books) -> Vec<usize> {
        let mut least = Resources::uniform(u64::MAX);
        let users = (0..self.branches.users().len() as u32).map(UserId);
        for user in users.filter(|user| books.waiting(*user) > 0) {
            let needs = books.head(user).iter().zip(&mut least.0);
            needs.filter(|(need, _)| **need > 0).for_each(|(need, least)| *least = (*least).min(*need));
        }
        let used_up = |d: usize| free[d] == 0 || least[d] != u64::MAX && least[d] > free[d];
        (0..self.dims).filter(|d| !used_up(*d)).collect()
    }

    /// Computes the ranks of all groups among their siblings.
    fn group_ranks(&self, books: &Books) -> Vec<u64> {
        let free = books.offered().saturating_sub(*books.total_held());
        let counted = self.counted(&free, books);
        let groups = self.branches.groups();
        let mut children: Vec<Vec<Child>> = groups.iter().map(|_| Vec::new()).collect();
        let mut compared = vec![(0, 0); groups.len()];
        for &group in &self.upwards {
            let branch = &groups[group as usize];
            let mut below = std::mem::take(&mut children[group as usize]);
            below.extend(branch.users.iter().map(|user| self.user(*user, &free, books)));
            let open = || below.iter().filter(|child| !child.blocked);
            let (vector, plain) = (together(&below, self.dims), sum(&below));
            let share =
                |vector: &Vector| over(counted.iter().map(|d| vector[*d]).max().unwrap_or(0), branch.share.max(1));
            let rounded = |share: u128| nearest(share * u128::from(self.unit) / u128::from(WEIGHT_ONE));
            compared[group as usize] = (rounded(share(&vector)), rounded(share(&plain)));
            if group > 0 {
                let task = open().map(|child| child.task).max().unwrap_or(0);
                let (share, step) = (share(&vector), over(task, branch.share.max(1)));
                let blocked = open().next().is_none();
                children[branch.parent as usize].push(Child { vector, plain, share, task, step, blocked });
            }
        }
        places(&compared)
    }
}

/// Computes the rank of each group: its share, then its position in the order by the share without rescaling and by group number.
fn places(compared: &[(u64, u64)]) -> Vec<u64> {
    let mut order: Vec<usize> = (0..compared.len()).collect();
    order.sort_by_key(|group| (compared[*group].1, *group));
    let mut places = vec![0; compared.len()];
    for (rank, group) in order.into_iter().enumerate() {
        places[group] = place(compared[group].0, rank as u32);
    }
    places
}

/// Converts amounts to shares of the cluster, rounded down.
fn shares(held: &[u64], capacity: &Resources) -> Vector {
    let share = |held: u64, capacity: u64| (u128::from(held) << 60).checked_div(capacity.into()).unwrap_or(0);
    Resources::from_slice(held).zip_with(*capacity, share)
}

/// Divides a share by a weight in millionths.
fn over(share: u128, weight: u64) -> u128 {
    share * u128::from(WEIGHT_ONE) / u128::from(weight)
}

/// Returns the largest share of a vector.
fn dominant(vector: &Vector) -> u128 {
    vector.iter().max().unwrap_or(0)
}

/// Returns the sum of the allocations of these children.
fn sum(children: &[Child]) -> Vector {
    children.iter().map(|child| child.plain).sum()
}

/// Returns the rescaled vector of a group with these children.
fn together(children: &[Child], dims: usize) -> Vector {
    let least = children.iter().filter(|child| !child.blocked).map(|child| child.share).min();
    let mut sum = Vector::default();
    for child in children {
        let most = least.map_or(child.share, |least| least.saturating_add(child.step));
        for d in 0..dims {
            sum[d] += match child.blocked || child.share <= most {
                true => child.vector[d],
                false => scaled(child.vector[d], most, child.share),
            };
        }
    }
    sum
}

/// Computes `part * most / share`, rounded down; `most` must be less than `share`.
fn scaled(part: u128, most: u128, share: u128) -> u128 {
    (ethnum::U256::from(part) * ethnum::U256::from(most) / ethnum::U256::from(share)).as_u128()
}

/// Rounds a share to steps of 2^-36.
fn nearest(share: u128) -> u64 {
    u64::try_from((share >> 23).div_ceil(2)).unwrap_or(u64::MAX)
}

/// Packs a rounded share and a number into one place of a rank.
fn place(share: u64, number: u32) -> u64 {
    let share = share.min((1 << SHARE_BITS) - 1);
    share << NUMBER_BITS | u64::from(number)
}

impl Policy for Hdrf {
    fn needs(&self) -> Needs {
        Needs { after_launches: true, ..Needs::default() }
    }

    fn open(&mut self, _user: UserId, name: &str) -> Result<()> {
        self.branches.open(name)
    }

    fn prepare(&mut self, _now: Time, books: &Books, _changed: &[UserId]) -> Result<Stale> {
        let shares = self.group_ranks(books);
        let same = std::mem::replace(&mut self.shares, shares) == self.shares;
        Ok(if same { Stale::None } else { Stale::All })
    }

    fn rank(&self, queue: &Queue, books: &Books) -> Rank {
        let (group, weight) = self.branches.users()[queue.user.index()];
        let own = over(dominant(&shares(books.allocated(queue.user), books.offered())), weight);
        // The groups from the top down, then the user.
        let mut places = [0u64; LEVELS + 1];
        let above = |group: &u32| Some(self.branches.groups()[*group as usize].parent);
        let path = std::iter::successors(Some(group), above).take_while(|group| *group > 0);
        let levels = path.clone().count();
        places[levels] = nearest(own);
        path.zip(places[..levels].iter_mut().rev()).for_each(|(group, place)| *place = self.shares[group as usize]);
        let wide = |high: u64, low: u64| u128::from(high) << 64 | u128::from(low);
        Rank::wide(wide(places[0], places[1]), wide(places[2], places[3]))
    }
}

impl Capabilities for Hdrf {
    fn checkpoint(&mut self) -> Option<&mut dyn Checkpoint> {
        Some(self)
    }
}

impl Checkpoint for Hdrf {
    fn visit(&mut self, visitor: &mut Visitor) -> Result<()> {
        let Hdrf { branches: _, upwards: _, dims: _, unit: _, shares } = self;
        visitor.value(shares)
    }
}
