//! Reads the rows that a figure shows, for all cells, policies and seeds, from the tables of a results folder.
//!
//! [`Whole`] opens a results folder with or without a sweep. `FigureRows` are the rows of one figure with their origins, and `Means`
//! reduces them: it averages the runs of each seed first, since they are one sample, and then takes the mean over seeds.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::Hash;
use std::path::{Path, PathBuf};

use plimsoll_base::error::{Error, Result};
use plimsoll_metrics::compare::LEVEL;
use plimsoll_metrics::{Interval, mean, mean_interval};
use plimsoll_results::folder::{StudyRecord, check_links, of_cell};
use plimsoll_results::manifest::Manifest;
use plimsoll_results::provenance::Provenance;
use plimsoll_results::read::{Part, Results};
use plimsoll_results::schema::Table;
use plimsoll_store::frame::Frame;

use super::check::FigureRequest;
use super::field::{Datum, Field, FigureColumn, ValueSource};
use super::kinds::X;
use super::scope::Scope;

/// All results of a study.
pub struct Whole {
    /// The results folder.
    pub folder: PathBuf,
    /// The plan.
    pub plan: String,
    /// The columns of the axes of the sweep.
    axes: Vec<String>,
    /// The cells: names, values of the axes as text, results. Without a sweep there is one cell without a name.
    pub cells: Vec<(String, Vec<String>, Results)>,
}

impl Whole {
    /// Opens a results folder, with or without a sweep. Errors: it is no results folder, or a table in it is damaged.
    pub fn open(folder: &Path) -> Result<Whole> {
        let (plan, axes, cells) = match StudyRecord::read(folder)? {
            None => {
                let results = Results::open(folder)?;
                (results.contents.plan.clone(), Vec::new(), vec![(String::new(), Vec::new(), results)])
            }
            Some(described) => {
                let open = |(name, values): (String, Vec<String>)| {
                    let place = of_cell(folder, &name);
                    check_links(folder, &place)?;
                    let results = Results::open(&place)?;
                    Ok((name, values, results))
                };
                (described.plan, described.columns, described.cells.into_iter().map(open).collect::<Result<_>>()?)
            }
        };
        Ok(Whole { folder: folder.to_owned(), plan, axes, cells })
    }

    /// Returns whether the study is a sweep.
    pub fn is_swept(&self) -> bool {
        self.cells.iter().any(|(name, ..)| !name.is_empty())
    }

    /// Returns the results of a study without a sweep; `None` for a sweep.
    pub fn alone(&self) -> Option<&Results> {
        self.cells.first().filter(|(name, ..)| name.is_empty()).map(|(.., results)| results)
    }

    /// Describes the missing runs of the plan, by cell.
    pub fn missing(&self) -> Vec<String> {
        let of = |name: &str| if name.is_empty() { String::new() } else { format!("{name}: ") };
        self.cells.iter().filter_map(|(name, _, one)| Some(of(name) + &one.missing()?)).collect()
    }

    /// Reads a whole table of the folder that does not belong to a run; `None` if it is missing. Errors: it differs from the manifest, or
    /// is not listed there.
    pub fn table(&self, name: &str) -> Result<Option<Frame>> {
        let (made, path) = (Manifest::read(&self.folder)?.unwrap_or_default(), self.folder.join(name));
        made.check(&self.folder, name)?;
        if path.exists() && !made.files.contains_key(name) {
            let problem = "is not as it was written; run the plan again to replace it";
            return Err(Error::trace(path, 0, "", problem));
        }
        Frame::open(&path)
    }

    /// Returns the provenance of every figure of the study. `plan` is the whole plan, including its requests for figures.
    pub fn provenance(&self, plan: &str) -> Provenance {
        let cells = || self.cells.iter().map(|(.., results)| results);
        Provenance::of_tables(plan, cells().map(|one| &one.contents), cells().map(|one| &one.metadata[..]))
    }

    /// Returns the scope of the study's figures. Every table counts as available; a missing table is reported when a figure reads it.
    pub fn scope(&self) -> Scope {
        let mut scope = Scope { tables: Table::all().collect(), ..Scope::default() };
        scope.axes = self.axes.iter().map(|axis| (axis.clone(), Vec::new())).collect();
        for (_, values, results) in &self.cells {
            for (axis, value) in scope.axes.iter_mut().zip(values) {
                if !axis.1.contains(value) {
                    axis.1.push(value.clone());
                }
            }
            for dim in &results.dims {
                if !scope.dims.contains(dim) {
                    scope.dims.push(dim.clone());
                }
            }
            scope.policies.clone_from(&results.contents.policies);
            scope.own.clone_from(&results.own);
        }
        scope
    }
}

/// A row of a figure.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct FigureRow {
    /// The panel.
    pub facet: String,
    /// The curve.
    pub series: Series,
    /// The x value, and the second field of pairs.
    pub at: Vec<Datum>,
    /// The y value.
    pub y: f64,
    /// The index of its run in [`FigureRows::origins`].
    pub run: usize,
    /// The number of jobs or tasks that it represents; 0 if it represents none.
    pub weight: u64,
}

/// The name of a curve, and the key that selects its style.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Series {
    pub label: String,
    pub key: String,
}

/// The origin of a run; runs with different seeds are independent.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Origin {
    /// The seed, or the number of the run if there is no random input.
    pub seed: u64,
    /// Its policy, then the values of its cell on the axes.
    pub settings: Vec<String>,
}

/// The rows of a figure, and the runs that they are from.
#[derive(Default)]
pub(super) struct FigureRows {
    pub rows: Vec<FigureRow>,
    /// The origin of each run.
    pub origins: Vec<Origin>,
    /// The names of the settings of each origin.
    pub settings: Vec<String>,
    /// The end of each run, in seconds.
    pub ends: Vec<f64>,
    /// For each run, the instants at which an absent row means a value of 0. Empty if absent rows have no such meaning.
    pub grids: Vec<Vec<f64>>,
    /// Whether the table exists.
    pub there: bool,
    /// The reference policy of comparisons.
    pub baseline: String,
}

impl FigureRequest {
    /// Reads the rows, cell by cell, policy by policy, seed by seed, in the order of the table.
    pub(super) fn rows(&self, whole: &Whole) -> Result<FigureRows> {
        let settings = std::iter::once("policy").chain(whole.axes.iter().map(String::as_str));
        let mut all =
            FigureRows { settings: settings.map(|name| name.replace('_', " ")).collect(), ..FigureRows::default() };
        for (name, values, results) in &whole.cells {
            all.baseline.clone_from(&results.contents.baseline);
            let mut columns: Vec<&str> = Vec::new();
            let fields = self.x.iter().chain(&self.rows).chain(&self.series).chain(&self.facet);
            let fields = fields.chain(self.filter.iter().map(|(field, _)| field));
            let asked = fields.filter_map(|field| if let Field::Column(column) = field { Some(column) } else { None });
            for need in asked.chain(&self.y).flat_map(FigureColumn::needs).chain(weight(self.table)) {
                if !columns.contains(&need) {
                    columns.push(need);
                }
            }
            let ends = results.table(Table::Runs, &["end_us"], None)?;
            for part in results.table(self.table, &columns, None)? {
                let end = ends.iter().find(|end| (end.policy, end.run) == (part.policy, part.run));
                let end =
                    end.map(|end| end.numbers("end_us")).transpose()?.and_then(|end| end.first().copied().flatten());
                let of = Of { request: self, cell: name, axes: values, results, part: &part, run: all.ends.len() };
                all.ends.push(end.unwrap_or(0.0) / 1e6);
                let policy = results.contents.policies[part.policy].clone();
                let seed = results.contents.seeds.get(part.run).copied().flatten().unwrap_or(part.run as u64);
                let settings = std::iter::once(policy).chain(values.iter().cloned()).collect();
                all.origins.push(Origin { seed, settings });
                // A user has no row of shares while it is not active, so the instants are those of the table `fairness`.
                if self.x_is(X::Time) && self.table == Table::Shares {
                    let grid = results.table(Table::Fairness, &["time_us"], Some(part.run))?;
                    let grid = grid.iter().find(|grid| grid.policy == part.policy);
                    let times = grid.map(|grid| grid.numbers("time_us")).transpose()?.unwrap_or_default();
                    let mut times: Vec<f64> = times.into_iter().flatten().map(|time| time / 1e6).collect();
                    times.dedup();
                    all.grids.push(times);
                }
                of.read(&mut all.rows)?;
                all.there = true;
            }
        }
        Ok(all)
    }
}

impl FigureRows {
    /// Groups the values of runs by seed. Runs of one seed used the same random numbers, so they are one sample, whose value is their mean.
    /// A seed that lacks some of the runs that other seeds have is omitted.
    pub fn by_seed<T>(&self, runs: impl IntoIterator<Item = (usize, T)>) -> Vec<Vec<T>> {
        let mut seeds: BTreeMap<u64, Vec<T>> = BTreeMap::new();
        for (run, value) in runs {
            seeds.entry(self.origins[run].seed).or_default().push(value);
        }
        let most = seeds.values().map(Vec::len).max().unwrap_or(0);
        seeds.into_values().filter(|runs| runs.len() == most).collect()
    }

    /// Computes the mean over seeds of one value per run, with its interval. `None` without values.
    pub fn mean(&self, runs: impl IntoIterator<Item = (usize, f64)>) -> Option<Interval> {
        let seeds: Vec<f64> = self.by_seed(runs).iter().map(|runs| mean(runs)).collect();
        mean_interval(&seeds, LEVEL)
    }

    /// Adds the settings that differ among these runs to `averaged`. A mean of the runs averages over these settings.
    pub fn add_averaged(&self, runs: &[usize], averaged: &mut BTreeSet<usize>) {
        let Some((first, others)) = runs.split_first() else { return };
        let differs = |at: &usize| {
            let value = |run: &usize| &self.origins[*run].settings[*at];
            others.iter().any(|run| value(run) != value(first))
        };
        averaged.extend((0..self.settings.len()).filter(differs));
    }

    /// Returns the names of the averaged settings, for captions.
    pub fn named(&self, averaged: &BTreeSet<usize>) -> Vec<String> {
        averaged.iter().map(|&at| self.settings[at].clone()).collect()
    }
}

/// Returns the column of a table with the number of items that a row represents.
fn weight(table: Table) -> Option<&'static str> {
    match table {
        Table::Bins => Some("jobs"),
        Table::Demands => Some("tasks"),
        _ => None,
    }
}

/// The rows of one run in a table, and the request that reads them.
struct Of<'a> {
    request: &'a FigureRequest,
    cell: &'a str,
    axes: &'a [String],
    results: &'a Results,
    part: &'a Part,
    run: usize,
}

/// The values of a field in the rows of a run.
enum RowValues {
    Same(Datum),
    Numbers(Vec<Option<f64>>),
    Texts(Vec<String>),
    /// The name of the shown column.
    Shown,
}

impl RowValues {
    fn at(&self, row: usize, shown: &str) -> Option<Datum> {
        match self {
            RowValues::Same(datum) => Some(datum.clone()),
            RowValues::Numbers(values) => values[row].map(Datum::Number),
            RowValues::Texts(values) => Some(Datum::Text(values[row].clone())),
            RowValues::Shown => Some(Datum::Text(shown.to_owned())),
        }
    }
}

impl Of<'_> {
    fn column(&self, column: &FigureColumn) -> Result<Vec<Option<f64>>> {
        let numbers = |name: &str| self.part.numbers(name);
        let each = |values: Vec<Option<f64>>, scale: f64| values.into_iter().map(|v| v.map(|v| v / scale)).collect();
        Ok(match &column.from {
            ValueSource::Itself => numbers(&column.name)?,
            ValueSource::Seconds(of) => each(numbers(of)?, 1e6),
            ValueSource::Between(from, to) => between(&numbers(from)?, &numbers(to)?, |span| Some(span / 1e6)),
            ValueSource::Ratio(from, to, over) => {
                let (spans, over) = (between(&numbers(from)?, &numbers(to)?, Some), numbers(over)?);
                let ratio = |(span, over): (Option<f64>, Option<f64>)| Some(span? / over.filter(|over| *over > 0.0)?);
                spans.into_iter().zip(over).map(ratio).collect()
            }
        })
    }

    fn values(&self, field: &Field) -> Result<RowValues> {
        Ok(match field {
            Field::Policy => RowValues::Same(Datum::Text(self.results.contents.policies[self.part.policy].clone())),
            Field::Cell => RowValues::Same(Datum::Text(self.cell.to_owned())),
            Field::Seed => {
                let seed = self.results.contents.seeds.get(self.part.run).copied().flatten();
                RowValues::Same(Datum::Number(seed.unwrap_or(self.part.run as u64) as f64))
            }
            Field::Metric => RowValues::Shown,
            Field::Axis(at, ..) => RowValues::Same(Datum::of_axis(&self.axes[*at])),
            Field::Column(column) if column.text => RowValues::Texts(self.part.names(&column.name)?),
            Field::Column(column) => RowValues::Numbers(self.column(column)?),
        })
    }

    fn read(&self, rows: &mut Vec<FigureRow>) -> Result<()> {
        let request = self.request;
        let all = |fields: &[Field]| fields.iter().map(|field| self.values(field)).collect::<Result<Vec<_>>>();
        let at: Vec<Field> = request.x.iter().chain(&request.rows).cloned().collect();
        let (at, series, facet) = (all(&at)?, all(&request.series)?, all(&request.facet)?);
        let filter: Vec<RowValues> =
            request.filter.iter().map(|(field, _)| self.values(field)).collect::<Result<Vec<_>>>()?;
        let weights = weight(request.table).map(|name| self.part.numbers(name)).transpose()?;
        let each = u64::from(matches!(request.table, Table::Jobs | Table::Tasks));
        for (column, scale) in request.y.iter().zip(&request.scale) {
            let shown = &column.name;
            for (nth, y) in self.column(column)?.into_iter().enumerate() {
                let passes = |(values, (_, wanted)): (&RowValues, &(Field, Vec<super::check::FilterValue>))| {
                    values.at(nth, shown).is_some_and(|value| wanted.iter().any(|one| one.fits(&value)))
                };
                if !filter.iter().zip(&request.filter).all(passes) {
                    continue;
                }
                let Some(y) = y.filter(|y| y.is_finite()) else { continue };
                let Some(at) = at.iter().map(|one| one.at(nth, shown)).collect::<Option<Vec<_>>>() else { continue };
                let label = |fields: &[Field], values: &[RowValues]| {
                    let words = fields.iter().zip(values);
                    let words = words.map(|(field, one)| match field {
                        Field::Metric => column.heading.clone(),
                        field => one.at(nth, shown).map(|v| field.label(&v)).unwrap_or_default(),
                    });
                    words.collect::<Vec<_>>()
                };
                let facet = label(&request.facet, &facet).join(", ");
                let series = named(&request.series, label(&request.series, &series));
                let weight = weights.as_ref().map_or(each, |weights| weights[nth].unwrap_or(0.0) as u64);
                rows.push(FigureRow { facet, series, at, y: y * scale, run: self.run, weight });
            }
        }
        Ok(())
    }
}

/// Returns the name of a curve. If the policy is one of its fields, the key begins with the policy, which selects the style.
pub(super) fn named(fields: &[Field], words: Vec<String>) -> Series {
    let label = words.join(", ");
    let Some(at) = fields.iter().position(|field| *field == Field::Policy) else {
        return Series { key: label.clone(), label };
    };
    let others = words.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, word)| word.as_str());
    let key = std::iter::once(words[at].as_str()).chain(others).collect::<Vec<_>>().join(":");
    Series { label, key }
}

fn between(from: &[Option<f64>], to: &[Option<f64>], scale: impl Fn(f64) -> Option<f64>) -> Vec<Option<f64>> {
    from.iter().zip(to).map(|(from, to)| scale((*to)? - (*from)?)).collect()
}

/// Names in the order of their first appearance.
pub(super) struct NameOrder<T> {
    /// The names in order.
    pub all: Vec<T>,
    places: HashMap<T, usize>,
}

impl<T: Clone + Eq + Hash> NameOrder<T> {
    pub fn new() -> NameOrder<T> {
        NameOrder { all: Vec::new(), places: HashMap::new() }
    }

    /// Returns the index of a name; a new one is appended.
    pub fn place(&mut self, name: &T) -> usize {
        if let Some(&at) = self.places.get(name) {
            return at;
        }
        self.places.insert(name.clone(), self.all.len());
        self.all.push(name.clone());
        self.all.len() - 1
    }
}

/// A canonical form of a value for comparisons.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum RowMark {
    Number(u64),
    Text(String),
}

impl RowMark {
    pub fn from_datum(datum: &Datum) -> RowMark {
        match datum {
            // Positive and negative zero are equal.
            Datum::Number(value) => RowMark::Number((value + 0.0).to_bits()),
            Datum::Text(text) => RowMark::Text(text.clone()),
        }
    }

    pub fn datum(&self) -> Datum {
        match self {
            RowMark::Number(bits) => Datum::Number(f64::from_bits(*bits)),
            RowMark::Text(text) => Datum::Text(text.clone()),
        }
    }
}

/// Means over seeds, by panel, curve and place.
pub(super) struct Means {
    /// The settings that no field of the figure distinguishes. The runs of one seed are averaged over them.
    pub averaged: Vec<String>,
    pub facets: Vec<String>,
    pub series: Vec<Series>,
    /// The places: x, and the second field of pairs, each in the order of first appearance.
    pub places: [Vec<Datum>; 2],
    cells: HashMap<[usize; 4], (Interval, u64)>,
    /// The least and the largest possible value.
    bounds: (f64, f64),
}

impl Means {
    /// Computes one value per run with the figure's statistic, then the mean of the runs of each seed, then the mean over seeds.
    pub fn new(request: &FigureRequest, all: &FigureRows) -> Means {
        let rows = &all.rows;
        let (mut facets, mut series) = (NameOrder::new(), NameOrder::new());
        let mut places = [NameOrder::new(), NameOrder::new()];
        let mut groups: HashMap<[usize; 4], (BTreeMap<usize, Vec<f64>>, u64)> = HashMap::new();
        for row in rows {
            let mut key = [facets.place(&row.facet), series.place(&row.series), 0, 0];
            for (nth, datum) in row.at.iter().enumerate().take(2) {
                key[2 + nth] = places[nth].place(&RowMark::from_datum(datum));
            }
            let group = groups.entry(key).or_default();
            group.0.entry(row.run).or_default().push(row.y);
            group.1 += row.weight;
        }
        let mut averaged = BTreeSet::new();
        for (runs, _) in groups.values() {
            all.add_averaged(&runs.keys().copied().collect::<Vec<_>>(), &mut averaged);
        }
        let averaged = all.named(&averaged);
        let of_group = |(key, (runs, weight)): ([usize; 4], (BTreeMap<usize, Vec<f64>>, u64))| {
            let values = runs.iter().map(|(run, values)| (*run, request.stat.value(values)));
            Some((key, (all.mean(values)?, weight)))
        };
        let places = places.map(|order| order.all.iter().map(RowMark::datum).collect());
        let bounds = request.bounds(rows.iter().map(|row| row.y));
        let cells = groups.into_iter().filter_map(of_group).collect();
        Means { averaged, facets: facets.all, series: series.all, places, cells, bounds }
    }

    /// Clips the end of an interval to the possible values.
    pub fn clip(&self, end: f64) -> f64 {
        end.clamp(self.bounds.0, self.bounds.1)
    }

    /// Returns the mean at a place, and the number of jobs or tasks behind it.
    pub fn at(&self, facet: usize, series: usize, x: usize, row: usize) -> Option<&(Interval, u64)> {
        self.cells.get(&[facet, series, x, row])
    }

    /// Returns the smallest and the largest number of seeds behind a mean.
    pub fn seeds(&self) -> (usize, usize) {
        let n = || self.cells.values().map(|(interval, _)| interval.n);
        (n().min().unwrap_or(0), n().max().unwrap_or(0))
    }

    /// Returns the places along x in order: numbers by size, names in order of appearance.
    pub fn sorted(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.places[0].len()).collect();
        if self.places[0].iter().all(|place| matches!(place, Datum::Number(_))) {
            let value = |at: &usize| if let Datum::Number(value) = self.places[0][*at] { value } else { 0.0 };
            order.sort_by(|a, b| value(a).total_cmp(&value(b)));
        }
        order
    }
}
