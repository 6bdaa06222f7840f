//! Parquet tables: written column by column in row groups, under a temporary name until they are whole.

use std::fmt::Display;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use polars_arrow::array::{Array, MutableArray, MutablePlString, MutablePrimitiveArray, PrimitiveArray};
use polars_arrow::datatypes::{ArrowDataType, ArrowSchema, Field as ArrowField};
use polars_arrow::record_batch::RecordBatchT;
use polars_parquet::write::{
    CompressionOptions, FileWriter, KeyValue, StatisticsOptions, Version, WriteOptions, ZstdLevel, get_dtype_encoding,
    row_group_iter, schema_to_metadata_key,
};
use tempfile::NamedTempFile;

use super::file::{Digest, Digesting, Pending, Written, begin, complete};
use plimsoll_base::column::{Cell, Kind};
use plimsoll_base::error::{Error, Result};

fn stored(kind: Kind) -> ArrowDataType {
    match kind {
        Kind::Int => ArrowDataType::Int64,
        Kind::Float => ArrowDataType::Float64,
        Kind::Text => ArrowDataType::Utf8View,
    }
}

/// A column's name and type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name, with the unit as its suffix.
    pub name: String,
    /// Its type.
    pub kind: Kind,
}

/// A value that is the same in every row of a file: an axis of the experiment.
#[derive(Clone, Debug, PartialEq)]
pub enum Constant {
    /// A 64-bit integer.
    Int(i64),
    /// An integer that is absent.
    NoInt,
    /// A double.
    Float(f64),
    /// A string.
    Text(String),
}

impl Constant {
    /// As a cell of a row.
    pub fn cell(&self) -> Cell<'_> {
        match self {
            Constant::Int(value) => Cell::Int(*value),
            Constant::Float(value) => (*value).into(),
            Constant::NoInt => Cell::Null,
            Constant::Text(text) => Cell::Text(text),
        }
    }

    /// The type of its column.
    pub fn kind(&self) -> Kind {
        match self {
            Constant::Int(_) | Constant::NoInt => Kind::Int,
            Constant::Float(_) => Kind::Float,
            Constant::Text(_) => Kind::Text,
        }
    }

    /// As a column.
    fn repeated(&self, rows: usize) -> Box<dyn Array> {
        match self {
            Constant::Int(value) => PrimitiveArray::from_vec(vec![*value; rows]).to_boxed(),
            Constant::Float(value) => PrimitiveArray::from_vec(vec![*value; rows]).to_boxed(),
            Constant::NoInt => PrimitiveArray::<i64>::new_null(ArrowDataType::Int64, rows).to_boxed(),
            Constant::Text(text) => {
                let mut column = MutablePlString::with_capacity(rows);
                column.extend_constant(rows, Some(text));
                column.as_box()
            }
        }
    }
}

enum Buffer {
    Int(MutablePrimitiveArray<i64>),
    Float(MutablePrimitiveArray<f64>),
    Text(MutablePlString),
}

impl Buffer {
    fn new(kind: Kind, capacity: usize) -> Buffer {
        match kind {
            Kind::Int => Buffer::Int(MutablePrimitiveArray::with_capacity(capacity)),
            Kind::Float => Buffer::Float(MutablePrimitiveArray::with_capacity(capacity)),
            Kind::Text => Buffer::Text(MutablePlString::with_capacity(capacity)),
        }
    }

    /// Adds a value. Whether it is of the column's type.
    fn push(&mut self, cell: Cell) -> bool {
        match (self, cell) {
            (Buffer::Int(column), Cell::Int(value)) => column.push(Some(value)),
            (Buffer::Int(column), Cell::Null) => column.push(None),
            (Buffer::Float(column), Cell::Float(value)) => column.push(Some(value)),
            (Buffer::Float(column), Cell::Int(value)) => column.push(Some(value as f64)),
            (Buffer::Float(column), Cell::Large(value)) => column.push(Some(value as f64)),
            (Buffer::Float(column), Cell::Null) => column.push(None),
            (Buffer::Text(column), Cell::Text(value)) => column.push_value(value),
            (Buffer::Text(column), Cell::Null) => column.push_null(),
            _ => return false,
        }
        true
    }

    fn finish(self) -> Box<dyn Array> {
        match self {
            Buffer::Int(mut column) => column.as_box(),
            Buffer::Float(mut column) => column.as_box(),
            Buffer::Text(mut column) => column.as_box(),
        }
    }
}

/// How tables are written.
pub(crate) fn options(compression: CompressionOptions) -> WriteOptions {
    WriteOptions { statistics: StatisticsOptions::default(), version: Version::V1, compression, data_page_size: None }
}

/// Writes columns of so many rows as a row group.
pub(crate) fn write_group<W: Write>(
    writer: &mut FileWriter<W>,
    rows: usize,
    columns: Vec<Box<dyn Array>>,
) -> std::result::Result<(), impl Display + use<W>> {
    let schema = Arc::new(writer.schema().clone());
    let encodings = schema.iter_values().map(|field| get_dtype_encoding(&field.dtype)).collect();
    let stored = writer.parquet_schema().fields().to_vec();
    let group = RecordBatchT::try_new(rows, schema, columns)?;
    writer.write(rows as u64, row_group_iter(group, encodings, stored, writer.options()))
}

/// Rows a row group holds.
const GROUP: usize = 1 << 17;

/// Writes one table to one file.
pub struct TableWriter {
    path: PathBuf,
    /// Buffered: a footer is written byte by byte, and flushed with the last of them.
    writer: FileWriter<BufWriter<Digesting>>,
    digest: Digest,
    temporary: NamedTempFile,
    pairs: Vec<KeyValue>,
    constants: Vec<(String, Constant)>,
    fields: Vec<Field>,
    buffers: Vec<Buffer>,
    rows: usize,
}

impl TableWriter {
    /// Starts a table that will stand at `path` once [`TableWriter::finish`] has run. `constants` come first.
    pub fn create(
        path: &Path,
        constants: &[(String, Constant)],
        fields: Vec<Field>,
        metadata: &[(String, String)],
    ) -> Result<TableWriter> {
        let fail = |error: &dyn Display| Error::output(path, error);
        let temporary = begin(path)?;
        let columns = constants.iter().map(|(name, constant)| (name, constant.kind()));
        let columns = columns.chain(fields.iter().map(|field| (&field.name, field.kind)));
        let schema: ArrowSchema =
            columns.map(|(name, kind)| ArrowField::new(name.as_str().into(), stored(kind), true)).collect();
        // Readers that know Arrow get the schema first.
        let pairs = metadata.iter().map(|(key, value)| KeyValue { key: key.clone(), value: Some(value.clone()) });
        let pairs = std::iter::once(schema_to_metadata_key(&schema)).chain(pairs).collect();
        let file = temporary.as_file().try_clone().map_err(|error| fail(&error))?;
        let digest = Digest::default();
        let options = options(CompressionOptions::Zstd(ZstdLevel::try_new(1).ok()));
        let file = BufWriter::with_capacity(1 << 16, Digesting::new(file, digest.clone()));
        let writer = FileWriter::try_new(file, schema, options).map_err(|error| fail(&error))?;
        let buffers = Vec::new();
        let (path, constants) = (path.to_owned(), constants.to_vec());
        Ok(TableWriter { path, writer, digest, temporary, pairs, constants, fields, buffers, rows: 0 })
    }

    /// Adds a row: one cell a field, in order. Errors: [`Error::Output`] for another number of cells, and for a cell of
    /// another type than its column.
    pub fn push<'a>(&mut self, row: impl IntoIterator<Item = Cell<'a>>) -> Result<()> {
        if self.buffers.is_empty() {
            self.buffers = self.fields.iter().map(|field| Buffer::new(field.kind, 1024)).collect();
        }
        let mut cells = row.into_iter();
        let mut given = 0;
        for ((buffer, field), cell) in self.buffers.iter_mut().zip(&self.fields).zip(cells.by_ref()) {
            if !buffer.push(cell) {
                let problem = format!("column '{}' of {:?} cannot hold {cell:?}", field.name, field.kind);
                return Err(Error::output(&self.path, problem));
            }
            given += 1;
        }
        let given = given + cells.count();
        if given != self.fields.len() {
            let problem = format!("a row of {given} cells for {} columns", self.fields.len());
            return Err(Error::output(&self.path, problem));
        }
        self.rows += 1;
        if self.rows == GROUP { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        let mut columns: Vec<Box<dyn Array>> =
            self.constants.iter().map(|(_, constant)| constant.repeated(self.rows)).collect();
        columns.extend(self.buffers.drain(..).map(Buffer::finish));
        write_group(&mut self.writer, self.rows, columns).map_err(|error| Error::output(&self.path, error))?;
        self.rows = 0;
        Ok(())
    }

    /// Completes the file and gives it its name.
    pub fn finish(self) -> Result<Written> {
        self.complete()?.place()
    }

    /// Completes the file; it has no name yet.
    pub fn complete(mut self) -> Result<Pending> {
        self.flush()?;
        self.writer.end(Some(self.pairs)).map_err(|error| Error::output(&self.path, error))?;
        complete(&self.path, self.temporary, self.digest.hex())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_that_does_not_fit_is_an_error_and_leaves_no_file() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let path = dir.path().join("t.parquet");
        let fields = [("n", Kind::Int), ("x", Kind::Float), ("name", Kind::Text)];
        let fields = || fields.map(|(name, kind)| Field { name: name.to_owned(), kind }).to_vec();
        let pushed = |row: &[Cell]| {
            let mut table = TableWriter::create(&path, &[], fields(), &[]).expect("a writable folder");
            table.push(row.iter().copied()).and_then(|()| table.finish()).map(drop).map_err(|error| error.to_string())
        };
        let good = [Cell::Int(1), Cell::Int(2), Cell::Text("a")];
        for (at, cell, says) in [
            (0, Cell::Float(1.0), "column 'n' of Int"),
            (0, Cell::Text("1"), "column 'n' of Int"),
            (0, Cell::from(1 << 63), "column 'n' of Int"),
            (1, Cell::Text("1"), "column 'x' of Float"),
            (2, Cell::Int(1), "column 'name' of Text"),
        ] {
            let mut row = good;
            row[at] = cell;
            assert!(pushed(&row).is_err_and(|message| message.contains(says)), "{cell:?} in column {at}");
        }
        for row in [&good[..2], &[good[0], good[1], good[2], Cell::Null]] {
            assert!(pushed(row).is_err_and(|message| message.contains("cells for 3 columns")));
        }
        assert!(!path.exists());
        assert_eq!(pushed(&good), Ok(()));
        assert_eq!(pushed(&[Cell::Null; 3]), Ok(()));
    }
}
