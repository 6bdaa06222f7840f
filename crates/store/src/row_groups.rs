//! The row groups of a Parquet file that is being written, so that writing can continue after a checkpoint.
//!
//! polars-parquet encodes each row group as a file of its own in memory. Its pages are appended to the real file, and its description, with
//! the positions of the pages in the real file, is kept for the footer. So the state between two row groups is the length of the file and
//! these descriptions. There is no offset index: a column of a row group is one page.

use std::fs::File;
use std::io::{BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use polars_arrow::datatypes::ArrowSchema;
use polars_parquet::parquet::error::ParquetError;
use polars_parquet::parquet::metadata::{KeyValue, SchemaDescriptor, ThriftFileMetadata};
use polars_parquet::parquet::write::{Compressor, DynIter, DynStreamingIterator, FileWriter, Version, WriteOptions};
use polars_parquet::write::to_parquet_schema;
use polars_parquet_format::thrift::protocol::{TCompactInputProtocol, TCompactOutputProtocol};
use polars_parquet_format::{ColumnChunk, RowGroup};

use super::encode::{GrowingColumn, repeated};
use super::file::{Digest, Digesting};
use super::table::Constant;
use plimsoll_base::checkpoint::{Checkpoint, Visitor};
use plimsoll_base::error::{Error, Result};
use plimsoll_base::visit_values;

/// The first and the last bytes of a file.
const MAGIC: [u8; 4] = *b"PAR1";

const OPTIONS: WriteOptions = WriteOptions { write_statistics: false, version: Version::V1 };

/// The row groups of a file that is being written.
pub(crate) struct RowGroups {
    path: PathBuf,
    constants: Vec<Constant>,
    schema: SchemaDescriptor,
    /// Buffered, since the footer is written byte by byte; flushed after the last of them.
    file: BufWriter<Digesting>,
    /// The length of the file, and the digest of its bytes as of the last checkpoint.
    length: u64,
    digest: String,
    groups: Vec<RowGroup>,
}

/// Wraps a file in a buffer and a digest.
fn buffered(file: File, digest: Digest) -> BufWriter<Digesting> {
    BufWriter::with_capacity(1 << 16, Digesting::new(file, digest))
}

impl RowGroups {
    /// Begins a file, of which messages say that it is written to `path`. Errors: [`Error::Output`].
    pub fn begin(
        path: &Path,
        file: File,
        digest: Digest,
        schema: &ArrowSchema,
        constants: Vec<Constant>,
    ) -> Result<RowGroups> {
        let fail = |error: &dyn std::fmt::Display| Error::output(path, error);
        let schema = to_parquet_schema(schema).map_err(|error| fail(&error))?;
        let mut file = buffered(file, digest);
        file.write_all(&MAGIC).map_err(|error| fail(&error))?;
        Ok(RowGroups {
            path: path.to_owned(),
            constants,
            schema,
            file,
            length: MAGIC.len() as u64,
            digest: String::new(),
            groups: Vec::new(),
        })
    }

    /// Returns the path of messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a row group of `rows` rows. Errors: [`Error::Output`].
    pub fn write(&mut self, columns: Vec<GrowingColumn>, rows: usize) -> Result<()> {
        let fail = |error: &dyn std::fmt::Display| Error::output(&self.path, error);
        let (bytes, description) = self.encoded(columns, rows).map_err(|error| fail(&error))?;
        for mut group in description.row_groups {
            let start = self.length as i64 - MAGIC.len() as i64;
            // The index of pages follows the pages.
            let pages =
                group.columns.first().and_then(|column| column.offset_index_offset).unwrap_or_default() as usize;
            self.file.write_all(&bytes[MAGIC.len()..pages]).map_err(|error| fail(&error))?;
            self.length += (pages - MAGIC.len()) as u64;
            group.columns.iter_mut().for_each(|column| shift(column, start));
            group.file_offset = group.file_offset.map(|offset| offset + start);
            group.ordinal = self.groups.len().try_into().ok();
            self.groups.push(group);
        }
        Ok(())
    }

    /// Returns a row group as a file of its own, and its description.
    fn encoded(
        &self,
        columns: Vec<GrowingColumn>,
        rows: usize,
    ) -> std::result::Result<(Vec<u8>, ThriftFileMetadata), ParquetError> {
        let mut writer = FileWriter::new(Vec::new(), self.schema.clone(), OPTIONS, None);
        let mut types = self.schema.columns().iter().map(|column| column.descriptor.clone());
        let constants = self.constants.iter().zip(types.by_ref());
        let constants = constants.map(|(constant, of)| repeated(constant.cell(), rows, of)).collect::<Vec<_>>();
        let columns = columns.into_iter().zip(types).map(|(column, of)| column.pages(rows, of));
        // Encodes one column after the other, so that only one column is in memory unpacked and packed.
        let streams = constants.into_iter().chain(columns).map(|pages| {
            let (pages, compression) = pages?;
            let pages = DynIter::new(pages.into_iter().map(Ok));
            Ok(DynStreamingIterator::new(Compressor::new(pages, compression, Vec::new())))
        });
        writer.write::<ParquetError>(rows as u64, DynIter::new(streams))?;
        writer.end(None)?;
        Ok(writer.into_inner_and_metadata())
    }

    /// Writes the footer with this key-value metadata. Errors: [`Error::Output`].
    pub fn end(&mut self, pairs: Vec<KeyValue>) -> Result<()> {
        let footer = self.footer(pairs).map_err(|error| Error::output(&self.path, error))?;
        let parts = [footer.as_slice(), &(footer.len() as u32).to_le_bytes(), &MAGIC];
        let written = parts.iter().try_for_each(|part| self.file.write_all(part)).and_then(|()| self.file.flush());
        written.map_err(|error| Error::output(&self.path, error))
    }

    fn footer(&mut self, pairs: Vec<KeyValue>) -> std::result::Result<Vec<u8>, ParquetError> {
        // A file without rows has the types and the version.
        let mut empty = FileWriter::new(Vec::new(), self.schema.clone(), OPTIONS, Some("Plimsoll".to_owned()));
        empty.end(Some(pairs))?;
        let (_, mut description) = empty.into_inner_and_metadata();
        description.num_rows = self.groups.iter().map(|group| group.num_rows).sum();
        description.row_groups = std::mem::take(&mut self.groups);
        let mut footer = Vec::new();
        description.write_to_out_protocol(&mut TCompactOutputProtocol::new(&mut footer))?;
        Ok(footer)
    }

    /// Continues after a restoration with the file of the checkpoint. Bytes that were written later are removed. Errors: the other
    /// bytes differ from those of the checkpoint, and those of the system.
    pub fn resume(&mut self, mut file: File, digest: Digest) -> std::io::Result<()> {
        if file.metadata()?.len() < self.length {
            return Err(std::io::Error::other("it is shorter than its saved state says"));
        }
        file.set_len(self.length)?;
        file.seek(SeekFrom::Start(0))?;
        let mut buffer = vec![0; 1 << 16];
        loop {
            match file.read(&mut buffer)? {
                0 => break,
                read => digest.update(&buffer[..read]),
            }
        }
        if digest.hex() != self.digest {
            return Err(std::io::Error::other("its rows are not those of the saved state"));
        }
        self.file = buffered(file, digest);
        Ok(())
    }
}

#[cfg(test)]
impl RowGroups {
    /// Writes to another file from now on.
    pub fn set_file(&mut self, file: File) {
        self.file = buffered(file, Digest::default());
    }
}

/// Moves the positions of a column by `start` bytes.
fn shift(column: &mut ColumnChunk, start: i64) {
    (column.offset_index_offset, column.offset_index_length) = (None, None);
    column.file_offset += start;
    if let Some(pages) = &mut column.meta_data {
        pages.data_page_offset += start;
        pages.dictionary_page_offset = pages.dictionary_page_offset.map(|offset| offset + start);
    }
}

/// The buffer is written before the state is saved, so the state is the length of the file and the descriptions of its row groups.
impl Checkpoint for RowGroups {
    fn visit(&mut self, visitor: &mut Visitor) -> Result<()> {
        let RowGroups { path, constants, schema, file, length, digest, groups } = self;
        let fail = |error: &dyn std::fmt::Display| Error::output(&*path, error);
        if !visitor.is_restoring() {
            let synced = file.flush().and_then(|()| file.get_ref().sync());
            synced.map_err(|error| fail(&error))?;
            *digest = file.get_ref().digest();
        }
        // The columns of the file, and the values that are the same in all rows.
        let columns: Vec<String> =
            schema.columns().iter().map(|column| format!("{:?}", column.path_in_schema)).collect();
        visitor.same(&columns, "a table has other columns")?;
        visitor.same(&format!("{constants:?}"), "a table has other constant columns")?;
        let mut descriptions = Vec::new();
        for group in groups.iter() {
            let mut bytes = Vec::new();
            let written = group.write_to_out_protocol(&mut TCompactOutputProtocol::new(&mut bytes));
            written.map_err(|error| fail(&error))?;
            descriptions.push(bytes);
        }
        visit_values!(visitor; length, digest, &mut descriptions);
        if visitor.is_restoring() {
            groups.clear();
            for bytes in descriptions {
                let mut protocol = TCompactInputProtocol::new(bytes.as_slice(), bytes.len().saturating_mul(8));
                groups.push(RowGroup::read_from_in_protocol(&mut protocol).map_err(|error| fail(&error))?);
            }
        }
        Ok(())
    }
}
