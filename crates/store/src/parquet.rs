//! Reads Parquet files without trusting their content.
//!
//! All reading of Parquet uses this module: traces and tables of results. The library below trusts the metadata of a file in allocations,
//! slices and assertions. Therefore the footer is first decoded within bounds, then the positions and sizes of the columns that are read
//! are checked against the file, page by page. Any remaining panic of the library becomes an [`Error`].

use std::cell::Cell;
use std::fmt::Display;
use std::io::{BufReader, Cursor, Read, Seek, SeekFrom};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Once};

use polars_arrow::array::{Array, Float64Array, Int64Array, UInt64Array, Utf8ViewArray};
use polars_arrow::datatypes::{ArrowDataType, ArrowSchema, Field};
use polars_buffer::Buffer;
use polars_compute::cast::cast_default;
use polars_parquet::parquet::metadata::{ColumnChunkMetadata, FileMetadata, SchemaDescriptor};
use polars_parquet::parquet::schema::types::{
    IntegerType, ParquetType, PrimitiveConvertedType, PrimitiveLogicalType, PrimitiveType,
};
use polars_parquet::read::{BasicDecompressor, Filter, PageReader, column_iter_to_arrays, infer_schema, read_metadata};
use polars_parquet_format::thrift::protocol::TCompactInputProtocol;
use polars_parquet_format::{FileMetaData, PageHeader, SchemaElement};

use plimsoll_base::error::{Error, Result};
use plimsoll_base::pinned::Pinned;
use plimsoll_sim::workload::NameList;

/// The magic bytes at both ends of a file, and the number of bytes after the footer: its length, and the magic bytes.
const MAGIC: &[u8; 4] = b"PAR1";
const TAIL: u64 = 8;

/// Maximum length of a footer in bytes: some hundred thousand columns of row groups.
const FOOTER_MOST: u64 = 64 << 20;

/// Maximum depth of nested types.
const DEPTH_MOST: usize = 32;

/// A page with a larger decoded size must be large in the file, too.
const PAGE_FREE: u64 = 64 << 20;

/// Number of rows allowed in a file of any size. [`UNFOLDED`] more are allowed per byte, since equal values take almost no space.
const ROWS_FREE: u64 = 1 << 20;

/// The largest ratio of decoded to stored size, and the largest number of rows per byte.
const UNFOLDED: u64 = 1024;

pub use crate::kinds::Timestamps;

/// The source of the bytes of a file.
#[derive(Clone, Debug)]
pub enum Bytes {
    /// On disk.
    File(Pinned),
    /// In memory.
    Memory(Arc<[u8]>),
}

impl Bytes {
    fn open(&self) -> Result<Box<dyn Seekable>> {
        Ok(match self {
            Bytes::File(file) => Box::new(file.open()?),
            Bytes::Memory(bytes) => Box::new(Cursor::new(bytes.clone())),
        })
    }
}

trait Seekable: Read + Seek {}
impl<T: Read + Seek> Seekable for T {}

/// Creates the error for a damaged file from its path and the problem.
pub type DamageError = fn(&Path, &str) -> Error;

/// A column of a file, and the name of its type if it cannot be read.
pub type FileColumn = (String, Option<String>);

/// A file with a valid footer, of which selected columns are read.
pub struct Parquet {
    path: PathBuf,
    bytes: Bytes,
    size: u64,
    complain: DamageError,
    file: FileMetadata,
    pairs: Vec<(String, String)>,
    columns: Vec<FileColumn>,
    selected: Option<Selected>,
}

/// The selected columns, and their bytes in the most recent row group.
struct Selected {
    schema: ArrowSchema,
    file: FileMetadata,
    group: Option<usize>,
    chunks: Vec<Buffer<u8>>,
}

impl Parquet {
    /// Opens a file; messages call it `path`. Errors: [`Error::Io`], and the error of `complain` for a damaged file.
    pub fn open(path: &Path, bytes: Bytes, complain: DamageError) -> Result<Parquet> {
        let damaged = |problem: String| complain(path, &problem);
        let mut reader = bytes.open()?;
        let size = bounded_footer(&mut reader).map_err(damaged)?;
        let mut file = guarded(|| read_metadata(&mut reader)).map_err(damaged)?;
        // Types are those of Parquet; annotations of writers, such as a dictionary of categories, do not change the values.
        let pairs = file.key_value_metadata.take().unwrap_or_default();
        let pairs = pairs.into_iter().filter_map(|pair| Some((pair.key, pair.value?))).collect();
        let schema = guarded(|| infer_schema(&file)).map_err(damaged)?;
        let columns = schema.iter().map(|(name, field)| (name.to_string(), unreadable(&field.dtype))).collect();
        let parquet = Parquet { path: path.to_owned(), bytes, size, complain, file, pairs, columns, selected: None };
        parquet.check_rows()?;
        Ok(parquet)
    }

    /// Returns the columns, in order.
    pub fn columns(&self) -> &[FileColumn] {
        &self.columns
    }

    /// Returns the key-value metadata.
    pub fn pairs(&self) -> &[(String, String)] {
        &self.pairs
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.file.num_rows
    }

    /// Returns the selected columns.
    pub(crate) fn fields(&self) -> Vec<Field> {
        self.selected.iter().flat_map(|selected| selected.schema.iter_values()).cloned().collect()
    }

    /// Selects the columns to read, which must all be readable. Errors: they are not where the footer states, or are too large.
    pub fn select(&mut self, names: &[&str]) -> Result<()> {
        let names: Vec<_> = names.iter().map(|name| (*name).into()).collect();
        let mut pruned = guarded(|| self.file.pruned(&names, &[])).map_err(|problem| self.damaged(&problem))?;
        let fields = pruned.schema_descr.fields().iter().cloned().map(widened).collect();
        pruned.schema_descr = SchemaDescriptor::new(pruned.schema_descr.name().into(), fields);
        let mut reader = BufReader::new(self.bytes.open()?);
        for group in &pruned.row_groups {
            for column in group.parquet_columns() {
                check_column(&mut reader, column, group.num_rows() as u64, self.size).map_err(|problem| {
                    let name = column.descriptor().path_in_schema.first().map_or("", |name| name.as_str());
                    self.damaged(&format!("column '{name}' {problem}"))
                })?;
            }
        }
        let schema = guarded(|| infer_schema(&pruned)).map_err(|problem| self.damaged(&problem))?;
        self.selected = Some(Selected { schema, file: pruned, group: None, chunks: Vec::new() });
        Ok(())
    }

    /// Reads at most `rows` rows of the selected columns, starting at row `from`, in the order of the file. Errors: they cannot be
    /// decoded.
    pub fn read(&mut self, from: usize, rows: usize) -> Result<Vec<StoredColumn>> {
        let due = self.rows().saturating_sub(from).min(rows);
        let damaged = |problem: String| (self.complain)(&self.path, &problem);
        let selected = self.selected.as_mut().expect("columns are selected before they are read");
        let none = |field: &Field| StoredColumn { field: field.clone(), arrays: Vec::new() };
        let mut columns: Vec<StoredColumn> = selected.schema.iter_values().map(none).collect();
        let mut start = 0;
        for group in 0..selected.file.row_groups.len() {
            let rows = selected.file.row_groups[group].num_rows();
            let wanted = from.saturating_sub(start)..(from + due).saturating_sub(start).min(rows);
            if !wanted.is_empty() {
                selected.load(group, &mut self.bytes.open()?).map_err(|error| damaged(error.to_string()))?;
                let stored = selected.file.row_groups[group].parquet_columns().iter().zip(&selected.chunks);
                for (column, (place, bytes)) in columns.iter_mut().zip(stored) {
                    let filter = Filter::new_ranged(wanted.start, wanted.end);
                    let arrays = guarded(|| decode(place, bytes.clone(), column.field.clone(), filter));
                    column.arrays.extend(arrays.map_err(damaged)?);
                }
            }
            start += rows;
        }
        match columns.iter().all(|column| column.len() == due) {
            true => Ok(columns),
            false => Err(damaged(format!("rows {} to {} are not complete", from + 1, from + due))),
        }
    }

    fn damaged(&self, problem: &str) -> Error {
        (self.complain)(&self.path, problem)
    }

    /// Checks that the rows of the groups add up to those of the file, and are not more than a file of this size can have.
    fn check_rows(&self) -> Result<()> {
        let of_groups = self.file.row_groups.iter().map(|group| group.num_rows() as u64);
        let sum = of_groups.fold(0, u64::saturating_add);
        let (rows, most) = (self.rows() as u64, self.size.saturating_mul(UNFOLDED).saturating_add(ROWS_FREE));
        if sum != rows {
            return Err(self.damaged(&format!("it declares {rows} rows, and its row groups {sum}")));
        }
        if rows > most {
            return Err(self.damaged(&format!("it declares {rows} rows, more than {} bytes can hold", self.size)));
        }
        Ok(())
    }
}

impl Selected {
    /// Reads the bytes of a row group, unless they are loaded.
    fn load(&mut self, group: usize, reader: &mut impl Seekable) -> std::io::Result<()> {
        if self.group.take() != Some(group) {
            self.chunks.clear();
            for column in self.file.row_groups[group].parquet_columns() {
                let place = column.byte_range();
                let mut bytes = vec![0; (place.end - place.start) as usize];
                reader.seek(SeekFrom::Start(place.start))?;
                reader.read_exact(&mut bytes)?;
                self.chunks.push(bytes.into());
            }
        }
        self.group = Some(group);
        Ok(())
    }
}

/// Decodes some rows of a column of a row group.
fn decode(
    place: &ColumnChunkMetadata,
    bytes: Buffer<u8>,
    field: Field,
    rows: Filter,
) -> std::result::Result<Vec<Box<dyn Array>>, impl Display> {
    let pages = PageReader::new(Cursor::new(bytes), place, Vec::new(), usize::MAX);
    let pages = vec![BasicDecompressor::new(pages, Vec::new())];
    let types = vec![&place.descriptor().descriptor.primitive_type];
    column_iter_to_arrays(pages, types, field, Some(rows)).map(|(arrays, _)| arrays)
}

/// A column in memory: a sequence of arrays.
pub struct StoredColumn {
    pub(crate) field: Field,
    pub(crate) arrays: Vec<Box<dyn Array>>,
}

impl StoredColumn {
    /// Creates a column of one array.
    pub(crate) fn new(field: Field, array: Box<dyn Array>) -> StoredColumn {
        StoredColumn { field, arrays: vec![array] }
    }

    /// Returns its arrays.
    pub(crate) fn into_arrays(self) -> Vec<Box<dyn Array>> {
        self.arrays
    }

    /// Returns which values are absent.
    pub(crate) fn nulls(&self) -> Vec<bool> {
        self.arrays.iter().flat_map(|array| (0..array.len()).map(|at| array.is_null(at))).collect()
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.field.name
    }

    fn len(&self) -> usize {
        self.arrays.iter().map(|array| array.len()).sum()
    }

    /// Returns the doubles, if this is a column of doubles.
    pub fn doubles(&self) -> std::result::Result<Option<Vec<Option<f64>>>, String> {
        (self.field.dtype == ArrowDataType::Float64).then(|| self.numbers()).transpose()
    }

    /// Returns the name of the type, if it is not text.
    pub fn other_than_text(&self) -> Option<String> {
        (self.field.dtype != ArrowDataType::Utf8View).then(|| format!("{:?}", self.field.dtype))
    }

    /// Returns the values as numbers; a value that is no number is absent.
    pub fn numbers(&self) -> std::result::Result<Vec<Option<f64>>, String> {
        let mut values = Vec::with_capacity(self.len());
        self.each(ArrowDataType::Float64, |array: &Float64Array| {
            values.extend(array.iter().map(Option::<&f64>::copied))
        })?;
        Ok(values)
    }

    /// Returns the values, if this is a column of integers; a value from 2^63 on is absent.
    pub fn integers(&self) -> std::result::Result<Option<Vec<Option<i64>>>, String> {
        use ArrowDataType as D;
        let mut values = Vec::with_capacity(self.len());
        match self.field.dtype {
            D::UInt64 => self.each(D::UInt64, |array: &UInt64Array| {
                values.extend(array.iter().map(|value| value.and_then(|value| i64::try_from(*value).ok())))
            })?,
            D::Int8 | D::Int16 | D::Int32 | D::Int64 | D::UInt8 | D::UInt16 | D::UInt32 => {
                self.each(D::Int64, |array: &Int64Array| values.extend(array.iter().map(Option::<&i64>::copied)))?
            }
            _ => return Ok(None),
        }
        Ok(Some(values))
    }

    /// Returns the values as text, each as its own string; an absent value is empty.
    pub fn text(&self) -> std::result::Result<Vec<String>, String> {
        Ok(self.names()?.iter().map(str::to_owned).collect())
    }

    /// Returns the values as text.
    pub fn names(&self) -> std::result::Result<NameList, String> {
        let mut values = NameList::default();
        self.each(ArrowDataType::Utf8View, |array: &Utf8ViewArray| {
            array.iter().for_each(|value| values.push(value.unwrap_or_default()))
        })?;
        Ok(values)
    }

    /// Casts the values to another type and passes them to `take`, one array at a time.
    fn each<A: 'static>(&self, dtype: ArrowDataType, mut take: impl FnMut(&A)) -> std::result::Result<(), String> {
        self.arrays.iter().try_for_each(|array| {
            let array = guarded(|| cast_default(array.as_ref(), &dtype))?;
            take(array.as_any().downcast_ref().expect("an array of the requested type"));
            Ok(())
        })
    }
}

/// Runs library code that may panic on the content of a file. No message is printed for a panic, since the file is its cause.
pub(crate) fn guarded<T, E: Display>(
    work: impl FnOnce() -> std::result::Result<T, E>,
) -> std::result::Result<T, String> {
    thread_local!(static GUARDED: Cell<bool> = const { Cell::new(false) });
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !GUARDED.get() {
                before(panic);
            }
        }));
    });
    let outer = GUARDED.replace(true);
    let result = catch_unwind(AssertUnwindSafe(work));
    GUARDED.set(outer);
    match result {
        Ok(result) => result.map_err(|error| error.to_string()),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
            Err(format!("it does not decode ({})", text.unwrap_or("for no stated reason")))
        }
    }
}

/// Decodes the footer with bounds on all its lists; returns the file's size. Errors: the problem.
fn bounded_footer(reader: &mut (impl Read + Seek)) -> std::result::Result<u64, String> {
    let failed = |error: std::io::Error| error.to_string();
    let size = reader.seek(SeekFrom::End(0)).map_err(failed)?;
    let room = size.checked_sub(TAIL + MAGIC.len() as u64).ok_or_else(|| format!("it has {size} bytes only"))?;
    let mut tail = [0; TAIL as usize];
    reader.seek(SeekFrom::Start(size - TAIL)).map_err(failed)?;
    reader.read_exact(&mut tail).map_err(failed)?;
    let [a, b, c, d, magic @ ..] = tail;
    let length = u64::from(u32::from_le_bytes([a, b, c, d]));
    if magic != *MAGIC {
        return Err("it does not end like a Parquet file; it may be cut short".to_owned());
    }
    if length > room.min(FOOTER_MOST) {
        return Err(format!("its footer of {length} bytes is longer than the file or {FOOTER_MOST} bytes"));
    }
    let mut footer = vec![0; length as usize];
    reader.seek(SeekFrom::Start(size - TAIL - length)).map_err(failed)?;
    reader.read_exact(&mut footer).map_err(failed)?;
    reader.rewind().map_err(failed)?;
    // Each item of a list counts as eight bytes, whatever its type.
    let bound = footer.len().saturating_mul(8);
    let mut protocol = TCompactInputProtocol::new(footer.as_slice(), bound);
    let file = FileMetaData::read_from_in_protocol(&mut protocol).map_err(|error| format!("its footer: {error}"))?;
    check_depth(&file.schema)?;
    Ok(size)
}

/// Checks that the types of a schema form a tree of limited depth. Errors: the problem.
fn check_depth(schema: &[SchemaElement]) -> std::result::Result<(), String> {
    let mut open: Vec<usize> = Vec::new();
    for element in schema {
        while open.last() == Some(&0) {
            open.pop();
        }
        if let Some(left) = open.last_mut() {
            *left -= 1;
        }
        let children = usize::try_from(element.num_children.unwrap_or(0)).unwrap_or(usize::MAX);
        if children > schema.len() || open.len() >= DEPTH_MOST {
            return Err(format!("its schema is no tree of at most {DEPTH_MOST} levels"));
        }
        if children > 0 {
            open.push(children);
        }
    }
    Ok(())
}

/// Checks that a column of a row group lies in the file, and that its pages have the rows of the group. Errors: the problem, as the end of
/// a sentence about the column.
fn check_column(
    reader: &mut BufReader<Box<dyn Seekable>>,
    column: &ColumnChunkMetadata,
    rows: u64,
    size: u64,
) -> std::result::Result<(), String> {
    let failed = |error: std::io::Error| error.to_string();
    let first = column.dictionary_page_offset().unwrap_or(column.data_page_offset());
    let place = u64::try_from(first).ok().zip(u64::try_from(column.compressed_size()).ok());
    let place = place.and_then(|(start, length)| Some((start, start.checked_add(length)?)));
    let Some((start, end)) = place.filter(|(start, end)| *start >= MAGIC.len() as u64 && *end <= size - TAIL) else {
        return Err("does not lie within the file".to_owned());
    };
    // A column of lists has a value for each item, at most as many as the rows of a file of this size.
    let is_list = column.descriptor().descriptor.max_rep_level > 0;
    let many = u64::try_from(column.num_values()).ok();
    let most = size.saturating_mul(UNFOLDED).saturating_add(ROWS_FREE);
    let Some(rows) = many.filter(|&many| if is_list { many <= most } else { many == rows }) else {
        return Err(format!("has {} values in a row group of {rows} rows", column.num_values()));
    };
    let (mut at, mut values) = (start, 0);
    reader.seek(SeekFrom::Start(at)).map_err(failed)?;
    while values < rows {
        let bound = usize::try_from(end - at).unwrap_or(usize::MAX);
        let mut protocol = TCompactInputProtocol::new(reader.by_ref().take(end - at), bound);
        let header =
            PageHeader::read_from_in_protocol(&mut protocol).map_err(|error| format!("has a page: {error}"))?;
        let body = reader.stream_position().map_err(failed)?;
        let sizes = [header.compressed_page_size, header.uncompressed_page_size].map(u64::try_from);
        let [Ok(packed), Ok(unpacked)] = sizes else { return Err("has a page of a negative size".to_owned()) };
        let most = packed.saturating_mul(UNFOLDED).max(PAGE_FREE);
        if packed > end.saturating_sub(body) || unpacked > most {
            return Err(format!("has a page of {packed} bytes, {unpacked} unpacked, in {} bytes", end - start));
        }
        let dictionary = header.dictionary_page_header.map(|page| page.num_values);
        let data = header.data_page_header.map(|page| page.num_values);
        let data = data.or(header.data_page_header_v2.map(|page| page.num_values)).unwrap_or(0);
        let counts = [dictionary.unwrap_or(0), data].map(u64::try_from);
        let [Ok(entries), Ok(data)] = counts else { return Err("has a page of a negative length".to_owned()) };
        values += data;
        if entries > unpacked || values > rows {
            return Err(format!("has pages of more values than its {rows} rows or their bytes"));
        }
        at = body + packed;
        reader.seek_relative(packed as i64).map_err(failed)?;
    }
    Ok(())
}

/// Widens a field of 8 or 16 bits to its storage type of 32 bits, which every reader supports.
fn widened(field: ParquetType) -> ParquetType {
    use IntegerType::{Int8, Int16, UInt8, UInt16};
    match field {
        ParquetType::PrimitiveType(of)
            if matches!(of.logical_type, Some(PrimitiveLogicalType::Integer(Int8 | Int16 | UInt8 | UInt16)))
                || matches!(
                    of.converted_type,
                    Some(PrimitiveConvertedType::Int8 | PrimitiveConvertedType::Int16)
                        | Some(PrimitiveConvertedType::Uint8 | PrimitiveConvertedType::Uint16)
                ) =>
        {
            ParquetType::PrimitiveType(PrimitiveType { logical_type: None, converted_type: None, ..of })
        }
        other => other,
    }
}

/// The type of a column of lists of values that can be read one by one.
pub const LIST: &str = "list";

/// The type of a column of timestamps.
pub const TIMESTAMP: &str = "timestamp";

/// Returns the name of a type that cannot be read: not numbers, text, Booleans or nulls only.
pub(crate) fn unreadable(dtype: &ArrowDataType) -> Option<String> {
    use ArrowDataType as D;
    Some(match dtype {
        D::Null | D::Boolean | D::Float32 | D::Float64 | D::Utf8 | D::LargeUtf8 | D::Utf8View => return None,
        D::Int8 | D::Int16 | D::Int32 | D::Int64 | D::UInt8 | D::UInt16 | D::UInt32 | D::UInt64 => return None,
        D::Decimal(digits, places) => format!("decimal({digits}, {places})"),
        D::Timestamp(..) => TIMESTAMP.to_owned(),
        D::Date32 | D::Date64 => "date".to_owned(),
        D::Time32(_) | D::Time64(_) | D::Duration(_) => "time".to_owned(),
        D::Binary | D::LargeBinary | D::BinaryView | D::FixedSizeBinary(_) => "binary".to_owned(),
        D::Struct(_) => "struct".to_owned(),
        D::Map(..) => "map".to_owned(),
        D::LargeList(item) if unreadable(&item.dtype).is_none() => LIST.to_owned(),
        D::List(_) | D::LargeList(_) | D::FixedSizeList(..) => "lists".to_owned(),
        other => format!("{other:?}").chars().take_while(|c| c.is_alphanumeric()).collect(),
    })
}

#[cfg(test)]
pub(crate) mod tests;
