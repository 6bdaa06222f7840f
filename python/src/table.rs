//! Tables of results, which are exported by Arrow's C interface, and frames of other libraries, which are written to files.

use std::ffi::CStr;
use std::path::PathBuf;
use std::sync::Arc;

use plimsoll::output::escape::escape;
use plimsoll::output::numbers::count;
use plimsoll_store::arrow::{Files, import};
use polars_arrow::ffi::{ArrowArrayStream, ArrowArrayStreamReader, export_iterator};
use pyo3::exceptions::{PyImportError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

/// Arrow's name for capsules with a stream.
const STREAM: &CStr = c"arrow_array_stream";

/// The number of rows that a notebook shows.
const SHOWN: usize = 10;

/// A table of results. Its rows are in files and are read on demand.
#[pyclass(frozen, module = "plimsoll")]
pub struct Table {
    name: String,
    files: Files,
    /// The owner of the files' folder; the folder is deleted with its owner.
    kept: Arc<Option<Py<PyAny>>>,
}

#[pymethods]
impl Table {
    /// Opens the rows of these Parquet files, in this order. `kept` is the owner of their folder.
    #[new]
    #[pyo3(signature = (name, paths, kept=None))]
    fn new(py: Python, name: String, paths: Vec<PathBuf>, kept: Option<Py<PyAny>>) -> PyResult<Table> {
        let files = py.detach(|| Files::open(paths)).map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(Table { name, files, kept: Arc::new(kept) })
    }

    /// The name of the table.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// The columns, as pairs of a name and a type.
    #[getter]
    fn columns(&self) -> Vec<(String, String)> {
        self.files.columns().map(|(name, kind)| (name.to_owned(), kind)).collect()
    }

    /// The first rows, at most `rows`, as a table.
    #[pyo3(signature = (rows=5))]
    fn head(&self, rows: usize) -> Table {
        Table { name: self.name.clone(), files: self.files.head(rows), kept: self.kept.clone() }
    }

    /// The rows as a `polars.DataFrame`. Raises ImportError without polars.
    fn to_polars<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("polars")?.getattr("DataFrame")?.call1((slf,))
    }

    /// The rows as a `pandas.DataFrame`. Raises ImportError without pandas 3.0 or newer.
    fn to_pandas<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let frame = slf.py().import("pandas")?.getattr("DataFrame")?;
        let from_arrow = frame.getattr("from_arrow");
        from_arrow.map_err(|_| PyImportError::new_err("pandas 3.0 or newer is required"))?.call1((slf,))
    }

    fn __len__(&self) -> usize {
        self.files.rows()
    }

    fn __repr__(&self) -> String {
        let columns: Vec<&str> = self.files.columns().map(|(name, _)| name).collect();
        format!("<plimsoll.Table {}: {} rows of {}>", self.name, self.files.rows(), columns.join(", "))
    }

    /// Returns the first rows as a table in HTML, and the number of rows. Raises ValueError if a file is damaged or missing.
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

    /// Returns the rows as an Arrow stream. A requested schema is ignored: the consumer may cast the stream.
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

/// The rows of a table in chunks, and the owner of their files.
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

/// Checks and returns the tables of a results folder: for each existing table its files, ordered by cell of a sweep, then by run. Raises
/// ValueError for a folder without results, or with a damaged table.
#[pyfunction]
pub fn tables(py: Python, folder: PathBuf) -> PyResult<Vec<(String, Vec<PathBuf>)>> {
    py.detach(|| plimsoll::output::tables::tables(&folder)).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// Updates the record of results that were copied to another folder, so that the path of the plan in the record is valid in that folder.
/// Raises ValueError if the record cannot be written.
#[pyfunction]
pub fn moved(from_: PathBuf, to: PathBuf) -> PyResult<()> {
    plimsoll::cli::moved(&from_, &to).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// Writes a frame, which is any object with an Arrow stream, to a Parquet file; messages call the frame `name`. Returns the digest of
/// the file. Raises TypeError for any other object, and ValueError for a column that a trace cannot have.
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
    // SAFETY: a capsule of this name contains such a stream (the PyCapsule interface of Arrow). The stream is moved out here; an empty one
    // without a release callback replaces it for the capsule's destructor.
    let stream = Box::new(unsafe { pointer.replace(ArrowArrayStream::empty()) });
    // SAFETY: as above.
    let mut reader = unsafe { ArrowArrayStreamReader::try_new(stream) }
        .map_err(|error| PyValueError::new_err(unknown(name, &error.to_string())))?;
    let field = reader.field().clone();
    // SAFETY: as above. A stream from Python may need the interpreter, so its lock is not released.
    let mut chunks = std::iter::from_fn(|| unsafe { reader.next() });
    import(name, &path, &field, &mut chunks).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// Returns the message about a frame with a column that cannot be imported.
fn unknown(name: &str, problem: &str) -> String {
    // `+r` is Arrow's format string of such a column. The error does not have the name of the column.
    match problem.contains("\"+r\"") {
        true => {
            format!("{name}: a column is run-end encoded; expected plain values, as of pyarrow.compute.run_end_decode")
        }
        false => format!("{name}: {problem}"),
    }
}
