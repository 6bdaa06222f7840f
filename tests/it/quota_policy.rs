//! Quota groups in the simulation: small cases by hand, and random ones against a simulator that computes all quotas
//! anew, as fractions, from their definition, before every round.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use plimsoll::books::{Books, Weights};
use plimsoll::cluster::{Cluster, ClusterSpec};
use plimsoll::engine::{self, OnBlocked, Options};
use plimsoll::error::Result;
use plimsoll::fluid::Exact;
use plimsoll::policy::{Inside, Quota, QuotaFile, Reclaim, Setup, Variant};
use plimsoll::record::{Decision, Recorder, StuckRecord, TaskRecord, Turn};
use plimsoll::units::{Resources, Time};
use plimsoll::workload::{CsvTrace, Input, Source};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// When each task of each job starts; `None`: never.
type Starts = BTreeMap<(String, u64), Option<u64>>;

#[derive(Default)]
struct Heard {
    starts: Starts,
    refusals: u64,
}

impl Recorder for Heard {
    fn tasks(&mut self, tasks: &TaskRecord) -> Result<()> {
        let mut name = String::new();
        tasks.name.render(&mut name);
        for task in tasks.first..tasks.first + u64::from(tasks.count) {
            self.starts.insert((name.clone(), task), Some(tasks.start.0 / 1_000_000));
        }
        Ok(())
    }

    fn stuck(&mut self, stuck: &StuckRecord) -> Result<()> {
        let mut name = String::new();
        stuck.name.render(&mut name);
        self.starts.extend((stuck.first..stuck.first + stuck.tasks).map(|task| ((name.clone(), task), None)));
        Ok(())
    }

    fn wants_decisions(&self) -> bool {
        true
    }

    fn decided(&mut self, decision: &Decision, _books: &Books) -> Result<()> {
        self.refusals += u64::from(matches!(decision.turn, Turn::NotAdmitted));
        Ok(())
    }
}

/// Replays rows on a pool, under groups.
pub fn replay<R: Recorder>(groups: &str, rows: &str, machines: &str, on_blocked: OnBlocked, mut recorder: R) -> R {
    let text = format!("job,user,submit_s,duration_s,tasks,cpu,memory_gib,priority\n{rows}");
    let mut source = CsvTrace::new(&Input::Bytes(PathBuf::from("drawn.csv"), text.as_bytes().into())).expect("a trace");
    let spec = ClusterSpec::parse("machines", machines).expect("machines");
    let cluster = Cluster::new(&spec, source.dims()).expect("a cluster");
    let weights = Weights::default();
    let setup = Setup { dims: &cluster.dims, capacity: cluster.total(), machines: 1, weights: &weights };
    let file = QuotaFile::parse(Path::new("groups.toml"), groups).unwrap_or_else(|error| panic!("{error}\n{groups}"));
    let mut policy = Quota::new(&file, &setup).expect("a policy");
    let options = Options { on_blocked, audit: true, ..Options::default() };
    engine::run(&mut source, &mut policy, &cluster, weights.clone(), &options, &mut recorder).expect("a run");
    recorder
}

/// The starts of jobs on a pool, in seconds.
fn starts(groups: &str, rows: &str, machines: &str, job: &str) -> Vec<Option<u64>> {
    let heard = replay(groups, rows, machines, OnBlocked::Skip, Heard::default());
    heard.starts.iter().filter(|((name, _), _)| name == job).map(|(_, start)| *start).collect()
}

const TWO: &str = "[[group]]\nname = 'a'\nusers = ['a']\n[[group]]\nname = 'b'\nusers = ['b']\n";

#[test]
fn two_groups_lend_and_return() {
    // Alone a may use all; b's request takes half of it back, but what runs runs on.
    let rows = "1,a,0,10,4,1,1,0\n2,a,1,10,4,1,1,0\n3,b,1,10,4,1,1,0\n";
    assert_eq!(starts(TWO, rows, "1x4c4g", "1"), [Some(0); 4]);
    for job in ["2", "3"] {
        assert_eq!(starts(TWO, rows, "1x4c4g", job), [Some(10), Some(10), Some(20), Some(20)], "job {job}");
    }
}

#[test]
fn above_its_quota_a_group_launches_nothing_or_keeps_what_runs() {
    // a holds 4 of 6 when b comes, and one of its tasks ends at 2.
    let rows = "1,a,0,2,1,1,1,0\n2,a,0,9,3,1,1,0\n3,a,1,9,3,1,1,0\n4,b,1,9,6,1,1,0\n";
    let (wait, never) = (TWO.to_owned(), format!("reclaim = 'never'\n{TWO}"));
    // Quotas of 3: b takes what is free, at 1 and at 2; a starts again when its other tasks have ended.
    assert_eq!(starts(&wait, rows, "1x6c6g", "3"), [Some(9); 3]);
    assert_eq!(starts(&wait, rows, "1x6c6g", "4")[..4], [Some(1), Some(1), Some(2), Some(10)]);
    // Quotas of 4 + 1 and 1, what runs first; at 2 of 4 + 1/2 and 1 + 1/2, rounded down; at 9 of 1 + 2 and 1 + 2.
    assert_eq!(starts(&never, rows, "1x6c6g", "3"), [Some(1), Some(9), Some(9)]);
    assert_eq!(starts(&never, rows, "1x6c6g", "4")[..4], [Some(1), Some(9), Some(9), Some(10)]);
}

#[test]
fn an_unused_minimum_is_lent_or_kept() {
    let group = |lend: &str| {
        format!(
            "[[group]]\nname = 'a'\nusers = ['a']\n[[group]]\nname = 'b'\nmin = {{ cpu = 2 }}\n{lend}\nusers = ['b']\n"
        )
    };
    let rows = "1,a,0,10,4,1,1,0\n";
    assert_eq!(starts(&group(""), rows, "1x4c4g", "1"), [Some(0); 4]);
    assert_eq!(starts(&group("lend = false"), rows, "1x4c4g", "1"), [Some(0), Some(0), Some(10), Some(10)]);
}

#[test]
fn variants_differ_as_the_smallest_case_says() {
    // Total 50, min 10 and 0, equal ratios, both hungry: 30 and 20, or 25 and 25.
    let groups = |variant: &str| {
        format!(
            "variant = '{variant}'\n[[group]]\nname = 'a'\nmin = {{ cpu = 10 }}\nusers = ['a']\n[[group]]\nname = 'b'\nusers = ['b']\n"
        )
    };
    let rows = "1,a,0,10,60,1,1,0\n2,b,0,10,60,1,1,0\n";
    for (variant, a, b) in [("min-plus-share", 30, 20), ("max-min-level", 25, 25)] {
        let first =
            |job| starts(&groups(variant), rows, "1x50c500g", job).iter().filter(|start| **start == Some(0)).count();
        // Memory has no minimums and plenty, so that CPU decides.
        assert_eq!((first("1"), first("2")), (a, b), "{variant}");
    }
}

#[test]
fn a_tree_is_not_its_leaves() {
    // {a, b} and {c}: half of it for c, where three equal leaves would get a third each.
    let groups = "[[group]]\nname = 'ab'\n[[group]]\nname = 'a'\nparent = 'ab'\nusers = ['a']\n[[group]]\nname = 'b'\nparent = 'ab'\nusers = ['b']\n[[group]]\nname = 'c'\nusers = ['c']\n";
    let rows = "1,a,0,10,90,1,1,0\n2,b,0,10,90,1,1,0\n3,c,0,10,90,1,1,0\n";
    let count = |job| starts(groups, rows, "1x90c90g", job).iter().filter(|start| **start == Some(0)).count();
    // 22.5 each, rounded down.
    assert_eq!((count("1"), count("2"), count("3")), (22, 22, 45));
}

#[test]
fn inside_a_group_priority_then_fifo_or_fair() {
    let groups = |inside: &str| format!("inside = '{inside}'\n[[group]]\nname = 'g'\ndefault = true\n");
    // x asks first and for all of it, then y; z is more urgent than both.
    let rows = "1,x,0,10,4,1,1,5\n2,x,1,10,4,1,1,5\n3,y,2,10,4,1,1,5\n4,z,3,10,1,1,1,0\n";
    let at_10 = |inside: &str, job: &str| {
        starts(&groups(inside), rows, "1x4c4g", job).iter().filter(|start| **start == Some(10)).count()
    };
    assert_eq!((at_10("fifo", "4"), at_10("fifo", "2"), at_10("fifo", "3")), (1, 3, 0));
    assert_eq!((at_10("fair", "4"), at_10("fair", "2"), at_10("fair", "3")), (1, 2, 1));
}

#[test]
fn a_user_of_no_group_is_an_error() {
    let (groups, rows) = (TWO, "1,c,0,1,1,1,1,0\n");
    let message = std::panic::catch_unwind(|| replay(groups, rows, "1x4c4g", OnBlocked::Skip, Heard::default())).err();
    let message = message.and_then(|message| message.downcast_ref::<String>().cloned()).expect("a message");
    assert!(message.contains("'c'") && message.contains("default = true"), "{message}");
}

/// A random case: groups as written and as numbers, and rows.
pub struct Case {
    pub toml: String,
    pub csv: String,
    pub file: QuotaFile,
    rows: Vec<Row>,
    pub capacity: [u64; 2],
}

struct Row {
    user: usize,
    submit: u64,
    duration: u64,
    tasks: u64,
    demand: [u64; 2],
    priority: u8,
}

const USERS: [&str; 5] = ["u0", "u1", "u2", "u3", "u4"];
const UNIT: [u64; 2] = [1000, 1024];

pub fn draw(seed: u64) -> Case {
    let rng = &mut ChaCha8Rng::seed_from_u64(seed);
    let mut pick = |options: &[&str]| options[rng.random_range(0..options.len())].to_owned();
    let mut toml = format!(
        "variant = '{}'\ninside = '{}'\nreclaim = '{}'\n",
        pick(&["min-plus-share", "max-min-level"]),
        pick(&["fifo", "fair"]),
        pick(&["never", "wait"])
    );
    let capacity = [rng.random_range(3..12u64), rng.random_range(3..12u64)];
    // Leaves first, so that a parent may stand behind its children; p0 and p1 may be empty leaves themselves.
    let leaves = rng.random_range(2..=4);
    let mut owner: Vec<usize> = USERS.iter().map(|_| rng.random_range(0..leaves)).collect();
    owner[4] = leaves - 1;
    let mut parent_min = [[0u64; 2]; 2];
    for leaf in 0..leaves {
        let parent = rng.random_range(0..3usize);
        let min: [u64; 2] = std::array::from_fn(|_| if rng.random_bool(0.4) { rng.random_range(0..4) } else { 0 });
        write!(
            toml,
            "[[group]]\nname = 'g{leaf}'\nratio = {{ cpu = {}, memory = {} }}\n",
            rng.random_range(0..4),
            rng.random_range(1..4)
        )
        .unwrap();
        writeln!(toml, "min = {{ cpu = {}, memory_gib = {} }}", min[0], min[1]).unwrap();
        if rng.random_bool(0.3) {
            writeln!(toml, "max = {{ cpu = {} }}", min[0] + rng.random_range(0..6)).unwrap();
        }
        if rng.random_bool(0.3) {
            writeln!(toml, "lend = false").unwrap();
        }
        if parent < 2 {
            writeln!(toml, "parent = 'p{parent}'").unwrap();
            (0..2).for_each(|d| parent_min[parent][d] += min[d]);
        }
        let mine: Vec<&str> = (0..4).filter(|&user| owner[user] == leaf).map(|user| USERS[user]).collect();
        writeln!(toml, "users = {mine:?}\ndefault = {}", leaf == leaves - 1).unwrap();
    }
    for (at, min) in parent_min.iter().enumerate() {
        write!(toml, "[[group]]\nname = 'p{at}'\nratio = {}\n", rng.random_range(1..4)).unwrap();
        writeln!(toml, "min = {{ cpu = {}, memory_gib = {} }}", min[0] + rng.random_range(0..2), min[1]).unwrap();
    }
    let mut rows: Vec<Row> = (0..rng.random_range(4..25))
        .map(|_| Row {
            user: rng.random_range(0..5),
            submit: rng.random_range(0..15),
            duration: rng.random_range(1..8),
            tasks: rng.random_range(1..5),
            demand: [rng.random_range(0..3), rng.random_range(1..3)],
            priority: rng.random_range(0..3),
        })
        .collect();
    rows.sort_by_key(|row| row.submit);
    let mut csv = String::new();
    for (job, row) in rows.iter().enumerate() {
        let Row { user, submit, duration, tasks, demand: [cpu, memory], priority } = row;
        writeln!(csv, "{job},{},{submit},{duration},{tasks},{cpu},{memory},{priority}", USERS[*user]).unwrap();
    }
    let file = QuotaFile::parse(Path::new("drawn.toml"), &toml).unwrap_or_else(|error| panic!("{error}\n{toml}"));
    Case { toml, csv, file, rows, capacity }
}

/// One group in one resource, as the definition needs it.
pub struct Bucket {
    pub base: Exact,
    pub reach: Exact,
    pub ratio: Exact,
}

/// min(total, sum of reach) poured over buckets: what all hold is piecewise linear in the level, so the level lies
/// between two neighbouring corners.
pub fn pour(variant: Variant, buckets: &[Bucket], total: &Exact) -> Vec<Exact> {
    let at = |level: &Exact| -> Vec<Exact> {
        let content = |bucket: &Bucket| {
            let poured = &bucket.ratio * level;
            let wanted = match variant {
                Variant::MinPlusShare => &bucket.base + &poured,
                Variant::MaxMinLevel => bucket.base.clone().max(poured),
            };
            if bucket.ratio.is_positive() { wanted.min(bucket.reach.clone()) } else { bucket.base.clone() }
        };
        buckets.iter().map(content).collect()
    };
    let sum = |parts: &[Exact]| parts.iter().fold(Exact::ZERO, |sum, part| &sum + part);
    let mut corners = vec![Exact::ZERO];
    for bucket in buckets.iter().filter(|bucket| bucket.ratio.is_positive()) {
        for amount in [bucket.base.clone(), bucket.reach.clone(), &bucket.reach - &bucket.base] {
            corners.push(&amount / &bucket.ratio);
        }
    }
    corners.sort();
    for pair in corners.windows(2) {
        let (low, high) = (sum(&at(&pair[0])), sum(&at(&pair[1])));
        if low <= *total && *total < high {
            let part = &(total - &low) / &(&high - &low);
            return at(&(&pair[0] + &(&part * &(&pair[1] - &pair[0]))));
        }
    }
    // Nothing is left over, or not even the bases are there.
    let (first, last) = (at(&corners[0]), at(&corners[corners.len() - 1]));
    if sum(&first) > *total { first } else { last }
}

struct Slow<'a> {
    case: &'a Case,
    leaf: [usize; 5],
    launched: Vec<u64>,
    /// Row and when it ends.
    running: Vec<(usize, u64)>,
    starts: Starts,
}

impl Slow<'_> {
    fn held(&self, group: usize, d: usize) -> u64 {
        let within = |row: usize| self.within(self.leaf[self.case.rows[row].user], group);
        self.running.iter().filter(|(row, _)| within(*row)).map(|(row, _)| self.case.rows[*row].demand[d]).sum()
    }

    fn within(&self, leaf: usize, group: usize) -> bool {
        leaf == group || self.case.file.groups[leaf].parent.is_some_and(|parent| self.within(parent, group))
    }

    /// Runtime quotas in base units, rounded down, by group and resource.
    fn quotas(&self, now: u64) -> Vec<[u64; 2]> {
        let groups = &self.case.file.groups;
        let mut quotas = vec![[0; 2]; groups.len()];
        for d in 0..2 {
            self.under(None, d, now, self.case.capacity[d] * UNIT[d], &mut quotas);
        }
        quotas
    }

    fn limits(&self, group: usize, d: usize) -> (u64, u64, u64) {
        let (group, name) = (&self.case.file.groups[group], ["cpu", "memory"][d]);
        let of = |list: &[(plimsoll::policy::Amount, u64)], absent| {
            list.iter().find(|(amount, _)| amount.dim.name == name).map_or(absent, |(_, value)| *value)
        };
        (of(&group.min, 0), of(&group.max, u64::MAX), of(&group.ratios, group.ratio))
    }

    fn request(&self, group: usize, d: usize, now: u64) -> u64 {
        let groups = &self.case.file.groups;
        let children: Vec<usize> = (0..groups.len()).filter(|&child| groups[child].parent == Some(group)).collect();
        if children.is_empty() {
            let waits = |row: &usize| {
                let this = &self.case.rows[*row];
                self.leaf[this.user] == group
                    && this.submit <= now
                    && (0..2).all(|d| this.demand[d] <= self.case.capacity[d])
            };
            let waiting = (0..self.case.rows.len()).filter(waits);
            let waiting: u64 = waiting
                .map(|row| (self.case.rows[row].tasks - self.launched[row]) * self.case.rows[row].demand[d])
                .sum();
            return (waiting + self.held(group, d)) * UNIT[d];
        }
        let cut = |&child: &usize| {
            let (min, max, _) = self.limits(child, d);
            let request = self.request(child, d, now).min(max);
            if groups[child].lend { request } else { request.max(min) }
        };
        children.iter().map(cut).sum()
    }

    fn under(&self, parent: Option<usize>, d: usize, now: u64, total: u64, quotas: &mut [[u64; 2]]) {
        let file = &self.case.file;
        let members: Vec<usize> = (0..file.groups.len()).filter(|&group| file.groups[group].parent == parent).collect();
        let bucket = |&group: &usize| {
            let (min, max, ratio) = self.limits(group, d);
            let demand = self.request(group, d, now).min(max);
            let mut base = if file.groups[group].lend { min.min(demand) } else { min };
            if file.reclaim == Reclaim::Never {
                base = base.max(self.held(group, d) * UNIT[d]);
            }
            Bucket { base: Exact::from(base), reach: Exact::from(demand.max(base)), ratio: Exact::from(ratio) }
        };
        let buckets: Vec<Bucket> = members.iter().map(bucket).collect();
        for (&group, quota) in members.iter().zip(pour(file.variant, &buckets, &Exact::from(total))) {
            quotas[group][d] = quota.floor().parts().map_or(0, |(whole, _)| whole as u64);
            self.under(Some(group), d, now, quotas[group][d], quotas);
        }
    }

    fn instant(&mut self, now: u64, on_blocked: OnBlocked) {
        self.running.retain(|(_, end)| *end > now);
        let quotas = self.quotas(now);
        while let Some(row) = self.choose(now, &quotas, on_blocked) {
            let task = self.launched[row];
            self.launched[row] += 1;
            self.running.push((row, now + self.case.rows[row].duration));
            self.starts.insert((row.to_string(), task), Some(now));
        }
    }

    fn choose(&self, now: u64, quotas: &[[u64; 2]], on_blocked: OnBlocked) -> Option<usize> {
        let rows = &self.case.rows;
        let large = |row: &Row| (0..2).any(|d| row.demand[d] > self.case.capacity[d]);
        let waits = |row: usize| rows[row].submit <= now && self.launched[row] < rows[row].tasks && !large(&rows[row]);
        let head = |user: usize| {
            let mine = (0..rows.len()).filter(|&row| rows[row].user == user && waits(row));
            mine.min_by_key(|&row| (rows[row].priority, rows[row].submit, row))
        };
        let first = |user: usize| rows.iter().position(|row| row.user == user);
        let mut line: Vec<usize> = (0..5).filter_map(head).collect();
        line.sort_by_cached_key(|&row| {
            let (user, leaf) = (rows[row].user, self.leaf[rows[row].user]);
            let over = |d: usize| match (self.held(leaf, d) * UNIT[d], quotas[leaf][d]) {
                (0, _) => Exact::ZERO,
                (_, 0) => Exact::ratio(1 << 28, 1),
                (held, quota) => &Exact::from(held) / &Exact::from(quota),
            };
            let own = |d: usize| {
                let mine = self.running.iter().filter(|(row, _)| rows[*row].user == user);
                let held: u64 = mine.map(|(row, _)| rows[*row].demand[d]).sum();
                &Exact::from(held) / &Exact::from(self.case.capacity[d])
            };
            let inside = match self.case.file.inside {
                Inside::Fifo => Exact::from(rows[row].submit * 1000 + row as u64),
                Inside::Fair => own(0).max(own(1)),
            };
            (over(0).max(over(1)), leaf, rows[row].priority, inside, first(user))
        });
        let free =
            |d: usize| self.case.capacity[d] - self.running.iter().map(|(row, _)| rows[*row].demand[d]).sum::<u64>();
        let admitted = |row: usize| {
            let leaf = self.leaf[rows[row].user];
            (0..quotas.len())
                .filter(|&group| self.within(leaf, group))
                .all(|group| (0..2).all(|d| (self.held(group, d) + rows[row].demand[d]) * UNIT[d] <= quotas[group][d]))
        };
        let fits = |row: usize| (0..2).all(|d| rows[row].demand[d] <= free(d));
        let mut may = line.into_iter().filter(|&row| admitted(row));
        match on_blocked {
            OnBlocked::Skip => may.find(|&row| fits(row)),
            OnBlocked::Stop => may.next().filter(|&row| fits(row)),
        }
    }
}

/// The starts according to the slow simulator, and how often a lender's return left a group above its quota.
fn slow(case: &Case, on_blocked: OnBlocked) -> Starts {
    let leaf = std::array::from_fn(|user| {
        let groups = &case.file.groups;
        let named = groups.iter().position(|group| group.users.iter().any(|name| name == USERS[user]));
        named.or_else(|| groups.iter().position(|group| group.default)).expect("a default")
    });
    let launched = vec![0; case.rows.len()];
    let mut slow = Slow { case, leaf, launched, running: Vec::new(), starts: Starts::new() };
    let mut times: Vec<Reverse<u64>> = case.rows.iter().map(|row| Reverse(row.submit)).collect();
    times.sort();
    times.dedup();
    let mut done = None;
    loop {
        let arrival = times.iter().map(|Reverse(at)| *at).filter(|at| done.is_none_or(|done| *at > done)).min();
        let end = slow.running.iter().map(|(_, end)| *end).min();
        let Some(now) = arrival.into_iter().chain(end).min() else { break };
        slow.instant(now, on_blocked);
        done = Some(now);
    }
    for (row, launched) in slow.launched.iter().enumerate() {
        slow.starts.extend((*launched..case.rows[row].tasks).map(|task| ((row.to_string(), task), None)));
    }
    slow.starts
}

#[test]
fn agrees_with_quotas_computed_anew_from_their_definition() {
    let (mut refusals, mut never) = (0, 0);
    for seed in 0..2000 {
        let case = draw(seed);
        let machines = format!("1x{}c{}g", case.capacity[0], case.capacity[1]);
        let on_blocked = if seed % 3 == 0 { OnBlocked::Stop } else { OnBlocked::Skip };
        let heard = replay(&case.toml, &case.csv, &machines, on_blocked, Heard::default());
        let expected = slow(&case, on_blocked);
        let differ = expected.iter().filter(|(task, start)| heard.starts.get(*task) != Some(*start));
        let early = |(task, start): &(&(String, u64), &Option<u64>)| {
            let given = heard.starts.get(*task).copied().flatten();
            start.unwrap_or(u64::MAX).min(given.unwrap_or(u64::MAX))
        };
        let differs = differ.min_by_key(early);
        if let Some((task, start)) = differs {
            let given = heard.starts.get(task);
            panic!(
                "seed {seed}, {on_blocked:?}, {machines}: {task:?} at {start:?}, not {given:?}\n{}\n{}",
                case.toml, case.csv
            );
        }
        assert_eq!(heard.starts.len(), expected.len());
        refusals += heard.refusals;
        never += expected.values().filter(|start| start.is_none()).count();
    }
    assert!(refusals > 1000 && never > 50, "too easy: {refusals} refusals, {never} tasks that never start");
}

/// What is rounded down in one group is not handed to another, but whole tasks of all groups stay within the cluster.
#[test]
fn quotas_of_a_full_cluster_sum_to_no_more_than_it() {
    let file = QuotaFile::parse(Path::new("groups.toml"), TWO).expect("a file");
    let weights = Weights::default();
    let dims = [plimsoll::units::Dim::parse("cpu").0];
    let capacity = Resources([3, 0, 0, 0, 0, 0, 0, 0]);
    let setup = Setup { dims: &dims, capacity, machines: 1, weights: &weights };
    let mut policy = Quota::new(&file, &setup).expect("a policy");
    let mut books = Books::new(1, capacity, capacity, true, weights.clone());
    books.keep_waiting_demand();
    for (at, name) in ["a", "b"].into_iter().enumerate() {
        use plimsoll::policy::Policy;
        let user = plimsoll::units::UserId(at as u32);
        books.open(name);
        policy.open(user, name).expect("a user of a group");
        books.queue(user, 10, &[1]);
        policy.prepare(Time::ZERO, &books, &[user]).expect("a round");
    }
    assert_eq!((policy.standing(0).0, policy.standing(1).0), (vec![1], vec![1]));
    assert_eq!((policy.group_of(plimsoll::units::UserId(1)), policy.standing(1).1), (1, vec![0]));
}
