//! Reads machines: `[[machine]]` with capacities, and the names that a user's `on` may list.

use std::collections::HashSet;

use super::{AN_AMOUNT, Entry, Exact, Node, Place, Result, Value, capacity_in, exact, hint, named, table, vector};
use crate::Machines;

/// The keys of an entry.
const KEYS: [&str; 3] = ["name", "count", "capacity"];

/// The maximum number of machines of an entry.
const MACHINES_MAX: u64 = 1_000_000_000;

const EXPECTED: &str = "expected at least one [[machine]] with a capacity";

/// Returns the resources and the machines. Without a `capacity` of the whole cluster, resources are in order of appearance.
///
/// A single entry without its own capacity divides the capacity of the cluster into equal parts.
pub fn machines_in(entry: &Entry, capacity: Option<(Vec<String>, Vec<Exact>)>) -> Result<(Vec<String>, Vec<Machines>)> {
    let Value::List(list) = &entry.node.value else {
        let problem = format!("{} is no list of machines; {EXPECTED}", entry.node.shown());
        return Err(entry.place.wrong("machine", problem));
    };
    if list.is_empty() {
        return Err(entry.node.place.wrong("machine", format!("the list is empty; {EXPECTED}")));
    }
    let resources = match &capacity {
        Some((resources, _)) => resources.clone(),
        None => resources_of(list)?,
    };
    let mut names = HashSet::new();
    let mut machines = Vec::with_capacity(list.len());
    for (at, node) in list.iter().enumerate() {
        let (name, place, count) = head(at, node)?;
        let whom = format!("machine '{name}'");
        if !names.insert(name.clone()) {
            let problem = format!("machine {} has the name of an earlier one; expected a unique name", at + 1);
            return Err(place.wrong(&whom, problem));
        }
        let capacity = match (node.get("capacity"), &capacity) {
            (Some(own), _) => vector(&own.node, &format!("{whom}, capacity"), &resources, Exact::ZERO, AN_AMOUNT)?,
            (None, Some((_, whole))) if list.len() == 1 => {
                whole.iter().map(|whole| whole / &Exact::from(count)).collect()
            }
            (None, _) => {
                let problem = "is missing; expected amounts by resource (or this as the only [[machine]], which has \
                               [capacity] in equal parts)";
                return Err(node.place.wrong(&format!("{whom}, capacity"), problem));
            }
        };
        machines.push(Machines { name, count, capacity });
    }
    let (_, whole) = capacity.unzip();
    for (r, whole) in whole.iter().flatten().enumerate() {
        let parts: Vec<Exact> = machines.iter().map(|one| &one.capacity[r] * &Exact::from(one.count)).collect();
        let sum: Exact = parts.iter().sum();
        if sum != *whole {
            let key = format!("machine, sum of {}", resources[r]);
            return Err(entry.place.wrong(&key, format!("{sum} is not the amount in [capacity]; expected {whole}")));
        }
    }
    Ok((resources, machines))
}

/// Returns the resources of all machines, in order of appearance.
fn resources_of(list: &[Node]) -> Result<Vec<String>> {
    let mut resources = Vec::new();
    for (at, node) in list.iter().enumerate() {
        let (name, ..) = head(at, node)?;
        // A missing capacity is reported when the machine itself is read.
        if let Some(own) = node.get("capacity") {
            for resource in capacity_in(&own.node, &format!("machine '{name}', capacity"))?.0 {
                if !resources.contains(&resource) {
                    resources.push(resource);
                }
            }
        }
    }
    Ok(resources)
}

/// Returns the name of an entry, the place of the name, and the number of machines.
fn head(at: usize, node: &Node) -> Result<(String, Place, u64)> {
    let number = format!("machine {}", at + 1);
    table(node, &number, "capacity, and optionally name and count")?;
    let (name, place) = named(node, &number)?;
    let whom = format!("machine '{name}'");
    node.known(&KEYS, &whom, "")?;
    let count = node.get("count").map_or(Ok(1), |entry| count_in(&entry.node, &format!("{whom}, count")))?;
    Ok((name, place, count))
}

fn count_in(node: &Node, key: &str) -> Result<u64> {
    let number = exact(node);
    let whole = number.as_ref().and_then(|number| number.parts().filter(|(_, denominator)| *denominator == 1));
    let count = whole.and_then(|(count, _)| u64::try_from(count).ok());
    count.filter(|count| (1..=MACHINES_MAX).contains(count)).ok_or_else(|| {
        let problem = format!("{} is no number of machines; expected 1 to {MACHINES_MAX}", node.shown());
        node.place.wrong(key, problem)
    })
}

/// Reads a list of machine names as indices.
pub fn on(entry: &Entry, key: &str, machines: &[&str]) -> Result<Vec<usize>> {
    const EXPECTED: &str = "expected a list of names of machines, such as [\"m1\"], or no `on` for all machines";
    let Value::List(list) = &entry.node.value else {
        return Err(entry.node.place.wrong(key, format!("{} is no list; {EXPECTED}", entry.node.shown())));
    };
    if machines.is_empty() {
        return Err(entry.place.wrong(key, "there are no machines; expected [[machine]]s, or no `on`"));
    }
    if list.is_empty() {
        return Err(entry.node.place.wrong(key, format!("the list is empty; {EXPECTED}")));
    }
    let mut on = Vec::with_capacity(list.len());
    for node in list {
        let Value::Text(name) = &node.value else {
            return Err(node.place.wrong(key, format!("{} is no name; {EXPECTED}", node.shown())));
        };
        let Some(machine) = machines.iter().position(|known| known == name) else {
            let hint = hint(name, machines.iter().copied());
            return Err(node.place.wrong(key, format!("{} is no machine; {hint}", node.shown())));
        };
        if on.contains(&machine) {
            return Err(node.place.wrong(key, format!("{} is given twice; expected each machine once", node.shown())));
        }
        on.push(machine);
    }
    on.sort_unstable();
    Ok(on)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::Instance;
    use crate::read::{Question, parse};

    fn read(text: &str) -> Result<Instance> {
        parse(Path::new("i"), text).map(|question| match question {
            Question::Users(instance) => instance,
            Question::Groups(_) => panic!("users were written"),
        })
    }

    const TWO: &str = "[[machine]]\nname = \"m1\"\ncount = 3\ncapacity = { cpu = 8 }\n\
                       [[machine]]\ncapacity = { cpu = 4, gpu = 1 }\n";

    #[test]
    fn machines_are_listed_or_are_parts_of_the_whole() {
        let listed = read(&format!("{TWO}[[user]]\ndemand = {{ cpu = 1 }}\non = [\"machine 2\", \"m1\"]\n"));
        let listed = listed.expect("a good instance");
        assert_eq!((listed.resources(), listed.machine_count()), (&["cpu".to_owned(), "gpu".to_owned()][..], 4));
        assert_eq!(listed.capacity(), [Exact::ratio(28, 1), Exact::ONE]);
        assert_eq!(listed.rooms(), [[Exact::ratio(24, 1), Exact::ZERO], [Exact::ratio(4, 1), Exact::ONE]]);
        assert_eq!(listed.users()[0].on, Some(vec![0, 1]));
        let user = "[[user]]\ndemand = { cpu = 1 }\n";
        let counted = read(&format!("[[machine]]\ncount = 8\n[capacity]\ncpu = 4\n{user}")).expect("a good instance");
        let parts = Machines { name: "machine 1".to_owned(), count: 8, capacity: vec![Exact::ratio(1, 2)] };
        assert_eq!(counted.machines(), [parts]);
    }

    #[test]
    fn errors_have_their_place() {
        let message = |on: &str| {
            let text = format!("{TWO}[[user]]\ndemand = {{ cpu = 1 }}\non = {on}\n");
            read(&text).expect_err(on).to_string()
        };
        let wrong = message("[\"m1\", \"m2\"]");
        assert!(
            wrong.starts_with("i: line 9, column 13: user 'user 1', on: 'm2' is no machine; did you mean 'm1'?"),
            "{wrong}"
        );
        assert!(message("[]").contains("line 9, column 6: user 'user 1', on: the list is empty"));
        assert!(message("\"m1\"").contains("'m1' is no list"));
        assert!(message("[\"m1\", \"m1\"]").contains("'m1' is given twice"));
        assert!(message("[3]").contains("3 is no name"));
    }
}
