//! Reads a canonical trace of a million rows from memory, as CSV and as Parquet. Baselines: the `csv` crate with serde into a struct,
//! without checks and interning, and the `csv` crate that only splits fields, which is a lower bound for any reader that uses it.

use std::fmt::Write as _;
use std::hint::black_box;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use criterion::{Criterion, SamplingMode, Throughput, criterion_group, criterion_main};
use plimsoll::output::trace::{ParquetTrace, write};
use plimsoll::units::MAX_DIMS;
use plimsoll::workload::write::Layout;
use plimsoll::workload::{CsvTrace, Input, Source};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const ROWS: u64 = 1_000_000;

/// Returns rows like those of a cluster's log: 100 users, times in milliseconds, two resources.
fn text() -> String {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut text = "job,user,submit_s,duration_s,tasks,cpu,memory_gib\n".to_owned();
    let mut now = 0u64;
    for job in 0..ROWS {
        now += rng.random_range(0..60);
        let (user, duration, tasks) = (rng.random_range(0..100), rng.random_range(1..900_000), rng.random_range(1..9));
        let (cpu, memory) = (rng.random_range(1..=8), rng.random_range(1..80));
        writeln!(
            text,
            "job{job},user{user},{}.{:03},{}.{:03},{tasks},{}.{},{}.{}",
            now / 1000,
            now % 1000,
            duration / 1000,
            duration % 1000,
            cpu / 2,
            cpu % 2 * 5,
            memory / 4,
            memory % 4 * 25,
        )
        .expect("a string grows");
    }
    text
}

#[derive(serde::Deserialize)]
struct Row {
    job: String,
    user: String,
    submit_s: f64,
    duration_s: f64,
    tasks: u32,
    cpu: f64,
    memory_gib: f64,
}

/// Returns the same trace as Parquet.
fn parquet(input: &Input) -> Arc<[u8]> {
    let source = || CsvTrace::new(input).expect("a canonical trace");
    let layout = Layout::scan(&mut source()).expect("a canonical trace");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("trace.parquet");
    write(&path, &mut source(), &layout, &[]).expect("a writable folder");
    std::fs::read(path).expect("a trace").into()
}

fn canonical(mut trace: impl Source) -> u64 {
    let mut sum = 0;
    while let Some(set) = trace.next_set().expect("a canonical trace") {
        sum += set.submit.0 + set.duration.0 + u64::from(set.tasks) + set.demand.0[..MAX_DIMS].iter().sum::<u64>();
    }
    sum
}

fn with_serde(bytes: &[u8]) -> f64 {
    let mut sum = 0.0;
    for row in csv::Reader::from_reader(bytes).deserialize() {
        let row: Row = row.expect("a row");
        sum += row.submit_s + row.duration_s + f64::from(row.tasks) + row.cpu + row.memory_gib;
        black_box((row.job, row.user));
    }
    sum
}

fn fields(bytes: &[u8]) -> usize {
    let mut reader = csv::Reader::from_reader(bytes);
    let (mut record, mut sum) = (csv::ByteRecord::new(), 0);
    while reader.read_byte_record(&mut record).expect("a row") {
        sum += record.len();
    }
    sum
}

fn read(criterion: &mut Criterion) {
    let bytes: Arc<[u8]> = text().into_bytes().into();
    let input = Input::Bytes(PathBuf::from("trace.csv"), bytes.clone());
    let mut group = criterion.benchmark_group("trace");
    group.throughput(Throughput::Elements(ROWS)).sampling_mode(SamplingMode::Flat);
    group.bench_function("canonical csv", |bencher| {
        bencher.iter(|| black_box(canonical(CsvTrace::new(&input).expect("a trace"))))
    });
    let columns = Input::Bytes(PathBuf::from("trace.parquet"), parquet(&input));
    group.bench_function("canonical parquet", |bencher| {
        bencher.iter(|| black_box(canonical(ParquetTrace::new(&columns, &[]).expect("a trace"))))
    });
    group.bench_function("csv with serde", |bencher| bencher.iter(|| black_box(with_serde(&bytes))));
    group.bench_function("csv fields only", |bencher| bencher.iter(|| black_box(fields(&bytes))));
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(2));
    targets = read
}
criterion_main!(benches);
