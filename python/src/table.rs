//! Tables of results, which others take by Arrow's C interface, and frames of others, which become files.

use std::ffi::CStr;
use std::path::{Path, PathBuf};

use plimsoll::error::Result;
use plimsoll::output::folder::{DIFFERENCES, ESTIMATES};
use plimsoll::output::requests::Whole;
use plimsoll::output::schema::Table as TableKind;
use plimsoll_store::arrow::{Files, import};
use polars_arrow::ffi::{ArrowArrayStream, ArrowArrayStreamReader, export_iterator};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};

/// The name that Arrow gives to capsules with a stream.
const STREAM: &CStr = c"arrow_array_stream";

/// A table of results: its rows stand in files, and are read when somebody asks for them.
#[pyclass(frozen, module = "plimsoll")]
pub struct Table {
    name: String,
    files: Files,
}

#[pymethods]
impl Table {
    /// The rows of these Parquet files, one behind the other.
    #[new]
    fn new(py: Python, name: String, paths: Vec<PathBuf>) -> PyResult<Table> {
        let files = py.detach(|| Files::open(paths)).map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(Table { name, files })
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

    /// The rows as an Arrow stream. Another schema than its own is not made: who takes the stream may cast it.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let stream = export_iterator(Box::new(self.files.chunks()), self.files.field());
        PyCapsule::new_with_value(py, stream, STREAM)
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

/// Writes a frame, which is anything that gives an Arrow stream, to a Parquet file; `name` is what messages call it. Returns the digest
/// of the file. Raises TypeError for anything else, and ValueError for a column that no trace can have.
#[pyfunction]
pub fn write_frame(py: Python, frame: &Bound<PyAny>, name: &str, path: PathBuf) -> PyResult<String> {
    let given = frame.call_method1("__arrow_c_stream__", PyTuple::empty(py)).map_err(|error| {
        let kind = frame.get_type().name().map(|name| name.to_string()).unwrap_or_default();
        let problem = format!("{name} is a {kind}: a trace is a path, or a frame with __arrow_c_stream__ ({error})");
        PyTypeError::new_err(problem)
    })?;
    let capsule = given.cast_into::<PyCapsule>()?;
    let pointer = capsule.pointer_checked(Some(STREAM))?.cast::<ArrowArrayStream>();
    // SAFETY: a capsule of this name holds such a stream (the PyCapsule interface of Arrow), which is taken out of it here: an empty
    // one, whose release is none, stays behind for its destructor.
    let stream = Box::new(unsafe { pointer.replace(ArrowArrayStream::empty()) });
    // SAFETY: as above.
    let mut reader = unsafe { ArrowArrayStreamReader::try_new(stream) }
        .map_err(|error| PyValueError::new_err(format!("{name}: {error}")))?;
    let field = reader.field().clone();
    // SAFETY: as above. A stream of Python's may need the interpreter, so its lock is kept.
    let mut chunks = std::iter::from_fn(|| unsafe { reader.next() });
    import(name, &path, &field, &mut chunks).map_err(|error| PyValueError::new_err(error.to_string()))
}
