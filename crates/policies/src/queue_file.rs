//! Reads a file of queues: the groups of a production scheduler with the keys of that scheduler. See docs/queues.md for the format.
//!
//! This module checks keys, names, parents and users. Each policy reads the values of its own keys with the functions of this module. Every
//! error has its place in the file and states the accepted values.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use super::values::{self, connect, refused, string};
use plimsoll_base::error::{Error, Result, did_you_mean, either};
use plimsoll_base::rows::read_text;
use plimsoll_base::tree::{Entry, Node, Place, Value};
use plimsoll_base::units::{Dim, Resources, Rounding};
use plimsoll_sim::policy::Owners;

/// Amounts of some resources, in base units; `None` for resources without a key.
pub type OptionalAmounts = Resources<Option<u64>>;

/// An amount in base units, or no bound. Every amount is below [`Bound::Unlimited`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bound {
    /// An amount in base units.
    Amount(u64),
    /// No bound. The amount is the total of the level.
    Unlimited,
}

impl Bound {
    /// Returns the amount, or the total of the level if there is no bound.
    pub fn amount(self, total: u64) -> u64 {
        match self {
            Bound::Amount(amount) => amount,
            Bound::Unlimited => total,
        }
    }
}

/// The value of an unlimited amount in a file.
const UNLIMITED: &str = "unlimited";

/// The number 1 in millionths, the unit of weights.
pub const ONE: u64 = 1_000_000;

/// The largest amount, in base units: the amounts of thousands of groups can be added without overflow.
const LARGEST: u64 = 1 << 50;

/// A key of groups, or of the table `[policy]`, that a policy reads.
#[derive(Clone, Copy, Debug)]
pub struct QueueKey {
    /// The key.
    pub name: &'static str,
    /// Whether it is a key of `[policy]` instead of a group.
    pub whole: bool,
    /// The values and their meaning.
    pub meaning: &'static str,
}

impl QueueKey {
    /// Creates a key of groups.
    pub const fn group(name: &'static str, meaning: &'static str) -> QueueKey {
        QueueKey { name, whole: false, meaning }
    }

    /// Creates a key of the table `[policy]`.
    pub const fn policy(name: &'static str, meaning: &'static str) -> QueueKey {
        QueueKey { name, whole: true, meaning }
    }
}

/// The content of a file of queues.
#[derive(Clone, Debug, Default)]
pub struct QueueFile {
    /// The source: the file, or the plan or state that contains the queues.
    pub path: PathBuf,
    /// The files that were read for it; empty for queues in a plan.
    pub files: Vec<PathBuf>,
    /// The groups in the order of the file.
    pub groups: Vec<QueueEntry>,
    /// The table `[policy]`: options of the whole tree.
    pub policy: Node,
    /// The users of groups: the name, and the index of the group in the file.
    pub users: Vec<(String, usize)>,
}

/// A group in a file of queues.
#[derive(Clone, Debug, Default)]
pub struct QueueEntry {
    /// The name.
    pub name: String,
    /// The index of the parent group in the file; `None` directly under the cluster.
    pub parent: Option<usize>,
    /// Whether users that no group names belong to this group.
    pub default: bool,
    /// The table with all keys.
    pub table: Node,
}

const TOP: [&str; 4] = ["capacity", "policy", "group", "user"];
const OF_GROUP: [&str; 4] = ["name", "parent", "users", "default"];
const OF_USER: [&str; 5] = ["name", "parent", "weight", "usage", "credits"];

impl QueueFile {
    /// Reads a file that may have these keys of policies. Errors: [`Error::Io`], and [`Error::Placed`] with the place and the values that
    /// would be accepted.
    pub fn read(path: &Path, keys: &[QueueKey]) -> Result<QueueFile> {
        let mut file = QueueFile::parse(path, &read_text(path)?, keys)?;
        file.files.push(path.to_owned());
        Ok(file)
    }

    /// Reads the text of a file. Errors: as [`QueueFile::read`].
    pub fn parse(path: &Path, text: &str, keys: &[QueueKey]) -> Result<QueueFile> {
        let tree = Node::toml(&Place::whole_text(path, text))?;
        tree.known(&TOP, "", " of a file of queues")?;
        QueueFile::from_node(&tree, &tree.place, keys)
    }

    /// Reads the queues in a plan, by name: the tables `[queues.NAME]`. Errors: as [`QueueFile::read`].
    pub fn in_plan(queues: &Entry, keys: &[QueueKey]) -> Result<Vec<(String, QueueFile)>> {
        let wrong = |place: &Place| place.wrong("queues", "expected tables with names, such as [queues.teams]");
        let tables = queues.node.table().ok_or_else(|| wrong(&queues.place))?;
        let one = |entry: &Entry| {
            entry.node.table().ok_or_else(|| wrong(&entry.place))?;
            entry.node.known(&TOP, &format!("queues.{}", entry.key), " of queues")?;
            Ok((entry.key.clone(), QueueFile::from_node(&entry.node, &entry.place, keys)?))
        };
        tables.iter().map(one).collect()
    }

    /// Reads the queues in a table with `[[group]]`, `[[user]]` and `[policy]`; other keys are ignored. Errors: as [`QueueFile::read`].
    pub fn from_node(top: &Node, place: &Place, keys: &[QueueKey]) -> Result<QueueFile> {
        let mut file = QueueFile { path: place.file().to_owned(), ..QueueFile::default() };
        if let Some(entry) = top.get("policy") {
            table(&entry.node, "policy", "switches")?;
            entry.node.known(&key_names(keys, true), "policy", " of [policy]")?;
            file.policy = entry.node.clone();
        }
        let parents = file.read_groups(top, keys)?;
        let named: Vec<(&str, &Place)> =
            file.groups.iter().map(|group| (group.name.as_str(), &group.table.place)).collect();
        let parents = connect(&named, &parents)?;
        file.groups.iter_mut().zip(parents).for_each(|(group, parent)| group.parent = parent);
        file.read_users(top)?;
        Ok(file)
    }

    /// Reads the groups; returns the name of each parent with its place.
    fn read_groups<'n>(&mut self, top: &'n Node, keys: &[QueueKey]) -> Result<Vec<Option<(String, &'n Place)>>> {
        let known: Vec<&str> = OF_GROUP.into_iter().chain(key_names(keys, false)).collect();
        let mut parents = Vec::new();
        let mut names: HashSet<&str> = HashSet::new();
        for node in list(top, "group")? {
            node.known(&known, "", " of a group")?;
            let name = name(node, "a group's name")?;
            if name == "root" {
                return Err(node.place.wrong("name", "'root' is the cluster itself; expected another name"));
            }
            if !names.insert(name) {
                return Err(node.place.wrong("name", format!("two groups are called '{name}'; expected unique names")));
            }
            let default = truth(node, "default")?.unwrap_or(false);
            self.groups.push(QueueEntry { name: name.to_owned(), parent: None, default, table: node.clone() });
            let parent = node.get("parent").map(|entry| Ok((string("parent", &entry.node)?, &entry.node.place)));
            parents.push(parent.transpose()?.filter(|(name, _)| name != "root"));
        }
        Ok(parents)
    }

    fn no_group(&self, key: &str, node: &Node) -> Error {
        let hint = did_you_mean(node.text().unwrap_or_default(), self.groups.iter().map(|group| group.name.as_str()));
        node.place.wrong(key, format!("{} is no group{hint}; expected the name of one", node.shown()))
    }

    fn read_users(&mut self, top: &Node) -> Result<()> {
        let mut named: Vec<(String, usize, &Place)> = Vec::new();
        for (at, group) in self.groups.iter().enumerate() {
            let Some(Entry { node, .. }) = group.table.get("users") else { continue };
            let expected = "expected a list of users, such as [\"a\", \"batch-*\"]";
            for user in node.list().ok_or_else(|| node.place.wrong("users", expected))? {
                let user_name = user.text().ok_or_else(|| user.place.wrong("users", expected))?;
                named.push((user_name.to_owned(), at, &user.place));
            }
        }
        for node in list(top, "user")? {
            node.known(&OF_USER, "", " of a user")?;
            let name = name(node, "a user's name")?;
            let Some(parent) = node.get("parent") else { continue };
            let found = self.groups.iter().position(|group| parent.node.text() == Some(&group.name));
            let at = found.ok_or_else(|| self.no_group("parent", &parent.node))?;
            named.push((name.to_owned(), at, &node.place));
        }
        let above: HashSet<usize> = self.groups.iter().filter_map(|group| group.parent).collect();
        let mut owners: HashMap<&str, usize> = HashMap::new();
        for (user, at, place) in &named {
            if above.contains(at) {
                let problem = format!("'{}' has groups under it; expected users in those", self.groups[*at].name);
                return Err(place.wrong("users", problem));
            }
            if let Some(other) = owners.insert(user, *at).filter(|other| other != at) {
                let (one, other) = (&self.groups[*at].name, &self.groups[other].name);
                return Err(
                    place.wrong("users", format!("'{user}' is in '{other}' and in '{one}'; expected one group"))
                );
            }
        }
        self.users = named.into_iter().map(|(user, at, _)| (user, at)).collect();
        Ok(())
    }

    /// Returns the index of a user's group in the file: the group that names the user, has a matching pattern, or is the default group.
    pub fn owner(&self, user: &str) -> Option<usize> {
        self.owners().group_of(user)
    }

    /// Returns the mapping from users to groups.
    pub fn owners(&self) -> Owners {
        let users = self.users.iter().map(|(user, at)| (*at, user.as_str()));
        Owners::new(users, self.groups.iter().position(|group| group.default))
    }
}

/// Returns the names of the keys of groups, or of `[policy]`, without duplicates.
fn key_names(keys: &[QueueKey], whole: bool) -> Vec<&'static str> {
    let names = keys.iter().filter(|key| key.whole == whole).map(|key| key.name);
    names.fold(Vec::new(), |mut names, name| {
        if !names.contains(&name) {
            names.push(name);
        }
        names
    })
}

fn table<'n>(node: &'n Node, key: &str, of: &str) -> Result<&'n [Entry]> {
    node.table().ok_or_else(|| node.place.wrong(key, format!("{} is no table of {of}", node.shown())))
}

/// Returns the tables of a list such as `[[group]]`; empty if the key is missing.
pub fn list<'n>(top: &'n Node, key: &str) -> Result<&'n [Node]> {
    let Some(Entry { node, .. }) = top.get(key) else { return Ok(&[]) };
    let wrong = |node: &Node| node.place.wrong(key, format!("{} is no table; expected [[{key}]]s", node.shown()));
    let all = node.list().ok_or_else(|| wrong(node))?;
    match all.iter().find(|item| item.table().is_none()) {
        Some(item) => Err(wrong(item)),
        None => Ok(all),
    }
}

/// Returns the name of a table. Errors: it is missing, blank, or contains control characters.
pub fn name<'n>(node: &'n Node, what: &str) -> Result<&'n str> {
    let Some(entry) = node.get("name") else {
        return Err(node.place.wrong("name", format!("is missing; expected {what}")));
    };
    let text = entry.node.text().filter(|text| !text.trim().is_empty() && !text.chars().any(char::is_control));
    text.ok_or_else(|| {
        entry.node.place.wrong("name", format!("{} is not accepted; expected {what}", entry.node.shown()))
    })
}

/// Reads amounts of resources that the run has. Errors: the value has no amounts, or names resources that the run does not have.
pub fn amounts(node: &Node, key: &str, dims: &[Dim]) -> Result<OptionalAmounts> {
    let mut amounts = OptionalAmounts::NONE;
    for entry in table(node, key, "resources, such as { cpu = 2 }")? {
        let (at, scale) = resource(entry, key, dims)?;
        amounts[at] = Some(amount(entry, &format!("{key}.{}", entry.key), scale, "an amount of at least 0")?);
    }
    Ok(amounts)
}

/// Reads amounts, any of which may be `"unlimited"`. Errors: as [`amounts`].
pub fn bounds(node: &Node, key: &str, dims: &[Dim]) -> Result<Resources<Option<Bound>>> {
    let mut bounds = Resources::uniform(None);
    for entry in table(node, key, "resources, such as { cpu = 2 }")? {
        let (at, scale) = resource(entry, key, dims)?;
        let path = format!("{key}.{}", entry.key);
        bounds[at] = Some(match entry.node.text() {
            Some(UNLIMITED) => Bound::Unlimited,
            _ => Bound::Amount(amount(entry, &path, scale, "an amount of at least 0 or \"unlimited\"")?),
        });
    }
    Ok(bounds)
}

/// Returns the index of an entry's resource among those of the run, and the base units per unit of the file. Errors: an unknown resource.
fn resource(entry: &Entry, key: &str, dims: &[Dim]) -> Result<(usize, u64)> {
    let (dim, scale) = Dim::parse(&entry.key);
    let at = dims.iter().position(|known| known.name == dim.name).ok_or_else(|| {
        let names = || dims.iter().map(|dim| dim.name.as_str());
        let hint = did_you_mean(&dim.name, names());
        let problem = format!("'{}' is no resource here{hint}; expected {}", entry.key, either(names()));
        entry.place.wrong(key, problem)
    })?;
    Ok((at, scale))
}

/// Reads the amount of an entry in base units. Errors: it is not a number, or too large.
fn amount(entry: &Entry, path: &str, scale: u64, expected: &str) -> Result<u64> {
    let amount = values::number(path, &entry.node, (scale, Rounding::Down), expected)?;
    if amount > LARGEST {
        let problem = format!("{} is too large; expected at most {}", entry.node.shown(), LARGEST / scale.max(1));
        return Err(entry.node.place.wrong(path, problem));
    }
    Ok(amount)
}

/// Reads a number of at least 0, in millionths.
pub fn number(node: &Node, key: &str) -> Result<u64> {
    values::number(key, node, (ONE, Rounding::Down), "a number of at least 0")
}

/// Reads a whole number, which may be negative.
pub fn integer(node: &Node, key: &str) -> Result<i64> {
    // At most 32 bits, as in the schedulers, so that sums over a tree fit.
    let read = if let Value::Integer(digits) = &node.value { digits.parse::<i32>().ok() } else { None };
    read.map(i64::from).ok_or_else(|| refused(key, node, "a whole number of at most 32 bits"))
}

/// Reads a truth value under a key, if the key is present.
pub fn truth(table: &Node, key: &str) -> Result<Option<bool>> {
    table.get(key).map(|entry| truth_value(&entry.node, key)).transpose()
}

/// Reads a truth value.
pub fn truth_value(node: &Node, key: &str) -> Result<bool> {
    values::truth(key, node)
}

/// Reads one of several words under a key, if the key is present.
pub fn choice<T: Copy>(table: &Node, key: &str, all: &[(&str, T)]) -> Result<Option<T>> {
    table.get(key).map(|entry| word(&entry.node, key, all)).transpose()
}

/// Reads one of several words.
pub fn word<T: Copy>(node: &Node, key: &str, all: &[(&str, T)]) -> Result<T> {
    find_word(node, all).ok_or_else(|| refused(key, node, &quoted(all, " or ")))
}

/// Reads a list of such words.
pub fn words<T: Copy>(node: &Node, key: &str, all: &[(&str, T)]) -> Result<Vec<T>> {
    let found = node.list().and_then(|items| items.iter().map(|item| find_word(item, all)).collect());
    found.ok_or_else(|| refused(key, node, &format!("a list of {}", quoted(all, " and "))))
}

fn find_word<T: Copy>(node: &Node, all: &[(&str, T)]) -> Option<T> {
    all.iter().find(|(name, _)| node.text() == Some(name)).map(|(_, value)| *value)
}

fn quoted<T>(all: &[(&str, T)], separator: &str) -> String {
    all.iter().map(|(name, _)| format!("\"{name}\"")).collect::<Vec<_>>().join(separator)
}
