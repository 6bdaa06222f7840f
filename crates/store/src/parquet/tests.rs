//! Damaged and hostile files give an error that names the file, or a value, and never a panic.

use std::io::Write;

use polars_arrow::array::{BooleanArray, MutablePlString, PrimitiveArray};
use polars_arrow::record_batch::RecordBatchT;
use polars_parquet::write::{
    CompressionOptions, FileWriter, StatisticsOptions, Version, WriteOptions, get_dtype_encoding, row_group_iter,
};
use polars_parquet_format::thrift::protocol::TCompactOutputProtocol;
use polars_parquet_format::{ConvertedType, LogicalType, TimestampType, Type};
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;
use crate::frame::Frame;
use crate::trace::ParquetTrace;
use plimsoll_sim::workload::{Input, Source};

/// Number of mutated files that are read.
const MUTATIONS: u64 = 3000;

/// Returns a table of integers, doubles and names in row groups of `group` rows, with or without compression.
fn table(rows: i32, group: usize, compression: CompressionOptions) -> Vec<u8> {
    let names = |name: &dyn Fn(i32) -> String| {
        let mut column = MutablePlString::new();
        column.extend_values((0..rows).map(name));
        column.freeze().to_boxed()
    };
    let whole = |value: fn(i32) -> i64| PrimitiveArray::from_vec((0..rows).map(value).collect()).to_boxed();
    let double = |value: fn(i32) -> f64| PrimitiveArray::from_vec((0..rows).map(value).collect()).to_boxed();
    let columns = [
        ("job", names(&|at| format!("j{at}"))),
        ("user", names(&|at| ["ann", "bob"][at as usize % 2].to_owned())),
        ("submit_s", whole(i64::from)),
        ("duration_s", double(|at| f64::from(at) / 7.0)),
        ("tasks", PrimitiveArray::from_iter((0..rows).map(|at| (at % 3 > 0).then_some(at % 5 + 1))).to_boxed()),
        ("gang", BooleanArray::from_iter((0..rows).map(|at| Some(at % 4 == 0))).to_boxed()),
        ("cpu", whole(|at| i64::from(at % 9))),
        ("gpu", double(|at| f64::from(at % 2))),
    ];
    written(&columns, group, compression)
}

/// Returns columns as polars writes them, in row groups of `group` rows.
pub(crate) fn written(columns: &[(&str, Box<dyn Array>)], group: usize, compression: CompressionOptions) -> Vec<u8> {
    let field = |(name, array): &(&str, Box<dyn Array>)| Field::new((*name).into(), array.dtype().clone(), true);
    let rows = columns[0].1.len();
    let schema: Arc<ArrowSchema> = Arc::new(columns.iter().map(field).collect());
    let statistics = StatisticsOptions::default();
    let options = WriteOptions { statistics, version: Version::V1, compression, data_page_size: None };
    let mut writer = FileWriter::try_new(Vec::new(), schema.as_ref().clone(), options).expect("types of Parquet");
    for start in (0..rows).step_by(group) {
        let length = group.min(rows - start);
        let part = columns.iter().map(|(_, array)| array.sliced(start, length)).collect();
        let part = RecordBatchT::try_new(length, schema.clone(), part).expect("columns of one length");
        let encodings = schema.iter_values().map(|field| get_dtype_encoding(&field.dtype)).collect();
        let types = writer.parquet_schema().fields().to_vec();
        writer.write(length as u64, row_group_iter(part, encodings, types, options)).expect("a row group");
    }
    writer.end(None).expect("a table");
    writer.into_inner()
}

/// Returns the file with a changed footer.
fn with_footer(bytes: &[u8], change: impl FnOnce(&mut FileMetaData)) -> Vec<u8> {
    let end = bytes.len() - TAIL as usize;
    let length = u32::from_le_bytes(bytes[end..end + 4].try_into().expect("four bytes")) as usize;
    let mut protocol = TCompactInputProtocol::new(&bytes[end - length..end], 1 << 20);
    let mut footer = FileMetaData::read_from_in_protocol(&mut protocol).expect("a footer");
    change(&mut footer);
    let mut changed = bytes[..end - length].to_vec();
    let before = changed.len();
    footer.write_to_out_protocol(&mut TCompactOutputProtocol::new(&mut changed)).expect("in memory");
    let length = (changed.len() - before) as u32;
    changed.write_all(&length.to_le_bytes()).and_then(|()| changed.write_all(MAGIC)).expect("in memory");
    changed
}

/// Reads a trace to its end; returns the number of its rows.
fn read_trace(bytes: &[u8]) -> Result<usize> {
    let mut trace = ParquetTrace::new(&Input::Bytes("damaged.parquet".into(), bytes.into()), &[])?;
    let mut rows = 0;
    while trace.next_set()?.is_some() {
        rows += 1;
    }
    Ok(rows)
}

/// Reads all columns of a table, as results are read; returns the number of its rows.
fn read_table(file: &Path, bytes: &[u8]) -> Result<usize> {
    std::fs::write(file, bytes).expect("writable");
    let frame = Frame::open(file)?.expect("a file");
    let lengths = ["submit_s", "duration_s", "tasks"].map(|name| frame.numbers(name).map(|values| values.len()));
    let names = frame.names("user")?.len();
    lengths.into_iter().collect::<Result<Vec<_>>>()?.iter().for_each(|length| assert_eq!(*length, names));
    Ok(names)
}

/// Applies one to four changes: bits, bytes, lengths, cuts, insertions; most of them near the end, where the footer is.
fn mutate(bytes: &mut Vec<u8>, random: &mut ChaCha8Rng) {
    const TELLING: [u8; 8] = [0, 1, 0x7f, 0x80, 0xff, 0xf9, 0xfc, 0x19];
    for _ in 0..random.random_range(1..=4) {
        let late = bytes.len() - (bytes.len() / 3).min(900);
        let from = if random.random_range(0..3) > 0 { late } else { 0 };
        if bytes.len() < 16 {
            return;
        }
        let at = random.random_range(from..bytes.len());
        match random.random_range(0..8) {
            0..=2 => bytes[at] ^= 1 << random.random_range(0..8),
            3 | 4 => bytes[at] = TELLING[random.random_range(0..TELLING.len())],
            5 => {
                let length = random.next_u32() >> random.random_range(0..32);
                let tail = bytes.len() - 8;
                bytes[tail..tail + 4].copy_from_slice(&length.to_le_bytes());
            }
            6 => {
                let to = (at + random.random_range(1..40)).min(bytes.len());
                let cut: Vec<u8> = bytes.drain(at..to).collect();
                if random.random() {
                    let at = random.random_range(0..=bytes.len());
                    bytes.splice(at..at, cut);
                }
            }
            _ if random.random_range(0..4) == 0 => bytes.truncate(at),
            _ => {
                let many: Vec<u8> = (0..random.random_range(1..9)).map(|_| random.random()).collect();
                let to = (at + many.len()).min(bytes.len());
                bytes.splice(at..to, many);
            }
        }
    }
}

#[test]
fn whatever_is_damaged_is_an_error_with_the_file_and_never_a_panic() {
    let many = std::env::var("PLIMSOLL_MUTATIONS").ok().and_then(|many| many.parse().ok()).unwrap_or(MUTATIONS);
    let whole = [
        table(60, 30, CompressionOptions::Uncompressed),
        table(40, 40, CompressionOptions::Zstd(None)),
        table(3, 1, CompressionOptions::Snappy),
    ];
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("damaged.parquet");
    assert_eq!(whole.each_ref().map(|bytes| read_trace(bytes).expect("a trace")), [60, 40, 3]);
    assert_eq!(whole.each_ref().map(|bytes| read_table(&file, bytes).expect("a table")), [60, 40, 3]);
    let (mut sound, mut refused) = (0u64, 0u64);
    for seed in 0..many {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut bytes = whole[random.random_range(0..whole.len())].clone();
        mutate(&mut bytes, &mut random);
        for result in [read_trace(&bytes), read_table(&file, &bytes)] {
            match result {
                Ok(_) => sound += 1,
                Err(error) => {
                    refused += 1;
                    assert!(error.to_string().contains("damaged.parquet"), "seed {seed}: {error}");
                }
            }
        }
    }
    assert!(sound > many / 50 && refused > many, "{sound} sound, {refused} refused: the mutations test something");
}

#[test]
fn every_compression_is_read() {
    use CompressionOptions::{Brotli, Gzip, Lz4Raw, Snappy, Uncompressed, Zstd};
    for compression in [Uncompressed, Snappy, Gzip(None), Brotli(None), Zstd(None), Lz4Raw] {
        assert_eq!(read_trace(&table(60, 25, compression)).expect("a trace"), 60, "{compression:?}");
    }
}

#[test]
fn slices_lie_across_row_groups_and_come_in_any_order() {
    let bytes = Bytes::Memory(table(60, 25, CompressionOptions::Snappy).into());
    let complain = |path: &Path, problem: &str| Error::trace(path, 0, "", problem);
    let mut file = Parquet::open(Path::new("sound.parquet"), bytes, complain).expect("a sound file");
    file.select(&["tasks", "submit_s", "job"]).expect("columns that are there");
    for from in (0..70).step_by(7).chain([55, 20, 0]) {
        let columns = file.read(from, 7).expect("rows that are there");
        assert_eq!(columns.iter().map(StoredColumn::name).collect::<Vec<_>>(), ["job", "submit_s", "tasks"]);
        let rows = from..60.min(from + 7);
        let tasks = rows.clone().map(|at| if at % 3 > 0 { (at % 5 + 1).to_string() } else { String::new() });
        assert_eq!(columns[0].text().expect("text"), rows.clone().map(|at| format!("j{at}")).collect::<Vec<_>>());
        assert_eq!(columns[1].numbers().expect("numbers"), rows.map(|at| Some(at as f64)).collect::<Vec<_>>());
        assert_eq!(columns[2].text().expect("numbers as text"), tasks.collect::<Vec<_>>());
    }
}

#[test]
fn what_a_footer_claims_is_held_against_the_file() {
    let bytes = table(60, 30, CompressionOptions::Uncompressed);
    let refusal =
        |change: &dyn Fn(&mut FileMetaData)| read_trace(&with_footer(&bytes, change)).unwrap_err().to_string();
    assert_eq!(read_trace(&with_footer(&bytes, |_| {})).expect("the same file"), 60);
    let meta = |footer: &mut FileMetaData| footer.row_groups[0].columns[2].meta_data.clone().expect("a place");
    for (change, want) in [
        (&(|footer: &mut FileMetaData| footer.num_rows = 1 << 40) as &dyn Fn(&mut FileMetaData), "its row groups 60"),
        (&|footer| (footer.num_rows, footer.row_groups[0].num_rows) = ((1 << 40) + 30, 1 << 40), "bytes can hold"),
        (&|footer| (footer.num_rows, footer.row_groups[0].num_rows) = (61, 31), "has 30 values in a row group of 31"),
        (&|footer| footer.schema[0].num_children = Some(i32::MAX), "its schema is no tree"),
        (
            &|footer| {
                let mut place = meta(footer);
                place.data_page_offset = i64::MAX - 1;
                place.dictionary_page_offset = None;
                footer.row_groups[0].columns[2].meta_data = Some(place);
            },
            "damaged.parquet: not a readable Parquet file",
        ),
        (
            &|footer| {
                let mut place = meta(footer);
                place.total_compressed_size = 1 << 60;
                footer.row_groups[0].columns[2].meta_data = Some(place);
            },
            "column 'submit_s' does not lie within the file",
        ),
    ] {
        let message = refusal(change);
        assert!(message.contains(want) && message.starts_with("damaged.parquet"), "{message}");
    }
}

#[test]
fn timestamps_and_lists_are_read_by_their_own_functions() {
    let bytes = table(10, 4, CompressionOptions::Uncompressed);
    // Column 7 is cpu; it has 64-bit integers, which timestamps are stored as.
    let stamped = with_footer(&bytes, |footer| {
        let unit = polars_parquet_format::TimeUnit::MICROS(Default::default());
        let kind = TimestampType { is_adjusted_to_u_t_c: true, unit };
        footer.schema[7].logical_type = Some(LogicalType::TIMESTAMP(kind));
    });
    let read = |bytes: Vec<u8>| {
        let damaged = |path: &Path, problem: &str| Error::trace(path, 0, "", problem);
        let mut file = Parquet::open(Path::new("t.parquet"), Bytes::Memory(bytes.into()), damaged).expect("a table");
        file.select(&["cpu"]).expect("a column");
        file.read(2, 5).expect("rows").swap_remove(0)
    };
    let plain = read(bytes).integers().expect("integers");
    let times = read(stamped).timestamps().expect("timestamps").expect("a column of timestamps");
    assert_eq!((Some(times.ticks), times.per_second, times.is_utc), (plain, 1_000_000, true));
}

#[test]
fn columns_of_other_types_are_named_if_they_are_needed_and_ignored_if_not() {
    let bytes = table(10, 10, CompressionOptions::Uncompressed);
    // Column 7 is cpu; it has 64-bit integers, which these types are stored as.
    let stamped = |element: &mut SchemaElement| {
        let unit = polars_parquet_format::TimeUnit::MICROS(Default::default());
        element.logical_type = Some(LogicalType::TIMESTAMP(TimestampType { is_adjusted_to_u_t_c: true, unit }));
    };
    let decimal = |element: &mut SchemaElement| {
        (element.converted_type, element.precision, element.scale) = (Some(ConvertedType::DECIMAL), Some(12), Some(3));
    };
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("t.parquet");
    for (change, kind) in [(&decimal as &dyn Fn(&mut SchemaElement), "decimal(12, 3)"), (&stamped, "timestamp")] {
        let odd = with_footer(&bytes, |footer| change(&mut footer.schema[7]));
        assert_eq!(
            read_trace(&odd).unwrap_err().to_string(),
            format!(
                "damaged.parquet, column 'cpu': is of type {kind}; expected integers, floats, text or truth values"
            )
        );
        assert_eq!(read_table(&file, &odd).expect("the other columns are fine"), 10);
    }
    // Columns that a trace does not have and that cannot be resources are skipped.
    let noted = |footer: &mut FileMetaData| footer.schema[7].name = "created".to_owned();
    let odd = with_footer(&bytes, |footer| {
        noted(footer);
        stamped(&mut footer.schema[7]);
    });
    assert_eq!(read_trace(&odd).expect("the timestamps are not read"), 10);
    let message = read_trace(&with_footer(&bytes, noted)).unwrap_err().to_string();
    assert!(message.contains("column 'created': is not a trace column"), "{message}");
    // Small and unsigned integers are read like other numbers.
    for kind in [ConvertedType::UINT_8, ConvertedType::INT_16, ConvertedType::UINT_32] {
        let small = with_footer(&bytes, |footer| {
            assert_eq!(footer.schema[5].type_, Some(Type::INT32), "the tasks");
            footer.schema[5].converted_type = Some(kind);
        });
        assert_eq!(read_trace(&small).unwrap_or_else(|error| panic!("{kind:?}: {error}")), 10);
    }
}
