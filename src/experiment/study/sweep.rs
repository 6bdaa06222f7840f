//! The table `[sweep]` of a plan: which keys take which values, and the cells that this makes.

use std::collections::HashMap;

use toml::Value;

use super::place::{Step, steps};
use super::source::Sources;
use crate::column::Kind;
use crate::error::{Error, Result};
use crate::output::table::Constant;

/// The key of the table.
pub const SWEEP: &str = "sweep";

/// The column of the names of variants.
const VARIANT: &str = "variant";

/// More cells than this are taken for a mistake.
const CELLS: usize = 100_000;

/// The keys of a plan that it compares within every run, and those that name it: no axes.
const FIXED: [&str; 11] =
    ["name", "question", "policies", "baseline", "seeds", "seed", "tables", "include", "figure", "figures", SWEEP];

/// One direction of a sweep: a key, keys that go together, or named variants.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// Its columns and what each is called in the names of cells; for variants one column, `variant`.
    pub columns: Vec<String>,
    /// Its points, in order.
    pub points: Vec<Point>,
    /// Where it stands in the plan, for the order of axes.
    at: (usize, usize),
}

/// One point of an axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// The changes that it makes: the path of the key, the value, and where that value stands in the plan.
    pub changes: Vec<(String, Value, Vec<Step>)>,
    /// The value in each column of the axis.
    pub values: Vec<Value>,
}

/// One cell of a sweep: a point of every axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cell {
    /// The changes that it makes, as in [`Point`].
    pub changes: Vec<(String, Value, Vec<Step>)>,
    /// Columns and values.
    pub values: Vec<(String, Value)>,
}

/// The axes and the cells that are left out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sweep {
    /// In the order in which they are written.
    pub axes: Vec<Axis>,
    /// Cells that have all values of one of these are none.
    exclude: Vec<Vec<(String, Value)>>,
}

fn key(name: &str) -> Step {
    Step::Key(name.to_owned())
}

/// A key of an axis as a column: dots and brackets become `_`.
pub fn column(path: &str) -> String {
    let plain = path.replace("].", "_").replace(['.', '['], "_");
    plain.chars().filter(|c| *c != ']' && *c != '"').collect()
}

impl Sweep {
    /// Reads the table. Errors: [`Error::PlanSyntax`] with line and column.
    pub fn read(table: toml::Table, sources: &Sources) -> Result<Sweep> {
        let mut sweep = Sweep::default();
        let top = [key(SWEEP)];
        for (name, value) in table {
            let path = [&top[..], &[key(&name)]].concat();
            match (name.as_str(), value) {
                ("zip", Value::Array(groups)) => {
                    for (at, group) in groups.into_iter().enumerate() {
                        let path = [&path[..], &[Step::At(at)]].concat();
                        sweep.axes.push(zipped(group, &path, sources)?);
                    }
                }
                (VARIANT, Value::Table(variants)) => sweep.axes.push(named(variants, &path, sources)?),
                ("exclude", Value::Array(groups)) => {
                    for (at, group) in groups.into_iter().enumerate() {
                        let path = [&path[..], &[Step::At(at)]].concat();
                        let Value::Table(group) = group else {
                            return Err(sources.at_value(&path, "sweep.exclude: expected tables of keys and values"));
                        };
                        sweep.exclude.push(flat(group));
                    }
                }
                ("zip" | VARIANT | "exclude", _) => {
                    let expected = "expected [[sweep.zip]], [sweep.variant.NAME] or [[sweep.exclude]]";
                    return Err(sources.at_value(&path, &format!("sweep.{name}: {expected}")));
                }
                (_, value) => sweep.single(&name, value, &path, sources)?,
            }
        }
        sweep.axes.sort_by_key(|axis| axis.at);
        sweep.check(sources)?;
        Ok(sweep)
    }

    /// A key with its values; a table is a range, or a part of a longer key.
    fn single(&mut self, name: &str, value: Value, path: &[Step], sources: &Sources) -> Result<()> {
        let values = match value {
            Value::Array(values) => values,
            Value::Table(range) if range.contains_key("from") => spread(&range, name, path, sources)?,
            Value::Table(below) => {
                for (next, value) in below {
                    let path = [path, &[key(&next)]].concat();
                    self.single(&format!("{name}.{next}"), value, &path, sources)?;
                }
                return Ok(());
            }
            other => {
                let expected = "expected a list such as [0.5, 0.7], or { from = 0.5, to = 0.9, step = 0.1 }";
                return Err(sources.at_value(path, &format!("sweep.\"{name}\": {other} is no list; {expected}")));
            }
        };
        let point = |(at, value): (usize, Value)| Point {
            changes: vec![(name.to_owned(), value.clone(), [path, &[Step::At(at)]].concat())],
            values: vec![value],
        };
        let points = values.into_iter().enumerate().map(point).collect();
        self.axes.push(Axis { columns: vec![name.to_owned()], points, at: sources.order(path) });
        Ok(())
    }

    fn check(&self, sources: &Sources) -> Result<()> {
        let mut seen: Vec<&str> = Vec::new();
        for axis in &self.axes {
            for point in &axis.points {
                for (path, _, at) in &point.changes {
                    let first = path.split(['.', '[']).next().unwrap_or_default();
                    if FIXED.contains(&first) {
                        let why = "cannot be swept: every run has all policies and seeds, and names and tables are one";
                        return Err(sources.at_key(&at[..at.len().min(3)], &format!("sweep: '{path}' {why}")));
                    }
                }
            }
            let place = axis.points.first().and_then(|point| point.changes.first()).map(|change| &change.2[..]);
            let place = place.map_or(vec![key(SWEEP)], <[Step]>::to_vec);
            if axis.points.is_empty() {
                return Err(sources.at_key(&place, "sweep: a list without values leaves nothing to run"));
            }
            for name in &axis.columns {
                if let Some(other) = seen.iter().find(|other| column(other) == column(name)) {
                    let message = match *other == name {
                        true => format!("sweep: '{name}' is swept twice"),
                        false => format!("sweep: '{other}' and '{name}' would both be the column '{}'", column(name)),
                    };
                    return Err(sources.at_key(&place, &message));
                }
                seen.push(name);
            }
            let mut met = HashMap::new();
            for (at, point) in axis.points.iter().enumerate() {
                let shown = point.values.iter().map(Value::to_string).collect::<Vec<String>>().join(", ");
                if let Some(first) = met.insert(shown.clone(), at) {
                    let message = format!("sweep: {shown} stands there twice ({first} and {at})");
                    let place = point.changes.first().map_or(place, |change| change.2.clone());
                    return Err(sources.at_value(&place, &message));
                }
            }
        }
        for (name, _) in self.exclude.iter().flatten() {
            if !seen.contains(&name.as_str()) {
                let message = format!("sweep.exclude: '{name}' is no axis; expected one of {}", seen.join(", "));
                return Err(sources.at_key(&[key(SWEEP), key("exclude")], &message));
            }
        }
        let cells = self.axes.iter().try_fold(1usize, |cells, axis| cells.checked_mul(axis.points.len()));
        if cells.is_none_or(|cells| cells > CELLS) {
            return Err(sources.at_key(&[key(SWEEP)], &format!("sweep: more than {CELLS} combinations")));
        }
        Ok(())
    }

    /// Puts other values in place of those of an axis: what `--set` says of a key that is swept. Whether there is one.
    ///
    /// Errors: [`Error::Plan`] for a key that is swept together with others.
    pub fn replace(&mut self, path: &str, value: &Value) -> Result<bool> {
        let wanted = steps(path);
        let changed =
            |axis: &Axis| axis.points.iter().flat_map(|point| &point.changes).any(|(path, ..)| steps(path) == wanted);
        let Some(axis) = self.axes.iter_mut().find(|axis| changed(axis)) else { return Ok(false) };
        if axis.columns.len() > 1 || axis.columns[0] == VARIANT {
            let expected = "a key that the plan does not sweep together with others";
            return Err(Error::plan("--set", format!("'{path}'"), expected));
        }
        let values = match value {
            Value::Array(values) => values.clone(),
            value => vec![value.clone()],
        };
        let point = |value: Value| Point {
            changes: vec![(axis.columns[0].clone(), value.clone(), wanted.clone())],
            values: vec![value],
        };
        axis.points = values.into_iter().map(point).collect();
        if axis.points.is_empty() {
            return Err(Error::plan("--set", format!("'{path}'"), "at least one value"));
        }
        Ok(true)
    }

    /// All cells, the first axis slowest; one that changes nothing if there is no axis.
    pub fn cells(&self) -> Vec<Cell> {
        let mut cells = vec![Cell::default()];
        for axis in &self.axes {
            let with = |cell: &Cell, point: &Point| {
                let mut cell = cell.clone();
                cell.changes.extend(point.changes.iter().cloned());
                cell.values.extend(axis.columns.iter().cloned().zip(point.values.iter().cloned()));
                cell
            };
            cells = cells.iter().flat_map(|cell| axis.points.iter().map(move |point| with(cell, point))).collect();
        }
        let out = |cell: &Cell| {
            self.exclude.iter().any(|group| {
                group
                    .iter()
                    .all(|(name, value)| cell.values.iter().any(|(column, of)| column == name && same(of, value)))
            })
        };
        cells.retain(|cell| !out(cell));
        cells
    }

    /// The type of each column: that which all its values have.
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

/// A value of a column of this type.
pub fn constant(kind: Kind, value: &Value) -> Constant {
    match (kind, value) {
        (Kind::Int, Value::Integer(int)) => Constant::Int(*int),
        (Kind::Float, Value::Integer(int)) => Constant::Float(*int as f64),
        (Kind::Float, Value::Float(float)) => Constant::Float(*float),
        (_, Value::String(text)) => Constant::Text(text.clone()),
        (_, other) => Constant::Text(other.to_string()),
    }
}

/// Whether two values are the same; a whole number and a float of its value are.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Integer(int), Value::Float(float)) | (Value::Float(float), Value::Integer(int)) => {
            *int as f64 == *float
        }
        _ => a == b,
    }
}

/// Keys and values of a table and the tables in it, with dots between.
fn flat(table: toml::Table) -> Vec<(String, Value)> {
    let below = |(name, value): (String, Value)| match value {
        Value::Table(table) => flat(table).into_iter().map(|(next, value)| (format!("{name}.{next}"), value)).collect(),
        value => vec![(name, value)],
    };
    table.into_iter().flat_map(below).collect()
}

/// Keys that move together: lists of one length.
fn zipped(group: Value, path: &[Step], sources: &Sources) -> Result<Axis> {
    let Value::Table(group) = group else {
        return Err(sources.at_value(path, "sweep.zip: expected tables of keys and lists"));
    };
    let mut columns: Vec<(String, Vec<Value>)> = Vec::new();
    for (name, value) in flat(group) {
        let at = [path, &[key(&name)]].concat();
        let Value::Array(values) = value else {
            return Err(sources.at_value(&at, &format!("sweep.zip: '{name}' needs a list of values")));
        };
        if let Some((first, others)) = columns.first()
            && others.len() != values.len()
        {
            let (one, other) = (others.len(), values.len());
            let message =
                format!("sweep.zip: '{first}' has {one} values and '{name}' {other}; they go together one by one");
            return Err(sources.at_value(&at, &message));
        }
        columns.push((name, values));
    }
    let orders = sources.orders(path);
    columns.sort_by_key(|(name, _)| orders.get(name).copied().unwrap_or((usize::MAX, 0)));
    let many = columns.first().map_or(0, |(_, values)| values.len());
    let change = |name: &String, values: &[Value], at: usize| {
        (name.clone(), values[at].clone(), [path, &[key(name), Step::At(at)]].concat())
    };
    let point = |at: usize| Point {
        changes: columns.iter().map(|(name, values)| change(name, values, at)).collect(),
        values: columns.iter().map(|(_, values)| values[at].clone()).collect(),
    };
    let points = (0..many).map(point).collect();
    Ok(Axis { points, at: sources.order(path), columns: columns.into_iter().map(|(name, _)| name).collect() })
}

/// Variants: each a name and what it changes.
fn named(variants: toml::Table, path: &[Step], sources: &Sources) -> Result<Axis> {
    let mut points = Vec::new();
    let orders = sources.orders(path);
    for (name, changes) in variants {
        let at = [path, &[key(&name)]].concat();
        let Value::Table(changes) = changes else {
            return Err(sources.at_value(&at, "sweep.variant: expected tables of keys and values"));
        };
        let order = orders.get(&name).copied().unwrap_or((usize::MAX, 0));
        let change = |(changed, value): (String, Value)| {
            let at = [&at[..], &[key(&changed)]].concat();
            (changed, value, at)
        };
        let changes = flat(changes).into_iter().map(change).collect();
        points.push((order, Point { changes, values: vec![Value::String(name)] }));
    }
    points.sort_by_key(|(order, _)| *order);
    let at = points.first().map_or((0, 0), |(order, _)| *order);
    Ok(Axis { columns: vec![VARIANT.to_owned()], points: points.into_iter().map(|(_, point)| point).collect(), at })
}

/// The values of `{ from, to, step }`, both ends included.
fn spread(range: &toml::Table, name: &str, path: &[Step], sources: &Sources) -> Result<Vec<Value>> {
    let wrong = |why: &str| {
        let expected = "expected { from, to, step } with a step above 0 and at most 10000 values";
        sources.at_value(path, &format!("sweep.\"{name}\": {why}; {expected}"))
    };
    let number = |key: &str| match range.get(key) {
        Some(Value::Integer(int)) => Ok(*int as f64),
        Some(Value::Float(float)) if float.is_finite() => Ok(*float),
        _ => Err(wrong(&format!("'{key}' is no number"))),
    };
    if let Some(stranger) = range.keys().find(|key| !["from", "to", "step"].contains(&key.as_str())) {
        return Err(wrong(&format!("'{stranger}' is unknown")));
    }
    let (from, to, step) = (number("from")?, number("to")?, number("step")?);
    // Half a millionth of a step is rounding, not a further value.
    let many = ((to - from) / step + 5e-7).floor();
    if step <= 0.0 || !(0.0..10_000.0).contains(&many) {
        return Err(wrong("there is nothing in it"));
    }
    let whole = range.values().all(Value::is_integer);
    let value = |n: u64| {
        let value = from + n as f64 * step;
        // As people would write it: 0.1 + 2 × 0.1 is 0.3.
        let rounded = format!("{value:.12}").parse::<f64>().unwrap_or(value);
        if whole { Value::Integer(value as i64) } else { Value::Float(rounded) }
    };
    Ok((0..=many as u64).map(value).collect())
}

#[cfg(test)]
#[path = "sweep_tests.rs"]
mod tests;
