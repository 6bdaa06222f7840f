//! Quota per label. Machines of two labels under one file are compared with one run per label and file. Random cases with other labels,
//! failures and relabelling are compared with a policy without optimisations.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};

use plimsoll::books::{Books, Partition, Weights};
use plimsoll::cluster::{Cluster, ClusterSpec, LabelIndex, MachineChange, MachineEvent, MachineEvents, Placement};
use plimsoll::engine::{self, Options, Preempt, PreemptFor, PreemptFrom, Ties};
use plimsoll::error::Result;
use plimsoll::policy::{Ask, Capabilities, Needs, Policy, Queue, Quota, QuotaFile, Rank, Setup, Stale, Verdict};
use plimsoll::record::{Recorder, State, StuckRecord, TaskRecord};
use plimsoll::units::{MAX_DIMS, MachineId, Resources, Span, Time, UserId};
use plimsoll::workload::{CsvTrace, Input, Source};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::quota_twin::Plain;

/// Job, task and attempt, with start, machine and partition, or `None` for an attempt that never starts.
type Starts = BTreeMap<(String, u64, u64), Option<(u64, u32, usize)>>;

/// Returns a cluster of machines of eight cores and 16 GiB with these labels.
fn cluster(machines: &[&str], events: MachineEvents, dims: &[plimsoll::units::Dim]) -> Cluster {
    let spec = ClusterSpec::parse("machines", &format!("{}x8c16g", machines.len())).expect("machines");
    let mut cluster = Cluster::new(&spec, dims).expect("a cluster");
    let labels: Vec<Vec<String>> =
        machines.iter().map(|labels| labels.split_whitespace().map(str::to_owned).collect()).collect();
    cluster.labels = LabelIndex::new(labels.iter().map(Vec::as_slice));
    ["g", "s", "x"].iter().for_each(|label| cluster.labels.declare(label));
    cluster.events = events;
    cluster
}

/// The inputs of a run besides the rows.
struct Case<'a> {
    machines: &'a [&'a str],
    events: MachineEvents,
    options: Options,
}

#[derive(Default)]
struct RunLog {
    starts: Starts,
    /// The capacity of each partition, by the beginning of each interval.
    totals: BTreeMap<u64, Vec<Resources>>,
}

impl Recorder for RunLog {
    fn tasks(&mut self, tasks: &TaskRecord) -> Result<()> {
        let mut name = String::new();
        tasks.name.render(&mut name);
        let started = (tasks.start.0, tasks.machine.expect("machines").0, tasks.partition.index());
        for task in tasks.first..tasks.first + u64::from(tasks.count) {
            self.starts.insert((name.clone(), task, u64::from(tasks.attempt)), Some(started));
        }
        Ok(())
    }

    fn stuck(&mut self, stuck: &StuckRecord) -> Result<()> {
        let mut name = String::new();
        stuck.name.render(&mut name);
        for task in stuck.first..stuck.first + stuck.tasks {
            self.starts.insert((name.clone(), task, u64::from(stuck.attempt)), None);
        }
        Ok(())
    }

    fn interval(&mut self, from: Time, _to: Time, state: &State) -> Result<()> {
        let total = |at| *state.books.partition(Partition(at as u8)).capacity();
        self.totals.insert(from.0, (0..state.books.partitions()).map(total).collect());
        Ok(())
    }
}

fn file(toml: &str) -> QuotaFile {
    QuotaFile::parse(Path::new("groups.toml"), toml).unwrap_or_else(|error| panic!("{error}\n{toml}"))
}

/// Replays rows `job,user,submit,duration,tasks,cpu,memory,priority,label` under a file of groups. `plain` selects the policy without
/// optimisations.
fn replay(toml: &str, rows: &str, case: &Case, plain: bool) -> Result<RunLog> {
    let text = format!("job,user,submit_s,duration_s,tasks,cpu,memory_gib,priority,label\n{rows}");
    let mut source = CsvTrace::new(&Input::Bytes(PathBuf::from("drawn.csv"), text.as_bytes().into()))?;
    let cluster = cluster(case.machines, case.events.clone(), source.dims());
    let weights = Weights::default();
    let machines = case.machines.len() as u64;
    let known: Vec<&str> = cluster.labels.known().collect();
    let labels = (case.options.placement != Placement::Pooled).then_some(&*known);
    let (dims, capacity) = (&cluster.dims, cluster.total());
    let setup = Setup { dims, capacity, machines, weights: &weights, labels };
    let file = file(toml);
    let mut quota = Quota::new(&file, &setup)?;
    let files = one_by_one(&file);
    let trees = files.iter().map(|file| Plain::new(file, &cluster.dims, Resources::ZERO)).collect();
    let mut twin = Twin { labels: file.labels.iter().map(|tree| tree.name.clone()).collect(), trees };
    let policy: &mut dyn Policy = if plain { &mut twin } else { &mut quota };
    let mut heard = RunLog::default();
    engine::run(&mut source, policy, cluster, weights.clone(), &case.options, &mut heard)?;
    Ok(heard)
}

/// Returns one file per tree, with the same users.
fn one_by_one(file: &QuotaFile) -> Vec<QuotaFile> {
    let mut files = vec![file.clone()];
    for tree in &file.labels {
        let mut one = QuotaFile { groups: tree.groups.clone(), labels: Vec::new(), ..file.clone() };
        one.groups.iter_mut().zip(&file.groups).for_each(|(group, known)| group.users.clone_from(&known.users));
        files.push(one);
    }
    files
}

/// One policy per partition, each of which recomputes every quota in every round.
struct Twin<'a> {
    labels: Vec<String>,
    trees: Vec<Plain<'a>>,
}

impl Policy for Twin<'_> {
    fn open(&mut self, user: UserId, name: &str) -> Result<()> {
        self.trees.iter_mut().try_for_each(|tree| tree.open(user, name))
    }

    fn prepare(&mut self, now: Time, books: &Books, changed: &[UserId]) -> Result<Stale> {
        for (at, tree) in self.trees.iter_mut().enumerate() {
            let books = books.partition(Partition(at as u8));
            tree.capacity = books.capacity().0;
            tree.prepare(now, books, changed)?;
        }
        Ok(Stale::All)
    }

    fn rank(&self, queue: &Queue, books: &Books) -> Rank {
        self.trees[queue.partition.index()].rank(queue, books.partition(queue.partition))
    }

    fn admit(&self, queue: &Queue, ask: &Ask, books: &Books) -> Verdict {
        self.trees[queue.partition.index()].admit(queue, ask, books.partition(queue.partition))
    }

    fn needs(&self) -> Needs {
        Needs { labels: self.labels.clone(), waiting_demand: true, moves_others: true, ..Needs::default() }
    }
}

impl Capabilities for Twin<'_> {}

/// The settings of each group of a tree: the leaves, then two parents. `None` is a group that the tree does not name.
struct Tree(Vec<Option<String>>);

const LEAVES: usize = 4;

/// Draws the parent of each leaf: one of two parents, or none.
fn parents(rng: &mut ChaCha8Rng) -> Vec<Option<usize>> {
    (0..LEAVES).map(|_| Some(rng.random_range(0..3)).filter(|parent| *parent < 2)).collect()
}

fn tree(rng: &mut ChaCha8Rng, parents: &[Option<usize>], all: bool) -> Tree {
    let mut groups = Vec::new();
    let mut mins = [[0; 2]; 2];
    for parent in parents {
        if !all && rng.random_bool(0.2) {
            groups.push(None);
            continue;
        }
        let min: [u64; 2] = std::array::from_fn(|_| if rng.random_bool(0.4) { rng.random_range(0..6) } else { 0 });
        let mut text = format!("ratio = {{ cpu = {}, memory = {} }}\n", rng.random_range(0..4), rng.random_range(1..4));
        writeln!(text, "min = {{ cpu = {}, memory_gib = {} }}", min[0], min[1]).unwrap();
        if rng.random_bool(0.2) {
            writeln!(text, "max = {{ cpu = {} }}", min[0] + rng.random_range(1..9)).unwrap();
        }
        if rng.random_bool(0.2) {
            writeln!(text, "lend = false").unwrap();
        }
        if let Some(parent) = parent {
            (0..2).for_each(|d| mins[*parent][d] += min[d]);
        }
        groups.push(Some(text));
    }
    for [cpu, memory] in mins {
        groups.push(Some(format!(
            "ratio = {}\nmin = {{ cpu = {cpu}, memory_gib = {memory} }}\n",
            rng.random_range(1..4)
        )));
    }
    Tree(groups)
}

/// Returns the text of a file with one tree, or of the section of a label with its tree.
fn written(tree: &Tree, parents: &[Option<usize>], label: Option<&str>) -> String {
    let mut toml = String::new();
    if let Some(label) = label {
        write!(toml, "[[label]]\nname = '{label}'\n").unwrap();
    }
    for (at, text) in tree.0.iter().enumerate() {
        let name = if at < LEAVES { format!("a{at}") } else { format!("p{}", at - LEAVES) };
        match (label, text) {
            (Some(_), None) => {}
            (Some(_), Some(text)) => write!(toml, "[[label.group]]\nname = '{name}'\n{text}").unwrap(),
            (None, text) => {
                write!(toml, "[[group]]\nname = '{name}'\n").unwrap();
                // The tree of a label gives zero to groups that it does not name.
                toml += text.as_deref().unwrap_or("ratio = 0\nmax = { cpu = 0, memory_gib = 0 }\n");
                if at < LEAVES {
                    writeln!(toml, "users = ['u{at}', 'u{}']", at + LEAVES).unwrap();
                }
                if let Some(Some(parent)) = parents.get(at) {
                    writeln!(toml, "parent = 'p{parent}'").unwrap();
                }
            }
        }
    }
    toml
}

fn rules(rng: &mut ChaCha8Rng, reclaims: &[&str]) -> String {
    let mut pick = |options: &[&str]| options[rng.random_range(0..options.len())].to_owned();
    let (variant, reclaim) = (pick(&["min-plus-share", "max-min-level"]), pick(reclaims));
    format!("variant = '{variant}'\nreclaim = '{reclaim}'\n")
}

/// Returns a row without its job: user, times, demand and label.
fn row(rng: &mut ChaCha8Rng, submit: u64, user: usize, label: &str) -> String {
    let (duration, tasks, priority) = (rng.random_range(1..9), rng.random_range(1..6), rng.random_range(0..3));
    let (cpu, memory) = (rng.random_range(0..5), rng.random_range(1..9));
    format!("u{user},{submit},{duration},{tasks},{cpu},{memory},{priority},{label}")
}

#[test]
fn two_labels_under_one_file_are_two_clusters() {
    let (mut delayed, mut again, mut nothing) = (0, 0, 0);
    for seed in 0..400 {
        let rng = &mut ChaCha8Rng::seed_from_u64(seed);
        let parents = parents(rng);
        let rules =
            rules(rng, &["wait", "kill-after:0s", "kill-after:2s"]) + ["", "inside = 'fair'\n"][seed as usize % 2];
        let trees = [tree(rng, &parents, false), tree(rng, &parents, false)];
        let machines: Vec<&str> =
            (0..rng.random_range(2..6)).map(|_| ["g", "s", "g x", "s x"][rng.random_range(0..4)]).collect();
        let both = [0, 1].map(|at| ["g", "s"][at]);
        if both.iter().any(|label| machines.iter().all(|labels| !labels.starts_with(label))) {
            continue;
        }
        // The rule `never` is excluded: launched tasks raise the floor, so a round without arrivals or ends may admit more tasks, and the
        // run with both labels has more rounds than the two runs with one label each. The first rows give the users the same order in all
        // runs.
        let mut rows: Vec<(usize, String)> =
            (0..8).flat_map(|user| [0, 1].map(|at| (at, format!("u{user},0,1,1,1,1,0,{}", both[at])))).collect();
        let mut submit = 0;
        for _ in 0..rng.random_range(5..40) {
            submit += rng.random_range(0..3);
            let (at, user) = (rng.random_range(0..2), rng.random_range(0..8));
            let label = ["", " & x", " & !x"][rng.random_range(0..3)];
            rows.push((at, row(rng, submit, user, &format!("{}{label}", both[at]))));
        }
        let text = |wanted: Option<usize>| -> String {
            let mine = rows.iter().enumerate().filter(|(_, (at, _))| wanted.is_none_or(|wanted| wanted == *at));
            mine.map(|(job, (_, row))| format!("{job},{row}\n")).collect()
        };
        let default = tree(rng, &parents, true);
        let labels = [0, 1].map(|at| written(&trees[at], &parents, Some(both[at]))).concat();
        let toml = rules.clone() + &written(&default, &parents, None) + &labels;
        let merged = replay(&toml, &text(None), &by_hand(&machines, Vec::new()), false).expect("a run").starts;
        let mut alone = Starts::new();
        for (at, label) in both.iter().enumerate() {
            let mine: Vec<usize> = (0..machines.len()).filter(|&m| machines[m].starts_with(label)).collect();
            let here: Vec<&str> = mine.iter().map(|&m| machines[m]).collect();
            let toml = rules.clone() + &written(&trees[at], &parents, None);
            let starts = replay(&toml, &text(Some(at)), &by_hand(&here, Vec::new()), false).expect("a run").starts;
            let there = |(start, machine, _): (u64, u32, usize)| (start, mine[machine as usize] as u32, at + 1);
            alone.extend(starts.into_iter().map(|(task, start)| (task, start.map(there))));
        }
        let differs = alone.iter().find(|(task, start)| merged.get(*task) != Some(*start));
        assert!(differs.is_none() && merged.len() == alone.len(), "seed {seed}: {differs:?}\n{toml}\n{}", text(None));
        delayed += merged.values().flatten().filter(|(start, ..)| *start > 0).count();
        again += merged.keys().filter(|(_, _, attempt)| *attempt > 0).count();
        nothing += merged.values().filter(|start| start.is_none()).count();
    }
    assert!(delayed > 5_000 && again > 200 && nothing > 500, "too easy: {delayed}, {again}, {nothing}");
}

/// Label expressions with their partitions: 1 for an expression that requires `g`, 2 for another one that requires `s`, otherwise 0.
const ASKED: [(&str, usize); 11] = [
    ("", 0),
    ("g", 1),
    ("s", 2),
    ("s & g", 1),
    ("g | s", 0),
    ("!g", 0),
    ("x", 0),
    ("g & x", 1),
    ("s & !x", 2),
    ("(g & x) | (g & !x)", 1),
    ("s & (g | x)", 2),
];

/// Draws up to 14 events of six machines.
fn events(rng: &mut ChaCha8Rng) -> MachineEvents {
    let mut there = [true; 6];
    let mut all = MachineEvents::default();
    let mut at = 0;
    for _ in 0..rng.random_range(0..15) {
        at += rng.random_range(0..8);
        let machine = rng.random_range(0..6);
        let change = match (rng.random_range(0..4), there[machine]) {
            (0, true) => MachineChange::Fail,
            (1, true) => MachineChange::Leave,
            (0 | 1, false) => MachineChange::Join,
            _ => MachineChange::Relabel(
                ["g", "s", "x"].map(str::to_owned).into_iter().filter(|_| rng.random_bool(0.4)).collect(),
            ),
        };
        there[machine] = match change {
            MachineChange::Fail | MachineChange::Leave => false,
            MachineChange::Join => true,
            MachineChange::Relabel(_) => there[machine],
        };
        all.events.push(MachineEvent { at: Time(at * 1_000_000), machine: MachineId(machine as u32), change });
    }
    all
}

/// Returns the capacity of each partition at a time, computed from the labels and events as written.
fn totals(case: &Case, at: u64) -> Vec<Resources> {
    let mut labels: Vec<BTreeSet<&str>> =
        case.machines.iter().map(|labels| labels.split_whitespace().collect()).collect();
    let mut there = vec![true; labels.len()];
    for event in case.events.events.iter().filter(|event| event.at.0 <= at) {
        match &event.change {
            MachineChange::Fail | MachineChange::Leave => there[event.machine.index()] = false,
            MachineChange::Join => there[event.machine.index()] = true,
            MachineChange::Relabel(new) => labels[event.machine.index()] = new.iter().map(String::as_str).collect(),
        }
    }
    let of = |holds: &dyn Fn(&BTreeSet<&str>) -> bool| {
        let machines = labels.iter().zip(&there).filter(|(labels, there)| **there && holds(labels)).count() as u64;
        let mut total = [0; MAX_DIMS];
        (total[0], total[1]) = (machines * 8_000, machines * 16 * 1024);
        Resources(total)
    };
    let free = |labels: &BTreeSet<&str>| !labels.contains("g") && !labels.contains("s");
    vec![of(&free), of(&|labels| labels.contains("g")), of(&|labels| labels.contains("s"))]
}

#[test]
fn shortcuts_change_no_start_when_machines_come_go_and_change_labels() {
    let (mut later, mut labelled, mut relabelled) = (0, 0, 0);
    for seed in 0..300 {
        let rng = &mut ChaCha8Rng::seed_from_u64(1_000 + seed);
        let parents = parents(rng);
        let mut toml = rules(rng, &["wait", "never"]) + &written(&tree(rng, &parents, true), &parents, None);
        for label in ["g", "s"] {
            toml += &written(&tree(rng, &parents, false), &parents, Some(label));
        }
        let machines: Vec<&str> =
            (0..6).map(|_| ["g", "s", "", "g s", "x", "g x", "s x"][rng.random_range(0..7)]).collect();
        let placement = [Placement::FirstFit, Placement::Spread][seed as usize % 2];
        let options = Options { placement, ties: Ties::LowestId, audit: true, ..Options::default() };
        let case = Case { machines: &machines, events: events(rng), options };
        let (mut rows, mut submit, mut asked) = (String::new(), 0, Vec::new());
        for job in 0..rng.random_range(10..70) {
            submit += rng.random_range(0..3);
            let (label, partition) = ASKED[rng.random_range(0..ASKED.len())];
            let user = rng.random_range(0..8);
            writeln!(rows, "{job},{}", row(rng, submit, user, label)).unwrap();
            asked.push((submit * 1_000_000, partition));
        }
        let [fast, plain] = [false, true].map(|plain| replay(&toml, &rows, &case, plain).expect("a run"));
        let differs = plain.starts.iter().filter(|(task, start)| fast.starts.get(*task) != Some(*start));
        let differs = differs.min_by_key(|(_, start)| start.map_or(u64::MAX, |(at, ..)| at));
        assert!(differs.is_none(), "seed {seed}: {differs:?}\n{toml}\n{rows}\n{:?} {:?}", case.machines, case.events);
        assert_eq!(fast.starts.len(), plain.starts.len(), "seed {seed}");
        for (at, heard) in &fast.totals {
            assert_eq!(heard, &totals(&case, *at), "seed {seed} at {at}: {:?} {:?}", case.machines, case.events);
            relabelled += usize::from(*heard != totals(&case, 0));
        }
        for ((job, ..), start) in &fast.starts {
            let Some((start, _, partition)) = start else { continue };
            let (submit, expected) = asked[job.parse::<usize>().expect("a number")];
            assert_eq!(*partition, expected, "job {job}\n{rows}");
            later += usize::from(*start > submit);
            labelled += usize::from(*partition > 0);
        }
    }
    assert!(later > 5_000 && labelled > 5_000 && relabelled > 2_000, "too easy: {later}, {labelled}, {relabelled}");
}

const TWO: &str = "[[group]]\nname = 'a'\nusers = ['a']\n[[group]]\nname = 'b'\nusers = ['b']\n\
                   [[label]]\nname = 'g'\n[[label.group]]\nname = 'a'\nmin = { cpu = 2 }\n[[label.group]]\nname = 'b'\n";

/// Returns the start of each task of a job in seconds, with its machine.
fn starts(heard: &RunLog, job: &str) -> Vec<Option<(u64, u32)>> {
    let mine = heard.starts.iter().filter(|((name, ..), _)| name == job);
    mine.map(|(_, start)| start.map(|(at, machine, _)| (at / 1_000_000, machine))).collect()
}

fn by_hand<'a>(machines: &'a [&'a str], events: Vec<MachineEvent>) -> Case<'a> {
    let options = Options { placement: Placement::FirstFit, ties: Ties::LowestId, audit: true, ..Options::default() };
    Case { machines, events: MachineEvents { absent: Vec::new(), events }, options }
}

#[test]
fn each_tree_is_poured_by_itself() {
    // Eight cores have the label, and eight do not. Group a is guaranteed two of the labelled cores, and a and b share the other six
    // equally, so that a gets five and b three. Each group gets four of the other cores, regardless of its labelled cores. Tasks that
    // request no label may use any machine.
    let rows = "1,a,0,9,8,1,1,0,g\n2,b,0,9,8,1,1,0,g\n3,a,0,9,8,1,1,0,\n4,b,0,9,8,1,1,0,!g\n";
    let heard = replay(TWO, rows, &by_hand(&["", "g"], Vec::new()), false).expect("a run");
    let now = |job: &str| starts(&heard, job).iter().filter(|start| start.is_some_and(|(at, _)| at == 0)).count();
    assert_eq!([now("1"), now("2"), now("3"), now("4")], [5, 3, 4, 4]);
    // A group that the tree of the label does not name has no share of the label, and does not block other groups.
    let toml = TWO.replace("[[label.group]]\nname = 'b'\n", "");
    let heard = replay(&toml, rows, &by_hand(&["", "g"], Vec::new()), false).expect("a run");
    assert_eq!((starts(&heard, "2"), starts(&heard, "1")), (vec![None; 8], vec![Some((0, 1)); 8]));
}

#[test]
fn relabelling_moves_what_a_label_has() {
    // Machine 0 gets the label at 4 s. From then on each group gets eight of the sixteen labelled cores; before, a got five of eight and b
    // three.
    let relabel = |at: u64, machine, labels: &[&str]| MachineEvent {
        at: Time(at * 1_000_000),
        machine: MachineId(machine),
        change: MachineChange::Relabel(labels.iter().map(|label| (*label).to_owned()).collect()),
    };
    let rows = "1,a,0,9,8,1,1,0,g\n2,b,0,9,8,1,1,0,g\n3,b,5,9,1,1,1,0,\n";
    let heard = replay(TWO, rows, &by_hand(&["", "g"], vec![relabel(4, 0, &["g"])]), false).expect("a run");
    let at = |job: &str, second: u64| {
        starts(&heard, job).iter().filter(|start| start.is_some_and(|(at, _)| at == second)).count()
    };
    assert_eq!([at("1", 0), at("1", 4), at("2", 0), at("2", 4)], [5, 3, 3, 5]);
    // No machine is left without the label, so tasks that request no label have no quota.
    assert_eq!(starts(&heard, "3"), [None]);

    // In the opposite case no machine has the label from 4 s to 20 s. Running tasks with the label continue, or are stopped after two
    // seconds under `kill-after:2s`. Tasks of the same users without the label are unaffected.
    let rows = "1,a,0,9,4,1,1,0,g\n2,a,0,9,4,1,1,0,!g\n3,a,1,9,4,1,1,0,g\n4,b,20,1,1,1,1,0,\n";
    let case = by_hand(&["", "g"], vec![relabel(4, 1, &[]), relabel(20, 1, &["g"])]);
    let heard = replay(TWO, rows, &case, false).expect("a run");
    assert_eq!(heard.starts.keys().filter(|(_, _, attempt)| *attempt > 0).count(), 0);
    let toml = format!("reclaim = 'kill-after:2s'\n{TWO}");
    let rows = rows.replace("3,a,1,9,4", "3,a,1,9,5");
    let heard = replay(&toml, &rows, &case, false).expect("a run");
    let stopped: BTreeSet<&str> =
        heard.starts.keys().filter(|(_, _, attempt)| *attempt > 0).map(|(job, ..)| job.as_str()).collect();
    assert_eq!(stopped, BTreeSet::from(["1", "3"]));
    assert_eq!(starts(&heard, "2"), [Some((0, 0)); 4]);
    let second = heard.starts.iter().filter(|((_, _, attempt), _)| *attempt == 1);
    assert!(
        second.into_iter().all(|(_, start)| start.is_some_and(|(at, machine, _)| at >= 20_000_000 && machine == 1))
    );
}

#[test]
fn labels_that_no_machine_carries_are_refused_with_their_line() {
    let rows = "1,a,0,9,8,1,1,0,g\n";
    let message = |toml: &str, placement| {
        let mut case = by_hand(&["", "g"], Vec::new());
        case.options = Options { placement, ..case.options };
        replay(toml, rows, &case, false).map(|_| ()).expect_err("a wrong label").to_string()
    };
    let wrong = message(&TWO.replace("'g'", "'gg'"), Placement::FirstFit);
    let expected = "groups.toml: line 8, column 8: label.name: 'gg' is no label of any machine (did you mean 'g'?); expected a label that \
                    machines carry or machine events bring: g, s, x";
    assert!(wrong.starts_with(expected), "{wrong}");
    let pooled = message(TWO, Placement::Pooled);
    assert!(pooled.contains("line 8, column 8: label.name: 'g': a pooled cluster has no machines"), "{pooled}");
}

#[test]
fn what_a_user_asks_under_one_label_is_not_forgotten_for_what_it_asks_under_another() {
    // Groups a and b have a quota of eight cores each and use all of it. At 5 s a task of w ends and frees two cores of a. Two small tasks
    // of u start, although its large tasks under another label cannot start.
    let toml = "[[group]]\nname = 'a'\nusers = ['u', 'w']\n[[group]]\nname = 'b'\nusers = ['v']\n";
    let rows = "1,v,0,99,8,1,1,0,s\n2,w,0,5,1,2,1,0,g\n3,w,0,99,6,1,1,0,g\n4,v,0,99,20,1,1,0,s\n5,u,1,50,4,1,1,0,g\n\
                6,u,1,50,2,8,1,0,s\n";
    let heard = replay(toml, rows, &by_hand(&["g", "s"], Vec::new()), false).expect("a run");
    let at = |second| starts(&heard, "5").iter().filter(|start| **start == Some((second, 0))).count();
    assert_eq!([at(5), at(55)], [2, 2]);
}

#[test]
fn who_is_above_its_quota_of_a_label_is_asked_for_no_other_room() {
    // Group b is guaranteed six of the label's eight cores. Group a uses four cores of the label, which is above its quota, and four
    // without a label.
    let toml = TWO.replace("name = 'a'\nmin = { cpu = 2 }\n", "name = 'a'\n") + "min = { cpu = 6 }\n";
    let rows = "1,a,0,9,4,1,1,9,g\n2,a,0,9,4,1,1,9,\n3,b,1,9,6,1,1,0,g\n";
    let mut case = by_hand(&["g", ""], Vec::new());
    case.options.preempt =
        Some(Preempt { within: Span::ZERO, whom: PreemptFor::Urgent, from: PreemptFrom::AboveQuota });
    let heard = replay(&toml, rows, &case, false).expect("a run");
    assert_eq!(starts(&heard, "2"), [Some((0, 0)); 4]);
    assert_eq!(starts(&heard, "3"), [1, 1, 1, 1, 9, 9].map(|at| Some((at, 0))));
}
