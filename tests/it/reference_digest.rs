//! Digests of the result tables. A digest covers column names and values only.
//!
//! A value is digested by its meaning, regardless of its type or encoding: 3 has the same digest as an integer and as a float. Floats are
//! rounded to 12 digits, since the last bits of `ln` and `exp` differ between platforms. Nulls differ from every value. Rows are digested
//! in order, files in the order of their paths.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use polars_arrow::array::{Array, PrimitiveArray, Utf8ViewArray};

use crate::frame::{Frame, Values, write};
use crate::replay::files;

/// The number of parts of a column that have their own digest, so that a difference can be located by row.
const PARTS: usize = 8;

/// The recorded lines about the tables of a plan: per table a line with its row count, and per column a line with a digest, the
/// digests of its eighths, and the mean of its numbers.
pub type Lines = BTreeMap<String, String>;

/// A table: the folder and the content of each of its files.
struct Table {
    parts: Vec<(String, Frame)>,
    /// The columns of any part, in alphabetical order.
    columns: Vec<String>,
}

/// The tables below a folder of results, by name, and the lines about them.
pub struct Tables {
    tables: BTreeMap<String, Table>,
    /// The lines that the reference records.
    pub lines: Lines,
}

impl Tables {
    /// Reads all Parquet tables below a folder. If there are none (plans without runs), reads the data of the figures.
    pub fn read(folder: &Path) -> Tables {
        let ends = |path: &PathBuf, ending: &str| path.extension().is_some_and(|found| found == ending);
        let all = files(folder);
        let mut paths: Vec<PathBuf> = all.iter().filter(|path| ends(path, "parquet")).cloned().collect();
        if paths.is_empty() {
            paths = all.into_iter().filter(|path| ends(path, "csv")).collect();
        }
        paths.sort();
        let mut tables: BTreeMap<String, Table> = BTreeMap::new();
        for path in paths {
            let name = path.file_stem().expect("files have names").to_string_lossy().into_owned();
            let frame = if ends(&path, "csv") { csv(&path) } else { Frame::open(&path) };
            let table = tables.entry(name).or_insert_with(|| Table { parts: Vec::new(), columns: Vec::new() });
            table.columns.extend(frame.columns().map(str::to_owned));
            let below = path.strip_prefix(folder).expect("files were listed there");
            let place = below.parent().unwrap_or(Path::new("")).display().to_string();
            table.parts.push((place, frame));
        }
        let mut lines = Lines::new();
        for (name, table) in &mut tables {
            table.columns.sort();
            table.columns.dedup();
            lines.insert(name.clone(), table.rows().to_string());
            lines.extend(table.columns.iter().map(|column| (format!("{name}.{column}"), table.line(column))));
        }
        Tables { tables, lines }
    }

    /// Returns the differences from the recorded lines.
    pub fn differences(&self, wanted: &Lines) -> Vec<String> {
        let mut found = Vec::new();
        for key in wanted.keys().chain(self.lines.keys().filter(|key| !wanted.contains_key(*key))) {
            match (wanted.get(key), self.lines.get(key)) {
                (Some(was), Some(is)) if was == is => {}
                (Some(was), Some(is)) => found.push(format!("{key}: {}", self.difference(key, was, is))),
                (Some(_), None) => found.push(format!("{key} is gone")),
                (None, _) => found.push(format!("{key} is new")),
            }
        }
        found
    }

    /// Returns a description of the difference of a line.
    fn difference(&self, key: &str, was: &str, is: &str) -> String {
        let Some((name, column)) = key.split_once('.') else { return format!("{was} rows before, {is} now") };
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<String>>();
        let ([_, parts, mean], [_, now, mean_now]) = (&words(was)[..], &words(is)[..]) else {
            return "its line in the reference cannot be read".to_owned();
        };
        let means = if mean == mean_now { String::new() } else { format!(", mean {mean} before, {mean_now} now") };
        let table = &self.tables[name];
        let differs = |part: &usize| parts.get(2 * part..2 * part + 2) != now.get(2 * part..2 * part + 2);
        // The digest of a part has 8 bits, so a different part has the same digest with a probability of 1/256. If the number of rows
        // differs, the parts contain other rows.
        let at = (0..PARTS).find(differs).map_or(0, |part| table.bounds(part).0);
        format!("other values{means}; the first is not before {}", table.place(at, column))
    }
}

impl Table {
    fn rows(&self) -> usize {
        self.parts.iter().map(|(_, frame)| frame.height()).sum()
    }

    /// Returns the rows of a part of a column: the first row, and the row after the last.
    fn bounds(&self, part: usize) -> (usize, usize) {
        (part * self.rows() / PARTS, (part + 1) * self.rows() / PARTS)
    }

    /// Returns the recorded line of a column.
    fn line(&self, column: &str) -> String {
        let (mut whole, mut parts) = (blake3::Hasher::new(), vec![blake3::Hasher::new(); PARTS]);
        let (mut row, mut part, mut sum, mut numbers) = (0, 0, 0.0, 0u64);
        for (_, frame) in &self.parts {
            values(frame, column, |value, number| {
                while row >= self.bounds(part).1 {
                    part += 1;
                }
                whole.update(value);
                parts[part].update(value);
                row += 1;
                if let Some(number) = number {
                    sum += number;
                    numbers += 1;
                }
            });
        }
        let hex = |hasher: &blake3::Hasher, digits: usize| hasher.finalize().to_hex()[..digits].to_owned();
        let parts: String = parts.iter().map(|part| hex(part, 2)).collect();
        let mean = if numbers == 0 { "-".to_owned() } else { short(sum / numbers as f64) };
        format!("{} {parts} {mean}", hex(&whole, 8))
    }

    /// Returns the place of a row and its value in a column.
    fn place(&self, row: usize, column: &str) -> String {
        let mut before = 0;
        for (place, frame) in &self.parts {
            if row < before + frame.height() {
                let value = frame.get(column).map_or("no such column".to_owned(), |values| values.shown(row - before));
                return format!("row {} of {place}, which has {value}", row - before);
            }
            before += frame.height();
        }
        "the end".to_owned()
    }
}

/// Reads a CSV file. If all cells of a column are numbers or empty, its values are numbers and nulls.
fn csv(path: &Path) -> Frame {
    let mut reader = csv::Reader::from_path(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let names = reader.headers().expect("a header").clone();
    let rows: Vec<csv::StringRecord> = reader.records().map(|row| row.expect("as many cells as columns")).collect();
    let column = |(at, name): (usize, &str)| {
        let cells: Vec<&str> = rows.iter().map(|row| &row[at]).collect();
        let number = |cell: &&str| cell.parse::<f64>().ok();
        let values = match cells.iter().all(|cell| cell.is_empty() || number(cell).is_some()) {
            true => Values::Real(cells.iter().map(number).collect()),
            false => Values::Text(cells.iter().map(|cell| Some((*cell).to_owned())).collect()),
        };
        (name.to_owned(), values)
    };
    Frame(names.iter().enumerate().map(column).collect())
}

/// Passes each value of a column to `give`: its bytes for the digest, and the number if it is one.
fn values(frame: &Frame, name: &str, mut give: impl FnMut(&[u8], Option<f64>)) {
    let (mut text, null) = (String::new(), b"null\n");
    match frame.get(name) {
        // This file lacks the column; other files of the table have it.
        None => (0..frame.height()).for_each(|_| give(b"absent\n", None)),
        Some(Values::Text(values)) => values.iter().for_each(|value| match value {
            None => give(null, None),
            Some(value) => {
                text.clear();
                writeln!(text, "{} {value}", value.len()).expect("memory");
                give(text.as_bytes(), None);
            }
        }),
        Some(Values::Real(values)) => values.iter().for_each(|value| match value {
            None => give(null, None),
            Some(value) => give(float(&mut text, *value), Some(*value)),
        }),
        Some(Values::Whole(values)) => values.iter().for_each(|value| match value {
            None => give(null, None),
            Some(value) => {
                text.clear();
                writeln!(text, "{value}").expect("memory");
                give(text.as_bytes(), Some(*value as f64));
            }
        }),
    }
}

/// Writes a float with 12 digits, and a whole number of at most 15 digits like an integer.
fn float(text: &mut String, value: f64) -> &[u8] {
    text.clear();
    write!(text, "{value:.11e}").expect("memory");
    let rounded: f64 = text.parse().expect("it was a number");
    if rounded.fract() == 0.0 && rounded.abs() < 1e15 {
        text.clear();
        write!(text, "{}", if value.abs() < 1e12 { rounded as i64 } else { value as i64 }).expect("memory");
    }
    text.push('\n');
    text.as_bytes()
}

/// Formats a mean for display, with six digits.
fn short(value: f64) -> String {
    let rounded: f64 = format!("{value:.5e}").parse().expect("it was a number");
    if rounded != 0.0 && (rounded.abs() < 1e-4 || rounded.abs() >= 1e15) {
        format!("{rounded:e}")
    } else {
        rounded.to_string()
    }
}

const NAMES: [&str; 10] = ["u0", "u1", "u2", "u3", "u4", "u5", "u6", "u7", "u8", "u9"];

type Columns = Vec<(&'static str, Box<dyn Array>)>;

/// Returns a column of ten floats, with a null for each `None`.
fn floats(values: impl Fn(usize) -> Option<f64>) -> Box<dyn Array> {
    PrimitiveArray::from((0..10).map(values).collect::<Vec<Option<f64>>>()).to_boxed()
}

/// Writes a table of numbers, names and nulls in two files, after `change` has modified the columns, and reads it.
fn written(change: impl Fn(usize, &mut Columns)) -> (tempfile::TempDir, Tables) {
    let dir = tempfile::tempdir().expect("a temporary folder");
    for run in 0..2usize {
        let of = |at: usize| (run * 10 + at) as f64;
        let mut columns = vec![
            ("whole", PrimitiveArray::from_vec((0..10).map(|at| of(at) as i64).collect()).to_boxed()),
            ("part", floats(|at| (at != 4).then_some(of(at) / 3.0))),
            ("name", Utf8ViewArray::from_slice_values(NAMES).to_boxed()),
        ];
        change(run, &mut columns);
        let folder = dir.path().join(format!("runs/policy=drf/run={run}"));
        std::fs::create_dir_all(&folder).expect("a temporary folder");
        write(&folder.join("runs.parquet"), columns);
    }
    let tables = Tables::read(dir.path());
    (dir, tables)
}

/// A changed value is reported with its place. A change of type, column order or insignificant digits is ignored.
#[test]
fn digests_are_of_names_and_values_and_of_nothing_else() {
    let (_dir, plain) = written(|_, _| {});
    assert_eq!(plain.lines["runs"], "20");
    assert!(plain.lines["runs.whole"].ends_with(" 9.5"), "{}", plain.lines["runs.whole"]);
    let differs = |change: &dyn Fn(usize, &mut Columns)| written(change).1.differences(&plain.lines);
    // Another type, another order of columns, and a difference beyond twelve digits.
    let same = differs(&|run, columns| {
        columns[0].1 = floats(|at| Some((run * 10 + at) as f64 * (1.0 + 1e-14)));
        columns.reverse();
    });
    assert_eq!(same, [""; 0]);
    let one = differs(&|run, columns| {
        columns[0].1 = floats(|at| Some((run * 10 + at) as f64 + if run * 10 + at == 13 { 1e-9 } else { 0.0 }));
    });
    assert_eq!(
        one,
        ["runs.whole: other values; the first is not before row 2 of runs/policy=drf/run=1, which has 12.0"]
    );
    let renamed = differs(&|_, columns| columns[2].0 = "user");
    assert_eq!(renamed, ["runs.name is gone", "runs.user is new"]);
    let filled = differs(&|run, columns| {
        columns[1].1 = floats(|at| Some(if at == 4 { 0.0 } else { (run * 10 + at) as f64 / 3.0 }));
    });
    assert_eq!(filled.len(), 1, "a null is no 0: {filled:?}");
    let turned = differs(&|_, columns| {
        let backwards: Vec<&str> = NAMES.into_iter().rev().collect();
        columns[2].1 = Utf8ViewArray::from_slice_values(backwards).to_boxed();
    });
    assert!(turned.len() == 1 && turned[0].starts_with("runs.name: other values; "), "the order of rows: {turned:?}");
}
