//! Reads tables of results for the tests, independently of the program's own reader: integers are stored as `i64` without range checks. A
//! request for a column with another type panics; only `numbers` also accepts integers.

use std::fs::File;
use std::io::Cursor;
use std::path::Path;
use std::sync::Arc;

use polars_arrow::array::{Array, PrimitiveArray, Utf8ViewArray};
use polars_arrow::datatypes::{ArrowDataType, ArrowSchemaRef, Field};
use polars_arrow::record_batch::RecordBatchT;
use polars_arrow::types::NativeType;
use polars_parquet::read::{BasicDecompressor, PageReader, column_iter_to_arrays, infer_schema, read_metadata};
use polars_parquet::write::{
    CompressionOptions, FileWriter, StatisticsOptions, Version, WriteOptions, get_dtype_encoding, row_group_iter,
};

/// The values of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    Whole(Vec<Option<i64>>),
    Real(Vec<Option<f64>>),
    Text(Vec<Option<String>>),
}

impl Values {
    fn from_type(dtype: &ArrowDataType) -> Option<Values> {
        match dtype {
            ArrowDataType::Int64 | ArrowDataType::UInt64 | ArrowDataType::UInt32 => Some(Values::Whole(Vec::new())),
            ArrowDataType::Float64 => Some(Values::Real(Vec::new())),
            ArrowDataType::Utf8View => Some(Values::Text(Vec::new())),
            _ => None,
        }
    }

    fn extend(&mut self, array: &dyn Array) {
        fn values<T: NativeType>(array: &dyn Array) -> impl Iterator<Item = Option<T>> {
            let array: &PrimitiveArray<T> = array.as_any().downcast_ref().expect("as the schema says");
            array.iter().map(Option::<&T>::copied)
        }
        match self {
            Values::Whole(all) => match array.dtype() {
                ArrowDataType::UInt32 => all.extend(values::<u32>(array).map(|value| value.map(i64::from))),
                ArrowDataType::UInt64 => all.extend(values::<u64>(array).map(|value| value.map(u64::cast_signed))),
                _ => all.extend(values::<i64>(array)),
            },
            Values::Real(all) => all.extend(values::<f64>(array)),
            Values::Text(all) => {
                let array: &Utf8ViewArray = array.as_any().downcast_ref().expect("as the schema says");
                all.extend(array.iter().map(|value| value.map(str::to_owned)));
            }
        }
    }

    fn len(&self) -> usize {
        match self {
            Values::Whole(values) => values.len(),
            Values::Real(values) => values.len(),
            Values::Text(values) => values.len(),
        }
    }

    /// Returns a value as text.
    pub fn shown(&self, row: usize) -> String {
        fn shown<T: std::fmt::Debug>(value: &Option<T>) -> String {
            value.as_ref().map_or("null".to_owned(), |value| format!("{value:?}"))
        }
        match self {
            Values::Whole(values) => shown(&values[row]),
            Values::Real(values) => shown(&values[row]),
            Values::Text(values) => shown(&values[row]),
        }
    }
}

/// A table: its columns by name, in order.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame(pub Vec<(String, Values)>);

impl Frame {
    /// Reads a table.
    pub fn read(path: &Path) -> Result<Frame, String> {
        read(path).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Reads a table; panics if it is missing or cannot be read.
    pub fn open(path: &Path) -> Frame {
        Frame::read(path).unwrap_or_else(|problem| panic!("{problem}"))
    }

    /// Returns the number of rows.
    pub fn height(&self) -> usize {
        self.0.first().map_or(0, |(_, values)| values.len())
    }

    /// Returns the names of the columns.
    pub fn columns(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }

    /// Returns a column, or `None` if the table has no column of this name.
    pub fn get(&self, name: &str) -> Option<&Values> {
        self.0.iter().find(|(column, _)| column == name).map(|(_, values)| values)
    }

    fn column(&self, name: &str) -> &Values {
        self.get(name).unwrap_or_else(|| panic!("no column '{name}'"))
    }

    /// Returns a column of integers. Panics: if it has another type.
    pub fn integers(&self, name: &str) -> &[Option<i64>] {
        let Values::Whole(values) = self.column(name) else { panic!("column '{name}' is not of integers") };
        values
    }

    /// Returns a column of floats. Panics: if it has another type.
    pub fn real(&self, name: &str) -> &[Option<f64>] {
        let Values::Real(values) = self.column(name) else { panic!("column '{name}' is not of floats") };
        values
    }

    /// Returns a column of integers or floats as floats. Panics: if it has another type.
    pub fn numbers(&self, name: &str) -> Vec<Option<f64>> {
        match self.column(name) {
            Values::Whole(values) => values.iter().map(|value| value.map(|value| value as f64)).collect(),
            Values::Real(values) => values.clone(),
            Values::Text(_) => panic!("column '{name}' is not of numbers"),
        }
    }

    /// Returns a column of text. Panics: if it has another type.
    pub fn texts(&self, name: &str) -> &[Option<String>] {
        let Values::Text(values) = self.column(name) else { panic!("column '{name}' is not of text") };
        values
    }

    /// Returns a column of text, with `absent` in place of nulls.
    pub fn names(&self, name: &str, absent: &str) -> Vec<String> {
        self.texts(name).iter().map(|value| value.clone().unwrap_or_else(|| absent.to_owned())).collect()
    }
}

fn read(path: &Path) -> Result<Frame, Box<dyn std::error::Error>> {
    let bytes = std::fs::read(path)?;
    let file = read_metadata(&mut Cursor::new(&bytes))?;
    let schema = infer_schema(&file)?;
    let empty = |field: &Field| {
        let values =
            Values::from_type(&field.dtype).ok_or_else(|| format!("{} is of type {:?}", field.name, field.dtype))?;
        Ok((field.name.to_string(), values))
    };
    let mut columns = schema.iter_values().map(empty).collect::<Result<Vec<_>, String>>()?;
    for group in &file.row_groups {
        for ((field, place), (_, values)) in schema.iter_values().zip(group.parquet_columns()).zip(&mut columns) {
            let range = place.byte_range();
            let chunk = bytes[range.start as usize..range.end as usize].to_vec().into();
            let pages = PageReader::new(Cursor::new(chunk), place, Vec::new(), usize::MAX);
            let types = vec![&place.descriptor().descriptor.primitive_type];
            let pages = vec![BasicDecompressor::new(pages, Vec::new())];
            for array in column_iter_to_arrays(pages, types, field.clone(), None)?.0 {
                values.extend(array.as_ref());
            }
        }
    }
    if columns.iter().any(|(_, values)| values.len() != file.num_rows) {
        return Err(format!("columns of other lengths than {} rows", file.num_rows).into());
    }
    Ok(Frame(columns))
}

/// Writes a table of columns that have the same length.
pub fn write(path: &Path, columns: Vec<(&str, Box<dyn Array>)>) {
    let field = |(name, array): &(&str, Box<dyn Array>)| Field::new((*name).into(), array.dtype().clone(), true);
    let schema: ArrowSchemaRef = Arc::new(columns.iter().map(field).collect());
    let file = File::create(path).expect("a temporary file");
    let options = WriteOptions {
        statistics: StatisticsOptions::default(),
        version: Version::V1,
        compression: CompressionOptions::Uncompressed,
        data_page_size: None,
    };
    let mut writer = FileWriter::try_new(file, (*schema).clone(), options).expect("types of Parquet");
    let encodings = schema.iter_values().map(|field| get_dtype_encoding(&field.dtype)).collect();
    let fields = writer.parquet_schema().fields().to_vec();
    let rows = columns[0].1.len();
    let group = RecordBatchT::new(rows, schema, columns.into_iter().map(|(_, array)| array).collect());
    writer.write(rows as u64, row_group_iter(group, encodings, fields, options)).expect("writable");
    writer.end(None).expect("writable");
}
