//! Tables of results, which others take by Arrow's C interface, and frames of others, which become files.

use std::ffi::CStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use plimsoll::error::Result;
use plimsoll::output::escape::escape;
use plimsoll::output::folder::{DIFFERENCES, ESTIMATES};
use plimsoll::output::numbers::count;
use plimsoll::output::requests::Whole;
use plimsoll::output::schema::Table as TableKind;
use plimsoll_store::arrow::{Files, import};
use polars_arrow::ffi::{ArrowArrayStream, ArrowArrayStreamReader, export_iterator};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

/// The name that Arrow gives to capsules with a stream.
const STREAM: &CStr = c"arrow_array_stream";

/// A notebook shows so many rows.
const SHOWN: usize = 10;

/// A table of results: its rows stand in files, and are read when somebody asks for them.
#[pyclass(frozen, module = "plimsoll")]
pub struct Table {
    name: String,
    files: Files,
    /// The owner of the folder that the files stand in: it goes away with it.
    kept: Arc<Option<Py<PyAny>>>,
}

#[pymethods]
impl Table {
    /// The rows of these Parquet files, one behind the other, in a folder that is there as long as `kept` is.
    #[new]
    #[pyo3(signature = (name, paths, kept=None))]
    fn new(py: Python, name: String, paths: Vec<PathBuf>, kept: Option<Py<PyAny>>) -> PyResult<Table> {
        let files = py.detach(|| Files::open(paths)).map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(Table { name, files, kept: Arc::new(kept) })
    }

    /// Its name.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// The columns: a pair of a name and a type for each.
    #[getter]
    fn columns(&self) -> Vec<(String, String)> {
        self.files.columns().map(|(name, kind)| (name.to_owned(), kind)).collect()
    }

    fn __len__(&self) -> usize {
        self.files.rows()
    }

    fn __repr__(&self) -> String {
        let columns: Vec<&str> = self.files.columns().map(|(name, _)| name).collect();
        format!("<plimsoll.Table {}: {} rows of {}>", self.name, self.files.rows(), columns.join(", "))
    }

    /// The first rows as a table in HTML, and how many there are. Raises ValueError if a file is damaged, or no longer there.
    fn _repr_html_(&self, py: Python) -> PyResult<String> {
        let rows = py.detach(|| self.files.first(SHOWN)).map_err(|error| PyValueError::new_err(error.to_string()))?;
        let line = |cells: &mut dyn Iterator<Item = &str>, tag: &str| {
            let cells: String = cells.map(|text| format!("<{tag}>{}</{tag}>", escape(text))).collect();
            format!("<tr>{cells}</tr>")
        };
        let head = line(&mut self.files.columns().map(|(name, _)| name), "th");
        let body: String = rows.iter().map(|row| line(&mut row.iter().map(String::as_str), "td")).collect();
        let all = count(self.files.rows() as u64, "row");
        let told = match rows.len() < self.files.rows() {
            true => format!("{}: the first {} of {all}", escape(&self.name), rows.len()),
            false => format!("{}: {all}", escape(&self.name)),
        };
        Ok(format!("<table><thead>{head}</thead><tbody>{body}</tbody></table><p>{told}</p>"))
    }

    /// The rows as an Arrow stream. Another schema than its own is not made: who takes the stream may cast it.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let chunks = Chunks { chunks: self.files.chunks(), _kept: self.kept.clone() };
        let stream = export_iterator(Box::new(chunks), self.files.field());
        PyCapsule::new_with_value(py, stream, STREAM)
    }
}

/// The rows of a table, a chunk at a time, and what keeps their files.
struct Chunks<I> {
    chunks: I,
    _kept: Arc<Option<Py<PyAny>>>,
}

impl<I: Iterator> Iterator for Chunks<I> {
    type Item = I::Item;

    fn next(&mut self) -> Option<I::Item> {
        self.chunks.next()
    }
}

/// The tables of a results folder that are as they were written: for each that is there its files, run by run, of a sweep cell by
/// cell. Raises ValueError for a folder without results, or with a table that is damaged.
#[pyfunction]
pub fn tables(py: Python, folder: PathBuf) -> PyResult<Vec<(String, Vec<PathBuf>)>> {
    py.detach(|| all(&folder)).map_err(|error| PyValueError::new_err(error.to_string()))
}

fn all(folder: &Path) -> Result<Vec<(String, Vec<PathBuf>)>> {
    let whole = Whole::open(folder)?;
    let mut tables: Vec<(String, Vec<PathBuf>)> =
        TableKind::all().map(|table| (table.name().to_owned(), Vec::new())).collect();
    for (_, _, results) in &whole.cells {
        for (kind, (_, files)) in TableKind::all().zip(&mut tables) {
            files.extend(results.files(kind)?);
        }
    }
    for (name, path) in [("estimates", ESTIMATES), ("differences", DIFFERENCES)] {
        tables.push((name.to_owned(), Some(folder.join(path)).filter(|path| path.exists()).into_iter().collect()));
    }
    tables.retain(|(_, files)| !files.is_empty());
    Ok(tables)
}

/// Results were copied from one folder to another: their record finds the plan from there. Raises ValueError if it cannot be written.
#[pyfunction]
pub fn moved(from_: PathBuf, to: PathBuf) -> PyResult<()> {
    plimsoll::cli::moved(&from_, &to).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// Writes a frame, which is anything that gives an Arrow stream, to a Parquet file; `name` is what messages call it. Returns the digest
/// of the file. Raises TypeError for anything else, and ValueError for a column that no trace can have.
#[pyfunction]
pub fn write_frame(frame: &Bound<PyAny>, name: &str, path: PathBuf) -> PyResult<String> {
    let kind = frame.get_type().name().map(|name| name.to_string()).unwrap_or_default();
    let wrong = || {
        PyTypeError::new_err(format!(
            "{name}: a value of type {kind} is not accepted; expected a path, or a frame that gives an Arrow stream (__arrow_c_stream__)"
        ))
    };
    let stream = frame.getattr("__arrow_c_stream__").map_err(|_| wrong())?;
    let capsule = stream.call0()?.cast_into::<PyCapsule>().map_err(|_| wrong())?;
    let pointer = capsule.pointer_checked(Some(STREAM))?.cast::<ArrowArrayStream>();
    // SAFETY: a capsule of this name holds such a stream (the PyCapsule interface of Arrow), which is taken out of it here: an empty
    // one, whose release is none, stays behind for its destructor.
    let stream = Box::new(unsafe { pointer.replace(ArrowArrayStream::empty()) });
    // SAFETY: as above.
    let mut reader = unsafe { ArrowArrayStreamReader::try_new(stream) }
        .map_err(|error| PyValueError::new_err(unknown(name, &error.to_string())))?;
    let field = reader.field().clone();
    // SAFETY: as above. A stream of Python's may need the interpreter, so its lock is kept.
    let mut chunks = std::iter::from_fn(|| unsafe { reader.next() });
    import(name, &path, &field, &mut chunks).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// What is said of a frame with a column that cannot be taken over.
fn unknown(name: &str, problem: &str) -> String {
    // Arrow's sign for such a column, of which there is no name here.
    match problem.contains("\"+r\"") {
        true => {
            format!("{name}: a column is run-end encoded; expected plain values, as of pyarrow.compute.run_end_decode")
        }
        false => format!("{name}: {problem}"),
    }
}
