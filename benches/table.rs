//! Writes a million rows of `tasks` to a file. Baseline: the writer of polars with its default settings (the same rows in its arrays, its
//! choice of encodings, zstd). Both receive the rows one by one.

use std::fs::File;
use std::hint::black_box;
use std::io::BufWriter;
use std::sync::Arc;
use std::time::Duration;

use criterion::{Criterion, SamplingMode, Throughput, criterion_group, criterion_main};
use plimsoll::column::{Cell, Kind};
use plimsoll::output::schema::Table;
use plimsoll::output::table::{Constant, TableWriter};
use polars_arrow::array::{Array, MutableArray, MutablePlString, MutablePrimitiveArray};
use polars_arrow::datatypes::{ArrowDataType, ArrowSchema, Field};
use polars_arrow::record_batch::RecordBatchT;
use polars_parquet::write::{
    CompressionOptions, FileWriter, StatisticsOptions, Version, WriteOptions, ZstdLevel, get_dtype_encoding,
    row_group_iter,
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const ROWS: u64 = 1_000_000;

/// The number of rows in a row group of polars.
const GROUP: usize = 1 << 17;

/// A row of `tasks`, with numbers instead of names.
struct Row {
    job: u64,
    number: u64,
    user: u64,
    machine: u64,
    times: [u64; 3],
}

/// Returns jobs of up to 40 tasks that end interleaved with those of other jobs, as in a cluster of 400 machines.
fn rows() -> Vec<Row> {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut rows = Vec::new();
    let (mut job, mut submit) = (0, 0);
    while (rows.len() as u64) < ROWS {
        submit += rng.random_range(0..400_000);
        job += 1;
        let user = rng.random_range(0..100);
        for number in 0..rng.random_range(1..=40) {
            let start = submit + rng.random_range(0..3) * rng.random_range(0..5_000_000);
            let times = [submit, start, start + rng.random_range(1_000_000..90_000_000)];
            rows.push(Row { job, number, user, machine: rng.random_range(0..400), times });
        }
    }
    rows.truncate(ROWS as usize);
    rows.sort_by_key(|row| row.times[2]);
    rows
}

/// Calls `give` with the cells of each row.
fn each(rows: &[Row], mut give: impl FnMut([Cell<'_>; 10])) {
    use std::fmt::Write;
    let users: Vec<String> = (0..100).map(|user| format!("user{user}")).collect();
    let mut job = String::new();
    for row in rows {
        job.clear();
        write!(job, "job{}", row.job).expect("a string grows");
        let user = users[row.user as usize].as_str();
        let [release, start, finish] = row.times.map(Cell::from);
        let [number, machine] = [row.number, row.machine].map(Cell::from);
        let (job, user, outcome) = (Cell::Text(&job), Cell::Text(user), Cell::Text("finished"));
        give([job, number, Cell::Int(0), user, machine, Cell::Null, release, start, finish, outcome]);
    }
}

fn ours(rows: &[Row], folder: &std::path::Path) {
    let constants = [
        ("policy".to_owned(), Constant::Text("drf".to_owned())),
        ("run".to_owned(), Constant::Int(0)),
        ("seed".to_owned(), Constant::NoInt),
    ];
    let path = folder.join("tasks.parquet");
    let mut table = TableWriter::create(&path, &constants, Table::Tasks.fields(&[]), &[]).expect("a writable folder");
    each(rows, |row| table.push(row).expect("a row of its columns"));
    black_box(table.finish().expect("a writable folder"));
}

/// A growing column of polars.
enum Growing {
    Int(MutablePrimitiveArray<i64>),
    Text(MutablePlString),
}

fn polars(rows: &[Row], folder: &std::path::Path) {
    let columns =
        [("policy", Kind::Text), ("run", Kind::Int), ("seed", Kind::Int)].map(|(name, kind)| (name.to_owned(), kind));
    let fields = Table::Tasks.fields(&[]).into_iter().map(|field| (field.name, field.kind));
    let columns: Vec<(String, Kind)> = columns.into_iter().chain(fields).collect();
    let field = |(name, kind): &(String, Kind)| {
        let dtype = if *kind == Kind::Text { ArrowDataType::Utf8View } else { ArrowDataType::Int64 };
        Field::new(name.as_str().into(), dtype, true)
    };
    let schema: Arc<ArrowSchema> = Arc::new(columns.iter().map(field).collect());
    let compression = CompressionOptions::Zstd(ZstdLevel::try_new(1).ok());
    let options = WriteOptions {
        statistics: StatisticsOptions::default(),
        version: Version::V1,
        compression,
        data_page_size: None,
    };
    let file = BufWriter::new(File::create(folder.join("polars.parquet")).expect("a writable folder"));
    let mut writer = FileWriter::try_new(file, schema.as_ref().clone(), options).expect("types of Parquet");
    let encodings = || schema.iter_values().map(|field| get_dtype_encoding(&field.dtype)).collect();
    let empty = || {
        columns.iter().map(|(_, kind)| match kind {
            Kind::Text => Growing::Text(MutablePlString::new()),
            _ => Growing::Int(MutablePrimitiveArray::new()),
        })
    };
    for rows in rows.chunks(GROUP) {
        let mut growing: Vec<Growing> = empty().collect();
        each(rows, |row| {
            let constants = [Cell::Text("drf"), Cell::Int(0), Cell::Null];
            for (column, cell) in growing.iter_mut().zip(constants.into_iter().chain(row)) {
                match (column, cell) {
                    (Growing::Int(column), Cell::Int(value)) => column.push(Some(value)),
                    (Growing::Int(column), _) => column.push(None),
                    (Growing::Text(column), Cell::Text(text)) => column.push_value(text),
                    (Growing::Text(column), _) => column.push_null(),
                }
            }
        });
        let array = |column: Growing| -> Box<dyn Array> {
            match column {
                Growing::Int(mut column) => column.as_box(),
                Growing::Text(mut column) => column.as_box(),
            }
        };
        let columns = growing.into_iter().map(array).collect();
        let group = RecordBatchT::try_new(rows.len(), schema.clone(), columns).expect("columns of one length");
        let types = writer.parquet_schema().fields().to_vec();
        writer.write(rows.len() as u64, row_group_iter(group, encodings(), types, options)).expect("a row group");
    }
    writer.end(None).expect("a table");
    writer.into_inner().into_inner().expect("a writable folder").sync_all().expect("a disk");
}

fn write(criterion: &mut Criterion) {
    let rows = rows();
    let folder = tempfile::tempdir().expect("a folder");
    let mut group = criterion.benchmark_group("tasks");
    group.throughput(Throughput::Elements(ROWS)).sampling_mode(SamplingMode::Flat);
    group.bench_function("table", |bencher| bencher.iter(|| ours(&rows, folder.path())));
    group.bench_function("polars", |bencher| bencher.iter(|| polars(&rows, folder.path())));
    for name in ["tasks.parquet", "polars.parquet"] {
        let size = std::fs::metadata(folder.path().join(name)).map_or(0, |about| about.len());
        println!("{name}: {:.1} bytes a row", size as f64 / ROWS as f64);
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(5));
    targets = write
}
criterion_main!(benches);
