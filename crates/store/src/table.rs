//! Writes Parquet tables, column by column in row groups, under a temporary name until they are complete.
//!
//! [`TableWriter`] collects rows in columns and writes them as row groups of `GROUP` rows, optionally in a second thread. Constants, such
//! as the axes of an experiment, are the first columns and take no memory per row. The bytes depend on the rows only, not on the threads.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use polars_arrow::datatypes::{ArrowDataType, ArrowSchema, Field as ArrowField};
use polars_parquet::parquet::metadata::KeyValue;
use polars_parquet::write::schema_to_metadata_key;
use tempfile::NamedTempFile;

pub use super::encode::GrowingColumn;
use super::file::{Digest, Pending, WrittenFile, begin, complete, keep, reopen};
use super::row_groups::RowGroups;
use plimsoll_base::checkpoint::{Checkpoint, Visitor};
use plimsoll_base::column::{Cell, Kind};
use plimsoll_base::error::{Error, Result};
use plimsoll_base::visit_values;

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
    /// Whether nearly all values differ, or the column is a time; a dictionary would not pay.
    pub distinct: bool,
}

impl Field {
    /// Creates a column with values that may repeat.
    pub fn new(name: impl Into<String>, kind: Kind) -> Field {
        Field { name: name.into(), kind, distinct: false }
    }
}

/// A value that is the same in every row of a file, such as an axis of the experiment.
#[derive(Clone, Debug, PartialEq)]
pub enum Constant {
    /// A 64-bit integer.
    Int(i64),
    /// An absent integer.
    NoInt,
    /// A double.
    Float(f64),
    /// A string.
    Text(String),
}

impl Constant {
    /// Returns the value as a cell of a row.
    pub fn cell(&self) -> Cell<'_> {
        match self {
            Constant::Int(value) => Cell::Int(*value),
            Constant::Float(value) => (*value).into(),
            Constant::NoInt => Cell::Null,
            Constant::Text(text) => Cell::Text(text),
        }
    }

    /// Returns the type of its column.
    pub fn kind(&self) -> Kind {
        match self {
            Constant::Int(_) | Constant::NoInt => Kind::Int,
            Constant::Float(_) => Kind::Float,
            Constant::Text(_) => Kind::Text,
        }
    }
}

/// Number of rows of a row group.
const GROUP: usize = 1 << 17;

/// Writes one table to one file.
pub struct TableWriter {
    path: PathBuf,
    /// The output; `None` after an error.
    output: Option<Output>,
    /// Whether a second thread may write.
    beside: bool,
    digest: Digest,
    temporary: NamedTempFile,
    /// The path of the incomplete file from the first checkpoint on, if there may be one.
    kept: Option<PathBuf>,
    /// Whether the incomplete file is there.
    is_kept: bool,
    pairs: Vec<KeyValue>,
    fields: Vec<Field>,
    columns: Vec<GrowingColumn>,
    rows: usize,
    /// Number of rows that the columns have room for.
    room: usize,
}

/// The thread that encodes and writes the pages of columns.
enum Output {
    /// The thread that adds rows.
    Here(RowGroups),
    /// A separate thread, which accepts a row group when it has written the one before.
    Beside(SyncSender<Vec<GrowingColumn>>, JoinHandle<Result<RowGroups>>),
}

impl Output {
    /// Starts a thread that writes complete row groups, unless there is one. Errors: [`Error::Output`] if it cannot be started.
    fn beside(self) -> Result<Output> {
        let Output::Here(mut groups) = self else { return Ok(self) };
        let path = groups.path().to_owned();
        let (sender, receiver) = sync_channel::<Vec<GrowingColumn>>(0);
        let write = move || {
            receiver.into_iter().try_for_each(|columns| groups.write(columns, GROUP))?;
            Ok(groups)
        };
        let thread = thread::Builder::new().name("table".to_owned()).spawn(write);
        thread.map(|thread| Output::Beside(sender, thread)).map_err(|error| Error::output(&path, error))
    }

    /// Writes a row group; returns the output for the next one. Errors: [`Error::Output`], also of an earlier row group.
    fn write(self, columns: Vec<GrowingColumn>, rows: usize) -> Result<Output> {
        match self {
            Output::Beside(sender, thread) if rows == GROUP => match sender.send(columns) {
                Ok(()) => Ok(Output::Beside(sender, thread)),
                // The thread ends early only after an error.
                Err(_) => Output::Beside(sender, thread).join().map(Output::Here),
            },
            other => {
                let mut groups = other.join()?;
                groups.write(columns, rows)?;
                Ok(Output::Here(groups))
            }
        }
    }

    /// Waits until all row groups are written. Errors: [`Error::Output`].
    fn join(self) -> Result<RowGroups> {
        match self {
            Output::Here(groups) => Ok(groups),
            Output::Beside(sender, thread) => {
                drop(sender);
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            }
        }
    }
}

impl TableWriter {
    /// Starts a table that appears at `path` after [`TableWriter::finish`]. `constants` are the first columns.
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
        // The first pair is the schema for readers that support Arrow.
        let pairs = metadata.iter().map(|(key, value)| KeyValue { key: key.clone(), value: Some(value.clone()) });
        let pairs = std::iter::once(schema_to_metadata_key(&schema)).chain(pairs).collect();
        let file = temporary.as_file().try_clone().map_err(|error| fail(&error))?;
        let digest = Digest::default();
        let constants = constants.iter().map(|(_, constant)| constant.clone()).collect();
        let output = Some(Output::Here(RowGroups::begin(path, file, digest.clone(), &schema, constants)?));
        let (path, columns) = (path.to_owned(), Vec::new());
        let (beside, kept, is_kept, rows, room) = (false, None, false, 0, 0);
        Ok(TableWriter { path, output, beside, digest, temporary, kept, is_kept, pairs, fields, columns, rows, room })
    }

    /// Enables a thread that encodes and writes a complete row group while the rows of the next one are added, if `beside`. The bytes are
    /// the same.
    pub fn beside(self, beside: bool) -> TableWriter {
        TableWriter { beside, ..self }
    }

    /// Sets the path at which the incomplete file is kept from the first checkpoint on; a table without it has no checkpoints.
    pub fn kept_at(self, path: Option<PathBuf>) -> TableWriter {
        TableWriter { kept: path, ..self }
    }

    /// Adds a row: one cell per field, in order. Errors: [`Error::Output`] for another number of cells, or for a cell of another type than
    /// its column.
    pub fn push<'a>(&mut self, row: impl IntoIterator<Item = Cell<'a>, IntoIter: ExactSizeIterator>) -> Result<()> {
        let mut cells = row.into_iter();
        if cells.len() != self.fields.len() {
            let problem = format!("a row of {} cells for {} columns", cells.len(), self.fields.len());
            return Err(Error::output(&self.path, problem));
        }
        self.fill(|_, column| {
            let cell = cells.next().expect("as many cells as columns");
            if column.push(cell) { Ok(()) } else { Err(cell) }
        })
    }

    /// Adds a row: `give` adds one value to each column, in order, or returns the column that does not accept its value. Errors:
    /// [`Error::Output`] in that case.
    #[inline]
    pub fn fill<'a>(
        &mut self,
        mut give: impl FnMut(usize, &mut GrowingColumn) -> std::result::Result<(), Cell<'a>>,
    ) -> Result<()> {
        if self.rows == self.room {
            self.grow();
        }
        for (at, column) in self.columns.iter_mut().enumerate() {
            if let Err(cell) = give(at, column) {
                let Field { name, kind, .. } = &self.fields[at];
                return Err(Error::output(&self.path, format!("column '{name}' of {kind:?} cannot hold {cell:?}")));
            }
        }
        self.rows += 1;
        if self.rows == GROUP { self.flush() } else { Ok(()) }
    }

    /// Makes room for more rows in steps: many tables are small, and copying large ones is expensive.
    fn grow(&mut self) {
        if self.columns.is_empty() {
            self.columns = self.fields.iter().map(|field| GrowingColumn::new(field.kind, field.distinct)).collect();
        }
        self.room = (8 * self.room).clamp(1 << 10, GROUP);
        self.columns.iter_mut().for_each(|column| column.reserve(self.room - self.rows));
    }

    fn flush(&mut self) -> Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        let output = self.output()?;
        let output = if self.beside && self.rows == GROUP { output.beside()? } else { output };
        self.output = Some(output.write(std::mem::take(&mut self.columns), self.rows)?);
        (self.rows, self.room) = (0, 0);
        Ok(())
    }

    fn output(&mut self) -> Result<Output> {
        self.output.take().ok_or_else(|| Error::output(&self.path, "no more rows are written after an error"))
    }

    /// Completes the file and renames it.
    pub fn finish(self) -> Result<WrittenFile> {
        self.complete()?.place()
    }

    /// Completes the file, which still has a temporary name.
    pub fn complete(mut self) -> Result<Pending> {
        self.flush()?;
        let mut groups = self.output()?.join()?;
        groups.end(self.pairs)?;
        complete(&self.path, self.temporary, self.digest.hex())
    }
}

impl Checkpoint for TableWriter {
    fn visit(&mut self, visitor: &mut Visitor) -> Result<()> {
        let mut groups = self.output()?.join()?;
        let TableWriter {
            path,
            output,
            beside: _,
            digest,
            temporary,
            kept,
            is_kept,
            pairs: _,
            fields: _,
            columns,
            rows,
            room: _,
        } = self;
        let kept = kept.as_ref().ok_or_else(|| Error::output(&*path, "this table has no checkpoints"))?;
        if !visitor.is_restoring() && !std::mem::replace(is_kept, true) {
            keep(temporary, kept)?;
        }
        visit_values!(visitor; columns, rows);
        groups.visit(visitor)?;
        if visitor.is_restoring() {
            (*temporary, *digest, *is_kept) = (reopen(kept)?, Digest::default(), true);
            let file = temporary.as_file().try_clone();
            file.and_then(|file| groups.resume(file, digest.clone())).map_err(|error| Error::output(kept, error))?;
            // The columns have no room yet.
            self.room = *rows;
        }
        *output = Some(Output::Here(groups));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes a table of a number and a name with more than two row groups.
    fn long(path: &Path, change: impl FnOnce(&mut TableWriter)) -> Result<WrittenFile> {
        let fields = vec![Field::new("n", Kind::Int), Field::new("name", Kind::Text)];
        let mut table = TableWriter::create(path, &[], fields, &[])?;
        change(&mut table);
        for n in 0..2 * GROUP as i64 + 3 {
            table.push([Cell::Int(n * n % 1009), Cell::Text(["a", "b", "c"][n as usize % 3])])?;
        }
        table.finish()
    }

    #[test]
    fn a_thread_writes_the_same_bytes() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let write = |name: &str, beside: bool| {
            let path = dir.path().join(name);
            let written = long(&path, |table| table.beside = beside).expect("a writable folder");
            (std::fs::read(path).expect("a file"), written.digest)
        };
        assert!(write("here", false) == write("beside", true));
    }

    #[test]
    fn what_a_thread_cannot_write_is_an_error_and_leaves_no_file() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        for beside in [false, true] {
            let read_only = |table: &mut TableWriter| {
                table.beside = beside;
                let Some(Output::Here(groups)) = &mut table.output else { return };
                groups.set_file(std::fs::File::open(table.temporary.path()).expect("a file"));
            };
            let error = long(&dir.path().join("t.parquet"), read_only).expect_err("nothing can be written");
            assert!(matches!(error, Error::Output { .. }), "{error}");
        }
        assert_eq!(std::fs::read_dir(dir.path()).expect("a folder").count(), 0);
    }

    /// Writes the table of [`long`] with `rows` rows: saves its state after `stop` rows, and continues in another writer.
    fn continued(
        dir: &Path,
        (rows, stop): (usize, usize),
        beside: bool,
        damage: impl FnOnce(&Path),
    ) -> Result<Vec<u8>> {
        let (path, kept) = (dir.join("t.parquet"), dir.join("saved/t.parquet"));
        let open = || {
            let fields = vec![Field::new("n", Kind::Int), Field { distinct: true, ..Field::new("name", Kind::Text) }];
            let constants = [("policy".to_owned(), Constant::Text("drf".to_owned()))];
            let table = TableWriter::create(&path, &constants, fields, &[]).expect("a writable folder");
            table.beside(beside).kept_at(Some(kept.clone()))
        };
        let push = |table: &mut TableWriter, n: usize| {
            let name = format!("job-{}", n / 3);
            let number = if n.is_multiple_of(7) { Cell::Null } else { Cell::Int((n * n % 1009) as i64) };
            table.push([number, Cell::Text(&name)])
        };
        let mut table = open();
        (0..stop).try_for_each(|n| push(&mut table, n))?;
        let mut state = plimsoll_base::checkpoint::Visitor::save(&mut table, Vec::new())?;
        // The process writes more rows before it is killed, and saves its state once more in half of the cases.
        (stop..rows).try_for_each(|n| push(&mut table, n))?;
        if stop % 2 == 1 {
            state = plimsoll_base::checkpoint::Visitor::save(&mut table, Vec::new())?;
        }
        let from = if stop % 2 == 1 { rows } else { stop };
        drop(table);
        damage(&kept);
        let mut table = open();
        plimsoll_base::checkpoint::Visitor::restore(&mut table, &state)?;
        (from..rows).try_for_each(|n| push(&mut table, n))?;
        let written = table.finish()?;
        let bytes = std::fs::read(&path).expect("a file");
        assert_eq!(written.digest, super::super::file::digest_of(&bytes));
        assert!(!kept.exists());
        Ok(bytes)
    }

    #[test]
    fn a_table_continues_from_its_saved_state() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        for rows in [0, 1, GROUP - 1, GROUP, GROUP + 1, 2 * GROUP + 5] {
            let whole = continued(dir.path(), (rows, 0), false, |_| {}).expect("a table");
            for stop in
                [0, 1, 1000, GROUP - 1, GROUP, GROUP + 1, 2 * GROUP + 1].into_iter().filter(|stop| *stop <= rows)
            {
                for beside in [false, true] {
                    let found = continued(dir.path(), (rows, stop), beside, |_| {}).expect("a table");
                    assert!(found == whole, "{stop} of {rows} rows");
                }
            }
        }
    }

    #[test]
    fn a_damaged_incomplete_table_is_an_error() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let stop = GROUP + 2;
        let failed = |damage: fn(&Path)| {
            continued(dir.path(), (2 * GROUP, stop), false, damage).expect_err("a damaged table").to_string()
        };
        let change = |path: &Path| {
            let mut bytes = std::fs::read(path).expect("a file");
            bytes[100] ^= 1;
            std::fs::write(path, bytes).expect("a file");
        };
        assert!(failed(change).contains("not those of the saved state"));
        assert!(failed(|path| std::fs::write(path, "PAR1").expect("a file")).contains("shorter"));
        assert!(failed(|path| std::fs::remove_file(path).expect("a file")).contains("saved/t.parquet"));
    }

    #[test]
    fn a_row_that_does_not_fit_is_an_error_and_leaves_no_file() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let path = dir.path().join("t.parquet");
        let fields = [("n", Kind::Int), ("x", Kind::Float), ("name", Kind::Text)];
        let fields = || fields.map(|(name, kind)| Field::new(name, kind)).to_vec();
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
