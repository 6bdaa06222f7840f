//! Columns of numbers and names as one compressed text that a script unpacks without a library.
//!
//! Each column is an array of fixed-width values in little-endian order. Its bytes are transposed: first the lowest byte of every value, then
//! the next one, which compresses better. All columns are concatenated, compressed with gzip and encoded in base64. The header has the
//! name, kind, offset and length of each column.

use std::io::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

/// Some columns, in the order of their addition.
#[derive(Default)]
pub(super) struct Pack {
    columns: Vec<Value>,
    bytes: Vec<u8>,
}

impl Pack {
    /// Adds numbers; `None` is absent. Non-negative integers are exact; other values are doubles, or floats with `drawn`, which is enough
    /// for a chart.
    pub fn numbers(&mut self, name: &str, values: &[Option<f64>], drawn: bool) {
        let counts = values.iter().flatten().all(|value| *value >= 0.0 && value.fract() == 0.0);
        let largest = values.iter().flatten().copied().fold(0.0, f64::max);
        // The largest value of an unsigned type means absent.
        let fitting = [("u8", 1, f64::from(u8::MAX)), ("u16", 2, f64::from(u16::MAX)), ("u32", 4, f64::from(u32::MAX))];
        let fitting = fitting.into_iter().find(|(.., absent)| counts && largest < *absent);
        match fitting {
            Some((kind, width, absent)) => {
                let bytes = |value: &Option<f64>| (value.unwrap_or(absent) as u64).to_le_bytes();
                self.transposed(name, kind, width, values.iter().map(bytes));
            }
            None if drawn => {
                let bytes = |value: &Option<f64>| {
                    let mut bytes = [0; 8];
                    bytes[..4].copy_from_slice(&value.map_or(f32::NAN, |value| value as f32).to_le_bytes());
                    bytes
                };
                self.transposed(name, "f32", 4, values.iter().map(bytes));
            }
            None => self.transposed(name, "f64", 8, values.iter().map(|value| value.unwrap_or(f64::NAN).to_le_bytes())),
        }
    }

    /// Adds names. Line ends in names become spaces.
    pub fn names<'n>(&mut self, name: &str, names: impl Iterator<Item = &'n str>) {
        let (at, mut count) = (self.bytes.len(), 0);
        for name in names {
            self.bytes.extend(name.bytes().map(|byte| if byte == b'\n' { b' ' } else { byte }));
            self.bytes.push(b'\n');
            count += 1;
        }
        let size = self.bytes.len() - at;
        self.columns.push(json!({ "name": name, "kind": "names", "at": at, "count": count, "size": size }));
    }

    fn transposed(&mut self, name: &str, kind: &str, width: usize, values: impl Iterator<Item = [u8; 8]> + Clone) {
        let at = self.bytes.len();
        for byte in 0..width {
            self.bytes.extend(values.clone().map(|value| value[byte]));
        }
        let count = (self.bytes.len() - at) / width;
        self.columns.push(json!({ "name": name, "kind": kind, "at": at, "count": count }));
    }

    /// Returns the descriptions of the columns, and the text.
    pub fn finish(self) -> (Vec<Value>, String) {
        let mut packed = GzEncoder::new(Vec::new(), Compression::best());
        let written = packed.write_all(&self.bytes).and_then(|()| packed.finish());
        (self.columns, STANDARD.encode(written.expect("memory can be written")))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn columns_are_unpacked_to_their_values() {
        let small = [Some(0.0), None, Some(254.0)];
        let large = [Some(70_000.0), Some(4_000_000_000.0), None];
        let other = [Some(-1.5), None, Some(1e300)];
        let mut pack = Pack::default();
        pack.numbers("small", &small, true);
        pack.numbers("large", &large, true);
        pack.numbers("other", &other, false);
        pack.numbers("drawn", &[Some(0.5), None], true);
        pack.names("who", ["a\nb", "<script>"].into_iter());
        let (columns, text) = pack.finish();
        let mut bytes = Vec::new();
        let packed = STANDARD.decode(text).expect("base64");
        flate2::read::GzDecoder::new(&packed[..]).read_to_end(&mut bytes).expect("gzip");
        let kinds: Vec<&str> = columns.iter().filter_map(|column| column["kind"].as_str()).collect();
        assert_eq!(kinds, ["u8", "u32", "f64", "f32", "names"]);
        let column = |at: usize, width: usize| -> Vec<[u8; 8]> {
            let (from, count) = (columns[at]["at"].as_u64().unwrap() as usize, columns[at]["count"].as_u64().unwrap());
            let value = |row: usize| {
                let mut value = [0; 8];
                (0..width).for_each(|byte| value[byte] = bytes[from + byte * count as usize + row]);
                value
            };
            (0..count as usize).map(value).collect()
        };
        assert_eq!(column(0, 1).map_first(), [0, 255, 254]);
        assert_eq!(column(1, 4).map_first(), [70_000, 4_000_000_000, u64::from(u32::MAX)]);
        let doubles: Vec<f64> = column(2, 8).into_iter().map(f64::from_le_bytes).collect();
        assert!(doubles[0] == -1.5 && doubles[1].is_nan() && doubles[2] == 1e300);
        let from = columns[4]["at"].as_u64().unwrap() as usize;
        assert_eq!(&bytes[from..], b"a b\n<script>\n");
    }

    trait MapFirst {
        fn map_first(self) -> Vec<u64>;
    }

    impl MapFirst for Vec<[u8; 8]> {
        fn map_first(self) -> Vec<u64> {
            self.into_iter().map(u64::from_le_bytes).collect()
        }
    }
}
