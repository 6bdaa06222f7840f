//! Kubernetes objects in YAML or JSON: documents, lists of objects, and the fields of each.
//!
//! [`Fields`] records which fields are read, and [`Fields::rest`] adds a note for every other field, so that no setting is ignored
//! silently. Errors about values have the location and the path of the field.

use crate::diagnostics::Diagnostics;
use crate::quantity::{Quantity, Resource};
use crate::{ParsedSource, SourceContent};
use plimsoll_base::error::{Error, Result, either};
use plimsoll_base::tree::{Entry, Node, Place, Value, brief};
use plimsoll_base::units::NumberProblem;

/// Returns the error for a text with an invalid value.
pub fn not_accepted(place: &Place, key: &str, text: &str, expected: &str) -> Error {
    place.wrong(key, format!("'{}' is not accepted; expected {expected}", brief(text)))
}

/// A Kubernetes object.
#[derive(Clone, Copy, Debug)]
pub struct Object<'n> {
    /// The group of its API: `kueue.x-k8s.io`; empty for the core API.
    pub api: &'n str,
    /// The version of its API.
    pub version: &'n str,
    /// Its kind.
    pub kind: &'n str,
    /// The whole object.
    pub node: &'n Node,
}

/// Returns the objects of all sources in order. Errors: a source is not YAML, or a document is not an object.
pub fn objects(sources: &[ParsedSource]) -> Result<Vec<Object<'_>>> {
    let mut all = Vec::new();
    for source in sources {
        let SourceContent::Yaml(documents) = &source.content else {
            return Err(source.place.wrong("", "is XML; expected objects of Kubernetes in YAML or JSON"));
        };
        for document in documents {
            push(document, &mut all)?;
        }
    }
    Ok(all)
}

fn push<'n>(node: &'n Node, all: &mut Vec<Object<'n>>) -> Result<()> {
    if node.value == Value::Other("null") {
        return Ok(());
    }
    if node.table().is_none() {
        let problem = format!("{} is not an object; expected apiVersion, kind, metadata and spec", node.shown());
        return Err(node.place.wrong("", problem));
    }
    let text = |key: &'static str| match node.get(key) {
        Some(Entry { node, .. }) => match node.text() {
            Some(text) => Ok(text),
            None => Err(node.place.wrong(key, format!("{} is not accepted; expected text", node.shown()))),
        },
        None => {
            Err(place_of(node).wrong(key, "is missing; expected an object with apiVersion, kind, metadata and spec"))
        }
    };
    let (api, kind) = (text("apiVersion")?, text("kind")?);
    if let (true, Some(items)) = (kind.ends_with("List"), node.get("items")) {
        let Some(items) = items.node.list() else {
            return Err(items.node.place.wrong("items", format!("{} is not a list", items.node.shown())));
        };
        return items.iter().try_for_each(|item| push(item, all));
    }
    let (api, version) = api.rsplit_once('/').unwrap_or(("", api));
    all.push(Object { api, version, kind, node });
    Ok(())
}

/// Returns the location for errors about missing fields of a table: the location of its first key.
fn place_of(node: &Node) -> &Place {
    node.entries().first().map_or(&node.place, |entry| &entry.place)
}

impl<'n> Object<'n> {
    /// Formats the API group and version.
    pub fn api(&self) -> String {
        if self.api.is_empty() { self.version.to_owned() } else { format!("{}/{}", self.api, self.version) }
    }

    /// Returns the location for errors about the whole object.
    pub fn place(&self) -> &'n Place {
        self.node.get("kind").map_or(&self.node.place, |entry| &entry.node.place)
    }

    /// Returns the fields of the object; `apiVersion` and `kind` count as read.
    pub fn fields(&self) -> Fields<'n> {
        Fields {
            path: String::new(),
            place: self.place(),
            entries: self.node.entries(),
            read: vec!["apiVersion", "kind"],
        }
    }

    /// Returns the name with its location, and the namespace; adds notes for unused fields of `metadata` and of the object.
    pub fn head(&self, notes: &mut Diagnostics) -> Result<Head<'n>> {
        let mut fields = self.fields();
        fields.get("spec");
        fields.leave("status", "the state of a cluster is not its configuration", notes);
        let mut metadata = fields.below("metadata")?;
        let (name, place) = metadata.text("name")?.ok_or_else(|| metadata.missing("name", "the name of the object"))?;
        let namespace = metadata.text("namespace")?.map(|(namespace, _)| namespace);
        for Entry { place, .. } in metadata.unread() {
            notes.add(place, "metadata is not carried over, except for the name");
        }
        fields.rest(notes);
        Ok(Head { name, place, namespace })
    }

    /// Returns the fields of its `spec`.
    pub fn spec(&self) -> Result<Fields<'n>> {
        self.fields().below("spec")
    }

    /// Adds a note that the object is not converted.
    pub fn leave(&self, notes: &mut Diagnostics) {
        notes.add(self.place(), format!("{} of {} is not carried over", brief(self.kind), brief(&self.api())));
    }
}

/// The name and namespace of an object.
pub struct Head<'n> {
    /// Its name.
    pub name: &'n str,
    /// The location of its name.
    pub place: &'n Place,
    /// Its namespace, if it has one.
    pub namespace: Option<&'n str>,
}

/// The fields of a table. A `null` field counts as absent.
pub struct Fields<'n> {
    path: String,
    place: &'n Place,
    entries: &'n [Entry],
    read: Vec<&'static str>,
}

impl<'n> Fields<'n> {
    /// Reads the fields of a node. Errors: the node is not a table.
    pub fn new(node: &'n Node, path: &str, place: &'n Place) -> Result<Fields<'n>> {
        match &node.value {
            Value::Table(entries) => Ok(Fields { path: path.to_owned(), place, entries, read: Vec::new() }),
            _ => Err(node.place.wrong(path, format!("{} is not accepted; expected a table", node.shown()))),
        }
    }

    /// Returns the location for errors about missing fields.
    pub fn place(&self) -> &'n Place {
        self.place
    }

    /// Returns the error for a missing field.
    pub fn missing(&self, key: &str, expected: &str) -> Error {
        self.place.wrong(&self.path_of(key), format!("is missing; expected {expected}"))
    }

    /// Returns the path of a field, including its parents' names.
    pub fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// Returns all entries.
    pub fn entries(&self) -> &'n [Entry] {
        self.entries
    }

    /// Returns a field if it exists, and marks it as read.
    pub fn get(&mut self, key: &'static str) -> Option<&'n Entry> {
        self.read.push(key);
        self.entries.iter().find(|entry| entry.key == key && entry.node.value != Value::Other("null"))
    }

    fn wrong(&self, key: &str, node: &Node, expected: &str) -> Error {
        node.place.wrong(&self.path_of(key), format!("{} is not accepted; expected {expected}", node.shown()))
    }

    /// Returns a text and its location. Errors: the value is not text.
    pub fn text(&mut self, key: &'static str) -> Result<Option<(&'n str, &'n Place)>> {
        let Some(Entry { node, .. }) = self.get(key) else { return Ok(None) };
        match node.text() {
            // An empty text counts as absent.
            Some(text) => Ok(Some((text, &node.place)).filter(|_| !text.is_empty())),
            None => Err(self.wrong(key, node, "text")),
        }
    }

    /// Returns a truth value. Errors: the value is not a truth value.
    pub fn truth(&mut self, key: &'static str) -> Result<Option<bool>> {
        let Some(Entry { node, .. }) = self.get(key) else { return Ok(None) };
        match &node.value {
            Value::Truth(truth) => Ok(Some(*truth)),
            // Kubernetes accepts these truth values of YAML 1.1.
            Value::Text(text) if matches!(text.as_str(), "yes" | "on") => Ok(Some(true)),
            Value::Text(text) if matches!(text.as_str(), "no" | "off") => Ok(Some(false)),
            _ => Err(self.wrong(key, node, "true or false")),
        }
    }

    /// Returns the digits of an integer. Errors: the value is not an integer of 32 bits.
    pub fn integer(&mut self, key: &'static str) -> Result<Option<String>> {
        let Some(Entry { node, .. }) = self.get(key) else { return Ok(None) };
        let digits = if let Value::Integer(digits) = &node.value { digits.parse::<i32>().ok() } else { None };
        digits.map(|number| Some(number.to_string())).ok_or_else(|| self.wrong(key, node, "a whole number of 32 bits"))
    }

    /// Returns the word that `all` assigns to the field's text. Errors: the text is not in `all`.
    pub fn choice(&mut self, key: &'static str, all: &[(&str, &'static str)]) -> Result<Option<&'static str>> {
        let Some((text, place)) = self.text(key)? else { return Ok(None) };
        match all.iter().find(|(word, _)| *word == text) {
            Some((_, meant)) => Ok(Some(meant)),
            None => {
                let words = either(all.iter().map(|(word, _)| *word));
                Err(not_accepted(place, &self.path_of(key), text, &words))
            }
        }
    }

    /// Returns the fields of a nested table; no fields if it is absent or `null`. Errors: the value is not a table.
    pub fn below(&mut self, key: &'static str) -> Result<Fields<'n>> {
        let path = self.path_of(key);
        match self.get(key) {
            Some(Entry { node, place, .. }) => Fields::new(node, &path, place),
            None => Ok(Fields { path, place: self.place, entries: &[], read: Vec::new() }),
        }
    }

    /// Returns the fields of each item of a list; empty if it is absent. Errors: the value is not a list of tables.
    pub fn list(&mut self, key: &'static str) -> Result<Vec<Fields<'n>>> {
        let Some(Entry { node, .. }) = self.get(key) else { return Ok(Vec::new()) };
        let items = node.list().ok_or_else(|| self.wrong(key, node, "a list"))?;
        items.iter().map(|item| Fields::new(item, &self.path_of(key), place_of(item))).collect()
    }

    /// Returns a scalar for conversion to a quantity. Errors: the value is a table, a list or a truth value.
    pub fn quantity(&mut self, key: &'static str) -> Result<Option<Written<'n>>> {
        let Some(Entry { node, .. }) = self.get(key) else { return Ok(None) };
        Written::scalar(node, self.path_of(key)).map(Some)
    }

    /// Adds a note that a field is not converted, with the reason, if the field exists.
    pub fn leave(&mut self, key: &'static str, reason: &str, notes: &mut Diagnostics) {
        if let Some(Entry { place, .. }) = self.get(key) {
            notes.add(place, format!("{} is not carried over: {reason}", self.path_of(key)));
        }
    }

    /// Returns the fields that were not read.
    fn unread(&self) -> impl Iterator<Item = &'n Entry> {
        let left =
            |entry: &&Entry| !self.read.contains(&entry.key.as_str()) && entry.node.value != Value::Other("null");
        self.entries.iter().filter(left)
    }

    /// Adds a note for every field that was not read.
    pub fn rest(self, notes: &mut Diagnostics) {
        for Entry { key, place, .. } in self.unread() {
            notes.add(place, format!("{} is not carried over", self.path_of(&brief(key))));
        }
    }
}

/// A number as written in the source.
pub struct Written<'n> {
    /// The digits, with an optional unit.
    pub text: &'n str,
    /// The location.
    pub place: &'n Place,
    /// The path of the field.
    pub path: String,
}

impl<'n> Written<'n> {
    /// Reads a scalar. Errors: the node is not a number or text.
    pub fn scalar(node: &'n Node, path: String) -> Result<Written<'n>> {
        match &node.value {
            Value::Integer(text) | Value::Float(text) | Value::Text(text) => {
                Ok(Written { text, place: &node.place, path })
            }
            _ => Err(node.place.wrong(&path, format!("{} is not accepted; expected a quantity", node.shown()))),
        }
    }

    /// Returns an error about this number.
    pub fn wrong(&self, problem: NumberProblem, expected: &str) -> Error {
        self.place.wrong(&self.path, format!("'{}' {problem}; expected {expected}", brief(self.text)))
    }

    /// Parses a quantity in Kubernetes' notation. Errors: the text is not a quantity.
    pub fn kubernetes(&self) -> Result<Quantity> {
        let expected = "an amount of at least 0, such as 2, 500m or 4Gi";
        Quantity::kubernetes(self.text).map_err(|problem| self.wrong(problem, expected))
    }

    /// Parses a plain number. Errors: the text is not a number, or it is negative.
    pub fn number(&self) -> Result<Quantity> {
        Quantity::number(self.text).map_err(|problem| self.wrong(problem, "a number of at least 0"))
    }

    /// Formats a number with all its digits. Errors: the number is larger than 10^12.
    pub fn digits(&self, quantity: &Quantity) -> Result<String> {
        quantity.text().map_err(|problem| self.wrong(problem, "a number below 10^12"))
    }

    /// Converts a quantity of a resource to its base units, rounded down; adds a note if it is not exact. Errors: the amount is too large.
    pub fn amount(&self, resource: &Resource, quantity: &Quantity, notes: &mut Diagnostics) -> Result<u64> {
        let (amount, exact) =
            resource.amount(quantity).map_err(|problem| self.wrong(problem, "less than 10^18 thousandths or MiB"))?;
        if !exact {
            let (path, text) = (&self.path, brief(self.text));
            let mut kept = crate::quantity::Quantities::default();
            kept.set(&resource.dim, amount);
            let (least, kept) = (resource.least(), kept.settings().concat());
            notes.add(self.place, format!("{path}: {text} is finer than {least}, and rounded down: {kept}"));
        }
        Ok(amount)
    }
}
