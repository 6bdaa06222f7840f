//! Tables of random values are read back as they were written.

use std::path::Path;

use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::parquet::{Bytes, Parquet};
use crate::table::{Constant, Field, TableWriter};
use plimsoll_base::column::{Cell, Kind};
use plimsoll_base::error::Error;
use plimsoll_base::pinned::Pinned;

/// A value of a row, owned.
#[derive(Clone, Debug, PartialEq)]
enum Held {
    Null,
    Int(i64),
    Float(f64),
    Text(String),
}

impl Held {
    fn cell(&self) -> Cell<'_> {
        match self {
            Held::Null => Cell::Null,
            Held::Int(value) => Cell::Int(*value),
            Held::Float(value) => Cell::Float(*value),
            Held::Text(text) => Cell::Text(text),
        }
    }
}

/// Returns a value for one of several kinds of columns: few distinct values, many, all, mostly null.
fn value(kind: Kind, variety: u32, row: usize, random: &mut ChaCha8Rng) -> Held {
    if [0, 0, 0, 30, 99, 100, 50, 1][variety as usize] > random.random_range(0..100) {
        return Held::Null;
    }
    let few = random.random_range(0..[1, 3, 300, 5, 2, 1, 70_000, 40][variety as usize]);
    match kind {
        Kind::Int => Held::Int(match variety {
            0 => few,
            1 => [i64::MIN, i64::MAX, 0][few as usize],
            2 => (row as i64) * 1_000_000 + few,
            3 => random.next_u64() as i64,
            _ => few * 1000 - 20_000,
        }),
        Kind::Float => Held::Float(match variety {
            0 => -0.0,
            1 => [f64::MIN, f64::MAX, 0.0][few as usize],
            2 => f64::from_bits(random.next_u64() >> 2),
            _ => few as f64 / 8.0,
        }),
        Kind::Text => Held::Text(match variety {
            0 => String::new(),
            1 => ["é", "", "e"][few as usize].to_owned(),
            2 => format!("job-{row}"),
            3 => "abcé".repeat(random.random_range(0..9)),
            // Equal ends and lengths, so that the hashes agree.
            _ => format!("a long common beginning, {few:06}, a long common end"),
        }),
    }
}

#[test]
fn random_tables_come_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("t.parquet");
    let constants = [
        ("policy".to_owned(), Constant::Text("drf".to_owned())),
        ("run".to_owned(), Constant::Int(-7)),
        ("seed".to_owned(), Constant::NoInt),
        ("load".to_owned(), Constant::Float(0.85)),
    ];
    for (seed, rows) in [0usize, 1, 2, 63, 64, 65, 66, 255, 256, 257, 258, 700, 5000, 140_000].into_iter().enumerate() {
        let random = &mut ChaCha8Rng::seed_from_u64(seed as u64);
        let varieties = (0..8).flat_map(|variety| [(variety, false), (variety, true)]);
        let columns = [Kind::Int, Kind::Float, Kind::Text].into_iter().flat_map(|kind| {
            let of = |(variety, distinct)| (kind, variety, distinct);
            varieties.clone().map(of).collect::<Vec<_>>()
        });
        let columns: Vec<_> = columns.collect();
        let field = |(at, &(kind, _, distinct)): (usize, &(Kind, u32, bool))| Field {
            distinct,
            ..Field::new(format!("c{at}"), kind)
        };
        let fields = columns.iter().enumerate().map(field).collect();
        let mut table = TableWriter::create(&path, &constants, fields, &[]).expect("writable");
        let mut held: Vec<Vec<Held>> = vec![Vec::new(); columns.len()];
        for row in 0..rows {
            for (column, &(kind, variety, _)) in held.iter_mut().zip(&columns) {
                column.push(value(kind, variety, row, random));
            }
            table.push(held.iter().map(|column| column[row].cell())).expect("cells of the types of their columns");
        }
        table.finish().expect("writable");
        let complain = |path: &Path, problem: &str| Error::trace(path, 0, "", problem);
        let bytes = Bytes::File(Pinned::new(&path).expect("a file"));
        let mut file = Parquet::open(&path, bytes, complain).expect("a sound file");
        let names: Vec<String> = file.columns().iter().map(|(name, _)| name.clone()).collect();
        file.select(&names.iter().map(String::as_str).collect::<Vec<_>>()).expect("columns that are there");
        let read = file.read(0, rows).expect("rows that are there");
        let text = |at: usize| read[at].text().expect("text");
        assert_eq!((0..4).map(text).collect::<Vec<_>>(), ["drf", "-7", "", "0.85"].map(|text| vec![text; rows]));
        for ((column, held), about) in read[4..].iter().zip(&held).zip(&columns) {
            let numbers = |held: &Held| match held {
                Held::Int(value) => Some((*value as f64).to_bits()),
                Held::Float(value) => Some(value.to_bits()),
                _ => None,
            };
            let text = |held: &Held| match held {
                Held::Int(value) => value.to_string(),
                Held::Text(text) => text.clone(),
                _ => String::new(),
            };
            if about.0 != Kind::Text {
                let read: Vec<_> =
                    column.numbers().expect("numbers").into_iter().map(|value| value.map(f64::to_bits)).collect();
                assert!(read == held.iter().map(numbers).collect::<Vec<_>>(), "{about:?}, {rows} rows");
            }
            if about.0 != Kind::Float {
                let read = column.text().expect("text");
                assert!(read == held.iter().map(text).collect::<Vec<_>>(), "{about:?}, {rows} rows");
            }
        }
    }
}
