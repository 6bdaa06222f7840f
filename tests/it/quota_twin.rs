//! Compares the policy `quota`, at a size at which its optimisations matter, with a policy without optimisations. That policy sums
//! allocations and requests before every round, sorts for every level, and evaluates every group again.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};

use plimsoll::books::{Books, Weights};
use plimsoll::cluster::{Cluster, ClusterSpec, Placement};
use plimsoll::engine::{self, Options};
use plimsoll::error::Result;
use plimsoll::fair::water::{Group, ReducedGroup, UnusedMin};
use plimsoll::policy::{
    Amount, Ask, Capabilities, Needs, Policy, Queue, Quota, QuotaFile, Rank, Reason, Reclaim, Setup, Stale, Verdict,
};
use plimsoll::record::{Recorder, TaskRecord};
use plimsoll::units::{Dim, MAX_DIMS, Resources, Time, UserId};
use plimsoll::workload::{CsvTrace, Input, Source};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::water_anew::by_sort;

pub struct Plain<'a> {
    file: &'a QuotaFile,
    dims: Vec<Dim>,
    pub capacity: [u64; MAX_DIMS],
    leaves: Vec<usize>,
    /// The runtime quotas of the last round, by group and resource.
    runtime: Vec<[u64; MAX_DIMS]>,
}

impl<'a> Plain<'a> {
    pub fn new(file: &'a QuotaFile, dims: &[Dim], capacity: Resources) -> Plain<'a> {
        let runtime = vec![[0; MAX_DIMS]; file.groups.len()];
        Plain { file, dims: dims.to_vec(), capacity: capacity.0, leaves: Vec::new(), runtime }
    }

    fn within(&self, leaf: usize, group: usize) -> bool {
        leaf == group || self.file.groups[leaf].parent.is_some_and(|parent| self.within(parent, group))
    }

    fn held(&self, group: usize, d: usize, books: &Books) -> u64 {
        let mine = (0..self.leaves.len()).filter(|&user| self.within(self.leaves[user], group));
        mine.map(|user| books.allocated(UserId(user as u32))[d]).sum()
    }

    fn group(&self, at: usize, d: usize, books: &Books) -> Group {
        let group = &self.file.groups[at];
        let of = |list: &[(Amount, u64)], absent| {
            list.iter().find(|(amount, _)| amount.dim.name == self.dims[d].name).map_or(absent, |(_, value)| *value)
        };
        let (min, max, ratio) = match group.stated {
            true => (of(&group.min, 0), of(&group.max, u64::MAX), of(&group.ratios, group.ratio)),
            false => (0, 0, 0),
        };
        let users = (0..self.leaves.len()).filter(|&user| self.leaves[user] == at);
        let own: u128 = users.map(|user| books.wanted(UserId(user as u32), d)).sum();
        let below = (0..self.file.groups.len()).filter(|&child| self.file.groups[child].parent == Some(at));
        let heard = |child: usize| {
            let Group { request, min, max, unused_min, .. } = self.group(child, d, books);
            request.min(max).max(if unused_min == UnusedMin::Kept { min } else { 0 })
        };
        let request = own as u64 + below.map(heard).sum::<u64>();
        let held = if self.file.reclaim == Reclaim::Never { self.held(at, d, books) } else { 0 };
        let unused_min = if group.lend { UnusedMin::Lent } else { UnusedMin::Kept };
        Group { request, min, max, ratio, unused_min, held }
    }

    fn pour(&mut self, parent: Option<usize>, d: usize, books: &Books) -> Result<()> {
        let total = parent.map_or(self.capacity[d], |parent| self.runtime[parent][d]);
        let members: Vec<usize> =
            (0..self.file.groups.len()).filter(|&at| self.file.groups[at].parent == parent).collect();
        let standings: Vec<ReducedGroup> =
            members.iter().map(|&at| ReducedGroup::from_group(&self.group(at, d, books))).collect();
        let level = by_sort(self.file.variant, &standings, total)?;
        for (at, standing) in members.into_iter().zip(standings) {
            self.runtime[at][d] = standing.runtime(self.file.variant, level);
            self.pour(Some(at), d, books)?;
        }
        Ok(())
    }
}

impl Policy for Plain<'_> {
    fn open(&mut self, _user: UserId, name: &str) -> Result<()> {
        let named = self.file.groups.iter().position(|group| group.users.iter().any(|user| user == name));
        self.leaves.push(named.expect("every user is named"));
        Ok(())
    }

    fn prepare(&mut self, _now: Time, books: &Books, _changed: &[UserId]) -> Result<Stale> {
        (0..self.dims.len()).try_for_each(|d| self.pour(None, d, books))?;
        Ok(Stale::All)
    }

    fn rank(&self, queue: &Queue, books: &Books) -> Rank {
        let leaf = self.leaves[queue.user.index()];
        let used = |d: usize| match (self.held(leaf, d, books), self.runtime[leaf][d]) {
            (0, _) => 0,
            (_, 0) => u128::MAX,
            (held, runtime) => (u128::from(held) << 64) / u128::from(runtime),
        };
        let most = (0..self.dims.len()).map(used).max().unwrap_or(0).min((1 << 92) - 1);
        let place = u128::from(queue.release.0) << 64 | u128::from(queue.place);
        Rank::wide(most << 36 | (leaf as u128) << 4 | u128::from(queue.priority), place)
    }

    fn admit(&self, queue: &Queue, ask: &Ask, books: &Books) -> Verdict {
        let leaf = self.leaves[queue.user.index()];
        let allows = |group: usize| {
            (0..self.dims.len()).all(|d| self.held(group, d, books) + ask.footprint[d] <= self.runtime[group][d])
        };
        let above = (0..self.file.groups.len()).filter(|&group| self.within(leaf, group));
        if above.into_iter().all(allows) { Verdict::Yes } else { Verdict::No(Reason::Rule("above a quota")) }
    }

    fn needs(&self) -> Needs {
        Needs { waiting_demand: true, moves_others: true, ..Needs::default() }
    }
}

impl Capabilities for Plain<'_> {}

#[derive(Default)]
struct Starts(BTreeMap<(String, u64), (u64, Option<u32>)>);

impl Recorder for Starts {
    fn tasks(&mut self, tasks: &TaskRecord) -> Result<()> {
        let mut name = String::new();
        tasks.name.render(&mut name);
        for task in tasks.first..tasks.first + u64::from(tasks.count) {
            self.0.insert((name.clone(), task), (tasks.start.0, tasks.machine.map(|machine| machine.0)));
        }
        Ok(())
    }
}

/// Draws groups, and rows with a load that rises above the cluster's capacity and falls again.
fn draw(seed: u64) -> (String, String) {
    let rng = &mut ChaCha8Rng::seed_from_u64(seed);
    let (groups, users, parents) = (rng.random_range(20..60), 80, [0, 0, 5][seed as usize % 3]);
    let reclaim = ["wait", "never"][seed as usize % 2];
    let variant = ["min-plus-share", "max-min-level"][seed as usize / 2 % 2];
    let mut toml = format!("reclaim = '{reclaim}'\nvariant = '{variant}'\n");
    for parent in 0..parents {
        write!(toml, "[[group]]\nname = 'p{parent}'\nmin = {{ cpu = 100 }}\n").unwrap();
    }
    let lenders = rng.random_bool(0.7);
    for group in 0..groups {
        let mine: Vec<String> = (group..users).step_by(groups).map(|user| format!("u{user}")).collect();
        write!(toml, "[[group]]\nname = 'g{group}'\nusers = {mine:?}\nratio = {}\n", rng.random_range(1..5)).unwrap();
        writeln!(toml, "min = {{ cpu = {} }}", rng.random_range(0..3)).unwrap();
        if rng.random_bool(0.2) {
            writeln!(toml, "max = {{ cpu = {}, memory_gib = 90 }}", rng.random_range(3..9)).unwrap();
        }
        if !lenders && rng.random_bool(0.2) {
            writeln!(toml, "lend = false").unwrap();
        }
        if parents > 0 {
            writeln!(toml, "parent = 'p{}'", rng.random_range(0..parents)).unwrap();
        }
    }
    let mut csv = "job,user,submit_s,duration_s,tasks,cpu,memory_gib,priority\n".to_owned();
    let (mut submit, rows) = (0.0, 500);
    for job in 0..rows {
        // In the middle third of the rows the load is twice the capacity. In the other two thirds it is a third of the capacity.
        let pace = if (rows / 3..2 * rows / 3).contains(&job) { 1.0 } else { 6.0 };
        submit += pace * rng.random_range(0.0..1.0);
        let user = rng.random_range(0..users) * rng.random_range(1..=users) / users;
        let (duration, tasks) = (rng.random_range(5..60), rng.random_range(1..4));
        let (cpu, memory) = (rng.random_range(0..4), rng.random_range(1..8));
        let priority = rng.random_range(0..3);
        writeln!(csv, "{job},u{user},{submit:.3},{duration},{tasks},{cpu},{memory},{priority}").unwrap();
    }
    (toml, csv)
}

fn replay(file: &QuotaFile, csv: &str, placement: Placement, plain: bool) -> Starts {
    let bytes = Input::Bytes(PathBuf::from("drawn.csv"), csv.as_bytes().into());
    let mut source = CsvTrace::new(&bytes).expect("a trace");
    let spec = ClusterSpec::parse("machines", "10x12c24g").expect("machines");
    let cluster = Cluster::new(&spec, source.dims()).expect("a cluster");
    let weights = Weights::default();
    let setup = Setup { dims: &cluster.dims, capacity: cluster.total(), machines: 10, weights: &weights, labels: None };
    let mut twin = Plain::new(file, &cluster.dims, cluster.total());
    let mut quota = Quota::new(file, &setup).expect("a policy");
    let policy: &mut dyn Policy = if plain { &mut twin } else { &mut quota };
    let options = Options { placement, audit: true, ..Options::default() };
    let mut starts = Starts::default();
    engine::run(&mut source, policy, cluster, weights.clone(), &options, &mut starts).expect("a run");
    starts
}

#[test]
fn shortcuts_change_no_start() {
    let mut waited = 0;
    for seed in 0..24 {
        let (toml, csv) = draw(seed);
        let file = QuotaFile::parse(Path::new("groups.toml"), &toml).unwrap_or_else(|error| panic!("{error}\n{toml}"));
        let placement = if seed % 4 == 3 { Placement::FirstFit } else { Placement::Pooled };
        let [fast, plain] = [false, true].map(|plain| replay(&file, &csv, placement, plain).0);
        let differs =
            plain.iter().filter(|(task, start)| fast.get(*task) != Some(*start)).min_by_key(|(_, start)| **start);
        assert!(differs.is_none(), "seed {seed}: {differs:?}\n{toml}\n{csv}");
        assert_eq!(fast.len(), plain.len(), "seed {seed}");
        let submits = csv.lines().skip(1).filter_map(|row| row.split(',').nth(2)?.replace('.', "").parse().ok());
        let submits: BTreeSet<u64> = submits.map(|millis: u64| millis * 1000).collect();
        waited += fast.values().filter(|(start, _)| !submits.contains(start)).count();
    }
    assert!(waited > 2000, "too easy: only {waited} tasks waited");
}
