//! A plan that is separated from its sweep: the part without it, and the cells with their names.
//!
//! Plans of the engine and plans with accelerators are read from it, so that both have the same includes, axes, names of cells and locations
//! of errors.

use std::collections::HashMap;

use rayon::prelude::*;

use super::canonical;
use super::source::Sources;
use super::sweep::{SWEEP, Sweep, SweepCell, column, constant};
use crate::changes::{parse_change, put_at};
use plimsoll_base::column::Kind;
use plimsoll_base::error::{Error, Result};
use plimsoll_base::tree::{Entry, Node, PathStep, Place, Value, path_of, steps};
use plimsoll_store::table::Constant;

/// The number of cells that are read at a time.
const TOGETHER: usize = 256;

/// The maximum length of a cell's name, which is also a folder's name.
pub(super) const NAME: usize = 100;

/// A plan and the cells of its sweep.
#[derive(Clone)]
pub struct SweptPlan {
    /// The plan without its sweep.
    pub tree: Node,
    /// The cells, in the order of the sweep; one without changes if there is no sweep.
    pub cells: Vec<SweepCell>,
    /// The names of the cells; empty without a sweep.
    pub names: Vec<String>,
    /// The keys of each axis.
    pub axes: Vec<Vec<String>>,
    /// The type of each column.
    kinds: HashMap<String, Kind>,
    /// The table of the sweep, as written.
    swept: Option<Entry>,
}

impl SweptPlan {
    /// Reads a plan with its includes. The changes `set` (`key=value`, such as `example`) are applied first; the value of a change to a swept
    /// key replaces the values of its axis.
    ///
    /// Errors: [`Error::Placed`] with line and column; [`Error::Plan`] for a change.
    pub fn read(text: Place, set: &[String], example: &str) -> Result<SweptPlan> {
        let (sources, mut tree) = Sources::read(text)?;
        let mut swept = tree.take_entry(SWEEP);
        let mut sweep = swept.as_ref().map_or(Ok(Sweep::default()), |swept| Sweep::read(swept, &sources))?;
        for change in set {
            let (key, value) = parse_change(change, example)?;
            match &mut swept {
                Some(swept) if sweep.replace(&key, &value)? => {
                    swept.node.remove(&steps(&key));
                    let place = value.place.clone();
                    let list = if value.list().is_some() { value.value } else { Value::List(vec![value]) };
                    swept.node.insert(Entry { key, place: place.clone(), node: Node { place, value: list } });
                }
                _ => put_at(&mut tree, &key, value)?,
            }
        }
        let cells = sweep.cells();
        if let (true, Some(swept)) = (cells.is_empty(), &swept) {
            return Err(swept.place.wrong(SWEEP, "everything is excluded"));
        }
        let kinds = sweep.kinds().into_iter().map(|(key, kind)| (key.clone(), kind)).collect();
        let axes = sweep.axes.iter().map(|axis| axis.columns.clone()).collect();
        Ok(SweptPlan { tree, names: names(&cells), cells, axes, kinds, swept })
    }

    /// Returns the axes of a cell: columns and values.
    pub fn axes_of(&self, cell: &SweepCell) -> Vec<(String, Constant)> {
        cell.values.iter().map(|(name, value)| (column(name), constant(self.kinds[name], value))).collect()
    }

    /// Returns the columns of each axis.
    pub fn columns(&self) -> Vec<Vec<String>> {
        self.axes.iter().map(|keys| keys.iter().map(|key| column(key)).collect()).collect()
    }

    /// Reads every cell from its resolved plan and its name, in parallel. Errors: that of the first cell with an error, with the name of the
    /// cell.
    pub fn each<T: Send>(&self, read: impl Fn(&Node, &SweepCell, &str) -> Result<T> + Sync) -> Result<Vec<T>> {
        let one = |(cell, name): (&SweepCell, &String)| {
            let value = cell.resolve(&self.tree).and_then(|tree| read(&tree, cell, name));
            value.map_err(|error| cell.named(error, name))
        };
        let mut values = Vec::with_capacity(self.cells.len());
        for (cells, names) in self.cells.chunks(TOGETHER).zip(self.names.chunks(TOGETHER)) {
            // Cells are read in chunks, so that an error in the first cell is reported soon. The reported error is always that of the
            // first cell with an error.
            let read: Vec<Result<T>> = cells.par_iter().zip(names).map(one).collect();
            for value in read {
                values.push(value?);
            }
        }
        Ok(values)
    }

    /// Returns the resolved plan as text, with the sweep as written. It is the identity of the plan.
    pub fn text(&self) -> Result<String> {
        let mut whole = self.tree.plain_table()?;
        if let Some(swept) = self.swept.as_ref().filter(|_| !self.axes.is_empty()) {
            whole.insert(swept.key.clone(), swept.node.plain()?);
        }
        canonical(&whole)
    }
}

impl SweepCell {
    /// Applies the changes of this cell to the plan.
    pub fn resolve(&self, tree: &Node) -> Result<Node> {
        let mut tree = tree.clone();
        for (key, place, node) in &self.changes {
            tree.insert_at(&steps(key), node.clone())
                .map_err(|expected| place.wrong("", Error::plan(SWEEP, format!("'{key}'"), expected)))?;
        }
        Ok(tree)
    }

    /// Returns the location of a path in the plan of this cell; if the cell has a single change at or below this path, the location of the
    /// change.
    pub fn place(&self, tree: &Node, path: &[PathStep]) -> Place {
        let mut below = self.changes.iter().filter(|(key, ..)| steps(key).starts_with(path));
        match (below.next(), below.next()) {
            (Some((.., node)), None) => node.place.clone(),
            _ => tree.place_of(path),
        }
    }

    /// Adds the location of the error's key to an error.
    pub fn located(&self, tree: &Node, error: Error) -> Error {
        match path_of(&error) {
            Some(path) => self.place(tree, &path).wrong("", error),
            None => error,
        }
    }

    /// Adds the name of the cell to an error about the changes of the cell.
    pub fn named(&self, error: Error, name: &str) -> Error {
        match error {
            Error::Placed { place, problem } if self.changes.iter().any(|(.., node)| node.place.covers(&place)) => {
                Error::Placed { place, problem: format!("{problem} (in the cell {name})") }
            }
            other => other,
        }
    }
}

/// Returns the names of cells, which consist of the last words of keys with their values: `load-0.7,machines-100x16c32g`.
pub(super) fn names(cells: &[SweepCell]) -> Vec<String> {
    let last = |column: &str| match steps(column).pop() {
        Some(PathStep::Key(word)) => word,
        _ => column.to_owned(),
    };
    let columns: Vec<&str> =
        cells.iter().take(1).flat_map(|cell| &cell.values).map(|(name, _)| name.as_str()).collect();
    let short = |name: &str| {
        let alone = columns.iter().filter(|other| last(other) == last(name)).count() == 1;
        if alone { last(name) } else { name.to_owned() }
    };
    let word = |(name, value): &(String, toml::Value)| match value {
        toml::Value::String(text) if name == "variant" => text.clone(),
        toml::Value::String(text) => format!("{}-{text}", short(name)),
        value => format!("{}-{value}", short(name)),
    };
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._-:,".contains(c) { c } else { '-' };
    let one = |cell: &SweepCell| {
        let words: Vec<String> = cell.values.iter().map(word).collect();
        words.join(",").chars().map(plain).collect::<String>()
    };
    let names: Vec<String> = cells.iter().map(one).collect();
    let mut many: HashMap<&String, usize> = HashMap::new();
    names.iter().for_each(|name| *many.entry(name).or_default() += 1);
    let clear = |name: &String| name.len() <= NAME && many[name] == 1;
    // Names that are too long or not unique end with a part of a digest.
    let named = |(name, cell): (&String, &SweepCell)| {
        if clear(name) {
            return name.clone();
        }
        let all: Vec<String> = cell.values.iter().map(|(column, value)| format!("{column}={value}")).collect();
        let digest = blake3::hash(all.join("\n").as_bytes()).to_hex();
        format!("{},{}", name.chars().take(NAME - 9).collect::<String>(), &digest[..8])
    };
    names.iter().zip(cells).map(named).collect()
}
