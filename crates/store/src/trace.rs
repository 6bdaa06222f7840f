//! Reads and writes the canonical trace as Parquet: the columns of the CSV form, read one slice at a time.
//!
//! Numbers are read as numbers, with the same result as parsing their text. A double is converted to an integer amount only if nothing is
//! rounded. An `Assembler` builds task sets from the rows, as for the CSV form.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};

use super::parquet::{Bytes, FileColumn, Parquet, StoredColumn};
use super::table::{Field, TableWriter};
use plimsoll_base::column::{Cell, Kind};
use plimsoll_base::error::{Error, Result};
use plimsoll_base::units::{DECIMAL_MAX, Dim};
use plimsoll_sim::workload::write::{Item, ItemKind, Layout};
use plimsoll_sim::workload::{
    Assembler, Columns, Input, JobName, NameList, Names, RowParser, Source, TaskSet, Texts, TraceField, guess_command,
};

/// The key of the metadata with the name of a frame: messages have it in place of the path of the frame's file.
pub(crate) const FRAME: &str = "plimsoll.frame";

/// Number of rows that are read at a time.
const SLICE: usize = 1 << 16;

/// A canonical Parquet trace as a [`Source`]; it keeps one slice in memory, and the row group of the slice.
pub struct ParquetTrace {
    path: PathBuf,
    file: Parquet,
    columns: Columns,
    rows: Assembler,
    slice: Vec<Cells>,
    at: usize,
    read: usize,
    total: usize,
    ahead: Option<(TaskSet, JobName)>,
    taken: JobName,
    next_row: u64,
}

impl ParquetTrace {
    /// Opens a trace that may have these `resources` in addition to the usual ones, and checks its columns. An unknown column that cannot
    /// contain amounts is not read; neither is the index of a pandas frame.
    ///
    /// Errors: [`Error::Trace`], also for a truncated file.
    pub fn new(input: &Input, resources: &[String]) -> Result<ParquetTrace> {
        let path = input.path().to_owned();
        let bytes = match input {
            Input::File(file) => Bytes::File(file.clone()),
            Input::Bytes(_, bytes) => Bytes::Memory(bytes.clone()),
        };
        let mut file = Parquet::open(&path, bytes, damaged)?;
        let frame = file.pairs().iter().find(|(key, _)| key == FRAME).map(|(_, name)| PathBuf::from(name));
        let of_traces = |(name, unreadable): &&FileColumn| {
            let amount = unreadable.as_ref().is_none_or(|kind| kind.starts_with("decimal"));
            !Columns::is_index(name) && (amount || Columns::knows(name, resources))
        };
        let columns = file.columns().iter().filter(of_traces);
        let unreadable = columns.clone().find_map(|(name, unreadable)| Some((name, unreadable.as_ref()?)));
        let columns = Columns::find(&path, columns.map(|(name, _)| name.as_str()), resources);
        let columns = columns.map_err(|error| match &frame {
            Some(name) => of_frame(error, name),
            None => error,
        })?;
        let path = frame.unwrap_or(path);
        if let Some((name, kind)) = unreadable {
            let problem = format!("is of type {kind}; expected integers, floats, text or truth values");
            return Err(Error::trace(&path, 0, name, problem));
        }
        file.select(&columns.names.iter().map(String::as_str).collect::<Vec<_>>())?;
        let total = file.rows();
        let mut trace = ParquetTrace {
            path,
            file,
            columns,
            rows: Assembler::default(),
            slice: Vec::new(),
            at: 0,
            read: 0,
            total,
            ahead: None,
            taken: JobName::Text("".into()),
            next_row: 0,
        };
        trace.advance()?;
        if trace.ahead.is_none() {
            return Err(Error::trace(&trace.path, 0, "", "the trace has columns but no rows"));
        }
        Ok(trace)
    }

    fn refill(&mut self) -> Result<()> {
        let columns = self.file.read(self.read, SLICE)?.into_iter();
        let cells = columns.map(|column| Cells::from_column(column).map_err(|problem| damaged(&self.path, &problem)));
        self.slice = cells.collect::<Result<_>>()?;
        (self.read, self.at) = (self.read + SLICE, 0);
        Ok(())
    }

    fn advance(&mut self) -> Result<()> {
        if self.next_row as usize >= self.total {
            self.ahead = None;
            return Ok(());
        }
        if self.next_row as usize >= self.read {
            self.refill()?;
        }
        let fields = self.slice.iter().map(|cells| One(cells, self.at));
        let (set, name) = self.ahead.get_or_insert_with(|| (TaskSet::default(), JobName::Text("".into())));
        let parsed = RowParser { columns: &self.columns, rows: &mut self.rows }.parse(self.next_row, fields, set);
        *name = parsed.map_err(|(column, problem)| {
            let problem = format!("row {}: {problem}", self.next_row + 1);
            Error::trace(&self.path, 0, &self.columns.names[column], problem)
        })?;
        self.at += 1;
        self.next_row += 1;
        Ok(())
    }
}

/// Some rows of a column.
struct Cells {
    column: StoredColumn,
    numbers: Numbers,
    /// The values as text, computed on first use, where the number is not sufficient.
    text: OnceCell<std::result::Result<NameList, String>>,
}

/// The values as numbers, by type.
enum Numbers {
    Int(Vec<Option<i64>>),
    Float(Vec<Option<f64>>),
    None,
}

impl Cells {
    /// Converts a column. Errors: the values cannot be decoded.
    fn from_column(column: StoredColumn) -> std::result::Result<Cells, String> {
        let integers = column.integers()?.map(Numbers::Int);
        let numbers = integers.or(column.doubles()?.map(Numbers::Float)).unwrap_or(Numbers::None);
        let cells = Cells { column, numbers, text: OnceCell::new() };
        match cells.numbers {
            Numbers::None => cells.text().map(|_| ()).map(|()| cells),
            _ => Ok(cells),
        }
    }

    fn text(&self) -> std::result::Result<&NameList, String> {
        self.text.get_or_init(|| self.column.names()).as_ref().map_err(Clone::clone)
    }
}

/// The value of one row.
#[derive(Clone, Copy)]
struct One<'f>(&'f Cells, usize);

impl<'f> TraceField<'f> for One<'f> {
    fn text(self) -> std::result::Result<&'f [u8], String> {
        self.0.text().map(|text| text.get(self.1).as_bytes())
    }

    fn is_empty(self) -> std::result::Result<bool, String> {
        match &self.0.numbers {
            Numbers::Float(values) if values[self.1].is_some() => Ok(false),
            Numbers::Int(values) if values[self.1].is_some() => Ok(false),
            _ => Ok(self.text()?.is_empty()),
        }
    }

    fn integer(self) -> Option<u64> {
        if let Numbers::Int(values) = &self.0.numbers { u64::try_from(values[self.1]?).ok() } else { None }
    }

    fn times(self, scale: u64) -> Option<u64> {
        match &self.0.numbers {
            Numbers::Int(_) => self.integer()?.checked_mul(scale).filter(|product| *product <= DECIMAL_MAX),
            Numbers::Float(values) => times(values[self.1]?, scale),
            Numbers::None => None,
        }
    }
}

/// Returns a double times `scale`, if its shortest decimal is a multiple of `1 / scale`, so that nothing is rounded.
///
/// No two decimals of 15 digits are the same double, and a double is printed with the fewest digits that parse to it. So if `value` is the
/// nearest double to a decimal of 15 digits, it is printed as that decimal.
fn times(value: f64, scale: u64) -> Option<u64> {
    let decimals = if scale.is_power_of_two() { scale.ilog2() } else { scale.ilog10() };
    let parts = (value * scale as f64).round();
    let known = scale.is_power_of_two() || scale == 10u64.pow(decimals);
    let short = (0.0..1e15).contains(&parts) && (!scale.is_power_of_two() || value < 10f64.powi(15 - decimals as i32));
    (known && short && parts / scale as f64 == value).then_some(parts as u64)
}

impl Source for ParquetTrace {
    fn dims(&self) -> &[Dim] {
        &self.columns.dims
    }

    fn peek(&mut self) -> Result<Option<&TaskSet>> {
        Ok(self.ahead.as_ref().map(|(set, _)| set))
    }

    fn next_set(&mut self) -> Result<Option<TaskSet>> {
        let Some((set, name)) = &mut self.ahead else { return Ok(None) };
        let taken = std::mem::take(set);
        std::mem::swap(&mut self.taken, name);
        self.advance()?;
        Ok(Some(taken))
    }

    fn job_name(&self) -> JobName {
        self.taken.clone()
    }

    fn has_preceding(&self) -> bool {
        self.columns.kinds.contains(&plimsoll_sim::workload::TraceColumn::AfterJob)
    }

    fn users(&self) -> &Names {
        &self.rows.users
    }

    fn texts(&self) -> Texts<'_> {
        self.rows.texts()
    }

    fn locate(&self, row: u64) -> String {
        format!("{}, row {}", self.path.display(), row + 1)
    }
}

/// Returns an error about the columns of a frame: it has the frame's name, no line, and no advice about files.
fn of_frame(error: Error, name: &Path) -> Error {
    let Error::Trace { path, column, problem, .. } = error else { return error };
    let advice = format!("; {}", guess_command(&path));
    Error::trace(name, 0, &column, problem.replace(&advice, ""))
}

fn damaged(path: &Path, problem: &str) -> Error {
    Error::trace(path, 0, "", format!("not a readable Parquet file: {problem}"))
}

/// A double represents every digit of an amount below this bound.
const EXACT: u64 = 1_000_000_000_000_000;

/// Writes all rows of a source as a canonical Parquet trace; returns their number. `layout` is that of the same source.
///
/// Errors: those of the source, [`Error::Mismatch`] for values that a trace cannot represent, [`Error::Output`].
pub fn write(path: &Path, source: &mut dyn Source, layout: &Layout, metadata: &[(String, String)]) -> Result<u64> {
    let fields = layout.columns().into_iter().map(|(name, kind)| {
        let kind = match kind {
            ItemKind::Text => Kind::Text,
            ItemKind::Whole => Kind::Int,
            ItemKind::Amount(_) => Kind::Float,
        };
        Field { distinct: name == "job" || name.ends_with("_us"), ..Field::new(name, kind) }
    });
    let mut table = TableWriter::create(path, &[], fields.collect(), metadata)?;
    let mut rows = 0;
    while let Some(set) = source.next_set()? {
        let row = layout.row(&set, source)?;
        let cells = row.iter().map(cell).collect::<Option<Vec<Cell>>>().ok_or_else(|| {
            let problem = "a demand of more than 15 digits would lose some in Parquet; write a .csv";
            Error::Mismatch { problem: format!("{}: {problem}", source.locate(set.row)) }
        })?;
        table.push(cells)?;
        rows += 1;
    }
    table.finish()?;
    Ok(rows)
}

/// Converts a field to a cell; `None` if a double would not represent the amount. The nearest double to a decimal of 15 digits parses to
/// that decimal.
fn cell<'a>(item: &'a Item<'a>) -> Option<Cell<'a>> {
    Some(match item {
        Item::Text(text) => text.as_deref().into(),
        Item::Whole(value) => Cell::Int(i64::try_from(*value).ok()?),
        Item::Time(None) => Cell::Null,
        Item::Time(Some(time)) => Cell::Int(i64::try_from(*time).ok()?),
        Item::Amount(base, scale) => Cell::Float(Some(*base).filter(|base| *base < EXACT)? as f64 / *scale as f64),
    })
}

#[cfg(test)]
mod tests;
