//! Numbers that are read directly from a Parquet trace equal those parsed from the text of its columns.

use polars_arrow::array::{Array, BooleanArray, MutablePlString, PrimitiveArray};
use polars_arrow::types::NativeType;
use polars_parquet::write::CompressionOptions;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;
use crate::parquet::tests::written;

/// A task set with the name of its job.
type Row = (TaskSet, String);

/// Reads a trace as a run does.
fn typed(bytes: &[u8]) -> Result<Vec<Row>> {
    let mut trace = ParquetTrace::new(&Input::Bytes("t.parquet".into(), bytes.into()), &[])?;
    let mut rows = Vec::new();
    while let Some(set) = trace.next_set()? {
        rows.push((set, trace.job_names().text(&trace.job_name())));
    }
    Ok(rows)
}

/// Converts all columns to text first and parses it: the slow way.
fn by_text(bytes: &[u8]) -> Result<Vec<Row>> {
    let path = Path::new("t.parquet");
    let mut file = Parquet::open(path, Bytes::Memory(bytes.into()), damaged)?;
    let names: Vec<String> = file.columns().iter().map(|(name, _)| name.clone()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let columns = Columns::find(path, names.iter().copied(), &[])?;
    file.select(&names)?;
    let text: Vec<NameList> = file.read(0, file.rows())?.iter().map(|column| column.names().expect("text")).collect();
    let mut assembler = Assembler::default();
    let parse = |row| {
        let mut set = TaskSet::default();
        let fields = text.iter().map(|column| column.get(row).as_bytes());
        let parsed = RowParser { columns: &columns, rows: &mut assembler }.parse(row as u64, fields, &mut set);
        let name = parsed.map_err(|(column, problem)| {
            Error::trace(path, 0, &columns.names[column], format!("row {}: {problem}", row + 1))
        })?;
        Ok((set, assembler.job_names.text(&name)))
    };
    (0..file.rows()).map(parse).collect()
}

/// Returns a random double of one kind: an integer, a decimal fraction, a multiple of 1/1024, any number below 1000, a large number, or a
/// special value (negative, NaN, infinite, very small).
fn double(kind: u32, random: &mut ChaCha8Rng) -> f64 {
    let bits = random.random_range(1..62);
    let large = random.random_range(0..1u64 << bits) as f64;
    match kind {
        0..=2 => f64::from(random.random_range(0..100)),
        3..=5 => large / 10f64.powi(random.random_range(0..9)),
        6..=8 => large / 1024.0,
        9..=10 => random.random_range(0.0..1000.0),
        11 => large,
        _ => [-0.0, -1.5, f64::NAN, f64::INFINITY, 1e30, 1e-30, 1e15, 0.1 + 0.2][random.random_range(0..8)],
    }
}

fn numbers<T: NativeType>(rows: usize, value: impl FnMut(usize) -> Option<T>) -> Box<dyn Array> {
    PrimitiveArray::from_iter((0..rows).map(value)).to_boxed()
}

/// Returns a column of one of the types that can be read. `odd` columns may contain anything, others values that are valid in a trace.
fn column(rows: usize, odd: bool, random: &mut ChaCha8Rng) -> Box<dyn Array> {
    let absent = if odd { random.random_range(0..3) } else { 0 };
    let kind = random.random_range(0..if odd { 13 } else { 9 });
    let dtype = random.random_range(0..if odd { 12 } else { 10 });
    let some = |random: &mut ChaCha8Rng| random.random_range(0..10) >= absent;
    let small = |random: &mut ChaCha8Rng| random.random_range(1..9u8);
    let text = |value: f64| if kind % 2 == 0 { value.to_string() } else { format!(" {value:e}") };
    match dtype {
        0 => numbers(rows, |_| some(random).then(|| small(random) as i8)),
        1 => numbers(rows, |_| some(random).then(|| i16::from(small(random)))),
        2 => numbers(rows, |_| some(random).then(|| i32::from(small(random)) - if odd { 1 } else { 0 })),
        3 => numbers(rows, |_| some(random).then(|| small(random))),
        4 => numbers(rows, |_| some(random).then(|| u16::from(small(random)))),
        5 => numbers(rows, |_| some(random).then(|| u32::from(small(random)))),
        6 => numbers(rows, |_| some(random).then(|| if odd { random.random::<u64>() } else { small(random).into() })),
        7 => numbers(rows, |_| some(random).then(|| double(kind, random) as f32)),
        8 => numbers(rows, |_| some(random).then(|| double(kind, random))),
        9 => {
            let mut column = MutablePlString::new();
            (0..rows).for_each(|_| match some(random) {
                true => column.push_value(text(double(kind, random))),
                false => column.push_null(),
            });
            column.freeze().to_boxed()
        }
        10 => numbers(rows, |_| some(random).then(|| random.random::<i64>() >> random.random_range(0..64))),
        _ => BooleanArray::from_iter((0..rows).map(|_| some(random).then(|| random.random::<bool>()))).to_boxed(),
    }
}

#[test]
fn numbers_are_what_their_text_says() {
    let (mut sound, mut refused) = (0, 0);
    for seed in 0..4000 {
        let random = &mut ChaCha8Rng::seed_from_u64(seed);
        let rows = random.random_range(1..30);
        let mut names = MutablePlString::new();
        (0..rows).for_each(|row| names.push_value(format!("j{row}")));
        let submit = random.random_range(1..1_000_000_000);
        let submit = match random.random_range(0..3) {
            0 => numbers(rows, |row| Some(row as i64 * submit)),
            1 => numbers(rows, |row| Some(row as u32)),
            _ => numbers(rows, |row| Some((row as i64 * submit) as f64 / 1e6)),
        };
        let user: Box<dyn Array> = match random.random_range(0..3) {
            0 => names.clone().freeze().to_boxed(),
            1 => numbers(rows, |row| Some(row as i32 - 3)),
            _ => numbers(rows, |row| Some(row as f64 / 2.0)),
        };
        let job = names.freeze().to_boxed();
        let mut columns = vec![("job", job), ("user", user), ("submit_s", submit)];
        let optional =
            ["gpu", "disk_gib", "tasks", "priority", "gang", "stage", "estimate_ms", "deadline_s", "stable", "label"];
        let others = optional.into_iter().filter(|_| random.random_range(0..6) == 0).collect::<Vec<_>>();
        let odd = random.random_range(0..6);
        for (at, name) in ["duration_us", "cpu", "memory_gib"].into_iter().chain(others).enumerate() {
            columns.push((name, column(rows, at == odd, random)));
        }
        let bytes = written(&columns, rows.div_ceil(2), CompressionOptions::Uncompressed);
        let [typed, by_text] = [typed(&bytes), by_text(&bytes)].map(|rows| rows.map_err(|error| error.to_string()));
        assert_eq!(typed, by_text, "seed {seed}");
        if typed.is_ok() { sound += 1 } else { refused += 1 }
    }
    assert!(sound > 500 && refused > 500, "{sound} sound, {refused} refused: both are tested");
}
