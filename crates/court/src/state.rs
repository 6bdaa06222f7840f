//! A state of a cluster, read from a file: capacity, queues, workloads that run, wait or arrive later, and expectations.
//!
//! Reads TOML or JSON. See docs/court.md for the format.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::Path;

use plimsoll_base::document::Document;
use plimsoll_base::error::{Error, Result};
use plimsoll_base::tree::{Entry, Node, Place, Value};
use plimsoll_base::units::{Dim, Resources, Rounding, Span, decimal};
use plimsoll_policies::queues::{self, QueueEntry, QueueFile};
use plimsoll_schedulers::BUILT_IN;
use plimsoll_sim::cluster::Cluster;

use crate::machines::cluster;
use crate::verdict::Verdict;

/// A state of a cluster, as read from a file.
#[derive(Clone, Debug)]
pub struct State {
    /// The name: the key `name`, or else the name of the file.
    pub name: String,
    /// A description in one sentence; empty if there is none.
    pub about: String,
    /// The source of the state; empty if not stated.
    pub source: String,
    /// The machines; a pool counts as one machine.
    pub cluster: Cluster,
    /// The names of the machines; `None` for a pool.
    pub machines: Option<Vec<String>>,
    /// The queues, and the settings of the policy.
    pub queues: QueueFile,
    /// The weights of users, and of groups (for policies without groups), in millionths.
    pub weights: Vec<(String, u64)>,
    /// All workloads: running, waiting and future ones.
    pub workloads: Vec<Workload>,
    /// The initially running workloads, in the order of their starts.
    pub running: Vec<usize>,
    /// The other workloads, each with the round of its arrival; initially waiting workloads arrive in round 1.
    pub arrivals: Vec<(u32, usize)>,
    /// The expectations of a scenario.
    pub expectations: Vec<Expectation>,
    /// Whether a scenario is also played with other names.
    pub renames: bool,
}

/// A workload.
#[derive(Clone, Debug, Default)]
pub struct Workload {
    /// The name.
    pub name: String,
    /// The queue.
    pub group: Option<String>,
    /// The user, application or job that it belongs to.
    pub user: Option<String>,
    /// The amounts of each task, in base units.
    pub demand: Resources,
    /// The number of equal tasks.
    pub tasks: u32,
    /// The priority, 0 (most urgent) to 9.
    pub priority: u8,
    /// The position among all workloads by age; the lowest is the oldest.
    pub born: usize,
    /// The machine of an initially running workload.
    pub machine: Option<u32>,
    /// Whether its tasks start together.
    pub gang: bool,
    /// The estimated running time of each task.
    pub estimate: Option<Span>,
    /// The number of rounds of running after which it ends; never if absent.
    pub ends_after: Option<u32>,
    /// The number of rounds until it leaves after it was stopped.
    pub grace: u32,
    /// Whether it waits again after it was stopped.
    pub resubmit: bool,
    /// Whether it waits again after it has ended.
    pub repeats: bool,
}

/// The outcome that a scenario is expected to have under a policy.
#[derive(Clone, Debug)]
pub struct Expectation {
    /// The policy's name.
    pub policy: String,
    /// The verdict.
    pub verdict: Option<Verdict>,
    /// The workloads that start in some round; any if absent.
    pub launched: Option<Vec<String>>,
    /// The workloads that are stopped in some round; any if absent.
    pub evicted: Option<Vec<String>>,
    /// The maximum number of rounds.
    pub rounds: u32,
    /// The place in the file.
    pub place: Place,
}

/// The maximum number of rounds of a scenario that does not specify it.
pub const ROUNDS: u32 = 100;

/// The maximum number of distinct priorities in a state.
const PRIORITIES: usize = 10;

const TOP: [&str; 14] = [
    "name", "about", "source", "names", "capacity", "machines", "machine", "policy", "group", "user", "running",
    "waiting", "arrive", "expect",
];
const OF_WORKLOAD: [&str; 15] = [
    "name",
    "group",
    "user",
    "demand",
    "tasks",
    "priority",
    "age_s",
    "machine",
    "gang",
    "estimate_s",
    "ends_after",
    "grace",
    "resubmit",
    "repeats",
    "at_round",
];
const OF_EXPECTATION: [&str; 5] = ["policy", "verdict", "launched", "evicted", "rounds"];

/// Reads a state from a file, or from standard input for `-`. Errors: those of [`Document::read_input`] and [`parse`].
pub fn open(document: &Document) -> Result<State> {
    read(&document.read_input()?)
}

/// Reads a state from text. The extension of `path` determines whether it is JSON or TOML; for other extensions, the text does. Errors:
/// [`Error::Placed`] with the place, the problem, and the values that would be accepted.
pub fn parse(path: &Path, text: &str) -> Result<State> {
    read(&Place::whole_text(path, text.strip_prefix('\u{feff}').unwrap_or(text)))
}

fn read(whole: &Place) -> Result<State> {
    let tree = Node::document(whole)?;
    state(&tree, whole).map_err(|error| match error {
        Error::Placed { .. } => error,
        error => whole.wrong("", error),
    })
}

fn state(tree: &Node, whole: &Place) -> Result<State> {
    tree.known(&TOP, "", " of a state")?;
    let stem = whole.file().file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let (cluster, machines) = cluster(tree)?;
    let mut queues = QueueFile::from_node(tree, whole, &BUILT_IN.queue_keys())?;
    let mut read = Reader { dims: &cluster.dims, machines: machines.as_deref(), queues: &queues, drafts: Vec::new() };
    for (key, kind) in [("running", Kind::Running), ("waiting", Kind::Waiting), ("arrive", Kind::Arriving)] {
        for node in queues::list(tree, key)? {
            read.workload(key, kind, node)?;
        }
    }
    let drafts = read.drafts;
    let priorities = priorities(&drafts)?;
    // By age, then in the order of the file; future workloads are younger.
    let mut order: Vec<usize> = (0..drafts.len()).collect();
    let later = |draft: &Draft| if draft.kind == Kind::Arriving { draft.round } else { 0 };
    order.sort_by_key(|at| (later(&drafts[*at]), std::cmp::Reverse(drafts[*at].age)));
    let (mut running, mut arrivals) = (Vec::new(), Vec::new());
    let mut workloads: Vec<Workload> = drafts.iter().map(|draft| draft.workload.clone()).collect();
    for (born, at) in order.into_iter().enumerate() {
        workloads[at].born = born;
        workloads[at].priority = priorities[&drafts[at].priority];
        match drafts[at].kind {
            Kind::Running => running.push(at),
            Kind::Waiting | Kind::Arriving => arrivals.push((drafts[at].round, at)),
        }
    }
    enlist(&mut queues, &drafts)?;
    let names: HashSet<&str> = workloads.iter().map(|workload| workload.name.as_str()).collect();
    let expectations =
        queues::list(tree, "expect")?.iter().map(|node| expectation(node, &names)).collect::<Result<_>>()?;
    Ok(State {
        name: text(tree, "name")?.unwrap_or(stem),
        about: text(tree, "about")?.unwrap_or_default(),
        source: text(tree, "source")?.unwrap_or_default(),
        weights: weights(tree)?,
        renames: queues::truth(tree, "names")?.unwrap_or(false),
        cluster,
        machines,
        queues,
        workloads,
        running,
        arrivals,
        expectations,
    })
}

impl State {
    /// Returns the same state with other names in reversed order.
    pub fn renamed(&self) -> State {
        let mut names: BTreeSet<&str> = self.queues.groups.iter().map(|group| group.name.as_str()).collect();
        names.extend(self.queues.users.iter().map(|(user, _)| user.as_str()));
        names.extend(self.weights.iter().map(|(name, _)| name.as_str()));
        for Workload { name, group, user, .. } in &self.workloads {
            names.extend([Some(name), group.as_ref(), user.as_ref()].into_iter().flatten().map(String::as_str));
        }
        let count = names.len();
        let new: HashMap<String, String> = names
            .iter()
            .enumerate()
            .map(|(at, name)| ((*name).to_owned(), format!("{:06}-{name}", count - at)))
            .collect();
        let rename = |name: &mut String| {
            if let Some(new) = new.get(name) {
                name.clone_from(new);
            }
        };
        let mut state = self.clone();
        state.queues.groups.iter_mut().for_each(|group| rename(&mut group.name));
        state.queues.users.iter_mut().for_each(|(user, _)| rename(user));
        state.weights.iter_mut().for_each(|(name, _)| rename(name));
        for Workload { name, group, user, .. } in &mut state.workloads {
            rename(name);
            group.iter_mut().chain(user).for_each(rename);
        }
        state.renames = false;
        state
    }
}

/// Adds the user of every workload to its queue. If no queues are described, creates the queues named by workloads.
fn enlist(queues: &mut QueueFile, drafts: &[Draft]) -> Result<()> {
    let described = !queues.groups.is_empty();
    for Draft { workload, place, .. } in drafts {
        let Some(group) = &workload.group else {
            // The user is added by its own name, so that it is found under that name as well as by a pattern.
            let user = workload.user.as_ref().unwrap_or(&workload.name);
            if let Some(at) = queues.owner(user).filter(|_| !queues.users.iter().any(|(known, _)| known == user)) {
                queues.users.push((user.clone(), at));
            }
            continue;
        };
        let known = queues.groups.iter().position(|known| known.name == *group);
        let at = known.unwrap_or(queues.groups.len());
        if known.is_none() && !described {
            queues.groups.push(QueueEntry { name: group.clone(), ..QueueEntry::default() });
        }
        let user = workload.user.as_ref().unwrap_or(&workload.name);
        match queues.users.iter().find(|(known, _)| known == user) {
            Some((_, other)) if *other != at => {
                let other = &queues.groups[*other].name;
                return Err(
                    place.wrong("user", format!("'{user}' is in '{other}' and in '{group}'; expected one group"))
                );
            }
            Some(_) => {}
            None => queues.users.push((user.clone(), at)),
        }
    }
    Ok(())
}

fn text(node: &Node, key: &str) -> Result<Option<String>> {
    let Some(Entry { node, .. }) = node.get(key) else { return Ok(None) };
    let wrong = || node.place.wrong(key, format!("{} is not accepted; expected text in quotes", node.shown()));
    node.text().map(|text| Some(text.to_owned())).ok_or_else(wrong)
}

/// Reads the weights of users and groups, by name.
fn weights(tree: &Node) -> Result<Vec<(String, u64)>> {
    let mut known: HashMap<String, u64> = HashMap::new();
    for key in ["group", "user"] {
        for node in queues::list(tree, key)? {
            if let (Some(name), Some(weight)) =
                (node.get("name").and_then(|entry| entry.node.text()), node.get("weight"))
            {
                known.insert(name.to_owned(), queues::number(&weight.node, "weight")?);
            }
        }
    }
    // Weights of 0 are only for policies with groups.
    known.retain(|_, weight| *weight > 0);
    let mut known: Vec<(String, u64)> = known.into_iter().collect();
    known.sort();
    Ok(known)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Running,
    Waiting,
    Arriving,
}

/// A workload before its age and priority are compared with those of others.
struct Draft {
    workload: Workload,
    kind: Kind,
    priority: i64,
    age: u64,
    round: u32,
    place: Place,
}

struct Reader<'a> {
    dims: &'a [Dim],
    machines: Option<&'a [String]>,
    queues: &'a QueueFile,
    drafts: Vec<Draft>,
}

impl Reader<'_> {
    fn workload(&mut self, key: &str, kind: Kind, node: &Node) -> Result<()> {
        node.known(&OF_WORKLOAD, "", &format!(" of [[{key}]]"))?;
        let only = |name: &str, of: Kind, expected: &str| match node.get(name) {
            Some(entry) if kind != of => {
                Err(entry.place.wrong(name, format!("does not belong to [[{key}]]; it is for [[{expected}]]")))
            }
            _ => Ok(()),
        };
        only("at_round", Kind::Arriving, "arrive")?;
        only("machine", Kind::Running, "running")?;
        let name = match node.get("name") {
            None => format!("{key} {}", self.drafts.iter().filter(|draft| draft.kind == kind).count() + 1),
            Some(_) => queues::name(node, "a workload's name")?.to_owned(),
        };
        if self.drafts.iter().any(|draft| draft.workload.name == name) {
            return Err(node.place.wrong("name", format!("two workloads are called '{name}'; expected unique names")));
        }
        let demand = node
            .get("demand")
            .ok_or_else(|| node.place.wrong("demand", "is missing; expected amounts, such as { cpu = 1 }"))?;
        let amounts = queues::amounts(&demand.node, "demand", self.dims)?.or_zero();
        if amounts.is_zero() {
            return Err(demand.node.place.wrong("demand", "is 0; expected an amount above 0"));
        }
        let group = self.group(node)?;
        let tasks = count(node, "tasks", 1)?.unwrap_or(1);
        let priority = node.get("priority").map(|entry| queues::integer(&entry.node, "priority")).transpose()?;
        let age = node.get("age_s").map(|entry| seconds(&entry.node, "age_s")).transpose()?;
        let round = match kind {
            Kind::Running => 0,
            Kind::Waiting => 1,
            Kind::Arriving => count(node, "at_round", 1)?
                .ok_or_else(|| node.place.wrong("at_round", "is missing; expected a round, from 1"))?,
        };
        let workload = Workload {
            name,
            group,
            user: text(node, "user")?,
            demand: amounts,
            tasks,
            machine: self.machine(node, kind)?,
            gang: queues::truth(node, "gang")?.unwrap_or(false),
            estimate: node.get("estimate_s").map(|entry| seconds(&entry.node, "estimate_s")).transpose()?.map(Span),
            ends_after: count(node, "ends_after", 1)?,
            grace: count(node, "grace", 0)?.unwrap_or(0),
            resubmit: queues::truth(node, "resubmit")?.unwrap_or(true),
            repeats: queues::truth(node, "repeats")?.unwrap_or(false),
            ..Workload::default()
        };
        let (priority, age, place) = (priority.unwrap_or(0), age.unwrap_or(0), node.place.clone());
        self.drafts.push(Draft { workload, kind, priority, age, round, place });
        Ok(())
    }

    fn group(&self, node: &Node) -> Result<Option<String>> {
        let Some(name) = text(node, "group")? else { return Ok(None) };
        let place = node.get("group").map_or(&node.place, |entry| &entry.node.place);
        match self.queues.groups.iter().position(|group| group.name == name) {
            None if self.queues.groups.is_empty() => Ok(Some(name)),
            None => {
                let hint = plimsoll_base::error::did_you_mean(
                    &name,
                    self.queues.groups.iter().map(|group| group.name.as_str()),
                );
                Err(place.wrong("group", format!("'{name}' is no group{hint}; expected the name of one")))
            }
            Some(at) if self.queues.groups.iter().any(|group| group.parent == Some(at)) => {
                Err(place.wrong("group", format!("'{name}' has groups under it; expected one of those")))
            }
            Some(_) => Ok(Some(name)),
        }
    }

    fn machine(&self, node: &Node, kind: Kind) -> Result<Option<u32>> {
        let (Some(machines), Kind::Running) = (self.machines, kind) else {
            return match node.get("machine") {
                Some(entry) => Err(entry
                    .place
                    .wrong("machine", "a state with [capacity] has no individual machines; expected no machine")),
                None => Ok(None),
            };
        };
        let Some(entry) = node.get("machine") else {
            return Err(node.place.wrong("machine", "is missing; expected the machine of the running workload"));
        };
        let found = machines.iter().position(|known| entry.node.text() == Some(known));
        found.map(|at| Some(at as u32)).ok_or_else(|| {
            let names = machines.iter().take(9).map(String::as_str).collect::<Vec<_>>().join(", ");
            entry.node.place.wrong("machine", format!("{} is no machine; expected one of {names}", entry.node.shown()))
        })
    }
}

/// Reads an integer from `least` to 1,000,000.
fn count(node: &Node, key: &str, least: u32) -> Result<Option<u32>> {
    let Some(Entry { node, .. }) = node.get(key) else { return Ok(None) };
    let read = if let Value::Integer(digits) = &node.value { digits.parse().ok() } else { None };
    match read.filter(|count| *count >= least && *count <= 1_000_000) {
        Some(count) => Ok(Some(count)),
        None => Err(node
            .place
            .wrong(key, format!("{} is not accepted; expected a whole number from {least} to 1000000", node.shown()))),
    }
}

/// Reads seconds as microseconds.
fn seconds(node: &Node, key: &str) -> Result<u64> {
    let read = match &node.value {
        Value::Integer(digits) | Value::Float(digits) => decimal(digits.as_bytes(), 1_000_000, Rounding::Down).ok(),
        _ => None,
    };
    read.ok_or_else(|| node.place.wrong(key, format!("{} is not accepted; expected seconds, at least 0", node.shown())))
}

/// Returns the engine's priority for each priority; the most urgent is 0.
fn priorities(drafts: &[Draft]) -> Result<HashMap<i64, u8>> {
    let mut all: Vec<i64> = drafts.iter().map(|draft| draft.priority).collect();
    all.sort_unstable_by(|one, other| other.cmp(one));
    all.dedup();
    if let Some(one) = all.get(PRIORITIES) {
        let draft = drafts.iter().find(|draft| draft.priority == *one);
        let place = draft.map(|draft| draft.place.clone()).unwrap_or_default();
        return Err(
            place.wrong("priority", format!("there are {} priorities; expected at most {PRIORITIES}", all.len()))
        );
    }
    Ok(all.into_iter().enumerate().map(|(rank, priority)| (priority, rank as u8)).collect())
}

fn expectation(node: &Node, names: &HashSet<&str>) -> Result<Expectation> {
    node.known(&OF_EXPECTATION, "", " of [[expect]]")?;
    let policy =
        text(node, "policy")?.ok_or_else(|| node.place.wrong("policy", "is missing; expected the name of a policy"))?;
    let list = |key: &str| -> Result<Option<Vec<String>>> {
        let Some(Entry { node, .. }) = node.get(key) else { return Ok(None) };
        let wrong = |node: &Node| {
            node.place
                .wrong(key, format!("{} is not accepted; expected names of workloads, such as [\"w\"]", node.shown()))
        };
        let names_of = node.list().ok_or_else(|| wrong(node))?;
        let one =
            |item: &Node| item.text().filter(|name| names.contains(name)).map(str::to_owned).ok_or_else(|| wrong(item));
        names_of.iter().map(one).collect::<Result<_>>().map(Some)
    };
    Ok(Expectation {
        policy,
        verdict: queues::choice(node, "verdict", Verdict::NAMES)?,
        launched: list("launched")?,
        evicted: list("evicted")?,
        rounds: count(node, "rounds", 1)?.unwrap_or(ROUNDS),
        place: node.place.clone(),
    })
}
