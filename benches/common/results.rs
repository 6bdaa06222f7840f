//! The output of benchmarks run with `--table`: Parquet, CSV and figures below `results/`.

use std::path::{Path, PathBuf};

use plimsoll::column::{Cell, Kind};
use plimsoll::error::{Error, Result};
use plimsoll::output::file::write_whole;
use plimsoll::output::picture::Picture;
use plimsoll::output::provenance::Provenance;
use plimsoll::output::table::{Field, TableWriter};
use plimsoll::tree::{Node, Place};

/// Returns the file name after `--table`, or the default.
pub fn path<'a>(words: &'a [String], default: &'a str) -> &'a str {
    // Cargo appends `--bench` to the arguments.
    words.first().map(String::as_str).filter(|word| !word.starts_with("--")).unwrap_or(default)
}

/// Returns the folder of this name under `results/`. Errors: the name has other characters than letters, digits, `-` and `_`.
pub fn folder(plan: &Path, name: &str) -> Result<PathBuf> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    if name.is_empty() || !name.chars().all(plain) {
        let problem = format!("'{name}': expected letters, digits, '-' and '_'");
        return Err(Place::whole_text(plan, "").wrong("name", problem));
    }
    Ok(Path::new(env!("CARGO_MANIFEST_DIR")).join("results").join(name))
}

/// Reads a file that describes the measurements. Errors: the file cannot be read or parsed, or `check` refuses it.
pub fn plan<P: serde::de::DeserializeOwned>(
    path: &Path,
    check: impl Fn(&P) -> std::result::Result<(), &'static str>,
) -> Result<(P, String)> {
    let text = std::fs::read_to_string(path).map_err(|source| Error::io(path, source))?;
    let whole = Place::whole_text(path, text);
    let plan: P = Node::toml(&whole)?.read()?;
    check(&plan).map_err(|problem| whole.wrong("", problem))?;
    Ok((plan, whole.text().to_owned()))
}

/// Writes `NAME.parquet`, `NAME.csv`, and each figure as SVG and PNG.
pub fn write<const N: usize>(
    folder: &Path,
    name: &str,
    columns: &[(&str, Kind); N],
    rows: &[[Cell<'_>; N]],
    figures: &[(&str, String)],
    plan: &str,
) -> Result<()> {
    let fields = columns.map(|(name, kind)| Field::new(name, kind)).to_vec();
    let metadata = [("plimsoll.plan".to_owned(), plan.to_owned())];
    let mut table = TableWriter::create(&folder.join(format!("{name}.parquet")), &[], fields, &metadata)?;
    let mut csv = columns.map(|(name, _)| name).join(",") + "\n";
    for row in rows {
        table.push(*row)?;
        let texts = row.map(|cell| match cell {
            Cell::Null => String::new(),
            Cell::Int(value) => value.to_string(),
            Cell::Large(value) => value.to_string(),
            Cell::Float(value) => format!("{value:.3}"),
            Cell::Text(text) => text.to_owned(),
        });
        csv += &(texts.join(",") + "\n");
    }
    table.finish()?;
    write_whole(&folder.join(format!("{name}.csv")), csv.as_bytes())?;
    let about = Provenance::of_plan(plan);
    for (figure, svg) in figures {
        for ending in ["svg", "png"] {
            Picture::from_path(&folder.join(format!("{figure}.{ending}")))?.write(svg, &about)?;
        }
    }
    Ok(())
}
