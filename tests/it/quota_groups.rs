//! Accounting of quota group guarantees: tables compared with manual calculations, and random runs compared with integrals
//! and levels that are recomputed in every interval.

use std::path::Path;

use plimsoll::books::Books;
use plimsoll::engine::OnBlocked;
use plimsoll::error::Result;
use plimsoll::fair::Exact;
use plimsoll::metrics::{GroupLog, GroupSums, GroupTimes, Guarantee, Holding};
use plimsoll::policy::{GroupTree, Reclaim};
use plimsoll::record::{Recorder, State};
use plimsoll::units::{Resources, Span, Time, UserId};

use crate::determinism::{differences, results};
use crate::frame::Frame;
use crate::quota_policy::replay;
use crate::quota_slow::{Bucket, Case, draw, pour};
use crate::replay::{plimsoll, run, said};

/// Replays rows on four cores under groups, and reads a table.
fn tables(groups: &str, rows: &str, sample: &str, table: &str) -> Frame {
    let dir = tempfile::tempdir().expect("a temporary folder");
    ran(dir.path(), groups, &format!("job,user,submit_s,duration_s,tasks,cpu\n{rows}"), sample);
    read(dir.path(), table)
}

/// Replays a trace on four cores under groups, in a folder, and returns stderr.
fn ran(dir: &Path, groups: &str, trace: &str, sample: &str) -> String {
    let at = |name: &str| dir.join(name);
    let plan = format!(
        "name = 'by-hand'\npolicies = ['quota:groups.toml']\nsample = '{sample}'\n[cluster]\nplacement = 'pooled'\n\
         [[cluster.group]]\ncpu = 4\n[workload]\ntrace = 'trace.csv'\n"
    );
    for (name, text) in [("groups.toml", groups), ("trace.csv", trace), ("plan.toml", &plan)] {
        std::fs::write(at(name), text).expect("a temporary file is writable");
    }
    let output = run(plimsoll(&["run"]).arg(at("plan.toml")).arg("-o").arg(at("out")));
    assert!(output.status.success(), "{}", said(&output));
    said(&output)
}

fn read(dir: &Path, table: &str) -> Frame {
    let path = dir.join("out").join(table).join("policy=quota%3Agroups.toml/run=0").join(format!("{table}.parquet"));
    Frame::open(&path)
}

fn names(table: &Frame, column: &str) -> Vec<String> {
    table.names(column, "-")
}

/// At 0 s `b` takes all four cores for 10 s. At 3 s `a`, which is under `p` and is guaranteed two cores, requests three cores for 5 s.
const GROUPS: &str = "[[group]]\nname = 'p'\nmin = { cpu = 2 }\n[[group]]\nname = 'a'\nparent = 'p'\n\
                      min = { cpu = 2 }\nmax = { cpu = 3 }\nusers = ['a']\n[[group]]\nname = 'b'\nusers = ['b']\n";
const ROWS: &str = "1,b,0,10,4,1\n2,a,3,5,3,1\n";

#[test]
fn a_lenders_return_by_hand() {
    let table = tables(GROUPS, ROWS, "1s", "groups");
    assert_eq!(names(&table, "group"), ["p", "a", "b"]);
    assert_eq!(names(&table, "parent"), ["-", "p", "-"]);
    // From 3 s to 10 s a waits for its guaranteed two cores. Then it runs three tasks until 15 s.
    let expected: [(&str, [Option<f64>; 3]); 14] = [
        ("capacity", [Some(4.0); 3]),
        ("min", [Some(2.0), Some(2.0), Some(0.0)]),
        ("max", [None, Some(3.0), None]),
        ("ratio", [Some(1.0); 3]),
        ("used_s", [Some(15.0), Some(15.0), Some(40.0)]),
        ("demand_s", [Some(36.0), Some(36.0), Some(40.0)]),
        ("borrowed_s", [Some(5.0), Some(5.0), Some(40.0)]),
        ("spare_s", [Some(6.0), Some(6.0), Some(0.0)]),
        ("short_s", [Some(14.0), Some(14.0), Some(0.0)]),
        ("below_min_s", [Some(7.0), Some(7.0), Some(0.0)]),
        ("returns", [Some(1.0), Some(1.0), Some(0.0)]),
        ("return_mean_s", [Some(7.0), Some(7.0), None]),
        ("return_max_s", [Some(7.0), Some(7.0), None]),
        ("return_open_s", [None; 3]),
    ];
    for (column, values) in expected {
        assert_eq!(table.numbers(column), values, "{column}");
    }
}

#[test]
fn what_stable_tasks_keep_is_counted_and_said() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let groups = format!("reclaim = 'kill-after:3s'\n{GROUPS}");
    let trace = "job,user,submit_s,duration_s,tasks,cpu,stable\n1,b,0,10,4,1,true\n2,a,3,5,3,1,false\n";
    let said = ran(dir.path(), &groups, trace, "1s");
    let table = read(dir.path(), "groups");
    // The quota of b is one core from 3 s on. From 6 s on three cores are overdue for reclaim, until the tasks of b end at 10 s.
    assert_eq!(table.numbers("unreturned_s"), [Some(0.0), Some(0.0), Some(12.0)]);
    assert_eq!(table.numbers("tasks_stopped"), [Some(0.0); 3]);
    let warning = "quota:groups.toml: not given back when it was due, since tasks marked stable are never stopped: \
                   'b' 0.003333 cpu h";
    assert!(said.contains(warning), "{said}");
    let page = std::fs::read_to_string(dir.path().join("out/report.html")).expect("a report");
    assert!(page.contains("not given back cpu h"));
    // Without the `stable` mark three tasks of b are stopped at 6 s, and no warning is printed.
    let trace = trace.replace("true", "false");
    let said = ran(dir.path(), &groups, &trace, "1s");
    let table = read(dir.path(), "groups");
    assert_eq!(table.numbers("unreturned_s"), [Some(0.0); 3]);
    assert_eq!(table.numbers("tasks_stopped"), [Some(0.0), Some(0.0), Some(3.0)]);
    let page = std::fs::read_to_string(dir.path().join("out/report.html")).expect("a report");
    assert!(!said.contains("not given back") && !page.contains("not given back"), "{said}");
}

#[test]
fn levels_over_time_by_hand() {
    let table = tables(GROUPS, ROWS, "2s", "levels");
    let columns = ["time_us", "runtime", "used", "request", "level", "base", "reach"];
    let columns = columns.map(|column| table.numbers(column));
    let rows: Vec<(String, [f64; 7])> = names(&table, "group")
        .into_iter()
        .enumerate()
        .map(|(row, name)| (name, std::array::from_fn(|at| columns[at][row].expect("a number"))))
        .collect();
    let row = |name: &str, values: [f64; 7]| (name.to_owned(), values);
    let expected = [
        // Only b has demand: the water level is 4.
        row("p", [0.0, 0.0, 0.0, 0.0, 4.0, 0.0, 0.0]),
        row("a", [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]),
        row("b", [0.0, 4.0, 4.0, 4.0, 4.0, 0.0, 4.0]),
        // At 4 s two of the four cores are the minimum of p, and p and b each receive one more core. Group a receives the whole quota of p.
        row("p", [4e6, 3.0, 0.0, 3.0, 1.0, 2.0, 3.0]),
        row("a", [4e6, 3.0, 0.0, 3.0, 1.0, 2.0, 3.0]),
        row("b", [4e6, 1.0, 4.0, 4.0, 1.0, 0.0, 4.0]),
        // From 10 s on only a has demand.
        row("p", [10e6, 3.0, 3.0, 3.0, 1.0, 2.0, 3.0]),
        row("a", [10e6, 3.0, 3.0, 3.0, 1.0, 2.0, 3.0]),
        row("b", [10e6, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0]),
    ];
    assert_eq!(rows, expected);
}

/// Feeds the accumulators as a collector does, and recomputes every value from the books in each interval.
struct Twin<'a> {
    case: &'a Case,
    owner: Vec<usize>,
    names: Vec<String>,
    before: Vec<[Holding; 2]>,
    log: Option<GroupLog>,
    tree: Option<GroupTree>,
    sums: Vec<[GroupSums; 2]>,
    times: Vec<GroupTimes>,
    /// By group, in the last interval: the guaranteed demand, whether the usage was below it, and the start of the pending return.
    due: Vec<[u64; 2]>,
    below: Vec<bool>,
    waits: Vec<Option<Time>>,
    /// Changes that were settled since the last interval. They are logged once the tree is known.
    told: Vec<(Time, UserId, [Holding; 2])>,
    compared: u64,
    end: Time,
}

impl Twin<'_> {
    fn new(case: &Case) -> Twin<'_> {
        let groups = case.file.groups.len();
        Twin {
            case,
            owner: Vec::new(),
            names: Vec::new(),
            before: Vec::new(),
            log: None,
            tree: None,
            sums: vec![[GroupSums::default(); 2]; groups],
            times: vec![GroupTimes::default(); groups],
            due: vec![[0; 2]; groups],
            below: vec![false; groups],
            waits: vec![None; groups],
            told: Vec::new(),
            compared: 0,
            end: Time::ZERO,
        }
    }

    fn within(&self, leaf: usize, group: usize) -> bool {
        leaf == group || self.case.file.groups[leaf].parent.is_some_and(|parent| self.within(parent, group))
    }

    fn children(&self, parent: Option<usize>) -> Vec<usize> {
        (0..self.case.file.groups.len()).filter(|&at| self.case.file.groups[at].parent == parent).collect()
    }

    fn limits(&self, group: usize, d: usize) -> (u64, u64, u64) {
        let limits = self.tree.as_ref().expect("a tree").groups[group].limits[d];
        (limits.min, limits.max, limits.ratio)
    }

    fn used(&self, books: &Books, group: usize, d: usize) -> u64 {
        let users = (0..self.owner.len()).filter(|&user| self.within(self.owner[user], group));
        users.map(|user| books.used(UserId(user as u32))[d]).sum()
    }

    /// Returns the demand of a group. If `kept`, groups that do not lend request at least their minimum.
    fn request(&self, books: &Books, group: usize, d: usize, kept: bool) -> u64 {
        let children = self.children(Some(group));
        if children.is_empty() {
            let users = (0..self.owner.len()).filter(|&user| self.owner[user] == group);
            return users.map(|user| books.wanted(UserId(user as u32), d) as u64).sum();
        }
        let passed = |&child: &usize| {
            let (min, max, _) = self.limits(child, d);
            let cut = self.request(books, child, d, kept).min(max);
            if kept && !self.case.file.groups[child].lend { cut.max(min) } else { cut }
        };
        children.iter().map(passed).sum()
    }

    /// Compares the runtime quotas of the policy with their definition, computed in fractions.
    fn check_levels(&mut self, state: &State) {
        let levels = state.groups.expect("the policy has groups").levels().expect("small amounts");
        for d in 0..2 {
            let parents = std::iter::once(None).chain((0..self.case.file.groups.len()).map(Some));
            for parent in parents {
                let members = self.children(parent);
                let bucket = |&group: &usize| {
                    let (min, max, ratio) = self.limits(group, d);
                    let demand = self.request(state.books, group, d, true).min(max);
                    let mut base = if self.case.file.groups[group].lend { min.min(demand) } else { min };
                    if self.case.file.reclaim == Reclaim::Never {
                        base = base.max(self.used(state.books, group, d));
                    }
                    Bucket { base: Exact::from(base), reach: Exact::from(demand.max(base)), ratio: Exact::from(ratio) }
                };
                let buckets: Vec<Bucket> = members.iter().map(bucket).collect();
                if buckets.is_empty() {
                    continue;
                }
                let total = match parent {
                    None => self.case.capacity[d] * [1000, 1024][d],
                    Some(parent) => levels[parent * 2 + d].runtime,
                };
                let quotas = pour(self.case.file.variant, &buckets, &Exact::from(total));
                for ((&group, quota), bucket) in members.iter().zip(quotas).zip(&buckets) {
                    let level = &levels[group * 2 + d];
                    assert_eq!(Exact::from(level.runtime), quota.floor(), "group {group}, resource {d}");
                    assert_eq!(Exact::from(level.base), bucket.base);
                    self.compared += 1;
                }
            }
        }
    }

    fn record_changes(&mut self) {
        let (Some(log), Some(tree)) = (&mut self.log, &self.tree) else { return };
        self.owner = self.names.iter().map(|name| tree.group_of(name).expect("a group")).collect();
        for (now, user, after) in self.told.drain(..) {
            let before = std::mem::replace(&mut self.before[user.index()], after);
            log.change(now, self.owner[user.index()], &before, &after);
        }
    }

    /// Records the end of a return, if one is pending.
    fn come(&mut self, group: usize, now: Time) {
        if let Some(since) = self.waits[group].take() {
            let (took, times) = (now.since(since), &mut self.times[group]);
            times.returns += 1;
            times.returns_us += u128::from(took.0);
            times.longest = times.longest.max(took);
        }
    }
}

impl Recorder for Twin<'_> {
    fn user(&mut self, _user: UserId, name: &str) {
        self.names.push(name.to_owned());
        self.before.push([Holding::default(); 2]);
    }

    fn wants_waiting_demand(&self) -> bool {
        true
    }

    fn settled(&mut self, now: Time, changed: &[UserId], books: &Books) -> Result<()> {
        let after = |user: UserId| {
            std::array::from_fn(|d| Holding { used: books.used(user)[d], request: books.wanted(user, d) })
        };
        self.told.extend(changed.iter().map(|&user| (now, user, after(user))));
        self.end = now;
        Ok(())
    }

    fn interval(&mut self, from: Time, to: Time, state: &State) -> Result<()> {
        let tree = state.groups.expect("the policy has groups").tree();
        if self.tree.is_none() {
            let requirement = |group: &plimsoll::policy::GroupNode| {
                let each = |of: fn(&plimsoll::policy::GroupLimits) -> u64| {
                    Resources::from_fn(|d| group.limits.get(d).map_or(0, of))
                };
                Guarantee { parent: group.parent, min: each(|at| at.min), max: each(|at| at.max) }
            };
            self.log = Some(GroupLog::new(2, &tree.groups.iter().map(requirement).collect::<Vec<_>>()));
            self.tree = Some(tree.clone());
        }
        self.record_changes();
        self.check_levels(state);
        let span = to.since(from).0;
        for group in 0..self.case.file.groups.len() {
            let (mut below, mut grown) = (false, false);
            for d in 0..2 {
                let (min, max, _) = self.limits(group, d);
                let used = self.used(state.books, group, d);
                let demand = self.request(state.books, group, d, false).min(max);
                let due = demand.min(min);
                let sums = &mut self.sums[group][d];
                let times = |amount: u64| u128::from(amount) * u128::from(span);
                sums.used_us += times(used);
                sums.demand_us += times(demand);
                sums.borrowed_us += times(used.saturating_sub(min));
                sums.spare_us += times(min.saturating_sub(demand));
                sums.short_us += times(due.saturating_sub(used));
                sums.below_us += if used < due { span } else { 0 };
                below |= used < due;
                grown |= used < due && due > self.due[group][d];
                self.due[group][d] = due;
            }
            self.times[group].below_us += if below { span } else { 0 };
            match (std::mem::replace(&mut self.below[group], below), below) {
                (false, true) => self.waits[group] = grown.then_some(from),
                (true, false) => self.come(group, from),
                _ => {}
            }
        }
        self.end = to;
        Ok(())
    }
}

#[test]
fn accumulators_and_levels_agree_with_everything_computed_anew() {
    let (mut compared, mut returns, mut open, mut parents) = (0, 0, 0, 0);
    for seed in 0..600 {
        let case = draw(seed);
        let machines = format!("1x{}c{}g", case.capacity[0], case.capacity[1]);
        let mut twin = replay(&case.toml, &case.csv, &machines, OnBlocked::Skip, Twin::new(&case));
        twin.record_changes();
        let Some(mut log) = twin.log.take() else { continue };
        log.finish(twin.end);
        for group in 0..case.file.groups.len() {
            // The state after the last instant has no interval, but returns can begin or end in it.
            let (mut below, mut grown) = (false, false);
            for d in 0..2 {
                let (min, max, _) = twin.limits(group, d);
                let Holding { used, request } = log.holding(group, d);
                let due = request.min(u128::from(min.min(max))) as u64;
                below |= used < due;
                grown |= used < due && due > twin.due[group][d];
            }
            match (twin.below[group], below) {
                (false, true) => twin.waits[group] = grown.then_some(twin.end),
                (true, false) => twin.come(group, twin.end),
                _ => {}
            }
            twin.times[group].open = twin.waits[group].map(|since| twin.end.since(since));
            assert_eq!(log.times(group), &twin.times[group], "seed {seed}, group {group}\n{}\n{}", case.toml, case.csv);
            for d in 0..2 {
                let context = format!("seed {seed}, group {group}, resource {d}\n{}\n{}", case.toml, case.csv);
                assert_eq!(log.sums(group, d), &twin.sums[group][d], "{context}");
            }
            returns += log.times(group).returns;
            open += u64::from(log.times(group).open.is_some_and(|open| open > Span::ZERO));
            let is_parent = case.file.groups.iter().any(|other| other.parent == Some(group));
            parents += u64::from(is_parent && log.times(group).below_us > 0);
        }
        compared += twin.compared;
    }
    let told = format!("{compared} levels, {returns} returns, {open} open ones, {parents} parents below their min");
    assert!(compared > 20_000 && returns > 200 && open > 20 && parents > 50, "too easy: {told}");
}

#[test]
fn the_lending_experiment_has_figures_and_the_same_bytes_on_any_number_of_threads() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let plan = Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments/paper/fuxi-quota-lending.toml");
    let (one, two) = (dir.path().join("one"), dir.path().join("two"));
    let first = results(&plan, &one, &["-j", "1"]);
    for name in ["figures/water-1.svg", "figures/water-2.png", "figures/quotas-1.png", "figures/quotas-2.svg"] {
        assert!(first.contains_key(name), "{name} is missing: {:?}", first.keys());
    }
    let page = String::from_utf8(first["report.html"].clone()).expect("text");
    assert!(page.contains("Quota groups") && page.contains("Water levels of quota groups"));
    assert!(!first.keys().any(|path| path.starts_with("groups/policy=drf") || path.starts_with("levels/policy=drf")));
    assert_eq!(differences(&first, &results(&plan, &two, &["-j", "2"])), [""; 0], "-j 1 and -j 2");
    std::fs::remove_dir_all(one.join("figures")).expect("a folder of figures");
    let output = run(plimsoll(&["plot", "--only", "water", "--only", "quotas"]).arg(&one));
    assert!(output.status.success(), "{}", said(&output));
    for name in ["water-1.svg", "quotas-2.svg"] {
        let again = std::fs::read(one.join("figures").join(name)).expect("a figure");
        assert_eq!(again, first[&format!("figures/{name}")], "{name} is drawn from the tables alone");
    }
}

#[test]
fn without_levels_the_report_says_what_is_missing() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let plan = Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments/paper/fuxi-quota-lending.toml");
    let tables = "tables=[\"runs\", \"users\", \"groups\"]";
    let output = run(plimsoll(&["run", "--set", tables, "-o"]).arg(dir.path()).arg(plan));
    assert!(output.status.success(), "{}", said(&output));
    for figure in ["water", "quotas"] {
        let note = format!("no figure '{figure}': the levels table was not written");
        assert!(said(&output).contains(&note), "{}", said(&output));
    }
}

#[test]
fn the_page_shows_what_the_experiments_say() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("docs/quota.md")).expect("the page is there");
    let blocks = crate::solve::blocks(&page, "text");
    assert_eq!(blocks.len(), 2, "{blocks:?}");
    for (plan, block) in ["paper/fuxi-quota-lending", "quota-labels"].into_iter().zip(blocks) {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let plan = root.join("experiments").join(plan).with_extension("toml");
        let output = run(plimsoll(&["run", "-o"]).arg(dir.path()).arg(plan));
        let shown = String::from_utf8(output.stdout).expect("text");
        assert!(shown.contains(&block), "{shown}");
    }
}
