//! The header of an entry of a zip file; the layout is the same in the catalogue and before the entry's data.
//!
//! Fields that programs interpret differently are refused, so that all of them unpack the same files.

/// The length of a header, without its signature.
pub(super) const HEADER: usize = 26;

/// The kinds of extra fields that do not affect the name, type or location of a file: times and owners. (The names of the others are in
/// Info-ZIP's `extrafld.txt`.)
const HARMLESS: [u64; 5] = [0x000A, 0x5455, 0x5855, 0x7855, 0x7875];

/// The ids of the extra fields for sizes beyond 32 bits, and for a second name that only some programs use.
const WIDE: u64 = 0x0001;
const SECOND_NAME: u64 = 0x7075;

/// The marker of a size that is stored in the field for large sizes.
const ALL_ONES: u64 = 0xFFFF_FFFF;

/// The version of the format that has all supported features (4.5, with 64-bit sizes); programs skip newer entries.
const NEWEST: u64 = 45;

/// The flags of the compression level, which are irrelevant.
const EFFORT: u64 = 0b110;
/// The flag of sizes after the data of an entry.
const SIZES_BEHIND: u64 = 1 << 3;
/// The flag of a name in UTF-8.
const UTF_8: u64 = 1 << 11;

/// The compression method of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Not compressed.
    Stored,
    /// Compressed by Deflate.
    Deflated,
}

/// A header of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub flags: u64,
    pub method: Method,
    /// Day and time, which no program derives a name from.
    time: u64,
    pub crc32: u32,
    pub packed: u64,
    pub size: u64,
    /// The lengths of the name and of the extra fields that follow.
    pub name: usize,
    pub extra: usize,
}

impl Header {
    /// Reads a header. Errors: a description.
    pub fn read(bytes: &[u8]) -> Result<Header, &'static str> {
        let field = |at: usize, length: usize| number(bytes, at, length).ok_or("its catalogue is damaged");
        let (needed, flags) = (field(0, 2)? & 0xFF, field(2, 2)?);
        let method = match field(4, 2)? {
            0 => Method::Stored,
            8 => Method::Deflated,
            _ => return Err("it is packed with a method that not every program supports"),
        };
        let problem = match flags & !(EFFORT | SIZES_BEHIND | UTF_8) {
            0 if needed > NEWEST => Some("it requires a newer program"),
            0 if flags & SIZES_BEHIND != 0 && method == Method::Stored => {
                Some("its end cannot be found from its start")
            }
            0 => None,
            _ => Some("it is encrypted, or packed with a method that not every program supports"),
        };
        match problem {
            Some(problem) => Err(problem),
            None => Ok(Header {
                flags,
                method,
                time: field(6, 4)?,
                crc32: field(10, 4)? as u32,
                packed: field(14, 4)?,
                size: field(18, 4)?,
                name: field(22, 2)? as usize,
                extra: field(24, 2)? as usize,
            }),
        }
    }

    /// Returns whether the sizes are after the data.
    pub fn has_sizes_behind(&self) -> bool {
        self.flags & SIZES_BEHIND != 0
    }

    /// Returns whether the name is in UTF-8 instead of the local code page.
    pub fn is_utf_8(&self) -> bool {
        self.flags & UTF_8 != 0
    }

    /// Returns whether another header can belong to the same entry; sizes are not compared.
    pub fn is_like(&self, other: &Header) -> bool {
        (self.flags, self.method, self.time) == (other.flags, other.method, other.time)
    }

    /// Returns whether another header has the same sizes and checksum.
    pub fn has_sizes_of(&self, other: &Header) -> bool {
        (self.crc32, self.packed, self.size) == (other.crc32, other.packed, other.size)
    }

    /// Returns whether the header omits sizes and checksum.
    pub fn is_without_sizes(&self) -> bool {
        (self.crc32, self.packed, self.size) == (0, 0, 0)
    }
}

/// Reads the numbers that do not fit their `fields` from the extra fields: the marked numbers, in the order of `fields`. Errors: a
/// description, also for extra fields that only some programs interpret.
pub(super) fn widen(mut extra: &[u8], fields: &mut [&mut u64]) -> Result<(), &'static str> {
    const DAMAGED: &str = "its extra fields are damaged";
    let mut wide = None;
    while !extra.is_empty() {
        let (kind, length) = number(extra, 0, 2).zip(number(extra, 2, 2)).ok_or(DAMAGED)?;
        let content = extra.get(4..4 + length as usize).ok_or(DAMAGED)?;
        extra = &extra[4 + length as usize..];
        match kind {
            SECOND_NAME => return Err("it has a second name, which some programs use for unpacking"),
            WIDE if wide.is_some() => return Err(DAMAGED),
            WIDE => wide = Some(content),
            _ if HARMLESS.contains(&kind) => {}
            _ => return Err("it has an extra field that some programs use and others ignore"),
        }
    }
    let mut rest = wide.unwrap_or_default();
    let mut many = 0;
    for field in fields.iter_mut().filter(|field| ***field == ALL_ONES) {
        **field = number(rest, 0, 8).ok_or(DAMAGED)?;
        (rest, many) = (&rest[8..], many + 1);
    }
    // An unnecessary field is used by some programs only.
    if rest.is_empty() && (many > 0) == wide.is_some() { Ok(()) } else { Err(DAMAGED) }
}

/// Reads a number in little-endian order; `None` if it extends beyond the end.
pub(super) fn number(bytes: &[u8], at: usize, length: usize) -> Option<u64> {
    let bytes = bytes.get(at..at + length)?;
    Some(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}
