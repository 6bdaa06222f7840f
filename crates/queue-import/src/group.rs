//! Groups with the keys of a file of queues, and the writer of that file.
//!
//! The importers set keys from [`KEYS`] only. [`Queues::text`] writes a valid file whatever the names contain: parents precede their
//! children, strings are escaped, and comments have no control characters.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;

use crate::objects::not_accepted;
use crate::quantity::Quantities;
use plimsoll_base::error::{Error, Result, did_you_mean};
use plimsoll_base::tree::{Place, brief};

/// A key of groups, with its meaning; [`KEYS`] lists all keys in the order of writing.
pub struct GroupKey {
    /// The key.
    pub name: &'static str,
    /// The meaning, as a short phrase.
    pub meaning: &'static str,
}

const fn key(name: &'static str, meaning: &'static str) -> GroupKey {
    GroupKey { name, meaning }
}

/// All keys of groups except `name` and `parent`, in the order of writing.
pub const KEYS: [GroupKey; 21] = [
    key("nominal", "the group's own quota, summed over flavours"),
    key(
        "limit",
        "the most that the group may borrow beyond `nominal` (`kueue`), or use in total (`kai`); absent: no limit",
    ),
    key("lend_limit", "the largest part of the unused quota that other groups may borrow; absent: all of it"),
    key("weight", "the weight of the group among the groups of its parent"),
    key(
        "within",
        "the workloads of its own group that a workload may preempt: `never`, `lower-priority`, \
             `lower-or-newer-equal-priority`",
    ),
    key("reclaim", "the workloads of other groups that a workload may preempt: `never`, `lower-priority`, `any`"),
    key(
        "borrow_within",
        "the workloads of other groups that a workload may preempt in order to borrow: `lower-priority`; absent: none",
    ),
    key(
        "order",
        "whether a workload that does not fit blocks the workloads behind it (`strict-fifo`) or not (`best-effort-fifo`)",
    ),
    key("priority", "a group with a larger number is served earlier"),
    key("deserved", "the amount that the group deserves; it may lend an unused part"),
    key("guarantee", "the amount reserved for the group"),
    key("capability", "the most that the group may use"),
    key("reclaimable", "whether other groups may reclaim the group's excess over its deserved amount"),
    key("percent", "the group's capacity in percent of its parent's capacity"),
    key("max_percent", "the most that the group may use, in percent of its parent's capacity"),
    key("user_limit_percent", "the smallest limit of a user, in percent of the group's capacity"),
    key("user_limit_factor", "the largest amount of a user, as a multiple of the group's capacity"),
    key("min", "the minimum share, which is served before the fair shares"),
    key("max", "the most that the group may use"),
    key("preemption_threshold", "the part of the fair share below which the group may preempt"),
    key("users", "the users of the group; `*` at the end matches any suffix"),
];

/// The value of a key.
#[derive(Clone, Debug, PartialEq)]
pub enum Setting {
    /// Amounts of resources.
    Amounts(Quantities),
    /// A number, with the digits of the source.
    Number(String),
    /// One of a fixed set of words.
    Word(&'static str),
    /// A truth value.
    Truth(bool),
    /// A list of names.
    Names(Vec<String>),
}

/// A group of a file of queues.
#[derive(Clone, Debug)]
pub struct QueueGroup {
    /// The name, which is unique.
    pub name: String,
    /// The index of the parent group; `None` for a group directly below the root.
    pub parent: Option<usize>,
    /// The location of its definition in the configuration.
    pub place: Place,
    keys: Vec<(&'static str, Setting)>,
}

impl QueueGroup {
    /// Creates a group directly below the root, without keys.
    pub fn new(name: &str, place: &Place) -> QueueGroup {
        QueueGroup { name: name.to_owned(), parent: None, place: place.clone(), keys: Vec::new() }
    }

    /// Sets a key, one of [`KEYS`].
    pub fn set(&mut self, key: &'static str, setting: Setting) {
        debug_assert!(KEYS.iter().any(|known| known.name == key), "{key} is a key");
        self.keys.retain(|(known, _)| *known != key);
        self.keys.push((key, setting));
    }

    /// Sets a key to amounts; does nothing if they are empty.
    pub fn set_amounts(&mut self, key: &'static str, amounts: Quantities) {
        if !amounts.is_empty() {
            self.set(key, Setting::Amounts(amounts));
        }
    }

    /// Returns the value of a key.
    pub fn get(&self, key: &str) -> Option<&Setting> {
        self.keys.iter().find(|(known, _)| *known == key).map(|(_, setting)| setting)
    }
}

/// A parsed configuration, before it is written as a file of queues.
#[derive(Clone, Debug, Default)]
pub struct Queues {
    /// The capacity of the cluster, if the configuration specifies it.
    pub capacity: Quantities,
    /// The keys of `[policy]`.
    pub policy: Vec<(&'static str, Setting)>,
    /// The groups, in the order of the source.
    pub groups: Vec<QueueGroup>,
}

impl Queues {
    /// Adds a group and returns its index. Errors: the name is invalid.
    pub fn add(&mut self, group: QueueGroup) -> Result<usize> {
        let name = &group.name;
        if name.trim().is_empty() || name.chars().any(char::is_control) {
            return Err(not_accepted(&group.place, "name", name, "a name"));
        }
        self.groups.push(group);
        Ok(self.groups.len() - 1)
    }

    /// Sets the parents of groups. `places` has the index of each queue by name; `above` has a group's index, the name of its parent and the
    /// location of that name. Errors: the parent is not a queue of the sources; the message has the field `key` and the `expected` values.
    pub fn set_parents<N: Borrow<str> + Eq + Hash>(
        &mut self,
        places: &HashMap<N, usize>,
        above: Vec<(usize, &str, &Place)>,
        key: &str,
        expected: &str,
    ) -> Result<()> {
        for (at, parent, place) in above {
            let Some(found) = places.get(parent) else {
                let hint = did_you_mean(parent, places.keys().map(N::borrow));
                let problem = format!("'{}' is not a queue of these files{hint}; expected {expected}", brief(parent));
                return Err(place.wrong(key, problem));
            };
            self.groups[at].parent = Some(*found);
        }
        Ok(())
    }

    /// Returns the indices of the groups; parents precede their children, and the order is otherwise unchanged.
    ///
    /// Errors: a duplicate name, or a cycle of parents.
    fn ordered(&self) -> Result<Vec<usize>> {
        let mut names: HashMap<&str, &Place> = HashMap::new();
        for QueueGroup { name, place, .. } in &self.groups {
            if let Some(other) = names.insert(name, place) {
                let before =
                    if other.line() == 0 { String::new() } else { format!(", the first on line {}", other.line()) };
                let problem = format!("two groups are called '{}'{before}; expected unique names", brief(name));
                return Err(place.wrong("", problem));
            }
        }
        let mut below: Vec<Vec<usize>> = vec![Vec::new(); self.groups.len()];
        let mut left: Vec<usize> = Vec::new();
        for (at, group) in self.groups.iter().enumerate().rev() {
            match group.parent {
                Some(parent) => below[parent].push(at),
                None => left.push(at),
            }
        }
        let mut ordered = Vec::with_capacity(self.groups.len());
        while let Some(at) = left.pop() {
            ordered.push(at);
            left.append(&mut below[at]);
        }
        if ordered.len() < self.groups.len() {
            let mut reached = vec![false; self.groups.len()];
            ordered.iter().for_each(|&at| reached[at] = true);
            let group = self.groups.iter().zip(reached).find(|(_, reached)| !reached).map(|(group, _)| group);
            return Err(group.map_or_else(
                || Error::Mismatch { problem: "the groups do not form a tree".to_owned() },
                |group| group.place.wrong("", format!("'{}' is above itself; expected a tree", brief(&group.name))),
            ));
        }
        Ok(ordered)
    }

    /// Formats the file of queues. The lines of `comment` are its first lines. Errors: as for [`Queues::ordered`].
    pub fn text(&self, comment: &[String]) -> Result<String> {
        let ordered = self.ordered()?;
        let mut text: String =
            comment.iter().map(|line| format!("# {}", harmless(line)).trim_end().to_owned() + "\n").collect();
        if !self.capacity.is_empty() {
            text += "\n[capacity]\n";
            self.capacity.settings().iter().for_each(|setting| text += &format!("{setting}\n"));
        }
        if !self.policy.is_empty() {
            text += "\n[policy]\n";
        }
        self.policy.iter().for_each(|(key, setting)| text += &format!("{key} = {}\n", setting.text()));
        for at in ordered {
            let QueueGroup { name, parent, .. } = &self.groups[at];
            text += &format!("\n[[group]]\nname = {}\n", quoted(name));
            if let Some(parent) = parent {
                text += &format!("parent = {}\n", quoted(&self.groups[*parent].name));
            }
            for GroupKey { name, .. } in &KEYS {
                if let Some(setting) = self.groups[at].get(name) {
                    text += &format!("{name} = {}\n", setting.text());
                }
            }
        }
        Ok(text)
    }
}

impl Setting {
    fn text(&self) -> String {
        match self {
            Setting::Amounts(amounts) => format!("{{ {} }}", amounts.settings().join(", ")),
            Setting::Number(digits) => digits.clone(),
            Setting::Word(word) => quoted(word),
            Setting::Truth(truth) => truth.to_string(),
            Setting::Names(names) => {
                let names: Vec<String> = names.iter().map(|name| quoted(name)).collect();
                format!("[{}]", names.join(", "))
            }
        }
    }
}

/// Formats a text as a TOML string.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => quoted += &format!("\\u{:04X}", u32::from(c)),
            c => quoted.push(c),
        }
    }
    quoted + "\""
}

/// Escapes the control characters in a line of a comment, because TOML does not allow them there.
fn harmless(line: &str) -> String {
    line.chars().map(|c| if c.is_control() { c.escape_debug().to_string() } else { c.to_string() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(names: &[(&str, Option<usize>)]) -> Queues {
        let mut queues = Queues::default();
        for (name, parent) in names {
            let mut group = QueueGroup::new(name, &Place::whole_text("t", ""));
            group.parent = *parent;
            queues.add(group).expect("a name");
        }
        queues
    }

    #[test]
    fn parents_come_first() {
        let queues = named(&[("c", Some(1)), ("b", None), ("a", Some(3)), ("d", None), ("e", Some(0))]);
        let names: Vec<&str> =
            queues.ordered().expect("a tree").into_iter().map(|at| queues.groups[at].name.as_str()).collect();
        assert_eq!(names, ["b", "c", "e", "d", "a"]);
    }

    #[test]
    fn no_trees_are_refused() {
        let wrong = |names: &[(&str, Option<usize>)]| named(names).text(&[]).expect_err("no tree").to_string();
        assert_eq!(wrong(&[("a", Some(1)), ("b", Some(0)), ("c", None)]), "t: 'a' is above itself; expected a tree");
        assert_eq!(wrong(&[("a", None), ("a", None)]), "t: two groups are called 'a'; expected unique names");
        let nothing =
            Queues::default().add(QueueGroup::new(" ", &Place::whole_text("t", ""))).expect_err("no name").to_string();
        assert_eq!(nothing, "t: name: ' ' is not accepted; expected a name");
    }

    #[test]
    fn any_name_is_a_value_of_toml() {
        let name = "a\"b\\c é \u{202e}'#";
        let mut queues = named(&[(name, None)]);
        queues.groups[0].set("users", Setting::Names(vec!["x\u{1}\n".to_owned()]));
        let text = queues.text(&["one\ntwo\u{7f}".to_owned()]).expect("a tree");
        let read: toml::Table = text.parse().expect("TOML");
        assert_eq!(read["group"][0]["name"].as_str(), Some(name));
        assert_eq!(read["group"][0]["users"][0].as_str(), Some("x\u{1}\n"));
    }
}
