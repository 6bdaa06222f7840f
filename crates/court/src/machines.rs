//! The machines of a state: a pool, machines in short form, or each machine by name.

use plimsoll_base::error::Result;
use plimsoll_base::tree::{Entry, Node, Value};
use plimsoll_base::units::{Dim, MAX_DIMS, Resources};
use plimsoll_policies::queues;
use plimsoll_sim::cluster::{Cluster, ClusterSpec};

/// Reads the machines and their names; a pool has no names.
pub fn cluster(tree: &Node) -> Result<(Cluster, Option<Vec<String>>)> {
    let given: Vec<&Entry> = ["capacity", "machines", "machine"].into_iter().filter_map(|key| tree.get(key)).collect();
    let [entry] = given[..] else {
        let place = given.get(1).map_or(&tree.place, |entry| &entry.place);
        let expected = "expected one of [capacity], machines = \"2x8c16g\" and [[machine]]s";
        return Err(place.wrong(
            "capacity",
            if given.is_empty() { "is missing; " } else { "cannot be combined with another one; " }.to_owned()
                + expected,
        ));
    };
    let mut cluster = Cluster::default();
    match entry.key.as_str() {
        "capacity" => {
            let capacity = amounts_of(&mut cluster.dims, &entry.node, "capacity", &[])?;
            cluster.capacities.push(capacity);
            Ok((cluster, None))
        }
        "machines" => {
            let text = entry.node.text().ok_or_else(|| {
                entry.node.place.wrong(
                    "machines",
                    format!("{} is not accepted; expected machines, such as \"2x8c16g\"", entry.node.shown()),
                )
            })?;
            let spec =
                ClusterSpec::parse("machines", text).map_err(|error| entry.node.place.wrong("machines", error))?;
            let cluster = Cluster::new(&spec, &[])?;
            let names = (1..=cluster.capacities.len()).map(|number| format!("m{number}")).collect();
            Ok((cluster, Some(names)))
        }
        _ => {
            let mut names: Vec<String> = Vec::new();
            for node in queues::list(tree, "machine")? {
                let name = queues::name(node, "a machine's name")?;
                if names.iter().any(|known| known == name) {
                    return Err(node
                        .place
                        .wrong("name", format!("two machines are called '{name}'; expected unique names")));
                }
                let capacity = amounts_of(&mut cluster.dims, node, "machine", &["name"])?;
                names.push(name.to_owned());
                cluster.capacities.push(capacity);
            }
            if names.is_empty() {
                return Err(entry.place.wrong("machine", "the list is empty; expected at least one machine"));
            }
            Ok((cluster, Some(names)))
        }
    }
}

/// Reads amounts of resources, and adds new resources to the dimensions.
fn amounts_of(dims: &mut Vec<Dim>, node: &Node, key: &str, but: &[&str]) -> Result<Resources> {
    let expected = "resources with amounts, such as cpu = 9";
    let entries = node
        .table()
        .ok_or_else(|| node.place.wrong(key, format!("{} is no table; expected {expected}", node.shown())))?;
    for entry in entries.iter().filter(|entry| !but.contains(&entry.key.as_str())) {
        let (dim, _) = Dim::parse(&entry.key);
        if !dims.iter().any(|known| known.name == dim.name) {
            if dims.len() == MAX_DIMS {
                return Err(entry
                    .place
                    .wrong(key, format!("'{}' is one too many; expected at most {MAX_DIMS} resources", entry.key)));
            }
            dims.push(dim);
        }
    }
    if dims.is_empty() {
        return Err(node.place.wrong(key, format!("has no resource; expected {expected}")));
    }
    let but = |entry: &&Entry| !but.contains(&entry.key.as_str());
    let table = Node { value: Value::Table(entries.iter().filter(but).cloned().collect()), place: node.place.clone() };
    Ok(queues::amounts(&table, key, dims)?.or_zero())
}
