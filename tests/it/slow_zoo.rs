//! The slow twin's policies of the literature, from their definitions alone: `docs/memory.md` and `docs/policies.md`.

use std::cmp::Reverse;

use crate::slow::Row;
use crate::slow_memory::Memory;
use crate::slow_ratio::Ratio;

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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Credits {
    pub quantum: u64,
    /// The guaranteed part of the cluster, in thousandths.
    pub guaranteed: u64,
    pub credits: u64,
    /// Users share the credits that were paid for public slices, instead of receiving free credits for the public share.
    pub pool: bool,
}

const TREE: &str = "tests/it/tree.toml";
/// The parent and the ratio, in millionths, of each group in `tree.toml`. The first row is the cluster.
const GROUPS: [(usize, f64); 7] = [(0, 0.0), (0, 2e6), (0, 1e6), (2, 0.5e6), (2, 1e6), (4, 1e6), (0, 1e6)];
/// The group of each user of the cases.
const OF: [usize; 8] = [1, 1, 1, 3, 5, 5, 6, 6];

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

    /// Returns whether the policy ranks pairs of user and machine.
    pub fn by_machine(self) -> bool {
        matches!(self, Zoo::Psdsf | Zoo::Tetris(_))
    }

    pub fn memory(self) -> Option<Memory> {
        match self {
            Zoo::FairTree(memory, _) | Zoo::Multifactor(memory, _) | Zoo::TimeBased(memory, _) => Some(memory),
            _ => None,
        }
    }
}

/// A user that has appeared.
#[derive(Clone, Debug)]
pub struct User {
    /// The number of the user in the rows.
    pub number: usize,
    pub weights: Vec<Ratio>,
    /// Amounts times time over the ended periods; `held` and `wanted` are the current amounts.
    pub past: Vec<u128>,
    pub held: Vec<u64>,
    /// The number of running tasks.
    pub running: u64,
    pub wanted: Vec<u64>,
    /// The demand, the release time and the priority of the next task.
    pub head: Option<(Vec<u64>, u64, u8)>,
}

impl User {
    fn weight(&self) -> f64 {
        self.weights[0].num as f64 * 1e6 / self.weights[0].den as f64
    }
}

/// The inputs of an order.
pub struct View<'a> {
    pub users: &'a [User],
    pub capacity: &'a [u64],
    /// All machines, one by one.
    pub machines: &'a [Vec<u64>],
    pub clock: u64,
    /// The credits of each user.
    pub credits: &'a [u64],
}

/// Returns the rank of a user. The lowest is served first.
pub fn place(zoo: Zoo, view: &View, user: usize) -> Vec<u128> {
    match zoo {
        Zoo::FairTree(_, tree) => vec![ranks(view, tree)[user]],
        Zoo::Multifactor(memory, factors) => vec![priority(view, user, memory, factors)],
        Zoo::TimeBased(memory, k) => vec![of_fair_share(view, user, memory, k)],
        Zoo::Karma(_) => vec![u128::from(u64::MAX - view.credits[user])],
        Zoo::Hdrf => path(view, user),
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

/// Returns the sort key of a user: for each group above it, from the top, the rescaled share, the plain share and the number of the group;
/// then its own share.
fn path(view: &View, user: usize) -> Vec<u128> {
    let held = |r: usize| view.users.iter().map(|user| user.held[r]).sum::<u64>();
    let free: Vec<u64> = (0..view.capacity.len()).map(|r| view.capacity[r] - held(r)).collect();
    let heads: Vec<&Vec<u64>> = view.users.iter().filter_map(|user| Some(&user.head.as_ref()?.0)).collect();
    let used_up = |r: usize| {
        let least = heads.iter().map(|head| head[r]).filter(|need| *need > 0).min();
        free[r] == 0 || least.is_some_and(|least| least > free[r])
    };
    let counted: Vec<usize> = (0..free.len()).filter(|r| !used_up(*r)).collect();
    let group = OF[view.users[user].number];
    let mut groups: Vec<usize> =
        std::iter::successors(Some(group), |&at| Some(GROUPS[at].0)).take_while(|at| *at > 0).collect();
    groups.reverse();
    let mut path = Vec::new();
    for at in groups {
        let plain = dominant(&allocation(view, at), &counted) / GROUPS[at].1 * 1e6;
        path.extend([steps(group_of(view, at, &free, &counted).share), steps(plain), at as u128]);
    }
    path.push(steps(leaf(view, user, &free).share));
    path
}

fn steps(share: f64) -> u128 {
    (share * 68_719_476_736.0).round() as u128
}

fn dominant(vector: &[f64], counted: &[usize]) -> f64 {
    counted.iter().map(|&r| vector[r]).fold(0.0, f64::max)
}

/// Returns amounts as parts of the cluster.
fn parts(view: &View, amounts: &[u64]) -> Vec<f64> {
    let part = |r: usize| if view.capacity[r] == 0 { 0.0 } else { amounts[r] as f64 / view.capacity[r] as f64 };
    (0..amounts.len()).map(part).collect()
}

/// Returns the sum of the allocations of all users under a group.
fn allocation(view: &View, group: usize) -> Vec<f64> {
    let mut sum = vec![0.0; view.capacity.len()];
    for user in view.users {
        let mut above = std::iter::successors(Some(OF[user.number]), |&at| (at > 0).then(|| GROUPS[at].0));
        if above.any(|at| at == group) {
            sum.iter_mut().zip(parts(view, &user.held)).for_each(|(sum, part)| *sum += part);
        }
    }
    sum
}

/// The values of a child that the share of its group depends on.
struct Seen {
    vector: Vec<f64>,
    /// The dominant share divided by the weight.
    share: f64,
    /// The largest dominant share of a next task under the child. `step` is that share divided by the weight.
    task: f64,
    step: f64,
    blocked: bool,
}

fn leaf(view: &View, user: usize, free: &[u64]) -> Seen {
    let user = &view.users[user];
    let all: Vec<usize> = (0..free.len()).collect();
    let vector = parts(view, &user.held);
    let head = user.head.as_ref().map(|(head, ..)| head);
    let fits = |head: &Vec<u64>| head.iter().zip(free).all(|(need, free)| need <= free);
    let task = head.map_or(0.0, |head| dominant(&parts(view, head), &all));
    let share = dominant(&vector, &all) / user.weight() * 1e6;
    Seen { vector, share, task, step: task / user.weight() * 1e6, blocked: !head.is_some_and(fits) }
}

fn group_of(view: &View, group: usize, free: &[u64], counted: &[usize]) -> Seen {
    let users = (0..view.users.len()).filter(|&user| OF[view.users[user].number] == group);
    let groups = (1..GROUPS.len()).filter(|&it| GROUPS[it].0 == group);
    let mut below: Vec<Seen> = groups.map(|it| group_of(view, it, free, counted)).collect();
    below.extend(users.map(|user| leaf(view, user, free)));
    let open = || below.iter().filter(|child| !child.blocked);
    let least = open().map(|child| child.share).fold(f64::INFINITY, f64::min);
    let mut vector = vec![0.0; free.len()];
    for child in &below {
        // A child counts as at most one task ahead of the child with the least share.
        let most = least + child.step;
        let ahead = !child.blocked && child.share > most * (1.0 + 1e-12);
        let factor = if ahead { most / child.share } else { 1.0 };
        vector.iter_mut().zip(&child.vector).for_each(|(sum, part)| *sum += part * factor);
    }
    let share = dominant(&vector, counted) / GROUPS[group].1 * 1e6;
    let task = open().map(|child| child.task).fold(0.0, f64::max);
    Seen { vector, share, task, step: task / GROUPS[group].1 * 1e6, blocked: open().next().is_none() }
}

/// Returns the rank of a pair: the next tasks of a row, for a user with the allocation `held`, on a machine with this capacity and these
/// free amounts.
pub fn pair(
    zoo: Zoo,
    (need, tasks): (&[u64], u64),
    held: &[u64],
    weights: &[Ratio],
    spot: [&[u64]; 2],
    eligible: bool,
) -> [u128; 2] {
    let [whole, free] = spot.map(|amounts| move |r: usize| u128::from(amounts[r]));
    let demanded = (0..need.len()).filter(|&r| need[r] > 0);
    let wide = |amount: u64| u128::from(amount);
    match zoo {
        Zoo::Psdsf => {
            let part = |r: usize| {
                let with = wide(held[r]) + wide(need[r]) * wide(tasks);
                ((with * weights[r].den) << 80) / (whole(r) * weights[r].num)
            };
            [0, demanded.map(part).max().unwrap_or(0)]
        }
        _ => {
            let part = |r: usize| wide(need[r]) * free(r) * ((1 << 120) / whole(r).pow(2));
            [u128::from(!eligible), u128::MAX - demanded.map(part).sum::<u128>()]
        }
    }
}

/// The accounts of Karma.
#[derive(Clone, Debug, Default)]
pub struct Accounts {
    next: u64,
    pub credits: Vec<u64>,
    earned: u64,
    demands: Vec<u64>,
    pub allocation: Vec<u64>,
    /// The number of rounds since the last launch.
    pub idle: u64,
}

impl Accounts {
    /// Advances to `now`. `demands` are the allocated and pending amounts of each user, in cores rounded up.
    pub fn round(&mut self, rule: Credits, slices: u64, now: u64, demands: &[u64]) {
        while self.next < now {
            self.quantum(rule, slices);
        }
        self.credits.resize(demands.len(), rule.credits);
        self.allocation.resize(demands.len(), 0);
        self.demands = demands.to_vec();
        if self.next == now {
            self.quantum(rule, slices);
        }
    }

    fn quantum(&mut self, rule: Credits, slices: u64) {
        self.next += rule.quantum;
        let users = self.credits.len() as u64;
        if users == 0 {
            return;
        }
        let mut public = slices - slices * rule.guaranteed / 1000;
        let fair = (slices - public) / users;
        let gift = if rule.pool { self.earned / users } else { public / users };
        self.earned -= if rule.pool { gift * users } else { 0 };
        self.credits.iter_mut().for_each(|credits| *credits += gift);
        let demands = self.demands.clone();
        let mut offered: Vec<u64> = demands.iter().map(|demand| fair.saturating_sub(*demand)).collect();
        let mut wanted: Vec<u64> =
            (0..demands.len()).map(|user| demands[user].saturating_sub(fair).min(self.credits[user])).collect();
        self.allocation = demands.iter().map(|demand| fair.min(*demand)).collect();
        loop {
            let borrows = (0..demands.len()).filter(|&user| wanted[user] > 0);
            let Some(borrower) = borrows.min_by_key(|&user| (Reverse(self.credits[user]), user)) else { return };
            let donates = (0..demands.len()).filter(|&user| offered[user] > 0);
            match donates.min_by_key(|&user| (self.credits[user], user)) {
                Some(donor) => {
                    offered[donor] -= 1;
                    self.credits[donor] += 1;
                }
                None if public > 0 => (public, self.earned) = (public - 1, self.earned + 1),
                None => return,
            }
            wanted[borrower] -= 1;
            self.credits[borrower] -= 1;
            self.allocation[borrower] += 1;
        }
    }

    /// Returns whether a user with this allocation may receive the additional amount.
    pub fn admits(&self, user: usize, held: u64, more: u64) -> bool {
        more == 0 || held + more <= self.allocation[user] * 1000
    }
}

/// Returns the demand of `tasks` tasks of a row.
pub fn times(row: &Row, tasks: u64) -> Vec<u64> {
    row.demand.iter().map(|amount| amount * tasks).collect()
}
