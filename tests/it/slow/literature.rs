//! Policies of the literature that rank users, from their definitions alone: `docs/memory.md` and `docs/policies.md`.

use super::users::{User, View};
use super::{Credits, Memory, hdrf};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Zoo {
    /// With or without the groups of `tree.toml`.
    FairTree(Memory, bool),
    Multifactor(Memory, Factors),
    /// The weight of past usage, in thousandths.
    TimeBased(Memory, u64),
    Karma(Credits),
    /// With the groups of `tree.toml`.
    Hdrf,
    Psdsf,
    Tsf,
    /// The fairness knob, in thousandths.
    Tetris(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Factors {
    pub age: u128,
    pub fairshare: u128,
    pub priority: u128,
    pub max_age: u64,
}

/// The file of groups of the policies with trees.
pub const TREE: &str = "tests/it/tree.toml";
/// The parent and the ratio, in millionths, of each group in `tree.toml`. The first row is the cluster.
pub const GROUPS: [(usize, f64); 7] = [(0, 0.0), (0, 2e6), (0, 1e6), (2, 0.5e6), (2, 1e6), (4, 1e6), (0, 1e6)];
/// The group of each user of the cases.
pub const OF: [usize; 8] = [1, 1, 1, 3, 5, 5, 6, 6];

impl Zoo {
    pub fn name(self) -> String {
        match self {
            Zoo::FairTree(memory, true) => format!("fair-tree:{}:{TREE}", memory.text()),
            Zoo::FairTree(memory, false) => format!("fair-tree:{}", memory.text()),
            Zoo::Multifactor(memory, Factors { age, fairshare, priority, max_age }) => {
                let factors = format!("age={age}:fairshare={fairshare}:priority={priority}:max-age={max_age}us");
                format!("multifactor:{}:{factors}", memory.text())
            }
            Zoo::TimeBased(memory, k) => format!("time-based:{}:k={}", memory.text(), k as f64 / 1000.0),
            Zoo::Karma(Credits { quantum, guaranteed, credits, pool }) => {
                let free = if pool { "pool" } else { "public" };
                let guaranteed = guaranteed as f64 / 1000.0;
                format!("karma:cpu:{quantum}us:guaranteed={guaranteed}:credits={credits}:free={free}")
            }
            Zoo::Hdrf => format!("hdrf:{TREE}"),
            Zoo::Psdsf => "psdsf".to_owned(),
            Zoo::Tsf => "tsf".to_owned(),
            Zoo::Tetris(knob) => format!("tetris:{}", knob as f64 / 1000.0),
        }
    }

    /// Returns the interval after which the order may change without any event.
    pub fn period(self) -> Option<u64> {
        match self {
            Zoo::FairTree(memory, _) | Zoo::Multifactor(memory, _) | Zoo::TimeBased(memory, _) => Some(memory.period),
            Zoo::Karma(credits) => Some(credits.quantum),
            Zoo::Hdrf | Zoo::Psdsf | Zoo::Tsf | Zoo::Tetris(_) => None,
        }
    }

    pub fn memory(self) -> Option<Memory> {
        match self {
            Zoo::FairTree(memory, _) | Zoo::Multifactor(memory, _) | Zoo::TimeBased(memory, _) => Some(memory),
            _ => None,
        }
    }
}

/// Returns the rank of a user. The lowest is served first.
pub fn place(zoo: Zoo, view: &View, user: usize) -> Vec<u128> {
    match zoo {
        Zoo::FairTree(_, tree) => vec![ranks(view, tree)[user]],
        Zoo::Multifactor(memory, factors) => vec![priority(view, user, memory, factors)],
        Zoo::TimeBased(memory, k) => vec![of_fair_share(view, user, memory, k)],
        Zoo::Karma(_) => vec![u128::from(u64::MAX - view.credits[user])],
        Zoo::Hdrf => hdrf::path(view, user),
        Zoo::Tsf => task_share(view, &view.users[user]),
        Zoo::Psdsf | Zoo::Tetris(_) => unreachable!("these policies rank pairs only"),
    }
}

/// Returns the number of the user's running tasks divided by the number that it could run alone: the integer part and 100 binary places.
fn task_share(view: &View, user: &User) -> Vec<u128> {
    let demand = &user.head.as_ref().expect("it waits").0;
    let on = |machine: &Vec<u64>| {
        let demanded = (0..demand.len()).filter(|&r| demand[r] > 0);
        demanded.map(|r| (u128::from(machine[r]) << 20) / u128::from(demand[r])).min().unwrap_or(1 << 84)
    };
    let alone: u128 = view.machines.iter().map(on).sum::<u128>().clamp(1, 1 << 84);
    let (numerator, denominator) = (u128::from(user.running) << 20, alone * user.weight() as u128);
    let (mut places, mut rest) = (0, numerator % denominator);
    for _ in 0..100 {
        rest *= 2;
        places = places << 1 | u128::from(rest >= denominator);
        rest %= denominator;
    }
    vec![numerator / denominator, places]
}

fn cluster_time(view: &View, user: &User) -> f64 {
    let parts = (0..view.capacity.len()).filter(|&r| view.capacity[r] > 0);
    parts.map(|r| (user.past[r] << 10) / u128::from(view.capacity[r])).sum::<u128>() as f64
}

#[derive(Clone, Copy, PartialEq)]
enum Node {
    User(usize),
    Group(usize),
}

fn ranks(view: &View, tree: bool) -> Vec<u128> {
    let mut ranks = vec![0; view.users.len()];
    walk(view, tree, children(view, tree, 0), None, &mut 0, &mut ranks);
    ranks
}

/// Returns the children of a group, with their normalised shares.
fn children(view: &View, tree: bool, group: usize) -> Vec<(Node, f64)> {
    let of = |user: &usize| if tree { OF[view.users[*user].number] } else { 0 };
    let users = (0..view.users.len()).filter(|user| of(user) == group).map(Node::User);
    let groups = (1..if tree { GROUPS.len() } else { 0 }).filter(|&it| GROUPS[it].0 == group).map(Node::Group);
    let all: Vec<Node> = users.chain(groups).collect();
    let share = |node: &Node| match *node {
        Node::User(user) => view.users[user].weight(),
        Node::Group(group) => GROUPS[group].1,
    };
    let under = |group: usize, user: &usize| {
        std::iter::successors(Some(of(user)), |&at| (at > 0).then(|| GROUPS[at].0)).any(|at| at == group)
    };
    let used = |node: &Node| match *node {
        Node::User(user) => cluster_time(view, &view.users[user]),
        Node::Group(group) => {
            let users = (0..view.users.len()).filter(|user| under(group, user));
            users.map(|user| cluster_time(view, &view.users[user])).sum()
        }
    };
    let (shares, usage): (f64, f64) = (all.iter().map(share).sum(), all.iter().map(used).sum());
    let level = |node: Node| {
        let (share, used) = (share(&node), used(&node));
        (node, if used == 0.0 { f64::INFINITY } else { share / shares / (used / usage) })
    };
    all.into_iter().map(level).collect()
}

fn walk(view: &View, tree: bool, mut list: Vec<(Node, f64)>, tied: Option<u128>, next: &mut u128, ranks: &mut [u128]) {
    let mut tied = tied;
    while !list.is_empty() {
        let best = list.iter().map(|it| it.1).fold(0.0, f64::max);
        let ties = |it: &(Node, f64)| it.1 == best || best.is_finite() && (it.1 - best).abs() <= 1e-12 * best;
        let (run, rest): (Vec<_>, Vec<_>) = list.into_iter().partition(ties);
        list = rest;
        let before = *next;
        let rank = tied.unwrap_or(before);
        for (node, _) in &run {
            if let Node::User(user) = node {
                (ranks[*user], *next) = (rank, *next + 1);
            }
        }
        let groups = run.iter().filter_map(|(node, _)| if let Node::Group(group) = node { Some(*group) } else { None });
        let below = groups.flat_map(|group| children(view, tree, group)).collect();
        walk(view, tree, below, if *next > before { Some(rank) } else { tied }, next, ranks);
        if *next > before {
            tied = None;
        }
    }
}

const STEPS: f64 = 4_294_967_296.0;

fn priority(view: &View, user: usize, memory: Memory, factors: Factors) -> u128 {
    let used = |user: &User| cluster_time(view, user);
    let all: f64 = view.users.iter().map(used).sum();
    let weights: f64 = view.users.iter().map(User::weight).sum();
    let this = &view.users[user];
    let ratio = if all == 0.0 { 0.0 } else { used(this) * weights / (all * this.weight()) };
    let ratio = (ratio * STEPS).floor() / STEPS;
    let fairshare = (0.5_f64.powf(ratio) * STEPS) as u128;
    let (_, release, urgency) = this.head.as_ref().expect("it waits");
    let now = view.clock / memory.period * memory.period;
    let age = u128::from(now.saturating_sub(*release).min(factors.max_age)) << 32;
    let age = age / u128::from(factors.max_age);
    let urgency = (u128::from(9 - urgency) << 32) / 9;
    u128::MAX - factors.age * age - factors.fairshare * fairshare - factors.priority * urgency
}

fn of_fair_share(view: &View, user: usize, memory: Memory, k: u64) -> u128 {
    let mut elapsed = 0;
    for _ in 0..view.clock / memory.period {
        elapsed = memory.left(elapsed) + u128::from(memory.period);
    }
    let head = &view.users[user].head.as_ref().expect("it waits").0;
    let part = |r: usize| {
        let share = fair_shares(view, r, elapsed, k)[user];
        let held = view.users[user].held[r];
        match (held, head[r], share) {
            (0, 0, _) => 0,
            (_, _, 0) => u128::MAX,
            _ => (u128::from(held) << 64) / share,
        }
    };
    (0..view.capacity.len()).map(part).max().unwrap_or(0)
}

/// Divides one resource among the users. The proportions are in units of 2^-20 thousandths.
fn fair_shares(view: &View, r: usize, elapsed: u128, k: u64) -> Vec<u128> {
    let all = u128::from(view.capacity[r]) * elapsed;
    let used: Vec<i128> =
        view.users.iter().map(|user| (user.past[r] << 20).checked_div(all).unwrap_or(0) as i128).collect();
    let weight = |user: usize| {
        let weight = view.users[user].weights[r];
        (weight.num * 1_000_000 / weight.den) as i128
    };
    let wanted = |user: usize| u128::from(view.users[user].wanted[r]);
    let mut shares = vec![0u128; view.users.len()];
    let mut cut: Vec<(f64, usize)> = Vec::new();
    let mut left = u128::from(view.capacity[r]);
    loop {
        let open: Vec<usize> = (0..view.users.len()).filter(|&user| shares[user] < wanted(user)).collect();
        let weights: i128 = open.iter().map(|&user| weight(user)).sum();
        let part = |&user: &usize| {
            let own = weight(user) << 20;
            (own * 1000 + i128::from(k) * (own - used[user] * weights)).max(0) as u128
        };
        let sum: u128 = open.iter().map(part).sum();
        let (amount, mut again) = (left, false);
        if sum == 0 || amount == 0 {
            break;
        }
        cut.clear();
        for &user in &open {
            let (own, more) = (amount * part(&user), wanted(user) - shares[user]);
            again |= more * sum < own;
            let gets = if more * sum <= own { more } else { own / sum };
            if more * sum > own && own % sum > 0 {
                cut.push(((own % sum) as f64 / sum as f64, user));
            }
            (shares[user], left) = (shares[user] + gets, left - gets);
        }
        if !again {
            break;
        }
    }
    cut.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    for (_, user) in cut {
        let gets = left.min(1).min(wanted(user) - shares[user]);
        (shares[user], left) = (shares[user] + gets, left - gets);
    }
    shares
}
