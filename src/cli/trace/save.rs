//! Writes a workload as a canonical trace, with a report of its origin.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::report::{self, Amounts};
use crate::cli::Context;
use crate::error::{Error, Result};
use crate::output::file::{write_whole, write_with};
use crate::output::provenance::{COMMIT, VERSION, program};
use crate::output::trace;
use crate::workload::Source;
use crate::workload::write::{Layout, csv};

/// Checks that an output is not one of the files that are read. Errors: [`Error::Plan`] at `--output`.
pub fn check_output<'a>(output: Option<&Path>, read: impl IntoIterator<Item = &'a PathBuf>) -> Result<()> {
    let Some(output) = output.filter(|path| path.exists()) else { return Ok(()) };
    let same = |path: &&PathBuf| matches!((path.canonicalize(), output.canonicalize()), (Ok(a), Ok(b)) if a == b);
    match read.into_iter().find(same) {
        None => Ok(()),
        Some(_) => Err(Error::plan("--output", format!("'{}'", output.display()), "another file: this one is read")),
    }
}

/// The target of a written trace.
pub enum SaveTarget {
    Stdout,
    Csv(PathBuf),
    Parquet(PathBuf),
}

impl SaveTarget {
    /// Selects the target by the file's extension. Errors: [`Error::Plan`] at `--output`.
    pub fn parse(path: Option<&Path>) -> Result<SaveTarget> {
        let Some(path) = path.filter(|path| *path != Path::new("-")) else { return Ok(SaveTarget::Stdout) };
        let ending = path.extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase());
        match ending.as_deref() {
            Some("csv") => Ok(SaveTarget::Csv(path.to_owned())),
            Some("parquet") => Ok(SaveTarget::Parquet(path.to_owned())),
            _ => {
                let expected = "a file that ends in .csv or .parquet, or - for CSV on standard output";
                Err(Error::plan("--output", format!("'{}'", path.display()), expected))
            }
        }
    }
}

impl SaveTarget {
    /// Returns the folder for temporary files: that of the output, or the one of the system.
    pub fn folder(&self) -> PathBuf {
        match self {
            SaveTarget::Stdout => std::env::temp_dir(),
            SaveTarget::Csv(path) | SaveTarget::Parquet(path) => {
                path.parent().filter(|folder| folder.is_dir()).map_or(".".into(), Path::to_owned)
            }
        }
    }
}

/// Writes a trace and its report; `open` opens the same source again. `facts` describe the origin.
pub fn save<S: Source>(
    open: &dyn Fn() -> Result<S>,
    target: &SaveTarget,
    facts: Map<String, Value>,
    context: &Context,
) -> Result<()> {
    let mut amounts = Amounts::default();
    let layout = Layout::scan_with(&mut open()?, |set| amounts.add(set))?;
    let record = record(facts, &amounts);
    let path = match target {
        SaveTarget::Stdout => {
            let mut out = BufWriter::new(Pipe(std::io::stdout().lock()));
            csv(&mut out, Path::new("standard output"), &mut open()?, &layout)?;
            out.flush().map_err(|error| Error::output("standard output", error))?;
            context.print_message(&report::amount(&amounts));
            return Ok(());
        }
        SaveTarget::Csv(path) => {
            write_with(path, |out| csv(out, path, &mut open()?, &layout))?;
            path
        }
        SaveTarget::Parquet(path) => {
            let mut metadata = program();
            metadata.push(("plimsoll.trace".to_owned(), record.to_string()));
            trace::write(path, &mut open()?, &layout, &metadata)?;
            path
        }
    };
    let beside = sidecar(path);
    write_whole(&beside, format!("{record:#}\n").as_bytes())?;
    context.print_message(&format!("{}: {}; report in {}", path.display(), report::amount(&amounts), beside.display()));
    Ok(())
}

fn record(facts: Map<String, Value>, amounts: &Amounts) -> Value {
    let mut record = Map::new();
    record.insert("version".into(), VERSION.into());
    record.insert("commit".into(), COMMIT.into());
    record.extend(facts);
    for (name, count) in
        [("rows", amounts.rows), ("jobs", amounts.jobs), ("users", amounts.users), ("tasks", amounts.tasks)]
    {
        record.insert(name.into(), count.into());
    }
    record.into()
}

/// Returns `trace.csv.json` for `trace.csv`.
fn sidecar(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".json");
    name.into()
}

/// Standard output; a closed pipe is no failure.
struct Pipe<W>(W);

impl<W: Write> Pipe<W> {
    fn or_end<T>(result: std::io::Result<T>) -> std::io::Result<T> {
        if matches!(&result, Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe) {
            std::process::exit(0);
        }
        result
    }
}

impl<W: Write> Write for Pipe<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        Self::or_end(self.0.write(bytes))
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Self::or_end(self.0.flush())
    }
}
