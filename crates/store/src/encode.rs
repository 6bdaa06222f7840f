//! Encodes columns of a table as Parquet pages. The encoding follows from the column's declaration and the number of distinct values.
//!
//! Repetitive columns are stored as keys of a dictionary; of numbers, only while it is short. Other columns are stored as differences from
//! row to row. Integers are packed 64 at a time, to the width of their largest difference. A name omits the prefix that it shares with the
//! name before. Other doubles are stored plain. A constant column is a dictionary of one value. A column of a row group is one page,
//! compressed if a sample shows that this pays.

use polars_parquet::parquet::CowBuffer;
use polars_parquet::parquet::compression::{CompressionOptions, ZstdLevel, compress};
use polars_parquet::parquet::encoding::hybrid_rle::{Encoder, encode};
use polars_parquet::parquet::encoding::{bitpacked, uleb128};
use polars_parquet::parquet::error::ParquetResult;
use polars_parquet::parquet::metadata::Descriptor;
use polars_parquet::parquet::page::{DataPage, DataPageHeader, DataPageHeaderV1, DictPage, Page};
use polars_parquet_format::{Encoding, Statistics};

use plimsoll_base::column::{Cell, Kind};
use plimsoll_base::names::{Listed, NameList};
use plimsoll_sim::workload::Names as Interned;

/// The values of a column in a growing row group, without absent ones.
#[derive(serde::Serialize, serde::Deserialize)]
enum Values {
    Int(Vec<i64>),
    Float(Vec<f64>),
    Repeated(Names),
    Listed(ListedNames),
    Distinct(Differing),
}

/// A column of a growing row group.
#[derive(serde::Serialize, serde::Deserialize)]
pub struct GrowingColumn {
    values: Values,
    distinct: bool,
    /// Whether each row has a value; `None` while all rows have one.
    present: Option<Vec<bool>>,
}

/// The pages of a column of a row group, and their compression.
pub(crate) type Pages = (Vec<Page>, CompressionOptions);

impl GrowingColumn {
    /// Creates a column without rows; `distinct` if nearly all its values differ.
    pub(crate) fn new(kind: Kind, distinct: bool) -> GrowingColumn {
        let values = match kind {
            Kind::Int => Values::Int(Vec::new()),
            Kind::Float => Values::Float(Vec::new()),
            Kind::Text if distinct => Values::Distinct(Differing::default()),
            Kind::Text => Values::Repeated(Names::default()),
        };
        GrowingColumn { values, distinct, present: None }
    }

    /// Makes room for more values.
    pub(crate) fn reserve(&mut self, rows: usize) {
        match &mut self.values {
            Values::Int(values) => values.reserve(rows),
            Values::Float(values) => values.reserve(rows),
            Values::Repeated(names) => names.keys.reserve(rows),
            Values::Listed(names) => names.keys.reserve(rows),
            Values::Distinct(names) => {
                [&mut names.shared, &mut names.lengths].iter_mut().for_each(|all| all.reserve(rows))
            }
        }
    }

    /// Adds the value of the next row; returns whether it has the column's type.
    #[inline]
    pub fn push(&mut self, cell: Cell) -> bool {
        match cell {
            Cell::Int(value) => self.push_int(value),
            Cell::Float(value) => self.push_float(value),
            Cell::Large(value) => matches!(self.values, Values::Float(_)) && self.push_float(value as f64),
            Cell::Text(name) => self.push_text(name),
            Cell::Null => self.push_null(),
        }
    }

    /// Adds an integer; a column of doubles stores the nearest double.
    #[inline]
    pub fn push_int(&mut self, value: i64) -> bool {
        match &mut self.values {
            Values::Int(values) => values.push(value),
            Values::Float(values) => values.push(value as f64),
            _ => return false,
        }
        self.note()
    }

    /// Adds a double.
    #[inline]
    pub fn push_float(&mut self, value: f64) -> bool {
        let Values::Float(values) = &mut self.values else { return false };
        values.push(value);
        self.note()
    }

    /// Adds a name.
    #[inline]
    pub fn push_text(&mut self, name: &str) -> bool {
        match &mut self.values {
            Values::Repeated(names) => names.push(name),
            Values::Distinct(names) => names.push(name.as_bytes()),
            _ => return false,
        }
        self.note()
    }

    /// Adds a name of a list; all other values of the column must be of this list, too.
    #[inline]
    pub fn push_name(&mut self, name: Listed) -> bool {
        if let Values::Repeated(Names { keys, .. }) = &mut self.values
            && keys.is_empty()
        {
            self.values = Values::Listed(ListedNames { keys: std::mem::take(keys), ..ListedNames::default() });
        }
        let Values::Listed(names) = &mut self.values else { return self.push_text(name.name()) };
        names.push(name);
        self.note()
    }

    #[inline]
    fn note(&mut self) -> bool {
        if let Some(present) = &mut self.present {
            present.push(true);
        }
        true
    }

    /// Adds an absent value.
    fn push_null(&mut self) -> bool {
        let rows = self.len();
        self.present.get_or_insert_with(|| vec![true; rows]).push(false);
        true
    }

    fn len(&self) -> usize {
        match (&self.present, &self.values) {
            (Some(present), _) => present.len(),
            (None, Values::Int(values)) => values.len(),
            (None, Values::Float(values)) => values.len(),
            (None, Values::Repeated(names)) => names.keys.len(),
            (None, Values::Listed(names)) => names.keys.len(),
            (None, Values::Distinct(names)) => names.lengths.len(),
        }
    }

    /// Returns the column's pages for `rows` rows. Errors: those of the compression.
    pub(crate) fn pages(self, rows: usize, of: Descriptor) -> ParquetResult<Pages> {
        let mut page = Vec::new();
        let mut absent = 0;
        levels(&mut page, |page| match &self.present {
            None => <bool as Encoder<bool>>::run_length_encode(page, rows, true, 1),
            Some(present) => {
                absent = present.iter().filter(|present| !**present).count();
                encode::<bool, _, _>(page, present.iter().copied(), 1)
            }
        })?;
        let [least, most] = self.values.extremes();
        let mut entries = None;
        let mut dictionary = |page: &mut Vec<u8>, (plain, length, keys): Numbered| {
            entries = Some(DictPage::new(CowBuffer::Owned(plain), length, false));
            numbers(&keys, length, page).map(|()| Encoding::RLE_DICTIONARY)
        };
        let encoding = match self.values {
            Values::Int(values) => match few(&values, self.distinct && !are_seconds(&values), |value| value as u64) {
                Some(few) => dictionary(&mut page, few)?,
                None => {
                    differences(&values, &mut page);
                    Encoding::DELTA_BINARY_PACKED
                }
            },
            Values::Float(values) => match few(&values, self.distinct, f64::to_bits) {
                Some(few) => dictionary(&mut page, few)?,
                None => {
                    page.reserve(size_of_val(values.as_slice()));
                    values.iter().for_each(|value| page.extend_from_slice(&value.to_le_bytes()));
                    Encoding::PLAIN
                }
            },
            Values::Repeated(names) => {
                let plain = names.names.iter().flat_map(plain_text).collect();
                dictionary(&mut page, (plain, names.names.len(), names.keys))?
            }
            Values::Listed(ListedNames { names, keys, .. }) => {
                let plain = names.iter().flat_map(plain_text).collect();
                dictionary(&mut page, (plain, names.len(), keys))?
            }
            Values::Distinct(names) => {
                differences(&names.shared, &mut page);
                differences(&names.lengths, &mut page);
                page.extend_from_slice(&names.bytes);
                Encoding::DELTA_BYTE_ARRAY
            }
        };
        let largest = entries.iter().map(|entries| &*entries.buffer).chain([&page[..]]).max_by_key(|bytes| bytes.len());
        let compression = worthwhile(largest.unwrap_or_default())?;
        let data = data_page(page, rows, encoding, statistics(absent, least, most), of);
        Ok((entries.map(Page::Dict).into_iter().chain([data]).collect(), compression))
    }
}

impl Values {
    /// Returns the least and the largest value, unless they are long or include NaN; a zero may have either sign.
    fn extremes(&self) -> [Option<Vec<u8>>; 2] {
        match self {
            Values::Int(values) => {
                [values.iter().min(), values.iter().max()].map(|end| end.map(|end| end.to_le_bytes().to_vec()))
            }
            Values::Float(values) => {
                let none = (f64::INFINITY, f64::NEG_INFINITY, false);
                let (least, most, nan) = values.iter().fold(none, |(least, most, nan), &value| {
                    let least = if value < least { value } else { least };
                    (least, if value > most { value } else { most }, nan | value.is_nan())
                });
                let least = if least == 0.0 { -0.0 } else { least };
                [least, most + 0.0].map(|end| (!nan && !values.is_empty()).then(|| end.to_le_bytes().to_vec()))
            }
            Values::Repeated(names) => ends_of([names.names.iter().min(), names.names.iter().max()]),
            Values::Listed(names) => ends_of([names.names.iter().min(), names.names.iter().max()]),
            Values::Distinct(_) => [None, None],
        }
    }
}

/// Returns the least and the largest name, unless they are long.
fn ends_of(names: [Option<&str>; 2]) -> [Option<Vec<u8>>; 2] {
    names.map(|name| name.filter(|name| name.len() <= 64).map(|name| name.as_bytes().to_vec()))
}

/// Returns the pages of a column with this value in each of `rows` rows.
pub(crate) fn repeated(cell: Cell, rows: usize, of: Descriptor) -> ParquetResult<Pages> {
    let plain = match cell {
        Cell::Int(value) => Some(value.to_le_bytes().to_vec()),
        Cell::Float(value) => Some(value.to_le_bytes().to_vec()),
        Cell::Text(text) => Some(text.as_bytes().to_vec()),
        Cell::Null | Cell::Large(_) => None,
    };
    let mut page = Vec::new();
    levels(&mut page, |page| <bool as Encoder<bool>>::run_length_encode(page, rows, plain.is_some(), 1))?;
    let Some(plain) = plain else {
        let data = data_page(page, rows, Encoding::PLAIN, statistics(rows, None, None), of);
        return Ok((vec![data], CompressionOptions::Uncompressed));
    };
    // All keys are 0, with a width of 0 bits.
    page.push(0);
    <u32 as Encoder<u32>>::run_length_encode(&mut page, rows, 0, 0)?;
    let statistics = statistics(0, Some(plain.clone()), Some(plain.clone()));
    let entry = if let Cell::Text(text) = cell { plain_text(text) } else { plain };
    let entry = Page::Dict(DictPage::new(CowBuffer::Owned(entry), 1, false));
    let data = data_page(page, rows, Encoding::RLE_DICTIONARY, statistics, of);
    Ok((vec![entry, data], CompressionOptions::Uncompressed))
}

/// The entries of a dictionary in the format of a page, their number, and the key of each value.
type Numbered = (Vec<u8>, usize, Vec<u32>);

/// Writes keys of a dictionary of this length. Runs of equal keys are searched only if many keys equal the one before.
fn numbers(keys: &[u32], length: usize, page: &mut Vec<u8>) -> std::io::Result<()> {
    let width = usize::BITS - length.saturating_sub(1).leading_zeros();
    page.push(width as u8);
    let pairs = keys.iter().zip(keys.get(1..).unwrap_or_default());
    // A wrapping sum is vectorised, unlike a sum with overflow checks; there are fewer than 2^32 rows.
    let equal = pairs.map(|(before, after)| u32::from(before == after)).fold(0, u32::wrapping_add) as usize;
    if 2 * equal + 1 >= keys.len() {
        return encode::<u32, _, _>(page, keys.iter().copied(), width);
    }
    <u32 as Encoder<u32>>::bitpacked_encode(page, keys.iter().copied(), width as usize)
}

/// Multiplier of a hash, which spreads the bits of a value over the high bits.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Returns whether the first values are whole seconds, given as microseconds, or all 0. Such values repeat, and as differences they would
/// take superfluous bits.
fn are_seconds(values: &[i64]) -> bool {
    values.iter().take(64).all(|value| value % 1_000_000 == 0)
}

/// Encodes numbers by a dictionary; returns `None` unless they repeat so often that there are at least about eight numbers per entry.
fn few<T: Copy>(values: &[T], distinct: bool, bits: impl Fn(T) -> u64) -> Option<Numbered> {
    if distinct || values.is_empty() {
        return None;
    }
    let most = values.len() / 8 + 1;
    let size = (2 * most).next_power_of_two();
    let mut places = vec![u32::MAX; size];
    let (mut entries, mut keys) = (Vec::new(), Vec::with_capacity(values.len()));
    let mut last = None;
    for value in values.iter().map(|value| bits(*value)) {
        if last == Some(value) {
            keys.push(keys[keys.len() - 1]);
            continue;
        }
        last = Some(value);
        let mut place = (value.wrapping_mul(SPREAD) >> (u64::BITS - size.ilog2())) as usize;
        while entries.get(places[place] as usize).is_some_and(|entry| *entry != value) {
            place = (place + 1) & (size - 1);
        }
        if places[place] == u32::MAX {
            if entries.len() == most {
                return None;
            }
            places[place] = entries.len() as u32;
            entries.push(value);
        }
        keys.push(places[place]);
    }
    Some((entries.iter().flat_map(|entry| entry.to_le_bytes()).collect(), entries.len(), keys))
}

/// Names by number, in order of their first appearance in a row group.
#[derive(Default, serde::Serialize, serde::Deserialize)]
struct Names {
    names: Interned,
    keys: Vec<u32>,
    /// Per hash, the most recent name: its ends, length and number. An entry nearly always matches the name that is searched.
    #[serde(skip)]
    recent: Vec<([u64; 2], usize, u32)>,
}

impl Names {
    /// Number of bits of the hashes.
    const RECENT: u32 = 10;

    fn push(&mut self, name: &str) {
        if self.recent.is_empty() {
            self.recent = vec![([0; 2], usize::MAX, 0); 1 << Self::RECENT];
        }
        let ends = ends(name.as_bytes());
        let place = (ends[0] ^ ends[1].rotate_left(32)).wrapping_mul(SPREAD) >> (u64::BITS - Self::RECENT);
        let recent = &mut self.recent[place as usize];
        let whole = || name.len() <= 16 || self.names.name(recent.2) == name;
        if !((recent.0, recent.1) == (ends, name.len()) && whole()) {
            *recent = (ends, name.len(), self.names.intern(name));
        }
        self.keys.push(recent.2);
    }
}

/// Names of a list by number, in order of their first appearance in a row group. A name is looked up only at its first appearance.
#[derive(Default, serde::Serialize, serde::Deserialize)]
struct ListedNames {
    names: NameList,
    keys: Vec<u32>,
    /// The number of each name of the list, or [`NEW`].
    numbers: Vec<u32>,
}

const NEW: u32 = u32::MAX;

impl ListedNames {
    fn push(&mut self, name: Listed) {
        let at = name.at as usize;
        if self.numbers.len() <= at {
            self.numbers.resize((at + 1).next_power_of_two(), NEW);
        }
        if self.numbers[at] == NEW {
            self.numbers[at] = self.names.len() as u32;
            self.names.push(name.name());
        }
        self.keys.push(self.numbers[at]);
    }
}

/// Returns the first and the last eight bytes, which may overlap; with the length they identify up to sixteen bytes.
fn ends(bytes: &[u8]) -> [u64; 2] {
    if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        [u64::from_le_bytes(*first), u64::from_le_bytes(*last)]
    } else if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        [u32::from_le_bytes(*first).into(), u32::from_le_bytes(*last).into()]
    } else {
        [bytes.iter().fold(0, |all, byte| all << 8 | u64::from(*byte)), 0]
    }
}

/// Distinct names, each without the prefix that it shares with the one before.
#[derive(Default, serde::Serialize, serde::Deserialize)]
struct Differing {
    before: Vec<u8>,
    shared: Vec<i64>,
    lengths: Vec<i64>,
    bytes: Vec<u8>,
}

impl Differing {
    fn push(&mut self, name: &[u8]) {
        let shared = self.before.iter().zip(name).take_while(|(a, b)| a == b).count();
        self.before.truncate(shared);
        self.before.extend_from_slice(&name[shared..]);
        self.shared.push(shared as i64);
        self.lengths.push((name.len() - shared) as i64);
        self.bytes.extend_from_slice(&name[shared..]);
    }
}

fn plain_text(text: &str) -> Vec<u8> {
    [&(text.len() as u32).to_le_bytes(), text.as_bytes()].concat()
}

/// Begins a page with the levels (which rows have values), preceded by their length.
fn levels(page: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>) -> std::io::Result<()>) -> std::io::Result<()> {
    page.extend_from_slice(&[0; 4]);
    write(page)?;
    let length = (page.len() - 4) as u32;
    page[..4].copy_from_slice(&length.to_le_bytes());
    Ok(())
}

fn statistics(absent: usize, min_value: Option<Vec<u8>>, max_value: Option<Vec<u8>>) -> Statistics {
    let null_count = Some(absent as i64);
    Statistics {
        min: None,
        max: None,
        null_count,
        distinct_count: None,
        max_value,
        min_value,
        is_max_value_exact: None,
        is_min_value_exact: None,
    }
}

fn data_page(bytes: Vec<u8>, rows: usize, encoding: Encoding, statistics: Statistics, of: Descriptor) -> Page {
    let header = DataPageHeaderV1 {
        num_values: rows as i32,
        encoding,
        definition_level_encoding: Encoding::RLE,
        repetition_level_encoding: Encoding::RLE,
        statistics: Some(statistics),
    };
    Page::Data(DataPage::new(DataPageHeader::V1(header), CowBuffer::Owned(bytes), of, rows))
}

/// Number of bytes of a page that are compressed as a sample.
const SAMPLE: usize = 1 << 14;

/// Selects the compression of a page: compressed if a sample shrinks by more than an eighth.
fn worthwhile(page: &[u8]) -> ParquetResult<CompressionOptions> {
    let fast = CompressionOptions::Zstd(ZstdLevel::try_new(1).ok());
    let start = page.len().saturating_sub(SAMPLE) / 2;
    let sample = &page[start..page.len().min(start + SAMPLE)];
    let mut compressed = Vec::new();
    compress(fast, sample, &mut compressed)?;
    let pays = compressed.len() < sample.len() - sample.len() / 8;
    Ok(if pays { fast } else { CompressionOptions::Uncompressed })
}

/// Number of rows of a block of differences, and of each part of a block, which has its own width.
const BLOCK: usize = 256;
const PART: usize = 64;

/// Writes values as DELTA_BINARY_PACKED: the first value, then blocks of differences to the value before, relative to their least.
fn differences(values: &[i64], page: &mut Vec<u8>) {
    let number = |page: &mut Vec<u8>, value: u64| {
        let mut bytes = [0; 10];
        let length = uleb128::encode(value, &mut bytes);
        page.extend_from_slice(&bytes[..length]);
    };
    let signed = |page: &mut Vec<u8>, value: i64| number(page, ((value << 1) ^ (value >> 63)) as u64);
    [BLOCK, BLOCK / PART, values.len()].iter().for_each(|&value| number(page, value as u64));
    signed(page, values.first().copied().unwrap_or_default());
    for (before, after) in values.chunks(BLOCK).zip(values.get(1..).unwrap_or_default().chunks(BLOCK)) {
        let (mut above, rows) = ([0; BLOCK], after.len());
        for (above, (before, after)) in above.iter_mut().zip(before.iter().zip(after)) {
            *above = after.wrapping_sub(*before);
        }
        let least = above[..rows].iter().copied().min().unwrap_or_default();
        signed(page, least);
        let above =
            std::array::from_fn::<u64, BLOCK, _>(|at| if at < rows { above[at].wrapping_sub(least) as u64 } else { 0 });
        let width = |part: &[u64]| u64::BITS - part.iter().fold(0, |bits, above| bits | above).leading_zeros();
        page.extend(above.chunks(PART).map(|part| width(part) as u8));
        for part in above[..rows.next_multiple_of(PART)].chunks(PART) {
            let (start, width) = (page.len(), width(part) as usize);
            page.resize(start + PART * width / 8, 0);
            if width > 0 {
                bitpacked::encode(part, width, &mut page[start..]);
            }
        }
    }
}

#[cfg(test)]
mod tests;
