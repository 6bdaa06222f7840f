//! Exchanges tables with other programs in memory as Arrow arrays.
//!
//! Export reads the content of table files in chunks. Import writes arrays to a Parquet file, so that imported tables are read and checked
//! like any other file.

use std::path::{Path, PathBuf};

use polars_arrow::array::{Array, DictionaryArray, StructArray};
use polars_arrow::compute::concatenate::concatenate;
use polars_arrow::datatypes::{ArrowDataType, Field as ArrowField};
use polars_arrow::match_integer_type;
use polars_error::{PolarsError, PolarsResult};

use crate::frame::open;
use crate::parquet::{Parquet, StoredColumn, unreadable};
use crate::table::{Field, TableWriter};
use crate::trace::FRAME;
use plimsoll_base::column::{Cell, Kind};
use plimsoll_base::error::{Error, Result};
use plimsoll_sim::workload::{Columns, NameList};

/// Number of rows of a chunk.
const CHUNK: usize = 1 << 16;

/// The columns of a trace with whole numbers, which other programs store as floats if a value is missing.
const WHOLE: [&str; 2] = ["tasks", "priority"];

/// The rows of the files of one table, concatenated, or the first of these rows.
#[derive(Clone, Debug)]
pub struct Files {
    paths: Vec<PathBuf>,
    fields: Vec<ArrowField>,
    rows: usize,
}

impl Files {
    /// Opens the files that exist. Errors: [`Error::Trace`] for a damaged file, or one with other columns than the first.
    pub fn open(paths: Vec<PathBuf>) -> Result<Files> {
        let mut files = Files { paths: Vec::new(), fields: Vec::new(), rows: 0 };
        for path in paths {
            let Some(file) = all(&path)? else { continue };
            let fields = file.fields();
            if files.paths.is_empty() {
                files.fields = fields;
            } else if files.fields != fields {
                let problem = format!("its columns are not those of {}", files.paths[0].display());
                return Err(Error::trace(path, 0, "", problem));
            }
            files.rows += file.rows();
            files.paths.push(path);
        }
        Ok(files)
    }

    /// Returns the first rows, at most `most`.
    pub fn head(&self, most: usize) -> Files {
        Files { rows: self.rows.min(most), ..self.clone() }
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the columns: the name, and Arrow's name of the type.
    pub fn columns(&self) -> impl Iterator<Item = (&str, String)> {
        self.fields.iter().map(|field| (field.name.as_str(), format!("{:?}", field.dtype)))
    }

    /// Returns the type of a row.
    pub fn field(&self) -> ArrowField {
        ArrowField::new("".into(), ArrowDataType::Struct(self.fields.clone()), false)
    }

    /// Returns the first rows, at most `most`, with each value as text; a null is empty. Errors: as [`Files::chunks`].
    pub fn first(&self, most: usize) -> Result<Vec<Vec<String>>> {
        let most = most.min(self.rows);
        let mut found: Vec<Vec<String>> = Vec::new();
        for path in &self.paths {
            if found.len() == most {
                break;
            }
            let mut file = all(path)?.ok_or_else(|| gone(path))?;
            let rows = file.rows().min(most - found.len());
            let columns = file.read(0, rows)?;
            // The text of a null is empty.
            let texts =
                columns.iter().map(|column| column.names().map_err(|problem| Error::trace(path, 0, "", problem)));
            let texts = texts.collect::<Result<Vec<NameList>>>()?;
            found.extend((0..rows).map(|row| texts.iter().map(|column| column.get(row).to_owned()).collect()));
        }
        Ok(found)
    }

    /// Returns the rows, one chunk at a time. Errors: a file is damaged or missing.
    pub fn chunks(&self) -> impl Iterator<Item = PolarsResult<Box<dyn Array>>> + use<> {
        let (files, mut left, mut next, mut current) = (self.clone(), self.rows, 0, None);
        std::iter::from_fn(move || {
            loop {
                if left == 0 {
                    return None;
                }
                if current.is_none() {
                    let path = files.paths.get(next)?;
                    next += 1;
                    match all(path) {
                        Ok(Some(file)) => current = Some((file, 0)),
                        Ok(None) => return Some(Err(failed(gone(path)))),
                        Err(error) => return Some(Err(failed(error))),
                    }
                }
                let Some((file, from)) = &mut current else { continue };
                let rows = file.rows().saturating_sub(*from).min(CHUNK).min(left);
                if rows == 0 {
                    current = None;
                    continue;
                }
                let columns = file.read(*from, rows).map_err(failed);
                (*from, left) = (*from + rows, left - rows);
                return Some(columns.and_then(|columns| together(columns, rows, &files.fields)));
            }
        })
    }
}

fn gone(path: &Path) -> Error {
    Error::trace(path, 0, "", "this table is no longer there")
}

fn failed(error: Error) -> PolarsError {
    PolarsError::ComputeError(error.to_string().into())
}

/// Opens a file with all of its columns selected; `None` if it is missing.
fn all(path: &Path) -> Result<Option<Parquet>> {
    let Some(mut file) = open(path)? else { return Ok(None) };
    let names: Vec<String> = file.columns().iter().map(|(name, _)| name.clone()).collect();
    file.select(&names.iter().map(String::as_str).collect::<Vec<_>>())?;
    Ok(Some(file))
}

/// Combines columns into one array of rows.
fn together(columns: Vec<StoredColumn>, rows: usize, fields: &[ArrowField]) -> PolarsResult<Box<dyn Array>> {
    let whole = |column: StoredColumn| match column.into_arrays() {
        mut arrays if arrays.len() == 1 => Ok(arrays.remove(0)),
        arrays => concatenate(&arrays.iter().map(|array| &**array).collect::<Vec<_>>()),
    };
    let arrays = columns.into_iter().map(whole).collect::<PolarsResult<Vec<_>>>()?;
    let dtype = ArrowDataType::Struct(fields.to_vec());
    StructArray::try_new(dtype, rows, arrays, None).map(|rows| Box::new(rows) as Box<dyn Array>)
}

/// The storage type of a column of a frame.
enum Stored {
    Int,
    Float,
    /// Whole numbers that are given as floats.
    Whole,
    Text,
}

/// Writes the rows of a frame, given as arrays of the type of `field`, to a Parquet file. Messages call the frame `name`. Columns of types
/// that cannot be read are dropped, except decimals and columns with the name of a trace column. Returns the digest of the bytes.
///
/// Errors: [`Error::Trace`] for these exceptions and for invalid rows, and [`Error::Output`].
pub fn import(
    name: &str,
    path: &Path,
    field: &ArrowField,
    chunks: &mut dyn Iterator<Item = PolarsResult<Box<dyn Array>>>,
) -> Result<String> {
    let wrong = |column: &str, problem: String| Error::trace(name, 0, column, problem);
    let ArrowDataType::Struct(fields) = &field.dtype else {
        return Err(wrong("", format!("the values are of type {:?}, not rows; expected a table", field.dtype)));
    };
    let mut kept: Vec<(usize, Stored)> = Vec::new();
    for (at, field) in fields.iter().enumerate() {
        // Categories are treated as text.
        let dtype = match &field.dtype {
            ArrowDataType::Dictionary(_, values, _) => values,
            other => other,
        };
        if Columns::is_index(&field.name) {
            continue;
        }
        match unreadable(dtype) {
            None if WHOLE.contains(&field.name.as_str()) && matches!(stored(&field.dtype), Stored::Float) => {
                kept.push((at, Stored::Whole));
            }
            None => kept.push((at, stored(dtype))),
            Some(kind) if Columns::knows(&field.name, &[]) || kind.starts_with("decimal") => {
                let problem = format!("is of type {kind}; expected integers, floats, text or truth values");
                return Err(wrong(&field.name, problem));
            }
            Some(_) => {}
        }
    }
    let kind = |stored: &Stored| match stored {
        Stored::Int | Stored::Whole => Kind::Int,
        Stored::Float => Kind::Float,
        Stored::Text => Kind::Text,
    };
    // The file is read once, so a dictionary pays only for text that repeats.
    let column = |(at, stored): &(usize, Stored)| {
        let name = fields[*at].name.as_str();
        Field { distinct: name == "job" || !matches!(stored, Stored::Text), ..Field::new(name, kind(stored)) }
    };
    let table = kept.iter().map(column).collect();
    let mut writer = TableWriter::create(path, &[], table, &[(FRAME.to_owned(), name.to_owned())])?;
    let mut rows = 0;
    for chunk in chunks {
        let chunk = chunk.map_err(|error| wrong("", format!("its rows cannot be read: {error}")))?;
        let Some(chunk) = chunk.as_any().downcast_ref::<StructArray>() else { continue };
        let values = |(at, stored): &(usize, Stored)| {
            let (field, array) = (&fields[*at], &*chunk.values()[*at]);
            Unpacked::from_chunk(field, array, stored, rows).map_err(|problem| wrong(&field.name, problem))
        };
        let values = kept.iter().map(values).collect::<Result<Vec<Unpacked>>>()?;
        for row in 0..chunk.len() {
            writer.push(values.iter().map(|column| column.cell(row)))?;
        }
        rows += chunk.len();
    }
    writer.finish().map(|written| written.digest)
}

fn stored(dtype: &ArrowDataType) -> Stored {
    use ArrowDataType as D;
    match dtype {
        D::Int8 | D::Int16 | D::Int32 | D::Int64 | D::UInt8 | D::UInt16 | D::UInt32 | D::UInt64 => Stored::Int,
        D::Float32 | D::Float64 => Stored::Float,
        _ => Stored::Text,
    }
}

/// The values of a chunk of a column; categories are represented by their keys.
struct Unpacked {
    values: Values,
    keys: Option<Vec<Option<usize>>>,
}

impl Unpacked {
    /// Unpacks the values of a chunk that follows `rows` rows.
    fn from_chunk(
        field: &ArrowField,
        array: &dyn Array,
        stored: &Stored,
        rows: usize,
    ) -> std::result::Result<Unpacked, String> {
        let column = |dtype: &ArrowDataType, array: Box<dyn Array>| {
            StoredColumn::new(ArrowField::new(field.name.clone(), dtype.clone(), true), array)
        };
        let ArrowDataType::Dictionary(kind, of, _) = &field.dtype else {
            return Ok(Unpacked {
                values: Values::from_column(&column(&field.dtype, array.to_boxed()), stored, rows)?,
                keys: None,
            });
        };
        let parts = match_integer_type!(kind, |$K| array
            .as_any()
            .downcast_ref::<DictionaryArray<$K>>()
            .map(|categories| (categories.keys_iter().collect(), categories.values().clone())));
        let (keys, categories) = parts.ok_or("is not of the type that it says")?;
        Ok(Unpacked { values: Values::from_column(&column(of, categories), stored, rows)?, keys: Some(keys) })
    }

    fn cell(&self, row: usize) -> Cell<'_> {
        match &self.keys {
            None => self.values.cell(row),
            Some(keys) => keys[row].map_or(Cell::Null, |key| self.values.cell(key)),
        }
    }
}

/// The values of a chunk of a column.
enum Values {
    Int(Vec<Option<i64>>),
    Float(Vec<Option<f64>>),
    Text(NameList, Vec<bool>),
}

impl Values {
    /// Converts the values of a column that follow `rows` rows. Errors: a value of another kind.
    fn from_column(column: &StoredColumn, stored: &Stored, rows: usize) -> std::result::Result<Values, String> {
        Ok(match stored {
            Stored::Int => {
                let integers = column.integers()?.unwrap_or_default();
                match integers.iter().zip(column.nulls()).any(|(value, null)| value.is_none() && !null) {
                    true => return Err("has a value of 2^63 or more".to_owned()),
                    false => Values::Int(integers),
                }
            }
            Stored::Float => Values::Float(column.numbers()?),
            Stored::Whole => {
                // Floats represent all integers up to this bound.
                let whole = |value: f64| value.fract() == 0.0 && value.abs() <= (1u64 << 53) as f64;
                let integer = |(at, value): (usize, Option<f64>)| match value.filter(|value| !value.is_nan()) {
                    Some(value) if !whole(value) => {
                        Err(format!("row {}: '{value}' is not a whole number", rows + at + 1))
                    }
                    value => Ok(value.map(|value| value as i64)),
                };
                Values::Int(
                    column.numbers()?.into_iter().enumerate().map(integer).collect::<std::result::Result<_, _>>()?,
                )
            }
            Stored::Text => Values::Text(column.names()?, column.nulls()),
        })
    }

    fn cell(&self, row: usize) -> Cell<'_> {
        match self {
            Values::Int(values) => values[row].map_or(Cell::Null, Cell::Int),
            Values::Float(values) => values[row].map_or(Cell::Null, Cell::Float),
            Values::Text(_, nulls) if nulls[row] => Cell::Null,
            Values::Text(names, _) => Cell::Text(names.get(row)),
        }
    }
}
