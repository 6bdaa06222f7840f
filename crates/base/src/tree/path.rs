//! Paths of keys such as `cluster.group[0].count`: reading them, and finding or changing the value at a path.

use std::collections::HashMap;

use super::{Entry, MOST_DEEP, Node, Place, Value};
use crate::error::Error;

/// One step down into a table or a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathStep {
    /// The value of a key.
    Key(String),
    /// An item of a list, from 0.
    At(usize),
}

/// Reads a path such as `cluster.group[0].count`; keys in quotes may contain dots.
pub fn steps(path: &str) -> Vec<PathStep> {
    let (mut steps, mut word, mut quoted) = (Vec::new(), String::new(), false);
    let push = |word: &mut String, steps: &mut Vec<PathStep>| {
        let word = std::mem::take(word).trim().to_owned();
        if !word.is_empty() {
            steps.push(word.strip_prefix('[').and_then(|n| n.parse().ok()).map_or(PathStep::Key(word), PathStep::At));
        }
    };
    for c in path.chars() {
        match c {
            '"' => quoted = !quoted,
            _ if quoted => word.push(c),
            '.' | ']' => push(&mut word, &mut steps),
            '[' => {
                push(&mut word, &mut steps);
                word.push(c);
            }
            _ => word.push(c),
        }
    }
    push(&mut word, &mut steps);
    steps
}

impl Node {
    /// Removes a key and returns it with its value.
    pub fn take_entry(&mut self, key: &str) -> Option<Entry> {
        let Value::Table(entries) = &mut self.value else { return None };
        entries.iter().position(|entry| entry.key == key).map(|at| entries.remove(at))
    }

    /// Removes the value at a path. In the document, the path may be one quoted key or a sequence of nested tables. Tables that become
    /// empty are removed, too.
    pub fn remove(&mut self, path: &[PathStep]) {
        let Value::Table(entries) = &mut self.value else { return };
        entries.retain(|entry| steps(&entry.key) != path);
        if let [PathStep::Key(first), rest @ ..] = path
            && let Some(at) = entries.iter().position(|entry| entry.key == *first)
        {
            entries[at].node.remove(rest);
            if entries[at].node.table().is_some_and(<[Entry]>::is_empty) {
                entries.remove(at);
            }
        }
    }

    /// Adds an entry to a table, or replaces the entry with the same key.
    pub fn insert(&mut self, entry: Entry) {
        let Value::Table(entries) = &mut self.value else { return };
        match entries.iter().position(|known| known.key == entry.key) {
            Some(at) => entries[at] = entry,
            None => entries.push(entry),
        }
    }

    /// Sets the value at a path and creates missing tables on the way. Errors: a description of the expected path.
    pub fn insert_at(&mut self, path: &[PathStep], node: Node) -> Result<(), String> {
        let place = node.place.clone();
        if !matches!(path.first(), Some(PathStep::Key(_))) {
            return Err("a key, such as workload.load".to_owned());
        }
        if path.len() > MOST_DEEP {
            return Err(format!("a path of at most {MOST_DEEP} keys"));
        }
        let mut at = self;
        for step in path {
            at = match (step, &mut at.value) {
                (PathStep::Key(key), Value::Table(entries)) => {
                    let known = entries.iter().position(|entry| entry.key == *key).unwrap_or_else(|| {
                        let node = Node { place: place.clone(), value: Value::default() };
                        entries.push(Entry { key: key.clone(), place: place.clone(), node });
                        entries.len() - 1
                    });
                    &mut entries[known].node
                }
                (PathStep::At(index), Value::List(items)) => {
                    let many = items.len();
                    items.get_mut(*index).ok_or_else(|| format!("an index below {many}, the number of items there"))?
                }
                (PathStep::Key(key), _) => return Err(format!("a path of tables; '{key}' is below something else")),
                (PathStep::At(_), _) => return Err("an index only after an array".to_owned()),
            };
        }
        *at = node;
        Ok(())
    }

    /// Merges another table over this one: tables are merged key by key, every other value is replaced.
    pub fn merge(&mut self, over: Node) {
        match (&mut self.value, over) {
            (Value::Table(below), Node { place, value: Value::Table(above) }) => {
                self.place = place;
                let known: HashMap<String, usize> =
                    below.iter().enumerate().map(|(at, entry)| (entry.key.clone(), at)).collect();
                for entry in above {
                    match known.get(&entry.key) {
                        Some(&at) => {
                            below[at].place = entry.place;
                            below[at].node.merge(entry.node);
                        }
                        None => below.push(entry),
                    }
                }
            }
            (_, over) => *self = over,
        }
    }

    /// Returns the place of the value at a path. If there is none, returns the place of the table that lacks it.
    pub fn place_of(&self, path: &[PathStep]) -> Place {
        let (mut at, mut key) = (self, None);
        for step in path {
            let below = match (step, &at.value) {
                (PathStep::Key(name), Value::Table(_)) => at.get(name).map(|entry| (&entry.node, Some(&entry.place))),
                (PathStep::At(index), Value::List(items)) => items.get(*index).map(|item| (item, None)),
                // A single value in place of a list with one item.
                (PathStep::At(_), value) if !matches!(value, Value::Table(_)) => Some((at, key)),
                _ => None,
            };
            match below {
                Some(below) => (at, key) = below,
                None if std::ptr::eq(at, self) => return self.place.unknown(),
                None => return key.unwrap_or(&at.place).clone(),
            }
        }
        at.place.clone()
    }

    /// Returns the path of the innermost key or value at a place; `None` for the place of the whole tree.
    pub(super) fn path_to(&self, place: &Place) -> Option<String> {
        // A document without a header has an empty place.
        if place.text().is_empty() {
            return None;
        }
        let mut found = None;
        self.visit_paths(String::new(), &mut |path, other| {
            let length = other.text().len();
            if other.covers(place) && found.as_ref().is_none_or(|&(least, _)| length <= least) {
                found = Some((length, path.to_owned()));
            }
        });
        found.map(|(_, path)| path)
    }

    /// Calls `visit` with the path and the place of each key and value below this node, outer ones first.
    fn visit_paths(&self, path: String, visit: &mut impl FnMut(&str, &Place)) {
        for Entry { key, place, node } in self.entries() {
            let key = if key.contains(['.', '[', ' ']) { format!("\"{key}\"") } else { key.clone() };
            let path = if path.is_empty() { key } else { format!("{path}.{key}") };
            visit(&path, place);
            visit(&path, &node.place);
            node.visit_paths(path, visit);
        }
        for (at, item) in self.list().unwrap_or_default().iter().enumerate() {
            let path = format!("{path}[{at}]");
            visit(&path, &item.place);
            item.visit_paths(path, visit);
        }
    }

    /// Adds line and column to an error about a key.
    pub fn locate(&self, error: Error) -> Error {
        match path_of(&error) {
            Some(path) => self.place_of(&path).wrong("", error),
            None => error,
        }
    }
}

/// Returns the path of the key that an error is about, with the index of the item in a list.
pub fn path_of(error: &Error) -> Option<Vec<PathStep>> {
    let Error::Plan { key, item, .. } = error else { return None };
    Some(steps(key).into_iter().chain(item.map(PathStep::At)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "a = 1\n[b]\n\"c.d\" = [10, 20]\n[[b.e]]\nf = \"ä\"\n[[b.e]]\ng = { h = 2 }\n";

    fn read(text: &str) -> Node {
        Node::toml(&Place::whole_text("t", text)).expect("TOML")
    }

    #[test]
    fn paths_read_and_stand_somewhere() {
        let key = |key: &str| PathStep::Key(key.to_owned());
        assert_eq!(steps("b.e[1].g.h"), [key("b"), key("e"), PathStep::At(1), key("g"), key("h")]);
        assert_eq!(steps("sweep.\"c.d\"[0]"), [key("sweep"), key("c.d"), PathStep::At(0)]);
        let tree = read(TEXT);
        let at = |path: &str| tree.place_of(&steps(path)).text().to_owned();
        assert_eq!(
            (at("b.\"c.d\"[1]"), at("b.e[1].g.h"), at("b.e[1].g.nothing")),
            ("20".into(), "2".into(), "g".into())
        );
        assert_eq!((at("a[3]"), tree.place_of(&steps("nothing")).line()), ("1".into(), 0));
        let said = |error: Error| tree.locate(error).to_string();
        assert!(
            said(Error::plan("b.\"c.d\"", "20", "less").item(1)).starts_with("t: line 3, column 14: b.\"c.d\": 20 is")
        );
        assert_eq!(said(Error::plan("z", 1, "2")), "t: z: 1 is not accepted; expected 2");
    }

    #[test]
    fn values_are_put_where_paths_lead() {
        let mut tree = read(TEXT);
        let set = |value: i64| Node { place: Place::whole_text("--set", ""), value: Value::Integer(value.to_string()) };
        tree.insert_at(&steps("b.e[0].f"), set(3)).expect("a path");
        tree.insert_at(&steps("new.table.x"), set(4)).expect("a path");
        let plain = tree.plain().expect("TOML");
        assert_eq!(plain["b"]["e"][0]["f"].as_integer(), Some(3));
        assert_eq!(plain["new"]["table"]["x"].as_integer(), Some(4));
        assert_eq!(tree.place_of(&steps("new.table.y")).wrong("", "no").to_string(), "--set: no");
        tree.remove(&steps("new.table.x"));
        tree.remove(&steps("b.c.d"));
        assert!(tree.get("new").is_none() && tree.get("b").is_some_and(|b| b.node.entries().len() == 1));
        assert!(tree.insert_at(&steps("b.e[7].f"), set(1)).is_err_and(|why| why.contains("below 2")));
        assert!(tree.insert_at(&steps("a.b"), set(1)).is_err_and(|why| why.contains("tables")));
        assert!(tree.insert_at(&[], set(1)).is_err());
    }

    #[test]
    fn tables_go_together_key_by_key() {
        let mut tree = read("x = 1\nlist = [1, 2]\n[t]\np = 1\nq = 1\n");
        tree.merge(Node::toml(&Place::whole_text("over", "list = [9]\n[t]\nr = 3\n")).expect("TOML"));
        assert_eq!(
            tree.plain().expect("TOML"),
            read("list = [9]\nx = 1\n[t]\np = 1\nq = 1\nr = 3\n").plain().expect("TOML")
        );
        let said = |path: &str| tree.place_of(&steps(path)).wrong("", "wrong").to_string();
        assert!(said("t.p").starts_with("t: line 4, column 5"), "{}", said("t.p"));
        assert!(said("t.nothing").starts_with("over: line 2, column 2"), "{}", said("t.nothing"));
    }
}
