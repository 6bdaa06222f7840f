//! Reads an instance from TOML or JSON. Amounts are exact, unknown keys are errors, and every error has its place in the text.
//!
//! Amounts are integers, decimals (0.1 is a tenth), or fractions as text (`"1/3"`). Each is 0, or from 1e-100 to 1e100, so that no quotient
//! of three of them leaves the range of floats. See docs/solve.md and docs/quota.md for the formats.

mod groups;
mod machines;

use std::collections::HashSet;
use std::path::Path;

use super::quota::GroupInstance;
use super::{Exact, Instance, User};
use plimsoll_base::document::Document;
use plimsoll_base::error::{Error, Result, nearest};
use plimsoll_base::tree::{Entry, Node, Place, Value, brief};

/// The problem that an instance states: the number of tasks of each user, or the quota of each group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Question {
    /// Users with tasks.
    Users(Instance),
    /// Quota groups with requests.
    Groups(GroupInstance),
}

/// Reads the instance in a file, or from standard input for `-`. Errors: those of [`Document::read_input`] and [`parse`].
pub fn open(document: &Document) -> Result<Question> {
    read(&document.read_input()?)
}

/// Reads an instance from text. The extension of `name` determines whether the text is JSON or TOML; for other extensions the content
/// determines it.
///
/// Errors: [`Error::Placed`] with the name, the place if it is known, the problem, and the accepted values.
pub fn parse(name: &Path, text: &str) -> Result<Question> {
    read(&Place::whole_text(name, text.strip_prefix('\u{feff}').unwrap_or(text)))
}

fn read(whole: &Place) -> Result<Question> {
    let tree = Node::document(whole)?;
    question(&tree).map_err(|error| match error {
        Error::Placed { .. } => error,
        // An error from the construction of the instance, without a place.
        error => whole.wrong("", error),
    })
}

/// The keys of an instance, and the keys of a user.
const TOP: [&str; 4] = ["capacity", "user", "machine", "group"];
const OF_USER: [&str; 5] = ["name", "demand", "weight", "tasks", "on"];

/// The largest amount, and the reciprocal of the smallest positive amount.
const LARGEST: f64 = 1e100;

const AN_AMOUNT: &str = "a number of at least 0";
const A_WEIGHT: &str = "a number above 0";

fn question(tree: &Node) -> Result<Question> {
    table(tree, "instance", "[capacity] with [[user]] or [[group]]")?;
    match (tree.get("group"), tree.get("user")) {
        (Some(group), Some(_)) => {
            let problem = "cannot be combined with [[user]]; expected only users, or only groups";
            Err(group.place.wrong("groups", problem))
        }
        (Some(group), None) => Ok(Question::Groups(groups::groups_in(tree, group)?)),
        (None, _) => Ok(Question::Users(instance_in(tree)?)),
    }
}

fn instance_in(tree: &Node) -> Result<Instance> {
    tree.known(&TOP, "", "")?;
    let capacity = tree.get("capacity").map(|entry| capacity_in(&entry.node, "capacity")).transpose()?;
    let Some(entry) = tree.get("machine") else {
        let (resources, capacity) = capacity.ok_or_else(|| {
            let problem =
                "is missing; expected [capacity] with resources, such as cpu = 9, or [[machine]]s with theirs";
            tree.place.wrong("capacity", problem)
        })?;
        let users = users_in(tree, &resources, &[])?;
        return Instance::new(resources, capacity, users);
    };
    let (resources, machines) = machines::machines_in(entry, capacity)?;
    let names: Vec<&str> = machines.iter().map(|machine| machine.name.as_str()).collect();
    let users = users_in(tree, &resources, &names)?;
    Instance::on_machines(resources, machines, users)
}

fn users_in(tree: &Node, resources: &[String], machines: &[&str]) -> Result<Vec<User>> {
    const EXPECTED: &str = "expected at least one [[user]] with a demand";
    let Some(entry) = tree.get("user") else { return Err(tree.place.wrong("user", format!("is missing; {EXPECTED}"))) };
    let Value::List(list) = &entry.node.value else {
        let problem = format!("{} is no list of users; {EXPECTED}", entry.node.shown());
        return Err(entry.place.wrong("user", problem));
    };
    if list.is_empty() {
        return Err(entry.place.wrong("user", format!("the list is empty; {EXPECTED}")));
    }
    let mut names = HashSet::new();
    let mut users = Vec::with_capacity(list.len());
    for (at, node) in list.iter().enumerate() {
        let (user, place) = user_in(at, node, resources, machines)?;
        if !names.insert(user.name.clone()) {
            let problem = format!("user {} has the name of an earlier one; expected a unique name", at + 1);
            return Err(place.wrong(&format!("user '{}'", user.name), problem));
        }
        users.push(user);
    }
    Ok(users)
}

/// Reads a user. Returns it with the place of its name.
fn user_in(at: usize, node: &Node, resources: &[String], machines: &[&str]) -> Result<(User, Place)> {
    let number = format!("user {}", at + 1);
    table(node, &number, "name, demand, and optionally weight, tasks and on")?;
    let (name, place) = named(node, &number)?;
    let whom = format!("user '{name}'");
    node.known(&OF_USER, &whom, "")?;
    let under = |what: &str| format!("{whom}, {what}");
    let Some(demand) = node.get("demand") else {
        let example = example(resources);
        return Err(node.place.wrong(&under("demand"), format!("is missing; expected {example}")));
    };
    let demands = vector(&demand.node, &under("demand"), resources, Exact::ZERO, AN_AMOUNT)?;
    let weight = match node.get("weight") {
        None => vec![Exact::ONE; resources.len()],
        Some(entry) => match &entry.node.value {
            Value::Table(_) => vector(&entry.node, &under("weight"), resources, Exact::ONE, A_WEIGHT)?,
            _ => vec![amount(&entry.node, &under("weight"), A_WEIGHT)?; resources.len()],
        },
    };
    let tasks = node
        .get("tasks")
        .map(|entry| {
            amount(&entry.node, &under("tasks"), "a number of at least 0, or no `tasks` for an unlimited number")
        })
        .transpose()?;
    if tasks.is_none() && demands.iter().all(|amount| !amount.is_positive()) {
        let problem = "is 0 with unlimited tasks; expected an amount above 0, or a number of `tasks`";
        return Err(demand.node.place.wrong(&under("demand"), problem));
    }
    let on = node.get("on").map(|entry| machines::on(entry, &under("on"), machines)).transpose()?;
    Ok((User { name, demand: demands, weight, tasks, on }, place))
}

/// Returns the name of a list item and its place; `otherwise` is the default name.
fn named(node: &Node, otherwise: &str) -> Result<(String, Place)> {
    Ok(match node.get("name") {
        None => (otherwise.to_owned(), node.place.clone()),
        Some(entry) => (name_in(entry, &format!("{otherwise}, name"))?, entry.node.place.clone()),
    })
}

fn name_in(entry: &Entry, key: &str) -> Result<String> {
    match &entry.node.value {
        Value::Text(text) if is_name(text) => Ok(text.clone()),
        _ => {
            let problem = format!("{} is no name; expected text such as \"A\"", entry.node.shown());
            Err(entry.node.place.wrong(key, problem))
        }
    }
}

/// Reads resources with amounts, in the order of the text.
fn capacity_in(node: &Node, key: &str) -> Result<(Vec<String>, Vec<Exact>)> {
    let entries = table(node, key, "resources with amounts, such as cpu = 9")?;
    if entries.is_empty() {
        return Err(node.place.wrong(key, "has no resource; expected at least one, such as cpu = 9"));
    }
    let mut capacity = Vec::with_capacity(entries.len());
    for entry in entries {
        if !is_name(&entry.key) {
            let problem = format!("'{}' is no name of a resource", brief(&entry.key));
            return Err(entry.place.wrong(key, problem));
        }
        capacity.push(amount(&entry.node, &format!("{key}, {}", entry.key), AN_AMOUNT)?);
    }
    Ok((entries.iter().map(|entry| entry.key.clone()).collect(), capacity))
}

/// Reads one number per resource; missing resources get `otherwise`.
fn vector(node: &Node, key: &str, resources: &[String], otherwise: Exact, expected: &str) -> Result<Vec<Exact>> {
    let entries = table(node, key, &example(resources))?;
    let mut vector = vec![otherwise; resources.len()];
    for entry in entries {
        let Some(r) = resources.iter().position(|known| *known == entry.key) else {
            let name = brief(&entry.key);
            let hint = hint(&entry.key, resources.iter().map(String::as_str));
            return Err(entry.place.wrong(key, format!("'{name}' is no resource of [capacity]; {hint}")));
        };
        vector[r] = amount(&entry.node, &format!("{key}, {}", entry.key), expected)?;
    }
    Ok(vector)
}

fn amount(node: &Node, key: &str, expected: &str) -> Result<Exact> {
    let wrong = |problem: &str| {
        let problem = format!("{} {problem}; expected {expected}", node.shown());
        Err(node.place.wrong(key, problem))
    };
    let number = match &node.value {
        Value::Integer(_) | Value::Float(_) => match exact(node) {
            Some(number) => number,
            None if node.shown().ends_with("nan") => return wrong("is not a number"),
            None => return wrong("is too large or not finite"),
        },
        Value::Text(text) if text.contains('/') => match fraction(text) {
            Some(number) => number,
            None => return wrong("is no fraction such as \"1/3\""),
        },
        _ => return wrong("is not a number"),
    };
    let size = number.to_f64();
    if number.is_negative() {
        return wrong("is negative");
    }
    if expected == A_WEIGHT && !number.is_positive() {
        return wrong("is no weight");
    }
    if number.is_positive() && !(1.0 / LARGEST..=LARGEST).contains(&size) {
        return wrong("is beyond 1e-100 to 1e100");
    }
    Ok(number)
}

fn table<'n>(node: &'n Node, key: &str, expected: &str) -> Result<&'n [Entry]> {
    match &node.value {
        Value::Table(entries) => Ok(entries),
        _ => Err(node.place.wrong(key, format!("{} is no table; expected {expected}", node.shown()))),
    }
}

/// Returns a hint with the most similar name, if there is one, and the accepted names.
fn hint<'a>(word: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    const SHOWN: usize = 12;
    let mut all = known.clone().take(SHOWN).collect::<Vec<_>>().join(", ");
    if known.clone().nth(SHOWN).is_some() {
        all.push_str(", …");
    }
    match nearest(word, known) {
        Some(near) => format!("did you mean '{near}'? expected one of {all}"),
        None => format!("expected one of {all}"),
    }
}

/// Returns `{ cpu = 1, memory = 1 }` with the first few resources.
fn example(resources: &[String]) -> String {
    let few: Vec<String> = resources.iter().take(2).map(|name| format!("{name} = 1")).collect();
    format!("amounts such as {{ {} }}", few.join(", "))
}

/// Returns whether the text can be displayed in one line of a table: not empty, at most 200 characters, no control characters.
fn is_name(text: &str) -> bool {
    !text.trim().is_empty() && text.chars().nth(200).is_none() && !text.chars().any(char::is_control)
}

/// Converts integers exactly and other numbers by their shortest decimal. Returns `None` if the value is not a number, not finite, or an
/// integer beyond 64 bits.
fn exact(node: &Node) -> Option<Exact> {
    match &node.value {
        Value::Integer(digits) => match digits.parse::<i64>() {
            Ok(number) => Some(Exact::ratio(number, 1)),
            Err(_) => digits.parse::<u64>().ok().map(Exact::from),
        },
        Value::Float(digits) => digits.parse().ok().and_then(Exact::decimal),
        _ => None,
    }
}

fn fraction(text: &str) -> Option<Exact> {
    let (numerator, denominator) = text.split_once('/')?;
    let part = |text: &str| text.trim().parse::<i64>().ok();
    Some(Exact::ratio(part(numerator)?, part(denominator).filter(|&denominator| denominator > 0)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Instance> {
        parse(Path::new("i"), text).map(|question| match question {
            Question::Users(instance) => instance,
            Question::Groups(_) => panic!("users were written"),
        })
    }

    const EXAMPLE: &str = "[capacity]\nmemory = 18\ncpu = 9\n[[user]]\nname = \"A\"\ndemand = { cpu = 1, memory = 0.1 }\n\
                           weight = { cpu = 2 }\ntasks = 1.5\n[[user]]\ndemand = { cpu = \"1/3\" }\nweight = 3\n";

    #[test]
    fn an_instance_reads_as_written() {
        let instance = read(EXAMPLE).expect("a good instance");
        assert_eq!(instance.resources(), ["memory", "cpu"]);
        let [a, b] = instance.users() else { panic!("two users") };
        assert_eq!(a.demand, [Exact::ratio(1, 10), Exact::ONE]);
        assert_eq!(a.weight, [Exact::ONE, Exact::ratio(2, 1)]);
        assert_eq!(a.tasks, Some(Exact::ratio(3, 2)));
        assert_eq!((b.name.as_str(), &b.tasks), ("user 2", &None));
        assert_eq!(b.demand, [Exact::ZERO, Exact::ratio(1, 3)]);
        assert_eq!(b.one_weight(), Some(&Exact::ratio(3, 1)));
        let json = r#"{"capacity": {"memory": 18, "cpu": 9}, "user": [
            {"name": "A", "demand": {"cpu": 1, "memory": 0.1}, "weight": {"cpu": 2}, "tasks": 1.5},
            {"demand": {"cpu": "1/3"}, "weight": 3}]}"#;
        assert_eq!(read(json).expect("the same"), instance);
    }

    #[test]
    fn errors_have_their_place() {
        let message = |from: &str, to: &str| {
            assert!(EXAMPLE.contains(from));
            read(&EXAMPLE.replacen(from, to, 1)).expect_err(to).to_string()
        };
        let wrong = message("cpu = 1, memory", "cpu = 1, memroy");
        assert!(wrong.starts_with("i: line 6, column 21: user 'A', demand: 'memroy' is no resource of [capacity]"));
        assert!(wrong.contains("did you mean 'memory'? expected one of memory, cpu"), "{wrong}");
        assert!(message("cpu = 9", "cpu = -9").contains("line 3, column 7: capacity, cpu: -9 is negative"));
        assert!(message("weight = 3", "weight = 0").contains("user 'user 2', weight: 0 is no weight"));
        assert!(message("\"1/3\"", "\"1/0\"").contains("'1/0' is no fraction"));
        assert!(message("\"1/3\"", "1e-101").contains("is beyond 1e-100 to 1e100"));
    }
}
