//! Checks the figures that a plan requests against the results that the plan will produce.
//!
//! `Checker` resolves names of fields and columns, applies the defaults of each kind, and refuses a figure that its kind cannot show.
//! Errors name the figure and the key, and suggest similar names. No table is read.

use plimsoll_base::error::{Error, Result, alternatives, did_you_mean};
use plimsoll_charts::figure::Measure;
use plimsoll_charts::paper::{Paper, Preset, points};
use plimsoll_results::schema::Table;
use plimsoll_store::portable;

use super::field::{Datum, Field, FigureColumn};
use super::file::{FigureFile, Words};
use super::kind::{FigureKind, Stat};
use super::kinds::{Draw, KindRow, X};
use super::scope::Scope;
use crate::gallery;

/// A requested figure, checked.
#[derive(Clone, Debug, PartialEq)]
pub struct FigureRequest {
    /// The name, which is the stem of its files.
    pub name: String,
    pub(super) kind: FigureKind,
    pub(super) table: Table,
    pub(super) x: Option<Field>,
    /// The shown columns.
    pub(super) y: Vec<FigureColumn>,
    /// The second field of pairs: rows of a heat map.
    pub(super) rows: Option<Field>,
    pub(super) series: Vec<Field>,
    pub(super) facet: Vec<Field>,
    pub(super) filter: Vec<(Field, Vec<FilterValue>)>,
    pub(super) stat: Stat,
    /// The factor that the values of each column are multiplied by.
    pub(super) scale: Vec<f64>,
    pub(super) title: Option<String>,
    pub(super) caption: Option<String>,
    pub(super) log: [bool; 2],
    pub(super) labels: [Option<String>; 2],
    pub(super) ranges: [Option<(f64, f64)>; 2],
    pub(super) bands: Option<bool>,
    pub(super) percent: bool,
    pub(super) paper: Paper,
    /// All axes of the sweep.
    pub(super) axes: Vec<Field>,
}

/// A condition of a filter on a field.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum FilterValue {
    /// The field has this value.
    Value(Datum),
    /// The field is a name with this prefix.
    Begins(String),
}

impl FilterValue {
    pub fn fits(&self, value: &Datum) -> bool {
        match self {
            FilterValue::Value(wanted) => wanted == value,
            FilterValue::Begins(start) => matches!(value, Datum::Text(text) if text.starts_with(start)),
        }
    }
}

impl FigureRequest {
    /// Returns the shown columns of the `runs` table.
    pub(super) fn metrics(&self) -> impl Iterator<Item = &str> {
        let shown = self.builtin().is_none() && self.table == Table::Runs;
        self.y.iter().filter(move |_| shown).map(|column| column.name.as_str())
    }

    /// Returns the heading of one of the shown columns.
    pub(super) fn heading(&self, name: &str) -> String {
        let shown = self.y.iter().find(|column| column.name == name);
        shown.map_or_else(|| name.to_owned(), |column| column.heading.clone())
    }

    /// Returns the names of the selected built-in figures, which are drawn for every cell of a sweep; `None` for other figures.
    pub fn builtin(&self) -> Option<&'static [&'static str]> {
        match self.kind {
            FigureKind::BuiltIn(names) => Some(names),
            FigureKind::Described(_) => None,
        }
    }

    /// Returns whether the figure's horizontal axis is of this kind.
    pub(super) fn x_is(&self, x: X) -> bool {
        self.kind.row().is_some_and(|kind| kind.x == x)
    }
}

/// Resolves a requested figure; `at` is its location in the plan.
pub(super) struct Checker<'a> {
    pub scope: &'a Scope,
    pub file: &'a FigureFile,
    pub at: usize,
}

impl Checker<'_> {
    pub(super) fn key(&self, key: &str) -> String {
        format!("figure[{}].{key}", self.at)
    }

    /// Creates an error for an unknown name, with similar known ones.
    fn unknown<'k>(&self, key: &str, name: &str, known: impl Iterator<Item = &'k str> + Clone) -> Error {
        let hint = did_you_mean(name, known.clone());
        Error::plan(self.key(key), format!("'{name}'"), format!("{}{hint}", alternatives(name, known, "")))
    }

    /// Creates an error for a column that the table does not have. The message names columns of the same measure in this table and in
    /// another one.
    fn unknown_column<'k>(
        &self,
        (key, table): (&str, Table),
        name: &str,
        known: impl Iterator<Item = &'k str> + Clone,
    ) -> Error {
        let mean = name.strip_suffix("_s").map(|stem| format!("{stem}_mean_s"));
        let here = mean.filter(|mean| known.clone().any(|known| known == mean));
        let has = |table: &Table| self.columns(*table).iter().any(|column| column.name == name);
        let there = self.scope.tables.iter().copied().filter(|other| *other != table).find(has);
        let there = there.map(|table| format!("'{name}' with table = \"{}\"", table.name()));
        let meant: Vec<String> = here.map(|name| format!("'{name}'")).into_iter().chain(there).collect();
        if meant.is_empty() {
            return self.unknown(key, name, known);
        }
        let listed = alternatives(name, known, &format!("plimsoll schema {}", table.name()));
        Error::plan(self.key(key), format!("'{name}'"), format!("{listed} (did you mean {}?)", meant.join(" or ")))
    }

    /// Returns all columns of a table, with the own metrics of the plan.
    fn columns(&self, table: Table) -> Vec<FigureColumn> {
        let own = self.scope.own.iter().filter(|_| table == Table::Runs);
        FigureColumn::all(table, &self.scope.dims).into_iter().chain(own.map(FigureColumn::own)).collect()
    }

    pub fn request(&self, paper: Paper) -> Result<FigureRequest> {
        let file = self.file;
        let kind =
            FigureKind::parse(&file.kind).ok_or_else(|| self.unknown("kind", &file.kind, FigureKind::names()))?;
        let table = self.table(kind)?;
        let request = FigureRequest {
            name: file.name.clone().unwrap_or_else(|| file.kind.clone()),
            table,
            x: None,
            y: Vec::new(),
            rows: None,
            series: Vec::new(),
            facet: Vec::new(),
            filter: Vec::new(),
            stat: Stat::Mean,
            scale: Vec::new(),
            title: file.title.clone(),
            caption: file.caption.clone(),
            log: self.log()?,
            labels: [file.x_label.clone(), file.y_label.clone()],
            ranges: [self.range("x_range", file.x_range)?, self.range("y_range", file.y_range)?],
            bands: file.bands,
            percent: file.percent.unwrap_or(false),
            paper: self.paper(paper)?,
            axes: self.scope.axes.iter().map(|(axis, _)| self.field("x", axis, &[])).collect::<Result<_>>()?,
            kind,
        };
        if !portable::is_file_name(&request.name) {
            let given = format!("'{}'", request.name.escape_debug());
            return Err(Error::plan(self.key("name"), given, portable::EXPECTED));
        }
        let Some(row) = kind.row() else { return self.nothing_else(request) };
        let request = self.fields(request, row)?;
        self.suits(&request, row)?;
        if (row.mixes)(&request) {
            self.keyed(&request)?;
        }
        Ok(request)
    }

    /// Checks that a request for a built-in figure has no keys about its content, which is fixed.
    fn nothing_else(&self, request: FigureRequest) -> Result<FigureRequest> {
        let file = self.file;
        let given = [
            ("table", file.table.is_some()),
            ("x", file.x.is_some()),
            ("y", file.y.is_some()),
            ("value", file.value.is_some()),
            ("series", file.series.is_some()),
            ("facet", file.facet.is_some()),
            ("where", !file.filter.is_empty()),
            ("stat", file.stat.is_some()),
            ("scale", file.scale.is_some()),
            ("log", file.log.is_some()),
            ("name", file.name.is_some()),
            ("title", file.title.is_some()),
        ];
        match given.iter().find(|(_, given)| *given) {
            None => Ok(request),
            Some((key, _)) => {
                let expected = format!("no '{key}': the content of '{}' is fixed", file.kind);
                Err(Error::plan(self.key(key), "a value", expected))
            }
        }
    }

    fn paper(&self, all: Paper) -> Result<Paper> {
        let file = self.file;
        let mut paper = all;
        if let Some(name) = &file.preset {
            paper = Paper::from_preset(Some(Preset::parse(&self.key("preset"), name)?));
        }
        for (key, value) in [("width", file.width), ("height", file.height)] {
            if let Some(value) = value {
                let points = points(&self.key(key), value)?;
                if key == "width" { paper.width = Some(points) } else { paper.height = Some(points) }
            }
        }
        Ok(paper)
    }

    fn table(&self, kind: FigureKind) -> Result<Table> {
        let reads = kind.row().is_some_and(|kind| matches!(kind.draw, Draw::Rows(_)));
        let Some(name) = &self.file.table else {
            let table = kind.row().map_or(Table::Runs, |kind| kind.table);
            let needed = reads && !self.scope.tables.contains(&table);
            return match needed {
                false => Ok(table),
                true => Err(Error::plan(
                    self.key("kind"),
                    format!("'{}'", self.file.kind),
                    format!("the table '{}', which this plan does not write (see its key 'tables')", table.name()),
                )),
            };
        };
        if !reads {
            let expected = format!("no table: '{}' shows the statistics", self.file.kind);
            return Err(Error::plan(self.key("table"), format!("'{name}'"), expected));
        }
        let table = Table::parse(&self.key("table"), name)?;
        match self.scope.tables.contains(&table) {
            true => Ok(table),
            false => {
                let expected = "a table that this plan writes (see its key 'tables')";
                Err(Error::plan(self.key("table"), format!("'{name}'"), expected))
            }
        }
    }

    fn log(&self) -> Result<[bool; 2]> {
        let words = self.file.log.clone().unwrap_or_default().0;
        match words.iter().find(|word| !["x", "y"].contains(&word.as_str())) {
            Some(word) => Err(Error::plan(self.key("log"), format!("'{word}'"), "\"x\", \"y\" or [\"x\", \"y\"]")),
            None => Ok(["x", "y"].map(|axis| words.iter().any(|word| word == axis))),
        }
    }

    /// Returns one factor per column; a single number applies to all.
    fn scale(&self, columns: usize) -> Result<Vec<f64>> {
        let Some(given) = &self.file.scale else { return Ok(vec![1.0; columns]) };
        let number = |value: &toml::Value| value.as_float().or_else(|| value.as_integer().map(|int| int as f64));
        let scale: Option<Vec<f64>> = match given {
            toml::Value::Array(items) if items.len() == columns => items.iter().map(number).collect(),
            one => number(one).map(|one| vec![one; columns]),
        };
        let good = |scale: &Vec<f64>| scale.iter().all(|one| one.is_finite() && *one != 0.0);
        scale.filter(good).ok_or_else(|| {
            let expected =
                "a number that values are multiplied by, not 0, or a list of one number for each column of 'y'";
            Error::plan(self.key("scale"), given, expected)
        })
    }

    fn range(&self, key: &str, range: Option<[f64; 2]>) -> Result<Option<(f64, f64)>> {
        match range {
            Some([low, high]) if !(low < high && low.is_finite() && high.is_finite()) => {
                Err(Error::plan(self.key(key), format!("[{low}, {high}]"), "two numbers, the smaller one first"))
            }
            range => Ok(range.map(|[low, high]| (low, high))),
        }
    }

    fn fields(&self, request: FigureRequest, kind: &KindRow) -> Result<FigureRequest> {
        let (file, table) = (self.file, request.table);
        let columns = self.columns(table);
        let field = |key: &str, name: &str| self.field(key, name, &columns);
        let list = |key: &str, words: &Option<Words>| -> Result<Option<Vec<Field>>> {
            words.as_ref().map(|words| words.0.iter().map(|name| field(key, name)).collect()).transpose()
        };
        // The y of a heat map is its second axis; its values are in `value`.
        let map = kind.pairs;
        let shown = if map { file.value.clone().map(|name| Words(vec![name])) } else { file.y.clone() };
        let shown_key = if map { "value" } else { "y" };
        let names = match (shown, kind.shows) {
            (Some(words), _) if !words.0.is_empty() => words.0,
            (_, Some(column)) => vec![column.to_owned()],
            _ => {
                let expected = format!("a column of the table '{}', such as {}", table.name(), example(table));
                return Err(Error::plan(self.key(shown_key), "nothing", expected));
            }
        };
        if !map && file.value.is_some() {
            return Err(Error::plan(self.key("value"), "a column", "no 'value': only a heatmap has one"));
        }
        let number = |name: &String| match columns.iter().find(|column| column.name == *name) {
            Some(column) if !column.text => Ok(column.clone()),
            Some(_) => Err(Error::plan(self.key(shown_key), format!("'{name}'"), "a column of numbers")),
            None => {
                let numbers = columns.iter().filter(|column| !column.text).map(|column| column.name.as_str());
                Err(self.unknown_column((shown_key, table), name, numbers))
            }
        };
        let y: Vec<FigureColumn> = names.iter().map(number).collect::<Result<_>>()?;
        let named = matches!(kind.x, X::Names | X::Numbers);
        let x = match (&file.x, named) {
            (Some(name), true) => Some(field("x", name)?),
            (None, true) => {
                let expected = "an axis of the sweep, policy, cell, or a column";
                return Err(Error::plan(self.key("x"), "nothing", expected));
            }
            (Some(_), false) => {
                let expected = format!("no 'x': the x axis of '{}' is fixed", file.kind);
                return Err(Error::plan(self.key("x"), "a value", expected));
            }
            (None, false) => columns.iter().find(|column| column.name == "time_s").cloned().map(Field::Column),
        };
        let x = x.filter(|_| kind.x != X::None);
        let rows = match (&file.y, map) {
            (Some(Words(names)), true) if names.len() == 1 => Some(field("y", &names[0])?),
            (_, true) => return Err(Error::plan(self.key("y"), "nothing", "a second axis of the sweep, or a column")),
            _ => None,
        };
        let mut facet = list("facet", &file.facet)?;
        let mut series = list("series", &file.series)?;
        let used = |field: &Field, facet: &Option<Vec<Field>>| {
            x.as_ref() == Some(field) || rows.as_ref() == Some(field) || facet.iter().flatten().any(|one| one == field)
        };
        // Defaults: several columns have a panel each. Policies have a curve each, or in heat maps a panel each.
        let asked = |fields: &Option<Vec<Field>>, field: &Field| fields.iter().flatten().any(|one| one == field);
        if y.len() > 1 && !used(&Field::Metric, &facet) && !asked(&series, &Field::Metric) {
            facet.get_or_insert_default().push(Field::Metric);
        }
        let many = self.scope.policies.len() > 1;
        if many && map && !asked(&facet, &Field::Policy) && !used(&Field::Policy, &facet) {
            facet.get_or_insert_default().push(Field::Policy);
        }
        if series.is_none() && !map && many && !used(&Field::Policy, &facet) {
            series = Some(vec![Field::Policy]);
        }
        let stat = match &file.stat {
            None => Stat::Mean,
            Some(name) => Stat::parse(name).ok_or_else(|| self.unknown("stat", name, Stat::names()))?,
        };
        let filter =
            file.filter.iter().map(|(name, value)| self.filter(name, value, &columns)).collect::<Result<_>>()?;
        let (series, facet) = (series.unwrap_or_default(), facet.unwrap_or_default());
        let scale = self.scale(y.len())?;
        Ok(FigureRequest { x, y, rows, series, facet, filter, stat, scale, ..request })
    }

    /// Returns the field of a name: `policy`, `cell`, `seed`, `metric`, an axis (or the last words of its name), or a column of the table.
    fn field(&self, key: &str, name: &str, columns: &[FigureColumn]) -> Result<Field> {
        match name {
            "policy" => return Ok(Field::Policy),
            "cell" => return Ok(Field::Cell),
            "seed" => return Ok(Field::Seed),
            "metric" => return Ok(Field::Metric),
            _ => {}
        }
        let axes = &self.scope.axes;
        let plain = name.replace("].", "_").replace(['.', '['], "_").replace(']', "");
        // The last words of an axis are sufficient if no other axis ends with them.
        let ends = |at: usize| axes[at].0.ends_with(&format!("_{plain}"));
        let ending: Vec<usize> = (0..axes.len()).filter(|&at| ends(at)).collect();
        let measure = |at: usize| match self.scope.axis_unit(at) {
            "s" => Measure::Seconds,
            _ => Measure::Number,
        };
        let axis = |at: usize| Field::Axis(at, self.scope.axis_word(at).to_owned(), measure(at));
        if let Some(at) = axes.iter().position(|(axis, _)| *axis == plain) {
            return Ok(axis(at));
        }
        if let [at] = ending[..] {
            return Ok(axis(at));
        }
        if let Some(column) = columns.iter().find(|column| column.name == name) {
            return Ok(Field::Column(column.clone()));
        }
        let known = ["policy", "cell", "seed"].into_iter().chain(axes.iter().map(|(axis, _)| axis.as_str()));
        Err(self.unknown(key, name, known.chain(columns.iter().map(|column| column.name.as_str()))))
    }

    fn filter(&self, name: &str, value: &toml::Value, columns: &[FigureColumn]) -> Result<(Field, Vec<FilterValue>)> {
        let key = format!("where.{name}");
        let field = self.field(&key, name, columns)?;
        let items = match value {
            toml::Value::Array(items) => items.clone(),
            one => vec![one.clone()],
        };
        let wanted = |item: &toml::Value| match item {
            toml::Value::Integer(value) => Ok(FilterValue::Value(Datum::Number(*value as f64))),
            toml::Value::Float(value) => Ok(FilterValue::Value(Datum::Number(*value))),
            toml::Value::String(text) => Ok(match (text.strip_suffix('*'), &field) {
                (Some(start), _) => FilterValue::Begins(start.to_owned()),
                (None, Field::Axis(..)) => FilterValue::Value(Datum::of_axis(text)),
                (None, _) => FilterValue::Value(Datum::Text(text.clone())),
            }),
            other => Err(Error::plan(self.key(&key), other, "a number or a name, or a list of them")),
        };
        let wanted: Vec<FilterValue> = items.iter().map(wanted).collect::<Result<_>>()?;
        // The values of policies and axes are known before the run, so a filter must name existing values.
        let there: Option<Vec<Datum>> = match &field {
            Field::Policy => Some(self.scope.policies.iter().cloned().map(Datum::Text).collect()),
            Field::Axis(at, ..) => Some(self.scope.axes[*at].1.iter().map(|text| Datum::of_axis(text)).collect()),
            _ => None,
        };
        if let Some(there) = there
            && let Some(stranger) = wanted.iter().position(|one| !there.iter().any(|value| one.fits(value)))
        {
            let names: Vec<String> = there.iter().map(Datum::words).collect();
            let given = items[stranger].as_str().map_or_else(|| items[stranger].to_string(), str::to_owned);
            return Err(self.unknown(&key, &given, names.iter().map(String::as_str)));
        }
        Ok((field, wanted))
    }
}

/// Returns a typical column of a table, for messages.
fn example(table: Table) -> &'static str {
    match table {
        Table::Runs | Table::Users | Table::Bins => "completion_mean_s",
        Table::Jobs => "completion_s",
        Table::Fairness => "used_cpu",
        Table::Shares => "dominant_share",
        _ => "a name from the output of `plimsoll schema`",
    }
}

/// Returns the figures that a built-in name selects; `None` for other names.
pub(super) fn builtin(name: &str) -> Option<&'static [&'static str]> {
    match gallery::NAMES.iter().position(|known| *known == name) {
        Some(at) => Some(&gallery::NAMES[at..=at]),
        None => (name == "standard").then_some(&gallery::NAMES[..]),
    }
}
