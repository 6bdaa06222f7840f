//! A slow simulator of quota groups: before every round, it recomputes all quotas as fractions from their definition.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use plimsoll::engine::OnBlocked;
use plimsoll::fair::Exact;
use plimsoll::policy::{Amount, GroupOrder, QuotaFile, Reclaim, Variant};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// The start of each attempt, by job, task and attempt; `None` if it never starts.
pub type Starts = BTreeMap<(String, u64, u64), Option<u64>>;

/// A random case: the groups as text and parsed, and the rows as text and as numbers.
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
    stable: bool,
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
        pick(&["never", "wait", "kill-after:0s", "kill-after:2s"])
    );
    let capacity = [rng.random_range(3..12u64), rng.random_range(3..12u64)];
    // Leaves are written first, so that a parent may follow its children. The parents p0 and p1 may have no children and no users.
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
    // The probability that a task is stable and may not be stopped: none, some or most tasks are.
    let stable = [0.0, 0.3, 0.8][rng.random_range(0..3)];
    let mut rows: Vec<Row> = (0..rng.random_range(4..25))
        .map(|_| Row {
            user: rng.random_range(0..5),
            submit: rng.random_range(0..15),
            duration: rng.random_range(1..8),
            tasks: rng.random_range(1..5),
            demand: [rng.random_range(0..3), rng.random_range(1..3)],
            priority: rng.random_range(0..3),
            stable: rng.random_bool(stable),
        })
        .collect();
    rows.sort_by_key(|row| row.submit);
    let mut csv = String::new();
    for (job, row) in rows.iter().enumerate() {
        let Row { user, submit, duration, tasks, demand: [cpu, memory], priority, stable } = row;
        let user = USERS[*user];
        writeln!(csv, "{job},{user},{submit},{duration},{tasks},{cpu},{memory},{priority},{stable}").unwrap();
    }
    let file = QuotaFile::parse(Path::new("drawn.toml"), &toml).unwrap_or_else(|error| panic!("{error}\n{toml}"));
    Case { toml, csv, file, rows, capacity }
}

/// The amounts of one group and resource that the definition uses.
pub struct Bucket {
    pub base: Exact,
    pub reach: Exact,
    pub ratio: Exact,
}

/// Returns the content of each bucket after min(total, sum of reach) was poured. The contents are piecewise linear in the level, so the
/// level is between two neighbouring corners.
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
    // Either every bucket reaches its limit, or the total does not cover the bases.
    let (first, last) = (at(&corners[0]), at(&corners[corners.len() - 1]));
    if sum(&first) > *total { first } else { last }
}

/// A running task.
#[derive(Clone, Copy, PartialEq)]
struct Run {
    row: usize,
    task: u64,
    attempt: u64,
    start: u64,
    end: u64,
}

struct Slow<'a> {
    case: &'a Case,
    leaf: [usize; 5],
    /// The waiting tasks of each row, each task with the number of times that it was stopped.
    waiting: Vec<BTreeMap<u64, u64>>,
    running: Vec<Run>,
    /// The time since which each group has exceeded its quota.
    over: BTreeMap<usize, u64>,
    /// The overdue excess that cannot be reclaimed, by group and resource.
    unreturned: Vec<[u64; 2]>,
    stopped: u64,
    starts: Starts,
}

impl Slow<'_> {
    fn held(&self, group: usize, d: usize) -> u64 {
        let within = |row: usize| self.within(self.leaf[self.case.rows[row].user], group);
        self.running.iter().filter(|run| within(run.row)).map(|run| self.case.rows[run.row].demand[d]).sum()
    }

    fn within(&self, leaf: usize, group: usize) -> bool {
        leaf == group || self.case.file.groups[leaf].parent.is_some_and(|parent| self.within(parent, group))
    }

    /// Returns the runtime quotas in base units, rounded down, by group and resource.
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
        let of = |list: &[(Amount, u64)], absent| {
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
            let waiting: u64 = waiting.map(|row| self.waiting[row].len() as u64 * self.case.rows[row].demand[d]).sum();
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
        self.running.retain(|run| run.end > now);
        while self.take_back(now) {}
        let quotas = self.quotas(now);
        while let Some(row) = self.choose(now, &quotas, on_blocked) {
            let (task, attempt) = self.waiting[row].pop_first().expect("it waits");
            let end = now + self.case.rows[row].duration;
            self.running.push(Run { row, task, attempt, start: now, end });
            self.starts.insert((row.to_string(), task, attempt), Some(now));
        }
    }

    /// Stops tasks of groups that have exceeded their quota for too long. Returns whether any task was stopped.
    fn take_back(&mut self, now: u64) -> bool {
        let Reclaim::KillAfter(after) = self.case.file.reclaim else { return false };
        let quotas = self.quotas(now);
        let excess = |group: usize, d: usize| (self.held(group, d) * UNIT[d]).saturating_sub(quotas[group][d]);
        let over = |group: &usize| (0..2).any(|d| excess(*group, d) > 0);
        let groups = 0..quotas.len();
        let over: BTreeMap<usize, u64> =
            groups.filter(over).map(|group| (group, *self.over.get(&group).unwrap_or(&now))).collect();
        let due: Vec<usize> =
            over.iter().filter(|(_, since)| **since + after.0 / 1_000_000 <= now).map(|(group, _)| *group).collect();
        // Of nested groups, only the lowest ones that have victims stop tasks.
        let gives = |group: usize| self.victims(group, [excess(group, 0), excess(group, 1)]);
        let mut stop = Vec::new();
        let mut unreturned = vec![[0; 2]; quotas.len()];
        for &group in &due {
            let under = |below: &&usize| **below != group && self.within(**below, group);
            if due.iter().filter(under).all(|below| gives(*below).is_empty()) {
                stop.extend(gives(group));
            }
        }
        for &group in due.iter().filter(|_| stop.is_empty()) {
            unreturned[group] = [excess(group, 0), excess(group, 1)];
        }
        self.running.retain(|run| !stop.contains(run));
        for run in &stop {
            self.waiting[run.row].insert(run.task, run.attempt + 1);
        }
        (self.over, self.unreturned) = (over, unreturned);
        self.stopped += stop.len() as u64;
        !stop.is_empty()
    }

    /// Returns the tasks to stop so that a group releases `excess`. Stable tasks are never stopped.
    fn victims(&self, group: usize, excess: [u64; 2]) -> Vec<Run> {
        let rows = &self.case.rows;
        let may = |run: &&Run| self.within(self.leaf[rows[run.row].user], group) && !rows[run.row].stable;
        let mut line: Vec<Run> = self.running.iter().filter(may).copied().collect();
        line.sort_by_key(|run| Reverse((rows[run.row].priority, run.start, run.row, run.task)));
        let free = |chosen: &[Run], d: usize| chosen.iter().map(|run| rows[run.row].demand[d] * UNIT[d]).sum::<u64>();
        let mut chosen: Vec<Run> = Vec::new();
        for run in line {
            let helps = |d: usize| rows[run.row].demand[d] > 0 && free(&chosen, d) < excess[d];
            if (0..2).any(helps) {
                chosen.push(run);
            }
        }
        // The amount that all chosen tasks release, at most the excess. Stable tasks can make it less than the excess.
        let most: [u64; 2] = std::array::from_fn(|d| free(&chosen, d).min(excess[d]));
        for at in (0..chosen.len()).rev() {
            let others: Vec<Run> = chosen.iter().filter(|run| **run != chosen[at]).copied().collect();
            let needless = |d: usize| rows[chosen[at].row].demand[d] == 0 || free(&others, d) >= most[d];
            if (0..2).all(needless) {
                chosen.remove(at);
            }
        }
        chosen
    }

    fn choose(&self, now: u64, quotas: &[[u64; 2]], on_blocked: OnBlocked) -> Option<usize> {
        let rows = &self.case.rows;
        let large = |row: &Row| (0..2).any(|d| row.demand[d] > self.case.capacity[d]);
        let waits = |row: usize| rows[row].submit <= now && !self.waiting[row].is_empty() && !large(&rows[row]);
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
                let mine = self.running.iter().filter(|run| rows[run.row].user == user);
                let held: u64 = mine.map(|run| rows[run.row].demand[d]).sum();
                &Exact::from(held) / &Exact::from(self.case.capacity[d])
            };
            let inside = match self.case.file.inside {
                GroupOrder::Fifo => Exact::from(rows[row].submit * 1000 + row as u64),
                GroupOrder::Fair => own(0).max(own(1)),
            };
            (over(0).max(over(1)), leaf, rows[row].priority, inside, first(user))
        });
        let free =
            |d: usize| self.case.capacity[d] - self.running.iter().map(|run| rows[run.row].demand[d]).sum::<u64>();
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
            rule => unreachable!("this simulator does not support {}", rule.name()),
        }
    }
}

/// The results of a case.
#[derive(Default)]
pub struct CaseResult {
    pub starts: Starts,
    /// The number of stopped tasks.
    pub stopped: u64,
    /// The overdue excess that could not be reclaimed, times seconds, by group and resource.
    pub unreturned: Vec<[u64; 2]>,
}

/// Returns the result of the slow simulator.
pub fn slow(case: &Case, on_blocked: OnBlocked) -> CaseResult {
    let leaf = std::array::from_fn(|user| {
        let groups = &case.file.groups;
        let named = groups.iter().position(|group| group.users.iter().any(|name| name == USERS[user]));
        named.or_else(|| groups.iter().position(|group| group.default)).expect("a default")
    });
    let waiting = case.rows.iter().map(|row| (0..row.tasks).map(|task| (task, 0)).collect()).collect();
    let (over, none) = (BTreeMap::new(), vec![[0; 2]; case.file.groups.len()]);
    let (unreturned, mut sums) = (none.clone(), none);
    let mut slow =
        Slow { case, leaf, waiting, running: Vec::new(), over, unreturned, stopped: 0, starts: Starts::new() };
    let mut times: Vec<Reverse<u64>> = case.rows.iter().map(|row| Reverse(row.submit)).collect();
    times.sort();
    times.dedup();
    let mut done = None;
    loop {
        let arrival = times.iter().map(|Reverse(at)| *at).filter(|at| done.is_none_or(|done| *at > done)).min();
        let end = slow.running.iter().map(|run| run.end).min();
        let wake = match case.file.reclaim {
            Reclaim::KillAfter(after) => {
                let due = slow.over.values().map(|since| since + after.0 / 1_000_000);
                due.filter(|at| done.is_none_or(|done| *at > done)).min()
            }
            _ => None,
        };
        let Some(now) = arrival.into_iter().chain(end).chain(wake).min() else { break };
        let span = now - done.unwrap_or(now);
        for (sum, amount) in sums.iter_mut().flatten().zip(slow.unreturned.iter().flatten()) {
            *sum += amount * span;
        }
        slow.instant(now, on_blocked);
        done = Some(now);
    }
    for (row, waiting) in slow.waiting.iter().enumerate() {
        slow.starts.extend(waiting.iter().map(|(task, attempt)| ((row.to_string(), *task, *attempt), None)));
    }
    CaseResult { starts: slow.starts, stopped: slow.stopped, unreturned: sums }
}
