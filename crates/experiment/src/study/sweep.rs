//! The table `[sweep]` of a plan: axes with their values, and the resulting cells.
//!
//! A key with a list or a range is an axis; `zip` combines keys that change together, and `variant` has named sets of changes. The cells
//! are all combinations of points of the axes, except the excluded combinations; the first axis varies slowest. Policies, seeds and other
//! keys with values that are compared within every cell cannot be axes.

use std::collections::HashMap;

use toml::Value;

use super::source::Sources;
use plimsoll_base::column::Kind;
use plimsoll_base::error::{Error, Result};
use plimsoll_base::tree::{Entry, Node, Place, Value as Found, steps};
use plimsoll_store::table::Constant;

/// The key of the table.
pub const SWEEP: &str = "sweep";

/// The column that contains the names of variants.
const VARIANT: &str = "variant";

/// The maximum number of cells; a larger number is considered a mistake.
const CELLS: usize = 100_000;

/// Keys of a plan that cannot be axes: names, tables, figures, and the policies and seeds that are compared within every cell.
const FIXED: [&str; 11] =
    ["name", "question", "policies", "baseline", "seeds", "seed", "tables", "include", "figure", "figures", SWEEP];

/// Keys below the first level with the same restriction.
const FIXED_BELOW: [&str; 1] = ["accelerators.policies"];

/// Returns whether a path is, contains, or is below a key that cannot be an axis.
fn is_fixed(path: &str) -> bool {
    let own = steps(path);
    let nested = |key: &&str| {
        let fixed = steps(key);
        own.starts_with(&fixed) || fixed.starts_with(&own)
    };
    FIXED.contains(&path.split(['.', '[']).next().unwrap_or_default()) || FIXED_BELOW.iter().any(nested)
}

/// An axis of a sweep: a key, keys that change together, or named variants.
#[derive(Clone, Debug, PartialEq)]
pub struct SweepAxis {
    /// The columns of the axis, which also label its values in the names of cells; the single column `variant` for variants.
    pub columns: Vec<String>,
    /// The points of the axis, in order.
    pub points: Vec<AxisPoint>,
    /// The location of the axis in the plan.
    place: Place,
    /// The position of the axis in the order of the plan.
    at: (usize, usize),
}

/// One point of an axis.
#[derive(Clone, Debug, PartialEq)]
pub struct AxisPoint {
    /// The changes of this point: the path of the key, the location of that path, and the value.
    pub changes: Vec<(String, Place, Node)>,
    /// The value in each column of the axis.
    pub values: Vec<Value>,
}

/// One cell of a sweep: a point of every axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SweepCell {
    /// The changes of this cell, as in [`AxisPoint`].
    pub changes: Vec<(String, Place, Node)>,
    /// The columns and values of this cell.
    pub values: Vec<(String, Value)>,
}

/// The axes and the excluded cells.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sweep {
    /// The axes in the order of the plan.
    pub axes: Vec<SweepAxis>,
    /// The excluded combinations. A cell that has all values of one combination is omitted.
    exclude: Vec<Vec<(String, Value)>>,
}

/// Converts the key of an axis to the name of a column: dots and brackets become `_`.
pub fn column(path: &str) -> String {
    let plain = path.replace("].", "_").replace(['.', '['], "_");
    plain.chars().filter(|c| *c != ']' && *c != '"').collect()
}

impl Sweep {
    /// Reads the table. Errors: [`Error::Placed`] with line and column.
    pub fn read(table: &Entry, sources: &Sources) -> Result<Sweep> {
        let mut sweep = Sweep::default();
        let wrong = |place: &Place, expected: &str| place.wrong(SWEEP, format!("expected {expected}"));
        for Entry { key, place, node } in
            table.node.table().ok_or_else(|| wrong(&table.node.place, "a table [sweep]"))?
        {
            match (key.as_str(), &node.value) {
                ("zip", Found::List(groups)) => {
                    for group in groups {
                        sweep.axes.push(zipped(group, sources)?);
                    }
                }
                (VARIANT, Found::Table(variants)) => sweep.axes.push(named(variants, place, sources)?),
                ("exclude", Found::List(groups)) => {
                    for group in groups {
                        let expected = || group.place.wrong("sweep.exclude", "expected tables of keys and values");
                        let group = flat(group.table().ok_or_else(expected)?);
                        sweep.exclude.push(
                            group.into_iter().map(|(key, _, node)| Ok((key, node.plain()?))).collect::<Result<_>>()?,
                        );
                    }
                }
                ("zip" | VARIANT | "exclude", _) => {
                    let expected = "expected [[sweep.zip]], [sweep.variant.NAME] or [[sweep.exclude]]";
                    return Err(node.place.wrong(&format!("sweep.{key}"), expected));
                }
                _ => sweep.single(key.clone(), place, node, sources)?,
            }
        }
        sweep.axes.sort_by_key(|axis| axis.at);
        sweep.check(table)?;
        Ok(sweep)
    }

    /// Adds the axis of a key with its values. A table is either a range, or contains further parts of keys.
    fn single(&mut self, name: String, key: &Place, node: &Node, sources: &Sources) -> Result<()> {
        let values = match &node.value {
            Found::List(values) => values.clone(),
            Found::Table(_) if node.get("from").is_some() => spread(node, &name)?,
            Found::Table(below) => {
                return below.iter().try_for_each(|next| {
                    self.single(format!("{name}.{}", next.key), &next.place, &next.node, sources)
                });
            }
            _ => {
                let expected = "expected a list such as [0.5, 0.7], or { from = 0.5, to = 0.9, step = 0.1 }";
                let problem = format!("{} is not a list; {expected}", node.shown());
                return Err(node.place.wrong(&format!("sweep.\"{name}\""), problem));
            }
        };
        let point = |value: Node| {
            let values = vec![value.plain()?];
            Ok(AxisPoint { changes: vec![(name.clone(), key.clone(), value)], values })
        };
        let points = values.into_iter().map(point).collect::<Result<_>>()?;
        let at = sources.order(&node.place);
        self.axes.push(SweepAxis { columns: vec![name.clone()], points, place: key.clone(), at });
        Ok(())
    }

    fn check(&self, table: &Entry) -> Result<()> {
        let mut seen: Vec<&str> = Vec::new();
        for axis in &self.axes {
            for point in &axis.points {
                for (path, key, _) in &point.changes {
                    if is_fixed(path) {
                        let why =
                            "cannot be swept: policies, seeds, names, tables and figures are those of the whole plan";
                        return Err(key.wrong(SWEEP, format!("'{path}' {why}")));
                    }
                }
            }
            if axis.points.is_empty() {
                return Err(axis.place.wrong(SWEEP, "a list without values leaves nothing to run"));
            }
            for name in &axis.columns {
                if let Some(other) = seen.iter().find(|other| column(other) == column(name)) {
                    let message = match *other == name {
                        true => format!("'{name}' is swept twice"),
                        false => format!("'{other}' and '{name}' would both be the column '{}'", column(name)),
                    };
                    return Err(axis.place.wrong(SWEEP, message));
                }
                seen.push(name);
            }
            let mut met = HashMap::new();
            for (at, point) in axis.points.iter().enumerate() {
                let shown = point.values.iter().map(Value::to_string).collect::<Vec<String>>().join(", ");
                if let Some(first) = met.insert(shown.clone(), at) {
                    let place = point.changes.first().map_or(&axis.place, |(.., node)| &node.place);
                    return Err(place.wrong(SWEEP, format!("{shown} occurs twice ({first} and {at})")));
                }
            }
        }
        for (name, _) in self.exclude.iter().flatten() {
            if !seen.contains(&name.as_str()) {
                let place = table.node.get("exclude").map_or(&table.place, |entry| &entry.place);
                let problem = format!("'{name}' is not an axis; expected one of {}", seen.join(", "));
                return Err(place.wrong("sweep.exclude", problem));
            }
        }
        let cells = self.axes.iter().try_fold(1usize, |cells, axis| cells.checked_mul(axis.points.len()));
        if cells.is_none_or(|cells| cells > CELLS) {
            return Err(table.place.wrong(SWEEP, format!("more than {CELLS} combinations")));
        }
        Ok(())
    }

    /// Replaces the values of the axis of a key, for `--set` with the key of an axis. Returns whether the key is swept.
    ///
    /// Errors: [`Error::Plan`] for a key that is swept together with others.
    pub fn replace(&mut self, path: &str, value: &Node) -> Result<bool> {
        let wanted = steps(path);
        let changed = |axis: &SweepAxis| {
            axis.points.iter().flat_map(|point| &point.changes).any(|(path, ..)| steps(path) == wanted)
        };
        let Some(axis) = self.axes.iter_mut().find(|axis| changed(axis)) else { return Ok(false) };
        if axis.columns.len() > 1 || axis.columns[0] == VARIANT {
            let expected = "a key that the plan does not sweep together with others";
            return Err(Error::plan("--set", format!("'{path}'"), expected));
        }
        let values = value.list().unwrap_or(std::slice::from_ref(value));
        let point = |node: &Node| {
            let changes = vec![(axis.columns[0].clone(), node.place.clone(), node.clone())];
            Ok(AxisPoint { changes, values: vec![node.plain()?] })
        };
        axis.points = values.iter().map(point).collect::<Result<_>>()?;
        if axis.points.is_empty() {
            return Err(Error::plan("--set", format!("'{path}'"), "at least one value"));
        }
        Ok(true)
    }

    /// Returns all cells that are not excluded; the first axis varies slowest. Without axes there is a single cell without changes.
    pub fn cells(&self) -> Vec<SweepCell> {
        let mut cells = vec![SweepCell::default()];
        for axis in &self.axes {
            let with = |cell: &SweepCell, point: &AxisPoint| {
                let mut cell = cell.clone();
                cell.changes.extend(point.changes.iter().cloned());
                cell.values.extend(axis.columns.iter().cloned().zip(point.values.iter().cloned()));
                cell
            };
            cells = cells.iter().flat_map(|cell| axis.points.iter().map(move |point| with(cell, point))).collect();
        }
        let out = |cell: &SweepCell| {
            self.exclude.iter().any(|group| {
                group
                    .iter()
                    .all(|(name, value)| cell.values.iter().any(|(column, of)| column == name && same(of, value)))
            })
        };
        cells.retain(|cell| !out(cell));
        cells
    }

    /// Returns the common type of the values of each column.
    pub fn kinds(&self) -> HashMap<&String, Kind> {
        let mut kinds = HashMap::new();
        for axis in &self.axes {
            for (at, column) in axis.columns.iter().enumerate() {
                let all = |is: fn(&Value) -> bool| axis.points.iter().all(|point| is(&point.values[at]));
                let kind = match () {
                    () if all(Value::is_integer) => Kind::Int,
                    () if all(|value| value.is_integer() || value.is_float()) => Kind::Float,
                    () => Kind::Text,
                };
                kinds.insert(column, kind);
            }
        }
        kinds
    }
}

/// Converts a value to the type of its column.
pub fn constant(kind: Kind, value: &Value) -> Constant {
    match (kind, value) {
        (Kind::Int, Value::Integer(int)) => Constant::Int(*int),
        (Kind::Float, Value::Integer(int)) => Constant::Float(*int as f64),
        (Kind::Float, Value::Float(float)) => Constant::Float(*float),
        (_, Value::String(text)) => Constant::Text(text.clone()),
        (_, other) => Constant::Text(other.to_string()),
    }
}

/// Returns whether two values are equal; an integer equals a float of the same value.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Integer(int), Value::Float(float)) | (Value::Float(float), Value::Integer(int)) => {
            *int as f64 == *float
        }
        _ => a == b,
    }
}

/// Flattens a table: returns its keys and those of nested tables, joined by dots, with locations and values.
fn flat(table: &[Entry]) -> Vec<(String, Place, Node)> {
    let below = |entry: &Entry| match &entry.node.value {
        Found::Table(below) => {
            flat(below).into_iter().map(|(next, place, node)| (format!("{}.{next}", entry.key), place, node)).collect()
        }
        _ => vec![(entry.key.clone(), entry.place.clone(), entry.node.clone())],
    };
    table.iter().flat_map(below).collect()
}

/// Reads an axis of keys that change together: lists of equal length.
fn zipped(group: &Node, sources: &Sources) -> Result<SweepAxis> {
    let wrong = |place: &Place, problem: &str| place.wrong("sweep.zip", problem);
    let table = group.table().ok_or_else(|| wrong(&group.place, "expected tables of keys and lists"))?;
    let mut lists = flat(table);
    lists.sort_by_key(|(.., node)| sources.order(&node.place));
    let mut columns: Vec<(String, &Place, &[Node])> = Vec::new();
    for (name, key, node) in &lists {
        let values = node.list().ok_or_else(|| wrong(&node.place, &format!("'{name}' needs a list of values")))?;
        if let Some((first, _, others)) = columns.first()
            && others.len() != values.len()
        {
            let (one, other) = (others.len(), values.len());
            let problem = format!(
                "'{first}' has {one} values and '{name}' {other}; lists of one [[sweep.zip]] have the same length"
            );
            return Err(wrong(&node.place, &problem));
        }
        columns.push((name.clone(), key, values));
    }
    let point = |at: usize| {
        let changes = columns.iter().map(|(name, key, values)| (name.clone(), (*key).clone(), values[at].clone()));
        let values = columns.iter().map(|(.., values)| values[at].plain()).collect::<Result<_>>()?;
        Ok(AxisPoint { changes: changes.collect(), values })
    };
    let points = (0..columns.first().map_or(0, |(.., values)| values.len())).map(point).collect::<Result<_>>()?;
    let (place, at) = (group.place.clone(), sources.order(&group.place));
    Ok(SweepAxis { points, columns: columns.into_iter().map(|(name, ..)| name).collect(), place, at })
}

/// Reads the axis of variants; each variant has a name and changes.
fn named(variants: &[Entry], place: &Place, sources: &Sources) -> Result<SweepAxis> {
    let mut points = Vec::new();
    for Entry { key, node, .. } in variants {
        let table = node.table();
        let table = table.ok_or_else(|| node.place.wrong("sweep.variant", "expected tables of keys and values"))?;
        let point = AxisPoint { changes: flat(table), values: vec![Value::String(key.clone())] };
        points.push((sources.order(&node.place), point));
    }
    points.sort_by_key(|(order, _)| *order);
    let at = points.first().map_or((0, 0), |(order, _)| *order);
    let points = points.into_iter().map(|(_, point)| point).collect();
    Ok(SweepAxis { columns: vec![VARIANT.to_owned()], points, place: place.clone(), at })
}

/// Returns the values of `{ from, to, step }`, both ends included.
fn spread(range: &Node, name: &str) -> Result<Vec<Node>> {
    let wrong = |why: &str| {
        let expected = "expected { from, to, step } with a step above 0 and at most 10000 values";
        range.place.wrong(&format!("sweep.\"{name}\""), format!("{why}; {expected}"))
    };
    let number = |key: &str| {
        let number = range.get(key).and_then(|entry| match &entry.node.value {
            Found::Integer(digits) | Found::Float(digits) => digits.parse::<f64>().ok(),
            _ => None,
        });
        number.filter(|number| number.is_finite()).ok_or_else(|| wrong(&format!("'{key}' is not a number")))
    };
    if let Some(stranger) = range.entries().iter().find(|entry| !["from", "to", "step"].contains(&&*entry.key)) {
        return Err(wrong(&format!("'{}' is unknown", stranger.key)));
    }
    let (from, to, step) = (number("from")?, number("to")?, number("step")?);
    // If the last value exceeds `to` by at most half a millionth of a step, this is a rounding error, and the value is included.
    let many = ((to - from) / step + 5e-7).floor();
    if step <= 0.0 || !(0.0..10_000.0).contains(&many) {
        return Err(wrong("the range has no values"));
    }
    let whole = range.entries().iter().all(|entry| matches!(entry.node.value, Found::Integer(_)));
    let value = |n: u64| {
        let value = from + n as f64 * step;
        // Values are rounded to what a person would write: 0.1 + 2 × 0.1 is 0.3.
        let rounded = format!("{value:.12}").parse::<f64>().unwrap_or(value);
        let value = if whole { Found::Integer((value as i64).to_string()) } else { Found::Float(rounded.to_string()) };
        Node { place: range.place.clone(), value }
    };
    Ok((0..=many as u64).map(value).collect())
}

#[cfg(test)]
#[path = "sweep_tests.rs"]
mod tests;
