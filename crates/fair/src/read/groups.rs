//! Reads groups with quotas from an instance or a quota file. Every error has the place in the file and the accepted values.

use std::collections::HashMap;

use super::{AN_AMOUNT, amount, capacity_in, example, hint, is_name, name_in, table};
use crate::Exact;
use crate::quota::{GroupInstance, QuotaGroup};
use plimsoll_base::error::Result;
use plimsoll_base::tree::{Entry, Node, Value, brief};

/// The keys of an instance of groups, the keys of a group, and the keys with one entry per resource.
const TOP: [&str; 2] = ["capacity", "group"];
const OF_GROUP: [&str; 8] = ["name", "parent", "ratio", "min", "max", "request", "used", "lend"];
const BY_RESOURCE: [&str; 5] = ["ratio", "min", "max", "request", "used"];

/// The name of the root group.
const ROOT: &str = "root";

const EXPECTED: &str = "expected at least one [[group]] with a request";

/// Reads the instance of groups that contains this `[[group]]` entry. A resource that groups name and the capacity lacks is kept without
/// capacity.
pub(super) fn groups_in(tree: &Node, entry: &Entry) -> Result<GroupInstance> {
    tree.known(&TOP, "", "")?;
    let Some(capacity) = tree.get("capacity") else {
        let problem = "is missing; expected [capacity] with resources, such as cpu = 9";
        return Err(tree.place.wrong("capacity", problem));
    };
    let (mut resources, amounts) = capacity_in(&capacity.node, "capacity")?;
    let list = list_in(entry)?;
    lacking(list, &mut resources)?;
    let mut capacity: Vec<Option<Exact>> = amounts.into_iter().map(Some).collect();
    capacity.resize(resources.len(), None);

    let names = names_in(list)?;
    let place: HashMap<&str, usize> = names.iter().enumerate().map(|(at, name)| (name.as_str(), at)).collect();
    let mut groups = Vec::with_capacity(list.len());
    for (node, name) in list.iter().zip(&names) {
        groups.push(one(node, name, &place, &resources)?);
    }
    no_cycle(list, &groups)?;
    GroupInstance::new(resources, capacity, groups)
}

fn list_in(entry: &Entry) -> Result<&[Node]> {
    match &entry.node.value {
        Value::List(list) if list.is_empty() => {
            Err(entry.place.wrong("group", format!("the list is empty; {EXPECTED}")))
        }
        Value::List(list) => Ok(list),
        _ => {
            let problem = format!("{} is no list of groups; {EXPECTED}", entry.node.shown());
            Err(entry.place.wrong("group", problem))
        }
    }
}

/// Adds the resources that groups name and the capacity lacks.
fn lacking(list: &[Node], resources: &mut Vec<String>) -> Result<()> {
    for (at, node) in list.iter().enumerate() {
        let expected = "name, request, and optionally parent, ratio, min, max, used, lend";
        table(node, &format!("group {}", at + 1), expected)?;
        let vectors = BY_RESOURCE.iter().filter_map(|key| Some((key, node.get(key)?)));
        for (key, vector) in vectors {
            let Value::Table(entries) = &vector.node.value else { continue };
            for entry in entries.iter().filter(|entry| !resources.contains(&entry.key)).collect::<Vec<_>>() {
                if !is_name(&entry.key) {
                    let problem = format!("'{}' is no name of a resource", brief(&entry.key));
                    return Err(entry.place.wrong(&format!("group {}, {key}", at + 1), problem));
                }
                resources.push(entry.key.clone());
            }
        }
    }
    Ok(())
}

/// Reads the names of the groups and checks that they are unique.
fn names_in(list: &[Node]) -> Result<Vec<String>> {
    let mut names: Vec<String> = Vec::with_capacity(list.len());
    let mut known = std::collections::HashSet::new();
    for (at, node) in list.iter().enumerate() {
        let number = format!("group {}", at + 1);
        let (name, place) = match node.get("name") {
            None => (number.clone(), &node.place),
            Some(entry) => (name_in(entry, &format!("{number}, name"))?, &entry.node.place),
        };
        let whom = format!("group '{name}'");
        if name == ROOT {
            let problem = "is the name of the root above all groups; expected another name";
            return Err(place.wrong(&whom, problem));
        }
        if !known.insert(name.clone()) {
            let problem = format!("{number} has the name of an earlier one; expected a unique name");
            return Err(place.wrong(&whom, problem));
        }
        names.push(name);
    }
    Ok(names)
}

fn one(node: &Node, name: &str, places: &HashMap<&str, usize>, resources: &[String]) -> Result<QuotaGroup> {
    let whom = format!("group '{name}'");
    let under = |what: &str| format!("{whom}, {what}");
    node.known(&OF_GROUP, &whom, "")?;
    let parent = match node.get("parent") {
        None => None,
        Some(entry) => parent_in(entry, name, places)?,
    };
    let by = |key: &str| -> Result<Vec<Option<Exact>>> {
        match node.get(key) {
            None => Ok(vec![None; resources.len()]),
            Some(entry) => named(&entry.node, &under(key), resources),
        }
    };
    let or_zero = |amounts: Vec<Option<Exact>>| amounts.into_iter().map(|amount| amount.unwrap_or(Exact::ZERO));
    let max = by("max")?;
    // As in Koordinator, the default ratio is the max, so that a group with a larger max gets more of the rest.
    let otherwise = max.iter().map(|max| max.clone().unwrap_or(Exact::ONE));
    let ratio = match node.get("ratio") {
        Some(entry) if !matches!(entry.node.value, Value::Table(_)) => {
            vec![amount(&entry.node, &under("ratio"), AN_AMOUNT)?; resources.len()]
        }
        _ => by("ratio")?.into_iter().zip(otherwise).map(|(ratio, otherwise)| ratio.unwrap_or(otherwise)).collect(),
    };
    let used = node.get("used").is_some().then(|| by("used")).transpose()?;
    let lend = match node.get("lend").map(|entry| &entry.node) {
        None => true,
        Some(Node { value: Value::Truth(lend), .. }) => *lend,
        Some(node) => {
            let problem = format!("{} is no truth value; expected true or false", node.shown());
            return Err(node.place.wrong(&under("lend"), problem));
        }
    };
    Ok(QuotaGroup {
        name: name.to_owned(),
        parent,
        ratio,
        min: or_zero(by("min")?).collect(),
        max,
        request: or_zero(by("request")?).collect(),
        used: used.map(|used| or_zero(used).collect()),
        lend,
    })
}

/// Returns the index of the group with this name; `None` is the root.
fn parent_in(entry: &Entry, name: &str, places: &HashMap<&str, usize>) -> Result<Option<usize>> {
    let key = format!("group '{name}', parent");
    let parent = name_in(entry, &key)?;
    if parent == ROOT {
        return Ok(None);
    }
    if parent == name {
        return Err(entry.node.place.wrong(&key, "is the group itself; expected another group, or root"));
    }
    places.get(parent.as_str()).copied().map(Some).ok_or_else(|| {
        let mut known: Vec<&str> = std::iter::once(ROOT).chain(places.keys().copied()).collect();
        known.sort_unstable();
        let problem = format!("'{}' is no group; {}", brief(&parent), hint(&parent, known.into_iter()));
        entry.node.place.wrong(&key, problem)
    })
}

/// Reads an amount for each resource that the table contains.
fn named(node: &Node, key: &str, resources: &[String]) -> Result<Vec<Option<Exact>>> {
    let mut amounts = vec![None; resources.len()];
    for entry in table(node, key, &example(resources))? {
        let amount = amount(&entry.node, &format!("{key}, {}", entry.key), AN_AMOUNT)?;
        if let Some(r) = resources.iter().position(|known| *known == entry.key) {
            amounts[r] = Some(amount);
        }
    }
    Ok(amounts)
}

/// Returns an error for the first group on a cycle of parents.
fn no_cycle(list: &[Node], groups: &[QuotaGroup]) -> Result<()> {
    // For each group: `usize::MAX` until visited, then the group at which the walk started, or the root.
    let mut seen = vec![usize::MAX; groups.len()];
    for start in 0..groups.len() {
        let mut at = start;
        while seen[at] == usize::MAX {
            seen[at] = start;
            match groups[at].parent {
                Some(parent) => at = parent,
                None => break,
            }
        }
        if seen[at] != start || groups[at].parent.is_none() {
            continue;
        }
        let mut path = vec![groups[at].name.as_str()];
        let mut next = groups[at].parent;
        while let Some(group) = next.filter(|&group| group != at) {
            path.push(&groups[group].name);
            next = groups[group].parent;
        }
        path.push(&groups[at].name);
        let shown = path.iter().map(|name| format!("'{}'", brief(name))).collect::<Vec<_>>().join(" is under ");
        let place = list[at].get("parent").map_or(&list[at].place, |entry| &entry.node.place);
        let problem = format!("is a cycle: {shown}; expected a parent that is not under the group");
        return Err(place.wrong(&format!("group '{}', parent", groups[at].name), problem));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::{Question, parse};
    use super::*;

    fn read(text: &str) -> Result<GroupInstance> {
        parse(Path::new("i"), text).map(|question| match question {
            Question::Groups(instance) => instance,
            Question::Users(_) => panic!("groups were written"),
        })
    }

    const EXAMPLE: &str = "[capacity]\nmemory = 18\ncpu = 9\n[[group]]\nname = \"ads\"\nparent = \"root\"\nratio = 2\n\
                           min = { cpu = 2 }\nmax = { cpu = 8, gpu = 1 }\nrequest = { cpu = 5, memory = 0.5 }\nlend = false\n\
                           [[group]]\nname = \"web\"\nparent = \"ads\"\nmax = { memory = 4 }\nratio = { cpu = \"1/3\" }\n\
                           [[group]]\nused = { cpu = 1 }\n";

    #[test]
    fn groups_read_as_written() {
        let instance = read(EXAMPLE).expect("a good instance");
        assert_eq!(instance.resources(), ["memory", "cpu", "gpu"]);
        assert_eq!(instance.capacity(), [Some(Exact::ratio(18, 1)), Some(Exact::ratio(9, 1)), None]);
        let [ads, web, third] = instance.groups() else { panic!("three groups") };
        assert_eq!((ads.parent, web.parent, third.name.as_str()), (None, Some(0), "group 3"));
        assert_eq!(ads.ratio, vec![Exact::ratio(2, 1); 3]);
        assert_eq!(ads.max, [None, Some(Exact::ratio(8, 1)), Some(Exact::ONE)]);
        assert_eq!((&ads.min[1], &ads.request[0], ads.lend), (&Exact::ratio(2, 1), &Exact::ratio(1, 2), false));
        // The default of the ratio is the max, or 1 without a max.
        assert_eq!(web.ratio, [Exact::ratio(4, 1), Exact::ratio(1, 3), Exact::ONE]);
        assert_eq!((web.lend, &web.used), (true, &None));
        assert_eq!(third.used, Some(vec![Exact::ZERO, Exact::ONE, Exact::ZERO]));
    }

    #[test]
    fn errors_have_their_place() {
        let message = |from: &str, to: &str| {
            assert!(EXAMPLE.contains(from));
            read(&EXAMPLE.replacen(from, to, 1)).expect_err(to).to_string()
        };
        let wrong = message("parent = \"ads\"", "parent = \"asd\"");
        assert!(wrong.starts_with("i: line 14, column 10: group 'web', parent: 'asd' is no group"), "{wrong}");
        assert!(wrong.contains("did you mean 'ads'? expected one of ads, group 3, root, web"), "{wrong}");
        let wrong = message("parent = \"root\"", "parent = \"web\"");
        assert!(wrong.contains("line 6, column 10: group 'ads', parent: is a cycle"), "{wrong}");
        assert!(wrong.contains("'ads' is under 'web' is under 'ads'"), "{wrong}");
        assert!(message("parent = \"ads\"", "parent = \"web\"").contains("is the group itself"));
        assert!(message("lend = false", "lend = 0").contains("group 'ads', lend: 0 is no truth value"));
    }
}
